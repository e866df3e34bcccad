"""Exercises of 21b_meet_in_phases: what each one checks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from asyncgpu_course.checks.operations import whole_numbers
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import as_kernel, equal, looked_at
from asyncgpu_course.exercises.exercise import Exercise


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
    """Each packet is added once, whoever is faster, and nobody meets everybody."""
    kernel = as_kernel(mine, "handover")
    for turns in (5, 1, 2, 8, 0):
        x = whole_numbers(turns, turns * 32 or 32)
        right = x[: turns * 32].reshape(turns, 32).sum(0)[::-1].astype(np.float32)
        with case(f"turns={turns}"):
            got, report = looked_at(kernel, [turns, x], (32,), grid=1, block=64)
            equal(got, np.ascontiguousarray(right))
    _met_once(report.counts.barriers)


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
    with case("only the first two warps, who bring and have nobody to wait for"):
        looked_at(kernel, [x], (32,), grid=1, block=64)


CHAPTER_21B = (
    Exercise("21b-meanwhile", "Meanwhile", "meanwhile", check_meanwhile),
    Exercise("21b-bring", "Three bring, one takes", "bring", check_bring),
    Exercise("21b-handover", "Hand over", "handover", check_handover),
)
