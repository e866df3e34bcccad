"""Source of notebooks/14_gallery.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # A gallery
#
# A fractal, a page of text, a file of pictures, a network that learns to read digits, and the attention of a language model. If you want to know how long any of them takes, you end up asking the same question: **who waits for whom?**
#
# After this page you can say how long a kernel takes whose threads have unequal work, let a warp agree on who writes where, and let a kernel read its database while it computes. After the second sitting you can also watch and stop a network while a single launch trains it, and correct an answer later.
#
# | | |
# |---|---|
# | Time | an hour, and half an hour for the second sitting, on another day. The encores take an hour more |
# | You need | [07_async_mlp](07_async_mlp.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb), and, for rooms 3 and 4, [13b_await_the_host](13b_await_the_host.ipynb). You don't need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import inspect
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution, solved

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=welcome
# Each room of this gallery has a question at the door, a picture on the wall, and one idea behind it. Run the next cell, and then begin where you like: in the first sitting, no room needs another.
#
# | room | question | idea |
# |---|---|---|
# | 1 | What does a black pixel of the Mandelbrot set cost? | threads with unequal work |
# | 2 | Where in a text is the letter *e*? | a warp votes |
# | 3 | Which picture looks like this one? | read the next piece while you compare this one |
# | 4 | Can you watch a launch learn, and tell it to stop? | a kernel that awaits the host |
# | 5 | What does a word look at? | correct an answer, and go on |
#
# Three rooms make a sitting. The other two, behind the key points, are for another day, and so are two encores: galaxies, and a city.

# %% [markdown] id=recorded-text
# On a real GPU, Python's first calls after a pause are several times slower. So the helper below records the second of two runs.


# %% id=recorded
def recorded(run, *args):
    """What a run returns, and its trace."""
    with agt.record():
        run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def beginning(trace, end):
    """The first part of a trace, without the calls around what the host does for a kernel."""
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


def in_bands(wide, high):
    """A kernel for each band, in which a warp has so many pixels."""
    shape = {"grid": (WIDTH // wide, ROWS // high), "block": (wide, high)}
    sizes = WIDTH, HEIGHT, MOST
    return [mandelbrot(k * ROWS, *sizes, out.borrow(), **shape) for k, out in enumerate(outs)]


# %% id=mandelbrot-picture
agt.overlap(*in_bands(8, 4)).sync()
rounds = np.vstack([agt.d2h(out.borrow()).sync() for out in outs])
black = [int((part == MOST).sum()) for part in np.split(rounds, BANDS)]

plt.figure(figsize=(6.4, 4.8))
black_where_never = plt.get_cmap("magma").with_extremes(bad="k")
plt.imshow(np.log(np.ma.masked_equal(rounds, MOST)), cmap=black_where_never, vmin=-1)
plt.hlines(ROWS * np.arange(1, BANDS) - 0.5, -0.5, WIDTH - 0.5, colors="w", linewidth=0.5)
for k, part in enumerate(black):
    plt.text(WIDTH + 3, (k + 0.5) * ROWS, f"{part:,} black", va="center")
plt.title("Bright: many rounds. Black: never done")
plt.axis("off")
plt.show()
print("The Mandelbrot set, cut into six bands, with the number of black pixels beside each.")


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
def six_bars(wide, high):
    """The trace of six bands at once, each named after its black pixels."""
    named = [band.named(f"{n:,}") for band, n in zip(in_bands(wide, high), black)]
    return recorded(agt.overlap(*named).graph_on(stream).launch().sync_on, stream)[1]


at_once = six_bars(8, 4)
bars = sorted(at_once.find("mandelbrot"), key=lambda span: span.detail["node"])
took = {n: bar.duration for n, bar in zip(black, bars)}
print(f"The band without a black pixel takes {took[0]:.1f} µs,")
print(f"and the one with {max(black):,} of them {took[max(black)]:.1f}.")

# %% id=14-pixel guess within=0.1
# How many µs does the last band take, with a single black pixel?

# %% id=14-pixel reveal
title = "Six bands at once, each with its number of black pixels"
picture = at_once.plot(title=title, lanes=("streams",))
reveal("14-pixel", round(took[1], 1), picture)

# %% id=14-pixel lesson
# The band with 0 black pixels is soon done. The other five take equally long.

# %% id=14-pixel told truth=16.5
# A kernel ends with its slowest thread. One thread that goes through all 600 rounds is enough, and what the other 4,607 do makes no difference.

# %% id=mandelbrot-h200
bars = sorted(span.duration for span in agt.Trace.load_recording("14_mandelbrot").device_spans)
print("the six bars on an H200:", ", ".join(f"{us:.1f}" for us in bars), "µs")

# %% id=mandelbrot-h200-check tags=asserts
assert bars[0] < 0.5 * bars[1]
assert bars[-1] < 1.1 * bars[1]

# %% [markdown] id=mandelbrot-how
# ### Inside a warp
#
# It happens inside a warp, too, where it's called **divergence**. As a rule, its 32 threads go through the loop together, so those that are done wait for the slowest. Neighbours need similar numbers of rounds, and a warp has 8 x 4 of them here. On the right, it has a row of 32:

# %% id=mandelbrot-warps
idle = []
fig, shown = plt.subplots(1, 2, figsize=(11, 3.9), layout="constrained")
for axes, (wide, high) in zip(shown, [(8, 4), (32, 1)]):
    warps = rounds.reshape(HEIGHT // high, high, WIDTH // wide, wide)
    longest = warps.max(axis=(1, 3))
    waits = longest - warps.mean(axis=(1, 3))
    idle.append(waits.sum() / longest.sum())
    extent = (0, WIDTH, HEIGHT, 0)
    drawn = axes.imshow(
        waits, "Reds", vmin=0, vmax=MOST, extent=extent, aspect="equal", interpolation="nearest"
    )
    axes.contour(rounds == MOST, [0.5], colors="k", linewidths=0.6, extent=extent, origin="upper")
    axes.set_title(f"{wide} x {high}: lanes wait for {idle[-1]:.0%} of the rounds")
    axes.axis("off")
fig.colorbar(drawn, ax=shown, label="rounds that a lane waits")
plt.show()
print(
    "Each cell is a warp, and the line is the outline of the set. Lanes wait in the warps that lie"
)
print(
    "across it: a thin string of small cells on the left, and rows as wide as a sixth of the picture"
)
print("on the right.")

# %% id=mandelbrot-rows
durations, by_rows = (
    sorted(span.duration for span in trace.find("mandelbrot"))
    for trace in (at_once, six_bars(32, 1))
)
print(
    f"the longest of the six bars: {durations[-1]:.1f} µs with 8 x 4, {by_rows[-1]:.1f} with 32 x 1"
)

# %% [markdown] id=mandelbrot-rows-read
# More lanes wait, and yet no bar is longer: the slowest warp of each band has as many rounds in either shape. Idle lanes cost time only where others could have used it. (A picture of 4,096 x 4,096 keeps all SMs busy. Its lanes wait for 4% and 7% of the rounds, and an H100 took 838 and 859 µs.)

# %% id=mandelbrot-warps-check tags=asserts
assert [round(100 * share) for share in idle] == [24, 38]
if device.simulated:
    assert durations[0] < 0.5 * durations[1]
    assert durations[-1] < 1.1 * durations[1]
    assert abs(by_rows[-1] / durations[-1] - 1) < 0.02

# %% [markdown] id=grep-door
# ## Room 2: A show of hands
#
# *Where in a text is the letter e?*
#
# Our text is a file of this course, the one that defines its errors. Each character gets a thread, which checks whether it's the one we want. If it is, the thread writes its place into a list, and hundreds of others want to do the same. Who writes where?
#
# A shared counter would do: `slot = atomicAdd(count, 1)`. Here it is at work on a short text, in the second of three steps. (The numbers in an array are indices, not values. In the first step, the arrow to block 0 lies under the one to block 1.)

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
# Ten threads wait at one counter, which serves them one after the other. But three would be enough, one for each warp, because the lanes of a warp can **vote**:
#
# | | what every lane gets |
# |---|---|
# | `votes = __ballot_sync(mask, yes)` | 32 bits, one for each lane: bit 5 is set if lane 5 said yes. Every lane in `mask` that hasn't ended has to call it |
# | `__popc(votes)` | how many bits are set |
# | `__ffs(votes) - 1` | the first lane that said yes |
# | `__shfl_sync(mask, x, lane)` | the `x` of that lane |
# | `(1u << lane) - 1` | a bit for each lane below `lane` |
#
# (The `mask` for all 32 lanes is `0xffffffffu`.) So one lane can ask the counter for as many places as its warp needs, and then they share them out.

# %% id=grep-vote-picture tags=helpers
fig, axes = plt.subplots(figsize=(11, 2.4))
slot = 0
for i, code in enumerate(SHORT):
    warp, lane = divmod(i, 32)
    yes = code == ord("e")
    color = ("tab:orange" if b"e" in SHORT[32 * warp : i] else "tab:red") if yes else "0.95"
    axes.add_patch(plt.Rectangle((lane, warp), 0.95, 0.45, color=color))
    axes.text(lane + 0.47, warp + 0.23, chr(code), ha="center", va="center", family="monospace")
    if yes:
        axes.text(lane + 0.47, warp + 0.62, slot, ha="center", va="center", color="tab:blue")
        slot += 1
for warp in range(3):
    yes = SHORT[32 * warp : 32 * warp + 32].count(b"e")
    axes.text(32.5, warp + 0.23, f"{yes} vote{'s' * (yes > 1)}: one atomic adds {yes}", va="center")
    axes.text(-0.5, warp + 0.23, f"warp {warp}", va="center", ha="right")
axes.set(xlim=(-4, 42), ylim=(2.9, -0.1))
axes.axis("off")
plt.show()
print(
    "The letters, a lane each. Every e votes, the red one asks for its whole warp, and in blue stand"
)
print("the slots, if the warps come in this order.")

# %% id=grep-crowd-check tags=asserts
assert "10 threads use an atomic on count" in watched(CROWD).step(1)

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
# Every lane that's still there has to vote, even one that is past the end of the text. So don't put the ballot inside an `if`.
#
# The lane `__ffs(votes) - 1` adds `__popc(votes)` to the counter. What it gets is the first slot of the warp, and the others learn it by `__shfl_sync`.
#
# How many votes are there below my lane? `(1u << lane) - 1` has a bit for each lane below. So my slot is `slot + __popc(votes & ((1u << lane) - 1))`.

# %% id=14-grep explanation
# Up to 32 atomics have become one. The trick is called *warp-aggregated atomics*.

# %% id=14-grep-check
check("14-grep", GREP)

# %% [markdown] id=grep-yours-text
# How many are at the counter now? (It's your kernel, or ours until yours is accepted.)

# %% id=grep-yours
watched(solved("14-grep", GREP))

# %% id=grep-yours-check tags=asserts
assert "3 threads use an atomic on count" in watched(solved("14-grep")).step(1)

# %% [markdown] id=grep-words-text
# Now for the whole file. We look for every *e* and every *z*, and count how many a warp has.

# %% id=grep-picture
text = agt.pin(np.frombuffer(inspect.getsource(inspect.getmodule(agt.errors.RaceError)).encode(), np.uint8))
grep = agt.Kernel(solved("14-grep", GREP))


def places_of(letter):
    """Where the kernel finds a letter in the text."""
    given = agt.zip(agt.h2d(text), agt.zeros(text.size, np.int32), agt.zeros(1, np.int32))
    found = given.and_then(
        lambda given: grep(
            text.size, given[0], ord(letter), *given[1:], grid=-(-text.size // 256), block=256
        )
    )
    places, count = found.and_then(lambda found: agt.zip(*map(agt.d2h, found[1:]))).sync_on(stream)
    return np.sort(places[: count[0]])


in_warps = {letter: np.bincount(places_of(letter) // 32) for letter in "ez"}
per_warp = np.bincount(in_warps["e"])
fig, (many, shown) = plt.subplots(1, 2, figsize=(9.6, 2.8))
many.bar(range(1, per_warp.size), per_warp[1:])
many.set(xlabel="times that a warp has an e", ylabel="warps", title="most often one to three")
for x, matches in enumerate(in_warps.values()):
    for dx, total in ((-0.2, matches.sum()), (0.2, np.count_nonzero(matches))):
        bar = shown.bar(x + dx, total, width=0.38, color="0.7" if dx < 0 else "tab:orange")
        shown.bar_label(bar, [f"{total:,}"])
shown.set_xticks(
    [-0.2, 0.2, 0.8, 1.2], ["e,\nby match", "e,\nby warp", "z,\nby match", "z,\nby warp"]
)
shown.set(ylabel="atomics", title="atomics, before and after the vote")
shown.margins(y=0.15)
plt.tight_layout()
plt.show()
print("Left: most warps that have an e have one to three. Right: what the vote saves.")

# %% id=grep-check tags=asserts
for letter, matches in in_warps.items():
    stands = np.flatnonzero(text == ord(letter))
    assert places_of(letter).tolist() == stands.tolist()
    assert np.count_nonzero(matches) == len(set(stands // 32))
assert per_warp[1:4].sum() > 0.5 * per_warp[1:].sum()
assert np.count_nonzero(in_warps["e"]) < in_warps["e"].sum() / 2
assert in_warps["z"].max() == 1

# %% [markdown] id=grep-read
# So for *e*, the vote saves more than half of the atomics in the source, and for *z*, which always comes alone, none.
#
# But compilers often do this to a plain `atomicAdd(count, 1)`: in 64 MB of text, an H100 took 1.51 ms with either kernel. You need a vote if a warp's matches have to stay in order, or its lanes agree on more than a sum.

# %% [markdown] id=search-door
# ## Room 3: A file of pictures
#
# *Which picture looks like this one?*
#
# Here's a way to read a digit without learning anything: keep all known pictures, and when a new one comes, look for those most like it. That's a **vector search**. A picture is a vector of 64 numbers here, and two are alike if their distance is small.
#
# Such a database is often far larger than the memory of a GPU, so it stays in a file, and is read piece by piece. Ours has 192 of the digits of chapter 7, and each of them again, moved by a pixel in eight directions. Python reads one when a kernel asks for it, by an `Ask` of [chapter 13b](13b_await_the_host.ipynb).

# %% id=search-file
moves = [(y, x) for y in (0, 1, -1) for x in (0, 1, -1)]
known = ink.reshape(256, 8, 8)[:192]
pieces = np.array([np.roll(known, move, axis=(1, 2)).reshape(192, 64).T for move in moves])
file = Path(tempfile.mkdtemp()) / "pictures"
pieces.tofile(file)
database = np.memmap(file, np.uint8, "r", shape=(9, 64 * 192))
unknown_digits = ink.reshape(256, 64)[192:]


def read(k, disk):
    if disk:
        agt.work(disk, "read")
    return database[k]


# %% [markdown] id=search-compare-text
# A block compares a piece with up to 16 pictures that somebody asks for. Each thread has one picture of the piece.

# %% id=search-compare
COMPARE = r"""
#include "hostcall_async.cuh"
#define SIZE 64     // numbers of a picture
#define PIECE 192   // pictures of a piece, and threads of the block

