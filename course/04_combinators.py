"""Source of notebooks/04_combinators.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Combinators: large operations from small ones
#
# In the picture below there are three streams, and an arrow wherever one of them waits for another. Nobody wrote a line of code for the streams or the arrows. **So who drew them?**
#
# After this page you can put stages into a chain, combine several results into one, run two things at the same time, and use one result in two places without a race.
#
# | | |
# |---|---|
# | Time | 55 minutes, and 5 for the encore |
# | You need | [03_lazy_operations](03_lazy_operations.ipynb) |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Who drew the arrows?
#
# We copy a large matrix to the device, compute two products with it, halve the second one, and add the two. Here are the bricks, an operation for each step. (`agt.matvec_naive(rows, columns, matrix, vector, out)` comes with the package. `partition(128)` cuts `out` into blocks for 128 threads each.)

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


def half(p):
    return scale(N, 0.5, p.partition(256)).output()


def total(p, q):
    return add(N, p, q, agt.zeros(N).partition(256)).output()


# %% [markdown] id=question-text
# Here's the finished program at work, with its middle part hidden.

# %% id=question-run
from asyncgpu_course import solved

sides = lambda m: product(m, 2.0), lambda m: half(product(m, 6.0))


def watch(make):
    """The trace of an operation's second run. On a real GPU the first is slow."""
    make().sync()
    op = make()
    with agt.record() as trace:
        op.sync()
    return trace.from_first()


def finished():
    hidden = solved("04-diamond")
    return hidden(agt.h2d(matrix), *sides, total)


riddle = watch(finished)
riddle.plot(
    title="One copy, two products, one sum",
    lanes=("host", "streams"),
    lesson="One copy, then two products at the same time on two streams, "
    "and at the very end their sum.",
)

# %% [markdown] id=question-join-text
# Here are its last microseconds, under a magnifying glass:

# %% id=question-join
(join,) = riddle.find("add")
riddle.between(join.start - 15, join.end + 2).plot(
    title="The end, enlarged",
    lanes=("streams",),
    lesson="Two arrows, one from each side, lead to the third stream, "
    "where the sum is computed.",
)

# %% [markdown] id=question-read
# The sum begins by filling its output with zeros (`memset`, in yellow), and two arrows lead to that. One comes from the first product. The other comes from `scale`, which has halved the second. The arrows are events: at the end of each, a stream had to wait for another.
#
# Now for the strange part. **The author of this program created no stream and recorded no event.** So who chose the streams and drew the arrows?
#
# The author used **combinators**: functions that make one operation out of several. Before this page is over, you'll have written the hidden part yourself.

# %% id=question-check tags=asserts
(source_copy,) = riddle.find("h2d")
left, right = riddle.find("matvec_naive")
(join,) = riddle.find("add")
assert left.stream != right.stream
for early, late in [(source_copy, left), (source_copy, right), (left, join), (right, join)]:
    assert riddle.happens_before(early, late)
assert not riddle.happens_before(left, right)
(halved,), fill = riddle.find("scale"), riddle.find("memset")[-1]
side = left if left.stream != halved.stream else right
assert len({side.stream, halved.stream, fill.stream}) == 3
assert fill.stream == join.stream
assert all(riddle.happens_before(early, fill) for early in (halved, side))
if device.simulated:
    assert riddle.overlap_between(left, right) > 0

# %% [markdown] id=and-then
# ## And then?
#
# `op.and_then(f)` runs `op`, calls `f` with the result, and then runs the operation that `f` returns. Here's a chain of four stages:

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
# It copies the array to the device, doubles it, triples it, and copies it back. (`agt.d2h` takes an array and returns an operation, so we can pass it as it is. `op.to_host()` is short for `op.and_then(agt.d2h)`.)
#
# When do these functions run? Here's such a chain with four megabytes. Two of its functions say their names, and the program says how far it has got.

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


# %% id=04-when guess
# `program(stream)` runs. In which order are these said: `built`, `done`, `f`, `g`, `submitted`? Type the five words.

