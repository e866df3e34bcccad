"""Source of notebooks/07_async_mlp.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Project: an asynchronous MLP
#
# **After this page you can**
#
# - write three stages and a copy as *one* lazy operation, and run it in one line;
# - run four batches at once, which share one set of weights, and say who keeps those weights alive;
# - predict from two numbers whether more streams will make a program quicker;
# - check a result, an order and an overlap, instead of believing them;
# - take it further: more batches than fit, a kernel with tiles, two devices.
#
# | | |
# |---|---|
# | Time | 85 minutes |
# | You need | [00_start_here](00_start_here.ipynb), NumPy, and to have seen `async def` and `await` |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=what-we-build
# ## What we build
#
# An **MLP**, a multi-layer perceptron, is the plainest of neural networks. Ours takes a batch of 64 samples with 64
# numbers each, and gives one number for each sample:
#
# ```text
# x       64 x 64
#   |  times W0            kernel 1: GEMM
# hidden  64 x 64
#   |  times W1            kernel 2: MatVec
# output  64
#   |  negative to zero    kernel 3: ReLU
# result  64
# ```
#
# Three kernels, and a copy of the result to the host: four **stages**. We run them for four batches, on four
# streams, with one set of weights. (A **stream** is a queue of work on the device: in order within one, and
# without any order between two.)
#
# In NumPy it is a line. Batches and weights are made up, so that anybody can compute them again:

# %% id=numpy-version
inputs = agt.data.seed_inputs(dim=64, batches=4)
expected = np.maximum(inputs.batches @ inputs.w0 @ inputs.w1, 0)

print("batches", inputs.batches.shape, " W0", inputs.w0.shape, " W1", inputs.w1.shape)
print(expected[:, :4])

# %% [markdown] id=kernels
# ## The kernels
#
# The line has three operators, and each becomes a kernel: a function in CUDA C, written for one element, which the
# device runs in many threads. First the product of two matrices. Its traditional name is **GEMM**, *general
# matrix multiply*: `c = alpha * a @ b + beta * c`. We use it with `alpha=1` and `beta=0`.

# %% id=kernel-gemm
print(agt.sgemm_naive.source)

# %% [markdown] id=kernel-gemm-read
# One thread computes one element of `c`. It asks which `row` and which `col` are its own, steps aside if there is no such
# element, and adds up `k` products. A matrix is one long row of numbers in memory, which is why `a[row, i]` is
# written `a[row * k + i]`. It is called *naive* because it reads everything from the device's slow memory again
# and again. That is good enough here: we want to see *when* things happen.

# %% id=kernel-others
print(agt.matvec_naive.source)
print(agt.relu.source)

# %% [markdown] id=kernel-others-read
# `matvec_naive` multiplies a matrix and a vector, with one thread for each row. `relu`, the *rectified linear unit*, replaces what is negative by zero; as
# each thread reads and writes its own element only, input and output may be the same array. We shall use that.
#
# How many threads? The array that a kernel writes is split into blocks, and there is a thread for each element
# of each block:

# %% id=partition
blocks = await agt.zeros((64, 64)).partition(16, 16)
print(f"a grid of {blocks.grid} blocks, each of {blocks.block} threads")
assert blocks.grid == (4, 4, 1)

# %% [markdown] id=bridges
# ## From the host to the device and back
#
# Three ready-made operations are all the traffic we need:
#
# | | does | NumPy would say |
# |---|---|---|
# | `agt.h2d(x)` | copies a host array to a new device array | `x.copy()` |
# | `agt.zeros(shape)` | makes a device array of zeros | `np.zeros(shape)` |
# | `agt.d2h(a)` | copies a device array to the host | `a.copy()` |
#
# There is no magic in them. An operation does not know its stream while you write it; it learns it when it runs.
# `with_context` makes an operation out of a function that wants to know. Here is `h2d`, by hand:

# %% id=with-context
log = []


def upload(host, name):
    def enqueue(context):
        log.append(f"{name} goes to stream {context.stream.number}")
        array = context.empty(host.shape, host.dtype, name)
        context.copy_from_host(array, host)
        return agt.value(array)

    return agt.with_context(enqueue)


x0 = agt.pin(inputs.batches[0])
op = upload(x0, "x")
print("described:", log)
assert log == []

# %% [markdown] id=with-context-run
# The function inside has not been called. It is called when somebody runs the operation, and then it has a stream. It
# ends with `agt.value(array)`: an operation that does nothing and gives back `array`. Remember `value`, it comes again.

# %% id=with-context-ran
with agt.record() as by_hand:
    array = await op
with agt.record() as ready_made:
    await agt.h2d(x0, "x")

print("run:", log)
print(array)
assert len(log) == 1
assert [s.name for s in by_hand.device_spans] == [s.name for s in ready_made.device_spans] == ["h2d"]

# %% [markdown] id=pinned
# `agt.pin` made a copy of the batch in **pinned** memory: memory that the system promises not to move. From there the
# device fetches data by itself. An ordinary NumPy array has to be copied to such a place first, and the host waits for that. The
# course warns you if it happens in an operation that was meant to be asynchronous.

# %% id=pin-batches
batches = [agt.pin(batch) for batch in inputs.batches]

# %% [markdown] id=weights
# ## Weights: one copy, many users
#
# A device array has an owner. Pass it to an operation and it is **moved**: it is the operation's now, and you get it back
# in the result. That is how memory is never freed while the device still uses it. But four batches want the same weights,
# so these are **shared**: each user has a handle of its own to one and the same array. The array lives as long as
# there is a handle, and `share_count` says how many there are.

# %% id=upload-weights
w0, w1 = await agt.zip(
    agt.h2d(agt.pin(inputs.w0), "W0").share(),
    agt.h2d(agt.pin(inputs.w1), "W1").share(),
)
print(w0)
print(w1)
assert (w0.share_count, w1.share_count) == (1, 1)

# %% [markdown] id=weights-zip
# `zip` makes one operation of several, with a tuple of results, like Python's own. We come back to what it does *not* do.

# %% [markdown] id=compose
# ## One batch as one operation
#
# Now the stages. `and_then` puts them in a chain: `a.and_then(f)` runs `a`, hands its result to `f`, and runs the operation that
# `f` returns. The whole chain goes to *one* stream, so each stage finds what the one before has written.
#
# The first stage gets three arrays: the batch, room for the hidden values, room for the output.

# %% id=stage-gemm
def gemm(arrays, w0):
    x, hidden, output = arrays
    n = hidden.shape[0]
    launch = agt.sgemm_naive(n, n, n, 1.0, x, w0, 0.0, hidden.partition(16, 16))
    return launch.output().and_then(lambda hidden: agt.value((hidden, output)))


# %% [markdown] id=baton
# The last line is the relay baton. Of the arrays that the launch was given, `.output()` keeps the one that the kernel writes: `hidden`. The next
# stage wants two: that one, and `output`, which nobody has touched yet. `value` passes on exactly those. What is not passed on (here `x`) is freed once the device is done with the batch.
#
# The other two stages have one array to pass on each. A single block of 256 threads is more than 64 outputs need; the `if`
# in the kernel sends the rest home.

# %% id=stage-rest
def matvec(arrays, w1):
    hidden, output = arrays
    n = output.size
    return agt.matvec_naive(n, n, hidden, w1, output.partition(256)).output()


def relu(output):
    n = output.size
    blocks = output.partition(256)
    return agt.relu(n, blocks, blocks).output()


# %% [markdown] id=chain
# And the chain. The `lambda`s are there to hand over the weights as well.

# %% id=mlp
def mlp(x, w0, w1):
    n = len(x)
    return (
        agt.zip(agt.h2d(x, "x"), agt.zeros((n, n), name="hidden"), agt.zeros(n, name="output"))
        .and_then(lambda arrays: gemm(arrays, w0))
        .and_then(lambda arrays: matvec(arrays, w1))
        .and_then(relu)
        .and_then(agt.d2h)
    )


# %% [markdown] id=handles
# One thing to keep in mind: these functions run when the work is **submitted**, that is, put into the queue. At that time no
# number has been computed. They get *handles* to arrays, and may pass them on, but not look inside:

# %% id=peek
def peek(result):
    return result.max()


try:
    await agt.h2d(x0).to_host().map(peek)
except agt.errors.NotReadyError as error:
    print(type(error).__name__ + ":", error)
else:
    raise AssertionError("peeking too early should have been refused")

# %% [markdown] id=one-batch
# ## One batch, and waiting for it
#
# A real GPU is slow the first time: kernels are loaded, streams are created. So we run everything once, and record
# the second time. `named` gives an operation a name for traces and messages.

# %% id=run-one
for _ in range(4):
    await mlp(x0, w0, w1)

with agt.record() as alone:
    y = mlp(x0, w0, w1).named("batch 0").sync()

print(y[:4])
assert np.allclose(y, expected[0], atol=1e-6)

# %% id=plot-one
alone.plot(title="One batch, with sync")

# %% [markdown] id=read-one
# From the top: the host makes its calls one after the other, and then waits. The stream begins as soon as it has something
# to do. (`zeros` is a **fill** here, or `memset`.) The **engines** below show the same work from another side: which part of the device did it. A GPU has one for
# copies in each direction, besides the part that computes. Let us check the order rather than trust our eyes:

# %% id=check-one
stages = ["h2d", "memset", "memset", "sgemm_naive", "matvec_naive", "relu", "d2h"]
assert [span.name for span in alone.device_spans] == stages
assert len(alone.streams) == 1
assert alone.runs_before("sgemm_naive", "matvec_naive")
assert alone.runs_before("matvec_naive", "relu")
assert alone.metrics().host["wait"] > 0
print("seven pieces of work, one stream, in the order of the chain")

# %% [markdown] id=four-in-a-row
# ## Four batches, one `await` after the other
#
# Operations go to four streams in turn, unless you say otherwise: the first to one, the second to the next, and so
# on (*round robin*). And `await` does not block. Put these together, and this loop looks promising:

# %% id=one-after-another
async def one_after_another(batches, w0, w1):
    results = []
    for i, x in enumerate(batches):
        results.append(await mlp(x, w0, w1).named(f"batch {i}"))
    return np.stack(results)


# %% id=predict-await
in_a_row = Prediction(
    "Four batches, four streams, one `await` after the other. Do batches overlap on the device?",
    yes="they are on different streams, so they do",
    no="each is finished before the next one starts",
)
in_a_row

# %% id=commit-await
in_a_row.commit(...)

# %% id=run-await
with agt.record() as awaited:
    results = await one_after_another(batches, w0, w1)

assert np.allclose(results, expected, atol=1e-6)

# %% id=reveal-await
overlap = awaited.metrics().overlap
in_a_row.reveal(
    "yes" if overlap > 1 else "no",
    f"The trace has {len(awaited.streams)} streams, and {overlap:.0f} µs in which two were at work.",
)

# %% [markdown] id=misconception-await
# > **Misconception: `await` makes things run at the same time.**
# >
# > - *What you see:* several streams in the timeline, used one after the other.
# > - *Why:* `await` says "I do not go on without this result". Other tasks may use the time, but here there are none.
# > - *What helps:* start everything first, then wait. The next section does.

# %% id=plot-await
assert len(awaited.streams) == 4
assert overlap < 1

awaited.plot(title="One await after the other", lanes=("host", "streams"))

# %% [markdown] id=all-at-once
# ## Four batches at once
#
# A `TaskGroup` is Python's own way to start several things and wait for all. Each task submits its batch and waits. While one
# waits, the **event loop**, which runs the tasks in turn, goes on with the next. Should a batch fail, the others are cancelled, and
# you get the error.

# %% id=task-group
async def infer(i, x, w0, w1):
    return await mlp(x, w0, w1).named(f"batch {i}")


async def all_at_once(batches, w0, w1):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(infer(i, x, w0, w1)) for i, x in enumerate(batches)]
    return np.stack([task.result() for task in tasks])


# %% [markdown] id=exercise-in-flight
# ### Exercise: any number, all in flight
#
# Write it for a list of *any* operations: have all of them in flight together, and return their results in the order of the
# list. `agt.spawn(op)` makes a task of an operation. The check also uses a device that does things in an order that
# nobody hopes for. (`hint("07-in-flight")` helps if you are stuck, and after an attempt there is `solution("07-in-flight")`.)

# %% id=07-in-flight starter
async def run_all(ops):
    results = []
    for op in ops:
        results.append(await op)
    return results


# %% id=07-in-flight solution
async def run_all(ops):
    tasks = [agt.spawn(op) for op in ops]
    return [await task for task in tasks]

# %% id=07-in-flight hints
# In the loop, the second operation is not even started before the first one is done.
#
# `agt.spawn(op)` starts an operation and returns a task. Start all, then wait for each.
#
# `tasks = [agt.spawn(op) for op in ops]`, and then `await` the tasks, one after the other.

# %% id=07-in-flight explanation
# Once all are started it does not matter in which order you wait: the list keeps the results in the order of the operations, whichever is
# done first. `await asyncio.gather(*ops)` does the same in one line.

# %% id=07-in-flight-check
check("07-in-flight", run_all)

# %% [markdown] id=predict-64-text
# How much does it bring? There are two things to gain: Python no longer waits between the batches, and the device can work on
# several streams. To tell them apart we run the four tasks twice, once with a policy that puts everything on a single
# stream, and once with four streams. (A **policy** decides which stream an operation goes to.)

# %% id=predict-64
small = Prediction(
    "64 x 64 matrices, four batches at once. How much sooner do four streams finish than one?",
    much="more than 3 times as soon: four streams do four times the work",
    some="noticeably, but less than 3 times as soon",
    none="hardly at all: within 15 percent",
)
small

# %% id=commit-64
small.commit(...)

# %% id=measure
single = agt.SingleStream()


async def on_one_and_on_four(batches, w0, w1):
    with agt.using(policy=single), agt.record() as one:
        await all_at_once(batches, w0, w1)
    with agt.record() as four:
        await all_at_once(batches, w0, w1)
    return one, four


await on_one_and_on_four(batches, w0, w1)  # a first time, not recorded
one_64, four_64 = await on_one_and_on_four(batches, w0, w1)

# %% id=reveal-64
def gain(one, four):
    return one.metrics().makespan / four.metrics().makespan


def size_of(gain):
    return "much" if gain > 3 else "some" if gain > 1.15 else "none"


small.reveal(
    size_of(gain(one_64, four_64)),
    f"One stream: {one_64.metrics().makespan:.0f} µs. Four: {four_64.metrics().makespan:.0f} µs.",
)

# %% id=plot-64
agt.compare_timelines([awaited, four_64], ["64 x 64: one await after the other", "64 x 64: all at once"])

# %% [markdown] id=why-64
# In the upper timeline each batch is submitted when the one before is done; in the lower one nobody waits. What that saves is
# printed below. (On a real GPU it may be nothing: when the host makes the last call of so small a batch, the
# device has done the rest, and there is little left to wait for.)
#
# Now look at the streams of the lower one. Follow the time, not the numbers (whose turn is first depends on what ran before): they
# form a staircase, and as good as nothing on it is side by side. The lane of the host says why: it is full. Python needs so long to
# submit a batch that the device is done with the one before. **The host is the bottleneck**, and more streams do not help against that.
# (On a real GPU there are gaps between the calls. The host is no less busy in them: that is Python itself, on its way from
# one call to the next. On the simulated device each call is drawn with its share of that.)

# %% id=check-64
def waited_for_the_one_before(trace):
    """For batches 1, 2, and 3: did the host begin with it when the device was done with the one before?"""
    begins, ends = {}, {}
    for span in trace:
        if span.kind == "call":
            begins.setdefault(span.label, span.start)
        elif span.on_device:
            ends[span.label] = span.end
    return [begins[f"batch {i}"] >= ends[f"batch {i - 1}"] for i in (1, 2, 3)]


m = four_64.metrics()
print(f"one await after the other: {awaited.metrics().makespan:.0f} µs, all at once: {m.makespan:.0f} µs")
print(f"the host is inside calls for {m.host['call'] / m.makespan:.0%} of the time")
assert all(waited_for_the_one_before(awaited))
assert m.overlap_fraction < 0.25
if device.simulated:
    assert m.overlap_fraction < 0.1
    assert m.makespan < 0.9 * awaited.metrics().makespan
    assert m.host["call"] > 0.9 * m.makespan

# %% [markdown] id=two-numbers
# ## Two numbers that decide
#
# The staircase has steps of a certain width, and bars of a certain length. Call the first the **pace**: how long the host takes
# from one batch to the next. Call the second the **length**: how long the device takes for a batch. Bars overlap when
# they are longer than the steps are wide. That is all there is to it.

# %% id=pace-and-length
def pace_and_length(trace):
    batches = {}
    for span in trace.device_spans:
        batches.setdefault(span.op, []).append(span)
    starts = sorted(min(span.start for span in spans) for spans in batches.values())
    lengths = [max(s.end for s in spans) - min(s.start for s in spans) for spans in batches.values()]
    return (starts[-1] - starts[0]) / (len(starts) - 1), sum(lengths) / len(lengths)


pace, length = pace_and_length(four_64)
print(f"64 x 64: pace {pace:.0f} µs, length {length:.0f} µs")

# %% [markdown] id=look-for-a-size
# ## A size for which it pays
#
# The pace hardly depends on the size of the matrices: the host makes the same calls. The length does. So there should be a size
# from which on a batch lasts longer than the host needs to submit the next one. Let us look for it, with one batch alone and
# larger and larger matrices, until its length is twice the pace. (It will begin to grow late. Of a small batch it is
# mostly gaps, in which the device waits for the next call: the host's time once more.)

# %% id=data-of-any-size
async def weights_and_batches(dim):
    inputs = agt.data.seed_inputs(dim)
    w0, w1 = await agt.zip(
        agt.h2d(agt.pin(inputs.w0), "W0").share(), agt.h2d(agt.pin(inputs.w1), "W1").share()
    )
    return [agt.pin(batch) for batch in inputs.batches], w0, w1


# %% id=find-size
# Of a large launch, a simulated device interprets some blocks only, and NumPy computes the rest. What takes
# this computer longest is neither small nor large, so that is left out.
sizes = (64, 128, 768, 1024) if device.simulated else (64, 256, 512, 1024, 1536, 2048)

print(f"pace {pace:.0f} µs")
for dim in sizes:
    big, v0, v1 = await weights_and_batches(dim)
    if not device.simulated:
        await mlp(big[0], v0, v1)  # a first time, not recorded
    with agt.record() as trace:
        await mlp(big[0], v0, v1)
    length = trace.metrics().device_makespan
    at_work = trace.metrics().device_active
    print(f"{dim} x {dim}: length {length:.0f} µs, in which the device is at work for {at_work:.0f} µs")
    assert at_work < 0.5 * length or dim > 64
    if length > 2 * pace:
        break

size = f"{dim} x {dim}"
print("We take", size)
if device.simulated:
    assert length > 2 * pace

# %% [markdown] id=predict-large-text
# A batch of this size lasts clearly longer than the pace. So there should be something to gain. How much?

# %% id=predict-large
large = Prediction(
    f"{size} matrices, four batches at once. How much sooner do four streams finish than one?",
    none="hardly at all: within 15 percent, as before",
    some="noticeably, but less than 3 times as soon",
    much="more than 3 times as soon",
)
large

# %% id=commit-large
large.commit(...)

# %% id=measure-large
async def measure(batches, w0, w1):
    if not device.simulated:
        await on_one_and_on_four(batches, w0, w1)  # a first time, not recorded
    return await on_one_and_on_four(batches, w0, w1)


with agt.record() as awaited_large:
    await one_after_another(big, v0, v1)
one_large, four_large = await measure(big, v0, v1)
measured = {64: (one_64, four_64), dim: (one_large, four_large)}  # for the table below

# %% id=reveal-large
large.reveal(
    size_of(gain(one_large, four_large)),
    f"One stream: {one_large.metrics().makespan:.0f} µs. Four: {four_large.metrics().makespan:.0f} µs.",
)

# %% id=plot-large
agt.compare_timelines(
    [awaited_large, four_large], [f"{size}: one await after the other", f"{size}: all at once"],
)

# %% id=check-large
m = four_large.metrics()
print(f"two or more streams are at work in {m.overlap_fraction:.0%} of the device's time")
assert m.overlap > 0
assert m.max_concurrency >= 2
assert all(waited_for_the_one_before(awaited_large))
assert not all(waited_for_the_one_before(four_large))
if device.simulated:
    assert m.makespan < 0.8 * awaited_large.metrics().makespan
    waits = [span.waited_for_room for span in four_large.device_spans]
    print(f"waiting for room: {max(waits):.0f} µs at most, of which no bar shows anything")
    assert max(waits) > 20

# %% [markdown] id=on-paper
# (A kernel's bar begins when its first block has a place on the device. A kernel can be ready before that, and wait because others fill
# the device. That is not work, and so in no sum. A GPU does not tell for how long it was; the simulated device does: `span.waited_for_room`.)
#
# Why not four times as soon? Do the sum on paper. On one stream the batches lie end to end: 4 lengths. On four streams the
# last batch starts after 3 paces, and then takes its own length. So the gain is about
#
# ```text
#      4 * length
# -------------------
# 3 * pace + length
# ```
#
# It comes close to 4 only where the length is much larger than the pace. There, however, something else happens. See for yourself:

# %% id=sweep
print(" DIM   length   one stream  four streams   gain  on paper")
on_paper = {}
for dim in sizes:
    if dim not in measured:
        measured[dim] = await measure(*await weights_and_batches(dim))
    one, four = measured[dim]
    _, length = pace_and_length(one)
    on_paper[dim] = max(1.0, 4 * length / (3 * pace + length))
    ends = [f"{trace.metrics().makespan:9.0f} µs" for trace in (one, four)]
    print(f"{dim:4} {length:5.0f} µs {ends[0]} {ends[1]}  {gain(one, four):6.2f}  {on_paper[dim]:8.2f}")

best = max(sizes, key=lambda dim: gain(*measured[dim]))
print(f"Four streams gain most at {best} x {best}.")

# %% [markdown] id=sweep-read
# For small matrices the host is the limit: as good as no gain, on paper or off it. Then comes a range in which streams pay. For large ones the
# paper promises more and more, and the gain stays far behind; on the simulated device it even goes *down*. The sum on paper forgets that four batches need room. A GEMM with as many
# threads as the device has room for leaves none for a second one: that waits until the last blocks of the first are under way. What streams can still hide
# is what does not fill the device: the copies, and `matvec_naive` with its few threads. **Overlap fills gaps. Where there are none, it
# has nothing to fill.**

# %% id=sweep-check
last = max(sizes)
gemms = measured[last][0].find("sgemm_naive")
assert gain(*measured[last]) < on_paper[last]
assert sum(span.duration for span in gemms) > 0.5 * measured[last][0].metrics().device_makespan
if device.simulated:
    assert gain(one_large, four_large) > 1.15
    assert gain(one_64, four_64) < 1.15
    assert abs(pace_and_length(four_large)[0] - pace) < 0.05 * pace
    assert gain(*measured[last]) < min(gain(one_large, four_large), 0.8 * on_paper[last])
    assert all(span.detail["fills"] == 1 for span in gemms)

# %% [markdown] id=zip-box
# ## What `zip` does not do
#
# > **Misconception: `zip` runs its arms at the same time.**
# >
# > - *What you see:* two batches in a `zip`, and a timeline with one stream.
# > - *Why:* `zip` is about results, not about time: one operation, one stream, one after the other.
# > - *What helps:* `overlap`. It gives each arm a stream of its own, and waits for both on the device.

# %% id=zip-box-code
with agt.record() as zipped:
    await agt.zip(mlp(big[0], v0, v1), mlp(big[1], v0, v1))
with agt.record() as side_by_side:
    await agt.overlap(mlp(big[0], v0, v1), mlp(big[1], v0, v1))

for name, trace in [("zip", zipped), ("overlap", side_by_side)]:
    print(f"{name}: streams {trace.streams}, overlap {trace.metrics().overlap:.0f} µs")
assert len(zipped.streams) == 1
assert zipped.metrics().overlap == 0
assert len(side_by_side.streams) == 2
if device.simulated:
    assert side_by_side.metrics().overlap > 0
agt.compare_timelines([zipped, side_by_side], ["zip", "overlap"])

# %% [markdown] id=counts
# ## Who holds the weights?
#
# Back to 64 x 64. Each batch in flight needs `W0` and `W1`, and none has a copy of its own.

# %% id=predict-counts
handles = Prediction(
    "Before the start `w0.share_count` is 1. What is the most that it can be while the batches run?",
    one="one array, one handle",
    four="one handle for each batch",
    five="one for each batch, and ours",
)
handles

# %% id=commit-counts
handles.commit(...)

# %% [markdown] id=spawn
# This time we use `spawn`, which makes an operation a task at once. `asyncio.sleep(0)` gives every task one turn: enough
# to submit its batch.

# %% id=count
tasks = [agt.spawn(mlp(x, w0, w1).named(f"batch {i}")) for i, x in enumerate(batches)]
await asyncio.sleep(0)
in_flight = w0.share_count

results = np.stack(await asyncio.gather(*tasks))
del tasks
after = w0.share_count

print(f"in flight: {in_flight}, afterwards: {after}")
assert 1 <= in_flight <= 5
assert after == 1
if device.simulated:
    assert in_flight == 5

# %% id=reveal-counts
submissions = {span.op for span in four_64.find("sgemm_naive")}
handles.reveal(
    {1: "one", 4: "four", 5: "five"}[1 + len(submissions)],
    f"{len(submissions)} submissions used W0, and each held a handle until the device was done with it.",
)

# %% [markdown] id=counts-read
# On a GPU the count may be lower when we look: a batch that is done has already given its handle back. Nobody had to
# think of it. That is what handles are for: an array lives until the last user is done, even if that user was cancelled.

# %% [markdown] id=results
# ## Is it right?
#
# The project that this one follows, `async_mlp` of cuda-oxide, prints the beginnings of its results. We compute the
# same, to the digits that it shows:

# %% id=check-results
for i, result in enumerate(results):
    mark = "[ReLU OK]" if (result >= 0).all() else "[ReLU FAILED]"
    print(f"Batch {i}: {result.size} elements, first 4 = {result[:4]} {mark}")

printed = [[0.00208, 0], [0, 0], [0, 0.00108], [0.00244, 0.0025]]
assert np.allclose(results[:, :2], printed, atol=5e-7)
assert np.allclose(results, expected, atol=1e-6)
assert (results >= 0).all()

# %% [markdown] id=digits
# ## Something real
#
# An 8 x 8 picture has 64 pixels, so a batch of 64 pictures is a 64 x 64 matrix: just what our pipeline takes. The course brings
# four batches of handwritten digits, and weights that were trained, on other digits, to answer one question: *is
# it a 3?* An output above the threshold means yes.

# %% id=digits-load
digits = agt.data.load_digits()
print(f"is it a {digits.digit}? threshold {digits.threshold}")
print(digits.source)
print(digits.licence)

# %% id=digits-picture
figure, axes = plt.subplots(1, 8, figsize=(8, 1.5))
for ax, picture, label in zip(axes, digits.batches[0], digits.labels[0], strict=False):
    ax.imshow(picture.reshape(8, 8), cmap="gray_r")
    ax.set_title(str(label))
    ax.axis("off")
print("The first eight pictures of batch 0 show the digits", *digits.labels[0, :8])

# %% id=digits-run
d0, d1 = await agt.zip(
    agt.h2d(agt.pin(digits.w0), "W0").share(), agt.h2d(agt.pin(digits.w1), "W1").share()
)
scores = await all_at_once([agt.pin(batch) for batch in digits.batches], d0, d1)

for label, answer in zip(digits.labels[0, :8], scores[0, :8], strict=True):
    print(f"a {label}: score {answer:.2f}", "-> it says 3" if answer > digits.threshold else "")

# %% [markdown] id=digits-quality
# How good is that? Beware of **accuracy**, the share of right answers, by itself: nine digits in ten are not a 3, so who always
# says *no* is right nine times in ten. Next to it we print that **baseline**, and the **recall**, the share of the
# threes that were found.

# %% id=digits-score
quality = digits.quality(scores)
print(f"accuracy {quality.accuracy:.3f}, where always saying no gives {quality.baseline:.3f}")
print(f"found {quality.true_positives} of {quality.positives} threes: recall {quality.recall:.3f}")
print(f"false alarms: {quality.false_positives} in {quality.negatives}")
assert quality.accuracy > 0.95 > quality.baseline
assert np.allclose(scores, np.maximum(digits.batches @ digits.w0 @ digits.w1, 0), atol=1e-3)

# %% [markdown] id=real
# ## What makes it real
#
# The network is a toy. The shape of the program is not:
#
# | a server that answers requests | this page |
# |---|---|
# | loads the model once, and all requests use it | `share()`, and one copy of the weights |
# | has a pipeline for each request | `mlp(x, w0, w1)`, a lazy operation |
# | answers many requests at a time | a task for each batch |
# | lets a scheduler spread them over the GPU | a policy that deals out streams |
# | never lets one request hold up the others | `await` instead of `sync` |
#
# As a program, with options for sizes, streams, inputs and more layers, it is `python -m asyncgpu_tutor mlp`; its source is the
# package `asyncgpu_tutor/commands/mlp`. It runs the batches in five ways (one after the other, on one stream, on four, prepared, and as a graph) and prints a
# table with the makespan, the overlap and the speed-up of each.

# %% [markdown] id=exercise-outcomes
# ### Exercise: one fails, the others do not
#
# A server does not drop four requests because one of them is bad. Run a list of operations, all in flight together. Return a list
# with one outcome for each, in order: its result, or the exception if it failed.

# %% id=07-outcomes starter
async def outcomes(ops):
    async with asyncio.TaskGroup() as group:

        async def run(op):
            return await op

        tasks = [group.create_task(run(op)) for op in ops]
    return [task.result() for task in tasks]


# %% id=07-outcomes solution
async def outcomes(ops):
    return await asyncio.gather(*ops, return_exceptions=True)

# %% id=07-outcomes hints
# A `TaskGroup` cancels the others when one fails: right for a batch that is useless without all of its parts, and not what is wanted
# here.
#
# `asyncio.gather` has an option for it: see `help(asyncio.gather)`.
#
# `await asyncio.gather(*ops, return_exceptions=True)` has each result, or its exception, in the order of the operations.

# %% id=07-outcomes explanation
# An error belongs to the operation that failed, and comes where its result would. The other streams did not notice. (On a real GPU a
# kernel that faults ends the process's CUDA context, and with it the others. What fails for other reasons, such as a wrong shape, does
# not.)

# %% id=07-outcomes-check
check("07-outcomes", outcomes)

# %% [markdown] id=exercise-softmax
# ### Exercise: softmax
#
# A classifier with several classes does not end in ReLU, but in **softmax**: it turns numbers into probabilities, which are
# positive and add up to 1. In NumPy it is `np.exp(x) / np.exp(x).sum()`. Write the kernel, with a thread for each output. It would
# take the place of the ReLU in the chain.
#
# Beware of large numbers: `expf(100.0f)` overflows. And of small ones: `expf(-200.0f)` is 0, and so is a sum of such.

# %% id=07-softmax starter
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""")

