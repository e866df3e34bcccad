"""Source of notebooks/16_several_machines.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Several machines
#
# Two colleagues next door go home at six. Under each desk they leave a machine with a GPU, which has nothing to do until morning, and you may use both. But each has a Python of its own, and none of your launches can reach it. Something has to travel.
#
# **What do you have to send, so that it's worth the trip?**
#
# After this page you can choose the size of a recipe by the price of a call, place data once and go on with handles, keep several workers busy, and say when to stay at home instead. In the second sitting you carry on when one of them dies.
#
# | | |
# |---|---|
# | Time | 65 minutes, and 40 for the second sitting, on another day. The encores take 35 more |
# | You need | [04_combinators](04_combinators.ipynb), [06_await](06_await.ipynb) and [07_async_mlp](07_async_mlp.ipynb), but neither a GPU nor a second machine |

# %% id=setup
import asyncio
import atexit
import contextlib
import os
import signal
import tempfile
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("sim")
device

# %% [markdown] id=next-door
# ## Two GPUs next door
#
# All GPUs on this page are simulated, even if you have a real one, and so is the next room.
#
# First, something to send. Here's the network of chapter 07, which looks for threes among handwritten digits:

# %% id=mlp
def gemm(x, w0, hidden):
    m, k = x.shape
    n = hidden.shape[1]
    return agt.sgemm_naive(m, n, k, 1.0, x, w0, 0.0, hidden.partition(16, 16)).output()


def matvec(hidden, w1, output):
    rows, columns = hidden.shape
    return agt.matvec_naive(rows, columns, hidden, w1, output.partition(256)).output()


def relu(output):
    blocks = output.partition(256)
    return agt.relu(output.size, blocks, blocks).output()


def mlp(x, w0, w1):
    """One batch, from the host and back to it, as one lazy operation."""
    n = len(x)

    def stages(arrays):
        x, hidden, output = arrays
        scores = gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output))
        return scores.and_then(relu)

    room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
    return room.and_then(stages).to_host()

# %% [markdown] id=cluster-text
# And now next door. An operation is only a recipe, and a recipe can travel: `await gpu(op)` sends it to a **worker**, a process with a GPU of its own.
#
# ```text
#  your process                          a worker in the next room
#  await gpu(op)     ---- recipe ---->   runs it on its GPU, and keeps its arrays
#  handle, or host   <--- result -----
#  array
# ```
#
# A host array comes back to you. An array on the GPU stays there, and you get a handle, a `RemoteArray`, whose `op()` stands for the array in later recipes. And `await gpu.put(array)` copies an array from here to there.
#
# The obvious plan is to do over there what you'd do here, a step at a time. It's tedious, so just count the `await`s:

# %% id=step-by-step
digits = agt.data.load_digits()
w0, w1 = agt.pin(digits.w0), agt.pin(digits.w1)
batches = [agt.pin(x) for x in digits.batches]


async def step_by_step(gpus, x, w0, w1):
    gpu, n = gpus[0], len(x)
    x, w0, w1 = await gpu.put(x, "x"), await gpu.put(w0, "W0"), await gpu.put(w1, "W1")
    hidden = await gpu(agt.zeros((n, w0.shape[1])).named("hidden"))
    output = await gpu(agt.zeros(n).named("output"))
    three = agt.zip(x.op(), w0.op(), hidden.op())
    hidden = await gpu(three.and_then(lambda a: gemm(*a)).named("gemm"))
    three = agt.zip(hidden.op(), w1.op(), output.op())
    output = await gpu(three.and_then(lambda a: matvec(*a)).named("matvec"))
    output = await gpu(output.op().and_then(relu).named("relu"))
    return await gpu(output.op().to_host().named("home"))


async def on_cluster(act, *args):
    """Run act(gpus, ...) on the two GPUs next door; return its result and the trace."""
    async with agt.cluster("sim", gpus=2, apart=True) as gpus:
        with agt.record() as trace:
            result = await act(gpus, *args)
    return result, trace


scores, slow = await on_cluster(step_by_step, batches[0], w0, w1)
print(f"That took {slow.metrics().makespan:.0f} µs.")

# %% [markdown] id=apart-text
# `apart=True` is the part that hurts: each call is charged for its trip to another process and back.

# %% id=16-busy guess within=0.5
# Each of the nine calls has one small thing for the GPU: a batch is 64 digits of 64 pixels, and `w0` has 64 columns. For how many of these microseconds was it at work?

# %% id=16-busy reveal
calls = [span for span in slow if "sent" in span.detail]
work = [(span.start, span.end, "") for span in slow.device_spans]
out = [(call.start, start, "out") for call, (start, _, _) in zip(calls, work)]
back = [(end, call.end, "back") for call, (_, end, _) in zip(calls, work)]
drawn = slow.with_lane("on the way", out + back).with_lane("the GPU", work)
picture = drawn.plot(title="One batch, a step at a time", lanes=("host",))
at_work = slow.metrics().device_active
reveal("16-busy", f"{at_work:.0f}", picture, part=at_work / slow.metrics().makespan)

# %% id=16-busy lesson
# Nine calls, one after the other, each with its way out and its way back. In between, the worker's Python launches something, which gives the GPU a sliver of work.

# %% id=16-busy told truth=23
# That's {part:.1%} of the time. Nearly all the rest is the way there and the way back, half a millisecond each, nine times. In chapter 07 we blamed Python because a launch takes it 16 µs. Those were the days.

# %% id=check-slow tags=asserts
assert len(calls) == 9
assert all(1000 < span.duration < 1100 for span in calls)
assert all(450 < work.start - call.start < 600 for work, call in zip(slow.device_spans, calls))
assert all(400 < call.end - work.end < 600 for work, call in zip(slow.device_spans, calls))
assert at_work < 0.004 * slow.metrics().makespan
assert round(slow.find("launch sgemm_naive")[0].duration) == 16
assert np.allclose(scores, np.maximum(digits.batches[0] @ digits.w0 @ digits.w1, 0), atol=1e-3)

# %% [markdown] id=prices
# ## What a call costs
#
# | | on our simulated clock | for real |
# |---|---|---|
# | launch a kernel yourself | 10 to 16 µs | about 10 µs |
# | call a worker, or two at once | 1 ms | 4 to 12 ms for two |
# | a further call while others are under way | 25 to 30 µs | 2 to 4 ms |
# | a further recipe in the same call | nothing | 0.2 ms or less |
# | a megabyte along, there or back | 2.3 ms | 5 to 7 ms |
#
# **The left column is all that our simulated clock charges for a trip.** Its call and its megabyte are the best that we've measured, for a call that does nothing and isn't encrypted. Launches and copies cost what they do at home.
#
# The right column is real recipes, encrypted, on their way to two processes of a quiet machine (November 2026). [Dask](https://distributed.dask.org) carries them. A busy machine took some five times as long, and a real cable adds its own time.
#
# So guess by the left column, and plan your evenings by the right one. Even at its best, a call costs as much as sixty to a hundred launches. So don't send steps. Send the whole thing.

# %% [markdown] id=exercise-recipe
# ### Exercise: one call instead of many
#
# `x` is a handle. Each of `stages` is a function that gets an array and returns an operation, as `relu` does. Run all of them on `x`, one after the other, on the worker that has it, and bring home the result. The version below pays for every stage.

# %% id=16-recipe starter
async def in_one(gpu, x, stages):
    for stage in stages:
        x = await gpu(x.op().and_then(stage))
    return await gpu(x.op().to_host())

# %% id=16-recipe solution
async def in_one(gpu, x, stages):
    op = x.op()
    for stage in stages:
        op = op.and_then(stage)
    return await gpu(op.to_host())

# %% id=16-recipe hints
# `await` only at the very end. Until then you can build an operation as long as you like, and it costs nothing.
#
# Begin with `op = x.op()`, and let the loop make it longer: `op = op.and_then(stage)`.

# %% id=16-recipe explanation
# It's the same chain as in chapter 07, with a different reason. There it saved Python a wait between two stages. Here it saves a trip.

# %% id=16-recipe-check
check("16-recipe", in_one)

# %% [markdown] id=one-recipe-text
# And here's our batch of digits as a single recipe:

# %% id=one-recipe
def small(x):
    """Read digits in one recipe, whose weights travel along: it can run anywhere."""
    return agt.zip(agt.h2d(w0), agt.h2d(w1)).and_then(lambda w: mlp(x, *w))


async def one_recipe(gpus, x):
    return await gpus[0](small(x))


again, quick = await on_cluster(one_recipe, batches[0])
print(f"{slow.metrics().makespan:.0f} µs have become {quick.metrics().makespan:.0f}.")
print(f"For {quick.metrics().device_active:.0f} of them, the GPU is at work.")

# %% id=check-one-recipe tags=asserts
assert np.allclose(again, scores)
assert round(slow.metrics().makespan / quick.metrics().makespan) == 8
assert sum(array.nbytes for array in (batches[0], w0, w1)) == 33_024

# %% [markdown] id=travels
# One trip instead of nine. And yet one batch of digits isn't worth even that one.
#
# ## What travels along
#
# Our recipe came with a warning: it "takes 33,024 bytes along", and that "each time you send it". A recipe takes along whatever it refers to, arrays included. At 2.3 ms a megabyte, the digits cost you less than a tenth of a millisecond. So let's take 4 MB of weights, and four small batches. `weights` is on the host, so it's a part of each recipe:

# %% id=by-value
big = agt.data.seed_inputs(1024)
weights = agt.pin(big.w0), agt.pin(big.w1)
few = [agt.pin(x[:64]) for x in big.batches]


async def by_value(gpus):
    w = agt.zip(*[agt.h2d(array) for array in weights])
    recipes = [w.and_then(lambda w, x=x: mlp(x, *w)) for x in few]
    return [await gpus[0](recipe.named("weights + batch")) for recipe in recipes]


results, along = await on_cluster(by_value)
print(f"{along.metrics().makespan:.0f} µs")

# %% [markdown] id=by-value-read
# The cure is in the warning: `put` the weights there *once*, and let each recipe use the handles.

# %% id=placed
async def placed(gpus):
    there = [await gpus[0].put(array) for array in weights]
    w = agt.zip(*[handle.op() for handle in there])
    # x=x keeps this round's x: a plain lambda looks it up when the loop may be over
    recipes = [w.and_then(lambda w, x=x: mlp(x, *w)) for x in few]
    return [await gpus[0](recipe.named("batch")) for recipe in recipes]

# %% id=placed-helpers tags=helpers
def calls_and_gpu(trace, names):
    """Show only the calls, by name, and when the GPU works."""
    sent = [span for span in trace if "sent" in span.detail]
    named = [(span.start, span.end, name) for span, name in zip(sent, names)]
    work = [(span.start, span.end, "") for span in trace.device_spans]
    return trace.with_lane("call", named).with_lane("the GPU", work)


print(f"With the weights along, four batches took {along.metrics().makespan:.0f} µs.")

# %% id=16-once guess within=0.08
# And how many µs do the four batches take with the weights put there once, as above?

# %% id=16-once reveal
warnings.simplefilter("ignore", agt.errors.ByValueWarning)  # from here on, we mean it
same, stayed = await on_cluster(placed)
both = calls_and_gpu(along, ["W0, W1, batch"] * 4), calls_and_gpu(stayed, ["W0", "W1", *"0123"])
titles = ["the weights go along with each batch", "the weights are put there once"]
picture = agt.compare_timelines(both, titles, lanes=())
parts = [span.duration / 1000 for span in stayed if "sent" in span.detail]
facts = {"w0": parts[0], "w1": parts[1], "each": parts[2]}
reveal("16-once", f"{stayed.metrics().makespan:.0f}", picture, **facts)

# %% id=16-once lesson
# Above are four long calls, each with 4 MB of weights. Below is one, which puts W0 there, and then five short ones: W1, and batches 0 to 3.

# %% id=16-once told truth=19153
# That's {w0:.1f} ms for W0, {w1:.1f} for W1, and {each:.1f} for each batch. The weights travel once and not four times, but each `put` is a call, too.

# %% id=check-placed tags=asserts
sent = [sum(span.detail.get("sent", 0) for span in trace) for trace in (along, stayed)]
assert sent[0] - sent[1] == 3 * sum(array.nbytes for array in weights)
assert all(np.allclose(one, other) for one, other in zip(results, same))
assert 2 < along.metrics().makespan / stayed.metrics().makespan < 3.5
assert [round(ms, 1) for ms in parts] == [10.9, 1.0, 1.8, 1.8, 1.8, 1.8]

# %% [markdown] id=exercise-place
# From here on, the warning is switched off, because a batch has to travel.
#
# ### Exercise: once for each GPU
#
# `gpus` is used like a list. Deal out the batches, and return the results in order. The weights are a single array here, `w0`, on the host like the batches. `layer(x, w)` makes an operation from a batch and weights that are an array on the worker. A handle is good on its own GPU only, so put the weights on each GPU, but no more than once. (A GPU that gets no batch may have them, too.)

# %% id=16-place starter
async def score_all(gpus, w0, batches, layer):
    results = []
    for i, x in enumerate(batches):
        gpu = gpus[i % len(gpus)]
        results.append(await gpu(agt.h2d(w0).and_then(lambda w, x=x: layer(x, w))))
    return results

# %% id=16-place solution
async def score_all(gpus, w0, batches, layer):
    there = [await gpu.put(w0) for gpu in gpus]
    results = []
    for i, x in enumerate(batches):
        k = i % len(gpus)
        results.append(await gpus[k](there[k].op().and_then(lambda w, x=x: layer(x, w))))
    return results

# %% id=16-place hints
# Before the loop, make a list with a handle for each GPU.
#
# `there = [await gpu.put(w0) for gpu in gpus]`. In the loop, GPU number `k` gets a recipe that begins with `there[k].op()`.

# %% id=16-place explanation
# Now the bytes that travel don't depend on the number of batches any more, apart from the batches themselves.

# %% id=16-place-check
check("16-place", score_all)

# %% [markdown] id=two
# ## Two at once
#
# So far we've awaited one call after the other. But a call without its `await` is a coroutine, and `asyncio.gather` has many under way at once. Now for batches of 1024 x 1024, which are 4 MB each. (From here on, we don't count putting the weights there.)

# %% id=four-batches
full = [agt.pin(x) for x in big.batches] * 3  # enough for later


def travelling(i, there):
    """The batch goes along."""
    x = full[i]
    w = agt.zip(*[w.op() for w in there])
    return w.and_then(lambda w: mlp(x, *w)).named(f"batch {i}")


async def several(gpus, used, recipe, n=4):
    """Put the weights there, and run n batches at once on the first `used` GPUs."""
    there = [[await gpu.put(w) for w in weights] for gpu in gpus]
    with agt.record() as trace:
        calls = [gpus[i % used](recipe(i, there[i % used])) for i in range(n)]
        results = await asyncio.gather(*calls)
    return results, trace


(expected, one_gpu), _ = await on_cluster(several, 1, travelling)
print(f"One GPU, four batches: {one_gpu.metrics().makespan / 1000:.1f} ms")

# %% id=lanes tags=helpers
from asyncgpu_course import LaneBar, draw_lanes, solved


def draw_doors(runs):
    """Draw when each GPU works, and when each batch leaves your process: it needs half a ms from there."""
    figure, axes = plt.subplots(figsize=(8, 0.6 + 1.1 * len(runs)), layout="constrained")
    lanes, told = [], []

    def bar(start, end, colour, words="", meaning=""):
        lanes[-1][1].append(LaneBar(start / 1000, end / 1000, colour, words, meaning))

    for name, trace in runs.items():
        work, free = {}, 0
        for span in trace.device_spans:  # each batch has a stream of its own
            start, _ = work.setdefault((span.device, span.stream), (span.start, 0))
            work[span.device, span.stream] = start, span.end
        lanes.append((f"{name}: your door", []))
        for i, (start, _) in enumerate(sorted(work.values())):
            bar(free, start - 500, "white", str(i))
            free = start - 500
        gpus = sorted({device for device, _ in work})
        for gpu in gpus:
            lanes.append((f"GPU {gpu[-1]}", []))
            for start, end in [times for (where, _), times in work.items() if where == gpu]:
                bar(start, end, "#e69f00", meaning="a GPU works")
        axes.axhline(len(lanes) - 0.5, color="0.8", linewidth=0.8)
        end = max(span.end for span in trace)
        busy = sum(end - start for start, end in work.values()) / end / len(gpus)
        whose = "each GPU" if len(gpus) > 1 else "the GPU"
        told.append(f"{name}: home after {end / 1000:.1f} ms, and {whose} works for {busy:.0%} of that.")
    draw_lanes(axes, lanes)
    axes.set(xlim=(0, None), xlabel="simulated time (ms)")
    words = "Lanes for your door and the GPUs: each GPU works in short bars, with long pauses between them."
    shown(figure, words, " ".join(["A white bar is a batch that leaves by your door.", *told]))

# %% id=16-two guess within=0.1
# One GPU took that long for four batches. So now two GPUs get eight, four for each. After how many ms is the last result home?

# %% id=16-two reveal
(results, two_gpus), _ = await on_cluster(several, 2, travelling, 8)
times_two = two_gpus.metrics().makespan / one_gpu.metrics().makespan
doors = {"One GPU, four batches": one_gpu, "Two GPUs, eight": two_gpus}
two_ms = f"{two_gpus.metrics().makespan / 1000:.0f}"
reveal("16-two", two_ms, lambda: draw_doors(doors), times=times_two)

# %% id=16-two told truth=80
# 41 ms, of course? It's {times:.1f} times as long, as if there were no second GPU. Look at your door. Each batch has 4 MB, which takes 10 ms to send, and all leave by one door: yours. Batch 7 stands in the queue for 70 ms, for work that takes less than one. Both GPUs wait for the post. (For real, too: 4 MB to each of two processes took 1.9 times as long as to one.)

# %% [markdown] id=two-read
# ### Who reads?
#
# Does the data have to come from *you*? Say that each machine has the batches on its own disk. Then send only the *name* of a batch, and the worker reads it:

# %% id=reading
folder = tempfile.TemporaryDirectory()  # stands for the disk of each machine
atexit.register(folder.cleanup)
files = [f"{folder.name}/{i}.npy" for i in range(4)]
for file, x in zip(files, big.batches):
    np.save(file, x)


def read(i):
    """Read a batch from a file on the worker's disk."""
    return agt.pin(np.load(files[i % 4]))


