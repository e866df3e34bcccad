"""What the exercises of 08_profiling check. The rest of them is in `chapter_08`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.devices.simulated import Machine, SimDevice
from asyncgpu_tutor.errors import PageableCopyWarning
from asyncgpu_tutor.exercises.exercise import Rejected, case, compared
from asyncgpu_tutor.exercises.schedule import launches
from asyncgpu_tutor.exercises.trial import Observed, observe
from asyncgpu_tutor.exercises.values import equal
from asyncgpu_tutor.kernels import Kernel, matvec_naive, relu
from asyncgpu_tutor.ops import DeviceOp, h2d, pin, zeros
from asyncgpu_tutor.run import using, work
from asyncgpu_tutor.traces.analysis import diagnose
from asyncgpu_tutor.traces.spans.vocabulary import count
from asyncgpu_tutor.traces.trace import Trace

__all__ = [
    "SUSPECTS",
    "check_big_kernel",
    "check_few_streams",
    "check_hidden_wait",
    "check_in_the_loop",
    "check_null_stream",
    "check_pageable",
    "check_warm",
    "hostile_in_flight",
    "hostile_in_the_loop",
    "hostile_pageable",
]

# What each would look like: told to who suspects the wrong one.
SUSPECTS: Mapping[str, str] = {
    "null stream": "work in the lane of stream 0",
    "hidden synchronisation": "a wait on the host's lane, and calls for more work after it",
    "pageable copy": "calls for a copy that last about as long as the copy itself",
    "lazy module loading": "one call that is far longer than all others, when a kernel is first used",
    "allocation in the loop": "a `malloc` in every one of five rounds or more, each after the one before",
    "too few streams": "one operation right behind another on a stream, and room on the device",
    "one big kernel": "one kernel that has most of the device's time, with blocks enough to fill it",
}

Array = Any
LOADING = 900.0  # us


# ------------------------------------------------------------------ all cases
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


def _free_of(culprit: str, trace: Trace, expected: Trace) -> None:
    """The detective finds neither the culprit, nor another that the solution does not have."""
    by_id = {span.id: span for span in trace}
    findings = {finding.name: finding for finding in diagnose(trace)}
    if culprit in findings:
        found = findings[culprit]
        raise Rejected(
            f"the diagnosis is right, and the trace of the program still shows it: {found.sentence}",
            *[by_id[i] for i in found.spans[:2]],
        )
    known = {finding.name for finding in diagnose(expected)}
    for found in findings.values():
        if found.name not in known:
            raise Rejected(
                f"{culprit} is gone, and {found.name} has come in its place: {found.sentence}",
                *[by_id[i] for i in found.spans[:2]],
            )


def _as_busy(trace: Trace, expected: Trace) -> None:
    """Streams work together for at least half as long as they do in the solution."""
    m = trace.metrics()
    mine, due = m.overlap, expected.metrics().overlap
    if mine < due / 2 and m.host["call"] > 0.8 * m.makespan:
        raise Rejected(
            "the detective finds nothing any more, but the device is no better used: the host makes calls "
            f"for {m.host['call']:.0f} µs of {m.makespan:.0f}, and everybody waits for it. Ask for less, and "
            "for more at a time",
            *[span for span in trace if span.kind == "call"][:2],
        )
    if mine < due / 2:
        raise Rejected(
            f"the detective finds nothing any more, but the device is no better used: two streams or more "
            f"were at work for {mine:.0f} µs, and {due:.0f} are possible. Is somebody waiting elsewhere now?",
            *trace.device_spans[:2],
        )


def _listed(name: str, results: object, expected: Sequence[Array]) -> None:
    if not isinstance(results, list | tuple):
        raise Rejected(
            f"`{name}` should return a list of results, and returned {type(results).__name__}"
        )
    found = cast(Sequence[Any], results)
    if len(found) != len(expected):
        raise Rejected(
            f"`{name}` returned {count(len(found), 'result')}, and {len(expected)} are right"
        )
    for i, (got, right) in enumerate(zip(found, expected, strict=True)):
        with case(f"result {i}"):
            equal(got, right)


def _copies(number: int, size: int) -> tuple[list[DeviceOp[Any]], list[Array]]:
    """There and back, and what should come back."""
    arrays = [pin(np.full(size, i + 1, np.float32)) for i in range(number)]
    return [h2d(x, "chunk").to_host().named(f"chunk {i}") for i, x in enumerate(arrays)], arrays


def _narrow(number: int) -> tuple[list[DeviceOp[Any]], list[Array]]:
    """Kernels of one block each, that take their time, and the vectors that they compute."""
    rows, columns = 256, 2048
    matrix = h2d(pin(np.ones((rows, columns), np.float32)), "matrix").share().sync()
    vectors = [np.full(columns, i + 1, np.float32) for i in range(number)]
    on_device = [h2d(pin(vector), "vector").share().sync() for vector in vectors]
    ops = [
        matvec_naive(rows, columns, matrix, x, zeros(rows, name=f"out {i}").partition(256))
        .last()
        .unpartition()
        .to_host()
        .named(f"matvec {i}")
        for i, x in enumerate(on_device)
    ]
    return ops, [np.full(rows, columns * (i + 1), np.float32) for i in range(number)]


Made = Callable[..., tuple[list[DeviceOp[Any]], list[Array]]]


def _check_in_flight(
    name: str, mine: Any, model: Any, culprit: str, make: Made, *sizes: tuple[int, ...]
) -> None:
    """A program that runs given operations: no defect, as much overlap as possible, right results."""
    program = _program(name, mine, culprit)
    for size in sizes:
        expected = observe(model[1], make(*size)[0]).trace
        ops, right = make(*size)
        run: Observed[Any] = observe(program, ops)
        with compared(run.trace, expected):
            launches(run.trace, "d2h", len(ops))
            _free_of(culprit, run.trace, expected)
            _as_busy(run.trace, expected)
        _listed(program.__name__, run.result, right)


def hostile_in_flight(mine: Any, _model: Any) -> None:
    """Results are right and in order, whatever takes how long."""
    ops, right = _copies(4, 64)
    run: Observed[Any] = observe(mine[1], ops)
    _listed(mine[1].__name__, run.result, right)


def check_hidden_wait(mine: Any, model: Any) -> None:
    """Case A."""
    _check_in_flight(
        "case_a", mine, model, "hidden synchronisation", _copies, (4, 500_000), (3, 1_000_000)
    )


def check_few_streams(mine: Any, model: Any) -> None:
    """Case B: with six, and with eight."""
    _check_in_flight("case_b", mine, model, "too few streams", _narrow, (6,), (8,))


def check_null_stream(mine: Any, model: Any) -> None:
    """Case C."""
    _check_in_flight("case_c", mine, model, "null stream", _copies, (4, 500_000), (5, 500_000))


# ------------------------------------------------------------------ pageable copies
def _sent(program: Callable[..., Any], number: int, size: int) -> Observed[Any]:
    arrays = [np.full(size, i + 1, np.float32) for i in range(number)]

    def make(x: Array) -> DeviceOp[Any]:
        return h2d(x, "chunk").to_host()

    return _quietly(program, make, arrays)


def _quietly(program: Callable[..., Any], *args: Any) -> Observed[Any]:
    """Without the warning of pageable copies, which would say what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PageableCopyWarning)
        return observe(program, *args)


