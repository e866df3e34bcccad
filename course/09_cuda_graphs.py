"""Source of notebooks/09_cuda_graphs.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # CUDA graphs: say it once
#
# A language model writes its answer word by word, and for every word the GPU runs the same few hundred small kernels. Each time, Python calls every one of them by name. **What if it had to do that only once?**
#
# After this page you can write a pipeline down as a CUDA graph, feed it, give it branches, and tell from a timeline whether that pays.
#
# | | |
# |---|---|
# | Time | 65 minutes, and 55 more for the encores |
# | You need | [04_combinators](04_combinators.ipynb), [06_await](06_await.ipynb), [07_async_mlp](07_async_mlp.ipynb) and [08_profiling](08_profiling.ipynb) |

# %% id=setup
from itertools import pairwise

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)
from asyncgpu_tutor.commands.mlp import forward, upload

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## Three words
#
# Here's a model in miniature: eight thin layers, each a kernel of its own. One pass through all eight makes a word, or a **token**, as the trade calls it. This is a real H200 making three of them, in a recording that comes with the course:

# %% id=question-picture
h200_calls = agt.Trace.load_recording("09_cuda_graphs_by_calls")
h200_calls.plot(
    title="Three tokens on an H200",
    lanes=("host", "streams"),
    lesson="A thin kernel after each call, and most of the stream is empty.",
)

# %% id=question-numbers
layers = h200_calls.find("layer")
usual = float(np.median([span.duration for span in layers]))
apart = float(np.median([b.start - a.start for a, b in pairwise(layers)]))
share = h200_calls.metrics().device_active / h200_calls.metrics().makespan
print(f"A layer takes {usual:.1f} µs, and {apart:.0f} µs later the next one begins.")
print(f"The GPU is at work for {share:.0%} of the time.")

# %% [markdown] id=question-read
# For five sixths of the time, one of the fastest machines on earth does nothing. It's waiting for Python: to say "and now the next layer", and between two tokens to take the result and get the next one going. Chapter 8 gave this a name: the program is **host-bound**.
#
# A faster GPU would only shorten the sixth of the time in which this one works. More streams would have to be filled by the same Python. And with one user at a time, you can't make the kernels larger. So what's left?

# %% id=question-check tags=asserts
assert len(layers) == 24
assert apart > 3 * usual
assert 0.15 < share < 0.18
assert "host-bound" in {finding.name for finding in agt.diagnose(h200_calls)}

# %% [markdown] id=network-text
# ## The model
#
# First we need a model of our own. Each layer multiplies a matrix by a vector and takes the `tanh`, and one thread computes one element.

# %% id=kernel
layer = agt.Kernel(r"""
extern "C" __global__
void layer(unsigned int n, const float* w, const float* x, float* y) {
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += w[row * n + j] * x[j];
        }
        y[row] = tanhf(sum);
    }
}
""")

# %% [markdown] id=network-code-text
# We allocate everything up front. The layers borrow their arrays, and `agt.zip` puts the layers in order on one stream. Keep an eye on two arrays: `x`, which the first layer reads, and `y`, which the last one writes.


# %% id=network
def make_network(layers, n=64, seed=0):
    """Weights, on the host and on the device; and arrays for what goes in and out."""
    rng = np.random.default_rng(seed)
    host = rng.standard_normal((layers, n, n), dtype=np.float32)
    host *= np.float32(1.2 / n**0.5)
    weights = [agt.h2d(agt.pin(w), "w").sync() for w in host]
    arrays = [agt.zeros(n, name=f"x{i}").sync() for i in range(layers + 1)]
    return host, weights, arrays


def network(weights, arrays):
    """All layers as one operation; input is arrays[0], output is arrays[-1]."""
    steps = [
        layer(x.size, w.borrow(), x.borrow(), y.borrow().partition(64))
        for w, (x, y) in zip(weights, pairwise(arrays))
    ]
    return agt.zip(*steps).named("network")


def in_numpy(host, x):
    for w in host:
        x = np.tanh(w @ x)
    return x


host, weights, arrays = make_network(layers=8)
x, y = arrays[0], arrays[-1]
rng = np.random.default_rng(2)
tokens = [agt.pin(rng.standard_normal(64, dtype=np.float32)) for _ in range(5)]

op = network(weights, arrays)
agt.memcpy(x.borrow(), tokens[0]).sync()
op.sync()
first_answer = agt.d2h(y.borrow()).sync()
print(first_answer[:3])

# %% [markdown] id=memcpy-text
# `agt.memcpy(target, source)` copies *into* an array that exists already, where `h2d` would make a new one.
#
# You can skim the next cell, which only has helpers for measuring. (`took` is on the host's clock, and a picture begins with the first call.)


# %% id=helpers tags=helpers
def recorded(op):
    """The trace of a run; on a real GPU of the quickest of five, after a warm-up."""
    if not device.simulated:
        op.sync_on(stream)
    traces = []
    for _ in range(1 if device.simulated else 5):
        with agt.record() as trace:
            op.sync_on(stream)
        traces.append(trace)
    return min(traces, key=lambda trace: trace.metrics().makespan)


def took(*runs, times=30):
    """For each run its median in µs, on the host's clock. A run ends with waiting."""
    clock = [[] for _ in runs]
    for _ in range(1 if device.simulated else 1 + times):  # a simulated one is the same
        for run, seen in zip(runs, clock):
            start = device.now()
            run()
            seen.append(device.now() - start)
    return [float(np.median(seen[-times:])) for seen in clock]  # the first is a warm-up

# %% id=by-call
def by_call():
    network(weights, arrays).sync_on(stream)


by_calls = recorded(op)
(calls_us,) = took(by_call)
print(f"one token, layer by layer: {calls_us:.0f} µs")

# %% id=network-check tags=asserts
assert np.allclose(first_answer, in_numpy(host, tokens[0]), atol=1e-4)
assert [span.name for span in by_calls.device_spans] == ["layer"] * 8
if device.simulated:
    m = by_calls.metrics()
    assert m.device_active < m.makespan / 3
    assert m.host["call"] > 0.8 * m.makespan

