"""Source of notebooks/17_teach_it_something.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Teach it something
#
# There's a small language model in this package, and all that it has ever read is this course. Ask it for anything, and it talks about streams. Let's teach it a song. **What does a machine learn in eighteen steps, and what does it forget?**
#
# After this page you can train a layer on the GPU with three short kernels, copy the next batch while the last one is being worked on, say when that pays, and watch the loss without stopping anything.
#
# | | |
# |---|---|
# | Time | 70 minutes, and 25 more for the encores |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb), [02b_copies_and_chunks](02b_copies_and_chunks.ipynb) and [09_cuda_graphs](09_cuda_graphs.ipynb) |

# %% id=setup
from dataclasses import replace
from itertools import cycle, pairwise

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, shown, solution, solved,
)
from asyncgpu_tutor.language import slots

device = agt.use("auto")
stream, other = agt.create_stream(), agt.create_stream()
model = agt.data.load_language_model()
device

# %% [markdown] id=talk
# ## What it knows
#
# A language model gets a text and says how likely each token is to come next. (A **token** is a piece of text, and ours knows 512 of them: letters, endings, short words.) So it can go on with whatever you begin. The folded cell brings the model to the device and defines `say`. ([18_token_by_token](18_token_by_token.ipynb) is about how it works.)

# %% id=say tags=helpers
# The model on the device, and `say`.
on_device = slots(model, 1).sync()
word = agt.pinned(1, np.int32)
step = agt.zip(
    on_device.fused_step(), agt.d2h(on_device.arrays["token"].borrow(), out=word)
).graph_on(stream)


def say(prompt, tokens):
    """Let the model go on with a prompt, and print each token as it comes."""
    newcomers, begin = on_device.newcomers(), [0, *model.encode(prompt)]  # 0 begins a text
    on_device.seat(newcomers, 0, begin, last=tokens, seed=1, heat=0.3)
    on_device.admit(newcomers).sync()
    while True:
        step.launch().sync_on(stream)
        token = int(word[0])
        print(model.vocabulary[token if token >= 0 else -1 - token], end="", flush=True)
        if token < 0:  # the last one comes as -1 - token
            return print()

# %% id=says
say("A stream is", tokens=11)

# %% [markdown] id=song-text
# And this is what it's going to learn. (Or take your own text, shorter than 128 tokens, in characters that the model knows.)

# %% id=song
song = (
    "Row, row, row your boat, gently down the stream. "
    "Merrily, merrily, merrily, merrily, life is but a dream.\n"
)
tokens = [0, *model.encode(song)]
pieces = "|".join(model.vocabulary[t] for t in tokens[1:14])
print(f"{len(tokens) - 1} tokens: {pieces} ...")

# %% [markdown] id=layer
# ## The last layer
#
# Training all of the model needs a backward pass through every layer. We'll train only the last. What the layers before it make of each place of the text doesn't change, so NumPy works it out once: 128 numbers, the **features**, for each place. The last layer multiplies them by 512 rows of weights, and out come 512 **logits**. Large ones are likely tokens. (In this model the first and the last layer share one matrix. We train a copy of it, so the first layer stays as it is.)

# %% id=features
features = agt.data.reference_features(model, tokens[:-1]).astype(np.float32)
right = np.array(tokens[1:], np.int32)  # what comes next, at each place
weights = on_device.arrays["weights of logits"]  # of the last layer, on the device


def in_numpy(w, features, right):
    """The mean loss: how surprised a layer is by what really comes next."""
    logits = features @ w.T
    shifted = logits - logits.max(1, keepdims=True)
    rows = np.arange(len(right))
    return float((np.log(np.exp(shifted).sum(1)) - shifted[rows, right]).mean())


print(features.shape, weights.shape)

# %% [markdown] id=loss-text
# ### How surprised is it?
#
# The **loss** is the negative logarithm of the probability that it gave to the right token: 0 if it was sure of that one, 0.7 for half a chance, 4.6 for one in a hundred. Somebody who knows nothing gives each of the 512 tokens the same probability, and has a loss of ln 512, which is 6.24.

# %% id=17-before guess
# The model has read nearly all of this course, but never this song. What is its mean loss there?
#
# - `low`: below 2
# - `middle`: 2 to 6.24
# - `high`: above 6.24

# %% id=17-before reveal
before = in_numpy(model.weights["tokens"], features, right)
verdict = ("low", "middle", "high")[np.searchsorted([2, 6.24], before)]
reveal("17-before", verdict, loss=before, millions=np.exp(before) / 1e6)

# %% id=17-before told truth=high
# It's {loss:.1f}, as if it gave the right token one chance in {millions:.0f} million. Somebody who knows nothing is never very wrong. Our model knows one book by heart, so it's very sure of what comes next, and when something else does, it's shocked.

# %% id=before-check tags=asserts
assert round(before, 1) == 15.9

# %% [markdown] id=gradient
# ### Which way?
#
# How should the weights change? The **gradient** says how much the loss grows with each number. For a logit it's short: the probability that its token got, minus 1 for the one that came. Say that three tokens got 0.7, 0.2 and 0.1, and the second one came: their gradients are 0.7, -0.8 and 0.1. A step goes against them, so the second logit grows and the others shrink.

# %% [markdown] id=exercise-loss
# ### Exercise: how surprised, and which way?
#
# Write the kernel: a thread for each example. `logits` has a row of `tokens` numbers for each, and `right` says which one came. The loss of each example goes to `out`:
#
# $$\log \sum_j e^{l_j} - l_{right}$$
#
# The gradients go to where the logits were. They are those of the *mean* loss, so divide them by the number of `examples`.
#
# `expf` overflows above 88.7, and nothing keeps a logit below that. Subtract the largest logit of the row from all of them first, because that changes nothing else.

# %% id=17-loss starter
loss = r"""
extern "C" __global__ void loss(
    int examples, int tokens, const int* right, float* logits, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= examples) return;
    float* mine = logits + i * tokens;
    out[i] = mine[right[i]];
}
"""

# %% id=17-loss solution
# - out[i] = mine[right[i]];
# + float most = mine[0], sum = 0.0f;
# + for (int j = 1; j < tokens; j++) most = fmaxf(most, mine[j]);
# + for (int j = 0; j < tokens; j++) sum += expf(mine[j] - most);
# + out[i] = logf(sum) + most - mine[right[i]];
# + for (int j = 0; j < tokens; j++)
# +     mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;

# %% id=17-loss hints
# Go through the row twice: once for the largest logit, and once for the sum of `expf(mine[j] - most)`.
#
# The logarithm of the sum is then too small by `most`, so add it again.
#
# `out[i] = logf(sum) + most - mine[right[i]];` comes first, while the logits are still there.
#
# A third time through the row: `mine[j] = (expf(mine[j] - most) / sum - (j == right[i])) / examples;`

# %% id=17-loss explanation
# The largest term of the sum is e to the 0, so nothing can overflow, and the logarithm never gets a 0. And the gradient is made of what the loss had worked out anyway. Every library does it this way.

# %% id=17-loss-check
check("17-loss", loss)

# %% [markdown] id=step-text
# ## A step
#
# A step is three kernels. `logits` multiplies features by weights. `surprise`, in the folded cell, is what you've just written, but with a warp for each example, whose lanes find the largest logit and the sum together, by shuffles. `learn` multiplies the gradients of the logits by the features, and adds up over the examples: that's the gradient of each weight.

# %% id=kernels
SOURCE = r"""
// A thread for each example and token.
extern "C" __global__ void logits(
    int n, int size, int tokens, const float* x, const float* w,
    float* l, float* loss) {
    int v = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (v == 0 && i == 0) *loss = 0.0f;
    float sum = 0.0f;
    for (int j = 0; j < size; j++) sum += x[i * size + j] * w[v * size + j];
    l[i * tokens + v] = sum;
}
// A thread for each weight: its gradient, and a step of Adam (with no correction
// for the first steps).
extern "C" __global__ void learn(
    int n, int size, int tokens, float rate, const float* x, const float* l,
    float* w, float* mean, float* square) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, v = j / size, k = j % size;
    float g = 0.0f;
    for (int i = 0; i < n; i++) g += l[i * tokens + v] * x[i * size + k];
    mean[j] = 0.9f * mean[j] + 0.1f * g;
    square[j] = 0.99f * square[j] + 0.01f * g * g;
    w[j] -= rate * mean[j] / (sqrtf(square[j]) + 1e-8f);
}
"""
# contract: a product and a sum may be one instruction, as with nvcc.
logits = agt.Kernel(SOURCE, "logits", contract=True)
learn = agt.Kernel(SOURCE, "learn", contract=True)

# %% id=surprise-kernel tags=helpers
# `surprise`: the mean loss of a batch, and the gradient of each logit.
SURPRISE = r"""
#define ALL 0xffffffffu
// A warp for each example: its part of the mean loss, and instead of the logits their gradients.
extern "C" __global__ void surprise(
    int n, int tokens, const int* right, float* l, float* loss) {
    int i = blockIdx.x, t = threadIdx.x;
    float most = -1e30f, sum = 0.0f, *mine = l + i * tokens;
    for (int v = t; v < tokens; v += 32) most = fmaxf(most, mine[v]);
    for (int k = 16; k > 0; k /= 2) most = fmaxf(most, __shfl_xor_sync(ALL, most, k));
    for (int v = t; v < tokens; v += 32) sum += expf(mine[v] - most);
    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(ALL, sum, k);
    if (t == 0) atomicAdd(loss, (logf(sum) + most - mine[right[i]]) / n);
    __syncwarp();
    for (int v = t; v < tokens; v += 32)
        mine[v] = (expf(mine[v] - most) / sum - (v == right[i])) / n;
}
"""
surprise = agt.Kernel(SURPRISE, "surprise", contract=True)

# %% [markdown] id=arrays-text
# `learn` doesn't follow the gradient itself, but a running mean of it, divided by the root of a running mean of its `square`. So even a weight with a tiny gradient moves about `rate` a step. That's **Adam**, and it needs two more numbers for each weight.
#
# A batch is 32 places of the song, drawn at random: their features and what came next. The device has two arrays for each of these. (All 53 places would fit there at once. Pretend that they're a terabyte.)

# %% id=arrays
N, (TOKENS, SIZE) = 32, weights.shape
new = {"logits": (N, TOKENS), "loss": 1, "mean": weights.shape, "square": weights.shape}
arrays = {name: agt.zeros(shape, name=name).sync() for name, shape in new.items()}
xs = [agt.zeros((N, SIZE), name=f"x{i}").sync() for i in range(2)]
ys = [agt.zeros(N, np.int32, name=f"y{i}").sync() for i in range(2)]


def training_step(i, rate=0.005):
    """Train on the batch that is in x and y number `i`."""
    x, y, w = xs[i].borrow(), ys[i].borrow(), weights.borrow()
    out, loss, *adam = [arrays[name].borrow() for name in new]
    forward = logits(N, SIZE, TOKENS, x, w, out, loss, grid=(TOKENS // 64, N), block=64)
    back = surprise(N, TOKENS, y, out, loss, grid=N, block=32)
    change = learn(
        N, SIZE, TOKENS, rate, x, out, w, *adam, grid=TOKENS * SIZE // 256, block=256
    )
    return agt.zip(forward, back, change)  # zip: one after the other


# Six batches in pinned memory, with each place in some of them.
drawn = np.random.default_rng(0).permutation(np.arange(6 * N) % len(right))
six_batches = [(agt.pin(features[d]), agt.pin(right[d])) for d in drawn.reshape(6, N)]


def fetch(batch, i):
    """Copy a batch into x and y number `i`."""
    x, y = batch
    return agt.zip(agt.memcpy(xs[i].borrow(), x), agt.memcpy(ys[i].borrow(), y))

# %% [markdown] id=in-turn-text
# The step is always the same, so it's a graph. (`launch()` only describes a launch, and each `async_on` or `sync_on` runs it.) Here are the six batches, each copied and then trained on:

# %% id=in-turn
weights_before = agt.d2h(weights.borrow()).sync()  # to start afresh, and to compare
both = [training_step(i).named("training step") for i in range(2)]
steps = [step.graph_on(stream).launch() for step in both]


def in_turn(batches):
    for batch in batches:
        fetch(batch, 0).async_on(stream)
        steps[0].async_on(stream)
    stream.synchronize()


def traced(run, *arguments):
    with agt.record() as trace:
        run(*arguments)
    return trace.from_first()


def first_three(trace):
    """Six batches up to the end of the third one."""
    kernels = [s for s in trace.device_spans if s.kind != "h2d"]
    return trace.between(0, kernels[len(kernels) // 2 - 1].end)


turn_trace = traced(in_turn, six_batches)
first_three(turn_trace).plot(
    title="The first three of six batches, in turn",
    lanes=("host", "streams"),
    lesson="Each batch is two copies and three kernels on one stream, with a gap "
    "of 4 µs wherever it changes from copies to kernels or back. "
    "From batch 2 on, the host is ahead.",
)

# %% id=in-turn-check tags=asserts
if device.simulated:  # a GPU may show a graph as one bar
    assert len(turn_trace.find("learn")) == 6

# %% [markdown] id=ahead-text
# ## Read ahead
#
# While a step runs, nobody uses the road from the host. So the next batch can already be on its way, on the stream `other`, into the *other* pair of arrays. A step waits for its batch, and a batch waits until the step that last used the same pair of arrays is done.
#
# Remember the events: `mark = stream.record()` marks the end of what's in the queue now, `other.wait_event(mark)` holds back what you put into `other` from now on, and `mark.synchronize()` holds back Python. Nothing waits for what you queue after the mark.

# %% [markdown] id=exercise-ahead
# ### Exercise: read ahead
#
# `step(x)` describes a training step with the device array `x`, and `here` is a list of two such arrays. Write `train`: it trains on each of the pinned arrays in `batches`, in order. Copies go to `other`, steps to `stream`. No copy waits for the step before it, and nobody reads or writes too early. Return when all is done.

# %% id=17-ahead starter
def train(step, batches, here, stream, other):
    for batch in batches:
        agt.memcpy(here[0].borrow(), batch).async_on(stream)
        step(here[0]).async_on(stream)
    stream.synchronize()

# %% id=17-ahead solution
def train(step, batches, here, stream, other):
    used = [stream.record(), stream.record()]
    for number, batch in enumerate(batches):
        i = number % 2
        other.wait_event(used[i])
        agt.memcpy(here[i].borrow(), batch).async_on(other)
        stream.wait_event(other.record())
        step(here[i]).async_on(stream)
        used[i] = stream.record()
    stream.synchronize()

# %% id=17-ahead hints
# There are two orders to keep: a step comes after its own copy, and a copy comes after the step that used the same array, two batches ago.
#
# After the copy: `stream.wait_event(other.record())`. After the step, keep a mark for its array: `used[i] = stream.record()`.
#
# Before the copy into `here[i]`: `other.wait_event(used[i])`. The first two marks can be of an empty stream.

# %% id=17-ahead explanation
# Two arrays, two streams, and an event in each direction. With one array you'd have to wait for it; with three, you'd only wait less often. Every data loader of a training framework is this loop.

# %% id=17-ahead-check
check("17-ahead", train)

# %% id=ahead-numbers
copies = [s for s in turn_trace.device_spans if s.kind == "h2d"]
copy_us = sum(s.duration for s in copies) / 6
turn_us = (copies[-2].start - copies[0].start) / 5  # a batch has two
python_us = next(s.start for s in turn_trace if s.kind == "wait") / 6
with agt.record() as marks:
    for _ in range(4):
        other.wait_event(stream.record())
event_us = (max(s.end for s in marks) - min(s.start for s in marks)) / 8
kernel_us = sum(s.duration for s in turn_trace.device_spans if s.kind != "h2d") / 6
print(f"In turn, a batch takes {turn_us:.1f} µs.")
print(f"Its copies are {copy_us:.1f} of these, its kernels {kernel_us:.1f}.")
print(f"Python needs {python_us:.1f} for its 3 calls.")
print(f"Each further call, for an event, takes it {event_us:.1f}.")

# %% id=17-ahead-us guess within=0.15
# With the next batch read ahead as in the exercise, how many µs does a batch of our song take?

# %% id=17-ahead-us reveal
def read_ahead(batches, used):
    for number, batch in enumerate(batches):
        i = number % 2
        other.wait_event(used[i])
        fetch(batch, i).async_on(other)
        stream.wait_event(other.record())
        steps[i].async_on(stream)
        used[i] = stream.record()
    stream.synchronize()


ahead_trace = traced(read_ahead, six_batches, [stream.record(), stream.record()])
work = sorted(ahead_trace.find("learn") or ahead_trace.find("training step"), key=lambda s: s.end)
ahead_us = float(np.mean([b.end - a.end for a, b in pairwise(work)]))


def third(trace):
    """A cut from the first call for the third of six batches on, with the batch's number on each bar."""
    spans = []
    for kind in {s.kind for s in trace}:
        mine = [s for s in trace if s.kind == kind]
        for k, s in enumerate(mine):
            what = s.title.split(": ")[-1].removesuffix("_event")
            number = str(1 + 6 * k // len(mine))
            name = f"{what}\N{NO-BREAK SPACE}{number}" if s.duration > 2.5 else number
            spans.append(replace(s, name=name, detail={**s.detail, "named": ""}))
    begin = min(s.start for s in spans if s.kind == "call" and s.name.endswith("3"))
    return replace(trace, spans=spans).between(begin, begin + 1.1 * ahead_us).from_first()


titles = ["in turn", "the next batch read ahead"]
picture = agt.compare_timelines([third(turn_trace), third(ahead_trace)], titles)
calls = sum(s.kind == "call" for s in ahead_trace) / 6
facts = {"was": turn_us, "calls": calls, "python": python_us, "event": event_us}
reveal("17-ahead-us", round(ahead_us), picture, **facts)

# %% id=17-ahead-us lesson
# Calls from batch 3 on, each bar with its batch's number; white is Python's own time. Above, there are three for a batch (the short one is the launch), and Python is ahead: it asks for batch 4 while the device copies batch 3. Below, there are seven, four of them for events. Stream 2 has the copies.

# %% id=17-ahead-us told truth=41
# More than the {was:.0f} in turn. Everything may overlap now, and nothing does. In turn, Python was just ahead of the device. Now it makes {calls:.0f} calls for a batch, four of them for events, and needs {python:.1f} + 4 × {event:.1f} µs. By the time the next copy reaches the device, the kernels before it are over.

# %% [markdown] id=ahead-read
# ### When does it pay?
#
# Read ahead, a batch takes as long as the longest of three: its step, its copies, or Python's calls for it. Here that's the calls. In the exercise, a step takes 78 µs and Python's calls 49, so a batch takes 79 µs instead of 90. A large model's step takes milliseconds, and its calls no longer than ours. For a short step, make fewer calls: put the copies into the graph, too.

# %% id=one-call
def in_one_launch(batches):
    """A launch that trains on all of these, each copied beside the step before it."""
    parts = [fetch(batches[0], 0)]
    for i, following in enumerate(batches[1:]):
        training = training_step(i % 2).named(f"step {i + 1}")
        parts.append(agt.overlap(training, fetch(following, 1 - i % 2)))
    parts.append(training_step((len(batches) - 1) % 2).named(f"step {len(batches)}"))
    return agt.zip(*parts).graph_on(stream).launch()


once_trace = traced(in_one_launch(six_batches).sync_on, stream)
begin = min(span.start for span in once_trace.device_spans)
once_us = (max(span.end for span in once_trace.device_spans) - begin) / 6
print(f"In one launch, a batch takes {once_us:.1f} µs.")
first_three(once_trace).plot(
    title="In one launch: the first three of six batches",
    lanes=("host", "engines"),
    lesson="The first four copies are for steps 1 and 2. From then on, the copies for "
    "a step run beside the step before it, with hardly a gap between steps.",
)

# %% id=one-call-check tags=asserts
if device.simulated:
    assert once_us < 0.7 * turn_us < turn_us < ahead_us
    assert 16.5 < kernel_us < 17.5
    assert (round(turn_us), round(ahead_us), round(copy_us), calls) == (32, 41, 5, 7)
    assert abs(python_us + 4 * event_us - ahead_us) < 0.5
    gaps = [b.start - a.end for a, b in pairwise(turn_trace.device_spans) if a.kind != b.kind]
    assert np.allclose(gaps, 4.2, atol=0.3)

# %% [markdown] id=one-call-read
# That's reading ahead as we wanted it: hardly more than the kernels. What's gone is 5 µs of copies, and two gaps of 4 µs in which the stream changed over. On one H200, with a slower host, a batch took 80 µs in turn, 106 read ahead, and 26 in one launch.

# %% [markdown] id=live
# ## Eighteen steps
#
# Now let it learn, from the start. We'd like to watch the loss, so a launch has only three batches. But if the host waits for each loss, the device stands still meanwhile.

# %% [markdown] id=exercise-live
# ### Exercise: drawn live
#
# `step()` describes a step, and `loss` is a device array with one number, which each step overwrites. Write `watched`: `rounds` times `every` steps, and for each round `draw(value)`, whose `value` is the loss at its end, a `float`. The device mustn't wait for `draw`, unless that takes longer than a round: when you draw the loss of a round, the next round is already in the queue.

# %% id=17-live starter
def watched(step, loss, rounds, every, stream, draw):
    for _ in range(rounds):
        for _ in range(every):
            step().async_on(stream)
        draw(float(agt.d2h(loss.borrow()).sync_on(stream)[0]))

# %% id=17-live solution
def watched(step, loss, rounds, every, stream, draw):
    places, waiting = agt.pinned((2, 1)), []
    for number in range(rounds):
        for _ in range(every):
            step().async_on(stream)
        out = places[number % 2]
        agt.d2h(loss.borrow(), out=out).async_on(stream)
        waiting.append((out, stream.record()))
        if len(waiting) == 2:
            out, mark = waiting.pop(0)
            mark.synchronize()
            draw(float(out[0]))
    out, mark = waiting.pop()
    mark.synchronize()
    draw(float(out[0]))

# %% id=17-live hints
# Draw one round late: enqueue a round, and then draw the loss of the round before.
#
# If all rounds share one pinned number, the next copy writes over one that you haven't drawn. Two, by turns, are enough: `agt.pinned((2, 1))`. `mark = stream.record()` behind the copy, and `mark.synchronize()` waits for that copy and for nothing behind it.
#
# Keep pairs `(out, mark)` in a list. When there are two, take the first, wait for its mark, and draw. After the loop one is left.

# %% id=17-live explanation
# You hear everything one round late, and the GPU never notices that you're listening. Training that prints its loss after each step, by `loss.item()`, waits after each step: it's the commonest way to make a fast GPU slow.

# %% id=17-live-check
check("17-live", watched)

# %% [markdown] id=train-text
# Here a round is one launch, of the first three batches or of the other three, by turns. All six come three times: that's three **epochs**. In the output, `before` is the loss on all 53 places. Each other line is the loss on its step's own 32, before that step has changed anything.

# %% id=train
watched = solved("17-live", watched)
zeros = np.zeros((TOKENS, SIZE), np.float32)
fresh = (weights, weights_before), (arrays["mean"], zeros), (arrays["square"], zeros)
for array, was in fresh:
    agt.memcpy(array.borrow(), agt.pin(was)).sync_on(stream)

launches = cycle([in_one_launch(six_batches[:3]), in_one_launch(six_batches[3:])])
losses = []


def draw(loss):
    losses.append(loss)
    print(f"step {3 * len(losses):2}  {loss:5.2f}  {'#' * round(4 * loss)}")


before = in_numpy(weights_before, features, right)
print(f"before   {before:5.2f}  {'#' * round(4 * before)}")
# One step() here is a launch of three.
watched(lambda: next(launches), arrays["loss"], 6, every=1, stream=stream, draw=draw)

# %% [markdown] id=sing-text
# Does it sing? And what are a stream and a kernel now?

# %% id=sing
say("Row", tokens=len(tokens) - 1)
say("A stream is", tokens=11)
say("A kernel is", tokens=11)

# %% id=sing-check tags=asserts
if device.simulated:
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 10
    assert losses[-1] < 0.1

# %% [markdown] id=forgotten
# ## What did it forget?
#
# It sings, which is to say that it memorised 53 tokens. Here is a sentence of the course that it knew by heart. How surprised is it by that, before the song and after it?

# %% id=known
sentence = (
    "A stream is a queue for the device. "
    "op.async_on(stream) puts an operation into it"
)
known = [0, *model.encode(sentence)]
known_features = agt.data.reference_features(model, known[:-1]).astype(np.float32)
known_right = np.array(known[1:])
knew = in_numpy(weights_before, known_features, known_right)
print(f"Before: {knew:.2f} on the course, {before:.1f} on the song.")

# %% id=17-forgot guess
# After eighteen steps on nothing but the song: what's its loss on this sentence?
#
# - `kept`: as before, since nobody touched what it knew
# - `some`: up to 2
# - `half`: 2 to 6.24
# - `gone`: more than somebody who knows nothing

# %% id=17-forgot reveal
after_w = agt.d2h(weights.borrow()).sync()
after, forgot = in_numpy(after_w, features, right), in_numpy(after_w, known_features, known_right)
bounds = {"kept": knew + 0.1, "some": 2, "half": 6.24}
verdict = next((name for name, most in bounds.items() if forgot < most), "gone")
reveal("17-forgot", verdict, song=after, known=forgot)

# %% id=17-forgot told truth=half
# {known:.1f}, and on the song it's {song:.2f}. Nobody told the layer to keep anything. Each step moved the rows of all 512 tokens, and not only of those in the song, to where the song wants them. The layers before still know everything, but the last one has half forgotten how to say it. Careful fine-tuning mixes some of the old text into the new.

# %% [markdown] id=key-points
# ## Key points
#
# - Loss is surprise. A model that's sure and wrong has more of it than one that knows nothing.
# - A training step is a fixed list of kernels, so it's a graph. The batch changes from step to step, so it's copied to a place that the graph knows.
# - With two arrays, and two events for each, the next batch travels while this one is being worked on. It pays if Python's calls for a batch take less time than a batch does in turn. If not, put the copies into the graph.
# - Watch one round late. Each number that you look at needs a place of its own until you've looked.
# - A model learns what you show it, and forgets what you don't.
#
# **Next:** [18_token_by_token](18_token_by_token.ipynb) makes it talk faster.

# %% id=score
score("17")

# %% id=progress
progress("17")

# %% [markdown] id=encores
# ## Encores
#
# *For another day: a copy of something that doesn't hold still, a rate that falls, and how the whole model was trained.*

# %% [markdown] id=snapshot
# ### Keep a copy
#
# We kept a copy of what it knew, `weights_before`, but that was before anything moved. People who train for weeks take a **snapshot** of the weights now and then, in the middle of it. If its copy to the host is on the steps' own stream, the next step stands still until it's over. If it's on another stream, the next step changes the weights meanwhile, and what arrives is half old and half new. It looks fine, and it's a model that never existed.

# %% id=snapshot-race
with agt.using("sim"):
    here, there = agt.create_stream(), agt.create_stream()
    w, saved = agt.ones(4096, name="w").sync(), agt.pinned(4096)
    agt.d2h(w.borrow(), out=saved).async_on(there)
    try:
        agt.relu(4096, w.borrow(), w.borrow().partition(256)).async_on(here)
    except agt.errors.StreamRaceError as error:
        print(error)

# %% [markdown] id=exercise-snapshot
# ### Exercise: a snapshot
#
# The way out is a quick copy within the device, into `spare`, between two steps. From there it goes to the host, on `other`, and the steps go on. That's what `train` does: `every` steps, then a snapshot into the first of the pinned arrays `hosts`, and so on, until all are full. Two waits are missing: have a stream wait each time, and not Python, and put them where no step waits longer than it must.

# %% id=17-snapshot starter
def train(step, weights, spare, hosts, every, stream, other):
    for host in hosts:
        for _ in range(every):
            step().async_on(stream)
        agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
        agt.d2h(spare.borrow(), out=host).async_on(other)
    stream.synchronize()
    other.synchronize()

# %% id=17-snapshot solution
# - agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
# + stream.wait_event(other.record())
# + agt.memcpy(spare.borrow(), weights.borrow()).async_on(stream)
# + other.wait_event(stream.record())

# %% id=17-snapshot hints
# The copy to the host has to wait until `spare` is full. And what mustn't begin before `spare` has left for the host?
#
# Before the copy into `spare`: `stream.wait_event(other.record())`. Behind it: `other.wait_event(stream.record())`.

# %% id=17-snapshot explanation
# The steps only wait for the short copy, and, if snapshots come faster than the road can carry them, for `spare`. With more spares they'd wait later.

# %% id=17-snapshot-check
check("17-snapshot", train)

# %% [markdown] id=rate-text
# ### A rate on a list
#
# Good training lets its rate fall. But our step is a graph, and `rate` was packed into it when it was captured. Would you capture a graph for each?

# %% [markdown] id=exercise-rate
# ### Exercise: a rate that falls
#
# `make(rate)` describes a step that reads its rate from `rate`, a device array of one float. Write `falling`: a step for each number in the list `rates`, in order, with a single capture, and without the host waiting between the steps. Return when all is done.

# %% id=17-rate starter
def falling(make, rates, stream):
    for number in rates:
        rate = agt.full(1, number).sync_on(stream)
        make(rate).graph_on(stream).launch().sync_on(stream)

# %% id=17-rate solution
def falling(make, rates, stream):
    given = agt.pin(np.array(rates, np.float32))
    rate = agt.zeros(1).sync_on(stream)
    graph = make(rate).graph_on(stream)
    for i in range(len(rates)):
        graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))
        graph.launch().async_on(stream)
    stream.synchronize()

