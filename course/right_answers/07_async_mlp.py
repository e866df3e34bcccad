"""Right answers to exercises of course/07_async_mlp.py in other forms than the solution's."""


# %% id=07-chain
def chain(x, w0, w1, gemm, matvec, relu):
    """Room is made stage by stage, and not in advance."""
    rows, columns = len(x), w0.shape[1]

    def hidden(x):
        return agt.zeros((rows, columns)).and_then(lambda room: gemm(x, w0, room))

    def output(hidden):
        return agt.zeros(rows).and_then(lambda room: matvec(hidden, w1, room))

    return agt.h2d(x).and_then(hidden).and_then(output).and_then(relu).and_then(agt.d2h)


# %% id=07-race
def race(mlp, batches, w0, w1):
    """One copy there and one back, and the weights multiplied first."""
    inputs, outputs = agt.pinned((8, 64, 64)), agt.pinned(512)
    places = [agt.zeros(inputs.shape).sync(), agt.zeros(512).sync()]
    kernel = agt.Kernel(ONE_KERNEL)
    steps = agt.zip(
        agt.memcpy(places[0].borrow(), inputs),
        kernel(places[0].borrow(), w0, w1, places[1].borrow().partition(64)),
        agt.d2h(places[1].borrow(), out=outputs),
    )
    graph = steps.graph_on(agt.create_stream())

    async def go():
        for there, batch in zip(inputs, batches, strict=True):
            there[:] = batch
        await graph.launch()
        return list(outputs.reshape(8, 64).copy())

    return go


ONE_KERNEL = r"""
extern "C" __global__ void fused(const float* x, const float* w0, const float* w1, float* y)
{
    __shared__ float v[64];
    unsigned int t = threadIdx.x, row = blockIdx.x * 64 + t;
    float sum = 0.0f, score = 0.0f;
    for (unsigned int j = 0; j < 64; j++) sum += w0[t * 64 + j] * w1[j];
    v[t] = sum;
    __syncthreads();
    for (unsigned int j = 0; j < 64; j++) score += x[row * 64 + j] * v[j];
    y[row] = score > 0.0f ? score : 0.0f;
}
"""


# %% id=07-two-devices
import asyncio


def two_devices(change, take=lambda x: x):
    async def on_both(recipe, batches, weights, devices):
        copies = []
        for device in devices:
            with agt.using(device):
                copies.append(await agt.h2d(weights).share())
        tasks = []
        for i, x in enumerate(batches):
            with agt.using(devices[i % 2]):
                tasks.append(agt.spawn(change(recipe(x, copies[i % 2]))))
        return [take(result) for result in await asyncio.gather(*tasks)]

    return on_both


on_both = two_devices(lambda op: op.named("mine"))


# %% id=07-two-devices of=above
# - on_both = two_devices(lambda op: op.named("mine"))
# + on_both = two_devices(lambda op: agt.overlap(op, agt.value(0)), lambda pair: pair[0])


# %% id=07-capture
capture = lambda ops, stream: agt.overlap(
    *[op.named("mine").prepare().launch() for op in ops]
).graph_on(stream)


# %% id=07-capture
def capture(ops, stream):
    arms = agt.overlap(*[op.prepare().launch() for op in ops])
    with agt.CudaGraph.scope(stream) as scope:
        scope.record(arms)
    return scope.graph


# %% id=07-race
def race(mlp, batches, w0, w1):
    """The weights multiplied in advance; a graph with two kernels for each batch."""
    known = agt.d2h(w0).sync() @ agt.d2h(w1).sync()
    v = agt.h2d(agt.pin(known.astype(np.float32))).sync().share()

    def one(x):
        def score(arrays):
            x, out = arrays
            return agt.matvec_naive(*x.shape, x, v, out.partition(64)).output().and_then(positive)

        return agt.zip(agt.h2d(x), agt.zeros(len(x))).and_then(score).to_host()

    def positive(out):
        blocks = out.partition(64)
        return agt.relu(out.size, blocks, blocks).output()

    arms = [one(x).prepare().launch() for x in batches]
    graph = agt.overlap(*arms).graph_on(agt.create_stream())

    async def go():
        return [scores.copy() for scores in await graph.launch()]

    return go


# %% id=07-urgent
async def urgent(ops):
    first, *others = ops
    done = [await agt.spawn(first)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait_for(op)) for op in others]
    return done + [task.result() for task in tasks]


async def wait_for(op):
    return await op


# %% id=07-urgent
async def urgent(ops):
    return (await ops[0], *await agt.overlap(*ops[1:]))


# %% id=07-race
def race(mlp, batches, w0, w1):
    """One copy there, one kernel with a warp for each row, and one copy back: 21 µs."""
    inputs, outputs = agt.pinned((8, 64, 64)), agt.pinned(512)
    x, y = agt.zeros(inputs.shape).sync(), agt.zeros(512).sync()
    known = agt.d2h(w0).sync() @ agt.d2h(w1).sync()
    v = agt.h2d(agt.pin(known.astype(np.float32))).sync().share()
    steps = agt.zip(
        agt.memcpy(x.borrow(), inputs),
        agt.Kernel(WARP_EACH)(x.borrow(), v, y.borrow(), grid=64, block=256),
        agt.d2h(y.borrow(), out=outputs),
    )
    graph = steps.graph_on(agt.create_stream())

    async def go():
        inputs[:] = batches
        await graph.launch()
        return list(outputs.reshape(8, 64).copy())

    return go


WARP_EACH = r"""
extern "C" __global__ void warp_each(const float* x, const float* v, float* y)
{
    unsigned int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    float sum = x[row * 64 + lane] * v[lane] + x[row * 64 + 32 + lane] * v[32 + lane];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (lane == 0) y[row] = sum > 0.0f ? sum : 0.0f;
}
"""


# %% id=07-upload
def upload(w0, w1):
    """The operation runs once, for whoever asks."""
    return agt.zip(agt.h2d(w0, "W0").shared(), agt.h2d(w1, "W1").shared())


# %% id=07-upload
def upload(w0, w1):
    return agt.overlap(*[agt.h2d(w).share() for w in (w0, w1)]).map(list)