# %% [markdown] id=list
# ## Write it down
#
# What does Python do for a layer? It finds the kernel, works out the grid, packs the arguments and calls the driver. Then, for the next token, it does all of that again, with the same kernels, grids and addresses.
#
# If you had to phone the shop for every single egg, you'd soon send a shopping list. A **CUDA graph** is that list, and writing one takes a line:
#
# ```python
# graph = op.graph_on(stream)
# ```
#
# `y` holds the answer to token 0. We put token 1 into `x`, and write the list.

# %% id=before-capture
agt.memcpy(x.borrow(), tokens[1]).sync()
print(f"By calls, a token takes 8 kernels and {calls_us:.0f} µs.")

# %% id=09-written guess within=0.25
# How many kernels does the device run during `graph = op.graph_on(stream)`, and how many µs does that line take? Type two numbers, such as `3 50`.

# %% id=09-written reveal
with agt.record() as capturing:
    begun = device.now()
    graph = op.graph_on(stream)
    capture_us = device.now() - begun

in_y = agt.d2h(y.borrow()).sync()


def written():
    print(graph)
    print("Token 1 is in x, and y still begins with", in_y[:3])


reveal("09-written", f"{len(capturing.device_spans)} {capture_us:.0f}", written)

# %% id=09-written told truth="0 136"
# Nothing ran. `agt.record()` watches work that is being done. A **capture** writes down work that is *not* being done. But to write a call down, Python does nearly all that it does to make it.

# %% [markdown] id=capture-read
# ### Three steps
#
# The life of a graph has three steps:
#
# | | what happens | how often |
# |---|---|---|
# | **capture** | the driver writes the calls down instead of making them | once |
# | **instantiate** | the driver checks the list and gets it ready | once |
# | **launch** | one call starts everything on the list | again and again |
#
# `graph_on` does the first two. (In a simulated picture, the capture's bar is called `prepare`, since getting the calls ready is what takes the time.) The graph has eight **nodes**, one for each kernel. (An operation that makes an array would be refused, because the list has to name addresses. That's why we allocated everything up front.) And `graph.launch()` is an operation like any other. It yields what `op` would yield.

# %% id=capture-check tags=asserts
assert np.allclose(in_y, in_numpy(host, tokens[0]), atol=1e-4)
assert graph.nodes == 8
assert capturing.device_spans == []

# %% id=run-gain
launch = graph.launch()
by_graph = recorded(launch)
calls_us, graph_us = took(by_call, lambda: launch.sync_on(stream))
print(f"{calls_us:.0f} and {graph_us:.0f} µs: {calls_us / graph_us:.1f} times faster")
agt.compare_timelines(
    [by_calls, by_graph],
    ["eight calls", "one graph"],
    lesson="The graph needs one short call, and its kernels follow without a gap.",
)

# %% [markdown] id=read-gain
# > **Misconception: a graph makes kernels faster.**
# >
# > - *What you see:* a run that takes a fraction of the time.
# > - *Why:* what disappeared is the waiting *between* the kernels. The kernels take as long as before.
# > - *What helps:* add up the kernels' own bars before you hope for a graph. If they fill the picture already, there's nothing to remove.
#
# Here are the eight layers of each token on the H200, by calls and in a graph:

# %% id=misconception-kernels
h200_graph = agt.Trace.load_recording("09_cuda_graphs")
for name, trace in [("by calls", h200_calls), ("in a graph", h200_graph)]:
    layers = trace.find("layer")
    rows = [layers[i : i + 8] for i in (0, 8, 16)]
    eight = ", ".join(f"{row[-1].end - row[0].start:3.0f}" for row in rows)
    kernel = float(np.median([span.duration for span in layers]))
    print(f"{name:10}: {eight} µs for all eight, {kernel:.1f} µs for one")

# %% id=check-gain tags=asserts
assert [span.name for span in by_graph if span.kind == "call"] == ["launch graph network"]
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(host, tokens[1]), atol=1e-4)
if device.simulated:
    assert calls_us > 2 * graph_us
    assert len(by_graph.find("layer")) == 8
medians = [
    float(np.median([s.duration for s in t.find("layer")])) for t in (h200_calls, h200_graph)
]
assert 0.9 < medians[0] / medians[1] < 1.1

# %% [markdown] id=exercise-first-graph
# ### Exercise: your first graph
#
# Run an operation `times` times on `stream`, as a graph that you capture only once. Wait once, at the end, because launches on one stream follow each other anyway. Return the graph, so that others can use it.


# %% id=09-first-graph starter
def replay(op, stream, times):
    for _ in range(times):
        op.sync_on(stream)


# %% id=09-first-graph solution
def replay(op, stream, times):
    graph = op.graph_on(stream)
    for _ in range(times):
        graph.launch().async_on(stream)
    stream.synchronize()
    return graph


# %% id=09-first-graph hints
# There are two steps: capture once, before the loop, and launch in the loop. How do you start an operation without waiting for it?
#
# `graph.launch()` is an operation, so it does nothing by itself. `.async_on(stream)` submits it.
#
# `graph = op.graph_on(stream)`; in the loop `graph.launch().async_on(stream)`; then `stream.synchronize()` and `return graph`.

# %% id=09-first-graph explanation
# You paid for the capture once, and it costs about as much as a run by calls. After that each run is a single call, and the stream keeps the runs in order, so one wait at the end is enough.

# %% id=09-first-graph-check
check("09-first-graph", replay)

# %% [markdown] id=fixed
# ## What does the list say?
#
# If nothing could change between two launches, you'd get the same word forever. So what can? Here's a tiny graph with an input: a number goes up, is multiplied, and comes back.

# %% id=tiny-graph
times = agt.Kernel(r"""
extern "C" __global__
void times(float factor, const float* x, float* y) { y[0] = factor * x[0]; }
""")

number, result = agt.pinned(1), agt.pinned(1)
here, there = agt.zeros(1, name="here").sync(), agt.zeros(1, name="there").sync()
thirty = agt.pin(np.array([30], np.float32))
factor = 2.0

tiny = agt.zip(
    agt.memcpy(here.borrow(), number),
    times(factor, here.borrow(), there.borrow().partition(1)),
    agt.d2h(there.borrow(), out=result),
).last()
tiny_graph = tiny.graph_on(stream)

number[:] = 10
print("10 times 2 is", tiny_graph.launch().sync()[0])

# %% [markdown] id=fixed-text
# Now let's try to change three things before the next launch:
#
# ```python
# factor = 5.0
# agt.memcpy(here.borrow(), thirty).sync()
# number[:] = 40
# ```

