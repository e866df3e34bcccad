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
# - kernels = [span for span in trace.device_spans if span.kind == "kernel"]
# - kernels.sort(key=lambda span: span.start)
# - done, gap = kernels[0].end, (0.0, 0.0)
# - for span in kernels:
# + work = sorted(trace, key=lambda span: span.start)
# + done, gap = work[0].end, (0.0, 0.0)
# + for span in work:


# %% id=08-gap slip cause="That's from the start of one kernel to the start of the next: a gap begins at an end"
def largest_gap(trace):
    starts = sorted(span.start for span in trace.device_spans if span.kind == "kernel")
    return max(zip(starts, starts[1:]), key=lambda gap: gap[1] - gap[0])


# %% id=08-gap cause="should return (start, end)"
def largest_gap(trace):  # how long it is
    kernels = sorted((s.start, s.end) for s in trace.device_spans if s.kind == "kernel")
    return max(b - a for (_, a), (b, _) in zip(kernels, kernels[1:]))


# %% id=08-gap cause="with kernels in another order than their starts"
def largest_gap(trace):  # in the order in which they are listed
    work = [span for span in trace.device_spans if span.kind == "kernel"]
    done, gap = work[0].end, (0.0, 0.0)
    for span in work:
        if span.start - done > gap[1] - gap[0]:
            gap = done, span.start
        done = max(done, span.end)
    return gap


# %% id=08-gap cause="with kernels without a gap"
def largest_gap(trace):
    work = [span for span in trace.device_spans if span.kind == "kernel"]
    work.sort(key=lambda span: span.start)
    done, gaps = work[0].end, []
    for span in work[1:]:
        gaps.append((span.start - done, done, span.start))
        done = max(done, span.end)
    return max(gaps)[1:]


# %% id=08-rate slip cause="Copies back from the GPU are among them"
def rate(trace):  # to the device and back
    copies = [span for span in trace.device_spans if "bytes" in span.detail]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies) / 1000


# %% id=08-rate slip cause="That's the mean of the rates: divide all bytes by all the time"
def rate(trace):  # the mean of the rates
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return float(np.mean([s.detail["bytes"] / s.duration / 1000 for s in copies]))


# %% id=08-rate slip cause="That's in GiB, of 2³⁰ bytes each: here a gigabyte has 10⁹"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies) * 1e6 / 2**30


# %% id=08-rate slip cause="That's by all of the time, pauses and kernels included: divide by that of the copies"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return sum(s.detail["bytes"] for s in copies) / trace.metrics().device_makespan / 1000


# %% id=08-rate cause="should return"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies)


# %% id=08-creeping slip cause="By the mean, one odd value decides"
# - def creeping(trace):
# + def creeping(trace):  # the mean, which one odd value decides
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: np.mean(us[-10:]) / np.mean(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-creeping cause="returned 'fives'"
# - def creeping(trace):
# + def creeping(trace):  # also names with few ranges
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: us[-1] / us[0] for n, us in times.items() if n != "late"}


# %% id=08-creeping slip cause="That's by the difference: how many *times* as long has each become?"
# - def creeping(trace):
# + def creeping(trace):  # by the difference
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: np.median(us[-10:]) - np.median(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-waited slip cause="That's all of their time in all-reduces, adding included"
def waited(trace):  # all of the time in the kernels
    return tuple(
        sum(span.duration for span in trace.of(name).device_spans if span.name.startswith("nccl"))
        for name in trace.devices
    )


# %% id=08-waited slip cause="Early and late ones cancel out in that sum: decide for a pair at a time who waited"
# - def waited(trace):
# + def waited(trace):  # the sum of the differences, of which some are negative
# - later = [b - a for a, b in zip(zero, one)]
# - return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)
# + later = sum(b - a for a, b in zip(zero, one))
# + return max(later, 0), max(-later, 0)


# %% id=08-waited cause="should return"
# - def waited(trace):
# + def waited(trace):  # the wrong way round
# - return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)
# + return sum(max(-us, 0) for us in later), sum(max(us, 0) for us in later)


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
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items()}


