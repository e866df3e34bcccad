"""Plausible wrong answers to the exercises of course/07_async_mlp.py; see tools/build_notebooks.py."""


# %% id=07-two-devices cause="batch 1 ran on device sim:0, but belongs on sim:1"
async def on_both(recipe, batches, weights, devices):
    w = await agt.h2d(weights).share()
    return await asyncio.gather(*[agt.spawn(recipe(x, w)) for x in batches])


# %% id=07-two-devices cause="the weights were copied 7 times"
async def on_both(recipe, batches, weights, devices):
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            w = await agt.h2d(weights)
            tasks.append(agt.spawn(recipe(x, w)))
    return await asyncio.gather(*tasks)


# %% id=07-two-devices of=above cause="is on sim:0, and the operation runs on sim:1"
#   async def on_both(recipe, batches, weights, devices):
# +     w = await agt.h2d(weights).share()
# - w = await agt.h2d(weights)


# %% id=07-two-devices of=above cause="`relu` ran 2 times, and should run 7 times"
# - for i, x in enumerate(batches):
# - with agt.using(devices[i % 2]):
# + for device, x in zip(devices, batches):
# +     with agt.using(device):


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


# %% id=07-two-devices cause="`sync` or `synchronize` blocks the event loop"
# - copies.append(await agt.h2d(weights).share())
# + copies.append(agt.h2d(weights).sync().share())


# %% id=07-two-devices cause="no more than 3 of 5 operations were in flight at a time"
async def on_both(recipe, batches, weights, devices):
    results = [None] * len(batches)
    for side, device in enumerate(devices):
        with agt.using(device):
            w = await agt.h2d(weights).share()
            results[side::2] = await asyncio.gather(*[recipe(x, w) for x in batches[side::2]])
    return results


# %% id=07-two-devices cause="operation 3 of 7 did not run"
# - for i, x in enumerate(batches):
# + for i in range(len(batches)):
# - tasks.append(agt.spawn(recipe(x, copies[i % 2])))
# + tasks.append(agt.spawn(recipe(batches[min(i, 2)], copies[i % 2])))


# %% id=07-chain cause="building the operation already ran something"
def chain(x, w0, w1, gemm, matvec, relu):
    n = len(x)
    room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
    x, hidden, output = room.sync()
    return (
        gemm(x, w0, hidden)
        .and_then(lambda hidden: matvec(hidden, w1, output))
        .and_then(relu)
        .to_host()
    )


# %% id=07-chain cause="didn't call the `gemm` it was given"
# - x, hidden, output = arrays
# - return (
# - gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)
# - )
# + _, hidden, output = arrays
# + return matvec(hidden, w1, output).and_then(relu)


# %% id=07-chain cause="one chain belongs on one stream"
def chain(x, w0, w1, gemm, matvec, relu):
    n = len(x)
    room = agt.overlap(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))

    def stages(arrays):
        x, hidden, output = arrays
        done = gemm(x, w0, hidden)
        return done.and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)

    return room.and_then(stages).to_host()


# %% id=07-chain of=above cause="must have shape (48,), and array 'zeros' has (80,)"
# - n = len(x)
# - room = agt.overlap(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
# + rows, columns = len(x), w0.shape[1]
# + room = agt.zip(agt.h2d(x, "x"), agt.zeros((rows, columns)), agt.zeros(columns))


# %% id=07-chain of=above cause="a NumPy array should come out"
# - room = agt.overlap(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
# + room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
# - return room.and_then(stages).to_host()
# + return room.and_then(stages).and_then(lambda result: agt.zip(agt.d2h(result)))


# %% id=07-chain cause="`relu` is ahead of `matvec_naive` on stream 1, and has to come after it"
# - return (
# - gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)
# - )
# + product, cut = gemm(x, w0, hidden), relu(output)
# + return agt.zip(product, cut).and_then(lambda both: matvec(both[0], w1, both[1]))


