"""Measure every case on an NVIDIA GPU and write it down.

python tools/fidelity record FILE [--new]

`--new` measures the kernels only that are not in the recording yet: what it writes is added to it by hand.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import calibrate
import measure_gpu as measure
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.simulated import SPECS
from asyncgpu_tutor.kernels import MATVEC_NAIVE, RELU

from .cases import COPIES, COPY_BYTES, KernelCase, dim3, kernel_cases, makespans, mlp_cases


def kernel_time(device: Any, case: KernelCase) -> float:
    """Time of one launch, as a node of a graph."""
    stream = device.default_stream
    function = device.get_function(case.source, case.kernel)
    args: list[Any] = []
    for value in case.make(np.random.default_rng(1)):
        if isinstance(value, np.ndarray):
            memory = device.malloc(value.nbytes, "argument", stream)
            device.copy_from_host_async(memory, np.ascontiguousarray(value), stream)
            stream.synchronize()
            args.append(memory)
        else:
            args.append(value)
    return measure.node_time(
        device,
        lambda s: device.launch(
            function, dim3(*case.grid), dim3(*case.block), args, case.shared, s
        ),
    )


def copy_times(device: Any) -> dict[str, float]:
    """Times on the device for pinned copies, and of the host's call for pageable ones."""
    found: dict[str, float] = {}
    for nbytes in COPY_BYTES:
        stream = device.create_stream()
        a, b = (device.malloc(nbytes, "copied", stream) for _ in range(2))
        host = device.pinned((nbytes,), np.dtype(np.uint8))
        host[:] = 1
        calls = {
            "h2d": lambda s, a=a, host=host: device.copy_from_host_async(a, host, s),
            "d2h": lambda s, a=a, host=host: device.copy_to_host_async(host, a, s),
            "d2d": lambda s, a=a, b=b, n=nbytes: device.copy_from_device_async(a, b, n, s),
            "memset": lambda s, a=a, n=nbytes: device.memset_async(a, 0, n, s),
        }
        for kind in COPIES:
            found[f"{kind} {nbytes}"] = measure.node_time(device, calls[kind])
        plain = np.ones(nbytes, np.uint8)
        for kind, copy in (
            ("pageable h2d", device.copy_from_host_async),
            ("pageable d2h", lambda a, plain, s: device.copy_to_host_async(plain, a, s)),
        ):
            times: list[float] = []
            for _ in range(40):
                start = time.perf_counter()
                copy(a, plain, stream)
                times.append((time.perf_counter() - start) * 1e6)
                stream.synchronize()
            found[f"{kind} {nbytes}"] = statistics.median(times[10:])
    return found


def pauses(device: Any) -> dict[str, float]:
    """Ten commands in a row on a stream: equal kernels, and kernels between copies."""
    n, stream = 256, device.default_stream
    a, v, o = (device.malloc(nbytes, "pauses", stream) for nbytes in (4 * n * n, 4 * n, 4 * n))
    host = device.pinned((n * n,), np.dtype(np.float32))
    host[:] = 0
    small = device.get_function(RELU.source, "relu")
    matvec = device.get_function(MATVEC_NAIVE.source, "matvec_naive")
    u = np.uint32(n)

    def kernel(s: Any) -> None:
        device.launch(matvec, (1, 1, 1), (n, 1, 1), [u, u, a, v, o], 0, s)

    def relu(s: Any) -> None:
        device.launch(small, (1, 1, 1), (n, 1, 1), [u, v, o], 0, s)

    def fill(s: Any) -> None:
        device.memset_async(o, 0, 4 * n, s)

    def h2d(s: Any) -> None:
        device.copy_from_host_async(a, host, s)

    def d2h(s: Any) -> None:
        device.copy_to_host_async(host, a, s)

    rows = {
        "matvec": (kernel,),
        "relu": (relu,),
        "memset": (fill,),
        "h2d": (h2d,),
        "d2h": (d2h,),
        "matvec h2d": (kernel, h2d),
        "matvec d2h": (kernel, d2h),
        "matvec memset": (kernel, fill),
        "matvec relu": (kernel, relu),
        "h2d d2h": (h2d, d2h),
        "h2d memset": (h2d, fill),
    }
    found: dict[str, float] = measure.graph_costs(device, relu, fill)
    for name, calls in rows.items():

        def ten(s: Any, calls: Any = calls) -> None:
            for _ in range(10):
                for call in calls:
                    call(s)

        found[f"10 x {name} on a stream"] = measure.stream_time(device, ten)
        for call, single in zip(calls, name.split(), strict=True):
            found.setdefault(f"{single} in a graph", measure.node_time(device, call))
    return found


def driver() -> str:
    """Its version, which CUDA itself does not tell."""
    query = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]


def kernels(device: Any, cases: list[KernelCase]) -> dict[str, dict[str, float]]:
    """Registers and times."""
    return {
        "registers": {
            c.kernel: measure.registers(device.get_function(c.source, c.kernel)) for c in cases
        },
        "kernels": {c.name: round(kernel_time(device, c), 3) for c in cases},
    }


def main() -> None:
    """Measure everything and write the file."""
    device: Any = agt.use("cuda")
    if "--new" in sys.argv:
        known = json.loads((Path(__file__).parent / "recordings" / "h200.json").read_text())
        cases = [c for c in kernel_cases() if c.name not in known["kernels"]]
        Path(sys.argv[1]).write_text(json.dumps(kernels(device, cases), indent=1) + "\n")
        return
    result: dict[str, Any] = {
        "machine": {
            **measure.versions(device),
            "driver": driver(),
            "host": platform.processor() or platform.machine(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "command": "python tools/fidelity record FILE",
            "unit": "us, medians",
        },
        "facts": measure.facts(device),
    }
    result["pauses"] = pauses(device)
    waited = result["pauses"]["matvec in a graph"]
    assert calibrate.WAITED == 256, "which is the size of that kernel"
    result["host"] = calibrate.host_costs(device, waited, SPECS["h200"].start_us)
    result |= kernels(device, list(kernel_cases()))
    result["copies"] = copy_times(device)
    runs = {True: (60, 101), False: (4, 11)}
    result["mlp"] = {
        c.name: statistics.median(makespans(c, *runs[c.dim < 1024])) for c in mlp_cases()
    }
    for group in ("host", "pauses", "kernels", "copies", "mlp"):
        result[group] = {k: round(v, 3) for k, v in result[group].items()}
    Path(sys.argv[1]).write_text(json.dumps(result, indent=1) + "\n")
