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
# | Time | an hour, and 110 minutes for the encores |
# | You need | [04_combinators](04_combinators.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and, from [07_async_mlp](07_async_mlp.ipynb), what a barrier is. You do not need a GPU |

# %% id=setup
import asyncio
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution, solved

device = agt.use("auto")
stream = agt.create_stream()
device

# %% id=tools tags=helpers
# Recordings and drawings. You needn't read this.
from base64 import b64encode
from html import escape
from io import BytesIO

from IPython.display import HTML, display


def some_numbers(n):
    a = agt.pin(np.random.default_rng(0).uniform(1, 1000, n).astype(np.float32))
    return a, agt.h2d(a, "numbers").sync().share()


def recorded(run, *args):
    """What a run returns, and its trace.

    A real Python is slow right after a pause, so it runs twice in a row, and the second run counts.
    """
    with agt.record():
        run(*args)
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def shown(figure, alt):
    """Show a figure, with a text for readers who can't see it."""
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    data = b64encode(file.getvalue()).decode()
    display(HTML(f'<img alt="{escape(alt)}" src="data:image/png;base64,{data}">'))
    plt.close(figure)


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
    )
    print(f"A maze of {len(free)} by {len(free)} cells: the water needs {depth.max()} steps.")


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
    shown(figure, "A drawing; the words are below.")
    print(words)


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

# %% [markdown] id=question
# ## Are we there yet?
#
# Here is an old way to take a square root. Guess $x$, replace it with the mean of $x$ and $a / x$, and repeat until $x$ stops moving. Isaac Newton would have done it by hand. We do it for a thousand numbers at once, with a thread for each.
#
# How many rounds does that take? It depends on the numbers, so after each round *somebody* has to see whether anything still moves. The natural place for a decision is Python:

# %% id=step-kernel
newton_step = agt.Kernel(r"""
extern "C" __global__ void newton_step(unsigned int n, const float* a, float* x, int* moved)
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

roots = agt.d2h(x).sync(), agt.d2h(y).sync()
waits = [span for span in asking if span.kind == "wait"]
agt.compare_timelines(
    [asking, deciding],
    [f"Python decides: {rounds} rounds", "The GPU decides: one launch"],
    lanes=("host", "streams"),
    highlight=[[span for span in asking if waits[1].end < span.start < waits[2].end], None],
    lesson="Above, the second round stands out. The host clears a flag, launches the round, copies the flag "
    f"back and waits. That's {waits[2].end - waits[1].end:.0f} µs, most of them without a kernel. Below are "
    "two kernels in all: one fills `x` with ones, and the other has the loop.",
)

# %% id=first-picture-check tags=asserts
assert np.allclose(roots[0], np.sqrt(a), rtol=1e-6)
assert np.allclose(roots[1], np.sqrt(a), rtol=1e-6)
assert len(asking.find("newton_step")) == rounds > 5
assert len(deciding.find("newton")) == 1
if device.simulated:
    assert asking.metrics().makespan > 2 * deciding.metrics().makespan

# %% [markdown] id=first-read
# In the upper stream, the kernels are slivers. Nearly all of the time goes into the conversation: *is it over? No. Is it over? No.* Below, nobody asks, because the loop is where the numbers are. That's the idea of this page: **put the decision where the data is**. An H200 ran the same two programs:

# %% id=first-h200
def on_an_h200(*names):
    """Recordings, which come with the course; prints what they show, and how long it took."""
    traces = [agt.Trace.load_recording(name) for name in names]
    for h200 in traces:
        print(f"{h200.metrics().makespan:5.0f} µs on an H200: {h200.about['shows']}")
    return traces


agt.compare_timelines(
    on_an_h200("11_newton_by_host", "11_newton"),
    ["Python decides", "The GPU decides"],
    lanes=("host", "streams"),
    together=True,
    lesson="The same shape, but the talk is slower: between two calls of the host, Python is at work. At 0, "
    "the device begins to fill `x`.",
)

# %% id=first-h200-check tags=asserts
h200_asking, h200_deciding = map(agt.Trace.load_recording, ("11_newton_by_host", "11_newton"))
assert len(h200_asking.find("newton_step")) == rounds
assert len(h200_deciding.find("newton")) == 1
assert h200_asking.metrics().makespan > 2 * h200_deciding.metrics().makespan

# %% [markdown] id=maze-text
# ## A flood in a maze
#
# Newton's threads could stop one by one. Often they can't. Open a tap in the corner of a maze: in each round the water moves one step on, and the first round in which it moves nowhere is the last. No single thread can tell which round that is, because its own cell may stay dry for long and then get wet after all.

# %% id=maze
small = maze(32)
small_open = agt.h2d(agt.pin(small.ravel()), "open").sync().share()
draw_flood(small, flood_in_numpy(small), 20, 80, 126, 127)  # red: where it has just come

# %% [markdown] id=maze-python
# With Python in charge, that's a launch for each step of the water. A step reads one array and writes another, and then the two change places:

# %% id=maze-step
NEXT_TO = r"""
// Whether the water stands at this level beside the thread's own cell.
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level) || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level) || (y < width - 1 && depth[i + width] == level);
}
"""
flood_step = agt.Kernel(
    NEXT_TO
    + r"""
extern "C" __global__ void flood_step(
    int level, int width, const unsigned char* open, const int* depth, int* after, int* grew)
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
    level = 0
    while True:
        step = agt.zeros(1, np.int32).and_then(
            lambda grew: flood_step(
                level, free.shape[1], on_device, depth.borrow(), after.borrow().partition(256), grew
            )
        )
        grew = step.last().to_host().sync_on(stream)
        depth, after, level = after, depth, level + 1
        if not grew[0]:
            return agt.d2h(depth).sync_on(stream)


steps, by_python = recorded(flood_by_python, small, small_open)
print(f"{len(by_python.find('flood_step'))} launches, {by_python.metrics().makespan:.0f} µs")

# %% id=maze-python-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
assert len(by_python.find("flood_step")) == steps.max() + 1

# %% [markdown] id=vote-text
# The maze has $32 \times 32 = 1024$ cells, so a block of 1,024 threads is enough. And the threads of a block can *vote*: `__syncthreads_or(p)` tells each of them whether `p` holds for any. It's a barrier as well: the answer comes when all threads that haven't ended have voted.
#
# So everybody leaves the loop in the same round. If a thread went home early, the barrier wouldn't wait for it, and its cell would stay dry forever.

# %% [markdown] id=exercise-flood
# ### Exercise: let the block decide
#
# The kernel below takes one step and ends. Make it go on until a step reaches nothing. At the end, thread 0 writes the number of steps to `rounds[0]`, counting the last one, which found nothing.
#
# All of a step's reads have to come before any of its writes, and all of its writes before the next step's reads. (A new `level + 1` fools nobody who looks for `level`. But an ordinary read and write of one word at the same time are a race, and then CUDA promises nothing.)

