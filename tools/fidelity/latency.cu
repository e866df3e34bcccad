// Kernels with so few warps that these wait for their own results: at most a few for each scheduler. Two of each
// class, as in classes.cu: constants may be fitted to the first; the second belongs to no fit.

// All pairs of bodies, read from global memory.
__global__ void bodies_direct(const float4* bodies, float4* forces, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int j = 0; j < n; ++j) {
        float4 other = bodies[j];
        float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
        float d = dx * dx + dy * dy + dz * dz + 0.01f;
        float s = other.w * rsqrtf(d * d * d);
        fx += dx * s;
        fy += dy * s;
        fz += dz * s;
    }
    forces[i] = make_float4(fx, fy, fz, 0.0f);
}

__global__ void molecules(const float* x, const float* y, const float* z, float* energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float mx = x[i], my = y[i], mz = z[i], sum = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dx = x[j] - mx, dy = y[j] - my, dz = z[j] - mz;
        float d2 = dx * dx + dy * dy + dz * dz + 0.5f;
        float inverse = 1.0f / d2;
        float sixth = inverse * inverse * inverse;
        sum += sixth * (sixth - 1.0f) + 0.1f / sqrtf(d2);
    }
    energy[i] = sum;
}

// Newton's method, a fixed number of turns, after a goal that moves: what has converged divides 0, which takes
// 270 clocks.
__global__ void newton_cube(const float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i] * x[i] + 1.0f, r = a;
    for (int t = 0; t < turns; ++t) {
        r = r - (r * r * r - a) / (3.0f * r * r + 0.001f * t);
        a += 0.01f;
    }
    y[i] = r;
}

__global__ void kepler(const float* anomaly, float* angle, float eccentricity, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float m = anomaly[i], e = m;
    for (int t = 0; t < turns; ++t) {
        float off = e - eccentricity * sinf(e) - m;
        e -= off / (1.0f - eccentricity * cosf(e));
        m += 0.01f;
    }
    angle[i] = e;
}

// Polynomials with many coefficients.
__global__ void horner_long(const float* x, const float* coefficients, float* y, int degree) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float at = x[i], value = 0.0f;
    for (int k = degree; k >= 0; --k) value = value * at + coefficients[k];
    y[i] = value;
}

__global__ void clenshaw(const float* x, const float* coefficients, float* y, int degree) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float at = 2.0f * x[i], one = 0.0f, two = 0.0f;
    for (int k = degree; k > 0; --k) {
        float next = at * one - two + coefficients[k];
        two = one;
        one = next;
    }
    y[i] = 0.5f * at * one - two + coefficients[0];
}

// Loops until a point escapes.
__global__ void julia(const float* re, const float* im, int* steps, float cr, float ci, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = re[i], b = im[i];
    int k = 0;
    while (k < most && a * a + b * b < 4.0f) {
        float next = a * a - b * b + cr;
        b = 2.0f * a * b + ci;
        a = next;
        ++k;
    }
    steps[i] = k;
}

__global__ void sphere_march(const float* from, float* distance, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = from[2 * i], y = from[2 * i + 1], t = 0.0f;
    for (int k = 0; k < most; ++k) {
        float px = x + 0.3f * t, py = y + 0.2f * t, pz = 0.9f * t - 5.0f;
        float gap = sqrtf(px * px + py * py + pz * pz) - 1.0f;
        if (gap < 1e-9f) break;
        t += 0.01f * gap;
    }
    distance[i] = t;
}

// Lists and trees.
__global__ void list_sum(const int* next, const float* value, float* sums, int hops) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
    float sum = 0.0f;
    for (int h = 0; h < hops; ++h) {
        sum += value[at];
        at = next[at];
    }
    sums[i] = sum;
}

