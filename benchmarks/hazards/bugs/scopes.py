"""Bugs of scopes: atomics and fences that reach a block, between threads of two blocks."""

from benchmarks.hazards.case import Empty, floats, ints, kernel
from benchmarks.hazards.sound.fences import LAST_BLOCK, RELEASED
from benchmarks.hazards.sound.scopes import FENCES

TWO_SCOPES = kernel("pass_on", 2, 1, data=Empty(1), flag=ints(1, 0), y=Empty(1)).bug(
    "Early Deadlock: data|flag block"
)(r"""
// release of the block, acquire of the device
// the store doesn't reach the reader's block
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        cuda::atomic_ref<int, cuda::thread_scope_block> mine(*flag);
        mine.store(1, cuda::memory_order_release);  // <- bug
    } else {
        cuda::atomic_ref<int, cuda::thread_scope_device> theirs(*flag);
        while (theirs.load(cuda::memory_order_acquire) == 0) {}  // <- bug
        *y = *data;  // <- bug
    }
""")

CASES = [
    kernel("count", 2, 32, x=floats(64), total=ints(1, 0), n=64).bug("Race: total block")(r"""
// counter of the grid by atomics of a block
// two blocks add, and _block is atomic for the threads of one
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) {
        atomicAdd_block(total, 1);  // <- bug
    }
"""),
    kernel("largest", 4, 32, x=ints(128), best=ints(1, 0)).bug("Race: best block")(r"""
// maximum of the grid by atomics of a block
// four blocks write one maximum
    atomicMax_block(best, x[blockIdx.x * blockDim.x + threadIdx.x]);  // <- bug
"""),
    kernel("mark", 2, 48, ids=ints(96), bits=ints(3, 0).astype("uint32"), n=96).bug(
        "Race: bits block"
    )(r"""
// bitmap by atomics of a block
// a word's bits belong to two blocks
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicOr_block(&bits[ids[i] / 32], 1u << (ids[i] % 32));  // <- bug
"""),
    kernel("histogram", 3, 32, x=ints(200), bins=ints(8, 0), n=200).bug("Race: bins block")(r"""
// global histogram by atomics of a block
// the bins are the whole grid's
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd_block(&bins[x[i] % 8], 1);  // <- bug
    }
"""),
    kernel("compact", 2, 32, x=floats(64), out=Empty(128), used=ints(1, 0)).bug(
        "Race: used|out block"
    )(r"""
// places given out by a counter of a block
// two blocks may be given the same place
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v > 5.0f) {
        int slot = atomicAdd_block(used, 1);  // <- bug
        out[slot] = v;  // <- bug
    }
"""),
    kernel("add", 2, 32, sum=ints(1, 0)).bug("Race: sum block")(r"""
// some add for the block, some for the device
// both sides of a pair of atomics have to reach the other
    if (blockIdx.x == 0) {
        atomicAdd_block(sum, 1);  // <- bug
    } else {
        atomicAdd(sum, 1);  // <- bug
    }
"""),
    kernel("add_under_lock", 4, 32, lock=ints(1, 0), sum=ints(1, 0)).bug(
        "Race: lock|sum block"
    )(r"""
// lock between blocks by atomics of a block
// each block may find the lock open
    if (threadIdx.x != 0) return;
    while (atomicCAS_block(lock, 0, 1) != 0) {}  // <- bug
    __threadfence();
    *sum += blockIdx.x;  // <- bug
    __threadfence();
    atomicExch_block(lock, 0);  // <- bug
"""),
    LAST_BLOCK.changed(finds="Race: arrived|parts block")(r"""
// last block found by a counter of a block
// blocks don't see each other's arrivals
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    int before = atomicAdd(arrived, 1);
+    int before = atomicAdd_block(arrived, 1);  // <- bug
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    FENCES.changed(finds="Early: data block")(r"""
// fence of a block before the flag for another one
// the fence orders the writes for threads of the writer's block only
         *data = 42.0f;  // <- bug
-        __threadfence_system();
+        __threadfence_block();  // <- bug
-        __threadfence_system();
+        __threadfence();
         *y = *data;  // <- bug
"""),
    FENCES.changed(finds="Early: data block")(r"""
// fence of a block behind the flag of another one
// the reader's fence doesn't reach the writer's block
         *data = 42.0f;  // <- bug
-        __threadfence_system();
+        __threadfence();
-        __threadfence_system();
+        __threadfence_block();  // <- bug
         *y = *data;  // <- bug
"""),
    kernel("pass_on", 2, 1, data=Empty(1), flag=ints(1, 0), y=Empty(1)).bug(
        "Early: data block"
    )(r"""
// fences of a block on both sides
// neither fence reaches the other block
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence_block();  // <- bug
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
        __threadfence_block();  // <- bug
        *y = *data;  // <- bug
    }
"""),
    kernel("pass_on", 2, 1, data=Empty(1), flag=ints(1, 0), y=Empty(1)).bug(
        "Early Deadlock: data|flag block"
    )(r"""
// atomics of a block as a flag between blocks
// the flag itself stays within a block
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- bug
        __threadfence();
        atomicExch_block(flag, 1);  // <- bug
    } else {
        while (atomicAdd_block(flag, 0) == 0) {}  // <- bug
        __threadfence();
        *y = *data;  // <- bug
    }