# %% id=09-fixed guess
# The first launch yielded 20. After these three lines, what does the next one yield?

# %% id=09-fixed reveal
factor = 5.0
agt.memcpy(here.borrow(), thirty).sync()
number[:] = 40
yielded = float(tiny_graph.launch().sync()[0])
reveal("09-fixed", f"{yielded:.0f}")

# %% id=09-fixed told truth=80
# That's 40 times 2. Only one of the three got through, because the list says *where* things are and not what they are:
#
# - `factor` was packed into the kernel's arguments when the list was written, so it says 2 forever. So do grids and sizes. And a Python `if` is decided once, during the capture.
# - `here` did get its 30. But then came the launch, and the list begins by copying `number` over it.
# - `number` is read again by each launch. The list has its address, and what lies there is up to you.

# %% id=fixed-check tags=asserts
assert yielded == 80
assert tiny_graph.nodes == 3

# %% [markdown] id=misconception-result
# ### Input slots
#
# A pinned array like `number` is an **input slot**: write into it, launch, and leave it alone until that launch is done. It's the cheapest way in, because it takes no call at all.
#
# > **Misconception: the result of a launch is mine to keep.**
# >
# > - *What you see:* a list of results that are all equal to the last one.
# > - *Why:* the output has a fixed address too, and the next launch writes there.
# > - *What helps:* use a result before the next launch, or keep a copy.

# %% id=misconception-result-code
kept, copied = [], []
for i in (10, 20, 30):
    number[:] = i
    answer = tiny_graph.launch().sync()
    kept.append(answer)
    copied.append(answer.copy())

print("kept:", *[a[0] for a in kept], "  copied:", *[a[0] for a in copied])

# %% id=misconception-result-check tags=asserts
assert [a[0] for a in kept] == [60, 60, 60]
assert [a[0] for a in copied] == [20, 40, 60]

# %% [markdown] id=tokens
# ## Token by token
#
# What if the input lies somewhere else each time, or is already on the device? Then copy it to where the graph looks. `graph.update(op)` runs an operation between two launches. The next launch waits for it, on any stream, but Python doesn't.
#
# Back to the model. Its graph reads `x`, so `x` is what we update:

# %% id=token-loop
answer_there = agt.pinned(64)
back = agt.d2h(y.borrow(), out=answer_there)
step = agt.zip(network(weights, arrays), back).last().named("step")
graph = step.graph_on(stream)


async def token_loop(tokens):
    words = []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = await graph.launch()
        words.append(int(answer.argmax()))  # the word's number; the answer is used up
    return words


await token_loop(tokens)  # warm-up
with agt.record() as looped:
    words = await token_loop(tokens[:3])

looped.plot(
    title="Three tokens: an update and a launch for each",
    lanes=("host", "streams"),
    lesson="For each token, an update of the graph (three boxes) and a launch.",
)

# %% [markdown] id=token-read
# Updates go to the stream on which you captured the graph. Launches are awaited like any operation, so they take turns on the policy's streams. The arrows are events: they make each launch wait for its update, and each update for the launch before it. You wrote none of them.

# %% id=token-check tags=asserts
for token, word in zip(tokens, words):
    right = in_numpy(host, token)
    assert right[word] > right.max() - 1e-4
marks = ("record", "wait_event")  # with which an update puts itself before the next launch
calls = [span.name for span in looped if span.kind == "call" and span.name not in marks]
assert calls == ["enqueue h2d", "launch graph step"] * 3
assert graph.nodes == 9

# %% [markdown] id=whole-text
# Back to the H200. By calls, its three tokens took 704 µs. It ran the loop above, too (with all launches on one stream).

# %% id=no-layer tags=helpers
def pauses(trace):
    """Where no layer runs: before the first token, and between two of them."""
    layers = sorted(trace.find("layer"), key=lambda span: span.start)
    begins = [layers[i].start for i in (0, 8, 16)]
    ends = [min(span.start for span in trace), layers[7].end, layers[15].end]
    return list(zip(ends, begins))


def with_pauses(trace):
    """The trace with a lane that says how long these are."""
    return trace.with_lane("no layer", [(a, b, f"{b - a:.0f} µs") for a, b in pauses(trace)])


# %% id=whole-before
print(f"A graph makes one token {calls_us / graph_us:.1f} times as fast here.")

# %% id=09-whole guess within=0.1
# How many times as fast does a graph make the H200's three tokens, in a loop like the one above?

# %% id=09-whole reveal
picture = agt.compare_timelines(
    [with_pauses(h200_calls), with_pauses(h200_graph)],
    ["H200: three tokens by calls", "H200: three tokens by a graph"],
    lanes=("host", "streams"),
)
whole_us = h200_graph.metrics().makespan
before, after = (
    sum(t.find("layer")[i + 7].end - t.find("layer")[i].start for i in (0, 8, 16))
    for t in (h200_calls, h200_graph)
)
was, now = (sum(b - a for a, b in pauses(t)) for t in (h200_calls, h200_graph))
facts = {"us": whole_us, "before": before, "after": after, "was": was, "now": now}
reveal("09-whole", f"{h200_calls.metrics().makespan / whole_us:.2f}", picture, **facts)

# %% id=09-whole lesson
# With a graph each token's layers stand close together. All pauses together are no shorter.

# %% id=09-whole told truth=1.51
# They take {us:.0f} µs. The layers shrank from {before:.0f} µs to {after:.0f}. The pauses took {was:.0f} µs, and now take {now:.0f}.
#
# When you've made one thing fast, look again at what is slow now: the pauses. In the two long ones of the graph the result has to reach the host, the event loop has to wake the task, and Python has to submit two things: an update and a launch. No graph can wake Python.

# %% [markdown] id=whole-read
# ### The copy on the list
#
# Does the update need a call of its own? It can go onto the list as well, as a copy from an input slot. (The H200 has recorded no such loop, so this is your device again.)

# %% id=slot-loop
slot = agt.pinned(64)
copy, back = agt.memcpy(x.borrow(), slot), agt.d2h(y.borrow(), out=answer_there)
whole_step = agt.zip(copy, network(weights, arrays), back)
slot_graph = whole_step.last().named("whole step").graph_on(stream)


