"""Checks of answers that read something out of a trace or an export."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from asyncgpu_tutor.exercises.checks.results import brief, is_number
from asyncgpu_tutor.exercises.exercise import case, must
from asyncgpu_tutor.exercises.sandbox import call

# In words, and what makes the arguments anew: an answer may change what it is given.
Case = tuple[str, Callable[[], tuple[Any, ...]]]


def reads(
    name: str, wanted: str, cases: Callable[[], Sequence[Case]]
) -> Callable[[Any, Any], None]:
    """A check that a function gives, of each case, what the solution gives.

    `wanted` is what it returns, in words, such as ``"(start, end)"``.
    """

    def check(mine: Any, model: Any) -> None:
        must(callable(mine), f"`{name}` should be a function, and is {brief(mine)}")
        for words, make in cases():
            expected = model(*make())
            with case(words):
                same(f"`{name}`", call(mine, *make()), expected, wanted)

    return check


def same(name: str, got: object, expected: Any, wanted: str) -> None:
    """Numbers within a thousandth, text as it is, and as many of them as are wanted."""
    parts = cast(tuple[Any, ...], expected) if isinstance(expected, tuple) else (expected,)
    mine = cast(Sequence[object], got) if isinstance(got, tuple | list) else (got,)
    returned = f"{name} should return {wanted}, and returned {brief(got)}"
    must(len(mine) == len(parts), returned)
    for one, right in zip(mine, parts, strict=True):
        if isinstance(right, str):
            fits = one == right
        else:
            fits = is_number(one) and math.isclose(
                float(cast(Any, one)), float(right), rel_tol=1e-3, abs_tol=1e-3
            )
        due = ", ".join(repr(p) if isinstance(p, str) else f"{p:.6g}" for p in parts)
        must(fits, f"{name} says {brief(got)}, and the file says {wanted} = {due}")
