"""Plausible wrong answers to the exercises of course/04_combinators.py; see tools/build_notebooks.py."""


# %% id=04-baton cause="`h2d` ran 2 times"
def residual(x, add):
    n = x.size
    launch = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
    original, positive = launch.first(), launch.last().unpartition()
    total = add(n, original, positive, agt.zeros(n).partition(256))
    return total.output().to_host()


# %% id=04-baton cause="element"
def residual(x, add):
    n = x.size
    positive = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256)).output()
    return (
        positive.and_then(lambda h: add(n, h, h, agt.zeros(n).partition(256)).output())
        .to_host()
    )


# %% id=04-baton cause="where a DeviceOp is needed: wrap a plain value in agt.value(...)"
# - .map(lambda used: (used[0], used[1].unpartition()))
# + .and_then(lambda used: (used[0], used[1].unpartition()))


# %% id=04-baton cause="it describes work"
# - agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
# - .map(lambda used: (used[0], used[1].unpartition()))
# - .and_then(lambda arrays: add(n, *arrays, agt.zeros(n).partition(256)).output())
# + agt.h2d(x)
# + .map(lambda array: agt.relu(n, array, agt.zeros(n).partition(256)))
# + .and_then(lambda used: add(n, used[0], used[1].unpartition(), agt.zeros(n).partition(256)).output())


# %% id=04-baton cause="building the operation already ran something"
def residual(x, add):
    n = x.size
    there, blocks = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256)).sync()
    total = add(n, there, blocks.unpartition(), agt.zeros(n).partition(256))
    return total.output().to_host()


# %% id=04-baton cause="a NumPy array should come out"
# - .and_then(lambda arrays: add(n, *arrays, agt.zeros(n).partition(256)).output())
# - .to_host()
# + .and_then(lambda arrays: add(n, *arrays, agt.zeros(n).partition(256)))
# + .and_then(lambda used: agt.d2h(used[2].unpartition()))
# + .map(lambda host: [host])


# %% id=04-saxpy cause="building the operation already ran something"
# - launch = saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))
# + x_there = agt.h2d(x).sync()
# + y_there = agt.h2d(y).sync()
# + launch = saxpy(x.size, a, x_there, y_there.partition(256))


# %% id=04-saxpy cause="element 0 is"
# - return launch.output().to_host()
# + return launch.first().to_host()


# %% id=04-saxpy cause="`h2d` ran 1 time"
# - launch = saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))
# + launch = saxpy(x.size, a, agt.h2d(x), agt.zeros(y.size).partition(256))


# %% id=04-saxpy cause="saxpy() does not know how many threads to start: partition the output"
def async_saxpy(saxpy, a, x, y):
    launch = saxpy(x.size, a, agt.h2d(x), agt.h2d(y))
    return launch.last().to_host()


# %% id=04-saxpy cause="a NumPy array should come out, and not <DeviceArray"
# - return launch.output().to_host()
# + return launch.output()


# %% id=04-saxpy cause="`saxpy` ran 2 times"
# - return launch.output().to_host()
# + return launch.and_then(lambda used: saxpy(x.size, a, *used)).last().unpartition().to_host()


# %% id=04-zip-or-overlap cause="is made to wait for `a`"
def side_by_side(a, b, join):
    return join(a, b)


# %% id=04-zip-or-overlap cause="`join` ran 0 times"
def side_by_side(a, b, join):
    return agt.overlap(a, b).map(lambda arrays: join(*arrays))


# %% id=04-zip-or-overlap cause="building the operation already ran something"
def side_by_side(a, b, join):
    one, two = agt.create_stream(), agt.create_stream()
    p, q = a.async_on(one), b.async_on(two)
    one.synchronize()
    two.synchronize()
    return join(p, q)


# %% id=04-zip-or-overlap cause="element 0 is"
def side_by_side(a, b, join):
    return agt.overlap(a, b).and_then(lambda arrays: join(*reversed(arrays)))


# %% id=04-zip-or-overlap cause="`a` ran 2 times"
def side_by_side(a, b, join):
    return agt.overlap(a, b).and_then(lambda _: join(a, b))


# %% id=04-diamond cause="`left` and `right` both ran on stream"
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + return join(left(s), right(s))


