"""Exercises of 06_await: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count as counter
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    brief,
    computed,
    each_equal,
    equal,
    filled,
    in_flight,
    in_order,
    is_number,
    launches,
    listed,
    never_blocks,
    out_of_bounds,
    overlapping,
    results,
    round_trip,
    side_by_side,
    stretches,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared, meant_to_fail
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, observe

__all__ = ["EXERCISES"]

MOST_BEATS = 2000
NEVER_STOPS = (
    "the heart went on beating after the operation was done: cancel its task, or end its loop"
)


def _buggy() -> agt.DeviceOp[Any]:
    """Fails when it is submitted, because its function looks up what is not there."""

    def look_up(_array: object) -> agt.DeviceOp[Any]:
        settings: dict[str, int] = {}
        return agt.value(settings["scale"])

    return agt.ones(32).and_then(look_up)


def _observed(function: Any, *args: Any) -> Observed[Any]:
    """As `observe`; the result is what awaiting the coroutine gives, which its type cannot say."""
    return observe(function, *args)


def _device_end(trace: agt.Trace) -> agt.types.Span:
    if not trace.device_spans:
        raise Rejected(
            "the operation did not run at all: `await` it, or `spawn` it and await the task"
        )
    return max(trace.device_spans, key=lambda span: span.end)


# ------------------------------------------------------------------ waiting less
def check_difference(mine: Any, model: Any) -> None:
    """The first half waits each time, the second not at all, and the quotient is that of the traces."""
    for size, number in [(500_000, 4), (1_000_000, 3)]:

        def make(i: int, size: int = size) -> agt.DeviceOp[Any]:
            return round_trip(size, i + 1).named(f"op {i}")

        expected, run = observe(model, make, number), observe(mine, make, number)
        with compared(run.trace, expected.trace):
            launches(run.trace, "d2h", 2 * number)
            waited = [span for span in run.trace if span.kind == "wait"]
            if len(waited) < number:
                raise Rejected(
                    f"the host waited {count(len(waited), 'time')}: use `sync` for each of the "
                    f"{number} operations of the first half"
                )
            waits(run.trace, number, "the second half should not block at all")
            if not run.trace.metrics().overlap:
                raise Rejected(
                    "no two operations of the second half were at work at the same time: start all of "
                    "them before you wait for the first"
                )
        got = run.result
        if not is_number(got):
            raise Rejected(f"a number should come out, and this did: {brief(got)}")
        if abs(got / expected.result - 1) > 0.02:
            raise Rejected(
                f"with {number} operations, {got:.2f} came out, and {expected.result:.2f} is right: one "
                "recording for each half, and the makespan of the first divided by that of the second"
            )


def check_prepare(mine: Any, model: Any) -> None:
    """While the device works on one batch, the host prepares the next; nobody blocks."""

    def prepare(i: int) -> Any:
        agt.work(60, f"prepare {i}")
        return agt.pin(filled(500_000, i + 1))

    def process(x: Any) -> agt.DeviceOp[Any]:
        return agt.h2d(x).to_host()

    for number in (4, 2):
        expected = observe(model, number, prepare, process)
        run = observe(mine, number, prepare, process)
        with compared(run.trace, expected.trace):
            never_blocks(run.trace)
            launches(run.trace, "d2h", number)
            for i in range(1, number):
                why = "have a batch started, really started, before you prepare the next one"
                overlapping(run.trace, f"prepare {i}", why)
        right = [filled(500_000, i + 1) for i in range(number)]
        in_order("pipeline", run.result, right, f"{number} batches, for result")


def _beating(answer: Any, size: int) -> tuple[Any, agt.Trace]:
    """Try an answer on a copy of `size` elements, and stay in the loop for a while after it."""
    numbers = counter(1)
    under_way: set[bool] = set()  # collects whether the operation was under way at a beat

    def beat() -> None:
        under_way.add(agt.in_flight() > before)
        if next(numbers) > MOST_BEATS:
            if True in under_way:
                raise Rejected(NEVER_STOPS)
            raise Rejected(
                f"`beat` was called {MOST_BEATS} times without an end: between two beats, let go of "
                "the event loop with `await agt.sleep(50)`, so that others get a turn"
            )
        agt.work(1, "beat")

    before = agt.in_flight()

    async def attempt() -> Any:
        result = await answer(round_trip(size, 3.0).named("copy"), beat)
        agt.work(1, "returned")
        await agt.sleep(400)
        return result

    run = _observed(attempt)
    return run.result, run.trace


def check_responsive(mine: Any, model: Any) -> None:
    """The heart beats all the while, about as often as it should, and stops with the operation."""
    for size in (2_000_000, 1_000_000):
        (_, expected), (result, trace) = _beating(model, size), _beating(mine, size)
        with compared(trace, expected):
            never_blocks(trace)
            (returned,) = trace.find("returned")
            late = [span for span in trace.find("beat") if span.start > returned.start]
            if late:
                raise Rejected(NEVER_STOPS, returned, late[0])
            due = len(expected.find("beat"))
            end = _device_end(trace).end
            beats = [span for span in trace.find("beat") if span.start < end]
            if not due / 2 <= len(beats) <= due * 2:
                raise Rejected(
                    f"`beat` was called {count(len(beats), 'time')} while the operation was under way, and "
                    f"about {due} are right: one every 50 µs, by `agt.sleep(50)` (`asyncio.sleep` counts "
                    "on the clock on the wall)",
                    *beats[-1:],
                )
        equal(result, filled(size, 3.0))


# ------------------------------------------------------------------ ownership
def check_spawn_safe(mine: Any, model: Any) -> None:
    """All tasks use the one copy of the weights, whatever becomes of the caller's handle."""
    n = 64
    rng = np.random.default_rng(6)
    matrix = rng.standard_normal((n, n), dtype=np.float32)
    vectors = [rng.standard_normal(n, dtype=np.float32) for _ in range(3)]

    async def attempt(answer: Any) -> Any:
        w: agt.DeviceArray = await agt.h2d(agt.pin(matrix), "w")
        tasks = listed("start", answer([agt.pin(x) for x in vectors], w), len(vectors))
        for task in tasks:
            if not isinstance(task, asyncio.Future):
                raise Rejected(f"`start` should return tasks, and one of them is {brief(task)}")
        if not w.moved:  # the owner may give the array away at any time, and does so here
            w.share()
        del w
        return [await task for task in cast(Sequence["asyncio.Future[Any]"], tasks)]

    expected, run = _observed(attempt, model), _observed(attempt, mine)
    with compared(run.trace, expected.trace):
        never_blocks(run.trace)
        launches(run.trace, "matvec_naive", len(vectors))
        copies = [span for span in run.trace.device_spans if span.kind == "d2d"]
        if copies:
            raise Rejected(
                f"the weights were copied {count(len(copies), 'time')}: let all tasks use the one array",
                *copies[:1],
            )
    each_equal(run.result, [matrix @ x for x in vectors], f"{len(vectors)} batches, for result")


