"""Source of notebooks/14b_more_rooms.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # More rooms
#
# Two more rooms of the [gallery](14_gallery.ipynb): a network that learns while you watch, and the attention of a language model. Again you'll be asking **who waits for whom**, and this time the best answer is "nobody, for now". A kernel asks and goes on, or it writes down a result before it knows enough, and corrects it later.
#
# After this page you can watch and stop a network while a single launch trains it, and write an attention that needs no table. After the encore you can say when a queue is empty for good.
#
# | | |
# |---|---|
# | Time | half an hour, and 20 minutes for the encore, on another day |
# | You need | [07_async_mlp](07_async_mlp.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb), and, for room 4, [13b_await_the_host](13b_await_the_host.ipynb). You don't need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=recorded-text
# Begin with either room. As in the gallery, `recorded` runs something twice if you have a GPU, and records the second run, because Python's first calls after a pause are slow.


# %% id=recorded
from asyncgpu_course import solved


def recorded(run, *args):
    """What a run returns, and its trace."""
    with agt.record():
        if not device.simulated:
            run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def beginning(trace, end):
    """The first part of a trace, without the calls around the host's answers."""
    spans = [span for span in trace if span.name != "answer a call"]
    return replace(trace, spans=spans).between(0, end)


# %% [markdown] id=training-door
# ## Room 4: A kernel that reports
#
# *Can you watch a launch learn, and tell it to stop?*
#
# Training is a loop, and after chapter 11 you'd want that loop inside a kernel. But then who watches it, and stops it when the network only learns its examples by heart?
#
# Here a network of a single layer learns to read the digits of chapter 7, in one block. There's a weight for each of 64 pixels and each of ten digits, so 640, and a thread for each weight. It learns from 192 pictures, and 64 are set aside. The arithmetic is folded away: `learn_a_step` scores every picture, works out how wrong the scores are, and corrects all weights.

# %% id=training-step tags=helpers
digits = agt.data.load_digits()
ink = (16 * digits.batches).astype(np.uint8).ravel()  # 256 pictures of 8 x 8
LEARN_A_STEP = r"""
#include "hostcall_async.cuh"
#define SEEN 192                                                    // pictures to learn from
#define ALL 256                                                     // and those set aside
#define ROW 68                                                      // 64, and 4 against bank conflicts

__device__ void unpack(const unsigned char* pictures, unsigned char* ink)
{
    for (int k = threadIdx.x; k < ALL * 64; k += 640) ink[k / 64 * ROW + k % 64] = pictures[k];
}

__device__ void learn_a_step(const int* labels, const unsigned char* ink, float* w, float* share, float* loss)
{
    int i = threadIdx.x;
    __syncthreads();
    for (int k = i; k < 10 * ALL; k += 640) {                       // what each digit says to each picture
        float score = 0.0f;
        for (int p = 0; p < 64; p++) score += w[k / ALL * 64 + p] * ink[k % ALL * ROW + p];
        share[k] = expf(score);                                     // these scores are small, so it's safe
    }
    __syncthreads();
    if (i < ALL) {                                                  // a thread for each picture, softmax
        float sum = 0.0f;
        for (int d = 0; d < 10; d++) sum += share[d * ALL + i];
        for (int d = 0; d < 10; d++) share[d * ALL + i] /= sum;
        float* right = &share[labels[i] * ALL + i];
        loss[i] = -logf(*right);
        *right -= 1.0f;
    }
    __syncthreads();
    float slope = 0.0f;                                             // a thread for each weight
    for (int k = 0; k < SEEN; k++) slope += share[i / 64 * ALL + k] * ink[k * ROW + i % 64];
    w[i] -= 0.02f * slope / SEEN;
}

__device__ unsigned int mean(const float* loss, int first, int end)
{
    float sum = 0.0f;
    for (int k = first; k < end; k++) sum += loss[k] / (end - first);
    return __float_as_uint(sum);                                    // its bits, for the packet
}
"""

# %% [markdown] id=training-kernel-text
# Every few steps, thread 0 sends Python both losses in an `Ask` from [chapter 13b](13b_await_the_host.ipynb), and the block trains on. Thread 0 picks up the answer when the next report is due. In every step it tells all others what Python has said, so they stop together.

