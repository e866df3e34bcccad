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


# %% id=00-both
import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context


async def both(first, second):
    """As by `asyncio.to_thread`, with threads that end here."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as pool:
        found = [loop.run_in_executor(pool, copy_context().run, op.sync) for op in (first, second)]
        return [await task for task in found]