# ------------------------------------------------------------------ errors and cancelling
ARMS: dict[str, Callable[[], agt.DeviceOp[Any]]] = {
    "done": lambda: round_trip(1_000_000, 5.0),
    "device": out_of_bounds,
    "program": _buggy,
}


def check_three_arms(mine: Any, model: Any) -> None:
    """Each outcome is told from the others, costs them nothing, and cancelling gets through."""
    for arms in (
        ("done", "device", "done"),
        ("program", "done", "done"),
        ("device", "program", "done"),
    ):
        ops = [ARMS[arm]() for arm in arms]
        expected = observe(model, [ARMS[arm]() for arm in arms])
        with meant_to_fail(agt.DeviceError, KeyError):
            run = observe(mine, ops)
        with compared(run.trace, expected.trace):
            if expected.trace.metrics().overlap:
                side_by_side(
                    run.trace, "have all in flight, each in a task with a `try` of its own"
                )
        for i, told in enumerate(listed("reports", run.result, len(arms))):
            if not isinstance(told, tuple) or len(cast(tuple[Any, ...], told)) != 2:
                raise Rejected(
                    f'each report is a pair such as ("done", result), and one is {brief(told)}'
                )
            word, what = cast(tuple[Any, Any], told)
            if word != arms[i]:
                raise Rejected(f"operation {i} is reported as {word!r}, and {arms[i]!r} is right")
            if arms[i] == "done":
                equal(what, filled(1_000_000, 5.0))
            elif not isinstance(what, Exception):
                raise Rejected(f"a report of {word!r} should have the error, and has {brief(what)}")
    observe(_cancelled_while_waiting, mine)


async def _cancelled_while_waiting(answer: Any) -> None:
    task = asyncio.create_task(answer([round_trip(1_000_000, 1.0), round_trip(1_000_000, 2.0)]))
    await agt.sleep(150)
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    if not isinstance(outcome, asyncio.CancelledError):
        raise Rejected(
            "somebody cancelled `reports`, and it went on as if nothing had happened: `except Exception` "
            "lets a cancellation through, and `except BaseException` does not"
        )


def check_at_most(mine: Any, model: Any) -> None:
    """What is done in time comes at once; else None comes on time, and no task waits any more."""

    async def attempt(answer: Any, size: int, us: float) -> tuple[Any, int]:
        result = await answer(round_trip(size, 7.0), us)
        agt.work(1, "answered")
        await asyncio.sleep(0)  # what was cancelled gets the turn in which it ends
        await asyncio.sleep(0)
        return result, len(asyncio.all_tasks()) - 1

    for size, us in [(100_000, 2000.0), (4_000_000, 200.0)]:
        expected, run = _observed(attempt, model, size, us), _observed(attempt, mine, size, us)
        (result, left), in_time = run.result, expected.result[0] is not None
        with case(f"at most {us:.0f} µs for {size:,} elements"):
            with compared(run.trace, expected.trace):
                _on_time(run.trace, expected.trace, in_time)
                never_blocks(run.trace)
            # What follows shows in no timeline, so a rejection gets no picture.
            if not in_time and result is not None:
                raise Rejected(f"the time was up, so None should come out, and {brief(result)} did")
            if left:
                raise Rejected(
                    f"{count(left, 'task')} of yours {'is' if left == 1 else 'are'} still waiting: "
                    "cancel what you do not want to wait for any longer"
                )
            if in_time:
                equal(result, filled(size, 7.0))


