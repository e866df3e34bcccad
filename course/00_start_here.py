"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# Two programs did the same work on the same GPU. One took 729 microseconds, the other 501. The steps of the work were no faster: all together, they even took a
# little longer.
#
# **So where did the time go?**
#
# This course teaches you to see lost time like that, and to win it back. You will write real GPU code, say beforehand what will happen when, and let a
# timeline tell you whether you were right. At the end, four batches of a neural network share one GPU while Python
# does something else. **You don't need a GPU for any of it**: where there is none, a simulated one takes its place.
#
# After this page you can start work on a GPU from Python, read a timeline, and put your own job into time that Python used to waste.
#
# | | |
# |---|---|
# | Time | 30 minutes |
# | You need | Python and a little NumPy. No GPU, and no CUDA |
#
# Run each cell with <kbd>Shift</kbd>+<kbd>Enter</kbd>, from top to bottom. Cells that look like a thin bar are the page's own checks: leave them closed.

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=two-runs
# ## Two runs
#
# Here are the two programs. Both were recorded on a real GPU, an NVIDIA H200, and both are drawn on the same scale. Time runs from left to right.

# %% id=two-runs-picture
slow = agt.Trace.load_recording("02_one_stream")
quick = agt.Trace.load_recording("02_streams_and_events")

agt.compare_timelines(
    [slow, quick],
    ["729 µs", "501 µs"],
    lanes=("host", "streams"),
    lesson="The same twelve pieces of work for the GPU, twice: on one stream, and on four.",
)

# %% id=two-runs-check tags=asserts
assert round(slow.metrics().makespan) == 729
assert round(quick.metrics().makespan) == 501
assert sum(s.duration for s in slow.device_spans) < sum(s.duration for s in quick.device_spans)
assert [s.name for s in slow.device_spans].count("relu") == 4
assert [s.name for s in quick.device_spans].count("relu") == 4
assert (len(slow.streams), len(quick.streams)) == (1, 4)

# %% [markdown] id=two-runs-read
# The lane at the top of each picture is Python. Every lane below it is a queue of work for the GPU. Each bar is a **span**: one piece of work, or one call. (CUPTI is NVIDIA's profiling interface: it notes when each began and ended.) Can you see what is different? We come back to this
# picture at the end of the page.

# %% [markdown] id=two-computers
# ## Two computers
#
# A GPU is a second computer, with its own memory and its own sense of time. In this course the computer that runs Python is the **host**, and the GPU
# is the **device**.
#
# NumPy computes while you wait. A device *can* compute while Python does something else, if you ask it in the right way.
#
# The first cell said `agt.use("auto")`. That takes your NVIDIA GPU if you have one. Otherwise it takes a **simulated device**, which comes with the
# course and runs the same programs:
#
# | | a GPU (`cuda:0`) | the simulated device (`sim:0`) |
# |---|---|---|
# | results | computed on the GPU | computed on your machine, from the very same source code |
# | times | measured | worked out by a model of an H200, and always labelled *simulated* |
# | the same tomorrow? | nearly | yes, to the last digit |

# %% [markdown] id=doctor
# If something is missing on your machine, `doctor` tells you what, and how to fix it. (In a terminal: `python -m asyncgpu_tutor doctor`.)

# %% id=doctor-report
from asyncgpu_tutor.commands.doctor import ThisMachine, examine

report = examine(ThisMachine())
print(report.as_text())
assert report.can_run

# %% [markdown] id=kernel
# ## A function for one element
#
# A function that runs on the device is called a **kernel**. You write it in CUDA C, and you write it for *one* element of an array. The device then runs it
# once for every element, and thousands of those runs go on at the same time. Each run is called a **thread**.

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
twice

# %% [markdown] id=kernel-explained
# In NumPy this would be `y = 2 * x`. The next page takes the C apart. For now, see that there is no loop: the first line of the body asks *which element
# is mine?*, and the rest deals with that one.

# %% [markdown] id=describe
# ## There and back
#
# The device cannot look into NumPy's memory. So the numbers have to travel to the device, the kernel runs, and the result travels back:

# %% id=first-operation
x = agt.pin(np.arange(2_000_000, dtype=np.float32))


def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


with agt.record() as so_far:
    op = doubled(x)

# %% [markdown] id=describe-explained
# Word by word:
#
# - `agt.pin` copies `x` to a place where the device can fetch it without Python's help.
# - `agt.h2d(x)`, *host to device*, copies `x` to the device.
# - `agt.zeros(x.size)` is room for the result, filled with zeros. `.partition(256)` cuts it into **blocks** of 256 elements; that is how many threads the device
#   handles as one group.
# - `.output()` picks the array that the kernel writes. That is `y`, the only pointer (`*`) without `const`. `.to_host()` copies it into a NumPy array.
# - `agt.record()` writes down everything that happens inside the `with`, and when. What it gives you is called a **trace**.
#
# Four pieces of work, then: a copy, a fill, a kernel, a copy.

# %% id=predict-built
built = Prediction(
    "The cell above has run. How many of these four pieces has the device begun?",
    four="all four",
    three="three: the copy back comes when you ask for the result",
    one="one: the copy to the device, since everything else needs it",
    none="none of them",
)
built

# %% [markdown] id=commit
# Write your answer in place of the three dots, as in `commit("three")`, **before** you go on. The score at the end is for your eyes only, and a wrong
# guess makes the answer stick.

# %% id=predict-built-commit
built.commit(...)

# %% id=reveal-built
begun = len(so_far.device_spans)
built.reveal(
    {0: "none", 1: "one", 3: "three", 4: "four"}[begun],
    f"The trace has {begun} pieces of work on the device.",
)

# %% [markdown] id=describe-read
# `doubled(x)` has not done anything yet. It has written down *what* is to be done. Such a description is called an **operation**, and it is like a recipe:
# writing it down cooks nothing. To run it, `await` it.
#
# `await op` runs the operation and **pauses** until the result is there. Only the code that says `await` pauses. Python keeps a list of other things
# to do, and its **event loop** goes on with those meanwhile. A function with `await` in it has to begin with `async def`. A notebook cell may `await` as it is;
# [chapter 06](06_await.ipynb) shows how a script does it.

# %% id=describe-check tags=asserts
assert len(so_far) == 0

# %% id=first-launch
y = await op

print(y[:6], y.dtype, y.shape)

# %% id=first-launch-check tags=asserts
assert np.array_equal(y, 2 * x)
for _ in range(4):  # a real GPU loads kernels and makes streams when it first needs them
    with agt.record() as paused:
        await doubled(x)
assert not [span for span in paused if span.kind == "wait"]  # paused, and not blocked
assert max(s.end for s in paused.device_spans) > max(s.end for s in paused if s.kind == "call")

# %% [markdown] id=where
# ## Where the time goes
#
# The kernel multiplied two million numbers by two. Around it were a fill and two copies.

# %% id=predict-share
share = Prediction(
    "What part of the device's time does the kernel take?",
    most="more than half: the copies only move things, the kernel computes",
    third="about a third: the two copies and the kernel handle the same two million numbers",
    tenth="about a tenth",
    little="less than a twentieth",
)
share

# %% id=predict-share-commit
share.commit(...)

# %% id=blocking-run
with agt.record() as blocking:
    doubled(x).sync()
    agt.work(300, "Python's own job")

blocking.plot(
    title="Run it, then do a job",
    lanes=("host", "streams"),
    lesson="The two copies take nearly all of the device's time. Python waits, then does its job.",
)

# %% id=reveal-share
(kernel,) = blocking.find("twice")
part = kernel.duration / sum(span.duration for span in blocking.device_spans)
share.reveal(
    "little" if part < 0.05 else "tenth" if part < 0.2 else "third" if part < 0.5 else "most",
    f"The kernel takes {kernel.duration:.0f} µs, which is {part:.0%} of the device's working time.",
)