// How far apart are the pictures of a piece and each of those that somebody has asked for?
__device__ void compare(const char* bytes, int asked, const unsigned char* pictures, int* apart)
{
    __shared__ unsigned char wanted[16 * SIZE];
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
# Who waits for whom in `search`? While Python reads, all threads wait, and while they compare, Python waits. Have it read the next piece meanwhile. There are four packets, so a second question can be under way. (`ask_keeping` only writes a question down. Its first `poll()` sends it.) One piece at least.
#
# For 16 pictures it takes 859 µs in the check. Get below 800. (Ours takes 689 µs. The page's clock, below, stops with the kernel, some 25 µs earlier.)

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
            if (bytes == 0) mine.end();              // it was refused, and still has its packet
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
SEARCH = r"""
extern "C" __global__ void search(
    unsigned long long* mail, unsigned long long* stack, int pieces, int asked,
    const unsigned char* pictures, int* apart)
{
    __shared__ char* bytes;
    Hostcalls host = hostcalls(mail, stack);
    Ask next = ask_keeping(host, 16, 0, 0, 0);
    for (int k = 0; k < pieces; k++) {
        Ask mine = next;
        if (threadIdx.x == 0) {
            block_on(mine);
            bytes = mine.error == 0 ? mine.bytes() : 0;
            if (bytes == 0) {
                mine.end();                          // it was refused, and still has its packet
            } else if (k + 1 < pieces) {
                next = ask_keeping(host, 16, k + 1, 0, 0);
                next.poll();
            }
        }
        __syncthreads();                             // the piece is there
        if (bytes == 0) return;
        compare(bytes, asked, pictures, apart + k * PIECE * asked);
        __syncthreads();                             // everybody has read it
        if (threadIdx.x == 0) mine.end();
    }
}
"""

# %% id=14-search hints
# When is the earliest moment at which thread 0 can ask for piece 1? It's when piece 0 has come, and before anybody compares.
#
# Keep two futures, as in chapter 13b: `mine` is the one you work on, and `next` is the one that's on its way. Ask for the first piece before the loop, and for none behind the last.
#
# When `mine` has come, still in thread 0, make `next = ask_keeping(host, 16, k + 1, 0, 0)` and poll it once, so that it's sent. The two barriers stay: the packet of `mine` belongs to all threads until everybody has read it.

# %% id=14-search explanation
# Can you close the gap between two reads? Ask before you wait for a piece, and it's 666 µs.
#
# One thread asks, and 192 depend on it. That's why a barrier stands on either side: nobody reads before the piece is there, and nobody gives the packet back, to be filled with the next piece, before everybody has read it.

# %% id=14-search-check
check("14-search", SEARCH)

# %% [markdown] id=search-run-text
# Now 16 digits that aren't in the file. What's nearest to each? (`IN_TURN`, folded away, reads and compares in turn, as the starter did.)

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
            if (bytes == 0) mine.end();              // it was refused, and still has its packet
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
async def searched(kernel, asked=16, disk=60):  # 60 µs a piece, as a fast disk may take
    """How far so many digits are from all in the file, and the trace."""
    kernel = agt.Kernel(COMPARE + kernel, "search")
    given, apart = (
        agt.pin(unknown_digits[:asked].ravel()),
        agt.pin(np.zeros((9, asked, 192), np.int32)),
    )

    def answer(call):
        call.data[:] = read(call.a, disk)
        return 0

    async with agt.hostcalls({16: answer}, packets=4, nbytes=64 * 192) as office:
        args = len(database), asked, await agt.h2d(given), agt.mapped(apart)
        with agt.record() as trace:
            await office.run(kernel(*office.arrays, *args, grid=1, block=192))
    return apart.swapaxes(0, 1).reshape(asked, -1), trace


await searched(IN_TURN, 1)  # warm-up
apart, in_turn = await searched(IN_TURN)
nearest = np.argsort(apart, axis=1, kind="stable")[:, :4]
everything = pieces.swapaxes(1, 2).reshape(-1, 8, 8)

label = digits.labels.ravel()
fig, shown = plt.subplots(5, 16, figsize=(13, 4.4))
for q in range(16):
    for row, picture in enumerate([unknown_digits[q].reshape(8, 8), *everything[nearest[q]]]):
        shown[row, q].imshow(picture, cmap="Greys" if row else "Oranges")
        shown[row, q].set(xticks=[], yticks=[])
        wrong = row and label[nearest[q, row - 1] % 192] != label[192 + q]
        shown[row, q].spines[:].set(color="tab:red", linewidth=3, visible=bool(wrong))
plt.show()
print("In orange, 16 digits. Below each, in grey, the four pictures that are most like it.")
print("They show the same digit, but for the one in the red frame: a 5 below an 8.")

# %% id=search-check tags=asserts
wanted = ((everything.reshape(1, -1, 64).astype(int) - unknown_digits[:16, None]) ** 2).sum(2)
assert (apart == wanted).all()
read_as = digits.labels.ravel()[nearest % 192]
right_label = digits.labels.ravel()[192:208]
assert (read_as[:, 0] == right_label).all()
assert [q for q in range(16) if (read_as[q] != right_label[q]).any()] == [12]
assert (right_label[12], sorted(read_as[12].tolist())) == (8, [5, 8, 8, 8])

# %% [markdown] id=search-question
# The nearest picture shows the right digit each time, and nobody has learned anything. Now the clock, with your search or ours:

# %% id=search-ahead
AHEAD = solved("14-search", SEARCH)
await searched(AHEAD, 1)  # warm-up
_, ahead = await searched(AHEAD)
_, fewer = await searched(AHEAD, 8)
for how, trace in (("16 pictures, in turn", in_turn), ("16, ahead", ahead), ("8, ahead", fewer)):
    print(f"{how:>20}: {trace.metrics().makespan:.0f} µs")
(bar,) = ahead.find("search")
compares = (bar.duration - sum(end - start for start, end in bar.waits)) / 9
print(f"Comparing a piece with 16 pictures takes the kernel {compares:.0f} µs.")
print("Comparing half as many gains nothing: it was hidden behind the reading.")

# %% id=14-memory guess within=0.2
# Let the pieces lie in Python's memory already, so that reading one takes 0 µs instead of 60. How many µs does the search for 16 pictures take then, if it reads ahead?

# %% id=14-memory reveal
_, at_hand = await searched(AHEAD, disk=0)
picture = agt.compare_timelines(
    [beginning(trace, 400) for trace in (in_turn, ahead, at_hand)],
    ["in turn", "read ahead", "read ahead, from memory"],
    lanes=("host", "streams"),
)
makespan = at_hand.metrics().makespan
saved = ahead.metrics().makespan - makespan
reveal("14-memory", round(makespan), picture, saved=saved, compares=9 * compares)

# %% id=14-memory lesson
# The first 400 µs of each; a bar is dotted where the kernel only waits. Above, Python pauses while the kernel compares. In the middle it reads the next piece meanwhile, and the kernel waits for it. Below there's nothing to read, so the kernel hardly waits.

# %% id=14-memory told truth=245
# Nine reads of 60 µs are 540, and only {saved:.0f} of these are saved. The reading used to hide the comparing. Now the nine pieces keep the kernel busy for {compares:.0f} µs. The rest is the launch, and the trip for the first piece. **The longer of the two hides the shorter.** So make the longer one faster.

# %% id=search-timeline-check tags=asserts
if device.simulated:
    assert ahead.metrics().makespan < 0.9 * in_turn.metrics().makespan
    assert fewer.metrics().makespan > 0.95 * ahead.metrics().makespan
    assert 300 < saved < 500

# %% [markdown] id=search-read
# ### On a real one
#
# An H200 took 1,130 µs in turn and 885 ahead.
#
# There are two other ways. Read everything first, if the file fits into the GPU's memory. Or let Python copy ahead on a second stream while a kernel compares, as in [chapter 02b](02b_copies_and_chunks.ipynb). Both would do here, since this kernel reads one piece after the other. A kernel that stops at the first hit, or goes where an index sends it, can only ask, because nobody else knows what it will want next.
#
# So that's three rooms: the slowest thread decides for its warp, one thread can speak for 32, and a wait is free behind longer work.

# %% [markdown] id=key-points
# ## Key points
#
# - A kernel ends with its slowest thread, and a warp waits for its slowest lane.
# - `__ballot_sync` tells every lane of a warp how the others have voted, so that one lane can ask for all.
# - If a kernel asks for the next piece before it works on this one, the longer of reading and working hides the shorter.
#
# Below are the second sitting and two encores, for days when you feel like another room. **Next:** in [15_several_gpus](15_several_gpus.ipynb), the GPU gets company.

# %% id=score
score("14")

# %% id=progress
progress("14")

# %% [markdown] id=training-door
# ## Second sitting, room 4: A kernel that reports
#
# *Can you watch a launch learn, and tell it to stop?*
#
# Training is a loop, and after chapter 11 you'd want that loop inside a kernel. But then who watches it, and stops it when the network only learns its examples by heart?
#
# Here a network of a single layer learns to read the digits of chapter 7, in one block. There's a weight for each of 64 pixels and each of ten digits, so 640, and a thread for each weight. It learns from 192 pictures, and 64 are set aside. The arithmetic is folded away: `learn_a_step` scores every picture, works out how wrong the scores are, and corrects all weights.

# %% id=training-step tags=helpers
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
    Ask report = ask(host, 16, 0, 0, 0);             // handler 16, and three numbers; not sent yet
    int step = 0;
    bool sent = false, stop = false;
    unpack(pictures, ink);
    w[threadIdx.x] = 0.0f;
    for (; step < most; step++) {
        learn_a_step(labels, ink, w, share, loss);
        if (threadIdx.x == 0 && step % every == 0) {
            if (sent) {                              // what did Python say?
                block_on(report);
                stop = report.error != 0 || report.answer == 1;
            }
            report = ask(host, 16, step, mean(loss, 0, SEEN), mean(loss, SEEN, ALL));
            report.poll();                           // the first poll sends it; the answer can wait
            sent = true;
        }
        if (__syncthreads_or(stop)) break;           // all hear of it
    }
    if (threadIdx.x == 0) {
        block_on(report);                            // nobody leaves Python in the middle of a report
        *steps = step;
    }
    weights[threadIdx.x] = w[threadIdx.x];
}
""",
    "learn",
)
pictures, labels = (
    agt.h2d(agt.pin(part)).sync().share() for part in (ink, digits.labels.astype(np.int32).ravel())
)


# %% id=training-run
async def trained(every, most=1000, watch=False, draw=60):
    """What Python heard, the weights, the number of steps, and the trace."""
    heard = []

    def listen(call):
        seen, aside = np.array([call.b, call.c], np.uint32).view(np.float32)
        enough = watch and len(heard) > 0 and aside > 0.99 * heard[-1][2]  # it hardly falls
        heard.append((call.a, seen, aside))
        agt.work(draw, "draw")  # a stand-in: a real picture takes much longer
        if watch:
            print(f"{aside:.3f}", end=" ", flush=True)
        return int(enough)

    weights, steps = agt.pin(np.zeros(640, np.float32)), agt.pin(np.zeros(1, np.int32))
    async with agt.hostcalls({16: listen}) as office:
        with agt.record() as trace:
            args = (pictures, labels, most, every, agt.mapped(weights), agt.mapped(steps))
            await office.run(learn(*office.arrays, *args, grid=1, block=640))
    return heard, weights.reshape(10, 8, 8), int(steps[0]), trace


# %% [markdown] id=training-live
# Each number below is printed while the kernel runs. It's the loss of the pictures set aside, and as soon as it falls by less than 1%, Python says stop.

# %% id=training-picture
await trained(10, most=20)  # warm-up
heard, weights, steps, _ = await trained(10, watch=True)
said_stop = heard[-2][0]
print(f"Python said stop at step {said_stop}, and the kernel stopped at step {steps}.")

figure, shown = plt.subplot_mosaic(
    [["c", *"01234"], ["c", *"56789"]], figsize=(11, 4), width_ratios=[5, *[1] * 5]
)
reported, of_seen, of_aside = np.array(heard).T
plt.sca(shown["c"])
plt.semilogy(reported, of_seen, "o-", label="192 to learn from")
plt.semilogy(reported, of_aside, "s--", label="64 set aside")
plt.axvline(said_stop, color="k", linewidth=0.8, label="Python says stop")
plt.axvline(steps, color="k", linewidth=0.8, linestyle=":", label="the kernel stops")
plt.legend()
shown["c"].set(xlabel="step", ylabel="loss", title="what Python heard")
for d in range(10):
    shown[str(d)].imshow(weights[d], cmap="RdBu_r", vmin=-0.15, vmax=0.15)
    shown[str(d)].set_title(d)
    shown[str(d)].axis("off")
figure.text(0.7, 0.03, "red: ink speaks for it   blue: against it", ha="center")
plt.show()
print(
    "Two curves that part: one keeps falling, the other levels off. Beside them, the 64 weights of"
)
print("each digit. The 0 has a blue hole.")

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
    between = every * steps_of[every]
    print(
        f"a report every {every:2} steps: {steps_of[every]:4.1f}, and {between:.0f} from report to report"
    )

agt.compare_timelines(
    traces,
    ["a report at every step", "a report every four steps", "a report every ten steps"],
    lanes=("host", "streams"),
    lesson="The first 450 µs of each; a bar is dotted where the kernel only waits. Four steps fill more of "
    "the bar than one, and yet the drawings follow each other almost as fast. With ten steps the "
    "kernel hardly waits. (On the simulated device, a drawing begins a few µs too early.)",
)

# %% id=14-reports guess within=0.05
# Now Python draws a finer picture, for 120 µs instead of 60, and the kernel reports every *ten* steps. How many µs is it from one report to the next?

# %% id=14-reports reveal
finer, _ = await a_step(10, draw=120)
facts = {"short": steps_of[1], "long": steps_of[1] + 60, "ten": 10 * steps_of[10]}
reveal("14-reports", round(10 * finer), **facts)

# %% id=14-reports told truth=147
# A report takes longer than Python draws: there's the way there and back, and thread 0 adds up 256 losses on its own. With 60 µs of drawing that made {short:.0f} from one to the next, so with 120 it's about {long:.0f}, and the kernel's ten steps need {ten:.0f}. The longer of the two counts.

# %% id=reports-check tags=asserts
if device.simulated:
    assert 4 * alone < 60 < 10 * alone
    assert steps_of[10] < 1.1 * alone
    assert 4 * steps_of[4] < 1.1 * steps_of[1]
    assert 80 < steps_of[1] < 90
    assert 1.07 * 10 * steps_of[10] < 10 * finer < 1.05 * (steps_of[1] + 60)

# %% [markdown] id=attention-door
# ## Second sitting, room 5: What a word looks at
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
    """What a kernel makes of a head: the table, if the kernel writes one, and the mix."""
    words = len(q)
    q, k, v = (agt.h2d(agt.pin(part.astype(np.float32).ravel())) for part in (q, k, v))
    sizes = [words * words, words * 24] if tabled else [words * 24]
    op = agt.zip(q, k, v, *map(agt.zeros, sizes)).and_then(
        lambda given: kernel(words, *given, grid=-(-words // 32), block=32)
    )
    got = op.and_then(lambda given: agt.zip(*map(agt.d2h, given[3:]))).sync()
    return [part.reshape(words, -1) for part in got]


made = [head(attention, *qk, vectors, tabled=True) for qk in heads.values()]

# %% id=attention-picture
fig, shown = plt.subplots(1, 4, figsize=(13, 4), sharey=True, layout="constrained")
for axes, name, (share, _) in zip(shown, heads, made):
    drawn = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_title(name)
    axes.set_xticks(range(n), TEXT, rotation=90, fontsize=7)
    axes.set_yticks(range(n), TEXT, fontsize=7)
fig.colorbar(drawn, ax=shown, label="share", shrink=0.8)
plt.show()
print("Four triangles. A row is a word, and its dark cells are the words that it looks at:")
print(
    "a line below the diagonal; dots where a word comes again; columns at the nouns (until the first"
)
print(
    "one comes, a word looks at all alike); a haze that's even in each row, and paler further down."
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

# %% id=14-mix starter
FLASH = r"""
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

