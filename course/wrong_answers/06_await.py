"""Plausible wrong answers to the exercises of course/06_await.py; see tools/build_notebooks.py."""


# %% id=06-prepare cause="the device did nothing during `prepare 1`"
# - await asyncio.sleep(0)  # its turn: the batch is submitted


# %% id=06-prepare cause="blocks the event loop"
async def pipeline(n, prepare, process):
    return [process(prepare(i)).sync() for i in range(n)]


# %% id=06-prepare cause="should return a list of 4, one for each in order, and returned one of 3"
async def pipeline(n, prepare, process):
    results = []
    task = agt.spawn(process(prepare(0)))
    await asyncio.sleep(0)
    for i in range(1, n):
        x = prepare(i)
        results.append(await task)
        task = agt.spawn(process(x))
        await asyncio.sleep(0)
    await task
    return results


# %% id=06-prepare of=above cause="with n=1, batch 1 was prepared"
# - results = []
# + results, i = [], 1
# - for i in range(1, n):
# + while True:
# - await task
# +     i += 1
# +     if i == n:
# +         break
# + results.append(await task)


# %% id=06-prepare cause="ran 5 times, and should run 4 times"
async def pipeline(n, prepare, process):
    results = []
    x = prepare(0)
    for i in range(n):
        task = agt.spawn(process(x))
        await asyncio.sleep(0)
        x = prepare(min(i + 1, n - 1))
        results.append(await task)
    await process(x)
    return results


# %% id=06-prepare cause="and returned None"
async def pipeline(n, prepare, process):
    x = prepare(0)
    for i in range(n):
        task = agt.spawn(process(x))
        await asyncio.sleep(0)
        if i + 1 < n:
            x = prepare(i + 1)
        await task


# %% id=06-prepare of=above cause="with result 0, element 0 is"
#   async def pipeline(n, prepare, process):
# +     results = []
#   for i in range(n):
# - await task
# +     results.insert(0, await task)
# + results[0], results[-1] = results[-2], results[0]
# + return results


# %% id=06-responsive cause="there was no beat at the start"
async def with_heartbeat(op, beat):
    result = await op
    for _ in range(5):
        beat()
        await agt.sleep(50)
    return result


# %% id=06-responsive cause="the heart beats on after"
async def with_heartbeat(op, beat):
    async def heart():
        while True:
            beat()
            await agt.sleep(50)

    task = asyncio.create_task(heart())
    return await op


# %% id=06-responsive of=above cause="blocks the event loop"
# - return await op
# + await asyncio.sleep(0)
# + result = op.sync()
# + task.cancel()
# + return result


# %% id=06-responsive of=above cause="the heart beats on after"
# - task = asyncio.create_task(heart())
# - return await op
# + result, _ = await asyncio.gather(op, heart())
# + return result


# %% id=06-responsive of=above cause="`op` failed, and the heart still beats: stop it in a `finally`"
# - return await op
# + result = await op
# + task.cancel()
# + return result


# %% id=06-responsive of=above cause="the error doesn't come out of your function"
# - task = asyncio.create_task(heart())
# - return await op
# + beating = asyncio.create_task(heart())
# + try:
# +     (result,) = await asyncio.gather(op.schedule(), return_exceptions=True)
# +     return result
# + finally:
# +     beating.cancel()


# %% id=06-responsive of=above cause="somebody cancelled you, and the heart beats on: stop it in a `finally`"
# - return await op
# + try:
# +     result = await op
# + except Exception:
# +     task.cancel()
# +     raise
# + task.cancel()
# + return result


# %% id=06-responsive of=above cause="between beat 10 and what came next were"
# - while True:
# + for _ in range(10):
# - return await op
# + try:
# +     return await op
# + finally:
# +     task.cancel()


# %% id=06-responsive of=above cause="after the one before, and one every 50 µs is right. By then the operation was done"
# - return await op
# + try:
# +     return await op
# + finally:
# +     task.cancel()
# +     beat()


# %% id=06-responsive of=above cause="the heart still beats"
# - return await op
# + try:
# +     result = await op
# + except (agt.DeviceError, asyncio.CancelledError):
# +     task.cancel()
# +     raise
# + task.cancel()
# + return result


# %% id=06-responsive cause="`beat` was called 2000 times without an end"
# - await agt.sleep(50)


