"""Plausible wrong answers to the exercises of course/20b_the_upper_rungs.py; see tools/build_notebooks.py."""


# %% id=20b-ahead cause="without a __syncthreads() between them"
# - now = 1 - now;


# %% id=20b-ahead cause="barriers for"
# - now = 1 - now;
# + now = 1 - now;
# + __syncthreads();


# %% id=20b-ahead cause="out of bounds"
# - if (t + 16 < n) {
# -     next_a = a[row * n + t + 16 + x];
# -     next_b = b[(t + 16 + y) * n + col];
# - }
# + next_a = a[row * n + t + 16 + x];
# + next_b = b[(t + 16 + y) * n + col];


# %% id=20b-ahead cause="should be"
# - next_b = b[(t + 16 + y) * n + col];
# + next_b = b[(t + y) * n + col];


# %% id=20b-ahead cause="without a __syncthreads() between them"
# - __syncthreads();


# %% id=20b-ahead cause="times by a block, and once is enough"
# - for (int k = 0; k < 16; k++) {
# + next_a = t + 16 < n ? *(volatile const float*)&a[row * n + t + 16 + x] : 0.0f;
# + next_b = t + 16 < n ? *(volatile const float*)&b[(t + 16 + y) * n + col] : 0.0f;
# + for (int k = 0; k < 16; k++) {


# %% id=20b-challenge cause="get below 6.5 µs"
# - return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + for _ in range(2):
# +     again = mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + return again.and_then(lambda _: again)


# %% id=20b-challenge cause="get below 6.5 µs"
# - for (int t = 0; t < n; t += 32) {
# -     for (int j = 0; j < 32; j += 16) {
# + for (int t = 0; t < n; t += 16) {
# +     for (int j = 0; j < 16; j += 16) {
# - for (int k = 0; k < 32; k++) {
# + for (int k = 0; k < 16; k++) {


# %% id=20b-challenge cause="should be"
# - for (int k = 0; k < 32; k++) {
# + for (int k = 0; k < 16; k++) {


# %% id=20b-challenge cause="no thread wrote element"
# - return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + return mine(n, a, b, c, grid=(n // 32, n // 16), block=(16, 16))


# %% id=20b-rows cause="loads of a warp, and"
rows = agt.Kernel(r"""
extern "C" __global__ void rows(int n, const float* x, float* y)
{
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float largest = -3e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, x[i]);
    for (int far = 1; far < 32; far *= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, far));
    for (int i = threadIdx.x; i < n; i += 32) sum += expf(x[i] - largest);
    for (int far = 1; far < 32; far *= 2) sum += __shfl_xor_sync(0xffffffff, sum, far);
    for (int i = threadIdx.x; i < n; i += 32) y[i] = expf(x[i] - largest) / sum;
}
""")


# %% id=20b-rows of=above cause="each number of a row of 1024 was read 1.0 times"
# - float largest = -3e38f, sum = 0.0f;
# - for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, x[i]);
# + float largest = -3e38f, sum = 0.0f, kept[512];
# + for (int i = threadIdx.x; i < n; i += 32) largest = fmaxf(largest, kept[i / 32] = x[i]);
# - for (int i = threadIdx.x; i < n; i += 32) sum += expf(x[i] - largest);
# + for (int i = threadIdx.x; i < n; i += 32) sum += expf(kept[i / 32] - largest);
# - for (int i = threadIdx.x; i < n; i += 32) y[i] = expf(x[i] - largest) / sum;
# + for (int i = threadIdx.x; i < n; i += 32) y[i] = expf(kept[i / 32] - largest) / sum;


# %% id=20b-rows cause="should be"
# - sum = sum * expf(largest - higher) + expf(v - higher);
# + sum += expf(v - higher);


# %% id=20b-rows cause="should be"
# - sum = sum * expf(largest - higher) + their_sum * expf(their_largest - higher);
# + sum += their_sum;


# %% id=20b-rows cause="is nan"
# - float largest = -3e38f, sum = 0.0f;
# + float largest = -INFINITY, sum = 0.0f;


# %% id=20b-rows cause="should be"
# - for (int far = 1; far < 32; far *= 2) {
# + for (int far = 1; far < 16; far *= 2) {


# %% id=20b-rows cause="should be"
# - float largest = -3e38f, sum = 0.0f;
# + float largest = 0.0f, sum = 0.0f;


# %% id=20b-fused cause="should be"
# - for (int far = 1; far < 32; far *= 2) {
# - largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, far));
# - }