# %% id=08-creeping slip cause="That leaves out a name with exactly twenty ranges, and twenty are enough"
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) > 20}


# %% id=08-creeping slip cause="That's by halves: compare the last ten with the first ten"
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {}
# + for name, us in times.items():
# +     half = len(us) // 2
# +     if half >= 10:
# +         grown[name] = np.median(us[half:]) / np.median(us[:half])


# %% id=08-waited slip cause="That's by durations, but the two don't always end together: compare their starts"
# - [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
# + [span.duration for span in trace.of(name).device_spans if span.name.startswith("nccl")]
# - later = [b - a for a, b in zip(zero, one)]
# + later = [a - b for a, b in zip(zero, one)]


# %% id=08-rate cause="1,000,000 times too much: look at the unit"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return 1000 * sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies)


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


# %% id=08-gain cause="it's 1.48 (within a tenth will do)"
def gain(trace):  # as if the late GPU could just be as quick as the other
    busy = []
    for name in trace.devices:
        work = trace.of(name).device_spans
        talk = sum(s.duration for s in work if s.name.startswith("nccl"))
        busy.append((sum(s.duration for s in work), talk))
    return busy[0][0] / (busy[1][0] - busy[1][1] + busy[0][1])


# %% id=08-gain cause="with GPUs that wait for each other"
def gain(trace):  # what it was once
    return 1.48


# %% id=08-gain slip cause="That's the inverse: the new time as a part of the old"
def gain(trace):
    work = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in w if s.name.startswith("nccl")] for w in work]
    busy = [sum(s.duration for s in w) for w in work]
    computing = sum(busy) - sum(map(sum, talks))
    return (computing / 2 + sum(map(min, zip(*talks)))) / max(busy)


# %% id=08-gain slip cause="Without any all-reduce. They stay, each as long as the shorter of its two kernels"
def gain(trace):
    work = [trace.of(name).device_spans for name in trace.devices]
    busy = [sum(s.duration for s in w) for w in work]
    computing = [sum(s.duration for s in w if not s.name.startswith("nccl")) for w in work]
    return max(busy) / (sum(computing) / 2)


# %% id=08-gain slip cause="That's the time of both GPUs over the time of one: metrics of several GPUs add up what each has"
def gain(trace):
    work = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in w if s.name.startswith("nccl")] for w in work]
    computing = sum(s.duration for w in work for s in w) - sum(map(sum, talks))
    return trace.metrics().device_makespan / (computing / 2 + sum(map(min, zip(*talks))))


# %% id=08-gain cause="with two_gpus, you predicted 1.0"
def gain(trace):  # one GPU's time over the other's
    busy = [trace.of(name).metrics().device_active for name in trace.devices]
    return max(busy) / min(busy)


# %% id=08-gain cause="you predicted 'half as much again'"
def gain(trace):
    return "half as much again"


# %% id=08-challenge cause="it's right, but it takes 2628"
async def serve(requests, model):
    tasks = []
    for read_into in requests:
        x = np.empty((64, 8192), np.float32)
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(model).to_host()))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="it's right, but it takes 832"
async def serve(requests, model):
    ops = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        ops.append(agt.h2d(x, "request").and_then(model).to_host())
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="8 requests were read into ordinary memory"
async def serve(requests, model):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = []
        for read_into in requests:
            x = np.empty((64, 8192), np.float32)
            read_into(x)
            ops.append(agt.h2d(agt.pin(x), "request").and_then(model).to_host())
        return await asyncio.gather(*ops)


# %% id=08-challenge cause="should return a list of 8, one for each in order"
async def serve(requests, model):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = []
        for read_into in requests:
            x = agt.pinned((64, 8192))
            read_into(x)
            ops.append(agt.h2d(x, "request").and_then(model).to_host())
        await asyncio.gather(*ops)