# %% id=06-responsive cause="`asyncio.sleep` goes by the clock on the wall"
# - await agt.sleep(50)
# + await asyncio.sleep(50e-6)


# %% id=06-responsive cause="beat 2 came 29 µs after the one before"
# - await agt.sleep(50)
# + await asyncio.sleep(0)


# %% id=06-responsive cause="between beat 1 and what came next were 298 µs"
async def with_heartbeat(op, beat):
    task = agt.spawn(op)
    beat()
    return await task


# %% id=06-responsive cause="a NumPy array should come out"
# - return await task
# + return task


# %% id=06-three-arms cause="operation 1 is reported as 'program' instead of 'device'"
#   try:
#   return "done", await op
# + except Exception as error:
# +     return "program", error
# - except Exception as error:
# - return "program", error


# %% id=06-three-arms cause="came out of your function: your code raised KeyError"
# - except Exception as error:
# - return "program", error


# %% id=06-three-arms cause="no two operations were at work at the same time"
async def reports(ops):
    found = []
    for op in ops:
        try:
            found.append(("done", await op))
        except agt.DeviceError as error:
            found.append(("device", error))
        except Exception as error:
            found.append(("program", error))
    return found


# %% id=06-three-arms cause="somebody cancelled `reports`"
# - except Exception as error:
# + except BaseException as error:
# - return await asyncio.gather(*[report(op) for op in ops])
# + tasks = [asyncio.create_task(report(op)) for op in ops]
# + try:
# +     await asyncio.wait(tasks)
# + except asyncio.CancelledError:
# +     pass
# + return [await task for task in tasks]


# %% id=06-three-arms cause="each report is a pair"
async def reports(ops):
    return await asyncio.gather(*ops, return_exceptions=True)


# %% id=06-three-arms cause="should contain the error that came out, and contains"
# - return "device", error
# + return "device", str(error)
# - return "program", error
# + return "program", str(error)


# %% id=06-three-arms cause="and returned one of 2"
async def reports(ops):
    found = []

    async def report(op):
        try:
            found.append(("done", await op))
        except agt.DeviceError:
            pass
        except Exception:
            pass

    await asyncio.gather(*[report(op) for op in ops])
    return found


# %% id=06-three-arms cause="a NumPy array should come out, and not"
# - return "done", await op
# + return "done", (await op).tolist()


# %% id=06-three-arms cause="operation 1 is reported as 'done' instead of 'device'"
async def reports(ops):
    outcomes = await asyncio.gather(*ops, return_exceptions=True)
    return [("done", outcome) for outcome in outcomes]


# %% id=06-cancel cause="the time was up, and you went on waiting for 398 µs"
async def at_most(op, us):
    task = agt.spawn(op)
    clock = asyncio.create_task(agt.sleep(us))
    await task
    late = clock.done()
    clock.cancel()
    return None if late else task.result()


# %% id=06-cancel cause="the result was there in time, and `at_most` returned None"
async def at_most(op, us):
    task = agt.spawn(op)
    await asyncio.sleep(0)
    task.cancel()
    return None


# %% id=06-cancel cause="you gave up before the time was over"
async def at_most(op, us):
    task = agt.spawn(op)
    for _ in range(5):  # turns are no clock
        await asyncio.sleep(0)
    if us > 1000:
        return await task
    task.cancel()
    return None


# %% id=06-cancel cause="blocks the event loop"
async def at_most(op, us):
    if us > 1000:
        return op.sync()
    task = agt.spawn(op)
    await agt.sleep(us)
    task.cancel()
    return None


# %% id=06-as-completed cause="do not wait for one while another is there"
async def as_they_come(ops, use):
    tasks = [agt.spawn(op) for op in ops]
    for task in tasks:
        use(await task)


# %% id=06-as-completed cause="some operations hadn't started yet: start all of them before"
async def as_they_come(ops, use):
    for op in ops:
        use(await op)


# %% id=06-as-completed cause="µs before you used it"
async def as_they_come(ops, use):
    done = []

    async def run(op):
        done.append(await op)

    await asyncio.gather(*[run(op) for op in ops])
    for result in done:
        use(result)


# %% id=06-as-completed cause="each of [64, 256, 512, 4000000] once is right"
async def as_they_come(ops, use):
    tasks = [agt.spawn(op) for op in ops]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        use(task.result())


