// Neighbours: convolutions, diffusion, Life.
#define RADIUS 3
#define BLOCK 128

extern "C" __global__ void stencil_1d(const int* in, int* out, int n) {
    __shared__ int temp[BLOCK + 2 * RADIUS];
    int g = threadIdx.x + blockIdx.x * blockDim.x, l = threadIdx.x + RADIUS;
    temp[l] = g < n ? in[g] : 0;
    if (threadIdx.x < RADIUS) {
        temp[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
        temp[l + BLOCK] = g + BLOCK < n ? in[g + BLOCK] : 0;
    }
    __syncthreads();
    int result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) result += temp[l + offset];
    if (g < n) out[g] = result;
}

__constant__ float mask[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
extern "C" __global__ void blur_3x3(const float* in, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int yy = min(max(y + dy, 0), h - 1), xx = min(max(x + dx, 0), w - 1);
            sum += mask[(dy + 1) * 3 + dx + 1] * in[yy * w + xx];
        }
    out[y * w + x] = sum / 16.0f;
}

extern "C" __global__ void conv2d_tiled(const float* in, const float* k, float* out, int w, int h) {
    __shared__ float tile[18][18];
    int tx = threadIdx.x, ty = threadIdx.y, x0 = blockIdx.x * 16 - 1, y0 = blockIdx.y * 16 - 1;
    for (int e = ty * 16 + tx; e < 18 * 18; e += 256) {
        int x = x0 + e % 18, y = y0 + e / 18;
        tile[e / 18][e % 18] = (x >= 0 && x < w && y >= 0 && y < h) ? in[y * w + x] : 0.0f;
    }
    __syncthreads();
    int x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    if (x < w && y < h) {
        float s = 0.0f;
        for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) s += k[i * 3 + j] * tile[ty + i][tx + j];
        out[y * w + x] = s;
    }
}

extern "C" __global__ void heat(const double* __restrict__ u, double* __restrict__ v, int n, double c) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    int p = i * n + j;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) { v[p] = u[p]; return; }
    v[p] = u[p] + c * (u[p - 1] + u[p + 1] + u[p - n] + u[p + n] - 4.0 * u[p]);
}

extern "C" __global__ void life(const unsigned char* now, unsigned char* next, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) alive += now[((y + dy + h) % h) * w + (x + dx + w) % w];
    next[y * w + x] = alive == 3 || (alive == 2 && now[y * w + x]);
}

extern "C" __global__ void sobel(const unsigned char* in, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    const unsigned char* p = in + y * w + x;
    int gx = p[-w + 1] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    int m = abs(gx) + abs(gy);
    out[y * w + x] = m > 255 ? 255 : m;
}
