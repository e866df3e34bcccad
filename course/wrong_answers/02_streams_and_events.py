"""Plausible wrong answers to the exercises of course/02_streams_and_events.py; see tools/build_notebooks.py."""


# %% id=02-order-the-race cause="race on array 'x'"
def in_order(first, second, one, two):
    mark = one.record()
    first.async_on(one)
    two.wait_event(mark)
    return second.async_on(two)


# %% id=02-order-the-race cause="the host waited 1 time"
def in_order(first, second, one, two):
    first.async_on(one)
    one.synchronize()
    return second.async_on(two)


# %% id=02-order-the-race cause="`d2h` ran on stream"
def in_order(first, second, one, two):
    first.async_on(one)
    return second.async_on(one)


# %% id=02-order-the-race cause="`write` ran on stream"
def in_order(first, second, one, two):
    first.async_on(two)
    return second.async_on(two)


# %% id=02-order-the-race cause="race on array 'x'"
def in_order(first, second, one, two):
    first.async_on(one)
    one.wait_event(two.record())
    return second.async_on(two)


# %% id=02-order-the-race cause="nothing makes `d2h`"
def in_order(first, second, one, two):
    result = second.async_on(two)
    one.wait_event(two.record())
    first.async_on(one)
    return result


# %% id=02-order-the-race cause="the result of `second` should come back"
def in_order(first, second, one, two):
    first.async_on(one)
    two.wait_event(one.record())
    second.async_on(two)


# %% id=02-order-the-race cause="`write` ran 2 times"
def in_order(first, second, one, two):
    first.async_on(one)
    first.async_on(one)
    two.wait_event(one.record())
    return second.async_on(two)


# %% id=02-order-the-race cause="`d2h` ran 2 times"
def in_order(first, second, one, two):
    first.async_on(one)
    two.wait_event(one.record())
    second.async_on(two)
    return second.async_on(two)


# %% id=02-fork-join cause="race on array 'x'"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    for branch, stream in zip(branches, streams):
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="race on array 'y0'"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
    return combine.async_on(main)


# %% id=02-fork-join cause="race on array 'y0'"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
    main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="the host waited 2 times"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
    for stream in streams:
        stream.synchronize()
    return combine.async_on(main)


# %% id=02-fork-join cause="`d2h` ran on stream"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        streams[0].wait_event(stream.record())
    return combine.async_on(streams[0])


# %% id=02-fork-join cause="`branch1` ran on stream"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    stream = streams[0]
    stream.wait_event(main.record())
    for branch in branches:
        branch.async_on(stream)
    main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="and does not need it"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    mark = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(mark)
        branch.async_on(stream)
        mark = stream.record()
    main.wait_event(mark)
    return combine.async_on(main)


# %% id=02-fork-join cause="`prepare` ran on stream"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(streams[0])
    ready = streams[0].record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="`branch0` ran 2 times"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="should return what `combine` returns"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        main.wait_event(stream.record())
    combine.async_on(main)


# %% id=02-fork-join cause="element 0 is"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)[::-1]


# %% id=02-minimum-events cause="with 4 waits between the streams, and 3 are enough"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    b_done = two.record()

    one.wait_event(b_done)
    ops["c"].async_on(one)
    c_done = one.record()
    two.wait_event(a_done)
    ops["d"].async_on(two)

    one.wait_event(b_done)
    ops["e"].async_on(one)
    two.wait_event(c_done)
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="nothing makes `f` (stream 2) wait for `c`"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    one.wait_event(two.record())
    ops["c"].async_on(one)
    two.wait_event(a_done)
    ops["d"].async_on(two)
    ops["e"].async_on(one)
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="`d` (stream 2) is made to wait for `c` (stream 1), and does not need it"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    ops["b"].async_on(two)
    one.wait_event(two.record())
    ops["c"].async_on(one)
    two.wait_event(one.record())
    ops["d"].async_on(two)
    ops["e"].async_on(one)
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="`f` (stream 2) is made to wait for `e` (stream 1), and does not need it"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    one.wait_event(two.record())
    ops["c"].async_on(one)
    two.wait_event(a_done)
    ops["d"].async_on(two)
    ops["e"].async_on(one)
    two.wait_event(one.record())
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="nothing makes `c` (stream 1) wait for `b`"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    ops["c"].async_on(one)
    ops["e"].async_on(one)
    two.wait_event(one.record())
    ops["b"].async_on(two)
    ops["d"].async_on(two)
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="`b` ran on stream"
def enqueue(ops, one, two):
    for name in "abcdef":
        ops[name].async_on(one)


