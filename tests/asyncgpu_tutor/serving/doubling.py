"""A pipeline that is easy to check: twice the input."""

from collections.abc import Callable
from typing import Any

import numpy as np

import asyncgpu_tutor as agt

N = 32
DOUBLE = """
extern "C" __global__ void twice(unsigned int n, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { assert(x[i] >= 0.0f); y[i] = 2.0f * x[i]; }
}"""


def pipeline(slot: Any) -> agt.DeviceOp[Any]:
    """Twice the input; fails for negative numbers, on a simulated device."""
    simulated = agt.current_device().simulated
    source = DOUBLE if simulated else DOUBLE.replace("assert(x[i] >= 0.0f);", "")
    launch = agt.Kernel(source)(N, agt.h2d(slot), agt.zeros((N,)).partition(32))
    return launch.last().unpartition().to_host()


def lasting(turns: str) -> Callable[[Any], agt.DeviceOp[Any]]:
    """A pipeline for the same, after a loop of so many turns, such as ``"2000 * x[i]"``."""
    loop = f"for (int k = 0; k < {turns}; k++) y[i] += x[k % n];"
    kernel = agt.Kernel(DOUBLE.replace("assert(x[i] >= 0.0f);", loop))
    return lambda slot: kernel(N, agt.h2d(slot), agt.zeros((N,)).partition(32)).output().to_host()


def request(number: float) -> Any:
    return np.full(N, number, np.float32)


async def read(server: agt.Server[Any], source: Any) -> tuple[list[float], Exception | None]:
    """The results that come, and what ends them."""
    got: list[float] = []
    try:
        async for y in server.map(source):
            got.append(float(y[0]))  # noqa: PERF401 - what came before a failure counts
    except Exception as error:  # noqa: BLE001 - whatever it is
        return got, error
    return got, None
