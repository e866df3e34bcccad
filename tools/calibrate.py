"""Measure this machine's NVIDIA GPU, so that the simulated device can imitate it.

    python tools/calibrate.py mine.json [--device cuda:1]
    ASYNCGPU_SPEC=mine.json python my_program.py

`measured_spec` measures the GPU, and `host_costs` what calls cost the host when a program makes them through
this package. Each cost of the host is a difference: operations with five calls of a kind against operations
with one. So it holds all that the package's Python does for such a call, and not only the driver's part.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.devices.simulated import SPECS, DeviceSpec, derived, save_spec
from asyncgpu_tutor.errors import AsyncGpuError, UsageError
from asyncgpu_tutor.kernels import MATVEC_NAIVE, RELU
from asyncgpu_tutor.run.current import resolve

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

MORE = 5  # so many calls of a kind are held against one
N = 64  # elements; they are few, because the work itself is to take no time
RUNS = 400
WAITED = 256  # rows and columns of the matrix that is waited for
SMALL, LARGE = 4 << 10, 16 << 20  # bytes of a copy


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description="Measure this machine's NVIDIA GPU.")
    parser.add_argument("--device", default="cuda", metavar="NAME", help="cuda or cuda:N (cuda)")
    parser.add_argument("file", type=Path, help="where to write the spec: a .json file")
    args = parser.parse_args(argv)
    if args.file.suffix != ".json":
        raise UsageError(f"{args.file} should end in .json, by which ASYNCGPU_SPEC knows a file")
    device = resolve(args.device)
    if device.simulated:
        raise UsageError(f"{device.name} is simulated: there is nothing to measure")
    spec = measured_spec(cast("CupyDevice", device))
    save_spec(spec, args.file)
    sources = dict(spec.sources)
    for field in dataclasses.fields(spec):
        if field.name in sources:
            value = getattr(spec, field.name)
            print(f"{field.name:20} {value:>14.6g}   {sources[field.name][:60]}")
    print(f"Written to {args.file}. To simulate this GPU: ASYNCGPU_SPEC={args.file}")
    return 0


# ------------------------------------------------------------------ the GPU
def measured_spec(device: CupyDevice) -> DeviceSpec:
    """The spec of a GPU: measured, reported by the driver, or, where neither can be had, the H200's."""
    # Imported here, because it imports CuPy, which few machines have.
    from measure_gpu import facts, versions

    told = versions(device)
    reported = facts(device)
    base = SPECS["h200"]
    timed, kernel_us = _device_times(device)
    host = host_costs(device, kernel_us, base.start_us)
    measured = {key: round(value, 3) for key, value in {**timed, **host}.items()}
    version = ", ".join(f"{key} {value}" for key, value in told.items())
    return derived(
        told["gpu"].removeprefix("NVIDIA "),
        {**reported, **measured},
        {
            **dict.fromkeys(reported, "reported by the driver"),
            **dict.fromkeys(measured, f"measured by tools/calibrate.py: {version}"),
        },
    )


