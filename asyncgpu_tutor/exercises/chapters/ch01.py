"""Exercises of 01_sync_kernels: what each one checks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    as_kernel,
    built,
    equal,
    is_number,
    launched,
    launches,
    noise,
    one_stream,
    ordered,
    overlapping,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import call, call_plain, observe

__all__ = ["EXERCISES"]

SEEDS = (1, 2)


# ------------------------------------------------------------------ values
def check_grid(mine: Any, model: Any) -> None:
    """There are enough blocks, and none too many, for all small sizes and some large ones."""
    sizes = [*range(1, 600), 1_000_000, 2**31 - 1]
    for threads, n in product((1, 32, 100, 128, 256, 1024), sizes):
        got, right = call(mine, n, threads), model(n, threads)
        if not is_number(got, whole=True):
            raise Rejected(
                f"a number of blocks is an `int`, and for n={n}, threads={threads} this came out: "
                f"{got!r}"
            )
        if got < right:
            raise Rejected(
                f"with n={n} and threads={threads}, {count(got, 'block')} make "
                f"{count(got * threads, 'thread')}: too few for {count(n, 'element')}"
            )
        if got > right:
            raise Rejected(
                f"with n={n} and threads={threads}, {count(got, 'block')} are {got - right} too many: a "
                "whole block would have nothing to do"
            )


def check_relu(mine: Any, _model: Any) -> None:
    """Output is right where blocks are full and where they are not, apart from the input and in its place."""
    kernel = as_kernel(mine, "my_relu")
    for seed, (n, threads) in product(SEEDS, [(256, 128), (1000, 256), (1025, 1024), (1, 32)]):
        x = noise(seed, n)
        with case(f"n={n} and blocks of {threads}"):
            equal(launched(kernel, [n, x], (n,), (threads,)), np.maximum(x, 0))

        def in_place(x: Any = x, n: int = n, threads: int = threads) -> Any:
            def run(array: Any) -> agt.DeviceOp[Any]:
                blocks = array.partition(threads)
                return cast(agt.DeviceOp[Any], kernel(n, blocks, blocks))

            return agt.h2d(x).and_then(run).last().unpartition().to_host().sync()

        with case(f"n={n}, blocks of {threads}, and one array as input and output"):
            equal(call(in_place), np.maximum(x, 0))


def check_matvec(mine: Any, _model: Any) -> None:
    """The product is right for wide, tall and square matrices, in blocks that fit and blocks that do not."""
    kernel = as_kernel(mine, "my_matvec")
    shapes = [(64, 64), (100, 30), (30, 100), (1, 7), (7, 1)]
    for seed, (m, n), threads in product(SEEDS, shapes, (32, 48)):
        a, x = noise(seed, m, n), noise(seed + 100, n)
        with case(f"a matrix of shape ({m}, {n}) and blocks of {threads}"):
            equal(launched(kernel, [m, n, a, x], (m,), (threads,)), a @ x)


def check_transpose(mine: Any, _model: Any) -> None:
    """The transpose is right for wide, tall and square matrices, in blocks of several shapes."""
    kernel = as_kernel(mine, "my_transpose")
    shapes = [(16, 16), (20, 50), (50, 20), (1, 33), (33, 1)]
    for seed, (m, n), block in product(SEEDS, shapes, ((16, 16), (4, 32))):
        a = noise(seed, m, n)
        with case(f"a matrix of shape ({m}, {n}) and blocks of {block}"):
            equal(launched(kernel, [m, n, a], (n, m), block), a.T)


# ------------------------------------------------------------------ schedule
def check_one_wait(mine: Any, model: Any) -> None:
    """Building runs nothing, so that running is the one wait; the stages are in order on one stream."""
    for seed, (m, n) in product(SEEDS, [(64, 64), (200, 30), (30, 200)]):
        a, x = agt.pin(noise(seed, m, n)), agt.pin(noise(seed + 100, n))
        expected = observe(model(a, x).sync).trace
        cure = ": describe all steps to the last, with `to_host()` at the end, and run none of them"
        op = built("forward", mine, expected, a, x, cure=cure)
        run = observe(op.sync)
        with compared(run.trace, expected):
            for name in ("matvec_naive", "relu", "d2h"):
                launches(run.trace, name, 1)
            one_stream(run.trace)
            ordered(run.trace, "h2d", "matvec_naive", "relu", "d2h")
        with case(f"a matrix of shape ({m}, {n})"):
            equal(run.result, np.maximum(a @ x, 0))


JOB = "job"


def _positive(x: Any) -> agt.DeviceOp[Any]:
    out = agt.zeros(x.size).partition(256)
    return agt.relu(x.size, agt.h2d(x), out).output().to_host()


def _with_a_job(answer: Callable[..., Any], x: Any, us: float) -> Any:
    return np.asarray(call_plain(answer, _positive(x), lambda: agt.work(us, JOB)))


def check_meanwhile(mine: Any, model: Any) -> None:
    """The job is done once, while the device works, and the result is complete after one wait.

    The arrays are large enough for the device to be at work for longer than the host needs to submit.
    """
    for seed, n, us in [(1, 1_000_000, 60.0), (2, 100_000, 60.0), (3, 300_000, 500.0)]:
        x = agt.pin(noise(seed, n))
        expected = observe(_with_a_job, model, x, us).trace
        run = observe(_with_a_job, mine, x, us)
        with compared(run.trace, expected):
            launches(run.trace, "relu", 1)
            if len(run.trace.find(JOB)) != 1:
                raise Rejected(
                    f"the job was done {len(run.trace.find(JOB))} times, and once is right"
                )
            overlapping(
                run.trace, JOB, "start the operation, do the job, and only then wait for the result"
            )
            waits(run.trace, 1, "wait once, at the end")
        with case(f"{n} elements"):
            equal(run.result, np.maximum(x, 0))


def hostile_meanwhile(mine: Any, _model: Any) -> None:
    """The result is complete, however much longer than the job the device takes."""
    x = agt.pin(noise(4, 1000))
    observe(_with_a_job, mine, x, 10.0)  # reads the result, which raises if it is too early


EXERCISES = (
    Exercise("01-grid", "How many blocks?", "blocks_needed", check_grid),
    Exercise("01-relu", "A kernel: ReLU", "my_relu", check_relu),
    Exercise("01-matvec", "A kernel: matrix times vector", "my_matvec", check_matvec),
    Exercise(
        "01-transpose", "A kernel in two dimensions: transpose", "my_transpose", check_transpose
    ),
    Exercise("01-one-wait", "Wait once", "forward", check_one_wait),
    Exercise(
        "01-meanwhile",
        "A job for the host meanwhile",
        "with_a_job",
        check_meanwhile,
        hostile_meanwhile,
    ),
)