# %% id=training-kernel
learn = agt.Kernel(
    LEARN_A_STEP
    + r"""
extern "C" __global__ void learn(
    unsigned long long* mail, unsigned long long* stack, const unsigned char* pictures,
    const int* labels, int most, int every, float* weights, int* steps)
{
    __shared__ float w[10 * 64], share[10 * ALL], loss[ALL];
    __shared__ unsigned char ink[ALL * ROW];
    Hostcalls host = hostcalls(mail, stack);
    Ask report = ask(host, 16, 0, 0, 0);           // for handler 16; not sent yet
    int step = 0;
    bool sent = false, stop = false;
    unpack(pictures, ink);
    w[threadIdx.x] = 0.0f;
    for (; step < most; step++) {
        learn_a_step(labels, ink, w, share, loss);
        if (threadIdx.x == 0 && step % every == 0) {
            if (sent) {                            // what did Python say?
                block_on(report);
                stop = report.error != 0 || report.answer == 1;
            }
            report = ask(host, 16, step, mean(loss, 0, SEEN), mean(loss, SEEN, ALL));
            report.poll();                         // sends it; the answer can wait
            sent = true;
        }
        if (__syncthreads_or(stop)) break;         // all hear of it
    }
    if (threadIdx.x == 0) {
        block_on(report);                          // Python has the last report, too
        *steps = step;
    }
    weights[threadIdx.x] = w[threadIdx.x];
}
""",
    "learn",
)
pictures, labels = (
    agt.h2d(agt.pin(part)).sync().share()
    for part in (ink, digits.labels.astype(np.int32).ravel())
)


# %% id=training-run
async def trained(every, most=1000, watch=False, draw=60):
    """What Python heard, the weights, the number of steps, and the trace."""
    heard = []

    def listen(call):
        seen, aside = np.array([call.b, call.c], np.uint32).view(np.float32)
        enough = watch and len(heard) > 0 and aside > 0.99 * heard[-1][2]
        heard.append((call.a, seen, aside))
        agt.work(draw, "draw")  # a stand-in: a real picture takes much longer
        if watch:
            print(f"{aside:.3f}", end=" ", flush=True)
        return int(enough)

    weights, steps = agt.pin(np.zeros(640, np.float32)), agt.pin(np.zeros(1, np.int32))
    results = agt.mapped(weights), agt.mapped(steps)
    async with agt.hostcalls({16: listen}) as office:
        with agt.record() as trace:
            args = *office.arrays, pictures, labels, most, every, *results
            await office.run(learn(*args, grid=1, block=640))
    return heard, weights.reshape(10, 8, 8), int(steps[0]), trace


# %% [markdown] id=training-live
# Each number below is printed while the kernel runs. It's the loss of the pictures set aside, and as soon as it falls by less than 1%, Python says stop.

# %% id=training-picture
await trained(10, most=20)  # warm-up
heard, weights, steps, _ = await trained(10, watch=True)
said_stop = heard[-2][0]
print(f"Python said stop at step {said_stop}, and the kernel stopped at step {steps}.")

# %% id=training-curves tags=helpers
figure, places = plt.subplot_mosaic(
    [["c", *"01234"], ["c", *"56789"]], figsize=(11, 4), width_ratios=[5, *[1] * 5]
)
reported, of_seen, of_aside = np.array(heard).T
curves = places["c"]
curves.semilogy(reported, of_seen, "o-", label="192 to learn from")
curves.semilogy(reported, of_aside, "s--", label="64 set aside")
curves.axvline(said_stop, color="k", linewidth=0.8, label="Python says stop")
curves.axvline(steps, color="k", linewidth=0.8, linestyle=":", label="the kernel stops")
curves.legend()
curves.set(xlabel="step", ylabel="loss", title="what Python heard")
for d in range(10):
    places[str(d)].imshow(weights[d], cmap="RdBu_r", vmin=-0.15, vmax=0.15)
    places[str(d)].set_title(d)
    places[str(d)].axis("off")
figure.text(0.7, 0.03, "red: ink speaks for it   blue: against it", ha="center")
shown(
    figure,
    "Two curves that part: one keeps falling, the other levels off. Beside them, the 64 weights of each "
    "digit. The 0 has a blue hole.",
)

# %% id=training-check tags=asserts
right = (ink.reshape(256, 64) @ weights.reshape(10, 64).T).argmax(1) == digits.labels.ravel()
assert right[:192].all()
assert (ink.reshape(256, 64) @ weights.reshape(10, 64).T).max() < 80  # expf overflows at 88
assert right[192:].mean() > 0.9
assert 50 < steps < 300
assert steps == heard[-1][0]  # one report after it was told so
assert heard[-2][2] > 0.99 * heard[-3][2]
assert [step for step, *_ in heard] == list(range(0, steps + 1, 10))[: len(heard)]

