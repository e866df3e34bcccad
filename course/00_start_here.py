"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# Two programs did the same work on the same GPU. One took 729 microseconds, and the other took 501. Nobody wrote faster GPU code: both do the very same pieces of work.
#
# **So where did the time go?**
#
# In two minutes you'll bet on why, in five you'll change what a GPU computes, and before the page is over you'll make a quick program of a slow one yourself. The whole course goes like that: you guess, and then a timeline tells you, without any tact, whether you were right.
#
# After this page you can start work on a GPU, read a timeline, and get other work done while you'd otherwise be waiting.
#
# | | |
# |---|---|
# | Time | an hour, or a little more with the challenge |
# | You need | Python and a little NumPy. No GPU, and no CUDA |
#
# Run the cells from top to bottom with <kbd>Shift</kbd>+<kbd>Enter</kbd>. If you get a `NameError` after a break, choose *Run*, then *Run All Above Selected Cell*. You needn't read a cell that looks like a thin bar.

# %% id=setup
import asyncio
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution, solved

device = agt.use("auto")
device

# %% [markdown] id=two-runs
# ## The slow one
#
# Here's the slow program, recorded on an NVIDIA H200. The top lane is Python, and the lane below is a queue of work for the GPU. A bar is a **span**: one piece of work, or one call that Python makes. An `h2d` copies numbers to the GPU, the orange sliver behind it (a **kernel**) computes, and a `d2h` copies the result back.

# %% id=two-runs-picture
slow = agt.Trace.load_recording("02_one_stream").from_first()

slow.plot(
    title="The slow program: 729 µs",
    lanes=("host", "streams"),
    lesson="Twelve pieces of work for the GPU, and Python, which waits for them.",
)

# %% id=two-runs-check tags=asserts
assert round(slow.metrics().makespan) == 729
assert len(slow.device_spans) == 12

# %% [markdown] id=two-runs-read
# The quick program makes just as many calls, 16, for the same twelve pieces of work. (A µs is a millionth of a second.) Its picture comes near the end of the page, after three clues.
#
# Write your bet in place of the three dots, as in `guess("00-riddle", "gaps")`, and run the cell. Wrong guesses are welcome: we remember an answer best when it has just surprised us. (This bet is settled there. All others are settled right below the question, by a cell that's folded to a thin bar. <kbd>Shift</kbd>+<kbd>Enter</kbd> runs it like any other.)

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
# Without an NVIDIA GPU, `agt.use("auto")` gave you the **simulated device**. It computes its results from the very same source code, and works out times with a model of an H200, always labelled *simulated*. The times in the text are its own.

# %% [markdown] id=kernel
# ## A function for one element
#
# A kernel is a function that runs on the device. You write it in CUDA C, for just *one* element of an array. The device runs it for all of them, in thousands of **threads** at the same time.

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
# In NumPy this would be `y = 2 * x`. Notice what isn't there: a loop. The first line of the body asks *which element is mine?*, and the rest deals with that one element.
#
# Here's a picture that's too dark, of two million pixels. **Run your kernel on it. Then change the `2.0f` above to `3.0f`, and run both cells again.** (For a negative, make the line `y[i] = 1.0f - 2.0f * x[i];`.)

# %% id=dark-picture tags=helpers
def too_dark(c):
    """A picture in the dark: 1,250 rows of 1,600 pixels, each from 0 (black) to 0.5. It's a Julia set."""
    rows, columns = np.mgrid[1:-1:625j, -1.28:1.28:800j]
    z = (1.25 * (columns + 1j * rows)).astype(np.complex64)
    rounds = np.zeros(z.shape, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(60):
            z = z * z + np.complex64(c)
            rounds += np.abs(z) < 2
    return np.kron(0.5 * np.sqrt(rounds / rounds.max()), np.ones((2, 2), np.float32))


def hang_up(**pictures):
    """Draw pictures side by side, with the same black and the same white."""
    axes = plt.subplots(1, len(pictures), figsize=(9, 1 + 5.4 / len(pictures)))[1]
    for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
        ax.imshow(picture.reshape(1250, 1600), cmap="inferno", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], title=name.replace("_", " "))
        print(f"{name.replace('_', ' ')}: brightness {picture.mean():.2f}", end=". ")
    plt.tight_layout()
    plt.show()


