"""Exercises of 00_start_here: what each one checks."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count, permutations
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.device import ASIDE
from asyncgpu_course.checks.operations import JOB, filled, job
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.checks.results import in_order
from asyncgpu_course.checks.sandbox import Observed, no_pauses, observe
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import happens_before, lane_of


# ------------------------------------------------------------------ the slow one, made quick
def _trips(sizes: tuple[int, ...]) -> list[agt.DeviceOp[Any]]:
    """Operations that bring so many numbers back; the one that brings most takes least there."""
    ways = zip([agt.h2d(agt.pin(filled(n, 1))) for n in reversed(sizes)], sizes, strict=True)
    return [h2d.and_then(lambda _, n=n: agt.full(n, n / 1e3)).to_host() for h2d, n in ways]


def _right(answer: str, run: Observed, *sizes: int) -> None:
    in_order(answer, run.result, [filled(size, size / 1e3) for size in sizes])


def _all_once(answer: str, run: Observed, sizes: tuple[int, ...]) -> list[agt.types.Span]:
    """The copies of the results to the host: each is done once, all are in order, and nobody blocks."""
    results = schedule.results(run.trace, sizes)
    schedule.launches(run.trace, "d2h", len(sizes))
    schedule.never_blocks(run.trace)
    _right(answer, run, *sizes)
    return results


class _Task(asyncio.Task[Any]):
    """Of tasks in a set, a later one mostly comes first, as any set may have it."""

    places, place = count(-1, -1), 0

    def __hash__(self) -> int:
        self.place = self.place or next(self.places)
        return self.place


@patch.object(asyncio.tasks, "Task", _Task)
def _develop(answer: Callable[..., Any], *sizes: int) -> Observed:
    return observe(answer, _trips(sizes))


def _free(run: Observed, *sizes: int) -> None:
    """All are under way at the same time, and none has to wait for another."""
    results = _all_once("develop", run, sizes)
    schedule.all_in_flight(run.trace, sizes, len(sizes))
    for pair in permutations(results, 2):
        cause = f"two stand on {lane_of(run.trace, pair[1])}, one behind the other: start each by itself"
        must(not happens_before(run.trace, *pair), cause, *pair)


# ------------------------------------------------------------------ the challenge
def _everything(answer: Callable[..., Any], *sizes: int) -> Observed:
    return observe(answer, _trips(sizes), job(200.0))


def _all_done(run: Observed, *sizes: int) -> float | None:
    """Each is done once, nobody blocks, and the three take less than the time to beat."""
    _all_once("everything", run, sizes)
    schedule.launches(run.trace, JOB, 1)
    (done,), last = run.trace.find(JOB), max(s.start for s in run.trace if s.kind == "call")
    late = f"`job` ran before all trips had begun{STARTS}" if done.end <= last else ""
    if done.start >= max(s.end for s in run.trace.device_spans):
        late = "`job` came after all trips: do it while they run"
    late = f"`job`: {schedule.ASIDE_WHY}" if ASIDE in done.detail else late
    return schedule.below(510.0, run.trace, late) if sizes in THREE else None


STARTS = ": a task starts only when you pause (`sleep(0)`)"
FOUR = [(2_000_000, 1_900_000, 1_800_000, 1_700_000), (1_500_000, 1_700_000, 1_600_000, 1_800_000)]
THREE = [(400_000, 1_200_000, 2_000_000)]
_FEW = [(1000, 1001, 1002, 1003)]

CHAPTER_00 = (Exercise("00-develop", "Make the slow one quick", "develop", runs(_develop, _free, FOUR, ""),
             runs(no_pauses()(_develop), partial(_right, "develop"), _FEW, "")),
    Exercise("00-challenge", "Challenge: three trips and a job", "everything",
             runs(_everything, _all_done, [*THREE, (3_000_000, 1_000_000, 2_000_000), *THREE], ""),
             runs(no_pauses()(_everything), partial(_right, "everything"), [_FEW[0][:3]], "")),
)  # fmt: skip