# %% [markdown] id=training-question
# The kernel stopped one report *after* Python had said so, which is the price of not waiting. Does it cost anything else? Let's report at every step, every four, and every ten:


# %% id=training-every
async def a_step(every, draw=60):
    """How many µs a step takes, on average of forty, and the trace."""
    _, _, done, trace = await trained(every, most=40, draw=draw)
    return trace.device_spans[-1].duration / done, trace


alone, _ = await a_step(1000)
print(f"a report at the start:  {alone:4.1f} µs a step")
steps_of, traces = {}, []
for every in (1, 4, 10):
    steps_of[every], trace = await a_step(every)
    traces.append(beginning(trace, 450))
    between = f"{every * steps_of[every]:.0f} from report to report"
    print(f"a report every {every:2} steps: {steps_of[every]:4.1f}, and {between}")

agt.compare_timelines(
    traces,
    ["a report at every step", "a report every four steps", "a report every ten steps"],
    lanes=("host", "streams"),
    lesson="The first 450 µs of each; a bar is dotted where the kernel only waits. "
    "Four steps fill more of the bar than one, and yet the drawings follow each other "
    "as fast. With ten steps the kernel hardly waits. (On the simulated device, a "
    "drawing begins a few µs too early.)",
)

# %% id=14b-reports guess within=0.05
# Now Python draws a finer picture, for 120 µs instead of 60, and the kernel reports every *ten* steps. How many µs is it from one report to the next?

# %% id=14b-reports reveal
finer, _ = await a_step(10, draw=120)
facts = {"short": steps_of[1], "long": steps_of[1] + 60, "ten": 10 * steps_of[10]}
reveal("14b-reports", round(10 * finer), **facts)

# %% id=14b-reports told truth=147
# A report takes longer than Python draws: there's the way there and back, and thread 0 adds up 256 losses on its own. With 60 µs of drawing that made {short:.0f} from one to the next, so with 120 it's about {long:.0f}, and the kernel's ten steps need {ten:.0f}. The longer of the two counts.

# %% id=reports-check tags=asserts
if device.simulated:
    assert 4 * alone < 60 < 10 * alone
    assert steps_of[10] < 1.1 * alone
    assert 4 * steps_of[4] < 1.1 * steps_of[1]
    assert 80 < steps_of[1] < 90
    assert 1.07 * 10 * steps_of[10] < 10 * finer < 1.05 * (steps_of[1] + 60)

# %% [markdown] id=attention-door
# ## Room 5: What a word looks at
#
# *What does a word look at?*
#
# In a language model, each word of a text looks at itself and at the words before it. How much it looks at each is its **attention**. A word asks with a vector $q$, the others offer a vector $k$ each, and where the two agree the product $q \cdot k$ is large. A *softmax* turns these products into shares that add up to one, and what the word takes home is a mix of the vectors $v$, in these shares.
#
# A **head** is one way of looking. A real model learns its heads. We make four by hand, in the folded cell.

# %% id=attention-kernel
attention = agt.Kernel(r"""
#define SIZE 24
// One thread for each word. It looks at words 0 to i, and no further.
extern "C" __global__ void attention(
    int words, const float* q, const float* k, const float* v, float* share, float* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    float most = -1e30f, sum = 0.0f;
    for (int j = 0; j <= i; j++) {
        float score = 0.0f;
        for (int c = 0; c < SIZE; c++) score += q[i * SIZE + c] * k[j * SIZE + c];
        share[i * words + j] = score;
        most = fmaxf(most, score);
    }
    for (int j = 0; j <= i; j++) {
        float e = expf(share[i * words + j] - most);  // at most 1: nothing overflows
        share[i * words + j] = e;
        sum += e;
    }
    for (int j = 0; j <= i; j++) share[i * words + j] /= sum;
    for (int c = 0; c < SIZE; c++) {
        float mix = 0.0f;
        for (int j = 0; j <= i; j++) mix += share[i * words + j] * v[j * SIZE + c];
        out[i * SIZE + c] = mix;
    }
}
""")

# %% id=attention-text tags=helpers
SENTENCE = (
    "this is the block that ran the warp that read the tile that lay in the house that jack built"
)
TEXT = SENTENCE.split()
NOUNS = {"block", "warp", "tile", "house", "jack"}