def reading(i, there):
    """The worker reads the batch."""
    w = agt.zip(*[w.op() for w in there])
    return w.and_then(lambda w: mlp(read(i), *w)).named(f"batch {i}")


(read_there, by_name), _ = await on_cluster(several, 2, reading, 8)
print(f"Eight batches: {two_gpus.metrics().makespan / 1000:.1f} ms through your door.")
print(f"Eight names: {by_name.metrics().makespan / 1000:.1f} ms.")

# %% [markdown] id=reading-read
# (`read` is called *inside* the lambda, by the worker. Outside of it, you'd read the file here, and send it.)
#
# The simulated clock doesn't count reading. At 2 GB/s a disk needs 2 ms for a batch, and each has four to read, so add 8 ms. That's still a seventh of the 80, thanks to the second *disk*. If both machines read from one file server, that's one door again.
#
# ## Or stay at home?
#
# You have a GPU, too, and it's right here. Is it quicker on its own than the two next door? All three together would do best, but let's keep it to one or the other. Here are the same batches, with the weights in place, and no reading counted on either side:

# %% id=at-home
async def at_home(n):
    """Run n batches on the one GPU of this process."""
    there = await agt.zip(*[agt.h2d(w).share() for w in weights])  # for all n to read
    with agt.record() as trace:
        await asyncio.gather(*[mlp(full[i], *there) for i in range(n)])
    return trace


