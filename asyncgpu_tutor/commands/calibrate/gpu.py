"""What the commands of an NVIDIA GPU take on the device itself."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncgpu_tutor.commands.calibrate.host import WAITED, host_costs
from asyncgpu_tutor.devices.simulated import SPECS, DeviceSpec, derived
from asyncgpu_tutor.kernels import MATVEC_NAIVE, RELU

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

SMALL, LARGE = 4 << 10, 16 << 20  # bytes of a copy


def measured_spec(device: CupyDevice) -> DeviceSpec:
    """Its spec: measured, reported by the driver, or, where neither is possible, the H200's."""
    # Imported here, because it imports CuPy, which few machines have.
    from asyncgpu_tutor.devices.cuda.measure import facts, versions

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
            **dict.fromkeys(measured, f"measured by asyncgpu-tutor calibrate: {version}"),
        },
    )


def _device_times(device: CupyDevice) -> tuple[dict[str, float], float]:
    """Constants of the spec, and the time of the kernel that the host's waiting is measured with."""
    from asyncgpu_tutor.devices.cuda.measure import graph_costs, node_time, stream_time

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
    """From memory that the host's caches do not hold, as data usually are."""
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
