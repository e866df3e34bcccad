"""Exercises of 20_the_ladder: what each one checks."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.operations import noise, whole_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import UNWRITTEN, as_kernel, equal, looked_at
from asyncgpu_course.checks.sandbox import observe
from asyncgpu_course.exercises.exercise import Exercise

_WARP = 32
_GOAL_US = 8.0
# Rows, numbers of each, and how far these are spread, and around what.
_ROWS = (3, 100, 1, 0), (2, 20, 300, 0), (4, 33, 1, -1e6), (1, 1, 1, 0), (2, 256, 90, 500)


def _multiplied(kernel: agt.Kernel, n: int, **launch: Any) -> Any:
    """The report on a product of two matrices, which is the right one."""
    a, b = whole_numbers(n, n, n), whole_numbers(n + 1, n, n)
    with case(f"n={n}"):
        got, report = looked_at(kernel, [n, a, b], (n, n), **launch)
        equal(got, a @ b)
    return report


def check_own(mine: Any, _model: Any) -> None:
    """The product is right, and eight reads of shared memory do for sixteen multiply-adds."""
    kernel = as_kernel(mine, "own")
    for n in (128, 64, 192):
        report = _multiplied(kernel, n, grid=(n // 64, n // 64), block=256)
    counts, products = report.counts, 192**3 / _WARP
    asked = counts.global_load_requests * _WARP / (2 * 3 * 192**2)
    cause = (
        f"the blocks fetch each number of a and b {asked:.1f} times on average, and once is enough"
    )
    must(asked <= 1.1, f"{cause}: load every element of both tiles once, by one thread")
    reads = counts.shared_requests / products
    cause = f"the warps ask shared memory {reads:.2f} times for each multiply-add, and 0.6 is enough: read "
    cause += "four numbers of a column and four of a row, keep them, and do all sixteen products with them"
    must(reads <= 0.65, cause)


def check_turn(mine: Any, _model: Any) -> None:
    """Rows become columns, by whole sectors, and nobody meets in a bank."""
    kernel = as_kernel(mine, "turn")
    for n in (64, 32, 96):
        x = whole_numbers(n, n, n)
        with case(f"n={n}"):
            got, report = looked_at(kernel, [n, x], (n, n), grid=(n // 32, n // 32), block=(32, 32))
            equal(got, np.ascontiguousarray(x.T))
    touched = {"load": report.load_sectors_per_request, "store": report.store_sectors_per_request}
    for what, sectors in touched.items():
        cause = f"a {what} of a warp touches {sectors:.0f} sectors, and four are enough: threads that are "
        must(sectors <= 4, cause + f"neighbours should {what} numbers that are neighbours")
    more = report.conflicts_per_request
    cause = f"each access to shared memory takes {more:.1f} passes more than one: let the numbers "
    cause += "of a column lie in different banks"
    must(not report.counts.bank_conflicts, cause)


def check_four(mine: Any, _model: Any) -> None:
    """All numbers, whatever is left over, and a fourth of the requests."""
    kernel = as_kernel(mine, "four")
    for n in (1024, 1023, 1025, 1026, 4, 3, 1):
        x = whole_numbers(n, n)
        with case(f"n={n}"):
            got, report = looked_at(kernel, [n, 3.0, x], (n,), grid=n // 256 + 1, block=96)
            equal(got, 3 * x)
        least = -(-n // (4 * _WARP))
        for what, asked in (
            ("load", report.counts.global_load_requests),
            ("store", report.counts.global_store_requests),
        ):
            cause = f"with n={n} the warps {what} {asked} times, and {least + 3} times are enough: let each "
            must(asked <= least + 3, cause + f"thread {what} four numbers at once, as a float4")


def check_one_barrier(mine: Any, _model: Any) -> None:
    """The product is right, with one barrier a step and one load of each number."""
    kernel = as_kernel(mine, "ahead")
    for n in (64, 16, 32, 48):
        report = _multiplied(kernel, n, grid=(n // 16, n // 16), block=(16, 16))
        counts, steps = report.counts, n // 16
        passed = counts.barriers // counts.blocks
        cause = f"with n={n}, a block passes {passed} barriers for {steps} steps, and one a step is enough: "
        must(passed <= steps, cause + "with two tiles, nobody writes what others still read")
        asked = counts.global_load_requests / (2 * steps * n * n / _WARP)
        cause = f"each number is fetched {asked:.1f} times by a block, and once is enough"
        must(asked <= 1, cause)


def check_rows(mine: Any, _model: Any) -> None:
    """The softmax of each row, however large its numbers, with two reads of each."""
    kernel = as_kernel(mine, "rows")
    for count, n, scale, middle in _ROWS:
        x = noise(n, count, n) * np.float32(scale) + np.float32(middle)
        grown = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        with case(f"rows of {n} numbers from {x.min():.0f} to {x.max():.0f}"):
            got, report = looked_at(kernel, [n, x], (count, n), grid=count, block=_WARP)
            equal(got, (grown / grown.sum(1, keepdims=True)).astype(np.float32))
        asked, most = report.counts.global_load_requests, 2 * count * -(-n // _WARP)
        cause = f"{count} rows of {n} numbers took {asked} loads of a warp, and {most} are enough: find the "
        must(asked <= most, cause + "largest and the sum in one go")


def check_small(mine: Any, _model: Any) -> float:
    """The product is right, for two sizes, and soon there for 256."""
    for n in (128, 256):
        a, b = whole_numbers(n, n, n), whole_numbers(n + 1, n, n)
        with case(f"n={n}"):
            given = [agt.h2d(it).sync() for it in (a, b)]
            out = agt.full((n, n), UNWRITTEN).sync()

            def program(n: int = n, given: list[Any] = given, out: Any = out) -> None:
                mine(n, *[it.borrow() for it in (*given, out)]).sync()

            run = observe(program)
            equal(agt.d2h(out.borrow()).sync(), a @ b)
    kernels = [span for span in run.trace.device_spans if span.kind == "kernel"]
    took = sum(span.duration for span in kernels)
    must(
        took < _GOAL_US,
        f"it's right, but its kernel takes {took:.2f} µs: get below {_GOAL_US:.0f} µs",
    )
    return took


CHAPTER_20 = (
    Exercise("20-own", "Four by four elements a thread", "own", check_own),
    Exercise("20-turn", "Turn it without a conflict", "turn", check_turn),
    Exercise("20-four", "Four at a time", "four", check_four),
    Exercise("20-ahead", "One barrier a step", "ahead", check_one_barrier),
    Exercise("20-challenge", "Challenge: 256 x 256", "small", check_small),
    Exercise("20-rows", "Softmax on the way", "rows", check_rows),
)