# %% id=07-softmax solution
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float top = x[0];
        for (unsigned int j = 1; j < n; j++) {
            top = fmaxf(top, x[j]);
        }
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += expf(x[j] - top);
        }
        y[i] = expf(x[i] - top) / sum;
    }
}
""")

# %% id=07-softmax hints
# Each thread computes one output, but needs *all* inputs: two loops, one for the largest, one for the sum.
#
# `expf(100.0f)` is too large for a `float`. Subtract the largest input from each first: it changes nothing in the result, as numerator
# and denominator shrink alike.
#
# `float top = x[0];`, a loop with `top = fmaxf(top, x[j]);`, a loop with `sum += expf(x[j] - top);`, and `y[i] = expf(x[i] - top) / sum;`

# %% id=07-softmax explanation
# With the largest input subtracted, the largest power is exp(0) = 1, and nothing can overflow. Every thread does the same two loops: that
# is naive, as the other kernels here are. For 64 outputs nobody notices.

# %% id=07-softmax-check
check("07-softmax", softmax)

# %% [markdown] id=more-batches
# ## More batches
#
# A server gets more than four requests. What does a batch cost if there are many?

# %% id=more-batches-run
print("batches   from start to end   for each   handles to W0")
most_handles = {}
for number in (1, 2, 4, 8, 16):
    some = [agt.pin(x) for x in agt.data.seed_inputs(64, number).batches]
    with agt.record() as trace:
        tasks = [agt.spawn(mlp(x, w0, w1)) for x in some]
        await asyncio.sleep(0)  # every task has its turn
        most_handles[number] = w0.share_count
        await asyncio.gather(*tasks)
    del tasks
    took = trace.metrics().makespan
    print(f"{number:7} {took:16.0f} µs {took / number:7.0f} µs {most_handles[number]:15}")
    if device.simulated:
        assert 0.95 < took / number / pace < 1.05

assert w0.share_count == 1
if device.simulated:  # a GPU may be done with some of them by the time we look
    assert all(handles == number + 1 for number, handles in most_handles.items())

# %% [markdown] id=more-batches-read
# At this size each costs about what the host needs for it, the pace, however many there are. But look at the last column. Each
# batch that is under way holds what it needs: handles, which cost nothing, and also its own input, hidden values and output on the device, which do.
# With thousands of requests there is not enough room for all of them. So one limits how many are in flight.

# %% [markdown] id=exercise-limited
# ### Exercise: no more than so many
#
# Run a list of operations with at most `limit` of them in flight at any time. As soon as one is done, the next one starts.
# Return the results in the order of the list. (`help(asyncio.Semaphore)`)

# %% id=07-limited starter
async def run_limited(ops, limit):
    return await asyncio.gather(*ops)


# %% id=07-limited solution
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run(op):
        async with gate:
            return await op

    return await asyncio.gather(*[run(op) for op in ops])

# %% id=07-limited hints
# Let each operation have a coroutine of its own, and think of a door that lets so many in at a time.
#
# `asyncio.Semaphore(limit)` is that door: `async with gate:` waits in front of it while `limit` others are inside.
#
# `async def run(op):` with `async with gate:` and `return await op` in it, and then `return await asyncio.gather(*[run(op) for op in
# ops])`.

# %% id=07-limited explanation
# An operation that nobody has awaited costs nothing. So a thousand of them may stand in front of the door, and memory is needed for those
# inside only.

# %% id=07-limited-check
check("07-limited", run_limited)

# %% [markdown] id=tiles
# ## Larger matrices: a better GEMM
#
# From a certain size on, most of the length of a batch is its GEMM. `sgemm_naive` is slow for a reason that the **microscope** shows: the
# simulated device counts what each kernel does. (So these cells use it even if you have a GPU.)

# %% id=tiles-naive
def gemm_report(kernel, n, *before, after=()):
    with agt.using("sim"), agt.microscope() as seen:
        a, b, c = agt.ones((n, n)), agt.ones((n, n)), agt.zeros((n, n)).partition(16, 16)
        kernel(n, n, n, *before, a, b, *after, c).sync()
    return seen[kernel.name]


naive = gemm_report(agt.sgemm_naive, 64, 1.0, after=[0.0])
print(f"bytes it needs: {naive.bytes_needed:,}")
print(f"bytes it moves: {naive.bytes_moved:,}")
print(f"how often its warps ask global memory: {naive.counts.global_load_requests:,} times")
assert naive.bytes_moved > 16 * naive.bytes_needed

# %% [markdown] id=tiles-idea
# (A **warp** is 32 threads of a block that go in step. *Global memory* is what we have called the device's memory so far.) Every number of `a` is
# needed for a whole row of `c`, so 64 threads fetch it, each for itself.
#
# The threads of a block can do better, as they have a small and quick memory in common: an array that is declared `__shared__`
# in the kernel exists once for each block. So a block computes its 16 x 16 elements of `c` in steps. For each step,
#
# 1. it fetches a **tile** of `a` and a tile of `b`, 16 x 16 numbers each: every thread one of each;
# 2. it waits until all have done so: `__syncthreads()`, a **barrier**;
# 3. every thread adds up 16 products, and finds all it needs in the two tiles;
# 4. it waits again, so that nobody overwrites a tile that somebody still reads.
#
# ```text
#      k                     n
#   +-----------+         +-------+             step t: the tile of a moves to the right,
#   |   [t ->]  | m       |  [t]  |                     the tile of b moves down
#   |           |         |   |   | k
#   +-----------+         |   v   |
#         a               +-------+
#                             b
# ```
#
# Every number that is fetched is used 16 times. All threads of a block have to come to the barrier, also those beyond the edge of `c`.

# %% [markdown] id=exercise-tiled
# ### Exercise: GEMM with tiles
#
# Compute `c = a @ b`, with tiles of 16 x 16 and blocks of 16 x 16 threads. `a` has `m` rows of `k` numbers, `b` has `k` rows of `n`. The check uses sizes that
# are no multiples of 16, watches for threads that do not wait for each other, and counts how often global memory is asked.

# %% id=07-tiled starter
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    // your code
}
""")

