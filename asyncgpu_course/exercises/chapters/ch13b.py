"""Exercises of 13b_await_the_host: what each one checks. All of it is found out by running the answers."""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks.device_code import keeps_waiting, own_lines, trial
from asyncgpu_course.checks.operations import MANY_BITS, beside_host, cuda, wide
from asyncgpu_course.checks.rejection import Rejected, about, case, must
from asyncgpu_course.checks.results import CheckedArray, as_kernel, left_in
from asyncgpu_course.checks.trials import cases, counted, in_late_memory
from asyncgpu_course.exercises.exercise import Exercise

GIVEN_UP = "a call got no packet any more: each comes back with its answer, or when nobody wants it"
_SHORT = "`poll` waits for the packet that the other call has: where none is free, it is `PENDING`"
_TIMES = 1_000_000_007  # so an answer to 5 needs more than 32 bits
_A, _B = 2_000_000_003, 2_000_000_002  # questions that need all bits of an `int`
_SLOW_US = 4000.0  # which a kernel has to wait for as well
# The SM's clock does not begin with the kernel.
RUNNING = """__device__ long long running() { return clock64() + 5000000000; }
#define clock64 running
"""


class _Office:
    """A host that writes down who asks, and how many are under way."""

    less, times = 0, _TIMES  # what is taken from a question, and by what it is multiplied then
    # How long it takes over a question, and the error that it then refuses with, if any.
    mood: Callable[[int], tuple[float, int]]

    def __init__(self, us: Callable[[int], float], refused: Any = ()) -> None:
        # One error is as small as can be, and the other needs more bits than a `short` has.
        self.mood = lambda a: (us(a), (70_004 if a == _A else 1) * (a in refused))
        self.asked = Counter[int]()
        self.open, self.most = 0, 0
        self.behind = 0  # open questions in the end

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
        return self.times * (asking.a - self.less) % 2**64

    @contextmanager
    def run(
        self, kernel: agt.Kernel, *args: Any, packets: int = 4, stuck: str = GIVEN_UP
    ) -> Generator[float]:
        """Run it, and yield how long it takes; in the end all packets are back."""

        def at_end() -> None:
            self.behind = self.open

        how: Any = {"packets": packets, "handlers": {16: self.answer}, "at_end": at_end}
        lost = about(r"__trap\(\)|gave up waiting|waits forever", stuck)
        with lost, beside_host(kernel, *args, **how) as took:
            yield took


def _left(size: int) -> CheckedArray:
    return agt.pin(np.full(size, 99, np.int64))


# ------------------------------------------------------------------ a call that does not wait
def _ask(mine: Any, _model: Any, calls: int, packets: int) -> None:
    out, office = agt.pin(np.zeros(calls, np.uint64)), _Office(lambda _: 50.0)
    stuck = _SHORT if packets < calls else GIVEN_UP
    tried = trial("ASK", mine, cuda("13b_ask_given"), cuda("13b_ask"))
    with tried as kernel, office.run(kernel, calls, agt.mapped(out), packets=packets, stuck=stuck):
        twice = [a for a, times in office.asked.items() if times > 1]
        cause = f"the host was asked for {twice[:1]} more than once: which step comes after asking?"
        must(not twice, cause)
        for k, got in enumerate(out.tolist()):
            a = wide(k + 1, 64)
            must(a in office.asked, f"the host was never asked for {a}, which is `a` of call {k}")
            cause = f"call {k} was answered {wide(_TIMES * (k + 1), 64)}, and `answer` is {got}"
            must(got == wide(_TIMES * (k + 1), 64), cause)
        cause = "two calls were joined, and the host never had both at a time: does `poll` wait?"
        must(min(calls, packets) < 2 or office.most > 1, cause)