def on_the_device(kernel, x):
    """What the kernel makes of `x`."""
    return kernel(x.size, agt.h2d(x), agt.zeros(x.size).partition(256)).output().to_host().sync()

# %% id=try-it
x = agt.pin(too_dark(-0.8 + 0.156j).ravel())  # the thin bar above draws it
hang_up(what_went_to_the_device=x, what_came_back=on_the_device(twice, x))

# %% [markdown] id=describe
# ## There and back
#
# The thin bar above ran your kernel. Now we do it ourselves. The device can't see NumPy's memory. So the numbers travel there, and the result travels back:

# %% id=first-operation
def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


with agt.record() as so_far:
    op = doubled(x)

# %% [markdown] id=describe-explained
# `agt.pin` puts `x` where the device can fetch it without Python's help. Now read `doubled` from the inside out. `agt.h2d(x)`, short for *host to device*, copies the picture to the device. `agt.zeros(x.size)` makes room for the result and fills it with zeros. `twice(...)` launches the kernel, with the kernel's arguments in their order, in groups of 256 threads, called **blocks**. (The last block has threads to spare: hence the `if`.) `output()` picks the array that the kernel writes, and `to_host()` copies it back. So the device has four pieces of work: a copy, a fill, a kernel, and another copy.
#
# `agt.record()` keeps a diary of what happens in the `with`, called a **trace**.

# %% id=00-built guess
# The cell above has run. How many of these four pieces has the device begun? Type a number.

# %% id=00-built reveal
reveal("00-built", len(so_far.device_spans))

# %% id=00-built told truth=0
# The device hasn't lifted a finger, and the trace is empty. `doubled(x)` only wrote down *what* is to be done. It's like a recipe: you can write one down, and nobody has dinner yet.

# %% id=describe-check tags=asserts
assert len(so_far) == 0

# %% [markdown] id=where
# ## Where the time goes
#
# A description of work, such as `op`, is called an **operation**. `await op` runs it and **pauses** until the result is there. Only the code that says `await` pauses. Python's **event loop** gets on with other things meanwhile. (Functions with an `await` begin with `async def`. Notebook cells needn't.)
#
# Now we await ours. The kernel reads two million numbers and writes two million. Each copy moves only two million.

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


await doubled(x)  # a warm-up: at first a real GPU loads the kernel and looks for memory

# %% id=00-share guess
# How long do the two copies take together, compared with the kernel?
#
# - `same`: about as long
# - `five`: about 5 times as long
# - `fifty`: about 50 times as long
# - `more`: about 500 times as long

# %% id=00-share reveal
first, y = await recorded(op)
(kernel,) = first.find("twice")
copies = first.find("h2d") + first.find("d2h")
copying = sum(copy.duration for copy in copies)
truth = ["same", "five", "fifty", "more"][sum(copying > k * kernel.duration for k in (2, 16, 160))]
picture = stopwatch(first).plot(title="Your first work for the GPU", lanes=("host", "streams"))
road, near = (
    numbers * 4e-3 / span.duration
    for numbers, span in ((x.size, copies[0]), (2 * x.size, kernel))
)
reveal("00-share", truth, picture, kernel=kernel.duration, copying=copying, road=road, near=near)

# %% id=00-share lesson
# Python makes its calls and pauses. It goes on a little after the device is done.

# %% id=00-share told truth=fifty
# The kernel takes {kernel:.1f} µs. It's the orange sliver between the two long bars, which are the copies. (The yellow one is the fill.) The copies take {copying:.0f} µs together, because the road between the two computers is narrow: it carries {road:.0f} GB a second. The kernel's numbers stay on the device, and move at about {near:,.0f}.

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
# The lane with the long bars is a **stream**, a queue that the device works through piece by piece. The top lane is Python, with six calls: one for each piece, and two for room in memory. After 46 µs it has asked for everything, even for a copy that begins at 178. Then it pauses.
#
# The pause ends a little late. The device was done after 325 µs, but the event loop takes another 24 to notice and to wake up the code that paused. (It needs Python for that. While a job keeps Python busy, it can't.) The stopwatch runs until then.
#
# **First clue:** go back to the first picture. The two programs are about 230 µs apart. If the slow one's four slivers ran at the same time, how much would that save? At most 11 µs. And if it had no gaps? They add up to 50. Neither is enough: cross off `kernels` and `gaps`.

