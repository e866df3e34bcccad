"""Exercises of 21_inside_one_sm: what each one checks."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.operations import exact_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, equal, looked_at, report_on
from asyncgpu_course.exercises.exercise import Exercise

_MANY = 131  # tiles: more than anybody would write down


def check_under_way(mine: Any, _model: Any) -> None:
    """All numbers are added, and a thread waits once for four of each array."""
    kernel = as_kernel(mine, "dot")
    for n in (4096, 5000, 127, 1, 8192):
        x, w = exact_numbers(n, n), exact_numbers(n + 1, n)
        with case(f"n={n}"):
            parts, report = looked_at(kernel, [n, x, w], (128,), grid=2, block=64)
            equal(parts.sum(keepdims=True), np.array([x @ w], np.float32))
    trips, most = report.counts.chain_load_rounds, 8192 // 128 // 4
    cause = f"with n=8192 and 128 threads, a thread waits for memory {trips} times, and {most} are enough: "
    must(trips <= most, cause + "read four numbers of each array before you use the first")


def check_next_tile(mine: Any, _model: Any) -> None:
    """The sums are right, and no thread waits for a tile that it could have asked for earlier."""
    kernel = as_kernel(mine, "smooth")
    for tiles, blocks in ((8, 2), (1, 2), (7, 3), (_MANY, 1)):
        x = exact_numbers(tiles, tiles * 256)
        tile = x.reshape(tiles, 256)
        right = (np.roll(tile, 1, 1) + tile + np.roll(tile, -1, 1)).reshape(-1)
        with case(f"{tiles} tiles for {blocks} blocks"):
            report = report_on(kernel, [len(x), x], right, grid=blocks, block=256)
    trips = report.counts.chain_load_rounds
    # Less, the more there is between a copy and the wait for it; as many as tiles, if there's nothing.
    cause = f"with {_MANY} tiles for a block, a thread waits for memory {trips} times: let "
    cause += "copies be asynchronous, by `__pipeline_memcpy_async`, and compute between a copy and its wait"
    must(trips < 0.95 * _MANY, cause)


def summed(kernel: agt.Kernel, rows: int, width: int, block: int) -> Any:
    """The report on a sum of rows of numbers, in one block, which turns it round."""
    x = exact_numbers(rows, rows * width or width)
    right = x[: rows * width].reshape(rows, width).sum(0)[::-1].astype(np.float32)
    return report_on(kernel, [rows, x], right, grid=1, block=block)


def check_ring(mine: Any, model: Any) -> None:
    """The sums are right, with three tiles under way and one barrier a turn."""
    kernel = as_kernel(mine, "ring")
    for tiles in (9, 1, 3, 0, 33, _MANY):
        with case(f"tiles={tiles}"):
            report = summed(kernel, tiles, 256, block=256)
            met = report.counts.barriers
            # Whoever makes barriers of their own meets once before the first turn.
            must(met <= tiles + 1, f"the block meets {met} times, and once a turn is enough")
    own = summed(as_kernel(model, "ring"), _MANY, 256, block=256)
    trips, most = report.counts.chain_load_rounds, own.counts.chain_load_rounds
    cause = f"with {_MANY} tiles, a thread waits for memory {trips} times, and {most} are enough: keep three "
    # Twice as many with two under way. Who brings their own numbers meets nobody, and waits once more.
    must(trips <= most + 2, cause + "tiles under way while a fourth is added")


CHAPTER_21 = (
    Exercise("21-under-way", "Four under way", "dot", check_under_way),
    Exercise("21-next-tile", "The next tile", "smooth", check_next_tile),
    Exercise("21-ring", "Repair the ring", "ring", check_ring),
)
