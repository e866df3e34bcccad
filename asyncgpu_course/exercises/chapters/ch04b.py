"""Exercises of 04b_sharing_and_owning: what each one checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.building import left_alone, run_of
from asyncgpu_course.checks.device import host_arrays
from asyncgpu_course.checks.operations import cuda, operation
from asyncgpu_course.checks.rejection import about, case, compared, must
from asyncgpu_course.checks.results import each_equal, equal, listed
from asyncgpu_course.checks.sandbox import Observed, call, held, observe
from asyncgpu_course.checks.trials import cases
from asyncgpu_course.exercises.chapters import ch04
from asyncgpu_course.exercises.exercise import Exercise

COOLED_US = 390.0


def _halves(mine: Any, model: Any, seed: int, n: int) -> None:
    """The source runs once, and each entry of the tuple goes its own way."""
    x, y, saxpy = ch04.random(seed, n), ch04.random(seed + 1, n), agt.Kernel(ch04.SAXPY)

    def way(a: float) -> Callable[[agt.DeviceOp[agt.DeviceArray]], agt.DeviceOp[Any]]:
        out, name = agt.zeros(n).partition(ch04.BLOCK), "fg"[a > 2]
        return lambda op: saxpy(n, a, operation(name, op), out).output().to_host()

    source = agt.zip(agt.h2d(x), agt.h2d(y)).map(tuple)
    complaint = "`f` and `g` got the same array: the first one is for `f`, and the second for `g`"
    run_it = run_of("halves", mine, model, source, way(2.0), way(3.0))
    with about("went to an earlier run", complaint), run_it() as run:
        schedule.launches(run.trace, "h2d", 2)
        results = ch04.several_uploads(run.result, 2, "results")
        for got, right in zip(results, (2 * x, 3 * y), strict=True):
            equal(got, right)


def _products(trace: agt.Trace, number: int) -> None:
    """There is one product for each vector, and the matrix is not copied."""
    schedule.launches(trace, agt.matvec_naive.name, number)
    schedule.launches(trace, "d2d", 0)


def _apply_all(mine: Any, model: Any, seed: int, n: int, number: int) -> None:
    """The operation leaves the matrix to its owner."""
    m, xs = ch04.random(seed, n, n), [ch04.random(seed + i, n) for i in range(number)]
    right = [m @ x for x in xs]
    matrix = agt.h2d(m).sync()
    try:
        with run_of("apply_all", mine, model, matrix, xs)() as run:
            _products(run.trace, number)
            each_equal(ch04.several_uploads(run.result, number, "products"), right, "vector")
    finally:  # whatever came of it
        complaint = f"the caller's `matrix` was moved {matrix.gone}, and the caller still needs "
        must(not matrix.moved, complaint + "it: lend the operations a handle instead")
    with case("the caller's `matrix`, looked at afterwards"):
        equal(agt.d2h(matrix.borrow()).sync(), m)


def _workers(mine: Any, model: Any, seed: int, n: int, number: int) -> None:
    """Each operation can be spawned, and none copies the matrix."""
    m, late = ch04.random(seed, n, n), [ch04.random(seed + i, n) for i in range(number)]
    expected, xs = _spawned(model(agt.h2d(m).sync(), late)), [agt.pinned(n) for _ in late]
    building = observe(mine, agt.h2d(m).sync(), xs)
    for x, numbers in zip(xs, late, strict=True):
        x[:] = numbers
    with compared(building.trace, expected.trace):
        schedule.lazy(building.trace)
    ops = listed("jobs", building.result, number)
    complaint = f"`jobs` should return operations, and the first is a {type(ops[0]).__name__}: "
    must(all(isinstance(op, agt.DeviceOp) for op in ops), complaint + "its caller runs them")
    run = _spawned(ops)
    with compared(run.trace, expected.trace):
        _products(run.trace, number)
    with case("vectors that got their numbers when `jobs` had returned"):
        each_equal(run.result, [m @ x for x in late], "vector")
    left_alone(xs, late)


def _spawned(ops: Sequence[Any]) -> Observed:
    async def others() -> Any:
        return await asyncio.gather(*[agt.spawn(op.map(held)) for op in ops])

    return observe(others)


def _heated(x: Any, rounds: int) -> Any:
    for _ in range(rounds):
        padded = np.pad(x, 1, mode="edge")
        x = 0.5 * x + 0.25 * (padded[:-2] + padded[2:])
    return x


def check_cooled(mine: Any, model: Any) -> float:
    """The rod is as warm as it should be, after an odd and an even number of steps, in little time."""
    kernel, took = agt.Kernel(cuda("04b_heat")), 0.0

    def step(src: Any, dst: Any) -> agt.DeviceOp[Any]:
        launch = kernel(x.size, src, dst.partition(ch04.BLOCK))
        return launch.map(lambda used: (used[0], used[1].unpartition()))

    for n, rounds in ((1000, 3), (100_000, 20)):
        x, words = ch04.random(n, n), f"{n} points and {rounds} steps"
        with case(words), run_of("cooled", mine, model, x, step, rounds)() as run:
            complaint = "the rod is as after one step: each step read the same array again, "
            complaint += "so swap the pair"
            alike = getattr(run.result, "shape", None) == x.shape
            must(not (alike and np.allclose(run.result, _heated(x, 1), 1e-4, 1e-5)), complaint)
            equal(run.result, _heated(x, rounds))
            schedule.launches(run.trace, "heat", rounds)
            took = schedule.below(COOLED_US, run.trace)
    rods = [(x, 0), (ch04.random(1, x.size), 3), (ch04.random(2, x.size), 4)]
    with case("three rods at the same time, for 0, 3 and 4 steps"):
        handles = [call(call(mine, rod, step, n).async_on, agt.create_stream()) for rod, n in rods]
        call(agt.synchronize)
        each_equal(host_arrays(handles), [_heated(*rod) for rod in rods], "rod")
    return took


MATRICES = [(1, 64, 5), (2, 50, 1), (3, 20, 11)]

CHAPTER_04B = (
    Exercise("04b-unzip", "Take it apart", "halves", cases(_halves, [(1, 1000), (2, 300)], ch04.NUMBERS)),
    Exercise("04b-lend", "Lend it", "apply_all", cases(_apply_all, MATRICES, ch04.SQUARE)),
    Exercise("04b-workers", "For those who stay longer", "jobs", cases(_workers, MATRICES, ch04.SQUARE)),
    Exercise("04b-challenge", "Challenge: two arrays are enough", "cooled", check_cooled),
)  # fmt: skip
