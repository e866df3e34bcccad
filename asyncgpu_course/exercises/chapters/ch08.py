"""Exercises of 08_profiling: what each one checks. Answers on reports are checked against their files."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.operations import filled
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief, equal, in_order, is_number
from asyncgpu_course.checks.sandbox import Observed, call, observe, private_device
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.answers import slips
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.exhibits import EXHIBITS, report
from asyncgpu_course.internals import count
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
    complaint = f"`process` failed for one request, and its range `{''.join(log.open[:1])}` was "
    complaint += "never closed"
    must(not log.open, f"{complaint}: close what you open, whatever happens")
    found = [one.name for one in log.closed]
    there = ", ".join(f"`{name}`" for name in dict.fromkeys(found))
    for name in ("request", "prepare"):
        complaint = f"{number} requests should give {number} ranges called `{name}`, and gave "
        ranges = f"{found.count(name)}. Ranges that there are: {there}"
        must(found.count(name) == number, complaint + ranges)
    requests = [span for span in trace.find("request") if span.kind == "range"]
    prepared = [span for span in trace.find("prepare") if span.kind == "range"]
    mixed = any(one.mixed for one in log.closed if one.name == "request")
    complaint = "a range `request` was opened by one task and closed by another: "
    must(
        not mixed, complaint + "`span` keeps a stack, and tasks that await share it", *requests[:2]
    )
    schedule.each_once(trace, *[f"process {i}" for i in range(number)])
    jobs = [job for i in range(number) for job in trace.find(f"prepare {i}")]
    for i in range(number):
        size = 4 * (_SIZE + i)
        own = [s for s in trace.device_spans if s.detail.get("bytes") == size and i != failing]
        own += trace.find(f"prepare {i}")
        first, last = min(s.start for s in own), max(s.end for s in own)
        held = any(one.start <= first and last <= one.end for one in requests)
        complaint = f"no range `request` holds all of request {i}, from its preparation to its "
        complaint += "result"
        must(held, complaint, *requests[:1], max(own, key=lambda s: s.end))
    for job, one in zip(sorted(jobs, key=lambda s: s.start), prepared, strict=True):
        held = one.start <= job.start and job.end <= one.end <= job.end + 1
        must(held, f"the range `prepare` should hold `{job.name}`, and nothing else", one, job)
    must("request" not in left.open or failing is None, "a cancelled request left its range open")


# ------------------------------------------------------------------ reports
# In words, and what makes the arguments anew: an answer may change what it is given.
Case = tuple[str, Callable[[], tuple[Any, ...]]]


def reads(
    exercise: str, name: str, wanted: str, cases: Callable[[], Sequence[Case]]
) -> Callable[[Any, Any], None]:
    """A check that a function of this name gives, of each case, what the solution gives.

    That is numbers to a thousandth or rounded as a page would, text as it is, and as many as are `wanted`: in
    words, such as ``"(start, end)"``. Whoever returns the same as a usual mistake is told which one.
    """

    def check(mine: Any, model: Any) -> None:
        found = list[tuple[Any, Callable[[], tuple[Any, ...]]]]()
        for words, make in cases():
            expected = model(*make())
            with case(words):
                got = call(mine, *make())
                found.append((got, make))
                gave, parts = _exhibit_parts(got), _exhibit_parts(expected)
                complaint = f"`{name}` should return {wanted}, "
                must(len(gave) == len(parts), f"{complaint}and returned {brief(got)}")
                if not _same(got, expected):
                    complaint += f"here {_shown(parts)}, and returned {_shown(gave)}"
                    # A mistake that shows in an earlier case already is another one.
                    alike = (
                        why
                        for why, wrong in slips(exercise, name)
                        if all(_same(gave, wrong(*make())) for gave, make in reversed(found))
                    )
                    reason = next(alike, "") or _reason(gave, parts, wanted)
                    raise Rejected(f"{complaint}. {reason}" if reason else complaint)

    return check


def _exhibit_parts(value: Any) -> Sequence[Any]:
    given = value.tolist() if hasattr(value, "tolist") else value  # an array may come out, too
    return cast(Sequence[Any], given if isinstance(given, tuple | list) else (given,))


def _same(got: Any, expected: Any) -> bool:
    mine, parts = _exhibit_parts(got), _exhibit_parts(expected)
    return len(mine) == len(parts) and all(map(_fits, mine, parts))


def _fits(one: object, right: Any) -> bool:
    if isinstance(right, str) or not is_number(one):
        return isinstance(one, str) and one == right
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


def _given(words: str) -> tuple[Any, ...]:
    """A report, and what is asked about in it, as the words of the case name them."""
    name, *asked_about = words.split(" and ")
    letter = name.removeprefix("exhibit ")
    if letter == name:
        return Trace.from_nsys(Trace.recorded_file(f"{name}.sqlite")), *asked_about
    return report(letter[0], repaired="repaired" in letter), *asked_about


def _named(*words: str) -> list[Case]:
    return [(each, partial(_given, each)) for each in words]


def _made_up(*spans: tuple[str, float, float, int]) -> Trace:
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
IN_TURNS = (
    (0, "gemm", 0, 10), (0, "h2d ", 10, 50), (0, "ncclSum", 90, 100), (0, "ncclSum", 165, 200),
    (0, "ncclSum", 210, 260), (1, "gemm", 0, 5), (1, "ncclSum", 5, 100), (1, "call ncclSum", 50, 52),
    (1, "gemm_nccl", 200, 215), (1, "h2d ", 195, 255), (1, "ncclSum", 105, 200), (1, "ncclSum", 255, 260),
)  # fmt: skip
# The longest gap is before `b`, and those before `c` add up to more.
_LONGEST = ("kernel a", 0, 10, 0), ("call", 66, 68, 0), ("kernel b", 110, 120, 0)
FIRST = ("call", 168, 170, 0), ("kernel c", 171, 180, 0)
_AGAIN = ("call", 228, 230, 0), ("kernel c", 231, 240, 0)
_SIZES = [8_000_000, *[4_000] * 50]  # the small ones carry next to nothing
MIXED = [("h2d", 300.0 * i, 300.0 * i + 2 + n / 5e4, n) for i, n in enumerate(_SIZES)]


def _by_device(*spans: tuple[int, str, float, float]) -> Trace:
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
        return *_given(name), ["stencil", "is it still?"]
    rows = [*((f"range {n}", us) for n, us in _STEPS.items()), ("call e", [5] * 25)]
    spans = [(n, 1e3 * i, 1e3 * i + us, 0) for n, found in rows for i, us in enumerate(found)]
    return _made_up(*spans, ("range e_all", 0, 9e3, 0)), list(_STEPS)


def _growing() -> Trace:
    rounds = [(f"range {name}", enumerate(found)) for name, found in _ROUNDS.items()]
    rounds += [(f"{kind} {kind}", enumerate([1] * 10 + [900] * 10)) for kind in ("kernel", "call")]
    return _made_up(*[(x, 1e4 * i, 1e4 * i + us, 0) for x, found in rounds for i, us in found])


# ------------------------------------------------------------------ the line-up
NAMES = {x: EXHIBITS[x][3:].replace("_", " ") for x in "ABDG"}
SUSPECTS = {*NAMES.values(), "host-bound", "innocent"}


def _disguised(
    trace: Trace, pace: float = 1, blocks: float = 1, fills: int = 0, waits: int = 1, **longer: float
) -> Trace:  # fmt: skip
    """The same suspect elsewhere: slower machines, other grids, work and calls that are `longer` by name.

    Kernels may fill arrays, and waits be in several steps. The host waits for all at the end.
    """
    made: list[Span] = []
    for span in (span for span in trace if span.kind != "range"):
        about = {k: v for k, v in span.detail.items() if k in {"bytes", "block", "pageable"}}
        kind = "kernel" if fills and span.kind == "memset" else span.kind
        if kind == "kernel":  # the first of them may be one that fills
            small = fills and (span.kind == "memset" or all(s.kind != "kernel" for s in made))
            size = fills if small else round(blocks * math.prod(cast(Any, span.detail["grid"])))
            about["grid"] = (size, 1, 1)
        name = span.name if span.name.startswith("enqueue") else kind
        steps = waits if kind == "wait" else 1
        took = pace * span.duration * longer.get(name.replace(" ", "_"), 1) / steps
        for start in (pace * span.start + i * took for i in range(steps)):
            times: Any = {"start": start, "end": start + took, "label": "x", "detail": about}
            made.append(replace(span, kind=cast(Any, kind), name=name, **times))
    last = max((s for s in made if s.kind == "call"), key=lambda s: s.end)
    end = max(s.end for s in made)
    made.append(replace(last, id=-1, kind="wait", name="wait", start=last.end, end=end, after=()))
    return Trace(sorted(made, key=lambda s: s.start), "made up")


def _narrow(kernels: int, streams: int) -> Trace:
    """Kernels of one block each, on a simulated device, taking turns on a few streams."""
    x, own = agt.zeros((_ROWS, _COLUMNS)).sync(), [agt.create_stream() for _ in range(streams)]
    score = _scoring()
    with agt.record() as trace:
        for i in range(kernels):
            score(x.borrow()).async_on(own[i % streams])
    agt.synchronize()
    return trace


def line_up() -> list[tuple[str, Trace, str]]:
    """Exhibits, then rounds that nobody has seen, each with its suspect."""
    found = [(f"exhibit {x}", report(x), NAMES.get(x, "innocent")) for x in "ABDGH"]
    for x, name in NAMES.items():
        for twin, right in (("", name), ("_repaired", "host-bound" if x == "G" else "innocent")):
            again = Trace.load_recording(EXHIBITS[x] + twin)
            trace = _disguised(again, enqueue_h2d=1.25 if x == "D" else 1)  # is D's 61 % much?
            found.append((f"exhibit {x}{twin and ', repaired'}, recorded once more", trace, right))
    (plate,) = _given("heat_annotated")
    steps = [span.start for span in plate.find("step") if span.kind == "range"]
    b, a_twin, fast = report("B"), report("A", repaired=True), partial(_disguised, h2d=0.3, d2h=0.3)
    four = Trace.load_recording(EXHIBITS["G"] + "_repaired")
    return [
        *found,
        ("three steps of the plate", plate.between(steps[30], steps[33]), "host-bound"),
        ("half of A on a slow machine", fast(report("A").between(100, 730), 7, waits=8), NAMES["A"]),
        ("B with twelve times the blocks", _disguised(b, blocks=12), NAMES["B"]),
        ("B with all but one kernel large", _disguised(b, blocks=1000, fills=1), "innocent"),
        ("D on a quick machine", fast(report("D"), pace=0.2), NAMES["D"]),
        ("G with three quarters of the blocks", _disguised(report("G"), blocks=0.75, fills=1), NAMES["G"]),
        ("G's twin with few blocks", _disguised(four, 1, 0.1, fills=1, kernel=1.8), "innocent"),
        ("G's twin with slow calls", _disguised(four, kernel=2, enqueue_memset=4, enqueue_d2h=5), "innocent"),
        ("a quarter of A's twin, slower", _disguised(a_twin.between(0, 500), 3, enqueue_h2d=0.7), "innocent"),
        ("small copies over a fast bus", _disguised(report("F"), h2d=0.4), "host-bound"),
        ("nine narrow kernels on three streams", _disguised(_narrow(9, 3)), NAMES["B"]),
    ]  # fmt: skip


def _numbers(trace: Trace) -> str:
    """Measure what the page's table of suspects asks for."""
    m, calls = trace.metrics(), [s for s in trace if s.kind == "call"]
    last, run = max(s.start for s in calls), m.device_makespan
    waits = math.fsum(s.duration for s in trace if s.kind == "wait" and s.start < last)
    copies = math.fsum(s.duration for s in calls if s.name == "enqueue h2d")
    kernels = [s for s in trace.device_spans if s.kind == "kernel"]
    big, lanes = max(kernels, key=lambda s: s.duration), len({s.stream for s in kernels})
    blocks = count(math.prod(cast(Any, big.detail["grid"])), "block")
    return (
        f"waits with calls after them last for {waits / run:.0%} of the run, and calls that copy to the GPU "
        f"for {copies / run:.0%}; the GPU stands still for {m.device_idle / run:.0%}; its longest kernel has "
        f"{blocks}, and {big.duration / m.device_active:.0%} of the busy time; "
        f"{count(len(kernels), 'kernel')} ran on {count(lanes, 'stream')}"
    )


