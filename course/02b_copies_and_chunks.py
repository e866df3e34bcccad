"""Source of notebooks/02b_copies_and_chunks.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Copies and chunks
#
# Sixteen megabytes of data travel to the device, get worked on for a moment, and travel back. That takes 620 µs, and the kernel is at work for just eleven of them. It's like driving to work and back for an hour in order to spend one minute at the desk.
#
# **You can't make either copy any faster. Can the whole trip still take much less?**
#
# After this page you can say what a copy from an ordinary array costs Python. You can fill one buffer while another is being copied, cut a job into chunks so that the whole takes less time, and find out how many chunks are enough.
#
# | | |
# |---|---|
# | Time | an hour, a quarter of it for the challenge |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb) |

# %% id=setup
import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, shown, solution, solved,
)

device = agt.use("auto")
device

# %% [markdown] id=whole-text
# ## All at once
#
# Here's the commuter. Four million readings have come in, in degrees Fahrenheit, and a kernel converts them to Celsius:

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
    """Describe the whole trip, there and back: one operation, so one stream."""

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
    lesson="Two long copies and a sliver of a kernel, one after the other, while "
    "Python waits.",
)

# %% [markdown] id=whole-read
# (`.and_then(work)` continues an operation: as soon as the array has a place on the device, `work` gets it and says what happens next. Chapter 04 explains it.)
#
# Look at the sliver. You could spend a week making this kernel twice as fast, and you'd save five microseconds. Whatever there is to win here, it's on the road. So before we do anything clever, let's find out how the copies work, and who has to wait for them.

# %% id=whole-check tags=asserts
assert np.allclose(result, (readings - 32) / 1.8, atol=1e-4)
if device.simulated:
    assert round(whole.metrics().makespan) == 620
    assert round(whole.find("celsius")[0].duration) == 11
    assert 50 < whole.metrics().makespan / whole.find("celsius")[0].duration < 65  # an hour, a minute

# %% [markdown] id=pinned
# ## Two kinds of memory
#
# So far we've passed every array through `agt.pin` before uploading it, without saying why. What if we forget?
#
# An ordinary NumPy array is **pageable**. That means that the operating system may move it to another place in memory, or out of memory altogether, whenever it likes. The device can't fetch data from a place that may move, so the driver first has to copy the data to one that doesn't. **Pinned** memory stays put, and that's why the device can fetch from it without anybody's help.

# %% id=with-warnings tags=helpers
def with_warnings(program, *args):
    """The trace of a program, and the warnings that came."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace, _ = recorded(program, *args)
    return trace, caught

# %% id=pinned-run
one, two = agt.create_stream(), agt.create_stream()
pinned = agt.pin(readings[:1_000_000])
ordinary = np.array(pinned)  # a copy, in ordinary memory


def upload(host):
    agt.h2d(host, "x").async_on(one)
    one.synchronize()

# %% id=02b-pinned guess
# With 4 MB to copy, how much longer does the *call* of `async_on` take for the ordinary array?
#
# - `same`: not at all, because `async_on` doesn't wait
# - `bit`: two or three times as long
# - `ten`: about ten times as long
# - `lot`: more than twenty times as long

# %% id=02b-pinned reveal
from_pinned, quiet = with_warnings(upload, pinned)
from_pageable, warned = with_warnings(upload, ordinary)
picture = agt.compare_timelines(
    [from_pinned, from_pageable],
    ["From pinned memory", "From an ordinary array"],
    lanes=("host", "streams"),
)
calls = [sum(s.duration for s in t.find("enqueue h2d")) for t in (from_pinned, from_pageable)]
times = calls[1] / calls[0]
truth = "same" if times < 1.5 else "bit" if times < 5 else "ten" if times < 20 else "lot"
facts = {"short": calls[0], "long": calls[1], "warning": warned[0].message}
reveal("02b-pinned", truth, picture, **facts)

# %% id=02b-pinned lesson
# From an ordinary array it's the call that takes the time, because Python is busy copying.

# %% id=02b-pinned told truth=lot
# The call takes {short:.0f} µs and {long:.0f} µs.
#
# The second is asynchronous in name only. It returns when the driver has made a copy of its own, and Python is stuck in it until then. The course warns you when that happens:
#
# > {warning}