async def both_ways(n):
    """Return how many µs n batches take on your one GPU, and on the two next door."""
    (_, away), _ = await on_cluster(several, 2, reading, n)
    return (await at_home(n)).metrics().makespan, away.metrics().makespan


took = {}
for n in (1, 2):
    took[n] = await both_ways(n)
    print("batches: {}. At home: {:.0f} µs. Next door: {:.0f} µs.".format(n, *took[n]))

# %% id=crossing tags=helpers
def draw_lines(took, cross):
    """Draw how long n batches take at home and next door."""
    figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for k, (label, color, marker) in enumerate(
        [("at home, one GPU", "#0072b2", "o"), ("next door, two GPUs", "#d55e00", "s")]
    ):
        ms = [times[k] / 1000 for times in took.values()]
        axes.plot(list(took), ms, color=color, marker=marker, label=label)
    top = axes.get_ylim()[1]
    here, there = took[1]
    axes.annotate("", (1, here / 1000), (1, there / 1000), arrowprops={"arrowstyle": "<->"})
    axes.text(0.92, (here + there) / 2000, "the trip", ha="right", va="center")
    before, after = (took[n][1] - took[n][0] for n in (cross - 2, cross))
    edge = cross - 2 + 2 * before / (before - after)
    axes.axvspan(-0.3, edge, color="#0072b2", alpha=0.08)
    axes.axvspan(edge, max(took) + 0.5, color="#d55e00", alpha=0.08)
    axes.text(edge - 0.1, 0.15, "stay at home", ha="right", color="#0072b2")
    axes.text(edge + 0.1, 0.15, "go next door", color="#d55e00")
    axes.set(xlim=(-0.3, max(took) + 0.5), ylim=(0, top), xlabel="batches", ylabel="simulated time (ms)")
    axes.set_xticks(list(took))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    judged = f"Up to {cross - 2} batches, your one GPU is faster. From {cross} on, the two next door are."
    shown(figure, "Two rising lines that cross: the one at home begins lower, and is steeper.", judged)