def check_accuse(mine: Any, _model: Any) -> None:
    """The rule names the suspect in each exhibit, and in rounds that nobody has seen."""
    wrong, rounds = list[tuple[str, str, Trace]](), line_up()
    for words, trace, right in rounds:
        with case(words):
            said = str(call(mine, trace)).replace("ization", "isation")
            must(said in SUSPECTS, f"`accuse` returned {said!r}, and the table has no such name")
        wrong += [(words, said, trace)] if said != right else []
    for words, said, trace in wrong[:1]:
        complaint = f"{len(rounds) - len(wrong)} of {len(rounds)} are right. With {words}, it "
        complaint += f"isn't {said!r}: "
        raise Rejected(complaint + _numbers(trace))


def _step(name: str) -> float:
    ends = [s.end for s in _given(name)[0].of("cuda:0").device_spans if "cupy_subtract" in s.name]
    return float(np.median(np.diff(ends[2::3])))


def check_gain(mine: Any, model: Any) -> None:
    """A prediction from one report is what its repair gained, as recorded, within a tenth."""
    recorded, uneven = _step("two_gpus") / _step("two_gpus_even"), _by_device(*IN_TURNS)
    made_up = "GPUs that wait for each other", lambda: (uneven,), model(uneven)
    for words, make, right in (("two_gpus", lambda: _given("two_gpus"), recorded), made_up):
        with case(words):
            got = call(mine, *make())
            said = f"{got:.2f}" if is_number(got) else brief(got)
            complaint = (
                f"you predicted {said} times as fast, and it's {right:.2f} (within a tenth will do)"
            )
            if not (is_number(got) and abs(got - right) < 0.1 * right):
                found = slips("08-gain", "gain") if is_number(got) else ()
                alike = (w for w, slip in found if math.isclose(got, slip(*make()), rel_tol=0.02))
                raise Rejected(". ".join([complaint, *list(alike)[:1]]))