def _late(mine: Any, _model: Any, name: str, after: str, then: str) -> None:
    """The host's words are read, or their packet given back, behind the look that found them."""
    args = np.zeros(4, np.uint64), np.zeros(4, np.uint64), 4
    try:
        with trial(name, mine, cuda("13b_ask_late_given"), cuda(after)) as kernel:
            for _ in range(4):  # since it is chance who is late
                (answers,) = left_in((1,), kernel, args, grid=2, block=1)
                cause = f"there is no `__threadfence_system()` between `hostcall_done` and `{then}`: what "
                cause += "the host wrote may come only after that"
                must(answers.tolist() == [10, 20, 30, 40], cause)
    except Rejected as rejected:  # it may call what the block lacks that is the host here
        if not isinstance(rejected.__cause__, agt.errors.KernelCompileError):
            raise


# ------------------------------------------------------------------ what becomes of a packet
def _drop(mine: Any, _model: Any, step: int, us: float) -> None:
    office = _Office(lambda a: us if a == 1 else 5.0)
    tried = trial("DROPPED", mine, cuda("13b_drop_given"), cuda("13b_drop"))
    with tried as kernel, office.run(kernel, step, agt.mapped(_left(1)), packets=2):
        cause = "`dropped` waits for the host, and nobody wants the answer any more: "
        must(step != 2 or us < 20 or office.most > 1, cause + "leave the packet")
        cause = "the host was asked, and nobody wants the answer any more"
        must(step != 1 or [*office.asked] == [2], cause)


# ------------------------------------------------------------------ results and errors
BOTHS: list[tuple[int, int, list[int], float]] = [
    (5, 1, [], 60), (_A, _B, [_A], 60), (_A, _B, [_B], 60), (_A, _B, [_A, _B], 60), (0, _B, [], 50),
    (1, 5, [], _SLOW_US)
]  # fmt: skip


def check_both(mine: Any, model: Any) -> None:
    """Two questions at once; the first error that there is, or the product."""
    with own_lines(mine):
        kernel = as_kernel(mine, "BOTH")
        for a, b, refused, us in BOTHS:
            zero = ", one of which is 0" if a == 0 else ""
            out, office = _left(1), _Office(lambda _, us=us: us, refused)
            right = [-office.mood(q)[1] for q in refused] or [a * _TIMES * b * _TIMES]
            when = case(f"{refused or 'none'} refused, and answers after {us:.0f} µs{zero}")
            with when, office.run(kernel, a, b, agt.mapped(out)):
                cause = f"the host was asked for {sorted(office.asked)}, "
                must(not office.asked - Counter([a, b]), cause + f"and for {a} and {b} is right")
                cause = f"`out[0]` is {int(out[0])}, and {' or '.join(map(str, right))} is right"
                must(int(out[0]) in right, cause)
                must(office.most > 1, "the host never had both questions at a time: join them")
        keeps_waiting(kernel.source, "", 3, 2, agt.mapped(_left(1)))


def check_first(mine: Any, model: Any) -> None:
    """The quicker of two answers, or -1 at the limit."""
    text = mine.source if isinstance(mine, agt.Kernel) else mine
    with own_lines(text, RUNNING):
        kernel = as_kernel(RUNNING + text if isinstance(text, str) else text, "FIRST")
        cases(_race, RACES, "answers after {} and {} µs")(kernel, model)


# When the answers to two questions come, in us, and which is the first; the limit is 101 us.
RACES = [(20, 95, _A), (95, 20, _B), (85, 95, _A), (95, 85, _B), (108, 115, -1), (20, 95, 0)]


def _race(kernel: agt.Kernel, _model: Any, a: int, b: int, first: int) -> None:
    one, out, office = _A if first else 0, _left(1), _Office(lambda q: b if q == _B else a)
    right = -1 if first < 0 else _TIMES * first
    with office.run(kernel, one, _B, agt.mapped(out)):
        cause = f"`out[0]` is {int(out[0])}, and {right} is right: "
        won = "no answer came in time" if first < 0 else f"the answer to {first} came first"
        must(int(out[0]) == right, cause + won)
        asked = sorted(office.asked.elements())
        cause = f"the host was asked for {asked}, and {sorted([one, _B])} at the same time is right"
        must(asked == sorted([one, _B]) and office.most > 1, cause)


