"""A pipeline that stands on a stream: one run at a time, each with its own result, seen or unseen."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import (
    DeviceAssertError,
    NestedSyncError,
    NotReadyError,
    UsageError,
    UseAfterMoveError,
)
from asyncgpu_tutor.ops import Standing
from asyncgpu_tutor.run.future import FutureState

N = 64
HOLD = """
extern "C" __global__ void hold(unsigned int n, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 2000; k++) sum += x[i] * 0.5f;
    if (i < n) y[i] = 2.0f * x[i] + 0.0f * sum;
}"""


def made(
    slot: Any, *, graph: bool, quick: bool = False, source: str = HOLD
) -> tuple[Standing[Any], Any]:
    """Twice what is in the slot, and the stream on which it runs."""
    launch = agt.Kernel(source)(N, agt.h2d(slot), agt.zeros((N,)).partition(64))
    prepared = launch.last().unpartition().to_host().named("twice").prepare()
    stream = agt.create_stream()
    what: Any = prepared.launch().graph_on(stream) if graph else prepared
    what._short |= quick  # straight to the device, as on a GPU where nobody looks
    return Standing(what, stream), stream


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("graph", [False, True])
def test_each_run_reads_what_the_slot_holds_then(device: Device, graph: bool, quick: bool) -> None:
    slot = agt.pinned((N,), np.float32)
    run, _ = made(slot, graph=graph, quick=quick)

    async def main() -> list[float]:
        got: list[float] = []
        for number in range(6):
            slot[:] = number
            run.start()
            if number % 2:
                await run
            else:  # a second await of the same run yields the same
                first = await run
                assert await run is first
            assert run.state is FutureState.COMPLETE
            got.append(float(run.result()[0]))
        return got

    assert asyncio.run(main()) == [2.0 * n for n in range(6)]


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("graph", [False, True])
def test_a_result_is_there_when_the_run_is_over_and_not_before(
    device: Device, graph: bool, quick: bool
) -> None:
    slot = agt.pinned((N,), np.float32)
    slot[:] = 3.0
    run, stream = made(slot, graph=graph, quick=quick)
    assert (run.state, run.poll()) == (FutureState.IDLE, False)
    with pytest.raises(NotReadyError, match="twice"):
        run.result()
    run.start()
    assert run.state is FutureState.EXECUTING
    with pytest.raises(NotReadyError, match="await"):
        run.result()
    with pytest.raises(UsageError, match="once at a time"):
        run.start()
    stream.synchronize()

    async def over() -> Any:
        return await run

    assert asyncio.run(over()).tolist() == [6.0] * N
    assert run.poll()
    assert run.result().tolist() == [6.0] * N


@pytest.mark.parametrize("graph", [False, True])
def test_what_has_ended_is_seen_by_one_look(device: Device, graph: bool) -> None:
    slot = agt.pinned((N,), np.float32)
    run, stream = made(slot, graph=graph, quick=True)
    agt.synchronize()
    before = agt.in_flight()
    for number in (1.0, 2.0, 3.0):
        slot[:] = number
        run.start()
        assert agt.in_flight() == before + 1
        stream.synchronize()
        assert run.poll()
        assert run.result()[0] == 2.0 * number
        assert agt.in_flight() == before


def test_a_recording_shows_each_run(device: Device) -> None:
    slot = agt.pinned((N,), np.float32)
    slot[:] = 1.0
    run, _ = made(slot, graph=False)

    async def main() -> agt.Trace:
        run.start()
        await run
        with agt.record() as trace:
            for _ in range(3):
                run.start()
                await run
        run.start()
        await run
        return trace

    trace = asyncio.run(main())
    assert len(trace.find("hold")) == 3
    assert run.result().tolist() == [2.0] * N


def test_it_cannot_be_started_while_an_operation_is_described(device: Device) -> None:
    slot = agt.pinned((N,), np.float32)
    slot[:] = 1.0
    run, _ = made(slot, graph=False)
    with pytest.raises(NestedSyncError):
        agt.value(1).and_then(lambda x: (run.start(), agt.value(x))[1]).sync()
    assert run.state is FutureState.IDLE


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_that_nobody_waits_for_keeps_what_it_needs(device: Device, quick: bool) -> None:
    slot = agt.pinned((N,), np.float32)
    slot[:] = 1.0
    run, _ = made(slot, graph=True, quick=quick)
    agt.synchronize()
    before = agt.in_flight()
    run.start()
    assert agt.in_flight() == before + 1
    del run, slot
    gc.collect()
    agt.synchronize()
    assert agt.in_flight() == before


@pytest.mark.parametrize("quick", [False, True])
def test_a_run_that_failed_says_so_and_the_next_one_is_fine(sim: SimDevice, quick: bool) -> None:
    slot = agt.pinned((N,), np.float32)
    source = HOLD.replace("float sum", "assert(x[i] >= 0.0f); float sum")
    run, _ = made(slot, graph=True, quick=quick, source=source)

    async def main() -> None:
        slot[:] = -1.0
        run.start()
        with pytest.raises(DeviceAssertError):
            await run
        assert run.state is FutureState.FAILED
        with pytest.raises(DeviceAssertError):
            run.result()
        slot[:] = 4.0
        run.start()
        assert (await run)[0] == 8.0

    asyncio.run(main())


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_start_that_is_refused_leaves_nothing_behind(
    device: Device, awaited: bool, quick: bool
) -> None:
    x, y = agt.ones(N).sync(), agt.zeros(N).sync()
    stream = agt.create_stream()
    prepared = agt.memcpy(y.borrow(), x.borrow()).and_then(lambda _: agt.d2h(y.borrow())).prepare()
    prepared._short |= quick
    run = Standing(prepared, stream)

    async def main() -> None:
        run.start()
        if awaited:
            await run
        else:
            stream.synchronize()
            assert run.poll()

    asyncio.run(main())
    kept = y.share()
    for _ in range(2):
        with pytest.raises(UseAfterMoveError, match="borrowed"):
            run.start()
        assert run.state is FutureState.IDLE
        with pytest.raises(NotReadyError):
            run.result()
    assert agt.d2h(kept).sync()[0] == 1.0


def test_a_start_that_is_interrupted_may_have_begun(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = agt.pinned((N,), np.float32)
    run, stream = made(slot, graph=True, quick=True)
    repeat = run._what._bound_to(stream)
    start = repeat.start

    def interrupted() -> None:
        start()
        raise KeyboardInterrupt

    async def over() -> Any:
        return await run

    with monkeypatch.context() as patch:
        patch.setattr(repeat, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.start()
    assert run.state is FutureState.EXECUTING
    asyncio.run(over())
    slot[:] = 5.0
    run.start()
    assert asyncio.run(over())[0] == 10.0
