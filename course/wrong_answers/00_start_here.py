"""Plausible wrong answers to the exercises of course/00_start_here.py; see tools/build_notebooks.py."""


# %% id=00-develop cause="no more than 2 of 4 operations were in flight at a time"
async def develop(ops):
    first, last = [[agt.spawn(op) for op in ops[:2]], ops[2:]]
    done = [await task for task in first]
    return done + [await task for task in [agt.spawn(op) for op in last]]


# %% id=00-develop cause="one behind the other: start each by itself"
async def develop(ops):
    return list(await agt.spawn(agt.zip(*ops)))


# %% id=00-develop cause="one behind the other: start each by itself"
async def develop(ops):
    pairs = [agt.spawn(agt.zip(*ops[:2])), agt.spawn(agt.zip(*ops[2:]))]
    return [*await pairs[0], *await pairs[1]]


# %% id=00-develop cause="`sync` or `synchronize` blocks the event loop"
async def develop(ops):
    tasks = [agt.spawn(op) for op in ops[1:]]
    return [ops[0].sync()] + [await task for task in tasks]


# %% id=00-develop cause="with results in the wrong order, it seems: result 0"
# - tasks = [agt.spawn(op) for op in ops]
# + tasks = [agt.spawn(op) for op in reversed(ops)]


# %% id=00-develop cause="should return a list of 4, one for each in order, and returned"
# - return [await task for task in tasks]
# + for task in tasks:
# +     bright = await task
# + return bright


# %% id=00-develop cause="operation 3 of 4 did not run"
async def develop(ops):
    tasks = [agt.spawn(op) for op in ops[:3]]
    return [await task for task in tasks] + [ops[3]]


# %% id=00-develop cause="`d2h` ran 8 times, and should run 4 times"
async def develop(ops):
    await asyncio.gather(*[agt.spawn(op) for op in ops])
    return [await op for op in ops]


# %% id=00-develop cause="a task was asked for its result before it was done"
# - return [await task for task in tasks]
# + await agt.sleep(4000)
# + return [task.result() for task in tasks]


# %% id=00-develop cause="of the result was not there yet"
async def develop(ops):
    return [op.async_on(agt.create_stream()).buffer for op in ops]


# %% id=00-develop cause="the array has dtype float64, and should have float32"
async def develop(ops):
    return [bright.astype(np.float64) for bright in await asyncio.gather(*ops)]


# %% id=00-develop cause="with results in the wrong order, it seems"
async def develop(ops):
    bright = await asyncio.gather(*[agt.spawn(op) for op in ops])
    return sorted(bright, key=lambda picture: picture.size, reverse=True)


# %% id=00-develop cause="with results in the wrong order, it seems"
async def develop(ops):
    done, _ = await asyncio.wait([agt.spawn(op) for op in ops])
    return [task.result() for task in done]


# %% id=00-develop cause="should return a list of 4, one for each in order, and returned"
async def develop(ops):
    for op in ops:
        agt.spawn(op)


# %% id=00-challenge of=starter cause="it's right, but it takes 722 µs: get below 510 µs. `job` came after all trips"
# - results = [await trip for trip in trips]
# + results = await asyncio.gather(*[agt.spawn(trip) for trip in trips])


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


# %% id=00-challenge of=above cause="operation 2 of 3 did not run"
# - tasks.append(agt.spawn(trips[2]))


# %% id=00-challenge cause="`job` ran 0 times"
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips]
    return [await task for task in tasks]


# %% id=00-challenge cause="should return a list of 3"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + tasks = [agt.spawn(trip) for trip in trips]
# - return [await task for task in reversed(tasks)]
# + for task in tasks:
# +     result = await task
# + return result


# %% id=00-challenge cause="`d2h` ran 4 times, and should run 3 times"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + tasks = [agt.spawn(trip) for trip in [*trips, trips[0]]]
# - return [await task for task in reversed(tasks)]
# + return [await task for task in tasks][:3]


# %% id=00-challenge cause="a task was asked for its result before it was done"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + tasks = [agt.spawn(t) for t in trips]
# - return [await task for task in reversed(tasks)]
# + await agt.sleep(120)
# + return [t.result() for t in tasks]


# %% id=00-challenge cause="of the result was not there yet"
async def everything(trips, job):
    h = [t.async_on(agt.create_stream()) for t in trips]
    job()
    return [x.buffer for x in h]


# %% id=00-challenge cause="takes things out of its caller's list"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + tasks = [agt.spawn(trips.pop(0)) for _ in range(3)]
# - return [await task for task in reversed(tasks)]
# + return [await t for t in tasks]


# %% id=00-challenge cause="it's right, but it takes 593"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + task = agt.spawn(agt.zip(*trips))
# - return [await task for task in reversed(tasks)]
# + return list(await task)


# %% id=00-challenge cause="the host waited"
# - tasks = [agt.spawn(trip) for trip in reversed(trips)]
# + tasks = [agt.spawn(t) for t in trips]
# - return [await task for task in reversed(tasks)]
# + agt.synchronize()
# + return [await t for t in tasks]


# %% id=00-challenge cause="when `job` raises an error, the error doesn't come out"
async def everything(trips, job):
    tasks = [agt.spawn(t) for t in trips]
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(job)
    return [await t for t in tasks]


# %% id=00-challenge cause="the host waited 1 time, and shouldn't wait at all"
async def everything(trips, job):
    handles = [trip.async_on(agt.create_stream()) for trip in trips]
    job()
    agt.synchronize()
    return [handle.numpy() for handle in handles]
