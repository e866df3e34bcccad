"""Source of notebooks/03_lazy_operations.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Operations: describe now, run later
#
# We'll run a list of three jobs on one stream, and then the very same list on three. Nobody touches the list in between. **So what is settled when you describe a job, and what isn't until you run it?**
#
# After this page you can write operations of your own, choose among four ways to run one, and tell a handle from the numbers behind it.
#
# | | |
# |---|---|
# | Time | 50 minutes, and 5 for the encore |
# | You need | [00_start_here](00_start_here.ipynb), [01_sync_kernels](01_sync_kernels.ipynb), and [02_streams_and_events](02_streams_and_events.ipynb) |

# %% id=setup
import asyncio
import warnings

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Same list, less time
#
# Here's the list: three round trips, each with four megabytes to the device and back.

# %% id=question-run
x = agt.pin(np.random.default_rng(0).standard_normal(1_000_000, dtype=np.float32))
trips = [agt.h2d(x).to_host().named(f"trip {i}") for i in range(3)]


def run_on(streams):
    for i, trip in enumerate(trips):
        trip.async_on(streams[i % len(streams)])
    agt.synchronize()


def watch(program, *args):
    """The trace of a program's second run. On a real GPU the first is slow."""
    program(*args)
    with agt.record() as trace:
        program(*args)
    return trace


one = watch(run_on, [agt.create_stream()])
three = watch(run_on, [agt.create_stream() for _ in range(3)])
agt.compare_timelines(
    [one, three],
    ["The list on one stream", "The same list on three streams"],
    lesson="On one stream six copies stand in a row. "
    "On three, copies back lie beside copies in.",
)

# %% [markdown] id=question-read
# What is in that list? Not results, because then running it wouldn't copy anything. And not a stream, because it has run on one and on three. What *else* does it leave open? (The grey boxes are Python's calls.)

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
# Suppose your program reads three batches, one after the other, into the same buffer. For each it writes down a round trip of that buffer. And it likes to be one batch ahead: it reads the next one before it runs the trip of the last.

# %% id=buffer-run
buffer = agt.pinned(500_000)


def three_batches():
    trips, came_back = [], []
    for number in (4, 5, 6):
        agt.work(40, f"read {number}")  # stands for reading a batch
        buffer[:] = number
        trips.append(agt.h2d(buffer).to_host().named(f"trip {len(trips)}"))
        if len(trips) > 1:
            came_back.append(trips[-2].sync())  # of the batch before
    came_back.append(trips[-1].sync())
    return [round(float(numbers[0])) for numbers in came_back]


# %% id=03-batches guess
# What comes back from each of the three trips? Type three numbers.

# %% id=03-batches reveal
with agt.record() as story:
    came_out = three_batches()

filled = [span.end for span in story if span.kind == "work"]
ends = [*filled, max(span.end for span in story)]
contents = [(ends[i], ends[i + 1], str(number)) for i, number in enumerate((4, 5, 6))]
filling = story.with_lane("buffer", contents)
picture = filling.plot(title="One buffer, three batches", lanes=("host", "streams"))
reveal("03-batches", " ".join(map(str, came_out)), picture)

# %% id=03-batches lesson
# When the first trip begins, the 4 is gone. The other two both find the 6.

# %% id=03-batches told truth="5 6 6"
# > **Misconception: an operation keeps the numbers that were there when it was built.**
# >
# > - *What you see:* a batch gives you the result of a later one, and some results never come.
# > - *Why:* the recipe only says "take what's in this bowl", and by the time we cook, you've refilled the bowl.
# > - *What helps:* give each operation its own buffer, or run each one and wait for it before you refill the buffer.

# %% id=buffer-check tags=asserts
assert came_out == [5, 6, 6]
if device.simulated:
    begins = [copy.start for copy in story.find("h2d")]
    assert filled[1] < begins[0] < filled[2] < begins[1] < begins[2]

# %% [markdown] id=forgotten
# ## A recipe that nobody cooks
#
# A trip names no stream, waits for nothing, and reads no numbers until it runs. It's an **operation**, a recipe like those on page 00, and its type is `DeviceOp`. A recipe does nothing until somebody runs it. The word for that is **lazy**, and it's meant as a compliment.
#
# The trouble with recipes is that you can write one down, feel productive, and forget to cook. So if you build an operation and lose it, Python warns you and names the line:

# %% id=forgotten-run
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    op = agt.h2d(x)
    del op  # nobody can run it any more

print(f"line {heard[0].lineno}: {heard[0].message}")

# %% id=forgotten-check tags=asserts
assert [(w.category, w.lineno) for w in heard] == [(agt.errors.NeverRunWarning, 3)]

# %% [markdown] id=by-hand
# ## Write your own
#
# There's no magic in `h2d`. You can write it yourself, from two small parts. The first is `agt.value(thing)`, an operation that does no work and just yields `thing`:

# %% id=value-run
agt.value(42).sync()

# %% [markdown] id=with-context
# It looks useless, but bear with me. The second is `agt.with_context(function)`, which turns a *function* into an operation. Your function isn't called when you build the operation. It's called when the operation **runs**, because that's when there is a stream. It receives an `ExecutionContext`, or *context* for short, which can put work on that stream. It has to return another *operation*, which runs next, on the same stream. If all you have is a plain thing, wrap it in `value`.
#
# Let's ask one for its stream:


# %% id=with-context-run
def ask(context):
    print("  I am called, and my stream is number", context.stream.number)
    return agt.value(None)


where = agt.with_context(ask)
print("it is built")
for _ in range(5):
    where.sync()

# %% [markdown] id=context-table
# Our function was called at each run. Who chose the streams? `sync` leaves that to a *policy*, and the usual one has four streams that take turns, so the fifth run is back on the stream of the first. (These numbers count all the streams that the program has created so far. A picture numbers only the streams in it, so there they begin at 1.)
#
# The context has a verb for each kind of work, which puts it into the stream's queue and returns right away:
#
# | | |
# |---|---|
# | `context.empty(shape, dtype)` | a new array on the device, with nothing written to it |
# | `context.memset(array, value=0)` | set every *byte* of the array to this value |
# | `context.copy_from_host(array, host)` | fill the array from a host array of the same shape and dtype |
# | `context.copy_to_host(array)` | copy the array to a new host array, and return a handle to that |
# | `context.copy(target, source)` | copy within the device |
#
# This operation copies a device array to a new one:


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
# Why two functions? Because they're called at different times. Here's how it goes if you write the recipe once and run it twice:

# %% id=two-functions tags=helpers
def draw_two_functions():
    """Over time: the outer function is called once, and the inner one at each run."""
    figure, axes = plt.subplots(figsize=(8, 2.4), layout="constrained")
    rows = {"copy_of(array)": 3, "sync()": 2, "enqueue(context)": 1, "the context's stream": 0}
    boxes = [("copy_of(array)", 0, 1, "#9ad5f7", "builds it")]
    for run in (3, 7):
        boxes += [
            ("sync()", run, 3, "0.9", "runs it"),
            ("enqueue(context)", run + 0.2, 1.5, "#6fd3b0", "empty, copy"),
            ("the context's stream", run + 1.3, 1.5, "#f0b840", "copies"),
        ]
    for lane, start, wide, colour, text in boxes:
        y = rows[lane]
        axes.barh(y, wide, left=start, height=0.7, color=colour, edgecolor="0.3")
        axes.text(start + wide / 2, y, text, ha="center", va="center", fontsize=9)
    axes.set_yticks([*rows.values()], [*rows], family="monospace")
    axes.set(xticks=[], xlabel="time", xlim=(-0.3, 10.3))
    axes.spines[["top", "right", "left"]].set_visible(False)
    shown(
        figure,
        "Four lanes over time. copy_of is called once, at the left. Later there are two runs by sync, and in "
        "each of them enqueue is called and puts a copy on the stream.",
        "The outer function is called once, before anything runs. The inner one is called in each run.",
    )


draw_two_functions()

# %% [markdown] id=two-functions-read
# You call the outer one when you write the recipe, and tell it what the recipe is *about*. The inner one is called when the recipe runs: it takes the context, does the work, and hands over the result with `value`.

