"""Source of notebooks/21_inside_one_sm.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Inside one SM
#
# In chapter 06, Python learned to do something else while it waits. A warp can't: its next instruction needs the number that it asked for, and that takes 300 clocks to come, or twice as many. And yet a GPU is hardly ever idle. **Who works while a warp waits?**
#
# After this page you can say how much has to be under way to keep a memory busy, start copies that bring the next tile by themselves, and let threads meet at a barrier that has phases.
#
# | | |
# |---|---|
# | Time | 60 minutes |
# | You need | [02c_tiles](02c_tiles.ipynb) and [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb). [20_the_ladder](20_the_ladder.ipynb) has the copies at work. The page runs on the simulated device, also if you have a GPU |

# %% id=setup
import matplotlib.pyplot as plt

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check,
    guess,
    hint,
    progress,
    reveal,
    score,
    shown,
    solution,
)

agt.use("sim")
SMS = 132  # of an H200

# %% [markdown] id=one-warp
# ## One warp waits
#
# `total` adds up numbers. Each thread takes one, adds it, and takes the next. (The `#pragma` forbids the compiler to do several turns at once. It'll be your turn to do that.)

# %% id=total
total = agt.Kernel(r"""
extern "C" __global__ void total(int n, const float* x, float* out)
{
    int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = me; i < n; i += threads) {
        sum += x[i];
    }
    out[me] = sum;
}
""")
NUMBERS = SMS * 32 * 1024
x = agt.ones(NUMBERS).sync()


def report(kernel, warps):
    """A kernel's report, with so many warps on each SM."""
    threads = min(32 * warps, 1024)
    grid = SMS * max(1, warps // 32)
    out = agt.zeros(grid * threads).sync()
    with agt.microscope() as seen:
        kernel(NUMBERS, x.borrow(), out.borrow(), grid=grid, block=threads).sync()
    assert agt.d2h(out.borrow()).sync().sum() == NUMBERS
    return seen[kernel.name]


def us_of(kernel, warps):
    return report(kernel, warps).us


for warps in (1, 2, 4):
    print(f"{warps} warps on each SM: {us_of(total, warps):6.1f} µs")

# %% id=draw-by-warps tags=helpers
def draw_by_warps(**kernels):
    """What a kernel takes, by the number of warps on each SM."""
    warps, told = [1, 2, 4, 8, 16, 32, 64], []
    measured = 166.9, 82.5, 42.2, 21.9, 11.6, 6.5, 4.2  # of `total`, on an H200
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for (name, kernel), marker in zip(kernels.items(), "os"):
        us = [us_of(kernel, n) for n in warps]
        axes.plot(warps, us, marker=marker, label=name)
        told.append(f"{name}: {', '.join(f'{t:.1f}' for t in us)}")
    axes.plot(warps, measured, "k+", ms=10, label="total, measured on an H200")
    axes.axhline(NUMBERS * 4 / 3.9e6, color="0.5", linestyle="--", label="our L2 at its limit")
    axes.set(xscale="log", yscale="log", xlabel="warps on each SM", ylabel="µs")
    axes.set_xticks(warps, warps)
    axes.set_yticks([5, 10, 20, 50, 100], [5, 10, 20, 50, 100])
    axes.minorticks_off()
    axes.legend(loc="upper right")
    told = "; ".join(told)
    shown(figure, f"µs for 1, 2, 4, ... 64 warps on each SM. {told}. Measured: {measured}.")
    print(told)

# %% [markdown] id=one-warp-text
# With one warp on each SM, hardly anything happens. The warp asks for 128 bytes, waits, adds, and asks again. With two, one waits beside the other, and it takes half the time. That's how a GPU hides latency: an SM of the H200 has room for 64 warps, and each clock its schedulers take some that have what they need. It's an event loop, made of silicon, and changing from one warp to another takes no time at all, since each warp has its registers to itself.

# %% id=21-full guess within=0.15
# How many µs does it take with 64 warps? (The numbers lie in the L2 cache, which delivers some 3,900 GB/s in our model, and there are 17 MB of them.)

# %% id=21-full reveal
full = us_of(total, 64)


reveal("21-full", f"{full:.1f}", lambda: draw_by_warps(total=total))

# %% id=21-full told truth=5.1
# A 64th of 160 would be 2.5. But the memory only delivers so much. What it takes is **Little's law**: what has to be under way is the bandwidth times the latency. A turn takes 0.155 µs, times 3,900 GB/s is 600 KB, or 4.6 KB for each SM. A warp has 128 bytes under way, so it takes 36 warps at least, and more gain little. (The H200's last cross is below the line: the line is our model's.)

# %% id=full-check tags=asserts
assert 155 < us_of(total, 1) < 165
assert us_of(total, 1) / 64 < 0.6 * full

# %% [markdown] id=four-text
# ## More from each warp
#
# A warp doesn't wait when it *asks* for a number. It waits when it needs it. So it can ask for four, and then add them up:

# %% id=four
four = agt.Kernel(r"""
extern "C" __global__ void four(int n, const float* x, float* out)
{
    int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = me; i < n; i += 4 * threads) {
        float a = x[i], b = x[i + threads];
        float c = x[i + 2 * threads], d = x[i + 3 * threads];
        sum += a + b + c + d;
    }
    out[me] = sum;
}
""")

# %% id=21-four guess within=0.15
# How many µs does `four` take with a single warp on each SM?

# %% id=21-four reveal
alone = us_of(four, 1)
pairs = {warps: us_of(four, warps) for warps in (8, 16, 32)}


reveal("21-four", f"{alone:.0f}", lambda: draw_by_warps(total=total, four=four), one=us_of(total, 1))

# %% id=21-four told truth=44
# A fourth of {one:.0f}, and a little. The four loads travel together, so one trip brings four numbers. Sixteen warps of this kind do what 64 of the other kind did. Whether a GPU has many warps with little under way or few with much is all the same to the memory. (The H200 took 47.7 µs with one warp, and 4.3 with sixteen.)

# %% id=four-check tags=asserts
assert 38 < alone < 50
assert pairs[16] < full

# %% [markdown] id=occupancy-text
# That's good to know, because warps need room. This SM has 65,536 registers, and a thread has up to 255. The part of the 64 places that's taken is called **occupancy**.

# %% id=21-room guess
# On the last rung of chapter 20, a thread needs 208 registers, and a block has 256 threads. How many warps can an SM hold of it?

# %% id=21-room reveal
warps = 65_536 // (208 * 256) * 256 // 32
reveal("21-room", warps, part=warps / 64)

# %% id=21-room told truth=8
# One block, eight warps: an occupancy of {part:.0%}. And that kernel has 98 % of cuBLAS's speed. It has 128 sums for each thread, which don't depend on each other, so there's always something to do. Occupancy is a means. What counts is what's under way.

# %% [markdown] id=exercise-under-way
# ### Exercise: four under way
#
# `dot` adds up `x[i] * w[i]`: thread `me` leaves its part in `out[me]`, and all parts together are the result. `n` may be any number. Have at least four numbers of each array under way at once.

# %% id=21-under-way starter
dot = agt.Kernel(r"""
extern "C" __global__ void dot(int n, const float* x, const float* w, float* out)
{
    int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = me; i < n; i += threads) {
        sum += x[i] * w[i];
    }
    out[me] = sum;
}
""")

# %% id=21-under-way solution
#   float sum = 0.0f;
# + int i = me;
#   #pragma unroll 1
# - for (int i = me; i < n; i += threads) {
# +     for (; i + 3 * threads < n; i += 4 * threads) {
# +         float a = x[i], b = x[i + threads];
# +         float c = x[i + 2 * threads], d = x[i + 3 * threads];
# +         float e = w[i], f = w[i + threads];
# +         float g = w[i + 2 * threads], h = w[i + 3 * threads];
# +         sum += a * e + b * f + c * g + d * h;
# +     }
# + #pragma unroll 1
# +     for (; i < n; i += threads) {

# %% id=21-under-way hints
# Read four numbers of each array into variables before you use the first.
#
# The last turn may have fewer than four: let the loop run while `i + 3 * threads < n`, and a second loop do the rest.
#
# `int i = me; for (; i + 3 * threads < n; i += 4 * threads) { ... } for (; i < n; i += threads) { ... }`

# %% id=21-under-way explanation
# Compilers often do it for you, with `#pragma unroll 4`. They may not where they can't know that a store in between doesn't change what's read next.

# %% id=21-under-way-check
check("21-under-way", dot)

# %% [markdown] id=copies-text
# ## A copy that's under way by itself
#
# A number that's under way needs a register to arrive in. For tiles in shared memory that's a detour, and from Ampere on there's a way without: a thread starts an **asynchronous copy** from global to shared memory, and goes on.
#
# ```c
# #include <cuda_pipeline.h>
#
# // starts a copy of 4, 8 or 16 bytes
# __pipeline_memcpy_async(&tile[i], &x[i], sizeof(float));
# // closes a group of copies
# __pipeline_commit();
# // waits for all groups but the last n
# __pipeline_wait_prior(n);
# ```
#
# You've seen this before. A copy is an operation that's been started. A group is like a recorded event, and `wait_prior` waits for one, not for the whole queue.

# %% [markdown] id=groups-text
# A thread starts three tiles, A, B and C, and closes a group behind each. Then it calls `__pipeline_wait_prior(1)`, does some work, and commits an empty group. Then comes `__pipeline_wait_prior(1)` once more.

# %% id=21-groups guess
# Which of the three are certainly there now? Type their letters.

# %% id=21-groups reveal
THREE = r"""
#include <cuda_pipeline.h>

extern "C" __global__ void three(const float* x, float* y)
{
    __shared__ float tiles[3][32];
    int me = threadIdx.x;
    for (int t = 0; t < 3; t++) {
        __pipeline_memcpy_async(&tiles[t][me], &x[me], sizeof(float));
        __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    y[me] = tiles[WHICH][me];
    __pipeline_wait_prior(0);
}
"""


def there(source, which):
    """Whether this tile can be read, behind both waits."""
    reading = agt.Kernel(source.replace("WHICH", str(which)))
    try:
        reading(x.borrow(), agt.zeros(32).sync().borrow(), grid=1, block=32).sync()
    except agt.errors.RaceError:
        return False
    return True


one_wait = THREE.replace("__pipeline_commit();\n    __pipeline_wait_prior(1);\n    y", "y")
after_one, after_both = (
    [name for which, name in enumerate("ABC") if there(source, which)]
    for source in (one_wait, THREE)
)
reveal("21-groups", " ".join(after_both), first=" and ".join(after_one))

# %% id=21-groups told truth="A B C"
# The first wait is for all groups but the last one: {first}. The empty group is a group, too, so the second wait is for all but that one. This is how a loop ends whose last turns have nothing more to fetch: they commit an empty group, and the number in `wait_prior` stays the same.

# %% [markdown] id=mistakes-text
# It also brings new mistakes. A thread that waits has waited for *its own* copies. What others copied is there when they've waited, too, and you've met them at a barrier. On a GPU all of this often goes well. Here it doesn't:

# %% id=mistake
early = agt.Kernel(r"""
#include <cuda_pipeline.h>

extern "C" __global__ void early(const float* x, float* y)
{
    __shared__ float tile[64];
    int me = threadIdx.x;
    __pipeline_memcpy_async(&tile[me], &x[me], sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    y[me] = tile[63 - me];
}
""")
try:
    early(x.borrow(), agt.zeros(64).sync().borrow(), grid=1, block=64).sync()
except agt.errors.RaceError as error:
    print(error)

# %% [markdown] id=exercise-tiles
# ### Exercise: the next tile
#
# Each block takes tiles of 256 numbers, `blockIdx.x` first, then `gridDim.x` further on each time. For each number it writes the sum of the number and its two neighbours in the tile, where the first and the last are neighbours. Now it fetches a tile, waits, and computes. Let the next tile come by an asynchronous copy while this one is computed. `n` is a multiple of 256.

# %% id=21-next-tile starter
smooth = agt.Kernel(r"""
#include <cuda_pipeline.h>

extern "C" __global__ void smooth(int n, const float* x, float* y)
{
    __shared__ float tile[256];
    int me = threadIdx.x;
    for (int t = blockIdx.x; t < n / 256; t += gridDim.x) {
        tile[me] = x[t * 256 + me];
        __syncthreads();
        y[t * 256 + me] = tile[(me + 255) % 256] + tile[me] + tile[(me + 1) % 256];
        __syncthreads();
    }
}
""")

# %% id=21-next-tile solution
smooth = agt.Kernel(r"""
#include <cuda_pipeline.h>

extern "C" __global__ void smooth(int n, const float* x, float* y)
{
    __shared__ float tile[2][256];
    int me = threadIdx.x, now = 0;
    if (blockIdx.x < n / 256)
        __pipeline_memcpy_async(&tile[0][me], &x[blockIdx.x * 256 + me], sizeof(float));
    __pipeline_commit();
    for (int t = blockIdx.x; t < n / 256; t += gridDim.x) {
        int next = t + gridDim.x;
        if (next < n / 256)
            __pipeline_memcpy_async(&tile[1 - now][me], &x[next * 256 + me], sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        const float* full = tile[now];
        y[t * 256 + me] = full[(me + 255) % 256] + full[me] + full[(me + 1) % 256];
        __syncthreads();
        now = 1 - now;
    }
}
""")

# %% id=21-next-tile hints
# You need two tiles. Start the copy of the first one before the loop. In each turn, start that of the next one, and then wait for this one only.
#
# In turn t, two groups are under way: this tile's and the next one's. `__pipeline_wait_prior(1)` waits for the older one. Commit in each turn, also if there's nothing to copy.
#
# Two barriers: one behind the wait, so that everybody's copies are there, and one behind the computing, so that nobody starts a copy into a tile that others still read.

# %% id=21-next-tile explanation
# The next tile is on its way while this one is computed, so a warp hardly waits for it.

# %% id=21-next-tile-check
check("21-next-tile", smooth)

# %% [markdown] id=phases-text
# ## A barrier is a future
#
# `__syncthreads()` is a `sync`: you arrive and wait, in one. A `cuda::barrier` takes the two apart.
#
# ```c
# #include <cuda/barrier>
# using barrier = cuda::barrier<cuda::thread_scope_block>;
#
# __shared__ barrier bar;
# if (threadIdx.x == 0) init(&bar, blockDim.x);   // how many arrivals make a phase
# __syncthreads();
#
# auto token = bar.arrive();         // I've done my part
# // something that needs nobody
# bar.wait(std::move(token));        // now everybody has done theirs
# ```
#
# The token is a **future** of the phase: with the last arrival, the phase is over, everybody who waits goes on, and the next phase has begun. In chapter 12 a future had to be polled, because nobody rings when a word of global memory changes. Here somebody may. From Ampere on, the barrier is a word of shared memory in which the hardware counts, and from Hopper on a warp that waits at it may be put aside for a while. Before that, `wait` polls, too.

# %% [markdown] id=exercise-meanwhile
# ### Exercise: meanwhile
#
# Each thread puts a number into shared memory, and needs the number of the thread opposite. It also has something of its own to compute, `own(v)`, which takes a while and needs nobody. Don't let anybody wait before that's done: arrive first, then compute, then wait. (All 64 threads are in one block. One `__syncthreads()` is allowed, behind `init`.)

# %% id=21-meanwhile starter
meanwhile = agt.Kernel(r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;

__device__ float own(float v)
{
    for (int k = 0; k < 20; k++) v = v * 0.5f + 1.0f;
    return v;
}

extern "C" __global__ void meanwhile(const float* x, float* y)
{
    __shared__ float shared[64];
    int me = threadIdx.x;
    shared[me] = x[me];
    __syncthreads();
    y[me] = own(x[me]) + shared[63 - me];
}
""")

# %% id=21-meanwhile solution
#   __shared__ float shared[64];
# + __shared__ barrier bar;
#   int me = threadIdx.x;
# + if (me == 0) init(&bar, 64);
# + __syncthreads();
# - __syncthreads();
# - y[me] = own(x[me]) + shared[63 - me];
# + auto token = bar.arrive();
# + float mine = own(x[me]);
# + bar.wait(std::move(token));
# + y[me] = mine + shared[63 - me];

# %% id=21-meanwhile hints
# `init(&bar, 64)` by one thread, and a `__syncthreads()` behind it, so that nobody arrives at a barrier that isn't there yet.
#
# Write your number, then `auto token = bar.arrive();`, then compute, then `bar.wait(std::move(token));`.

# %% id=21-meanwhile explanation
# What you wrote before `arrive` is what others see behind their `wait`. What you write after it may come too late, and that's a race.

# %% id=21-meanwhile-check
check("21-meanwhile", meanwhile)

# %% [markdown] id=parity-text
# ## Whose turn is it?
#
# Somebody who hasn't arrived has no token, but may want to wait as well. `bar.wait_parity(p)` waits until the current phase isn't one of parity `p`, that is, until the phase of this parity is over. Phases count from 0. So `wait_parity(0)` waits for the end of phase 0, and goes on at once while phase 1 runs.

# %% id=21-parity guess
# A thread calls `wait_parity(1)` on a barrier that's just been made, and at which nobody has arrived. What happens?
#
# - `waits`: it waits for phase 1 to end
# - `first`: it waits for phase 0 to end
# - `on`: it goes on at once
# - `error`: there has been no phase 1, so that's an error

# %% id=21-parity reveal
fresh = agt.Kernel(r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void fresh(float* y)
{
    __shared__ barrier bar;
    if (threadIdx.x == 0) init(&bar, 32);
    __syncthreads();
    bar.wait_parity(1);
    y[threadIdx.x] = 1.0f;
}
""")
went = agt.zeros(32).sync()
fresh(went.borrow(), grid=1, block=32).sync()
reveal("21-parity", "on" if agt.d2h(went.borrow()).sync().all() else "waits")

# %% id=21-parity told truth=on
# The phase that runs is phase 0, and it isn't of parity 1. So it looks as if a phase of parity 1 were over, the one before the first. You'll need that below.

# %% [markdown] id=handover-text
# Two barriers for each place make a queue: `full` is over when the place has been filled, `empty` when it has been used. The large kernels of today are built so. One warp does nothing but start copies, others do nothing but multiply, and no `__syncthreads()` holds them all up. It's chapter 11's queue, inside one SM. (The first time, nobody has emptied a place. That's what the parity is good for that's over before it has begun.)

# %% [markdown] id=exercise-handover
# ### Exercise: hand over
#
# Warp 0 brings, warp 1 adds up. There are `turns` packets of 32 numbers, and two places. In turn k, warp 0 puts packet k into place `k % 2`, when that's empty. Warp 1 adds what's in it, number by number in reverse order, when it's full. The barriers are there. Put the calls where they belong.

# %% id=21-handover starter
handover = agt.Kernel(r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void handover(int turns, const float* x, float* y)
{
    __shared__ float place[2][32];
    __shared__ barrier full[2], empty[2];
    int lane = threadIdx.x % 32;
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 32);
        init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int k = 0; k < turns; k++) {
            place[k % 2][lane] = x[k * 32 + lane];
        }
    } else {
        float sum = 0.0f;
        for (int k = 0; k < turns; k++) {
            sum += place[k % 2][31 - lane];
        }
        y[lane] = sum;
    }
}
""")

# %% id=21-handover solution
#   for (int k = 0; k < turns; k++) {
# +     empty[k % 2].wait_parity(1 - k / 2 % 2);
#   place[k % 2][lane] = x[k * 32 + lane];
# + auto token = full[k % 2].arrive();
#   for (int k = 0; k < turns; k++) {
# +     full[k % 2].wait_parity(k / 2 % 2);
#   sum += place[k % 2][31 - lane];
# + auto token = empty[k % 2].arrive();

# %% id=21-handover hints
# Warp 0 waits for `empty`, and arrives at `full`. Warp 1 waits for `full`, and arrives at `empty`. Nobody waits where it arrives, so there are no tokens: it's `wait_parity`.
#
# Place `k % 2` is used for the `k / 2`-th time, so warp 1 waits for phase `k / 2` of `full`, whose parity is `k / 2 % 2`.
#
# Warp 0 waits for the phase before: `empty[k % 2].wait_parity(1 - k / 2 % 2)`. The first time for each place, it goes on at once.

# %% id=21-handover explanation
# With copies that a barrier counts (`cuda::memcpy_async(&place[k % 2][lane], &x[k * 32 + lane], 4, full[k % 2])`), warp 0 wouldn't even touch the numbers.

# %% id=21-handover-check
check("21-handover", handover)

# %% [markdown] id=pay-text
# ## When does it pay?
#
# Not always. In chapter 20, asynchronous copies alone brought next to nothing over numbers that were read early into registers, and in `total`, 64 warps did nearly all that was needed without any trick. They pay where registers are what you lack, where a tile has to be deep, and where few warps do a lot. Somebody always has to be under way. The question is only who.

# %% [markdown] id=key-points
# ## Key points
#
# - A warp waits when it needs a number, and not when it asks for it. Others work meanwhile, and changing costs nothing.
# - Under way has to be the bandwidth times the latency, by many warps or by several loads of each.
# - An asynchronous copy needs no register. Wait for your own group, then meet the others.
# - A barrier with phases is a future: `arrive` gives a token, `wait` awaits it. What's written before `arrive` is seen behind `wait`.
# - A queue of places needs two barriers for each: full and empty.
#
# Words are in the [glossary](../docs/glossary.md).

# %% id=score
score("21")

# %% id=progress
progress("21")
