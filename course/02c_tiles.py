"""Source of notebooks/02c_tiles.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Threads that share
#
# Sixteen flatmates want porridge, and all sixteen drive to the same market for the same milk. In chapter 01 such manners did no harm, because each thread wanted numbers of its own. But most kernels that matter read the same numbers many times over, and then one trip could serve the whole flat.
#
# **How much faster is a kernel that drives to memory sixteen times less often?**
#
# After this page you can write a kernel whose threads share what they read, put barriers where they belong, and count what a kernel asks of memory.
#
# | | |
# |---|---|
# | Time | 60 minutes, half of them for the second exercise |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb). The page doesn't use streams, so you may read it before [02](02_streams_and_events.ipynb), or when you write your first large kernel |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)

device = agt.use("auto")
device

# %% [markdown] id=everybody
# ## Everybody reads everything
#
# Let's begin with the flat as it is: every thread fetches all the numbers, each for itself. Once that works, we'll let them share.

# %% [markdown] id=exercise-softmax
# ### Exercise: softmax
#
# A network that tells ten digits apart ends in **softmax**, which turns numbers into probabilities: they're positive and add up to 1. In NumPy it's `np.exp(x) / np.exp(x).sum()`. Each output needs *all* the inputs. Write the kernel, with one thread for each output, and let each of them read everything.
#
# Watch out for large numbers, because `expf(100.0f)` overflows, and for small ones, because `expf(-200.0f)` is 0, and so is a sum of such numbers. (`fmaxf(a, b)` is the larger of two numbers.)

# %% id=02c-softmax starter
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""")

# %% id=02c-softmax solution
softmax = agt.Kernel(r"""
extern "C" __global__ void softmax(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float top = x[0];
        for (unsigned int j = 1; j < n; j++) {
            top = fmaxf(top, x[j]);
        }
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += expf(x[j] - top);
        }
        y[i] = expf(x[i] - top) / sum;
    }
}
""")

# %% id=02c-softmax hints
# Each thread computes one output, but it needs *all* the inputs. So there are two loops, one for the largest input and one for the sum.
#
# `expf(100.0f)` is too large for a `float`. Subtract the largest input from each one first. That doesn't change the result, because the numerator and the denominator shrink alike.
#
# `float top = x[0];`, a loop with `top = fmaxf(top, x[j]);`, a loop with `sum += expf(x[j] - top);`, and `y[i] = expf(x[i] - top) / sum;`

# %% id=02c-softmax explanation
# Once you've subtracted the largest input, the largest power is exp(0) = 1, and nothing can overflow. In the course's answer every thread runs the same two loops.

# %% id=02c-softmax-check
check("02c-softmax", softmax)

# %% [markdown] id=sharing-text
# ## One trip for all
#
# Now let's share, for up to 256 small numbers, so that one block will do and nothing overflows. The threads of a block have a small, fast memory in common: an array that you declare as `__shared__` exists once for each block. Each thread fetches *one* number into it. At the **barrier**, `__syncthreads()`, it waits until all the others have done so too, and then it can read everybody's:

# %% id=sharing
SHARING = r"""
extern "C" __global__ void sharing(unsigned int n, const float* x, float* y)
{
    __shared__ float all[256];
    unsigned int i = threadIdx.x;
    all[i] = i < n ? expf(x[i]) : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (unsigned int j = 0; j < 256; j++) {
        sum += all[j];
    }
    if (i < n) {
        y[i] = all[i] / sum;
    }
}
"""
x = np.linspace(-1, 1, 200, dtype=np.float32)


def share(source):
    with agt.using("sim"):
        y = agt.zeros(200).partition(256)
        op = agt.Kernel(source)(200, agt.h2d(agt.pin(x), "x"), y)
        return op.output().to_host().sync()


shared_out = share(SHARING)
np.allclose(shared_out, np.exp(x) / np.exp(x).sum())

# %% [markdown] id=sharing-read
# Nobody fetches a number twice, and each `expf` is computed once. But where people share, they can let each other down. Here are three ways, for a block of 256 threads and 200 numbers:

# %% id=mistakes
BARRIER, FETCH = "    __syncthreads();\n", "    all[i] = i"
mistakes = {
    "gone": SHARING.replace(BARRIER, ""),
    "branch": SHARING.replace(BARRIER, "    if (i < n) { __syncthreads(); }\n"),
    "early": SHARING.replace(FETCH, "    if (i >= n) { return; }\n" + FETCH),
}

