"""Bugs of fences: data handed to another block with a fence missing, misplaced, or of a wrong order."""

from benchmarks.hazards.case import Case, Empty, bug, floats, ints


def passed_on(name: str, writer: str, reader: str, *, why: str, about: str = "data") -> Case:
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
    args = (Empty(1), ints(1, 0), Empty(1))
    finds = "Race UninitialisedRead"
    return bug(name, source, grid=2, block=1, args=args, finds=finds, about=about, why=why)


CASES = [
    passed_on(
        "volatile flag without any fence",
        """
        *data = 42.0f;  // <- bug
        *(volatile int*)flag = 1;  // <- bug
""",
        """
        while (*(volatile int*)flag == 0) {}
        *y = *data;  // <- bug
""",
        why="volatile orders nothing between the flag and the data",
    ),
    passed_on(
        "writer's fence behind the flag",
        """
        *data = 42.0f;  // <- bug
        *(volatile int*)flag = 1;  // <- bug
        __threadfence();  // <- bug
""",
        """
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        *y = *data;  // <- bug
""",
        why="the fence has to stand between the data and the flag",
    ),
    passed_on(
        "reader without a fence",
        """
        *data = 42.0f;  // <- bug
        __threadfence();
        *(volatile int*)flag = 1;
""",
        """
        while (*(volatile int*)flag == 0) {}
        *y = *data;  // <- bug
""",
        why="the reader may have read the data before the flag",
    ),
    passed_on(
        "reader's fence before it waits",
        """
        *data = 42.0f;  // <- bug
        __threadfence();
        *(volatile int*)flag = 1;
""",
        """
        __threadfence();  // <- bug
        while (*(volatile int*)flag == 0) {}
        *y = *data;  // <- bug
""",
        why="the fence has to stand between the flag and the data",
    ),
    passed_on(
        "writer without a fence",
        """
        *data = 42.0f;  // <- bug
        *(volatile int*)flag = 1;  // <- bug
""",
        """
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        *y = *data;  // <- bug
""",
        why="the flag may be seen before the data",
    ),
    passed_on(
        "atomic flag without fences",
        """
        *data = 42.0f;  // <- bug
        atomicExch(flag, 1);  // <- bug
""",
        """
        while (atomicAdd(flag, 0) == 0) {}
        *y = *data;  // <- bug
""",
        why="atomicExch and atomicAdd are relaxed",
    ),
    passed_on(
        "plain store to the flag",
        """
        *data = 42.0f;  // <- bug
        __threadfence();
        *flag = 1;  // <- bug
""",
        """
        while (atomicAdd(flag, 0) == 0) {}  // <- bug
        __threadfence();
        *y = *data;  // <- bug
""",
        about="data|flag",
        why="a flag that is stored plainly races with its readers",
    ),
    passed_on(
        "relaxed store, acquiring load",
        """
        *data = 42.0f;  // <- bug
        ready.store(1, cuda::memory_order_relaxed);  // <- bug
""",
        """
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;  // <- bug
""",
        why="nothing releases the data",
    ),
    passed_on(
        "releasing store, relaxed load",
        """
        *data = 42.0f;  // <- bug
        ready.store(1, cuda::memory_order_release);
""",
        """
        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
        *y = *data;  // <- bug
""",
        why="nothing acquires the data",
    ),
    passed_on(
        "relaxed on both sides",
        """
        *data = 42.0f;  // <- bug
        ready.fetch_add(1, cuda::memory_order_relaxed);  // <- bug
""",
        """
        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
        *y = *data;  // <- bug
""",
        why="relaxed atomics order nothing around them",
    ),
    passed_on(
        "second part behind the flag",
        """
        *data = 42.0f;  // <- bug
        ready.store(1, cuda::memory_order_release);
        *data = 43.0f;  // <- bug
""",
        """
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;  // <- bug
""",
        why="what is written behind the release isn't released",
    ),
    bug(
        "volatile data and flag without a fence",
        r"""
__global__ void pass_on(volatile float* data, volatile int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        *flag = 1;  // <- bug
    } else {
        while (*flag == 0) {}
        *y = *data;  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="data",
        why="volatile accesses of different words may be seen in any order by another block",
    ),
    bug(
        "lock without fences",
        r"""
__global__ void add(int* lock, float* sum, const float* x) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        *sum += x[blockIdx.x];  // <- bug
        atomicExch(lock, 0);  // <- bug
    }
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        finds="Race",
        about="sum",
        why="atomics are relaxed: the sum may be read before the lock is taken",
    ),
    bug(
        "lock without a fence before it is opened",
        r"""
__global__ void add(int* lock, float* sum, const float* x) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *sum += x[blockIdx.x];  // <- bug
        atomicExch(lock, 0);  // <- bug
    }
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        finds="Race",
        about="sum",
        why="the lock may be seen open before the sum is seen",
    ),
    bug(
        "lock without a fence after it is taken",
        r"""
__global__ void add(int* lock, float* sum, const float* x) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        *sum += x[blockIdx.x];  // <- bug
        __threadfence();
        atomicExch(lock, 0);
    }
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        finds="Race",
        about="sum",
        why="the sum may have been read before the lock was taken",
    ),
    bug(
        "lock opened by a plain store",
        r"""
__global__ void add(int* lock, float* sum, const float* x) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}  // <- bug
        __threadfence();
        *sum += x[blockIdx.x];  // <- bug
        __threadfence();
        *lock = 0;  // <- bug
    }
}
""",
        grid=4,
        block=32,
        args=(ints(1, 0), floats(1, 0), floats(4)),
        finds="Race",
        about="lock|sum",
        why="a plain store races with the others' atomicCAS",
    ),
    bug(
        "last block without the writer's fence",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
    int before = atomicAdd(arrived, 1);  // <- bug
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
        about="parts",
        why="the arrival may be seen before the part",
    ),
    bug(
        "last block with the fence behind the arrival",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
        last = atomicAdd(arrived, 1) == gridDim.x - 1;  // <- bug
        __threadfence();  // <- bug
    }
    __syncthreads();
    if (last && threadIdx.x < gridDim.x) {
        atomicAdd(y, parts[threadIdx.x]);  // <- bug
    }
}
""",
        grid=4,
        block=32,
        args=(floats(4), Empty(4), ints(1, 0), floats(1, 0)),
        finds="Race",
        about="parts",
        why="one fence behind the counter doesn't release what came before it",
    ),
    bug(
        "last block without the reader's fence",
        r"""
