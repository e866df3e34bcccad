"""The same batches run in five ways, one function each.

A way has two acts. What happens once (preparing, capturing) happens when it is called with a `Job`; what
it returns runs all batches, as often as it is called, and calls `look` once they are submitted. Only the
second act is recorded, and not its first time: see `measuring`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceOp
from asyncgpu_tutor.commands.mlp.job import Array, Job

Look = Callable[[], None]
Run = Callable[[Look], Awaitable[Sequence[Any]]]


def one_after_the_other(job: Job) -> Run:
    """Each batch is waited for before the next is submitted."""

    async def run(look: Look) -> list[Array]:
        def submitted(output: Array) -> Array:
            look()
            return output

        return [
            job.batch(number)
            .map(submitted)
            .named(f"batch {number}")
            .sync_on(job.side(number).stream)
            for number in job.numbers
        ]

    return run


def one_stream(job: Job) -> Run:
    """All batches are submitted to one stream, and waited for once."""

    async def run(look: Look) -> list[Array]:
        outputs = [job.batch(number).async_on(job.side(number).stream) for number in job.numbers]
        look()
        job.synchronize()
        return outputs

    return run


def several_streams(job: Job) -> Run:
    """Each batch is a task that awaits it: the policy picks its stream, and nobody blocks."""
    return partial(_awaited, job, job.batch)


def prepared(job: Job) -> Run:
    """As on several streams, with all decisions taken once: the host is left with the driver's calls."""
    ready = [job.prepared(number) for number in job.numbers]
    return partial(_awaited, job, lambda number: ready[number].launch())


def graph(job: Job) -> Run:
    """All batches of a device as one CUDA graph, with a branch for each stream: one call starts them."""
    used = min(len(job.sides), len(job.batches))  # a device without a batch needs no graph
    graphs = [_graph(job, place) for place in range(used)]

    async def launch(place: int) -> dict[int, Array]:
        order, captured = graphs[place]
        with job.sides[place].chosen():
            branches = await captured.launch()
        return dict(zip(order, [output for branch in branches for output in branch], strict=True))

    async def run(look: Look) -> list[Array]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(launch(place)) for place in range(used)]
            await asyncio.sleep(0)  # every task starts and submits, as in `_awaited`
            look()
        outputs = {number: output for task in tasks for number, output in task.result().items()}
        return [outputs[number] for number in job.numbers]

    return run


def _graph(job: Job, place: int) -> tuple[list[int], agt.CudaGraph[tuple[tuple[Array, ...], ...]]]:
    """The graph of one device, and which batches it computes, in the order of its results."""
    mine = job.numbers[place :: len(job.sides)]
    branches = [
        numbers for numbers in (mine[i :: job.streams] for i in range(job.streams)) if numbers
    ]
    side = job.sides[place]
    with side.chosen():
        arms = [agt.zip(*[job.prepared(i).launch() for i in numbers]) for numbers in branches]
        captured = agt.overlap(*arms).graph_on(side.stream)
    return [number for numbers in branches for number in numbers], captured


async def _awaited(job: Job, op: Callable[[int], DeviceOp[Array]], look: Look) -> list[Array]:
    """All batches at once, each as a task of its own."""

    async def infer(number: int) -> Array:
        with job.side(number).chosen():
            return await op(number)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(infer(number)) for number in job.numbers]
        # In this turn of the event loop every task starts, submits its batch, and waits.
        await asyncio.sleep(0)
        look()
    return [task.result() for task in tasks]


class Way(NamedTuple):
    """One of five."""

    # What the table calls it; `{streams}` stands for how many streams there are.
    name: str
    launched: str  # how the batches were launched, in a sentence
    start: Callable[[Job], Run]  # from a `Job` to what runs it


WAYS = {
    "sequential": Way("one after the other", "one after the other", one_after_the_other),
    "one-stream": Way("one stream", "on one stream", one_stream),
    "streams": Way("{streams}", "concurrently", several_streams),
    "prepared": Way("prepared", "concurrently, prepared", prepared),
    "graph": Way("graph", "as a graph", graph),
}
