"""Source of notebooks/14_gallery.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # A gallery
#
# A fractal, a page of text, a network that learns to read, the attention of a language model, and two galaxies. They seem to have nothing in common. And yet, if you want to know how long any of them takes, you end up asking the same question: **who waits for whom?**
#
# After this page you can say how long a kernel takes whose threads have unequal work, let a warp agree on who writes where, train a network in a single launch while Python watches and stops it, correct an answer instead of waiting for it, and read off a timeline what to do next.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | You need | [09_cuda_graphs](09_cuda_graphs.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb); for room 3 [13b_await_the_host](13b_await_the_host.ipynb). You do not need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import inspect

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution, solved

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=welcome
# Each room of this gallery has a question at the door, a picture on the wall, and one idea behind it. Begin where you like.
#
# | room | question | idea |
# |---|---|---|
# | 1 | What does a black pixel of the Mandelbrot set cost? | threads with unequal work |
# | 2 | Where in a text does a letter stand? | a warp votes |
# | 3 | Can you watch a launch learn, and tell it to stop? | a kernel that awaits the host |
# | 4 | What does a word look at? | correct an answer instead of waiting for it |
# | 5 | What happens when two galaxies meet? | yours: the challenge |

# %% [markdown] id=recorded-text
# On a real GPU, Python's first calls after a pause take several times as long as the next ones. So this helper runs everything twice, and records the second run.

# %% id=recorded
def recorded(run, *args):
    """What a run returns, and its trace."""
    with agt.record():
        run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace

# %% [markdown] id=mandelbrot-door
# ## Room 1: The price of a pixel
#
# *What does a black pixel of the Mandelbrot set cost?*
#
# Take a point $c$ of the plane, start at $z = 0$, and repeat $z \to z^2 + c$. From most points you fly off to infinity within a few rounds. From some you never do, and these, in black, are the set. Each pixel is a thread that counts rounds until its $z$ is farther than 2 from the origin, or until it loses patience after 600.

# %% id=mandelbrot-kernel
mandelbrot = agt.Kernel(r"""
extern "C" __global__ void mandelbrot(int first, int width, int height, int most, int* rounds)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float a = -2.4f + 3.52f * x / width, b = -1.32f + 2.64f * (first + y) / height;
    float re = 0.0f, im = 0.0f;
    int n = 0;
    while (n < most && re * re + im * im < 4.0f) {
        float next = re * re - im * im + a;
        im = 2.0f * re * im + b;
        re = next;
        n++;
    }
    rounds[y * width + x] = n;
}
""")
WIDTH, HEIGHT, BANDS, MOST = 192, 144, 6, 600
ROWS = HEIGHT // BANDS

outs = [agt.zeros((ROWS, WIDTH), np.int32).sync() for _ in range(BANDS)]
bands = [
    mandelbrot(
        k * ROWS, WIDTH, HEIGHT, MOST, outs[k].borrow(), grid=(WIDTH // 8, ROWS // 4), block=(8, 4)
    )
    for k in range(BANDS)
]
graph = agt.overlap(*bands).named("six bands").graph_on(stream)

# %% id=mandelbrot-picture
graph.launch().sync_on(stream)
rounds = np.vstack([agt.d2h(out.borrow()).sync() for out in outs])
black = [int((part == MOST).sum()) for part in np.split(rounds, BANDS)]

plt.figure(figsize=(6.4, 4.8))
black_where_never = plt.get_cmap("magma").with_extremes(bad="k")
plt.imshow(np.log(np.ma.masked_equal(rounds, MOST)), cmap=black_where_never, vmin=-1)
plt.hlines(ROWS * np.arange(1, BANDS) - 0.5, -0.5, WIDTH - 0.5, colors="w", linewidth=0.5)
plt.title("Bright: many rounds. Black: never done")
plt.axis("off")
plt.show()
print("The Mandelbrot set, cut into six bands. Black pixels in each, from the top:", *black)

# %% id=mandelbrot-check tags=asserts
def mandelbrot_in_numpy():
    x, y = np.meshgrid(np.arange(WIDTH, dtype=np.float32), np.arange(HEIGHT, dtype=np.float32))
    f = np.float32
    a, b = f(-2.4) + f(3.52) * x / f(WIDTH), f(-1.32) + f(2.64) * y / f(HEIGHT)
    re, im, n = np.zeros_like(a), np.zeros_like(a), np.zeros(a.shape, np.int32)
    for _ in range(MOST):
        inside = re * re + im * im < 4
        n += inside
        re, im = (
            np.where(inside, re * re - im * im + a, re),
            np.where(inside, f(2) * re * im + b, im),
        )
    return n


assert (rounds == mandelbrot_in_numpy()).all()
assert (black[0], black[-1]) == (0, 1)
assert min(black[1:-1]) > 400
assert max(black) > 1700

# %% [markdown] id=mandelbrot-question
# The white lines cut the picture into six bands of 4,608 pixels each. Every band is a kernel of its own, and a graph launches all six at once. An H200 has room for 270,336 threads, and we have 27,648, so nobody waits for a place.
#
# Now look at the black pixels. The first band has none, and the last has a single one.

# %% id=predict-bands
six = Prediction(
    "Six bars on the timeline, one for each band. How long are they?",
    same="all about the same: equally many threads, and a place for each",
    black="the more black, the longer: the two in the middle stand out, the first and the last are short",
    one="one is short, and the other five are about the same",
)
six

# %% id=commit-bands
six.commit(...)

# %% id=mandelbrot-timeline
_, trace = recorded(graph.launch().sync_on, stream)
took = sorted(span.duration for span in trace.find("mandelbrot"))

trace.plot(
    title="Six bands at once",
    lanes=("streams",),
    lesson="The first band is soon done. The other five take equally long, though one of them has 1,700 "
    "times as much black as another.",
)

# %% id=reveal-bands
alike = took[-1] < 1.5 * took[1]
six.reveal(
    "one" if alike and took[0] < 0.7 * took[1] else "same" if alike else "black",
    "A kernel ends with its slowest thread. One pixel that is never done costs as much as 1,700 of them, as "
    "long as the SMs are far from busy.",
)

# %% id=mandelbrot-h200
bars = sorted(span.duration for span in agt.Trace.load_recording("14_mandelbrot").device_spans)
print("the six bars on an H200:", ", ".join(f"{us:.1f}" for us in bars), "µs")

# %% id=mandelbrot-h200-check tags=asserts
assert bars[0] < 0.5 * bars[1]
assert bars[-1] < 1.1 * bars[1]

# %% id=mandelbrot-warps tags=asserts
def idle(width, height):
    """The share of its rounds in which a lane only waits, if warps have this shape."""
    warps = rounds.reshape(HEIGHT // height, height, WIDTH // width, width).swapaxes(1, 2)
    longest = warps.max(axis=(2, 3))
    return 1 - rounds.sum() / (longest.sum() * width * height)


assert [round(100 * idle(*shape)) for shape in ((32, 1), (8, 4))] == [38, 24]

# %% [markdown] id=mandelbrot-how
# The same happens inside a warp, where it's called **divergence**. As a rule, its 32 threads go through the loop together, so those that are done wait for the slowest. Neighbours need similar numbers of rounds, so it pays to put neighbours together. In warps of 32 x 1 pixels, lanes would wait for 38 % of their rounds. In the 8 x 4 of the kernel above it's 24 %.

# %% [markdown] id=grep-door
# ## Room 2: A page from far away
#
# *Where in a text does a letter stand?*
#
# Our text is a file of this course, the one that defines its errors. Each character gets a thread, which looks whether it's the letter. If it is, the thread has to write its place into a list, and a thousand others want to do the same. Who writes where?
#
# A counter to which everybody adds one would do: `slot = atomicAdd(count, 1)`. Here it is at work on a short text. Look at the second of the three steps.

# %% id=grep-crowd
CROWD = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    if (yes) {
        int slot = atomicAdd(count, 1);
        places[slot] = i;
    }
}
"""
SHORT = b"the warp votes, and the first lane writes down where the rest may write"


