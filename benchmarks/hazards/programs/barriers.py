"""Barriers: right ones that look wrong; and missing, misplaced, too small, or not reached by everybody."""

from benchmarks.hazards.case import Empty, floats, ints, kernel, launch

SCAN = kernel("scan", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// scan with two buffers
// one barrier a step is enough, since reads and writes go to different buffers
    __shared__ float s[2][64];
    int t = threadIdx.x, from = 0;
    s[0][t] = x[t];
    for (int by = 1; by < 64; by *= 2) {
        __syncthreads();
        s[1 - from][t] = s[from][t] + (t >= by ? s[from][t - by] : 0.0f);
        from = 1 - from;
    }
    y[t] = s[from][t];
""")

SORT = kernel("sort", 1, 64, x=ints(64)[::-1].copy(), n=64).sound(r"""
// sort with a barrier a phase
// within a phase each pair has one thread
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    for (int phase = 0; phase < n; phase++) {
        __syncthreads();
        int left = 2 * t + phase % 2;
        if (left + 1 < n && s[left] > s[left + 1]) {  // <- in bugs
            int swap = s[left];
            s[left] = s[left + 1];  // <- in bugs
            s[left + 1] = swap;  // <- in bugs
        }
    }
    __syncthreads();
    x[t] = s[t];
""")

PRODUCT = kernel("matmul", 1, (8, 8), a=floats(128), b=floats(128), c=Empty(64), n=16).bug(
    "Race: ta|tb"
)(r"""
// tiles of a product, overwritten too early
// without a second barrier fast threads load the next tile while slow ones read this one
    __shared__ float ta[8][8], tb[8][8];
    int x = threadIdx.x, y = threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 8) {
        ta[y][x] = a[y * n + k + x];  // <- bug
        tb[y][x] = b[(k + y) * 8 + x];  // <- bug
        __syncthreads();
        for (int j = 0; j < 8; j++) sum += ta[y][j] * tb[j][x];  // <- bug
    }
    c[y * 8 + x] = sum;
""")

REVERSED = kernel("reverse", 1, 64, x=floats(64), y=Empty(64)).bug("Early: tile")(r"""
// barrier of a warp for a block of two
// __syncwarp() knows nothing of the other warp
    __shared__ float tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];  // <- bug
    __syncwarp();
    y[t] = tile[63 - t];  // <- bug
""")

CASES = [
    kernel("some_blocks", 3, 64, x=floats(192), y=Empty(192)).sound(r"""
// barrier that some blocks skip
// all threads of a block decide alike
    __shared__ float s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    y[i] = x[i];
    if (blockIdx.x % 2 == 0) {
        s[t] = x[i];
        __syncthreads();
        y[i] = s[63 - t];
    }
"""),
    kernel("maybe", 1, 64, x=floats(64), y=Empty(64), mirrored=1).sound(r"""
// barrier under an argument
// an argument is the same for all threads
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    if (mirrored) __syncthreads();
    y[t] = mirrored ? s[63 - t] : s[t];
"""),
    kernel("active", 4, 32, on=ints(4), x=floats(128), y=Empty(128)).sound(r"""
// whole blocks return
// on[blockIdx.x] is one value for the block
    __shared__ float s[32];
    if (!on[blockIdx.x]) return;
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    s[t] = x[i];
    __syncthreads();
    y[i] = s[31 - t];
"""),
    kernel("rounds", 3, 32, x=floats(32), y=Empty(96)).sound(r"""
// number of rounds that depends on the block
// within a block all go round equally often
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int r = 0; r <= blockIdx.x; r++) {
        float v = s[(t + 1) % 32];
        __syncthreads();
        s[t] = v;
        __syncthreads();
    }
    y[blockIdx.x * 32 + t] = s[t];
"""),
    kernel("mirror", 2, 64, x=floats(100), y=Empty(100), n=100).sound(r"""
// threads beyond n load zero
// nobody returns before the barrier
    __shared__ float tile[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    tile[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n) y[i] = tile[63 - t];
"""),
    kernel("rounds", 1, 32, x=floats(160), y=Empty(32), n=5).sound(r"""
// two tiles in turns, one barrier a round
// a tile is written again two rounds later, and there is a barrier in between
    __shared__ float tile[2][32];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        tile[k % 2][t] = x[k * 32 + t];
        __syncthreads();
        sum += tile[k % 2][31 - t];
    }
    y[t] = sum;
"""),
    SCAN,
    kernel("spread", 1, 64, x=ints(64)[::-1].copy(), y=Empty(64, "int32")).sound(r"""