# %% id=11-flood starter
FLOOD = r"""
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level) || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level) || (y < width - 1 && depth[i + width] == level);
}

extern "C" __global__ void flood(int width, const unsigned char* open, int* depth, int* rounds)
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
FLOOD = r"""
__device__ bool next_to(int level, int width, const int* depth)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % width, y = i / width;
    return (x > 0 && depth[i - 1] == level) || (x < width - 1 && depth[i + 1] == level)
        || (y > 0 && depth[i - width] == level) || (y < width - 1 && depth[i + width] == level);
}

extern "C" __global__ void flood(int width, const unsigned char* open, int* depth, int* rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int level = 0;
    while (level < width * width) {
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        __syncthreads();
        if (reached) depth[i] = level + 1;
        level++;
        if (!__syncthreads_or(reached)) break;
    }
    if (i == 0) rounds[0] = level;
}
"""

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
# Now one launch takes all 127 rounds: 126 steps, and the last, which finds nothing. A round of the simulated block, with its two barriers, takes about 0.34 µs. Around the kernel there's one conversation: two copies, a fill, a launch, and a single wait for all of them.

# %% id=flood-run
flood = agt.Kernel(solved("11-flood", FLOOD), "flood")  # yours, if the check accepted it


def flood_by_block(free, on_device):
    op = agt.zip(agt.h2d(dry(free)), agt.zeros(1, np.int32)).and_then(
        lambda given: flood(free.shape[1], on_device, *given, grid=1, block=free.size)
    )
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)


print(f"Python made {len(by_python.find('flood_step'))} launches,", end=" ")
print(f"and took {by_python.metrics().makespan:,.0f} µs.")

# %% id=11-block guess within=0.2
# How many microseconds does it take with one launch, from the first call to the end of the wait?

# %% id=11-block reveal
steps, by_block = recorded(flood_by_block, small, small_open)
faster = by_python.metrics().makespan / by_block.metrics().makespan
begun = min(span.start for span in by_python)
meanwhile = by_python.between(begun, begun + by_block.metrics().makespan)
picture = agt.compare_timelines(
    [meanwhile, by_block],
    ["Python decides, in the same time", "The block decides: the whole flood"],
    lanes=("host", "streams"),
)
kernel_us, by_then = by_block.find("flood")[0].duration, len(meanwhile.find("flood_step"))
facts = {"times": faster, "kernel": kernel_us, "by_then": by_then}
reveal("11-block", round(by_block.metrics().makespan), picture, **facts)

# %% id=11-block lesson
# While the block floods the whole maze, Python copies its two arrays, and hardly begins.

# %% id=11-block told truth=85
# That's {times:.0f} times as fast. The kernel with its 127 rounds took {kernel:.0f} µs of it, and in the same time Python gets as far as round {by_then}. The rest is one conversation instead of 127. It's shorter than that of `gpu_decides`, which waited twice.

# %% id=flood-run-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
if device.simulated:
    assert faster > 5

# %% [markdown] id=promises
# ## What CUDA promises
#
# Inside a block, the vote did it all: it collected, waited, and showed each thread what the others had written. Between blocks you build that from parts. Say a sender writes `data` and then a `flag`, and a receiver in another block looks at the flag:

# %% id=message-picture
draw_steps(
    "Without fences, the flag gets to memory before the data, and the receiver reads a 1 and then the old 0. "
    "With a fence on either side, the receiver gets both.",
    OVERTAKEN,
    IN_ORDER,
)

# %% [markdown] id=message-read
# On the right, the fence and the write of the flag behind it are a *release*; the read of the flag and the fence behind it, an *acquire*. If both touch the flag by an atomic or as `volatile`, whoever sees the flag sees the data.
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
draw_steps(
    "Thread 5 of block 0 writes; behind a barrier, thread 0 fences and sets the flag. Thread 0 "
    "of block 1 sees "
    "the flag and fences; behind a barrier, thread 9 reads what thread 5 wrote (the dotted arrow).",
    TWO_BLOCKS,
)

# %% [markdown] id=order-read
# So there are three parts, and each promises less than you'd think:
#
# | | it promises | it does not promise |
# |---|---|---|
# | a **fence**, `__threadfence()` | the order that you've just seen | that anybody waits |
# | an **atomic**, such as `atomicAdd` | to read, change and write in one step, which no other device-wide atomic can split | any order of what comes before and after it |
# | a **barrier**, `__syncthreads()` | that nobody goes on until all threads of the block that haven't ended have come, and that they then see what any of them wrote | anything to another block |
#
# Compiler and hardware may do what you've just seen, but the hardware rarely does: when we sent that message without fences on an H200, the receiver read a 1 and then the old 0 in 1 of 1,048,576 runs. Such a program passes your tests and fails in front of a customer.
#
# Strictly, `*moved = 1` in our first kernel breaks these rules, since hundreds of threads may write it at once. But all write the same 1, and nobody reads it before the launch is over, so no GPU that we know minds.

# %% [markdown] id=grid-text
# ## A larger maze
#
# A maze of 64 by 64 needs at least four blocks (we take 16, for more SMs), and then our vote isn't enough.
#
# > **Misconception: `__syncthreads()` waits for everybody.**
# >
# > - *What you see:* right numbers as long as there is one block, and now and then with more.
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
draw_steps(
    "It may go like this: block 0 passes its own barrier and reads x[1] before block 1 has begun.",
    (
        "",
        (
            "block 0 | data 0.1 1.5 x[0] = 0 | order 1.6 3.3 __syncthreads | bad 3.4 4.9 x[1]? 0",
            "block 1 |  0.1 4.9 not begun | data 5 6.4 x[1] = 1 | order 6.5 8.2 __syncthreads",
        ),
        (),
    ),
)

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
draw_steps(
    "Three blocks meet twice; in the counter, the goals are yellow. Block 1 happens to look late: block 0 "
    "has counted for the second meeting by then, so block 1 sees a 4, and never saw the 3.",
    MEETING,
)

# %% [markdown] id=grid-details
# Four details matter:
#
# 1. Thread 0 counts for its block. There's a `__syncthreads()` **before** that, because a block that's still at work mustn't be counted, and one **after** the last look, so that nobody goes on too early.
# 2. The counter is a flag, so it needs both fences: one between the work and the counting, and one behind the last look. Those of thread 0 are enough.
# 3. A look must be real. An ordinary read may be answered by a register or the SM's cache, which needn't learn the news. A `volatile` read asks memory each time. So does the `load` of a `cuda::atomic_ref`, which is what you'd write in new code, because it carries its fence with it (you meet it at the end of [12](12_async_inside_a_kernel.ipynb)). Here we look by `atomicAdd(arrived, 0)`, which adds nothing and returns what it found. It's the dearest of the three, since atomics on one word take turns and reads don't. But our block sends only one thread to look, so on an H200 a meeting of 16 blocks takes 1.05 µs with it, 0.98 with `volatile` reads, and 0.84 with the instructions that `atomic_ref` is compiled to.
# 4. The counter just goes on: the goals of 16 blocks are 16, 32, 48.
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
        while (false) {                            // wait until the counter has reached the goal
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

# %% id=11-meet-check
check("11-meet", MEET)

# %% [markdown] id=flood-grid-text
# The flood again. Now blocks read the flag in the same launch, so `atomicExch` writes it. And each level has a flag of its own. A single one could never be lowered: between a step's two meetings its writers may raise it, and from there to the next meeting some block may still have to read it, for its `break`.

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
        // Ordinary reads of depth: the last fence of meet() has made the news visible.
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


def flood_by_grid(free, on_device, threads=256):
    blocks = free.size // threads
    op = agt.zip(
        agt.h2d(dry(free)), agt.zeros(free.size, np.int32), agt.zeros(1, np.uint32)
    ).and_then(
        lambda given: many_blocks(free.shape[1], on_device, *given, grid=blocks, block=threads)
    )
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)


large = maze(64, seed=1)
large_open = agt.h2d(agt.pin(large.ravel()), "open").sync().share()
_, large_by_python = recorded(flood_by_python, large, large_open)
steps, by_grid = recorded(flood_by_grid, large, large_open)
draw_flood(large, steps, 120, 204, 204, rows=4, zoom=(40.5, 52.5, 63.5, 51.5))
rounds_of_water = steps.max() + 1
whole_us = by_grid.find("many_blocks")[0].duration
quiet = [16 - np.unique(np.flatnonzero(steps == each) // 256).size for each in (1, 204)]
print(f"In round 1, {quiet[0]} of the 16 blocks see nothing new, and in round 204 it's {quiet[1]}.")
print("If each block went by a vote of its own, these would go home, and their cells stay dry.")
print(f"Python: {large_by_python.metrics().makespan:,.0f} µs")
print(f"16 blocks: {by_grid.metrics().makespan:,.0f} µs")
print(
    f"The kernel: {whole_us:,.0f} µs, {whole_us / rounds_of_water:.1f} for each of {rounds_of_water} rounds"
)

# %% id=flood-grid-check tags=asserts
assert (steps == flood_in_numpy(large).ravel()).all()

# %% [markdown] id=hot-text
# Where does a round's time go? It has two meetings, so we suspected those, and we were wrong. On an H200, 410 such meetings with nothing between them took 424 µs. That's about 1 µs each, and 2 in a round.
#
# The culprit is the last line of the loop. All 4,096 threads ask for `grew[level]`, at the same moment, and they ask by an atomic. Atomics on one word take turns. In our model that's about 1.5 clocks each, so the last thread waits $4096 \cdot 1.5$ clocks, or 3 µs, for a word that everybody only wants to read. Let one thread of each block ask instead, and tell the others by a vote:

# %% id=hot-code
ask_once = many_blocks.source.replace(
    "if (atomicAdd(&grew[level], 0) == 0) break;",
    "if (!__syncthreads_or(threadIdx.x == 0 && atomicAdd(&grew[level], 0))) break;",
)
everybody_asks = many_blocks
many_blocks = agt.Kernel(ask_once)
with agt.record() as by_vote:
    steps = flood_by_grid(large, large_open)
once_us = by_vote.find("many_blocks")[0].duration
print(f"Everybody asks: {whole_us:,.0f} µs. One thread of each block asks: {once_us:,.0f} µs")

# %% id=hot-check tags=asserts
assert ask_once != everybody_asks.source
assert (steps == flood_in_numpy(large).ravel()).all()
if device.simulated:
    assert whole_us > 1.3 * once_us
    assert 900 < whole_us < 1500  # 1,187 on an H200
    assert 500 < once_us < 850  # 674

# %% [markdown] id=places
# On an H200, the kernel took 1,187 µs when everybody asked, and 674 when one thread of each block did. (We took the median of many runs, without a profiler.) So nearly half of the time went into the question. On an H100 we ran the cell with Python beside it, and everybody asking: the sixteen blocks were done after 1.4 ms, and Python after 22, in the better of two runs. So the GPU was 15 times as fast.
#
# There's a condition that's easy to miss. A block keeps its place on the GPU until it ends. If a seventeenth block found no place, it would begin only when another one ends, and the others would all wait for it. So **blocks that wait for each other must all have a place at the same time.** How many have one depends on the GPU, on the kernel's registers and shared memory, and on who else is there. Our 16 met because the GPU was empty. (In an encore, you count how many can.)
#
# CUDA promises places for a **cooperative launch**: it counts those of an otherwise empty GPU first, and refuses a grid that's too large. In it you can call `grid.sync()`, which waits for all blocks and orders memory, as `meet` does. If a kernel calls `this_grid()`, `agt` makes it one.

# %% [markdown] id=pays-text
# ## When it doesn't pay
#
# If you've written CUDA in C++, you've been shaking your head for a while: *of course* Python is slow. But whoever asks the host after each round waits, in any language. In C++, too, on an H100, one kernel was about ten times as fast as asking: 13 µs against 128. (An encore has the whole table.)
#
# What you save in either language is the conversation, and nothing else. So it matters how long a round takes. Let's make Newton's rounds longer: in each, the threads now go through some useless steps first.

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
    return agt.Kernel(SLOWLY + text.replace("(unsigned int n", "(unsigned int work, unsigned int n"))


slow_step, slow_whole = slowed(newton_step), slowed(newton)


def asked_slowly(work):
    python_decides(numbers, partial(slow_step, work))


def decided_slowly(work):
    gpu_decides(numbers, partial(slow_whole, work))


def draw_gain(longer, asked, decided, knee):
    """How long both take if a round is so much longer, up to the fifth; and how many times as fast one is."""
    figure = plt.figure(figsize=(10, 3), layout="constrained")
    plt.subplot(1, 2, 1, xlabel="µs that a round takes longer", ylabel="µs for the whole run")
    for times, name in ((asked, "Python decides"), (decided, "the GPU decides")):
        plt.plot(longer[:5], times[:5], "o-", label=name)
    plt.axvspan(0, knee, color=YELLOW, alpha=0.4, label=f"{knee:.0f} µs a round for nothing")
    plt.ylim(0, 1.6 * asked[4])
    plt.legend(loc="upper left")
    plt.subplot(1, 2, 2, xlabel="µs that a round takes longer", ylabel="times as fast")
    plt.plot(longer, asked / decided, "o-", color="0.3")
    plt.axhline(1, color="0.3", linestyle=":")
    for k in (0, 4, -1):
        gain, beside = asked[k] / decided[k], {"textcoords": "offset points", "xytext": (5, 6)}
        plt.annotate(f"{gain:.1f}", (longer[k], gain), **beside)
        print(f"a round {longer[k]:.0f} µs longer: Python {asked[k]:,.0f} µs, the GPU {decided[k]:,.0f} µs")
    plt.ylim(0, 1.15 * max(asked / decided))
    shown(
        figure,
        "Left: the single launch takes longer at once, Python only from the knee on, and then as steeply. "
        "Right: the gain falls towards 1.",
    )

# %% id=pays-run
useless = np.array([0, 60, 120, 240, 360, 1000, 4000]) * (1 if device.simulated else 10)
decided = np.array([makespan(decided_slowly, int(work)) for work in useless])
asked = [makespan(asked_slowly, 0)]
print(f"as before: Python {asked[0]:.0f} µs, the single launch {decided[0]:.0f}")
print(f"with {useless[4]} useless steps in each round: the single launch {decided[4]:.0f} µs")

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
# Before you move a loop, compare the time of one round with that of one question.
#
# | it does not pay | because |
# |---|---|
# | when a round takes long | you save no more than with short ones, and that's less of a longer run |
# | when you know the number of rounds | you can put them all into one graph and ask nothing (from C++, that's 0.9 µs a step on an H100, measured with `benchmarks/turns.cu`) |
# | when others want the GPU, too | your kernel keeps its places until it ends |
# | when the work needs more blocks than have a place | they can't meet, so each has to do several pieces in turn |
# | when you still look for the bug | a loop in Python can be stopped, printed and stepped through |

# %% [markdown] id=key-points
# ## Key points
#
# - If the host decides about data on the GPU, each decision costs a launch, a copy and a wait, in any language. Let a kernel decide.
# - A message takes a release (fence, then flag) and an acquire (flag, then fence). One thread can do either for its whole block, with a barrier before the release, or behind the acquire.
# - The threads of a block agree by a vote: all get the same answer.
# - A grid agrees at a barrier, for which all of its blocks need a place at the same time. A cooperative launch guarantees that.
# - You save the conversation and nothing else, so long rounds have little to gain.
#
# **Next:** in [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) a kernel waits for several things at once.

# %% id=score
score("11")

# %% id=progress
progress("11")

# %% [markdown] id=encores
# ## Encores
#
# *The chapter is done. Here's a count of the blocks that can meet, then a challenge and a comparison with C++, and then three more ways to talk less: let a graph ask, ask less often, stay for the next job. At the end, blocks agree in two other ways: without waiting, and without a goal.*

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
    shown(figure, "Sixteen blocks of four warps fill 64 places; the seventeenth to twentieth have none.")
    print("One SM. A column is a block: three warps of 32 threads, and one of 4, which takes a whole place.")
    print("20 blocks would be 2,000 threads, but 80 warps.")

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
        agt.Kernel(everybody)(agt.zeros(1, np.uint32), grid=blocks, block=100).sync()
        return True
    except agt.errors.DeadlockError:
        return False


def largest():
    """By halving the doubt."""
    most, too_many = 1, 4096
    while too_many - most > 1:
        middle = (most + too_many) // 2
        most, too_many = (middle, too_many) if can_meet(middle) else (most, middle)
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
    return agt.Kernel(together)(present, sum, grid=blocks, block=100).last().to_host().sync()[0]


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

# %% [markdown] id=ways-read
# ### Is it Python's fault?
#
# Here are whole runs for our 1,024 numbers on one H100 80GB, in µs, with a copy of the roots to the host. (Two numbers are two processes.)
#
# | Newton's nine rounds | Python | Python, [prepared](09_cuda_graphs.ipynb) | C++ |
# |---|---|---|---|
# | the host asks after each | 523, 640 | 266, 294 | 128 |
# | nine launches, and nobody asks | | | 44 |
# | a graph with a `while` node, which asks the device (the next encore) | | 98, 106 | 74 |
# | one kernel | 49, 63 | 36, 46 | 13 |
#
# These are runs without a profiler. The first picture of this page is a recording of the same loop on an H200 in another machine, and it took 766 µs there: a profiler makes each of the host's calls take longer, and hosts differ.
#
# In part: C++ asks four times as quickly as Python, and twice as quickly as Python that has prepared its operations. But whoever asks the host after each round waits, in any language, so in C++ too the one kernel is about ten times as fast as asking. Nearly three quarters of that gain is in *not asking*. And in Python? Let it launch all nine rounds and not ask:

# %% id=ways-python
def nobody_asks(numbers):
    x, moved = agt.ones(numbers.size).sync_on(stream), agt.zeros(1, np.int32).sync_on(stream)
    for _ in range(rounds):
        step = newton_step(numbers.size, numbers, x.borrow().partition(256), moved.borrow())
        step.async_on(stream)
    stream.synchronize()


for run in (python_decides, nobody_asks, gpu_decides):
    print(f"{run.__name__}: {makespan(run, numbers):.0f} µs")

# %% [markdown] id=ways-python-read
# On the simulated device, about half of the gain is in not asking. The other half is in *launching once*, because Python describes each launch anew.

# %% [markdown] id=ways-text
# ### A graph that goes round
#
# You needn't write a new kernel to keep the host out. A [graph](09_cuda_graphs.ipynb) can have a **`while` node**, and then the host makes one call. Before each *turn*, a small kernel, which `agt` adds, reads a number in memory, and the loop ends if it's 0. So `newton_step` stays as it is, and its flag decides:
#
# ```python
# loop = agt.CudaGraph.while_loop(flag, turn)      # flag: one int32 on the device; turn: an operation
# agt.zip(start, loop).graph_on(stream)            # start: an operation that runs once, before the loop
# ```
#
# A graph keeps the order of a `zip`, so `zip` says when the flag goes down: before the step that may raise it.

# %% id=ways-graph
def graph_of_newton(numbers, steps=1):
    """A graph that starts with ones and a raised flag, and goes round as long as the flag is up."""
    n = numbers.size
    ones, x = (agt.ones(n).sync_on(stream) for _ in range(2))
    up, down, moved = (agt.full(1, k, np.int32).sync_on(stream) for k in (1, 0, 0))
    # Once, at the start: x = 1, and the flag goes up.
    start = agt.zip(agt.memcpy(x.borrow(), ones.borrow()), agt.memcpy(moved.borrow(), up.borrow()))

    def step():
        return newton_step(n, numbers, x.borrow().partition(256), moved.borrow())

    # In each turn: the flag goes down, and a thread whose number moves in the last step raises it again.
    lower = agt.memcpy(moved.borrow(), down.borrow())
    turn = agt.zip(*[step() for _ in range(steps - 1)], lower, step())
    return agt.zip(start, agt.CudaGraph.while_loop(moved.borrow(), turn)).graph_on(stream), x


newton_graph, z = graph_of_newton(numbers)
newton_ready = agt.ones(numbers.size).and_then(
    lambda x: newton(numbers.size, numbers, x.partition(256))
).prepare()


def decided_by(launch):
    return recorded(lambda: launch.sync_on(stream))[1]


turning, by_one_kernel = decided_by(newton_graph.launch()), decided_by(newton_ready.launch())
if device.simulated:
    begun = [question.start for question in turning.find("while")]
    turns = [(begun[k - 1], begun[k], str(k)) for k in range(1, len(begun))]
    turning = turning.with_lane("turns", turns)
agt.compare_timelines(
    [turning, by_one_kernel],
    ["A graph decides", "One kernel decides, prepared"],
    lanes=("host", "streams"),
    lesson="The graph makes nine turns: a question (here \"while\"), a copy that lowers the flag, and a "
    "step. The first question takes longer, because it also starts the loop, and the tenth ends it. Both "
    "programs were described before the recording began, as Python's rounds weren't.",
)

# %% [markdown] id=ways-question
# Now let's put *four* steps into each turn, with the flag lowered just before the last. Newton's nine rounds become three turns.

# %% id=ways-before
print(f"The graph took {turning.metrics().makespan:.0f} µs for nine turns of one step.")

# %% id=11-ways guess within=0.1
# How many does it take for three turns of four steps?

# %% id=11-ways reveal
fewer_turns = decided_by(graph_of_newton(numbers, steps=4)[0].launch())


def turn_by_turn():
    if device.simulated:
        for name, what in (("while", "a question"), ("d2d", "a copy"), ("newton_step", "a step")):
            span, counts = turning.find(name)[-1], [len(t.find(name)) for t in (turning, fewer_turns)]
            print(f"{what}: {span.duration:.1f} µs, {counts[0]} and {counts[1]}")
    for name, trace in (("one step a turn", turning), ("four steps a turn", fewer_turns)):
        print(f"{name}: {trace.metrics().makespan:.0f} µs")


reveal("11-ways", round(fewer_turns.metrics().makespan), turn_by_turn)

# %% id=11-ways told truth=56
# Six questions and six copies of the flag are gone. What's left are the start, which takes as long as before, four questions (the last says that it's over), and twelve steps instead of nine.

# %% id=ways-check tags=asserts
assert np.allclose(agt.d2h(z.borrow()).sync(), np.sqrt(a), rtol=1e-6)
if device.simulated:
    assert len(turning.find("newton_step")) == rounds
    assert (len(fewer_turns.find("newton_step")), len(fewer_turns.find("while"))) == (12, 4)
    assert by_one_kernel.metrics().makespan < turning.metrics().makespan < asking.metrics().makespan / 3

# %% [markdown] id=ways-h100
# On the H100 of the table, this graph took 98 to 106 µs from Python, and with four steps in each turn 67 to 72. From C++ such graphs took 74 and 51.

# %% [markdown] id=sand-text
# ### A pile of sand
#
# Let grains of sand fall on a table, one at a time. A cell that holds four of them *topples*: one grain slides to each of its four neighbours, or off the table. Now one of the neighbours may hold four, so it topples as well, and so on. Some grains just lie where they fell, and others start an avalanche. Nobody can tell how long it lasts until it's over, which is why physicists have been fond of this pile since 1987. (Look for Bak, Tang and Wiesenfeld.)
#
# Here are two kernels. `drop` lets a grain fall. `topple` is one *wave*: all cells that hold four or more topple at the same time. Both raise the flag `unstable` if they leave a cell that has to topple. Neither of them ever lowers it.

# %% id=sand-kernels
PILE = r"""
extern "C" __global__ void drop(int* sand, const int* where, int* unstable, int* waves)
{
    int now = sand[*where] + 1;
    sand[*where] = now;
    if (now >= 4) *unstable = 1;
    *waves = 0;
}

