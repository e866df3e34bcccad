"""Exercises of 02b_copies_and_chunks: what each one checks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.device import moved
from asyncgpu_course.checks.operations import cuda, filled
from asyncgpu_course.checks.rejection import case, must
from asyncgpu_course.checks.results import CheckedArray, equal, in_order, listed
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import runs, timed
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import happens_before, lane_of

# ------------------------------------------------------------------ two buffers
FILL_US = 60.0
Upload = tuple[Observed, bool]


def _refill(answer: Any, number: int, size: int) -> Upload:
    """Upload `number` chunks through two buffers, and tell also whether the last copy was done on return."""
    buffers = [agt.pinned(size), agt.pinned(size)]
    stream, filled_with = agt.create_stream(), list[int]()

    def fill(buffer: Any, i: int) -> None:
        given = any(buffer is mine for mine in buffers)
        must(given, "`fill` was given an array that isn't one of the two buffers")
        agt.work(FILL_US, f"fill {i}")
        buffer[:] = i + 1
        filled_with.append(i)

    with moved() as numbers:
        run = observe(answer, fill, number, buffers, stream)
    cause = f"`fill` was called for the chunks {filled_with}, and each of {number} should "
    must(sorted(filled_with) == list(range(number)), cause + "arrive once")
    schedule.only_on(run.trace, stream)
    ours = (any(np.may_share_memory(x, buffer) for buffer in buffers) for x in numbers.sources)
    cause = "a chunk was uploaded from another array than the two buffers: upload the one that you filled"
    must(all(ours), cause)
    return run, all(span.end <= run.returned for span in run.trace.device_spans)


def _uploaded(found: Upload, number: int, size: int) -> None:
    """All is copied when the function returns, and the copies are right."""
    run, done = found
    cause = "`upload_all` returned while the last copy was still on its way: "
    must(done, cause + "its caller may use the buffers again", *run.trace.find("h2d")[-1:])
    arrays = listed("upload_all", run.result, number)
    ours = all(isinstance(x, agt.DeviceArray) and x.mode != "borrowed" for x in arrays)
    must(ours, f"`upload_all` should return the {number} device arrays themselves, in a list")
    for i, array in enumerate(arrays):
        with case(f"chunk {i}"):
            equal(call(agt.d2h(array.borrow()).sync), filled(size, i + 1))


def _two_buffers(found: Upload, number: int, size: int) -> None:
    """No buffer changes under a copy, and filling one goes on while the other is copied."""
    trace = found[0].trace
    schedule.launches(trace, "h2d", number)
    for i in range(1, number):
        why = "wait only for the copy *out of this very buffer*, and as late as you can"
        schedule.overlapping(trace, f"fill {i}", why)
    _uploaded(found, number, size)


# ------------------------------------------------------------------ chunks
Pipeline = tuple[Observed, list[agt.types.Stream], list[CheckedArray]]


def _pipeline(answer: Any, number: int, streams: int, rows: int, n: int) -> Pipeline:
    weigh = agt.Kernel(cuda("02b_weigh"))
    random = np.random.default_rng(number)
    table = random.standard_normal(n, dtype=np.float32)
    shapes = [(rows + 3 * i % 17, n) for i in range(number)]  # each tells whose result it is
    chunks = [agt.pin(random.standard_normal(shape, dtype=np.float32)) for shape in shapes]
    host, names = agt.pin(table), {id(chunk): f"chunk {i}" for i, chunk in enumerate(chunks)}

    def process(chunk: Any, there: agt.DeviceArray) -> agt.DeviceOp[Any]:
        x, name = agt.h2d(chunk, "chunk"), names.get(id(chunk), "chunk")
        y, grid = agt.zeros(chunk.shape, name="y"), -(-len(chunk) // 64)
        result = weigh(len(chunk), n, there.borrow(), x, y, grid=grid, block=64).output()
        return result.to_host().named(name)

    mine = [agt.create_stream() for _ in range(streams)]
    run = schedule.observe_events(answer, agt.h2d(host, "table"), process, chunks, mine)
    return run, mine, [table * chunk for chunk in chunks]


def _chunks_in_order(found: Pipeline, *_sizes: int) -> None:
    in_order("pipeline", found[0].result, found[2], "chunk")


def _chunked(found: Pipeline, number: int, *_sizes: int) -> None:
    """No chunk waits for its neighbour, the table is uploaded once, and Python waits at the end."""
    trace, given = found[0].trace, found[1]
    schedule.launches(trace, "h2d", number + 1)
    pageable = [span for span in trace.find("h2d") if "pageable" in span.detail][:1]
    cause = "a chunk was uploaded from a copy in pageable memory: "
    must(not pageable, cause + "the chunks are pinned, so hand over the chunk", *pageable)
    early = [span for span in trace if span.kind == "wait"][:1]
    cause = "the host waited before all the chunks were in a queue: let the streams wait for the table, by "
    cause += "an event, and wait yourself at the end"
    must(not early or early[0].start >= trace.find("launch weigh")[-1].start, cause, *early)
    schedule.only_on(trace, *given)
    for before, after in pairwise(trace.find("weigh")):
        cause = f"a chunk on {lane_of(trace, after)} has to wait for the one before it, on "
        cause += f"{lane_of(trace, before)}: deal the chunks out in turn, and let each stream "
        cause += "wait for the table and for nothing else"
        free = before.stream == after.stream or not happens_before(trace, before, after)
        must(free, cause, before, after)
    back, every = schedule.results(trace, [x.size for x in found[2]]), min(number, len(given))
    lanes = {stream.number: i for i, stream in enumerate(given)}
    turns = [lanes[span.stream or 0] for span in back]
    cause = f"the chunks went to `streams` {turns}: deal them out to all {len(given)} in turn"
    must(len(set(turns[:every])) == every and turns[every:] == turns[:-every], cause)
    for span in trace.find("weigh"):
        cause = "only the host's wait makes sure that the table is there: let each stream wait "
        must(happens_before(trace, trace.find("h2d")[0], span), cause + "for it", span)
    _chunks_in_order(found)


# ------------------------------------------------------------------ the challenge
_GOAL = 385.0


def _there_and_back(answer: Any, readings: int) -> Observed:
    """A run in which all readings came back, in order."""
    bend, random = agt.Kernel(cuda("02b_bend")), np.random.default_rng(1)
    data = agt.pin(random.standard_normal(readings, dtype=np.float32))
    right = np.where(data > 0, data, np.float32(0.1) * data)

    def process(part: Any) -> agt.DeviceOp[Any]:
        def run(there: agt.DeviceArray) -> agt.DeviceOp[Any]:
            return bend(part.size, there.partition(256)).output()

        return agt.h2d(part).and_then(run).to_host().named("part")

    def joined() -> Any:
        parts = call(answer, process, data)  # which may be a coroutine
        cause = "`there_and_back` should return the results of all pieces, in a list"
        must(isinstance(parts, list | tuple), cause)
        return np.concatenate([np.asarray(part) for part in cast(Sequence[Any], parts)])

    with moved() as numbers:
        run = observe(joined)
    equal(run.result, right)
    numbers.by_kernels(run.result, data)
    return run


def hostile_back(mine: Any, _model: Any) -> None:
    """All is there on return, whichever stream is the last."""
    data = agt.pin(filled(4_000_000, 1.0))
    for _ in range(3):  # each time other pieces are held back
        parts = call(mine, lambda part: agt.h2d(part).to_host(), data)  # pyright: ignore
        equal(call(lambda: np.concatenate([np.asarray(part) for part in parts])), data)  # noqa: B023 - called at once


BUFFERS = [(5, 1_000_000), (2, 1_000_000), (1, 1000), (0, 1000), (11, 1_000_000)]
CHUNKS = [(5, 3, 1600, 400), *[(*of, 256, 128) for of in ((7, 2), (2, 1), (2, 3), (13, 7))]]

CHAPTER_02B = (
    Exercise("02b-two-buffers", "Two buffers in turn", "upload_all",
             runs(_refill, _two_buffers, BUFFERS, "{:chunk}"),
             runs(_refill, _uploaded, [(5, 100)], "")),
    Exercise("02b-chunked-overlap", "A pipeline of chunks", "pipeline",
             runs(_pipeline, _chunked, CHUNKS, "{:chunk} and {:stream}"),
             runs(_pipeline, _chunks_in_order, [(5, 3, 64, 16)], "")),
    Exercise("02b-challenge", "Challenge: there and back", "there_and_back",
             timed(_there_and_back, [(4_000_000,)], "", _GOAL),
             hostile_back),
)  # fmt: skip
