"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# Two programs did the same work on the same GPU. One took 729 microseconds, and the other took 501. Nobody wrote faster GPU code. In fact, if you add up how long each piece of the GPU's work took, the sum is a little *larger* for the quick program.
#
# **So where did the time go?**
#
# In two minutes you'll bet on why, and before the page is over you'll have written such a program yourself. The whole course goes like that: you guess what GPU code will do, and then a timeline tells you, without any tact, whether you were right. **You don't need a GPU for this.**
#
# After this page you can start work on a GPU from Python, read a timeline, and get other work done while you'd otherwise be waiting.
#
# | | |
# |---|---|
# | Time | 45 minutes |
# | You need | Python and a little NumPy. No GPU, and no CUDA |
#
# Run the cells from top to bottom with <kbd>Shift</kbd>+<kbd>Enter</kbd>. If you come back later and get a `NameError`, choose *Run*, then *Run All Above Selected Cell*. A cell that looks like a thin bar only checks the page's claims.

# %% id=setup
import asyncio

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=two-runs
# ## Two runs
#
# Here are both programs, recorded on an NVIDIA H200. In each picture the top lane is Python, and every lane below it is a queue of work for the GPU. A bar is a **span**: one piece of work, or one call that Python makes. An `h2d` copies numbers to the GPU, the orange sliver behind it computes, and a `d2h` copies the result back.

# %% id=two-runs-picture
slow = agt.Trace.load_recording("02_one_stream")
quick = agt.Trace.load_recording("02_streams_and_events")

agt.compare_timelines(
    [slow.from_first(), quick.from_first()],
    ["729 µs", "501 µs"],
    lanes=("host", "streams"),
    lesson="The same twelve pieces of work for the GPU, twice, and on one scale.",
)

# %% id=two-runs-check tags=asserts
assert round(slow.metrics().makespan) == 729
assert round(quick.metrics().makespan) == 501
assert sum(s.duration for s in slow.device_spans) < sum(s.duration for s in quick.device_spans)
assert [s.name for s in slow.device_spans].count("relu") == 4
assert [s.name for s in quick.device_spans].count("relu") == 4
assert (len(slow.streams), len(quick.streams)) == (1, 4)

# %% [markdown] id=two-runs-read
# (A µs, or microsecond, is a millionth of a second. *CUPTI* is NVIDIA's stopwatch.)

# %% id=predict-riddle
riddle = Prediction(
    "What does the quick program do that the slow one doesn't?",
    calls="it makes fewer calls",
    faster="each of its copies takes less time",
    kernels="several of its kernels run at the same time",
    ways="it copies to the GPU and back at the same time",
)
riddle

# %% [markdown] id=commit
# Write your answer in place of the three dots, as in `commit("faster")`, and run the cell. Wrong guesses are welcome: we remember an answer best when it has just surprised us. You may change this one until the end of the page, where it's settled.

# %% id=predict-riddle-commit
riddle.commit(...)

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
# In NumPy this would be `y = 2 * x`. Notice what isn't there: a loop. The first line of the body asks *which element is mine?*, and the rest deals with that one element.

# %% [markdown] id=describe
# ## There and back
#
# The device can't see NumPy's memory. So the numbers travel there, and the result travels back:

# %% id=first-operation
x = agt.pin(np.arange(2_000_000, dtype=np.float32))


def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


with agt.record() as so_far:
    op = doubled(x)

# %% [markdown] id=describe-explained
# - `agt.pin` copies `x` to a place where the device can fetch it without Python's help.
# - `agt.h2d(x)`, short for *host to device*, copies `x` to the device.
# - `agt.zeros(x.size)` makes room for the result and fills it with zeros. `.partition(256)` says that threads work in groups of 256, called **blocks**.
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

# %% [markdown] id=where
# ## Where the time goes
#
# Now we run it. The kernel reads two million numbers and writes two million. Each of the copies moves only two million.

# %% id=predict-share
share = Prediction(
    "How long do the two copies take together, compared with the kernel?",
    same="about as long",
    five="about 5 times as long",
    fifty="about 50 times as long",
    more="about 500 times as long",
)
share

# %% id=predict-share-commit
share.commit(...)

# %% id=first-launch
with agt.record() as first:
    y = await op

print(y[:6], y.dtype, y.shape)
first.plot(
    title="Your first work for the GPU",
    lanes=("host", "streams"),
    lesson="Python makes its calls and pauses. The two copies take nearly all of the device's time.",
)

# %% id=reveal-share
(kernel,) = first.find("twice")
copying = sum(span.duration for span in first.find("h2d") + first.find("d2h"))
ratio = copying / kernel.duration
share.reveal(
    "same" if ratio < 2 else "five" if ratio < 16 else "fifty" if ratio < 160 else "more",
    f"The kernel takes {kernel.duration:.0f} µs, and the two copies take {copying:.0f}.",
)

