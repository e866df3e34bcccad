extern "C" __global__
void matvec_naive(unsigned int m, unsigned int n,
                  const float* mat, const float* vec_in, float* vec_out)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += mat[row * n + j] * vec_in[j];
        }
        vec_out[row] = sum;
    }
}