# %% id=16-worth guess within=0.25
# Next door, each GPU gets half of the batches. From which even number of batches on are those two faster than your one, on our simulated clock?

# %% id=16-worth reveal
for n in range(4, 13, 2):
    took[n] = await both_ways(n)
cross = min(n for n, (here, there) in took.items() if there < here)
reveal("16-worth", cross, lambda: draw_lines(took, cross))

# %% id=16-worth told truth=6
# The line of the two next door begins a millisecond higher (the trip), but then it's half as steep, because two GPUs share the batches. So if you have enough to do, the trip pays. That was the left column of our prices, though.

# %% [markdown] id=for-real
# ### And by the right column?
#
# A batch is half a millisecond of work for your GPU, so two GPUs save you a quarter of a millisecond for each. By the right column, a further call costs 2 to 4 ms. With a call for each batch, the trip never pays.
#
# But a `zip` of recipes is one recipe, so you can pack many batches into a call. Two such calls take 4 to 12 ms, and a further batch in them up to 0.2 ms, most of what it saves. So it takes dozens of batches, or more than a hundred. If they have to be read, the second disk saves you a millisecond more for each, and a dozen are enough.
#
# **So what do you have to send?** Few calls, with a lot in each. The names of data instead of the data, because 4 MB take 20 ms and more. And enough work: half of it has to take longer than the trip, because the other half is still to be done next door.

# %% id=check-two tags=asserts
assert 1.9 < times_two < 2.05
assert all(np.allclose(expected[i % 4], other) for i, other in enumerate(results))
assert all(np.allclose(one, other) for one, other in zip(results, read_there))
arrived = sorted(span.start for span in two_gpus.from_first().device_spans if span.kind == "h2d")
assert all(500 < there - 2.34e-3 * (k + 1) * full[0].nbytes < 750 for k, there in enumerate(arrived))
assert 7 < two_gpus.metrics().makespan / (by_name.metrics().makespan + 4 * 2000) < 7.5  # with the reading
work = [span.duration for span in one_gpu.device_spans]
assert 600 < sum(work) / 4 < 800
assert cross == 6
assert 0.26 < took[12][0] / 12 / 2000 < 0.28
assert all((there < here) == (n >= cross) for n, (here, there) in took.items())
assert 1000 < took[1][1] - took[1][0] < 1100
for k, (least, most) in enumerate([(480, 540), (240, 260)]):
    assert least < (took[12][k] - took[2][k]) / 10 < most


async def nothing_takes(n, pack=list):
    async def call(gpus):
        recipes = pack([agt.value(None) for _ in range(n)])
        await asyncio.gather(*[gpus[i % 2](recipe) for i, recipe in enumerate(recipes)])

    return (await on_cluster(call))[1].metrics().makespan


assert 1000 < await nothing_takes(1) < 1060
assert 25 < (await nothing_takes(24) - await nothing_takes(1)) / 23 < 30
all_packed = await nothing_takes(24, lambda recipes: [agt.zip(*recipes[k::2]) for k in range(2)])
assert all_packed - await nothing_takes(2) < 5

# %% [markdown] id=exercise-spread
# ### Challenge: all of them at once
#
# Twenty-four small batches and two GPUs. The version below takes 26,000 µs, and with all 24 calls under way at once it's 2,850. **Get below 2,600**, by packing them.
#
# The weights are there already, and `there[k]` is their handle on GPU `k`, which a recipe may use as often as it likes. The batches travel. `layer` brings its result home. Each GPU should do about as many batches as the others, however many GPUs there are, and the results come in order.

