"""Exercises of 02b_copies_and_chunks: what each one checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises.checks.operations import filled
from asyncgpu_tutor.exercises.checks.races import observe_events
from asyncgpu_tutor.exercises.checks.results import Array, equal, in_order
from asyncgpu_tutor.exercises.checks.schedule import a_kernel_ran, below, launches, overlapping
from asyncgpu_tutor.exercises.exercise import Exercise, Rejected, case
from asyncgpu_tutor.exercises.internals import happens_before, lane_of
from asyncgpu_tutor.exercises.sandbox import Observed, call, observe, tried

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

    run = observe(answer, fill, number, buffers, stream)
    return run, all(span.end <= run.returned for span in run.trace.device_spans)


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
        words = f"{number} chunks"
        with tried(_refill, mine, model, number, size, words=words) as (run, done):
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
    run = observe_events(answer, agt.h2d(host, "table"), process, chunks, mine)
    return run, mine, [table * chunk for chunk in chunks]


def _chunks(results: object, expected: list[Array]) -> None:
    in_order("pipeline", results, expected, f"{len(expected)} chunks, for chunk")


def _dealt_out(trace: agt.Trace) -> None:
    """No chunk is made to wait for the one that was submitted before it, whatever takes how long."""
    for early, late in pairwise(trace.find("weigh")):
        if happens_before(trace, early, late):
            raise Rejected(
                f"a chunk on {lane_of(trace, late)} has to wait for the one before it, on "
                f"{lane_of(trace, early)}: deal the chunks out in turn, and have each stream wait for the "
                "table and for nothing else",
                early,
                late,
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
    """No chunk waits for its neighbour, the table is uploaded once, and Python waits at the end."""
    for number, streams in [(5, 3), (4, 2)]:
        words, sizes = f"{number} chunks and {streams} streams", (number, streams, 1024, 512)
        with tried(_pipeline, mine, model, *sizes, words=words) as (run, given, right):
            launches(run.trace, "h2d", number + 1)
            _waits_come_last(run.trace)
            numbers = {stream.number for stream in given}
            stray = [s for s in run.trace.device_spans if s.stream not in numbers]
            if stray:
                raise Rejected(
                    f"work was put on {lane_of(run.trace, stray[0])}, which is none of the given ones",
                    stray[0],
                )
            _dealt_out(run.trace)
        _chunks(run.result, right)


def hostile_chunked(mine: Any, _model: Any) -> None:
    """Results are right and in order, whichever chunk is done first."""
    run, _, right = _pipeline(mine, 5, 3, 64, 16)
    _chunks(run.result, right)


# ------------------------------------------------------------------ the challenge
BEND = r"""
extern "C" __global__ void bend(unsigned int n, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] > 0.0f ? x[i] : 0.1f * x[i];
}
"""
GOAL = 410.0
READINGS = 4_000_000


def _there_and_back(answer: Any) -> tuple[Observed[Any], Array]:
    bend, random = agt.Kernel(BEND), np.random.default_rng(1)
    data = agt.pin(random.standard_normal(READINGS, dtype=np.float32))
    right = np.where(data > 0, data, np.float32(0.1) * data)

    def process(part: Any) -> agt.DeviceOp[Any]:
        def run(there: agt.DeviceArray) -> agt.DeviceOp[Any]:
            return bend(part.size, there.partition(256)).output()

        return agt.h2d(part).and_then(run).to_host()

    def joined() -> Any:
        parts = answer(process, data)
        if not isinstance(parts, list | tuple):
            raise Rejected("`there_and_back` should return the results of all pieces, in a list")
        return np.concatenate([np.asarray(part) for part in cast(Sequence[Any], parts)])

    return observe(joined), right


def check_there_and_back(mine: Any, model: Any) -> float:
    """All readings come back, in order, in less than the time to beat."""
    with tried(_there_and_back, mine, model) as (run, right):
        a_kernel_ran(run.trace)
        equal(run.result, right)
        return below(GOAL, run.trace)


EXERCISES = (
    Exercise(
        "02b-two-buffers",
        "Two buffers in turn",
        "upload_all",
        check_two_buffers,
        hostile_two_buffers,
    ),
    Exercise(
        "02b-chunked-overlap", "A pipeline of chunks", "pipeline", check_chunked, hostile_chunked
    ),
    Exercise(
        "02b-challenge",
        "Challenge: there and back",
        "there_and_back",
        check_there_and_back,
    ),
)
