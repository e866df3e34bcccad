"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import schedule
from asyncgpu_tutor.exercises.checks.operations import JOB, filled, job, round_trip
from asyncgpu_tutor.exercises.checks.results import equal, in_order
from asyncgpu_tutor.exercises.checks.trials import cases, runs
from asyncgpu_tutor.exercises.device import ASIDE
from asyncgpu_tutor.exercises.exercise import Exercise, case, must
from asyncgpu_tutor.exercises.internals import happens_before, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, no_pauses, observe, on_fresh_device, tried


# ------------------------------------------------------------------ which is quicker
@lru_cache
def _wait(size: int) -> float:
    """Time for which a `sync` of the operation blocks Python, in us."""
    return on_fresh_device(observe, round_trip(size, 1.0).sync).trace.metrics().host["wait"]


def _decided(answer: Callable[..., Any], size: int, us: float) -> Observed:
    run = observe(answer, round_trip(size, 1.0), _wait(size), job(us), us)
    whole = (0.0, run.returned, f"{run.returned:.0f} µs")
    return replace(run, trace=run.trace.with_lane("stopwatch", [whole]))


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
        # 4 us, because a right answer may make a stream.
        must(run.returned < due + 4, cause)


# ------------------------------------------------------------------ two at a time
def _trips(sizes: tuple[int, ...]) -> list[agt.DeviceOp[Any]]:
    """Operations that bring so many numbers back; the one that brings most takes least there."""
    return [_trip(*ways) for ways in zip(reversed(sizes), sizes, strict=True)]


def _trip(there: int, back: int) -> agt.DeviceOp[Any]:
    numbers = agt.h2d(agt.pin(filled(there, 1)))
    return numbers.and_then(lambda _: agt.full(back, back / 1e3)).to_host()


def _right(answer: str, run: Observed, *sizes: int) -> None:
    in_order(answer, run.result, [filled(size, size / 1e3) for size in sizes])


class _Task(asyncio.Task[Any]):
    """Of two in a set, the later one mostly comes first, as any set may have it."""

    places, place = count(-1, -1), 0

    def __hash__(self) -> int:
        self.place = self.place or next(self.places)
        return self.place


@patch.object(asyncio.tasks, "Task", _Task)
def _both(answer: Callable[..., Any], *sizes: int) -> Observed:
    return observe(answer, *_trips(sizes))


def _free(run: Observed, *sizes: int) -> None:
    """Both are under way at the same time, neither has to wait for the other, and nobody blocks."""
    one, other = schedule.results(run.trace, sizes)
    why = "`sync` keeps Python waiting, so it can't start anything else in the meantime"
    schedule.waits(run.trace, 0, why)
    schedule.launches(run.trace, "d2h", len(sizes))
    schedule.all_in_flight(run.trace, sizes, 2)
    chained = any(happens_before(run.trace, *pair) for pair in ((one, other), (other, one)))
    cause = f"both operations are on {lane_of(run.trace, other)}, one behind the other: start each by itself"
    must(not chained, cause, one, other)
    _right("both", run, *sizes)


# ------------------------------------------------------------------ the challenge
def _everything(answer: Callable[..., Any], *sizes: int) -> Observed:
    return observe(answer, _trips(sizes), job(200.0))


def _all_done(run: Observed, *sizes: int) -> float | None:
    """Each is done once, nobody blocks, and the three take less than the time to beat."""
    schedule.results(run.trace, sizes)
    schedule.launches(run.trace, "d2h", len(sizes))
    schedule.launches(run.trace, JOB, 1)
    _right("everything", run, *sizes)
    schedule.never_blocks(run.trace)
    (done,), last = run.trace.find(JOB), max(s.start for s in run.trace if s.kind == "call")
    late = f"`job` ran before all trips had begun{STARTS}"
    late = f"`job`: {schedule.ASIDE_WHY}" if ASIDE in done.detail else late * (done.end <= last)
    return schedule.below(510.0, run.trace, late) if sizes in THREE else None


STARTS = ": a task starts only when you pause (`sleep(0)`)"
WAKING_UP = 21  # us more than a `sync` takes to be back; see the page
TINY, SMALL, LARGE = 1000, 400_000, 2_000_000  # waits of 3, 53 and 286 us
JOBS = [(LARGE, 5), (TINY, 290), (LARGE, 15), (LARGE, 30), (SMALL, 290), (LARGE, 290), (SMALL, 110)]
PAIRS = [(1_000_000, 900_000), (500_000, 600_000)]
THREE = [(400_000, 1_200_000, 2_000_000)]
FEW = [(1000, 1001, 1002)]

EXERCISES = (
    Exercise("00-quicker", "Which is quicker?", "quicker", cases(_quicker, JOBS, "")),
    Exercise("00-both", "Two at a time", "both", runs(_both, _free, PAIRS, ""),
             runs(no_pauses()(_both), partial(_right, "both"), [FEW[0][:2]], "")),
    Exercise("00-challenge", "Challenge: three trips and a job", "everything",
             runs(_everything, _all_done, [*THREE, (3_000_000, 1_000_000, 2_000_000), *THREE], ""),
             runs(no_pauses()(_everything), partial(_right, "everything"), FEW, "")),
)  # fmt: skip
