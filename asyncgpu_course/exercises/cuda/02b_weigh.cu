// One thread goes along a whole row, so a narrow matrix keeps the device busy for long.
extern "C" __global__ void weigh(unsigned int rows, unsigned int n, const float* table,
                                 const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        for (unsigned int t = 0; t < n; t++) {
            y[row * n + t] = table[t] * x[row * n + t];
        }
    }
}
