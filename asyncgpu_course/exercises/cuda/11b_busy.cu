// Before each count, block 0 is held up, for longer than the others need for all 200 jobs. If they have left
// some, it finds none of those.
__device__ unsigned int _held_up(unsigned int* at, unsigned int more)
{
    if (blockIdx.x > 0) return more;
    for (long long end = clock64() + 2000000; clock64() < end;) __nanosleep(100000);
    return atomicAdd(at, 0) < 200 ? 1000 : more;
}
#define atomicAdd(at, more) atomicAdd(at, _held_up(at, more))
