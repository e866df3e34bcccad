"""NVIDIA's cuda.core by hand: four streams, preallocated buffers, and its own launch."""

from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from work import BATCHES, BLOCK, KERNELS, TILE, Contender, Work

import asyncgpu_tutor as agt


def _checked(result: Any) -> Any:
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA driver: {status}")
    return values[0] if values else None


def contenders(work: Work) -> list[Contender]:
    """Four streams, and one."""
    device = Device()
    device.set_current()
    n = work.dim
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", fma=False)
    kernels = {
        name: Program(source, code_type="c++", options=options).compile("cubin").get_kernel(name)
        for name, source in KERNELS.items()
    }
    streams = [device.create_stream() for _ in range(BATCHES)]

    def upload(host: Any) -> int:
        pointer = _checked(driver.cuMemAlloc(host.nbytes))
        _checked(driver.cuMemcpyHtoD(pointer, host.ctypes.data, host.nbytes))
        return int(pointer)

    w0, w1 = upload(work.w0), upload(work.w1)
    x = [upload(work.xs[0]) for _ in range(BATCHES)]
    hidden = [upload(work.xs[0]) for _ in range(BATCHES)]
    out = [upload(work.w1) for _ in range(BATCHES)]
    # It is pinned, as `xs` are. Registering an array of NumPy's fails where another has a part of its page.
    host = [agt.pinned(n) for _ in range(BATCHES)]
    tiles = LaunchConfig(grid=work.grid, block=(TILE, TILE, 1))
    lines = LaunchConfig(grid=work.line, block=(BLOCK, 1, 1))
    size, one, zero = np.uint32(n), np.float32(1), np.float32(0)

    def batch(i: int, stream: Any) -> None:
        handle = stream.handle
        _checked(driver.cuMemcpyHtoDAsync(x[i], work.xs[i].ctypes.data, work.xs[i].nbytes, handle))
        sgemm, matvec, relu = (kernels[k] for k in ("sgemm_naive", "matvec_naive", "relu"))
        launch(stream, tiles, sgemm, size, size, size, one, x[i], w0, zero, hidden[i])
        launch(stream, lines, matvec, size, size, hidden[i], w1, out[i])
        launch(stream, lines, relu, size, out[i], out[i])
        _checked(driver.cuMemcpyDtoHAsync(host[i].ctypes.data, out[i], host[i].nbytes, handle))

    def four() -> None:
        for i, stream in enumerate(streams):
            batch(i, stream)
        for stream in streams:
            stream.sync()

    name = "cuda.core by hand, four streams"
    return [Contender(name, four, lambda: [array.copy() for array in host])]