# %% id=04-when reveal
stream = agt.create_stream()
program(stream)  # a warm-up: on a real GPU the first time is slow
said.clear()
with agt.record() as chain:
    program(stream)

(copy,), (g,) = chain.find("h2d"), chain.find("g")
picture = chain.plot(title="A chain of four", lanes=("host", "streams"))
reveal("04-when", " ".join(said), picture, g=g.start, copy=copy.end)

# %% id=04-when lesson
# Both functions ran long before the copy ended. The first kernel waits for the copy.

# %% id=04-when told truth="built f g submitted done"
# Nobody says anything while we build the chain, because building only describes. When it runs, Python calls `f` and `g` right away: `g` ran after {g:.0f} µs, and the copy ended after {copy:.0f}. They get a **handle**, the name of an array that nothing may have been written to yet. That's enough to describe what comes next, so Python can put the whole chain into the queue. Behind a long copy like this one, the device never has to wait for Python.
#
# So why doesn't the first kernel start too early? Because all stages of a chain are on *one* stream, and a stream keeps its order, so no arrow is needed.

# %% id=when-check tags=asserts
assert said == ["built", "f", "g", "submitted", "done"]
assert len(chain.streams) == 1
assert [span.name for span in chain.device_spans] == ["h2d", "scale", "scale", "d2h"]
assert chain.runs_before("h2d", "scale")
assert chain.runs_before("scale", "d2h")
if device.simulated:
    assert max(span.end for span in chain if span.kind == "call") < copy.end


# %% [markdown] id=baton
# ## The baton
#
# A chain is a **relay race**. Each runner starts when the one before arrives, and carries nothing but the baton: *the result of the stage before*. If a stage makes an array and doesn't put it into the baton, later stages can't get at it.
#
# What does a kernel put into the baton? Every array that it was given:

# %% id=baton-launch
launch = add(6, agt.arange(6), agt.ones(6), agt.zeros(6).partition(256))
x, y, z = launch.sync()
print(x, y, z, sep="\n")

# %% [markdown] id=baton-launch-read
# Three arrays went in, so three come out, in the order of the parameters and in the form they came in. The last one is still cut into blocks. It's a `Partition`, and `z.unpartition()` gives you the array. (A kernel accepts operations instead of arrays. They're submitted first, on the same stream.)
#
# Most of the time you only want the array that the kernel writes, the one without `const`. `launch.output()` yields just that one, in one piece again, and drops the others.

# %% id=baton-launch-check tags=asserts
assert [type(array) for array in (x, y, z)] == [agt.DeviceArray, agt.DeviceArray, agt.types.Partition]
assert list(agt.d2h(z.unpartition()).sync()) == [1, 2, 3, 4, 5, 6]

# %% [markdown] id=map
# Sometimes you'd like to change *how* the baton is held without giving the device any work: pick one entry of a tuple, reshape an array, put blocks back together. For that there's `op.map(f)`. Its `f` returns the new result itself, and not an operation:

# %% id=map-run
agt.arange(6).map(lambda array: array.reshape(2, 3)).to_host().sync()

# %% [markdown] id=map-text
# `and_then` and `map` look alike, so what happens if you take the wrong one? Here the function `agt.d2h`, which returns an operation, ends up in a `map`:

# %% id=map-wrong
with agt.record() as trace:
    got = agt.arange(6).map(agt.d2h).sync()

print([span.name for span in trace.device_spans])
got

# %% [markdown] id=misconception-map
# `map` takes whatever its function returns as *the result*. So our result is an operation that nobody has run, and there's no copy in the trace.
#
# > **Misconception: `map` and `and_then` do the same.**
# >
# > - *What you see:* a result that turns out to be a `DeviceOp`, and work that's missing from the timeline.
# > - *Why:* `map` passes on what its function returns. `and_then` *runs* it.
# > - *What helps:* if your function returns an operation, use `and_then`, and otherwise `map`. If you mix them up the other way round, you get an error that says so.

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
# A **residual connection** is a way around a layer of a neural network: the result is `x + relu(x)`. So the second stage needs what the first one was given. Write `residual(x, add)`, an operation that uploads the host array `x` *once*, never copies it on the device, applies the kernel `agt.relu(n, input, output)`, adds `x` with `add` (the kernel from above), and yields the result on the host.

