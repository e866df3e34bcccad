"""Exercises of 14_gallery: what each one checks."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.results import (
    Array,
    as_kernel,
    brief,
    equal,
    is_number,
    left_in,
)
from asyncgpu_tutor.exercises.checks.schedule import a_kernel_ran, below, side_by_side, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, observe, tried

# A one from each thread, after a while, so that two launches can be seen to overlap.
THROW = r"""
extern "C" __global__ void throw_darts(unsigned int rounds, unsigned int* hits)
{
    float x = 1.0f;
    for (unsigned int i = 0; i < rounds; i++) x = 0.5f * x + 1.0f;
    hits[threadIdx.x] = x > 0.0f;
}
"""
# The fall of a small galaxy: one step of all bodies, from one pair of arrays to another.
STEP = r"""
extern "C" __global__ void fall(
    unsigned int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = at[2 * i], y = at[2 * i + 1], fx = 0.0f, fy = 0.0f;
    for (unsigned int j = 0; j < n; j++) {
        float dx = at[2 * j] - x, dy = at[2 * j + 1] - y;
        float r2 = dx * dx + dy * dy + 0.01f;
        float pull = 1.0f / (n * r2 * sqrtf(r2));
        fx += pull * dx;
        fy += pull * dy;
    }
    float u = speed[2 * i] + 0.01f * fx, v = speed[2 * i + 1] + 0.01f * fy;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.01f * u;
    at_next[2 * i + 1] = y + 0.01f * v;
}
"""
GOAL_US = 300


# ------------------------------------------------------------------ darts
def _counted(answer: Any, threads: list[int]) -> Observed[Any]:
    """The sum that the answer finds, for players who hit as often as they have threads."""
    throw = agt.Kernel(THROW)
    players = [
        agt.zeros(n, np.uint32).and_then(
            lambda hits, n=n: throw(6000, hits, grid=1, block=n).output()
        )
        for n in threads
    ]
    return observe(answer, players)


def check_darts(mine: Any, model: Any) -> None:
    """All hits are counted; the players play side by side, and Python waits once."""
    for threads in ([32, 64, 1, 7], [100], [5, 5, 5, 5, 5, 5]):
        words = count(len(threads), "player")
        with tried(_counted, mine, model, threads, words=words) as run:
            if not is_number(run.result, whole=True) or run.result != sum(threads):
                raise Rejected(
                    f"`total` should return {sum(threads)}, and returned {brief(run.result)}"
                )
            waits(run.trace, 1, "make one operation of all players, and run that")
            if len(threads) > 1:
                side_by_side(run.trace, "`agt.overlap` deals them out to several streams")


# ------------------------------------------------------------------ grep
def _found(kernel: agt.Kernel, text: bytes, letter: int) -> tuple[Array, int]:
    """The places that the kernel writes, and its counter."""
    places, counter = np.full(len(text), -1, np.int32), np.zeros(1, np.int32)
    args = (len(text), np.frombuffer(text, np.uint8), letter, places, counter)
    places, total = left_in((1, 2), kernel, args, grid=-(-len(text) // 64), block=64)
    return places, int(total[0])


def check_grep(mine: Any, _model: Any) -> None:
    """Each place of the letter is there once, in order within a warp, with one atomic for a warp."""
    grep = as_kernel(mine, "GREP")
    for text in (b"banana", b"a" * 40, b"xyz" * 30, b"a man a plan a canal panama " * 8):
        right = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("a"))
        warps = len({place // 32 for place in right})
        with case(f"a text of {len(text)} letters"):
            with agt.microscope() as seen:
                places, total = _found(grep, text, ord("a"))
            if total != len(right):
                raise Rejected(f"the counter is at {total}, and {len(right)} is right")
            equal(np.sort(places[:total]), right.astype(np.int32))
            for warp in range(-(-len(text) // 32)):
                here = [int(place) for place in places[:total] if place // 32 == warp]
                if here != sorted(here):
                    raise Rejected(
                        f"warp {warp} wrote its places as {here}: a lane's rank is the number of votes "
                        "*below* it, so they stay in order"
                    )
            made = sum(run.counts.atomics for kernel in seen.kernels for run in kernel.launches)
            if made > warps:
                raise Rejected(
                    f"{count(made, 'atomic')} for {count(warps, 'warp')} with a match: one lane asks for "
                    "all, and tells the others by `__shfl_sync`; a warp without a match need not ask"
                )


# ------------------------------------------------------------------ the challenge
def _galaxy(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    at = rng.normal(0, 1, (n, 2)).astype(np.float32)
    return at, (at[:, ::-1] * [-0.3, 0.3]).astype(np.float32)


def _fallen(at: Array, speed: Array, steps: int) -> Array:
    """Where the bodies are, in double precision."""
    at, speed = at.astype(float), speed.astype(float)
    for _ in range(steps):
        d = at[None] - at[:, None]
        r2 = (d * d).sum(-1) + 0.01
        speed = speed + 0.01 * (d / (len(at) * r2 * np.sqrt(r2))[..., None]).sum(1)
        at = at + 0.01 * speed
    return at


def _flown(answer: Any, at: Array, speed: Array, steps: int) -> Observed[Any]:
    given = [agt.h2d(agt.pin(part.ravel())).sync() for part in (at, speed)]
    return observe(answer, agt.Kernel(STEP), *given, steps)


def check_challenge(mine: Any, model: Any) -> float:
    """The bodies are where they belong after an odd or even number of steps; returns the time in us."""
    took = 0.0
    for n, steps in ((41, 3), (64, 40)):
        at, speed = _galaxy(n)
        words = f"{n} bodies and {steps} steps"
        with tried(_flown, mine, model, at, speed, steps, words=words) as run:
            a_kernel_ran(run.trace)
            equal(run.result, _fallen(at, speed, steps).ravel())
            if steps == 40:
                took = below(GOAL_US, run.trace)
    return took


EXERCISES = (
    Exercise("14-darts", "Ask for all, wait once", "total", check_darts),
    Exercise("14-grep", "One atomic for a warp", "GREP", check_grep),
    Exercise("14-challenge", "Challenge: forty steps", "fly", check_challenge),
)
