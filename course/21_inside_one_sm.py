"""Source of notebooks/21_inside_one_sm.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Inside one SM
#
# In chapter 06, Python learned to do something else while it waits. A warp can't do that. When its next instruction needs a number from memory, the warp stands still until the number has come, and that takes 300 clocks if the number is in the L2 cache (0.15 µs on an H200, at 1.98 GHz), and twice as many if it comes from main memory. And yet a GPU that's used well is hardly ever idle.
#
# **So who works while a warp waits?**
#
# After this page you can say how much has to be under way to keep a memory busy, and have the next tiles come by themselves while you compute with this one.
#
# | | |
# |---|---|
# | Time | 70 minutes, more than half of them for the three exercises |
# | You need | [02c_tiles](02c_tiles.ipynb). The page runs on the simulated device, also if you have a GPU |

# %% id=setup
import math

import matplotlib.pyplot as plt

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)
from asyncgpu_course.shown import LaneBar, draw_lanes, shown

agt.use("sim")
SMS = 132  # of an H200

# %% [markdown] id=one-warp
# ## One warp waits
#
# `total` adds up numbers, one after the other in each thread. (The `#pragma` keeps the compiler from doing several turns at once. That'll be your job.) We start it with one, two and four warps on each SM:

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

# %% id=report tags=helpers
SPEC = agt.current_device().spec


def us_of(kernel, warps):
    """What a kernel takes, with so many warps on each SM."""
    threads = min(32 * warps, 1024)
    grid = SMS * max(1, warps // 32)
    out = agt.zeros(grid * threads).sync()
    with agt.microscope() as seen:
        kernel(NUMBERS, x.borrow(), out.borrow(), grid=grid, block=threads).sync()
    assert agt.d2h(out.borrow()).sync().sum() == NUMBERS
    return seen[kernel.name].us


def draw_by_warps(**kernels):
    """What a kernel takes, by the number of warps on each SM."""
    warps, told = [1, 2, 4, 8, 16, 32, 64], []
    # On an H200, 2026-11-30: medians of 22 launches, each by itself, under `agt.record("cupti")`.
    measured = {
        "total": [166.5, 82.2, 42.0, 21.8, 11.6, 6.5, 4.2],
        "four": [47.5, 24.3, 12.7, 7.0, 4.3, 3.4, 3.3],
    }
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for (name, kernel), look in zip(kernels.items(), ("o-#009e73", "s-#cc79a7")):
        us = [us_of(kernel, n) for n in warps]
        axes.plot(warps, us, look[:2], color=look[2:], label=f"{name}, modelled")
        axes.plot(warps, measured[name], "k+", ms=10)
        told.append(f"{name}: {[round(t, 1) for t in us]}, measured {measured[name]}")
    axes.plot([], [], "k+", ms=10, label="measured on an H200")
    limit = SPEC.launch_us + NUMBERS * 4 / SPEC.l2_gb_s / 1e3
    axes.axhline(limit, color="0.5", ls="--", label="a launch, and 17 MB at 5,047 GB/s")
    axes.set(xscale="log", yscale="log", xlabel="warps on each SM", ylabel="µs")
    axes.set_xticks(warps, warps)
    axes.set_yticks([3, 5, 10, 20, 50, 100], [3, 5, 10, 20, 50, 100])
    axes.minorticks_off()
    axes.legend(loc="upper right")
    shown(
        figure,
        f"µs for 1, 2, 4, ... 64 warps on each SM. {'; '.join(told)}.",
        "A cross is a single kernel's time by CUPTI. An empty kernel takes 0.5 to 0.8 µs on the H200, "
        "and 1.07 in our model.",
    )

# %% id=few-warps
for warps in (1, 2, 4):
    print(f"warps on each SM: {warps}, time: {us_of(total, warps):6.1f} µs")
out = agt.zeros(SMS * 128).sync()
lesson = "Four warps wait side by side. (In our model, the first wait is the shortest.)"
agt.show_warps(total, NUMBERS, x, out, grid=SMS, block=128, until=0.5, lesson=lesson)

# %% [markdown] id=one-warp-text
# A warp asks for 128 bytes, waits, adds them, and asks again. If there are two, one waits beside the other, so the work takes half the time, and with four a quarter. That's the answer: while one warp waits, the memory works for *others*, too. In each clock, the schedulers of an SM pick warps whose numbers have come. It's an event loop made of silicon. Changing warps costs nothing, because every warp keeps its registers all the time.
#
# An SM of the H200 has room for 64 warps. The numbers are 17 MB, written just now, so they're in the L2 cache, which has room for 60. In our model it delivers 5,047 GB/s, and a launch takes 1.07 µs, which the picture leaves out.

# %% id=21-full guess within=0.15
# How many µs does it take with 64 warps on each SM?

# %% id=21-full reveal
full = us_of(total, 64)
turn = us_of(total, 1) / 1024
reveal(
    "21-full", f"{full:.1f}", lambda: draw_by_warps(total=total),
    turn=turn, share=us_of(total, 1) / 64, kilobytes=turn * SPEC.l2_gb_s / SMS,
    warps=math.ceil(turn * SPEC.l2_gb_s / SMS / 0.128),
    limit=SPEC.launch_us + NUMBERS * 4 / SPEC.l2_gb_s / 1e3, full=full,
)

# %% id=21-full told truth=5.1
# A 64th of the time with one warp would be {share:.1f} µs. But the cache can't deliver that fast, so the curve leaves its straight line and flattens out above the dashed one. *Where* it leaves is **Little's law**: what has to be under way is the bandwidth times the latency.
#
# {turn:.3f} µs for a turn × 5,047 GB/s / 132 SMs = {kilobytes:.1f} KB under way in each SM
#
# A warp only has 128 bytes under way, so it takes at least {warps} warps. Plan for more: loads also queue behind each other, so even 64 take {full:.1f} µs, where the dashed line is at {limit:.1f}.

# %% id=full-check tags=asserts
assert 155 < us_of(total, 1) < 165
assert (SPEC.l2_gb_s, SPEC.launch_us, SPEC.clock_mhz) == (5047, 1.067, 1980)
assert us_of(total, 1) / 64 < 0.6 * full
assert 0.6 * us_of(total, 32) < full < 0.9 * us_of(total, 32)

# %% [markdown] id=four-text
# ## More from each warp
#
# You don't need many warps, though. A warp doesn't wait when it *asks* for a number. It waits when it *uses* it. So a warp can ask for four numbers one after the other, and add them up when they've come. (Here `n` is a multiple of `4 * threads`.)

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

# %% id=21-four guess within=0.1
# Main memory takes twice as long as the L2 cache, and delivers 4,800 GB/s (data sheet). By Little's law, how many warps of `four` on each SM keep it busy, at least?

# %% id=21-four reveal
alone = us_of(four, 1)
kilobytes = 2 * turn * SPEC.dram_gb_s / SMS
reveal(
    "21-four", f"{kilobytes / 0.512:.0f}", lambda: draw_by_warps(total=total, four=four),
    turn=turn, kilobytes=kilobytes, warps=kilobytes / 0.128, one=us_of(total, 1), alone=alone,
)

# %% id=21-four told truth=22
# 2 × {turn:.3f} µs × 4,800 GB/s / 132 SMs = {kilobytes:.1f} KB, and a warp of `four` has 512 bytes under way. `total` needs {warps:.0f} warps, and there's only room for 64! Otherwise the memory doesn't care: many warps with little under way, or few with much. In the picture, which is about L2 again, 16 warps of `four` are as fast as 64 of `total`. Even a single one takes {alone:.0f} µs instead of {one:.0f}, because its loads travel together. (The last crosses are below the line: the L2 cache of an H200 is faster than our model's.)

# %% id=four-check tags=asserts
assert 43 < alone < 45
assert us_of(four, 16) < 1.05 * full

# %% [markdown] id=occupancy-text
# Why would anybody want fewer warps? Because an SM has 65,536 registers, and if each thread needs many, fewer warps fit. The part of the 64 places that's taken is called **occupancy**, and many guides tell you to raise it.
#
# This course's best matrix product has 98 % of cuBLAS's speed and an occupancy of an eighth: its threads need 208 registers each, so only one block of eight warps fits. But Little's law holds for arithmetic, too: 128 multiply-adds a clock, of some 4 clocks each, are 512 under way on an SM. Two in each of these 256 threads would do, and each has 128 independent sums.

# %% [markdown] id=exercise-under-way
# ### Exercise: four under way
#
# `dot` adds up `x[i] * w[i]`. Thread `me` leaves its part in `out[me]`, and all parts together are the result. `n` may be any number. The loop below takes one number at a time. Leave it for the rest, and put one before it that has four numbers of each array under way at once.

# %% id=21-under-way starter
dot = agt.Kernel(r"""
extern "C" __global__ void dot(int n, const float* x, const float* w, float* out)
{
    int me = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
    int i = me;
#pragma unroll 1
    for (; i < n; i += threads) {
        sum += x[i] * w[i];
    }
    out[me] = sum;
}
""")

# %% id=21-under-way solution
#   int i = me;
# +     for (; i + 3 * threads < n; i += 4 * threads) {
# +         float a = x[i], b = x[i + threads];
# +         float c = x[i + 2 * threads], d = x[i + 3 * threads];
# +         float e = w[i], f = w[i + threads];
# +         float g = w[i + 2 * threads], h = w[i + 3 * threads];
# +         sum += a * e + b * f + c * g + d * h;
# +     }

# %% id=21-under-way hints
# Read four numbers of each array into variables before you use the first.
#
# There may be fewer than four left. The last of the four is `x[i + 3 * threads]`, so let your loop run while `i + 3 * threads < n`.
#
# `for (; i + 3 * threads < n; i += 4 * threads) { float a = x[i], b = x[i + threads], ... }`, and the same for `w`.

# %% id=21-under-way explanation
# Compilers often do this for you, with `#pragma unroll 4`. They can't if there's a store in between, as long as they don't know that it leaves alone what's read next.

# %% id=21-under-way-check
check("21-under-way", dot)

# %% [markdown] id=copies-text
# ## A copy that's under way by itself
#
# A number that's under way needs a register to arrive in, even if you want it in shared memory. An **asynchronous copy** saves that detour: a thread starts it, and goes on.
#
# ```c
# #include <cuda_pipeline.h>
#
# // starts a copy of 4, 8 or 16 bytes; both addresses are multiples of that
# __pipeline_memcpy_async(&tile[i], &x[i], sizeof(float));
# // closes a group of copies
# __pipeline_commit();
# // waits for all groups but the last n
# __pipeline_wait_prior(n);
# ```
#
# That's like events, one floor up, but groups have no names. You count back from the newest one.

# %% [markdown] id=groups-text
# Say a thread starts copies of three tiles, A, B and C, and closes a group behind each. Then it calls `__pipeline_wait_prior(1)`. It does some work, closes one more group, with nothing in it, and calls `__pipeline_wait_prior(1)` again.

# %% id=21-groups guess
# Which of the three tiles are certainly there now? Type letters, as in `A C`.

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
# The first wait is for all groups but the last one, so it's for {first}. The empty group counts, too, so at the second wait "all but the last one" is all three. You'll use that soon: when a loop has nothing more to fetch in its last turns, it closes empty groups, and the number in `wait_prior` can stay the same.

# %% [markdown] id=mistakes-text
# A thread that has waited has waited for *its own* copies. If you need another thread's, that one has to wait as well, before you meet at a barrier. This kernel forgets to meet. A GPU may get it right all the same, but here it's found each time:

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
# The blocks share out tiles of 256 numbers: a block takes tile `blockIdx.x`, and then every `gridDim.x`-th one. For each number it writes the sum of the number and its two neighbours in the tile, where the first and the last count as neighbours. So far it fetches a tile, waits, and computes. Let the next tile come by an asynchronous copy while this one is computed. (Where can it land meanwhile?) `n` is a multiple of 256.

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
# The next tile is on its way while this one is computed. How often does a warp still wait? That's the next guess.

# %% id=21-next-tile-check
check("21-next-tile", smooth)

# %% [markdown] id=still-text
# ### Who still waits?
#
# Let each block have nine tiles. In our model, the version that you were given waits for memory in each turn: some 330 clocks, and then it computes for 90. The solution starts the next tile's copy before it waits for this one. A copy has instructions of its own, so a turn computes for 135.

# %% id=21-still guess
# In how many of the nine turns does a warp wait for memory now, in our model?

# %% id=21-still reveal
in_turn = agt.Kernel(r"""
extern "C" __global__ void in_turn(int n, const float* x, float* y)
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
nine = 9 * SMS * 256
given = nine, x, agt.zeros(nine).sync()
before = agt.show_warps(in_turn, *given, grid=SMS, block=256)
ahead = agt.show_warps(solved("21-next-tile"), *given, grid=SMS, block=256)


