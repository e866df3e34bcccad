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


# %% id=08-gap cause="and the file says (start, end)"
def largest_gap(trace):  # the end of the span before, which need not be the last to end
    work = sorted(trace.device_spans, key=lambda span: span.start)
    gaps = [(a.end, b.start) for a, b in zip(work, work[1:])]
    return max(gaps, key=lambda gap: abs(gap[1] - gap[0]))


# %% id=08-gap cause="and the file says (start, end)"
def largest_gap(trace):  # of one stream
    work = [span for span in trace.device_spans if span.stream == trace.streams[0]]
    return max(((a.end, b.start) for a, b in zip(work, work[1:])), key=lambda gap: gap[1] - gap[0])


# %% id=08-gap cause="should return (start, end)"
def largest_gap(trace):
    start, end = agt.analyse(trace).gaps[0].start, agt.analyse(trace).gaps[0].end
    return end - start


# %% id=08-kernel cause="and the file says (CUDA's stream, us)"
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.stream, span.duration


# %% id=08-kernel cause="and the file says (CUDA's stream, us)"
def longest(trace, name):
    span = trace.find(name)[0]
    return span.detail["cuda_stream"], span.duration


# %% id=08-kernel cause="and the file says (CUDA's stream, us)"
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.end


# %% id=08-blame cause="and the file says (label, cause)"
def blame(trace):
    gap = agt.analyse(trace).gaps[-1]
    return gap.main.span.label, gap.main.cause


# %% id=08-blame cause="and the file says (label, cause)"
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.name, gap.main.cause


# %% id=08-blame cause="and the file says (label, cause)"
def blame(trace):
    first = agt.analyse(trace).idle[0]
    return first.span.label, first.cause


# %% id=08-rate cause="and the file says GB/s"
def rate(trace):  # to the device and back
    copies = [span for span in trace.device_spans if "bytes" in span.detail]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies) / 1000


# %% id=08-rate cause="and the file says GB/s"
def rate(trace):  # the mean of the rates
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return float(np.mean([s.detail["bytes"] / s.duration / 1000 for s in copies]))


# %% id=08-rate cause="and the file says GB/s"
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    return sum(s.detail["bytes"] for s in copies) / sum(s.duration for s in copies)


# %% id=08-stats cause="and the file says (% of the kernels, % of the makespan)"
def shares(trace, name):  # of all work, copies as well
    own = sum(span.duration for span in trace.device_spans if span.name == name)
    everything = sum(span.duration for span in trace.device_spans)
    return 100 * own / everything, 100 * own / trace.metrics().device_makespan


# %% id=08-stats cause="and the file says (% of the kernels, % of the makespan)"
def shares(trace, name):  # of the time in which the GPU works
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    everything = sum(span.duration for span in kernels)
    return 100 * own / everything, 100 * own / trace.metrics().device_active


# %% id=08-stats cause="with heat and cupy_add"
def shares(trace, name):  # of the whole program
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    everything = sum(span.duration for span in kernels)
    return 100 * own / everything, 100 * own / trace.metrics().makespan


# %% id=08-creeping cause="with ranges with odd values, `creeping` says 'late'"
def creeping(trace):  # the mean, which one odd value decides
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.mean(us[-10:]) / np.mean(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(grown, key=grown.get)


# %% id=08-creeping cause="with ranges with odd values, `creeping` says 'rare'"
def creeping(trace):  # also names with few ranges
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: us[-1] / us[0] for n, us in times.items() if n != "late"}
    return max(grown, key=grown.get)


# %% id=08-creeping cause="with swarm, `creeping` says 'step'"
def creeping(trace):  # by the difference
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) - np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
    return max(grown, key=grown.get)


# %% id=08-waited cause="and the file says (us of GPU 0, us of GPU 1)"
def waited(trace):  # all of the time in the kernels
    return tuple(
        sum(span.duration for span in trace.of(name).device_spans if span.name.startswith("nccl"))
        for name in trace.devices
    )


