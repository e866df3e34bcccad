"""Exercises of 01_sync_kernels: what each one checks, its hints, and why the solution is right."""

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
    Exercise(
        name="01-grid",
        title="How many blocks?",
        answer="blocks_needed",
        check=check_grid,
        hints="""
            How many blocks for 256 elements and 128 threads? For 257? For 255?

            `n // threads` counts the *full* blocks. What is left over needs one more, if anything is left
            over.

            Round up instead of down: add `threads - 1` before you divide.
        """,
        explanation="Adding `threads - 1` before the division rounds up: it carries over to one more "
        "block unless `n` is a multiple already. `.partition(threads)` computes the same.",
    ),
    Exercise(
        name="01-relu",
        title="A kernel: ReLU",
        answer="my_relu",
        check=check_relu,
        hints="""
            Two things are missing: which element is mine, and what to do with it.

            The number of a thread in the whole grid is `blockIdx.x * blockDim.x + threadIdx.x`, and some
            threads of the last block have a number that is not below `n`.

            Inside of `if (i < n)`, one line: `output[i] = input[i] > 0.0f ? input[i] : 0.0f;`
        """,
        explanation="Every thread finds its own `i`, steps aside if there is no such element, and "
        "writes *something* in either case: what no thread writes keeps what was there before.",
    ),
    Exercise(
        name="01-matvec",
        title="A kernel: matrix times vector",
        answer="my_matvec",
        check=check_matvec,
        hints="""
            One thread computes one element of `y`: it needs one row of `a`, and all of `x`.

            Row `row` begins at `a[row * n]`, as every row has `n` elements. There are `m` rows, so `m` is
            what a thread compares its `row` with.

            Start with `float sum = 0.0f;`, add `a[row * n + j] * x[j]` for each `j` below `n`, and write
            `y[row] = sum;` after the loop.
        """,
        explanation="A loop is left in it, over `j`: it runs inside of *one* thread. The loop over "
        "the rows is what became threads. This is `agt.matvec_naive`, in your own words.",
    ),
    Exercise(
        name="01-transpose",
        title="A kernel in two dimensions: transpose",
        answer="my_transpose",
        check=check_transpose,
        hints="""
            `out` has `n` rows of `m` elements. Its element (row, col) is element (col, row) of `a`.

            Rows of `out` are `m` long, rows of `a` are `n` long: the two indices use different factors.

            `if (row < n && col < m) out[row * m + col] = a[col * n + row];`
        """,
        explanation="Both indices have a bound of their own, and each array its own length of a row. "
        "With square matrices many a mistake would have passed: that is why the check uses wide and "
        "tall ones.",
    ),
    Exercise(
        name="01-one-wait",
        title="Wait once",
        answer="forward",
        check=check_one_wait,
        hints="""
            Each `.sync()` is a wait. Which of the four does Python need, to go on?

            A kernel takes operations in place of arrays: `agt.matvec_naive(m, n, agt.h2d(a), ...)`.

            Delete every `.sync()`, and end with `.to_host()` on the operation that yields the array.
        """,
        explanation="The steps depend on each other, but it is the *stream* that keeps their order. "
        "The host describes all of them, hands them over, and waits once, for the copy at the end.",
    ),
    Exercise(
        name="01-meanwhile",
        title="A job for the host meanwhile",
        answer="with_a_job",
        check=check_meanwhile,
        hostile=hostile_meanwhile,
        hints="""
            Three steps: start the operation, do the job, wait. `sync` is the first and the last in one, so
            it is in the way.

            `op.async_on(stream)` starts an operation and returns at once. `stream.synchronize()` waits
            until the stream has done everything.

            `stream = agt.create_stream()`, `result = op.async_on(stream)`, `job()`, `stream.synchronize()`,
            `return result`.
        """,
        explanation="`async_on` returns as soon as the work is in the queue, so the job and the device "
        "share the time. The wait has to be there, too: before it, the result may not be read.",
    ),
)
