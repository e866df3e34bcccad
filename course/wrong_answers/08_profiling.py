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


# %% id=08-annotate cause="no range `request` holds all of request"
async def handle(i, prepare, process):
    with agt.ranges.span("prepare"):
        x = prepare(i)
    with agt.ranges.across("request"):
        return await process(x)


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


# %% id=08-case-a cause="still shows it"
async def program_a(ops):
    tasks = []
    for op in ops:
        tasks.append(agt.spawn(op))
        await asyncio.sleep(0)
        agt.synchronize()
    return [await task for task in tasks]


case_a = "hidden synchronisation", program_a


# %% id=08-case-a cause="Is somebody waiting elsewhere now?"
async def program_a(ops):
    results = []
    for op in ops:
        results.append(await agt.spawn(op))
    return results


case_a = "hidden synchronisation", program_a


# %% id=08-case-a cause="still shows it"
async def program_a(ops):
    streams = [agt.create_stream() for _ in ops]
    results = []
    for op, stream in zip(ops, streams):
        results.append(op.async_on(stream))
        stream.synchronize()
    return [result.numpy() for result in results]


case_a = "hidden synchronisation", program_a


# %% id=08-case-a cause="the culprit is not"
async def program_a(ops):
    return await asyncio.gather(*ops)


case_a = "too few streams", program_a


# %% id=08-case-a cause="a result was read before the device was done with it"
async def program_a(ops):
    results = [op.async_on(agt.create_stream()) for op in ops]
    return [result.numpy() for result in results]


case_a = "hidden synchronisation", program_a


# %% id=08-case-a cause="with a device that takes its time"
async def program_a(ops):
    tasks = [agt.spawn(op) for op in ops]
    return [await task for task in asyncio.as_completed(tasks)]


case_a = "hidden synchronisation", program_a


# %% id=08-case-a cause="should be two things"
async def program_a(ops):
    return await asyncio.gather(*ops)


case_a = "hidden synchronisation"


# %% id=08-case-b cause="who is the culprit?"
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(ops))):
        return await asyncio.gather(*ops)


case_b = "too small a device", program_b


# %% id=08-case-b cause="still shows it"
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(3)):
        return await asyncio.gather(*ops)


case_b = "too few streams", program_b


# %% id=08-case-b cause="Is somebody waiting elsewhere now?"
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(ops))):
        return list(await agt.zip(*ops))


case_b = "too few streams", program_b


# %% id=08-case-b cause="too few streams is gone, and hidden synchronisation has come in its place"
async def program_b(ops):
    return [op.sync() for op in ops]


case_b = "too few streams", program_b


# %% id=08-case-b cause="a result was read before the device was done with it"
async def program_b(ops):
    results = [op.async_on(agt.create_stream()) for op in ops]
    return [result.numpy() for result in results]


case_b = "too few streams", program_b


# %% id=08-case-b cause="`d2h` ran 4 times"
async def program_b(ops):
    return await asyncio.gather(*ops[:4])


case_b = "too few streams", program_b


# %% id=08-case-b cause="program_b` should return a list of 6, one for each in order, and returned one of 4"
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(ops))):
        results = await asyncio.gather(*ops)
    return results[:4]


case_b = "too few streams", program_b


# %% id=08-case-c cause="the culprit is not"
async def program_c(ops):
    return await asyncio.gather(*ops)


case_c = "hidden synchronisation", program_c


# %% id=08-case-c cause="still shows it"
async def program_c(ops):
    default = agt.current_device().default_stream
    early = [op.async_on(default) for op in ops[:1]]
    late = await asyncio.gather(*ops[1:])
    agt.synchronize()
    return [result.numpy() for result in early] + late


case_c = "null stream", program_c


# %% id=08-case-c cause="null stream is gone, and too few streams has come in its place"
async def program_c(ops):
    with agt.using(policy=agt.SingleStream()):
        return await asyncio.gather(*ops)


case_c = "null stream", program_c


# %% id=08-case-c cause="null stream is gone, and hidden synchronisation has come in its place"
async def program_c(ops):
    early = [op.sync() for op in ops[:2]]
    return early + await asyncio.gather(*ops[2:])


case_c = "null stream", program_c


# %% id=08-case-c cause="a result was read before the device was done with it"
async def program_c(ops):
    early = [op.async_on(agt.create_stream()) for op in ops]
    return [result.numpy() for result in early]


case_c = "null stream", program_c


# %% id=08-case-c cause="with result 0, element 0 is"
async def program_c(ops):
    return await asyncio.gather(*ops[2:], *ops[:2])


case_c = "null stream", program_c


# %% id=08-case-c cause="should return a list of 4, one for each in order, and returned"
async def program_c(ops):
    await asyncio.gather(*ops)


case_c = "null stream", program_c


# %% id=08-case-d cause="the culprit is not"
async def program_d(make, arrays):
    return await asyncio.gather(*[make(agt.pin(x)) for x in arrays])


case_d = "too few streams", program_d


# %% id=08-case-d cause="still shows it"
async def program_d(make, arrays):
    return await asyncio.gather(*[make(x.copy()) for x in arrays])


