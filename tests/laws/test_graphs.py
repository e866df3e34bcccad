"""Law 13: graph-safe or refused. And what is captured is what was asked for, each time that it runs."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import (
    CaptureError,
    DeviceMismatchError,
    HostBufferError,
    NestedSyncError,
    StreamRaceError,
)

from .kernels import scale
from .programs import N

Op = agt.DeviceOp[Any]
BOTH = pytest.mark.parametrize(
    "capture", [lambda op: op.prepare(), lambda op: op.graph_on(agt.create_stream())]
)


def into(x: agt.DeviceArray, y: agt.DeviceArray) -> Op:
    """y = 2 x, without a new array."""
    return agt.memcpy(y.borrow(), x.borrow()).and_then(lambda pair: scale(pair[0], 2.0))


def arrays(*numbers: float) -> list[agt.DeviceArray]:
    return [agt.full((N,), number).sync() for number in numbers]


# ---------------------------------------------------------------------- it is the operation
@BOTH
def test_capturing_runs_nothing(device: Device, capture: Callable[[Op], Any]) -> None:
    x, y = arrays(1, 0)
    with agt.record() as trace:
        captured = capture(into(x, y))
    assert trace.device_spans == []
    assert agt.d2h(y.borrow()).sync()[0] == 0

    captured.launch().sync()
    assert agt.d2h(y.borrow()).sync()[0] == 2


def test_a_graph_costs_the_host_one_call(device: Device) -> None:
    x, y = arrays(1, 0)
    graph = into(x, y).graph_on(agt.create_stream())
    assert graph.nodes == 2
    with agt.record() as trace:
        graph.launch().sync()
    (call,) = [span for span in trace if span.kind == "call"]
    assert call.name == "launch graph memcpy"


def test_each_launch_reads_what_its_host_array_holds_by_then(device: Device) -> None:
    slot, x = agt.pinned((N,)), arrays(0)[0]
    op = agt.memcpy(x.borrow(), slot).and_then(lambda pair: scale(pair[0], 2.0)).to_host()
    prepared = op.prepare()
    for number in (1, 2, 3):
        slot[:] = number
        assert prepared.launch().sync().tolist() == [2 * number] * N


def test_arms_become_branches(sim: SimDevice) -> None:
    pairs = [arrays(1, 0) for _ in range(3)]
    graph = agt.overlap(*(into(*pair) for pair in pairs)).graph_on(agt.create_stream())
    with agt.record() as trace, agt.using(policy=agt.SingleStream()):
        graph.launch().sync()
    assert len({span.stream for span in trace.find("scale")}) == 3
    assert [agt.d2h(y.borrow()).sync()[0] for _, y in pairs] == [2, 2, 2]


@pytest.mark.parametrize("count", [2, 8])
def test_branches_are_handed_over_one_by_one_within_the_call(sim: SimDevice, count: int) -> None:
    graphs: list[agt.CudaGraph[Any]] = []
    for arms in (1, count):
        pairs = [arrays(1, 0) for _ in range(arms)]
        op = agt.overlap(*(into(*pair) for pair in pairs))
        graphs.append(op.graph_on(agt.create_stream()))
    sim.synchronize()
    with agt.record() as trace:
        for graph in graphs:
            graph.launch().sync()
    alone, branched = (span for span in trace if span.kind == "call")
    step = sim.spec.graph_branch_us
    assert branched.duration - alone.duration == pytest.approx((count - 1) * step)
    begins = sorted(
        s.start for s in trace.device_spans if s.kind == "d2d" and branched.id in s.after
    )
    assert [b - a for a, b in itertools.pairwise(begins)] == pytest.approx([step] * (count - 1))
    (first,) = (s.start for s in trace.device_spans if s.kind == "d2d" and alone.id in s.after)
    assert begins[0] - branched.start == pytest.approx(first - alone.start)


# ---------------------------------------------------------------------- as an operation
def test_a_launch_composes_as_any_operation_does(device: Device) -> None:
    x, y, z = arrays(1, 0, 0)
    graph = into(x, y).graph_on(agt.create_stream())
    op = graph.launch().and_then(lambda y: agt.memcpy(z.borrow(), y)).first().to_host()

    async def main() -> list[Any]:
        shared = graph.launch().shared()
        task = agt.spawn(agt.zip(shared, shared))
        return [await op, await task, *await asyncio.gather(graph.launch(), op)]

    first, _, _, second = asyncio.run(main())
    assert first[0] == second[0] == 2


def test_the_output_is_taken_once(device: Device) -> None:
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())
    y = graph.take_output()
    graph.launch().sync()
    assert agt.d2h(y).sync()[0] == 2  # the array is gone now, and the graph still has its memory
    graph.launch().sync()
    with pytest.raises(CaptureError, match="taken already"):
        graph.take_output()


def test_a_launch_from_a_thread_that_has_done_nothing_yet(device: Device) -> None:
    prepared = agt.full((N,), 3.0).to_host().prepare()
    launch = prepared.launch()
    stream = agt.create_stream()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(launch.sync_on, stream).result()[0] == 3


# ---------------------------------------------------------------------- alive until done
def test_a_graph_keeps_what_it_points_at(device: Device) -> None:
    host = agt.pin(np.ones(N, np.float32))
    kept = weakref.ref(host)
    x = arrays(0)[0]
    op = agt.memcpy(x, host).and_then(lambda pair: agt.d2h(pair[0], out=agt_out))
    agt_out = agt.pinned((N,))
    graph = op.graph_on(agt.create_stream())
    del host, x, op
    gc.collect()
    assert kept() is not None
    assert graph.launch().sync()[0] == 1

    launched = graph.launch()
    del graph
    gc.collect()
    assert launched.sync()[0] == 1
    del launched
    gc.collect()
    assert kept() is None


# ---------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("h2d", lambda: agt.h2d(agt.pin(np.zeros(3, np.float32)))),
        ("zeros", lambda: agt.zeros((3,))),
        ("ones", lambda: agt.ones((3,))),
        ("full", lambda: agt.full((3,), 2.0)),
        ("arange", lambda: agt.arange(3)),
        ("randn", lambda: agt.randn((3,))),
        ("dup", lambda: agt.dup(agt.zeros((3,)).sync())),
        ("d2h", lambda: agt.d2h(agt.zeros((3,)).sync())),
    ],
)
def test_allocating_is_refused_by_name(device: Device, name: str, make: Callable[[], Op]) -> None:
    stream = agt.create_stream()
    with pytest.raises(CaptureError, match=name) as caught:
        make().graph_on(stream)
    assert "agt.d2h(x, out=host)" in str(caught.value)
    # The refused capture has left nothing behind: the stream takes work, and another capture.
    x, y = arrays(1, 0)
    into(x, y).graph_on(stream).launch().sync_on(stream)
    assert agt.d2h(y.borrow()).sync_on(stream)[0] == 2


@BOTH
def test_pageable_memory_is_refused(device: Device, capture: Callable[[Op], Any]) -> None:
    x = arrays(0)[0]
    with pytest.raises(CaptureError, match=r"pageable.*agt\.pin"):
        capture(agt.memcpy(x.borrow(), np.zeros(N, np.float32)))


def test_nothing_waits_inside_of_a_capture(device: Device) -> None:
    x, y = arrays(1, 0)

    def waits(_: Any) -> Op:
        return agt.value(agt.zeros((3,)).sync())

    def waits_for_the_stream(context: agt.types.ExecutionContext, _: Any) -> Op:
        context.stream.synchronize()
        return agt.value(None)

    with pytest.raises(NestedSyncError, match="sync"):
        into(x, y).and_then(waits).graph_on(agt.create_stream())
    with pytest.raises(NestedSyncError, match="synchronize"):
        into(x, y).and_then_with_context(waits_for_the_stream).prepare()
    with agt.CudaGraph.scope(agt.create_stream()) as scope:
        scope.record(into(x, y))
        with pytest.raises(NestedSyncError, match="capture of graph: nothing runs in a capture"):
            agt.zeros((3,)).sync()


def test_there_is_nothing_to_wait_for_after_a_capture_either(device: Device) -> None:
    kept: list[Any] = []

    def keeps(context: agt.types.ExecutionContext) -> Op:
        kept.extend((context.stream, context.stream.record()))
        return agt.value(None)

    agt.with_context(keeps).prepare()
    for name, one in zip(("stream", "event"), kept, strict=True):
        assert not one.done
        with pytest.raises(CaptureError, match=rf"{name}\.synchronize\(\) on a stream"):
            one.synchronize()


def test_a_stream_that_is_not_the_captures_is_refused(device: Device) -> None:
    other = agt.create_stream()

    def elsewhere(context: agt.types.ExecutionContext) -> Op:
        context.on(other).empty((3,))
        return agt.value(None)

    with pytest.raises(CaptureError, match="overlap"):
        agt.with_context(elsewhere).prepare()


def test_an_event_of_another_capture_is_refused(device: Device) -> None:
    events: list[Any] = []

    def records(context: agt.types.ExecutionContext) -> Op:
        events.append(context.stream.record())
        return agt.value(None)

    def waits(context: agt.types.ExecutionContext) -> Op:
        context.stream.wait_event(events[0])
        return agt.value(None)

    agt.with_context(records).named("the one").prepare()
    with pytest.raises(CaptureError, match=r"'the other' cannot wait for an event of .*'the one'"):
        agt.with_context(waits).named("the other").prepare()


def test_a_result_from_inside_is_none_outside(device: Device) -> None:
    x, y = arrays(1, 0)
    shared = into(x, y).shared()
    shared.graph_on(agt.create_stream())
    with pytest.raises(CaptureError, match="ran inside of a capture"):
        shared.sync()


def test_a_result_from_outside_is_there_before_the_first_launch(device: Device) -> None:
    source = agt.full((N,), 5.0).shared()
    source.async_on(agt.create_stream())
    y = arrays(0)[0]
    graph = source.and_then(lambda x: agt.memcpy(y.borrow(), x)).graph_on(agt.create_stream())
    graph.launch().sync_on(agt.create_stream())
    assert agt.d2h(y.borrow()).sync()[0] == 5


def test_a_graph_is_not_captured_again(device: Device) -> None:
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())
    with pytest.raises(CaptureError, match="CUDA graph already"):
        graph.launch().graph_on(agt.create_stream())


def test_another_device_is_refused(device: Device) -> None:
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())
    prepared = into(*arrays(1, 0)).prepare()
    with agt.using("sim:1"):
        for captured in (graph, prepared):
            with pytest.raises(DeviceMismatchError, match="once for each device"):
                captured.launch().sync()


# ---------------------------------------------------------------------- scopes
def test_a_scope_captures_piece_by_piece(device: Device) -> None:
    x, y, z = arrays(1, 0, 0)
    with agt.CudaGraph.scope(agt.create_stream(), "two steps") as scope:
        scope.record(into(x, y))
        scope.record(into(y, z))
    graph = scope.graph
    assert (graph.label, graph.nodes, graph.kernels) == ("two steps", 4, ["scale", "scale"])
    first, second = graph.launch().sync()
    assert [agt.d2h(a).sync()[0] for a in (first, second)] == [2, 4]


def test_a_scope_has_its_graph_at_its_end(device: Device) -> None:
    with agt.CudaGraph.scope(agt.create_stream()) as scope:
        with pytest.raises(CaptureError, match="not captured yet"):
            scope.graph.take_output()
        scope.record(agt.value(1))
        assert scope.graph.nodes == 0
    assert scope.graph.launch().sync() == scope.graph.take_output() == (1,)


# ---------------------------------------------------------------------- hazards
def test_a_slot_that_changes_in_flight_is_found(sim: SimDevice) -> None:
    slot, x = agt.pin(np.zeros(N, np.float32)), arrays(0)[0]
    op = agt.memcpy(x.borrow(), slot)
    for captured in (op.prepare(), agt.memcpy(x.borrow(), slot).graph_on(agt.create_stream())):
        captured.launch().async_on(agt.create_stream())
        slot[:] += 1
        with pytest.raises(HostBufferError):
            agt.synchronize()


def test_a_race_inside_of_a_graph_is_found(sim: SimDevice) -> None:
    x, y = arrays(1, 0)
    graph = agt.overlap(into(x, y), into(x, y)).graph_on(agt.create_stream())
    with pytest.raises(StreamRaceError, match="race on array"):
        graph.launch().sync()
