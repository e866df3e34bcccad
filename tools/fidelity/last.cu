// Kernels of few warps, written when those of `newer.cu` had been looked at. Nothing in the model was chosen with their times
// in view.

// A checksum of two sums.
__global__ void adler_rows(const unsigned char* bytes, unsigned* sums, int threads, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a = 1, b = 0;
    for (int k = 0; k < length; ++k) {
        a = (a + bytes[k * threads + i]) % 65521u;
        b = (b + a) % 65521u;
    }
    sums[i] = b << 16 | a;
}

// A generator of 64 bits, whose numbers are permuted.
__global__ void permuted_walk(const unsigned long long* seeds, float* means, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long state = seeds[i];
    float sum = 0.0f;
    for (int t = 0; t < turns; ++t) {
        unsigned mixed = (unsigned)((state >> 18 ^ state) >> 27);
        unsigned by = (unsigned)(state >> 59);
        sum += (mixed >> by | mixed << (-by & 31u)) * 2.3283064e-10f;
        state = state * 6364136223846793005ull + 1442695040888963407ull;
    }
    means[i] = sum / turns;
}

// One cell of a network that looks at a row of numbers, one after the other.
__global__ void recurrent_cell(const float* x, float* y, float keep, float take, int rows, int length) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float state = 0.0f;
    for (int k = 0; k < length; ++k) {
        float gate = 1.0f / (1.0f + __expf(-x[k * rows + row]));
        state = gate * tanhf(keep * state + take * x[k * rows + row]) + (1.0f - gate) * state;
    }
    y[row] = state;
}

// Quaternions that turn, and stay of length 1.
__global__ void attitudes(const float4* start, const float4* spin, float4* end, float h, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 q = start[i], w = spin[i];
    for (int s = 0; s < steps; ++s) {
        float a = q.w - h * (w.x * q.x + w.y * q.y + w.z * q.z);
        float b = q.x + h * (w.x * q.w + w.z * q.y - w.y * q.z);
        float c = q.y + h * (w.y * q.w - w.z * q.x + w.x * q.z);
        float d = q.z + h * (w.z * q.w + w.y * q.x - w.x * q.y);
        float scale = rsqrtf(a * a + b * b + c * c + d * d);
        q = make_float4(b * scale, c * scale, d * scale, a * scale);
    }
    end[i] = q;
}

// The sums of a warp, row after row, each row from where the last one ended.
__global__ void warp_scans(const float* x, float* y, int rows) {
    int lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    float before = 0.0f;
    for (int r = 0; r < rows; ++r) {
        int at = (warp * rows + r) * 32 + lane;
        float sum = x[at];
        for (int step = 1; step < 32; step *= 2) {
            float other = __shfl_up_sync(0xffffffff, sum, step);
            sum += lane >= step ? other : 0.0f;
        }
        y[at] = sum + before;
        before += __shfl_sync(0xffffffff, sum, 31);
    }
}

// The least of a block and where it is, again and again.
__global__ void block_argmin(const float* x, int* places, int rounds) {
    __shared__ float values[128];
    __shared__ int where[128];
    int i = threadIdx.x;
    float mine = x[blockIdx.x * 128 + i];
    for (int r = 0; r < rounds; ++r) {
        values[i] = mine;
        where[i] = i;
        __syncthreads();
        for (int half = 64; half > 0; half /= 2) {
            if (i < half && values[i + half] < values[i]) {
                values[i] = values[i + half];
                where[i] = where[i + half];
            }
            __syncthreads();
        }
        if (i == where[0]) mine += 2.0f;
        if (i == 0) places[blockIdx.x * rounds + r] = where[0];
        __syncthreads();
    }
}

// Newton's method in double precision, for a logarithm.
__global__ void double_logs(const double* x, double* y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double goal = x[i], a = 0.0;
    for (int t = 0; t < turns; ++t) {
        double e = exp(a);
        a -= 2.0 * (e - goal) / (e + goal);
        goal += 0.01;
    }
    y[i] = a;
}

// Hares and foxes, of whom each eats only so much.
__global__ void hares_and_foxes(float* hares, float* foxes, float h, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = hares[i], y = foxes[i];
    for (int s = 0; s < steps; ++s) {
        float eaten = 0.9f * x * y / (1.0f + 0.4f * x);
        float dx = x * (1.0f - 0.2f * x) - eaten, dy = 0.6f * eaten - 0.3f * y;
        x += h * dx;
        y += h * dy;
    }
    hares[i] = x;
    foxes[i] = y;
}

// Neighbours change places until a block is sorted.
__global__ void odd_even_sort(const int* x, int* y) {
    __shared__ int row[256];
    int i = threadIdx.x;
    row[i] = x[blockIdx.x * 256 + i];
    row[i + 128] = x[blockIdx.x * 256 + i + 128];
    __syncthreads();
    for (int round = 0; round < 256; ++round) {
        int k = 2 * i + (round & 1);
        if (k + 1 < 256 && row[k] > row[k + 1]) {
            int swapped = row[k];
            row[k] = row[k + 1];
            row[k + 1] = swapped;
        }
        __syncthreads();
    }
    y[blockIdx.x * 256 + i] = row[i];
    y[blockIdx.x * 256 + i + 128] = row[i + 128];
}

// Where points are on Hilbert's curve.
__global__ void hilbert_places(const unsigned* points, unsigned* places, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned point = points[i], sum = 0;
    for (int t = 0; t < turns; ++t) {
        unsigned x = point & 0xffffu, y = point >> 16, place = 0;
        for (unsigned s = 1u << 15; s > 0; s >>= 1) {
            unsigned right = (x & s) != 0, up = (y & s) != 0;
            place += s * s * ((3 * right) ^ up);
            if (!up) {
                if (right) {
                    x = 65535u - x;
                    y = 65535u - y;
                }
                unsigned other = x;
                x = y;
                y = other;
            }
        }
        sum += place;
        point += place | 1u;
    }
    places[i] = sum;
}

// Points that turn, and are pulled to a circle.
__global__ void polar_steps(float* x, float* y, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = x[i], b = y[i];
    for (int s = 0; s < steps; ++s) {
        float angle = atan2f(b, a) + 0.1f, length = sqrtf(a * a + b * b);
        length += 0.1f * (1.0f - length);
        a = length * cosf(angle);
        b = length * sinf(angle);
    }
    x[i] = a;
    y[i] = b;
}
