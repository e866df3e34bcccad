"""Source of notebooks/11_the_gpu_decides.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The GPU decides
#
# Many programs go round and round until nothing changes any more, and after each round Python asks the GPU: *are we there yet?* **What does it cost to ask? And what if nobody had to?**
#
# After this page you can move a loop, and the decision that ends it, into a kernel, let a block or a whole grid agree that it's over, and say when none of this pays.
#
# | | |
# |---|---|
# | Time | 45 minutes, and 50 for the encores, half of them for the challenge |
# | You need | [04_combinators](04_combinators.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and, from [02c_tiles](02c_tiles.ipynb), what a barrier is. You don't need a GPU |

# %% id=setup
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, shown, solution, solved,
)

device = agt.use("auto")
stream = agt.create_stream()
device

# %% id=tools tags=helpers
# Recordings and drawings. You needn't read this.
def some_numbers(n):
    a = agt.pin(np.random.default_rng(0).uniform(1, 1000, n).astype(np.float32))
    return a, agt.h2d(a, "numbers").sync().share()


def recorded(run, *args):
    """What a run returns, and its trace.

    A real Python is slow right after a pause, so with a GPU it runs twice, and the second run counts.
    """
    with agt.record():
        if not device.simulated:
            run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def on_an_h200(*names):
    """Recordings, which come with the course; prints what they show, and how long it took."""
    traces = [agt.Trace.load_recording(name) for name in names]
    for h200 in traces:
        print(f"{h200.metrics().makespan:5.0f} µs on an H200: {h200.about['shows']}")
    return traces


def maze(size, seed=0):
    """1 where one can walk, 0 where there is a wall; dug from the corner, often on from the newest end."""
    rng, free, ends = np.random.default_rng(seed), np.zeros((size, size), np.uint8), [(0, 0)]
    free[0, 0] = 1
    while ends:
        k = -1 if rng.random() < 0.7 else rng.integers(len(ends))
        y, x = ends[k]
        near = [(y - 2, x), (y + 2, x), (y, x - 2), (y, x + 2)]
        near = [(v, u) for v, u in near if 0 <= v < size and 0 <= u < size and not free[v, u]]
        if near:
            v, u = near[rng.integers(len(near))]
            free[(y + v) // 2, (x + u) // 2] = free[v, u] = 1
            ends.append((v, u))
        else:
            ends.pop(k)
    return free


def flood_in_numpy(free):
    """Steps from the corner to each cell, -1 where the water never gets."""
    depth = np.full(free.shape, -1, np.int32)
    depth[0, 0] = level = 0
    while True:
        wet = np.pad(depth == level, 1)
        reached = wet[:-2, 1:-1] | wet[2:, 1:-1] | wet[1:-1, :-2] | wet[1:-1, 2:]
        reached &= (free == 1) & (depth < 0)
        if not reached.any():
            return depth
        level += 1
        depth[reached] = level


def draw_flood(free, depth, *rounds, rows=0, zoom=()):
    """The water after each of these rounds, with a line after so many rows of cells.

    The last picture shows only the cells between these: left, right, lower, upper.
    """
    depth = depth.reshape(free.shape)
    size = (2.9 + 0.7 * bool(rows)) * len(rounds) + 1, 3.2 + 0.7 * bool(rows)
    figure, row = plt.subplots(1, len(rounds), figsize=size, layout="constrained")
    for axes, level in zip(row, rounds, strict=True):
        axes.imshow(free, cmap="gray", vmin=-0.3, vmax=1)
        wet = np.ma.masked_where((depth < 0) | (depth > level), depth)
        water = axes.imshow(wet, cmap="viridis", vmin=0, vmax=depth.max())
        axes.imshow(
            np.ma.masked_where(depth != level, depth), cmap="autumn", vmin=level, vmax=level + 1
        )
        new = np.argwhere(depth == level)
        # Too few cells need rings to be found.
        for colour, width in (("white", 4), ("red", 2)) if len(new) < 3 and not zoom else ():
            ring = {"facecolors": "none", "edgecolors": colour, "linewidths": width}
            axes.scatter(*new.T[::-1], s=250, **ring)
        for y in range(rows, len(free), rows) if rows else ():
            axes.axhline(y - 0.5, color="#cc79a7", linewidth=2)
        axes.set_title(f"round {level}: {len(new)} new (red)")
        axes.axis("off")
    if zoom:
        axes.axis(zoom)
        axes.set_title(f"round {level}: the last cells, from near")
        left, right, low, high = zoom
        frame = {"fill": False, "edgecolor": "white", "linewidth": 2.5}
        row[-2].add_patch(plt.Rectangle((left, high), right - left, low - high, **frame))
    if rows:
        figure.supxlabel("pink: where a block ends and the next begins", fontsize=10)
    figure.colorbar(water, ax=row, label="round in which the water came", pad=0.01)
    shown(
        figure,
        f"A maze with water from the upper left corner: after {', '.join(map(str, rounds))} rounds "
        f"{', '.join(str(((depth >= 0) & (depth <= level)).sum()) for level in rounds)} cells are wet.",
        f"A maze of {len(free)} by {len(free)} cells: the water needs {depth.max()} steps.",
    )


BLUE, YELLOW, GREEN, RED = "#9ad5f7", "#f0b840", "#6fd3b0", "#ee8866"
COLOURS = {"data": BLUE, "flag": YELLOW, "good": GREEN, "bad": RED, "order": "0.87", "": "w"}
COLOURS |= {"old": "#f9dcd3"}


def draw_steps(words, *panels):
    """Draw what threads do, from left to right.

    A panel has a title, a text for each lane, and arrows as (lane, from x, to x in the next lane). With a
    fourth number, an arrow is dotted, goes so many lanes down, and on its way passes below all of them.
    Instead of a colour, `over` and `under` draw a bracket there, with a name.
    """
    size = 10, 0.62 * len(panels[0][1]) + 0.5
    figure, row = plt.subplots(1, len(panels), figsize=size, squeeze=False)
    for axes, (title, lanes, arrows) in zip(row[0], panels, strict=True):
        for y, lane in enumerate(lanes):
            name, *steps = lane.split(" | ")
            axes.text(-0.2, -y, name, ha="right", va="center", fontsize=9)
            axes.axhline(-y, color="0.85", zorder=0)
            for step in steps:
                colour, start, end, text = step.split(" ", 3)
                start, end, middle = float(start), float(end), -y
                if side := {"over": 1, "under": -1}.get(colour):
                    axes.hlines(-y + side * 0.34, start, end, "0.3", linewidth=1)
                    middle = -y + side * 0.52
                else:
                    box = {"fc": COLOURS[colour], "ec": "0.3"}
                    axes.add_patch(plt.Rectangle((start, -y - 0.28), end - start, 0.56, **box))
                axes.text((start + end) / 2, middle, text, ha="center", va="center", fontsize=9)
        for lane, start, end, *far in arrows:
            arrow = {"arrowstyle": "-|>", "color": "0.3", "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
            arrow |= {"linestyle": ":", "color": "#0072b2"} if far else {}
            ends = (end, -lane - 0.72), (start, -lane - 0.28)
            if far:
                below = 0.4 - len(lanes)
                axes.vlines(start, below, -lane - 0.28, "#0072b2", ":")
                axes.hlines(below, start, end, "#0072b2", ":")
                ends = (end, -lane - far[0] - 0.28), (end, below)
            axes.annotate("", *ends, arrowprops=arrow)
        axes.set(xlim=(0, 10), ylim=(0.3 - len(lanes), 0.7))
        axes.set_title(title, fontsize=10, loc="left")
        axes.axis("off")
    figure.tight_layout()
    told = [
        f"{title or 'In time'}: "
        + "; ".join(
            f"{name}: {', '.join(step.split(' ', 3)[3] for step in steps)}"
            for name, *steps in (lane.split(" | ") for lane in lanes)
        )
        for title, lanes, _ in panels
    ]
    shown(figure, f"The steps, from left to right. {'. '.join(told)}.", words)


OVERTAKEN = (
    "no fence: the flag overtakes the data",
    (
        "sender | data 0.2 2.2 data = 42 | flag 2.4 4.2 flag = 1",
        "memory | flag 3.9 5.2 flag 1 | old 5.4 7 data 0 | data 8 9.8 data 42",
        "receiver | flag 4.9 6.6 flag? 1 | bad 6.8 8.8 data? 0",
    ),
    ((0, 1.2, 8.8), (0, 3.3, 4.5), (1, 4.6, 5.5), (1, 6.4, 7.4)),
)
IN_ORDER = (
    "a fence on either side",
    (
        "sender | over 2 4.7 release | data 0.1 1.8 data = 42 | order 1.9 3.1 fence | flag 3.2 4.7 flag = 1",
        "memory | data 1.3 2.9 data 42 | flag 4.2 5.4 flag 1",
        "receiver | flag 5.2 6.7 flag? 1 | order 6.8 8 fence | good 8.1 9.9 data? 42 | under 5.2 8 acquire",
    ),
    ((0, 1.0, 1.9), (0, 4.0, 4.8), (1, 5.0, 5.8), (1, 2.6, 8.6)),
)
READ_EARLY = (
    "only the sender fences: the receiver's second read is done first",
    (
        "sender | data 2.2 3.7 data = 42 | order 3.8 4.9 fence | flag 5 6.4 flag = 1",
        "memory | old 0.1 1.6 data 0 | data 3.6 5.1 data 42 | flag 6.2 7.5 flag 1",
        "receiver | bad 1.3 3.7 second read: data? 0 | flag 7.3 9.6 first read: flag? 1",
    ),
    ((0, 3.1, 4.2), (0, 5.7, 6.7), (1, 1.0, 2.2), (1, 7, 8.2)),
)
TWO_BLOCKS = (
    "",
    (
        "block 0, thread 5 | data 0.1 1.5 write | order 1.6 2.7 barrier",
        (
            "block 0, thread 0 | order 1.6 2.7 barrier | order 2.8 3.7 fence | flag 3.8 4.7 flag = 1 | "
            "over 2.8 4.7 release"
        ),
        (
            "block 1, thread 0 | flag 5.1 6 flag? 1 | order 6.1 7 fence | order 7.1 8.2 barrier | "
            "under 5.1 7 acquire"
        ),
        "block 1, thread 9 | order 7.1 8.2 barrier | good 8.3 9.7 read",
    ),
    ((0, 2.15, 2.15), (1, 4.5, 5.3), (2, 7.65, 7.65), (0, 0.8, 9.0, 3)),
)
NOT_BEGUN = (
    "",
    (
        "block 0 | data 0.1 1.5 x[0] = 0 | order 1.6 3.3 __syncthreads | bad 3.4 4.9 x[1]? 0",
        "block 1 |  0.1 4.9 not begun | data 5 6.4 x[1] = 1 | order 6.5 8.2 __syncthreads",
    ),
    (),
)
MEETING = (
    "+1: count; a number: look, and see this in the counter",
    (
        (
            "block 0 | good 0.1 0.9 work | flag 1 1.5 +1 | data 1.7 2 1 | data 2.6 2.9 2 | data 3.5 3.8 2 | "
            "data 4.4 4.7 3 | good 4.9 5.6 work | flag 5.7 6.2 +1 | data 6.4 6.7 4 | data 7.3 7.6 4 | "
            "data 8.2 8.5 5 | data 9.1 9.4 6"
        ),
        (
            "block 1 | good 0.1 2 work | flag 2.1 2.6 +1 | data 2.8 3.1 2 | data 6.5 6.8 4 | "
            "good 7 8.3 work | flag 8.4 8.9 +1 | data 9.1 9.4 6"
        ),
        (
            "block 2 | good 0.1 3.4 work | flag 3.5 4 +1 | data 4.2 4.5 3 | good 4.7 7.1 work | "
            "flag 7.2 7.7 +1 | data 7.9 8.2 5 | data 9.1 9.4 6"
        ),
        (
            "counter | order 1.2 2.3 1 | order 2.3 3.7 2 | flag 3.7 5.9 3 | order 5.9 7.4 4 | "
            "order 7.4 8.6 5 | flag 8.6 9.8 6"
        ),
    ),
    (),
)
MESSAGE = (
    (
        "Without fences, the flag gets to memory before the data, and the receiver reads a 1 and then the "
        "old 0. With a fence on either side, the receiver gets both."
    ),
    OVERTAKEN,
    IN_ORDER,
)
FOR_A_BLOCK = (
    (
        "Thread 5 of block 0 writes; behind a barrier, thread 0 fences and sets the flag. Thread 0 of "
        "block 1 sees the flag and fences; behind a barrier, thread 9 reads what thread 5 wrote (the "
        "dotted arrow)."
    ),
    TWO_BLOCKS,
)
THREE_MEET = (
    (
        "Three blocks meet twice; in the counter, the goals are yellow. Block 1 happens to look late: block "
        "0 has counted for the second meeting by then, so block 1 sees a 4, and never saw the 3."
    ),
    MEETING,
)
TOO_EARLY = (
    "It may go like this: block 0 passes its own barrier and reads x[1] before block 1 has begun.",
    NOT_BEGUN,
)

# %% [markdown] id=question
# ## Are we there yet?
#
# Here is an old way to take a square root. Guess $x$, replace it with the mean of $x$ and $a / x$, and repeat until $x$ stops moving. Isaac Newton would have done it by hand. We do it for a thousand numbers at once, with a thread for each.
#
# How many rounds does that take? It depends on the numbers, so after each round *somebody* has to see whether anything still moves. Say, Python:

# %% id=step-kernel
newton_step = agt.Kernel(r"""
extern "C" __global__ void newton_step(
    unsigned int n, const float* a, float* x, int* moved)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float before = x[i];
        x[i] = 0.5f * (before + a[i] / before);
        if (fabsf(x[i] - before) > 1e-6f * x[i]) {
            *moved = 1;
        }
    }
}
""")


def python_decides(numbers, newton_step=newton_step):
    """Launch round after round, and read one flag back after each."""
    n, x, rounds = numbers.size, agt.ones(numbers.size).sync_on(stream), 0
    while True:
        step = agt.zeros(1, np.int32).and_then(
            lambda moved: newton_step(n, numbers, x.borrow().partition(256), moved)
        )
        moved = step.last().to_host().sync_on(stream)
        rounds += 1
        if not moved[0]:
            return x, rounds

# %% [markdown] id=whole-text
# And here is another place for it. Each thread has a loop of its own, and stops when *its* number stops moving:

# %% id=whole-kernel
newton = agt.Kernel(r"""
extern "C" __global__ void newton(unsigned int n, const float* a, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float now = x[i], before;
        do {
            before = now;
            now = 0.5f * (before + a[i] / before);
        } while (fabsf(now - before) > 1e-6f * now);
        x[i] = now;
    }
}
""")


def gpu_decides(numbers, newton=newton):
    """One launch, which ends when everybody is there."""
    x = agt.ones(numbers.size).sync_on(stream)
    newton(numbers.size, numbers, x.borrow().partition(256)).sync_on(stream)
    return x

# %% id=first-picture
a, numbers = some_numbers(1024)
(x, rounds), asking = recorded(python_decides, numbers)
y, deciding = recorded(gpu_decides, numbers)

waits = [span for span in asking if span.kind == "wait"]
second_round = [span for span in asking if waits[1].end < span.start < waits[2].end]
agt.compare_timelines(
    [asking, deciding],
    [f"Python decides: {rounds} rounds", "The GPU decides: one launch"],
    lanes=("host", "streams"),
    highlight=[second_round, None],
    lesson="Above, the second round stands out. The host clears a flag, launches the "
    "round, copies the flag back and waits. That's "
    f"{waits[2].end - waits[1].end:.0f} µs, most of them without a kernel. Below are "
    "two kernels in all: one fills x with ones, and the other has the loop.",
)

# %% id=first-picture-check tags=asserts
roots = agt.d2h(x).sync(), agt.d2h(y).sync()
assert np.allclose(roots[0], np.sqrt(a), rtol=1e-6)
assert np.allclose(roots[1], np.sqrt(a), rtol=1e-6)
assert len(asking.find("newton_step")) == rounds > 5
assert len(deciding.find("newton")) == 1
if device.simulated:
    assert asking.metrics().makespan > 2 * deciding.metrics().makespan

# %% [markdown] id=first-read
# In the upper stream, the kernels are slivers. Nearly all of the time goes into the conversation: *is it over? No. Is it over? No.* Below, nobody asks, because the loop is where the numbers are. That's the idea of this page: **put the decision where the data is**. An H200 ran the same two programs:

# %% id=first-h200
agt.compare_timelines(
    on_an_h200("11_newton_by_host", "11_newton"),
    ["Python decides", "The GPU decides"],
    lanes=("host", "streams"),
    together=True,
    lesson="The same shape, but the talk is slower: between two calls of the host, "
    "Python is at work. At 0, the device begins to fill x.",
)

# %% id=first-h200-check tags=asserts
h200_asking, h200_deciding = map(agt.Trace.load_recording, ("11_newton_by_host", "11_newton"))
assert len(h200_asking.find("newton_step")) == rounds
assert len(h200_deciding.find("newton")) == 1
assert h200_asking.metrics().makespan > 2 * h200_deciding.metrics().makespan

# %% [markdown] id=maze-text
# ## A flood in a maze
#
# Newton's threads could stop one by one. Now open a tap in the corner of a maze: in each round the water moves one step on, and the first round in which it moves nowhere is the last. No single thread can tell which round that is, because its own cell may stay dry for long and then get wet after all.

# %% id=maze
small = maze(32)
small_open = agt.h2d(agt.pin(small.ravel()), "open").sync().share()
draw_flood(small, flood_in_numpy(small), 20, 80, 126, 127)

# %% [markdown] id=maze-python
# With Python in charge, that's a launch for each step of the water. A step reads one array and writes another, and then the two change places:

# %% id=maze-step
NEXT_TO = r"""
// Whether the water stands at this level beside the thread's own cell.
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level)
        || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level)
        || (y < width - 1 && depth[i + width] == level);
}
"""
flood_step = agt.Kernel(
    NEXT_TO
    + r"""
