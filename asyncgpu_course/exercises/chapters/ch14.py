"""Exercises of 14_gallery: what each one checks."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import code_steps
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.device_code import all_lanes, keeps_waiting, stays, trial
from asyncgpu_course.checks.operations import beside_host, cuda
from asyncgpu_course.checks.rejection import Rejected, must
from asyncgpu_course.checks.results import UNWRITTEN, CheckedArray, as_kernel, equal, left_in
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, counted, in_late_memory, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import SimDevice, count

_GOAL_US = 200  # below what one block takes in which each thread divides for each pull
_SIZE = 24  # numbers of a vector of attention
PIXELS, PIECE = 64, 192  # as in 14_compare.cu
READ_US, SEARCH_US, LITTLE = 60, 800, 1 / 16
UNCORRECTED = {(False, True): "`sum` is right, and what is in `mix` isn't corrected",
               (True, False): "`mix` is right, and what is in `sum` isn't corrected",
               (True, True): "neither `sum` nor `mix` is corrected when a larger score comes"}  # fmt: skip
_LATE = (
    "if (threadIdx.x >= 160) "
    "for (long long end = clock64() + 400000; clock64() < end;) __nanosleep(1000);"
)


# ------------------------------------------------------------------ grep
def _grep(mine: Any, _model: Any, text: bytes, letter: str, block: int = 64) -> None:
    """Each place of the letter is there once, in order within a warp, with one atomic for a warp."""
    letters = np.frombuffer(text, np.uint8)
    right = np.flatnonzero(letters == ord(letter)).astype(np.int32)
    empty, counter = np.full(len(text), -1, np.int32), np.zeros(1, np.int32)
    args = (len(text), letters, ord(letter), empty, counter)
    kernel = as_kernel(mine, "GREP")
    all_lanes(code_steps.steps(kernel.source, kernel.name))
    with agt.microscope() as seen:
        grid = -(-len(text) // block)
        places, total = left_in((1, 2), kernel, args, grid=grid, block=block)
    must(total[0] == len(right), f"the counter is at {total[0]}, and {len(right)} is right")
    places = places[: len(right)]
    equal(np.sort(places), right)
    for warp in range(-(-len(text) // 32)):
        here = places[places // 32 == warp].tolist()
        complaint = f"warp {warp} wrote its places as {here}: a lane's rank is the number of votes "
        must(here == sorted(here), complaint + "*below* it, so they stay in order")
    made = sum(run.counts.atomics for kernel in seen.kernels for run in kernel.launches)
    warps = len(set((right // 32).tolist()))
    complaint = f"{count(made, 'atomic')} for {count(warps, 'warp')} with a match: one lane asks "
    complaint += "for all, and tells"
    must(
        made <= warps,
        f"{complaint} the others by `__shfl_sync`; a warp without a match need not ask",
    )


# ------------------------------------------------------------------ corrected on the way
def _mixed(
    q: CheckedArray,
    k: CheckedArray,
    v: CheckedArray,
    sum_late: bool = False,
    mix_late: bool = False,
) -> CheckedArray:
    """Return what each word takes home, in double precision, or does if one of the two isn't corrected."""
    scores = np.where(np.tri(len(q), dtype=np.bool_), q.astype(float) @ k.T.astype(float), -np.inf)
    so_far = np.maximum.accumulate(scores, axis=1)
    fixed, late = (np.exp(scores - most) for most in (so_far[:, -1:], so_far))
    total = (late if sum_late else fixed).sum(axis=1, keepdims=True)
    return ((late if mix_late else fixed) / total) @ v


