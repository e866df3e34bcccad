"""Right answers to exercises of course/11_the_gpu_decides.py in other forms than the solution's."""


# %% id=11-meet
MEET = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __threadfence();  // each thread for itself
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        unsigned int looks = 0;
        while (atomicAdd(&arrived[0], 0u) < goal) {
            if (++looks > 10000000) __trap();
        }
    }
    __syncthreads();
    __threadfence_system ( );
}
"""


# %% id=11-meet
MEET = r"""
__device__ bool all_here(unsigned int* arrived, unsigned int goal)
{
    bool here = atomicAdd(arrived, 0) >= goal;
    __threadfence();
    return here;
}

__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        for (int looks = 0; !all_here(arrived, goal); looks++) assert(looks < 10000000);
    }
    __syncthreads();
}
"""


# %% id=11-meet
MEET = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(arrived, 1);
    unsigned int looks = 0;
    while (atomicAdd(arrived, 0) < goal) {
        if (++looks > 10000000) __trap();
    }
    __threadfence();
}
"""


# %% id=11-meet
# - MEET = r"""
# + MEET = r"""
# + #include <cuda/atomic>
# - __threadfence();
# - atomicAdd(arrived, 1);
# + cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(*arrived);
# + count.fetch_add(1, cuda::memory_order_release);
# - while (atomicAdd(arrived, 0) < goal) {
# + while (count.load(cuda::memory_order_acquire) < goal) {
# - __threadfence();


# %% id=11-challenge
WHOLE = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned int looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void ranks(
    unsigned int n, const unsigned int* sources, const float* weight,
    float* rank, float* after, unsigned int* room)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned int round = 1; round <= 100; round++) {
        bool moved = false;
        if (i < n) {
            float sum = 0.0f;
            for (int k = 0; k < 8; k++) {
                unsigned int j = sources[8 * i + k];
                sum += weight[j] * rank[j];
            }
            after[i] = 0.15f / n + 0.85f * sum;
            moved = fabsf(after[i] - rank[i]) > 1e-3f / n;
        }
        if (__syncthreads_or(moved) && threadIdx.x == 0) atomicExch(&room[round], 1);
        meet(&room[0], round * gridDim.x);
        float* other = rank; rank = after; after = other;
        if (atomicAdd(&room[round], 0) == 0) break;
    }
}
"""


def pagerank(sources, weight):
    """Without a cooperative launch, by a barrier of its own."""
    n, whole = weight.size, agt.Kernel(WHOLE)
    room = agt.zeros(101, np.uint32)
    op = agt.zip(agt.full(n, 1 / n), agt.full(n, 1 / n), room).and_then(
        lambda given: whole(n, sources, weight, *given, grid=-(-n // 256), block=256)
    )
    return op.and_then(lambda given: agt.d2h(given[2])).sync()


# %% id=11-meet
# - if (++looks > 10000000) __trap();
# + if (++looks == 10000000) break;
#   }
# + if (looks == 10000000) __trap();


# %% id=11-meet
# - while (atomicAdd(arrived, 0) < goal) {
# + while ((int)(goal - atomicAdd(arrived, 0)) > 0) {


# %% id=11-meet
# - while (atomicAdd(arrived, 0) < goal) {
# + while (*(volatile unsigned int*)arrived < goal) {


# %% id=11-again
# - if (atomicAdd(&gate[0], 1) == gridDim.x - 1) {
# - atomicExch(&gate[0], 0);
# + if (atomicInc(&gate[0], gridDim.x - 1) == gridDim.x - 1) {


# %% id=11-again
# - MEET_AGAIN = r"""
# + # Between its count and the new generation, the last block is alone with the counter.
# + MEET_AGAIN = r"""
# - atomicExch(&gate[0], 0);
# + gate[0] = 0;
# - atomicAdd(&gate[1], 1);
# + atomicExch(&gate[1], before + 1);


# %% id=11-again
MEET_AGAIN = r"""
#include <cuda/atomic>
__device__ void meet(unsigned int* gate)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(gate[0]), generation(gate[1]);
        unsigned int before = generation.load(cuda::memory_order_acquire), looks = 0;
        if (count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
            count.store(0, cuda::memory_order_relaxed);
            generation.fetch_add(1, cuda::memory_order_release);
        }
        while (generation.load(cuda::memory_order_acquire) == before) {
            if (++looks > 10000000) __trap();
        }
    }
    __syncthreads();
}
"""


# %% id=11-again of=above
# + # The fence is in front of the look, and the orders of these atomics are enough for the rest.
#   cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(gate[0]), generation(gate[1]);
# + __threadfence();
# - if (count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
# + if (count.fetch_add(1, cuda::memory_order_relaxed) == gridDim.x - 1) {
# +     cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
# - generation.fetch_add(1, cuda::memory_order_release);
# + generation.store(before + 1, cuda::memory_order_release);