# ------------------------------------------------------------------ asking again
OK, NO, LATE, TOO_LATE = (20.0, 0), (20.0, 13), (160.0, 0), -2
_LARGE = 2**62 - 57  # an answer
CLOCKS, BOTH = 200_000, (0, _LARGE)  # a try may take about 100 us; two right answers
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
    out, office = _left(2), _Office(float)
    office.less, office.times = MANY_BITS, _LARGE  # so that one answer is 0

    def mood(a: int) -> tuple[float, int]:
        cause = f"the host was asked for {a}, and `a` is {MANY_BITS} or {MANY_BITS + 1}"
        must(a in (MANY_BITS, MANY_BITS + 1), cause)
        return moods[a - MANY_BITS][min(office.asked[a], len(moods[a - MANY_BITS])) - 1]

    office.mood = mood
    tried, limit = trial("RETRY", mine, cuda("13b_drop_given"), cuda("13b_retry")), 100 * CLOCKS
    args = CLOCKS, limit if right else 150_000, agt.mapped(out)
    with tried as kernel, office.run(kernel, *args, packets=packets):
        for a, (found, due, tries) in enumerate(zip(out.tolist(), right, moods, strict=False), 1):
            asked = office.asked[MANY_BITS + a - 1]
            counted(f"question {a} came to the host", asked, "time", min(len(tries), 3))
            must(found == due, f"`Retry` of question {a} ended with {found}, and {due} is right")
        cause = "the host never had both questions: does `poll` wait?"
        must(packets == 1 or office.most > 1, cause)
        cause = "`drop` waits for an answer that nobody wants any more"
        must(bool(right) or office.behind > 0, cause)


# ------------------------------------------------------------------ the challenge
_TURNS = 50_000  # of loops, since the work for 20 pieces takes 30,000
GOAL_US, WORK_US = 1000.0, 90.0  # the latter: for one piece from a quick host, at least
PIECES = [(1, 1.0, ""), (5, _SLOW_US, ", and bytes that change when their packet is given back"),
          (20, 150.0, ""), (12, 50.0, "")]  # fmt: skip


def check_ahead(mine: Any, model: Any) -> float:
    """Each piece is read and computed once, until one is refused; the score is how long that takes."""
    cast(Any, agt.current_device()).step_budget = _TURNS
    with own_lines(mine):
        kernel = as_kernel(mine, "AHEAD")
        text = mine if isinstance(mine, str) else kernel.source
        took = cast(float, cases(_ahead, PIECES, "{0:piece}{2}")(text, model))
        cases(_stops, [(3,), (0,), (4,)], "piece {} refused")(kernel, model)
        keeps_waiting(text, "", 5, agt.mapped(agt.pin(np.zeros(1, np.float32))))
    must(took < GOAL_US, f"the sum is right, and takes {took:.0f} µs: get below {GOAL_US:.0f}")
    return took


def _ahead(text: str, _model: Any, pieces: int, us: float, changed: str) -> float:
    out, office = agt.pin(np.full(1, 9, np.float32)), _Office(lambda a: 50.0 if a else us)
    before = cuda("13b_spoil") * bool(changed)
    wanted = [*range(pieces)]
    right = sum(3**0.5 + piece % 7 for piece in wanted)
    with own_lines(text, before):
        kernel = as_kernel(before + text, "AHEAD")
        with office.run(kernel, pieces, agt.mapped(out)) as took:
            asked = sorted(office.asked.elements())
            cause = f"the host was asked for pieces {asked[:14]}, and 0 to {pieces - 1} is right"
            must(asked == wanted, cause)
            cause = f"the sum is {out[0]:.2f}, and {right:.2f} is right"
            must(abs(float(out[0]) - right) < 1e-3 * right, cause)
    cause = f"a piece that comes at once took {took:.0f} µs, and over {WORK_US:.0f} with the work given: "
    must(pieces > 1 or took >= WORK_US, cause + "leave `work` as it is, and read ahead")
    return took


def _stops(kernel: agt.Kernel, _model: Any, refused: int) -> None:
    out, office = agt.pin(np.full(1, 99, np.float32)), _Office(lambda _: 50.0, [refused])
    with office.run(kernel, 5, agt.mapped(out)):
        must(out[0] == 99, f"`*out` is {out[0]:.2f}, and nothing should be stored: look at `error`")


CHAPTER_13B = (
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