# %% id=16-challenge starter
async def spread(gpus, there, batches, layer):
    results = []
    for i, x in enumerate(batches):
        k = i % len(gpus)
        recipe = there[k].op().and_then(lambda w, x=x: layer(x, w))
        results.append(await gpus[k](recipe))
    return results

# %% id=16-challenge solution
async def spread(gpus, there, batches, layer):
    n = len(gpus)

    def share(k):
        mine = batches[k::n]
        return gpus[k](there[k].op().and_then(lambda w: agt.zip(*[layer(x, w) for x in mine])))

    parts = await asyncio.gather(*[share(k) for k in range(n)])
    return [parts[i % n][i // n] for i in range(len(batches))]

# %% id=16-challenge hints
# `asyncio.gather` awaits many things at once, and returns their results in order. How many calls do you need?
#
# One for each GPU. GPU `k` does `batches[k :: len(gpus)]`, and `agt.zip` makes one recipe of these.
#
# In a function that gets `k`: `mine = batches[k :: len(gpus)]`, and then `gpus[k](there[k].op().and_then(lambda w: agt.zip(*[layer(x, w) for x in mine])))`. The result of batch `i` is number `i // len(gpus)` of what GPU `i % len(gpus)` returned.

# %% id=16-challenge explanation
# Two calls instead of 24, and each of the 22 that you save is worth 25 µs. (`zip` is a little quicker than `overlap` here: these batches are so small that more streams cost more than they save.)

# %% id=16-challenge-check
check("16-challenge", spread)

# %% [markdown] id=key-points
# ## Key points
#
# - Even at its best, calling a worker takes as long as sixty to a hundred launches. So send a whole chain of work and not its steps.
# - Between real processes, each further call costs milliseconds again. So send few, with a lot in each.
# - Two GPUs next door save you half of the work, so the trip must cost less than that half. A second disk may save you more than a second GPU.
# - A recipe takes along whatever it refers to, each time that you send it. Put weights on each GPU once, and go on with handles.
# - Everything that you send leaves by one door. If the workers can get the data themselves, send its name.
#
# There's a [glossary](../docs/glossary.md) for new words. **Next:** the second sitting. It's half past eight in the evening when it begins, and it doesn't go as planned. Or go on to [17_teach_it_something](17_teach_it_something.ipynb).

# %% id=score
score("16")

# %% id=progress
progress("16")  # one of these is in the second sitting, and two are in the encores

# %% [markdown] id=plug
# ## Second sitting: somebody pulls the plug
#
# *40 minutes. It uses what the page has defined above, so run that first.*
#
# It's half past eight. Somebody vacuums next door, needs a socket, and GPU 1 is gone. On a simulated cluster, `gpu.lose(why)` is the vacuum cleaner, and an honest one: it tells you at once.
#
# Four batches of digits are under way, two on each GPU, and it happens after 1.2 ms.

# %% id=plug-picture tags=helpers
def draw_plug(trace, at):
    """Draw for each call the way there, the GPU's work and the way home, and when the plug is pulled."""
    figure, axes = plt.subplots(figsize=(8, 2.3), layout="constrained")
    lanes, told = [], []
    calls = sorted((span for span in trace if "sent" in span.detail), key=lambda span: span.name[-1])
    work = {}
    for span in trace.device_spans:  # each batch has a stream of its own
        work.setdefault((span.device, span.stream), []).append(span)
    for i, (call, spans) in enumerate(zip(calls, sorted(work.values(), key=lambda spans: spans[0].start))):
        ends = [call.start, spans[0].start, spans[-1].end, call.end]
        told.append(f"Batch {i} is computed after {ends[2]:.0f} µs, and its call ends after {ends[3]:.0f}.")
        hatches = ["", "", "////" if call.detail["gpu"] == 1 else ""]
        home = "a result that's lost" if call.detail["gpu"] == 1 else "a result on its way home"
        names = ["a recipe on its way", "the worker works", home]
        looks = zip(ends, ends[1:], ("white", "#e69f00", "#9fd0f5"), names, hatches)
        bars = [LaneBar(a, b, colour, "", name, hatch) for a, b, colour, name, hatch in looks]
        lanes.append((f"batch {i} (GPU {i % 2})", bars))
    axes.axvline(at, color="#b00040", linewidth=2, label="the plug is pulled")
    draw_lanes(axes, lanes)
    axes.set_xlabel("simulated time (µs)")
    shown(figure, f"A line where the plug is pulled, after {at:.0f} µs.", " ".join(told))

# %% id=run-plug
async def vacuum(gpus, at):
    calls = [gpus[i % 2](small(x).named(f"batch {i}")) for i, x in enumerate(batches)]
    answers = asyncio.gather(*calls, return_exceptions=True)
    await agt.sleep(at)
    gpus[1].lose("somebody vacuums")
    return await answers


print(f"Alone, such a call takes {quick.metrics().makespan:.0f} µs.")

# %% id=16-plug guess
# How many of the four batches are computed before the plug is pulled, and how many results do you get? (Type two numbers, such as "1 1".)

# %% id=16-plug reveal
answers, unplugged = await on_cluster(vacuum, 1200)
def what_came():
    for i, answer in enumerate(answers):
        here = isinstance(answer, np.ndarray)
        print(f"batch {i}:", f"{answer.size} numbers" if here else f"{type(answer).__name__}: {answer}")
    draw_plug(unplugged.from_first(), 1200)


done = [span.end for span in unplugged.from_first().device_spans if span.kind == "d2h"]
arrived = sum(isinstance(answer, np.ndarray) for answer in answers)
reveal("16-plug", f"{sum(end < 1200 for end in done)} {arrived}", what_came, last=max(done))

# %% id=16-plug told truth="4 2"
# The last was computed after {last:.0f} µs, and the hatched results never came home. Computed isn't delivered. Whoever waits for GPU 1 gets a `WorkerLostError`, at the very `await` that needs it, and everybody else goes on.

# %% [markdown] id=plug-read
# ### What you can't know
#
# From here, you can't know whether a lost batch was computed. What was on that GPU is gone, but you still have the recipe, and can send it once more. Ours are *idempotent*: they may run twice, since each writes only into its own arrays. A recipe that adds to a file would add twice.
#
# `return_exceptions=True` gave us the results of the others as well. Without it, `gather` only raises the first error.
#
# A real plug is worse. A machine that loses its power closes no connections, so nobody hears anything, and Dask believes in it for 30 seconds. So `agt.cluster` asks twice a second, and after 4 seconds of silence it calls the worker lost.

# %% id=check-plug tags=asserts
assert [type(answer).__name__ for answer in answers] == ["ndarray", "WorkerLostError"] * 2
assert len(unplugged.find("relu")) == 4
assert max(span.end for span in unplugged.device_spans) < 1200 + unplugged.spans[0].start

# %% [markdown] id=exercise-dies
# ### Exercise: carry on
#
# `recipe(x)` makes an operation for a batch, as `small` does. Run all batches, on all GPUs at once, and return the results in order. Any GPU may be lost at any time:
#
# - Then others do its batches, and what's done isn't done again.
# - A call to a lost GPU raises at once, so you needn't remember which ones are lost.
# - If no GPU is left, let the `agt.errors.WorkerLostError` out.
# - Any other error is a bug in the recipe. Let it out at once.

# %% id=16-dies starter
async def careful(gpus, recipe, batches):
    calls = [gpus[i % len(gpus)](recipe(x)) for i, x in enumerate(batches)]
    return await asyncio.gather(*calls)

# %% id=16-dies solution
async def careful(gpus, recipe, batches):
    async def one(i, x):
        for k in range(len(gpus)):
            try:
                return await gpus[(i + k) % len(gpus)](recipe(x))
            except agt.errors.WorkerLostError as error:
                lost = error
        raise lost

    return await asyncio.gather(*[one(i, x) for i, x in enumerate(batches)])

# %% id=16-dies hints
# Write a coroutine for one batch, which tries until it has a result, and `gather` one for each batch.
#
# It tries one GPU after the other, and begins with its own, number `i % len(gpus)`. Catch only `agt.errors.WorkerLostError`.
#
# `for k in range(len(gpus)):` with a `try` in it, and in that `return await gpus[(i + k) % len(gpus)](recipe(x))`. When the loop is over, no GPU was left.

# %% id=16-dies explanation
# Each attempt gets a recipe of its own, and a recipe costs nothing until somebody runs it. That's the quiet advantage of describing work first: you can have it done again.

# %% id=16-dies-check
check("16-dies", careful)

# %% [markdown] id=payoff
# ### The evening
#
# And now for two real processes, in which only the GPUs are simulated. Your `careful` sends them 256 handwritten digits in eight batches. As soon as all are on their way, we kill one process. No vacuum cleaner this time, but `SIGKILL`.
#
# This needs Dask, and `cryptography` for certificates: without these, anybody on your machine could send the processes code. Otherwise, simulated workers get the vacuum cleaner again, and no picture.

# %% id=two-processes tags=helpers
@contextlib.asynccontextmanager
async def two_processes():
    """Start two workers in processes of their own, and end them; where there's no Dask, simulate them."""
    try:
        from distributed import LocalCluster, Security

        only_us = Security.temporary()  # certificates, or any user of this machine could run code as you
    except ImportError as missing:
        print(f"These workers are simulated, too ({missing}): pip install 'asyncgpu_tutor[cluster]'")
        async with agt.cluster("sim", gpus=2, apart=True) as gpus:
            yield gpus, None
        return
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    async with (
        LocalCluster(asynchronous=True, security=only_us, **how) as local,
        agt.cluster(local.scheduler_address, device="sim", security=only_us) as gpus,
    ):
        for gpu in gpus:  # what has travelled isn't pinned any more, and we know
            await gpu(agt.value("ignore").map(warnings.simplefilter))
        yield gpus, local

# %% id=watched tags=helpers
class Watched:
    """A GPU that tells of each call: when it begins and ends, in real time, and whether a result came."""

    def __init__(self, gpu, number, tell):
        self.gpu, self.number, self.tell, self.notes = gpu, number, tell, []

    async def __call__(self, recipe):
        self.tell(recipe)
        begin, came = time.perf_counter(), False
        try:
            result = await self.gpu(recipe)
            came = True
            return result
        finally:
            self.notes.append((recipe, begin, time.perf_counter(), came))


class Evening:
    """Notes who sends which batch when."""

    def __init__(self, pictures):
        self.pictures, self.recipes, self.sent = pictures, [], []
        self.begun = asyncio.get_running_loop().create_future()

    def small(self, x):
        number = next(i for i, picture in enumerate(self.pictures) if picture is x)
        self.recipes.append((number, small(x)))
        return self.recipes[-1][1]

    def count(self, recipe):
        self.sent.append(recipe)
        if len(self.sent) == len(self.pictures):
            self.begun.set_result(None)

    async def ready(self, gpus):
        """Warm the workers up, and return the same GPUs, watched."""
        self.pid = await gpus[1](agt.ones(1).map(lambda _: os.getpid()))
        await asyncio.gather(*[gpus[i % 2](small(x)) for i, x in enumerate(self.pictures)])
        return [Watched(gpu, i, self.count) for i, gpu in enumerate(gpus)]

    async def all_sent(self, task):
        """Wait until all batches are on their way, or the task is over."""
        await asyncio.wait([task, self.begun], return_when=asyncio.FIRST_COMPLETED)


def kill(gpu, pid, local):
    """End the worker's process without a word to anybody, and have Dask start none in its place."""
    if local is None:
        gpu.lose("it's only simulated, so it went quietly")
    else:
        next(nanny for nanny in local.workers.values() if nanny.pid == pid).close_gracefully()
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def draw_calls(watched, recipes, killed):
    """Draw the calls for each batch; `recipes` has pairs of a batch's number and a recipe."""
    figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
    batch_of = {id(recipe): i for i, recipe in recipes}
    lanes = [(f"batch {i}", []) for i in range(8)]
    for gpu in watched:
        for recipe, begin, end, came in gpu.notes:
            times = 1000 * (begin - killed), 1000 * (end - killed)
            color, hatch = ("#9fd0f5", "#f5c99f")[gpu.number], "" if came else "////"
            told = f"GPU {gpu.number}: " + ("a result" if came else "no answer")
            lanes[batch_of[id(recipe)]][1].append(LaneBar(*times, color, "", told, hatch))
    axes.axvline(0, color="#b00040", linewidth=2, label="GPU 1's process is killed")
    draw_lanes(axes, lanes)
    axes.set_xlim(left=1000 * (min(note[1] for gpu in watched for note in gpu.notes) - killed) - 8)
    axes.set_xlabel("real time since the kill (ms)")
    came, lost = (sum(note[-1] is how for gpu in watched for note in gpu.notes) for how in (True, False))
    caption = f"Each bar is a call: {came} brought a result, and {lost} got no answer."
    shown(figure, "Lanes for eight batches, and a line where GPU 1's process is killed.", caption)

# %% id=run-payoff
careful = solved("16-dies", careful)
pictures = [agt.pin(x) for x in digits.batches.reshape(8, 32, 64)]
evening = Evening(pictures)  # it notes who sends which batch when

async with two_processes() as (gpus, local):
    watched = await evening.ready(gpus)
    task = asyncio.create_task(careful(watched, evening.small, pictures))
    await evening.all_sent(task)
    killed = time.perf_counter()
    kill(gpus[1], evening.pid, local)
    found = np.concatenate(await task)
    waited = time.perf_counter() - killed

quality = digits.quality(found.reshape(4, 64))
print(f"{len(evening.sent)} recipes were sent for {len(pictures)} batches.")
threes = f"{quality.true_positives} of {quality.positives} threes found"
print(f"{found.size} pictures were read, and {threes}.")
if local is not None:
    print(f"From the kill to the last result: {waited:.1f} s of real time.")
    draw_calls(watched, evening.recipes, killed)

# %% id=payoff-home
with agt.record() as stayed_here:
    await asyncio.gather(*[small(x) for x in pictures])
home_us = stayed_here.metrics().makespan
print(f"One GPU at home reads these eight batches in {home_us:.0f} simulated µs.")

# %% [markdown] id=payoff-read
# Nothing is missing, although a worker was lost while it had work.
#
# If you have the picture, a hatched call ended when the bad news came: the operating system closes a dead process's connections. If a blue bar begins right there, your `careful` sent the batch on at once. With white in between, it waited for the others first.
#
# It's a rescue, not a race. On the simulated clock, your GPU at home would be done with all eight before a single call came back.
#
# And the real machines under those desks? Your program needs the address of a Dask scheduler instead of `"sim"`, and over there this package and the same Python. But choose who can reach that address, because whoever does can run code on your workers. [docs/cluster.md](../docs/cluster.md) has the steps.

# %% id=check-payoff tags=asserts
assert np.allclose(found, np.maximum(digits.batches @ digits.w0 @ digits.w1, 0).ravel(), atol=1e-3)
assert len(evening.sent) >= len(pictures)
assert stayed_here.metrics().makespan < min(span.duration for span in calls)
folder.cleanup()  # the files of `read`

# %% [markdown] id=farewell
# ### Good night
#
# When a worker dies, every await that needs it raises an error, and no other does. If its machine lost its power, that takes 4 seconds. You can send a recipe to somebody else, but the arrays are gone.
#
# **Next:** in [17_teach_it_something](17_teach_it_something.ipynb) you teach a small language model a song. Until then, be kind to whoever vacuums.

# %% id=score-second
score("16")

# %% [markdown] id=own-prices
# ## Encore: your own prices
#
# *For a day when you have Dask.*
#
# Two real processes get the code of `reading` and a batch's name, but don't run it. So this is the bare trip, with a call for each batch, and packed in two.

# %% id=carrying tags=helpers
from IPython.display import Markdown, display


async def quickest(call):
    """Return how many ms of real time the quickest of 20 calls took."""
    clock = [time.perf_counter()]
    for _ in range(20):
        await call()
        clock.append(time.perf_counter())
    return 1000 * np.diff(clock).min()


def draw_trip(each, packed, saves):
    """Draw what it costs to carry n batches, and what that saves; say from where on the trip pays."""
    figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
    n, rows, told = np.array([0, max(packed)]), [("two calls at once, with recipes", each[2])], []
    looks = [("a call for each batch", each, "#d55e00", "s"), ("packed in two calls", packed, "#009e73", "D")]
    for name, ms, color, marker in looks:
        rise, run = np.array([(all_ms - ms[2], n - 2) for n, all_ms in ms.items()]).T
        more = rise @ run / (run @ run)  # a straight line that begins where two calls were measured
        first = ms[2] - 2 * more
        axes.plot(list(ms), ms.values(), marker, color=color, markersize=10 if ms is each else 6)
        label = f"the trip: {name} (real)"
        axes.plot(n, first + more * n, "--", color=color, marker=marker, markevery=[], label=label)
        rows.append(("a further " + ("call" if ms is each else "recipe in the same call"), more))
        pays = []
        for what, saved in saves.items():
            if first > n[-1] * (saved - more):
                pays.append(f"not up to {n[-1]} for {what}")
                continue
            at = max(first / (saved - more), 1)
            pays.append(f"from about {at:.0f} for {what}")
            axes.plot(at, at * saved, "o", color="black", markersize=9)
            above = {"xytext": (0, 11), "textcoords": "offset points", "ha": "center"}
            above["bbox"] = {"color": "white", "pad": 0}  # or a line strikes it through
            axes.annotate(f"{at:.0f}", (at, at * saved), weight="bold", **above)
        told.append(f"{name}: {', and '.join(pays)}.")
    kinds = [("simulated", "#8a4fa3"), ("assumed", "#0072b2")]
    for (name, ms), (kind, color) in zip(saves.items(), kinds):
        axes.plot(n, ms * n, c=color, label=f"saved: half of {name}, {ms:.2f} ms a batch ({kind})")
    table = ["| | on your machine |", "|---|---|", *(f"| {row} | {ms:.1f} ms |" for row, ms in rows)]
    display(Markdown("\n".join(table)))
    top = max(*packed.values(), *[ms * max(packed) for ms in saves.values()])
    axes.set(xlim=(0, 1.04 * n[-1]), ylim=(0, 1.1 * top), xlabel="batches", ylabel="time (ms)")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), labelspacing=1)
    lines = "Two dashed lines for what the trip costs, steep and flat, and two solid ones for what it saves."
    told = f"From how many batches on does the trip pay? With {told[0]} With all {told[1]}"
    shown(figure, lines, told)