# ------------------------------------------------------------------ challenge
_ROWS, _COLUMNS = 64, 8192
_GOAL_US = 800.0
_ROW = np.arange(_ROWS, dtype=np.float32)


def _scoring() -> Callable[[agt.DeviceArray], agt.DeviceOp[Any]]:
    """A score of each row of a matrix, computed in a single block."""
    weights = agt.h2d(agt.pin(np.ones(_COLUMNS, np.float32)), "weights").share().sync()

    def score(x: agt.DeviceArray) -> agt.DeviceOp[Any]:
        def product(y: agt.DeviceArray) -> agt.DeviceOp[Any]:
            return agt.matvec_naive(_ROWS, _COLUMNS, x, weights, y.partition(_ROWS)).output()

        return agt.zeros(_ROWS, name="scores").and_then(product)

    return score


def served(program: Callable[..., Any], number: int) -> tuple[Observed, list[bool]]:
    """Try an answer on matrices that it has to read, each of which is for a kernel of a single block.

    The warning of pageable copies is kept back, because it would say a part of what is wrong. Returns also of
    each array that was read into whether it is pinned.
    """
    requests = [np.repeat(_ROW[:, None] + (i + 1), _COLUMNS, 1) for i in range(number)]
    read: list[bool] = []

    def read_into(unread: list[CheckedArray], buffer: CheckedArray) -> None:
        buffer[...] = unread.pop()
        read.append(agt.current_device().is_pinned(buffer))

    score = _scoring()
    with warnings.catch_warnings(), moved() as numbers:
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
        run = observe(program, [partial(read_into, [x]) for x in requests], score)
    numbers.by_kernels(run.result, requests)
    return run, read