# %% [markdown] id=where-read
# The kernel is that sliver between the two long bars. It reads two million numbers and writes as many. Each copy moves half of that, and takes more than ten times
# as long. Often the way to the device and back takes longer than the work there.
#
# Now read the picture lane by lane. The lower lane is a **stream**: a queue for the device, which works through it one piece after the other. The upper lane is
# the host, Python. `sync()` means *run it, and come back when it is done*. So Python makes a few calls, and then it is **blocked** until the device is
# done: nothing else gets a turn. The dotted bar is this wait. (An `await` leaves a gap there, and no bar.)
#
# After that Python does a job of its own. `agt.work(300)` stands for any such job: it keeps Python busy for 300 microseconds (µs, millionths of a second).

# %% id=where-check tags=asserts
assert blocking.metrics().host["wait"] > 0
if device.simulated:  # a GPU's clock agrees with Python's to a few µs only
    assert blocking.overlap_between("Python's own job", blocking.device_spans) == 0
    copies = blocking.find("h2d") + blocking.find("d2h")
    assert copies[0].duration > 10 * kernel.duration
    assert sum(span.duration for span in copies) > 0.9 * sum(
        s.duration for s in blocking.device_spans
    )

# %% [markdown] id=meanwhile
# ## Python has things to do
#
# What if Python does its job first and waits afterwards? Four lines:
#
# ```python
# task = agt.spawn(doubled(x))    # make a task of it
# await asyncio.sleep(0)          # let the task start
# agt.work(300)                   # the job
# await task                      # pause until the result is there
# ```
#
# `spawn` puts the operation on the event loop's list, as a **task**. Its turn comes when the running code pauses, so the second line says: *pause for a
# moment.* The task hands its work to the device and pauses, too, and Python comes back here at once.

# %% id=predict
meanwhile = Prediction(
    f"With `sync` it took {blocking.metrics().makespan:.0f} µs. How long does it take now?",
    same="about as long: it is the same work",
    middle="about three quarters of that",
    half="not much more than half of that",
)
meanwhile

# %% id=predict-commit
meanwhile.commit(...)

# %% id=run-both
with agt.record() as overlapped:
    task = agt.spawn(doubled(x))
    await asyncio.sleep(0)
    agt.work(300, "Python's own job")
    await task

agt.compare_timelines(
    [blocking, overlapped],
    ["sync, then the job", "start, the job, then await"],
    lanes=("host", "streams"),
    lesson="Above, Python waits and then works. Below, it works while the device works.",
)

# %% id=reveal
before, after = blocking.metrics().makespan, overlapped.metrics().makespan  # from start to end, in µs
ratio = after / before
meanwhile.reveal(
    "half" if ratio < 0.65 else "middle" if ratio < 0.9 else "same",
    f"{before:.0f} µs before, {after:.0f} µs now.",
)

# %% [markdown] id=timeline-read
# The device does exactly what it did before. Look at the host instead. The job used to come *after* the device's work; now it lies *above* it. Nothing got
# faster. Python is no longer blocked: the bar of the wait is gone.
#
# Is that true of a real GPU? We ran both programs on an H200, with a million numbers. They took 558 and 498 µs. The gain is smaller: Python was slower
# with its calls there, so two thirds of the device's work was over when the job began. (How good is the model? To copy a million numbers took that H200 78 µs, and
# the model says 75.)
#
# Every picture can be had as text too, with numbers at the end: `makespan` is the time from start to end, and `host` says what Python spent its time on.

# %% id=timeline-table
print(overlapped.table())

# %% id=timeline-claims tags=asserts
job = "Python's own job"
both_with_sync = blocking.overlap_between(job, blocking.device_spans)
both_with_spawn = overlapped.overlap_between(job, overlapped.device_spans)
if device.simulated:
    assert both_with_spawn > both_with_sync