case_d = "pageable copy", program_d


# %% id=08-case-d cause="still shows it"
async def program_d(make, arrays):
    with agt.using(policy=agt.StreamPoolRoundRobin(8)):
        return await asyncio.gather(*[make(x) for x in arrays])


case_d = "pageable copy", program_d


# %% id=08-case-d cause="with result 0, element 0 is"
async def program_d(make, arrays):
    buffer = agt.pinned(arrays[0].shape, arrays[0].dtype)
    ops = []
    for x in arrays:
        buffer[:] = x
        ops.append(make(buffer))
    return await asyncio.gather(*ops)


case_d = "pageable copy", program_d


# %% id=08-case-d cause="was changed while its copy may have been in flight"
async def program_d(make, arrays):
    buffer = agt.pinned(arrays[0].shape, arrays[0].dtype)
    tasks = []
    for x in arrays:
        buffer[:] = x
        tasks.append(agt.spawn(make(buffer)))
        await asyncio.sleep(0)
    return [await task for task in tasks]


case_d = "pageable copy", program_d


# %% id=08-case-d cause="Is somebody waiting elsewhere now?"
async def program_d(make, arrays):
    return [await make(agt.pin(x)) for x in arrays]


case_d = "pageable copy", program_d


# %% id=08-case-d cause="`d2h` ran 1 time"
async def program_d(make, arrays):
    return [await make(agt.pin(np.concatenate(arrays)))]


case_d = "pageable copy", program_d


# %% id=08-case-e cause="the culprit is not"
async def program_e(make, rounds):
    await make()
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    return trace


case_e = "allocation in the loop", program_e


# %% id=08-case-e cause="still shows it"
async def program_e(make, rounds):
    with agt.record() as trace:
        await make()
        for _ in range(rounds):
            await make()
    return trace


case_e = "lazy module loading", program_e


# %% id=08-case-e cause="still shows it"
async def program_e(make, rounds):
    make()
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    return trace


case_e = "lazy module loading", program_e


# %% id=08-case-e cause="still shows it"
async def program_e(make, rounds):
    first = agt.spawn(make())
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    await first
    return trace


case_e = "lazy module loading", program_e


# %% id=08-case-e cause="`relu` ran 3 times, and 4 times is right"
async def program_e(make, rounds):
    await make()
    with agt.record() as trace:
        for _ in range(rounds - 1):
            await make()
    return trace


case_e = "lazy module loading", program_e


# %% id=08-case-e cause="should return the trace, and returned"
async def program_e(make, rounds):
    await make()
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    return trace.metrics().makespan / rounds


case_e = "lazy module loading", program_e


# %% id=08-case-e cause="lazy module loading is gone, and hidden synchronisation has come in its place"
async def program_e(make, rounds):
    make().sync()
    with agt.record() as trace:
        for _ in range(rounds):
            make().sync()
    return trace


case_e = "lazy module loading", program_e


# %% id=08-case-f cause="the culprit is not"
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    for _ in range(rounds):
        y = await agt.memcpy(room.borrow(), x).first().and_then(compute).to_host()
        x = step(y)
    return x


case_f = "hidden synchronisation", program_f


# %% id=08-case-f cause="still shows it"
async def program_f(x, compute, step, rounds):
    for _ in range(rounds):
        room = await agt.zeros(x.shape, name="state")
        y = await agt.memcpy(room.borrow(), x).first().and_then(compute).to_host()
        x = step(y)
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="still shows it"
async def program_f(x, compute, step, rounds):
    with agt.using(policy=agt.SingleStream()):
        for _ in range(rounds):
            y = await agt.h2d(x, "state").and_then(compute).to_host()
            x = step(y)
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="allocation in the loop is gone, and hidden synchronisation has come in its place"
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    for _ in range(rounds):
        y = agt.memcpy(room.borrow(), x).first().and_then(compute).to_host().sync()
        x = step(y)
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="a result was read before the device was done with it"
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    stream = agt.create_stream()
    for _ in range(rounds):
        y = agt.memcpy(room.borrow(), x).first().and_then(compute).to_host().async_on(stream)
        x = step(y.numpy())
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="with a device that takes its time"
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    stream = agt.create_stream()
    for _ in range(rounds):
        y = agt.memcpy(room.borrow(), x).first().and_then(compute).to_host().async_on(stream)
        agt.work(200, "by then it is surely over")
        x = step(y.numpy())
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="with 8 rounds, element"
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    for _ in range(rounds):
        y = await agt.memcpy(room.borrow(), x).first().and_then(compute).to_host()
        x = step(y)
    return y


case_f = "allocation in the loop", program_f


# %% id=08-case-f cause="`relu` ran 1 time, and 8 times is right"
async def program_f(x, compute, step, rounds):
    y = await agt.h2d(x, "state").and_then(compute).to_host()
    for _ in range(rounds):
        x = step(y)
    return x


case_f = "allocation in the loop", program_f


# %% id=08-case-g cause="the culprit is not"
async def program_g(job, x):
    parts = np.array_split(x, 4)
    return np.concatenate(await asyncio.gather(*[job(part) for part in parts]))