# %% id=02c-hangs guess
# Each of them is wrong. But with which one may a GPU hang?
#
# - `gone`: the one without a barrier
# - `branch`: the one whose barrier is in a branch
# - `early`: the one that returns early

# %% id=02c-hangs reveal
faults = {}
for name, source in mistakes.items():
    try:
        share(source)
    except agt.errors.KernelFault as fault:
        faults[name] = fault


def said():
    for name, fault in faults.items():
        print(f"{name}: {fault}\n")


hangs = [name for name, fault in faults.items() if isinstance(fault, agt.errors.BarrierError)]
reveal("02c-hangs", " ".join(hangs), said)

# %% id=02c-hangs told truth=branch
# You wait for a flatmate who's in the shower, but not for one who has moved out. In `branch`, 56 threads go around the barrier although they still live here. CUDA forbids that, and promises nothing about what comes of it. Often they soon move out, and the barrier opens. But with another barrier behind the branch, people wait at two different doors, and nobody comes. In `early` the 56 have moved out, and a barrier doesn't count threads that have ended. The trouble is what they should have brought, because nobody has filled their places in `all`, and what lies there was left by somebody else. And in `gone`, a thread may add up what others haven't fetched yet. In these two cases a GPU gives you a wrong sum, perhaps only sometimes, and no message.

# %% id=sharing-check tags=asserts
assert np.allclose(shared_out, np.exp(x) / np.exp(x).sum())
kinds = {"gone": "RaceError", "branch": "BarrierError", "early": "UninitialisedReadError"}
assert {name: type(fault).__name__ for name, fault in faults.items()} == kinds

# %% [markdown] id=naive
# ## A product, naively
#
# The classic is **GEMM**, a *general matrix multiply*: `c = alpha * a @ b + beta * c`. This one comes with the package:

# %% id=naive-source
print(agt.sgemm_naive.source)

# %% [markdown] id=naive-text
# One thread computes one element of `c`, and reads a row of `a` and a column of `b` for it.
#
# How much it asks of memory, the **microscope** counts. It looks at the simulated device, even if you have a GPU. A **warp** is a group of 32 threads of a block that usually run in step (you can't rely on it), and when they read, they ask **global memory**, the device's main memory, once for all 32.


# %% id=look
def look_at(kernel, launch, n=64):
    with agt.using("sim"), agt.microscope() as seen:
        a, b, c = (
            agt.ones((n, n)),
            agt.ones((n, n)),
            agt.zeros((n, n)).partition(16, 16),
        )
        launch(a, b, c).sync()
    return seen[kernel.name]


def naive(n=64):
    return look_at(
        agt.sgemm_naive, lambda a, b, c: agt.sgemm_naive(n, n, n, 1, a, b, 0, c), n
    )

# %% id=02c-asks guess within=0.1
# With matrices of 64 x 64, `c` has 4,096 elements, so 128 warps are at work. How often do they ask global memory for numbers, all together?

# %% id=02c-asks reveal
before = naive()
asked = before.counts.global_load_requests
facts = {"needed": before.bytes_needed, "moved": before.bytes_moved}
reveal("02c-asks", asked, **facts)

# %% id=02c-asks told truth=16512
# Each warp asks for 64 numbers of `a`, 64 of `b` and one of `c`: 129 times, and there are 128 warps.
#
# How many bytes is that? Memory hands out **sectors**, which are pieces of 32 bytes, and threads that want the same sector get it once for all of them. In a block of 16 x 16 threads, `x` runs fastest, so a warp's 32 threads are two rows of 16. So each time, it gets two sectors of `a`, one for each row, or two of `b`, for 16 numbers in a row. And it reads and writes four sectors of `c`. That makes 264 sectors a warp, or {moved:,} bytes. But `a`, `b`, and `c` read and written, are only {needed:,} bytes. Everything else is asked for more than once.

# %% [markdown] id=tiles-idea
# ## Tiles
#
# Each number of `b` is needed for a whole column of `c`, and each warp that computes a part of that column fetches it for itself. So let's share again. A large matrix doesn't fit into shared memory, but a piece of it does. A block of 16 x 16 threads computes 16 x 16 elements of `c`, in steps. In each step,
#
# 1. it fetches a **tile** of `a` and a tile of `b`, 16 x 16 numbers each;
# 2. it waits at a barrier until all its threads have done so;
# 3. each thread adds up 16 products, and finds all it needs in the two tiles;
# 4. it waits again, so that nobody overwrites a tile that somebody else still reads.

# %% id=tiles-drawn tags=helpers
import matplotlib.pyplot as plt

from asyncgpu_course import shown


