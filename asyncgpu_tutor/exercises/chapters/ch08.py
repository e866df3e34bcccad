"""Exercises of 08_profiling: what each one checks."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.chapters.ch08_reports import REPORTS
from asyncgpu_tutor.exercises.checks import Array, equal, filled, in_order, launches, waits
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import count
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, private_device
from asyncgpu_tutor.exercises.watched import RangeLog, watched

__all__ = ["EXERCISES"]


# ------------------------------------------------------------------ ranges
def _look_up(_handle: object) -> object:
    settings: dict[str, object] = {}
    return settings["scale"]


def _handled(
    answer: Callable[..., Any], number: int, failing: int | None
) -> tuple[agt.Trace, RangeLog]:
    """Try an answer on requests that are handled together, of which one may fail."""
    log = RangeLog()

    def prepare(i: int) -> Array:
        agt.work(20, f"prepare {i}")
        return agt.pin(filled(200_000, i + 1))

    def process(x: Array) -> agt.DeviceOp[Any]:
        i = int(x[0]) - 1
        op = agt.h2d(x).to_host().named(f"copy {i}")
        return op.map(_look_up) if i == failing else op

    async def all_of_them() -> list[Any]:
        tasks = [answer(i, prepare, process) for i in range(number)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    with watched(log) as trace:
        results = call(all_of_them)
    for i, result in enumerate(cast(Sequence[Any], results)):
        if i != failing:
            with case(f"result {i}"):
                equal(result, filled(200_000, i + 1))
    return trace, log


def _counted(log: RangeLog, name: str, number: int) -> None:
    found = [one.name for one in log.closed]
    if found.count(name) + log.open.count(name) != number:
        names = ", ".join(f"`{n}`" for n in dict.fromkeys(found))
        raise Rejected(
            f"{count(number, 'request')} should give {count(number, 'range')} called `{name}`, and gave "
            f"{found.count(name)}. Ranges that there are: {names}"
        )


def check_annotated(mine: Any, model: Any) -> None:
    """Each request and each preparation has a range, however tasks take turns, and none is left open."""
    for number, failing in [(3, None), (2, None), (3, 1)]:
        expected, _ = _handled(model, number, failing)
        trace, log = _handled(mine, number, failing)
        with compared(trace, expected):
            waits(trace, 0, "`sync` blocks the event loop, and with it every other request")
            if log.open:
                raise Rejected(
                    f"`process` failed for one request, and its range `{log.open[0]}` was never closed: "
                    "a range that is opened has to be closed whatever happens"
                )
            _counted(log, "request", number)
            _counted(log, "prepare", number)
            if any(one.mixed for one in log.closed if one.name == "request"):
                raise Rejected(
                    "a range `request` was opened by one task and closed by another: `span` keeps a "
                    "stack, and tasks that await take turns on it",
                    *_drawn(trace, "request")[:2],
                )
            _cover(trace, number, failing)
            _prepare_only(trace, number)


def _drawn(trace: agt.Trace, name: str) -> list[agt.types.Span]:
    return [span for span in trace.find(name) if span.kind == "range"]


def _cover(trace: agt.Trace, number: int, failing: int | None) -> None:
    """Each range `request` holds all that was done for it, to the copy back."""
    ranges = _drawn(trace, "request")
    for i in range(number):
        own = [s for s in trace if s.label == f"copy {i}" and s.on_device and i != failing]
        own += trace.find(f"prepare {i}")
        first, last = min(s.start for s in own), max(s.end for s in own)
        if not any(one.start <= first and last <= one.end for one in ranges):
            raise Rejected(
                f"no range `request` holds all of request {i}, from its preparation to its result",
                *ranges[:1],
                max(own, key=lambda s: s.end),
            )


def _prepare_only(trace: agt.Trace, number: int) -> None:
    """The ranges `prepare` hold the preparations, and no more."""
    jobs = [span for i in range(number) for span in trace.find(f"prepare {i}")]
    for job, one in zip(sorted(jobs, key=lambda s: s.start), _drawn(trace, "prepare"), strict=True):
        if not (one.start <= job.start and job.end <= one.end <= job.end + 1):
            raise Rejected(
                f"the range `prepare` should hold `{job.name}`, and nothing else", one, job
            )


# ------------------------------------------------------------------ all cases
# Says how each defect could be recognised. An answer that suspects the wrong one is told that one's mark.
SUSPECTS: Mapping[str, str] = {
    "null stream": "work in the lane of stream 0",
    "hidden synchronisation": "a wait on the host's lane, and calls for more work after it",
    "pageable copy": "calls for a copy that last about as long as the copy itself",
    "lazy module loading": "one call that is far longer than all others, when a kernel is first used",
    "allocation in the loop": "a `malloc` in every one of five rounds or more, each after the one before",
    "too few streams": "one operation right behind another on a stream, and room on the device",
    "one big kernel": "one kernel that has most of the device's time, with blocks enough to fill it",
}


def _program(name: str, answer: object, culprit: str) -> Callable[..., Any]:
    """The program of an answer whose diagnosis is right."""
    letter = name[-1]
    pair = cast(tuple[object, ...], answer) if isinstance(answer, tuple) else ()
    if len(pair) != 2 or not callable(pair[1]):
        raise Rejected(
            f'`{name}` should be two things, the culprit and the program: `{name} = "...", '
            f"program_{letter}`"
        )
    said = pair[0]
    if said not in SUSPECTS:
        listed = ", ".join(f'"{suspect}"' for suspect in SUSPECTS)
        raise Rejected(f"who is the culprit? In place of {said!r} there should be one of {listed}")
    if said != culprit:
        raise Rejected(
            f'the culprit is not "{said}". By that one would be known: {SUSPECTS[str(said)]}. Look at the '
            "exhibit again"
        )
    return cast(Callable[..., Any], pair[1])


def _free_of(culprit: str, trace: agt.Trace, expected: agt.Trace) -> None:
    """The detective finds neither the culprit, nor another that the solution does not have."""
    by_id = {span.id: span for span in trace}
    known = {finding.name for finding in agt.diagnose(expected)}
    findings = [finding for finding in agt.diagnose(trace) if not finding.limit]
    for found in sorted(findings, key=lambda finding: finding.name != culprit):
        edge = [by_id[i] for i in found.spans[:2]]
        if found.name == culprit:
            raise Rejected(
                f"the diagnosis is right, and the trace of the program still shows it: {found.sentence}",
                *edge,
            )
        if found.name not in known:
            raise Rejected(
                f"{culprit} is gone, and {found.name} has come in its place: {found.sentence}",
                *edge,
            )


def _as_busy(trace: agt.Trace, expected: agt.Trace) -> None:
    """Streams work together for at least half as long as they do in the solution."""
    m = trace.metrics()
    mine, due = m.overlap, expected.metrics().overlap
    if mine >= due / 2:
        return
    if m.host["call"] > 0.8 * m.makespan:
        raise Rejected(
            "the detective finds nothing any more, but the device is no better used: the host makes calls "
            f"for {m.host['call']:.0f} µs of {m.makespan:.0f}, and everybody waits for it. Ask for less, and "
            "for more at a time",
            *[span for span in trace if span.kind == "call"][:2],
        )
    raise Rejected(
        f"the detective finds nothing any more, but the device is no better used: two streams or more "
        f"were at work for {mine:.0f} µs, and {due:.0f} are possible. Is somebody waiting elsewhere now?",
        *trace.device_spans[:2],
    )


def _quietly(program: Callable[..., Any], *args: Any) -> Observed[Any]:
    """Try a program without the warning of pageable copies, which would say what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)
        return observe(program, *args)


