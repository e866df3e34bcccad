"""Source of notebooks/02c_tiles.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Threads that share
#
# In chapter 01 each thread minded its own business: it read its numbers and wrote its own. But most kernels that matter read the same numbers many times over. The threads of a block can fetch them together, once.
#
# **How much faster is a kernel that asks memory sixteen times less often?**
#
# After this page you can write a kernel whose threads share what they read, put barriers where they belong, and count what a kernel asks of memory.
#
# | | |
# |---|---|
# | Time | 30 to 60 minutes, most of them for the second exercise |
# | You need | [01_sync_kernels](01_sync_kernels.ipynb). The page doesn't use streams, so you may read it before [02](02_streams_and_events.ipynb), or when you write your first large kernel |

# %% id=setup
import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)

device = agt.use("auto")
device

# %% [markdown] id=everybody
# ## Everybody reads everything
#
# Let's begin with a kernel in which every thread reads all the numbers, each for itself. Nobody shares yet: this is the waste that the rest of the page is about.

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

# %% [markdown] id=naive
# ## A product, naively
#
# The classic is **GEMM**, a *general matrix multiply*: `c = alpha * a @ b + beta * c`. This one comes with the package:

# %% id=naive-source
print(agt.sgemm_naive.source)

# %% [markdown] id=naive-text
# One thread computes one element of `c`, and reads a row of `a` and a column of `b` for it.
#
# How much it asks of memory, the **microscope** counts. It looks at the simulated device, even if you have a GPU. A **warp** is a group of 32 threads of a block that run in step, and when they read, they ask **global memory**, the device's main memory, once for all 32.


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
# How many bytes is that? Memory hands out **sectors**, which are pieces of 32 bytes, and threads that want the same sector get it once for all of them. A warp computes two rows of 16 elements. So each time, it gets two sectors of `a`, one for each row, or two of `b`, for 16 numbers in a row. And it reads and writes four sectors of `c`. That makes 264 sectors a warp, or {moved:,} bytes. But `a`, `b`, and `c` read and written, are only {needed:,} bytes. Everything else is asked for more than once.

# %% [markdown] id=tiles-idea
# ## Tiles
#
# Each number of `b` is needed for a whole column of `c`, and each warp at work on that column fetches it for itself. The threads of a block can do better, because they have a small, fast memory in common: an array that you declare as `__shared__` exists once for each block. So let a block compute its 16 x 16 elements of `c` in steps. In each step,
#
# 1. it fetches a **tile** of `a` and a tile of `b`, 16 x 16 numbers each;
# 2. it waits until all threads have done so, at a **barrier**: `__syncthreads()`;
# 3. each thread adds up 16 products, and finds all it needs in the two tiles;
# 4. it waits again, so that nobody overwrites a tile that somebody else still reads.

# %% id=tiles-drawn tags=helpers
import matplotlib.pyplot as plt

from asyncgpu_course import shown


def draw_tiles():
    """The matrices of a product, with the tiles of one step, and where the next ones are."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    box = {"ec": "0.3", "fc": "0.95"}
    for x, y, wide, tall in ((0, 0, 6, 4), (7, 5, 5, 6), (7, 0, 5, 4)):
        axes.add_patch(plt.Rectangle((x, y), wide, tall, **box))
    looks = (2, 1, "#9ad5f7", "tile of a"), (8, 7, "#6fd3b0", "tile of b"), (8, 1, "#f0b840", "16 x 16 of c")
    for x, y, colour, name in looks:
        axes.add_patch(plt.Rectangle((x, y), 2, 2, ec="0.3", fc=colour))
        axes.text(x + 1, y + 1, name.replace(" of", "\nof"), ha="center", va="center", fontsize=9)
    arrow = {"arrowstyle": "-|>", "color": "#d55e00", "lw": 2}
    axes.annotate("", (5.6, 2), (4.1, 2), arrowprops=arrow)
    axes.annotate("", (9, 5.4), (9, 6.9), arrowprops=arrow)
    names = ((3, -0.5, "a"), (12.4, 8, "b"), (9.5, -0.5, "c"))
    sizes = ((3, 4.3, "k"), (-0.4, 2, "m"), (9.5, 11.3, "n"), (6.6, 8, "k"))
    for (x, y, name), size in (*((it, 13) for it in names), *((it, 10) for it in sizes)):
        axes.text(x, y, name, ha="center", va="center", fontsize=size)
    axes.set(xlim=(-1, 13), ylim=(-1, 11.8), aspect="equal")
    axes.axis("off")
    shown(
        figure,
        "Three matrices: a with m rows and k columns, b with k rows and n columns above c. A block has one "
        "tile of c, in the rows of a tile of a, and in the columns of a tile of b.",
        "From step to step, the tile of a moves to the right, and the tile of b moves down.",
    )


