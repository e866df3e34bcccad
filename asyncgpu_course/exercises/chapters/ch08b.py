"""Exercises of 08b_detective: what each one checks."""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import CheckedArray, brief, in_order, is_number
from asyncgpu_course.checks.sandbox import Observed, call, observe, private_device
from asyncgpu_course.checks.trials import runs
from asyncgpu_course.exercises.answers import slips
from asyncgpu_course.exercises.chapters import ch08
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.exhibits import EXHIBITS, report
from asyncgpu_course.internals import count
from asyncgpu_tutor import Trace
from asyncgpu_tutor.types import Span

_SIZES = [8_000_000, *[4_000] * 50]  # the small ones carry next to nothing
MIXED = [("h2d", 300.0 * i, 300.0 * i + 2 + n / 5e4, n) for i, n in enumerate(_SIZES)]


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
    (plate,) = ch08.given("heat_annotated")
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
        cause = f"{len(rounds) - len(wrong)} of {len(rounds)} are right. With {words}, it isn't {said!r}: "
        raise Rejected(cause + _numbers(trace))


def _step(name: str) -> float:
    spans = ch08.given(name)[0].of("cuda:0").device_spans
    ends = [span.end for span in spans if "cupy_subtract" in span.name]
    return float(np.median(np.diff(ends[2::3])))


def check_gain(mine: Any, model: Any) -> None:
    """A prediction from one report is what its repair gained, as recorded, within a tenth."""
    recorded, uneven = _step("two_gpus") / _step("two_gpus_even"), ch08.by_device(*ch08.IN_TURNS)
    made_up = "GPUs that wait for each other", lambda: (uneven,), model(uneven)
    for words, make, right in (("two_gpus", lambda: ch08.given("two_gpus"), recorded), made_up):
        with case(words):
            got = call(mine, *make())
            said = f"{got:.2f}" if is_number(got) else brief(got)
            cause = f"you predicted {said} times as fast, "
            cause += f"and it's {right:.2f} (within a tenth will do)"
            if not (is_number(got) and abs(got - right) < 0.1 * right):
                found = slips("08b-gain", "gain") if is_number(got) else ()
                alike = (w for w, slip in found if math.isclose(got, slip(*make()), rel_tol=0.02))
                raise Rejected(". ".join([cause, *list(alike)[:1]]))


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
    cause = f"{took:.0f} µs, but this clock leaves something out: {found[1].count(False)} requests were read "
    cause += "into ordinary memory and copied to pinned memory afterwards. The driver did that before, and "
    must(all(found[1]), cause + "it takes the host as long. Where else could they be read to?")
    return took


def _scored(found: tuple[Observed, list[bool]], number: int) -> None:
    """Scores are complete before anybody reads them, whatever takes how long."""
    right = [_COLUMNS * (_ROW + i + 1) for i in range(number)]
    in_order("serve", found[0].result, right)


CHAPTER_08B = (Exercise("08b-suspects", "The line-up", "accuse", check_accuse),
    Exercise("08b-challenge", "Challenge: a slow server", "serve", check_served,
             runs(served, _scored, [(9,)], "")),
    ch08.reads("08b-rate", "GB/s of the bus", "rate", "GB/s",
               *ch08.named("exhibit D", "exhibit D repaired"),
               ("copies of two sizes", lambda: (ch08.made_up(*MIXED, ("memset", 0, 9, 4_000)),))),
    ch08.reads("08b-waited", "Who waits for whom", "waited", "(µs of GPU 0, µs of GPU 1)",
               *ch08.named("two_gpus", "two_gpus_even"),
               ("each late once", lambda: (ch08.by_device(*ch08.IN_TURNS),))),
    Exercise("08b-gain", "What an even share would gain", "gain", check_gain),
)  # fmt: skip