__global__ void tree_walk(const int2* children, const float* keys, const float* wanted, int* found, int n, int queries) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = 0;
    for (int q = 0; q < queries; ++q) {
        float key = wanted[q * gridDim.x * blockDim.x + i];
        int at = 0;
        while (at < n) {
            last = at;
            at = key < keys[at] ? children[at].x : children[at].y;
        }
    }
    found[i] = last;
}

// Recurrences along a row, a thread for each.
__global__ void smooth_rows(const float* x, float* y, float keep, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float state = 0.0f;
    for (int k = 0; k < length; ++k) {
        state = keep * state + x[k * rows + row];
        y[k * rows + row] = state;
    }
}

__global__ void biquad_rows(const float* x, float* y, float b0, float b1, float b2, float a1, float a2, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float s1 = 0.0f, s2 = 0.0f;
    for (int k = 0; k < length; ++k) {
        float in = x[k * rows + row];
        float out = b0 * in + s1;
        s1 = b1 * in - a1 * out + s2;
        s2 = b2 * in - a2 * out;
        y[k * rows + row] = out;
    }
}

// Reductions of one block, again and again.
__global__ void block_sums(const float* x, float* sums, int rows) {
    __shared__ float part[128];
    for (int r = 0; r < rows; ++r) {
        part[threadIdx.x] = x[(blockIdx.x * rows + r) * 128 + threadIdx.x];
        __syncthreads();
        for (int half = 64; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) sums[blockIdx.x * rows + r] = part[0];
        __syncthreads();
    }
}

__global__ void block_norms(const float* x, float* y, int rows) {
    __shared__ float parts[4];
    for (int r = 0; r < rows; ++r) {
        int at = (blockIdx.x * rows + r) * 128 + threadIdx.x;
        float value = x[at], sum = value * value;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
        __syncthreads();
        sum = parts[0] + parts[1] + parts[2] + parts[3];
        y[at] = value / sqrtf(sum + 1e-6f);
        __syncthreads();
    }
}

// A row for each warp.
__global__ void softmax_row(const float* x, float* y, int length) {
    const float* in = x + blockIdx.x * length;
    float most = -1e30f, sum = 0.0f;
    for (int k = threadIdx.x; k < length; k += 32) most = fmaxf(most, in[k]);
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
    for (int k = threadIdx.x; k < length; k += 32) sum += expf(in[k] - most);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    for (int k = threadIdx.x; k < length; k += 32) y[blockIdx.x * length + k] = expf(in[k] - most) / sum;
}

__global__ void entropy_row(const float* x, float* entropy, int length) {
    const float* in = x + blockIdx.x * length;
    float most = -1e30f, sum = 0.0f, weighted = 0.0f;
    for (int k = threadIdx.x; k < length; k += 32) {
        float value = in[k], higher = fmaxf(most, value);
        float scale = expf(most - higher), term = expf(value - higher);
        sum = sum * scale + term;
        weighted = weighted * scale + term * value;
        most = higher;
    }
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffff, most, step), higher = fmaxf(most, other);
        float mine = expf(most - higher), theirs = expf(other - higher);
        sum = sum * mine + __shfl_xor_sync(0xffffffff, sum, step) * theirs;
        weighted = weighted * mine + __shfl_xor_sync(0xffffffff, weighted, step) * theirs;
        most = higher;
    }
    if (threadIdx.x == 0) entropy[blockIdx.x] = most + logf(sum) - weighted / sum;
}

// Systems of equations, a thread for each.
__global__ void tridiagonal(const float* low, const float* middle, const float* high, float* work, float* x, int systems, int n) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    float c = high[s] / middle[s], d = x[s] / middle[s];
    work[s] = c;
    x[s] = d;
    for (int k = 1; k < n; ++k) {
        int at = k * systems + s;
        float scale = 1.0f / (middle[at] - low[at] * c);
        d = (x[at] - low[at] * d) * scale;
        c = high[at] * scale;
        work[at] = c;
        x[at] = d;
    }
    for (int k = n - 2; k >= 0; --k) {
        int at = k * systems + s;
        d = x[at] - work[at] * d;
        x[at] = d;
    }
}