# %% id=first-launch-check tags=asserts
assert np.array_equal(y, 2 * x)
for _ in range(4):  # a real GPU loads kernels and makes streams when it first needs them
    with agt.record() as paused:
        await doubled(x)
assert not [span for span in paused if span.kind == "wait"]  # paused, and not blocked
assert max(s.end for s in paused.device_spans) > max(s.end for s in paused if s.kind == "call")

# %% [markdown] id=where-read
# The kernel is the orange sliver between the two long bars (the yellow one beside it is the fill). It touches twice as many numbers as a copy does, and still each copy takes over twenty times as long, because the road between the two computers is narrow. It carries about 55 GB a second, and this kernel moved its numbers more than forty times as fast.
#
# The lower lane is a **stream**, a queue that the device works through piece by piece. (After a copy and before one, the device needs about 4 µs: hence the gaps.) The upper lane is the host, and look how empty it is: a few short calls, and then Python could have done something else.

# %% id=where-check tags=asserts
if device.simulated:
    assert len([span for span in first if span.kind == "call"]) == 6
    copies = first.find("h2d") + first.find("d2h")
    assert min(copy.duration for copy in copies) > 20 * kernel.duration
    assert copying > 0.9 * sum(span.duration for span in first.device_spans)
    road = 8e3 / copies[0].duration  # GB/s
    assert round(road) == 54
    assert 16e3 / kernel.duration > 40 * road

# %% [markdown] id=meanwhile
# ## Python has things to do
#
# Suppose that Python has a job of its own. `agt.work(300)` stands for any such job: it keeps Python busy for 300 µs. Here we run the operation first, with `sync()`. It means *run it, and come back when it's done*.

# %% id=blocking-run
with agt.record() as blocking:
    doubled(x).sync()
    agt.work(300, "Python's own job")

blocking.plot(
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
# `spawn` puts the operation on the event loop's list, as a **task**. A task gets its turn when the running code pauses, and the second line says *I pause for a moment*. The task uses its turn to hand its work to the device. Then it has to wait for the device, so it pauses too, and we get on with our job.

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
# The device does exactly what it did before. Only the job no longer comes *after* its work: the two run at the same time. No piece of work got any faster. What's gone is the waiting, and what's left is the job, and the calls before it.
#
# **Now play with it.** Change the 300 above to 100, run the cell again, and then try 600. Up to what length is the job free? Put the 300 back, and we'll try them all:

# %% id=free-job
lengths = range(50, 601, 25)
took = []
for us in lengths:
    with agt.record() as trace:
        task = agt.spawn(doubled(x))
        await asyncio.sleep(0)
        agt.work(us)
        await task
    took.append(trace.metrics().makespan)

plt.figure(figsize=(6, 3))
plt.plot(lengths, took, "o-")
plt.xlabel("the job takes (µs)")
plt.ylabel("all of it takes (µs)")
plt.ylim(0)
plt.show()
for us in (50, 275, 300, 600):
    print(f"With a job of {us} µs, all of it takes {took[lengths.index(us)]:.0f} µs.")

# %% id=free-job-check tags=asserts
if device.simulated:
    free = [us for us, all_of_it in zip(lengths, took, strict=True) if all_of_it - min(took) < 2]
    assert (min(free), max(free)) == (50, 275)
    assert abs(took[-1] - took[-5] - 100) < 1  # behind the knee, each µs counts

# %% [markdown] id=free-job-read
# It's free as long as it fits into the wait: up to 275 µs in the model. After that, each µs of it counts.

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
    lesson="The device gets its work only after the job, so nothing overlaps with it.",
)

# %% id=reveal-forgotten
forgotten.reveal(f"{too_late.metrics().makespan:.0f}", "Everything that we gained is lost again.")

# %% [markdown] id=forgotten-read
# `spawn` only put the task on the list. Nobody paused until `await task`, so the task got its first turn when the job was over. It's a nasty slip, because the results are right and the code looks busy.

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
    assert abs(too_late.metrics().makespan - blocking.metrics().makespan) < 5
    assert too_late.overlap_between(job, too_late.device_spans) == 0
    if round(after_job.duration) == 300:  # the reader may have played with it
        assert overlapped.metrics().makespan < blocking.metrics().makespan

# %% [markdown] id=exercises
# ## Your turn
#
# Change the first cell of an exercise, run it, and then the `check` below it, as often as you like.
#
# Stuck? Type `hint("00-waited")` into a cell of your own. Each time, it helps a little more. Once you've tried, `solution("00-waited")` shows you one way.
#
# ### Exercise: how much of the time did Python wait?
#
# Return the part of the time for which Python was blocked, from 0 to 1, for any trace that isn't empty. In `trace.metrics()`, `makespan` is the whole time, and `host` is a dictionary that says how many µs the host spent on what. Print it for `blocking` first.