# %% id=14-mix solution
FLASH = r"""
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
            float score = 0.0f;
            for (int c = 0; c < SIZE; c++) score += mine[c] * keys[j * SIZE + c];
            float before = most;
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
"""

# %% id=14-mix hints
# A new largest score changes the measure. By which factor is `expf(x - before)` larger than `expf(x - most)`, whatever `x` is?
#
# So all that was added up has to be multiplied by `expf(before - most)`, where `before` is what `most` was before this word. If `most` stays, that's 1.
#
# Two things were added up: `sum`, and each of the numbers in `mix`. The new word is measured by the new `most` already, so it's added *after* the correction.

# %% id=14-mix explanation
# The division at the end makes the measure cancel, as long as the sum and the mix have the same one. The first word comes out right, too: `expf(-1e30f - score)` is 0, and so are the sums that it multiplies.

# %% id=14-mix-check
check("14-mix", FLASH)

# %% [markdown] id=mix-text
# The table is gone. Let the microscope count the bytes that the threads ask the memory for, with a text of 256 words.

# %% id=attention-bytes
flash = agt.Kernel(solved("14-mix", FLASH), "flash")
long_text, longer_text = (rng.standard_normal((3, words, 24)) / 4 for words in (256, 512))


def bytes_of(kernel, text):
    """How many bytes the threads of a head ask for."""
    with agt.using("sim"), agt.microscope() as scope:
        head(kernel, *text, kernel is attention)
    (seen,) = (
        kernel.launches[0] for kernel in scope.kernels if kernel.name in ("attention", "flash")
    )
    return seen.counts.load_bytes + seen.counts.store_bytes


