"""Source of notebooks/16_several_machines.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Several machines
#
# There's a machine under a colleague's desk, with a GPU that has nothing to do after six. You may use it. But it's another machine, with another Python, and none of your launches can reach it. Something has to travel.
#
# **What do you have to send, so that it's worth the trip?**
#
# After this page you can choose the size of a recipe by the price of a call, place data once and go on with handles, keep several workers busy, carry on when one of them dies, and say when one big machine is the better answer.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | You need | [04_combinators](04_combinators.ipynb), [06_await](06_await.ipynb) and [07_async_mlp](07_async_mlp.ipynb), but neither a GPU nor a second machine |

# %% id=setup
import asyncio
import contextlib
import functools
import os
import signal
import time
import warnings

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution, solved

device = agt.use("sim")
device

# %% [markdown] id=next-door
# ## A GPU next door
#
# (All GPUs on this page are simulated, even if you have a real one. That way everybody has two.)
#
# First, something to send. Here's the network of chapter 07, exactly as you left it:

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
        return gemm(x, w0, hidden).and_then(lambda hidden: matvec(hidden, w1, output)).and_then(relu)

    room = agt.zip(agt.h2d(x, "x"), agt.zeros((n, w0.shape[1])), agt.zeros(n))
    return room.and_then(stages).to_host()

# %% [markdown] id=cluster-text
# And here are two GPUs in the next room. An operation is only a description of work, and a description can travel. So `await gpu(op)` sends it to a **worker**, a process with a GPU of its own, which runs it and sends the result back.
#
# Arrays don't come back. They stay on their GPU, and you get a handle, a `RemoteArray`. Its `op()` stands for the array in the next operation that you send. And `await gpu.put(array)` copies an array from here to there.
#
# With that, the obvious plan is to do over there what you'd do here, a step at a time:

# %% id=step-by-step
digits = agt.data.load_digits()
w0, w1 = agt.pin(digits.w0), agt.pin(digits.w1)
batches = [agt.pin(x) for x in digits.batches]


async def step_by_step(gpus, x, w0, w1):
    gpu, n = gpus[0], len(x)
    x, w0, w1 = await gpu.put(x, "x"), await gpu.put(w0, "W0"), await gpu.put(w1, "W1")
    hidden = await gpu(agt.zeros((n, n)).named("hidden"))
    output = await gpu(agt.zeros(n).named("output"))
    await gpu(agt.zip(x.op(), w0.op(), hidden.op()).and_then(lambda a: gemm(*a)).named("gemm"))
    await gpu(agt.zip(hidden.op(), w1.op(), output.op()).and_then(lambda a: matvec(*a)).named("matvec"))
    await gpu(output.op().and_then(relu).named("relu"))
    return await gpu(output.op().to_host().named("home"))


async def on_cluster(act, *args, **options):
    """Run act(gpus, ...) on two GPUs in the next room; return its result and the trace."""
    async with agt.cluster("sim", gpus=2, apart=True, **options) as gpus:
        with agt.record() as trace:
            result = await act(gpus, *args)
    return result, trace


scores, slow = await on_cluster(step_by_step, batches[0], w0, w1)
print(f"That took {slow.metrics().makespan:.0f} µs.")

# %% [markdown] id=apart-text
# `apart=True` is the part that hurts: a simulated cluster then charges what it costs to call a real process.

# %% id=predict-busy
busy = Prediction(
    f"For how many of these {slow.metrics().makespan:.0f} µs was the GPU at work?", within=0.5
)
busy

# %% id=commit-busy
busy.commit(...)

# %% id=plot-slow
slow.plot(
    title="One batch, a step at a time",
    lanes=("host", "streams"),
    lesson="Nine white ranges side by side, a call each. In the middle of each is one sliver of work, and nothing else.",
)

# %% id=reveal-busy
at_work = slow.metrics().device_active
busy.reveal(f"{at_work:.0f}", f"That's {at_work / slow.metrics().makespan:.1%} of the time.")

# %% [markdown] id=read-slow
# Each white range is a call, from the moment you send something to the moment you have the answer. Somewhere in the middle there's a sliver, and that's the GPU. In chapter 07 we complained about a Python that took 28 µs for a launch. Those were the days.

# %% id=check-slow tags=asserts
calls = [span for span in slow if "sent" in span.detail]
assert len(calls) == 9
assert all(1000 < span.duration < 1100 for span in calls)
assert at_work < 0.004 * slow.metrics().makespan
assert np.allclose(scores, np.maximum(digits.batches[0] @ digits.w0 @ digits.w1, 0), atol=1e-3)

# %% [markdown] id=prices
# ## Three prices
#
# There are three ways to have something done, and three prices:
#
# | | takes about |
# |---|---|
# | launch a kernel, from the process that has the GPU | 10 µs |
# | call a worker that has been started for you (Dask says *actor*) | 1 ms |
# | submit a *task*, for which Dask's scheduler finds a worker | 10 ms |
#
# The last two were measured with [Dask](https://distributed.dask.org) and two processes of one machine, in November 2026. Dask is what starts our workers on other machines. If it's installed here, we can look for ourselves:

# %% id=prices-live
@contextlib.asynccontextmanager
async def two_processes():
    """Start two workers in processes of their own, and end them; or simulate them, where there's no Dask."""
    try:
        from distributed import LocalCluster
    except ImportError:
        print("Dask isn't installed here (pip install distributed), so these two workers are simulated as well.")
        async with agt.cluster("sim", gpus=2, apart=True) as gpus:
            yield gpus, None
        return
    quiet = {"dashboard_address": None, "silence_logs": 50}
    async with LocalCluster(n_workers=2, threads_per_worker=1, asynchronous=True, **quiet) as local:
        async with agt.cluster(local.scheduler_address, device="sim") as gpus:
            for gpu in gpus:  # an array that has travelled isn't pinned any more, and we know
                await gpu(agt.value("ignore").map(warnings.simplefilter))
            yield gpus, local


