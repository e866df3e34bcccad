"""Waiting for a kernel of a known length: blocked, and awaited; what it costs in time, and in CPU."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import cupy
import numpy as np
from in_turns import in_turns

import asyncgpu_tutor as agt

SPIN = Path(__file__).with_name("spin.cu").read_text("utf-8")

Row = dict[str, Any]


def latency(lengths: tuple[int, ...] = (1, 10, 100, 1000)) -> list[Row]:
    """Medians in us, launch and wait together."""
    raw = cupy.RawKernel(SPIN, "spin")
    ours = agt.Kernel(SPIN)
    stream, mine = cupy.cuda.Stream(non_blocking=True), agt.create_stream()
    x, y = cupy.zeros(1, np.float32), agt.zeros(1).sync()
    loop = asyncio.new_event_loop()

    def measure(us: int) -> dict[str, float]:
        built = ours(us, y.borrow(), grid=1, block=1)
        prepared = built.prepare().launch()

        def by_hand() -> None:
            raw((1,), (1,), (np.uint32(us), x), stream=stream)
            stream.synchronize()

        def host_function() -> Awaitable[Any]:
            done = loop.create_future()
            raw((1,), (1,), (np.uint32(us), x), stream=stream)
            stream.launch_host_func(_tell, (loop, done))
            return done

        def afresh() -> agt.DeviceOp[Any]:
            return ours(us, y.borrow(), grid=1, block=1)

        blocked: dict[str, Callable[[], object]] = {
            "CuPy, synchronize": by_hand,
            "ours, sync, built each time": lambda: afresh().sync_on(mine),
            "ours, sync, built once": lambda: built.sync_on(mine),
            "ours, sync, prepared": lambda: prepared.sync_on(mine),
        }
        awaited: dict[str, Callable[[], Awaitable[Any]]] = {
            "CuPy, host function and a future": host_function,
            "ours, await, built each time": afresh,
            "ours, await, built once": lambda: built,
            "ours, await, prepared": lambda: prepared,
        }
        turns = max(4, min(40, 20_000 // us))
        found = in_turns(blocked, turns, block=8, unseen=1)
        times = {name: median(t) for name, t in found.items()}
        for name, make in awaited.items():
            times[name] = median(loop.run_until_complete(_await_often(make, 7 * turns)))
        return times

    rows: list[Row] = []
    for us in lengths:
        times = measure(us)
        base = times["CuPy, synchronize"]
        rows += [{"kernel_us": us, "way": w, "us": t, "ratio": t / base} for w, t in times.items()]
    loop.close()
    return rows


def _tell(both: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]) -> None:
    loop, future = both
    loop.call_soon_threadsafe(future.set_result, None)


async def _await_often(make: Callable[[], Awaitable[Any]], times: int) -> list[float]:
    found: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        await make()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def processor_share(us: int = 100_000, times: int = 10) -> list[Row]:
    """Which part of one core is busy while a long kernel is waited for."""
    ours, y = agt.Kernel(SPIN), agt.zeros(1).sync()
    raw, x = cupy.RawKernel(SPIN, "spin"), cupy.zeros(1, np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)

    def by_hand() -> None:
        for _ in range(times):
            raw((1,), (1,), (np.uint32(us), x), stream=stream)
            stream.synchronize()

    async def awaited() -> None:
        for _ in range(times):
            await ours(us, y.borrow(), grid=1, block=1)

    rows: list[Row] = []
    loop = asyncio.new_event_loop()
    ours_too = {"ours, await": lambda: loop.run_until_complete(awaited())}
    for name, run in {"CuPy, synchronize": by_hand, **ours_too}.items():
        wall, busy = time.perf_counter(), time.process_time()
        run()
        share = (time.process_time() - busy) / (time.perf_counter() - wall)
        rows.append({"way": name, "kernel_us": us, "core": share})
    loop.close()
    return rows


def cost_per_operation(count: int = 200) -> list[Row]:
    """Host time of enqueueing one tiny kernel of four arguments, in us."""
    source = """
    extern "C" __global__ void tiny(unsigned int n, float a, const float* x, float* y) {
        if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x];
    }"""
    raw, ours = cupy.RawKernel(source, "tiny"), agt.Kernel(source)
    stream, mine = cupy.cuda.Stream(non_blocking=True), agt.create_stream()
    cx, cy = cupy.zeros(32, np.float32), cupy.zeros(32, np.float32)
    x, y = agt.zeros(32).sync().share(), agt.zeros(32).sync()

    def op() -> agt.DeviceOp[Any]:
        return ours(32, 2.0, x, y.borrow(), grid=1, block=32)

    built = op()
    prepared = op().prepare()
    launch = prepared.launch()
    graph = op().graph_on(mine).launch()

    def chain() -> None:
        chained: agt.DeviceOp[Any] = op()
        for _ in range(count - 1):
            chained = chained.and_then(lambda _: op())
        chained.async_on(mine)

    def repeat(once: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(count):
                once()

        return run

    with stream:
        ways = {
            "CuPy RawKernel": repeat(
                lambda: raw((1,), (32,), (np.uint32(32), np.float32(2), cx, cy))
            ),
            "ours, built and submitted one by one": repeat(lambda: op().async_on(mine)),
            "ours, built, chained, submitted together": chain,
            "ours, built once, submitted one by one": repeat(lambda: built.async_on(mine)),
            "ours, prepared": repeat(lambda: launch.async_on(mine)),
            "ours, a graph of one kernel": repeat(lambda: graph.async_on(mine)),
        }

        def settle(_: str) -> None:
            stream.synchronize()
            mine.synchronize()

        times = in_turns(ways, 10, warm=2, before=settle)
    found = {name: median(us) / count for name, us in times.items()}
    base = found["CuPy RawKernel"]
    return [{"way": n, "us": t, "ratio": t / base} for n, t in found.items()]