# %% id=07-upload cause="`upload` should yield shared arrays"
def upload(w0, w1):
    return agt.zip(agt.h2d(w0, "W0").share(), agt.h2d(w1, "W1"))


# %% id=07-upload cause="should yield both weights"
def upload(w0, w1):
    return agt.h2d(w0, "W0").share()


# %% id=07-upload cause="building the operation already ran something"
def upload(w0, w1):
    return agt.value((agt.h2d(w0).sync().share(), agt.h2d(w1).sync().share()))


# %% id=07-upload cause="`h2d` ran 4 times, and should run 2 times"
def upload(w0, w1):
    first = agt.zip(agt.h2d(w0).share(), agt.h2d(w1).share())
    return agt.zip(first, agt.h2d(w0).share(), agt.h2d(w1).share()).map(lambda all: all[1:])


# %% id=07-upload cause="had returned), the result has shape"
def upload(w0, w1):
    return agt.zip(agt.h2d(w1, "W1").share(), agt.h2d(w0, "W0").share())


# %% id=07-capture cause="`zip` keeps an order"
def capture(ops, stream):
    return agt.zip(*[op.prepare().launch() for op in ops]).graph_on(stream)


# %% id=07-capture cause="allocates memory, and a graph of this course does not"
def capture(ops, stream):
    return agt.overlap(*ops).graph_on(stream)


# %% id=07-capture cause="`capture` should return a graph"
def capture(ops, stream):
    return agt.overlap(*[op.prepare().launch() for op in ops])


# %% id=07-capture cause="should return a list of 4"
def capture(ops, stream):
    return ops[0].prepare().launch().graph_on(stream)


# %% id=07-capture cause="wrong order, it seems: result 0, the result has shape"
# - return agt.overlap(*arms).graph_on(stream)
# + return agt.overlap(*arms[::-1]).graph_on(stream)


# %% id=07-capture cause="in a row"
# - return agt.overlap(*arms).graph_on(stream)
# + both = agt.overlap(agt.zip(*arms[::2]), agt.zip(*arms[1::2]))
# + return both.map(lambda done: [one for pair in zip(*done) for one in pair]).graph_on(stream)


# %% id=07-race cause="`race` should return an `async def` function"
def race(mlp, batches, w0, w1):
    arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
    return agt.overlap(*arms).graph_on(agt.create_stream()).launch


# %% id=07-race cause="is in no copy from memory that a kernel has written"
def race(mlp, batches, w0, w1):
    a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()

    async def go():
        return [np.maximum(x @ a @ b, 0) for x in batches]

    return go


# %% id=07-race of=above cause="get below 45 µs. Where does the time go?"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
# + graph = agt.zip(*arms).graph_on(agt.create_stream())
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + return [scores.copy() for scores in await graph.launch()]


# %% id=07-race of=above cause="for batch 1, element 3 is"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + known = []
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + if not known:
# +     known.extend(await asyncio.gather(*[mlp(x, w0, w1) for x in batches]))
# + return known


# %% id=07-race of=above cause="`sync` or `synchronize` blocks the event loop"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
# + graph = agt.overlap(*arms).graph_on(agt.create_stream())
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + return graph.launch().sync()


# %% id=07-race of=above cause="returned one of 4"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + arms = [mlp(x, w0, w1).prepare().launch() for x in batches[::2]]
# + graph = agt.overlap(*arms).graph_on(agt.create_stream())
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + return await graph.launch()


# %% id=07-race of=above cause="is in no copy from memory that a kernel has written"
#   a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + dummy = mlp(batches[0], w0, w1).prepare().launch().graph_on(agt.create_stream())
#   async def go():
# +     await dummy.launch()


# %% id=07-race of=above cause="it takes 50 µs: get below 45 µs"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
# + graph = agt.overlap(*arms).graph_on(agt.create_stream())
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + return [scores.copy() for scores in await graph.launch()]


