"""Checks of answers that read something out of a trace or an export."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from asyncgpu_tutor.exercises.answers import slips
from asyncgpu_tutor.exercises.checks.results import brief, is_number
from asyncgpu_tutor.exercises.exercise import Rejected, case, must
from asyncgpu_tutor.exercises.sandbox import call

# In words, and what makes the arguments anew: an answer may change what it is given.
Case = tuple[str, Callable[[], tuple[Any, ...]]]

_POWERS = (-9, -6, -3, -2, 2, 3, 6, 9)  # of ten, for wrong units


def reads(
    exercise: str, name: str, wanted: str, cases: Callable[[], Sequence[Case]]
) -> Callable[[Any, Any], None]:
    """A check that a function of this name gives, of each case, what the solution gives.

    `wanted` is what it returns, in words, such as ``"(start, end)"``. Whoever returns the same as a usual
    mistake is told which one.
    """

    def check(mine: Any, model: Any) -> None:
        must(callable(mine), f"`{name}` should be a function, and is {brief(mine)}")
        for words, make in cases():
            expected = model(*make())
            with case(words):
                got = call(mine, *make())
                alike = (w for w, wrong in slips(exercise, name) if _same(got, wrong(*make())))
                same(f"`{name}`", got, expected, wanted, alike)

    return check


def same(name: str, got: object, expected: Any, wanted: str, why: Iterable[str] = ()) -> None:
    """Numbers to a thousandth or rounded as a page would, text as it is, and as many as are wanted.

    A wrong answer is told the first of the reasons `why`, or else what the numbers tell by themselves.
    """
    mine, parts = _parts(got), _parts(expected)
    if len(mine) != len(parts):
        raise Rejected(f"{name} should return {wanted}, and returned {brief(got)}")
    if not _same(got, expected):
        due = f"{name} should return {wanted}, here {_shown(parts)}, and returned {_shown(mine)}"
        reason = next(iter(why), "") or _reason(mine, parts, wanted)
        raise Rejected(f"{due}. {reason}" if reason else due)


def _parts(value: Any) -> Sequence[Any]:
    given = value.tolist() if hasattr(value, "tolist") else value  # an array may come out, too
    return cast(Sequence[Any], given if isinstance(given, tuple | list) else (given,))


def _same(got: Any, expected: Any) -> bool:
    mine, parts = _parts(got), _parts(expected)
    return len(mine) == len(parts) and all(map(_fits, mine, parts))


def _fits(one: object, right: Any) -> bool:
    if isinstance(right, str) or not is_number(one):
        return isinstance(one, str) and one == right
    given, places = float(cast(Any, one)), (0, 1, 2) if abs(right) >= 10 else (1, 2)
    rounded = any(math.isclose(given, round(right, place), abs_tol=1e-9) for place in places)
    return rounded or math.isclose(given, right, rel_tol=1e-3, abs_tol=1e-3)


def _shown(parts: Sequence[Any]) -> str:
    shown = [f"{p:.6g}" if is_number(p) else repr(p) for p in parts]
    return f"({', '.join(shown)})" if len(shown) > 1 else shown[0]


def _reason(mine: Sequence[Any], parts: Sequence[Any], wanted: str) -> str:
    """Say what is wrong with numbers, as far as they tell by themselves; else nothing."""
    if len(parts) > 1 and _same(mine[::-1], parts):
        return "That's the right answer the wrong way round"
    both = [(a, b) for a, b in zip(mine, parts, strict=True) if is_number(a) and is_number(b) and a]
    pairs = [(float(a), float(b)) for a, b in both]
    if len(pairs) == len(parts) and all(b for _, b in pairs):
        for power in _POWERS:
            if all(math.isclose(a, b * 10.0**power, rel_tol=5e-3) for a, b in pairs):
                much = f"{10 ** abs(power):,} times too {'much' if power > 0 else 'little'}"
                unit = "a fraction is not yet percent" if "%" in wanted else "look at the unit"
                return f"That's {much}: {unit}"
    right = [str(i) for i, pair in enumerate(zip(mine, parts, strict=True), 1) if _fits(*pair)]
    return f"Of {len(parts)}, number {' and '.join(right)} is right" if right else ""