def _device_times(device: CupyDevice) -> tuple[dict[str, float], float]:
    """Constants of the spec, and the time of the kernel that the host's waiting is measured with."""
    from measure_gpu import graph_costs, node_time, stream_time

    stream = device.default_stream
    vector, matrix = (device.malloc(size, "measured", stream) for size in (4 * WAITED, LARGE))
    host = device.pinned((LARGE,), np.dtype(np.uint8))
    host[:] = 0
    n, relu = np.uint32(WAITED), device.get_function(RELU.source, RELU.name)
    matvec = device.get_function(MATVEC_NAIVE.source, MATVEC_NAIVE.name)

    def small(s: Any) -> None:
        device.launch(relu, (1, 1, 1), (WAITED, 1, 1), [n, vector, vector], 0, s)

    def kernel(s: Any) -> None:
        device.launch(matvec, (1, 1, 1), (WAITED, 1, 1), [n, n, matrix, vector, vector], 0, s)

    def h2d(s: Any, nbytes: int = SMALL) -> None:
        device.copy_from_host_async(matrix, host[:nbytes], s)

    def d2h(s: Any, nbytes: int = SMALL) -> None:
        device.copy_to_host_async(host[:nbytes], matrix, s)

    def fill(s: Any) -> None:
        device.memset_async(matrix, 0, SMALL, s)

    def ten_small(s: Any) -> None:
        for _ in range(10):
            small(s)

    def turns(s: Any) -> None:
        for _ in range(10):
            kernel(s)
            h2d(s)

    relu_us, matvec_us = node_time(device, small), node_time(device, kernel)
    up, down = node_time(device, h2d), node_time(device, d2h)
    up_large = node_time(device, lambda s: h2d(s, LARGE))
    down_large = node_time(device, lambda s: d2h(s, LARGE))
    ten = stream_time(device, ten_small)
    switches = stream_time(device, turns) - 10 * (matvec_us + up)
    return {
        # As good as empty, since its load is short beside the launch.
        "launch_us": relu_us,
        "pause_us": max(0.0, ten / 10 - relu_us),
        "switch_us": max(0.0, switches / 20),
        "h2d_us": up,
        "d2h_us": down,
        "fill_us": node_time(device, fill),
        "h2d_gb_s": (LARGE - SMALL) / (up_large - up) / 1e3,
        "d2h_gb_s": (LARGE - SMALL) / (down_large - down) / 1e3,
        **graph_costs(device, small, fill),
        **_pageable(device, matrix),
    }, matvec_us


def _pageable(device: CupyDevice, target: Any) -> dict[str, float]:
    """Copies from memory that the host's caches do not hold, as data usually are."""
    stream = device.default_stream
    found: list[float] = []
    for nbytes in (64 << 10, LARGE):
        sources = [np.ones(nbytes, np.uint8) for _ in range(12)]
        times: list[float] = []
        for source in sources:
            start = time.perf_counter()
            device.copy_from_host_async(target, source, stream)
            times.append((time.perf_counter() - start) * 1e6)
            stream.synchronize()
        found.append(median(times))
    rate = (LARGE - (64 << 10)) / (found[1] - found[0])
    return {"pageable_us": max(0.0, found[0] - (64 << 10) / rate), "pageable_gb_s": rate / 1e3}


# ------------------------------------------------------------------ the host
def host_costs(device: Device, kernel_us: float, start_us: float) -> dict[str, float]:
    """The host's costs, by the names of `DeviceSpec`, in us, medians.

    `kernel_us` is the device's time for `matvec_naive` of size `WAITED` with one block, and `start_us` what
    the spec says of the time from a call to the start of its work. The device becomes the current one
    meanwhile.
    """
    with agt.using(device):
        stream = device.create_stream()
        costs = _calls(stream)
        colder = _mixed(stream) / _sum_of_mixed(costs)
        # These two stay as they are, because programs make these calls in loops, if at all.
        warm = ("call_query_us", "replay_us")
        calls = {k: v if k in warm else v * colder for k, v in costs.items()}
        waits = _waits(device, stream)
        begun = waits.begun - costs["call_event_us"]
        sync = max(1.0, waits.blocked - begun - kernel_us - start_us)
        wake = max(sync, waits.awaited - waits.blocked + sync)
    return {**calls, "sync_us": sync, "wake_us": wake}


def _calls(stream: Any) -> dict[str, float]:
    """Each by itself, in a loop."""
    malloc = _slope(stream, _allocations)
    memset = _slope(stream, lambda n: agt.zip(*(agt.zeros(N) for _ in range(n)))) - malloc
    host = agt.pin(np.zeros(N, np.float32))
    h2d = _slope(stream, lambda n: agt.zip(*(agt.h2d(host) for _ in range(n)))) - malloc
    array = agt.zeros(N).sync().share()
    d2h = _slope(stream, lambda n: agt.zip(*(agt.value(array).and_then(agt.d2h) for _ in range(n))))
    buffer = agt.zeros(N).sync()
    launch = _slope(stream, lambda n: _launches(agt.value(buffer.borrow()), n))
    event = _timed(stream.record, lambda: None)
    return {
        "submit_us": max(0.0, _submission(stream, lambda: agt.value(0)) - event),
        "call_malloc_us": malloc,
        "call_memset_us": memset,
        "call_h2d_us": h2d,
        "call_d2h_us": d2h,
        "call_launch_us": launch,
        "call_event_us": event,
        "call_query_us": _query(stream),
        "replay_us": _replay(stream, buffer),
    }


