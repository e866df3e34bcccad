"""Operations that are made of no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, borrowed_in
from asyncgpu_tutor.errors import ArrayDTypeError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.run import ExecutionContext, check_out

__all__ = ["Download", "Value", "WithContext", "value", "with_context"]

T = TypeVar("T")


class Value(DeviceOp[T]):
    """Does no GPU work and yields what it was given."""

    given_label = "value"

    def __init__(self, item: T) -> None:
        self.item = item

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        return borrowed_in((self.item,))

    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work; see `DeviceOp`."""
        return self.item


class WithContext(DeviceOp[T]):
    """Built by a function once its stream is known."""

    given_label = "with_context"

    def __init__(self, function: Callable[[ExecutionContext], DeviceOp[T]]) -> None:
        self.function = function

    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work; see `DeviceOp`."""
        return evaluate(as_op(self.function(context), self.function), context)


def _kind(thing: object) -> str:
    return "an operation" if isinstance(thing, DeviceOp) else type(thing).__name__


class Download(DeviceOp[npt.NDArray[Any]]):
    """A copy to the host, into `out` if there is one; takes the array."""

    given_label = "d2h"

    def __init__(self, array: DeviceArray, out: npt.NDArray[Any] | None = None) -> None:
        if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            several = isinstance(array, tuple)
            raise ArrayDTypeError(
                f"d2h copies a DeviceArray to the host, and got {_kind(array)}. "
                + "A launch yields all its arrays: pick one, as with op.last(). " * several
                + "Call unpartition() on a Partition; use op.to_host() on an operation."
            )
        if out is not None:
            array.check()  # a wrong call moves nothing
            check_out(array, out)
        self.array = array.take("into d2h()")
        self.out = out

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        return borrowed_in((self.array,))

    def enqueue(self, context: ExecutionContext) -> npt.NDArray[Any]:
        """Enqueue the work; see `DeviceOp`."""
        handle = context.copy_to_host(self.array.take("into an earlier run of d2h()"), self.out)
        return cast(npt.NDArray[Any], handle)  # the receiver gets the array itself


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
