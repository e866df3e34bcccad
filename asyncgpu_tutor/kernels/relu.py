"""max(0, x), one thread for each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncgpu_tutor.kernels.kernel import KernelSource

# Each thread reads and writes the same index, so input and output may be one array.
_CUDA_C = r"""
extern "C" __global__
void relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float x = input[i];
        output[i] = x > 0.0f ? x : 0.0f;
    }
}
"""


def _reference(n: int, input: Any, output: Any) -> tuple[Any, ...]:
    """`max(0, input)`."""
    return (np.fmax(input, np.float32(0)),)


RELU = KernelSource("relu", _CUDA_C, {"input": ("n",), "output": ("n",)}, _reference)
