"""Plausible wrong answers to the exercises of course/01_sync_kernels.py; see tools/build_notebooks.py."""


# %% id=01-grid cause="with n=1 and threads=32, that's only 0 threads in 0 blocks for 1 element"
def blocks_needed(n, threads):
    return n // threads


# %% id=01-grid cause="that's 2 blocks, and 1 of them would have nothing to do"
def blocks_needed(n, threads):
    return n // threads + 1


# %% id=01-grid cause="that's only 0 threads in 0 blocks for 1 element"
def blocks_needed(n, threads):
    return round(n / threads)


# %% id=01-grid cause="a number of blocks should be an `int`"
def blocks_needed(n, threads):
    return n / threads


# %% id=01-copy cause="no thread wrote element 128"
# - if (i < n) {
# + if (threadIdx.x < n && blockIdx.x == 0) {


# %% id=01-copy cause="element 0 is 0, and"
# - y[i] = x[i];
# + y[i] = i;


# %% id=01-copy cause="thread 0 of the grid writes 20 elements"
# - if (i < n) {
# - y[i] = x[i];
# + if (i == 0) {
# +     for (unsigned int k = 0; k < n; k++) {
# +         y[k] = x[k];
# +     }


# %% id=01-add cause="element 0 is"
# - z[i] = x[i] + y[i];
# + z[i] = x[i] * y[i];


# %% id=01-add cause="out of bounds"
# - if (i < n) {
# - z[i] = x[i] + y[i];
# - }
# + z[i] = x[i] + y[i];


# %% id=01-add cause="was added to whatever the output held"
# - z[i] = x[i] + y[i];
# + z[i] += x[i] + y[i];


# %% id=01-scale cause="element 0 is"
# - y[i] = a * x[i] + b;
# + y[i] = a * (x[i] + b);


# %% id=01-scale cause="out of bounds"
# - if (i < n) {
# + if (i <= n) {


# %% id=01-scale cause="element 0 is"
# - y[i] = a * x[i] + b;
# + y[i] = b * x[i] + a;


# %% id=01-reverse cause="out of bounds"
# - y[i] = x[n - 1 - i];
# + y[i] = x[n - i];


# %% id=01-reverse cause="element 0 is"
# - y[i] = x[n - 1 - i];
# + y[n - 1 - i] = x[n - 1 - i];


# %% id=01-reverse cause="element 0 is"
# - y[i] = x[n - 1 - i];
# + y[i] = x[blockDim.x - 1 - threadIdx.x];


# %% id=01-stride cause="out of bounds"
# - y[i] = x[i * stride];
# + y[i * stride] = x[i * stride];


# %% id=01-stride cause="no thread wrote element"
# - if (i < n) {
# + if (i * stride < n) {


# %% id=01-stride cause="element 0 is"
# - y[i] = x[i * stride];
# + y[i] = x[i + stride - 1];


# %% id=01-broadcast cause="and so does thread"
# - extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
# - const float* tall, const float* wide, float* out)
# + extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n, const float* tall, const float* wide, float* out)
# - out[row * n + col] = tall[row] + wide[col];
# + out[row * m + col] = tall[row] + wide[col];


# %% id=01-broadcast cause="out of bounds"
# - extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
# - const float* tall, const float* wide, float* out)
# + extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n, const float* tall, const float* wide, float* out)
# - if (row < m && col < n) {
# + if (row < m) {


# %% id=01-broadcast cause="and should be"
# - extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
# - const float* tall, const float* wide, float* out)
# + extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n, const float* tall, const float* wide, float* out)
# - out[row * n + col] = tall[row] + wide[col];
# + out[row * n + col] = tall[row] + wide[row];


# %% id=01-broadcast cause="a comma drops what stands before it: write `out[i * n + j]`"
# - extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
# - const float* tall, const float* wide, float* out)
# + extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n, const float* tall, const float* wide, float* out)
# - out[row * n + col] = tall[row] + wide[col];
# + out[row, col] = tall[row] + wide[col];