# %% id=where-check tags=asserts
if device.simulated:
    assert len([span for span in first if span.kind == "call"]) == 6
    assert copying > 0.9 * sum(span.duration for span in first.device_spans)
    assert (round(copies[0].duration), round(road), round(near, -2)) == (148, 54, 2500)
    (asked,) = [span for span in first if span.kind == "call" and "d2h" in span.name]
    assert [round(us) for us in (asked.end, first.find("d2h")[0].start)] == [46, 178]
    done, goes_on = copies[-1].end, first.find("goes on")[0].start
    assert (round(done), round(goes_on - done)) == (325, 24)

# %% [markdown] id=meanwhile
# ## Python has things to do
#
# Suppose that Python has a job of its own: `agt.work(300)` keeps it busy for 300 µs. First we run the operation, with `sync()`, which means *run it, and come back when it's done*.

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
# The dotted bar is a wait. Python is **blocked** there: nothing else in Python gets a turn, and so the job has to come last. Let's do it *while* we wait. It takes four lines:
#
# ```python
# task = agt.spawn(doubled(x))    # make a task of it
# await asyncio.sleep(0)          # let the task start
# agt.work(300)                   # the job
# await task                      # pause until the result is there
# ```
#
# `spawn` puts the operation on the event loop's list, as a **task**. A task gets its turn when the running code pauses, as it does in the second line. The task hands its work to the device, and pauses too. So we get on with our job.

# %% id=00-meanwhile guess within=0.05
# The stopwatch above says what `sync` takes. What does it say with these four lines, in µs? (The last two pictures have all you need.)

# %% id=00-meanwhile reveal
async def beside(us):
    task = agt.spawn(doubled(x))
    await asyncio.sleep(0)
    agt.work(us, "Python's own job")
    return await task


overlapped, _ = await recorded(beside(300))
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
# It was {before:.0f} µs before. The device does exactly what it did then, and now the job runs beside it. What's gone is the wait. What's left is the calls, a few µs to get back to our code, the job, and waking up. In the model that's 46 + 4 + 300 + 24 µs.

# %% [markdown] id=shorter
# ### A shorter job
#
# **Second clue:** with a task, is the device done any sooner? It isn't. If we gain, then only because Python's job fits into the wait, and in the riddle Python has no job. Cross off `python`.
#
# Let's try jobs of 0 to 400 µs, with `sync` and with the four lines above.

# %% id=00-pays guess
# How long must Python's job be for the task to beat `sync`?
#
# - `any`: any job will do
# - `call`: about as long as one or two of Python's calls
# - `half`: about half as long as the device's work
# - `device`: as long as the device's work

# %% id=draw-gains tags=helpers
def draw_gains(lengths, gains):
    """What a task gains over `sync`, for jobs of these lengths."""
    plt.figure(figsize=(6, 3.5))
    plt.axhline(0, color="0.5")
    plt.plot(lengths, gains, "o-")
    plt.fill_between(lengths, gains, 0, where=np.less(gains, 0), interpolate=True, color="tab:red")
    pays_from = np.interp(0, gains, lengths)
    plt.plot(pays_from, 0, "kx")
    plt.text(pays_from + 15, -12, f"from {pays_from:.0f} µs on, the task gains")
    plt.text(lengths[-1], max(gains) - 25, f"at most {max(gains):.0f} µs", ha="right")
    plt.title("Below the grey line, sync is quicker")
    plt.xlabel("the job takes (µs)")
    plt.ylabel("the task gains (µs)")
    plt.show()
    for us in (0, 25, 100, 300, 400):
        print(f"Job of {us} µs: the task gains {gains[lengths.index(us)]:.0f} µs.")

# %% id=00-pays reveal
lengths, gains = range(0, 401, 25), []
for us in [0, *lengths]:
    with agt.record() as one:
        doubled(x).sync()
        agt.work(us)
    other, _ = await recorded(beside(us))
    gains.append(one.metrics().makespan - other.metrics().makespan)
gains = gains[1:]  # the first was a warm-up
even = max(0.0, -gains[0])
truth = ["any", "call", "half", "device"][sum(even > us for us in (2, 60, 250))]
reveal("00-pays", truth, lambda: draw_gains(lengths, gains), even=even)

# %% id=00-pays told truth=call
# The task gains from {even:.0f} µs on, because async isn't free. When both the device and the job are done, waking up from the `await` takes 24 µs in the model. Coming back from `sync` takes 3, which the dotted bar contains. The job has to earn the difference. But **a job can hide in the wait, and nowhere else.** So the most that you can gain is the wait less the waking up: 277 - 24 = 253 µs.