__global__ void sum_all(const float* x, float* parts, int* arrived, float* y) {
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
    __threadfence();
    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
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
        about="parts",
        why="nothing keeps the reads of the parts behind the counter",
    ),
    bug(
        "thread 0 announces what the block may not have written",
        r"""
__global__ void sum_all(const float* x, float* rows, int* arrived, float* y) {
    rows[blockIdx.x * blockDim.x + threadIdx.x] = 2.0f * x[threadIdx.x];  // <- bug
    if (threadIdx.x == 0) {
        __threadfence();
        int before = atomicAdd(arrived, 1);
        __threadfence();
        if (before == gridDim.x - 1) {
            float sum = 0.0f;
            for (int k = 0; k < gridDim.x * blockDim.x; k++) sum += rows[k];  // <- bug
            *y = sum;
        }
    }
}
""",
        grid=2,
        block=64,
        args=(floats(64), Empty(128), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="rows",
        why="a __syncthreads() is missing before thread 0's fence",
    ),
    bug(
        "thread 0 waits, the others don't",
        r"""
__global__ void produce_consume(float* data, volatile int* flag, float* y) {
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;  // <- bug
        __syncthreads();
        if (t == 0) { __threadfence(); *flag = 1; }
    } else {
        if (t == 0) { while (*flag == 0) {} __threadfence(); }
        y[t] = data[t];  // <- bug
    }
}
""",
        grid=2,
        block=64,
        args=(Empty(64), ints(1, 0), Empty(64)),
        finds="Race UninitialisedRead",
        about="data",
        why="a __syncthreads() is missing behind thread 0's wait",
    ),
    bug(
        "slot counted before it is filled",
        r"""
__global__ void queue(const float* x, float* slots, int* head, float* y) {
    if (blockIdx.x == 0) {
        int slot = atomicAdd(head, 1);  // <- bug
        slots[slot] = x[0];  // <- bug
        __threadfence();
    } else {
        while (atomicAdd(head, 0) == 0) {}
        __threadfence();
        *y = slots[0];  // <- bug
    }
}
""",
        grid=2,
        block=1,
        args=(floats(1, 7), Empty(4), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead",
        about="slots",
        why="the counter that reserves a slot also announces it, before it is filled",
    ),
    bug(
        "barrier of the grid by hand, without fences",
        r"""
__global__ void two_steps(float* a, int* arrived, float* y) {
    a[blockIdx.x] = blockIdx.x;  // <- bug
    atomicAdd(arrived, 1);  // <- bug
    while (atomicAdd(arrived, 0) < gridDim.x) {}
    y[blockIdx.x] = a[gridDim.x - 1 - blockIdx.x];  // <- bug
}
""",
        grid=2,
        block=1,
        args=(Empty(2), ints(1, 0), Empty(2)),
        finds="Race UninitialisedRead",
        about="a",
        why="waiting for a counter orders nothing else",
    ),
    bug(
        "chain of sums with a fence in the wrong place",
        r"""
__global__ void chain(const float* x, float* prefix, volatile int* done) {
    int b = blockIdx.x;
    float before = 0.0f;
    if (b > 0) {
        while (done[b - 1] == 0) {}
        __threadfence();
        before = prefix[b - 1];  // <- bug
    }
    __threadfence();  // <- bug
    prefix[b] = before + x[b];  // <- bug
    done[b] = 1;  // <- bug
}
""",
        grid=4,
        block=1,
        args=(floats(4), Empty(4), ints(4, 0)),
        finds="Race UninitialisedRead",
        about="prefix",
        why="the fence stands before the sum and not between it and its flag",
    ),
    bug(
        "slot used again without a release by its reader",
        r"""
__global__ void ring(volatile int* full, float* slot, float* y) {
    if (blockIdx.x == 0) {
        for (int k = 0; k < 3; k++) {
            while (*full == 1) {}
            __threadfence();
            *slot = k;  // <- bug
            __threadfence();
            *full = 1;
        }
    } else {
        for (int k = 0; k < 3; k++) {
            while (*full == 0) {}
            __threadfence();
            y[k] = *slot;  // <- bug
            *full = 0;  // <- bug
        }
    }
}
""",
        grid=2,
        block=1,
        args=(ints(1, 0), Empty(1), Empty(3)),
        finds="Race",
        about="slot",
        why="the slot may be seen free while it is still being read",
    ),
    bug(
        "initialised once, seen by a relaxed look",
        r"""
#include <cuda/atomic>
__global__ void lazy(int* state, float* table, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*state);
    int expected = 0;
    if (s.compare_exchange_strong(expected, 1, cuda::memory_order_relaxed)) {
        *table = 3.0f;  // <- bug
        s.store(2, cuda::memory_order_release);
    } else {
        while (s.load(cuda::memory_order_relaxed) != 2) {}  // <- bug
    }
    y[blockIdx.x] = *table;  // <- bug
}
""",
        grid=3,
        block=1,
        args=(ints(1, 0), Empty(1), Empty(3)),
        finds="Race UninitialisedRead",
        about="table",
        why="the others look without acquire",
    ),
]