def _on_time(trace: agt.Trace, expected: agt.Trace, in_time: bool) -> None:
    """The answer came neither late nor before the time was over."""
    (answered,) = trace.find("answered")
    end = _device_end(trace)
    late = answered.start - expected.find("answered")[0].start
    if in_time and late > 100:
        raise Rejected(
            "the operation was done long before, and you waited for the end of the time all the same: "
            "wait for whichever is first",
            end,
            answered,
        )
    if not in_time and late < -100:
        raise Rejected(
            "you gave up before the time was over: `agt.sleep(us)` is the clock here (what asyncio has of "
            "its own counts on the clock on the wall)",
            answered,
        )
    if not in_time and answered.start > end.start:
        raise Rejected(
            "you waited until the device was done, although the time was up long before",
            end,
            answered,
        )


SIZES = (4_000_000, 64, 512)


def _coming(answer: Any) -> tuple[list[int], agt.Trace]:
    """The order in which an answer uses the results of operations of very different lengths; its trace."""
    used: list[int] = []

    def use(result: Any) -> None:
        if not isinstance(result, np.ndarray):
            raise Rejected(
                f"`use` should get a result, and this came: {brief(result)}. Await it before you use it"
            )
        size = cast("npt.NDArray[Any]", result).size
        used.append(size)
        agt.work(2, f"use of {size}")

    copy, *kernels = SIZES
    ops = [round_trip(copy, 1.0), *(computed(n, n, 1.0) for n in kernels)]
    run = observe(answer, ops, use)
    return used, run.trace


def _first_come(used: list[int], trace: agt.Trace) -> None:
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
    (_, expected), (used, trace) = _coming(model), _coming(mine)
    with compared(trace, expected):
        never_blocks(trace)
        _first_come(used, trace)
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
        if first.start > _device_end(trace).end:
            raise Rejected(
                "the first result was used when all were done: use it as soon as it is there",
                _device_end(trace),
                first,
            )


def hostile_as_they_come(mine: Any, _model: Any) -> None:
    """First come, first served, whichever comes first."""
    _first_come(*_coming(mine))


# ------------------------------------------------------------------ no more than so many
# The matrix of the one operation that takes longer than others: a thread goes along a whole row.
SLOW, ROW = 96, 8192


def _sizes(number: int, size: int) -> list[int]:
    """Each operation has a size of its own, so that it can be told from the others under any name."""
    return [size + i for i in range(number)]


def _limited(answer: Any, sizes: Sequence[int], limit: int) -> Observed[Any]:
    ops = [computed(n, ROW, 1) if n == SLOW else round_trip(n, i + 1) for i, n in enumerate(sizes)]
    return observe(answer, ops, limit)


def _limited_right(given: object, sizes: Sequence[int]) -> None:
    right = [filled(n, ROW if n == SLOW else i + 1) for i, n in enumerate(sizes)]
    in_order("run_limited", given, right)


def check_limited(mine: Any, model: Any) -> None:
    """`limit` are in flight and no more, the next starts as soon as one is done, and results are in order."""
    for sizes, limit in [
        (_sizes(5, 2_000_000), 2),
        (_sizes(6, 1_000_000), 3),
        (_sizes(3, 500_000), 8),
        ([SLOW, *_sizes(3, 64)], 2),
    ]:
        number = len(sizes)
        expected, run = _limited(model, sizes, limit), _limited(mine, sizes, limit)
        with (
            case(f"{number} operations and a limit of {limit}"),
            compared(run.trace, expected.trace),
        ):
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
    sizes = _sizes(5, 64)
    _limited_right(_limited(mine, sizes, 2).result, sizes)


EXERCISES = (
    Exercise("06-difference", "Measure the difference", "difference", check_difference),
    Exercise("06-prepare", "Prepare the next batch meanwhile", "pipeline", check_prepare),
    Exercise("06-responsive", "Keep the heart beating", "with_heartbeat", check_responsive),
    Exercise("06-spawn-safe", "Weights that outlive their function", "start", check_spawn_safe),
    Exercise("06-three-arms", "Three endings, told apart", "reports", check_three_arms),
    Exercise("06-cancel", "Wait, but not for ever", "at_most", check_at_most),
    Exercise(
        "06-as-completed",
        "First come, first served",
        "as_they_come",
        check_as_they_come,
        hostile_as_they_come,
    ),
    Exercise("06-limited", "No more than so many", "run_limited", check_limited, hostile_limited),
)