def watched(grep):
    """What the threads do that look for every e in a short text, in blocks of one warp."""
    grep = agt.Kernel(grep) if isinstance(grep, str) else grep
    text, places = np.frombuffer(SHORT, np.uint8), np.zeros(16, np.int32)
    count = np.zeros(1, np.int32)
    return agt.show_threads(grep, text.size, text, ord("e"), places, count, grid=3, block=32)


watched(CROWD)

# %% [markdown] id=grep-vote
# Ten threads crowd around one counter, which serves them one after the other. But three would be enough, one for each warp, because the lanes of a warp can **vote**:
#
# | | what every lane gets |
# |---|---|
# | `votes = __ballot_sync(mask, yes)` | 32 bits, one for each lane: bit 5 is set if lane 5 said yes |
# | `__popc(votes)` | how many bits are set |
# | `__ffs(votes) - 1` | the first lane that said yes |
# | `__shfl_sync(mask, x, lane)` | the `x` of that lane |
# | `(1u << lane) - 1` | a bit for each lane below `lane` |
#
# (The `mask` for all 32 lanes is `0xffffffffu`.) So one lane can ask the counter for as many places as its warp needs, and then they share them out.

# %% id=grep-crowd-check tags=asserts
assert "10 threads write count" in watched(CROWD).step(1)

# %% [markdown] id=exercise-grep
# ### Exercise: one atomic for a warp
#
# The version below asks the counter once for each match. Change it, so that the first lane with a match asks for its whole warp, and each match takes a slot of its own. The matches of a warp should stay in order.