# %% id=06-as-completed cause="blocks the event loop"
async def as_they_come(ops, use):
    for op in ops:
        use(op.sync())


# %% id=06-as-completed cause="Await it before you use it"
async def as_they_come(ops, use):
    for op in ops:
        use(agt.spawn(op))


# %% id=06-as-completed cause="with 2 operations, the results were used in the order of sizes [2000000, 64]"
async def as_they_come(ops, use):
    slow, *others = [agt.spawn(op) for op in ops]
    for task in [*others, slow]:
        use(await task)


# %% id=06-cancel cause="the operation never ran"
async def at_most(op, us):
    return None


# %% id=06-responsive cause="the operation never ran"
async def with_heartbeat(op, beat):
    pass


# %% id=06-as-completed cause="with the result of 4,000,000 elements, element 0 is 0, and should be 1"
async def as_they_come(ops, use):
    use(np.zeros(4_000_000, np.float32))
    use(np.zeros(512, np.float32))
    use(await ops[1])


# %% id=06-prepare cause="was changed while"
async def pipeline(number, prepare, process):
    tasks = []
    for i in range(number):
        x = prepare(i)
        tasks.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
        x[:] = 0
    return await asyncio.gather(*tasks)


# %% id=06-limited cause="5 were in flight at a time, and 2 is the limit"
#   async with gate:
# - return await op
# +     task = agt.spawn(op)
# + return await task


# %% id=06-limited cause="no more than 1 were in flight at a time, where 2 could have been"
async def run_limited(ops, limit):
    return [await op for op in ops]


# %% id=06-limited cause="its place stays empty"
async def run_limited(ops, limit):
    results = []
    for i in range(0, len(ops), limit):
        results += await asyncio.gather(*ops[i : i + limit])
    return results


# %% id=06-limited cause="3 were in flight at a time, and 2 is the limit"
# - gate = asyncio.Semaphore(limit)
# + gate = asyncio.Semaphore(limit + 1)


# %% id=06-limited cause="`sync` or `synchronize` blocks the event loop"
async def run_limited(ops, limit):
    return [op.sync() for op in ops]


# %% id=06-limited cause="results in the wrong order, it seems: result 0"
# - gate = asyncio.Semaphore(limit)
# + gate = asyncio.Semaphore(limit)
# + results = []
# - return await op
# + results.append(await op)
# - return await asyncio.gather(*[run(op) for op in ops])
# + await asyncio.gather(*[run(op) for op in ops])
# + return results


# %% id=06-limited cause="`d2h` ran 2 times, and should run 5 times"
async def run_limited(ops, limit):
    return await asyncio.gather(*ops[:limit])


# %% id=06-limited cause="`run_limited` should return a list of 5, one for each in order, and returned one of 4"
# - return await asyncio.gather(*[run(op) for op in ops])
# + return (await asyncio.gather(*[run(op) for op in ops]))[1:]


# %% id=06-limited cause="operation 1 of 5 did not run"
# - async def run(op):
# + async def run():
# - return await op
# + return await ops[0]
# - return await asyncio.gather(*[run(op) for op in ops])
# + return await asyncio.gather(*[run() for _ in ops])


# %% id=06-prepare cause="batch 4 was prepared, but the last of 4 batches is batch 3"
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# - if i + 1 < n:
# - x = prepare(i + 1)
# + await asyncio.sleep(0)
# + x = prepare(i + 1)


# %% id=06-responsive cause="and one beat every 50 µs is right, all the while"
# - while not task.done():
# + for _ in range(4):


# %% id=06-responsive cause="nobody had a turn for 49 µs"
# - await agt.sleep(50)
# + agt.work(49, "pause")
# + await asyncio.sleep(0)


# %% id=06-three-arms cause="came out of your function: your code raised ValueError"
# - except Exception as error:
# + except KeyError as error:


# %% id=06-three-arms cause="any exception that is no `agt.DeviceError` is the program's"
# - except agt.DeviceError as error:
# + except (agt.DeviceError, RuntimeError) as error:


# %% id=06-cancel cause="with at most 900 µs for 4000000 elements"
async def at_most(op, us):
    if us < 1000:
        task = agt.spawn(op)
        await agt.sleep(us)
        task.cancel()
        return None
    return await op


