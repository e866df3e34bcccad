// Histograms, graphs, particles, hashing, random numbers.

extern "C" __global__ void histogram_global(const unsigned char* data, unsigned int* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x * gridDim.x;
    while (i < n) {
        atomicAdd(&bins[data[i]], 1);
        i += stride;
    }
}

extern "C" __global__ void histogram_shared(const unsigned char* data, unsigned int* bins, int n) {
    __shared__ unsigned int temp[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) temp[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&temp[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) if (temp[b]) atomicAdd(&bins[b], temp[b]);
}

extern "C" __global__ void bfs_level(const int* ptr, const int* edges, int* depth, int* changed, int level, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || atomicAdd(&depth[v], 0) != level) return;
    for (int e = ptr[v]; e < ptr[v + 1]; ++e)
        if (atomicCAS(&depth[edges[e]], -1, level + 1) == -1) *changed = 1;
}

struct Body { float4 pos; float4 vel; };
extern "C" __global__ void nbody_forces(const float4* pos, float4* acc, int n) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        tile[threadIdx.x] = pos[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < blockDim.x; ++j) {
            float4 o = tile[j];
            float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
            float d2 = dx * dx + dy * dy + dz * dz + 1e-3f, inv = rsqrtf(d2), f = o.w * inv * inv * inv;
            ax += dx * f; ay += dy * f; az += dz * f;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0.0f);
}

#define EMPTY 0xffffffffu
__device__ unsigned hash(unsigned k) { k ^= k >> 16; k *= 0x85ebca6b; k ^= k >> 13; k *= 0xc2b2ae35; k ^= k >> 16; return k; }
extern "C" __global__ void hash_insert(unsigned* keys, int* values, unsigned size, const unsigned* new_keys, const int* new_values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = new_keys[i], slot = hash(key) & (size - 1);
    while (true) {
        unsigned prev = atomicCAS(&keys[slot], EMPTY, key);
        if (prev == EMPTY || prev == key) { atomicExch(&values[slot], new_values[i]); return; }
        slot = (slot + 1) & (size - 1);
    }
}

__device__ unsigned int xorshift(unsigned int& state) { state ^= state << 13; state ^= state >> 17; state ^= state << 5; return state; }
extern "C" __global__ void monte_carlo_pi(unsigned long long* hits, int tries) {
    unsigned int seed = 1234567u + 747796405u * (blockIdx.x * blockDim.x + threadIdx.x + 1);
    int mine = 0;
    for (int k = 0; k < tries; ++k) {
        float x = (xorshift(seed) >> 8) * (1.0f / 16777216.0f), y = (xorshift(seed) >> 8) * (1.0f / 16777216.0f);
        if (x * x + y * y < 1.0f) ++mine;
    }
    mine = __reduce_add_sync(0xffffffff, mine);
    if ((threadIdx.x & 31) == 0) atomicAdd(hits, (unsigned long long)mine);
}

extern "C" __global__ void floyd_warshall(int* dist, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n || i == k || j == k) return;
    int through = dist[i * n + k] + dist[k * n + j];
    if (through < dist[i * n + j]) dist[i * n + j] = through;
}

__device__ int depth_of(const int* left, const int* right, int root) {
    int stack[32], depth[32], top = 0, best = 0;
    stack[top] = root; depth[top++] = 1;
    while (top > 0) {
        int v = stack[--top], d = depth[top];
        best = max(best, d);
        if (left[v] >= 0) { stack[top] = left[v]; depth[top++] = d + 1; }
        if (right[v] >= 0) { stack[top] = right[v]; depth[top++] = d + 1; }
    }
    return best;
}
extern "C" __global__ void tree_depths(const int* left, const int* right, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) out[v] = depth_of(left, right, v);
}

enum { ADD, SUB, MUL, PUSH };
extern "C" __global__ void tiny_machine(const int* program, int length, const int* input, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[8] = {0}, top = 0;
    stack[top++] = input[i];
    for (int pc = 0; pc < length; ++pc) {
        switch (program[2 * pc]) {
            case ADD: --top; stack[top - 1] += stack[top]; break;
            case SUB: --top; stack[top - 1] -= stack[top]; break;
            case MUL: --top; stack[top - 1] *= stack[top]; break;
            case PUSH: stack[top++] = program[2 * pc + 1]; break;
            default: out[i] = -1; return;
        }
    }
    out[i] = stack[0];
}

extern "C" __global__ void collatz(const long long* in, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i];
    int count = 0;
    do {
        if (v == 1) break;
        v = v & 1 ? 3 * v + 1 : v >> 1;
        count++;
    } while (count < 1000);
    steps[i] = count;
}

extern "C" __global__ void count_primes(int* total, int limit) {
    int v = blockIdx.x * blockDim.x + threadIdx.x + 2;
    bool prime = v <= limit;
    for (int d = 2; prime && d * d <= v; ++d) if (v % d == 0) prime = false;
    int c = __syncthreads_count(prime);
    if (threadIdx.x == 0) atomicAdd(total, c);
}
