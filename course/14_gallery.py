"""Source of notebooks/14_gallery.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # A gallery
#
# A fractal, a line of text and a file of pictures. If you want to know how long any of them takes, you end up asking the same question: **who waits for whom?**
#
# After this page you can say how long a kernel takes whose threads have unequal work, let a warp agree on who writes where, and let a kernel read its database while it computes.
#
# | | |
# |---|---|
# | Time | 55 minutes, and 45 for the encore, on another day |
# | You need | [07_async_mlp](07_async_mlp.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb), and, for room 3, [13b_await_the_host](13b_await_the_host.ipynb). You don't need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=welcome
# Each room of this gallery has a question at the door, a picture on the wall, and one idea behind it. Run the next cell, and then begin where you like, because no room needs another.
#
# | room | question | idea |
# |---|---|---|
# | 1 | What does a black pixel of the Mandelbrot set cost? | threads with unequal work |
# | 2 | Where in a text is the letter *e*? | a warp votes |
# | 3 | Which picture looks like this one? | read the next piece while you compare this one |
#
# Behind the key points is an encore, in which two galaxies meet. There are [more rooms](14b_more_rooms.ipynb) next door: a network that learns, and the attention of a language model.

# %% [markdown] id=recorded-text
# On a real GPU, Python's first calls after a pause are several times slower. So the helper below records the second of two runs.


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


digits = agt.data.load_digits()
ink = (16 * digits.batches).astype(np.uint8).ravel()  # 256 pictures of 8 x 8

# %% [markdown] id=mandelbrot-door
# ## Room 1: The price of a pixel
#
# *What does a black pixel of the Mandelbrot set cost?*
#
# Take a point $c$ of the plane, start at $z = 0$, and repeat $z \to z^2 + c$. From most points you fly off to infinity within a few rounds. From some you never do, and these, in black, are the set. Each pixel is a thread that counts rounds until its $z$ is farther than 2 from the origin, or until it loses patience after 600.

# %% id=mandelbrot-kernel
mandelbrot = agt.Kernel(r"""
extern "C" __global__ void mandelbrot(
    int first, int width, int height, int most, int* rounds)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
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