# %% id=14-grep starter
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    if (yes) {
        int slot = atomicAdd(count, 1);            // every match for itself
        places[slot] = i;
    }
}
"""

# %% id=14-grep solution
GREP = r"""
extern "C" __global__ void grep(
    int n, const unsigned char* text, unsigned char letter, int* places, int* count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool yes = i < n && text[i] == letter;
    unsigned int votes = __ballot_sync(0xffffffffu, yes);
    if (votes == 0) return;
    int lane = threadIdx.x % 32, first = __ffs(votes) - 1, slot = 0;
    if (lane == first) slot = atomicAdd(count, __popc(votes));
    slot = __shfl_sync(0xffffffffu, slot, first);
    if (yes) places[slot + __popc(votes & ((1u << lane) - 1))] = i;
}
"""

# %% id=14-grep hints
# Every lane has to vote, even one that is past the end of the text. So the ballot comes before any `if`.
#
# The lane `__ffs(votes) - 1` adds `__popc(votes)` to the counter. What it gets is the first slot of the warp, and the others learn it by `__shfl_sync`.
#
# How many votes are there below my lane? `(1u << lane) - 1` has a bit for each lane below. So my slot is `slot + __popc(votes & ((1u << lane) - 1))`.

# %% id=14-grep explanation
# Up to 32 atomics have become one, and no warp had to wait for another. The trick is called *warp-aggregated atomics*. Compilers apply it by themselves where they can see it, and they can't always see it.

# %% id=14-grep-check
check("14-grep", GREP)

# %% [markdown] id=grep-yours-text
# Watch your own. How many are at the counter now?

# %% id=grep-yours
watched(GREP)

# %% id=grep-yours-check tags=asserts
assert "3 threads write count" in watched(solved("14-grep")).step(1)

# %% [markdown] id=grep-words-text
# Now for the whole file. Your kernel looks for every *e*, and we step back.

# %% id=grep-picture
text = agt.pin(np.frombuffer(inspect.getsource(agt.errors).encode(), np.uint8))
grep = agt.Kernel(solved("14-grep", GREP))
op = agt.zip(agt.h2d(text), agt.zeros(text.size, np.int32), agt.zeros(1, np.int32)).and_then(
    lambda given: grep(
        text.size, given[0], ord("e"), *given[1:], grid=-(-text.size // 256), block=256
    )
)
places, count = op.and_then(lambda given: agt.zip(*map(agt.d2h, given[1:]))).sync_on(stream)
found = np.sort(places[: count[0]])

# Where each character is on the picture: lines of text from top to bottom, in three columns.
line = np.cumsum(text == 10) - (text == 10)
begins = np.append(0, np.flatnonzero(text == 10) + 1)
tall = line.max() // 3 + 1
row, column = line % tall, np.arange(text.size) - begins[line] + line // tall * 120

page = np.zeros((tall, 360), int)
page[row, column] = text > 32
page[row[found], column[found]] = 2
plt.figure(figsize=(9.6, 5.4))
plt.imshow(
    page, cmap=plt.matplotlib.colors.ListedColormap(["white", "0.85", "tab:red"]), aspect="auto"
)
plt.axis("off")
plt.show()
print("Three grey columns of code, seen from afar, and everywhere in them red dots.")
for letter in "ez":
    stands = np.flatnonzero(text == ord(letter))
    print(f"{letter!r} stands at {len(stands):4} places, in {len(set(stands // 32)):3} warps")

# %% id=grep-check tags=asserts
e_places = np.flatnonzero(text == ord("e"))
assert found.tolist() == e_places.tolist()
assert len(set(e_places // 32)) < len(e_places) / 2

# %% [markdown] id=grep-read
# Where there is one *e* in a warp, there are often more, so the vote saves more than half of the atomics. A rare letter such as *z* is nearly always alone, and the vote saves next to nothing.

# %% [markdown] id=training-door
# ## Room 3: A kernel that reports
#
# *Can you watch a launch learn, and tell it to stop?*
#
# Training is a loop, and after chapter 11 you'd want that loop inside a kernel. But then who watches it? Somebody should see the loss, and stop it all when the network only learns its examples by heart. After the launch it's too late.
#
# Here a block of 640 threads learns to read the digits of chapter 7: a thread for each of 64 pixels and ten digits, and a weight for each thread. It learns from 192 pictures, and 64 are set aside. Every ten steps, thread 0 sends Python the loss of both in an `Ask` from [chapter 13b](13b_await_the_host.ipynb), and goes on training. It picks up the answer when the next report is due. If Python said 1, the block leaves by a vote.

# %% id=training-kernel
learn = agt.Kernel(r"""
#include "hostcall_async.cuh"
#define SEEN 192                                                    // pictures to learn from
#define ALL 256                                                     // and those set aside
#define ROW 68                                                      // 64, and 4 against bank conflicts
extern "C" __global__ void learn(
    unsigned long long* mail, unsigned long long* stack, const unsigned char* pictures,
    const int* labels, int most, int every, float* weights, int* steps)
{
    __shared__ float w[10 * 64], share[10 * ALL], loss[ALL];
    __shared__ unsigned char ink[ALL * ROW];
    Hostcalls host = hostcalls(mail, stack);
    Ask report = ask(host, 16, 0, 0, 0);
    int i = threadIdx.x, step = 0;
    bool stop = false;
    for (int k = i; k < ALL * 64; k += 640) ink[k / 64 * ROW + k % 64] = pictures[k];
    w[i] = 0.0f;
    __syncthreads();
    for (; step < most; step++) {
        for (int k = i; k < 10 * ALL; k += 640) {                   // what each digit says to each picture
            float score = 0.0f;
            for (int p = 0; p < 64; p++) score += w[k / ALL * 64 + p] * ink[k % ALL * ROW + p];
            share[k] = expf(score);
        }
        __syncthreads();
        if (i < ALL) {                                              // a thread for each picture: softmax
            float sum = 0.0f;
            for (int d = 0; d < 10; d++) sum += share[d * ALL + i];
            for (int d = 0; d < 10; d++) share[d * ALL + i] /= sum;
            float* right = &share[labels[i] * ALL + i];
            loss[i] = -logf(*right);
            *right -= 1.0f;
        }
        __syncthreads();
        float slope = 0.0f;                                         // a thread for each weight
        for (int k = 0; k < SEEN; k++) slope += share[i / 64 * ALL + k] * ink[k * ROW + i % 64];
        w[i] -= 0.02f * slope / SEEN;
        if (i == 0 && step % every == 0) {
            if (report.step > 0) {                                  // what did Python say last time?
                block_on(report);
                stop = report.error != 0 || report.answer == 1;
            }
            float seen = 0.0f, aside = 0.0f;
            for (int k = 0; k < SEEN; k++) seen += loss[k] / SEEN;
            for (int k = SEEN; k < ALL; k++) aside += loss[k] / (ALL - SEEN);
            report = ask(host, 16, step, __float_as_uint(seen), __float_as_uint(aside));
            report.poll();                                          // sent; the answer can wait
        }
        if (__syncthreads_or(stop)) break;                          // the vote
    }
    if (i == 0) report.drop();                                      // nobody wants that answer any more
    weights[i] = w[i];
    if (i == 0) *steps = step;
}
""")
digits = agt.data.load_digits()
ink = (16 * digits.batches).astype(np.uint8).ravel()
pictures, labels = (
    agt.h2d(agt.pin(part)).sync().share() for part in (ink, digits.labels.astype(np.int32).ravel())
)


async def trained(every, most=1000):
    """What Python heard, the weights, the number of steps, and the trace."""
    heard = []

    def listen(call):
        seen, aside = np.array([call.b, call.c], np.uint32).view(np.float32)
        heard.append((call.a, seen, aside))
        agt.work(60, "draw")  # on the simulated device, drawing has to be given its time
        print("▁▂▃▄▅▆▇█"[min(7, int(3.5 * aside))], end="")
        return int(len(heard) > 1 and aside > 0.99 * heard[-2][2])  # 1: it hardly falls, so stop

    weights, steps = agt.pin(np.zeros(640, np.float32)), agt.pin(np.zeros(1, np.int32))
    async with agt.hostcalls({16: listen}) as office:
        with agt.record() as trace:
            args = (pictures, labels, most, every, agt.mapped(weights), agt.mapped(steps))
            await office.run(learn(*office.arrays, *args, grid=1, block=640))
    print()
    return heard, weights.reshape(10, 8, 8), int(steps[0]), trace

# %% [markdown] id=training-live
# Each mark below is printed while the kernel runs: the loss of the pictures set aside.

# %% id=training-picture
await trained(10, most=20)  # warm-up
heard, weights, steps, reporting = await trained(10)
print(f"Stopped after {steps} of 1,000 steps.")

figure, shown = plt.subplot_mosaic(
    [["c", *"01234"], ["c", *"56789"]], figsize=(11, 4), width_ratios=[5, *[1] * 5]
)
at, seen, aside = np.array(heard).T
plt.sca(shown["c"])
plt.semilogy(at, seen, "o-", label="192 to learn from")
plt.semilogy(at, aside, "s--", label="64 set aside")
plt.legend()
shown["c"].set(xlabel="step", ylabel="loss", title="what Python heard")
for d in range(10):
    shown[str(d)].imshow(weights[d], cmap="RdBu_r", vmin=-0.15, vmax=0.15)
    shown[str(d)].set_title(d)
    shown[str(d)].axis("off")
plt.show()
print("Two curves that part: one falls on, the other levels off. Beside them a picture for each digit:")
print("red where ink speaks for it, blue where ink speaks against it. The 0 has a blue hole.")

# %% id=training-check tags=asserts
right = (ink.reshape(256, 64) @ weights.reshape(10, 64).T).argmax(1) == digits.labels.ravel()
assert right[:192].all()
assert right[192:].mean() > 0.9
assert 50 < steps < 300
assert steps == heard[-1][0]  # one report after it was told so
assert heard[-2][2] > 0.99 * heard[-3][2]
assert [step for step, *_ in heard] == list(range(0, steps + 1, 10))[: len(heard)]

# %% [markdown] id=training-question
# The kernel stopped one report *after* Python had said so, which is the price of not waiting. Is there another one? Here is how long a step takes without any reports but the first:

# %% id=training-quiet
_, _, done, quiet = await trained(1000, most=40)
alone = quiet.device_spans[-1].duration / done
print(f"{alone:.1f} µs a step")

# %% id=predict-reports
longer = Prediction(
    "Python takes 60 µs to draw a mark. With a report every ten steps, how many µs does a step take on "
    "average? (Type a number.)",
    within=0.15,
)
longer

# %% id=commit-reports
longer.commit(...)

# %% id=run-reports
_, _, done, often = await trained(10, most=40)
with_reports = often.device_spans[-1].duration / done

often.plot(
    title="Forty steps",
    lanes=("host", "streams"),
    lesson="One bar of the GPU, and above it Python draws now and then, while the bar goes on.",
)

# %% id=reveal-reports
longer.reveal(
    round(with_reports, 1),
    f"Ten steps take {10 * alone:.0f} µs, so Python is done before the next report is due. If it weren't, "
    "the block would wait for it there.",
)

# %% id=reports-check tags=asserts
if device.simulated:
    assert 10 * alone > 60
    assert with_reports < 1.1 * alone

# %% [markdown] id=training-read
# The GPU trains, Python draws, and they look at each other only every ten steps.

# %% [markdown] id=attention-door
# ## Room 4: What a word looks at
#
# *What does a word look at?*
#
# In a language model, each word of a text looks back at itself and at the words before it. How much it looks at each is called its **attention**. A word asks with a vector $q$, the others offer a vector $k$ each, and where the two agree the product $q \cdot k$ is large. A *softmax* turns these products into shares that add up to one, and what the word takes home is a mix of the vectors $v$, in these shares.
#
# A **head** is one way of looking. Models learn hundreds of them, and we make four by hand.

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
        float e = expf(share[i * words + j] - most);   // at most 1, so nothing overflows
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
    """What a kernel makes of a head: the table, where it writes one, and the mix."""
    words = len(q)
    q, k, v = (agt.h2d(agt.pin(part.astype(np.float32).ravel())) for part in (q, k, v))
    sizes = [words * words, words * 24] if tabled else [words * 24]
    op = agt.zip(q, k, v, *map(agt.zeros, sizes)).and_then(
        lambda given: kernel(words, *given, grid=-(-words // 32), block=32)
    )
    got = op.and_then(lambda given: agt.zip(*map(agt.d2h, given[3:]))).sync_on(stream)
    return [part.reshape(words, -1) for part in got]


made = [head(attention, *qk, vectors, tabled=True) for qk in heads.values()]

# %% id=attention-picture
fig, shown = plt.subplots(1, 4, figsize=(13, 4.2), sharey=True)
for axes, name, (share, _) in zip(shown, heads, made):
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set_xticks(range(n), TEXT, rotation=90, fontsize=7)
    axes.set_yticks(range(n), TEXT, fontsize=7)
plt.tight_layout()
plt.show()
print("Four triangles. A row is a word, and its dark cells are the words that it looks at:")
print(
    "a line below the diagonal; dots where a word comes again; columns at the nouns; an even haze."
)

# %% id=attention-check tags=asserts
def head_in_numpy(q, k):
    scores = np.where(np.tri(n, dtype=bool), q @ k.T, -np.inf)
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    return share, share @ vectors


for qk, (share, mix) in zip(heads.values(), made):
    right, wanted = head_in_numpy(*qk)
    assert np.allclose(share, right, atol=1e-5)
    assert np.allclose(mix, wanted, atol=1e-4)

# %% [markdown] id=attention-question
# Who waits for whom inside `attention`? The shares wait for the largest score and for the sum, and the mix waits for the shares. So each thread goes over its words again and again, and keeps a row of numbers in memory meanwhile. For a text of 100,000 words, each of those triangles is a table of 40 GB.
#
# Does the mix have to wait? Suppose that you mix as you go, and measure by the largest score *so far*. When a larger one turns up, all that you have is too large by one and the same factor. So correct it, and go on:

# %% id=attention-flash
flash = agt.Kernel(r"""
#define SIZE 24
#define TILE 32
extern "C" __global__ void flash(int words, const float* q, const float* k, const float* v, float* out)
{
    __shared__ float keys[TILE * SIZE], values[TILE * SIZE];
    int i = blockIdx.x * TILE + threadIdx.x, last = min(words, (int)(blockIdx.x + 1) * TILE);
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
            float score = 0.0f, before = most;
            for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
            most = fmaxf(most, score);
            float fix = expf(before - most), e = expf(score - most);
            sum = fix * sum + e;                                    // corrected, and then added to
            for (int c = 0; c < SIZE; c++) mix[c] = fix * mix[c] + e * values[j * SIZE + c];
        }
        __syncthreads();
    }
    if (i >= words) return;
    for (int c = 0; c < SIZE; c++) out[i * SIZE + c] = mix[c] / sum;
}
""")

# %% id=attention-flash-check tags=asserts
for qk, (_, mix) in zip(heads.values(), made):
    (without_table,) = head(flash, *qk, vectors, tabled=False)
    assert np.allclose(without_table, mix, atol=1e-5)

# %% id=predict-heads
long_text = rng.standard_normal((3, 256, 24)) / 4
quicker = Prediction(
    "A text of 256 words, and both kernels. How many times as quick is `flash`? (Type a number, such as "
    "0.5 or 3.)",
    within=0.2,
)
quicker

# %% id=commit-heads
quicker.commit(...)

# %% id=attention-timeline
_, by_table = recorded(head, attention, *long_text, True)
_, in_one_go = recorded(head, flash, *long_text, False)
(slow,), (fast,) = by_table.find("attention"), in_one_go.find("flash")

# %% id=reveal-heads
quicker.reveal(
    round(slow.duration / fast.duration, 2),
    f"It's {slow.duration:.0f} and {fast.duration:.0f} µs. The lost table had {256 * 256 * 4:,} bytes.",
)

# %% id=attention-timeline-check tags=asserts
if device.simulated:
    assert 1 < slow.duration / fast.duration < 1.5

# %% [markdown] id=attention-read
# On the simulated device that's only a little quicker, because each thread still looks at its words one by one. What's gone is the table, and with it the reason why a long text didn't fit. This correction is the heart of **flash attention** (Dao and others, 2022). Where a row is long, several blocks can share it, and correct *each other's* answers at the end by the same factor (flash-decoding).

# %% [markdown] id=galaxies-door
# ## Room 5: Two galaxies
#
# *What happens when two galaxies meet?*
#
# Each star pulls at every other. With $n$ stars that's $n^2$ pulls for each small step in time, and a few hundred steps make a film. A thread moves a star, and its block fetches the others in tiles of 64, as in chapter 7. A step reads one pair of arrays and writes another, so every second step brings us back to the first pair.

# %% id=galaxies-kernel
step_kernel = agt.Kernel(r"""
#define TILE 64
extern "C" __global__ void galaxy_step(
    int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    __shared__ float tile_x[TILE], tile_y[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float x = at[2 * i], y = at[2 * i + 1], pull_x = 0.0f, pull_y = 0.0f;
    for (int first = 0; first < n; first += TILE) {
        int j = first + threadIdx.x;
        tile_x[threadIdx.x] = at[2 * j];
        tile_y[threadIdx.x] = at[2 * j + 1];
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            float dx = tile_x[k] - x, dy = tile_y[k] - y;
            float near = rsqrtf(dx * dx + dy * dy + 0.02f);
            float pull = near * near * near;
            pull_x += pull * dx;
            pull_y += pull * dy;
        }
        __syncthreads();
    }
    float u = speed[2 * i] + 0.06f * pull_x / n, v = speed[2 * i + 1] + 0.06f * pull_y / n;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.06f * u;
    at_next[2 * i + 1] = y + 0.06f * v;
}
""")


def two_galaxies(n):
    """Two discs of stars which turn, and drift towards each other."""
    rng = np.random.default_rng(3)
    radius, angle = 0.05 + 0.95 * rng.random(n) ** 0.8, 2 * np.pi * rng.random(n)
    at = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    speed = 0.62 * at[:, ::-1] * [-1, 1] / radius[:, None] ** 0.85
    side = np.where(np.arange(n) < n // 2, -1, 1)[:, None]
    at, speed = at + side * [1.2, 0.35], speed - side * [0.35, 0.0]
    return at.astype(np.float32), speed.astype(np.float32)


STARS, STEPS = 256, 100

# %% id=galaxies-graph
given = [agt.h2d(agt.pin(part.ravel())).sync() for part in two_galaxies(STARS)]
room = [agt.zeros(2 * STARS).sync() for _ in range(2)]
there, back = (
    step_kernel(STARS, *[array.borrow() for array in order], grid=STARS // 64, block=64)
    for order in (given + room, room + given)
)

film = [two_galaxies(STARS)[0]]
for _ in range(STEPS // 2):
    there.async_on(stream)
    back.async_on(stream)
    film.append(agt.d2h(given[0].borrow()).sync_on(stream).reshape(STARS, 2))

# %% id=galaxies-picture
film = np.array(film)
fig, shown = plt.subplots(1, 4, figsize=(13, 3.6))
for axes, frame in zip(shown, (0, 15, 30, 50)):
    plt.sca(axes)
    recent = film[max(frame - 4, 0) : frame + 1]
    for half, color in zip(np.split(np.arange(STARS), 2), ("tab:blue", "tab:orange")):
        x, y = recent[:, half].transpose(2, 0, 1)
        plt.plot(x, y, color=color, alpha=0.35, linewidth=0.8)
        axes.scatter(x[-1], y[-1], s=3, color=color)
    axes.set(xlim=(-2.5, 2.5), ylim=(-2.2, 2.2), aspect="equal", title=f"after {2 * frame} steps")
    axes.axis("off")
plt.show()
print(
    "A blue and an orange disc meet, whirl through each other, and part again with long, torn arms."
)

# %% id=galaxies-check tags=asserts
def galaxies_in_numpy(at, speed, steps):
    at, speed = at.astype(float), speed.astype(float)
    for _ in range(steps):
        d = at[None] - at[:, None]
        pull = ((d * d).sum(-1) + 0.02) ** -1.5
        speed = speed + 0.06 * (pull[..., None] * d).sum(1) / len(at)
        at = at + 0.06 * speed
    return at


assert np.allclose(film[10], galaxies_in_numpy(*two_galaxies(STARS), 20), atol=1e-3)
# After that, the last bits of the numbers decide who passes whom; but the centre of all goes straight on.
at, speed = two_galaxies(STARS)
assert np.allclose(film[-1].mean(0), (at + 0.06 * STEPS * speed).mean(0), atol=1e-3)

# %% [markdown] id=challenge
# ## The challenge: forty steps
#
# Now you, with a score. The kernel below moves all stars of a small galaxy by one step, without tiles.

# %% id=challenge-kernel
fall = agt.Kernel(r"""
extern "C" __global__ void fall(
    unsigned int n, const float* at, const float* speed, float* at_next, float* speed_next)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = at[2 * i], y = at[2 * i + 1], fx = 0.0f, fy = 0.0f;
    for (unsigned int j = 0; j < n; j++) {
        float dx = at[2 * j] - x, dy = at[2 * j + 1] - y;
        float r2 = dx * dx + dy * dy + 0.01f;
        float pull = 1.0f / (n * r2 * sqrtf(r2));
        fx += pull * dx;
        fy += pull * dy;
    }
    float u = speed[2 * i] + 0.01f * fx, v = speed[2 * i + 1] + 0.01f * fy;
    speed_next[2 * i] = u;
    speed_next[2 * i + 1] = v;
    at_next[2 * i] = x + 0.01f * u;
    at_next[2 * i + 1] = y + 0.01f * v;
}
""")

# %% [markdown] id=exercise-challenge
# ### Exercise: forty steps
#
# `fly` gets this kernel as `step`, and the arrays `at` and `speed`, with two numbers for each star. Return, as a NumPy array of `2 * n` numbers, where the stars are after this many steps. There are at most 64 stars, and the number of steps may be odd. You may overwrite `at` and `speed`, and you may write a kernel of your own.
#
# The version below gets it right, and for 64 stars and 40 steps it takes 1273 µs: get below 300. (The course's own answer takes 79 µs.) Copies and allocations in `fly` count, but compiling your kernel doesn't. Before you change anything, ask who waits for whom.

# %% id=14-challenge starter
def fly(step, at, speed, steps):
    n = at.size // 2
    at_next, speed_next = agt.zeros(2 * n).sync(), agt.zeros(2 * n).sync()
    for _ in range(steps):
        step(
            n,
            at.borrow(),
            speed.borrow(),
            at_next.borrow(),
            speed_next.borrow(),
            grid=-(-n // 64),
            block=64,
        ).sync()
        at, speed, at_next, speed_next = at_next, speed_next, at, speed
    return agt.d2h(at.borrow()).sync()

# %% id=14-challenge solution
WHOLE = r"""
extern "C" __global__ void whole(int n, int steps, float2* at, const float2* speed)
{
    __shared__ float2 all[64];
    int i = threadIdx.x;
    float2 me = at[i], go = speed[i];
    for (int step = 0; step < steps; step++) {
        all[i] = me;
        __syncthreads();                           // everybody has written
        float fx = 0.0f, fy = 0.0f;
        for (int j = 0; j < n; j++) {
            float dx = all[j].x - me.x, dy = all[j].y - me.y;
            float near = rsqrtf(dx * dx + dy * dy + 0.01f);
            fx += near * near * near * dx;
            fy += near * near * near * dy;
        }
        __syncthreads();                           // everybody has read
        go.x += 0.01f * fx / n;
        go.y += 0.01f * fy / n;
        me.x += 0.01f * go.x;
        me.y += 0.01f * go.y;
    }
    at[i] = me;
}
"""


def fly(step, at, speed, steps):
    n, whole = at.size // 2, agt.Kernel(WHOLE)
    op = whole(n, steps, at.borrow(), speed.borrow(), grid=1, block=n)
    return op.and_then(lambda given: agt.d2h(given[0])).sync()

# %% id=14-challenge hints
# Run the last picture of this page with the starter, and look at the gaps between the bars. They're Python's: it describes forty launches, and waits after each.
#
# `async_on` takes the waits away, but the descriptions remain. A graph of all forty steps has to be described as well, and is used only once. A graph of two steps, launched twenty times, is far better, and still not enough.
#
# There are at most 64 stars, so they fit into one block. Put the loop over steps into a kernel of your own, keep the places of the stars in shared memory, and have a `__syncthreads()` after the reading and another one after the writing.
#
# What's left is a thread that adds up 64 pulls, one after the other. A division and a square root for each of them are expensive. `rsqrtf` is cheaper than both, and by `n` you can divide once, at the end.
#
# For more, give each star 16 threads, let each of them add up 4 pulls, and add the 16 sums by `__shfl_down_sync(mask, fx, far, 16)` with `far` 8, 4, 2 and 1. The mask is the star's half of the warp, because with an odd `n` the last warp has no other half.

# %% id=14-challenge explanation
# Most of the time was Python's, so the loop had to leave Python. Then the rest was a thread that divided and took roots. Each timeline shows what to do next, and only that.

# %% id=14-challenge-check
check("14-challenge", fly)

# %% [markdown] id=challenge-timeline-text
# And here's how your `fly` spends its time:

# %% id=challenge-timeline
with agt.record() as flight:
    given = [agt.h2d(agt.pin(part[:64].ravel())).sync() for part in two_galaxies(STARS)]
    landed = fly(fall, *given, 40)

flight.plot(
    title="Forty steps",
    lanes=("host", "streams"),
    lesson="How much of the time belongs to the bars of the stream, and how much to the gaps between them?",
)

# %% [markdown] id=key-points
# ## Key points
#
# - A kernel ends with its slowest thread, and a warp waits for its slowest lane. So put similar work side by side.
# - `__ballot_sync` tells every lane of a warp how the others have voted, so that one lane can ask for all.
# - A kernel that stays can report while it works. If it sends the question early and reads the answer late, it loses hardly any time.
# - An answer that can be corrected later needn't wait for the numbers that are still missing.
#
# Now draw the timeline of a problem of your own. **Next:** in [15_several_gpus](15_several_gpus.ipynb), the GPU gets company.

# %% id=score
score(six, longer, quicker)

# %% id=progress
progress("14")

# %% [markdown] id=darts-door
# ## Encore: darts
#
# *The gallery is done. This room is for another day: can you find π by throwing darts?*
#
# Throw darts at a square, with your eyes shut. A quarter circle fills $\pi / 4$ of the square, so about that part of your darts will land in it. All you need is very many darts, and a way to count the hits that doesn't slow the throwing down.
#
# Where does a GPU get its random numbers? Here they come from a function that scrambles a number beyond recognition. The number of the dart goes in, and out come 32 bits, 16 of them for $x$ and 16 for $y$.

# %% id=darts-kernel
darts = agt.Kernel(r"""
__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}

