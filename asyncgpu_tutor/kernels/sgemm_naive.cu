extern "C" __global__
void sgemm_naive(unsigned int m, unsigned int n, unsigned int k,
                 float alpha, const float* a, const float* b,
                 float beta, float* c)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (unsigned int i = 0; i < k; i++) {
            sum += a[row * k + i] * b[i * n + col];
        }
        c[row * n + col] = alpha * sum + beta * c[row * n + col];
    }
}