# %% [markdown] id=pinned-read
# ### Pin what you send often
#
# `agt.pin(array)` makes a pinned copy, or `agt.pinned(shape)`, which gives you an empty array to fill. But don't pin everything you own. The system can't use pinned memory for anything else, so it's scarce, and people pin a few buffers and use them again and again.
#
# How much does it matter on a real GPU? On an H200 we sent four chunks of a million numbers there and back, on four streams. The only difference between the two runs is that one of them forgot `agt.pin`.

# %% id=pinned-check tags=asserts
assert (len(quiet), len(warned)) == (0, 1)
if device.simulated:
    assert times > 20

# %% id=pinned-on-a-gpu
recordings = ("08_pageable_copy", "08_pageable_copy_repaired")
pageable_h200, pinned_h200 = (
    agt.Trace.load_recording(name).from_first() for name in recordings
)
agt.compare_timelines(
    [pageable_h200, pinned_h200],
    ["Ordinary arrays, H200", "Pinned arrays, H200"],
    lanes=("host", "engines"),
    lesson="From ordinary arrays, Python is stuck in each upload, and nothing "
    "overlaps.",
)

# %% [markdown] id=pinned-on-a-gpu-read
# That was an expensive thing to forget: 1707 µs instead of 538. In the upper picture, each upload keeps Python busy for some 240 µs. So by the time the next chunk sets out, the one before is already back, and the two directions never overlap. The uploads themselves are slower, too: 186 µs each instead of about 80. (The downloads are alike, since `to_host` makes a pinned array of its own.)

# %% id=pinned-on-a-gpu-check tags=asserts
pair = pageable_h200, pinned_h200
assert [round(trace.metrics().makespan) for trace in pair] == [1707, 538]
assert pageable_h200.overlap_between("h2d", "d2h") == 0
assert pinned_h200.overlap_between("h2d", "d2h") > 190
assert all(180 < span.duration < 190 for span in pageable_h200.find("h2d"))
assert all(230 < span.duration < 250 for span in pageable_h200.find("enqueue h2d"))
assert all(77 < span.duration < 83 for span in pinned_h200.find("h2d"))
trips = zip(pageable_h200.find("enqueue h2d"), pageable_h200.find("h2d"), strict=True)
assert all(call.start < copy.start < call.end and 260 < copy.end - call.start < 276 for call, copy in trips)
if device.simulated:
    (call,), (copy,) = from_pageable.find("enqueue h2d"), from_pageable.find("h2d")
    assert copy.start > call.end
    assert 490 < copy.end - call.start < 510

# %% [markdown] id=pinned-mind
# Pinned memory has a catch, though, and it follows from the very thing that makes it good. **The device reads the array later, on its own.** If you change the array too early, you change the data that the device is about to copy. On a GPU that's another silent race, this time against Python itself. The simulated device notices:

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

# %% [markdown] id=pinned-model
# Before you go on, a word about our model, which exaggerates what an ordinary array costs. With it, call and upload together take 500 µs, because the upload begins only when the call is over. The real driver copies piece by piece, so the upload begins during the call, and the two together take about 265.

# %% [markdown] id=exercise-buffers
# ### Exercise: two buffers in turn
#
# Data arrive in chunks, say from a file. `fill(buffer, i)` writes chunk `i` into a host array, which keeps Python busy for a while. There are `count` chunks, but only two pinned `buffers`. Upload all chunks on `stream`, and return the list of their device arrays. `async_on` gives you each one at once, before its numbers are there. Two things have to hold, even if the device is slow:
#
# - You never fill a buffer that is still being copied.
# - While the device copies from one buffer, Python fills the other.
#
# When the function returns, everything is done and the buffers are free. You'll need **`event.synchronize()`**, which makes *Python* wait until the device has passed the event.

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
# Before you fill buffer `i % 2` again, its previous copy has to be over. That was the copy of chunk `i - 2`.
#
# `stream.record()` right behind the copy gives you an event for this copy. With `event.synchronize()` the *host* waits for it, and for nothing that comes after it.
#
# Keep the events in a list. At the top of the loop, write `if i >= 2: events[i - 2].synchronize()`, and at the very end `stream.synchronize()`.

