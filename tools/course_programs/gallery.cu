__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}

extern "C" __global__ void darts(unsigned int first, unsigned int each, unsigned int* hits)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, begin = first + i * each, mine = 0;
    for (unsigned int k = 0; k < each; k++) {
        unsigned int dart = scrambled(begin + k);
        unsigned long long x = dart & 0xffff, y = dart >> 16;
        if (x * x + y * y < 1ull << 32) mine++;
    }
    for (int step = 16; step > 0; step /= 2) {          // add what the lane `step` above has ...
        mine += __shfl_down_sync(0xffffffffu, mine, step);
    }
    if (i % 32 == 0) hits[i / 32] = mine;               // ... and write once for each warp
}

extern "C" __global__ void find_word(
    int n, const unsigned char* text, int length, const unsigned char* word, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i + length <= n;
    for (int k = 0; yes && k < length; k++) yes = text[i + k] == word[k];

    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}

extern "C" __global__ void pagerank(
    int most, const int* begin, const int* sources, const float* weight,
    float* rank, unsigned int* diary, int* rounds)
{
    __shared__ float given[1024];
    int i = threadIdx.x, n = blockDim.x, round = 0;
    float now = rank[i];
    bool moves = true;
    while (moves && round < most) {
        given[i] = now * weight[i];                // what each of my links gives away
        __syncthreads();
        float sum = 0.0f;
        for (int k = begin[i]; k < begin[i + 1]; k++) sum += given[sources[k]];
        float before = now;
        now = 0.15f / n + 0.85f * sum;
        float change = fabsf(now - before) * n;
        atomicMax(&diary[round], __float_as_uint(change));
        round++;
        moves = __syncthreads_or(change > 1e-4f);
    }
    rank[i] = now;
    if (i == 0) *rounds = round;
}
