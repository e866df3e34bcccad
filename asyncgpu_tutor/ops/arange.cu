// A new array that counts.
extern "C" __global__
void arange(unsigned long long n, T start, T step, T* out)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = start + (T)i * step;
}