# %% id=00-waited starter
def waited(trace): ...  # your code


# %% id=00-waited solution
def waited(trace):
    return trace.metrics().host["wait"] / trace.metrics().makespan


# %% id=00-waited hints
# In `blocking`, Python waited. Which number of `blocking.metrics().host` is that, and what is it a part of?
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
# `first` and `second` are operations, and the cell below runs one after the other. Change it so that both are under way at the same time, and return both results, in this order. (Each task gets a stream of its own.)


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

# %% id=both-picture
with agt.using("sim"), agt.record() as pair:
    there = agt.pin(x)
    await both(doubled(there), doubled(there))

pair.plot(
    title="Your two at a time",
    lanes=("host", "streams"),
    lesson="Is there a time at which numbers travel both ways?",
)

# %% [markdown] id=answer
# ## The first picture once more
#
# Time to settle the bet. Here are the two runs, but now each lane is a *part of the device*: one copies in, one copies out, and one computes.

# %% id=answer-picture
agt.compare_timelines(
    [slow.from_first(), quick.from_first()],
    ["729 µs: one queue", "501 µs: four queues"],
    lanes=("engines",),
    lesson="With one queue, copies there and back take turns. With four they run at the same time.",
)

# %% id=reveal-riddle
in_turn, at_once = (trace.overlap_between("h2d", "d2h") for trace in (slow, quick))
riddle.reveal(
    "ways" if at_once > in_turn else "kernels",
    f"Numbers travel both ways for {at_once:.0f} µs, and in the slow program for {in_turn:.0f}.",
)

# %% [markdown] id=answer-read
# With one queue, the slow program copies in, computes, copies out, four times over, and at least two of the three parts always stand idle. The quick program has four queues, so while one result comes back, the next numbers are already on their way in, as in `both` once it's solved. That's where nearly 230 of the 729 microseconds went.
#
# And why do its pieces of work add up to 39 µs more? With traffic both ways, copies slow each other down a little, from 78 µs to as much as 87.

# %% id=answer-check tags=asserts
assert (round(at_once), in_turn) == (232, 0)
first_relu, *relus = quick.find("relu")
rest = [span for span in quick.device_spans if span.name != "relu"]
assert quick.overlap_between([first_relu], relus) == 0
assert quick.overlap_between("relu", rest) == 0  # each kernel stands in a hole
calls = [sum(span.kind == "call" for span in trace) for trace in (slow, quick)]
assert calls[0] == calls[1]
assert round(slow.metrics().makespan - quick.metrics().makespan) == 229
worked = [sum(span.duration for span in trace.device_spans) for trace in (quick, slow)]
assert round(worked[0] - worked[1]) == 39
longest = [max(s.duration for s in t.device_spans) for t in (quick, slow)]
assert [round(us) for us in longest] == [87, 78]

# %% [markdown] id=real
# ## Can you trust the model?
#
# That was a real H200. The simulated device follows a model of one, so we ran your two programs, with `sync` and with a task, on an H200, too, with half as many numbers. The model promises about 480 µs with `sync`, and with the task again 350, because the job still ends last: a gain of about 130.

# %% id=predict-gain
gain = Prediction(
    "How much of these 130 µs did the H200 gain?",
    all="about all of it",
    half="about half",
    none="almost nothing",
)
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
    [h200[1].from_first(), model.from_first()],
    ["H200: start, the job, then await", "The model: start, the job, then await"],
    lanes=("host", "streams"),
    lesson="The device's bars are nearly as long in both. The real Python takes its time between its calls, "
    "and the device stands idle until the last one, for d2h, arrives.",
)

# %% id=reveal-gain
measured, real = (trace.metrics().makespan for trace in h200)
part = (measured - real) / 130
gain.reveal(
    "all" if part > 0.75 else "half" if part > 0.25 else "none",
    f"It went from {measured:.0f} to {real:.0f} µs.",
)

# %% [markdown] id=real-read
# The device isn't to blame: a copy to it takes 78 µs on the H200 and 75 in the model, and the kernel 4 in both. But a real Python takes longer to hand over the work. In the hole of its stream the device waits 43 µs for Python to ask for the copy back, and the job begins after 196 µs instead of 50.
#
# Let the model tell you *what* overlaps, and measure *how much* you gain. And a slow hand-over can be cured: in [chapter 09](09_cuda_graphs.ipynb), a pipeline becomes a single call.