async def slot_loop(tokens):
    words = []
    for token in tokens:
        slot[:] = token  # the launch before is over
        answer = await slot_graph.launch()
        words.append(int(answer.argmax()))
    return words


await slot_loop(tokens)  # warm-up
with agt.record() as slotted:
    words_by_slot = await slot_loop(tokens[:3])

agt.compare_timelines(
    [with_pauses(looped), with_pauses(slotted)],
    ["an update and a launch for each token", "a slot and a launch for each token"],
    lanes=("host", "streams"),
    lesson="Below, the copy is on the list, and the pauses are shorter.",
)

# %% id=slot-gain
for title, loop in (("update and launch", looped), ("slot and launch", slotted)):
    us = sum(end - begin for begin, end in pauses(loop))
    print(f"{title}: {us:.0f} µs of pauses")
print("the same words?", words_by_slot == words)

# %% id=whole-check tags=asserts
assert 700 < h200_calls.metrics().makespan < 708
assert 450 < whole_us < 490
assert abs(before - after - (h200_calls.metrics().makespan - whole_us)) < 4
assert words_by_slot == words
assert [s.name for s in slotted if s.kind == "call"] == ["launch graph whole step"] * 3
if device.simulated:
    lost = [sum(b - a for a, b in pauses(trace)) for trace in (looped, slotted)]
    assert lost[1] < 0.8 * lost[0]
    rows = sorted(looped.find("layer"), key=lambda span: span.start)
    assert min(rows[8 * n].start - rows[8 * n - 1].end for n in (1, 2)) > 50

# %% [markdown] id=exercise-token-loop
# ### Exercise: a token loop
#
# `graph` reads the device array `x`, and its launch yields a host array that belongs to the graph. Run it for each of the `tokens` (pinned arrays) without blocking the event loop, and return a list of results, one for each token.


# %% id=09-token-loop starter
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        results.append(await graph.launch())
    return results


# %% id=09-token-loop solution
# - results.append(await graph.launch())
# + graph.update(agt.memcpy(x.borrow(), token))
# + answer = await graph.launch()
# + results.append(answer.copy())


# %% id=09-token-loop hints
# Two things are missing. The graph reads `x`, and nobody has put the token there. And who owns the array that a launch yields?
#
# Call `graph.update(agt.memcpy(x.borrow(), token))` before the launch.
#
# The array belongs to the graph, and the next launch writes to it. So keep `answer.copy()`.

# %% id=09-token-loop explanation
# Updates and launches follow each other on the device, so it's enough to await the launch. The copy on the host is the price of fixed addresses. If you use a result at once and don't keep it, you can save yourself the copy.

# %% id=09-token-loop-check
check("09-token-loop", run_tokens)

# %% [markdown] id=feedback-text
# ## Its own words
#
# Does Python have to be asked after each token? A language model feeds on its own words: what comes out goes in again. So the host can keep the queue full, and wait once at the end. (Only the last answer survives, because each launch overwrites `answer_there`.)

# %% id=feedback
agt.memcpy(x.borrow(), tokens[0]).sync_on(stream)
with agt.record() as fed_back:
    for _ in range(3):
        graph.launch().async_on(stream)
        graph.update(agt.memcpy(x.borrow(), y.borrow()))
    stream.synchronize()

fed_back.plot(
    title="Three steps, each on the output of the one before",
    lanes=("host", "streams"),
    lesson="The host is done early, and only copies are between the rows of kernels.",
)

# %% id=feedback-check tags=asserts
right = tokens[0]
for _ in range(3):
    right = in_numpy(host, right)
assert np.allclose(answer_there, right, atol=1e-3)
assert len([span for span in fed_back if span.kind == "wait"]) == 1
if device.simulated:
    assert fed_back.metrics().makespan < 0.75 * looped.metrics().makespan
    work = fed_back.device_spans
    assert max(after.start - before.end for before, after in pairwise(work)) < 5

# %% [markdown] id=branches
# ## Four at a time
#
# Even without gaps, a small model leaves most of the GPU idle, because one of our layers is a single block of 64 threads. So here are four models, each with its own arrays. They have nothing to do with each other:

# %% id=four-networks
nets = [make_network(layers=8, seed=i) for i in range(4)]
for _, _, a in nets:
    agt.memcpy(a[0].borrow(), tokens[0]).sync()
models = [network(w, a).named(f"model {i}") for i, (_, w, a) in enumerate(nets)]

one = models[0].graph_on(stream).launch()
four = agt.zip(*models).named("four models").graph_on(stream).launch()

# %% id=branches-before
print(f"A graph of one model takes {graph_us:.0f} µs.")

# %% id=09-branches guess within=0.15
# How many µs does the graph of four models take?

# %% id=09-branches reveal
one_us, four_us = took(lambda: one.sync_on(stream), lambda: four.sync_on(stream))
longer = four_us / one_us
reveal("09-branches", f"{four_us:.0f}", longer=longer)

# %% id=09-branches told truth=147
# That's {longer:.1f} times as long as for one. Four strangers, and they still stand in line. The list keeps the order in which it was written, and `zip` writes everything on one stream. Nobody looks at the arrays to find out who needs whom.

# %% [markdown] id=read-branches
# ### Arms
#
# You have to say what may go side by side, and you know how: the arms of `agt.overlap` may, and a capture turns them into **branches**.

# %% id=overlap-branches
branched = agt.overlap(*models).named("four models").graph_on(stream).launch()
(branched_us,) = took(lambda: branched.sync_on(stream))
print(f"zip {four_us:.0f} µs, overlap {branched_us:.0f}, one model {one_us:.0f}")
agt.compare_timelines(
    [recorded(agt.overlap(*models)), recorded(four), recorded(branched)],
    ["overlap, by calls", "zip, as a graph", "overlap, as a graph"],
    lanes=("host", "streams"),
    lesson="A staircase, then one line, then four streams that begin almost at once.",
)

# %% [markdown] id=overlap-read
# By calls you get the staircase of chapter 7: when Python has filled one stream, the one before is done. The graph's staircase has tiny steps, because the driver hands out branches by itself, in less than a microsecond each.

# %% id=check-branches tags=asserts
if device.simulated:
    assert branched_us < four_us
    assert longer > 3
    assert branched_us < 1.5 * one_us
    four_rows = recorded(branched)
    assert four_rows.metrics().max_concurrency == 4
    begins = sorted(
        min(s.start for s in four_rows.find("layer") if s.stream == n) for n in four_rows.streams
    )
    assert all(0 < b - a < 1 for a, b in pairwise(begins))
    assert recorded(agt.overlap(*models)).metrics().makespan > 3 * branched_us
