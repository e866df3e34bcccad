extern "C" __global__ void NAME(unsigned int n, const float* x, float* sums)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0.0f;
        for (unsigned int i = 0; i < n; i++) sum += x[row * n + i];
        sums[row] = FACTOR * sum;
    }
}