# %% id=11-again of=above
# + # Without a word about order, all of these atomics are sequentially consistent.
# - unsigned int before = generation.load(cuda::memory_order_acquire), looks = 0;
# - if (count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
# - count.store(0, cuda::memory_order_relaxed);
# - generation.fetch_add(1, cuda::memory_order_release);
# - }
# - while (generation.load(cuda::memory_order_acquire) == before) {
# + unsigned int before = generation, looks = 0;
# + if (count++ == gridDim.x - 1) {
# +     count = 0;
# +     ++generation;
# + }
# + while (generation == before) {


# %% id=11-again
# CUDA's own, which needs no gate.
MEET_AGAIN = r"""
#include <cooperative_groups.h>
__device__ void meet(unsigned int* gate)
{
    cooperative_groups::this_grid().sync();
}
"""


# %% id=11-meet
# - if (++looks > 10000000) __trap();
# + assert(++looks < 10000000);
# + __nanosleep(100);


# %% id=11-again
# - unsigned int before = atomicAdd(&gate[1], 0);
# + unsigned int before = *(volatile unsigned int*)&gate[1];
# - while (atomicAdd(&gate[1], 0) == before) {
# + while (((volatile unsigned int*)gate)[1] == before) {


# %% id=11-again
# All threads look and fence, and the release of the count orders the look before it.
MEET_AGAIN = r"""
#include <cuda/atomic>
__device__ void meet(unsigned int* gate)
{
    cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(gate[0]), generation(gate[1]);
    __threadfence();
    unsigned int before = generation.load(cuda::memory_order_relaxed), looks = 0;
    __syncthreads();
    if (threadIdx.x == 0 && count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
        count.store(0, cuda::memory_order_relaxed);
        generation.fetch_add(1, cuda::memory_order_release);
    }
    while (generation.load(cuda::memory_order_acquire) == before) {
        if (++looks > 10000000) __trap();
    }
}
"""


# %% id=11-meet
# - if (++looks > 10000000) __trap();
# + if (++looks > 5000000) __trap();


# %% id=11-again
# - atomicExch(&gate[0], 0);
# - __threadfence();
# + __threadfence();
# + atomicSub(&gate[0], gridDim.x);


# %% id=11-again
# - atomicExch(&gate[0], 0);
#   atomicAdd(&gate[1], 1);
# + atomicAdd(&gate[0], -gridDim.x);


# %% id=11-meet
# -         unsigned int looks = 0;
# -         while (atomicAdd(arrived, 0) < goal) {
# -             if (++looks > 10000000) __trap();
# -         }
# +         bool here = false;
# +         for (int a = 0; a < 5 && !here; a++)
# +             for (int b = 0; b < 200000 && !here; b++) here = atomicAdd(arrived, 0) >= goal;
# +         if (!here) __trap();


# %% id=11-meet
# -         unsigned int looks = 0;
# -         while (atomicAdd(arrived, 0) < goal) {
# -             if (++looks > 10000000) __trap();
# -         }
# +         bool here = false;
# +         for (int a = 0; a < 100 && !here; a++)
# +             for (int b = 0; b < 100 && !here; b++)
# +                 for (int c = 0; c < 100 && !here; c++) here = atomicAdd(arrived, 0) >= goal;
# +         if (!here) __trap();


# %% id=11-meet
# - __device__ void meet(unsigned int* arrived, unsigned int goal)
# + __device__ bool soon(unsigned int* arrived, unsigned int goal)
# + {
# +     for (int k = 0; k < 1000; k++) if (atomicAdd(arrived, 0) >= goal) return true;
# +     return false;
# + }
# + __device__ void meet(unsigned int* arrived, unsigned int goal)
# -         unsigned int looks = 0;
# -         while (atomicAdd(arrived, 0) < goal) {
# -             if (++looks > 10000000) __trap();
# -         }
# +         int tries = 0;
# +         while (!soon(arrived, goal)) if (++tries > 2000) __trap();


# %% id=11-again
# -             unsigned int looks = 0;
# -             while (atomicAdd(&gate[1], 0) == before) {
# -                 if (++looks > 10000000) __trap();
# -             }
# +             bool here = false;
# +             for (int a = 0; a < 1000 && !here; a++)
# +                 for (int b = 0; b < 1000 && !here; b++) here = atomicAdd(&gate[1], 0) != before;
# +             if (!here) __trap();


# %% id=11-flood
FLOOD = r"""
extern "C" __global__ void flood(int width, const unsigned char* open, int* depth, int* rounds)
{
    __shared__ int at[1024], found[2];  // all of it on the SM, and a flag for rounds in turns
    int i = threadIdx.x, x = i % width, y = i / width, level = 0;
    at[i] = depth[i];
    if (i < 2) found[i] = 0;
    __syncthreads();
    for (;; level++) {
        bool here = (x > 0 && at[i - 1] == level) | (x < width - 1 && at[i + 1] == level)
            | (y > 0 && at[i - width] == level) | (y < width - 1 && at[i + width] == level);
        here &= open[i] && at[i] < 0;
        __syncthreads();
        if (here) at[i] = level + 1;
        if (here) found[level % 2] = 1;
        __syncthreads();
        if (!found[level % 2]) break;
        if (i == 0) found[1 - level % 2] = 0;
    }
    depth[i] = at[i];
    if (i == 0) rounds[0] = level + 1;
}
"""
