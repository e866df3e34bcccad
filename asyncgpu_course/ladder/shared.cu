// A block fetches tiles of 32 x 32, and every number that's fetched is used 32 times.
constexpr int TILE = 32;

extern "C" __global__ void shared(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += TILE) {
        tile_a[y][x] = a[row * n + t + x];
        tile_b[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        __syncthreads();
    }
    c[row * n + col] = sum;
}
