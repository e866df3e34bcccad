// Somebody is held up before each step forward.
__device__ unsigned int slowly(unsigned int* at, unsigned int more)
{
    if (more == 1) for (long long end = clock64() + 40000; clock64() < end;) __nanosleep(500);
    return atomicAdd(at, more);
}
#define atomicAdd slowly
