"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import equal, filled, is_number, launches, round_trip, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import call, observe

__all__ = ["EXERCISES"]


def check_waited(mine: Any, model: Any) -> None:
    """The number is right for recordings in which the host waits long, not so long, often, and not at all."""

    def run(size: int, times: int) -> None:
        for _ in range(times):
            round_trip(size, 1.0).sync()
        agt.work(70, "a job")

    for size, times in [(1_000_000, 1), (100_000, 1), (100_000, 3), (1, 0)]:
        trace = observe(run, size, times).trace
        got, right = call(mine, trace), model(trace)
        if not is_number(got):
            raise Rejected(f"a number of microseconds should come out, and this did: {got!r}")
        if abs(got - right) > 0.01:
            with case(f"a recording in which Python waits {count(times, 'time')}"):
                raise Rejected(f"{got:.2f} µs came out, and {right:.2f} µs is right")


def check_both(mine: Any, model: Any) -> None:
    """The two are under way at the same time, nobody blocks, and the results are in order."""
    for size in (1_000_000, 500_000):
        expected = observe(model, round_trip(size, 1.0), round_trip(size, 2.0)).trace
        run = observe(mine, round_trip(size, 1.0), round_trip(size, 2.0))
        with compared(run.trace, expected):
            launches(run.trace, "d2h", 2)
            waits(
                run.trace,
                0,
                "`sync` keeps Python waiting, so the second cannot be started meanwhile",
            )
            if not run.trace.metrics().overlap:
                raise Rejected(
                    "at no time were both under way: start the second before you wait for the first",
                    *run.trace.find("d2h")[:1],
                    *run.trace.find("h2d")[1:],
                )
        found: Any = run.result
        if not isinstance(found, tuple | list):
            raise Rejected("`both` should return the two results")
        results = cast(Sequence[object], found)
        if len(results) != 2:
            raise Rejected(f"`both` should return two results, and returned {len(results)}")
        for number, result in enumerate(results, 1):
            with case(f"result {number}"):
                equal(result, filled(size, number))


EXERCISES = (
    Exercise("00-waited", "Read a trace", "waited", check_waited),
    Exercise("00-both", "Two at a time", "both", check_both),
)
