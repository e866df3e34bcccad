"""Bugs of fences: data handed to another block with a fence missing, misplaced, or of a wrong order."""

from benchmarks.hazards.case import Empty, floats, ints, kernel, launch
from benchmarks.hazards.sound.fences import (
    CHAIN,
    FROM_BLOCK_TO_BLOCK,
    HANDED_ON,
    LAST_BLOCK,
    LOCK,
    ONCE,
    RELEASED,
    RING,
)

CASES = [
    HANDED_ON.changed(finds="Early: data")(r"""
// volatile flag without any fence
// volatile orders nothing between the flag and the data
         *data = 42.0f;  // <- bug
-        __threadfence();
         *(volatile int*)flag = 1;  // <- bug
-        __threadfence();
         *y = *data;  // <- bug
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// writer's fence behind the flag
// the fence has to stand between the data and the flag
         *data = 42.0f;  // <- bug
+        *(volatile int*)flag = 1;  // <- bug
         __threadfence();  // <- bug
-        *(volatile int*)flag = 1;
         *y = *data;  // <- bug
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// reader without a fence
// the reader may have read the data before the flag
         *data = 42.0f;  // <- bug
         while (*(volatile int*)flag == 0) {}
-        __threadfence();
         *y = *data;  // <- bug
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// reader's fence before it waits
// the fence has to stand between the flag and the data
         *data = 42.0f;  // <- bug
     } else {
+        __threadfence();  // <- bug
-        __threadfence();
         *y = *data;  // <- bug
"""),
    HANDED_ON.changed(finds="Early: data")(r"""
// writer without a fence
// the flag may be seen before the data
         *data = 42.0f;  // <- bug
-        __threadfence();
         *(volatile int*)flag = 1;  // <- bug
         *y = *data;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// atomic flag without fences
// atomicExch and atomicAdd are relaxed
         *data = 42.0f;  // <- bug
-        ready.store(1, cuda::memory_order_release);
+        atomicExch(flag, 1);  // <- bug
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (atomicAdd(flag, 0) == 0) {}
         *y = *data;  // <- bug
"""),
    HANDED_ON.changed(finds="Early: data|flag")(r"""
// plain store to the flag
// a flag that is stored plainly races with its readers
         *data = 42.0f;  // <- bug
-        *(volatile int*)flag = 1;
+        *flag = 1;  // <- bug
-        while (*(volatile int*)flag == 0) {}
+        while (atomicAdd(flag, 0) == 0) {}  // <- bug
         *y = *data;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// relaxed store, acquiring load
// nothing releases the data
         *data = 42.0f;  // <- bug
-        ready.store(1, cuda::memory_order_release);
+        ready.store(1, cuda::memory_order_relaxed);  // <- bug
         *y = *data;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// releasing store, relaxed load
// nothing acquires the data
         *data = 42.0f;  // <- bug
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
         *y = *data;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// relaxed on both sides
// relaxed atomics order nothing around them
         *data = 42.0f;  // <- bug
-        ready.store(1, cuda::memory_order_release);
+        ready.fetch_add(1, cuda::memory_order_relaxed);  // <- bug
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}  // <- bug
         *y = *data;  // <- bug
"""),
    RELEASED.changed(finds="Early: data")(r"""
// second part behind the flag
// what is written behind the release isn't released
         *data = 42.0f;  // <- bug
         ready.store(1, cuda::memory_order_release);
+        *data = 43.0f;  // <- bug
         *y = *data;  // <- bug
"""),
    launch(2, 1, Empty(1), ints(1, 0), Empty(1)).bug("Early: data")(r"""
// volatile data and flag without a fence
// volatile accesses of different words may be seen in any order by another block
__global__ void pass_on(volatile float* data, volatile int* flag, float* y) {
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        *flag = 1;  // <- bug
    } else {
        while (*flag == 0) {}
        *y = *data;  // <- bug
    }
}
"""),
    LOCK.changed(finds="Race: sum")(r"""
// lock without fences
// atomics are relaxed: the sum may be read before the lock is taken
-        __threadfence();
         *sum += x[blockIdx.x];  // <- bug
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
         *sum += x[blockIdx.x];  // <- bug
"""),
    LOCK.changed(finds="Race: lock|sum")(r"""
// lock opened by a plain store
// a plain store races with the others' atomicCAS
         while (atomicCAS(lock, 0, 1) != 0) {}  // <- bug
         *sum += x[blockIdx.x];  // <- bug
-        atomicExch(lock, 0);
+        *lock = 0;  // <- bug
"""),
    LAST_BLOCK.changed(finds="Race: parts")(r"""
// last block without the writer's fence
// the arrival may be seen before the part
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    __threadfence();
     int before = atomicAdd(arrived, 1);  // <- bug
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    kernel("sum_all", 4, 32, x=floats(4), parts=Empty(4), arrived=ints(1, 0), y=floats(1, 0)).bug(
        "Race: parts"
    )(r"""
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
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    int before = atomicAdd(arrived, 1);
-    __threadfence();
-    if (before == gridDim.x - 1) {
+    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    kernel("sum_all", 2, 64, x=floats(64), rows=Empty(128), arrived=ints(1, 0), y=Empty(1)).bug(
        "Early: rows"
    )(r"""
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
         data[t] = t;  // <- bug
         if (t == 0) { while (*flag == 0) {} __threadfence(); }
-        __syncthreads();
-        y[t] = data[63 - t];
+        y[t] = data[t];  // <- bug
"""),
    kernel("queue", 2, 1, x=floats(1, 7), slots=Empty(4), head=ints(1, 0), y=Empty(1)).bug(
        "Early: slots"
    )(r"""
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
    kernel("two_steps", 2, 1, a=Empty(2), arrived=ints(1, 0), y=Empty(2)).bug("Early: a")(r"""
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
         before = prefix[b - 1];  // <- bug
     }
+    __threadfence();  // <- bug
     prefix[b] = before + x[b];  // <- bug
-    __threadfence();
     done[b] = 1;  // <- bug
"""),
    RING.changed(finds="Race: slot")(r"""
// slot used again without a release by its reader
// the slot may be seen free while it is still being read
             *slot = k;  // <- bug
             y[k] = *slot;  // <- bug
-            __threadfence();
             *full = 0;  // <- bug
"""),
    ONCE.changed(finds="Early: table")(r"""
// initialised once, seen by a relaxed look
// the others look without acquire
         *table = 3.0f;  // <- bug
-        while (s.load(cuda::memory_order_acquire) != 2) {}
+        while (s.load(cuda::memory_order_relaxed) != 2) {}  // <- bug
     y[blockIdx.x] = *table;  // <- bug
"""),
]
