"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# Two programs did the same work on the same GPU. One took 729 microseconds, and the other took 501. Nobody wrote faster GPU code.
#
# **So where did the time go?**
#
# Soon you'll bet on why, and then you'll change what a GPU computes. The whole course goes like that: you guess, and then a timeline tells you, without any tact.
#
# After this page you can start work on a GPU, read a timeline, make a slow program quick, and get other work done meanwhile.
#
# | | |
# |---|---|
# | Time | 45 minutes, 10 for the challenge, and 5 for the encore |
# | You need | Python and a little NumPy. No GPU, and no CUDA |
#
# Run the cells from top to bottom with <kbd>Shift</kbd>+<kbd>Enter</kbd>. If you get a `NameError` after a break, choose *Run*, then *Run All Above Selected Cell*. You needn't read a cell that looks like a thin bar.

# %% id=setup
import asyncio
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
device

# %% [markdown] id=two-runs
# ## The slow one
#
# Here's the slow program, recorded on an NVIDIA H200. The top lane is Python, and the lane below is a queue of work for the GPU. A bar is one piece of work, or one call that Python makes. An `h2d` copies numbers to the GPU, the orange sliver behind it computes, and a `d2h` copies the result back.

# %% id=two-runs-picture tags=helpers
slow = agt.Trace.load_recording("02_one_stream").from_first()

slow.plot(
    title="The slow program: 729 µs",
    lanes=("host", "streams"),
    lesson="Twelve pieces of work for the GPU, and Python, which waits for them.",
)

# %% id=two-runs-check tags=asserts
assert round(slow.metrics().makespan) == 729
assert len(slow.device_spans) == 12
(only_wait,) = [span for span in slow if span.kind == "wait"]
assert only_wait.start >= max(span.end for span in slow if span.kind == "call")
assert not [span for span in slow if span.kind == "work"]

# %% [markdown] id=two-runs-read
# The quick program makes just as many calls, 16 and a wait, for the same twelve pieces of work. (A µs is a millionth of a second.)
#
# Write your bet in place of the three dots, as in `guess("00-riddle", "gaps")`, and run the cell. Wrong guesses are welcome: we remember an answer best when it has just surprised us. (This bet is settled near the end. All others are settled right below the question, by a folded cell, a thin bar.)

# %% id=00-riddle guess
# What does the quick program do that the slow one doesn't?
#
# - `python`: it never lets Python wait for the GPU
# - `gaps`: it leaves no gaps between the pieces of work
# - `kernels`: it runs several kernels at the same time
# - `inward`: it makes several copies to the GPU at the same time
# - `ways`: it copies to the GPU and back at the same time

# %% [markdown] id=two-computers
# ## Two computers
#
# Think of a GPU as a second computer, with its own memory and its own sense of time. The computer that runs Python is called the **host**, and the GPU is the **device**. When NumPy computes, you wait for it. A device can compute while Python does something else.
#
# Without an NVIDIA GPU, `agt.use("auto")` gave you the *simulated device*. It computes results from the same source code, and works out times with a model of an H200, always labelled *simulated*. The times in the text are its own, but for the riddle's, which are an H200's.

# %% [markdown] id=kernel
# ## A function for one element
#
# That orange sliver was a **kernel**, a function that runs on the device. You write it in CUDA C, for just *one* element of an array. The device runs it for all of them, in thousands of **threads** at the same time.

# %% id=kernel-source
twice = agt.Kernel(r"""
extern "C" __global__ void twice(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = 2.0f * x[i];
    }
}
""")

# %% [markdown] id=kernel-explained
# In NumPy this would be `y = 2 * x`. Notice what isn't there: a loop. The first line of the body asks *which element is mine?*, and the rest deals with that one.
#
# Here's a picture that's too dark, of two million pixels. **Run your kernel on it. Then change the `2.0f` above to `3.0f`, and run both cells again.** (For a negative, make the line `y[i] = 1.0f - 2.0f * x[i];`.)

