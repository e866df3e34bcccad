"""Law 23: any loop. A cancelled scope stops the waiting and nothing else."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import numpy as np
import pytest
import trio

import asyncgpu_tutor as agt
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.devices.event_loop import loop_ways, running_loop
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import OutOfBoundsError
from asyncgpu_tutor.language.conversations import Conversations
from tests.asyncgpu_tutor.serving.doubling import N, lasting, pipeline, request
from tests.conftest import LOOPS
from tests.tools import ROOT, python, tool

from .kernels import scale
from .loops import Left, any_loop, nursery, outcome, together, turn
from .test_failures import faulty
from .test_waiting import awaited, slow

NOT_TRIO = {"asyncio", "uvloop"}


# ---------------------------------------------------------------------- awaiting
@any_loop
async def test_operations_and_their_kinds_are_awaited(device: Device) -> None:
    def ones() -> agt.DeviceOp[Any]:
        return agt.ones((3,)).and_then(lambda a: scale(a, 1.0)).to_host()

    both = agt.overlap(ones(), agt.full((2,), 2.0).to_host())
    launch = ones().prepare().launch()
    for op, expected in ((ones(), [1.0] * 3), (launch, [1.0] * 3), (both.last(), [2.0, 2.0])):
        assert (await op).tolist() == expected
    group = agt.group("sim:0", "sim:1") if device.simulated else None
    if group is not None:
        sums = await group.on_each(lambda r: group.all_reduce(agt.full(2, float(r))).to_host())
        assert [found.tolist() for found in sums] == [[1.0, 1.0]] * 2


@any_loop
async def test_the_clock_moves_in_each(sim: SimDevice, loop: str) -> None:
    real, start = time.monotonic(), sim.now()
    await together(agt.sleep(5e6), agt.sleep(2e6))
    assert 5e6 <= sim.now() - start < 5.01e6
    assert time.monotonic() - real < 4


@any_loop
async def test_who_was_released_before_the_wait_does_not_wait() -> None:
    waiter = running_loop().create_future()
    waiter.set_result(None)
    assert waiter.done()
    await waiter


def test_an_await_takes_about_as_many_calls_in_each(sim: SimDevice) -> None:
    """Uvloop hides who is ready, and to wait for 64 quiet turns would do as well, in 1,700 calls."""
    pytest.importorskip("uvloop", reason="no wheel")
    bench = tool("any_loop", ROOT / "benchmarks")
    found = {name: bench.calls(run, bench.AWAITED["value"]) for name, run in bench.LOOPS.items()}
    of_asyncio = {name: calls / found["asyncio"] for name, calls in found.items()}
    assert of_asyncio["uvloop"] < 1.1
    assert of_asyncio["trio"] < 1.4
    assert of_asyncio["trio, device clock"] < 1.1


def test_who_has_no_trio_needs_none() -> None:
    program = """
import asyncio, sys, asyncgpu_tutor as agt
async def main():
    async with agt.Server(lambda slot: agt.h2d(slot).to_host(), 4) as server, agt.hostcalls():
        await agt.spawn(agt.ones(4))
