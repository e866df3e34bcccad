"""Exercises of 12_async_inside_a_kernel: what each one checks.

Answers are pieces of device code. Each is put between what the chapter has defined already and a kernel that
tries it, and what the kernel wrote down is held against what asyncio would do.
"""

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import code_steps, trials
from asyncgpu_course.checks.device_code import all_lanes, left_by
from asyncgpu_course.checks.operations import cuda, wide
from asyncgpu_course.checks.rejection import Rejected, about, case, must
from asyncgpu_course.checks.results import CheckedArray
from asyncgpu_course.checks.trials import cases, counted, in_late_memory
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

GIVEN = cuda("12_given")
_MOST = 400  # polls


def _out(
    name: str, mine: Any, kernel: str, *arrays: Any, on: str = "", grid: int = 1, block: int = 1
) -> CheckedArray:
    """Numbers that a kernel of the folder `cuda` leaves in its last array, with the answer before it."""
    files = f"12_{on or 'given'}", f"12_{kernel}"
    return left_by(name, mine, files, arrays, (-1,), grid, block)[0]


def _at_once(
    name: str, mine: Any, kernel: str, *arrays: CheckedArray, most: int, waits: str
) -> CheckedArray:
    """Do as `_out`, with calls that neither look again and again nor sleep: in so many turns."""
    with agt.microscope() as seen:
        left = _out(name, mine, kernel, *arrays, on="spy")
    turns = sum(kernel.counts.loop_iterations for kernel in seen.kernels)
    cause = f"one call of {waits} looks again and again, or sleeps, and the answer is no: "
    must(turns <= most, cause + "have it look once, and leave the waiting to its caller")
    return left


def of_numbers(
    name: str, kernel: str, judge: trials.Judge, rows: trials.TrialRows, words: str, on: str = ""
) -> trials.Check:
    """A check of device code by a kernel that gets a row of numbers, and leaves three for the judge."""

    def tried(mine: Any, _model: Any, *row: int) -> float | None:
        with about(r"\+\+late > 1000", _LATE):  # a probe stops what polls on and on
            left = _out(name, mine, kernel, np.array(row, np.int32), np.zeros(3, np.int32), on=on)
        return judge(row, *left.tolist())

    return cases(tried, rows, words)


def _pot(row: tuple[int, ...], pending: int, late: int, _: int) -> None:
    """It is pending for as long as boiling and all cups take, and not for longer."""
    boil, cups, pour = row
    right = boil + cups * pour
    must(pending < _MOST, f"the pot is still pending after {_MOST} polls, and {right} are right")
    counted("the pot is pending for", pending, "poll", right)
    must(not late, _LATE)


_PLACES = "two senders read and count `tail` at the same time: draw the place by one `atomicAdd`"
_LATE = "a future was polled after it had said READY"


def _executor(row: tuple[int, ...], rounds: int, late: int, pending: int) -> None:
    """All are polled in turns until they are ready, and none after that."""
    must(not pending, f"{count(pending, 'future')} still pending when `run_all` came back")
    must(not late, _LATE)
    why = "in each round every open future is polled once"
    counted("it took", rounds, "round", max(row[1:], default=-1) + 1, why)


# ------------------------------------------------------------------ futures of futures
_PAIRS = [(2, 5), (5, 2), (3, 3), (0, 4), (4, 0)]


def _join(row: tuple[int, ...], polls: int, late: int, pending: int) -> None:
    """It is ready with the later of the two, and neither is polled after its end."""
    must(not pending, "the join is READY, and one of the two is not")
    must(not late, _LATE)
    counted("the join was polled", polls, "time", max(row) + 1, "both get on in every poll")


def _serve(row: tuple[int, ...], teas: int, rounds: int, looks: int) -> None:
    """All guests wait at the same time, each until the tea is there or the limit is over."""
    boil, steep, limit = np.array(row).reshape(3, -1)
    stay, right = 1 + np.minimum(boil + steep, limit), int((boil + steep <= limit).sum())
    together = "all guests wait at the same time"
    counted("`serve` returned", rounds, "round", int(stay.max()), together)
    cause = "the rounds are as many, but not every guest is polled in each of them: "
    must(looks >= 0, cause + together)
    cause = f"`*teas` is {teas}, and {right} is right: a guest has tea if `winner` is 0"
    must(teas == right, cause)
    if looks:  # one can do without tables
        polls = int(stay.reshape(-1, 2).max(1).sum())
        why = "each is polled until both of its guests leave, and guests `2 * k` and "
        why += "`2 * k + 1` sit at table `k`"
        counted("the tables were polled", looks, "time", polls, why)


