"""Exercises of 10_build_it_yourself: what each one checks.

Operations of this chapter are functions: from a context, in which they enqueue, to what they yield.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import BLOCK, filled, step_kernel
from asyncgpu_tutor.exercises.checks.results import Array, brief, equal
from asyncgpu_tutor.exercises.checks.schedule import (
    launches,
    never_blocks,
    one_stream,
    ordered,
    unordered,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, call, neighbour, observe, tried

Op = Callable[[agt.types.ExecutionContext], Any]


# ------------------------------------------------------------------ operations to try answers on
def _source(number: float, size: int, name: str) -> Op:
    """Make a new array and have the kernel `name` fill it with `number`."""

    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceArray:
        array = context.empty((size,), np.float32, name)
        context.memset(array)
        return _step(name, 0.0, number, array)(context)

    return enqueue


def _step(name: str, a: float, b: float, x: agt.DeviceArray) -> Op:
    """Have the kernel `name` compute a * x + b in place."""
    source = step_kernel(name).source

    def enqueue(context: agt.types.ExecutionContext) -> agt.DeviceArray:
        function = context.device.get_function(source, name)
        numbers = (np.uint32(x.size), np.float32(a), np.float32(b))
        blocks = -(-x.size // BLOCK)
        context.launch(function, (blocks, 1, 1), (BLOCK, 1, 1), (*numbers, x, x))
        return x

    return enqueue


def _download(array: agt.DeviceArray) -> Op:
    return lambda context: context.copy_to_host(array)


def _read(source: Op) -> Op:
    """Copy to the host what `source` yields."""
    return lambda context: _download(source(context))(context)


def _submit(op: Op, stream: agt.types.Stream) -> Any:
    return agt.with_context(lambda context: agt.value(op(context))).async_on(stream)


def _run(op: Op, stream: agt.types.Stream) -> Any:
    result = _submit(op, stream)
    stream.synchronize()
    return result


def _plain(answer: Any, *args: Any) -> Any:
    """As `call`, which would take a generator for a coroutine and run it."""
    if not callable(answer):
        return call(answer, *args)
    return call(lambda: [answer(*args)])[0]


def _observed(op: Op, stream: agt.types.Stream) -> Observed[Any]:
    """As `observe(_run, ...)`, which would take a generator for a coroutine and run it."""
    run = observe(lambda: [_run(op, stream)])
    return Observed(run.result[0], run.trace)


def _described(name: str, answer: Any, *args: Any) -> Op:
    """The operation that an answer describes; the ops among `args` are watched for being called too early."""
    early = True

    def watched(thing: Any) -> Any:
        def enqueue(given: Any) -> Any:
            if early:
                raise Rejected(
                    f"`{name}` already called what it was given, while it was only describing: move the "
                    "calls into an inner function that takes the context, and return that"
                )
            return thing(given)

        return enqueue

    op = _plain(answer, *[watched(arg) for arg in args])
    early = False
    if not callable(op):
        raise Rejected(
            f"`{name}` should return an operation, a function that takes a context, and returned "
            f"{brief(op)}"
        )
    return cast(Op, op)


def _called(got: object) -> None:
    if callable(got):
        raise Rejected(
            "an operation came out where its result should be: somebody has to call it with the context"
        )


def _numbers(got: object, right: Array) -> None:
    _called(got)
    equal(got.numpy() if isinstance(got, agt.types.HostArray) else got, right)


# ------------------------------------------------------------------ and_then
def _chained(answer: Any, size: int) -> tuple[Observed[Any], Any]:
    """A chain of three, run twice on a stream."""
    stream = agt.create_stream()

    def second(x: agt.DeviceArray) -> Op:
        return _step("second", 2.0, 1.0, x)

    first = _described("and_then", answer, _source(3.0, size, "first"), second)
    op = _described("and_then", answer, first, _download)
    return _observed(op, stream), _observed(op, stream).result


def check_and_then(mine: Any, model: Any) -> None:
    """Describing calls nothing; a run is one chain on one stream, and can be repeated."""
    for size in (1000, 64):
        words = f"three operations in a chain, {size} elements"
        with tried(_chained, mine, model, size, words=words) as (run, again):
            _called(run.result)
            launches(run.trace, "second", 1)
            one_stream(run.trace)
        with case(words):
            _numbers(run.result, filled(size, 7.0))
        with case("the same operation, run again"):
            _numbers(again, filled(size, 7.0))


# ------------------------------------------------------------------ zip
def _zipped(answer: Any, number: int) -> tuple[Observed[Any], Any]:
    stream = agt.create_stream()
    arms = [_read(_source(i + 1.0, 500, f"op{i}")) for i in range(number)]
    op = _described("zip_ops", answer, *arms)
    return _observed(op, stream), _observed(op, stream).result


def _tuple_of(results: object, number: int, name: str) -> None:
    if not isinstance(results, tuple):
        raise Rejected(f"an operation of `{name}` yields a tuple, and this came: {brief(results)}")
    got = cast(tuple[Any, ...], results)
    if len(got) != number:
        raise Rejected(f"{count(len(got), 'result')} came out, of {count(number, 'operation')}")
    for i, result in enumerate(got):
        with case(f"{number} operations, for result {i}"):
            _numbers(result, filled(500, i + 1.0))


def check_zip(mine: Any, model: Any) -> None:
    """All operations are run, in order, on the one stream, and the results are a tuple."""
    for number in (3, 1, 0):
        with tried(_zipped, mine, model, number) as (run, again):
            _tuple_of(run.result, number, "zip_ops")
            with case(count(number, "operation")):
                one_stream(run.trace)
                for i in range(number):
                    launches(run.trace, f"op{i}", 1)
        with case("the same operation, run again"):
            _tuple_of(again, number, "zip_ops")


# ------------------------------------------------------------------ shared
def _two_readers(answer: Any, size: int) -> Observed[Any]:
    """Two readers of one source, each on a stream of its own."""
    one, two = agt.create_stream(), agt.create_stream()
    source = _described("shared", answer, _source(5.0, size, "source"))
    other = _described("shared", answer, _source(6.0, size, "other"))

    def both() -> Any:
        results = [_submit(_read(source), one), _submit(_read(source), two)]
        results.append(_submit(_read(other), two))
        agt.synchronize()
        return results

    return observe(both)


def check_shared(mine: Any, model: Any) -> None:
    """The source runs once, each shared operation has its own, and readers elsewhere wait by an event."""
    for size in (100_000, 500):
        words = "two readers on two streams"
        with tried(_two_readers, mine, model, size, words=words) as run:
            launches(run.trace, "source", 1)
            launches(run.trace, "other", 1)
        with case(words):
            for result in run.result[:2]:
                _numbers(result, filled(size, 5.0))
            _numbers(run.result[2], filled(size, 6.0))


# ------------------------------------------------------------------ round robin
def check_round_robin(mine: Any, _model: Any) -> None:
    """Each stream has its turn, and no two policies have one in common."""
    for size in (3, 1, 4):
        next_stream = _plain(mine, size)
        if not callable(next_stream):
            raise Rejected(
                f"`round_robin` should return a function that names the next stream, and returned "
                f"{brief(next_stream)}"
            )
        asked = [call(cast(Callable[[], Any], next_stream)) for _ in range(3 * size)]
        if not all(hasattr(stream, "wait_event") for stream in asked):
            raise Rejected(
                f"a call of the function should give a stream, and gave {brief(asked[0])}"
            )
        numbers = [stream.number for stream in asked]
        with case(f"a pool of {size}"):
            if len(set(numbers)) != size:
                raise Rejected(
                    f"{count(len(set(numbers)), 'different stream')} came in {len(numbers)} turns, "
                    f"and {size} is right"
                )
            if numbers != 3 * numbers[:size]:
                raise Rejected(
                    f"the turns were streams {numbers}: each should have one turn before the first has "
                    "its second"
                )
            other = call(cast(Callable[[], Any], _plain(mine, size)))
            if other.number in numbers:
                raise Rejected(
                    "two policies share a stream: make the streams in `round_robin`, anew at each call"
                )


# ------------------------------------------------------------------ future
TURNS = 1000
LONG = 1_000_000  # elements: the copy of so many goes on long after the host has asked for it


def _awaited(answer: Any, number: int) -> Observed[Any]:
    """Await so many pieces of work, while a neighbour counts its turns."""
    streams = [agt.create_stream() for _ in range(number)]

    async def wait(stream: agt.types.Stream, i: int, turns: Callable[[], int]) -> None:
        op = _read(_source(i + 1.0, LONG, f"job{i}"))
        result = _submit(op, stream)
        future = answer(result, stream.record())
        before = turns()
        first = await future
        meanwhile = turns() - before
        if first is not result:
            raise Rejected(
                f"`await` gave {brief(first)}, and the result that the future got is right"
            )
        first.numpy()  # refused if it is too early
        if meanwhile == 0:
            raise Rejected(
                "another task of the event loop had no turn while this one waited: `yield` when the event is "
                "not done"
            )
        if await future is not result:
            raise Rejected("a second `await` of the same future gave something else")

    async def main() -> None:
        async with neighbour(TURNS) as turns:
            await asyncio.gather(*[wait(stream, i, turns) for i, stream in enumerate(streams)])

    return observe(main)


def check_future(mine: Any, model: Any) -> None:
    """Awaiting gives the result when the event is done, and everybody else a turn until then."""
    for number in (1, 3):
        with tried(_awaited, mine, model, number, words=count(number, "future")) as run:
            never_blocks(run.trace)


# ------------------------------------------------------------------ overlap
def _forked(answer: Any, number: int) -> Observed[Any]:
    """Something before, the arms, and something after, all in one operation."""
    stream = agt.create_stream()
    x = agt.zeros(500, name="x").sync()
    arms = [_read(_source(i + 1.0, 500, f"arm{i}")) for i in range(number)]
    op = _described("overlap", answer, *arms)

    def enqueue(context: agt.types.ExecutionContext) -> Any:
        _step("before", 1.0, 1.0, x)(context)
        results = op(context)
        _step("after", 1.0, 1.0, x)(context)
        return results

    return _observed(enqueue, stream)


def check_overlap(mine: Any, model: Any) -> float:
    """Each arm comes after what is before it and ahead of what is after it, and none waits for another.

    The score is the time of four arms, which grows with what the answer has the host do.
    """
    took = 0.0
    for number in (2, 3, 4):
        with tried(_forked, mine, model, number) as run:
            _tuple_of(run.result, number, "overlap")
            with case(f"{number} arms"):
                for i in range(number):
                    ordered(run.trace, "before", f"arm{i}", "after")
                for i in range(1, number):
                    unordered(run.trace, f"arm{i - 1}", f"arm{i}")
        took = run.trace.metrics().makespan
    return took


EXERCISES = (
    Exercise("10-and-then", "and_then", "and_then", check_and_then),
    Exercise("10-zip", "zip", "zip_ops", check_zip),
    Exercise("10-shared", "shared", "shared", check_shared),
    Exercise("10-round-robin", "Round robin", "round_robin", check_round_robin),
    Exercise("10-future", "A future", "Future", check_future),
    Exercise("10-overlap", "overlap", "overlap", check_overlap),
)
