// Kernels whose warps wait for their own results, written when the model was done: none of them is in a fit, and
// nothing in the model was chosen with their times in view.

// Accelerations and potentials, as the n-body kernel that the model once took for three times as fast.
__global__ void stars(const float4* at, float4* pull, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 here = at[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f, potential = 0.0f;
    for (int j = 0; j < n; ++j) {
        float4 there = at[j];
        float x = there.x - here.x, y = there.y - here.y, z = there.z - here.z;
        float d = x * x + y * y + z * z + 0.05f;
        float inverse = rsqrtf(d * d * d);
        float weight = there.w * inverse;
        potential -= weight * d;
        ax += weight * x;
        ay += weight * y;
        az += weight * z;
    }
    pull[i] = make_float4(ax, ay, az, potential);
}

__global__ void van_der_pol(float* x, float* v, float mu, float h, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = v[i];
    for (int s = 0; s < steps; ++s) {
        float k1 = mu * (1.0f - a * a) * b - a;
        float am = a + 0.5f * h * b, bm = b + 0.5f * h * k1;
        float k2 = mu * (1.0f - am * am) * bm - am;
        a += h * bm;
        b += h * k2;
    }
    x[i] = a;
    v[i] = b;
}

__global__ void lyapunov(const float* rates, float* exponents, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r = rates[i], x = 0.4f, sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        x = r * x * (1.0f - x);
        sum += logf(fabsf(r - 2.0f * r * x) + 1e-6f);
    }
    exponents[i] = sum / turns;
}

__global__ void table_walk(const int* table, int* ends, int hops) {
    __shared__ int next[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) next[k] = table[k];
    __syncthreads();
    int at = (blockIdx.x * blockDim.x + threadIdx.x) & 1023;
    for (int h = 0; h < hops; ++h) at = next[at];
    ends[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void fir_rows(const float* x, float* y, float c0, float c1, float c2, float c3, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float a = 0.0f, b = 0.0f, c = 0.0f;
    for (int k = 0; k < length; ++k) {
        float in = x[k * rows + row];
        y[k * rows + row] = c0 * in + c1 * a + c2 * b + c3 * c;
        c = b;
        b = a;
        a = in;
    }
}

__global__ void warp_dots(const float* a, const float* x, float* y, int rows, int columns) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int warps = gridDim.x * blockDim.x / 32;
    for (int row = warp; row < rows; row += warps) {
        float sum = 0.0f;
        for (int k = lane; k < columns; k += 32) sum += a[row * columns + k] * x[k];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        if (lane == 0) y[row] = sum;
    }
}

__global__ void checksum(const unsigned char* bytes, unsigned* sums, int threads, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned crc = 0xffffffffu;
    for (int k = 0; k < length; ++k) {
        crc ^= bytes[k * threads + i];
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1u ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    sums[i] = ~crc;
}

__global__ void simpson(const float* from, float* areas, float h, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = from[i], sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        float m = x + 0.5f * h, e = x + h;
        sum += expf(-x * x) + 4.0f * expf(-m * m) + expf(-e * e);
        x = e;
    }
    areas[i] = sum * h / 6.0f;
}

__global__ void rays(const float* heights, const float* slopes, float* reached, int size, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float slope = slopes[i], height = 2.0f, x = (float)(i % size);
    int k = 0;
    for (; k < most; ++k) {
        int cell = (int)x % size;
        if (height < heights[cell]) break;
        x += 1.0f + 0.5f * slope;
        height += 0.0001f * slope;
    }
    reached[i] = x;
}

__global__ void powers(const float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i];
    for (int t = 0; t < turns; ++t) a = powf(a, 0.7f) + 0.3f;
    y[i] = a;
}

__global__ void running_means(const float* x, float* means, float* deviations, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float mean = 0.0f, m2 = 0.0f;
    for (int k = 0; k < length; ++k) {
        float value = x[k * rows + row];
        float delta = value - mean;
        mean += delta / (k + 1);
        m2 += delta * (value - mean);
    }
    means[row] = mean;
    deviations[row] = sqrtf(m2 / length);
}

__global__ void block_maxima(const float* x, float* maxima, int rows) {
    __shared__ float part[256];
    for (int r = 0; r < rows; ++r) {
        part[threadIdx.x] = x[(blockIdx.x * rows + r) * 256 + threadIdx.x];
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
            __syncthreads();
        }
        if (threadIdx.x == 0) maxima[blockIdx.x * rows + r] = part[0];
        __syncthreads();
    }
}

__global__ void cooling(const float* start, float* rods, int turns) {
    __shared__ float rod[130];
    int i = threadIdx.x + 1;
    rod[i] = start[blockIdx.x * 128 + threadIdx.x];
    if (i == 1) rod[0] = rod[129] = 0.0f;
    __syncthreads();
    for (int t = 0; t < turns; ++t) {
        float next = rod[i] + 0.2f * (rod[i - 1] - 2.0f * rod[i] + rod[i + 1]);
        __syncthreads();
        rod[i] = next;
        __syncthreads();
    }
    rods[blockIdx.x * 128 + threadIdx.x] = rod[i];
}

__global__ void rotations(const float* angle, float* x, float* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = angle[i], u = 1.0f, v = 0.0f;
    for (int t = 0; t < turns; ++t) {
        float s = sinf(a + 0.001f * u), c = cosf(a + 0.001f * u);
        float next = c * u - s * v;
        v = s * u + c * v;
        u = next;
    }
    x[i] = u;
    y[i] = v;
}
