"""Right answers to exercises of course/08_profiling.py in other forms than the solution's."""


# %% id=08-gap
def largest_gap(trace):
    gaps = agt.analyse(trace).gaps
    return [gaps[0].start, gaps[0].end] if gaps else [0.0, 0.0]


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


# %% id=08-stats
def shares(trace, name):
    (row,) = [row for row in agt.analyse(trace).sums.kernels if row.name == name]
    return 100 * row.share, 100 * row.total / trace.metrics().device_makespan


# %% id=08-creeping
def creeping(trace):
    found = {}
    for row in (row for row in agt.analyse(trace).sums.ranges if row.count >= 20):
        us = [span.duration for span in trace.find(row.name) if span.kind == "range"]
        found[np.median(us[-10:]) / np.median(us[:10])] = row.name
    return found[max(found)]


# %% id=08-challenge
async def serve(requests, score):
    """One operation with an arm for each request; seven streams are enough to be fast."""
    arms = [agt.h2d(agt.pin(x)).and_then(score).to_host() for x in requests]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))