# %% id=07-race of=above cause="it takes 236 µs: get below 45 µs"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + ready = [mlp(x, w0, w1).prepare() for x in batches]
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + every = await asyncio.gather(*[one.launch() for one in ready])
# + return [scores.copy() for scores in every]


# %% id=07-race of=above cause="it takes 82 µs: get below 45 µs"
# - a, b = agt.d2h(w0).sync(), agt.d2h(w1).sync()
# + arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
# + graphs = [arm.graph_on(agt.create_stream()) for arm in arms]
# - return [np.maximum(x @ a @ b, 0) for x in batches]
# + every = await asyncio.gather(*[graph.launch() for graph in graphs])
# + return [scores.copy() for scores in every]


# %% id=07-chain cause="didn't call the `gemm` it was given"
def chain(x, w0, w1, gemm, matvec, relu):
    m, (k, n) = len(x), w0.shape
    room = agt.zip(agt.h2d(x, "x"), agt.zeros((m, n)), agt.zeros(m))

    def stages(arrays):
        x, hidden, output = arrays
        first = agt.sgemm_naive(m, n, k, 1.0, x, w0, 0.0, hidden.partition(16, 16)).output()
        return first.and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)

    return room.and_then(stages).to_host()


# %% id=07-chain cause="`h2d` ran 2 times"
def chain(x, w0, w1, gemm, matvec, relu):
    m = len(x)

    def stages(arrays):
        _, x, hidden, output = arrays
        return (
            gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)
        )

    room = agt.zip(agt.h2d(x), agt.h2d(x), agt.zeros((m, w0.shape[1])), agt.zeros(m))
    return room.and_then(stages).to_host()


# %% id=07-capture cause="captured on another stream than the given one"
# - return agt.overlap(*arms).graph_on(stream)
# + return agt.overlap(*arms).graph_on(agt.create_stream())


# %% id=07-capture cause="in a row"
def capture(ops, stream):
    arms = [op.prepare().launch() for op in ops]
    half = len(arms) // 2

    def rest(first):
        return agt.overlap(*arms[half:]).map(lambda second: (*first, *second))

    return agt.overlap(*arms[:half]).and_then(rest).graph_on(stream)


# %% id=07-chain cause="`d2d` ran 1 time"
# - gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)
# + gemm(x, agt.dup(w0).last(), hidden)
# + .and_then(lambda hidden: matvec(hidden, w1, output))
# + .and_then(relu)


# %% id=07-capture cause="with 7 operations, with launch 1, `graph.launch()` should return a list of 7"
def capture(ops, stream):
    return agt.overlap(*[op.prepare().launch() for op in ops[:4]]).graph_on(stream)


# %% id=07-two-devices cause="`relu` ran 4 times, and should run 7 times"
# - for i, x in enumerate(batches):
# + for i, x in enumerate(batches[:4]):


# %% id=07-two-devices cause="the error doesn't come out of your function"
async def on_both(recipe, batches, weights, devices):
    ops = []
    w = []
    for device in devices:
        with agt.using(device):
            w.append(await agt.h2d(weights).share())
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(x, w[i % 2])))
    return await asyncio.gather(*tasks, return_exceptions=True)


# %% id=07-race cause="with 8 batches, for batch 1, element 3 is"
def race(mlp, batches, w0, w1):
    stream = agt.create_stream()
    arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
    graph = agt.overlap(*arms).graph_on(stream)
    memo = {}

    async def go():
        key = float(batches[0].sum())
        if key not in memo:
            memo[key] = [r.copy() for r in await graph.launch()]
        return memo[key]

    return go


# %% id=07-two-devices cause="the weights were copied 0 times"
# + W = {}
# +
# +
# - copies.append(await agt.h2d(weights).share())
# + W[device] = W.get(device) or await agt.h2d(weights).share()
# + copies.append(W[device])


