"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# Two programs did the same work on the same GPU. One took 729 microseconds, and the other took 501. Nobody wrote faster GPU code. In fact, if you add up everything that the GPU did, it worked a little *longer* for the quick program than for the slow one.
#
# **So where did the time go?**
#
# This course is about such questions. You write real GPU code and guess what it will do, and then a timeline tells you, without any tact, whether you were right. **You don't need a GPU for this.** If you haven't got one, a simulated GPU stands in for it.
#
# After this page you can start work on a GPU from Python, read a timeline, and do a job of your own in time that Python used to waste.
#
# | | |
# |---|---|
# | Time | 40 minutes |
# | You need | Python and a little NumPy. No GPU, and no CUDA |
#
# Run the cells from top to bottom with <kbd>Shift</kbd>+<kbd>Enter</kbd>. If you come back later and get a `NameError`, choose *Run*, then *Run All Above Selected Cell*. A cell that looks like a thin bar only checks the page's own claims.

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
# Here are both programs, recorded on an NVIDIA H200.

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
# In each picture the top lane is Python, and every lane below it is a queue of work for the GPU. A bar is a **span**: one piece of work, or one call that Python makes. (*CUPTI* is NVIDIA's stopwatch.)
#
# Can you see what the quick program does differently? Not yet? You'll meet this picture again at the end, and by then it won't stand a chance.

# %% [markdown] id=two-computers
# ## Two computers
#
# Think of a GPU as a second computer, with its own memory and its own sense of time. The computer that runs Python is called the **host**, and the GPU is the **device**. When NumPy computes, you wait for it. A device can compute while Python does something else, but only if you ask it the right way.
#
# The first cell asked for `agt.use("auto")`. That gives you your NVIDIA GPU if you have one, and otherwise the **simulated device** that comes with the course. Both run the same programs:
#
# | | a GPU (`cuda:0`) | the simulated device (`sim:0`) |
# |---|---|---|
# | results | computed on the GPU | computed on your machine, from the very same source code |
# | times | measured | worked out by a model of an H200, and always labelled *simulated* |
# | the same tomorrow? | nearly | yes |
#
# (In a terminal, `python -m asyncgpu_tutor doctor` tells you what's missing on your machine.)

# %% [markdown] id=kernel
# ## A function for one element
#
# A function that runs on the device is called a **kernel**. You write it in CUDA C, and you write it for just *one* element of an array. The device runs it once for every element, in thousands of **threads** at the same time.

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
# In NumPy this would be `y = 2 * x`. We'll take the C apart on the next page. For now, notice what isn't there: a loop. The first line of the body asks *which element is mine?*, and the rest deals with that one element.

# %% [markdown] id=describe
# ## There and back
#
# The device can't see NumPy's memory. So the numbers have to travel there, and the result has to travel back:

# %% id=first-operation
x = agt.pin(np.arange(2_000_000, dtype=np.float32))


def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


with agt.record() as so_far:
    op = doubled(x)

# %% [markdown] id=describe-explained
# That's a lot for a few lines, so here are their parts:
#
# - `agt.pin` copies `x` to a place where the device can fetch it without Python's help.
# - `agt.h2d(x)`, short for *host to device*, copies `x` to the device.
# - `agt.zeros(x.size)` makes room for the result and fills it with zeros. `.partition(256)` cuts that room into **blocks**, so that 256 threads at a time work as one group.
# - `.output()` picks the array that the kernel writes: `y`, the only pointer (`*`) without `const`. `.to_host()` copies it into a NumPy array.
# - `agt.record()` keeps a diary of what happens inside the `with`. We call the diary a **trace**.
#
# So the device has four pieces of work: a copy, a fill, a kernel, and another copy.

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
# Write your answer in place of the three dots, as in `commit("three")`, **before** you go on. Wrong guesses are welcome: we remember an answer best when it has just surprised us.

# %% id=predict-built-commit
built.commit(...)

# %% id=reveal-built
begun = len(so_far.device_spans)
built.reveal(
    {0: "none", 1: "one", 3: "three", 4: "four"}[begun],
    f"The trace has {begun} pieces of work on the device.",
)

# %% [markdown] id=describe-read
# The device hasn't lifted a finger. `doubled(x)` only wrote down *what* is to be done, and such a description is called an **operation**. It's like a recipe: you can write one down, and nobody has dinner yet. To get dinner, you `await` it.
#
# `await op` runs the operation and **pauses** until the result is there. Only the code that says `await` pauses. Python keeps a list of other things to do, and its **event loop** gets on with those in the meantime. A function that contains an `await` has to begin with `async def`. A notebook cell may simply `await`.

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
# The kernel reads two million numbers and writes two million. Each of the two copies moves only two million.