# %% [markdown] id=exercise-h2d
# ### Exercise: h2d by hand
#
# Write `upload(host)`. It returns an operation that copies a host array to a new device array and yields that, for any shape and dtype.


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
# There are three steps, and all of them go into `enqueue`: make an empty array, fill it from the host, and pass it on.
#
# `context.empty` wants the shape *and the dtype* of `host`. If you leave the dtype out, you get `float32`.
#
# `array = context.empty(host.shape, host.dtype)`, `context.copy_from_host(array, host)`, `return agt.value(array)`.

# %% id=03-h2d explanation
# Your operation learns its stream when it runs, and that's also when it reads `host`. `agt.h2d` does exactly this, plus a few checks of its arguments.

# %% id=03-h2d-check
check("03-h2d", upload)

# %% [markdown] id=handles
# ## What `async_on` returns
#
# Copying back has a catch. `async_on` starts an operation on your stream and returns right away, when the copy may have hardly begun. So what can it return? And what if you ask that for its largest number in the middle of the copy?

# %% id=handle-warm-up tags=helpers
# A real GPU looks for memory the first time, which takes longer than the copies.
stream = agt.create_stream()
handles = [trip.async_on(stream) for trip in trips * 4]
stream.synchronize()
handles.clear()  # so that their memory is free again

# %% id=handle-ask
handles = [trip.async_on(stream) for trip in trips * 4]  # so that we can ask in time
handle = handles.pop()
early = repr(handle)
try:
    largest = handle.max()
except agt.errors.NotReadyError as error:
    largest = error

stream.synchronize()
print(early, largest, handle.max(), sep="\n")
handles.clear()

# %% [markdown] id=handle-read
# We got a **handle**: a name for numbers that are still on their way. It already has a shape and a dtype, and after a wait its numbers, too.
#
# Why an error? Plain CUDA would hand you whatever happened to be in the buffer. And if we quietly waited, your program would stand still and you'd never find out. So you get an error, on every device, every time.

# %% id=handle-check tags=asserts
assert handle.max() == x.max()
assert handle.shape == (1_000_000,)
if device.simulated:  # a busy computer with a GPU may ask too late
    assert isinstance(largest, agt.errors.NotReadyError)
    assert "not written yet" in early

# %% [markdown] id=exercise-d2h
# ### Exercise: d2h by hand
#
# Write `download(array)`. It returns an operation that copies a device array to the host. Inside your function you get a handle. Pass it on as it is: whoever runs the operation with `sync` gets a NumPy array instead.


# %% id=03-d2h starter
def download(array):
    def enqueue(context): ...  # your code

    return agt.with_context(enqueue)


# %% id=03-d2h solution
# - def enqueue(context): ...  # your code
# + def enqueue(context):
# +     return agt.value(context.copy_to_host(array))

# %% id=03-d2h hints
# It's one line of work, since the context has a verb that makes the host array as well.
#
# `context.copy_to_host(array)` returns a handle to numbers that are still to come. Don't look inside and don't wait. Just pass it on.
#
# `return agt.value(context.copy_to_host(array))`

# %% id=03-d2h explanation
# With `value`, the handle passes through untouched and becomes a NumPy array for whoever waits. Meanwhile the context keeps `array` alive until the copy is done, even if everybody else forgets about it. In C you'd have to see to that yourself.

# %% id=03-d2h-check
check("03-d2h", download)

# %% [markdown] id=twice-text
# ## Run it again?
#
# Here's a recipe that sorts the numbers before they go to the device, and lets `relu` cut off the negative ones. (As on page 01, it writes to zeros cut into blocks of 256, and `output()` yields them.)


# %% id=twice-show
def ascending(x):
    in_order = agt.pin(np.sort(x))
    launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


points = np.array([3, -5, 2, -1], np.float32)
op = ascending(points)
first = op.sync()
first

# %% id=03-again guess
# Now `points *= 10`, and then the *same* `op.sync()` once more. What is the largest number that comes back?

# %% id=03-again reveal
points *= 10
second = op.sync()
reveal("03-again", f"{second.max():.0f}", lambda: print(second))

# %% id=03-again told truth=3
# The copy did run again, but from `in_order`, and nobody has touched that. `np.sort(x)` is ordinary Python, so Python sorted on the spot, while you were writing the recipe. The buffer above was read too late, and these numbers too early. **Only operations are lazy. The Python around them isn't.**
#
# So how do you get Python code into a recipe, to be run each time? You already know.

