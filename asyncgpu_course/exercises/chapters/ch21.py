"""Exercises of 21_inside_one_sm: what each one checks."""

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.operations import exact_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import UNWRITTEN, as_kernel, looked_at, report_on, waits_of
from asyncgpu_course.exercises.exercise import Exercise

_MANY = 131  # tiles: more than anybody would write down


def check_under_way(mine: Any, _model: Any) -> None:
    """All numbers are added, and a thread waits once for four of each array."""
    kernel = as_kernel(mine, "dot")
    for n in (4096, 5000, 127, 1, 8192):
        x, w = exact_numbers(n, n), exact_numbers(n + 1, n)
        with case(f"n={n}"):
            parts, _ = looked_at(kernel, [n, x, w], (96,), grid=3, block=32)
            for me in np.flatnonzero(parts == UNWRITTEN)[:1]:
                must(False, f"no thread wrote `out[{me}]`, where thread {me} should leave its part")
            total = parts.sum()
            must(total == x @ w, f"all parts together are {total:.6g}, and should be {x @ w:.6g}")
    for n in (8192, 6144):
        given = [n, exact_numbers(n, n), exact_numbers(n + 1, n)]
        trips, most = round(waits_of(kernel, given, (128,), 128)[1]), n // 128 // 4
        cause = f"with n={n} and 128 threads, a thread waits for memory {trips} times, and {most} "
        cause += "are enough: read four numbers of each array before you use the first"
        must(trips <= most, cause)


def check_next_tile(mine: Any, _model: Any) -> None:
    """The sums are right, and no thread waits for a tile that it could have asked for earlier."""
    kernel = as_kernel(mine, "smooth")
    for tiles, blocks in ((8, 2), (1, 2), (7, 3), (_MANY, 1)):
        x = exact_numbers(tiles, tiles * 256)
        tile = x.reshape(tiles, 256)
        right = (np.roll(tile, 1, 1) + tile + np.roll(tile, -1, 1)).reshape(-1)
        with case(f"{tiles} tiles for {blocks} blocks"):
            report = report_on(kernel, [len(x), x], right, grid=blocks, block=256)
            written = report.counts.store_bytes // x.itemsize
            cause = f"the blocks write {written} numbers, and there are {len(x)}: "
            must(written <= len(x), cause + "share out the tiles, so that one block has each")
    for tiles in (_MANY, 20):
        x = exact_numbers(tiles, tiles * 256)
        run, trips = waits_of(kernel, [len(x), x], x.shape, 256)
        # Less, the more there is between a copy and the wait for it; as many as tiles, if there's nothing.
        cause = f"with {tiles} tiles for a block, a thread waits for memory {trips:.0f} times: let copies be "
        cause += "asynchronous, by `__pipeline_memcpy_async`, and compute between a copy and its "
        must(trips < 0.95 * tiles and any(at.apart for at in run.steps), cause + "wait")


def summed(kernel: agt.Kernel, rows: int, width: int, block: int) -> Any:
    """The report on a sum of rows of numbers, in one block, which turns it round."""
    x = exact_numbers(rows, rows * width or width)
    right = x[: rows * width].reshape(rows, width).sum(0)[::-1].astype(np.float32)
    return report_on(kernel, [rows, x], right, grid=1, block=block)


def check_ring(mine: Any, model: Any) -> None:
    """The sums are right, with three tiles under way and one barrier a turn."""
    kernel, met = as_kernel(mine, "ring"), dict[int, int]()
    for tiles in (9, 1, 3, 0, 33, _MANY):
        with case(f"tiles={tiles}"):
            met[tiles] = summed(kernel, tiles, 256, block=256).counts.barriers
    given = [_MANY, exact_numbers(_MANY, _MANY * 256)]
    run, trips = waits_of(kernel, given, (256,), 256)
    copies = [at for at in run.steps if at.apart]
    # A copy in bulk, of many numbers by one thread, has a phase to which not the whole block comes.
    bulk = any(len({*at.threads.tolist()}) < len(at.threads) for at in copies)
    for tiles, times in met.items():
        cause = f"with tiles={tiles}, the block meets {times - tiles * bulk} times, and once a turn is enough"
        # Whoever makes barriers of their own meets once before the first turn.
        must(times <= tiles * (1 + bulk) + 1, cause)
    cause = "no tile comes by an asynchronous copy: bring each one to its place as `fetch` does"
    must(bool(copies), cause)
    _, most = waits_of(as_kernel(model, "ring"), given, (256,), 256)
    cause = f"with {_MANY} tiles, a thread waits for memory {trips:.0f} times, and {most:.0f} are enough: "
    # Twice as many with two under way. The less there is to do in a turn, the more of them.
    must(trips <= 1.3 * most + 2, cause + "keep three tiles under way while a fourth is added")


CHAPTER_21 = (
    Exercise("21-under-way", "Four under way", "dot", check_under_way),
    Exercise("21-next-tile", "The next tile", "smooth", check_next_tile),
    Exercise("21-ring", "Repair the ring", "ring", check_ring),
)