# %% id=04-baton starter
def residual(x, add):
    n = x.size
    positive = agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256)).output()
    x_again = agt.h2d(x)
    total = add(n, x_again, positive, agt.zeros(n).partition(256))
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
# `agt.relu(n, x, out)` yields *both* arrays that it was given. The second stage needs both, so don't drop one of them with `.output()`.
#
# After the launch, the second entry is a partition. A `map` can turn it into an array and leave the first as it is: `lambda used: (used[0], used[1].unpartition())`.
#
# `agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))`, then that `map`, then `.and_then(lambda arrays: add(n, *arrays, agt.zeros(n).partition(256)).output())`, and at the end `.to_host()`.

# %% id=04-baton explanation
# `x` travels to the device once, and both stages read it there.

# %% id=04-baton-check
check("04-baton", residual)

# %% [markdown] id=saxpy-text
# ## A whole program
#
# **SAXPY** is the *hello world* of this trade: `y = a * x + y`, for a number `a` and two vectors.

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
# Most people first write the program like this, with four steps and four waits. Make it lazy. `async_saxpy` should return *an operation* that uploads `x` and `y` (host arrays), launches the kernel `saxpy`, and yields the new `y` on the host.

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
# A kernel accepts operations instead of arrays, so you need no `sync` to feed it.
#
# `agt.h2d(y).partition(256)` is an operation as well. Which array do you want back?
#
# `saxpy(x.size, a, agt.h2d(x), agt.h2d(y).partition(256))`, and then `.output().to_host()`.

# %% id=04-saxpy explanation
# Four waits have become none, and the program got shorter. Whoever receives the operation decides how to run it: with `sync`, `await` or `spawn`, or as a part of something larger.

# %% id=04-saxpy-check
check("04-saxpy", async_saxpy)

# %% [markdown] id=zip
# ## Several results
#
# `agt.zip(a, b, ...)` yields a tuple with the result of each. The operations that go in are called its **arms**. Here they make ones, a range, and random numbers:

# %% id=zip-run
agt.zip(agt.ones(4).to_host(), agt.arange(4).to_host(), agt.randn(4).to_host()).sync()

# %% [markdown] id=two-trips
# ## Two trips
#
# How long does a trip to the device and back take, with four megabytes? And two of them, which don't need each other? We run these two by `agt.zip`, and then by `agt.overlap`, which looks just like it.

# %% id=two-trips-run
def there_and_back():
    return agt.h2d(large).to_host()


def took(trace):
    return trace.metrics().makespan


alone = watch(there_and_back)
zipped = watch(lambda: agt.zip(there_and_back(), there_and_back()))
overlapped = watch(lambda: agt.overlap(there_and_back(), there_and_back()))
agt.compare_timelines(
    [zipped, overlapped],
    [f"zip: {took(zipped):.0f} µs", f"overlap: {took(overlapped):.0f} µs"],
    lesson=f"One trip takes {took(alone):.0f} µs. "
    "In the zip, four copies stand in a row. "
    "In the overlap, a copy back runs beside a copy in.",
)

# %% [markdown] id=two-trips-read
# > **Misconception: `zip` runs its arms at the same time.**
# >
# > - *What you see:* two operations that don't need each other, in a timeline with one stream.
# > - *Why:* `zip` only combines *results*. It's one operation, so it gets one stream, and a stream keeps its order, although the device has an engine for each direction.
# > - *What helps:* use `agt.overlap` when you want the work to happen at the same time. It gives each arm a stream of its own.

# %% [markdown] id=fork-text
# ## Forks and joins
#
# `agt.overlap(a, b, ...)` yields a tuple, too, and each of its arms gets a stream. Let's put a copy in front of two such arms, and another one behind them:

# %% id=fork-picture
def in_the_middle():
    before, after = agt.h2d(large).named("before"), agt.h2d(large).named("after")
    arms = agt.overlap(there_and_back(), there_and_back())
    return before.and_then(lambda _: arms).and_then(lambda _: after)


