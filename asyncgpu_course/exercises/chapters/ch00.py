"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count, permutations, product
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.device import ASIDE
from asyncgpu_course.checks.operations import JOB, filled, job, round_trip
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import equal, in_order
from asyncgpu_course.checks.sandbox import Observed, no_pauses, observe, on_fresh_device, tried
from asyncgpu_course.checks.trials import cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import happens_before, lane_of


# ------------------------------------------------------------------ which is quicker
@lru_cache
def _wait(size: int) -> float:
    """Time for which a `sync` of the operation blocks Python, in us."""
    return on_fresh_device(observe, round_trip(size, 1.0).sync).trace.metrics().host["wait"]


def _decided(answer: Callable[..., Any], size: int, us: float) -> Observed:
    run = observe(answer, round_trip(size, 1.0), _wait(size), job(us), us)
    whole = [(0.0, run.returned, f"{run.returned:.0f} µs")]
    return replace(run, trace=run.trace.with_lane("stopwatch", whole))


def _quicker(mine: Any, model: Any, size: int, us: float) -> None:
    """Operation and job are done once, and Python is back as soon as with the solution."""
    words = f"a job of {us:.0f} µs and a wait of {_wait(size):.0f}"
    with case(words), tried(_decided, mine, model, size, us) as run:
        schedule.launches(run.trace, "d2h", 1)
        schedule.launches(run.trace, JOB, 1)
        equal(run.result, filled(size, 1.0))
        due = on_fresh_device(_decided, model, size, us).returned
        why = "the job could hide in the wait"
        if min(us, _wait(size)) < WAKING_UP:
            why = "waking up costs more than there is to hide"
        elif run.trace.find(JOB)[0].end <= min(s.start for s in run.trace if s.kind == "call"):
            why = f"`job` ran before the operation had begun{STARTS}"
        cause = f"it's right, but done after {run.returned:.0f} µs, and {due:.0f} are enough: {why}"
        must(run.returned < due + 4, cause)  # 4 us, because a right answer may make a stream


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
WAKING_UP = 21  # us more than a `sync` takes to be back; see the page
TINY, SMALL, LARGE = 1000, 400_000, 2_000_000  # waits of 3, 53 and 286 us
APART = [
    (LARGE, 5),
    (TINY, 290),
    (LARGE, 15),
    (LARGE, 30),
    (SMALL, 290),
    (LARGE, 290),
    (SMALL, 110),
]
# Waits of 6 to 82 us, and jobs as long, since a rule that holds for a few pairs may be another one.
_WAITS = [50_000, 130_000, 180_000, 250_000, 340_000, 450_000, 600_000]
JOBS = [*APART, *product(_WAITS, [12, 26, 40, 60, 90, 290])]
FOUR = [(2_000_000, 1_900_000, 1_800_000, 1_700_000), (1_500_000, 1_700_000, 1_600_000, 1_800_000)]
THREE = [(400_000, 1_200_000, 2_000_000)]
_FEW = [(1000, 1001, 1002, 1003)]

EXERCISES = (
    Exercise("00-quicker", "Which is quicker?", "quicker", cases(_quicker, JOBS, "")),
    Exercise("00-develop", "Make the slow one quick", "develop", runs(_develop, _free, FOUR, ""),
             runs(no_pauses()(_develop), partial(_right, "develop"), _FEW, "")),
    Exercise("00-challenge", "Challenge: three trips and a job", "everything",
             runs(_everything, _all_done, [*THREE, (3_000_000, 1_000_000, 2_000_000), *THREE], ""),
             runs(no_pauses()(_everything), partial(_right, "everything"), [_FEW[0][:3]], "")),
)  # fmt: skip
