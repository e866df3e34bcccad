"""Exercises of 06_await: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count as counter
from itertools import pairwise
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.chapters import ch06_flow
from asyncgpu_tutor.exercises.checks.operations import filled, noise, out_of_bounds, round_trip
from asyncgpu_tutor.exercises.checks.results import (
    Array,
    brief,
    each_equal,
    equal,
    in_order,
    listed,
)
from asyncgpu_tutor.exercises.checks.schedule import (
    launches,
    never_blocks,
    overlapping,
    side_by_side,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared, meant_to_fail
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, observe, tried

PERIOD, MOST_BEATS = 50.0, 2000  # us between two beats; how many of them are an endless loop
NEVER_STOPS = (
    "the heart went on beating after the operation was done: cancel its task, or end its loop"
)


def _fails_at_submission(error: Exception) -> agt.DeviceOp[Any]:
    """Fails when it is submitted, because its function raises."""

    def look_up(_array: object) -> agt.DeviceOp[Any]:
        raise error

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
def check_prepare(mine: Any, model: Any) -> None:
    """The host prepares while the device works, unless all is done as soon without it; nobody blocks."""
    for number in (4, 2):

        def prepare(i: int, number: int = number) -> Any:
            if i not in range(number):
                raise Rejected(
                    f"batch {i} was prepared, and of {number} batches the last is {number - 1}"
                )
            agt.work(300, f"prepare {i}")
            return agt.pin(filled(1_500_000, i + 1))

        def process(x: Any) -> agt.DeviceOp[Any]:
            return agt.h2d(x).to_host()

        expected = observe(model, number, prepare, process)
        run = observe(mine, number, prepare, process)
        with compared(run.trace, expected.trace):
            never_blocks(run.trace)
            launches(run.trace, "d2h", number)
            if run.trace.metrics().makespan > 1.01 * expected.trace.metrics().makespan:
                for i in range(1, number):
                    why = "have a batch started, really started, before you prepare the next one"
                    overlapping(run.trace, f"prepare {i}", why)
        right = [filled(1_500_000, i + 1) for i in range(number)]
        in_order("pipeline", run.result, right, f"{number} batches, for result")


def _beating(answer: Any, make: Callable[[], agt.DeviceOp[Any]]) -> Observed[Any]:
    """Try an answer on an operation, and stay in the loop for a while after it."""
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
        result = await answer(make(), beat)
        agt.work(1, "returned")
        await agt.sleep(400)
        return result

    return _observed(attempt)


def _failing(answer: Any) -> Observed[Any]:
    """Try an answer on an operation that fails, whose error may come out, alone or in a group."""

    async def caught(op: Any, beat: Any) -> None:
        try:
            await answer(op, beat)
        except* agt.DeviceError:
            pass

    return _beating(caught, out_of_bounds)


def _stops(trace: agt.Trace, cause: str) -> None:
    (returned,) = trace.find("returned")
    late = [span for span in trace.find("beat") if span.start > returned.start]
    if late:
        raise Rejected(cause, returned, late[0])


def check_responsive(mine: Any, model: Any) -> None:
    """The heart beats all the while, about as often as it should, and stops with the operation."""
    for size in (2_000_000, 1_000_000):

        def copy(size: int = size) -> agt.DeviceOp[Any]:
            return round_trip(size, 3.0).named("copy")

        with tried(_beating, mine, model, copy) as run:
            never_blocks(run.trace)
            _stops(run.trace, NEVER_STOPS)
            _as_due(run.trace)
        equal(run.result, filled(size, 3.0))
    with tried(_failing, mine, model) as run:
        _stops(run.trace, "`op` failed, and the heart still beats: stop it in a `finally`")


def _as_due(trace: agt.Trace) -> None:
    """The first beat is at the start, and from then on there is one every 50 us, to the end."""
    (returned,), end = trace.find("returned"), _device_end(trace)
    beats = [span for span in trace.find("beat") if span.start < end.end]
    others = [s for s in trace if s.kind == "work" and s.name not in ("beat", "returned")]
    if others:
        raise Rejected(
            f"nobody had a turn for {others[0].duration:.0f} µs, while `{others[0].name}` kept the host "
            "busy: `await agt.sleep(50)` lets the others go on",
            others[0],
        )
    submitted = [s for s in trace if s.kind == "call" and s.start < end.start]
    begun = max(s.end for s in submitted)
    if not beats or beats[0].start > begun + PERIOD / 5:
        raise Rejected(
            "there was no beat at the start: call `beat` once as soon as the operation is under way, and "
            "then wait",
            *beats[:1],
        )
    times = [*(beat.start for beat in beats), end.end]
    for i, (early, late) in enumerate(pairwise(times)):
        if late - early > 2 * PERIOD:
            raise Rejected(
                f"between beat {i + 1} and what came next were {late - early:.0f} µs, and one beat every "
                f"{PERIOD:.0f} µs is right, all the while: by `agt.sleep(50)` (`asyncio.sleep` counts on the "
                "clock on the wall)",
                beats[i],
                returned,
            )
    if len(beats) > 2 * (end.end - beats[0].start) / PERIOD + 2:
        raise Rejected(
            f"`beat` was called {count(len(beats), 'time')} while the operation was under way: one every "
            f"{PERIOD:.0f} µs is right, by `agt.sleep(50)` (`asyncio.sleep` counts on the clock on the wall)",
            *beats[:2],
        )


# ------------------------------------------------------------------ ownership
def check_spawn_safe(mine: Any, model: Any) -> None:
    """All tasks use the one copy of the weights, whatever becomes of the caller's handle."""
    for n, number in ((64, 3), (100, 2)):
        matrix = noise(6, n, n)
        vectors = [noise(7 + i, n) for i in range(number)]
        expected, run = (_observed(_started, answer, matrix, vectors) for answer in (model, mine))
        with compared(run.trace, expected.trace):
            never_blocks(run.trace)
            launches(run.trace, "matvec_naive", number)
            copies = [span for span in run.trace.device_spans if span.kind == "d2d"]
            if copies:
                raise Rejected(
                    f"the weights were copied {count(len(copies), 'time')}: let all tasks use the one array",
                    *copies[:1],
                )
        right = [matrix @ x for x in vectors]
        each_equal(run.result, right, f"{number} batches and a matrix of {n} x {n}, for result")