extern "C" __global__ void flood_step(
    int level, int width, const unsigned char* open,
    const int* depth, int* after, int* grew)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
    after[i] = reached ? level + 1 : depth[i];
    if (reached) *grew = 1;
}
"""
)


def dry(free):
    """What the kernels start from: one wet cell."""
    depth = np.full(free.size, -1, np.int32)
    depth[0] = 0
    return agt.pin(depth)


def flood_by_python(free, on_device):
    depth, after = (agt.h2d(dry(free)).sync_on(stream) for _ in range(2))
    width, level = free.shape[1], 0
    while True:
        old, new = depth.borrow(), after.borrow().partition(256)
        step = agt.zeros(1, np.int32).and_then(
            lambda grew: flood_step(level, width, on_device, old, new, grew)
        )
        grew = step.last().to_host().sync_on(stream)
        depth, after, level = after, depth, level + 1
        if not grew[0]:
            return agt.d2h(depth).sync_on(stream)


steps, by_python = recorded(flood_by_python, small, small_open)
python_us = by_python.metrics().makespan
print(f"{len(by_python.find('flood_step'))} launches, {python_us:,.0f} µs")

# %% id=maze-python-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
assert len(by_python.find("flood_step")) == steps.max() + 1

# %% [markdown] id=vote-text
# The maze has $32 \times 32 = 1024$ cells, so a block of 1,024 threads is enough. And the threads of a block can *vote*: `__syncthreads_or(p)` tells each of them whether `p` holds for any. It's a barrier as well.
#
# So everybody leaves the loop in the same round. If a thread went home early, the barrier wouldn't wait for it, and its cell would stay dry forever.

# %% [markdown] id=exercise-flood
# ### Exercise: let the block decide
#
# The kernel below takes one step and ends. Make it go on until a step reaches nothing. At the end, thread 0 writes the number of steps to `rounds[0]`, counting the last one, which found nothing.
#
# All of a step's reads have to come before any of its writes, and all of its writes before the next step's reads. (Here a late read would do no harm, since a new `level + 1` isn't the `level` that it looks for. But if one thread reads a word while another writes it, without an atomic, that's a race, and then CUDA promises nothing.)

# %% id=11-flood starter
FLOOD = r"""
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level)
        || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level)
        || (y < width - 1 && depth[i + width] == level);
}

