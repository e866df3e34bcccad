"""Matrix times vector, one thread for each row."""

from __future__ import annotations

from typing import Any

from asyncgpu_tutor.kernels.kernel import KernelSource

# Row-major: vec_out = mat @ vec_in, with mat (m, n). Neighbouring threads read addresses that are a
# whole row apart, so nothing coalesces: naive on purpose.
_CUDA_C = r"""
extern "C" __global__
void matvec_naive(unsigned int m, unsigned int n,
                  const float* mat, const float* vec_in, float* vec_out)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += mat[row * n + j] * vec_in[j];
        }
        vec_out[row] = sum;
    }
}
"""


def _reference(m: int, n: int, mat: Any, vec_in: Any, vec_out: Any) -> tuple[Any, ...]:
    """`mat @ vec_in`."""
    return (mat.reshape(m, n) @ vec_in.reshape(n),)


_SHAPES = {"mat": ("m", "n"), "vec_in": ("n",), "vec_out": ("m",)}
MATVEC_NAIVE = KernelSource("matvec_naive", _CUDA_C, _SHAPES, _reference)
