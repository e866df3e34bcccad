"""Laws 7, 8 and 10: alive until done; await never blocks the loop; no nesting."""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import NestedSyncError

from .kernels import scale
from .loops import Left, any_loop, nursery, together, turn


def slow(n: int = 256) -> agt.DeviceOp[agt.DeviceArray]:
    """An operation whose kernel takes far longer than its submission."""
    out = agt.zeros((n,)).partition(64)
    return agt.matvec_naive(n, n, agt.ones((n, n)), agt.ones((n,)), out).last().unpartition()


async def awaited(op: Any) -> Any:
    """An operation or a future, as a coroutine."""
    return await op


# ---------------------------------------------------------------------- alive until done
def test_everything_that_an_operation_touches_outlives_its_callers(device: Device) -> None:
    stream = agt.create_stream()
    host = memory = agt.pin(np.arange(1000, dtype=np.float32))
    while isinstance(memory.base, np.ndarray):  # of which it may be a view
        memory = memory.base
    kept = weakref.ref(memory)
    result = agt.h2d(host).and_then(lambda a: scale(a, 2.0)).to_host().async_on(stream)
    del host, memory
    gc.collect()
    assert kept() is not None
    stream.synchronize()
    assert np.asarray(result).tolist() == (2 * np.arange(1000)).tolist()


def test_device_memory_lives_until_the_completion_event(sim: SimDevice) -> None:
    slow().async_on(agt.create_stream())  # the handle is dropped at once
    gc.collect()
    assert sim.heap.live > 0
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0


@any_loop
@given(cancel_after=st.integers(0, 40))
async def test_cancelling_stops_the_waiting_and_no_work(device: Device, cancel_after: int) -> None:
    with agt.record() as trace:
        waiting = agt.in_flight()
        async with nursery() as group:
            task = agt.spawn(slow(), nursery=group)
            for _ in range(cancel_after):
                await turn()
            task.cancel()
        assert task.done()
        assert (await agt.ones((3,)).to_host()).tolist() == [1.0] * 3  # the device still works
        while agt.in_flight() > waiting:  # what was cancelled completes, and lets go
            await agt.sleep(100.0)
    launched = len(trace.find("launch matvec_naive"))
    assert len(trace.find("matvec_naive")) == launched


# ---------------------------------------------------------------------- the loop stays free
@any_loop
async def test_other_tasks_run_while_one_awaits(sim: SimDevice) -> None:
    ticks = 0

    async def heartbeat() -> None:
        nonlocal ticks
        while True:
            await agt.sleep(2.0)
            ticks += 1

    async with Left(heartbeat):
        await turn()
        await slow()
        awaited = ticks
        slow().sync()
        assert ticks == awaited
    assert awaited >= 3


@any_loop
@pytest.mark.parametrize("step", [lambda: None, lambda: agt.work(1.0)])
async def test_a_busy_task_holds_up_no_device(device: Device, step: Callable[[], object]) -> None:
    async def busy() -> None:
        while True:
            step()
            await turn()

    async with Left(busy):
        await slow()


@any_loop
async def test_time_does_not_go_to_the_end_of_a_sleep_that_was_cancelled(sim: SimDevice) -> None:
    async with Left(partial(agt.sleep, 1e9)):
        await turn()
    await anyio.to_thread.run_sync(int)  # the loop has nothing to do
    with agt.record():  # at its end, all that there is to come has come
        await agt.ones((4,))
    assert sim.now() < 1000.0


async def test_a_failed_future_forgets_who_awaited_it(device: Device) -> None:
    def fail(_: int) -> agt.DeviceOp[int]:
        raise LookupError("no such thing")

    future = agt.value(1).and_then(fail).into_future()
    told: list[int] = []
    for _ in range(3):
        with pytest.raises(LookupError, match="no such thing") as raised:
            await future
        told.append(len(raised.traceback))
        with pytest.raises(LookupError):
            future.result()
    assert told[0] >= told[1] == told[2]


@any_loop
async def test_a_future_goes_through_its_states_once(device: Device) -> None:
    n = 64 if device.simulated else 8192  # a GPU is to be at it for some turns of a busy loop
    with agt.record() as trace:
        future = slow(n).into_future()
        assert future.state is agt.FutureState.IDLE
    assert trace.device_spans == []
    async with Left(partial(awaited, future)):
        await turn()
        await turn()
        assert future.state is agt.FutureState.EXECUTING
    first, second = await together(future, future)
    assert first is second
    assert future.state is agt.FutureState.COMPLETE
    assert await future is first


