"""Right answers to exercises of course/08_profiling.py in other forms than the solution's."""

# %% id=08-gap
largest_gap = lambda trace: [agt.analyse(trace).gaps[0].start, agt.analyse(trace).gaps[0].end]


# %% id=08-rate
import numpy as np


def rate(trace):
    ((speed,),) = trace.sql(
        "select sum(bytes) / sum(duration) / 1000 from spans where kind = 'h2d'"
    )
    return np.float32(speed)


# %% id=08-annotate
async def handle(i, prepare, process):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return await process(x).named("mine")


# %% id=08-suspects
suspects = {
    "A": "hidden synchronization",
    "B": "too few streams",
    "C": "null stream",
    "D": "pageable copy",
    "E": "lazy module loading",
    "G": "one big kernel",
}


# %% id=08-sql
query = """
with kernels as (select * from spans where kind = 'kernel')
select name, count(id), total(end - start) as us from kernels group by name order by us desc
"""


# %% id=08-challenge
async def serve(requests, score):
    """One operation with an arm for each request; seven streams are enough to be fast."""
    arms = [agt.h2d(agt.pin(x)).and_then(score).to_host() for x in requests]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))