# %% id=04-diamond cause="`h2d` ran 2 times"
def diamond(source, left, right, join):
    return agt.overlap(left(source), right(source)).and_then(lambda both: join(*both))


# %% id=04-diamond cause="element 0 is"
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + return agt.overlap(right(s), left(s)).and_then(lambda both: join(*both))


# %% id=04-diamond cause="join() missing 1 required positional argument"
def diamond(source, left, right, join):
    source = source.shared()
    return agt.overlap(left(source), right(source)).and_then(lambda results: join(results))


# %% id=04-diamond cause="`join` ran 0 times"
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + return agt.overlap(left(s), right(s)).map(lambda both: join(*both))


# %% id=04-diamond cause="building the operation already ran something"
# - s = source.shared()
# + s = agt.value(source.sync().share())


# %% id=04-diamond cause="`left` ran 2 times"
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + return agt.overlap(left(s), right(s)).and_then(lambda both: join(left(s), both[1]))


# %% id=04-loop cause="a tuple of 4 results should come out, and not one of 1"
def all_scaled(x, factors, scaled):
    ops = []
    for factor in factors:
        ops.append(agt.h2d(x).and_then(lambda array, factor=factor: scaled(array, factor)).to_host())
        return agt.zip(*ops)


# %% id=04-loop cause="all were scaled by 5.0, the last factor"
def all_scaled(x, factors, scaled):
    ops = [agt.h2d(x).and_then(lambda array: scaled(array, f)).to_host() for f in factors]
    return agt.zip(*ops)


# %% id=04-loop cause="with factor 1, element 0 is"
# - def one(factor):
# + def one(factor=factors[0]):
# - return agt.zip(*[one(factor) for factor in factors])
# + return agt.zip(*[one() for factor in factors])


# %% id=04-loop cause="building the operation already ran something"
def all_scaled(x, factors, scaled):
    results = []
    for factor in factors:
        op = agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()
        results.append(op.sync())
    return agt.value(tuple(results))


# %% id=04-loop cause="should return an operation, and returned list"
def all_scaled(x, factors, scaled):
    return [agt.h2d(x).and_then(lambda array, f=f: scaled(array, f)).to_host() for f in factors]


# %% id=04-loop cause="a tuple of 4 results should come out, and not array("
def all_scaled(x, factors, scaled):
    for factor in factors:
        return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()


# %% id=04-loop cause="`scale` ran 0 times"
def all_scaled(x, factors, scaled):
    return agt.zip(*[agt.value(factor * x) for factor in factors])


# %% id=04-baton cause="element 0 is"
# - n = x.size
# + n = x.size
# + x += 1
# + launch = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
# - agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
# - .map(lambda used: (used[0], used[1].unpartition()))
# + launch.map(lambda used: (used[0], used[1].unpartition()))


# %% id=04-zip-or-overlap cause="was called while operation 'with_context' is being submitted"
def side_by_side(a, b, join):
    def enqueue(context):
        one, two = agt.create_stream(), agt.create_stream()
        return join(a.async_on(one), b.async_on(two))

    return agt.with_context(enqueue)


# %% id=04-diamond cause="`right` (stream"
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + first = left(s).shared()
# + return agt.overlap(first, agt.zip(first, right(s)).last()).and_then(lambda both: join(*both))


# %% id=04-challenge cause="it's right, but it takes"
def filtered(picture, filters, join):
    source = agt.h2d(picture).shared()
    f0, f1, f2, f3 = [f(source) for f in filters]
    return join(join(f0, f1), join(f2, f3)).to_host()


# %% id=04-challenge cause="element 0 is"
# - return arms.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()
# + return arms.and_then(lambda r: join(r[0], r[1])).to_host()


# %% id=04-challenge cause="building the operation already ran something"
# - source = agt.h2d(picture).shared()
# + source = agt.value(agt.h2d(picture).sync().share())


# %% id=04-loop cause="with factor 0, element 0 is"
# - return agt.zip(*[one(factor) for factor in factors])
# + return agt.zip(*[one(factor) for factor in sorted(factors)])


# %% id=04-saxpy cause="`d2d` ran 1 time, and shouldn't run at all"
# - return launch.output().to_host()
# + return launch.output().and_then(agt.dup).last().to_host()


