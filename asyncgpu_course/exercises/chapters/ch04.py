"""Exercises of 04_combinators: what each one checks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.building import run_of
from asyncgpu_course.checks.operations import cuda, noise, operation
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.checks.results import each_equal, equal, tuple_of
from asyncgpu_course.checks.trials import cases
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import lane_of

BLOCK = 256
# Each kernel gets a name of its own, so that it can be found in a trace.
SAXPY = cuda("04_saxpy")


def random(seed: int, *shape: int) -> Any:
    """Pinned numbers of a given shape."""
    return agt.pin(noise(seed, *shape))


def _pairwise(name: str, expression: str) -> agt.Kernel:
    return agt.Kernel(cuda("04_pairwise").replace("NAME", name).replace("EXPRESSION", expression))


def tuple_of_results(result: Any, number: int, *more: type[Any]) -> Sequence[Any]:
    """The entries of a result that should be a tuple, or one of `more` kinds."""
    return tuple_of(result, number, f"a tuple of {number} results should come out, and not ", *more)


# ------------------------------------------------------------------ chains
def _residual(mine: Any, model: Any, seed: int, n: int) -> None:
    """There is one upload, and each kernel runs once."""
    x = random(seed, n)
    right = x + np.maximum(x, 0)
    once = ("h2d", "relu", "add", "d2h")
    with run_of("residual", mine, model, x, _pairwise("add", "x[i] + y[i]"))(*once) as run:
        schedule.launches(run.trace, "d2d", 0)
        equal(run.result, right)


def _loop(mine: Any, model: Any, seed: int, n: int, factors: list[float]) -> None:
    """Each result has its own factor, and is computed on the device."""
    kernel = agt.Kernel(cuda("04_scale"))

    def scaled(array: agt.DeviceArray, factor: float) -> agt.DeviceOp[agt.DeviceArray]:
        return kernel(array.size, factor, array.partition(BLOCK)).output()

    x = random(seed, n)
    right = [factor * x for factor in factors]
    with run_of("all_scaled", mine, model, x, factors, scaled)() as run:
        results = tuple_of_results(run.result, len(factors))
        cause = f"all were scaled by {factors[-1]}, the last factor: the functions in your "
        cause += "loop look its variable up when they are called, and by then the loop is over"
        alike = all(np.array_equal(result, right[-1]) for result in results)
        must(len(factors) == 1 or not alike, cause)
        each_equal(results, right, "factor")
        schedule.launches(run.trace, "scale", len(factors))


def _saxpy(mine: Any, model: Any, seed: int, n: int, a: float) -> None:
    """Building runs nothing; the run has two uploads and one launch."""
    x, y = random(seed, n), random(seed + 100, n)
    right = a * x + y
    run_it = run_of("async_saxpy", mine, model, agt.Kernel(SAXPY), a, x, y)
    with run_it("saxpy") as run:
        schedule.launches(run.trace, "h2d", 2)
        schedule.launches(run.trace, "d2d", 0)
        equal(run.result, right)


# ------------------------------------------------------------------ side by side
def _integers(seed: int, n: int) -> Any:
    """A matrix of small integers, so that the sums of its rows are exact."""
    return agt.pin(np.random.default_rng(seed).integers(-4, 5, (n, n)).astype(np.float32))


def _summed(name: str, factor: float, n: int) -> Callable[[Any], agt.DeviceOp[agt.DeviceArray]]:
    """A function that sums a matrix's rows, in few threads, so that two of its kernels fit side by side."""
    source = cuda("04_row_sums").replace("NAME", name)
    kernel = agt.Kernel(source.replace("FACTOR", f"{float(factor)}f"))
    return lambda op: kernel(n, operation(name, op), agt.zeros(n).partition(128)).output()


def _joined(n: int, expression: str, home: bool = True) -> Callable[..., agt.DeviceOp[Any]]:
    kernel = _pairwise("join", expression)

    def join(p: Any, q: Any) -> agt.DeviceOp[Any]:
        op = kernel(n, p, q, agt.zeros(n).partition(BLOCK)).output()
        return op.to_host() if home else op

    join.__qualname__ = "join"  # a learner reads it in an error
    return join


