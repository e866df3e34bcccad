// 128 x 256 elements a block, and the numbers of the next product are read while this one is computed.
#include <cuda_pipeline.h>

constexpr int TALL = 128, BROAD = 256, DEEP = 16, THREADS = 256, STAGES = 2;
constexpr int HIGH = 8, LONG = 16;

struct Stage {
    float a[DEEP][TALL + 4], b[DEEP][BROAD];
};

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }

__device__ void fetch(Stage& to, const float* a, const float* b, int n)
{
    int row = threadIdx.x / DEEP, at = threadIdx.x % DEEP;
    a += row * n + at;
#pragma unroll
    for (int i = 0; i < TALL; i += THREADS / DEEP, a += THREADS / DEEP * n)
        __pipeline_memcpy_async(&to.a[at][row + i], a, sizeof(float));
    int deep = threadIdx.x / (BROAD / 4), col = threadIdx.x % (BROAD / 4) * 4;
    b += deep * n + col;
#pragma unroll
    for (int i = 0; i < DEEP; i += THREADS * 4 / BROAD, b += THREADS * 4 / BROAD * n)
        __pipeline_memcpy_async(&to.b[deep + i][col], b, sizeof(float4));
}

__device__ void read(float* of_a, float* of_b, Stage& stage, int k, int row, int col)
{
#pragma unroll
    for (int i = 0; i < HIGH; i += 4) four(of_a[i]) = four(stage.a[k][row + 8 * i]);
#pragma unroll
    for (int j = 0; j < LONG; j += 4) four(of_b[j]) = four(stage.b[k][col + 4 * j]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
top(int n, const float* a, const float* b, float* c)
{
    extern __shared__ __align__(16) unsigned char room[];  // 49,664 bytes: more than a block has unasked
    Stage* stages = reinterpret_cast<Stage*>(room);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / 4 * 64 + lane / 4 * 4, col = warp % 4 * 64 + lane % 4 * 4;
    a += blockIdx.y * TALL * n;
    b += blockIdx.x * BROAD;
    c += (blockIdx.y * TALL + row) * n + blockIdx.x * BROAD + col;
    float sums[HIGH][LONG] = {};
    __align__(16) float of_a[2][HIGH], of_b[2][LONG];
    for (int stage = 0; stage < STAGES - 1; stage++) {
        fetch(stages[stage], a + stage * DEEP, b + stage * DEEP * n, n);
        __pipeline_commit();
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    read(of_a[0], of_b[0], stages[0], 0, row, col);
    for (int t = 0; t < n / DEEP; t++) {
        int next = t + STAGES - 1;
        if (next < n / DEEP) fetch(stages[next % STAGES], a + next * DEEP, b + next * DEEP * n, n);
        __pipeline_commit();
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            bool last = k == DEEP - 1;
            if (last) {
                __pipeline_wait_prior(STAGES - 2);  // the next tiles have come,
                __syncthreads();                    // for everybody, and these have been read
            }
            // After the last step this reads once more what nobody needs.
            read(of_a[(k + 1) % 2], of_b[(k + 1) % 2], stages[(t + last) % STAGES], (k + 1) % DEEP, row, col);
#pragma unroll
            for (int i = 0; i < HIGH; i++)
#pragma unroll
                for (int j = 0; j < LONG; j++) sums[i][j] += of_a[k % 2][i] * of_b[k % 2][j];
        }
    }
#pragma unroll
    for (int i = 0; i < HIGH; i++)
#pragma unroll
        for (int j = 0; j < LONG; j++) c[(i / 4 * 32 + i % 4) * n + j / 4 * 16 + j % 4] = sums[i][j];
}
