"""The server: requests wait for a lane, are written there, launched, and answered.

Pipelines are built once for each lane, a lane being a stream with memory of its own. After that a request
costs a copy into an input, a launch and a copy of the result: no memory is allocated on the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import as_dtype, as_shape
from asyncgpu_tutor.devices.event_loop import (
    TURN_EVERY_US,
    AnyLoop,
    AnyWaiter,
    loop_ways,
    opening_loop,
    ready_in,
    running_loop,
    shielded,
)
from asyncgpu_tutor.errors import ServerBusyError, UsageError, whole
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.serving.lane import Host, PipelineSlot, Request

T = TypeVar("T")

# To look for an answer takes a GPU's driver about 2 us, half as long as a launch. While there is a lane for
# the next request, a map looks no more often than this.
LOOK_EVERY_US = 50.0
CLOSED = "the server was closed before this request's turn"


class Server(Generic[T]):
    """Runs one pipeline for many requests, several at a time.

    To be used as ``async with Server(...) as server``, and then ``await server(x)`` for a request, or
    ``async for y in server.map(xs)`` for many. Leaving the block turns away those that still wait for a lane,
    and waits for what the device is at work on, also for those that were cancelled.

    Parameters
    ----------
    pipeline : callable
        Gets a host array, in pinned memory, and returns the `DeviceOp` that reads it, and that ends in a copy
        to the host. It is called once for each lane, and its operation is prepared: see `DeviceOp.prepare`.
    shape : int or tuple of int
        Of a request.
    dtype : dtype
        Of a request.
    lanes : int
        How many launches the device works on at a time, each on a stream of its own.
    waiting : int
        How many more may wait for a lane; what comes then is turned away.

    Raises
    ------
    UsageError
        If there would be no lane; if the result stays on the device.
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
    ) -> None:
        lanes = whole("the number of lanes", lanes, 1)
        waiting = whole("the number of requests that may wait", waiting, 0)
        if not callable(pipeline):
            raise UsageError(
                "the pipeline of a server is a function that gets a host array and returns the operation "
                f"that reads it, so that each lane can have its own, and got {pipeline!r}"
            )
        self.shape = as_shape(shape)
        self.dtype = as_dtype(dtype)
        self._waiting = waiting
        self._device = current_device()
        self._lanes: list[PipelineSlot[T]] = [
            PipelineSlot(pipeline, self.shape, self.dtype) for _ in range(lanes)
        ]
        # The lane that was freed last is taken next, because its input is still in the processor's cache.
        self._free: deque[PipelineSlot[T]] = deque(reversed(self._lanes))
        # The turns of those that wait for a lane, in order; nobody does while one is free.
        self._turns: dict[AnyWaiter, PipelineSlot[T] | None] = {}
        self._loop: AnyLoop | None = None  # where it is open

    def __repr__(self) -> str:
        lanes = f"{sum(lane.busy for lane in self._lanes)} of {len(self._lanes)} lanes busy"
        return f"<Server on {self._device.name}: {lanes}, {len(self._turns)} waiting>"

    # ------------------------------------------------------------------ its life
    async def __aenter__(self) -> Server[T]:
        self._loop = opening_loop(self._loop, "this server")
        return self

    async def __aexit__(self, *error: object) -> None:
        self._loop = None
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)  # without a lane
        with shielded():
            for lane in self._lanes:
                if not lane.done():
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
        self._lanes[0].check_request(request)
        lane = await self._begun(request)
        try:
            await lane.quiet()
            return lane.taken()
        finally:
            self._give(lane)

    def map(self, requests: Iterable[Request]) -> AsyncGenerator[T, None]:
        """The results for many requests, in their order.

        A request is taken from `requests` when there is a lane for it, or about to be one, so a source
        without end is fine; and it is copied before the next one is taken, so a source may use one array
        again and again.

        Parameters
        ----------
        requests : iterable
            Of arrays or functions, as for a single request.

        Raises
        ------
        DeviceError
            In place of the result of a request that failed. What was begun by then goes on, and its lanes are
            used again when the device is done with them.
        ServerBusyError
            If others have all lanes and too many wait already.
        Exception
            What `requests` raises itself, or a request that does not fit: after the results of those before.
        """
        if not isinstance(requests, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                f"map() takes the requests, one after the other, from a list or a generator, and got "
                f"{type(requests).__name__}: for a single one, await server(request)"
            )
        return self._map(iter(requests))

    async def _map(self, requests: Iterator[Request]) -> AsyncGenerator[T, None]:
        under_way: deque[PipelineSlot[T]] = deque()
        failure: Exception | None = None
        more = True
        now = self._device.now
        looked_us = turn_us = now()
        in_a_row, ready = 0, ready_in(running_loop())
        try:
            while True:
                # Launches come first as long as there are lanes, but the oldest result isn't kept waiting.
                while more and (self._free or not under_way):
                    if under_way and now() - looked_us > LOOK_EVERY_US:
                        looked_us = now()
                        if under_way[0].done():
                            break
                    try:
                        under_way.append(await self._begun(next(requests)))
                    except StopIteration:
                        more = False
                    except Exception as error:  # noqa: BLE001 - raised when its turn comes
                        failure, more = error, False
                if not under_way:
                    break
                lane = under_way[0]
                if not lane.done():
                    await lane.quiet()
                else:
                    looked_us = now()
                    in_a_row += 1  # nothing here has waited
                    wanted = ready and in_a_row >= len(self._lanes)  # by others
                    if wanted or looked_us - turn_us > TURN_EVERY_US:
                        await loop_ways().sleep(0)
                        turn_us, in_a_row = now(), 0
                under_way.popleft()
                try:
                    result = lane.taken()
                finally:
                    self._give(lane)
                yield result
            if failure is not None:
                raise failure
        except BaseException as error:
            for lane in under_way:
                self._give(lane)
            if failure is not None and failure is not error:
                error.add_note(f"the source of the requests failed too: {failure!r}")
            raise

    async def _begun(self, request: Request) -> PipelineSlot[T]:
        """Launch a request on a lane whose memory nobody uses, when it is its turn; the lane that it has."""
        self._check_open("the server is closed: use it in `async with Server(...) as server`")
        lane = self._free.pop() if self._free else await self._turn()
        try:
            if not lane.done():  # it may have been for long, and nobody has looked
                await lane.quiet()
            self._check_open(CLOSED)
            lane.launch_request(request)
        except BaseException:
            self._give(lane)
            raise
        return lane

    def _check_open(self, told: str) -> None:
        if self._loop is None:
            raise UsageError(told)

    # ------------------------------------------------------------------ lanes
    async def _turn(self) -> PipelineSlot[T]:
        """Wait in line for a lane that others give back."""
        if len(self._turns) >= self._waiting:
            raise ServerBusyError(
                f"all {len(self._lanes)} lanes are busy and {len(self._turns)} requests wait: try again "
                "later, or let more of them wait (waiting=...)"
            )
        loop = running_loop()
        if loop is not self._loop:
            raise UsageError(
                "all lanes are busy, and they become free in another event loop, where this server was "
                "opened: make a server for each loop, or send your requests from that one"
            )
        turn = loop.create_future()
        self._turns[turn] = None
        try:
            await turn
        except BaseException:
            if lane := self._turns[turn]:
                self._give(lane)  # it was cancelled before it saw that it has a lane
            raise
        finally:
            given = self._turns.pop(turn)
        if given is None:
            raise UsageError(CLOSED)
        return given

    def _give(self, lane: PipelineSlot[T]) -> None:
        """Hand a free lane to the request that waits longest, if there is one."""
        for turn in self._turns:
            # It is done where a request has a lane, or is cancelled, and does not know yet.
            if not turn.done():
                self._turns[turn] = lane
                turn.set_result(None)
                return
        # Where the request was cancelled, others are served sooner by another lane.
        (self._free.appendleft if lane.busy else self._free.append)(lane)
