"""Plausible wrong answers to the exercises of course/03_lazy_operations.py; see tools/build_notebooks.py."""


# %% id=03-h2d cause="where a DeviceOp is needed: wrap a plain value in agt.value(...)"
# - return agt.value(array)
# + return array


# %% id=03-h2d cause="has dtype float32, and the host array has int32"
# - array = context.empty(host.shape, host.dtype)
# + array = context.empty(host.shape)


# %% id=03-h2d cause="`h2d` ran 0 times"
# - array = context.empty(host.shape, host.dtype)
# - context.copy_from_host(array, host)
# - return agt.value(array)
# + return agt.value(context.empty(host.shape, host.dtype))


# %% id=03-h2d cause="building the operation already ran something"
def upload(host):
    array = agt.h2d(host).sync()

    def enqueue(context):
        return agt.value(array)

    return agt.with_context(enqueue)


# %% id=03-h2d of=above cause="changed before the operation was run, element 0 is"
# - array = agt.h2d(host).sync()
# + now = host.copy()
#   def enqueue(context):
# +     array = context.empty(now.shape, now.dtype)
# +     context.copy_from_host(array, now)


# %% id=03-h2d of=above cause="two runs of the operation gave the same array"
# - array = agt.h2d(host).sync()
# + arrays = []
# - return agt.value(array)
# + if not arrays:
# +     arrays.append(context.empty(host.shape, host.dtype))
# + context.copy_from_host(arrays[0], host)
# + return agt.value(arrays[0])


# %% id=03-h2d of=above cause="changed before the operation was run, element 0 is"
# - array = agt.h2d(host).sync()
# + global source
# + source = host
#   def enqueue(context):
# +     array = context.empty(source.shape, source.dtype)
# +     context.copy_from_host(array, source)


# %% id=03-h2d cause="should return an operation, and returned function"
# - return agt.with_context(enqueue)
# + return enqueue


# %% id=03-h2d cause="the course's own `h2d` did the work: build one by hand"
def upload(host):
    return agt.h2d(host)


# %% id=03-h2d cause="an array on the device should come out, and not ndarray"
# - return agt.value(array)
# + return agt.value(host)


# %% id=03-h2d cause="sync() was called while operation"
# - array = context.empty(host.shape, host.dtype)
# - context.copy_from_host(array, host)
# - return agt.value(array)
# + return agt.value(agt.h2d(host).sync())


# %% id=03-h2d cause="the course's own `h2d` did the work"
# - array = context.empty(host.shape, host.dtype)
# - context.copy_from_host(array, host)
# - return agt.value(array)
# + return agt.h2d(host)


# %% id=03-zeros cause="`memset` ran 0 times"
# - array = context.empty(shape, dtype)
# - context.memset(array)
# - return agt.value(array)
# + return agt.value(context.empty(shape, dtype))


# %% id=03-zeros cause="with shape (3, 4) and dtype int32, the array has dtype float32"
# - array = context.empty(shape, dtype)
# + array = context.empty(shape)


# %% id=03-zeros cause="element (0, 0) is 16843009, and should be 0"
# - context.memset(array)
# + context.memset(array, 1)


# %% id=03-zeros cause="the course's own `zeros` did the work"
def blank(shape, dtype):
    return agt.zeros(shape, dtype)


# %% id=03-zeros cause="building the operation already ran something"
def blank(shape, dtype):
    array = agt.zeros(shape, dtype).sync()
    return agt.with_context(lambda context: agt.value(array))


# %% id=03-d2h cause="where a DeviceOp is needed: wrap a plain value in agt.value(...)"
# - return agt.value(context.copy_to_host(array))
# + return context.copy_to_host(array)


# %% id=03-d2h cause="a result was read before the device was done with it"
# - return agt.value(context.copy_to_host(array))
# + return agt.value(context.copy_to_host(array).numpy())


# %% id=03-d2h cause="stream.synchronize() was called while operation"
# - return agt.value(context.copy_to_host(array))
# + host = context.copy_to_host(array)
# + context.stream.synchronize()
# + return agt.value(host)


# %% id=03-d2h cause="`d2h` ran 2 times"
# - def enqueue(context):
# + def enqueue(context):
# +     context.copy_to_host(array)


# %% id=03-d2h cause="copy_from_host(array, host), and copy_to_host(array) makes one itself"
# - return agt.value(context.copy_to_host(array))
# + host = agt.pinned(array.shape, array.dtype)
# + context.copy(host, array)
# + return agt.value(host)


