"""Source of notebooks/09_cuda_graphs.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # CUDA graphs: one call for a whole pipeline
#
# **After this page you can**
#
# - tell from a timeline whether a program waits for its device or for its host;
# - capture a pipeline as a CUDA graph, from an operation or piece by piece, and give it branches;
# - run it again and again in a token loop, each time with new input;
# - say what a graph cannot hold, and why, and make a pipeline fit for one;
# - compute from two numbers when a graph pays, and name two cases in which it does not.
#
# | | |
# |---|---|
# | Time | 80 minutes |
# | You need | [04_combinators](04_combinators.ipynb), [06_await](06_await.ipynb) and [07_async_mlp](07_async_mlp.ipynb) |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.commands.mlp import forward, upload
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=why
# ## A promise that was not kept
#
# The MLP of [chapter 7](07_async_mlp.ipynb) ran four batches on four streams, and at 64 x 64 the streams brought next to nothing. The device was done
# with a batch before Python had submitted the next one. We said "the host is the bottleneck", and went on to larger matrices.
#
# But small work is common. A language model that writes *one* token, a robot that answers a hundred times a second, a
# network of many thin layers: hundreds of kernels, each of a few microseconds. You cannot make them larger. What
# you can do is make fewer *calls*.
#
# Here is such a network: `layers` thin layers, each a matrix times a vector and a `tanh`, in one kernel. One thread computes one
# element.

# %% id=kernel
layer = agt.Kernel(r"""
extern "C" __global__ void layer(unsigned int n, const float* w, const float* x, float* y)
{
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

# %% [markdown] id=network-text
# All memory is there from the start: the weights, and an array for the input, for the output, and for all that is between. The
# layers lend these arrays (`borrow`), and `agt.zip` puts them in order, on one stream.


# %% id=network
def make_network(layers, n=64, seed=0):
    """Weights, on the host and on the device; and arrays for the input and for the output of each layer."""
    rng = np.random.default_rng(seed)
    host = rng.standard_normal((layers, n, n), dtype=np.float32) * np.float32(1.2 / n**0.5)
    weights = [agt.h2d(agt.pin(w), "w").sync() for w in host]
    arrays = [agt.zeros(n, name=f"x{i}").sync() for i in range(layers + 1)]
    return host, weights, arrays


def network(weights, arrays):
    """All layers as one operation; input is arrays[0], output is arrays[-1]."""
    steps = [
        layer(x.size, w.borrow(), x.borrow(), y.borrow().partition(64))
        for w, x, y in zip(weights, arrays, arrays[1:])
    ]
    return agt.zip(*steps).named("network")


def in_numpy(host, x):
    for w in host:
        x = np.tanh(w @ x)
    return x


host, weights, arrays = make_network(layers=8)
x, y = arrays[0], arrays[-1]
token = agt.pin(np.random.default_rng(1).standard_normal(64, dtype=np.float32))

agt.memcpy(x.borrow(), token).sync()
op = network(weights, arrays)
op.sync()
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(host, token), atol=1e-4)

# %% [markdown] id=memcpy-text
# (`agt.memcpy(target, source)` copies *into* an array that is there already. The source may be on the host, as here. Where `h2d` makes a
# new array each time, `memcpy` writes to the same place again. It becomes important soon.)

# %% id=predict-busy
busy = Prediction(
    "Eight layers, eight calls. When Python makes the last call, how many of the eight kernels are done?",
    few="at most two: calls return at once, and the device has just begun",
    half="three to five",
    most="six or seven",
)
busy

# %% id=commit-busy
busy.commit(...)


# %% id=run-busy
def recorded(op):
    """The trace of a run. On a real GPU: of the quickest of five, after one for practice."""
    if not device.simulated:
        op.sync_on(stream)
    traces = []
    for _ in range(1 if device.simulated else 5):
        with agt.record() as trace:
            op.sync_on(stream)
        traces.append(trace)
    return min(traces, key=lambda trace: trace.metrics().makespan)


by_calls = recorded(op)
by_calls.plot(title="Eight layers, eight calls")

# %% id=reveal-busy
last_call = [span for span in by_calls if span.kind == "call"][-1]
done = sum(span.end <= last_call.start for span in by_calls.device_spans)
busy.reveal(
    "few" if done <= 2 else "half" if done <= 5 else "most",
    f"When the last call began, {done} kernels had ended.",
)

# %% [markdown] id=read-busy
# A kernel is here and there, and between them the device waits for Python's next call. This is what **host-bound** means. A quicker GPU would
# not help at all. A second stream would not help either: it is the same Python that would have to fill it.
#
# (On a real GPU, a recording that uses CUDA events counts a part of the waiting to the kernels, so they look longer than they are. And recording itself costs the host
# time. That is why we take *numbers* from the host's clock on this page, without a recording. What is compared is run in turns, so that a slow moment of the machine
# meets both.)


