"""Plausible wrong answers to the exercises of course/15_several_gpus.py; see tools/build_notebooks.py."""


# %% id=15-split cause="`split` should return a list of 2"
def split(recipe, batch, weights):
    w = weights[0]
    return recipe(batch, w).on(w.device)


# %% id=15-split cause="the parts have [64, 64] rows"
def split(recipe, batch, weights):
    return agt.overlap(*[recipe(batch, w).on(w.device) for w in weights])


# %% id=15-split cause="they should work at the same time"
# - return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])
# + return agt.zip(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])


# %% id=15-split cause="is on sim:1, and the operation runs on sim:0"
# - return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])
# + return agt.overlap(*[recipe(x, w) for x, w in zip(parts, weights)])


# %% id=15-split cause="1 GPU did nothing"
def split(recipe, batch, weights):
    w = weights[0]
    return agt.overlap(*[recipe(x, w) for x in np.array_split(batch, len(weights))])


# %% id=15-split cause="with part 0, element (1, 0)"
# - parts = np.array_split(batch, len(weights))
# + n = len(weights)
# + parts = [batch[i::n] for i in range(n)]


# %% id=15-split cause="with 3 GPUs and 50 rows, the parts have [16, 16, 16] rows"
# - parts = np.array_split(batch, len(weights))
# + size = len(batch) // len(weights)
# + parts = [batch[i * size : (i + 1) * size] for i in range(len(weights))]


# %% id=15-split cause="building the operation already ran something"
# - return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])
# + results = [recipe(x, w).on(w.device).sync() for x, w in zip(parts, weights)]
# + return agt.value(results)


# %% id=15-split cause="with part 0, element (0, 0)"
# - return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])
# + arms = [recipe(x, w).on(w.device) for x, w in zip(parts, weights)]
# + return agt.overlap(*reversed(arms))


# %% id=15-place cause="the parts moved 8 times, and 2 are enough: a part goes over before"
# - op = op.and_then(work)
# + op = op.and_then(work).and_then(lambda x: x.to(gpus[0])).and_then(lambda x: x.to(gpu))


# %% id=15-place cause="part 1 had 3 rounds of `work`, on sim:0, and should have 3 on sim:1"
def both(parts, gpus, work, steps):
    def rounds(part):
        op = agt.value(part)
        for _ in range(steps):
            op = op.and_then(work)
        return op

    return agt.overlap(*[rounds(part) for part in parts])


# %% id=15-place cause="and the operation runs on sim:0"
# - return op.and_then(lambda x: x.to(gpus[0])).on(gpu)
# + return op.and_then(lambda x: x.to(gpus[0]))


# %% id=15-place cause="part 1 ended on sim:1, and should come back to sim:0"
# - return op.and_then(lambda x: x.to(gpus[0])).on(gpu)
# + return op.on(gpu)


# %% id=15-place cause="`agt.overlap` lets parts go side by side"
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + return agt.zip(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])


# %% id=15-place cause="part 0 had 2 rounds of `work`, on sim:0, and should have 3 on sim:0"
# - for _ in range(steps):
# + for _ in range(steps - 1):


# %% id=15-place cause="building the operation already ran something"
#   def both(parts, gpus, work, steps):
# +     there = [part.to(gpu).sync() for part, gpu in zip(parts, gpus)]
# +
# - op = part.to(gpu)
# + op = agt.value(part)
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(there, gpus)])


# %% id=15-place cause="part 0 had 3 rounds of `work`, on sim:1, and should have 3 on sim:0"
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + arms = [rounds(part, gpu) for part, gpu in zip(reversed(parts), gpus)]
# + return agt.overlap(*arms)