# %% id=03-d2h cause="a NumPy array should come out, and not None"
# - return agt.value(context.copy_to_host(array))
# + context.copy_to_host(array)
# + return agt.value(None)


# %% id=03-d2h cause="the course's own `d2h` did the work"
def download(array):
    return agt.d2h(array)


# %% id=03-d2h cause="building the operation already ran something"
def download(array):
    host = agt.d2h(array).sync()
    return agt.value(host)


# % id=03-recipe-twice cause="with run 2 of one operation, the source of 'relu' runs at most once"
def ascending(x):
    there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now))))
    launch = agt.relu(x.size, there, agt.zeros(x.size).partition(256))
    result = launch.last().unpartition().to_host()
    return agt.with_context(lambda context: result)


# %% id=03-recipe-twice cause="with run 1 of one operation, `h2d` ran 2 times"
# - in_order = agt.pin(np.sort(x))
# - launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
# - return launch.output().to_host()
# + launch = agt.relu(
# +     x.size, agt.h2d(agt.pin(np.sort(x))), agt.h2d(agt.pin(np.sort(x))).partition(256)
# + )
# + return launch.last().unpartition().to_host()


# %% id=03-recipe-twice cause="building the operation already ran something"
def ascending(x):
    launch = agt.relu(x.size, agt.h2d(agt.pin(np.sort(x))), agt.zeros(x.size).partition(256))
    result = launch.last().unpartition().to_host().sync()
    return agt.value(result)


# %% id=03-recipe-twice cause="with run 2 of one operation, `h2d` ran 0 times"
def ascending(x):
    there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now)))).shared()

    def cook(context):
        launch = agt.relu(x.size, there, agt.zeros(x.size).partition(256))
        return launch.last().unpartition().to_host()

    return agt.with_context(cook)


# %% id=03-recipe-twice of=above cause="these are the numbers that `x` held when the operation was built"
# - there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now)))).shared()
# + now = agt.pin(np.sort(x))
# - launch = agt.relu(x.size, there, agt.zeros(x.size).partition(256))
# + launch = agt.relu(now.size, agt.h2d(now), agt.zeros(now.size).partition(256))


# %% id=03-recipe-twice of=above cause="looked at after the others"
# - there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now)))).shared()
# + out = agt.pinned(x.size)
#   def cook(context):
# +     there = agt.h2d(agt.pin(np.sort(x)))
# - return launch.last().unpartition().to_host()
# + return launch.output().and_then(lambda d: agt.d2h(d, out))


# %% id=03-recipe-twice of=above cause="after your function has returned, and another of its operations run first"
# - there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now)))).shared()
# + global source
# + source = x
# - launch = agt.relu(x.size, there, agt.zeros(x.size).partition(256))
# + launch = agt.relu(
# +     source.size, agt.h2d(agt.pin(np.sort(source))), agt.zeros(source.size).partition(256)
# + )


# %% id=03-recipe-twice cause="should return an operation, and returned function"
def ascending(x):
    def again():
        launch = agt.relu(x.size, agt.h2d(agt.pin(np.sort(x))), agt.zeros(x.size).partition(256))
        return launch.last().unpartition().to_host()

    return again


# %% id=03-which-way cause="`fetch` was handed over only after the job"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    job()
    return fetch.sync_on(stream)


# %% id=03-which-way of=starter cause="nothing orders"
# - load.sync()
# + load.async_on(stream)


# %% id=03-which-way cause="the device did nothing during `job`"
def load_and_fetch(load, fetch, job, stream):
    load.sync_on(stream)
    job()
    return fetch.sync_on(stream)


# %% id=03-which-way cause="a result was read before the device was done with it"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    job()
    return fetch.async_on(stream)


# %% id=03-which-way cause="the host waited 2 times"
# - load.async_on(stream)
# + load.async_on(stream)
# + loaded = stream.record()
# - job()
# + job()
# + loaded.synchronize()


# %% id=03-which-way cause="Python waited before the job"
# - load.async_on(stream)
# + load.async_on(stream)
# + loaded = stream.record()
# - numbers = fetch.async_on(stream)
# + numbers = fetch.async_on(stream)
# + loaded.synchronize()


# %% id=03-which-way cause="which isn't one of the streams that you were given"
def load_and_fetch(load, fetch, job, stream):
    mine = agt.create_stream()
    load.async_on(mine)
    job()
    return fetch.sync_on(mine)


