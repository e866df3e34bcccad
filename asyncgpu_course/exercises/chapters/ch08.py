"""Exercises of 08_profiling: what each one checks. Answers on reports are checked against their files."""

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.operations import filled
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal, is_number
from asyncgpu_course.checks.sandbox import call
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.answers import slips
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.exhibits import report
from asyncgpu_course.recorded_ranges import RangeLog, watched
from asyncgpu_tutor import Trace
from asyncgpu_tutor.types import Span

# ------------------------------------------------------------------ ranges
# Each request is one longer than the one before. Its copies are known by that, since an answer may name them.
_SIZE = 200_000


def _handled(
    answer: Callable[..., Any], number: int, failing: int | None
) -> tuple[Trace, RangeLog, RangeLog]:
    """Try an answer on requests that are handled together, of which one may fail, and on a cancelled one."""
    log = RangeLog()

    def prepare(i: int) -> CheckedArray:
        agt.work(20, f"prepare {i}")
        return agt.pin(filled(_SIZE + i, i + 1))

    def process(x: CheckedArray) -> agt.DeviceOp[Any]:
        i = int(x[0]) - 1
        agt.work(5, f"process {i}")
        op = agt.h2d(x).to_host().named(f"copy {i}")
        return op.map(lambda _: dict[str, Any]()["scale"]) if i == failing else op

    async def all_of_them() -> list[Any]:
        tasks = [asyncio.ensure_future(answer(i, prepare, process)) for i in range(number)]
        await asyncio.gather(*tasks, return_exceptions=True)
        return tasks

    with watched(log) as trace:
        tasks = call(all_of_them)
    for i, task in enumerate(cast(Sequence[Any], tasks)):
        with case(f"request {i}"):
            if i != failing or task.exception() is None:
                must(i != failing, "`process` fails, and its error should come out")
                equal(call(task.result), filled(_SIZE + i, i + 1))

    async def cancelled() -> None:
        task = asyncio.ensure_future(answer(0, prepare, process))
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.wait([task])

    with watched(left := RangeLog()):
        call(cancelled)
    return trace, log, left


def _annotated(run: tuple[Trace, RangeLog, RangeLog], number: int, failing: int | None) -> None:
    """Each request and each preparation has a range, however tasks take turns, and none is left open."""
    trace, log, left = run
    schedule.waits(trace, 0, "`sync` or `synchronize` blocks the event loop and all other requests")
    cause = f"`process` failed for one request, and its range `{''.join(log.open[:1])}` was "
    must(not log.open, cause + "never closed: close what you open, whatever happens")
    found = [one.name for one in log.closed]
    there = ", ".join(f"`{name}`" for name in dict.fromkeys(found))
    for name in ("request", "prepare"):
        cause = f"{number} requests should give {number} ranges called `{name}`, and gave "
        cause += f"{found.count(name)}. Ranges that there are: {there}"
        must(found.count(name) == number, cause)
    requests = [span for span in trace.find("request") if span.kind == "range"]
    prepared = [span for span in trace.find("prepare") if span.kind == "range"]
    mixed = any(one.mixed for one in log.closed if one.name == "request")
    cause = "a range `request` was opened by one task and closed by another: "
    must(not mixed, cause + "`span` keeps a stack, and tasks that await share it", *requests[:2])
    schedule.each_once(trace, *[f"process {i}" for i in range(number)])
    jobs = [job for i in range(number) for job in trace.find(f"prepare {i}")]
    for i in range(number):
        size = 4 * (_SIZE + i)
        own = [s for s in trace.device_spans if s.detail.get("bytes") == size and i != failing]
        own += trace.find(f"prepare {i}")
        first, last = min(s.start for s in own), max(s.end for s in own)
        held = any(one.start <= first and last <= one.end for one in requests)
        cause = f"no range `request` holds all of request {i}, from its preparation to its result"
        must(held, cause, *requests[:1], max(own, key=lambda s: s.end))
    for job, one in zip(sorted(jobs, key=lambda s: s.start), prepared, strict=True):
        held = one.start <= job.start and job.end <= one.end <= job.end + 1
        must(held, f"the range `prepare` should hold `{job.name}`, and nothing else", one, job)
    must("request" not in left.open or failing is None, "a cancelled request left its range open")