# %% id=15-ring cause="rank 0 sent 12 parts, and 6 are enough"
def ring(group, rank, parts, room, add):
    n = group.size
    right, left = (rank + 1) % n, (rank - 1) % n
    steps = []
    for own in range(n):  # each part goes all the way around, as the whole array did
        spare = agt.zeros(room.shape).sync()
        out, into = agt.dup(parts[own]).sync()[1], room
        for _ in range(n - 1):
            steps += [group.exchange(out.borrow(), right, into.borrow(), left), add(into, parts[own])]
            out, into = into, out
        steps.append(agt.value((spare, out, into)))
    return agt.zip(*steps)


# %% id=15-ring cause="Each rank has one complete part by now"
# - for s in range(n - 1):
# - out, into = (rank - s) % n, (rank - s - 1) % n
# + for s in range(rank, rank - n + 1, -1):  # only half of it, as it was given
# +     out, into = s % n, (s - 1) % n
# - for s in range(n - 1):
# - out, into = (rank + 1 - s) % n, (rank - s) % n
# - steps += [group.exchange(parts[out], right, parts[into], left)]


# %% id=15-ring cause="and lacks part 0 of rank 1, part 0 of rank 2, part 0 of rank 3"
#   for s in range(n - 1):
# - for s in range(n - 1):
# - out, into = (rank + 1 - s) % n, (rank - s) % n
# + for s in range(n - 1):  # begins with the part that it has not completed
# +     out, into = (rank - s) % n, (rank - s - 1) % n


# %% id=15-ring cause="part 0 on rank 0 is 2 times part 0 of rank 0 + part 0 of rank 1"
# - for s in range(n - 1):
# + for s in range(2 * (n - 1)):  # adds in the second half, too
# - for s in range(n - 1):
# - out, into = (rank + 1 - s) % n, (rank - s) % n
# - steps += [group.exchange(parts[out], right, parts[into], left)]


# %% id=15-ring cause="in the end, part 0 on rank 0 is part 0 of rank 3, and lacks part 0 of rank 0"
# - for s in range(n - 1):
# - out, into = (rank - s) % n, (rank - s - 1) % n
# - steps += [group.exchange(parts[out], right, room, left), add(room, parts[into])]
# + for s in range(n - 1):  # adds what comes to the part that went
# +     out = (rank - s) % n
# +     steps += [group.exchange(parts[out], right, room, left), add(room, parts[out])]


# %% id=15-ring cause="the library did it: use `group.exchange` today"
def ring(group, rank, parts, room, add):
    return agt.zip(*[group.all_reduce(part) for part in parts])


# %% id=15-ring cause="rank 0 waits in send"
# - steps += [group.exchange(parts[out], right, room, left), add(room, parts[into])]
# + steps += [group.send(parts[out], right), group.recv(room, left), add(room, parts[into])]
# - steps += [group.exchange(parts[out], right, parts[into], left)]
# + steps += [group.send(parts[out], right), group.recv(parts[into], left)]


# %% id=15-ring cause="ranks disagree"
# - steps += [group.exchange(parts[out], right, room, left), add(room, parts[into])]
# - for s in range(n - 1):
# - out, into = (rank + 1 - s) % n, (rank - s) % n
# - steps += [group.exchange(parts[out], right, parts[into], left)]
# + steps += [group.exchange(parts[out], left, room, left), add(room, parts[into])]


# %% id=15-ring cause="`ring` should return an operation, and returned None"
def ring(group, rank, parts, room, add):
    n = group.size
    right, left = (rank + 1) % n, (rank - 1) % n
    for s in range(n - 1):
        agt.zip(group.exchange(parts[(rank - s) % n], right, room, left), add(room, parts[(rank - s - 1) % n])).sync


# %% id=15-order cause="the sum of W1 on rank 0 is W1 of rank 0 + W0 of rank 1, and lacks W1 of rank 1"
# - return agt.zip(*[group.all_reduce(array) for array in arrays])
# + missing = [layer for layer in shapes if layer not in ready]
# + order = [*ready, *missing]
# + sums = agt.zip(*[group.all_reduce(arrays[list(shapes).index(layer)]) for layer in order])
# + return sums.map(lambda found: [found[order.index(layer)] for layer in shapes])


