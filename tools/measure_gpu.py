"""Measurements of a CUDA device: what the driver reports, and how long one command takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import cupy
from cupy.cuda import driver, runtime

from asyncgpu_tutor.devices.cuda.device import CupyDevice, CupyFunction
from asyncgpu_tutor.devices.cuda.stream import CupyStream

# cudaDeviceAttr, CUDA Runtime API, "Data types used by CUDA Runtime".
CLOCK_KHZ, SMS, MEMORY_KHZ, BUS_BITS, THREADS_PER_SM = 13, 16, 36, 37, 39
SHARED_PER_SM, BLOCKS_PER_SM = 81, 106

ROUNDS = 15  # of each measurement, of which the median counts, after some to warm up
WARM_UP = 3
ROW, NODES = 20, 100  # nodes of a graph that is timed, and of one that is made
BRANCHES = 8  # of a graph, against one of a single branch

HOLD = r"""
extern "C" __global__ void hold(long long clocks) {
    long long start = clock64();
    while (clock64() - start < clocks) {}
}
"""


def facts(device: CupyDevice) -> dict[str, float]:
    """What the driver reports, by the names of `DeviceSpec`.

    The bandwidth is the theoretical one: memory clock, two transfers a clock, width of the bus.
    """
    with device.active():
        ask = {
            name: int(runtime.deviceGetAttribute(number, device.ordinal))
            for name, number in (
                ("clock", CLOCK_KHZ),
                ("sms", SMS),
                ("threads_per_sm", THREADS_PER_SM),
                ("blocks_per_sm", BLOCKS_PER_SM),
                ("shared_bytes_per_sm", SHARED_PER_SM),
                ("memory", MEMORY_KHZ),
                ("bus", BUS_BITS),
            )
        }
        properties = runtime.getDeviceProperties(device.ordinal)
    clock, memory, bus = ask.pop("clock"), ask.pop("memory"), ask.pop("bus")
    return {
        **ask,
        "memory_bytes": int(properties["totalGlobalMem"]),
        "l2_bytes": int(properties["l2CacheSize"]),
        "clock_mhz": clock / 1e3,
        "dram_gb_s": 2 * memory * 1e3 * bus / 8 / 1e9,
    }


def versions(device: CupyDevice) -> dict[str, str]:
    """GPU, driver and CuPy, as they name themselves."""
    return {
        "gpu": runtime.getDeviceProperties(device.ordinal)["name"].decode(),
        "cuda driver": _dotted(int(runtime.driverGetVersion())),
        "cuda runtime": _dotted(int(runtime.runtimeGetVersion())),
        "cupy": cupy.__version__,
    }


def node_time(device: CupyDevice, enqueue: Callable[[CupyStream], None]) -> float:
    """The device's time for one of several equal commands in a row, in us, without the host's.

    `enqueue` puts one command on the stream that it gets, and must not allocate. A CUDA graph of them is
    timed.
    """
    stream = device.create_stream()
    with device.active():
        enqueue(stream)  # loads the module
        stream.synchronize()
        stream.cupy.begin_capture()
        for _ in range(ROW):
            enqueue(stream)
        graph = stream.cupy.end_capture()
        return _median(stream, lambda: graph.launch(stream.cupy)) / ROW


def stream_time(device: CupyDevice, enqueue: Callable[[CupyStream], None]) -> float:
    """The device's time, in us, for what `enqueue` puts on a stream behind a kernel that holds it up.

    The host is ahead of the device all the time, so that only the device's own pauses count.
    """
    stream = device.create_stream()
    hold = cupy.RawKernel(HOLD, "hold")

    def hold_up() -> None:
        with stream.cupy:
            hold((1,), (1,), (cupy.int64(1_000_000),))

    with device.active():
        return _median(stream, lambda: enqueue(stream), hold_up)


def _median(
    stream: CupyStream, work: Callable[[], None], first: Callable[[], None] = lambda: None
) -> float:
    """The device's time, in us, for what `work` puts on the stream, behind what `first` does."""
    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    times: list[float] = []
    for _ in range(WARM_UP + ROUNDS):
        first()
        before.record(stream.cupy)
        work()
        after.record(stream.cupy)
        after.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(before, after)) * 1e3)
    return statistics.median(times[WARM_UP:])


def graph_costs(
    device: CupyDevice, kernel: Callable[[CupyStream], None], fill: Callable[[CupyStream], None]
) -> dict[str, float]:
    """What graphs cost, by the names of `DeviceSpec`, in us: one of many nodes against one of a single node.

    `kernel` and `fill` put one short command of their kind on the stream that they get, and do not allocate.
    """

    def both(stream: CupyStream) -> None:
        kernel(stream)
        fill(stream)

    apart = node_time(device, both) - node_time(device, kernel) - node_time(device, fill)
    stream = device.create_stream()
    ready: dict[int, float] = {}
    launched: list[float] = []
    with device.active():
        for count in (1, NODES):
            made: list[float] = []
            for _ in range(7):
                stream.cupy.begin_capture()
                for _ in range(count):
                    kernel(stream)
                start = time.perf_counter()
                graph = stream.cupy.end_capture()
                made.append((time.perf_counter() - start) * 1e6)
                launched += _calls(graph, stream)
            ready[count] = statistics.median(made)
        one, many = (
            statistics.median(_calls(_branched(device, kernel, branches), stream, 30))
            for branches in (1, BRANCHES)
        )
    return {
        "graph_launch_us": statistics.median(launched),
        "graph_branch_us": max(0.0, (many - one) / (BRANCHES - 1)),
        "graph_node_us": max(0.0, apart / 2),
        "graph_instantiate_us": max(0.0, (ready[NODES] - ready[1]) / (NODES - 1)),
    }


def _calls(graph: Any, stream: CupyStream, times: int = 1) -> list[float]:
    """How long the host's calls take, in us, of which each finds the device idle."""
    graph.launch(stream.cupy)  # the first time it is uploaded
    stream.synchronize()
    taken: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        graph.launch(stream.cupy)
        taken.append((time.perf_counter() - start) * 1e6)
        stream.synchronize()
    return taken


def _branched(device: CupyDevice, kernel: Callable[[CupyStream], None], branches: int) -> Any:
    """A graph of so many branches with one kernel each."""
    root, *others = (device.create_stream() for _ in range(branches))
    root.cupy.begin_capture()
    fork = root.cupy.record()
    kernel(root)
    for other in others:
        other.cupy.wait_event(fork)
        kernel(other)
        root.cupy.wait_event(other.cupy.record())
    return root.cupy.end_capture()


def registers(function: CupyFunction) -> int:
    """How many registers the compiler gives to each thread of a kernel."""
    return int(driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS, function.kernel.ptr))


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