draw_tiles()

# %% [markdown] id=tiles-used
# Each number that's fetched gets used 16 times. In step t = 0, 16, 32, ... thread (x, y) of a block loads one number of `a`, from row `row` and column `t + x`, and one of `b`, from row `t + y` and column `col`. Beyond the edge of a matrix it takes 0, which adds nothing. And it goes to the barrier even if it has no element of `c`, because the others wait for it there.

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
# How often does yours ask? (`product` does the same in NumPy, for the blocks of a large launch that the simulated device doesn't interpret.)
#
# Before you guess, you should know how a question gets answered. Each block runs on one of the GPU's **multiprocessors**, or SMs, and each of these has a **cache**: a small, fast memory that keeps a copy of what was read there lately. A number that's still in the cache needn't come from global memory again.


# %% id=count-own
def product(m, n, k, a, b, c):
    return a.reshape(m, k) @ b.reshape(k, n)


own = agt.Kernel(solved("02c-tiled", sgemm_tiled).source, reference=product)


def tiled(n=64):
    return look_at(own, lambda a, b, c: own(n, n, n, a, b, c), n)


after = tiled()
now_asked = after.counts.global_load_requests
print(
    f"{now_asked:,} times instead of {asked:,}: {asked / now_asked:.0f} times less "
    "often."
)
large = naive(1024)
print(f"At 1024 x 1024, the naive kernel takes {large.us:.0f} µs.")

# %% id=02c-faster guess
# And how many µs will yours take, at 1024 x 1024?
#
# - `thirty`: about 30, a sixteenth
# - `hundred`: about 120, a quarter
# - `more`: about 280, more than half
# - `same`: about 480, for it's bound by something else

# %% id=02c-faster reveal
large_tiled = tiled(1024)


def counted():
    for name, report in (("naive", large), ("tiles", large_tiled)):
        n = report.counts
        print(f"{name}: {n.load_sectors:11,} sectors asked for", end=", ")
        print(f"{n.fresh_sectors:10,} of them new to a block")
        print(f"       {n.warp_instructions:11,} instructions, and {report.us:.0f} µs")


times = large.us / large_tiled.us
truth = "thirty" if times > 10 else "hundred" if times > 2.8 else "more" if times > 1.2 else "same"
reveal("02c-faster", truth, counted, times=times)

# %% id=02c-faster told truth=more
# So it's {times:.1f} times as fast. With tiles, a warp asks 16 times less often, but each time it gets four sectors instead of two, because it reads two rows of 16 numbers. That's why it's 8 times fewer sectors, and not 16.
#
# And most of the naive kernel's sectors never leave the multiprocessor, because the cache still holds them. A block needs 16 rows of `a` and 16 columns of `b` in any case, and that's about 17 million sectors for all blocks, with tiles or without. (For the naive kernel the microscope finds fewer that are new, because it follows only some of the warps.) What tiles save in our model is instructions: about half of them. (A real H200 gains 1.5 times, too. [Chapter 20](20_the_ladder.ipynb) measures it for 4096 x 4096, and finds what holds the kernel up next.) Count before you tune.

# %% id=faster-check tags=asserts
assert asked == 16512
assert now_asked <= asked / 16 * 1.1
assert before.bytes_moved > 16 * before.bytes_needed
assert before.bytes_moved == 128 * 264 * 32
assert before.bytes_needed == 4 * 64 * 64 * 4
needed_sectors = 1024**2 // 16**2 * 2 * 16 * 1024 * 4 // 32  # by all blocks, of both matrices
assert round(needed_sectors / 1e6) == 17
assert large.counts.fresh_sectors < needed_sectors
if solved("02c-tiled", sgemm_tiled) is not sgemm_tiled:  # the course's kernel
    assert large_tiled.counts.load_sectors == needed_sectors == large_tiled.counts.fresh_sectors
    assert round(large.counts.load_sectors / large_tiled.counts.load_sectors) == 8
assert large_tiled.us < 0.7 * large.us
assert large_tiled.counts.warp_instructions < 0.6 * large.counts.warp_instructions

# %% [markdown] id=key-points
# ## Key points
#
# - Threads of a block share memory that's declared as `__shared__`. Two barriers go with it: one before anybody reads what others have written, and one before anybody writes what others still read.
# - A thread goes to each barrier that the others go to, even if it has nothing to do.
# - Fewer requests isn't the same as faster. A cache may have answered them already.
#
# Words are in the [glossary](../docs/glossary.md). **Next:** [03_lazy_operations.ipynb](03_lazy_operations.ipynb), or [02](02_streams_and_events.ipynb), if you came from 01. In [07](07_async_mlp.ipynb), a whole network runs on the naive product.

# %% id=score
score("02c")

# %% id=progress
progress("02c")
