"""Exercises of 06_await on what comes first, and on how much is in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import computed, filled, own_sizes, round_trip
from asyncgpu_tutor.exercises.checks.results import Array, brief, equal, in_order
from asyncgpu_tutor.exercises.checks.schedule import (
    below,
    in_flight,
    launches,
    never_blocks,
    results,
    stretches,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.sandbox import Observed, observe, private_device, tried

SIZES = (4_000_000, 64, 512)


def _coming(answer: Any) -> tuple[agt.Trace, list[int]]:
    """A trace, and the order in which an answer uses the results of operations of very different lengths."""
    used: list[int] = []

    def use(result: Any) -> None:
        if not isinstance(result, np.ndarray):
            raise Rejected(
                f"`use` should get a result, and this came: {brief(result)}. Await it before you use it"
            )
        size = cast(Array, result).size
        with case(f"the result of {size:,} elements"):
            equal(cast(object, result), filled(size, 1.0 if size == SIZES[0] else size))
        used.append(size)
        agt.work(2, f"use of {size}")

    copy, *kernels = SIZES
    ops = [round_trip(copy, 1.0), *(computed(n, n, 1.0) for n in kernels)]
    run = observe(answer, ops, use)
    return run.trace, used


def _first_come(trace: agt.Trace, used: list[int]) -> None:
    if sorted(used) != sorted(SIZES):
        raise Rejected(
            f"`use` was called for results of {used} elements, and each of {sorted(SIZES)} once is right"
        )
    done = results(trace, SIZES)
    came = sorted(SIZES, key=lambda n: done[SIZES.index(n)].end)
    if used != came:
        raise Rejected(
            f"the results were used in the order of sizes {used}, and they came as {came}: do not wait "
            "for one while another is there",
            *trace.find(f"use of {came[0]}"),
        )


def check_as_they_come(mine: Any, model: Any) -> None:
    """The quickest is used first, while the slowest is still at work."""
    with tried(_coming, mine, model) as (trace, used):
        never_blocks(trace)
        _first_come(trace, used)
        first = trace.find(f"use of {used[0]}")[0]
        # Overlap on the device would not tell, because answers may start the slowest operation last.
        late = [span for span in trace if span.kind == "call" and span.start > first.start]
        if late:
            raise Rejected(
                "when the first result was used, not all operations were under way: start all of them "
                "before you wait for the first",
                first,
                late[0],
            )
        last = max(trace.device_spans, key=lambda span: span.end)
        if first.start > last.end:
            raise Rejected(
                "the first result was used when all were done: use it as soon as it is there",
                last,
                first,
            )


def hostile_as_they_come(mine: Any, _model: Any) -> None:
    """First come, first served, whichever comes first."""
    _first_come(*_coming(mine))


# ------------------------------------------------------------------ no more than so many
# The matrix of the one operation that takes longer than others: a thread goes along a whole row.
SLOW, ROW = 96, 8192


def _limited(answer: Any, sizes: Sequence[int], limit: int) -> Observed[Any]:
    ops = [computed(n, ROW, 1) if n == SLOW else round_trip(n, i + 1) for i, n in enumerate(sizes)]
    return observe(answer, ops, limit)


def _limited_right(given: object, sizes: Sequence[int]) -> None:
    right = [filled(n, ROW if n == SLOW else i + 1) for i, n in enumerate(sizes)]
    in_order("run_limited", given, right)


def check_limited(mine: Any, model: Any) -> None:
    """`limit` are in flight and no more, the next starts as soon as one is done, and results are in order."""
    for sizes, limit in [
        (own_sizes(5, 2_000_000), 2),
        (own_sizes(6, 1_000_000), 3),
        (own_sizes(3, 500_000), 8),
        ([SLOW, *own_sizes(3, 64)], 2),
    ]:
        number = len(sizes)
        words = f"{number} operations and a limit of {limit}"
        with tried(_limited, mine, model, sizes, limit, words=words) as run:
            never_blocks(run.trace)
            launches(run.trace, "d2h", number)
            most, right = in_flight(run.trace, sizes), min(number, limit)
            if most > right:
                raise Rejected(f"{most} were in flight at a time, and no more than {right} may be")
            if most < right:
                raise Rejected(
                    f"no more than {most} were in flight at a time, where {right} could have been"
                )
            _refilled(run.trace, sizes, limit)
            _limited_right(run.result, sizes)


def _refilled(trace: agt.Trace, sizes: Sequence[int], limit: int) -> None:
    """No place was still empty when the next became so, while there were operations to start."""
    begun, done = (sorted(times) for times in zip(*stretches(trace, sizes), strict=True))
    for i in range(limit, len(sizes)):
        if limit > 1 and begun[i] >= done[i - limit + 1]:
            late = next(s for s in results(trace, sizes) if s.end == done[i - limit])
            raise Rejected(
                "one was done, and its place stayed empty: start the next as soon as *one* is done, "
                "and not when several are",
                late,
            )


def hostile_limited(mine: Any, _model: Any) -> None:
    """The results are in order, whichever is done first."""
    sizes = own_sizes(5, 64)
    _limited_right(_limited(mine, sizes, 2).result, sizes)


# ------------------------------------------------------------------ the challenge
FED, AT_MOST, PAR = 6, 2, 1500.0
BATCH, LARGE = 1_000_000, 4_000_000  # elements: the device needs less time than the host, and more


def _fed(answer: Any, size: int) -> Observed[Any]:
    """Run an answer on batches which take the host some time before and after the device has them."""
    sizes = own_sizes(FED, size)
    used: list[int] = []

    def prepare(i: int) -> Any:
        if i not in range(FED):
            raise Rejected(f"batch {i} was prepared, and of {FED} batches the last is {FED - 1}")
        agt.work(100, f"prepare {i}")
        return agt.pin(filled(sizes[i], i + 1))

    def process(x: Any) -> agt.DeviceOp[Any]:
        return agt.h2d(x).to_host()

    def use(result: Any) -> None:
        i = cast(Array, result).size - sizes[0] if isinstance(result, np.ndarray) else -1
        with case(f"batch {i}" if i in range(FED) else "what `use` got"):
            equal(cast(object, result), filled(sizes[i], i + 1))
        used.append(i)
        agt.work(60, f"use {i}")

    run = observe(answer, FED, prepare, process, use)
    if sorted(used) != list(range(FED)):
        raise Rejected(f"`use` was called for batches {used}, and each of the {FED} once is right")
    return run


def check_feed(mine: Any, model: Any) -> float:
    """All batches are used, never more than two are in flight, and host and device work together."""
    # Where the device is quick, a program without any limit has few in flight as well.
    words = f"batches of {LARGE:,} elements, for which the device needs longer"
    # On a device of its own, because memory that is there already would shorten the run that is timed.
    with private_device(), tried(_fed, mine, model, LARGE, words=words) as run:
        never_blocks(run.trace)
        sizes = own_sizes(FED, LARGE)
        if (most := in_flight(run.trace, sizes)) > AT_MOST:
            raise Rejected(
                f"{most} batches were in flight at a time, and there is memory for {AT_MOST}: wait for one "
                "before you start the next but one",
                *results(run.trace, sizes)[: AT_MOST + 1],
            )
    with tried(_fed, mine, model, BATCH) as run:
        hint = "When does the host wait for the device, and when the device for the host?"
        return below(PAR, run.trace, hint)


EXERCISES = (
    Exercise(
        "06-as-completed",
        "First come, first served",
        "as_they_come",
        check_as_they_come,
        hostile_as_they_come,
    ),
    Exercise("06-limited", "No more than so many", "run_limited", check_limited, hostile_limited),
    Exercise("06-feed", "The challenge: feed the device", "feed", check_feed),
)
