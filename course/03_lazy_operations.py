"""Source of notebooks/03_lazy_operations.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Operations: describe now, run later
#
# A list of three jobs runs on one stream, and then on three. Nobody touches the list in between. **So what is fixed when you describe a job, and what only
# when it runs?**
#
# After this page you can say what has happened when an operation has been built, write operations of your own, choose among four ways to run one, and tell a handle from the
# numbers behind it.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb) and [02_streams_and_events](02_streams_and_events.ipynb) |

# %% id=setup
import asyncio
import warnings

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Same list, less time
#
# Here is a list with three things in it. Each is a trip: copy four megabytes to the device, and copy them back. We run the list on one stream, and then we run *the same
# list* on three.

# %% id=question-run
x = agt.pin(np.random.default_rng(0).standard_normal(1_000_000, dtype=np.float32))
trips = [agt.h2d(x).to_host() for _ in range(3)]


def run_on(streams):
    for i, trip in enumerate(trips):
        trip.async_on(streams[i % len(streams)])
    agt.synchronize()


def watch(program, *args):
    """What happens when a program runs. It runs twice: on a real GPU the first time is slow."""
    program(*args)
    with agt.record() as trace:
        program(*args)
    return trace


one = watch(run_on, [agt.create_stream()])
three = watch(run_on, [agt.create_stream() for _ in range(3)])
agt.compare_timelines(
    [one, three],
    ["The list on one stream", "The same list on three streams"],
    lesson="On one stream six copies stand in a row. On three, each copy back lies beside the next copy in.",
)

# %% [markdown] id=question-read
# What is in the list? Not the results of copies, for then running it would not copy anything. The three are **operations**, recipes as on page 00 (their type is `DeviceOp`).
# A recipe does nothing until somebody runs it. That is called **lazy**.
#
# Each of them has now run four times, on two streams. The line that builds the list names no stream, and waits for nothing. **What else does a recipe leave open?** You will find out by writing
# three of them yourself, and at the end you make one several times faster.

# %% id=question-check tags=asserts
assert len(one.streams) == 1
assert len(three.streams) == 3
assert one.metrics().overlap == 0
if device.simulated:
    assert three.metrics().overlap > 0
    assert three.metrics().makespan < 0.75 * one.metrics().makespan

# %% [markdown] id=buffer
# ## One buffer, three batches
#
# A program reads batches of data, one after the other, into the same buffer. For each it builds an operation that sends the buffer to the device and back. At the end it runs all
# three.

# %% id=predict-buffer
batches = Prediction(
    "The buffer is filled with 10, then with 20, then with 30, and each time an operation is built. "
    "Then the three are run. What comes out?",
    **{
        "10,20,30": "each has the numbers that it was built with",
        "10,10,10": "the first one's copy is reused",
        "30,30,30": "all have what is in the buffer when they run",
    },
)
batches

# %% id=predict-buffer-commit
batches.commit(...)

# %% id=buffer-run
buffer = agt.pinned(4)
ops = []
for number in (10, 20, 30):
    buffer[:] = number
    ops.append(agt.h2d(buffer).to_host())

came_out = [round(float(op.sync()[0])) for op in ops]
came_out

# %% id=reveal-buffer
batches.reveal(",".join(map(str, came_out)), "The numbers are read when the copy runs.")

# %% [markdown] id=misconception-buffer
# > **Misconception: an operation keeps the numbers that were there when it was built.**
# >
# > - *What you see:* all batches give the result of the last one.
# > - *Why:* a recipe says "take what is in this bowl". It does not take anything yet.
# > - *What helps:* a buffer for each operation, or run each before you refill the buffer.

# %% id=own-buffers
own = [agt.h2d(agt.pin(np.full(4, number, np.float32))).to_host() for number in (10, 20, 30)]
print([round(float(op.sync()[0])) for op in own])

# %% [markdown] id=forgotten
# ## Two mistakes
#
# The danger of recipes is that one forgets to cook. Build an operation, lose it, and Python warns you and names the line:

# %% id=forgotten-run
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    op = agt.h2d(x)
    del op  # nobody can run it any more

print(heard[0].message)

# %% id=forgotten-check tags=asserts
assert [w.category for w in heard] == [agt.errors.NeverRunWarning]

# %% [markdown] id=proofread
# Mistakes in the recipe itself are reported as you write it, such as a kernel that is given too few arguments:

# %% id=proofread-run
try:
    agt.relu(1000)
except agt.UsageError as error:
    print(error)
else:
    raise AssertionError("a launch with too few arguments should have been refused")

# %% [markdown] id=proofread-read
# What depends on data or on the device, such as memory that runs out, can only come up when the operation runs. Then whoever runs it gets the error.

# %% [markdown] id=by-hand
# ## Write your own
#
# `h2d` is not magic. In ten minutes you will have written it yourself, out of two small parts.
#
# The first is `agt.value(thing)`: an operation that does no work, and yields `thing`.

# %% id=value-run
agt.value(42).sync()

# %% [markdown] id=with-context
# It looks useless, but wait. The second part is `agt.with_context(function)`. It makes an operation of a *function*, which is called when the
# operation **runs**, and not before. It gets an `ExecutionContext`, or *context*: that knows the stream of this run, and can put work on it. What your function returns must be an *operation*, which
# runs next, on the same stream. If you only have a thing, wrap it in `value`.
#
# Let us ask a context for its stream:

# %% id=with-context-run
def ask(context):
    print("  I am called, and my stream is number", context.stream.number)
    return agt.value(None)


where = agt.with_context(ask)
print("it is built")
where.sync()
where.sync()

# %% [markdown] id=context-table
# Built once, called twice, on two streams. (`sync` lets a *policy* choose, and the usual policy takes turns on four. [Chapter 05](05_scheduling.ipynb) is about
# that.)
#
# The context has a verb for each kind of work. Each verb puts the work into the queue of *its* stream, and returns at once:
#
# | | |
# |---|---|
# | `context.empty(shape, dtype)` | a new array on the device; nothing is written to it |
# | `context.memset(array, value=0)` | set every *byte* of it to this value |
# | `context.copy_from_host(array, host)` | fill it with the numbers of a host array of the same shape and dtype |
# | `context.copy_to_host(array)` | copy it to a new host array, and return a handle to that |
# | `context.copy(target, source)` | copy within the device |
#
# With these you write an operation by hand. This one copies an array on the device to a new one:


# %% id=copy-of
def copy_of(array):
    def enqueue(context):
        target = context.empty(array.shape, array.dtype)
        context.copy(target, array)
        return agt.value(target)

    return agt.with_context(enqueue)


original = agt.arange(5).sync()
agt.d2h(copy_of(original).sync()).sync()

# %% [markdown] id=copy-of-read
# The outer function takes what the recipe is *about*. The inner one takes the context and does the work. `value` hands over the result. Three exercises have this shape.

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
# Three steps, all of them inside `enqueue`: make an empty array, have the copy done, hand the array on.
#
# `context.empty` wants the shape *and the dtype* of `host`; its default is `float32`.
#
# `array = context.empty(host.shape, host.dtype)`, `context.copy_from_host(array, host)`, `return agt.value(array)`.

# %% id=03-h2d explanation
# Your operation learns its stream when it runs, and that is also when it reads `host`. `agt.h2d` does the same, and checks its arguments as well.

# %% id=03-h2d-check
check("03-h2d", upload)

# %% [markdown] id=exercise-zeros
# ### Exercise: zeros by hand
#
# Write `blank(shape, dtype)`: an operation that yields a new device array full of zeros. You could send zeros over from the host, but that would copy a whole
# array of zeros.


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
# New memory holds whatever was there before. It may happen to be zeros, so the check looks for the `memset` in the trace as well.

# %% id=03-zeros-check
check("03-zeros", blank)

# %% [markdown] id=handles
# ## What `async_on` returns
#
# The way back has a catch. `async_on` starts an operation on your stream and returns at once. The copy may hardly have begun. So what can it return? Let us queue up some trips, so
# that the device has plenty to do, and look.

# %% id=handles-make
stream = agt.create_stream()
for trip in trips:
    handle = trip.async_on(stream)

early = repr(handle)
early

# %% [markdown] id=handles-name
# It is a **handle**: a name for numbers that are on their way. It has a shape and a dtype. It is not an array of numbers yet.

# %% id=predict-handle
looking = Prediction(
    "While the copy is still under way, you ask the handle for its `shape`, and for its largest number. "
    "What do you get?",
    both="the shape, and a number, though perhaps not the final one",
    shape="the shape; the other question is an error",
    waits="the shape, and the right number: it waits for the copy",
)
looking

# %% id=predict-handle-commit
looking.commit(...)


# %% id=handle-ask
def answer_to(question):
    busy = [trip.async_on(stream) for trip in trips * 4]  # enough to be asked in the middle of it
    try:
        return question(busy[-1])
    except agt.errors.NotReadyError as error:
        return error
    finally:
        stream.synchronize()


shape = answer_to(lambda handle: handle.shape)
largest = answer_to(lambda handle: handle.max())
print(shape)
print(largest)

# %% id=reveal-handle
refused = isinstance(largest, agt.errors.NotReadyError)
looking.reveal("shape" if refused else "waits" if largest == x.max() else "both", "The message is above.")

# %% [markdown] id=handle-read
# Plain CUDA would hand you the buffer with whatever happened to be in it. And waiting for you in silence would be no better: you would never find out that your program stands
# still. So you get an error, on every device, every time.
#
# By now somebody has waited, and the same handle shows its numbers:

# %% id=handle-later
handle.max()

# %% id=handle-check tags=asserts
assert handle.max() == x.max()
assert shape == (1_000_000,)
assert refused
if device.simulated:
    assert "not written yet" in early

# %% [markdown] id=exercise-d2h
# ### Exercise: d2h by hand
#
# Write `download(array)`: an operation that copies a device array to the host. Inside the function you get a handle. Hand it on as it is: whoever runs the operation with
# `sync` gets a NumPy array in its place.


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
# One line of work. The context has a verb that makes the host array as well.
#
# `context.copy_to_host(array)` returns a handle to numbers that are still to come. Do not look inside, and do not wait: pass it on.
#
# `return agt.value(context.copy_to_host(array))`

# %% id=03-d2h explanation
# One way is `value`: the handle travels through it untouched, and becomes a NumPy array for whoever waits. And the context keeps `array` alive until the copy is
# done, even if everybody else forgets it. In C you would have to see to that yourself.

# %% id=03-d2h-check
check("03-d2h", download)

# %% [markdown] id=twice-text
# ## Run it again?
#
# The trips on this page have run a dozen times each. Here is an operation that refuses:


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
# A launch yields all the arrays that it was given, and `.last()` picks the last of them. (`.unpartition()` joins its blocks again.) To pick it, `.last()` runs the launch *once* and keeps what came
# out. The first run took the array from there, so the second finds nothing. `.output()` is different: it keeps nothing, and each run is a launch of its own.
#
# The simple cure is to build the operation again for each run; building costs next to nothing. But you already know a way to make *one* operation in which everything is built anew at every run.

# %% [markdown] id=exercise-twice
# ### Exercise: good for any number of runs
#
# Change `positive` so that the *one* operation that it returns can run again and again. Each run takes the numbers that `x` holds by then.


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
# The two lines are right. What is wrong is *when* they run: once, so there is only one launch.
#
# Who calls a function anew each time an operation runs? You have written three such functions.
#
# Move both lines into `def cook(context):`, unchanged, and `return agt.with_context(cook)`.

# %% id=03-recipe-twice explanation
# One operation, many runs. Two ways lead there: `with_context` calls its function at every run, so all in it is built afresh, whatever it is; and `.output()`
# in place of `.last().unpartition()` picks nothing out of a result that would have to be kept.

# %% id=03-recipe-twice-check
check("03-recipe-twice", positive)

# %% [markdown] id=four-ways
# ## Four ways to say *now*
#
# Somebody has to start an operation. Two questions tell the ways apart: *who picks the stream*, and *who waits*?
#
# | | picks the stream | waits | you get |
# |---|---|---|---|
# | `op.sync()` | the policy | Python, blocked | numbers |
# | `op.sync_on(stream)` | you | Python, blocked | numbers |
# | `op.async_on(stream)` | you | nobody: that is up to you, later | handles |
# | `await op` | the policy | this task only | numbers |
#
# To compare them, Python has a job of its own to do beside a trip: 100 µs of work.

# %% id=ways-blocking
JOB = "Python's own job"
trip = trips[0]


def with_sync():
    trip.sync()
    agt.work(100, JOB)


def with_async_on():
    trip.async_on(stream)
    agt.work(100, JOB)
    stream.synchronize()


blocking = watch(with_sync)
print(f"sync, then the job: {blocking.metrics().makespan:.0f} µs")

# %% id=predict-ways
ways = Prediction(
    f"`with_sync` takes {blocking.metrics().makespan:.0f} µs, and 100 of them are the job. "
    "How long does `with_async_on` take?",
    same="the same: there is the same amount of work to do",
    fifty="about 50 µs less",
    hundred="about 100 µs less",
    job="100 µs: only the job counts",
)
ways

# %% id=predict-ways-commit
ways.commit(...)

# %% id=ways-run
freed = watch(with_async_on)
agt.compare_timelines(
    [blocking, freed],
    ["sync, then the job", "async_on, the job, then wait"],
    lesson="With sync, Python's job begins after the last copy. With async_on it lies beside the copies.",
)

# %% id=reveal-ways
saved = blocking.metrics().makespan - freed.metrics().makespan
ways.reveal(
    "same" if saved < 25 else "fifty" if saved < 75 else "hundred" if saved < 140 else "job",
    f"It takes {freed.metrics().makespan:.0f} µs: the job is done while the device works.",
)

# %% [markdown] id=await-text
# ### And `await`?
#
# You know the fourth way from page 00: `await` pauses one function, and the event loop goes on with others. A function with `async def` is called a **coroutine**. `asyncio.gather` gives the loop several
# coroutines or operations at once, and pauses until all are done. ([Chapter 06](06_await.ipynb) explains it properly.)


# %% id=await-run
async def job():
    agt.work(100, JOB)


async def with_await():
    await asyncio.gather(trip, job())


await with_await()
with agt.record() as awaited:
    await with_await()

awaited.plot(
    title="await, with the job as a neighbour",
    lanes=("host", "streams"),
    lesson="Python's job lies beside the copies, and there is no bar for a wait: nobody is blocked.",
)

# %% [markdown] id=await-read
# As quick as `async_on`. But look at the host's lane: there is no bar for a wait. Behind the job is a gap, if anything. Nobody is blocked: if the loop had something else to do, it would do it in that gap.
#
# So which one? `sync` to try things out. `async_on` and `sync_on` where the *stream* matters, for example beside a library that has streams of its own; the order with other streams is
# then your business, as in chapter 02. `await` in programs that do several things at a time, and so nearly everywhere from here on.

# %% id=ways-check tags=asserts
assert [sum(s.kind == "wait" for s in t) for t in (blocking, freed, awaited)] == [1, 1, 0]
if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
    together = [t.overlap_between(JOB, t.device_spans) for t in (blocking, freed, awaited)]
    assert together[0] == 0 < min(together[1:])
    assert max(span.end for span in awaited.device_spans) > awaited.find(JOB)[0].end  # the gap
    assert 75 < saved < 140
    assert abs(awaited.metrics().makespan - freed.metrics().makespan) < 15

# %% [markdown] id=exercise-which-way
# ### Exercise: which way to run?
#
# You get two operations, a job, and a stream. `load` copies numbers into an array on the device. `fetch` copies that very array back. Write `load_and_fetch`: both run on `stream`, the
# job is done while the device works, and Python waits *once*. Return the result of `fetch`, with its numbers in it.


# %% id=03-which-way starter
def load_and_fetch(load, fetch, job, stream):
    load.sync()
    job()
    return fetch.sync()


# %% id=03-which-way solution
def load_and_fetch(load, fetch, job, stream):
    load.async_on(stream)
    numbers = fetch.async_on(stream)
    job()
    stream.synchronize()
    return numbers

# %% id=03-which-way hints
# Does Python have to wait for `load` before it starts `fetch`? Think of what a stream promises.
#
# A stream keeps its order, so both can go into the queue at once, with `async_on`. Then do the job. Then wait.
#
# `load.async_on(stream)`, `numbers = fetch.async_on(stream)`, `job()`, `stream.synchronize()`, `return numbers`.

# %% id=03-which-way explanation
# The stream keeps `fetch` behind `load`, so no wait is needed between them. Only the numbers at the end have to be waited for.

# %% id=03-which-way-check
check("03-which-way", load_and_fetch)

# %% [markdown] id=future-text
# ## Three ways to begin
#
# `await` has two relatives. `op.schedule(policy)` has a policy of your choice pick the stream, and returns a **future**, which you `await` when you like. (`op.into_future()` is the same with the usual
# policy.) And `agt.spawn(op)` makes a task of it. Here are three little programs. Each has Python's job in the middle.

# %% id=three-begin
single = agt.SingleStream()  # a policy: everything on one stream


async def a_future():
    future = trip.schedule(single)
    agt.work(100, JOB)
    await future


async def a_task():
    task = agt.spawn(trip, single)
    agt.work(100, JOB)
    await task


async def a_task_and_a_turn():
    task = agt.spawn(trip, single)
    await asyncio.sleep(0)  # one turn for everybody else
    agt.work(100, JOB)
    await task


# %% id=predict-future
starting = Prediction(
    "In which of them is the device at work *during* Python's job?",
    all="in all three: the operation was handed over before the job",
    tasks="in `a_task` and `a_task_and_a_turn`",
    turn="in `a_future` and `a_task_and_a_turn`",
    last="only in `a_task_and_a_turn`",
    none="in none: the job blocks the event loop",
)
starting

# %% id=predict-future-commit
starting.commit(...)

# %% id=future-run
begun = {}
for program in (a_future, a_task, a_task_and_a_turn):
    with agt.record() as begun[program.__name__]:
        await program()

agt.compare_timelines(
    list(begun.values()),
    list(begun),
    lesson="Only with a turn of the loop before the job do the copies lie beside it; else they come after.",
)

# %% id=reveal-future
early = [
    name
    for name, trace in begun.items()
    if trace.find("enqueue h2d")[0].start < trace.find(JOB)[0].start
]
starting.reveal(
    {0: "none", 1: "last", 2: "tasks" if "a_task" in early else "turn", 3: "all"}[len(early)],
    f"Enqueued before the job: {', '.join(early) or 'nothing'}.",
)

# %% [markdown] id=misconception-future
# > **Misconception: `schedule` and `spawn` start the work.**
# >
# > - *What you see:* a future or a task early in the program, and a device that does nothing until the next `await`.
# > - *Why:* a future has a stream, and no more; the work is enqueued when somebody awaits it. A task is *due* to run. It runs when the event loop gets a turn, and the loop gets one when
# >   you `await` something. In between, Python is yours alone.
# > - *What helps:* an `await` before the long job, even if it is only `asyncio.sleep(0)`. `asyncio.gather` of several operations starts all of them before it waits.

# %% id=future-check tags=asserts
assert early == ["a_task_and_a_turn"]
idle = trip.schedule(single)
await asyncio.sleep(0)
assert idle.state is agt.FutureState.IDLE

# %% [markdown] id=exercise-largest
# ### Exercise: look inside, without blocking
#
# `op` yields an array of numbers on the host. Write the coroutine `largest(op)`, which returns the largest of them. While it
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
# After the `await` there are numbers, and you may look. While this function waits, the event loop is free for other tasks.

# %% id=03-largest-check
check("03-largest", largest)

# %% [markdown] id=answer
# ## What, and where
#
# You can answer the question at the top now. A recipe fixes *what* to do, and in which order. Whoever runs it decides when and where, with which numbers, and who waits. That is why the same
# list could run on one stream and on three.
#
# Here is the list once more, given to the event loop under two policies. This is how programs look from here on: *what* in one place, *where* in another.

# %% id=answer-run
async def all_trips():
    await asyncio.gather(*trips)


for size in (1, 3):
    with agt.using(policy=agt.StreamPoolRoundRobin(size)), agt.record() as trace:
        await all_trips()
    print(f"a pool of {size}: {trace.metrics().makespan:4.0f} µs")

# %% [markdown] id=challenge
# ## Challenge: sixteen small arrays
#
# Sixteen small arrays of 1000 numbers each are to go to the device, through `agt.relu`, and back. The program below is right, but the device is idle nearly all of the time, and Python makes one
# call after the other. As it stands, this takes 737 µs: get below 200. `watch(lambda: small_arrays(hosts).sync()).plot()` draws its timeline.
#
# `small_arrays(hosts)` returns one operation. Its result has sixteen rows, in order: a list, a tuple or an array, as you like. It can be run any number of times, and each run takes what the arrays hold *by then*.
# (`agt.zip` makes one operation of several. `op.reshape(rows, columns)` reshapes what an operation yields.)

# %% id=challenge-inputs
hosts = [agt.pin(np.full(1000, i - 8, np.float32)) for i in range(16)]


# %% id=03-challenge starter
def small_arrays(hosts):
    ops = [
        agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256)).output().to_host()
        for x in hosts
    ]
    return agt.zip(*ops)


# %% id=03-challenge solution
def small_arrays(hosts):
    def enqueue(context):
        together = agt.pin(np.concatenate(hosts))  # what they hold now
        n = together.size
        launch = agt.relu(n, agt.h2d(together), agt.zeros(n).partition(256))
        return launch.output().reshape(len(hosts), hosts[0].size).to_host()

    return agt.with_context(enqueue)

# %% id=03-challenge hints
# Python needs several calls for each of the sixteen. Who says that they have to travel one by one?
#
# `np.concatenate(hosts)` makes one large array of them. But when is it to be made, so that each run has the numbers of its own time?
#
# In a function for `with_context`: `together = agt.pin(np.concatenate(hosts))`, then one `h2d`, one `relu`, `.output().reshape(len(hosts), hosts[0].size).to_host()`.

# %% id=03-challenge explanation
# One way: one copy there and one copy back, in place of sixteen. When Python is what everybody waits for, fewer and larger operations help more than any number of streams.

# %% id=03-challenge-check
check("03-challenge", small_arrays)

# %% [markdown] id=key-points
# ## Key points
#
# - An **operation** is a recipe. Building one enqueues nothing, reads nothing, and chooses no stream. Numbers are read when it runs.
# - `with_context` calls your function at each run, with a context: the stream, and verbs for it. `h2d`, `zeros` and `d2h` are a few lines each.
# - While work is under way there are **handles**. Look too early and you get an error; after a wait, the numbers are there.
# - `sync`, `sync_on`, `async_on`, `await`: who picks the stream, and who waits?
# - A future starts nothing, and a task starts at your next `await`.
# - An operation that takes its array out of another result, as `.last()` does, can run once. Build it again, or inside `with_context`.
#
# What others call these things is in the [glossary](../docs/glossary.md), and common mistakes are in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [04_combinators.ipynb](04_combinators.ipynb), where large operations are made of small ones.

# %% id=score
score(batches, looking, ways, starting)

# %% id=progress
progress("03")
