"""Exercises of 11_the_gpu_decides: what each one checks, on a device that sees races and endless waits."""

from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.device_code import left_by
from asyncgpu_course.checks.operations import cuda
from asyncgpu_course.checks.rejection import Rejected, about, must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, brief, equal, left_in
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, in_late_memory, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

LEAVES = "a thread leaves alone, the vote goes on without it, its cell stays dry (all leave by a vote): {}"
STILL, MANY = (600, " whose ranks are right from the start"), (4096, "")
GOAL_US, CHAIN, LONE = 200, " and a chain of links", " of which one moves at a time"


# ------------------------------------------------------------------ one block decides
def _maze(width: int, seed: int) -> CheckedArray:
    """1 where one can walk: every cell has a wall with probability 0.3, but for the first; 0 is a serpent."""
    free = (np.random.default_rng(seed).random((width, width)) > 0.3).astype(np.uint8)
    if seed == 0:
        free[:], free[1::4, :-1], free[3::4, 1:] = 1, 0, 0
    free[0, 0] = 1
    return free


def _flooded(free: CheckedArray) -> tuple[CheckedArray, int]:
    """Steps from the first cell to each, and how many rounds that takes."""
    depth = np.full(free.shape, -1, np.int32)
    depth[0, 0] = level = 0
    while True:
        wet = np.pad(depth == level, 1)
        reached = wet[:-2, 1:-1] | wet[2:, 1:-1] | wet[1:-1, :-2] | wet[1:-1, 2:]
        reached &= (free == 1) & (depth < 0)
        level += 1
        if not reached.any():
            return depth.ravel(), level
        depth[reached] = level


def _flood(mine: Any, _model: Any, width: int, seed: int) -> None:
    """All steps are taken in one launch, and no more than are needed."""
    kernel, free = as_kernel(mine, "FLOOD"), _maze(width, seed)
    depth = np.array([0] + [-1] * (free.size - 1), np.int32)
    right, rounds = _flooded(free)
    args = (width, free.ravel(), depth, np.full(1, 70, np.int32))
    with about("does not reach this barrier", LEAVES):
        found, taken = left_in((1, 2), kernel, args, grid=1, block=free.size)
    equal(found, right)
    cause = f"`rounds[0]` is {taken[0]}: the water needs {count(rounds, 'round')}, "
    must(taken[0] == rounds, cause + "the last of which finds nothing")
    run, arrays = results.accesses_of(kernel, args[:3], (1,), (free.size, 1, 1))
    told = [at.threads for at in run.steps if at.write and at.array == arrays[-1]]
    writers = np.unique(np.concatenate(told)).size
    cause = f"{count(writers, 'thread')} of {free.size} write `rounds[0]`: "
    must(writers == 1, cause + "one is enough, and `if (i == 0)` leaves it to that one")
    results.evenly(run, 16 * rounds + 16, "let each thread look after a cell of its own")


# ------------------------------------------------------------------ the grid meets
# The last has more threads than are interpreted side by side: some begin when others have long waited.
MEETINGS = [(4, 64), (7, 32), (1, 96), (20, 1024)]
REAL = "the count has to be atomic, and the look, too, or volatile: {}"
OUT = "what a block wrote gets out by a barrier, a fence and the count, in this order: {}"
IN = "what others wrote gets into it by the last look, a fence and a barrier, in this order: {}"
_LOOKS = 500  # of one thread; right answers need 50 until others have come
NESTED = 60_000  # turns of loops whose ends others count, as 100 by 100 by 100 looks take


def check_meet(mine: Any, model: Any) -> None:
    """Each block waits for the others at each meeting, even for one that never comes."""
    cases(_meet, MEETINGS, "{} blocks of {} threads, and three meetings")(mine, model)
    cast(Any, agt.current_device()).step_budget = _LOOKS  # which ends a longer loop
    cause = "a thread never leaves where the counter is past its `goal`, because others have counted for "
    cause += "their next meeting before it looks: wait as long as the counter is below"
    must(_alone(mine, 5) is True, cause)
    for goal in 2, 3_000_000_002:
        cause = f"`goal` is {goal}, and the other block never comes: with the counter at {goal - 1}, threads "
        cause += "leave the meeting. Wait as long as it is below `goal`, and then end the kernel "
        must(_alone(mine, goal - 2, goal) is not True, cause + "by `__trap()`")
    _gives_up(mine)