# %% id=pays-check tags=asserts
if device.simulated:
    wait = blocking.metrics().host["wait"]
    assert int(wait) == 277
    assert round(max(gains)) == round(gains[-1]) == 253
    assert abs(max(gains) - (wait - (goes_on - done))) < 0.1
    assert round(gains[0]) == -21  # `sync` is back sooner

# %% [markdown] id=forgotten
# ### Without the sleep(0)
#
# And what's the line with `sleep(0)` for? Back to the job of 300 µs, without it:

# %% id=run-forgotten
async def forgotten():
    task = agt.spawn(doubled(x))
    agt.work(300, "Python's own job")
    return await task


too_late, _ = await recorded(forgotten())
stopwatch(too_late).plot(
    title="Without the sleep(0)",
    lanes=("host", "streams"),
    lesson="The device gets its work only after the job, so nothing overlaps with it.",
)

# %% [markdown] id=forgotten-read
# `spawn` only put the task on the list. Nobody paused until `await task`, so the task got its first turn after the job: 649 µs, more than with `sync`. It's a nasty slip, because the results are right and the code looks busy.

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
    assert abs(too_late.metrics().makespan - blocking.metrics().makespan - even) < 1
    assert too_late.overlap_between(job, too_late.device_spans) == 0
    if round(after_job.duration) == 300:  # the reader may have played with it
        assert overlapped.metrics().makespan < blocking.metrics().makespan

# %% [markdown] id=exercises
# ## Your turn
#
# Change an exercise's first cell, and run it and the `check` below. Stuck? `hint("00-quicker")` in a cell of your own helps a little more each time. Once you've tried, `solution("00-quicker")` shows you one way.
#
# ### Exercise: which is quicker?
#
# Your function gets an operation `op` and a `job`. It does both and returns the operation's result. It's also told two times in µs: with `sync`, Python would `wait` that long (a dotted bar), and the job takes `us`. Be done as soon as you can, whatever the two numbers are.


# %% id=00-quicker starter
async def quicker(op, wait, job, us):
    result = op.sync()
    job()
    return result


# %% id=00-quicker solution
async def quicker(op, wait, job, us):
    if us < 21 or wait < 24:
        result = op.sync()
        job()
        return result
    task = agt.spawn(op)
    await asyncio.sleep(0)
    job()
    return await task


# %% id=00-quicker hints
# A task loses by waking up, and it gains by what it can hide. When is that too little? One of the pictures above has the number.
#
# The job has to be worth 21 µs. And what can a job hide in a wait of 3 µs? Remember that the most you can gain is the wait less the waking up, which takes 24. If either is too short, `sync` is better, as it stands there.
#
# `if us < 21 or wait < 24:` goes above the lines that stand there. Below them come the four lines from above: `spawn`, `sleep(0)`, the job, and then `return await task`.

# %% id=00-quicker explanation
# You've just written a *policy*: code that looks at what work costs, and then decides how to run it. On another machine, waking up has another price, so look before you copy the 21 and the 24. And `sync` has a price that no stopwatch shows: while it blocks, nobody else in Python gets a turn. (Chapter 03 has a third way to run an operation. It wakes nobody up, so it can do without the decision.)

# %% id=00-quicker-check
check("00-quicker", quicker)

# %% [markdown] id=exercise-develop
# ### Exercise: make the slow one quick
#
# Four pictures are too dark, and `ops` has an operation for each. The program below zips them into a single operation. One operation goes into one queue, so this has the shape of the riddle's slow program. Rewrite it so that all four are under way at the same time, without blocking Python, and return the four results in order. (There's a pool of four streams, and each operation that begins gets the next one.)


# %% id=00-develop starter
async def develop(ops):
    return await agt.zip(*ops)


# %% id=00-develop solution
async def develop(ops):
    tasks = [agt.spawn(op) for op in ops]
    return [await task for task in tasks]


# %% id=00-develop hints
# One operation goes into one queue. How many have you got before `zip` makes one of them?
#
# `agt.spawn(op)` makes a task and returns right away. You await a task just like an operation. And if you wrote `await op` for one after the other? Then the second wouldn't start before the first is done.
#
# Spawn all four: `tasks = [agt.spawn(op) for op in ops]`. Then `return [await task for task in tasks]`.

