"""What a graph's launch costs the host, by how much is in it: ours beside CuPy's own.

    python benchmarks/graph_launch.py

Graphs of small kernels on one stream, that yield one array (a chain) or an array for each kernel (a zip),
alone and with a copy in and a copy out. The time is that of the call which launches, on an idle stream:
medians, in turns. Growth is what one more node costs the host, from the smallest to the largest graph. It
needs a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np
from in_turns import in_turns, medians

import asyncgpu_tutor as agt

NODES, TURNS, N = (6, 24, 96), 60, 64
SOURCE = r"""
extern "C" __global__ void grow(unsigned int n, float* x) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}
"""
GROW = agt.Kernel(SOURCE, shapes={"x": ("n",)})


def step(x: Any) -> agt.DeviceOp[Any]:
    """One small kernel, in place."""
    return GROW(N, x.partition(64)).last().unpartition()


def chain(count: int) -> agt.DeviceOp[Any]:
    """Each kernel takes the array of the one before: one result."""
    op = step(agt.zeros(N).sync())
    for _ in range(count - 1):
        op = op.and_then(step)
    return op


def zipped(count: int) -> agt.DeviceOp[Any]:
    """An array for each kernel."""
    return agt.zip(*(step(agt.zeros(N).sync()) for _ in range(count)))


def ours(op: agt.DeviceOp[Any], copies: bool) -> Callable[[], object]:
    """The launch of a graph of ours; nobody waits for its result."""
    stream = agt.create_stream()
    if copies:
        x, given = agt.zeros(N).sync(), agt.pin(np.zeros(N, np.float32))
        back = agt.d2h(x.borrow(), out=agt.pinned((N,), np.float32))
        op = agt.zip(agt.memcpy(x.borrow(), given), op, back)
    graph = op.graph_on(stream)
    return lambda: graph.launch().async_on(stream)


def cupys(count: int, copies: bool) -> Callable[[], object]:
    """The launch of a graph of as many kernels, captured by hand."""
    kernel, stream = cp.RawKernel(SOURCE, "grow"), cp.cuda.Stream(non_blocking=True)
    x, host = cp.zeros(N, cp.float32), agt.pinned((N,), np.float32)
    arguments = (np.uint32(N), x)
    kernel((1,), (64,), arguments)
    cp.cuda.Device().synchronize()
    runtime = cp.cuda.runtime
    with stream:
        stream.begin_capture()
        if copies:
            runtime.memcpyAsync(x.data.ptr, host.ctypes.data, host.nbytes, 1, stream.ptr)
        for _ in range(count):
            kernel((1,), (64,), arguments)
        if copies:
            runtime.memcpyAsync(host.ctypes.data, x.data.ptr, host.nbytes, 2, stream.ptr)
        graph = stream.end_capture()
    keep = kernel, x, host
    return lambda: (graph.launch(stream), keep)


def measure(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median time of each call in us, measured in turns, on an idle GPU."""
    idle = cp.cuda.Device().synchronize
    return medians(in_turns(ways, TURNS, block=8, warm=0, unseen=2, before=lambda _: idle()))


def main() -> None:
    """Measure and print."""
    agt.use("cuda")
    for copies in (False, True):
        ways: dict[str, Callable[[], object]] = {}
        for count in NODES:
            ways[f"CuPy {count}"] = cupys(count, copies)
            ways[f"chain {count}"] = ours(chain(count), copies)
            ways[f"zip {count}"] = ours(zipped(count), copies)
        found = measure(ways)
        print("with a copy in and a copy out" if copies else "kernels alone")
        for way in ("CuPy", "chain", "zip"):
            us = [found[f"{way} {count}"] for count in NODES]
            growth = (us[-1] - us[0]) / (NODES[-1] - NODES[0])
            above = max(us[i] - found[f"CuPy {count}"] for i, count in enumerate(NODES))
            told = " / ".join(f"{one:.1f}" for one in us)
            print(
                f"  {way:6} {told} us at {NODES} nodes, {growth:.3f} a node; at most {above:.1f} above CuPy's"
            )


if __name__ == "__main__":
    main()