# %% id=20b-fused cause="should be"
#   sum += score[j];
# - for (int far = 1; far < 32; far *= 2) {
# - sum += __shfl_xor_sync(0xffffffff, sum, far);
# - }


# %% id=20b-fused cause="is nan"
# - score[j] = expf(score[j] - largest);
# + score[j] = expf(score[j]);


# %% id=20b-fused cause="store 24 times, and 12"
# - float largest = fmaxf(fmaxf(score[0], score[1]), fmaxf(score[2], score[3]));
# + for (int j = 0; j < 4; j++) y[row * 128 + j * 32 + lane] = score[j];
# + float largest = fmaxf(fmaxf(score[0], score[1]), fmaxf(score[2], score[3]));


# %% id=20b-fused cause="should be"
# - y[row * 128 + j * 32 + lane] = score[j] / sum;
# + y[row * 128 + j * 32 + lane] = score[j];


# %% id=20b-fused cause="times, and 768 times are enough"
# - float sum = 0.0f;
# + for (int j = 0; j < 4; j++) {
# +     score[j] = 0.0f;
# +     for (int k = 0; k < 32; k++) {
# +         score[j] += *(volatile const float*)&a[row * 32 + k] * b[k * 128 + j * 32 + lane];
# +     }
# + }
# + float sum = 0.0f;


# %% id=20b-attend cause="should be"
# - out = out * shrink + weight * v[j * 32 + lane];
# + out += weight * v[j * 32 + lane];


# %% id=20b-attend cause="should be"
# - sum = sum * shrink + weight;
# + sum += weight;


# %% id=20b-attend cause="should be"
# - y[blockIdx.x * 32 + lane] = out / sum;
# + y[blockIdx.x * 32 + lane] = out;


# %% id=20b-attend cause="should be"
# - largest = higher;


# %% id=20b-attend cause="are enough: read each key and each value once"
# - float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# + float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# + for (int j = 0; j < n; j++) {
# +     float score = mine * k[j * 32 + lane];
# +     for (int far = 1; far < 32; far *= 2) score += __shfl_xor_sync(0xffffffff, score, far);
# +     largest = fmaxf(largest, score);
# + }


# %% id=20b-attend cause="should be"
# - float shrink = expf(largest - higher), weight = expf(score - higher);
# + float shrink = expf(higher - largest), weight = expf(score - higher);


# %% id=20b-attend cause="is nan"
# - float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# + float largest = 0.0f, sum = 0.0f, out = 0.0f;


# %% id=20b-attend cause="33 keys"
# - float higher = fmaxf(largest, score);
# + float higher = 0.0f;


# %% id=20b-rows cause="is nan"
# - float v = x[i];
# - float higher = fmaxf(largest, v);
# + float v = x[i], higher = 0.0f;


# %% id=20b-attend cause="with 100 keys"
# - float higher = fmaxf(largest, score);
# + if (j >= 33) continue;
# + float higher = fmaxf(largest, score);


# %% id=20b-attend cause="with 100 keys, 65 of them are read before the values of any"
# - float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# + float largest = -INFINITY, sum = 0.0f, out = 0.0f, kept[4096];
# - float higher = fmaxf(largest, score);
# - float shrink = expf(largest - higher), weight = expf(score - higher);
# - sum = sum * shrink + weight;
# - out = out * shrink + weight * v[j * 32 + lane];
# - largest = higher;
# - }
# + kept[j] = score;
# + largest = fmaxf(largest, score);
# + }
# + for (int j = 0; j < n; j++) {
# +     float weight = expf(kept[j] - largest);
# +     sum += weight;
# +     out += weight * v[j * 32 + lane];
# + }


# %% id=20b-attend cause="keep only the largest score, the sum and `out`"
# - float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# + float largest = -INFINITY, sum = 0.0f, out = 0.0f, kept[1024], values[1024];
# - out = out * shrink + weight * v[j * 32 + lane];
# + kept[j] = score, values[j] = v[j * 32 + lane];
# - y[blockIdx.x * 32 + lane] = out / sum;
# + for (int j = 0; j < n; j++) out += expf(kept[j] - largest) * values[j];
# + y[blockIdx.x * 32 + lane] = out / sum;


# %% id=20b-ahead cause="when those of step 0 are multiplied already: ask first"
# - if (t + 16 < n) {
# -     next_a = a[row * n + t + 16 + x];
# -     next_b = b[(t + 16 + y) * n + col];
# - }
# - now = 1 - now;
# + now = 1 - now;
# + if (t + 16 < n) {
# +     next_a = a[row * n + t + 16 + x];
# +     next_b = b[(t + 16 + y) * n + col];
# + }


