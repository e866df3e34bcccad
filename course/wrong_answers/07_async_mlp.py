"""Plausible wrong answers to the exercises of course/07_async_mlp.py; see tools/build_notebooks.py."""


# %% id=07-in-flight cause="no two operations were at work at the same time"
async def run_all(ops):
    return [await agt.spawn(op) for op in ops]


# %% id=07-in-flight cause="no two operations were at work at the same time"
async def run_all(ops):
    return await agt.zip(*ops)


# %% id=07-in-flight cause="blocks the event loop"
async def run_all(ops):
    return [op.sync() for op in ops]


# %% id=07-in-flight cause="with a device that takes its time"
async def run_all(ops):
    tasks = [agt.spawn(op) for op in ops]
    return [await task for task in asyncio.as_completed(tasks)]


# %% id=07-in-flight cause="your code raised TypeError: a coroutine was expected"
async def run_all(ops):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(op) for op in ops]
    return [task.result() for task in tasks]


# %% id=07-in-flight cause="`d2h` ran 0 times"
async def run_all(ops):
    return [op.into_future() for op in ops]


# %% id=07-in-flight cause="should return a list of 4, one for each in order, and returned None"
async def run_all(ops):
    async with asyncio.TaskGroup() as group:
        for op in ops:
            group.create_task(asyncio.wait([agt.spawn(op)]))


# %% id=07-in-flight cause="and returned one of 3"
async def run_all(ops):
    *others, last = [agt.spawn(op) for op in ops]
    await last
    return [await task for task in others]


# %% id=07-outcomes cause="kernel 'beyond'"
async def outcomes(ops):
    return await asyncio.gather(*ops)


# %% id=07-outcomes cause="cancelled task"
async def outcomes(ops):
    async def run(op):
        return await op

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(op)) for op in ops]
    except* agt.DeviceError:
        pass
    return [task.result() for task in tasks]


# %% id=07-outcomes cause="no more than 1 of 2 operations were in flight at a time"
async def outcomes(ops):
    results = []
    for op in ops:
        try:
            results.append(await op)
        except agt.DeviceError as error:
            results.append(error)
    return results


# %% id=07-outcomes cause="and returned one of 2"
async def outcomes(ops):
    results = await asyncio.gather(*ops, return_exceptions=True)
    return [result for result in results if not isinstance(result, Exception)]


# %% id=07-outcomes cause="the error should be in the list, and there is None"
async def outcomes(ops):
    results = await asyncio.gather(*ops, return_exceptions=True)
    return [None if isinstance(result, Exception) else result for result in results]


# %% id=07-outcomes cause="a NumPy array should come out"
async def outcomes(ops):
    try:
        return await asyncio.gather(*ops)
    except agt.DeviceError as error:
        return [error for _ in ops]


# %% id=07-outcomes cause="as it is meant to here, and its error came out of your function"
async def outcomes(ops):
    async def run(op):
        return await op

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(op)) for op in ops]
    return [await task for task in tasks]


# %% id=07-softmax cause="is nan, and"
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += expf(x[j]);
        }
        y[i] = expf(x[i]) / sum;
    }
}
""")


# %% id=07-softmax cause="blocks of 64 and numbers from -20"
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float top = 0.0f, sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            top = fmaxf(top, x[j]);
        }
        for (unsigned int j = 0; j < n; j++) {
            sum += expf(x[j] - top);
        }
        y[i] = expf(x[i] - top) / sum;
    }
}
""")


# %% id=07-softmax cause="n=64, blocks of 16"
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float top = x[0], sum = 0.0f;
        for (unsigned int j = 1; j < n; j++) {
            top = fmaxf(top, x[j]);
        }
        for (unsigned int j = 0; j < blockDim.x; j++) {
            sum += expf(x[j] - top);
        }
        y[i] = expf(x[i] - top) / sum;
    }
}
""")


# %% id=07-softmax cause="is right"
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float top = x[0];
        for (unsigned int j = 1; j < n; j++) {
            top = fmaxf(top, x[j]);
        }
        y[i] = expf(x[i] - top);
    }
}
""")