# %% id=took
def took(*runs, times=30):
    """Microseconds of each run on the host's clock, to the end of its waiting: medians, in turns."""
    clock = [[] for _ in runs]
    for _ in range(1 if device.simulated else 1 + times):  # the simulated clock is always the same
        for run, seen in zip(runs, clock):
            start = device.now()
            run()
            seen.append(device.now() - start)
    return [float(np.median(seen[-times:])) for seen in clock]  # the first is for practice


def by_call():
    network(weights, arrays).sync_on(stream)


(calls_us,) = took(by_call)
print(f"described and run, call by call: {calls_us:.0f} µs")

# %% id=check-busy
assert [span.name for span in by_calls.device_spans] == ["layer"] * 8
assert done >= 3
if device.simulated:
    m = by_calls.metrics()
    assert m.device_active < m.makespan / 3
    assert m.host["call"] > 0.8 * m.makespan

# %% [markdown] id=graph
# ## Write the calls down, once
#
# Look at what Python does for each run: it finds the kernel, works out the grid, packs the arguments, and calls the driver. Then the same
# for the next layer. And for the next run *all of it again*, with the same kernels, the same grids, the same addresses.
#
# A **CUDA graph** is the list of these calls, handed to the driver as a whole. It has a life in three acts:
#
# | | what happens | when |
# |---|---|---|
# | **capture** | the calls are written down. Nothing runs | once |
# | **instantiate** | the driver checks the list and makes it ready | once |
# | **launch** | *one* call starts everything on the list | again and again |
#
# An operation is a recipe already, so capturing it takes one line. `graph_on` does the first two acts:

# %% id=capture
with agt.record() as capturing:
    graph = op.graph_on(stream)

print(graph)
assert graph.nodes == 8
assert capturing.device_spans == []

# %% [markdown] id=capture-read
# The graph has a **node** for each kernel, copy and fill. And the device has done nothing so far: the recording has no span of it.
#
# `graph.launch()` is an operation like any other. It can be awaited, spawned, put into a chain. It yields what `op` would yield.

# %% id=predict-gain
sooner = Prediction(
    "Eight layers as a graph, against eight calls. How much sooner is the run over?",
    none="no sooner: it is the same work on the same device",
    some="up to twice as soon",
    much="more than twice as soon",
)
sooner

# %% id=commit-gain
sooner.commit(...)

# %% id=run-gain
launch = graph.launch()
calls_us, graph_us = took(by_call, lambda: launch.sync_on(stream))
by_graph = recorded(launch)
agt.compare_timelines([by_calls, by_graph], ["eight calls", "one graph"])

# %% id=reveal-gain
ratio = calls_us / graph_us
sooner.reveal(
    "none" if ratio < 1.1 else "some" if ratio <= 2 else "much",
    f"Calls: {calls_us:.0f} µs. Graph: {graph_us:.0f} µs.",
)

# %% [markdown] id=read-gain
# The host makes one short call, and waits. The kernels follow each other without a hole. (On a real GPU you see them one by one where the times come from
# CUPTI. CUDA events cannot look inside of a graph: with them it is a single bar, from the first node to the last.)

# %% id=check-gain
calls = [span.name for span in by_graph if span.kind == "call"]
print(calls)
assert calls == ["launch graph network"]
assert ratio > 1.5
if device.simulated:
    assert ratio > 2
    assert len(by_graph.find("layer")) == 8
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(host, token), atol=1e-4)

# %% [markdown] id=misconception-kernels
# > **Misconception: a graph makes kernels faster.**
# >
# > - *What you see:* a run that takes a fraction of the time.
# > - *Why:* what went away is the waiting *between* kernels. The driver starts what it was given before.
# > - *What helps:* look at the kernels' own spans before you hope for a graph. If they fill the time, it has nothing to remove.

# %% id=misconception-kernels-code
# Recorded on an H200: three tokens through eight layers, by single calls and by a graph's launch for each.
traces = [agt.Trace.load_recording(f"09_cuda_graphs{how}") for how in ("_by_calls", "")]
usual = [float(np.median([span.duration for span in trace.find("layer")])) for trace in traces]
for name, trace, us in zip(["calls", "graph"], traces, usual):
    print(f"{name}: {trace.metrics().makespan:.0f} µs in all; a kernel takes {us:.1f} µs")

# %% id=misconception-kernels-check tags=asserts
assert 0.9 < usual[0] / usual[1] < 1.1
assert traces[0].metrics().makespan > 1.4 * traces[1].metrics().makespan

# %% [markdown] id=exercise-first-graph
# ### Exercise: your first graph
#
# Run an operation `times` times on `stream`, as a graph that is captured once. Wait once, at the end: launches on one stream follow each other
# by themselves. Return the graph, so that others can use it.


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
# Two acts: capture once, before the loop; launch in the loop. How does one start an operation without waiting for it?
#
# `graph.launch()` is an operation, and does nothing by itself. `.async_on(stream)` submits it.
#
# `graph = op.graph_on(stream)`; in the loop `graph.launch().async_on(stream)`; then `stream.synchronize()` and `return graph`.

# %% id=09-first-graph explanation
# The capture has cost as much as a run or two, once. After that each run is one call, and the stream keeps the runs in order, so one wait
# at the end is enough.

