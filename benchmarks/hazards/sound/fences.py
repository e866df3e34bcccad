"""Correct uses of fences and orders that look as if they were not."""

from benchmarks.hazards.case import Case, Empty, floats, ints, sound


def passed_on(name: str, writer: str, reader: str, *, why: str) -> Case:
    """Block 0 hands `data` to block 1 by a flag; `data` and `flag` are plain pointers."""
    source = f"""
#include <cuda/atomic>
__global__ void pass_on(float* data, int* flag, float* y) {{
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {{
        {writer.strip()}
    }} else {{
        {reader.strip()}
    }}
}}
"""
    return sound(name, source, grid=2, block=1, args=(Empty(1), ints(1, 0), Empty(1)), why=why)


CASES = [
    passed_on(
        "volatile flag and two fences",
        """
        *data = 42.0f;
        __threadfence();
        *(volatile int*)flag = 1;
""",
        """
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        *y = *data;
""",
        why="a fence on each side, between flag and data",
    ),
    passed_on(
        "atomic flag and two fences",
        """
        *data = 42.0f;
        __threadfence();
        atomicExch(flag, 1);
""",
        """
        while (atomicCAS(flag, 1, 2) != 1) {}
        __threadfence();
        *y = *data;
""",
        why="a fence on each side, between flag and data",
    ),
    passed_on(
        "do-while in place of while",
        """
        *data = 42.0f;
        __threadfence();
        atomicExch(flag, 1);
""",
        """
        int seen;
        do {
            seen = *(volatile int*)flag;
        } while (seen == 0);
        __threadfence();
        *y = *data;
""",
        why="the loop ends when the flag is seen, however it is written",
    ),
    passed_on(
        "waiting with pauses",
        """
        *data = 42.0f;
        __threadfence();
        atomicExch(flag, 1);
""",
        """
        while (*(volatile int*)flag == 0) __nanosleep(100);
        __threadfence();
        *y = *data;
""",
        why="pauses change nothing about the order",
    ),
    passed_on(
        "release and acquire",
        """
        *data = 42.0f;
        ready.store(1, cuda::memory_order_release);
""",
        """
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;
""",
        why="the orders are the fences",
    ),
    passed_on(
        "orders by default",
        """
        *data = 42.0f;
        ready.store(1);
""",
        """
        while (ready.load() == 0) {}
        *y = *data;
""",
        why="without an order it is memory_order_seq_cst",
    ),
    passed_on(
        "fence on one side, order on the other",
        """
        *data = 42.0f;
        __threadfence();
        ready.store(1, cuda::memory_order_relaxed);
""",
        """
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;
""",
        why="a fence and a relaxed store release as a releasing store does",
    ),
    passed_on(
        "relaxed polling, then an acquire fence",
        """
        *data = 42.0f;
        ready.store(1, cuda::memory_order_release);
""",
        """
        while (ready.load(cuda::memory_order_relaxed) == 0) {}
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
        *y = *data;
""",
        why="the fence behind the loop acquires what the load has seen",
    ),
    passed_on(
        "looked at once, used if it is there",
        """
        *data = 42.0f;
        ready.store(1, cuda::memory_order_release);
""",
        """
        *y = ready.load(cuda::memory_order_acquire) ? *data : -1.0f;
""",
        why="the data is read only if the flag was seen",
    ),
    passed_on(
        "data in the flag itself",
        """
        atomicExch(flag, __float_as_int(42.0f));
""",
        """
        int seen;
        while ((seen = atomicAdd(flag, 0)) == 0) {}
        *y = __int_as_float(seen);
""",
        why="there is nothing beside the flag that would have to be ordered",
    ),
    passed_on(
        "added to by others in between",
        """
        *data = 42.0f;
        ready.fetch_add(1, cuda::memory_order_release);
        ready.fetch_add(1, cuda::memory_order_relaxed);
""",
        """
        while (ready.load(cuda::memory_order_acquire) < 2) {}
        *y = *data;
""",
        why="read-modify-writes continue what a release began",
    ),
    sound(
        "lock with two fences",
        r"""
__global__ void add(int* lock, float* sum, const float* x) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *sum += x[blockIdx.x];
        __threadfence();
        atomicExch(lock, 0);
    }
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        why="a fence behind taking it, one before opening it",
    ),
    sound(
        "lock by exchange and orders",
        r"""
#include <cuda/atomic>
__global__ void add(int* lock, float* sum, const float* x) {
    cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);
    while (l.exchange(1, cuda::memory_order_acquire)) {}
    *sum += x[blockIdx.x];
    l.store(0, cuda::memory_order_release);
}
""",
        grid=4,
        block=1,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        why="acquire when it is taken, release when it is opened",
    ),
    sound(
        "lock by tickets",
        r"""
__global__ void add(int* next, volatile int* serving, float* sum) {
    int ticket = atomicAdd(next, 1);
    while (*serving != ticket) {}
    __threadfence();
    *sum += blockIdx.x;
    __threadfence();
    *serving = ticket + 1;
}
""",
        grid=4,
        block=1,
        args=(ints(1, 0), ints(1, 0), floats(1, 0)),
        why="tickets are relaxed; the number that is served is what orders",
    ),
    sound(
        "last block",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];
    __threadfence();
    int before = atomicAdd(arrived, 1);
    __threadfence();
    if (before == gridDim.x - 1) {
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; b++) sum += parts[b];
        *y = sum;
    }
}
""",
        grid=4,
        block=1,
        args=(floats(4), Empty(4), ints(1, 0), Empty(1)),
        why="each arrival releases a part, and the last one acquires them all",
    ),
    sound(
        "last block of many threads",
        r"""
__global__ void sum_all(const float* x, float* rows, int* arrived, float* y) {
    __shared__ bool last;
    int t = threadIdx.x;
    rows[blockIdx.x * blockDim.x + t] = 2.0f * x[t];
    __syncthreads();
    if (t == 0) {
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; b++) sum += rows[b * blockDim.x + t];
        y[t] = sum;
    }
}
""",
        grid=3,
        block=64,
        args=(floats(64), Empty(192), ints(1, 0), Empty(64)),
        why="fences are cumulative: thread 0's also cover what the barrier brought it",
    ),
    sound(
        "block writes, block reads, one thread of each talks",
        r"""
__global__ void produce_consume(float* data, volatile int* flag, float* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;
        __syncthreads();
        if (t == 0) { __threadfence(); *flag = 1; }
    } else {
        if (t == 0) { while (*flag == 0) {} __threadfence(); }
        __syncthreads();
        y[t] = data[63 - t];
    }
}
""",
        grid=2,
        block=64,
        args=(Empty(64), ints(1, 0), Empty(64)),
        why="barriers on both sides carry the order from one thread to all",
    ),
    sound(
        "handed on by a block in the middle",
        r"""
#include <cuda/atomic>
__global__ void relay(float* data, int* flags, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> first(flags[0]), second(flags[1]);
    if (blockIdx.x == 0) {
        *data = 42.0f;
        first.store(1, cuda::memory_order_release);
    } else if (blockIdx.x == 1) {
        while (!first.load(cuda::memory_order_acquire)) {}
        second.store(1, cuda::memory_order_release);
    } else {
        while (!second.load(cuda::memory_order_acquire)) {}
        *y = *data;
    }
}
""",
        grid=3,
        block=1,
        args=(Empty(1), ints(2, 0), Empty(1)),
        why="order is transitive",
    ),
    sound(
        "ring of one slot",
        r"""
__global__ void ring(volatile int* full, float* slot, float* y) {
    if (blockIdx.x == 0) {
        for (int k = 0; k < 3; k++) {
            while (*full == 1) {}
            __threadfence();
            *slot = k;
            __threadfence();
            *full = 1;
        }
    } else {
        for (int k = 0; k < 3; k++) {
            while (*full == 0) {}
            __threadfence();
            y[k] = *slot;
            __threadfence();
            *full = 0;
        }
    }
}
""",
        grid=2,
        block=1,
        args=(ints(1, 0), Empty(1), Empty(3)),
        why="each side has a fence behind its wait and one before its word",
    ),
    sound(
        "barrier of the grid by hand",
        r"""
__global__ void two_steps(float* a, int* arrived, float* y) {
    a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = a[(1 - blockIdx.x) * blockDim.x + threadIdx.x];
}
""",
        grid=2,
        block=32,
        args=(Empty(64), ints(1, 0), Empty(64)),
        why="two blocks have a place at the same time, and fences stand on both sides",
    ),
    sound(
        "chain of sums",
        r"""
__global__ void chain(const float* x, float* prefix, volatile int* done) {
    int b = blockIdx.x;
    float before = 0.0f;
    if (b > 0) {
        while (done[b - 1] == 0) {}
        __threadfence();
        before = prefix[b - 1];
    }
    prefix[b] = before + x[b];
    __threadfence();
    done[b] = 1;
}
""",
        grid=4,
        block=1,
        args=(floats(4), Empty(4), ints(4, 0)),
        why="each block waits for the one before, which was started before it",
    ),
    sound(
        "fences in helpers",
        r"""
__device__ void give(volatile int* flag) {
    __threadfence();
    *flag = 1;
}
__device__ void await_flag(volatile int* flag) {
    while (*flag == 0) {}
    __threadfence();
}
__global__ void pass_on(float* data, int* flag, float* y) {
    if (blockIdx.x == 0) {
        data[0] = 1.0f;
        data[1] = 2.0f;
        give(flag);
    } else {
        await_flag(flag);
        *y = data[0] + data[1];
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(2), ints(1, 0), Empty(1)),
        why="functions are called where their fences are needed; one flag is enough for two words",
    ),
    sound(
        "written in one kernel, read in the next, without a fence",
        r"""
__global__ void write(float* data, int* flag, float* y) {
    if (threadIdx.x == 0) data[blockIdx.x] = 42.0f + blockIdx.x;
    if (threadIdx.x == 0) flag[blockIdx.x] = 1;
}
__global__ void read(float* data, int* flag, float* y) {
    int other = gridDim.x - 1 - blockIdx.x;
    if (threadIdx.x == 0 && flag[other]) y[blockIdx.x] = data[other];
}
""",
        grid=2,
        block=32,
        args=(Empty(2), ints(2, 0), Empty(2)),
        why="the end of a kernel orders everything for the next one in its stream",
    ),
    sound(
        "initialised once",
        r"""
#include <cuda/atomic>
__global__ void lazy(int* state, float* table, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*state);
    int expected = 0;
    if (s.compare_exchange_strong(expected, 1, cuda::memory_order_relaxed)) {
        *table = 3.0f;
        s.store(2, cuda::memory_order_release);
    } else {
        while (s.load(cuda::memory_order_acquire) != 2) {}
    }
    y[blockIdx.x] = *table;
}
""",
        grid=3,
        block=1,
        args=(ints(1, 0), Empty(1), Empty(3)),
        why="who initialises needs no order to take the task; the others acquire the result",
    ),
    sound(
        "each sees the other, or both do",
        r"""
__global__ void store_buffering(volatile int* x, volatile int* y, int* seen) {
    if (blockIdx.x == 0) {
        *x = 1;
        __threadfence();
        seen[0] = *y;
    } else {
        *y = 1;
        __threadfence();
        seen[1] = *x;
    }
}
""",
        grid=2,
        block=1,
        args=(ints(1, 0), ints(1, 0), Empty(2, "int32")),
        why="volatile accesses don't race, and __threadfence() is sequentially consistent",
    ),
    sound(
        "flag in shared memory between warps",
        r"""
__global__ void warps(const float* x, float* y) {
    __shared__ float data;
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        data = x[0];
        __threadfence_block();
        flag = 1;
    } else if (threadIdx.x == 32) {
        while (flag == 0) {}
        __threadfence_block();
        *y = data;
    }
}
""",
        grid=1,
        block=64,
        args=(floats(1, 5), Empty(1)),
        why="for two warps of a block the fence of the block is enough",
    ),
]
