"""Factories for checks: in which cases an answer is tried, and what has to be right in each of them.

Cases are rows of a table. Words such as ``"n={}"`` turn a row into what the learner reads.
"""

import math
from collections.abc import Callable, Sequence, Sized
from string import Formatter
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.sandbox import tried
from asyncgpu_course.checks.schedule import below
from asyncgpu_course.internals import count

Check = Callable[[Any, Any], float | None]
Judge = Callable[..., float | None]
TrialRows = Sequence[tuple[Any, ...]]


class _Words(Formatter):
    """Words about a row, in which ``"{:job}"`` counts, as in "1 job" and "2 jobs"."""

    def format_field(self, value: Any, format_spec: str) -> str:
        number = len(value) if isinstance(value, Sized) else value
        return count(number, format_spec) if format_spec else str(value)


def said(words: str, row: tuple[Any, ...]) -> str:
    """The case of a row in words, in which ``{n}`` is the length of the row."""
    return _Words().format(words, *row, n=len(row))


def counted(did: str, found: int, noun: str, right: int, why: str = "") -> None:
    """Something was done as often as it should be: ``counted("it took", 3, "round", 2, "...")``."""
    cause = f"{did} {count(found, noun)}, and {right} is right"
    must(found == right, f"{cause}: {why}" if why else cause)


def cases(judge: Judge, rows: TrialRows, words: str) -> Check:
    """A check that gives the answer, the solution's and each row to a judge. The last row has the score."""

    def judge_answer(mine: Any, model: Any) -> float | None:
        score = None
        for row in rows:
            with case(said(words, row)):
                score = judge(mine, model, *row)
        return score

    return judge_answer


def in_late_memory(judge: Judge, *row: Any, turns: int = 0) -> Check:
    """A hostile check of a row, in memory that tells other threads of a write as late as CUDA allows.

    Of an answer with a loop of more `turns`, if they are given, nothing is said: its threads look without
    letting others on.
    """

    def judge_answer(mine: Any, model: Any) -> float | None:
        late = "memory that shows others each write late (so a fence is missing, too narrow, or on the wrong "
        if turns:
            cast(Any, agt.current_device()).step_budget = turns
        try:
            with case(late + "side of a flag, or a barrier is missing)"):
                return judge(mine, model, *row)
        except Rejected as rejected:
            if turns and isinstance(rejected.__cause__, agt.errors.RunawayKernelError):
                return None
            raise

    return judge_answer


def runs(run: Callable[..., Any], judge: Judge, rows: TrialRows, words: str) -> Check:
    """A check that calls `run` with the answer and each row, as `tried` does. The last row has the score.

    The judge gets what comes of the run, and the row. A rejection is drawn beside the solution's timeline.
    """

    def judged(mine: Any, model: Any, *row: Any) -> float | None:
        with tried(run, mine, model, *row) as found:
            return judge(found, *row)

    return cases(judged, rows, words)


def timed(
    run: Callable[..., Any], rows: TrialRows, words: str, goal: float = math.inf, hint: str = ""
) -> Check:
    """A check that calls `run`, which judges the answer, with each row. The last has to beat the goal."""

    def judge(found: Any, *row: Any) -> float | None:
        return below(goal, found.trace, hint) if row == rows[-1] else None

    return runs(run, judge, rows, words)
