"""Exercises of 11b_without_a_barrier: what each one checks."""

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import results, schedule, trials
from asyncgpu_course.checks.device_code import left_by, own_lines
from asyncgpu_course.checks.operations import cuda
from asyncgpu_course.checks.rejection import about, case, must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, brief, equal, left_in
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import cases, in_late_memory, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

_LATE = 200, 3, 0, ", where block 0 comes late"
QUEUES = [(20, 3, 0, ""), (7, 7, 0, ", in blocks of 32 threads"), (2, 5, 0, ""), (20, 3, 4, ""),
          (300, 9, 0, ""), (70_016, 3, 70_000, ""), _LATE]  # fmt: skip
ENDLESS = "a thread never hears that all jobs are taken (a shuffle tells no warp but its own): {}"
DRAW = "each block draws its job from the counter by one `atomicAdd`: {}"
_SOON = "`last` said true to a thread that can't rely on what others wrote: {}"
_WAITS = "there is a place for one block at a time, and `last` waits for another: {}"
LASTS = [(4, 64, ""), (2, 32, ""), (7, 96, ""), (258, 2, ""), (3, 32, ", one by one"),
         (3, 32, ", one by one, from the last to the first")]  # fmt: skip


# ------------------------------------------------------------------ fewer questions
def _settled(answer: Any, start: float, every: int, _looks: int) -> Observed:
    """The rounds until a number that is halved in each is not above one."""
    halve, x = agt.Kernel(cuda("11b_halve")), agt.full(1, start).sync()

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
    cause = f"{count(rounds, 'round')} and {count(copies, 'look')} at a flag, "
    must(copies == looks, cause + f"and {count(looks, 'look')} would be right")
    schedule.launches(run.trace, "halve", every * looks)
    schedule.waits(run.trace, looks, "a round whose flag nobody reads need not be waited for")
    _rounds(run, _start, every, looks)


def _rounds(run: Observed, _start: float, every: int, looks: int) -> None:
    got, right = run.result, every * looks
    cause = f"`settle` should return how many rounds were run, {right}, and returned "
    must(results.is_number(got, whole=True) and got == right, cause + brief(got))


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
        kernel = agt.Kernel(cuda("11b_pile"), name)
        return kernel(*[array.borrow() for array in given], grid=1, block=block)

    topple = partial(op, "topple", sand, unstable, waves, block=(width, width))
    graph = call(answer, partial(op, "drop", *arrays, block=1), topple, unstable, stream)
    results.a_graph("avalanche", graph, stream)
    cause = "a grain fell before anybody launched the graph: capture it, and leave the launch to us"
    must(not agt.d2h(sand.borrow()).sync().any(), cause)

    def fall(pile: CheckedArray, cell: int) -> list[CheckedArray]:
        for array, start in ((sand, pile), (where, np.full(1, cell, np.int32))):
            agt.memcpy(array.borrow(), agt.pin(start)).sync_on(stream)
        graph.launch().sync_on(stream)
        return [agt.d2h(array.borrow()).sync_on(stream) for array in (sand, waves)]

    return observe(lambda: [fall(*pile) for pile in _piles(width)])


def _lies_still(run: Observed, width: int) -> None:
    """Each launch of the graph has made as many waves as its own pile needs."""
    for number, (pile, found) in enumerate(zip(_piles(width), run.result, strict=True), 1):
        (sand, waves), (right, due) = found, _toppled(*pile)
        with case(f"launch {number} of the graph"):
            trials.counted("the sand went through", waves.item(), "wave", due)
            equal(sand, right)


# ------------------------------------------------------------------ a kernel that stays
def _queue(mine: Any, _model: Any, jobs: int, blocks: int, begun: int, held_up: str) -> None:
    """Every job is done, and was taken from the counter; with more blocks than jobs, too."""
    kernel = as_kernel(mine, "QUEUE")
    if held_up == _LATE[-1]:
        with own_lines(mine, busy := cuda("11b_busy")):
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
    cause = f"a job takes {each:,.0f} instructions, and 230 are enough: all threads of a block work on it"
    must(jobs < 300 or each < 1_000, cause)
    cause = f"the counter is at {taken[0]} in the end, with {jobs} jobs: each is to be taken from it once"
    must(jobs <= taken[0] <= jobs + blocks, cause)


# ------------------------------------------------------------------ who is last
def _last(mine: Any, _model: Any, blocks: int, threads: int, order: str) -> None:
    """In each of two launches, all of one block are told, and may rely on what everybody has written."""
    arrived, none = np.zeros(1, np.uint32), np.zeros(1, np.int32)
    files = "11b_turned" if "from" in order else "", "11b_last"
    if order:
        device = cast(Any, agt.current_device())
        device.spec = replace(device.spec, sms=1, blocks_per_sm=1)
    for launch in (1, 2):  # the second has a block less
        parts = np.zeros((blocks := blocks + 1 - launch) * threads, np.int32)
        begun = case(f"launch {launch}, {blocks} blocks")
        with begun, about("'parts'", _SOON), about("forever", _WAITS):
            args = parts.size, parts, arrived, none
            arrived, told = left_by("LAST", mine, files, args, (1, 2), blocks, threads)
            why = "all of the block that came last, and nobody else"
            trials.counted("`last` said true to", int(told[0]), "thread", threads, why)


CHAPTER_11B = (
    Exercise("11b-ask-less", "Ask less often", "settle",
             runs(_settled, _ask_less, [(100.0, 4, 2), (2.0**120, 1, 120), (3.0, 3, 1), (2.0**120, 8, 15)],
                  "every={1}"), runs(_settled, _rounds, [(100.0, 4, 2)], "")),
    Exercise("11b-while", "Until the sand lies still", "avalanche",
             runs(_slid, _lies_still, [(7,), (16,)], "{0} by {0} cells"),
             runs(_slid, _lies_still, [(5,)], "")),
    Exercise("11b-queue", "Write the queue", "QUEUE",
             cases(_queue, QUEUES, "{0} jobs, {1:block} and a counter at {2}{3}")),
    Exercise("11b-last", "Who is last?", "LAST",
             cases(_last, LASTS, "{0:block} of {1:thread}{2}"), in_late_memory(_last, 5, 32, "")),
)  # fmt: skip
