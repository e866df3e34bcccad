"""Event loops that are left, closed or many, polls, and threads: operations run in all of them."""

import asyncio
import gc
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.run import current

from .kernels import scale
from .test_failures import faulty
from .test_waiting import awaited, slow


def test_a_loop_that_was_closed_on_a_sleeper_disturbs_no_other(sim: Device) -> None:
    async def abandon() -> asyncio.Task[None]:
        task = asyncio.ensure_future(agt.sleep(10.0))
        await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(abandon())
    loop.close()
    assert asyncio.run(asyncio.wait_for(awaited(slow().to_host()), 20))[0] == 256.0
    task._log_destroy_pending = False  # the task stays pending forever, since its loop is closed


def test_a_loop_can_be_left_and_entered_again(sim: Device) -> None:
    async def start() -> asyncio.Task[agt.DeviceArray]:
        task = agt.spawn(slow(1024))
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(start())
    assert asyncio.run(awaited(agt.ones((2,)).to_host())).tolist() == [1.0, 1.0]
    assert loop.run_until_complete(asyncio.wait_for(task, 20)).shape == (1024,)
    loop.close()


async def started(future: Any, *, leave: bool) -> tuple[Any, Any]:
    """A future that a task waits for, or has been cancelled while it did."""
    task = asyncio.ensure_future(awaited(future))
    await asyncio.sleep(0)
    if leave:
        task.cancel()
        await asyncio.wait({task})
    return future, task


def test_what_a_closed_loop_has_left_is_seen_and_another_can_await_it(device: Device) -> None:
    gc.collect()
    live = device.heap.live if isinstance(device, SimDevice) else 0
    future, _ = asyncio.run(started(slow().to_host().into_future(), leave=True))
    agt.synchronize()
    assert future.poll()
    assert future.result()[0] == 256.0
    future, _ = asyncio.run(started(slow().to_host().into_future(), leave=True))
    assert asyncio.run(awaited(future))[0] == 256.0
    asyncio.run(started(slow().into_future(), leave=True))
    agt.synchronize()
    gc.collect()
    if isinstance(device, SimDevice):
        assert device.heap.live <= live


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("leave", [False, True])
async def test_a_poll_sees_the_end_whoever_waits(sim: Device, leave: bool, fails: bool) -> None:
    op = faulty() if fails else slow().to_host()
    future, task = await started(op.into_future(), leave=leave)
    while not future.poll():  # each look takes the host some virtual time
        pass
    assert future.state is (agt.FutureState.FAILED if fails else agt.FutureState.COMPLETE)
    for ask in (future, future, future if leave else task):
        with pytest.raises(agt.DeviceError) if fails else nullcontext():
            assert (await ask)[0] == 256.0
    with pytest.raises(agt.DeviceError) if fails else nullcontext():
        assert future.result()[0] == 256.0


async def test_a_poll_in_a_submission_leaves_a_failure_for_later(sim: Device) -> None:
    future, _ = await started(faulty().into_future(), leave=True)
    agt.work(1e6)  # until it has failed
    assert agt.value(future).map(lambda it: it.poll()).sync() is False
    assert future.poll()
    assert future.state is agt.FutureState.FAILED


@pytest.mark.parametrize("first", ["waits", "leaves", "fails"])
def test_two_threads_that_await_one_future_start_it_once(device: Device, first: str) -> None:
    begun = threading.Event()
    runs: list[int] = []

    async def beside() -> Any:
        task = asyncio.ensure_future(awaited(future))
        await asyncio.sleep(0)
        begun.set()
        return await asyncio.wait_for(task, 60)

    def submitted(_: agt.types.ExecutionContext) -> agt.DeviceOp[Any]:
        runs.append(1)
        others.append(pool.submit(asyncio.run, beside()))
        assert begun.wait(60)  # the other waits before anything is submitted
        return agt.full((4,), 2.0 if first != "fails" else 1 / 0).to_host()

    others: list[Future[Any]] = []
    future = agt.with_context(submitted).into_future()
    with ThreadPoolExecutor(1) as pool:
        if first == "leaves":  # its loop is closed when the work is done
            asyncio.run(started(future, leave=True))
        mine = lambda: asyncio.run(awaited(future))  # noqa: E731
        for result in (mine, lambda: others[0].result(90))[first == "leaves" :]:
            with pytest.raises(ZeroDivisionError) if first == "fails" else nullcontext():
                assert result().tolist() == [2.0] * 4
    assert runs == [1]


def test_two_threads_that_open_a_device_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()

    def opened(_: str, ordinal: int) -> SimDevice:
        opens.append(ordinal)
        if len(opens) == 1:
            others.append(pool.submit(asks))
            assert asked.wait(60)
        return SimDevice(ordinal)

    def asks() -> Device:
        asked.set()
        return current.resolve("sim:77")

    opens: list[int] = []
    others: list[Future[Device]] = []
    monkeypatch.setattr(current, "open_device", opened)
    monkeypatch.setattr(current, "_devices", {})
    with ThreadPoolExecutor(1) as pool:
        device = current.resolve("sim:77")
        assert others[0].result(60) is device
    assert opens == [77]


async def test_work_that_nobody_awaits_any_more_does_not_pile_up(sim: SimDevice) -> None:
    before = agt.in_flight()
    for _ in range(300):
        task = agt.spawn(agt.ones((8,)))
        await asyncio.sleep(0)
        task.cancel()
        agt.work(100.0)  # in which it ends
    assert agt.in_flight() - before < 100
    agt.synchronize()
    assert agt.in_flight() <= before


def test_threads_may_run_operations_at_the_same_time(device: Device) -> None:
    def run(number: int) -> None:
        with agt.using(device):
            for _ in range(15):
                op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
                assert (agt.overlap(op, agt.ones((3,))).first().sync() == 2 * number).all()

    pool, usual = ThreadPoolExecutor(6), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change so often that they do meet
    try:
        for done in [pool.submit(run, n) for n in range(6)]:
            done.result(120)
    finally:
        sys.setswitchinterval(usual)


async def test_a_task_that_a_function_starts_may_run_operations(device: Device) -> None:
    async def other() -> Any:
        return agt.ones((2,)).to_host().sync()

    def start(_: int) -> agt.DeviceOp[Any]:
        return agt.value([asyncio.create_task(other()), agt.spawn(agt.ones((2,)).to_host())])

    for task in await agt.value(1).and_then(start):
        assert (await task).tolist() == [1.0, 1.0]


async def test_a_result_may_pass_through_many_tasks_before_time_moves_on(sim: SimDevice) -> None:
    async def relay(depth: int) -> None:
        if depth:
            await asyncio.create_task(relay(depth - 1))
        else:
            await agt.sleep(50.0)

    other = asyncio.create_task(agt.sleep(5000.0))
    await relay(30)
    reached = sim.now()
    await other
    assert reached < 100.0


@pytest.mark.parametrize("verb", ["launch", "copy_to_host_async"])
def test_threads_share_no_array(sim: Device, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    x = agt.ones(4).sync()
    op = agt.d2h(x) if verb != "launch" else agt.relu(4, agt.ones(4).sync(), x.partition(4))
    found, refused = getattr(type(sim), verb), list[int]()

    def again() -> None:
        with agt.using(sim), pytest.raises(agt.errors.UseAfterMoveError, match="earlier run of"):
            op.sync()
        refused.append(1)

    def meanwhile(*args: Any) -> Any:
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(again).result()
        return found(*args)

    monkeypatch.setattr(type(sim), verb, meanwhile)
    op.sync()
    assert refused == [1]
