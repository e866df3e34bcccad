"""Law 13: graph-safe or refused. And what is captured is what was asked for, each time that it runs."""

import asyncio
import copy
import gc
import itertools
import re
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import CaptureError, NestedSyncError, NotAnOperationError

from .kernels import scale
from .programs import N
from .test_waiting import awaited

Op = agt.DeviceOp[Any]
Capture = Callable[[Op], Any]
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
def test_capturing_runs_nothing(device: Device, capture: Capture) -> None:
    x, y = arrays(1, 0)
    with agt.record() as trace:
        captured = capture(into(x, y))
    assert trace.device_spans == []
    assert agt.d2h(y.borrow()).sync()[0] == 0
    captured.launch().sync()
    assert agt.d2h(y.borrow()).sync()[0] == 2


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
    alone, forked = (span for span in trace if span.kind == "call")
    step = sim.spec.graph_branch_us
    assert forked.duration - alone.duration == pytest.approx((count - 1) * step)
    begins = sorted(s.start for s in trace.device_spans if s.kind == "d2d" and forked.id in s.after)
    assert [b - a for a, b in itertools.pairwise(begins)] == pytest.approx([step] * (count - 1))
    (first,) = (s.start for s in trace.device_spans if s.kind == "d2d" and alone.id in s.after)
    assert begins[0] - forked.start == pytest.approx(first - alone.start)


# ---------------------------------------------------------------------- as an operation
def test_the_output_is_taken_once(device: Device) -> None:
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())
    y = graph.take_output()
    graph.launch().sync()
    assert agt.d2h(y).sync()[0] == 2  # the array is gone now, and the graph still has its memory
    graph.launch().sync()
    with pytest.raises(CaptureError, match="taken already"):
        graph.take_output()


def test_a_launch_from_a_thread_that_has_done_nothing_yet(device: Device) -> None:
    launch = agt.full((N,), 3.0).to_host().prepare().launch()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(launch.sync_on, agt.create_stream()).result()[0] == 3


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


@pytest.mark.parametrize("way", ["sync_on", "async_on"])
def test_a_run_that_is_interrupted_lives_until_it_is_done(device: Device, way: str) -> None:
    stream = agt.create_stream()
    graph: Any = into(*arrays(1, 0)).graph_on(agt.create_stream())
    there = weakref.ref(graph)

    def interrupted(_: object) -> object:
        raise KeyboardInterrupt

    run = getattr(graph.launch().map(interrupted), way)
    with pytest.raises(KeyboardInterrupt):
        run(stream)
    del graph, run
    gc.collect()
    assert there() is not None
    agt.synchronize()
    gc.collect()
    assert there() is None


@pytest.mark.parametrize(
    "make", [lambda op: op, lambda op: op.launch().graph_on(agt.create_stream())]
)
def test_memory_goes_without_the_collector(sim: SimDevice, make: Callable[[Any], Any]) -> None:
    shared = agt.zeros((N,)).to_host().shared()
    op = agt.overlap(agt.zip(shared, shared), agt.ones((N,)))
    gc.collect()
    before = sim.heap.live
    gc.disable()
    try:
        captured = make(op.prepare())
        captured.launch().sync()
        assert sim.heap.live == before + 2
        del captured, op, shared
        assert sim.heap.live == before
    finally:
        gc.enable()


# ---------------------------------------------------------------------- refused
ALLOCATING: dict[str, Callable[[], Op]] = {
    "h2d": lambda: agt.h2d(agt.pin(np.zeros(3, np.float32))), "zeros": lambda: agt.zeros((3,)),
    "empty": lambda: agt.empty((3,)),
    "ones": lambda: agt.ones((3,)), "full": lambda: agt.full((3,), 2.0), "arange": lambda: agt.arange(3),
    "randn": lambda: agt.randn((3,)), "dup": lambda: agt.dup(agt.zeros((3,)).sync()),
    "d2h": lambda: agt.d2h(agt.zeros((3,)).sync()),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOCATING)
