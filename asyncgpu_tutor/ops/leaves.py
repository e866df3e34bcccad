"""Operations that are made of no others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, borrowed_in
from asyncgpu_tutor.errors import ArrayDTypeError, UseAfterMoveError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.run import ExecutionContext, check_out

T = TypeVar("T")


class Value(DeviceOp[T]):
    """Does no GPU work and yields what it was given."""

    __slots__ = ("_item",)

    def __init__(self, item: T) -> None:
        super().__init__("value")
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
        super().__init__("with_context", sys._getframe(2))
        self._function = function

    def _enqueue(self, context: ExecutionContext) -> T:
        return evaluate(as_op(self._function(context), self._function), context)


def _kind(thing: object) -> str:
    return "an operation" if isinstance(thing, DeviceOp) else type(thing).__name__


class Download(DeviceOp[npt.NDArray[Any]]):
    """A copy to the host, into `out` if there is one; takes the array."""

    __slots__ = ("_array", "_out", "_ran", "_share")

    def __init__(self, array: DeviceArray, out: npt.NDArray[Any] | None = None) -> None:
        if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            several = isinstance(array, tuple)
            raise ArrayDTypeError(
                f"d2h copies a DeviceArray to the host, and got {_kind(array)}. "
                + "A launch yields all its arrays: take the one that it writes, as with launch.output(). "
                * several
                + "Call unpartition() on a Partition; use op.to_host() on an operation."
            )
        if out is not None:
            array._check()
            check_out(array, out)  # a wrong call moves nothing
        array._spend("into d2h()")
        frame = sys._getframe(2)
        # What DeviceOp's constructor does, without a call of it.
        self._label = "d2h"
        self._where = frame.f_code
        self._at = frame.f_lasti
        self._used = False
        self._array = array
        self._share = array._share  # counted once more while this lives
        self._ran = False
        self._out = out

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in((self._array,))

    def _yields(self) -> str:
        return f"{self._array.shape} {self._array.dtype} on the host"

    def _enqueue(self, context: ExecutionContext) -> npt.NDArray[Any]:
        array = self._array
        if self._ran and array.mode == "owned":
            raise UseAfterMoveError(
                f"array {array.name!r} was moved into an earlier run of d2h(). Build the operation again, "
                "with what yields the array."
            )
        self._ran = True
        if context._run.captures:
            context.on_failed_capture(self._undo)
        context._keep.append(self)  # and with it the array, and what counts a shared one
        return context._download(array, self._out)

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
    return WithContext(function)