# %% id=01-relu cause="writes 20 elements: let each"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + if (i == 0) {
# +     for (unsigned int k = 0; k < n; k++) {
# +         output[k] = input[k] > 0.0f ? input[k] : 0.0f;
# +     }


# %% id=01-matvec cause="writes 6 elements: let each"
# - extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
# - const float* a, const float* x, float* y)
# + extern "C" __global__ void my_matvec(unsigned int m, unsigned int n, const float* a, const float* x, float* y)
# - unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
# - if (row < m) {
# + unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# + for (unsigned int row = 0; i == 0 && row < m; row++) {


# %% id=01-matvec cause="In C, `a[i, j]` isn't an element of a matrix"
# - extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
# - const float* a, const float* x, float* y)
# + extern "C" __global__ void my_matvec(unsigned int m, unsigned int n, const float* a, const float* x, float* y)
# - unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
# + unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# + unsigned int row = i;
# - sum += a[row * n + j] * x[j];
# + sum += a[row, j] * x[j];


# %% id=01-transpose cause="writes 6 elements: let each"
# - unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
# + unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
# - if (row < n && col < m) {
# - out[row * m + col] = a[col * n + row];
# + if (row < n && col == 0) {
# +     for (unsigned int k = 0; k < m; k++) {
# +         out[row * m + k] = a[k * n + row];
# +     }


