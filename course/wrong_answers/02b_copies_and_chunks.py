"""Plausible wrong answers to the exercises of course/02b_copies_and_chunks.py; see tools/build_notebooks.py."""


# %% id=02b-two-buffers cause="was changed while its copy may have been in flight"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
    stream.synchronize()
    return arrays


# %% id=02b-two-buffers of=above cause="the device did nothing during `fill 2`"
#   for i in range(count):
# +     if i >= 2:
# +         stream.synchronize()


# %% id=02b-two-buffers of=above cause="from another array than the two buffers"
# - fill(buffers[i % 2], i)
# - arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
# + b = buffers[i % 2]
# + fill(b, i)
# + arrays.append(agt.h2d(agt.pin(b)).async_on(stream))


# %% id=02b-two-buffers of=starter cause="the device did nothing during `fill 1`"
# - fill(buffers[0], i)
# - arrays.append(agt.h2d(buffers[0]).async_on(stream))
# + fill(buffers[i % 2], i)
# + arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))


# %% id=02b-two-buffers cause="one of the two buffers"
# - arrays, copied = [], []
# + arrays = []
# - buffer = buffers[i % 2]
# - if i >= 2:
# - copied[i - 2].synchronize()
# + buffer = agt.pinned(buffers[0].shape)
# - copied.append(stream.record())


# %% id=02b-two-buffers cause="element 0 is"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
    stream.synchronize()
    return arrays


# %% id=02b-two-buffers of=above cause="returned while the last copy was still on its way"
# - arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
# + arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
# - stream.synchronize()


# %% id=02b-two-buffers of=above cause="with a device that takes its time"
# - arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
# + arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
# - stream.synchronize()
# + agt.work(100, "by then they are surely over")


# %% id=02b-two-buffers of=above cause="should return a list of 5, one for each in order"
# - arrays, copied = [], []
# + copied = []
# - arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
# + array = agt.h2d(buffers[i % 2]).async_on(stream)
# - return arrays
# + return array


# %% id=02b-two-buffers of=above cause="`h2d` ran 10 times"
# - arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
# + agt.h2d(buffers[i % 2]).async_on(stream)
# + arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))


# %% id=02b-two-buffers of=above cause="should return the 5 device arrays themselves"
# - arrays.insert(0, agt.h2d(buffers[i % 2]).async_on(stream))
# + arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
# - return arrays
# + return [array.borrow() for array in arrays]


# %% id=02b-chunked-overlap cause="deal them out to all 3 in turn"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    results = [process(chunk, table).async_on(streams[0]) for chunk in chunks]
    streams[0].synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap cause="When `weigh` was put on stream 2, no `wait_event` had made that stream wait for stream 1"
# - ready = streams[0].record()
# - for stream in streams[1:]:
# - stream.wait_event(ready)


# %% id=02b-chunked-overlap cause="let the streams wait for the table, by an event"
def pipeline(prepare, process, chunks, streams):
    table = prepare.sync_on(streams[0])
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).sync_on(streams[i % len(streams)]))
    return results


# %% id=02b-chunked-overlap cause="a result was read before the device was done with it"
# - for stream in streams:
# - stream.synchronize()


# %% id=02b-chunked-overlap cause="a result was read before the device was done with it"
# - for stream in streams:
# - stream.synchronize()
# + agt.work(5000, "by then they are surely over")


# %% id=02b-chunked-overlap cause="`h2d` ran 10 times"
def pipeline(prepare, process, chunks, streams):
    results = []
    for i, chunk in enumerate(chunks):
        stream = streams[i % len(streams)]
        results.append(process(chunk, prepare.async_on(stream)).async_on(stream))
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap of=above cause="let each stream wait for the table and for nothing else"
#   def pipeline(prepare, process, chunks, streams):
# +     table = prepare.async_on(streams[0])
# - results.append(process(chunk, prepare.async_on(stream)).async_on(stream))
# + stream.wait_event(streams[0].record())
# + results.append(process(chunk, table).async_on(stream))