by_table, in_one_go = bytes_of(attention, long_text), bytes_of(flash, long_text)
_, both_ways = recorded(lambda: (head(attention, *long_text, True), head(flash, *long_text, False)))
slow, fast = (both_ways.find(name)[-1].duration for name in ("attention", "flash"))
own = 2 * 4 * 24 * 256
print(f"attention: {by_table:10,} bytes, {slow:.0f} µs")
print(
    f"flash:     {in_one_go:10,} bytes, {fast:.0f} µs; {own:,} of these bytes are for q and for the mix"
)
print("So many bytes the threads ask for. The tiles save a factor of 32 or a little less. The rest")
print("is q again with each k, the share again with each number of v, and the table.")

# %% id=heads-before
of_longer = bytes_of(flash, longer_text)
print(f"{by_table / in_one_go:.0f} times fewer bytes, and hardly any faster.")
print(f"With 512 words, `flash` asks for {of_longer / in_one_go:.1f} times as many bytes.")

# %% id=14-heads guess within=0.15
# Look at that text, which is twice as long: four times as many pairs of words look at each other. How many µs does `flash` take now?

# %% id=14-heads reveal
_, longer = recorded(
    lambda: (head(attention, *longer_text, True), head(flash, *longer_text, False))
)
slow_longer, fast_longer = (longer.find(name)[-1].duration for name in ("attention", "flash"))
reveal("14-heads", round(fast_longer), was=slow, now=slow_longer)

