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
# - return await process(x)
# + return await process(x).named("mine")


# %% id=08-creeping
def creeping(trace):
    found = {}
    for row in (row for row in agt.analyse(trace).sums.ranges if row.count >= 20):
        us = [span.duration for span in trace.find(row.name) if span.kind == "range"]
        found[np.median(us[-10:]) / np.median(us[:10])] = row.name
    return found[max(found)]


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


async def serve(requests, model):
    """One operation with an arm for each request; seven streams are enough to be fast."""
    buffer = agt.pinned((len(requests), *SHAPE))
    for read_into, x in zip(requests, buffer):
        read_into(x)
    arms = [agt.h2d(x).and_then(model).to_host() for x in buffer]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))


# %% id=08-costliest
def costliest(trace, names):
    """With the first left out."""

    def cost(name):
        us = [span.duration for span in trace.find(name) if span.kind == "range"]
        return len(us) * np.median(us[1:])

    return max(names, key=cost)


# %% id=08-suspects
def accuse(trace):
    """By other thresholds, and too few streams by what stands behind another kernel on its stream."""
    m, work = trace.metrics(), sorted(trace.device_spans, key=lambda span: span.start)
    run = m.device_makespan
    last = max(span.end for span in trace if span.kind == "call")
    if sum(s.duration for s in trace if s.kind == "wait" and s.end <= last) > 0.1 * run:
        return "hidden synchronization"
    if sum(s.duration for s in trace if s.kind == "call" and "h2d" in s.name) > 0.5 * run:
        return "pageable copy"
    if m.device_idle > 0.5 * run:
        return "host-bound"
    queued, ends = 0, {}
    for span in (span for span in work if span.kind == "kernel"):
        queued += np.prod(span.detail["grid"]) < 100 and span.start - ends.get(span.stream, -1e9) < 20
        ends[span.stream] = span.end
    if queued:
        return "too few streams"
    big = [s for s in work if s.kind == "kernel" and s.duration > 0.4 * m.device_active]
    return "one big kernel" if any(np.prod(s.detail["grid"]) >= 264 for s in big) else "innocent"


# %% id=08-suspects
def accuse(trace):
    """Waits as a share of the time in which the GPU stands still."""
    m = trace.metrics()
    calls = [span for span in trace if span.kind == "call"]
    asked = max(span.start for span in calls)
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    waits = sum(s.duration for s in trace if s.kind == "wait" and s.start < asked)
    if waits > m.device_idle / 2:
        return "hidden synchronisation"
    if sum(s.duration for s in calls if s.name == "enqueue h2d") > m.device_makespan / 6:
        return "pageable copy"
    if m.device_idle > m.device_active:
        return "host-bound"
    blocks = [np.prod(span.detail["grid"]) for span in kernels]
    if max(blocks) < 132 and len(kernels) > len({s.stream for s in kernels}):
        return "too few streams" if m.device_idle < 0.1 * m.device_makespan else "innocent"
    main = max(span.duration for span in kernels) > 0.5 * m.device_active
    return "one big kernel" if main and max(blocks) >= 132 else "innocent"


# %% id=08-stats
def saving(trace, name):
    """Of arrays, and as one."""
    m = trace.metrics()
    work = [span for span in trace.device_spans if span.kind == "kernel"]
    awaited = [span for span in m.critical_spans if span.kind == "kernel" and span.name == name]
    us, own = np.array([(s.duration, s.duration * (s.name == name)) for s in work]).sum(0)
    return 100 * np.array([own / us, sum(s.duration for s in awaited) / m.makespan])


# %% id=08-stats
def saving(trace, name):
    """As the page prints them: rounded."""
    (row,) = [row for row in agt.analyse(trace).sums.kernels if row.name == name]
    m = trace.metrics()
    chain = sum(span.duration for span in m.critical_spans if span.on_device and span.name == name)
    return round(100 * row.share, 1), round(100 * chain / m.makespan, 1)


# %% id=08-challenge
async def serve(requests, model):
    """All are asked for before the loop has another turn."""
    policy = agt.StreamPoolRoundRobin(len(requests))
    ops = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        ops.append(agt.h2d(x, "request").and_then(model).to_host().schedule(policy))
    return await asyncio.gather(*ops)