def clocks(pieces):
    return [(since * SPEC.clock_mhz, end * SPEC.clock_mhz) for since, end in pieces]


def turns_of(seen):
    """Warp 0's waits, and for each turn a numbered bar that ends where the next turn's wait begins."""
    waits, all_clocks = clocks(seen.waits()), seen.timeline.us * SPEC.clock_mhz
    meets = [at for at, _ in clocks(seen.waits(state="barrier"))][::2]  # behind a turn's wait
    cuts = sorted([*meets, *(since for since, _ in waits), all_clocks])
    work = {"colour": "#e69f00", "meaning": "computes (number: its turn)"}
    yield LaneBar(0, cuts[0], **work)
    for since, end in waits:
        yield LaneBar(since, end, "#9fd0f5", "", "waits for global memory", "////")
    for turn, at in enumerate(meets, 1):
        begin = max((end for _, end in waits if at - 40 < end <= at), default=at)
        yield LaneBar(begin, next(cut for cut in cuts if cut > at), words=f"{turn}", **work)


def draw_turns():
    """Both versions, turn by turn, and the second one's copies."""
    copy = {"colour": "#56b4e9", "meaning": "copy under way (number: its tile)"}
    flights = clocks(ahead.timeline.flights[0])
    copies = [LaneBar(*flight, words=f"{i}", **copy) for i, flight in enumerate(flights, 1)]
    lanes = [("given: warp 0", [*turns_of(before)]), ("solution: warp 0", [*turns_of(ahead)])]
    lanes += [(f"copies to tile[{i}]", copies[i::2]) for i in range(2)]
    figure, axes = plt.subplots(figsize=(9.5, 2.6), layout="constrained")
    draw_lanes(axes, lanes)
    axes.set(xlabel="clocks, modelled")
    shown(
        figure,
        "The given version waits in each of nine turns. The solution waits in turns 1, 3, 5, 7 and 9; "
        "before each of these waits, copies of two tiles start, so the second one comes in meanwhile.",
        "The other seven warps do the same. The solution's first piece only starts copies.",
    )


