"""The same batches run in five ways, one function each.

A way has two acts. What happens once, such as preparing or capturing, happens when it is called with a `Job`.
It returns a function that runs all batches, as often as it is called. Only the second act is recorded, and
not its first time: see `measuring`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp, SchedulingPolicy
from asyncgpu_tutor.commands.mlp.pipeline import forward
from asyncgpu_tutor.types import Stream

T = TypeVar("T")
Array = npt.NDArray[np.float32]
Run = Callable[[], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, eq=False)
class Job:
    """Batches to run on the current device, and what there is for them."""

    batches: Sequence[Array]  # in pinned memory
    w0: DeviceArray  # shared, as is w1
    w1: DeviceArray
    # Deals out the streams, to those ways that use several.
    policy: SchedulingPolicy = field(default_factory=lambda: agt.StreamPoolRoundRobin(4))

    @cached_property
    def stream(self) -> Stream:
        """The one stream of those ways that need just one."""
        return agt.create_stream()

    @property
    def makers(self) -> list[Callable[[], DeviceOp[Array]]]:
        """For each batch, a function that makes an operation of it anew."""
        return [partial(self._batch, number) for number in range(len(self.batches))]

    def _batch(self, number: int) -> DeviceOp[Array]:
        return forward(self.batches[number], self.w0, self.w1).named(f"batch {number}")


def one_after_the_other(job: Job) -> Run:
    """Each batch is waited for before the next is submitted."""

    async def run() -> list[Array]:
        return [make().sync_on(job.stream) for make in job.makers]

    return run


def one_stream(job: Job) -> Run:
    """All batches are submitted to one stream, and waited for once."""

    async def run() -> list[Array]:
        outputs = [make().async_on(job.stream) for make in job.makers]
        agt.synchronize()
        return outputs

    return run


def several_streams(job: Job) -> Run:
    """Each batch is a task that awaits it: the policy picks its stream, and nobody blocks."""
    return partial(_tasks, job, job.makers)


def prepared(job: Job) -> Run:
    """As on several streams, with all decisions taken once: the host is left with the driver's calls."""
    return partial(_tasks, job, [make().prepare().launch for make in job.makers])


def graph(job: Job) -> Run:
    """All batches as one CUDA graph, with a branch for each: one call starts them."""
    branches = [make().prepare().launch() for make in job.makers]
    captured = agt.overlap(*branches).graph_on(job.stream)

    async def run() -> Sequence[Array]:
        (outputs,) = await _tasks(job, [captured.launch])
        return outputs

    return run


async def _tasks(job: Job, makers: Sequence[Callable[[], DeviceOp[T]]]) -> list[T]:
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
    start: Callable[[Job], Run]


WAYS = {
    "sequential": Way("one after the other", one_after_the_other),
    "one-stream": Way("one stream", one_stream),
    "streams": Way("four streams", several_streams),
    "prepared": Way("prepared", prepared),
    "graph": Way("graph", graph),
}
