"""Exercises of 04_combinators: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.building import built, run_of
from asyncgpu_tutor.exercises.checks.operations import noise
from asyncgpu_tutor.exercises.checks.results import brief, each_equal, equal, listed
from asyncgpu_tutor.exercises.checks.schedule import below, launches, lazy, unordered
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, observe, on_fresh_device

BLOCK = 256
# Each kernel gets a name of its own, so that it can be found in a trace.
PAIRWISE = r"""
extern "C" __global__ void NAME(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = EXPRESSION;
}
"""
ROW_SUMS = r"""
extern "C" __global__ void NAME(unsigned int n, const float* x, float* sums)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0.0f;
        for (unsigned int i = 0; i < n; i++) sum += x[row * n + i];
        sums[row] = FACTOR * sum;
    }
}
"""
SCALE = r"""
extern "C" __global__ void scale(unsigned int n, float factor, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = factor * x[i];
}
"""
SAXPY = r"""
extern "C" __global__ void saxpy(unsigned int n, float a, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def _random(seed: int, *shape: int) -> Any:
    return agt.pin(noise(seed, *shape))


def _pairwise(name: str, expression: str) -> agt.Kernel:
    return agt.Kernel(PAIRWISE.replace("NAME", name).replace("EXPRESSION", expression))


def _into_new(kernel: agt.Kernel, x: Any, y: Any, n: int) -> agt.DeviceOp[agt.DeviceArray]:
    """Launch a pairwise kernel on arrays, or on operations that yield some; yields its output."""
    return kernel(n, x, y, agt.zeros(n).partition(BLOCK)).output()


def _tuple(result: object, number: int, what: str) -> tuple[Any, ...]:
    """The entries of a result, if it is a tuple of this length."""
    if not isinstance(result, tuple):
        raise Rejected(f"a tuple of {what} should come out, and this did: {type(result).__name__}")
    entries = cast(tuple[Any, ...], result)
    if len(entries) != number:
        raise Rejected(f"{count(len(entries), 'result')} came out, and {number} are right")
    return entries


# ------------------------------------------------------------------ chains
def check_residual(mine: Any, model: Any) -> None:
    """There is one upload, and each kernel runs once."""
    add = _pairwise("add", "x[i] + y[i]")
    for seed, n in [(1, 1000), (2, 256)]:
        x = _random(seed, n)
        right = x + np.maximum(x, 0)
        with run_of("residual", mine, model, x, add) as run:
            for name in ("h2d", "relu", "add", "d2h"):
                launches(run.trace, name, 1)
        with case(f"{n} elements"):
            equal(run.result, right)


def check_loop(mine: Any, model: Any) -> None:
    """Each result has its own factor, and is computed on the device."""
    kernel = agt.Kernel(SCALE)

    def scaled(array: agt.DeviceArray, factor: float) -> agt.DeviceOp[agt.DeviceArray]:
        return kernel(array.size, factor, array.partition(BLOCK)).output()

    for seed, n, factors in [(1, 1000, [2.0, 3.0, 5.0]), (2, 300, [-1.0, 0.5])]:
        x = _random(seed, n)
        right = [factor * x for factor in factors]
        expected = observe(model(x, factors, scaled).sync).trace
        op = built("all_scaled", mine, expected, x, factors, scaled)
        run = observe(op.sync)
        results = _tuple(run.result, len(factors), "results")
        if all(np.array_equal(result, right[-1]) for result in results):
            raise Rejected(
                f"all were scaled by {factors[-1]}, the last factor: your function looks `factor` up when it "
                "is called, and by then the loop is over"
            )
        each_equal(results, right, f"the factors {factors}, for factor")
        with compared(run.trace, expected):
            launches(run.trace, "scale", len(factors))


# ------------------------------------------------------------------ SAXPY
def check_saxpy(mine: Any, model: Any) -> None:
    """Building runs nothing; the run has two uploads and one launch."""
    saxpy = agt.Kernel(SAXPY)
    for seed, n, a in [(1, 1000, 2.0), (2, 4096, -0.5)]:
        x, y = _random(seed, n), _random(seed + 100, n)
        right = a * x + y
        with run_of("async_saxpy", mine, model, saxpy, a, x, y) as run:
            for name, times in [("saxpy", 1), ("h2d", 2)]:
                launches(run.trace, name, times)
        with case(f"{n} elements and a={a}"):
            equal(run.result, right)


# ------------------------------------------------------------------ tuples
def check_halves(mine: Any, model: Any) -> None:
    """The source runs once, and each entry goes its own way."""
    saxpy = agt.Kernel(SAXPY)
    for seed, n in [(1, 1000), (2, 300)]:
        x = _random(seed, n)
        ways = [_scaled(saxpy, n, a) for a in (2.0, 3.0)]
        with run_of("halves", mine, model, agt.h2d(x).and_then(agt.dup), *ways) as run:
            launches(run.trace, "h2d", 1)
        results = _tuple(run.result, 2, "two results")
        for name, got, a in zip(("f(first)", "g(second)"), results, (2.0, 3.0), strict=True):
            with case(f"{n} elements, for {name}"):
                equal(got, a * x)


def _scaled(
    saxpy: agt.Kernel, n: int, a: float
) -> Callable[[agt.DeviceOp[agt.DeviceArray]], agt.DeviceOp[Any]]:
    return lambda op: saxpy(n, a, op, agt.zeros(n).partition(BLOCK)).output().to_host()


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


def check_side_by_side(mine: Any, model: Any) -> None:
    """Neither arm is made to wait for the other, the host does not wait, and what follows waits for both."""
    for seed, n in [(1, 1024), (2, 700)]:
        x, y = _integers(seed, n), _integers(seed + 10, n)
        a, b, join = _summed("a", 1, n), _summed("b", 2, n), _subtracted(n)
        arms = a(agt.h2d(x)), b(agt.h2d(y))
        with run_of("side_by_side", mine, model, *arms, join) as run:
            for name in ("a", "b", "join"):
                launches(run.trace, name, 1)
            unordered(run.trace, "a", "b")
        with case(f"{n} x {n} numbers"):
            equal(run.result, x.sum(axis=1) - 2 * y.sum(axis=1))


def check_diamond(mine: Any, model: Any) -> None:
    """The source runs once; its two users are on two streams; the join gets both results."""
    for seed, n in [(1, 1536), (2, 300)]:
        _diamond(mine, model, _integers(seed, n))


def hostile_diamond(mine: Any, model: Any) -> None:
    """In whatever order the two sides come to work, the numbers are right."""
    _diamond(mine, model, _integers(3, 100))


def _diamond(mine: Any, model: Any, x: Any) -> None:
    n = len(x)
    parts = _summed("left", 3, n), _summed("right", 2, n), _subtracted(n)
    with run_of("diamond", mine, model, agt.h2d(x), *parts) as run:
        for name in ("h2d", "left", "right", "join"):
            launches(run.trace, name, 1)
        (left,), (right,) = run.trace.find("left"), run.trace.find("right")
        if left.stream == right.stream:
            cause = f"`left` and `right` both ran on {lane_of(run.trace, left)}: give each one of its own"
            raise Rejected(cause, left, right)
        unordered(run.trace, "left", "right")
    with case(f"{n} x {n} numbers"):
        equal(run.result, x.sum(axis=1))


# ------------------------------------------------------------------ ownership
def check_apply_all(mine: Any, model: Any) -> None:
    """There is one product for each vector, and the matrix is neither copied nor taken from its owner."""
    for seed, n, number in [(1, 64, 3), (2, 48, 2)]:
        m, xs = _random(seed, n, n), [_random(seed + i, n) for i in range(number)]
        right = [m @ x for x in xs]
        matrix = agt.h2d(m).sync()
        expected = observe(model(matrix, xs).sync).trace
        op = built("apply_all", mine, expected, matrix, xs)
        run = observe(op.sync)
        if matrix.moved:
            raise Rejected(
                f"the caller's `matrix` was moved {matrix.gone}, and the caller still needs it: lend "
                "the operations a handle instead"
            )
        with compared(run.trace, expected):
            launches(run.trace, agt.matvec_naive.name, number)
            launches(run.trace, "d2d", 0)
        products = _tuple(run.result, number, "products")
        each_equal(products, right, f"{n} x {n} numbers, for vector")
        with case("the caller's `matrix`, looked at afterwards"):
            equal(agt.d2h(matrix.borrow()).sync(), m)


def check_workers(mine: Any, model: Any) -> None:
    """Each operation can be spawned, and none copies the matrix."""
    for seed, n, number in [(1, 64, 3), (2, 48, 2)]:
        m, xs = _random(seed, n, n), [_random(seed + i, n) for i in range(number)]
        right = [m @ x for x in xs]
        expected = _spawned(model(agt.h2d(m).sync(), xs))
        building = observe(mine, agt.h2d(m).sync(), xs)
        with compared(building.trace, expected.trace):
            lazy(building.trace)
        ops = listed("jobs", building.result, number)
        if not all(isinstance(op, agt.DeviceOp) for op in ops):
            raise Rejected(f"`jobs` should return operations, and the first is {brief(ops[0])}")
        run = _spawned(ops)
        with compared(run.trace, expected.trace):
            launches(run.trace, agt.matvec_naive.name, number)
            launches(run.trace, "d2d", 0)
        each_equal(run.result, right, f"{n} x {n} numbers, for vector")


def _spawned(ops: Sequence[Any]) -> Observed[Any]:
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
    op = built("filtered", mine, expected, x, filters, join)
    run = observe(op.sync)
    equal(run.result, right)
    with compared(run.trace, expected):
        return below(FILTERED_US, run.trace)


EXERCISES = (
    Exercise("04-loop", "Mend the loop", "all_scaled", check_loop),
    Exercise("04-baton", "Pass the baton", "residual", check_residual),
    Exercise("04-saxpy", "Asynchronous SAXPY", "async_saxpy", check_saxpy),
    Exercise("04-zip-or-overlap", "zip or overlap?", "side_by_side", check_side_by_side),
    Exercise("04-unzip", "Take it apart", "halves", check_halves),
    Exercise("04-diamond", "A diamond", "diamond", check_diamond, hostile_diamond),
    Exercise("04-lend", "Lend it", "apply_all", check_apply_all),
    Exercise("04-workers", "For those who stay longer", "jobs", check_workers),
    Exercise("04-challenge", "Challenge: four filters", "filtered", check_filtered),
)
