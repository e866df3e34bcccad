"""A kernel with its spec in a folder."""

from pathlib import Path

import pytest

KERNEL = """#include <cstdio>
#include "parts/half.cuh"

extern "C" __global__ void block_sums(unsigned int n, const float* x, float* sums) {
    __shared__ float part[256];
    unsigned int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? x[i] : 0.0f;
    for (unsigned int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) part[t] = plus(part[t], part[t + half]);
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
int main() { printf("%d", 1); }
"""
HEADER = "#pragma once\n__device__ float plus(float a, float b) { return a + b; }\n"
SPEC = """import numpy as np
from simgpu import KernelSpec, Output


def arguments(n, random):
    return {"n": n, "x": random.random(n, np.float32), "sums": Output(-(-n // 256))}


def expected(n, x):
    return np.pad(x, (0, -n % 256)).reshape(-1, 256).sum(axis=1)


spec = KernelSpec("block_sums", arguments, expected)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "half.cuh").write_text(HEADER)
    (tmp_path / "mine.cu").write_text(KERNEL)
    (tmp_path / "mine_spec.py").write_text(SPEC)
    return tmp_path