# %% id=04-baton cause="`d2d` ran 1 time, and shouldn't run at all"
def residual(x, add):
    n = x.size

    def both(pair):
        positive = agt.relu(n, pair[0], agt.zeros(n).partition(256)).output()
        return positive.and_then(lambda p: add(n, pair[1], p, agt.zeros(n).partition(256)).output())

    return agt.h2d(x).and_then(agt.dup).and_then(both).to_host()


# %% id=04-challenge cause="and should be 768"
def filtered(picture, filters, join):
    global kept
    try:
        kept
    except NameError:
        kept = agt.h2d(picture).shared()
    return (
        agt.overlap(*[f(kept) for f in filters])
        .and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3])))
        .to_host()
    )


# %% id=04-loop cause="a tuple of 4 results should come out"
def all_scaled(x, factors, scaled):
    return agt.zip(
        *[
            agt.h2d(x).and_then(lambda a, f=f: scaled(a, f)).to_host()
            for f in dict.fromkeys(factors)
        ]
    )


# %% id=04-loop of=above cause="of the result was not there yet"
# - agt.h2d(x).and_then(lambda a, f=f: scaled(a, f)).to_host()
# - for f in dict.fromkeys(factors)
# + agt.h2d(x).and_then(lambda a, f=f: scaled(a, f)).to_host().map(lambda h: h.buffer)
# + for f in factors


# %% id=04-challenge cause="of the result was not there yet"
def filtered(picture, filters, join):
    s = agt.h2d(picture).shared()
    return (
        agt.overlap(*[f(s) for f in filters])
        .and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3])))
        .to_host()
        .map(lambda h: h.buffer)
    )


# %% id=04-diamond cause="takes an operation, and your function called it with DeviceArray"
def diamond(source, left, right, join):
    def go(a):
        return agt.overlap(left(a), right(a)).and_then(lambda t: join(*t))

    return source.share().and_then(go)


# %% id=04-challenge cause="takes an operation, and your function called it with DeviceArray"
def filtered(picture, filters, join):
    def go(a):
        return agt.overlap(*[f(a) for f in filters]).and_then(
            lambda r: join(join(r[0], r[1]), join(r[2], r[3]))
        )

    return agt.h2d(picture).share().and_then(go).to_host()


# %% id=04-challenge cause="takes things out of its caller's list"
def filtered(picture, filters, join):
    s = agt.h2d(picture).shared()
    ops = [filters.pop(0)(s) for _ in range(4)]
    return agt.overlap(*ops).and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()


# %% id=04-saxpy cause="of the result was not there yet"
def async_saxpy(saxpy, a, x, y):
    n = x.size
    return (
        saxpy(n, a, agt.h2d(x), agt.h2d(y).partition(256))
        .output()
        .to_host()
        .map(lambda h: h.buffer)
    )


# %% id=04-saxpy cause="and should be 4.84162"
def async_saxpy(saxpy, a, x, y):
    n = x.size
    c = globals().setdefault("saxpy_cache", {})
    if n not in c:
        c[n] = saxpy(n, a, agt.h2d(x), agt.h2d(y).partition(256)).output().to_host()
    return c[n]


# %% id=04-saxpy cause="building the operation already ran something"
def async_saxpy(saxpy, a, x, y):
    n = x.size
    agt.synchronize()
    return saxpy(n, a, agt.h2d(x), agt.h2d(y).partition(256)).output().to_host()


# %% id=04-baton cause="of the result was not there yet"
def residual(x, add):
    n = x.size
    u = agt.h2d(x).shared()
    p = agt.relu(n, u, agt.zeros(n).partition(256)).output()
    return add(n, u, p, agt.zeros(n).partition(256)).output().to_host().map(lambda h: h.buffer)


# %% id=04-baton cause="nothing of it ran: an `async def`"
async def residual(x, add):
    n = x.size
    u = agt.h2d(x).shared()
    p = agt.relu(n, u, agt.zeros(n).partition(256)).output()
    return add(n, u, p, agt.zeros(n).partition(256)).output().to_host()


# %% id=04-saxpy cause="after your function has returned, and another of its operations run first, element 0 is"
def async_saxpy(saxpy, a, x, y):
    n = x.size
    async_saxpy.a = a
    return agt.with_context(
        lambda c: saxpy(n, async_saxpy.a, agt.h2d(x), agt.h2d(y).partition(256)).output().to_host()
    )