def check_again(mine: Any, model: Any) -> None:
    """Each block waits at one gate for the others, even for one that never comes."""
    cases(_again, GATES, "{0:block} of {1:thread}, and `gate[1]` at {2} before{3}")(mine, model)
    _between_fences(mine)
    cast(Any, agt.current_device()).step_budget = _LOOKS  # which ends a longer loop
    mine += "\n#define meet(gate, goal) meet(gate)\n"
    cause = "a block never comes, and another leaves: end the kernel by `__trap()`"
    must(_alone(mine) is not True, cause)
    _gives_up(mine)


def _between_fences(mine: str) -> None:
    """A block's look comes before its count, and its reset before the new generation, by a fence each.

    It comes alone. If it isn't the last, the others end the meeting at each fence before its count: as far
    as that fence goes, it may have counted by then.
    """
    files, left = ("11_gate_fences", "11_gate_alone"), np.zeros(1, np.uint32)
    for begun, cause in UNORDERED.items():
        try:
            (apart,) = left_by("MEET_AGAIN", mine, files, (begun, left), (0,), 2, 1)
            must(not begun or apart[0] > 0, cause)
        except Rejected as rejected:  # CUDA's own barrier of the grid needs no gate
            must(rejected.cause != cause and "in this loop" not in rejected.cause, cause)


def _gives_up(mine: str) -> None:
    """A thread ends the kernel when it has waited for long, and not before."""
    back = "#define __trap() return\n#define assert(fine) if (!(fine)) return\n" + mine
    cause = "a block never comes, and another waits forever, or for more than 100 million "
    cause += "looks: give up before that by `__trap()`. Each thread counts its looks in an "
    cause += "`unsigned int` of its own"
    cast(Any, agt.current_device()).step_budget = NESTED
    cast(Any, agt.current_device()).leap = 100_000_100  # looks
    end = str(_alone(back))
    must("waits forever in this loop" not in end, cause)
    cause = "the check can't follow how `meet` counts its looks, nor say if that ends: count them one by "
    must("still running" not in end, cause + "one, in an `unsigned int` of each thread's own")
    cast(Any, agt.current_device()).leap = 99_900  # looks; the first few are made
    early = _alone(back)
    cause = "`meet` gives up after fewer than 100,000 looks, and a block may be later than that"
    must(early is not True and not isinstance(early, agt.errors.BarrierError), cause)


def _alone(mine: str, arrived: int = 0, goal: int = 2) -> object:
    """True if threads of a block leave a meeting to which the other never comes; or an error."""
    args = goal, np.array([arrived, 0], np.uint32), np.zeros(32, np.int32)
    try:
        kernel = call(agt.Kernel, mine + cuda("11_stencil"), "alone")
        return bool(left_in((1,), kernel, args, grid=2, block=32)[0].any())
    except Rejected as rejected:  # of an endless wait, or of a trap
        return rejected.__cause__


def _meet(mine: Any, _model: Any, blocks: int, threads: int) -> None:
    """Three meetings of all blocks. What is written before each, another block reads behind it."""
    x = np.ones(blocks * threads, np.float32)
    counts = np.zeros(1, np.uint32), np.zeros(blocks, np.uint32), np.zeros(1, np.int32)
    args, files = (x.size, x, 0 * x, *counts), ("", "11_stencil")
    with about("'arrived'", REAL), about("this thread has no", IN), about("the other block", OUT):
        arrived, early = left_by("MEET", mine, files, args, (2, 4), blocks, threads)
    cause = f"the counter is at {arrived[0]} in the end: each of {count(blocks, 'block')} "
    must(arrived[0] == 3 * blocks, cause + "should add one at each of three meetings")
    must(not early[0], "a thread left a meeting before the counter had reached its `goal`")


# ------------------------------------------------------------------ a gate
EARLY = "a thread went on from a meeting, and can't rely on what others wrote before it: {}"
OVER = "a block waits forever: its meeting is over, or its count was wiped out: {}"
BETWEEN = ": put a __threadfence() between the two"
# What may go wrong in a meeting that begins with these generations, if no fence orders two steps.
UNORDERED = {
    0: "no fence orders the look at the generation before the count, so a GPU may count first. Until it "
       "looks, the others may have ended the meeting, and then it waits for one that is over" + BETWEEN,
    7: "no fence orders setting the counter back before raising the generation, so others may see the new "
       "one first, come to the next meeting, and count. Then writing the 0 loses their count" + BETWEEN,
}  # fmt: skip
_SLOW = 2**32 - 2, ", and somebody held up in `meet`"
GATES = [(3, 64, 0, ""), (1, 32, 7, ""), (3, 32, 2**31 - 1, ""), (4, 32, *_SLOW), (258, 1, 0, "")]