extern "C" __global__ void flood(
    int width, const unsigned char* open, int* depth, int* rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int level = 0;
    while (level < width * width) {                // a bound, for safety
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        if (reached) depth[i] = level + 1;
        level++;
        break;                                     // one step only
    }
    if (i == 0) rounds[0] = level;
}
"""

# %% id=11-flood solution
# - while (level < width * width) {                // a bound, for safety
# + while (level < width * width) {
#   bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
# + __syncthreads();
# - break;                                     // one step only
# + if (!__syncthreads_or(reached)) break;

# %% id=11-flood hints
# The `break` is right in its place. It only has to depend on something: whether *anybody* has reached a new cell.
#
# `reached` is what one thread knows. `__syncthreads_or(reached)` is what the block knows. And between the line that reads and the line that writes, there has to be a barrier.
#
# `__syncthreads();` before the `if (reached)`, and at the end `if (!__syncthreads_or(reached)) break;`

# %% id=11-flood explanation
# A step needs two barriers, one between its reads and its writes, and one between its writes and the next step's reads. A vote is a barrier too, so it can decide and be either of the two.

# %% id=11-flood-check
check("11-flood", FLOOD)

# %% [markdown] id=flood-question
# Now one launch takes all 127 rounds: 126 steps, and the last, which finds nothing.

# %% id=flood-run
flood = agt.Kernel(solved("11-flood", FLOOD), "flood")  # yours, if it was accepted


def flood_by_block(free, on_device):
    op = agt.zip(agt.h2d(dry(free)), agt.zeros(1, np.int32)).and_then(
        lambda given: flood(free.shape[1], on_device, *given, grid=1, block=free.size)
    )
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)


steps, by_block = recorded(flood_by_block, small, small_open)
block_us, first = by_block.metrics().makespan, min(span.start for span in by_python)
agt.compare_timelines(
    [by_python.between(first, first + block_us), by_block],
    ["Python decides, in the same time", "The block decides: the whole flood"],
    lanes=("host", "streams"),
    lesson=f"The block is {python_us / block_us:.0f} times as fast. While it floods "
    "the whole maze, Python copies its two arrays, and hardly begins. What's left of "
    "the talk is one conversation: two copies, a fill, a launch, and a single wait.",
)

# %% id=flood-run-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
if device.simulated:
    assert python_us / block_us > 5

# %% [markdown] id=promises
# ## What CUDA promises
#
# Inside a block, the vote did it all: it collected, waited, and showed each thread what the others had written. Between blocks you build that from parts. Say a sender writes `data` and then a `flag`, and a receiver in another block looks at the flag:

# %% id=message-picture
draw_steps(*MESSAGE)

# %% [markdown] id=message-read
# On the right, the fence and the write of the flag behind it are a *release*; the read of the flag and the fence behind it, an *acquire*. If both touch the flag by an atomic, whoever sees the flag sees the data. (`volatile` works as well, because PTX takes such an access to one word for a relaxed one. CUDA C++ doesn't promise it.)
#
# Does it take both fences? Suppose the sender has its own, and the receiver has none.

# %% id=11-fence guess
# Can the receiver still read the flag as 1 and the data as 0?
#
# - `no`: no, because whoever sees the flag sees the data, which was in memory before it
# - `late`: yes, because the data may still get there after the flag
# - `early`: yes, because the receiver may read the data too early

# %% id=11-fence reveal
def draw_early():
    words = "The receiver reads the data before it has got there, and the flag after it has."
    draw_steps(words, READ_EARLY)


reveal("11-fence", "early", draw_early)

# %% id=11-fence told truth=early
# In the program, the read of the data comes last. But nothing orders the two reads, so they may change places. The sender's fence can't help, because it orders what the sender does.

# %% [markdown] id=cumulative-text
# ### For a whole block
#
# Fences are **cumulative**: they pass on what you wrote, and also what *you* were shown before. So one thread can speak for its whole block:

# %% id=cumulative-picture
draw_steps(*FOR_A_BLOCK)

# %% [markdown] id=order-read
# So there are three parts, and each promises less than you'd think:
#
# | | it promises | it does not promise |
# |---|---|---|
# | a **fence**, `__threadfence()` | the order that you've just seen | that anybody waits |
# | an **atomic**, such as `atomicAdd` | to read, change and write in one step, which no other device-wide atomic can split | any order of what comes before and after it |
# | a **barrier**, `__syncthreads()` | that nobody goes on until all threads of the block that haven't ended have come, and that they then see what any of them wrote | anything to another block |
#
# Compiler and hardware may do what you've just seen, but it's rare: when we sent that message without fences on an H200, the receiver read a 1 and then the old 0 in 1 of 1,048,576 runs. Such a program passes your tests and fails in front of a customer.
#
# Strictly, `*moved = 1` in our first kernel breaks these rules, since many threads may write it at once. But all write the same 1, and nobody reads it before the launch is over, so no GPU that we know minds.

# %% [markdown] id=grid-text
# ## A larger maze
#
# A maze of 64 by 64 needs at least four blocks (we take 16, for more SMs), and then our vote isn't enough.
#
# > **Misconception: `__syncthreads()` waits for everybody.**
# >
# > - *What you see:* right numbers with one block, and now and then with more.
# > - *Why:* it is a barrier of the block. The others may not even have begun.
# > - *What helps:* a barrier of the grid, or two launches.
#
# For example, let each block write a number, and then read its neighbour's:

# %% id=misconception-block-code
neighbours = r"""
extern "C" __global__ void neighbours(int* x, int* y)
{
    if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
}
"""
draw_steps(*TOO_EARLY)

# %% id=misconception-block-check tags=asserts
with agt.using("sim"):
    try:
        agt.Kernel(neighbours)(
            agt.zeros(4, np.int32), agt.zeros(4, np.int32), grid=4, block=32
        ).sync()
    except agt.errors.RaceError:
        pass
    else:
        raise AssertionError("the race was not seen")

# %% [markdown] id=meeting-text
# So let's build a meeting point: a counter in memory. Each block adds one when it arrives, and then looks until the counter has reached its goal, here 3, and 6 the second time:

# %% id=meeting-picture
draw_steps(*THREE_MEET)

# %% [markdown] id=grid-details
# Four details matter:
#
# 1. Thread 0 counts for its block. There's a `__syncthreads()` **before** that, because a block that's still at work mustn't be counted, and one **after** the last look, so that nobody goes on too early.
# 2. The counter is a flag, so it needs both fences: one between the work and the counting, and one behind the last look.
# 3. A look must be real. An ordinary read may be answered by a register or the SM's cache, which needn't learn the news. Here we look by `atomicAdd(arrived, 0)`, which adds nothing and returns what it found.
# 4. The counter just goes on: the goals of 16 blocks are 16, 32, 48.
#
# There are other ways to look. Atomics on one word take turns, so ours is a little dearer, but a block sends only one thread:
#
# | look by | brings the reader's fence | 16 blocks meet on an H200 in |
# |---|---|---|
# | `atomicAdd(arrived, 0)` | no | 1.05 µs |
# | a `volatile` read | no | 0.98 µs |
# | the `load` of a `cuda::atomic_ref`, for new code ([12](12_async_inside_a_kernel.ipynb) ends with it) | yes, unless it's relaxed | 0.84 µs, by the instructions it's compiled to |
#
# Waiting by looking is called *spinning*. If you expect to wait long, let the thread sleep between two looks, by `__nanosleep(100)`, so that it leaves its processor to others. Our meetings are short, and a nap would make them 10 % longer. A GPU has no Stop button, so our spins give up after ten million looks, by `__trap()`, which ends the kernel with an error.

# %% [markdown] id=exercise-meet
# ### Exercise: a barrier for the grid
#
# Complete `meet`, a function for kernels, so without `__global__`. It gives up as our spins do, after a bound of your choice from 100,000 to 100 million looks.

# %% id=11-meet starter
MEET = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    if (threadIdx.x == 0) {
        unsigned int looks = 0;
        while (false) {              // wait until the counter has reached the goal
            if (++looks > 10000000) __trap();
        }
    }
}
"""

