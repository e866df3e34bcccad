"""Plausible wrong answers to the exercises of course/02_streams_and_events.py; see tools/build_notebooks.py."""


# %% id=02-order-the-race cause="Stream 2 does wait for an event of stream 1, but for one that was recorded before `write` was put there"
def in_order(first, second, one, two):
    mark = one.record()
    first.async_on(one)
    two.wait_event(mark)
    return second.async_on(two)


# %% id=02-order-the-race cause="the host waited 1 time"
# - two.wait_event(one.record())
# + one.synchronize()


# %% id=02-order-the-race cause="`d2h` ran on stream"
def in_order(first, second, one, two):
    first.async_on(one)
    return second.async_on(one)


# %% id=02-order-the-race cause="`write` ran on stream"
def in_order(first, second, one, two):
    first.async_on(two)
    return second.async_on(two)


# %% id=02-order-the-race cause="Here stream 1 waits for stream 2, and the other way round is right"
# - two.wait_event(one.record())
# + one.wait_event(two.record())


# %% id=02-order-the-race cause="nothing makes `d2h`"
def in_order(first, second, one, two):
    result = second.async_on(two)
    one.wait_event(two.record())
    first.async_on(one)
    return result


# %% id=02-order-the-race cause="the result of `second` should come back"
# - return second.async_on(two)
# + second.async_on(two)


# %% id=02-order-the-race cause="`write` ran 2 times"
# - def in_order(first, second, one, two):
# + def in_order(first, second, one, two):
# +     first.async_on(one)


# %% id=02-order-the-race cause="`d2h` ran 2 times"
# - two.wait_event(one.record())
# + two.wait_event(one.record())
# + second.async_on(two)


# %% id=02-fork-join cause="When `branch0` was put on stream 2, no `wait_event` had made that stream wait for stream 1"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    for branch, stream in zip(branches, streams):
        branch.async_on(stream)
        main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join of=above cause="`prepare` ran on stream"
# - prepare.async_on(main)
# + prepare.async_on(streams[0])
# + ready = streams[0].record()
#   for branch, stream in zip(branches, streams):
# +     stream.wait_event(ready)


# %% id=02-fork-join of=above cause="with a fork into 1, your code raised IndexError"
#   prepare.async_on(main)
# + ready = main.record()
# + streams[0].wait_event(ready)
# + streams[1].wait_event(ready)
# + for stream in streams[2:]:
# +     stream.wait_event(ready)


# %% id=02-fork-join of=above cause="with a fork into 11, `branch5` ran 0 times"
# - for branch, stream in zip(branches, streams):
# + prepared = main.record()
# + for branch, stream in list(zip(branches, streams, strict=True))[:5]:
# +     stream.wait_event(prepared)


# %% id=02-fork-join cause="When `d2h` was put on stream 1, no `wait_event` had made that stream wait for stream 2: it needs such a wait, and needs it before that work"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
    return combine.async_on(main)


# %% id=02-fork-join of=above cause="the host waited 2 times"
#   for branch, stream in zip(branches, streams):
#   branch.async_on(stream)
# + for stream in streams:
# +     stream.synchronize()


# %% id=02-fork-join of=above cause="`d2h` ran on stream"
# - return combine.async_on(main)
# +     streams[0].wait_event(stream.record())
# + return combine.async_on(streams[0])


# %% id=02-fork-join of=above cause="`branch0` ran 2 times"
#   branch.async_on(stream)
# + branch.async_on(stream)
# + main.wait_event(stream.record())


# %% id=02-fork-join of=above cause="should return whatever `async_on` returns for `combine`"
# - return combine.async_on(main)
# +     main.wait_event(stream.record())
# + combine.async_on(main)


# %% id=02-fork-join of=above cause="element 0 is"
# - return combine.async_on(main)
# +     main.wait_event(stream.record())
# + return combine.async_on(main)[::-1]


# %% id=02-fork-join of=above cause="Python came back only when"
# - return combine.async_on(main)
# +     main.wait_event(stream.record())
# + result = combine.async_on(main)
# + while not main.done:
# +     pass
# + return result


# %% id=02-fork-join of=above cause="Stream 1 does wait for an event of stream 2, but for one that was recorded before `branch0` was put there"
#   stream.wait_event(ready)
# + done = stream.record()
#   branch.async_on(stream)
# + main.wait_event(done)


# %% id=02-fork-join of=above cause="Here stream 2 waits for stream 1, and the other way round is right"
#   branch.async_on(stream)
# + stream.wait_event(main.record())


