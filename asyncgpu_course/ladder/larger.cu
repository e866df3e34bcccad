// 8 x 16 elements a thread, and tiles of 16 columns of a: 24 reads for 128 products.
constexpr int TILE = 128, DEEP = 16, THREADS = 128, TIMES = TILE * DEEP / 4 / THREADS;
constexpr int HIGH = 8, LONG = 16;  // what a thread owns

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }
__device__ float4 four(const float& first) { return *reinterpret_cast<const float4*>(&first); }

extern "C" __global__ void __launch_bounds__(THREADS, 2)
larger(int n, const float* a, const float* b, float* c)
{
    __shared__ __align__(16) float tile_a[2][DEEP][TILE + 4], tile_b[2][DEEP][TILE];
    int me = threadIdx.x, warp = me / 32, lane = me % 32;
    int row = warp / 2 * 64 + lane / 4 * 4, col = warp % 2 * 64 + lane % 4 * 4;
    int row_a = me / 4, at_a = me % 4 * 4;  // the first of its four times four numbers of a: the
    int at_b = me / 32, col_b = me % 32 * 4;  // others are 32 rows on each; of b, four rows on each
    a += (blockIdx.y * TILE + row_a) * n + at_a;
    b += at_b * n + blockIdx.x * TILE + col_b;
    c += (blockIdx.y * TILE + row) * n + blockIdx.x * TILE + col;
    float sums[HIGH][LONG] = {};
    float4 from_a[TIMES], from_b[TIMES];
#pragma unroll
    for (int i = 0; i < TIMES; i++) from_a[i] = four(a[32 * i * n]), from_b[i] = four(b[4 * i * n]);
    for (int t = 0, now = 0; t < n; t += DEEP, now ^= 1) {
#pragma unroll
        for (int i = 0; i < TIMES; i++) {
            float* turned = &tile_a[now][at_a][row_a + 32 * i];
            turned[0] = from_a[i].x, turned[TILE + 4] = from_a[i].y;
            turned[2 * (TILE + 4)] = from_a[i].z, turned[3 * (TILE + 4)] = from_a[i].w;
            four(tile_b[now][at_b + 4 * i][col_b]) = from_b[i];
        }
        __syncthreads();
        a += DEEP, b += DEEP * n;
#pragma unroll
        for (int i = 0; i < TIMES; i++)
            if (t + DEEP < n) from_a[i] = four(a[32 * i * n]), from_b[i] = four(b[4 * i * n]);
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float of_a[HIGH], of_b[LONG];
            for (int i = 0; i < HIGH; i += 4) four(of_a[i]) = four(tile_a[now][k][row + 8 * i]);
            for (int j = 0; j < LONG; j += 4) four(of_b[j]) = four(tile_b[now][k][col + 4 * j]);
            for (int i = 0; i < HIGH; i++)
                for (int j = 0; j < LONG; j++) sums[i][j] += of_a[i] * of_b[j];
        }
    }
    for (int i = 0; i < HIGH; i++)  // one by one, for four at once would have to be neighbours in registers
        for (int j = 0; j < LONG; j++) c[(i / 4 * 32 + i % 4) * n + j / 4 * 16 + j % 4] = sums[i][j];
}