# %% id=11-meet solution
MEET = r"""
__device__ void meet(unsigned int* arrived, unsigned int goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        unsigned int looks = 0;
        while (atomicAdd(arrived, 0) < goal) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
"""

# %% id=11-meet hints
# Go through the four details in order. Two of them are `__syncthreads()`, one at the top and one at the bottom, where all threads pass.
#
# In the `if`: fence first, then count, then look, and a fence once more. `atomicAdd(arrived, 1)` counts.
#
# The loop waits as long as `atomicAdd(arrived, 0) < goal`.

# %% id=11-meet explanation
# Every line guards against something else. Leave one out and a GPU may still get it right, run after run, which is the worst kind of wrong. The simulated device is not lucky, so try it: take out a line, and check again. (The check also ran your text in memory that shows each write as late as CUDA allows, and with a block that never comes.)
#
# In new code, with `#include <cuda/atomic>`, the same meeting needs no fences, because each access says how much it orders:
#
# ```cuda
# cuda::atomic_ref<unsigned int, cuda::thread_scope_device> count(*arrived);
# count.fetch_add(1, cuda::memory_order_release);
# while (count.load(cuda::memory_order_acquire) < goal) {
#     if (++looks > 10000000) __trap();
#     __nanosleep(100);                          // if it may take long
# }
# ```

