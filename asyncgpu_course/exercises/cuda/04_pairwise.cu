extern "C" __global__ void NAME(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = EXPRESSION;
}