def check_pageable(mine: Any, model: Any) -> None:
    """Case D: copies are pinned, in flight together, and none is overwritten while it is read."""
    program = _program("case_d", mine, "pageable copy")
    for number, size in [(4, 500_000), (3, 1_000_000)]:
        expected, run = _sent(model[1], number, size).trace, _sent(program, number, size)
        with compared(run.trace, expected):
            launches(run.trace, "d2h", number)
            _free_of("pageable copy", run.trace, expected)
            _as_busy(run.trace, expected)
        _listed("program_d", run.result, [np.full(size, i + 1, np.float32) for i in range(number)])


def hostile_pageable(mine: Any, _model: Any) -> None:
    """No buffer is filled anew before the device has read it."""
    run = _sent(mine[1], 4, 64)
    _listed("program_d", run.result, [np.full(64, i + 1, np.float32) for i in range(4)])


# ------------------------------------------------------------------ loading
def _benchmarked(program: Callable[..., Any], rounds: int) -> Observed[Any]:
    """On a device that has not loaded anything."""
    with using(SimDevice(machine=Machine(), load_us=LOADING)):
        x = pin(np.full(1024, -1.0, np.float32))

        def make() -> DeviceOp[Any]:
            def positive(array: DeviceArray) -> DeviceOp[DeviceArray]:
                blocks = array.partition(256)
                return relu(1024, blocks, blocks).last().unpartition()

            return h2d(x, "x").and_then(positive).to_host()

        return observe(program, make, rounds)


