// A new array with every element set to one number.
extern "C" __global__
void fill(unsigned long long n, T value, T* out)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
