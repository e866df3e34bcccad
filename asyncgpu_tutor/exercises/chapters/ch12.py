"""Exercises of 12_async_inside_a_kernel: what each one checks.

Answers are pieces of device code. Each is put between what the chapter has defined already and a kernel that
tries it, and what the kernel wrote down is held against what asyncio would do.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import device_code, trials
from asyncgpu_tutor.exercises.checks.device_code import Fence
from asyncgpu_tutor.exercises.checks.results import Array, left_in
from asyncgpu_tutor.exercises.checks.trials import cases, counted, must
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


def _out(name: str, mine: Any, kernel: str, *arrays: Array, grid: int = 1, block: int = 1) -> Array:
    """Numbers that a kernel leaves in its last array, with the answer in front of it."""
    text = trials.text_of(name, mine, "the text of device code")
    with device_code.own_lines(text, GIVEN, kernel):
        trial = call(agt.Kernel, GIVEN + text + kernel, "trial")
        (last,) = left_in((-1,), trial, arrays, grid=grid, block=block)
    return last


def of_numbers(
    name: str, kernel: str, judge: trials.Judge, rows: trials.Rows, words: str
) -> trials.Check:
    """A check of device code by a kernel that gets a row of numbers, and leaves three for the judge."""

    def tried(mine: Any, _model: Any, *row: int) -> float | None:
        source = kernel.replace("COUNT", str(len(row)))
        left = _out(name, mine, source, np.array(row, np.int32), np.zeros(3, np.int32))
        return judge(row, *left.tolist())

    return cases(tried, rows, words)


POT = r"""
extern "C" __global__ void trial(const int* p, int* out) {
    Pot pot = {{p[0]}, p[1], p[2], 0, {0}};
    while (out[0] < 200 && pot.poll() == PENDING) { out[0] = out[0] + 1; }
}
"""


def _pot(row: tuple[int, ...], pending: int, *_: int) -> None:
    """It is pending for as long as boiling and all cups take, and not for longer."""
    boil, cups, pour = row
    right = boil + cups * pour
    must(pending < MOST, f"the pot is still pending after {MOST} polls, and {right} are right")
    counted("the pot is pending for", pending, "poll", right)


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
LATE = "a future was polled after it had said READY"


def _executor(row: tuple[int, ...], rounds: int, late: int, pending: int) -> None:
    """All are polled in turns until they are ready, and none after that."""
    must(not pending, f"{count(pending, 'future')} still pending when `run_all` came back")
    must(not late, LATE)
    why = "in each round every open future is polled once"
    counted("it took", rounds, "round", max(row) + 1, why)


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
PAIRS = [(2, 5), (5, 2), (3, 3), (0, 4), (4, 0)]


def _join(row: tuple[int, ...], polls: int, late: int, pending: int) -> None:
    """It is ready with the later of the two, and neither is polled after its end."""
    must(not pending, "the join is READY, and one of the two is not")
    must(not late, LATE)
    counted("the join was polled", polls, "time", max(row) + 1, "both get on in every poll")


def _select(row: tuple[int, ...], polls: int, winner: int, _: int) -> None:
    """It is ready with the earlier of the two, and says which."""
    why = "the first that is ready ends it"
    counted("the select was polled", polls, "time", min(row) + 1, why)
    right = int(row[1] < row[0])
    must(winner == right, f"`winner` is {winner}, and {right} is right")


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
    unsigned int message = 0;
    while (warp_take(mail, message) == PENDING) { }
    out[threadIdx.x] = (int)__shfl_xor_sync(0xffffffff, message, 1);
}
"""


def _warp(mine: Any, _model: Any, warps: int) -> None:
    """All lanes of each warp get the one message that is in their mailbox."""
    mails, out = np.zeros(2 * warps, np.uint32), np.zeros(32 * warps, np.int32)
    right = np.repeat(40 + 32 * np.arange(warps), 32)
    try:
        got = _out("WARP_TAKE", mine, WARP, mails, out, grid=2, block=32 * warps)
    except Rejected as rejected:
        if warps > 1 and isinstance(rejected.__cause__, agt.errors.DeadlockError):
            rejected.cause += ". One warp did well: which lane of warp 1 looks?"
        raise
    for i, (message, sent) in enumerate(zip(got, right, strict=True)):
        must(message == sent, f"thread {i ^ 1} got the message {message}, and {sent} was sent")


