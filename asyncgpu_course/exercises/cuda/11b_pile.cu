// A grain that falls on a pile of sand, and a wave of toppling; both raise a flag if some cell has to topple.
extern "C" __global__ void drop(int* sand, const int* where, int* unstable, int* waves)
{
    int now = sand[*where] + 1;
    sand[*where] = now;
    if (now >= 4) *unstable = 1;
    *waves = 0;
}

extern "C" __global__ void topple(int* sand, int* unstable, int* waves)
{
    int x = threadIdx.x, y = threadIdx.y, width = blockDim.x, i = y * width + x;
    int now = sand[i] < 4 ? sand[i] : sand[i] - 4;
    if (x > 0 && sand[i - 1] >= 4) now++;
    if (x < width - 1 && sand[i + 1] >= 4) now++;
    if (y > 0 && sand[i - width] >= 4) now++;
    if (y < width - 1 && sand[i + width] >= 4) now++;
    __syncthreads();
    sand[i] = now;
    if (now >= 4) *unstable = 1;
    if (i == 0) *waves += 1;
}
