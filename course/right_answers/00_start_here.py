"""Right answers to exercises of course/00_start_here.py in other forms than the solution's."""

# %% id=00-both
import asyncio


async def both(first, second):
    return await asyncio.gather(first.schedule(), second.schedule())


# %% id=00-challenge
import asyncio


async def everything(trips, job):
    async def work():
        job()

    *results, _ = await asyncio.gather(*[agt.spawn(trip) for trip in trips], work())
    return results