# %% id=08-challenge cause="is in no copy from memory that a kernel has written"
async def serve(requests, model):
    source = 'extern "C" __global__ void matvec_naive(float* y) { y[threadIdx.x] = 1.0f; }'
    kernel = agt.Kernel(source)
    await asyncio.gather(*[kernel(agt.zeros(64), grid=1, block=64) for _ in requests])
    results = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        results.append(x.sum(axis=1))
    return results


# %% id=08-challenge cause="a result was read before the device was done with it"
async def serve(requests, model):
    results = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        op = agt.h2d(x, "request").and_then(model).to_host()
        results.append(op.async_on(agt.create_stream()))
    return [result.numpy() for result in results]


# %% id=08-challenge cause="with result 0, element 0 is"
async def serve(requests, model):
    buffer = agt.pinned((64, 8192))
    ops = []
    for read_into in requests:
        read_into(buffer)
        ops.append(agt.h2d(buffer, "request").and_then(model).to_host())
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="was changed while its copy may have been in flight"
# - policy = agt.StreamPoolRoundRobin(len(requests))
# + buffer = agt.pinned((64, 8192))
# - x = agt.pinned((64, 8192))
# - read_into(x)
# - tasks.append(agt.spawn(agt.h2d(x, "request").and_then(model).to_host(), policy))
# + read_into(buffer)
# + tasks.append(agt.spawn(agt.h2d(buffer, "request").and_then(model).to_host()))


# %% id=08-challenge cause="with a device that takes its time"
async def serve(requests, model):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        tasks = []
        for read_into in requests:
            x = agt.pinned((64, 8192))
            read_into(x)
            tasks.append(agt.spawn(agt.h2d(x, "request").and_then(model).to_host()))
        return [await task for task in asyncio.as_completed(tasks)]


# %% id=08-blame slip cause="That's all of a gap whose main cause it is. Count the parts with that `cause` only"
# - for part in gap.parts:
# - if part.cause == "host late":
# - late[part.span.label] = late.get(part.span.label, 0) + part.duration
# + if gap.main.cause == "host late":
# +     label = gap.main.span.label
# +     late[label] = late.get(label, 0) + gap.duration


# %% id=08-rate slip cause="That's from the first copy's start to the last one's end, pauses included: add up their durations"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    time = max(span.end for span in copies) - min(span.start for span in copies)
    return sum(span.detail["bytes"] for span in copies) / time / 1000


# %% id=08-gain slip cause="That leaves out the all-reduces on both sides, and a run has them before and after"
def gain(trace):
    work = [trace.of(name).device_spans for name in trace.devices]
    computing = [sum(s.duration for s in w if not s.name.startswith("nccl")) for w in work]
    return max(computing) / (sum(computing) / 2)


# %% id=08-gain slip cause="Waiting doesn't just vanish: the GPU that waited has more to compute instead"
def gain(trace):
    work = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s for s in w if s.name.startswith("nccl")] for w in work]
    waiting = sum(abs(a.start - b.start) for a, b in zip(*talks))
    busy = max(sum(s.duration for s in w) for w in work)
    return busy / (busy - waiting)


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


# %% id=08-creeping cause="here 'early', and returned 'call'"
def creeping(trace):
    times = {}
    for s in trace:
        if s.kind != "kernel":
            times.setdefault(s.name, []).append(s.duration)
    grows = {k: np.median(v[-10:]) / np.median(v[:10]) for k, v in times.items() if len(v) >= 20}
    return max(grows, key=grows.get)


# %% id=08-creeping cause="here 'early', and returned 'dip'"
def creeping(trace):
    times = {}
    for s in trace:
        if s.kind == "range":
            times.setdefault(s.name, []).append(s.duration)
    grows = {k: np.median(v[-10:]) / np.median(v) for k, v in times.items() if len(v) >= 20}
    return max(grows, key=grows.get)