# %% id=03-which-way cause="nothing of it ran: an `async def` runs when somebody awaits it"
async def load_and_fetch(load, fetch, job, stream):
    task = agt.spawn(load)
    job()
    await task
    return await fetch


# %% id=03-which-way cause="`h2d` ran 0 times"
def load_and_fetch(load, fetch, job, stream):
    load.into_future()
    job()
    return fetch.sync_on(stream)


# %% id=03-which-way cause="`job` ran 0 times"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    return fetch.sync_on(stream)


# %% id=03-which-way cause="element 0 is 0, and"
def load_and_fetch(load, fetch, job, stream):
    result = fetch.async_on(stream)
    load.async_on(stream)
    job()
    stream.synchronize()
    return result


# %% id=03-which-way cause="a result was read before the device was done with it"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    job()
    result = fetch.async_on(stream)
    agt.work(1000, "by then it is surely over")
    return result


# %% id=03-h2d cause="the array has dtype float32, and should have int32"
# - array = context.empty(host.shape, host.dtype)
# - context.copy_from_host(array, host)
# + array = context.empty(host.shape, np.float32)
# + context.copy_from_host(array, agt.pin(host.astype(np.float32)))


# %% id=03-recipe-twice cause="`relu` ran 0 times, and should run once"
def ascending(x):
    return agt.h2d(agt.pin(np.sort(x))).to_host().map(lambda y: agt.pin(np.maximum(np.sort(x), 0)))


# %% id=03-challenge cause="it's right, but it takes"
def small_arrays(hosts):
    ops = [
        agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256)).output().to_host()
        for x in hosts
    ]
    return agt.overlap(*ops)


# %% id=03-challenge cause="with what the arrays hold in run 1, with array 0, element 0 is"
def small_arrays(hosts):
    together = agt.pin(np.concatenate(hosts))
    n = together.size
    launch = agt.relu(n, agt.h2d(together), agt.zeros(n).partition(256))
    return launch.output().reshape(len(hosts), hosts[0].size).to_host()


# %% id=03-challenge cause="the source of 'relu' runs at most once"
def small_arrays(hosts):
    n = hosts[0].size
    ops = [agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256)).last() for x in hosts]
    return agt.zip(*[op.unpartition().to_host() for op in ops])


# %% id=03-challenge cause="is in no copy from memory that a kernel has written"
def small_arrays(hosts):
    return agt.with_context(lambda context: agt.value(np.maximum(np.stack(hosts), 0)))


# %% id=03-challenge cause="the result has shape (16000,), and should have (16, 1000)"
def small_arrays(hosts):
    def enqueue(context):
        together = agt.pin(np.concatenate(hosts))
        launch = agt.relu(together.size, agt.h2d(together), agt.zeros(together.size).partition(256))
        return launch.output().to_host()

    return agt.with_context(enqueue)


# %% id=03-challenge of=above cause="with three runs in flight"
#   def small_arrays(hosts):
# +     out = agt.pinned((16, 1000))
# +
# - return launch.output().to_host()
# + return launch.output().reshape(16, 1000).and_then(lambda y: agt.d2h(y, out=out))


# %% id=03-challenge of=above cause="were on the host first, and were copied to the device"
# - together = agt.pin(np.concatenate(hosts))
# + together = agt.pin(np.maximum(np.stack(hosts), 0).ravel())
# - return launch.output().to_host()
# + return launch.output().reshape(16, 1000).to_host()


# %% id=03-challenge cause="building the operation already ran something"
def small_arrays(hosts):
    there = agt.h2d(agt.pin(np.stack(hosts))).sync()
    return agt.relu(there.size, there, agt.zeros(there.shape).partition(1, 256)).output().to_host()


# %% id=03-zeros cause="two runs of the operation gave the same array"
def blank(shape, dtype):
    arrays = []

    def enqueue(context):
        arrays.append(context.empty(shape, dtype))
        context.memset(arrays[0])
        return agt.value(arrays[0])

    return agt.with_context(enqueue)


# %% id=03-zeros of=above cause="two runs of the operation gave the same array"
# - arrays.append(context.empty(shape, dtype))
# - context.memset(arrays[0])
# - return agt.value(arrays[0])
# + arrays.append(context.empty(shape, dtype) if len(arrays) < 2 else arrays.pop(0))
# + context.memset(arrays[-1])
# + return agt.value(arrays[-1])


