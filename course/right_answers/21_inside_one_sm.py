"""Right answers to exercises of course/21_inside_one_sm.py in other forms than the solution's."""


# %% id=21-under-way
dot = agt.Kernel(r"""
extern "C" __global__ void dot(int n, const float* x, const float* w, float* out)
{
    int me = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    float sum = 0.0f;
    while (me + 3 * step < n) {
        float a = x[me], e = w[me], b = x[me + step], f = w[me + step];
        float c = x[me + 2 * step], g = w[me + 2 * step], d = x[me + 3 * step], h = w[me + 3 * step];
        sum += (a * e + b * f) + (c * g + d * h);
        me += 4 * step;
    }
    for (; me < n; me += step) sum += x[me] * w[me];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
""")


# %% id=21-next-tile
smooth = agt.Kernel(r"""
#include <cuda/pipeline>

extern "C" __global__ void smooth(int n, const float* x, float* y)
{
    __shared__ float tile[2][256];
    int me = threadIdx.x, step = gridDim.x, tiles = n / 256;
    cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
    for (int t = blockIdx.x - step, now = 1; t < tiles; t += step, now ^= 1) {
        __syncthreads();
        if (t + step < tiles) {
            pipe.producer_acquire();
            cuda::memcpy_async(&tile[now ^ 1][me], &x[(t + step) * 256 + me], sizeof(float), pipe);
            pipe.producer_commit();
        }
        if (t >= 0) {
            y[t * 256 + me] = tile[now][(me + 255) % 256] + tile[now][me] + tile[now][(me + 1) % 256];
        }
        if (t + step < tiles) {
            pipe.consumer_wait();
            pipe.consumer_release();
        }
    }
}
""")


# %% id=21-ring
ring = agt.Kernel(r"""
#include <cuda_pipeline.h>

extern "C" __global__ void ring(int tiles, const float* x, float* y)
{
    __shared__ float place[5][256];
    int me = threadIdx.x, asked = 0;
    float sum = 0.0f;
    for (int t = 0; t < tiles; t++) {
        for (; asked < t + 4; asked++) {
            if (asked < tiles) __pipeline_memcpy_async(&place[asked % 5][me], &x[asked * 256 + me], 4);
            __pipeline_commit();
        }
        __pipeline_wait_prior(3);
        __syncthreads();
        sum += place[t % 5][255 - me];
    }
    y[me] = sum;
}
""")


# %% id=21-ring
# - __pipeline_memcpy_async(&place[threadIdx.x], &x[tile * 256 + threadIdx.x], 4);
# + int mine = 255 - threadIdx.x;
# + __pipeline_memcpy_async(&place[mine], &x[tile * 256 + mine], 4);
# - __syncthreads();


# %% id=21-next-tile
# - int next = t + gridDim.x;
# - if (next < n / 256)
# -     __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));
# - __pipeline_commit();
# - __pipeline_wait_prior(1);
# - __syncthreads();
# + __pipeline_wait_prior(0);
# + __syncthreads();
# + int next = t + gridDim.x;
# + if (next < n / 256) __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], 4);
# + __pipeline_commit();
# - __syncthreads();


# %% id=21-ring
ring = agt.Kernel(r"""
#include <cuda/barrier>

extern "C" __global__ void ring(int tiles, const float* x, float* y)
{
    __shared__ float place[4][256];
    __shared__ cuda::barrier<cuda::thread_scope_block> full[4];
    int me = threadIdx.x;
    float sum = 0.0f;
    if (me < 4) init(&full[me], 256);
    __syncthreads();
    for (int t = -3; t < tiles; t++) {
        if (t >= 0) full[t % 4].arrive_and_wait();
        int next = t + 3;
        if (next < tiles) cuda::memcpy_async(&place[next % 4][me], &x[next * 256 + me], 4, full[next % 4]);
        if (t >= 0) sum += place[t % 4][255 - me];
    }
    y[me] = sum;
}
""")


# %% id=21-ring of=above
# - __shared__ float place[4][256];
# + __shared__ __align__(16) float place[4][256];
# - if (me < 4) init(&full[me], 256);
# + if (me < 4) init(&full[me], 1);
# - if (t >= 0) full[t % 4].arrive_and_wait();
# + if (t >= 0) {
# +     full[t % 4].wait_parity(t / 4 % 2);
# +     __syncthreads();
# + }
# - if (next < tiles) cuda::memcpy_async(&place[next % 4][me], &x[next * 256 + me], 4, full[next % 4]);
# + if (me == 0 && next < tiles) {
# +     auto& bar = full[next % 4];
# +     cuda::device::memcpy_async_tx(place[next % 4], x + next * 256, cuda::aligned_size_t<16>(1024), bar);
# +     (void)cuda::device::barrier_arrive_tx(bar, 1, 1024);
# + }
