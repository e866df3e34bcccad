"""Plausible wrong answers to the exercises of course/08_profiling.py; see tools/build_notebooks.py."""


# %% id=08-annotate cause="was opened by one task and closed by another"
async def handle(i, prepare, process):
    with agt.ranges.span("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return await process(x)


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
async def handle(i, prepare, process):
    with agt.ranges.across(f"request {i}"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return await process(x)


# %% id=08-annotate cause="`sync` blocks the event loop"
async def handle(i, prepare, process):
    with agt.ranges.span("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return process(x).sync()


# %% id=08-annotate cause="a NumPy array should come out"
async def handle(i, prepare, process):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        await process(x)


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


# %% id=08-kernel slip cause="That's our own number of the stream, not CUDA's"
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.stream, span.duration


# %% id=08-kernel slip cause="That's the first launch, not the longest"
def longest(trace, name):
    span = trace.find(name)[0]
    return span.detail["cuda_stream"], span.duration


# %% id=08-kernel cause="should return"
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.end


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


# %% id=08-stats slip cause="The first is of all work, and copies are no kernels"
def shares(trace, name):  # of all work, copies as well
    own = sum(span.duration for span in trace.device_spans if span.name == name)
    everything = sum(span.duration for span in trace.device_spans)
    return 100 * own / everything, 100 * own / trace.metrics().device_makespan


# %% id=08-stats slip cause="The second is of the time in which the GPU works, without its pauses"
def shares(trace, name):  # of the time in which the GPU works
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    everything = sum(span.duration for span in kernels)
    return 100 * own / everything, 100 * own / trace.metrics().device_active


# %% id=08-stats slip cause="The second is of the whole program, and not from the GPU's first work to its last"
def shares(trace, name):  # of the whole program
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    everything = sum(span.duration for span in kernels)
    return 100 * own / everything, 100 * own / trace.metrics().makespan


# %% id=08-creeping slip cause="By the mean, one odd value decides"
def creeping(trace):  # the mean, which one odd value decides
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.mean(us[-10:]) / np.mean(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(grown, key=grown.get)


# %% id=08-creeping cause="returned 'fives'"
def creeping(trace):  # also names with few ranges
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: us[-1] / us[0] for n, us in times.items() if n != "late"}
    return max(grown, key=grown.get)


# %% id=08-creeping slip cause="That's by the difference: how many *times* as long has each become?"
def creeping(trace):  # by the difference
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) - np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(grown, key=grown.get)


# %% id=08-waited slip cause="That's all of their time in all-reduces, adding included"
def waited(trace):  # all of the time in the kernels
    return tuple(
        sum(span.duration for span in trace.of(name).device_spans if span.name.startswith("nccl"))
        for name in trace.devices
    )


# %% id=08-waited slip cause="Early and late ones cancel out in that sum: decide for a pair at a time who waited"
def waited(trace):  # the sum of the differences, of which some are negative
    zero, one = (
        [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = sum(b - a for a, b in zip(zero, one))
    return max(later, 0), max(-later, 0)


# %% id=08-waited cause="should return"
def waited(trace):  # the wrong way round
    zero, one = (
        [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(-us, 0) for us in later), sum(max(us, 0) for us in later)


# %% id=08-typical slip cause="That's the mean, which one odd value decides"
def typical(trace, name):  # the mean, which the first step decides
    return np.mean([span.duration for span in trace.find(name) if span.kind == "range"])


# %% id=08-typical slip cause="Their number is even: the median is halfway between the two in the middle"
def typical(trace, name):
    times = sorted(span.duration for span in trace.find(name) if span.kind == "range")
    return times[len(times) // 2]


# %% id=08-typical cause="should return"
def typical(trace, name):  # the sum over all
    (row,) = [row for row in agt.analyse(trace).sums.ranges if row.name == name]
    return row.host / row.count


# %% id=08-typical slip cause="Spans of other kinds that have this name are among them: look at `kind`"
def typical(trace, name):  # also kernels of that name
    return np.median([span.duration for span in trace.find(name)])


# %% id=08-kernel cause="with heat_annotated and DeviceReduceSingleTileKernel"
def longest(trace, name):
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    span = max(kernels, key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.duration


# %% id=08-kernel cause="with two kernels whose names begin alike"
def longest(trace, name):
    spans = [span for span in trace.device_spans if span.name.startswith(name)]
    span = max(spans, key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.duration


# %% id=08-annotate cause="`process` fails, and its error should come out"
async def handle(i, prepare, process):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        try:
            return await process(x)
        except Exception:
            return None


# %% id=08-typical cause="with two ranges whose names begin alike"
def typical(trace, name):
    spans = [span for span in trace if span.kind == "range" and name in span.name]
    return np.median([span.duration for span in spans])


# %% id=08-annotate cause="`process 1` ran 2 times"
async def handle(i, prepare, process):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        try:
            return await process(x)
        except KeyError:
            return await process(x)


# %% id=08-stats slip cause="Not all spans of that name are kernels: look at `kind`"
def shares(trace, name):
    own = sum(span.duration for span in trace.find(name))
    everything = sum(span.duration for span in trace.device_spans if span.kind == "kernel")
    return 100 * own / everything, 100 * own / trace.metrics().device_makespan


# %% id=08-stats slip cause="The work that starts last need not be the last to end"
def shares(trace, name):
    work = trace.device_spans
    kernels = [span for span in work if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    return 100 * own / sum(s.duration for s in kernels), 100 * own / (work[-1].end - work[0].start)


# %% id=08-creeping slip cause="It has fewer than twenty ranges"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items()}
    return max(grown, key=grown.get)


# %% id=08-creeping slip cause="That leaves out a name with exactly twenty ranges, and twenty are enough"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) > 20}
    return max(grown, key=grown.get)


# %% id=08-creeping slip cause="That's by halves: compare the last ten with the first ten"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {}
    for name, us in times.items():
        half = len(us) // 2
        if half >= 10:
            grown[name] = np.median(us[half:]) / np.median(us[:half])
    return max(grown, key=grown.get)


# %% id=08-waited slip cause="That's by durations, but the two don't always end together: compare their starts"
def waited(trace):
    zero, one = (
        [span.duration for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [a - b for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)


# %% id=08-stats cause="100 times too little: a fraction is not yet percent"
def shares(trace, name):
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    return own / sum(span.duration for span in kernels), own / trace.metrics().device_makespan


# %% id=08-stats cause="Of 2, number 1 is right"
def shares(trace, name):
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    everything = sum(span.duration for span in kernels)
    return 100 * own / everything, 100 * everything / trace.metrics().device_makespan


# %% id=08-rate cause="1,000,000 times too much: look at the unit"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return 1000 * sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies)


# %% id=08-blame slip cause="That's the longest gap only. Add up all that a label is late"
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.label, gap.main.duration


# %% id=08-blame slip cause="Not all of that is the host's doing: look at the `cause` of each part"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        label = gap.main.span.label
        late[label] = late.get(label, 0) + gap.duration
    return max(late.items(), key=lambda item: item[1])


# %% id=08-blame slip cause="That's the name of the work: its label says whose it is"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        for part in gap.parts:
            if part.cause == "host late":
                late[part.span.name] = late.get(part.span.name, 0) + part.duration
    return max(late.items(), key=lambda item: item[1])


# %% id=08-blame cause="should return (label, µs)"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        for part in gap.parts:
            if part.cause == "host late":
                late[part.span.label] = late.get(part.span.label, 0) + part.duration
    return max(late, key=late.get)


# %% id=08-blame cause="should return"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        for part in gap.parts:
            if part.cause == "host late":
                late[part.span.label] = max(late.get(part.span.label, 0), part.duration)
    return max(late.items(), key=lambda item: item[1])


# %% id=08-blame cause="the wrong way round"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        for part in gap.parts:
            if part.cause == "host late":
                late[part.span.label] = late.get(part.span.label, 0) + part.duration
    return max((us, label) for label, us in late.items())


# %% id=08-suspects cause="3 of 5 names are right. A isn't 'pageable copy'"
suspects = {
    "A": ("pageable copy", 9),
    "B": ("too few streams", 1),
    "D": ("hidden synchronisation", 0),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 84.8),
}

# %% id=08-suspects cause="4 of 5 names are right. B isn't 'one big kernel'"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("one big kernel", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 84.8),
}

# %% id=08-suspects cause="4 of 5 names are right. H isn't 'pageable copy'"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 1296),
    "H": ("pageable copy", 101),
}

# %% id=08-suspects cause="should be a dict with the keys A, B, D, G, H"
suspects = ["hidden synchronisation", "too few streams", "null stream"]

# %% id=08-suspects cause="A should be (name, number)"
suspects = {
    "A": "hidden synchronisation",
    "B": "too few streams",
    "D": "pageable copy",
    "G": "one big kernel",
    "H": "innocent",
}

# %% id=08-suspects cause="B should begin with one of"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("too small a device", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 84.8),
}

# %% id=08-suspects cause="After the last of its 4 waits nothing more is asked for"
suspects = {
    "A": ("hidden synchronisation", 4),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 84.8),
}

# %% id=08-suspects cause="That's the longest of them alone"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 798.4),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 84.8),
}

# %% id=08-suspects cause="That's how long the GPU is busy"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 1296),
    "H": ("innocent", 671.6),
}

# %% id=08-suspects cause="isn't G's number: how many blocks the long kernels have"
suspects = {
    "A": ("hidden synchronisation", 3),
    "B": ("too few streams", 1),
    "D": ("pageable copy", 2_849),
    "G": ("one big kernel", 36),
    "H": ("innocent", 84.8),
}


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
async def serve(requests, score):
    tasks = []
    for read_into in requests:
        x = np.empty((64, 8192), np.float32)
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host()))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="it's right, but it takes 832"
async def serve(requests, score):
    ops = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        ops.append(agt.h2d(x, "request").and_then(score).to_host())
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="8 requests were read into ordinary memory"
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = []
        for read_into in requests:
            x = np.empty((64, 8192), np.float32)
            read_into(x)
            ops.append(agt.h2d(agt.pin(x), "request").and_then(score).to_host())
        return await asyncio.gather(*ops)


# %% id=08-challenge cause="should return a list of 8, one for each in order"
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = []
        for read_into in requests:
            x = agt.pinned((64, 8192))
            read_into(x)
            ops.append(agt.h2d(x, "request").and_then(score).to_host())
        await asyncio.gather(*ops)


# %% id=08-challenge cause="is in no copy from memory that a kernel has written"
async def serve(requests, score):
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
async def serve(requests, score):
    results = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        op = agt.h2d(x, "request").and_then(score).to_host()
        results.append(op.async_on(agt.create_stream()))
    return [result.numpy() for result in results]


# %% id=08-challenge cause="with result 0, element 0 is"
async def serve(requests, score):
    buffer = agt.pinned((64, 8192))
    ops = []
    for read_into in requests:
        read_into(buffer)
        ops.append(agt.h2d(buffer, "request").and_then(score).to_host())
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="was changed while its copy may have been in flight"
async def serve(requests, score):
    buffer = agt.pinned((64, 8192))
    tasks = []
    for read_into in requests:
        read_into(buffer)
        tasks.append(agt.spawn(agt.h2d(buffer, "request").and_then(score).to_host()))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="with a device that takes its time"
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        tasks = []
        for read_into in requests:
            x = agt.pinned((64, 8192))
            read_into(x)
            tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host()))
        return [await task for task in asyncio.as_completed(tasks)]