for weights_i, _, arrays_i in nets:
    out = agt.d2h(arrays_i[-1].borrow()).sync()
    assert np.allclose(out, in_numpy(weights_i, tokens[0]), atol=1e-4)

# %% [markdown] id=pays
# ## Does it pay?
#
# Our layers are 64 wide. Let them grow to 256, 512 and 2048. The kernels get longer, and the calls don't.

# %% id=wide
def gain(n):
    """Four layers of this width, by calls and as a graph."""
    _, weights, arrays = make_network(layers=4, n=n)
    launch = network(weights, arrays).graph_on(stream).launch()
    us, us_graph = took(
        lambda: network(weights, arrays).sync_on(stream), lambda: launch.sync_on(stream)
    )
    traces = [recorded(network(weights, arrays)), recorded(launch)]
    one_layer = np.median([span.duration for span in traces[0].find("layer")])
    gained = us / us_graph
    row = f"{n:5} {us:7.0f} µs {us_graph:9.0f} µs {one_layer:9.0f} µs {gained:9.2f}"
    return gained, traces, row


_, wide_weights, wide_arrays = make_network(layers=4, n=512)
wide_layers = recorded(network(wide_weights, wide_arrays)).find("layer")
wide_us = float(np.median([span.duration for span in wide_layers]))
call_us = float(np.median(np.diff([span.start for span in by_calls.find("layer")])))
print(f"At a width of 512 a layer takes {wide_us:.0f} µs, and a call {call_us:.0f} µs.")

# %% id=09-wide guess within=0.08
# How many times as fast is a graph of four such layers as four calls?

# %% id=09-wide reveal
gains, wide_traces, rows = {}, {}, []
for n in (64, 256, 512, 2048):
    gains[n], wide_traces[n], row = gain(n)
    rows.append(row)

picture = agt.compare_timelines(
    [wide_traces[n][0] for n in (64, 512, 2048)],
    [f"{n} wide, by calls" for n in (64, 512, 2048)],
    lanes=("host", "streams"),
)


def table():
    print("width   by calls   as a graph    one layer    gain", *rows, sep="\n")


reveal("09-wide", f"{gains[512]:.2f}", picture, table)

# %% id=09-wide lesson
# Above, gaps between the kernels. Below, Python is far ahead, and the kernels have none.

# %% id=09-wide told truth=1.2
# Python calls a layer while the one before it runs. Only the first call keeps the device waiting.
#
# The balance tips when a layer takes longer than Python needs to ask for one. From then on Python is ahead of the device, and whatever it does is hidden behind kernels that run anyway. **A graph is for work that is host-bound.** So look for gaps in a timeline before you write one.

# %% [markdown] id=wide-read
# ### And once?
#
# The list has to be written first, so it pays only for work that comes again. The first encore finds out how often.

# %% id=pays-check tags=asserts
if device.simulated:
    assert gains[64] > gains[256] > gains[512] > gains[2048] > 1
    assert gains[64] > 1.5
    assert gains[2048] < 1.2
    assert 1.1 < gains[512] < 1.3
    m = wide_traces[2048][0].metrics()
    assert m.device_active > m.makespan / 2

# %% [markdown] id=challenge
# ## Challenge: four conversations
#
# Four models talk at the same time. (The check also tries other numbers and sizes.) Each begins with a prompt and goes on for twelve tokens, each from the one before, and you want to read all of them. With calls, this takes 8435 µs: get below 1850.
#
# `talk(models, prompts, steps)` gets a list of four tuples `(op, x, y)`: `op` runs a model on arrays that are lent to it, from the device array `x` to the device array `y`. Prompts are pinned arrays. Return for each model the list of its `steps` answers, as arrays on the host. **Everything counts**, from the call of `talk` to its return, and that includes your capture. So what goes on the list, and how long is it?
#
# The course's own answer takes 1162 µs. It is not the best one.


# %% id=09-challenge starter
def talk(models, prompts, steps):
    said = []
    for (op, x, y), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).sync()
        answers = []
        for _ in range(steps):
            op.sync()
            answers.append(agt.d2h(y.borrow()).sync())
            agt.memcpy(x.borrow(), y.borrow()).sync()
        said.append(answers)
    return said


# %% id=09-challenge solution
def talk(models, prompts, steps):
    stream = agt.create_stream()
    arms, places = [], []
    for op, x, y in models:
        place = agt.pinned(y.shape)
        answer, feedback = agt.d2h(y.borrow(), out=place), agt.memcpy(x.borrow(), y.borrow())
        arms.append(agt.zip(op, answer, feedback))
        places.append(place)
    launch = agt.overlap(*arms).graph_on(stream).launch()

    for (_, x, _), prompt in zip(models, prompts):
        agt.memcpy(x.borrow(), prompt).async_on(stream)
    said = [[] for _ in models]
    for _ in range(steps):
        launch.sync_on(stream)
        for answers, place in zip(said, places):
            answers.append(place.copy())
    return said


# %% id=09-challenge hints
# One token of one model is `op`, a copy of `y` to the host, and a copy of `y` into `x`. You can capture all three, if the first copy has a pinned array to go to.
#
# Four models are four branches of one graph. Capturing one token of each costs about as much as running it once by calls, and capturing twelve costs twelve times as much.
#
# `agt.overlap(*arms).graph_on(stream)`, and then twelve launches. After each of them, copy the four answers before the next one overwrites them.
#
# To get further: the capture takes 600 µs of it, and each step waits for the host. Does the host have to be there after each token? Either it keeps the answers apart, or the device does.

# %% id=09-challenge explanation
# You write one token of four models down once, and launch it twelve times. In the course's answer, the list holds everything that comes again: the layers, the answer, and the way back from `y` to `x`.

# %% id=09-challenge-check
check("09-challenge", talk)

# %% [markdown] id=farewell-text
# Here are the models of this page in conversation, by calls and then by `talk` (yours if it's right, and otherwise the course's):