# %% id=06-as-completed cause="with the result of 64 elements, element 0 is 1"
async def as_they_come(ops, use):
    for done in asyncio.as_completed([agt.spawn(op) for op in ops]):
        result = await done
        use(result * 0 + 1)


# %% id=06-feed cause="get below 1500"
async def feed(n, prepare, process, use):
    results = [process(prepare(i)) for i in range(n)]
    for op in results:
        use(await op)


# %% id=06-feed cause="batches were in flight at a time, but there's room for 2"
async def feed(n, prepare, process, use):
    tasks = []
    for i in range(n):
        tasks.append(agt.spawn(process(prepare(i))))
    for done in asyncio.as_completed(tasks):
        use(await done)


# %% id=06-feed cause="batch 5 was prepared, but the last of 5 batches is batch 4"
async def feed(n, prepare, process, use):
    x = prepare(0)
    for i in range(n):
        task = agt.spawn(process(x))
        await asyncio.sleep(0)
        x = prepare(i + 1)
        use(await task)


# %% id=06-feed cause="`use` was called for batches"
async def feed(n, prepare, process, use):
    before = None
    for i in range(n):
        task = agt.spawn(process(prepare(i)))
        await asyncio.sleep(0)
        if before is not None:
            use(await before)
        before = task
    await before


# %% id=06-feed cause="with what `use` got, a NumPy array should come out"
async def feed(n, prepare, process, use):
    for i in range(n):
        use(process(prepare(i)))


# %% id=06-feed cause="`sync` or `synchronize` blocks the event loop"
async def feed(n, prepare, process, use):
    for i in range(n):
        use(process(prepare(i)).sync())


# %% id=06-feed cause="5 batches were in flight at a time, but there's room for 2"
async def feed(n, prepare, process, use):
    tasks = []
    for i in range(n):
        tasks.append(agt.spawn(process(prepare(i))))
        await asyncio.sleep(0)
    for task in tasks:
        use(await task)


# %% id=06-prepare cause="are enough: does somebody sleep, or wait, for no reason?"
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# + await agt.sleep(200)


# %% id=06-responsive cause="the error doesn't come out of your function"
# - return await task
# + try:
# +     return await task
# + except Exception:
# +     return None


# %% id=06-cancel cause="when the device refuses to run `h2d`, the error doesn't come out of your function"
# - return task.result() if task.done() else None
# + return None if not task.done() or task.exception() else task.result()
#   finally:
# +     clock.cancel()
# - clock.cancel()


# %% id=06-three-arms cause="should contain the error that came out"
# - return "device", error
# + return "device", agt.DeviceError(str(error))


# %% id=06-limited cause="the error doesn't come out of your function"
# - return await op
# + try:
# +     return await op
# + except Exception:
# +     return None


# %% id=06-responsive cause="after the one before, and one every 50 µs is right: before each beat but the first, wait, by `agt.sleep(50)`"
# - await agt.sleep(50)
# + await agt.sleep(25)


# %% id=06-responsive cause="and one beat every 50 µs is right, all the while"
# - await agt.sleep(50)
# + await agt.sleep(80)


# %% id=06-responsive cause="the heart beats on after the operation was done"
# - while not task.done():
# + for _ in range(9):


# %% id=06-three-arms cause="the operation that fails ran 2 times"
# - async def report(op):
# + async def report(op, tries=2):
# - return "device", error
# + return await report(op, tries - 1) if tries > 1 else ("device", error)


# %% id=06-cancel cause="wait for whichever comes first"
async def at_most(op, us):
    task, passed = agt.spawn(op), 0
    while passed < us and not task.done():
        await agt.sleep(100)
        passed += 100
    if task.done():
        return task.result()
    task.cancel()
    return None


# %% id=06-feed cause="no other task had a turn"
async def feed(n, prepare, process, use):
    streams, before = [agt.create_stream(), agt.create_stream()], None
    for i in range(n):
        stream = streams[i % 2]
        result = process(prepare(i)).async_on(stream)
        if before is not None:
            while not before[1].done:
                pass
            use(before[0].numpy())
        before = result, stream
    while not before[1].done:
        pass
    use(before[0].numpy())


# %% id=06-cancel cause="2 tasks of its own went on waiting: cancel them in a `finally`"
async def at_most(op, us):
    task = agt.spawn(op)
    clock = asyncio.create_task(agt.sleep(us))
    await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
    clock.cancel()
    if task.done():
        return task.result()
    task.cancel()
    return None


