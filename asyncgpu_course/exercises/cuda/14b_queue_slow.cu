// Somebody is held up before each step forward. And of `open`, the last word of three, others see as late as a fence
// allows that it was raised: behind an item that was put without one in between.
__device__ unsigned int* owed[4 * 32];

__device__ void pay()
{
    unsigned int* at = owed[32 * blockIdx.x + threadIdx.x];
    owed[32 * blockIdx.x + threadIdx.x] = 0;
    if (at != 0) atomicAdd(at, 1);
}
__device__ void nap() { for (long long end = clock64() + 40000; clock64() < end;) __nanosleep(500); }
__device__ unsigned int slowly(unsigned int* at, unsigned int more)
{
    if (more == 1) nap();
    if (more != 1 || (unsigned long long)at % 16 != 8 || !HELD) return atomicAdd(at, more);
    pay();
    owed[32 * blockIdx.x + threadIdx.x] = at;
    return atomicAdd(at, 0);
}
__device__ void paid() { pay(); __threadfence(); }
#define LATER if (owed[32 * blockIdx.x + threadIdx.x] != 0) { nap(); pay(); }
#define FIRST 0  // one thread puts after the other
#define STEP 1
#define TURN __syncthreads();
#define atomicAdd slowly
#define __threadfence paid
#define __threadfence_system paid