async def seconds(act, times=20):
    """The shortest time that it takes."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        await act()
        taken.append(time.perf_counter() - begin)
    return min(taken)


async with two_processes() as (gpus, local):
    if local is not None:
        from distributed import Client

        async with Client(local, asynchronous=True) as client:
            a_task = await seconds(lambda: client.submit(os.getpid, pure=False))
        a_call = await seconds(lambda: gpus[0](agt.value(None)))
        print(f"A task takes {a_task / a_call:.1f} times as long as a call of a worker.")

# %% [markdown] id=prices-read
# That's why `gpu(op)` is a call and not a task. It still costs as much as a hundred launches. If it should be less than a tenth of the bill, the recipe has to keep the GPU busy for ten milliseconds. So don't send steps. Send the whole thing.

# %% [markdown] id=exercise-recipe
# ### Exercise: one call instead of many
#
# `x` is a handle. Each of `stages` is a function that gets an array and returns an operation, as `relu` does. Run all of them on `x`, one after the other, and bring home the result. The version below pays for every stage.

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

# %% [markdown] id=travels
# ## What travels along
#
# A recipe takes along whatever it holds, and that includes arrays. Here's a layer with 4 MB of weights, and four small batches. The recipe refers to `w`, which is on the host:

# %% id=by-value
rng = np.random.default_rng(0)
w = agt.pin(rng.random((1024, 1024), dtype=np.float32))
wide = [agt.pin(rng.random((64, 1024), dtype=np.float32)) for _ in range(4)]


def layer(x, w):
    room = agt.zip(agt.h2d(x, "x"), agt.zeros((len(x), w.shape[1])))
    return room.and_then(lambda arrays: gemm(arrays[0], w, arrays[1])).to_host()


async def by_value(gpus):
    return [await gpus[0](agt.h2d(w, "w").and_then(lambda w, x=x: layer(x, w)).named("batch")) for x in wide]


with warnings.catch_warnings(record=True) as caught:
    results, along = await on_cluster(by_value)
print(f"{along.metrics().makespan:.0f} µs\n\n{caught[0].category.__name__}: {caught[0].message}")

# %% [markdown] id=by-value-read
# It works, but you're told what it costs. That's a rule of this package: data moves only where you can see it. The cure is in the message. `put` the weights there *once*, and let each recipe use the handle's `op()`:

# %% id=placed
async def placed(gpus):
    there = await gpus[0].put(w, "w")
    return [await gpus[0](there.op().and_then(lambda w, x=x: layer(x, w)).named("batch")) for x in wide]

# %% id=predict-placed
once = Prediction(
    f"With the weights along, four batches took {along.metrics().makespan:.0f} µs. "
    "How many µs do they take with the weights put there once?",
    within=0.15,
)
once

# %% id=commit-placed
once.commit(...)

# %% id=run-placed
warnings.simplefilter("ignore", agt.errors.ByValueWarning)  # each batch travels once, and we mean it
again, stayed = await on_cluster(placed)
agt.compare_timelines(
    [along, stayed],
    ["the weights go along with each batch", "the weights are put there once"],
    lanes=("host", "streams"),
    lesson="Above are four long calls. Below is one long call, and after it four short ones.",
)

# %% id=reveal-placed
once.reveal(f"{stayed.metrics().makespan:.0f}", "The weights still have to get there once, and each batch too.")

# %% [markdown] id=placed-read
# (See the line that switches the warning off? A batch that's used once has to travel once, and in its recipe it needs no call of its own. So there we mean it.)

# %% id=check-placed tags=asserts
sent = [sum(span.detail.get("sent", 0) for span in trace) for trace in (along, stayed)]
assert sent[0] - sent[1] == 3 * w.nbytes
assert np.allclose(results, again) and np.allclose(again[0], wide[0] @ w, rtol=1e-3)
assert caught[0].category is agt.errors.ByValueWarning and "4,456,448 bytes" in str(caught[0].message)
assert 2 < along.metrics().makespan / stayed.metrics().makespan < 3

# %% [markdown] id=exercise-place
# ### Exercise: once for each GPU
#
# Now there are several GPUs. Deal out the batches, and return the results in order. `weights` and the batches are host arrays, and `layer(x, w)` makes an operation from a host array and a handle. A handle is good on its own GPU only, so each GPU needs the weights, but only once.

# %% id=16-place starter
async def score_all(gpus, weights, batches, layer):
    results = []
    for i, x in enumerate(batches):
        gpu = gpus[i % len(gpus)]
        results.append(await gpu(agt.h2d(weights).and_then(lambda w: layer(x, w))))
    return results

# %% id=16-place solution
async def score_all(gpus, weights, batches, layer):
    there = [await gpu.put(weights) for gpu in gpus]
    results = []
    for i, x in enumerate(batches):
        k = i % len(gpus)
        results.append(await gpus[k](there[k].op().and_then(lambda w: layer(x, w))))
    return results

# %% id=16-place hints
# Before the loop, make a list with a handle for each GPU.
#
# `there = [await gpu.put(weights) for gpu in gpus]`. In the loop, GPU number `k` gets a recipe that begins with `there[k].op()`.

# %% id=16-place explanation
# Now the bytes that travel don't depend on the number of batches any more, apart from the batches themselves.

# %% id=16-place-check
check("16-place", score_all)

# %% [markdown] id=exercise-handles
# ### Exercise: leave it there
#
# The other direction is just as easy to get wrong. `step(x)` improves `x` a little. It yields two arrays: the new `x`, and an array of one number that says how much it moved. Repeat it until that number is below `limit`, and bring home the last `x`. In the version below, `x` travels in both directions in each round. Call the GPU only once a round.

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
# ## Let go
#
# A handle keeps its array alive, however far away it is. When the last handle goes, the memory over there is freed. Python does that for you, by counting who still refers to it, and so it's easy to forget that you're holding something. In a long night of experiments, that fills a GPU.

# %% [markdown] id=exercise-drop
# ### Exercise: only the best
#
# Each of `recipes` yields an array and a score, so you get a pair `(handle, score)`. Return the handle with the best score. But the GPU has room for only two of these arrays: the best one so far, and the one that's being made.

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

# %% [markdown] id=two
# ## Two at once
#
# So far we've awaited one call after the other. Now we start all four batches of chapter 07 and then wait, as we did there, with two batches on each GPU. `mlp` stays as it is, because its functions run over there and get handles there. At 1024 x 1024, each batch keeps a GPU busy for 700 µs.

# %% id=four-batches
big = agt.data.seed_inputs(1024)
big_batches = [agt.pin(x) for x in big.batches]


def travelling(i, weights):
    """The batch goes along."""
    x = big_batches[i]
    return agt.zip(*[w.op() for w in weights]).and_then(lambda w: mlp(x, *w)).named(f"batch {i}")


async def four(gpus, used, recipe):
    there = [[await gpu.put(w) for w in (big.w0, big.w1)] for gpu in gpus]
    for _ in range(2):  # the first time is a warm-up
        with agt.record() as trace:
            results = await asyncio.gather(*[gpus[i % used](recipe(i, there[i % used])) for i in range(4)])
    return results, trace


(expected, one_gpu), _ = await on_cluster(four, 1, travelling)
print(f"one GPU: {one_gpu.metrics().makespan:.0f} µs")

# %% id=predict-two
gain = Prediction("How many times faster are two GPUs? (1 is no faster.)", within=0.1)
gain

# %% id=commit-two
gain.commit(...)

# %% id=run-two
(results, two_gpus), _ = await on_cluster(four, 2, travelling)
agt.compare_timelines(
    [one_gpu, two_gpus],
    ["1024 x 1024, one GPU", "1024 x 1024, two GPUs"],
    lanes=("host", "streams"),
    lesson="Both runs are equally long. Each batch arrives about 10 ms after the one before, and until then its GPU waits.",
)

# %% id=reveal-two
times_two = one_gpu.metrics().makespan / two_gpus.metrics().makespan
gain.reveal(f"{times_two:.2f}", "Look at when the work begins.")

# %% [markdown] id=two-read
# It's the villain of chapter 07 in a new coat. Each batch has 4 MB, which takes 10 ms on the way, because all of them leave by the same door: yours. Both GPUs wait for the post.
#
# You can't speed up the post. But do the numbers have to come from you? Mostly they're in a file, and a worker can read a file. A function in a recipe runs over there. So we send the *number* of the batch, and the worker gets it by itself:

# %% id=reading
@functools.cache
def read(i):
    """Stands for a file that each machine has. What was read once is kept in pinned memory."""
    return agt.pin(agt.data.seed_inputs(1024).batches[i])


def reading(i, weights):
    """The worker reads the batch."""
    return agt.zip(*[w.op() for w in weights]).and_then(lambda w: mlp(read(i), *w)).named(f"batch {i}")


(alone, one_reads), _ = await on_cluster(four, 1, reading)
(both, two_read), _ = await on_cluster(four, 2, reading)
agt.compare_timelines(
    [one_reads, two_read],
    ["the worker reads: one GPU", "the worker reads: two GPUs"],
    lanes=("host", "streams"),
    lesson="The run is a tenth as long. After half a millisecond the work begins, and two GPUs are done sooner than one.",
)

# %% id=reading-won
print(f"{one_gpu.metrics().makespan:.0f} µs have become {two_read.metrics().makespan:.0f}.")
print(f"Two GPUs are {one_reads.metrics().makespan / two_read.metrics().makespan:.2f} times as fast as one.")

# %% id=check-two tags=asserts
assert 0.95 < times_two < 1.05
assert all(np.allclose(one, other) for one, other in zip(expected, results))
assert all(np.allclose(one, other) for one, other in zip(expected, both))
assert one_gpu.metrics().makespan > 8 * two_read.metrics().makespan
assert 1.25 < one_reads.metrics().makespan / two_read.metrics().makespan < 1.45

# %% [markdown] id=exercise-spread
# ### Exercise: all of them at once
#
# Eight small batches and two GPUs. One after the other, they take 9.6 ms. **Get below 3.** The weights are there already: `there[k]` is their handle on GPU `k`. The batches travel, and each GPU should do about as many as the others.

# %% id=16-spread starter
async def spread(gpus, there, batches, layer):
    results = []
    for i, x in enumerate(batches):
        k = i % len(gpus)
        results.append(await gpus[k](there[k].op().and_then(lambda w: layer(x, w))))
    return results

# %% id=16-spread solution
async def spread(gpus, there, batches, layer):
    def send(i, x):
        k = i % len(gpus)
        return gpus[k](there[k].op().and_then(lambda w: layer(x, w)))

    return await asyncio.gather(*[send(i, x) for i, x in enumerate(batches)])

# %% id=16-spread hints
# `asyncio.gather` awaits many things at once, and returns their results in order.
#
# All results are those of the last batch? A lambda looks up `x` when it runs, and by then the loop is over. Make each recipe in a function that gets `x` as an argument.

# %% id=16-spread explanation
# All calls are on their way at the same time, so you pay for the millisecond once.

# %% id=16-spread-check
check("16-spread", spread)

# %% [markdown] id=plug
# ## Somebody pulls the plug
#
# It's half past eight. Somebody vacuums under your colleague's desk, and GPU 1 is gone. We can rehearse that: `gpu.lose(...)` on a simulated cluster is the vacuum cleaner.
#
# Four batches are under way, two on each GPU. After 1.2 ms both GPUs are done with their work, and the answers are on their way home. That's when it happens.

# %% id=predict-plug
survivors = Prediction(
    "Four batches were computed, two on each GPU, before GPU 1 was lost. How many results do you get?"
)
survivors

# %% id=commit-plug
survivors.commit(...)

# %% id=run-plug
def small(x):
    """The whole network as one recipe that needs nothing from its worker: the weights travel along."""
    return agt.zip(agt.h2d(w0), agt.h2d(w1)).and_then(lambda w: mlp(x, *w))


async def vacuum(gpus):
    calls = [gpus[i % 2](small(x).named(f"batch {i}")) for i, x in enumerate(batches)]
    answers = asyncio.gather(*calls, return_exceptions=True)
    await agt.sleep(1200)
    gpus[1].lose("somebody vacuums")
    return await answers


answers, unplugged = await on_cluster(vacuum)
for i, answer in enumerate(answers):
    print(f"batch {i}:", answer[:3] if isinstance(answer, np.ndarray) else f"{type(answer).__name__}: {answer}")
unplugged.plot(
    title="GPU 1 is lost",
    lanes=("host", "streams"),
    lesson="All four batches are computed. Two of the four calls end early, at 1200 µs, without an answer.",
)

# %% id=reveal-plug
arrived = sum(isinstance(answer, np.ndarray) for answer in answers)
survivors.reveal(arrived, "A result counts when it's here.")

# %% [markdown] id=plug-read
# Computed isn't delivered. Everybody who waits for GPU 1 gets a `WorkerLostError` that names it, at the very `await` that needs it, and the others go on. On real machines it takes up to 5 seconds until a dead process is noticed. (A machine that loses its power closes no connections, so Dask believes in it for 30 seconds.)
#
# Nobody brings back what was on that GPU, handles included. But you still have the recipe. A recipe is a description, so you can send it once more, to somebody else.

# %% id=check-plug tags=asserts
assert [type(answer).__name__ for answer in answers] == ["ndarray", "WorkerLostError"] * 2
assert len(unplugged.find("relu")) == 4
assert max(span.end for span in unplugged.device_spans) < 1200 + unplugged.spans[0].start
assert "gpu 1" in str(answers[1])

# %% [markdown] id=exercise-dies
# ### Exercise: carry on
#
# `recipe(x)` is an operation for a batch, such as `small` above. Do all batches on all GPUs at once, and return the results in order. GPUs may be lost at any time. Then their batches are done elsewhere, and whatever the others have done is kept. If no GPU is left, let the `WorkerLostError` out. Any other error is a bug in the recipe, so let that out, too.

# %% id=16-dies starter
async def careful(gpus, recipe, batches):
    calls = [gpus[i % len(gpus)](recipe(x)) for i, x in enumerate(batches)]
    return await asyncio.gather(*calls)

# %% id=16-dies solution
async def careful(gpus, recipe, batches):
    alive = list(gpus)

    async def one(i, x):
        while True:
            gpu = alive[i % len(alive)]
            try:
                return await gpu(recipe(x))
            except agt.errors.WorkerLostError:
                if gpu in alive:
                    alive.remove(gpu)
                if not alive:
                    raise

    return await asyncio.gather(*[one(i, x) for i, x in enumerate(batches)])

# %% id=16-dies hints
# Write a coroutine for one batch, which tries until it has a result, and `gather` one for each batch.
#
# Catch only `agt.errors.WorkerLostError`. Remember which GPUs are alive, and take a lost one off the list. Somebody else may have done so already.
#
# `while True:`, and in it `gpu = alive[i % len(alive)]`, `try: return await gpu(recipe(x))`, and the `except`. If `alive` is empty there, `raise`.

# %% id=16-dies explanation
# The recipe is made anew for each attempt, and costs nothing until somebody runs it. That's the quiet advantage of describing work first: it can be done again.

# %% id=16-dies-check
check("16-dies", careful)

# %% [markdown] id=big-machine
# ## One big machine
#
# All of this works because our batches don't need each other. In training they do: after each step, all GPUs have to add up their gradients. Here two GPUs add up 16 MB, once in one box with NVLink between them, and once with a network in between.

# %% id=predict-network
network = Prediction("How many times longer does the network take?", within=0.5)
network

# %% id=commit-network
network.commit(...)

# %% id=run-network
async def add_up(machines):
    async with agt.cluster("sim", gpus=2, machines=machines) as gpus:
        group = await gpus.group()
        with agt.record() as trace:
            await asyncio.gather(*[gpu(group.all_reduce(agt.ones(1 << 22))) for gpu in gpus])
    return trace.find("all_reduce")[0].duration


in_a_box, between = await add_up(machines=1), await add_up(machines=2)
print(f"one box: {in_a_box:.0f} µs, two machines: {between:.0f} µs")

# %% id=reveal-network
network.reveal(f"{between / in_a_box:.0f}", "Bandwidth is what you pay for in a big machine.")

# %% [markdown] id=big-machine-read
# On two real H200s (November 2026), NVLink copied 393 GB in a second. Sockets on one host, which stood for a network, managed 3.9. For a training step of 17 ms with four layers of 4096 x 4096, adding up the gradients took about a millisecond over NVLink, and over those sockets it would take about 70.
#
# So if the GPUs have much to tell each other, buy the second one for the same box. Use a second machine when the work comes in pieces that don't need each other, or when you have it anyway. [docs/cluster.md](../docs/cluster.md) says how to set one up in an evening.

# %% id=check-network tags=asserts
assert 30 < between / in_a_box < 120

# %% [markdown] id=payoff
# ## The evening
#
# Let's put it together, and for real. Two processes, 256 handwritten digits in eight batches, your `careful`, and one process that is killed in the middle of it. No simulated vacuum cleaner this time: `SIGKILL`.

# %% id=run-payoff
careful = solved("16-dies", careful)
pictures = [agt.pin(x) for x in digits.batches.reshape(8, 32, 64)]


async def kill(gpu):
    pid = await gpu(agt.value(None).map(lambda _: os.getpid()))
    if pid == os.getpid():
        gpu.lose("it's simulated, so it just left")
    else:
        os.kill(pid, signal.SIGKILL)


async with two_processes() as (gpus, _):
    reading_digits = asyncio.create_task(careful(gpus, small, pictures))
    await kill(gpus[1])
    found = np.concatenate(await reading_digits)
    try:
        await gpus[1](agt.ones(1))
    except agt.errors.WorkerLostError as error:
        print(str(error).partition(",")[0])

quality = digits.quality(found.reshape(4, 64))
print(f"{found.size} pictures read, {quality.true_positives} of {quality.positives} threes found")

# %% [markdown] id=payoff-read
# A worker died, and nobody noticed but the log. The same lines would run on the machine under your colleague's desk: all they need is another address.

# %% id=check-payoff tags=asserts
assert np.allclose(found, np.maximum(digits.batches @ digits.w0 @ digits.w1, 0).ravel(), atol=1e-3)

# %% [markdown] id=key-points
# ## Key points
#
# - Calling a worker takes about a millisecond, as long as a hundred launches. So send a whole chain of work, not its steps.
# - Whatever a recipe holds travels along each time that it's sent. Put weights on each GPU once, and go on with handles.
# - All that you send leaves by one door. Let workers read their data themselves.
# - A handle keeps its array alive, far away as it is, and so does a forgotten variable.
# - If a worker dies, exactly the awaits that need it raise an error. You can send its recipes to another one, but the arrays are gone.
# - GPUs that have to talk a lot belong into one machine.
#
# There's a [glossary](../docs/glossary.md) for new words.

# %% id=score
score(busy, once, gain, survivors, network)

# %% id=progress
progress("16")