# %% id=06-cancel of=above cause="is still waiting"
# - clock.cancel()


# %% id=06-cancel of=above cause="and you still waited for 501 µs"
# - clock = asyncio.create_task(agt.sleep(us))
# - await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
# - clock.cancel()
# + await agt.sleep(us)


# %% id=06-cancel of=above cause="so `at_most` should return None"
# - return None
# + return "too late"


# %% id=06-prepare cause="with n=7, "
async def pipeline(n, prepare, process):
    tasks = []
    for i in range(min(n, 4)):
        tasks.append(agt.spawn(process(prepare(i))))
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks)


# %% id=06-prepare of=above cause="`prepare 0` ran 2 times, and should run once"
# - for i in range(min(n, 4)):
# + for i in range(n):
# +     prepare(i)


# %% id=06-responsive cause="beat 2 came 41 µs after the one before, and one every 50 µs is right"
# - await agt.sleep(50)
# + await agt.sleep(40)


# %% id=06-as-completed cause="the error doesn't come out of your function"
async def as_they_come(ops, use):
    for done in asyncio.as_completed([agt.spawn(op) for op in ops]):
        try:
            use(await done)
        except agt.DeviceError:
            pass


# %% id=06-limited cause="no more than 3 were in flight at a time, where 6 could have been"
# - gate = asyncio.Semaphore(limit)
# + gate = asyncio.Semaphore(min(limit, 3))


# %% id=06-limited cause="with a limit of 1, 2 were in flight at a time, and 1 is the limit"
# - gate = asyncio.Semaphore(limit)
# + gate = asyncio.Semaphore(max(limit, 2))


# %% id=06-as-completed cause="each of [64, 256, 512, 4000000] once is right"
async def as_they_come(ops, use):
    for done in asyncio.as_completed([agt.spawn(op) for op in ops[:3]]):
        use(await done)


# %% id=06-cancel cause="with at most 2000 µs for 10000000 elements, the result was there in time, and `at_most` returned None"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(min(us, 1000)))


# %% id=06-limited cause="2 tasks of yours will wait forever: let the next one in"
# - async with gate:
# - return await op
# + await gate.acquire()
# + result = await op
# + gate.release()
# + return result


# %% id=06-three-arms cause="`reports` should return a list of 10, one for each in order, and returned one of 4"
# - return await asyncio.gather(*[report(op) for op in ops])
# + return await asyncio.gather(*[report(op) for op in ops[:4]])


# %% id=06-prepare cause="when the device refuses to run `h2d`, the error doesn't come out of your function"
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# + await asyncio.sleep(0)
# - results.append(await task)
# + try:
# +     results.append(await task)
# + except Exception:
# +     results.append(None)


# %% id=06-feed cause="the error doesn't come out of your function"
async def feed(n, prepare, process, use):
    waiting = []
    for i in range(n):
        x = prepare(i)
        if len(waiting) == 2:
            try:
                use(await waiting.pop(0))
            except Exception:
                pass
        waiting.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
    for task in waiting:
        use(await task)


# %% id=06-cancel cause="the time was up, and you went on waiting for"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(max(us, 500)))


# %% id=06-as-completed cause="µs before you used it"
async def as_they_come(ops, use):
    async def one(op):
        r = await op
        await agt.sleep(200)
        use(r)

    await asyncio.gather(*[one(op) for op in ops])


# %% id=06-as-completed cause="µs before you used it"
async def as_they_come(ops, use):
    left = [agt.spawn(op) for op in ops]
    while left:
        for task in [t for t in left if t.done()]:
            left.remove(task)
            use(task.result())
        await agt.sleep(100)


# %% id=06-as-completed cause="when `use` raises an error"
async def as_they_come(ops, use):
    tasks = [agt.spawn(op) for op in ops]
    for task in tasks:
        task.add_done_callback(lambda t: use(t.result()))
    await asyncio.gather(*tasks)


# %% id=06-cancel cause="with at most 900 µs for 4000000 elements, the result was there in time, and `at_most` returned None"
# - return task.result() if task.done() else None
# + return (task.result() if np.any(task.result()) else None) if task.done() else None


