"""Exercises of 21b_meet_in_phases: what each one checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asyncgpu_course.checks.code_steps import steps
from asyncgpu_course.checks.operations import exact_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import accesses_of, as_kernel, report_on
from asyncgpu_course.exercises.chapters.ch21 import summed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

_MANY = 37  # turns: more than anybody would write down
_WORD = 8  # bytes of a barrier


def check_meanwhile(mine: Any, _model: Any) -> None:
    """Right, with a barrier at which a thread arrives before it computes and waits after that."""
    kernel = as_kernel(mine, "meanwhile")
    x = exact_numbers(1, 64)
    own = x.copy()
    for _ in range(20):
        own = own * np.float32(0.5) + np.float32(1)
    report = report_on(kernel, [x], own + x[::-1], grid=1, block=64)
    calls = [step.name for step in steps(kernel.source, kernel.name)]
    cause = "nobody arrives anywhere: take a `barrier`, call `arrive()`, and later `wait`"
    must("arrive" in calls, cause)
    order = [name for name in calls if name in ("arrive", "own") or "wait" in name]
    right = "arrive_and_wait" not in order and order[0] == "arrive" and "wait" in order[-1]
    must(right and "own" in order, "call `arrive()` before `own`, and `wait` behind it")
    _met_once(report.counts.barriers - 1)  # besides the phase
    _passes_through(report.counts, 6, 4)


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
    _passes_through(seen[_MANY], _MANY, 2 * _MANY)
    # Phases count as barriers, and each turn has one of `full` and one of `empty`.
    more = seen[_MANY].barriers - seen[0].barriers - 2 * _MANY
    cause = f"with {_MANY} turns, there are {more} phases or meetings of the block too many: "
    must(more <= 0, cause + "in a turn, one phase of `full` and one of `empty` are enough")
    run, given = accesses_of(kernel, [5, exact_numbers(5, 160)], (32,), (64, 1, 1))
    places = [s for s in run.steps if s.array not in given and run.sizes[s.array] != _WORD]
    filled = [(1 if s.write else -1) * len(s.threads) for s in places]
    most = int(np.cumsum(filled).max()) // 32
    cause = f"warp 0 is never more than {count(most, 'packet')} ahead of warp 1, and two places "
    must(most > 1, cause + "are room for two: wait only for the place that the next one goes to")
    _waits_for_that_place([s for s in run.steps if s.array not in given], run.sizes)


def _waits_for_that_place(steps: Sequence[Any], sizes: Mapping[str, int]) -> None:
    """Who waits before it uses a place waits where others arrive who have used that one."""
    last = dict[int, tuple[str, int]]()  # the place that a thread has used
    used = defaultdict[tuple[str, int], set[tuple[str, int]]](
        set
    )  # before somebody arrived at a barrier
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


def _passes_through(counts: Any, packets: int, least: int) -> None:
    loads, uses = counts.global_load_requests, counts.shared_requests
    cause = f"the warps read x {loads} times, and {packets} are enough: "
    must(loads <= packets, cause + "who takes should read shared memory instead")
    cause = f"the warps use shared memory {uses} times, and at least {least} are needed: "
    must(uses >= least, cause + "who brings writes each packet there, and who takes reads it")


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
    _passes_through(report.counts, 3, 6)
    run, _ = accesses_of(kernel, [x], (32,), (128, 1, 1))
    for step in run.steps:
        if run.sizes[step.array] == _WORD and not step.write:
            who = step.threads.min()
            cause = f"thread {who}, which brings, waits at `{step.array}` (line {step.line} of the kernel): "
            must(who >= 96, cause + "it has nobody to wait for, so let it arrive and go on")


CHAPTER_21B = (
    Exercise("21b-meanwhile", "Meanwhile", "meanwhile", check_meanwhile),
    Exercise("21b-bring", "Three bring, one takes", "bring", check_bring),
    Exercise("21b-handover", "Hand over", "handover", check_handover),
)
