"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import filled, round_trip
from asyncgpu_tutor.exercises.checks.results import a_number, in_order
from asyncgpu_tutor.exercises.checks.schedule import all_in_flight, below, launches, results, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count, happens_before, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, tried


def check_waited(mine: Any, model: Any) -> None:
    """The number is right for recordings in which the host waits long, not so long, often, and not at all."""

    def run(size: int, times: int) -> None:
        for _ in range(times):
            round_trip(size, 1.0).sync()
        agt.work(70, "a job")

    for size, times in [(1_000_000, 1), (100_000, 1), (100_000, 3), (1, 0)]:
        trace = observe(run, size, times).trace
        right = model(trace)
        got = _asked(mine, copy.deepcopy(trace))  # the answer may do to it what it likes
        a_number(got, "a number of microseconds")
        if abs(got - right) > 0.01:
            with case(f"a recording in which Python waits {count(times, 'time')}"):
                raise Rejected(f"{got:.2f} µs came out, and {right:.2f} µs is right")


def _asked(answer: Any, trace: agt.Trace) -> object:
    """What an answer gives; one that asks for a key that is not there is told which ones are."""
    try:
        return call(answer, trace)
    except Rejected as rejected:
        cause = rejected.__cause__
        if not isinstance(cause, KeyError) or cause.args[0] in trace.metrics().host:
            raise
        *others, last = [f'`"{key}"`' for key in trace.metrics().host]
        raise Rejected(
            f"nothing is called {cause} there. `trace.metrics().host` has {', '.join(others)} "
            f"and {last}"
        ) from rejected


NO_SYNC = "`sync` keeps Python waiting, so nothing else can be started meanwhile"


def _trips(sizes: tuple[int, ...]) -> list[agt.DeviceOp[Any]]:
    return [round_trip(size, i + 1.0) for i, size in enumerate(sizes)]


def _both(answer: Callable[..., Any], sizes: tuple[int, ...]) -> Observed[Any]:
    return observe(answer, *_trips(sizes))


def check_both(mine: Any, model: Any) -> None:
    """The two are under way at the same time, nobody blocks, and the results are in order."""
    for sizes in [(1_000_000, 900_000), (500_000, 600_000)]:
        with tried(_both, mine, model, sizes) as run:
            results(run.trace, sizes)
            waits(run.trace, 0, NO_SYNC)
            all_in_flight(run.trace, sizes, 2)
            _free(run.trace, sizes)
        in_order("both", run.result, [filled(size, i + 1) for i, size in enumerate(sizes)])


def _free(trace: agt.Trace, sizes: tuple[int, ...]) -> None:
    """Neither of two operations is made to wait for the other, whoever else is at work."""
    one, other = results(trace, sizes)
    for early, late in ((one, other), (other, one)):
        if happens_before(trace, early, late):
            raise Rejected(
                f"both operations are on {lane_of(trace, late)}, one behind the other: start each by itself",
                early,
                late,
            )


SIZES = (1_000_000, 800_000, 600_000)
JOB, JOB_US = "job", 200.0
GOAL = 350.0


def _everything(answer: Callable[..., Any]) -> Observed[Any]:
    return observe(answer, _trips(SIZES), lambda: agt.work(JOB_US, JOB))


def check_everything(mine: Any, model: Any) -> float:
    """All is done once, and in less than the time to beat."""
    with tried(_everything, mine, model) as run:
        results(run.trace, SIZES)
        launches(run.trace, JOB, 1)
        in_order("everything", run.result, [filled(size, i + 1) for i, size in enumerate(SIZES)])
        return below(GOAL, run.trace)


EXERCISES = (
    Exercise("00-waited", "How long did Python wait?", "waited", check_waited),
    Exercise("00-both", "Two at a time", "both", check_both),
    Exercise("00-challenge", "Challenge: three trips and a job", "everything", check_everything),
)
