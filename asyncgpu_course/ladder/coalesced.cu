// Neighbours take columns that are neighbours: what a warp wants of b lies in a row, and of a it wants one number.
extern "C" __global__ void coalesced(int n, const float* a, const float* b, float* c)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        sum += a[row * n + k] * b[k * n + col];
    }
    c[row * n + col] = sum;
}