def _flash(mine: Any, _model: Any, words: int, scale: float, _how: str) -> None:
    """Each mix is the right one, however late the largest score comes, and however large it is."""
    rng = np.random.default_rng(words)
    q, k, v = rng.standard_normal((3, words, _SIZE), np.float32)
    q[:, 0], k[:, 0] = 1, scale * np.arange(words)  # later words count for more, or for less
    k[:, 0] -= 3000 * (scale < 0)  # and all scores may be far below zero
    q *= (np.arange(_SIZE) == 0) / 16 if scale == LITTLE else 1
    for part in q, k:
        part[:] = np.rint(part * 16) / 16  # so a `float` holds each score as it is
    out = np.full(words * _SIZE, UNWRITTEN, np.float32)
    args = words, *(part.ravel() for part in (q, k, v)), out
    with agt.microscope() as seen:
        (got,) = left_in((3,), as_kernel(mine, "FLASH"), args, grid=-(-words // 32), block=32)
    try:
        equal(got, _mixed(q, k, v).ravel().astype(np.float32))
    except Rejected as rejected:
        for late, how in UNCORRECTED.items():
            if np.allclose(got, _mixed(q, k, v, *late).ravel(), 1e-4):
                rejected.cause = how
        raise
    asked = sum(kernel.counts.load_bytes for kernel in seen.kernels)
    once = 4 * _SIZE * (words + 2 * sum(min(words, first + 32) for first in range(0, words, 32)))
    complaint = f"threads ask the memory for {asked:,} bytes, and for {once:,} if a block goes "
    complaint += "over its words once"
    must(asked < 1.3 * once, complaint)


# ------------------------------------------------------------------ a search that reads
def _search(mine: Any, _model: Any, pieces: int, asked: int, refused: int, how: str) -> float:
    """Each piece is asked for once and compared; the score is how long that takes."""
    before = cuda("14_compare").replace("LATE", _LATE if "late" in how else "")
    before = cuda("13b_spoil") * ("late" in how) + before
    rng = np.random.default_rng(pieces)
    database = rng.integers(0, 17, (pieces, PIXELS, PIECE), np.uint8)
    pictures = rng.integers(0, 17, (asked, PIXELS), np.uint8)
    apart, wanted = np.full((pieces, asked, PIECE), -1, np.int32), list[int]()

    def read(asking: Any) -> int:
        wanted.append(asking.a)
        agt.work(READ_US, "read")
        if asking.a == refused or asking.a >= pieces:
            raise agt.errors.CallRefusedError(5)
        asking.data[:] = database[asking.a].ravel()
        return 0

    given, found = (agt.h2d(agt.pin(x.ravel())).sync() for x in (pictures, apart))
    office: Any = {"handlers": {16: read}, "nbytes": PIXELS * PIECE, "block": PIECE}
    tried, args = trial("SEARCH", mine, before, kernel="search"), (given, found.borrow())
    with tried as kernel, beside_host(kernel, pieces, asked, *args, **office) as took:
        apart.ravel()[:] = agt.d2h(found).sync()
        right = ((database[:, None].astype(int) - pictures[None, :, :, None]) ** 2).sum(2)
        last = refused if refused >= 0 else pieces
        complaint = f"the host was asked for pieces {wanted[:14]}, and 0 to {pieces - 1} are "
        complaint += "wanted once each"
        must(refused >= 0 or sorted(wanted) == [*range(pieces)], complaint)
        equal(apart[:last].ravel(), right[:last].ravel().astype(np.int32))
        complaint = "the host refused a piece, and the kernel worked on it all the same: "
        complaint += "it should end there"
        must(bool((apart[last:] == -1).all()), complaint)
    complaint = f"all distances are right, and the search takes {took:.0f} µs: get below "
    complaint += f"{SEARCH_US} (a question leaves at its first `poll()`, or when somebody waits "
    complaint += "for it)"
    must(refused >= 0 or pieces < 9 or took < SEARCH_US, complaint)
    return took


def check_search(mine: Any, model: Any) -> float | None:
    """All pieces are compared, and a wait for one goes on for as long as it takes."""
    took = cases(_search, SEARCHES, "{0:piece}{3}")(mine, model)
    given = agt.h2d(np.zeros(PIXELS, np.uint8)), agt.h2d(np.zeros(2 * PIECE, np.int32))
    keeps_waiting(mine, cuda("14_compare").replace("LATE", ""), 2, 1, *given, block=PIECE)
    return took


# ------------------------------------------------------------------ a queue that fills itself
def _tree(n: int, kind: str, apart: int) -> tuple[CheckedArray, CheckedArray]:
    """Return where the children of each number begin, and the children: items are so far apart."""
    item = np.arange(n - 1)
    parent = {"chain": item, "star": 0 * item, "tree": item // 2}[kind]
    begin = np.searchsorted(apart * parent, np.arange(apart * (n - 1) + 2))
    return begin.astype(np.int32), (apart * (item + 1)).astype(np.int32)


def check_queue(mine: Any, model: Any) -> None:
    """All items are done; and a block waits for one that is open, however long nobody puts it."""
    cases(_fills, TREES, "a {1} of {0:item} and {2:block} of 32 threads, each of which may put")(
        mine, model
    )
    args = 1, *[np.full(2, -1, np.int32)] * 7, np.array([0, 1, 1], np.uint32)
    kernel = call(agt.Kernel, cuda("14_queue_given") + mine + cuda("14_queue"), "trial")
    complaint = "`take` gives up although an item is open: "
    complaint += "whoever works on it for long may still put something"
    for leap in 100_000, None:
        cast(SimDevice, agt.current_device()).leap = leap
        try:
            must(stays(lambda: left_in((7,), kernel, args, grid=1, block=32)), complaint)
        except Rejected as rejected:  # who has waited for long enough may give up, by a trap
            if leap or "__trap()" not in rejected.cause:
                raise


def _fills(mine: Any, _model: Any, n: int, kind: str, blocks: int, apart: int = 1) -> None:
    """Each item is done once; then all blocks leave. A gift that may be old when it's read is a race."""
    late = str(int("cuda::" not in str(mine)))  # whose orders are fences, too
    given = cuda("14_queue_given") + cuda("14_queue_slow").replace("HELD", late) * (blocks == 4)
    begin, children = _tree(n, kind, apart)
    gift, items = (
        np.zeros(begin.size - 1, np.int32),
        np.r_[0, np.full(2 * n + blocks, -1)].astype(np.int32),
    )
    naps = np.random.default_rng(n).integers(0, 20, gift.size).astype(np.int32)
    args = (
        gift.size,
        begin,
        children,
        naps,
        gift,
        gift - 1,
        gift,
        items,
        np.array([0, 1, 1], np.uint32),
    )
    try:
        with trial("QUEUE", mine, given, cuda("14_queue")) as kernel:
            (times,) = left_in((5,), kernel, args, grid=blocks, block=32)
    except Rejected as rejected:
        complaint = "a block waits for ever in `take`: "
        complaint += "either nothing tells it that no more will come (`open` is "
        complaint += (
            "counted too late, too early or not at all), or its item went to a block that had left"
        )
        if blocks == 4:
            complaint += "; others see that `open` was raised only behind a fence"
        gave_up = "__trap()" in rejected.cause and "of your text" in rejected.cause
        must("waits for ever" not in rejected.cause and not gave_up, complaint)
        raise
    due = np.arange(gift.size) % apart == 0
    for item in np.flatnonzero(times != due):
        at = item // apart
        thread = int((at - 1 - begin[np.searchsorted(begin, at) - 1]) % 32)
        why = f"thread {thread} put it. Either that does nothing, or somebody left while others could still "
        why = "" if times[item] else why + "put something"
        counted(f"item {item} was done", int(times[item]), "time", int(due[item]), why)


# ------------------------------------------------------------------ the challenge
def _galaxy(n: int) -> tuple[CheckedArray, CheckedArray]:
    rng = np.random.default_rng(n)
    at = rng.normal(0, 1, (n, 2)).astype(np.float32)
    return at, (at[:, ::-1] * [-0.3, 0.3]).astype(np.float32)


def _fallen(at: CheckedArray, speed: CheckedArray, steps: int) -> CheckedArray:
    """Positions of the stars, in double precision."""
    at, speed = at.astype(float), speed.astype(float)
    for _ in range(steps):
        d = at[None] - at[:, None]
        r2 = (d * d).sum(-1) + 0.01
        speed = speed + 0.01 * (d / (len(at) * r2 * np.sqrt(r2))[..., None]).sum(1)
        at = at + 0.01 * speed
    return at


def _flown(answer: Any, n: int, steps: int) -> Observed:
    """A run after which the stars are where they belong, after an odd or even number of steps."""
    given = [agt.h2d(agt.pin(part.ravel())).sync() for part in _galaxy(n)]
    with moved() as numbers:
        run = observe(answer, agt.Kernel(cuda("14_step")), *given, steps)
    equal(run.result, _fallen(*_galaxy(n), steps).ravel())
    numbers.by_kernels(run.result, *_galaxy(n))
    return run


TEXTS = [(b"banana", "a"), (b"a" * 40, "a"), (b"xyz" * 30, "a"), (b"-" * 31 + b"a", "a"),
         (b"a man a plan a canal panama " * 8, "n"),
         (b"a man a plan a canal panama " * 12, "p", 256)]  # fmt: skip
TREES = [(1, "tree", 1), (6, "chain", 3), (40, "star", 3), (9, "star", 4), (15, "tree", 5, 5_003)]
WORDS = [(1, 0, ""), (40, 0, ", where the largest score changes on the way"),
         (33, 8, ", each of which counts for more than those before it"),
         (90, LITTLE, ", each of which counts for a little more than those before it"),
         (70, -3, ", of which the first counts for most")]  # fmt: skip
SEARCHES = [(3, 2, -1, ""), (1, 1, -1, ""), (4, 3, -1, " and a warp that is late to read them"),
            (4, 2, 2, ", one of which the host refuses"), (3, 2, 0, ", the first of which the host refuses"),
            (3, 2, 2, ", the last of which the host refuses"), (9, 16, -1, "")]  # fmt: skip
EXERCISES = (
    Exercise("14-grep", "One atomic for a warp", "GREP", cases(_grep, TEXTS, "a text of {:letter}")),
    Exercise("14-mix", "Correct it, and go on", "FLASH", cases(_flash, WORDS, "{0:word}{2}")),
    Exercise("14-search", "Read while you compare", "SEARCH", check_search),
    Exercise("14-challenge", "Challenge: forty steps", "fly",
             timed(_flown, [(41, 3), (9, 130), (64, 40)], "{} stars and {} steps", _GOAL_US,
                   "Is it in Python's calls, or in the kernel: what does a thread compute for 64 pulls?")),
    Exercise("14-queue", "Will anything come?", "QUEUE", check_queue,
             in_late_memory(_fills, 6, "chain", 3)),
)  # fmt: skip
