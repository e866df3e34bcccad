"""Exercises of 06_await: what each one checks."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count as counter
from itertools import pairwise
from typing import Any, cast
from unittest.mock import Mock

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations, sandbox, schedule
from asyncgpu_course.checks.operations import computed_result, filled, noise, own_sizes, round_trip
from asyncgpu_course.checks.rejection import Rejected, about, case, compared, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal, in_order, listed, tuple_of
from asyncgpu_course.checks.sandbox import Observed, observe, tried
from asyncgpu_course.checks.trials import Check, cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count


def _fails_at_submission(error: Exception) -> agt.DeviceOp[Any]:
    return agt.ones(32).and_then(Mock(side_effect=error))


def _hostile_batches(mine: Any, _model: Any) -> None:
    """Results are in order, whichever batch is ready first, and also if one comes twice."""
    first, *more = given = [agt.pin(_batch(i, n)) for i, n in enumerate(own_sizes(5, 64))]
    run = observe(mine, 6, [*given, first].__getitem__, _process)
    in_order("pipeline", run.result, [first, *more, first])


def _device_end(trace: agt.Trace) -> agt.types.Span:
    cause = "the operation never ran: `await` it, or `spawn` it and await the task"
    must(bool(trace.device_spans), cause)
    return max(trace.device_spans, key=lambda span: span.end)


def _batch(i: int, size: int) -> CheckedArray:
    return filled(size, (i - 1) * PART)  # batch 1 is zeros, which are a result like any other


def _process(x: Any) -> agt.DeviceOp[Any]:
    return agt.h2d(x).to_host()


def _batches(us: float, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Functions `prepare`, which keeps the host busy so long, and `process`, for batches of these sizes."""

    def prepare(i: int) -> Any:
        cause = f"batch {i} was prepared, but the last of {len(sizes)} batches is batch {len(sizes) - 1}"
        must(i in range(len(sizes)), cause)
        agt.work(us, f"prepare {i}")
        return agt.pin(_batch(i, sizes[i]))

    return prepare, _process


# ------------------------------------------------------------------ looking inside
# Large enough that the copies outlast the calls: only then does anybody wait.
_LARGE = [(1, (100_000,), 0), (2, (1000, 400), -10)]
Turns = tuple[Observed, CheckedArray]


def _with_neighbour(answer: Any, seed: int, shape: tuple[int, ...], middle: int) -> Turns:
    """Try an answer on a round trip of numbers, and count the turns that another task had meanwhile."""
    x = agt.pin(noise(seed, *shape) + np.float32(middle))
    op = agt.h2d(x).to_host()

    async def main() -> Any:
        async with sandbox.neighbour(100) as turns:
            waiting = answer(op)
            cause = "`largest` should be a coroutine: write it with `async def`"
            must(isinstance(waiting, Awaitable), cause)
            before = turns()
            return await cast(Awaitable[Any], waiting), turns() - before

    return observe(main), x


def _polite(found: Turns, *_row: Any) -> None:
    """The largest number comes back, and other tasks have their turns meanwhile."""
    run = found[0]
    schedule.launches(run.trace, "d2h", 1)
    schedule.never_blocks(run.trace)
    cause = "no other task had a turn while this one waited: "
    must(run.result[1] > 0, cause + "a loop that asks again and again keeps everybody waiting, too")
    _is_largest(found)


def _is_largest(found: Turns, *_row: Any) -> None:
    (result, _), right = found[0].result, found[1].max()
    shown = type(result).__name__ if np.ndim(result) else repr(result)
    cause = f"the largest number is {right:.6g}, and you returned {shown}"
    must(not np.ndim(result) and result == right, cause)


# ------------------------------------------------------------------ waiting less
BATCH, PART = 1_500_000, 4 / 3  # which is no number of half the precision


def _prepare(mine: Any, model: Any, number: int) -> None:
    """The host prepares while the device works, unless all is done as soon without it; nobody blocks."""
    given = number, *_batches(300, [BATCH] * number)
    expected, run = observe(model, *given).trace, observe(mine, *given)
    with compared(run.trace, expected):
        schedule.never_blocks(run.trace)
        schedule.launches(run.trace, "d2h", number)
        schedule.each_once(run.trace, *[f"prepare {i}" for i in range(number)])
        took, enough = (trace.metrics().makespan for trace in (run.trace, expected))
        if took > 1.01 * enough:
            for i in range(1, number):
                why = "have a batch started, really started, before you prepare the next one"
                schedule.overlapping(run.trace, f"prepare {i}", why)
        cause = f"it takes {took:.0f} µs, and {enough:.0f} are enough: "
        must(took <= 1.1 * enough, cause + "does somebody sleep, or wait, for no reason?")
    in_order("pipeline", run.result, [_batch(i, BATCH) for i in range(number)])


