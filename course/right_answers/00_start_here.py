"""Right answers to exercises of course/00_start_here.py in other forms than the solution's."""


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
