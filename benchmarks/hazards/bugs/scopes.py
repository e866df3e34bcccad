"""Bugs of scopes: atomics and fences that reach a block, between threads of two blocks."""

from benchmarks.hazards.case import Empty, bug, floats, ints

CASES = [
    bug(
        "counter of the grid by atomics of a block",
        r"""
__global__ void count(const float* x, int* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) {
        atomicAdd_block(total, 1);  // <- bug
    }
}
""",
        grid=2,
        block=32,
        args=(floats(64), ints(1, 0), 64),
        finds="Race",
        about="total block",
        why="two blocks add, and _block is atomic for the threads of one",
    ),
    bug(
        "maximum of the grid by atomics of a block",
        r"""
__global__ void largest(const int* x, int* best) {
    atomicMax_block(best, x[blockIdx.x * blockDim.x + threadIdx.x]);  // <- bug
}
""",
        grid=4,
        block=32,
        args=(ints(128), ints(1, 0)),
        finds="Race",
        about="best block",
        why="four blocks write one maximum",
    ),
    bug(
        "bitmap by atomics of a block",
        r"""
__global__ void mark(const int* ids, unsigned* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicOr_block(&bits[ids[i] / 32], 1u << (ids[i] % 32));  // <- bug
}
""",
        grid=2,
        block=48,
        args=(ints(96), ints(3, 0).astype("uint32"), 96),
        finds="Race",
        about="bits block",
        why="a word's bits belong to two blocks",
    ),
    bug(
        "global histogram by atomics of a block",
        r"""
__global__ void histogram(const int* x, int* bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd_block(&bins[x[i] % 8], 1);  // <- bug
    }
}
""",
        grid=3,
        block=32,
        args=(ints(200), ints(8, 0), 200),
        finds="Race",
        about="bins block",
        why="the bins are the whole grid's",
    ),
    bug(
        "places given out by a counter of a block",
        r"""
__global__ void compact(const float* x, float* out, int* used) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v > 5.0f) {
        int slot = atomicAdd_block(used, 1);  // <- bug
        out[slot] = v;  // <- bug
    }
}
""",
        grid=2,
        block=32,
        args=(floats(64), Empty(128), ints(1, 0)),
        finds="Race",
        about="used|out block",
        why="two blocks may be given the same place",
    ),
    bug(
        "some add for the block, some for the device",
        r"""
__global__ void add(int* sum) {
    if (blockIdx.x == 0) {
        atomicAdd_block(sum, 1);  // <- bug
    } else {
        atomicAdd(sum, 1);  // <- bug
    }
}
""",
        grid=2,
        block=32,
        args=(ints(1, 0),),
        finds="Race",
        about="sum block",
        why="both sides of a pair of atomics have to reach the other",
    ),
    bug(
        "lock between blocks by atomics of a block",
        r"""
__global__ void add_under_lock(int* lock, int* sum) {
    if (threadIdx.x != 0) return;
    while (atomicCAS_block(lock, 0, 1) != 0) {}  // <- bug
    __threadfence();
    *sum += blockIdx.x;  // <- bug
    __threadfence();
    atomicExch_block(lock, 0);  // <- bug
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), ints(1, 0)),
        finds="Race",
        about="lock|sum block",
        why="each block may find the lock open",
    ),
    bug(
        "last block found by a counter of a block",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
    __threadfence();
    int before = atomicAdd_block(arrived, 1);  // <- bug
    __threadfence();
    if (before == gridDim.x - 1) {
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
        *y = sum;
    }
}
""",
        grid=4,
        block=1,
        args=(floats(4), Empty(4), ints(1, 0), Empty(1)),
        finds="Race",
        about="arrived|parts block",
        why="blocks don't see each other's arrivals",
    ),
    bug(
        "fence of a block before the flag for another one",
        r"""
__global__ void pass_on(float* data, volatile int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence_block();  // <- bug
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence();
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="data block",
        why="the fence orders the writes for threads of the writer's block only",
    ),
    bug(
        "fence of a block behind the flag of another one",
        r"""
__global__ void pass_on(float* data, volatile int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence_block();  // <- bug
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="data block",
        why="the reader's fence doesn't reach the writer's block",
    ),
    bug(
        "fences of a block on both sides",
        r"""
__global__ void pass_on(float* data, int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence_block();  // <- bug
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence_block();  // <- bug
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="data block",
        why="neither fence reaches the other block",
    ),
    bug(
        "atomics of a block as a flag between blocks",
        r"""
__global__ void pass_on(float* data, int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence();
        atomicExch_block(flag, 1);  // <- bug
    } else {
        while (atomicAdd_block(flag, 0) == 0) {}  // <- bug
        __threadfence();
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead Deadlock",
        about="data|flag block",
        why="the flag itself stays within a block",
    ),
    bug(
        "atomic_ref of block scope as a counter of the grid",
        r"""
#include <cuda/atomic>
__global__ void count(int* total) {
    cuda::atomic_ref<int, cuda::thread_scope_block> counter(*total);
    counter.fetch_add(1);  // <- bug
}
""",
        grid=2,
        block=32,
        args=(ints(1, 0),),
        finds="Race",
        about="total block",
        why="thread_scope_block between two blocks",
    ),
    bug(
        "atomic_ref of block scope as a maximum of the grid",
        r"""
#include <cuda/atomic>
__global__ void largest(const int* x, int* best) {
    cuda::atomic_ref<int, cuda::thread_scope_block> b(*best);
    b.fetch_max(x[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);  // <- bug
}
""",
        grid=2,
        block=32,
        args=(ints(64), ints(1, 0)),
        finds="Race",
        about="best block",
        why="thread_scope_block between two blocks",
    ),
    bug(
        "release and acquire of block scope between blocks",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_block> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        ready.store(1, cuda::memory_order_release);  // <- bug
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}  // <- bug
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead Deadlock",
        about="data|flag block",
        why="thread_scope_block between two blocks",
    ),
    bug(
        "release of the block, acquire of the device",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        cuda::atomic_ref<int, cuda::thread_scope_block> mine(*flag);
        mine.store(1, cuda::memory_order_release);  // <- bug
    } else {
        cuda::atomic_ref<int, cuda::thread_scope_device> theirs(*flag);
        while (theirs.load(cuda::memory_order_acquire) == 0) {}  // <- bug
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead Deadlock",
        about="data|flag block",
        why="the store doesn't reach the reader's block",
    ),
    bug(
        "release of the device, acquire of the block",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        cuda::atomic_ref<int, cuda::thread_scope_device> mine(*flag);
        mine.store(1, cuda::memory_order_release);  // <- bug
    } else {
        cuda::atomic_ref<int, cuda::thread_scope_block> theirs(*flag);
        while (theirs.load(cuda::memory_order_acquire) == 0) {}  // <- bug
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead Deadlock",
        about="data|flag block",
        why="the load doesn't reach the writer's block",
    ),
    bug(
        "atomic_thread_fence of block scope between blocks",
        r"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);  // <- bug
        ready.store(1, cuda::memory_order_relaxed);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="data block",
        why="the writer's fence reaches its own block",
    ),
    bug(
        "atomic_ref of thread scope among threads",
        r"""
#include <cuda/atomic>
__global__ void count(int* total) {
    cuda::atomic_ref<int, cuda::thread_scope_thread> counter(*total);
    counter.fetch_add(1);  // <- bug
}
""",
        grid=1,
        block=64,
        args=(ints(1, 0),),
        finds="Race",
        about="total thread",
        why="thread_scope_thread is for one thread's own data",
    ),
    bug(
        "barrier of the grid by hand, of block scope",
        r"""
#include <cuda/atomic>
__global__ void two_steps(float* a, int* arrived, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_block> count(*arrived);
    a[blockIdx.x] = blockIdx.x;  // <- bug
    count.fetch_add(1, cuda::memory_order_acq_rel);  // <- bug
    while (count.load(cuda::memory_order_acquire) < gridDim.x) {}  // <- bug
    y[blockIdx.x] = a[gridDim.x - 1 - blockIdx.x];  // <- bug
}
""",
        grid=2,
        block=1,
        args=(Empty(2), ints(1, 0), Empty(2)),
        finds="Race UninitialisedRead Deadlock",
        about="a|arrived block",
        why="blocks wait for each other by what stays within a block",
    ),
    bug(
        "last block, with a fence of the block",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
    __threadfence_block();  // <- bug
    int before = atomicAdd(arrived, 1);
    __threadfence();
    if (before == gridDim.x - 1) {
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
        *y = sum;
    }
}
""",
        grid=4,
        block=1,
        args=(floats(4), Empty(4), ints(1, 0), Empty(1)),
        finds="Race",
        about="parts block",
        why="the counter is the device's, the fence before it the block's",
    ),
    bug(
        "plain increments guarded by a flag of the block",
        r"""
__global__ void once(int* taken, int* sum) {
    if (threadIdx.x == 0 && atomicExch_block(taken, 1) == 0) {  // <- bug
        *sum = blockIdx.x + 1;  // <- bug
    }
}
""",
        grid=2,
        block=32,
        args=(ints(1, 0), ints(1, 0)),
        finds="Race",
        about="taken|sum block",
        why="both blocks may find 0 in `taken`",
    ),
    bug(
        "barrier of the writer's block, nothing between blocks",
        r"""
__global__ void produce_consume(const float* x, float* a, float* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        a[t] = 2.0f * x[t];  // <- bug
        __syncthreads();
    } else {
        __syncthreads();
        y[t] = a[31 - t];  // <- bug
    }
}
""",
        grid=2,
        block=32,
        args=(floats(32), floats(32, 0), Empty(32)),
        finds="Race",
        about="a",
        why="each block waits at a barrier of its own",
    ),
]