_SOON = 25  # us
PERIOD, MOST_BEATS = 50.0, 2000  # us between two beats; how many of them are an endless loop
NEVER_STOPS = "the heart beats on after the operation was done: cancel it, or look before each beat"
BY_SLEEP = "by `agt.sleep(50)` (`asyncio.sleep` goes by the clock on the wall)"


def _beating(answer: Any, make: Callable[[], agt.DeviceOp[Any]]) -> Observed:
    """Try an answer on an operation, and stay in the loop for a while after it."""
    numbers = counter(1)
    under_way: set[bool] = set()  # collects whether the operation was under way at a beat

    def beat() -> None:
        under_way.add(agt.in_flight() > before)
        if next(numbers) > MOST_BEATS:
            must(True not in under_way, NEVER_STOPS)
            cause = f"`beat` was called {MOST_BEATS} times without an end: between two beats, "
            raise Rejected(cause + "let others have a turn with `await agt.sleep(50)`")
        agt.work(1, "beat")

    before = agt.in_flight()

    async def attempt() -> Any:
        result = await answer(make(), beat.__call__)  # whose errors may stay in a task
        agt.work(1, "returned")
        await agt.sleep(400)
        return result

    return observe(attempt)


def _stops(trace: agt.Trace, cause: str) -> None:
    (returned,) = trace.find("returned")
    late = [span for span in trace.find("beat") if span.start > returned.start]
    must(not late, cause, returned, *late[:1])


def check_responsive(mine: Any, model: Any) -> None:
    """The heart beats all the while, about as often as it should, and stops with the operation."""
    for size in (1_900_000, 1_000_000, 10_000_000):  # the first two end 10 µs after a beat
        with tried(_beating, mine, model, partial(round_trip, size, 3.0)) as run:
            schedule.never_blocks(run.trace)
            _stops(run.trace, NEVER_STOPS)
            _as_due(run.trace)
        equal(run.result, filled(size, 3.0))
    run = _beating(mine, lambda: round_trip(64, 3.0).map(lambda _: None))
    must(run.result is None, f"`op` yields None, and `with_heartbeat` returned {brief(run.result)}")
    failing = [partial(_failed, answer) for answer in (mine, model)]
    for fails in operations.out_of_bounds, partial(_fails_at_submission, KeyError("scale")):
        with tried(_beating, *failing, fails) as run:
            _stops(run.trace, "`op` failed, and the heart still beats: stop it in a `finally`")
    cancelled = [partial(_cancelled, answer, "with_heartbeat") for answer in (mine, model)]
    with tried(_beating, *cancelled, partial(round_trip, 2_000_000, 3.0)) as run:
        _stops(run.trace, "somebody cancelled you, and the heart beats on: stop it in a `finally`")


def _as_due(trace: agt.Trace) -> None:
    """The first beat is at the start, and from then on there is one every 50 us, to the end."""
    (returned,), end = trace.find("returned"), _device_end(trace)
    every = trace.find("beat")
    beats = [span for span in every if span.start < end.end]
    for other in [s for s in trace if s.kind == "work" and s.name not in ("beat", "returned")]:
        cause = f"nobody had a turn for {other.duration:.0f} µs, while `{other.name}` kept the "
        must(False, cause + "host busy: `await agt.sleep(50)` lets the others go on", other)
    begun = max(s.end for s in trace if s.kind == "call" and s.start < end.start)
    cause = "there was no beat at the start: call `beat` once as soon as the operation is under way, and "
    must(bool(beats) and beats[0].start <= begun + PERIOD / 5, cause + "then wait", *beats[:1])
    times = [*(beat.start for beat in beats), end.end]
    for i, (early, late) in enumerate(pairwise(times)):
        cause = f"between beat {i + 1} and what came next were {late - early:.0f} µs, and one "
        cause += f"beat every {PERIOD:.0f} µs is right, all the while: {BY_SLEEP}"
        calls = sum(s.duration for s in trace if s.kind == "call" and early <= s.start < late)
        most = 1.08 if i else 1.15  # since some of what submits `op` is in no call
        must(late - early - calls <= most * PERIOD, cause, beats[i], returned)
    for i, (early, late) in enumerate(pairwise(every)):
        cause = f"beat {i + 2} came {late.start - early.start:.0f} µs after the one before, "
        cause += f"and one every {PERIOD:.0f} µs is right"
        first = f": before each beat but the first, wait, {BY_SLEEP}"
        cause += first if late.start < end.end else ". By then the operation was done"
        must(late.start - early.start >= 0.93 * PERIOD, cause, early, late)
    longer = [span for span in every if span.start > end.end + 1.2 * _SOON]
    must(not longer, NEVER_STOPS, end, *longer[:1])


