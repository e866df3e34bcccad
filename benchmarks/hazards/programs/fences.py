"""Fences and orders: right ones that look wrong; and missing, misplaced, or of a wrong order."""

from benchmarks.hazards.case import ZERO, Empty, floats, ints, kernel, launch

HANDED_ON = kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).sound(r"""
// volatile flag and two fences
// a fence on each side, between flag and data
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- in bugs
        __threadfence();
        *(volatile int*)flag = 1;
    } else {
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        *y = *data;  // <- in bugs
    }
""")

RELEASED = kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).sound(r"""
// release and acquire
// the orders are the fences
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- in bugs
        ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        *y = *data;  // <- in bugs
    }
""")

LOCK = kernel("add", 4, 32, lock=ZERO, sum=floats(1, 0), x=floats(4)).sound(r"""
// lock with two fences
// a fence behind taking it, one before opening it
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *sum += x[blockIdx.x];  // <- in bugs
        __threadfence();
        atomicExch(lock, 0);
    }
""")

LAST_BLOCK = kernel("sum_all", 4, 1, x=floats(4), parts=Empty(4), arrived=ZERO, y=Empty(1)).sound(r"""
// last block
// each arrival releases a part, and the last one acquires them all
    parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- in bugs
    __threadfence();
    int before = atomicAdd(arrived, 1);
    __threadfence();
    if (before == gridDim.x - 1) {
        float sum = 0.0f;
        for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- in bugs
        *y = sum;
    }
""")

FROM_BLOCK_TO_BLOCK = kernel(
    "produce_consume", 2, 64, volatile="flag", data=Empty(64), flag=ZERO, y=Empty(64)
).sound(r"""
// block writes, block reads, one thread of each talks
// barriers on both sides carry the order from one thread to all
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        data[t] = t;  // <- in bugs
        __syncthreads();
        if (t == 0) { __threadfence(); *flag = 1; }
    } else {
        if (t == 0) { while (*flag == 0) {} __threadfence(); }
        __syncthreads();
        y[t] = data[63 - t];
    }
""")

RING = kernel("ring", 2, 1, volatile="full", full=ZERO, slot=Empty(1), y=Empty(3)).sound(r"""
// ring of one slot
// each side has a fence behind its wait and one before its word
    if (blockIdx.x == 0) {
        for (int k = 0; k < 3; k++) {
            while (*full == 1) {}
            __threadfence();
            *slot = k;  // <- in bugs
            __threadfence();
            *full = 1;
        }
    } else {
        for (int k = 0; k < 3; k++) {
            while (*full == 0) {}
            __threadfence();
            y[k] = *slot;  // <- in bugs
            __threadfence();
            *full = 0;  // <- in bugs
        }
    }
""")

CHAIN = kernel("chain", 4, 1, volatile="done", x=floats(4), prefix=Empty(4), done=ints(4, 0)).sound(r"""
// chain of sums
// each block waits for the one before, which was started before it
    int b = blockIdx.x;
    float before = 0.0f;
    if (b > 0) {
        while (done[b - 1] == 0) {}
        __threadfence();
        before = prefix[b - 1];  // <- in bugs
    }
    prefix[b] = before + x[b];  // <- in bugs
    __threadfence();
    done[b] = 1;  // <- in bugs
""")

ONCE = kernel("lazy", 3, 1, state=ZERO, table=Empty(1), y=Empty(3)).sound(r"""
// initialised once
// who initialises needs no order to take the task; the others acquire the result
    cuda::atomic_ref<int, cuda::thread_scope_device> s(*state);
    int expected = 0;
    if (s.compare_exchange_strong(expected, 1, cuda::memory_order_relaxed)) {
        *table = 3.0f;  // <- in bugs
        s.store(2, cuda::memory_order_release);
    } else {
        while (s.load(cuda::memory_order_acquire) != 2) {}
    }
    y[blockIdx.x] = *table;  // <- in bugs
""")

