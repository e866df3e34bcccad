extern "C" __global__ void trial(int n, int* parts, unsigned int* arrived, int* told)
{
    // Blocks come in another order than their numbers, and within each the last thread is late.
    if (threadIdx.x == blockDim.x - 1) {
        long long end = clock64() + (1 + 5 * blockIdx.x % gridDim.x % 16) * 4000;
        while (clock64() < end) __nanosleep(1000);
    }
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    parts[i] = i + 1;
    if (!last(arrived)) return;
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        if (parts[j] != j + 1) sum++;
    }
    atomicAdd(told, sum == 0);
}