// loop until nobody changes anything
// __syncthreads_or() is a barrier, and tells all threads the same
    __shared__ int s[64];
    int t = threadIdx.x, changed;
    s[t] = x[t];
    __syncthreads();
    do {
        int largest = max(s[t], s[max(t - 1, 0)]);
        __syncthreads();
        changed = largest != s[t];
        s[t] = largest;
    } while (__syncthreads_or(changed));
    y[t] = s[t];
"""),
    kernel("count_and_mirror", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// vote that stands for a barrier
// __syncthreads_count() orders memory as __syncthreads() does
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    int positive = __syncthreads_count(x[t] > 0.0f);
    y[t] = s[63 - t] / positive;
"""),
    kernel("block_sum", 1, 128, x=floats(128), y=Empty(1)).sound(r"""
// reduction that ends in one warp
// the last warp works in registers, and needs no barrier
    __shared__ float part[128];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    if (t < 64) part[t] += part[t + 64];
    __syncthreads();
    if (t < 32) {
        float v = part[t] + part[t + 32];
        for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xffffffff, v, by);
        if (t == 0) *y = v;
    }
"""),
    kernel("block_sum", 1, 64, x=floats(64), y=Empty(1)).sound(r"""
// last warp in shared memory with its own barrier
// a whole warp is in the branch, and __syncwarp() is enough for it
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    if (t < 32) {
        for (int by = 32; by > 0; by /= 2) {
            float v = part[t + by];
            __syncwarp();
            if (t < by) part[t] += v;
            __syncwarp();
        }
        if (t == 0) *y = part[0];
    }
"""),
    launch(1, 64, floats(64), Empty(64)).sound(r"""
// barrier in a helper
// the second barrier keeps the slot until all have read it
__device__ float of_thread_0(float v, float* slot) {
    if (threadIdx.x == 0) *slot = v;
    __syncthreads();
    float all = *slot;
    __syncthreads();
    return all;
}
__global__ void twice(const float* x, float* y) {
    __shared__ float slot;
    float a = of_thread_0(x[threadIdx.x] + 1.0f, &slot);
    float b = of_thread_0(x[threadIdx.x] + 2.0f, &slot);
    y[threadIdx.x] = a * b;
}
"""),
    kernel("meet", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// barrier after threads took different ways
// the barrier is behind both branches
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t % 3 == 0) {
        s[t] = x[t];
    } else {
        float v = 0.0f;
        for (int k = 0; k < t; k++) v += x[k];
        s[t] = v;
    }
    __syncthreads();
    y[t] = s[63 - t];
"""),
    kernel("block_sum", 1, 96, x=floats(96), y=Empty(1)).sound(r"""
// reduction of a number that is no power of two
// the middle element waits for the next step; thread 0 reads what it wrote itself
    __shared__ float part[96];
    int t = threadIdx.x;
    part[t] = x[t];
    for (int n = 96; n > 1;) {
        int half = (n + 1) / 2;
        __syncthreads();
        if (t < n / 2) part[t] += part[t + half];
        n = half;
    }
    if (t == 0) *y = part[0];