# %% id=11-meet-check
check("11-meet", MEET)

# %% [markdown] id=flood-grid-text
# The flood again. Now blocks read the flag in the same launch, so `atomicExch` writes it. And each level has a flag of its own. With a single one, when could anybody lower it? Some block may still have to read it, for its `break`.

# %% id=flood-grid
OUR_MEET = solved("11-meet", MEET)
many_blocks = agt.Kernel(
    NEXT_TO
    + OUR_MEET
    + r"""
extern "C" __global__ void many_blocks(
    int width, const unsigned char* open, int* depth, int* grew, unsigned int* arrived)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int goal = 0;
    for (int level = 0; level < width * width; level++) {
        // Ordinary reads: the last fence of meet() has made the news visible.
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        meet(arrived, goal += gridDim.x);          // everybody has read
        if (reached) {
            depth[i] = level + 1;
            atomicExch(&grew[level], 1);
        }
        meet(arrived, goal += gridDim.x);          // everybody has written
        if (atomicAdd(&grew[level], 0) == 0) break;
    }
}
"""
)


def flood_by_grid(free, on_device, kernel=many_blocks):
    width, blocks = free.shape[1], free.size // 256
    op = agt.zip(
        agt.h2d(dry(free)), agt.zeros(free.size, np.int32), agt.zeros(1, np.uint32)
    ).and_then(lambda given: kernel(width, on_device, *given, grid=blocks, block=256))
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)


large = maze(64, seed=1)
large_open = agt.h2d(agt.pin(large.ravel()), "open").sync().share()
_, large_by_python = recorded(flood_by_python, large, large_open)
steps, by_grid = recorded(flood_by_grid, large, large_open)
draw_flood(large, steps, 120, 204, 204, rows=4, zoom=(40.5, 52.5, 63.5, 51.5))
whole_us = by_grid.find("many_blocks")[0].duration
print(f"Python: {large_by_python.metrics().makespan:,.0f} µs")
print(f"16 blocks: {by_grid.metrics().makespan:,.0f} µs, the kernel {whole_us:,.0f}")

# %% id=flood-grid-check tags=asserts
assert (steps == flood_in_numpy(large).ravel()).all()

# %% [markdown] id=hot-text
# Where does the kernel's time go? On an H200, 410 meetings with nothing between them took 424 µs, and a round has two. The rest is in the lines around them. Look at the last one: all 256 threads of each block ask for `grew[level]`. Let one thread of each block ask instead, and tell the others by a vote:

# %% id=hot-code
old = "if (atomicAdd(&grew[level], 0) == 0) break;"
new = "if (__syncthreads_or(threadIdx.x == 0 && !atomicAdd(&grew[level], 0))) break;"
by_vote = agt.Kernel(many_blocks.source.replace(old, new))
print(f"Everybody asks: {whole_us:,.0f} µs in the kernel")

# %% id=11-hot guess within=0.25
# How many microseconds does the kernel take if one thread of each block asks?

# %% id=11-hot reveal
steps, voted = recorded(flood_by_grid, large, large_open, by_vote)
once_us = voted.find("many_blocks")[0].duration
facts = {"share": 100 * (1 - once_us / whole_us), "round_": (whole_us - once_us) / (steps.max() + 1)}
reveal("11-hot", round(once_us), **facts)

# %% id=11-hot told truth=561
# So {share:.0f} % of the time went into a question. 4,096 threads ask for one word by an atomic, at the same moment, and atomics on one word take turns: in our model that's about 1.5 clocks each, of half a nanosecond, so in each round the last thread waits for {round_:.1f} µs, to read a word that nobody changes any more. On an H200, the kernel took 1,187 µs when everybody asked, and 674 when one thread of each block did: 43 % less. (That's the median of many runs, without a profiler.) We had suspected the meetings.

