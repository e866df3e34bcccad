"""Plausible wrong answers to the exercises of course/08_profiling.py; see tools/build_notebooks.py."""


# %% id=08-annotate cause="was opened by one task and closed by another"
# - with agt.ranges.across("request"):
# + with agt.ranges.span("request"):


# %% id=08-annotate cause="was never closed"
async def handle(i, prepare, process):
    token = agt.ranges.start("request")
    with agt.ranges.span("prepare"):
        x = prepare(i)
    result = await process(x)
    agt.ranges.end(token)
    return result


# %% id=08-annotate cause="no range `request` holds all of request"
async def handle(i, prepare, process):
    with agt.ranges.span("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        future = process(x).into_future()
    return await future


# %% id=08-annotate cause="and nothing else"
async def handle(i, prepare, process):
    with agt.ranges.across("request"), agt.ranges.across("prepare"):
        x = prepare(i)
        return await process(x)


# %% id=08-annotate cause="should give 3 ranges called `request`, and gave 0"
# - with agt.ranges.across("request"):
# + with agt.ranges.across(f"request {i}"):


# %% id=08-annotate cause="`sync` or `synchronize` blocks the event loop"
# - with agt.ranges.across("request"):
# + with agt.ranges.span("request"):
# - return await process(x)
# + return process(x).sync()


# %% id=08-annotate cause="a NumPy array should come out"
# - return await process(x)
# + await process(x)


# %% id=08-gap slip cause="A copy is at work there, but no kernel: leave copies out"
def largest_gap(trace):
    gaps = agt.analyse(trace).gaps
    return (gaps[0].start, gaps[0].end) if gaps else (0.0, 0.0)


# %% id=08-gap slip cause="Nothing ran before the first kernel, so no gap begins at 0"
def largest_gap(trace):
    done, gap = 0.0, (0.0, 0.0)
    for span in sorted(trace.device_spans, key=lambda span: span.start):
        if span.kind == "kernel":
            if span.start - done > gap[1] - gap[0]:
                gap = done, span.start
            done = max(done, span.end)
    return gap


# %% id=08-gap slip cause="That's between two neighbours, and a long kernel beside them still ran: keep the largest end so far"
def largest_gap(trace):
    work = [span for span in trace.device_spans if span.kind == "kernel"]
    work.sort(key=lambda span: span.start)
    gaps = [(a.end, b.start) for a, b in zip(work, work[1:]) if b.start > a.end]
    return max(gaps, key=lambda gap: gap[1] - gap[0], default=(0.0, 0.0))


# %% id=08-gap slip cause="Calls and ranges of the host are among them: only `device_spans` are work of the GPU"
def largest_gap(trace):
    work = sorted(trace, key=lambda span: span.start)
    done, gap = work[0].end, (0.0, 0.0)
    for span in work:
        if span.start - done > gap[1] - gap[0]:
            gap = done, span.start
        done = max(done, span.end)
    return gap


# %% id=08-gap of=above cause="with kernels in another order than their starts"
# - def largest_gap(trace):
# - work = sorted(trace, key=lambda span: span.start)
# + def largest_gap(trace):  # in the order in which they are listed
# +     work = [span for span in trace.device_spans if span.kind == "kernel"]


# %% id=08-gap slip cause="That's from the start of one kernel to the start of the next: a gap begins at an end"
def largest_gap(trace):
    starts = sorted(span.start for span in trace.device_spans if span.kind == "kernel")
    return max(zip(starts, starts[1:]), key=lambda gap: gap[1] - gap[0])


# %% id=08-gap cause="should return (start, end)"
def largest_gap(trace):  # how long it is
    kernels = sorted((s.start, s.end) for s in trace.device_spans if s.kind == "kernel")
    return max(b - a for (_, a), (b, _) in zip(kernels, kernels[1:]))


# %% id=08-gap cause="with kernels without a gap"
def largest_gap(trace):
    work = [span for span in trace.device_spans if span.kind == "kernel"]
    work.sort(key=lambda span: span.start)
    done, gaps = work[0].end, []
    for span in work[1:]:
        gaps.append((span.start - done, done, span.start))
        done = max(done, span.end)
    return max(gaps)[1:]


# %% id=08-creeping slip cause="By the mean, one odd value decides"
# - def creeping(trace):
# + def creeping(trace):  # the mean, which one odd value decides
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: np.mean(us[-10:]) / np.mean(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-creeping cause="returned 'fives'"
# - def creeping(trace):
# + def creeping(trace):  # also names with few ranges
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: us[-1] / us[0] for n, us in times.items() if n != "late"}


# %% id=08-creeping slip cause="That's by the difference: how many *times* as long has each become?"
# - def creeping(trace):
# + def creeping(trace):  # by the difference
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: np.median(us[-10:]) - np.median(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-annotate cause="`process` fails, and its error should come out"
# - return await process(x)
# + try:
# +     return await process(x)
# + except Exception:
# +     return None


# %% id=08-annotate cause="`process 1` ran 2 times"
# - return await process(x)
# + try:
# +     return await process(x)
# + except KeyError:
# +     return await process(x)


# %% id=08-creeping slip cause="It has fewer than twenty ranges"
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items()}


# %% id=08-creeping slip cause="That leaves out a name with exactly twenty ranges, and twenty are enough"
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) > 20}


