"""Source of notebooks/02b_copies_and_chunks.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Copies and chunks
#
# Sixteen megabytes of data go to the device, are worked on for a moment, and come back. That takes 619 µs, and for eleven of them the kernel is at work.
#
# **Nothing can make either copy any faster. Can the whole trip still take much less?**
#
# After this page you can say what a copy from an ordinary array costs Python, fill one buffer while another is copied, cut a job into chunks so that the whole takes less time, and
# find out how many chunks are enough.
#
# | | |
# |---|---|
# | Time | 40 minutes |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb) |

# %% id=setup
import warnings

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=whole-text
# ## All at once
#
# Four million readings, and a kernel that converts each from degrees Fahrenheit to degrees Celsius:

# %% id=whole
celsius = agt.Kernel(r"""
extern "C" __global__ void celsius(unsigned int n, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = (x[i] - 32.0f) / 1.8f;
    }
}
""")

rng = np.random.default_rng(0)
readings = agt.pin(rng.uniform(0, 100, 4_000_000).astype(np.float32))


def converted(readings):
    """There, a kernel in place, and back: one operation, so one stream."""

    def work(x):
        return celsius(readings.size, x.partition(256)).output()

    return agt.h2d(readings, "x").and_then(work).to_host()


def recorded(program, *args):
    """The trace of a program, and its result."""
    with agt.record() as trace:
        result = program(*args)
    return trace, result


def all_at_once():
    return converted(readings).sync()


all_at_once()  # a warm-up
whole, result = recorded(all_at_once)
whole.plot(
    title="All at once",
    lanes=("host", "streams"),
    lesson="Two long copies and a sliver of a kernel, one after the other, while Python waits.",
)

# %% [markdown] id=whole-read
# (`.and_then(work)` continues an operation: as soon as there is an array on the device, `work` says what to do with it. Chapter 03 explains it.)
#
# Look at the sliver. Whoever makes this kernel twice as fast has saved five microseconds. If there is something to win, it is on the way there and the way back. So let us look at copies.

# %% id=whole-check tags=asserts
assert np.allclose(result, (readings - 32) / 1.8, atol=1e-4)
if device.simulated:
    assert round(whole.metrics().makespan) == 619
    assert round(whole.find("celsius")[0].duration) == 11

# %% [markdown] id=pinned
# ## Two kinds of memory
#
# All uploads so far came from `agt.pin`. What if we forget that? An ordinary NumPy array is **pageable**: the operating system may move it in memory, or even out of memory, whenever it likes.
# The device cannot fetch from a place that moves. So the driver first copies the data to a place that doesn't. **Pinned** memory stays where it is, and the device fetches from it by itself.

# %% id=predict-pinned
held_up = Prediction(
    "4 MB to copy, with `async_on`. How much longer does the *call* take if the array is pageable?",
    same="not at all: `async_on` comes back at once",
    bit="two or three times as long",
    ten="about ten times as long",
    lot="more than twenty times as long",
)
held_up

# %% id=predict-pinned-commit
held_up.commit(...)

# %% id=pinned-run
one, two = agt.create_stream(), agt.create_stream()
pinned = agt.pin(readings[:1_000_000])
ordinary = np.array(pinned)  # a copy, in ordinary memory


def upload(host):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agt.h2d(host, "x").async_on(one)
    one.synchronize()
    return caught


from_pinned, quiet = recorded(upload, pinned)
from_pageable, warned = recorded(upload, ordinary)
print(warned[0].message)
agt.compare_timelines(
    [from_pinned, from_pageable],
    ["From pinned memory", "From an ordinary array"],
    lanes=("host", "streams"),
    lesson="From an ordinary array the call itself takes the time: Python copies before the device does.",
)

# %% id=reveal-pinned
def in_calls(trace):
    return sum(s.duration for s in trace.find("enqueue h2d"))


times = in_calls(from_pageable) / in_calls(from_pinned)
held_up.reveal(
    "same" if times < 1.5 else "bit" if times < 5 else "ten" if times < 20 else "lot",
    f"The call takes {in_calls(from_pinned):.0f} µs and {in_calls(from_pageable):.0f} µs.",
)

# %% [markdown] id=pinned-read
# The second call is asynchronous in name only: Python is stuck in it while the data are copied. The course warns you when that happens. The cure is `agt.pin(array)`, which makes a pinned
# copy, or `agt.pinned(shape)`, an empty one to be filled in place. Pinned memory is scarce, because the system can use it for nothing else. So one pins a few buffers and uses them again and again.

# %% id=pinned-check tags=asserts
assert (len(quiet), len(warned)) == (0, 1)
if device.simulated:
    assert times > 20

# %% [markdown] id=pinned-mind
# There is a catch. **The device reads a pinned array later, by itself.** If you change it too early, you change what is copied. On a GPU that is one more silent race, this time with Python. The
# simulated device notices:

# %% id=pinned-race
with agt.using("sim"):
    stream = agt.create_stream()
    buffer = agt.pin(readings[:1000])
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
# Data arrive in chunks, from a file, say. `fill(buffer, i)` writes chunk `i` into a host array, and keeps Python busy for a while. There are two pinned `buffers` for `count` chunks. Upload all chunks
# on `stream`, and return the list of their device arrays. Two things have to hold, on a slow device as well:
#
# - no buffer is filled while it is still being copied;
# - while the device copies from one buffer, Python fills the other.
#
# When the function returns, all is done, and the buffers are free. Remember: **`event.synchronize()`** has *Python* wait until the device has passed the event.

# %% id=02b-two-buffers starter
def upload_all(fill, count, buffers, stream):
    arrays = []
    for i in range(count):
        fill(buffers[0], i)
        arrays.append(agt.h2d(buffers[0]).async_on(stream))
        stream.synchronize()
    return arrays


# %% id=02b-two-buffers solution
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

# %% id=02b-two-buffers hints
# Before buffer `i % 2` is filled again, its last copy has to be over: that of chunk `i - 2`.
#
# `stream.record()` right behind the copy is an event for this copy. `event.synchronize()` is how the *host* waits for it, and for nothing
# that comes after.
#
# Keep the events in a list. At the top of the loop: `if i >= 2: events[i - 2].synchronize()`. And `stream.synchronize()` at the very end.

# %% id=02b-two-buffers explanation
# One way: wait for the event of chunk `i - 2`. That leaves the copy of chunk `i - 1` under way, and it goes on while you fill. This is
# called double buffering.

# %% id=02b-two-buffers-check
check("02b-two-buffers", upload_all)

# %% [markdown] id=engines
# ## Copy engines
#
# Copies are not done by the part of the GPU that computes. There are **copy engines** for them. So what happens if there are two copies at once, on two streams? Each has
# 4 MB, and alone it takes about 75 µs.

# %% id=predict-engines
engines = Prediction(
    "Pair A: two uploads on two streams. Pair B: an upload and a download on two streams. How long?",
    both="A and B about 75 µs: that is what streams are for",
    B="A about 150 µs, and B about 90",
    A="A about 90 µs, and B about 150",
    neither="A and B about 150 µs: one copy at a time",
)
engines

# %% id=predict-engines-commit
engines.commit(...)

# %% id=engines-run
there = agt.h2d(pinned, "there").sync()


def two_uploads():
    agt.h2d(pinned, "x").async_on(one)
    agt.h2d(pinned, "x").async_on(two)
    agt.synchronize()


def up_and_down():
    agt.h2d(pinned, "x").async_on(one)
    agt.d2h(there.borrow()).async_on(two)
    agt.synchronize()


same_way, _ = recorded(two_uploads)
both_ways, _ = recorded(up_and_down)
agt.compare_timelines(
    [same_way, both_ways],
    ["A: two uploads", "B: up and down"],
    lanes=("streams", "engines"),
    lesson="Two uploads take turns on one engine. An upload and a download run at the same time.",
)

# %% id=reveal-engines
time_a, time_b = same_way.metrics().device_makespan, both_ways.metrics().device_makespan
alone = from_pinned.metrics().device_makespan
a_turns, b_turns = time_a > 1.6 * alone, time_b > 1.6 * alone
engines.reveal(
    "neither" if a_turns and b_turns else "B" if a_turns else "A" if b_turns else "both",
    f"One copy takes {alone:.0f} µs, pair A {time_a:.0f}, and pair B {time_b:.0f}.",
)

# %% [markdown] id=engines-read
# There are two copy engines: one brings data in, the other takes data out. The lower lanes are the engines; `s1` is what came from stream 1. In A there are two streams, and still one copy waits for the other, because both want the same engine. In B each has its own.
# (On a real GPU a bar begins when its copy is the first in its queue, even if it has to wait for the engine then. So in A the two bars may lie side by side.)
#
# So each direction has an engine, and in our first picture one of the two was always idle.

# %% id=engines-check tags=asserts
if device.simulated:
    first, second = same_way.find("h2d")
    assert first.stream != second.stream
    assert first.end <= second.start
    assert both_ways.metrics().overlap > 50

# %% [markdown] id=chunks-text
# ## Four pieces
#
# Who says that *all* readings must be there before the first one can be converted? Cut the array into four chunks, and give each a stream. While chunk 0 comes back, chunk 1 is on its way there. No
# events are needed, as no chunk needs another.

# %% id=predict-chunks
pays = Prediction(
    f"All at once it took {whole.metrics().makespan:.0f} µs. How long in four chunks, on four streams?",
    none="about as long: it is the same amount of copying",
    two_thirds="about two thirds of that",
    half="about half of that",
    quarter="about a quarter of that",
)
pays

# %% id=predict-chunks-commit
pays.commit(...)

# %% id=chunks-run
def in_chunks(readings, chunks, streams):
    queues = [agt.create_stream() for _ in range(streams)]
    handles = [
        converted(chunk).async_on(queues[i % streams])
        for i, chunk in enumerate(np.array_split(readings, chunks))
    ]
    agt.synchronize()
    return [handle.numpy() for handle in handles]


in_chunks(readings, 4, 4)  # a warm-up
four_chunks, chunked = recorded(in_chunks, readings, 4, 4)
agt.compare_timelines(
    [whole, four_chunks],
    ["At once", "In four chunks"],
    lanes=("host", "streams", "engines"),
    lesson="In four chunks both copy engines are at work at the same time, and only the two ends stick out.",
)

# %% id=reveal-chunks
part = four_chunks.metrics().makespan / whole.metrics().makespan
pays.reveal(
    "none" if part > 0.85 else "two_thirds" if part > 0.58 else "half" if part > 0.35 else "quarter",
    f"It takes {four_chunks.metrics().makespan:.0f} µs.",
)

# %% [markdown] id=chunks-read
# Look at the engines: in the lower picture they are busy at the same time. Nothing got faster. The *gaps* went.
#
# Why not a quarter? All the data still have to come in, one chunk after the other, through one engine. **The busiest engine is a limit that no cutting can beat.** Here each direction has half of the
# copying, so the limit is one half. What keeps us from reaching it are the two ends: at the start nothing can go back yet, and at the end nothing is left to come in.

# %% id=chunks-check tags=asserts
assert np.array_equal(np.concatenate(chunked), result)
both_directions = four_chunks.overlap_between("h2d", "d2h")
busiest = max(four_chunks.metrics().engine_busy.values())
if device.simulated:
    assert both_directions > 150
    assert whole.overlap_between("h2d", "d2h") == 0
    assert busiest < four_chunks.metrics().makespan
    in_busy, out_busy = (four_chunks.metrics().engine_busy[device.name, d] for d in ("h2d", "d2h"))
    assert abs(in_busy - out_busy) < 0.1 * in_busy

# %% [markdown] id=explore-text
# ## How many?
#
# Smaller chunks make the two ends shorter. So, cut finer? Below is the same program for several numbers of chunks and streams, on a simulated device. Move the sliders, and watch the ends and the
# host's lane. Which number is best, and what goes wrong beyond it? (For speed, these are half of the readings.)

# %% id=explore
fewer = 2_000_000


def program(chunks, streams):
    in_chunks(agt.pin(readings[:fewer]), chunks, streams)


found = agt.explore(program, chunks=(1, 2, 3, 4, 6, 8), streams=(1, 2, 4))
found

# %% id=explore-check tags=asserts
assert 1 < found.best["chunks"] < 8
assert found.best["streams"] > 1
assert found.makespans[8, 4] > found.makespans[found.best["chunks"], 4]
eight = found[8, 4]
calls = [span for span in eight if span.kind == "call"]
assert max(s.end for s in calls) - min(s.start for s in calls) > max(eight.metrics().engine_busy.values())

# %% [markdown] id=explore-read
# On one stream there is nothing to win, as a queue does one thing at a time. With two streams or more, a few chunks help. Then it gets *worse*: each chunk has its price, since Python makes the same
# calls for it whatever its size. With eight chunks the host's lane is full from start to end, and the engines wait for Python. **Cut until the ends are short, and not further.** A chunk is large
# enough if copying it takes clearly longer than Python needs to submit it.

# %% [markdown] id=exercise-chunks
# ### Exercise: a pipeline of chunks
#
# One more thing is different in real life: the chunks have something in common, such as a table of weights. `prepare` is an operation that uploads it; run it *once*, on one of the streams.
# `process(chunk, table)` is the operation for one chunk. It only borrows the table, so one will do for all. Deal the chunks out to the `streams` in turn, and return the results as NumPy arrays, in the
# order of the chunks. Python waits only when everything is on its way. The check also uses a device that picks the unluckiest legal order.

# %% id=02b-chunked-overlap starter
def pipeline(prepare, process, chunks, streams):
    table = prepare.sync_on(streams[0])
    return [process(chunk, table).sync_on(streams[0]) for chunk in chunks]


# %% id=02b-chunked-overlap solution
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

# %% id=02b-chunked-overlap hints
# Chunk `i` goes on `streams[i % len(streams)]`. Keep what `async_on` returns, and wait later.
#
# The table is uploaded on one of the streams. The others know nothing of that, unless an event tells them.
#
# After all chunks: `stream.synchronize()` for each stream, then `[result.numpy() for result in results]`.

# %% id=02b-chunked-overlap explanation
# While one stream computes, another copies: each stream is in order, and between them only the table is. The host waits when everything
# is on its way, and not before.

# %% id=02b-chunked-overlap-check
check("02b-chunked-overlap", pipeline)

# %% [markdown] id=challenge
# ## Challenge: there and back
#
# Back to the question from the top. `data` are four million readings in pinned memory, and `process(part)` is an operation that takes a part of them there, works on it, and brings it back. Return the
# results of all parts in a list, in order: arrays, or handles that are ready. As it stands, this takes 619 µs: get below 410.

# %% id=02b-challenge starter
def there_and_back(process, data):
    return [process(data).sync()]


# %% id=02b-challenge solution
def there_and_back(process, data):
    streams = [agt.create_stream() for _ in range(3)]
    parts = np.array_split(data, 5)
    results = [process(part).async_on(streams[i % 3]) for i, part in enumerate(parts)]
    agt.synchronize()
    return results

# %% id=02b-challenge hints
# `np.array_split(data, number)` cuts an array into parts, and copies nothing.
#
# `in_chunks`, further up, does nearly all of it. What remains is the question how many parts, and on how many streams.
#
# Here the parts are twice as large as in the sliders above, so there is more time to submit each. Try four to six parts on three streams.

# %% id=02b-challenge explanation
# The limit is about 300 µs: that long the engine of each direction is at work. What you have on top of it are the two ends and Python's calls. Parts need not be of equal size, by the way.

# %% id=02b-challenge-check
check("02b-challenge", there_and_back)

# %% id=score
score(held_up, engines, pays)

# %% id=progress
progress("02b")

# %% [markdown] id=key-points
# ## Key points
#
# - From **pinned** memory the device copies by itself while Python goes on. Leave the array alone meanwhile. **Pageable** memory holds Python up.
# - With two buffers, one is filled while the other is copied.
# - There is one copy engine for each direction. **Chunks** keep both busy at the same time.
# - The busiest engine is the limit, unless it is the host. Cut until the ends are short, and not further.
#
# What others call these things is in the [glossary](../docs/glossary.md), and common mistakes are in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [03_lazy_operations.ipynb](03_lazy_operations.ipynb). So far you have placed each event by hand. From now on operations place them for you.
