"""Right answers to exercises of course/00_start_here.py in other forms than the solution's."""

# %% id=00-quicker
async def quicker(op, wait, job, us):
    stream = agt.create_stream()
    result = op.async_on(stream)
    job()
    stream.synchronize()
    return result.numpy()


# %% id=00-quicker
import asyncio


async def quicker(op, wait, job, us):
    if us <= 20 or wait <= 24:
        return [op.sync(), job()][0]
    task = agt.spawn(op)
    await asyncio.sleep(0)
    job()
    return await task


# %% id=00-develop
import asyncio


async def develop(ops):
    return await asyncio.gather(*[op.schedule() for op in ops])


# %% id=00-challenge
import asyncio


async def everything(trips, job):
    async def work():
        job()

    *results, _ = await asyncio.gather(*[agt.spawn(trip) for trip in trips], work())
    return results