# %% id=08-creeping slip cause="That's by halves: compare the last ten with the first ten"
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {}
# + for name, us in times.items():
# +     half = len(us) // 2
# +     if half >= 10:
# +         grown[name] = np.median(us[half:]) / np.median(us[:half])


# %% id=08-blame slip cause="That's in the longest gap alone. Add up all that a label is late"
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.label, gap.main.duration


# %% id=08-blame slip cause="Not all of that is the host's doing: look at the `cause` of each part"
# - for part in gap.parts:
# - if part.cause == "host late":
# - late[part.span.label] = late.get(part.span.label, 0) + part.duration
# + label = gap.main.span.label
# + late[label] = late.get(label, 0) + gap.duration


# %% id=08-blame slip cause="That's the name of the work: its label says whose it is"
# - late[part.span.label] = late.get(part.span.label, 0) + part.duration
# + late[part.span.name] = late.get(part.span.name, 0) + part.duration


# %% id=08-blame cause="should return (label, µs)"
# - return max(late.items(), key=lambda item: item[1])
# + return max(late, key=late.get)


# %% id=08-blame cause="should return"
# - late[part.span.label] = late.get(part.span.label, 0) + part.duration
# + late[part.span.label] = max(late.get(part.span.label, 0), part.duration)


# %% id=08-blame cause="the wrong way round"
# - return max(late.items(), key=lambda item: item[1])
# + return max((us, label) for label, us in late.items())


# %% id=08-blame slip cause="That's all of a gap whose main cause it is. Count the parts with that `cause` only"
# - for part in gap.parts:
# - if part.cause == "host late":
# - late[part.span.label] = late.get(part.span.label, 0) + part.duration
# + if gap.main.cause == "host late":
# +     label = gap.main.span.label
# +     late[label] = late.get(label, 0) + gap.duration


# %% id=08-creeping cause="and returned 'low'"
# - def creeping(trace):
# + def creeping(trace):  # sorted by duration, so that everything grows
# - for span in trace:
# + for span in sorted(trace, key=lambda span: span.duration):


# %% id=08-creeping cause="here 'early', and returned 'kernel'"
def creeping(trace):
    times = {}
    for s in trace:
        if True:
            times.setdefault(s.name, []).append(s.duration)
    grows = {k: np.median(v[-10:]) / np.median(v[:10]) for k, v in times.items() if len(v) >= 20}
    return max(grows, key=grows.get)


# %% id=08-creeping of=above cause="here 'early', and returned 'call'"
# - if True:
# + if s.kind != "kernel":


# %% id=08-creeping of=above cause="here 'early', and returned 'dip'"
# - if True:
# + if s.kind == "range":
# - grows = {k: np.median(v[-10:]) / np.median(v[:10]) for k, v in times.items() if len(v) >= 20}
# + grows = {k: np.median(v[-10:]) / np.median(v) for k, v in times.items() if len(v) >= 20}