# %% id=03-recipe-twice cause="is in no copy from memory that a kernel has written"
# - in_order = agt.pin(np.sort(x))
# - launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
# - return launch.output().to_host()
# + there = agt.h2d(agt.pin(np.sort(x)))
# + launch = agt.relu(x.size, there, agt.zeros(x.size).partition(256)).last()
# + return agt.zip(launch, agt.value(None)).map(lambda _: np.maximum(np.sort(x), 0))


# %% id=03-challenge cause="with three runs in flight"
#   def small_arrays(hosts):
# +     together = agt.pinned((len(hosts) * hosts[0].size,))
# +
# - together = agt.pin(np.concatenate(hosts))  # what they hold now
# + np.concatenate(hosts, out=together)


# %% id=03-h2d cause="ran as well, and isn't needed"
# - array = context.empty(host.shape, host.dtype)
# + array = context.empty(host.shape, host.dtype)
# + context.memset(array)


# %% id=03-which-way cause="the host was busy until the device was done"
# - stream.synchronize()
# + while not stream.done:
# +     agt.work(1)


# %% id=03-which-way cause="`d2h` ran 2 times, and should run once"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    fetch.async_on(stream)
    job()
    return fetch.sync_on(stream)


# %% id=03-zeros cause="`d2d` ran as well, and isn't needed"
# - return agt.value(array)
# + other = context.empty(shape, dtype)
# + context.copy(other, array)
# + return agt.value(other)


# %% id=03-which-way cause="a NumPy array should come out, and not None"
# - return numbers
# + numbers


# %% id=03-h2d cause="isn't `context.stream`, where it belongs"
# - array = context.empty(host.shape, host.dtype)
# - context.copy_from_host(array, host)
# - return agt.value(array)
# + c = context.on(agt.create_stream())
# + a = c.empty(host.shape, host.dtype)
# + c.copy_from_host(a, host)
# + return agt.value(a)


# %% id=03-d2h cause="of the result was not there yet"
# - return agt.value(context.copy_to_host(array))
# + return agt.value(context.copy_to_host(array).buffer)


# %% id=03-d2h cause="looked at after the last run"
def download(array):
    out = np.empty(array.shape, array.dtype)

    def enqueue(context):
        return agt.value(context.copy_to_host(array, out))

    return agt.with_context(enqueue)


# %% id=03-d2h of=above cause="with run 2 of one operation, `d2h` ran 0 times"
# - out = np.empty(array.shape, array.dtype)
# + box = []
# - return agt.value(context.copy_to_host(array, out))
# + if not box:
# +     box.append(context.copy_to_host(array))
# + return agt.value(box[0])


# %% id=03-d2h of=above cause="looked at after the last run"
# - out = np.empty(array.shape, array.dtype)
# + outs = [agt.pinned(array.shape, array.dtype) for _ in range(2)]
# - return agt.value(context.copy_to_host(array, out))
# + outs.reverse()
# + return agt.value(context.copy_to_host(array, outs[0]))


# %% id=03-d2h cause="isn't `context.stream`, where it belongs"
def download(array):
    def enqueue(context):
        return agt.value(context.on(agt.create_stream()).copy_to_host(array))

    return agt.with_context(enqueue)


# % id=03-recipe-twice cause="pop from empty list"
def ascending(x):
    def launch():
        there = agt.value(x).and_then(lambda now: agt.h2d(agt.pin(np.sort(now))))
        return agt.relu(x.size, there, agt.zeros(x.size).partition(256)).output().to_host()

    ops = [launch() for _ in range(10)]
    return agt.with_context(lambda context: ops.pop())


# %% id=03-zeros cause="and should be 0"
# - array = context.empty(shape, dtype)
# - context.memset(array)
# - return agt.value(array)
# + context.memset(context.empty(shape, dtype))
# + return agt.value(context.empty(shape, dtype))


# %% id=03-zeros cause="isn't `context.stream`, where it belongs"
# - array = context.empty(shape, dtype)
# - context.memset(array)
# - return agt.value(array)
# + a = context.empty(shape, dtype)
# + context.on(agt.create_stream()).memset(a)
# + return agt.value(a)


# %% id=03-challenge cause="of the result was not there yet"
def small_arrays(hosts):
    def run(c):
        b = agt.pin(np.stack(hosts))
        return (
            agt.relu(b.size, agt.h2d(b).reshape(b.size), agt.zeros(b.size).partition(256))
            .output()
            .reshape(16, 1000)
            .to_host()
            .map(lambda h: list(h.buffer))
        )

    return agt.with_context(run)


