template <typename Numbers>
__device__ void visit(Numbers pair)
{
    int before = pair[0];
    pair[0] = -1;
    for (long long end = clock64() + 9000 + 3000 * (blockIdx.x % 3); clock64() < end;) __nanosleep(500);
    pair[1] = pair[1] + before + 1;
    pair[0] = before + 1;
}
extern "C" __global__ void trial(unsigned int* door, bool relies, int* pair)
{
    if (threadIdx.x % 32) return;
    for (int k = 0; k < 2; k++) {
        Poll state = PENDING;
        while (state == PENDING) {
            state = enter(door);
            if (state == PENDING) __nanosleep(100);
        }
        if (relies) visit(pair);
        else visit((volatile int*)pair);
        leave(door);
        for (unsigned int i = 0; i < blockIdx.x; i++) __nanosleep(900);
    }
}
