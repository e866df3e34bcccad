"""Right answers to exercises of course/01_sync_kernels.py in other forms than the solution's."""


# %% id=01-one-wait
def forward(a, x):
    m, n = a.shape
    a_there, x_there = agt.overlap(agt.h2d(a), agt.h2d(x)).unzip()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    return agt.relu(m, product.output(), agt.zeros(m).partition(128)).output().to_host()


# %% id=01-one-wait
FUSED = r"""
extern "C" __global__ void fused(unsigned int m, unsigned int n, const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
        y[row] = sum > 0.0f ? sum : 0.0f;
    }
}
"""


def forward(a, x):
    m, n = a.shape
    y = agt.zeros(m).partition(128)
    return agt.Kernel(FUSED)(m, n, agt.h2d(a), agt.h2d(x), y).output().to_host()


# %% id=01-meanwhile
import asyncio


def with_a_job(op, job):
    async def both():
        task = agt.spawn(op)
        await asyncio.sleep(0)
        job()
        return await task

    return asyncio.run(both())


# %% id=01-meanwhile
# - stream.synchronize()
# + while not stream.done:
# +     pass


# %% id=01-grid
import numpy as np


blocks_needed = lambda n, threads: np.int64(-(-n // threads))


# %% id=01-transpose
# - unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
# + __shared__ float tile[32][33];
# + unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
# - if (row < n && col < m) {
# - out[row * m + col] = a[col * n + row];
# - }
# + if (row < n && col < m) tile[threadIdx.y][threadIdx.x] = a[col * n + row];
# + __syncthreads();
# + if (row < n && col < m) out[row * m + col] = tile[threadIdx.y][threadIdx.x];


# %% id=01-reverse of=starter
# - unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# - // your lines
# + unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, other = n - 1 - i;
# + if (2 * i >= n) return;
# + float first = x[i];
# + y[i] = x[other];
# + y[other] = first;


# %% id=01-relu
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* x, float* y)
{
    __shared__ float own[1024];
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    own[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (own[threadIdx.x] < 0.0f) own[threadIdx.x] = 0.0f;
    if (i < n) y[i] = own[threadIdx.x];
}
""")


# %% id=01-grid
def blocks_needed(n, threads):
    blocks = 0
    while blocks * threads < n:
        blocks += 1
    return blocks


# %% id=01-one-wait
def forward(a, x):
    """All is described when somebody runs it, and pinned then."""
    m, n = a.shape

    def enqueue(_):
        there = agt.h2d(agt.pin(a)), agt.h2d(agt.pin(x))
        product = agt.matvec_naive(m, n, *there, agt.zeros(m).partition(128)).output()
        return agt.relu(m, product, agt.zeros(m).partition(128)).output().to_host()

    return agt.with_context(enqueue)


# %% id=01-challenge
LAYER = r"""
extern "C" __global__ void my_layer(unsigned int m, unsigned int n, const float* all, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    const float *x = all + m * n, *b = x + n;
    if (row >= m) return;
    float sum = b[row];
    for (unsigned int j = 0; j < n; j++) sum += all[row * n + j] * x[j];
    y[row] = fmaxf(sum, 0.0f);
}
"""


def layer(a, x, b):
    """The three arrays in one copy."""
    m, n = a.shape
    everything = agt.pin(np.concatenate([a.ravel(), x, b]))
    y = agt.zeros(m).partition(64)
    return agt.Kernel(LAYER)(m, n, agt.h2d(everything), y).output().to_host()