# ------------------------------------------------------------------ messages
ONESHOT = r"""
extern "C" __global__ void trial(unsigned int* cells, unsigned int* out) {
    if (blockIdx.x > 0) {
        send(cells + 2 * (blockIdx.x - 1), 100 * blockIdx.x);
        return;
    }
    for (unsigned int k = 0; k < gridDim.x - 1; k++) {
        unsigned int x = 0;
        while (poll(cells + 2 * k, x) == PENDING) { }
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
        while (atomicAdd(&full[place], 0u) == 0) { }
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


def check_oneshot(mine: Any, model: Any) -> None:
    """Messages arrive in every order of the blocks, and looking into an empty cell is no wait."""
    with case("a cell to which nobody has sent"):
        (ready,) = _out("ONESHOT", mine, EMPTY, np.zeros(2, np.uint32), np.zeros(1, np.int32))
        must(not ready, "`poll` says READY")
    with device_code.tried_and_fenced(mine, "__threadfence", ONESHOT_FENCES):
        cases(_oneshot, [(1,), (3,)], "{:sender}")(mine, model)


def _oneshot(mine: str, _model: Any, senders: int) -> None:
    cells, out = np.zeros(2 * senders, np.uint32), np.zeros(senders, np.uint32)
    try:
        got = _out("ONESHOT", mine, ONESHOT, cells, out, grid=senders + 1)
    except Rejected as rejected:
        by_atomics = len(re.findall(r"\batomic", device_code.without_comments(mine))) > 1
        if isinstance(rejected.__cause__, agt.errors.RaceError) and not by_atomics:
            due = "two blocks use the flag `cells[0]` at the same time, so it has to be raised by an atomic"
            raise Rejected(f"{due}, and read by one. A `volatile` is no atomic") from None
        raise
    for k, x in enumerate(got, 1):
        must(x == 100 * k, f"{x} came out, and {100 * k} was sent")


def _channel(mine: Any, _model: Any, senders: int) -> None:
    """Every message arrives once, and those of one sender in order."""
    arrays = [np.zeros(size, np.uint32) for size in (1, *[3 * senders] * 3)]
    got = _out("SEND", mine, CHANNEL, *arrays, grid=senders + 1).tolist()
    right = [100 * b + k for b in range(1, senders + 1) for k in range(3)]
    must(sorted(got) == right, f"these messages came out: {got}, and these were sent: {right}")


# ------------------------------------------------------------------ the challenge
KETTLE = r"""
extern "C" __global__ void trial(const int* cups, int* out) {
    const int n = COUNT / 2;
    const int *boil = cups + 1, *steep = boil + n;
    bool begun[n] = {};
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
KITCHENS = [  # the number of cups, how long each boils, and how long each steeps; the last one has the score
    (1, 4, 2),
    (3, 1, 1, 1, 5, 5, 5),
    (12, 3, 9, 4, 6, 8, 2, 7, 5, 9, 4, 6, 8, 12, 30, 8, 25, 10, 40, 15, 20, 35, 9, 28, 46),
]
GOAL = 80


def _kettle(_: tuple[int, ...], ready: int, turn: int, cup: int) -> float:
    """Each cup is picked once; the score is when the last one is ready."""
    due = f"`pick` returned {cup} in turn {turn - 1}, and that is no cup that still waits for the kettle"
    must(not turn, due)
    must(ready < GOAL, f"the last cup is ready after {ready} ticks: get below {GOAL}")
    return float(ready)


FUTURES = [(2, 5, 0, 3), (7,), tuple(k % 5 for k in range(32))]
TWO = "futures that are ready after {} and {} polls"
EXERCISES = (
    Exercise("12-pot", "A pot for many", "POT",
             of_numbers("POT", POT, _pot, [(3, 4, 2), (0, 1, 5), (2, 0, 3), (1, 3, 0)],
                        "boil={}, cups={} and pour={}")),
    Exercise("12-executor", "An executor", "RUN_ALL",
             of_numbers("RUN_ALL", RUN_ALL, _executor, FUTURES,
                        "{n:future}")),
    Exercise("12-join", "Join", "JOIN", of_numbers("JOIN", JOIN, _join, PAIRS, TWO)),
    Exercise("12-select", "Select", "SELECT", of_numbers("SELECT", SELECT, _select, PAIRS, TWO)),
    Exercise("12-warp", "The warp learns", "WARP_TAKE",
             cases(_warp, [(1,), (2,)], "{:warp}")),
    Exercise("12-oneshot", "Oneshot", "ONESHOT", check_oneshot),
    Exercise("12-channel", "Send to a channel", "SEND",
             cases(_channel, [(1,), (4,)], "{:sender}")),
    Exercise("12-challenge", "Challenge: one kettle", "PICK",
             of_numbers("PICK", KETTLE, _kettle, KITCHENS,
                        "{:cup}")),
)  # fmt: skip