forked = watch(in_the_middle)
forked.plot(
    title="before, overlap, after",
    lanes=("streams",),
    lesson="Two arrows lead from the first copy to the arms, "
    "and two from the arms to the last copy.",
)

# %% [markdown] id=zip-overlap-read
# It's `overlap` that draws these arrows. It **forks**: no arm starts before the work in front of it is done. And it **joins**: whatever comes next waits for all the arms, on the device, by events.

# %% id=zip-overlap-check tags=asserts
assert len(zipped.streams) == 1
assert zipped.metrics().overlap == 0
assert len({span.stream for span in overlapped.device_spans}) == 2
assert overlapped.overlap_between(*overlapped.find("h2d")) == 0
if device.simulated:
    assert overlapped.overlap_between(overlapped.find("d2h")[0], overlapped.find("h2d")[1]) > 0
    assert took(overlapped) < 0.85 * took(zipped)
    assert 1.8 < took(zipped) / took(alone) < 2.1
early, *arms, late = sorted(forked.find("h2d"), key=lambda span: span.start)
assert len({span.stream for span in (early, *arms)}) == 3
for arm in (*arms, *forked.find("d2h")):
    assert forked.happens_before(early, arm)
    assert forked.happens_before(arm, late)

# %% [markdown] id=drawing-text
# ### One in the other
#
# You can mix the two. Here are three trips with 16 megabytes each, whose copies all take the same time:

# %% id=drawing-code
huge = agt.pin(np.ones(4_000_000, np.float32))


def trip(name):
    return agt.h2d(huge).to_host().named(name)


def mixed():
    a, b, c = trip("a"), trip("b"), trip("c")
    return agt.overlap(agt.zip(a, b), c)


# %% [markdown] id=drawing-how
# Try to draw what the two copy engines do when `mixed()` runs. Cut the time into four slots, each as long as one copy. For each slot, write the letter of the trip whose copy is under way, or a dot if the engine is idle. For `zip(a, b)` that would be `a.b.` on the way there and `.a.b` on the way back.

# %% id=04-drawing guess
# What are the lanes of `mixed()`? Type the way there and the way back: two words of four characters.

# %% id=04-drawing reveal
mix = watch(mixed)


def lane(direction):
    length, slots = min(span.duration for span in mix.find("h2d")), ["."] * 4
    for span in mix.find(direction):
        slots[min(round(span.start / length), 3)] = span.detail["named"]
    return "".join(slots)


picture = mix.plot(title="overlap(zip(a, b), c)", lanes=("engines",))
reveal("04-drawing", f"{lane('h2d')} {lane('d2h')}", picture)

# %% id=04-drawing lesson
# c travels there while a comes back, and comes back while b travels there.

# %% id=04-drawing told truth="acb. .acb"
# `a` and `b` are one arm, on one stream, so `b` has to wait until `a` is back. Meanwhile the way there is free, and `c`, on a stream of its own, takes it. So three trips fit into the four slots that `zip(a, b)` takes for two.

# %% [markdown] id=small-text
# ### Tiny arms
#
# Forks and joins are calls that Python has to make. And it submits one arm to the end before it starts on the next. What does that cost when there's hardly any work?

# %% id=small-run
small = agt.ones(100), agt.zeros(100), agt.arange(100)
zip_us = took(watch(lambda: agt.zip(*small)))
overlap_us = took(watch(lambda: agt.overlap(*small)))
print(f"three tiny arrays: zip {zip_us:.0f} µs, overlap {overlap_us:.0f}")
print(f"with overlap it takes {overlap_us / zip_us:.1f} times as long")

# %% [markdown] id=small-read
# So for tiny arrays the forks only cost. `overlap` pays when an arm keeps the device busy for longer than Python takes to submit the next one.