# %% id=03-challenge of=above cause="the pinned host array behind"
#   def small_arrays(hosts):
# +     ring = [agt.pinned((16, 1000)) for _ in range(2)]
# +
# - b = agt.pin(np.stack(hosts))
# + b = ring[0]
# + ring.reverse()
# + np.stack(hosts, out=b)
# - .map(lambda h: list(h.buffer))


# %% id=03-zeros cause="and should be 0"
# - array = context.empty(shape, dtype)
# - context.memset(array)
# - return agt.value(array)
# + z = context.empty(shape, dtype)
# + context.memset(z)
# + a = context.empty(shape, dtype)
# + return agt.value((z, a)).map(lambda t: t[1])


# %% id=03-zeros cause="and should be 0"
# - array = context.empty(shape, dtype)
# - context.memset(array)
# - return agt.value(array)
# + n = int(np.prod(shape))
# + a = context.empty(shape, dtype)
# + z = context.empty((max(n // 2, 1),), dtype)
# + context.memset(z)
# + return agt.value((a, z)).map(lambda t: t[0])


# %% id=03-recipe-twice cause="of the result was not there yet"
def ascending(x):
    return (
        agt.relu(x.size, agt.h2d(agt.pin(np.sort(x))), agt.zeros(x.size).partition(256))
        .output()
        .to_host()
        .map(lambda h: h.buffer)
    )


# %% id=03-h2d cause="nothing of it ran: an `async def`"
async def upload(host):
    def enqueue(context):
        a = context.empty(host.shape, host.dtype)
        context.copy_from_host(a, host)
        return agt.value(a)

    return agt.with_context(enqueue)


# %% id=03-h2d cause="the array that comes out is borrowed"
# - return agt.value(array)
# + return agt.value(array.borrow())


# %% id=03-zeros cause="the array that comes out is shared"
# - return agt.value(array)
# + return agt.value(array.share())


# %% id=03-recipe-twice cause="in an array of its caller's, or in an earlier result"
# - in_order = agt.pin(np.sort(x))
# - launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
# - return launch.output().to_host()
# + np.maximum(x, 0, out=x)
# + launch = agt.relu(x.size, agt.h2d(agt.pin(np.sort(x))), agt.zeros(x.size).partition(256))
# + return launch.last().unpartition().to_host()


# %% id=03-h2d cause="with shape (2, 3, 4) and dtype int16, your code raised KeyError"
# - array = context.empty(host.shape, host.dtype)
# + known = {"float32": np.float32, "float64": np.float64, "int32": np.int32}
# + array = context.empty(host.shape, known[str(host.dtype)])


# %% id=03-zeros cause="with shape (2, 3, 4) and dtype int16, the result has shape (2, 4)"
# - array = context.empty(shape, dtype)
# + array = context.empty((shape[0], shape[-1]) if len(shape) > 1 else shape, dtype)


# %% id=03-h2d cause="has changed the numbers in an array of its caller's"
# - context.copy_from_host(array, host)
# + context.copy_from_host(array, host.copy())
# + host[...] = 0


# %% id=03-recipe-twice cause="has changed the numbers in an array of its caller's"
# - in_order = agt.pin(np.sort(x))
# + x.sort()
# + in_order = agt.pin(x)


# %% id=03-recipe-twice cause="with three runs in flight, each with numbers of its own, the pinned host array"
def ascending(x):
    buffer = agt.pinned(x.shape, x.dtype)

    def cook(context):
        buffer[:] = np.sort(x)
        launch = agt.relu(x.size, agt.h2d(buffer), agt.zeros(x.size).partition(256))
        return launch.output().to_host()

    return agt.with_context(cook)


# %% id=03-challenge cause="has changed the numbers in an array of its caller's"
# - n = together.size
# + n = together.size
# + for host in hosts:
# +     np.maximum(host, 0, out=host)


# %% id=03-h2d cause="len() of unsized object"
# - array = context.empty(host.shape, host.dtype)
# + array = context.empty((len(host), *host.shape[1:]), host.dtype)


# %% id=03-which-way cause="when `job` raises an error, the error doesn't come out"
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    handle = fetch.async_on(stream)
    try:
        job()
    except Exception:
        pass
    stream.synchronize()
    return handle.numpy()


# %% id=03-zeros cause="with run 2 of one operation, `memset` ran 0 times"
def blank(shape, dtype):
    made = []

    def enqueue(context):
        if not made:
            made.append(context.empty(shape, dtype))
            context.memset(made[0])
        return agt.value(made[0])

    return agt.with_context(enqueue)
