"""Exercises of 02_streams_and_events: what each one checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks import (
    Array,
    equal,
    filled,
    in_order,
    launches,
    on_stream,
    ordered,
    overlapping,
    step,
    unordered,
    waits,
)
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case, compared
from asyncgpu_tutor.exercises.internals import overlap_between
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, on_fresh_device

__all__ = ["EXERCISES"]

NO_WAIT = "an event makes the *device* wait, and Python goes on"


def _on_device(x: Array, name: str) -> agt.DeviceArray:
    return agt.h2d(x, name).sync()


def _read(handle: object, what: str) -> Array:
    """The array that `async_on` has returned a handle of; the device is done by now."""
    if not isinstance(handle, agt.types.HostArray):
        raise Rejected(
            f"{what} should come back, as `async_on` gives it, and this did: {type(handle).__name__}"
        )
    return handle.numpy()


# ------------------------------------------------------------------ order the race
def _two(answer: Any, n: int) -> tuple[Observed[Any], agt.types.Stream, agt.types.Stream]:
    one, two = agt.create_stream(), agt.create_stream()
    x = _on_device(np.zeros(n, np.float32), "x")
    write, read = step("write", 0.0, 7.0, x, x), agt.d2h(x.borrow()).named("read")
    return observe(answer, write, read, one, two), one, two


def check_order_the_race(mine: Any, model: Any) -> None:
    """Both are where they belong, in order, by an event and not by a wait."""
    for n in (100_000, 1000):
        expected, *_ = on_fresh_device(_two, model, n)
        run, one, two = _two(mine, n)
        with compared(run.trace, expected.trace):
            launches(run.trace, "write", 1)
            launches(run.trace, "d2h", 1)
            waits(run.trace, 0, NO_WAIT)
            on_stream(run.trace, "write", one.number)
            on_stream(run.trace, "d2h", two.number)
            ordered(run.trace, "write", "d2h")
        call(agt.synchronize)
        equal(_read(run.result, "the result of `second`"), filled(n, 7))


# ------------------------------------------------------------------ fork and join
def _fork(
    answer: Any, number: int, n: int
) -> tuple[Observed[Any], agt.types.Stream, list[agt.types.Stream]]:
    """Try an answer on x = 1 (prepare), y_i = (i + 2) * x (branch i), and copies of all y_i (combine)."""
    main, streams = agt.create_stream(), [agt.create_stream() for _ in range(number)]
    x = _on_device(np.zeros(n, np.float32), "x")
    results = [_on_device(np.zeros(n, np.float32), f"y{i}") for i in range(number)]
    prepare = step("prepare", 0.0, 1.0, x, x)
    branches = [step(f"branch{i}", i + 2.0, 0.0, x, y) for i, y in enumerate(results)]
    combine = agt.zip(*[agt.d2h(y.borrow()) for y in results]).named("combine")
    return observe(answer, prepare, branches, combine, main, streams), main, streams


def _combined(result: object, number: int, n: int) -> None:
    call(agt.synchronize)
    parts = cast(Sequence[object], result if isinstance(result, tuple) else ())
    if len(parts) != number:
        raise Rejected("`fork_join` should return what `combine` returns, as `async_on` gives it")
    for i, part in enumerate(parts):
        equal(_read(part, f"result {i}"), filled(n, i + 2))


def check_fork_join(mine: Any, model: Any) -> None:
    """Each part is on its stream; the branches follow the fork, precede the join, and are free."""
    for number, n in [(2, 100_000), (3, 1000)]:
        expected, *_ = on_fresh_device(_fork, model, number, n)
        run, main, streams = _fork(mine, number, n)
        with case(f"{number} branches"), compared(run.trace, expected.trace):
            waits(run.trace, 0, NO_WAIT)
            on_stream(run.trace, "prepare", main.number)
            on_stream(run.trace, "d2h", main.number)
            for i, stream in enumerate(streams):
                launches(run.trace, f"branch{i}", 1)
                on_stream(run.trace, f"branch{i}", stream.number)
            for i in range(1, number):
                unordered(run.trace, f"branch{i - 1}", f"branch{i}")
        _combined(run.result, number, n)


# ------------------------------------------------------------------ two buffers
FILL_US = 60.0


def _refill(answer: Any, number: int, size: int) -> tuple[Observed[Any], bool]:
    """Upload `number` chunks through two buffers, and tell also whether the last copy was done on return."""
    buffers = [agt.pinned(size), agt.pinned(size)]
    stream = agt.create_stream()

    def fill(buffer: Any, i: int) -> None:
        if not any(buffer is mine for mine in buffers):
            raise Rejected("`fill` was given an array that is none of the two buffers")
        agt.work(FILL_US, f"fill {i}")
        buffer[:] = i + 1

    device = agt.current_device()

    def upload() -> tuple[Any, float]:
        begun = device.now()
        return answer(fill, number, buffers, stream), device.now() - begun

    run = observe(upload)
    result, returned = run.result
    return Observed(result, run.trace), all(s.end <= returned for s in run.trace.device_spans)


def _all_copied(done: bool, trace: agt.Trace) -> None:
    if not done:
        raise Rejected(
            "`upload_all` returned while the last copy was still on its way: its caller may use the "
            "buffers again",
            *trace.find("h2d")[-1:],
        )


def _uploaded(arrays: object, number: int, size: int) -> None:
    found = cast(Sequence[object], arrays if isinstance(arrays, list | tuple) else ())
    if len(found) != number or not all(isinstance(array, agt.DeviceArray) for array in found):
        raise Rejected(f"`upload_all` should return the {number} device arrays, in a list")
    for i, array in enumerate(found):
        with case(f"{number} chunks, for chunk {i}"):
            back = call(agt.d2h(cast(agt.DeviceArray, array).borrow()).sync)
            equal(back, filled(size, i + 1))


def check_two_buffers(mine: Any, model: Any) -> None:
    """No buffer changes under a copy, and filling one goes on while the other is copied."""
    for number, size in [(5, 1_000_000), (2, 1_000_000), (1, 1000)]:
        expected, _ = on_fresh_device(_refill, model, number, size)
        run, done = _refill(mine, number, size)
        with case(f"{number} chunks"), compared(run.trace, expected.trace):
            launches(run.trace, "h2d", number)
            for i in range(1, number):
                overlapping(
                    run.trace,
                    f"fill {i}",
                    "wait only for the copy *out of this very buffer*, and as late as you can",
                )
            _all_copied(done, run.trace)
        _uploaded(run.result, number, size)


def hostile_two_buffers(mine: Any, _model: Any) -> None:
    """All is copied when the function returns, however long a copy takes."""
    run, done = _refill(mine, 5, 100)
    _all_copied(done, run.trace)
    _uploaded(run.result, 5, 100)


# ------------------------------------------------------------------ chunks
# One thread goes along a whole row, so a narrow matrix keeps the device busy for long.
WEIGH = r"""
extern "C" __global__ void weigh(unsigned int rows, unsigned int n, const float* table,
                                 const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        for (unsigned int t = 0; t < n; t++) {
            y[row * n + t] = table[t] * x[row * n + t];
        }
    }
}
"""


def _pipeline(
    answer: Any, number: int, streams: int, rows: int, n: int
) -> tuple[Observed[Any], list[agt.types.Stream], list[Array]]:
    weigh = agt.Kernel(WEIGH)
    random = np.random.default_rng(number)
    table = random.standard_normal(n, dtype=np.float32)
    chunks = [agt.pin(random.standard_normal((rows, n), dtype=np.float32)) for _ in range(number)]
    host = agt.pin(table)

    def process(chunk: Any, there: agt.DeviceArray) -> agt.DeviceOp[Any]:
        x = agt.h2d(chunk, "chunk")
        y = agt.zeros((rows, n), name="y")
        grid = -(-rows // 64)
        return weigh(rows, n, there.borrow(), x, y, grid=grid, block=64).output().to_host()

    mine = [agt.create_stream() for _ in range(streams)]
    run = observe(answer, agt.h2d(host, "table"), process, chunks, mine)
    return run, mine, [table * chunk for chunk in chunks]


def _chunks(results: object, expected: list[Array]) -> None:
    in_order("pipeline", results, expected, f"{len(expected)} chunks, for chunk")


def _copies_meet_kernels(trace: agt.Trace) -> None:
    if not overlap_between(trace, trace.find("h2d"), trace.find("weigh")):
        raise Rejected(
            "no chunk was copied while another was computed: deal the chunks out to the streams",
            *trace.find("weigh")[:1],
            *trace.find("h2d")[2:3],
        )


def _waits_come_last(trace: agt.Trace) -> None:
    early = [span for span in trace if span.kind == "wait"][:1]
    if early and early[0].start < trace.find("launch weigh")[-1].start:
        raise Rejected(
            "the host waited when chunks were still to be put into a queue: have the streams wait for "
            "the table, by an event, and wait yourself at the end",
            *early,
        )


def check_chunked(mine: Any, model: Any) -> None:
    """Copies and kernels overlap, the table is uploaded once, and nobody waits between chunks."""
    for number, streams in [(5, 3), (4, 2)]:
        expected, *_ = on_fresh_device(_pipeline, model, number, streams, 1024, 512)
        run, given, right = _pipeline(mine, number, streams, 1024, 512)
        with case(f"{number} chunks and {streams} streams"), compared(run.trace, expected.trace):
            launches(run.trace, "h2d", number + 1)
            waits(run.trace, streams + 1, "wait when all chunks are on their way")
            _waits_come_last(run.trace)
            others = set(run.trace.streams) - {stream.number for stream in given}
            if others:
                raise Rejected(
                    f"work was put on stream {min(others)}, which is none of the given ones"
                )
            _copies_meet_kernels(run.trace)
        _chunks(run.result, right)


def hostile_chunked(mine: Any, _model: Any) -> None:
    """Results are right and in order, whichever chunk is done first."""
    run, _, right = _pipeline(mine, 5, 3, 64, 16)
    _chunks(run.result, right)


# ------------------------------------------------------------------ as few events as possible
NEEDS = {"a": "", "b": "", "c": "ab", "d": "ab", "e": "bc", "f": "acd"}
FREE = [("a", "b"), ("c", "d"), ("d", "e"), ("e", "f")]


def _six(answer: Any) -> tuple[Observed[Any], agt.types.Stream, agt.types.Stream]:
    one, two = agt.create_stream(), agt.create_stream()
    arrays = {name: _on_device(np.zeros(100_000, np.float32), name) for name in NEEDS}
    ops = {name: step(name, 0.0, 1.0, x, x) for name, x in arrays.items()}
    return observe(answer, ops, one, two), one, two


def _crossings(trace: agt.Trace) -> int:
    """Counts how often work on one stream was made to wait for work on another."""
    streams = {span.id: span.stream for span in trace.device_spans}
    return sum(
        streams[before] != span.stream
        for span in trace.device_spans
        for before in span.after
        if before in streams
    )


def check_fewest_events(mine: Any, model: Any) -> None:
    """All that is needed is ordered, nothing else is, and no event is there that others make needless."""
    expected, *_ = on_fresh_device(_six, model)
    run, one, two = _six(mine)
    with compared(run.trace, expected.trace):
        waits(run.trace, 0, NO_WAIT)
        for name in NEEDS:
            launches(run.trace, name, 1)
            on_stream(run.trace, name, (one if name in "ace" else two).number)
        for name, needed in NEEDS.items():
            for before in needed:
                ordered(run.trace, before, name)
        for pair in FREE:
            unordered(run.trace, *pair)
        got, right = _crossings(run.trace), _crossings(expected.trace)
        if got > right:
            raise Rejected(
                f"everything is in order, with {got} waits between the streams, and {right} are "
                "enough: which of them is true already because of the others?"
            )


EXERCISES = (
    Exercise("02-order-the-race", "Order the race", "in_order", check_order_the_race),
    Exercise("02-fork-join", "Fork and join", "fork_join", check_fork_join),
    Exercise(
        "02-two-buffers",
        "Two buffers in turn",
        "upload_all",
        check_two_buffers,
        hostile_two_buffers,
    ),
    Exercise(
        "02-chunked-overlap", "A pipeline of chunks", "pipeline", check_chunked, hostile_chunked
    ),
    Exercise("02-minimum-events", "As few events as possible", "enqueue", check_fewest_events),
)