# %% id=run-carrying tags=helpers
# What the trip costs, and from where on it pays.
def carried(numbers):
    """Return recipes that take along what `reading` needs for these batches, and only count it there."""
    return [agt.value(None).map(lambda _, i=i: len((reading, i))) for i in numbers]


each, packed = {}, {}
async with two_processes() as (gpus, local):

    async def crowd_of(recipes):
        await asyncio.gather(*[gpus[i % 2](recipe) for i, recipe in enumerate(recipes)])

    for n in (2, 12, 24):
        each[n] = await quickest(lambda: crowd_of(carried(range(n))))
    packed[2] = each[2]  # the same calls
    for n in (24, 64, 128):
        packed[n] = await quickest(lambda: crowd_of(agt.zip(*carried(range(k, n, 2))) for k in (0, 1)))
if local is not None:
    saves = {"the work": took[12][0] / 12 / 2000, "the reading": 2 / 2}
    draw_trip(each, packed, saves)

# %% [markdown] id=own-prices-read
# The dashed lines are the trip, at your machine's prices, and the solid ones are what it saves you. From a black dot on, it pays. On a busy machine, there may be none.

# %% [markdown] id=big-machine
# ## Encore: one big machine
#
# *For a day when you have a GPU to buy.*
#
# This page works because our batches don't need each other. In training they do: in each step, the GPUs add up their gradients. Here two GPUs add up 64 MB, first in one box with NVLink:

# %% id=run-network
async def add_up(machines):
    async with agt.cluster("sim", gpus=2, machines=machines) as gpus:
        group = await gpus.group()
        with agt.record() as trace:
            sums = [group.all_reduce(agt.ones(1 << 24)) for _ in gpus]
            await asyncio.gather(*[gpu(total) for gpu, total in zip(gpus, sums)])
    return trace, min(span.duration for span in trace.find("all_reduce"))


in_a_box, box_took = await add_up(1)
print(f"In one box, the all-reduce takes {box_took:.0f} µs.")

# %% id=16-network guess within=0.25
# Now they're in two machines, with a network between them that moves 3.6 GB in a second each way. (That goes past your Python and Dask, so it's much faster than the door.) How many times as long does the same all-reduce take?

# %% id=16-network reveal
between, network_took = await add_up(2)
times_network = network_took / box_took
ms = network_took / 1000
titles = [f"one box: all-reduce {box_took:.0f} µs", f"two machines: all-reduce {ms:.1f} ms"]
picture = agt.compare_timelines([t.of("sim:1") for t in (in_a_box, between)], titles, lanes=("streams",))
reveal("16-network", f"{times_network:.0f}", picture, ms=ms)

# %% id=16-network lesson
# Shown is GPU 1, which comes last and needn't wait. In one box the all-reduce is the sliver on the left. Between two machines it's all you see.