# %% id=02-fork-join cause="`branch1` ran on stream"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    stream = streams[0]
    stream.wait_event(main.record())
    for branch in branches:
        branch.async_on(stream)
    main.wait_event(stream.record())
    return combine.async_on(main)


# %% id=02-fork-join cause="and needn't"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    mark = main.record()
    for branch, stream in zip(branches, streams):
        stream.wait_event(mark)
        branch.async_on(stream)
        mark = stream.record()
    main.wait_event(mark)
    return combine.async_on(main)


# %% id=02-minimum-events of=starter cause="`d` (stream 2) is made to wait for `c` (stream 1), and needn't"
#   ops["b"].async_on(two)
# + one.wait_event(two.record())
#   ops["c"].async_on(one)
# + two.wait_event(one.record())


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


# %% id=02-minimum-events of=above cause="with 4 calls of `wait_event`, and 3 are enough"
# - one.wait_event(two.record())
# + b_done = two.record()
# +
# + one.wait_event(b_done)
#   ops["d"].async_on(two)
# +
# + one.wait_event(b_done)
# - c_done.synchronize()
# + two.wait_event(c_done)


# %% id=02-minimum-events of=above cause="nothing makes `f` (stream 2) wait for `c`"
# - c_done = one.record()
# - c_done.synchronize()


# %% id=02-minimum-events of=above cause="`f` (stream 2) is made to wait for `e` (stream 1), and needn't"
# - c_done = one.record()
# - c_done.synchronize()
# + two.wait_event(one.record())


# %% id=02-minimum-events of=above cause="`f` ran 0 times"
# - c_done = one.record()
# - c_done.synchronize()
# - ops["f"].async_on(two)


# %% id=02-minimum-events of=above cause="Python came back only when"
# - c_done.synchronize()
# + two.wait_event(c_done)
#   ops["f"].async_on(two)
# + while not (one.done and two.done):
# +     pass


# %% id=02-order-the-race cause="Python came back only when `write` was done"
# - return second.async_on(two)
# + result = second.async_on(two)
# + while not two.done:
# +     pass
# + return result


# %% id=02-fork-join cause=") is made to wait for `branch0` ("
# - for branch, stream in zip(branches, streams):
# - stream.wait_event(ready)
# + for i, (branch, stream) in enumerate(zip(branches, streams)):
# +     stream.wait_event(joins[i - 2] if i >= 2 else ready)


# %% id=02-challenge cause="get below 440"
# - ops["b"].async_on(two)
# + ops["b"].async_on(two)
# + b_done = two.record()
# - ops["f"].async_on(one)
# + c_done = one.record()
# - ops["e"].async_on(two)
# + one.wait_event(b_done)
# + ops["e"].async_on(one)
# + two.wait_event(c_done)
# + ops["f"].async_on(two)


# %% id=02-challenge cause="nothing makes `d` (stream 2) wait for `a` (stream 1)"
def arrange(ops, one, two):
    for name in "acf":
        ops[name].async_on(one)
    for name in "bde":
        ops[name].async_on(two)
    one.wait_event(two.record())
    ops["g"].async_on(one)


# %% id=02-challenge cause="`b` ran 0 times"
def arrange(ops, one, two):
    for name in "acfg":
        ops[name].async_on(one)


# %% id=02-challenge cause="`g` comes after `d` because the host waited in between (`synchronize`, or a `sync`), and it should go on: let stream 1 wait for an event"
# - ops["b"].async_on(two)
#   ops["f"].async_on(one)
# + ops["b"].async_on(two)
# - one.wait_event(two.record())
# + two.synchronize()


# %% id=02-challenge cause="`d` comes after `a` because the host waited in between (`synchronize`, or a `sync`), and it should go on: let stream 2 wait for an event"
#   ops["a"].async_on(one)
# + ops["b"].async_on(two)
# - ops["b"].async_on(two)
# + a_done.synchronize()
# - two.wait_event(a_done)


# %% id=02-order-the-race cause="When `d2h` was put on stream 2, no `wait_event` had made that stream wait for stream 1"
def in_order(first, second, one, two):
    first.async_on(one)
    mark = one.record()
    result = second.async_on(two)
    two.wait_event(mark)
    return result


# %% id=02-order-the-race cause="'write' of operation"
def in_order(first, second, one, two):
    result = second.async_on(two)
    first.async_on(one)
    two.wait_event(one.record())
    return result


