"""Source of notebooks/02_streams_and_events.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Streams and events
#
# A queue is a comfortable thing. The device does everything in the order in which you asked for it, and you never have to think about it. Two queues can be faster, because the device may take from both at once. But now you do have to think, because you haven't said which piece of work comes first.
#
# **What do you give up when you take a second queue, and how do you get it back?**
#
# After this page you can put work on streams of your own and say what's in order and what isn't. You can spot a race and end it with an event, while Python goes on, and you can fork and join work with as few waits as possible.
#
# | | |
# |---|---|
# | Time | 55 minutes, and 5 more for the encore |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb), above all its last part: `async_on` and `synchronize` |

# %% id=setup
import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
device

# %% [markdown] id=four-queues
# ## One queue, four queues
#
# Here an H200 takes an array in, runs a kernel and copies the result back, four times over, first on one stream and then on four.

# %% id=on-a-gpu
recordings = ("02_one_stream", "02_streams_and_events")
h200 = [agt.Trace.load_recording(name).from_first() for name in recordings]
agt.compare_timelines(
    h200,
    ["One stream, H200", "Four streams, H200"],
    lanes=("streams",),
    lesson="Copies in opposite directions overlap, if they are on different streams.",
)

# %% id=on-a-gpu-check tags=asserts
assert [round(trace.metrics().makespan) for trace in h200] == [729, 501]
assert h200[1].overlap_between("h2d", "d2h") > 200
assert [trace.metrics().max_concurrency > 1 for trace in h200] == [False, True]

# %% [markdown] id=four-queues-read
# On one stream it takes 729 µs, and on four 501, because copies in opposite directions overlap. But which of these pieces were *bound* to come before which others, and which just happened to? With one queue you never have to ask. With four, your program is right only if you know.

# %% [markdown] id=what
# ## Something to do
#
# To find out, we need a kernel that takes a while. Imagine 256 nervous thermometers that have taken 1400 readings each. To calm them down, we keep a running `level` for each thermometer, which moves a little way towards every new reading. Each level depends on the one before, so one thread takes a whole row and walks along it. That makes this kernel *narrow and long*: it has few threads, and each has a long way to go.

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

rows, n = 256, 1400
rng = np.random.default_rng(0)
wave = np.sin(np.arange(n) / 100 + rng.uniform(0, 6, (rows, 1)))
readings = agt.pin((wave + rng.normal(0, 0.3, (rows, n))).astype(np.float32))

# %% [markdown] id=borrow
# Two things are new in the next cell.
#
# - Each thread handles many elements here, so `.partition` can't work out how many threads we want. We say it ourselves, with `grid=` and `block=`.
# - When you pass an array to an operation, you give it away, and you get it back as the result. On this page we write one step after the other by hand and want to keep our arrays, so we only *lend* them, with `x.borrow()`.

# %% id=smoothing
def smoothing(x, y, rate=0.05):
    rows, n = x.shape
    blocks = (rows + 63) // 64
    return smooth(rows, n, rate, x.borrow(), y.borrow(), grid=blocks, block=64)


def recorded(program):
    """The trace of a program, and its result."""
    with agt.record() as trace:
        result = program()
    return trace, result


one, two = agt.create_stream(), agt.create_stream()  # for all of this page
x = agt.h2d(readings, "x").sync()
y = agt.zeros((rows, n), name="y").sync()

# %% id=smoothing-check tags=asserts
def in_numpy(x, rate=0.05):
    y, level = np.empty_like(x), x[:, 0].copy()
    for t in range(x.shape[1]):
        level += np.float32(rate) * (x[:, t] - level)
        y[:, t] = level
    return y


smoothing(x, y).sync()
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(readings), atol=1e-4)

# %% [markdown] id=within
# ## One queue
#
# A **stream** is a queue for the device. `op.async_on(stream)` puts an operation into it and returns without waiting for the device. You get a *handle*, which is a name for the result, and you can pass it on before there's anything in it. Below, we give `x` to the kernel before its numbers have arrived.

# %% id=within-run
def by_hand():
    x = agt.h2d(readings, "x").async_on(one)
    y = agt.zeros((rows, n), name="y").async_on(one)
    smoothing(x, y).async_on(one)
    there = agt.d2h(y.borrow()).async_on(one)
    one.synchronize()
    return there.numpy()


queued, result = recorded(by_hand)
queued.plot(
    title="Four operations on one stream",
    lanes=("host", "streams"),
    lesson="Python puts everything into the queue early on, and then it waits once.",
)

# %% [markdown] id=within-read
# By 61 of 173 µs, soon after the kernel has begun, Python has made all its calls but the one that waits. Even the copy back is in the queue then. (The first two operations take two boxes each in the host's lane, because they need memory.)
#
# **On one stream, each piece of work starts only when the one before it has ended.** (The gaps between some of them are the device's own: it takes a few µs to get from a copy to a kernel, or back.) `there` is a handle, too, and after the wait, `there.numpy()` is the array.

# %% id=within-check tags=asserts
assert np.allclose(result, in_numpy(readings), atol=1e-4)
assert [s.name for s in queued.device_spans] == ["h2d", "memset", "smooth", "d2h"]
assert all(
    queued.runs_before(*pair)
    for pair in [("h2d", "memset"), ("memset", "smooth"), ("smooth", "d2h")]
)
assert len([s for s in queued if s.kind == "wait"]) == 1
if device.simulated:
    last_call = max(span.end for span in queued if span.kind == "call")
    assert [round(us) for us in (last_call, queued.metrics().makespan)] == [61, 173]
    (kernel,) = queued.find("smooth")
    assert 0 < last_call - kernel.start < 0.25 * kernel.duration

# %% [markdown] id=between
# ## Two queues
#
# Now let's take two streams, and make three calls. The first kernel is long, with 256 rows of 1400 readings. The other two are short, with 16 rows of 64. (`agt.synchronize()` waits for all streams, one after the other.)

# %% id=between-run
few = agt.h2d(agt.pin(readings[:16, :64]), "few").sync()
few_y = agt.zeros((16, 64), name="few y").sync()
fewer_y = agt.zeros((16, 64), name="fewer y").sync()


def three_kernels():
    smoothing(x, y).named("long").async_on(one)
    smoothing(few, few_y).named("A").async_on(one)
    smoothing(few, fewer_y).named("B").async_on(two)
    agt.synchronize()


# %% id=02-between guess
# In which order do the three kernels end? Type three words.

# %% id=02-between reveal
unordered, _ = recorded(three_kernels)
long, short_a, short_b = unordered.find("smooth")
ends = {"long": long.end, "A": short_a.end, "B": short_b.end}
named = unordered
for name, queue, span in (("long", 1, long), ("A", 1, short_a), ("B", 2, short_b)):
    named = named.with_lane(f"{name}, on stream {queue}", [(span.start, span.end, "")])
picture = named.plot(title="Three kernels on two streams", lanes=("host",))
reveal("02-between", " ".join(sorted(ends, key=ends.get)), picture, **ends)

# %% id=02-between lesson
# B was called last, on another stream, and ends while the long kernel is still at work. A stands behind the long one, in the same queue.

# %% id=02-between told truth="B long A"
# B ends at {B:.0f} µs, the long one at {long:.0f}, and A at {A:.0f}.
#
# **Between two streams there's no order.** It doesn't matter which call came first. The device looks at the head of each queue and takes whatever it has room for. These kernels are narrow, so there was room for two. A is as short as B, but it isn't at the head of its queue.
#
# So that's what you give up with a second stream: the order. Most of the time you won't miss it.

# %% id=between-check tags=asserts
assert (long.stream, short_a.stream, short_b.stream) == (one.number, one.number, two.number)
assert unordered.happens_before(long, short_a)
assert not unordered.happens_before(long, short_b)
assert not unordered.happens_before(short_b, long)
if device.simulated:
    assert short_b.end < long.end

# %% [markdown] id=race
# ## One writes, the other reads
#
# Suppose that stream one smooths the readings, and stream two copies the result to the host:
#
# ```python
# smoothing(x, y).async_on(one)
# there = agt.d2h(y.borrow()).async_on(two)
# ```
#
# Let's have a rehearsal first. We make the same two calls, but the copy takes some `other` array, which nobody writes, so it can do no harm.

# %% id=race-twin
other = agt.zeros((rows, n), name="other").sync()
before = agt.d2h(y.borrow()).sync()  # what `y` holds now


def harmless_twin():
    smoothing(x, y).async_on(one)
    agt.d2h(other.borrow()).async_on(two)
    agt.synchronize()


twin, _ = recorded(harmless_twin)
twin.plot(
    title="The rehearsal: a kernel on one stream, a copy on the other",
    lanes=("host", "streams"),
    lesson="The copy runs in the middle of the kernel. "
    "It would have read y while the kernel was writing.",
)

# %% id=race-twin-check tags=asserts
if device.simulated:
    assert twin.overlap_between("smooth", "d2h") > 20

# %% [markdown] id=race-read
# Now imagine that the copy had read `y`. It takes one row after the other, and when it comes to a row, the kernel has got to some reading there. Left of it the copy finds new numbers, and right of it whatever was in `y` before. The folded cell has a function that works this out from the two bars, as if all threads kept the same pace, which real ones don't quite.

# %% id=torn tags=helpers
def columns_done(trace):
    """For each row, how many of its columns the kernel had done when the copy came to it."""
    (kernel,), (copy,) = trace.find("smooth"), trace.find("d2h")
    read_at = copy.start + copy.duration * np.arange(rows) / rows
    return n * (read_at - kernel.start) / kernel.duration


def torn(trace, old, new):
    """The array that the copy would have brought home."""
    return np.where(np.arange(n) < columns_done(trace)[:, None], new, old)


def smoothed(readings):
    """The right result, from one stream."""
    x = agt.h2d(readings, "x").sync()
    y = agt.zeros(x.shape, name="y").sync()
    smoothing(x, y).sync()
    return agt.d2h(y.borrow()).sync()


def draw_torn(trace, old, new, row=128):
    """Which of the numbers are new, and one row of them beside the right one."""
    done = columns_done(trace)
    figure, (all_axes, row_axes) = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
    all_axes.imshow(np.arange(n) < done[:, None], aspect="auto", cmap="RdYlBu_r", vmin=-0.3, vmax=1.3)
    all_axes.text(0.04 * n, 0.8 * rows, "today's", ha="left")
    all_axes.text(0.7 * n, 0.25 * rows, "yesterday's", ha="center")
    all_axes.axhline(row, color="k", linewidth=0.8, linestyle=":")
    all_axes.set(title="All numbers that came home", xlabel="reading", ylabel="row")
    row_axes.plot(new[row], color="0.6", linewidth=4, label="right")
    row_axes.plot(torn(trace, old, new)[row], color="#b00040", linewidth=1.2, label="came home")
    row_axes.axvline(done[row], color="k", linewidth=0.8, linestyle=":")
    row_axes.set(title=f"Row {row} of them", xlabel="reading", ylabel="level", ylim=(-1.3, 1.9))
    row_axes.legend(loc="upper right", ncols=2, frameon=False)
    shown(
        figure,
        "On the left, all numbers that came home: a slanted line parts today's, on its left, from "
        "yesterday's. On the right, a row of them: it follows the right one, and leaves it at that line.",
        f"Today's are {done[0] / n:.0%} of the first row and {done[-1] / n:.0%} of the last. "
        f"Of all numbers, {np.mean(torn(trace, old, new) != new):.0%} are wrong.",
    )

# %% id=02-race guess
# Had the copy read `y` in this very run, how many of its 358,400 numbers would be wrong?
#
# - `all`: all of them
# - `two`: about two thirds
# - `third`: about a third
# - `none`: none of them

# %% id=02-race reveal
after = agt.d2h(y.borrow()).sync()
wrong = np.mean(torn(twin, before, after) != after)
reveal("02-race", ["none", "third", "two", "all"][round(3 * wrong)])

# %% id=02-race told truth=none
# `three_kernels` had smoothed the same readings, so `y` held the right numbers.
#
# You wouldn't have noticed anything. Test such a program with the same data all week, and it's right all week.

# %% [markdown] id=race-luck
# Then comes the day of the demo:

# %% id=race-torn
today = agt.pin((np.cos(3 * wave) + rng.normal(0, 0.3, (rows, n))).astype(np.float32))
yesterday = after  # what `y` held when the copy ran
draw_torn(twin, yesterday, smoothed(today))

# %% id=race-torn-check tags=asserts
assert wrong == 0
assert np.allclose(smoothed(readings), after, atol=1e-4)
if device.simulated:
    assert round(np.mean(torn(twin, after, smoothed(today)) != smoothed(today)), 2) == 0.64

# %% [markdown] id=race-named
# The red curve is neither today's result nor yesterday's. This is a **race**: two pieces of work use the same array, at least one of them writes it, and nothing puts them in order. A real GPU doesn't complain. It copies whatever is there.
#
# The simulated device keeps a record of what is ordered before what. So it notices a race and refuses to run it, every time:

# %% id=race-run
def write_and_read():  # on a device that has streams of its own
    one, two = agt.create_stream(), agt.create_stream()
    x = agt.h2d(readings[:64, :64], "x").sync()
    y = agt.zeros(x.shape, name="y").sync()
    smoothing(x, y).named("smoothing").async_on(one)
    return agt.d2h(y.borrow()).named("fetch").async_on(two)


with agt.using("sim:1"):  # a second one, whose streams count from 1
    try:
        write_and_read()
    except agt.errors.StreamRaceError as error:
        print(error)

# %% id=race-run-check tags=asserts
with agt.using("sim:1"):
    try:
        write_and_read()
    except agt.errors.StreamRaceError:
        pass
    else:
        raise AssertionError("this race should have been refused")

# %% [markdown] id=race-refused
# That's why this page uses it for every race, even if you have a GPU. (The error suggests `shared` and `overlap`. They come in chapter 04.)

# %% [markdown] id=event
# ## A mark in a queue
#
# You could call `one.synchronize()` between the two. But then Python would wait, and do nothing else. Only the *second stream* needs to wait. For that there are **events**:
#
# | call | what it does |
# |---|---|
# | `mark = one.record()` | puts a mark behind everything that is on stream one *now* |
# | `two.wait_event(mark)` | holds back everything that you put on stream two *from now on*, until the device has passed the mark |
# | `mark.synchronize()` | holds back Python instead |
# | `mark.done` | holds back nobody: has the device passed the mark? |
#
# The first two go into a queue, just like a kernel or a copy, and neither makes Python wait. (Don't confuse them with `agt.record()`, which makes traces, or with the event *loop*. The names were taken before we came.)

# %% id=marks tags=helpers
def passed(trace, record):
    """When the device passed a mark, that is, when everything ahead of it in its queue was over."""
    stream = record.detail["stream"]
    times = [s.end for s in trace.device_spans if s.stream == stream and s.id < record.id]
    for wait in trace.find("wait_event"):
        if wait.detail["stream"] == stream and wait.id < record.id:
            marks = [m for m in trace.find("record") if m.detail["stream"] == wait.detail["event_of"]]
            times += [passed(trace, [m for m in marks if m.id < wait.id][-1])]
    return max([record.end, *times])


def with_marks(trace, *names):
    """The same trace, with a lane for each mark: from when on its `done` answers True."""
    end = max(span.end for span in trace)
    for name, record in zip(names, trace.find("record"), strict=True):
        then = passed(trace, record)
        trace = trace.with_lane(f"{name}.done", [(then, end, "True")])
    return trace

# %% id=event-run
def copy_afterwards(python_waits):
    smoothing(x, y).async_on(one)
    mark = one.record()
    if python_waits:
        mark.synchronize()
    else:
        two.wait_event(mark)
    there = agt.d2h(y.borrow()).async_on(two)
    agt.synchronize()
    return there.numpy()


patient, _ = recorded(lambda: copy_afterwards(python_waits=True))
ordered, result = recorded(lambda: copy_afterwards(python_waits=False))
agt.compare_timelines(
    [with_marks(patient, "mark"), with_marks(ordered, "mark")],
    ["Python waits for the mark", "Stream two waits for the mark"],
    lesson="Both copies come after the kernel. "
    "(The slim boxes are the calls of record and wait_event.)",
)

# %% [markdown] id=event-read
# Above, Python waits, and only then asks for the copy. Below, only the stream does: by 45 µs, Python has made all its calls, and could go on to something else. (The lane `mark.done` begins where it answers True.)
#
# The arrow is the event, and it will be there in every run. You can ask a trace about any two of its bars: `ordered.happens_before(this, that)` tells you what was *guaranteed*, whatever happened this time. So that's how you get the order back, and only where you want it.

# %% id=event-check tags=asserts
assert np.allclose(result, in_numpy(readings), atol=1e-4)
(kernel,), (copy,) = ordered.find("smooth"), ordered.find("d2h")
assert kernel.stream != copy.stream
assert ordered.happens_before(kernel, copy)
if device.simulated:
    waits = [s for s in ordered if s.kind == "wait"]
    assert min(s.start for s in waits) < kernel.end  # all calls were made before that
    assert copy.start >= kernel.end
    (call,) = [s for s in patient if s.kind == "call" and "d2h" in s.name]
    assert call.start > patient.find("smooth")[0].end
    assert round(max(s.end for s in ordered if s.kind == "call")) == 45
mark = one.record()
mark.synchronize()
assert mark.done

# %% [markdown] id=exercise-order
# ### Exercise: order the race
#
# Now write this for any two operations. (Most checks run on a simulated H200 with slow memory, so that you can see short work.) `first` goes on stream `one`, and `second` goes on stream `two` but starts only when `first` has ended. Python doesn't wait. Return whatever `async_on` returns for `second`.

# %% id=02-order-the-race starter
def in_order(first, second, one, two):
    first.async_on(one)
    return second.async_on(two)


# %% id=02-order-the-race solution
#   first.async_on(one)
# + two.wait_event(one.record())

# %% id=02-order-the-race hints
# `second` has to wait for a certain point on stream `one`: the point right behind `first`.
#
# `one.record()` marks the end of everything that is on `one` *now*, and `two.wait_event(mark)` holds back everything that you put on `two` *from now on*. So where do these two lines belong?
#
# `first.async_on(one)`, then `two.wait_event(one.record())`, then `return second.async_on(two)`.

# %% id=02-order-the-race explanation
# You record behind the first operation and wait in front of the second. Python never waited. Stream `two` did.

# %% id=02-order-the-race-check
check("02-order-the-race", in_order)

# %% [markdown] id=when-to-record
# ## When to record
#
# Four programs, with the same kernel and the same copy. All that differs is where the mark is set, and where it's waited for. (`other` is an array that nobody else uses, as in the rehearsal, and `z` is one more.)

# %% id=early-run
z = agt.zeros((rows, n), name="z").sync()


def a():
    mark = one.record()
    smoothing(x, y).async_on(one)
    two.wait_event(mark)
    agt.d2h(other.borrow()).async_on(two)


def b():
    smoothing(x, y).async_on(one)
    mark = one.record()
    agt.d2h(other.borrow()).async_on(two)
    two.wait_event(mark)


def c():
    smoothing(x, y).async_on(one)
    mark = one.record()
    smoothing(x, z).async_on(one)
    two.wait_event(mark)
    agt.d2h(other.borrow()).async_on(two)


def d():
    smoothing(x, y).async_on(one)
    mark = two.record()
    two.wait_event(mark)
    agt.d2h(other.borrow()).async_on(two)


# %% id=02-early guess
# Suppose that each copied `y` instead of `other`. Which of the four would be races? Type their letters, in alphabetical order.

# %% id=02-early reveal
recorded_early, races = {}, []
for program in (a, b, c, d):
    recorded_early[program.__name__], _ = recorded(lambda: (program(), agt.synchronize()))
for letter, trace in recorded_early.items():
    kernel, (copy,) = trace.find("smooth")[0], trace.find("d2h")
    if not trace.happens_before(kernel, copy):
        races.append(letter)
marked = [with_marks(trace, "mark") for trace in recorded_early.values()]
titles = [f"{name}: {'would be a race' if name in races else 'in order'}" for name in recorded_early]
picture = agt.compare_timelines(marked, titles, lanes=("streams",))
reveal("02-early", " ".join(races), picture)

# %% id=02-early lesson
# Only in c does an arrow lead from the first kernel to the copy. In the others, the copy begins while the kernel is at work. The lowest lane begins where the mark is passed.

# %% id=02-early told truth="a b d"
# In `a` there was nothing ahead of the mark, so it was passed at once. In `b` the wait came too late: it holds back only what is put on the stream behind it. In `d` the mark stands in the wrong queue, and says nothing about stream one. Only `c` is in order. The mark covers the first kernel, the copy waits for that, and the second kernel writes another array.
#
# > **Misconception: an event stands for its stream, so it covers work that comes later, too.**
# >
# > - *What you see:* a race, although there's an event and a wait for it.
# > - *Why:* a mark covers only what was in the queue at `record()`. Everything that came later stands behind it.
# > - *What helps:* record right after the work that you mean, every time.

# %% id=early-check tags=asserts
assert races == ["a", "b", "d"]
if device.simulated:
    early = recorded_early["a"]
    (kernel,), (copy,) = early.find("smooth"), early.find("d2h")
    assert passed(early, *early.find("record")) < kernel.start < copy.start < kernel.end
    for letter, trace in recorded_early.items():
        kernel, (copy,) = trace.find("smooth")[0], trace.find("d2h")
        assert (kernel.start < copy.start < kernel.end) is (letter in races)

# %% id=misconception-event-check tags=asserts
with agt.using("sim"):
    x_sim = agt.h2d(readings[:64, :64], "x").sync()
    y_sim = agt.zeros(x_sim.shape, name="y").sync()
    a, b = agt.create_stream(), agt.create_stream()

    mark = a.record()
    smoothing(x_sim, y_sim).async_on(a)
    b.wait_event(mark)
    try:
        agt.d2h(y_sim.borrow()).async_on(b)
    except agt.errors.StreamRaceError:
        pass
    else:
        raise AssertionError("this should have been refused")
    b.wait_event(a.record())
    there = agt.d2h(y_sim.borrow()).async_on(b)
    agt.synchronize()
    assert np.allclose(there.numpy(), in_numpy(readings[:64, :64]), atol=1e-4)

# %% [markdown] id=relay
# ## A stream without work
#
# In the next program, stream three has no work at all, only a wait and a mark:

# %% id=relay-program
three = agt.create_stream()


def pass_it_on():
    smoothing(x, y).async_on(one)
    first = one.record()
    three.wait_event(first)
    second = three.record()
    two.wait_event(second)
    agt.d2h(other.borrow()).async_on(two)
    agt.synchronize()

# %% id=02-relay guess
# What does the copy on stream two wait for?
#
# - `nothing`: for nothing: stream three has no work, so `second` is passed right away
# - `call`: only until Python has made the two calls for stream three
# - `kernel`: for the kernel on stream one
# - `error`: it's an error to record an event on a stream without work

# %% id=02-relay reveal
relayed, _ = recorded(pass_it_on)
(kernel,), (copy,) = relayed.find("smooth"), relayed.find("d2h")
truth = "kernel" if relayed.happens_before(kernel, copy) else "nothing"
(held, _) = relayed.find("wait_event")
waits = relayed.with_lane("stream 3", [(held.end, kernel.end, "waits for first")])
picture = with_marks(waits, "first", "second").plot(title="Three streams", lanes=("host", "streams"))
reveal("02-relay", truth, picture)

# %% id=02-relay lesson
# Stream 3 only waits. The second mark is passed together with the first, and only then does the copy start.

# %% id=02-relay told truth=kernel
# A wait is in the queue, too. `second` is behind it, so it isn't passed before `first`.
#
# Stream three did no work, but it did have something in its queue: a wait. So orders add up. If two waits for three, and three waits for one, then two waits for one, and you needn't say so again. That will save you a wait in the exercise below.

# %% id=relay-check tags=asserts
assert relayed.happens_before(kernel, copy)
if device.simulated:
    assert held.detail["stream"] == three.number
    assert {passed(relayed, mark) for mark in relayed.find("record")} == {kernel.end}
    assert copy.start >= kernel.end

# %% [markdown] id=exercise-fewest
# ### Exercise: as few waits as possible
#
# Here are six pieces of work, `ops["a"]` to `ops["f"]`. The cell below puts each on its stream, but a piece may start only when all that it needs is over:
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
# Put them in order where the table demands it and nowhere else, with as few calls of `wait_event` as you can. Python doesn't wait. If a wait is missing, you have a race. If a mark stands too far back in its queue, a piece waits for work that it doesn't need. And with each wait too many, Python makes a call for nothing.

# %% id=02-minimum-events starter
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    ops["b"].async_on(two)
    ops["c"].async_on(one)
    ops["d"].async_on(two)
    ops["e"].async_on(one)
    ops["f"].async_on(two)


# %% id=02-minimum-events solution
def enqueue(ops, one, two):
    ops["a"].async_on(one)
    ops["b"].async_on(two)
    a_done, b_done = one.record(), two.record()

    one.wait_event(b_done)
    ops["c"].async_on(one)
    c_done = one.record()
    two.wait_event(a_done)
    ops["d"].async_on(two)

    ops["e"].async_on(one)
    two.wait_event(c_done)
    ops["f"].async_on(two)

# %% id=02-minimum-events hints
# Some of these needs are met by the order *within* a stream, which costs nothing. Which ones?
#
# `e` needs `b`. But `c` comes before `e` on the same stream, and `c` already waits for `b`. So `e` needs no wait of its own.
#
# Three waits are enough: `c` for `b`, `d` for `a`, and `f` for `c`. Record each event right behind the work that it's meant for, before you put anything else on that stream.

# %% id=02-minimum-events explanation
# Add a wait only where one thing really must come after another. If `c` waits for `b` and `e` comes after `c`, then `e` already waits for `b`, and another wait would buy you nothing. And if you record an event too late, it also covers work that you didn't mean.

# %% id=02-minimum-events-check
check("02-minimum-events", enqueue)

# %% [markdown] id=fork-join
# ## Out and back in
#
# Let's smooth our signal a little, smooth it a lot, and subtract one from the other. That removes the fast jitter and the slow tide, and leaves whatever lies in between. Both smoothings need the same upload, but they don't need each other. So the work **forks** to two streams and **joins** again (the folded cell has `subtract`):
#
# ```text
#              +--> a little  (one) ---+
# upload (one) |                       +--> subtract (one)
#              +--> a lot     (two) ---+
# ```

# %% id=fork-join-kernel tags=helpers
subtract = agt.Kernel(r"""
extern "C" __global__ void subtract(unsigned int n, const float* a, const float* b, float* out)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = a[i] - b[i];
    }
}
""")

names = ("little", "much", "between")
little, much, between = (agt.zeros((rows, n), name=name).sync() for name in names)


def subtracting():
    arrays = little.borrow(), much.borrow(), between.borrow()
    return subtract(rows * n, *arrays, grid=(rows * n + 255) // 256, block=256)

# %% id=fork-join-two-ways
def on_one_stream():
    x = agt.h2d(readings, "x").async_on(one)
    smoothing(x, much, 0.02).named("a lot").async_on(one)
    smoothing(x, little, 0.2).named("a little").async_on(one)
    subtracting().async_on(one)
    one.synchronize()


def on_two_streams():
    x = agt.h2d(readings, "x").async_on(one)
    two.wait_event(one.record())  # the fork
    smoothing(x, much, 0.02).named("a lot").async_on(two)
    smoothing(x, little, 0.2).named("a little").async_on(one)
    one.wait_event(two.record())  # the join
    subtracting().async_on(one)
    one.synchronize()


chain, _ = recorded(on_one_stream)
print(f"on one stream: {chain.metrics().makespan:.0f} µs")

# %% id=02-fork guess within=0.12
# And how many µs does it take on two streams?

# %% id=02-fork reveal
diamond, _ = recorded(on_two_streams)
picture = agt.compare_timelines([chain, diamond], ["One stream", "Fork and join"])
before, now = (trace.metrics().makespan for trace in (chain, diamond))
reveal("02-fork", f"{now:.0f}", picture, part=now / before)

# %% id=02-fork lesson
# The two long kernels run side by side. One arrow leads to the second stream, and one leads back.

# %% id=02-fork told truth=160
# That's {part:.0%} of the time on one stream.
#
# Why isn't it twice as fast? Upload, smooth, subtract: each needs the one before, and no second stream makes that chain shorter. And Python makes one call at a time, so the branch on stream one, whose call comes second, starts later than the other.
#
# Beginners remember the fork and forget the join. Without it, you'd have been right by luck in this run: `a lot` was over at 137 µs, and `subtract` couldn't start before 155, as it's behind `a little`. Nothing guaranteed it: a race.

# %% id=fork-join-check tags=asserts
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
    assert [(s.label, s.stream, round(s.end)) for s in (first, second)] == [
        ("a lot", two.number, 137),
        ("a little", one.number, 155),
    ]
    assert diamond.overlap_between(first, second) > 30
    assert diamond.metrics().makespan < chain.metrics().makespan

# %% [markdown] id=exercise-fork-join
# ### Exercise: fork and join
#
# Now do it for any number of branches. Below, everything is on its stream already, but nothing makes one stream wait for another. Each branch needs the result of `prepare`, but no other branch. `combine` needs all of them. Python doesn't wait.

# %% id=02-fork-join starter
def fork_join(prepare, branches, combine, main, streams):
    prepare.async_on(main)
    for branch, stream in zip(branches, streams):
        branch.async_on(stream)
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
# You need one mark for the fork, and for the join one mark for each branch.
#
# For the fork, put `ready = main.record()` behind `prepare`. Each stream waits for it before it gets its branch, and any number of streams may wait for the same mark.
#
# In the loop, after you've put a branch on its stream, add `joins.append(stream.record())`. After the loop, `main` waits for each of the `joins`, and then it gets `combine`.

# %% id=02-fork-join explanation
# One mark is enough for a fork, however many streams wait for it: record it once, ahead of the loop. A join takes one for each branch on another stream. Nothing orders the branches among themselves, so they may overlap. Chapter 04 has a function that does exactly this, `agt.overlap`.

# %% id=02-fork-join-check
check("02-fork-join", fork_join)

# %% [markdown] id=challenge
# ## Challenge: seven pieces, two streams
#
# Here are seven pieces of work, and again a piece may start only when all that it needs is over. But now they differ in length, and you choose the streams as well:
#
# | piece | units of time | needs |
# |---|---|---|
# | `a` | 1 | |
# | `b` | 3 | |
# | `c` | 2 | `a` |
# | `d` | 2 | `a` |
# | `e` | 1 | `b` |
# | `f` | 3 | `c` |
# | `g` | 1 | `d`, `e`, `f` |
#
# A unit is about 50 µs. As it stands, everything is on one stream and takes 678 µs. Get below 440. A pencil helps. (In the check's picture, stream 1 is the one that got work first.)

# %% id=02-challenge starter
def arrange(ops, one, two):
    for name in "abcdefg":
        ops[name].async_on(one)


# %% id=02-challenge solution
def arrange(ops, one, two):
    ops["a"].async_on(one)
    a_done = one.record()
    ops["b"].async_on(two)
    ops["c"].async_on(one)
    ops["f"].async_on(one)
    two.wait_event(a_done)
    ops["d"].async_on(two)
    ops["e"].async_on(two)
    one.wait_event(two.record())
    ops["g"].async_on(one)

# %% id=02-challenge hints
# Look for the longest chain of pieces in which each needs the one before. The whole program can't be quicker than that chain, so don't let the chain wait for anything.
#
# `a`, `c`, `f` and `g` take seven units in a row. Give them a stream to themselves, and fit everything else beside them.
#
# Stream one gets `a`, `c`, `f`, `g`, and stream two gets `b`, `d`, `e`. You need two waits: `d` waits for `a`, and `g` waits for stream two.

# %% id=02-challenge explanation
# You can have as many streams as you like, and the program still takes at least as long as its longest chain of steps, where each step needs the result of the one before. So look for that chain first. Here its seven units make about 350 µs, and 393 µs is possible. The rest is Python's calls: work can't start before its call, and the stream whose call comes second starts later.

# %% id=02-challenge-check
check("02-challenge", arrange)

# %% [markdown] id=bound
# ## Back to the H200
#
# In the opening picture, there are twelve pieces of work on four streams: four uploads, four kernels, four downloads. Twelve pieces make 66 pairs. In each pair one began before the other. Sometimes that was bound to be so, and sometimes it just happened.

# %% id=02-bound guess
# For how many of the 66 pairs was it guaranteed? Type a number.

# %% id=02-bound reveal
quick = h200[1].device_spans
ahead = [(a, b) for a in quick for b in quick if h200[1].happens_before(a, b)]
up, asked = h200[1].find("h2d")[0].end, h200[1].find("enqueue h2d")[1].start
reveal("02-bound", len(ahead), up=up, asked=asked)

# %% id=02-bound told truth=12
# Three for each stream: the copy in comes before the kernel, the kernel before the copy back, and so the first before the last. Orders add up. Nothing puts two streams in order.
#
# But weren't the uploads bound to take turns? It's true that only one upload at a time fits on the road in. But that doesn't tell you which of two goes first. The first stream's upload ended at {up:.0f} µs, and Python asked for the second's at {asked:.0f}. (The picture leaves Python's calls out.) Had Python been quicker, both would have stood there at once. Only *order* says who's first, and that comes from a stream or an event. So 54 of the 66 just happened, and that's fine, because no two streams use the same array.

# %% id=bound-check tags=asserts
assert len(quick) * (len(quick) - 1) / 2 == 66
assert all(a.stream == b.stream and a.start < b.start for a, b in ahead)
uploads = [s for s in quick if s.name == "h2d"]
assert [s.stream for s in uploads] == [1, 2, 3, 4]
calls = h200[1].find("enqueue h2d")
assert all(a.end < call.start for a, call in zip(uploads, calls[1:], strict=False))
copying = sum(s.duration for s in quick if s.kind != "kernel") - h200[1].overlap_between("h2d", "d2h")
assert copying > 0.95 * h200[1].metrics().device_active

# %% id=score
score("02")

# %% id=progress
progress("02")

# %% [markdown] id=key-points
# ## Key points
#
# - On **one stream**, everything runs in order. **Between streams** there's no order, no matter in which order you made the calls.
# - If two streams use the same array, at least one of them writes it, and nothing puts them in order, that's a **race**. A GPU won't tell you, and just gives you whatever is there. The simulated device refuses to run it.
# - `record` marks a place in one queue, and `wait_event` holds back another queue until the device gets there. Neither makes Python wait.
# - A **fork** takes one mark, however many streams wait for it, and a **join** takes one for each branch on another stream. Orders add up, so add a wait only where nothing puts the two in order yet.
# - However many streams you have, a program takes at least as long as its longest chain of steps that need each other.
#
# If a word is new, look in the [glossary](../docs/glossary.md). If something seems wrong, the [misconceptions](../docs/misconceptions.md) page probably has it, and [hazards](../docs/hazards.md) has more races.
#
# **Next:** [02b_copies_and_chunks.ipynb](02b_copies_and_chunks.ipynb). Our kernels overlap now. But on the H200 nearly all of the time went into copies, and copies have rules of their own.

# %% [markdown] id=null
# ## Encore: the null stream
#
# *For the day when you meet a timeline whose streams take turns, and nobody knows why.*
#
# Every device has one stream from the start, `device.default_stream`, with the number 0. CUDA calls it the **null stream**, and in plain CUDA, work that names no stream goes there. By tradition it has a rule of its own: whatever you put on it waits for everything on the other streams, and they wait for it. So one careless call, in your program or in a library that you use, is enough: nothing from before it overlaps with anything that comes later.
#
# A stream can be created in such a way that it takes no part in this, which CUDA calls *non-blocking*. All streams of this course are like that. CuPy's own `Stream()` isn't, unless you say `non_blocking=True`.
#
# The rule amounts to a few events, so we can act it out: two long kernels on two streams, and between them a small fill on the null stream.

# %% id=null-run
null = device.default_stream
targets = [agt.zeros(readings.shape, name=f"y{i}").sync() for i in range(2)]


def with_null_stream(traditional):
    smoothing(x, targets[0]).named("first").async_on(one)
    if traditional:
        for stream in (one, two):
            null.wait_event(stream.record())
    agt.zeros(1000, name="small").async_on(null)
    if traditional:
        for stream in (one, two):
            stream.wait_event(null.record())
    smoothing(x, targets[1]).named("second").async_on(two)
    agt.synchronize()


modern, _ = recorded(lambda: with_null_stream(False))
traditional, _ = recorded(lambda: with_null_stream(True))
agt.compare_timelines(
    [modern, traditional],
    ["The null stream of this course", "The traditional rule"],
    lesson="By the traditional rule, one small fill on stream 0 "
    "keeps two long kernels from overlapping.",
)

# %% id=null-check tags=asserts
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
