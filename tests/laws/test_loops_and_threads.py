"""Event loops that are left, closed or many, and threads: operations run in all of them."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice

from .kernels import scale
from .test_waiting import slow


def test_a_loop_that_was_closed_on_a_sleeper_disturbs_no_other(sim: Device) -> None:
    async def abandon() -> asyncio.Task[None]:
        task = asyncio.ensure_future(agt.sleep(10.0))
        await asyncio.sleep(0)
        return task

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(abandon())
    loop.close()

    async def main() -> list[float]:
        return (await asyncio.wait_for(slow().to_host(), 20)).tolist()[:1]

    assert asyncio.run(main()) == [256.0]
    task._log_destroy_pending = False  # the task stays pending for ever, since its loop is closed


def test_a_loop_can_be_left_and_entered_again(sim: Device) -> None:
    async def start() -> asyncio.Task[agt.DeviceArray]:
        task = agt.spawn(slow(1024))
        for _ in range(3):
            await asyncio.sleep(0)
        return task

    async def short() -> list[float]:
        return (await agt.ones((2,)).to_host()).tolist()

    async def finish(task: asyncio.Task[agt.DeviceArray]) -> tuple[int, ...]:
        return (await asyncio.wait_for(task, 20)).shape

    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(start())
    assert asyncio.run(short()) == [1.0, 1.0]
    assert loop.run_until_complete(finish(task)) == (1024,)
    loop.close()


def test_threads_may_run_operations_at_the_same_time(device: Device) -> None:
    wrong: list[object] = []

    def run(number: int) -> None:
        try:
            with agt.using(device):
                for _ in range(15):
                    op = agt.full((64,), number).and_then(lambda a: scale(a, 2.0)).to_host()
                    result = agt.overlap(op, agt.ones((3,))).first().sync()
                    if not (result == 2 * number).all():
                        wrong.append(result)
        except Exception as error:  # noqa: BLE001 - a thread cannot raise it
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change so often that they do meet
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(usual)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)


def test_a_task_that_a_function_starts_may_run_operations(device: Device) -> None:
    async def other() -> list[float]:
        return agt.ones((2,)).to_host().sync().tolist()

    async def main() -> tuple[list[float], list[float]]:
        tasks: list[asyncio.Task[Any]] = []

        def start(n: int) -> agt.DeviceOp[int]:
            tasks.append(asyncio.create_task(other()))
            tasks.append(agt.spawn(agt.ones((2,)).to_host()))
            return agt.value(n)

        await agt.value(1).and_then(start)
        return await tasks[0], (await tasks[1]).tolist()

    assert asyncio.run(main()) == ([1.0, 1.0], [1.0, 1.0])


def test_a_result_may_pass_through_many_tasks_before_time_moves_on(sim: SimDevice) -> None:
    async def relay(depth: int) -> None:
        if depth:
            await asyncio.create_task(relay(depth - 1))
        else:
            await agt.sleep(50.0)

    async def main() -> float:
        other = asyncio.create_task(agt.sleep(5000.0))
        await relay(30)
        reached = sim.now()
        await other
        return reached

    assert asyncio.run(main()) < 100.0
