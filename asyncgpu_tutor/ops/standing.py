"""One pipeline on one stream, run again and again: for loops that start thousands of runs."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from asyncgpu_tutor.devices.protocol import Stream
from asyncgpu_tutor.errors import NotReadyError, UsageError
from asyncgpu_tutor.ops.prepared import Replayed
from asyncgpu_tutor.run import Rerun, adopt_stream, in_turn
from asyncgpu_tutor.run.future import DeviceFuture, FutureState, passes
from asyncgpu_tutor.traces.spans.tag import current_tag

__all__ = ["Standing"]

T = TypeVar("T")

# Where the wait before was shorter, the end of this run is looked for, too. To sleep until the device tells
# would add up to a millisecond, in which the stream has nothing to do.
SHORT_US = 5000.0


class Standing(Generic[T]):
    """A prepared pipeline or a graph that has a place to run, and runs there once at a time.

    Where nobody looks (see `Replayed.unseen`) all runs share one event and one submission, and there is no
    future unless somebody asks for one. Else each run is one of `Replayed.start_on`.

    Parameters
    ----------
    what : Replayed
        What is run. Its arrays and host arrays are lent: the next run writes to them again.
    stream : Stream
        Where.
    """

    def __init__(self, what: Replayed[T], stream: object) -> None:
        self._what = what
        self._stream: Stream = adopt_stream(stream, what.device)
        self._delivered = what.delivered
        self._submission: Rerun[T] = Rerun(what.label, self._stream, blocking=False, spawned=False)
        self._submission.kernels = what.kernels
        self._future: DeviceFuture[T] | None = None  # of the latest run, where it has one
        self._state = FutureState.IDLE  # of the latest run, where it has none
        self._waited = math.inf  # seconds, for the end of a run before

    @property
    def state(self) -> FutureState:
        """Of the latest run: idle where there was none, executing where nobody has seen its end."""
        return self._state if self._future is None else self._future.state

    def start(self) -> None:
        """Run it once more, now.

        Raises
        ------
        UsageError
            If nobody has seen the run before end.
        """
        if self.state is FutureState.EXECUTING:
            raise UsageError(
                f"{self._what.label!r} is at work on {self._stream!r}, and runs there once at a time: wait "
                "for the run before"
            )
        what, stream = self._what, self._stream
        self._future, self._state = None, FutureState.IDLE  # also where it is refused
        if current_tag() is not None or not what.unseen(stream):
            self._future = what.start_on(stream)
            return
        try:
            with in_turn:
                repeat = what.come_in_turn(stream)
                repeat.start()
        except BaseException as error:
            left = what.left_by(error, stream, what.label)
            self._future = None if left is None else DeviceFuture.of(left)
            raise
        self._submission.event = repeat.event
        self._submission.renew(self._delivered, keep=what)
        self._state = FutureState.EXECUTING

    def poll(self, us: float = 0.0) -> bool:
        """Whether the run is over, as one look tells; see `DeviceFuture.poll`.

        Looks go on for `us` us where the run has no future of its own.
        """
        if self._future is not None:
            return self._future.poll()
        event = self._submission.event
        if self._state is FutureState.EXECUTING and event is not None and passes(event, us):
            self._submission.settle()
            self._state = FutureState.COMPLETE
        return self._state is FutureState.COMPLETE

    def result(self) -> T:
        """What the run has computed; raises what went wrong.

        Raises
        ------
        NotReadyError
            If nobody has seen it end: poll, or await it.
        """
        if self._future is not None:
            return self._future.result()
        if self._state is not FutureState.COMPLETE:
            raise NotReadyError(f"{self._what.label!r} has no result yet: await its run")
        return self._delivered

    def __await__(self) -> Generator[Any, None, T]:
        if self._future is None and self._state is FutureState.EXECUTING:
            short = self._waited * 1e6 < SHORT_US
            self._future = DeviceFuture.of(self._submission, SHORT_US if short else 0.0)
        if self._future is None:
            return self.result()
        since = time.perf_counter()
        try:
            return (yield from self._future.__await__())
        finally:
            self._waited = time.perf_counter() - since