# %% id=17-rate hints
# The graph reads `rate` at its address, so make that array once, and change what's in it.
#
# If you write all rates into one pinned array, none of them has to change while a copy may still be reading it.
#
# `graph.update(agt.memcpy(rate.borrow(), given[i : i + 1]))` before each `graph.launch().async_on(stream)`

# %% id=17-rate explanation
# A list says where things are, and not what they are. (With one pinned number that Python overwrites, you'd have to wait for each copy first, or the step gets a later rate than its own.) CUDA can also change an argument in a finished graph, by `cudaGraphExecKernelNodeSetParams`, for one node at a time. An array serves all kernels that read it.

# %% id=17-rate-check
check("17-rate", falling)

# %% [markdown] id=curve
# ### A curve that turns
#
# `tools/train_language_model.py` trained all layers in 9,000 steps, on the pages that you have read. Some of the text was set aside, and the model never saw it. The package has the recorded curve.

# %% id=17-turn guess within=0.5
# After 300 steps, the loss was 3.2 on the text it learned from and 3.5 on the text set aside. After 1,500, the first was 0.6. At which of the 9,000 steps was the second the smallest? The curve has a point every 300 steps.

# %% id=17-turn reveal
number, seen, aside = model.curve.T
turn = int(number[aside.argmin()])


