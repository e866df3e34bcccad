"""One way of running a job, practised and recorded.

The first launch of a kernel loads its module, the first allocations fill a memory pool, and a pool of
streams creates each when its turn first comes. None of this is the work of a batch, and it would dwarf it in
the trace. A real host also gets faster: Python specialises code that it has run often. So a way is run until
all of that is done, and then once more for the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, Trace, ranges
from asyncgpu_tutor.commands.mlp.pipeline import upload
from asyncgpu_tutor.commands.mlp.ways import WAYS, Array, Job, Run, several_streams
from asyncgpu_tutor.data import MlpInputs
from asyncgpu_tutor.run import current_policy

PRACTICE = 25  # runs before a recording on a GPU, at least
TRIES = 5  # recordings on a GPU, where no two are the same; the quickest counts


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of a run, and its trace."""

    outputs: Array  # float32, shape (batches, samples)
    # How many handles each weight had: the most that were seen after batches were submitted.
    in_flight: dict[str, int]
    after: dict[str, int]  # the same when all was done, and what the way had prepared was gone
    trace: Trace  # of the batches alone


async def measured(job: Job, way: Callable[[Job], Run]) -> Outcome:
    """Run a job in one way, after practice, and record it.

    A simulated device needs as little practice as it takes until the policy is at its first stream again. A
    GPU gets more, and several recordings, unless a profiler looks on: it is to see one run.
    """
    turns = job.streams // math.gcd(job.streams, len(job.batches))
    if agt.current_device().simulated:
        return await _outcome(job, way, turns, 1)
    practice = math.ceil(PRACTICE / turns) * turns
    return await _outcome(job, way, practice, 1 if ranges.enabled() else TRIES)


async def run_batches(batches: Iterable[Array], w0: DeviceArray, w1: DeviceArray) -> Outcome:
    """All batches at once, each as a task of its own, on streams of the current policy; no practice."""
    job = Job([agt.pin(batch) for batch in batches], (w0, w1), current_policy(), streams=1)
    return await _outcome(job, several_streams, 0, 1)


async def traced(inputs: MlpInputs, how: str) -> Trace:
    """Run batches in one of the `WAYS`, on four streams of the current device, after practice."""
    batches = [agt.pin(batch) for batch in inputs.batches]
    job = Job(batches, await upload(inputs), agt.StreamPoolRoundRobin(4), streams=4)
    return (await measured(job, WAYS[how].start)).trace


async def _outcome(job: Job, way: Callable[[Job], Run], practice: int, tries: int) -> Outcome:
    in_flight: dict[str, int] = {}

    def look() -> None:
        for weight, count in job.shares().items():
            in_flight[weight] = max(count, in_flight.get(weight, 0))

    # What the way has prepared is gone when this returns, and with it the handles that it had.
    outputs, trace = await _quickest(way(job), look, practice, tries)
    agt.synchronize()
    return Outcome(outputs, in_flight, job.shares(), trace)


async def _quickest(
    run: Run, look: Callable[[], None], practice: int, tries: int
) -> tuple[Array, Trace]:
    for _ in range(practice):
        await run(lambda: None)
    found: list[tuple[Array, Trace]] = []
    for _ in range(tries):
        with agt.record() as trace:
            outputs = await run(look)
        # These are copies, because a prepared batch writes to its array again in the next run.
        found.append((np.stack([np.array(output) for output in outputs]), trace))
    return min(found, key=lambda pair: pair[1].metrics().makespan)
