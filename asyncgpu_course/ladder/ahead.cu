// Two tiles of each: the next one is on its way in registers while this one is multiplied. One barrier a step.
constexpr int TILE = 128, DEEP = 8, THREADS = 256;
constexpr int OWN = 8;

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }
__device__ float4 four(const float& first) { return *reinterpret_cast<const float4*>(&first); }

extern "C" __global__ void __launch_bounds__(THREADS, 2)
ahead(int n, const float* a, const float* b, float* c)
{
    __shared__ __align__(16) float tile_a[2][DEEP][TILE + 4], tile_b[2][DEEP][TILE];
    int me = threadIdx.x, warp = me / 32, lane = me % 32;
    int row = warp / 4 * 64 + lane / 4 * 4, col = warp % 4 * 32 + lane % 4 * 4;
    int row_a = me / 2, at_a = me % 2 * 4;
    int at_b = me / 32, col_b = me % 32 * 4;
    a += (blockIdx.y * TILE + row_a) * n + at_a;
    b += at_b * n + blockIdx.x * TILE + col_b;
    c += blockIdx.y * TILE * n + blockIdx.x * TILE;
    float sums[OWN][OWN] = {};
    float4 from_a = four(a[0]), from_b = four(b[0]);
    for (int t = 0, now = 0; t < n; t += DEEP, now ^= 1) {
        tile_a[now][at_a][row_a] = from_a.x;
        tile_a[now][at_a + 1][row_a] = from_a.y;
        tile_a[now][at_a + 2][row_a] = from_a.z;
        tile_a[now][at_a + 3][row_a] = from_a.w;
        four(tile_b[now][at_b][col_b]) = from_b;
        __syncthreads();
        if (t + DEEP < n) {
            from_a = four(a[t + DEEP]);
            from_b = four(b[(t + DEEP) * n]);
        }
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float of_a[OWN], of_b[OWN];
            for (int half = 0; half < 2; half++) {
                four(of_a[4 * half]) = four(tile_a[now][k][row + 32 * half]);
                four(of_b[4 * half]) = four(tile_b[now][k][col + 16 * half]);
            }
            for (int i = 0; i < OWN; i++) {
                for (int j = 0; j < OWN; j++) {
                    sums[i][j] += of_a[i] * of_b[j];
                }
            }
        }
    }
    for (int i = 0; i < OWN; i++) {
        for (int j = 0; j < OWN; j++) {
            c[(row + i / 4 * 32 + i % 4) * n + col + j / 4 * 16 + j % 4] = sums[i][j];
        }
    }
}