# %% id=09-first-graph-check
check("09-first-graph", replay)

# %% [markdown] id=tokens
# ## Token by token
#
# So far each launch computes the same. All addresses and all numbers among the arguments were written down when the graph was captured, and
# stay as they are. What *can* change is what lies at these addresses. So new input goes to the old place: into
# `x`, the array that the first layer reads.
#
# `graph.update(op)` runs an operation between two launches. The next launch comes after it, on whatever stream, and Python does not wait. Here the graph ends with
# a copy to the host, into a pinned array that we have made before:

# %% id=token-graph
result = agt.pinned(64)
step = agt.zip(network(weights, arrays), agt.d2h(y.borrow(), out=result)).last().named("step")
graph = step.graph_on(stream)
print(graph)
assert graph.nodes == 9

# %% id=token-loop
rng = np.random.default_rng(2)
tokens = [agt.pin(rng.standard_normal(64, dtype=np.float32)) for _ in range(5)]


async def token_loop(tokens):
    results = []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = await graph.launch()
        results.append(answer.copy())
    return results


await token_loop(tokens)  # a first time, not recorded
with agt.record() as looped:
    answers = await token_loop(tokens)

looped.plot(title="Five tokens: an update and a launch for each")

# %% id=token-check
for token, answer in zip(tokens, answers):
    assert np.allclose(answer, in_numpy(host, token), atol=1e-4)
marks = ("record", "wait_event")  # with which an update puts itself before the next launch
calls = [span.name for span in looped if span.kind == "call" and span.name not in marks]
assert calls == ["enqueue h2d", "launch graph step"] * 5
print("five tokens, five answers, two calls for each")

# %% [markdown] id=token-read
# Updates go to the graph's own stream, launches to the streams of the policy, in turn. The arrows are events: what makes each launch wait for its update, and each
# update for the launch before it. You have written none of them.

# %% [markdown] id=token-recorded-text
# And on a real GPU? Here are three tokens as an H200 did them, from **recordings** that come with the course: above, each kernel and copy is called by itself; below, each
# token is an update and a launch.

# %% id=token-recorded
h200_calls = agt.Trace.load_recording("09_cuda_graphs_by_calls")
h200_graph = agt.Trace.load_recording("09_cuda_graphs")
agt.compare_timelines(
    [h200_calls, h200_graph],
    ["H200: three tokens by calls", "H200: three tokens by a graph"],
    lanes=("host", "streams"),
)

# %% id=token-recorded-check
layers_us = []
for trace in (h200_calls, h200_graph):
    layers = trace.find("layer")
    calls = [span for span in trace if span.kind == "call"]
    layers_us.append(layers[7].end - layers[0].start)
    print(f"{len(calls)} calls; the first token's eight layers: {layers_us[-1]:.0f} µs")
    assert len(layers) == 3 * 8
    assert len(calls) == (3 * 10 if trace is h200_calls else 3 * 2)
assert layers_us[0] > 2 * layers_us[1]

# %% [markdown] id=whose-result-text
# Why `answer.copy()`? The graph writes to the same memory each time. That holds for its output as well.

# %% [markdown] id=misconception-result
# > **Misconception: the result of a launch is mine for ever.**
# >
# > - *What you see:* a list of results that are all equal: to the last one.
# > - *Why:* arrays of a graph are lent. Their addresses are part of it, so the next launch writes to the very same.
# > - *What helps:* use a result before the next launch, or copy it.

# %% id=misconception-result-code
with agt.using("sim"):
    mine = agt.create_stream()
    number, there = agt.pinned(1), agt.pinned(1)
    cell = agt.zeros(1).sync()
    number[:] = 0
    echo = agt.zip(agt.memcpy(cell.borrow(), number), agt.d2h(cell.borrow(), out=there)).last()
    echo_graph = echo.graph_on(mine)
    kept, copied = [], []
    for i in (10, 20, 30):
        number[:] = i
        answer = echo_graph.launch().sync()
        kept.append(answer)
        copied.append(answer.copy())

print("kept:  ", *[a[0] for a in kept])
print("copied:", *[a[0] for a in copied])
assert [a[0] for a in kept] == [30, 30, 30]
assert [a[0] for a in copied] == [10, 20, 30]

# %% [markdown] id=slot-text
# That cell had another way to bring in new input, did you see it? The copy from the host is *inside* of this graph, and reads the pinned array
# `number` anew at each launch. Such an array is an **input slot**: write to it, launch, and do not touch it until that launch is done. A slot saves the second call. `update` can do
# what a slot cannot: the source may be another one each time, or on the device.
#
# For instance the output. When a network feeds on itself, the host only has to keep the queue full:

# %% id=feedback
start = tokens[0]
steps = 6
agt.memcpy(x.borrow(), start).sync_on(stream)
with agt.record() as fed_back:
    for _ in range(steps):
        graph.launch().async_on(stream)
        graph.update(agt.memcpy(x.borrow(), y.borrow()))
    stream.synchronize()

