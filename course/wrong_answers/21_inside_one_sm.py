"""Plausible wrong answers to the exercises of course/21_inside_one_sm.py; see tools/build_notebooks.py."""


# %% id=21-under-way of=starter cause="a thread waits for memory 64 times, and 16 are enough"
# - sum += x[i] * w[i];
# + float a = x[i], b = w[i];
# + sum += a * b;


# %% id=21-under-way cause="should be"
# - #pragma unroll 1
# - for (; i < n; i += threads) {
# - sum += x[i] * w[i];
# - }
# - out[me] = sum;
# + out[me] = sum;


# %% id=21-under-way cause="out of bounds"
# - for (; i + 3 * threads < n; i += 4 * threads) {
# + for (; i < n; i += 4 * threads) {


# %% id=21-under-way cause="should be"
# - sum += a * e + b * f + c * g + d * h;
# + sum += a * e + b * f + c * g + c * h;


# %% id=21-under-way cause="no thread wrote `out[1]`"
# - out[me] = sum;
# + if (me == 0) out[me] = sum;


# %% id=21-next-tile of=starter cause="let copies be asynchronous, by"
# - tile[me] = x[t * 256 + me];
# + float mine = x[t * 256 + me];
# + tile[me] = mine;


# %% id=21-next-tile cause="asynchronous copy"
# - __pipeline_wait_prior(1);
# - __syncthreads();
# + __syncthreads();


# %% id=21-next-tile cause="asynchronous copy"
# - __pipeline_wait_prior(1);
# + __pipeline_wait_prior(2);


# %% id=21-next-tile cause="without a __syncthreads() between them"
# - __pipeline_wait_prior(1);
# - __syncthreads();
# + __pipeline_wait_prior(1);


# %% id=21-next-tile cause="without a __syncthreads() between them"
#   y[t * 256 + me] = full[(me + 255) % 256] + full[me] + full[(me + 1) % 256];
# - __syncthreads();


# %% id=21-next-tile cause="out of bounds"
# - if (next < n / 256)
# -     __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));
# + __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));


# %% id=21-next-tile cause="asynchronous copy"
# - if (next < n / 256)
# -     __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));
# - __pipeline_commit();
# + if (next < n / 256) {
# +     __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));
# +     __pipeline_commit();
# + }


# %% id=21-next-tile cause="should be"
# - y[t * 256 + me] = full[(me + 255) % 256] + full[me] + full[(me + 1) % 256];
# + y[t * 256 + me] = full[me > 0 ? me - 1 : 0] + full[me] + full[(me + 1) % 256];


# %% id=21-ring cause="it needs another place"
# - constexpr int PLACES = 4;
# + constexpr int PLACES = 3;


# %% id=21-ring cause="asynchronous copy"
# - }
# - __pipeline_commit();
# - }
# + __pipeline_commit();
# + }
# + }


# %% id=21-ring cause="above the last commit it's one smaller"
# - __pipeline_wait_prior(2);
# + __pipeline_wait_prior(3);


# %% id=21-ring cause="without a __syncthreads() between them"
# - __syncthreads();


# %% id=21-ring cause="and once a turn is enough"
# - sum += place[t % PLACES][255 - threadIdx.x];
# + sum += place[t % PLACES][255 - threadIdx.x];
# + __syncthreads();


# %% id=21-ring cause="keep three tiles under way"
# - __pipeline_wait_prior(2);
# + __pipeline_wait_prior(0);


# %% id=21-ring cause="no __pipeline_commit() has closed its group"
# - }
# - __pipeline_commit();
# - }
# + }
# + }


# %% id=21-ring cause="should be"
# - sum += place[t % PLACES][255 - threadIdx.x];
# + sum += place[t % PLACES][threadIdx.x];


# %% id=21-ring cause="with tiles=131"
# - float sum = 0.0f;
# + float sum = 0.0f;
# + if (tiles > 33) tiles = 33;


# %% id=21-next-tile cause="compute between a copy and its wait"
# - __pipeline_wait_prior(1);
# + __pipeline_wait_prior(0);


# %% id=21-under-way of=starter cause="`x` is read as `volatile` (line 9 of the kernel)"
# - extern "C" __global__ void dot(int n, const float* x, const float* w, float* out)
# + extern "C" __global__ void dot(int n, const volatile float* x, const float* w, float* out)


# %% id=21-under-way cause="a thread waits for memory 64 times, and 16 are enough"
# - for (; i + 3 * threads < n; i += 4 * threads) {
# + for (; threadIdx.x < 96 && i + 3 * threads < n; i += 4 * threads) {


# %% id=21-next-tile cause="share out the tiles"
# - __pipeline_memcpy_async(&tile[0][me], &x[blockIdx.x * 256 + me], sizeof(float));
# + __pipeline_memcpy_async(&tile[0][me], &x[me], sizeof(float));
# - for (int t = blockIdx.x; t < n / 256; t += gridDim.x) {
# -     int next = t + gridDim.x;
# + for (int t = 0; t < n / 256; t++) {
# +     int next = t + 1;


# %% id=21-ring cause="no tile comes by an asynchronous copy"
# - __pipeline_memcpy_async(&place[threadIdx.x], &x[tile * 256 + threadIdx.x], 4);
# + place[threadIdx.x] = x[tile * 256 + threadIdx.x];


# %% id=21-under-way cause="all parts together are -376.125, and should be -783.312"
# - int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
# + int me = blockIdx.x * blockDim.x + threadIdx.x, threads = 128;
