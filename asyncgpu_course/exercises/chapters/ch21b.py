"""Exercises of 21b_meet_in_phases: what each one checks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asyncgpu_course.checks.code_steps import steps
from asyncgpu_course.checks.operations import WARP, exact_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import accesses_of, as_kernel, report_on
from asyncgpu_course.exercises.chapters.ch21 import summed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import Watched, count

_MANY = 37  # turns: more than anybody would write down
_WORD = 8  # bytes of a barrier
_PACKET = 4 * WARP  # bytes
_OWN = 60  # clocks: `own` takes 160, and 80 by fused multiply-adds
_FLOPS = 64 * (2 * 20 + 1)  # of 64 threads, with an `own` each


def check_meanwhile(mine: Any, _model: Any) -> None:
    """Right, with a barrier at which a thread arrives before it computes and waits after that."""
    kernel = as_kernel(mine, "meanwhile")
    x = exact_numbers(1, 64)
    own = x.copy()
    for _ in range(20):
        own = own * np.float32(0.5) + np.float32(1)
    report = report_on(kernel, [x], own + x[::-1], grid=1, block=64)
    run, given = accesses_of(kernel, [x], (64,), (64, 1, 1))
    looks = [at for at in run.steps if at.atomic and run.sizes[at.array] == _WORD]
    cause = "nobody arrives anywhere: take a `barrier`, call `arrive()`, and later `wait`"
    must(any(at.write for at in looks), cause)
    came = dict[int, int]()  # the clocks of a warp that hasn't waited yet, when it arrived
    for at in looks:
        for warp, now in zip((at.threads // WARP).tolist(), at.clocks.tolist(), strict=True):
            busy = _OWN if at.write else now - came.pop(warp, now - _OWN)
            cause = f"warp {warp} waits (line {at.line} of the kernel) {busy} clocks after its `arrive()`, "
            cause += "before its own work is done: call `arrive()` before `own`, and wait behind it"
            must(busy >= _OWN, cause)
            if at.write:
                came[warp] = now
    cause = f"the threads add and multiply {report.flops} times, and {_FLOPS} times are enough: "
    must(report.flops < 1.5 * _FLOPS, cause + "compute `own` once, between `arrive` and the wait")
    _met_once(report.counts.barriers - 1)  # besides the phase
    _passes_through(run, given, 6, 4)


def _met_once(times: int) -> None:
    cause = f"the block meets {times} times at a `__syncthreads()`, and once, behind `init`, "
    must(times <= 1, cause + "is enough")


def check_handover(mine: Any, _model: Any) -> None:
    """Each packet goes through one of two places, as soon as it is empty, and nobody meets everybody."""
    kernel = as_kernel(mine, "handover")
    seen: dict[int, Any] = {}
    for turns in (5, 1, 2, 8, 0, _MANY):
        with case(f"turns={turns}"):
            seen[turns] = summed(kernel, turns, 32, block=64).counts
    _met_once([step.name for step in steps(kernel.source, kernel.name)].count("__syncthreads"))
    room = seen[_MANY].shared_bytes
    cause = f"the block takes {room} bytes of shared memory, and two places with their four barriers take "
    must(room < 3 * _PACKET, cause + "288: use no more places")
    # Phases count as barriers, and each turn has one of `full` and one of `empty`.
    more = seen[_MANY].barriers - seen[0].barriers - 2 * _MANY
    cause = f"with {_MANY} turns, there are {more} phases or meetings of the block too many: "
    must(more <= 0, cause + "in a turn, one phase of `full` and one of `empty` are enough")
    run, given = accesses_of(kernel, [5, exact_numbers(5, 160)], (32,), (64, 1, 1))
    _passes_through(run, given, 5, 10)
    places = [s for s in run.steps if s.array not in given and run.sizes[s.array] != _WORD]
    filled = [(1 if s.write else -1) * len(s.threads) * s.size for s in places]
    most = int(np.cumsum(filled).max()) // _PACKET
    cause = f"warp 0 is never more than {count(most, 'packet')} ahead of warp 1, and two places "
    must(most > 1, cause + "are room for two: wait only for the place that the next one goes to")
    _waits_for_that_place([s for s in run.steps if s.array not in given], run.sizes)


def _waits_for_that_place(steps: Sequence[Any], sizes: Mapping[str, int]) -> None:
    """Who waits before it uses a place waits where others arrive who have used that one."""
    last = dict[int, tuple[str, int]]()  # the place that a thread has used
    # Before somebody arrived at a barrier.
    used = defaultdict[tuple[str, int], set[tuple[str, int]]](set)
    passed = defaultdict[int, list[tuple[str, int]]](list)  # barriers, since it used a place
    found = list[tuple[int, tuple[str, int], tuple[str, int], int]]()
    for step in steps:
        who, first = int(step.threads.min()), int(step.elements.min())
        if sizes[step.array] != _WORD:
            last[who] = step.array, first // 32
            found += [(who, barrier, last[who], step.line) for barrier in passed.pop(who, [])]
        elif not step.write:
            passed[who].append((step.array, first))
        elif who in last:
            used[step.array, first].add(last[who])
    for who, (name, number), place, line in found:
        cause = f"warp {who // 32} waits at `{name}[{number}]` before it uses a place (line {line} of the "
        cause += "kernel) that this barrier isn't about: wait only for the place that comes next"
        must(place in used[name, number] or not used[name, number], cause)


def _passes_through(run: Watched, given: Sequence[str], most: int, least: int) -> None:
    """So many packets are loaded at most, and so many put into shared memory or taken out at least."""
    loaded, passed = 0, 0
    for at in run.steps:
        moved = len(at.threads) * at.size
        loaded += moved * (at.array in given[:-1])
        passed += moved * (at.array not in given and run.sizes[at.array] != _WORD)
    cause = f"the warps read {loaded // 4} numbers of x, and {most * WARP} are enough: "
    must(loaded <= most * _PACKET, cause + "who takes should read shared memory instead")
    cause = f"{passed // 4} numbers are written to shared memory or read there, and {least * WARP} "
    cause += "at least are needed: who brings writes each packet there, and who takes reads it"
    must(passed >= least * _PACKET, cause)


def check_bring(mine: Any, _model: Any) -> None:
    """The three parts are added, the block meets once, and nobody who brings waits."""
    kernel = as_kernel(mine, "bring")
    for seed in (1, 2):
        x = exact_numbers(seed, 96)
        right = x.reshape(3, 32).sum(0).astype(np.float32)
        report = report_on(kernel, [x], right, grid=1, block=128)
    calls = [step.name for step in steps(kernel.source, kernel.name)]
    _met_once(calls.count("__syncthreads"))
    both = all(any(word in name for name in calls) for word in ("arrive", "wait"))
    must(both, "those who bring should `arrive` at `full`, and the one who takes should wait there")
    _met_once(report.counts.barriers - 1)  # besides the phase
    run, given = accesses_of(kernel, [x], (32,), (128, 1, 1))
    _passes_through(run, given, 3, 6)
    for step in run.steps:
        if step.write and step.array not in given and run.sizes[step.array] != _WORD:
            cause = f"`{step.array}` is written (line {step.line} of the kernel) before the block meets, so "
            cause += "all wait for those who bring: bring behind the `__syncthreads()`"
            must(step.met > 0, cause)
        if run.sizes[step.array] == _WORD and not step.write:
            who = step.threads.min()
            cause = f"thread {who}, which brings, waits at `{step.array}` (line {step.line} of the kernel): "
            must(who >= 96, cause + "it has nobody to wait for, so let it arrive and go on")


CHAPTER_21B = (
    Exercise("21b-meanwhile", "Meanwhile", "meanwhile", check_meanwhile),
    Exercise("21b-bring", "Three bring, one takes", "bring", check_bring),
    Exercise("21b-handover", "Hand over", "handover", check_handover),
)