@any_loop
async def test_the_stream_is_chosen_when_it_is_scheduled(device: Device) -> None:
    policy = agt.StreamPoolRoundRobin(3, device)
    futures = [slow(64).schedule(policy) for _ in range(4)]
    assert len({id(f.stream) for f in futures[:3]}) == 3
    assert futures[3].stream is futures[0].stream
    with agt.record() as trace:
        for future in reversed(futures):
            await future
    order = [span.stream for span in trace.find("matvec_naive")]
    assert order == [f.stream.number for f in reversed(futures)]


def test_awaiting_outside_of_a_loop_says_so(device: Device) -> None:
    with pytest.raises(agt.UsageError, match="needs a running event loop"):
        next(agt.value(1).__await__())
    with pytest.raises(agt.UsageError, match=r"spawn.. needs a running event loop"):
        agt.spawn(agt.value(1))


# ---------------------------------------------------------------------- no nesting
WAITS: list[Callable[[], object]] = [
    lambda: agt.value(1).sync(), lambda: agt.value(1).sync_on(agt.create_stream()),
    lambda: agt.value(1).async_on(agt.create_stream()), agt.synchronize,
    lambda: agt.create_stream().synchronize(), lambda: agt.create_stream().record().synchronize(),
]  # fmt: skip


@pytest.mark.parametrize("wait", WAITS)
def test_no_waiting_inside_of_a_submission(device: Device, wait: Callable[[], object]) -> None:
    def nested(_: object) -> agt.DeviceOp[int]:
        wait()
        return agt.value(1)

    chained = agt.value(0).and_then(nested)
    mapped, within = agt.value(0).map(nested), agt.with_context(nested)
    for op in (chained, mapped, within, agt.overlap(chained), chained.shared()):
        with pytest.raises(NestedSyncError, match="while operation 'outer' is being submitted"):
            op.named("outer").sync()
    assert agt.value(3).sync() == 3


SPIN = """__global__ void spin(volatile int* flag, int* out) {
    for (int i = 0; i < 1000000 && !*flag; i++) __nanosleep(1000);
    *out = *flag;
}"""


@any_loop
async def test_an_await_ends_with_its_work(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(device), "patience_us", 0.0)  # the device watches from the start
    spin, one = agt.Kernel(SPIN), agt.SingleStream()
    flags = [agt.pin(np.zeros(1, np.int32)) for _ in range(2)]

    def until(flag: Any) -> agt.DeviceOp[Any]:
        seen = agt.zeros(1, np.int32)
        return spin(agt.mapped(flag), seen, grid=1, block=1).last().to_host()

    async with nursery() as group:
        first = agt.spawn(until(flags[0]), one, nursery=group)
        await turn()  # it's submitted, before the other one
        second = agt.spawn(until(flags[1]), one, nursery=group)
        await turn()
        flags[0][:] = 1
        got = await first
        flags[1][:] = 1  # a second too late, if the first was held up by it
        assert (got[0], (await second)[0]) == (1, 1)


async def test_a_kernel_sees_no_write_before_it_is_written(sim: SimDevice) -> None:
    """Though nothing was asked of the device between what was waited for and the write."""
    flag, seen = agt.pin(np.zeros(1, np.int32)), agt.zeros(1, np.int32)
    with agt.record() as trace:
        spin = agt.spawn(agt.Kernel(SPIN)(agt.mapped(flag), seen, grid=1, block=1).last().to_host())
        await agt.ones(1000)
        written = sim.machine.host
        flag[:] = 1
        assert (await spin)[0] == 1
    (bar,) = trace.find("spin")
    assert bar.end > written


@any_loop
async def test_the_end_is_told_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, told = device.watch, list[Any]()

    def noting(event: Any, wake: Any) -> None:
        told.append(wake)
        watch(event, wake)

    monkeypatch.setattr(device, "watch", noting)
    future = agt.full((4,), 2.0).to_host().into_future()
    result = await future
    for wake in told:  # a watcher may come late, when somebody has looked and seen the end
        wake(None)
    assert result is future.result()