wait = sum(end - since for since, end in clocks(ahead.waits())) / len(ahead.waits())
reveal(
    "21-still", len(ahead.waits()), draw_turns, wait=wait,
    one=before.timeline.us * SPEC.clock_mhz, two=ahead.timeline.us * SPEC.clock_mhz,
)

# %% id=21-still told truth=5
# In every other turn. The copies of tiles 1 and 2 start right behind each other. So tile 2 comes in while the warp computes turn 1, and turn 2 needn't wait. But then turn 2 is over so soon that tile 3, whose copy it has started, isn't there yet, and turn 3 waits. Five waits of {wait:.0f} clocks and nine turns of 135 are {two:,.0f} clocks, instead of {one:,.0f}.
#
# On an H200, the given version took 2.9 µs by CUPTI, the solution 2.2, and an empty kernel 0.5. The waits alternated there too, but only in the first turns (by `clock64`). Later ones were mostly short.

# %% id=still-check tags=asserts
assert len(before.waits()) == 9
assert len(ahead.waits()) == 5
assert abs(9 * (330 + 90) / SPEC.clock_mhz - before.timeline.us) < 0.05
assert abs(5 * wait + 9 * 135 - ahead.timeline.us * SPEC.clock_mhz) < 20

# %% [markdown] id=exercise-ring
# ### Exercise: repair the ring
#
# To wait even less, have several tiles under way, in a **ring** of places that are used in turns. In `ring`, each thread adds up one number of each tile, number `255 - me`, which *another* thread has fetched. It's meant to have three tiles under way while it reads a fourth, with one barrier in each turn. Somebody wrote it late in the evening, and it has three mistakes. One of them you can find by counting places. The check tells you about the others.

