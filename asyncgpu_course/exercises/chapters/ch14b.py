"""Exercises of 14b_more_rooms: what each one checks."""

from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results
from asyncgpu_course.checks.device_code import stays, trial
from asyncgpu_course.checks.operations import cuda
from asyncgpu_course.checks.rejection import Rejected, must
from asyncgpu_course.checks.results import UNWRITTEN, CheckedArray, as_kernel, equal, left_in
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.checks.trials import cases, counted, in_late_memory
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import SimDevice

_SIZE = 24  # numbers of a vector of attention
LITTLE = 1 / 16
UNCORRECTED = {(False, True): "`sum` is right, and what is in `mix` isn't corrected",
               (True, False): "`mix` is right, and what is in `sum` isn't corrected",
               (True, True): "neither `sum` nor `mix` is corrected when a larger score comes"}  # fmt: skip


# ------------------------------------------------------------------ corrected on the way
def _mixed(parts: CheckedArray, sum_late: bool = False, mix_late: bool = False) -> CheckedArray:
    """Return what each word takes home, in double precision, or does if one of the two isn't corrected."""
    q, k, v = parts
    scores = np.where(np.tri(len(q), dtype=np.bool_), q.astype(float) @ k.T.astype(float), -np.inf)
    so_far = np.maximum.accumulate(scores, axis=1)
    fixed, late = (np.exp(scores - most) for most in (so_far[:, -1:], so_far))
    total = (late if sum_late else fixed).sum(axis=1, keepdims=True)
    return ((late if mix_late else fixed) / total) @ v


def _flash(mine: Any, _model: Any, words: int, scale: float, _how: str) -> None:
    """Each mix is the right one, however late the largest score comes, and however large it is."""
    rng = np.random.default_rng(words)
    q, k, _ = parts = rng.standard_normal((3, words, _SIZE), np.float32)
    q[:, 0], k[:, 0] = 1, scale * np.arange(words)  # later words count for more, or for less
    k[:, 0] -= 3000 * (scale < 0)  # and all scores may be far below zero
    q *= (np.arange(_SIZE) == 0) / 16 if scale == LITTLE else 1
    for part in q, k:
        part[:] = np.rint(part * 16) / 16  # so a `float` holds each score as it is
    out = np.full(words * _SIZE, UNWRITTEN, np.float32)
    args = words, *parts.reshape(3, -1), out
    kernel, one = as_kernel(mine, "FLASH"), np.ones(_SIZE, np.float32)
    with agt.microscope() as seen:
        (got,) = left_in((3,), kernel, args, grid=-(-words // 32), block=32)
    try:
        equal(got, _mixed(parts).ravel().astype(np.float32))
    except Rejected as rejected:
        for late, how in UNCORRECTED.items():
            if np.allclose(got, _mixed(parts, *late).ravel(), 1e-4):
                rejected.cause = how
        raise
    asked = sum(kernel.counts.load_bytes for kernel in seen.kernels)
    once = 4 * _SIZE * (words + 2 * sum(min(words, first + 32) for first in range(0, words, 32)))
    cause = f"threads ask the memory for {asked:,} bytes, "
    must(asked < 1.3 * once, cause + f"and for {once:,} if a block goes over its words once")
    run, _ = results.accesses_of(kernel, (1, one, one, one), one.shape, (32, 1, 1))
    shared = sum(report.counts.shared_bytes for report in seen.kernels)
    room = max(run.own_bytes // 4 - 2 * _SIZE, shared // 4 // 32)
    cause = f"each thread has room for {room} scores, and there may be any number of words: "
    must(words < 128 or room < words, cause + "keep the largest, the sum and the mix")


# ------------------------------------------------------------------ a queue that fills itself
def _tree(n: int, kind: str, apart: int) -> tuple[CheckedArray, CheckedArray]:
    """Return where the children of each number begin, and the children: items are so far apart."""
    item = np.arange(n - 1)
    parent = {"chain": item, "star": 0 * item, "tree": item // 2}[kind]
    begin = np.searchsorted(apart * parent, np.arange(apart * (n - 1) + 2))
    return begin.astype(np.int32), (apart * (item + 1)).astype(np.int32)


def check_queue(mine: Any, model: Any) -> None:
    """All items are done; and a block waits for one that is open, however long nobody puts it."""
    words = "a {1} of {0:item} and {2:block} of 32 threads, each of which may put"
    cases(_fills, TREES, words)(mine, model)
    args = 1, *[np.full(2, -1, np.int32)] * 7, np.array([0, 1, 1], np.uint32)
    kernel = call(agt.Kernel, cuda("14b_queue_given") + mine + cuda("14b_queue"), "trial")
    cause = "`take` gives up although an item is open: whoever works on it for long may still put something"
    for leap in 100_000, None:
        cast(SimDevice, agt.current_device()).leap = leap
        try:
            must(stays(lambda: left_in((7,), kernel, args, grid=1, block=32)), cause)
        except Rejected as rejected:  # who has waited for long enough may give up, by a trap
            if leap or "__trap()" not in rejected.cause:
                raise


def _fills(mine: Any, _model: Any, n: int, kind: str, blocks: int, apart: int = 1) -> None:
    """Each item is done once; then all blocks leave. A gift that may be old when it's read is a race."""
    late = str(int("cuda::" not in str(mine)))  # whose orders are fences, too
    given = cuda("14b_queue_given") + cuda("14b_queue_slow").replace("HELD", late) * (blocks == 4)
    begin, children = _tree(n, kind, apart)
    gift = np.zeros(begin.size - 1, np.int32)
    items = np.r_[0, np.full(2 * n + blocks, -1)].astype(np.int32)
    naps = np.random.default_rng(n).integers(0, 20, gift.size).astype(np.int32)
    counts = np.array([0, 1, 1], np.uint32)
    args = gift.size, begin, children, naps, gift, gift - 1, gift, items, counts
    try:
        with trial("QUEUE", mine, given, cuda("14b_queue")) as kernel:
            (times,) = left_in((5,), kernel, args, grid=blocks, block=32)
    except Rejected as rejected:
        cause = "a block waits forever in `take`: either nothing tells it that no more will "
        cause += "come (`open` is counted too late, too early or not at all), or its item went "
        cause += "to a block that had left"
        if blocks == 4:
            cause += "; others see that `open` was raised only behind a fence"
        gave_up = "__trap()" in rejected.cause and "of your text" in rejected.cause
        must("waits forever" not in rejected.cause and not gave_up, cause)
        raise
    due = np.arange(gift.size) % apart == 0
    for item in np.flatnonzero(times != due):
        at = item // apart
        thread = int((at - 1 - begin[np.searchsorted(begin, at) - 1]) % 32)
        lost = f"thread {thread} put it. Either that does nothing, or somebody left while others "
        why = "" if times[item] else lost + "could still put something"
        counted(f"item {item} was done", int(times[item]), "time", int(due[item]), why)


TREES = [(1, "tree", 1), (6, "chain", 3), (40, "star", 3), (9, "star", 4), (15, "tree", 5, 5_003)]
WORDS = [(1, 0, ""), (40, 0, ", where the largest score changes on the way"),
         (33, 8, ", each of which counts for more than those before it"),
         (130, LITTLE, ", each of which counts for a little more than those before it"),
         (70, -3, ", of which the first counts for most")]  # fmt: skip
CHAPTER_14B = (Exercise("14b-mix", "Correct it, and go on", "FLASH", cases(_flash, WORDS, "{0:word}{2}")),
    Exercise("14b-queue", "Will anything come?", "QUEUE", check_queue, in_late_memory(_fills, 6, "chain", 3)),
)  # fmt: skip
