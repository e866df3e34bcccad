"""A worker: one device, the recipes that run there, and the arrays that it keeps for others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import in_containers
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.ops.operation import DeviceOp, choose
from asyncgpu_tutor.run.current import StreamPoolRoundRobin, using
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.run.submission import submit


@dataclass(frozen=True, slots=True)
class Kept:
    """An array that has stayed on a worker."""

    worker: str
    number: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    name: str


class Worker:
    """Runs recipes on one device, side by side, each on a stream of its own."""

    def __init__(self, name: str, device: Device) -> None:
        self.name, self.device = name, device
        self.arrays: dict[int, DeviceArray] = {}  # that others have handles to, by number
        self._numbers = count(1)
        self._policy = StreamPoolRoundRobin(4, device)
        workers[name] = self

    async def run(self, op: DeviceOp[Any]) -> Any:
        """The result of an operation, as it travels: with a `Kept` in the place of each array."""
        with using(self.device, self._policy):
            stream, policy = choose(self._policy)
            submission = await self.device.apart(
                lambda: submit(op._run, stream, policy, op.label, spawned=True)
            )
            return in_containers(self._keep, await DeviceFuture.of(submission))

    def _keep(self, thing: Any) -> Any:
        array = thing.array if isinstance(thing, Partition) else thing
        if not isinstance(array, DeviceArray):
            return array
        number = next(self._numbers)
        self.arrays[number] = array
        return Kept(self.name, number, array.shape, array.dtype, array.name)

    def drop(self, numbers: list[int]) -> None:
        """Nobody has a handle to these arrays any more."""
        for number in numbers:
            self.arrays.pop(number, None)

    def close(self) -> None:
        """Let go of everything."""
        self.arrays.clear()
        workers.pop(self.name, None)


workers: dict[str, Worker] = {}  # those in this process