# %% id=08-blame slip cause="That's all of a gap whose main cause it is. Count the parts with that `cause` only"
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        if gap.main.cause == "host late":
            label = gap.main.span.label
            late[label] = late.get(label, 0) + gap.duration
    return max(late.items(), key=lambda item: item[1])


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


# %% id=08-stats cause="with two GPUs, `shares` should return"
def shares(trace, name):
    kernels = [s for s in trace.of(trace.devices[0]).device_spans if s.kind == "kernel"]
    mine = sum(s.duration for s in kernels if s.name == name)
    return 100 * mine / sum(s.duration for s in kernels), 100 * mine / trace.metrics().device_makespan


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
async def serve(requests, score):
    policy = agt.StreamPoolRoundRobin(len(requests))
    tasks = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host(), policy))
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


# %% id=08-creeping cause="here 'early', and returned 'fives'"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-5:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(grown, key=grown.get)
# %% id=08-typical cause="Spans of other kinds that have this name are among them: look at `kind`"
def typical(trace, name):
    return np.median([s.duration for s in trace.find(name) if not s.on_device])


# %% id=08-typical cause="with two ranges whose names begin alike, `typical` should return µs, here 3.75, and returned 5.875"
def typical(trace, name):  # each duration counts once
    return np.median(list({s.duration for s in trace.find(name) if s.kind == "range"}))