# %% id=14-heads told truth=484
# A kernel ends with its slowest thread. That's the one of the last word, which looks at twice as many words now. The other words have threads of their own, and there's room for all. It's the same in `attention`, which takes {now:.0f} µs instead of {was:.0f}.

# %% id=attention-timeline-check tags=asserts
for qk, (_, mix) in zip(heads.values(), made):
    (without_table,) = head(flash, *qk, vectors, tabled=False)
    assert np.allclose(without_table, mix, atol=1e-5)
assert 40 < by_table / in_one_go < 60
assert 3 < of_longer / in_one_go < 4
if device.simulated:
    assert 1 < slow / fast < 1.5
    assert 1.9 < fast_longer / fast < 2.1
    assert 1.9 < slow_longer / slow < 2.1

# %% [markdown] id=attention-read
# ### Many heads
#
# A single short head leaves the memory idle. But with 32 heads of 4,096 words each, an H200 took 104 ms with the table and 7.8 without: 13 times as fast. The running correction is called *online softmax* (Milakov and Gimelshein, 2018). With tiles that stay on the chip it's the heart of **flash attention** (Dao and others, 2022).
#
# ### Key points of the second sitting
#
# - A kernel that stays can report while it works. If it sends the question early and reads the answer late, it loses little time.
# - An answer that can be corrected later needn't wait: one pass is enough, and no table.

