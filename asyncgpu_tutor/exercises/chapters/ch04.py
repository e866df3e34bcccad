"""Exercises of 04_combinators: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import schedule
from asyncgpu_tutor.exercises.checks.building import built, run_of
from asyncgpu_tutor.exercises.checks.operations import cuda, noise
from asyncgpu_tutor.exercises.checks.results import brief, each_equal, equal, listed
from asyncgpu_tutor.exercises.checks.trials import cases, tuple_of
from asyncgpu_tutor.exercises.exercise import Exercise, case, compared, must
from asyncgpu_tutor.exercises.internals import lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, observe, on_fresh_device

BLOCK = 256
# Each kernel gets a name of its own, so that it can be found in a trace.
PAIRWISE = cuda("04_pairwise")
ROW_SUMS = cuda("04_row_sums")
SCALE = cuda("04_scale")
SAXPY = cuda("04_saxpy")


def _random(seed: int, *shape: int) -> Any:
    return agt.pin(noise(seed, *shape))


def _pairwise(name: str, expression: str) -> agt.Kernel:
    return agt.Kernel(PAIRWISE.replace("NAME", name).replace("EXPRESSION", expression))


def _into_new(kernel: agt.Kernel, x: Any, y: Any, n: int) -> agt.DeviceOp[agt.DeviceArray]:
    """Launch a pairwise kernel on arrays, or on operations that yield some; yields its output."""
    return kernel(n, x, y, agt.zeros(n).partition(BLOCK)).output()


def _tuple(result: Any, number: int, what: str) -> tuple[Any, ...]:
    return tuple_of(result, number, f"a tuple of {number} {what} should come out, and this did: ")


# ------------------------------------------------------------------ chains
def _residual(mine: Any, model: Any, seed: int, n: int) -> None:
    """There is one upload, and each kernel runs once."""
    x = _random(seed, n)
    right = x + np.maximum(x, 0)
    once = ("h2d", "relu", "add", "d2h")
    with run_of("residual", mine, model, x, _pairwise("add", "x[i] + y[i]"))(*once) as run:
        pass
    equal(run.result, right)


def _loop(mine: Any, model: Any, seed: int, n: int, factors: list[float]) -> None:
    """Each result has its own factor, and is computed on the device."""
    kernel = agt.Kernel(SCALE)

    def scaled(array: agt.DeviceArray, factor: float) -> agt.DeviceOp[agt.DeviceArray]:
        return kernel(array.size, factor, array.partition(BLOCK)).output()

    x = _random(seed, n)
    right = [factor * x for factor in factors]
    with run_of("all_scaled", mine, model, x, factors, scaled)() as run:
        results = _tuple(run.result, len(factors), "results")
        due = f"all were scaled by {factors[-1]}, the last factor: your function looks `factor` up when it "
        due += "is called, and by then the loop is over"
        must(not all(np.array_equal(result, right[-1]) for result in results), due)
        each_equal(results, right, "factor")
        schedule.launches(run.trace, "scale", len(factors))


def _saxpy(mine: Any, model: Any, seed: int, n: int, a: float) -> None:
    """Building runs nothing; the run has two uploads and one launch."""
    x, y = _random(seed, n), _random(seed + 100, n)
    right = a * x + y
    with run_of("async_saxpy", mine, model, agt.Kernel(SAXPY), a, x, y)("saxpy") as run:
        schedule.launches(run.trace, "h2d", 2)
    equal(run.result, right)


def _halves(mine: Any, model: Any, seed: int, n: int) -> None:
    """The source runs once, and each entry of the tuple goes its own way."""
    x, y, saxpy = _random(seed, n), _random(seed + 1, n), agt.Kernel(SAXPY)

    def way(a: float) -> Callable[[agt.DeviceOp[agt.DeviceArray]], agt.DeviceOp[Any]]:
        return lambda op: saxpy(n, a, op, agt.zeros(n).partition(BLOCK)).output().to_host()

    source = agt.zip(agt.h2d(x), agt.h2d(y)).map(tuple)
    with run_of("halves", mine, model, source, way(2.0), way(3.0))() as run:
        schedule.launches(run.trace, "h2d", 2)
        results = _tuple(run.result, 2, "results")
    for name, got, right in zip(("f(first)", "g(second)"), results, (2 * x, 3 * y), strict=True):
        with case(name):
            equal(got, right)


# ------------------------------------------------------------------ side by side
def _integers(seed: int, n: int) -> Any:
    """A matrix of small integers, so that the sums of its rows are exact."""
    return agt.pin(np.random.default_rng(seed).integers(-4, 5, (n, n)).astype(np.float32))


def _summed(name: str, factor: int, n: int) -> Callable[[Any], agt.DeviceOp[agt.DeviceArray]]:
    """A function that sums a matrix's rows, in few threads, so that two of its kernels fit side by side."""
    kernel = agt.Kernel(ROW_SUMS.replace("NAME", name).replace("FACTOR", f"{factor}.0f"))
    return lambda matrix: kernel(n, matrix, agt.zeros(n).partition(128)).output()


def _subtracted(n: int) -> Callable[[Any, Any], agt.DeviceOp[Any]]:
    kernel = _pairwise("join", "x[i] - y[i]")

    def join(p: Any, q: Any) -> agt.DeviceOp[Any]:
        return _into_new(kernel, p, q, n).to_host()

    join.__qualname__ = "join"  # a learner reads it in an error
    return join


