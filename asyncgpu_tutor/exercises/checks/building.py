"""For answers that return an operation: building it runs nothing, and it is one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.schedule import each_once, lazy
from asyncgpu_tutor.exercises.exercise import compared, must
from asyncgpu_tutor.exercises.sandbox import Observed, observe


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
    cause = f"`{name}` should return an operation, and returned {type(op).__name__}{cure}"
    must(isinstance(op, agt.DeviceOp), cause)
    return cast(agt.DeviceOp[Any], op)


@contextmanager
def run_of(
    name: str,
    mine: Callable[..., Any],
    model: Callable[..., Any],
    *args: Any,
    cure: str = "",
    once: Sequence[str] = (),
) -> Generator[Observed[Any]]:
    """A run of the operation that an answer describes; see `built`. Pieces named in `once` ran once each.

    Whatever is rejected in the block gets the timelines of it and of the solution's.
    """
    expected = observe(model(*args).sync).trace
    run = observe(built(name, mine, expected, *args, cure=cure).sync)
    with compared(run.trace, expected):
        each_once(run.trace, *once)
        yield run