(before_job,), (after_job,) = blocking.find(job), overlapped.find(job)
assert min(span.end for span in blocking if span.kind == "wait") <= before_job.start
assert not [span for span in overlapped if span.kind == "wait"]
assert all(span.end <= after_job.start for span in overlapped if span.kind == "call")
h200 = [agt.Trace.load_recording(name) for name in ("00_start_here_sync", "00_start_here")]
assert [round(trace.metrics().makespan) for trace in h200] == [558, 498]
assert [round(trace.overlap_between(job, trace.device_spans)) for trace in h200] == [0, 54]
assert round(sum(span.duration for span in h200[1].device_spans)) == 161  # of which 54 are a third
assert round(h200[1].find("h2d")[0].duration) == 78
with agt.using("sim"), agt.record() as model:
    doubled(agt.pin(x[:1_000_000])).sync()
assert round(model.find("h2d")[0].duration) == 75
before_it = [t.find(job)[0].start - t.spans[0].start for t in (h200[1], overlapped)]
if device.simulated:
    assert before_it[0] > 2 * before_it[1]
assert len(overlapped.streams) == 1
assert [s.name for s in blocking.device_spans] == [s.name for s in overlapped.device_spans]
if device.simulated:
    assert overlapped.metrics().makespan < blocking.metrics().makespan

# %% [markdown] id=exercises
# ## Your turn
#
# Change the first cell of an exercise, run it, and run the `check` below it, as often as you like. You are told what is wrong with a wrong answer.
#
# Stuck? Type `hint("00-waited")` into a cell of your own, and again for a better hint. After an attempt, `solution("00-waited")` shows one way.
#
# ### Exercise: how long did Python wait?
#
# Return the number of microseconds for which Python was blocked, for any trace. `trace.metrics()` has the numbers that you saw at the end of the table, and `trace.metrics().host` is a dictionary of what the host did.
# Print it for `blocking`, if you like.

# %% id=00-waited starter
def waited(trace):
    ...  # your code


# %% id=00-waited solution
def waited(trace):
    return trace.metrics().host["wait"]

# %% id=00-waited hints
# Print `blocking.metrics().host`: that is the run in which Python waited.
#
# `trace.metrics().host` has one number for each thing the host does, such as `["call"]`.
#
# Write `return trace.metrics().host["wait"]`.

# %% id=00-waited explanation
# When a program is slow, look at this number first: it is the time for which Python was *blocked*. A pause at an `await` is not in it. That one is a gap in the
# host's lane, in which other tasks get their turn.

# %% id=00-waited-check
check("00-waited", waited)

# %% [markdown] id=exercise-both
# ### Exercise: two at a time
#
# `first` and `second` are operations. The cell below runs one after the other. Change it so that both are under way at the same time, and return both
# results in this order.

# %% id=00-both starter
async def both(first, second):
    a = await first
    b = await second
    return a, b


# %% id=00-both solution
async def both(first, second):
    a = agt.spawn(first)
    b = agt.spawn(second)
    return await a, await b

# %% id=00-both hints
# `await first` says: I do not go on without it. So the second is not even started before that.
#
# `agt.spawn(op)` makes a task and returns at once. A task is awaited like an operation.
#
# Two lines with `agt.spawn`, one for each, and then `return await a, await b`.

# %% id=00-both explanation
# One way: spawn both, then await both. The first `await` is the pause in which the two tasks start, so no `sleep(0)` is needed. The device can copy in both
# directions at once: while one result comes back, the other numbers are on their way there.

# %% id=00-both-check
check("00-both", both)

# %% [markdown] id=answer
# ## The first picture once more
#
# Here are the two runs again. This time each lane is a part of the device: one part copies in, one copies out, one computes. Above, with one queue: in, kernel,
# out, four times over, and no two of them ever work at once. Below, with four queues, the next piece is already on its way there while one comes back. The kernels are
# slivers again. It is the journeys that overlap.

# %% id=answer-picture
agt.compare_timelines(
    [slow, quick],
    ["One queue", "Four queues"],
    lanes=("engines",),
    lesson="With one queue, copies there and back take turns. With four they run at the same time.",
)

# %% id=answer-check tags=asserts
assert slow.overlap_between("h2d", "d2h") == 0
assert quick.overlap_between("h2d", "d2h") > 200