# %% id=02b-chunked-overlap cause="which isn't one of the streams that you were given"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    results = []
    for chunk in chunks:
        stream = agt.create_stream()
        stream.wait_event(ready)
        results.append(process(chunk, table).async_on(stream))
    streams[0].device.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap cause="`.numpy()` gives the array"
# - return [result.numpy() for result in results]
# + return results


# %% id=02b-chunked-overlap cause="should return a list of 5"
# - return [result.numpy() for result in results]
# + return np.concatenate([result.numpy() for result in results])


# %% id=02b-challenge cause="get below 385"
def there_and_back(process, data):
    stream = agt.create_stream()
    results = [process(part).async_on(stream) for part in np.array_split(data, 4)]
    stream.synchronize()
    return results


# %% id=02b-challenge cause="should return the results of all pieces, in a list"
# - return results
# + return np.concatenate([result.numpy() for result in results])


# %% id=02b-challenge cause="a result was read before the device was done with it"
# - agt.synchronize()
# + streams[0].synchronize()


# %% id=02b-challenge cause="and should be"
# - return results
# + return results[::-1]


# %% id=02b-challenge cause="is in no copy from memory that a kernel has written"
def there_and_back(process, data):
    return [np.where(data > 0, data, np.float32(0.1) * data)]


# %% id=02b-chunked-overlap cause="Stream 2 does wait for an event of stream 1, but for one that was recorded before `h2d` was put there"
#   def pipeline(prepare, process, chunks, streams):
# +     ready = streams[0].record()
# - ready = streams[0].record()


# %% id=02b-two-buffers cause="one of the streams that you were given"
# - def upload_all(fill, count, buffers, stream):
# + def upload_all(fill, count, buffers, stream):
# +     stream = agt.create_stream()


# %% id=02b-chunked-overlap cause="deal them out to all"
# - results.append(process(chunk, table).async_on(streams[i % len(streams)]))
# + results.append(process(chunk, table).async_on(streams[i % 2]))


# %% id=02b-chunked-overlap cause="let each stream wait"
# - for stream in streams[1:]:
# - stream.wait_event(ready)
# + while not ready.done:
# +     pass


# %% id=02b-chunked-overlap cause="deal them out to all"
# - results.append(process(chunk, table).async_on(streams[i % len(streams)]))
# + results.append(process(chunk, table).async_on(streams[min(i, len(streams) - 1)]))


# %% id=02b-challenge cause="is in no copy from memory that a kernel has written"
def there_and_back(process, data):
    process(data[:256]).sync()
    return [np.where(data > 0, data, np.float32(0.1) * data)]


# %% id=02b-chunked-overlap cause="deal them out to all"
# - results = []
# - for i, chunk in enumerate(chunks):
# - results.append(process(chunk, table).async_on(streams[i % len(streams)]))
# + share = -(-len(chunks) // len(streams))
# + results = [process(x, table).async_on(streams[i // share]) for i, x in enumerate(chunks)]


# %% id=02b-challenge cause="a result was read before the device was done with it"
# - agt.synchronize()
# + streams[2].synchronize()  # which has the last part


# %% id=02b-chunked-overlap cause="of the result was not there yet"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for s in streams[1:]:
        s.wait_event(ready)
    handles = [process(c, table).async_on(streams[i % len(streams)]) for i, c in enumerate(chunks)]
    return [h.buffer for h in handles]


# %% id=02b-chunked-overlap of=above cause="IndexError: list index out of range"
# - for s in streams[1:]:
# + streams[1].wait_event(ready)
# + for s in streams[2:]:
# - return [h.buffer for h in handles]
# + agt.synchronize()
# + return [h.numpy() for h in handles]


# %% id=02b-chunked-overlap of=above cause="from a copy in pageable memory"
# - handles = [process(c, table).async_on(streams[i % len(streams)]) for i, c in enumerate(chunks)]
# - return [h.buffer for h in handles]
# + handles = [
# +     process(np.array(c), table).sync_on(streams[i % len(streams)])
# +     for i, c in enumerate(chunks)
# + ]
# + return handles


