"""Plausible wrong answers to the exercises of course/01_sync_kernels.py; see tools/build_notebooks.py."""


# %% id=01-grid cause="with n=1 and threads=32, 0 blocks make 0 threads: too few for 1 element"
def blocks_needed(n, threads):
    return n // threads


# %% id=01-grid cause="1 too many"
def blocks_needed(n, threads):
    return n // threads + 1


# %% id=01-grid cause="too few for"
def blocks_needed(n, threads):
    return round(n / threads)


# %% id=01-grid cause="a number of blocks is an `int`"
def blocks_needed(n, threads):
    return n / threads


# %% id=01-relu cause="with n=1000 and blocks of 256, kernel 'my_relu': block (3, 0, 0)"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    output[i] = input[i] > 0.0f ? input[i] : 0.0f;
}
""")


# %% id=01-relu cause="out of bounds"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) {
        output[i] = input[i] > 0.0f ? input[i] : 0.0f;
    }
}
""")


# %% id=01-relu cause="no thread wrote element 128"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = threadIdx.x;
    if (i < n) {
        output[i] = input[i] > 0.0f ? input[i] : 0.0f;
    }
}
""")


# %% id=01-relu cause="is right"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        output[i] = input[i] > 0.0f ? input[i] : -input[i];
    }
}
""")


# %% id=01-relu cause="no thread wrote element"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && input[i] > 0.0f) {
        output[i] = input[i];
    }
}
""")


# %% id=01-relu cause="one array as input and output"
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        output[i] = 0.0f;
        if (input[i] > 0.0f) {
            output[i] = input[i];
        }
    }
}
""")


# %% id=01-matvec cause="out of bounds"
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (unsigned int j = 0; j < n; j++) {
        sum += a[row * n + j] * x[j];
    }
    y[row] = sum;
}
""")


# %% id=01-matvec cause="element 0 was added to what the output held before the launch"
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


# %% id=01-matvec cause="(100, 30)"
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += a[row * n + j] * x[j];
        }
        y[row] = sum;
    }
}
""")


# %% id=01-matvec cause="element 0 is"
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += a[j * m + row] * x[j];
        }
        y[row] = sum;
    }
}
""")


# %% id=01-matvec cause="element 0 is"
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        for (unsigned int j = 0; j < n; j++) {
            y[row] = a[row * n + j] * x[j];
        }
    }
}
""")


# %% id=01-transpose cause="element"
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        out[row * m + col] = a[col * n + row];
    }
}
""")


# %% id=01-transpose cause="out of bounds"
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        out[row * m + col] = a[col * n + row];
    }
}
""")


# %% id=01-transpose cause="(20, 50)"
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < m) {
        out[row * m + col] = a[col * m + row];
    }
}
""")


# %% id=01-transpose cause="element (0, 1) is"
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < m) {
        out[row * m + col] = a[row * m + col];
    }
}
""")


# %% id=01-one-wait cause="building the operation already ran something"
def forward(a, x):
    m, n = a.shape
    a_there = agt.h2d(a).sync()
    x_there = agt.h2d(x).sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="building the operation already ran something"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    y = product.output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host().sync()


# %% id=01-one-wait cause="and got an operation. Call unpartition() on a Partition; use op.to_host()"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    y = product.output()
    return agt.d2h(agt.relu(m, y, agt.zeros(m).partition(128)).output())


# %% id=01-one-wait cause="a launch gives back all its arrays"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return agt.relu(m, product, agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait cause="`relu` ran 0 times"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    return product.output().to_host()


# %% id=01-one-wait cause="nothing makes `relu` (stream"
def forward(a, x):
    m, n = a.shape
    positive = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(128)).output()
    product = agt.matvec_naive(m, n, agt.h2d(a), positive, agt.zeros(m).partition(128))
    return product.output().to_host()


# %% id=01-one-wait cause="is 0, and"
def forward(a, x):
    m, n = a.shape
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    y = product.output()
    swapped = agt.relu(m, agt.zeros(m), y.partition(128))
    return swapped.output().to_host()


# %% id=01-one-wait cause="should return an operation, and returned ndarray"
def forward(a, x):
    return np.maximum(a @ x, 0)


# %% id=01-one-wait cause="on stream"
def forward(a, x):
    m, n = a.shape
    a_there, x_there = agt.overlap(agt.h2d(a), agt.h2d(x)).unzip()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output()
    return agt.relu(m, y, agt.zeros(m).partition(128)).output().to_host()


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


# %% id=01-meanwhile cause="the device did nothing during `job`"
def with_a_job(op, job):
    stream = agt.create_stream()
    result = op.async_on(stream)
    stream.synchronize()
    job()
    return result


# %% id=01-meanwhile cause="before the device was done"
def with_a_job(op, job):
    stream = agt.create_stream()
    result = op.async_on(stream)
    job()
    return result


# %% id=01-meanwhile cause="with a device that takes its time"
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
def with_a_job(op, job):
    stream = agt.create_stream()
    result = op.async_on(stream)
    job()
    stream.synchronize()
    return agt.value(result).sync()


# %% id=01-meanwhile cause="a NumPy array should come out, and this did: None"
def with_a_job(op, job):
    stream = agt.create_stream()
    op.async_on(stream)
    job()
    stream.synchronize()


# %% id=01-meanwhile cause="nothing of it ran: an `async def` runs when somebody awaits it"
async def with_a_job(op, job):
    task = agt.spawn(op)
    job()
    return await task


# %% id=01-meanwhile cause="the job was done 0 times"
def with_a_job(op, job):
    return op.sync()
