// The next tiles come by asynchronous copies: no register holds them, and nobody waits until they are needed.
#include <cuda_pipeline.h>

constexpr int TILE = 128, DEEP = 16, THREADS = 128, STAGES = 2;
constexpr int HIGH = 8, LONG = 16;

struct Stage {
    float a[DEEP][TILE + 4], b[DEEP][TILE];
};

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }

// Starts the copies of one step's tiles. A number of a finds its place alone, so it's turned on its way.
__device__ void fetch(Stage& to, const float* a, const float* b, int n)
{
    int row = threadIdx.x / DEEP, at = threadIdx.x % DEEP;
#pragma unroll
    for (int i = row; i < TILE + row; i += THREADS / DEEP)
        __pipeline_memcpy_async(&to.a[at][i], &a[i * n + at], sizeof(float));
    int deep = threadIdx.x / (TILE / 4), col = threadIdx.x % (TILE / 4) * 4;
#pragma unroll
    for (int i = deep; i < DEEP + deep; i += THREADS * 4 / TILE)
        __pipeline_memcpy_async(&to.b[i][col], &b[i * n + col], sizeof(float4));
    __pipeline_commit();
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
copies(int n, const float* a, const float* b, float* c)
{
    __shared__ __align__(16) Stage stages[STAGES];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / 2 * 64 + lane / 4 * 4, col = warp % 2 * 64 + lane % 4 * 4;
    a += blockIdx.y * TILE * n;
    b += blockIdx.x * TILE;
    c += (blockIdx.y * TILE + row) * n + blockIdx.x * TILE + col;
    float sums[HIGH][LONG] = {};
    fetch(stages[0], a, b, n);
    for (int t = 0, now = 0; t < n; t += DEEP, now ^= 1) {
        __pipeline_wait_prior(0);  // this thread's copies have come,
        __syncthreads();           // and everybody's; and the other stage has been read
        if (t + DEEP < n) fetch(stages[now ^ 1], a + t + DEEP, b + (t + DEEP) * n, n);
        Stage& stage = stages[now];
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float of_a[HIGH], of_b[LONG];
            for (int i = 0; i < HIGH; i += 4) four(of_a[i]) = four(stage.a[k][row + 8 * i]);
            for (int j = 0; j < LONG; j += 4) four(of_b[j]) = four(stage.b[k][col + 4 * j]);
            for (int i = 0; i < HIGH; i++)
                for (int j = 0; j < LONG; j++) sums[i][j] += of_a[i] * of_b[j];
        }
    }
    for (int i = 0; i < HIGH; i++)
        for (int j = 0; j < LONG; j++) c[(i / 4 * 32 + i % 4) * n + j / 4 * 16 + j % 4] = sums[i][j];
}
