"""Uses of graphs and prepared pipelines that nobody thought of when they were written."""

from __future__ import annotations

import asyncio
import copy
import gc
import re
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import (
    ArrayDTypeError,
    ArrayShapeError,
    CaptureError,
    DeviceError,
    NotAnOperationError,
    UsageError,
    UseAfterMoveError,
)

from .kernels import scale
from .test_graphs import BOTH, N, Op, arrays, into


# ---------------------------------------------------------------------- what people do next
def test_what_a_graph_refuses_can_be_prepared(device: Device) -> None:
    op = agt.zip(agt.zeros((N,)), agt.full((N,), 2.0)).last().to_host()
    shared = agt.full((N,), 3.0).shared()
    for refused in (op, shared):
        with pytest.raises(CaptureError, match="prepare"):
            refused.graph_on(agt.create_stream())
    assert op.prepare().launch().graph_on(agt.create_stream()).launch().sync()[0] == 2
    assert shared.to_host().sync()[0] == 3


def test_what_is_lent_by_nobody_can_be_spawned(device: Device) -> None:
    prepared = agt.full((N,), 3.0).prepare()

    async def main() -> list[Any]:
        array = await prepared.launch()
        assert array.mode == "borrowed"
        return [
            await agt.spawn(prepared.launch().to_host()),
            await agt.spawn(agt.d2h(array.borrow())),
            await agt.spawn(agt.d2h(array)),
        ]

    assert [host[0] for host in asyncio.run(main())] == [3, 3, 3]


def test_a_host_array_that_would_be_copied_first_is_refused(device: Device) -> None:
    table, x = agt.pinned((N, 2)), arrays(0)[0]
    with pytest.raises(CaptureError, match="not C-contiguous"):
        agt.memcpy(x.borrow(), table[:, 0]).prepare()


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (lambda: [0.0] * N, ArrayDTypeError),
        (lambda: agt.pinned((N,), np.float64), ArrayDTypeError),
        (lambda: agt.pinned((3,)), ArrayShapeError),
        (lambda: agt.pinned((N, 2))[:, 0], UsageError),
        (lambda: np.broadcast_to(np.float32(0), (N,)), UsageError),
    ],
)
def test_a_wrong_out_moves_nothing(
    device: Device, out: Callable[[], Any], error: type[Exception]
) -> None:
    x = arrays(1)[0]
    with pytest.raises(error):
        agt.d2h(x, out=out())
    assert agt.d2h(x).sync()[0] == 1


def test_a_branch_that_comes_after_nothing_is_refused(device: Device) -> None:
    x, y = arrays(1, 0)

    def stray(context: agt.types.ExecutionContext) -> Op:
        branch = context.fork()
        branch.copy(y, x)
        context.stream.wait_event(branch.stream.record())
        return agt.value(None)

    with pytest.raises(CaptureError, match="starts by itself"):
        agt.with_context(stray).prepare()


# ---------------------------------------------------------------------- runs


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


def test_a_failed_run_names_its_kernels(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = agt.create_stream()
    graph = into(*arrays(1, 0)).graph_on(agt.create_stream())

    def fault(*_: object) -> None:
        raise DeviceError("an illegal memory access")

    with monkeypatch.context() as patch:
        patch.setattr(stream, "record", fault)
        with pytest.raises(DeviceError, match=r"memcpy.*illegal.*scale"):
            graph.launch().sync_on(stream)


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


def test_other_libraries_are_told_where_a_graph_ran(device: Device) -> None:
    x, y = arrays(1, 0)
    source = y._memory.stream  # what __cuda_array_interface__ tells on a GPU
    graph = into(x, y).graph_on(agt.create_stream())
    assert y._memory.stream is source
    stream = agt.create_stream()
    graph.launch().async_on(stream)
    assert y._memory.stream is stream


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
            with pytest.raises(UseAfterMoveError, match=r"'full' borrowed.*moved by share\(\)"):
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
def test_taken_for_an_operation_it_names_launch(
    device: Device, capture: Callable[[Op], Any]
) -> None:
    captured = capture(into(*arrays(1, 0)))

    async def wait() -> None:
        await captured

    for name in ("sync", "to_host", "async_on", "and_then", "graph_on", "schedule"):
        with pytest.raises(AttributeError, match=rf"\.launch\(\)\.{name}\("):
            getattr(captured, name)
    with pytest.raises(AttributeError, match=r"object has no attribute 'synk'$"):
        captured.synk  # noqa: B018 - asking is the point
    with pytest.raises(NotAnOperationError, match=r"launch\(\) makes one.*await that"):
        asyncio.run(wait())
    for misuse in (partial(agt.zip, captured), agt.value(1).and_then(lambda _: captured).sync):
        with pytest.raises(NotAnOperationError, match=r"its launch\(\) makes one"):
            misuse()
    with pytest.raises(NotAnOperationError, match="call it"):
        agt.zip(captured.launch)
    assert copy.copy(captured).label == captured.label
