"""Right answers to exercises of course/15_several_gpus.py in other forms than the solution's."""


# %% id=15-split
def split(recipe, batch, weights):
    """The first GPU is where the operation runs anyway, and parts are cut by hand."""
    n, rows = len(weights), len(batch)
    cuts = [i * rows // n for i in range(n + 1)]
    first, *others = [recipe(batch[a:b], w) for a, b, w in zip(cuts, cuts[1:], weights)]
    arms = [op.on(w.device) for op, w in zip(others, weights[1:])]
    return agt.overlap(first, *arms).map(list)


# %% id=15-place
def both(parts, gpus, work, steps):
    """Three stages; the whole arm is sent to its GPU only where it works."""

    def again(x, left=steps):
        return work(x).and_then(lambda y: again(y, left - 1)) if left else agt.value(x)

    def arm(part, gpu):
        return part.to(gpu).and_then(lambda x: again(x).on(gpu)).and_then(lambda x: x.to(gpus[0]))

    return agt.overlap(*map(arm, parts, gpus))


# %% id=15-ring
def ring(group, rank, parts, room, add):
    """The other way round, with a list that is turned."""
    n = group.size
    right, left = (rank + 1) % n, (rank - 1) % n
    turn = [parts[(rank + i) % n] for i in range(n)]
    op = agt.value(None)
    for out, into in zip(turn, turn[1:]):
        op = op.and_then(lambda _, out=out: group.exchange(out, left, room, right))
        op = op.and_then(lambda _, into=into: add(room, into))
    turn = turn[-1:] + turn[:-1]
    for out, into in zip(turn, turn[1:]):
        op = op.and_then(lambda _, out=out, into=into: group.exchange(out, left, into, right))
    return op


# %% id=15-ring
def ring(group, rank, parts, room, add):
    """With `send` and `recv`: rank 0 listens first, and so nobody waits forever."""
    n = group.size
    right, left = (rank + 1) % n, (rank - 1) % n

    def swap(out, into):
        both = [group.send(out, right), group.recv(into, left)] if rank else [group.recv(into, left), group.send(out, right)]
        return agt.zip(*both)

    steps = []
    for s in range(n - 1):
        steps += [swap(parts[(rank - s) % n], room), add(room, parts[(rank - s - 1) % n])]
    for s in range(n - 1):
        steps.append(swap(parts[(rank + 1 - s) % n], parts[(rank - s) % n]))
    return agt.zip(*steps)


# %% id=15-order
def reduce_all(group, ready, shapes):
    """From the last to the first, as gradients come; any order will do that all agree on."""
    sums = agt.value(())
    for layer in reversed(shapes):
        mine = agt.value(ready[layer]) if layer in ready else agt.zeros(shapes[layer])
        one = mine.and_then(group.all_reduce)
        sums = agt.zip(sums, one).map(lambda pair: (pair[1], *pair[0]))
    return sums


# %% id=15-overlapped
def overlapped(gradients, reduces):
    """Two long arms, in which each all-reduce waits for a gradient that is shared."""
    done = [gradient.shared() for gradient in gradients]
    talk = [gradient.and_then(lambda _, reduce=reduce: reduce) for gradient, reduce in zip(done, reduces)]
    return agt.overlap(agt.zip(*done), agt.zip(*talk))


# %% id=15-overlapped
def overlapped(gradients, reduces):
    """A function that calls itself."""
    first, *rest = gradients
    mine, *others = reduces
    if not rest:
        return agt.zip(first, mine)
    return first.and_then(lambda _: agt.overlap(mine, overlapped(rest, others)))


# %% id=15-halo
def advance(group, rank, old, halo, new, spread):
    """With `send` and `recv`: downwards in turn, and then upwards."""
    top, middle, bottom = old
    above, below = halo
    last = group.size - 1
    down = [group.recv(above, rank - 1)] if rank > 0 else []
    down += [group.send(bottom, rank + 1)] if rank < last else []
    up = [group.recv(below, rank + 1)] if rank < last else []
    up += [group.send(top, rank - 1)] if rank > 0 else []
    edges = [spread(above, top, middle, new[0]), spread(middle, bottom, below, new[2])]
    return agt.overlap(spread(top, middle, bottom, new[1]), agt.zip(*down, *up).and_then(lambda _: agt.zip(*edges)))


# %% id=15-place
# - op = part.to(gpu)
# + home = agt.pinned(part.size)  # there by way of the host, once
# + if gpu == gpus[0]:
# +     op = agt.value(part)
# + else:
# +     op = agt.d2h(part, out=home).on(gpus[0]).and_then(lambda _: agt.h2d(home))
