"""What the exercise 08-annotate checks: NVTX ranges around tasks that take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.exercises.exercise import Rejected, case, compared
from asyncgpu_tutor.exercises.schedule import waits
from asyncgpu_tutor.exercises.trial import calling
from asyncgpu_tutor.exercises.values import equal
from asyncgpu_tutor.exercises.watched import Range, RangeLog, watched
from asyncgpu_tutor.ops import DeviceOp, h2d, pin
from asyncgpu_tutor.run import work
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["check_annotated"]

Array = Any


def _look_up(_handle: object) -> object:
    settings: dict[str, object] = {}
    return settings["scale"]


def _handled(
    answer: Callable[..., Any], number: int, failing: int | None
) -> tuple[Trace, RangeLog]:
    """Try an answer on requests that are handled together, of which one may fail."""
    log = RangeLog()

    def prepare(i: int) -> Array:
        work(20, f"prepare {i}")
        return pin(np.full(200_000, i + 1, np.float32))

    def process(x: Array) -> DeviceOp[Any]:
        i = int(x[0]) - 1
        op = h2d(x).to_host().named(f"copy {i}")
        return op.map(_look_up) if i == failing else op

    async def all_of_them() -> list[Any]:
        tasks = [answer(i, prepare, process) for i in range(number)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    with watched(log) as trace:
        results = calling(all_of_them)
    for i, result in enumerate(cast(Sequence[Any], results)):
        if i != failing:
            with case(f"result {i}"):
                equal(result, np.full(200_000, i + 1, np.float32))
    return trace, log


def _of(log: RangeLog, name: str, number: int, most: int) -> list[Range]:
    found = [one for one in log.closed if one.name == name]
    if len(found) + log.open.count(name) != number:
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(one.name for one in log.closed))
        raise Rejected(
            f"{count(most, 'request')} should give {count(number, 'range')} called `{name}`, and gave "
            f"{len(found)}. Ranges that there are: {names}"
        )
    return sorted(found, key=lambda one: one.start)


def check_annotated(mine: Any, model: Any) -> None:
    """One range for each request, however tasks take turns, and one for each preparation; none left open."""
    for number, failing in [(3, None), (2, None), (3, 1)]:
        expected, _ = _handled(model, number, failing)
        trace, log = _handled(mine, number, failing)
        with compared(trace, expected):
            waits(trace, 0, "`sync` blocks the event loop, and with it every other request")
            if log.open:
                raise Rejected(
                    f"`process` failed for one request, and its range `{log.open[0]}` was never closed: "
                    "a range that is opened has to be closed whatever happens"
                )
            requests, prepared = (_of(log, n, number, number) for n in ("request", "prepare"))
            if any(one.mixed for one in requests):
                raise Rejected(
                    "a range `request` was opened by one task and closed by another: `span` keeps a "
                    "stack, and tasks that await take turns on it",
                    *_drawn(trace, "request")[:2],
                )
            _cover(trace, requests, failing)
            _prepare_only(trace, prepared)


def _drawn(trace: Trace, name: str) -> list[Span]:
    return [span for span in trace.find(name) if span.kind == "range"]


def _cover(trace: Trace, requests: Sequence[Range], failing: int | None) -> None:
    """Each range `request` holds all that was done for it, to the copy back."""
    ranges = _drawn(trace, "request")
    for i in range(len(requests)):
        own = [s for s in trace if s.label == f"copy {i}" and s.on_device and i != failing]
        own += trace.find(f"prepare {i}")
        first, last = min(s.start for s in own), max(s.end for s in own)
        if not any(one.start <= first and last <= one.end for one in ranges):
            raise Rejected(
                f"no range `request` holds all of request {i}, from its preparation to its result",
                *ranges[:1],
                max(own, key=lambda s: s.end),
            )


def _prepare_only(trace: Trace, prepared: Sequence[Range]) -> None:
    """The ranges `prepare` hold the preparations, and no more."""
    jobs = [span for i in range(len(prepared)) for span in trace.find(f"prepare {i}")]
    for job, one in zip(sorted(jobs, key=lambda s: s.start), _drawn(trace, "prepare"), strict=True):
        if not (one.start <= job.start and job.end <= one.end <= job.end + 1):
            raise Rejected(
                f"the range `prepare` should hold `{job.name}`, and nothing else", one, job
            )