def in_bands(most):
    """A kernel for each band, in which a warp has 8 x 4 pixels."""
    shape = {"grid": (WIDTH // 8, ROWS // 4), "block": (8, 4)}
    return [
        mandelbrot(k * ROWS, WIDTH, HEIGHT, most, out.borrow(), **shape)
        for k, out in enumerate(outs)
    ]


# %% id=mandelbrot-picture
agt.overlap(*in_bands(MOST)).sync()
rounds = np.vstack([agt.d2h(out.borrow()).sync() for out in outs])
black = [int((part == MOST).sum()) for part in np.split(rounds, BANDS)]

figure, axes = plt.subplots(figsize=(6.4, 4.8))
black_where_never = plt.get_cmap("magma").with_extremes(bad="k")
heights = np.log(np.ma.masked_equal(rounds, MOST))
axes.imshow(heights, cmap=black_where_never, vmin=-1)
borders = ROWS * np.arange(1, BANDS) - 0.5
axes.hlines(borders, -0.5, WIDTH - 0.5, colors="w", linewidth=0.5)
for k, part in enumerate(black):
    axes.text(WIDTH + 3, (k + 0.5) * ROWS, f"{part:,} black", va="center")
axes.set_title("Bright: many rounds. Black: never done")
axes.axis("off")
told = ", ".join(f"{part:,}" for part in black)
alt = "The Mandelbrot set in six bands. Their black pixels, from above"
shown(figure, f"{alt}: {told}.")


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
# Each of the six bands has 4,608 pixels and is a kernel of its own. Now a graph launches them all at once. Together they have 864 blocks of 32 threads, and an H200 has places for 4,224, so nobody waits for one.


# %% id=six-bars
def six_bars(most):
    """The trace of six bands at once, with a lane for each, and their times."""
    launch = agt.overlap(*in_bands(most)).graph_on(stream).launch()
    _, trace = recorded(launch.sync_on, stream)
    bars = sorted(trace.find("mandelbrot"), key=lambda span: span.detail["node"])
    for n, bar in zip(black, bars):
        told = f"{bar.duration:.1f} µs"
        trace = trace.with_lane(f"{n:,} black", [(bar.start, bar.end, told)])
    return trace, {n: bar.duration for n, bar in zip(black, bars)}


_, took = six_bars(MOST)
print(f"The band without a black pixel takes {took[0]:.1f} µs,")
print(f"and the one with {max(black):,} of them takes {took[max(black)]:.1f} µs.")

# %% id=14-pixel guess within=0.1
# Now we double the patience, so black pixels go through 1,200 rounds. How many µs does the last band take then, with its single black pixel?

# %% id=14-pixel reveal
patient, longer = six_bars(2 * MOST)
picture = patient.plot(title="Six bands at once, with 1,200 rounds for black pixels", lanes=())
reveal("14-pixel", round(longer[1], 1), picture, once=took[1], first=took[1] - took[0])

# %% id=14-pixel lesson
# The band with 0 black pixels is soon done. The other five take equally long.

# %% id=14-pixel told truth=31.6
# **A kernel ends with its slowest thread.** With 600 rounds this band took {once:.1f} µs, as long as the one with 1,768 black pixels. So the first black pixel costs its band {first:.0f} µs more, and the others cost nothing. (That's so as long as nobody waits for a place, or for a turn.)

# %% id=mandelbrot-h200
h200 = agt.Trace.load_recording("14_mandelbrot")
bars = sorted(span.duration for span in h200.device_spans)
print("six bars on an H200, 600 rounds:", ", ".join(f"{us:.1f}" for us in bars), "µs")

# %% id=mandelbrot-h200-check tags=asserts
assert bars[0] < 0.5 * bars[1]
assert bars[-1] < 1.1 * bars[1]

# %% [markdown] id=mandelbrot-how
# ### Inside a warp
#
# It happens inside a warp, too, where it's called **divergence**. As a rule, its 32 threads go through the loop together, so those that are done wait for the slowest. Neighbours need similar numbers of rounds, so our warps have 8 x 4 of them. On the right, a warp has a row of 32:

# %% id=mandelbrot-warps tags=helpers
idle = []
figure, row = plt.subplots(1, 2, figsize=(11, 3.9), layout="constrained")
for axes, (wide, high) in zip(row, [(8, 4), (32, 1)]):
    warps = rounds.reshape(HEIGHT // high, high, WIDTH // wide, wide)
    longest = warps.max(axis=(1, 3))
    waits = longest - warps.mean(axis=(1, 3))
    idle.append(waits.sum() / longest.sum())
    extent = (0, WIDTH, HEIGHT, 0)
    look = {"vmin": 0, "vmax": MOST, "aspect": "equal", "interpolation": "nearest"}
    drawn = axes.imshow(waits, "Reds", extent=extent, **look)
    line = {"colors": "k", "linewidths": 0.6, "origin": "upper"}
    axes.contour(rounds == MOST, [0.5], extent=extent, **line)
    axes.set_title(f"{wide} x {high}: lanes wait for {idle[-1]:.0%} of the rounds")
    axes.axis("off")
figure.colorbar(drawn, ax=row, label="rounds that a lane waits")
shown(
    figure,
    "Lanes wait in the warps that lie across the outline of the set: a thin string of small cells on the "
    "left, and on the right rows as wide as a sixth of the picture.",
    "Each cell is a warp, and the line is the outline of the set.",
)

# %% [markdown] id=mandelbrot-rows-text
# Does that cost anything? Let's take a third shape, in which the 32 pixels of a warp come from all over a row, and a picture with four times as many pixels:

# %% id=mandelbrot-rows
one_row = "blockIdx.x * blockDim.x + threadIdx.x"
strewn = mandelbrot.source.replace(one_row, "threadIdx.x * gridDim.x + blockIdx.x")


def whole_us(kernel, wide, high, times):
    """How long it takes to draw a picture that is so many times as wide and as high."""
    width, height = times * WIDTH, times * HEIGHT
    out = agt.zeros((height, width), np.int32).sync()
    shape = {"grid": (width // wide, height // high), "block": (wide, high)}
    op = kernel(0, width, height, MOST, out.borrow(), **shape)
    return recorded(op.sync_on, stream)[1].find("mandelbrot")[0].duration


shapes = {"8 x 4": (mandelbrot, 8, 4), "32 x 1": (mandelbrot, 32, 1)}
shapes["strewn over a row"] = (agt.Kernel(strewn), 32, 1)
costs = {name: [whole_us(*shape, n) for n in (1, 2)] for name, shape in shapes.items()}
print("a warp's pixels     192 x 144   384 x 288")
for name, (small, large) in costs.items():
    print(f"{name:20}{small:6.1f} µs   {large:6.1f} µs")

# %% [markdown] id=mandelbrot-rows-read
# In the small picture, the shape makes no difference. An SM has 6 or 7 warps there, and in any shape its slowest has 600 rounds. In the large one an SM has 26, which take turns. If their pixels are strewn, lanes wait for 74% of the rounds, and a warp whose lanes mostly wait takes its turns all the same. So **idle lanes cost time where other warps could have used it**. An H200 took 17.9, 20.0 and 26.1 µs for the large picture, and for one of 4,096 x 3,072 pixels 630, 645 and 1,896: three times as long.

# %% id=mandelbrot-warps-check tags=asserts
assert [round(100 * share) for share in idle] == [24, 38]
large = agt.zeros((2 * HEIGHT, 2 * WIDTH), np.int32).sync()
mandelbrot(0, 2 * WIDTH, 2 * HEIGHT, MOST, large.borrow(), grid=(48, 72), block=(8, 4)).sync()
in_warps = agt.d2h(large.borrow()).sync().reshape(2 * HEIGHT, 32, 2 * WIDTH // 32)
assert round(100 * (1 - in_warps.mean() / in_warps.max(axis=1).mean())) == 74
if device.simulated:
    assert longer[0] < 0.2 * longer[1]
    assert max(longer.values()) < 1.02 * min(us for n, us in longer.items() if n)
    assert abs(took[1] / took[max(black)] - 1) < 0.01
    (small, large), (row, row_large), (far, far_large) = costs.values()
    assert max(row, far) < 1.02 * small
    assert row_large < 1.02 * large < far_large / 1.2

# %% [markdown] id=grep-door
# ## Room 2: A show of hands
#
# *Where in a text is the letter e?*
#
# Each character of a text gets a thread, which checks whether it's the letter we want. If it is, the thread writes its place into a list, and in a long text thousands of others want to do the same. Who writes where?
#
# A shared counter would do: `slot = atomicAdd(count, 1)`. Here it is at work on a short text:

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

# %% id=grep-draw tags=helpers
def at_the_counter(source):
    """Which threads use an atomic, when they look for every e in blocks of one warp."""
    text = np.frombuffer(SHORT, np.uint8)
    arrays = text, ord("e"), np.zeros(16, np.int32), np.zeros(1, np.int32)
    seen = agt.show_threads(agt.Kernel(source), text.size, *arrays, grid=3, block=32)
    return {int(thread) for step in seen.steps if step.atomic for thread in step.threads}


def found_places(source):
    """The places in the order of their slots."""
    text = agt.h2d(agt.pin(np.frombuffer(SHORT, np.uint8)))
    arrays = text, ord("e"), agt.zeros(16, np.int32), agt.zeros(1, np.int32)
    op = agt.Kernel(source)(len(SHORT), *arrays, grid=3, block=32)
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)[: SHORT.count(b"e")].tolist()


def draw_grep(source, lesson):
    """Draw the text, who asks the counter, and what the kernel leaves in its two arrays."""
    asking, places = at_the_counter(source), found_places(source)
    figure, axes = plt.subplots(figsize=(11, 3.2))
    middle, told = {"ha": "center", "va": "center"}, []
    for i, code in enumerate(SHORT):
        warp, lane = divmod(i, 32)
        color = "tab:red" if i in asking else "tab:orange" if i in places else "0.95"
        axes.add_patch(plt.Rectangle((lane, warp), 0.95, 0.45, color=color))
        axes.text(lane + 0.47, warp + 0.23, chr(code), family="monospace", **middle)
        if i in places:
            axes.text(lane + 0.47, warp + 0.62, places.index(i), color="tab:blue", **middle)
    for warp in range(3):
        asks, matches = (sum(i // 32 == warp for i in found) for found in (asking, places))
        words = f"{asks} atomic{'s' * (asks > 1)} for {matches} slot{'s' * (matches > 1)}"
        axes.text(32.5, warp + 0.23, words, va="center")
        axes.text(-0.5, warp + 0.23, f"warp {warp}", va="center", ha="right")
        told.append(f"warp {warp} has {words}")
    for slot, place in enumerate(places):
        axes.add_patch(plt.Rectangle((2 * slot, 3.3), 1.9, 0.45, fc="w", ec="0.4"))
        axes.text(2 * slot + 0.95, 3.53, place, **middle)
        axes.text(2 * slot + 0.95, 3.92, slot, color="tab:blue", **middle)
    axes.text(-0.5, 3.53, "places", va="center", ha="right")
    axes.text(32.5, 3.53, f"count = {len(places)}", va="center")
    axes.set(xlim=(-4, 42), ylim=(4.2, -0.1))
    axes.axis("off")
    shown(figure, f"A text, 32 letters a row. Of its e, {', '.join(told)}. places: {places}.", lesson)


# %% id=grep-crowd-picture
draw_grep(
    CROWD,
    "The letters, a thread each, in three warps. Every e, in red, asks the counter, "
    "and in blue is the slot that it gets. Below is what the kernel leaves.",
)

# %% [markdown] id=grep-vote
# Ten threads ask one counter, which serves them in any order. (The simulated device has them come in the order of their numbers. Don't rely on it.) If the places of a warp have to stay in order, or its lanes have to agree on something else, let them **vote**:
#
# | | what every lane gets |
# |---|---|
# | `votes = __ballot_sync(mask, yes)` | 32 bits, one for each lane: bit 5 is set if lane 5 said yes. Every lane in `mask` that hasn't ended has to call it |
# | `__popc(votes)` | how many bits are set |
# | `__ffs(votes) - 1` | the first lane that said yes |
# | `__shfl_sync(mask, x, lane)` | the `x` of that lane |
# | `(1u << lane) - 1` | a bit for each lane below `lane` |
#
# (The `mask` for all 32 lanes is `0xffffffffu`.) So one lane can ask the counter for as many places as its warp needs, and then they share them out, in order. (That it asks once is no gain: where a source says `atomicAdd(count, 1)`, compilers often see to that themselves. In 64 MB of text, an H100 took 1.51 ms in either way.)

# %% id=grep-vote-picture
draw_grep(
    solved("14-grep"),
    "Every e votes, but only the red ones ask, each for all of its warp. The orange "
    "ones count the votes below their own, and so find their slots.",
)

# %% id=grep-crowd-check tags=asserts
assert len(at_the_counter(CROWD)) == 10
assert sorted(found_places(CROWD)) == [i for i, code in enumerate(SHORT) if code == ord("e")]

# %% [markdown] id=exercise-grep
# ### Exercise: one atomic for a warp
#
# The version below asks the counter once for each match. Change it, so that the first lane with a match asks for its whole warp, and each match takes a slot of its own. The matches of a warp have to stay in order.

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
# Every lane that's still there has to vote, even one that is past the end of the text. So don't put the ballot inside an `if`.
#
# The lane `__ffs(votes) - 1` adds `__popc(votes)` to the counter. What it gets is the first slot of the warp, and the others learn it by `__shfl_sync`.
#
# How many votes are there below my lane? `(1u << lane) - 1` has a bit for each lane below. So my slot is `slot + __popc(votes & ((1u << lane) - 1))`.

# %% id=14-grep explanation
# Up to 32 atomics have become one, and a match's rank in the vote keeps the order. The trick is called *warp-aggregated atomics*.

# %% id=14-grep-check
check("14-grep", GREP)

# %% id=grep-yours
yours = solved("14-grep", GREP)  # or ours, until yours is accepted
print("threads at the counter:", *[len(at_the_counter(it)) for it in (CROWD, yours)])

# %% id=grep-yours-check tags=asserts
assert len(at_the_counter(yours)) == 3

# %% [markdown] id=grep-read
# Within a warp, the places are in order now. Between warps they still come as they come, since three of them share a counter. If you need the whole list in order, you have half of it: the vote gives each match its rank in its warp. For the other half, let each warp first write how many it has, and add these up from the first to the last. Then each warp knows where its slots begin, and nobody needs a counter. This is called **stream compaction**, and filters and sorts are made of it.

# %% [markdown] id=search-door
# ## Room 3: A file of pictures
#
# *Which picture looks like this one?*
#
# Here's a way to read a digit without learning anything: keep all known pictures, and when a new one comes, look for those most like it. That's a **vector search**. A picture is a vector of 64 numbers here, and two are alike if their distance is small.
#
# Such a database is often far larger than the memory of a GPU, so it stays in a file, and is read piece by piece. Ours has 192 of the digits of chapter 7, and each of them again, moved by a pixel in eight directions. Python reads one when a kernel asks for it, by an `Ask` of [chapter 13b](13b_await_the_host.ipynb). (So small a file lies in memory, so `read` works as long as a fast disk would need, on a GPU as well.)

# %% id=search-file
moves = [(y, x) for y in (0, 1, -1) for x in (0, 1, -1)]
known = ink.reshape(256, 8, 8)[:192]
moved = [np.roll(known, move, axis=(1, 2)) for move in moves]
pieces = np.array([part.reshape(192, 64).T for part in moved])
file = Path(tempfile.mkdtemp()) / "pictures"
pieces.tofile(file)
database = np.memmap(file, np.uint8, "r", shape=(9, 64 * 192))
unknown_digits = ink.reshape(256, 64)[192:]


def read(k, us):
    if us:
        agt.work(us, "read")
    return database[k]


# %% [markdown] id=search-compare-text
# A block compares a piece with up to 64 pictures that somebody asks for. Each thread has one picture of the piece.

# %% id=search-compare
COMPARE = r"""
#include "hostcall_async.cuh"
#define SIZE 64     // numbers of a picture
#define PIECE 192   // pictures of a piece, and threads of the block

// How far is each picture of a piece from each of those that somebody asks for?
__device__ void compare(
    const char* bytes, int asked, const unsigned char* pictures, int* apart)
{
    __shared__ unsigned char wanted[64 * SIZE];
    int mine[SIZE];
    for (int c = threadIdx.x; c < asked * SIZE; c += PIECE) wanted[c] = pictures[c];
    __syncthreads();
    for (int c = 0; c < SIZE; c++) mine[c] = bytes[c * PIECE + threadIdx.x];
    for (int q = 0; q < asked; q++) {
        int sum = 0;
        for (int c = 0; c < SIZE; c++) {
            int d = mine[c] - wanted[q * SIZE + c];
            sum += d * d;
        }
        apart[q * PIECE + threadIdx.x] = sum;
    }
}
"""

# %% [markdown] id=exercise-search
# ### Exercise: read while you compare
#
# Who waits for whom in `search`? While Python reads, all threads wait, and while they compare, Python waits. Have it read the next piece meanwhile. There are four packets, so a second question can be under way. (`ask_keeping` only writes a question down, and you may copy that. Its first `poll()` sends it. Only thread 0 polls.) `pieces` is at least 1.
#
# For 64 pictures it takes 886 µs in the check. Get below 800. (Ours takes 702 µs. The page's clock, below, stops with the kernel, some 25 µs earlier.)

# %% id=14-search starter
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < pieces; k++) {
        Ask mine = ask_keeping(host, 16, k, 0, 0);
        if (threadIdx.x == 0) {
            block_on(mine);
            bytes = mine.error == 0 ? mine.bytes() : 0;
            if (bytes == 0) mine.end();              // refused, but has its packet
        }
        __syncthreads();                             // the piece is there
        if (bytes == 0) return;
        compare(bytes, asked, pictures, apart + k * PIECE * asked);
        __syncthreads();                             // everybody has read it
        if (threadIdx.x == 0) mine.end();
    }
}
"""

# %% id=14-search solution
#   Hostcalls host = hostcalls(mail, stack);
# + Ask next = ask_keeping(host, 16, 0, 0, 0);
# - Ask mine = ask_keeping(host, 16, k, 0, 0);
# + Ask mine = next;
# - if (bytes == 0) mine.end();              // refused, but has its packet
# + if (bytes == 0) {
# +     mine.end();                          // refused, but has its packet
# + } else if (k + 1 < pieces) {
# +     next = ask_keeping(host, 16, k + 1, 0, 0);
# +     next.poll();
# + }

# %% id=14-search hints
# When is the earliest moment at which thread 0 can ask for piece 1? It's when piece 0 has come, and before anybody compares.
#
# Keep two futures, as in chapter 13b: `mine` is the one you work on, and `next` is the one that's on its way. Ask for the first piece before the loop, and for none behind the last.
#
# When `mine` has come, still in thread 0, make `next = ask_keeping(host, 16, k + 1, 0, 0)` and poll it once, so that it's sent. The two barriers stay: the packet of `mine` belongs to all threads until everybody has read it.

# %% id=14-search explanation
# Can you close the gap between two reads? Ask before you wait for a piece, and it's 671 µs.
#
# One thread asks, and 192 depend on it. That's why a barrier stands on either side: nobody reads before the piece is there, and nobody gives the packet back, to be filled with the next piece, before everybody has read it.

# %% id=14-search-check
check("14-search", SEARCH)

# %% [markdown] id=search-run-text
# Now the other 64 digits, which aren't in the file. What's nearest to each of them? (`IN_TURN`, folded away, reads and compares in turn, as the starter did.)

# %% id=search-in-turn tags=helpers
IN_TURN = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    for (int k = 0; k < pieces; k++) {
        Ask mine = ask_keeping(host, 16, k, 0, 0);
        if (threadIdx.x == 0) {
            block_on(mine);
            bytes = mine.error == 0 ? mine.bytes() : 0;
            if (bytes == 0) mine.end();              // refused, but has its packet
        }
        __syncthreads();                             // the piece is there
        if (bytes == 0) return;
        compare(bytes, asked, pictures, apart + k * PIECE * asked);
        __syncthreads();                             // everybody has read it
        if (threadIdx.x == 0) mine.end();
    }
}
"""


# %% id=search-picture
async def searched(kernel, asked=64, read_us=60):
    """How far so many digits are from all in the file, and the trace."""
    kernel = agt.Kernel(COMPARE + kernel, "search")
    given = agt.pin(unknown_digits[:asked].ravel())
    apart = agt.pin(np.zeros((9, asked, 192), np.int32))

    def answer(call):
        call.data[:] = read(call.a, read_us)
        return 0

    async with agt.hostcalls({16: answer}, packets=4, nbytes=64 * 192) as office:
        args = len(database), asked, await agt.h2d(given), agt.mapped(apart)
        with agt.record() as trace:
            await office.run(kernel(*office.arrays, *args, grid=1, block=192))
    return apart.swapaxes(0, 1).reshape(asked, -1), trace


await searched(IN_TURN, 1)  # warm-up
apart, in_turn = await searched(IN_TURN)
nearest = np.argsort(apart, axis=1, kind="stable")[:, :3]
everything = pieces.swapaxes(1, 2).reshape(-1, 8, 8)

# %% id=search-nearest tags=helpers
label = digits.labels.ravel()
read_as, right_label = label[nearest % 192], label[192:]
(failed,) = np.flatnonzero(read_as[:, 0] != right_label)
figure, places = plt.subplots(4, 13, figsize=(13, 4.2))
for column, q in zip(places.T, [*range(12), failed]):
    for row, picture in enumerate([unknown_digits[q].reshape(8, 8), *everything[nearest[q]]]):
        column[row].imshow(picture, cmap="Greys" if row else "Oranges")
        column[row].set(xticks=[], yticks=[])
        wrong = q == failed and row == 1
        column[row].spines[:].set(color="tab:red", linewidth=3, visible=wrong)
    column[0].set_title(f"a {right_label[q]}")
    column[1].set_title(f"read as {read_as[q, 0]}", color="tab:red" if q == failed else "k", fontsize=9)
shown(
    figure,
    "Thirteen columns of four digits. In each they look alike. The last has a 5 on top, and a 6 "
    "below it, in a red frame.",
    "In orange, the first twelve digits, and on the right the one that fails. Below each, in grey, "
    "the three pictures most like it, the nearest first.",
)

# %% id=search-check tags=asserts
wanted = ((everything.reshape(1, -1, 64).astype(int) - unknown_digits[:, None]) ** 2).sum(2)
assert (apart == wanted).all()
assert (read_as[:, 0] == right_label).sum() == 63
assert (read_as[:12] == right_label[:12, None]).all()
assert (right_label[failed], read_as[failed].tolist()) == (5, [6, 5, 5])

# %% [markdown] id=search-question
# For 63 of the 64 the nearest picture shows the right digit, and nobody has learned anything. Now the clock, with your search or ours:

# %% id=search-ahead
AHEAD = solved("14-search", SEARCH)
await searched(AHEAD, 1)  # warm-up
_, ahead = await searched(AHEAD)
runs = {"64 pictures, in turn": in_turn, "64 pictures, ahead": ahead}
for how, trace in runs.items():
    print(f"{how}: {trace.metrics().makespan:.0f} µs")

# %% id=14-memory guess within=0.2
# Let the pieces lie in Python's memory already, so that reading one takes 0 µs instead of 60. How many µs does the search for 64 pictures take then, if it reads ahead?

# %% id=14-memory reveal
_, at_hand = await searched(AHEAD, read_us=0)
picture = agt.compare_timelines(
    [beginning(trace, 400) for trace in (in_turn, ahead, at_hand)],
    ["in turn, its first 400 µs", "ahead, its first 400 µs", "ahead, from memory, all of it"],
    lanes=("host", "streams"),
)
makespan = at_hand.metrics().makespan
saved = ahead.metrics().makespan - makespan
(bar,) = ahead.find("search")
compares = bar.duration - sum(end - start for start, end in bar.waits)
reveal("14-memory", round(makespan), picture, saved=saved, compares=compares)

# %% id=14-memory lesson
# A bar is dotted where the kernel only waits. Above, Python pauses while the kernel compares. In the middle it reads the next piece meanwhile, and the kernel waits for it. Below there's nothing to read, so the kernel hardly waits.

# %% id=14-memory told truth=257
# Nine reads of 60 µs are 540, and it's {saved:.0f} µs less now. The reading used to hide the comparing. Now the nine pieces keep the kernel busy for {compares:.0f} µs. The rest is the launch, and the trip for the first piece. **The longer of the two hides the shorter.** So make the longer one faster. (On an H200 it's 506 µs instead of 1,086.)

# %% id=search-timeline-check tags=asserts
if device.simulated:
    _, few = await searched(IN_TURN, 16)
    _, few_ahead = await searched(AHEAD, 16)
    whole = [round(each.metrics().makespan) for each in (in_turn, few, ahead, few_ahead)]
    assert whole[:2] == [861, 705]
    assert AHEAD is SEARCH or whole[2:] == [677, 657]
    assert whole[2] < 0.9 * whole[0]
    assert 300 < saved < 500

# %% [markdown] id=search-read
# ### On a real one
#
# This search has a single block, on one of 132 SMs, so that you can see it. Here's how long it takes there (medians of seven runs), beside our model with our `SEARCH`:
#
# | | in our model | on an H200 |
# |---|---|---|
# | 64 pictures, in turn | 861 µs | 1,314 µs |
# | 64 pictures, ahead | 677 µs | 1,086 µs |
# | 16 pictures, in turn | 705 µs | 1,040 µs |
# | 16 pictures, ahead | 657 µs | 990 µs |
#
# With 16 pictures there's little to compare, so there's little to hide. For a piece and 64 pictures the H200's threads take some 35 µs by its own clock, where ours take 25, and 3 of these fetch it over the bus, for which our model takes next to nothing. The trip and Python's answer take some 30 µs there, and 8 in the model. With the read's 60 that's 9 times 125, or 1,125 µs in turn. We don't know where the other 190 go.
#
# There are two other ways. Read everything first, if the file fits into the GPU's memory. Or let Python copy ahead on a second stream while a kernel compares, as in [chapter 02b](02b_copies_and_chunks.ipynb). Both would do here, since this kernel reads one piece after the other. A kernel that goes where an index sends it is another matter: nobody else knows what it will want next, so it asks, or ends and is launched again.
#
# So that's three rooms: the slowest thread decides for its warp, one thread can speak for 32, and a wait is free behind longer work.

# %% [markdown] id=key-points
# ## Key points
#
# - A kernel ends with its slowest thread. A warp waits for its slowest lane, which costs time if other warps could have used it.
# - `__ballot_sync` tells every lane of a warp how the others have voted, so that one lane can ask for all, and everybody knows their rank.
# - If a kernel asks for the next piece before it works on this one, the longer of reading and working hides the shorter.
#
# Below is the encore. **Next:** there are [more rooms](14b_more_rooms.ipynb) for a day when you feel like it, and in [15_several_gpus](15_several_gpus.ipynb) the GPU gets company.

# %% id=score
score("14")

# %% id=progress
progress("14")

# %% [markdown] id=galaxies-door
# ## Encore: two galaxies
#
# *What happens when two galaxies meet?*
#
# Each star pulls at every other. With $n$ stars that's $n^2$ pulls for each small step in time, and a hundred steps make a film. A thread moves a star, and its block fetches the others in tiles of 64, as in [02c](02c_tiles.ipynb), so that they read together. A step reads one pair of arrays and writes another, so every second step brings us back to the first pair.

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
    float u = speed[2 * i] + 0.06f * pull_x / n;
    float v = speed[2 * i + 1] + 0.06f * pull_y / n;
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
figure, row = plt.subplots(1, 4, figsize=(13, 3.6))
for axes, frame in zip(row, (0, 15, 30, 50)):
    recent = film[max(frame - 8, 0) : frame + 1]
    for galaxy, color in zip(np.split(np.arange(STARS), 2), ("tab:blue", "tab:orange")):
        x, y = recent[:, galaxy].transpose(2, 0, 1)
        axes.plot(x, y, color=color, alpha=0.35, linewidth=0.8)
        axes.scatter(x[-1], y[-1], s=3, color=color)
    axes.set(xlim=(-2.9, 2.9), ylim=(-2.8, 3.0), aspect="equal")
    axes.set_title(f"after {2 * frame} steps")
    axes.axis("off")
shown(
    figure,
    "A blue and an orange disc meet, whirl through each other, and part with long, "
    "torn arms.",
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

# %% [markdown] id=galaxies-graph-text
# That film took a hundred calls, and after every second one Python waited. Let's look at twenty steps. Two of them, there and back, begin and end with the same pair of arrays, so they can be captured as a graph and launched again and again.

# %% id=galaxies-launches
two = agt.zip(there, back).named("two steps").graph_on(stream).launch()


def by_calls():
    for _ in range(10):
        there.async_on(stream)
        back.async_on(stream)
    stream.synchronize()


def by_graph(launch, times):
    for _ in range(times):
        launch.async_on(stream)
    stream.synchronize()


_, called = recorded(by_calls)
_, ten = recorded(by_graph, two, 10)
print(f"twenty calls: {called.metrics().makespan:.0f} µs")
print(f"ten launches of two steps: {ten.metrics().makespan:.0f} µs")


def from_scratch(times, launches):
    """Describe so many times two steps, capture them, and launch the graph."""
    by_graph(agt.zip(*[there, back] * times).graph_on(stream).launch(), launches)


_, ten_anew = recorded(from_scratch, 1, 10)
_, five_anew = recorded(from_scratch, 2, 5)
print(f"with describing and capturing them first: {ten_anew.metrics().makespan:.0f} µs")
print(f"and five launches of four steps: {five_anew.metrics().makespan:.0f} µs")

# %% id=14-whole guess within=0.1
# Ten launches are still ten calls. So put all twenty steps into one graph, and launch it once. How many µs does that take, with describing and capturing it?

# %% id=14-whole reveal
_, one_anew = recorded(from_scratch, 10, 1)
picture = agt.compare_timelines(
    [called, ten_anew, one_anew],
    ["twenty calls", "a graph of two, ten times", "a graph of twenty, once"],
    lanes=("host", "streams"),
)
twenty = agt.zip(*[there, back] * 10).graph_on(stream).launch()
_, one = recorded(by_graph, twenty, 1)
more = (one_anew.metrics().makespan - ten_anew.metrics().makespan) / 9
facts = {"more": more, "again": one.metrics().makespan, "ten": ten.metrics().makespan}
reveal("14-whole", round(one_anew.metrics().makespan), picture, **facts)

# %% id=14-whole lesson
# Above, gaps between the steps. In the middle, two steps are described, and then they come without a gap. Below, the device waits until Python has described all twenty.

# %% id=14-whole told truth=494
# Each two steps more take Python {more:.0f} µs to describe and capture, and meanwhile the device waits. That's worse than twenty plain calls. And launching such a graph again takes {again:.0f} µs, where ten launches of two took {ten:.0f}. So for a graph that's used once, **capture enough that the device has work for as long as the next launch takes, and no more.** (An H200, with nobody recording, took 337 µs for ten launches of two steps, 388 for five of four, and 919 for one of twenty, each with describing and capturing. Twenty calls took 339.)

# %% id=galaxies-h200
for name in ("14_galaxies_by_calls", "14_galaxies"):
    h200 = agt.Trace.load_recording(name)
    busy = h200.metrics().device_active / h200.metrics().makespan
    said = f"{h200.metrics().makespan:5.0f} µs on an H200, busy for {busy:.0%}"
    print(f"{said}: {h200.about['shows']}")

# %% id=galaxies-timeline-check tags=asserts
if device.simulated:
    assert abs(one.metrics().makespan / ten.metrics().makespan - 1) < 0.1
    assert ten.metrics().makespan < 0.8 * called.metrics().makespan < one_anew.metrics().makespan
    assert ten.metrics().device_active > 0.9 * ten.metrics().makespan

# %% [markdown] id=galaxies-read
# The H200 above finished two steps before the next launch came, so there a graph of four would still gain, if it's launched often.

# %% [markdown] id=challenge
# ### The challenge: forty steps
#
# Now you, with a score. The kernel below moves all stars of a small galaxy by one step, without tiles.

# %% id=challenge-kernel
fall = agt.Kernel(r"""
extern "C" __global__ void fall(
    unsigned int n, const float* at, const float* speed,
    float* at_next, float* speed_next)
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
# `fly` gets this kernel as `step`, and the arrays `at` and `speed`, with two numbers for each star. Return, as a NumPy array of `2 * n` numbers, where the stars are after this many steps. There are at most 64 stars. The number of steps may be odd or large, and there's at least one. You may overwrite `at` and `speed`, and you may write a kernel of your own.
#
# The version below gets it right, and for 64 stars and 40 steps it takes 1273 µs: get below 200. (The course's own answer takes 79 µs, and you can beat it.) The steps themselves take about 340, so taking Python out of the way isn't enough. Copies and allocations in `fly` count, but compiling your kernel doesn't.


# %% id=14-challenge starter
def fly(step, at, speed, steps):
    n = at.size // 2
    at_next, speed_next = agt.zeros(2 * n).sync(), agt.zeros(2 * n).sync()
    for _ in range(steps):
        arrays = [x.borrow() for x in (at, speed, at_next, speed_next)]
        step(n, *arrays, grid=-(-n // 64), block=64).sync()
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
# Run the next picture with the starter, and look at the gaps between the bars. They're Python's: it describes forty launches, and waits after each.
#
# `async_on` takes the waits away, but the descriptions remain. A graph of all forty steps has to be described as well, and is used only once. A graph of two steps, launched twenty times, is what the last picture has shown, and it's still not enough.
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
given = [agt.h2d(agt.pin(part[:64].ravel())).sync() for part in two_galaxies(STARS)]
with agt.record() as flight:
    landed = fly(fall, *given, 40)

steps_taken = flight.device_spans
few = len(steps_taken) < 30
part = flight if few else flight.between(steps_taken[-8].start, steps_taken[-4].end)
share = "All" if few else "A part"
part.plot(
    title=f"{share} of the {flight.metrics().makespan:.0f} µs of forty steps",
    lanes=("host", "streams"),
    lesson="How much of the time belongs to the bars, and how much to the gaps between "
    "them? (Each sync takes the next of four streams.)",
)

# %% id=score-encores
score("14")

# %% id=progress-encores
progress("14")