# %% id=08-typical cause="with two ranges whose names begin alike, `typical` should return µs, here 3.75, and returned 5.875"
def typical(trace, name):  # as if ranges of no length were none
    return np.median([s.duration for s in trace.find(name) if s.kind == "range" and s.duration])


# %% id=08-kernel cause="with exhibit C and relu, `longest` should return (CUDA's stream, µs), here (13, "
def longest(trace, name):  # the stream with the most of it in all
    total = {}
    for span in trace.find(name):
        stream = span.detail["cuda_stream"]
        total[stream] = total.get(stream, 0) + span.duration
    return max(total, key=total.get), max(span.duration for span in trace.find(name))


# %% id=08-creeping cause="here 'early', and returned 'low'"
def creeping(trace):  # what shrinks has changed as well
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    logs = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(logs, key=lambda name: max(logs[name], 1 / logs[name]))


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


# %% id=08-creeping cause="here 'early', and returned 'dip'"
def creeping(trace):  # the lower one of the two in the middle
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {
        n: sorted(us[-10:])[4] / sorted(us[:10])[4] for n, us in times.items() if len(us) >= 20
    }
    return max(grown, key=grown.get)


# %% id=08-waited cause="with each late once, "
def waited(trace):  # a kernel with `nccl` somewhere in its name need not be NCCL's
    zero, one = (
        [span.start for span in trace.of(name).device_spans if "nccl" in span.name]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)


