"""Workers, handles to the arrays that stay with them, and the operation that finds one there."""

import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import in_containers, own_copy
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceMismatchError, UsageError
from asyncgpu_tutor.ops.operation import DeviceOp, choose
from asyncgpu_tutor.run.context import ExecutionContext
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
            return own_copy(array)  # as it is now, and nobody's here
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


class StaysHere:
    """Refuse what no recipe can hold; `instead` says what to do."""

    instead: ClassVar[str] = (
        "the workers stay here. Work out first what the recipe needs to know of them"
    )


class RemoteArray(StaysHere):
    """A handle to an array that stays where it is, on the GPU of a worker.

    A recipe's arrays come back as these. The memory is freed when the last handle goes, and no recipe that
    has begun needs it any more.

    Attributes
    ----------
    where : str
        The worker, such as ``"gpu 1"``.
    shape : tuple of int
    dtype : numpy.dtype
    name : str
        For messages and traces.
    """

    instead = "put its op() into the recipe instead"

    def __init__(self, kept: Kept, where: str, drop: Callable[[int], None]) -> None:
        self.where = where
        self.shape, self.dtype, self.name = kept.shape, kept.dtype, kept.name
        self._kept = kept
        weakref.finalize(self, drop, kept.number).atexit = False

    def __repr__(self) -> str:
        return f"<RemoteArray {self.name!r} {self.shape} {self.dtype} on {self.where}>"

    def __reduce__(self) -> Any:
        raise UsageError(f"{self!r} does not travel itself: put its op() into the recipe")

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def op(self) -> DeviceOp[DeviceArray]:
        """An operation that yields the array, for recipes that run on its worker.

        What it yields may be read and written. Nothing orders two recipes that write to one array: await the
        first, or make them one.
        """
        return Fetch(self._kept, self.where, self)


class Fetch(DeviceOp[DeviceArray]):
    """Finds an array that was kept on this worker."""

    __slots__ = ("_handle", "_kept", "_told")

    def __init__(self, kept: Kept, told: str, handle: RemoteArray | None = None) -> None:
        self._built("remote array", sys._getframe(2))
        self._kept, self._told = kept, told
        self._handle = handle  # it keeps the array alive there, and does not travel

    def __reduce__(self) -> Any:
        return _sent, (self._kept, self._told)

    def _yields(self) -> str:
        return f"{self._kept.shape} {self._kept.dtype}"

    def _enqueue(self, context: ExecutionContext) -> DeviceArray:
        kept = self._kept
        worker = workers.get(kept.worker)
        array = None if worker is None else worker.arrays.get(kept.number)
        if array is None or array.device is not context.device:
            raise DeviceMismatchError(
                f"array {kept.name!r} is on {self._told}, and this recipe runs on {context.device.name} of "
                "another worker: send the recipe there, or `put` the data on this GPU, too"
            )
        context.keep(array)
        return array._lend()


def _sent(kept: Kept, told: str) -> Fetch:
    """The operation on its worker, where it is a part of a recipe that somebody runs."""
    found = Fetch(kept, told)
    found._used = True
    return found