# %% id=dark-picture tags=helpers
def too_dark(c):
    """A picture in the dark: 1,250 rows of 1,600 pixels, each from 0 (black) to 0.5. It's a Julia set.

    `agt.pin` puts it where the device can fetch it without Python's help.
    """
    rows, columns = np.mgrid[1:-1:625j, -1.28:1.28:800j]
    z = (1.25 * (columns + 1j * rows)).astype(np.complex64)
    rounds = np.zeros(z.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(60):
            z = z * z + np.complex64(c)
            rounds += np.abs(z) < 2
    small = 0.5 * np.sqrt(rounds / rounds.max())
    return agt.pin(np.kron(small, np.ones((2, 2), np.float32)).ravel())


def hang_up(**pictures):
    """Draw pictures side by side, with the same black and the same white."""
    figure, row = plt.subplots(1, len(pictures), figsize=(9, 1 + 5.4 / len(pictures)))
    bright = []
    for axes, (name, picture) in zip(row, pictures.items(), strict=True):
        axes.imshow(picture.reshape(1250, 1600), cmap="inferno", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[], title=name.replace("_", " "))
        bright.append(f"{name.replace('_', ' ')} {picture.mean():.2f}")
    figure.tight_layout()
    caption = f"How bright they are, from 0 to 1: {', '.join(bright)}."
    shown(figure, f"Swirls of a Julia set, side by side: {len(row)} pictures.", caption)


def on_the_device(kernel, x):
    """What the kernel makes of `x`."""
    return kernel(x.size, agt.h2d(x), agt.zeros(x.size).partition(256)).output().to_host().sync()

# %% id=try-it
x = too_dark(-0.8 + 0.156j)  # the thin bar above draws it
hang_up(what_went_to_the_device=x, what_came_back=on_the_device(twice, x))

# %% [markdown] id=describe
# ## There and back
#
# Now we do ourselves what `on_the_device` did. The device can't see NumPy's memory. So the numbers travel there, and the result travels back. (Our pictures lie in *pinned* memory, where the device can fetch them by itself. With a plain array Python has to help: [02b_copies_and_chunks](02b_copies_and_chunks.ipynb).)

# %% id=first-operation
def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


op = doubled(x)

# %% [markdown] id=describe-explained
# Read `doubled` from the inside out. `agt.h2d(x)`, short for *host to device*, copies the picture to the device. `agt.zeros(x.size)` makes room for the result and fills it with zeros. `twice(...)` launches the kernel, with the kernel's arguments in their order, in groups of 256 threads. (The last group has threads to spare: hence the `if`.) `partition(256)` also marks the array that the kernel writes, which `output()` picks, and `to_host()` copies it back. So the device has four pieces of work: a copy, a fill, a kernel, and another copy.
#
# And how many of these has it done by now? None. `doubled(x)` only wrote down *what* is to be done. Such a description is called an **operation**. It's like a recipe: you can write one down, and nobody has dinner yet.

# %% id=describe-check tags=asserts
with agt.record() as so_far:
    another = doubled(x)
assert len(so_far) == 0
bright = await another  # an operation that's never run would warn

# %% [markdown] id=where
# ## Where the time goes
#
# `await op` runs the operation and pauses until the result is there. Only the code that says `await` pauses. Python's **event loop** gets on with other things meanwhile. (Functions with an `await` begin with `async def`. Notebook cells needn't.)
#
# `recorded(op)`, from the next thin bar, awaits `op` and returns its *trace*, a diary that our pictures are drawn from, and its result.

# %% id=stopwatch tags=helpers
def stopwatch(trace):
    """The same trace with two more lanes: where Python pauses, and how long it took until it went on."""
    first, last = min(span.start for span in trace), max(span.end for span in trace)
    python = sorted((s for s in trace if s.kind in ("call", "wait", "work")), key=lambda s: s.start)
    pauses = [(a.end, b.start, "pause") for a, b in pairwise(python) if b.start - a.end > 10]
    if pauses:
        trace = trace.with_lane("Python pauses", pauses)
    return trace.with_lane("stopwatch", [(first, last, f"{last - first:.0f} µs")])


async def recorded(work):
    """The trace of an `await`, and its result."""
    with agt.record() as trace:
        result = await work
        agt.work(0, "goes on")  # a job of 0 µs, to see when Python goes on
    return trace, result


_ = await doubled(x)  # a warm-up: at first a real GPU loads the kernel and looks for memory

# %% id=first-launch
first, y = await recorded(op)
stopwatch(first).plot(
    title="Your first work for the GPU",
    lanes=("host", "streams"),
    lesson="Python makes its calls and pauses. It goes on soon after the device.",
)

# %% id=first-launch-check tags=asserts
assert x.size == 2_000_000
assert np.array_equal(y, 2 * x) or "= 2.0f * x[i]" not in twice.source
for _ in range(4):  # a warm-up for all four streams
    with agt.record() as paused:
        await doubled(x)
assert not [span for span in paused if span.kind == "wait"]  # paused, and not blocked
assert max(s.end for s in paused.device_spans) > max(s.end for s in paused if s.kind == "call")

# %% [markdown] id=where-read
# ### Reading a timeline
#
# The lane with the long bars is a **stream**, a queue that the device works through piece by piece. The long bars are the copies, and of the two slivers between them, the dotted one is the fill and the orange one your kernel. It moves twice as many numbers as a copy and is done in 6 µs, while a copy takes 148. The road between the two computers is narrow: it carries 54 GB a second. The kernel's numbers stay on the device, where they move at about 2,500.
#
# The top lane is Python, with six calls: one for each piece, and two for room in memory. (The riddle's programs fill nothing, and make room once, so four for each trip.) After 46 µs it has asked for everything, even for a copy that begins at 178. Then it pauses, until the thin line at 349: the device was done after 325 µs, but the event loop takes 24 more to notice and to wake the code that paused. (It needs Python for that. While a job keeps Python busy, it can't.) The stopwatch runs until then.
#
# **First clue:** go back to the first picture. The two programs are about 230 µs apart. If the slow one's four slivers ran at the same time, that would save at most 11 µs. Its gaps add up to 50. Neither is enough: cross off `kernels` and `gaps`.

# %% id=where-check tags=asserts
if device.simulated:
    assert len([span for span in first if span.kind == "call"]) == 6
    (kernel,), copies = first.find("twice"), first.find("h2d") + first.find("d2h")
    assert [round(span.duration) for span in (kernel, copies[0])] == [6, 148]
    road, near = x.nbytes / copies[0].duration / 1e3, 2 * x.nbytes / kernel.duration / 1e3
    assert (round(road), round(near, -2)) == (54, 2500)
    (asked,) = [span for span in first if span.kind == "call" and "d2h" in span.name]
    assert [round(us) for us in (asked.end, first.find("d2h")[0].start)] == [46, 178]
    done, goes_on = copies[-1].end, first.find("goes on")[0].start
    assert (round(done), round(goes_on - done)) == (325, 24)

# %% [markdown] id=meanwhile
# ## Python has things to do
#
# Suppose that Python has a job of its own: `agt.work(300)` keeps it busy for 300 µs. First we run the operation with `sync()`, which means *run it, and come back when it's done*. (`agt.record()` keeps the trace of its block.)

# %% id=blocking-run
with agt.record() as blocking:
    doubled(x).sync()
    agt.work(300, "Python's own job")

stopwatch(blocking).plot(
    title="Run it, then do a job",
    lanes=("host", "streams"),
    lesson="Python makes its calls, waits for the device, and only then does its job.",
)

# %% id=blocking-check tags=asserts
assert blocking.metrics().host["wait"] > 0
if device.simulated:  # a GPU's clock agrees with Python's to a few µs only
    assert blocking.overlap_between("Python's own job", blocking.device_spans) == 0

# %% [markdown] id=meanwhile-read
# The dotted bar is a wait, which isn't a pause. In a pause, Python is free for others. In a wait it's *blocked*: nothing else gets a turn, so the job has to come last. Let's do it *while* we wait. It takes four lines:
#
# ```python
# task = agt.spawn(doubled(x))    # make a task of it
# await asyncio.sleep(0)          # a pause of no length
# agt.work(300)                   # the job
# await task                      # pause until the result is there
# ```
#
# `spawn` puts the operation on the event loop's list, as a **task**. A task gets its turn whenever the running code pauses. It hands its work to the device, and pauses too.

# %% id=00-meanwhile guess within=0.05
# The stopwatch above counted `sync` and then the job. What does it say with these four lines, in µs?

# %% id=00-meanwhile reveal
async def beside(us, *pictures):
    tasks = [agt.spawn(doubled(picture)) for picture in pictures]
    await asyncio.sleep(0)
    agt.work(us, "Python's own job")
    return [await task for task in tasks]


overlapped, _ = await recorded(beside(300, x))
picture = agt.compare_timelines(
    [stopwatch(blocking), stopwatch(overlapped)],
    ["sync, then the job", "start, the job, then await"],
    lanes=("host", "streams"),
)
before, after = (trace.metrics().makespan for trace in (blocking, overlapped))
reveal("00-meanwhile", f"{after:.0f}", picture, before=before)

# %% id=00-meanwhile lesson
# Above, Python waits and then does its job. Below, it does the job while the device works.

# %% id=00-meanwhile told truth=374
# It was {before:.0f} µs before. The device does exactly what it did then, and now the job runs beside it. What's gone is the wait. What's left is the calls, 4 µs in which the event loop gets back to our code, the job, and waking up. In the model that's 46 + 4 + 300 + 24 µs.

# %% [markdown] id=forgotten
# ### The line that looks useless
#
# **Second clue:** in the first picture, Python waits only once, after its last call. By then the device has all its work, so waiting costs nothing. Cross off `python`.
#
# One of the four lines looks useless: `sleep(0)`. Sooner or later everybody forgets it, so let's do it now, while it costs nothing.

# %% id=run-forgotten
async def forgotten():
    task = agt.spawn(doubled(x))
    agt.work(300, "Python's own job")
    return await task


# %% id=00-forgotten guess within=0.02
# What does the stopwatch say without that line, in µs?

# %% id=00-forgotten reveal
too_late, _ = await recorded(forgotten())
picture = stopwatch(too_late).plot(title="Without the sleep(0)", lanes=("host", "streams"))
alone = first.metrics().makespan
reveal("00-forgotten", f"{too_late.metrics().makespan:.0f}", picture, alone=alone, sync=before)

# %% id=00-forgotten lesson
# The device gets its work only after the job, so nothing overlaps with it.

# %% id=00-forgotten told truth=649
# `spawn` only put the task on the list. Nobody paused until `await task`, so the task got its first turn after the job. That's 300 µs, and then all of the {alone:.0f} that the operation takes by itself: even more than the {sync:.0f} with `sync`. It's a nasty slip, because the results are right and the code looks busy.

# %% id=timeline-claims tags=asserts
job = "Python's own job"
both_with_sync = blocking.overlap_between(job, blocking.device_spans)
both_with_spawn = overlapped.overlap_between(job, overlapped.device_spans)
(before_job,), (after_job,) = blocking.find(job), overlapped.find(job)
assert min(span.end for span in blocking if span.kind == "wait") <= before_job.start
assert not [span for span in overlapped if span.kind == "wait"]
assert all(span.end <= after_job.start for span in overlapped if span.kind == "call")
assert len(overlapped.streams) == 1
assert [s.name for s in blocking.device_spans] == [s.name for s in overlapped.device_spans]
if device.simulated:
    assert both_with_spawn > both_with_sync
    assert round(too_late.metrics().makespan) == 649
    assert too_late.metrics().makespan > blocking.metrics().makespan
    assert too_late.overlap_between(job, too_late.device_spans) == 0
    if round(after_job.duration) == 300:  # the reader may have played with it
        assert overlapped.metrics().makespan < blocking.metrics().makespan

# %% [markdown] id=exercises
# ## Your turn: make the slow one quick
#
# Four pictures are too dark, and `ops` has an operation for each. The program below awaits one after the other: in, compute, out, and only then the next. So at any moment, three of its four streams are empty. Rewrite it so that all four are under way at the same time, without blocking Python, and return the four results in order. (There's a pool of four streams, and each operation that begins gets the next one.)
#
# Change the cell, and run it and the `check` below. Stuck? `hint("00-develop")` in a cell of your own helps a little more each time. Once you've tried, `solution("00-develop")` shows you one way.


# %% id=00-develop starter
async def develop(ops):
    return [await op for op in ops]


# %% id=00-develop solution
async def develop(ops):
    tasks = [agt.spawn(op) for op in ops]
    return [await task for task in tasks]


# %% id=00-develop hints
# As it stands, the second operation doesn't start before the first is done. How could all four start before anybody waits for the first?
#
# `agt.spawn(op)` makes a task and returns right away. You await a task just like an operation.
#
# Spawn all four: `tasks = [agt.spawn(op) for op in ops]`. Then `return [await task for task in tasks]`.

# %% id=00-develop explanation
# One way is to spawn all and then await all. (asyncio's own `create_task` takes coroutines only.) The first `await` is the pause in which the four tasks start, so you need no `sleep(0)`.

# %% id=00-develop-check
check("00-develop", develop)

# %% id=album tags=helpers
async def one_by_one(ops):
    return [await op for op in ops]


album = [x, *map(too_dark, (0.37 + 0.1j, -0.702 - 0.384j, 0.285 + 0.01j))]
await one_by_one(map(doubled, album))  # a warm-up
in_a_row, _ = await recorded(one_by_one(map(doubled, album)))
row = in_a_row.metrics().makespan
print(f"Our four pictures, one after the other: {row:.0f} µs")

# %% id=00-four guess within=0.1
# And all at once, with the program of the exercise?

# %% id=00-four reveal
from asyncgpu_course import solved

go = solved("00-develop", develop)  # yours, or the course's until it's accepted
await go([doubled(x) for x in album])  # a warm-up
at_once, bright = await recorded(go([doubled(x) for x in album]))
whose = "Your program" if go is develop else "Our program (until yours is accepted)"
picture = agt.compare_timelines(
    [stopwatch(in_a_row), stopwatch(at_once)],
    ["Four pictures, one after the other", whose],
    lanes=("host", "streams"),
)
at_once_us = at_once.metrics().makespan
reveal("00-four", f"{at_once_us:.0f}", picture, quarter=row / 4)

# %% id=00-four lesson
# Which copies run at the same time, and which take turns?

# %% id=00-four told truth=793
# A quarter of the time would be {quarter:.0f} µs. Something takes turns even with four queues.
#
# **Third clue:** in this picture, which copies take turns, and which don't? It's your last chance to change your bet.

# %% id=bright-album
hang_up(**dict(zip(("first", "second", "third", "fourth"), bright, strict=True)))

# %% [markdown] id=answer
# ## The quick one
#
# If your bet looks bad by now, enjoy it. Here comes the quick program, at last.

# %% id=00-riddle reveal
def with_both_ways(trace):
    """The same trace with one more lane: when copies go both ways."""
    pairs = [(there, back) for there in trace.find("h2d") for back in trace.find("d2h")]
    meet = [(max(a.start, b.start), min(a.end, b.end)) for a, b in pairs]
    joined = []
    for start, end in sorted(pair for pair in meet if pair[0] < pair[1]):
        follows = joined and start - joined[-1][1] < 5  # a copy ends, and the next begins
        joined.append((joined.pop()[0] if follows else start, end))
    spans = [(start, end, f"{end - start:.0f} µs") for start, end in joined]
    return trace.with_lane("both ways", spans)


quick = agt.Trace.load_recording("02_streams_and_events").from_first()
in_turn, beside_us = (trace.overlap_between("h2d", "d2h") for trace in (slow, quick))
larger = f"{whose}: {row:.0f} µs became {at_once_us:.0f}"
picture = agt.compare_timelines(
    [slow, with_both_ways(quick), with_both_ways(at_once.from_first())],
    ["The slow program: 729 µs", "The quick program: 501 µs", larger],
    lanes=("host", "streams"),
)
reveal("00-riddle", "ways" if beside_us > in_turn else "inward", picture, ways=beside_us)

# %% id=00-riddle lesson
# With one queue, copies there and back take turns. With several, they run side by side. (The program at the bottom copies twice as much.)

# %% id=00-riddle told truth=ways
# In the quick program, numbers travel both ways for {ways:.0f} µs, and in the slow one never: that's where the time went. One queue means one thing at a time: in, compute, out. With four queues, one result comes back while the next numbers are already on their way in. Each direction has a road of its own. Copies in one direction take turns on it, so cross off `inward`, but the slow program always left a road empty. (The two programs differ by 228 µs. It isn't the same number, because copies that meet slow each other down, which costs a little, and because there are fewer gaps, which saves a little.)
#
# The program at the bottom has the same trick: once `develop` is yours, you've written such a program.

# %% id=answer-check tags=asserts
if device.simulated:
    by_us, _ = await recorded(solved("00-develop")([doubled(x) for x in album]))
    assert [round(us) for us in (row, by_us.metrics().makespan)] == [1397, 793]
    assert in_a_row.overlap_between("h2d", "d2h") == 0
    assert by_us.overlap_between("h2d", "d2h") > 400
    (drawn,) = [s for s in with_both_ways(by_us) if s.detail.get("lane") == "both ways"]
    assert abs(drawn.duration - by_us.overlap_between("h2d", "d2h")) < 2
    for copies in (by_us.find("h2d"), by_us.find("d2h")):
        assert all(a.end <= b.start for a, b in pairwise(copies))
long, short = (trace.metrics().makespan for trace in (slow, quick))
slivers = [relu.duration for relu in slow.find("relu")]
assert sum(slivers) - max(slivers) < 11
assert round(quick.metrics().makespan) == 501
assert sorted(s.name for s in slow.device_spans) == sorted(s.name for s in quick.device_spans)
calls = [sum(span.kind == "call" for span in trace) for trace in (slow, quick)]
assert calls[0] == calls[1] == 16
assert (len(slow.streams), len(quick.streams)) == (1, 4)
assert (round(beside_us), in_turn) == (232, 0)
first_relu, *relus = quick.find("relu")
rest = [span for span in quick.device_spans if span.name != "relu"]
assert quick.overlap_between([first_relu], relus) == 0
assert quick.overlap_between("relu", rest) == 0  # each kernel stands in a hole
for copies in (quick.find("h2d"), quick.find("d2h")):
    assert all(a.end <= b.start for a, b in pairwise(copies))
assert [span for span in quick if span.kind == "wait"]
assert round(slow.metrics().device_idle) == 50
assert round(long - short) in (228, 229)
worked = [sum(span.duration for span in trace.device_spans) for trace in (slow, quick)]
assert worked[1] - worked[0] > 30  # copies that meet slow each other down
assert long - worked[0] > short - worked[1] + beside_us + 30  # and there are fewer gaps

# %% [markdown] id=drag
# ## Drag it
#
# Here are our four pictures once more, beside a job of Python's. Drag a slider, and the program runs anew: `job` is the job's µs, and `streams` the number of queues. (No slider? Change the first numbers in the cell.)
#
# How many streams do you really need? And how long may the job be before it costs you anything, with one stream, and with four?

# %% id=four-pictures tags=helpers
from asyncgpu_course import drag


async def four_pictures(job, streams):
    """The trace of four pictures on so many streams, beside a job."""
    with agt.using(policy=agt.StreamPoolRoundRobin(streams)):
        trace, _ = await recorded(beside(job, *album))
    return stopwatch(trace)

# %% id=dragged
await drag(four_pictures, job=range(0, 1201, 20), streams=range(1, 5))

# %% [markdown] id=drag-found
# <details><summary>What did you find?</summary>
#
# Two streams do nearly as well as four: 814 µs and 793, and 1,302 with one. A job is free up to some 1,000 µs with one, and to 490 with four: it hides behind the device's work, which is sooner done. (Not to its end: three tasks that are done by then have to be woken, 24 µs each.)
#
# </details>

# %% id=drag-check tags=asserts
if device.simulated:
    took = {}
    for job_us, streams in [(0, 1), (1000, 1), (1020, 1), (0, 2), (0, 4), (490, 4), (500, 4)]:
        run = await four_pictures(job_us, streams)
        took[job_us, streams] = round(run.metrics().makespan)
    assert took[0, 1] == took[1000, 1] < took[1020, 1]
    assert took[0, 4] == took[490, 4] < took[500, 4]
    assert [took[0, streams] for streams in (1, 2, 4)] == [1302, 814, 793]

# %% [markdown] id=challenge
# ## Challenge: three trips and a job
#
# Nearly every page has a challenge, and `progress` keeps your best time.
#
# `job()` keeps Python busy for 200 µs, and `trips` are three operations. The first takes 2,000,000 numbers to the device and brings 400,000 back. The second takes 1,200,000 there and brings as many back. The third takes 400,000 there and brings 2,000,000 back. Do everything, and return the three results in order. Don't `sync`: `await` instead. From the first bar to the last, this takes 881 µs: get below 510. Then go on: ours takes 340.


# %% id=00-challenge starter
async def everything(trips, job):
    results = [await trip for trip in trips]
    job()
    return results


# %% id=00-challenge solution
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in reversed(trips)]
    await asyncio.sleep(0)
    job()
    return [await task for task in reversed(tasks)]