# %% id=08-waited cause="with each late once, "
def waited(trace):  # by the name that they have in the two reports
    zero, one = (
        [s.start for s in trace.of(name).device_spans if s.name.startswith("ncclDevKernel")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)


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


# %% id=08-gain cause="with GPUs that wait for each other, you predicted 1.82"
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
def waited(trace):  # a call of that name is no work
    zero, one = (
        [span.start for span in trace.of(name) if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)


# %% id=08-challenge cause="was changed while its copy may have been in flight"
async def serve(requests, score):  # as many buffers as there were requests the first time
    policy = agt.StreamPoolRoundRobin(8)
    pool = [agt.pinned((64, 8192)) for _ in range(8)]
    tasks = []
    for i, read_into in enumerate(requests):
        read_into(pool[i % 8])
        op = agt.h2d(pool[i % 8], "request").and_then(score).to_host()
        tasks.append(agt.spawn(op, policy))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="pop from empty list"
async def serve(requests, score):
    policy = agt.StreamPoolRoundRobin(len(requests))
    tasks = []
    for read_into in requests:
        read_into(np.empty((64, 8192), np.float32))
        x = agt.pinned((64, 8192))
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host(), policy))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="with result 0, element 1 is 8192, and should be 16384"
async def serve(requests, score):
    policy = agt.StreamPoolRoundRobin(len(requests))
    tasks = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host(), policy))
        await asyncio.sleep(0)
    return [np.full_like(await task, (await task)[0]) for task in tasks]
