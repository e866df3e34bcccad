"""Measuring a CUDA device: what it says of itself, and how long one command takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import cupy
from cupy.cuda import runtime

from asyncgpu_tutor.cupy_device.device import CupyDevice
from asyncgpu_tutor.cupy_device.stream import CupyStream

__all__ = ["facts", "node_time", "stream_time", "versions"]

# cudaDeviceAttr, CUDA Runtime API, "Data types used by CUDA Runtime".
CLOCK_KHZ, SMS, MEMORY_KHZ, BUS_BITS, THREADS_PER_SM = 13, 16, 36, 37, 39
SHARED_PER_SM, BLOCKS_PER_SM = 81, 106

HOLD = r"""
extern "C" __global__ void hold(long long clocks) {
    long long start = clock64();
    while (clock64() - start < clocks) {}
}
"""


def facts(device: CupyDevice) -> dict[str, float]:
    """What the driver reports, by the names of `DeviceSpec`.

    Notes
    -----
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


def node_time(
    device: CupyDevice,
    enqueue: Callable[[CupyStream], None],
    nodes: int = 20,
    rounds: int = 15,
) -> float:
    """The device's time for one of several equal commands in a row, in us, without the host's.

    Parameters
    ----------
    enqueue : callable
        Puts one command on the stream that it gets. It must not allocate.
    nodes : int
        How many of them make up the CUDA graph that is timed.
    rounds : int
        How often the graph is launched; the median counts.
    """
    stream = device.create_stream()
    with device.active():
        enqueue(stream)  # loads the module
        stream.synchronize()
        stream.cupy.begin_capture()
        for _ in range(nodes):
            enqueue(stream)
        graph = stream.cupy.end_capture()
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        times: list[float] = []
        for turn in range(rounds + 3):
            before.record(stream.cupy)
            graph.launch(stream.cupy)
            after.record(stream.cupy)
            after.synchronize()
            if turn >= 3:
                times.append(float(cupy.cuda.get_elapsed_time(before, after)) * 1e3 / nodes)
    return statistics.median(times)


def stream_time(
    device: CupyDevice, enqueue: Callable[[CupyStream], None], rounds: int = 15
) -> float:
    """The device's time, in us, for what `enqueue` puts on a stream behind a kernel that holds it up.

    The host is ahead of the device all the time, so that only the device's own pauses count.
    """
    stream = device.create_stream()
    hold = cupy.RawKernel(HOLD, "hold")
    times: list[float] = []
    with device.active():
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        for turn in range(rounds + 3):
            with stream.cupy:
                hold((1,), (1,), (cupy.int64(1_000_000),))
            before.record(stream.cupy)
            enqueue(stream)
            after.record(stream.cupy)
            after.synchronize()
            if turn >= 3:
                times.append(float(cupy.cuda.get_elapsed_time(before, after)) * 1e3)
    return statistics.median(times)


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