# %% id=drawing-check tags=asserts
said.clear()
agt.overlap(
    *(agt.h2d(large).and_then(stage(f"{arm}1")).and_then(stage(f"{arm}2")) for arm in "ab")
).sync()
assert said == ["a1", "a2", "b1", "b2"]
a_and_b = max(mix.streams, key=lambda stream: len([s for s in mix.device_spans if s.stream == stream]))
first_there, first_back, second_there, _ = [s for s in mix.device_spans if s.stream == a_and_b]
(other_there,) = [s for s in mix.find("h2d") if s.stream != a_and_b]
assert first_back.end <= second_there.start
if device.simulated:
    assert other_there.start < second_there.start
    assert (lane("h2d"), lane("d2h")) == ("acb.", ".acb")
    assert second_there.start - first_back.end < 10  # c costs b nothing
    assert zip_us < overlap_us

# %% [markdown] id=exercise-overlap
# ### Exercise: `zip` or `overlap`?
#
# `a` and `b` are operations that yield one array each, and both take long. `join(p, q)` takes two arrays and returns an operation. Write `side_by_side(a, b, join)`: *one* operation in which neither `a` nor `b` has to wait for the other, and in which `join` then gets both results. Python shouldn't wait in between.

# %% id=04-zip-or-overlap starter
def side_by_side(a, b, join):
    return agt.zip(a, b).and_then(lambda arrays: join(*arrays))


# %% id=04-zip-or-overlap solution
def side_by_side(a, b, join):
    return agt.overlap(a, b).and_then(lambda arrays: join(*arrays))

# %% id=04-zip-or-overlap hints
# There are two steps: run both side by side, and then call `join` with both results.
#
# You use `agt.overlap` just like `agt.zip`, but it gives each arm a stream of its own.
#
# `agt.overlap(a, b).and_then(lambda arrays: join(*arrays))`

# %% id=04-zip-or-overlap explanation
# The fork and the join are events, so it's the device that waits. The next stage finds both results there, and Python didn't wait at all.

# %% id=04-zip-or-overlap-check
check("04-zip-or-overlap", side_by_side)

# %% [markdown] id=readers
# ## One source, two readers
#
# Back to our diamond, with one copy and two products that use it. If the copy were an ordinary Python variable, you'd just mention it twice. Can you do that with an operation? There's also `source.shared()`, which makes an operation that runs `source` once, when somebody first needs it, and then hands everybody the same result.

# %% id=copies-code
source = agt.h2d(large)


def plain():
    return agt.zip(source, source)


def kept():
    s = source.shared()
    return agt.zip(s, s)


def in_place():
    return agt.zip(source.shared(), source.shared())


# %% id=04-copies guess
# How often are the four megabytes copied when we run `plain()`, when we run `kept()`, and when we run `in_place()`? Type three numbers.

# %% id=04-copies reveal
names = ["plain", "kept", "in_place"]
traces = [watch(make) for make in (plain, kept, in_place)]
copies = [len(trace.find("h2d")) for trace in traces]
picture = agt.compare_timelines(traces, names, lanes=("streams",))
reveal("04-copies", " ".join(map(str, copies)), picture)

# %% id=04-copies lesson
# Only the second makes do with a single copy.

# %% id=04-copies told truth="2 1 2"
# > **Misconception: if an operation appears twice, both places use the same result.**
# >
# > - *What you see:* work that's done twice, and twice the memory.
# > - *Why:* an operation is a recipe, and if it's on the menu twice, it's cooked twice. And `shared` doesn't change `source`: each call makes another operation, which runs once.
# > - *What helps:* call `shared()` *once*, keep what it returns, and use that in both places.

# %% [markdown] id=shared-read
# `shared` draws arrows, too. If its readers are on different streams, the source runs on the stream of *one* of them, with an event behind it, and the others wait for that event. So there's no race, whoever comes first.

# %% id=shared-check tags=asserts
assert copies == [2, 1, 2]
a, b = kept().sync()
assert a.mode == b.mode == "shared"

# %% [markdown] id=middle
# ## The middle part
#
# Now for the hidden part. You've seen how it ends. Here's how it begins, enlarged:

# %% id=riddle-again
copied = riddle.find("h2d")[0].end
riddle.between(copied - 15, copied + 23).plot(
    title="The fork, enlarged",
    lanes=("streams",),
    lesson="From the end of the copy, an arrow leads to the other stream.",
)

# %% [markdown] id=exercise-diamond
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
# `source` is an operation that yields an array. `left` and `right` are functions that take an operation and return an operation. `join(p, q)` takes two results and returns an operation. Write `diamond(source, left, right, join)`: one operation in which the source runs once, neither side waits for the other, and the join gets both results.

# %% id=04-diamond starter
def diamond(source, left, right, join):
    return join(left(source), right(source))


# %% id=04-diamond solution
def diamond(source, left, right, join):
    s = source.shared()
    return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))

# %% id=04-diamond hints
# There are three things to get right: the source must run once, the two sides need two streams, and the join needs both results.
#
# You can use what `source.shared()` returns in many places, and it runs at most once. Which combinator gives two operations two streams, as *one* operation?
#
# `s = source.shared()`, then `agt.overlap(left(s), right(s))`, then `.and_then(lambda both: join(*both))`.

# %% id=04-diamond explanation
# And that's the answer to the question at the top. You only said *whose result each step uses*, and the combinators drew an arrow for each.

# %% id=04-diamond-check
check("04-diamond", diamond)

# %% [markdown] id=mine-text
# Now run the program from the top with *your* middle part. If your diamond is right, you can't tell the two pictures apart.

# %% id=mine-run
mine = watch(lambda: diamond(agt.h2d(matrix), *sides, total))
accepted = solved("04-diamond", diamond) is diamond  # the check has taken it
agt.compare_timelines(
    [riddle, mine],
    ["from the top", f"with your diamond{'' if accepted else ' (not accepted yet)'}"],
    lanes=("streams",),
    lesson="With the right diamond, the two look the same, down to the arrows.",
)

# %% [markdown] id=on-a-gpu
# So who drew the arrows? `shared` and `overlap` did, because you told them whose result each step needs. Could one be missing? The check of your diamond looks for that, on devices that pick the unluckiest order. Here is a diamond on a real H200, with what Python was busy submitting.

# %% id=on-a-gpu-picture
h200 = agt.Trace.load_recording("04_combinators").from_first()
calls = [h200.find(call)[-1].end for call in ("enqueue h2d", "launch add")]
first, second = [span.end for span in h200.find("launch matvec_naive")]
h200.with_lane(
    "Python",
    [
        (0, calls[0], "copy"),
        (calls[0], first, "left"),
        (first, second, "right"),
        (second, calls[1], "sum"),
    ],
).plot(
    title="A diamond on an H200",
    lanes=("host", "streams"),
    lesson="The order is right, but the first product is over "
    "before the second has been submitted.",
)

# %% [markdown] id=on-a-gpu-read
# The two products don't overlap. Python needed about 150 µs to submit the right arm, and both the copy and a product take only about 80 here (the matrix is smaller), so the left product was over before the right one had been submitted. No combinator can mend that. [Chapter 05](05_scheduling.ipynb) shows how to recognise it, and [chapter 09](09_cuda_graphs.ipynb) what helps.

# %% id=on-a-gpu-check tags=asserts
on_left, on_right = h200.find("matvec_naive")
assert on_left.end < on_right.start
assert (round(on_left.duration), round(on_right.duration)) == (81, 76)
launches = [span.start for span in h200.find("launch matvec_naive")]
assert 140 < launches[1] - launches[0] < 155
assert 140 < second - first < 155

# %% [markdown] id=challenge
# ## Challenge: four filters
#
# A picture of 1024 x 1024 numbers goes to the device, and four filters work on it. As it stands, this takes 657 µs. Get below 330.
#
# `picture` is a host array. `filters` is a list of four functions, each of which turns an operation that yields an array into one that yields another. `join(p, q)` adds two results. It takes results or operations, and returns an operation. Return *one* operation that yields `(f0 + f1) + (f2 + f3)` on the host, added in this order.
#
# The cell below makes four filters to try it with: `watch(lambda: filtered(matrix, filters, total)).plot()` draws a timeline for our matrix of 2048 x 2048.

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
# Look at a timeline of the starter. What is done four times that could be done once? And which things happen in a row that could happen side by side?
#
# You need `agt.h2d(picture).shared()`, and the four filters in an `agt.overlap`.
#
# `arms = agt.overlap(*[f(source) for f in filters])`, then `.and_then(lambda r: join(join(r[0], r[1]), join(r[2], r[3])))`, then `.to_host()`.