def test_allocating_is_refused_by_name(device: Device, name: str) -> None:
    stream = agt.create_stream()
    with pytest.raises(CaptureError, match=name) as caught:
        ALLOCATING[name]().graph_on(stream)
    assert "agt.d2h(x, out=host)" in str(caught.value)
    assert name == "d2h" or "prepare" in str(caught.value)
    # The refused capture has left nothing behind: the stream takes work, and another capture.
    x, y = arrays(1, 0)
    into(x, y).graph_on(stream).launch().sync_on(stream)
    assert agt.d2h(y.borrow()).sync_on(stream)[0] == 2


@BOTH
def test_memory_that_would_be_copied_first_is_refused(device: Device, capture: Capture) -> None:
    x, pageable, strided = arrays(0)[0], np.zeros(N, np.float32), agt.pinned((N, 2))[:, 0]
    for host, says in ((pageable, r"pageable.*agt\.pin"), (strided, "not C-contiguous")):
        with pytest.raises(CaptureError, match=says):
            capture(agt.memcpy(x.borrow(), host))


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


@pytest.mark.parametrize("fails", [False, True])
def test_when_a_capture_is_over_nothing_is_waited_for_or_added(device: Device, fails: bool) -> None:
    x, y = arrays(1, 0)
    kept: list[Any] = []

    def keeps(context: agt.types.ExecutionContext) -> Op:
        kept.extend((context, context.stream, context.stream.record()))
        return agt.value(1 / 0 if fails else None)

    with pytest.raises(ZeroDivisionError) if fails else nullcontext():
        agt.with_context(keeps).prepare()
    context, *others = kept
    with pytest.raises(CaptureError, match="is over"):
        context.copy(y, x)
    for name, one in zip(("stream", "event"), others, strict=True):
        assert not one.done
        with pytest.raises(CaptureError, match=rf"{name}\.synchronize\(\) on a stream"):
            one.synchronize()


def test_streams_and_events_of_others_are_refused(device: Device) -> None:
    other, events = agt.create_stream(), list[Any]()

    def does(act: Callable[[agt.types.ExecutionContext], object]) -> Op:
        return agt.with_context(lambda context: agt.value(act(context) and None))

    with pytest.raises(CaptureError, match="overlap"):
        does(lambda context: context.on(other).empty((3,))).prepare()
    does(lambda context: events.append(context.stream.record())).named("the one").prepare()
    waits = does(lambda context: context.stream.wait_event(events[0])).named("the other")
    with pytest.raises(CaptureError, match=r"'the other' cannot wait for an event of .*'the one'"):
        waits.prepare()


def test_a_result_from_inside_is_none_outside(device: Device) -> None:
    x, y = arrays(1, 0)
    shared = into(x, y).shared()
    shared.graph_on(agt.create_stream())
    with pytest.raises(CaptureError, match="ran inside a capture"):
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
            with pytest.raises(agt.errors.DeviceMismatchError, match="once for each device"):
                captured.launch().sync()


# ---------------------------------------------------------------------- scopes
def test_a_scope_captures_piece_by_piece(device: Device) -> None:
    x, y, z = arrays(1, 0, 0)
    with agt.CudaGraph.scope(agt.create_stream(), "two steps") as scope:
        with pytest.raises(CaptureError, match="not captured yet"):
            scope.graph.take_output()
        scope.record(into(x, y))
        assert scope.graph.nodes == 0
        scope.record(into(y, z))
    graph = scope.graph
    assert (graph.label, graph.nodes, graph.kernels) == ("two steps", 4, ["scale", "scale"])
    first, second = graph.launch().sync()
    assert [agt.d2h(a).sync()[0] for a in (first, second)] == [2, 4]