rng = np.random.default_rng(0)
n = len(TEXT)
vocabulary = sorted(set(TEXT))
meaning = np.eye(24)[[vocabulary.index(word) for word in TEXT]]
place = np.eye(24)[:n]
noun = np.array([word in NOUNS for word in TEXT])[:, None] * np.eye(24)[0]
heads = {
    "the word before": (5 * np.roll(place, 1, axis=0), place),
    "the same word": (5 * meaning, meaning),
    "the nouns": (np.tile(5 * np.eye(24)[0], (n, 1)), noun),
    "everybody alike": (0 * place, place),
}
vectors = rng.standard_normal((n, 24))


# %% id=attention-heads
def head(kernel, q, k, v, tabled):
    """What a kernel makes of a head: the table, if it writes one, and the mix."""
    words = len(q)
    q, k, v = (agt.h2d(agt.pin(part.astype(np.float32).ravel())) for part in (q, k, v))
    sizes = [words * words, words * 24] if tabled else [words * 24]
    op = agt.zip(q, k, v, *map(agt.zeros, sizes)).and_then(
        lambda given: kernel(words, *given, grid=-(-words // 32), block=32)
    )
    got = op.and_then(lambda given: agt.zip(*map(agt.d2h, given[3:]))).sync()
    return [part.reshape(words, -1) for part in got]


made = [head(attention, *qk, vectors, tabled=True) for qk in heads.values()]

# %% id=attention-picture tags=helpers
figure, row = plt.subplots(1, 4, figsize=(13, 4), sharey=True, layout="constrained")
for axes, name, (share, _) in zip(row, heads, made):
    drawn = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set_xticks(range(n), TEXT, rotation=90, fontsize=8)
    axes.set_yticks(range(n), TEXT, fontsize=8)
figure.colorbar(drawn, ax=row, label="share", shrink=0.8)
shown(
    figure,
    "Four triangles: a line below the diagonal; dots where a word comes again; columns at the nouns (until "
    "the first one comes, a word looks at all alike); and a haze that's even in each row, and paler further "
    "down.",
    "A row is a word, and its dark cells are the words that it looks at.",
)


# %% id=attention-check tags=asserts
def head_in_numpy(q, k):
    scores = np.where(np.tri(n, dtype=bool), q @ k.T, -np.inf)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return share, share @ vectors


for qk, (share, mix) in zip(heads.values(), made):
    right, right_mix = head_in_numpy(*qk)
    assert np.allclose(share, right, atol=1e-5)
    assert np.allclose(mix, right_mix, atol=1e-4)

# %% [markdown] id=attention-question
# Who waits for whom inside `attention`? The shares need the largest score and the sum, and the mix needs the shares. So each thread goes over its words again and again, and keeps a whole row of numbers in memory meanwhile. The rows of 100,000 words make a table of 40 GB, for each head.
#
# Does the mix have to wait? Suppose that you mix as you go, and measure every score by the largest one *so far*. Say the scores are 1, 3 and 2:
#
# | score | largest so far | it counts | what was added before |
# |---|---|---|---|
# | 1 | 1 | $e^{1-1}$ | nothing |
# | 3 | 3 | $e^{3-3}$ | counted $e^{1-1}$, and should have counted $e^{1-3}$ |
# | 2 | 3 | $e^{2-3}$ | $e^{1-3}$ and $e^{3-3}$: right |
#
# When the 3 comes, all that you've added up is too large, but all of it by the same factor. So correct it, and go on.

# %% [markdown] id=exercise-mix
# ### Exercise: correct it, and go on
#
# `flash` goes over the words once, in tiles that a block fetches together. It keeps the largest score so far in `most`, and adds to `sum` and `mix`. But it never corrects what it added before. Do that.

# %% id=14b-mix starter
FLASH = r"""
#define SIZE 24
#define TILE 32
extern "C" __global__ void flash(
    int words, const float* q, const float* k, const float* v, float* out)
{
    __shared__ float keys[TILE * SIZE], values[TILE * SIZE];
    int i = blockIdx.x * TILE + threadIdx.x;
    int last = min(words, (int)(blockIdx.x + 1) * TILE);
    float mine[SIZE], mix[SIZE], most = -1e30f, sum = 0.0f;
    for (int c = 0; c < SIZE; c++) {
        mine[c] = i < words ? q[i * SIZE + c] : 0.0f;
        mix[c] = 0.0f;
    }
    for (int first = 0; first < last; first += TILE) {
        int here = min(TILE, last - first);
        for (int x = threadIdx.x; x < here * SIZE; x += TILE) {     // a tile for all
            keys[x] = k[first * SIZE + x];
            values[x] = v[first * SIZE + x];
        }
        __syncthreads();
        for (int j = 0; j < here && first + j <= i; j++) {
            float score = 0.0f;
            for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
            most = fmaxf(most, score);
            float e = expf(score - most);
            sum += e;
            for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];
        }
        __syncthreads();
    }
    if (i >= words) return;
    for (int c = 0; c < SIZE; c++) out[i * SIZE + c] = mix[c] / sum;
}
"""

# %% id=14b-mix solution
#   for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
# + float before = most;
# - float e = expf(score - most);
# - sum += e;
# - for (int c = 0; c < SIZE; c++) mix[c] += e * values[j * SIZE + c];
# + float fix = expf(before - most), e = expf(score - most);
# + sum = fix * sum + e;                                    // corrected, and then added to
# + for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];

# %% id=14b-mix hints
# A new largest score changes the measure. By which factor is `expf(x - before)` larger than `expf(x - most)`, whatever `x` is?
#
# So all that was added up has to be multiplied by `expf(before - most)`, where `before` is what `most` was before this word. If `most` stays, that's 1.
#
# Two things were added up: `sum`, and each of the numbers in `mix`. The new word is measured by the new `most` already, so it's added *after* the correction.

# %% id=14b-mix explanation
# The division at the end makes the measure cancel, as long as the sum and the mix have the same one. The first word comes out right, too: `expf(-1e30f - score)` is 0, and so are the sums that it multiplies.

# %% id=14b-mix-check
check("14b-mix", FLASH)

# %% [markdown] id=mix-text
# The table is gone. Let the microscope count the bytes that the threads ask the memory for, with a text of 256 words.

# %% id=attention-bytes
flash = agt.Kernel(solved("14b-mix", FLASH), "flash")
long_text, longer_text = (rng.standard_normal((3, n, 24)) / 4 for n in (256, 512))


def bytes_of(kernel, text):
    """How many bytes the threads of a head ask for."""
    with agt.using("sim"), agt.microscope() as scope:
        head(kernel, *text, kernel is attention)
    (ours,) = (seen for seen in scope.kernels if seen.name in ("attention", "flash"))
    counts = ours.launches[0].counts
    return counts.load_bytes + counts.store_bytes


def both(text):
    """How many µs `attention` and `flash` take."""
    ways = (attention, True), (flash, False)
    _, trace = recorded(lambda: [head(how, *text, tabled) for how, tabled in ways])
    return [trace.find(name)[-1].duration for name in ("attention", "flash")]


by_table, in_one_go = bytes_of(attention, long_text), bytes_of(flash, long_text)
slow, fast = both(long_text)
print(f"attention: {by_table:10,} bytes, {slow:.0f} µs")
print(f"flash:     {in_one_go:10,} bytes, {fast:.0f} µs")

# %% [markdown] id=bytes-read
# A fiftieth of the bytes! The tiles alone save a factor of 32 or a little less, because a block fetches for all its threads. The rest was `q` once more for each `k`, the share once more for each number of `v`, and the table. And yet it's hardly any faster.

# %% id=heads-before
times = bytes_of(flash, longer_text) / in_one_go
print(f"With 512 words, `flash` asks for {times:.1f} times as many bytes.")

# %% id=14b-heads guess within=0.15
# Look at that text, which is twice as long: four times as many pairs of words look at each other. How many µs does `flash` take now?

# %% id=14b-heads reveal
slow_longer, fast_longer = both(longer_text)
reveal("14b-heads", round(fast_longer), was=slow, now=slow_longer)

# %% id=14b-heads told truth=484
# A kernel ends with its slowest thread. That's the one of the last word, which looks at twice as many words now. The other words have threads of their own, and there's room for all. It's the same in `attention`, which takes {now:.0f} µs instead of {was:.0f}.

# %% id=attention-timeline-check tags=asserts
for qk, (_, mix) in zip(heads.values(), made):
    (without_table,) = head(flash, *qk, vectors, tabled=False)
    assert np.allclose(without_table, mix, atol=1e-5)
assert 45 < by_table / in_one_go < 55
assert 3 < times < 4
if device.simulated:
    assert 1 < slow / fast < 1.5
    assert 1.9 < fast_longer / fast < 2.1
    assert 1.9 < slow_longer / slow < 2.1

# %% [markdown] id=attention-read
# ### Many heads
#
# A single short head leaves the memory idle. But take 32 heads of 4,096 words each, all at once: an H200 needed 58 ms for them with the table, and 2.3 without. The running correction is called *online softmax* (Milakov and Gimelshein, 2018). With tiles that stay on the chip it's the heart of **flash attention** (Dao and others, 2022).
#
# The heart, mind you, and not the muscles. We gave the same heads to PyTorch on the same GPU. Its own kernel for `float` took 2.0 ms, about as long as ours. But in bfloat16, NVIDIA's cuDNN took 0.21 ms, a tenth of that. Ours has a thread for each row and multiplies number by number, at 11 TFLOP/s. Theirs has whole warps that multiply tiles on **tensor cores**, and fetches the next tile meanwhile.
#
# ## Key points
#
# - A kernel that stays can report while it works. If it sends the question early and reads the answer late, it loses little time.
# - An answer that can be corrected later needn't wait: one pass is enough, and no table.
# - A pass that saves nearly all the bytes saves time only where the bytes were what it waited for.
#
# Below is the encore. **Next:** in [15_several_gpus](15_several_gpus.ipynb), the GPU gets company.

# %% id=score
score("14b")

# %% id=progress
progress("14b")

# %% [markdown] id=walk-door
# ## Encore: a walk through a city
#
# *How far is it from the first house to each of the others?*
#
# The usual answer goes in rounds. In round 1 you stand in front of the neighbours, in round 2 in front of *their* neighbours, and so on. The houses that a round reaches are its **frontier**. Here are two cities: a street with a few short cuts, and a town where anybody may know anybody.


# %% id=walk-cities
def city(pairs, n):
    """Where each house's neighbours begin in a list of all, and that list."""
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).astype(np.int32)
    begin = np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int32)
    return begin, pairs[:, 1]


