"""Exercises of 02_streams_and_events: what each one checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import filled, long_step
from asyncgpu_tutor.exercises.checks.races import observe_events
from asyncgpu_tutor.exercises.checks.results import Array, equal
from asyncgpu_tutor.exercises.checks.schedule import (
    below,
    launches,
    on_stream,
    ordered,
    unordered,
    waits,
    went_on,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, tried

NO_WAIT = "an event makes the *device* wait, and Python goes on"
LONG, SHORT = 32 * 1800, 32 * 20  # elements: what takes a kernel of `long_step` 104 us, and 2


def _zeros(n: int, name: str) -> agt.DeviceArray:
    return agt.h2d(agt.pin(filled(n, 0)), name).sync()


def _read(handle: object, what: str) -> Array:
    """The array that `async_on` has returned a handle of; the device is done by now."""
    if not isinstance(handle, agt.types.HostArray):
        raise Rejected(
            f"{what} should come back, as `async_on` gives it, and this did: {type(handle).__name__}"
        )
    return handle.numpy()


# ------------------------------------------------------------------ order the race
Two = tuple[Observed[Any], agt.types.Stream, agt.types.Stream]


def _two(answer: Any, n: int) -> Two:
    one, two = agt.create_stream(), agt.create_stream()
    x = _zeros(n, "x")
    write, read = long_step("write", 0.0, 7.0, x, x), agt.d2h(x.borrow()).named("read")
    return observe_events(answer, write, read, one, two), one, two


def check_order_the_race(mine: Any, model: Any) -> None:
    """Both are where they belong, in order, by an event and not by a wait."""
    with tried(_two, mine, model, LONG) as (run, one, two):
        launches(run.trace, "write", 1)
        launches(run.trace, "d2h", 1)
        waits(run.trace, 0, NO_WAIT)
        on_stream(run.trace, "write", one.number)
        on_stream(run.trace, "d2h", two.number)
        ordered(run.trace, "write", "d2h")
        went_on(run.trace, run.returned, NO_WAIT)
    call(agt.synchronize)
    equal(_read(run.result, "the result of `second`"), filled(LONG, 7))


# ------------------------------------------------------------------ fork and join
Fork = tuple[Observed[Any], agt.types.Stream, list[agt.types.Stream]]


def _fork(answer: Any, number: int, n: int) -> Fork:
    """Try an answer on x = 1 (prepare), y_i = (i + 2) * x (branch i), and copies of all y_i (combine)."""
    main, streams = agt.create_stream(), [agt.create_stream() for _ in range(number)]
    x = _zeros(n, "x")
    results = [_zeros(n, f"y{i}") for i in range(number)]
    prepare = long_step("prepare", 0.0, 1.0, x, x)
    branches = [long_step(f"branch{i}", i + 2.0, 0.0, x, y) for i, y in enumerate(results)]
    combine = agt.zip(*[agt.d2h(y.borrow()) for y in results]).named("combine")
    return observe_events(answer, prepare, branches, combine, main, streams), main, streams


def _combined(result: object, number: int, n: int) -> None:
    call(agt.synchronize)
    parts = cast(Sequence[object], result if isinstance(result, tuple) else ())
    if len(parts) != number:
        raise Rejected("`fork_join` should return what `combine` returns, as `async_on` gives it")
    for i, part in enumerate(parts):
        equal(_read(part, f"result {i}"), filled(n, i + 2))


def check_fork_join(mine: Any, model: Any) -> None:
    """Each part is on its stream; the branches follow the fork, precede the join, and are free."""
    for number, n in [(2, LONG), (3, SHORT)]:
        words = f"{number} branches"
        with tried(_fork, mine, model, number, n, words=words) as (run, main, streams):
            waits(run.trace, 0, NO_WAIT)
            on_stream(run.trace, "prepare", main.number)
            on_stream(run.trace, "d2h", main.number)
            for i, stream in enumerate(streams):
                launches(run.trace, f"branch{i}", 1)
                on_stream(run.trace, f"branch{i}", stream.number)
            for i, j in combinations(range(number), 2):
                unordered(run.trace, f"branch{i}", f"branch{j}")
            if n == LONG:
                went_on(run.trace, run.returned, NO_WAIT)
        _combined(run.result, number, n)


# ------------------------------------------------------------------ pieces that need each other
FEWEST = 3
NEEDS = {"a": "", "b": "", "c": "ab", "d": "ab", "e": "bc", "f": "acd"}
FREE = [("a", "b"), ("c", "d"), ("d", "e"), ("e", "f")]


def _pieces(answer: Any, lengths: Mapping[str, int]) -> Two:
    """Try an answer on pieces of work, each with a number of elements that says how long it takes."""
    one, two = agt.create_stream(), agt.create_stream()
    arrays = {name: _zeros(n, name) for name, n in lengths.items()}
    ops = {name: long_step(name, 0.0, 1.0, x, x) for name, x in arrays.items()}
    return observe(answer, ops, one, two), one, two


def _each_once(trace: agt.Trace, needs: Mapping[str, str]) -> None:
    for name in needs:
        launches(trace, name, 1)
    for name, needed in needs.items():
        for before in needed:
            ordered(trace, before, name)


SIX = dict.fromkeys(NEEDS, LONG // 2)


def check_fewest_events(mine: Any, model: Any) -> None:
    """All that is needed is ordered, nothing else is, and no wait is there that others make needless."""
    with tried(_pieces, mine, model, SIX) as (run, one, two):
        waits(run.trace, 0, NO_WAIT)
        for name in NEEDS:
            launches(run.trace, name, 1)
            on_stream(run.trace, name, (one if name in "ace" else two).number)
        _each_once(run.trace, NEEDS)
        for pair in FREE:
            unordered(run.trace, *pair)
        if (used := len(run.trace.find("wait_event"))) > FEWEST:
            raise Rejected(
                f"everything is in order, with {count(used, 'call')} of `wait_event`, and {FEWEST} are "
                "enough: which of them is true already because of the others?"
            )
        went_on(run.trace, run.returned, NO_WAIT)


# ------------------------------------------------------------------ the challenge
SEVEN = {"a": "", "b": "", "c": "a", "d": "a", "e": "b", "f": "c", "g": "def"}
UNIT = 32 * 900  # 52 us
LENGTHS = {name: UNIT * units for name, units in zip("abcdefg", (1, 3, 2, 2, 1, 3, 1), strict=True)}
GOAL = 440.0


def check_seven(mine: Any, model: Any) -> float:
    """Whatever needs something comes after it, and all of it takes less than the time to beat."""
    with tried(_pieces, mine, model, LENGTHS) as (run, *_):
        _each_once(run.trace, SEVEN)
        return below(GOAL, run.trace)


EXERCISES = (
    Exercise("02-order-the-race", "Order the race", "in_order", check_order_the_race),
    Exercise("02-fork-join", "Fork and join", "fork_join", check_fork_join),
    Exercise("02-minimum-events", "As few events as possible", "enqueue", check_fewest_events),
    Exercise("02-challenge", "Challenge: seven pieces, two streams", "arrange", check_seven),
)