right = start
for _ in range(steps):
    right = in_numpy(host, right)
assert np.allclose(result, right, atol=1e-3)
assert len([span for span in fed_back if span.kind == "wait"]) == 1
print(f"{steps} steps, each on the output of the one before, and the host has waited once")
fed_back.plot(title="Six steps, each on the output of the one before", lanes=("host", "streams"))

# %% [markdown] id=exercise-token-loop
# ### Exercise: a token loop
#
# `graph` reads the device array `x`, and its launch yields an array on the host: the graph's own. Run it for each of the `tokens` (pinned arrays),
# without blocking the event loop, and return a list of results, one for each token.


# %% id=09-token-loop starter
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        results.append(await graph.launch())
    return results


# %% id=09-token-loop solution
async def run_tokens(graph, x, tokens):
    results = []
    for token in tokens:
        graph.update(agt.memcpy(x.borrow(), token))
        answer = await graph.launch()
        results.append(answer.copy())
    return results

# %% id=09-token-loop hints
# Two things are missing. The graph reads `x`, and nobody has put the token there. And whose is the array that a launch yields?
#
# `graph.update(agt.memcpy(x.borrow(), token))` before the launch.
#
# The array is the graph's, and the next launch writes to it: keep `answer.copy()`.

# %% id=09-token-loop explanation
# The update and the launch follow each other on the device, so one `await` for both is enough. The copy on the host is the price of fixed
# addresses. Where a result is used at once, and not kept, you can do without.

# %% id=09-token-loop-check
check("09-token-loop", run_tokens)

# %% [markdown] id=scope
# ## Piece by piece
#
# Sometimes there is no single operation yet: a loop, an `if`, pieces from several modules. Then open a **scope**, and record one
# piece after the other. After the block the graph is there.

# %% id=scope-code
slot = agt.pinned(64)

with agt.CudaGraph.scope(stream, "by scope") as scope:
    scope.record(agt.memcpy(x.borrow(), slot))
    for w, a, b in zip(weights, arrays, arrays[1:]):
        scope.record(layer(a.size, w.borrow(), a.borrow(), b.borrow().partition(64)))
    handle = scope.record(agt.d2h(y.borrow(), out=result))

graph = scope.graph
print(graph)
print("in the scope:", handle)
assert graph.nodes == 10

# %% [markdown] id=scope-read
# Nothing runs in a scope. What `record` gives back are handles, to be passed on and not to be read. A launch yields a tuple of all that was recorded,
# so here the array is the last entry. With `slot` as the input, a run is an assignment and one call:

# %% id=scope-run
for token in tokens:
    slot[:] = token
    answer = (await graph.launch())[-1]
    assert np.allclose(answer, in_numpy(host, token), atol=1e-4)
print("the same five answers")

# %% [markdown] id=branches
# ## Branches
#
# Work in a stream is in order, and so is what you have captured up to now. `agt.overlap` gives each arm a stream of its own, and joins them. In a capture its arms
# become **branches** of the graph. Take four of our networks, each with weights and arrays of its own:

# %% id=four-networks
nets = [make_network(layers=8, seed=i) for i in range(4)]
arms = [network(w, a).named(f"network {i}") for i, (_, w, a) in enumerate(nets)]

one_arm = arms[0].graph_on(stream)
four_arms = agt.overlap(*arms).named("four networks").graph_on(stream)
print(four_arms)
assert four_arms.nodes == 4 * one_arm.nodes

# %% id=predict-branches
four_for = Prediction(
    "A graph of four networks side by side, against a graph of one. How much longer does it take?",
    four="about 4 times: it is four times the work",
    some="1.5 to 3 times",
    one="hardly longer: less than 1.5 times",
)
four_for

# %% id=commit-branches
four_for.commit(...)

# %% id=run-branches
four_trace = recorded(four_arms.launch())
calls_trace = recorded(agt.overlap(*arms))
agt.compare_timelines(
    [calls_trace, four_trace],
    ["overlap, by calls", "overlap, as a graph"],
    lanes=("host", "streams"),
)

# %% id=reveal-branches
one_launch, four_launch = one_arm.launch(), four_arms.launch()
one_us, four_us = took(lambda: one_launch.sync_on(stream), lambda: four_launch.sync_on(stream))
longer = four_us / one_us
four_for.reveal(
    "one" if longer < 1.5 else "some" if longer <= 3 else "four",
    f"A graph of one network: {one_us:.0f} µs. Of four: {four_us:.0f} µs.",
)

# %% [markdown] id=read-branches
# There is the promise that streams alone could not keep. By calls, the four streams make the staircase that you know from chapter 7: whenever Python has
# filled one, the one before is done. As a graph, all four are under way together, because no Python has to walk from one to the next. Each network
# keeps one of the device's many multiprocessors busy, so there is room for all.

# %% id=check-branches
assert four_trace.metrics().makespan < calls_trace.metrics().makespan
if device.simulated:
    assert longer < 1.5
    assert four_trace.metrics().max_concurrency == 4
    assert calls_trace.metrics().makespan > 3 * four_trace.metrics().makespan
