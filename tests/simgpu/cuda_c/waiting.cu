// Kernels whose threads wait for each other.

__device__ int tickets = 0;
extern "C" __global__ void scan(const int* x, int* y, volatile int* ends, int* flags) {
    __shared__ int s[64]; __shared__ int block; __shared__ int before;
    int t = threadIdx.x;
    if (t == 0) block = atomicAdd(&tickets, 1);
    __syncthreads();
    int b = block;
    s[t] = x[b * 64 + t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    if (t == 63) {
        int sum = 0;
        if (b > 0) {
            while (atomicAdd(&flags[b - 1], 0) == 0);
            sum = ends[b - 1];
        }
        before = sum;
        ends[b] = sum + s[63];
        __threadfence();
        atomicExch(&flags[b], 1);
    }
    __syncthreads();
    y[b * 64 + t] = s[t] + before;
}

__device__ void send(int* tail, int* turns, int* values, int x) {
    int place = atomicAdd(tail, 1), slot = place % 2;
    while (atomicAdd(&turns[slot], 0) != place);
    __threadfence();
    values[slot] = x;
    __threadfence();
    atomicExch(&turns[slot], place + 1);
}
extern "C" __global__ void ring(int* tail, int* turns, int* values, int* o) {
    int n = gridDim.x - 1;
    if (blockIdx.x) { for (int i = 0; i < 5; i++) send(tail, turns, values, blockIdx.x * 10 + i); return; }
    for (int place = 0; place < 5 * n; place++) {
        while (atomicAdd(&turns[place % 2], 0) != place + 1);
        __threadfence();
        o[place] = values[place % 2];
        __threadfence();
        atomicExch(&turns[place % 2], place + 2);
    }
}

template <typename T> struct Cell {
    int* full; T* value;
    __device__ void send(T x) { *value = x; __threadfence(); atomicExch(full, 1); }
    __device__ bool poll(T& x) { if (atomicAdd(full, 0) == 0) return false;
        __threadfence(); x = *value; return true; }
};
extern "C" __global__ void cell(int* cells, int* o) {
    Cell<int> one = {cells, cells + 1};
    if (blockIdx.x == 0) { int x = 0; bool ready = false; while (!ready) { ready = one.poll(x); } o[0] = x; }
    else { one.send(7); } }

// Threads of one warp make progress independently, as since Volta.
extern "C" __global__ void within(int* o) {
    __shared__ volatile int flag; int i = threadIdx.x;
    if (i == 31) flag = 0;
    __syncthreads();
    if (i < 31) { while (flag == 0); }
    else { flag = 1; }
    __syncwarp();
    o[i] = i + __shfl_sync(0xffffffff, i + flag, 31);
}

// A barrier waits for those who spin.
extern "C" __global__ void spinning(int* flag, int* o) { int i = threadIdx.x;
    if (i == 0) { while (atomicAdd(flag, 0) == 0); o[0] = 5; }
    if (i == 40) { atomicExch(flag, 1); }
    __syncthreads(); int v = __syncthreads_count(o[0] == 5);
    o[i + 1] = v; }

struct Timer { int left; __device__ bool poll() { return left-- > 0; } };
__device__ void wait_by(Timer& timer, int* flag) {
    bool more = true; while (more) { more = timer.poll() || atomicAdd(flag, 0); } }
extern "C" __global__ void timed(int* flag, int* o) { Timer t = {5}; wait_by(t, flag); o[0] = t.left; }

// A lane that is done waits for the vote of those who count.
extern "C" __global__ void vote(int* o) { int left = threadIdx.x, rounds = 0; bool all = false;
    while (!all) { if (left > 0) left--; all = __all_sync(0xffffffff, left == 0); rounds++; }
    o[threadIdx.x] = rounds + atomicAdd(&o[threadIdx.x], 0); }

extern "C" __global__ void long_loop(int* o) { int i = threadIdx.x, n = 0;
    long long start = clock64(); while (clock64() - start < 5000);
    while (n < 1000 + i) { n++; } o[i] = n; }

// Functions that wait, for larger expressions.
__device__ int last(volatile int* f) { while (*f == 0) ; return *f; }
__device__ int next(volatile int* f) { return 1 + last(f); }
__device__ bool ready(volatile int* f) { return last(f) > 2; }
struct Flag { volatile int* f; __device__ int get() { while (*f == 0) ; return *f; } };
__device__ void both(volatile int* f) { last(f); }
__device__ void through(volatile int* f) { return both(f); }
__device__ int block_sum(int v) {
    __shared__ int s[4]; s[threadIdx.x] = v; __syncthreads();
    int out = s[0] + s[1] + s[2] + s[3]; __syncthreads(); return out; }

// A queue that fills while it is emptied: an item leads to eight more, as long as they are below 512.
extern "C" __global__ void tree(int* counts, volatile int* items, int* did) {
    __shared__ int item; int t = threadIdx.x;
    while (true) {
        if (t == 0) {
            int slot = atomicAdd(&counts[0], 1);
            while (slot > 0 && items[slot] == 0 && atomicAdd(&counts[2], 0) < 511);
            item = slot > 0 ? items[slot] : 1; }
        __syncthreads();
        int here = item;
        if (here == 0) break;
        int next = 8 * here - 6 + t;
        if (t < 8 && next < 512) { items[atomicAdd(&counts[1], 1) + 1] = next; }
        __syncthreads();
        if (t == 0) { did[blockIdx.x]++; atomicAdd(&counts[2], 1); } } }

// Block 0 lets the others in, and draws numbers in a loop that never waits.
extern "C" __global__ void door(volatile int* open, int* next, int* did) {
    if (blockIdx.x > 0) { while (*open == 0); }
    else { *open = 1; }
    for (int i = atomicAdd(next, 1); i < 511; i = atomicAdd(next, 1)) did[blockIdx.x]++; }
