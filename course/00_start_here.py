"""Source of notebooks/00_start_here.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Start here
#
# This course takes you from one kernel that Python waits for to four batches of a neural network that **overlap** on a GPU, while
# Python does other things. You write real kernels in CUDA C, say what will happen when, and see in a timeline whether it did. All of
# it works **without a GPU**: a simulated one takes its place.
#
# **After this page you can**
#
# - name the device that your notebooks run on, and say whether its times are measured or modelled;
# - start work on that device from Python, and read the result;
# - predict what Python does while the device works, and check it against a timeline;
# - do an exercise, and have it checked.
#
# | | |
# |---|---|
# | Time | 20 minutes |
# | You need | Python and some NumPy. No CUDA, and no GPU |
# | Device | the first cell of code says which one is in use |
#
# Run a cell with <kbd>Shift</kbd>+<kbd>Enter</kbd>, from top to bottom.

# %% [markdown] id=two-computers
# ## Two computers
#
# A GPU is a second computer, with its own memory and its own clock. In this course the computer that runs
# Python is the **host**, and the GPU is the **device**.
#
# NumPy computes while you wait. A device can compute while Python does something else, if you ask in the right way.
# How to ask is what this course is about.

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, solution

device = agt.use("auto")
device

# %% [markdown] id=which-device-meaning
# `auto` takes your NVIDIA GPU if there is one. If not, it takes a **simulated device**, which comes with
# the course and runs the same programs:
#
# | | a GPU (`cuda:0`) | the simulated device (`sim:0`) |
# |---|---|---|
# | results | computed on the GPU | computed here, from the very same source code |
# | times | measured | worked out from a model of a GPU, and always labelled *simulated* |
# | again tomorrow? | a little different | the same, to the last digit |
#
# So a laptop can show what a data-centre GPU would do, and when.

# %% id=times-mean
if device.simulated:
    print("Times on this page are simulated: modelled, not measured.")
else:
    print("Times on this page are measured on your GPU.")

# %% [markdown] id=doctor
# Should anything on this machine need repair, `doctor` says what, and how. In a terminal it is
# `python -m asyncgpu_tutor doctor`; here it is two lines.

# %% id=doctor-report
from asyncgpu_tutor.commands.doctor import ThisMachine, examine

report = examine(ThisMachine())
print(report.as_text())
assert report.can_run

# %% [markdown] id=kernel
# ## A first kernel
#
# A function that runs on the device is called a **kernel**. You write it for *one* element, in CUDA C. The device runs it
# for every element, each in a **thread** of its own, and thousands of threads at once.

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
# In NumPy this is `y = 2 * x`. Here the loop is gone, and in its place each thread asks *which element is mine?*
# Threads come in **blocks**; the number of its block, the size of a block, and its place in it give a thread
# its `i`. The last block may be larger than what is left of the array, hence the `if`. You need not read the C word by
# word yet: the next page does.

# %% [markdown] id=describe
# ## Describe first, run later
#
# The device cannot see NumPy's memory. So the data go there (`h2d`, *host to device*), the kernel runs, and the result
# comes back (`to_host`). You write this down first, and get a `DeviceOp`, an **operation**:

# %% id=first-operation
x = agt.pin(np.arange(4_000_000, dtype=np.float32))


def doubled(x):
    launch = twice(x.size, agt.h2d(x), agt.zeros(x.size).partition(256))
    return launch.output().to_host()


with agt.record() as building:
    op = doubled(x)

print(op)
print("things that happened:", len(building))
assert len(building) == 0

# %% [markdown] id=describe-explained
# Nothing happened. An operation is a recipe, and nobody has cooked yet. Word by word:
#
# - `agt.pin` puts a copy of `x` where the device can fetch it by itself, without the help of Python.
# - `agt.zeros(x.size)` is where `y` will be. `.partition(256)` splits it into blocks of 256 elements,
#   and so tells the device how many threads to start.
# - `.output()` is the array that the kernel writes, here `y`, with its blocks put together again. `.to_host()` copies it
#   into a NumPy array.
# - `agt.record()` writes down everything that happens, with its time.
#
# To run it, `await` it.

# %% id=first-launch
y = await op

print(y[:6], y.dtype, y.shape)
assert np.array_equal(y, 2 * x)

# %% [markdown] id=prediction
# ## What does Python do meanwhile?
#
# Now you cook the same dish twice more. Both times Python has a job of its own to do as well, which takes
# 300 microseconds (µs, millionths of a second). We let `agt.work(300)` stand for it.
#
# 1. `doubled(x).sync()`, then the job. `sync` runs an operation and returns when it is done.
# 2. `agt.spawn(doubled(x))`, then the job, then `await`. `spawn` has the operation started as a task, and
#    returns at once.

# %% id=predict
meanwhile = Prediction(
    "Which of the two is finished first?",
    sync="the first: one thing after the other is quicker",
    spawn="the second: the job is done while the device works",
    same="neither: the work is the same, so the time is the same",
)
meanwhile

# %% [markdown] id=commit
# Write your answer in place of the three dots, as in `commit("same")`, **before** you go on. Being wrong now
# is the quickest way to learn.

# %% id=predict-commit
meanwhile.commit(...)

# %% id=run-both
for _ in range(4):
    await doubled(x)  # a real GPU is slow the first time: it loads kernels, and creates streams

with agt.record() as blocking:
    doubled(x).sync()
    agt.work(300, "Python's own job")

with agt.record() as overlapped:
    task = agt.spawn(doubled(x))
    await asyncio.sleep(0)  # a task starts when Python next awaits something: let it
    agt.work(300, "Python's own job")
    await task

# %% id=reveal
first, second = blocking.metrics().makespan, overlapped.metrics().makespan  # from start to end, in µs
if abs(first - second) < 10:
    truth = "same"
else:
    truth = "spawn" if second < first else "sync"
meanwhile.reveal(truth, f"From start to end: {first:.0f} µs with sync, {second:.0f} µs with spawn.")

# %% [markdown] id=timeline
# ## A first timeline
#
# A picture shows why. Time runs from left to right. The upper lane is the host: Python. Below it is a **stream**:
# a queue of work for the device, which does one thing in it after the other. Which stream an operation gets is decided
# for you, so its number may differ from run to run.

# %% id=timeline-picture
agt.compare_timelines([blocking, overlapped], ["sync, then the job", "spawn, the job, await"])

# %% [markdown] id=timeline-read
# The device does the same in both: a copy in, a fill with zeros, the (short) kernel, a copy back. Look at the host. With
# `sync` there is a stretch of **waiting** above the device's work (dotted, and called `wait`), and the job comes after it. With `spawn` the job *is*
# above the device's work: the two overlap. Python did not get quicker. It stopped waiting. (What is blank after the job
# is the `await`. Python would be free for other tasks there.)
#
# Every picture can be had as text, too: in a sentence, as above, or with all that happened, in order. Here is the second one. Below the list it has
# numbers: `makespan` is the time from start to end, and `overlap` tells how long *streams* were at work side by side. Here it is 0, as there is
# one stream only. Other chapters explain the rest.

# %% id=timeline-table
print(overlapped.table())

# %% [markdown] id=claims
# What this course says about time, it also checks. A cell like the next one holds it against the recording, the
# **trace**, and fails if it is not so.

# %% id=timeline-claims
job = "Python's own job"
both_with_sync = blocking.overlap_between(job, blocking.device_spans)
both_with_spawn = overlapped.overlap_between(job, overlapped.device_spans)
assert both_with_spawn > both_with_sync
if device.simulated:  # a GPU has a clock of its own, which agrees with Python's to a few µs only
    assert both_with_sync == 0
assert len(overlapped.streams) == 1
assert blocking.metrics().host["wait"] > 0

print(f"Job and device were both at work for {both_with_sync:.0f} µs with sync,")
print(f"and for {both_with_spawn:.0f} µs with spawn.")

# %% [markdown] id=exercises
# ## Your turn
#
# Exercises are checked, in a second and as often as you like, and a wrong answer costs nothing: you are told what is wrong
# with it. Change the first cell, run it, and run the `check` below it.
#
# Stuck? `hint("00-waited")`, in a cell of your own, gives a hint, and a better one each time you ask. After an attempt, right or wrong,
# `solution("00-waited")` shows a solution. Skip what you like: no exercise needs the one before.
#
# ### Exercise: read a trace
#
# For how many microseconds was Python waiting? Return the number for any trace. (One of the assertions above asks for this very number.)

# %% id=00-waited starter
def waited(trace):
    ...  # your code


# %% id=00-waited solution
def waited(trace):
    return trace.metrics().host["wait"]

# %% id=00-waited hints
# The cell above asks the trace `blocking` for just this number, and then compares it with 0.
#
# `trace.metrics().host` has one number for each thing the host does, such as `["call"]`.
#
# Write `return trace.metrics().host["wait"]`.

# %% id=00-waited explanation
# The numbers of a trace are where you look first when a program is slow: they say *what* took the time.

# %% id=00-waited-check
check("00-waited", waited)

# %% [markdown] id=exercise-both
# ### Exercise: two at a time
#
# `first` and `second` are operations. The cell below runs one after the other. Change it so that both are under way at the same time. Return both results,
# in this order.
#
# This check looks at the trace as well, and if it is not yet right, it shows your timeline and the one that it should be.

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
# Start everything first, and wait afterwards. While one result is on its way back, the other data are on their way there: a device has a
# copy engine for each direction.

# %% id=00-both-check
check("00-both", both)

# %% [markdown] id=progress-text
# What you have solved is kept in a file beside the notebook, `progress.json`, and listed by `progress()`. With the number of
# a chapter it is a short list:

# %% id=progress
progress("00")

# %% [markdown] id=key-points
# ## Key points
#
# - The **host** runs Python; the **device** is a second computer with its own memory. Data go there and back by copies.
# - A **kernel** is written for one element, and runs in a **thread** for each.
# - An **operation** is a recipe. Building it starts nothing; `sync`, `await` and `spawn` run it.
# - `sync` keeps Python waiting. `spawn` and `await` let it do other things meanwhile.
# - `auto` says which device it took, and every timeline says whether its times are simulated.

# %% [markdown] id=contents
# ## The course
#
# | chapter | you learn to |
# |---|---|
# | [00_start_here](00_start_here.ipynb) | start work on a device, and look at a timeline |
# | [01_sync_kernels](01_sync_kernels.ipynb) | write kernels, and see how long Python waits for them |
# | [02_streams_and_events](02_streams_and_events.ipynb) | overlap copies and kernels by hand, and find a race |
# | [03_lazy_operations](03_lazy_operations.ipynb) | describe work first, and run it in one of four ways |
# | [04_combinators](04_combinators.ipynb) | compose large operations of small ones |
# | [05_scheduling](05_scheduling.ipynb) | decide which work goes to which stream, and say when it cannot pay |
# | [06_await](06_await.ipynb) | wait without blocking, fail without harm, stop waiting |
# | [07_async_mlp](07_async_mlp.ipynb) | build the project: a neural network, four batches in flight |
# | [08_profiling](08_profiling.ipynb) | find out in a profiler why a program is slow |
# | [09_cuda_graphs](09_cuda_graphs.ipynb) | record a pipeline once, and launch it again for little |
# | [10_build_it_yourself](10_build_it_yourself.ipynb) | write the whole machine in a page of Python, and run it on CuPy too |
# | [11_the_gpu_decides](11_the_gpu_decides.ipynb) | move loops, queues and decisions from Python into kernels, and say when that pays |
#
# Take them in this order. **In a hurry?** From here straight to 07: it explains what it needs.
#
# In the folder `solutions/` is each chapter once more, with every exercise solved. (`hint` is the better friend.) `reset()`, imported like
# `progress`, forgets how far you are.
#
# Words that are new to you, or that others use for the same things, are in the [glossary](../docs/glossary.md).
#
# **Next:** [01_sync_kernels.ipynb](01_sync_kernels.ipynb), kernels of your own.