# %% id=07-upload cause="with everything asked once more"
MADE = {}


def upload(w0, w1):
    return MADE.setdefault(w0.shape, agt.zip(agt.h2d(w0, "W0").share(), agt.h2d(w1, "W1").share()))


# %% id=07-capture cause="`capture` ran something on the device"
def capture(ops, stream):
    for op in ops:
        op.sync()
    return agt.overlap(*[op.prepare().launch() for op in ops]).graph_on(stream)


# %% id=07-capture cause="`capture` ran something on the device"
def capture(ops, stream):
    agt.overlap(*[op for op in ops]).sync()
    return agt.overlap(*[op.prepare().launch() for op in ops]).graph_on(stream)


# %% id=07-two-devices cause="for batch 0, the result has shape (3000,)"
async def on_both(recipe, batches, weights, devices):
    ws = []
    for d in devices:
        with agt.using(d):
            ws.append(await agt.h2d(weights).share())
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(x, ws[i % 2])))
    return [await t for t in asyncio.as_completed(tasks)]


# %% id=07-chain cause="element 1 is 0.989873, and should be 1.38145"
# - def chain(x, w0, w1, gemm, matvec, relu):
# + def chain(x, w0, w1, gemm, matvec, relu):  # copies the batch while it describes
# - room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
# + room = agt.zip(agt.h2d(agt.pin(np.array(x))), agt.zeros((n, w0.shape[1])), agt.zeros(n))


# %% id=07-race cause="and results of the first came again, with 8 batches, for batch 1, element 3 is 0.00108"
# - every = agt.pinned((8 * 64, 64))  # eight batches are one large batch
# + every = agt.pin(np.concatenate(batches))  # once, and never again
# - np.concatenate(batches, out=every)
# - scores = await graph.launch()
# - return list(scores.reshape(8, 64).copy())
# + return list((await graph.launch()).reshape(8, 64))


# %% id=07-race cause="for batch 0, the result has shape (8,)"
# - every = agt.pinned((8 * 64, 64))  # eight batches are one large batch
# + every = agt.pinned((512, 64))
# - scores = await graph.launch()
# - return list(scores.reshape(8, 64).copy())
# + return list((await graph.launch()).reshape(64, 8)[:8])


# %% id=07-urgent cause="with 6 operations, all were ready after"
async def urgent(ops):  # knows how long one of them takes
    head = agt.spawn(ops[0])
    await agt.sleep(740)
    rest = await asyncio.gather(*ops[1:])
    return [await head, *rest]


# %% id=07-urgent cause="the urgent one was ready after"
async def urgent(ops):
    return await asyncio.gather(*[agt.spawn(op) for op in ops])


# %% id=07-urgent cause="once the urgent one is done, nobody needs to wait for anybody else"
async def urgent(ops):
    return [await op for op in ops]


# %% id=07-urgent cause="nobody needs to wait for anybody else"
async def urgent(ops):
    with agt.using(policy=agt.SingleStream()):
        return await asyncio.gather(*ops)


# %% id=07-urgent cause="the urgent one was ready after"
async def urgent(ops):
    first = agt.spawn(ops[0])
    await asyncio.sleep(0)
    rest = await asyncio.gather(*ops[1:])
    return [await first, *rest]


# %% id=07-urgent cause="`sync` or `synchronize` blocks the event loop"
# - first = await ops[0]
# + first = ops[0].sync()


# %% id=07-urgent cause="with operation 0, the result has shape"
# - return [first, *await asyncio.gather(*ops[1:])]
# + return [*await asyncio.gather(*ops[1:]), first]


# %% id=07-urgent cause="should return a list of 6"
async def urgent(ops):
    await ops[0]
    return await asyncio.gather(*ops[1:])


# %% id=07-urgent cause="the urgent one was ready after"
async def urgent(ops):
    rest = await asyncio.gather(*ops[1:])
    return [await ops[0], *rest]