"""),
    kernel("powers", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// own places of shared memory
// no thread reads another one's column
    __shared__ float s[4][64];
    int t = threadIdx.x;
    s[0][t] = x[t];
    for (int k = 1; k < 4; k++) s[k][t] = s[k - 1][t] * x[t];
    y[t] = s[3][t];
"""),
    kernel("two_steps", 2, 64, x=floats(128), a=Empty(128), y=Empty(128)).sound(r"""
// global memory within a block
// a barrier orders global memory, too, for the threads of the block
    int base = blockIdx.x * 64, t = threadIdx.x;
    a[base + t] = 2.0f * x[base + t];
    __syncthreads();
    y[base + t] = a[base + 63 - t];
"""),
    kernel("halve", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// loop that all leave by one shared value
// between each reading of `level` and its next change there is a barrier
    __shared__ float level;
    int t = threadIdx.x;
    if (t == 0) level = x[63];
    __syncthreads();
    while (level > 1.0f) {
        float now = level;
        __syncthreads();
        if (t == 0) level = now / 2.0f;
        __syncthreads();
    }
    y[t] = level;
"""),
    kernel("mixed", 1, 64, x=floats(64), y=Empty(64)).sound(r"""
// groups and __syncthreads mixed
// all three are the block's barrier
    __shared__ float s[64];
    cg::thread_block block = cg::this_thread_block();
    int t = block.thread_rank();
    s[t] = x[t];
    block.sync();
    float v = s[63 - t];
    __syncthreads();
    s[t] = v;
    cg::sync(block);
    y[t] = s[(t + 1) % 64];
"""),
    kernel("two_steps", 2, 32, x=floats(64), a=Empty(64), y=Empty(64), n=64).sound(r"""
// barrier of the grid
// this barrier waits for all blocks, and orders what they wrote
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = 2.0f * x[i];
    cg::this_grid().sync();
    y[i] = a[n - 1 - i];
"""),
    kernel("kinds", 3, 32, x=floats(96), y=Empty(96)).sound(r"""
// barrier in a switch over blocks
// a block is in one case
    __shared__ float s[32];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    s[t] = x[i];
    switch (blockIdx.x) {
        case 0:
            __syncthreads();
            y[i] = s[31 - t];
            break;
        case 1:
            y[i] = s[t];
            break;
        default:
            __syncthreads();
            y[i] = s[0];
    }
"""),
    kernel("scale", 2, 48, x=floats(2), y=Empty(96)).sound(r"""
// same value read by all, one barrier
// one writes, and all read behind the barrier
    __shared__ float factor;
    if (threadIdx.x == blockDim.x - 1) factor = x[blockIdx.x];
    __syncthreads();
    y[blockIdx.x * blockDim.x + threadIdx.x] = factor * threadIdx.x;
"""),
    SORT,
    kernel("chunks", 1, 96, x=floats(64), y=Empty(96), n=64).sound(r"""
// loader and users take turns
// one warp loads, all come to both barriers
    __shared__ float chunk[32];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 32) {
        if (t < 32) chunk[t] = x[k + t];
        __syncthreads();
        for (int j = 0; j < 32; j++) sum += chunk[(j + t) % 32];
        __syncthreads();
    }
    y[t] = sum;
"""),
    kernel("block_max", 2, 64, x=floats(128), y=Empty(2)).sound(r"""
// result that thread 0 stores without a last barrier
// `half` is the same for all, and thread 0 wrote part[0] itself
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 64 + t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        if (half > 1) __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = part[0];
"""),
    launch(1, 64, floats(64), Empty(64)).sound(r"""
// barrier in a lambda and a template
// all threads call it
template <int N> __device__ float mirrored(float* room, float v) {
    auto meet = []() { __syncthreads(); };
    room[threadIdx.x] = v;
    meet();
    return room[N - 1 - threadIdx.x];
}
__global__ void use(const float* x, float* y) {
    __shared__ float room[64];
    y[threadIdx.x] = mirrored<64>(room, x[threadIdx.x]);
}
"""),
    kernel("padded", 1, 64, x=floats(100), y=Empty(64), n=100).sound(r"""
// as many rounds as the slowest needs
// the number of rounds is made of n and the block, not of the thread
    __shared__ float s[64];
    int t = threadIdx.x, rounds = (n + blockDim.x - 1) / blockDim.x;
    float sum = 0.0f;
    for (int r = 0; r < rounds; r++) {
        int k = r * blockDim.x + t;
        s[t] = k < n ? x[k] : 0.0f;
        __syncthreads();
        sum += s[63 - t];
        __syncthreads();
    }
    y[t] = sum;
"""),
    kernel("reverse", 2, 64, x=floats(128), y=Empty(128)).bug("Early: tile")(r"""
// tile reversed without a barrier
// a thread reads what another one may not have written yet
    __shared__ float tile[64];
    int t = threadIdx.x, base = blockIdx.x * 64;
    tile[t] = x[base + t];  // <- bug
    y[base + t] = tile[63 - t];  // <- bug
"""),
    kernel("block_sum", 1, 128, x=floats(128), y=Empty(1)).bug("Race: part")(r"""
// reduction whose barrier is behind the loop
// each step reads what the step before wrote
    __shared__ float part[128];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];  // <- bug
    }
    __syncthreads();
    if (t == 0) *y = part[0];
"""),
    kernel("block_sum", 1, 64, x=floats(64), y=Empty(1)).bug("Barrier: barrier")(r"""
// reduction whose barrier is inside of the if
// only some threads of a warp reach it
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) {
            part[t] += part[t + half];
            __syncthreads();  // <- bug
        }
    }
    if (t == 0) *y = part[0];
"""),
    kernel("fold", 1, 32, x=floats(32), y=Empty(32)).bug("Barrier: barrier")(r"""
// barrier for half of a warp
// lanes 16 to 31 never come to the first barrier
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < 16) {
        __syncthreads();  // <- bug
        s[t] += s[t + 16];
    }
    __syncthreads();
    y[t] = s[t % 16];
"""),
    kernel("exchange", 1, 64, x=floats(64), y=Empty(64)).bug("Barrier: barrier")(r"""