# ------------------------------------------------------------------ operations in flight
# What a program is called with, and the arrays that it should return.
Given = tuple[tuple[Any, ...], list[Array]]


def _copies(number: int, size: int) -> Given:
    """Operations that copy there and back."""
    arrays = [agt.pin(filled(size, i + 1)) for i in range(number)]
    ops = [agt.h2d(x, "chunk").to_host().named(f"chunk {i}") for i, x in enumerate(arrays)]
    return (ops,), arrays


def _narrow(number: int) -> Given:
    """Operations whose kernels are of one block each, and take their time."""
    rows, columns = 256, 2048
    matrix = agt.h2d(agt.pin(np.ones((rows, columns), np.float32)), "matrix").share().sync()

    def product(i: int) -> agt.DeviceOp[Any]:
        x = agt.h2d(agt.pin(filled(columns, i + 1)), "vector").share().sync()
        out = agt.zeros(rows, name=f"out {i}").partition(256)
        y = agt.matvec_naive(rows, columns, matrix, x, out).output()
        return y.to_host().named(f"matvec {i}")

    ops = [product(i) for i in range(number)]
    return (ops,), [np.full(rows, columns * (i + 1), np.float32) for i in range(number)]


def _pageable(number: int, size: int) -> Given:
    """A function that makes an operation of an array, and arrays in pageable memory."""

    def make(x: Array) -> agt.DeviceOp[Any]:
        return agt.h2d(x, "chunk").to_host()

    arrays = [filled(size, i + 1) for i in range(number)]
    return (make, arrays), [x.copy() for x in arrays]