def check_served(mine: Any, _model: Any) -> float:
    """All requests get their scores, in order; no picture of the solution gives away how to be quick."""
    found = served(mine, 8)
    _scored(found, 8)
    # Before the clock calls it right, since requests end in turn here, and not everywhere.
    with private_device(adversary=1), case("a device that takes its time"):
        _scored(served(mine, 9), 9)
    took = schedule.below(_GOAL_US, found[0].trace)
    schedule.never_blocks(found[0].trace)
    complaint = f"{took:.0f} µs, but this clock leaves something out: {found[1].count(False)} "
    complaint += "requests were read into ordinary memory and copied to pinned memory afterwards. "
    complaint += "The driver did that before, and "
    must(all(found[1]), f"{complaint}it takes the host as long. Where else could they be read to?")
    return took


def _scored(found: tuple[Observed, list[bool]], number: int) -> None:
    """Scores are complete before anybody reads them, whatever takes how long."""
    right = [_COLUMNS * (_ROW + i + 1) for i in range(number)]
    in_order("serve", found[0].result, right)


EXERCISES = (
    Exercise("08-costliest", "What costs most in a long run", "costliest",
             reads("08-costliest", "costliest", "one of the names", lambda: [
                 (name, partial(_costs, name)) for name in (
                     "odd values and spans of other kinds", "heat_annotated", "heat_looks_less")])),
    Exercise("08-suspects", "The line-up", "accuse", check_accuse),
    Exercise("08-challenge", "Challenge: a slow server", "serve", check_served,
             runs(served, _scored, [(9,)], "")),
    Exercise("08-creeping", "What grows", "creeping",
             reads("08-creeping", "creeping", "the name of a range", lambda: [
                 ("ranges with odd values", lambda: (_growing(),)), *_named("swarm")])),
    Exercise("08-stats", "A share, and what it would save", "saving",
             reads("08-stats", "saving", "(% of the kernels, % saved at most)", lambda: [
                 *_named("exhibit G and sgemm_naive", "swarm and cupy_add__float32_float32_float32",
                         "exhibit B and matvec_naive"),
                 ("names that are alike", lambda: (_made_up(*NAMED, ("range relu", 0, 40, 0)), "relu")),
                 ("a host that begins early", lambda: (_made_up(("call", 0, 40, 0), *_CHAIN), "relu")),
                 ("two GPUs", lambda: (_by_device(*IN_TURNS), "gemm"))])),
    Exercise("08-annotate", "Ranges around an `await`", "handle",
             runs(_handled, _annotated, [(3, None), (2, None), (3, 1)], "{} requests")),
    Exercise("08-gap", "The idle multiprocessors", "largest_gap",
             reads("08-gap", "largest_gap", "(start, end)", lambda: [
                 *_named("exhibit A", "exhibit D", "exhibit A repaired"),
                 ("kernels beside a long copy", lambda: (_made_up(*_COPIES, *KERNELS),)),
                 ("short kernels beside a long one", lambda: (_made_up(*_LONG, *KERNELS),)),
                 ("kernels in another order than their starts", lambda: (_made_up(*UNSORTED),)),
                 ("kernels with gaps of less than a µs", lambda: (_made_up(*_CLOSE),)),
                 ("kernels without a gap", lambda: (_made_up(*_BUSY),)),
                 ("a single kernel", lambda: (_made_up(*_BUSY[:1]),))])),
    Exercise("08-blame", "Whose work was late", "blame", reads("08-blame", "blame", "(label, µs)", lambda: [
                 *_named("exhibit A", "exhibit D", "exhibit A repaired", "exhibit G repaired"),
                 ("a label with two gaps", lambda: (_made_up(*_LONGEST, *FIRST, *_AGAIN),))])),
    Exercise("08-rate", "GB/s of the bus", "rate", reads("08-rate", "rate", "GB/s", lambda: [
                 *_named("exhibit D", "exhibit D repaired"),
                 ("copies of two sizes", lambda: (_made_up(*MIXED, ("memset", 0, 9, 4_000)),))])),
    Exercise("08-waited", "Who waits for whom", "waited",
             reads("08-waited", "waited", "(µs of GPU 0, µs of GPU 1)", lambda: [
                 *_named("two_gpus", "two_gpus_even"),
                 ("each late once", lambda: (_by_device(*IN_TURNS),))])),
    Exercise("08-gain", "What an even share would gain", "gain", check_gain),
)  # fmt: skip
