"""Right answers to exercises of course/20b_the_upper_rungs.py in other forms than the solution's."""


# %% id=20b-rows of=starter
# - // your code: what this lane knows so far
# + if (v > largest) {
# +     sum = sum * expf(largest - v) + 1.0f;
# +     largest = v;
# + } else {
# +     sum += expf(v - largest);
# + }
# - for (int far = 1; far < 32; far *= 2) {
# -     float their_largest = __shfl_xor_sync(0xffffffff, largest, far);
# -     float their_sum = __shfl_xor_sync(0xffffffff, sum, far);
# -     // your code: what both lanes know together
# - }
# + float high = largest;
# + for (int far = 16; far > 0; far /= 2) high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, far));
# + sum *= expf(largest - high);
# + for (int far = 16; far > 0; far /= 2) sum += __shfl_xor_sync(0xffffffff, sum, far);
# + largest = high;


# %% id=20b-ahead
ahead = agt.Kernel(r"""
extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
{
    __shared__ float tiles[2][2][16][16];
    int x = threadIdx.x, y = threadIdx.y;
    a += (blockIdx.y * 16 + y) * n + x;
    b += y * n + blockIdx.x * 16 + x;
    float sum = 0.0f;
    tiles[0][0][y][x] = *a;
    tiles[0][1][y][x] = *b;
    for (int t = 0; t < n / 16; t++) {
        __syncthreads();
        bool more = t + 1 < n / 16;
        float next_a = more ? a[(t + 1) * 16] : 0.0f, next_b = more ? b[(t + 1) * 16 * n] : 0.0f;
        for (int k = 0; k < 16; k++) sum += tiles[t % 2][0][y][k] * tiles[t % 2][1][k][x];
        tiles[1 - t % 2][0][y][x] = next_a;
        tiles[1 - t % 2][1][y][x] = next_b;
    }
    c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = sum;
}
""")


# %% id=20b-attend
attend = agt.Kernel(r"""
extern "C" __global__ void attend(int n, const float* q, const float* k, const float* v, float* y)
{
    int at = blockIdx.x * 32 + threadIdx.x;
    float largest = -3e38f, sum = 0.0f, out = 0.0f, mine = q[at];
    k += threadIdx.x;
    v += threadIdx.x;
    for (int j = 0; j < n; j++, k += 32, v += 32) {
        float score = *k * mine;
        for (int far = 16; far > 0; far /= 2) score += __shfl_xor_sync(0xffffffff, score, far);
        if (score > largest) {
            float shrink = expf(largest - score);
            sum *= shrink;
            out *= shrink;
            largest = score;
        }
        float weight = expf(score - largest);
        sum += weight;
        out += weight * *v;
    }
    y[at] = out / sum;
}
""")


# %% id=20b-challenge
# - __shared__ float tile_a[16][32], tile_b[32][16];
# + __shared__ float tile_a[2][16][16], tile_b[2][16][16];
# - float sum = 0.0f;
# - for (int t = 0; t < n; t += 32) {
# -     for (int j = 0; j < 32; j += 16) {
# -         tile_a[y][x + j] = a[row * n + t + x + j];
# -         tile_b[y + j][x] = b[(t + y + j) * n + col];
# + float sum = 0.0f, next_a = a[row * n + x], next_b = b[y * n + col];
# + for (int t = 0, now = 0; t < n; t += 16, now ^= 1) {
# +     tile_a[now][y][x] = next_a;
# +     tile_b[now][y][x] = next_b;
# +     __syncthreads();
# +     if (t + 16 < n) {
# +         next_a = a[row * n + t + 16 + x];
# +         next_b = b[(t + 16 + y) * n + col];
# -     __syncthreads();
# -     for (int k = 0; k < 32; k++) {
# -         sum += tile_a[y][k] * tile_b[k][x];
# +     for (int k = 0; k < 16; k++) {
# +         sum += tile_a[now][y][k] * tile_b[now][k][x];
# -     __syncthreads();
