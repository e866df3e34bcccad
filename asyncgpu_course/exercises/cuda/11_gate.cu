#undef atomicAdd
#undef atomicInc
#undef fetch_add
#undef atomicExch
#undef store
extern "C" __global__ void trial(int n, bool relies, int* x, unsigned int* gate, int* early)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, seen = 0;
    for (int step = 1; step <= (gridDim.x > 99 ? 1 : 3); step++) {
        if (threadIdx.x == blockDim.x - 1) {  // late, some blocks more than others
            long long end = clock64() + (3 * blockIdx.x + step) % 5 * 2000;
            while (clock64() < end) __nanosleep(1000);
        }
        x[i] = step;
        meet(gate);
        for (int j = threadIdx.x; j < n; j += blockDim.x) {
            if (((volatile int*)x)[j] != step) atomicMax(early, i + 1);
            else if (relies) seen += x[j];
        }
        meet(gate);
    }
    if (seen < 0) *early = -1;
}
