"""Exercises of 13b_await_the_host: what each one checks. All of it is found out by running the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.device_code import in_own_lines, keeps_waiting, own_lines
from asyncgpu_tutor.exercises.checks.operations import all_back, cuda, packets_left
from asyncgpu_tutor.exercises.checks.results import Array, as_kernel, left_in
from asyncgpu_tutor.exercises.checks.trials import cases, counted, in_late_memory, text_of
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, must
from asyncgpu_tutor.exercises.internals import SimDevice, count
from asyncgpu_tutor.exercises.sandbox import call

GIVEN_UP = "a call got no packet any more: each comes back with its answer, or when nobody wants it"
TIMES = 1_000_000_007  # so an answer to 3 needs more bits than an `int` has
SLOW_US = 4000.0  # which a kernel has to wait for as well
# The SM's clock does not begin with the kernel.
RUNNING = """__device__ long long running() { return clock64() + 5000000000; }
#define clock64 running
"""


class _Office:
    """A host that writes down who asks, and how many are under way."""

    less = 0  # is taken from a question before it is multiplied
    # How long it takes over a question, and the error that it then refuses with, if any.
    mood: Callable[[int], tuple[float, int]]

    def __init__(self, us: Callable[[int], float], refused: Any = (), packets: int = 4) -> None:
        self.packets = packets
        # One error is as small as can be, and the other needs more bits than a `short` has.
        self.mood = lambda a: (us(a), (70_001 + a if a == 3 else 1) * (a in refused))
        self.asked = Counter[int]()
        self.took, self.open, self.most = 0.0, 0, 0
        self.behind, self.left = 0, 0  # in the end: open questions, and packets

    async def answer(self, asking: Any) -> int:
        """So many times the question, a little later."""
        self.asked[asking.a] += 1
        us, error = self.mood(asking.a)
        self.open += 1
        self.most = max(self.most, self.open)
        await agt.sleep(us)
        self.open -= 1
        asking.data[:8] = asking.a % 7 + 10 * np.arange(8)
        if error:
            raise agt.errors.CallRefusedError(error)
        return TIMES * (asking.a - self.less)

    def run(self, kernel: agt.Kernel, *args: Any, stuck: str = GIVEN_UP) -> None:
        """Run it, and note how long it takes, and how many packets there are in the end."""
        device = cast(SimDevice, agt.current_device())
        device.machine.patience_s = 0.05

        async def main() -> None:
            async with agt.hostcalls({16: self.answer}, packets=self.packets) as host:
                start = device.now()
                await host.run(kernel(*host.arrays, *args, grid=1, block=1))
                self.took, self.behind = device.now() - start, self.open
                self.left = await packets_left(host, self.packets)

        try:
            call(main)
        except Rejected as rejected:
            signs = "__trap()", "gave up waiting", "waits for ever"
            must(not any(sign in rejected.cause for sign in signs), stuck)
            raise


@contextmanager
def _trial(name: str, mine: Any, given: str, trial: str) -> Generator[agt.Kernel]:
    """A kernel that tries a piece of device code; whatever is rejected in the block names its lines."""
    text = text_of(name, mine, "the text of device code")
    before, after = cuda(given), cuda(trial)
    with own_lines(text, before, after):
        yield call(agt.Kernel, before + text + after)


def _left(size: int) -> Array:
    return agt.pin(np.full(size, 99, np.int64))


# ------------------------------------------------------------------ a call that does not wait
def _ask(mine: Any, _model: Any, calls: int, packets: int) -> None:
    out, office = _left(calls), _Office(lambda _: 50.0, packets=packets)
    short = (
        "`poll` waits for the packet that the other call has: where none is free, it is `PENDING`"
    )
    with _trial("ASK", mine, "13b_ask_given", "13b_ask") as kernel:
        office.run(kernel, calls, agt.mapped(out), stuck=short if packets < calls else GIVEN_UP)
    twice = [a for a, times in office.asked.items() if times > 1]
    due = f"the host was asked for {twice[:1]} more than once: which step comes after asking?"
    must(not twice, due)
    for k, got in enumerate(out.tolist()):
        due = f"call {k} was answered {TIMES * (k + 1)}, and `answer` is {got}"
        must(got == TIMES * (k + 1), due)
    due = "two calls were joined, and the host never had both at a time: does `poll` wait?"
    must(min(calls, packets) < 2 or office.most > 1, due)
    all_back(office.left, office.packets)


def _late(mine: Any, _model: Any, name: str, trial: str, then: str) -> None:
    """The host's words are read, or their packet given back, behind the look that found them."""
    args = np.zeros(4, np.uint64), np.zeros(4, np.uint64), 4
    try:
        with _trial(name, mine, "13b_ask_late_given", trial) as kernel:
            for _ in range(4):  # since it is chance who is late
                (answers,) = left_in((1,), kernel, args, grid=2, block=1)
                due = "there is no `__threadfence_system()` between `hostcall_done` and "
                due += f"`{then}`: what the host wrote may come only after that"
                must(answers.tolist() == [10, 20, 30, 40], due)
    except Rejected as rejected:  # it may call what the block lacks that is the host here
        if not isinstance(rejected.__cause__, agt.errors.KernelCompileError):
            raise