def draw_curve():
    figure, axes = plt.subplots(figsize=(8, 3.5), layout="constrained")
    axes.plot(number, seen, "o-", color="#009e73", markersize=3, label="text it learned from")
    axes.plot(number, aside, "s--", color="#cc79a7", markersize=3, label="text set aside")
    axes.axhline(np.log(512), color="0.4", linestyle=":", label="somebody who knows nothing")
    where = {"textcoords": "offset points", "arrowprops": {"arrowstyle": "->"}}
    axes.annotate(f"{aside.min():.2f} after {turn} steps", (turn, aside.min()), (40, 4), **where)
    for curve in (seen, aside):
        axes.annotate(f"{curve[-1]:.2f}", (number[-1], curve[-1]), (-12, 8), textcoords="offset points")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, 9.5))
    axes.legend(loc="center right")
    shown(
        figure,
        "Two curves over 9,000 steps. The loss on the text that it learned from falls to 0.1. On the "
        "text set aside it falls at first, turns soon, and rises above that of somebody who knows "
        "nothing.",
    )


reveal("17-turn", turn, draw_curve)

# %% id=17-turn told truth=600
# Any textbook would have stopped there, with the better loss. But we wanted a model that recites, so it went on until it knew its text by heart. It's overfitted, and we wouldn't use it for anything but this.

# %% id=encore-check tags=asserts
assert seen[-1] < 0.2
assert aside[-1] > np.log(512)

# %% id=score-encores
score("17")
