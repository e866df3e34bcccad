"""Right answers to exercises of course/04b_sharing_and_owning.py in other forms than the solution's."""


# %% id=04b-unzip
def halves(pair, f, g):
    s = pair.shared()
    return agt.overlap(f(s.map(lambda p: p[0])), g(s.map(lambda p: p[1])))


# %% id=04b-lend
def orders(matrix, v, draft, times, twice):
    n, weights, lent = v.size, matrix.share(), v.borrow()
    copied = agt.zeros(n).and_then(lambda room: agt.memcpy(room, lent)).first()
    rows = [times(weights.share(), agt.full(n, k)).named("rows") for k in (1, 2)]
    return (*rows, times(weights, v.borrow()), copied.and_then(twice), agt.value(draft).and_then(twice))


# %% id=04b-lend
# - def orders(matrix, v, draft, times, twice):
# + DOUBLE = """extern "C" __global__ void into(float* x, float* y) { y[blockIdx.x] = 2 * x[blockIdx.x]; }"""
# +
# + def orders(matrix, v, draft, times, twice):  # a kernel reads the loan, and writes elsewhere
# - twice(agt.dup(v.borrow()).last()),
# + agt.Kernel(DOUBLE)(v.borrow(), agt.empty(n).partition(1)).last().unpartition().to_host(),


# %% id=04b-challenge
def cooled(x, step, rounds):
    """All steps are described when the arrays are there, of which one has nothing in it yet."""

    def enqueue(arrays):
        op = agt.value(arrays)
        for _ in range(rounds):
            op = op.and_then(lambda both: step(*both)).map(lambda both: both[::-1])
        return op.first()

    room = agt.with_context(lambda context: agt.value(context.empty(x.shape, x.dtype)))
    return agt.zip(agt.h2d(x), room).and_then(enqueue).to_host()


# %% id=04b-unzip
def halves(pair, f, g):
    def both(arrays):
        return agt.overlap(f(agt.value(arrays[0])), g(agt.value(arrays[1]))).map(list)

    return pair.and_then(both)