# %% id=hot-check tags=asserts
assert old in many_blocks.source
assert (steps == flood_in_numpy(large).ravel()).all()
if device.simulated:
    # What an H200 took, 674 µs, is a right guess of what the model takes, and the other way round.
    assert abs(once_us - 674) < 0.25 * min(once_us, 674)
    assert abs(whole_us - 1187) < 0.25 * min(whole_us, 1187)

# %% [markdown] id=places
# There's a condition that's easy to miss. A block keeps its place on the GPU until it ends. If a seventeenth block found no place, it would begin only when another one ends, and the others would all wait for it. So **blocks that wait for each other must all have a place at the same time.** How many have one depends on the GPU, on the kernel's registers and shared memory, and on who else is there.
#
# CUDA promises places for a **cooperative launch**: it counts those of an otherwise empty GPU first, and refuses a grid that's too large. In it you can call `grid.sync()`, which waits for all blocks and orders memory, as `meet` does. If a kernel calls `this_grid()`, `agt` makes it one.

# %% [markdown] id=pays-text
# ## When it doesn't pay
#
# If you've written CUDA in C++, you've been shaking your head: *of course* Python is slow. But whoever asks the host after each round waits, in any language. In C++, one kernel was about ten times as fast as asking (the encores have the numbers).
#
# What you save in either language is the conversation, and nothing else. So let's make Newton's rounds longer: in each, the threads now go through some useless steps first.

# %% id=pays-kernels tags=helpers
# Newton's two kernels with `work` useless steps in each round, and a drawing.
def makespan(run, *args):
    _, trace = recorded(run, *args)
    return trace.metrics().makespan


SLOWLY = r"""
__device__ float slowly(float a, unsigned int work)
{
    float sum = a;
    for (unsigned int k = 0; k < work; k++) sum = sqrtf(1.0f / (sum + 1.0f));
    return a + 0.0f * sum;      // the same a, but now the compiler can't leave the loop out
}
"""


def slowed(kernel):
    text = kernel.source.replace("a[i]", "slowly(a[i], work)")
    return agt.Kernel(SLOWLY + text.replace("unsigned int n,", "unsigned int work, unsigned int n,"))


slow_step, slow_whole = slowed(newton_step), slowed(newton)


def asked_slowly(work):
    python_decides(numbers, partial(slow_step, work))


def decided_slowly(work):
    gpu_decides(numbers, partial(slow_whole, work))


def draw_gain(longer, asked, decided, knee):
    """How long both take if a round is so much longer, up to the fifth; and how many times as fast one is."""
    figure, (time_axes, gain_axes) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
    for times, name in ((asked, "Python decides"), (decided, "the GPU decides")):
        time_axes.plot(longer[:5], times[:5], "o-", label=name)
    time_axes.axvspan(0, knee, color=YELLOW, alpha=0.4, label=f"{knee:.0f} µs a round for nothing")
    time_axes.set(ylim=(0, 1.6 * asked[4]), ylabel="µs for the whole run")
    time_axes.legend(loc="upper left")
    gain_axes.plot(longer, asked / decided, "o-", color="0.3")
    gain_axes.axhline(1, color="0.3", linestyle=":")
    told = []
    for k in (0, 4, -1):
        gain, beside = asked[k] / decided[k], {"textcoords": "offset points", "xytext": (5, 6)}
        gain_axes.annotate(f"{gain:.1f}", (longer[k], gain), **beside)
        told.append(f"{longer[k]:.0f} µs longer: {asked[k]:,.0f} and {decided[k]:,.0f} µs")
    limits = {"xlim": (None, 1.08 * max(longer)), "ylim": (0, 1.15 * max(asked / decided))}
    gain_axes.set(**limits, ylabel="times as fast")
    for axes in (time_axes, gain_axes):
        axes.set_xlabel("µs that a round takes longer")
    shown(
        figure,
        "Left: the single launch takes longer at once, Python only from the knee on, and then as steeply. "
        "Right: the gain falls towards 1.",
        f"Python and the GPU, if a round is so much longer. {'; '.join(told)}.",
    )

# %% id=pays-run
useless = np.array([0, 60, 120, 240, 360, 1000, 4000])
useless *= 1 if device.simulated else 10
decided = np.array([makespan(decided_slowly, int(work)) for work in useless])
asked = [makespan(asked_slowly, 0)]
print(f"as before: Python {asked[0]:.0f} µs, a single launch {decided[0]:.0f}")
print(f"{useless[4]} useless steps in each round: a single launch {decided[4]:.0f} µs")

# %% id=11-longer guess within=0.1
# The single launch takes longer now, by the difference of the two. How many microseconds do Python's rounds take? (What does Python do while the kernel runs? In the flood's picture, look to the right of `launch`.)

# %% id=11-longer reveal
asked = np.array([makespan(asked_slowly, int(work)) for work in useless])
more = (decided - decided[0]) / rounds
free = (decided - decided[0] - asked + asked[0])[4] / rounds
facts = {"free": free, "behind": asked[-1] - decided[-1]}
reveal("11-longer", round(asked[4]), lambda: draw_gain(more, asked, decided, free), **facts)

# %% id=11-longer told truth=581
# When the kernel ends, Python is still busy with its next call, the copy of the flag, and a copy begins a while after a kernel has ended. So the first {free:.0f} µs that a round takes longer cost Python nothing. From there on, both lines are parallel: Python stays {behind:.0f} µs behind, and of a long run that's little.

# %% id=pays-check tags=asserts
if device.simulated:
    assert asked[0] / decided[0] > 4 * asked[4] / decided[4]
    assert 1 < asked[-1] / decided[-1] < 1.2

# %% [markdown] id=pays-read
# ### Before you move a loop
#
# Compare the time of one round with that of one question.
#
# | it does not pay | because |
# |---|---|
# | when a round takes long | you save no more than with short ones, and that's less of a longer run |
# | when you know the number of rounds | you can put them all into one graph and ask nothing (from C++, that's 0.9 µs a step on an H100, measured with `benchmarks/turns.cu`) |
# | when others want the GPU, too | your kernel keeps its places until it ends (other *processes* get turns) |
# | when the work needs more blocks than have a place | they can't meet. Give each several pieces, or do without a barrier ([11b](11b_without_a_barrier.ipynb)) |
# | when you still look for the bug | a loop in Python can be stopped, printed and stepped through |

