"""Scopes: right ones that look wrong; atomics and fences that reach a block, between threads of two blocks."""

from benchmarks.hazards.case import ZERO, Empty, floats, ints, kernel, launch
from benchmarks.hazards.programs.fences import LAST_BLOCK, RELEASED

FENCES = kernel("pass_on", 2, 1, volatile="flag", data=Empty(1), flag=ZERO, y=Empty(1)).sound(r"""
// fences of the system between blocks
// a fence of the system is more than is needed, and enough
    if (blockIdx.x == 0) {
        *data = 42.0f;  // <- in bugs
        __threadfence_system();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence_system();
        *y = *data;  // <- in bugs
    }
""")

TWO_SCOPES = kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).bug(
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
    kernel("count", 2, 64, x=floats(128), counts=Empty(2, "int32")).sound(r"""
// atomics of a block in shared memory
// shared memory belongs to one block
    __shared__ int local;
    if (threadIdx.x == 0) local = 0;
    __syncthreads();
    if (x[blockIdx.x * blockDim.x + threadIdx.x] > 3.0f) atomicAdd_block(&local, 1);
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = local;
"""),
    kernel("count", 4, 32, x=floats(128), counts=ints(4, 0)).sound(r"""
// a global counter for each block
// a counter is one block's
    if (x[blockIdx.x * blockDim.x + threadIdx.x] > 3.0f) atomicAdd_block(&counts[blockIdx.x], 1);
"""),
    kernel("histogram", 1, 64, x=ints(200), bins=ints(8, 0), n=200).sound(r"""
// grid of one block
// there is no other block
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd_block(&bins[x[i] % 8], 1);
"""),
    kernel("pass_on", 1, 64, volatile="flag", data=Empty(1), flag=ZERO, y=Empty(1)).sound(r"""
// handing over within a block by fences of the block
// both threads are of one block, in different warps
    if (threadIdx.x == 0) {
        *data = 42.0f;
        __threadfence_block();
        *flag = 1;
    } else if (threadIdx.x == 32) {
        while (*flag == 0) {}
        __threadfence_block();
        *y = *data;
    }
"""),
    kernel("count", 4, 32, total=ZERO).sound(r"""
// atomics of the system from many blocks
// the system has all blocks in it
    atomicAdd_system(total, 1);
"""),
    FENCES,
    kernel("add", 2, 32, sum=ZERO).sound(r"""
// some add for the device, some for the system
// each scope has both blocks in it
    if (blockIdx.x == 0) atomicAdd(sum, 1);
    else atomicAdd_system(sum, 1);
"""),
    kernel("best", 2, 64, x=ints(128), y=Empty(2, "int32")).sound(r"""
// shared atomic of block scope
// the block's scope for the block's variable; barriers order the rest
    __shared__ int most;
    if (threadIdx.x == 0) most = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block> m(most);
    m.fetch_max(x[blockIdx.x * blockDim.x + threadIdx.x], cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = most;
"""),
    RELEASED.changed()(r"""
// release and acquire of device scope
// device scope reaches the other block
"""),
    launch(4, 32, ints(4, 0), ZERO).sound(r"""
// block scope in one kernel, device scope in the next
// the kernels are in order, and in the first one a counter is one block's
__global__ void by_blocks(int* counts, int* total) {
    atomicAdd_block(&counts[blockIdx.x], threadIdx.x);
}
__global__ void all_together(int* counts, int* total) {
    if (threadIdx.x == 0) atomicAdd(total, counts[blockIdx.x]);
}
"""),
    kernel("histogram", 3, 32, x=ints(200), bins=ints(8, 0), n=200).sound(r"""
// local histogram of the block, merged for the device
// each level has its scope
    __shared__ int local[8];
    if (threadIdx.x < 8) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd_block(&local[x[i] % 8], 1);
    __syncthreads();
    if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
"""),
    kernel("count", 4, 32, total=ZERO).sound(r"""
// atomic_ref without a scope
// the default is the system
    cuda::atomic_ref<int> counter(*total);
    counter.fetch_add(1, cuda::memory_order_relaxed);
"""),
    kernel("own", 2, 32, counts=ints(64, 0)).sound(r"""
// thread scope for private elements
// no other thread touches the element
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::atomic_ref<int, cuda::thread_scope_thread> mine(counts[i]);
    for (int k = 0; k < 4; k++) mine.fetch_add(k);
"""),
    kernel("pass_on", 2, 64, x=floats(2), y=Empty(2)).sound(r"""
// warps of a block hand over by an atomic of block scope
// the flag is shared memory
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
"""),
    kernel("mark", 4, 64, bits=ints(4, 0).astype("uint32")).sound(r"""
// words of one array, each one block's
// blocks take neighbouring words, and never the same
    atomicOr_block(&bits[blockIdx.x], 1u << (threadIdx.x % 32));
"""),
    kernel("add_under_lock", 2, 96, y=Empty(2)).sound(r"""
// lock of a block in shared memory
// one lane of each warp takes a lock that is the block's
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
"""),
    kernel("total", 4, 32, x=ints(128), parts=ints(4, 0), sum=ZERO).sound(r"""
// threads for the block, one of them for the device
// the barrier stands between the block's atomics and their plain reading
    atomicAdd_block(&parts[blockIdx.x], x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, parts[blockIdx.x]);
"""),
    kernel("first_block", 4, 32, x=floats(32), count=ZERO).sound(r"""
// only block 0 adds
// the others have returned
    if (blockIdx.x != 0) return;
    if (x[threadIdx.x] > 7.0f) atomicAdd_block(count, 1);
"""),
    kernel("places", 2, 32, x=floats(64), out=Empty(64), used=ints(2, 0)).sound(r"""
// counter of a block that is read behind its barrier
// each block has its counter and its part of the array
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    int slot = v > 5.0f ? atomicAdd_block(&used[blockIdx.x], 1) : -1;
    if (slot >= 0) out[blockIdx.x * blockDim.x + slot] = v;
    __syncthreads();
    for (int k = used[blockIdx.x] + threadIdx.x; k < blockDim.x; k += blockDim.x)
        out[blockIdx.x * blockDim.x + k] = 0.0f;
"""),
    kernel("pass_on", 2, 64, x=floats(2), data=Empty(2), flags=ints(2, 0), y=Empty(2)).sound(r"""
// wider fence than the flag needs
// writer and reader are of one block; fences of the device order for it, too
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
"""),
    kernel("work", 2, 32, y=Empty(64), done=ZERO).sound(r"""
// relaxed counter of the device, unused as a flag
// nobody reads y because of the counter
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = sqrtf(i);
    cuda::atomic_ref<int, cuda::thread_scope_device>(*done).fetch_add(1, cuda::memory_order_relaxed);
"""),
    kernel("swap_in", 2, 32, x=ints(64), slots=ints(2, -1), y=Empty(64, "int32")).sound(r"""
// slots exchanged within a block
// a slot is exchanged by the threads of one block; any order is right
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = atomicExch_block(&slots[blockIdx.x], x[i]);
"""),
    RELEASED.changed()(r"""
// atomic_thread_fence of device scope between blocks
// two fences and a relaxed flag are a release and an acquire
-        ready.store(1, cuda::memory_order_release);
+        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
+        ready.store(1, cuda::memory_order_relaxed);
-        while (ready.load(cuda::memory_order_acquire) == 0) {}
+        while (ready.load(cuda::memory_order_relaxed) == 0) {}
+        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
"""),
    kernel("turns", 2, 32, words=ints(8, 0)).sound(r"""
// block of 32 in turns for another word
// words 0 to 3 are block 0's, 4 to 7 block 1's
    for (int k = 0; k < 4; k++) {
        atomicAdd_block(&words[4 * blockIdx.x + (threadIdx.x + k) % 4], 1);
    }
"""),
    kernel("count", 2, 32, x=floats(64), total=ZERO, n=64).bug("Race: total block")(r"""
// counter of the grid by atomics of a block
// two blocks add, and _block is atomic for the threads of one
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 3.0f) {
        atomicAdd_block(total, 1);  // <- bug
    }
"""),
    kernel("largest", 4, 32, x=ints(128), best=ZERO).bug("Race: best block")(r"""
// maximum of the grid by atomics of a block
// four blocks write one maximum
    atomicMax_block(best, x[blockIdx.x * blockDim.x + threadIdx.x]);  // <- bug
"""),
    kernel("mark", 2, 48, ids=ints(96), bits=ints(3, 0).astype("uint32"), n=96).bug("Race: bits block")(r"""
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
    kernel("compact", 2, 32, x=floats(64), out=Empty(128), used=ZERO).bug("Race: used|out block")(r"""
// places given out by a counter of a block
// two blocks may be given the same place
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    if (v > 5.0f) {
        int slot = atomicAdd_block(used, 1);  // <- bug
        out[slot] = v;  // <- bug
    }
"""),
    kernel("add", 2, 32, sum=ZERO).bug("Race: sum block")(r"""
// some add for the block, some for the device
// both sides of a pair of atomics have to reach the other
    if (blockIdx.x == 0) {
        atomicAdd_block(sum, 1);  // <- bug
    } else {
        atomicAdd(sum, 1);  // <- bug
    }
"""),
    kernel("add_under_lock", 4, 32, lock=ZERO, sum=ZERO).bug("Race: lock|sum block")(r"""
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
-    int before = atomicAdd(arrived, 1);
+    int before = atomicAdd_block(arrived, 1);  // <- bug
"""),
    FENCES.changed(finds="Early: data block")(r"""
// fence of a block before the flag for another one
// the fence orders the writes for threads of the writer's block only
-        __threadfence_system();
+        __threadfence_block();  // <- bug
-        __threadfence_system();
+        __threadfence();
"""),
    FENCES.changed(finds="Early: data block")(r"""
// fence of a block behind the flag of another one
// the reader's fence doesn't reach the writer's block
-        __threadfence_system();
+        __threadfence();
-        __threadfence_system();
+        __threadfence_block();  // <- bug
"""),
    kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).bug("Early: data block")(r"""
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
    kernel("pass_on", 2, 1, data=Empty(1), flag=ZERO, y=Empty(1)).bug("Early Deadlock: data|flag block")(r"""
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
    kernel("count", 2, 32, total=ZERO).bug("Race: total block")(r"""
// atomic_ref of block scope as a counter of the grid
// thread_scope_block between two blocks
    cuda::atomic_ref<int, cuda::thread_scope_block> counter(*total);
    counter.fetch_add(1);  // <- bug
"""),
    kernel("largest", 2, 32, x=ints(64), best=ZERO).bug("Race: best block")(r"""
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
         ready.store(1, cuda::memory_order_release);  // <- bug
         while (ready.load(cuda::memory_order_acquire) == 0) {}  // <- bug
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
-        ready.store(1, cuda::memory_order_release);
+        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);  // <- bug
+        ready.store(1, cuda::memory_order_relaxed);
"""),
    kernel("count", 1, 64, total=ZERO).bug("Race: total thread")(r"""
// atomic_ref of thread scope among threads
// thread_scope_thread is for one thread's own data
    cuda::atomic_ref<int, cuda::thread_scope_thread> counter(*total);
    counter.fetch_add(1);  // <- bug
"""),
    kernel("two_steps", 2, 1, a=Empty(2), arrived=ZERO, y=Empty(2)).bug("Early Deadlock: a|arrived block")(r"""
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
-    __threadfence();
+    __threadfence_block();  // <- bug
"""),
    kernel("once", 2, 32, taken=ZERO, sum=ZERO).bug("Race: taken|sum block")(r"""
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
]  # fmt: skip
