"""How fast the simulated device simulates.

    python benchmarks/simulator.py

Prints wall-clock times of this machine for the four-batch MLP, for kernels of real size, and for submitted
operations; and for the event engine alone. Nothing here is a time of a GPU.
"""

import asyncio
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from in_turns import in_turns

import asyncgpu_tutor as agt
import simgpu
from asyncgpu_tutor.commands.mlp import run_batches, upload
from asyncgpu_tutor.data import seed_inputs
from asyncgpu_tutor.devices.simulated import SimDevice, SimMachine
from simgpu.engine import Command, Engine, ResourceDemand
from simgpu.remembered import LAUNCHES

LARGE = Path(__file__).with_name("large.cu")
STREAMS = 4
CHAINS = 1250  # of copy, kernel, copy, on each stream
COPY_IN, KERNEL, COPY_OUT = 3.0, 7.0, 2.0  # us


def seconds(run: Callable[[], object], times: int, before: Any = None) -> list[float]:
    """Wall-clock time of each of `times` runs."""
    return [us / 1e6 for us in in_turns({"": run}, times, warm=0, before=before)[""]]


def report(what: str, found: list[float], target: str) -> None:
    """One line."""
    middle, least, most = statistics.median(found), min(found), max(found)
    print(f"{what:46} {middle:7.3f} s  ({least:.3f} to {most:.3f}, {len(found)} runs)  {target}")


def afresh(_: str) -> None:
    """Have every launch of the next run interpreted."""
    LAUNCHES.clear()


# ------------------------------------------------------------------ what a learner runs
def mlp(dim: int) -> None:
    """Four batches on a device that nobody has used."""
    inputs = seed_inputs(dim)

    async def main() -> None:
        w0, w1 = await upload(inputs)
        await run_batches(inputs.batches, w0, w1)

    with agt.using(SimDevice(machine=SimMachine())):
        asyncio.run(main())


def product(n: int) -> None:
    """One naive product of n x n matrices."""
    with agt.using(SimDevice(machine=SimMachine())):
        a, b = agt.ones((n, n)).sync(), agt.ones((n, n)).sync()
        out = agt.zeros((n, n)).sync().partition(16, 16)
        agt.sgemm_naive(n, n, n, 1.0, a, b, 0.0, out).sync()


def large() -> None:
    """Kernels of real size, interpreted whole: seconds of CPU, which other programs change little."""
    source = LARGE.read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    square = [simgpu.asarray(rng.random((1024, 1024), np.float32)) for _ in range(3)]
    bodies = [simgpu.asarray(rng.random((8192, 4), np.float32)) for _ in range(2)]
    heads = [simgpu.asarray(rng.random((4, 256, 64), np.float32)) for _ in range(4)]
    calls: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], list[Any]]] = {
        "product of 1024 x 1024, naive": ("product", (64, 64), (16, 16), [*square, 1024]),
        "8192 bodies, tiles in shared memory": ("pull", (32,), (256,), [*bodies, 8192]),
        "flash attention, 4 heads, 256 rows of 64": ("attend", (4,), (32,), [*heads, 256]),
    }
    for what, (name, grid, block, args) in calls.items():
        kernel = simgpu.RawKernel(source, name)
        start = time.process_time()
        kernel(grid, block, tuple(args))
        simgpu.device_in_use().synchronize()
        print(f"{what:46} {time.process_time() - start:7.2f} s of CPU")


def fills(count: int) -> None:
    """The smallest operation there is, by the whole way: description, policy, submission, hazards."""
    with agt.using(SimDevice(machine=SimMachine())) as device:
        arrays = [agt.zeros(8).sync() for _ in range(STREAMS)]
        streams = [agt.create_stream() for _ in range(STREAMS)]
        device.synchronize()
        for number in range(count):
            array = arrays[number % STREAMS].borrow()
            op = agt.with_context(lambda context, array=array: agt.value(context.memset(array)))
            op.async_on(streams[number % STREAMS])
        device.synchronize()


# ------------------------------------------------------------------ the engine alone
def with_engine() -> float:
    """Chains on each stream; copies share an engine for each direction, kernels fit side by side."""
    engine = Engine()
    work: dict[Literal["h2d", "compute", "d2h"], Callable[[], ResourceDemand]] = {
        "h2d": lambda: ResourceDemand(COPY_IN),
        "compute": lambda: ResourceDemand(KERNEL, 1 / STREAMS),
        "d2h": lambda: ResourceDemand(COPY_OUT),
    }
    for _ in range(STREAMS):
        queue = engine.queue(0)
        for _ in range(CHAINS):
            for resource, begin in work.items():
                engine.submit(queue, Command(resource, 0.0, begin=begin))
    engine.run_dry()
    return engine.now


def main() -> None:
    """Measure and print."""
    processor = platform.processor() or platform.machine()
    print(f"{processor}, {os.cpu_count()} CPUs seen, load {os.getloadavg()[0]:.1f}; ", end="")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}")
    first = seconds(lambda: mlp(64), 1)
    report("MLP, 4 batches, DIM 64, first in the process", first, "kernels are compiled in it")
    report("the same, later ones", seconds(lambda: mlp(64), 7, afresh), "target < 0.25 s")
    report("the same, where launches are remembered", seconds(lambda: mlp(64), 7), "")
    report("sgemm_naive, 512 x 512", seconds(lambda: product(512), 3, afresh), "target < 1 s")
    report("the same, remembered", seconds(lambda: product(512), 3), "")
    large()
    count = 5000
    best = min(seconds(lambda: fills(count), 3))
    what = "operations submitted by async_on, and simulated"
    print(f"{what:46} {count / best:9,.0f} operations/s")
    commands, best = STREAMS * CHAINS * 3, min(seconds(with_engine, 5))
    print(f"{'commands of the event engine alone':46} {commands / best:9,.0f} commands/s")
    print("target: 20,000 submitted operations a second through the engine")


if __name__ == "__main__":
    main()