# %% id=06-cancel cause="the operation failed, and 1 task of yours went on waiting"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(us))
# + failed = False
# - await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
# + await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
# + failed = task.done() and not task.cancelled() and task.exception()
# - clock.cancel()
# + if not failed:
# +     clock.cancel()


# %% id=06-cancel cause="the time was up, and you went on waiting for 100 µs"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(us + 100))


# %% id=06-cancel cause="with at most 200000 µs for 64 elements, the host waited 1 time"
# - async def at_most(op, us):
# + async def at_most(op, us):
# +     if us > 100_000:
# +         return op.sync()


# %% id=06-feed cause="the error doesn't come out of your function"
async def feed(n, prepare, process, use):
    flying = []
    for i in range(n):
        x = prepare(i)
        result = await flying.pop(0) if len(flying) == 2 else None
        flying.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
        if result is not None:
            try:
                use(result)
            except Exception:
                pass
    for task in flying:
        use(await task)


# %% id=06-feed cause="with n=1, batch 1 was prepared"
async def feed(n, prepare, process, use):
    first = agt.spawn(process(prepare(0)))
    await asyncio.sleep(0)
    second = agt.spawn(process(prepare(1)))
    await asyncio.sleep(0)
    for i in range(2, n):
        x = prepare(i)
        result = await first
        first, second = second, agt.spawn(process(x))
        await asyncio.sleep(0)
        use(result)
    use(await first)
    use(await second)


# %% id=06-prepare cause="element 0 is -1.33301, and should be -1.33333"
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# + await asyncio.sleep(0)
# - results.append(await task)
# + results.append((await task).astype(np.float16))


# %% id=06-three-arms cause="should be ('done', None), and is ('program', None)"
async def reports(ops):
    def report(outcome):
        if isinstance(outcome, agt.DeviceError):
            return "device", outcome
        if not isinstance(outcome, np.ndarray):
            return "program", outcome
        return "done", outcome

    return [report(o) for o in await asyncio.gather(*ops, return_exceptions=True)]


# %% id=06-three-arms of=above cause="should be ('done', None), and is ('program', None)"
# - if not isinstance(outcome, np.ndarray):
# + if isinstance(outcome, BaseException):
# - return "done", outcome
# + return ("done", outcome) if outcome is not None else ("program", None)


# %% id=06-three-arms of=above cause="should be ('device', DeviceError('no luck')), and is ('program', "
# - if isinstance(outcome, agt.DeviceError):
# + if isinstance(outcome, agt.errors.OutOfBoundsError):
# - if not isinstance(outcome, np.ndarray):
# + if isinstance(outcome, BaseException):


# %% id=06-responsive cause="`beat` was called 2000 times without an end"
async def with_heartbeat(op, beat):  # an operation may yield None
    result = None

    async def run():
        nonlocal result
        result = await op

    task = asyncio.create_task(run())
    while result is None:
        beat()
        await agt.sleep(50)
        if task.done() and task.exception():
            raise task.exception()
    return result


# %% id=06-responsive cause="`op` yields None, and `with_heartbeat` returned"
# - return await task
# + return np.asarray(await task, np.float32)


# %% id=06-three-arms cause="should be ('program', UsageError('no luck')), and is ('device', "
# - except agt.DeviceError as error:
# + except agt.errors.AsyncGpuError as error:


# %% id=06-as-completed cause="with 2 operations, "
async def as_they_come(ops, use):  # four, as in the picture
    results = asyncio.as_completed([agt.spawn(op) for op in ops])
    for _ in range(4):
        use(await next(results))


# %% id=06-feed cause="your function has returned, and somebody still keeps results"
# + KEPT = []
# +
# +
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# + await asyncio.sleep(0)
# - use(await before)
# + KEPT.append(await before)
# + use(KEPT[-1])


# %% id=06-feed cause="with n=2, batch 2 was prepared"
async def feed(n, prepare, process, use):
    flying = []
    for i in range(max(n, 3) if n > 1 else 1):
        x = prepare(i)
        if len(flying) == 2:
            use(await flying.pop(0))
        flying.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
    for task in flying:
        use(await task)


# %% id=06-feed cause="`use` was called for batches [0, 2, 3, 4], and each of the 5 once is right"
# - async def feed(n, prepare, process, use):
# + async def feed(n, prepare, process, use):  # zeros are a result, too
# - await asyncio.sleep(0)  # its turn: the batch is submitted
# - if before is not None:
# - use(await before)
# + await asyncio.sleep(0)
# + if before is not None and (result := await before).any():
# +     use(result)


