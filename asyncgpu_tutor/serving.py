"""A small server loop: requests in, a pipeline on each of several streams, results out.

The pipeline is built once for each lane, a lane being a stream with memory of its own. After that a
request costs a copy into the lane's input, one launch, and a copy of the result: no memory is allocated on
the device.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.array import as_shape
from asyncgpu_tutor.device import Stream
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, ServerBusyError, UsageError
from asyncgpu_tutor.event_loop import nothing_ready, turn_given, turn_is_due
from asyncgpu_tutor.future import LOOK_US, FutureState
from asyncgpu_tutor.host import in_containers
from asyncgpu_tutor.memory import pinned
from asyncgpu_tutor.ops import CudaGraph, DeviceOp, Prepared, Standing
from asyncgpu_tutor.ops.operation import as_op
from asyncgpu_tutor.runtime import create_stream, current_device

__all__ = ["Server"]

T = TypeVar("T")
Host = npt.NDArray[Any]
_UnderWay = deque["_Lane[T]"]

# A request: an array, or a function that writes one to the array that it is given.
Request = Host | Callable[[Host], object]

_END: Any = object()  # of the requests: no request is this
CLOSED = "the server was closed before this request's turn"


class _Lane(Generic[T]):
    """A stream, an input, and the pipeline that reads it."""

    def __init__(self, slot: Host, captured: Prepared[T] | CudaGraph[T], stream: Stream) -> None:
        self.slot = slot
        self.run = Standing(captured, stream)  # the latest; it may be one that was cancelled

    async def quiet(self) -> None:
        """Wait until the device neither reads nor writes its memory."""
        if self.run.state is FutureState.EXECUTING:
            await _settled(self.run)

    def start(self, request: Request) -> None:
        """Write a request to the input and launch."""
        if callable(request):
            written = request(self.slot)
            if written is not None and inspect.iscoroutine(written):
                written.close()
                raise UsageError(
                    "the function of a request is asynchronous, and has to write the input at once: await "
                    "the data first, and make the request of what has come"
                )
        else:
            np.copyto(self.slot, request)
        self.run.start()

    def taken(self) -> T:
        """The result, as the caller's own: the next run writes to the lane's arrays again."""
        result: Any = self.run.result()
        own: Any = result.copy() if type(result) is np.ndarray else in_containers(_own, result)
        return own


class Server(Generic[T]):
    """Runs one pipeline for many requests, several at a time.

    To be used as ``async with Server(...) as server``, and then ``await server(x)`` for a request, or
    ``async for y in server.map(xs)`` for many. Leaving the block turns away those that still wait for a lane,
    and waits for what the device is at work on, also for those that were cancelled.

    Parameters
    ----------
    pipeline : callable
        Gets a host array, in pinned memory, and returns the `DeviceOp` that reads it, and that ends in a copy
        to the host. It is called once for each lane, and what it returns is prepared: see
        `DeviceOp.prepare`.
    shape : int or tuple of int
        Of a request.
    dtype : dtype
        Of a request.
    lanes : int
        How many requests the device works on at a time, each on a stream of its own.
    waiting : int
        How many more may wait for a lane; what comes then is turned away.
    graphs : bool
        Whether the driver gets each lane as a CUDA graph. Without, its calls are made one by one, as they
        have to be for what a graph cannot hold.

    Raises
    ------
    UsageError
        If there would be no lane.
    CaptureError
        If the pipeline cannot be prepared.
    """

    def __init__(
        self,
        pipeline: Callable[[Host], DeviceOp[T]],
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = np.float32,
        *,
        lanes: int = 4,
        waiting: int = 1024,
        graphs: bool = True,
    ) -> None:
        if not (isinstance(lanes, int) and isinstance(waiting, int)) or lanes < 1 or waiting < 0:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                f"a server needs at least one lane, and no fewer than 0 requests that may wait: got lanes="
                f"{lanes}, waiting={waiting}"
            )
        if not callable(pipeline):
            raise UsageError(
                "the pipeline of a server is a function that gets a host array and returns the operation "
                f"that reads it, and {pipeline!r} is none: each lane needs one of its own"
            )
        self.shape = as_shape(shape)
        self.dtype = np.dtype(dtype)
        self._waiting = waiting
        self._device = current_device()
        self._lanes = [self._lane(pipeline, graphs) for _ in range(lanes)]
        self._free: deque[_Lane[T]] = deque(self._lanes)
        self._queue: deque[asyncio.Future[_Lane[T]]] = deque()
        self._open = False

    def __repr__(self) -> str:
        busy = sum(lane.run.state is FutureState.EXECUTING for lane in self._lanes)
        return (
            f"<Server on {self._device.name}: {busy} of {len(self._lanes)} lanes busy, "
            f"{len(self._queue)} waiting>"
        )

    def _lane(self, pipeline: Callable[[Host], DeviceOp[T]], graphs: bool) -> _Lane[T]:
        slot = pinned(self.shape, self.dtype)
        slot[...] = np.zeros((), self.dtype)
        stream = create_stream()
        prepared = as_op(pipeline(slot), pipeline).prepare()
        captured = prepared.launch().graph_on(stream) if graphs else prepared
        return _Lane(slot, captured, stream)

    # ------------------------------------------------------------------ its life
    async def __aenter__(self) -> Server[T]:
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_exception(UsageError(CLOSED))
        for lane in self._lanes:
            await lane.quiet()

    # ------------------------------------------------------------------ requests
    async def __call__(self, request: Request) -> T:
        """The pipeline's result for a request, as arrays of the caller's own.

        Where a request was cancelled, the next one on its lane waits until the device is done with it.

        Parameters
        ----------
        request : numpy.ndarray or callable
            Of the server's shape and dtype; it is copied. Or a function that gets the lane's input, in pinned
            memory, and writes the request there itself, which saves the copy.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            If it does not fit; no lane is taken.
        ServerBusyError
            If too many wait already.
        DeviceError
            If the device failed in it.
        """
        self._check(request)
        lane = await self._idle_lane()
        try:
            lane.start(request)
            await lane.run
            return lane.taken()
        finally:
            self._give(lane)

    def map(self, requests: Iterable[Request] | AsyncIterable[Request]) -> AsyncGenerator[T, None]:
        """The results for many requests, in their order.

        A request is taken from `requests` when there is a lane for it, so a source without end is fine.

        Parameters
        ----------
        requests : iterable or asynchronous iterable
            Of arrays or functions, as for a single request.

        Raises
        ------
        DeviceError
            At the result of a request that failed. What was begun by then is waited for.
        """
        if isinstance(requests, AsyncIterable):
            return self._map_arriving(aiter(requests))
        return self._map_ready(iter(requests))

    async def _map_ready(self, source: Iterator[Request]) -> AsyncGenerator[T, None]:
        under_way: _UnderWay[T] = deque()
        loop = asyncio.get_running_loop()
        looks = self._device.patience_us > 0.0  # on a simulated device time stands still meanwhile
        try:
            while True:
                request = next(source, _END)
                while under_way and (request is _END or not self._free):
                    # What is done already is taken without a turn of the loop, which takes longer than a
                    # small request; but others have their turn.
                    run = under_way[0].run
                    if not (run.poll() or (looks and nothing_ready(loop) and run.poll(LOOK_US))):
                        await _settled(run)
                    elif looks and turn_is_due():
                        await asyncio.sleep(0)
                        turn_given()
                    yield self._taken(under_way)
                if request is _END:
                    return
                self._check(request)
                if self._free and self._free[0].run.state is not FutureState.EXECUTING:
                    lane = self._free.popleft()
                else:
                    lane = await self._idle_lane()
                self._begin(lane, request, under_way)
        finally:
            self._abandon(under_way)

    async def _map_arriving(self, source: AsyncIterator[Request]) -> AsyncGenerator[T, None]:
        under_way: _UnderWay[T] = deque()
        arrival: asyncio.Future[Any] | None = None
        try:
            while True:
                if arrival is None:
                    arrival = asyncio.ensure_future(_next(source))
                # A result is not held back until the next request comes.
                while under_way and not (
                    arrival.done() and self._free and arrival.result() is not _END
                ):
                    oldest = under_way[0].run
                    settled = asyncio.ensure_future(_settled(oldest))
                    waits = {settled} if arrival.done() else {settled, arrival}
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    if oldest.state is not FutureState.EXECUTING:
                        yield self._taken(under_way)
                request = await arrival
                arrival = None
                if request is _END:
                    return
                self._check(request)
                self._begin(await self._idle_lane(), request, under_way)
        finally:
            if arrival is not None:
                arrival.cancel()
            self._abandon(under_way)

    def _begin(self, lane: _Lane[T], request: Request, under_way: _UnderWay[T]) -> None:
        try:
            lane.start(request)
        except BaseException:  # of a function that was to write the request
            self._give(lane)
            raise
        under_way.append(lane)

    def _taken(self, under_way: _UnderWay[T]) -> T:
        """The oldest result, which is there; its lane is free again."""
        lane = under_way.popleft()
        try:
            return lane.taken()
        finally:
            self._give(lane)

    def _abandon(self, under_way: _UnderWay[T]) -> None:
        for lane in under_way:
            self._give(lane)

    # ------------------------------------------------------------------ lanes
    def _check(self, request: Request) -> None:
        if not self._open:
            raise UsageError(
                "the server is closed: use it inside of `async with Server(...) as server`"
            )
        if callable(request):
            return
        if not hasattr(request, "dtype"):
            raise ArrayDTypeError(
                f"a request to this server is a NumPy array, or a function that writes one, and got "
                f"{type(request).__name__}: use np.asarray(request, {str(self.dtype)!r})"
            )
        if getattr(request, "shape", None) != self.shape:
            raise ArrayShapeError(
                f"a request to this server has shape {self.shape}, and this one has {np.shape(request)}"
            )
        if request.dtype != self.dtype:
            raise ArrayDTypeError(
                f"a request to this server has dtype {self.dtype}, and this one has {request.dtype}: "
                f"convert it with astype({str(self.dtype)!r})"
            )

    async def _idle_lane(self) -> _Lane[T]:
        """A lane whose memory nobody uses, when it is this request's turn."""
        lane = self._free.popleft() if self._free else await self._turn()
        if lane.run.state is FutureState.EXECUTING:
            try:
                await lane.quiet()
            except BaseException:
                self._give(lane)
                raise
        return lane

    async def _turn(self) -> _Lane[T]:
        """A lane, when it is this request's turn."""
        if len(self._queue) >= self._waiting:
            raise ServerBusyError(
                f"{len(self._lanes)} requests are under way and {len(self._queue)} wait: try again later, "
                "or let more of them wait (waiting=...)"
            )
        waiter: asyncio.Future[_Lane[T]] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            lane = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give(waiter.result())  # it was given a lane just before it was cancelled
            else:
                with suppress(ValueError):
                    self._queue.remove(waiter)
            raise
        if not self._open:
            self._give(lane)
            raise UsageError(CLOSED)
        return lane

    def _give(self, lane: _Lane[T]) -> None:
        """A lane is free: for who waits longest, if there is one."""
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(lane)
                return
        self._free.append(lane)


async def _settled(run: Standing[Any]) -> None:
    """Its end, good or bad."""
    with suppress(Exception):
        await run


async def _next(source: AsyncIterator[Request]) -> Any:
    return await anext(source, _END)


def _own(handle: Any) -> Any:
    """What a caller may keep."""
    return handle.copy() if isinstance(handle, np.ndarray) else handle  # pyright: ignore[reportUnknownVariableType] - whatever is in it