# ------------------------------------------------------------------ errors and cancelling
_ARMS: dict[str, Callable[[], agt.DeviceOp[Any]]] = {
    "done": lambda: round_trip(1_000_000, 5.0),
    "device": operations.out_of_bounds,
    "program": lambda: _fails_at_submission(KeyError("scale")),
}
_KINDS = {"device": agt.DeviceError, "program": KeyError}
ScaleError = type("ScaleError", (Exception,), {})
_OTHERS = ValueError, ScaleError, OSError, RuntimeError, agt.errors.UsageError
FAULTS = agt.DeviceError, agt.errors.DivisionByZeroError
MEANT = "an operation failed, as it is meant to here, and its error came out of your function: {}"
HANGS = "one operation failed, as it is meant to here, and your function waits forever: let its error out"
_ENDS = (*[error("no luck") for error in (*_OTHERS, *FAULTS)], TypeError(), None, (1, 2))


def _three_arms(mine: Any, model: Any, *arms: str) -> None:
    """Each outcome is told from the others, and costs them nothing."""
    ops = [_ARMS[arm]() for arm in arms]
    expected = observe(model, [_ARMS[arm]() for arm in arms]).trace
    with about((agt.DeviceError, KeyError), MEANT):
        run = observe(mine, ops)
    with compared(run.trace, expected):
        schedule.never_blocks(run.trace)
        ran, once = len(run.trace.find("launch beyond")), arms.count("device")
        cause = f"the operation that fails ran {count(ran, 'time')}: "
        must(ran == once, cause + "report it, and let others retry")
        if expected.metrics().overlap:
            cure = "put them all in flight, each in a task with a `try` of its own"
            schedule.side_by_side(run.trace, cure)
    for i, told in enumerate(listed("reports", run.result, len(arms))):
        cause = 'each report is a pair such as ("done", result), and one is '
        word, what = tuple_of(told, 2, cause)
        must(word == arms[i], f"operation {i} is reported as {word!r} instead of {arms[i]!r}")
        if word == "done":
            equal(what, filled(1_000_000, 5.0))
        else:
            cause = f"a report of {word!r} should contain the error that came out, and contains {brief(what)}"
            must(isinstance(what, _KINDS[arms[i]]) and what.__traceback__ is not None, cause)


def check_three_arms(mine: Any, model: Any) -> None:
    """Any mixture of outcomes is told apart, any exception is known, and cancelling gets through."""
    rows = [("done", "device", "done"), ("program", "done", "done"), ("device", "program", "done")]
    cases(_three_arms, rows, "operations that end as {}, {} and {}")(mine, model)
    ops = [_fails_at_submission(e) if isinstance(e, Exception) else agt.value(e) for e in _ENDS]
    with about((Exception,), MEANT):
        run = observe(mine, ops)
    for end, told in zip(_ENDS, listed("reports", run.result, len(_ENDS)), strict=True):
        word = "device" if isinstance(end, agt.DeviceError) else "program"
        right = (word if isinstance(end, Exception) else "done"), end
        cause = f"the report on an operation that ends with {end!r} should be {right!r}, and "
        cause += f"is {brief(told)}: any `agt.DeviceError` is the device's, and any exception "
        must(tuple(told[:2]) == right, cause + "that is no `agt.DeviceError` is the program's")
    sizes = own_sizes(7, 2_000_000)
    with case(f"{len(sizes)} operations"), tried(_many, mine, model, *sizes) as run:
        schedule.all_in_flight(run.trace, sizes, len(sizes))
    observe(_cancelled, mine, "reports", [round_trip(1_000_000, 1.0), round_trip(1_000_000, 2.0)])
    listed("reports", observe(mine, []).result, 0)


def _many(answer: Any, *sizes: int) -> Observed:
    return observe(answer, [round_trip(n, 1.0) for n in sizes])


