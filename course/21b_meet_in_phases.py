"""Source of notebooks/21b_meet_in_phases.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Meet in phases
#
# `__syncthreads()` is the bluntest tool in a kernel. A thread that's early stands there and waits, although it may have other things to do. A thread that only *brings* something waits as well, although it needs nothing. And a warp that wants to fetch ahead is held back by a warp that's still computing.
#
# On the host you learned better in chapter 06: start something, get a future, do something else, and await it when you need it. **Can threads of a block have that too?**
#
# After this page you can meet at a barrier without standing still, wait for others without taking part, and build a queue between warps.
#
# | | |
# |---|---|
# | Time | 50 minutes, most of them for the three exercises |
# | You need | [21_inside_one_sm](21_inside_one_sm.ipynb), and futures from [06_await](06_await.ipynb) or [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb). The page runs on the simulated device, also if you have a GPU |

# %% id=setup
from itertools import pairwise

import matplotlib.pyplot as plt

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution,
)
from asyncgpu_course.shown import LaneBar, draw_lanes, shown

agt.use("sim")

# %% [markdown] id=phases-text
# ## A barrier is a future
#
# `__syncthreads()` does two things in one: it says "I'm here", and it waits for everybody else to say so. A `cuda::barrier` takes the two apart.
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
# bar.wait(std::move(token));        // hands the token in; now everybody has done theirs
# ```
#
# Life at such a barrier comes in **phases**. Phase 0 lasts until there have been as many arrivals as `init` said. Then everybody who waits for it goes on, and phase 1 begins. The token that `arrive` gives you is a future of the phase in which you arrived.

# %% id=draw-phases tags=helpers
def lanes_of(lanes, words, told):
    """Draw lanes of (begin, end, kind, words), not to scale."""
    looks = {
        "work": {"colour": "#e69f00", "meaning": words[0]},
        "own": {"colour": "#009e73", "meaning": words[1]},
        "wait": {"colour": "#e6e6e6", "hatch": "////", "meaning": "waits"},
        "phase": {"colour": "#fff7e0"},
    }
    drawn = [
        (name, [LaneBar(a, b, words=said, **looks[kind]) for a, b, kind, said in bars])
        for name, bars in lanes
    ]
    figure, axes = plt.subplots(figsize=(8.5, 0.9 + 0.35 * len(lanes)), layout="constrained")
    draw_lanes(axes, drawn)
    axes.set(xlabel="time (a drawing, not to scale)")
    axes.set_xticks([])
    return figure, axes, told


def draw_phases():
    """Three threads that arrive, compute something of their own, and wait."""
    ready = 2, 5, 3.5
    lanes = []
    for number, at in enumerate(ready):
        own = at + 2.5
        bars = [(0, at, "work", "its part"), (at, own, "own", "something else")]
        if own < max(ready):
            bars.append((own, max(ready), "wait", ""))
        bars.append((max(own, *ready), 11, "work", "with all parts"))
        lanes.append((f"thread {number}", bars))
    told = "Three threads do their parts, arrive at different times, and go on with something else. "
    told += "Only thread 0, which is done with that before the last one has arrived, has to wait."
    words = "needs the others, or is needed", "needs nobody"
    figure, axes, told = lanes_of(lanes, words, told)
    for at, y in zip(ready, range(3)):
        axes.plot(at, y - 0.42, "v", color="#d55e00", clip_on=False)
    axes.axvline(max(ready), color="#d55e00", linestyle="--", zorder=0)
    axes.text(max(ready) - 0.1, -0.62, "phase 0", ha="right", va="bottom", color="#b04a00")
    axes.text(max(ready) + 0.1, -0.62, "phase 1", ha="left", va="bottom", color="#b04a00")
    shown(figure, told, "A triangle marks where a thread arrives. The phase ends with the last of them.")

# %% id=phases
draw_phases()

# %% [markdown] id=waker-text
# In chapter 12, a future inside a kernel had to be polled, because nobody rings when a word of global memory changes. Here somebody may. From Ampere on, the barrier is a word of shared memory in which the hardware counts arrivals, and from Hopper on, a warp that waits at it can be put aside until the phase ends or some time has passed. Before Hopper, `wait` looks again and again.

# %% [markdown] id=exercise-meanwhile
# ### Exercise: meanwhile
#
# Each thread puts a number into shared memory, and needs the number of the thread opposite. It also has something of its own to compute, `own(v)`, which takes a while and needs nobody. Nobody should wait before that's done, so arrive first, then compute, then wait. (All 64 threads are in one block. One `__syncthreads()` is allowed, behind `init`.)

# %% id=21b-meanwhile starter
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

# %% id=21b-meanwhile solution
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

# %% id=21b-meanwhile hints
# `init(&bar, 64)` by one thread, and a `__syncthreads()` behind it, so that nobody arrives at a barrier that isn't there yet.
#
# Write your number, then `auto token = bar.arrive();`, then compute, then `bar.wait(std::move(token));`.

# %% id=21b-meanwhile explanation
# Whatever you write before `arrive`, others see behind their `wait`. Whatever you write after it may come too late for them, and that's a race.

# %% id=21b-meanwhile-check
check("21b-meanwhile", meanwhile)

# %% [markdown] id=parity-text
# ## Wait without a token
#
# Only a thread that has arrived gets a token. But sometimes you want to wait for others without being one of those who are counted. For that there's `bar.wait_parity(p)`. Phases are numbered 0, 1, 2 and so on, and the **parity** of a phase says whether its number is even (0) or odd (1). The barrier only remembers the parity of the phase that's running. So `wait_parity(p)` waits for as long as the running phase has parity `p`, and goes on as soon as it doesn't.
#
# `wait_parity(0)`, called in phase 0, waits for the end of phase 0. Called in phase 1, it goes on at once.

# %% id=21b-parity guess
# A thread calls `wait_parity(1)` on a barrier that has just been made. Nobody has arrived. What happens?
#
# - `waits`: it waits for phase 1 to end
# - `first`: it waits for phase 0 to end
# - `on`: it goes on at once
# - `error`: there has been no phase 1, so that's an error

# %% id=21b-parity reveal
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
reveal("21b-parity", "on" if agt.d2h(went.borrow()).sync().all() else "waits")

# %% id=21b-parity told truth=on
# The running phase is phase 0, and its parity isn't 1. It's as if there had been a phase of parity 1 before the first, and it were over. This sounds like a quirk. You're going to need it in the last exercise.

# %% [markdown] id=count-text
# Here are 128 threads. Three warps arrive, and the fourth only waits:

# %% id=counted
counted = agt.Kernel(r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void counted()
{
    __shared__ barrier full;
    if (threadIdx.x == 0) init(&full, 128);
    __syncthreads();
    if (threadIdx.x < 96) {
        (void)full.arrive();  // (void) says: no token, thank you
    } else {
        full.wait_parity(0);
    }
}
""")