# %% id=07-softmax cause="out of bounds"
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float top = x[0], sum = 0.0f;
    for (unsigned int j = 1; j < n; j++) {
        top = fmaxf(top, x[j]);
    }
    for (unsigned int j = 0; j < n; j++) {
        sum += expf(x[j] - top);
    }
    y[i] = expf(x[i] - top) / sum;
}
""")


# %% id=07-limited cause="5 were in flight at a time, and no more than 2 may be"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run(op):
        async with gate:
            task = agt.spawn(op)
        return await task

    return await asyncio.gather(*[run(op) for op in ops])


# %% id=07-limited cause="no more than 1 were in flight at a time, where 2 could have been"
async def run_limited(ops, limit):
    return [await op for op in ops]


# %% id=07-limited cause="its place stayed empty"
async def run_limited(ops, limit):
    results = []
    for i in range(0, len(ops), limit):
        results += await asyncio.gather(*ops[i : i + limit])
    return results


# %% id=07-limited cause="3 were in flight at a time, and no more than 2 may be"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit + 1)

    async def run(op):
        async with gate:
            return await op

    return await asyncio.gather(*[run(op) for op in ops])


# %% id=07-limited cause="`sync` blocks the event loop"
async def run_limited(ops, limit):
    return [op.sync() for op in ops]


# %% id=07-limited cause="with result 0, the result has shape"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)
    results = []

    async def run(op):
        async with gate:
            results.append(await op)

    await asyncio.gather(*[run(op) for op in ops])
    return results


# %% id=07-limited cause="`d2h` ran 2 times, and 5 times is right"
async def run_limited(ops, limit):
    return await asyncio.gather(*ops[:limit])


# %% id=07-limited cause="`run_limited` should return a list of 5, one for each in order, and returned one of 4"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run(op):
        async with gate:
            return await op

    return (await asyncio.gather(*[run(op) for op in ops]))[1:]


# %% id=07-limited cause="operation 1 of 5 did not run"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run():
        async with gate:
            return await ops[0]

    return await asyncio.gather(*[run() for _ in ops])


# %% id=07-limited cause="with result 0, the result has shape"
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run(op):
        async with gate:
            return await op

    return (await asyncio.gather(*[run(op) for op in ops]))[::-1]


# %% id=07-tiled cause="and a 16th of that is enough"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0.0f;
        for (unsigned int i = 0; i < k; i++) {
            sum += a[row * k + i] * b[i * n + col];
        }
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="without a __syncthreads() between them"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="without a __syncthreads() between them"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="which nothing has written"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="out of bounds"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = a[row * k + t + x];
        tile_b[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="with m=50, n=30, k=70"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t + 16 <= k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="and a 16th of that is enough"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            if (t + i < k && col < n) sum += tile_a[y][i] * b[(t + i) * n + col];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="is right"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[x][i];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-tiled cause="no thread wrote element"
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n && sum > 0.0f) {
        c[row * n + col] = sum;
    }
}
""")


# %% id=07-two-devices cause="batch 1 ran on device sim:0, and belongs on sim:1"
async def on_both(recipe, batches, weights, devices):
    w = await agt.h2d(weights).share()
    return await asyncio.gather(*[agt.spawn(recipe(x, w)) for x in batches])


# %% id=07-two-devices cause="is on sim:0, and the operation runs on sim:1"
async def on_both(recipe, batches, weights, devices):
    w = await agt.h2d(weights).share()
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(x, w)))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices cause="the weights were copied 4 times"
async def on_both(recipe, batches, weights, devices):
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            w = await agt.h2d(weights)
            tasks.append(agt.spawn(recipe(x, w)))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices cause="no more than 1 of 4 operations were in flight at a time"
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())
    results = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            results.append(await recipe(x, copies[i % 2]))
    return results


# %% id=07-two-devices cause="batch 1 ran on device sim:0, and belongs on sim:1"
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())
    half = (len(batches) + 1) // 2
    tasks = []
    for i, x in enumerate(batches):
        side = int(i >= half)
        with agt.using(devices[side]):
            tasks.append(agt.spawn(recipe(x, copies[side])))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices cause="for batch 1, the result has shape"
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())
    results = []
    for side in (0, 1):
        with agt.using(devices[side]):
            results += [agt.spawn(recipe(x, copies[side])) for x in batches[side::2]]
    return await asyncio.gather(*results)


# %% id=07-two-devices cause="`sync` blocks the event loop"
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(agt.h2d(weights).sync().share())
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(x, copies[i % 2])))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices cause="`relu` ran 2 times, and 4 times is right"
async def on_both(recipe, batches, weights, devices):
    tasks = []
    for device, x in zip(devices, batches):
        with agt.using(device):
            w = await agt.h2d(weights)
            tasks.append(agt.spawn(recipe(x, w)))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices cause="no more than 2 of 4 operations were in flight at a time"
async def on_both(recipe, batches, weights, devices):
    results = [None] * len(batches)
    for side, device in enumerate(devices):
        with agt.using(device):
            w = await agt.h2d(weights).share()
            results[side::2] = await asyncio.gather(*[recipe(x, w) for x in batches[side::2]])
    return results


# %% id=07-in-flight cause="no more than 2 of 4 operations were in flight at a time"
async def run_all(ops):
    results = []
    for i in range(0, len(ops), 2):
        results += await asyncio.gather(*ops[i : i + 2])
    return results


# %% id=07-in-flight cause="no more than 2 of 4 operations were in flight at a time"
async def run_all(ops):
    gate = asyncio.Semaphore(2)

    async def run(op):
        async with gate:
            return await op

    return await asyncio.gather(*[run(op) for op in ops])


# %% id=07-limited cause="its place stayed empty"
async def run_limited(ops, limit):
    async def lane(first):
        return [await op for op in ops[first::limit]]

    lanes = await asyncio.gather(*[lane(i) for i in range(limit)])
    return [lanes[i % limit][i // limit] for i in range(len(ops))]


# %% id=07-two-devices cause="operation 3 of 4 did not run"
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())
    tasks = []
    for i in range(len(batches)):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(batches[min(i, 2)], copies[i % 2])))
    return await asyncio.gather(*tasks)
