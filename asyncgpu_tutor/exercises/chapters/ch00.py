"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any
from unittest.mock import patch

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import schedule
from asyncgpu_tutor.exercises.checks.operations import JOB, filled, job, round_trip
from asyncgpu_tutor.exercises.checks.results import equal, in_order
from asyncgpu_tutor.exercises.checks.trials import cases, runs
from asyncgpu_tutor.exercises.device import ASIDE
from asyncgpu_tutor.exercises.exercise import Exercise, must
from asyncgpu_tutor.exercises.internals import happens_before, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, no_pauses, observe, on_fresh_device, tried


# ------------------------------------------------------------------ which is quicker
def _decided(answer: Callable[..., Any], us: float) -> Observed:
    return observe(answer, round_trip(SIZE, 1.0), job(us), us)


def _quicker(mine: Any, model: Any, us: float) -> None:
    """Operation and job are done once, and Python is back as soon as with the solution."""
    with tried(_decided, mine, model, us, words=f"a job of {us:.0f} µs") as run:
        schedule.launches(run.trace, "d2h", 1)
        schedule.launches(run.trace, JOB, 1)
        equal(run.result, filled(SIZE, 1.0))
        due = on_fresh_device(_decided, model, us).returned
        why = "this job could hide in the wait"
        if us < WAKING_UP:
            why = "waking up takes longer than this job, and nobody has to wake up from `sync`"
        cause = f"it's right, but done after {run.returned:.0f} µs, and {due:.0f} are enough: {why}"
        must(run.returned < due + 1, cause)


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
    late = "`job` ran before all trips had begun: a task starts only when you pause (`sleep(0)`)"
    late = f"`job`: {schedule.ASIDE_WHY}" if ASIDE in done.detail else late * (done.end <= last)
    return schedule.below(510.0, run.trace, late) if sizes in THREE else None


SIZE = 1_000_000
WAKING_UP = 21  # us; see the page
JOBS = [(5,), (15,), (60,), (300,)]
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
