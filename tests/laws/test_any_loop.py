"""Law 23: any loop. A cancelled scope stops the waiting and nothing else."""

import anyio
import anyio.lowlevel
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SimDevice
from tests.asyncgpu_tutor.serving.doubling import N, lasting, request


async def test_leaving_a_server_waits_for_its_lanes_in_a_cancelled_scope(sim: SimDevice) -> None:
    with anyio.CancelScope() as scope:
        async with (
            agt.Server(lasting("2000"), N, lanes=1) as server,
            anyio.create_task_group() as group,
        ):
            group.start_soon(server, request(1.0))
            while repr(server).startswith("<Server on sim:0: 0"):
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    assert "0 of 1 lanes busy" in repr(server)


async def test_leaving_hostcalls_ends_them_in_a_cancelled_scope(sim: SimDevice) -> None:
    with anyio.CancelScope() as scope:
        async with agt.hostcalls() as host:
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    with pytest.raises(agt.UsageError, match="within a block"):
        _ = host.arrays
