"""Exercises of 14_gallery: what each one checks."""

from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import code_steps, results
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.device_code import all_lanes, keeps_waiting, trial
from asyncgpu_course.checks.operations import beside_host, cuda
from asyncgpu_course.checks.rejection import must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, equal, left_in
from asyncgpu_course.checks.sandbox import Observed, observe
from asyncgpu_course.checks.trials import cases, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

_GOAL_US = 200  # below what one block takes in which each thread divides for each pull
PIXELS, PIECE = 64, 192  # as in 14_compare.cu
READ_US, SEARCH_US = 60, 800
_TURNS = 60_000  # of loops: the nine pieces take 40,000
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
    grid = -(-len(text) // block)
    with agt.microscope() as seen:
        places, total = left_in((1, 2), kernel, args, grid=grid, block=block)
    must(total[0] == len(right), f"the counter is at {total[0]}, and {len(right)} is right")
    places = places[: len(right)]
    equal(np.sort(places), right)
    for warp in range(-(-len(text) // 32)):
        here = places[places // 32 == warp].tolist()
        cause = f"warp {warp} wrote its places as {here}: a lane's rank is the number of votes "
        must(here == sorted(here), cause + "*below* it, so they stay in order")
    made = sum(run.counts.atomics for kernel in seen.kernels for run in kernel.launches)
    warps = len(set((right // 32).tolist()))
    cause = f"{count(made, 'atomic')} for {count(warps, 'warp')} with a match: one lane asks for all, and "
    cause += "tells the others by `__shfl_sync`; a warp without a match need not ask"
    must(made <= warps, cause)
    run, _ = results.accesses_of(kernel, args[:4], (1,), (block, 1, 1), (grid, 1, 1))
    # A block that asks once for all of its warps has one thread add up their votes.
    results.evenly(run, 16 + block // 16, "let each lane look at one letter, and a warp vote")


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
        cause = f"the host was asked for pieces {wanted[:14]}, and 0 to {pieces - 1} are wanted once each"
        must(refused >= 0 or sorted(wanted) == [*range(pieces)], cause)
        equal(apart[:last].ravel(), right[:last].ravel().astype(np.int32))
        cause = "the host refused a piece, and the kernel worked on it all the same: it should end there"
        must(bool((apart[last:] == -1).all()), cause)
    cause = f"all distances are right, and the search takes {took:.0f} µs: get below "
    cause += f"{SEARCH_US} (a question leaves at its first `poll()`, or when somebody waits for it)"
    must(refused >= 0 or pieces < 9 or took < SEARCH_US, cause)
    return took


def check_search(mine: Any, model: Any) -> float | None:
    """All pieces are compared, and a wait for one goes on for as long as it takes."""
    cast(Any, agt.current_device()).step_budget = _TURNS
    took = cases(_search, SEARCHES, "{0:piece}{3}")(mine, model)
    given = agt.h2d(np.zeros(PIXELS, np.uint8)), agt.h2d(np.zeros(2 * PIECE, np.int32))
    keeps_waiting(mine, cuda("14_compare").replace("LATE", ""), 2, 1, *given, block=PIECE)
    return took


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
SEARCHES = [(3, 2, -1, ""), (1, 1, -1, ""), (4, 3, -1, " and a warp that is late to read them"),
            (4, 2, 2, ", one of which the host refuses"), (3, 2, 0, ", the first of which the host refuses"),
            (3, 2, 2, ", the last of which the host refuses"), (9, 64, -1, "")]  # fmt: skip
CHAPTER_14 = (
    Exercise("14-grep", "One atomic for a warp", "GREP", cases(_grep, TEXTS, "a text of {:letter}")),
    Exercise("14-search", "Read while you compare", "SEARCH", check_search),
    Exercise("14-challenge", "Challenge: forty steps", "fly",
             timed(_flown, [(41, 3), (9, 130), (64, 40)], "{} stars and {} steps", _GOAL_US,
                   "Is it in Python's calls, or in the kernel: what does a thread compute for 64 pulls?")),
)  # fmt: skip