# %% id=predict-share
share = Prediction(
    "For each µs in which the kernel runs, how many µs does the device spend on the two copies? "
    "Type a number.",
    within=0.3,
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
copying = sum(span.duration for span in blocking.find("h2d") + blocking.find("d2h"))
share.reveal(
    f"{copying / kernel.duration:.0f}",
    f"The kernel takes {kernel.duration:.0f} µs, and the two copies take {copying:.0f}.",
)

# %% [markdown] id=where-read
# The kernel is that sliver between the two long bars. It touches twice as many numbers as a copy does, and still each copy takes over twenty times as long, because the road between the two computers is narrow. On an H200 we measured 55 GB a second on that road, and 1,573 within the device's own memory. So quite often, getting there and back takes longer than the work you went there for.
#
# Now read the picture lane by lane. The lower lane is a **stream**, a queue that the device works through piece by piece. The upper lane is the host. `sync()` means *run it, and come back when it's done*, so Python makes a few calls and is then **blocked** until the device has finished. Nothing else in Python gets a turn. The dotted bar is that wait.
#
# Only then does Python begin a job of its own. `agt.work(300)` stands for any such job: it keeps Python busy for 300 microseconds, written µs, which are millionths of a second.

# %% id=where-check tags=asserts
assert blocking.metrics().host["wait"] > 0
if device.simulated:  # a GPU's clock agrees with Python's to a few µs only
    assert blocking.overlap_between("Python's own job", blocking.device_spans) == 0
    copies = blocking.find("h2d") + blocking.find("d2h")
    assert min(copy.duration for copy in copies) > 20 * kernel.duration
    assert sum(span.duration for span in copies) > 0.9 * sum(
        s.duration for s in blocking.device_spans
    )

# %% [markdown] id=meanwhile
# ## Python has things to do
#
# Let's work while we wait. It takes four lines:
#
# ```python
# task = agt.spawn(doubled(x))    # make a task of it
# await asyncio.sleep(0)          # let the task start
# agt.work(300)                   # the job
# await task                      # pause until the result is there
# ```
#
# `spawn` puts the operation on the event loop's list, as a **task**. A task gets its turn when the running code pauses, and the second line says *I pause for a moment*. The task uses its turn to hand its work to the device. Then it has to wait for the device, so it pauses as well, and Python comes back to us and our job.

# %% id=predict
meanwhile = Prediction(
    f"With `sync` it took {blocking.metrics().makespan:.0f} µs. How many µs does it take now? "
    "(The picture above has all you need.)",
    within=0.05,
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
    lesson="Above, Python waits and then does its job. Below, it does the job while the device works.",
)

# %% id=reveal
before, after = (trace.metrics().makespan for trace in (blocking, overlapped))  # from start to end
meanwhile.reveal(f"{after:.0f}", f"It was {before:.0f} µs before.")

# %% [markdown] id=timeline-read
# The device does exactly what it did before. But the job used to come *after* the device's work, and now it lies *above* it. No piece of work got any faster. What's gone is the waiting, and what's left is the job, and the calls before it.

# %% id=predict-forgotten
forgotten = Prediction(
    "Delete the line with `sleep(0)`, and nothing else. How many µs does it take then?", within=0.05
)
forgotten

# %% id=predict-forgotten-commit
forgotten.commit(...)

# %% id=run-forgotten
with agt.record() as too_late:
    task = agt.spawn(doubled(x))
    agt.work(300, "Python's own job")
    await task

too_late.plot(
    title="Without the sleep(0)",
    lanes=("host", "streams"),
    lesson="The device gets its work only after the job, so nothing overlaps.",
)

# %% id=reveal-forgotten
forgotten.reveal(f"{too_late.metrics().makespan:.0f}", "Everything that we gained is lost again.")

# %% [markdown] id=forgotten-read
# `spawn` only put the task on the list. Nobody paused until `await task`, so the task got its first turn when the job was over. It's a nasty slip, because the results are right and the code looks busy.

# %% [markdown] id=real
# ## And on a real GPU?
#
# We ran both programs on an H200, with one million numbers. For these, the model promises 478 µs with `sync` and 350 with the task, a gain of 129 µs.

# %% id=predict-gain
gain = Prediction("How many of these 129 µs did the H200 really gain?", within=0.2)
gain

# %% id=predict-gain-commit
gain.commit(...)

# %% id=on-a-gpu
h200 = [agt.Trace.load_recording(name) for name in ("00_start_here_sync", "00_start_here")]

with agt.using("sim"), agt.record() as model:
    task = agt.spawn(doubled(agt.pin(x[:1_000_000])))
    await asyncio.sleep(0)
    agt.work(300, "Python's own job")
    await task

agt.compare_timelines(
    [*h200, model],
    ["H200: sync, then the job", "H200: start, the job, then await", "The model: start, the job, then await"],
    lanes=("host", "streams"),
    together=True,  # the device's first work is at 0
    lesson="The model has the device's work right. Its Python is too quick, so the job begins too early.",
)

# %% id=reveal-gain
measured, real = (trace.metrics().makespan for trace in h200)
gain.reveal(f"{measured - real:.0f}", f"It went from {measured:.0f} to {real:.0f} µs.")

# %% [markdown] id=real-read
# Less than half of the promise! The device isn't to blame: a copy to it takes 78 µs on the H200 and 75 in the model, and the kernel 4 in both. But the model is too kind to *Python*. The real one needed 196 µs before it began its job, mostly to get from one call to the next, and the model allows it 50. By then two thirds of the device's work was over, and only the rest could hide behind the job.
#
# So let the model tell you *what* overlaps and why. To know *how much* you gain, measure.

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
assert [round(trace.metrics().makespan) for trace in h200] == [558, 498]
assert [round(trace.overlap_between(job, trace.device_spans)) for trace in h200] == [0, 54]
assert round(sum(span.duration for span in h200[1].device_spans)) == 161  # of which 54 are a third
assert round(h200[1].find("h2d")[0].duration) == 78
with agt.using("sim"), agt.record() as model_sync:
    doubled(agt.pin(x[:1_000_000])).sync()
    agt.work(300, job)
waiting, going_on = model_sync.metrics().makespan, model.metrics().makespan
assert [round(us) for us in (waiting, going_on, waiting - going_on)] == [478, 350, 129]
assert round(model.find("h2d")[0].duration) == 75
assert [round(t.find("twice")[0].duration) for t in (model, h200[1])] == [4, 4]
before_it = [t.find(job)[0].start - t.spans[0].start for t in (h200[1], model)]
assert [round(us) for us in before_it] == [196, 50]
assert measured - real < 0.5 * (waiting - going_on)
if device.simulated:
    assert abs(too_late.metrics().makespan - blocking.metrics().makespan) < 5
    assert too_late.overlap_between(job, too_late.device_spans) == 0
assert len(overlapped.streams) == 1
assert [s.name for s in blocking.device_spans] == [s.name for s in overlapped.device_spans]
if device.simulated:
    assert overlapped.metrics().makespan < blocking.metrics().makespan

# %% [markdown] id=exercises
# ## Your turn
#
# Change the first cell of an exercise, run it, and then the `check` below it, as often as you like.
#
# Stuck? Type `hint("00-waited")` into a cell of your own. Each time, it helps a little more. Once you've tried, `solution("00-waited")` shows you one way to do it.
#
# ### Exercise: how much of the time did Python wait?
#
# Return the part of the time for which Python was blocked, from 0 to 1, for any trace. In `trace.metrics()`, `makespan` is the time from start to end, and `host` a dictionary of what the host did.


# %% id=00-waited starter
def waited(trace): ...  # your code


# %% id=00-waited solution
def waited(trace):
    return trace.metrics().host["wait"] / trace.metrics().makespan


# %% id=00-waited hints
# Print `blocking.metrics().host`. In that run, Python waited, so the number you want is in there.
#
# `trace.metrics().host` has one number for each thing the host does, such as `["call"]`. A part is that number divided by the whole.
#
# Divide `trace.metrics().host["wait"]` by `trace.metrics().makespan`.

# %% id=00-waited explanation
# When a program is slow, look at this number first, because it tells you for how long Python was *blocked*. A pause at an `await` isn't in it. A pause is only a gap in the host's lane, and other tasks can use it.

# %% id=00-waited-check
check("00-waited", waited)

# %% [markdown] id=exercise-both
# ### Exercise: two at a time
#
# `first` and `second` are operations, and the cell below runs one after the other. Change it so that both are under way at the same time, and return both results, in this order.


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
# `await first` says: I won't go on without it. So the second operation doesn't even start before the first one is done.
#
# `agt.spawn(op)` makes a task and returns right away. You await a task just like an operation.
#
# Write two lines with `agt.spawn`, one for each operation, and then `return await a, await b`.

# %% id=00-both explanation
# One way is to spawn both and then await both. The first `await` is the pause in which the two tasks start, so you need no `sleep(0)`. The device can copy in both directions at once: while one result comes back, the other numbers are already on their way in.

# %% id=00-both-check
check("00-both", both)

# %% [markdown] id=answer
# ## The first picture once more
#
# Here are the two runs again, but now each lane is a *part of the device*: one copies in, one copies out, and one computes.
#
# The slow program has one queue. So it copies in, computes, copies out, four times over, and at least two of the three parts always stand idle. The quick program has four queues, so while one result comes back, the next numbers are already on their way in. It's the journeys that overlap, and that's where 229 of the 729 microseconds went.
#
# And why did the GPU work 39 µs longer for it, all in all? With traffic both ways, the copies slow each other down a little, from 78 µs to as much as 87. It's a small toll.

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
assert round(slow.metrics().makespan - quick.metrics().makespan) == 229
worked = [sum(span.duration for span in trace.device_spans) for trace in (quick, slow)]
assert round(worked[0] - worked[1]) == 39
longest = [max(s.duration for s in t.device_spans) for t in (quick, slow)]
assert [round(us) for us in longest] == [87, 78]

# %% [markdown] id=challenge
# ## Challenge: three trips and a job
#
# Every page ends with a challenge and a time to beat. `progress` keeps your best, in `progress.json` beside the notebook.
#
# `trips` are three operations, and `job()` keeps Python busy for 200 µs. Do everything, and return the three results in order. As it stands, this takes 682 µs: get below 320. The course's own answer takes 284 µs.


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
# When does a task start? Not at `spawn`, but at the next pause. If `job()` comes before that, the device sits there with nothing to do.
#
# Spawn all three, then `await asyncio.sleep(0)`, then `job()`, and only then await the tasks.

# %% id=00-challenge explanation
# Start everything, do your own work, and wait as late as you can. That really is all there is to it. The other chapters are about doing it well.

# %% id=00-challenge-check
check("00-challenge", everything)

# %% id=score
score(built, share, meanwhile, forgotten, gain)

# %% id=progress
progress("00")

# %% [markdown] id=key-points
# ## Key points
#
# - The **host** runs Python. The **device** is a second computer with its own memory, and getting there and back often takes longer than the work itself.
# - You write a **kernel** for one element, and the device runs it in one **thread** for each element.
# - An **operation** is a recipe. Nothing happens when you build one. It runs when you `sync`, `await` or `spawn` it.
# - `sync` blocks all of Python. `await` pauses only the code that says it. A **task** starts when the code that spawned it pauses.
# - A **timeline** shows you what happened when. To make a program faster, look for the places where somebody waits.

# %% [markdown] id=contents
# ## The course
#
# | chapter | you learn to |
# |---|---|
# | [00_start_here](00_start_here.ipynb) | start work, and read a timeline |
# | [01_sync_kernels](01_sync_kernels.ipynb) | write kernels, and see how long Python waits for them |
# | [02_streams_and_events](02_streams_and_events.ipynb) | run things side by side, find a race, and end it |
# | [02b_copies_and_chunks](02b_copies_and_chunks.ipynb) | copy while you compute |
# | [03_lazy_operations](03_lazy_operations.ipynb) | describe work first, and run it in one of four ways |
# | [04_combinators](04_combinators.ipynb) | build large operations from small ones |
# | [04b_sharing_and_owning](04b_sharing_and_owning.ipynb) | share a result, and know whose array it is |
# | [05_scheduling](05_scheduling.ipynb) | decide which work goes to which stream |
# | [06_await](06_await.ipynb) | wait without blocking, fail without harm, stop waiting |
# | [07_async_mlp](07_async_mlp.ipynb) | build the project, a neural network |
# | [08_profiling](08_profiling.ipynb) | find out in a profiler why a program is slow |
# | [09_cuda_graphs](09_cuda_graphs.ipynb) | record a pipeline once, and launch it again for little |
# | [10_build_it_yourself](10_build_it_yourself.ipynb) | write the whole machine in a page of Python |
# | [11_the_gpu_decides](11_the_gpu_decides.ipynb) | move loops, queues and decisions from Python into kernels |
# | [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) | write futures and channels for the GPU's own threads |
# | [13_hostcalls](13_hostcalls.ipynb) | let a kernel call Python |
# | [13b_await_the_host](13b_await_the_host.ipynb) | have several calls of a kernel under way at once |
# | [14_gallery](14_gallery.ipynb) | see it at work, from Mandelbrot to vector search |
# | [15_several_gpus](15_several_gpus.ipynb) | split work over several GPUs |
# | [16_several_machines](16_several_machines.ipynb) | send work to other machines, and survive the loss of one |
#
# These are four books, and you can stop after each: *One GPU, driven from Python* (00 to 07), *Where the time goes* (08 to 10), *The GPU decides* (11 to 14) and *More than one GPU* (15 to 16). **In a hurry?** The shortest way to the project is 01, 02, 03, 04, 06 and 07.
#
# `solutions/` has every chapter, exercises solved, and the [glossary](../docs/glossary.md) knows what others call things.
#
# **Next:** [01_sync_kernels.ipynb](01_sync_kernels.ipynb), where you write kernels of your own.
