// Kernels of real size, which `simulator.py` has interpreted whole.

extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

extern "C" __global__ void pull(const float4* bodies, float4* out, int n) {
    __shared__ float4 tile[256];
    float4 me = bodies[blockIdx.x * 256 + threadIdx.x];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < n; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 256; ++k) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f;
            float force = tile[k].w * rsqrtf(d * d * d);
            x += dx * force;
            y += dy * force;
            z += dz * force;
        }
        __syncthreads();
    }
    out[blockIdx.x * 256 + threadIdx.x] = make_float4(x, y, z, 0);
}

// Attention of one head by each block, without ever holding all scores: a thread has a row of 64 numbers of the query,
// and the rows of keys and values come by in tiles of 32.
extern "C" __global__ void attend(const float* q, const float* k, const float* v, float* out, int rows) {
    __shared__ float mine[32][64], keys[32][64], values[32][64], scores[32][32];
    int t = threadIdx.x, head = blockIdx.x * rows * 64;
    for (int first = 0; first < rows; first += 32) {
        float sums[64], most = -INFINITY, total = 0;
        for (int c = 0; c < 64; ++c) {
            mine[t][c] = q[head + (first + t) * 64 + c];
            sums[c] = 0;
        }
        for (int other = 0; other < rows; other += 32) {
            for (int c = 0; c < 64; ++c) {
                keys[t][c] = k[head + (other + t) * 64 + c];
                values[t][c] = v[head + (other + t) * 64 + c];
            }
            __syncthreads();
            float top = most;
            for (int j = 0; j < 32; ++j) {
                float score = 0;
                for (int c = 0; c < 64; ++c) score += mine[t][c] * keys[j][c];
                scores[t][j] = score / 8;
                top = fmaxf(top, score / 8);
            }
            float scale = __expf(most - top), added = 0;
            for (int j = 0; j < 32; ++j) {
                scores[t][j] = __expf(scores[t][j] - top);
                added += scores[t][j];
            }
            for (int c = 0; c < 64; ++c) {
                float part = 0;
                for (int j = 0; j < 32; ++j) part += scores[t][j] * values[j][c];
                sums[c] = sums[c] * scale + part;
            }
            total = total * scale + added;
            most = top;
            __syncthreads();
        }
        for (int c = 0; c < 64; ++c) out[head + (first + t) * 64 + c] = sums[c] / total;
    }
}