# ------------------------------------------------------------------ reports
# In words, and what makes the arguments anew: an answer may change what it is given.
Case = tuple[str, Callable[[], tuple[Any, ...]]]


def reads(exercise: str, title: str, name: str, wanted: str, *cases: Case) -> Exercise:
    """An exercise whose function, of this name, has to give of each case what the solution gives.

    That is numbers to a thousandth or rounded as a page would, text as it is, and as many as are `wanted`: in
    words, such as ``"(start, end)"``. Whoever returns the same as a usual mistake is told which one.
    """

    def compare(mine: Any, model: Any) -> None:
        found = list[tuple[Any, Callable[[], tuple[Any, ...]]]]()
        for words, make in cases:
            expected = model(*make())
            with case(words):
                got = call(mine, *make())
                found.append((got, make))
                gave, parts = _exhibit_parts(got), _exhibit_parts(expected)
                cause = f"`{name}` should return {wanted}, "
                must(len(gave) == len(parts), f"{cause}and returned {brief(got)}")
                if not _same(got, expected):
                    cause += f"here {_shown(parts)}, and returned {_shown(gave)}"
                    # A mistake that shows in an earlier case already is another one.
                    alike = (
                        why
                        for why, wrong in slips(exercise, name)
                        if all(_same(gave, wrong(*make())) for gave, make in reversed(found))
                    )
                    reason = next(alike, "") or _reason(gave, parts, wanted)
                    raise Rejected(f"{cause}. {reason}" if reason else cause)

    return Exercise(exercise, title, name, compare)


def _exhibit_parts(value: Any) -> Sequence[Any]:
    given = value.tolist() if hasattr(value, "tolist") else value  # an array may come out, too
    return cast(Sequence[Any], given if isinstance(given, tuple | list) else (given,))


def _same(got: Any, expected: Any) -> bool:
    mine, parts = _exhibit_parts(got), _exhibit_parts(expected)
    return len(mine) == len(parts) and all(map(_fits, mine, parts))


def _fits(one: object, right: Any) -> bool:
    if isinstance(right, str) or not is_number(one):
        return isinstance(one, str | float) and one == right  # inf is no number
    given, places = float(cast(Any, one)), (0, 1, 2) if abs(right) >= 10 else (1, 2)
    rounded = any(math.isclose(given, round(right, place), abs_tol=1e-9) for place in places)
    return rounded or math.isclose(given, right, rel_tol=1e-3, abs_tol=1e-3)


def _shown(parts: Sequence[Any]) -> str:
    shown = [f"{p:.6g}" if is_number(p) else repr(p) for p in parts]
    return f"({', '.join(shown)})" if len(shown) > 1 else shown[0]


def _reason(mine: Sequence[Any], parts: Sequence[Any], wanted: str) -> str:
    """Say what is wrong with numbers, as far as they tell by themselves; else nothing."""
    if len(parts) > 1 and _same(mine[::-1], parts):
        return "That's the right answer the wrong way round"
    both = [(a, b) for a, b in zip(mine, parts, strict=True) if is_number(a) and is_number(b) and a]
    pairs = [(float(a), float(b)) for a, b in both]
    if len(pairs) == len(parts) and all(b for _, b in pairs):
        for power in (-9, -6, -3, -2, 2, 3, 6, 9):  # of ten, as in wrong units
            if all(math.isclose(a, b * 10.0**power, rel_tol=5e-3) for a, b in pairs):
                much = f"{10 ** abs(power):,} times too {'much' if power > 0 else 'little'}"
                unit = "a fraction is not yet percent" if "%" in wanted else "look at the unit"
                return f"That's {much}: {unit}"
    right = [str(i) for i, pair in enumerate(zip(mine, parts, strict=True), 1) if _fits(*pair)]
    return f"Of {len(parts)}, number {' and '.join(right)} is right" if right else ""


def given(words: str) -> tuple[Any, ...]:
    """A report, and what is asked about in it, as the words of the case name them."""
    name, *asked_about = words.split(" and ")
    letter = name.removeprefix("exhibit ")
    if letter == name:
        return Trace.from_nsys(Trace.recorded_file(f"{name}.sqlite")), *asked_about
    return report(letter[0], repaired="repaired" in letter), *asked_about