# %% id=score-second
score("14")

# %% [markdown] id=galaxies-door
# ## Encore: two galaxies
#
# *What happens when two galaxies meet?*
#
# Each star pulls at every other. With $n$ stars that's $n^2$ pulls for each small step in time, and a hundred steps make a film. A thread moves a star, and its block fetches the others in tiles of 64, as in chapter 7, so that they read together. A step reads one pair of arrays and writes another, so every second step brings us back to the first pair.

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
    recent = film[max(frame - 8, 0) : frame + 1]
    for galaxy, color in zip(np.split(np.arange(STARS), 2), ("tab:blue", "tab:orange")):
        x, y = recent[:, galaxy].transpose(2, 0, 1)
        plt.plot(x, y, color=color, alpha=0.35, linewidth=0.8)
        axes.scatter(x[-1], y[-1], s=3, color=color)
    axes.set(xlim=(-2.9, 2.9), ylim=(-2.8, 3.0), aspect="equal", title=f"after {2 * frame} steps")
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
print(f"the same, with describing and capturing them first: {ten_anew.metrics().makespan:.0f} µs")
print(f"five launches of four steps, described first too: {five_anew.metrics().makespan:.0f} µs")

# %% id=14-whole guess within=0.1
# Five launches are still five calls. So put all twenty steps into one graph, and launch it once. How many µs does that take, with describing and capturing it?

