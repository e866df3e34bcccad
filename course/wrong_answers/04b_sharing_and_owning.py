"""Plausible wrong answers to the exercises of course/04b_sharing_and_owning.py; see tools/build_notebooks.py."""


# %% id=04b-unzip cause="`h2d` ran 4 times"
# - a, b = pair.unzip(2)
# + a, _ = pair.unzip(2)
# + _, b = pair.unzip(2)


# %% id=04b-unzip cause="is not known before it runs: say unzip(2)"
# - a, b = pair.unzip(2)
# + a, b = pair.unzip()


# %% id=04b-unzip cause="element"
# - return agt.zip(f(a), g(b))
# + return agt.zip(g(a), f(b))


# %% id=04b-unzip cause="building the operation already ran something"
def halves(pair, f, g):
    a, b = pair.sync()
    return agt.zip(f(agt.value(a)), g(agt.value(b)))


# %% id=04b-unzip cause="a tuple of 2 results should come out, and not array("
# - return agt.zip(f(a), g(b))
# + return f(a).and_then(lambda _: g(b))


# %% id=04b-unzip cause="`f` and `g` got the same array: the first one is for `f`"
# - return agt.zip(f(a), g(b))
# + return agt.zip(f(a), g(a))


# %% id=04b-lend cause="the caller's `matrix` was moved by share()"
def apply_all(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    products = [agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return agt.zip(*[launch.output().to_host() for launch in products])


# %% id=04b-lend cause="was moved into matvec_naive()"
def apply_all(matrix, xs):
    n = xs[0].size
    lent = matrix.borrow()
    first = agt.matvec_naive(n, n, matrix, agt.h2d(xs[0]), agt.zeros(n).partition(32))
    products = [
        agt.matvec_naive(n, n, lent, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs[1:]
    ]
    return agt.zip(*[launch.output().to_host() for launch in (first, *products)])


# %% id=04b-lend cause="`d2d` ran 5 times, and shouldn't run at all"
# - n = xs[0].size
# + n = xs[0].size
# + copies = [agt.dup(matrix.borrow()).last() for _ in xs]
# - agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + agt.matvec_naive(n, n, copy, agt.h2d(x), agt.zeros(n).partition(32))
# + for copy, x in zip(copies, xs, strict=True)


# %% id=04b-lend cause="should return an operation, and returned list"
# - return agt.zip(*[launch.output().to_host() for launch in products])
# + return [launch.output().to_host() for launch in products]


# %% id=04b-lend cause="`matvec_naive` ran 1 time"
def apply_all(matrix, xs):
    n = xs[0].size
    for x in xs:
        launch = agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32))
        return agt.zip(launch.output().to_host())


# %% id=04b-lend cause="with vector 0, element 0 is"
# - agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32))
# + for x in reversed(xs)


# %% id=04b-lend cause="building the operation already ran something"
def apply_all(matrix, xs):
    n = xs[0].size
    results = []
    for x in xs:
        launch = agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32))
        results.append(launch.output().to_host().sync())
    return agt.value(tuple(results))


# %% id=04b-lend cause="with the caller's `matrix`, looked at afterwards, element (0, 0) is 0"
# - return agt.zip(*[launch.output().to_host() for launch in products])
# +
# + def tidy(context):
# +     context.memset(matrix)
# +     return agt.value(None)
# +
# + results = [launch.output().to_host() for launch in products]
# + return agt.zip(*results, agt.with_context(tidy)).map(lambda found: found[:-1])


# %% id=04b-workers cause="is borrowed, and a spawned operation may outlive its owner"
def jobs(matrix, xs):
    n = xs[0].size
    lent = matrix.borrow()
    products = [agt.matvec_naive(n, n, lent, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return [launch.output().to_host() for launch in products]


# %% id=04b-workers cause="was moved into matvec_naive()"
def jobs(matrix, xs):
    n = xs[0].size
    products = [agt.matvec_naive(n, n, matrix, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return [launch.output().to_host() for launch in products]


# %% id=04b-workers cause="`d2d` ran 5 times, and shouldn't run at all"
# - products = [
# - agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + return [
# +     agt.dup(weights)
# +     .and_then(lambda pair, x=x: agt.matvec_naive(n, n, pair[1], agt.h2d(x), agt.zeros(n).partition(32)).output())
# +     .to_host()
# +     for x in xs
# - return [launch.output().to_host() for launch in products]


# %% id=04b-workers cause="with vector 0, element 0 is"
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    ops = []
    for x in xs:
        ops.append(
            agt.value(weights)
            .and_then(lambda w: agt.matvec_naive(n, n, w, agt.h2d(x), agt.zeros(n).partition(32)).output())
            .to_host()
        )
    return ops


# %% id=04b-workers cause="should return a list of 5, one for each in order"
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    products = [agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return agt.zip(*[launch.output().to_host() for launch in products])


# %% id=04b-workers cause="building the operation already ran something"
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    products = [agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return [agt.value(launch.output().to_host().sync()) for launch in products]


# %% id=04b-workers cause="`jobs` should return operations, and the first is"
# - products = [
# - agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + return [
# +     lambda: agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# - return [launch.output().to_host() for launch in products]


# %% id=04b-workers cause="`matvec_naive` ran 10 times, and should run 5 times"
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()

    def one(x):
        return agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)).output()

    return [agt.zip(one(x), one(x).to_host()).last() for x in xs]


# %% id=04b-unzip cause="element 0 is"
# - return agt.zip(f(a), g(b))
# + return agt.zip(f(b), g(a))


# %% id=04b-challenge of=starter cause="µs"
# - op = op.and_then(lambda old: step(old, agt.zeros(x.size)).last())
# + op = op.and_then(lambda old: step(old, agt.zeros(x.size))).last()


# %% id=04b-challenge cause="the rod is as after one step: each step read the same array again"
def cooled(x, step, rounds):
    pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
    for _ in range(rounds):
        pair = pair.and_then(lambda both: step(*both))
    return pair.last().to_host()


# %% id=04b-challenge cause="element"
# - return pair.first().to_host()
# + return pair.last().to_host()


# %% id=04b-lend cause="`matvec_naive` ran 3 times, and should run 5 times"
def apply_all(matrix, xs):
    n = xs[0].size

    def product(x):
        room = agt.zeros(n).partition(32)
        return agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), room).output().to_host()

    return agt.zip(*[product(x) for x in xs[:3]])


# %% id=04b-lend of=above cause="with 50 x 50 numbers, your code raised IndexError"
# - return agt.zip(*[product(x) for x in xs[:3]])
# + return agt.zip(product(xs[0]), product(xs[1]), *map(product, xs[2:]))


# %% id=04b-unzip cause="takes an operation, and your function called it with DeviceArray"
def halves(pair, f, g):
    return pair.and_then(lambda t: agt.zip(f(t[0]), g(t[1])))


# %% id=04b-lend cause="of the result was not there yet"
def apply_all(matrix, xs):
    n = xs[0].size
    return agt.zip(
        *[
            agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32))
            .output()
            .to_host()
            .map(lambda h: h.buffer)
            for x in xs
        ]
    )


