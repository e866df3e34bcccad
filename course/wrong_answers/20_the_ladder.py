"""Plausible wrong answers to the exercises of course/20_the_ladder.py; see tools/build_notebooks.py."""


# %% id=20-own cause="for each multiply-add, and 0.6 is enough"
# - float of_a[4], of_b[4];
# - for (int i = 0; i < 4; i++) {
# -     of_a[i] = tile_a[row + i][k];
# -     of_b[i] = tile_b[k][col + i];
# - }
# - for (int i = 0; i < 4; i++) {
# -     for (int j = 0; j < 4; j++) {
# -         sums[i][j] += of_a[i] * of_b[j];
# + for (int i = 0; i < 4; i++) {
# +     for (int j = 0; j < 4; j++) {
# +         volatile float* column = &tile_a[row + i][k];
# +         sums[i][j] += *column * tile_b[k][col + j];


# %% id=20-own cause="without a __syncthreads() between them"
# - __syncthreads();
# - for (int k = 0; k < 16; k++) {
# + for (int k = 0; k < 16; k++) {


# %% id=20-own cause="should be"
# - of_b[i] = tile_b[k][col + i];
# + of_b[i] = tile_b[k][row + i];


# %% id=20-own cause="no thread wrote element"
#   for (int t = 0; t < n; t += 16) {
#   sums[i][j] += of_a[i] * of_b[j];
# - for (int i = 0; i < 4; i++) {
# - for (int j = 0; j < 4; j++) {
# - c[(row + i) * n + col + j] = sums[i][j];
# - }
# - }
# + c[row * n + col] = sums[0][0];


# %% id=20-own cause="which nothing has written"
# - for (int i = me; i < 1024; i += 256) {
# + for (int i = me; i < 256; i += 256) {


# %% id=20-own cause="out of bounds"
# - a += blockIdx.y * 64 * n;
# + a += blockIdx.y * 64 * n * n;


# %% id=20-own cause="each number of a and b 4.0 times"
# - for (int i = me; i < 1024; i += 256) {
# + for (int j = 0; j < 16; j++) {
# +     int i = me / 4 * 4 * 4 % 1024 + j;


# %% id=20-turn of=starter cause="a store of a warp touches 32 sectors"
# - __shared__ float tile[32][32];


# %% id=20-turn of=starter cause="a load of a warp touches 32 sectors"
# - __shared__ float tile[32][32];
# - y[col * n + row] = x[row * n + col];
# + y[row * n + col] = x[col * n + row];


# %% id=20-turn cause="takes 15.5 passes more than one"
# - __shared__ float tile[32][33];
# + __shared__ float tile[32][32];


# %% id=20-turn cause="without a __syncthreads() between them"
# - __syncthreads();


# %% id=20-turn cause="should be"
# - col = blockIdx.y * 32 + threadIdx.x;
# - row = blockIdx.x * 32 + threadIdx.y;
# - y[row * n + col] = tile[threadIdx.x][threadIdx.y];
# + y[row * n + col] = tile[threadIdx.x][threadIdx.y];


# %% id=20-turn cause="passes more than one"
# - __shared__ float tile[32][33];
# + __shared__ float tile[32][34];


# %% id=20-four of=starter cause="times are enough"
# - int i = blockIdx.x * blockDim.x + threadIdx.x;
# - if (i < n) {
# + int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
# + for (int end = i + 4; i < n && i < end; i++) {


# %% id=20-four cause="no thread wrote element"
# - } else {
# -     for (; i < n; i++) {
# -         y[i] = by * x[i];
# -     }
# - }
# + }


# %% id=20-four cause="out of bounds"
# - if (i + 3 < n) {
# + if (i < n) {


# %% id=20-four cause="a multiple of 16"
# - int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
# + int i = blockIdx.x * blockDim.x + threadIdx.x;


# %% id=20-four cause="should be"
# - *reinterpret_cast<float4*>(&y[i]) = make_float4(by * v.x, by * v.y, by * v.z, by * v.w);
# + *reinterpret_cast<float4*>(&y[i]) = make_float4(by * v.x, by * v.y, by * v.z, v.w);


# %% id=20-turn cause="with n=224, no thread wrote element"
# - y[row * n + col] = tile[threadIdx.x][threadIdx.y];
# + if (n <= 128) y[row * n + col] = tile[threadIdx.x][threadIdx.y];


# %% id=20-own cause="should be"
# - float sums[4][4] = {};
# + int sums[4][4] = {};


# %% id=20-turn of=starter cause="the warps store 12544 times, and 1568 times are enough"
# - __shared__ float tile[32][32];
# - y[col * n + row] = x[row * n + col];
# + float mine = x[row * n + col];
# + for (int k = 0; k < 8; k++) {  // four lanes at a time
# +     if (threadIdx.x / 4 == k) y[col * n + row] = mine;
# + }


# %% id=20-own cause="twice a step is enough"
# - float of_a[4], of_b[4];
# + float of_a[4], of_b[4];
# + __syncthreads();


# %% id=20-turn of=starter cause="atomic operations, and no two of them write to one place"
# - y[col * n + row] = x[row * n + col];
# + atomicExch(&y[col * n + row], x[row * n + col]);


# %% id=20-turn cause="times as much as warps do on average"
# - tile[threadIdx.y][threadIdx.x] = x[row * n + col];
# + if (threadIdx.y) return;
# + for (int r = 0; r < 32; r++) tile[r][threadIdx.x] = x[(row + r) * n + col];
# - y[row * n + col] = tile[threadIdx.x][threadIdx.y];
# + for (int r = 0; r < 32; r++) y[(row + r) * n + col] = tile[threadIdx.x][r];


# %% id=20-four cause="with n=1023, element "
# - float4 v = *reinterpret_cast<const float4*>(&x[i]);
# + by = 2.5f;
# + float4 v = *reinterpret_cast<const float4*>(&x[i]);