// odd and even threads at different barriers
// __syncthreads() stands where lanes of one warp part: all have to come to the same one
    __shared__ float s[64];
    int t = threadIdx.x;
    if (t % 2 == 0) {
        s[t] = x[t];
        __syncthreads();  // <- bug
        y[t] = s[t + 1];
    } else {
        s[t] = -x[t];
        __syncthreads();  // <- bug
        y[t] = s[t - 1];
    }
"""),
    kernel("mirror", 2, 64, x=floats(100), y=Empty(100), n=100).bug("Barrier UninitialisedRead: tile|barrier")(r"""
// threads beyond n return, and owe the tile an element
// whoever returns never loads its element nor comes to the barrier
    __shared__ float tile[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i >= n) return;  // <- bug
    tile[t] = x[i];
    __syncthreads();  // <- bug
    y[i] = tile[63 - t];  // <- bug
"""),
    # The first version had one barrier in its loop and was a race as well, which was found first, and rightly.
    kernel("rounds", 1, 64, x=floats(100), y=Empty(64), n=100).bug("Barrier: barrier")(r"""
// loop that some threads leave before others
// 36 threads go round twice, the others once
    __shared__ float s[64];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = t; k < n; k += blockDim.x) {
        s[t] = x[k];
        __syncthreads();  // <- bug
        sum += s[63 - t];
        __syncthreads();  // <- bug
    }
    __syncthreads();
    y[t] = sum + s[0];
"""),
    kernel("relax", 1, 32, x=floats(32), y=Empty(32), steps=4).bug("Barrier: barrier")(r"""
// break before the barrier
// each thread decides for itself when to leave
    __shared__ float s[32];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int step = 0; step < steps; step++) {
        float next = 0.5f * (s[t] + s[(t + 1) % 32]);
        if (fabsf(next - s[t]) < 1.0f) break;
        __syncthreads();  // <- bug
        s[t] = next;
        __syncthreads();
    }
    y[t] = s[t];
"""),
    PRODUCT,
    PRODUCT.changed(finds="Early: ta|tb")(r"""
// tiles of a product, read too early
// the barrier between loading and reading is missing
         tb[y][x] = b[(k + y) * 8 + x];  // <- bug
+        for (int j = 0; j < 8; j++) sum += ta[y][j] * tb[j][x];  // <- bug
-        for (int j = 0; j < 8; j++) sum += ta[y][j] * tb[j][x];  // <- bug
"""),
    kernel("add_offset", 2, 64, offsets=floats(2), y=Empty(128)).bug("Early: offset")(r"""
// value of thread 0 without a barrier
// nothing makes the others wait for thread 0
    __shared__ float offset;
    if (threadIdx.x == 0) offset = offsets[blockIdx.x];  // <- bug
    y[blockIdx.x * blockDim.x + threadIdx.x] = offset;  // <- bug
"""),
    REVERSED,
    kernel("scan", 1, 64, x=floats(64), y=Empty(64)).bug("Race: s")(r"""
// scan in place with one barrier a step
// reading s[t - by] and writing s[t] need a barrier between them
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();
    for (int by = 1; by < 64; by *= 2) {
        if (t >= by) s[t] += s[t - by];  // <- bug
        __syncthreads();
    }
    y[t] = s[t];
"""),
    SCAN.changed(finds="Early: s")(r"""
// scan with two buffers and no barrier
// two buffers save one of two barriers, not both
     s[0][t] = x[t];
+    __syncthreads();
-        __syncthreads();
-        s[1 - from][t] = s[from][t] + (t >= by ? s[from][t - by] : 0.0f);
+        s[1 - from][t] = t >= by ? s[from][t] + s[from][t - by] : s[from][t];  // <- bug
"""),
    REVERSED.changed(finds="Early: tile")(r"""
// fence where a barrier is needed
// a fence orders one thread's accesses, and waits for nobody
-    __syncwarp();
+    __threadfence_block();
"""),
    kernel("count_rounds", 1, 64, x=ints(128), y=Empty(64, "int32"), rounds=2).bug("Race: count")(r"""
// counter reset while others still read it
// between reading the count and its reset there is no barrier
    __shared__ int count;
    int total = 0;
    for (int r = 0; r < rounds; r++) {
        if (threadIdx.x == 0) count = 0;  // <- bug
        __syncthreads();
        if (x[r * blockDim.x + threadIdx.x] % 2) atomicAdd(&count, 1);
        __syncthreads();
        total += count;  // <- bug
    }
    y[threadIdx.x] = total;
