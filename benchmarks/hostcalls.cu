#include "hostcall.cuh"
__global__ void calls(unsigned long long* mail, unsigned long long* stack, int number,
                      unsigned long long* sums)
{
    Hostcalls host = hostcalls(mail, stack);
    unsigned long long sum = 0;
    for (int i = 0; i < number; ++i) {
        unsigned long long answer = 0;
        bool ok = hostcall(host, 16, blockIdx.x, i, 0, answer);
        if (!ok) return;
        sum += answer;
    }
    sums[blockIdx.x] = sum;
}

__global__ void again(unsigned long long* x) { x[threadIdx.x] += 1; }

__global__ void says(int number)
{
    for (int i = 0; i < number; ++i) printf("%d %d\n", blockIdx.x, i);
}
