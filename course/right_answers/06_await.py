"""Right answers to exercises of course/06_await.py in other forms than the solution's."""


# %% id=06-prepare
import asyncio


async def pipeline(n, prepare, process):
    tasks = []
    for i in range(n):
        tasks.append(agt.spawn(process(prepare(i))))
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks)


# %% id=06-responsive
import asyncio


async def with_heartbeat(op, beat):
    async def heart():
        while True:
            beat()
            await agt.sleep(50)

    beating = asyncio.create_task(heart())
    try:
        return await op
    finally:
        beating.cancel()


# %% id=06-responsive of=above
# - beating = asyncio.create_task(heart())
# + beating, task = asyncio.create_task(heart()), agt.spawn(op)
# + task.add_done_callback(lambda _: beating.cancel())
# - return await op
# + return await task


# %% id=06-responsive
import asyncio


async def with_heartbeat(op, beat):
    """An error of the operation cancels the heart, and comes out in a group."""

    async def heart():
        while True:
            beat()
            await agt.sleep(50)

    async with asyncio.TaskGroup() as group:
        beating = group.create_task(heart())
        result = await op
        beating.cancel()
    return result


# %% id=06-three-arms
import asyncio


async def reports(ops):
    """No `try` at all."""

    def told(outcome):
        if isinstance(outcome, agt.DeviceError):
            return "device", outcome
        return ("program" if isinstance(outcome, Exception) else "done"), outcome

    return [told(outcome) for outcome in await asyncio.gather(*ops, return_exceptions=True)]


# %% id=06-cancel
import asyncio


async def at_most(op, us):
    task, clock = agt.spawn(op), asyncio.create_task(agt.sleep(us))
    try:
        done, _ = await asyncio.wait({task, clock}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        clock.cancel()
        task.cancel()
    return task.result() if task in done else None


# %% id=06-as-completed
import asyncio


async def as_they_come(ops, use):
    for done in asyncio.as_completed([agt.spawn(op.named("mine")) for op in ops]):
        use(await done)


# %% id=06-limited
import asyncio


def limited(change, take=lambda x: x):
    async def run_limited(ops, limit):
        gate = asyncio.Semaphore(limit)

        async def run(op):
            async with gate:
                return take(await change(op))

        return await asyncio.gather(*[run(op) for op in ops])

    return run_limited


run_limited = limited(lambda op: op.named("mine"))


# %% id=06-limited of=above
# - run_limited = limited(lambda op: op.named("mine"))
# + run_limited = limited(lambda op: agt.zip(op, agt.value(0)), lambda pair: pair[0])


# %% id=06-limited
import asyncio


async def run_limited(ops, limit):
    results, todo = [None] * len(ops), iter(enumerate(ops))

    async def worker():
        for i, op in todo:
            results[i] = await op

    await asyncio.gather(*[worker() for _ in range(limit)])
    return results


# %% id=06-limited of=above
#   async def run_limited(ops, limit):
# +     """An error comes out in a group."""
# - await asyncio.gather(*[worker() for _ in range(limit)])
# + async with asyncio.TaskGroup() as group:
# +     for _ in range(limit):
# +         group.create_task(worker())


# %% id=06-responsive
import asyncio


async def with_heartbeat(op, beat):
    task = agt.spawn(op)
    try:
        while True:
            beat()
            clock = asyncio.ensure_future(agt.sleep(50))
            await asyncio.wait({task, clock}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                clock.cancel()
                return task.result()
    finally:
        task.cancel()


# %% id=06-responsive
import asyncio


async def with_heartbeat(op, beat):
    """Beats go by the clock: one that comes late does not put off those behind it."""
    now, task = agt.current_device().now, agt.spawn(op)
    due = now()
    while not task.done():
        beat()
        due += 50
        await agt.sleep(max(0, due - now()))
    return await task


# %% id=06-prepare
async def pipeline(n, prepare, process):
    """A group of tasks, out of which an error comes in a group."""
    async with asyncio.TaskGroup() as group:
        tasks, x = [], prepare(0)
        for i in range(n):
            tasks.append(group.create_task(run(process(x))))
            await asyncio.sleep(0)
            if i + 1 < n:
                x = prepare(i + 1)
            await asyncio.wait([tasks[-1]])
    return [task.result() for task in tasks]


async def run(op):
    return await op


# %% id=06-feed
async def feed(n, prepare, process, use):
    """An error that says which batch it was; what is still under way is cancelled."""
    waiting = []

    async def finish(i, task):
        try:
            use(await task)
        except agt.DeviceError as error:
            raise RuntimeError(f"batch {i} failed") from error

    try:
        for i in range(n):
            waiting.append((i, agt.spawn(process(prepare(i)))))
            await asyncio.sleep(0)
            if len(waiting) == 2:
                await finish(*waiting.pop(0))
        for one in waiting:
            await finish(*one)
    finally:
        for _, task in waiting:
            task.cancel()


# %% id=06-as-completed
async def as_they_come(ops, use):
    """The set of those that are done has no order, and it needs none: they are there in the same turn."""
    left = {agt.spawn(op) for op in ops}
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            use(task.result())


# %% id=06-as-completed
async def as_they_come(ops, use):
    """Of those that are there in the same turn, the last in the list comes first."""
    tasks = [agt.spawn(op) for op in ops]
    left = set(tasks)
    while left:
        done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        for task in reversed(tasks):
            if task in done:
                use(task.result())


# %% id=06-as-completed
async def as_they_come(ops, use):
    """Each uses its own result, in a group, out of which an error comes in a group."""

    async def one(op):
        use(await op)

    async with asyncio.TaskGroup() as group:
        for op in ops:
            group.create_task(one(op))


# %% id=06-feed
async def feed(n, prepare, process, use):
    """The next batch is submitted before the result is used: below 1300."""
    flying = []
    for i in range(n):
        x = prepare(i)
        result = await flying.pop(0) if len(flying) == 2 else None
        flying.append(agt.spawn(process(x)))
        await asyncio.sleep(0)
        if result is not None:
            use(result)
    for task in flying:
        use(await task)


# %% id=06-largest
import asyncio


async def largest(op):
    stream = agt.create_stream()
    numbers = op.async_on(stream)
    while not stream.done:  # noqa: ASYNC110 - a device's stream sets no asyncio.Event
        await asyncio.sleep(0)
    return numbers.max()