# %% id=15-order cause="rank 1 has nothing for `W10`, and contributes zeros to that sum"
def reduce_all(group, ready, shapes):
    return agt.zip(*[group.all_reduce(ready[layer]) for layer in sorted(ready)])


# %% id=15-order cause="your code raised KeyError: 'W10'"
def reduce_all(group, ready, shapes):
    return agt.zip(*[group.all_reduce(ready[layer]) for layer in shapes])


# %% id=15-order cause="rank 0 waits in all_reduce"
def reduce_all(group, ready, shapes):
    def one(layer, shape):
        return group.all_reduce(ready[layer]) if layer in ready else agt.zeros(shape)

    return agt.zip(*[one(layer, shape) for layer, shape in shapes.items()])


# %% id=15-order cause="with the sum of W10 on rank 0, element 0"
# - arrays = [ready[k] if k in ready else agt.zeros(s) for k, s in shapes.items()]
# + arrays = [ready[layer] if layer in ready else agt.ones(shape) for layer, shape in shapes.items()]


# %% id=15-order cause="with the sum of W1 on rank 0, element 0"
# - return agt.zip(*[group.all_reduce(array) for array in arrays])
# + return agt.zip(*[group.all_reduce(array, "max") for array in arrays])


# %% id=15-order cause="is W0 of rank 0 + W0 of rank 1, and lacks W1 of rank 0, W1 of rank 1"
# - return agt.zip(*[group.all_reduce(array) for array in arrays])
# + return agt.zip(*[group.all_reduce(array) for array in reversed(arrays)])


# %% id=15-order cause="where a DeviceOp is needed"
def reduce_all(group, ready, shapes):
    arrays = [ready.get(layer) for layer in shapes]
    return agt.zip(*arrays)


# %% id=15-overlapped cause="gradients[1] and reduces[0] don't need each other"
def overlapped(gradients, reduces):
    pairs = [part for pair in zip(gradients, reduces) for part in pair]
    return agt.zip(*pairs)


# %% id=15-overlapped cause="`reduces[0]` begins before `gradients[0]` is over"
def overlapped(gradients, reduces):
    return agt.overlap(agt.zip(*gradients), agt.zip(*reduces))


# %% id=15-overlapped cause="and nothing orders the two"
def overlapped(gradients, reduces):
    return agt.overlap(*[gradient.and_then(lambda _, r=reduce: r) for gradient, reduce in zip(gradients, reduces)])


# %% id=15-overlapped cause="gradients[1] and reduces[0] don't need each other"
def overlapped(gradients, reduces):
    op = gradients[0]
    for before, gradient in zip(reduces, gradients[1:]):
        op = op.and_then(lambda _, a=before, b=gradient: agt.overlap(a, agt.value(None)).and_then(lambda _: b))
    return op.and_then(lambda _: reduces[-1])


# %% id=15-overlapped cause="`all_reduce` ran 4 times, and should run 6 times"
# - op = agt.value(None)
# - for gradient, reduce in zip(reversed(gradients), reversed(reduces)):
# + op = gradients[-1]
# + for gradient, reduce in zip(reversed(gradients[:-1]), reversed(reduces[:-1])):


# %% id=15-overlapped cause="gradients[1] and reduces[0] don't need each other"
def overlapped(gradients, reduces):
    half = len(gradients) - 1
    rest = agt.overlap(agt.zip(*reduces[:half]), gradients[-1])
    return agt.zip(*gradients[:half]).and_then(lambda _: rest).and_then(lambda _: reduces[-1])


# %% id=15-overlapped cause="building the operation already ran something"
def overlapped(gradients, reduces):
    for gradient, reduce in zip(gradients, reduces):
        agt.overlap(gradient, agt.value(None)).sync()
        reduce.async_on(agt.create_stream())
    return agt.value(None)