"""),
    kernel("steps", 1, 32, x=floats(64), y=Empty(32), n=2).bug("Barrier: barrier")(r"""
// continue past the barrier
// lanes with small values go on without the others
    __shared__ float s[32];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        float v = x[k * 32 + t];
        s[t] = v;
        if (v < 5.0f) continue;
        __syncthreads();  // <- bug
        sum += s[31 - t];
        __syncthreads();
    }
    y[t] = sum;
"""),
    kernel("count", 1, 64, x=floats(50), y=Empty(64, "int32"), n=50).bug("Barrier: barrier")(r"""
// count of the block inside of an if
// __syncthreads_count() is a barrier, and 14 threads don't come
    int i = threadIdx.x, positive = 0;
    if (i < n) {
        positive = __syncthreads_count(x[i] > 0.0f);  // <- bug
    }
    __syncthreads();
    y[i] = positive;
"""),
    kernel("two_steps", 2, 32, x=floats(64), a=Empty(64), y=Empty(64), n=64).bug("Early: a")(r"""
// barrier of a block between blocks
// __syncthreads() doesn't wait for other blocks; it takes a second kernel or a grid's barrier
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = 2.0f * x[i];  // <- bug
    __syncthreads();
    y[i] = a[n - 1 - i];  // <- bug
"""),
    SORT.changed(finds="Race: s")(r"""
// odd-even sort without the inner barrier
// each phase compares what its neighbours of the last one swapped
     s[t] = x[t];
+    __syncthreads();
-        __syncthreads();
"""),
    REVERSED.changed(finds="Early: tile")(r"""
// group of a tile in place of the block
// `group` is a warp's 32 threads
+#include <cooperative_groups.h>
+namespace cg = cooperative_groups;
     __shared__ float tile[64];
+    auto group = cg::tiled_partition<32>(cg::this_thread_block());
-    __syncwarp();
+    group.sync();
"""),
    kernel("any_large", 1, 64, x=floats(64), y=Empty(64, "int32")).bug("Barrier: barrier")(r"""
// vote of the block behind &&
// && spares the threads with small values the barrier
    int t = threadIdx.x, found = 0;
    if (x[t] > 10.0f && __syncthreads_or(x[t] > 50.0f)) {  // <- bug
        found = 1;
    }
    __syncthreads();
    y[t] = found;
"""),
    kernel("two_stages", 1, 64, x=floats(64), y=Empty(64)).bug("Barrier Early: b|barrier")(r"""
// warp 0 goes through one barrier more
// the second warp's only barrier meets the first one of warp 0
    __shared__ float a[64], b[64];
    int t = threadIdx.x;
    a[t] = x[t];
    if (t < 32) {
        __syncthreads();  // <- bug
        b[t] = a[t + 32];  // <- bug
        b[t + 32] = a[t];  // <- bug
    }
    __syncthreads();  // <- bug
    y[t] = b[t];  // <- bug
"""),
    kernel("normalise", 1, 64, x=floats(64, 1)).bug("Race: part")(r"""
// result handed round without a barrier
// the others divide by what thread 0 may not have stored yet
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    if (t == 0) {
        float sum = 0.0f;
        for (int k = 0; k < 64; k++) sum += part[k];
        part[0] = sum;  // <- bug
    }
    x[t] /= part[0];  // <- bug
"""),
    kernel("phases", 1, 64, x=floats(64), y=Empty(64, "int32"), shared=256).bug("Race: room")(r"""
// shared memory used again as another type
// the second phase overwrites what others still read
    extern __shared__ float room[];
    int t = threadIdx.x;
    room[t] = x[t];
    __syncthreads();
    float right = room[(t + 1) % 64];  // <- bug
    int* order = (int*)room;
    order[63 - t] = right > 5.0f;  // <- bug
    __syncthreads();
    y[t] = order[t];
"""),
    kernel("transpose", 1, (16, 16), given=floats(256), out=Empty(256)).bug("Early: tile")(r"""
// barrier above the store that it is for
// the barrier stands before the store and not between it and the read
    __shared__ float tile[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    float v = given[y * 16 + x];
    __syncthreads();
    tile[y][x] = v;  // <- bug
    out[y * 16 + x] = tile[x][y];  // <- bug
"""),
    kernel("step", 2, 32, x=floats(64)).bug("Deadlock Barrier: grid|block|wait")(r"""
// barrier of the grid that one block calls
// the other block never comes
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += 1.0f;
    if (blockIdx.x == 0) {
        cg::this_grid().sync();  // <- bug
        x[i] += x[i + blockDim.x];
    }
"""),
]  # fmt: skip
