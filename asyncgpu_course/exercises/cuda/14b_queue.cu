#undef atomicAdd
#ifndef LATER
#define LATER
#define FIRST threadIdx.x
#define STEP blockDim.x
#define TURN
#endif
extern "C" __global__ void trial(
    int n, const int* begin, const int* children, const int* naps, int* gift, int* found, int* times,
    int* items, unsigned int* counts)
{
    Queue queue = {items, counts, counts + 1, counts + 2, 0xffffffff};
    __shared__ int taken;
    while (true) {
        if (threadIdx.x == 0) taken = take(queue);
        __syncthreads();
        int item = taken;
        if (item < 0) break;
        if (item >= n) __trap();
        if (threadIdx.x == 0) {
            found[item] = ((volatile int*)gift)[item];
            atomicAdd(&times[item], 1);
        }
        for (long long end = clock64() + 400 * naps[item]; clock64() < end;) __nanosleep(200);
        for (int k = begin[item] + FIRST; k < begin[item + 1]; k += STEP) {
            if ((k - begin[item]) % blockDim.x == threadIdx.x) {
                ((volatile int*)gift)[children[k]] = 7 * children[k];
                put(queue, children[k]);
            }
            TURN
        }
        LATER
        __syncthreads();
        if (threadIdx.x == 0) done(queue);
    }
}
