"""Source of notebooks/20_the_ladder.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The ladder
#
# On an H200, NVIDIA's library multiplies two matrices of 4096 x 4096 floats in 2.7 ms. The most innocent kernel that one can write takes 277.
#
# **How much of that factor of a hundred can you get back, with kernels that fit on a page?**
#
# You climb rung by rung, and each rung is one idea. After this page you can say what holds a kernel up, count it before you time it, and write a product that stands beside cuBLAS.
#
# | | |
# |---|---|
# | Time | 65 minutes |
# | You need | [02c_tiles](02c_tiles.ipynb): shared memory, tiles and barriers. The page runs on the simulated device, also if you have a GPU; its times were measured on an H200 |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check,
    guess,
    hint,
    progress,
    reveal,
    score,
    solution,
    solved,
)
from asyncgpu_course.ladder import climb, ms, rung, share, stairs

agt.use("sim")

# %% [markdown] id=first
# ## Who stands beside whom
#
# `rung` has the kernels, and `print(rung("warps").source)` shows one. They're whole, but for edges: the side of a matrix has to be a multiple of the tile. Products may be fused with their sums here, as a compiler does unless it's told otherwise.

# %% id=naive-source
print(rung("naive").source)

# %% [markdown] id=naive-text
# A block has 32 x 8 threads, and x comes first: the 32 threads of a warp have one `col`, and 32 rows that follow each other. `climb` runs a rung with 256 x 256 numbers, checks what it computes, and shows it to the microscope.

# %% id=naive-climb
before = climb("naive")
sectors = before.load_sectors_per_request
print(f"{sectors:.1f} sectors of 32 bytes for each load of a warp")

# %% [markdown] id=swapped
# The next kernel is the same, but that x counts columns and y rows:
#
# ```c
# unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
# unsigned col = blockIdx.x * blockDim.x + threadIdx.x;
# ```
#
# Each thread computes what some thread computed before, from the same numbers.

# %% id=20-sectors guess within=0.02
# How many sectors does a load of a warp touch now, on average over the loads of `a` and of `b`?

# %% id=20-sectors reveal
after = climb("coalesced")
reveal(
    "20-sectors",
    f"{after.load_sectors_per_request:.1f}",
    lambda: stairs("naive", "coalesced"),
    before=ms("naive"),
    now=ms("coalesced"),
)

# %% id=20-sectors told truth=2.5
# All threads of a warp want the same number of `a`, which is one sector, and 32 numbers of `b` that lie side by side, which are four. Before, they wanted 32 numbers of `a` that were a row apart, and each of these is a sector of its own. On the H200, {before:.0f} ms become {now:.0f}. Nothing else has changed.

# %% id=sectors-check tags=asserts
assert before.counts.global_load_requests == after.counts.global_load_requests
assert 16 < before.load_sectors_per_request < 17
assert ms("naive") > 8 * ms("coalesced")

# %% [markdown] id=shared-text
# ## Tiles
#
# You know the next rung from chapter 02c. A block fetches tiles of 32 x 32 numbers to shared memory, and each number that's fetched is used 32 times. So it asks global memory for a thirty-second of what it asked before.

# %% id=shared-source
print(rung("shared").source)
tiled = climb("shared")
asked = after.counts.global_load_requests / tiled.counts.global_load_requests
print(f"{asked:.0f} times fewer loads of global memory")

# %% id=20-shared guess
# How many times as fast is it on the H200, for 4096 x 4096?
#
# - `same`: it isn't faster
# - `two`: up to twice
# - `eight`: about eight times
# - `all`: about 32 times

# %% id=20-shared reveal
faster = ms("coalesced") / ms("shared")
truth = "same" if faster < 1.2 else "two" if faster < 3 else "eight" if faster < 15 else "all"
products = tiled.flops / 2 / 32


def per_product():
    for name, n in (("reads of shared memory", tiled.counts.shared_requests),):
        print(f"{n / products:.1f} {name} for each multiply-add of a warp")


reveal("20-shared", truth, lambda: stairs("naive", "coalesced", "shared"), per_product, faster=faster)

# %% id=20-shared told truth=two
# {faster:.1f} times. The cache had answered most of those loads already. And look at the inner loop: for one multiply-add, it reads two numbers from shared memory. An SM of the H200 can do 128 multiply-adds in a clock, four warps' worth, but it serves one warp's read of shared memory. So most of its arithmetic stands idle. (nvcc does a little better than the source says. It reads four neighbours of `tile_a` at once, which leaves 1.25 reads for each product.) From here on, the enemy is called *shared memory*.

# %% id=shared-check tags=asserts
assert asked == 32
assert 2 <= tiled.counts.shared_requests / products < 2.1
assert tiled.bound == "shared"

# %% [markdown] id=registers-text
# ## More for each thread
#
# The cure is the same as before, one floor up. Tiles keep numbers in shared memory that were fetched from global memory. Now each thread keeps numbers in its **registers** that were read from shared memory: with 8 numbers of a column of `a` and 8 of a row of `b`, it can do 64 multiply-adds.

# %% [markdown] id=exercise-own
# ### Exercise: four by four
#
# Write it with 4 x 4 elements a thread. A block has 256 threads, and computes 64 x 64 elements from tiles of 64 x 16 and 16 x 64; `blockIdx.y` counts down the rows, `blockIdx.x` along the columns. `n` is a multiple of 64. Thread `me` owns the four rows from `me / 16 * 4` and the four columns from `me % 16 * 4`.

# %% id=20-own starter
own = agt.Kernel(r"""
extern "C" __global__ void own(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[64][16], tile_b[16][64];
    int me = threadIdx.x, row = me / 16 * 4, col = me % 16 * 4;
    float sums[4][4] = {};
    // your code
}
""")

# %% id=20-own solution
own = agt.Kernel(r"""
extern "C" __global__ void own(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[64][16], tile_b[16][64];
    int me = threadIdx.x, row = me / 16 * 4, col = me % 16 * 4;
    float sums[4][4] = {};
    a += blockIdx.y * 64 * n;
    b += blockIdx.x * 64;
    c += blockIdx.y * 64 * n + blockIdx.x * 64;
    for (int t = 0; t < n; t += 16) {
        for (int i = me; i < 1024; i += 256) {
            tile_a[i / 16][i % 16] = a[i / 16 * n + t + i % 16];
            tile_b[i / 64][i % 64] = b[(t + i / 64) * n + i % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            float of_a[4], of_b[4];
            for (int i = 0; i < 4; i++) {
                of_a[i] = tile_a[row + i][k];
                of_b[i] = tile_b[k][col + i];
            }
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) {
                    sums[i][j] += of_a[i] * of_b[j];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            c[(row + i) * n + col + j] = sums[i][j];
        }
    }
}
""")

# %% id=20-own hints
# The outline is that of `shared`: for each step, fetch both tiles, barrier, compute, barrier. 256 threads fetch 1024 numbers of each tile, so each thread fetches four.
#
# In the loop over `k`, read eight numbers into `float of_a[4], of_b[4];` first. Then two loops over `i` and `j` add all sixteen products.
#
# `for (int i = me; i < 1024; i += 256)` fetches: `tile_a[i / 16][i % 16]` is row `i / 16` of the block's rows and column `t + i % 16`; `tile_b[i / 64][i % 64]` is row `t + i / 64` and column `i % 64` of the block's columns.

# %% id=20-own explanation
# Eight reads for sixteen products, where it was two for one. With 8 x 8 it's sixteen for 64, and the sums alone fill 64 registers.

# %% id=20-own-check
check("20-own", own)

# %% [markdown] id=registers-rung
# ## Eight by eight, and banks
#
# This is the rung with 8 x 8. Its inner loop reads
#
# ```c
# of_b[i] = tile_b[k][col + i];   // col = me % 16 * 8
# ```
#
# Shared memory has 32 **banks**. Number `w` lies in bank `w % 32`, and in one pass each bank gives out one number, to whoever wants it. If a warp wants two different numbers of one bank, that takes two passes.

# %% id=20-passes guess
# `i` and `k` are the same for all threads of a warp. How many passes does its read of `tile_b` take? Type a number.

# %% id=20-passes reveal
columns = {me % 16 * 8 for me in range(32)}
passes = max(sum(w % 32 == bank for w in columns) for bank in range(32))
wide_open = climb("registers")
reveal(
    "20-passes",
    passes,
    lambda: stairs("coalesced", "shared", "registers"),
    each=wide_open.conflicts_per_request,
    faster=ms("shared") / ms("registers"),
)

# %% id=20-passes told truth=4
# Sixteen different columns, each eight further on than the one before: they fall into the banks 0, 8, 16 and 24, four into each. So a read takes four passes. That of `tile_a` takes two, and the microscope counts {each:.1f} extra passes for each access. Eight times fewer reads have made it {faster:.1f} times as fast. (All this is counted in the kernel as it's written. nvcc sees that neighbours are read, and reads four at once.)

# %% id=passes-check tags=asserts
assert passes == 4
assert 1.5 < wide_open.conflicts_per_request < 2
assert 2.5 < ms("shared") / ms("registers") < 4

# %% [markdown] id=exercise-turn
# ### Exercise: turn it without a conflict
#
# Meet banks in their purest form. `turn` writes `y`, which is `x` with rows and columns exchanged. A block of 32 x 32 threads takes a tile. Read rows of `x`, write rows of `y`, so that no load or store of a warp touches more than four sectors, and let no access to shared memory have a conflict. `n` is a multiple of 32.

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
# One column that nobody uses moves each row on by a bank. From `warps` on, the tiles of `a` have rows of 132 numbers for the same reason.

# %% id=20-turn-check
check("20-turn", turn)

# %% [markdown] id=wide-text
# ## Four at a time
#
# The rung `wide` fetches, reads and writes four numbers at once, as `float4`. For that, a thread's numbers have to lie side by side, and those of `a` lie in a column. So `a` is turned on its way into shared memory. On the H200, nearly all of the gain is in the fetching: for a tile, a thread of `registers` has eight loads and eight stores, each with an address to work out, and one of `wide` has two loads.

# %% id=wide-source
print(rung("wide").source)

# %% id=wide-climb
wider = climb("wide")
for name, report in (("registers", wide_open), ("wide", wider)):
    n = report.counts
    print(f"{name:>9}: {n.shared_requests:7,} requests,", end=" ")
    print(f"{n.bank_conflicts:7,} conflicts, {ms(name):.1f} ms on the H200")

# %% [markdown] id=exercise-four
# ### Exercise: four at a time
#
# `y` is `by * x`. Let each thread take four numbers at once. There are as many threads as that takes, and some more, and `n` needn't be a multiple of 4. Both arrays begin at a multiple of 16 bytes.

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
# A fourth of the loads and stores, each four times as wide. For a kernel that waits for memory it changes little. For one that waits for its load-store units it changes much.

# %% id=20-four-check
check("20-four", four)

# %% [markdown] id=warps-text
# ## Two ideas about order
#
# The rung `warps` changes nothing but who computes what: a warp owns 64 x 32 elements. Its threads stand in eight rows of four, so for each product it reads 64 numbers of a column of `a` and 32 of a row of `b`. These lie side by side, and nobody meets in a bank.
#
# Then comes an idea that you know from copies and kernels. In each step, `warps` fetches, waits, computes and waits again. While a block waits for global memory, it computes nothing. `ahead` has **two** tiles of each. It keeps the next numbers in registers while it multiplies the last ones:
#
# ```c
# for (int t = 0, now = 0; t < n; t += DEEP, now ^= 1) {
#     // put the numbers that have come into tile `now`
#     __syncthreads();
#     // ask for the next numbers
#     // multiply what's in tile `now`
# }
# ```

# %% id=20-lag guess
# One thread is fast, and already puts its numbers into the tile of step `t`. Of which steps may slow threads still be reading tiles?
#
# - `none`: of none: the barrier has seen to that
# - `one`: of step t - 1 at most
# - `two`: of step t - 1 or t - 2
# - `any`: of any, since there's only one barrier

# %% id=20-lag reveal
pair = climb("warps"), climb("ahead")
steps = 256 // 8


def counted():
    for report in pair:
        each = report.counts.barriers / report.counts.blocks / steps
        print(f"{report.name:>6}: {each:.0f} barriers a step, {ms(report.name):.2f} ms on the H200")


reveal("20-lag", "one", counted, lambda: stairs("registers", "wide", "warps", "ahead"))

# %% id=20-lag told truth=one
# It passed the barrier of step t - 1, so everybody had arrived there, and was done with step t - 2. They may still be reading the tile of t - 1. It writes into the other one. That's why two tiles are enough, and one barrier a step.

# %% id=lag-check tags=asserts
assert [r.counts.barriers // r.counts.blocks for r in pair] == [2 * steps, steps]
assert share("ahead") > share("warps") + 0.04 > share("wide") + 0.04

# %% [markdown] id=exercise-ahead
# ### Exercise: one barrier a step
#
# Here's a small product with tiles of 16 x 16, one element a thread, and two barriers a step. Give it two tiles of each, and one barrier a step. Ask for the next numbers before you multiply. `n` is a multiple of 16.

# %% id=20-ahead starter
ahead = agt.Kernel(r"""
extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][16], tile_b[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 16) {
        tile_a[y][x] = a[row * n + t + x];
        tile_b[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        __syncthreads();
    }
    c[row * n + col] = sum;
}
""")

# %% id=20-ahead solution
ahead = agt.Kernel(r"""
extern "C" __global__ void ahead(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[2][16][16], tile_b[2][16][16];
    int x = threadIdx.x, y = threadIdx.y, now = 0;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f, next_a = a[row * n + x], next_b = b[y * n + col];
    for (int t = 0; t < n; t += 16) {
        tile_a[now][y][x] = next_a;
        tile_b[now][y][x] = next_b;
        __syncthreads();
        if (t + 16 < n) {
            next_a = a[row * n + t + 16 + x];
            next_b = b[(t + 16 + y) * n + col];
        }
        for (int k = 0; k < 16; k++) {
            sum += tile_a[now][y][k] * tile_b[now][k][x];
        }
        now = 1 - now;
    }
    c[row * n + col] = sum;
}
""")

# %% id=20-ahead hints
# `tile_a[2][16][16]`, and a variable `now` that's 0 and 1 in turns.
#
# Before the loop, read the first two numbers into registers. In the loop: put them into tile `now`, barrier, read the next two into the same registers, multiply from tile `now`.
#
# There's no next number in the last step: `if (t + 16 < n)`.

# %% id=20-ahead explanation
# The load of the next numbers is under way during sixteen multiplications, and nobody waits for it until the next turn.

# %% id=20-ahead-check
check("20-ahead", ahead)

# %% [markdown] id=copies-text
# ## Copies that nobody waits for
#
# `larger` gives each thread 8 x 16 elements, and fetches deeper tiles. It's the last rung without special means, in 47 lines.
#
# Since 2020, GPUs can copy from global to shared memory by themselves. A thread starts a copy and goes on, and no register holds the number on its way:
#
# ```c
# __pipeline_memcpy_async(&to.b[i][col], &b[i * n + col], sizeof(float4));
# __pipeline_commit();
# // compute something
# __pipeline_wait_prior(0);   // now they have come
# __syncthreads();            // and everybody's
# ```
#
# `copies` is `larger` with this instead of the registers. (One more thing differs. Since `a` is turned on its way, its numbers are copied one by one.)

# %% id=20-copies guess
# How fast is it on the H200 at 4096 x 4096, beside `larger`?
#
# - `much`: at least a quarter faster
# - `tenth`: about a tenth faster
# - `same`: within 3 % of it
# - `slower`: a tenth slower

# %% id=20-copies reveal
gain = ms("larger") / ms("copies")
truth = "much" if gain > 1.2 else "tenth" if gain > 1.03 else "same" if gain > 0.97 else "slower"
reveal("20-copies", truth, lambda: stairs("warps", "ahead", "larger", "copies"), gain=gain)

# %% id=20-copies told truth=same
# {gain:.2f} times as fast, and at 1024 x 1024 it's a tenth slower. Most of what they could hide was hidden already, by the numbers in registers, and there are more copies than there were loads. But they need no registers, and with these one can do something: larger tiles, or more of them on their way.

# %% [markdown] id=top-text
# ## The last rung
#
# `top` does. A block computes 128 x 256 elements, in two stages of 24,832 bytes, and reads the numbers for the next product while it computes this one. Every index is an `int`.

# %% id=top-source
print(rung("top").source)

# %% id=20-sign guess
# Say `unsigned int` instead of `int`, everywhere. Indices here are never negative, so it computes the same. How many per cent of `top`'s speed does that have, on the H200 at 4096 x 4096? (Right is what's within 4 %.)

# %% id=20-sign reveal
sign = 100 * ms("top") / ms("top unsigned")
reveal("20-sign", f"{sign:.0f}", lambda: stairs("top", "top unsigned"), sign=sign)

# %% id=20-sign told truth=92
# {sign:.0f} %. In C, a sum of `int` never overflows, or else the program is wrong, and so the compiler may work with addresses and add to them. A sum of `unsigned` wraps around, and has to be computed as it stands. That's a few instructions more, and 244 registers for each thread instead of 208. We found it by accident, when everything else was right and the last 8 % were missing.

# %% id=20-share guess
# And how does `top` stand beside cuBLAS, at 8192 x 8192?
#
# - `eighty`: at some 80 %
# - `ninety`: at some 90 %
# - `just`: at 95 to 99 %
# - `ahead`: it's ahead

# %% id=20-share reveal
at = {n: share("top", n) for n in (2048, 4096, 8192)}
part = at[8192]
truth = "eighty" if part < 0.85 else "ninety" if part < 0.95 else "just" if part < 1 else "ahead"
names = "naive", "coalesced", "shared", "registers", "wide", "warps", "ahead", "larger", "copies", "top"
reveal(
    "20-share",
    truth,
    lambda: stairs(*names),
    lambda: stairs(*names, n=8192),
    small=at[2048],
    middle=at[4096],
    large=part,
)

# %% id=20-share told truth=ahead
# It has {small:.0%} of cuBLAS's speed at 2048, {middle:.0%} at 4096 and {large:.0%} at 8192. (At 8192 that's 52 of the 67 TFLOP/s that the data sheet promises.) Don't be too proud. cuBLAS has a kernel for each shape, and ours only takes multiples of 256. And we didn't allow it TF32, which rounds to 10 bits, and is several times as fast.

# %% id=top-check tags=asserts
from statistics import geometric_mean

assert geometric_mean(at.values()) > 0.95
assert min(at.values()) > 0.91
assert geometric_mean(share("larger", n) for n in at) > 0.9
assert rung("larger").lines <= 50

# %% [markdown] id=small-text
# ## And for small matrices?
#
# All this was for large ones. At 256 x 256 the large tiles lose what they've won. `top` has two blocks there, and `registers` four, which can't keep 132 SMs busy.

# %% id=small
for name in ("naive", "coalesced", "shared", "registers", "ahead", "top"):
    print(f"{name:>9}: {1000 * ms(name, 256):5.1f} µs on the H200 for 256 x 256")

# %% [markdown] id=challenge-text
# ## Challenge: 256 x 256
#
# So climb once more, for `n` = 256. `small` returns the operation that multiplies, by a kernel of yours, with any grid and block. `n` is a multiple of 128. The kernel below is the rung `shared`, and takes 9.6 µs on the simulated H200. Can you get below 8?

# %% id=20-challenge starter
mine = agt.Kernel(
    r"""
