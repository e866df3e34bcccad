// Four numbers at a time. The tile of a is turned on its way in, so that a column of it lies in a row.
constexpr int TILE = 128, DEEP = 8, THREADS = 256;
constexpr int OWN = 8;

__device__ float4& four(float& first) { return *reinterpret_cast<float4*>(&first); }
__device__ float4 four(const float& first) { return *reinterpret_cast<const float4*>(&first); }

extern "C" __global__ void __launch_bounds__(THREADS, 2)
wide(int n, const float* a, const float* b, float* c)
{
    __shared__ __align__(16) float tile_a[DEEP][TILE], tile_b[DEEP][TILE];
    int me = threadIdx.x;
    int row = me / 16 * OWN, col = me % 16 * OWN;
    int row_a = me / 2, at_a = me % 2 * 4;    // the four numbers of a that it fetches,
    int at_b = me / 32, col_b = me % 32 * 4;  // and those of b
    a += (blockIdx.y * TILE + row_a) * n + at_a;
    b += at_b * n + blockIdx.x * TILE + col_b;
    c += blockIdx.y * TILE * n + blockIdx.x * TILE;
    float sums[OWN][OWN] = {};
    for (int t = 0; t < n; t += DEEP) {
        float4 from_a = four(a[t]);
        tile_a[at_a][row_a] = from_a.x;
        tile_a[at_a + 1][row_a] = from_a.y;
        tile_a[at_a + 2][row_a] = from_a.z;
        tile_a[at_a + 3][row_a] = from_a.w;
        four(tile_b[at_b][col_b]) = four(b[t * n]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            __align__(16) float of_a[OWN], of_b[OWN];
            for (int i = 0; i < OWN; i += 4) {
                four(of_a[i]) = four(tile_a[k][row + i]);
                four(of_b[i]) = four(tile_b[k][col + i]);
            }
            for (int i = 0; i < OWN; i++) {
                for (int j = 0; j < OWN; j++) {
                    sums[i][j] += of_a[i] * of_b[j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < OWN; i++) {
        for (int j = 0; j < OWN; j += 4) {
            four(c[(row + i) * n + col + j]) = four(sums[i][j]);
        }
    }
}