# %% id=02b-two-buffers explanation
# One way is to wait for the event of chunk `i - 2`. The copy of chunk `i - 1` is then still under way, and it goes on while you fill the buffer. This is called double buffering.

# %% id=02b-two-buffers-check
check("02b-two-buffers", upload_all)

# %% [markdown] id=buffers-text
# Here's your function at work. (Until yours is accepted, it's ours.) Python takes 60 µs to fill a buffer, and the device takes about 75 to copy one.

# %% id=with-buffers tags=helpers
def with_buffers(trace):
    """The same trace, with a lane for each of the two buffers."""
    copies = trace.find("h2d")
    for k in range(2):
        lane = []
        for i in range(k, len(copies), 2):
            (fill,) = trace.find(f"fill {i}")
            lane += [(fill.start, fill.end, f"fill {i}"), (copies[i].start, copies[i].end, f"copy {i}")]
        trace = trace.with_lane(f"buffer {k}", lane)
    return trace

# %% id=buffers-picture
def fill(buffer, i):
    agt.work(60, f"fill {i}")
    buffer[:] = i


buffers = [agt.pinned(1_000_000) for _ in range(2)]
in_turn, _ = recorded(solved("02b-two-buffers", upload_all), fill, 6, buffers, one)
with_buffers(in_turn).plot(
    title="Two buffers in turn",
    lanes=("host", "streams"),
    lesson="While the device copies from one buffer, Python fills the other.",
)

# %% id=buffers-check tags=asserts
if device.simulated:
    assert all(in_turn.overlap_between(f"fill {i}", "h2d") > 40 for i in range(1, 6))
    assert all(70 < span.duration < 80 for span in in_turn.find("h2d"))

# %% [markdown] id=engines
# ## Copy engines
#
# Now for the road itself. The part of a GPU that computes doesn't do the copying. For that there are **copy engines**. So what happens if you ask for three copies at once, on three streams? Each has 4 MB, which takes about 75 µs if nothing else is going on. Two go up, and one comes down, from an array that's `there` already.

# %% id=engines-run
there = agt.h2d(pinned, "there").sync()


def three_copies():
    agt.h2d(pinned, "x").named("up1").async_on(one)
    agt.h2d(pinned, "x").named("up2").async_on(two)
    agt.d2h(there.borrow()).named("down").async_on(three)
    agt.synchronize()


three = agt.create_stream()

# %% id=02b-engines guess
# In which order do the three copies end? Type three words.

# %% id=02b-engines reveal
copies, _ = recorded(three_copies)
(up1, up2), (down,) = copies.find("h2d"), copies.find("d2h")
ends = {"up1": up1.end, "up2": up2.end, "down": down.end}
picture = copies.plot(title="Three copies on three streams", lanes=("streams", "engines"))
reveal("02b-engines", " ".join(sorted(ends, key=ends.get)), picture, **ends)

# %% id=02b-engines lesson
# Two uploads take turns on one engine. The download runs beside them.

# %% id=02b-engines told truth="up1 down up2"
# They end at {up1:.0f}, {down:.0f} and {up2:.0f} µs.
#
# For our purposes there are two copy engines, like a road with one lane in each direction. In the lower lanes you see which engine does what, and `s1` means that the work came from stream 1. Three streams, but both uploads go the same way, so one has to wait behind the other. The download has a lane to itself. (On a real GPU you may see the two uploads' bars overlap: there, a bar may begin before the engine gets to its copy.)
#
# Now think of our first picture. While all the data were on their way in, the lane out was empty, and then the other way round. That's the waste we were looking for.

# %% id=engines-check tags=asserts
if device.simulated:
    assert up1.stream != up2.stream
    assert up1.end <= up2.start
    assert copies.overlap_between("h2d", "d2h") > 50

# %% [markdown] id=chunks-text
# ## Four pieces
#
# Why should *all* the readings have to arrive before we convert the first one? Let's cut the array into four chunks and give each its own stream. Then chunk 0 can come back while chunk 1 is still on its way there. We don't even need events, because no chunk needs another.

# %% id=chunks-run
def in_chunks(readings, chunks, streams):
    queues = [agt.create_stream() for _ in range(streams)]
    handles = [
        converted(chunk).async_on(queues[i % streams])
        for i, chunk in enumerate(np.array_split(readings, chunks))
    ]
    agt.synchronize()
    return [handle.numpy() for handle in handles]