def check_warp(mine: Any, model: Any) -> None:
    """A look into an empty mailbox is no wait; a message gets to all lanes of each warp."""
    mail, out = np.zeros(2, np.uint32), np.zeros(32, np.int32)
    with case("an empty mailbox, into which `warp_take` looks once"):
        cause = "it says READY, and nothing was there: give back what lane 0 learned"
        with agt.microscope() as seen:
            must(not _out("WARP_TAKE", mine, "warp_empty", mail, out, block=32).any(), cause)
        looking = sum(kernel.counts.atomics for kernel in seen.kernels)
        cause = f"{looking} lanes look into the mailbox: one should, or another lane's look takes the message"
        must(looking <= 1, cause)
    all_lanes(code_steps.steps(GIVEN + mine, "warp_take"))
    cases(_warp, [(1,), (2,)], "{:warp}")(mine, model)


def _warp(mine: Any, _model: Any, warps: int) -> None:
    """All lanes of each warp get the one message that is in their mailbox."""
    mails, out = np.zeros(2 * warps + 1, np.uint32), np.zeros(32 * warps, np.uint32)
    right = np.repeat([wide(1), 0][:warps], 32)
    try:
        got = _out("WARP_TAKE", mine, "warp", mails, out, grid=2, block=32 * warps)
    except Rejected as rejected:
        cause = "a warp waits in `warp_take` for another one, which does not call it at the moment"
        must("atomicAdd(turn" not in rejected.cause, cause)
        endless = agt.errors.DeadlockError | agt.errors.RunawayKernelError
        if warps > 1 and isinstance(rejected.__cause__, endless):
            rejected.cause += ". One warp did well: which lane of warp 1 looks? Its message is 0"
        if warps > 1 and "in shared memory" in rejected.cause:
            rejected.cause += ". Warps share it, and don't meet in `warp_take`: shuffle instead"
        if isinstance(rejected.__cause__, agt.errors.WarpError):
            rejected.cause += ". Or only some lanes are told `READY`, and the others look again"
        raise
    for i, (message, sent) in enumerate(zip(got, right, strict=True)):
        must(message == sent, f"thread {i ^ 1} got the message {message}, and {sent} was sent")


# ------------------------------------------------------------------ messages
def check_oneshot(mine: Any, model: Any) -> None:
    """Messages arrive in every order of the blocks, and looking into an empty cell is no wait."""
    with case("a cell to which nobody has sent"):
        args = np.zeros(2, np.uint32), np.zeros(1, np.int32)
        (ready,) = _at_once("ONESHOT", mine, "empty", *args, most=1, waits="`poll`")
        must(not ready, "`poll` says READY")
    cases(_oneshot, [(1,), (3,)], "{:sender}")(mine, model)


def _oneshot(mine: str, _model: Any, senders: int) -> None:
    cells, out = np.zeros((2, 2 * senders), np.uint32)
    letters = [2**32 - 1, 0, wide(1)][senders - 1 :: -1]
    cause = f"{letters} were sent, one to each cell, and at one of them `poll` says PENDING forever"
    with about(r"while \(poll", cause):
        got = _out("ONESHOT", mine, "oneshot", cells, out, grid=senders + 1)
    for sent, (x, again) in zip(letters, got.reshape(-1, 2), strict=True):
        must(x == sent, f"{x} came out, and {sent} was sent")
        must(again, "`poll` said READY, and doesn't at the next look: have it take nothing away")


def _channel(mine: Any, _model: Any, senders: int) -> None:
    """Every message arrives once."""
    arrays = [np.zeros(size, np.uint32) for size in (1, *[6 * senders] * 3)]
    with about("'tail'", _PLACES):
        got = _out("SEND", mine, "channel", *arrays, grid=senders + 1, block=2).tolist()
    sent = [wide(k) for k in range(6 * senders)]
    for x in got:
        counted(f"the message {x} came out", got.count(x), "time", sent.count(x))


