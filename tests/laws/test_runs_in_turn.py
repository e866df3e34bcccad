"""Runs of one pipeline, and of everything that was made of it, come one after the other."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from asyncgpu_tutor.errors import DeviceError

from .kernels import STRAY, add, kernel
from .test_graphs import BOTH, N, Op, arrays, into
from .test_waiting import awaited

STREAMS = 3


def counter() -> tuple[agt.DeviceArray, Op]:
    """An array of zeros, and an operation that adds one to it, by way of an array of its own."""
    total, one = arrays(0, 1)

    def store(new: agt.DeviceArray) -> Op:
        return agt.memcpy(total.borrow(), new).first()

    return total, add(total.borrow(), one.borrow(), N).and_then(store)


def family(op: Op) -> list[Any]:
    """A pipeline and what can be made of it: they use one memory."""
    prepared = op.prepare()
    again = prepared.launch().prepare()
    graphs = [each.launch().graph_on(agt.create_stream()) for each in (prepared, again)]
    both = agt.overlap(prepared.launch(), again.launch()).prepare()
    turned = agt.overlap(again.launch(), prepared.launch()).graph_on(agt.create_stream())
    return [prepared, again, *graphs, both, turned]


RUNS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, STREAMS - 1)), max_size=12)


def count(runs: list[tuple[int, int]]) -> tuple[float, float]:
    """Return the counter after these runs, and the right number."""
    total, op = counter()
    members = family(op)
    streams = [agt.create_stream() for _ in range(STREAMS)]
    for which, where in runs:
        members[which].launch().async_on(streams[where])
    agt.synchronize()
    return float(agt.d2h(total).sync()[0]), float(sum(2 if which >= 4 else 1 for which, _ in runs))


@settings(max_examples=80)
@given(runs=RUNS, seed=st.none() | st.integers(0, 2**32))
def test_a_pipeline_and_its_family_take_turns(
    device: Device, runs: list[tuple[int, int]], seed: int | None
) -> None:
    hostile = None if seed is None else SimDevice(machine=SimMachine(), adversary=seed)
    with agt.using(hostile or device):
        counted, expected = count(runs)
    assert counted == expected


async def test_awaited_all_at_once_they_follow_each_other(device: Device) -> None:
    total, op = counter()
    members = family(op)
    await asyncio.gather(*(m.launch() for m in members), *(m.launch() for m in members))
    assert agt.d2h(total).sync()[0] == 16


def test_pipelines_in_one_graph_stay_independent_outside_of_it(sim: SimDevice) -> None:
    one, other = (agt.full((N,), number).prepare() for number in (1.0, 2.0))
    both = agt.overlap(one.launch(), other.launch()).graph_on(agt.create_stream())
    left, right = agt.create_stream(), agt.create_stream()
    both.launch().sync_on(left)
    for pipeline, stream in ((one, left), (other, right)):
        pipeline.launch().async_on(stream)
    agt.synchronize()
    with agt.record() as trace:
        for pipeline, stream in ((one, left), (other, right)):
            pipeline.launch().async_on(stream)
    first, second = trace.device_spans
    assert first.id not in second.after
    with agt.record() as trace:
        one.launch().async_on(left)
        other.launch().async_on(right)
        both.launch().async_on(left)
        other.launch().async_on(right)
    first, second, *graph, last = sorted(trace.device_spans, key=lambda span: span.id)
    assert max(first.end, second.end) <= min(span.start for span in graph)
    assert max(span.end for span in graph) <= last.start


def test_an_update_of_one_comes_before_a_run_of_the_other(device: Device) -> None:
    x, y = arrays(0, 0)
    prepared = into(x, y).prepare()
    graph = prepared.launch().graph_on(agt.create_stream())
    for number, captured in zip(range(1, 5), itertools.cycle((prepared, graph)), strict=False):
        graph.update(agt.memcpy(x.borrow(), agt.pin(np.full(N, number, np.float32))))
        captured.launch().async_on(agt.create_stream())
        agt.synchronize()
        assert agt.d2h(y.borrow()).sync()[0] == 2 * number


def test_threads_take_turns(device: Device) -> None:
    total, op = counter()
    members = family(op)[:4]

    def use(captured: Any, stream: agt.types.Stream) -> None:
        for _ in range(10):
            captured.launch().async_on(stream)

    pool = ThreadPoolExecutor(4)
    for run in [pool.submit(use, member, agt.create_stream()) for member in members]:
        run.result(120)
    agt.synchronize()
    assert agt.d2h(total).sync()[0] == 40


def test_updates_from_two_threads_with_what_the_other_shares_do_not_hang(device: Device) -> None:
    """One thread holds what is shared and wants a turn; the other has its turn and wants what is shared."""
    x, y = arrays(1, 0)
    graph = into(x, y).graph_on(agt.create_stream())
    inside, go_on = threading.Event(), threading.Event()

    def first(_: None) -> Op:
        inside.set()
        go_on.wait(timeout=60)
        return graph.launch()

    shared = agt.value(None).and_then(first).shared()
    stream = agt.create_stream()
    holder = threading.Thread(target=shared.async_on, args=(stream,), daemon=True)
    holder.start()
    assert inside.wait(timeout=60)
    other = threading.Thread(target=graph.update, args=(shared,), daemon=True)
    other.start()
    go_on.set()
    for thread in (holder, other):
        thread.join(timeout=60)
        assert not thread.is_alive()
    agt.synchronize()


# ---------------------------------------------------------------------- names
@BOTH
def test_a_launch_that_was_named_is_called_so(sim: SimDevice, capture: Callable[[Op], Any]) -> None:
    (x,) = arrays(1)
    launch = capture(kernel(STRAY)(2**40, x.borrow().partition(32))).launch()
    named = launch.named("the third token")
    for run in (named.sync, lambda: asyncio.run(awaited(launch.named("the third token")))):
        with pytest.raises(DeviceError) as caught:
            run()
        assert "operation 'the third token'" in caught.value.__notes__[0]


def test_a_capture_on_another_thread_leaves_the_order_in_this_one(sim: SimDevice) -> None:
    total, op = counter()
    prepared = op.prepare()

    def capture() -> None:
        with agt.using(sim):
            prepared.launch().graph_on(stream)

    def elsewhere(_: object) -> Op:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(capture).result()
        return prepared.launch()

    stream = agt.create_stream()
    both = agt.overlap(prepared.launch(), agt.value(None).and_then(elsewhere))
    both.prepare().launch().sync(agt.StreamPoolRoundRobin(4, sim))
    assert agt.d2h(total).sync()[0] == 2
