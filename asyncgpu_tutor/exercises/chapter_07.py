"""Exercises of 07_async_mlp: what each one checks, its hints, and why the solution is right."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from asyncgpu_tutor.errors import DeviceError
from asyncgpu_tutor.exercises.chapter_07_scale import (
    check_limited,
    check_on_both,
    check_tiled,
    hostile_limited,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared, meant_to_fail
from asyncgpu_tutor.exercises.schedule import launches, waits
from asyncgpu_tutor.exercises.trial import Observed, observe
from asyncgpu_tutor.exercises.values import as_kernel, brief, equal, launched, listed
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.ops import DeviceOp, h2d, pin, zeros
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["EXERCISES"]


def _run_all(answer: Any, number: int, size: int) -> Observed[Any]:
    """Try an answer on there-and-back copies of `size` elements; operation i yields i + 1 everywhere."""
    arrays = [pin(np.full(size, i + 1, np.float32)) for i in range(number)]
    return observe(answer, [h2d(x).to_host().named(f"op {i}") for i, x in enumerate(arrays)])


def _in_order(results: object, number: int, size: int) -> None:
    for i, result in enumerate(listed("run_all", results, number)):
        with case(f"{number} operations, for result {i}"):
            equal(result, np.full(size, i + 1, np.float32))


def _side_by_side(trace: Trace) -> None:
    if not trace.metrics().overlap:
        raise Rejected(
            "no two operations were at work at the same time: start all of them before you wait for "
            "the first",
            *trace.find("d2h")[:1],
            *trace.find("h2d")[1:2],
        )


def check_run_all(mine: Any, model: Any) -> None:
    """All are in flight together, nobody blocks, and the results come in the order of the operations.

    The copies take longer than the host needs to submit them.
    """
    for number, size in [(4, 1_000_000), (3, 500_000)]:
        expected, run = _run_all(model, number, size), _run_all(mine, number, size)
        with compared(run.trace, expected.trace):
            launches(run.trace, "d2h", number)
            waits(run.trace, 0, "`sync` blocks the event loop, and with it every other task")
            _side_by_side(run.trace)
        _in_order(run.result, number, size)


def hostile_run_all(mine: Any, _model: Any) -> None:
    """The results are in order, whichever operation is done first."""
    _in_order(_run_all(mine, 4, 32).result, 4, 32)


BEYOND = """
extern "C" __global__ void beyond(float* y) { y[2 * blockDim.x] = 1.0f; }
"""


def _one_fails(answer: Any, failing: int) -> Observed[Any]:
    """Try an answer on three operations, of which one writes beyond its array."""

    def arm(i: int) -> DeviceOp[Any]:
        if i == failing:
            return Kernel(BEYOND)(zeros(32).partition(32)).last().unpartition().to_host()
        return h2d(pin(np.full(1_000_000, i + 1, np.float32))).to_host()

    with meant_to_fail(DeviceError):
        return observe(answer, [arm(i).named(f"op {i}") for i in range(3)])


def check_outcomes(mine: Any, model: Any) -> None:
    """The error is where the result would be, and costs the others neither result nor overlap."""
    for failing in (1, 0, 2):
        expected, run = _one_fails(model, failing), _one_fails(mine, failing)
        for i, outcome in enumerate(listed("outcomes", run.result, 3)):
            with case(f"operation {failing} of 3 failing, for outcome {i}"):
                if i != failing:
                    equal(outcome, np.full(1_000_000, i + 1, np.float32))
                elif not isinstance(outcome, DeviceError):
                    raise Rejected(
                        f"the error should be in the list, and there is {brief(outcome)}"
                    )
        with compared(run.trace, expected.trace):
            _side_by_side(run.trace)


def check_softmax(mine: Any, _model: Any) -> None:
    """Sizes that fit their blocks and sizes that do not; inputs for which `expf` overflows, or gives 0."""
    kernel = as_kernel(mine, "softmax")
    sizes = [(64, 64), (64, 16), (100, 256), (1000, 128)]
    for (n, threads), (scale, middle) in product(sizes, ((1.0, 0.0), (100.0, 0.0), (1.0, -200.0))):
        x = np.random.default_rng(n).standard_normal(n, dtype=np.float32)
        x = x * np.float32(scale) + np.float32(middle)
        grown = np.exp(x.astype(np.float64) - x.max())
        with case(f"n={n}, blocks of {threads} and numbers from {x.min():.0f} to {x.max():.0f}"):
            equal(launched(kernel, [n, x], (n,), (threads,)), grown / grown.sum())


EXERCISES = (
    Exercise(
        name="07-in-flight",
        title="Any number, all in flight",
        answer="run_all",
        check=check_run_all,
        hostile=hostile_run_all,
        hints=(
            "In the loop, the second operation is not even started before the first one is done.",
            "`agt.spawn(op)` starts an operation and returns a task. Start all, then wait for each.",
            "`tasks = [agt.spawn(op) for op in ops]`, and then `await` the tasks, one after the other.",
        ),
        explanation="Once all are started it does not matter in which order you wait: the list keeps "
        "the results in the order of the operations, whichever is done first. `await "
        "asyncio.gather(*ops)` does the same in one line.",
    ),
    Exercise(
        name="07-outcomes",
        title="One fails, the others do not",
        answer="outcomes",
        check=check_outcomes,
        hints=(
            (
                "A `TaskGroup` cancels the others when one fails: right for a batch that is useless without "
                "all of its parts, and not what is wanted here."
            ),
            "`asyncio.gather` has an option for it: see `help(asyncio.gather)`.",
            (
                "`await asyncio.gather(*ops, return_exceptions=True)` has each result, or its exception, in "
                "the order of the operations."
            ),
        ),
        explanation="An error belongs to the operation that failed, and comes where its result would. "
        "The other streams did not notice. (On a real GPU a kernel that faults ends the process's CUDA "
        "context, and with it the others. What fails for other reasons, such as a wrong shape, does not.)",
    ),
    Exercise(
        name="07-softmax",
        title="A kernel: softmax",
        answer="softmax",
        check=check_softmax,
        hints=(
            (
                "Each thread computes one output, but needs *all* inputs: two loops, one for the largest, "
                "one for the sum."
            ),
            (
                "`expf(100.0f)` is too large for a `float`. Subtract the largest input from each first: it "
                "changes nothing in the result, as numerator and denominator shrink alike."
            ),
            (
                "`float top = x[0];`, a loop with `top = fmaxf(top, x[j]);`, a loop with "
                "`sum += expf(x[j] - top);`, and `y[i] = expf(x[i] - top) / sum;`"
            ),
        ),
        explanation="With the largest input subtracted, the largest power is exp(0) = 1, and nothing can "
        "overflow. Every thread does the same two loops: that is naive, as the other kernels here are. "
        "For 64 outputs nobody notices.",
    ),
    Exercise(
        name="07-limited",
        title="No more than so many",
        answer="run_limited",
        check=check_limited,
        hostile=hostile_limited,
        hints=(
            (
                "Let each operation have a coroutine of its own, and think of a door that lets so many in "
                "at a time."
            ),
            (
                "`asyncio.Semaphore(limit)` is that door: `async with gate:` waits in front of it while "
                "`limit` others are inside."
            ),
            (
                "`async def run(op):` with `async with gate:` and `return await op` in it, and then "
                "`return await asyncio.gather(*[run(op) for op in ops])`."
            ),
        ),
        explanation="An operation that nobody has awaited costs nothing. So a thousand of them may stand in "
        "front of the door, and memory is needed for those inside only.",
    ),
    Exercise(
        name="07-tiled",
        title="A kernel: GEMM with tiles",
        answer="sgemm_tiled",
        check=check_tiled,
        hints=(
            (
                "For each step along `k`: every thread loads one element of each tile, *barrier*, every "
                "thread adds up 16 products from the tiles, *barrier*."
            ),
            (
                "The thread (x, y) loads `a[row * k + t + x]` and `b[(t + y) * n + col]`, if there are such "
                "elements, and 0 if not: a zero adds nothing to the sum."
            ),
            (
                "Threads without an element of `c` must not leave early: they load, and the barrier "
                "waits for them. Only the last line, which writes, is for those with an element alone."
            ),
            (
                "`for (unsigned int t = 0; t < k; t += 16)`: load both tiles, `__syncthreads();`, a loop "
                "over `i` with `sum += tile_a[y][i] * tile_b[i][x];`, `__syncthreads();`. After it the write."
            ),
        ),
        explanation="What one thread loads, 16 threads of its row or column use. The first barrier makes "
        "sure that the tiles are full before anybody reads them; the second, that everybody has read "
        "them before anybody overwrites them.",
    ),
    Exercise(
        name="07-two-devices",
        title="Two devices",
        answer="on_both",
        check=check_on_both,
        hints=(
            "An array is on one device, so each device needs its own copy of the weights. One will do.",
            (
                "`with agt.using(device):` makes a device the current one: what is spawned in the block goes "
                "there."
            ),
            (
                "First a loop over `devices` with `w = await agt.h2d(weights).share()`, each in its "
                "`using`. Then a loop over the batches, with `devices[i % 2]` and `agt.spawn`. `gather` "
                "in the end."
            ),
        ),
        explanation="One event loop waits for both devices as it waits for one. Each has streams, copy "
        "engines and SMs of its own, so what is on different devices need not share anything but the host.",
    ),
)