# %% id=08-gap cause="with kernels with gaps of less than a µs, `largest_gap` should"
def largest_gap(trace):
    best, end = (0.0, 0.0), None
    kernels = [s for s in trace.device_spans if s.kind == "kernel"]
    for s in sorted(kernels, key=lambda s: s.start):
        if end is not None and s.start - end > 1 and s.start - end > best[1] - best[0]:
            best = (end, s.start)
        end = s.end if end is None else max(end, s.end)
    return best


# %% id=08-creeping cause="here 'early', and returned 'fives'"
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# + grown = {n: np.median(us[-5:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-creeping cause="here 'early', and returned 'low'"
# - def creeping(trace):
# + def creeping(trace):  # what shrinks has changed as well
# - many = {name: us for name, us in times.items() if len(us) >= 20}
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
# - return max(grown, key=grown.get)
# + logs = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + return max(logs, key=lambda name: max(logs[name], 1 / logs[name]))


# %% id=08-creeping cause="here 'early', and returned 'fives'"
def creeping(trace):  # the upper one of the two in the middle
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {
        n: sorted(us[-10:])[5] / sorted(us[:10])[5] for n, us in times.items() if len(us) >= 20
    }
    return max(grown, key=grown.get)


# %% id=08-creeping of=above cause="here 'early', and returned 'dip'"
# - def creeping(trace):  # the upper one of the two in the middle
# + def creeping(trace):  # the lower one of the two in the middle
# - n: sorted(us[-10:])[5] / sorted(us[:10])[5] for n, us in times.items() if len(us) >= 20
# + n: sorted(us[-10:])[4] / sorted(us[:10])[4] for n, us in times.items() if len(us) >= 20


# %% id=08-creeping of=above cause="here 'early', and returned 'late'"
# - def creeping(trace):  # the upper one of the two in the middle
# + def creeping(trace):  # by the slope of a line through all, beside the mean
# - n: sorted(us[-10:])[5] / sorted(us[:10])[5] for n, us in times.items() if len(us) >= 20
# + n: np.polyfit(range(len(us)), us, 1)[0] / np.mean(us) for n, us in times.items() if len(us) >= 20


# %% id=08-creeping of=above cause="here 'early', and returned 'sudden'"
# - def creeping(trace):  # the upper one of the two in the middle
# + def creeping(trace):  # by the slope of the logarithms
# - n: sorted(us[-10:])[5] / sorted(us[:10])[5] for n, us in times.items() if len(us) >= 20
# + n: np.polyfit(range(len(us)), np.log(us), 1)[0] for n, us in times.items() if len(us) >= 20


# %% id=08-gap cause="with kernels beside a long copy, `largest_gap` should return (start, end), here (20, 80), and returned (40, 80)"
def largest_gap(trace):  # copies are left out, and a memset is taken for a kernel
    spans = [span for span in trace.device_spans if span.kind not in ("h2d", "d2h")]
    spans.sort(key=lambda span: span.start)
    done, gap = spans[0].end, (0.0, 0.0)
    for span in spans:
        if span.start - done > gap[1] - gap[0]:
            gap = done, span.start
        done = max(done, span.end)
    return gap


# %% id=08-gap cause="with a single kernel, your code raised ValueError"
def largest_gap(trace):  # one kernel has no neighbour
    kernels = sorted((s.start, s.end) for s in trace.device_spans if s.kind == "kernel")
    done, gaps = kernels[0][1], []
    for start, end in kernels[1:]:
        gaps.append((done, start) if start > done else (0.0, 0.0))
        done = max(done, end)
    return max(gaps, key=lambda gap: gap[1] - gap[0])


# %% id=08-costliest slip cause="`a` takes 5 µs nearly always, and took 900 once, which won't come again"
# - us = [span.duration for span in trace.find(name) if span.kind == "range"]
# - return len(us) * np.median(us)
# + return sum(span.duration for span in trace.find(name) if span.kind == "range")


# %% id=08-costliest slip cause="`b` takes 9 µs four times, and took 892 once, which won't come again"
# - us = [span.duration for span in trace.find(name) if span.kind == "range"]
# - return len(us) * np.median(us)
# + return np.mean([span.duration for span in trace.find(name) if span.kind == "range"])


