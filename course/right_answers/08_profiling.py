"""Right answers to exercises of course/08_profiling.py in other forms than the solution's."""


# %% id=08-gap
def largest_gap(trace):
    kernels = sorted((s.start, s.end) for s in trace.device_spans if s.kind == "kernel")
    done = np.maximum.accumulate([end for _, end in kernels])
    gaps = [(a, b) for a, (b, _) in zip(done, kernels[1:]) if b > a]
    return list(max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0)))


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
    "A": ("hidden synchronization", 3),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 2_878.8),
    "G": ("one big kernel", 1296.0),
    "H": ("innocent", 85),
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


# %% id=08-stats
def shares(trace, name):
    """As the page prints them: rounded."""
    (row,) = [row for row in agt.analyse(trace).sums.kernels if row.name == name]
    return round(100 * row.share, 1), round(100 * row.total / trace.metrics().device_makespan, 1)


# %% id=08-gain
def gain(trace):
    """All that is not NCCL is shared, and each adding-up takes as long as the quicker of its two kernels."""
    lines = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in line if s.name.startswith("nccl")] for line in lines]
    adding = sum(min(pair) for pair in zip(*talks))
    computing = sum(s.duration for line in lines for s in line) - sum(map(sum, talks))
    return max(sum(s.duration for s in line) for line in lines) / (computing / 2 + adding)


# %% id=08-challenge
SHAPE = 64, 8192


async def serve(requests, score):
    """One operation with an arm for each request; seven streams are enough to be fast."""
    buffer = agt.pinned((len(requests), *SHAPE))
    for read_into, x in zip(requests, buffer):
        read_into(x)
    arms = [agt.h2d(x).and_then(score).to_host() for x in buffer]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))