# %% id=01-one-wait cause="and should be"
def forward(a, x):
    m, n = a.shape
    a[:] = 0
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return agt.relu(m, product.output(), agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="is in no copy from memory that a kernel has written"
def forward(a, x):
    return agt.value(np.maximum(a @ x, 0))


# %% id=01-meanwhile cause="you used a stream from an earlier cell"
# + stream = agt.create_stream()
# +
# +
# - stream = agt.create_stream()


# %% id=01-relu cause="with n=1000 and blocks of 256, kernel 'my_relu': block (3, 0, 0)"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# - }
# + output[i] = input[i] > 0.0f ? input[i] : 0.0f;


# %% id=01-relu cause="out of bounds"
# - if (i < n) {
# + if (i <= n) {


# %% id=01-relu cause="no thread wrote element 128"
# - unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# + unsigned int i = threadIdx.x;


# %% id=01-relu cause="and should be"
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + output[i] = input[i] > 0.0f ? input[i] : -input[i];


# %% id=01-relu cause="no thread wrote element"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + if (i < n && input[i] > 0.0f) {
# +     output[i] = input[i];


# %% id=01-relu cause="one array as input and output"
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + output[i] = 0.0f;
# + if (input[i] > 0.0f) {
# +     output[i] = input[i];
# + }


# %% id=01-matvec of=starter cause="out of bounds"
# - // your code
# + float sum = 0.0f;
# + for (unsigned int j = 0; j < n; j++) {
# +     sum += a[row * n + j] * x[j];
# + }
# + y[row] = sum;


# %% id=01-matvec cause="element 0 was added to whatever the output held before the launch"
my_matvec = r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        for (unsigned int j = 0; j < n; j++) {
            y[row] += a[row * n + j] * x[j];
        }
    }
}
"""


# %% id=01-matvec cause="(20, 50)"
# - if (row < m) {
# + if (row < n) {


# %% id=01-matvec cause="element 0 is"
# - sum += a[row * n + j] * x[j];
# + sum += a[j * m + row] * x[j];


# %% id=01-transpose cause="element"
# - if (row < n && col < m) {
# + if (row < m && col < n) {


# %% id=01-transpose cause="out of bounds"
# - if (row < n && col < m) {
# + if (row < n) {


# %% id=01-transpose cause="(20, 50)"
# - out[row * m + col] = a[col * n + row];
# + out[row * m + col] = a[col * m + row];


# %% id=01-transpose cause="element (0, 1) is"
# - out[row * m + col] = a[col * n + row];
# + out[row * m + col] = a[row * m + col];


# %% id=01-one-wait cause="building the operation already ran something"
def forward(a, x):
    m, n = a.shape
    a_there = agt.h2d(a).sync()
    x_there = agt.h2d(x).sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="and got an operation: use op.to_host()"
# - positive = agt.relu(m, y, agt.zeros(m).partition(128)).output()
# - return positive.to_host()
# + return agt.d2h(agt.relu(m, y, agt.zeros(m).partition(128)).output())


# %% id=01-one-wait cause="a launch gives back all its arrays"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return agt.relu(m, product, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="and should be 0"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return product.output().to_host()


# %% id=01-one-wait cause="is 0, and"
# - positive = agt.relu(m, y, agt.zeros(m).partition(128)).output()
# - return positive.to_host()
# + swapped = agt.relu(m, agt.zeros(m), y.partition(128))
# + return swapped.output().to_host()


# %% id=01-one-wait cause="should return an operation, and returned ndarray"
def forward(a, x):
    return np.maximum(a @ x, 0)


# %% id=01-one-wait cause="being submitted"
def forward(a, x):
    m, n = a.shape

    def continued(context):
        context.device.create_stream().synchronize()
        return product.output()

    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    y = agt.with_context(continued)
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-meanwhile cause="the device did nothing during `job`"
def with_a_job(op, job):
    job()
    return op.sync()


# %% id=01-meanwhile cause="before the device was done"
# - stream.synchronize()


# %% id=01-meanwhile cause="a result was read before the device was done with it"
def with_a_job(op, job):
    result = op.async_on(agt.create_stream())
    job()
    agt.work(1000, "by then it is surely over")
    return result


# %% id=01-meanwhile cause="`relu` ran 2 times"
def with_a_job(op, job):
    op.async_on(agt.create_stream())
    job()
    return op.sync()


# %% id=01-meanwhile cause="it describes work"
def with_a_job(op, job):
    job()
    return op


# %% id=01-meanwhile cause="the host waited 2 times"
# - return result
# + return agt.value(result).sync()


# %% id=01-meanwhile cause="a NumPy array should come out, and not None"
# - result = op.async_on(stream)
# + op.async_on(stream)
# - return result


# %% id=01-meanwhile cause="nothing of it ran: an `async def` runs when somebody awaits it"
async def with_a_job(op, job):
    task = agt.spawn(op)
    job()
    return await task


# %% id=01-meanwhile cause="`job` ran 0 times"
def with_a_job(op, job):
    return op.sync()


# %% id=01-relu cause="is 6, and"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# - }
# + if (i < n) output[i] = fminf(fmaxf(input[i], 0.0f), 6.0f);


# %% id=01-stride cause="with n=256 and blocks of 128, no thread wrote element 255"
# - if (i < n) {
# + if (i * stride < n * stride - 1) {


# %% id=01-meanwhile cause="of the result was not there yet"
def with_a_job(op, job):
    s = agt.create_stream()
    r = op.async_on(s)
    job()
    return r.buffer


# %% id=01-scale cause="and should be 14.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = a * (x[i] + b / a);


# %% id=01-scale cause="and should be -17.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = fmaxf(a, 0.0f) * x[i] + b;


# %% id=01-relu cause="and should be 1804.16"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# - }
# + if (i < n) output[i] = fminf(fmaxf(input[i], 0.0f), 1000.0f);


# %% id=01-relu cause="and should be 3.43589e-05"
# - if (i < n) {
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# - }
# + if (i < n) output[i] = input[i] > 0.001f ? input[i] : 0.0f;


# %% id=01-matvec cause="and should be -34.9428"
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n, const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 64; j++) t += a[row * n + j] * x[j]; y[row] = t; }
}
""")


# %% id=01-matvec of=above cause="and should be -34.9428"
# - if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 64; j++) t += a[row * n + j] * x[j]; y[row] = t; }
# + if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 1000; j++) t += a[row * n + j] * x[j]; y[row] = t; }


# %% id=01-matvec of=above cause="and should be -34.9428"
#   {
# +     __shared__ float s[64];
# - if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 64; j++) t += a[row * n + j] * x[j]; y[row] = t; }
# + for (unsigned int j = threadIdx.x; j < n && j < 64; j += blockDim.x) s[j] = x[j];
# + __syncthreads();
# + if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 64; j++) t += a[row * n + j] * s[j]; y[row] = t; }