def _side_by_side(mine: Any, model: Any, seed: int, n: int) -> None:
    """Neither arm is made to wait for the other, the host does not wait, and what follows waits for both."""
    x, y = _integers(seed, n), _integers(seed + 10, n)
    a, b, join = _summed("a", 1, n), _summed("b", 2, n), _joined(n, "x[i] - y[i]")
    arms, once = (a(agt.h2d(x)), b(agt.h2d(y))), ("a", "b", "join")
    with run_of("side_by_side", mine, model, *arms, join)(*once) as run:
        schedule.unordered(run.trace, "a", "b")
        equal(run.result, x.sum(axis=1) - 2 * y.sum(axis=1))


def _diamond(mine: Any, model: Any, seed: int, n: int) -> None:
    """The source runs once; its two users are on two streams; the join gets both results."""
    x = _integers(seed, n)
    parts = _summed("left", 3, n), _summed("right", 2, n), _joined(n, "x[i] - y[i]")
    once = ("h2d", "left", "right", "join")
    with run_of("diamond", mine, model, agt.h2d(x), *parts)(*once) as run:
        (left,), (right,) = run.trace.find("left"), run.trace.find("right")
        lane = lane_of(run.trace, left)
        cause = f"`left` and `right` both ran on {lane}: give each one of its own"
        must(left.stream != right.stream, cause, left, right)
        schedule.unordered(run.trace, "left", "right")
        equal(run.result, x.sum(axis=1))


# ------------------------------------------------------------------ challenge
FILTERED_US = 330.0


def _filtered(mine: Any, model: Any, seed: int, n: int, factors: list[int]) -> float:
    """The sum of the four is right, and takes less time than one thing after the other."""
    x = _integers(seed, n)
    f = [np.float32(factor) * x.sum(axis=1) for factor in factors]
    right = (f[0] + f[1]) + (f[2] + f[3])
    filters = [_summed(f"filter{i}", factor, n) for i, factor in enumerate(factors)]
    join = _joined(n, "x[i] + y[i]", home=False)
    once = [f"filter{i}" for i in range(4)]
    with run_of("filtered", mine, model, x, filters, join)(*once) as run:
        equal(run.result, right)
        return schedule.below(FILTERED_US, run.trace)


FACTORS = [(1, 1000, [3.0, 2.0, 2.0, 5.0]), (2, 300, [-1.0, 0.0, 0.5]), (3, 77, [0.25])]
FACTORS.append((4, 50, [i / 4 for i in range(11)]))
SAXPYS = [(1, 1000, 2.0), (2, 4096, -0.5), (3, 1000, 1.5)]
_LARGE = 100_000_000  # beside it, 40 is lost in a float
FILTERS = [(1, 1024, [_LARGE, 40, -_LARGE, 1]), (2, 1024, [1, _LARGE, 40, -_LARGE])]
BY = "filters that multiply the sums of rows by {2} (so it shows which were added first)"
NUMBERS, SQUARE = "{1} elements", "{1} x {1} numbers"

CHAPTER_04 = (Exercise("04-loop", "Mend the loop", "all_scaled", cases(_loop, FACTORS, "the factors {2}")),
    Exercise("04-baton", "Pass the baton", "residual", cases(_residual, [(1, 1000), (2, 256)], NUMBERS)),
    Exercise("04-saxpy", "Asynchronous SAXPY", "async_saxpy",
             cases(_saxpy, SAXPYS, "{1} elements and a={2}")),
    Exercise("04-zip-or-overlap", "zip or overlap?", "side_by_side",
             cases(_side_by_side, [(1, 1024), (2, 700)], SQUARE)),
    Exercise("04-diamond", "A diamond", "diamond",
             cases(_diamond, [(1, 1536), (2, 300)], SQUARE), cases(_diamond, [(3, 100)], SQUARE)),
    Exercise("04-challenge", "Challenge: four filters", "filtered", cases(_filtered, FILTERS, BY)),
)  # fmt: skip
