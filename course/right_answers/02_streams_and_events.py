"""Right answers to exercises of course/02_streams_and_events.py in other forms than the solution's."""


# %% id=02-fork-join
# - joins = []
# - for branch, stream in zip(branches, streams):
# + for branch, stream in zip(branches, streams, strict=True):
# - joins.append(stream.record())
# - for join in joins:
# - main.wait_event(join)
# + main.wait_event(stream.record())


# %% id=02-order-the-race
def in_order(first, second, one, two):
    between = agt.create_stream()
    first.async_on(one)
    between.wait_event(one.record())
    two.wait_event(between.record())
    return second.async_on(two)


# %% id=02-fork-join
def fork_join(prepare, branches, combine, main, streams):
    """Each stream waits for its neighbour, behind its own branch, and the last one tells `main`."""
    prepare.async_on(main)
    fork, before = main.record(), main
    for stream in streams:
        stream.wait_event(fork)
    for branch, stream in zip(branches, streams, strict=True):
        branch.async_on(stream)
    for stream in streams:
        stream.wait_event(before.record())
        before = stream
    main.wait_event(before.record())
    return combine.async_on(main)


# %% id=02-challenge
def arrange(ops, one, two):
    """Nobody shares a stream with `b` and `f`, and each mark is recorded as soon as it can be."""
    ops["a"].async_on(one)
    ops["b"].async_on(two)
    b_done = two.record()
    ops["c"].async_on(one)
    c_done = one.record()
    two.wait_event(c_done)
    ops["f"].async_on(two)
    f_done = two.record()
    ops["d"].async_on(one)
    one.wait_event(b_done)
    ops["e"].async_on(one)
    one.wait_event(f_done)
    ops["g"].async_on(one)