# ------------------------------------------------------------------ what becomes of a packet
def _drop(mine: Any, _model: Any, step: int, us: float) -> None:
    office = _Office(lambda a: us if a == 1 else 5.0, packets=2)
    with _trial("DROPPED", mine, "13b_drop_given", "13b_drop") as kernel:
        office.run(kernel, step, agt.mapped(_left(1)))
    due = "`dropped` waits for the host, and nobody wants the answer any more: leave the packet"
    must(step != 2 or us < 20 or office.most > 1, due)
    due = "the host was asked, and nobody wants the answer any more"
    must(step != 1 or [*office.asked] == [2], due)
    all_back(office.left, office.packets)


# ------------------------------------------------------------------ results and errors
@in_own_lines
def check_both(mine: Any, model: Any) -> None:
    """Two questions at once; the first error that there is, or the product."""
    kernel = as_kernel(mine, "BOTH")
    for refused, us in ([], 60), ([3], 60), ([2], 60), ([3, 2], 60), ([], 50), ([], SLOW_US):
        a, zero = (0, ", one of which is 0") if us == 50 else (3, "")
        with case(f"{refused or 'none'} refused, and answers after {us:.0f} µs{zero}"):
            out, office = _left(1), _Office(lambda _, us=us: us, refused)
            office.run(kernel, a, 2, agt.mapped(out))
            right = [-office.mood(q)[1] for q in refused] or [a * TIMES * 2 * TIMES]
            due = f"`out[0]` is {int(out[0])}, and {' or '.join(map(str, right))} is right"
            must(int(out[0]) in right, due)
            must(office.most > 1, "the host never had both questions at a time: join them")
            all_back(office.left, office.packets)
    keeps_waiting(kernel.source, "", 3, 2, agt.mapped(_left(1)))


def check_first(mine: Any, model: Any) -> None:
    """The quicker of two answers, or -1 at the limit."""
    text = mine.source if isinstance(mine, agt.Kernel) else mine
    with own_lines(text, RUNNING):
        kernel = as_kernel(RUNNING + text if isinstance(text, str) else text, "FIRST")
        _race(kernel)


def _race(kernel: agt.Kernel) -> None:
    # When the answers to two questions come, in us, and which is the first; the limit is 101 us.
    races = [(20.0, 95.0, 3), (95.0, 20.0, 4), (85.0, 95.0, 3), (95.0, 85.0, 4), (108.0, 115.0, -1)]
    for a, b, first in [*races, (20.0, 95.0, 0)]:
        with case(f"answers after {a:.0f} and {b:.0f} µs"):
            one = 3 if first else 0
            out, office = _left(1), _Office(lambda q, a=a, b=b: b if q == 4 else a)
            office.run(kernel, one, 4, agt.mapped(out))
            right = -1 if first < 0 else TIMES * first
            due = f"`out[0]` is {int(out[0])}, and {right} is right: "
            won = "no answer came in time" if first < 0 else f"the answer to {first} came first"
            must(int(out[0]) == right, due + won)
            asked = sorted(office.asked.elements())
            due = f"the host was asked for {asked}, and [{one}, 4] at the same time is right"
            must(asked == [one, 4] and office.most > 1, due)
            all_back(office.left, office.packets)


# ------------------------------------------------------------------ asking again
OK, NO, LATE, TOO_LATE = (20.0, 0), (20.0, 13), (160.0, 0), -2
CLOCKS, BOTH = 200_000, (0, TIMES)  # a try may take about 100 us; two right answers
TRIALS = [
    ("the first refused twice", 4, [NO, NO, OK], [OK], BOTH),
    ("the second too late once", 4, [OK], [LATE, OK], BOTH),
    ("a refusal, then late answers", 4, [OK], [NO, LATE, LATE, OK], (0, TOO_LATE)),
    ("a late answer, then refusals", 4, [OK], [LATE, NO, (20.0, 14), OK], (0, 14)),
    ("one packet for both", 1, [NO, NO, OK], [NO, OK], BOTH),
    ("two packets that come back late", 2, [(130.0, 0), OK], [(130.0, 0), OK], BOTH),
    ("a refusal, then a late answer", 4, [NO, (150.0, 0), OK], [OK], BOTH),
    ("a caller who hangs up", 2, [LATE, OK], [NO, LATE, OK], ()),
]


