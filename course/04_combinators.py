"""Source of notebooks/04_combinators.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Combinators: recipes made of recipes
#
# **After this page you can**
#
# - put stages into a chain with `and_then` and `map`, and hand on what the next stage needs;
# - feed kernels with operations, put several results together with `zip`, and take them apart again;
# - say what `zip` does not do, and use `overlap` where you want that;
# - use one result in two places, computed once and without a race;
# - rewrite a chain by its laws, and show with traces that nothing has changed;
# - choose whether to give an array away, to share it, or to lend it.
#
# | | |
# |---|---|
# | Time | 70 minutes |
# | You need | [03_lazy_operations](03_lazy_operations.ipynb) |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=why
# ## Small recipes, large ones
#
# You can describe a copy, a fill, a launch. A program is many of those, and they depend on each other: this launch wants what that copy
# brings. A **combinator** makes one operation out of others. There are not many of them, and each answers one question:
#
# | | the question |
# |---|---|
# | `op.and_then(f)` | and what is to be done with the result? |
# | `op.map(f)` | can I have the result in another form, without any work? |
# | `agt.zip(a, b)` | both results, please |
# | `op.unzip()`, `op.first()`, `op.last()` | only a part of it |
# | `op.shared()` | the same result, in several places |
# | `agt.overlap(a, b)` | both results, and can neither wait for the other? |
#
# What comes out is an operation again. It can be combined further, and as long as nobody runs it, nothing happens.
#
# Two little kernels will be the bricks of this page: one multiplies an array by a number, in place; one adds two arrays.

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

# %% [markdown] id=and-then
# ## `and_then`: what next?
#
# `op.and_then(f)` is `op`, followed by the operation that `f` makes of its result. So `f` writes the next part of the recipe, given the name
# of what the first part yields. Here are four stages in a chain:


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


print(times_six(agt.pin(np.arange(6, dtype=np.float32))).sync())

# %% [markdown] id=and-then-read
# Read it from top to bottom: copy it there, and then scale it by 2, and then by 3, and then copy it back. Where a function does nothing
# but call another one, the other will do: `agt.d2h` takes an array and returns an operation, which is just what
# `and_then` wants. (`op.to_host()` is short for `op.and_then(agt.d2h)`.)
#
# Is the device done with the first stage when the function for the second is called? Let us have that function leave a mark on the host's lane.

# %% id=predict-when
when = Prediction(
    "A large copy to the device, `and_then` a function. When is the function called?",
    after="when the copy is done, because it needs the result",
    before="before the copy is done, because it only describes what comes next",
)
when

# %% id=predict-when-commit
when.commit(...)

# %% id=when-run
MARK = "mark"
large = agt.pin(np.ones(4_000_000 if not device.simulated else 1_000_000, np.float32))


def next_stage(array):
    agt.work(10, MARK)
    return scaled(array, 2)


def with_a_mark():
    return agt.h2d(large).and_then(next_stage).to_host()


for _ in range(4):
    with_a_mark().sync()  # a real GPU is slow the first time, so this is not recorded

with agt.record() as chain:
    with_a_mark().sync()

# %% id=reveal-when
(mark,) = chain.find(MARK)
(copy,) = chain.find("h2d")
when.reveal(
    "after" if mark.start >= copy.end else "before",
    f"It was called at {mark.start:.0f} µs, and the copy ended at {copy.end:.0f} µs.",
)

# %% id=when-picture
chain.plot(title="A chain of three", lanes=("host", "streams"), highlight=MARK)

# %% [markdown] id=when-read
# The function is called before the copy is done. It is called when the work is *submitted*, and what it gets is a **handle**: the
# name of an array that nothing has been written to yet. For describing the next stage that is all it takes. So a whole chain is in the queue
# early, as a rule before its first stage is done, and between the stages the device does not have to wait for Python.

# %% id=when-check
submitted = max(span.end for span in chain if span.kind == "call")
print(
    f"the last call returned at {submitted:.0f} µs, and the first stage was done at {copy.end:.0f} µs"
)
if device.simulated:
    assert submitted < copy.end

# %% [markdown] id=baton
# ## The baton
#
# Yet the kernel does not start too early. Why not? Because the chain is like a team in a relay race: there is *one* baton. It is the
# stream. The chain gets it when it is run, and hands it from stage to stage, so all stages are in one queue, and a queue keeps its order. You
# did not write an event, and there is none.

# %% id=baton-check
assert len(chain.streams) == 1
assert [span.name for span in chain.device_spans] == ["h2d", "scale", "d2h"]
assert chain.runs_before("h2d", "scale")
assert chain.runs_before("scale", "d2h")
print("three stages on stream", *chain.streams, "in order")

# %% [markdown] id=baton-carry
# The baton is passed by itself. *Arrays* are not. A function gets the result of the stage before it, and nothing else. So if the stage
# after next needs an array, the stage in between has to hand it on. `value` is good for that: `agt.value((a, b))` is an
# operation that yields both.
#
# Below, `agt.dup` yields an array and a copy of it. The next stage works on the copy alone, and hands on both:


# %% id=baton-carry-run
def keep_and_scale(arrays):
    original, copied = arrays
    return scaled(copied, 10).and_then(lambda tens: agt.value((original, tens)))


def to_host(arrays):
    original, tens = arrays
    return agt.zip(agt.d2h(original), agt.d2h(tens))


op = agt.arange(4).and_then(agt.dup).and_then(keep_and_scale).and_then(to_host)
original, tens = op.sync()
print(original, tens)
assert list(tens) == list(10 * original) == [0, 10, 20, 30]

# %% [markdown] id=map
# ## `map`: only the handle
#
# Often no work is needed, just another form of the result: an entry of a tuple, another shape, an array instead of its
# partition. `op.map(f)` is for that. Its `f` returns the new result itself, not an operation.

# %% id=map-run
with agt.record() as trace:
    table = agt.arange(6).map(lambda array: array.reshape(2, 3)).to_host().sync()

print(table)
print("work on the device:", [span.name for span in trace.device_spans])
assert [span.name for span in trace.device_spans] == ["arange", "d2h"]

# %% [markdown] id=misconception-map
# > **Misconception: `map` and `and_then` are the same.**
# >
# > - *What you see:* a result that is not an array but a `DeviceOp`, and work that is missing from the timeline. Or, the other way round, the
# >   complaint that a function has not returned an operation.
# > - *Why:* what the function of `map` returns *is* the result. If it is a recipe, then the result is a recipe, and nobody cooks it.
# > - *What helps:* ask what the function returns. An operation: `and_then`. Anything else: `map`.

# %% id=misconception-map-run
with agt.record() as trace:
    uncooked = agt.arange(6).map(agt.d2h).sync()

print("map(d2h) gives", uncooked, "and the device did", [span.name for span in trace.device_spans])
assert isinstance(uncooked, agt.DeviceOp)
assert trace.find("d2h") == []

try:
    agt.arange(6).and_then(lambda array: array.reshape(2, 3)).sync()
except agt.errors.NotAnOperationError as error:
    print("and_then(reshape) says:", error)
else:
    raise AssertionError("this should have been refused")

# %% [markdown] id=kernel-ops
# ## Kernels take operations
#
# In place of an array a kernel also takes an operation that yields one. You have used that since the first page. And what it yields are the
# arrays that it was given, all of them, in the order of its parameters and in the form in which they came:

# %% id=kernel-ops-run
launch = add(6, agt.arange(6), agt.ones(6), agt.zeros(6).partition(256))
with agt.record() as direct:
    x, y, z = launch.sync()
print(x, y, z, sep="\n")
assert [type(array) for array in (x, y, z)] == [agt.DeviceArray, agt.DeviceArray, agt.types.Partition]

numbers = agt.d2h(z.unpartition()).sync()
print(numbers)
assert list(numbers) == [1, 2, 3, 4, 5, 6]
assert [span.name for span in direct.device_spans] == ["arange", "fill", "memset", "add"]
assert len(direct.streams) == 1

# %% [markdown] id=kernel-ops-read
# So a launch is itself a stage that hands on what it got. Mostly you want one array of these, the one that the kernel writes: `launch.output()` yields that
# one alone, with its blocks put together again. The arguments are submitted from left to right, and then the launch, on one stream. (`ones` is called `fill` in a trace, and `zeros` is called `memset`, after what the device does for
# them.)

# %% [markdown] id=exercise-baton
# ### Exercise: pass the baton
#
# A **residual connection** is a way around a layer: the result is `x + relu(x)`, so the second stage needs what the first one got, too. Write
# `residual(x, add)`: an operation that uploads the host array `x` *once*, applies `agt.relu`, adds with `add` (the kernel from above), and
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
# `agt.relu(n, x, out)` yields *both* arrays that it was given. The second stage needs both, so pass on both.
#
# After the launch the second entry is a partition. A `map` can make an array of it and leave the first as it is: `lambda used: (used[0],
# used[1].unpartition())`.
#
# `agt.relu(n, agt.h2d(x), agt.zeros(n).partition(256))`, then that `map`, then `.and_then(lambda arrays: add(n, *arrays,
# agt.zeros(n).partition(256)).output())`, and at the end `.to_host()`.

# %% id=04-baton explanation
# `x` is uploaded once and goes through the first launch to the second: a launch yields all its arrays, so nothing is lost on the way.
# `map` changed the handles, and cost no work on the device.

# %% id=04-baton-check
check("04-baton", residual)

# %% [markdown] id=saxpy-text
# ## Asynchronous SAXPY
#
# **SAXPY** is the *hello world* of this trade: `y = a * x + y`, for a number `a` and two vectors (**s**ingle precision, **a** times **x**
# **p**lus **y**). Every CUDA course has it. Ours comes in two parts: the kernel, and the asynchronous program around it.

# %% [markdown] id=exercise-saxpy-kernel
# ### Exercise: SAXPY, the kernel
#
# Fill in the body. Note that `y` is both: read, and written.

# %% id=04-saxpy-kernel starter
my_saxpy = agt.Kernel(r"""
extern "C" __global__ void my_saxpy(unsigned int n, float a, const float* x, float* y)
{
    // your code
}
""")

# %% id=04-saxpy-kernel solution
my_saxpy = agt.Kernel(r"""
extern "C" __global__ void my_saxpy(unsigned int n, float a, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + y[i];
    }
}
""")

# %% id=04-saxpy-kernel hints
# One thread for each element, and the bounds check, as in every kernel so far.
#
# `y` comes in with numbers. Read `y[i]`, and write `y[i]`.
#
# `if (i < n) { y[i] = a * x[i] + y[i]; }`

# %% id=04-saxpy-kernel explanation
# `y` is input and output. Each thread touches its own element only, so reading and writing do not get into each other's way.

# %% id=04-saxpy-kernel-check
check("04-saxpy-kernel", my_saxpy)

# %% [markdown] id=exercise-saxpy
# ### Exercise: SAXPY, asynchronous
#
# Here is the program as one writes it first: four steps, four waits. Make it lazy. `async_saxpy` is to return *an operation*, which uploads `x` and
# `y` (host arrays), launches `saxpy` (your kernel, or one like it), and yields the new `y` on the host. Whoever gets it may `await` it.


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
# `saxpy(n, a, agt.h2d(x), agt.h2d(y).partition(256))`, and then `.output().to_host()`.

# %% id=04-saxpy explanation
# Every `sync` is gone, and what is left is shorter. Whoever gets the operation decides how to run it: `sync`, `await`, `spawn`, or as a
# part of something larger.

# %% id=04-saxpy-check
check("04-saxpy", async_saxpy)

# %% [markdown] id=laws
# ## The laws
#
# How do you know that you may rewrite a chain, pull two stages out into a function, or put the bracket elsewhere? For sums there are laws,
# such as (a + b) + c = a + (b + c). For `and_then` there are three:
#
# | law | in words |
# |---|---|
# | `value(x).and_then(f)` is `f(x)` | `value` adds nothing at the front |
# | `op.and_then(value)` is `op` | nor at the end |
# | `op.and_then(f).and_then(g)` is `op.and_then(lambda x: f(x).and_then(g))` | it does not matter where the bracket is |
#
# (Mathematicians call whatever obeys these a **monad**. You need not.) For us "is" means more than equal numbers: the *traces* are equal. Which would
# you say is quicker?

# %% id=predict-bracket
bracket = Prediction(
    "Three stages: `op.and_then(f).and_then(g)`, or `op.and_then(lambda x: f(x).and_then(g))`. "
    "Which takes less time?",
    chain="the first: a chain is flat, the other one is nested",
    same="neither: the same work reaches the stream in the same order",
    nested="the second: `f` and `g` are one stage in it",
)
bracket

# %% id=predict-bracket-commit
bracket.commit(...)

# %% id=laws-run
one_stream = agt.SingleStream()


def trace_of(op):
    with agt.record() as trace:
        op.sync(one_stream)
    return trace


def what_happened(trace):
    """What and in which order; on the simulated device, where times are exact, also when."""
    if device.simulated:
        return [(s.kind, s.name, round(s.start, 3), round(s.end, 3)) for s in trace]
    return [(s.kind, s.name) for s in trace if s.kind != "wait"]


def f(array):
    return scaled(array, 2)


def g(array):
    return scaled(array, 3)


x = agt.pin(np.arange(100_000, dtype=np.float32))
copy_in = agt.h2d(x)

laws = {
    "value at the front": (lambda: agt.value(x).and_then(agt.h2d), lambda: agt.h2d(x)),
    "value at the end": (lambda: copy_in.and_then(agt.value), lambda: copy_in),
    "where the bracket is": (
        lambda: copy_in.and_then(f).and_then(g).to_host(),
        lambda: copy_in.and_then(lambda array: f(array).and_then(g)).to_host(),
    ),
}
for left, right in laws.values():
    trace_of(left()), trace_of(right())  # a first time, not compared
both_sides = {name: (trace_of(left()), trace_of(right())) for name, (left, right) in laws.items()}

# %% id=reveal-bracket
left, right = both_sides["where the bracket is"]
quicker = "chain" if left.metrics().makespan < right.metrics().makespan else "nested"
truth = "same" if what_happened(left) == what_happened(right) else quicker
bracket.reveal(
    truth,
    f"Both have the same {len(left)} spans in the same order: "
    f"{left.metrics().makespan:.0f} and {right.metrics().makespan:.0f} µs from start to end.",
)

# %% id=laws-check
for name, (left, right) in both_sides.items():
    assert what_happened(left) == what_happened(right), name
    print(f"{name}: equal traces, {[span.name for span in left.device_spans]}")

# %% [markdown] id=laws-use
# (On a GPU the times differ a little from run to run, so there we compare what was done, and in which order.)
#
# This is what the laws are good for. A long chain may be cut anywhere, and a piece of it be made a function, with a name and a test of its own. And there is a
# fourth, which you have used all the time: a kernel that takes operations is a `zip` of them, followed by the launch.


# %% id=laws-zip
def parts():
    return agt.arange(1000), agt.ones(1000), agt.zeros(1000).partition(256)


trace_of(add(1000, *parts()))  # a first time, not compared
direct = trace_of(add(1000, *parts()))
spelled_out = trace_of(agt.zip(*parts()).and_then(lambda arrays: add(1000, *arrays)))
print([span.name for span in direct.device_spans])
print([span.name for span in spelled_out.device_spans])
assert what_happened(direct) == what_happened(spelled_out)

# %% [markdown] id=zip
# ## `zip`: several results
#
# `agt.zip(a, b, ...)` is one operation that yields a tuple with one result for each, as Python's own `zip` does with lists. What goes in,
# `a` and `b` and so on, are its **arms**.

# %% id=zip-run
ones_and_numbers = agt.zip(agt.ones(4), agt.arange(4))
first, second = ones_and_numbers.sync()
print(first, second, sep="\n")

# %% [markdown] id=exercise-four
# ### Exercise: four arrays, one operation
#
# Here four arrays are made, with four waits. Rewrite it as one operation that yields all four, in this order, on one stream.


# %% id=04-four-arrays starter
def four_arrays():
    a = agt.ones((100, 100)).sync()
    b = agt.zeros((100, 100)).sync()
    c = agt.randn((100, 100), mean=0.0, std=1.0).sync()
    d = agt.arange(10_000).sync()
    return a, b, c, d


# %% id=04-four-arrays solution
def four_arrays():
    return agt.zip(
        agt.ones((100, 100)),
        agt.zeros((100, 100)),
        agt.randn((100, 100), mean=0.0, std=1.0),
        agt.arange(10_000),
    )

# %% id=04-four-arrays hints
# Without the `sync`s there are four operations. What makes one operation of several?
#
# `agt.zip(a, b, c, d)` yields a tuple of four.
#
# `return agt.zip(agt.ones((100, 100)), agt.zeros((100, 100)), ...)`

# %% id=04-four-arrays explanation
# One operation, one stream, one wait instead of four. Four streams would not have helped: the host needs longer to submit such an array
# than the device needs to fill it.

# %% id=04-four-arrays-check
check("04-four-arrays", four_arrays)

# %% [markdown] id=zip-overlap-text
# ## In turn, or together?
#
# Two operations in a `zip` need nothing of each other. So they could be done at the same time. Are they?

# %% id=predict-zip
together = Prediction(
    "Two operations, each a copy to the device and a copy back, in a `zip`. "
    "Does the device ever work on both at the same time?",
    yes="the first copies back while the second copies in: there is an engine for each direction",
    no="one after the other",
)
together

# %% id=predict-zip-commit
together.commit(...)


# %% id=zip-overlap-run
def there_and_back():
    return agt.h2d(large).to_host()


for combine in (agt.zip, agt.overlap):
    for _ in range(2):
        combine(there_and_back(), there_and_back()).sync()  # not recorded

with agt.record() as zipped:
    agt.zip(there_and_back(), there_and_back()).sync()
with agt.record() as overlapped:
    agt.overlap(there_and_back(), there_and_back()).sync()

# %% id=reveal-zip
m = zipped.metrics()
together.reveal(
    "yes" if m.overlap > 0 else "no",
    f"The trace has {len(zipped.streams)} stream, and {m.overlap:.0f} µs of overlap.",
)

# %% [markdown] id=misconception-zip
# ## What `zip` does not do
#
# > **Misconception: `zip` runs its arms at the same time.**
# >
# > - *What you see:* two operations that need nothing of each other, and a timeline with one stream.
# > - *Why:* `zip` is about results. It is one operation, so it gets one baton, and its arms run one after the other.
# > - *What helps:* `overlap`. It looks like `zip`, and asks the chef for a stream for each arm. Whatever comes after it waits for all of them, on the
# >   device.

# %% id=zip-overlap-picture
agt.compare_timelines([zipped, overlapped], ["zip", "overlap"])

# %% [markdown] id=zip-overlap-read
# Below, the second operation is on a stream of its own. Its copy to the device starts as soon as the first one has left the engine, and
# runs beside the first one's copy *back*. (Two copies in one direction never overlap: there is one engine for each.)

# %% id=zip-overlap-check
assert len(zipped.streams) == 1
assert zipped.metrics().overlap == 0
assert len({span.stream for span in overlapped.device_spans}) == 2
if device.simulated:
    back, into = overlapped.find("d2h")[0], overlapped.find("h2d")[1]
    assert overlapped.overlap_between(back, into) > 0
    assert overlapped.metrics().makespan < zipped.metrics().makespan
    assert overlapped.overlap_between(*overlapped.find("h2d")) == 0

# %% [markdown] id=overlap-cost
# Why is `zip` not simply `overlap`, then? Because streams are not free: there are events to record and to wait for, and
# an order that can no longer be read off the page. Here are the four little arrays of the exercise, both ways:

# %% id=overlap-cost-run
four = agt.ones((100, 100)), agt.zeros((100, 100)), agt.randn((100, 100)), agt.arange(10_000)


def measured(combine):
    combine(*four).sync()  # not recorded
    with agt.record() as trace:
        combine(*four).sync()
    return trace.metrics()


totals = {}
for name, combine in [("zip", agt.zip), ("overlap", agt.overlap)]:
    tries = [measured(combine) for _ in range(10)]
    m = totals[name] = min(tries, key=lambda m: m.makespan)  # a real host has hiccups: the best of ten
    print(
        f"{name:8} {m.makespan:5.0f} µs, of which two streams were at work for {m.overlap:.0f} µs"
    )

print("sooner done:", min(totals, key=lambda name: totals[name].makespan))
if device.simulated:
    assert totals["overlap"].overlap == 0
    assert totals["zip"].makespan < totals["overlap"].makespan

# %% [markdown] id=overlap-cost-read
# To fill such an array takes the device less time than Python needs to submit the next one. So there is next to nothing to overlap, and what
# `overlap` adds is the price of its events. As a rule of thumb: `zip`, unless both arms keep the device busy for long.

# %% [markdown] id=exercise-overlap
# ### Exercise: `zip` or `overlap`?
#
# `a` and `b` are operations that yield an array each. `join(p, q)` is a function that takes two arrays and returns an operation.
# Write `side_by_side(a, b, join)`: *one* operation in which `a` and `b` are at work at the same time, and then `join` gets both results. The host
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
# `overlap` forks and joins by events, on the device. What comes after it in the chain finds both results there, and the host has waited
# for nothing.

# %% id=04-zip-or-overlap-check
check("04-zip-or-overlap", side_by_side)

# %% [markdown] id=unzip
# ## Taking apart
#
# `unzip` is the way back: from one operation that yields a tuple to one operation for each entry. `first()` and `last()` are for those who want just
# one entry. Here is `agt.dup`, which yields an array and a copy of it:

# %% id=unzip-run
pair = agt.arange(4).and_then(agt.dup)
original, copied = pair.unzip(2)
with agt.record() as trace:
    print(agt.zip(original.to_host(), copied.to_host()).sync())

print([span.name for span in trace.device_spans])
assert len(trace.find("arange")) == len(trace.find("d2d")) == 1

# %% [markdown] id=unzip-read
# Both parts stem from one run of `pair`: whoever is first has it run, and the other one takes what is there. (The `2` has to be said because nobody
# can know how long the tuple is before the function in the chain has run. For a kernel, or a `zip`, it is known.)

# %% [markdown] id=exercise-unzip
# ### Exercise: take it apart
#
# `pair` is an operation that yields two arrays. `f` and `g` are functions that take an operation and return an operation. Write `halves(pair, f, g)`: one
# operation that yields the results of `f` for the first array and of `g` for the second. `pair` is to run once.


# %% id=04-unzip starter
def halves(pair, f, g):
    return agt.zip(f(pair.first()), g(pair.last()))  # runs pair twice: look at a trace


# %% id=04-unzip solution
def halves(pair, f, g):
    a, b = pair.unzip(2)
    return agt.zip(f(a), g(b))

# %% id=04-unzip hints
# `first()` and `last()` each make an operation of their own of `pair`: it would run twice.
#
# `unzip` makes one operation for each entry, and these share one run of `pair`.
#
# `a, b = pair.unzip(2)`, then `return agt.zip(f(a), g(b))`.

# %% id=04-unzip explanation
# Both parts know the same source, which runs when the first of them is needed, and never again. `unzip(2)` says how many there are, since
# nobody can know that before the chain has run.

# %% id=04-unzip-check
check("04-unzip", halves)

# %% [markdown] id=shared-text
# ## One result, two users
#
# A copy to the device takes its time, and two kernels want the array. In a program with variables one writes the name twice. What happens if you write an
# *operation* twice?

# %% id=predict-twice
twice = Prediction(
    "`source = agt.h2d(x)`, and then `agt.zip(source, source)`. How many copies to the device?",
    twice="two: it is a recipe, and it is cooked for each",
    once="one: it is one operation, and both entries are its result",
)
twice

# %% id=predict-twice-commit
twice.commit(...)

# %% id=twice-run
source = agt.h2d(x)
with agt.record() as written_twice:
    agt.zip(source, source).sync()

source = agt.h2d(x).shared()
with agt.record() as written_shared:
    both = agt.zip(source, source).sync()

# %% id=reveal-twice
copies = len(written_twice.find("h2d"))
twice.reveal({1: "once", 2: "twice"}[copies], f"Copies in the trace: {copies}.")

# %% [markdown] id=misconception-twice
# > **Misconception: to write an operation twice is to use its result twice.**
# >
# > - *What you see:* work in the timeline that is done twice, and twice the memory.
# > - *Why:* an operation is a recipe. Two mentions, two meals.
# > - *What helps:* `op.shared()`. That is an operation as well, but it runs at most once, whoever comes first, and everybody gets the same result.

# %% id=misconception-twice-run
print("written twice: ", [span.name for span in written_twice.device_spans])
print("with shared(): ", [span.name for span in written_shared.device_spans])
print("and both get", both[0])
assert len(written_twice.find("h2d")) == 2
assert len(written_shared.find("h2d")) == 1
assert both[0].mode == "shared"

# %% [markdown] id=diamond-text
# ## A diamond
#
# A source, two sides that use it, and a join that uses both: drawn on paper, that is a diamond.
#
# ```text
#           source
#          /      \
#       left      right
#          \      /
#            join
# ```
#
# It is the smallest program in which order and overlap both matter. Below, `source` is a large matrix on its way to the device. Each side multiplies it
# with a vector, which takes a while. The join adds the two products. The sides are to be at work together; neither may
# start before the matrix is there; and the join must not start before both are done.

# %% id=diamond-run
N = 2048
matrix = agt.pin(np.eye(N, dtype=np.float32))


def product(matrix, number):
    launch = agt.matvec_naive(N, N, matrix, agt.full(N, number), agt.zeros(N).partition(128))
    return launch.output()


def sum_of_products():
    source = agt.h2d(matrix).shared()
    sides = agt.overlap(product(source, 2.0), product(source, 3.0))
    return sides.and_then(lambda sums: add(N, *sums, agt.zeros(N).partition(256)).output())


for _ in range(2):
    sum_of_products().sync()  # not recorded

with agt.record() as diamond_trace:
    result = sum_of_products().to_host().sync()

assert (result == 5).all()  # 2 + 3, as the matrix changes nothing

# %% id=diamond-picture
diamond_trace.plot(title="A diamond", lanes=("host", "streams"))

# %% [markdown] id=diamond-read
# There is one copy. It is on the stream of the side that was submitted first. The other side's stream waits for it: that is an arrow, and stands for an event which `shared`
# has recorded behind the source. Then both products are computed at the same time, if the device has room. Two more arrows go to the stream of
# the join, which `overlap` has waiting for both.
#
# Count what you wrote yourself: no stream, no event, no wait. And yet every arrow is there, because each follows from who uses whose
# result.

# %% id=diamond-check
(source_copy,) = diamond_trace.find("h2d")
left, right = diamond_trace.find("matvec_naive")
(join,) = diamond_trace.find("add")
assert left.stream != right.stream
assert source_copy.stream == left.stream
for early, late in [(source_copy, left), (source_copy, right), (left, join), (right, join)]:
    assert diamond_trace.happens_before(early, late)
assert not diamond_trace.happens_before(left, right)
print(f"both sides at work together: {diamond_trace.overlap_between(left, right):.0f} µs")
if device.simulated:
    assert diamond_trace.overlap_between(left, right) > 0

# %% [markdown] id=diamond-happens
# `happens_before` is a stronger statement than "was earlier". It says that the later one *could not* have started before the earlier one had ended, whatever
# takes how long. And of the two sides it says that nothing orders them.

# %% [markdown] id=exercise-diamond
# ### Exercise: a diamond
#
# `source` is an operation that yields an array. `left` and `right` are functions that take an operation and return an operation. `join(p, q)`
# takes two results (arrays, or operations that yield them) and returns an operation.
#
# Write `diamond(source, left, right, join)`: one operation. The source runs once, the sides are on two streams, and the join gets both. The check
# also uses devices that do things in an order that nobody hopes for.


# %% id=04-diamond starter
def diamond(source, left, right, join):
    return join(left(source), right(source))


# %% id=04-diamond solution
def diamond(source, left, right, join):
    s = source.shared()
    return agt.overlap(left(s), right(s)).and_then(lambda both: join(*both))

# %% id=04-diamond hints
# Three things: the source must run once, the sides need two streams, the join needs both.
#
# `source.shared()` can be used in many places, and runs at most once. Is there a way to have two operations on two streams, as *one*
# operation?
#
# `s = source.shared()`, then `agt.overlap(left(s), right(s))`, then `.and_then(lambda both: join(*both))`.

# %% id=04-diamond explanation
# The first side to be submitted runs the source on its stream. The other one makes its own stream wait for an event behind it: no race,
# and no second upload.

# %% id=04-diamond-check
check("04-diamond", diamond)

# %% [markdown] id=ownership
# ## Whose array is it?
#
# Memory on the device has to live until the last kernel that uses it is done, and then it should go. Somebody has to know when that is. The rule of this course: **an
# array has an owner, and passing it to an operation gives it away.** So at any time one party is responsible. What you get from an operation is yours:

# %% id=owned
mine = agt.ones(4).sync()
print(mine)
total = agt.d2h(mine).sync()
print(mine)
try:
    agt.d2h(mine)
except agt.errors.UseAfterMoveError as error:
    print(error)
else:
    raise AssertionError("a second use should have been refused")

# %% [markdown] id=ownership-table
# The error is at the line that uses the array once too often, not somewhere on the device later. There are two other ways to pass an array, for when it is needed again:
#
# | | you write | what the operation gets | and you? |
# |---|---|---|---|
# | **owned** | `x` | the array | it is gone; the result hands it back |
# | **shared** | `x = x.share()`, once, and then `x` | one more handle to it, *for reading* | you have such a handle, too; the array lives until the last is gone |
# | **borrowed** | `x.borrow()` | the right to use it | you keep it, and may not give it away meanwhile |
#
# None of the three copies anything. Whatever way you pass an array to a kernel, you get it back in the same way.

# %% id=ownership-run
with agt.record() as trace:
    shared = agt.ones(4).sync().share()
    another = shared.share()
    print(shared)
    owner = agt.arange(4).sync()
    lent = owner.borrow()
    print(lent)
    total = add(4, shared, lent, agt.zeros(4).partition(256)).output().sync()

print(agt.d2h(total).sync(), "and the owner still has", owner)
assert trace.find("d2d") == []
assert shared.share_count == 2
assert not owner.moved

# %% [markdown] id=ownership-when
# Which one? *Owned* along a chain, where each stage hands on to the next. *Shared* for what many read and nobody needs to own, such as weights. (`op.shared()`, which runs
# once, does that to its result. Do not mix it up with `op.share()`: that only makes a shared handle of the array, and the operation still runs
# each time.) *Borrowed* where you are going to need the array yourself. A loan has one catch: it must not outlive the owner. So it cannot be given to `spawn`,
# which may go on for longer than you do; chapter 06 comes back to that.

# %% [markdown] id=exercise-lend
# ### Exercise: lend it
#
# `matrix` is an array on the device (`n` x `n`), `xs` is a list of host vectors. Write `apply_all(matrix, xs)`: one operation that yields a tuple with the product of the matrix
# and each vector, on the host. The caller goes on using `matrix` afterwards.


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
# `share()` would do for the launches, but it also takes the owner's handle.
#
# Pass `matrix.borrow()` to each launch, and `agt.zip` the operations.

# %% id=04-lend explanation
# A loan leaves the owner the owner. `share()` is for an array that nobody needs to own any more, such as weights; `agt.dup` is for those
# who want to write.

# %% id=04-lend-check
check("04-lend", apply_all)

# %% [markdown] id=key-points
# ## Key points
#
# - `and_then` runs the operation that its function returns; `map` takes what its function returns as it is. Both functions run when the work is submitted, and get
#   handles.
# - A chain has one baton, its stream: that is what keeps its stages in order. Arrays have to be handed on, and a launch hands on all that it was given.
# - The laws say that a chain may be cut and bracketed anywhere: the trace stays the same.
# - `zip` is for results, in order, on one stream. `overlap` is for time: a stream for each arm, forked and joined by events.
# - To write an operation twice is to run it twice. `shared()` and `unzip()` run their source once, and order its users by an event where
#   they are on other streams.
# - Owned arrays are given away, shared ones are read by many, borrowed ones come back.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so in
# the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [05_scheduling.ipynb](05_scheduling.ipynb), about the chef: who decides on which stream all this happens, and when does that pay?

# %% id=score
score(when, bracket, together, twice)

# %% id=progress
progress("04")