case_g = "too few streams", program_g


# %% id=08-case-g cause="still shows it"
async def program_g(job, x):
    with agt.using(policy=agt.StreamPoolRoundRobin(8)):
        return await agt.spawn(job(x))


case_g = "one big kernel", program_g


# %% id=08-case-g cause="still shows it"
async def program_g(job, x):
    parts = x[:50_000], x[50_000:]
    return np.concatenate(await asyncio.gather(*[job(part) for part in parts]))


case_g = "one big kernel", program_g


# %% id=08-case-g cause="the host makes calls for"
async def program_g(job, x):
    parts = np.array_split(x, 16)
    return np.concatenate(await asyncio.gather(*[job(part) for part in parts]))


case_g = "one big kernel", program_g


# %% id=08-case-g cause="Is somebody waiting elsewhere now?"
async def program_g(job, x):
    return np.concatenate([await job(part) for part in np.array_split(x, 4)])


case_g = "one big kernel", program_g


# %% id=08-case-g cause="Is somebody waiting elsewhere now?"
async def program_g(job, x):
    return np.concatenate(await agt.zip(*[job(part) for part in np.array_split(x, 4)]))


case_g = "one big kernel", program_g


# %% id=08-case-g cause="one big kernel is gone, and hidden synchronisation has come in its place"
async def program_g(job, x):
    return np.concatenate([job(part).sync() for part in np.array_split(x, 4)])


case_g = "one big kernel", program_g


# %% id=08-case-g cause="one big kernel is gone, and pageable copy has come in its place"
async def program_g(job, x):
    parts = np.array_split(np.array(x), 4)
    return np.concatenate(await asyncio.gather(*[job(part) for part in parts]))


case_g = "one big kernel", program_g


# %% id=08-case-g cause="a result was read before the device was done with it"
async def program_g(job, x):
    results = [job(part).async_on(agt.create_stream()) for part in np.array_split(x, 4)]
    return np.concatenate([result.numpy() for result in results])


case_g = "one big kernel", program_g


# %% id=08-case-g cause="with 2,000,000 numbers, element"
async def program_g(job, x):
    tasks = [agt.spawn(job(part)) for part in np.array_split(x, 4)]
    results = [await task for task in tasks]
    return np.concatenate(results[::-1])


case_g = "one big kernel", program_g


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


# %% id=08-sql cause="not in order"
query = """
select value, sum(end - start) as total
from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName
group by value order by total
"""

# %% id=08-sql cause="rows came out"
query = """
select value, end - start as total
from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName
order by total desc
"""

# %% id=08-sql cause="a row is"
query = """
select shortName, sum(end - start) as total
from CUPTI_ACTIVITY_KIND_KERNEL group by shortName order by total desc
"""

# %% id=08-sql cause="a row is"
query = """
select value, avg(end - start) as total
from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName
group by value order by sum(end - start) desc
"""

# %% id=08-sql cause="SQLite says: no such column: name"
query = "select name, sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL group by name"


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


# %% id=08-projected cause="and the file says (us on the host, us on the device)"
def projected(trace, name):
    (row,) = [row for row in agt.analyse(trace).sums.ranges if row.name == name]
    return row.host, row.work


# %% id=08-projected cause="and the file says (us on the host, us on the device)"
def projected(trace, name):
    (row,) = [row for row in agt.analyse(trace).sums.ranges if row.name == name]
    return row.device, row.host


# %% id=08-projected cause="and the file says (us on the host, us on the device)"
def projected(trace, name):  # only the first of them
    work = [span for span in trace.device_spans if span.label == name]
    host = [span for span in trace.find(name) if span.kind == "range"][0]
    return host.duration, work[-1].end - work[0].start


# %% id=08-limits cause="P is not limited by 'host'"
limits = {"P": "host", "Q": "copies", "R": "blocks"}

# %% id=08-limits cause="Q is not limited by 'blocks'"
limits = {"P": "copies", "Q": "blocks", "R": "host"}

# %% id=08-limits cause="P is not limited by 'blocks'"
limits = {"P": "blocks", "Q": "host", "R": "copies"}


# %% id=08-gain cause="and the file says (times as fast, us of idle time saved)"
def gain(before, after):
    old, new = before.metrics(), after.metrics()
    return new.makespan / old.makespan, old.device_idle - new.device_idle


# %% id=08-gain cause="and the file says (times as fast, us of idle time saved)"
def gain(before, after):
    old, new = before.metrics(), after.metrics()
    return old.makespan / new.makespan, new.device_idle - old.device_idle


# %% id=08-gain cause="and the file says (times as fast, us of idle time saved)"
def gain(before, after):
    old, new = before.metrics(), after.metrics()
    return old.device_active / new.device_active, old.device_idle - new.device_idle


# %% id=08-limits cause="should be a dict with the keys P, Q and R"
limits = "copies", "host", "blocks"

# %% id=08-limits cause="R should be one of"
limits = {"P": "copies", "Q": "host", "R": "kernels"}

# %% id=08-sql cause="a row should have two columns"
query = """
select value, sum(end - start), count(*)
from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName
group by value order by 2 desc
"""