# %% id=farewell
talk = solved("09-challenge", talk)
speakers = [(op, a[0], a[-1]) for op, (_, _, a) in zip(models, nets)]
with agt.record() as said_by_calls:
    for op, first, last in speakers:
        agt.memcpy(first.borrow(), tokens[0]).sync()
        for _ in range(12):
            op.sync()
            agt.d2h(last.borrow()).sync()
            agt.memcpy(first.borrow(), last.borrow()).sync()
with agt.record() as said_by_graph:
    talk(speakers, tokens[:4], 12)

agt.compare_timelines(
    [said_by_calls, said_by_graph],
    ["four conversations, by calls", "the same, by a graph"],
    lanes=("host", "engines"),
    lesson="Below, the list is written once (prepare), and read again for each word.",
)

# %% id=farewell-check tags=asserts
if device.simulated:
    assert said_by_graph.metrics().makespan < said_by_calls.metrics().makespan / 4

# %% [markdown] id=key-points
# ## Key points
#
# - When kernels are small, the calls take longer than the work. A graph makes one call out of many and leaves the kernels as they are. If your timeline has no gaps, you don't need one.
# - `op.graph_on(stream)` captures an operation without running it. `graph.launch()` is an operation that you run as often as you like.
# - The list says *where* things are, so new input has to go to the old place. Write it into a pinned slot, or copy it there with `graph.update`.
# - You may use a result until the next launch, which overwrites it.
# - A graph keeps the order of its capture. If some arms may go side by side, say so with `overlap`, and they become branches.
# - An operation that makes an array can't be captured. If yours does, the encores show a way.
#
# There's a [glossary](../docs/glossary.md) for new words, and a page of [misconceptions](../docs/misconceptions.md).
#
# **Next:** [10_build_it_yourself.ipynb](10_build_it_yourself.ipynb). You've used the machine for nine chapters. Now you build one.

# %% id=score
score("09")

# %% id=progress
progress("09")

# %% [markdown] id=encores
# ## Encores
#
# *For the day on which you put a graph into production: when it has paid for itself, what it can't hold, how to capture what allocates, and how to serve requests of any shape.*
#
# ### How many runs before it pays?
#
# Let's try one model and several tokens, where the capture counts too. (These runs are simulated.)


# %% id=explore
def many_tokens(count, how):
    here = agt.create_stream()
    w = agt.full((64, 64), 0.01).sync_on(here).share()
    a, b = (agt.zeros(64).sync_on(here) for _ in range(2))
    op = network([w] * 8, [a, b] * 4 + [a])
    if how == "graph":
        op = op.graph_on(here).launch()
    for _ in range(count):
        op.sync_on(here)


def explored(count, how):
    with agt.using(agt.SimDevice()), agt.record() as trace:
        many_tokens(count, how)
    return trace.from_first()


which = [(count, how) for count in range(1, 7) for how in ("calls", "graph")]
runs = {one: explored(*one) for one in which}
us = {run: trace.metrics().makespan for run, trace in runs.items()}
for n in range(1, 7):
    calls, graph = us[n, "calls"], us[n, "graph"]
    print(f"{n} tokens: {calls:3.0f} µs by calls, {graph:3.0f} µs by a graph")

# %% id=explore-pair
agt.compare_timelines(
    [runs[2, "calls"], runs[2, "graph"]],
    ["two tokens, by calls", "two tokens, by a graph"],
    lesson="During the capture (prepare) nothing runs on the device. The graph is "
    "ahead all the same.",
)

# %% [markdown] id=explore-read
# One token is quicker by calls, and from the second on the graph is ahead, because writing the list costs about as much as one run by calls. From then on each run saves two thirds. (On a real GPU it may be a few tokens more.) In general:
#
# ```text
#                 cost of the capture
# runs  =  ----------------------------------
#           time by calls  -  time by graph
# ```
#
# If kernels are long, the difference at the bottom is small, and you need many runs.

# %% id=explore-check tags=asserts
assert us[1, "calls"] < us[1, "graph"]
assert us[2, "calls"] > us[2, "graph"]
by_call_us, by_graph_us = (us[6, how] - us[5, how] for how in ("calls", "graph"))
assert 0.6 < 1 - by_graph_us / by_call_us < 0.72
assert 0.7 < (us[1, "graph"] - by_graph_us - us[1, "calls"] + by_call_us) / by_call_us < 1.3

# %% [markdown] id=exercise-break-even
# ### Exercise: when does it pay?
#
# `make()` describes an operation anew each time, as a program without a graph would. Return the smallest number of runs, an `int`, from which on it's quicker to capture once and launch. `agt.current_device().now()` is the host's clock, in µs.
#
# The measuring is the exercise: when does a run end? (A launch always saves something here. Anything can disturb a single run, so take the quickest of five.)


# %% id=09-break-even starter
def break_even(make, stream):
    clock = agt.current_device().now
    start = clock()
    make().async_on(stream)
    by_calls = clock() - start
    return round(by_calls)


# %% id=09-break-even solution
def break_even(make, stream):
    clock = agt.current_device().now

    def took(run):
        times = []
        for _ in range(5):
            start = clock()
            run()
            times.append(clock() - start)
        return min(times)

    launch = make().graph_on(stream).launch()
    capture = took(lambda: make().graph_on(stream))
    by_calls = took(lambda: make().sync_on(stream))
    by_graph = took(lambda: launch.sync_on(stream))
    return int(capture / (by_calls - by_graph)) + 1


# %% id=09-break-even hints
# You need three times: that of the capture, that of a run by calls, and that of a launch.
#
# A run ends when the device is done: `sync_on(stream)`. What `async_on` takes is only Python's part.
#
# After `runs` runs the calls have taken `runs * by_calls`, and the graph `capture + runs * by_graph`. The first whole number above `capture / (by_calls - by_graph)` is `int(...) + 1`.

# %% id=09-break-even explanation
# If the work is short, two runs are enough. If it's long, a launch saves next to nothing, and you only notice if you wait for the device. By the time that `async_on` takes, a graph would always seem to pay at once.

# %% id=09-break-even-check
check("09-break-even", break_even)

# %% [markdown] id=refused
# ### What a graph can't hold
#
# A list has to name addresses, and Python has to write it to the end. So we refuse three things.
#
# - **Making an array.** An array that's made anew for each run has no address to write down. (CUDA does have nodes that allocate, from a pool you don't see.)
# - **Reading pageable memory.** CUDA would write the address down, but nothing would keep such an array alive and in its place until the last launch.
# - **Waiting.** Nothing runs during a capture, so you'd wait for a long time.
#
# Here that leaves kernels, copies and fills.


