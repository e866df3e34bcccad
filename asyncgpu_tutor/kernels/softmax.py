"""exp(x) / sum of exp(x), by one block."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncgpu_tutor.kernels.kernel_source import KernelSource

# One block of at most 256 threads, a power of two, whatever n is: the maximum and the sum are of all
# elements, and only threads of one block can wait for each other. The maximum is subtracted first, so that
# no expf overflows and the sum is at least 1. Each thread reads and writes its own elements only, so input
# and output may be one array.
CUDA_C = r"""
extern "C" __global__
void softmax(unsigned int n, const float* input, float* output)
{
    __shared__ float part[256];
    unsigned int t = threadIdx.x;

    float top = -3.402823466e38f;  // below every float
    for (unsigned int i = t; i < n; i += blockDim.x) {
        top = fmaxf(top, input[i]);
    }
    part[t] = top;
    __syncthreads();
    for (unsigned int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] = fmaxf(part[t], part[t + step]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();

    float sum = 0.0f;
    for (unsigned int i = t; i < n; i += blockDim.x) {
        sum += expf(input[i] - top);
    }
    part[t] = sum;
    __syncthreads();
    for (unsigned int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }

    for (unsigned int i = t; i < n; i += blockDim.x) {
        output[i] = expf(input[i] - top) / part[0];
    }
}
"""


def reference(n: int, input: Any, output: Any) -> tuple[Any, ...]:
    """`exp(input) / exp(input).sum()`, with the maximum subtracted."""
    powers = np.exp(input - input.max())
    return (powers / powers.sum(),)


SOFTMAX = KernelSource(
    name="softmax",
    source=CUDA_C,
    shapes={"input": ("n",), "output": ("n",)},
    reference=reference,
)
