"""Source of notebooks/04_combinators.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Combinators: large operations from small ones
#
# Three streams, and an arrow wherever one of them waits for another. Nobody wrote a line for any of it. **So who drew the arrows?**
#
# After this page you can put stages into a chain, put results together and take them apart again, run two things at the same time, use one result in two places without a race, and
# choose whether to give an array away, to share it, or to lend it.
#
# | | |
# |---|---|
# | Time | 70 minutes |
# | You need | [03_lazy_operations](03_lazy_operations.ipynb) |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution, solved

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Who drew the arrows?
#
# A large matrix is copied to the device. Two products are computed with it. In the end the two are added. These are the bricks: two kernels of ours, and one operation for each
# product. (`agt.matvec_naive(rows, columns, matrix, vector, out)` is a kernel of the package. `partition(128)` cuts `out` into pieces for blocks of 128 threads; any size would do here.)

# %% id=bricks
scale = agt.Kernel(r"""
extern "C" __global__ void scale(unsigned int n, float factor, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = factor * x[i];
    }
}
""")

add = agt.Kernel(r"""
extern "C" __global__ void add(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = x[i] + y[i];
    }
}
""")

N = 2048
matrix = agt.pin(np.eye(N, dtype=np.float32))


def product(matrix, number):
    """The matrix times a vector that is full of `number`."""
    vector, out = agt.full(N, number), agt.zeros(N).partition(128)
    return agt.matvec_naive(N, N, matrix, vector, out).output()


def total(p, q):
    return add(N, p, q, agt.zeros(N).partition(256)).output()


# %% [markdown] id=question-text
# And this is what happens when the finished program runs. (Its middle part stays hidden for now.)

# %% id=question-run
def watch(make):
    """What happens when the operation runs. It runs twice: on a real GPU the first time is slow."""
    make().sync()
    op = make()
    with agt.record() as trace:
        op.sync()
    return trace


def finished():
    hidden = solved("04-diamond")
    return hidden(
        agt.h2d(matrix), lambda m: product(m, 2.0), lambda m: product(m, 3.0), total
    )


diamond = watch(finished)
diamond.plot(
    title="One copy, two products, one sum",
    lanes=("host", "streams"),
    lesson="One copy; then two products side by side on two streams; then their sum, after both.",
)

# %% [markdown] id=question-read
# Read it from left to right. One copy. Then two products at the same time, on two streams. Then the sum, and not before both are done. The arrows are events: where there is one, a stream waits for
# another.
#
# Now for the strange part. **The author of this program created no stream, recorded no event, and waited for nothing.** So who chose the streams? Who drew the arrows? And how can one be sure that
# none is missing?
#
# The author used **combinators**: functions that make one operation out of several. Before this page is over you will have written the hidden part yourself.

# %% id=question-check tags=asserts
(source_copy,) = diamond.find("h2d")
left, right = diamond.find("matvec_naive")
(join,) = diamond.find("add")
assert left.stream != right.stream
for early, late in [(source_copy, left), (source_copy, right), (left, join), (right, join)]:
    assert diamond.happens_before(early, late)
assert not diamond.happens_before(left, right)
if device.simulated:
    assert diamond.overlap_between(left, right) > 0

# %% [markdown] id=and-then
# ## And then?
#
# `op.and_then(f)` is `op`, followed by the operation that `f` returns. `f` is called with the result of `op`. Four stages in a chain:


# %% id=and-then-run
def scaled(array, factor):
    return scale(array.size, factor, array.partition(256)).output()


def times_six(x):
    return (
        agt.h2d(x)
        .and_then(lambda array: scaled(array, 2))
        .and_then(lambda array: scaled(array, 3))
        .and_then(agt.d2h)
    )


times_six(agt.pin(np.arange(6, dtype=np.float32))).sync()

# %% [markdown] id=and-then-read
# Copy it to the device, and then double it, and then triple it, and then copy it back. (`agt.d2h` takes an array and returns an operation, so it can stand there by itself. `op.to_host()` is short for
# `op.and_then(agt.d2h)`.)
#
# Here is such a chain with four megabytes. Two functions in it say their names, and the program says how far it has come.


# %% id=when-code
large = agt.pin(np.ones(1_000_000, np.float32))
said = []


def stage(name):
    def next_one(array):
        said.append(name)
        agt.work(10, name)  # a mark in the host's lane
        return scaled(array, 2)

    return next_one


def program(stream):
    op = agt.h2d(large).and_then(stage("f")).and_then(stage("g")).to_host()
    said.append("built")
    result = op.async_on(stream)
    said.append("submitted")
    stream.synchronize()
    said.append("done")
    return result


# %% id=predict-when
when = Prediction(
    "`program(stream)` runs. In which order are these said: `built`, `done`, `f`, `g`, `submitted`? "
    "Type the five words."
)
when

# %% id=predict-when-commit
when.commit(...)

# %% id=when-run
stream = agt.create_stream()
program(stream)  # a warm-up: on a real GPU the first time is slow
said.clear()
with agt.record() as chain:
    program(stream)

chain.plot(
    title="A chain of four",
    lanes=("host", "streams"),
    lesson="Both functions have run long before the copy ends. The first kernel waits for the copy.",
)

# %% id=reveal-when
(copy,) = chain.find("h2d")
(g,) = chain.find("g")
when.reveal(" ".join(said), f"`g` ran after {g.start:.0f} µs, and the copy ended after {copy.end:.0f} µs.")

# %% [markdown] id=when-read
# Building says nothing: it only describes. Running the chain calls `f` and `g` at once, and neither waits for the device. They get a **handle**: the name of an array that nothing has been written to yet. That is
# enough for describing what comes next. So the whole chain is in the queue early. Behind a long copy like this one, the device never has to wait for Python between two stages. (Where each stage takes less
# time than Python needs for a call, the device waits all the same, because then no queue ever fills up.)
#
# Why does the kernel not start too early, then? Because all stages of a chain are on *one* stream, and a stream keeps its order. There is no event in this picture, and none is needed.

# %% id=when-check tags=asserts
assert said == ["built", "f", "g", "submitted", "done"]
assert len(chain.streams) == 1
assert [span.name for span in chain.device_spans] == ["h2d", "scale", "scale", "d2h"]
assert chain.runs_before("h2d", "scale")
assert chain.runs_before("scale", "d2h")
if device.simulated:
    assert max(span.end for span in chain if span.kind == "call") < copy.end

# %% [markdown] id=loop
# ## Three in a loop
#
# Three operations, built in a loop. Each makes four numbers and scales them.

# %% id=loop-build
ops = []
for factor in (2, 3, 5):
    ops.append(agt.full(4, factor).and_then(lambda array: scaled(array, factor)).to_host())

# %% id=predict-loop
loop = Prediction("Now we run the three. What is the first number of each result? Type three numbers.")
loop

# %% id=predict-loop-commit
loop.commit(...)

# %% id=loop-run
firsts = [round(float(op.sync()[0])) for op in ops]
firsts

# %% id=reveal-loop
loop.reveal(" ".join(map(str, firsts)), "They were filled with 2, 3 and 5, and all of them scaled by 5.")

# %% [markdown] id=misconception-loop
# > **Misconception: a lambda keeps the value that a variable had when it was written.**
# >
# > - *What you see:* operations from a loop all do what the last one should do.
# > - *Why:* `agt.full(4, factor)` is called in the loop, and gets the number that `factor` is. `lambda array: scaled(array, factor)` knows only the *name*, and looks it up when it is called: when the operation
# >   runs. By then the loop is over, and `factor` is 5. This is Python's own rule.
# > - *What helps:* a function with `factor` as a parameter. Each call of it has a `factor` of its own.

# %% id=loop-cure
def squared(factor):
    return agt.full(4, factor).and_then(lambda array: scaled(array, factor)).to_host()


[round(float(squared(factor).sync()[0])) for factor in (2, 3, 5)]

# %% [markdown] id=exercise-loop
# ### Exercise: mend the loop
#
# `all_scaled(x, factors, scaled)` is to be one operation that yields a tuple: for each of the factors, `x` scaled by that factor, on the host. As it stands, all of them are scaled by the last one. (The function
# `scaled(array, factor)` works in place. `agt.zip` makes one operation of several; you get to know it below.)


# %% id=04-loop starter
def all_scaled(x, factors, scaled):
    ops = []
    for factor in factors:
        ops.append(agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host())
    return agt.zip(*ops)


# %% id=04-loop solution
def all_scaled(x, factors, scaled):
    def one(factor):
        return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()

    return agt.zip(*[one(factor) for factor in factors])

# %% id=04-loop hints
# The lambda is called when the operation runs. Which `factor` does it find then?
#
# Give each operation a `factor` of its own: put the body of the loop into a function with that parameter.
#
# `def one(factor): return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()`, and then `agt.zip(*[one(factor) for factor in factors])`.

# %% id=04-loop explanation
# Each operation has a factor of its own now. People do it in three ways: a function with a parameter, a default (`lambda array, factor=factor: ...`), or
# `functools.partial`.

# %% id=04-loop-check
check("04-loop", all_scaled)

# %% [markdown] id=baton
# ## The baton
#
# A chain is a **relay race**. Each runner starts when the one before arrives, and knows only what is put into their hand. That is the baton: *the result of the stage before*, and nothing else. An array that is
# not in the baton is lost for every later stage.
#
# What is in the baton after a kernel? Every array that the kernel was given:

# %% id=baton-launch
launch = add(6, agt.arange(6), agt.ones(6), agt.zeros(6).partition(256))
x, y, z = launch.sync()
print(x, y, z, sep="\n")

# %% [markdown] id=baton-launch-read
# Three arrays went in, and three come out, in the order of the parameters and in the form in which they came. The last one is still cut into blocks: it is a `Partition`, and `z.unpartition()` is the array.
# (As you see, a kernel takes operations in place of arrays. They are submitted first, on the same stream.)
#
# Mostly you want only the array that the kernel writes, the one without `const`. `launch.output()` yields that one, whole again, and drops the others.

# %% id=baton-launch-check tags=asserts
assert [type(array) for array in (x, y, z)] == [agt.DeviceArray, agt.DeviceArray, agt.types.Partition]
assert list(agt.d2h(z.unpartition()).sync()) == [1, 2, 3, 4, 5, 6]

# %% [markdown] id=map
# Sometimes you want to change *how* the baton is held, without any work on the device: pick an entry of a tuple, reshape an array, put blocks together. `op.map(f)` does that. Its `f` returns the new result itself, not
# an operation:

# %% id=map-run
agt.arange(6).map(lambda array: array.reshape(2, 3)).to_host().sync()

# %% [markdown] id=map-text
# `and_then` and `map` look alike. What if we take the wrong one? `agt.d2h(array)` is an operation. Here it is the result of a `map`.

# %% id=map-wrong
with agt.record() as trace:
    got = agt.arange(6).map(agt.d2h).sync()

print([span.name for span in trace.device_spans])
got

# %% [markdown] id=misconception-map
# What the function of `map` returns *is* the result, so we get an operation that nobody has run. No copy is in the trace.
#
# > **Misconception: `map` and `and_then` are the same.**
# >
# > - *What you see:* a result that is a `DeviceOp`, and work that is missing from the timeline.
# > - *Why:* `map` hands on what its function returns. `and_then` *runs* it.
# > - *What helps:* ask what the function returns. An operation: `and_then`. Anything else: `map`. The other way round, you get an error that says so.

# %% id=map-other-way
try:
    agt.arange(6).and_then(lambda array: array.reshape(2, 3)).sync()
except agt.errors.NotAnOperationError as error:
    print(error)
else:
    raise AssertionError("this should have been refused")

# %% id=map-check tags=asserts
assert isinstance(got, agt.DeviceOp)
assert trace.find("d2h") == []

# %% [markdown] id=exercise-baton
# ### Exercise: pass the baton
#
# A **residual connection** is a way around a layer: the result is `x + relu(x)`. So the second stage needs what the first one got, too. Write
# `residual(x, add)`: an operation that uploads the host array `x` *once*, applies the kernel `agt.relu(n, input, output)`, adds with `add` (the kernel from above), and
# yields the result on the host.


# %% id=04-baton starter
def residual(x, add):
    n = x.size
    positive = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256)).output()
    total = add(n, agt.h2d(x), positive, agt.zeros(n).partition(256))  # a second upload of x
    return total.output().to_host()


# %% id=04-baton solution
def residual(x, add):
    n = x.size
    return (
        agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))
        .map(lambda used: (used[0], used[1].unpartition()))
        .and_then(lambda arrays: add(n, *arrays, agt.zeros(n).partition(256)).output())
        .to_host()
    )

# %% id=04-baton hints
# `agt.relu(n, x, out)` yields *both* arrays that it was given. The second stage needs both, so do not drop one with `.output()`.
#
# After the launch the second entry is a partition. A `map` can make an array of it and leave the first as it is: `lambda used: (used[0],
# used[1].unpartition())`.
#
# `agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))`, then that `map`, then `.and_then(lambda arrays: add(n, *arrays,
# agt.zeros(n).partition(256)).output())`, and at the end `.to_host()`.

# %% id=04-baton explanation
# `x` is copied to the device once, and both stages read it there.

# %% id=04-baton-check
check("04-baton", residual)

# %% [markdown] id=laws
# ### You may cut a chain anywhere
#
# `op.and_then(f).and_then(g)` can also be written `op.and_then(lambda x: f(x).and_then(g))`. The *traces* are equal, to the last span. So a piece of a long chain can have a name and a test of its own.

# %% id=laws-run
def double(array):
    return scaled(array, 2)


def triple(array):
    return scaled(array, 3)


flat = watch(lambda: agt.h2d(large).and_then(double).and_then(triple))
nested = watch(lambda: agt.h2d(large).and_then(lambda array: double(array).and_then(triple)))
print([span.name for span in flat])
print([span.name for span in nested])

# %% id=laws-check tags=asserts
one, other = ([s for s in trace if s.kind != "wait"] for trace in (flat, nested))
assert [(s.kind, s.name) for s in one] == [(s.kind, s.name) for s in other]
if device.simulated:
    assert [round(s.duration, 3) for s in one] == [round(s.duration, 3) for s in other]

# %% [markdown] id=saxpy-text
# ## A whole program
#
# **SAXPY** is the *hello world* of this trade: `y = a * x + y`, for a number `a` and two vectors (**s**ingle precision, **a** times **x**
# **p**lus **y**). Here is the kernel. Note that `y` is both: read, and written.

# %% id=saxpy
saxpy = agt.Kernel(r"""
extern "C" __global__ void saxpy(unsigned int n, float a, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
""")

# %% [markdown] id=exercise-saxpy
# ### Exercise: SAXPY, asynchronous
#
# Here is the program as most people write it first: four steps, four waits. Make it lazy. `async_saxpy` is to return *an operation*, which uploads `x` and
# `y` (host arrays), launches the kernel `saxpy`, and yields the new `y` on the host.


# %% id=04-saxpy starter
def async_saxpy(saxpy, a, x, y):
    n = x.size
    x_there = agt.h2d(x).sync()
    y_there = agt.h2d(y).sync()
    x_there, blocks = saxpy(n, a, x_there, y_there.partition(256)).sync()
    return agt.d2h(blocks.unpartition()).sync()


# %% id=04-saxpy solution
def async_saxpy(saxpy, a, x, y):
    launch = saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))
    return launch.output().to_host()

# %% id=04-saxpy hints
# A kernel takes operations in place of arrays: no `sync` is needed to feed it.
#
# `agt.h2d(y).partition(256)` is an operation as well. Which array is the one that you want back?
#
# `saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))`, and then `.output().to_host()`.

# %% id=04-saxpy explanation
# Four waits have become none, and the program is shorter. Whoever gets the operation decides how to run it: `sync`, `await`, `spawn`, or as a
# part of something larger.

# %% id=04-saxpy-check
check("04-saxpy", async_saxpy)

# %% [markdown] id=zip
# ## Several results
#
# `agt.zip(a, b, ...)` is one operation that yields a tuple, with one result for each. What goes in is called its **arms**.

# %% id=zip-run
agt.zip(agt.ones(4).to_host(), agt.arange(4).to_host()).sync()

# %% [markdown] id=two-trips
# ## Two trips
#
# A trip to the device and back, with four megabytes, takes as long as this:


# %% id=two-trips-one
def there_and_back():
    return agt.h2d(large).to_host()


def took(trace):
    return trace.metrics().makespan


alone = watch(there_and_back)
print(f"one trip: {took(alone):.0f} µs")

# %% [markdown] id=two-trips-text
# Two trips need nothing of each other. And the device has an engine for each direction, so the second trip could go there while the first comes back. We put the two into a `zip`.

# %% id=predict-zip
together = Prediction(
    f"One trip takes {took(alone):.0f} µs. How long does the `zip` of two take, in µs?", within=0.15
)
together

# %% id=predict-zip-commit
together.commit(...)

# %% id=zip-overlap-run
zipped = watch(lambda: agt.zip(there_and_back(), there_and_back()))
overlapped = watch(lambda: agt.overlap(there_and_back(), there_and_back()))
together.reveal(f"{took(zipped):.0f}", f"That is {took(zipped) / took(alone):.1f} times as long.")

# %% [markdown] id=misconception-zip
# > **Misconception: `zip` runs its arms at the same time.**
# >
# > - *What you see:* two operations that need nothing of each other, and a timeline with one stream.
# > - *Why:* `zip` is about *results*. It is one operation, so it gets one stream, and a stream keeps its order.
# > - *What helps:* `agt.overlap`. It looks like `zip`, and gives each arm a stream of its own. What comes after it waits for all arms: on the device, by events.

# %% id=zip-overlap-picture
agt.compare_timelines(
    [zipped, overlapped],
    ["zip", "overlap"],
    lesson="In the zip four copies stand in a row. In the overlap a copy back lies beside a copy in.",
)

# %% [markdown] id=zip-overlap-read
# So `overlap` draws arrows. It forks (the arms may not start before what came earlier) and it joins (what comes later may not start before the arms are done).

# %% id=zip-overlap-check tags=asserts
assert len(zipped.streams) == 1
assert zipped.metrics().overlap == 0
assert len({span.stream for span in overlapped.device_spans}) == 2
assert overlapped.overlap_between(*overlapped.find("h2d")) == 0
if device.simulated:
    assert overlapped.overlap_between(overlapped.find("d2h")[0], overlapped.find("h2d")[1]) > 0
    assert took(overlapped) < 0.85 * took(zipped)
    assert 1.8 < took(zipped) / took(alone) < 2.1

# %% [markdown] id=drawing-text
# The two can be mixed. Here are three trips, with copies of 16 megabytes that all take the same time:


# %% id=drawing-code
huge = agt.pin(np.ones(4_000_000, np.float32))


def trip():
    return agt.h2d(huge).to_host()


def mixed():
    a, b, c = trip(), trip(), trip()
    return agt.overlap(agt.zip(a, b), c)


# %% [markdown] id=drawing-how
# Draw what the two engines do when `mixed()` runs. Time is cut into slots, each as long as one copy. A lane is four slots, with the letter of the trip whose copy is under way, or a dot. For the `zip` of `a` and `b` the lanes were `a.b.` (the way there) and `.a.b` (the way back).

# %% id=predict-drawing
drawing = Prediction(
    "What are the lanes of `mixed()`? Type the way there and the way back: two words of four characters."
)
drawing

# %% id=predict-drawing-commit
drawing.commit(...)

# %% id=drawing-run
mix = watch(mixed)


def lane(name):
    there = mix.find("h2d")
    arm = [span.stream for span in there]
    first, length = there[0].start, min(span.duration for span in there)
    # a and b are on the stream that has two copies of a kind; c has one of its own.
    slots = ["."] * 4
    seen = []
    for span in mix.find(name):
        letter = "c" if arm.count(span.stream) == 1 else "ab"[seen.count(span.stream)]
        seen.append(span.stream)
        slots[min(round((span.start - first) / length), 3)] = letter
    return "".join(slots)


drawing.reveal(f"{lane('h2d')} {lane('d2h')}", "The picture is below.")

# %% id=drawing-picture
mix.plot(
    title="overlap(zip(a, b), c)",
    lanes=("streams", "engines"),
    lesson="On one stream a and b in a row. On the other c, whose way there is beside a's way back.",
)

# %% [markdown] id=drawing-read
# `a` and `b` are one arm, on one stream, so `b` has to wait until `a` is back. `c` has a stream of its own, and takes the slot that `b` could have had.

# %% [markdown] id=letters-text
# And Python? Each arm below has two functions, which leave their names as before: `a1` and `a2` in the first arm, `b1` and `b2` in the second.

# %% id=letters-code
def arm(name):
    return agt.h2d(large).and_then(stage(f"{name}1")).and_then(stage(f"{name}2")).to_host()


# %% id=predict-letters
letters = Prediction(
    "`agt.overlap(arm('a'), arm('b')).sync()`. In which order are the four names said?"
)
letters

# %% id=predict-letters-commit
letters.commit(...)

# %% id=letters-run
said.clear()
agt.overlap(arm("a"), arm("b")).sync()
letters.reveal(" ".join(said))

# %% [markdown] id=letters-read
# Arms overlap on the *device*. Their functions run in Python, which has one thread: it goes through the first arm to its end, and then through the second. So the order of the arms is the order in which they are
# submitted.

# %% [markdown] id=cost
# Now something smaller: four little arrays, once in a `zip` and once in an `overlap`.


# %% id=cost-code
def four(combine):
    shape = (100, 100)
    return combine(agt.ones(shape), agt.zeros(shape), agt.randn(shape), agt.arange(10_000))


def quickest(combine):  # of ten, as a real host has its hiccups
    return min((watch(lambda: four(combine)) for _ in range(10)), key=took)


little = {"zip": quickest(agt.zip), "overlap": quickest(agt.overlap)}
for name, trace in little.items():
    print(f"{name:8} {took(trace):4.0f} µs")

# %% [markdown] id=cost-read
# The device fills such an array in less time than Python needs to submit the next one. There is nothing to overlap, and forks and joins are calls that Python has to make. Rule of thumb: `zip`, unless the arms keep the
# device busy for long.

# %% id=cost-check tags=asserts
assert said == ["a1", "a2", "b1", "b2"]
a_and_b = max(mix.streams, key=lambda stream: len([s for s in mix.device_spans if s.stream == stream]))
first_there, first_back, second_there, _ = [s for s in mix.device_spans if s.stream == a_and_b]
(other_there,) = [s for s in mix.find("h2d") if s.stream != a_and_b]
assert first_back.end <= second_there.start
if device.simulated:
    assert other_there.start < second_there.start
    assert (lane("h2d"), lane("d2h")) == ("acb.", ".acb")
    assert little["overlap"].metrics().overlap == 0
    assert took(little["zip"]) < took(little["overlap"])

# %% [markdown] id=exercise-overlap
# ### Exercise: `zip` or `overlap`?
#
# `a` and `b` are operations that yield an array each, and both take long. `join(p, q)` is a function that takes two arrays and returns an operation.
# Write `side_by_side(a, b, join)`: *one* operation in which neither of `a` and `b` has to wait for the other, and then `join` gets both results. Python
# is not to wait in between.


# %% id=04-zip-or-overlap starter
def side_by_side(a, b, join):
    return agt.zip(a, b).and_then(lambda arrays: join(*arrays))


# %% id=04-zip-or-overlap solution
def side_by_side(a, b, join):
    return agt.overlap(a, b).and_then(lambda arrays: join(*arrays))

# %% id=04-zip-or-overlap hints
# Two steps: the two side by side, then `join` with both results.
#
# `agt.overlap` has the same form as `agt.zip`, and gives each arm a stream of its own.
#
# `agt.overlap(a, b).and_then(lambda arrays: join(*arrays))`

# %% id=04-zip-or-overlap explanation
# The fork and the join are made of events, on the device. What comes after finds both results there, and Python has waited
# for nothing.

# %% id=04-zip-or-overlap-check
check("04-zip-or-overlap", side_by_side)

# %% [markdown] id=readers
# ## One source, two readers
#
# Back to the diamond: one copy, and two products that use it. In a program with variables you would write the name twice. Let us do so with an operation.

# %% id=twice-run
source = agt.h2d(large)
twice = watch(lambda: agt.zip(source, source))
print([span.name for span in twice.device_spans])

# %% [markdown] id=twice-read
# Two copies of the same numbers.
#
# > **Misconception: to write an operation twice is to use its result twice.**
# >
# > - *What you see:* work that is done twice, and twice the memory.
# > - *Why:* an operation is a description. Each mention is carried out.
# > - *What helps:* `s = source.shared()`, and then `s` in both places. It runs when somebody first needs it, and never again; everybody gets the same result.

# %% id=shared-run
s = source.shared()
with agt.record() as once:
    a, b = agt.zip(s, s).sync()

print("written twice:", len(twice.find("h2d")), "copies. Shared:", len(once.find("h2d")))
print(a)

# %% [markdown] id=shared-read
# (`shared x1` says that there is one handle. `a` and `b` are two names of it.) Call `shared()` *once*, and keep what it returns: `source.shared()` in two places makes two sources again.
#
# `shared` draws arrows, too. If the readers are on different streams, the source runs on the stream of *one* of them, with an event behind it, and the others wait for that event. No race, whoever comes first.
#
# Here are two readers of a small table. Arm A first computes a large product, and then takes the table. Arm B copies the table back at once.


# %% id=first-code
matrix_there = agt.h2d(matrix).sync().share()  # an array for two readers: see the end of the page
numbers = agt.pin(np.arange(1000, dtype=np.float32))


def two_readers(swapped=False):
    table = agt.h2d(numbers).shared()
    a = product(matrix_there, 2.0).and_then(lambda _: table)
    b = table.to_host()
    return agt.overlap(b, a) if swapped else agt.overlap(a, b)


# %% id=predict-first
first = Prediction(
    "Three pieces of work: `p`, the large product of arm A; `t`, the copy of the table to the device; "
    "`b`, the copy back in arm B. In which order do they *end*? Type the three letters."
)
first

# %% id=predict-first-commit
first.commit(...)

# %% id=first-run
a_first, b_first = watch(two_readers), watch(lambda: two_readers(swapped=True))
letter = {"matvec_naive": "p", "h2d": "t", "d2h": "b"}
ends = sorted((span for span in a_first.device_spans if span.name in letter), key=lambda span: span.end)
first.reveal(" ".join(letter[span.name] for span in ends), "Look at the upper picture.")

# %% id=first-picture
for name, trace in [("overlap(a, b)", a_first), ("overlap(b, a)", b_first)]:
    (back,) = trace.find("d2h")
    print(f"{name}: B is done after {back.end - trace.spans[0].start:.0f} µs, all after {took(trace):.0f} µs")

agt.compare_timelines(
    [a_first, b_first],
    ["overlap(a, b)", "overlap(b, a)"],
    lanes=("host", "streams"),
    lesson="Above, the table is copied after the product, on its stream, and B waits. Below, B comes first.",
)

# %% [markdown] id=first-read
# Python submits arm A first. It comes to the table, nobody has run it yet, and so A runs it: on A's stream, and *behind the product*. Then comes B, finds the table taken care of, and waits for A's event. B is late for no reason. **Whoever is submitted first runs the shared source.** If B is the one in a hurry, put B first, as in the lower picture. It has its price: A is submitted
# after B, and the whole takes a little longer.

# %% id=shared-check tags=asserts
assert len(twice.find("h2d")) == 2
assert len(once.find("h2d")) == 1
assert a.mode == b.mode == "shared"
again = watch(lambda: agt.zip(source.shared(), source.shared()))
assert len(again.find("h2d")) == 2
assert a_first.runs_before("matvec_naive", "h2d")
assert a_first.runs_before("h2d", "d2h")
assert b_first.runs_before("h2d", "d2h")
assert not b_first.runs_before("matvec_naive", "h2d")
if device.simulated:
    assert b_first.find("d2h")[0].end < b_first.find("matvec_naive")[0].end

# %% [markdown] id=unzip
# `unzip` is `shared` for tuples: from one operation that yields a tuple it makes one operation for each entry, and all of them have the source in common. `first()` and `last()` pick
# just one, each from a source of its own: two picks are two runs. Here is `agt.dup`, which yields an array and a copy of it:

# %% id=unzip-run
original, copied = agt.arange(4).and_then(agt.dup).unzip(2)
agt.zip(original.to_host(), copied.to_host()).sync()

# %% [markdown] id=exercise-unzip
# ### Exercise: take it apart
#
# `pair` is an operation that yields two arrays. `f` and `g` are functions that take an operation and return an operation. Write `halves(pair, f, g)`: one
# operation that yields the results of `f` for the first array and of `g` for the second. `pair` is to run once.


# %% id=04-unzip starter
def halves(pair, f, g):
    return agt.zip(f(pair.first()), g(pair.last()))  # runs pair twice


# %% id=04-unzip solution
def halves(pair, f, g):
    a, b = pair.unzip(2)
    return agt.zip(f(a), g(b))

# %% id=04-unzip hints
# `first()` and `last()` each make an operation of their own of `pair`: it would run twice.
#
# `unzip` makes one operation for each entry, and these have one run of `pair` in common.
#
# `a, b = pair.unzip(2)`, then `return agt.zip(f(a), g(b))`.

# %% id=04-unzip explanation
# Both halves know the same source. It runs when the first of them is needed, and never again.

# %% id=04-unzip-check
check("04-unzip", halves)

# %% [markdown] id=exercise-diamond
# ## The middle part
#
# Now for the hidden part. You have met all that it takes.
#
# ```text
#           source
#          /      \
#       left      right
#          \      /
#            join
# ```
#
# ### Exercise: a diamond
#
# `source` is an operation that yields an array. `left` and `right` are functions that take an operation and return an operation. `join(p, q)`
# takes two results and returns an operation. Write `diamond(source, left, right, join)`: one operation. The source runs once, neither side waits for the other, and the join gets both. The check
# also uses devices that pick the unluckiest legal order.


# %% id=04-diamond starter
def diamond(source, left, right, join):
    return join(left(source), right(source))


# %% id=04-diamond solution
def diamond(source, left, right, join):
    s = source.shared()
    return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))

# %% id=04-diamond hints
# Three things: the source must run once, the sides need two streams, the join needs both results.
#
# `source.shared()` can be used in many places, and runs at most once. And which combinator gives two operations two streams, as *one*
# operation?
#
# `s = source.shared()`, then `agt.overlap(left(s), right(s))`, then `.and_then(lambda both: join(*both))`.

# %% id=04-diamond explanation
# There is your answer to the question at the top. Each arrow follows from *who uses whose result*, and you wrote nothing else.

# %% id=04-diamond-check
check("04-diamond", diamond)

# %% [markdown] id=ownership
# ## Whose array is it?
#
# Memory on the device has to live until the last kernel that uses it is done, and then it should go. So who keeps an array, and for how long? Think of
# the baton: it is in one hand at a time.

# %% id=owned-make
mine = agt.ones(4).sync()
doubled = scaled(mine, 2).sync()

# %% id=predict-owned
owner = Prediction(
    "`mine` was full of ones. `scaled` works in place, and `doubled` is what it yields. Now you write "
    "`agt.d2h(mine)`, and run it. What comes of it?",
    ones="ones: `mine` was not changed, `doubled` is a new array",
    twos="twos: both are names of the same array",
    error="an error in place of numbers",
)
owner

# %% id=predict-owned-commit
owner.commit(...)

# %% id=owned-run
try:
    op = agt.d2h(mine)
    found = {1: "ones", 2: "twos"}[round(float(op.sync()[0]))]
except agt.errors.UseAfterMoveError as error:
    found = "error"
    print(error)

# %% id=reveal-owned
owner.reveal(found, "You gave it away in the line above. `doubled` has what became of it.")

# %% [markdown] id=ownership-table
# The rule: **an array has one owner, and to pass it to an operation is to give it away.** What an operation yields is yours. The error says where the array went (into `partition()`, which `scaled` calls). Who owns what is checked
# while you *build*, so it comes in the line that uses the array once too often, before anything runs. When you need an array again, there are two other ways to pass it:
#
# | | you write | the operation gets | and you? |
# |---|---|---|---|
# | **owned** | `x` | the array | it is gone; the result hands it back |
# | **shared** | `x = x.share()`, once, and then `x` | a handle to it, *for reading* | you have such a handle, too; the array lives until the last is gone |
# | **borrowed** | `x.borrow()` | the right to use it | you keep it, and may not give it away meanwhile |
#
# None of the three copies anything. Two words to keep apart: `op.shared()` runs an *operation* once; `x.share()` is about an *array* and who owns it.
#
# A borrower may write; it is *your* array that it writes to. Lend an array of ones to `scaled`, and you find twos in it:

# %% id=lent-run
mine = agt.ones(4).sync()
scaled(mine.borrow(), 2).sync()
agt.d2h(mine.borrow()).sync()

# %% [markdown] id=lent-read
# But a loan orders nothing: no event is recorded. If two arms of an `overlap` borrow one array, and one of them writes, that is a race: the simulated device refuses it.
#
# A shared array may not be written at all, as its other readers would be surprised:

# %% id=shared-write
weights = agt.ones(4).sync().share()
try:
    scaled(weights, 2)
except agt.UsageError as error:
    print(error)
else:
    raise AssertionError("to write to a shared array should have been refused")

# %% [markdown] id=handles-text
# A shared array counts its handles: `x.share_count`. Here is a matrix with one handle, ours, and three operations that read it. Like most operations, they can run again.

# %% id=handles-code
matrix_of_ones = agt.ones((4, 4)).sync().share()


def row_sums(matrix):
    return agt.matvec_naive(4, 4, matrix, agt.ones(4), agt.zeros(4).partition(32)).output().to_host()


readers = [row_sums(matrix_of_ones) for _ in range(3)]

# %% id=predict-handles
handles = Prediction(
    "`results = [op.sync() for op in readers]`. How many handles of `matrix_of_ones` are there afterwards?"
)
handles

# %% id=predict-handles-commit
handles.commit(...)

# %% id=handles-run
built = matrix_of_ones.share_count
results = [op.sync() for op in readers]
ran = matrix_of_ones.share_count
readers.clear()
handles.reveal(ran, f"Built: {built}. Run: {ran}. When the list is empty: {matrix_of_ones.share_count}.")

# %% [markdown] id=handles-read
# Each operation keeps its handle, before it runs and after, and lets go when *it* goes. If you keep a list of old operations, you keep their arrays as well. (An *owned* array goes into one run. An operation that was given one cannot run again, and says so.)

# %% id=loan-check tags=asserts
with agt.using("sim"):
    lender = agt.ones(4).sync()
    try:
        agt.overlap(scaled(lender.borrow(), 2), agt.d2h(lender.borrow())).sync()
    except agt.errors.StreamRaceError:
        pass
    else:
        raise AssertionError("one of two borrowers wrote: this should have been refused")

# %% id=handles-check tags=asserts
assert (built, ran, matrix_of_ones.share_count) == (4, 4, 1)

# %% [markdown] id=ownership-when
# Which one, then? *Owned* along a chain, where each stage hands on to the next. *Shared* for what many read and nobody changes, such as weights. *Borrowed* where you will need the array yourself. A loan has one catch: it must
# not outlive its owner. So a borrowed array cannot go to `agt.spawn`, whose task may run for longer than you do.

# %% [markdown] id=exercise-lend
# ### Exercise: lend it
#
# `matrix` is an array on the device (`n` x `n`), `xs` is a list of host vectors. Write `apply_all(matrix, xs)`: one operation that yields a tuple with the product of the matrix
# and each vector, on the host. The caller goes on using `matrix` afterwards, and still owns it.


# %% id=04-lend starter
def apply_all(matrix, xs):
    n = xs[0].size
    products = [agt.matvec_naive(n, n, matrix, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return agt.zip(*[launch.output().to_host() for launch in products])


# %% id=04-lend solution
def apply_all(matrix, xs):
    n = xs[0].size
    products = [
        agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return agt.zip(*[launch.output().to_host() for launch in products])

# %% id=04-lend hints
# Passed by itself, `matrix` is the first launch's. There is nothing left for the second.
#
# `share()` would do for the launches, but it takes the owner's handle away.
#
# Pass `matrix.borrow()` to each launch, and `agt.zip` the operations.

# %% id=04-lend explanation
# The caller is still the owner, and nothing was copied.

# %% id=04-lend-check
check("04-lend", apply_all)

# %% [markdown] id=exercise-workers
# ### Exercise: for those who stay longer
#
# The same products, but now each of them is a job for somebody else. Write `jobs(matrix, xs)`: a *list* of operations, one for each vector. Whoever gets the list will `spawn` them all, and by then your function has returned, and its names are gone. The matrix is
# yours to give away; nobody writes to it.


# %% id=04-workers starter
def jobs(matrix, xs):
    n = xs[0].size
    products = [
        agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return [launch.output().to_host() for launch in products]


# %% id=04-workers solution
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    products = [
        agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return [launch.output().to_host() for launch in products]

# %% id=04-workers hints
# A loan must not outlive its owner, and a task may outlive you. Which of the three ways fits many readers, of which none is the owner?
#
# `weights = matrix.share()` makes a handle that many operations may have at the same time.
#
# Share once, in front of the list, and pass `weights` to each launch.

# %% id=04-workers explanation
# Each operation has a handle of its own to the one array. It goes when the last of them is done, whoever that is.

# %% id=04-workers-check
check("04-workers", jobs)

# %% [markdown] id=challenge
# ## Challenge: four filters
#
# A picture (here a matrix with 1024 x 1024 numbers) goes to the device, and four filters work on it. `join` adds two results. As it stands, this
# takes 664 µs: get below 330.
#
# `picture` is a host array. `filters` is a list of four functions; each takes an operation that yields an array (or a shared array) and returns an operation that yields another. `join(p, q)` takes two results, or operations, and returns an
# operation. Return *one* operation that yields `(f0 + f1) + (f2 + f3)` on the host.
#
# Here are four filters to try it with: `watch(lambda: filtered(matrix, filters, total)).plot()` draws a timeline, with the matrix from above, which is larger.

# %% id=challenge-inputs
filters = [lambda picture, k=k: product(picture, k) for k in (1.0, 2.0, 3.0, 4.0)]


# %% id=04-challenge starter
def filtered(picture, filters, join):
    f0, f1, f2, f3 = [f(agt.h2d(picture)) for f in filters]
    return join(join(f0, f1), join(f2, f3)).to_host()


# %% id=04-challenge solution
def filtered(picture, filters, join):
    source = agt.h2d(picture).shared()
    arms = agt.overlap(*[f(source) for f in filters])
    return arms.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3]))).to_host()

# %% id=04-challenge hints
# Look at a timeline of the starter. What is done four times that could be done once? And which things stand in a row that could stand side by side?
#
# `agt.h2d(picture).shared()`, and the four filters in an `agt.overlap`.
#
# `arms = agt.overlap(*[f(source) for f in filters])`, then `.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3])))`, then `.to_host()`.

# %% id=04-challenge explanation
# The course's answer is one copy, filters that overlap, the sums and the way back. Print the table of its trace: three quarters of the critical path are calls that Python makes, so it is the device that
# waits. That is a wall of its own, and the next page is about such walls.

# %% id=04-challenge-check
check("04-challenge", filtered)

# %% [markdown] id=key-points
# ## Key points
#
# - `and_then` runs the operation that its function returns; `map` takes what its function returns as it is. Both functions run when the work is submitted. They get
#   handles, and they look their variables up at that time: mind the loop.
# - A stage knows what is in its baton, the result of the stage before. A launch hands on all arrays that it was given.
# - `zip` is for results, in order, on one stream. `overlap` is for time: a stream for each arm, forked and joined by events.
# - To write an operation twice is to run it twice. `shared()` and `unzip()` run their source once, and order its readers by an event where
#   they are on other streams.
# - Owned arrays are given away, shared ones are read by many, borrowed ones come back.
#
# What others call these things is in the [glossary](../docs/glossary.md), and common mistakes are in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [05_scheduling.ipynb](05_scheduling.ipynb). `overlap` asked somebody for its streams. Who is that, and does it choose well?

# %% id=score
score(when, loop, together, drawing, letters, first, owner, handles)

# %% id=progress
progress("04")