# %% id=20b-ahead cause="the next numbers are put into their tile before this one's are multiplied"
# - float sum = 0.0f, next_a = a[row * n + x], next_b = b[y * n + col];
# - for (int t = 0; t < n; t += 16) {
# -     tile_a[now][y][x] = next_a;
# -     tile_b[now][y][x] = next_b;
# + float sum = 0.0f;
# + tile_a[0][y][x] = a[row * n + x];
# + tile_b[0][y][x] = b[y * n + col];
# + for (int t = 0; t < n; t += 16) {
# - next_a = a[row * n + t + 16 + x];
# - next_b = b[(t + 16 + y) * n + col];
# + tile_a[1 - now][y][x] = a[row * n + t + 16 + x];
# + tile_b[1 - now][y][x] = b[(t + 16 + y) * n + col];


# %% id=20b-fused cause="is nan"
# - float sum = 0.0f;
# + float sum = 0.0f;
# + largest = fmaxf(largest, 0.0f);


# %% id=20b-fused cause="leave them in registers, where they are"
# - float sum = 0.0f;
# + __shared__ float scores[128];
# + for (int j = 0; j < 4; j++) scores[j * 32 + lane] = score[j];
# + __syncwarp();
# + for (int j = 0; j < 4; j++) score[j] = scores[j * 32 + lane];
# + float sum = 0.0f;


# %% id=20b-ahead cause="with n=96, a block passes 12 barriers for 6 steps"
# - now = 1 - now;
# + now = 1 - now;
# + if (n > 64) __syncthreads();


# %% id=20b-ahead cause="multiply between a copy and the wait for it"
# - extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
# + #include <cuda_pipeline.h>
# + extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
# - for (int t = 0; t < n; t += 16) {
# -     tile_a[now][y][x] = next_a;
# -     tile_b[now][y][x] = next_b;
# + tile_a[0][y][x] = next_a;
# + tile_b[0][y][x] = next_b;
# + for (int t = 0; t < n; t += 16) {
# - next_a = a[row * n + t + 16 + x];
# - next_b = b[(t + 16 + y) * n + col];
# + __pipeline_memcpy_async(&tile_a[1 - now][y][x], &a[row * n + t + 16 + x], 4);
# + __pipeline_memcpy_async(&tile_b[1 - now][y][x], &b[(t + 16 + y) * n + col], 4);
# + __pipeline_commit();
# + __pipeline_wait_prior(0);


# %% id=20b-challenge cause="building the operation already ran something"
# - return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + x, y = agt.d2h(a.borrow()).sync(), agt.d2h(b.borrow()).sync()
# + return agt.memcpy(c, agt.pin(x @ y))


# %% id=20b-challenge cause="kernels alone should make the product"
# - return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + made = mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + return made.and_then(lambda arrays: agt.d2h(arrays[-1]))


# %% id=20b-challenge cause="leave its `spec` as it is"
# - return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))
# + from dataclasses import replace
# + device = agt.current_device()
# + object.__setattr__(device, "spec", replace(device.spec, clock_mhz=20_000.0))
# + return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))


# %% id=20b-challenge cause="should be"
# - extern "C" __global__ void mine(int n, const float* a, const float* b, float* c)
# + #include <cuda_fp16.h>
# + extern "C" __global__ void mine(int n, const float* a, const float* b, float* c)
# - tile_a[y][x + j] = a[row * n + t + x + j];
# + tile_a[y][x + j] = __half2float(__float2half(a[row * n + t + x + j]));


# %% id=20b-attend cause="keep `out` until it's done"
# - largest = higher;
# + largest = higher;
# + y[blockIdx.x * 32 + lane] = out / sum;


# %% id=20b-ahead cause="each thread waits (line 16 of the kernel) after asking for the next numbers: multiply"
# - for (int k = 0; k < 16; k++) {
# + if (next_a + next_b == 1234567.0f) sum += 1.0f;
# + for (int k = 0; k < 16; k++) {


# %% id=20b-ahead cause="after asking for the next numbers: multiply this step's first"
# - for (int k = 0; k < 16; k++) {
# + sum += 0.0f * (next_a + next_b);
# + for (int k = 0; k < 16; k++) {


# %% id=20b-ahead cause="multiply this step's first, then use the next ones"
# - for (int k = 0; k < 16; k++) {
# + __nanosleep(2000);
# + for (int k = 0; k < 16; k++) {
