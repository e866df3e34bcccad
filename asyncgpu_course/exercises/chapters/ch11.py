"""Exercises of 11_the_gpu_decides: what each one checks.

Answers are kernels, as their source, and functions of the host that end a loop. Each kernel is run on a
simulated device, which sees a race or a wait for ever for what it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results, schedule, trials
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.device_code import left_by, own_lines
from asyncgpu_course.checks.operations import cuda
from asyncgpu_course.checks.rejection import Rejected, about, case, must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, brief, equal, left_in
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, in_late_memory, runs, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

_LATE = 200, 3, 0, ", where block 0 comes late"
QUEUES = [(20, 3, 0, ""), (7, 7, 0, ", in blocks of 32 threads"), (2, 5, 0, ""), (20, 3, 4, ""),
          (300, 9, 0, ""), (70_016, 3, 70_000, ""), _LATE]  # fmt: skip
LEAVES = "a thread leaves alone, the vote goes on without it, its cell stays dry (all leave by a vote): {}"
ENDLESS = "a thread never hears that all jobs are taken (a shuffle tells no warp but its own): {}"
DRAW = "each block draws its job from the counter by one `atomicAdd`: {}"
STILL, MANY = (600, " whose ranks are right from the start"), (4096, "")
GOAL_US, CHAIN, LONE = 200, " and a chain of links", " of which one moves at a time"


# ------------------------------------------------------------------ fewer questions
def _settled(answer: Any, start: float, every: int, _looks: int) -> Observed:
    """The rounds until a number that is halved in each is not above one."""
    halve, x = agt.Kernel(cuda("11_halve")), agt.full(1, start).sync()

    def round_op() -> agt.DeviceOp[Any]:
        moved = agt.zeros(1, np.int32)
        return moved.and_then(lambda moved: halve(x.borrow(), moved, grid=1, block=1)).last()

    stream = agt.create_stream()
    run = observe(answer, round_op, every, stream)
    schedule.only_on(run.trace, stream)
    return run


def _ask_less(run: Observed, _start: float, every: int, looks: int) -> None:
    """One flag is read for every few rounds; the loop ends with the first look that finds nothing."""
    rounds, copies = len(run.trace.find("halve")), len(run.trace.find("d2h"))
    complaint = f"{count(rounds, 'round')} and {count(copies, 'look')} at a flag, and {count(looks, 'look')} "
    must(copies == looks, f"{complaint}would be right")
    schedule.launches(run.trace, "halve", every * looks)
    schedule.waits(run.trace, looks, "a round whose flag nobody reads need not be waited for")
    _rounds(run, _start, every, looks)


def _rounds(run: Observed, _start: float, every: int, looks: int) -> None:
    got, right = run.result, every * looks
    complaint = f"`settle` should return how many rounds were run, {right}, and returned "
    complaint += f"{brief(got)}"
    must(results.is_number(got, whole=True) and got == right, complaint)


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
    complaint = f"the water needs {count(rounds, 'round')}, the last of which finds nothing"
    must(taken[0] == rounds, f"`rounds[0]` is {taken[0]}: {complaint}")
    seen = agt.show_threads(kernel, 2, free[:2, :2].ravel(), depth[:4], taken, grid=1, block=4)
    name = [*seen.watched.shapes][2]
    writers = {*chain(*(s.threads.tolist() for s in seen.steps if s.write and s.array == name))}
    complaint = f"in its corner of 2 by 2 {count(len(writers), 'thread')} of 4 write `rounds[0]`: "
    must(len(writers) == 1, complaint + "one is enough, and `if (i == 0)` leaves it to that one")


# ------------------------------------------------------------------ a graph decides
def _piles(width: int) -> list[tuple[CheckedArray, int]]:
    """Piles of sand, and the cell on which a grain falls."""
    full, middle = np.full((width, width), 3, np.int32), width * width // 2
    cells = np.arange(full.size).reshape(full.shape)
    lone, heap = full * (cells == middle), 20 * full * (cells == 0)
    return [(full, middle), (0 * full, 0), (lone, middle), (heap, 0)]


def _toppled(sand: CheckedArray, where: int) -> tuple[CheckedArray, int]:
    """The pile when it lies still after that grain, and the waves until then."""
    sand, waves = sand.copy(), 0
    sand.flat[where] += 1
    while (over := sand >= 4).any():
        slid = np.pad(over, 1).astype(np.int32)
        sand += slid[:-2, 1:-1] + slid[2:, 1:-1] + slid[1:-1, :-2] + slid[1:-1, 2:] - 4 * over
        waves += 1
    return sand, waves


def _slid(answer: Any, width: int) -> Observed:
    """One graph, launched for each of the piles: what each launch leaves, and the waves that it counted."""
    stream = agt.create_stream()
    shapes = {"sand": (width, width), "where": 1, "unstable": 1, "waves": 1}
    arrays = [agt.zeros(shape, np.int32, name=name).sync() for name, shape in shapes.items()]
    sand, where, unstable, waves = arrays

    def op(name: str, *given: agt.DeviceArray, block: Any) -> agt.DeviceOp[Any]:
        kernel = agt.Kernel(cuda("11_pile"), name)
        return kernel(*[array.borrow() for array in given], grid=1, block=block)

    topple = partial(op, "topple", sand, unstable, waves, block=(width, width))
    graph = call(answer, partial(op, "drop", *arrays, block=1), topple, unstable, stream)
    complaint = "`avalanche` should return a CUDA graph, as `graph_on` does, and returned "
    must(isinstance(graph, agt.CudaGraph), complaint + brief(graph))
    complaint = "a grain fell before anybody launched the graph: capture it, "
    complaint += "and leave the launch to us"
    must(not agt.d2h(sand.borrow()).sync().any(), complaint)

    def launch(pile: CheckedArray, cell: int) -> list[CheckedArray]:
        for array, start in ((sand, pile), (where, np.full(1, cell, np.int32))):
            agt.memcpy(array.borrow(), agt.pin(start)).sync_on(stream)
        graph.launch().sync_on(stream)
        return [agt.d2h(array.borrow()).sync_on(stream) for array in (sand, waves)]

    return observe(lambda: [launch(*pile) for pile in _piles(width)])


def _lies_still(run: Observed, width: int) -> None:
    """Each launch of the graph has made as many waves as its own pile needs."""
    for number, (pile, found) in enumerate(zip(_piles(width), run.result, strict=True), 1):
        (sand, waves), (right, due) = found, _toppled(*pile)
        with case(f"launch {number} of the graph"):
            trials.counted("the sand went through", waves.item(), "wave", due)
            equal(sand, right)


# ------------------------------------------------------------------ the grid meets
# The last has more threads than are interpreted side by side: some begin when others have long waited.
MEETINGS = [(4, 64), (7, 32), (1, 96), (20, 1024)]
REAL = "the count has to be atomic, and the look, too, or volatile: {}"
OUT = "what a block wrote gets out by a barrier, a fence and the count, in this order: {}"
IN = "what others wrote gets into it by the last look, a fence and a barrier, in this order: {}"
_LOOKS = 500  # of one thread; right answers need 50 until others have come
NESTED = 45_000  # turns of loops whose ends others count, as 100 by 100 by 100 looks take


def check_meet(mine: Any, model: Any) -> None:
    """Each block waits for the others at each meeting, even for one that never comes."""
    cases(_meet, MEETINGS, "{} blocks of {} threads, and three meetings")(mine, model)
    cast(Any, agt.current_device()).step_budget = _LOOKS  # which ends a longer loop
    complaint = "a thread never leaves where the counter is past its `goal`, because "
    complaint += "others have counted for their "
    complaint += "next meeting before it looks: wait as long as the counter is below"
    must(_alone(mine, 5) is True, complaint)
    for goal in 2, 3_000_000_002:
        complaint = f"`goal` is {goal}, and the other block never comes: with the counter "
        complaint += f"at {goal - 1}, threads "
        complaint += "leave the meeting. Wait as long as it is below `goal`, and then end "
        complaint += "the kernel by `__trap()`"
        must(_alone(mine, goal - 2, goal) is not True, complaint)
    _gives_up(mine)


def check_again(mine: Any, model: Any) -> None:
    """Each block waits at one gate for the others, even for one that never comes."""
    cases(_again, GATES, "{0:block} of {1:thread}, and `gate[1]` at {2} before{3}")(mine, model)
    _between_fences(mine)
    cast(Any, agt.current_device()).step_budget = _LOOKS  # which ends a longer loop
    mine += "\n#define meet(gate, goal) meet(gate)\n"
    complaint = "a block never comes, and another leaves: end the kernel by `__trap()`"
    must(_alone(mine) is not True, complaint)
    _gives_up(mine)


def _between_fences(mine: str) -> None:
    """A block's look comes before its count, and its reset before the new generation, by a fence each.

    It comes alone. If it isn't the last, the others end the meeting at each fence before its count: as far
    as that fence goes, it may have counted by then.
    """
    files, left = ("11_gate_fences", "11_gate_alone"), np.zeros(1, np.uint32)
    for begun, complaint in UNORDERED.items():
        try:
            (apart,) = left_by("MEET_AGAIN", mine, files, (begun, left), (0,), 2, 1)
            must(not begun or apart[0] > 0, complaint)
        except Rejected as rejected:  # CUDA's own barrier of the grid needs no gate
            must(rejected.cause != complaint and "in this loop" not in rejected.cause, complaint)


def _gives_up(mine: str) -> None:
    """A thread ends the kernel when it has waited for long, and not before."""
    back = "#define __trap() return\n#define assert(fine) if (!(fine)) return\n" + mine
    complaint = "a block never comes, and another waits for ever, or for more than 100 "
    complaint += "million looks: give up "
    complaint += (
        "before that by `__trap()`. Each thread counts its looks in an `unsigned int` of its own"
    )
    cast(Any, agt.current_device()).step_budget = NESTED
    cast(Any, agt.current_device()).leap = 100_000_100  # looks
    end = str(_alone(back))
    must("waits for ever in this loop" not in end, complaint)
    complaint = "the check can't follow how `meet` counts its looks, nor say if that ends: count "
    must(
        "still running" not in end,
        complaint + "them one by one, in an `unsigned int` of each thread's own",
    )
    cast(Any, agt.current_device()).leap = 99_900  # looks; the first few are made
    early = _alone(back)
    complaint = "`meet` gives up after fewer than 100,000 looks, and a block may be later than that"
    must(early is not True and not isinstance(early, agt.errors.BarrierError), complaint)


def _alone(mine: str, arrived: int = 0, goal: int = 2) -> object:
    """True if threads of a block leave a meeting to which the other never comes; or an error."""
    args = goal, np.array([arrived, 0], np.uint32), np.zeros(32, np.int32)
    try:
        kernel = call(agt.Kernel, mine + cuda("11_stencil"), "alone")
        return bool(left_in((1,), kernel, args, grid=2, block=32)[0].any())
    except Rejected as rejected:  # of a wait for ever, or of a trap
        return rejected.__cause__


def _meet(mine: Any, _model: Any, blocks: int, threads: int) -> None:
    """Three meetings of all blocks. What is written before each, another block reads behind it."""
    x = np.ones(blocks * threads, np.float32)
    counts = np.zeros(1, np.uint32), np.zeros(blocks, np.uint32), np.zeros(1, np.int32)
    args, files = (x.size, x, 0 * x, *counts), ("", "11_stencil")
    with about("'arrived'", REAL), about("this thread has no", IN), about("the other block", OUT):
        arrived, early = left_by("MEET", mine, files, args, (2, 4), blocks, threads)
    complaint = f"each of {count(blocks, 'block')} should add one at each of three meetings"
    must(arrived[0] == 3 * blocks, f"the counter is at {arrived[0]} in the end: {complaint}")
    must(not early[0], "a thread left a meeting before the counter had reached its `goal`")


def _queue(mine: Any, _model: Any, jobs: int, blocks: int, begun: int, held_up: str) -> None:
    """Every job is done, and was taken from the counter; with more blocks than jobs, too."""
    kernel = as_kernel(mine, "QUEUE")
    if held_up == _LATE[-1]:
        with own_lines(mine, busy := cuda("11_busy")):
            kernel = call(agt.Kernel, busy + kernel.source, kernel.name)
    lengths = np.random.default_rng(jobs).integers(1, 300, jobs).astype(np.uint32)
    lengths[5::7] = 0
    right = np.full(jobs, results.UNWRITTEN)  # another launch has taken the first
    for job in range(begun, jobs):
        right[job] = (1 / np.arange(1, lengths[job] + 1, dtype=float) ** 2).sum()
    args = jobs, lengths, np.array([begun], np.uint32), np.full(jobs, results.UNWRITTEN, np.float32)
    with agt.microscope() as seen, about("in this loop", ENDLESS), about("'next'", DRAW):
        taken, found = left_in((1, 2), kernel, args, grid=blocks, block=32 if jobs == 7 else 64)
    equal(found, right.astype(np.float32))
    each = seen.kernels[0].counts.warp_instructions / jobs
    complaint = f"a job takes {each:,.0f} instructions, and 230 are enough: all threads of a block "
    complaint += "work on it"
    must(jobs < 300 or each < 1_000, complaint)
    complaint = f"the counter is at {taken[0]} in the end, with {jobs} jobs: each is to be taken "
    complaint += "from it once"
    must(jobs <= taken[0] <= jobs + blocks, complaint)


# ------------------------------------------------------------------ who is last, and a gate
EARLY = "a thread went on from a meeting, and can't rely on what others wrote before it: {}"
OVER = "a block waits for ever: its meeting is over, or its count was wiped out: {}"
BETWEEN = ": put a __threadfence() between the two"
# What may go wrong in a meeting that begins with these generations, if no fence orders two steps.
UNORDERED = {
    0: "no fence orders the look at the generation before the count, so a GPU may count first. Until it "
       "looks, the others may have ended the meeting, and then it waits for one that is over" + BETWEEN,
    7: "no fence orders setting the counter back before raising the generation, so others may see the new "
       "one first, come to the next meeting, and count. Then writing the 0 loses their count" + BETWEEN,
}  # fmt: skip
_SOON = "`last` said true to a thread that can't rely on what others wrote: {}"
_WAITS = "there is a place for one block at a time, and `last` waits for another: {}"
LASTS = [(4, 64, ""), (2, 32, ""), (7, 96, ""), (258, 2, ""), (3, 32, ", one by one"),
         (3, 32, ", one by one, from the last to the first")]  # fmt: skip
_SLOW = 2**32 - 2, ", and somebody held up in `meet`"
GATES = [(3, 64, 0, ""), (1, 32, 7, ""), (3, 32, 2**31 - 1, ""), (4, 32, *_SLOW), (258, 1, 0, "")]


def _last(mine: Any, _model: Any, blocks: int, threads: int, order: str) -> None:
    """In each of two launches, all of one block are told, and may rely on what everybody has written."""
    arrived, none = np.zeros(1, np.uint32), np.zeros(1, np.int32)
    files = "11_turned" if "from" in order else "", "11_last"
    if order:
        device = cast(Any, agt.current_device())
        device.spec = replace(device.spec, sms=1, blocks_per_sm=1)
    for launch in (1, 2):  # the second has a block less
        parts = np.zeros((blocks := blocks + 1 - launch) * threads, np.int32)
        begun = case(f"launch {launch}, {blocks} blocks")
        with begun, about("'parts'", _SOON), about("for ever", _WAITS):
            args = parts.size, parts, arrived, none
            arrived, told = left_by("LAST", mine, files, args, (1, 2), blocks, threads)
            why = "all of the block that came last, and nobody else"
            trials.counted("`last` said true to", int(told[0]), "thread", threads, why)


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
    complaint = f"`pagerank` should return an array of {n} ranks, and returned {brief(got)}"
    must(isinstance(run.result, np.ndarray) and got.shape == (n,), complaint)
    for page in range(n):
        mine, other = n * got[page], n * right[page]
        complaint = f"the rank of page {page} is {mine:.3f}/n, and {other:.3f}/n is right"
        must(abs(mine - other) < 0.01, complaint)  # nan is wrong, too
    numbers.by_kernels(got, *links)
    shares, sources = links[1] * n * got.astype(float), links[0].reshape(n, 8)
    moves = np.abs(0.15 + 0.85 * shares[sources].sum(axis=1) - n * got)
    page = int(moves.argmax())
    complaint = f"it ends too soon: another round would move page {page} by {moves[page]:.5f}/n"
    must(kind != LONE or moves[page] < 0.00105, complaint)
    rounds = sum(kernel.counts.flops for kernel in seen.kernels) // (16 * n)
    complaint = f"as much was computed as in about {rounds} rounds, and the first finds that no "
    must(
        (n, kind) != STILL or rounds < 20,
        complaint + "rank changes: end with the round in which nobody has moved",
    )
    return run


EXERCISES = (
    Exercise("11-ask-less", "Ask less often", "settle",
             runs(_settled, _ask_less, [(100.0, 4, 2), (2.0**120, 1, 120), (3.0, 3, 1), (2.0**120, 8, 15)],
                  "every={1}"), runs(_settled, _rounds, [(100.0, 4, 2)], "")),
    Exercise("11-flood", "Let the block decide", "FLOOD",
             cases(_flood, [(16, 1), (32, 2), (8, 3), (32, 0)], "a maze of {0} by {0}")),
    Exercise("11-meet", "A barrier for the grid", "MEET", check_meet,
             in_late_memory(_meet, 3, 32, turns=_LOOKS)),
    Exercise("11-queue", "Write the queue", "QUEUE",
             cases(_queue, QUEUES, "{0} jobs, {1:block} and a counter at {2}{3}")),
    Exercise("11-while", "Until the sand lies still", "avalanche",
             runs(_slid, _lies_still, [(7,), (16,)], "{0} by {0} cells"),
             runs(_slid, _lies_still, [(5,)], "")),
    Exercise("11-last", "Who is last?", "LAST",
             cases(_last, LASTS, "{0:block} of {1:thread}{2}"), in_late_memory(_last, 5, 32, "")),
    Exercise("11-again", "A barrier without a goal", "MEET_AGAIN", check_again,
             in_late_memory(_again, 3, 32, 0, "", turns=_LOOKS)),
    Exercise("11-challenge", "Challenge: who is important?", "pagerank",
             timed(_ranked, [(700, CHAIN), (1501, LONE), (600, ""), STILL, MANY], "{} pages{}", GOAL_US),
             in_late_memory(timed(_ranked, [(260, "")], ""))),
)  # fmt: skip