# %% id=00-challenge hints
# All three can be under way before anybody waits, as in the exercise above.
#
# When does a task start? Not at `spawn`, but at the next pause. If `job()` comes before that, the device sits there with nothing to do.
#
# Spawn all three, then `await asyncio.sleep(0)`, then `job()`, and only then await the tasks. That's 497 µs.
#
# Look at the beginning and at the end of the 497 µs. On which road does nothing move there? Which trip would you send off first, and which last? The results can still come back in order.

# %% id=00-challenge explanation
# Start everything, do your own work, and wait as late as you can. In the order given, that's 497 µs, as one of the two roads is empty for a long time, at the beginning and at the end. With the right trip first it's 340. That's the floor: Python's own calls and job take as long.

# %% id=00-challenge-check
check("00-challenge", everything)


# %% id=challenge-picture tags=helpers
def trip(there, back):
    numbers = agt.h2d(agt.pin(np.ones(there, np.float32)))
    return numbers.and_then(lambda _: agt.full(back, 1.0)).to_host()  # a kernel writes ones


with agt.using("sim"), agt.record() as mine:
    sizes = (2_000_000, 1_200_000, 400_000)
    trips = [trip(there, back) for there, back in zip(sizes, reversed(sizes), strict=True)]
    await everything(trips, lambda: agt.work(200, "job"))

