"""Matrix times matrix, one thread for each element of the result."""

from __future__ import annotations

from typing import Any

from asyncgpu_tutor.kernels.kernel import KernelSource

# Row-major: c = alpha * a @ b + beta * c, with a (m, k), b (k, n), c (m, n).
_CUDA_C = r"""
extern "C" __global__
void sgemm_naive(unsigned int m, unsigned int n, unsigned int k,
                 float alpha, const float* a, const float* b,
                 float beta, float* c)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (unsigned int i = 0; i < k; i++) {
            sum += a[row * k + i] * b[i * n + col];
        }
        c[row * n + col] = alpha * sum + beta * c[row * n + col];
    }
}
"""


def _reference(
    m: int, n: int, k: int, alpha: float, a: Any, b: Any, beta: float, c: Any
) -> tuple[Any, ...]:
    """`alpha * a @ b + beta * c`."""
    return (alpha * (a.reshape(m, k) @ b.reshape(k, n)) + beta * c.reshape(m, n),)


_SHAPES = {"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")}
SGEMM_NAIVE = KernelSource("sgemm_naive", _CUDA_C, _SHAPES, _reference)