__global__ void cholesky_band(const float* diagonal, const float* below, const float* x, float* roots, float* lower, float* y, int systems, int n) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    float l = 0.0f, v = 0.0f;
    for (int k = 0; k < n; ++k) {
        int at = k * systems + s;
        float root = sqrtf(diagonal[at] - l * l);
        v = (x[at] - l * v) / root;
        l = below[at] / root;
        roots[at] = root;
        lower[at] = l;
        y[at] = v;
    }
}

// Random numbers, each from the one before.
__global__ void xorshift_walk(const unsigned* seeds, unsigned* ends, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seeds[i] | 1u, sum = 0u;
    for (int t = 0; t < turns; ++t) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        sum += state;
    }
    ends[i] = sum;
}

__global__ void congruential_walk(const unsigned* seeds, float* means, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned state = seeds[i];
    float sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        state = state * 747796405u + 2891336453u;
        unsigned word = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
        word = (word >> 22) ^ word;
        sum += (word >> 8) * 5.9604645e-8f;
    }
    means[i] = sum / turns;
}

// Differential equations.
__global__ void lorenz(float* x, float* y, float* z, float h, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = y[i], c = z[i];
    for (int s = 0; s < steps; ++s) {
        float a1 = 10.0f * (b - a), b1 = a * (28.0f - c) - b, c1 = a * b - 2.6666667f * c;
        float p = a + 0.5f * h * a1, q = b + 0.5f * h * b1, r = c + 0.5f * h * c1;
        float a2 = 10.0f * (q - p), b2 = p * (28.0f - r) - q, c2 = p * q - 2.6666667f * r;
        a += h * a2;
        b += h * b2;
        c += h * c2;
    }
    x[i] = a;
    y[i] = b;
    z[i] = c;
}

__global__ void pendulum(float* angle, float* speed, float h, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = angle[i], v = speed[i];
    for (int s = 0; s < steps; ++s) {
        float k1 = -sinf(a), v1 = v + 0.5f * h * k1;
        float k2 = -sinf(a + 0.5f * h * v), v2 = v + 0.5f * h * k2;
        float k3 = -sinf(a + 0.5f * h * v1), v3 = v + h * k3;
        float k4 = -sinf(a + h * v2);
        a += h / 6.0f * (v + 2.0f * v1 + 2.0f * v2 + v3);
        v += h / 6.0f * (k1 + 2.0f * k2 + 2.0f * k3 + k4);
    }
    angle[i] = a;
    speed[i] = v;
}

// Small matrices.
__global__ void rows_of_matrix(const float* a, const float* x, float* y, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < columns; ++k) sum += a[i * columns + k] * x[k];
    y[i] = sum;
}

__global__ void power_iteration(const float* a, float* vector, int turns) {
    __shared__ float v[128];
    v[threadIdx.x] = vector[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (int t = 0; t < turns; ++t) {
        float sum = 0.0f;
        for (int k = 0; k < 128; ++k) sum += a[k * 128 + threadIdx.x] * v[k];
        __syncthreads();
        v[threadIdx.x] = sum * 0.1f;
        __syncthreads();
    }
    vector[blockIdx.x * 128 + threadIdx.x] = v[threadIdx.x];
}

// Search.
__global__ void lower_bounds(const float* sorted, const float* wanted, int* found, int n, int queries) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int q = 0; q < queries; ++q) {
        float key = wanted[q * gridDim.x * blockDim.x + i];
        int low = 0, high = n;
        while (low < high) {
            int middle = (low + high) / 2;
            if (sorted[middle] < key) low = middle + 1;
            else high = middle;
        }
        sum += low;
    }
    found[i] = sum;
}