# %% id=16-network told truth=76
# Each sends the other half of its numbers, adds up, and then sends half of the sums. That's 64 MB in all (67 million bytes), which take 18.6 ms at 3.6 GB/s, and with a little for the start it's {ms:.1f}. Two real H200s (November 2026), with sockets on one host for a network, took 248 µs and 19.4 ms.
#
# So a training step of 17 ms, with four layers of 4096 x 4096, spends a millisecond on its gradients over NVLink. Over those sockets it would be nearly 80, and at most 17 of them can hide behind the work. Most office networks are slower still: at 1 Gb/s, our 64 MB would take half a second.

# %% [markdown] id=big-machine-read
# If your GPUs have a lot to say to each other and your network is an ordinary one, buy the second GPU for the same box. Use a second machine for pieces that don't need each other.

# %% id=check-network tags=asserts
assert [round(box_took), round(network_took / 100), round(times_network)] == [248, 188, 76]

# %% [markdown] id=exercise-handles
# ## Encore: leave it there
#
# *For a day when something is repeated until it's good enough.*
#
# ### Exercise: leave it there
#
# `step(x)` improves `x` a little. It yields two arrays: the new `x`, and an array with a single number that says how far it moved. Repeat it until that number is below `limit`, and bring home the last `x`. In the version below, `x` travels both ways in each round. Let it stay there, with one call a round. (`agt.value(array)` yields an array as it is, so that a `zip` can have it.)

# %% id=16-handles starter
async def settle(gpu, x, step, limit):
    def home(arrays):
        return agt.zip(agt.d2h(arrays[0]), agt.d2h(arrays[1]))

    while True:
        x, moved = await gpu(agt.h2d(x).and_then(step).and_then(home))
        if moved[0] < limit:
            return x

# %% id=16-handles solution
async def settle(gpu, x, step, limit):
    def look(arrays):
        return agt.zip(agt.value(arrays[0]), agt.d2h(arrays[1]))

    x = await gpu.put(x)
    while True:
        x, moved = await gpu(x.op().and_then(step).and_then(look))
        if moved[0] < limit:
            return await gpu(x.op().to_host())

# %% id=16-handles hints
# Put `x` there before the loop, and bring it home behind it. In between, `x` is a handle.
#
# A recipe may yield several things. Arrays come back as handles, and host arrays come back as they are.
#
# `agt.zip(agt.value(arrays[0]), agt.d2h(arrays[1]))` yields the array itself and the number. You get a handle and four bytes.

# %% id=16-handles explanation
# The loop runs here, the data stays there, and four bytes tell you when to stop.

# %% id=16-handles-check
check("16-handles", settle)

# %% [markdown] id=memory
# ## Encore: let go
#
# *For a day when the GPU over there is full.*
#
# A handle keeps its array alive, however far away. When the last handle goes, the memory is freed. Python sees to that, which is just the trouble: it's easy to hold something without knowing.
#
# ### Exercise: only the best
#
# Each of `recipes` yields an array and a score, so a call gives you a pair: a handle, and a host array with one number. Send each recipe once, and return the handle with the best score. But the GPU has room for only two of these arrays, the best one so far and the one that's being made.

# %% id=16-drop starter
async def best(gpu, recipes):
    found = [await gpu(recipe) for recipe in recipes]
    return max(found, key=lambda pair: pair[1][0])[0]

# %% id=16-drop solution
async def best(gpu, recipes):
    top, kept = -np.inf, None
    for recipe in recipes:
        array, score = await gpu(recipe)
        if score[0] > top:
            top, kept = score[0], array
        del array
    return kept

# %% id=16-drop hints
# Don't collect the handles. Keep the best one in a variable, and overwrite it when a better one comes.
#
# Is there one array too many? Think of the loser of the last round. Which variable still refers to it while the next array is being made?
#
# `del array`, at the end of each round.

# %% id=16-drop explanation
# The variable of a loop is a handle, too. It lives until it's overwritten, and that happens only when the next array is there already. In PyTorch, the same thing has cost many people a night.

# %% id=16-drop-check
check("16-drop", best)