def named(*words: str) -> list[Case]:
    """Cases that are reports, by what `given` calls them."""
    return [(each, partial(given, each)) for each in words]


def made_up(*spans: tuple[str, float, float, int]) -> Trace:
    """A trace of work: kind and name, start, end, bytes. Each piece has a stream, after the one above."""
    made: list[Span] = []
    for i, (what, start, end, size) in enumerate(spans):
        kind, _, name = what.partition(" ")
        detail, row = {"bytes": size}, (name or "x", start, end, "cuda:0", i)
        made.append(Span(i + 1, cast(Any, kind), *row, label=name[:1], after=(i,), detail=detail))
    return Trace(made, "made up")


_COPIES = ("h2d", 0, 100, 4), ("memset", 30, 40, 4), ("d2h", 110, 120, 4)
_LONG = ("kernel", 0, 100, 0), ("kernel", 105, 110, 0)
KERNELS = ("kernel", 10, 20, 0), ("kernel", 80, 90, 0)
_CLOSE = [("kernel", 10 * i + i % 3 / 8, 10.0 * i + 10, 0) for i in range(4)]
NAMED = ("h2d", 0, 90, 4), ("kernel relu", 0, 5, 0), ("kernel relu_all", 5, 25, 0)
_CHAIN = ("kernel add", 40, 70, 0), ("kernel relu", 70, 100, 0)
# What costs most in the long run is `f`. By the sum it's `a`, by the mean `b`, by the median `c`, and so on.
_STEPS = {"a": [4, *[5] * 7, 900, 4], "b": [9, 9, 892, 9, 9], "c": [11, 16, 16, 11], "d": [1.5] * 30,
         "e": [5] * 3, "f": [1, *[7] * 5, 2, 7, 8, 7, 1], "g": [12] * 4, "h": [1, 1, 901, 1, 1],
         "i": [2, 90, 100, *[2] * 7, 110, 120, 2]}  # fmt: skip
_BUSY = ("kernel", 8, 10, 0), ("kernel", 9, 20, 0), ("h2d", 20, 30, 4)
UNSORTED = ("kernel", 50, 60, 0), ("kernel", 0, 10, 0), ("kernel", 20, 30, 0)
IN_TURNS = ((0, "gemm", 0, 10), (0, "h2d ", 10, 50), (0, "ncclSum", 90, 100), (0, "ncclSum", 165, 200),
    (0, "ncclSum", 210, 260), (1, "gemm", 0, 5), (1, "ncclSum", 5, 100), (1, "call ncclSum", 50, 52),
    (1, "gemm_nccl", 200, 215), (1, "h2d ", 195, 255), (1, "ncclSum", 105, 200), (1, "ncclSum", 255, 260),
)  # fmt: skip
# The longest gap is before `b`, and those before `c` add up to more.
_LONGEST = ("kernel a", 0, 10, 0), ("call", 66, 68, 0), ("kernel b", 110, 120, 0)
FIRST = ("call", 168, 170, 0), ("kernel c", 171, 180, 0)
_AGAIN = ("call", 228, 230, 0), ("kernel c", 231, 240, 0)


# What happens once, a step of the old and of the new program, in µs, and how many times as fast.
_REPAIRS = {
    "the plate, to be twice as fast": (293_716.0, 190.19, 32.93, 2),
    "the plate, to be four times as fast": (293_716.0, 190.19, 32.93, 4),
    "the plate, to be six times as fast": (293_716.0, 190.19, 32.93, 6),
    "programs that are as fast at once": (300.0, 9.0, 8.0, 1),
    "`times` as the paces' ratio": (300.0, 8.0, 2.0, 4),
}


def by_device(*spans: tuple[int, str, float, float]) -> Trace:
    """A trace of work, each with the number of its GPU, kind and name (else a kernel's), start and end."""
    made = [
        Span(i, cast(Any, what.rpartition(" ")[0] or "kernel"), what.split()[-1], a, b, f"cuda:{n + 2}", 1)
        for i, (n, what, a, b) in enumerate(spans)
    ]  # fmt: skip
    return Trace(made, "made up")