extern "C" __global__ void darts(unsigned int first, unsigned int each, unsigned int* hits)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, begin = first + i * each, mine = 0;
    for (unsigned int k = 0; k < each; k++) {
        unsigned int dart = scrambled(begin + k);
        unsigned long long x = dart & 0xffff, y = dart >> 16;
        if (x * x + y * y < 1ull << 32) mine++;
    }
    for (int step = 16; step > 0; step /= 2) {          // add what the lane `step` above has ...
        mine += __shfl_down_sync(0xffffffffu, mine, step);
    }
    if (i % 32 == 0) hits[i / 32] = mine;               // ... and write once for each warp
}
""")
PLAYERS, THREADS, EACH = 8, 256, 400
PER_PLAYER = THREADS * EACH


def player(k):
    """An operation that throws, and yields an array with the hits of each warp."""
    return agt.zeros(THREADS // 32, np.uint32).and_then(
        lambda hits: darts(k * PER_PLAYER, EACH, hits, grid=2, block=THREADS // 2).output()
    )

# %% [markdown] id=exercise-darts
# ### Exercise: ask for all, wait once
#
# `players` is a list of operations like the one above: each yields an array of numbers. Return the sum of all numbers of all players, as a Python `int`. They should be free to play side by side, and Python should wait only once.

# %% id=14-darts starter
def total(players):
    hits = 0
    for player in players:
        hits += int(player.to_host().sync().sum())  # one player after the other
    return hits

# %% id=14-darts solution
def total(players):
    counts = agt.overlap(*[player.to_host() for player in players]).sync()
    return sum(int(count.sum()) for count in counts)

# %% id=14-darts hints
# A `sync` for each player keeps the next one from starting. Make one operation of all of them first.
#
# `agt.zip` would play one after the other on one stream. Which combinator deals them out to several streams?
#
# `agt.overlap(*[player.to_host() for player in players]).sync()` is a tuple of NumPy arrays.

# %% id=14-darts explanation
# The lanes of a warp add up in their registers, the players meet in one `overlap`, and Python adds up the rest after a single wait.

# %% id=14-darts-check
check("14-darts", total)

# %% id=darts-picture
def throw(numbers):
    x = numbers + np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    x ^= x >> np.uint32(16)
    return (x & np.uint32(0xFFFF)) / 2**16, (x >> np.uint32(16)) / 2**16


x, y = throw(np.arange(PLAYERS * PER_PLAYER, dtype=np.uint32))
inside = (x * x + y * y < 1).reshape(PLAYERS, PER_PLAYER)

fig, (board, curves) = plt.subplots(1, 2, figsize=(9.6, 4.2))
for color, shown in (("tab:orange", inside[0, :3000]), ("tab:blue", ~inside[0, :3000])):
    board.scatter(x[:3000][shown], y[:3000][shown], s=3, color=color)
board.set(title="the first 3,000 darts", aspect="equal", xlim=(0, 1), ylim=(0, 1))
thrown = np.arange(1, PER_PLAYER + 1)
plt.sca(curves)
for k in range(PLAYERS):
    plt.plot(thrown[99::50], 4 * (np.cumsum(inside[k]) / thrown)[99::50], linewidth=0.8)
curves.fill_between(
    thrown[99:], np.pi - 3.3 / thrown[99:] ** 0.5, np.pi + 3.3 / thrown[99:] ** 0.5, color="0.9"
)
curves.axhline(np.pi, color="k", linewidth=0.8)
curves.set(xscale="log", ylim=(2.7, 3.6), xlabel="darts", title="eight players, and π")
plt.show()

counts = agt.overlap(*[player(k).to_host() for k in range(PLAYERS)]).sync()
hits = sum(int(count.sum()) for count in counts)
print(f"Eight wiggly curves close in on π. Together: {4 * hits / inside.size:.4f}")

# %% id=darts-check tags=asserts
assert [int(count.sum()) for count in counts] == inside.sum(axis=1).tolist()
assert abs(4 * hits / inside.size - np.pi) < 0.01

# %% [markdown] id=darts-read
# Of twenty such curves, chance keeps about nineteen inside the grey funnel. To make the funnel half as wide you have to throw four times as many darts, so this method wants a machine that throws thousands at once.
#
# And on the clock? We start with a wait for each player:

# %% id=darts-clock
boards = [agt.zeros(THREADS // 32, np.uint32).sync() for _ in range(PLAYERS)]
throws = [
    darts(k * PER_PLAYER, EACH, boards[k].borrow(), grid=2, block=THREADS // 2)
    for k in range(PLAYERS)
]
side_by_side = agt.overlap(*throws).named("all players")


def with_a_wait_each():
    for throw_darts in throws:
        throw_darts.sync_on(stream)


_, one_by_one = recorded(with_a_wait_each)
print(f"a wait for each player: {one_by_one.metrics().makespan:.0f} µs")

# %% id=predict-darts
one_wait = Prediction(
    "And all eight in one `overlap`, with a single wait?",
    eighth="less than a quarter of that: they play side by side",
    half="about half of it",
    most="more than two thirds of it",
)
one_wait

# %% id=commit-darts
one_wait.commit(...)

# %% id=darts-timeline
_, overlapped = recorded(side_by_side.sync_on, stream)
_, as_graph = recorded(side_by_side.graph_on(stream).launch().sync_on, stream)

agt.compare_timelines(
    [one_by_one, overlapped, as_graph],
    ["a wait for each player", "overlap, one wait", "overlap as a graph, one wait"],
    lanes=("host", "streams"),
    lesson="With one wait, calls still come one by one, to four streams. As a graph all throw at once.",
)

# %% id=reveal-darts
left = overlapped.metrics().makespan / one_by_one.metrics().makespan
one_wait.reveal(
    "most" if left > 2 / 3 else "half" if left > 1 / 4 else "eighth",
    f"It takes {overlapped.metrics().makespan:.0f} µs, and {as_graph.metrics().makespan:.0f} as a graph.",
)

# %% [markdown] id=darts-answer
# A single wait saves the seven others, and that's all it saves. The throws are on four streams now, but on the simulated device each is over before Python has launched the next. Only when one call starts them all do they throw at the same time. `overlap` says that they *may*.

# %% id=darts-h200
for name in ("14_darts_one_by_one", "14_darts"):
    h200 = agt.Trace.load_recording(name)
    print(f"{h200.metrics().makespan:5.0f} µs on an H200: {h200.about['shows']}")

# %% id=darts-timeline-check tags=asserts
assert sum(span.kind == "wait" for span in one_by_one) == PLAYERS
assert sum(span.kind == "wait" for span in overlapped) == 1
assert sum(span.kind == "wait" for span in as_graph) == 1
if device.simulated:
    assert left > 2 / 3
    assert overlapped.metrics().max_concurrency == 1
    assert len(overlapped.streams) == 4
    assert as_graph.metrics().max_concurrency == PLAYERS
    assert as_graph.metrics().makespan < 0.2 * overlapped.metrics().makespan