# %% id=14-whole reveal
_, one_anew = recorded(from_scratch, 10, 1)
picture = agt.compare_timelines(
    [called, ten_anew, one_anew],
    ["twenty calls", "a graph of two, ten times", "a graph of twenty, once"],
    lanes=("host", "streams"),
)
twenty = agt.zip(*[there, back] * 10).graph_on(stream).launch()
_, one = recorded(by_graph, twenty, 1)
more = five_anew.metrics().makespan - ten_anew.metrics().makespan
facts = {"more": more, "again": one.metrics().makespan, "ten": ten.metrics().makespan}
reveal("14-whole", round(one_anew.metrics().makespan), picture, **facts)

# %% id=14-whole lesson
# Above, gaps between the steps. In the middle, two steps are described, and then they come without a gap. Below, the device waits until Python has described all twenty.

# %% id=14-whole told truth=494
# Each two steps more take Python {more:.0f} µs to describe and capture, and meanwhile the device waits. That's worse than twenty plain calls. And launching such a graph again takes {again:.0f} µs, where ten launches of two took {ten:.0f}. So **capture enough that the device has work for as long as the next launch takes, and no more.**

# %% id=galaxies-h200
for name in ("14_galaxies_by_calls", "14_galaxies"):
    h200 = agt.Trace.load_recording(name)
    busy = h200.metrics().device_active / h200.metrics().makespan
    print(
        f"{h200.metrics().makespan:5.0f} µs on an H200, busy for {busy:.0%}: {h200.about['shows']}"
    )

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
# `fly` gets this kernel as `step`, and the arrays `at` and `speed`, with two numbers for each star. Return, as a NumPy array of `2 * n` numbers, where the stars are after this many steps. There are at most 64 stars. The number of steps may be odd or large, and there's at least one. You may overwrite `at` and `speed`, and you may write a kernel of your own.
#
# The version below gets it right, and for 64 stars and 40 steps it takes 1273 µs: get below 200. (The course's own answer takes 79 µs, and you can beat it.) The steps themselves take about 340, so taking Python out of the way isn't enough. Copies and allocations in `fly` count, but compiling your kernel doesn't.


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
part.plot(
    title=f"{'All' if few else 'A part'} of the {flight.metrics().makespan:.0f} µs of forty steps",
    lanes=("host", "streams"),
    lesson="How much of the time belongs to the bars of the streams, and how much to the gaps between them?",
)

# %% [markdown] id=walk-door
# ## Encore: a walk through a city
#
# *How far is it from the first house to each of the others?*
#
# The usual answer goes in rounds. In round 1 you stand in front of the neighbours, in round 2 in front of *their* neighbours, and so on. The houses that a round reaches are its **frontier**. Here are two cities: a street with a few short cuts, and a town where anybody may know anybody.


