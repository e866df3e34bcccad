"""What calls cost the host when a program makes them through this package, on any device.

Each cost is a difference: operations with five calls of a kind against operations with one. So it holds all
that the package's Python does for such a call, and not only the driver's part.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.devices.protocol import Device

MORE = 5  # so many calls of a kind are held against one
N = 64  # elements; they are few, because the work itself is to take no time
RUNS = 400
WAITED = 256  # rows and columns of the matrix that is waited for


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
