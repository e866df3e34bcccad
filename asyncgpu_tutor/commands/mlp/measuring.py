"""One way of running a job, practised and recorded.

The first launch of a kernel loads its module, the first allocations fill a memory pool, and a pool of
streams creates each when its turn first comes. None of this is the work of a batch, and it would dwarf it in
the trace. A real host also gets faster: Python specialises code that it has run often. So a way is run until
all of that is done, and then once more for the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, Trace, ranges
from asyncgpu_tutor.commands.mlp.pipeline import upload
from asyncgpu_tutor.commands.mlp.ways import WAYS, Array, Job, Run, several_streams
from asyncgpu_tutor.data import MlpInputs
from asyncgpu_tutor.run.current import current_policy

PRACTICE = 25  # runs before a recording on a GPU
TRIES = 5  # recordings on a GPU, where no two are the same; the quickest counts


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of a run, and its trace."""

    outputs: Array  # float32, shape (batches, samples)
    trace: Trace  # of the batches alone


async def measured(job: Job, way: Callable[[Job], Run]) -> Outcome:
    """Run a job in one way, after practice, and record it: on a GPU often, unless a profiler looks on."""
    if agt.current_device().simulated:  # which needs no more practice than one run
        return await _outcome(way(job), 1, 1)
    return await _outcome(way(job), PRACTICE, 1 if ranges.enabled() else TRIES)


async def run_batches(batches: Iterable[Array], w0: DeviceArray, w1: DeviceArray) -> Outcome:
    """All batches at once, each as a task of its own, on streams of the current policy; no practice."""
    job = Job([agt.pin(batch) for batch in batches], w0, w1, current_policy())
    return await _outcome(several_streams(job), 0, 1)


async def traced(inputs: MlpInputs, how: str) -> Trace:
    """Run batches in one of the `WAYS`, on four streams of the current device, after practice."""
    job = Job([agt.pin(batch) for batch in inputs.batches], *await upload(inputs))
    return (await measured(job, WAYS[how].start)).trace


async def _outcome(run: Run, practice: int, tries: int) -> Outcome:
    for _ in range(practice):
        await run()
    found: list[Outcome] = []
    for _ in range(tries):
        with agt.record() as trace:
            outputs = await run()
        # These are copies, because a prepared batch writes to its array again in the next run.
        copies = np.stack([np.array(output) for output in outputs])
        found.append(Outcome(copies, trace))
    agt.synchronize()
    return min(found, key=lambda outcome: outcome.trace.metrics().makespan)
