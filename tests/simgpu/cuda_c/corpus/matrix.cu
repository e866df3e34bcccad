// Products and transposes of matrices.
#define TILE 16

extern "C" __global__ void matmul_naive(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}

extern "C" __global__ void matmul_tiled(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[TILE][TILE];
    __shared__ float Bs[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = 0.0f;
    for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
        As[ty][tx] = row < M && t * TILE + tx < K ? A[row * K + t * TILE + tx] : 0.0f;
        Bs[ty][tx] = t * TILE + ty < K && col < N ? B[(t * TILE + ty) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) acc += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}

// 64 x 64 of C by 256 threads, 4 x 4 in the registers of each.
template <int BM, int BN, int BK, int TM, int TN>
__global__ void matmul_registers(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[BK][BM];
    __shared__ float Bs[BK][BN];
    const int threads = (BM / TM) * (BN / TN);
    int tid = threadIdx.x, tr = tid / (BN / TN), tc = tid % (BN / TN);
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += blockIdx.y * BM * N + blockIdx.x * BN;
    float acc[TM][TN] = {{0.0f}}, ra[TM], rb[TN];
    for (int bk = 0; bk < K; bk += BK) {
        for (int e = tid; e < BM * BK; e += threads) As[e % BK][e / BK] = A[(e / BK) * K + bk + e % BK];
        for (int e = tid; e < BK * BN; e += threads) Bs[e / BN][e % BN] = B[(bk + e / BN) * N + e % BN];
        __syncthreads();
        for (int k = 0; k < BK; ++k) {
            for (int i = 0; i < TM; ++i) ra[i] = As[k][tr * TM + i];
            for (int j = 0; j < TN; ++j) rb[j] = Bs[k][tc * TN + j];
            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) acc[i][j] += ra[i] * rb[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        for (int j = 0; j < TN; ++j) C[(tr * TM + i) * N + tc * TN + j] = acc[i][j];
}

extern "C" __global__ void matvec_warp(const float* A, const float* x, float* y, int rows, int cols) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize, lane = threadIdx.x % warpSize;
    if (warp >= rows) return;
    float sum = 0.0f;
    for (int c = lane; c < cols; c += warpSize) sum += A[(long long)warp * cols + c] * x[c];
    for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[warp] = sum;
}

extern "C" __global__ void transpose_naive(const float* in, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[x * h + y] = in[y * w + x];
}

extern "C" __global__ void transpose_tiled(const float* in, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += blockDim.y)
        if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += blockDim.y)
        if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void spmv_csr(int rows, const int* ptr, const int* col, const float* val, const float* x, float* y) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) {
        float dot = 0;
        for (int j = ptr[r]; j < ptr[r + 1]; j++) dot += val[j] * x[col[j]];
        y[r] = dot;
    }
}

extern "C" __global__ void batched_trace(const double* m, double* out, int n) {
    const double* mine = m + (size_t)blockIdx.x * n * n;
    double t = 0.0;
    for (int i = threadIdx.x; i < n; i += 32) t += mine[i * n + i];
    for (int o = 16; o; o >>= 1) t += __shfl_xor_sync(~0u, t, o);
    if (!threadIdx.x) out[blockIdx.x] = t;
}