# %% id=21-ring starter
ring = agt.Kernel(r"""
#include <cuda_pipeline.h>
constexpr int PLACES = 3;

__device__ void fetch(float* place, const float* x, int tile, int tiles)
{
    if (tile < tiles) {
        __pipeline_memcpy_async(&place[threadIdx.x], &x[tile * 256 + threadIdx.x], 4);
        __pipeline_commit();
    }
}

extern "C" __global__ void ring(int tiles, const float* x, float* y)
{
    __shared__ float place[PLACES][256];
    float sum = 0.0f;
    for (int t = 0; t < 3; t++) {
        fetch(place[t % PLACES], x, t, tiles);
    }
    for (int t = 0; t < tiles; t++) {
        __pipeline_wait_prior(3);
        __syncthreads();
        fetch(place[(t + 3) % PLACES], x, t + 3, tiles);
        sum += place[t % PLACES][255 - threadIdx.x];
    }
    y[threadIdx.x] = sum;
}
""")

# %% id=21-ring solution
# - constexpr int PLACES = 3;
# + constexpr int PLACES = 4;
#   if (tile < tiles) {
#   __pipeline_memcpy_async(&place[threadIdx.x], &x[tile * 256 + threadIdx.x], 4);
# - __pipeline_commit();
#   }
# + __pipeline_commit();
# - __pipeline_wait_prior(3);
# + __pipeline_wait_prior(2);

