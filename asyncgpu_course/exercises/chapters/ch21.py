"""Exercises of 21_inside_one_sm: what each one checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from asyncgpu_course.checks.operations import whole_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, equal, looked_at
from asyncgpu_course.exercises.exercise import Exercise


def check_under_way(mine: Any, _model: Any) -> None:
    """All numbers are added, and a thread waits once for four of each array."""
    kernel = as_kernel(mine, "dot")
    for n in (4096, 5000, 127, 1, 8192):
        x, w = whole_numbers(n, n), whole_numbers(n + 1, n)
        with case(f"n={n}"):
            parts, report = looked_at(kernel, [n, x, w], (128,), grid=2, block=64)
            equal(parts.sum(keepdims=True), np.array([x @ w], np.float32))
    trips, most = report.counts.chain_load_rounds, 8192 // 128 // 4
    cause = f"with n=8192 and 128 threads, a thread waits for memory {trips} times, and {most} are enough: "
    must(trips <= most, cause + "read four numbers of each array before you use the first")


def check_next_tile(mine: Any, _model: Any) -> None:
    """The sums are right, and no thread waits for a tile that it could have asked for earlier."""
    kernel = as_kernel(mine, "smooth")
    for tiles, blocks in ((8, 2), (1, 2), (7, 3), (9, 1)):
        x = whole_numbers(tiles, tiles * 256)
        tile = x.reshape(tiles, 256)
        right = (np.roll(tile, 1, 1) + tile + np.roll(tile, -1, 1)).reshape(-1)
        with case(f"{tiles} tiles for {blocks} blocks"):
            got, report = looked_at(kernel, [len(x), x], (len(x),), grid=blocks, block=256)
            equal(got, right)
    trips = report.counts.chain_load_rounds
    cause = f"with 9 tiles for a block, a thread waits for memory {trips} times, and 5 are enough: let the "
    must(trips <= 5, cause + "copies be asynchronous, by `__pipeline_memcpy_async`, and ahead")


def check_meanwhile(mine: Any, _model: Any) -> None:
    """Right, with a barrier at which a thread arrives before it computes and waits after that."""
    kernel = as_kernel(mine, "meanwhile")
    x = whole_numbers(1, 64)
    own = x.copy()
    for _ in range(20):
        own = own * np.float32(0.5) + np.float32(1)
    got, report = looked_at(kernel, [x], (64,), grid=1, block=64)
    equal(got, own + x[::-1])
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", kernel.source, flags=re.DOTALL)
    begin = code.find("__global__")
    arrive, compute = code.find(".arrive(", begin), code.find("own(", begin)
    waits = re.search(r"\.(try_)?wait(_parity)?\(", code[max(compute, 0) :])
    must(arrive > 0, "nobody arrives anywhere: take a `barrier`, call `arrive()`, and later `wait`")
    must(
        arrive < compute and waits is not None, "call `arrive()` before `own`, and `wait` behind it"
    )
    _met_once(report.counts.barriers - 1)  # besides the phase


def _met_once(times: int) -> None:
    cause = (
        f"the block meets {times} times at a `__syncthreads()`, and once, behind `init`, is enough"
    )
    must(times <= 1, cause)


def check_handover(mine: Any, _model: Any) -> None:
    """Each packet is added once, whoever is faster, and nobody meets everybody."""
    kernel = as_kernel(mine, "handover")
    for turns in (5, 1, 2, 8, 0):
        x = whole_numbers(turns, turns * 32 or 32)
        right = x[: turns * 32].reshape(turns, 32).sum(0)[::-1].astype(np.float32)
        with case(f"turns={turns}"):
            got, report = looked_at(kernel, [turns, x], (32,), grid=1, block=64)
            equal(got, np.ascontiguousarray(right))
    _met_once(report.counts.barriers)


CHAPTER_21 = (
    Exercise("21-under-way", "Four under way", "dot", check_under_way),
    Exercise("21-next-tile", "The next tile", "smooth", check_next_tile),
    Exercise("21-meanwhile", "Meanwhile", "meanwhile", check_meanwhile),
    Exercise("21-handover", "Hand over", "handover", check_handover),
)