# %% id=01-matvec of=above cause="this loop is still running"
# - if (row < m) { float t = 0.0f; for (unsigned int j = 0; j < n && j < 64; j++) t += a[row * n + j] * x[j]; y[row] = t; }
# + if (row < m) { float t = 0.0f; for (unsigned char j = 0; j < n; j++) t += a[row * n + j] * x[j]; y[row] = t; }


# %% id=01-one-wait cause="of the result was not there yet"
def forward(a, x):
    m, n = a.shape
    y = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128)).output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host().map(lambda h: h.buffer)


# %% id=01-one-wait cause="building the operation already ran something"
def forward(a, x):
    m, n = a.shape
    agt.synchronize()
    y = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128)).output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="nothing of it ran: an `async def`"
async def forward(a, x):
    m, n = a.shape
    y = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128)).output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-scale cause="and should be -17.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = fabsf(a) * x[i] + b;


# %% id=01-scale cause="and should be -17.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = (a > 0.0f ? a : 1.0f) * x[i] + b;


# %% id=01-scale cause="and should be 14.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = a == 0.0f ? x[i] : a * x[i] + b;


# %% id=01-scale cause="and should be -12.75"
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + if (i < n) y[i] = a * x[i] + fmaxf(b, -10.0f);


# %% id=01-copy cause="with 70,000 elements, no thread wrote element 65536"
# - unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# - if (i < n) {
# - y[i] = x[i];
# - }
# + unsigned short i = blockIdx.x * blockDim.x + threadIdx.x;
# + if (i < n) y[i] = x[i];


# %% id=01-copy cause="with an output that is full of nan before the launch, element 0 is nan"
# - if (i < n) {
# - y[i] = x[i];
# - }
# + if (i < n) y[i] = y[i] * 0.0f + x[i];


# %% id=01-add cause="with an output that is full of nan before the launch, element 0 is nan"
# - if (i < n) {
# - z[i] = x[i] + y[i];
# - }
# + if (i < n) z[i] = z[i] * 0.0f + x[i] + y[i];


# %% id=01-relu cause="with an input of -inf, 0 and inf, no thread wrote element 1"
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + if (input[i] > 0.0f) output[i] = input[i];
# + if (input[i] < 0.0f) output[i] = 0.0f;


# %% id=01-relu cause="with an input of -inf, 0 and inf, element 0 is nan, and should be 0"
# - output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + output[i] = input[i] * (input[i] > 0.0f);


# %% id=01-one-wait cause="host arrays that are filled after your function has returned"
def forward(a, x):
    m, n = a.shape
    a, x = agt.pin(a), agt.pin(x)
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return agt.relu(m, product.output(), agt.zeros(m).partition(128)).output().to_host()


# %% id=01-challenge cause="get below 80"
ADD = r"""
extern "C" __global__ void add(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = x[i] + y[i];
    }
}
"""