agt.use("sim"); asyncio.run(main()); agt.DeviceClock
print({"trio", "anyio", "sniffio"} & set(sys.modules))"""
    assert python("-c", program).stdout == "set()\n"


# ---------------------------------------------------------------------- spawning
@any_loop
async def test_a_spawned_operation_belongs_to_its_nursery(sim: SimDevice) -> None:
    async with nursery() as group:
        task = agt.spawn(slow().to_host(), nursery=group)
    assert task.done()
    assert [found[0] for found in await together(task, task)] == [256.0] * 2


@any_loop
async def test_its_failure_reaches_the_nursery_and_who_awaits_it(sim: SimDevice) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with nursery() as group:
            task = agt.spawn(faulty(), nursery=group)
    assert caught.group_contains(OutOfBoundsError, match="stray")
    assert isinstance(await outcome(task), OutOfBoundsError)
    assert (await agt.ones((2,)).to_host()).tolist() == [1.0, 1.0]


@any_loop
async def test_what_was_cancelled_has_no_result(sim: SimDevice, loop: str) -> None:
    async with nursery() as group:
        task = agt.spawn(slow(), nursery=group)
        await turn()
        task.cancel()
    if loop in NOT_TRIO:
        assert task.cancelled()
    else:
        with pytest.raises(agt.UsageError, match="'matvec_naive' was cancelled"):
            await task


@any_loop
async def test_a_nursery_of_another_kind_is_refused(sim: SimDevice, loop: str) -> None:
    if loop in NOT_TRIO:
        with pytest.raises(agt.UsageError, match=r"is an asyncio.TaskGroup, and object was"):
            agt.spawn(agt.value(1), nursery=object())
    else:
        with pytest.raises(agt.UsageError, match=r"needs the nursery.*nursery=nursery"):
            agt.spawn(agt.value(1))
        async with anyio.create_task_group() as group:
            assert await agt.spawn(agt.value(1), nursery=group) == 1


# ---------------------------------------------------------------------- cancelling
@any_loop
async def test_a_cancelled_scope_stops_the_waiting_only(sim: SimDevice, loop: str) -> None:
    future, never = slow().to_host().into_future(), slow().to_host().into_future()
    async with Left(lambda: awaited(future)):
        await turn()
        await turn()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await never
    assert scope.cancelled_caught
    assert never.state is agt.FutureState.IDLE or loop in NOT_TRIO
    assert [found[0] for found in await together(future, never)] == [256.0] * 2


@any_loop
@pytest.mark.parametrize("after", range(0, 8, 2))
async def test_a_cancelled_request_gives_its_lane_back(sim: SimDevice, after: int) -> None:
    async with agt.Server(pipeline, N, lanes=1) as server:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                for number in range(4):
                    group.start_soon(server, request(number))
                for _ in range(after):
                    await turn()
                scope.cancel()
        assert [y[0] for y in await together(*map(server, map(request, (1.0, 2.0))))] == [2.0, 4.0]
        assert [y[0] async for y in server.map([request(3.0)] * 3)] == [6.0] * 3
    assert "0 of 1 lanes busy, 0 waiting" in repr(server)


@any_loop
async def test_leaving_a_server_waits_for_its_lanes_in_a_cancelled_scope(sim: SimDevice) -> None:
    with anyio.CancelScope() as scope:
        async with (
            agt.Server(lasting("2000"), N, lanes=1) as server,
            anyio.create_task_group() as group,
        ):
            group.start_soon(server, request(1.0))
            while repr(server).startswith("<Server on sim:0: 0"):
                await turn()
            scope.cancel()
    assert scope.cancelled_caught
    assert "0 of 1 lanes busy" in repr(server)


# ---------------------------------------------------------------------- calls of kernels
ASK = agt.Kernel(
    """#include "hostcall.cuh"
