"""Source of notebooks/03_lazy_operations.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Operations: describe now, run later
#
# **After this page you can**
#
# - say what has happened when an operation has been built, and prove it with a trace;
# - write operations of your own with `with_context`: a copy to the device, a fill with zeros, a copy back;
# - choose among four ways to run an operation, by who picks the stream and who waits;
# - tell a handle from the numbers behind it, and know when you may look at those.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb) and [02_streams_and_events](02_streams_and_events.ipynb) |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import warnings

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=why
# ## Doing, and saying what to do
#
# With streams in your own hands every line *does* something: this call enqueues a copy, that one a kernel. It works, and it does not scale. A
# function that enqueues has to be told its stream. To call it is to do it, so you cannot first put it together with another one, keep it
# for later, or hand it to someone who knows better which stream is free. And to find out what a program will do, you have to
# follow it line by line.
#
# So this course has you write down *what* is to be done, and decide *where and when* later. Here are both kinds of function. One copies an
# array to the device; the other says how one would.


# %% id=why-both
def upload_now(x, stream):
    return agt.h2d(x).async_on(stream)


def upload_later(x):
    return agt.h2d(x)


size = 1_000_000 if device.simulated else 4_000_000  # more on a real GPU, where times jitter
x = agt.pin(np.random.default_rng(0).standard_normal(size, dtype=np.float32))

with agt.record() as done:
    upload_now(x, agt.create_stream())
with agt.record() as said:
    op = upload_later(x)

print("upload_now:  ", [span.name for span in done])
print("upload_later:", [span.name for span in said], "and it returns", op)
assert len(done) > 0
assert len(said) == 0

# %% [markdown] id=why-value
# The first needs a stream, and when it returns the copy is on its way. The second needs none, and nothing is on its way. What it returns is
# a `DeviceOp`, an **operation**. It is a value, like a number or a string: it has a name, it fits into a list, a function can return it.

# %% id=menu
with agt.record() as building:
    menu = [agt.arange(6), agt.ones(6), agt.zeros(6)]

print(menu)
print("things that happened so far:", len(building))
assert len(building) == 0

# %% [markdown] id=menu-run
# Three operations, each of which makes an array. No array has been made. You may go through the list in
# any order, or never. Here we go backwards, add a copy to the host to each, and run it:

# %% id=menu-backwards
for dish in reversed(menu):
    print(dish, "gives", dish.to_host().sync())

# %% [markdown] id=forgotten
# One operation of this page is still waiting: `op`, the copy that `upload_later` describes. Build an operation, forget it, and Python tells you, and in
# which line it was built:

# %% id=forgotten-run
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    del op  # nobody holds it any more, so nobody can run it

(warning,) = heard
print(warning.message)
assert warning.category is agt.errors.NeverRunWarning

# %% [markdown] id=recipe
# ## Recipe, kitchen, chef
#
# An operation is a **recipe**. Three parties are needed for a meal, and it pays to keep them apart:
#
# | in a restaurant | here | knows |
# |---|---|---|
# | the recipe | the operation, a `DeviceOp` | which steps, in which order |
# | the kitchen | the stream, and the `ExecutionContext` that goes with it | where the work is done, and with which memory |
# | the chef | the scheduling policy, and whoever says *now*: `sync`, `await` and their kin | which kitchen is to cook what, and when |
#
# A recipe does not know the kitchen. That is its strength: the same one is good for any kitchen. How many kitchens will it be?

# %% id=predict-kitchens
kitchens = Prediction(
    "One operation, which copies an array to the device and back. We run it three times with `sync`. "
    "On how many streams?",
    one="the operation got its stream when it was built",
    three="each run is given a stream of its own",
)
kitchens

# %% id=predict-kitchens-commit
kitchens.commit(...)

# %% id=kitchens-run
there_and_back = agt.h2d(x).to_host()

for _ in range(4):
    there_and_back.sync()  # a real GPU is slow the first time, so this is not recorded

with agt.record() as three_runs:
    for _ in range(3):
        there_and_back.sync()

# %% id=reveal-kitchens
used = len(three_runs.streams)
kitchens.reveal(
    {1: "one", 3: "three"}[used],
    f"The trace has {len(three_runs.find('h2d'))} runs on {used} streams.",
)

# %% id=kitchens-picture
three_runs.plot(title="One recipe, cooked three times", lanes=("host", "streams"))

# %% [markdown] id=kitchens-read
# Three runs, three streams, one object. The chef here is the default policy, *round robin*: each run takes the next of four
# streams. (You may replace it; that is what chapter 05 is about.) They are one after the other because `sync` waits for each.
#
# Three runs also made three arrays on the device and three results. A recipe is not used up by cooking. (Some are:
# if it says "take the cake from the fridge", then the fridge is empty the second time. An operation that takes a device array *from
# you* is of that kind. We come to it below.)

# %% id=kitchens-check
assert used == 3
assert len({span.op for span in three_runs.device_spans}) == 3
assert three_runs.metrics().overlap < 1

# %% [markdown] id=shelf-text
# ## When is the shelf looked at?
#
# A recipe says "take `small` from the shelf", where `small` is a little array. Here is a fine point: between writing the recipe and
# cooking, somebody puts other numbers on the shelf.

# %% id=predict-shelf
shelf = Prediction(
    "`small` is full of 1 when the operation is built, and full of 7 when it is run. What comes out?",
    **{"1": "what was in it when the operation was built", "7": "what was in it when it was run"},
)
shelf

# %% id=predict-shelf-commit
shelf.commit(...)

# %% id=shelf-run
small = agt.pin(np.full(8, 1, np.float32))
op = agt.h2d(small).to_host()
small[:] = 7
result = op.sync()
print(result)

# %% id=reveal-shelf
shelf.reveal(f"{result[0]:.0f}", "The numbers are read when the copy runs.")

# %% [markdown] id=misconception-shelf
# > **Misconception: an operation keeps the numbers that were there when it was built.**
# >
# > - *What you see:* one buffer, filled in a loop with one batch after the other; an operation built for each; and then *all* of them
# >   compute the last batch.
# > - *Why:* an operation holds the array, not a copy of what is in it.
# > - *What helps:* run each before you refill the buffer, or give each a buffer of its own.

# %% id=misconception-shelf-run
buffer = agt.pinned(4)
ops = []
for batch in (10, 20, 30):
    buffer[:] = batch
    ops.append(agt.h2d(buffer).to_host())

late = [float(op.sync()[0]) for op in ops]
print("one buffer for all:", late)
assert late == [30, 30, 30]

own = [agt.h2d(agt.pin(np.full(4, batch, np.float32))).to_host() for batch in (10, 20, 30)]
own = [float(op.sync()[0]) for op in own]
print("a buffer for each: ", own)
assert own == [10, 20, 30]

# %% [markdown] id=proofread
# ## A recipe is proofread
#
# If nothing happens before the run, do mistakes show up as late as that? Some do. But whatever can be known from the recipe alone is looked at while you
# write it, so that the message points to the line that is wrong and not to the one that cooks. A kernel that is given too few arguments, for
# example, is refused on the spot:

# %% id=proofread-run
try:
    agt.relu(1000)
except agt.UsageError as error:
    print(error)
else:
    raise AssertionError("a launch with too few arguments should have been refused")

# %% [markdown] id=proofread-read
# What depends on data or on the device (a copy between arrays of two shapes, memory that runs out, a fault in a kernel) comes when the
# operation is run: from `sync`, from `await`, or from the wait that you do yourself. An operation that fails does so in the
# hands of whoever runs it.

# %% [markdown] id=value
# ## The two smallest recipes
#
# `agt.value(thing)` is the recipe without a step: it does nothing on the device and yields `thing`.

# %% id=value-run
with agt.record() as trace:
    answer = agt.value(42).sync()

print(answer, "with", len(trace.device_spans), "pieces of work on the device")
assert (answer, trace.device_spans) == (42, [])

# %% [markdown] id=with-context
# Useless by itself, it comes into its own as an *ending*. `agt.with_context(function)` makes an operation of a function. When
# the operation is run, and not before, the function is called with an `ExecutionContext`, which stands for the kitchen; and what the
# function returns, which has to be an operation, is run in that same kitchen. Let us ask it where it is:

# %% id=with-context-run
calls = []


def ask(context):
    calls.append("called")
    return agt.value(context.stream.number)


where = agt.with_context(ask)
print("after building:", calls)
assert calls == []

numbers = [where.sync(), where.sync()]
print("after two runs:", calls, "on streams", numbers)
assert len(calls) == 2
assert numbers[0] != numbers[1]

# %% [markdown] id=context-table
# A kitchen is for more than asking. The context has a verb for each kind of work. Each enqueues on *its* stream and
# returns at once:
#
# | | |
# |---|---|
# | `context.empty(shape, dtype)` | a new array on the device; nothing is written to it |
# | `context.memset(array, value=0)` | set every *byte* of it to this value |
# | `context.copy_from_host(array, host)` | fill it with the numbers of a host array of the same shape and dtype |
# | `context.copy_to_host(array)` | copy it to a new host array, and return a handle to that |
# | `context.copy(target, source)` | copy within the device |
#
# With these you can write operations by hand. Here is one that copies an array on the device into a new one:


# %% id=copy-of
def copy_of(array):
    def enqueue(context):
        target = context.empty(array.shape, array.dtype)
        context.copy(target, array)
        return agt.value(target)

    return agt.with_context(enqueue)


original = agt.arange(5).sync()
with agt.record() as trace:
    op = copy_of(original)
    print("built:", [span.name for span in trace])
    copied = op.sync()

print("run:  ", [span.name for span in trace.device_spans])
print(agt.d2h(copied).sync())
assert [span.kind for span in trace.device_spans] == ["d2d"]

# %% [markdown] id=copy-of-read
# Look at the shape of it: an outer function that takes what the recipe is about, an inner one that takes the context and enqueues,
# and `agt.value` at the end to hand over the new array. Nothing in it mentions a stream. The next three exercises have the same shape, and
# when you are done you have built the bridges on which all the data of this course travel.

# %% [markdown] id=exercise-h2d
# ### Exercise: h2d by hand
#
# Write `upload(host)`: an operation that copies a host array to a new device array, and yields that. It has to work for any shape
# and dtype.


# %% id=03-h2d starter
def upload(host):
    def enqueue(context): ...  # your code

    return agt.with_context(enqueue)


# %% id=03-h2d solution
def upload(host):
    def enqueue(context):
        array = context.empty(host.shape, host.dtype)
        context.copy_from_host(array, host)
        return agt.value(array)

    return agt.with_context(enqueue)

# %% id=03-h2d hints
# Three steps, all of them inside of `enqueue`: make an empty array, have the copy done, hand the array on.
#
# `context.empty` wants the shape *and the dtype* of `host`; its default is `float32`.
#
# `array = context.empty(host.shape, host.dtype)`, `context.copy_from_host(array, host)`, `return agt.value(array)`.

# %% id=03-h2d explanation
# The function runs when the operation does. So it knows its stream, and it reads `host` as it is *then*. `agt.h2d` is the same, with
# checks of its arguments and a name.

# %% id=03-h2d-check
check("03-h2d", upload)

# %% [markdown] id=exercise-zeros
# ### Exercise: zeros by hand
#
# Write `blank(shape, dtype)`: an operation that yields a new device array full of zeros. The host has zeros of its own, of course; but sending
# them over would be the slowest way to say nothing.


# %% id=03-zeros starter
def blank(shape, dtype):
    def enqueue(context): ...  # your code

    return agt.with_context(enqueue)


# %% id=03-zeros solution
def blank(shape, dtype):
    def enqueue(context):
        array = context.empty(shape, dtype)
        context.memset(array)
        return agt.value(array)

    return agt.with_context(enqueue)

# %% id=03-zeros hints
# It is `upload`, with another way to fill the array. Nothing has to come from the host.
#
# A zero is all bytes zero, for integers and floats alike: `context.memset` can do that.
#
# `array = context.empty(shape, dtype)`, `context.memset(array)`, `return agt.value(array)`.

# %% id=03-zeros explanation
# Memory that nobody has written holds whatever was there before, so the `memset` has to be, even where the numbers happen to be zero
# already. That is why the check looks at the trace as well.

# %% id=03-zeros-check
check("03-zeros", blank)

# %% [markdown] id=handles
# ## Handles are not data
#
# The way back has a catch. When your function is called, the work is *put into the queue*. No number has been computed
# yet, and none will be until the function has returned. What `copy_to_host` gives you then cannot be the numbers. It is a **handle**, a
# `HostArray`: the name of an array whose numbers are to come.
#
# You can see one without writing anything by hand. `async_on`, which you know from chapter 01, starts an operation and returns at once,
# so what it returns is a handle.

# %% id=handles-make
stream = agt.create_stream()
there_and_back.async_on(stream)  # the device has something to do first
handle = there_and_back.async_on(stream)
early = repr(handle)
print(early)

# %% id=predict-handle
looking = Prediction(
    "The copy is still to come. You ask the handle for its `shape`, and for its largest number. "
    "What do you get?",
    both="the shape, and a number, though it may not be the final one",
    shape="the shape; the other question is refused",
    neither="nothing: first wait, then ask",
)
looking

# %% id=predict-handle-commit
looking.commit(...)


# %% id=handle-ask
def answers(question):
    op = agt.with_context(lambda context: agt.value(question(context.copy_to_host(original))))
    try:
        op.sync()
    except agt.errors.NotReadyError as error:
        return error
    return True


asked_shape = answers(lambda handle: handle.shape)
asked_max = answers(lambda handle: handle.max())
print(asked_max)

# %% id=reveal-handle
looking.reveal(
    {(True, True): "both", (True, False): "shape", (False, False): "neither"}[
        asked_shape is True, asked_max is True
    ],
    "The message is above: it names the operation, and says what to do.",
)

# %% [markdown] id=handle-read
# The shape is known from the start, and so is the dtype. The numbers are not, and you are told so, on every device and every time.
# Plain CUDA would not tell you. It would hand you the buffer, with whatever happened to be in it.
#
# After a wait the same handle shows its numbers:

# %% id=handle-later
stream.synchronize()
print(repr(handle))
print("largest:", handle.max())
assert handle.max() == x.max()
if device.simulated:
    assert "not written yet" in early  # on a GPU this depends on how quick you were
assert asked_shape is True
assert isinstance(asked_max, agt.errors.NotReadyError)

# %% [markdown] id=handle-deliver
# It is only those who look *while the work is being submitted* that get handles. `sync` and `await` return when the work is done, and
# put a real NumPy array where the handle was.

# %% [markdown] id=exercise-d2h
# ### Exercise: d2h by hand
#
# Write `download(array)`: an operation that copies a device array to the host. Whoever runs it with `sync` gets a NumPy array.


# %% id=03-d2h starter
def download(array):
    def enqueue(context): ...  # your code

    return agt.with_context(enqueue)


# %% id=03-d2h solution
def download(array):
    def enqueue(context):
        return agt.value(context.copy_to_host(array))

    return agt.with_context(enqueue)

# %% id=03-d2h hints
# One line of work. The context has a method that makes the host array as well.
#
# `context.copy_to_host(array)` returns a handle to numbers that are still to come. Do not look inside, and do not wait: pass it on.
#
# `return agt.value(context.copy_to_host(array))`

# %% id=03-d2h explanation
# The handle goes through `value` untouched. Whoever runs the operation with `sync` or `await` gets a NumPy array in its place, once the
# copy is done. And the context keeps `array` alive until then, even if everybody else forgets it.

# %% id=03-d2h-check
check("03-d2h", download)

# %% [markdown] id=alive
# One thing you did *not* have to do. When `download` has returned, nobody may hold `array` any more, and the copy has not even begun. In
# C or Rust you would have to see to it that the memory lives until then. Here the context keeps what its verbs touch,
# until the device is done with it.

# %% [markdown] id=twice-text
# ## A recipe that can be cooked twice
#
# `there_and_back` was run again and again. Here is an operation that cannot:


# %% id=twice-show
def rectified(x):
    launch = agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.last().unpartition().to_host()


op = rectified(agt.pin(np.array([-1, 2, -3, 4], np.float32)))
print("first run: ", op.sync())
try:
    op.sync()
except agt.errors.UseAfterMoveError as error:
    print("second run:", error)
else:
    raise AssertionError("the second run should have been refused")

# %% [markdown] id=twice-read
# This is the cake from the fridge. A launch yields all the arrays that it was given. `.last()` picks one of them, and what is picked is handed on for
# good: the launch it was picked from *runs at most once*. (Why? So that a result that is picked by two can still be computed once. That
# is for the next page.) `.output()`, which you know, picks nothing: it changes what the launch itself yields, and that may run again. But there are recipes
# that `.output()` does not help, such as one that takes an array of yours.
#
# The usual way out is to write the recipe again: call `rectified` once for each run. Building one costs next to nothing. But
# there is also a way to make one operation that is good for any number of runs, whatever is in it, and you know it already.

# %% [markdown] id=exercise-twice
# ### Exercise: good for any number of runs
#
# Change `positive` so that the *one* operation that it returns can be run again and again. Each run takes the numbers that `x` holds by
# then, and computes with those. (`.output()` would pass the check. Leave the two lines as they are, and find the way that always works.)


# %% id=03-recipe-twice starter
def positive(x):
    launch = agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.last().unpartition().to_host()


# %% id=03-recipe-twice solution
def positive(x):
    def cook(context):
        launch = agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
        return launch.last().unpartition().to_host()

    return agt.with_context(cook)

# %% id=03-recipe-twice hints
# The three steps are right. What is wrong is *when* they are described: once, so there is one launch, and `.last()` has its array handed
# over in the first run.
#
# Who calls a function anew each time an operation runs? You have written three such functions.
#
# Move both lines into `def cook(context):`, unchanged, and `return agt.with_context(cook)`.

# %% id=03-recipe-twice explanation
# `with_context` calls its function at every run, so everything in there is described afresh: a new launch, new arrays, and the numbers
# that `x` holds at that time.

# %% id=03-recipe-twice-check
check("03-recipe-twice", positive)

# %% [markdown] id=four-ways
# ## Four ways to say *now*
#
# The recipe is written; somebody has to start. Two questions decide how: *who picks the stream*, and *who waits*?
#
# | | picks the stream | waits | what you get |
# |---|---|---|---|
# | `op.sync()` | the policy | the host, blocked | numbers |
# | `op.sync_on(stream)` | you | the host, blocked | numbers |
# | `op.async_on(stream)` | you | nobody: it is up to you, later | handles |
# | `await op` | the policy | this task; the event loop goes on with others | numbers |
#
# The fourth has relatives. `op.schedule(policy)` lets a policy of your choice pick the stream, and returns a **future**, which you
# `await` when you like; `op.schedule()`, or `op.into_future()`, is the same with the usual policy. And `agt.spawn(op)`, which you met on the first page, starts a task.
#
# To compare them, the same operation in all four ways, and each time the host has a job of its own to do, of 100 µs.

# %% id=four-ways-run
JOB = "the host's own job"


async def host_job():
    agt.work(100, JOB)


def run_sync():
    there_and_back.sync()
    agt.work(100, JOB)


def run_sync_on():
    there_and_back.sync_on(stream)
    agt.work(100, JOB)


def run_async_on():
    there_and_back.async_on(stream)
    agt.work(100, JOB)
    stream.synchronize()


async def run_await():
    await asyncio.gather(there_and_back, host_job())  # the event loop runs both


async def four_ways():
    ways = {}
    for name, run in [("sync", run_sync), ("sync_on", run_sync_on), ("async_on", run_async_on)]:
        with agt.record() as ways[name]:
            run()
    with agt.record() as ways["await"]:
        await run_await()
    return ways


await four_ways()  # a first time, not recorded
ways = await four_ways()

# %% id=four-ways-picture
agt.compare_timelines(list(ways.values()), [f"{name}, and a job for the host" for name in ways])

# %% [markdown] id=four-ways-read
# In the upper two the host waits first and does its job afterwards: one after the other. In the lower two the job is done while the
# device works. With `async_on` you then wait yourself, at a place of your choice. With `await` there is no bar for a wait at all: nobody
# is blocked. The event loop has nothing else to do here, but any other task could have had that time.

# %% id=four-ways-check
for name, trace in ways.items():
    both = trace.overlap_between(JOB, trace.device_spans)
    blocked = sum(span.kind == "wait" for span in trace)
    print(f"{name:9} job and device at once: {both:5.0f} µs, blocking waits: {blocked}")
    assert blocked == (0 if name == "await" else 1)
    if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
        assert (both > 0) == (name in ("async_on", "await"))
if device.simulated:
    makespans = {name: trace.metrics().makespan for name, trace in ways.items()}
    assert (
        max(makespans["async_on"], makespans["await"]) < makespans["sync"] == makespans["sync_on"]
    )

# %% [markdown] id=which-when
# Which to take? `sync` to try things out, and where there is nothing else to do. `sync_on` and `async_on` where the stream matters, such as
# next to a library that has streams of its own; and then the order with other streams is *your* business, as on the last page. `await` in
# programs that do several things at a time, so nearly everywhere from here on.

# %% [markdown] id=exercise-which-way
# ### Exercise: which way to run?
#
# You are given two operations, a job, and a stream. `load` copies numbers into an array on the device, `fetch` copies that very array
# back. This is the schedule that we want:
#
# ```text
# host      start load | job job job job | start fetch | wait
# stream         load load load load load            fetch
# ```
#
# Both operations on `stream`; the job while `load` is at work; *one* wait; and the result of `fetch` is returned, with its numbers in it.


# %% id=03-which-way starter
def load_and_fetch(load, fetch, job, stream):
    load.sync()
    job()
    return fetch.sync()


# %% id=03-which-way solution
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    job()
    return fetch.sync_on(stream)

# %% id=03-which-way hints
# For each of the two ask: does it have to be on a given stream? Does the host have to wait for it?
#
# `load` goes to `stream`, and nobody waits: `async_on`. `fetch` goes to `stream`, and its result is wanted at once.
#
# `load.async_on(stream)`, `job()`, `return fetch.sync_on(stream)`.

# %% id=03-which-way explanation
# `async_on` for what the host need not wait for, `sync_on` for what it needs. The order of the two is kept by the stream, not by a wait
# in between.

# %% id=03-which-way-check
check("03-which-way", load_and_fetch)

# %% [markdown] id=future-text
# ## A future is not a start
#
# `schedule` and `into_future` sound like a beginning. Let us look closely.

# %% id=future-make
single = agt.SingleStream()  # a chef with one kitchen
future = there_and_back.schedule(single)
print(future)

# %% id=predict-future
starting = Prediction(
    "We make a future, give the host its job of 100 µs, and then await the future. "
    "Does the device work during the job?",
    no="nothing is put into the queue before the `await`",
    yes="the future has its stream, so the work is on its way",
)
starting

# %% id=predict-future-commit
starting.commit(...)

# %% id=future-run
with agt.record() as as_future:
    future = there_and_back.schedule(single)
    agt.work(100, JOB)
    await future

with agt.record() as as_task:
    task = agt.spawn(there_and_back, single)
    await asyncio.sleep(0)  # let the task start
    agt.work(100, JOB)
    await task

# %% id=reveal-future
(first_call,) = as_future.find("enqueue h2d")
(the_job,) = as_future.find(JOB)
starting.reveal(
    "no" if first_call.start >= the_job.end else "yes",
    f"The job ended at {the_job.end:.0f} µs, and the first copy was enqueued at {first_call.start:.0f} µs.",
)

# %% id=future-picture
agt.compare_timelines([as_future, as_task], ["schedule, the job, await", "spawn, the job, await"])

# %% [markdown] id=misconception-future
# > **Misconception: `schedule` and `into_future` start the work.**
# >
# > - *What you see:* a future early in the program, and a device that does nothing until the `await`.
# > - *Why:* the chef has assigned a kitchen, and nobody has lit the stove. Python's own coroutines are like that, too: `f()` of an
# >   `async def f` runs nothing.
# > - *What helps:* `spawn`, which makes a task of it; or `asyncio.gather` of several, which starts all before it waits.

# %% id=misconception-future-run
assert as_future.find("enqueue h2d")[0].start >= as_future.find(JOB)[0].end
assert as_task.find("enqueue h2d")[0].start < as_task.find(JOB)[0].start
assert future.state is agt.FutureState.COMPLETE

idle = there_and_back.schedule(single)
await asyncio.sleep(0)
print("after a turn of the event loop:", idle.state.value)
assert idle.state is agt.FutureState.IDLE

# %% [markdown] id=exercise-largest
# ### Exercise: look inside, without blocking
#
# `op` yields an array of numbers on the host. Write the coroutine `largest(op)`, which returns the largest of them. It must not block: while it
# waits, the event loop has to be free for others.


# %% id=03-largest starter
async def largest(op):
    return op.sync().max()


# %% id=03-largest solution
async def largest(op):
    numbers = await op
    return numbers.max()

# %% id=03-largest hints
# Which of the four ways waits for the numbers and lets the event loop go on?
#
# What `await op` gives you is no handle any more, but a NumPy array.
#
# `numbers = await op`, then `return numbers.max()`.

# %% id=03-largest explanation
# Before the `await` there are handles, after it there are numbers. While this function waits, the event loop is free for other tasks.

# %% id=03-largest-check
check("03-largest", largest)

# %% [markdown] id=two-chefs
# ## One recipe, two chefs
#
# What do we get for all this writing down? Here is one thing. The three operations below are given to the event loop together, twice. First
# with a policy that has a single stream, then with the usual one, which has four. Not a word of the recipe changes.


# %% id=two-chefs-run
async def cook_three():
    return await asyncio.gather(*[agt.h2d(x).to_host() for _ in range(3)])


async def with_two_chefs():
    with agt.using(policy=single), agt.record() as one:
        first = await cook_three()
    with agt.record() as many:
        second = await cook_three()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    return one, many


await with_two_chefs()  # a first time, not recorded
one_kitchen, more_kitchens = await with_two_chefs()

# %% id=two-chefs-picture
agt.compare_timelines([one_kitchen, more_kitchens], ["A policy with one stream", "The usual policy"])

# %% [markdown] id=two-chefs-read
# The same work, the same results. Above, everything waits in one queue. Below, a copy to the device and a copy back overlap, as these have an engine each, and
# the whole takes less time. Had we written the stream into each call, we would have to go through the program now and change it. So the question of *which*
# policy is a good one can be asked later, and apart from everything else: that is chapter 05.

# %% id=two-chefs-check
assert len(one_kitchen.streams) == 1
assert len(more_kitchens.streams) == 3
assert one_kitchen.metrics().overlap == 0
if device.simulated:
    assert more_kitchens.metrics().overlap > 0
    assert more_kitchens.metrics().makespan < one_kitchen.metrics().makespan

# %% [markdown] id=key-points
# ## Key points
#
# - An **operation** is a recipe. Building one enqueues nothing, reads nothing, and chooses no stream.
# - `value` yields what it is given. `with_context` calls a function at each run, with the stream and its verbs: the bridges `h2d`, `zeros` and
#   `d2h` are a few lines each.
# - Numbers are read when the work runs, not when the operation is built.
# - While work is being submitted there are **handles**. Numbers are there after `sync`, after `await`, or after the wait that `async_on` leaves
#   to you. Who looks too early is told.
# - `sync`, `sync_on`, `async_on`, `await`: who picks the stream, and who waits? `schedule` picks a stream and starts nothing.
# - The same operations run under any policy. What is to be done is one question, where and when is another.
# - An operation that hands on an array for good can be run once. Build it again, or inside of `with_context`.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so in
# the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [04_combinators.ipynb](04_combinators.ipynb), where recipes are made of recipes.

# %% id=score
score(kitchens, shelf, looking, starting)

# %% id=progress
progress("03")