# %% id=21b-count guess
# What happens in `counted`?
#
# - `right`: the fourth warp goes on as soon as the other three have been there
# - `once`: the fourth warp goes on at once
# - `one`: three warps end, and the fourth is stuck
# - `all`: all four warps are stuck

# %% id=21b-count reveal
happened, complaint = "right", ""
try:
    counted(grid=1, block=128).sync()
except agt.errors.DeadlockError as error:
    complaint = str(error)
    happened = "one" if "and 31 more threads wait" in complaint else "all"
reveal("21b-count", happened, lambda: print(complaint))

# %% id=21b-count told truth=one
# `init` counts arrivals, and not threads of the block. Somebody who waits by parity doesn't arrive, so phase 0 lacks 32 arrivals for ever. On a GPU the kernel would hang without a word. The simulated device notices that nobody is left who could arrive.

# %% [markdown] id=exercise-bring
# ### Exercise: three bring, one takes
#
# In a block of 128 threads, the first three warps bring: each of their threads puts its number of `x` into `shared`. The fourth warp takes: its lane `i` writes `shared[i] + shared[i + 32] + shared[i + 64]` to `y[i]`. With the second `__syncthreads()` this is right, but everybody waits for everybody. Those who bring shouldn't wait at all. Use `full` instead, so that one `__syncthreads()` is left, behind `init`.