# %% id=02b-chunks guess within=0.1
# All at once it takes 620 µs on the simulated H200, and each copy about half of that. How many µs does it take in four chunks, on four streams?

# %% id=02b-chunks reveal
in_chunks(readings, 4, 4)  # a warm-up
four_chunks, chunked = recorded(in_chunks, readings, 4, 4)
picture = agt.compare_timelines(
    [whole, four_chunks],
    ["At once", "In four chunks"],
    lanes=("host", "streams", "engines"),
)
chunks_us = four_chunks.metrics().makespan
engine_us = max(four_chunks.metrics().engine_busy.values())
facts = {"part": chunks_us / whole.metrics().makespan, "limit": engine_us}
reveal("02b-chunks", f"{chunks_us:.0f}", picture, **facts)

# %% id=02b-chunks lesson
# In four chunks both copy engines work at the same time, and only the two ends stick out.

# %% id=02b-chunks told truth=401
# That's {part:.0%} of the time it took at once. Neither engine copies any faster, but both are busy at the same time, and most of the idle time is gone.
#
# So why isn't it a quarter of the time, or at least a half? Because all the data still have to come in through one engine, one chunk after the other. **The busiest engine sets a limit that no cutting can beat.** Here each engine is busy for {limit:.0f} µs, which is nearly half of the time it took at once. And we don't quite get there, because at the start there's nothing to take back yet, and at the end there's nothing left to bring in.

# %% id=chunks-check tags=asserts
assert np.array_equal(np.concatenate(chunked), result)
both_directions = four_chunks.overlap_between("h2d", "d2h")
if device.simulated:
    assert both_directions > 150
    assert whole.overlap_between("h2d", "d2h") == 0
    assert 295 < engine_us < 315 < chunks_us
    in_busy, out_busy = (four_chunks.metrics().engine_busy[device.name, d] for d in ("h2d", "d2h"))
    assert abs(in_busy - out_busy) < 0.1 * in_busy

# %% [markdown] id=chunks-on-a-gpu
# ## And a real one?
#
# The H200's pinned run, further up, was nearly this program: four chunks of a million numbers there and back, on four streams, with a `relu` for a kernel. On the simulated device our four chunks take 401 µs. The H200 took 538.

# %% id=chunks-real tags=helpers
def with_uploads(trace):
    """The trace with a lane for the calls that ask for an upload."""
    calls = [span for span in trace if span.name == "enqueue h2d"]
    lane = [(span.start, span.end, f"{i}") for i, span in enumerate(calls)]
    return trace.with_lane("upload calls", lane).from_first()


# %% id=02b-real guess
# What costs the H200 most of those 137 µs?
#
# - `copies`: its copies, which take longer if both directions are busy
# - `order`: the two directions, which hardly overlap on a real GPU
# - `kernel`: its kernels, which hold up the copies back
# - `python`: its host, which keeps the copy engines waiting

# %% id=02b-real reveal
picture = agt.compare_timelines(
    [with_uploads(four_chunks), with_uploads(pinned_h200)],
    ["Four chunks on your device", "Four chunks, H200"],
    lanes=("host", "engines"),
)
ups = pinned_h200.find("h2d")
busy = [span.duration for span in ups]
idle = ups[-1].end - ups[0].start - sum(busy)
truth = "python" if idle > 2 * (sum(busy) - len(busy) * min(busy)) else "copies"
reveal("02b-real", truth, picture, idle=idle)

# %% id=02b-real lesson
# On the H200, each upload begins right after its call, so the engine has been waiting for Python.

# %% id=02b-real told truth=python
# Between the first upload and the last, the engine stands idle for {idle:.0f} µs. Python hands in a chunk every 100 to 130 µs there, while a copy takes about 80. Our model's Python needs only 45 µs for a chunk, so its engine never waits. With four large chunks, then, Python can already be the limit. That's why you measure a gain before you believe in it.