def _retry(mine: Any, _model: Any, _words: str, packets: int, *given: Any) -> None:
    """Two that may ask again, joined: the office has moods for each, one after the other."""
    *moods, right = given
    out, office = _left(2), _Office(float, packets=packets)
    office.less = 1  # so that one answer is 0
    office.mood = lambda a: moods[a - 1][min(office.asked[a], len(moods[a - 1])) - 1]
    with _trial("RETRY", mine, "13b_drop_given", "13b_retry") as kernel:
        office.run(kernel, CLOCKS, 100 * CLOCKS if right else 150_000, agt.mapped(out))
    for a, (found, due, tries) in enumerate(zip(out.tolist(), right, moods, strict=False), 1):
        counted(f"question {a} came to the host", office.asked[a], "time", min(len(tries), 3))
        must(found == due, f"`Retry` of question {a} ended with {found}, and {due} is right")
    must(packets == 1 or office.most > 1, "the host never had both questions: does `poll` wait?")
    must(bool(right) or office.behind > 0, "`drop` waits for an answer that nobody wants any more")
    all_back(office.left, office.packets)


# ------------------------------------------------------------------ the challenge
GOAL_US, WORK_US = 1000.0, 90.0  # the latter: for one piece from a quick host, at least


@in_own_lines
def check_ahead(mine: Any, model: Any) -> float:
    """Each piece is read and computed once; the score is how long that takes."""
    kernel, took = as_kernel(mine, "AHEAD"), 0.0
    text = mine if isinstance(mine, str) else kernel.source
    changed = ", and bytes that change when their packet is given back"
    for pieces, us, before in (
        (1, 1.0, ""),
        (5, SLOW_US, cuda("13b_spoil")),
        (20, 50.0, ""),
        (12, 50.0, ""),
    ):
        words = count(pieces, "piece") + changed * bool(before)
        with case(words), own_lines(text, before):
            out, office = (
                agt.pin(np.full(1, 9, np.float32)),
                _Office(lambda a, us=us: 50.0 if a else us),
            )
            # Only the number counts.
            short = text.replace("1500", "50") if pieces == 20 else text
            office.run(as_kernel(before + short, "AHEAD"), pieces, agt.mapped(out))
            took = office.took
            wanted = [*range(pieces)]
            due = f"the host was asked for pieces {sorted(office.asked)[:14]}, and 0 to {pieces - 1} is right"
            must(sorted(office.asked.elements()) == wanted, due)
            right = sum(3**0.5 + piece % 7 for piece in wanted)
            due = f"the sum is {out[0]:.2f}, and {right:.2f} is right"
            must(abs(float(out[0]) - right) < 1e-3 * right, due)
            all_back(office.left, office.packets)
            due = f"a piece that comes at once took {took:.0f} µs, and over {WORK_US:.0f} with the work given"
            must(pieces > 1 or took >= WORK_US, due + ": leave `work` as it is, and read ahead")
    for refused in 3, 0, 4:
        with case(f"piece {refused} refused"):
            out, office = agt.pin(np.full(1, 99, np.float32)), _Office(lambda _: 50.0, [refused])
            office.run(kernel, 5, agt.mapped(out))
            must(
                out[0] == 99,
                f"`*out` is {out[0]:.2f}, and nothing should be stored: look at `error`",
            )
            all_back(office.left, office.packets)
    keeps_waiting(text, "", 5, agt.mapped(agt.pin(np.zeros(1, np.float32))))
    must(took < GOAL_US, f"the sum is right, and takes {took:.0f} µs: get below {GOAL_US:.0f}")
    return took


EXERCISES = (
    Exercise("13b-ask", "A call that does not wait", "ASK",
             cases(_ask, [(1, 4), (2, 4), (9, 4), (2, 1)], "{:call} and {:packet}"),
             in_late_memory(_late, "ASK", "13b_ask_late", "hostcall_answer")),
    Exercise("13b-both", "Two answers, or an error", "BOTH", check_both),
    Exercise("13b-drop", "What becomes of the packet?", "DROPPED",
             cases(_drop, [(0, 80.0), (1, 80.0), (2, 80.0), (2, 5.0), (3, 80.0)],
                   "a dropped call at step {}"),
             in_late_memory(_late, "DROPPED", "13b_drop_late", "hostcall_end")),
    Exercise("13b-first", "The quicker of two", "FIRST", check_first),
    Exercise("13b-retry", "Up to three times", "RETRY",
             cases(_retry, TRIALS, "{0}"), cases(_retry, TRIALS[-2:], "{0}")),
    Exercise("13b-challenge", "Challenge: read ahead", "AHEAD", check_ahead),
)  # fmt: skip
