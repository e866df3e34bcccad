"""The same batches run in five ways, one function each.

A way has two acts. What happens once, such as preparing or capturing, happens when it is called with a
`MlpJob`.
It returns a function that runs all batches, as often as it is called. Only the second act is recorded, and
not its first time: the first launch of a kernel loads its module, the first allocations fill a memory pool,
and a pool of streams creates each when its turn first comes. None of this is the work of a batch, and it
would dwarf it in the trace. A real host also gets faster: Python specialises code that it has run often. So a
way is run until all of that is done, and then once more for the record.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp, SchedulingPolicy, Trace, ranges
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload
from asyncgpu_tutor.data import MlpInputs
from asyncgpu_tutor.run.current import current_policy
from asyncgpu_tutor.types import Stream

T = TypeVar("T")
_Array = npt.NDArray[np.float32]
RunMlp = Callable[[], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, eq=False)
class MlpJob:
    """Batches to run on the current device, and what there is for them."""

    batches: Sequence[_Array]  # in pinned memory
    w0: DeviceArray  # shared, as is w1
    w1: DeviceArray
    # Deals out the streams, to those ways that use several.
    policy: SchedulingPolicy = field(default_factory=lambda: agt.StreamPoolRoundRobin(4))

    @cached_property
    def stream(self) -> Stream:
        """The one stream of those ways that need just one."""
        return agt.create_stream()

    @property
    def makers(self) -> list[Callable[[], DeviceOp[_Array]]]:
        """For each batch, a function that makes an operation of it anew."""
        return [partial(self._batch, number) for number in range(len(self.batches))]

    def _batch(self, number: int) -> DeviceOp[_Array]:
        return forward(self.batches[number], self.w0, self.w1).named(f"batch {number}")


def one_after_the_other(job: MlpJob) -> RunMlp:
    """Each batch is waited for before the next is submitted."""

    async def run_in_turn() -> list[_Array]:
        return [make().sync_on(job.stream) for make in job.makers]

    return run_in_turn


def _one_stream(job: MlpJob) -> RunMlp:
    """All batches are submitted to one stream, and waited for once."""

    async def run_on_one_stream() -> list[_Array]:
        outputs = [make().async_on(job.stream) for make in job.makers]
        agt.synchronize()
        return outputs

    return run_on_one_stream


def several_streams(job: MlpJob) -> RunMlp:
    """Each batch is a task that awaits it: the policy picks its stream, and nobody blocks."""
    return partial(_tasks, job, job.makers)


def prepared(job: MlpJob) -> RunMlp:
    """As on several streams, with all decisions taken once: the host is left with the driver's calls."""
    return partial(_tasks, job, [make().prepare().launch for make in job.makers])


def graph(job: MlpJob) -> RunMlp:
    """All batches as one CUDA graph, with a branch for each: one call starts them."""
    branches = [make().prepare().launch() for make in job.makers]
    captured = agt.overlap(*branches).graph_on(job.stream)

    async def run_as_graph() -> Sequence[_Array]:
        (outputs,) = await _tasks(job, [captured.launch])
        return outputs

    return run_as_graph


async def _tasks(job: MlpJob, makers: Sequence[Callable[[], DeviceOp[T]]]) -> list[T]:
    """Await several operations at once, each in a task of its own."""

    async def infer(make: Callable[[], DeviceOp[T]]) -> T:
        return await make()

    with agt.using(policy=job.policy):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(infer(make)) for make in makers]
    return [task.result() for task in tasks]


class Way(NamedTuple):
    """One of five."""

    name: str  # in the table
    start: Callable[[MlpJob], RunMlp]


WAYS = {
    "sequential": Way("one after the other", one_after_the_other),
    "one-stream": Way("one stream", _one_stream),
    "streams": Way("four streams", several_streams),
    "prepared": Way("prepared", prepared),
    "graph": Way("graph", graph),
}


# ------------------------------------------------------------------ for the record
PRACTICE = 25  # runs before a recording on a GPU
TRIES = 5  # recordings on a GPU, where no two are the same; the quickest counts


@dataclass(frozen=True, eq=False)
class MlpRun:
    """The results of a run, and its trace."""

    outputs: _Array  # float32, shape (batches, samples)
    trace: Trace  # of the batches alone


async def measured(job: MlpJob, way: Callable[[MlpJob], RunMlp]) -> MlpRun:
    """Run a job in one way, after practice, and record it: on a GPU often, unless a profiler looks on."""
    if agt.current_device().simulated:  # which needs no more practice than one run
        return await _outcome(way(job), 1, 1)
    return await _outcome(way(job), PRACTICE, 1 if ranges.enabled() else TRIES)


async def run_batches(batches: Iterable[_Array], w0: DeviceArray, w1: DeviceArray) -> MlpRun:
    """All batches at once, each as a task of its own, on streams of the current policy; no practice."""
    job = MlpJob([agt.pin(batch) for batch in batches], w0, w1, current_policy())
    return await _outcome(several_streams(job), 0, 1)


async def traced(inputs: MlpInputs, how: str) -> Trace:
    """Run batches in one of the `WAYS`, on four streams of the current device, after practice."""
    job = MlpJob([agt.pin(batch) for batch in inputs.batches], *await upload(inputs))
    return (await measured(job, WAYS[how].start)).trace


async def _outcome(run: RunMlp, practice: int, tries: int) -> MlpRun:
    for _ in range(practice):
        await run()
    found: list[MlpRun] = []
    for _ in range(tries):
        with agt.record() as trace:
            outputs = await run()
        # These are copies, because a prepared batch writes to its array again in the next run.
        copies = np.stack([np.array(output) for output in outputs])
        found.append(MlpRun(copies, trace))
    agt.synchronize()
    return min(found, key=lambda outcome: outcome.trace.metrics().makespan)