# %% id=again-check tags=asserts
assert list(first) == list(second) == [0, 0, 2, 3]

# %% [markdown] id=exercise-twice
# ### Exercise: good for any number of runs
#
# Change `ascending` so that you call it once and run its operation again and again. Each run takes the numbers that `x` holds at that moment.


# %% id=03-recipe-twice starter
def ascending(x):
    in_order = agt.pin(np.sort(x))
    launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


# %% id=03-recipe-twice solution
def ascending(x):
    def cook(context):
        in_order = agt.pin(np.sort(x))
        launch = agt.relu(x.size, agt.h2d(in_order), agt.zeros(x.size).partition(256))
        return launch.output().to_host()

    return agt.with_context(cook)

# %% id=03-recipe-twice hints
# The three lines are right. The trouble is *when* they run.
#
# Who calls a function again each time an operation runs? You've written functions like that on this page.
#
# Move them into `def cook(context):`, unchanged, and `return agt.with_context(cook)`.

# %% id=03-recipe-twice explanation
# `with_context` calls your function at each run, so the sorting, the copies and the launch all happen afresh. It's also why three runs can be under way at once: each has sorted numbers of its own.

# %% id=03-recipe-twice-check
check("03-recipe-twice", ascending)

# %% [markdown] id=four-ways
# ## Four ways to say *now*
#
# Somebody has to cook, and there are four ways. Two questions tell them apart: *who picks the stream*, and *who waits*?
#
# | | picks the stream | waits | you get |
# |---|---|---|---|
# | `op.sync()` | the policy | Python, blocked | the result |
# | `op.sync_on(stream)` | you | Python, blocked | the result |
# | `op.async_on(stream)` | you | nobody: waiting is up to you, later | handles |
# | `await op` | the policy | this task only | the result |
#
# To compare them, we give Python a job of its own beside a trip: 200 µs of work.

# %% id=ways-blocking
JOB = "Python's own job"
trip = trips[0]


def with_sync():
    trip.sync()
    agt.work(200, JOB)


def with_async_on(us=200):
    trip.async_on(stream)
    agt.work(us, JOB)
    stream.synchronize()


# %% id=ways-run
blocking, freed = watch(with_sync), watch(with_async_on)
agt.compare_timelines(
    [blocking, freed],
    ["sync, then the job", "async_on, the job, then wait"],
    lesson="With sync, Python's job begins after the last copy. "
    "With async_on it begins beside the first.",
)

# %% [markdown] id=play-text
# How long may the job be before it costs anything? Change these numbers:

# %% id=play
for us in (50, 100, 150, 200):
    in_all = watch(with_async_on, us).metrics().makespan
    print(f"a job of {us:3} µs: {in_all:3.0f} µs in all")

# %% [markdown] id=play-read
# On the simulated H200, Python enqueues until 28.4 µs and the last copy ends at 165.7. So 137 µs of a job are free, and that's just what `with_async_on` saves. If the job is longer, you wait for the part that lasts beyond the copies.

# %% id=play-check tags=asserts
if device.simulated:
    enqueued, copied = freed.find(JOB)[0].start, max(span.end for span in freed.device_spans)
    assert [round(us, 1) for us in (enqueued, copied)] == [28.4, 165.7]
    assert int(copied - enqueued) == int(blocking.metrics().makespan - freed.metrics().makespan) == 137
    free, costs = (watch(with_async_on, us).metrics().makespan for us in (137, 147))
    assert abs(free - watch(with_async_on, 10).metrics().makespan) < 0.1
    assert 9 < costs - free < 10.1

# %% [markdown] id=on-a-gpu-text
# ### On an H200
#
# Here are all four ways, with the same trip and a job of 100 µs each time.

# %% id=on-a-gpu
h200 = agt.Trace.load_recording("03_lazy_operations")
ways_there = ["sync", "sync_on", "async_on", "await"]
begins = [min(span.start for span in h200 if span.label == way) for way in ways_there]
each = [h200.between(a, b).from_first() for a, b in zip(begins, [*begins[1:], 1e6])]
agt.compare_timelines(
    each,
    [f"{way}, on an H200" for way in ways_there],
    lesson="Twice Python waits and then does its job. "
    "Twice it does the job while the copies run.",
)

