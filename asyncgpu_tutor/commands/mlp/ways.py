"""The same batches run in five ways, one function each.

A way has two acts. What happens once, such as preparing or capturing, happens when it is called with a `Job`.
It returns a function that runs all batches, as often as it is called, and calls `look` once they are
submitted. Only the second act is recorded, and not its first time: see `measuring`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp, SchedulingPolicy
from asyncgpu_tutor.commands.mlp.pipeline import network_forward
from asyncgpu_tutor.types import Stream

T = TypeVar("T")
Array = npt.NDArray[np.float32]
Look = Callable[[], None]
Run = Callable[[Look], Awaitable[Sequence[Any]]]


@dataclass(frozen=True, eq=False)
class Job:
    """Batches to run on the current device, and what there is for them."""

    batches: Sequence[Array]  # in pinned memory
    weights: tuple[DeviceArray, ...]  # shared
    policy: SchedulingPolicy  # deals out the streams, to those ways that use several
    streams: int  # how many the policy has
    # `softmax` and `tiled`: see `asyncgpu_tutor.commands.mlp.pipeline.Network`.
    softmax: bool = False
    tiled: bool = False

    @cached_property
    def stream(self) -> Stream:
        """The one stream of those ways that need just one."""
        return agt.create_stream()

    @property
    def numbers(self) -> range:
        """Of the batches."""
        return range(len(self.batches))

    def batch(self, number: int) -> DeviceOp[Array]:
        """One batch as an operation, made anew."""
        batch, options = self.batches[number], {"softmax": self.softmax, "tiled": self.tiled}
        return network_forward(batch, self.weights, **options).named(f"batch {number}")

    def shares(self) -> dict[str, int]:
        """How many handles there are to each weight."""
        return {weight.name: weight.share_count for weight in self.weights}


def one_after_the_other(job: Job) -> Run:
    """Each batch is waited for before the next is submitted."""

    async def run(look: Look) -> list[Array]:
        def submitted(output: Array) -> Array:
            look()
            return output

        return [
            job.batch(i).map(submitted).named(f"batch {i}").sync_on(job.stream) for i in job.numbers
        ]

    return run


def one_stream(job: Job) -> Run:
    """All batches are submitted to one stream, and waited for once."""

    async def run(look: Look) -> list[Array]:
        outputs = [job.batch(number).async_on(job.stream) for number in job.numbers]
        look()
        agt.synchronize()
        return outputs

    return run


def several_streams(job: Job) -> Run:
    """Each batch is a task that awaits it: the policy picks its stream, and nobody blocks."""
    return partial(_tasks, job, job.numbers, job.batch)


def prepared(job: Job) -> Run:
    """As on several streams, with all decisions taken once: the host is left with the driver's calls."""
    ready = [job.batch(number).prepare() for number in job.numbers]
    return partial(_tasks, job, job.numbers, lambda number: ready[number].launch())


def graph(job: Job) -> Run:
    """All batches as one CUDA graph, with a branch for each stream: one call starts them."""
    ready = [job.batch(number).prepare() for number in job.numbers]
    branches = [ready[i :: job.streams] for i in range(min(job.streams, len(ready)))]
    arms = [agt.zip(*[batch.launch() for batch in branch]) for branch in branches]
    captured = agt.overlap(*arms).graph_on(job.stream)

    async def run(look: Look) -> list[Array]:
        (outputs,) = await _tasks(job, [0], lambda _: captured.launch(), look)
        return [outputs[i % len(branches)][i // len(branches)] for i in job.numbers]

    return run


async def _tasks(
    job: Job, numbers: Sequence[int], op: Callable[[int], DeviceOp[T]], look: Look
) -> list[T]:
    """Await several operations at once, each in a task of its own."""

    async def infer(number: int) -> T:
        return await op(number)

    with agt.using(policy=job.policy):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(infer(number)) for number in numbers]
            # In this turn of the event loop every task starts, submits its operation, and waits.
            await asyncio.sleep(0)
            look()
    return [task.result() for task in tasks]


class Way(NamedTuple):
    """One of five."""

    name: str  # in the table; `{streams}` stands for how many streams there are
    launched: str  # how the batches were launched, in a sentence
    start: Callable[[Job], Run]


WAYS = {
    "sequential": Way("one after the other", "one after the other", one_after_the_other),
    "one-stream": Way("one stream", "on one stream", one_stream),
    "streams": Way("{streams}", "concurrently", several_streams),
    "prepared": Way("prepared", "concurrently, prepared", prepared),
    "graph": Way("graph", "as a graph", graph),
}