for weights_i, _, arrays_i in nets:
    out = agt.d2h(arrays_i[-1].borrow()).sync()
    assert np.allclose(out, in_numpy(weights_i, np.zeros(64)), atol=1e-4)

# %% [markdown] id=branches-h200-text
# The simulated device even starts all four at once. A GPU is handed one branch after the other by the driver, as you see in a recording of an H200. (And CUPTI looks
# at each node here, so the one call takes longer than it does without a recording.)

# %% id=branches-h200
h200_branches = agt.Trace.load_recording("09_cuda_graphs_branches")
(only,) = [span for span in h200_branches if span.kind == "call"]
assert only.name == "launch graph four networks"
assert h200_branches.metrics().max_concurrency == 4
firsts = [min(s.start for s in h200_branches.find("layer") if s.stream == n) for n in range(1, 5)]
assert firsts == sorted(set(firsts))
h200_branches.plot(title="Four networks, one call, on an H200", lanes=("host", "streams"))

# %% [markdown] id=exercise-branches
# ### Exercise: branches
#
# Make *one* graph of a list of operations, in which none has to wait for another. A launch should yield their results, in the order of the list.


# %% id=09-branches starter
def side_by_side(ops, stream):
    return agt.zip(*ops).graph_on(stream)


# %% id=09-branches solution
def side_by_side(ops, stream):
    return agt.overlap(*ops).graph_on(stream)

# %% id=09-branches hints
# `zip` is about results. Which combinator is about time?
#
# Arms of `agt.overlap` become branches of the graph.

# %% id=09-branches explanation
# `overlap` forks to a stream for each arm, and joins them. The capture notes who waits for whom, and that is all that a graph knows of
# streams: its branches have no order between them.

# %% id=09-branches-check
check("09-branches", side_by_side)

# %% [markdown] id=refused
# ## What a graph cannot hold
#
# Three things are refused. Each time the question is the same: would it still make sense at the hundredth launch?
#
# **Memory is not allocated.** A capture writes down *addresses*. An array that is made for one run has an address that means nothing in the next one.
# (CUDA itself knows nodes that allocate, from a pool that you do not see. We prefer that you see it.)


# %% id=refused-allocation
def refused(op):
    try:
        op.graph_on(stream)
    except agt.errors.CaptureError as error:
        print("CaptureError:", error)
    else:
        raise AssertionError("this should have been refused")


refused(agt.h2d(slot))
print()
refused(agt.d2h(y.borrow()))

# %% [markdown] id=refused-pageable-text
# **Ordinary host memory is not read.** For a copy from an ordinary, pageable array the driver reads the array *at the call*, into a buffer of its own. A graph's copy runs much
# later, with nobody there to do that. So it takes pinned memory, which the device can read by itself.

# %% id=refused-pageable
refused(agt.memcpy(x.borrow(), np.zeros(64, np.float32)))

# %% [markdown] id=refused-waiting-text
# **Nobody waits inside.** In a capture nothing runs, so there is nothing that could ever be done.

# %% id=refused-waiting
try:
    with agt.CudaGraph.scope(stream) as scope:
        scope.record(network(weights, arrays))
        stream.synchronize()
except agt.errors.NestedSyncError as error:
    print("NestedSyncError:", error)
else:
    raise AssertionError("waiting inside of a capture should have been refused")

# %% [markdown] id=refused-after-text
# For the same reason a graph has no `if` of Python's in it, and no `print`. They run when you capture, once, and what they decided is
# what the graph does for ever. And a graph cannot be captured into another here: capture the operation that it was made of.
#
# Kernels, copies and fills are what is left. It is the whole menu, and it is a *law* of this package: graph-safe, or refused. A refusal does no harm. The
# capture has touched nothing, and the stream works as before:

# %% id=refused-after
agt.memcpy(x.borrow(), tokens[1]).sync_on(stream)
network(weights, arrays).sync_on(stream)
assert np.allclose(agt.d2h(y.borrow()).sync(), in_numpy(host, tokens[1]), atol=1e-4)
print("the stream is as good as new")

# %% [markdown] id=exercise-no-allocation
# ### Exercise: fit for a graph
#
# This pipeline copies `slot` to the device, applies ReLU, and copies the result back. It allocates three times. Rewrite it, so that it can be captured: it uses
# the device arrays `x` and `y`, which are there already, reads the pinned array `slot`, and writes the pinned array `out`. (Keep `x` and `y`: lend them.)


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
# Three steps make an array: `h2d`, `zeros` and `to_host`. For each of them there is one already: `x`, `y` and `out`.
#
# `agt.memcpy(x.borrow(), slot)` writes into `x`, `agt.d2h(y.borrow(), out=out)` into `out`.
#
# `agt.zip` puts the three steps in order: copy, `agt.relu(n, x.borrow(), y.borrow().partition(256))`, copy.

# %% id=09-no-allocation explanation
# Nothing is made any more, so all addresses are known when the graph is captured. The slot is read at each launch, and the result is
# always in `out`. `op.prepare().launch()` would have done it without rewriting, with arrays of its own.