# %% id=07-tiled solution
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 16) {
        tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
        tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
""")

# %% id=07-tiled hints
# For each step along `k`: every thread loads one element of each tile, *barrier*, every thread adds up 16 products from the tiles,
# *barrier*.
#
# The thread (x, y) loads `a[row * k + t + x]` and `b[(t + y) * n + col]`, if there are such elements, and 0 if not: a zero adds nothing
# to the sum.
#
# Threads without an element of `c` must not leave early: they load, and the barrier waits for them. Only the last line, which writes, is
# for those with an element alone.
#
# `for (unsigned int t = 0; t < k; t += 16)`: load both tiles, `__syncthreads();`, a loop over `i` with `sum += tile_a[y][i] *
# tile_b[i][x];`, `__syncthreads();`. After it the write.

# %% id=07-tiled explanation
# What one thread loads, 16 threads of its row or column use. The first barrier makes sure that the tiles are full before anybody reads
# them; the second, that everybody has read them before anybody overwrites them.

# %% id=07-tiled-check
check("07-tiled", sgemm_tiled)

# %% [markdown] id=tiles-read
# Here is your kernel under the microscope, next to the naive one, at 256 x 256.

# %% id=tiles-compare
yours, naive = gemm_report(sgemm_tiled, 256), gemm_report(agt.sgemm_naive, 256, 1.0, after=[0.0])
asked, before = yours.counts.global_load_requests, naive.counts.global_load_requests
assert naive.bound == "latency"
if asked:
    print(f"requests to global memory: {asked:,} instead of {before:,}, one in {before / asked:.1f}")
    print(f"modelled time: {yours.us:.1f} µs instead of {naive.us:.1f} µs")
    print(f"what limits it now: {yours.bound}; what limited the naive one: {naive.bound}")
else:
    print("It does not load anything yet.")

# %% [markdown] id=tiles-careful
# Once it is right it asks for a sixteenth, but it does not take a sixteenth of the time: how often a kernel asks is only one of the
# things that can limit it. The microscope says what does. `latency` stands for each thread's own steps, of which every one waits for the one
# before: at this size the kernels take about as long as one thread does, and tiles make that shorter, but not sixteen times.

# %% [markdown] id=two-devices
# ## Two devices
#
# Some machines have two GPUs. `with agt.using(device):` says where what is described and spawned in the block will run. One event loop
# waits for both. (We take two simulated devices here, since you may not have two real ones. Your own would be `"cuda:0"` and `"cuda:1"`.)

# %% id=two-devices-open
pair = "sim:0", "sim:1"
with agt.using(pair[0]):
    million = agt.pin(np.ones(1_000_000, np.float32))
print(*pair, sep="\n")

# %% id=predict-engines
engines = Prediction(
    "Two copies from the host, on two streams of one device, wait for each other: there is one engine for "
    "this direction. And two copies to two devices?",
    queue="they wait as well: there is one host",
    overlap="they overlap: each device has an engine of its own",
)
engines

# %% id=commit-engines
engines.commit(...)

# %% id=run-engines
async def two_copies(first, second):
    with agt.using(first):
        one = agt.spawn(agt.h2d(million).to_host().named("one"))
    with agt.using(second):
        other = agt.spawn(agt.h2d(million).to_host().named("other"))
    return await one, await other


with agt.using(pair[0]), agt.record() as one_device:
    await two_copies(pair[0], pair[0])
with agt.using(pair[0]), agt.record() as two_devices:
    await two_copies(*pair)


def together(trace):
    first, second = trace.find("h2d")
    return max(0, min(first.end, second.end) - max(first.start, second.start))


# %% id=reveal-engines
engines.reveal(
    "overlap" if together(two_devices) > 1 else "queue",
    f"The two copies overlap by {together(one_device):.0f} µs on one device, and by "
    f"{together(two_devices):.0f} µs on two.",
)

# %% id=plot-engines
titles = ["There and back, twice, on one device", "There and back, on each of two devices"]
agt.compare_timelines([one_device, two_devices], titles)

# %% [markdown] id=read-engines
# (Watch the copies `h2d`. On one device the second begins when the first has ended. The copy *back* may well go on
# beside it, as that direction has an engine of its own.)

# %% id=check-engines
assert together(one_device) == 0
assert together(two_devices) > 20
assert {span.device for span in two_devices.device_spans} == {"sim:0", "sim:1"}

# %% [markdown] id=misconception-devices
# > **Misconception: what is on the GPU can be used by any GPU.**
# >
# > - *What you see:* `DeviceMismatchError`.
# > - *Why:* each device has a memory of its own, and an array is in one of them.
# > - *What helps:* a copy on each device that needs it. For weights that is once, at the start.

# %% id=misconception-devices-run
with agt.using(pair[0]):
    here = await agt.ones(64, name="here").share()
try:
    with agt.using(pair[1]):
        await agt.d2h(here)
except agt.errors.DeviceMismatchError as error:
    print(error)
else:
    raise AssertionError("an array of another device should be refused")

# %% [markdown] id=exercise-two-devices
# ### Exercise: two devices
#
# `recipe(x, w)` makes an operation from a batch (on the host) and weights (on a device). Run it for all batches: batch 0, 2, 4, ... on the first
# of two devices, the others on the second, all in flight together. `weights` is a host array, and should be copied once to each device.
# Return the results in order.

# %% id=07-two-devices starter
async def on_both(recipe, batches, weights, devices):
    w = await agt.h2d(weights).share()
    return await asyncio.gather(*[recipe(x, w) for x in batches])


# %% id=07-two-devices solution
async def on_both(recipe, batches, weights, devices):
    copies = []
    for device in devices:
        with agt.using(device):
            copies.append(await agt.h2d(weights).share())
    tasks = []
    for i, x in enumerate(batches):
        with agt.using(devices[i % 2]):
            tasks.append(agt.spawn(recipe(x, copies[i % 2])))
    return await asyncio.gather(*tasks)

# %% id=07-two-devices hints
# An array is on one device, so each device needs its own copy of the weights. One will do.
#
# `with agt.using(device):` makes a device the current one: what is spawned in the block goes there.
#
# First a loop over `devices` with `w = await agt.h2d(weights).share()`, each in its `using`. Then a loop over the batches, with
# `devices[i % 2]` and `agt.spawn`. `gather` in the end.

# %% id=07-two-devices explanation
# One event loop waits for both devices as it waits for one. Each has streams, copy engines and SMs of its own, so what is on different
# devices need not share anything but the host.

# %% id=07-two-devices-check
check("07-two-devices", on_both)

# %% [markdown] id=extend
# ## Where to take it
#
# - **All of it on two devices.** Split the digits, and their weights.
# - **Your GEMM in the network.** At which size does it begin to pay? What happens to the gain by four streams then?
# - **A policy of your own.** Subclass `agt.SchedulingPolicy` and write `next_stream`.

# %% [markdown] id=key-points
# ## Key points
#
# - A pipeline is a chain of `and_then`, and one chain runs on one stream. `value` carries on what the next stage needs.
# - `await` waits for one result. To have several things in flight, start them first: `TaskGroup` or `spawn`.
# - `zip` is order, `overlap` is overlap.
# - Streams pay when a batch takes the device longer than it takes the host. If not, the host is the bottleneck.
# - A shared array lives until its last user is done. Each device needs a copy of its own.
# - In a block, threads can share what one of them has loaded. The barrier keeps the order.
# - What you believe about time, check in a trace.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so
# in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [08_profiling.ipynb](08_profiling.ipynb): programs that are slower than they should be, and how a trace shows why.

# %% id=score
score(in_a_row, small, large, handles, engines)

# %% id=progress
progress("07")
