// Block 0 is held up behind each count, and everybody before each exchange or store.
__device__ unsigned int _held_up(bool who, int clocks)
{
    if (who) for (long long end = clock64() + clocks; clock64() < end;) __nanosleep(1000);
    return 0;
}
#define atomicAdd(at, more) (atomicAdd(at, more) + _held_up((more) && blockIdx.x == 0, 20000))
#define atomicInc(at, top) (atomicInc(at, top) + _held_up(blockIdx.x == 0, 20000))
#define fetch_add(...) fetch_add(__VA_ARGS__) + _held_up(blockIdx.x == 0, 20000)
#define atomicExch(at, next) atomicExch(at, (next) + _held_up(true, 4000))
#define store(next, ...) store((next) + _held_up(true, 4000), ##__VA_ARGS__)
