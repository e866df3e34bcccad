"""Exercises of 21b_meet_in_phases: what each one checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.device_code import own_lines, stays
from asyncgpu_course.checks.operations import whole_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, equal, looked_at
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.exercises.exercise import Exercise

_MANY = 37  # turns: more than anybody would write down
# Two warps that take themselves for the third and the first.
_TWO_AND_ZERO = """__device__ uint3 turned(uint3 of) { of.x = (of.x + 64) % 96; return of; }
#define threadIdx turned(threadIdx)
"""


def check_meanwhile(mine: Any, _model: Any) -> None:
    """Right, with a barrier at which a thread arrives before it computes and waits after that."""
    kernel = as_kernel(mine, "meanwhile")
    x = whole_numbers(1, 64)
    own = x.copy()
    for _ in range(20):
        own = own * np.float32(0.5) + np.float32(1)
    got, report = looked_at(kernel, [x], (64,), grid=1, block=64)
    equal(got, own + x[::-1])
    code = _without_comments(kernel.source)
    begin = code.find("__global__")
    arrive, compute = code.find(".arrive(", begin), code.find("own(", begin)
    waits = re.search(r"\.(try_)?wait(_parity)?\(", code[max(compute, 0) :])
    must(arrive > 0, "nobody arrives anywhere: take a `barrier`, call `arrive()`, and later `wait`")
    complaint = "call `arrive()` before `own`, "
    must(arrive < compute and waits is not None, complaint + "and `wait` behind it")
    _met_once(report.counts.barriers - 1)  # besides the phase


def _without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)


def _met_once(times: int) -> None:
    cause = f"the block meets {times} times at a `__syncthreads()`, and once, behind `init`, "
    cause += "is enough"
    must(times <= 1, cause)


def check_handover(mine: Any, _model: Any) -> None:
    """Each packet goes through shared memory once, whoever is faster, and nobody meets everybody."""
    kernel = as_kernel(mine, "handover")
    seen: dict[int, Any] = {}
    for turns in (5, 1, 2, 8, 0, _MANY):
        x = whole_numbers(turns, turns * 32 or 32)
        right = x[: turns * 32].reshape(turns, 32).sum(0)[::-1].astype(np.float32)
        with case(f"turns={turns}"):
            got, report = looked_at(kernel, [turns, x], (32,), grid=1, block=64)
            equal(got, np.ascontiguousarray(right))
            seen[turns] = report.counts
    _met_once(_without_comments(kernel.source).count("__syncthreads"))
    _passes_through(seen[_MANY], _MANY, 2 * _MANY)
    # Phases count as barriers, and each turn has one of `full` and one of `empty`.
    more = seen[_MANY].barriers - seen[0].barriers - 2 * _MANY
    complaint = (
        f"with {_MANY} turns, there are {more} phases or meetings of the block too many: in a "
    )
    must(more <= 0, complaint + "turn, one phase of `full` and one of `empty` are enough")
    with case("only warp 0, with nobody who takes"):
        alone = stays(lambda: looked_at(kernel, [5, x], (32,), grid=1, block=32))
        must(alone, "it brings 5 packets to two places: it should wait until a place is empty")


def _passes_through(counts: Any, packets: int, least: int) -> None:
    complaint = f"the warps read x {counts.global_load_requests} times, and {packets} are enough: who takes "
    must(counts.global_load_requests <= packets, complaint + "should read shared memory instead")
    complaint = (
        f"the warps use shared memory {counts.shared_requests} times, and at least {least} are "
    )
    complaint += "needed: who brings writes each packet there, and who takes reads it"
    must(counts.shared_requests >= least, complaint)


def check_bring(mine: Any, _model: Any) -> None:
    """The three parts are added, the block meets once, and nobody who brings waits."""
    kernel = as_kernel(mine, "bring")
    for seed in (1, 2):
        x = whole_numbers(seed, 96)
        got, report = looked_at(kernel, [x], (32,), grid=1, block=128)
        equal(got, x.reshape(3, 32).sum(0).astype(np.float32))
    code = _without_comments(kernel.source)
    _met_once(code.count("__syncthreads"))
    both = all(word in code for word in (".arrive", "wait"))
    must(both, "those who bring should `arrive` at `full`, and the one who takes should wait there")
    _met_once(report.counts.barriers - 1)  # besides the phase
    _passes_through(report.counts, 3, 6)
    with case("only the first two warps, who bring and have nobody to wait for"):
        looked_at(kernel, [x], (32,), grid=1, block=64)
    with (
        case("only warps 2 and 0, who bring and have nobody to wait for"),
        own_lines(kernel.source, _TWO_AND_ZERO),
    ):
        turned = call(agt.Kernel, _TWO_AND_ZERO + kernel.source, kernel.name)
        looked_at(turned, [x], (32,), grid=1, block=64)


CHAPTER_21B = (
    Exercise("21b-meanwhile", "Meanwhile", "meanwhile", check_meanwhile),
    Exercise("21b-bring", "Three bring, one takes", "bring", check_bring),
    Exercise("21b-handover", "Hand over", "handover", check_handover),
)