async def _cancelled(answer: Any, name: str, *args: Any) -> int:
    """The number of tasks that an answer leaves behind, which lets a cancellation through."""
    task = asyncio.create_task(answer(*args))
    await agt.sleep(150)
    task.cancel()
    outcome: Any = (await asyncio.gather(task, return_exceptions=True))[0]
    cause = f"somebody cancelled `{name}`, and it went on as if nothing had happened: `except Exception` "
    cause += "lets a cancellation through, and `except BaseException` does not"
    must(isinstance(outcome, asyncio.CancelledError), cause)
    return await _left()


async def _left() -> int:
    """The number of other tasks, after the turns in which those end that were cancelled."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


def _at_most(mine: Any, model: Any, us: int, size: int) -> None:
    """A result that is there in time comes at once, or else None does on time, and no task waits any more."""
    number = 0.0 if us == 900 else 7.0  # a result of zeros is one, too

    async def attempt(answer: Any) -> tuple[Any, int]:
        result = await answer(round_trip(size, number), float(us))
        agt.work(1, "answered")
        return result, await _left()

    expected, run = observe(attempt, model), observe(attempt, mine)
    (result, left), in_time = run.result, expected.result[0] is not None
    with compared(run.trace, expected.trace):
        (answered,), end = run.trace.find("answered"), _device_end(run.trace)
        late = answered.start - expected.trace.find("answered")[0].start
        cause = f"the result was there, and you still waited for {late:.0f} µs: wait for "
        must(not in_time or late <= _SOON / 2, cause + "whichever comes first", end, answered)
        cause = "you gave up before the time was over: use `agt.sleep(us)` as the clock "
        cause += "(asyncio's own timers go by the clock on the wall)"
        must(in_time or late >= -35, cause, answered)  # 28 to submit it
        cause = f"the time was up, and you went on waiting for {late:.0f} µs: wait for whichever comes first"
        must(in_time or late <= _SOON, cause, end, answered)
        schedule.never_blocks(run.trace)
    # What follows shows in no timeline, so a rejection gets no picture.
    cause = f"the time was up, so `at_most` should return None, and it returned {brief(result)}"
    must(in_time or result is None, cause)
    cause = "the result was there in time, and `at_most` returned None. If your clock ran out, use "
    cause += "`agt.sleep(us)` instead (asyncio's own timers go by the clock on the wall)"
    must(not in_time or result is not None, cause)
    cause = f"{count(left, 'task')} of yours {'is' if left == 1 else 'are'} still waiting: "
    must(not left, cause + "cancel whatever you don't want to wait for any longer")
    if in_time:
        equal(result, filled(size, number))


def check_at_most(mine: Any, model: Any) -> None:
    """An operation that is done in time, one that is not, one that fails, and a cancellation."""
    cases(_at_most, _TIMES, "at most {} µs for {} elements")(mine, model)
    with about("will never happen", HANGS):
        left = observe(_failed, mine, operations.out_of_bounds(), 9000.0).result
    cause = f"the operation failed, and {count(left, 'task')} of yours went on waiting: "
    must(not left, cause + "cancel the clock in a `finally`, which runs then, too")
    left = observe(_cancelled, mine, "at_most", round_trip(4_000_000, 1.0), 900.0).result
    cause = f"somebody cancelled `at_most`, and {count(left, 'task')} of its own went on waiting: "
    must(not left, cause + "cancel them in a `finally`, which runs then, too")


async def _failed(answer: Any, *args: Any) -> int:
    """The number of tasks left of an answer to a failing operation, whose error may come out in a group."""
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)  # meant to fail
    try:
        await answer(*args)
    except* (agt.DeviceError, KeyError):
        pass
    await agt.sleep(400)
    return await _left()


# ------------------------------------------------------------------ first come, first served
_SIZES = (4_000_000, 64, 256, 512), (64, 2_000_000), (*own_sizes(6, 2_000_000),)
Used = tuple[agt.Trace, list[int]]


def _coming(answer: Any, *sizes: int) -> Used:
    """A trace, and the order in which an answer uses the results of operations of very different lengths."""
    used: list[int] = []

    def use(result: Any) -> None:
        cause = f"`use` should get a result, and it got {brief(result)}. Await it before you use it"
        must(isinstance(result, np.ndarray), cause)
        size = cast(CheckedArray, result).size
        with case(f"the result of {size:,} elements"):
            equal(cast(object, result), filled(size, 1.0 if size > 1e6 else size))
        used.append(size)
        agt.work(2, f"use of {size}")

    ops = [round_trip(n, 1.0) if n > 1e6 else computed_result(n, n, 1.0) for n in sizes]
    return observe(answer, ops, use).trace, used


def _idle(trace: agt.Trace, since: float, until: float) -> float:
    """The time for which the host did nothing meanwhile, in us."""
    busy = [s for s in trace if s.kind in ("call", "work") and s.end > since and s.start < until]
    return until - since - sum(s.end - max(s.start, since) for s in busy)


def _first_come(found: Used, *sizes: int) -> None:
    """Each result is used once, and soon: those that are there in the same turn may come in any order."""
    trace, used = found
    cause = f"`use` was called for results of {used} elements, and each of {sorted(sizes)} once is right"
    must(sorted(used) == sorted(sizes), cause)
    done = dict(zip(sizes, schedule.results(trace, sizes), strict=True))
    came = sorted(sizes, key=lambda n: done[n].end)
    uses = {n: trace.find(f"use of {n}")[0] for n in came}
    for size, use in uses.items():
        end = done[size].end
        idle = _idle(trace, end, use.start)
        cause = f"the result of {size:,} elements was there, and the host did nothing for "
        cause += f"{idle:.0f} µs before you used it: wait for whichever is done first, and "
        cause += "don't sleep"
        if used != came:
            cause = f"the results were used in the order of sizes {used}, and they came as "
            cause += f"{came}: do not wait for one while another is there"
        must(idle <= 4 * _SOON, cause, done[size], use)


def _as_they_come(found: Used, *sizes: int) -> None:
    """The quickest is used first, while the slowest is still at work."""
    trace, used = found
    schedule.never_blocks(trace)
    _first_come(found, *sizes)
    first = trace.find(f"use of {used[0]}")[0]
    # Overlap on the device would not tell, because answers may start the slowest operation last.
    late = [span for span in trace if span.kind == "call" and span.start > first.start]
    cause = "when you used the first result, some operations hadn't started yet: "
    must(not late, cause + "start all of them before you wait for the first", first, *late[:1])


def _lets_out(check: Check, more: Any) -> Check:
    """The check, and that the error of one operation costs the others nothing."""

    def both(mine: Any, model: Any) -> None:
        check(mine, model)
        ops = [operations.out_of_bounds(), *map(round_trip, (64, 65), (1.0, 1.0))]
        with about("will never happen", HANGS):
            left = observe(_failed, mine, ops, more).result
        cause = f"one of the operations failed, and {count(left, 'task')} of yours will wait forever: let "
        must(not left, cause + "the next one in, whatever became of the one before")
        op, used = round_trip(64, 1.0), list[object]()
        for ops in [], [op, op]:
            with case("the same operation twice" if ops else "no operations"):
                came = observe(mine, ops, used.append if callable(more) else more).result
                must(len(used if callable(more) else came) == len(ops), "some results are missing")

    return both


# ------------------------------------------------------------------ no more than so many
# The matrix of the one operation that takes longer than others: a thread goes along a whole row.
SLOW, ROW = 96, 8192


def _limited(answer: Any, limit: int, *sizes: int) -> Observed:
    each = enumerate(sizes, 1)
    ops = [computed_result(n, ROW, 1) if n == SLOW else round_trip(n, i) for i, n in each]
    return observe(answer, ops, limit)


def _limited_right(run: Observed, _limit: int, *sizes: int) -> None:
    right = [filled(n, ROW if n == SLOW else i + 1) for i, n in enumerate(sizes)]
    in_order("run_limited", run.result, right)


def _refilled(run: Observed, limit: int, *sizes: int) -> None:
    """`limit` are in flight and no more, the next starts as soon as one is done, and results are in order."""
    trace = run.trace
    schedule.never_blocks(trace)
    schedule.launches(trace, "d2h", len(sizes))
    most, right = schedule.most_in_flight(trace, sizes), min(len(sizes), limit)
    must(most <= right, f"{most} were in flight at a time, and {right} is the limit")
    cause = f"no more than {most} were in flight at a time, where {right} could have been"
    must(most == right, cause)
    times = zip(*schedule.stretches(trace, sizes), strict=True)
    begun, done = (sorted(each) for each in times)
    for i in range(limit, len(sizes)):
        late = [s for s in schedule.results(trace, sizes) if s.end == done[i - limit]][:1]
        idle = _idle(trace, done[i - limit], begun[i])
        cause = f"one is done, and its place stays empty for {idle:.0f} µs: start the next as soon as *one* "
        cause += "is done, and not when several are, or at the next look"
        must(idle <= 1.6 * _SOON, cause, *late)
    _limited_right(run, limit, *sizes)


LIMITS = [
    (2, *own_sizes(5, 2_000_000)), (3, *own_sizes(6, 1_000_000)), (6, *own_sizes(9, 2_000_000)),
    (8, *own_sizes(3, 500_000)), (1, *own_sizes(3, 1_000_000)), (2, SLOW, *own_sizes(3, 64)),
]  # fmt: skip


# ------------------------------------------------------------------ the challenge
FED, MOST, PAR = 6, 2, 1500.0
QUICK, LARGE = 1_000_000, 4_000_000  # elements: the device needs less time than the host, and more


def _fed(answer: Any, size: int, number: int) -> Observed:
    """Run an answer on batches which take the host some time before and after the device has them."""
    sizes = own_sizes(number, size)
    used, had = list[int](), list[weakref.ref[Any]]()

    def use(result: Any) -> None:
        i = cast(CheckedArray, result).size - sizes[0] if isinstance(result, np.ndarray) else -1
        with case(f"batch {i}" if i in range(number) else "what `use` got"):
            equal(cast(object, result), _batch(i, sizes[i]))
        used.append(i)
        had.append(weakref.ref(cast(CheckedArray, result)))
        agt.work(60, f"use {i}")

    async def beside(*given: Any) -> int:
        async with sandbox.neighbour(9) as turns:
            await answer(*given)
            return turns()

    run = observe(beside if size == LARGE else answer, number, *_batches(100, sizes), use)
    cause = f"`use` was called for batches {used}, and each of the {number} once is right"
    must(sorted(used) == list(range(number)), cause)
    agt.synchronize()
    if any(result() is not None for result in had):  # it takes long where a notebook holds much
        gc.collect()
    cause = "your function has returned, and somebody still keeps results: what is used can go"
    must(not any(result() is not None for result in had), cause)
    return run


def check_feed(mine: Any, model: Any) -> float:
    """All batches are used, never more than two are in flight, and host and device work together."""
    # Where the device is quick, a program without any limit has few in flight as well.
    words = f"batches of {LARGE:,} elements, for which the device needs longer"
    # On a device of its own, because memory that is there already would shorten the run that is timed.
    with sandbox.private_device(), case(words), tried(_fed, mine, model, LARGE, FED - 1) as run:
        schedule.never_blocks(run.trace)
        cause = "no other task had a turn: a loop that asks again and again blocks them, too"
        must(run.result > 0, cause)
        sizes = own_sizes(FED - 1, LARGE)
        most = schedule.most_in_flight(run.trace, sizes)
        cause = f"{most} batches were in flight at a time, but there's room for {MOST}: wait "
        copies = schedule.results(run.trace, sizes)[: MOST + 1]
        must(most <= MOST, cause + "for one before you start another", *copies)
    for number in (1, 2):
        with case(f"n={number}"):
            _fed(mine, QUICK, number)
    with tried(_fed, mine, model, QUICK, FED) as run:
        hint = "When does the host wait for the device, and when does the device wait for the host?"
        return schedule.below(PAR, run.trace, hint)


_TIMES = [(2000, 10_000_000), (200, 4_000_000), (900, 4_000_000), (500, 6_000_000), (200_000, 64)]

CHAPTER_06 = (
    Exercise("06-largest", "Look inside, without blocking", "largest",
             runs(_with_neighbour, _polite, _LARGE, "an array of shape {1}"),
             runs(sandbox.no_pauses()(_with_neighbour), _is_largest, [(3, (1000,), -10)], "")),
    Exercise("06-prepare", "Prepare the next batch meanwhile", "pipeline",
             cases(_prepare, [(4,), (2,), (7,), (1,)], "n={}"), _hostile_batches),
    Exercise("06-responsive", "Keep the heart beating", "with_heartbeat", check_responsive),
    Exercise("06-three-arms", "Three endings, told apart", "reports", check_three_arms, None, False),
    Exercise("06-cancel", "Wait, but not forever", "at_most", check_at_most),
    Exercise("06-as-completed", "First come, first served", "as_they_come",
             _lets_out(runs(_coming, _as_they_come, _SIZES, "{n} operations"), len),
             runs(_coming, _first_come, _SIZES[:1], "")),
    Exercise("06-limited", "No more than so many", "run_limited",
             _lets_out(runs(_limited, _refilled, LIMITS, "a limit of {}"), 1),
             runs(_limited, _limited_right, [(2, *own_sizes(5, 64))], "")),
    Exercise("06-feed", "The challenge: feed the device", "feed", check_feed),
)  # fmt: skip