# %% id=02-challenge cause="one of the streams that you were given"
def arrange(pieces, one, two):
    three = agt.create_stream()
    def on(s, names):
        for n in names: pieces[n].async_on(s)
    on(one,"a"); ea=one.record()
    on(two,"be"); ee=two.record()
    three.wait_event(ea)
    on(three,"d"); ed=three.record()
    on(one,"cf")
    one.wait_event(ee); one.wait_event(ed)
    on(one,"g")


# %% id=02-fork-join cause="`prepare` ran 2 times"
# - def fork_join(prepare, branches, combine, main, streams):
# + def fork_join(prepare, branches, combine, main, streams):
# +     prepare.async_on(main)


# %% id=02-fork-join cause="`d2h` ran 6 times"
#   for join in joins:
#   main.wait_event(join)
# + combine.async_on(main)


# %% id=02-fork-join cause="nothing makes `d2h`"
# - main.wait_event(join)
# + while not join.done:
# +     agt.work(1)


# %% id=02-order-the-race cause="Python came back only when `write` was done"
# - two.wait_event(one.record())
# + written = one.record()
# + while not written.done:
# +     agt.work(1)
# + two.wait_event(written)


# %% id=02-challenge cause="`e` is ahead of `b` on stream 2, and has to come after it"
# - a_done = one.record()
# + ops["e"].async_on(two)
# - two.wait_event(a_done)
# + two.wait_event(one.record())
# - ops["e"].async_on(two)


# %% id=02-fork-join cause="Python came back only when `prepare` was done"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    fork = main.record()
    marks = []
    for b, s in zip(branches, streams):
        s.wait_event(fork)
        b.async_on(s)
        marks.append(s.record())
    while not all(m.done for m in marks):
        pass
    for m in marks:
        main.wait_event(m)
    return combine.async_on(main)


# %% id=02-minimum-events cause="Python came back only when `a` was done"
def enqueue(ops, one, two):
    a, b, c, d, e, f = (ops[k] for k in "abcdef")
    a.async_on(one)
    b.async_on(two)
    A, B = one.record(), two.record()
    one.wait_event(B)
    two.wait_event(A)
    while not (A.done and B.done):
        pass
    c.async_on(one)
    d.async_on(two)
    two.wait_event(one.record())
    e.async_on(one)
    f.async_on(two)


# %% id=02-fork-join cause="takes things out of its caller's list"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    fork = main.record()
    while branches:
        b, s = branches.pop(), streams.pop()
        s.wait_event(fork)
        b.async_on(s)
        main.wait_event(s.record())
    return combine.async_on(main)


# %% id=02-order-the-race cause="nothing of it ran: an `async def`"
# - def in_order(first, second, one, two):
# + async def in_order(first, second, one, two):


# %% id=02-order-the-race cause="not an event of a simulated device of the same machine"
kept = []


def in_order(first, second, one, two):
    first.async_on(one)
    if not kept:
        kept.append(one.record())
    two.wait_event(kept[0])
    return second.async_on(two)


# %% id=02-fork-join cause="with a fork into 5, `branch3` ran 0 times"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    for i in range(min(3, len(branches))):
        streams[i].wait_event(ready)
        branches[i].async_on(streams[i])
        main.wait_event(streams[i].record())
    return combine.async_on(main)


# %% id=02-order-the-race cause="`write` (stream 1) is made to wait for `other_b` (stream 2), and needn't"
# - first.async_on(one)
# + one.wait_event(two.record())
# + first.async_on(one)


# %% id=02-order-the-race cause="`other_c` (stream 1) is made to wait for `d2h` (stream 2), and needn't"
# - return second.async_on(two)
# + handle = second.async_on(two)
# + one.wait_event(two.record())
# + return handle


# %% id=02-fork-join cause="with a fork into 0, your code raised IndexError"
# - for join in joins:
# - main.wait_event(join)
# + last = joins[-1]
# + for join in joins[:-1]:
# +     main.wait_event(join)
# + main.wait_event(last)


# %% id=02-fork-join cause="had made that stream wait for stream 2: it needs such a wait, and needs it before"
# - for join in joins:
# -     main.wait_event(join)
# + main.wait_event(joins[-1])


# %% id=02-fork-join cause="had made that stream wait for stream 1: it needs such a wait, and needs it before"
# - stream.wait_event(ready)
# + streams[0].wait_event(ready)


# %% id=02-fork-join cause="with a fork into 11, race on array 'y5'"
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    prepared = main.record()
    for i, (branch, stream) in enumerate(zip(branches, streams, strict=True)):
        stream.wait_event(prepared)
        branch.async_on(stream)
        if i < 5:
            main.wait_event(stream.record())
    return combine.async_on(main)