async def _started(answer: Any, matrix: Array, vectors: Sequence[Array]) -> list[Any]:
    w: agt.DeviceArray = await agt.h2d(agt.pin(matrix), "w")
    tasks = listed("start", answer([agt.pin(x) for x in vectors], w), len(vectors))
    for task in tasks:
        if not isinstance(task, asyncio.Future):
            raise Rejected(f"`start` should return tasks, and one of them is {brief(task)}")
    left = not w.moved
    if left:  # the owner may give the array away at any time, and does so here
        w.share()
    del w
    found = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in found:
        if left and isinstance(outcome, agt.errors.UseAfterMoveError):
            raise Rejected(
                "when `start` had returned, its caller gave `w` away, as it may, and the tasks still relied "
                "on the caller's handle: take `w` over before you return, by `w = w.share()`"
            )
        if isinstance(outcome, BaseException):
            raise outcome
    return found


# ------------------------------------------------------------------ errors and cancelling
ARMS: dict[str, Callable[[], agt.DeviceOp[Any]]] = {
    "done": lambda: round_trip(1_000_000, 5.0),
    "device": out_of_bounds,
    "program": lambda: _fails_at_submission(KeyError("scale")),
}


OTHERS = (ValueError("a shape"), ZeroDivisionError("a mean of nothing"), RuntimeError("a bug"))


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
    with meant_to_fail(*[type(error) for error in OTHERS]):
        run = observe(mine, [_fails_at_submission(error) for error in OTHERS])
    words = [(told[0], told[1]) for told in listed("reports", run.result, len(OTHERS))]
    if words != [("program", error) for error in OTHERS]:
        raise Rejected(
            f"any exception that is no `agt.DeviceError` is the program's, and of "
            f"{', '.join(type(error).__name__ for error in OTHERS)} the reports are {brief(words)}"
        )
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

    for size, us in [(100_000, 2000.0), (4_000_000, 200.0), (4_000_000, 900.0), (6_000_000, 500.0)]:
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
    if not in_time and answered.start > end.end:
        raise Rejected(
            "you waited until the device was done, although the time was up long before",
            end,
            answered,
        )


EXERCISES = (
    Exercise("06-prepare", "Prepare the next batch meanwhile", "pipeline", check_prepare),
    Exercise("06-responsive", "Keep the heart beating", "with_heartbeat", check_responsive),
    Exercise("06-spawn-safe", "Weights that outlive their function", "start", check_spawn_safe),
    Exercise("06-three-arms", "Three endings, told apart", "reports", check_three_arms),
    Exercise("06-cancel", "Wait, but not for ever", "at_most", check_at_most),
    *ch06_flow.EXERCISES,
)
