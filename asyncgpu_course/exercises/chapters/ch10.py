"""Exercises of 10_build_it_yourself: what each one checks.

Operations of this chapter are functions: from a context, in which they enqueue, to what they yield.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, cycle
from typing import Any, cast
from unittest.mock import Mock, patch

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import sandbox, schedule
from asyncgpu_course.checks.operations import BLOCK, filled, step_kernel
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal, tuple_of
from asyncgpu_course.checks.sandbox import Observed, observe
from asyncgpu_course.checks.trials import cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count, find_spec, happens_before

SmallContext = agt.types.ExecutionContext
Op = Callable[[SmallContext], Any]
Twice = tuple[Observed, Observed, agt.types.Stream]
DISTINCT = 5  # operations in a list; what comes after these is the same ones again
_AGAIN = "the same operation, run again on another stream"


# ------------------------------------------------------------------ operations to try answers on
def _source(number: float, size: int, name: str) -> Op:
    """Make a new array and have the kernel `name` fill it with `number`."""

    def enqueue(context: SmallContext) -> agt.DeviceArray:
        array = context.empty((size,), np.float32, name)
        context.memset(array)
        return _step(name, 0.0, number, array)(context)

    return enqueue


def _step(name: str, a: float, b: float, x: agt.DeviceArray) -> Op:
    """Have the kernel `name` compute a * x + b in place."""
    source = step_kernel(name).source

    def enqueue(context: SmallContext) -> agt.DeviceArray:
        function = context.device.get_function(source, name)
        numbers = (np.uint32(x.size), np.float32(a), np.float32(b))
        context.launch(function, (-(-x.size // BLOCK), 1, 1), (BLOCK, 1, 1), (*numbers, x, x))
        return x

    return enqueue


def _download(array: agt.DeviceArray) -> Op:
    return lambda context: context.copy_to_host(array)


def _read(source: Op) -> Op:
    return lambda context: _download(source(context))(context)


def _arms(number: int, name: str, distinct: int = DISTINCT) -> list[Op]:
    """So many operations. The ones after `distinct` are the first ones again; some yield None, or a pair."""

    def arm(i: int) -> Op:
        read = _read(_source(i % DISTINCT + 1.0, 500, f"{name}{i}"))

        def enqueue(context: SmallContext) -> Any:
            x = read(context)
            return {1: None, 3: (x, i)}.get(i % DISTINCT, x)

        return enqueue

    arms = list(map(arm, range(distinct)))
    return [arms[i % distinct] for i in range(number)]


def _submit(op: Op, stream: agt.types.Stream) -> Any:
    return agt.with_context(lambda context: agt.value(op(context))).async_on(stream)


def _observed(op: Op, stream: agt.types.Stream) -> Observed:
    def submit_and_wait() -> Any:
        result = _submit(op, stream)
        stream.synchronize()
        return result

    return observe(submit_and_wait)


def _twice(op: Op) -> Twice:
    """A run of the operation, and one on another stream in which it is there twice, and that stream."""
    run, other = _observed(op, agt.create_stream()), agt.create_stream()

    def both(context: SmallContext) -> Any:
        op(context)
        return op(context)

    return run, _observed(both, other), other


def _described(name: str, answer: Any, *args: Callable[[Any], Any]) -> Op:
    """The operation that an answer describes; the ops among `args` are watched for being called too early."""
    early, called = True, list[object]()
    cause = f"`{name}` already called what it was given, when it should only describe: "
    cause += "move the calls into a function of the context, and return that"

    @cache  # an operation that is there twice is so for the answer, too
    def watched(thing: Any) -> Any:
        def enqueue(given: Any) -> Any:
            called.append(given)
            must(not early, cause)
            return thing(given)

        return enqueue

    op = sandbox.call(answer, *map(watched, args))
    must(not called, cause)  # whatever it made of the error
    early = False
    cause = f"`{name}` should return an operation, a function that takes a context, and returned "
    must(callable(op), cause + brief(op))
    return cast(Op, op)


def _called(got: object) -> None:
    cause = "an operation came out where its result should be: nobody has run it yet"
    must(not callable(got), cause)


def _numbers(got: object, right: CheckedArray) -> None:
    _called(got)
    equal(got.numpy() if isinstance(got, agt.types.HostArray) else got, right)


def _tuple_of(results: object, number: int, name: str) -> None:
    cause = f"an operation of `{name}` should yield a tuple of {number}, and it yielded "
    got = tuple_of(results, number, cause)
    apart = [result for result in got if result is not None]
    cause = "two results are one and the same: an operation that is there twice runs twice, "
    must(len({*map(id, apart)}) == len(apart), cause + "with a result each")
    pair = "the operation yields a pair, and this is "
    for i, result in enumerate(got):
        with case(f"result {i}"):
            if i % DISTINCT == 1:
                must(result is None, f"the operation yields None, and this is {brief(result)}")
            else:
                array = tuple_of(result, 2, pair)[0] if i % DISTINCT == 3 else result
                _numbers(array, filled(500, i % DISTINCT + 1.0))


# ------------------------------------------------------------------ and_then
def _chained(answer: Any, size: int) -> Twice:
    """A chain of three, run on two streams; and one whose first part yields things that count as False."""
    first, seen = _source(3.0, size, "first"), list[object]()
    describe = partial(_described, "and_then", answer)
    made = Mock(side_effect=cycle(given := [None, 0, ()]))

    def second(x: agt.DeviceArray) -> Op:
        return _step("second", 2.0, 1.0, x)

    def noted(thing: object) -> Op:
        seen.append(thing)
        return first

    chain = describe(made, noted)
    for _ in given:
        _called(_observed(chain, agt.create_stream()).result)
    cause = f"in three runs, `op` was called {made.call_count} times: call it once in each"
    must(made.call_count <= len(given), cause)
    cause = "`op` yielded None, 0 and () in three runs. Those are results like any other, so `f` should be "
    cause += f"called once with each, and it was called with {brief(seen)}"
    must(seen == given, cause)
    return _twice(describe(describe(first, second), _download))


def _chain_ran(found: Twice, size: int) -> None:
    """Describing calls nothing; a run is one chain on one stream, and can be repeated."""
    run, again, stream = found
    _called(run.result)
    schedule.launches(run.trace, "second", 1)
    schedule.one_stream(run.trace)
    _numbers(run.result, filled(size, 7.0))
    with case(_AGAIN):
        schedule.only_on(again.trace, stream)
        schedule.launches(again.trace, "second", 2)
        _numbers(again.result, filled(size, 7.0))


def _zipped(answer: Any, number: int, _words: str) -> Twice:
    return _twice(_described("zip_ops", answer, *_arms(number, "op")))


def _zip_ran(found: Twice, number: int, _words: str) -> None:
    """All operations are run, in order, on the one stream, and the results are a tuple."""
    run, again, stream = found
    _tuple_of(run.result, number, "zip_ops")
    schedule.one_stream(run.trace)
    names = [f"op{i % DISTINCT}" for i in range(number)]
    for name in names:
        schedule.launches(run.trace, name, names.count(name))
    schedule.ordered(run.trace, *names[:DISTINCT])
    with case(_AGAIN):
        schedule.only_on(again.trace, stream)
        for name in names:
            schedule.launches(again.trace, name, 2 * names.count(name))
        _tuple_of(again.result, number, "zip_ops")


# ------------------------------------------------------------------ shared
def _readers(answer: Any, size: int) -> Observed:
    """Three readers of one source, each on a stream of its own, and two of another, which yields None."""
    one, two, three = [agt.create_stream() for _ in range(3)]
    describe = partial(_described, "shared", answer)
    source = describe(_source(5.0, size, "source"))
    nothing, made = _source(6.0, size, "other"), list[Any]()
    other = describe(lambda context: made.append(nothing(context)))

    def reader(context: SmallContext) -> Any:
        result = other(context)
        for array in made[-1:]:
            _step("reader", 1.0, 0.0, array)(context)
        return result

    broken = describe(lambda _: 1 // 0)
    for _ in range(2):
        with suppress(ZeroDivisionError):
            try:
                came = brief(_submit(broken, one))
            except KeyError as error:
                came = f"a KeyError, {error}, instead"
            raise Rejected(f"`op` raised an error, and a caller got {came}: let it out")

    def both() -> Any:
        ops = [_read(source), _read(source), other, reader, _read(source)]
        readers = zip(ops, (one, two, two, one, three), strict=True)
        _submit(_source(1.0, size, "own"), two)
        results = [_submit(op, stream) for op, stream in readers]
        agt.synchronize()
        return results

    return observe(both)


def _source_ran(run: Observed, size: int) -> None:
    """The source runs once, each shared operation has its own, and readers elsewhere wait by an event."""
    schedule.each_once(run.trace, "source", "other")
    for result in (*run.result[:2], run.result[4]):
        _numbers(result, filled(size, 5.0))
    cause = f"`other` yields None, and `shared` made {brief(run.result[2])} of it"
    must(run.result[2:4] == [None, None], cause)
    cause = "a reader waits for what another one did after the source: "
    cause += "record the event right behind the source"
    for early, late in combinations(sorted(run.trace.find("d2h"), key=lambda span: span.id), 2):
        must(not happens_before(run.trace, early, late), cause, early, late)
    (own,), last = run.trace.find("own"), max(run.trace.find("d2h"), key=lambda span: span.id)
    cause = "a reader waits for what another one's stream did before it read: wait for the "
    must(not happens_before(run.trace, own, last), cause + "event of the source", own, last)


LAPS = 12  # around the pool


def _round_robin(mine: Any, _model: Any, size: int) -> None:
    """Each stream has its turn, and no two policies have one in common."""
    next_stream, other = sandbox.call(mine, size), sandbox.call(mine, size)
    cause = "`round_robin` should return a function that names the next stream, and returned "
    must(callable(next_stream), cause + brief(next_stream))
    both = [next_stream, other]
    run = observe(lambda: [tuple(map(sandbox.call, both)) for _ in range(LAPS * size)])
    schedule.waits(run.trace, 0, "a policy says which stream is next, and waits for nobody")
    asked = [stream for stream, _ in run.result]  # the other one is asked in between
    cause = f"a call of the function should give a stream, and gave {brief(asked[0])}"
    must(all(hasattr(stream, "wait_event") for stream in asked), cause)
    numbers = [stream.number for stream in asked]
    came = count(len(set(numbers)), "different stream")
    must(len(set(numbers)) == size, f"{came} came in {len(numbers)} turns, and {size} is right")
    for turn, (number, right) in enumerate(zip(numbers, LAPS * numbers[:size], strict=True)):
        cause = f"turn {turn} was stream {number}, and stream {right} was due: each should have one turn "
        must(number == right, cause + "before any has a second, and always in the same order")
    cause = "two policies share a stream: make the streams in `round_robin`, anew at each call"
    must(all(stream.number not in numbers for _, stream in run.result), cause)


# ------------------------------------------------------------------ future
TURNS, FEW = 1000, 3  # turns of the neighbour: at most, and too few for a polite wait
D2H_GB_S = 0.5  # so slow that an answer has to ask thousands of times
_LONG = 1_000_000  # elements: the copy of so many goes on long after the host has asked for it


def _awaited(answer: Any, number: int) -> Observed:
    """Await so many pieces of work, while a neighbour counts its turns, on a bus that takes its time."""

    async def wait(stream: agt.types.Stream, i: int, turns: Callable[[], int]) -> int:
        result = _submit(_read(_source(i + 1.0, _LONG, f"job{i}")), stream)
        future = answer(result, stream.record())
        before = turns()
        first = await future
        meanwhile = turns() - before
        cause = f"`await` gave {brief(first)} instead of the result that the future was made with"
        must(first is result, cause)
        first.numpy()  # refused if it is too early
        must(await future is result, "a second `await` of the same future gave something else")
        return meanwhile

    async def main() -> list[int]:
        async with sandbox.neighbour(TURNS) as turns:
            waits = [wait(agt.create_stream(), i, turns) for i in range(number)]
            return await asyncio.gather(*waits)

    with sandbox.private_device(spec=replace(find_spec("h200"), d2h_gb_s=D2H_GB_S)):
        return observe(main)


def _nobody_waited(run: Observed, _number: int) -> None:
    """Awaiting gives the result when the event is done, and everybody else a turn until then."""
    schedule.never_blocks(run.trace)
    cause = "other tasks got hardly a turn while this one waited: `yield` as long as the event isn't done"
    must(max(run.result) > FEW, cause)
    late = run.returned - max(span.end for span in run.trace.device_spans)
    cause = f"the event was done, and `await` ended {late:.0f} µs later: look in each turn, and only `yield`"
    must(late < 20, cause)


async def _stepped(answer: Any) -> None:
    """Step through waits for an event that is done after so many turns."""
    event, over = agt.create_stream().record(), False
    with patch.object(type(event), "done", property(lambda _: over)):
        for late in (0, 3, 4, 200_000):
            cause = f"the event is done after {late:,} turns, and `await` should end then: look each time"
            over = not late
            for turn, other in enumerate(answer("result", event).__await__(), 1):
                if other is not None:  # it waits for something else than its next turn
                    return
                must(turn <= late, cause)
                over = turn == late
            must(over, cause)


def check_future(mine: Any, model: Any) -> None:
    """Events of the device, beside a neighbour, and others by hand."""
    with sandbox.no_pauses():
        runs(_awaited, _nobody_waited, [(1,), (3,)], "{:future}")(mine, model)
        sandbox.call(_stepped, mine)


# ------------------------------------------------------------------ overlap
def _forked(answer: Any, number: int, again: str) -> tuple[Observed, Observed]:
    """Something before, the arms, and something after, all in one operation, which is run twice."""
    x = agt.zeros(500, name="x").sync()
    op = _described("overlap", answer, *_arms(number, "arm", DISTINCT if again else number))

    def enqueue(context: SmallContext) -> Any:
        _step("before", 1.0, 1.0, x)(context)
        results = op(context)
        _step("after", 1.0, 1.0, x)(context)
        return results

    one, two = (agt.StreamPoolRoundRobin(max(number, 4)) for _ in range(2))
    with agt.using(policy=one):
        run = _observed(enqueue, agt.create_stream())
    with agt.using(policy=two):

        def once_more(context: SmallContext) -> Any:
            agt.work(1, "again")  # so that no span has the number that the same one had before
            return enqueue(context)

        return run, _observed(once_more, agt.create_stream())


def _overlapped(found: tuple[Observed, Observed], number: int, again: str) -> float:
    """Each arm comes after what is before it and ahead of what is after it, and none waits for another.

    The score is the time of the last row's arms, which grows with what the answer has the host do.
    """
    names = [f"arm{i % DISTINCT if again else i}" for i in range(number)]
    for run, words in zip(found, ("", _AGAIN), strict=True):
        with case(words):
            for name in names:
                schedule.launches(run.trace, name, names.count(name))
                schedule.ordered(run.trace, "before", name, "after")
            _tuple_of(run.result, number, "overlap")
            for one, other in combinations(dict.fromkeys(names), 2):
                schedule.unordered(run.trace, one, other)
    before = [span for span in found[1].trace.device_spans if span.stream in found[0].trace.streams]
    cause = "the second run put work on a stream of the first: fork the context anew in each run"
    must(not before, cause, *before[:1])
    return found[0].trace.metrics().makespan


ZIPPED = [(3, ""), (1, ""), (0, ""), (12, again := ", of which some are there again")]
_ARMS = [(2, ""), (3, ""), (0, ""), (1, ""), (12, ""), (7, again), (4, "")]
CHAPTER_10 = (
    Exercise("10-and-then", "and_then", "and_then", runs(_chained, _chain_ran, [(1000,), (64,)],
                  "three operations in a chain, {} elements")),
    Exercise("10-zip", "zip", "zip_ops", runs(_zipped, _zip_ran, ZIPPED, "{:operation}{}")),
    Exercise("10-shared", "shared", "shared", runs(_readers, _source_ran, [(100_000,), (500,)],
                  "three readers on three streams")),
    Exercise("10-round-robin", "Round robin", "round_robin",
             cases(_round_robin, [(3,), (1,), (4,), (30,)], "a pool of {}")),
    Exercise("10-future", "A future", "Future", check_future),
    Exercise("10-overlap", "overlap", "overlap", runs(_forked, _overlapped, _ARMS, "{:arm}{}")),
)  # fmt: skip