# %% id=21b-bring starter
bring = agt.Kernel(r"""
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;

extern "C" __global__ void bring(const float* x, float* y)
{
    __shared__ float shared[96];
    __shared__ barrier full;
    int me = threadIdx.x;
    if (me == 0) init(&full, 128);
    __syncthreads();
    if (me < 96) {
        shared[me] = x[me];
    }
    __syncthreads();
    if (me >= 96) {
        int lane = me - 96;
        y[lane] = shared[lane] + shared[lane + 32] + shared[lane + 64];
    }
}
""")

# %% id=21b-bring solution
# - if (me == 0) init(&full, 128);
# + if (me == 0) init(&full, 96);
#   shared[me] = x[me];
# + (void)full.arrive();
# - __syncthreads();
#   if (me >= 96) {
# +     full.wait_parity(0);

# %% id=21b-bring hints
# Who arrives, and how many are they? That's the number for `init`.
#
# Those who bring call `(void)full.arrive()` behind their store. The fourth warp calls `full.wait_parity(...)`, and doesn't arrive.
#
# It waits for phase 0 to end, so the parity is 0.

# %% id=21b-bring explanation
# If the count is too small, the phase ends before everything is there, and that's a race. Neither this nor a hang shows in the code that waits, so count the arrivals first.

# %% id=21b-bring-check
check("21b-bring", bring)

# %% [markdown] id=handover-text
# ## A queue inside an SM
#
# That barrier was for one time. If packets keep coming, you need two barriers for each place in shared memory: a phase of `full` ends when the place has been filled, and a phase of `empty` ends when it has been used.

# %% id=draw-handover tags=helpers
def draw_handover():
    """Two warps and two places: who waits for whom."""
    brings = [(0, 2, "work", "0 → A"), (2, 4, "work", "1 → B"), (4, 5, "wait", "")]
    brings += [(5, 7, "work", "2 → A"), (7, 8, "wait", ""), (8, 10, "work", "3 → B")]
    takes = [(0, 2, "wait", ""), (2, 5, "own", "0 from A"), (5, 8, "own", "1 from B")]
    takes += [(8, 11, "own", "2 from A"), (11, 14, "own", "3 from B")]
    lanes = [("warp 0", brings), ("warp 1", takes)]
    for name, ends in (("full[A]", (0, 2, 7, 15)), ("empty[A]", (0, 5, 11, 15))):
        phases = enumerate(pairwise(ends))
        lanes.append((name, [(*at, "phase", f"phase {k}") for k, at in phases]))
    told = "Warp 0 brings packet 0 to place A and packet 1 to B, then waits until warp 1 has used A. "
    told += "Warp 1 waits for packet 0, and from then on it is never idle. "
    told += "Phase k of full[A] ends when A has been filled for the k-th time, counted from 0, "
    told += "and phase k of empty[A] when A has been used for the k-th time."
    figure, axes, told = lanes_of(lanes, ("brings a packet", "uses a packet"), told)
    figure.set_figheight(3.2)
    for marker, colour, times in (("v", "#b04a00", (2, 4, 7, 10)), ("^", "#a0508a", (5, 8, 11, 14))):
        for k, at in enumerate(times):
            axes.plot(at, 0.5, marker, color=colour)
            axes.text(at + 0.15, 0.5, "AB"[k % 2], color=colour, va="center", fontsize=9)
    axes.set_xlim(0, 14.6)
    shown(figure, told, "▼ place A or B is full, ▲ it's empty. Below: the phases of A's two barriers.")