# %% id=15-overlapped cause="`gradient_0` ran 4 times, and should run 2 times"
# - return op
# + return agt.zip(gradients[0], op)


# %% id=15-overlapped cause="gradients[1] and reduces[0] don't need each other"
# - op = agt.value(None)
# + op = agt.value(None)  # the rest comes first, with the all-reduces in it, and a group keeps their order
# - op = gradient.and_then(lambda _, reduce=reduce, rest=op: agt.overlap(reduce, rest))
# + op = gradient.and_then(lambda _, reduce=reduce, rest=op: agt.overlap(rest, reduce))


# %% id=15-overlapped cause="gradients[2] and reduces[0] don't need each other"
def overlapped(gradients, reduces):
    op = gradients[0]
    for reduce, gradient in zip(reduces, gradients[1:]):
        op = op.and_then(lambda _, reduce=reduce, gradient=gradient: agt.overlap(reduce, gradient))
    return op.and_then(lambda _: reduces[-1])


# %% id=15-overlapped cause="with gradient 0, element 0 is"
def overlapped(gradients, reduces):
    return agt.zip(*reduces, *gradients)


# %% id=15-halo cause="the middle needs no neighbour"
def advance(group, rank, old, halo, new, spread):
    top, middle, bottom = old
    above, below = halo
    up = rank - 1 if rank > 0 else None
    down = rank + 1 if rank < group.size - 1 else None
    talk = agt.zip(group.exchange(bottom, down, above, up), group.exchange(top, up, below, down))
    parts = (spread(above, top, middle, new[0]), spread(top, middle, bottom, new[1]), spread(middle, bottom, below, new[2]))
    return talk.and_then(lambda _: agt.overlap(*parts))


# %% id=15-halo of=above cause="Arms of an overlap don't wait for each other"
# - return talk.and_then(lambda _: agt.overlap(*parts))
# + return agt.overlap(talk, agt.zip(*parts))


# %% id=15-halo of=above cause="with part 0, element (0, 0)"
# - parts = (spread(above, top, middle, new[0]), spread(top, middle, bottom, new[1]), spread(middle, bottom, below, new[2]))
# - return talk.and_then(lambda _: agt.overlap(*parts))
# + return agt.overlap(spread(top, middle, bottom, new[1]), talk)


# %% id=15-halo of=starter cause="with rank 0, with part 2, element (0, 0)"
# - up = rank - 1 if rank > 0 else None
# - down = rank + 1 if rank < group.size - 1 else None
# - group.exchange(bottom, down, above, up),
# - group.exchange(top, up, below, down),


# %% id=15-halo cause="with rank 0, with part 0, element (0, 0)"
# - up = rank - 1 if rank > 0 else None
# - down = rank + 1 if rank < group.size - 1 else None
# + up, down = (rank - 1) % group.size, (rank + 1) % group.size  # the sheet is no cylinder


# %% id=15-halo cause="with rank 0, with part 2, element (0, 0)"
# - group.exchange(bottom, down, above, up),
# - group.exchange(top, up, below, down),
# + group.exchange(top, down, above, up),  # the wrong row
# + group.exchange(bottom, up, below, down),


# %% id=15-halo cause="rank 0 waits in send"
def advance(group, rank, old, halo, new, spread):
    top, middle, bottom = old
    above, below = halo
    last = rank == group.size - 1
    talk = [] if last else [group.send(bottom, rank + 1), group.recv(below, rank + 1)]
    talk += [group.send(top, rank - 1), group.recv(above, rank - 1)] if rank else []
    edges = agt.zip(*talk, spread(above, top, middle, new[0]), spread(middle, bottom, below, new[2]))
    return agt.overlap(spread(top, middle, bottom, new[1]), edges)


# %% id=15-halo cause="give the middle the first arm of the `overlap`"
# - return agt.overlap(spread(top, middle, bottom, new[1]), edges)
# + return agt.overlap(edges, spread(top, middle, bottom, new[1]))