extern "C" __global__ void topple(int* sand, int* unstable, int* waves)
{
    int x = threadIdx.x, y = threadIdx.y, width = blockDim.x, i = y * width + x;
    int now = sand[i] < 4 ? sand[i] : sand[i] - 4;
    if (x > 0 && sand[i - 1] >= 4) now++;
    if (x < width - 1 && sand[i + 1] >= 4) now++;
    if (y > 0 && sand[i - width] >= 4) now++;
    if (y < width - 1 && sand[i + width] >= 4) now++;
    __syncthreads();
    sand[i] = now;
    if (now >= 4) *unstable = 1;                   // all the same 1, as with `moved`
    if (i == 0) *waves += 1;                       // how long the avalanche has lasted
}
"""
drop_grain, topple_all = agt.Kernel(PILE, "drop"), agt.Kernel(PILE, "topple")

# %% [markdown] id=exercise-while
# ### Exercise: until the sand lies still
#
# Write `avalanche`. It returns a CUDA graph on `stream`, and in each launch of this graph one grain falls, and waves follow as long as there's a cell that has to topple. An avalanche of twelve waves gets twelve, and a grain that just lies there gets none. `waves` counts them, because we want to know how long an avalanche lasts, so one wave too many is a wrong measurement.
#
# `drop()` and `topple()` give you operations, and `unstable` is the flag, an array of one `int32` on the device that's 0 at the start. The version below makes ten waves for each grain and hopes for the best.

# %% id=11-while starter
def avalanche(drop, topple, unstable, stream):
    """A graph in which a grain falls, and then the pile goes through ten waves."""
    return agt.zip(drop(), *[topple() for _ in range(10)]).graph_on(stream)

# %% id=11-while solution
def avalanche(drop, topple, unstable, stream):
    """A graph in which a grain falls, and then the pile topples until it lies still."""
    down = agt.zeros(1, np.int32).sync_on(stream)
    wave = agt.zip(agt.memcpy(unstable.borrow(), down.borrow()), topple())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), wave)
    return agt.zip(drop(), waves).graph_on(stream)

# %% id=11-while hints
# `graph_of_newton`, under "A graph that goes round", has all the parts: something that happens once, a loop, and a flag that goes down in each turn. What may be left out here, since `drop` says by itself whether there's anything to do?
#
# A turn is two operations in an `agt.zip`: the flag goes down, and then comes a wave. The other way round, you'd wipe out what the wave has just said. To lower the flag, copy a 0 over it with `agt.memcpy`, from an array that you make before the graph, because a graph's turn can't allocate one.
#
# The loop is `agt.CudaGraph.while_loop(unstable.borrow(), turn)`, and the graph is `agt.zip(drop(), loop).graph_on(stream)`.

# %% id=11-while explanation
# A flag needs somebody who lowers it, and the moment matters: here it's once in each turn, before the wave can raise it. The loop ends with the flag down, so the graph is ready for the next grain. (Newton's graph went faster with four steps in each turn. Here that would count waves that never happened, unless you put a `cond` between two of them.)

# %% id=11-while-check
check("11-while", avalanche)

# %% [markdown] id=sand-question
# Now let's disturb something. On a table of 31 by 31 cells, each cell holds three grains, so a single one more is too much for any of them. Our grain falls in the middle.

# %% id=run-sand
WIDTH = 31
sand = agt.zeros((WIDTH, WIDTH), np.int32).sync_on(stream)
where, unstable, waves = (agt.zeros(1, np.int32).sync_on(stream) for _ in range(3))


def drop():
    given = [array.borrow() for array in (sand, where, unstable, waves)]
    return drop_grain(*given, grid=1, block=1)


def topple():
    given = [array.borrow() for array in (sand, unstable, waves)]
    return topple_all(*given, grid=1, block=(WIDTH, WIDTH))


grain = solved("11-while", avalanche)(drop, topple, unstable, stream)


def fall(cell=WIDTH**2 // 2):
    """Let a grain fall on a cell, and return how many waves it starts."""
    agt.memcpy(where.borrow(), agt.pin(np.full(1, cell, np.int32))).sync_on(stream)
    grain.launch().sync_on(stream)
    return int(agt.d2h(waves.borrow()).sync_on(stream)[0])


def fall_on(pile):
    """Let a grain fall in the middle of a pile: what is left, and after how many waves."""
    agt.memcpy(sand.borrow(), agt.pin(pile)).sync_on(stream)
    count = fall()
    return agt.d2h(sand.borrow()).sync_on(stream), count


flat = np.full((WIDTH, WIDTH), 3, np.int32)
heap = np.zeros_like(flat)
heap[WIDTH // 2, WIDTH // 2] = 700

# %% id=11-sand guess within=0.15
# How many waves does it start? (Type a number.)

# %% id=11-sand reveal
def two_piles():
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2))
    for axis, pile, name in zip(axes, (flat, heap), ("three everywhere", "700 in the middle")):
        left, count = fall_on(pile)
        picture = axis.imshow(left, cmap=plt.get_cmap("viridis", 4), vmin=-0.5, vmax=3.5)
        axis.set_title(f"{name}: {count} waves")
        axis.axis("off")
        print(f"{name}, and a grain more: {count} waves")
    figure.colorbar(picture, ax=axes, ticks=range(4), label="grains in a cell", shrink=0.7)
    shown(
        figure,
        "Left: threes, with a cross of ones from corner to corner, and a 0 in the middle. Right: the "
        "heap has become a round ornament.",
    )


_, slid = fall_on(flat)
reveal("11-sand", slid, two_piles)

# %% id=11-sand told truth=31
# Sand doesn't slide diagonally, so each corner is 30 steps away from the middle, and with the middle's own wave that makes 31. It ends there, because each cell topples once for each ring from the edge to its own: a corner once, in the last wave, and the middle 16 times, in every second one.

# %% id=sand-check tags=asserts
left, slid = fall_on(flat)
assert (left.max(), slid) == (3, WIDTH)

# %% [markdown] id=sand-read
# So far we've staged the avalanches. Now forty grains fall at random, one after the other, on what the first one has left:

# %% id=sand-grains
fall_on(flat)  # and the pile stays on the device
with agt.record() as falling:
    lasted = [fall(cell) for cell in np.random.default_rng(0).integers(WIDTH**2, size=40)]
figure = plt.figure(figsize=(8, 2.6))
plt.bar(range(1, 41), lasted, color=YELLOW, edgecolor="0.3")
plt.xlabel("grain")
plt.ylabel("waves")
none, most_waves = lasted.count(0), max(lasted)
plt.title(f"{none} grains just lie there, and one starts {most_waves} waves")
shown(figure, "Bars of very different heights, in no order, and gaps between them.")
print("waves of each grain:", *lasted)
asked_us = waits[2].end - waits[1].end  # one of the rounds in the first picture
talk = sum(lasted) * asked_us / 1000
print(f"{sum(lasted):,} in all, by the graph in {falling.metrics().makespan / 1000:.0f} ms")
print(f"at {asked_us:.0f} µs each, as for Newton's rounds: {talk:.0f} ms")

# %% [markdown] id=sand-grains-read
# Small ones, large ones, and no way to tell beforehand. Yet each grain was one launch, between a copy that says where it falls and one that fetches the number of its waves. If the host had to ask after each wave, as it did after Newton's rounds, the avalanches would take the time that's printed last.

# %% [markdown] id=ask-less-intro
# ### Ask less often
#
# If you can't change the kernel, change the questions. Nobody forces you to ask after *every* round. Enqueue four rounds, and look at the flag of the fourth. You may run a few rounds too many, and a root that has settled doesn't mind.

# %% [markdown] id=exercise-ask-less
# ### Exercise: ask less often
#
# `round_op()` gives an operation that runs one round and yields the flag, an array on the device. Run `every` rounds for each look, all on `stream`. Return how many rounds were run.

# %% id=11-ask-less starter
def settle(round_op, every, stream):
    rounds = 0
    while True:
        moved = round_op().to_host().sync_on(stream)  # asks after every round
        rounds += 1
        if not moved[0]:
            return rounds

# %% id=11-ask-less solution
def settle(round_op, every, stream):
    rounds = 0
    while True:
        for _ in range(every - 1):
            round_op().async_on(stream)
        moved = round_op().to_host().sync_on(stream)
        rounds += every
        if not moved[0]:
            return rounds

# %% id=11-ask-less hints
# A round whose flag nobody reads does not need to be waited for. Which of the four ways to run an operation returns at once?
#
# `round_op().async_on(stream)` enqueues a round. Do that `every - 1` times, and then one round as it stands in the starter.
#
# A `for _ in range(every - 1)` loop in front of the line with `sync_on`, and `rounds += every` behind it.

# %% id=11-ask-less explanation
# The stream keeps the rounds in order, so Python may run ahead of them. It costs up to `every - 1` rounds too many, and it works for kernels that you cannot change. What it gains, we will see in a moment.

# %% id=11-ask-less-check
check("11-ask-less", settle)

# %% [markdown] id=ask-less-question
# Let's put it to the test. Looking after every round, Newton takes 9 rounds and 9 looks. With a look every four rounds it takes 12 rounds, and only 3 looks. Here's what Python does between two looks if it looks after every *second* round:

# %% id=ask-less-every
my_settle = solved("11-ask-less", settle)  # yours, if the check accepted it


def asking_every(every):
    x = agt.ones(1024).sync_on(stream)

    def round_op():
        return agt.zeros(1, np.int32).and_then(
            lambda moved: newton_step(1024, numbers, x.borrow().partition(256), moved)
        ).last()

    return my_settle(round_op, every, stream)


nine, often = recorded(asking_every, 1)
took = {1: (nine, often.metrics().makespan)}
_, by_two = recorded(asking_every, 2)
ready = [span.end for span in by_two if span.kind == "wait"]
two_rounds = by_two.between(ready[1], ready[2]).from_first()
begun = [span.start for span in two_rounds if "malloc" in span.name]  # a round begins with its flag
round_us, both_us = begun[1], ready[2] - ready[1] - begun[1]
parts = [
    (0, begun[1], f"a round: {round_us:.1f} µs"),
    (begun[1], two_rounds.metrics().makespan, f"a round and a look: {both_us:.1f} µs"),
]
agt.compare_timelines(
    [two_rounds.with_lane("for what", parts)],
    ["Two rounds, and the look behind the second"],
    lesson="For a round, the host makes a flag, clears it and launches the kernel, and some time passes "
    "until it goes on. For a look, it copies the flag and waits.",
)

# %% id=ask-less-before
print(f"With a look after every round it takes {took[1][1]:.0f} µs,", end=" ")
print(f"of which {ready[0]:.0f} fill `x` first.")

# %% id=11-fewer guess within=0.08
# How many with a look every four rounds?

# %% id=11-fewer reveal
took |= {every: (asking_every(every), makespan(asking_every, every)) for every in (4, 9)}


def by_every():
    for every, (done, us) in took.items():
        print(f"a look every {every}: {done} rounds, looks: {done // every}, {us:.0f} µs")


facts = {"first": ready[0], "round_": round_us, "both": both_us}
reveal("11-fewer", round(took[4][1]), by_every, **facts)

# %% id=11-fewer told truth=404
# After the first {first:.0f} µs come three turns of 3 x {round_:.0f} + {both:.0f} µs. Six looks are gone, and three rounds are new. Python describes and launches each round, and that's most of a conversation.

# %% [markdown] id=ask-less-read
# ### Where it pays
#
# In Python, even a single look, after the ninth round, leaves two thirds of the time, because each round still clears its flag and is launched. Asking less pays where a launch is cheap: on an H100, one from C++ took 3.5 µs in a row of launches, and 9 with a wait behind it. In the graph above it paid, too, because there a question costs more than a step. (`benchmarks/turns.cu` measures more ways to go round, from C++.)

# %% [markdown] id=queue-text
# ### A kernel that stays
#
# Here's another conversation that you can end: "Here is a job. Here is the next one." There are 64 small jobs of very different lengths. A launch for each works, and costs 64 launches.
#
# Or launch *once*, with a few blocks that stay. Whenever a block has nothing to do, it takes the next job by itself. All it needs is a counter:
#
# ```text
#   job = atomicAdd(next, 1)      nobody else gets this number
# ```
#
# Such a kernel is called *persistent*, and the counter is the whole queue.

# %% [markdown] id=exercise-queue
# ### Exercise: write the queue
#
# A job is a sum of `length` terms, and all threads of a block, 64 or 32, work on it. The version below gives every block a fixed share, job 0 to block 0, job 1 to block 1, and so on. That's fine until one block gets all the long jobs. Have the blocks take their jobs from `next` instead. (You'll see what it gains in a picture at the end. The simulated device goes through its blocks in step, so there the clock can't tell.)

# %% id=11-queue starter
QUEUE = r"""
__device__ float work(unsigned int length)
{
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned int k = threadIdx.x + 1; k <= length; k += blockDim.x) {
        sum += 1.0f / ((float)k * (float)k);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    return part[0];
}