# ------------------------------------------------------------------ a warp waits together
def _together(mine: Any, _model: Any, warps: int, shortest: int, longest: int) -> None:
    """All 32 lanes are named, and come back in one round, the one in which their last future is ready."""
    left = np.random.default_rng(warps).integers(shortest, longest, 32 * warps).astype(np.int32)
    left += 3 * (np.arange(left.size, dtype=np.int32) // 32)
    args, files = (left, 0 * left, 0 * left, 0 * left), ("12_given", "12_together")
    found = left_by("TOGETHER", mine, files, args, (1, 2, 3), 1, left.size)
    for i, (rounds, late, met) in enumerate(zip(*found, strict=True)):
        must(not late, f"the future of thread {i} was polled after it had said READY")
        cause = f"`together` came back to thread {i}, "
        must(bool(met), cause + "and the future of the lane beside it is PENDING")
        right = left.reshape(-1, 32)[i // 32].max() + 1
        why = "as many as the slowest lane of the warp needs"
        counted(f"thread {i} was told of", int(rounds), "round", int(right), why)
    all_lanes(code_steps.steps(GIVEN + mine, "together"))


# ------------------------------------------------------------------ a ring and a door
SENDS = ["poll_send(40)", "poll_send(0)", "poll_send(42)", "poll_send(43)"]
# Calls of one thread at a ring of two; and what comes of each, with 1 added: 0 is PENDING.
_CALLS = ["poll", *SENDS[:3], "poll", SENDS[3], "poll", "poll", "poll"]
_ENDS = {1: [0, 41, 1, 0, 41, 44, 1, 44, 0], 2: [1 + wide(k) for k in range(9)]}
ORDERS = "{}. Here the order of an atomic is the fence: which one does `leave` need, and which one `enter`?"
RINGS = [(1, 0), (1, 2**32 - 1), (2, 0), (2, 2**32 - 4)]
DOORS = [(2, 32, ""), (3, 32, ""), (3, 64, ""), (3, 32, ", with time behind each look")]


def _ring(mine: Any, _model: Any, blocks: int, begun: int) -> None:
    """A thread sees when there is room; between two blocks, every message arrives once, in order."""
    begin, out = np.full(1, begun, np.uint32), np.zeros(9, np.uint32)
    args = begin, begin, out[:2], out
    if blocks > 1:
        found = _out("RING", mine, "ring", *args, grid=blocks)
    else:
        found = _at_once("RING", mine, "ring_alone", *args, most=1, waits="a poll")
    for k, (got, right) in enumerate(zip(found, _ENDS[blocks], strict=True)):
        says = ["READY" if x else "PENDING" for x in (got, right)]
        cause = f"after {', '.join(_CALLS[:k]) or 'nothing'}: "
        must(says[0] == says[1], cause + f"`{_CALLS[k]}` says {says[0]}, and {says[1]} is right")
        must(got == right, f"message {int(got) - 1} came out, and {int(right) - 1} is right")


def check_door(mine: Any, model: Any) -> None:
    """Nobody gets in while somebody is, and a thread that is not let in is told so."""
    with case("one thread, which comes twice"):
        args = "DOOR", mine, "door_alone", np.zeros(1, np.uint32), np.zeros(6, np.int32)
        found = _out(*args)
        must(found[0] == 1, "the door is open, and `enter` says PENDING")
        must(found[1] == 0, "somebody is in, and `enter` says READY")
        cause = f"somebody is in, and two more calls of `enter` leave the door at {found[2]}: "
        must(found[2] == 1, cause + "it should stay at 1, or it opens after enough looks")
        must(found[3] == 1, "`leave` was called, and `enter` says PENDING")
    cases(_door, DOORS, "{0:block} of {1:thread}{2}")(mine, model)
    found = _at_once(*args, most=4, waits="`enter`").tolist()
    for name, fences in zip(("enter", "leave"), found[4:], strict=True):
        more = f"it works, but `{name}` orders more than it needs: "
        must(fences < 64, more + "visitors come from one GPU, and its scope is the whole system")
        must(fences < 2, more + "one in one direction is enough. The default is the strongest")


def _door(mine: Any, _model: Any, blocks: int, threads: int, slow: str) -> None:
    """Require that each is alone with two numbers: one counts, and the other adds up the counts."""
    args: Any = np.zeros(1, np.uint32), blocks > 2, np.zeros(2, np.int32)
    files = "12_door_slow" if slow else "12_given", "12_door"
    with about("'pair'", ORDERS):
        (found,) = left_by("DOOR", mine, files, args, (-1,), blocks, threads)
    visits = 2 * blocks * threads // 32
    cause = f"{visits} visits left a count of {found[0]}: two were in at the same time"
    must(found.tolist() == [visits, visits * (visits + 1) // 2], cause)


# ------------------------------------------------------------------ the challenge
# The number of cups, how long each boils, and how long each steeps. The last one has the score: it is
# the one before in another order. Longest steep first takes 79, and longest boil and steep first 82.
KITCHENS: list[tuple[int, ...]] = [
    (1, 4, 2),
    (3, 1, 1, 1, 5, 0, 5),
    (12, 11, 8, 3, 10, 5, 3, 11, 7, 3, 3, 6, 5, 41, 43, 10, 8, 24, 4, 7, 30, 33, 43, 47, 16),
    (12, 8, 3, 3, 10, 5, 7, 3, 3, 11, 11, 6, 5, 43, 43, 10, 8, 16, 30, 33, 4, 7, 41, 47, 24),
]
_GOAL, _FINE = 80, 2_000  # ticks, and what makes one of them in a kitchen with a better clock
KITCHENS.insert(3, (12, *(_FINE * ticks for ticks in KITCHENS[2][1:])))


def _kettle(row: tuple[int, ...], ready: int, turn: int, cup: int) -> float:
    """Each cup is picked once; the score is when the last one is ready."""
    cause = f"`pick` returned {cup} in turn {turn - 1}, and that is no cup that still waits for the kettle"
    must(not turn, cause)
    goal = _GOAL * (_FINE if max(row) > _FINE else 1)
    must(ready < goal, f"the last cup is ready after {ready} ticks: get below {goal}")
    return float(ready)


FUTURES = [(4, 2, 5, 0, 3), (1, 7), (30, *(k % 5 for k in range(30))), (0,), (2, 5000, 3)]
_FAR = 2**30  # polls, which no narrower type holds
# Two at each table: how long the water boils, how long the tea steeps, and how long the guest waits.
GUESTS = [
    ([2, 5], [4, 2], [_FAR + 3, _FAR + 3]),
    ([*range(15), _FAR], [_FAR, *[3, 5] * 7, 5], [9] * 8 + [14] * 8),
]
TWO = "futures that are ready after {} and {} polls"
CHAPTER_12 = (
    Exercise("12-pot", "A pot for many", "POT",
             of_numbers("POT", "pot", _pot, [(3, 4, 2), (0, 1, 300), (2, 0, 3), (1, 3, 0), (300, 1, 1),
                                                (1, 300, 1)], "boil={}, cups={} and pour={}")),
    Exercise("12-executor", "An executor", "RUN_ALL",
             of_numbers("RUN_ALL", "run_all", _executor, FUTURES, "{:future}")),
    Exercise("12-join", "Join", "JOIN", of_numbers("JOIN", "join", _join, _PAIRS, TWO)),
    Exercise("12-timeout", "Guests with a limit", "SERVE", of_numbers("SERVE", "timeout", _serve, GUESTS,
                        "water that takes {}, tea that takes {}, and limits of {}", "pieces")),
    Exercise("12-warp", "The warp learns", "WARP_TAKE", check_warp, in_late_memory(_warp, 2)),
    Exercise("12-oneshot", "Oneshot", "ONESHOT", check_oneshot, in_late_memory(_oneshot, 3)),
    Exercise("12-channel", "Send to a channel", "SEND",
             cases(_channel, [(1,), (4,), (43,)], "{:block}, of which each of two threads sends"),
             in_late_memory(_channel, 4)),
    Exercise("12-together", "A warp waits together", "TOGETHER",
             cases(_together, [(1, 0, 6), (3, 0, 4), (1, 1990, 2040)], "{0:warp}")),
    Exercise("12-ring", "A ring of two", "RING",
             cases(_ring, RINGS, "{0:block}, and counters that begin with {1}"), in_late_memory(_ring, 2, 0)),
    Exercise("12-door", "A door with an order", "DOOR", check_door, in_late_memory(_door, 3, 32, "")),
    Exercise("12-challenge", "Challenge: one kettle", "PICK",
             of_numbers("PICK", "kettle", _kettle, KITCHENS, "{:cup}")),
)  # fmt: skip