mine.plot(
    title="Your program",
    lanes=("host", "streams"),
    lesson="Where does Python do nothing? And when is one of the two roads empty?",
)

# %% id=score
score("00")

# %% id=progress
progress("00")

# %% [markdown] id=key-points
# ## Key points
#
# - The **host** runs Python, and the **device** is a second computer. Getting there and back often takes longer than the work itself.
# - A **kernel** is written for one element, and runs in one **thread** for each.
# - An **operation** is only a recipe. `sync` and `await` run it, and `spawn` puts it on the event loop's list.
# - `sync` blocks all of Python. `await` pauses only the code that says it. A **task** starts when the code that spawned it pauses, and then a job that fits into the wait costs no time.
# - Copies in opposite directions can run at the same time, in different **streams**. Copies in one direction take turns, so two streams are nearly as quick as four.
# - A **timeline** shows what happened when. Look for a wait that a job could fill, and for a road that's empty.
# - The simulated device tells you *what* overlaps. *How much* you gain, you measure.
#
# **Next:** a thousand threads run the same line of code. So how does each of them know which element is its own? [01_sync_kernels](01_sync_kernels.ipynb) begins with twelve.

# %% [markdown] id=real
# ## Encore: can you trust the model?
#
# The two programs of the riddle ran on a real H200. The simulated device only follows a model of one. So we ran your first program on an H200, too, with about a million numbers. Here it is with `sync`. (All times end with the job, because the recordings do.)