# %% id=08-waited cause="with two_gpus_even"
def waited(trace):  # the sum of the differences, of which some are negative
    zero, one = (
        [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = sum(b - a for a, b in zip(zero, one))
    return max(later, 0), max(-later, 0)


# %% id=08-waited cause="and the file says (us of GPU 0, us of GPU 1)"
def waited(trace):  # the wrong way round
    zero, one = (
        [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(-us, 0) for us in later), sum(max(us, 0) for us in later)


# %% id=08-typical cause="and the file says us"
def typical(trace, name):  # the mean, which the first step decides
    return np.mean([span.duration for span in trace.find(name) if span.kind == "range"])


# %% id=08-typical cause="and the file says us"
def typical(trace, name):  # the sum over all
    (row,) = [row for row in agt.analyse(trace).sums.ranges if row.name == name]
    return row.host / row.count


# %% id=08-typical cause="with heat_repaired and stencil"
def typical(trace, name):  # also kernels of that name
    return np.median([span.duration for span in trace.find(name)])


# %% id=08-suspects cause="4 of 6 are right. A is not 'pageable copy'"
suspects = {
    "A": "pageable copy",
    "B": "too few streams",
    "C": "null stream",
    "D": "hidden synchronisation",
    "E": "lazy module loading",
    "G": "one big kernel",
}

# %% id=08-suspects cause="5 of 6 are right. B is not 'one big kernel'"
suspects = {
    "A": "hidden synchronisation",
    "B": "one big kernel",
    "C": "null stream",
    "D": "pageable copy",
    "E": "lazy module loading",
    "G": "one big kernel",
}

# %% id=08-suspects cause="should be a dict with the keys A, B, C, D, E, G"
suspects = ["hidden synchronisation", "too few streams", "null stream"]

# %% id=08-suspects cause="B should be one of"
suspects = {
    "A": "hidden synchronisation",
    "B": "too small a device",
    "C": "null stream",
    "D": "pageable copy",
    "E": "lazy module loading",
    "G": "one big kernel",
}


# %% id=08-gain cause="and the file says how many times as fast"
def gain(before, after):  # the last round of each
    def last(rounds):
        return max(s.end for s in rounds[-1]) - min(s.start for s in rounds[-1])

    return last(before) / last(after)


# %% id=08-gain cause="and the file says how many times as fast"
def gain(before, after):  # from the first start to the end of what started last
    def quickest(rounds):
        return min(sorted(w, key=lambda s: s.start)[0].duration + w[-1].end - w[0].end for w in rounds)

    return quickest(after) / quickest(before)


# %% id=08-gain cause="with a short kernel beside a long copy, `gain` says 8.5"
def gain(before, after):  # to the end of what started last
    def quickest(rounds):
        return min(max(w, key=lambda s: s.start).end - min(s.start for s in w) for w in rounds)

    return quickest(before) / quickest(after)


# %% id=08-challenge cause="it's right, but it takes 2483"
async def serve(requests, score):
    return await asyncio.gather(*[agt.h2d(x, "request").and_then(score).to_host() for x in requests])


# %% id=08-challenge cause="it's right, but it takes 832"
async def serve(requests, score):
    ops = [agt.h2d(agt.pin(x), "request").and_then(score).to_host() for x in requests]
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="should return a list of 8, one for each in order"
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = [agt.h2d(agt.pin(x), "request").and_then(score).to_host() for x in requests]
        await asyncio.gather(*ops)


# %% id=08-challenge cause="is in no copy from memory that a kernel has written"
async def serve(requests, score):
    source = 'extern "C" __global__ void matvec_naive(float* y) { y[threadIdx.x] = 1.0f; }'
    kernel = agt.Kernel(source)
    await asyncio.gather(*[kernel(agt.zeros(64), grid=1, block=64) for _ in requests])
    return [x.sum(axis=1) for x in requests]


# %% id=08-challenge cause="a result was read before the device was done with it"
async def serve(requests, score):
    ops = [agt.h2d(agt.pin(x), "request").and_then(score).to_host() for x in requests]
    results = [op.async_on(agt.create_stream()) for op in ops]
    return [result.numpy() for result in results]


# %% id=08-challenge cause="with result 0, element 0 is"
async def serve(requests, score):
    buffer = agt.pinned(requests[0].shape, requests[0].dtype)
    ops = []
    for x in requests:
        buffer[:] = x
        ops.append(agt.h2d(buffer, "request").and_then(score).to_host())
    return await asyncio.gather(*ops)


# %% id=08-challenge cause="was changed while its copy may have been in flight"
async def serve(requests, score):
    buffer = agt.pinned(requests[0].shape, requests[0].dtype)
    tasks = []
    for x in requests:
        buffer[:] = x
        tasks.append(agt.spawn(agt.h2d(buffer, "request").and_then(score).to_host()))
        await asyncio.sleep(0)
    return [await task for task in tasks]


# %% id=08-challenge cause="with a device that takes its time"
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = [agt.h2d(agt.pin(x), "request").and_then(score).to_host() for x in requests]
        tasks = [agt.spawn(op) for op in ops]
        return [await task for task in asyncio.as_completed(tasks)]


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


# %% id=08-gap cause="with work without a gap"
def largest_gap(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.start, gap.end


# %% id=08-gap cause="with work without a gap"
def largest_gap(trace):
    work = sorted(trace.device_spans, key=lambda span: span.start)
    done, gaps = work[0].end, []
    for span in work[1:]:
        gaps.append((span.start - done, done, span.start))
        done = max(done, span.end)
    return max(gaps)[1:]


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


# %% id=08-blame cause="with exhibit D repaired, `blame` says ('chunk 0', 'host late')"
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.label, "host late"


# %% id=08-blame cause="with exhibit G repaired, `blame` says ('part 3', 'start-up')"
def blame(trace):
    found = agt.analyse(trace)
    return found.gaps[0].main.span.label, max(found.idle_by_cause, key=found.idle_by_cause.get)


# %% id=08-blame cause="with a gap of two parts, `blame` says ('c', 'host late')"
def blame(trace):
    part = max((gap.main for gap in agt.analyse(trace).gaps), key=lambda part: part.duration)
    return part.span.label, part.cause


# %% id=08-gain cause="with a short kernel beside a long copy, `gain` says 0.571"
def gain(before, after):
    def quickest(rounds):
        return min(max(s.end for s in work) - work[0].start for work in rounds)

    return quickest(before) / quickest(after)


# %% id=08-gain cause="with a short kernel beside a long copy, `gain` says 1.25"
def gain(before, after):
    def quickest(rounds):
        return min(max(s.end for s in work) - min(s.start for s in work) for work in rounds[1:])

    return quickest(before) / quickest(after)


# %% id=08-stats cause="with spans whose names are alike, `shares` says (180.0, 50.0)"
def shares(trace, name):
    own = sum(span.duration for span in trace.find(name))
    everything = sum(span.duration for span in trace.device_spans if span.kind == "kernel")
    return 100 * own / everything, 100 * own / trace.metrics().device_makespan


# %% id=08-stats cause="with spans whose names are alike, `shares` says (20.0, 20.0)"
def shares(trace, name):
    work = trace.device_spans
    kernels = [span for span in work if span.kind == "kernel"]
    own = sum(span.duration for span in kernels if span.name == name)
    return 100 * own / sum(s.duration for s in kernels), 100 * own / (work[-1].end - work[0].start)


# %% id=08-creeping cause="with ranges with odd values, `creeping` says 'rare'"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items()}
    return max(grown, key=grown.get)


# %% id=08-creeping cause="with ranges with odd values, `creeping` says 'fives'"
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) > 20}
    return max(grown, key=grown.get)


# %% id=08-creeping cause="with ranges with odd values, `creeping` says 'halves'"
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
