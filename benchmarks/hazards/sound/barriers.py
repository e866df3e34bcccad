"""Correct uses of barriers that look as if they were not."""

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
        if (left + 1 < n && s[left] > s[left + 1]) {
            int swap = s[left];
            s[left] = s[left + 1];
            s[left + 1] = swap;
        }
    }
    __syncthreads();
    x[t] = s[t];
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
]
