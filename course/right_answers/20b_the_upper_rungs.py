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
# - float sum = 0.0f, next_a = a[row * n + x], next_b = b[y * n + col];
# - for (int t = 0; t < n; t += 16) {
# -     tile_a[now][y][x] = next_a;
# -     tile_b[now][y][x] = next_b;
# + float sum = 0.0f;
# + tile_a[0][y][x] = a[row * n + x];
# + tile_b[0][y][x] = b[y * n + col];
# + for (int t = 0; t < n; t += 16) {
#   __syncthreads();
# - if (t + 16 < n) {
# -     next_a = a[row * n + t + 16 + x];
# -     next_b = b[(t + 16 + y) * n + col];
# - }
# + bool more = t + 16 < n;
# + float next_a = more ? a[row * n + t + 16 + x] : 0.0f, next_b = more ? b[(t + 16 + y) * n + col] : 0.0f;
# - now = 1 - now;
# + now = 1 - now;
# + tile_a[now][y][x] = next_a;
# + tile_b[now][y][x] = next_b;


# %% id=20b-attend
# - float higher = fmaxf(largest, score);
# - float shrink = expf(largest - higher), weight = expf(score - higher);
# - sum = sum * shrink + weight;
# - out = out * shrink + weight * v[j * 32 + lane];
# - largest = higher;
# + if (score > largest) {
# +     float shrink = expf(largest - score);
# +     sum *= shrink;
# +     out *= shrink;
# +     largest = score;
# + }
# + float weight = expf(score - largest);
# + sum += weight;
# + out += weight * v[j * 32 + lane];


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


# %% id=20b-ahead
# - extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
# + #include <cuda/barrier>
# + extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
#   __shared__ float tile_a[2][16][16], tile_b[2][16][16];
# + __shared__ cuda::barrier<cuda::thread_scope_block> full;
# - for (int t = 0; t < n; t += 16) {
# -     tile_a[now][y][x] = next_a;
# -     tile_b[now][y][x] = next_b;
# -     __syncthreads();
# + tile_a[0][y][x] = next_a;
# + tile_b[0][y][x] = next_b;
# + if (x == 0 && y == 0) init(&full, 256);
# + __syncthreads();
# + for (int t = 0; t < n; t += 16) {
# - now = 1 - now;
# + now = 1 - now;
# + tile_a[now][y][x] = next_a;
# + tile_b[now][y][x] = next_b;
# + full.arrive_and_wait();


# %% id=20b-ahead
# - extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
# + #include <cuda/barrier>
# + extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
# - for (int t = 0; t < n; t += 16) {
# + __shared__ cuda::barrier<cuda::thread_scope_block> full;
# + if (x + y == 0) init(&full, 256);
# + __syncthreads();
# + const float* from = a + row * n + x;
# + for (int t = 0; t < n; t += 16) {
#   tile_b[now][y][x] = next_b;
# - __syncthreads();
# - if (t + 16 < n) {
# -     next_a = a[row * n + t + 16 + x];
# -     next_b = b[(t + 16 + y) * n + col];
# + (void)full.arrive();
# + while (!full.try_wait_parity(now)) __nanosleep(20);
# + float asked_a = 0.0f, asked_b = 0.0f;
# + if (t + 16 < n) {
# +     asked_a = from[t + 16];
# +     asked_b = b[(t + 16 + y) * n + col];
# - now = 1 - now;
# + if (t + 16 < n) {
# +     next_a = asked_a;
# +     next_b = asked_b;
# + }
# + now = 1 - now;
