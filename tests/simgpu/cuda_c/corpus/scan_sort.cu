// Prefix sums, compaction, sorting.

extern "C" __global__ void scan_hillis_steele(const float* in, float* out, int n) {
    extern __shared__ float temp[];
    int t = threadIdx.x, from = 1, to = 0;
    temp[t] = t > 0 ? in[t - 1] : 0;
    __syncthreads();
    for (int offset = 1; offset < n; offset *= 2) {
        to = 1 - to;
        from = 1 - to;
        if (t >= offset) temp[to * n + t] = temp[from * n + t] + temp[from * n + t - offset];
        else temp[to * n + t] = temp[from * n + t];
        __syncthreads();
    }
    out[t] = temp[to * n + t];
}

extern "C" __global__ void scan_blelloch(int* data, int n) {
    extern __shared__ int tree[];
    int t = threadIdx.x, offset = 1;
    tree[2 * t] = data[2 * t];
    tree[2 * t + 1] = data[2 * t + 1];
    for (int d = n >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, v = tree[a];
            tree[a] = tree[b];
            tree[b] += v;
        }
    }
    __syncthreads();
    data[2 * t] = tree[2 * t];
    data[2 * t + 1] = tree[2 * t + 1];
}

__device__ int warp_scan(int v) {
    int lane = threadIdx.x & 31;
    #pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += other;
    }
    return v;
}
extern "C" __global__ void scan_by_warps(const int* in, int* out, int* sums, int n) {
    __shared__ int totals[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int v = warp_scan(i < n ? in[i] : 0);
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0) totals[lane] = warp_scan(lane < blockDim.x / 32 ? totals[lane] : 0);
    __syncthreads();
    if (warp > 0) v += totals[warp - 1];
    if (i < n) out[i] = v;
    if (sums && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}

extern "C" __global__ void add_block_sums(int* data, const int* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x == 0) return;
    int before = 0;
    for (int b = 0; b < blockIdx.x; ++b) before += sums[b];
    if (i < n) data[i] += before;
}

extern "C" __global__ void compact_positive(const int* in, int* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    bool keep = i < n && in[i] > 0;
    unsigned votes = __ballot_sync(0xffffffff, keep);
    int base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(votes));
    base = __shfl_sync(0xffffffff, base, 0);
    if (keep) out[base + __popc(votes & ((1u << lane) - 1))] = in[i];
}

extern "C" __global__ void bitonic_block(int* data) {
    extern __shared__ int keys[];
    unsigned int t = threadIdx.x, n = blockDim.x;
    keys[t] = data[blockIdx.x * n + t];
    __syncthreads();
    for (unsigned int k = 2; k <= n; k *= 2)
        for (unsigned int j = k / 2; j > 0; j /= 2) {
            unsigned int other = t ^ j;
            if (other > t) {
                bool up = (t & k) == 0;
                if ((keys[t] > keys[other]) == up) { int v = keys[t]; keys[t] = keys[other]; keys[other] = v; }
            }
            __syncthreads();
        }
    data[blockIdx.x * n + t] = keys[t];
}

__device__ void swap_if(int& a, int& b) { if (a > b) { int t = a; a = b; b = t; } }
extern "C" __global__ void odd_even(int* data, int n) {
    for (int phase = 0; phase < n; ++phase) {
        int i = 2 * threadIdx.x + (phase & 1);
        if (i + 1 < n) swap_if(data[i], data[i + 1]);
        __syncthreads();
    }
}

extern "C" __global__ void rank_sort(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i];
    int rank = 0;
    for (int j = 0; j < n; j++) rank += (in[j] < v) || (in[j] == v && j < i);
    out[rank] = v;
}

extern "C" __global__ void binary_search(const int* sorted, int n, const int* wanted, int* found, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (sorted[mid] < wanted[i]) lo = mid + 1; else hi = mid;
    }
    found[i] = lo < n && sorted[lo] == wanted[i] ? lo : -1;
}

extern "C" __global__ void radix_pass(const unsigned* in, unsigned* out, int n, int bit) {
    __shared__ int ones[256];
    __shared__ int zeros_total;
    int t = threadIdx.x;
    unsigned key = in[t];
    int b = (key >> bit) & 1;
    ones[t] = b;
    __syncthreads();
    for (int d = 1; d < n; d <<= 1) {
        int v = t >= d ? ones[t - d] : 0;
        __syncthreads();
        ones[t] += v;
        __syncthreads();
    }
    if (t == n - 1) zeros_total = n - ones[t];
    __syncthreads();
    int place = b ? zeros_total + ones[t] - 1 : t - ones[t];
    out[place] = key;
}