# %% id=06-cancel cause="the result was there, and you still waited for 24 µs"
# - clock = asyncio.create_task(agt.sleep(us))
# + waited = 0
# - await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
# + while waited < us and not task.done():
# +     await agt.sleep(50)
# +     waited += 50
# - clock.cancel()


# %% id=06-cancel cause="the time was up, and you went on waiting for 50 µs"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(us + 50))


# %% id=06-cancel cause="you gave up before the time was over"
# - clock = asyncio.create_task(agt.sleep(us))
# + clock = asyncio.create_task(agt.sleep(0.8 * us))


# %% id=06-limited cause="one is done, and its place stays empty for 46 µs"
async def run_limited(ops, limit):
    tasks = []
    for op in ops:
        while sum(not task.done() for task in tasks) >= limit:
            await agt.sleep(50)
        tasks.append(agt.spawn(op))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=06-responsive cause="the heart beats on after the operation was done"
# - return await task
# + beat()
# + return await task


# %% id=06-responsive cause="the heart beats on after the operation was done: cancel it, or look before each beat"
async def with_heartbeat(op, beat):
    task = agt.spawn(op)
    beat()
    while True:
        await agt.sleep(50)
        beat()
        if task.done():
            return task.result()


# %% id=06-responsive cause="beat 2 came 46 µs after the one before"
# - await agt.sleep(50)
# + await agt.sleep(45)


# %% id=06-responsive cause="between beat 2 and what came next were 56 µs"
# - await agt.sleep(50)
# + await agt.sleep(55)


# %% id=06-prepare cause="results in the wrong order, it seems"
async def pipeline(n, prepare, process):
    results = []

    async def one(i):
        results.append(await process(prepare(i)))

    await asyncio.gather(*[one(i) for i in range(n)])
    return results


# %% id=06-three-arms cause="the host waited"
async def reports(ops):
    tasks = [agt.spawn(op) for op in ops]
    await asyncio.sleep(0)
    try:
        agt.synchronize()
    except agt.DeviceError:
        pass
    found = await asyncio.gather(*tasks, return_exceptions=True)
    return [
        (
            "device"
            if isinstance(x, agt.DeviceError)
            else "program"
            if isinstance(x, Exception)
            else "done",
            x,
        )
        for x in found
    ]


# %% id=06-prepare cause="when `prepare` raises an error, the error doesn't come out"
async def pipeline(n, prepare, process):
    tasks = []
    for i in range(n):
        try:
            x = prepare(i)
        except Exception:
            break
        tasks.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
    return [await t for t in tasks]


# %% id=06-feed cause="when `prepare` raises an error, the error doesn't come out"
async def feed(n, prepare, process, use):
    from collections import deque

    flight = deque()
    for i in range(n):
        try:
            x = prepare(i)
        except Exception:
            break
        if len(flight) == 2:
            use(await flight.popleft())
        flight.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
    while flight:
        use(await flight.popleft())


# %% id=06-three-arms cause="Set of Tasks/Futures is empty"
async def reports(ops):
    async def one(op):
        try:
            return "done", await op
        except agt.DeviceError as e:
            return "device", e
        except Exception as e:
            return "program", e

    tasks = [asyncio.create_task(one(op)) for op in ops]
    await asyncio.wait(tasks)
    return [t.result() for t in tasks]


# %% id=06-as-completed cause="with no operations"
async def as_they_come(ops, use):
    left = {agt.spawn(op) for op in ops}
    while True:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for t in done:
            use(t.result())
        if not left:
            return


# %% id=06-as-completed cause="some results are missing"
async def as_they_come(ops, use):
    async def one(op):
        use(await op)

    await asyncio.gather(*[one(op) for op in set(ops)])


# %% id=06-limited cause="different event loop"
GATE = asyncio.Semaphore(2)


async def run_limited(ops, limit):
    async def one(op):
        async with GATE:
            return await op

    return list(await asyncio.gather(*[one(op) for op in ops]))


# %% id=06-cancel cause="use `agt.sleep(us)` instead (asyncio's own timers go by the clock on the wall)"
async def at_most(op, us):
    try:
        return await asyncio.wait_for(agt.spawn(op), us / 1e9)  # so it's too early anywhere
    except asyncio.TimeoutError:
        return None