# %% [markdown] id=on-a-gpu-read
# With `sync` and `sync_on`, Python waits for more than 100 µs before its job. With `async_on` it waits for 17 µs, at the very end. With `await` there's only a gap behind the job, and the loop could do something else in it.
#
# So which one do you take? `sync` is for trying things out. `async_on` and `sync_on` are for when the *stream* matters, as beside a library with streams of its own. `await` is for programs that do several things at a time. [Chapter 06](06_await.ipynb) is about that one: there's more to it than a word.

# %% id=on-a-gpu-check tags=asserts
waits = [span.duration for span in h200 if span.kind == "wait"]
assert [round(us) for us in waits] == [109, 120, 17]
beside = [h200.overlap_between(span, h200.device_spans) > 0 for span in h200 if span.kind == "work"]
assert beside == [False, False, True, True]

# %% id=ways-check tags=asserts
assert [sum(s.kind == "wait" for s in t) for t in (blocking, freed)] == [1, 1]
if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
    together = [t.overlap_between(JOB, t.device_spans) for t in (blocking, freed)]
    assert together[0] == 0 < together[1]

# %% [markdown] id=exercise-which-way
# ### Exercise: which way to run?
#
# You get two operations, a job, and a stream. `load` copies numbers into an array on the device, and `fetch` copies that very array back. Write `load_and_fetch`: both operations run on `stream`, one right behind the other, the job is done while the device works, and Python waits *once*, at the end. Return the result of `fetch`, with its numbers in it.


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
# A stream keeps its order, so you can put both into the queue with `async_on`, one right after the other. Then do the job, and then wait.
#
# `load.async_on(stream)`, `numbers = fetch.async_on(stream)`, `job()`, `stream.synchronize()`, `return numbers`.

# %% id=03-which-way explanation
# The stream keeps `fetch` behind `load`, so you needn't wait between them. And because both were in the queue before the job began, the device went from one to the other by itself, while Python was busy.

# %% id=03-which-way-check
check("03-which-way", load_and_fetch)

# %% [markdown] id=answer
# ## How many streams does it need?
#
# Back to the list from the top. This time the event loop runs it: `asyncio.gather` starts all three trips and waits for them. And `agt.using` replaces the usual policy by one with `size` streams that take turns.

# %% id=answer-program
async def in_a_pool(size):
    with agt.using(policy=agt.StreamPoolRoundRobin(size)):
        await asyncio.gather(*trips)  # a warm-up
        with agt.record() as trace:
            await asyncio.gather(*trips)
    return trace


until = [max(span.end for span in t.from_first().device_spans) for t in (one, three)]
print(f"The list's last copy: on one stream {until[0]:.0f} µs, on three {until[1]:.0f}")

# %% id=03-two guess within=0.02
# When does the last copy end on two? (The first picture of the page has all you need.)

# %% id=03-two reveal
pools = {}
for size in (1, 2, 3):
    pools[size] = await in_a_pool(size)

took = [f"{trace.metrics().makespan:.0f}" for trace in pools.values()]
picture = agt.compare_timelines([pools[2], pools[3]], ["A pool of two", "A pool of three"])
reveal("03-two", took[1], picture, one=took[0], three=took[2])

# %% id=03-two lesson
# From trip 0 to trip 2, both have four copies in a row: in, out, in, out, or in, in, in, out.

# %% id=03-two told truth=323
# A pool of one takes {one} µs, and a pool of three {three}. The second stream saves almost everything and the third hardly anything, because copies in the same direction stand in a row on however many streams.

# %% id=answer-check tags=asserts
if device.simulated:
    assert took == ["481", "323", "315"]
    assert [f"{us:.0f}" for us in until] == took[::2]
    rows = ["h2d 0, d2h 0, h2d 2, d2h 2", "h2d 0, h2d 1, h2d 2, d2h 2"]
    for trace, row in zip([pools[2], pools[3]], rows, strict=True):
        copies = [trace.find(name)[int(i)] for name, i in map(str.split, row.split(", "))]
        assert all(0 <= copies[i + 1].start - copies[i].end < 5 for i in range(3))
        assert copies[-1].end == max(span.end for span in trace)