# %% id=02b-chunked-overlap of=above cause="nothing of it ran: an `async def`"
# - def pipeline(prepare, process, chunks, streams):
# + async def pipeline(prepare, process, chunks, streams):
# - return [h.buffer for h in handles]
# + agt.synchronize()
# + return [h.numpy() for h in handles]


# %% id=02b-challenge cause="of the result was not there yet"
def there_and_back(process, data):
    streams = [agt.create_stream() for _ in range(4)]
    h = [process(p).async_on(streams[i % 4]) for i, p in enumerate(np.array_split(data, 6))]
    for s in streams[1:2]:
        s.synchronize()
    return [x.buffer for x in h]


# %% id=02b-two-buffers cause="should return the 5 device arrays"
def upload_all(fill, count, buffers, stream):
    events = []
    for i in range(count):
        if i >= 2:
            events[i - 2].synchronize()
        fill(buffers[i % 2], i)
        agt.h2d(buffers[i % 2]).async_on(stream)
        events.append(stream.record())
    stream.synchronize()
    return events


# %% id=02b-two-buffers cause="with 0 chunks, your code raised"
def upload_all(fill, count, buffers, stream):
    arrays, marks = [], [None, None]
    for i in range(count):
        k = i % 2
        if marks[k]: marks[k].synchronize()
        fill(buffers[k], i)
        arrays.append(agt.h2d(buffers[k]).async_on(stream))
        marks[k] = stream.record()
    marks[(count - 1) % 2].synchronize()
    return arrays


# %% id=02b-two-buffers cause="`fill` was called for the chunks [0, 1, 2, 3, 4, 5], and each of 5 should arrive once"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    if count:
        fill(buffers[0], 0)
    for i in range(count):
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
        if i >= 1:
            copied[i - 1].synchronize()
        fill(buffers[(i + 1) % 2], i + 1)  # the next one, while this one is copied
    stream.synchronize()
    return arrays


# %% id=02b-chunked-overlap cause="with 7 chunks and 2 streams, `h2d` ran 5 times, and should run 8 times"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = [process(x, table).async_on(stream) for x, stream in zip(chunks, streams * 2)]
    agt.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap of=above cause="it seems: chunk 1, the result has shape"
# - results = [process(x, table).async_on(stream) for x, stream in zip(chunks, streams * 2)]
# + results = [process(x, table).async_on(streams[i % len(streams)]) for i, x in enumerate(chunks)]
# - return [result.numpy() for result in results]
# + return sorted([result.numpy() for result in results], key=len)


# %% id=02b-chunked-overlap cause="with 2 chunks and 3 streams, your code raised IndexError"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready, results = streams[0].record(), []
    for k, stream in enumerate(streams):
        stream.wait_event(ready)
        results.append(process(chunks[k], table).async_on(stream))
    for i in range(len(streams), len(chunks)):
        results.append(process(chunks[i], table).async_on(streams[i % len(streams)]))
    agt.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-two-buffers cause="when `fill` raises an error, the error doesn't come out"
def upload_all(fill, count, buffers, stream):
    arrays, marks = [], [None, None]
    for i in range(count):
        k = i % 2
        if marks[k] is not None:
            marks[k].synchronize()
        try:
            fill(buffers[k], i)
        except Exception:
            break
        arrays.append(agt.h2d(buffers[k]).async_on(stream))
        marks[k] = stream.record()
    stream.synchronize()
    return arrays


# %% id=02b-chunked-overlap cause="had made that stream wait for stream 1: it needs such a wait, and needs it before"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    each = enumerate(chunks)
    results = [process(c, table).async_on(streams[i % len(streams)]) for i, c in each]
    agt.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap cause="with 13 chunks and 7 streams, the chunks went to `streams` [0, 1, 2"
# - results.append(process(chunk, table).async_on(streams[i % len(streams)]))
# + results.append(process(chunk, table).async_on(streams[i % min(3, len(streams))]))


# %% id=02b-chunked-overlap cause="with 13 chunks and 7 streams"
# - for i, chunk in enumerate(chunks):
# + for i, chunk in enumerate(chunks[:8]):
