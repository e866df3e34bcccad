"""What is recorded of the chapter on CUDA graphs: small kernels, called one by one and as a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceArray, DeviceOp
from asyncgpu_tutor.commands.profile.run import Body, recorded

__all__ = ["layer", "network"]

WIDTH = 64  # floats in a layer
LAYERS = 8
TOKENS = 3
NETWORKS = 4

layer = agt.Kernel(r"""
extern "C" __global__ void layer(unsigned int n, const float* w, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += w[row * n + j] * x[j];
        }
        y[row] = tanhf(sum);
    }
}
""")


def network(seed: int) -> tuple[DeviceOp[Any], DeviceArray, DeviceArray]:
    """Thin layers, one after the other, on arrays that are lent; its input and its output."""
    rng = np.random.default_rng(seed)
    shape = (LAYERS, WIDTH, WIDTH)
    host = rng.standard_normal(shape, dtype=np.float32) * np.float32(1.2 / WIDTH**0.5)
    weights = [agt.h2d(agt.pin(w), "w").sync() for w in host]
    arrays = [agt.zeros(WIDTH, name=f"x{i}").sync() for i in range(LAYERS + 1)]
    steps = [
        layer(WIDTH, w.borrow(), x.borrow(), y.borrow().partition(WIDTH))
        for w, x, y in zip(weights, arrays, arrays[1:], strict=False)
    ]
    return agt.zip(*steps).named("network"), arrays[0], arrays[-1]


def _tokens() -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    rng = np.random.default_rng(2)
    return [agt.pin(rng.standard_normal(WIDTH, dtype=np.float32)) for _ in range(TOKENS)]


@recorded(
    "09_cuda_graphs", "three tokens through eight layers: an update and a graph's launch each"
)
async def by_graph() -> Body:
    """Two calls of the host for a token."""
    op, x, y = network(0)
    answer = agt.d2h(y.borrow(), out=agt.pinned(WIDTH))
    graph = agt.zip(op, answer).named("step").graph_on(agt.create_stream())
    tokens, policy = _tokens(), agt.SingleStream()

    async def body() -> None:
        for token in tokens:
            graph.update(agt.memcpy(x.borrow(), token).named("update"))
            await graph.launch().schedule(policy)

    return body


@recorded("09_cuda_graphs_by_calls", "the same three tokens, each kernel and copy called by itself")
async def by_calls() -> Body:
    """Ten calls of the host for a token."""
    op, x, y = network(0)
    answer = agt.d2h(y.borrow(), out=agt.pinned(WIDTH))
    tokens, policy = _tokens(), agt.SingleStream()

    async def body() -> None:
        for token in tokens:
            step = agt.zip(agt.memcpy(x.borrow(), token), op, answer)
            await step.named("step").schedule(policy)

    return body


@recorded("09_cuda_graphs_branches", "four networks side by side: the branches of one graph")
async def branches() -> Body:
    """One call, and four chains side by side."""
    arms = [network(i)[0].named(f"network {i}") for i in range(NETWORKS)]
    graph = agt.overlap(*arms).named("four networks").graph_on(agt.create_stream())
    launch, policy = graph.launch(), agt.SingleStream()

    async def body() -> None:
        await launch.schedule(policy)

    return body
