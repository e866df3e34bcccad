extern "C" __global__ void trial(const int* left, int* rounds, int* late, int* met)
{
    unsigned int lane = threadIdx.x % 32;
    Probe mine = {left[threadIdx.x], 0, 0};
    int took = together(mine);
    met[threadIdx.x] = __shfl_sync(0xffffffff, mine.left < 0, (lane + 1) % 32);
    rounds[threadIdx.x] = took;
    late[threadIdx.x] = mine.late;
}
