extern "C" __global__ void newton_step(unsigned int n, const float* a, float* x, int* moved)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float before = x[i];
        x[i] = 0.5f * (before + a[i] / before);
        if (fabsf(x[i] - before) > 1e-6f * x[i]) *moved = 1;
    }
}
extern "C" __global__ void newton(unsigned int n, const float* a, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float now = 1.0f, before;
        do {
            before = now;
            now = 0.5f * (before + a[i] / before);
        } while (fabsf(now - before) > 1e-6f * now);
        x[i] = now;
    }
}

__device__ void work(unsigned int job, const unsigned int* lengths, float* results)
{
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned int k = threadIdx.x + 1; k <= lengths[job]; k += blockDim.x) {
        sum += 1.0f / ((float)k * (float)k);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) results[job] = part[0];
}
extern "C" __global__ void one_job(unsigned int job, const unsigned int* lengths, float* results)
{
    work(job, lengths, results);
}
extern "C" __global__ void worker(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
{
    __shared__ unsigned int job;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(next, 1);
        __syncthreads();
        unsigned int mine = job;
        if (mine >= jobs) return;
        work(mine, lengths, results);
        __syncthreads();
    }
}
