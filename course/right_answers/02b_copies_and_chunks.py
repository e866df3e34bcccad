"""Right answers to exercises of course/02b_copies_and_chunks.py in other forms than the solution's."""


# %% id=02b-chunked-overlap
def pipeline(prepare, process, chunks, streams):
    table, results, marks = prepare.async_on(streams[0]), [], []
    ready = streams[0].record()
    for i, chunk in enumerate(chunks):
        stream = streams[i % len(streams)]
        stream.wait_event(ready)
        results.append(process(chunk, table).async_on(stream))
        marks.append(stream.record())
    for mark in marks:
        mark.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-challenge
import numpy as np


def there_and_back(process, data):
    """The parts get smaller: towards the end, Python is ahead."""
    streams = [agt.create_stream() for _ in range(7)]
    parts = np.split(data, np.cumsum([620_000, 620_000, 600_000, 580_000, 560_000, 520_000]))
    results = [process(part).async_on(stream) for part, stream in zip(parts, streams, strict=False)]
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]


# %% id=02b-chunked-overlap
def pipeline(prepare, process, chunks, streams):
    """Chunks in turn, put into one queue after the other."""
    table, results = prepare.async_on(streams[0]), {}
    ready = streams[0].record()
    for first, stream in enumerate(streams):
        stream.wait_event(ready)
        for i in range(first, len(chunks), len(streams)):
            results[i] = process(chunks[i], table).async_on(stream)
    for stream in streams:
        stream.synchronize()
    return [results[i].numpy() for i in range(len(chunks))]


# %% id=02b-challenge
def there_and_back(process, data):
    return list(agt.overlap(*[process(part) for part in np.array_split(data, 6)]).sync())


# %% id=02b-two-buffers
def upload_all(fill, count, buffers, stream):
    """Begin with the second buffer, and ask before each wait."""
    arrays, marks = [], {}
    for i in range(count):
        k = 1 - i % 2
        while k in marks and not marks[k].done:
            pass
        fill(buffers[k], i)
        arrays.append(agt.h2d(buffers[k], f"chunk {i}").async_on(stream))
        marks[k] = stream.record()
    stream.synchronize()
    return arrays
