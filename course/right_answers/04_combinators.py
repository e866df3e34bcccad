"""Right answers to exercises of course/04_combinators.py in other forms than the solution's."""


# %% id=04-loop
def all_scaled(x, factors, scaled):
    return agt.zip(
        *[agt.h2d(x).and_then(lambda array, f=f: scaled(array, f)).to_host() for f in factors]
    )


# %% id=04-baton
def residual(x, add):
    n = x.size

    def both(array):
        positive = agt.relu(n, array.borrow(), agt.zeros(n).partition(64)).output()
        return positive.and_then(lambda p: add(n, array, p, agt.zeros(n).partition(64)).output())

    return agt.h2d(x).and_then(both).to_host()


# %% id=04-baton
def residual(x, add):
    n = x.size
    there = agt.h2d(x).shared()
    positive = agt.relu(n, there, agt.zeros(n).partition(256)).output()
    both = agt.overlap(there, positive)
    return both.and_then(lambda xs: add(n, *xs, agt.zeros(n).partition(256)).output()).to_host()


# %% id=04-saxpy
def async_saxpy(saxpy, a, x, y):
    x_there, y_there = agt.overlap(agt.h2d(x), agt.h2d(y)).unzip()
    return saxpy(x.size, a, x_there, y_there.partition(256)).output().to_host()


# %% id=04-zip-or-overlap
side_by_side = lambda a, b, join: agt.overlap(b.named("mine"), a).and_then(
    lambda got: join(got[1], got[0])
)


# %% id=04-diamond
# - return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))
# + sides = agt.overlap(right(s).named("mine"), left(s), agt.value(0))
# + return sides.and_then(lambda found: join(found[1], found[0]))
