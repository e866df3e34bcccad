"""For answers that return an operation: building it runs nothing, and it is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.schedule import lazy
from asyncgpu_tutor.exercises.exercise import Rejected, compared
from asyncgpu_tutor.exercises.sandbox import observe


def built(
    name: str, answer: Callable[..., Any], expected: agt.Trace, *args: Any, cure: str = ""
) -> agt.DeviceOp[Any]:
    """The operation that an answer, called with `args`, describes without having run anything.

    A run of the solution's, `expected`, is drawn beside what was run too early. The `cure` ends what is said
    to an answer that returns something else.
    """
    building = observe(answer, *args)
    with compared(building.trace, expected):
        lazy(building.trace)
    op = building.result
    if not isinstance(op, agt.DeviceOp):
        raise Rejected(
            f"`{name}` should return an operation, and returned {type(op).__name__}{cure}"
        )
    return cast(agt.DeviceOp[Any], op)