__global__ void bisect(const float* wanted, float* roots, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float goal = wanted[i], low = 0.0f, high = 8.0f;
    for (int t = 0; t < turns; ++t) {
        float middle = 0.5f * (low + high);
        if (expf(middle) + middle < goal) low = middle;
        else high = middle + 0.001f;
    }
    roots[i] = low;
}

// Prefix sums of one block, tile after tile.
__global__ void scan_tiles(const int* x, int* y, int tiles) {
    __shared__ int part[128];
    int before = 0;
    for (int t = 0; t < tiles; ++t) {
        int at = (blockIdx.x * tiles + t) * 128 + threadIdx.x;
        part[threadIdx.x] = x[at];
        __syncthreads();
        for (int step = 1; step < 128; step *= 2) {
            int other = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
            __syncthreads();
            part[threadIdx.x] += other;
            __syncthreads();
        }
        y[at] = part[threadIdx.x] + before;
        before += part[127];
        __syncthreads();
    }
}

__global__ void scan_warps(const int* x, int* y, int tiles) {
    __shared__ int totals[4];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0;
    for (int t = 0; t < tiles; ++t) {
        int at = (blockIdx.x * tiles + t) * 128 + threadIdx.x;
        int sum = x[at];
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(0xffffffff, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane == 31) totals[warp] = sum;
        __syncthreads();
        int all = 0;
        for (int w = 0; w < 4; ++w) {
            if (w < warp) sum += totals[w];
            all += totals[w];
        }
        y[at] = sum + before;
        before += all;
        __syncthreads();
    }
}

// Tables in shared memory.
__global__ void shortest_path(const float* lengths, float* distance, int rounds) {
    __shared__ float d[128];
    d[threadIdx.x] = distance[blockIdx.x * 128 + threadIdx.x];
    __syncthreads();
    for (int r = 0; r < rounds; ++r) {
        float best = d[threadIdx.x];
        for (int k = 0; k < 128; ++k) best = fminf(best, d[k] + lengths[k * 128 + threadIdx.x]);
        __syncthreads();
        d[threadIdx.x] = best;
        __syncthreads();
    }
    distance[blockIdx.x * 128 + threadIdx.x] = d[threadIdx.x];
}

__global__ void edit_distance(const int* a, const int* b, int* distance, int n) {
    __shared__ int rows[3][129];
    int i = threadIdx.x + 1, mine = a[blockIdx.x * 128 + threadIdx.x];
    for (int k = 0; k < 3; ++k) rows[k][i] = i;
    if (i == 1) for (int k = 0; k < 3; ++k) rows[k][0] = 0;
    __syncthreads();
    for (int d = 2; d < n + 128; ++d) {
        int j = d - i;
        int now = d % 3, last = (d + 2) % 3, older = (d + 1) % 3;
        if (j > 0 && j <= n) {
            int best = min(rows[last][i], rows[last][i - 1]) + 1;
            int same = rows[older][i - 1] + (b[j - 1] != mine);
            rows[now][i] = min(best, same);
        }
        if (i == 1) rows[now][0] = d;
        __syncthreads();
    }
    distance[blockIdx.x * 128 + threadIdx.x] = rows[(n + 127) % 3][i];
}

// For comparison, so many warps that throughput holds.
__global__ void compound(const float* x, float* y, int n, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int t = 0; t < turns; ++t) {
        a = a * 0.99f + 0.5f;
        b = b * 0.98f + 0.4f;
        c = c * 0.97f + 0.3f;
        d = d * 0.96f + 0.2f;
    }
    y[i] = a + b + c + d;
}

__global__ void black_scholes(const float* price, const float* strike, const float* years, float* call, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], k = strike[i], t = years[i], root = 0.3f * sqrtf(t);
    float d1 = (logf(s / k) + 0.065f * t) / root, d2 = d1 - root;
    float n1 = 0.5f * erfcf(-0.70710678f * d1), n2 = 0.5f * erfcf(-0.70710678f * d2);
    call[i] = s * n1 - k * expf(-0.02f * t) * n2;
}
