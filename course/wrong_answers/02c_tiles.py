"""Plausible wrong answers to the exercises of course/02c_tiles.py; see tools/build_notebooks.py."""


# %% id=02c-softmax of=starter cause="is nan, and"
# - // your code
# + if (i < n) {
# +     float sum = 0.0f;
# +     for (unsigned int j = 0; j < n; j++) {
# +         sum += expf(x[j]);
# +     }
# +     y[i] = expf(x[i]) / sum;
# + }


# %% id=02c-softmax cause="blocks of 64 and numbers from -1000000704"
# - float top = x[0];
# - for (unsigned int j = 1; j < n; j++) {
# + float top = 0.0f, sum = 0.0f;
# + for (unsigned int j = 0; j < n; j++) {
# - float sum = 0.0f;


# %% id=02c-softmax cause="n=64, blocks of 16"
# - float top = x[0];
# + float top = x[0], sum = 0.0f;
# - float sum = 0.0f;
# - for (unsigned int j = 0; j < n; j++) {
# + for (unsigned int j = 0; j < blockDim.x; j++) {


# %% id=02c-softmax cause="and should be"
# - float sum = 0.0f;
# - for (unsigned int j = 0; j < n; j++) {
# - sum += expf(x[j] - top);
# - }
# - y[i] = expf(x[i] - top) / sum;
# + y[i] = expf(x[i] - top);


# %% id=02c-softmax of=starter cause="out of bounds"
# - // your code
# + float top = x[0], sum = 0.0f;
# + for (unsigned int j = 1; j < n; j++) {
# +     top = fmaxf(top, x[j]);
# + }
# + for (unsigned int j = 0; j < n; j++) {
# +     sum += expf(x[j] - top);
# + }
# + y[i] = expf(x[i] - top) / sum;


# %% id=02c-tiled cause="without a __syncthreads() between them"
# - __syncthreads();


# %% id=02c-tiled cause="which nothing has written"
# - unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
# + unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
# + if (row >= m || col >= n) return;


# %% id=02c-tiled cause="out of bounds"
# - tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
# - tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
# + tile_a[y][x] = a[row * k + t + x];
# + tile_b[y][x] = b[(t + y) * n + col];


# %% id=02c-tiled cause="with m=50, n=30, k=70"
# - for (unsigned int t = 0; t < k; t += 16) {
# + for (unsigned int t = 0; t + 16 <= k; t += 16) {


# %% id=02c-tiled of=starter cause="and a 16th of that is enough"
# - __shared__ float tile_b[16][16];
# - // your code
# + float sum = 0.0f;
# + for (unsigned int t = 0; t < k; t += 16) {
# +     tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
# +     __syncthreads();
# +     for (unsigned int i = 0; i < 16; i++) {
# +         if (t + i < k && col < n) sum += tile_a[y][i] * b[(t + i) * n + col];
# +     }
# +     __syncthreads();
# + }
# + if (row < m && col < n) {
# +     c[row * n + col] = sum;
# + }


# %% id=02c-tiled cause="and should be"
# - sum += tile_a[y][i] * tile_b[i][x];
# + sum += tile_a[y][i] * tile_b[x][i];


# %% id=02c-tiled cause="no thread wrote element"
# - if (row < m && col < n) {
# + if (row < m && col < n && sum > 0.0f) {


# %% id=02c-softmax cause="let each thread write one output, its own"
# - if (i < n) {
# + if (i == 0) {
# - y[i] = expf(x[i] - top) / sum;
# + for (unsigned int j = 0; j < n; j++) {
# +     y[j] = expf(x[j] - top) / sum;
# + }


# %% id=02c-softmax cause="element 0 is"
# - y[i] = expf(x[i] - top) / sum;
# + y[i] = expf(x[i] - top) / sum + 0.000008f;


# %% id=02c-softmax cause="and should be"
# - for (unsigned int j = 1; j < n; j++) {
# - top = fmaxf(top, x[j]);
# - }
# + for (unsigned int j = 1; j < (n < 64 ? n : 64); j++) top = fmaxf(top, x[j]);
# - for (unsigned int j = 0; j < n; j++) {
# - sum += expf(x[j] - top);
# - }
# + for (unsigned int j = 0; j < n; j++) sum += expf(x[j] - top);


# %% id=02c-softmax of=starter cause="with n=5000, blocks of 256"
# - // your code
# + if (i >= n) return;
# + float most = x[0];
# + for (unsigned int j = 1; j < n; j++) most = fmaxf(most, x[j]);
# + float sum = 0.0f;
# + for (unsigned int j = 0; j < n && j < 1024; j++) sum += expf(x[j] - most);
# + y[i] = expf(x[i] - most) / sum;


# %% id=02c-softmax cause="numbers from -1000000704 to -999999296, element 0 is nan"
# - float top = x[0];
# - for (unsigned int j = 1; j < n; j++) {
# + float top = -1000.0f;
# + for (unsigned int j = 0; j < n; j++) {


# %% id=02c-softmax cause="numbers from -1000000704 to -999999296, element 0 is nan"
# - float top = x[0];
# - for (unsigned int j = 1; j < n; j++) {
# + float top = -300.0f;
# + for (unsigned int j = 0; j < n; j++) {


# %% id=02c-softmax cause="with n=64, blocks of 64 and numbers from -1000000"
# - float top = x[0];
# - for (unsigned int j = 1; j < n; j++) {
# + float top = -1e7f, sum = 0.0f;
# + for (unsigned int j = 0; j < n; j++) {
# - float sum = 0.0f;


# %% id=02c-softmax cause="with n=1, blocks of 32 and numbers from"
# - float top = x[0];
# - for (unsigned int j = 1; j < n; j++) {
# + float top = fmaxf(x[0], x[1]), sum = 0.0f;
# + for (unsigned int j = 2; j < n; j++) {
# - float sum = 0.0f;


# %% id=02c-softmax of=starter cause="5 threads write element 19"
# - unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# - // your code
# + unsigned int i = min(blockIdx.x * blockDim.x + threadIdx.x, n - 1);
# + float top = x[0], sum = 0.0f;
# + for (unsigned int j = 0; j < n; j++) top = fmaxf(top, x[j]);
# + for (unsigned int j = 0; j < n; j++) sum += expf(x[j] - top);
# + y[i] = expf(x[i] - top) / sum;


# %% id=02c-tiled cause="240 threads write element"
# - unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
# + unsigned int row = min(blockIdx.y * 16 + y, m - 1), col = min(blockIdx.x * 16 + x, n - 1);
# - tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
# - tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
# + tile_a[y][x] = t + x < k ? a[row * k + t + x] : 0.0f;
# + tile_b[y][x] = t + y < k ? b[(t + y) * n + col] : 0.0f;
# - for (unsigned int i = 0; i < 16; i++) {
# - sum += tile_a[y][i] * tile_b[i][x];
# - }
# + for (unsigned int j = 0; j < 16; j++) sum += tile_a[y][j] * tile_b[j][x];
# - if (row < m && col < n) {
# - c[row * n + col] = sum;
# - }
# + c[row * n + col] = sum;
