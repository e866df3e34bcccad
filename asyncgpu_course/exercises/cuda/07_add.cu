extern "C" __global__ void add(unsigned int n, const float* w, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += w[i];
}
