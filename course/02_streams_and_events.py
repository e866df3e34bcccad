"""Source of notebooks/02_streams_and_events.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Streams and events
#
# **After this page you can**
#
# - put work on streams of your own, and say which of it is in order and which is not;
# - find a race between two streams, and end it with an event instead of a wait;
# - fork work to several streams and join it again, with as few events as possible;
# - copy from pinned memory, and say what a copy from an ordinary array costs Python;
# - cut a job into chunks, so that one is copied while another is computed, and say when that pays.
#
# | | |
# |---|---|
# | Time | 80 minutes |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb), above all its last part: `async_on` and `synchronize` |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=what
# ## A thousand thermometers
#
# We need work that takes a while. Say a thousand thermometers have been read a thousand times each, or more. Their
# readings jitter, and we want them smooth: each new reading moves a running `level` a little way towards itself. In
# NumPy, for all thermometers at once:

# %% id=readings
rows = 1024
n = 1024 if device.simulated else 8192  # a real GPU gets more to do: its times jitter, like thermometers
rng = np.random.default_rng(0)
wave = np.sin(np.arange(n) / 100 + rng.uniform(0, 6, (rows, 1)))
readings = agt.pin((wave + rng.normal(0, 0.3, (rows, n))).astype(np.float32))


def in_numpy(x, rate=0.05):
    y, level = np.empty_like(x), x[:, 0].copy()
    for t in range(x.shape[1]):
        level += np.float32(rate) * (x[:, t] - level)
        y[:, t] = level
    return y


plt.figure(figsize=(8, 2))
plt.plot(readings[0], color="0.7", label="readings")
plt.plot(in_numpy(readings)[0], color="black", label="smooth")
plt.title("Thermometer 0")
plt.xlabel("reading")
plt.ylabel("degrees")
plt.legend()
jumps = [np.abs(np.diff(line)).mean() for line in (readings[0], in_numpy(readings)[0])]
print(f"from one reading to the next: {jumps[0]:.2f} degrees; smoothed: {jumps[1]:.2f} degrees")
assert jumps[1] < jumps[0] / 10

# %% [markdown] id=kernel-text
# Each level needs the one before it, so a thread takes a whole row. There are as many threads as thermometers, and each
# has a long way to go: a kernel that is *narrow and long*.

# %% id=kernel
smooth = agt.Kernel(r"""
extern "C" __global__ void smooth(unsigned int rows, unsigned int n, float rate,
                                  const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float level = x[row * n];
        for (unsigned int t = 0; t < n; t++) {
            level += rate * (x[row * n + t] - level);
            y[row * n + t] = level;
        }
    }
}
""")

# %% [markdown] id=borrow
# Two things are new in the next cell. A thread has more than one element here, so we say ourselves how many blocks and
# threads we want, with `grid=` and `block=` in place of `.partition`. And **`x.borrow()`**: pass an array to an
# operation and you have given it away; the operation hands it on in its result. That is what you want in a chain. Here
# we write step after step by hand, and want to keep `x` and `y` in our own pocket. So we *lend* them.

# %% id=smoothing
def smoothing(x, y, rate=0.05):
    rows, n = x.shape
    blocks = (rows + 63) // 64
    return smooth(rows, n, rate, x.borrow(), y.borrow(), grid=blocks, block=64)


streams = [agt.create_stream() for _ in range(4)]  # for all of this page
one, two, *_ = streams

x = agt.h2d(readings, "x").sync()
y = agt.zeros((rows, n), name="y").sync()
smoothing(x, y).sync()
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(readings), atol=1e-4)

# %% [markdown] id=within
# ## One stream: everything in order
#
# A stream is a queue for the device. `op.async_on(stream)` puts an operation in, and comes back at once with the
# *handle* of its result: a name for it, that can be passed on before there is anything in it. Below, `x` is passed to
# the kernel while the copy has hardly begun. That is fine: **on one stream, each piece of work starts when the one
# before it has ended.**

# %% id=within-run
def recorded(program, *args):
    """The trace of a program, and its result. A real GPU is slow the first time, so that is for practice."""
    if not device.simulated:
        program(*args)
        agt.synchronize()
    with agt.record() as trace:
        result = program(*args)
    return trace, result


def by_hand():
    x = agt.h2d(readings, "x").async_on(one)
    y = agt.zeros((rows, n), name="y").async_on(one)
    smoothing(x, y).async_on(one)
    there = agt.d2h(y.borrow()).async_on(one)
    one.synchronize()
    return there.numpy()


queued, result = recorded(by_hand)
assert np.allclose(result, in_numpy(readings), atol=1e-4)
queued.plot(title="Four operations on one stream", lanes=("host", "streams"))

# %% [markdown] id=within-read
# The host has made its calls while the first copy was still under way, and then it waits: once, at the end. (On a real
# GPU the last call may come a little later than that. `there` is a handle as well. `there.numpy()` is the array itself,
# and may be asked for when the copy is done. Before that it raises an error.)

# %% id=within-check
assert [s.name for s in queued.device_spans] == ["h2d", "memset", "smooth", "d2h"]
assert all(
    queued.runs_before(*pair)
    for pair in [("h2d", "memset"), ("memset", "smooth"), ("smooth", "d2h")]
)
assert len([s for s in queued if s.kind == "wait"]) == 1
if device.simulated:
    last_call = max(s.end for s in queued if s.kind == "call")
    (copy,) = queued.find("h2d")
    print(f"the last call is over after {last_call:.0f} µs, the first copy after {copy.end:.0f} µs")
    assert last_call < copy.end

# %% [markdown] id=between
# ## Two streams: no order at all
#
# Now two streams. On the first we smooth a thousand rows, which takes long. *Then* we put a small job on the second:
# sixteen rows of 64 readings.

# %% id=predict-between
who_is_first = Prediction(
    "The long kernel is put on stream one, then the short one on stream two. Which is done first?",
    long="the long one: it was started first",
    short="the short one: nobody makes it wait",
    never="one cannot tell: they share the device, and end together",
)
who_is_first

# %% id=predict-between-commit
who_is_first.commit(...)

# %% id=between-run
few = agt.h2d(agt.pin(readings[:16, :64]), "few").sync()
few_y = agt.zeros((16, 64), name="few y").sync()


def long_then_short():
    smoothing(x, y).named("long").async_on(one)
    smoothing(few, few_y).named("short").async_on(two)
    agt.synchronize()


unordered, _ = recorded(long_then_short)
long, short = unordered.find("smooth")
unordered.plot(title="A long and a short kernel, on two streams", lanes=("host", "streams"))

# %% id=reveal-between
truth = "never" if abs(short.end - long.end) < 1 else "short" if short.end < long.end else "long"
who_is_first.reveal(truth, f"The long one ends at {long.end:.0f} µs, the short at {short.end:.0f}.")

# %% [markdown] id=between-read
# **Between two streams there is no order.** Not that of the calls, not that of the numbers of the streams. The device
# takes from the head of each queue what it has room for. Both of our kernels are narrow, so there is room for both.
# (`agt.synchronize()` waits for all streams.)

# %% id=between-check
assert (long.stream, short.stream) == (one.number, two.number)
assert not unordered.happens_before(long, short)
assert not unordered.happens_before(short, long)
if device.simulated:
    assert short.end < long.end

# %% [markdown] id=race
# ## A race
#
# So what happens here? Stream one smooths, stream two copies the result to the host. Two calls, in the order in which
# one would write them down:
#
# ```python
# smoothing(x, y).async_on(one)
# there = agt.d2h(y.borrow()).async_on(two)
# ```

# %% id=predict-race
races = Prediction(
    "Stream one writes `y`, stream two reads it, and nothing else is said. What comes to the host?",
    new="the smooth readings: the calls are in the right order",
    old="what was in `y` before: the copy is always quicker",
    luck="nobody can know: that is an error in the program",
)
races

# %% id=predict-race-commit
races.commit(...)

# %% id=race-run
def race():
    one, two = agt.create_stream(), agt.create_stream()
    x = agt.h2d(readings[:64, :64], "x").sync()
    y = agt.zeros(x.shape, name="y").sync()
    smoothing(x, y).named("smoothing").async_on(one)
    return agt.d2h(y.borrow()).named("fetch").async_on(two)


try:
    with agt.using("sim"):
        race()
    outcome = "new"
except agt.errors.StreamRaceError as error:
    outcome = "luck"
    print(error)

# %% id=reveal-race
races.reveal(outcome, "The simulated device refuses it, every time.")

# %% [markdown] id=race-read
# This is a **race**: two pieces of work touch one array, one of them writes, and nothing orders them. A real GPU says
# nothing. It takes what is there. These cells use the simulated device everywhere, as it does tell: it keeps a record
# of what is ordered before what, and asks of each access whether the one before it is *bound* to be over. Whether it
# happens to be over does not matter.
#
# How close is it? The same two calls again, with an array that nobody writes, so they are harmless. Look where the copy
# is:

# %% id=race-twin
other = agt.zeros((rows, n), name="other").sync()


def harmless_twin():
    smoothing(x, y).async_on(one)
    agt.d2h(other.borrow()).async_on(two)
    agt.synchronize()


twin, _ = recorded(harmless_twin)
both = twin.overlap_between("smooth", "d2h")
print(f"the copy runs for {both:.0f} µs while the kernel is at work")
if device.simulated:
    assert both > 0
twin.plot(title="Had it been y, ...", lanes=("host", "streams"))

# %% [markdown] id=event
# ## An event ends it
#
# One could call `one.synchronize()` in between. Then Python waits, and with it all that Python would have done next.
# But it is only the *second stream* that has to wait. For that there are **events**:
#
# | call | does |
# |---|---|
# | `mark = one.record()` | puts a mark behind all that is on stream one *now* |
# | `two.wait_event(mark)` | holds back what is put on stream two *from now on*, until the device has passed the mark |
#
# Both are entries in a queue, like a kernel or a copy. Neither makes Python wait.

# %% id=event-run
def ordered_by_event():
    smoothing(x, y).async_on(one)
    done = one.record()
    two.wait_event(done)
    there = agt.d2h(y.borrow()).async_on(two)
    agt.synchronize()
    return there.numpy()


ordered, result = recorded(ordered_by_event)
assert np.allclose(result, in_numpy(readings), atol=1e-4)
agt.compare_timelines([twin, ordered], ["No order", "Ordered by an event"])

# %% id=event-check
(kernel,), (copy,) = ordered.find("smooth"), ordered.find("d2h")
assert kernel.stream != copy.stream
assert ordered.happens_before(kernel, copy)
if device.simulated:
    waits = [s for s in ordered if s.kind == "wait"]
    assert min(s.start for s in waits) < kernel.end  # all calls were made before that
    assert copy.start >= kernel.end

# %% [markdown] id=event-read
# The arrow is the event: from the end of the kernel to the start of the copy. And it is there on every run:
# `happens_before` asks the trace not what the clock saw, but what was bound to be so.

# %% [markdown] id=who-waits
# ## Who waits for what
#
# There are several ways to wait by now, and it pays to keep them apart:
#
# | call | who waits | until |
# |---|---|---|
# | `two.wait_event(mark)` | stream two | the device has passed the mark |
# | `mark.synchronize()` | Python | the device has passed the mark |
# | `one.synchronize()` | Python | stream one has nothing left to do |
# | `agt.synchronize()` | Python | no stream has anything left to do |
# | `mark.done`, `one.done` | nobody | they answer a question, at once: true or false |
#
# The less you wait for, the sooner you go on. Below, a short kernel and a long one are on one stream, and there is a
# mark between them. Python wants what the short one has made, so it waits for the mark. Then it has a job of its own
# (`agt.work` stands for it), while the long kernel is at work.

# %% id=who-waits-run
def wait_for_the_first():
    smoothing(few, few_y).async_on(one)
    mark = one.record()
    smoothing(x, y).async_on(one)
    mark.synchronize()
    agt.work(30, "behind the mark")
    one.synchronize()
    agt.work(30, "behind the stream")


waiting, _ = recorded(wait_for_the_first)
waiting.plot(title="Two waits", lanes=("host", "streams"))

# %% id=who-waits-check
first, second = waiting.find("smooth")
(behind_mark,), (behind_stream,) = waiting.find("behind the mark"), waiting.find("behind the stream")
if device.simulated:
    assert first.end <= behind_mark.start < second.end
    assert second.end <= behind_stream.start
    assert waiting.overlap_between(behind_mark, second) > 0

# %% [markdown] id=exercise-order
# ### Exercise: order the race
#
# Write it for any two operations: `first` on stream `one`, `second` on stream `two`, and `second` starts only when
# `first` has ended. Python does not wait. Return what `async_on` returns for `second`.

# %% id=02-order-the-race starter
def in_order(first, second, one, two):
    first.async_on(one)
    return second.async_on(two)


# %% id=02-order-the-race solution
def in_order(first, second, one, two):
    first.async_on(one)
    two.wait_event(one.record())
    return second.async_on(two)

# %% id=02-order-the-race hints
# `second` has to wait for a point on `one`: the one behind `first`.
#
# `one.record()` marks the end of what is on `one` *now*. `two.wait_event(mark)` holds back what is put on `two` *from now on*. So where
# do these two lines belong?
#
# `first.async_on(one)`, then `two.wait_event(one.record())`, then `return second.async_on(two)`.

# %% id=02-order-the-race explanation
# Record behind the first, wait in front of the second. The host has made four calls and waited for none of them; it is stream `two` that
# waits.

# %% id=02-order-the-race-check
check("02-order-the-race", in_order)

# %% [markdown] id=misconception-event
# > **Misconception: an event stands for its stream, so what comes later counts as well.**
# >
# > - *What you see:* a race, although there are an event and a wait.
# > - *Why:* an event is a mark at *one place* in a queue: behind what was there when it was recorded. What is put in
# >   afterwards is not
# >   in front of it.
# > - *What helps:* record behind the work that is meant, each time anew.

# %% id=misconception-event-run
with agt.using("sim"):
    x_sim = agt.h2d(readings[:64, :64], "x").sync()
    y_sim = agt.zeros(x_sim.shape, name="y").sync()
    a, b = agt.create_stream(), agt.create_stream()

    early = a.record()
    smoothing(x_sim, y_sim).async_on(a)
    b.wait_event(early)  # the device has passed this mark long ago
    try:
        agt.d2h(y_sim.borrow()).async_on(b)
    except agt.errors.StreamRaceError as error:
        print("recorded too early:", str(error).partition(":")[0])
    else:
        raise AssertionError("this should have been refused")

    b.wait_event(a.record())
    there = agt.d2h(y_sim.borrow()).async_on(b)
    agt.synchronize()
    print("recorded behind it: fine")
    assert np.allclose(there.numpy(), in_numpy(readings[:64, :64]), atol=1e-4)

# %% [markdown] id=fork-join
# ## Fork and join
#
# Smooth a signal a little, smooth it a lot, and subtract: what is left is neither the fast jitter nor the slow tide,
# but what lies in between. The two smoothings need the same upload and do not need each other. So the work **forks** to
# two streams, and **joins** again:
#
# ```text
#              +--> a little  (one) ---+
# upload (one) |                       +--> subtract (one)
#              +--> a lot     (two) ---+
# ```

# %% id=fork-join-kernel
subtract = agt.Kernel(r"""
extern "C" __global__ void subtract(unsigned int n, const float* a, const float* b, float* out)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] - b[i];
    }
}
""")

size = rows * n
names = ("little", "much", "between")
little, much, between = (agt.zeros((rows, n), name=name).sync() for name in names)


def subtracting():
    arrays = little.borrow(), much.borrow(), between.borrow()
    return subtract(size, *arrays, grid=size // 256, block=256)


# %% id=fork-join-programs
def on_one_stream():
    x = agt.h2d(readings, "x").async_on(one)
    smoothing(x, much, 0.02).async_on(one)
    smoothing(x, little, 0.2).async_on(one)
    subtracting().async_on(one)
    one.synchronize()


def on_two_streams():
    x = agt.h2d(readings, "x").async_on(one)
    two.wait_event(one.record())  # the fork
    smoothing(x, much, 0.02).async_on(two)
    smoothing(x, little, 0.2).async_on(one)
    one.wait_event(two.record())  # the join
    subtracting().async_on(one)
    one.synchronize()


chain, _ = recorded(on_one_stream)
diamond, _ = recorded(on_two_streams)
agt.compare_timelines([chain, diamond], ["One stream", "Fork and join"])

# %% id=fork-join-check
expected = in_numpy(readings, 0.2) - in_numpy(readings, 0.02)
assert np.allclose(agt.d2h(between.borrow()).sync(), expected, atol=1e-4)

first, second = diamond.find("smooth")
(upload,), (last,) = diamond.find("h2d"), diamond.find("subtract")
for branch in (first, second):
    assert diamond.happens_before(upload, branch)
    assert diamond.happens_before(branch, last)
assert not diamond.happens_before(first, second)
assert not diamond.happens_before(second, first)
if device.simulated:
    assert diamond.overlap_between(first, second) > 0
    assert diamond.metrics().makespan < chain.metrics().makespan
gained = chain.metrics().makespan - diamond.metrics().makespan
print(f"fork and join: {gained:.0f} µs sooner")

# %% [markdown] id=fork-join-read
# Two arrows: the fork and the join. The join is what beginners forget. It is just as much of a race: `subtract` reads
# `much`, which the other stream writes.

# %% [markdown] id=exercise-fork-join
# ### Exercise: fork and join
#
# Now with any number of branches. Put `prepare` on the stream `main`; then `branches[i]` on `streams[i]`, for each `i`;
# then `combine` on `main`. The branches need what `prepare` has done, and not each other. `combine` needs all of them.
# Return what `async_on` returns for `combine`. No waits of the host.

# %% id=02-fork-join starter
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    for branch in branches:
        branch.async_on(main)
    return combine.async_on(main)


# %% id=02-fork-join solution
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    ready = main.record()
    joins = []
    for branch, stream in zip(branches, streams):
        stream.wait_event(ready)
        branch.async_on(stream)
        joins.append(stream.record())
    for join in joins:
        main.wait_event(join)
    return combine.async_on(main)

# %% id=02-fork-join hints
# One event for the fork, and one for each branch for the join.
#
# The fork: `ready = main.record()` behind `prepare`; each of the streams waits for it before it gets its branch. One event can be waited
# for by many.
#
# In the loop, after the branch was put on its stream: `joins.append(stream.record())`. After the loop `main` waits for all of `joins`,
# and then gets `combine`.

# %% id=02-fork-join explanation
# All branches wait for *one* event, and the join waits for one of each branch. Nothing orders the branches among themselves, so they may
# overlap. `agt.overlap` does just this.

# %% id=02-fork-join-check
check("02-fork-join", fork_join)

# %% [markdown] id=exercise-fewest
# ### Exercise: as few events as possible
#
# Six pieces of work, on two streams. Each line says where a piece belongs, and what has to be over before it starts:
#
# | piece | stream | needs |
# |---|---|---|
# | `a` | one | |
# | `b` | two | |
# | `c` | one | `a`, `b` |
# | `d` | two | `a`, `b` |
# | `e` | one | `b`, `c` |
# | `f` | two | `a`, `c`, `d` |
#
# `ops["a"].async_on(one)` puts a piece where it belongs. (`sync_on`, below, does the same and has Python wait for it.) Order what needs order, and nothing else, with as few waits
# between streams as will do. Too few is a race; each one too many is a call that Python pays for, or worse, work that
# stands still for no reason.

# %% id=02-minimum-events starter
def enqueue(ops, one, two):
    for name in "abcdef":
        stream = one if name in "ace" else two
        ops[name].sync_on(stream)


# %% id=02-minimum-events solution
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    b_done = two.record()

    one.wait_event(b_done)
    ops["c"].async_on(one)
    c_done = one.record()
    two.wait_event(a_done)
    ops["d"].async_on(two)

    ops["e"].async_on(one)
    two.wait_event(c_done)
    ops["f"].async_on(two)

# %% id=02-minimum-events hints
# Which needs does the order *within* the streams take care of? They cost nothing.
#
# `e` needs `b`. But `c` is before `e` on the same stream, and `c` needs `b` as well: what made `c` wait makes `e` wait.
#
# Three waits: `c` for `b`, `d` for `a`, `f` for `c`. Record each event right behind the work that it is for, before more is put on that
# stream.

# %% id=02-minimum-events explanation
# An order follows from others: what comes before `c` comes before all that is behind `c`. And an event that is recorded too late orders
# more than was asked for.

# %% id=02-minimum-events-check
check("02-minimum-events", enqueue)

# %% [markdown] id=pinned
# ## Pinned and pageable
#
# All uploads so far came from `agt.pin`. What if we forget that? An ordinary NumPy array is **pageable**: the system
# may move it in memory, or even out of memory, whenever it likes. The device cannot fetch from a place that moves. So
# the driver first copies the data to a place of its own that does not, and *Python has to wait for that*. **Pinned**
# memory stays where it is.

# %% id=predict-pinned
held_up = Prediction(
    f"{readings.nbytes >> 20} MB to copy. How much longer does the *call* take if the array is pageable?",
    same="not at all: `async_on` comes back at once",
    bit="longer, but less than five times as long",
    lot="more than five times as long",
)
held_up

# %% id=predict-pinned-commit
held_up.commit(...)

# %% id=pinned-run
import warnings

ordinary = np.array(readings)  # a copy, in ordinary memory


def upload(host):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agt.h2d(host, "x").async_on(one)
    one.synchronize()
    return caught


from_pinned, quiet = recorded(upload, readings)
from_pageable, warned = recorded(upload, ordinary)
print("pinned:", len(quiet), "warnings")
print("pageable:", warned[0].message)
assert (len(quiet), len(warned)) == (0, 1)

# %% id=reveal-pinned
def in_calls(trace):
    return sum(s.duration for s in trace.find("enqueue h2d"))


times = in_calls(from_pageable) / in_calls(from_pinned)
held_up.reveal(
    "lot" if times > 5 else "bit" if times > 1.1 else "same",
    f"The call takes {in_calls(from_pinned):.0f} µs and {in_calls(from_pageable):.0f} µs.",
)

# %% id=pinned-picture
agt.compare_timelines([from_pinned, from_pageable], ["From pinned memory", "From an ordinary array"])

# %% [markdown] id=pinned-read
# The call with the ordinary array is asynchronous in name only: Python is inside of it while the data are staged. The
# course warns you when that happens where somebody counts on going on at once. What to do: `agt.pin(array)` makes a
# pinned copy, `agt.pinned(shape)` an empty one to fill in place. Pinned memory is dear, as the system can no longer use
# it for anything else, so one pins a few buffers once and uses them again and again.
#
# But mind: **the device reads a pinned array later, by itself.** Whoever changes it too early changes what is copied.
# On a GPU that is one more silent race, this time with Python.

# %% id=pinned-race
with agt.using("sim"):
    stream = agt.create_stream()
    buffer = agt.pin(readings[0])
    agt.h2d(buffer, "buffer").async_on(stream)
    buffer[0] = 0  # the copy may not even have begun
    try:
        stream.synchronize()
    except agt.errors.HostBufferError as error:
        print(error)
    else:
        raise AssertionError("this should have been refused")

# %% [markdown] id=exercise-buffers
# ### Exercise: two buffers in turn
#
# Data arrive in chunks, from a file, say. `fill(buffer, i)` writes chunk `i` into a host array, and keeps Python busy
# for a while. There are two pinned `buffers`, for `count` chunks. Upload all chunks on `stream`, and return the list of
# their device arrays. Two things are asked for, also of a device that takes its time:
#
# - no buffer is filled while it is still being copied;
# - while the device copies from one buffer, Python fills the other.
#
# When the function returns, all is done, and the buffers are free. You need one more wait: **`event.synchronize()`**
# has *Python* wait until the device has passed the event.

# %% id=02-two-buffers starter
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[0], i)
        arrays.append(agt.h2d(buffers[0]).async_on(stream))
        stream.synchronize()
    return arrays


# %% id=02-two-buffers solution
def upload_all(fill, count, buffers, stream):
    arrays, copied = [], []
    for i in range(count):
        buffer = buffers[i % 2]
        if i >= 2:
            copied[i - 2].synchronize()
        fill(buffer, i)
        arrays.append(agt.h2d(buffer).async_on(stream))
        copied.append(stream.record())
    stream.synchronize()
    return arrays

# %% id=02-two-buffers hints
# Before buffer `i % 2` is filled again, its last copy has to be over: that of chunk `i - 2`.
#
# `stream.record()` right behind the copy is an event for this copy. `event.synchronize()` is how the *host* waits for it, and for nothing
# that comes after.
#
# Keep the events in a list. At the top of the loop: `if i >= 2: events[i - 2].synchronize()`. And `stream.synchronize()` at the very end.

# %% id=02-two-buffers explanation
# Waiting for the event of chunk `i - 2` leaves the copy of chunk `i - 1` under way, and that is what goes on while you fill. This is
# called double buffering.

# %% id=02-two-buffers-check
check("02-two-buffers", upload_all)

# %% [markdown] id=engines
# ## Who does the copying
#
# Copies are not done by the part that computes. A GPU has **copy engines** for them. We count on one for each
# direction: one brings data in, one takes data out. So a copy can go on beside a kernel, and beside a copy the other
# way.

# %% id=predict-engines
engines = Prediction(
    "Pair A: two uploads on two streams. Pair B: an upload and a download on two streams. Which overlap?",
    both="A and B: that is what streams are for",
    B="only B: two uploads need the same engine",
    neither="neither: there is one bus, and copies take turns on it",
)
engines

# %% id=predict-engines-commit
engines.commit(...)

# %% id=engines-run
def two_uploads():
    agt.h2d(readings, "x").async_on(one)
    agt.h2d(readings, "x").async_on(two)
    agt.synchronize()


def up_and_down():
    agt.h2d(readings, "x").async_on(one)
    agt.d2h(y.borrow()).async_on(two)
    agt.synchronize()


same_way, _ = recorded(two_uploads)
both_ways, _ = recorded(up_and_down)
agt.compare_timelines(
    [same_way, both_ways],
    ["A: two uploads", "B: up and down"],
    lanes=("streams", "engines"),
)

# %% id=reveal-engines
up, down = from_pinned.find("h2d")[0].duration, queued.find("d2h")[0].duration
time_a, time_b = same_way.metrics().device_makespan, both_ways.metrics().device_makespan
a_overlaps, b_overlaps = time_a < 0.9 * (up + up), time_b < 0.9 * (up + down)
engines.reveal(
    "both" if a_overlaps and b_overlaps else "B" if b_overlaps else "neither",
    f"Alone, each copy takes about {up:.0f} µs. Pair A takes {time_a:.0f} µs, pair B {time_b:.0f} µs.",
)

# %% [markdown] id=engines-read
# The lower lanes show the engines; `s1` is what came from stream 1. In A there are two streams, and still one copy waits for the other, as both want the
# same engine. In B each has one of its own. (On a real GPU a bar begins when its copy is the first in its queue, even
# if it has to wait for the engine then. So in A two bars may lie side by side, and the later one is twice as long as it
# should be. Together they take as long as two copies.)

# %% id=engines-check
if device.simulated:
    first, second = same_way.find("h2d")
    assert first.stream != second.stream
    assert first.end <= second.start
    assert both_ways.metrics().overlap > 0

# %% [markdown] id=chunks
# ## Cut it into pieces
#
# Now everything comes together. We have thousands of thermometers with 512 readings each. Upload, smooth, download:
# each step needs another part of the device, and each waits for the one before. Two of three parts are always idle.

# %% id=whole
thermometers = 8192 if device.simulated else 32768
many = agt.pin(rng.standard_normal((thermometers, 512), dtype=np.float32))


def process(chunk):
    """Upload, smooth, download: one operation, so one stream."""
    rows, n = chunk.shape
    x, y = agt.h2d(chunk, "x"), agt.zeros((rows, n), name="y")
    return smooth(rows, n, 0.05, x, y, grid=(rows + 63) // 64, block=64).output().to_host()


def all_in_one():
    there = process(many).async_on(one)
    agt.synchronize()
    return there.numpy()


whole, result = recorded(all_in_one)
assert np.allclose(result, in_numpy(many), atol=1e-4)
whole.plot(title=f"All {many.nbytes >> 20} MB at once")

# %% [markdown] id=chunks-text
# But who says that *all* must be uploaded before the first can be smoothed? Each thermometer is by itself. Cut the
# array into four chunks of rows, and give each a stream. While chunk 0 is smoothed, chunk 1 comes in; while chunk 0
# goes out, chunk 1 is smoothed, and chunk 2 comes in. No events are needed, as no chunk needs another.

# %% id=predict-chunks
pays = Prediction(
    "The same data in four chunks, on four streams. How much sooner is all of it done?",
    none="hardly at all: it is the same amount of copying and computing",
    some="noticeably, but not twice as soon",
    much="twice as soon, or better",
)
pays

# %% id=predict-chunks-commit
pays.commit(...)

# %% id=chunks-run
def in_chunks(number):
    results = [
        process(chunk).async_on(streams[i % 4]) for i, chunk in enumerate(np.split(many, number))
    ]
    agt.synchronize()
    return np.concatenate([result.numpy() for result in results])


four_chunks, chunked = recorded(in_chunks, 4)
assert np.allclose(chunked, result, atol=1e-6)

# %% id=reveal-chunks
def makespan(trace):
    return trace.metrics().makespan


gain = makespan(whole) / makespan(four_chunks)
pays.reveal(
    "much" if gain >= 2 else "some" if gain > 1.1 else "none",
    f"At once: {makespan(whole):.0f} µs. In four chunks: {makespan(four_chunks):.0f} µs.",
)

# %% id=chunks-picture
agt.compare_timelines([whole, four_chunks], ["At once", "In four chunks"], lanes=("streams", "engines"))

# %% id=chunks-check
copying_in, copying_out = four_chunks.find("h2d"), four_chunks.find("d2h")
with_kernels = four_chunks.overlap_between(copying_in, four_chunks.find("smooth"))
both_directions = four_chunks.overlap_between(copying_in, copying_out)
print(f"copying in while computing: {with_kernels:.0f} µs")
print(f"copying in while copying out: {both_directions:.0f} µs")
if device.simulated:
    assert with_kernels > 0
    assert both_directions > 0
    assert four_chunks.metrics().max_concurrency == 3  # one stream on each engine
    assert whole.overlap_between("h2d", "smooth") == 0
    assert 1.1 < gain < 2

# %% [markdown] id=chunks-read
# Look at the engines: in the lower picture they are busy at the same time. Nothing became quicker. The *gaps* went.
#
# Why not four times as soon? All the data still have to come in, one chunk after the other, through one engine. The
# **busiest engine** sets a limit that no cutting can beat: here each copy direction is at work for about as long as the
# other, and the whole cannot take less than that.

# %% id=chunks-limit
busiest = max(four_chunks.metrics().engine_busy.values())
print(f"the busiest engine works for {busiest:.0f} µs of {makespan(four_chunks):.0f}")
if device.simulated:
    assert busiest < makespan(four_chunks)
    in_busy, out_busy = (four_chunks.metrics().engine_busy[device.name, d] for d in ("h2d", "d2h"))
    assert abs(in_busy - out_busy) < 0.1 * in_busy

# %% [markdown] id=sweep-text
# Then cut into more pieces? The first chunk has to come in before anything else can begin, and the last has to go out
# after everything else. The smaller the chunks, the shorter these two ends. But each chunk has a price as well: calls
# for Python, a fixed time for each copy, and a kernel that does not get shorter, because each thread still goes along
# its whole row.

# %% id=sweep
numbers = (1, 2, 4, 8) if device.simulated else (1, 2, 4, 8, 16, 32)
spans, submitted, busies = {}, {}, {}
print("chunks   makespan   all calls made after   busiest engine")
for number in numbers:
    trace = {1: whole, 4: four_chunks}.get(number) or recorded(in_chunks, number)[0]
    m = trace.metrics()
    spans[number], busies[number] = m.makespan, max(m.engine_busy.values())
    submitted[number] = max(s.end for s in trace if s.kind == "call") - min(s.start for s in trace)
    print(
        f"{number:6} {spans[number]:7.0f} µs {submitted[number]:19.0f} µs {busies[number]:13.0f} µs"
    )

best = min(spans, key=spans.get)
host_bound = [number for number in spans if submitted[number] > busies[number]]
print(f"best: {best} chunks")
print("the host needs longer than any engine with so many chunks:", host_bound or "none of these")

# %% [markdown] id=sweep-read
# The third column is the price. Each chunk needs as many calls as the one before, so with the number of chunks grows the
# time that Python takes to make them all. Where that is more than the busiest engine needs, it is the host that cannot keep
# up, and the device waits for calls. **Cut until the ends are short, and not further.** A good size is one for which copying
# a chunk takes clearly longer than Python needs to submit it.

# %% id=sweep-check
most = max(numbers)
assert submitted[most] > submitted[1]
if device.simulated:
    assert abs(submitted[8] - 8 * submitted[1]) < submitted[1]
    assert spans[best] < spans[1]
    assert spans[most] > spans[best]
    assert 1 < best < most
    assert host_bound == [most]

# %% [markdown] id=exercise-chunks
# ### Exercise: a pipeline of chunks
#
# One more thing is different in real life: the chunks have something in common, such as a table of weights. `prepare`
# is an operation that uploads it; run it *once*, on one of the streams. `process(chunk, table)` is the operation for
# one chunk; it only borrows the table, so one will do for all. Deal the chunks out to the `streams` in turn, and return the results, as NumPy arrays, in the order of the
# chunks. Wait only when everything is on its way. The check also uses a device that does things in an order that nobody
# hopes for.

# %% id=02-chunked-overlap starter
def pipeline(prepare, process, chunks, streams):
    table = prepare.sync_on(streams[0])
    return [process(chunk, table).sync_on(streams[0]) for chunk in chunks]


# %% id=02-chunked-overlap solution
def pipeline(prepare, process, chunks, streams):
    table = prepare.async_on(streams[0])
    ready = streams[0].record()
    for stream in streams[1:]:
        stream.wait_event(ready)
    results = []
    for i, chunk in enumerate(chunks):
        results.append(process(chunk, table).async_on(streams[i % len(streams)]))
    for stream in streams:
        stream.synchronize()
    return [result.numpy() for result in results]

# %% id=02-chunked-overlap hints
# Chunk `i` goes on `streams[i % len(streams)]`. Keep what `async_on` returns, and wait later.
#
# The table is uploaded on one of the streams. The others know nothing of that, unless an event tells them.
#
# After all chunks: `stream.synchronize()` for each stream, then `[result.numpy() for result in results]`.

# %% id=02-chunked-overlap explanation
# While one stream computes, another copies: each stream is in order, and between them only the table is. The host waits when everything
# is on its way, and not before.

# %% id=02-chunked-overlap-check
check("02-chunked-overlap", pipeline)

# %% [markdown] id=null
# ## The null stream
#
# Every device has one stream from the start: number 0, `device.default_stream`. CUDA calls it the **null stream**, and
# it is where work goes that names no stream. In its traditional form it has a rule of its own: what is put on it waits
# for everything that is on the other streams, and they wait for it. One careless call, in your program or in a library
# that you use, and nothing overlaps any more.
#
# A stream can be created so that it does not take part in that: in CUDA it is called *non-blocking*. All streams of
# this course are created like that, so for them the null stream is a stream like any other. (CuPy's own `Stream()` does
# take part, unless you say `non_blocking=True`.)
#
# The rule is nothing but events, so we can play it. Two long kernels on two streams, and a small fill in between; first
# on the null stream as it is here, then with the traditional rule, spelled out:

# %% id=null-run
null = device.default_stream
x = agt.h2d(readings, "x").sync()
targets = [agt.zeros(readings.shape, name=f"y{i}").sync() for i in range(2)]


def with_null_stream(traditional):
    smoothing(x, targets[0]).async_on(one)
    if traditional:
        for stream in (one, two):
            null.wait_event(stream.record())
    agt.zeros(1000, name="small").async_on(null)
    if traditional:
        for stream in (one, two):
            stream.wait_event(null.record())
    smoothing(x, targets[1]).async_on(two)
    agt.synchronize()


modern, _ = recorded(with_null_stream, False)
traditional, _ = recorded(with_null_stream, True)
agt.compare_timelines([modern, traditional], ["The null stream of this course", "The traditional rule"])

# %% id=null-check
assert null.number == 0
assert {s.stream for s in modern.find("memset")} == {0}
for trace, rule in [(modern, False), (traditional, True)]:
    first, second = trace.find("smooth")
    (small,) = trace.find("memset")
    assert trace.happens_before(first, small) is rule
    assert trace.happens_before(small, second) is rule
    assert trace.happens_before(first, second) is rule
if device.simulated:
    assert modern.overlap_between(*modern.find("smooth")) > 0
    assert traditional.overlap_between(*traditional.find("smooth")) == 0

# %% [markdown] id=null-read
# If you ever look at a timeline in which streams take turns for no reason, look for something on stream 0.

# %% [markdown] id=key-points
# ## Key points
#
# - On **one stream** everything is in order. **Between streams** nothing is, whatever the order of the calls.
# - Two streams, one array, a write, and no order: a **race**. Most days a GPU hides it. The simulated device does not.
# - `record` marks a place in a queue, `wait_event` holds back what comes after it in another. Python waits for
#   neither. A **fork** is one event, a **join** one for each branch.
# - Order what needs it, and not more: some orders follow from others.
# - From **pinned** memory the device copies by itself, while Python goes on; leave the array alone meanwhile.
#   **Pageable** memory holds Python up.
# - There is one engine for each copy direction. Chunks keep them busy at the same time; the busiest of them is the
#   limit, unless it is the host.
#
# What others call these things is in the [glossary](../docs/glossary.md), more of what people believe in the
# [misconceptions](../docs/misconceptions.md), and more races in the [hazards](../docs/hazards.md).
#
# **Next:** [03_lazy_operations.ipynb](03_lazy_operations.ipynb). You have placed each event by hand now. From there on,
# operations do it for you, and you know what they do.

# %% id=score
score(who_is_first, races, held_up, engines, pays)

# %% id=progress
progress("02")
