// A thread computes one element of c. Threads that are neighbours take rows that are neighbours.
extern "C" __global__ void naive(unsigned int n, const float* a, const float* b, float* c)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int col = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (unsigned int k = 0; k < n; k++) {
        sum += a[row * n + k] * b[k * n + col];
    }
    c[row * n + col] = sum;
}
