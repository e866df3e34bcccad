"""Right answers to exercises of course/08_profiling.py in other forms than the solution's."""


# %% id=08-gap
def largest_gap(trace):
    kernels = sorted((s.start, s.end) for s in trace.device_spans if s.kind == "kernel")
    done = np.maximum.accumulate([end for _, end in kernels])
    gaps = [(a, b) for a, (b, _) in zip(done, kernels[1:]) if b > a]
    return list(max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0)))


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


# %% id=08-costliest
#   def costliest(trace, names):
# +     """With the first left out."""
# +
# - return len(us) * np.median(us)
# + return len(us) * np.median(us[1:])


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


# %% id=08-enough
def enough(once, old, new, times):
    """Whole steps."""
    if old <= times * new:
        return float("inf")
    return int(np.ceil(once * (1 - times) / (times * new - old)))
