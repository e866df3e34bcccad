"""Right answers to exercises of course/08b_detective.py in other forms than the solution's."""


# %% id=08b-rate
import numpy as np


def rate(trace):
    ((speed,),) = trace.sql(
        "select sum(bytes) / sum(duration) / 1000 from spans where kind = 'h2d'"
    )
    return np.float32(speed)


# %% id=08b-gain
def gain(trace):
    """All that is not NCCL is shared, and each adding-up takes as long as the quicker of its two kernels."""
    lines = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in line if s.name.startswith("nccl")] for line in lines]
    adding = sum(min(pair) for pair in zip(*talks))
    computing = sum(s.duration for line in lines for s in line) - sum(map(sum, talks))
    return max(sum(s.duration for s in line) for line in lines) / (computing / 2 + adding)


# %% id=08b-challenge
SHAPE = 64, 8192


async def serve(requests, model):
    """One operation with an arm for each request; seven streams are enough to be fast."""
    buffer = agt.pinned((len(requests), *SHAPE))
    for read_into, x in zip(requests, buffer):
        read_into(x)
    arms = [agt.h2d(x).and_then(model).to_host() for x in buffer]
    return list(await agt.overlap(*arms).schedule(agt.StreamPoolRoundRobin(7)))


# %% id=08b-suspects
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


# %% id=08b-suspects
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


# %% id=08b-challenge
async def serve(requests, model):
    """All are asked for before the loop has another turn."""
    policy = agt.StreamPoolRoundRobin(len(requests))
    ops = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        ops.append(agt.h2d(x, "request").and_then(model).to_host().schedule(policy))
    return await asyncio.gather(*ops)