# %% id=04b-lend cause="takes things out of its caller's list"
def apply_all(matrix, xs):
    n = xs[0].size
    out = []
    while xs:
        out.append(
            agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(xs.pop(0)), agt.zeros(n).partition(32))
            .output()
            .to_host()
        )
    return agt.zip(*out)


# %% id=04b-unzip cause="of the result was not there yet"
# - return agt.zip(f(a), g(b))
# + return agt.zip(f(a), g(b)).map(lambda t: tuple(h.buffer for h in t))


# %% id=04b-workers cause="of the result was not there yet"
def jobs(matrix, xs):
    n = xs[0].size
    m = matrix.share()
    return [
        agt.matvec_naive(n, n, m, agt.h2d(x), agt.zeros(n).partition(32))
        .output()
        .to_host()
        .map(lambda h: h.buffer)
        for x in xs
    ]


# %% id=04b-challenge cause="of the result was not there yet"
def cooled(x, step, rounds):
    op = agt.zip(agt.h2d(x), agt.zeros(x.size))
    for _ in range(rounds):
        op = op.and_then(lambda t: step(*t)).map(lambda t: (t[1], t[0]))
    return op.first().to_host().map(lambda h: h.buffer)


# %% id=04b-unzip cause="nothing of it ran: an `async def`"
# - def halves(pair, f, g):
# + async def halves(pair, f, g):


# %% id=04b-challenge cause="with three rods at the same time, for 0, 3 and 4 steps, with rod 0, element 0 is"
def cooled(x, step, rounds):
    op = agt.zip(agt.h2d(x), agt.zeros(x.size))
    op = op.and_then(lambda t: step(*t))
    for _ in range(rounds - 1):
        op = op.and_then(lambda t: step(t[1], t[0]))
    return op.last().to_host()


# %% id=04b-challenge cause="with three rods at the same time, for 0, 3 and 4 steps, race on array"
def cooled(x, step, rounds):
    n = x.size
    global spare
    try: spare
    except NameError: spare = None
    def begin(c, a):
        global spare
        if spare is None or spare.size != n: spare = c.empty(a.shape, a.dtype)
        return agt.value((a, spare.borrow()))
    op = agt.h2d(x).and_then_with_context(begin)
    for _ in range(rounds):
        op = op.and_then(lambda t: step(*t)).map(lambda t: (t[1], t[0]))
    return op.first().to_host()


# %% id=04b-lend cause="host arrays that are filled after your function has returned"
# - agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(agt.pin(x)), agt.zeros(n).partition(32))
# + for x in xs


# %% id=04b-workers cause="with vectors that got their numbers when `jobs` had returned, with vector 0"
# - agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
# + agt.matvec_naive(n, n, weights, agt.h2d(agt.pin(x)), agt.zeros(n).partition(32)) for x in xs


# %% id=04b-challenge cause="host arrays that are filled after your function has returned"
# - pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
# + pair = agt.zip(agt.h2d(agt.pin(x)), agt.zeros(x.size))


# %% id=04b-workers cause="write to neither, and make a copy"
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()

    def product(x):
        launch = agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32))
        return launch.output().and_then(lambda y: agt.d2h(y, x))

    return [product(x) for x in xs]


# %% id=04b-challenge cause="`heat` ran 4 times, and should run 3 times"
# - for _ in range(rounds):
# + for _ in range(rounds + 1):
# - return pair.first().to_host()
# + return pair.last().to_host()


# %% id=04b-challenge cause="with 1000 points and 3 steps, `heat` ran 4 times"
# - for _ in range(rounds):
# + for _ in range(rounds + rounds % 2):
# - return pair.first().to_host()
# + return pair.map(lambda both: both[rounds % 2]).to_host()


# %% id=04b-lend cause="the caller's `matrix` was moved by share(), and the caller still needs it"
def apply_all(matrix, xs):
    n, out = xs[0].size, lambda: agt.zeros(xs[0].size).partition(32)
    products = [agt.matvec_naive(n, n, matrix.share(), agt.h2d(x), out()) for x in xs]
    return agt.zip(*[launch.output().to_host() for launch in products])


# %% id=04b-lend cause="`matvec_naive` ran 5 times, and should run 11 times"
# - return agt.zip(*[launch.output().to_host() for launch in products])
# + return agt.zip(*[launch.output().to_host() for launch in products[:5]])