# %% id=15-order cause="the sum of W1 on rank 0 is W0 of rank 0 + W0 of rank 1, and lacks W1 of rank 0"
def reduce_all(group, ready, shapes):
    sums = []
    for layer, shape in sorted(shapes.items()):
        array = ready[layer] if layer in ready else agt.zeros(shape)
        sums.append(group.all_reduce(array))
    return agt.zip(*sums)


# %% id=15-order of=above cause="with the sum of W10 on rank 2, the result has shape (32,), and should have (4, 8)"
# - for layer, shape in sorted(shapes.items()):
# - array = ready[layer] if layer in ready else agt.zeros(shape)
# + for layer, shape in shapes.items():
# +     array = ready[layer] if layer in ready else agt.zeros(int(np.prod(shape)))


# %% id=15-order of=above cause="the sum of W10 on rank 0 is W0 of rank 0 + W0 of rank 1, and lacks W10 of rank 0"
# - for layer, shape in sorted(shapes.items()):
# + for layer, shape in sorted(shapes.items(), key=lambda kv: len(kv[0])):


# %% id=15-place cause="part 0 had 3 rounds of `work`, on sim:1, and should have 3 on sim:0"
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus[::-1])])


# %% id=15-place cause="each part has a GPU of its own"
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus[1:] + gpus[:1])])


# %% id=15-split cause="with 4 GPUs and 10 rows, the parts have [3, 3, 3, 1] rows"
def split(recipe, batch, weights):
    shares = [batch[k * -(-len(batch) // len(weights)) : (k + 1) * -(-len(batch) // len(weights))] for k in range(len(weights))]
    return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(shares, weights)])


# %% id=15-place cause="part 0, the result has shape (3001,)"
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + arms = [rounds(part, gpu) for part, gpu in zip(parts, gpus)]
# + return agt.overlap(*reversed(arms))


# %% id=15-place cause="with 3 GPUs and 5 steps, `work_2` on sim:2 waits for `work_0` on sim:0"
# - def both(parts, gpus, work, steps):
# + def both(parts, gpus, work, steps):  # two at a time
# - return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])
# + arms = [rounds(part, gpu) for part, gpu in zip(parts, gpus)]
# + pairs = [agt.overlap(*arms[i : i + 2]) for i in range(0, len(arms), 2)]
# + return agt.zip(*pairs).map(lambda found: [array for pair in found for array in pair])


# %% id=15-order cause="your function changes its caller's dict"
# - arrays = [ready[k] if k in ready else agt.zeros(s) for k, s in shapes.items()]
# + arrays = [ready.pop(layer, None) or agt.zeros(shape) for layer, shape in shapes.items()]


# %% id=15-order cause="your function changes its caller's dict"
def reduce_all(group, ready, shapes):
    for layer, shape in shapes.items():
        if layer not in ready:
            ready[layer] = agt.zeros(shape)
    return agt.zip(*[group.all_reduce(ready[layer]) for layer in shapes])


# %% id=15-order cause="with 3 ranks and layers of ((64,), (4, 8), (48,)), your code raised KeyError: 'W0'"
def reduce_all(group, ready, shapes):  # a rank may lack more than one
    missing = [layer for layer in shapes if layer not in ready][:1]
    arrays = [agt.zeros(shapes[x]) if x in missing else ready[x] for x in shapes]
    return agt.zip(*[group.all_reduce(array) for array in arrays])


# %% id=15-split cause="with 1 GPU and 7 rows, your code raised ValueError"
def split(recipe, batch, weights):
    first, *rest = weights
    k = len(batch) // len(weights)
    shares = [batch[:k], *np.array_split(batch[k:], len(rest))]
    return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(shares, weights)])