# %% id=refused-allocation
def refused(op):
    try:
        op.graph_on(stream)
    except agt.errors.CaptureError as error:
        print("CaptureError:", error)
    else:
        raise AssertionError("this should have been refused")


refused(agt.h2d(slot))
refused(agt.memcpy(x.borrow(), np.zeros(64, np.float32)))

# %% id=refused-check tags=asserts
# `op.graph_on` captures one operation; a scope captures each one that you pass to `record`.
with agt.CudaGraph.scope(stream, "by scope") as scope:
    scope.record(agt.memcpy(x.borrow(), slot))
    for w, (a, b) in zip(weights, pairwise(arrays)):
        scope.record(layer(a.size, w.borrow(), a.borrow(), b.borrow().partition(64)))
    scope.record(agt.d2h(y.borrow(), out=answer_there))
slot[:] = tokens[3]
*_, answer = scope.graph.launch().sync()  # a launch yields all that was recorded
assert np.allclose(answer, in_numpy(host, tokens[3]), atol=1e-4)
try:
    with agt.CudaGraph.scope(stream):
        stream.synchronize()
except agt.errors.NestedSyncError:
    pass
else:
    raise AssertionError("waiting inside of a capture should have been refused")
agt.memcpy(x.borrow(), tokens[1]).sync_on(stream)
network(weights, arrays).sync_on(stream)
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(host, tokens[1]), atol=1e-4)

# %% [markdown] id=exercise-no-allocation
# ### Exercise: fit for a graph
#
# This pipeline copies `slot` to the device, applies ReLU and copies the result back, and it allocates three times on the way. Rewrite it so that it can be captured: use no device arrays but `x` and `y`, which exist already, read the pinned array `slot`, and write the pinned array `out`. The caller goes on using `x` and `y`, so lend them.


# %% id=09-no-allocation starter
def capturable(slot, x, y, out):
    n = slot.size
    return (
        agt.h2d(slot)
        .and_then(lambda x: agt.relu(n, x, agt.zeros(n).partition(256)).output())
        .to_host()
    )


# %% id=09-no-allocation solution
def capturable(slot, x, y, out):
    n = slot.size
    return agt.zip(
        agt.memcpy(x.borrow(), slot),
        agt.relu(n, x.borrow(), y.borrow().partition(256)),
        agt.d2h(y.borrow(), out=out),
    )


# %% id=09-no-allocation hints
# Three steps make an array: `h2d`, `zeros` and `to_host`. For each of them you've been given one: `x`, `y` and `out`.
#
# `agt.memcpy(x.borrow(), slot)` writes into `x`, and `agt.d2h(y.borrow(), out=out)` writes into `out`.
#
# `agt.zip` puts the three steps in order: copy, `agt.relu(n, x.borrow(), y.borrow().partition(256))`, copy.

# %% id=09-no-allocation explanation
# It doesn't make anything any more, so all addresses are known when you capture it. Each launch reads the slot, and the result is always in `out`.

# %% id=09-no-allocation-check
check("09-no-allocation", capturable)

# %% [markdown] id=prepared
# ### Somebody else's pipeline
#
# The MLP of chapter 7 allocates in every batch, so you can't capture it as it is. Chapter 7 also has the solution: `op.prepare()` runs the functions of an operation once, allocates its arrays and packs its arguments. What's left is a list of calls *and the memory that goes with it*. `prepared.launch()` makes these calls again, one by one. It allocates nothing, so it can be captured. (Its events become edges between nodes.)

# %% id=prepare
inputs = agt.data.seed_inputs(dim=64, batches=4)
w0, w1 = upload(inputs).sync()
slots = [agt.pin(batch) for batch in inputs.batches]


def four_batches():
    return agt.overlap(*[forward(slot, w0, w1) for slot in slots]).named("four batches")


prepared = four_batches().prepare()
mlp_graph = prepared.launch().graph_on(stream)
print(prepared)
print(mlp_graph)

# %% [markdown] id=three-ways-text
# The pinned arrays that the pipeline read from are its input slots now. So you can run it in three ways, and each takes more out of the loop:

# %% id=three-ways
launch_prepared, launch_graph = prepared.launch(), mlp_graph.launch()
ways = {
    "described anew": lambda: four_batches().sync_on(stream),
    "prepared": lambda: launch_prepared.sync_on(stream),
    "graph": lambda: launch_graph.sync_on(stream),
}
way_us = dict(zip(ways, took(*ways.values())))
for name, us in way_us.items():
    print(f"{name:>14}: {us:6.0f} µs")
agt.compare_timelines(
    [recorded(op) for op in (four_batches(), launch_prepared, launch_graph)],
    list(ways),
    lanes=("host", "streams"),
    lesson="Prepared, the calls are shorter. As a graph there is one, and four streams "
    "work at once.",
)

# %% [markdown] id=measured
# How close is that to the best you can do? Four batches on an H200 (driver 580.159, CuPy 14.2, Python 3.12, 22 November 2026), next to the same work written by hand with CuPy, in microseconds:
#
# | matrices | one batch, by hand | four streams, by hand | described anew | prepared | our graph | CuPy's graph |
# |---|---|---|---|---|---|---|
# | 64 x 64 | 33 to 35 | 118 to 140 | 300 to 340 | 105 to 120 | 41 to 50 | 39 to 42 |
# | 256 x 256 | 77 | 174 | 342 | 169 | 135 | 129 |
# | 512 x 512 | 185 | 416 | 485 | 416 | 417 | 414 |
#
# In the last row the graph gains nothing over four streams, because the kernels are long enough to hide every call.

# %% id=prepared-check tags=asserts
expected = np.maximum(inputs.batches @ inputs.w0 @ inputs.w1, 0)
if device.simulated:
    assert way_us["graph"] < way_us["prepared"] < way_us["described anew"]
slots[0][:] = inputs.batches[3]  # another request has come
assert np.allclose(mlp_graph.launch().sync()[0], expected[3], atol=1e-6)
slots[0][:] = inputs.batches[0]
assert np.allclose(mlp_graph.launch().sync(), expected, atol=1e-6)
assert np.allclose(prepared.launch().sync(), expected, atol=1e-6)

