"""Operations that run at most once: shared ones, and the parts of an unzipped one."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, TypeVar, cast

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import HostArray, in_containers
from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.errors import CaptureError, UsageError, UseAfterMoveError
from asyncgpu_tutor.ops.operation import DeviceOp, evaluate
from asyncgpu_tutor.run import CaptureStream, ExecutionContext, Submission

__all__ = ["SharedOp", "entry", "once_lock", "seen_by", "unzip"]

T = TypeVar("T")


# One lock for all: it is held while a source is submitted, which hardly ever happens on two threads at once.
once_lock = threading.RLock()


class _Once(DeviceOp[T]):
    """Runs its source when first used, and remembers the handles, the stream and an event.

    A user on another stream makes its stream wait for the event, so it never races the source.

    Parameters
    ----------
    source : DeviceOp
    marked : bool
        Record the event at once. Where a second user is unlikely it is recorded when one comes, behind
        whatever the stream has been given since.
    """

    def __init__(self, source: DeviceOp[T], *, marked: bool = True) -> None:
        self.source: DeviceOp[T] | None = source
        self.given_label = source.given_label or source.label
        self._length = source.arity()
        self._marked = marked
        self._stream: Stream | None = None
        self._event: Event | None = None
        self._handles: T | None = None
        self._error: BaseException | None = None

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """See `DeviceOp`."""
        return () if self.source is None else (self.source,)

    def arity(self) -> int | None:
        """See `DeviceOp`."""
        return self._length

    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work; see `DeviceOp`."""
        mine = False
        if self._stream is None:
            with once_lock:
                mine = self._stream is None
                if mine:
                    self._run_source(context)
        if self._error is not None:
            raise self._error
        if self._stream is not context.stream:
            self._follow(context)
        context.keep_alive(self._handles)
        if mine:
            return cast(T, self._handles)
        return cast(T, in_containers(partial(seen_by, context.submission), self._handles))

    def _follow(self, context: ExecutionContext) -> None:
        """The source ran on another stream: wait for it there."""
        stream = self._stream
        assert stream is not None
        if stream.device is not context.device:
            raise UsageError(
                f"{self.label!r} ran on {stream.device.name}, and is used here on "
                f"{context.device.name}: an operation is shared within one device"
            )
        if isinstance(stream, CaptureStream) and not stream.shares_capture_with(context.stream):
            raise CaptureError(
                f"{self.label!r} ran inside of a capture, so outside of it there is no result: use what a "
                "launch yields, build the operation again, or run it once before the first capture"
            )
        if self._event is None:
            self._event = stream.record()
        context.stream.wait_event(self._event)

    def _run_source(self, context: ExecutionContext) -> None:
        source, self.source = self.source, None  # what it captured can go
        if source is None:
            raise UsageError(
                f"{self.label!r} needs its own result: a function inside of it uses it again"
            )
        context.on_failed_capture(partial(self._forget, source))
        try:
            self._handles = self._adopt(evaluate(source, context))
            if self._marked:
                self._event = context.stream.record()
        except CaptureError:
            self.source = source  # nothing has run: as the message says, it can be prepared instead
            raise
        except BaseException as error:  # noqa: BLE001 - every user of it has to get it
            self._error = error
        self._stream = context.stream

    def _forget(self, source: DeviceOp[T]) -> None:
        """Nothing has run after all."""
        self.source = source
        self._stream = self._event = self._handles = self._error = None

    def ran_before(self, context: ExecutionContext) -> bool:
        """Whether this is a capture, and the source has run outside, so that it will do nothing here."""
        outside = self._stream is not None and not isinstance(self._stream, CaptureStream)
        return outside and isinstance(context.stream, CaptureStream)

    def _adopt(self, handles: T) -> T:
        return handles


class SharedOp(_Once[T]):
    """Execute once, use many times."""

    def _adopt(self, handles: T) -> T:
        return cast(T, in_containers(_as_shared, handles))

    def shared(self) -> SharedOp[T]:
        """Itself."""
        return self


def _as_shared(handle: Any) -> Any:
    if isinstance(handle, DeviceArray):
        return handle.share() if handle.mode == "owned" else handle
    if isinstance(handle, Partition):
        raise UsageError(
            "a partition is for writing and cannot be shared: call unpartition() before shared()"
        )
    return handle


def seen_by(submission: Submission[Any], handle: Any) -> Any:
    """The handle, as it is to a submission that only uses it."""
    # The copy to the host belongs to the first user, which may go on long after it. This one waits for
    # the source only.
    if isinstance(handle, HostArray):
        return handle.seen_by(submission.completed, submission.describe)
    return handle


class _Entry(DeviceOp[Any]):
    """One entry of a tuple that an operation yields."""

    def __init__(self, source: _Once[Any], index: int) -> None:
        self.source = source
        self.index = index
        self.given_label = source.given_label
        self._used = False  # outside of captures

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """See `DeviceOp`."""
        return (self.source,)

    def enqueue(self, context: ExecutionContext) -> Any:
        """Enqueue the work; see `DeviceOp`."""
        if self._used and self.source.ran_before(context):
            raise _nothing_to_capture(self.given_label)
        found = _pick(self.source.enqueue(context), self.index, self.given_label)
        self._used = self._used or not isinstance(context.stream, CaptureStream)
        return found


class _Single(_Once[Any]):
    """The only entry that is asked for: `_Once` and `_Entry` in one object."""

    def __init__(self, source: DeviceOp[Any], index: int) -> None:
        super().__init__(source, marked=False)
        self.index = index
        self._length = None

    def enqueue(self, context: ExecutionContext) -> Any:
        """Enqueue the work; see `DeviceOp`."""
        if self.ran_before(context):
            raise _nothing_to_capture(self.given_label)
        return _pick(super().enqueue(context), self.index, self.given_label)


def _nothing_to_capture(label: str) -> CaptureError:
    return CaptureError(
        f"{label!r} ran before, and runs at most once, so a capture of it would do nothing: build the "
        "operation again for the capture"
    )


def _pick(handles: Any, index: int, label: str) -> Any:
    if not isinstance(handles, tuple):
        raise UsageError(
            f"{label!r} yields {type(handles).__name__}, not a tuple: it has no entry {index}"
        )
    entries = cast(tuple[Any, ...], handles)
    if not -len(entries) <= index < len(entries):
        raise UsageError(f"{label!r} yields {len(entries)} entries: there is no entry {index}")
    found = entries[index]
    array = found.array if type(found) is Partition else found
    if type(array) is DeviceArray and array.moved:
        raise UseAfterMoveError(
            f"the source of {label!r} runs at most once, and its array {array.name!r} went to an "
            "earlier run: build the operation again, or use shared() for a result that is needed more "
            "than once"
        )
    return found


def entry(op: DeviceOp[Any], index: int) -> DeviceOp[Any]:
    """One entry of a tuple-valued operation, which runs at most once."""
    if op.arity() == 0:
        raise UsageError(f"{op.label!r} yields an empty tuple: it has no entry")
    return _Single(op, index)


def unzip(op: DeviceOp[Any], count: int | None) -> tuple[DeviceOp[Any], ...]:
    """One operation for each entry of a tuple-valued one, which runs at most once."""
    known = op.arity()
    if known is not None and count is not None and known != count:
        raise UsageError(f"{op.label!r} yields {known} entries, and {count} were asked for")
    length = known if known is not None else count
    if length is None:
        raise UsageError(
            f"how many entries {op.label!r} yields is not known before it runs: say unzip(2)"
        )
    source: _Once[Any] = _Once(op)
    return tuple(_Entry(source, index) for index in range(length))
