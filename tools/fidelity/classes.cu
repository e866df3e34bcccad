// Kernels of the classes in which the model was furthest off. Two of each class: constants may be fitted to the
// first; the second belongs to no fit.

// Tiles in shared memory, and few blocks.
__global__ void tile_convolve(const float* x, const float* weights, float* y, int n, int rounds) {
    __shared__ float tile[256 + 16];
    int i = blockIdx.x * 256 + threadIdx.x;
    tile[threadIdx.x] = x[i];
    if (threadIdx.x < 16) tile[256 + threadIdx.x] = i + 256 < n ? x[i + 256] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int r = 0; r < rounds; ++r) {
        for (int k = 0; k < 16; ++k) sum += weights[k] * tile[threadIdx.x + k];
        __syncthreads();
        tile[threadIdx.x] = sum;
        __syncthreads();
    }
    y[i] = sum;
}

__global__ void tile_distances(const float* points, float* nearest, int n) {
    __shared__ float tile[64][4];
    int i = blockIdx.x * 64 + threadIdx.x;
    float mine[4], best = 1e30f;
    for (int k = 0; k < 4; ++k) mine[k] = points[i * 4 + k];
    for (int from = 0; from < n; from += 64) {
        for (int k = 0; k < 4; ++k) tile[threadIdx.x][k] = points[(from + threadIdx.x) * 4 + k];
        __syncthreads();
        for (int j = 0; j < 64; ++j) {
            float sum = 0.0f;
            for (int k = 0; k < 4; ++k) {
                float d = mine[k] - tile[j][k];
                sum += d * d;
            }
            if (from + j != i && sum < best) best = sum;
        }
        __syncthreads();
    }
    nearest[i] = best;
}

// Chains with special functions.
__global__ void chain_sine(float* x, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    for (int s = 0; s < steps; ++s) a = sinf(a) + 0.5f * cosf(a);
    x[i] = a;
}

__global__ void chain_exponential(float* x, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    for (int s = 0; s < steps; ++s) a = logf(1.0f + expf(a)) - sqrtf(a * a + 1.0f);
    x[i] = a;
}

// Loops whose length differs from lane to lane.
__global__ void collatz(const unsigned* starts, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned value = starts[i];
    int count = 0;
    while (value > 1 && count < 400) {
        if (value & 1) value = 3 * value + 1;
        else value >>= 1;
        ++count;
    }
    steps[i] = count;
}

__global__ void newton_root(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float target = x[i], guess = 1.0f;
    for (int s = 0; s < 60; ++s) {
        float next = 0.5f * (guess + target / guess);
        float change = next - guess;
        guess = next;
        if (change < 1e-6f * guess && change > -1e-6f * guess) break;
    }
    y[i] = guess;
}

// Writes that do not coalesce.
__global__ void scatter_columns(const float* x, float* y, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) y[(i % columns) * rows + i / columns] = 2.0f * x[i];
}

__global__ void scatter_records(const float* x, float* records, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < 4; ++k) records[i * 12 + 3 * k] = x[i] + k;
}

// Reads at random places.
__global__ void gather(const float* x, const int* from, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[from[i]];
}

__global__ void chase(const int* next, int* last, int n, int hops) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = i;
    for (int h = 0; h < hops; ++h) at = next[at];
    last[i] = at;
}
