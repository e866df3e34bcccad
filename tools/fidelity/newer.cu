// Kernels of few warps, written when those of `later.cu` had been looked at to mend the model, and put into the repository before
// anything had measured them.

// The last steps of a hash, again and again.
__global__ void hash_walk(const unsigned* keys, unsigned* hashes, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = keys[i];
    for (int t = 0; t < turns; ++t) {
        h ^= h >> 16;
        h *= 0x85ebca6bu;
        h ^= h >> 13;
        h *= 0xc2b2ae35u;
        h ^= h >> 16;
        h += t;
    }
    hashes[i] = h;
}

// Rounds of a hash of 64 bits.
__device__ unsigned long long turned(unsigned long long x, int by) {
    return x << by | x >> (64 - by);
}

__global__ void sip_rounds(const unsigned long long* keys, unsigned long long* hashes, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long a = keys[i], b = ~a, c = a * 3ull, d = 0x9e3779b97f4a7c15ull;
    for (int t = 0; t < turns; ++t) {
        a += b;
        b = turned(b, 13) ^ a;
        a = turned(a, 32);
        c += d;
        d = turned(d, 16) ^ c;
        a += d;
        d = turned(d, 21) ^ a;
        c += b;
        b = turned(b, 17) ^ c;
        c = turned(c, 32);
    }
    hashes[i] = a ^ b ^ c ^ d;
}

// A quotient of two polynomials, of its own result.
__global__ void rational_map(const float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i];
    for (int t = 0; t < turns; ++t) {
        float top = ((0.1f * a + 0.3f) * a + 0.7f) * a + 1.1f;
        float bottom = ((0.2f * a + 0.1f) * a + 0.9f) * a + 1.3f;
        a = top / bottom;
    }
    y[i] = a;
}

// Halley's method for a cube root, each turn of the next number.
__global__ void halley_steps(const float* x, float* roots, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float goal = x[i], root = 1.0f;
    for (int t = 0; t < turns; ++t) {
        float cube = root * root * root;
        root *= (cube + 2.0f * goal) / (2.0f * cube + goal);
        goal += 0.02f;
    }
    roots[i] = root;
}

// A machine of states in shared memory, with what each of them is worth.
__global__ void state_machine(const int2* states, const unsigned char* input, int* worth, int length) {
    __shared__ int2 table[512];
    for (int k = threadIdx.x; k < 512; k += blockDim.x) table[k] = states[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i & 255, sum = 0;
    for (int k = 0; k < length; ++k) {
        int2 state = table[2 * at + (input[k] & 1)];
        sum += state.y;
        at = state.x;
    }
    worth[i] = sum;
}

// Euclid's algorithm, for a pair after another.
__global__ void divisors(const unsigned* a, const unsigned* b, unsigned* sums, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (int k = 0; k < pairs; ++k) {
        unsigned x = a[i] + k, y = b[i];
        while (y != 0) {
            unsigned rest = x % y;
            x = y;
            y = rest;
        }
        sum += x;
    }
    sums[i] = sum;
}

// A ring of lanes, each of which waits for the one beside it.
__global__ void lane_ring(const float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, next = (threadIdx.x + 1) % 32;
    float a = x[i];
    for (int t = 0; t < turns; ++t) {
        float other = __shfl_sync(0xffffffff, a, next);
        int above = __popc(__ballot_sync(0xffffffff, other > a));
        a = 0.5f * (a + other) + 0.001f * above;
    }
    y[i] = a;
}

// The softmax of short rows, by a block.
__global__ void softmax_block(const float* x, float* y, int rows) {
    __shared__ float parts[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int r = 0; r < rows; ++r) {
        int at = (blockIdx.x * rows + r) * 256 + threadIdx.x;
        float value = x[at], most = value;
        for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
        if (lane == 0) parts[warp] = most;
        __syncthreads();
        for (int w = 0; w < 8; ++w) most = fmaxf(most, parts[w]);
        __syncthreads();
        float term = expf(value - most), sum = term;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (lane == 0) parts[warp] = sum;
        __syncthreads();
        sum = 0.0f;
        for (int w = 0; w < 8; ++w) sum += parts[w];
        __syncthreads();
        y[at] = term / sum;
    }
}

// Double precision.
__global__ void double_orbit(const double* x, double* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = x[i], v = 0.0;
    for (int t = 0; t < turns; ++t) {
        double force = -a * (1.0 + 0.1 * a * a);
        v += 0.01 * force;
        a += 0.01 * v;
    }
    y[i] = a;
}

__global__ void double_fraction(const double* x, double* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double a = x[i];
    for (int t = 0; t < turns; ++t) a = 1.0 + 1.0 / (a + 0.5);
    y[i] = a;
}

// Functions of functions.
__global__ void soft_sine(const float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i];
    for (int t = 0; t < turns; ++t) a = logf(1.0f + expf(sinf(a)));
    y[i] = a;
}

// The scan of a block that goes up and down a tree.
__global__ void tree_scan(const float* x, float* y, int tiles) {
    __shared__ float part[256];
    int i = threadIdx.x;
    for (int t = 0; t < tiles; ++t) {
        int at = (blockIdx.x * tiles + t) * 256 + i;
        part[i] = x[at];
        for (int step = 1; step < 256; step *= 2) {
            __syncthreads();
            int k = (i + 1) * 2 * step - 1;
            if (k < 256) part[k] += part[k - step];
        }
        for (int step = 64; step > 0; step /= 2) {
            __syncthreads();
            int k = (i + 1) * 2 * step - 1;
            if (k + step < 256) part[k + step] += part[k];
        }
        __syncthreads();
        y[at] = part[i];
        __syncthreads();
    }
}

// The most likely path through hidden states, a thread a state.
__global__ void viterbi(const float* emitted, const float* costs, float* best, int steps) {
    __shared__ float now[128];
    int i = threadIdx.x;
    float stay = costs[i], up = costs[128 + i], down = costs[256 + i];
    now[i] = 0.0f;
    __syncthreads();
    for (int s = 0; s < steps; ++s) {
        float a = now[i] + stay, b = now[i > 0 ? i - 1 : 0] + up, c = now[i < 127 ? i + 1 : 127] + down;
        float least = fminf(a, fminf(b, c)) + emitted[s * 128 + i];
        __syncthreads();
        now[i] = least;
        __syncthreads();
    }
    best[blockIdx.x * 128 + i] = now[i];
}

// Bits counted and found.
__global__ void bit_walk(const unsigned* x, int* counts, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    unsigned a = x[i];
    for (int t = 0; t < turns; ++t) {
        int ones = __popc(a), first = __clz(a | 1u);
        a = (a << (first & 7) | a >> 25) + 0x9e3779b9u * ones;
        sum += ones - first;
    }
    counts[i] = sum;
}

// The nearest of some spheres that a ray meets, as the ray turns.
__global__ void nearest_sphere(const float4* spheres, const float* angles, float* sums, int count, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float y = angles[i], sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        float least = 100.0f;
        for (int k = 0; k < count; ++k) {
            float4 s = spheres[k];
            float along = s.x + y * s.y + 0.1f * s.z;
            float off = s.x * s.x + s.y * s.y + s.z * s.z - s.w * s.w;
            float inside = along * along - off;
            if (inside > 0.0f) least = fminf(least, along - sqrtf(inside));
        }
        sum += least;
        y += 0.001f * least;
    }
    sums[i] = sum;
}