# %% id=walk-cities
def city(pairs, n):
    """Where each house's neighbours begin in the list of all neighbours, and that list."""
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    return np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int32), pairs[:, 1].astype(
        np.int32
    )


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
            op = op.and_then(
                lambda moved, given=given: one_round(*given, moved, grid=-(-n // 256), block=256)
            ).last()
            round += 1
        moved = op.to_host().sync_on(stream)
    return agt.d2h(away).sync_on(stream)


cities = {"the street": street, "the town": town}
walks_by_round = {name: recorded(by_rounds, where) for name, where in cities.items()}
for name, (away, trace) in walks_by_round.items():
    wide = np.bincount(away).max()
    print(
        f"{name}: {away.max()} rounds, at most {wide} houses in one, {trace.metrics().makespan:.0f} µs"
    )
print("(In each, one more round finds that nobody is left.)")

# %% id=walk-map tags=helpers
fig, shown = plt.subplots(2, 2, figsize=(9.6, 7), height_ratios=[2.4, 1], layout="constrained")
row, column = np.divmod(np.arange(256), 16)
snake = np.stack([np.where(row % 2, 15 - column, column), -row], axis=1)
away = walks_by_round["the town"][0]
angle = 2 * np.pi * np.random.default_rng(1).random(away.size)
rings = (away + 0.25 * np.random.default_rng(2).random(away.size) * (away > 0))[:, None]
rings = rings * np.stack([np.cos(angle), np.sin(angle)], axis=1)
for (axes, fronts), (name, where), at in zip(shown.T, cities.items(), (snake, rings)):
    away, from_house = walks_by_round[name][0], np.repeat(np.arange(len(at)), np.diff(where[0]))
    small = len(at) < 300
    middle = (at[from_house] + at[where[1]]) / 2
    middle[:, 1] += 0.4 * small * (np.abs(where[1] - from_house) == 2)  # a short cut is bent
    ways = np.stack([at[from_house], middle, at[where[1]]])
    plt.sca(axes)
    look = {"linewidth": 0.8} if small else {"linewidth": 0.3, "alpha": 0.05}
    plt.plot(*ways.transpose(2, 0, 1), color="0.5", zorder=0, **look)
    plt.scatter(*at.T, c=away, cmap="viridis", s=22 if small else 6)
    ticks = None if small else range(away.max() + 1)
    plt.colorbar(label="steps from the first house (red)", shrink=0.7, ticks=ticks)
    plt.plot(*at[0], "o", color="tab:red", markersize=8)
    axes.set(title=name, aspect="equal")
    axes.axis("off")
    fronts.stairs(np.bincount(away), np.arange(away.max() + 2) - 0.5, fill=True)
    fronts.set(xlabel="round", ylabel="houses in the frontier")
    fronts.yaxis.get_major_locator().set_params(integer=True)
    fronts.xaxis.get_major_locator().set_params(integer=True)
plt.show()
print(
    "The street winds from the red house to the far end, and its frontier is one or two houses wide."
)
print(
    "In the town, all houses lie in a few rings around the red one, most of them in a single ring."
)

# %% id=walk-before
_, walked = walks_by_round["the street"]
calls = [span.duration for span in walked if span.name == "launch one_round"]
print(f"In the street, Python makes {len(calls)} launches, of {np.mean(calls):.0f} µs each.")
print(f"With an answer after every launch, that's {walked.metrics().makespan:,.0f} µs.")

# %% id=14-tenth guess within=0.2
# Now let it ask after every *tenth* round only. How many µs does the street take?

# %% id=14-tenth reveal
away, asked_seldom = recorded(by_rounds, street, 10)
assert (away == walks_by_round["the street"][0]).all()
launches = len(asked_seldom.find("one_round"))
facts = {"launches": launches, "us": launches * np.mean(calls), "questions": launches // 10}
reveal("14-tenth", round(asked_seldom.metrics().makespan), **facts)

# %% id=14-tenth told truth=4278
# The questions are a tenth, but there are {launches} launches now, which take Python {us:,.0f} µs. (They're more than before, because it learns only after ten idle rounds that it's over.) The {questions} questions take the rest.

# %% [markdown] id=walk-queue-text
# ### A queue
#
# A launch for two houses is a waste, with a question or without. So keep a **queue** of houses in the GPU's memory, and one kernel. Its blocks take a house and look at its neighbours, and put a neighbour into the queue if this way to it is shorter than any before. It's the queue of chapter 11, but now those who take from it fill it as well. And there are no rounds any more, so a block may come to a house by a longer way first. Then the distance is corrected later, as in room 5, and the house goes into the queue once more.
#
# Whoever finds the queue empty has a problem. Somebody else may still be at work, and may put something in. **How do you know that nothing will come any more?**

# %% id=walk-kernel
GIVEN = r"""
struct Queue {
    volatile int* items;   // -1 where nobody has put anything yet
    unsigned int* head;    // slots that were taken
    unsigned int* tail;    // slots that were given out to put something in
    unsigned int* open;    // items that were put, and are not done
};
"""
WALK = r"""
extern "C" __global__ void walk(
    const int* begin, const int* neighbours, int* away, int* items, unsigned int* counts)
{
    __shared__ int house;
    Queue queue = {items, counts, counts + 1, counts + 2};
    while (true) {
        if (threadIdx.x == 0) house = take(queue);
        __syncthreads();
        int here = house;
        if (here < 0) break;
        int next = atomicAdd(&away[here], 0) + 1;
        for (int k = begin[here] + threadIdx.x; k < begin[here + 1]; k += blockDim.x) {
            if (atomicMin(&away[neighbours[k]], next) > next) put(queue, neighbours[k]);
        }
        __syncthreads();                               // everybody has put what there was to put
        if (threadIdx.x == 0) done(queue);
    }
}
"""

# %% [markdown] id=exercise-queue
# ### Exercise: will anything come?
#
# `put` gives an item the next slot, and `take` gets the next slot to take from. The version below leaves as soon as that slot is empty. Make it leave only if nothing can come any more. You may use `open` for that, which starts at 1 because the first house is in the queue already, and `done`, which is called when an item is done, and everything that it led to is in the queue.

# %% id=14-queue starter
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    unsigned int slot = atomicAdd(queue.tail, 1);
    __threadfence();                               // what the item needs comes before the item
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1);
    while (queue.items[slot] < 0) {
        return -1;                                 // nothing there, so it's over. Or is it?
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
}
"""

# %% id=14-queue solution
QUEUE = r"""
__device__ void put(Queue queue, int item)
{
    atomicAdd(queue.open, 1);
    unsigned int slot = atomicAdd(queue.tail, 1);
    __threadfence();                               // what the item needs comes before the item
    queue.items[slot] = item;
}

__device__ int take(Queue queue)
{
    unsigned int slot = atomicAdd(queue.head, 1), looks = 0;
    while (queue.items[slot] < 0) {
        if (atomicAdd(queue.open, 0) == 0) return -1;
        if (++looks > 10000000) __trap();          // as every wait of a kernel, this one ends
        __nanosleep(100);
    }
    __threadfence();
    return queue.items[slot];
}

__device__ void done(Queue queue)
{
    atomicSub(queue.open, 1);
}
"""

# %% id=14-queue hints
# Something can come as long as some item isn't done: either it's still in the queue, or somebody is at work on it and may put more. So count the items that are open.
#
# `put` counts one more in `open`, and `done` one less. In `take`, while the slot is empty, look at `open`. If it's 0, return -1. Otherwise `__nanosleep(100)`, and look again.
#
# When does `put` have to count? Before anybody can see the item. Otherwise it might be taken and done before it was counted, and `open` would be 0 although its parent is still at work.

# %% id=14-queue explanation
# `open` comes to 0 only when the last item is done and has put nothing, and from then on nobody is left who could put anything. An empty queue proves nothing, and neither does a block that has waited for long. (With thousands of blocks, each gets a queue of its own, and *steals* from another when it's empty. Knowing when all are done is the same puzzle.)

# %% id=14-queue-check
check("14-queue", QUEUE)

# %% id=walk-timeline
walk = agt.Kernel(GIVEN + solved("14-queue", QUEUE) + WALK, "walk")


def by_queue(where, blocks=4):
    items = np.full(4 * where[0].size, -1, np.int32)
    items[0] = 0
    counts = np.array([0, 1, 1], np.uint32)
    parts = (*where, unknown(where), items, counts)
    op = agt.zip(*[agt.h2d(agt.pin(part)) for part in parts]).and_then(
        lambda given: walk(*given, grid=blocks, block=32)
    )
    return op.and_then(lambda given: agt.zip(agt.d2h(given[2]), agt.d2h(given[4]))).sync_on(stream)


away, by_blocks = recorded(by_queue, street)
assert (away[0] == walks_by_round["the street"][0]).all()
print(f"the street, by queue: {by_blocks.metrics().makespan:.0f} µs, for {away[1][1]} items")
begun = min(span.start for span in walked)
meanwhile = len(walked.between(begun, begun + by_blocks.metrics().makespan).find("one_round"))

agt.compare_timelines(
    [
        beginning(trace.from_first(), 700)
        for trace in (walked, asked_seldom, by_blocks, walks_by_round["the town"][1])
    ],
    [
        "the street, by rounds",
        "the street, asking after every tenth",
        "the street, by queue",
        "the town, by rounds",
    ],
    lanes=("streams",),
    lesson=f"The first 700 µs. In the street, the queue is done when {meanwhile} of over two hundred rounds "
    "are. In the town, five rounds are all there is.",
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

# %% id=score-encores
score("14")

# %% id=progress-encores
progress("14")