# %% id=04-loop cause="with the factors [-1.0, 0.0, 0.5], with factor 1, element 0 is"
# - return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()
# + return agt.h2d(x).and_then(lambda array: scaled(array, factor or 1.0)).to_host()


# %% id=04-loop cause="with the factors [0.25], your code raised ValueError"
# - return agt.zip(*[one(factor) for factor in factors])
# + first, second, *others = factors
# + return agt.zip(one(first), one(second), *map(one, others))


# %% id=04-loop cause="host arrays that are filled after your function has returned"
# - return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()
# + return agt.h2d(agt.pin(x)).and_then(lambda array: scaled(array, factor)).to_host()


# %% id=04-baton cause="host arrays that are filled after your function has returned"
# - n = x.size
# + n, x = x.size, agt.pin(x)


# %% id=04-saxpy cause="or in an earlier result: write to neither"
kept = {}


def async_saxpy(saxpy, a, x, y):
    out = kept.setdefault(x.size, agt.pinned(x.size))
    launch = saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))
    return launch.output().and_then(lambda there: agt.d2h(there, out))


# %% id=04-saxpy cause="or in an earlier result: write to neither"
# - return launch.output().to_host()
# + return launch.output().and_then(lambda there: agt.d2h(there, y))


# %% id=04-challenge cause="host arrays that are filled after your function has returned"
# - source = agt.h2d(picture).shared()
# + source = agt.h2d(agt.pin(picture)).shared()


# %% id=04-challenge cause="`filter0` ran 0 times, and should run once"
def filtered(picture, filters, join):
    source = agt.h2d(picture).shared()
    arms = agt.overlap(filters[1](source), filters[2](source))

    def all_four(r):
        half = join(r[0].borrow(), r[1].borrow())
        return join(half, join(r[0].borrow(), r[1].borrow()))

    return arms.and_then(all_four).to_host()


# %% id=04-challenge cause="(so it shows which were added first), element 0 is 1050, and should be 1024"
# - return arms.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()
# + return arms.and_then(lambda r: join(join(join(r[0], r[1]), r[2]), r[3])).to_host()


# %% id=04-challenge cause="element 0 is 1066, and should be 1024"
# - return arms.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()
# + return arms.and_then(lambda r: join(join(r[0], r[2]), join(r[1], r[3]))).to_host()


# %% id=04-challenge cause="with filters that multiply the sums of rows by [1, 100000000, 40, -100000000]"
# - return arms.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()
# + return arms.and_then(lambda r: join(r[0], join(r[1], join(r[2], r[3])))).to_host()


# %% id=04-baton cause="is used here on another device, called sim:0"
MADE = {}


def residual(x, add):
    n = x.size
    if n not in MADE:
        there = agt.h2d(x).shared()
        positive = agt.relu(n, there, agt.zeros(n).partition(256)).output()
        MADE[n] = add(n, there, positive, agt.zeros(n).partition(256)).output().to_host()
    return MADE[n]


# %% id=04-baton cause="`output` belongs to a launch: write `.output()` right behind the call"
def residual(x, add):
    n = x.size
    launch = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
    pair = launch.map(lambda used: (used[0], used[1].unpartition()))
    return pair.and_then(lambda xp: add(n, *xp, agt.zeros(n).partition(256))).output().to_host()


# %% id=04-loop cause="a tuple of 11 results should come out, and not one of 5"
def all_scaled(x, factors, scaled):
    return agt.zip(*[agt.h2d(x).and_then(lambda a, f=f: scaled(a, f)).to_host() for f in factors[:5]])


# %% id=04-loop cause="the functions in your loop look its variable up when they are called"
def all_scaled(x, factors, scaled):
    return agt.zip(*[agt.h2d(x).and_then(lambda a: scaled(a, k)).to_host() for k in factors])


# %% id=04-zip-or-overlap cause="async_on() was called while operation 'with_context' is being submitted"
def side_by_side(a, b, join):
    stream = agt.create_stream()

    def enqueue(context):
        p = a.async_on(stream)
        return b.and_then(lambda q: join(p, q))

    return agt.with_context(enqueue)