# %% id=between-calls tags=helpers
def with_gaps(trace):
    """The same trace with one more lane: where Python gets from one call to the next."""
    calls = [span for span in trace.from_first().spans if span.kind == "call"]
    gaps = [(a.end, b.start, "") for a, b in pairwise(calls) if a.end < b.start]
    return trace.from_first().with_lane("between calls", gaps)


# %% id=on-a-gpu
recordings = ("00_start_here_sync", "00_start_here")
h200 = [agt.Trace.load_recording(name) for name in recordings]

with agt.using("sim"):
    million = agt.pin(np.ones(1 << 20, np.float32))
    with agt.record() as model:
        doubled(million).sync()
        agt.work(300, "Python's own job")

agt.compare_timelines(
    [with_gaps(h200[0]), with_gaps(model)],
    ["An H200: sync, then the job", "The model: sync, then the job"],
    lanes=("host", "streams"),
    lesson="The device's bars are about as long in both. "
    "But between the real Python's calls, time passes.",
)

# %% id=00-gain guess within=0.05
# With a task instead of `sync`, the model goes from 486 to 350 µs. The H200 took 558 µs with `sync`. How many did it take with a task?

# %% id=00-gain reveal
picture = agt.compare_timelines(
    [trace.from_first() for trace in h200],
    ["An H200: sync, then the job", "An H200: start, the job, then await"],
    lanes=("host", "streams"),
)
measured, real = (trace.metrics().makespan for trace in h200)
waiting = h200[0].metrics().host["wait"]
reveal("00-gain", f"{real:.0f}", picture, waiting=waiting, gone=measured - real)