def check_warm(mine: Any, model: Any) -> None:
    """Case E: the trace that comes back has all rounds, and no loading."""
    program = _program("case_e", mine, "lazy module loading")
    for rounds in (4, 6):
        expected = _benchmarked(model[1], rounds).result
        trace = _benchmarked(program, rounds).result
        if not isinstance(trace, Trace):
            raise Rejected(
                f"`program_e` should return the trace, and returned {type(trace).__name__}"
            )
        with compared(trace, expected):
            _free_of("lazy module loading", trace, expected)
            launches(trace, "relu", rounds)


# ------------------------------------------------------------------ allocation
def _positive(array: DeviceArray) -> DeviceOp[DeviceArray]:
    blocks = array.partition(256)
    return relu(array.size, blocks, blocks).last().unpartition()


def _iterated(program: Callable[..., Any], rounds: int, size: int) -> Observed[Any]:
    """Each round needs the result of the one before; the host halves it and subtracts 1 in between."""

    def step(y: Array) -> Array:
        work(10, "step")
        return pin(y / 2 - 1)

    return observe(program, pin(_start(size)), _positive, step, rounds)


def _start(size: int) -> Array:
    return np.linspace(-100, 100, size, dtype=np.float32)


def _right(rounds: int, size: int) -> Array:
    x = _start(size)
    for _ in range(rounds):
        x = np.maximum(x, 0) / 2 - 1
    return x


def check_in_the_loop(mine: Any, model: Any) -> None:
    """Case F: as many rounds as before, one array for all of them."""
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
_A, _C, _TIMES = 1664525, 1013904223, 1600
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
    """What all those steps come to: they are one step of the same form."""
    a, c = 1, 0
    for _ in range(_TIMES):
        a, c = a * _A % 2**32, (c * _A + _C) % 2**32
    return x * np.uint32(a) + np.uint32(c)


def _split(program: Callable[..., Any], size: int) -> Observed[Any]:
    def mix_of(_n: int, x: Array) -> Array:
        return _mixed(x)

    # Its reference computes the large launches: nobody wants to wait for the interpreter.
    with using(SimDevice(machine=Machine(), stand_in_above=1e6)):
        kernel = Kernel(MIX, reference=mix_of)

        def job(part: Array) -> DeviceOp[Any]:
            def mix(array: DeviceArray) -> DeviceOp[Any]:
                return kernel(array.size, array.partition(256)).last().unpartition()

            return h2d(part, "part").and_then(mix).to_host()

        return _quietly(program, job, pin(np.arange(size, dtype=np.uint32)))


def check_big_kernel(mine: Any, model: Any) -> None:
    """Case G: in parts, whose copies overlap the kernels; the whole result, in order."""
    program = _program("case_g", mine, "one big kernel")
    for size in (2_000_000, 1_600_000):
        expected, run = _split(model[1], size).trace, _split(program, size)
        with compared(run.trace, expected):
            _free_of("one big kernel", run.trace, expected)
            _as_busy(run.trace, expected)
        with case(f"{size:,} numbers"):
            equal(run.result, _mixed(np.arange(size, dtype=np.uint32)))