def _again(mine: Any, _model: Any, blocks: int, threads: int, begun: int, held_up: str) -> None:
    """Six meetings at one gate, or two of many blocks. What is written before each is read behind it."""
    x, gate = np.zeros(blocks * threads, np.int32), np.array([0, begun], np.uint32)
    known = x.size if blocks < 9 else 9  # of `x`, which each block looks at
    files, args = [held_up and "11_gate_slow", "11_gate"], (known, begun > 0, x, gate, 0 * x[:1])
    with about("'x'", EARLY), about(r"__trap\(\)", OVER):
        # Whoever leaves a meeting too early reads what somebody is yet to write, which is a race.
        left, _ = left_by("MEET_AGAIN", mine, files, args, (1, 2), blocks, threads)
    must(not left[0], f"`gate[0]` is {left[0]} in the end: set it back to 0 after each meeting")


# ------------------------------------------------------------------ the challenge
def _links(n: int, kind: str) -> tuple[CheckedArray, CheckedArray, CheckedArray]:
    """Sources and weights of `n` pages, and ranks in double precision; with a chain they need 81 rounds.

    A chain leads from page 0, on which all the others are soon felt, to odd pages and then to even ones.
    """
    rng = np.random.default_rng(n)
    sources = (rng.random((n, 8)) ** 2 * n).astype(np.uint32)
    if kind == CHAIN:
        sources, chain = 681 + sources * (n - 681) // n, np.r_[585:681:2, 586:681:2]
        sources[:73] = np.arange(1, 585).reshape(73, 8)
        sources[chain] = np.append(0, chain[:-1])[:, None]
    elif kind == LONE:  # along a ring, whose last page has half of its weight: another needs it
        order = np.arange(-37, 37 * (n - 2), 37) % (n - 1)  # page 0 moves in the second round
        sources = np.empty((n, 8), np.uint32)
        sources[order], sources[-1] = np.roll(order, 1)[:, None], order[-1]
    elif kind:
        sources = np.add.outer(np.arange(n), np.arange(1, 9)).astype(np.uint32) % n
    weight = 1 / np.maximum(np.bincount(sources.ravel(), minlength=n), 1)
    rank = np.full(n, 1 / n)
    for _ in range(100):
        rank = 0.15 / n + 0.85 * (weight * rank)[sources].sum(axis=1)
    return sources.ravel(), weight.astype(np.float32), rank


def _ranked(answer: Any, n: int, kind: str) -> Observed:
    """A run whose ranks are right within what the last rounds still move, a hundredth of the mean rank."""
    *links, right = _links(n, kind)
    given = [agt.h2d(agt.pin(x)).sync().share() for x in links]
    with moved() as numbers, agt.microscope() as seen:
        run = observe(answer, *given)
    got = cast(CheckedArray, run.result)
    cause = f"`pagerank` should return an array of {n} ranks, and returned {brief(got)}"
    must(isinstance(run.result, np.ndarray) and got.shape == (n,), cause)
    for page in range(n):
        mine, other = n * got[page], n * right[page]
        cause = f"the rank of page {page} is {mine:.3f}/n, and {other:.3f}/n is right"
        must(abs(mine - other) < 0.01, cause)  # nan is wrong, too
    numbers.by_kernels(got, *links)
    shares, sources = links[1] * n * got.astype(float), links[0].reshape(n, 8)
    moves = np.abs(0.15 + 0.85 * shares[sources].sum(axis=1) - n * got)
    page = int(moves.argmax())
    cause = f"it ends too soon: another round would move page {page} by {moves[page]:.5f}/n"
    must(kind != LONE or moves[page] < 0.00105, cause)
    rounds = sum(kernel.counts.flops for kernel in seen.kernels) // (16 * n)
    cause = f"as much was computed as in about {rounds} rounds, and the first finds that no rank changes: "
    must((n, kind) != STILL or rounds < 20, cause + "end with the round in which nobody has moved")
    return run


CHAPTER_11 = (
    Exercise("11-flood", "Let the block decide", "FLOOD",
             cases(_flood, [(16, 1), (32, 2), (8, 3), (32, 0)], "a maze of {0} by {0}")),
    Exercise("11-meet", "A barrier for the grid", "MEET", check_meet,
             in_late_memory(_meet, 3, 32, turns=_LOOKS)),
    Exercise("11-again", "A barrier without a goal", "MEET_AGAIN", check_again,
             in_late_memory(_again, 3, 32, 0, "", turns=_LOOKS)),
    Exercise("11-challenge", "Challenge: who is important?", "pagerank",
             timed(_ranked, [(700, CHAIN), (1501, LONE), (600, ""), STILL, MANY], "{} pages{}", GOAL_US),
             in_late_memory(timed(_ranked, [(260, "")], ""))),
)  # fmt: skip