def draw_tiles(x=10, y=5, t=16):
    """A product of 32 x 48 and 48 x 32: step `t` of block (1, 1), and what its thread (x, y) does."""
    figure, axes = plt.subplots(figsize=(7.4, 7))
    row, col, blue, green, amber = 16 + y, 16 + x, "#9ad5f7", "#6fd3b0", "#f0b840"
    right = down = 62  # where `c` begins: `a` is to the left of it, and `b` is above

    def box(left, top, wide, tall, colour, **look):
        axes.add_patch(plt.Rectangle((left, top), wide, tall, fc=colour, **{"ec": "0.3", **look}))

    def measure(start, end, word, aside):
        """An arrow from start to end, and its word beside it."""
        axes.annotate("", end, start, arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
        middle = (start[0] + end[0]) / 2 + aside[0], (start[1] + end[1]) / 2 + aside[1]
        axes.text(*middle, word, ha="center", va="center", family="monospace", fontsize=11)

    for left, top, wide, tall in ((0, down, 48, 32), (right, 0, 32, 48), (right, down, 32, 32)):
        box(left, top, wide, tall, "0.95")
    for step in (0, 16, 32):
        box(step, down + 16, 16, 16, blue if step == t else "none", ls="-" if step == t else ":")
        box(right + 16, step, 16, 16, green if step == t else "none", ls="-" if step == t else ":")
        axes.text(step, down - 2.5, f"t={step}", ha="center", family="monospace", fontsize=9)
        axes.text(right + 33, step, f"t={step}", va="center", family="monospace", fontsize=9)
    box(right + 16, down + 16, 16, 16, amber)
    box(t, down + row, 16, 1, "#2b7bba", ec="none")  # what it multiplies
    box(right + col, t, 1, 16, "#1f8a66", ec="none")
    for left, top in ((t + x, down + row), (right + col, t + y), (right + col, down + row)):
        box(left - 0.4, top - 0.4, 1.8, 1.8, "#d55e00", ec="k", zorder=3)  # a bit larger than life
    measure((-3, down), (-3, down + row + 0.5), "row", (-4, 0))
    measure((right, -3), (right + col + 0.5, -3), "col", (0, -2.5))
    for left, top in ((t, down + 16), (right + 16, t), (right + 16, down + 16)):
        measure((left, top + 13), (left + x + 0.5, top + 13), "x", (-2.5, -1.8))
        measure((left + 12.6, top), (left + 12.6, top + y + 0.5), "y", (1.8, 0))
    measure((t, down + 34.5), (t + 16, down + 34.5), "16", (0, 2.5))
    measure((right + 13.5, t), (right + 13.5, t + 16), "16", (-3.5, 0))
    measure((right + 16, down + 34.5), (right + 32, down + 34.5), "16", (0, 2.5))
    for left, top, name in ((4, down + 6, "a"), (right + 4, 6, "b"), (right + 4, down + 6, "c")):
        axes.text(left, top, name, ha="center", va="center", fontsize=16)
    axes.set(xlim=(-10, 102), ylim=(101, -8), aspect="equal")
    axes.axis("off")
    shown(
        figure,
        "Matrix a with three tiles side by side, b with three tiles one above the other, and c below b. "
        "The second tile of each is filled: it begins at t = 16. One thread has a place in each of "
        "them, x from the left and y from the top, and in c its place is in row `row` and column `col`. "
        "In the tile of a the whole row of that place is marked, and in the tile of b the column above "
        "and below the place of `col`.",
        "Small squares: what one thread loads of a and of b, and its element of c. Stripes: the row and "
        "the column of 16 numbers that it multiplies in this step.",
    )


draw_tiles()

# %% [markdown] id=tiles-used
# Each number that's fetched gets used 16 times. In step t = 0, 16, 32, ... thread (x, y) of a block loads one number of `a`, from row `row` and column `t + x`, and one of `b`, from row `t + y` and column `col`. Then it multiplies a row of one tile by a column of the other, and fifteen in sixteen of these numbers were brought by others. Beyond the edge of a matrix it takes 0, which adds nothing. And it stays to the end even if it has no element of `c`, because others need what it brings.

# %% [markdown] id=exercise-tiled
# ### Exercise: GEMM with tiles
#
# Compute `c = a @ b` with tiles of 16 x 16 and blocks of 16 x 16 threads. `a` has `m` rows of `k` numbers, `b` has `k` rows of `n`, and the sizes needn't be multiples of 16.

# %% id=02c-tiled starter
sgemm_tiled = agt.Kernel(r"""
extern "C" __global__ void sgemm_tiled(unsigned int m, unsigned int n, unsigned int k,
                                       const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16];
    __shared__ float tile_b[16][16];
    unsigned int x = threadIdx.x, y = threadIdx.y;
    unsigned int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    // your code
}
""")

# %% id=02c-tiled solution
# - // your code
# + float sum = 0.0f;
# + for (unsigned int t = 0; t < k; t += 16) {
# +     tile_a[y][x] = row < m && t + x < k ? a[row * k + t + x] : 0.0f;
# +     tile_b[y][x] = t + y < k && col < n ? b[(t + y) * n + col] : 0.0f;
# +     __syncthreads();
# +     for (unsigned int i = 0; i < 16; i++) {
# +         sum += tile_a[y][i] * tile_b[i][x];
# +     }
# +     __syncthreads();
# + }
# + if (row < m && col < n) {
# +     c[row * n + col] = sum;
# + }

# %% id=02c-tiled hints
# Write a loop over `t`, and in it: load one element of each tile, *barrier*, add up 16 products from the tiles, *barrier*.
#
# The thread loads `a[row * k + t + x]` into `tile_a[y][x]` if `row < m` and `t + x < k`, and otherwise 0. `b[(t + y) * n + col]` goes into `tile_b[y][x]` in the same way.
#
# Nobody may leave early. Only the last line, which writes, is restricted to threads that have an element of `c`.
#
# `for (unsigned int t = 0; t < k; t += 16)`: load both tiles, `__syncthreads();`, a loop over `i` with `sum += tile_a[y][i] * tile_b[i][x];`, `__syncthreads();`. The write comes after the loop.

# %% id=02c-tiled explanation
# A number that one thread loads is used by 16 threads of its row or column. One way has two barriers. The first makes sure that the tiles are full before anybody reads them, and the second that everybody has read them before they're overwritten.

# %% id=02c-tiled-check
check("02c-tiled", sgemm_tiled)

# %% [markdown] id=count-text
# ## Was it worth it?
#
# How often does yours ask? (If yours isn't solved yet, it's the course's kernel. Of a large launch the simulated device interprets a few blocks and reckons the time from them; `product` computes the other blocks in NumPy.)


# %% id=count-own
def product(m, n, k, a, b, c):
    return a.reshape(m, k) @ b.reshape(k, n)


own = agt.Kernel(solved("02c-tiled", sgemm_tiled).source, reference=product)


def tiled(n=64):
    return look_at(own, lambda a, b, c: own(n, n, n, a, b, c), n)


after = tiled()
asked, now_asked = (seen.counts.global_load_requests for seen in (naive(), after))
print(
    f"{now_asked:,} times instead of {asked:,}: {asked / now_asked:.0f} times less "
    "often."
)
large = naive(1024)
print(
    f"At 1024 x 1024, the naive kernel asks for {large.bytes_moved / 1e9:.1f} GB, "
    f"and takes {large.us:.0f} µs, as modelled."
)

# %% id=02c-faster guess
# And how many µs will yours take, at 1024 x 1024? (A riddle on the way: an H200's memory delivers 4.8 TB a second, so 4.3 GB should take 900 µs. How can the naive kernel be quicker?)
#
# - `thirty`: about 30, a sixteenth
# - `hundred`: about 120, a quarter
# - `more`: about 280, more than half
# - `same`: about 480, for it's bound by something else

# %% id=02c-faster reveal
large_tiled = tiled(1024)


def draw_sectors():
    """What both kernels ask for at 64 x 64, how much of it a block hasn't had yet, and their times."""
    found = {"naive": (before, large), "tiles": (after, large_tiled)}
    figure, panels = plt.subplots(1, 3, figsize=(9, 1.9), layout="constrained")
    rows = (
        ("sectors read, at 64 x 64", [seen.counts.load_sectors for seen, _ in found.values()]),
        ("instructions, at 64 x 64", [seen.counts.warp_instructions for seen, _ in found.values()]),
        ("modelled µs, at 1024 x 1024", [big.us for _, big in found.values()]),
    )
    for axes, (title, values) in zip(panels, rows, strict=True):
        bars = axes.barh([*found], values, color=["#f0b840", "#6fd3b0"], ec="0.3")
        axes.bar_label(bars, fmt="{:,.0f}", padding=3)
        axes.set(title=title, xlim=(0, 1.4 * max(values)), xticks=[])
        axes.invert_yaxis()
    fresh = [seen.counts.fresh_sectors for seen, _ in found.values()]
    panels[0].barh([*found], fresh, color="0.35")
    words = "; ".join(f"{t}: {v[0]:,.0f} naive, {v[1]:,.0f} with tiles" for t, v in rows)
    shown(figure, f"{words}. New to a block: {fresh[0]:,} and {fresh[1]:,} sectors.",
          "Dark: sectors that are new to a block. The rest of the bar it has asked for before.")


times = large.us / large_tiled.us
truth = "thirty" if times > 10 else "hundred" if times > 2.8 else "more" if times > 1.2 else "same"
reveal("02c-faster", truth, draw_sectors, times=times)

# %% id=02c-faster told truth=more
# So it's {times:.1f} times as fast. With tiles, a warp asks 16 times less often, but each time it gets four sectors instead of two, because it reads two rows of 16 numbers. That's why it's 8 times fewer sectors, and not 16.
#
# And the naive flatmates never drove to the market that often: there's a shop at the corner. Each block runs on one of the GPU's **multiprocessors**, or SMs, and each of these has a **cache**, which keeps a copy of what was read there lately. That solves the riddle, too: most of the 4.3 GB never come from memory. A block needs 16 rows of `a` and 16 columns of `b`, and at 64 x 64 that's 256 sectors, or 4,096 for all 16 blocks, with tiles or without. (The naive kernel also reads `c`, which makes 512 more.) The rest is in the cache. (Behind these caches is a larger one for all SMs, the **L2**. At 1024 x 1024 an H200's holds all three matrices, so even fewer requests reach the memory itself.)
#
# What tiles save in our model is instructions: about half of them. Your inner loop has 16 turns, which the compiler knows, so it writes them out: no counter, no comparison, no jump, and places in the tiles that are constants. (Put `blockDim.x` there, which is 16 as well, but isn't known before the launch, and nothing is saved.) A real H200 gains a little less. Two kernels like these, in [chapter 20](20_the_ladder.ipynb), with tiles of 32 x 32, differ by 1.4 times at 1024 x 1024 and by 1.5 at 4096 x 4096. That chapter also finds what holds them up next. Count before you tune.

# %% id=faster-check tags=asserts
from asyncgpu_course.ladder import ms

assert [round(ms("coalesced", n) / ms("shared", n), 1) for n in (1024, 4096)] == [1.4, 1.5]
assert asked == 16512
assert now_asked <= asked / 16 * 1.1
assert before.bytes_moved > 16 * before.bytes_needed
assert before.bytes_moved == 128 * 264 * 32
assert before.bytes_needed == 4 * 64 * 64 * 4
needed_sectors = 16 * (16 * 64 * 4 // 32 + 64 * 2)  # 16 blocks: 16 rows of `a`, and 16 columns of `b`
assert needed_sectors == 4096
assert before.counts.fresh_sectors == needed_sectors + 16 * 16 * 2  # and `c`
assert before.counts.load_sectors == 33280
assert round(large.bytes_moved / 1e8) == 43
assert round(4.3e9 / 4.8e12 * 1e5) == 90  # units of 10 µs
if solved("02c-tiled", sgemm_tiled) is not sgemm_tiled:  # the course's kernel
    assert after.counts.load_sectors == after.counts.fresh_sectors == needed_sectors
    assert round(large.counts.load_sectors / large_tiled.counts.load_sectors) == 8
    unknown = agt.Kernel(own.source.replace("i < 16;", "i < blockDim.x;"))
    rolled = look_at(unknown, lambda a, b, c: unknown(64, 64, 64, a, b, c)).counts
    assert rolled.warp_instructions > before.counts.warp_instructions > 2 * after.counts.warp_instructions
assert large_tiled.us < 0.7 * large.us
assert large_tiled.counts.warp_instructions < 0.6 * large.counts.warp_instructions

# %% [markdown] id=key-points
# ## Key points
#
# - Threads of a block share memory that's declared as `__shared__`. Two barriers go with it: one before anybody reads what others have written, and one before anybody writes what others still read.
# - A thread goes to each barrier that the others go to, even if it has no result to write. If it leaves early, nobody waits for it, and what it should have brought is missing.
# - Fewer requests isn't the same as faster. A cache may have answered them already.
#
# Words are in the [glossary](../docs/glossary.md). **Next:** a barrier makes the threads of *one block* wait for each other. How does a whole kernel wait for another, or for a copy, while Python gets on with something else? That's [02](02_streams_and_events.ipynb), if you came from 01. Otherwise go on to [03_lazy_operations.ipynb](03_lazy_operations.ipynb), where you never write such a wait again.

# %% id=score
score("02c")

# %% id=progress
progress("02c")