@pytest.mark.parametrize(
    ("forks", "joins", "says"),
    [(True, False, "nothing waits for"), (False, True, "starts by itself"), (True, True, "")],
)
def test_a_branch_is_in_it_at_its_ends(device: Device, forks: bool, joins: bool, says: str) -> None:
    x, y = arrays(1, 0)

    def enqueue(context: agt.types.ExecutionContext) -> Op:
        branch = context.fork()
        if forks:
            branch.stream.wait_event(context.stream.record())
        branch.copy(y, x)
        if joins:
            context.stream.wait_event(branch.stream.record())
        return agt.value(None)

    with pytest.raises(CaptureError, match=says) if says else nullcontext():
        agt.with_context(enqueue).prepare().launch().sync()
    with pytest.raises(CaptureError, match=says) if says else nullcontext():
        with agt.CudaGraph.scope(agt.create_stream()) as scope:
            scope.record(agt.with_context(enqueue))
        scope.graph.launch().sync()
    if says:
        with pytest.raises(CaptureError, match="not captured yet"):
            scope.graph.take_output()
    with pytest.raises(CaptureError, match="is over"):
        scope.record(into(x, y))


# ---------------------------------------------------------------------- in use
async def test_what_is_lent_by_nobody_can_be_spawned(device: Device) -> None:
    prepared = agt.full((N,), 3.0).prepare()
    array = await prepared.launch()
    assert array.mode == "borrowed"
    for op in (prepared.launch().to_host(), agt.d2h(array.borrow()), agt.d2h(array)):
        assert (await agt.spawn(op))[0] == 3


def test_a_failed_run_names_its_kernels(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = agt.create_stream()
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())

    def fault(*_: object) -> None:
        raise agt.DeviceError("an illegal memory access")

    with monkeypatch.context() as patch:
        patch.setattr(stream, "record", fault)
        with pytest.raises(agt.DeviceError, match=r"memcpy.*illegal.*scale"):
            graph.launch().sync_on(stream)


def test_other_libraries_are_told_where_a_graph_ran(device: Device) -> None:
    x, y = arrays(1, 0)
    source = y._memory.stream  # what __cuda_array_interface__ tells on a GPU
    graph = into(x, y).graph_on(agt.create_stream())
    assert y._memory.stream is source
    stream = agt.create_stream()
    graph.launch().async_on(stream)
    assert y._memory.stream is stream


def test_a_result_knows_the_stream_of_its_last_use_whoever_that_was(device: Device) -> None:
    one, other = agt.create_stream(), agt.create_stream()
    x, y = arrays(1, 0)
    launch, again = into(x, y).graph_on(one).launch(), into(x, y)
    behind = again.and_then(lambda _: launch)
    turns = [(one, launch), (one, launch), (other, again), (one, launch), (other, launch)]
    for stream, run in [*turns, (one, again), (other, launch), (other, behind), (other, behind)]:
        one.wait_event(other.record())
        other.wait_event(one.record())
        run.async_on(stream)
        assert y._memory.stream is stream
    agt.synchronize()
    agt.memcpy(y.borrow(), x.borrow()).async_on(one)
    assert (x._memory.stream, y._memory.stream) == (one, one)


def test_a_slot_may_be_read_and_written_in_turn(device: Device) -> None:
    slot, x = agt.pin(np.ones(N, np.float32)), arrays(0)[0]
    op = agt.memcpy(x.borrow(), slot).and_then(lambda pair: scale(pair[0], 2.0))
    double = op.and_then(lambda y: agt.d2h(y, out=slot))
    stream = agt.create_stream()
    for run in (double, double.prepare().launch(), double.graph_on(stream).launch()):
        slot[:] = 1
        for _ in range(3):
            run.async_on(stream)
        stream.synchronize()
        assert slot.tolist() == [8] * N


def test_nothing_is_copied_in_a_capture_as_well_as_outside(sim: SimDevice) -> None:
    nothing, host = agt.zeros((0,)).sync(), np.zeros(0, np.float32)
    op = agt.memcpy(nothing.borrow(), host).and_then(lambda pair: agt.d2h(pair[0]))
    assert op.prepare().launch().sync().shape == op.sync().shape == (0,)


# ---------------------------------------------------------------------- borrowed
def test_what_is_borrowed_has_to_stay_its_owners(device: Device) -> None:
    x, y = arrays(1, 0)
    prepared = into(x, y).prepare()
    graphs = [op.graph_on(agt.create_stream()) for op in (into(x, y), prepared.launch())]
    stream = agt.create_stream()
    for captured in (prepared, *graphs):
        captured.launch().sync()
    kept = y.share()
    for captured in (prepared, *graphs):
        launch = captured.launch()
        for run in (launch.sync, partial(launch.async_on, stream)):
            with pytest.raises(
                agt.errors.UseAfterMoveError, match=r"'full' borrowed.*moved by share\(\)"
            ):
                run()
    assert agt.d2h(kept).sync()[0] == 2