# %% id=04-challenge explanation
# The course's answer makes one copy, overlaps the filters, and then adds up and copies back. It takes 236 µs, and Python needs 135 of them to get to the last filter, and 229 to get to the copy back. So now it's the device that waits for Python. Chapter 05 is about walls like that one.

# %% id=04-challenge-check
check("04-challenge", filtered)

# %% [markdown] id=key-points
# ## Key points
#
# - `and_then` runs the operation that its function returns. `map` takes whatever its function returns as the result. Both functions are called with handles when the work is submitted, and look up their variables only then.
# - A stage knows only its baton, the result of the stage before. A launch passes on all the arrays that it was given.
# - Use `zip` when you want several results together, in order, on one stream. Use `overlap` when you want the work to happen at the same time. It gives each arm a stream, and forks and joins them by events.
# - If an operation appears twice, it runs twice. `shared()` runs it once, and makes readers on other streams wait for it by an event.
#
# If a word is new, look in the [glossary](../docs/glossary.md). If something seems wrong, the [misconceptions](../docs/misconceptions.md) page probably has it.
#
# **Next:** [04b_sharing_and_owning.ipynb](04b_sharing_and_owning.ipynb). You've passed arrays from stage to stage, and they've come back each time. What if two operations want the same one?

# %% id=score
score("04")

# %% id=progress
progress("04")
# %% [markdown] id=loop
# ## Encore: three in a loop
#
# A trap, for the road. Here are three operations, built in a loop. Each makes four numbers and scales them.

# %% id=loop-build
ops = []
for factor in (2, 3, 5):
    four = agt.full(4, factor)
    ops.append(four.and_then(lambda array: scaled(array, factor)).to_host())

# %% id=04-loop-first guess
# Now we run the three. What is the first number of each result? Type three numbers.

# %% id=04-loop-first reveal
reveal("04-loop-first", " ".join(str(round(float(op.sync()[0]))) for op in ops))

# %% id=04-loop-first told truth="10 15 25"
# They hold 2, 3 and 5, and each was scaled by 5.
#
# > **Misconception: a lambda keeps the value that a variable had when you wrote it.**
# >
# > - *What you see:* all the operations you built in a loop do what the last one should do.
# > - *Why:* `agt.full(4, factor)` is called inside the loop, so it gets the number. But `lambda array: scaled(array, factor)` remembers only the *name* `factor`, and looks it up when it's called, which is when the operation runs. By then the loop is over and `factor` is 5. Python always works this way, but with lazy operations it's easier to trip over.
# > - *What helps:* a function that has `factor` as a parameter, because each call of it gets a `factor` of its own.
#
# ```python
# def squared(factor):
#     return agt.full(4, factor).and_then(lambda array: scaled(array, factor)).to_host()
# ```

# %% [markdown] id=exercise-loop
# ### Exercise: mend the loop
#
# `all_scaled(x, factors, scaled)` should return one operation that yields a tuple: for each of the factors, `x` scaled by that factor, on the host. As it stands, it falls into the trap. (The function `scaled(array, factor)` works in place.)

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
# Give each operation its own `factor`: move the body of the loop into a function with that parameter.
#
# `def one(factor): return agt.h2d(x).and_then(lambda array: scaled(array, factor)).to_host()`, and then `agt.zip(*[one(factor) for factor in factors])`.

# %% id=04-loop explanation
# Now each operation has a factor of its own. People do this in three ways: with a parameter, with a default (`lambda array, factor=factor: ...`), or with `functools.partial`.

# %% id=04-loop-check
check("04-loop", all_scaled)