# %% id=real-check tags=asserts
assert [round(trace.metrics().makespan) for trace in h200] == [558, 498]
assert [round(trace.overlap_between(job, trace.device_spans)) for trace in h200] == [0, 54]
assert round(sum(span.duration for span in h200[1].device_spans)) == 161  # of which 54 are a third
assert round(h200[1].find("h2d")[0].duration) == 78
with agt.using("sim"), agt.record() as model_sync:
    doubled(agt.pin(x[:1_000_000])).sync()
    agt.work(300, job)
waiting, going_on = model_sync.metrics().makespan, model.metrics().makespan
assert [round(us, -1) for us in (waiting, going_on, waiting - going_on)] == [480, 350, 130]
assert round(model.find("h2d")[0].duration) == 75
assert [round(t.find("twice")[0].duration) for t in (model, h200[1])] == [4, 4]
before_it = [t.find(job)[0].start - t.spans[0].start for t in (h200[1], model)]
assert [round(us) for us in before_it] == [196, 50]
calling = [max(s.end for s in t if s.kind == "call") - t.spans[0].start for t in (h200[1], model)]
assert round(calling[0] / calling[1]) == 4
assert round(h200[1].find("d2h")[0].start - h200[1].find("twice")[0].end) == 43

# %% [markdown] id=challenge
# ## Challenge: three trips and a job
#
# Every page ends with a challenge. `progress` keeps your best time.
#
# `trips` are three operations, and `job()` keeps Python busy for 200 µs. Do everything, and return the three results in order. As it stands, this takes 682 µs: get below 320. The course's own answer takes 284 µs. The cell after the check draws your program. Too easy? Then do it without `sleep`.


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
# Start everything, do your own work, and wait as late as you can. That's all there is to it. And without a `sleep`? Put `job()` into an `async def`, too, and await all four with `asyncio.gather`, the job last. The other chapters are about doing it well.

# %% id=00-challenge-check
check("00-challenge", everything)

# %% id=challenge-picture
with agt.using("sim"), agt.record() as mine:
    trips = [agt.h2d(agt.pin(x[:n])).to_host() for n in (1_000_000, 800_000, 600_000)]
    await everything(trips, lambda: agt.work(200, "job"))

mine.plot(
    title="Your program",
    lanes=("host", "streams"),
    lesson="Where does Python do nothing? And where does the device?",
)

# %% id=score
score(built, share, meanwhile, forgotten, riddle, gain)

# %% id=progress
progress("00")

# %% [markdown] id=key-points
# ## Key points
#
# - The **host** runs Python, and the **device** is a second computer. Getting there and back often takes longer than the work itself.
# - You write a **kernel** for one element, and the device runs it in one **thread** for each element.
# - An **operation** is a recipe. Nothing happens when you build one. It runs when you `sync`, `await` or `spawn` it.
# - `sync` blocks all of Python. `await` pauses only the code that says it. A **task** starts when the code that spawned it pauses, and then a job that fits into the wait costs no time.
# - A **timeline** shows you what happened when. To make a program faster, look for waits.

# %% [markdown] id=contents
# ## The course
#
# These are four books, and you can stop after each:
#
# - *One GPU, driven from Python* (00 to 07): from one kernel to a small neural network whose batches share the GPU. [00](00_start_here.ipynb) here, [01](01_sync_kernels.ipynb) kernels, [02](02_streams_and_events.ipynb) streams, [02b](02b_copies_and_chunks.ipynb) copies, [03](03_lazy_operations.ipynb) operations, [04](04_combinators.ipynb) chains, [04b](04b_sharing_and_owning.ipynb) sharing, [05](05_scheduling.ipynb) scheduling, [06](06_await.ipynb) `await`, [07](07_async_mlp.ipynb) the network.
# - *Where the time goes* (08 to 10): find out why a program is slow, and write the whole machine yourself, in a page of Python. [08](08_profiling.ipynb) [09](09_cuda_graphs.ipynb) [10](10_build_it_yourself.ipynb)
# - *The GPU decides* (11 to 14): kernels that make their own decisions, and that can even call Python. [11](11_the_gpu_decides.ipynb) [12](12_async_inside_a_kernel.ipynb) [13](13_hostcalls.ipynb) [13b](13b_await_the_host.ipynb) [14](14_gallery.ipynb)
# - *More than one GPU* (15 to 16): split the work, and survive the loss of a machine. [15](15_several_gpus.ipynb) [16](16_several_machines.ipynb)
#
# **In a hurry?** The shortest way to the network is 01, 02, 03, 04, 06 and 07. The [glossary](../docs/glossary.md) lists the names used elsewhere.
#
# **Next:** a thousand threads run the very same line of code. So how does each of them know which element is its own? [01_sync_kernels](01_sync_kernels.ipynb) begins with twelve.
