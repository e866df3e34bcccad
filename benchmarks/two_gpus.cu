extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }

extern "C" __global__ void add(unsigned int n, float times, const float* x, float* y)
{
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += times * x[i];
}
