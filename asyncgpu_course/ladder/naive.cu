// A thread computes one element of c. Threads that are neighbours take rows that are neighbours.
extern "C" __global__ void naive(int n, const float* a, const float* b, float* c)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) {
        sum += a[row * n + k] * b[k * n + col];
    }
    c[row * n + col] = sum;
}