# %% [markdown] id=key-points
# ## Key points
#
# - Each decision of the host costs a launch, a wait, and a trip for the numbers it looks at, in any language. Let a kernel decide.
# - A message takes a release (fence, then flag) and an acquire (flag, then fence). One thread can speak for its block, with a barrier before the release, or behind the acquire.
# - The threads of a block agree by a vote: all get the same answer.
# - A grid agrees at a barrier, for which all of its blocks need a place at the same time. A cooperative launch guarantees that.
# - You save the conversation and nothing else, so long rounds have little to gain.
#
# **Next:** in [11b_without_a_barrier](11b_without_a_barrier.ipynb) the GPU decides although nobody may wait, with kernels that you can't change and more blocks than places.

# %% id=score
score("11")

# %% id=progress
progress("11")

# %% [markdown] id=encores
# ## Encores
#
# *The chapter is done. Here you count the blocks that can meet, write a barrier for a library, compare with C++, and end with a challenge.*

# %% [markdown] id=places-question
# ### How many can meet?
#
# An H200 has 132 processors (SMs). Each has places for 2,048 threads at once, that's 64 warps of 32, in up to 32 blocks. We send blocks of 100 threads to a meeting, and nothing else is going on.

# %% id=places-drawing tags=helpers
def draw_places():
    """The places of an SM, a warp each, and the blocks of 100 threads that fill them."""
    figure, axes = plt.subplots(figsize=(10, 2.7))
    for block in range(20):
        outside = block > 15
        left, alone = block * 1.1 + 0.6 * outside, {"ls": "--" if outside else "-"}
        for warp in range(4):
            axes.add_patch(plt.Rectangle((left, -warp), 1, 0.86, fc="w", ec="0.3", **alone))
            if not outside:
                share = 1 if warp < 3 else 4 / 32
                axes.add_patch(plt.Rectangle((left, -warp), share, 0.86, fc=(BLUE, YELLOW)[block % 2]))
                axes.text(left + 0.5, 0.43 - warp, 32 if warp < 3 else 4, ha="center", va="center")
        axes.text(left + 0.5, 1.15, block, ha="center")
    axes.text(8.7, -3.6, "64 places for warps, all taken by blocks 0 to 15", ha="center", va="top")
    axes.text(20.3, -3.6, "no place", ha="center", va="top")
    axes.set(xlim=(-0.3, 22.8), ylim=(-4.3, 1.8))
    axes.axis("off")
    figure.tight_layout()
    shown(
        figure,
        "Sixteen blocks of four warps fill 64 places; the seventeenth to twentieth have none.",
        "One SM. A column is a block: three warps of 32 threads, and one of 4, which takes a whole place. "
        "20 blocks would be 2,000 threads, but 80 warps.",
    )

# %% [markdown] id=places-sim
# On a real GPU, a wrong guess would spin ten million times and then trap, and after a trap, all CUDA calls of the process fail. The simulated GPU notices at once:

# %% id=run-places
everybody = (
    OUR_MEET
    + r"""
extern "C" __global__ void everybody(unsigned int* arrived)
{
    meet(arrived, gridDim.x);
}
"""
)


def can_meet(blocks):
    try:
        arrived = agt.zeros(1, np.uint32)
        agt.Kernel(everybody)(arrived, grid=blocks, block=100).sync()
        return True
    except agt.errors.DeadlockError:
        return False


def largest():
    """By halving the doubt."""
    most, too_many = 1, 4096
    while too_many - most > 1:
        middle = (most + too_many) // 2
        if can_meet(middle):
            most = middle
        else:
            too_many = middle
    return most

# %% id=11-places guess
# What is the largest number of such blocks that can all meet?

# %% id=11-places reveal
with agt.using("sim"):
    most = largest()

reveal("11-places", most, draw_places)

# %% id=11-places told truth=2112
# An SM gives its places away by the warp. A block of 100 threads takes four warps, so 16 blocks fill the 64 of an SM, and not 20. A block keeps its place until it ends. The 2,113th gets one when another block ends, and all the others wait for the 2,113th.

# %% [markdown] id=places-read
# ### Counted before
#
# A cooperative launch counts the places first, and is refused if the grid is too large:

# %% id=cooperative
together = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void together(unsigned int* present, unsigned int* sum)
{
    cg::grid_group grid = cg::this_grid();
    if (threadIdx.x == 0) present[blockIdx.x] = 1;
    grid.sync();
    if (grid.thread_rank() == 0) {
        for (unsigned int i = 0; i < gridDim.x; i++) *sum += present[i];
    }
}
"""


def all_together(blocks):
    present, sum = agt.zeros(blocks, np.uint32), agt.zeros(1, np.uint32)
    op = agt.Kernel(together)(present, sum, grid=blocks, block=100)
    return op.last().to_host().sync()[0]


print("met:", all_together(16))
with agt.using("sim"):
    print("met:", all_together(2112))
    try:
        all_together(2113)
    except agt.errors.LaunchConfigError as error:
        print(error)
    else:
        raise AssertionError("the launch was not refused")

# %% id=cooperative-check tags=asserts
assert all_together(16) == 16

# %% [markdown] id=again-text
# ### A gate
#
# The counter of our `meet` just goes on, so each caller has to know the next goal, and all of them have to agree on it. In a library you'd rather call `meet(gate)` and be done. Then the counter has to go back to 0 after each meeting, and a block that's still looking at it might miss the moment. So we give it a second word to look at, the **generation**: how many meetings there have been. You wait until the generation isn't the one in which you came.

# %% [markdown] id=exercise-again
# ### Exercise: a barrier without a goal
#
# Complete this `meet`. `gate[0]` counts the blocks that have arrived, and is 0 at first. `gate[1]` is the generation, which may begin with any number. (Like every `unsigned int`, it goes on with 0 when it's full.) The version below works once, and everybody walks through the second meeting. It gives up as the first `meet` does.
#
# Two orders matter. Do you look at the generation before you count or after? And which of its two jobs does the last block do first: setting the counter back, or raising the generation?

# %% id=11-again starter
MEET_AGAIN = r"""
__device__ void meet(unsigned int* gate)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(&gate[0], 1);
        unsigned int looks = 0;
        while (atomicAdd(&gate[0], 0) < gridDim.x) {
            if (++looks > 10000000) __trap();
        }
        __threadfence();
    }
    __syncthreads();
}
"""

# %% id=11-again solution
MEET_AGAIN = r"""
__device__ void meet(unsigned int* gate)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned int before = atomicAdd(&gate[1], 0);
        __threadfence();
        if (atomicAdd(&gate[0], 1) == gridDim.x - 1) {
            atomicExch(&gate[0], 0);
            __threadfence();
            atomicAdd(&gate[1], 1);
        } else {
            unsigned int looks = 0;
            while (atomicAdd(&gate[1], 0) == before) {
                if (++looks > 10000000) __trap();
            }
            __threadfence();
        }
    }
    __syncthreads();
}
"""

# %% id=11-again hints
# Before a block counts, nobody can finish this meeting without it, so the generation is sure to be the old one. Look then.
#
# `atomicAdd(&gate[0], 1)` returns the number before. The block that gets `gridDim.x - 1` is the last: it sets `gate[0]` to 0, and only then adds 1 to `gate[1]`, since that lets everybody go on to the next meeting, where they count again. All the others wait while `gate[1]` is what it was before.
#
# Three fences: one between the look and the count, one in the last block between setting the counter back and raising the generation, and one behind the last look.

# %% id=11-again explanation
# Each look is ordered before its count, and the reset before the new generation, so no block can wait for a meeting that is over, and no count is lost. What was written before the meeting is passed on as well: the last block was shown it by all the others, and whoever sees the new generation is shown it in turn. That's what *cumulative* is good for. (Between the last count and the new generation, only the last block touches the counter. So a fence on its far side orders even an ordinary `gate[0] = 0`.) If you compare by `==`, and not by `<`, it doesn't matter that the generation begins again at 0 one day.

# %% id=11-again-check
check("11-again", MEET_AGAIN)

# %% [markdown] id=ways-read
# ### Is it Python's fault?
#
# Here are whole runs for our 1,024 numbers on one H100 80GB, in µs, with a copy of the roots to the host. (Two numbers are two processes.)
#
# | Newton's nine rounds | Python | Python, [prepared](09_cuda_graphs.ipynb) | C++ |
# |---|---|---|---|
# | the host asks after each | 523, 640 | 266, 294 | 128 |
# | nine launches, and nobody asks | | | 44 |
# | a graph that goes round ([11b](11b_without_a_barrier.ipynb)) | | 98, 106 | 74 |
# | one kernel | 49, 63 | 36, 46 | 13 |
#
# In part: C++ asks four times as quickly as Python, and twice as quickly as Python that has prepared its operations. But nearly three quarters of what C++ gains by the one kernel is in *not asking*. (At the top of this page, the same loop took 766 µs. That's an H200 in another machine, and a profiler, which makes each of the host's calls take longer.) And in Python? Let it launch all nine rounds and not ask:

# %% id=ways-python
def nobody_asks(numbers):
    n, x = numbers.size, agt.ones(numbers.size).sync_on(stream)
    moved = agt.zeros(1, np.int32).sync_on(stream)
    for _ in range(rounds):
        step = newton_step(n, numbers, x.borrow().partition(256), moved.borrow())
        step.async_on(stream)
    stream.synchronize()


for run in (python_decides, nobody_asks, gpu_decides):
    print(f"{run.__name__}: {makespan(run, numbers):.0f} µs")

# %% [markdown] id=ways-python-read
# On the simulated device, about half of the gain is in not asking. The other half is in *launching once*, because Python describes each launch anew.

# %% [markdown] id=challenge
# ### Challenge: who is important?
#
# `sources[i]` names eight pages that link to page `i`, and `weight[j]` is one over the number of links on page `j`. A page is as important as the pages that link to it:
#
# $$\text{rank}_i = \frac{0.15}{n} + 0.85 \sum_{j \to i} \text{weight}_j \cdot \text{rank}_j$$
#
# Start with $1/n$ for all, and repeat until no rank changes by more than $10^{-3}/n$. (This is PageRank. It made a company.)
#
# The version below has Python in charge. On the simulated device, where the check measures 4,096 pages, it takes 1098 µs: get below 200 µs (a second rung: 110). Change anything but the name, the arguments and the result. The check also tries these, untimed:
#
# - 600 pages, and 600 that are right from the start
# - 700 that settle slowly
# - 1,501: each round moves one rank or two

# %% id=11-challenge starter
STEP = r"""
extern "C" __global__ void rank_step(
    unsigned int n, const unsigned int* sources, const float* weight,
    const float* rank, float* after, int* moved)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) {
        unsigned int j = sources[8 * i + k];
        sum += weight[j] * rank[j];
    }
    after[i] = 0.15f / n + 0.85f * sum;
    if (fabsf(after[i] - rank[i]) > 1e-3f / n) *moved = 1;
}
"""


def pagerank(sources, weight):
    """Ranks of n pages, from arrays on the device: n x 8 sources and n weights."""
    n, step = weight.size, agt.Kernel(STEP)
    rank = agt.full(n, 1 / n).sync()
    while True:
        after = agt.zeros(n).sync()
        op = agt.zeros(1, np.int32).and_then(
            lambda moved: step(
                n, sources, weight, rank.borrow(), after.borrow().partition(256), moved
            )
        )
        moved, rank = op.last().to_host().sync(), after
        if not moved[0]:
            return agt.d2h(rank).sync()

# %% id=11-challenge solution
WHOLE = r"""
#include <cooperative_groups.h>

extern "C" __global__ void ranks(
    unsigned int n, const unsigned int* sources, const float* weight,
    float* rank, float* after, unsigned int* moving)
{
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned int round = 0; round < 100; round++) {
        if (i < n) {
            float sum = 0.0f;
            for (int k = 0; k < 8; k++) {
                unsigned int j = sources[8 * i + k];
                sum += weight[j] * rank[j];
            }
            after[i] = 0.15f / n + 0.85f * sum;
            if (fabsf(after[i] - rank[i]) > 1e-3f / n) atomicExch(&moving[round], 1);
        }
        grid.sync();
        float* other = rank; rank = after; after = other;
        if (atomicAdd(&moving[round], 0) == 0) break;
    }
    // Both arrays agree to within the tolerance; the caller reads the first.
}
"""


def pagerank(sources, weight):
    """Ranks of n pages, from arrays on the device: n x 8 sources and n weights."""
    n, whole = weight.size, agt.Kernel(WHOLE)
    op = agt.zip(agt.full(n, 1 / n), agt.full(n, 1 / n), agt.zeros(100, np.uint32)).and_then(
        lambda given: whole(n, sources, weight, *given, grid=-(-n // 256), block=256)
    )
    return op.and_then(lambda given: agt.d2h(given[2])).sync()

# %% id=11-challenge hints
# Asking less often is the quickest change. It will not get you all the way.
#
# One launch, a thread for each page, and a barrier of the grid after each round: your `meet`, or `grid.sync()`. Each round reads `rank` and writes `after`; then the two change places, so one barrier a round is enough.
#
# For the decision, a flag for each round: whoever still moves sets the flag of this round, then all meet, then all read it. With a single flag, somebody would have to set it back to zero, and just when would that be safe?

# %% id=11-challenge explanation
# Two arrays change places, so one barrier a round is enough, and each round has a flag of its own, so nobody has to tidy up while others still read. (A single block could vote, but it has one SM of 132, and the time shows it.) Below 110? Then you've climbed the second rung, too. If not, look at who asks for the flag, as in the flood, and at what runs before your kernel.

# %% id=11-challenge-check
check("11-challenge", pagerank)

# %% id=score-encores
score("11")