# %% id=08-costliest slip cause="That's the longest in a typical case, but how often does it happen?"
# - us = [span.duration for span in trace.find(name) if span.kind == "range"]
# - return len(us) * np.median(us)
# + return np.median([span.duration for span in trace.find(name) if span.kind == "range"])


# %% id=08-costliest slip cause="That's by how often it happens, but how long does it take?"
def costliest(trace, names):
    return max(names, key=lambda name: sum(span.kind == "range" for span in trace.find(name)))


# %% id=08-costliest slip cause="Spans of other kinds that have this name are among them: look at `kind`"
# - us = [span.duration for span in trace.find(name) if span.kind == "range"]
# + us = [span.duration for span in trace.find(name)]


# %% id=08-costliest slip cause="`h` takes 1 µs four times, and took 901 once, which is an accident"
def costliest(trace, names):
    return max(names, key=lambda name: max(s.duration for s in trace.find(name) if s.kind == "range"))


# %% id=08-costliest cause="`b` takes 9 µs four times, and took 892 once, which won't come again"
# - return len(us) * np.median(us)
# + return len(us) * np.mean(us[1:])


# %% id=08-costliest slip cause="`i` takes 2 µs nine times, and took 90 µs or more four times, which won't come again"
# - return len(us) * np.median(us)
# + return len(us) * np.mean(sorted(us)[:-1])


# %% id=08-costliest cause="`i` takes 2 µs nine times"
# - return len(us) * np.median(us)
# + return len(us) * np.median(us[-3:])


# %% id=08-costliest cause="`i` takes 2 µs nine times"
# - return len(us) * np.median(us)
# + return len(us) * us[min(1, len(us) - 1)]


# %% id=08-costliest cause="`i` takes 2 µs nine times"
def costliest(trace, names):
    times = {name: sorted(s.duration for s in trace.find(name) if s.kind == "range") for name in names}
    typical = {name: np.mean(us[1:-1]) * len(us) for name, us in times.items()}
    return sorted(typical, key=typical.get)[-1]


# %% id=08-costliest cause="which is an accident"
# - def cost(name):
# + def cost(name):  # the one in the middle of the list, which nobody has sorted
# - return len(us) * np.median(us)
# + return len(us) * us[len(us) // 2]


# %% id=08-costliest cause="here 'f', and returned 'g'"
def costliest(trace, names):
    return max(names, key=lambda name: [s.duration for s in trace.find(name) if s.kind == "range"][-1])


# %% id=08-costliest cause="here 'f', and returned 'is it still?'"
def costliest(trace, names):
    return "is it still?"


# %% id=08-costliest cause="should return one of the names"
# - return max(names, key=cost)
# + return max(cost(name) for name in names)


# %% id=08-stats slip cause="The first is of all work, and copies are no kernels"
def saving(trace, name):
    def spent(spans):
        return sum(span.duration for span in spans if span.kind == "kernel" and span.name == name)

    m = trace.metrics()
    everything = sum(span.duration for span in trace.device_spans)
    return 100 * spent(trace.device_spans) / everything, 100 * spent(m.critical_spans) / m.makespan


# %% id=08-stats slip cause="The second is of all that runs. What of it does the end wait for?"
def saving(trace, name):
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    return 100 * own / sum(s.duration for s in kernels), 100 * own / trace.metrics().makespan


# %% id=08-stats slip cause="The second is of the chain's length, and that has all else that the end waits for"
def saving(trace, name):
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    chain = [span for span in m.critical_spans if span.kind == "kernel" and span.name == name]
    whole = sum(span.duration for span in m.critical_spans)
    return 100 * own / sum(s.duration for s in kernels), 100 * sum(s.duration for s in chain) / whole


# %% id=08-stats of=above cause="100 times too little: a fraction is not yet percent"
# - whole = sum(span.duration for span in m.critical_spans)
# - return 100 * own / sum(s.duration for s in kernels), 100 * sum(s.duration for s in chain) / whole
# + return own / sum(s.duration for s in kernels), sum(s.duration for s in chain) / m.makespan


