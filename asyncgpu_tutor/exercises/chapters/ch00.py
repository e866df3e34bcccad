"""Exercises of 00_start_here: what each one checks."""

from __future__ import annotations

from typing import Any

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    filled,
    in_order,
    is_number,
    launches,
    round_trip,
    side_by_side,
    waits,
)
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
            side_by_side(run.trace, "start the second before you wait for the first")
        in_order("both", run.result, [filled(size, 1), filled(size, 2)])


EXERCISES = (
    Exercise("00-waited", "Read a trace", "waited", check_waited),
    Exercise("00-both", "Two at a time", "both", check_both),
)
