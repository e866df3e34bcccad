"""Answers that are to return an operation: what building it may do, and what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from asyncgpu_tutor.exercises.exercise import Rejected, compared
from asyncgpu_tutor.exercises.schedule import lazy
from asyncgpu_tutor.exercises.trial import observe
from asyncgpu_tutor.ops import DeviceOp
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["built"]


def built(name: str, answer: Callable[..., Any], expected: Trace, *args: Any) -> DeviceOp[Any]:
    """The operation that an answer describes, without having run anything.

    Parameters
    ----------
    name : str
        Of the answer, for the message.
    answer : callable
        The learner's function; called with `args`.
    expected : Trace
        A run of the solution's operation, to be drawn beside what was run too early.
    """
    building = observe(answer, *args)
    with compared(building.trace, expected):
        lazy(building.trace)
    op = building.result
    if not isinstance(op, DeviceOp):
        raise Rejected(f"`{name}` should return an operation, and returned {type(op).__name__}")
    return cast(DeviceOp[Any], op)