extern "C" __global__ void mine(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 32) {
        tile_a[y][x] = a[row * n + t + x];
        tile_b[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int k = 0; k < 32; k++) {
            sum += tile_a[y][k] * tile_b[k][x];
        }
        __syncthreads();
    }
    c[row * n + col] = sum;
}
""",
    contract=True,
)


def small(n, a, b, c):
    return mine(n, a, b, c, grid=(n // 32, n // 32), block=(32, 32))

# %% id=20-challenge solution
mine = agt.Kernel(
    r"""
extern "C" __global__ void mine(int n, const float* a, const float* b, float* c)
{
    __shared__ __align__(16) float tile_a[32][20], tile_b[32][16];
    int x = threadIdx.x % 16, y = threadIdx.x / 16 * 2;
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    float one = 0.0f, other = 0.0f;
    for (int t = 0; t < n; t += 32) {
        for (int i = threadIdx.x; i < 512; i += 128) {
            tile_a[i % 32][i / 32] = a[(row + i / 32) * n + t + i % 32];
            tile_b[i / 16][i % 16] = b[(t + i / 16) * n + col + i % 16];
        }
        __syncthreads();
        for (int k = 0; k < 32; k++) {
            float2 two = *reinterpret_cast<const float2*>(&tile_a[k][y]);
            one += two.x * tile_b[k][x];
            other += two.y * tile_b[k][x];
        }
        __syncthreads();
    }
    c[(row + y) * n + col + x] = one;
    c[(row + y + 1) * n + col + x] = other;
}
""",
    contract=True,
)


def small(n, a, b, c):
    return mine(n, a, b, c, grid=(n // 16, n // 16), block=128)

# %% id=20-challenge hints
# An H200 has 132 SMs. How many blocks does `shared` have? And how many would there be with smaller tiles?
#
# What holds `shared` up is two reads of shared memory for each product. A thread with two elements reads three numbers for two products.
#
# Try blocks of 16 x 16 elements, with half as many threads, each with two elements of a column; and deeper tiles, so that there are fewer barriers.

# %% id=20-challenge explanation
# No rung is the best one for every size. That's why a library has hundreds of kernels, and a table that says which to take.

# %% id=20-challenge-check
check("20-challenge", small)

# %% [markdown] id=tensor-text
# ## Other numbers
#
# There's one more rung, for halves. `tensor` takes these and adds up floats on the **tensor cores**, where a warp multiplies two pieces of 16 x 16 by one call. It does in 0.42 ms what took `top` 2.76, and yet it has only half of cuBLAS's speed for halves. cuBLAS uses instructions of this GPU's generation that four warps give together, and copies of whole tiles. `nvcuda::wmma`, which works on every GPU since Volta, has neither.

# %% id=tensor
print(f"tensor: {ms('tensor'):.2f} ms, {share('tensor'):.0%} of cuBLAS for halves")

# %% [markdown] id=key-points
# ## Key points
#
# - Count before you time: sectors for each load, reads of shared memory for each product, conflicts, barriers. The largest of these is what holds you up, and the next idea has to be about that one.
# - Each floor has the same cure. What's fetched from below is kept, and used as often as there's room for: tiles in shared memory, sums and fragments in registers.
# - Two tiles need one barrier a step. Whoever reads the next numbers early doesn't wait for them.
# - Asynchronous copies hardly make a kernel faster whose latency is hidden already. They free registers.
# - The last tenth is found by measuring, and not by thinking.
#
# Words are in the [glossary](../docs/glossary.md). **Next:** what does a warp do while it waits? [21_inside_one_sm](21_inside_one_sm.ipynb)

# %% id=score
score("20")

# %% id=progress
progress("20")

# %% [markdown] id=encore
# ## Encore: the same ideas, for attention
#
# *For the day when you read that attention was made faster without approximating anything.*
#
# Attention compares each of `n` queries with `n` keys, and adds up `n` values by these weights. The naive way writes a square of n x n weights and reads it again. But softmax can be computed **on the way**: keep the largest score so far, and the sum of the powers so far. When a larger score comes, shrink what you have by `exp(old - new)`.

# %% [markdown] id=exercise-rows
# ### Exercise: softmax on the way
#
# `rows` computes the softmax of each row of `x`, which has `n` numbers. A block is one warp, and has one row, block 0 the first. A thread may read each of its numbers twice, once for the sums and once for the result, and no more. Numbers may be large. (`__shfl_xor_sync(0xffffffff, v, far)` is `v` of the thread whose number differs from mine in the bit `far`.)

# %% id=20-rows starter
rows = agt.Kernel(r"""
extern "C" __global__ void rows(int n, const float* x, float* y)
{
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) {
        // your code
    }
}
""")

# %% id=20-rows solution
rows = agt.Kernel(r"""
extern "C" __global__ void rows(int n, const float* x, float* y)
{
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float top = -3e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = x[i], higher = fmaxf(top, v);
        sum = sum * expf(top - higher) + expf(v - higher);
        top = higher;
    }
    for (int far = 1; far < 32; far *= 2) {
        float their_top = __shfl_xor_sync(0xffffffff, top, far);
        float their_sum = __shfl_xor_sync(0xffffffff, sum, far);
        float higher = fmaxf(top, their_top);
        sum = sum * expf(top - higher) + their_sum * expf(their_top - higher);
        top = higher;
    }
    for (int i = threadIdx.x; i < n; i += 32) {
        y[i] = expf(x[i] - top) / sum;
    }
}
""")

# %% id=20-rows hints
# For each number `v`: `higher = fmaxf(top, v)`, then `sum * expf(top - higher) + expf(v - higher)` is the new sum.
#
# Two threads merge in the same way: both sums shrink to the higher top, and are added. With `far` = 1, 2, 4, 8 and 16 all 32 threads have the whole.
#
# Begin with a very low number instead of minus infinity: `-INFINITY - -INFINITY` isn't a number, and a thread may have no element.

# %% id=20-rows explanation
# This is what each row of attention keeps: a top and a sum. Everything that was added up before is shrunk by the same factor.

# %% id=20-rows-check
check("20-rows", rows)

# %% [markdown] id=attention-text
# `attention.cu`, beside the rungs, does this with tiles of keys and values that come by asynchronous copies. For 64 heads of 4,096 tokens on the H200, it's as fast as this beside PyTorch's memory-efficient kernel:

# %% id=attention
from asyncgpu_course.ladder import attention_share

for head in (64, 128):
    print(f"heads of {head}: {attention_share(head):.0%}")

# %% [markdown] id=attention-after
# With heads of 64 it's ahead, and with heads of 128 it isn't. Ours does 40 TFLOP/s with either. PyTorch's does 35 with heads of 64, and 45 with heads of 128. It makes three products of shorter numbers of each, on the tensor cores, and ours doesn't use these.

# %% id=attention-check tags=asserts
assert attention_share(64) > 1 > attention_share(128) > 0.8
