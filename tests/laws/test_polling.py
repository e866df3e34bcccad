"""A program that calls `poll` sees the end of the work, whoever else waits for it and however it ends."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import DeviceAssertError
from asyncgpu_tutor.run.future import FutureState

FAILING = """
extern "C" __global__ void failing(float* y) { assert(y[0] > 1.0f); y[0] = 2.0f; }"""


async def started(op: agt.DeviceOp[Any], *, leave: bool) -> tuple[Any, Any]:
    """A future that a task waits for, or has been cancelled while it did."""
    future = op.into_future()

    async def wait() -> Any:
        return await future

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    if leave:
        task.cancel()
        await asyncio.wait({task})
    return future, task


def test_what_one_loop_has_left_is_seen_and_another_can_await_it(device: Device) -> None:
    async def awaited(future: Any) -> Any:
        return await future

    future, _ = asyncio.run(started(agt.full((4,), 2.0).to_host(), leave=True))
    agt.synchronize()
    assert future.poll()
    assert future.result().tolist() == [2.0] * 4
    future, _ = asyncio.run(started(agt.full((4,), 2.0).to_host(), leave=True))
    assert asyncio.run(awaited(future)).tolist() == [2.0] * 4


def test_memory_that_a_closed_loop_has_left_comes_back(sim: SimDevice) -> None:
    asyncio.run(started(agt.zeros((4,)), leave=True))
    agt.synchronize()
    gc.collect()
    assert sim.heap.live == 0


def test_the_end_is_seen_while_another_task_waits(sim: SimDevice) -> None:
    async def main() -> list[float]:
        future, task = await started(agt.full((4,), 2.0).to_host(), leave=False)
        while not future.poll():  # each look takes the host some virtual time
            pass
        assert future.state is FutureState.COMPLETE
        return (await task).tolist()

    assert asyncio.run(main()) == [2.0] * 4


@pytest.mark.parametrize("leave", [False, True])
def test_a_failure_is_an_end(sim: SimDevice, leave: bool) -> None:
    op = agt.Kernel(FAILING)(agt.zeros((4,)), grid=1, block=1).last().to_host()

    async def main() -> None:
        future, task = await started(op, leave=leave)
        while not future.poll():
            pass
        assert future.state is FutureState.FAILED
        with pytest.raises(DeviceAssertError):
            future.result()
        if not leave:
            with pytest.raises(DeviceAssertError):
                await task

    asyncio.run(main())
