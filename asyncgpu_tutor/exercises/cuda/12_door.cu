extern "C" __global__ void trial(unsigned int* door, int* pair)
{
    if (threadIdx.x % 32) return;
    for (int k = 0; k < 2; k++) {
        Poll state = PENDING;
        while (state == PENDING) {
            state = enter(door);
            if (state == PENDING) __nanosleep(100);
        }
        int before = pair[0];
        pair[0] = -1;
        __nanosleep(2000 + 700 * (blockIdx.x % 3));
        pair[1] += before + 1;
        pair[0] = before + 1;
        leave(door);
        for (unsigned int i = 0; i < blockIdx.x; i++) __nanosleep(900);
    }
}