# %% id=09-no-allocation-check
check("09-no-allocation", capturable)

# %% [markdown] id=prepared
# ## When you did not write the pipeline
#
# Rewriting is fine for ten lines. What about the MLP of chapter 7, which allocates in every batch, and was meant to? `op.prepare()` takes all decisions once: its functions run,
# its arrays are allocated, its arguments are packed. What is left is a list of calls *and the memory that goes with it*. `prepared.launch()` makes these calls again. It is not a graph: the calls are
# still made one by one, but without Python's part in them.

# %% id=prepare
inputs = agt.data.seed_inputs(dim=64, batches=4)
expected = np.maximum(inputs.batches @ inputs.w0 @ inputs.w1, 0)
w0, w1 = upload(inputs).sync()
slots = [agt.pin(batch) for batch in inputs.batches]


def four_batches():
    return agt.overlap(*[forward(slot, w0, w1) for slot in slots]).named("four batches")


prepared = four_batches().prepare()
print(prepared)
answers = prepared.launch().sync()
assert np.allclose(answers, expected, atol=1e-6)

# %% [markdown] id=prepared-read
# `forward` is the pipeline of chapter 7, as the package has it. The pinned arrays that it reads are its input slots. And as
# nothing is allocated in a *launch* of it, that can be captured:

# %% id=prepared-graph
graph = prepared.launch().graph_on(stream)
print(graph)

slots[0][:] = inputs.batches[3]  # another request has come
answers = graph.launch().sync()
assert np.allclose(answers[0], expected[3], atol=1e-6)
slots[0][:] = inputs.batches[0]
assert np.allclose(graph.launch().sync(), expected, atol=1e-6)

# %% [markdown] id=three-ways-text
# So there are three ways to run one pipeline. Each takes more out of the loop: `prepare` takes out Python's part, a graph takes out the calls as well.


# %% id=three-ways
launch_prepared, launch_graph = prepared.launch(), graph.launch()
ways = {
    "built anew": lambda: four_batches().sync(),
    "prepared": lambda: launch_prepared.sync(),
    "graph": lambda: launch_graph.sync(),
}
times = dict(zip(ways, took(*ways.values())))
for name, us in times.items():
    print(f"{name:>10}: {us:6.0f} µs")
assert times["graph"] < times["prepared"] < times["built anew"]

# %% id=three-ways-plot
traces = [recorded(op) for op in (four_batches(), launch_prepared, launch_graph)]
agt.compare_timelines(traces, list(ways), lanes=("host", "streams"))

# %% [markdown] id=measured
# How close is that to the best one can do? We have measured it on an H200 (driver 580.159, CuPy 14.2, Python 3.12, 21 November 2026), against the same work written with CuPy by
# hand. Four batches, in microseconds:
#
# | matrices | one batch, by hand | four streams, by hand | built anew | prepared | our graph | CuPy's graph |
# |---|---|---|---|---|---|---|
# | 64 x 64 | 35 | 118 to 140 | 650 | 115 to 120 | 41 to 50 | 39 to 42 |
# | 256 x 256 | 79 | 180 | 620 | 181 | 132 | 129 |
# | 512 x 512 | 185 | 429 | 765 | 425 | 424 | 416 |
#
# The first row keeps the promise: four batches in little more than the time of one. Read the last row as well. There, the graph brings nothing
# over four streams. Which is what comes next.

# %% [markdown] id=large
# ## When it does not pay: large kernels
#
# A graph removes what the host adds between kernels. If kernels take longer than the calls, the host is ahead of the device, and what it adds
# is hidden. Four layers, wider and wider, by calls and as a graph:

# %% id=predict-large
wide = Prediction(
    "Layers of 2048 x 2048. How much sooner is a graph than the calls?",
    much="more than 3 times as soon, as before",
    some="1.5 to 3 times as soon",
    none="hardly: less than 1.5 times",
)
wide

# %% id=commit-large
wide.commit(...)

# %% id=run-large
gains = {}
print("    n    calls     graph   gain")
for n in (64, 512, 2048):
    _, wide_weights, wide_arrays = make_network(layers=4, n=n)
    wide_launch = network(wide_weights, wide_arrays).graph_on(stream).launch()
    us, us_graph = took(
        lambda: network(wide_weights, wide_arrays).sync_on(stream),
        lambda: wide_launch.sync_on(stream),
    )
    gains[n] = us / us_graph
    print(f"{n:5}  {us:5.0f} µs  {us_graph:5.0f} µs  {gains[n]:5.2f}")

# %% id=reveal-large
wide.reveal(
    "much" if gains[2048] > 3 else "some" if gains[2048] >= 1.5 else "none",
    f"It is {gains[2048]:.2f} times as soon with 2048, and {gains[64]:.1f} times with 64.",
)

# %% id=plot-large
traces = [recorded(network(wide_weights, wide_arrays)), recorded(wide_launch)]
agt.compare_timelines(traces, ["2048 x 2048, calls", "2048 x 2048, graph"])