# %% id=handover
draw_handover()

# %% [markdown] id=specialised-text
# The large kernels of today are built like this. One warp does nothing but start copies, the others multiply, and no `__syncthreads()` holds them all up. It's the queue of chapter 11, inside one SM.
#
# Two things can go wrong. `full.arrive()` doesn't wait for copies that the thread has started with `__pipeline_memcpy_async`, so it would say "full" while they're still on their way. So wait for it first, or have it counted itself: with `cuda::memcpy_async(..., full)`, the phase can't end before the copy has. From Hopper on, the TMA, a unit that copies whole tiles, counts its bytes at the barrier. In the exercise, ordinary stores will do.
#
# And a thread that waits by parity must never be two phases behind. If it waits for phase 0 and phase 1 is running, it goes on. If phase 2 is running, that looks like phase 0 to it, so it would wait once more, perhaps for ever. In a queue this can't happen, because each side waits for the other.

# %% [markdown] id=exercise-handover
# ### Exercise: hand over
#
# Warp 0 brings, and warp 1 adds up. There are `turns` packets of 32 numbers, and two places. In turn k, warp 0 puts packet k into place `k % 2`, once that's empty. Warp 1 adds what's in it, in reverse order, once it's full. The barriers are there. Put the calls where they belong.
#
# (The arrivals of turn k end phase `k / 2` of their barriers. Before you type: with which `p` does `empty[0].wait_parity(p)` let warp 0 pass in turn 0?)

# %% id=21b-handover starter
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

# %% id=21b-handover solution
#   for (int k = 0; k < turns; k++) {
# +     empty[k % 2].wait_parity(1 - k / 2 % 2);
#   place[k % 2][lane] = x[k * 32 + lane];
# + (void)full[k % 2].arrive();
#   for (int k = 0; k < turns; k++) {
# +     full[k % 2].wait_parity(k / 2 % 2);
#   sum += place[k % 2][31 - lane];
# + (void)empty[k % 2].arrive();

# %% id=21b-handover hints
# Warp 0 waits for `empty`, and arrives at `full`. Warp 1 waits for `full`, and arrives at `empty`. Nobody waits where it arrives, so there are no tokens: it's `wait_parity`.
#
# Place `k % 2` is used for the `k / 2`-th time, so warp 1 waits for phase `k / 2` of `full`, whose parity is `k / 2 % 2`.
#
# Warp 0 waits for the phase before: `empty[k % 2].wait_parity(1 - k / 2 % 2)`. The first time for each place, it goes on at once.

# %% id=21b-handover explanation
# If the copies themselves arrive at the barrier (`cuda::memcpy_async(&place[k % 2][lane], &x[k * 32 + lane], 4, full[k % 2])` before the `arrive`), the numbers never pass through warp 0's registers.

# %% id=21b-handover-check
check("21b-handover", handover)

# %% [markdown] id=key-points
# ## Key points
#
# - A barrier with phases is a future: `arrive` gives you a token, and `wait` awaits it. In between you can do something else.
# - Whatever a thread writes before it arrives, the others see once they've waited. Whatever it reads before it arrives, they may then overwrite, and that's what `empty` is for.
# - A thread may wait without arriving, by parity, and arrive without waiting. So `init` counts arrivals, and not threads of the block. By parity, nobody may be two phases behind.
# - A queue needs two barriers for each place: one says that it's full, the other that it's empty.
#
# If a word is new, look in the [glossary](../docs/glossary.md). That was the last page. If you came all the way from 00: what runs inside an SM, what runs on streams and what runs in Python turned out to be the same few ideas. Start early, wait late, and know who waits for whom.

# %% id=score
score("21b")

# %% id=progress
progress("21b")