# Durations by name, of which the first and last ten of `early` differ most. `rare` has too few to tell.
_ROUNDS = {
    "early": [1] * 6 + [2] * 8 + [20] * 6, "late": [200] * 10 + [250] * 8 + [40_000, 250],
    "halves": [10] * 10 + [1] * 11 + [90] * 11 + [10] * 10, "fives": [0.1] * 5 + [1] * 20 + [20.5] * 5,
    "dip": [1] * 5 + [9] * 5 + [1] * 31 + [27] * 10, "rare": [1] * 10 + [50] * 9, "low": [95] * 10 + [1] * 10,
    "more": [1] * 10 + [5] * 5 + [19.7] * 10, "long": [1_000] * 15 + [1_200] * 15,
    "sudden": [1] * 10 + [19.5] * 10,
}  # fmt: skip


def _costs(name: str) -> tuple[Any, ...]:
    """A trace, and the names of some of its ranges."""
    if "odd" not in name:
        return *given(name), ["stencil", "is it still?"]
    rows = [*((f"range {n}", us) for n, us in _STEPS.items()), ("call e", [5] * 25)]
    spans = [(n, 1e3 * i, 1e3 * i + us, 0) for n, found in rows for i, us in enumerate(found)]
    return made_up(*spans, ("range e_all", 0, 9e3, 0)), list(_STEPS)


def _growing() -> Trace:
    rounds = [(f"range {name}", enumerate(found)) for name, found in _ROUNDS.items()]
    rounds += [(f"{kind} {kind}", enumerate([1] * 10 + [900] * 10)) for kind in ("kernel", "call")]
    return made_up(*[(x, 1e4 * i, 1e4 * i + us, 0) for x, found in rounds for i, us in found])


CHAPTER_08 = (
    reads("08-costliest", "What costs most in a long run", "costliest", "one of the names",
          *((name, partial(_costs, name)) for name in (
              "odd values and spans of other kinds", "heat_annotated", "heat_looks_less"))),
    reads("08-creeping", "What grows", "creeping", "the name of a range",
          ("ranges with odd values", lambda: (_growing(),)), *named("swarm")),
    reads("08-stats", "A share, and what it would save", "saving", "(% of the kernels, % saved at most)",
          *named("exhibit G and sgemm_naive", "swarm and cupy_add__float32_float32_float32",
                 "exhibit B and matvec_naive"),
          ("names that are alike", lambda: (made_up(*NAMED, ("range relu", 0, 40, 0)), "relu")),
          ("a host that begins early", lambda: (made_up(("call", 0, 40, 0), *_CHAIN), "relu")),
          ("two GPUs", lambda: (by_device(*IN_TURNS), "gemm"))),
    reads("08-enough", "How many steps are enough", "enough", "a number of steps",
          *((words, partial(tuple, numbers)) for words, numbers in _REPAIRS.items())),
    Exercise("08-annotate", "Ranges around an `await`", "handle",
             runs(_handled, _annotated, [(3, None), (2, None), (3, 1)], "{} requests")),
    reads("08-gap", "The idle multiprocessors", "largest_gap", "(start, end)",
          *named("exhibit A", "exhibit D", "exhibit A repaired"),
          ("kernels beside a long copy", lambda: (made_up(*_COPIES, *KERNELS),)),
          ("short kernels beside a long one", lambda: (made_up(*_LONG, *KERNELS),)),
          ("kernels in another order than their starts", lambda: (made_up(*UNSORTED),)),
          ("kernels with gaps of less than a µs", lambda: (made_up(*_CLOSE),)),
          ("kernels without a gap", lambda: (made_up(*_BUSY),)),
          ("a single kernel", lambda: (made_up(*_BUSY[:1]),))),
    reads("08-blame", "Whose work was late", "blame", "(label, µs)",
          *named("exhibit A", "exhibit D", "exhibit A repaired", "exhibit G repaired"),
          ("a label with two gaps", lambda: (made_up(*_LONGEST, *FIRST, *_AGAIN),))),
)  # fmt: skip