"""),
    kernel("count", 2, 32, total=ints(1, 0)).bug("Race: total block")(r"""
// atomic_ref of block scope as a counter of the grid
// thread_scope_block between two blocks
    cuda::atomic_ref<int, cuda::thread_scope_block> counter(*total);
    counter.fetch_add(1);  // <- bug
"""),
    kernel("largest", 2, 32, x=ints(64), best=ints(1, 0)).bug("Race: best block")(r"""
// atomic_ref of block scope as a maximum of the grid
// thread_scope_block between two blocks
    cuda::atomic_ref<int, cuda::thread_scope_block> b(*best);
    b.fetch_max(x[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);  // <- bug
"""),
    RELEASED.changed(finds="Early Deadlock: data|flag block")(r"""
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
    TWO_SCOPES.changed(finds="Early Deadlock: data|flag block")(r"""
// release of the device, acquire of the block
// the load doesn't reach the writer's block
-        cuda::atomic_ref<int, cuda::thread_scope_block> mine(*flag);
+        cuda::atomic_ref<int, cuda::thread_scope_device> mine(*flag);
-        cuda::atomic_ref<int, cuda::thread_scope_device> theirs(*flag);
+        cuda::atomic_ref<int, cuda::thread_scope_block> theirs(*flag);
"""),
    RELEASED.changed(finds="Early: data block")(r"""
// atomic_thread_fence of block scope between blocks
// the writer's fence reaches its own block
         *data = 42.0f;  // <- bug
-        ready.store(1, cuda::memory_order_release);
+        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);  // <- bug
+        ready.store(1, cuda::memory_order_relaxed);
         *y = *data;  // <- bug
"""),
    kernel("count", 1, 64, total=ints(1, 0)).bug("Race: total thread")(r"""
// atomic_ref of thread scope among threads
// thread_scope_thread is for one thread's own data
    cuda::atomic_ref<int, cuda::thread_scope_thread> counter(*total);
    counter.fetch_add(1);  // <- bug
"""),
    kernel("two_steps", 2, 1, a=Empty(2), arrived=ints(1, 0), y=Empty(2)).bug(
        "Early Deadlock: a|arrived block"
    )(r"""
// barrier of the grid by hand, of block scope
// blocks wait for each other by what stays within a block
    cuda::atomic_ref<int, cuda::thread_scope_block> count(*arrived);
    a[blockIdx.x] = blockIdx.x;  // <- bug
    count.fetch_add(1, cuda::memory_order_acq_rel);  // <- bug
    while (count.load(cuda::memory_order_acquire) < gridDim.x) {}  // <- bug
    y[blockIdx.x] = a[gridDim.x - 1 - blockIdx.x];  // <- bug
"""),
    LAST_BLOCK.changed(finds="Race: parts block")(r"""
// last block, with a fence of the block
// the counter is the device's, the fence before it the block's
     parts[blockIdx.x] = 2.0f * x[blockIdx.x];  // <- bug
-    __threadfence();
+    __threadfence_block();  // <- bug
         for (int b = 0; b < gridDim.x; b++) sum += parts[b];  // <- bug
"""),
    kernel("once", 2, 32, taken=ints(1, 0), sum=ints(1, 0)).bug("Race: taken|sum block")(r"""
// plain increments guarded by a flag of the block
// both blocks may find 0 in `taken`
    if (threadIdx.x == 0 && atomicExch_block(taken, 1) == 0) {  // <- bug
        *sum = blockIdx.x + 1;  // <- bug
    }
"""),
    kernel("produce_consume", 2, 32, x=floats(32), a=floats(32, 0), y=Empty(32)).bug("Race: a")(r"""
// barrier of the writer's block, nothing between blocks
// each block waits at a barrier of its own
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        a[t] = 2.0f * x[t];  // <- bug
        __syncthreads();
    } else {
        __syncthreads();
        y[t] = a[31 - t];  // <- bug
    }
"""),
]
