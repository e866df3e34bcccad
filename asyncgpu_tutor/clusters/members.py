"""Clusters as a program sees them: GPUs to which it sends recipes."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from functools import partial
from itertools import count
from typing import Any, Self, TypeVar

import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, as_array
from asyncgpu_tutor.arrays.host import in_containers
from asyncgpu_tutor.clusters.recipes import ready_to_travel
from asyncgpu_tutor.clusters.remote import Kept, RemoteArray, StaysHere
from asyncgpu_tutor.devices.event_loop import AnyLoop, only_asyncio, opening_loop
from asyncgpu_tutor.errors import UsageError, WorkerLostError
from asyncgpu_tutor.ops.array_operations import element, h2d
from asyncgpu_tutor.ops.collectives import Group
from asyncgpu_tutor.ops.leaves import value
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.ops.pinned import pin

T = TypeVar("T")
rank_numbers = count(1)  # of clusters in this process


class Gpu(StaysHere, ABC):
    """One worker and its GPU. Calling it runs a recipe there: ``await gpus[1](op)``.

    Attributes
    ----------
    rank : int
        Its place in the cluster.
    name : str
        For messages, such as ``"gpu 1"``.
    """

    def __init__(self, rank: int, name: str) -> None:
        self.rank = rank
        self.name = name
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._lost: asyncio.Future[str] = self._loop.create_future()
        self._going: set[asyncio.Task[Any]] = set()  # what nobody awaits, until it is done

    def __repr__(self) -> str:
        return f"<{self.name}: await gpu(op) runs op there>"

    async def __call__(self, op: DeviceOp[T]) -> Any:
        """Run an operation there; what this yields, with a `RemoteArray` in the place of each array.

        It does not block: recipes that are awaited together run side by side. Cancelling stops the waiting;
        the recipe goes on to its end.

        Raises
        ------
        CannotTravelError
            If it holds a device array of this process, or something that cannot be pickled.
        WorkerLostError
            If the worker is gone, or goes meanwhile.
        """
        self._check()
        recipe = ready_to_travel(op, self.name)
        result = await self._run(recipe)
        return self._received(result)

    async def put(self, host: npt.ArrayLike, name: str | None = None) -> RemoteArray:
        """Copy a host array to this GPU, once, to be used there by its `op()`."""
        self._check()
        # A copy, since the caller may write to its own on the way; it is pinned where it is copied from.
        array = as_array(host, "put").copy()
        element("put", array.dtype)
        op = value(array).and_then(partial(_upload, name))
        op._label = f"put {name}" if name else "put"
        op._used = True
        return self._received(await self._run(op))

    def lose(self, why: str) -> None:
        """It is gone: whoever waits for it, or asks it from now on, gets a `WorkerLostError`.

        A cluster calls this when it finds out. Call it to see what your program does then.
        """
        if not self._lost.done():
            self._lost.set_result(why)

    def _check(self) -> None:
        if self.closed:
            raise UsageError(
                f"{self.name} belongs to a closed cluster: use it inside the block of async with"
            )

    def _check_alive(self) -> None:
        if self._lost.done():
            raise WorkerLostError(
                f"{self.name} is gone ({self._lost.result()}), and with it what was on its GPU. The others "
                "go on: put what is needed on one of them, or open the cluster again"
            )

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._going.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._going.discard(task)
        if not task.cancelled():
            task.exception()  # whoever awaits it gets it; if nobody does, it was cancelled

    async def _end(self, call: asyncio.Task[Any]) -> Any:
        """The result of a call, unless its worker goes first. Cancelling stops the waiting only."""
        await asyncio.wait({call, self._lost}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            call.cancel()
            self._check_alive()
        return call.result()

    async def _result(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What a recipe yields; if nobody waits for that to the end, it goes when it comes."""
        call = self._start(work)
        try:
            return await self._end(call)
        except asyncio.CancelledError:
            call.add_done_callback(self._forget)
            raise

    def _forget(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._received(task.result())

    def _received(self, result: Any) -> Any:
        def take(thing: Any) -> Any:
            return RemoteArray(thing, self.name, self._drop) if isinstance(thing, Kept) else thing

        return in_containers(take, result)

    @abstractmethod
    async def _run(self, op: DeviceOp[Any]) -> Any:
        """Run it there; the result as it travels."""

    @abstractmethod
    def _drop(self, number: int) -> None:
        """Nobody has a handle to this array any more."""


class Cluster(StaysHere, ABC):
    """The GPUs of a cluster, by rank; made by `cluster`, in whose block they can be used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._gpus: list[Any] = []
        self._open: AnyLoop | None = None  # where it is open
        self._groups = count(1)

    def __getitem__(self, index: int) -> Gpu:
        if not self._gpus:
            raise UsageError("a cluster is empty outside of async with agt.cluster(...) as gpus")
        return self._gpus[index]

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self._gpus)

    def __len__(self) -> int:
        return len(self._gpus)

    def __repr__(self) -> str:
        return f"<cluster of {len(self)}: {', '.join(gpu.name for gpu in self._gpus)}>"

    @abstractmethod
    async def group(self) -> Group:
        """A new group of all its GPUs, with their ranks, for collectives in recipes."""

    async def __aenter__(self) -> Self:
        only_asyncio("a cluster")
        self._open = opening_loop(self._open, "this cluster")
        try:
            await self._opened()
        except BaseException:
            self._open = None
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._closed()
        self._open = None

    @abstractmethod
    async def _opened(self) -> None:
        """Find its GPUs."""

    @abstractmethod
    async def _closed(self) -> None:
        """Let go of them."""


def _upload(name: str | None, host: npt.NDArray[Any]) -> DeviceOp[DeviceArray]:
    return h2d(pin(host), name)
