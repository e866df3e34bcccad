"""Exercises of 02c_tiles: what each one checks."""

from itertools import product
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results
from asyncgpu_course.checks.operations import noise
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import as_kernel, equal, launched
from asyncgpu_course.exercises.exercise import Exercise

TILE, WARP = 16, 32


def check_softmax(mine: Any, _model: Any) -> None:
    """Right for full blocks and others, wherever the largest is, also where `expf` overflows or gives 0."""
    kernel = as_kernel(mine, "softmax")
    sizes = [(64, 64), (64, 16), (100, 256), (1000, 128), (5000, 256), (1, 32)]
    ranges = ((1.0, 0.0, 0), (100.0, 0.0, 0), (300.0, -1e9, 0), (1.0, 0.0, 200))
    for (n, threads), (scale, middle, peak) in product(sizes, ranges):
        x = noise(n, n) * np.float32(scale) + np.float32(middle)
        x[{100: 0, 1000: 333}.get(n, -1)] += peak
        grown = np.exp(x.astype(np.float64) - x.max())
        with case(f"n={n}, blocks of {threads} and numbers from {x.min():.0f} to {x.max():.0f}"):
            got, right = launched(kernel, [n, x], (n,), (threads,)), grown / grown.sum()
            equal(got, right)
            # As `equal`, also for the smallest of numbers that add up to 1.
            for i in np.flatnonzero(~np.isclose(got, right, rtol=1e-3, atol=1e-30))[:1]:
                raise Rejected(f"element {i} is {got[i]:.4g}, and should be {right[i]:.4g}")
    results.one_writer(kernel, [20, noise(1, 20)], (20,), (8,))
    n = 256
    asked = _counts(kernel, [n, noise(1, n)], (n,), (WARP,)).global_store_requests
    cause = f"{n} outputs took {asked} stores of a warp of {WARP} threads, and {n // WARP} are "
    must(asked <= n // WARP, cause + "enough: let each thread write one output, its own")


def _counts(kernel: agt.Kernel, *launch: Any) -> Any:
    with agt.microscope() as report:
        launched(kernel, *launch)
    return report[kernel.name].counts


def check_tiled(mine: Any, _model: Any) -> None:
    """The product is right whether or not tiles fit, and global memory is asked no more often than needed."""
    kernel = as_kernel(mine, "sgemm_tiled")
    sizes = [(32, 32, 32), (50, 30, 70), (17, 16, 15), (1, 1, 1)]
    for seed, (m, n, k) in product((1, 2), sizes):
        a, b = noise(seed, m, k), noise(seed + 2, k, n)
        with case(f"m={m}, n={n}, k={k}"):
            equal(launched(kernel, [m, n, k, a, b], (m, n), (TILE, TILE)), a @ b)
    n, block = 64, (TILE, TILE)
    results.one_writer(kernel, [17, 18, 1, noise(1, 17), noise(2, 18)], (17, 18), block)
    ones = np.ones((n, n), np.float32)
    asked = _counts(kernel, [n, n, n, ones, ones], (n, n), block).global_load_requests
    args = [n, n, n, 1.0, ones, ones, 0.0]
    naive = _counts(agt.sgemm_naive, args, (n, n), block).global_load_requests
    cause = f"at {n} x {n} the warps ask global memory {asked:,} times, where the naive kernel "
    cause += f"does {naive:,} times and a {TILE}th of that is enough: load every element of both tiles once, "
    must(asked <= naive / TILE * 1.1, cause + "by one thread, and then read it from shared memory")


CHAPTER_02C = (
    Exercise("02c-softmax", "A kernel: softmax", "softmax", check_softmax),
    Exercise("02c-tiled", "A kernel: GEMM with tiles", "sgemm_tiled", check_tiled),
)