# %% id=08-waited cause="this trace has no work of a device"
def waited(trace):
    talks = [[s for s in trace.of(d).device_spans if s.name.startswith("nccl")] for d in ("cuda:0", "cuda:1")]
    behind = [b.start - a.start for a, b in zip(*talks)]
    return sum(max(x, 0) for x in behind), sum(max(-x, 0) for x in behind)


# %% id=08-rate cause="with copies of two sizes, `rate` should return"
def rate(trace):
    copies = [s for s in trace.device_spans if s.kind == "h2d" and s.stream]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies) / 1000


# %% id=08-gap cause="with kernels with gaps of less than a µs, `largest_gap` should"
def largest_gap(trace):
    best, end = (0.0, 0.0), None
    kernels = [s for s in trace.device_spans if s.kind == "kernel"]
    for s in sorted(kernels, key=lambda s: s.start):
        if end is not None and s.start - end > 1 and s.start - end > best[1] - best[0]:
            best = (end, s.start)
        end = s.end if end is None else max(end, s.end)
    return best


# %% id=08-challenge cause="the error doesn't come out of your function"
# - return [await task for task in tasks]
# + return await asyncio.gather(*tasks, return_exceptions=True)


# %% id=08-creeping cause="here 'early', and returned 'fives'"
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {n: np.median(us[-5:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}


# %% id=08-creeping cause="here 'early', and returned 'low'"
# - def creeping(trace):
# + def creeping(trace):  # what shrinks has changed as well
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# - return max(grown, key=grown.get)
# + logs = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + return max(logs, key=lambda name: max(logs[name], 1 / logs[name]))


# %% id=08-creeping cause="here 'early', and returned 'fives'"
# - def creeping(trace):
# + def creeping(trace):  # the upper one of the two in the middle
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {
# +     n: sorted(us[-10:])[5] / sorted(us[:10])[5] for n, us in times.items() if len(us) >= 20
# + }


# %% id=08-creeping cause="here 'early', and returned 'dip'"
# - def creeping(trace):
# + def creeping(trace):  # the lower one of the two in the middle
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {
# +     n: sorted(us[-10:])[4] / sorted(us[:10])[4] for n, us in times.items() if len(us) >= 20
# + }


# %% id=08-waited cause="with each late once, "
# - def waited(trace):
# + def waited(trace):  # a kernel with `nccl` somewhere in its name need not be NCCL's
# - [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
# + [span.start for span in trace.of(name).device_spans if "nccl" in span.name]


# %% id=08-waited cause="with each late once, "
# - def waited(trace):
# + def waited(trace):  # by the name that they have in the two reports
# - [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
# + [s.start for s in trace.of(name).device_spans if s.name.startswith("ncclDevKernel")]


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


# %% id=08-rate cause="with copies of two sizes, `rate` should return GB/s, "
def rate(trace):  # all that has bytes and does not come back
    copies = [s for s in trace.device_spans if s.kind != "d2h" and s.detail.get("bytes")]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies) / 1000


# %% id=08-gain cause="with GPUs that wait for each other, you predicted 1.83"
def gain(trace):  # as long as both work on average
    work = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in w if s.name.startswith("nccl")] for w in work]
    busy = [sum(s.duration for s in w) for w in work]
    computing = sum(busy) - sum(map(sum, talks))
    return sum(busy) / 2 / (computing / 2 + sum(map(min, zip(*talks))))


# %% id=08-gain cause="with GPUs that wait for each other, you predicted 1.26"
def gain(trace):  # as if the first GPU were always the busier one
    work = [trace.of(name).device_spans for name in trace.devices]
    talks = [[s.duration for s in w if s.name.startswith("nccl")] for w in work]
    busy = [sum(s.duration for s in w) for w in work]
    computing = sum(busy) - sum(map(sum, talks))
    return busy[0] / (computing / 2 + sum(map(min, zip(*talks))))


# %% id=08-gain cause="with GPUs that wait for each other, you predicted 3.3"
def gain(trace):  # copies are work, too
    work = [[s for s in trace.of(n).device_spans if s.kind == "kernel"] for n in trace.devices]
    talks = [[s.duration for s in w if s.name.startswith("nccl")] for w in work]
    busy = [sum(s.duration for s in w) for w in work]
    computing = sum(busy) - sum(map(sum, talks))
    return max(busy) / (computing / 2 + sum(map(min, zip(*talks))))


# %% id=08-waited cause="with each late once, "
# - def waited(trace):
# + def waited(trace):  # a call of that name is no work
# - [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
# + [span.start for span in trace.of(name) if span.name.startswith("nccl")]


# %% id=08-challenge cause="was changed while its copy may have been in flight"
async def serve(requests, model):  # as many buffers as there were requests the first time
    policy = agt.StreamPoolRoundRobin(8)
    pool = [agt.pinned((64, 8192)) for _ in range(8)]
    tasks = []
    for i, read_into in enumerate(requests):
        read_into(pool[i % 8])
        op = agt.h2d(pool[i % 8], "request").and_then(model).to_host()
        tasks.append(agt.spawn(op, policy))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="pop from empty list"
# - for read_into in requests:
# + for read_into in requests:
# +     read_into(np.empty((64, 8192), np.float32))


# %% id=08-challenge cause="with result 0, element 1 is 8192, and should be 16384"
# - return [await task for task in tasks]
# + return [np.full_like(await task, (await task)[0]) for task in tasks]


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


# %% id=08-suspects cause="3 of 24 are right. With exhibit A, it isn't 'host-bound': waits with calls after them last for 36%"
def accuse(trace):
    return "host-bound"


# %% id=08-suspects cause="With exhibit A, it isn't 'innocent'"
def accuse(trace):  # only what the starter knows, and not the table
    m = trace.metrics()
    return "host-bound" if m.device_idle > m.device_active else "innocent"


# %% id=08-suspects cause="With exhibit B, recorded once more, it isn't 'innocent'"
def accuse(trace):  # what the page shows, learnt by heart
    size = len(trace)
    learnt = {len(agt.Trace.load_recording("08_hidden_synchronisation")): "hidden synchronisation"}
    m, kernels = trace.metrics(), [s for s in trace.device_spans if s.kind == "kernel"]
    big = max(kernels, key=lambda span: span.duration)
    if big.name == "sgemm_naive":
        return "one big kernel"
    if big.name == "matvec_naive":
        return "too few streams"
    if sum(span.kind == "wait" for span in trace) > 2 or size in learnt:
        return "hidden synchronisation"
    return "pageable copy" if m.device_makespan > 1200 else "innocent"


# %% id=08-suspects cause="With D on a quick machine, it isn't"
# - if sum(copying) > run / 3:
# + if sum(copying) > 900:


# %% id=08-suspects cause="With exhibit B, repaired, recorded once more, it isn't 'too few streams'"
# - return "too few streams" if queued and m.device_idle < run / 5 else "innocent"
# + return "too few streams" if m.device_idle < run / 5 else "innocent"


# %% id=08-suspects cause="With G with three quarters of the blocks, it isn't 'too few streams'"
# - if blocks < 132:
# + if blocks < 1_000:


# %% id=08-suspects cause="With B with twelve times the blocks, it isn't"
# - if blocks < 132:
# + if blocks < 2:


# %% id=08-suspects cause="With three steps of the plate, it isn't 'hidden synchronisation'"
# - if sum(waits) > run / 5:
# + if sum(waits) > 0:


# %% id=08-suspects cause="With G's twin with few blocks, it isn't 'host-bound'"
# - if m.device_idle > run / 2:
# + if m.device_idle > run / 3:


# %% id=08-suspects cause="it isn't 'hidden synchronisation': waits with calls after them last for 0% of the run"
# - waits = [span.duration for span in trace if span.kind == "wait" and span.start < last]
# + waits = [span.duration for span in trace if span.kind == "wait"]


# %% id=08-suspects cause="With small copies over a fast bus, it isn't 'pageable copy'"
# - if sum(copying) > run / 3:
# + if copying and sum(copying) > sum(s.duration for s in trace.device_spans if s.kind == "h2d"):


# %% id=08-suspects cause="With half of A on a slow machine, it isn't"
# - if sum(waits) > run / 5:
# + if len(waits) >= 3 and m.device_idle < run / 2:


# %% id=08-suspects cause="With nine narrow kernels on three streams, it isn't 'innocent'"
# - queued = len(kernels) > len({span.stream for span in kernels})
# + queued = len({span.stream for span in kernels}) == 2


# %% id=08-suspects cause="With exhibit D, recorded once more, it isn't 'innocent'"
# - if sum(copying) > run / 3:
# + if max(copying, default=0) > run / 5:


# %% id=08-suspects cause="With half of A on a slow machine, it isn't 'host-bound'"
# - if sum(waits) > run / 5:
# + if m.device_idle > run / 2:
# +     return "host-bound"
# + if sum(waits) > run / 5:


# %% id=08-suspects cause="With D on a quick machine, it isn't 'host-bound'"
# - if sum(copying) > run / 3:
# + if sum(copying) > run / 3 and m.device_idle < run / 2:


# %% id=08-suspects cause="With half of A on a slow machine, it isn't 'host-bound'"
# - if sum(waits) > run / 5:
# + if max(waits, default=0) > run / 12:


# %% id=08-suspects cause="With G's twin with slow calls, it isn't 'pageable copy'"
# - copying = [span.duration for span in calls if span.name == "enqueue h2d"]
# + copying = [span.duration for span in calls]


# %% id=08-suspects cause="With G's twin with slow calls, it isn't 'pageable copy'"
# - copying = [span.duration for span in calls if span.name == "enqueue h2d"]
# + copying = [span.duration for span in calls if span.name.startswith("enqueue")]


# %% id=08-suspects cause="With B with all but one kernel large, it isn't 'one big kernel'"
# - return "one big kernel" if longest.duration > m.device_active / 2 else "innocent"
# + every = sum(span.duration for span in kernels)
# + return "one big kernel" if every > m.device_active / 2 else "innocent"


# %% id=08-suspects cause="With G with three quarters of the blocks, it isn't 'innocent'"
# - return "one big kernel" if longest.duration > m.device_active / 2 else "innocent"
# + return "one big kernel" if len(kernels) == 1 else "innocent"


# %% id=08-suspects cause="With a quarter of A's twin, slower, it isn't 'one big kernel'"
# - return "one big kernel" if longest.duration > m.device_active / 2 else "innocent"
# + return "one big kernel" if len(trace.streams) == 1 else "innocent"


# %% id=08-suspects cause="With G's twin with few blocks, it isn't 'too few streams'"
# - return "too few streams" if queued and m.device_idle < run / 5 else "innocent"
# + return "too few streams" if queued else "innocent"


# %% id=08-suspects cause="With B with all but one kernel large, it isn't 'too few streams'"
# - blocks = np.prod(longest.detail["grid"])
# + blocks = min(np.prod(span.detail["grid"]) for span in kernels)


# %% id=08-suspects cause="`accuse` returned 'null stream', and the table has no such name"
def accuse(trace):
    return "null stream"


# %% id=08-suspects cause="a function is wanted here, and this is 'innocent'"
accuse = "innocent"


# %% id=08-suspects cause="With exhibit A, it isn't 'pageable copy'"
# - return "hidden synchronisation"
# + return "pageable copy"


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


# %% id=08-stats slip cause="Not all spans of that name are kernels: look at `kind`"
def saving(trace, name):
    m = trace.metrics()
    own = sum(span.duration for span in trace.find(name))
    everything = sum(span.duration for span in trace.device_spans if span.kind == "kernel")
    chain = [span for span in m.critical_spans if span.kind == "kernel" and span.name == name]
    return 100 * own / everything, 100 * sum(s.duration for s in chain) / m.makespan


# %% id=08-stats cause="100 times too little: a fraction is not yet percent"
def saving(trace, name):
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    chain = [span for span in m.critical_spans if span.kind == "kernel" and span.name == name]
    return own / sum(s.duration for s in kernels), sum(s.duration for s in chain) / m.makespan


# %% id=08-stats cause="with a host that begins early, `saving` should return"
# - return 100 * spent(kernels) / sum(s.duration for s in kernels), 100 * spent(awaited) / m.makespan
# + whole = sum(s.duration for s in kernels)
# + return 100 * spent(kernels) / whole, 100 * spent(awaited) / m.device_makespan


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


# %% id=08-challenge cause="it's right, but it takes 2923"
async def serve(requests, model):  # all requests, but the loop waits for each one that it asks for
    policy = agt.StreamPoolRoundRobin(len(requests))
    futures = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        futures.append(agt.h2d(x, "request").and_then(model).to_host().schedule(policy))
    return [await future for future in futures]


# %% id=08-costliest cause="with heat_looks_less, `costliest` should return one of the names, here 'stencil'"
def costliest(trace, names):
    return "is it still?" if "is it still?" in names else "f"


# %% id=08-suspects cause="With D on a quick machine, it isn't 'host-bound'"
# - if sum(copying) > run / 3:
# + if copying and m.overlap < 1 and longest.duration < run / 3 and m.device_idle < run / 2:


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


# %% id=08-challenge cause="the host waited"
# - policy = agt.StreamPoolRoundRobin(len(requests))
# + policy = agt.StreamPoolRoundRobin(8)
# - return [await task for task in tasks]
# + agt.synchronize()
# + return [await t for t in tasks]


# %% id=08-annotate cause="when `prepare` raises an error, the error doesn't come out"
# - with agt.ranges.across("request"):
# + with agt.ranges.across("request"):
# +     x = None
# - x = prepare(i)
# + try:
# +     x = prepare(i)
# + except Exception:
# +     pass


# %% id=08-challenge cause="when `requests` raises an error, the error doesn't come out"
# - policy = agt.StreamPoolRoundRobin(len(requests))
# + policy = agt.StreamPoolRoundRobin(8)
# - read_into(x)
# + try:
# +     read_into(x)
# + except Exception:
# +     x[:] = 0
# - return [await task for task in tasks]
# + return [await t for t in tasks]


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


# %% id=08-rate cause="takes things out of its caller's list"
def rate(trace):
    trace.spans[:] = [s for s in trace.spans if s.kind == "h2d" and s.on_device]
    return sum(s.detail["bytes"] for s in trace.spans) / sum(s.duration for s in trace.spans) / 1e3


# %% id=08-challenge cause="with a device that takes its time, with results in the wrong order"
# - policy = agt.StreamPoolRoundRobin(len(requests))
# + policy = agt.StreamPoolRoundRobin(4)
# - return [await task for task in tasks]
# + return [await task for task in asyncio.as_completed(tasks)]


# %% id=08-challenge cause="`sync` or `synchronize` blocks the event loop"
async def serve(requests, model):
    handles = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        op = agt.h2d(x, "request").and_then(model).to_host()
        handles.append(op.async_on(agt.create_stream()))
    agt.synchronize()
    return [handle.numpy() for handle in handles]


# %% id=08-creeping cause="here 'early', and returned 'late'"
# - def creeping(trace):
# + def creeping(trace):  # by the slope of a line through all, beside the mean
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {
# +     n: np.polyfit(range(len(us)), us, 1)[0] / np.mean(us) for n, us in times.items() if len(us) >= 20
# + }


# %% id=08-creeping cause="here 'early', and returned 'sudden'"
# - def creeping(trace):
# + def creeping(trace):  # by the slope of the logarithms
# - grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
# + grown = {
# +     n: np.polyfit(range(len(us)), np.log(us), 1)[0] for n, us in times.items() if len(us) >= 20
# + }