# %% id=chunks-real-check tags=asserts
entered = pinned_h200.find("enqueue h2d")
assert all(0 <= up.start - call.end < 5 for call, up in zip(entered, ups, strict=True))
assert 90 < idle < 100
assert all(95 < late.start - early.start < 130 for early, late in pairwise(entered))
if device.simulated:
    entered = four_chunks.find("enqueue h2d")
    assert all(40 < late.start - early.start < 50 for early, late in pairwise(entered))
    assert round(four_chunks.metrics().makespan) == 401

# %% [markdown] id=explore-text
# ## How many?
#
# With smaller chunks, the two ends get shorter. So should we cut finer and finer, until the data travel as dust? Let's try 1, 2, 3, 4, 6 and 8 chunks on three streams of a simulated device. (To save time, with only half of the readings. All at once, those take 324 µs.)

# %% id=explore
fewer = 2_000_000


def program(chunks, streams):
    # A simulated device for each run, so that none meets what another left behind.
    with agt.using(agt.SimDevice()), agt.record() as trace:
        in_chunks(agt.pin(readings[:fewer]), chunks, streams)
    return trace.from_first()


# %% id=02b-best guess
# Which of these numbers of chunks is best? Type it.

# %% id=02b-best reveal
found = {chunks: program(chunks, streams=3) for chunks in (1, 2, 3, 4, 6, 8)}
makespans = {chunks: trace.metrics().makespan for chunks, trace in found.items()}
titles = ["one chunk", "three chunks", "eight chunks"]
picture = agt.compare_timelines(
    [found[1], found[3], found[8]],
    titles,
    lanes=("host", "engines"),
)
on_four = program(4, streams=4).metrics().makespan


def curve():
    """The times, and the two things that no time can be shorter than."""
    figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
    engine = [max(trace.metrics().engine_busy.values()) for trace in found.values()]
    calls = [[span for span in trace if span.kind == "call"] for trace in found.values()]
    python = [max(s.end for s in of) - min(s.start for s in of) for of in calls]
    axes.plot(list(makespans), list(makespans.values()), "o-", label="the whole, on three streams")
    axes.plot([4], [on_four], "kx", ms=10, label="the whole, on four streams")
    axes.plot(list(found), python, "s:", label="Python's calls")
    axes.plot(list(found), engine, "--", label="the busier engine")
    axes.set(xlabel="chunks", ylabel="µs", ylim=(0, None))
    axes.legend(fontsize=8)
    shown(
        figure,
        "The whole falls from one chunk to three, and rises again. Python's calls rise in a straight "
        "line, and from four chunks on the whole rises with them. The busier engine needs about half of "
        "the first time throughout.",
        "With few chunks the engines set the time, and with many it's Python's calls.",
    )


times = ", ".join(f"{us:.0f} µs with {n}" for n, us in makespans.items())
reveal("02b-best", min(makespans, key=makespans.get), picture, curve, times=times)

# %% id=02b-best lesson
# With three chunks both engines are busy most of the time. With eight, they wait for Python.

# %% id=02b-best told truth=3
# It takes {times}.
#
# Two or three chunks help a lot. But after that it gets *worse*, and eight chunks take longer than one. The streams aren't to blame, as the cross for four of them shows. It's Python. Every chunk costs it the same 45 µs of calls, no matter how small the chunk is. Copying a third of the data takes 51 µs, so Python stays ahead of the engine. Copying a quarter takes only 39, so each upload waits for its call. **Cut until the ends are short, and then stop.** A chunk is large enough if copying it takes longer than submitting it.

# %% id=explore-check tags=asserts
assert round(makespans[1]) == 324
assert all(program(chunks, streams=1).metrics().makespan > 323 for chunks in found)
assert min(makespans, key=makespans.get) == 3
assert makespans[8] > makespans[1]
assert on_four == makespans[4]
for chunks, copied_us, waits in [(3, 51, False), (4, 39, True)]:
    ups, asked = (found[chunks].find(name) for name in ("h2d", "enqueue h2d"))
    assert all(round(up.duration) == copied_us for up in ups)
    assert all(round(b.start - a.start) == 45 for a, b in pairwise(asked))
    # Does the engine stand idle until the call is over?
    late = [a.end < call.end for a, call in zip(ups, asked[1:], strict=False)]
    assert all(late) if waits else not any(late)