extern "C" __global__ void queue(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
{
    for (unsigned int job = blockIdx.x; job < jobs; job += gridDim.x) {
        float sum = work(lengths[job]);
        if (threadIdx.x == 0) results[job] = sum;
        __syncthreads();
    }
}
"""

# %% id=11-queue solution
QUEUE = r"""
__device__ float work(unsigned int length)
{
    __shared__ float part[64];
    float sum = 0.0f;
    for (unsigned int k = threadIdx.x + 1; k <= length; k += blockDim.x) {
        sum += 1.0f / ((float)k * (float)k);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    return part[0];
}

extern "C" __global__ void queue(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results)
{
    __shared__ unsigned int job;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(next, 1);
        __syncthreads();
        unsigned int mine = job;
        if (mine >= jobs) return;
        float sum = work(lengths[mine]);
        if (threadIdx.x == 0) results[mine] = sum;
        __syncthreads();
    }
}
"""

# %% id=11-queue hints
# One thread asks the counter, and the others have to learn the answer. How do the threads of a block pass a number around? By a `__shared__` variable.
#
# Thread 0 writes `job = atomicAdd(next, 1)`, then comes `__syncthreads()`, and then everybody reads `job`. Whoever reads a number that is not below `jobs` goes home, and as all read the same one, all go home together.
#
# Thread 0 must not fetch the next job before the others have read this one. Here the barriers in `work` see to it. As soon as the work itself has none, you need the `__syncthreads()` at the end of the loop, so leave it there.

# %% id=11-queue explanation
# A short job costs its block little, and the block comes back sooner for the next. Nobody planned that. The queue balances the load by itself.

# %% id=11-queue-check
check("11-queue", QUEUE)

# %% id=job-code
WORK = QUEUE.partition("extern")[0]  # the function `work`, as it stands above
one_job = agt.Kernel(
    WORK
    + r"""
extern "C" __global__ void one_job(unsigned int job, const unsigned int* lengths, float* results)
{
    float sum = work(lengths[job]);
    if (threadIdx.x == 0) results[job] = sum;
}
"""
)
worker = agt.Kernel(solved("11-queue", QUEUE))  # yours, if the check accepted it
JOBS = 64
lengths = np.random.default_rng(2).integers(10, 3000, JOBS).astype(np.uint32)
jobs_on_device = agt.h2d(agt.pin(lengths), "lengths").sync().share()


def a_launch_each():
    results = agt.zeros(JOBS).sync_on(stream)
    for job in range(JOBS):
        one_job(job, jobs_on_device, results.borrow(), grid=1, block=64).async_on(stream)
    return agt.d2h(results).sync_on(stream)


def persistent(blocks):
    op = agt.zip(agt.zeros(1, np.uint32), agt.zeros(JOBS)).and_then(
        lambda given: worker(JOBS, jobs_on_device, *given, grid=blocks, block=64)
    )
    return op.and_then(lambda given: agt.d2h(given[2])).sync_on(stream)

# %% [markdown] id=queue-question
# First let's send a **single** block of 64 threads, on a GPU that has room for thousands. It does all jobs, one after the other. The 64 launches go to one stream, so they run one after the other as well.

# %% id=queue-one
each, launched = recorded(a_launch_each)
alone, by_one = recorded(persistent, 1)
for name, trace in (("64 launches", launched), ("one block", by_one)):
    print(f"{name}: {trace.metrics().makespan:.0f} µs")

# %% [markdown] id=queue-more
# The launches lose by far, because the host takes longer to describe a small job than a block to do it. Now sixteen blocks share the queue.

# %% id=11-queue-share guess within=0.2
# How many times as fast as the one block are the sixteen, from the host's first call to its last?

# %% id=11-queue-share reveal
shared, by_sixteen = recorded(persistent, 16)
begun = min(span.start for span in launched)
meanwhile = launched.between(begun, begun + by_one.metrics().makespan)
picture = agt.compare_timelines(
    [meanwhile, by_one, by_sixteen],
    ["64 launches, in the same time", "One block that stays", "Sixteen blocks that stay"],
    lanes=("host", "streams"),
)
one, sixteen = (trace.find("queue")[0].duration for trace in (by_one, by_sixteen))
facts = {"times": one / sixteen, "one": one, "sixteen": sixteen}
facts["calls"] = by_sixteen.metrics().makespan - sixteen
gained = by_one.metrics().makespan / by_sixteen.metrics().makespan
reveal("11-queue-share", round(gained, 1), picture, **facts)

# %% id=11-queue-share lesson
# Sixteen blocks are through before the host is at its third launch.

# %% id=11-queue-share told truth=3.1
# The kernel is {times:.0f} times as fast, {sixteen:.0f} µs instead of {one:.0f}. (Not 16: simulated blocks go in step, so each round of sixteen jobs lasts as long as its longest.) But the host still makes its calls, copies and waits, about {calls:.0f} µs in both runs, and more blocks don't help with that.

# %% id=queue-check tags=asserts
right = np.array([(1 / np.arange(1, n + 1) ** 2).sum() for n in lengths])
for results in (each, alone, shared):
    assert np.allclose(results, right, rtol=1e-5)
if device.simulated:
    assert launched.metrics().makespan > 3 * by_sixteen.metrics().makespan

# %% id=queue-h200
agt.compare_timelines(
    on_an_h200("11_queue_by_launches", "11_queue"),
    ["64 launches", "Sixteen blocks that stay"],
    lanes=("host", "streams"),
    together=True,
    lesson="The same shape as above: the one kernel is over before the second of the 64 begins.",
)

# %% id=queue-h200-check tags=asserts
h200_launched, h200_stayed = map(agt.Trace.load_recording, ("11_queue_by_launches", "11_queue"))
assert (len(h200_launched.find("one_job")), len(h200_stayed.find("queue"))) == (JOBS, 1)
assert h200_launched.metrics().makespan > 3 * h200_stayed.metrics().makespan

# %% [markdown] id=blocks-text
# But why 64 launches, and why a queue of our own? *One* launch of 64 blocks, a block for each job, says it all at once. The GPU has a queue for blocks, and hands out the next one as soon as a place is free.

# %% id=blocks-run
block_each = agt.Kernel(
    WORK
    + r"""
extern "C" __global__ void block_each(const unsigned int* lengths, float* results)
{
    float sum = work(lengths[blockIdx.x]);
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}
"""
)


def a_block_each():
    results = agt.zeros(JOBS).sync_on(stream)
    op = block_each(jobs_on_device, results.borrow(), grid=JOBS, block=64)
    return op.and_then(lambda given: agt.d2h(given[1])).sync_on(stream)


in_blocks, by_blocks = recorded(a_block_each)
for name, trace, kernel in (
    ("64 blocks", by_blocks, "block_each"),
    ("sixteen that stay", by_sixteen, "queue"),
):
    us = trace.find(kernel)[0].duration
    print(f"{name}: {trace.metrics().makespan:.0f} µs, of which the kernel {us:.1f}")

# %% id=blocks-check tags=asserts
assert np.allclose(in_blocks, right, rtol=1e-5)
if device.simulated:
    assert by_blocks.find("block_each")[0].duration < sixteen

# %% [markdown] id=blocks-read
# So if you know all jobs at the start, launch a block for each, and let the GPU do the queueing. From C++, on an H200, 64 jobs of up to 999 terms took 302 to 319 µs with a launch each, 126 in a graph of these launches, 22 with 64 blocks that stay, and 21 with one launch of 64 blocks. With 1,024 jobs, the blocks that stay took 38 to 40 µs, and the one launch still 21. A queue of your own pays when jobs come later, when one job makes others, or when a block keeps something from one job to the next.

# %% [markdown] id=shares-text
# And what does the queue do that fixed shares don't? Let's reckon it, as if a term took the same time everywhere.

# %% id=shares
def draw_shares(*rows):
    """For each (title, lengths, the block of each job): the jobs of each block, one after the other."""
    figure, all_axes = plt.subplots(1, 3, figsize=(11, 3), sharex=True, sharey=True)
    for axes, (title, lengths, blocks) in zip(all_axes, rows, strict=True):
        ends = np.zeros(16)
        for job, block in enumerate(blocks):
            bar = {"color": (BLUE, YELLOW)[blocks[:job].count(block) % 2], "edgecolor": "0.3"}
            axes.barh(block, lengths[job], left=ends[block], **bar)
            ends[block] += lengths[job]
        axes.set(xlabel="terms", title=f"{title}: {ends.max():,.0f}", yticks=(0, 15))
        print(f"{title}: blocks are done after {ends.min():,.0f} to {ends.max():,.0f} terms")
    all_axes[0].set_ylabel("block")
    figure.tight_layout()
    shown(
        figure,
        "The jobs of 16 blocks as bars. Fixed shares end at very different times. With a queue, "
        "no block ends "
        "later than another by more than one job; with the longest jobs first, nearly all end together.",
    )


def from_a_queue(lengths):
    """Which block takes each job, if the one that is free first takes the next."""
    free_at, taken = np.zeros(16), []
    for length in lengths:
        taken.append(int(free_at.argmin()))
        free_at[taken[-1]] += length
    return taken


longest_first = np.sort(lengths)[::-1]
draw_shares(
    ("fixed shares", lengths, [job % 16 for job in range(JOBS)]),
    ("a queue", lengths, from_a_queue(lengths)),
    ("a queue, longest first", longest_first, from_a_queue(longest_first)),
)

# %% [markdown] id=shares-read
# With a queue, no block ends later than another by more than one job. So if you know how long the jobs are, put the longest first: then the last ones are short.

# %% [markdown] id=last-text
# ### Nobody waits
#
# At a barrier everybody waits, and often nobody has to. Suppose each block has added up its part of a long array, and now somebody has to add up the parts. Let that be the block that comes **last**, whichever it is. The other blocks are done with their parts by then, because all they had to do was write down a number and count themselves. So no block ever waits for another, and you may have as many of them as you like: there needn't be a place for all at the same time.

# %% [markdown] id=exercise-last
# ### Exercise: who is last?
#
# Complete `last`. All threads of each block call it when they've written their results. It returns true to all threads of the block that comes last. These may then read what *any* thread of any block wrote before its call. It returns false to everybody else, and waits for no other block.
#
# `arrived[0]` is 0 at first, and the last block sets it back to 0, for the next launch. The version below takes the block with the largest number for the last one.

# %% id=11-last starter
LAST = r"""
__device__ bool last(unsigned int* arrived)
{
    return blockIdx.x == gridDim.x - 1;
}
"""

# %% id=11-last solution
LAST = r"""
__device__ bool last(unsigned int* arrived)
{
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(arrived, 1) == gridDim.x - 1;
        if (is_last) atomicExch(arrived, 0);
        __threadfence();
    }
    __syncthreads();
    return is_last;
}
"""

# %% id=11-last hints
# The frame is that of `meet`: thread 0 counts for its block, between two `__syncthreads()` and between two fences. What's missing is the loop, since nobody waits.
#
# `atomicAdd` returns the number that was there *before*. Only one block gets `gridDim.x - 1`. (If you count first and look afterwards, two blocks may both see the full number.)
#
# Thread 0 knows, and the others have to learn it: put the answer into a `__shared__ bool`, and return it behind the second `__syncthreads()`. If it's true, thread 0 also sets the counter back, by `atomicExch(arrived, 0)`.

# %% id=11-last explanation
# Each block's count is a release, and that of the last block is an acquire as well. So the last one has seen all the others count, and sees what they wrote. CUDA's sample threadFenceReduction adds up an array nearly in this way. It leaves out the second fence. Our GPUs got the sum right all the same, but CUDA doesn't promise it.

# %% id=11-last-check
check("11-last", LAST)

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

# %% id=score-encores
score("11")
