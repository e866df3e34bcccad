// Before each count, block 0 is held up, for longer than the others need for all jobs.
__device__ unsigned int _held_up(unsigned int more)
{
    if (blockIdx.x == 0) for (long long end = clock64() + 2000000; clock64() < end;) __nanosleep(100000);
    return more;
}
#define atomicAdd(at, more) atomicAdd(at, _held_up(more))