# %% [markdown] id=shapes
# ### Requests of any shape
#
# Sizes are on the list, too: grids, and the number of bytes of each copy. So a graph answers requests of one shape. A server that gets others keeps a graph for each shape it has seen, and captures when a new one turns up. (If there are too many shapes, it rounds up: a request of 50 goes into a slot of 64, and the rest is padding.)

# %% [markdown] id=exercise-shapes
# ### Exercise: a graph for each shape
#
# Write a small server. `make(slot)` returns an operation that reads the pinned array `slot`, can be captured, and yields an array on the host. `make_server(make, stream)` returns a function `answer(x)`, which gives the result for `x`, an array of *any* shape with at least one dimension. It captures when a shape comes up for the first time, and never again for that shape, and it launches a graph once for each request. What it returns belongs to the caller, who may write into it.


# %% id=09-shapes starter
def make_server(make, stream):
    def answer(x):
        return make(agt.pin(x)).sync_on(stream)

    return answer


# %% id=09-shapes solution
def make_server(make, stream):
    known = {}

    def answer(x):
        if x.shape not in known:
            slot = agt.pinned(x.shape)
            known[x.shape] = slot, make(slot).graph_on(stream)
        slot, graph = known[x.shape]
        slot[:] = x
        return graph.launch().sync_on(stream).copy()

    return answer


# %% id=09-shapes hints
# Use a dictionary from shapes to graphs. Which array is the slot of a graph, and who keeps it?
#
# Make the slot together with the graph, by `agt.pinned(x.shape)`, and keep both. Each request is copied into the slot: `slot[:] = x`.
#
# `known[x.shape] = slot, make(slot).graph_on(stream)` if the shape is new; then `graph.launch().sync_on(stream).copy()`.

# %% id=09-shapes explanation
# The first request of a shape pays for the capture, and all the others only for a launch. You return a copy, because the next request of the same shape overwrites the graph's own array.

# %% id=09-shapes-check
check("09-shapes", make_server)

# %% [markdown] id=twice-text
# ### A second list?
#
# Does a second stream need a second list? Let's launch *one* graph on both streams, one right after the other. It has 48 layers, to be busy when the second launch arrives.


# %% id=twice-models
def deep_model(seed):
    """A model that is six times as deep as the others."""
    _, w, a = make_network(layers=48, seed=seed)
    return network(w, a).named(f"deep {seed}")


other = agt.create_stream()


def both(first, second):
    first.async_on(stream)
    second.async_on(other)
    stream.synchronize()
    other.synchronize()


deep_op = deep_model(0)
deep = deep_op.graph_on(stream).launch()
deep_us, same_us = took(lambda: deep.sync_on(stream), lambda: both(deep, deep))
print(
    f"one launch: {deep_us:.0f} µs, two of the same graph on two streams: "
    f"{same_us:.0f} µs"
)

# %% [markdown] id=again-text
# You do. CUDA makes the second launch of a graph wait for the first, even on another stream. (Both write into the same arrays, after all.) So let's write the list twice:
#
# ```python
# again = deep_op.graph_on(stream).launch()
# ```

# %% id=09-twice guess
# `deep` and `again` are graphs of the same operation. We launch one on each stream. What happens?
#
# - `waits`: the second waits for the first, because they use the same arrays
# - `apart`: they run side by side, because each capture got arrays of its own
# - `race`: they run side by side, and both write into the same arrays

# %% id=09-twice reveal
again, complaint = deep_op.graph_on(stream).launch(), ""
try:
    (again_us,) = took(lambda: both(deep, again))
    happened = "race" if again_us < 0.95 * same_us else "waits"  # there, one waits
except agt.errors.StreamRaceError as error:
    complaint = str(error).partition(", so")[0]
    happened = "race"

reveal("09-twice", happened, lambda: print(complaint))

# %% id=09-twice told truth=race
# CUDA goes by the graph. It never compares the addresses on two lists. **For two at a time you need two graphs, each with arrays of its own.**

# %% [markdown] id=twice-own
# ### Once more, with arrays of its own

# %% id=twice-picture
def launched_twice(first, second):
    with agt.record() as trace:
        both(first, second)
    return trace


another = deep_model(1).graph_on(stream).launch()
agt.compare_timelines(
    [launched_twice(deep, deep), launched_twice(deep, another)],
    ["the same graph twice", "two graphs"],
    lanes=("host", "streams"),
    lesson="The same graph twice: one after the other, on two streams. Two graphs: "
    "side by side.",
)

# %% id=twice-check tags=asserts
if device.simulated:
    assert happened == "race"
    (two_us,) = took(lambda: both(deep, another))
    assert two_us < 0.65 * same_us
    assert same_us > 1.8 * deep_us
    assert launched_twice(deep, deep).metrics().max_concurrency == 1
    assert launched_twice(deep, another).metrics().max_concurrency == 2

# %% [markdown] id=server
# ### And many at a time
#
# Your server answers one request after the other. For two at a time you need two graphs, each with a slot and arrays of its own, and `agt.Server` is just that: a few **lanes**, each of them a stream with a slot and a graph. (It prepares the pipeline for each lane, so `forward` may allocate.) A request takes a free lane or waits for one, and gets a copy of its answer.

# %% id=server-run
requests = [batch for _ in range(3) for batch in inputs.batches]

async with agt.Server(lambda slot: forward(slot, w0, w1), (64, 64), lanes=4) as server:
    with agt.record() as served:
        answers = [answer async for answer in server.map(requests)]

served.plot(
    title=f"{len(requests)} requests on four lanes",
    lanes=("host", "streams"),
    lesson="One short call for each request. A stream gets its next when the host has "
    "heard that it's free.",
)

# %% [markdown] id=server-gap
# After the first four there's a gap: results are back, but the host must hear of them and wake the tasks. Then it keeps up: twelve requests, and twelve calls. You've stopped phoning the shop for every egg.

# %% id=server-check tags=asserts
calls = [span.name for span in served if span.kind == "call"]
assert len([name for name in calls if name.startswith("launch graph")]) == len(requests)
assert not [name for name in calls if name.startswith("malloc")]
if device.simulated:
    assert len(served.streams) == 4
    assert served.metrics().max_concurrency >= 3
for i, answer in enumerate(answers):
    assert np.allclose(answer, expected[i % 4], atol=1e-6)
