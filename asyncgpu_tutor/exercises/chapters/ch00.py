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
from asyncgpu_tutor.exercises.checks.results import a_number, in_order
from asyncgpu_tutor.exercises.checks.trials import cases, runs
from asyncgpu_tutor.exercises.device import ASIDE
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, must
from asyncgpu_tutor.exercises.internals import happens_before, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, call, no_pauses, observe


# ------------------------------------------------------------------ reading a recording
def _waited(mine: Any, model: Any, times: int, size: int) -> None:
    """The number is right for a recording in which the host waits so many times, in two ways."""

    def run() -> None:
        stream = agt.create_stream()
        for i in range(times):
            op = round_trip(size, 1.0)
            _ = [op.async_on(stream), stream.synchronize()] if i % 2 else op.sync()
        agt.work(70, "a job")

    trace = observe(run).trace
    right = model(trace)
    got: Any = _asked(mine, trace)
    a_number(got, "a number from 0 to 1")
    told = f"{trace.metrics().host['wait']:.2f} of {trace.metrics().makespan:.2f} µs"
    must(abs(got - right) <= 1e-4, f"{got:.4f} came out, but Python waited for {told}: {right:.4f}")


def _asked(answer: Any, trace: agt.Trace) -> object:
    """Call an answer; if it asks for a key that is not there, tell it which ones are."""
    try:
        return call(answer, trace)
    except Rejected as rejected:
        cause = rejected.__cause__
        if not isinstance(cause, KeyError) or cause.args[0] in trace.metrics().host:
            raise
        *others, last = [f'`"{key}"`' for key in trace.metrics().host]
        has = f"`trace.metrics().host` has {', '.join(others)} and {last}"
        raise Rejected(f"nothing is called {cause} there. {has}") from rejected


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


RECORDINGS = [(1, 1_000_000), (1, 100_000), (3, 100_000), (60, 10), (0, 1)]
PAIRS = [(1_000_000, 900_000), (500_000, 600_000)]
THREE = [(400_000, 1_200_000, 2_000_000)]
FEW = [(1000, 1001, 1002)]

EXERCISES = (
    Exercise("00-waited", "How much of the time did Python wait?", "waited", cases(_waited, RECORDINGS,
                   "{:wait} in the recording")),
    Exercise("00-both", "Two at a time", "both", runs(_both, _free, PAIRS, ""),
             runs(no_pauses()(_both), partial(_right, "both"), [FEW[0][:2]], "")),
    Exercise("00-challenge", "Challenge: three trips and a job", "everything",
             runs(_everything, _all_done, [*THREE, (3_000_000, 1_000_000, 2_000_000), *THREE], ""),
             runs(no_pauses()(_everything), partial(_right, "everything"), FEW, "")),
)  # fmt: skip