# %% id=00-develop explanation
# One way is to spawn all and then await all. (asyncio's own `create_task` takes coroutines only.) The first `await` is the pause in which the four tasks start, so you need no `sleep(0)`.

# %% id=00-develop-check
check("00-develop", develop)

# %% id=album
darks = [too_dark(c).ravel() for c in (0.37 + 0.1j, -0.702 - 0.384j, 0.285 + 0.01j)]
album = [x, *map(agt.pin, darks)]

await agt.zip(*map(doubled, album))  # a warm-up
in_a_row, _ = await recorded(agt.zip(*map(doubled, album)))
row = in_a_row.metrics().makespan
print(f"Four of our pictures in one queue: {row:.0f} µs")

# %% id=00-four guess within=0.1
# And all at once, with the program of the exercise?

# %% id=00-four reveal
go = solved("00-develop", develop)  # yours, or the course's until it's accepted
await go([doubled(x) for x in album])  # a warm-up
at_once, bright = await recorded(go([doubled(x) for x in album]))
whose = "Your program" if go is develop else "Our program (until yours is accepted)"
picture = agt.compare_timelines(
    [stopwatch(in_a_row), stopwatch(at_once)],
    ["Four pictures in one queue", whose],
    lanes=("host", "streams"),
)
at_once_us = at_once.metrics().makespan
reveal("00-four", f"{at_once_us:.0f}", picture, quarter=row / 4)

# %% id=00-four lesson
# Which copies run at the same time, and which take turns?

# %% id=00-four told truth=793
# A quarter of the time would be {quarter:.0f} µs. Something takes turns even with four queues, and the picture shows what.

# %% id=bright-album
hang_up(**dict(zip(("first", "second", "third", "fourth"), bright, strict=True)))

# %% [markdown] id=answer
# ## The quick one
#
# **Third clue:** in that picture, which copies take turns, and which don't? If the clues have changed your mind about the riddle, type another answer. Then comes the quick program, at last.

# %% id=riddle-again
guess("00-riddle", ...)

# %% id=00-riddle reveal
def with_both_ways(trace):
    """The same trace with one more lane: when copies go both ways."""
    pairs = [(there, back) for there in trace.find("h2d") for back in trace.find("d2h")]
    meet = [(max(a.start, b.start), min(a.end, b.end)) for a, b in pairs]
    spans = [(start, end, f"{end - start:.0f} µs") for start, end in meet if start < end]
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
# In the quick program, numbers travel both ways for {ways:.0f} µs, and in the slow one never. One queue means one thing at a time: in, compute, out. With four queues, one result comes back while the next numbers are already on their way in. Each direction has a road of its own. Copies in one direction take turns on it, so cross off `inward`, but the slow program always left a road empty. The program at the bottom has the same trick: once `develop` is yours, you've written such a program.

# %% [markdown] id=bill
# ## The bill
#
# Both programs ran on a real GPU. Add up how long the twelve pieces took in each.

# %% id=00-sums guess
# The quick one's sum is ...
#
# - `smaller`: its pieces were quicker, too
# - `same`: to a µs or two, as these are the same pieces on the same GPU
# - `larger`: its pieces were slower

# %% id=00-sums reveal
worked = [sum(span.duration for span in trace.device_spans) for trace in (slow, quick)]
more = worked[1] - worked[0]
truth = "same" if abs(more) < 2 else "larger" if more > 0 else "smaller"
reveal("00-sums", truth, slow=worked[0], quick=worked[1])

# %% id=00-sums told truth=larger
# Slow: {slow:.0f} µs. Quick: {quick:.0f}. A copy takes 77 or 78 µs alone, and up to 87 when it meets another.
#
# So here's the whole bill. Copies go both ways for 232 µs, the GPU does nothing for 59 µs instead of 94, which saves another 35, and the pieces take 39 *more*. 729 - 232 - 35 + 39 = 501. (The simulated device doesn't know about the 39.)

# %% id=answer-check tags=asserts
if device.simulated:
    by_us, _ = await recorded(solved("00-develop")([doubled(x) for x in album]))
    assert [round(us) for us in (row, by_us.metrics().makespan)] == [1302, 793]
    assert by_us.overlap_between("h2d", "d2h") > 400
    for copies in (by_us.find("h2d"), by_us.find("d2h")):
        assert all(a.end <= b.start for a, b in pairwise(copies))
    assert len(in_a_row.streams) == 1
