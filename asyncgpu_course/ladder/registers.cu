// A thread computes 8 x 8 elements, which it keeps in registers: 16 reads for 64 products.
constexpr int TILE = 128, DEEP = 8, THREADS = 256;  // a block: 16 x 16 threads
constexpr int OWN = 8;                              // a thread: 8 x 8 elements

extern "C" __global__ void __launch_bounds__(THREADS, 2)
registers(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[TILE][DEEP], tile_b[DEEP][TILE];
    int me = threadIdx.x;
    int row = me / 16 * OWN, col = me % 16 * OWN;
    a += blockIdx.y * TILE * n;
    b += blockIdx.x * TILE;
    c += blockIdx.y * TILE * n + blockIdx.x * TILE;
    float sums[OWN][OWN] = {};
    for (int t = 0; t < n; t += DEEP) {
        for (int i = me; i < TILE * DEEP; i += THREADS) {
            tile_a[i / DEEP][i % DEEP] = a[i / DEEP * n + t + i % DEEP];
            tile_b[i / TILE][i % TILE] = b[(t + i / TILE) * n + i % TILE];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            float of_a[OWN], of_b[OWN];
            for (int i = 0; i < OWN; i++) {
                of_a[i] = tile_a[row + i][k];
                of_b[i] = tile_b[k][col + i];
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
        for (int j = 0; j < OWN; j++) {
            c[(row + i) * n + col + j] = sums[i][j];
        }
    }
}