# %% id=08-stats slip cause="Not all spans of that name are kernels: look at `kind`"
def saving(trace, name):
    m = trace.metrics()
    own = sum(span.duration for span in trace.find(name))
    everything = sum(span.duration for span in trace.device_spans if span.kind == "kernel")
    chain = [span for span in m.critical_spans if span.kind == "kernel" and span.name == name]
    return 100 * own / everything, 100 * sum(s.duration for s in chain) / m.makespan


# %% id=08-stats cause="with a host that begins early, `saving` should return"
# - return 100 * share, 100 * spent(awaited) / m.makespan
# + return 100 * share, 100 * spent(awaited) / m.device_makespan


# %% id=08-stats cause="Of 2, number 1 is right"
def saving(trace, name):  # as if the chain had no other kernels
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    return 100 * own / sum(s.duration for s in kernels), 0.0


# %% id=08-stats cause="with two GPUs, `saving` should return"
def saving(trace, name):
    m = trace.metrics()
    kernels = [s for s in trace.of(trace.devices[0]).device_spans if s.kind == "kernel"]
    mine = sum(s.duration for s in kernels if s.name == name)
    chain = [s for s in m.critical_spans if s.kind == "kernel" and s.name == name]
    return 100 * mine / sum(s.duration for s in kernels), 100 * sum(s.duration for s in chain) / m.makespan


# %% id=08-costliest cause="with heat_looks_less, `costliest` should return one of the names, here 'stencil'"
def costliest(trace, names):
    return "is it still?" if "is it still?" in names else "f"


# %% id=08-annotate cause="a cancelled request left its range open"
async def handle(i, prepare, process):
    r = agt.ranges.across("request")
    r.__enter__()
    try:
        with agt.ranges.span("prepare"):
            x = prepare(i)
        result = await process(x)
    except Exception:
        r.__exit__(None, None, None)
        raise
    r.__exit__(None, None, None)
    return result


# %% id=08-annotate cause="when `prepare` raises an error, the error doesn't come out"
# - with agt.ranges.across("request"):
# + with agt.ranges.across("request"):
# +     x = None
# - x = prepare(i)
# + try:
# +     x = prepare(i)
# + except Exception:
# +     pass


# %% id=08-gap cause="into another order"
def largest_gap(trace):
    trace.spans.sort(key=lambda s: s.start)
    end, best = None, (0.0, 0.0)
    for s in trace.spans:
        if s.kind != "kernel":
            continue
        if end is not None and s.start - end > best[1] - best[0]:
            best = (end, s.start)
        end = s.end if end is None else max(end, s.end)
    return best


# %% id=08-enough slip cause="`once` is in both runs, and the second one's counts `times` times"
# - return (times - 1) * once / gained if gained > 0 else np.inf
# + return once / gained if gained > 0 else np.inf


# %% id=08-enough slip cause="There's no negative number of steps. Can the second program ever be `times` as fast?"
# - return (times - 1) * once / gained if gained > 0 else np.inf
# + return (times - 1) * once / gained if gained else np.inf


# %% id=08-enough slip cause="So many steps gain `once` again and again. But is the *whole* run `times` as fast then?"
# - gained = old - times * new
# + gained = old - new


# %% id=08-enough cause="with `times` as the paces' ratio, `enough` should return a number of steps, here inf"
# - return (times - 1) * once / gained if gained > 0 else np.inf
# + return (times - 1) * once / gained if gained > 0 else np.inf if gained else 0.0


# %% id=08-enough cause="with programs that are as fast at once, `enough` should return a number of steps, here 0"
# - return (times - 1) * once / gained if gained > 0 else np.inf
# + return (times - 1) * once / gained if gained > 0 and times > 1 else np.inf


# %% id=08-enough cause="here 2362.39, and returned 123.1"
def enough(once, old, new, times):  # in thousands of µs
    return once / new / (old / new - 1) / 15.17


# %% id=08-annotate cause="when `both` raises an error, the error doesn't come out"
async def handle(i, *both):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = both[0](i)
        try:
            op = both[1](x)
        except agt.DeviceError:
            return None
        return await op