long, short = (trace.metrics().makespan for trace in (slow, quick))
idle = [long - worked[0] + in_turn, short - worked[1] + beside_us]
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
assert round(worked[1] - worked[0]) == 39
assert [round(us) for us in (*idle, idle[1] - idle[0])] == [94, 59, -35]
assert 729 - 232 - 35 + 39 == 501
alone = [s.duration for s in slow.device_spans if s.name != "relu"]
assert {round(us) for us in alone} == {77, 78}
assert round(max(s.duration for s in quick.device_spans)) == 87

# %% [markdown] id=challenge
# ## Challenge: three trips and a job
#
# Each page ends with a challenge, and `progress` keeps your best time.
#
# `trips` are three operations, and `job()` keeps Python busy for 200 µs. The first trip takes 2,000,000 numbers to the device and brings 400,000 back. The second takes 1,200,000 there and brings as many back. The third takes 400,000 there and brings 2,000,000 back. Do everything, and return the three results in order. Python mustn't block, so `await`. From the first bar to the last, this takes 881 µs: get below 510. Then go on: the course's own answer takes 340 µs.


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
# - `sync` blocks all of Python. `await` pauses only the code that says it. A **task** starts when the code that spawned it pauses, and then a job that fits into the wait costs no time. Waking up does: for a tiny job, or a tiny wait, `sync` is quicker.
# - Copies in opposite directions can run at the same time, in different **streams**.
# - A **timeline** shows what happened when. Look for a wait that a job could fill, and for a road that's empty.
# - The simulated device tells you *what* overlaps. *How much* you gain, you measure.

# %% [markdown] id=contents
# ## The course
#
# Four books, and you can stop after each:
#
# - *One GPU, driven from Python* (00 to 07): [00](00_start_here.ipynb) [01](01_sync_kernels.ipynb) [02](02_streams_and_events.ipynb) [02b](02b_copies_and_chunks.ipynb) [02c](02c_tiles.ipynb) [03](03_lazy_operations.ipynb) [04](04_combinators.ipynb) [04b](04b_sharing_and_owning.ipynb) [05](05_scheduling.ipynb) [06](06_await.ipynb) [07](07_async_mlp.ipynb)
# - *Where the time goes* (08 to 10): [08](08_profiling.ipynb) [09](09_cuda_graphs.ipynb) [10](10_build_it_yourself.ipynb)
# - *The GPU decides* (11 to 14): [11](11_the_gpu_decides.ipynb) [11b](11b_without_a_barrier.ipynb) [12](12_async_inside_a_kernel.ipynb) [13](13_hostcalls.ipynb) [13b](13b_await_the_host.ipynb) [14](14_gallery.ipynb) [14b](14b_more_rooms.ipynb)
# - *More than one GPU* (15 to 16): [15](15_several_gpus.ipynb) [16](16_several_machines.ipynb)
#
# In a hurry? Take 01, 02, 03, 04, 06 and 07. The [glossary](../docs/glossary.md) lists the names used elsewhere.
#
# **Next:** a thousand threads run the very same line of code. So how does each of them know which element is its own? [01_sync_kernels](01_sync_kernels.ipynb) begins with twelve.

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
h200 = [agt.Trace.load_recording(name) for name in ("00_start_here_sync", "00_start_here")]

with agt.using("sim"):
    million = agt.pin(np.ones(1 << 20, np.float32))
    with agt.record() as model:
        doubled(million).sync()
        agt.work(300, "Python's own job")

agt.compare_timelines(
    [with_gaps(h200[0]), with_gaps(model)],
    ["An H200: sync, then the job", "The model: sync, then the job"],
    lanes=("host", "streams"),
    lesson="The device's bars are about as long in both. But between the real Python's calls, time passes.",
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
# In the model, `sync` waits for 136 µs, and on the H200 for only {waiting:.0f}, of which {gone:.0f} are gone. (The recording ends before the waking up, which still costs some of them.)
#
# The device isn't to blame: a copy takes 78 µs on the H200, and 79 in the model. The six calls take 58 µs instead of 46. But *between* them lie 104 µs, in which Python gets from one to the next, and in the model next to nothing. Before the `d2h`, even the device waits for Python.
#
# Nor do copies that meet slow each other down in the model, as you can see in your own program. So let the model tell you *what* overlaps, and measure *how much* you gain.

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
