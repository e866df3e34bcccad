"""The kernels that are written in 07_async_mlp."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import noise
from asyncgpu_tutor.exercises.checks.results import Array, as_kernel, equal, launched
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case

TILE, WARP = 16, 32


def check_softmax(mine: Any, _model: Any) -> None:
    """The result is right for full blocks and others, also where `expf` of an input overflows or gives 0."""
    kernel = as_kernel(mine, "softmax")
    sizes = [(64, 64), (64, 16), (100, 256), (1000, 128)]
    for (n, threads), (scale, middle) in product(sizes, ((1.0, 0.0), (100.0, 0.0), (1.0, -200.0))):
        x = noise(n, n)
        x = x * np.float32(scale) + np.float32(middle)
        grown = np.exp(x.astype(np.float64) - x.max())
        with case(f"n={n}, blocks of {threads} and numbers from {x.min():.0f} to {x.max():.0f}"):
            got, right = launched(kernel, [n, x], (n,), (threads,)), grown / grown.sum()
            equal(got, right)
            _to_the_digit(got, right)
    _all_threads(kernel, [256, noise(1, 256)], 256)


def _to_the_digit(got: Array, right: Array) -> None:
    """As `equal`, also for the smallest of numbers that add up to 1."""
    (wrong,) = np.nonzero(~np.isclose(got, right, rtol=1e-3, atol=1e-30))
    if wrong.size:
        i = int(wrong[0])
        raise Rejected(f"element {i} is {got[i]:.4g}, and {right[i]:.4g} is right")


def _all_threads(kernel: agt.Kernel, args: Sequence[Any], n: int) -> None:
    """Neighbours write together, as one warp: a thread that writes all by itself asks once for each."""
    with agt.microscope() as report:
        launched(kernel, args, (n,), (WARP,))
    asked = report[kernel.name].counts.global_store_requests
    if asked > n // WARP:
        raise Rejected(
            f"a warp of {WARP} threads can write {WARP} neighbours at a time, and for {n} outputs it asked "
            f"{asked} times: let each thread write one output, its own"
        )


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


SOFTMAX = Exercise("07-softmax", "A kernel: softmax", "softmax", check_softmax)
TILED = Exercise("07-tiled", "A kernel: GEMM with tiles", "sgemm_tiled", check_tiled)
