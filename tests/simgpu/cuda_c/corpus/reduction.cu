// Sums, maxima and what is built of them.

extern "C" __global__ void reduce_interleaved(const int* in, int* out, unsigned int n) {
    extern __shared__ int sdata[];
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? in[i] : 0;
    __syncthreads();
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = sdata[0];
}

extern "C" __global__ void reduce_sequential(const float* in, float* out, unsigned int n) {
    extern __shared__ float fdata[];
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x * 2 + threadIdx.x;
    float mine = i < n ? in[i] : 0;
    if (i + blockDim.x < n) mine += in[i + blockDim.x];
    fdata[tid] = mine;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) fdata[tid] = mine = mine + fdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = mine;
}

// The old way: the last warp goes on without barriers, relying on volatile.
template <unsigned int blockSize> __device__ void last_warp(volatile float* s, unsigned int tid) {
    if (blockSize >= 64) s[tid] += s[tid + 32];
    if (blockSize >= 32) s[tid] += s[tid + 16];
    if (blockSize >= 16) s[tid] += s[tid + 8];
    if (blockSize >= 8) s[tid] += s[tid + 4];
    if (blockSize >= 4) s[tid] += s[tid + 2];
    if (blockSize >= 2) s[tid] += s[tid + 1];
}
template <unsigned int blockSize> __global__ void reduce_unrolled(const float* in, float* out, unsigned int n) {
    __shared__ float s[blockSize + 32];
    unsigned int tid = threadIdx.x, i = blockIdx.x * (blockSize * 2) + tid, grid = blockSize * 2 * gridDim.x;
    float sum = 0;
    while (i < n) {
        sum += in[i];
        if (i + blockSize < n) sum += in[i + blockSize];
        i += grid;
    }
    s[tid] = sum;
    if (tid < 32) s[blockSize + tid] = 0;
    __syncthreads();
    if (blockSize >= 512) { if (tid < 256) s[tid] += s[tid + 256]; __syncthreads(); }
    if (blockSize >= 256) { if (tid < 128) s[tid] += s[tid + 128]; __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) s[tid] += s[tid + 64]; __syncthreads(); }
    if (tid < 32) last_warp<blockSize>(s, tid);
    if (tid == 0) out[blockIdx.x] = s[0];
}

__inline__ __device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
    return v;
}
__inline__ __device__ float block_sum(float v) {
    static __shared__ float shared[32];
    int lane = threadIdx.x % 32, wid = threadIdx.x / 32;
    v = warp_sum(v);
    if (lane == 0) shared[wid] = v;
    __syncthreads();
    v = (threadIdx.x < blockDim.x / 32) ? shared[lane] : 0;
    if (wid == 0) v = warp_sum(v);
    return v;
}
extern "C" __global__ void reduce_shuffle(const float* in, float* out, int n) {
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += in[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

// One launch: the last block to finish adds up what the others left.
__device__ unsigned int finished = 0;
extern "C" __global__ void reduce_last_block(const float* in, float* partial, float* out, int n) {
    __shared__ float s[256];
    __shared__ bool is_last;
    int tid = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += blockDim.x * gridDim.x) sum += in[i];
    s[tid] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step; step >>= 1) {
        if (tid < step) s[tid] += s[tid + step];
        __syncthreads();
    }
    if (tid == 0) {
        partial[blockIdx.x] = s[0];
        __threadfence();
        unsigned int ticket = atomicInc(&finished, gridDim.x);
        is_last = (ticket == gridDim.x - 1);
    }
    __syncthreads();
    if (is_last) {
        sum = 0;
        for (int b = tid; b < gridDim.x; b += blockDim.x) sum += partial[b];
        s[tid] = sum;
        __syncthreads();
        for (int step = blockDim.x / 2; step; step >>= 1) {
            if (tid < step) s[tid] += s[tid + step];
            __syncthreads();
        }
        if (tid == 0) { out[0] = s[0]; finished = 0; }
    }
}

__device__ float atomicMaxFloat(float* address, float val) {
    int* as_int = (int*)address;
    int old = *as_int, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
extern "C" __global__ void max_by_cas(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMaxFloat(out, in[i]);
}

extern "C" __global__ void argmax_rows(const float* in, int* out, int cols) {
    __shared__ float best[128];
    __shared__ int where[128];
    int t = threadIdx.x;
    const float* row = in + blockIdx.x * cols;
    float b = -3.4e38f;
    int w = -1;
    for (int c = t; c < cols; c += blockDim.x) if (row[c] > b) { b = row[c]; w = c; }
    best[t] = b; where[t] = w;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (t < s && (best[t + s] > best[t] || (best[t + s] == best[t] && where[t + s] < where[t]))) {
            best[t] = best[t + s];
            where[t] = where[t + s];
        }
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = where[0];
}

extern "C" __global__ void dot(const float* a, const float* b, double* out, int n) {
    __shared__ double cache[256];
    double temp = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) temp += (double)a[i] * b[i];
    cache[threadIdx.x] = temp;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
        i /= 2;
    }
    if (threadIdx.x == 0) atomicAdd(out, cache[0]);
}

extern "C" __global__ void softmax_online(const float* in, float* out, int cols) {
    int lane = threadIdx.x;
    const float* x = in + blockIdx.x * cols;
    float m = -3.4e38f, d = 0.0f;
    for (int c = lane; c < cols; c += 32) {
        float v = x[c], top = fmaxf(m, v);
        d = d * __expf(m - top) + __expf(v - top);
        m = top;
    }
    for (int o = 16; o > 0; o >>= 1) {
        float om = __shfl_xor_sync(0xffffffff, m, o), od = __shfl_xor_sync(0xffffffff, d, o);
        float top = fmaxf(m, om);
        d = d * __expf(m - top) + od * __expf(om - top);
        m = top;
    }
    for (int c = lane; c < cols; c += 32) out[blockIdx.x * cols + c] = __expf(x[c] - m) / d;
}

extern "C" __global__ void layer_norm(const float* in, float* out, const float* gamma, const float* beta, int cols, float eps) {
    __shared__ float stats[2];
    extern __shared__ float red[];
    int t = threadIdx.x;
    const float* x = in + blockIdx.x * cols;
    float s = 0, q = 0;
    for (int c = t; c < cols; c += blockDim.x) { s += x[c]; q += x[c] * x[c]; }
    red[t] = s; red[t + blockDim.x] = q;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step >>= 1) {
        if (t < step) { red[t] += red[t + step]; red[t + blockDim.x] += red[t + blockDim.x + step]; }
        __syncthreads();
    }
    if (t == 0) { stats[0] = red[0] / cols; stats[1] = rsqrtf(red[blockDim.x] / cols - stats[0] * stats[0] + eps); }
    __syncthreads();
    for (int c = t; c < cols; c += blockDim.x) out[blockIdx.x * cols + c] = (x[c] - stats[0]) * stats[1] * gamma[c] + beta[c];
}
