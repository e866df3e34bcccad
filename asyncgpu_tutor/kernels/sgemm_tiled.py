"""Matrix times matrix, tile by tile through shared memory."""

from __future__ import annotations

from asyncgpu_tutor.kernels.kernel_source import KernelSource
from asyncgpu_tutor.kernels.sgemm_naive import reference

# Row-major: c = alpha * a @ b + beta * c, with a (m, k), b (k, n), c (m, n), in blocks of 16 x 16 threads.
# A block loads a tile of each matrix once, each thread one element of both, and all 256 threads read them
# from shared memory: global memory is asked for a sixteenth of what the naive kernel asks for. The first
# barrier lets nobody read before all have loaded, the second lets nobody load the next tile before all
# have read.
CUDA_C = r"""
extern "C" __global__
void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                 float alpha, const float* a, const float* b,
                 float beta, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y;
    unsigned int col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = alpha * sum + beta * c[row * n + col];
    }
}
"""

SGEMM_TILED = KernelSource(
    name="sgemm_tiled",
    source=CUDA_C,
    shapes={"a": ("m", "k"), "b": ("k", "n"), "c": ("m", "n")},
    reference=reference,
)