# %% id=00-gain lesson
# The wait is gone, and the job has moved to the left by nearly as much.

# %% id=00-gain told truth=498
# In the model, `sync` waits for 136 µs, and on the H200 for only {waiting:.0f}. A task can save hardly more than that, and it saved {gone:.0f}. (Then Python has to wake up, which isn't in the recording, and takes some of it back.)
#
# The device isn't to blame: a copy takes 78 µs on the H200, and 79 in the model. The six calls take 58 µs instead of 46. But *between* them lie 104 µs, in which Python gets from one to the next, and in the model next to nothing. Before the `d2h`, even the device waits for Python.
#
# And in the model, copies that meet don't slow each other down. On an H200 they do. So let the model tell you *what* overlaps, and measure *how much* you gain.

# %% id=real-check tags=asserts
assert [round(us) for us in (measured, real, waiting, measured - real)] == [558, 498, 66, 60]
assert [round(trace.overlap_between(job, trace.device_spans)) for trace in h200] == [0, 54]
with agt.using("sim"), agt.record() as model_task:
    task = agt.spawn(doubled(million))
    await asyncio.sleep(0)
    agt.work(300, job)
    await task
assert [round(t.metrics().makespan) for t in (model, model_task)] == [486, 350]
assert round(model.metrics().host["wait"]) == 136
assert [round(t.find("h2d")[0].duration) for t in (model, h200[0])] == [79, 78]
assert round(sum(span.duration for span in h200[1].device_spans)) == 161  # of which 54 are a third
calls = [[span for span in t if span.kind == "call"] for t in (h200[0], model)]
called = [round(sum(span.duration for span in of)) for of in calls]
between = [round(sum(b.start - a.end for a, b in pairwise(of))) for of in calls]
assert ([len(of) for of in calls], called, between) == ([6, 6], [58, 46], [104, 0])
assert h200[1].find("d2h")[0].start - h200[1].find("twice")[0].end > 40
with agt.using("sim"), agt.record() as meeting:
    pinned = agt.pin(x)
    await asyncio.gather(agt.spawn(doubled(pinned)), agt.spawn(doubled(pinned)))