def _case(
    name: str, culprit: str, make: Callable[..., Given], *sizes: tuple[int, ...]
) -> Callable[[Any, Any], None]:
    """A check that a program has lost its defect, overlaps as much as possible, and gives right results."""

    def check(mine: Any, model: Any) -> None:
        program = _program(name, mine, culprit)
        for size in sizes:
            expected = _quietly(model[1], *make(*size)[0]).trace
            args, right = make(*size)
            run = _quietly(program, *args)
            with compared(run.trace, expected):
                launches(run.trace, "d2h", len(right))
                _free_of(culprit, run.trace, expected)
                _as_busy(run.trace, expected)
            in_order(program.__name__, run.result, right)

    return check


def _hostile(make: Callable[..., Given]) -> Callable[[Any, Any], None]:
    """A check that results are right and in order, whatever takes how long."""

    def check(mine: Any, _model: Any) -> None:
        args, right = make(4, 64)
        in_order(mine[1].__name__, _quietly(mine[1], *args).result, right)

    return check


# ------------------------------------------------------------------ loading
def _positive(array: agt.DeviceArray) -> agt.DeviceOp[agt.DeviceArray]:
    blocks = array.partition(256)
    return agt.relu(array.size, blocks, blocks).output()


def _benchmarked(program: Callable[..., Any], rounds: int) -> Observed[Any]:
    """Try a program on a device that has not loaded anything."""
    with private_device(load_us=900.0):
        x = agt.pin(filled(1024, -1.0))
        return observe(program, lambda: agt.h2d(x, "x").and_then(_positive).to_host(), rounds)


def check_warm(mine: Any, model: Any) -> None:
    """Case E: the trace that comes back has all rounds in it, and no loading."""
    program = _program("case_e", mine, "lazy module loading")
    for rounds in (4, 6):
        expected = _benchmarked(model[1], rounds).result
        trace = _benchmarked(program, rounds).result
        if not isinstance(trace, agt.Trace):
            raise Rejected(
                f"`program_e` should return the trace, and returned {type(trace).__name__}"
            )
        with compared(trace, expected):
            _free_of("lazy module loading", trace, expected)
            launches(trace, "relu", rounds)


# ------------------------------------------------------------------ allocation
def _iterated(program: Callable[..., Any], rounds: int, size: int) -> Observed[Any]:
    """Each round needs the result of the one before; the host halves it and subtracts 1 in between."""

    def step(y: Array) -> Array:
        agt.work(10, "step")
        return agt.pin(y / 2 - 1)

    return observe(program, agt.pin(_start(size)), _positive, step, rounds)


def _start(size: int) -> Array:
    return np.linspace(-100, 100, size, dtype=np.float32)


def _right(rounds: int, size: int) -> Array:
    x = _start(size)
    for _ in range(rounds):
        x = np.maximum(x, 0) / 2 - 1
    return x


