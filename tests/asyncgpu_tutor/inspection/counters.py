"""Four kernels at DIM 256, for a profiler's hardware counters.

The command that made ncu_h200.json is in that file; it runs this module on a CUDA device.
"""

import asyncgpu_tutor as agt

DIM = 256
TRANSPOSE = r"""
extern "C" __global__ void transpose(int n, const float* x, float* y) {
    __shared__ float tile[32][32];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = x[j * n + i];
    __syncthreads();
    y[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""


def run() -> None:
    """Launch each once, on the current device."""
    matrix = agt.ones((DIM, DIM)).sync().share()
    vector = agt.ones((DIM,)).sync().share()
    square = agt.zeros((DIM, DIM)).partition(16, 16)
    agt.sgemm_naive(DIM, DIM, DIM, 1.0, matrix, matrix, 0.0, square).sync()
    agt.matvec_naive(DIM, DIM, matrix, vector, agt.zeros(DIM).partition(256)).sync()
    agt.relu(DIM * DIM, matrix, agt.zeros(DIM * DIM).partition(256)).sync()
    agt.Kernel(TRANSPOSE)(DIM, matrix, agt.zeros((DIM, DIM)).partition(32, 32)).sync()


if __name__ == "__main__":
    agt.use("cuda")
    run()