houses = np.arange(1024)
next_door = np.stack([houses[:255], houses[1:256]], axis=1)
street = city(np.concatenate([next_door, [[k, k + 2] for k in range(0, 254, 5)]]), 256)
town = city(np.random.default_rng(0).integers(0, 1024, (6 * 1024, 2)), 1024)
FAR = 2**30


def unknown(where):
    """What a walk starts from: only the first house is known, and it's 0 away."""
    return agt.pin(np.r_[0, np.full(where[0].size - 2, FAR)].astype(np.int32))


# %% [markdown] id=walk-rounds-text
# With Python in charge, each round is a launch, and after it Python asks whether the frontier still moves:

# %% id=walk-rounds
one_round = agt.Kernel(r"""
extern "C" __global__ void one_round(
    int n, int round, const int* begin, const int* neighbours, int* away, int* moved)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || atomicAdd(&away[i], 0) != round) return;
    for (int k = begin[i]; k < begin[i + 1]; k++) {
        if (atomicMin(&away[neighbours[k]], round + 1) > round + 1) *moved = 1;
    }
}
""")


def by_rounds(where, ask_every=1):
    begin, neighbours, away = (
        agt.h2d(agt.pin(x)).sync_on(stream) for x in (*where, unknown(where))
    )
    n, round, moved = away.size, 0, [1]
    while moved[0]:
        op = agt.zeros(1, np.int32)
        for _ in range(ask_every):
            given = n, round, begin.borrow(), neighbours.borrow(), away.borrow()
            shape = {"grid": -(-n // 256), "block": 256}
            op = op.and_then(
                lambda moved, given=given: one_round(*given, moved, **shape)
            ).last()
            round += 1
        moved = op.to_host().sync_on(stream)
    return agt.d2h(away).sync_on(stream)


cities = {"the street": street, "the town": town}
walks_by_round = {name: recorded(by_rounds, where) for name, where in cities.items()}
for name, (away, trace) in walks_by_round.items():
    rounds = f"{away.max()} rounds, at most {np.bincount(away).max()} houses in one"
    print(f"{name}: {rounds}, {trace.metrics().makespan:.0f} µs")
print("(In each, one more round finds that nobody is left.)")

# %% id=walk-map tags=helpers
figure, places = plt.subplots(2, 2, figsize=(9.6, 7), height_ratios=[2.4, 1], layout="constrained")
row, column = np.divmod(np.arange(256), 16)
snake = np.stack([np.where(row % 2, 15 - column, column), -row], axis=1)
away = walks_by_round["the town"][0]
angle = 2 * np.pi * np.random.default_rng(1).random(away.size)
rings = (away + 0.25 * np.random.default_rng(2).random(away.size) * (away > 0))[:, None]
rings = rings * np.stack([np.cos(angle), np.sin(angle)], axis=1)
for (axes, fronts), (name, where), at in zip(places.T, cities.items(), (snake, rings)):
    away, from_house = walks_by_round[name][0], np.repeat(np.arange(len(at)), np.diff(where[0]))
    small = len(at) < 300
    middle = (at[from_house] + at[where[1]]) / 2
    middle[:, 1] += 0.4 * small * (np.abs(where[1] - from_house) == 2)  # a short cut is bent
    ways = np.stack([at[from_house], middle, at[where[1]]], axis=1)
    look = {"linewidth": 0.8} if small else {"linewidth": 0.3, "alpha": 0.05}
    axes.add_collection(LineCollection(ways, color="0.5", zorder=0, **look))
    houses = axes.scatter(*at.T, c=away, cmap="viridis", s=22 if small else 6)
    bar = {"label": "steps from the first house (red)", "shrink": 0.7}
    figure.colorbar(houses, ax=axes, ticks=None if small else range(away.max() + 1), **bar)
    axes.plot(*at[0], "o", color="tab:red", markersize=8)
    axes.set(title=name, aspect="equal")
    axes.axis("off")
    fronts.stairs(np.bincount(away), np.arange(away.max() + 2) - 0.5, fill=True)
    fronts.set(xlabel="round", ylabel="houses in the frontier")
    fronts.yaxis.get_major_locator().set_params(integer=True)
    fronts.xaxis.get_major_locator().set_params(integer=True)
shown(
    figure,
    "The street winds from the red house to the far end, and its frontier is one or two houses wide. In the "
    "town, all houses lie in a few rings around the red one, most of them in a single ring.",
)

# %% id=walk-before
_, walked = walks_by_round["the street"]
calls = [span.duration for span in walked if span.name == "launch one_round"]
street_us = walked.metrics().makespan
print(f"the street: {len(calls)} launches, and a wait after each: {street_us:,.0f} µs")

# %% id=14b-tenth guess within=0.2
# Now let it ask after every *tenth* round only. How many µs does the street take?

# %% id=14b-tenth reveal
away, asked_seldom = recorded(by_rounds, street, 10)
assert (away == walks_by_round["the street"][0]).all()
launches = len(asked_seldom.find("one_round"))
facts = {"launches": launches, "us": launches * np.mean(calls), "questions": launches // 10}
reveal("14b-tenth", round(asked_seldom.metrics().makespan), **facts)

# %% id=14b-tenth told truth=4278
# The questions are a tenth, but there are {launches} launches now, which take Python {us:,.0f} µs. (They're more than before, because it learns only after ten idle rounds that it's over.) The {questions} questions take the rest.

# %% [markdown] id=walk-queue-text
# ### A queue
#
# A launch for two houses is a waste, with a question or without. So keep a **queue** of houses in the GPU's memory, and one kernel. Its blocks take a house and look at its neighbours, and put a neighbour into the queue if this way to it is shorter than any before. It's the queue of [11b](11b_without_a_barrier.ipynb), but now those who take from it fill it as well. And there are no rounds any more, so a block may come to a house by a longer way first. Then the distance is corrected later, like the mix in room 5, and the house goes into the queue once more.
#
# Whoever finds the queue empty has a problem. Somebody else may still be at work, and may put something in. **How do you know that nothing will come any more?**

# %% id=walk-kernel
GIVEN = r"""
struct Queue {
    volatile int* items;   // -1 where nobody has put anything yet
    unsigned int* head;    // slots that were taken
    unsigned int* tail;    // slots that were given out to put something in
    unsigned int* open;    // items that were put, and are not done
    unsigned int room;     // slots there are
};
"""
WALK = r"""
extern "C" __global__ void walk(
    const int* begin, const int* neighbours, int* away,
    int* items, unsigned int* counts, unsigned int room)
{
    __shared__ int house;
    Queue queue = {items, counts, counts + 1, counts + 2, room};
    while (true) {
        if (threadIdx.x == 0) house = take(queue);
        __syncthreads();
        int here = house;
        if (here < 0) break;
        int next = atomicAdd(&away[here], 0) + 1;
        for (int k = begin[here] + threadIdx.x; k < begin[here + 1]; k += blockDim.x) {
            if (atomicMin(&away[neighbours[k]], next) > next) put(queue, neighbours[k]);
        }
        __syncthreads();                           // everybody has put what there was
        if (threadIdx.x == 0) done(queue);
    }
}
"""

# %% [markdown] id=exercise-queue
# ### Exercise: will anything come?
#
# `put` gives an item the next slot, and `take` gets the next slot to take from. The version below leaves as soon as that slot is empty. Make it leave only if nothing can come any more. You may use `open` for that, which starts at 1 because the first house is in the queue already, and `done`, which is called when an item is done, and everything that it led to is in the queue.

# %% id=14b-queue starter
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    unsigned int slot = atomicAdd(queue.tail, 1);
    if (slot >= queue.room) __trap();              // full: no answer beats a wrong one
    __threadfence();                               // what the item needs comes first
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    while (queue.items[slot] < 0) {
        return -1;                                 // nothing there: over. Or is it?
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
}
"""

# %% id=14b-queue solution
#   {
# +     atomicAdd(queue.open, 1);
# - unsigned int slot = atomicAdd(queue.head, 1);
# + unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
# - return -1;                                 // nothing there: over. Or is it?
# + if (atomicAdd(queue.open, 0) == 0) return -1;
# + if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
# + __nanosleep(100);
#   {
# +     atomicSub(queue.open, 1);

# %% id=14b-queue hints
# Something can come as long as some item isn't done: either it's still in the queue, or somebody is at work on it and may put more. So count the items that are open.
#
# `put` counts one more in `open`, and `done` one less. In `take`, while the slot is empty, look at `open`. If it's 0, return -1. Otherwise `__nanosleep(100)`, and look again.
#
# When does `put` have to count? Before anybody can see the item. Otherwise it might be taken and done before it was counted, and `open` would be 0 although its parent is still at work.

# %% id=14b-queue explanation
# `open` comes to 0 only when the last item is done and has put nothing, and from then on nobody is left who could put anything. An empty queue proves nothing, and neither does a block that has waited for long. (With thousands of blocks, each gets a queue of its own, and *steals* from another when it's empty. Knowing when all are done is the same puzzle.)

# %% id=14b-queue-check
check("14b-queue", QUEUE)

# %% id=walk-timeline
walk = agt.Kernel(GIVEN + solved("14b-queue", QUEUE) + WALK, "walk")


def by_queue(where, blocks=4):
    room = 4 * where[0].size  # a house may come more than once
    items = np.full(room + blocks, -1, np.int32)  # each block waits at one more slot
    items[0] = 0
    counts = np.array([0, 1, 1], np.uint32)
    parts = (*where, unknown(where), items, counts)
    op = agt.zip(*[agt.h2d(agt.pin(part)) for part in parts])
    op = op.and_then(lambda given: walk(*given, room, grid=blocks, block=32))
    home = op.and_then(lambda given: agt.zip(agt.d2h(given[2]), agt.d2h(given[4])))
    return home.sync_on(stream)


away, by_blocks = recorded(by_queue, street)
assert (away[0] == walks_by_round["the street"][0]).all()
queue_us = by_blocks.metrics().makespan
print(f"the street, by queue: {queue_us:.0f} µs, for {away[1][1]} items")
begun = min(span.start for span in walked)
meanwhile = len(walked.between(begun, begun + queue_us).find("one_round"))

walks = {
    "the street, by rounds": walked,
    "the street, asking after every tenth": asked_seldom,
    "the street, by queue": by_blocks,
    "the town, by rounds": walks_by_round["the town"][1],
}
agt.compare_timelines(
    [beginning(trace.from_first(), 700) for trace in walks.values()],
    list(walks),
    lanes=("streams",),
    lesson=f"The first 700 µs. In the street, the queue is done when {meanwhile} of "
    "over two hundred rounds are. In the town, five rounds are all there is.",
)

# %% id=walk-check tags=asserts
assert walks_by_round["the street"][0].max() > 200
assert walks_by_round["the town"][0].max() < 10
assert (by_queue(town)[0] == walks_by_round["the town"][0]).all()
if device.simulated:
    assert walked.metrics().makespan > 15 * by_blocks.metrics().makespan
    assert 450 < by_blocks.metrics().makespan < 900  # 690 on an H200
    assert 0.4 < asked_seldom.metrics().makespan / walked.metrics().makespan < 0.55

# %% [markdown] id=walk-read
# And the town by queue? The simulated device, too, lets the four blocks share it, 256 houses each. An H200 took:
#
# | µs on an H200 | by rounds | by queue, four blocks |
# |---|---|---|
# | the street | 36,600: 205 rounds | 690: 204 houses one after another |
# | the town | 690: 5 rounds | 730: 1,024 houses, shared by four blocks |
#
# A round cost 140 to 180 µs, however many houses it reached, and a house kept a block busy for about 3. So a long thin graph wants a queue. In a short wide one, rounds are few and full.