def check_in_the_loop(mine: Any, model: Any) -> None:
    """Case F: the program runs as many rounds as before, with one array for all of them."""
    program = _program("case_f", mine, "allocation in the loop")
    for rounds, size in [(8, 10_000), (6, 3_000)]:
        expected = _iterated(model[1], rounds, size).trace
        run = _iterated(program, rounds, size)
        with compared(run.trace, expected):
            launches(run.trace, "relu", rounds)
            _free_of("allocation in the loop", run.trace, expected)
        with case(f"{rounds} rounds"):
            equal(run.result, _right(rounds, size))


def hostile_in_the_loop(mine: Any, _model: Any) -> None:
    """The result is complete before the next round uses it."""
    equal(_iterated(mine[1], 5, 64).result, _right(5, 64))


# ------------------------------------------------------------------ one big kernel
# A generator of pseudo-random numbers, so often that it takes a while: x -> (a x + c) mod 2^32, with the
# constants of Numerical Recipes (Press and others), "Quick and Dirty Generators".
_A, _C, _TIMES = 1664525, 1013904223, 3200
MIX = f"""
extern "C" __global__ void mix(unsigned int n, unsigned int* x) {{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{
        unsigned int v = x[i];
        for (unsigned int t = 0; t < {_TIMES}; t++) v = v * {_A}u + {_C}u;
        x[i] = v;
    }}
}}
"""


def _mixed(x: Array) -> Array:
    """The result of all those steps, which come to one step of the same form."""
    a, c = 1, 0
    for _ in range(_TIMES):
        a, c = a * _A % 2**32, (c * _A + _C) % 2**32
    return x * np.uint32(a) + np.uint32(c)


def _split(program: Callable[..., Any], size: int) -> Observed[Any]:
    def mix_of(_n: int, x: Array) -> Array:
        return _mixed(x)

    # The reference computes the large launches, because the interpreter would take too long.
    with private_device(stand_in_above=1e6):
        kernel = agt.Kernel(MIX, reference=mix_of)

        def job(part: Array) -> agt.DeviceOp[Any]:
            def mix(array: agt.DeviceArray) -> agt.DeviceOp[Any]:
                return kernel(array.size, array.partition(256)).output()

            return agt.h2d(part, "part").and_then(mix).to_host()

        return _quietly(program, job, agt.pin(np.arange(size, dtype=np.uint32)))


def check_big_kernel(mine: Any, model: Any) -> None:
    """Case G: the program works in parts, whose copies overlap the kernels, and returns the whole result."""
    program = _program("case_g", mine, "one big kernel")
    for size in (2_000_000, 1_600_000):
        expected, run = _split(model[1], size).trace, _split(program, size)
        with compared(run.trace, expected):
            _free_of("one big kernel", run.trace, expected)
            _as_busy(run.trace, expected)
        with case(f"{size:,} numbers"):
            equal(run.result, _mixed(np.arange(size, dtype=np.uint32)))


EXERCISES = (
    Exercise("08-annotate", "Ranges around an `await`", "handle", check_annotated),
    *REPORTS,
    Exercise(
        "08-case-a",
        "Case A",
        "case_a",
        _case("case_a", "hidden synchronisation", _copies, (4, 500_000), (3, 1_000_000)),
        _hostile(_copies),
    ),
    Exercise(
        "08-case-b",
        "Case B",
        "case_b",
        _case("case_b", "too few streams", _narrow, (6,), (8,)),
        _hostile(_copies),
    ),
    Exercise(
        "08-case-c",
        "Case C",
        "case_c",
        _case("case_c", "null stream", _copies, (4, 500_000), (5, 500_000)),
        _hostile(_copies),
    ),
    Exercise(
        "08-case-d",
        "Case D",
        "case_d",
        _case("case_d", "pageable copy", _pageable, (4, 500_000), (3, 1_000_000)),
        _hostile(_pageable),
    ),
    Exercise("08-case-e", "Case E", "case_e", check_warm),
    Exercise("08-case-f", "Case F", "case_f", check_in_the_loop, hostile_in_the_loop),
    Exercise("08-case-g", "Case G", "case_g", check_big_kernel),
)