# %% [markdown] id=settled
# ## What's settled, and when
#
# Nobody has changed a word of the list. So what is settled when you describe a job? The steps, their order, the arrays they use, and what plain Python has worked out by then, like the sorted numbers. All else is open until somebody runs it: when and where it happens, who waits, and *which numbers* are in the arrays.

# %% [markdown] id=challenge
# ## Challenge: sixteen small arrays
#
# Sixteen small arrays of 1000 numbers each have to go to the device, through `agt.relu`, and back. The program below gets it right, but most of the time the device is idle, and it takes 737 µs. Get below 200. (NumPy and `pin` are free only on the simulated clock.) `watch(lambda: small_arrays(hosts).sync()).plot()` draws its timeline.
#
# `small_arrays(hosts)` returns one operation. Its result has sixteen rows, in order, and may be a list, a tuple or an array. The operation can run any number of times, and each run takes what the arrays hold *by then*. Two tools: `agt.zip` makes one operation of several, and `op.reshape(rows, columns)` reshapes what an operation yields.

# %% id=challenge-inputs
hosts = [agt.pin(np.full(1000, i - 8, np.float32)) for i in range(16)]


# %% id=03-challenge starter
def small_arrays(hosts):
    def trip(x):
        launch = agt.relu(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
        return launch.output().to_host()

    return agt.zip(*[trip(x) for x in hosts])


# %% id=03-challenge solution
def small_arrays(hosts):
    def enqueue(context):
        together = agt.pin(np.concatenate(hosts))  # what they hold now
        n = together.size
        launch = agt.relu(n, agt.h2d(together), agt.zeros(n).partition(256))
        return launch.output().reshape(len(hosts), hosts[0].size).to_host()

    return agt.with_context(enqueue)

# %% id=03-challenge hints
# Python needs several calls for each of the sixteen. Who says they have to travel one by one?
#
# `np.concatenate(hosts)` makes one large array of them. But when should that happen, if each run is to have the numbers of its own time?
#
# In a function for `with_context`: `together = agt.pin(np.concatenate(hosts))`, then one `h2d`, one `relu`, `.output().reshape(len(hosts), hosts[0].size).to_host()`.

# %% id=03-challenge explanation
# One way is a single copy there and a single copy back instead of sixteen each. When everybody waits for Python, fewer and larger operations help more than any number of streams. Pinning afresh in each run is free only on the simulated clock. Without `agt.pin` this takes 70 µs there, which is below 200 as well.

# %% id=03-challenge-check
check("03-challenge", small_arrays)

# %% [markdown] id=key-points
# ## Key points
#
# - An **operation** is a recipe. Building one enqueues nothing, reads nothing, and chooses no stream. The numbers are read when its copy runs.
# - While work is under way you have a **handle**. If you look inside too early, you get an error, and after a wait you get the numbers.
# - `sync`, `sync_on`, `async_on` and `await` differ in who picks the stream and who waits.
# - Only operations are lazy. Python code around them runs when you write the recipe, unless you put it into a function for `with_context`, which is called at each run.
#
# The [glossary](../docs/glossary.md) has other people's words for all this, and [misconceptions](../docs/misconceptions.md) has their mistakes.
#
# **Next:** [04_combinators.ipynb](04_combinators.ipynb), where we make large operations out of small ones.

# %% id=score
score("03")

# %% id=progress
progress("03")
# %% [markdown] id=exercise-zeros
# ## Encore: zeros by hand
#
# Here's one more operation to write yourself, with the same two functions.
#
# ### Exercise: zeros by hand
#
# Write `blank(shape, dtype)`. It returns an operation that yields a new device array full of zeros. You could send the zeros over from the host, but then you'd be copying a whole array of nothing.


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
# It's `upload` with another way to fill the array. Nothing has to come from the host.
#
# Zero is the number whose bytes are all zero, for integers and floats alike, and setting bytes is what `context.memset` does.
#
# `array = context.empty(shape, dtype)`, `context.memset(array)`, `return agt.value(array)`.

# %% id=03-zeros explanation
# New memory holds whatever was there before, and with some luck that's zeros already. So the check also looks for your `memset` in the trace.

# %% id=03-zeros-check
check("03-zeros", blank)