def test_what_the_pipeline_itself_gives_away_it_may_have_borrowed_before(device: Device) -> None:
    x, y, host = *arrays(1, 0), agt.pinned((N,))
    op = into(x, y).and_then(lambda _: agt.d2h(y, out=host))
    prepared = op.prepare()
    for _ in range(2):
        assert prepared.launch().sync()[0] == 2


# ---------------------------------------------------------------------- only what is needed
def calls(op: Op) -> int:
    """How many of them a run makes, as a prepared pipeline says of itself."""
    found = re.search(r"(\d+) calls", repr(op.prepare()))
    assert found is not None
    return int(found[1])


def test_a_run_makes_no_calls_that_order_nothing(device: Device) -> None:
    x, y = arrays(1, 0)

    def twice() -> Op:
        shared = into(x, y).shared()
        return agt.zip(shared, shared)

    assert calls(into(x, y)) == calls(twice()) == 2
    # A branch with work costs four more calls, there and back. A branch without work costs none.
    assert calls(agt.overlap(into(x, y))) == 2 + 4
    assert calls(agt.overlap(into(x, y), agt.value(1))) == 2 + 4
    assert calls(agt.overlap(agt.value(1), agt.overlap(agt.value(2)))) == 0


def test_a_branch_that_has_waited_and_does_nothing_need_not_be_joined(device: Device) -> None:
    x, y = arrays(1, 0)

    def idle(context: agt.types.ExecutionContext) -> Op:
        branch = context.fork()
        branch.stream.wait_event(context.stream.record())
        branch.stream.record()
        return into(x, y)

    agt.with_context(idle).prepare().launch().sync()
    agt.with_context(idle).graph_on(agt.create_stream()).launch().sync()
    assert agt.d2h(y.borrow()).sync()[0] == 2


# ---------------------------------------------------------------------- taken for an operation
@BOTH
def test_taken_for_an_operation_it_names_launch(device: Device, capture: Capture) -> None:
    captured = capture(into(*arrays(1, 0)))
    for name in ("sync", "to_host", "async_on", "and_then", "graph_on", "schedule"):
        with pytest.raises(AttributeError, match=rf"\.launch\(\)\.{name}\("):
            getattr(captured, name)
    with pytest.raises(AttributeError, match=r"object has no attribute 'synk'$"):
        captured.synk  # noqa: B018 - asking is the point
    with pytest.raises(NotAnOperationError, match=r"launch\(\) makes one.*await that"):
        asyncio.run(awaited(captured))
    for misuse in (partial(agt.zip, captured), agt.value(1).and_then(lambda _: captured).sync):
        with pytest.raises(NotAnOperationError, match=r"its launch\(\) makes one"):
            misuse()
    with pytest.raises(NotAnOperationError, match="call it"):
        agt.zip(captured.launch)
    assert copy.copy(captured).label == captured.label


# ---------------------------------------------------------------------- hazards
def test_a_slot_that_changes_in_flight_is_found(sim: SimDevice) -> None:
    slot, x = agt.pin(np.zeros(N, np.float32)), arrays(0)[0]
    op = agt.memcpy(x.borrow(), slot)
    for captured in (op.prepare(), agt.memcpy(x.borrow(), slot).graph_on(agt.create_stream())):
        captured.launch().async_on(agt.create_stream())
        slot[:] += 1
        with pytest.raises(agt.errors.HostBufferError):
            agt.synchronize()


def test_a_race_inside_of_a_graph_is_found(sim: SimDevice) -> None:
    x, y = arrays(1, 0)
    graph = agt.overlap(into(x, y), into(x, y)).graph_on(agt.create_stream())
    with pytest.raises(agt.errors.StreamRaceError, match="race on array"):
        graph.launch().sync()