# %% id=check-large
m = traces[0].metrics()
assert m.device_active > m.makespan / 2
assert gains[64] > gains[2048]
if device.simulated:
    assert gains[64] > gains[512] > gains[2048]
    assert gains[64] > 2
    assert gains[2048] < 1.5

# %% [markdown] id=large-read
# The kernels fill the picture from left to right, and with them the device is the limit. Nothing that the host does better can be seen any more. **A graph is for work that
# is host-bound.** That is the question to put to a timeline, before you write any.

# %% [markdown] id=exercise-layers
# ### Exercise: the gain, layer by layer
#
# Does a graph bring more for a deep network than for a shallow one? Measure it. `make(count)` returns an operation with `count` small kernels. For each of the
# `counts`, record a run of the operation and a run of its graph, both with `sync_on(stream)`, and divide their makespans. The capture should not be
# in the recording. Return a dictionary: how many times as soon the graph is, by count.


# %% id=09-layers starter
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        gains[count] = 1.0
    return gains


# %% id=09-layers solution
def speedups(make, counts, stream):
    gains = {}
    for count in counts:
        op = make(count)
        graph = op.graph_on(stream)
        with agt.record() as by_calls:
            op.sync_on(stream)
        with agt.record() as by_graph:
            graph.launch().sync_on(stream)
        gains[count] = by_calls.metrics().makespan / by_graph.metrics().makespan
    return gains

# %% id=09-layers hints
# Two recordings for each count: `with agt.record() as trace: ...`. The graph has to be there before the second begins.
#
# `trace.metrics().makespan` is the time from the first start to the last end, calls and waiting included.
#
# `gains[count] = by_calls.metrics().makespan / by_graph.metrics().makespan`

# %% id=09-layers explanation
# A run of the graph has a fixed part as well: its one call, the start, the wait. With one layer that is nearly all of its time. The more
# layers there are, the less it counts, and the gain grows towards the ratio of one call to one small kernel.

# %% id=09-layers-check
check("09-layers", speedups)

# %% [markdown] id=one-off
# ## When it does not pay: work that runs once
#
# A capture is not free. Python walks through the whole recipe, as in a run, and the driver has to make its list ready besides. All that has to be *earned
# back*, and each launch earns what it saves:
#
# ```text
#               cost of the capture
# runs  =  --------------------------------
#           time by calls - time by graph
# ```

# %% id=predict-even
even = Prediction(
    "Our network of eight thin layers: after how many runs has the graph earned its capture back?",
    one="with the first: a launch is so much quicker",
    few="with the second, or at most with the tenth",
    many="later than that",
)
even

# %% id=commit-even
even.commit(...)

# %% id=measure-even
capture_us, calls_us, graph_us = took(
    lambda: network(weights, arrays).graph_on(stream),
    by_call,
    lambda: launch.sync_on(stream),
)


def even_after(capture, slow, quick):
    return capture / (slow - quick) if slow > quick else float("inf")


runs = even_after(capture_us, calls_us, graph_us)
print(f"capture {capture_us:.0f} µs, by calls {calls_us:.0f} µs, by graph {graph_us:.0f} µs")
print(f"even after {runs:.1f} runs")

# %% id=reveal-even
even.reveal(
    "one" if runs <= 1 else "few" if runs <= 10 else "many",
    f"{capture_us:.0f} / ({calls_us:.0f} - {graph_us:.0f}) is {runs:.1f}.",
)

# %% [markdown] id=one-off-read
# A capture costs about as much as a few runs by calls, since Python does about the same and more. So one run never pays, and a handful does. That is, against calls that are described anew
# each time. Whoever compares with a *prepared* pipeline has less to save at each launch, and has to launch more often. (`inf` means that there is
# nothing to save. On a real GPU, an operation that is kept and run again takes less than one that is described anew: its description has been paid for. The simulated device does not
# tell these two apart.)

# %% id=one-off-prepared
assert graph_us < calls_us < capture_us + graph_us
assert capture_us < 6 * calls_us
thin_launch = network(weights, arrays).prepare().launch()
prepared_us, kept_us, calls_us, graph_us = took(
    lambda: thin_launch.sync_on(stream),
    lambda: op.sync_on(stream),
    by_call,
    lambda: launch.sync_on(stream),
)
runs_prepared = even_after(capture_us, prepared_us, graph_us)
print(f"prepared {prepared_us:.0f} µs: even after {runs_prepared:.0f} runs")
print(f"kept     {kept_us:.0f} µs")
assert prepared_us < calls_us
assert kept_us < 1.05 * calls_us
assert runs_prepared > even_after(capture_us, calls_us, graph_us)

# %% [markdown] id=exercise-break-even
# ### Exercise: from how many runs on?
#
# Given the cost of the capture, and the time of a run by calls and by graph: what is the smallest number of runs for which capturing and launching takes *less* time than
# the calls? Return an `int`, or `None` if no number is large enough.


# %% id=09-break-even starter
def break_even(capture, by_calls, by_graph):
    return capture / by_calls