# %% id=06-as-completed cause="with no operations, your code raised ValueError"
async def as_they_come(ops, use):
    tasks = [agt.spawn(op) for op in ops]
    for task in tasks:
        task.add_done_callback(lambda t: use(t.result()))
    await asyncio.wait(tasks)


# %% id=06-cancel cause="a NumPy array should come out, and not a Task: `await` it"
# - return task.result() if task.done() else None
# + return task if task.done() else None


# %% id=06-as-completed cause="one operation failed, as it is meant to here, and your function waits forever: let its error out"
async def as_they_come(ops, use):
    q = asyncio.Queue()

    async def run(op):
        q.put_nowait(await op)

    tasks = [asyncio.create_task(run(op)) for op in ops]
    for _ in tasks:
        use(await q.get())


# %% id=06-three-arms cause="with 7 operations, no more than 4 of 7 operations were in flight at a time"
async def reports(ops):
    gate = asyncio.Semaphore(4)

    async def report(op):
        async with gate:
            try:
                return "done", await op
            except agt.DeviceError as error:
                return "device", error
            except Exception as error:
                return "program", error

    return await asyncio.gather(*[report(op) for op in ops])


# %% id=06-as-completed cause="with 6 operations, when you used the first result, some operations hadn't started yet"
async def as_they_come(ops, use):
    gate = asyncio.Semaphore(4)

    async def one(op):
        async with gate:
            use(await op)

    await asyncio.gather(*map(one, ops))


# %% id=06-responsive cause="beat 2 came 1 µs after the one before, and one every 50 µs is right: before each beat but the first, wait"
async def with_heartbeat(op, beat):
    async def heart():
        while True:
            beat()
            await agt.sleep(50)

    beat()
    task = asyncio.create_task(heart())
    await asyncio.sleep(0)
    try:
        return await op
    finally:
        task.cancel()


# %% id=06-largest cause="`sync` or `synchronize` blocks the event loop"
async def largest(op):
    stream = agt.create_stream()
    numbers = op.async_on(stream)
    stream.synchronize()
    return numbers.max()


# %% id=06-largest cause="a result was read before the device was done with it"
async def largest(op):
    numbers = op.async_on(agt.create_stream())
    return numbers.max()


# %% id=06-largest cause="a future has no `max`: `await` it"
async def largest(op):
    numbers = op.into_future()
    return numbers.max()


# %% id=06-largest cause="an operation has no `max`: run it first"
async def largest(op):
    return op.max()


# %% id=06-largest cause="and you returned ndarray"
async def largest(op):
    return await op


# %% id=06-largest cause="`d2h` ran 2 times"
async def largest(op):
    return max((await op).max(), (await op).max())


# %% id=06-largest cause="a result was read before the device was done with it"
async def largest(op):
    numbers = op.async_on(agt.create_stream())
    await agt.sleep(1000)  # microseconds; by then it is surely there
    return numbers.max()


# %% id=06-largest cause="the largest number is"
async def largest(op):
    return np.abs(await op).max()


# %% id=06-largest cause="no other task had a turn while this one waited"
async def largest(op):
    stream = agt.create_stream()
    numbers = op.async_on(stream)
    while not stream.done:
        pass
    return numbers.max()


# %% id=06-largest cause="`largest` should be a coroutine: write it with `async def`"
def largest(op):
    return op.sync().max()


# %% id=06-largest cause="a task was asked for its result before it was done"
async def largest(op):
    t = agt.spawn(op)
    await asyncio.sleep(0.01)
    return t.result().max()


# %% id=06-largest cause="with an array of shape (1000, 400), your code raised ValueError"
# - return (await op).max()
# + return max(await op)


# %% id=06-largest cause="`sync` or `synchronize` blocks the event loop"
async def largest(op):
    numbers = op.async_on(agt.create_stream())
    await asyncio.sleep(0)
    agt.synchronize()
    return numbers.max()


# %% id=06-largest cause="when the device refuses to run `h2d`, the error doesn't come out of your function"
from functools import partial


async def largest_or(number, op):
    try:
        return (await op).max()
    except agt.DeviceError:
        return number


largest = partial(largest_or, 0.0)
