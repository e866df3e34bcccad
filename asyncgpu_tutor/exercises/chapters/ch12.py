"""Exercises of 12_async_inside_a_kernel: what each one checks.

Answers are pieces of device code. Each is put between what the chapter has defined already and a kernel that
tries it, and what the kernel wrote down is held against what asyncio would do.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.device_code import (
    Fence,
    own_lines,
    tried_and_fenced,
    without_comments,
)
from asyncgpu_tutor.exercises.checks.results import Array, brief, left_in
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import call

GIVEN = r"""
enum Poll { PENDING, READY };
struct Timer {
    int left;
    __device__ Poll poll() { if (left == 0) return READY; left--; return PENDING; }
};
// A timer that notes how often it was polled, and how often after it had said READY.
struct Probe {
    int left, polls, late;
    __device__ Poll poll() {
        polls++;
        if (left < 0) late++;
        left--;
        return left < 0 ? READY : PENDING;
    }
};
__device__ Poll take(unsigned int* mail, unsigned int& message) {
    if (atomicCAS(&mail[0], 1u, 2u) != 1) return PENDING;
    __threadfence();
    message = mail[1];
    __threadfence();
    atomicExch(&mail[0], 0u);
    return READY;
}
"""
MOST = 200  # polls


def _tried(
    name: str, mine: Any, kernel: str, *arrays: Array, grid: int = 1, block: int = 1
) -> Array:
    """What a kernel `trial` leaves in its last array, with the answer in front of it."""
    if not isinstance(mine, str):
        raise Rejected(f"`{name}` should be the text of device code, and is {brief(mine)}")
    with own_lines(mine, GIVEN, kernel):
        trial = call(agt.Kernel, GIVEN + mine + kernel, "trial")
        (last,) = left_in((-1,), trial, arrays, grid=grid, block=block)
    return last


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


# ------------------------------------------------------------------ a state machine
POT = r"""
extern "C" __global__ void trial(const int* p, int* out) {
    Pot pot = {{p[0]}, p[1], p[2], 0, {0}};
    while (out[0] < 200 && pot.poll() == PENDING) { out[0] = out[0] + 1; }
}
"""


def check_pot(mine: Any, _model: Any) -> None:
    """It is pending for as long as boiling and all cups take, and not for longer."""
    for boil, cups, pour in ((3, 4, 2), (0, 1, 5), (2, 0, 3), (1, 3, 0)):
        (pending,) = _tried("POT", mine, POT, _ints(boil, cups, pour), _ints(0))
        right = boil + cups * pour
        with case(f"boil={boil}, cups={cups} and pour={pour}"):
            if pending >= MOST:
                raise Rejected(
                    f"the pot is still pending after {MOST} polls, and {right} are right"
                )
            if pending != right:
                raise Rejected(
                    f"the pot is pending for {count(int(pending), 'poll')}, and {right} is right"
                )


# ------------------------------------------------------------------ an executor
RUN_ALL = r"""
extern "C" __global__ void trial(const int* left, int* out) {
    const int n = COUNT;
    Probe probes[n];
    for (int k = 0; k < n; k++) probes[k] = {left[k], 0, 0};
    out[0] = run_all(probes, n);
    for (int k = 0; k < n; k++) {
        out[1] = out[1] + probes[k].late;
        if (probes[k].left >= 0) out[2] = out[2] + 1;
    }
}
"""


def check_executor(mine: Any, _model: Any) -> None:
    """All are polled in turns until they are ready, and none after that."""
    for left in ((2, 5, 0, 3), (7,), tuple(k % 5 for k in range(32))):
        kernel = RUN_ALL.replace("COUNT", str(len(left)))
        rounds, late, open_ = _tried("RUN_ALL", mine, kernel, _ints(*left), _ints(0, 0, 0))
        with case(count(len(left), "future")):
            if open_:
                raise Rejected(
                    f"{count(int(open_), 'future')} still pending when `run_all` came back"
                )
            if late:
                raise Rejected("a future was polled after it had said READY")
            if rounds != max(left) + 1:
                raise Rejected(
                    f"it took {count(int(rounds), 'round')}, and {max(left) + 1} is right: in each round "
                    "every open future is polled once"
                )


# ------------------------------------------------------------------ join and select
JOIN = r"""
extern "C" __global__ void trial(const int* left, int* out) {
    Join<Probe, Probe> both = {{left[0], 0, 0}, {left[1], 0, 0}, false, false};
    out[0] = 1;
    while (out[0] < 200 && both.poll() == PENDING) { out[0] = out[0] + 1; }
    out[1] = both.a.late + both.b.late;
    out[2] = (both.a.left >= 0) + (both.b.left >= 0);
}
"""
SELECT = r"""
extern "C" __global__ void trial(const int* left, int* out) {
    Select<Probe, Probe> either = {{left[0], 0, 0}, {left[1], 0, 0}, -1};
    out[0] = 1;
    while (out[0] < 200 && either.poll() == PENDING) { out[0] = out[0] + 1; }
    out[1] = either.winner;
}
"""


def check_join(mine: Any, _model: Any) -> None:
    """It is ready with the later of the two, and neither is polled after its end."""
    for a, b in ((2, 5), (5, 2), (3, 3), (0, 4)):
        polls, late, open_ = _tried("JOIN", mine, JOIN, _ints(a, b), _ints(0, 0, 0))
        with case(f"futures that are ready after {a} and {b} polls"):
            if open_:
                raise Rejected("the join is READY, and one of the two is not")
            if late:
                raise Rejected("a future was polled after it had said READY")
            if polls != max(a, b) + 1:
                raise Rejected(
                    f"the join was polled {count(int(polls), 'time')}, and {max(a, b) + 1} is right: both "
                    "get on in every poll"
                )


def check_select(mine: Any, _model: Any) -> None:
    """It is ready with the earlier of the two, and says which."""
    for a, b in ((2, 5), (5, 2), (3, 3), (4, 0)):
        polls, winner = _tried("SELECT", mine, SELECT, _ints(a, b), _ints(0, 0))
        right = int(b < a)
        with case(f"futures that are ready after {a} and {b} polls"):
            if polls != min(a, b) + 1:
                raise Rejected(
                    f"the select was polled {count(int(polls), 'time')}, and {min(a, b) + 1} is right: the "
                    "first that is ready ends it"
                )
            if winner != right:
                raise Rejected(f"`winner` is {winner}, and {right} is right")


# ------------------------------------------------------------------ a warp
WARP = r"""
extern "C" __global__ void trial(unsigned int* mails, int* out) {
    unsigned int* mail = mails + 2 * (threadIdx.x / 32);
    if (blockIdx.x == 1) {
        if (threadIdx.x % 32 == 0) {
            mail[1] = 40 + threadIdx.x;
            __threadfence();
            atomicExch(&mail[0], 1u);
        }
        return;
    }
    unsigned int message = 0, looks = 0;
    int state = PENDING;
    while (state == PENDING) {
        state = warp_take(mail, message);
        if (++looks > 10000000) __trap();
    }
    out[threadIdx.x] = (int)__shfl_xor_sync(0xffffffff, message, 1);
}
"""


def check_warp(mine: Any, _model: Any) -> None:
    """All lanes of each warp get the one message that is in their mailbox."""
    for warps in (1, 2):
        mails = np.zeros(2 * warps, np.uint32)
        out = np.zeros(32 * warps, np.int32)
        right = np.repeat(40 + 32 * np.arange(warps), 32)
        with case(count(warps, "warp")):
            try:
                got = _tried("WARP_TAKE", mine, WARP, mails, out, grid=2, block=32 * warps)
            except Rejected as rejected:
                if warps > 1 and isinstance(rejected.__cause__, agt.errors.DeadlockError):
                    rejected.cause += ". One warp did well: which lane of warp 1 looks?"
                raise
            wrong = np.flatnonzero(got != right)
            if len(wrong):
                raise Rejected(
                    f"thread {wrong[0] ^ 1} got the message {got[wrong[0]]}, and {right[wrong[0]]} was sent"
                )


# ------------------------------------------------------------------ messages
ONESHOT = r"""
extern "C" __global__ void trial(unsigned int* cells, unsigned int* out) {
    if (blockIdx.x > 0) {
        send(cells + 2 * (blockIdx.x - 1), 100 * blockIdx.x);
        return;
    }
    for (unsigned int k = 0; k < gridDim.x - 1; k++) {
        unsigned int x = 0, looks = 0;
        Poll state = PENDING;
        while (state == PENDING) {
            state = poll(cells + 2 * k, x);
            if (++looks > 10000000) __trap();
        }
        out[k] = x;
    }
}
"""
EMPTY = r"""
extern "C" __global__ void trial(unsigned int* cell, int* out) {
    unsigned int x = 0;
    out[0] = poll(cell, x) == READY;
}
"""
CHANNEL = r"""
extern "C" __global__ void trial(
    unsigned int* tail, unsigned int* full, unsigned int* values, unsigned int* out) {
    if (blockIdx.x > 0) {
        for (unsigned int k = 0; k < 3; k++) send(tail, full, values, 100 * blockIdx.x + k);
        return;
    }
    for (unsigned int place = 0; place < 3 * (gridDim.x - 1); place++) {
        unsigned int looks = 0;
        while (atomicAdd(&full[place], 0u) == 0) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
        out[place] = values[place];
    }
}
"""


ONESHOT_FENCES = (
    Fence(
        "the box and the flag in `send`",
        "on a GPU the other block may see the flag first, and read a box in which nothing lies yet",
    ),
    Fence(
        "the look at the flag and the box in `poll`",
        "a GPU may have read the box before it looked at the flag",
        before=r"\batomic(?!Exch)\w*\s*\(",
        after=r"(?<![&\w])\w+\s*\[\s*1\s*\](?!\s*=[^=])",
    ),
)


def check_oneshot(mine: Any, _model: Any) -> None:
    """What is sent arrives, in every order of the blocks; and looking into an empty cell is no wait."""
    with case("a cell to which nobody has sent"):
        (ready,) = _tried("ONESHOT", mine, EMPTY, np.zeros(2, np.uint32), _ints(0))
        if ready:
            raise Rejected("`poll` says READY")
    with tried_and_fenced(mine, "__threadfence", ONESHOT_FENCES):
        for senders in (1, 3):
            _sent_and_polled(mine, senders)


def _sent_and_polled(mine: str, senders: int) -> None:
    cells, out = np.zeros(2 * senders, np.uint32), np.zeros(senders, np.uint32)
    try:
        got = _tried("ONESHOT", mine, ONESHOT, cells, out, grid=senders + 1)
    except Rejected as rejected:
        by_atomics = len(re.findall(r"\batomic", without_comments(mine))) > 1
        if isinstance(rejected.__cause__, agt.errors.RaceError) and not by_atomics:
            raise Rejected(
                "two blocks use the flag `cells[0]` at the same time, so it has to be raised by an atomic, "
                "and read by one. A `volatile` is no atomic"
            ) from None
        raise
    with case(count(senders, "sender")):
        for k, x in enumerate(got):
            if x != 100 * (k + 1):
                raise Rejected(f"{x} came out, and {100 * (k + 1)} was sent")


def check_channel(mine: Any, _model: Any) -> None:
    """Every message arrives once, and those of one sender in order."""
    for senders in (1, 4):
        n = 3 * senders
        arrays = [np.zeros(size, np.uint32) for size in (1, n, n, n)]
        got = _tried("SEND", mine, CHANNEL, *arrays, grid=senders + 1)
        right = [100 * b + k for b in range(1, senders + 1) for k in range(3)]
        with case(count(senders, "sender")):
            if sorted(got.tolist()) != right:
                raise Rejected(
                    f"these messages came out: {got.tolist()}, and these were sent: {right}"
                )


# ------------------------------------------------------------------ the challenge
KETTLE = r"""
extern "C" __global__ void trial(const int* boil, const int* steep, int* out) {
    const int n = COUNT;
    bool begun[n];
    for (int k = 0; k < n; k++) begun[k] = false;
    int now = 0;
    for (int turn = 0; turn < n; turn++) {
        int k = pick(n, boil, steep, begun);
        if (k < 0 || k >= n || begun[k]) {
            out[1] = turn + 1;
            out[2] = k;
            return;
        }
        begun[k] = true;
        now += boil[k];
        out[0] = max(out[0], now + steep[k]);
    }
}
"""
KITCHENS = (
    ((3, 9, 4, 6, 8, 2, 7, 5, 9, 4, 6, 8), (12, 30, 8, 25, 10, 40, 15, 20, 35, 9, 28, 46)),
    ((1, 1, 1), (5, 5, 5)),
    ((4,), (2,)),
)
GOAL = 80


def check_challenge(mine: Any, _model: Any) -> float:
    """Each cup is picked once; returns when the last of the large kitchen is ready."""
    took: list[int] = []
    for boil, steep in KITCHENS:
        kernel = KETTLE.replace("COUNT", str(len(boil)))
        ready, turn, cup = _tried("PICK", mine, kernel, _ints(*boil), _ints(*steep), _ints(0, 0, 0))
        with case(count(len(boil), "cup")):
            if turn:
                raise Rejected(
                    f"`pick` returned {cup} in turn {turn - 1}, and that is no cup that still waits for the "
                    "kettle"
                )
            if ready >= GOAL:
                raise Rejected(f"the last cup is ready after {ready} ticks: get below {GOAL}")
        took.append(int(ready))
    return float(took[0])


EXERCISES = (
    Exercise("12-pot", "A pot for many", "POT", check_pot),
    Exercise("12-executor", "An executor", "RUN_ALL", check_executor),
    Exercise("12-join", "Join", "JOIN", check_join),
    Exercise("12-select", "Select", "SELECT", check_select),
    Exercise("12-warp", "The warp learns", "WARP_TAKE", check_warp),
    Exercise("12-oneshot", "Oneshot", "ONESHOT", check_oneshot),
    Exercise("12-channel", "Send to a channel", "SEND", check_channel),
    Exercise("12-challenge", "Challenge: one kettle", "PICK", check_challenge),
)
