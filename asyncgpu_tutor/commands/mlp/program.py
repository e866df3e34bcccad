"""Several batches side by side, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, Trace
from asyncgpu_tutor.commands.mlp.pipeline import forward, upload
from asyncgpu_tutor.data import MlpInputs

__all__ = ["Outcome", "ShareCounts", "infer", "run_batches", "warm_up"]


ROUNDS = 25  # of warming up


class ShareCounts(NamedTuple):
    """How many handles there are to each of the weights."""

    w0: int
    w1: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a run.

    Attributes
    ----------
    outputs : array, float32, shape (batches, samples)
    in_flight : ShareCounts
        When all batches had been submitted.
    after : ShareCounts
        When all batches were done.
    trace : Trace
        Of the batches alone.
    """

    outputs: npt.NDArray[np.float32]
    in_flight: ShareCounts
    after: ShareCounts
    trace: Trace


async def warm_up(inputs: MlpInputs, streams: int) -> None:
    """Trial batches on each stream of the policy, with weights of their own.

    The first launch of a kernel loads its module, the first allocations fill a memory pool, and a pool
    of streams creates each when its turn first comes. None of this is the work of a batch, and it would
    dwarf it in the trace. A real host also gets faster: Python specialises code that it has run often. (The
    time of a simulated host is a model's, so there one round is enough.)
    """
    x = agt.pin(inputs.batches[0])
    rounds = 1 if agt.current_device().simulated else ROUNDS
    for _ in range(rounds * streams):
        await upload(inputs).and_then(lambda weights: forward(x, *weights)).named("warm-up")


async def infer(
    name: str, x: npt.NDArray[np.float32], w0: DeviceArray, w1: DeviceArray
) -> npt.NDArray[np.float32]:
    """One batch as a coroutine: the current policy picks its stream, and nobody blocks."""
    return await forward(x, w0, w1).named(name)


async def run_batches(
    batches: Iterable[npt.NDArray[np.float32]],
    w0: DeviceArray,
    w1: DeviceArray,
    launched: Callable[[ShareCounts], None] | None = None,
) -> Outcome:
    """All batches at once, each as a task of its own.

    Parameters
    ----------
    batches : iterable of array, float32, shape (samples, features)
        At least one.
    w0, w1 : DeviceArray
        Shared weights; see `forward`.
    launched : callable, optional
        Called when all batches have been submitted, while the GPU is at work on them.
    """
    pinned = [agt.pin(batch) for batch in batches]
    with agt.record() as trace:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(infer(f"batch {i}", x, w0, w1)) for i, x in enumerate(pinned)
            ]
            # One turn of the event loop: every task starts, submits its batch, and waits.
            await asyncio.sleep(0)
            in_flight = ShareCounts(w0.share_count, w1.share_count)
            if launched is not None:
                launched(in_flight)
    after = ShareCounts(w0.share_count, w1.share_count)
    return Outcome(np.stack([task.result() for task in tasks]), in_flight, after, trace)