def _mixed(stream: Any) -> float:
    """One operation with calls of every kind: what they cost where no loop has made them warm."""
    host = agt.pin(np.zeros(N, np.float32))

    def build() -> DeviceOp[Any]:
        arrays = agt.zip(agt.h2d(host), agt.zeros(N))
        return _launches(arrays.map(lambda pair: pair[0]), 3).and_then(agt.d2h)

    return _submission(stream, build)


def _sum_of_mixed(costs: dict[str, float]) -> float:
    """The same, added up."""
    return (
        costs["submit_us"]
        + 2 * costs["call_malloc_us"]
        + costs["call_h2d_us"]
        + costs["call_memset_us"]
        + 3 * costs["call_launch_us"]
        + costs["call_d2h_us"]
        + costs["call_event_us"]
    )


def _median(times: list[float]) -> float:
    return statistics.median(times[len(times) // 5 :])


def _timed(run: Callable[[], object], between: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
        between()
    return _median(times)


def _submission(stream: Any, build: Callable[[], DeviceOp[Any]]) -> float:
    return _timed(lambda: build().async_on(stream), stream.synchronize)


def _slope(stream: Any, build: Callable[[int], DeviceOp[Any]]) -> float:
    many, one = (_submission(stream, lambda n=n: build(n)) for n in (MORE + 1, 1))
    return (many - one) / MORE


def _allocations(count: int) -> DeviceOp[object]:
    def allocate(context: agt.types.ExecutionContext) -> DeviceOp[object]:
        return agt.value([context.empty((N,)) for _ in range(count)])

    return agt.with_context(allocate)


def _launches(op: DeviceOp[DeviceArray], count: int) -> DeviceOp[DeviceArray]:
    """A chain, as programs have it, so that `and_then` and `output` are paid for."""

    def launch(x: DeviceArray) -> DeviceOp[DeviceArray]:
        part = x.partition(N)
        return agt.relu(N, part, part).output()

    for _ in range(count):
        op = op.and_then(launch)
    return op


def _query(stream: Any) -> float:
    event = stream.record()
    event.synchronize()
    return _timed(lambda: event.done, lambda: None)


def _replay(stream: Any, buffer: DeviceArray) -> float:
    """A call of a prepared pipeline, which has its arguments ready."""

    def launched(count: int) -> float:
        prepared = _launches(agt.value(buffer.borrow()), count).prepare()
        return _timed(lambda: prepared.launch().async_on(stream), stream.synchronize)

    return max(0.0, (launched(MORE + 1) - launched(1)) / MORE)


class Waits(NamedTuple):
    """Host times of one kernel, in us: submitted; waited for; awaited."""

    begun: float
    blocked: float
    awaited: float


def _waits(device: Device, stream: Any) -> Waits:
    n = WAITED
    matrix, vector = (agt.zeros(shape).sync().share() for shape in ((n, n), n))
    out = agt.zeros(n).sync()

    def kernel() -> DeviceOp[Any]:
        return agt.matvec_naive(n, n, matrix, vector, out.borrow().partition(n))

    async def awaited() -> float:
        times: list[float] = []
        for _ in range(RUNS):
            start = time.perf_counter()
            await kernel()
            times.append((time.perf_counter() - start) * 1e6)
        return _median(times)

    begun = _submission(stream, kernel)
    blocked = _timed(lambda: kernel().sync_on(stream), lambda: None)
    with agt.using(device, agt.SingleStream(stream)):
        return Waits(begun, blocked, asyncio.run(awaited()))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except AsyncGpuError as error:
        sys.exit(f"calibrate: {error}")