assert meeting.overlap_between("h2d", "d2h") > 100
assert {round(s.duration) for s in meeting.find("h2d") + meeting.find("d2h")} <= {147, 148}

# %% [markdown] id=contents
# ## The course
#
# Six books, and you can stop after each:
#
# - *One GPU, driven from Python* (00 to 07): [00 start here](00_start_here.ipynb), [01 kernels](01_sync_kernels.ipynb), [02 streams](02_streams_and_events.ipynb), [02b chunks](02b_copies_and_chunks.ipynb), [02c tiles](02c_tiles.ipynb), [03 laziness](03_lazy_operations.ipynb), [04 combinators](04_combinators.ipynb), [04b sharing](04b_sharing_and_owning.ipynb), [05 scheduling](05_scheduling.ipynb), [06 await](06_await.ipynb), [07 a network](07_async_mlp.ipynb)
# - *Where the time goes* (08 to 10): [08 profiling](08_profiling.ipynb), [08b detective](08b_detective.ipynb), [09 graphs](09_cuda_graphs.ipynb), [10 build it yourself](10_build_it_yourself.ipynb)
# - *The GPU decides* (11 to 14): [11 loops](11_the_gpu_decides.ipynb), [11b no barrier](11b_without_a_barrier.ipynb), [12 futures](12_async_inside_a_kernel.ipynb), [13 hostcalls](13_hostcalls.ipynb), [13b awaiting them](13b_await_the_host.ipynb), [14 gallery](14_gallery.ipynb), [14b more rooms](14b_more_rooms.ipynb)
# - *More than one GPU* (15 to 16): [15 GPUs](15_several_gpus.ipynb), [16 machines](16_several_machines.ipynb)
# - *A language model of your own* (17 to 19): [17 training](17_teach_it_something.ipynb), [18 tokens](18_token_by_token.ipynb), [19 serving](19_many_people.ipynb)
# - *Inside one SM* (20 to 21): [20 the ladder](20_the_ladder.ipynb), [20b upper rungs](20b_the_upper_rungs.ipynb), [21 memory](21_inside_one_sm.ipynb), [21b phases](21b_meet_in_phases.ipynb)
#
# In a hurry? Take 01, 02, 03, 04, 06 and 07. The [glossary](../docs/glossary.md) lists the names used elsewhere.
