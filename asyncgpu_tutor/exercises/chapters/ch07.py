"""Exercises of 07_async_mlp: what each one checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    Array,
    as_kernel,
    brief,
    equal,
    filled,
    in_order,
    launched,
    launches,
    listed,
    never_blocks,
    noise,
    out_of_bounds,
    round_trip,
    side_by_side,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared, meant_to_fail
from asyncgpu_tutor.exercises.internals import SimDevice, count
from asyncgpu_tutor.exercises.sandbox import Observed, observe

__all__ = ["EXERCISES"]


def _run_all(answer: Any, number: int, size: int) -> Observed[Any]:
    """Try an answer on there-and-back copies of `size` elements; operation i yields i + 1 everywhere."""
    return observe(answer, [round_trip(size, i + 1).named(f"op {i}") for i in range(number)])


def _all_right(results: object, number: int, size: int) -> None:
    right = [filled(size, i + 1) for i in range(number)]
    in_order("run_all", results, right, f"{number} operations, for result")


ALL_FIRST = "start all of them before you wait for the first"


def check_run_all(mine: Any, model: Any) -> None:
    """All are in flight together, nobody blocks, and the results come in the order of the operations.

    The copies take longer than the host needs to submit them.
    """
    for number, size in [(4, 1_000_000), (3, 500_000)]:
        expected, run = _run_all(model, number, size), _run_all(mine, number, size)
        with compared(run.trace, expected.trace):
            launches(run.trace, "d2h", number)
            never_blocks(run.trace)
            side_by_side(run.trace, ALL_FIRST)
        _all_right(run.result, number, size)


def hostile_run_all(mine: Any, _model: Any) -> None:
    """The results are in order, whichever operation is done first."""
    _all_right(_run_all(mine, 4, 32).result, 4, 32)


def _one_fails(answer: Any, failing: int) -> Observed[Any]:
    """Try an answer on three operations, of which one writes beyond its array."""
    ops = [out_of_bounds() if i == failing else round_trip(1_000_000, i + 1) for i in range(3)]
    with meant_to_fail(agt.DeviceError):
        return observe(answer, [op.named(f"op {i}") for i, op in enumerate(ops)])


def check_outcomes(mine: Any, model: Any) -> None:
    """The error is where the result would be, and costs the others neither result nor overlap."""
    for failing in (1, 0, 2):
        expected, run = _one_fails(model, failing), _one_fails(mine, failing)
        for i, outcome in enumerate(listed("outcomes", run.result, 3)):
            with case(f"operation {failing} of 3 failing, for outcome {i}"):
                if i != failing:
                    equal(outcome, filled(1_000_000, i + 1))
                elif not isinstance(outcome, agt.DeviceError):
                    raise Rejected(
                        f"the error should be in the list, and there is {brief(outcome)}"
                    )
        with compared(run.trace, expected.trace):
            side_by_side(run.trace, ALL_FIRST)


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
def _limited(answer: Any, sizes: Sequence[int], limit: int) -> Observed[Any]:
    ops = [round_trip(size, i + 1).named(f"op {i}") for i, size in enumerate(sizes)]
    return observe(answer, ops, limit)


def _limited_right(results: object, sizes: Sequence[int]) -> None:
    right = [filled(size, i + 1) for i, size in enumerate(sizes)]
    in_order("run_limited", results, right)


def _stretches(trace: agt.Trace, number: int) -> list[tuple[float, float]]:
    """For each operation, when its submission began and when the device was done with it."""
    found: list[tuple[float, float]] = []
    for i in range(number):
        spans = [span for span in trace if span.label == f"op {i}" and span.kind != "range"]
        if not spans:
            raise Rejected(f"operation {i} of {number} did not run")
        found.append((min(s.start for s in spans), max(s.end for s in spans)))
    return found


def _in_flight(trace: agt.Trace, number: int) -> int:
    """The most operations that were under way at one time."""
    stretches = _stretches(trace, number)
    return max(sum(a <= start < b for a, b in stretches) for start, _ in stretches)


def check_limited(mine: Any, model: Any) -> None:
    """`limit` are in flight and no more, the next starts as soon as one is done, and results are in order."""
    for sizes, limit in [
        ((2_000_000,) * 5, 2),
        ((1_000_000,) * 6, 3),
        ((500_000,) * 3, 8),
    ]:
        number = len(sizes)
        expected, run = _limited(model, sizes, limit), _limited(mine, sizes, limit)
        with (
            case(f"{number} operations and a limit of {limit}"),
            compared(run.trace, expected.trace),
        ):
            never_blocks(run.trace)
            launches(run.trace, "d2h", number)
            most, right = _in_flight(run.trace, number), min(number, limit)
            if most > right:
                raise Rejected(f"{most} were in flight at a time, and no more than {right} may be")
            if most < right:
                raise Rejected(
                    f"no more than {most} were in flight at a time, where {right} could have been"
                )
            late = _alone(run.trace, number, limit)
            if late is not None:
                raise Rejected(
                    "one was done, and its place stayed empty: start the next as soon as *one* is done, "
                    "and not when several are",
                    late,
                )
            _limited_right(run.result, sizes)


def _alone(trace: agt.Trace, number: int, limit: int) -> agt.types.Span | None:
    """The first span of an operation that started when no other was in flight any more, if there is one."""
    stretches = _stretches(trace, number)
    for i in range(limit, number):
        start, _ = stretches[i]
        if not any(a < start < b for a, b in stretches):
            return next(span for span in trace if span.label == f"op {i}")
    return None


def hostile_limited(mine: Any, _model: Any) -> None:
    """The results are in order, whichever is done first."""
    run = _limited(mine, (64,) * 5, 2)
    _limited_right(run.result, (64,) * 5)


# ------------------------------------------------------------------ two devices
def _two() -> tuple[agt.types.Device, agt.types.Device]:
    first = cast(SimDevice, agt.current_device())
    return first, SimDevice(1, machine=first.machine)


def _recipe(x: Any, w: Any) -> agt.DeviceOp[Any]:
    out = agt.zeros(x.size).partition(256)
    product = agt.relu(x.size, agt.h2d(x), out).output()
    return product.and_then(lambda y: _added(y, w)).to_host().named(f"batch {int(x[0])}")


ADD = agt.Kernel(r"""
extern "C" __global__ void add(unsigned int n, const float* w, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += w[i];
}
""")


def _added(y: Any, w: Any) -> agt.DeviceOp[Any]:
    return ADD(y.size, w, y.partition(256)).output()


def _on_both(answer: Any, batches: Sequence[Array], weights: Array) -> Observed[Any]:
    devices = _two()
    # A recording covers the current device and those that the process knows. It does not know the second one,
    # so that one is recorded apart.
    with agt.using(devices[1]), agt.record() as other, agt.using(devices[0]):
        run = observe(answer, _recipe, batches, weights, devices)
    spans = sorted([*run.trace, *other], key=lambda span: span.id)
    return Observed(run.result, agt.Trace(spans, run.trace.clock, run.trace.device))


def check_on_both(mine: Any, model: Any) -> None:
    """Even batches run here and odd ones there, at the same time, with one copy of the weights on each."""
    for number, size in [(4, 1_000_000), (3, 300_000)]:
        batches = [agt.pin(filled(size, i)) for i in range(number)]
        weights = agt.pin(np.arange(size, dtype=np.float32))
        expected = _on_both(model, batches, weights)
        run = _on_both(mine, batches, weights)
        with compared(run.trace, expected.trace):
            launches(run.trace, "relu", number)
            never_blocks(run.trace)
            for i in range(number):
                right = f"sim:{i % 2}"
                (span,) = [s for s in run.trace.find("relu") if s.label == f"batch {i}"]
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
            side_by_side(run.trace, ALL_FIRST)
        right = [np.maximum(batch, 0) + weights for batch in batches]
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
