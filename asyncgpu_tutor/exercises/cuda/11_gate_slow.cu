// Somebody is held up behind each count of block 0, and before each exchange.
__device__ unsigned int slow_add(unsigned int* at, unsigned int more)
{
    unsigned int before = atomicAdd(at, more);
    if (more && blockIdx.x == 0) for (long long end = clock64() + 400000; clock64() < end;) __nanosleep(1000);
    return before;
}
__device__ unsigned int slow_exchange(unsigned int* at, unsigned int next)
{
    for (long long end = clock64() + 40000; clock64() < end;) __nanosleep(500);
    return atomicExch(at, next);
}
#define atomicAdd slow_add
#define atomicExch slow_exchange