eight = found[8]
calls = [span for span in eight if span.kind == "call"]
assert max(s.end for s in calls) - min(s.start for s in calls) > max(eight.metrics().engine_busy.values())

# %% [markdown] id=explore-read
# It's no magic number: with more readings, or a quicker Python, it's another. Put other numbers into `program(...)` in a cell of your own, and look at its picture: `program(5, streams=5).plot()`.

# %% [markdown] id=exercise-chunks
# ### Exercise: a pipeline of chunks
#
# In real life, chunks often share something, such as a table of weights. `prepare` is an operation that uploads the table. `process(chunk, table)` is the operation for one chunk, and it only borrows the table.
#
# - Run `prepare` *once*, on one of the `streams`, and use its table for all chunks.
# - Deal the chunks out to the streams in turn.
# - Return the results as NumPy arrays, in the order of the chunks.
# - Python shouldn't wait before everything is on its way. You can pass on the handle of the table at once, but make sure that no stream reads the table too early.
#
# In the check, five chunks of 2.5 MB on three streams take 767 µs as it stands, and 381 are possible. It's the order of the work that's checked, not the time. The check also runs your code on a device that picks the unluckiest order it's allowed to.

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
# You upload the table on one of the streams. The other streams don't know about that unless an event tells them.
#
# After the last chunk, call `stream.synchronize()` for each stream, and return `[result.numpy() for result in results]`.

# %% id=02b-chunked-overlap explanation
# While one stream computes, another one uploads and a third brings its results back. Each stream is in order by itself, and the only thing that they share is the table. The host waits once everything is on its way, and not earlier.

# %% id=02b-chunked-overlap-check
check("02b-chunked-overlap", pipeline)

# %% [markdown] id=challenge
# ## Challenge: there and back
#
# Back to the question from the top. You've seen one answer, four chunks in 401 µs, and now you'll beat it. `data` are four million readings in pinned memory. `process(part)` is an operation that takes some of them to the device, works on them and brings them back. Return the results of all parts in a list, in order, as arrays or as handles that are ready. As it stands, this takes 620 µs. Get below 385. (With parts of different sizes, 376 is possible, and nothing gets below the 300 for which an engine is busy. Where would you want the small ones?)

# %% id=02b-challenge starter
def there_and_back(process, data):
    return [process(data).sync()]


# %% id=02b-challenge solution
def there_and_back(process, data):
    streams = [agt.create_stream() for _ in range(3)]
    parts = np.array_split(data, 6)
    results = [process(part).async_on(streams[i % 3]) for i, part in enumerate(parts)]
    agt.synchronize()
    return results

# %% id=02b-challenge hints
# `np.array_split(data, number)` cuts an array into parts without copying anything.
#
# `in_chunks`, further up, does nearly all of it. You only have to find out how many parts you want, and on how many streams.
#
# There are twice as many readings here as further up, so you can have twice as many parts before Python is too slow for them: try six on three streams.

# %% id=02b-challenge explanation
# The limit is about 300 µs, because that's how long the engine of each direction is busy. What's left above it are the two ends. Smaller parts would make them shorter, but Python needs about 45 µs to submit a part, and a sixth of the data is copied in 50. Only towards the end, when Python is ahead, may the parts get a little smaller.

# %% id=02b-challenge-check
check("02b-challenge", there_and_back)

# %% id=score
score("02b")

# %% id=progress
progress("02b")

# %% [markdown] id=key-points
# ## Key points
#
# - The device copies from **pinned** memory on its own while Python goes on, so you have to leave the array alone in the meantime. With **pageable** memory, Python is stuck until the driver has made a copy of its own.
# - With two buffers you can fill one while the device copies from the other.
# - You can think of a GPU as having one copy engine for each direction. If you cut the work into **chunks**, both can be busy at the same time.
# - The busiest engine sets a limit. But with many small chunks it's Python that sets it, and on the H200 four large ones were enough for that. So cut until the ends are short, and then stop. Where that is, you have to measure.
#
# If a word is new, look in the [glossary](../docs/glossary.md). If something seems wrong, the [misconceptions](../docs/misconceptions.md) page probably has it.
#
# **Next:** [03_lazy_operations.ipynb](03_lazy_operations.ipynb). So far you've placed every event by hand. From now on, operations place them for you.