def layer(a, x, b):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128)).output()
    total = agt.Kernel(ADD)(m, product, agt.h2d(b), agt.zeros(m).partition(128)).output()
    return agt.relu(m, total, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-challenge cause="and should be"
LAYER = r"""
extern "C" __global__ void my_layer(unsigned int m, unsigned int n, const float* a, const float* x,
                                    const float* b, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += a[row * n + j] * x[j];
        }
        y[row] = sum > 0.0f ? sum : 0.0f;
    }
}
"""


def layer(a, x, b):
    m, n = a.shape
    y = agt.zeros(m).partition(128)
    return agt.Kernel(LAYER)(m, n, agt.h2d(a), agt.h2d(x), agt.h2d(b), y).output().to_host()


# %% id=01-challenge of=above cause="and should be"
# - float sum = 0.0f;
# + float sum = b[row];
# - y[row] = sum > 0.0f ? sum : 0.0f;
# + y[row] = sum;


# %% id=01-challenge of=above cause="and should be"
# - y[row] = sum > 0.0f ? sum : 0.0f;
# + y[row] = sum > 0.0f ? sum + b[row] : b[row];


# %% id=01-challenge of=above cause="out of bounds"
# - if (row < m) {
# - float sum = 0.0f;
# + {
# +     float sum = b[row];


# %% id=01-challenge of=above cause="building the operation already ran something"
# - float sum = 0.0f;
# + float sum = b[row];
# - return agt.Kernel(LAYER)(m, n, agt.h2d(a), agt.h2d(x), agt.h2d(b), y).output().to_host()
# + return agt.Kernel(LAYER)(m, n, agt.h2d(a), agt.h2d(x).sync(), agt.h2d(b), y).output().to_host()


# %% id=01-challenge cause="is in no copy from memory that a kernel has written"
def layer(a, x, b):
    return agt.value(np.maximum(a @ x + b, 0))


# %% id=01-challenge cause="`layer` should return an operation, and returned ndarray"
def layer(a, x, b):
    return np.maximum(a @ x + b, 0)


# %% id=01-grid cause="with n=0 and threads=1, that's 1 block, and 1 of them would have nothing to do"
# - return (n + threads - 1) // threads
# + return max(1, (n + threads - 1) // threads)


# %% id=01-copy cause="no thread wrote element"
# - y[i] = x[i];
# + if (x[i] != 0.0f) y[i] = x[i];


# %% id=01-copy cause="with n=256 and blocks of 128, element"
# - y[i] = x[i];
# + y[i] = (int)(x[i] * 100000.0f) / 100000.0f;


# %% id=01-scale cause="is 0, and should be -15.25"
# - y[i] = a * x[i] + b;
# + y[i] = x[i] != 0.0f ? a * x[i] + b : 0.0f;


# %% id=01-one-wait cause="this ran on the device: h2d, h2d, matvec_naive, relu, relu, d2h"
# - return positive.to_host()
# + return agt.relu(m, positive, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="Two copies there, two kernels and one copy back are enough"
# - y = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), out).output()
# + both = agt.zip(agt.h2d(x), agt.h2d(x)).first()
# + y = agt.matvec_naive(m, n, agt.h2d(a), both, out).output()


# %% id=01-add cause="5 threads write element 19"
# - if (i < n) {
# - z[i] = x[i] + y[i];
# - }
# + i = min(i, n - 1);
# + z[i] = x[i] + y[i];


# %% id=01-scale cause="5 threads write element 19"
# - unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# - if (i < n) {
# - y[i] = a * x[i] + b;
# - }
# + unsigned int i = min(blockIdx.x * blockDim.x + threadIdx.x, n - 1);
# + y[i] = a * x[i] + b;


# %% id=01-matvec of=starter cause="threads write element 5"
# - unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
# - // your code
# + unsigned int row = min(blockIdx.x * blockDim.x + threadIdx.x, m - 1);
# + float sum = 0.0f;
# + for (unsigned int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
# + y[row] = sum;


# %% id=01-broadcast cause="2 threads write element"
# - if (row < m && col < n) {
# - out[row * n + col] = tall[row] + wide[col];
# - }
# + unsigned int k = row * n + col;
# + if (k < m * n) out[k] = tall[k / n] + wide[k % n];


# %% id=01-reverse cause="2 threads write element"
# - y[i] = x[n - 1 - i];
# + y[i] = x[n - 1 - i];
# + y[n - 1 - i] = x[i];


# %% id=01-meanwhile cause="when `job` raises an error, the error doesn't come out"
# - job()
# + try:
# +     job()
# + except Exception:
# +     pass


# %% id=01-matvec of=starter cause="with blocks of 4, kernel 'my_matvec': block (0, 0, 0), thread (0, 0, 0) reads 'part'[4], which nothing"
#   {
# +     __shared__ float part[32];                         // of x, and blocks have 32 threads at least
# - // your code
# + float s = 0.0f;
# + for (unsigned int t = 0; t < n; t += 32) {
# +     if (threadIdx.x < 32 && t + threadIdx.x < n) part[threadIdx.x] = x[t + threadIdx.x];
# +     __syncthreads();
# +     if (row < m) for (unsigned int k = 0; k < 32 && t + k < n; k++) s += a[row * n + t + k] * part[k];
# +     __syncthreads();
# + }
# + if (row < m) y[row] = s;
