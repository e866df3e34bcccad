extern "C" __global__ void NAME(unsigned int n, float a, float b, const float* x, float* y)
{
    unsigned int part = n / blockDim.x;
    for (unsigned int i = threadIdx.x * part; i < (threadIdx.x + 1) * part; i++) y[i] = a * x[i] + b;
}