__global__ void ask(unsigned long long* mail, unsigned long long* stack, unsigned long long* out) {
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long answer = 0;
    bool ok = hostcall(host, 16, blockIdx.x, 0, 0, answer);
    if (ok) out[blockIdx.x] = answer;
}"""
)


async def answers(handler: Callable[[Any], Any]) -> list[int]:
    await agt.full((1,), 0.0)  # a GPU loads no kernel while another one waits
    out = await agt.zeros((3,), np.uint64)
    async with agt.hostcalls({16: handler}) as host:
        await host.run(ASK(*host.arrays, out.borrow(), grid=3, block=1))
    return (await agt.d2h(out)).tolist()


async def later(call: Any) -> int:
    await agt.sleep(50.0)
    return 10 * call.a


async def by_the_device(call: Any) -> int:
    return 10 * int((await agt.full((1,), float(call.a)).to_host())[0])


async def fails(call: Any) -> int:
    await turn()
    return 1 // 0


@any_loop
@pytest.mark.parametrize("handler", [lambda call: 10 * call.a, later, by_the_device])
async def test_kernels_are_answered(device: Device, handler: Callable[[Any], Any]) -> None:
    assert await answers(handler) == [0, 10, 20]


@any_loop
async def test_a_handler_that_fails_or_waits_for_ever(sim: SimDevice) -> None:
    for handler in (lambda _: 1 // 0, fails):
        with pytest.raises(ZeroDivisionError):
            await answers(handler)

    async def never(_: Any) -> int:
        scope.cancel()
        await anyio.sleep_forever()
        return 0

    with anyio.CancelScope() as scope:
        await answers(never)
    assert scope.cancelled_caught
    assert (await agt.ones((2,)).to_host()).tolist() == [1.0, 1.0]


@any_loop
async def test_leaving_hostcalls_ends_them_in_a_cancelled_scope(sim: SimDevice) -> None:
    with anyio.CancelScope() as scope:
        async with agt.hostcalls() as host:
            scope.cancel()
            await turn()
    assert scope.cancelled_caught
    with pytest.raises(agt.UsageError, match="within a block"):
        _ = host.arrays


# ---------------------------------------------------------------------- several loops
async def abandoned(future: Awaitable[Any]) -> None:
    async with Left(lambda: awaited(future)):
        await turn()
        await turn()


@pytest.mark.parametrize("second", LOOPS)
@pytest.mark.parametrize("first", LOOPS)
def test_what_one_loop_has_left_another_can_await(sim: SimDevice, first: str, second: str) -> None:
    async def main() -> None:
        assert (await future)[0] == 256.0

    future = slow().to_host().into_future()
    LOOPS[first](lambda: abandoned(future))
    assert future.state is not agt.FutureState.IDLE
    LOOPS[second](main)
    LOOPS[first](lambda: abandoned(slow().into_future()))
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0


def test_threads_with_different_loops_await_one_future(sim: SimDevice) -> None:
    async def main() -> None:
        with agt.using(sim):
            got.append((await future)[0])

    for _ in range(3):
        future, got = slow().to_host().into_future(), list[float]()
        threads = [threading.Thread(target=LOOPS[name], args=(main,)) for name in list(LOOPS)[:3]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert got == [256.0] * 3


def test_trio_may_be_a_guest_of_asyncio(sim: SimDevice) -> None:
    async def host() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        end = loop.create_future()
        trio.lowlevel.start_guest_run(
            lambda: awaited(slow().to_host()),
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            done_callback=end.set_result,
        )
        mine = await slow().to_host()
        return mine[0], (await end).unwrap()[0]

    assert asyncio.run(asyncio.wait_for(host(), 60)) == (256.0, 256.0)


@any_loop
async def test_what_is_made_of_asyncio_needs_it(sim: SimDevice, loop: str) -> None:
    if loop not in NOT_TRIO:
        model = untrained_model(32, heads=1, layers=1, context=10, vocabulary=27)
        for opened in (
            *(agt.cluster(at) for at in ("sim", "tcp://127.0.0.1:9")),
            Conversations(model),
        ):
            with pytest.raises(agt.UsageError, match=r"needs asyncio's.*run of trio"):
                async with opened:
                    pass


@pytest.mark.parametrize("patience", [10e6, 300.0, 1e-6])
def test_a_thread_may_tell_a_run_of_trio(
    sim: SimDevice, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """As on a GPU: look for a while, and then a thread waits, also beyond the end of the run."""

    def watch(_: SimDevice, event: Any, wake: Any) -> None:
        def wait() -> None:
            may_tell.wait(60)
            event.synchronize()
            wake(None)

        threads.append(threading.Thread(target=wait))
        threads[-1].start()

    async def main() -> None:
        may_tell.set()
        results = await together(*(agt.full(1 << 16, k).to_host() for k in range(3)))
        assert [found[-1] for found in results] == [0, 1, 2]
        may_tell.clear()
        await abandoned(agt.full(1 << 16, 2).to_host())

    monkeypatch.setattr(SimDevice, "patience_us", patience)
    monkeypatch.setattr(SimDevice, "watch", watch)
    threads, may_tell = list[threading.Thread](), threading.Event()
    trio.run(main)
    may_tell.set()
    for thread in threads:
        thread.join(60)
    assert patience > 1e6 or threads


@any_loop
async def test_a_thread_of_somebodys_own_is_awaited(sim: SimDevice) -> None:
    with ThreadPoolExecutor(1, "mine") as threads:
        threads.submit(int).result()  # the package may start none
        where = await loop_ways().on_thread(threads, lambda: threading.current_thread().name)
        assert where.startswith("mine")
        with pytest.raises(LookupError, match="not here"):
            await loop_ways().on_thread(threads, lambda: {}["not here"])


# ---------------------------------------------------------------------- the device's clock
@pytest.mark.parametrize("us", [85.0, 95.0, 100.0])
def test_deadlines_are_in_the_devices_time(sim: SimDevice, us: float) -> None:
    async def main() -> None:
        future, start = slow(1024).to_host().into_future(), sim.now()
        with trio.move_on_after(us * 1e-6) as scope:
            await future
        assert scope.cancelled_caught
        assert sim.now() - start == pytest.approx(us, abs=1e-3)
        assert (await future)[0] == 1024.0
        with trio.fail_after(3600.0):
            await agt.zeros(8)
        with agt.record():  # which waits for what is under way, and for no deadline
            await agt.zeros(8)
        assert sim.now() - start < 1e6
        ended = sim.now()
        await trio.sleep(3600.0)
        assert sim.now() - ended == pytest.approx(3.6e9, abs=1.0)
        assert await trio.to_thread.run_sync(lambda: 7) == 7
        await agt.sleep(1.0)

    trio.run(main, clock=agt.DeviceClock())


def test_a_deadline_ends_a_kernel_that_waits_for_the_host(sim: SimDevice) -> None:
    async def never(_: Any) -> int:
        await trio.sleep(1.0)
        return 7

    async def main() -> None:
        assert await answers(never) == [7] * 3
        with trio.move_on_after(0.5) as scope:
            await answers(never)
        assert scope.cancelled_caught

    trio.run(main, clock=agt.DeviceClock())


def test_a_gpu_lends_its_clock_to_nobody(sim: SimDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimDevice, "simulated", False)
    with pytest.raises(agt.UsageError, match="sim:0 is a GPU, and its time is the real one"):
        agt.DeviceClock()
    with pytest.raises(agt.UsageError, match="is a GPU"):
        agt.DeviceClock(sim)
