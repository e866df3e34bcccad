"""One run of one operation: submitted, executing, settled."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from asyncgpu_tutor.arrays.host import deliver
from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.errors import DeviceError, KernelFault, UpstreamError
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.scheduling import SchedulingPolicy
from asyncgpu_tutor.traces import nvtx as ranges
from asyncgpu_tutor.traces.spans.tag import Tag, Tagged, forbid_nested_wait

__all__ = ["Rerun", "Run", "Submission", "adopt", "in_flight", "submit", "synchronize", "wait"]

T = TypeVar("T")
Run = Callable[[ExecutionContext], T]

_numbers = itertools.count(1)
# Submissions that nobody has seen complete yet: they keep what the device still uses alive.
_in_flight: dict[int, Submission[Any]] = {}
REAP_ABOVE = 64
_reap_above = REAP_ABOVE


class Submission(Generic[T]):
    """One run of one operation.

    Attributes
    ----------
    number : int
        Unique in the process.
    label : str
        Name of the operation.
    stream : Stream
        Where it runs.
    blocking : bool
        Whether the host waits for it anyway.
    spawned : bool
        Whether it may outlive the code that started it.
    keep : list
        What must live until it has completed.
    kernels : list of str
        Names of the kernels that it launched, in order.
    """

    def __init__(self, label: str, stream: Stream, blocking: bool, spawned: bool) -> None:
        self.number = next(_numbers)
        self.label = label
        self.stream = stream
        self.blocking = blocking
        self.spawned = spawned
        self.keep: list[object] = []
        self.kernels: list[str] = []
        self.handles: T | None = None
        self.event: Event | None = None
        self._settled = False

    def describe(self) -> str:
        """For messages."""
        where = f"stream {self.stream.number} of {self.stream.device.name}"
        return f"operation {self.label!r} (#{self.number}, {where})"

    def completed(self) -> bool:
        """Whether the device is done with it. Never blocks."""
        return self._settled or (self.event is not None and self.event.done)

    @property
    def settled(self) -> bool:
        """Whether somebody has seen it complete."""
        return self._settled

    def renew(self, handles: T, keep: object) -> None:
        """It has completed, its event is recorded again, and `keep` has to live until that has passed."""
        self._settled = False
        self.handles = handles
        self.keep.append(keep)
        _in_flight[self.number] = self

    def settle(self) -> None:
        """It has completed: let go of what it kept."""
        self._settled = True
        self.keep.clear()
        _in_flight.pop(self.number, None)

    def deliver(self) -> T:
        """The result, with host arrays in place of handles. Once."""
        return cast(T, deliver(self.release()))

    def release(self) -> T:
        """The handles of the result. Once."""
        # A HostArray asks its submission whether it is ready. Were it kept here as well, only the garbage
        # collector would part the two, and pinned memory is too dear to wait for that.
        handles, self.handles = self.handles, None
        return cast(T, handles)

    @staticmethod
    def reclaim() -> None:
        """Memory is short: let go of what has completed without anybody looking."""
        _settle_retired()

    def blame(self, error: BaseException) -> BaseException:
        """The error of its work, told so that it names the operation and its kernels."""
        if not isinstance(error, DeviceError):
            return error
        names = ", ".join(dict.fromkeys(self.kernels)) or "none"
        told: DeviceError
        if isinstance(error, KernelFault | UpstreamError):
            told = error
            note = f"in {self.describe()}"
        else:
            told = type(error)(f"{self.describe()} failed: {error} (its kernels: {names})")
            told.__cause__ = error
            note = f"kernels that it launched: {names}"
        if note not in getattr(told, "__notes__", ()):
            told.add_note(note)
        return told


class Rerun(Submission[T]):
    """One run of what was captured: its result was made ready then, and is the same each time."""

    def deliver(self) -> T:
        """The result. Once."""
        return self.release()


def in_flight() -> int:
    """How many submissions nobody has seen complete yet."""
    return len(_in_flight)


def submit(
    run: Run[T],
    stream: Stream,
    policy: SchedulingPolicy | None,
    *,
    label: str,
    blocking: bool = False,
    spawned: bool = False,
) -> Submission[T]:
    """Run `run`, which enqueues work and returns handles, and mark the end of that work.

    Whatever `run` raises, what it had enqueued by then is kept alive until the device is done with it.
    """
    forbid_nested_wait(f"an operation ({label!r})")
    _reap()
    submission: Submission[T] = Submission(label, stream, blocking, spawned)
    with Tagged(Tag(submission.number, label)), ranges.span(label):
        try:
            submission.handles = run(ExecutionContext(stream, policy, submission))
        except Exception as error:
            error.add_note(f"while {submission.describe()} was being submitted")
            if isinstance(error, RecursionError):
                error.add_note(
                    "operations that are arguments of each other nest, and these nest too deeply: chain "
                    "them with and_then instead, which may be of any length"
                )
            raise
        finally:
            submission.event = stream.record()
            _in_flight[submission.number] = submission
    return submission


def adopt(label: str, stream: Stream, kernels: list[str], keep: object) -> Rerun[Any]:
    """A submission for work that was enqueued without one; `keep` lives until it has completed."""
    _reap()
    submission: Rerun[Any] = Rerun(label, stream, blocking=False, spawned=False)
    submission.kernels = kernels
    submission.keep.append(keep)
    submission.event = stream.record()
    _in_flight[submission.number] = submission
    return submission


def wait(submission: Submission[T]) -> T:
    """Block the host until the submission has completed, and hand over its result.

    Raises
    ------
    DeviceError
        If the device failed in it.
    """
    assert submission.event is not None
    try:
        submission.event.synchronize()
    except DeviceError as error:
        submission.settle()
        blamed = submission.blame(error)
        raise blamed from blamed.__cause__
    submission.settle()
    return submission.deliver()


def synchronize() -> None:
    """Block the host until the current device has nothing left to do."""
    try:
        current_device().synchronize()
    finally:
        _settle_retired()


def _settle_retired() -> None:
    for submission in list(_in_flight.values()):
        if submission.event is not None and submission.event.retired:
            submission.settle()


def _reap() -> None:
    """Let go of what completed unseen: results that nobody waited for, cancelled tasks.

    The next look comes when there is twice as much as this one left over, so looking stays cheap.
    """
    global _reap_above  # noqa: PLW0603 - as `_in_flight`
    if len(_in_flight) > _reap_above:
        _settle_retired()
        _reap_above = max(REAP_ABOVE, 2 * len(_in_flight))
