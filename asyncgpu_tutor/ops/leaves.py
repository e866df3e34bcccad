"""Operations that are made of no others."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, borrowed_in
from asyncgpu_tutor.devices.protocol import Share
from asyncgpu_tutor.errors import NotAnOperationError, UseAfterMoveError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.run.context import ExecutionContext

T = TypeVar("T")


class Value(DeviceOp[T]):
    """Does no GPU work and yields what it was given."""

    __slots__ = ("_item",)

    def __init__(self, item: T) -> None:
        self._built("value", sys._getframe(2))
        self._used = True  # it describes no work that could have been forgotten
        self._item = item

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in((self._item,))

    def _yields(self) -> str:
        return type(self._item).__name__

    def _enqueue(self, context: ExecutionContext) -> T:
        return self._item


class WithContext(DeviceOp[T]):
    """Built by a function once its stream is known."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[ExecutionContext], DeviceOp[T]]) -> None:
        self._built("with_context", sys._getframe(2))
        self._function = function

    def _enqueue(self, context: ExecutionContext) -> T:
        return evaluate(as_op(self._function(context), self._function), context)


class Download(DeviceOp[npt.NDArray[Any]]):
    """A copy to the host, into `out` if there is one; takes the array."""

    __slots__ = ("_array", "_out", "_ran", "_share")

    _array: DeviceArray
    _out: npt.NDArray[Any] | None
    _share: Share | None  # by which it counts as one more shared handle while it lives
    _ran: bool

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in((self._array,))

    def _yields(self) -> str:
        return f"{self._array.shape} {self._array.dtype} on the host"

    def _enqueue(self, context: ExecutionContext) -> npt.NDArray[Any]:
        array = self._array
        ran, self._ran = self._ran, True
        if ran and array.mode == "owned":
            raise UseAfterMoveError(
                f"array {array.name!r} was moved into an earlier run of d2h(). Build the operation again, "
                "from the operation that yields the array."
            )
        if context._run.captures:
            context.on_failed_capture(self._undo)
        context._keep.append(array._memory)
        context._run.operations.append(self)
        try:
            return context._download(array, self._out)
        except Exception:
            self._ran = ran  # a run that was refused has given nothing away
            raise

    def _undo(self) -> None:
        self._ran = False


def value(item: T) -> DeviceOp[T]:
    """An operation that does no GPU work and yields `item`: the baton between stages."""
    return Value(item)


def with_context(function: Callable[[ExecutionContext], DeviceOp[T]]) -> DeviceOp[T]:
    """An operation that `function` builds when its stream is known.

    Parameters
    ----------
    function : callable
        Gets the `ExecutionContext`, whose verbs enqueue work; returns a `DeviceOp`.
    """
    if not callable(function):
        got = f"{function!r:.99}: write with_context(lambda context: ...)"
        raise NotAnOperationError(f"with_context takes a function, and got {got}")
    return WithContext(function)