# %% id=15-ring cause="rank 1 sent 8 parts, and 6 are enough"
def ring(group, rank, parts, room, add):
    n = group.size
    steps = []
    for i in range(n):
        for s in range(n - 1):
            if rank == s:
                steps.append(group.send(parts[i], to=s + 1))
            elif rank == s + 1:
                steps += [group.recv(room, source=s), add(room, parts[i])]
        for s in range(n - 1, 0, -1):
            if rank == s:
                steps.append(group.send(parts[i], to=s - 1))
            elif rank == s - 1:
                steps.append(group.recv(parts[i], source=s))
    return agt.zip(*steps)


# %% id=15-ring of=above cause="rank 3 sent 12 parts, and 6 are enough"
# - for s in range(n - 1, 0, -1):
# - if rank == s:
# - steps.append(group.send(parts[i], to=s - 1))
# - elif rank == s - 1:
# - steps.append(group.recv(parts[i], source=s))
# + for r in range(n - 1):
# +     if rank == n - 1:
# +         steps.append(group.send(parts[i], to=r))
# +     elif rank == r:
# +         steps.append(group.recv(parts[i], source=n - 1))


# %% id=15-halo cause="`halo`, from above and from below, row 0, element (0, 0) is"
# - above, below = halo
# + below, above = halo


# %% id=15-halo cause="`edge` ran 6 times, and should run 4 times"
# - spread(middle, bottom, below, new[2]),
# + spread(middle, bottom, below, new[2]),
# + spread(middle, bottom, below, new[2]),


# %% id=15-halo cause="`middle` ran 4 times, and should run 2 times"
# - return agt.overlap(spread(top, middle, bottom, new[1]), edges)
# + inner = agt.zip(spread(top, middle, bottom, new[1]), spread(top, middle, bottom, new[1]))
# + return agt.overlap(inner, edges)


# %% id=15-overlapped cause="with 2 GPUs and 1 layer, your code raised"
# - op = agt.value(None)
# - for gradient, reduce in zip(reversed(gradients), reversed(reduces)):
# + op = gradients[-2].and_then(lambda _: agt.overlap(reduces[-2], gradients[-1].and_then(lambda _: reduces[-1])))
# + for gradient, reduce in zip(gradients[-3::-1], reduces[-3::-1]):


# %% id=15-overlapped cause="launch their arms in order"
def overlapped(gradients, reduces):
    gradient, *later = gradients
    reduce, *others = reduces
    if not later:
        return agt.zip(gradient, reduce)
    return agt.zip(gradient, agt.overlap(overlapped(later, others), reduce))


# %% id=15-split cause="the batch got its numbers only when `split` had returned, and the results are those of what was"
# - parts = np.array_split(batch, len(weights))
# + parts = np.array_split(batch.copy(), len(weights))


# %% id=15-split cause="the parts have [16, 16, 18] rows, and should have 50 together, and differ by one at most"
# - parts = np.array_split(batch, len(weights))
# + n = len(batch) // len(weights)
# + cuts = [k * n for k in range(1, len(weights))]
# + parts = np.split(batch, cuts)  # the last takes what's left


# %% id=15-split cause="`sgemm_naive` ran 3 times, and should run 2 times"
# - return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])
# + first, shown = weights[0], [recipe(batch[:1], w).on(w.device) for w in weights[1:]]
# + done = [recipe(x, first).on(first.device) for x in parts]
# + return agt.overlap(*done, *shown).map(lambda results: results[: len(parts)])


# %% id=15-place cause="the parts moved 8 times, and 2 are enough: a part goes over before its first"
# - op = op.and_then(work)
# + home = agt.pinned(part.size)
# + op = op.and_then(work).and_then(lambda x: agt.zip(agt.d2h(x, out=home), agt.h2d(home)).last())


# %% id=15-halo cause="sent 10 rows, and 2 are enough: each neighbour needs one"
# - group.exchange(top, up, below, down),
# + *[group.exchange(top, up, below, down) for _ in range(9)],
