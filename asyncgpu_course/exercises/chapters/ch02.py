"""Exercises of 02_streams_and_events: what each one checks."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.operations import filled, long_step
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.checks.results import CheckedArray, equal, tuple_of
from asyncgpu_course.checks.sandbox import Observed, call, observe, slow_memory
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

LOAD_US = 20.0
NO_WAIT = "an event makes the *device* wait, and Python goes on"
LONG, SHORT = 32 * 200, 32 * 20  # elements: in slow memory `long_step` takes 400 us for them, or 40

# A run, and the stream, or streams, that the answer was given.
Two = tuple[Observed, agt.types.Stream, agt.types.Stream]
Fork = tuple[Observed, agt.types.Stream, list[agt.types.Stream]]


def _zeros(n: int, name: str) -> agt.DeviceArray:
    return agt.h2d(agt.pin(filled(n, 0)), name).sync()


def _read(handle: object, what: str) -> CheckedArray:
    """The array that `async_on` has returned a handle of; the device is done by now."""
    cause = f"{what} should come back as `async_on` gives it, and not as {type(handle).__name__}"
    must(isinstance(handle, agt.types.HostArray), cause)
    return cast(agt.types.HostArray, handle).numpy()


# ------------------------------------------------------------------ order the race
@slow_memory(LOAD_US)
def _two(answer: Any, n: int) -> Two:
    one, two = agt.create_stream(), agt.create_stream()
    x, *others = (_zeros(n, name) for name in "xabc")
    write, read = long_step("write", 0.0, 7.0, x, x), agt.d2h(x.borrow()).named("read")
    a, b, c = (long_step(f"other_{y.name}", 0.0, 1.0, y, y) for y in others)

    def amid_others() -> Any:
        _ = a.async_on(one), b.async_on(two)
        return call(answer, write, read, one, two), c.async_on(one)

    run = schedule.observe_events(amid_others)
    run.result = run.result[0]
    return run, one, two


def _ordered(found: Two, n: int) -> None:
    """Both are where they belong, in order, by an event and not by a wait."""
    run, one, two = found
    schedule.each_once(run.trace, "write", "d2h")
    schedule.waits(run.trace, 0, NO_WAIT)
    schedule.on_stream(run.trace, "write", one.number, "one")
    schedule.on_stream(run.trace, "d2h", two.number, "two")
    schedule.ordered(run.trace, "write", "d2h")
    schedule.unordered(run.trace, "other_b", "write")
    schedule.unordered(run.trace, "other_c", "d2h")
    schedule.went_on(run.trace, run.returned, NO_WAIT, "write")
    call(agt.synchronize)
    equal(_read(run.result, "the result of `second`"), filled(n, 7))


# ------------------------------------------------------------------ fork and join
@slow_memory(LOAD_US)
def _fork(answer: Any, number: int, n: int) -> Fork:
    """Try an answer on x = 1 (prepare), y_i = (i + 2) * x (branch i), and copies of x and y_i (combine)."""
    main, streams = agt.create_stream(), [agt.create_stream() for _ in range(number)]
    x = _zeros(n, "x")
    results = [_zeros(n, f"y{i}") for i in range(number)]
    prepare = long_step("prepare", 0.0, 1.0, x, x)
    branches = [long_step(f"branch{i}", i + 2.0, 0.0, x, y) for i, y in enumerate(results)]
    combine = agt.zip(*[agt.d2h(y.borrow()) for y in (x, *results)]).named("combine")
    return schedule.observe_events(answer, prepare, branches, combine, main, streams), main, streams


def _joined(found: Fork, number: int, n: int) -> None:
    """Each part is on its stream; the branches follow the fork, precede the join, and are free."""
    run, main, streams = found
    schedule.waits(run.trace, 0, NO_WAIT)
    schedule.on_stream(run.trace, "prepare", main.number, "main")
    schedule.on_stream(run.trace, "d2h", main.number, "main")
    for i, stream in enumerate(streams):
        schedule.launches(run.trace, f"branch{i}", 1)
        schedule.on_stream(run.trace, f"branch{i}", stream.number, f"streams[{i}]")
        schedule.ordered(run.trace, "prepare", f"branch{i}", "d2h")
    schedule.each_once(run.trace, "prepare")
    schedule.launches(run.trace, "d2h", number + 1)
    for i, j in combinations(range(number), 2):
        schedule.unordered(run.trace, f"branch{i}", f"branch{j}")
    if n == LONG:
        schedule.went_on(run.trace, run.returned, NO_WAIT, "prepare")
    call(agt.synchronize)
    cause = "`fork_join` should return whatever `async_on` returns for `combine`, and returned "
    for i, part in enumerate(tuple_of(run.result, number + 1, cause)):
        equal(_read(part, f"result {i}"), filled(n, i + 1))


# ------------------------------------------------------------------ pieces that need each other
def _pieces(answer: Any, lengths: Mapping[str, int]) -> Two:
    """Try an answer on pieces of work, each with a number of elements that says how long it takes."""
    one, two = agt.create_stream(), agt.create_stream()
    arrays = {name: _zeros(n, name) for name, n in lengths.items()}
    ops = {name: long_step(name, 0.0, 1.0, x, x) for name, x in arrays.items()}
    return observe(answer, ops, one, two), one, two


def _each_after(trace: agt.Trace, needs: Mapping[str, str]) -> None:
    """Each piece runs once, and after those that it needs."""
    schedule.each_once(trace, *needs)
    for name, needed in needs.items():
        for before in needed:
            schedule.ordered(trace, before, name)


FEWEST = 3
NEEDS = {"a": "", "b": "", "c": "ab", "d": "ab", "e": "bc", "f": "acd"}
FREE = [("a", "b"), ("c", "d"), ("d", "e"), ("e", "f")]
SIX = dict.fromkeys(NEEDS, LONG)


def _fewest(found: Two, _lengths: object) -> None:
    """All that is needed is ordered, nothing else is, and no wait is there that others make needless."""
    run, one, two = found
    schedule.waits(run.trace, 0, NO_WAIT)
    for name in NEEDS:
        schedule.launches(run.trace, name, 1)
        stream, called = (one, "one") if name in "ace" else (two, "two")
        schedule.on_stream(run.trace, name, stream.number, called)
    _each_after(run.trace, NEEDS)
    for pair in FREE:
        schedule.unordered(run.trace, *pair)
    used = len(run.trace.find("wait_event"))
    cause = f"everything is in order, with {count(used, 'call')} of `wait_event`, and {FEWEST} are enough: "
    must(used <= FEWEST, cause + "which needs are met already because of the others?")
    schedule.went_on(run.trace, run.returned, NO_WAIT, "a")


SEVEN = {"a": "", "b": "", "c": "a", "d": "a", "e": "b", "f": "c", "g": "def"}
_UNIT = 32 * 1280  # 50 us, and twice as many take twice as long, as rows begin where sectors do
_UNITS = {"a": 1, "b": 3, "c": 2, "d": 2, "e": 1, "f": 3, "g": 1}
_LENGTHS = {name: _UNIT * units for name, units in _UNITS.items()}
_GOAL = 440.0
FORKS = [(2, LONG), (5, SHORT), (1, SHORT), (0, SHORT), (11, SHORT)]


def _seven(found: Two, _lengths: object) -> float:
    """Each piece comes after those that it needs, and all of it takes less than the time to beat."""
    _each_after(found[0].trace, SEVEN)
    schedule.only_on(found[0].trace, *found[1:])
    return schedule.below(_GOAL, found[0].trace)


CHAPTER_02 = (
    Exercise("02-order-the-race", "Order the race", "in_order", runs(_two, _ordered, [(LONG,)], "")),
    Exercise("02-minimum-events", "As few waits as possible", "enqueue",
             runs(slow_memory(LOAD_US)(_pieces), _fewest, [(SIX,)], "")),
    Exercise("02-fork-join", "Fork and join", "fork_join", runs(_fork, _joined, FORKS, "a fork into {}")),
    Exercise("02-challenge", "Challenge: seven pieces, two streams", "arrange",
             runs(_pieces, _seven, [(_LENGTHS,)], "")),
)  # fmt: skip