CASES = [
    HANDED_ON,
    HANDED_ON.changed()(r"""
// atomic flag and two fences
// a fence on each side, between flag and data
-        *(volatile int*)flag = 1;
+        atomicExch(flag, 1);
-        while (*(volatile int*)flag == 0) {}
+        while (atomicCAS(flag, 1, 2) != 1) {}
"""),
    HANDED_ON.changed()(r"""
// do-while in place of while
// the loop ends when the flag is seen, however it is written
-        *(volatile int*)flag = 1;
+        atomicExch(flag, 1);
-        while (*(volatile int*)flag == 0) {}
+        int seen;
+        do {
+            seen = *(volatile int*)flag;
+        } while (seen == 0);
"""),
    HANDED_ON.changed()(r"""
// waiting with pauses
// pauses change nothing about the order
-        *(volatile int*)flag = 1;
+        atomicExch(flag, 1);
-        while (*(volatile int*)flag == 0) {}
+        while (*(volatile int*)flag == 0) __nanosleep(100);
"""),
    RELEASED,
    RELEASED.changed()(r"""
// orders by default
// without an order it is memory_order_seq_cst
-        ready.store(1, cuda::memory_order_release);
+        ready.store(1);
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load() == 0) {}
"""),
    RELEASED.changed()(r"""
// fence on one side, order on the other
// a fence and a relaxed store release as a releasing store does
-        ready.store(1, cuda::memory_order_release);
+        __threadfence();
+        ready.store(1, cuda::memory_order_relaxed);
"""),
    RELEASED.changed()(r"""
// relaxed polling, then an acquire fence
// the fence behind the loop acquires what the load has seen
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}
+        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
"""),
    RELEASED.changed()(r"""
// looked at once, used if it is there
// the data is read only if the flag was seen
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
-        *y = *data;
+        *y = ready.load(cuda::memory_order_acquire) ? *data : -1.0f;
"""),
    kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).sound(r"""
// data in the flag itself
// there is nothing beside the flag that would have to be ordered
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        atomicExch(flag, __float_as_int(42.0f));
    } else {
        int seen;
        while ((seen = atomicAdd(flag, 0)) == 0) {}
        *y = __int_as_float(seen);
    }
"""),
    RELEASED.changed()(r"""
// added to by others in between
// read-modify-writes continue what a release began
-        ready.store(1, cuda::memory_order_release);
+        ready.fetch_add(1, cuda::memory_order_release);
+        ready.fetch_add(1, cuda::memory_order_relaxed);
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_acquire) < 2) {}
"""),
    LOCK,
    kernel("add", 4, 1, lock=ZERO, sum=floats(1, 0), x=floats(4)).sound(r"""
// lock by exchange and orders
// acquire when it is taken, release when it is opened
    cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);
    while (l.exchange(1, cuda::memory_order_acquire)) {}
    *sum += x[blockIdx.x];
    l.store(0, cuda::memory_order_release);
"""),
    kernel("add", 4, 1, volatile="serving", next=ZERO, serving=ZERO, sum=floats(1, 0)).sound(r"""
// lock by tickets
// tickets are relaxed; the number that is served is what orders
    int ticket = atomicAdd(next, 1);
    while (*serving != ticket) {}
    __threadfence();
    *sum += blockIdx.x;
    __threadfence();
    *serving = ticket + 1;
"""),
    LAST_BLOCK,
    kernel("sum_all", 3, 64, x=floats(64), rows=Empty(192), arrived=ZERO, y=Empty(64)).sound(r"""
// last block of many threads
// fences are cumulative: thread 0's also cover what the barrier brought it
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
"""),
    FROM_BLOCK_TO_BLOCK,
    kernel("relay", 3, 1, data=Empty(1), flags=ints(2, 0), y=Empty(1)).sound(r"""
// handed on by a block in the middle
// order is transitive
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
"""),
    RING,
    kernel("two_steps", 2, 32, a=Empty(64), arrived=ZERO, y=Empty(64)).sound(r"""
// barrier of the grid by hand
// two blocks have a place at the same time, and fences stand on both sides
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
"""),
    CHAIN,
    launch(2, 1, Empty(2), ZERO, Empty(1)).sound(r"""
// fences in helpers
// functions are called where their fences are needed; one flag is enough for two words
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
"""),
    launch(2, 32, Empty(2), ints(2, 0), Empty(2)).sound(r"""
// written in one kernel, read in the next, without a fence
// the end of a kernel orders everything for the next one in its stream
__global__ void write(float* data, int* flag, float* y) {
    if (threadIdx.x == 0) data[blockIdx.x] = 42.0f + blockIdx.x;
    if (threadIdx.x == 0) flag[blockIdx.x] = 1;
}
__global__ void read(float* data, int* flag, float* y) {
    int other = gridDim.x - 1 - blockIdx.x;
    if (threadIdx.x == 0 && flag[other]) y[blockIdx.x] = data[other];
}
"""),
    ONCE,
    kernel("store_buffering", 2, 1, volatile="x y", x=ZERO, y=ZERO, seen=Empty(2, "int32")).sound(r"""
// each sees the other, or both do
// volatile accesses don't race, and __threadfence() is sequentially consistent
    if (blockIdx.x == 0) {
        *x = 1;
        __threadfence();
        seen[0] = *y;
    } else {
        *y = 1;
        __threadfence();
        seen[1] = *x;
    }
"""),
    kernel("warps", 1, 64, x=floats(1, 5), y=Empty(1)).sound(r"""
// flag in shared memory between warps
// for two warps of a block the fence of the block is enough
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
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// volatile flag without any fence
// volatile orders nothing between the flag and the data
-        __threadfence();
         *(volatile int*)flag = 1;  // <- bug
-        __threadfence();
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// writer's fence behind the flag
// the fence has to stand between the data and the flag
         *data = 42.0f;  // <- bug
+        *(volatile int*)flag = 1;  // <- bug
         __threadfence();  // <- bug
-        *(volatile int*)flag = 1;
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// reader without a fence
// the reader may have read the data before the flag
         while (*(volatile int*)flag == 0) {}
-        __threadfence();
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// reader's fence before it waits
// the fence has to stand between the flag and the data
     } else {
+        __threadfence();  // <- bug
-        __threadfence();
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// writer without a fence
// the flag may be seen before the data
-        __threadfence();
         *(volatile int*)flag = 1;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// atomic flag without fences
// atomicExch and atomicAdd are relaxed
-        ready.store(1, cuda::memory_order_release);
+        atomicExch(flag, 1);  // <- bug
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (atomicAdd(flag, 0) == 0) {}
"""),
    HANDED_ON.changed(finds="Early: data|flag")(r"""
// plain store to the flag
// a flag that is stored plainly races with its readers
-        *(volatile int*)flag = 1;
+        *flag = 1;  // <- bug
-        while (*(volatile int*)flag == 0) {}
+        while (atomicAdd(flag, 0) == 0) {}  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// relaxed store, acquiring load
// nothing releases the data
-        ready.store(1, cuda::memory_order_release);
+        ready.store(1, cuda::memory_order_relaxed);  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// releasing store, relaxed load
// nothing acquires the data
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// relaxed on both sides
// relaxed atomics order nothing around them
-        ready.store(1, cuda::memory_order_release);
+        ready.fetch_add(1, cuda::memory_order_relaxed);  // <- bug
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// second part behind the flag
// what is written behind the release isn't released
         ready.store(1, cuda::memory_order_release);
+        *data = 43.0f;  // <- bug
"""),
    kernel("pass_on", 2, 1, volatile="data flag", data=Empty(1), flag=ZERO, y=Empty(1)).bug("Early: data")(r"""
// volatile data and flag without a fence
// volatile accesses of different words may be seen in any order by another block
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        *flag = 1;  // <- bug
    } else {
        while (*flag == 0) {}
        *y = *data;  // <- bug
    }
"""),
    LOCK.changed(finds="Race: sum")(r"""
// lock without fences
// atomics are relaxed: the sum may be read before the lock is taken
-        __threadfence();
-        __threadfence();
         atomicExch(lock, 0);  // <- bug
"""),
    LOCK.changed(finds="Race: sum")(r"""
// lock without a fence before it is opened
// the lock may be seen open before the sum is seen
         *sum += x[blockIdx.x];  // <- bug
-        __threadfence();
         atomicExch(lock, 0);  // <- bug
"""),
    LOCK.changed(finds="Race: sum")(r"""
// lock without a fence after it is taken
// the sum may have been read before the lock was taken
-        __threadfence();
"""),
    LOCK.changed(finds="Race: lock|sum")(r"""
// lock opened by a plain store
// a plain store races with the others' atomicCAS
         while (atomicCAS(lock, 0, 1) != 0) {}  // <- bug
-        atomicExch(lock, 0);
+        *lock = 0;  // <- bug
"""),
    LAST_BLOCK.changed(finds="Race: parts")(r"""
// last block without the writer's fence
// the arrival may be seen before the part
-    __threadfence();
     int before = atomicAdd(arrived, 1);  // <- bug
"""),
    kernel("sum_all", 4, 32, x=floats(4), parts=Empty(4), arrived=ZERO, y=floats(1, 0)).bug("Race: parts")(r"""
// last block with the fence behind the arrival
// one fence behind the counter doesn't release what came before it
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
"""),
    LAST_BLOCK.changed(finds="Race: parts")(r"""
// last block without the reader's fence
// nothing keeps the reads of the parts behind the counter
-    int before = atomicAdd(arrived, 1);
-    __threadfence();
-    if (before == gridDim.x - 1) {
+    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
"""),
    kernel("sum_all", 2, 64, x=floats(64), rows=Empty(128), arrived=ZERO, y=Empty(1)).bug("Early: rows")(r"""
// thread 0 announces what the block may not have written
// a __syncthreads() is missing before thread 0's fence
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
"""),
    FROM_BLOCK_TO_BLOCK.changed(finds="Early: data")(r"""
// thread 0 waits, the others don't
// a __syncthreads() is missing behind thread 0's wait
         if (t == 0) { while (*flag == 0) {} __threadfence(); }
-        __syncthreads();
-        y[t] = data[63 - t];
+        y[t] = data[t];  // <- bug
"""),
    kernel("queue", 2, 1, x=floats(1, 7), slots=Empty(4), head=ZERO, y=Empty(1)).bug("Early: slots")(r"""
// slot counted before it is filled
// the counter that reserves a slot also announces it, before it is filled
    if (blockIdx.x == 0) {
        int slot = atomicAdd(head, 1);  // <- bug
        slots[slot] = x[0];  // <- bug
        __threadfence();
    } else {
        while (atomicAdd(head, 0) == 0) {}
        __threadfence();
        *y = slots[0];  // <- bug
    }
"""),
    kernel("two_steps", 2, 1, a=Empty(2), arrived=ZERO, y=Empty(2)).bug("Early: a")(r"""
// barrier of the grid by hand, without fences
// waiting for a counter orders nothing else
    a[blockIdx.x] = blockIdx.x;  // <- bug
    atomicAdd(arrived, 1);  // <- bug
    while (atomicAdd(arrived, 0) < gridDim.x) {}
    y[blockIdx.x] = a[gridDim.x - 1 - blockIdx.x];  // <- bug
"""),
    CHAIN.changed(finds="Early: prefix")(r"""
// chain of sums with a fence in the wrong place
// the fence stands before the sum and not between it and its flag
     }
+    __threadfence();  // <- bug
-    __threadfence();
"""),
    RING.changed(finds="Race: slot")(r"""
// slot used again without a release by its reader
// the slot may be seen free while it is still being read
             y[k] = *slot;  // <- bug
-            __threadfence();
"""),
    ONCE.changed(finds="Early: table")(r"""
// initialised once, seen by a relaxed look
// the others look without acquire
-        while (s.load(cuda::memory_order_acquire) != 2) {}
+        while (s.load(cuda::memory_order_relaxed) != 2) {}  // <- bug
"""),
]  # fmt: skip
