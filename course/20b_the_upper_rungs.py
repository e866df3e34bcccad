"""Source of notebooks/20b_the_upper_rungs.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The upper rungs
#
# In [20](20_the_ladder.ipynb) you counted what a matrix product asks of each memory, and asked for less. That gave 71 % of cuBLAS's speed. Some of the rest is a matter of banks. For most of it, a block stands in front of a barrier and waits for numbers to arrive.
#
# **So what does it take to wait less, and do you catch up with cuBLAS?**
#
# After this page you can fetch the next tile while this one is multiplied, say why two tiles need only one barrier, and tell what an asynchronous copy is good for. The encore takes these ideas to softmax and attention.
#
# | | |
# |---|---|
# | Time | 55 minutes, and 45 for the challenge. On another day, 60 for the encore |
# | You need | [20_the_ladder](20_the_ladder.ipynb). The page runs on the simulated device, also if you have a GPU; its times were measured on an H200, but for those of the challenge |

# %% id=setup
import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)
from asyncgpu_course.ladder import (
    attention_share, climb, in_a_row, ms, needs, registers_of, rung, share, stairs,
)
from asyncgpu_course.shown import LaneBar, draw_lanes, shown

agt.use("sim")

# %% [markdown] id=warps-text
# ## First, tidy up
#
# Page 20 ended with shared memory a third too slow, because the reads of `b` collide. So the next rung, `warps`, is `wide` without its bank conflicts. In every turn of the loop over `k`, a lane reads four numbers of `a` that belong to its row and four of `b` that belong to its column (and then four more of each). A warp of `wide` stands in two rows of sixteen threads, and one of `warps` in eight rows of four:

# %% id=draw-warps tags=helpers
def draw_warps():
    """The lanes of a warp of `wide` and of `warps`, and the first bank of each float4 that they read."""
    figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for x, y, name, rows, columns, step, meet in (
        (0, 3, "wide", 2, 16, 8, "a takes 2 passes, b takes 8"),
        (19.5, 0, "warps", 8, 4, 4, "a takes 2, b takes 4"),
    ):
        lanes = [(i, j, columns * i + j) for i in range(rows) for j in range(columns)]
        cells = [(i, j, f"{n}", "#c8c8c8" if n < 8 else "#f2f2f2") for i, j, n in lanes]
        cells += [(i, -1.3, f"{step * i % 32}", "#9fc9e8") for i in range(rows)]
        cells += [(-1.3, j, f"{step * j % 32}", "#f5c76a") for j in range(columns)]
        for down, right, words, colour in cells:
            at = x + right, y + down
            axes.add_patch(plt.Rectangle(at, 1, 1, facecolor=colour, edgecolor="0.4", lw=0.8))
            axes.text(at[0] + 0.5, at[1] + 0.5, words, ha="center", va="center", fontsize=8)
        axes.text(x + columns + 0.3, y - 0.8, "b", va="center")
        axes.text(x - 1.5, y + rows / 2, "a", ha="right", va="center")
        axes.text(x - 1.3, y - 1.6, name, fontsize=10)
        axes.text(x - 1.3, y + rows + 0.6, meet, va="center", fontsize=9)
    axes.set(xlim=(-2.2, 25), ylim=(9, -3.2), aspect="equal")
    axes.set_axis_off()
    shown(
        figure,
        "wide: 2 x 16 lanes read 2 float4 of a and 16 of b, which begin in the banks 0, 8, 16, 24, "
        "four times over. warps: 8 x 4 lanes read 8 float4 of a, in the banks 0, 4 and so on to 28, "
        "and 4 of b, in the banks 0, 4, 8 and 12. In both, a takes 2 passes. b takes 8, and then 4.",
        "Grey: the lanes, the first quarter darker. "
        "Coloured: the float4s that they read, with the bank where each begins.",
    )

# %% id=warps
draw_warps()

# %% [markdown] id=warps-read
# A quarter of the warp has its turn in each pass. In `wide`, a quarter wants eight `float4`s of `b`, which crowd into half of the banks, so each quarter takes two passes. In `warps` it wants four that lie side by side, and one pass is enough. In `a` neighbours want the same, so two passes do for all, as before. The tile of `a` is padded, too. What's that worth?

# %% id=warps-needs
by_warps = climb("warps")
needs(climb("wide"), by_warps)
stairs("registers", "wide", "warps")

# %% [markdown] id=warps-after
# Six points, and shared memory has crossed the line. Now no memory is too slow any more. But the black mark says 1.7. If no memory is busy all the time and the arithmetic isn't either, look for somebody who *waits*.

# %% [markdown] id=steps-text
# ## A step of a block
#
# Look at what a block does in one step. It waits for the numbers of two tiles, puts them into shared memory, meets at a barrier, multiplies, and meets again, so that nobody overwrites a tile that somebody still reads. In the picture that's the upper lane, with the first three steps of `warps`:

# %% id=draw-steps tags=helpers
def draw_steps():
    """What a block does, step by step: a drawing, and not to scale."""
    wait = {"colour": "#9fd0f5", "hatch": "////", "meaning": "waits for global memory"}
    put = {"colour": "#cc79a7", "meaning": "puts the numbers into the tile"}
    meet = {"colour": "black", "meaning": "barrier"}
    work = {"colour": "#e69f00", "meaning": "multiplies"}
    fetch = {"colour": "#56b4e9", "meaning": "the next numbers are on their way"}

    def step(t, tile):
        yield LaneBar(t, t + 0.6, **put)
        yield LaneBar(t + 0.6, t + 0.75, **meet)
        yield LaneBar(t + 0.75, t + 3.75, words=f"tile {tile}", **work)

    one, two, under_way = [], [LaneBar(0, 2, **wait)], []
    for tile in range(3):
        t = 5.9 * tile
        one += [LaneBar(t, t + 2, **wait), *step(t + 2, tile), LaneBar(t + 5.75, t + 5.9, **meet)]
        t = 2 + 3.75 * tile
        two += step(t, tile)
        under_way += [LaneBar(t + 0.75, t + 2.75, words=f"tile {tile + 1}", **fetch)]
    figure, axes = plt.subplots(figsize=(9, 2.1), layout="constrained")
    draw_lanes(axes, [("warps", one), ("ahead", two), ("its loads", under_way)])
    axes.set(xlabel="time (a drawing, not to scale)")
    axes.set_xticks([])
    shown(
        figure,
        "warps, in each of three steps: waits, puts the numbers into the tile, barrier, multiplies, "
        "barrier. ahead: waits once, and then in each step: puts the numbers into the tile, barrier, "
        "multiplies, while the numbers of the tile after that are on their way.",
    )

# %% id=steps
draw_steps()

# %% [markdown] id=ahead-text
# You've met this picture in chapter 02b, with copies and kernels. The cure is the same too: start fetching the next tile before you multiply this one. A load doesn't hold up a thread until it needs the number, so the next rung, `ahead`, simply loads the next tile's numbers into registers and multiplies meanwhile. It has **two** tiles of each matrix in shared memory, and uses them in turns:
#
# ```c
# // ask for the numbers of the first tile
# for (int t = 0, now = 0; t < n / DEEP; t++, now ^= 1) {
#     // put the numbers that have come into tile `now`
#     __syncthreads();
#     // ask for the next numbers (in the last step there are none)
#     // multiply what's in tile `now`
# }
# ```
#
# The barrier behind the multiplication is gone. Is that allowed? Imagine one thread that's faster than all the others.

# %% id=20b-lag guess
# The fast thread already puts its numbers into the tile of step `t`. Of which steps may slow threads still be reading tiles?
#
# - `none`: of none: the barrier has seen to that
# - `one`: of step t - 1 at most
# - `two`: of step t - 1 or t - 2
# - `any`: of any, since there's only one barrier

# %% id=20b-lag reveal
pair = by_warps, climb("ahead")
steps = 256 // 8
reveal("20b-lag", "one", lambda: stairs("wide", "warps", "ahead"))

# %% id=20b-lag told truth=one
# The fast thread has passed the barrier of step t - 1. Everybody had to arrive there, and whoever arrives has finished step t - 2. So the slow ones can be at step t - 1 at most, and they read the *other* tile. That's why two tiles are enough, and why one barrier a step is enough. Loads on their way and a barrier less are worth eight to nine points together. (The drawing saves more than that, but it's of one block. Two of them share an SM, so one may multiply while the other waits.)

# %% id=lag-check tags=asserts
assert [r.counts.barriers // r.counts.blocks for r in pair] == [2 * steps, steps]
assert not any(r.counts.bank_conflicts for r in pair)
assert 0.8 < by_warps.counts.shared_wavefronts / (by_warps.flops / 256) < 0.82
assert 1.7 < ms("warps") / 2.05 < 1.75  # pure arithmetic takes 2.05 ms
assert 0.055 < share("warps") - share("wide") < 0.065
assert 0.08 < share("ahead") - share("warps") < 0.09

# %% [markdown] id=exercise-ahead
# ### Exercise: one barrier a step
#
# Here's a small product with tiles of 16 x 16, one element a thread, and two barriers a step. Give it two tiles of each matrix and one barrier a step, and ask for the next numbers before you multiply. `n` is a multiple of 16.

# %% id=20b-ahead starter
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

# %% id=20b-ahead solution
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

# %% id=20b-ahead hints
# `tile_a[2][16][16]`, and a variable `now` that's 0 and 1 in turns.
#
# Before the loop, read the first two numbers into registers. In the loop: put them into tile `now`, barrier, read the next two into the same registers, multiply from tile `now`.
#
# There's no next number in the last step: `if (t + 16 < n)`.

# %% id=20b-ahead explanation
# The load of the next numbers is under way during sixteen multiplications, and nobody waits for it until the next turn.

# %% id=20b-ahead-check
check("20b-ahead", ahead)

# %% [markdown] id=copies-text
# ## Larger still, and copies that nobody waits for
#
# The next rung, `larger`, takes the cure of page 20 once more. With 8 x 16 elements for each thread, 24 numbers are enough for the 128 products of a turn, where it took 16 for 64. Together with tiles twice as deep, that makes 92 % of cuBLAS in 47 lines:

# %% id=larger-needs
needs(climb("ahead"), climb("larger"))

# %% [markdown] id=async-text
# It has a price, though. The numbers on their way wait in registers, and `larger` already fills 247 of the 255 that a thread can have. Since 2020, GPUs can copy from global to shared memory without a register in between. A thread starts such an **asynchronous copy** and goes on:
#
# ```c
# #include <cuda_pipeline.h>
#
# __pipeline_memcpy_async(&tile_b[next][i][col], &b[i * n + col], sizeof(float4));
# __pipeline_commit();        // closes a group of copies
# // compute something
# __pipeline_wait_prior(0);   // now this thread's copies have come,
# __syncthreads();            // and everybody's
# ```
#
# The rung `copies` is `larger` with this instead of the loads.

# %% id=20b-copies guess
# How fast is it on the H200 at 4096 x 4096, compared with `larger`?
#
# - `much`: at least a quarter faster
# - `tenth`: about a tenth faster
# - `same`: within 3 % of it
# - `slower`: a tenth slower

# %% id=20b-copies reveal
gain = ms("larger") / ms("copies")
truth = "much" if gain > 1.2 else "tenth" if gain > 1.03 else "same" if gain > 0.97 else "slower"
reveal("20b-copies", truth, lambda: stairs("warps", "ahead", "larger", "copies"), gain=gain)

# %% id=20b-copies told truth=same
# {gain:.2f} times as fast, and at 1024 x 1024 it's an eighth slower. There was nothing to gain, because the loads into registers had hidden the wait already: leave them out of `larger` altogether, and it's no faster (2.95 ms, with wrong results). And there was something to lose: `a` is turned on its way, so its numbers are copied one by one, with four copies for each load of `larger`. At 1024 they're the whole loss: give `copies` an `a` that was turned before, and 174 µs become 152, as with `larger`. What the copies do give you is *room* in the registers: 211 instead of 247 for each thread.

# %% id=copies-check tags=asserts
assert 1.1 < ms("copies", 1024) / ms("larger", 1024) < 1.15
assert 0.91 < share("larger") < 0.93

# %% [markdown] id=top-text
# ## The last rung
#
# `top` asks early one floor up as well: while it multiplies for one `k`, each thread reads the numbers for the *next* one from shared memory. It also has a larger block, one for each SM. This is the loop, without its details:
#
# ```c
# for (int t = 0; t < n / DEEP; t++) {
#     // start copying the tiles of step t + 1
#     for (int k = 0; k < DEEP; k++) {
#         if (k == DEEP - 1) {  // the next product is the first of step t + 1
#             __pipeline_wait_prior(0);
#             __syncthreads();
#         }
#         // read the numbers of the next product
#         // multiply those that were read a turn ago
#     }
# }
# ```
#
# The barrier stands in the middle of a step now, and one is still enough: the numbers of the step's last product are in registers by then, so nobody reads tile `t` any more. `print(rung("top").source)` shows you all 77 lines.
#
# | rung | a block computes | threads | a thread computes | registers |
# |---|---|---|---|---|
# | `ahead` | 128 x 128 | 256 | 8 x 8 | 126 |
# | `larger` | 128 x 128 | 128 | 8 x 16 | 247 |
# | `copies` | 128 x 128 | 128 | 8 x 16 | 211 |
# | `top` | 128 x 256 | 256 | 8 x 16 | 208 |
#
# An SM has 65,536 registers, so there's room for two blocks of each, and for one of `top`. (That `top` keeps 24 more numbers than `copies` in fewer registers is nvcc's doing, and we don't know how.)
#
# Two things have changed at once, so we took them apart on the H200, at 4096 x 4096. Compare these numbers only with each other: they're all from `top`'s code and from one run, and without both changes that code takes 3.20 ms where `copies`, which does the same, takes 2.90. Up here, nvcc's choice of registers makes such differences.
#
# | `top`, with a block of | reads as they're needed | reads a turn ahead |
# |---|---|---|
# | 128 x 128 | 3.20 ms | 3.16 ms |
# | 128 x 256 | 3.03 ms | 2.75 ms |
#
# In this code, then, the early reads pay for a large block. It needs fewer numbers from global memory, but it has nobody beside it to hide its waits.

# %% [markdown] id=sign-text
# All indices in this kernel are of type `int`, and none is ever negative. So we could as well write `unsigned int` everywhere, and it would compute the same.

# %% id=20b-sign guess
# How fast is it with `unsigned int`, on the H200 at 4096 x 4096?
#
# - `faster`: about a tenth faster
# - `same`: within 2 % of it
# - `slower`: about a tenth slower
# - `half`: about half as fast

# %% id=20b-sign reveal
sign = 100 * ms("top") / ms("top unsigned")
truth = "half" if sign < 70 else "slower" if sign < 96 else "same" if sign < 102 else "faster"
reveal("20b-sign", truth, lambda: stairs("top", "top unsigned"), sign=sign)

# %% id=20b-sign told truth=slower
# It has {sign:.0f} % of `top`'s speed. In C a sum of two `int`s must not overflow, so the compiler may assume that it doesn't. Then the next element is always so and so many bytes further on, and it can keep one address and move it along. A sum of `unsigned` is allowed to wrap around at 32 bits, where the address, which has 64, would just go on. So the compiler has to compute the index as it's written, and then the address. That costs a few instructions in each turn and, to our surprise, 244 registers a thread instead of 208. We found it by accident, when everything else was right and 8 of the last 10 % were still missing.

# %% [markdown] id=cublas-text
# ## So do you catch up?
#
# Here are all the rungs, and the last one at three sizes:

# %% id=cublas
names = "naive coalesced shared registers wide warps ahead larger copies top"
stairs(*names.split())
at = {n: share("top", n) for n in (2048, 4096, 8192)}
for n, part in at.items():
    ours = 2 * n**3 / ms("top", n) / 1e9
    print(f"{n} x {n}: top {ours:.1f} TFLOP/s, cuBLAS {ours / part:.1f}, so {part:.0%}")

# %% [markdown] id=cublas-read
# It's 98 % at 4096 x 4096, and at 8192 it's ahead. cuBLAS is about as fast at all three sizes, but `top` gets faster. That's not because of idle SMs: it has 128, 512 or 2,048 blocks, one on each of the 132 SMs at a time, so 97 % of these are busy at any size. A longer loop makes up for more of its beginning and end, which nothing hides. Whether that's all, we don't know.
#
# And why does nobody reach the 67 TFLOP/s of the data sheet? It isn't the clock, which stayed at its 1,980 MHz under `top` and under cuBLAS. It's mostly the registers. They lie in two banks that deliver one each in a clock, and a multiply-add such as `c0 += a0 * b0` reads three of them. That takes two clocks. But a number can be kept for the next instruction: if that's `c1 += a0 * b1`, only `c1` and `b1` are read, and if they lie in different banks, one clock is enough. In nvcc's listings, that leaves 82 % of the speed for the upper rungs, so 55 TFLOP/s, and 71 % for `wide`. (That's worked out by rules that NVIDIA doesn't publish, and not measured; [fidelity](../docs/fidelity.md) has all rungs.)
#
# But don't be too proud. cuBLAS has a kernel for every shape, and ours only takes multiples of 256. And we didn't let it use TF32, which rounds each number to 10 bits behind the point and is several times as fast on the tensor cores.

# %% id=top-check tags=asserts
from statistics import geometric_mean

assert geometric_mean(at.values()) > 0.95
assert min(at.values()) > 0.91
assert geometric_mean(share("larger", n) for n in at) > 0.9
tflops = [2 * n**3 / ms("top", n) / 1e9 for n in at]
assert [round(it) for it in tflops] == [47, 50, 52]
assert [round(it / part) for it, part in zip(tflops, at.values())] == [50, 51, 51]
blocks = [n // 128 * n // 256 for n in at]
assert blocks == [128, 512, 2048]
assert all(0.969 < n / 132 / -(-n // 132) < 0.971 for n in blocks)
assert (rung("larger").lines, rung("top").lines) == (47, 77)
assert "STAGES = 2" in rung("top").source
table = [(it, registers_of(it), rung(it).block[0]) for it in ("ahead", "larger", "copies", "top")]
assert table == [("ahead", 126, 256), ("larger", 247, 128), ("copies", 211, 128), ("top", 208, 256)]
assert registers_of("top unsigned") == 244
assert (rung("copies").tile, rung("top").tile) == ((128, 128), (128, 256))

# %% [markdown] id=small-text
# ## And for small matrices?
#
# That was one size. Here's how a profiler saw the rungs from `registers` on at 4096 x 4096, one launch after the other, with cuBLAS at the end:

# %% id=large
in_a_row(4096, "registers").plot(
    title="4096 x 4096, on an H200", lanes=("streams",),
    lesson="Each rung is quicker than the last.",
)

# %% [markdown] id=small-guess
# Now the same for 1024 x 1024. `shared` computes 32 x 32 elements in a block, and the others have the tiles that you know. (An H200 has 132 SMs.)

# %% id=20b-small guess
# Which of these four is the fastest at 1024 x 1024?
#
# - `shared`: the third rung, with two barriers a step
# - `ahead`: loads on their way, 8 x 8 elements a thread
# - `larger`: 8 x 16 elements a thread
# - `top`: the last rung

# %% id=20b-small reveal
took = {name: ms(name, 1024) for name in ("shared", "ahead", "larger", "top")}
row = in_a_row(1024, "shared")
reveal(
    "20b-small", min(took, key=took.get),
    row.plot(
        title="1024 x 1024, on an H200", lanes=("streams",), highlight="ahead",
        lesson="The narrow bar at the end is cuBLAS.",
    ),
    blocks=1024 // 128 * 1024 // 256,
    us=", ".join(f"{name} {1000 * it:.0f}" for name, it in took.items()),
    yours=1000 * ms("own", 1024),
)

# %% id=20b-small told truth=ahead
# In µs: {us}. With tiles of 128 x 256, `top` has {blocks} blocks, so 100 SMs have nothing to do. `ahead` and `larger` have 64, and those of `ahead` have twice as many threads, each with half as much to do. `shared` keeps all SMs busy, but each of them with reading. cuBLAS takes half of `ahead`'s time, 56 µs. For 4096 it took a kernel with tiles of 256 x 128, and for 1024 one with 128 x 64: that's in their long names, which our pictures leave out. And what about *your* kernel of page 20, with its 4 x 4 elements and its 256 blocks? {yours:.0f} µs. It beats all four.

# %% [markdown] id=smaller-text
# It gets worse. This is what's left of the ladder at 256 x 256:

# %% id=small
for span in in_a_row(256, "naive"):
    print(f"{span.name:>9}: {span.duration:5.1f} µs on the H200 for 256 x 256")

# %% [markdown] id=small-after
# The second rung beats the last one by a factor of six, since the whole result is two of `top`'s blocks. `warps` and `ahead` have four, and there `ahead` is worth twice as much as it was: a block that's alone on its SM has nobody else to hide its waits. And cuBLAS takes two kernels, of 4.1 and 2.7 µs. It has tiles of 32 x 32, and so that all SMs have something to do, several blocks share the work of one tile. The second kernel adds up what they found.

# %% id=small-check tags=asserts
of_small = {span.name: span.duration for span in in_a_row(256, "naive")}
assert round(of_small["top"] / of_small["coalesced"]) == 6
assert [round(it.duration, 1) for it in in_a_row(256, "top").spans[1:]] == [4.1, 2.7]
gains = [of_small["warps"] / of_small["ahead"] - 1, ms("warps") / ms("ahead") - 1]
assert 1.9 < gains[0] / gains[1] < 2.1
long = [span.duration for span in in_a_row(4096, "registers")]
assert long == sorted(long, reverse=True)
assert all(abs(span.duration / 1000 / ms(span.name, 1024) - 1) < 0.03 for span in row.spans[:-1])
assert 0.5 < row.find("cuBLAS")[0].duration / row.find("ahead")[0].duration < 0.53
assert [rung(it).block[0] for it in ("ahead", "larger")] == [256, 128]

# %% [markdown] id=challenge-text
# ## Challenge: 256 x 256
#
# So climb once more, for `n` = 256. `small` returns the operation that multiplies, with a kernel of yours and any grid and block that you like. It computes in float32, so no number may lose bits on the way. `n` is a multiple of 128, and the check tries 128 and 256. The kernel below is the rung `shared`. At 256 on the simulated H200 it takes 11.41 µs: get below 6.5. (A real one took 9.5 for this kernel, and 6.8 for cuBLAS. What it takes for yours, you'd have to measure.) `parts(small)` prints the time, and how long each part of it would take without the others:
#
# - `latency`: a single warp's own way through the kernel
# - `blocks`: starting blocks, or waiting for earlier ones to end
# - `issue`: instructions, and `alu` those of them that compare, shift or work on bits
# - `sectors`: loads and stores, as L1 looks them up
# - `shared`: passes of shared memory
# - `memory`: bytes from L2 and from memory
#
# The whole takes at least the longest part and the launch's 1.07 µs. On top comes what a block can't do while it waits for its loads, which has no line of its own. (`contract=True` makes a product and a sum one instruction, as nvcc does.)

# %% id=parts-of tags=helpers
def parts(small, n=256):
    """Print the simulated time of a product's kernels, and what each bound of it would take."""
    a, b, c = (agt.zeros((n, n)).sync() for _ in range(3))
    with agt.microscope() as seen:
        small(n, a.borrow(), b.borrow(), c.borrow()).sync()
    for kernel in seen.kernels:
        each = ", ".join(f"{name} {us:.2f}" for name, us in kernel.bounds.items() if us > 0.05)
        print(f"{kernel.name}: {kernel.us:.2f} µs ({each})")

