"""Right answers to exercises of course/14_gallery.py in other forms than the solution's."""


# %% id=14-grep
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool yes = i < n && text[i] == letter;
    if (!yes) return;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""


# %% id=14-challenge
WHOLE = r"""
// One block, and 16 threads for each star.
extern "C" __global__ void whole(int n, int steps, float* at, const float* speed)
{
    __shared__ float x[64], y[64];
    int i = threadIdx.x / 16, lane = threadIdx.x % 16;
    unsigned int mask = i % 2 ? 0xffff0000u : 0xffffu;     // this star's half of the warp
    float u = speed[2 * i], v = speed[2 * i + 1];
    if (lane == 0) {
        x[i] = at[2 * i];
        y[i] = at[2 * i + 1];
    }
    __syncthreads();
    for (int step = 0; step < steps; step++) {
        float fx = 0.0f, fy = 0.0f;
        for (int j = lane; j < n; j += 16) {
            float dx = x[j] - x[i], dy = y[j] - y[i];
            float r2 = dx * dx + dy * dy + 0.01f;
            float pull = 1.0f / (n * r2 * sqrtf(r2));
            fx += pull * dx;
            fy += pull * dy;
        }
        for (int far = 8; far > 0; far /= 2) {
            fx += __shfl_down_sync(mask, fx, far, 16);
            fy += __shfl_down_sync(mask, fy, far, 16);
        }
        __syncthreads();                           // everybody has read
        if (lane == 0) {
            u += 0.01f * fx;
            v += 0.01f * fy;
            x[i] += 0.01f * u;
            y[i] += 0.01f * v;
        }
        __syncthreads();                           // everybody has written
    }
    if (lane == 0) {
        at[2 * i] = x[i];
        at[2 * i + 1] = y[i];
    }
}
"""


def fly(step, at, speed, steps):
    n, whole = at.size // 2, agt.Kernel(WHOLE)
    op = whole(n, steps, at.borrow(), speed.borrow(), grid=1, block=16 * n)
    return op.and_then(lambda given: agt.d2h(given[0])).sync()


# %% id=14-grep
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int lane = threadIdx.x % 32, first = 31 - __clz(votes), slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""


# %% id=14-grep
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""
