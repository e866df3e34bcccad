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


# %% id=04b-unzip cause="takes an operation, and your function called it with DeviceArray"
def halves(pair, f, g):
    return pair.and_then(lambda t: agt.zip(f(t[0]), g(t[1])))


# %% id=04b-unzip cause="of the result was not there yet"
# - return agt.zip(f(a), g(b))
# + return agt.zip(f(a), g(b)).map(lambda t: tuple(h.buffer for h in t))


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


# %% id=04b-challenge cause="host arrays that are filled after your function has returned"
# - pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
# + pair = agt.zip(agt.h2d(agt.pin(x)), agt.zeros(x.size))


# %% id=04b-challenge cause="`step` ran 21 times, and should run 20 times"
# - for _ in range(rounds):
# + for _ in range(rounds + 1):
# - return pair.first().to_host()
# + return pair.last().to_host()


# %% id=04b-challenge cause="with 1000 points and 3 steps, `step` ran 4 times"
# - for _ in range(rounds):
# + for _ in range(rounds + rounds % 2):
# - return pair.first().to_host()
# + return pair.map(lambda both: both[rounds % 2]).to_host()


# %% id=04b-lend cause="was moved into matvec_naive(). Use what that operation returns"
# - matrix = matrix.share()


# %% id=04b-lend cause="is borrowed, and a spawned operation may outlive its owner"
# - matrix = matrix.share()
# - times(matrix, agt.ones(n)),
# - times(matrix, agt.full(n, 2)),
# + times(matrix.borrow(), agt.ones(n)),
# + times(matrix.borrow(), agt.full(n, 2)),


# %% id=04b-lend cause="`v` was moved by share(), and its owner still needs it"
# - matrix = matrix.share()
# + matrix, v = matrix.share(), v.share()
# - times(matrix, v.borrow()),
# - twice(agt.dup(v.borrow()).last()),
# + times(matrix, v),
# + twice(agt.dup(v).last()),


# %% id=04b-lend cause="`v` was moved into dup(), and its owner still needs it"
# - twice(agt.dup(v.borrow()).last()),
# + twice(agt.dup(v).last()),


# %% id=04b-lend cause="`v` was lent to an operation that writes, so its owner finds other numbers in it"
# - twice(agt.dup(v.borrow()).last()),
# + twice(v.borrow()),


# %% id=04b-lend cause="`v` was lent to an operation that writes"
# - twice(agt.dup(v.borrow()).last()),
# + twice(agt.dup(v.borrow()).first()),


# %% id=04b-lend cause="shared arrays are for reading"
# - twice(draft),
# + twice(draft.share()),


# %% id=04b-lend cause="(or h2d itself, if it is not needed here any more)"
# - twice(draft),
# + twice(draft.borrow()),


# %% id=04b-lend cause="`d2d` ran 2 times, and 1 would do: copy only what"
# - twice(draft),
# + twice(agt.dup(draft).last()),


# %% id=04b-lend cause="`d2d` ran 3 times, and 1 would do: copy only what"
# - times(matrix, agt.ones(n)),
# - times(matrix, agt.full(n, 2)),
# + times(agt.dup(matrix).last(), agt.ones(n)),
# + times(agt.dup(matrix).last(), agt.full(n, 2)),


# %% id=04b-lend cause="a result was read before the device was done with it"
# - twice(agt.dup(v.borrow()).last()),
# + twice(agt.d2h(v.borrow()).and_then(agt.h2d)),


# %% id=04b-lend cause="building the operation already ran something"
# - twice(agt.dup(v.borrow()).last()),
# + twice(agt.dup(v.borrow()).last().sync()),


# %% id=04b-lend cause="should return a list of 5, one for each in order"
# - return [
# + return agt.zip(
# - ]
# + )


# %% id=04b-lend cause="with order 3, element 0 is"
# - twice(agt.dup(v.borrow()).last()),
# + agt.dup(v.borrow()).last().to_host(),


# %% id=04b-lend cause="with order 1, element 0 is"
# - times(matrix, agt.full(n, 2)),
# + times(matrix, agt.ones(n)),


# %% id=04b-lend cause="`matvec_naive` ran 4 times"
# - times(matrix, v.borrow()),
# + agt.zip(times(matrix, v.borrow()), times(matrix, v.borrow())).last(),


# %% id=04b-lend cause="`orders` should return operations, and the first is a function"
# - times(matrix, agt.ones(n)),
# + lambda: times(matrix, agt.ones(n)),


# %% id=04b-lend cause="of the result was not there yet"
# - twice(draft),
# + twice(draft).map(lambda h: h.buffer),


# %% id=04b-lend cause="nothing of it ran: an `async def`"
# - def orders(matrix, v, draft, times, twice):
# + async def orders(matrix, v, draft, times, twice):


# %% id=04b-challenge cause="3 arrays were made on the device, and 2 are enough: write where nobody"
# - pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
# + pair = agt.zip(agt.h2d(x), agt.zeros(x.size), agt.zeros(x.size))
# - pair = pair.and_then(lambda both: step(*both)).map(lambda both: (both[1], both[0]))
# + pair = pair.and_then(lambda t: step(t[0], t[1]).map(lambda both: (both[1], t[2], both[0])))


# %% id=04b-challenge cause="`step` ran 0 times"
# - pair = pair.and_then(lambda both: step(*both)).map(lambda both: (both[1], both[0]))
# + i, grid = "int i = blockIdx.x; ", {"grid": x.size, "block": 1}
# + body = i + "d[i] = 0.5f * s[i] + 0.25f * (s[i ? i - 1 : 0] + s[i < n - 1 ? i + 1 : i]);"
# + heat = agt.Kernel(f'extern "C" __global__ void heat(int n, const float* s, float* d) {{{body}}}')
# + pair = pair.and_then(lambda t: heat(x.size, *t, **grid)).map(lambda t: t[::-1])


# %% id=04b-lend cause="106 arrays were made on the device, and 6 are enough: make only what"
# - times(matrix, agt.ones(n)),
# + agt.zip(*[agt.empty((n, n)) for _ in range(100)]).and_then(lambda _: times(matrix, agt.ones(n))),


# %% id=04b-lend cause="`d2h` ran 6 times, and 5 would do: copy only what"
# - return [
# + host = agt.pinned((n, n))
# + other = agt.zip(agt.d2h(matrix, out=host), agt.h2d(host)).last()
# + return [
# - times(matrix, agt.full(n, 2)),
# + other.and_then(lambda other: times(other, agt.full(n, 2))),


# %% id=04b-lend cause="a kernel changed `v`, and another one changed it back"
# - def orders(matrix, v, draft, times, twice):
# + half = agt.Kernel('extern "C" __global__ void half(float* x) { x[blockIdx.x] *= 0.5f; }')
# +
# + def orders(matrix, v, draft, times, twice):
# - twice(agt.dup(v.borrow()).last()),
# + agt.zip(twice(v.borrow()), half(v.borrow(), grid=n, block=1)).first(),


# %% id=04b-challenge cause="take 1,200,000 bytes, and 800,000 are enough: write where nobody"
# - def cooled(x, step, rounds):
# -     pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
# + cut = agt.Kernel('extern "C" __global__ void cut(float* x, const float* y) { x[blockIdx.x] = y[blockIdx.x]; }')
# +
# + def cooled(x, step, rounds):
# +     pair = agt.zip(agt.h2d(x), agt.zeros(2 * x.size))
# - return pair.first().to_host()
# + if rounds % 2:
# +     pair = pair.and_then(lambda t: cut(t[1], t[0], grid=x.size, block=1))
# + return pair.first().to_host()
