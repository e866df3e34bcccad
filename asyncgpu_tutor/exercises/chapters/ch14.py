"""Exercises of 14_gallery: what each one checks."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.chapters.ch14_rooms import MIX, QUEUE, SEARCH
from asyncgpu_tutor.exercises.checks import schedule
from asyncgpu_tutor.exercises.checks.device_code import all_lanes
from asyncgpu_tutor.exercises.checks.operations import cuda
from asyncgpu_tutor.exercises.checks.results import Array, as_kernel, equal, left_in
from asyncgpu_tutor.exercises.checks.trials import cases, runs
from asyncgpu_tutor.exercises.device import moved
from asyncgpu_tutor.exercises.exercise import Exercise, must
from asyncgpu_tutor.exercises.internals import count, cuda_source
from asyncgpu_tutor.exercises.sandbox import Observed, observe

# The fall of a small galaxy: one step of all stars, from one pair of arrays to another.
STEP = cuda("14_step")
GOAL_US = 200  # below what one block takes in which each thread divides for each pull


# ------------------------------------------------------------------ grep
def _grep(mine: Any, _model: Any, text: bytes, letter: str, block: int = 64) -> None:
    """Each place of the letter is there once, in order within a warp, with one atomic for a warp."""
    letters = np.frombuffer(text, np.uint8)
    right = np.flatnonzero(letters == ord(letter)).astype(np.int32)
    empty, counter = np.full(len(text), -1, np.int32), np.zeros(1, np.int32)
    args = (len(text), letters, ord(letter), empty, counter)
    kernel = as_kernel(mine, "GREP")
    all_lanes(cuda_source.steps(kernel.source, kernel.name))
    with agt.microscope() as seen:
        grid = -(-len(text) // block)
        places, total = left_in((1, 2), kernel, args, grid=grid, block=block)
    due = f"the counter is at {total[0]}, and {len(right)} is right"
    must(total[0] == len(right), due)
    places = places[: len(right)]
    equal(np.sort(places), right)
    for warp in range(-(-len(text) // 32)):
        here = places[places // 32 == warp].tolist()
        due = f"warp {warp} wrote its places as {here}: a lane's rank is the number of votes *below* it, "
        must(here == sorted(here), due + "so they stay in order")
    made = sum(run.counts.atomics for kernel in seen.kernels for run in kernel.launches)
    warps = len(set((right // 32).tolist()))
    due = f"{count(made, 'atomic')} for {count(warps, 'warp')} with a match: one lane asks for all, and tells"
    must(made <= warps, f"{due} the others by `__shfl_sync`; a warp without a match need not ask")


# ------------------------------------------------------------------ the challenge
def _galaxy(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    at = rng.normal(0, 1, (n, 2)).astype(np.float32)
    return at, (at[:, ::-1] * [-0.3, 0.3]).astype(np.float32)


def _fallen(at: Array, speed: Array, steps: int) -> Array:
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
        run = observe(answer, agt.Kernel(STEP), *given, steps)
    equal(run.result, _fallen(*_galaxy(n), steps).ravel())
    numbers.by_kernels(run.result, *_galaxy(n))
    return run


def _fell(run: Observed, stars: int, _steps: int) -> float:
    due = "Most of it is in the kernel by now: what does a thread compute for each of 64 pulls?"
    return schedule.below(
        GOAL_US if stars == 64 else 1e6,
        run.trace,
        due * (run.trace.metrics().makespan < 3 * GOAL_US),
    )


TEXTS = [(b"banana", "a"), (b"a" * 40, "a"), (b"xyz" * 30, "a"), (b"-" * 31 + b"a", "a"),
         (b"a man a plan a canal panama " * 8, "n"),
         (b"a man a plan a canal panama " * 12, "p", 256)]  # fmt: skip
EXERCISES = (
    Exercise("14-grep", "One atomic for a warp", "GREP", cases(_grep, TEXTS, "a text of {:letter}")),
    MIX, SEARCH,
    Exercise("14-challenge", "Challenge: forty steps", "fly",
             runs(_flown, _fell, [(41, 3), (9, 130), (64, 40)], "{} stars and {} steps")),
    QUEUE,
)  # fmt: skip