# %% id=09-break-even solution
def break_even(capture, by_calls, by_graph):
    saved = by_calls - by_graph
    if saved <= 0:
        return None
    return int(capture // saved) + 1

# %% id=09-break-even hints
# After `runs` runs, the calls have taken `runs * by_calls`, and the graph `capture + runs * by_graph`.
#
# Each run saves `by_calls - by_graph`. What if that is nothing, or less?
#
# The saving has to be *more* than the capture: `int(capture // saved) + 1`.

# %% id=09-break-even explanation
# Rounding down and adding one gives the smallest whole number *above* `capture / saved`, also where that is a whole number itself. And
# where a launch saves nothing, no number of runs earns the capture back.

# %% id=09-break-even-check
check("09-break-even", break_even)

# %% [markdown] id=shapes
# ## Several shapes
#
# One more thing is written down in a graph: sizes. The grid is fixed, the number of bytes of each copy is. So a graph answers requests of one shape. What do servers do that get others? They keep
# a graph for each shape that has come up, and capture at the first request. That first one is slow, as you know why. (If there are too many shapes, round
# them up: a request of 50 is put into a slot of 64, and the rest is padding.)

# %% [markdown] id=exercise-shapes
# ### Exercise: a graph for each shape
#
# Write a small server. `make(slot)` returns an operation that reads the pinned array `slot`, can be captured, and yields an array on the host. `make_server(make, stream)`
# returns a function `answer(x)`, which gives the result for `x`, an array of *any* shape. It captures when a shape comes up for the first time,
# and never again for that shape. What it returns belongs to the caller.


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
# A dictionary from shapes to graphs. Which array is the slot of a graph, and who keeps it?
#
# The slot is made with the graph, by `agt.pinned(x.shape)`, and kept beside it. Each request is copied into it: `slot[:] = x`.
#
# `known[x.shape] = slot, make(slot).graph_on(stream)` if the shape is new; then `graph.launch().sync_on(stream).copy()`.

# %% id=09-shapes explanation
# The first request of a shape pays for the capture, all others only for a launch. The result is copied, as the graph's own array is
# written again by the next request of the same shape.

# %% id=09-shapes-check
check("09-shapes", make_server)

# %% [markdown] id=server
# ## All of it together: a server
#
# You have met each part by now: a pipeline that is prepared, a graph of it, a slot for its input, a result that is copied before the next launch, an `await` that lets others
# go on. `agt.Server` puts them together. It has a few **lanes**, each a stream with a slot and a graph of its own. A request takes a free
# lane, or waits for one.

# %% id=server-run
requests = [batch for _ in range(3) for batch in inputs.batches]

async with agt.Server(lambda slot: forward(slot, w0, w1), (64, 64), lanes=4) as server:
    with agt.record() as served:
        answers = [answer async for answer in server.map(requests)]

served.plot(title=f"{len(requests)} requests on four lanes", lanes=("host", "streams"))

# %% id=server-check
calls = [span.name for span in served if span.kind == "call"]
assert len([name for name in calls if name.startswith("launch graph")]) == len(requests)
assert not [name for name in calls if name.startswith("malloc")]
if device.simulated:
    assert len(served.streams) == 4
for i, answer in enumerate(answers):
    assert np.allclose(answer, expected[i % 4], atol=1e-6)
print(f"{len(requests)} requests, {len(calls)} calls, and nothing allocated on the way")

# %% [markdown] id=decide
# ## Shall it be a graph?
#
# | ask | if no |
# |---|---|
# | Is the host the limit: does the device have gaps? | leave it: kernels are what to improve |
# | Does the same work come again, many times? | leave it: `await op` |
# | In the same shapes? | a graph for each shape, or padding |
# | Does it only launch, copy and fill, in memory that is there? | rewrite it, or `op.prepare()` first |
# | Can inputs and outputs stay in one place? | `op.prepare()` for each place, or `update` |
#
# The words of others for all of this are in the [glossary](../docs/glossary.md), and more mistakes to recognise are among the
# [misconceptions](../docs/misconceptions.md).

# %% [markdown] id=key-points
# ## Key points
#
# - Small kernels are host-bound: the calls cost more than the work. A graph makes one call of many.
# - `op.graph_on(stream)` or `CudaGraph.scope(stream)` captures. Nothing runs until `graph.launch()`, which is an operation.
# - Arms of `overlap` become branches. They are under way together, since no Python has to walk from one to the next.
# - Addresses and sizes are fixed. New input goes to the old place: with `update`, or from a pinned slot inside.
# - Kernels, copies and fills, or refused. `op.prepare()` takes memory along, and its launch can be captured.
# - A result is lent until the next launch.
# - It pays for host-bound work that comes often. Large kernels have nothing to gain, and one-off work does not earn the capture back.
#
# **Next:** [10_build_it_yourself.ipynb](10_build_it_yourself.ipynb), for the machine itself: you write it.

# %% id=score
score(busy, sooner, four_for, wide, even)

# %% id=progress
progress()
