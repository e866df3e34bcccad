"""Exercises of 08_profiling: what each one checks."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.chapters.ch08_reports import REPORTS
from asyncgpu_tutor.exercises.checks.operations import filled
from asyncgpu_tutor.exercises.checks.results import Array, equal, in_order
from asyncgpu_tutor.exercises.checks.schedule import below, launches, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.recorded_ranges import RangeLog, watched
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, tried

# ------------------------------------------------------------------ ranges
# Each request is one longer than the one before. Its copies are known by that, since an answer may name them.
_SIZE = 200_000


def _look_up(_handle: object) -> object:
    settings: dict[str, object] = {}
    return settings["scale"]


def _handled(
    answer: Callable[..., Any], number: int, failing: int | None
) -> tuple[agt.Trace, RangeLog]:
    """Try an answer on requests that are handled together, of which one may fail."""
    log = RangeLog()

    def prepare(i: int) -> Array:
        agt.work(20, f"prepare {i}")
        return agt.pin(filled(_SIZE + i, i + 1))

    def process(x: Array) -> agt.DeviceOp[Any]:
        i = int(x[0]) - 1
        op = agt.h2d(x).to_host().named(f"copy {i}")
        return op.map(_look_up) if i == failing else op

    async def all_of_them() -> list[Any]:
        tasks = [answer(i, prepare, process) for i in range(number)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    with watched(log) as trace:
        results = call(all_of_them)
    for i, result in enumerate(cast(Sequence[Any], results)):
        if i != failing:
            with case(f"result {i}"):
                equal(result, filled(_SIZE + i, i + 1))
    return trace, log


def _counted(log: RangeLog, name: str, number: int) -> None:
    found = [one.name for one in log.closed]
    if found.count(name) + log.open.count(name) != number:
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(found))
        raise Rejected(
            f"{count(number, 'request')} should give {count(number, 'range')} called `{name}`, and gave "
            f"{found.count(name)}. Ranges that there are: {names}"
        )


def check_annotated(mine: Any, model: Any) -> None:
    """Each request and each preparation has a range, however tasks take turns, and none is left open."""
    for number, failing in [(3, None), (2, None), (3, 1)]:
        with tried(_handled, mine, model, number, failing) as (trace, log):
            waits(trace, 0, "`sync` blocks the event loop, and with it every other request")
            if log.open:
                raise Rejected(
                    f"`process` failed for one request, and its range `{log.open[0]}` was never closed: "
                    "a range that is opened has to be closed whatever happens"
                )
            _counted(log, "request", number)
            _counted(log, "prepare", number)
            if any(one.mixed for one in log.closed if one.name == "request"):
                raise Rejected(
                    "a range `request` was opened by one task and closed by another: `span` keeps a "
                    "stack, and tasks that await take turns on it",
                    *_drawn(trace, "request")[:2],
                )
            _cover(trace, number, failing)
            _prepare_only(trace, number)


def _drawn(trace: agt.Trace, name: str) -> list[agt.types.Span]:
    return [span for span in trace.find(name) if span.kind == "range"]


def _cover(trace: agt.Trace, number: int, failing: int | None) -> None:
    """Each range `request` holds all that was done for it, to the copy back."""
    ranges = _drawn(trace, "request")
    for i in range(number):
        size = 4 * (_SIZE + i)
        own = [s for s in trace.device_spans if s.detail.get("bytes") == size and i != failing]
        own += trace.find(f"prepare {i}")
        first, last = min(s.start for s in own), max(s.end for s in own)
        if not any(one.start <= first and last <= one.end for one in ranges):
            raise Rejected(
                f"no range `request` holds all of request {i}, from its preparation to its result",
                *ranges[:1],
                max(own, key=lambda s: s.end),
            )


def _prepare_only(trace: agt.Trace, number: int) -> None:
    """The ranges `prepare` hold the preparations, and no more."""
    jobs = [span for i in range(number) for span in trace.find(f"prepare {i}")]
    for job, one in zip(sorted(jobs, key=lambda s: s.start), _drawn(trace, "prepare"), strict=True):
        if not (one.start <= job.start and job.end <= one.end <= job.end + 1):
            raise Rejected(
                f"the range `prepare` should hold `{job.name}`, and nothing else", one, job
            )


# ------------------------------------------------------------------ challenge
_ROWS, _COLUMNS, _REQUESTS = 64, 8192, 8
GOAL_US = 1100.0


def _requests(number: int) -> tuple[list[Array], Callable[[agt.DeviceArray], agt.DeviceOp[Any]]]:
    """Matrices in pageable memory, and what makes an operation of one: a kernel of a single block."""
    weights = agt.h2d(agt.pin(np.ones(_COLUMNS, np.float32)), "weights").share().sync()

    def score(x: agt.DeviceArray) -> agt.DeviceOp[Any]:
        def product(y: agt.DeviceArray) -> agt.DeviceOp[Any]:
            return agt.matvec_naive(_ROWS, _COLUMNS, x, weights, y.partition(_ROWS)).output()

        return agt.zeros(_ROWS, name="scores").and_then(product)

    return [np.full((_ROWS, _COLUMNS), i + 1, np.float32) for i in range(number)], score


def served(program: Callable[..., Any], number: int) -> Observed[Any]:
    """Try an answer without the warning of pageable copies, which would say a part of what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
        return observe(program, *_requests(number))


def check_served(mine: Any, model: Any) -> float:
    """All requests get their scores, in order; the score is the time, however it was reached."""
    with tried(served, mine, model, _REQUESTS) as run:
        in_order("serve", run.result, _scores(_REQUESTS))
        launches(run.trace, "matvec_naive", _REQUESTS)
        return below(GOAL_US, run.trace)


def hostile_served(mine: Any, _model: Any) -> None:
    """Scores are complete before anybody reads them, whatever takes how long."""
    in_order("serve", served(mine, 3).result, _scores(3))


def _scores(number: int) -> list[Array]:
    return [np.full(_ROWS, _COLUMNS * (i + 1), np.float32) for i in range(number)]


EXERCISES = (
    Exercise("08-annotate", "Ranges around an `await`", "handle", check_annotated),
    *REPORTS,
    Exercise("08-challenge", "Challenge: a slow server", "serve", check_served, hostile_served),
)
