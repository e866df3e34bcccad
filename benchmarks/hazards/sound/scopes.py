"""Correct uses of scopes that look as if they were not."""

from benchmarks.hazards.case import Empty, floats, ints, sound

CASES = [
    sound(
        "atomics of a block in shared memory",
        r"""
__global__ void count(const float* x, int* counts) {
    __shared__ int local;
    if (threadIdx.x == 0) local = 0;
    __syncthreads();
    if (x[blockIdx.x * blockDim.x + threadIdx.x] > 3.0f) atomicAdd_block(&local, 1);
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = local;
}
""",
        grid=2,
        block=64,
        args=(floats(128), Empty(2, "int32")),
        why="shared memory belongs to one block",
    ),
    sound(
        "a global counter for each block",
        r"""
__global__ void count(const float* x, int* counts) {
    if (x[blockIdx.x * blockDim.x + threadIdx.x] > 3.0f) atomicAdd_block(&counts[blockIdx.x], 1);
}
""",
        grid=4,
        block=32,
        args=(floats(128), ints(4, 0)),
        why="a counter is one block's",
    ),
    sound(
        "grid of one block",
        r"""
__global__ void histogram(const int* x, int* bins, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd_block(&bins[x[i] % 8], 1);
}
""",
        grid=1,
        block=64,
        args=(ints(200), ints(8, 0), 200),
        why="there is no other block",
    ),
    sound(
        "handing over within a block by fences of the block",
        r"""
__global__ void pass_on(float* data, volatile int* flag, float* y) {
    if (threadIdx.x == 0) {
        *data = 42.0f;
        __threadfence_block();
        *flag = 1;
    } else if (threadIdx.x == 32) {
        while (*flag == 0) {}
        __threadfence_block();
        *y = *data;
    }
}
""",
        grid=1,
        block=64,
        args=(Empty(1), ints(1, 0), Empty(1)),
        why="both threads are of one block, in different warps",
    ),
    sound(
        "atomics of the system from many blocks",
        r"""
__global__ void count(int* total) {
    atomicAdd_system(total, 1);
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0),),
        why="the system has all blocks in it",
    ),
    sound(
        "fences of the system between blocks",
        r"""
__global__ void pass_on(float* data, volatile int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;
        __threadfence_system();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence_system();
        *y = *data;
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        why="a fence of the system is more than is needed, and enough",
    ),
    sound(
        "some add for the device, some for the system",
        r"""
__global__ void add(int* sum) {
    if (blockIdx.x == 0) atomicAdd(sum, 1);
    else atomicAdd_system(sum, 1);
}
""",
        grid=2,
        block=32,
        args=(ints(1, 0),),
        why="each scope has both blocks in it",
    ),
    sound(
        "shared atomic of block scope",
        r"""
#include <cuda/atomic>
__global__ void best(const int* x, int* y) {
    __shared__ int most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> m(most);
    m.fetch_max(x[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = most;
}
""",
        grid=2,
        block=64,
        args=(ints(128), Empty(2, "int32")),
        why="the block's scope for the block's variable; barriers order the rest",
    ),
    sound(
        "release and acquire of device scope",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;
        ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        why="device scope reaches the other block",
    ),
    sound(
        "block scope in one kernel, device scope in the next",
        r"""
__global__ void by_blocks(int* counts, int* total) {
    atomicAdd_block(&counts[blockIdx.x], threadIdx.x);
}
__global__ void all_together(int* counts, int* total) {
    if (threadIdx.x == 0) atomicAdd(total, counts[blockIdx.x]);
}
""",
        grid=4,
        block=32,
        args=(ints(4, 0), ints(1, 0)),
        why="the kernels are in order, and in the first one a counter is one block's",
    ),
    sound(
        "local histogram of the block, merged for the device",
        r"""
__global__ void histogram(const int* x, int* bins, int n) {
    __shared__ int local[8];
    if (threadIdx.x < 8) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd_block(&local[x[i] % 8], 1);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
""",
        grid=3,
        block=32,
        args=(ints(200), ints(8, 0), 200),
        why="each level has its scope",
    ),
    sound(
        "atomic_ref without a scope",
        r"""
#include <cuda/atomic>
__global__ void count(int* total) {
    cuda::atomic_ref<int> counter(*total);
    counter.fetch_add(1, cuda::memory_order_relaxed);
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0),),
        why="the default is the system",
    ),
    sound(
        "thread scope for private elements",
        r"""
#include <cuda/atomic>
__global__ void own(int* counts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_thread> mine(counts[i]);
    for (int k = 0; k < 4; k++) mine.fetch_add(k);
}
""",
        grid=2,
        block=32,
        args=(ints(64, 0),),
        why="no other thread touches the element",
    ),
    sound(
        "warps of a block hand over by an atomic of block scope",
        r"""
#include <cuda/atomic>
__global__ void pass_on(const float* x, float* y) {
    __shared__ float data;
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> ready(flag);
    if (threadIdx.x == 0) {
        data = x[blockIdx.x];
        ready.store(1, cuda::memory_order_release);
    } else if (threadIdx.x == 32) {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        y[blockIdx.x] = data;
    }
}
""",
        grid=2,
        block=64,
        args=(floats(2), Empty(2)),
        why="the flag is shared memory",
    ),
    sound(
        "words of one array, each one block's",
        r"""
__global__ void mark(unsigned* bits) {
    atomicOr_block(&bits[blockIdx.x], 1u << (threadIdx.x % 32));
}
""",
        grid=4,
        block=64,
        args=(ints(4, 0).astype("uint32"),),
        why="blocks take neighbouring words, and never the same",
    ),
    sound(
        "lock of a block in shared memory",
        r"""
__global__ void add_under_lock(float* y) {
    __shared__ int lock;
    __shared__ float sum;
    if (threadIdx.x == 0) { lock = 0; sum = 0.0f; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS_block(&lock, 0, 1) != 0) {}
        __threadfence_block();
        sum += threadIdx.x;
        __threadfence_block();
        atomicExch_block(&lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
""",
        grid=2,
        block=96,
        args=(Empty(2),),
        why="one lane of each warp takes a lock that is the block's",
    ),
    sound(
        "threads for the block, one of them for the device",
        r"""
__global__ void total(const int* x, int* parts, int* sum) {
    atomicAdd_block(&parts[blockIdx.x], x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, parts[blockIdx.x]);
}
""",
        grid=4,
        block=32,
        args=(ints(128), ints(4, 0), ints(1, 0)),
        why="the barrier stands between the block's atomics and their plain reading",
    ),
    sound(
        "only block 0 adds",
        r"""
__global__ void first_block(const float* x, int* count) {
    if (blockIdx.x != 0) return;
    if (x[threadIdx.x] > 7.0f) atomicAdd_block(count, 1);
}
""",
        grid=4,
        block=32,
        args=(floats(32), ints(1, 0)),
        why="the others have returned",
    ),
    sound(
        "counter of a block that is read behind its barrier",
        r"""
__global__ void places(const float* x, float* out, int* used) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int slot = v > 5.0f ? atomicAdd_block(&used[blockIdx.x], 1) : -1;
    if (slot >= 0) out[blockIdx.x * blockDim.x + slot] = v;
    __syncthreads();
    for (int k = used[blockIdx.x] + threadIdx.x; k < blockDim.x; k += blockDim.x)
        out[blockIdx.x * blockDim.x + k] = 0.0f;
}
""",
        grid=2,
        block=32,
        args=(floats(64), Empty(64), ints(2, 0)),
        why="each block has its counter and its part of the array",
    ),
    sound(
        "wider fence than the flag needs",
        r"""
#include <cuda/atomic>
__global__ void pass_on(const float* x, float* data, int* flags, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_block> ready(flags[blockIdx.x]);
    if (threadIdx.x == 0) {
        data[blockIdx.x] = x[blockIdx.x];
        __threadfence();
        ready.store(1, cuda::memory_order_relaxed);
    } else if (threadIdx.x == 32) {
        while (ready.load(cuda::memory_order_relaxed) == 0) {}
        __threadfence();
        y[blockIdx.x] = data[blockIdx.x];
    }
}
""",
        grid=2,
        block=64,
        args=(floats(2), Empty(2), ints(2, 0), Empty(2)),
        why="writer and reader are of one block; fences of the device order for it, too",
    ),
    sound(
        "relaxed counter of the device, unused as a flag",
        r"""
#include <cuda/atomic>
__global__ void work(float* y, int* done) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = sqrtf(i);
    cuda::atomic_ref<int, cuda::thread_scope_device>(*done).fetch_add(1, cuda::memory_order_relaxed);
}
""",
        grid=2,
        block=32,
        args=(Empty(64), ints(1, 0)),
        why="nobody reads y because of the counter",
    ),
    sound(
        "slots exchanged within a block",
        r"""
__global__ void swap_in(const int* x, int* slots, int* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = atomicExch_block(&slots[blockIdx.x], x[i]);
}
""",
        grid=2,
        block=32,
        args=(ints(64), ints(2, -1), Empty(64, "int32")),
        why="a slot is exchanged by the threads of one block; any order is right",
    ),
    sound(
        "atomic_thread_fence of device scope between blocks",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
        ready.store(1, cuda::memory_order_relaxed);
    } else {
        while (ready.load(cuda::memory_order_relaxed) == 0) {}
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        *y = *data;
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        why="two fences and a relaxed flag are a release and an acquire",
    ),
    sound(
        "block of 32 in turns for another word",
        r"""
__global__ void turns(int* words) {
    for (int k = 0; k < 4; k++) {
        atomicAdd_block(&words[4 * blockIdx.x + (threadIdx.x + k) % 4], 1);
    }
}
""",
        grid=2,
        block=32,
        args=(ints(8, 0),),
        why="words 0 to 3 are block 0's, 4 to 7 block 1's",
    ),
]
