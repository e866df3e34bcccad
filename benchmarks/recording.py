"""The cost of recording, and that of NVTX ranges: ratios within one run.

    python benchmarks/recording.py [--ranges]

The program is four batches of the MLP, DIM 64: there the host is the bottleneck, so whatever it does besides
shows. Ways are measured in turns; medians. On a GPU; run it under ``nsys profile -t cuda,nvtx`` with --ranges
to see what ranges cost when somebody looks at them.
"""

import argparse
import asyncio
import platform
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from in_turns import in_turns, medians

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward, upload
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces import nvtx as ranges

DIM, BATCHES, ROUNDS, INSIDE, WARM = 64, 4, 40, 4, 50
Body = Callable[[], Coroutine[Any, Any, None]]


async def mlp() -> Body:
    """The program that is measured."""
    inputs = seed_inputs(DIM, BATCHES)
    w0, w1 = await upload(inputs).schedule(agt.SingleStream())
    pinned = [agt.pin(batch) for batch in inputs.batches]

    async def body() -> None:
        batches = (forward(x, w0, w1).named(f"batch {i}") for i, x in enumerate(pinned))
        await asyncio.gather(*batches)

    return body


async def timed(body: Body, around: Callable[[], object]) -> float:
    """Time of a round inside a block, in us: making a recording ready is not counted, being recorded is.

    The first round in it is not counted either: whatever comes right after a pause is slow.
    """
    agt.synchronize()
    with around():
        await body()
        start = time.perf_counter()
        for _ in range(INSIDE):
            await body()
        end = time.perf_counter()
    return (end - start) * 1e6 / INSIDE


def measure(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median time of each way, in us, measured in turns, in one event loop."""
    with asyncio.Runner() as loop:
        body = loop.run(mlp())
        for _ in range(WARM):
            loop.run(body())
        took = in_turns(ways, ROUNDS, warm=0, took=lambda around: loop.run(timed(body, around)))
    return medians(took)


class Ranges:
    """NVTX ranges on, for a block."""

    def __enter__(self) -> None:
        ranges.enable()

    def __exit__(self, *_: object) -> None:
        ranges.disable()


def report(times: dict[str, float]) -> None:
    """Times, and ratios to the first."""
    first = next(iter(times.values()))
    for way, us in times.items():
        print(f"  {way:<28} {us:>8.1f} us   {us / first:>5.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    told = "ranges only: for use under a profiler"
    parser.add_argument("--ranges", action="store_true", help=told)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    with agt.using(given.device):
        sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
        from record_course import machine_facts

        facts = {**machine_facts(), "machine": platform.machine()}
        print("; ".join(f"{key} {value}" for key, value in facts.items() if key != "command"))
        ways: dict[str, Callable[[], object]] = {"ranges off": nullcontext, "ranges on": Ranges}
        print(f"NVTX ranges, {BATCHES} batches of DIM {DIM}:")
        report(measure(ways))
        if given.ranges:
            return
        ways = {"not recorded": nullcontext, "events": lambda: agt.record("events")}
        try:
            with agt.record("cupti"):
                ways["CUPTI"] = lambda: agt.record("cupti")
        except UsageError as error:
            print(error)
        print(f"Recording, {BATCHES} batches of DIM {DIM}:")
        report(measure(ways))


if __name__ == "__main__":
    main()
