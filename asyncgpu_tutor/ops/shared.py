"""Operations that run at most once: shared ones, and the parts of an unzipped one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import in_containers
from asyncgpu_tutor.devices.protocol import once_lock
from asyncgpu_tutor.errors import (
    CaptureError,
    DeviceMismatchError,
    UsageError,
    UseAfterMoveError,
    whole,
)
from asyncgpu_tutor.ops.operation import DeviceOp, evaluate
from asyncgpu_tutor.run.capture import CaptureStream
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.last_use import LastUse
from asyncgpu_tutor.run.submission import lasting

T = TypeVar("T")


class _Once(DeviceOp[T]):
    """Runs its source when first used, and remembers the handles and where that was.

    A user on another stream makes its stream wait for an event, so it never races the source.
    """

    __slots__ = ("_alone", "_bodies", "_error", "_handles", "_length", "_source", "_use")

    def __init__(self, source: DeviceOp[T], frame: FrameType, alone: bool = False) -> None:
        self._built(source._label, frame)
        source._used = True
        self._alone = alone  # there is one user, and mostly nobody else comes
        self._source: DeviceOp[T] | None = source
        self._length = source._arity()
        self._use: LastUse | None = None
        self._handles: T | None = None
        # What the source raised, for every user, with its own notes and traceback.
        self._error: tuple[Exception, Sequence[str], TracebackType | None] | None = None

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return () if self._source is None else (self._source,)

    def _arity(self) -> int | None:
        return self._length

    def _yields(self) -> str:
        return "" if self._source is None else self._source._yields()

    def _enqueue(self, context: ExecutionContext) -> T:
        mine = False
        if self._use is None:
            with once_lock:
                mine = self._use is None
                if mine:
                    self._run_source(context)
        use = self._use
        assert use is not None
        if self._error is not None:
            error, notes, trace = self._error
            # Without what earlier users added: their frames would live as long.
            error.__notes__ = [*notes]
            raise error.with_traceback(trace)
        if use.stream is not context.stream:
            self._follow(use, context)
        if self._bodies != context._run.bodies[: len(self._bodies)]:
            raise CaptureError(
                f"{self.label!r} runs at most once, and that is in a body of a decision, which may be left "
                "out. So there is no result outside of that body: use it before the decision, or build the "
                "operation once for each place"
            )
        context.keep(self._handles)
        if mine:
            return cast(T, self._handles)
        return context.seen(self._handles)

    def _follow(self, use: LastUse, context: ExecutionContext) -> None:
        """The source ran on another stream: wait for it there."""
        stream = use.stream
        if stream.device is not context.device:
            raise DeviceMismatchError(
                f"{self.label!r} ran on {stream.device.name}, and is used here on another device, called "
                f"{context.device.name}: an operation is shared within one device"
            )
        if isinstance(stream, CaptureStream) and stream.capture is not context._run:
            raise CaptureError(
                f"{self.label!r} ran inside a capture, so outside of it there is no result: use what a "
                "launch yields, build the operation again, or run it once before the first capture"
            )
        use.hold_back(context.stream)

    def _run_source(self, context: ExecutionContext) -> None:
        source, self._source = self._source, None  # what it captured can go
        if source is None:
            raise UsageError(
                f"{self.label!r} needs its own result: a function inside of it uses it again, or another rank"
            )
        context.on_failed_capture(partial(self._forget, source))
        self._bodies = context._run.bodies
        use = LastUse(context.stream)
        try:
            self._handles = self._adopt(evaluate(source, context))
            # Others wait for what is enqueued by now, not for what follows here.
            if not self._alone:
                use.mark()
        except CaptureError:
            self._source = source  # nothing has run: as it says, it can be prepared instead
            raise
        except BaseException as error:
            # Every user of it has to get it. It has no name here: this frame is a part of the error, so a
            # name would keep both alive after a failed capture, and with them the arrays.
            self._error = (
                lasting(error, self._label),
                tuple(getattr(error, "__notes__", ())),
                error.__traceback__ if isinstance(error, Exception) else None,
            )
            self._use = use
            raise
        self._use = use

    def _forget(self, source: DeviceOp[T]) -> None:
        """Nothing has run after all."""
        self._source = source
        self._use = self._handles = self._error = None

    def _ran_before(self, context: ExecutionContext) -> bool:
        """Tell whether this is a capture and the source ran outside of it, so that it does nothing here."""
        use = self._use
        outside = use is not None and not isinstance(use.stream, CaptureStream)
        return outside and context._run.captures

    def _adopt(self, handles: T) -> T:
        return handles


class SharedOp(_Once[T]):
    """Execute once, use many times."""

    __slots__ = ()

    def _adopt(self, handles: T) -> T:
        return in_containers(_as_shared, handles)

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


class _Entry(DeviceOp[Any]):
    """One entry of a tuple that an operation yields."""

    __slots__ = ("_index", "_ran", "_source")

    def __init__(self, source: _Once[Any], index: int, frame: FrameType) -> None:
        self._built(source._label, frame)
        self._used = True  # the source warns, where none of its entries is ever used
        self._source = source
        self._index = index
        self._ran = False  # outside of captures

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return (self._source,)

    def _enqueue(self, context: ExecutionContext) -> Any:
        source = self._source
        source._used = True
        if self._ran and source._ran_before(context):
            raise CaptureError(
                f"{self._label!r} ran before, and runs at most once, so a capture of it would do nothing: "
                "build the operation again for the capture"
            )
        found = _pick(source._enqueue(context), self._index, self._label)
        self._ran = self._ran or not context._run.captures
        return found


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


def entry(op: DeviceOp[Any], index: int, frame: FrameType) -> DeviceOp[Any]:
    """One entry of a tuple-valued operation, which runs at most once."""
    if op._arity() == 0:
        raise UsageError(f"{op.label!r} yields an empty tuple: it has no entry")
    source = _Once(op, frame, alone=True)
    one = _Entry(source, index, frame)
    source._used, one._used = True, False  # so this one warns, where it is never used
    return one


def unzip(op: DeviceOp[Any], count: int | None, frame: FrameType) -> tuple[DeviceOp[Any], ...]:
    """One operation for each entry of a tuple-valued one, which runs at most once."""
    count = None if count is None else whole("the number of entries", count, 0)
    known = op._arity()
    if known is not None and count is not None and known != count:
        raise UsageError(f"{op.label!r} yields {known} entries, and {count} were asked for")
    length = known if known is not None else count
    if length is None:
        raise UsageError(
            f"how many entries {op.label!r} yields is not known before it runs: say unzip(2)"
        )
    source = _Once(op, frame)
    return tuple(_Entry(source, index, frame) for index in range(length))
