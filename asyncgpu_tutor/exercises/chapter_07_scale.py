"""What three exercises of 07_async_mlp check: a tiled GEMM, a limit, two devices. See `chapter_07`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.exercises.exercise import Rejected, case, compared
from asyncgpu_tutor.exercises.schedule import launches, waits
from asyncgpu_tutor.exercises.trial import Observed, observe
from asyncgpu_tutor.exercises.values import as_kernel, equal, launched, listed
from asyncgpu_tutor.inspection import microscope
from asyncgpu_tutor.kernels import Kernel, relu, sgemm_naive
from asyncgpu_tutor.ops import DeviceOp, h2d, pin, zeros
from asyncgpu_tutor.run import current_device, record, using
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["check_limited", "check_on_both", "check_tiled", "hostile_limited"]

Array = npt.NDArray[Any]
TILE = 16


# ------------------------------------------------------------------ a tiled GEMM
def _requests(kernel: Kernel, args: Sequence[Any], shape: tuple[int, int]) -> int:
    with microscope() as report:
        launched(kernel, args, shape, (TILE, TILE))
    return report[kernel.name].counts.global_load_requests


def check_tiled(mine: Any, _model: Any) -> None:
    """Sizes that are multiples of the tile and sizes that are not; then, how often it asks global memory."""
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
    naive = _requests(sgemm_naive, [n, n, n, 1.0, ones, ones, 0.0], (n, n))
    if asked > naive / TILE * 1.1:
        raise Rejected(
            f"at {n} x {n} the warps ask global memory {asked:,} times, where the naive kernel does "
            f"{naive:,} times and a {TILE}th of that is enough: every element of both tiles should be "
            "loaded once, by one thread, and then be read from shared memory"
        )


# ------------------------------------------------------------------ no more than so many
def _limited(answer: Any, sizes: Sequence[int], limit: int) -> Observed[Any]:
    ops = [
        h2d(pin(np.full(size, i + 1, np.float32))).to_host().named(f"op {i}")
        for i, size in enumerate(sizes)
    ]
    return observe(answer, ops, limit)


def _stretches(trace: Trace, number: int) -> list[tuple[float, float]]:
    """For each operation when its submission began, and when the device was done with it."""
    found: list[tuple[float, float]] = []
    for i in range(number):
        spans = [span for span in trace if span.label == f"op {i}" and span.kind != "range"]
        if not spans:
            raise Rejected(f"operation {i} of {number} did not run")
        found.append((min(s.start for s in spans), max(s.end for s in spans)))
    return found


def _in_flight(trace: Trace, number: int) -> int:
    """The most operations that were under way at one time."""
    stretches = _stretches(trace, number)
    return max(sum(a <= start < b for a, b in stretches) for start, _ in stretches)


def check_limited(mine: Any, model: Any) -> None:
    """So many are in flight and no more, a new one starts as soon as one is done, results are in order."""
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
            waits(run.trace, 0, "`sync` blocks the event loop, and with it every other task")
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
            for i, result in enumerate(listed("run_limited", run.result, number)):
                with case(f"result {i}"):
                    equal(result, np.full(sizes[i], i + 1, np.float32))


def _alone(trace: Trace, number: int, limit: int) -> Span | None:
    """The first work of an operation that had to wait, and started when nobody else was there any more."""
    stretches = _stretches(trace, number)
    for i in range(limit, number):
        start, _ = stretches[i]
        if not any(a < start < b for a, b in stretches):
            return next(span for span in trace if span.label == f"op {i}")
    return None


def hostile_limited(mine: Any, _model: Any) -> None:
    """The results are in order, whichever is done first."""
    run = _limited(mine, (64,) * 5, 2)
    for i, result in enumerate(listed("run_limited", run.result, 5)):
        with case(f"result {i}"):
            equal(result, np.full(64, i + 1, np.float32))


# ------------------------------------------------------------------ two devices
def _two() -> tuple[Device, Device]:
    first = cast(SimDevice, current_device())
    return first, SimDevice(1, machine=first.machine)


def _recipe(x: Any, w: Any) -> DeviceOp[Any]:
    out = zeros(x.size).partition(256)
    product = relu(x.size, h2d(x), out).last().unpartition()
    return product.and_then(lambda y: _added(y, w)).to_host().named(f"batch {int(x[0])}")


ADD = Kernel(r"""
extern "C" __global__ void add(unsigned int n, const float* w, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += w[i];
}
""")


def _added(y: Any, w: Any) -> DeviceOp[Any]:
    return ADD(y.size, w, y.partition(256)).last().unpartition()


def _on_both(answer: Any, batches: Sequence[Array], weights: Array) -> Observed[Any]:
    devices = _two()
    # A recording is of the current device and of those that the process knows: this one it does not.
    with using(devices[1]), record() as other, using(devices[0]):
        run = observe(answer, _recipe, batches, weights, devices)
    spans = sorted([*run.trace, *other], key=lambda span: span.id)
    return Observed(run.result, Trace(spans, run.trace.clock, run.trace.device))


def check_on_both(mine: Any, model: Any) -> None:
    """Even batches here and odd ones there, both at work at once, with one copy of the weights on each."""
    for number, size in [(4, 1_000_000), (3, 300_000)]:
        batches = [pin(np.full(size, i, np.float32)) for i in range(number)]
        weights = pin(np.arange(size, dtype=np.float32))
        expected = _on_both(model, batches, weights)
        run = _on_both(mine, batches, weights)
        with compared(run.trace, expected.trace):
            launches(run.trace, "relu", number)
            waits(run.trace, 0, "`sync` blocks the event loop, and with it every other task")
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
            if not run.trace.metrics().overlap:
                raise Rejected(
                    "no two operations were at work at the same time: start all of them before you wait "
                    "for the first"
                )
        for i, result in enumerate(listed("on_both", run.result, number)):
            with case(f"{number} batches, for batch {i}"):
                equal(result, np.maximum(batches[i], 0) + weights)
