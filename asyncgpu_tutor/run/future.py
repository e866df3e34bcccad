"""Waiting without blocking: from an operation to whoever awaits it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from enum import Enum
from types import TracebackType
from typing import Any, Generic, TypeVar

from asyncgpu_tutor.devices.event_loop import (
    AnyLoop,
    AnyWaiter,
    entering,
    ready_in,
    running_loop,
    turn,
    turn_is_due,
)
from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.errors import DeviceError, NotReadyError, UsageError
from asyncgpu_tutor.run.current import SchedulingPolicy, of_this_process
from asyncgpu_tutor.run.submission import Submission, SubmissionBody, lasting, submit
from asyncgpu_tutor.traces import nvtx
from asyncgpu_tutor.traces.spans.tag import current_tag

T = TypeVar("T")
U = TypeVar("U")

_waking = threading.Lock()

# With a turn of asyncio's loop awaiting took 9 to 26 us longer than blocking (two H200 machines, 2026-11-21).
LOOK_US = 20.0  # what a task may look for instead, where no other wants the turn


class FutureState(Enum):
    """The life of a `DeviceFuture`; it only moves forward."""

    IDLE = "idle"
    EXECUTING = "executing"
    COMPLETE = "complete"
    FAILED = "failed"


class DeviceFuture(Generic[T]):
    """An operation with its stream chosen, ready to be awaited.

    It is lazy, as a coroutine is: nothing is submitted before the first await. To start several, hand
    them to `asyncio.gather`, to a `TaskGroup`, or use `spawn`. It can be awaited more than once, and by
    more than one task; the work is done once.

    Cancelling a task that awaits it stops the waiting, not the GPU: the work goes on, and what it uses
    lives until it is done.

    Made by `DeviceOp.schedule` and `DeviceOp.into_future`.

    Attributes
    ----------
    stream : Stream
        Where it will run, or runs.
    """

    def __init__(
        self,
        body: SubmissionBody[T] | None,
        stream: Stream,
        policy: SchedulingPolicy | None,
        label: str,
        spawned: bool = False,
    ) -> None:
        self._body = body
        self._policy = policy
        self._label = label
        self._spawned = spawned
        self.stream = stream
        self._patience_us = stream.device.patience_us
        self._submission: Submission[T] | None = None
        self._range: nvtx.OpenRange | None = None
        self._watched: AnyLoop | None = None  # the loop that it is watched for
        self._state = FutureState.IDLE
        self._result: Any = None
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None  # of the error, before anybody awaited it
        self._waiters: list[AnyWaiter] = []

    @staticmethod
    def of(submission: Submission[U], patience: float = 1.0) -> DeviceFuture[U]:
        """A future of work that is submitted already, for loops that look themselves and seldom wait.

        It looks for its end so many times as long as others before the device is to watch it.
        """
        future: DeviceFuture[U] = DeviceFuture(None, submission.stream, None, submission.label)
        future._patience_us *= patience
        future._submission = submission
        future._state = FutureState.EXECUTING
        return future

    def __repr__(self) -> str:
        where = f"stream {self.stream.number} of {self.stream.device.name}"
        return f"<DeviceFuture {self._label!r} on {where}, {self._state.value}>"

    @property
    def state(self) -> FutureState:
        """Idle, executing, complete or failed."""
        return self._state

    def poll(self) -> bool:
        """Tell whether it is over, by one look: for loops that take what is there.

        Gives the event loop no turn, so who polls has to await now and then. A look costs the host some time,
        also of a simulated clock.
        """
        submission = self._submission
        if self._state is FutureState.EXECUTING and submission is not None:
            event = submission.event
            if event is not None and event.done:
                if event.succeeded:
                    self._wake(None)
                elif current_tag() is None:
                    # The error can only be had by a wait on the event, which a submission forbids
                    # (`NestedSyncError`), so there the future stays as it is until somebody looks outside.
                    self._wake(_failure_of(event))
        return self._state in (FutureState.COMPLETE, FutureState.FAILED)

    def result(self) -> T:
        """Return its result, or raise its error.

        Raises
        ------
        NotReadyError
            If it is not over: await it.
        """
        if self._error is not None:
            raise self._error.with_traceback(self._trace)
        if self._state is not FutureState.COMPLETE:
            raise NotReadyError(f"{self!r} has no result yet: await it")
        return self._result

    def __await__(self) -> Generator[Any, Any, T]:
        if self._state is FutureState.IDLE or self._state is FutureState.EXECUTING:
            try:
                loop = running_loop()
            except RuntimeError:
                raise UsageError(
                    "awaiting an operation needs a running event loop: await it in an async function "
                    "(asyncio.run(main()) in a script, top-level await in a notebook), or call op.sync()"
                ) from None
            yield from entering(loop)
            if self._state is FutureState.IDLE:
                self._start()
            while self._state is FutureState.EXECUTING:
                yield from self._look(loop)
                if self._state is FutureState.EXECUTING:
                    waiter = loop.create_future()
                    self._waiters.append(waiter)
                    # True if somebody is to wake it.
                    told = self._submission is None or self._watched is loop
                    if told and self._state is FutureState.EXECUTING:  # no other thread was quicker
                        yield from waiter.__await__()
        if self._error is not None:
            raise self._error.with_traceback(self._trace)
        return self._result

    def _start(self) -> None:
        with _waking:
            body, self._body = self._body, None  # captured arrays go with it
            if body is None:  # another thread has begun
                return
            self._state = FutureState.EXECUTING
        if nvtx.current_domain is not None:
            self._range = nvtx.start(f"{self._label} in flight")
        try:
            self._submission = submit(
                body, self.stream, self._policy, self._label, spawned=self._spawned
            )
        except BaseException as error:
            self._fail(lasting(error, self._label))
            nvtx.end(self._range)
            self._release_all()
            raise
        if self._waiters:
            self._release_all()  # tasks of other threads, to look for its end too: this loop may be closed

    def _look(self, loop: AnyLoop) -> Generator[Any, Any, None]:
        """Look for as long as there is patience, since short work is over soon; then have it watched."""
        submission = self._submission
        if submission is None:  # another thread submits it, or is about to tell
            return
        try:
            if self._patience_us and self._watched is None:
                event = submission.event
                if event is None:  # another thread has just seen the end, and is about to tell
                    return
                until = time.perf_counter() + self._patience_us * 1e-6
                over, ready = False, ready_in(loop)
                while not over:
                    # Where nobody else wants a turn, this one may take as long as another would.
                    if not ready and not turn_is_due():
                        over = _passes(event, LOOK_US)
                    if not over:
                        if time.perf_counter() > until:
                            return
                        yield from turn(loop)
                        if self._state is not FutureState.EXECUTING or self._watched is not None:
                            return
                        over = event.succeeded
                self._wake(None)
        finally:  # also where the task was cancelled: somebody has to see the end of the work
            end = submission.event
            if (
                self._state is FutureState.EXECUTING
                and self._watched is not loop
                and end is not None
            ):
                of_this_process(self.stream.device).watch(end, self._wake)
                self._watched = loop  # another loop may have been closed since

    def _wake(self, error: BaseException | None) -> None:
        """Called by who sees its end: the device, from any thread, or a task. The first counts."""
        with _waking:
            submission, self._submission = self._submission, None
        if submission is None:
            return
        if self._range is not None:
            self._range.end()
        submission.settle()
        if error is None:
            try:
                self._result = submission.deliver()
            except Exception as failure:  # noqa: BLE001 - it is the awaiter's
                error = failure
        if error is None:
            self._state = FutureState.COMPLETE
        else:
            self._fail(submission.blame(error))
        if self._waiters:
            self._release_all()

    def _fail(self, error: BaseException) -> None:
        """What whoever awaits it gets, each without the frames of those before: they would live as long."""
        self._error, self._trace = error, error.__traceback__
        self._state = FutureState.FAILED

    def _release_all(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            try:
                waiter.get_loop().call_soon_threadsafe(_release, waiter)
            except RuntimeError:  # the loop has been closed: nobody waits any more
                continue


def _failure_of(event: Event) -> BaseException | None:
    """Return the error behind an event that is done and did not succeed."""
    try:
        event.synchronize()
    except DeviceError as error:
        return error
    return None  # it has passed between the two looks


def _passes(event: Event, us: float) -> bool:
    """Tell whether an event passes within `us` microseconds of the host's time."""
    end = time.perf_counter() + us * 1e-6
    while not event.succeeded:
        if time.perf_counter() >= end:
            return False
    return True


def _release(waiter: AnyWaiter) -> None:
    if not waiter.done():  # it is done where the task was cancelled
        waiter.set_result(None)