def _side_by_side(mine: Any, model: Any, seed: int, n: int) -> None:
    """Neither arm is made to wait for the other, the host does not wait, and what follows waits for both."""
    x, y = _integers(seed, n), _integers(seed + 10, n)
    a, b, join = _summed("a", 1, n), _summed("b", 2, n), _subtracted(n)
    arms, once = (a(agt.h2d(x)), b(agt.h2d(y))), ("a", "b", "join")
    with run_of("side_by_side", mine, model, *arms, join)(*once) as run:
        schedule.unordered(run.trace, "a", "b")
    equal(run.result, x.sum(axis=1) - 2 * y.sum(axis=1))


def _diamond(mine: Any, model: Any, seed: int, n: int) -> None:
    """The source runs once; its two users are on two streams; the join gets both results."""
    x = _integers(seed, n)
    parts = _summed("left", 3, n), _summed("right", 2, n), _subtracted(n)
    once = ("h2d", "left", "right", "join")
    with run_of("diamond", mine, model, agt.h2d(x), *parts)(*once) as run:
        (left,), (right,) = run.trace.find("left"), run.trace.find("right")
        lane = lane_of(run.trace, left)
        due = f"`left` and `right` both ran on {lane}: give each one of its own"
        must(left.stream != right.stream, due, left, right)
        schedule.unordered(run.trace, "left", "right")
    equal(run.result, x.sum(axis=1))


# ------------------------------------------------------------------ ownership
def _products(trace: agt.Trace, number: int) -> None:
    """There is one product for each vector, and the matrix is not copied."""
    schedule.launches(trace, agt.matvec_naive.name, number)
    schedule.launches(trace, "d2d", 0)


def _apply_all(mine: Any, model: Any, seed: int, n: int, number: int) -> None:
    """The operation leaves the matrix to its owner."""
    m, xs = _random(seed, n, n), [_random(seed + i, n) for i in range(number)]
    right = [m @ x for x in xs]
    matrix = agt.h2d(m).sync()
    with run_of("apply_all", mine, model, matrix, xs)() as run:
        due = f"the caller's `matrix` was moved {matrix.gone}, and the caller still needs it: lend "
        must(not matrix.moved, due + "the operations a handle instead")
        _products(run.trace, number)
    each_equal(_tuple(run.result, number, "products"), right, "vector")
    with case("the caller's `matrix`, looked at afterwards"):
        equal(agt.d2h(matrix.borrow()).sync(), m)


def _workers(mine: Any, model: Any, seed: int, n: int, number: int) -> None:
    """Each operation can be spawned, and none copies the matrix."""
    m, xs = _random(seed, n, n), [_random(seed + i, n) for i in range(number)]
    right = [m @ x for x in xs]
    expected = _spawned(model(agt.h2d(m).sync(), xs))
    building = observe(mine, agt.h2d(m).sync(), xs)
    with compared(building.trace, expected.trace):
        schedule.lazy(building.trace)
    ops = listed("jobs", building.result, number)
    due = f"`jobs` should return operations, and the first is {brief(ops[0])}"
    must(all(isinstance(op, agt.DeviceOp) for op in ops), due)
    run = _spawned(ops)
    with compared(run.trace, expected.trace):
        _products(run.trace, number)
    each_equal(run.result, right, "vector")


def _spawned(ops: Sequence[Any]) -> Observed:
    async def others() -> Any:
        return await asyncio.gather(*[agt.spawn(op) for op in ops])

    return observe(others)


# ------------------------------------------------------------------ challenge
FILTERED_US = 330.0


def check_filtered(mine: Any, model: Any) -> float:
    """The sum of the four is right, and takes less time than one thing after the other."""
    n = 1024
    x = _integers(1, n)
    right = 10 * x.sum(axis=1)
    filters = [_summed(f"filter{i}", i + 1, n) for i in range(4)]
    kernel = _pairwise("join", "x[i] + y[i]")

    def join(p: Any, q: Any) -> agt.DeviceOp[agt.DeviceArray]:
        return _into_new(kernel, p, q, n)

    expected = on_fresh_device(lambda: observe(model(x, filters, join).sync).trace)
    run = observe(built("filtered", mine, expected, x, filters, join).sync)
    equal(run.result, right)
    with compared(run.trace, expected):
        return schedule.below(FILTERED_US, run.trace)


FACTORS = [(1, 1000, [2.0, 3.0, 5.0]), (2, 300, [-1.0, 0.5])]
SAXPYS, MATRICES = [(1, 1000, 2.0), (2, 4096, -0.5)], [(1, 64, 3), (2, 48, 2)]
NUMBERS, SQUARE = "{1} elements", "{1} x {1} numbers"

EXERCISES = (
    Exercise("04-loop", "Mend the loop", "all_scaled", cases(_loop, FACTORS, "the factors {2}")),
    Exercise("04-baton", "Pass the baton", "residual",
             cases(_residual, [(1, 1000), (2, 256)], NUMBERS)),
    Exercise("04-saxpy", "Asynchronous SAXPY", "async_saxpy",
             cases(_saxpy, SAXPYS, "{1} elements and a={2}")),
    Exercise("04-zip-or-overlap", "zip or overlap?", "side_by_side",
             cases(_side_by_side, [(1, 1024), (2, 700)], SQUARE)),
    Exercise("04-unzip", "Take it apart", "halves", cases(_halves, [(1, 1000), (2, 300)], NUMBERS)),
    Exercise("04-diamond", "A diamond", "diamond",
             cases(_diamond, [(1, 1536), (2, 300)], SQUARE), cases(_diamond, [(3, 100)], SQUARE)),
    Exercise("04-lend", "Lend it", "apply_all", cases(_apply_all, MATRICES, SQUARE)),
    Exercise("04-workers", "For those who stay longer", "jobs", cases(_workers, MATRICES, SQUARE)),
    Exercise("04-challenge", "Challenge: four filters", "filtered", check_filtered),
)  # fmt: skip
