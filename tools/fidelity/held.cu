// Kernels of few warps, written when those of `last.cu` had been looked at, and recorded when the model was done.

// Square roots of integers, bit by bit.
__global__ void integer_roots(const unsigned* x, unsigned* sums, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = x[i], sum = 0;
    for (int t = 0; t < turns; ++t) {
        unsigned rest = value, root = 0;
        for (unsigned bit = 1u << 30; bit != 0; bit >>= 2) {
            if (rest >= root + bit) {
                rest -= root + bit;
                root = (root >> 1) + bit;
            } else {
                root >>= 1;
            }
        }
        sum += root;
        value += 7919u * root;
    }
    sums[i] = sum;
}

// An area by small steps.
__global__ void wave_area(const float* from, float* areas, float h, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = from[i], sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        sum += tanhf(x * x) * atanf(x);
        x += h;
    }
    areas[i] = sum * h;
}

// A polynomial in double precision, whose coefficients are loaded.
__global__ void double_horner(const double* x, const double* coefficients, double* y, int degree) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double at = x[i], value = 0.0;
    for (int k = 0; k < degree; ++k) value = value * at + coefficients[k];
    y[i] = value;
}

// Lists in shared memory, of different lengths.
__global__ void short_lists(const int* links, const float* weights, float* sums, int rounds) {
    __shared__ int next[512];
    __shared__ float weight[512];
    for (int k = threadIdx.x; k < 512; k += blockDim.x) {
        next[k] = links[k];
        weight[k] = weights[k];
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int r = 0; r < rounds; ++r) {
        int at = (i * 5 + r * 3) & 511;
        while (at >= 0) {
            sum += weight[at];
            at = next[at];
        }
    }
    sums[i] = sum;
}

// The spread of each row of a matrix, by warps and then by the first of them.
__global__ void row_spreads(const float* x, float* spreads, int rows) {
    __shared__ float lows[8], highs[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int r = 0; r < rows; ++r) {
        float low = x[(blockIdx.x * rows + r) * 256 + threadIdx.x], high = low;
        for (int step = 16; step > 0; step /= 2) {
            low = fminf(low, __shfl_xor_sync(0xffffffff, low, step));
            high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, step));
        }
        if (lane == 0) {
            lows[warp] = low;
            highs[warp] = high;
        }
        __syncthreads();
        if (warp == 0) {
            low = lows[lane % 8];
            high = highs[lane % 8];
            for (int step = 4; step > 0; step /= 2) {
                low = fminf(low, __shfl_xor_sync(0xffffffff, low, step));
                high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, step));
            }
            if (lane == 0) spreads[blockIdx.x * rows + r] = high - low;
        }
        __syncthreads();
    }
}

// The secant method.
__global__ void secants(const float* goals, float* roots, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float goal = goals[i], a = 0.0f, b = 1.0f, fa = 1.0f - goal;
    for (int t = 0; t < turns; ++t) {
        float fb = expf(b) + b - goal;
        float next = b - fb * (b - a) / (fb - fa + 1e-3f);
        a = b;
        fa = fb;
        b = next + 0.05f;
        goal += 0.01f;
    }
    roots[i] = b;
}

// A hash of each column of bytes.
__global__ void byte_hashes(const unsigned char* bytes, unsigned* hashes, int columns, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = 2166136261u;
    for (int k = 0; k < length; ++k) h = (h ^ bytes[k * columns + i]) * 16777619u;
    hashes[i] = h;
}

// Points that turn by shifts and sums.
__global__ void shift_rotations(const int* angles, int* xs, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, angle = angles[i], sum = 0;
    for (int t = 0; t < turns; ++t) {
        int x = 39797, y = 0, left = angle;
        for (int k = 0; k < 16; ++k) {
            int dx = x >> k, dy = y >> k, turn = 51471 >> k;
            if (left >= 0) {
                x -= dy;
                y += dx;
                left -= turn;
            } else {
                x += dy;
                y -= dx;
                left += turn;
            }
        }
        sum += x;
        angle = (angle + y) % 102943;
    }
    xs[i] = sum;
}

// The logarithm of a sum of exponentials, number after number.
__global__ void running_softmax(const float* x, float* y, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float most = -1e30f, sum = 0.0f;
    for (int k = 0; k < length; ++k) {
        float value = x[k * rows + row];
        if (value > most) {
            sum = sum * expf(most - value) + 1.0f;
            most = value;
        } else {
            sum += expf(value - most);
        }
    }
    y[row] = most + logf(sum);
}

// A triangle of equations, row after row, by a warp for each system.
__global__ void substitutions(const float* matrix, const float* right, float* x, int n) {
    __shared__ float known[4][64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, system = blockIdx.x * 4 + warp;
    for (int row = 0; row < n; ++row) {
        float sum = 0.0f;
        for (int k = lane; k < row; k += 32) sum += matrix[row * n + k] * known[warp][k];
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        if (lane == 0) known[warp][row] = (right[system * n + row] - sum) / matrix[row * n + row];
        __syncwarp();
    }
    for (int k = lane; k < n; k += 32) x[system * n + k] = known[warp][k];
}
