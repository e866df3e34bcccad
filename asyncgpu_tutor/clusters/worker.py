"""A worker: one device, and the recipes that run there."""

from __future__ import annotations

from typing import Any

from asyncgpu_tutor.clusters.remote import Store
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.ops.operation import DeviceOp, choose
from asyncgpu_tutor.run.current import StreamPoolRoundRobin, using
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.run.submission import submit


class Worker:
    """Runs recipes on one device, side by side, each on a stream of its own."""

    def __init__(self, name: str, device: Device, streams: int = 4) -> None:
        self.device = device
        self.store = Store(name)
        self._policy = StreamPoolRoundRobin(streams, device)

    async def run(self, op: DeviceOp[Any]) -> Any:
        """The result of an operation, as it travels: see `Store.keep`."""
        with using(self.device, self._policy):
            stream, policy = choose(self._policy)
            submission = await self.device.apart(
                lambda: submit(op._run, stream, policy, op.label, spawned=True)
            )
            return self.store.keep(await DeviceFuture.of(submission))
