"""Exercises of 07_async_mlp: what each one checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    Array,
    all_in_flight,
    as_kernel,
    brief,
    computed,
    equal,
    filled,
    in_flight,
    in_order,
    launched,
    launches,
    listed,
    never_blocks,
    noise,
    out_of_bounds,
    results,
    round_trip,
    side_by_side,
    stretches,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared, meant_to_fail
from asyncgpu_tutor.exercises.internals import SimDevice, count
from asyncgpu_tutor.exercises.sandbox import Observed, observe, private_device

__all__ = ["EXERCISES"]


def _sizes(number: int, size: int) -> list[int]:
    """Each operation has a size of its own, so that it can be told from the others under any name."""
    return [size + i for i in range(number)]


def _run_all(answer: Any, sizes: Sequence[int]) -> Observed[Any]:
    """Try an answer on there-and-back copies of these sizes; operation i yields i + 1 everywhere."""
    return observe(answer, [round_trip(n, i + 1).named(f"op {i}") for i, n in enumerate(sizes)])


def _all_right(answer: str, given: object, sizes: Sequence[int]) -> None:
    right = [filled(n, i + 1) for i, n in enumerate(sizes)]
    in_order(answer, given, right, f"{len(sizes)} operations, for result")


def check_run_all(mine: Any, model: Any) -> None:
    """All are in flight together, nobody blocks, and the results come in the order of the operations.

    The copies take longer than the host needs to submit them.
    """
    for number, size in [(4, 2_000_000), (3, 1_000_000)]:
        sizes = _sizes(number, size)
        expected, run = _run_all(model, sizes), _run_all(mine, sizes)
        with compared(run.trace, expected.trace):
            launches(run.trace, "d2h", number)
            never_blocks(run.trace)
            side_by_side(run.trace, "`zip` runs one after the other, and so does waiting for each")
            all_in_flight(run.trace, sizes, number)
        _all_right("run_all", run.result, sizes)


def hostile_run_all(mine: Any, _model: Any) -> None:
    """The results are in order, whichever operation is done first."""
    sizes = _sizes(4, 32)
    _all_right("run_all", _run_all(mine, sizes).result, sizes)


def _one_fails(answer: Any, failing: int) -> Observed[Any]:
    """Try an answer on three operations, of which one writes beyond its array."""
    sizes = _sizes(3, 1_000_000)
    ops = [out_of_bounds() if i == failing else round_trip(n, i + 1) for i, n in enumerate(sizes)]
    with meant_to_fail(agt.DeviceError):
        return observe(answer, [op.named(f"op {i}") for i, op in enumerate(ops)])


def check_outcomes(mine: Any, model: Any) -> None:
    """The error is where the result would be, and costs the others neither result nor overlap."""
    for failing in (1, 0, 2):
        expected, run = _one_fails(model, failing), _one_fails(mine, failing)
        for i, outcome in enumerate(listed("outcomes", run.result, 3)):
            with case(f"operation {failing} of 3 failing, for outcome {i}"):
                if i != failing:
                    equal(outcome, filled(1_000_000 + i, i + 1))
                elif not isinstance(outcome, agt.DeviceError):
                    raise Rejected(
                        f"the error should be in the list, and there is {brief(outcome)}"
                    )
        with compared(run.trace, expected.trace):
            others = [n for i, n in enumerate(_sizes(3, 1_000_000)) if i != failing]
            all_in_flight(run.trace, others, len(others))


def check_softmax(mine: Any, _model: Any) -> None:
    """The result is right for full blocks and others, also where `expf` of an input overflows or gives 0."""
    kernel = as_kernel(mine, "softmax")
    sizes = [(64, 64), (64, 16), (100, 256), (1000, 128)]
    for (n, threads), (scale, middle) in product(sizes, ((1.0, 0.0), (100.0, 0.0), (1.0, -200.0))):
        x = noise(n, n)
        x = x * np.float32(scale) + np.float32(middle)
        grown = np.exp(x.astype(np.float64) - x.max())
        with case(f"n={n}, blocks of {threads} and numbers from {x.min():.0f} to {x.max():.0f}"):
            equal(launched(kernel, [n, x], (n,), (threads,)), grown / grown.sum())


TILE = 16


# ------------------------------------------------------------------ a tiled GEMM
def _requests(kernel: agt.Kernel, args: Sequence[Any], shape: tuple[int, int]) -> int:
    with agt.microscope() as report:
        launched(kernel, args, shape, (TILE, TILE))
    return report[kernel.name].counts.global_load_requests


def check_tiled(mine: Any, _model: Any) -> None:
    """The product is right whether or not tiles fit, and global memory is asked no more often than needed."""
    kernel = as_kernel(mine, "sgemm_tiled")
    sizes = [(32, 32, 32), (50, 30, 70), (17, 16, 15), (1, 1, 1)]
    for seed, (m, n, k) in product((1, 2), sizes):
        rng = np.random.default_rng(seed)
        a = rng.standard_normal((m, k), dtype=np.float32)
        b = rng.standard_normal((k, n), dtype=np.float32)
        with case(f"m={m}, n={n}, k={k}"):
            equal(launched(kernel, [m, n, k, a, b], (m, n), (TILE, TILE)), a @ b)

    n = 64
    ones = np.ones((n, n), np.float32)
    asked = _requests(kernel, [n, n, n, ones, ones], (n, n))
    naive = _requests(agt.sgemm_naive, [n, n, n, 1.0, ones, ones, 0.0], (n, n))
    if asked > naive / TILE * 1.1:
        raise Rejected(
            f"at {n} x {n} the warps ask global memory {asked:,} times, where the naive kernel does "
            f"{naive:,} times and a {TILE}th of that is enough: every element of both tiles should be "
            "loaded once, by one thread, and then be read from shared memory"
        )


# ------------------------------------------------------------------ no more than so many
# The matrix of the one operation that takes longer than others: a thread goes along a whole row.
SLOW, ROW = 96, 8192


def _limited(answer: Any, sizes: Sequence[int], limit: int) -> Observed[Any]:
    ops = [computed(n, ROW, 1) if n == SLOW else round_trip(n, i + 1) for i, n in enumerate(sizes)]
    return observe(answer, ops, limit)


def _limited_right(given: object, sizes: Sequence[int]) -> None:
    right = [filled(n, ROW if n == SLOW else i + 1) for i, n in enumerate(sizes)]
    in_order("run_limited", given, right)


def check_limited(mine: Any, model: Any) -> None:
    """`limit` are in flight and no more, the next starts as soon as one is done, and results are in order."""
    for sizes, limit in [
        (_sizes(5, 2_000_000), 2),
        (_sizes(6, 1_000_000), 3),
        (_sizes(3, 500_000), 8),
        ([SLOW, *_sizes(3, 64)], 2),
    ]:
        number = len(sizes)
        expected, run = _limited(model, sizes, limit), _limited(mine, sizes, limit)
        with (
            case(f"{number} operations and a limit of {limit}"),
            compared(run.trace, expected.trace),
        ):
            never_blocks(run.trace)
            launches(run.trace, "d2h", number)
            most, right = in_flight(run.trace, sizes), min(number, limit)
            if most > right:
                raise Rejected(f"{most} were in flight at a time, and no more than {right} may be")
            if most < right:
                raise Rejected(
                    f"no more than {most} were in flight at a time, where {right} could have been"
                )
            _refilled(run.trace, sizes, limit)
            _limited_right(run.result, sizes)


def _refilled(trace: agt.Trace, sizes: Sequence[int], limit: int) -> None:
    """No place was still empty when the next became so, while there were operations to start."""
    begun, done = (sorted(times) for times in zip(*stretches(trace, sizes), strict=True))
    for i in range(limit, len(sizes)):
        if limit > 1 and begun[i] >= done[i - limit + 1]:
            late = next(s for s in results(trace, sizes) if s.end == done[i - limit])
            raise Rejected(
                "one was done, and its place stayed empty: start the next as soon as *one* is done, "
                "and not when several are",
                late,
            )


def hostile_limited(mine: Any, _model: Any) -> None:
    """The results are in order, whichever is done first."""
    sizes = _sizes(5, 64)
    _limited_right(_limited(mine, sizes, 2).result, sizes)


# ------------------------------------------------------------------ two devices
def _two() -> tuple[agt.types.Device, agt.types.Device]:
    first = cast(SimDevice, agt.current_device())
    return first, SimDevice(1, machine=first.machine, stand_in_above=first.stand_in_above)


def _recipe(x: Any, w: Any) -> agt.DeviceOp[Any]:
    out = agt.zeros(x.size).partition(256)
    product = agt.relu(x.size, agt.h2d(x), out).output()
    return product.and_then(lambda y: _added(y, w)).to_host()


def _sum(n: int, w: Array, y: Array) -> Array:
    return y[:n] + w[:n]


ADD = r"""
extern "C" __global__ void add(unsigned int n, const float* w, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += w[i];
}
"""


def _added(y: Any, w: Any) -> agt.DeviceOp[Any]:
    return agt.Kernel(ADD, reference=_sum)(y.size, w, y.partition(256)).output()


def _on_both(answer: Any, batches: Sequence[Array], weights: Array) -> Observed[Any]:
    devices = _two()
    # A recording covers the current device and those that the process knows. It does not know the second one,
    # so that one is recorded apart.
    with agt.using(devices[1]), agt.record() as other, agt.using(devices[0]):
        run = observe(answer, _recipe, batches, weights, devices)
    spans = sorted([*run.trace, *other], key=lambda span: span.id)
    return Observed(run.result, agt.Trace(spans, run.trace.clock, run.trace.device))


@private_device(stand_in_above=1e6)  # NumPy computes what is large
def check_on_both(mine: Any, model: Any) -> None:
    """Even batches run here and odd ones there, at the same time, with one copy of the weights on each."""
    for number, size in [(4, 2_500_000), (3, 300_000)]:
        sizes = _sizes(number, size)
        batches = [agt.pin(filled(n, i)) for i, n in enumerate(sizes)]
        weights = agt.pin(np.arange(size + number, dtype=np.float32))
        expected = _on_both(model, batches, weights)
        run = _on_both(mine, batches, weights)
        with compared(run.trace, expected.trace):
            launches(run.trace, "relu", number)
            never_blocks(run.trace)
            for i, span in enumerate(results(run.trace, sizes)):
                right = f"sim:{i % 2}"
                if span.device != right:
                    raise Rejected(
                        f"batch {i} ran on device {span.device}, and belongs on {right}: even ones on the "
                        "first, odd ones on the second",
                        span,
                    )
            copies = len(run.trace.find("h2d")) - number
            if copies != 2:
                raise Rejected(
                    f"the weights were copied {count(copies, 'time')}: once to each device is right, and "
                    "all batches there share them",
                    *run.trace.find("h2d")[:1],
                )
            all_in_flight(run.trace, sizes, in_flight(expected.trace, sizes))
        right = [np.maximum(batch, 0) + weights[: batch.size] for batch in batches]
        in_order("on_both", run.result, right, f"{number} batches, for batch")


EXERCISES = (
    Exercise(
        "07-in-flight", "Any number, all in flight", "run_all", check_run_all, hostile_run_all
    ),
    Exercise("07-outcomes", "One fails, the others do not", "outcomes", check_outcomes),
    Exercise("07-softmax", "A kernel: softmax", "softmax", check_softmax),
    Exercise("07-limited", "No more than so many", "run_limited", check_limited, hostile_limited),
    Exercise("07-tiled", "A kernel: GEMM with tiles", "sgemm_tiled", check_tiled),
    Exercise("07-two-devices", "Two devices", "on_both", check_on_both),
)
