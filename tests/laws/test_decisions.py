"""Graphs that decide: loops, branches and switches, by a number that the device has computed."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import ArrayDTypeError, CaptureError, OutOfBoundsError, UsageError

COUNT_DOWN = agt.Kernel(r"""
extern "C" __global__ void count_down(int* number, int* times) { *number -= 1; *times += 1; }
""")
ADD = agt.Kernel(r"""
extern "C" __global__ void add(int what, int* to) { *to += what; }
""")
BEYOND = agt.Kernel(r"""
extern "C" __global__ void beyond(int* x) { x[1] = 1; }
""")


def number(start: int) -> agt.DeviceArray:
    return agt.full(1, start, np.int32).sync()


def count_down(left: agt.DeviceArray, times: agt.DeviceArray) -> agt.DeviceOp[Any]:
    return COUNT_DOWN(left.borrow(), times.borrow(), grid=1, block=1)


def add(what: int, to: agt.DeviceArray) -> agt.DeviceOp[Any]:
    return ADD(what, to.borrow(), grid=1, block=1)


def said(*arrays: agt.DeviceArray) -> list[int]:
    return [int(agt.d2h(array.borrow()).sync()[0]) for array in arrays]


def graph(op: agt.DeviceOp[Any]) -> agt.CudaGraph[Any]:
    return op.graph_on(agt.create_stream())


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_loop_comes_round_as_often_as_the_device_says(device: Device, turns: int) -> None:
    left, times = number(turns), number(0)
    loop = graph(agt.CudaGraph.while_loop(left.borrow(), count_down(left, times)))
    loop.launch().sync()
    assert said(left, times) == [0, turns]
    loop.update(agt.memcpy(left.borrow(), agt.pin(np.array([3], np.int32))))
    loop.launch().sync()
    assert said(left, times) == [0, turns + 3]


def test_what_comes_before_and_behind_a_loop_does_so(device: Device) -> None:
    left, times, copy, one = number(5), number(0), number(0), number(1)
    body = agt.zip(
        count_down(left, times),
        agt.memcpy(copy.borrow(), times.borrow()),
        agt.memcpy(times.borrow(), copy.borrow()),
    )
    op = agt.zip(
        add(2, left),
        agt.CudaGraph.while_loop(left.borrow(), body),
        agt.memcpy(one.borrow(), copy.borrow()),
        add(100, one),
    )
    graph(op).launch().sync()
    assert said(left, times, copy, one) == [0, 7, 7, 107]


@pytest.mark.parametrize(("which", "result"), [(1, 10), (-3, 10), (0, 20)])
def test_a_branch(device: Device, which: int, result: int) -> None:
    chosen, to = number(which), number(0)
    graph(agt.CudaGraph.cond(chosen.borrow(), add(10, to), add(20, to))).launch().sync()
    assert said(to) == [result]
    graph(agt.CudaGraph.cond(chosen.borrow(), add(100, to))).launch().sync()
    assert said(to) == [result + 100 * (which != 0)]


@pytest.mark.parametrize(("which", "result"), [(0, 1), (2, 4), (3, 0), (-1, 0)])
def test_a_switch(device: Device, which: int, result: int) -> None:
    chosen, to = number(which), number(0)
    cases = [add(2**k, to) for k in range(3)]
    graph(agt.CudaGraph.switch(chosen.borrow(), *cases).named("cases")).launch().sync()
    assert said(to) == [result]


def test_decisions_within_decisions(device: Device) -> None:
    rounds, inner, times, odd, to = (number(n) for n in (3, 0, 0, 1, 0))
    again = agt.memcpy(inner.borrow(), number(4).share())
    body = agt.zip(
        again,
        agt.CudaGraph.while_loop(inner.borrow(), count_down(inner, times)).named("inner"),
        agt.CudaGraph.cond(
            odd.borrow(), agt.zip(add(1, to), add(-1, odd)), agt.zip(add(10, to), add(1, odd))
        ),
        add(-1, rounds),
    )
    graph(agt.CudaGraph.while_loop(rounds.borrow(), body)).launch().sync()
    assert said(rounds, times, to) == [0, 12, 12]


@pytest.mark.parametrize("way", ["sync", "prepare"])
def test_outside_of_a_graph_it_is_refused(device: Device, way: str) -> None:
    left, times = number(1), number(0)
    with pytest.raises(CaptureError, match="graph_on"):
        getattr(agt.CudaGraph.while_loop(left.borrow(), count_down(left, times)), way)()
    assert said(left, times) == [1, 0]


def test_a_body_is_kernels_in_a_row(device: Device) -> None:
    left, times, host = number(1), number(0), agt.pinned(1, np.int32)
    for body in (
        agt.d2h(times.borrow(), out=host),
        agt.memcpy(times.borrow(), host),
        agt.overlap(add(1, times), add(-1, left)),
    ):
        with pytest.raises(CaptureError, match="a body holds kernels"):
            graph(agt.CudaGraph.while_loop(left.borrow(), body))
    graph(agt.CudaGraph.while_loop(left.borrow(), count_down(left, times))).launch().sync()
    assert said(left, times) == [0, 1]


@pytest.mark.parametrize("what", ["cond", "switch", "while_loop"])
def test_work_that_runs_once_in_a_body_is_nowhere_else(device: Device, what: str) -> None:
    chosen, x, y = number(0), number(0), number(1)
    once = agt.memcpy(x.borrow(), y.borrow()).first()
    decides = getattr(agt.CudaGraph, what)
    ways = [agt.zip(decides(chosen.borrow(), once), once)]
    if what != "while_loop":
        ways.append(decides(chosen.borrow(), once, once))
    for way in ways:
        with pytest.raises(CaptureError, match="at most once, and that is in a body"):
            graph(way)
    # What ran before the decision is there in each body, and in those within it.
    within = agt.CudaGraph.cond(chosen.borrow(), once)
    graph(agt.zip(once, decides(chosen.borrow(), agt.zip(once, within)))).launch().sync()
    assert said(x) == [1]


def test_what_decides_is_a_whole_number(device: Device) -> None:
    times = number(0)
    with pytest.raises(ArrayDTypeError, match="int32"):
        agt.CudaGraph.while_loop(agt.zeros(1).sync(), add(1, times))
    with pytest.raises(UsageError, match="cases"):
        agt.CudaGraph.switch(number(0))
    add(1, times).sync()


def test_a_loop_without_an_end_is_said_to_have_none(sim: Device) -> None:
    go, times = number(1), number(0)
    with pytest.raises(agt.errors.RunawayKernelError, match="'full' still says"):
        graph(agt.CudaGraph.while_loop(go.borrow(), add(1, times))).launch().sync()
    assert said(go) == [1]


def test_a_fault_ends_the_loop_and_nothing_else(sim: Device) -> None:
    left, times, x = number(3), number(0), number(0)
    body = agt.zip(count_down(left, times), BEYOND(x.borrow(), grid=1, block=1))
    with pytest.raises(OutOfBoundsError, match="beyond"):
        graph(agt.CudaGraph.while_loop(left.borrow(), body)).launch().sync()
    add(1, number(0)).sync()


@pytest.mark.parametrize("seed", range(5))
def test_a_hostile_device_decides_alike(seed: int) -> None:
    with agt.using(SimDevice(adversary=seed)):
        left, times, to = number(4), number(0), number(0)
        loop = agt.CudaGraph.while_loop(left.borrow(), count_down(left, times))
        graph(agt.zip(agt.overlap(loop, add(1, to)), add(1, times))).launch().sync()
        assert said(left, times, to) == [0, 5, 1]


def test_others_who_touch_what_the_loop_does_are_a_race(sim: Device) -> None:
    left, times = number(4), number(0)
    loop = graph(agt.CudaGraph.while_loop(left.borrow(), count_down(left, times)))
    loop.launch().async_on(agt.create_stream())
    with pytest.raises(agt.errors.StreamRaceError):
        add(1, times).async_on(agt.create_stream())


def test_each_turn_is_in_the_trace(device: Device) -> None:
    left, times = number(300), number(0)
    loop = graph(agt.CudaGraph.while_loop(left.borrow(), count_down(left, times)))
    stream = agt.create_stream()
    with agt.record() as recording:
        loop.launch().async_on(stream)
        add(1, times).sync_on(stream)
    spans = sorted(recording.device_spans, key=lambda span: span.start)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    if not device.simulated:  # there it is one bar, and a turn takes over 1 us
        assert spans[0].duration > 300
        return
    assert [s.name for s in spans] == [*["while", "count_down"] * 300, "while", "add"]
    assert all(spans[k].id in spans[k + 1].after for k in range(600))


@pytest.mark.parametrize("what", ["while_loop", "cond", "switch"])
def test_a_body_costs_its_capture_what_the_same_work_costs_outside(
    sim: SimDevice, what: str
) -> None:
    left, times = number(1), number(0)
    body = agt.zip(*[count_down(left, times) for _ in range(5)])

    def us(op: agt.DeviceOp[Any]) -> float:
        start = sim.now()
        graph(op)
        return sim.now() - start

    node = sim.spec.graph_instantiate_us
    inside = us(getattr(agt.CudaGraph, what)(left.borrow(), body))
    assert inside == pytest.approx(us(body) + node)