# %% id=20b-challenge starter
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

# %% id=20b-challenge solution
mine = agt.Kernel(
    r"""
extern "C" __global__ void mine(int n, const float* a, const float* b, float* c)
{
    __shared__ float tile_a[16][32], tile_b[32][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += 32) {
        for (int j = 0; j < 32; j += 16) {
            tile_a[y][x + j] = a[row * n + t + x + j];
            tile_b[y + j][x] = b[(t + y + j) * n + col];
        }
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
    return mine(n, a, b, c, grid=(n // 16, n // 16), block=(16, 16))

# %% id=20b-challenge hints
# An H200 has 132 SMs. How many blocks does `shared` have? And how many would there be with smaller tiles?
#
# With tiles of 16 x 16 there are four times as many blocks, but twice as many steps, and each begins with a wait. What did this page do about that? And what else makes for fewer waits?
#
# A block of 16 x 16 threads may well fetch 16 x 32 numbers of `a` and 32 x 16 of `b`: two of each for a thread. Then there are as few steps as before.

# %% id=20b-challenge explanation
# With tiles of 32 x 32 there are 64 blocks, and half of the SMs have nothing to do. (A real H200 took 9.4 µs for the kernel above, 6.9 with tiles of 16 x 16, 6.3 with the deeper ones of our answer, and 5.6 with two of each, used in turns. The model says 11.4, 6.7, 5.6 and 6.1. cuBLAS has 6.8.) No rung is the best one for every size. That's why a library has hundreds of kernels, and a table that says which to take.

# %% id=20b-challenge-check
check("20b-challenge", small)

# %% id=parts
parts(small)

# %% [markdown] id=key-points
# ## Key points
#
# - When no memory is busy all the time and the arithmetic isn't either, look for who waits. Ask for the next numbers before you use these.
# - Two tiles that are used in turns need only one barrier a step, because nobody can be more than one step behind.
# - What's on its way by an asynchronous copy needs no register. By themselves the copies gained next to nothing here, since loads into registers had hidden the waits already.
# - Every rung has a size for which it's wrong. Large tiles need large matrices.
# - On the lower rungs, counting tells you what holds a kernel up. On the upper ones you have to measure, and each change by itself.
#
# There's one more rung for another day: `tensor` multiplies halves on the tensor cores by `nvcuda::wmma`, in 0.42 ms where `top` takes 2.76. That's half of cuBLAS's speed for halves. (cuBLAS uses instructions that four warps execute together, but that isn't all of it.)
#
# If a word is new, look in the [glossary](../docs/glossary.md). **Next:** why does one warp wait while 64 don't? [21_inside_one_sm](21_inside_one_sm.ipynb)

# %% id=tensor-check tags=asserts
assert round(ms("tensor"), 2) == 0.42
assert round(ms("top"), 2) == 2.76
assert 0.45 < share("tensor") < 0.55

# %% id=score
score("20b")

# %% id=progress
progress("20b")

# %% [markdown] id=encore
# ## Encore: softmax, and attention
#
# *For the day when you read that attention was made faster without approximating anything.*
#
# Attention compares a query with `n` keys, turns these scores into weights by softmax, and adds up `n` values by their weights. As three kernels, that sends a square of n x n numbers to global memory and back, twice. Three exercises take those trips away.

# %% [markdown] id=exercise-fused
# ### Exercise: softmax behind the product
#
# Row `blockIdx.x` of a product has 128 numbers, and one warp computes them, four to a thread. They're in registers already, so do the softmax right there: `y` is to be the softmax of each row, and the scores themselves are never stored. Scores may be large. `__shfl_xor_sync(0xffffffff, v, far)` is the `v` of the lane whose number differs from mine in the bit `far`: if four lanes have 1, 5, 3 and 2, the larger of both is 5, 5, 3, 3 after `far` = 1, and 5 everywhere after `far` = 2.

# %% id=20b-fused starter
fused = agt.Kernel(r"""
extern "C" __global__ void fused(const float* a, const float* b, float* y)
{
    int row = blockIdx.x, lane = threadIdx.x;
    float score[4] = {};
    for (int k = 0; k < 32; k++) {
        for (int j = 0; j < 4; j++) {
            score[j] += a[row * 32 + k] * b[k * 128 + j * 32 + lane];
        }
    }
    float largest = fmaxf(fmaxf(score[0], score[1]), fmaxf(score[2], score[3]));
    for (int far = 1; far < 32; far *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, far));
    }
    // now that's the largest score of the row, in all lanes; your code
    for (int j = 0; j < 4; j++) {
        y[row * 128 + j * 32 + lane] = score[j];
    }
}
""")

# %% id=20b-fused solution
# - // now that's the largest score of the row, in all lanes; your code
# + float sum = 0.0f;
# + for (int j = 0; j < 4; j++) {
# +     score[j] = expf(score[j] - largest);
# +     sum += score[j];
# + }
# + for (int far = 1; far < 32; far *= 2) {
# +     sum += __shfl_xor_sync(0xffffffff, sum, far);
# + }
# - y[row * 128 + j * 32 + lane] = score[j];
# + y[row * 128 + j * 32 + lane] = score[j] / sum;

# %% id=20b-fused hints
# Replace each score by `expf(score[j] - largest)`, and add up your four.
#
# The loop over `far` gives every lane the largest of all. A sum of all lanes is made in the same way, with `+` instead of `fmaxf`.
#
# `for (int far = 1; far < 32; far *= 2) { sum += __shfl_xor_sync(0xffffffff, sum, far); }`, and then divide by `sum` where you store.

# %% id=20b-fused explanation
# This is called a fused epilogue. The product is never written and read again, and at 4096 x 4096 that would be 128 MiB of traffic for a softmax that costs next to nothing.

# %% id=20b-fused-check
check("20b-fused", fused)

# %% [markdown] id=way-text
# ### On the way
#
# That worked because a whole row fits into a warp's registers. A longer row doesn't, but softmax can be computed **on the way**: keep the largest number so far, and the sum so far of `exp(x - largest)`. When a larger number comes, shrink the sum by `exp(old - new)` and go on. Say 1, 3, 2 and 5 come, in this order. (`exp(-1)` is 0.37, and `exp(-2)` is 0.14.)

# %% id=draw-way tags=helpers
def draw_way(numbers=(1, 3, 2, 5)):
    """What each number adds to the sum so far, after each of them has come."""
    figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
    names, told = [], []
    for step, new in enumerate(numbers):
        largest, height = max(numbers[: step + 1]), 0.0
        for x, colour in zip(numbers[: step + 1], ("#56b4e9", "#e69f00", "#009e73", "#cc79a7")):
            bar = axes.bar(step, np.exp(x - largest), 0.55, height, color=colour)
            height += np.exp(x - largest)
        bar.set_label(f"of {new}")
        axes.text(step, height + 0.05, f"{height:.2f}", ha="center")
        names.append(f"{new} comes:\nlargest {largest}")
        told.append(f"after {new}: largest {largest}, sum {height:.2f}")
    axes.set_xticks(range(len(numbers)), names)
    axes.set(ylim=(0, 1.8), ylabel="sum so far")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    shown(figure, f"The sum so far, {'; '.join(told)}.")

# %% id=20b-way guess
# After which of them is the sum largest?
#
# - `1`: after the first one
# - `3`: after the second
# - `2`: after the third
# - `5`: after the last

# %% id=20b-way reveal
came = (1, 3, 2, 5)
sums = {str(x): sum(np.exp(y - max(came[: k + 1])) for y in came[: k + 1]) for k, x in enumerate(came)}
reveal("20b-way", max(sums, key=sums.get), draw_way, last=sums["5"])

# %% id=20b-way told truth=2
# The first number is the largest, so it counts 1. When 3 comes, that shrinks to 0.14, and the 3 counts 1. The 2 isn't larger, so nothing shrinks, and it adds 0.37. But when 5 comes, all that's there shrinks to 0.14 of itself, and the 5 counts 1: that's {last:.2f}. Nothing is lost: at any time the sum is what it would be if the largest had been known from the start.

# %% [markdown] id=exercise-rows
# ### Exercise: softmax on the way
#
# `rows` computes the softmax of each row of `x`, which has `n` numbers. A block is one warp and has one row. A thread may read each of its numbers twice, once for the sum and once for the result, and no more. Numbers may be large. (`largest` doesn't begin with `-INFINITY`, because a lane may have no number, and `-INFINITY - -INFINITY` is no number either.)

# %% id=20b-rows starter
rows = agt.Kernel(r"""
extern "C" __global__ void rows(int n, const float* x, float* y)
{
    x += blockIdx.x * n;
    y += blockIdx.x * n;
    float largest = -3e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = x[i];
        // your code: what this lane knows so far
    }
    for (int far = 1; far < 32; far *= 2) {
        float their_largest = __shfl_xor_sync(0xffffffff, largest, far);
        float their_sum = __shfl_xor_sync(0xffffffff, sum, far);
        // your code: what both lanes know together
    }
    for (int i = threadIdx.x; i < n; i += 32) {
        y[i] = expf(x[i] - largest) / sum;
    }
}
""")

# %% id=20b-rows solution
# - // your code: what this lane knows so far
# + float higher = fmaxf(largest, v);
# + sum = sum * expf(largest - higher) + expf(v - higher);
# + largest = higher;
# - // your code: what both lanes know together
# + float higher = fmaxf(largest, their_largest);
# + sum = sum * expf(largest - higher) + their_sum * expf(their_largest - higher);
# + largest = higher;

# %% id=20b-rows hints
# For each number `v`: `higher = fmaxf(largest, v)`, and then both the old sum and the new number are counted from `higher` on.
#
# `sum * expf(largest - higher) + expf(v - higher)` is the new sum.
#
# Two lanes merge in the same way: both sums shrink to the higher one, and are added.

# %% id=20b-rows explanation
# The largest and a sum: that's all one has to remember of a row, however long it is. Whatever was added up before is shrunk by the same factor.

# %% id=20b-rows-check
check("20b-rows", rows)

# %% [markdown] id=exercise-attend
# ### Exercise: attention on the way
#
# Now both together. A block is one warp, and has one query of 32 numbers, a number for each lane. For each of `n` keys, the loop below computes the score. In NumPy, the rest would be `w = np.exp(s - s.max())` and `y = w @ v / w.sum()`. Do it in **one** loop, with softmax on the way, and read each key and each value once. (Usually scores are divided first by the root of 32, the number of elements.)

# %% id=20b-attend starter
attend = agt.Kernel(r"""
extern "C" __global__ void attend(int n, const float* q, const float* k,
                                  const float* v, float* y)
{
    int lane = threadIdx.x;
    float mine = q[blockIdx.x * 32 + lane];
    float out = 0.0f;
    for (int j = 0; j < n; j++) {
        float score = mine * k[j * 32 + lane];
        for (int far = 1; far < 32; far *= 2) {
            score += __shfl_xor_sync(0xffffffff, score, far);
        }
        out += score * v[j * 32 + lane];  // without softmax
    }
    y[blockIdx.x * 32 + lane] = out;
}
""")

# %% id=20b-attend solution
# - float out = 0.0f;
# + float largest = -INFINITY, sum = 0.0f, out = 0.0f;
# - out += score * v[j * 32 + lane];  // without softmax
# + float higher = fmaxf(largest, score);
# + float shrink = expf(largest - higher), weight = expf(score - higher);
# + sum = sum * shrink + weight;
# + out = out * shrink + weight * v[j * 32 + lane];
# + largest = higher;
# - y[blockIdx.x * 32 + lane] = out;
# + y[blockIdx.x * 32 + lane] = out / sum;

# %% id=20b-attend hints
# Keep three things: the largest score so far, the sum of the exponentials so far, and `out`. All lanes have the same score, so no lane needs to ask another.
#
# With `higher = fmaxf(largest, score)`, the new key's weight is `expf(score - higher)`, and everything from before shrinks by `expf(largest - higher)`: the sum, and `out` as well.
#
# Divide once, behind the loop: `out / sum`.

# %% id=20b-attend explanation
# This is the idea of FlashAttention. No square of n x n weights is ever written, so the memory that attention needs grows with `n` and not with its square.

# %% id=20b-attend-check
check("20b-attend", attend)

# %% [markdown] id=attention-text
# `attention.cu`, beside the rungs, is this idea, known as FlashAttention, with everything else from the ladder. For 64 heads of 4,096 tokens on the H200, this is its speed compared with PyTorch's memory-efficient kernel for floats:

# %% id=attention
for head in (64, 128):
    print(f"heads of {head}: {attention_share(head):.0%}")

# %% [markdown] id=attention-after
# Ours is ahead with both, and PyTorch's does softmax on the way, too. Ours computes 46 to 47 TFLOP/s, where PyTorch's has 34 with heads of 64 and 45 with heads of 128. PyTorch's computes each product of floats as three products of shorter numbers on the tensor cores, and ours doesn't use those at all. (Don't be too proud here, either: hardly anybody computes attention with 32-bit floats. For halves on an H100, [FlashAttention 3](https://arxiv.org/abs/2407.08608) reports up to 740.)
#
# With heads of 128 we were at 88 % for a long time. Most of what was missing you could have found on this page: two barriers a step instead of four, and 8 x 16 results for each thread instead of 4 x 16, so that fewer numbers are read for each product. Two things were new to us. Sums needn't shrink whenever a larger score comes, only when it's so much larger that its weight might overflow. And it's the banks of registers again. A `float4` along a row of `q` and one along a row of `k` have the factors of each product at the same place, so in registers of the same bank. With `q` turned in shared memory, nvcc can avoid that, which made another 1 to 3 %.

# %% id=attention-check tags=asserts
assert attention_share(64) > attention_share(128) > 1
