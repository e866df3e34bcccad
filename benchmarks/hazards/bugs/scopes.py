"""Bugs of scopes: atomics and fences that reach a block, between threads of two blocks."""

from benchmarks.hazards.case import Empty, bug, floats, ints, launch
from benchmarks.hazards.sound.fences import LAST_BLOCK, RELEASED
from benchmarks.hazards.sound.scopes import FENCES

TWO_SCOPES = bug(
    launch(2, 1, Empty(1), ints(1, 0), Empty(1)),
    finds="Race UninitialisedRead Deadlock: data|flag block",
)(r"""
// release of the block, acquire of the device
// the store doesn't reach the reader's block
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
""")

CASES = [
    bug(launch(2, 32, floats(64), ints(1, 0), 64), finds="Race: total block")(r"""
// counter of the grid by atomics of a block
// two blocks add, and _block is atomic for the threads of one
__global__ void count(const float* x, int* total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) {
        atomicAdd_block(total, 1);  // <- bug
    }
}
"""),
    bug(launch(4, 32, ints(128), ints(1, 0)), finds="Race: best block")(r"""
// maximum of the grid by atomics of a block
// four blocks write one maximum
__global__ void largest(const int* x, int* best) {
    atomicMax_block(best, x[blockIdx.x * blockDim.x + threadIdx.x]);  // <- bug
}
"""),
    bug(launch(2, 48, ints(96), ints(3, 0).astype("uint32"), 96), finds="Race: bits block")(r"""
// bitmap by atomics of a block
// a word's bits belong to two blocks
__global__ void mark(const int* ids, unsigned* bits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicOr_block(&bits[ids[i] / 32], 1u << (ids[i] % 32));  // <- bug
}
"""),
    bug(launch(3, 32, ints(200), ints(8, 0), 200), finds="Race: bins block")(r"""
// global histogram by atomics of a block
// the bins are the whole grid's
__global__ void histogram(const int* x, int* bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd_block(&bins[x[i] % 8], 1);  // <- bug
    }
}
"""),
    bug(launch(2, 32, floats(64), Empty(128), ints(1, 0)), finds="Race: used|out block")(r"""
// places given out by a counter of a block
// two blocks may be given the same place
__global__ void compact(const float* x, float* out, int* used) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v > 5.0f) {
        int slot = atomicAdd_block(used, 1);  // <- bug
        out[slot] = v;  // <- bug
    }
}
"""),
    bug(launch(2, 32, ints(1, 0)), finds="Race: sum block")(r"""
// some add for the block, some for the device
// both sides of a pair of atomics have to reach the other
__global__ void add(int* sum) {
    if (blockIdx.x == 0) {
        atomicAdd_block(sum, 1);  // <- bug
    } else {
        atomicAdd(sum, 1);  // <- bug
    }
}
"""),
    bug(launch(4, 32, ints(1, 0), ints(1, 0)), finds="Race: lock|sum block")(r"""
// lock between blocks by atomics of a block
// each block may find the lock open
__global__ void add_under_lock(int* lock, int* sum) {
    if (threadIdx.x != 0) return;
    while (atomicCAS_block(lock, 0, 1) != 0) {}  // <- bug
    __threadfence();
    *sum += blockIdx.x;  // <- bug
    __threadfence();
    atomicExch_block(lock, 0);  // <- bug
}
"""),
    LAST_BLOCK.changed(finds="Race: arrived|parts block")(r"""
// last block found by a counter of a block
// blocks don't see each other's arrivals
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    int before = atomicAdd(arrived, 1);
+    int before = atomicAdd_block(arrived, 1);  // <- bug
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    FENCES.changed(finds="Race UninitialisedRead: data block")(r"""
// fence of a block before the flag for another one
// the fence orders the writes for threads of the writer's block only
         *data = 42.0f;  // <- bug
-        __threadfence_system();
+        __threadfence_block();  // <- bug
-        __threadfence_system();
+        __threadfence();
         *y = *data;  // <- bug
"""),
    FENCES.changed(finds="Race UninitialisedRead: data block")(r"""
// fence of a block behind the flag of another one
// the reader's fence doesn't reach the writer's block
         *data = 42.0f;  // <- bug
-        __threadfence_system();
+        __threadfence();
-        __threadfence_system();
+        __threadfence_block();  // <- bug
         *y = *data;  // <- bug
"""),
    bug(
        launch(2, 1, Empty(1), ints(1, 0), Empty(1)), finds="Race UninitialisedRead: data block"
    )(r"""
// fences of a block on both sides
// neither fence reaches the other block
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
"""),
    bug(
        launch(2, 1, Empty(1), ints(1, 0), Empty(1)),
        finds="Race UninitialisedRead Deadlock: data|flag block",
    )(r"""
// atomics of a block as a flag between blocks
// the flag itself stays within a block
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
"""),
    bug(launch(2, 32, ints(1, 0)), finds="Race: total block")(r"""
// atomic_ref of block scope as a counter of the grid
// thread_scope_block between two blocks
#include <cuda/atomic>
__global__ void count(int* total) {
    cuda::atomic_ref<int, cuda::thread_scope_block> counter(*total);
    counter.fetch_add(1);  // <- bug
}
"""),
    bug(launch(2, 32, ints(64), ints(1, 0)), finds="Race: best block")(r"""
// atomic_ref of block scope as a maximum of the grid
// thread_scope_block between two blocks
#include <cuda/atomic>
__global__ void largest(const int* x, int* best) {
    cuda::atomic_ref<int, cuda::thread_scope_block> b(*best);
    b.fetch_max(x[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);  // <- bug
}
"""),
    RELEASED.changed(finds="Race UninitialisedRead Deadlock: data|flag block")(r"""
// release and acquire of block scope between blocks
// thread_scope_block between two blocks
-    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
+    cuda::atomic_ref<int, cuda::thread_scope_block> ready(*flag);
         *data = 42.0f;  // <- bug
         ready.store(1, cuda::memory_order_release);  // <- bug
         while (ready.load(cuda::memory_order_acquire) == 0) {}  // <- bug
         *y = *data;  // <- bug
"""),
    TWO_SCOPES,
    TWO_SCOPES.changed(finds="Race UninitialisedRead Deadlock: data|flag block")(r"""
// release of the device, acquire of the block
// the load doesn't reach the writer's block
-        cuda::atomic_ref<int, cuda::thread_scope_block> mine(*flag);
+        cuda::atomic_ref<int, cuda::thread_scope_device> mine(*flag);
-        cuda::atomic_ref<int, cuda::thread_scope_device> theirs(*flag);
+        cuda::atomic_ref<int, cuda::thread_scope_block> theirs(*flag);
"""),
    RELEASED.changed(finds="Race UninitialisedRead: data block")(r"""
// atomic_thread_fence of block scope between blocks
// the writer's fence reaches its own block
         *data = 42.0f;  // <- bug
-        ready.store(1, cuda::memory_order_release);
+        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);  // <- bug
+        ready.store(1, cuda::memory_order_relaxed);
         *y = *data;  // <- bug
"""),
    bug(launch(1, 64, ints(1, 0)), finds="Race: total thread")(r"""
// atomic_ref of thread scope among threads
// thread_scope_thread is for one thread's own data
#include <cuda/atomic>
__global__ void count(int* total) {
    cuda::atomic_ref<int, cuda::thread_scope_thread> counter(*total);
    counter.fetch_add(1);  // <- bug
}
"""),
    bug(
        launch(2, 1, Empty(2), ints(1, 0), Empty(2)),
        finds="Race UninitialisedRead Deadlock: a|arrived block",
    )(r"""
// barrier of the grid by hand, of block scope
// blocks wait for each other by what stays within a block
#include <cuda/atomic>
__global__ void two_steps(float* a, int* arrived, float* y) {
    cuda::atomic_ref<int, cuda::thread_scope_block> count(*arrived);
    a[blockIdx.x] = blockIdx.x;  // <- bug
    count.fetch_add(1, cuda::memory_order_acq_rel);  // <- bug
    while (count.load(cuda::memory_order_acquire) < gridDim.x) {}  // <- bug
    y[blockIdx.x] = a[gridDim.x - 1 - blockIdx.x];  // <- bug
}
"""),
    LAST_BLOCK.changed(finds="Race: parts block")(r"""
// last block, with a fence of the block
// the counter is the device's, the fence before it the block's
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    __threadfence();
+    __threadfence_block();  // <- bug
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    bug(launch(2, 32, ints(1, 0), ints(1, 0)), finds="Race: taken|sum block")(r"""
// plain increments guarded by a flag of the block
// both blocks may find 0 in `taken`
__global__ void once(int* taken, int* sum) {
    if (threadIdx.x == 0 && atomicExch_block(taken, 1) == 0) {  // <- bug
        *sum = blockIdx.x + 1;  // <- bug
    }
}
"""),
    bug(launch(2, 32, floats(32), floats(32, 0), Empty(32)), finds="Race: a")(r"""
// barrier of the writer's block, nothing between blocks
// each block waits at a barrier of its own
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
"""),
]