# %% [markdown] id=challenge
# ## Challenge: three trips and a job
#
# Every page ends with a challenge. There is a time to beat, and `progress` keeps your best.
#
# `trips` are three operations, and `job()` keeps Python busy for 200 µs. Do everything, and return the three results in order. As it stands, this
# takes 682 µs: get below 350.

# %% id=00-challenge starter
async def everything(trips, job):
    results = [await trip for trip in trips]
    job()
    return results


# %% id=00-challenge solution
async def everything(trips, job):
    tasks = [agt.spawn(trip) for trip in trips]
    await asyncio.sleep(0)
    job()
    return [await task for task in tasks]

# %% id=00-challenge hints
# All three can be under way before anybody waits, as in the exercise above.
#
# When does a task start? Not at `spawn`. If `job()` comes before the first `await`, the device has nothing to do meanwhile.
#
# Spawn all three, then `await asyncio.sleep(0)`, then `job()`, and only then await the tasks.

# %% id=00-challenge explanation
# Start everything, do your own work, wait as late as you can. There is nothing more to it, and the rest of the course is about doing it well.

# %% id=00-challenge-check
check("00-challenge", everything)

# %% id=score
score(built, share, meanwhile)

# %% [markdown] id=progress-text
# What you have solved is kept in `progress.json`, beside the notebook, and listed by `progress()`.

# %% id=progress
progress("00")

# %% [markdown] id=key-points
# ## Key points
#
# - The **host** runs Python. The **device** is a second computer with its own memory, and the way there and back takes time.
# - A **kernel** is written for one element and runs in a **thread** for each.
# - An **operation** is a recipe. Building it starts nothing; `sync`, `await` and `spawn` do.
# - `sync` blocks Python. `await` pauses only the code that says it. A **task** starts when the code that spawned it pauses.
# - A **timeline** shows what happened when. Look for time in which somebody waits.

# %% [markdown] id=contents
# ## The course
#
# | chapter | you learn to |
# |---|---|
# | [00_start_here](00_start_here.ipynb) | start work on a device, and read a timeline |
# | [01_sync_kernels](01_sync_kernels.ipynb) | write kernels, and see how long Python waits for them |
# | [02_streams_and_events](02_streams_and_events.ipynb) | run things side by side, find a race, and end it |
# | [02b_copies_and_chunks](02b_copies_and_chunks.ipynb) | copy while you compute, by cutting work into chunks |
# | [03_lazy_operations](03_lazy_operations.ipynb) | describe work first, and run it in one of four ways |
# | [04_combinators](04_combinators.ipynb) | build large operations from small ones |
# | [05_scheduling](05_scheduling.ipynb) | decide which work goes to which stream, and say when it cannot pay |
# | [06_await](06_await.ipynb) | wait without blocking, fail without harm, stop waiting |
# | [07_async_mlp](07_async_mlp.ipynb) | build the project: a neural network, four batches in flight |
# | [08_profiling](08_profiling.ipynb) | find out in a profiler why a program is slow |
# | [09_cuda_graphs](09_cuda_graphs.ipynb) | record a pipeline once, and launch it again for little |
# | [10_build_it_yourself](10_build_it_yourself.ipynb) | write the whole machine in a page of Python, and run it on CuPy too |
# | [11_the_gpu_decides](11_the_gpu_decides.ipynb) | move loops, queues and decisions from Python into kernels, and say when that pays |
# | [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) | write futures, an executor and channels for the GPU's own threads |
# | [13_hostcalls](13_hostcalls.ipynb) | let a kernel call Python in the middle of its work, and know when that pays |
# | [14_gallery](14_gallery.ipynb) | see the ideas of the course at work in six pictures, from Mandelbrot to attention |
#
# Take them in this order. **In a hurry?** The shortest way to the project is 01, 02, 03, 04, 06 and 07.
#
# The folder `solutions/` has every chapter with all exercises solved. Words that are new to you, or that others use for the same things, are in the
# [glossary](../docs/glossary.md).
#
# **Next:** [01_sync_kernels.ipynb](01_sync_kernels.ipynb), where you write kernels of your own.