# %% id=07-urgent cause="the urgent one was ready after"
async def urgent(ops):
    first, second = await asyncio.gather(*ops[:2])
    return [first, second, *await asyncio.gather(*ops[2:])]


# %% id=07-urgent cause="nobody needs to wait for anybody else"
async def urgent(ops):
    return [await ops[0], *await agt.zip(*ops[1:])]


# %% id=07-urgent cause="should return a list of 6"
async def urgent(ops):
    return [await ops[0], *await asyncio.gather(*ops[1:4])]


# %% id=07-urgent cause="the urgent one was ready after"
async def urgent(ops):
    return await agt.overlap(*ops)


# %% id=07-urgent cause="nobody needs to wait for anybody else"
# - return [first, *await asyncio.gather(*ops[1:])]
# + half = len(ops) // 2 + 1
# + return [first, *await asyncio.gather(*ops[1:half]), *await asyncio.gather(*ops[half:])]


# %% id=07-chain cause="which is the only argument of your function"
def chain(x, w0, w1, gemm, matvec, relu):
    n = len(x)
    room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
    first = room.and_then(lambda x, hidden, output: gemm(x, w0, hidden))
    return first.and_then(lambda hidden: matvec(hidden, w1, agt.zeros(n))).and_then(relu).to_host()


# %% id=07-upload cause="which has to be taken apart first"
def upload(w0, w1):
    return agt.zip(agt.h2d(w0, "W0"), agt.h2d(w1, "W1")).share()


# %% id=07-race of=starter cause="it takes 711 µs: get below 45 µs"
# - return await asyncio.gather(*[mlp(x, w0, w1) for x in batches])
# + return await asyncio.gather(*[agt.spawn(mlp(x, w0, w1)) for x in batches])


# %% id=07-urgent cause="the last operation failed, and the error doesn't come out of your function"
async def urgent(ops):
    return [await ops[0], *await asyncio.gather(*ops[1:], return_exceptions=True)]


# %% id=07-urgent cause="has to be taken apart first"
# - return [first, *await asyncio.gather(*ops[1:])]
# + return [first, *await agt.overlap(*ops[1:]).share()]


# %% id=07-urgent cause="with operation 3, the result has shape"
async def urgent(ops):
    results = [await ops[0]]

    async def one(op):
        results.append(await op)

    await asyncio.gather(*[one(op) for op in ops[1:]])
    return results


# %% id=07-upload cause="was not there yet"
def upload(w0, w1):
    a, b = agt.pin(w0), agt.pin(w1)
    return agt.zip(agt.h2d(a, "W0").share(), agt.h2d(b, "W1").share())


# %% id=07-race cause="with other numbers in a second run, and results of the first came again"
def race(mlp, batches, w0, w1):
    arms = [mlp(x, w0, w1).prepare().launch() for x in batches]
    graph = agt.overlap(*arms).graph_on(agt.create_stream())
    seen = []

    async def go():
        if not seen:
            seen.extend(np.array(scores) for scores in await graph.launch())
        return seen

    return go


# %% id=07-race cause="the second run has overwritten results of the first, which belong to the caller"
# - return list(scores.reshape(8, 64).copy())
# + return list(scores.reshape(8, 64))


# %% id=07-capture cause="with 11 operations, with launch 1, `graph.launch()` should return a list of 11"
# - arms = [op.prepare().launch() for op in ops]
# + arms = [op.prepare().launch() for op in ops[:8]]


# %% id=07-two-devices cause="no more than 3 of 5 operations were in flight at a time"
async def on_both(recipe, batches, weights, devices):
    gate, copies = asyncio.Semaphore(3), []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())

    async def one(i, x):
        async with gate:
            with agt.using(devices[i % 2]):
                task = agt.spawn(recipe(x, copies[i % 2]))
            return await task

    return await asyncio.gather(*[one(i, x) for i, x in enumerate(batches)])