# %% id=21-ring hints
# How many groups has a thread closed when it waits in turn t, and which of them is tile t? Only the ones *behind* it may still be under way.
#
# In turn t the loop starts a copy of tile t + 3 and reads tile t. With three places these two are in the same one.
#
# In the last turns there's nothing to fetch. Then nothing is closed either, and `wait_prior` leaves out groups that it mustn't. Close a group in every turn.

# %% id=21-ring explanation
# Three tiles under way need four places, since one is being read. And one barrier is enough: a thread that has passed the barrier of turn t knows that everybody is done with tile t - 1, and that's the place into which it fetches tile t + 3.

# %% id=21-ring-check
check("21-ring", ring)

# %% [markdown] id=key-points
# ## Key points
#
# - A warp waits when it uses a number, and not when it asks for it. Meanwhile other warps work, and changing to them costs nothing.
# - What has to be under way is the bandwidth times the latency. Many warps can do that, or several loads of each warp. So high occupancy isn't a goal, but one of two ways.
# - An asynchronous copy needs no register to arrive in. It pays where registers are scarce, or where few warps must have several tiles under way.
# - Wait for your own group of copies, and then meet the others at a barrier.
# - With one barrier a turn, a ring needs one place more than it has tiles under way.
#
# New words are in the [glossary](../docs/glossary.md). **Next:** `__syncthreads()` still makes everybody wait for everybody. [21b_meet_in_phases](21b_meet_in_phases.ipynb) takes it apart.

# %% id=score
score("21")

# %% id=progress
progress("21")
