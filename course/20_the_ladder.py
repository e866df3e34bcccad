"""Source of notebooks/20_the_ladder.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The ladder
#
# You've written a matrix product in CUDA C. It's ten lines long, it's right, and you're proud of it. Then you give it two matrices of 4096 x 4096 floats on an H200, and it takes 277 ms. NVIDIA's library, cuBLAS, takes 2.7 for the same 32-bit floats.
#
# **A factor of a hundred, on the same chip. Where does it go, and how much of it can you get back?**
#
# It doesn't go in one place, and that's why this is a ladder. Each rung is one idea, and after each there's something else that holds the kernel up. On this page you climb the first five rungs, to 71 % of cuBLAS. Afterwards you can say what a kernel asks of each memory, count it before you time it, and keep numbers where they're cheap. [20b](20b_the_upper_rungs.ipynb) climbs the rest.
#
# | | |
# |---|---|
# | Time | 65 minutes, half of them for the two exercises; the encore takes 15 |
# | You need | [02c_tiles](02c_tiles.ipynb): shared memory, tiles and barriers. The page runs on the simulated device, also if you have a GPU; its times were measured on an H200 |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)
from asyncgpu_course.ladder import climb, ms, needs, rung, share, stairs

agt.use("sim")

# %% [markdown] id=first
# ## The same numbers, in another order
#
# Here's the innocent kernel. `rung` has all the kernels of the ladder, and `print(rung("naive").source)` shows one whole. (To keep them short, they take only square matrices whose side is a multiple of their tile.)

# %% id=naive-source
print(rung("naive").source)

# %% [markdown] id=naive-text
# A block has 32 x 8 threads. The 32 threads of a warp differ in x, so here they share one `col` and have 32 rows, one below the other. `climb` runs a rung with 256 x 256 numbers on the simulated device, compares the result with NumPy's, and puts the kernel under the microscope. Global memory is fetched in **sectors** of 32 bytes, so let's count these:

# %% id=naive-climb
naive = climb("naive")
sectors = naive.load_sectors_per_request
print(f"{sectors:.1f} sectors of 32 bytes for each load of a warp")

# %% [markdown] id=swapped
# Now swap two letters, so that x counts columns and y counts rows:
#
# ```c
# int row = blockIdx.y * blockDim.y + threadIdx.y;
# int col = blockIdx.x * blockDim.x + threadIdx.x;
# ```
#
# Every element is still computed by one thread, from the same numbers, in the same order.

# %% id=20-sectors guess within=0.02
# How many sectors does a load of a warp touch now, on average over the loads of `a` and of `b`?

# %% id=20-sectors reveal
coalesced = climb("coalesced")
reveal(
    "20-sectors",
    f"{coalesced.load_sectors_per_request:.1f}",
    lambda: stairs("naive", "coalesced"),
    before=ms("naive"),
    now=ms("coalesced"),
)

# %% id=20-sectors told truth=2.5
# All 32 threads now want the *same* number of `a`, which is one sector, and 32 neighbours of `b`, which are four. That's 2.5 on average. Before, they wanted one number of `b` and 32 numbers of `a` that were a whole row apart, each in a sector of its own. On the H200, {before:.0f} ms become {now:.0f}, for swapping two letters. (That's 12 times as fast, with 6.6 times fewer sectors. Why it's more comes in a minute.)

# %% id=sectors-check tags=asserts
assert naive.counts.global_load_requests == coalesced.counts.global_load_requests
assert 16 < sectors < 17
assert round(sectors / coalesced.load_sectors_per_request, 1) == 6.6
assert 270 < ms("naive") < 280
assert round(ms("naive") / ms("coalesced")) == 12

# %% [markdown] id=shared-text
# ## Tiles
#
# The kernel still asks global memory for two numbers for every multiply-add. You know the cure from chapter 02c: a block fetches tiles of 32 x 32 numbers to shared memory, and everybody in the block uses them. Each number that's fetched is used 32 times, so the block asks global memory for a thirty-second of what it asked before.

# %% id=shared-source
print(rung("shared").source)
coalesced, tiled = climb("coalesced"), climb("shared")
asked = coalesced.counts.global_load_requests / tiled.counts.global_load_requests
print(f"{asked:.0f} times fewer loads of global memory")

# %% id=20-shared guess
# A thirty-second of the requests. How many times as fast is it on the H200, for 4096 x 4096?
#
# - `same`: it isn't faster
# - `two`: up to twice
# - `eight`: about eight times
# - `all`: about 32 times

# %% id=20-shared reveal
faster = ms("coalesced") / ms("shared")
truth = "same" if faster < 1.2 else "two" if faster < 3 else "eight" if faster < 15 else "all"
products = tiled.flops / 2 / 32
reveal(
    "20-shared",
    truth,
    lambda: stairs("naive", "coalesced", "shared"),
    lambda: needs(naive, coalesced, tiled),
    faster=faster,
)

# %% id=20-shared told truth=two
# {faster:.1f} times. Look at the second picture, which is the heart of this page. An SM of the H200 can do 128 multiply-adds in a clock, four warps' worth: that's the dashed line. A coloured mark says how many clocks a *memory* needs to serve the same four warps. (The axis is logarithmic, so look at where a line ends and not at how long it is.) Right of the dashed line, the arithmetic has to wait for that memory. The black mark is what the H200 took for everything together.
#
# A load of global memory first asks L1, the SM's own cache, which looks up one *line* of 128 bytes in a clock. So the picture counts lines and not sectors: for a product each, four warps of `naive` touch 4 x 33, and four of `coalesced` 4 x 2. That's why two letters saved more than the sectors say. And look at `naive`: 132 clocks were counted, and 135 measured. (With `coalesced` it's 8 and 11.3. What's more is waiting, and there's more about that at the end.)
#
# We've pushed global memory back, but the inner loop of `shared` reads two numbers from shared memory for each multiply-add, and shared memory serves one warp's read in a clock. That makes eight, and a little more, since the tiles have to be filled, too. We've traded one queue for another.
#
# (All of it is counted in the kernel as it's written, and nvcc does better where it can. Here it fetches four neighbours of `tile_a` with one read, which takes two clocks. That leaves six clocks instead of eight, and the rest up to 7.5 is waiting.)

# %% id=shared-check tags=asserts
assert asked == 32
assert tiled.counts.shared_requests / products == 2 + 2 / 32
assert [it.counts.load_lines / products for it in (naive, coalesced)] == [33, 2]
assert round(ms("naive") / 2.05) == 135
assert tiled.bound == "shared"

# %% [markdown] id=registers-text
# ## More for each thread
#
# The cure is the same once more, one floor up: let a thread keep numbers in **registers** that would otherwise come from shared memory again and again. For that, it has to compute more than one element. If it reads four numbers of a column of `a` and four of a row of `b`, it has everything for 4 x 4 = 16 multiply-adds.

# %% [markdown] id=exercise-own
# ### Exercise: four by four
#
# Finish this kernel. A block has 256 threads and computes 64 x 64 elements, from tiles of 64 x 16 and 16 x 64. Thread `me` owns the four rows from `me / 16 * 4` and the four columns from `me % 16 * 4`. (`n` is a multiple of 64.)
#
# Fetching the tiles and storing the sums is there already. The heart is missing: both barriers of `shared`, and what it does between them, for sixteen elements.

# %% id=20-own starter
own = agt.Kernel(r"""
extern "C" __global__ void own(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[64][16], tile_b[16][64];
    int me = threadIdx.x, row = me / 16 * 4, col = me % 16 * 4;
    // on to the rows and columns of this block
    a += blockIdx.y * 64 * n;
    b += blockIdx.x * 64;
    c += blockIdx.y * 64 * n + blockIdx.x * 64;
    float sums[4][4] = {};
    for (int t = 0; t < n; t += 16) {
        for (int i = me; i < 1024; i += 256) {
            tile_a[i / 16][i % 16] = a[i / 16 * n + t + i % 16];
            tile_b[i / 64][i % 64] = b[(t + i / 64) * n + i % 64];
        }
        // your code
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            c[(row + i) * n + col + j] = sums[i][j];
        }
    }
}
""")

# %% id=20-own solution
# - // your code
# + __syncthreads();
# + for (int k = 0; k < 16; k++) {
# +     float of_a[4], of_b[4];
# +     for (int i = 0; i < 4; i++) {
# +         of_a[i] = tile_a[row + i][k];
# +         of_b[i] = tile_b[k][col + i];
# +     }
# +     for (int i = 0; i < 4; i++) {
# +         for (int j = 0; j < 4; j++) {
# +             sums[i][j] += of_a[i] * of_b[j];
# +         }
# +     }
# + }
# + __syncthreads();

# %% id=20-own hints
# A barrier, a loop over the 16 numbers `k` that the tiles are deep, and another barrier, as in `shared`.
#
# In the loop over `k`, read eight numbers into `float of_a[4], of_b[4];` first. Then two loops over `i` and `j` add all sixteen products.
#
# `of_a[i]` is `tile_a[row + i][k]`, and `of_b[i]` is `tile_b[k][col + i]`. Then `sums[i][j] += of_a[i] * of_b[j];`.

# %% id=20-own explanation
# Eight reads for sixteen products, where it used to be two for each. With 8 x 8 elements it's sixteen reads for 64 products, and the sums alone fill 64 registers.

# %% id=20-own-check
check("20-own", own)

# %% id=own-climb
yours = climb("own", text=solved("20-own", own).source)  # or the course's, until then
needs(tiled, yours)
stairs("naive", "coalesced", "shared", "own")

# %% [markdown] id=own-after
# On the H200, that kernel is nearly three times as fast as `shared`. But eight reads for sixteen products should take two clocks, and the picture says four. So each read takes twice as long as it should. Why?
#
# ## Eight by eight, and banks
#
# The next rung, `registers`, is your kernel with 8 x 8 elements for each thread. Its inner loop has this line:
#
# ```c
# of_b[i] = tile_b[k][col + i];   // col = me % 16 * 8
# ```
#
# It hides a trap. Shared memory consists of 32 **banks**, and number `w` lies in bank `w % 32`. In one pass, each bank gives out one number, to as many threads as want that same number. (Profilers call a pass a *wavefront*.) If a warp wants two *different* numbers from one bank, it takes two passes.

# %% id=20-passes guess
# `i` and `k` are the same for all threads of a warp. How many passes does its read of `tile_b` take? Type a number.

# %% id=20-passes reveal
columns = {me % 16 * 8 for me in range(32)}
passes = max(sum(w % 32 == bank for w in columns) for bank in range(32))
eight = climb("registers")
reveal(
    "20-passes",
    passes,
    lambda: stairs("coalesced", "shared", "own", "registers"),
    lambda: needs(tiled, yours, eight),
    each=eight.conflicts_per_request,
    more=100 * ms("own") / ms("registers") - 100,
)

# %% id=20-passes told truth=4
# The warp wants sixteen different columns, each eight further on than the last. These fall into the banks 0, 8, 16 and 24, four into each, so the read takes four passes. The read of `tile_a` takes two, and the microscope counts {each:.1f} extra passes for each access on average. That's a **bank conflict**. (In yours, both reads took two.) With half as many reads for each product, the H200 should be much faster than with yours, and it's faster by {more:.0f} %.
#
# (nvcc has helped both kernels. Its listings show that it reads four neighbours with one instruction wherever it finds them, 32 times in a step of `registers` where the source has 128 reads. With these, shared memory needs 1.5 clocks for yours, and 1.25 for `registers`, whose reads of `tile_b` still collide. So again less was measured than counted, and the two are close.)

# %% id=passes-check tags=asserts
assert passes == 4
assert 1.5 < eight.conflicts_per_request < 2
assert 2.8 < ms("shared") / ms("own") < 3
if solved("20-own", own) is not own:  # the course's kernel
    assert 4 < yours.counts.shared_wavefronts / (yours.flops / 256) < 4.2

# %% [markdown] id=exercise-turn
# ### Exercise: turn it without a conflict
#
# Here's a kernel in which banks are the whole problem. `turn` transposes: row `r` of `x` becomes column `r` of `y`. A block of 32 x 32 threads takes one tile. Read rows of `x` and write rows of `y`, so that no load or store of a warp touches more than four sectors, and let no access to shared memory have a conflict. `n` is a multiple of 32.

# %% id=20-turn starter
turn = agt.Kernel(r"""
extern "C" __global__ void turn(int n, const float* x, float* y)
{
    __shared__ float tile[32][32];
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    y[col * n + row] = x[row * n + col];
}
""")

# %% id=20-turn solution
# - __shared__ float tile[32][32];
# + __shared__ float tile[32][33];
# - y[col * n + row] = x[row * n + col];
# + tile[threadIdx.y][threadIdx.x] = x[row * n + col];
# + __syncthreads();
# + col = blockIdx.y * 32 + threadIdx.x;
# + row = blockIdx.x * 32 + threadIdx.y;
# + y[row * n + col] = tile[threadIdx.x][threadIdx.y];

# %% id=20-turn hints
# Put the tile into shared memory as it is, and take it out turned: the block writes the tile that lies on the other side of the diagonal.
#
# After the barrier, thread (x, y) writes row `blockIdx.x * 32 + y` and column `blockIdx.y * 32 + x` of `y`, which is `tile[x][y]`.
#
# `tile[x][y]`, for 32 values of x, is a column, and all its numbers lie in one bank, since rows are 32 numbers long. So make them 33 long.

# %% id=20-turn explanation
# One column that nobody uses moves each row on by a bank, so the 32 numbers of a column lie in 32 banks. That's called **padding**.

# %% id=20-turn-check
check("20-turn", turn)

# %% [markdown] id=wide-text
# ## Four at a time
#
# The last rung of this page has a wider spoon. `wide` doesn't leave it to nvcc to find neighbours, but fetches, reads and writes four numbers with one instruction, as a `float4`. Those four have to be neighbours in memory, but a thread's four numbers of `a` lie in a column. So `wide` turns the tile of `a` on its way into shared memory. Here's most of it. A step takes `DEEP` = 8 columns of `a`, a thread owns `OWN` = 8 rows and columns, and `four(x)` is the `float4` that begins at `x`. (`__align__(16)` makes a `float4` possible there, and `#pragma unroll` has the loop written out.)

# %% id=wide-source
source = rung("wide").source
print(source[source.index("    int me") : source.rindex("    for (int i")])

# %% id=wide-climb
eight, wide = climb("registers"), climb("wide")
for report in (eight, wide):
    n = report.counts
    asked, took = n.shared_requests, n.shared_wavefronts
    print(f"{report.name:>9}: {asked:7,} accesses to shared memory, {took:7,} passes")

stairs("naive", "coalesced", "shared", "own", "registers", "wide")
needs(tiled, eight, wide)

# %% [markdown] id=wide-after
# That's nearly four times fewer accesses, but only a little more than two times fewer passes. A pass brings a number from each of the 32 banks at most, and 32 threads want 128 numbers. So a quarter of the warp has its turn in each pass, and a read of `float4`s takes four. There are two exceptions. If neighbours want the same `float4`, as they do in `a`, two quarters go together, and two passes are enough. In `b`, threads that want the same are sixteen apart, which doesn't help. And a quarter's eight `float4`s begin eight numbers apart, so they crowd into half of the banks, and the read takes eight. (An H200 takes as many clocks: we measured them with `clock64`.)
#
# At 1.34, shared memory is still right of the line, and the arithmetic could be busy three quarters of the time. It's busy for about half: the kernel has 71 % of cuBLAS's speed. Most of what else is missing, from 1.3 to 1.9, is *time in which nobody does anything*, because everybody waits. Both are what the upper rungs are about.

# %% id=wide-check tags=asserts
assert 0.65 < share("wide") < 0.75
clocks = wide.counts.shared_wavefronts / (wide.flops / 2 / 128)
assert (round(clocks, 2), round(1 / clocks, 2)) == (1.34, 0.74)
assert round(eight.counts.shared_requests / wide.counts.shared_requests, 1) == 3.7
assert round(eight.counts.shared_wavefronts / wide.counts.shared_wavefronts, 1) == 2.3
assert 0.5 < 2 * 4096**3 / ms("wide") / 1e9 / 67 < 0.55

# %% [markdown] id=key-points
# ## Key points
#
# - Count before you time. Sectors and lines for each load, reads of shared memory for each product, and passes for each read tell you what holds a kernel up, and the next change has to be about that.
# - The same cure works on each floor: whatever is expensive to fetch gets fetched once, kept one floor nearer, and used as often as there's room for it. Tiles live in shared memory, sums and fragments in registers.
# - Threads that are neighbours should read numbers that are neighbours. In global memory that saves sectors and lines, and in shared memory it saves passes.
# - If a column of a tile falls into one bank, as in `turn`, pad its rows by a number. (By four if they're read as `float4`, which has to begin at a multiple of 16 bytes.)
#
# If a word is new, look in the [glossary](../docs/glossary.md). **Next:** shared memory is a third too slow still, somebody waits, and more than a quarter of the speed is missing. [20b_the_upper_rungs](20b_the_upper_rungs.ipynb) finds it.

# %% id=score
score("20")

# %% id=progress
progress("20")

# %% [markdown] id=encore
# ## Encore: four at a time, by hand
#
# *For the day when a kernel that only copies numbers is slower than it should be. The one below takes 893 µs for 268 million floats on an H200, and with `float4`s it takes 500.*

# %% [markdown] id=exercise-four
# ### Exercise: four at a time
#
# `y` is `by * x`. Let each thread take four numbers at once, as a `float4`. There are at least as many threads as that takes, and `n` needn't be a multiple of 4. Both arrays begin at a multiple of 16 bytes.

# %% id=20-four starter
four = agt.Kernel(r"""
extern "C" __global__ void four(int n, float by, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = by * x[i];
    }
}
""")

# %% id=20-four solution
four = agt.Kernel(r"""
extern "C" __global__ void four(int n, float by, const float* x, float* y)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) {
        float4 v = *reinterpret_cast<const float4*>(&x[i]);
        *reinterpret_cast<float4*>(&y[i]) = make_float4(by * v.x, by * v.y, by * v.z, by * v.w);
    } else {
        for (; i < n; i++) {
            y[i] = by * x[i];
        }
    }
}
""")

# %% id=20-four hints
# Thread `t` takes the numbers from `4 * t` on, as long as there are four of them.
#
# `*reinterpret_cast<const float4*>(&x[i])` is a `float4`, with `.x`, `.y`, `.z` and `.w`. Written the same way, without `const`.
#
# For the last few: `else for (; i < n; i++) y[i] = by * x[i];`. Only one thread finds any.

# %% id=20-four explanation
# You need a fourth of the loads and stores, and each is four times as wide. So as many threads have four times as many bytes under way, and memory has more to do while they wait. On an H200 that's worth a factor of 1.8 if there are a million numbers or more, and with 16,384 it's worth next to nothing.

# %% id=20-four-check
check("20-four", four)
