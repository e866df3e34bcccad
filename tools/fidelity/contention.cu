
#define LANE (threadIdx.x % 32)
#define WARP ((blockIdx.x * blockDim.x + threadIdx.x) / 32)

extern "C" __global__ void nothing(unsigned* w, unsigned* out, int n, int k, int m) {}

// Each warp's first `m` lanes add n times to one of k words, and need each result.
extern "C" __global__ void add_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// The number is known to the compiler: lanes of a warp may go together.
extern "C" __global__ void add_one(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 1); if (v >> 31) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Nobody needs the result.
extern "C" __global__ void add_free(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) atomicAdd(p, i + 1);
    }
}
extern "C" __global__ void cas_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicCAS(p, v, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void exch_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicExch(p, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void min_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 5;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicMin(p, v + 1);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void float_chain(float* w, float* out, int n, int k, int m)
{
    float v = 0;
    if (LANE < m) {
        float* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, v > 1e30f ? 0.0f : 1.0f);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Each lane has a word of its own: k apart, so in one line or in many.
extern "C" __global__ void own_chain(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0, *p = w + (blockIdx.x * blockDim.x + threadIdx.x) * k;
    if (LANE < m) {
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void own_free(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned* p = w + (blockIdx.x * blockDim.x + threadIdx.x) * k;
    if (LANE < m) {
        for (int i = 0; i < n; i++) atomicAdd(p, i + 1);
    }
}
// Looks, which change nothing.
extern "C" __global__ void look_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 0); if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void look_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        volatile unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = *p; if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
// Each look takes a new word.
extern "C" __global__ void look_new(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    if (LANE < m) {
        for (int i = 0; i < n; i++) { v = atomicAdd(w + i * 32, 0); if (v > 5) break; }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__device__ float work(float x, int m)
{
    for (int j = 0; j < m; j++) x = x * 0.5f + 1.0f;
    return x;
}
// A look, then some work, again and again.
extern "C" __global__ void spaced(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = threadIdx.x;
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) { v = atomicAdd(p, 1); x = work(x + v, m); }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// All count n times at the begin, and work alone after that.
extern "C" __global__ void burst(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = threadIdx.x;
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    x = work(x, m);
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// All work alone, and count n times at the end, one after another block.
extern "C" __global__ void stairs(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    float x = work((float)threadIdx.x, m * (int)blockIdx.x);
    if (LANE == 0) {
        unsigned* p = w + WARP % k * 32;
        for (int i = 0; i < n; i++) v = atomicAdd(p, 1 + (v >> 31));
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v + (x > 1e30f);
}
// Fences: n, one after another, behind a store or an atomic or nothing (m).
extern "C" __global__ void fences(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned* p = w + (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = 0; i < n; i++) {
        if (m == 1) *p = i;
        if (m == 2) atomicAdd(p, i);
        __threadfence();
    }
}
extern "C" __global__ void fence_load(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned v = 0;
    for (int i = 0; i < n; i++) {
        v += w[v + threadIdx.x % k];
        if (m) __threadfence();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
__device__ void meet(unsigned* arrived, unsigned goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet(w, i * gridDim.x);
}
__device__ void meet_by_volatile(unsigned* arrived, unsigned goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        volatile unsigned* look = arrived;
        unsigned looks = 0;
        while (*look < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_by_volatile(w, i * gridDim.x);
}
__device__ void meet_and_nap(unsigned* arrived, unsigned goal, int m)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            __nanosleep(m);
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void meet_nap(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_and_nap(w, i * gridDim.x, m);
}
// Count, and look until all have counted, without fences and barriers of the block.
extern "C" __global__ void meet_bare(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 1; i <= n; i++) {
            atomicAdd(w, 1);
            unsigned looks = 0;
            while (atomicAdd(w, 0) < i * gridDim.x) {
                if (++looks > 10000000) __trap();
            }
        }
    }
}
__device__ void meet_gate(unsigned* gate)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned before = atomicAdd(&gate[1], 0);
        __threadfence();
        if (atomicAdd(&gate[0], 1) == gridDim.x - 1) {
            atomicExch(&gate[0], 0);
            __threadfence();
            atomicAdd(&gate[1], 1);
        } else {
            unsigned looks = 0;
            while (atomicAdd(&gate[1], 0) == before) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
        }
    }
    __syncthreads();
}
extern "C" __global__ void gates(unsigned* w, unsigned* out, int n, int k, int m)
{
    for (int i = 1; i <= n; i++) meet_gate(w);
}
// A meeting, and some work of each block behind it.
extern "C" __global__ void meet_work(unsigned* w, unsigned* out, int n, int k, int m)
{
    float x = threadIdx.x;
    for (int i = 1; i <= n; i++) { x = work(x, m); meet(w, i * gridDim.x); }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// A token that goes round: all others look meanwhile.
extern "C" __global__ void token_add(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void token_volatile(unsigned* w, unsigned* out, int n, int k, int m)
{
    volatile unsigned* look = w;
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (*look != i * gridDim.x + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
extern "C" __global__ void token_nap(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != i * gridDim.x + blockIdx.x) {
                __nanosleep(m);
                if (++looks > 10000000) __trap();
            }
            atomicAdd(w, 1);
        }
    }
}
// A lock of tickets.
extern "C" __global__ void tickets(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; i++) {
            unsigned mine = atomicAdd(&w[0], 1), looks = 0;
            while (atomicAdd(&w[32], 0) != mine) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            atomicAdd(&w[64], 1);
            __threadfence();
            atomicAdd(&w[32], 1);
        }
    }
}
// A lock by compare-and-swap.
extern "C" __global__ void lock(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicCAS(&w[0], 0, 1) != 0) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            atomicAdd(&w[64], 1);
            __threadfence();
            atomicExch(&w[0], 0);
        }
    }
}
// Jobs from one counter: k of them, each so long.
extern "C" __global__ void queue(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ unsigned job;
    float x = threadIdx.x;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(w, 1);
        __syncthreads();
        unsigned mine = job;
        __syncthreads();
        if (mine >= k) break;
        x = work(x, m);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// A counter for each block; whoever has none left takes from the others in turn.
extern "C" __global__ void steal(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ unsigned job;
    float x = threadIdx.x;
    for (unsigned j = 0; j < gridDim.x; j++) {
        unsigned from = (blockIdx.x + j) % gridDim.x;
        while (true) {
            if (threadIdx.x == 0) job = atomicAdd(w + from * 32, 1);
            __syncthreads();
            unsigned mine = job;
            __syncthreads();
            if (mine >= k) break;
            x = work(x, m);
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x > 1e30f;
}
// Two blocks hand a number to and fro.
extern "C" __global__ void ping(unsigned* w, unsigned* out, int n, int k, int m)
{
    if (threadIdx.x == 0) {
        for (unsigned i = 0; i < n; i++) {
            unsigned looks = 0;
            while (atomicAdd(w, 0) != 2 * i + blockIdx.x) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
            w[64] += 1;
            __threadfence();
            atomicExch(w, 2 * i + blockIdx.x + 1);
        }
    }
}
// The last block adds up.
extern "C" __global__ void last(unsigned* w, unsigned* out, int n, int k, int m)
{
    __shared__ bool is_last;
    w[64 + blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(w, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last) {
        unsigned sum = 0;
        for (int i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) sum += w[64 + i];
        out[threadIdx.x] = sum;
    }
}
// Counts of a byte: m of 256 are the same one.
extern "C" __global__ void histogram(unsigned* w, unsigned* out, int n, int k, int m)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        unsigned byte = x >> 24;
        atomicAdd(&w[byte < m ? 0 : byte], 1);
    }
}
__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
extern "C" __global__ void search(unsigned* best, unsigned* looked, int n, int zeros, int m)
{
    unsigned int mine = 0, stride = gridDim.x * blockDim.x, tickets = n;
    for (unsigned int x = blockIdx.x * blockDim.x + threadIdx.x; x < tickets; x += stride) {
        if (x > atomicAdd(best, 0)) break;
        mine++;
        if (scrambled(x) >> (32 - zeros) == 0) {
            atomicMin(best, x);
            break;
        }
    }
    atomicAdd(looked, mine);
}
// Page 11's flood: w holds the depths, the flags of the levels, and the counter.
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level) || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level) || (y < width - 1 && depth[i + width] == level);
}
extern "C" __global__ void many_blocks(
    int width, const unsigned char* open, int* depth, int* grew, unsigned int* arrived)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int goal = 0;
    for (int level = 0; level < width * width; level++) {
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        meet(arrived, goal += gridDim.x);
        if (reached) {
            depth[i] = level + 1;
            atomicExch(&grew[level], 1);
        }
        meet(arrived, goal += gridDim.x);
        if (atomicAdd(&grew[level], 0) == 0) break;
    }
}
