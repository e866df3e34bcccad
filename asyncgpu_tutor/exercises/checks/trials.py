"""Factories for checks: in which cases an answer is tried, and what has to be right in each of them.

Cases are rows of a table. Words such as ``"n={}"`` turn a row into what the learner reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.results import brief, is_number
from asyncgpu_tutor.exercises.exercise import Rejected, case, must
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import tried

Check = Callable[[Any, Any], float | None]
Judge = Callable[..., float | None]
Rows = Sequence[tuple[Any, ...]]


class _Thing:
    """Something in a row: ``"{:job}"`` counts it, as in "1 job" and "2 jobs"."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __format__(self, noun: str) -> str:
        number = len(self._thing) if isinstance(self._thing, Sized) else self._thing
        return count(number, noun) if noun else str(self._thing)


def said(words: str, row: tuple[Any, ...]) -> str:
    """The case of a row in words, in which ``{n}`` is the length of the row."""
    return words.format(*map(_Thing, row), n=_Thing(len(row)))


def counted(did: str, found: int, noun: str, right: int, why: str = "") -> None:
    """Something was done as often as it should be: ``counted("it took", 3, "round", 2, "...")``."""
    cause = f"{did} {count(found, noun)}, and {right} is right"
    must(found == right, f"{cause}: {why}" if why else cause)


def text_of(name: str, answer: object, kind: str) -> str:
    """The answer, which has to be the text of this kind of code."""
    if not isinstance(answer, str):
        raise Rejected(f"`{name}` should be {kind}, and is {brief(answer)}")
    return answer


def tuple_of(found: object, number: int, should: str) -> tuple[Any, ...]:
    """The answer's tuple, which has to be of this length; `should` begins the cause."""
    parts = cast(tuple[Any, ...], found if isinstance(found, tuple) else ())
    came = f"one of {len(parts)}" if isinstance(found, tuple) else brief(found)
    must(isinstance(found, tuple) and len(parts) == number, should + came)
    return parts


def returned(name: str, got: object, right: int, meaning: str = "") -> None:
    """The function of this name has returned the right whole number."""
    cause = f"`{name}` should return {meaning}{right}, and returned {brief(got)}"
    must(is_number(got, whole=True) and got == right, cause)


def cases(judge: Judge, rows: Rows, words: str) -> Check:
    """A check that gives the answer, the solution's and each row to a judge. The last row has the score."""

    def check(mine: Any, model: Any) -> float | None:
        score = None
        for row in rows:
            with case(said(words, row)):
                score = judge(mine, model, *row)
        return score

    return check


def in_late_memory(judge: Judge, *row: Any, turns: int = 0) -> Check:
    """A hostile check of a row, in memory that tells other threads of a write as late as CUDA allows.

    Of an answer with a loop of more `turns`, if they are given, nothing is said: its threads look without
    letting others on.
    """

    def check(mine: Any, model: Any) -> float | None:
        late = "memory that shows others each write late (so a fence is missing, too narrow, or on the wrong "
        if turns:
            hasty(turns)
        try:
            with case(late + "side of a flag, or a barrier is missing)"):
                return judge(mine, model, *row)
        except Rejected as rejected:
            if turns and isinstance(rejected.__cause__, agt.errors.RunawayKernelError):
                return None
            raise

    return check


def hasty(turns: int) -> None:
    """Have the current device end a kernel with a loop of more turns."""
    cast(Any, agt.current_device()).step_budget = turns


def runs(run: Callable[..., Any], judge: Judge, rows: Rows, words: str) -> Check:
    """A check that calls `run` with the answer and each row, as `tried` does. The last row has the score.

    The judge gets what comes of the run, and the row. A rejection is drawn beside the solution's timeline.
    """

    def check(mine: Any, model: Any) -> float | None:
        score = None
        for row in rows:
            with tried(run, mine, model, *row, words=said(words, row)) as found:
                score = judge(found, *row)
        return score

    return check
