"""Plausible wrong answers to the exercises of course/00_start_here.py; see tools/build_notebooks.py."""


# %% id=00-quicker cause="waking up costs more than there is to hide"
# - if us < 21 or wait < 24:
# + if us < 21:


# %% id=00-quicker cause="a job of 5 µs and a wait of 286, it's right, but done after"
# - if us < 21 or wait < 24:
# + if wait < 21:


# %% id=00-quicker cause="waking up costs more than there is to hide"
# - if us < 21 or wait < 24:
# + if min(wait, us) < 10:


# %% id=00-quicker cause="the job could hide in the wait"
# - if us < 21 or wait < 24:
# + if us < 21 or wait < us / 3:


# %% id=00-quicker cause="with a job of 290 µs and a wait of 286, it's right, but done after"
# - if us < 21 or wait < 24:
# + if us < 21 or wait < 21 or wait + us > 500:


# %% id=00-quicker cause="the job could hide in the wait"
# - if us < 21 or wait < 24:
# + if min(wait, us) < 100:


# %% id=00-quicker cause="waking up costs more than there is to hide"
# - if us < 21 or wait < 24:
# + if min(wait, us) > 21:


# %% id=00-quicker cause="the job could hide in the wait"
# - if us < 21 or wait < 24:
# + if wait + us < 320:


# %% id=00-quicker cause="waking up costs more than there is to hide"
async def quicker(op, wait, job, us):
    result = await op
    job()
    return result


# %% id=00-quicker cause="`job` ran before the operation had begun: a task starts only when you pause"
# - await asyncio.sleep(0)


# %% id=00-quicker cause="`d2h` ran 2 times, and should run once"
async def quicker(op, wait, job, us):
    task = agt.spawn(op)
    await asyncio.sleep(0)
    job()
    await task
    return op.sync()


# %% id=00-quicker cause="`job` ran 0 times"
async def quicker(op, wait, job, us):
    return op.sync()


# %% id=00-quicker cause="a NumPy array should come out"
async def quicker(op, wait, job, us):
    op.sync()
    job()


# %% id=00-quicker cause="a NumPy array should come out"
# - return await task
# + return task


# %% id=00-both cause="no more than 1 of 2 operations were in flight at a time"
async def both(first, second):
    a = await agt.spawn(first)
    b = await agt.spawn(second)
    return a, b


# %% id=00-both cause="one behind the other: start each by itself"
async def both(first, second):
    return await agt.zip(first, second)


# %% id=00-both cause="`sync` keeps Python waiting"
async def both(first, second):
    a = agt.spawn(first)
    b = second.sync()
    return await a, b


# %% id=00-both cause="with results in the wrong order, it seems: result 0"
async def both(first, second):
    b = agt.spawn(second)
    a = agt.spawn(first)
    return await b, await a


# %% id=00-both cause="should return a list of 2, one for each in order, and returned"
async def both(first, second):
    a = agt.spawn(first)
    b = agt.spawn(second)
    await a
    return await b


# %% id=00-both cause="operation 1 of 2 did not run"
async def both(first, second):
    a = agt.spawn(first)
    return await a, second


# %% id=00-challenge cause="`job` ran before all trips had begun"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips]
    job()
    return [await task for task in tasks]


# %% id=00-challenge cause="it takes 522 µs: get below 510 µs. `job` ran before all trips had begun"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips[:2]]
    await asyncio.sleep(0)
    tasks.append(agt.spawn(trips[2]))
    job()
    return [await task for task in tasks]


# %% id=00-challenge cause="`job` ran 0 times"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips]
    return [await task for task in tasks]


# %% id=00-challenge cause="should return a list of 3"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips]
    await asyncio.sleep(0)
    job()
    for task in tasks:
        result = await task
    return result


# %% id=00-challenge cause="operation 2 of 3 did not run"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips[:2]]
    await asyncio.sleep(0)
    job()
    return [await task for task in tasks]


# %% id=00-both cause="`d2h` ran 4 times, and should run 2 times"
async def both(first, second):
    await asyncio.gather(agt.spawn(first), agt.spawn(second))
    return await first, await second


# %% id=00-challenge cause="`d2h` ran 4 times, and should run 3 times"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in [*trips, trips[0]]]
    await asyncio.sleep(0)
    job()
    return [await task for task in tasks][:3]


# %% id=00-both cause="a task was asked for its result before it was done"
async def both(first, second):
    a, b = agt.spawn(first), agt.spawn(second)
    await agt.sleep(1000)
    return a.result(), b.result()


# %% id=00-both cause="of the result was not there yet"
async def both(first, second):
    s, t = agt.create_stream(), agt.create_stream()
    a, b = first.async_on(s), second.async_on(t)
    return a.buffer, b.buffer


# %% id=00-challenge cause="a task was asked for its result before it was done"
async def everything(trips, job):
    tasks = [agt.spawn(t) for t in trips]
    await asyncio.sleep(0)
    job()
    await agt.sleep(120)
    return [t.result() for t in tasks]


# %% id=00-challenge cause="of the result was not there yet"
async def everything(trips, job):
    h = [t.async_on(agt.create_stream()) for t in trips]
    job()
    return [x.buffer for x in h]


# %% id=00-challenge cause="takes things out of its caller's list"
async def everything(trips, job):
    tasks = [agt.spawn(trips.pop(0)) for _ in range(3)]
    await asyncio.sleep(0)
    job()
    return [await t for t in tasks]


# %% id=00-both cause="the array has dtype float64, and should have float32"
async def both(first, second):
    a, b = await asyncio.gather(first, second)
    return a.astype(np.float64), b.astype(np.float64)


# %% id=00-challenge cause="it's right, but it takes 593"
async def everything(trips, job):
    task = agt.spawn(agt.zip(*trips))
    await asyncio.sleep(0)
    job()
    return list(await task)


# %% id=00-both cause="with results in the wrong order, it seems"
async def both(first, second):
    a, b = await asyncio.gather(agt.spawn(first), agt.spawn(second))
    return (a, b) if a[0] >= b[0] else (b, a)


# %% id=00-both cause="with results in the wrong order, it seems"
async def both(first, second):
    done, _ = await asyncio.wait([agt.spawn(first), agt.spawn(second)])
    a, b = [task.result() for task in done]
    return a, b


# %% id=00-challenge cause="the host waited"
async def everything(trips, job):
    tasks = [agt.spawn(t) for t in trips]
    await asyncio.sleep(0)
    job()
    agt.synchronize()
    return [await t for t in tasks]


# %% id=00-challenge cause="when `job` raises an error, the error doesn't come out"
async def everything(trips, job):
    tasks = [agt.spawn(t) for t in trips]
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(job)
    return [await t for t in tasks]