# %% id=02-minimum-events cause="the host waited 1 time"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    one.wait_event(two.record())
    ops["c"].async_on(one)
    c_done = one.record()
    two.wait_event(a_done)
    ops["d"].async_on(two)
    ops["e"].async_on(one)
    c_done.synchronize()
    ops["f"].async_on(two)


# %% id=02-minimum-events cause="`f` ran 0 times"
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    one.wait_event(two.record())
    ops["c"].async_on(one)
    two.wait_event(a_done)
    ops["d"].async_on(two)
    ops["e"].async_on(one)


# %% id=02-two-buffers cause="was changed while its copy may have been in flight"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
    stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="the device did nothing during `fill 1`"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="the device did nothing during `fill 2`"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        if i >= 2:
            stream.synchronize()
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
    stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="the device did nothing during `fill 2`"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 1].synchronize()
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
    stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="was changed while its copy may have been in flight"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        copied.append(stream.record())
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
    stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="returned while the last copy was still on its way"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
    return arrays


# %% id=02-two-buffers cause="with a device that takes its time"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
    agt.work(100, "by then they are surely over")
    return arrays


# %% id=02-two-buffers cause="none of the two buffers"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        buffer = agt.pinned(buffers[0].shape)
        fill(buffer, i)
        arrays.append(agt.h2d(buffer).async_on(stream))
    stream.synchronize()
    return arrays


# %% id=02-two-buffers cause="element 0 is"
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


# %% id=02-two-buffers cause="should return the 5 device arrays"
def upload_all(fill, count, buffers, stream):
    copied = []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        array = agt.h2d(buffers[i % 2]).async_on(stream)
        copied.append(stream.record())
    stream.synchronize()
    return array


# %% id=02-two-buffers cause="`h2d` ran 10 times"
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        agt.h2d(buffers[i % 2]).async_on(stream)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
        copied.append(stream.record())
    stream.synchronize()
    return arrays


# %% id=02-chunked-overlap cause="no chunk was copied while another was computed"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    results = [process(chunk, table).async_on(streams[0]) for chunk in chunks]
    streams[0].synchronize()
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="race on array 'table'"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="wait when all chunks are on their way"
def pipeline(prepare, process, chunks, streams):
    table = prepare.sync_on(streams[0])
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).sync_on(streams[i % len(streams)]))
    return results


# %% id=02-chunked-overlap cause="have the streams wait for the table, by an event"
def pipeline(prepare, process, chunks, streams):
    table = prepare.sync_on(streams[0])
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    agt.synchronize()
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="a result was read before the device was done with it"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="a result was read before the device was done with it"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    streams[0].synchronize()
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="with a device that takes its time"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    agt.work(5000, "by then they are surely over")
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="`h2d` ran 10 times"
def pipeline(prepare, process, chunks, streams):
    results = []
    for i, chunk in enumerate(chunks):
        stream = streams[i % len(streams)]
        results.append(process(chunk, prepare.async_on(stream)).async_on(stream))
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]


# %% id=02-chunked-overlap cause="which is none of the given ones"
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


# %% id=02-chunked-overlap cause="`.numpy()` gives the array"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    for stream in streams:
        stream.synchronize()
    return results


# %% id=02-chunked-overlap cause="should return a list of 5"
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    for stream in streams:
        stream.synchronize()
    return np.concatenate([result.numpy() for result in results])


# %% id=02-two-buffers cause="was changed while its copy may have been in flight"
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(stream))
    return arrays


# %% id=02-two-buffers cause="returned while the last copy was still on its way"
def upload_all(fill, count, buffers, stream):
    own, arrays, copied = agt.create_stream(), [], []
    for i in range(count):
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffers[i % 2], i)
        arrays.append(agt.h2d(buffers[i % 2]).async_on(own))
        copied.append(own.record())
    stream.synchronize()
    return arrays
