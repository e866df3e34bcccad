"""Source of notebooks/11b_without_a_barrier.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Without a barrier
#
# The barrier of [the last page](11_the_gpu_decides.ipynb) has its price: you have to write the kernel, and all of its blocks need a place at the same time. But often the kernels are somebody else's, or the blocks are too many. **What can a GPU decide when no block may wait for another?**
#
# After this page you can end a loop on the GPU without touching its kernels, let blocks fetch their own jobs, and leave the rest to the block that comes last.
#
# | | |
# |---|---|
# | Time | 50 minutes |
# | You need | [11_the_gpu_decides](11_the_gpu_decides.ipynb) and [09_cuda_graphs](09_cuda_graphs.ipynb). You don't need a GPU |

# %% id=setup
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
def recorded(run, *args, before=lambda: None):
    """What a run returns, and its trace.

    A real Python is slow right after a pause, so with a GPU it runs twice, and the second run counts.
    """
    with agt.record():
        if not device.simulated:
            before()
            run(*args)
        before()
        with agt.record() as trace:
            result = run(*args)
    return result, trace


def toppled(pile, waves=10**6):
    """The pile after so many waves, or at rest; how many there were; how often each cell toppled."""
    pile, often, done = pile.copy(), 0 * pile, 0
    while done < waves and (over := pile >= 4).any():
        slid = np.pad(over, 1).astype(int)
        pile += slid[:-2, 1:-1] + slid[2:, 1:-1] + slid[1:-1, :-2] + slid[1:-1, 2:] - 4 * over
        often, done = often + over, done + 1
    return pile, done, often


def draw_piles(alt, *piles, caption=""):
    """Draw piles of sand, each with a title."""
    figure, row = plt.subplots(1, len(piles), figsize=(3.3 * len(piles) + 1, 3.3), squeeze=False)
    for axes, (title, pile) in zip(row[0], piles, strict=True):
        colours = plt.get_cmap("viridis", 5)
        picture = axes.imshow(np.minimum(pile, 4), cmap=colours, vmin=-0.5, vmax=4.5)
        axes.set_title(title, fontsize=10)
        axes.axis("off")
    bar = figure.colorbar(picture, ax=row, ticks=range(5), label="grains in a cell", shrink=0.8)
    bar.ax.set_yticklabels(["0", "1", "2", "3", "4 or more"])
    shown(figure, alt, caption)


def draw_heap(grains):
    """A heap in the middle of a table, on its way."""
    heap = np.zeros((31, 31), int)
    heap[15, 15] = grains
    waves = toppled(heap)[1]
    draw_piles(
        f"{grains} grains on one cell have spread to a small disc after 10 waves, and to a larger one after "
        f"100. After {waves} waves they lie still, in a round ornament with the symmetry of a square.",
        *((f"{k} waves", toppled(heap, k)[0]) for k in (10, 100, waves)),
        caption=f"{grains} grains on one cell lie still after {waves} waves.",
    )


BLUE, YELLOW = "#9ad5f7", "#f0b840"


def from_a_queue(lengths, blocks=16):
    """Which block takes each job, if the one that is free first takes the next."""
    free_at, taken = np.zeros(blocks), []
    for length in lengths:
        taken.append(int(free_at.argmin()))
        free_at[taken[-1]] += length
    return taken


def draw_shares(lengths):
    """The jobs of 16 blocks, one after the other, as if a term took the same time everywhere."""
    longest_first = np.sort(lengths)[::-1]
    rows = (
        ("fixed shares", lengths, [job % 16 for job in range(lengths.size)]),
        ("a queue", lengths, from_a_queue(lengths)),
        ("a queue, longest first", longest_first, from_a_queue(longest_first)),
    )
    figure, all_axes = plt.subplots(1, 3, figsize=(11, 3), sharex=True, sharey=True)
    told = []
    for axes, (title, given, blocks) in zip(all_axes, rows, strict=True):
        ends = np.zeros(16)
        for job, block in enumerate(blocks):
            bar = {"color": (BLUE, YELLOW)[blocks[:job].count(block) % 2], "edgecolor": "0.3"}
            axes.barh(block, given[job], left=ends[block], **bar)
            ends[block] += given[job]
        axes.set(xlabel="terms", title=f"{title}: {ends.max():,.0f}", yticks=(0, 15))
        told.append(f"{title} {ends.min():,.0f} to {ends.max():,.0f}")
    all_axes[0].set_ylabel("block")
    figure.tight_layout()
    shown(
        figure,
        "The jobs of 16 blocks as bars. Fixed shares end at very different times. With a queue, no block "
        "ends later than another by more than one job; with the longest jobs first, nearly all end together.",
        f"After how many terms blocks are done: with {', '.join(told)}.",
    )

# %% [markdown] id=sand-text
# ## An avalanche
#
# Let grains of sand fall on a table, one at a time. A cell that holds four of them *topples*: one grain slides to each of its four neighbours, or off the table. Now one of the neighbours may hold four, so it topples as well, and so on. Nobody can tell how long such an avalanche lasts until it's over, which is why physicists have been fond of this pile since 1987. (Look for Bak, Tang and Wiesenfeld.) Here somebody has dropped 700 grains on one cell. All cells that hold four or more topple at the same time, and that's a *wave*:

# %% id=heap
draw_heap(700)  # or try another number

# %% [markdown] id=kernels-text
# On the GPU, two kernels do that, and they aren't yours to change. `drop` lets a grain fall, and `topple` is one wave. Both raise the flag `unstable` if they leave a cell that has to topple. Neither of them ever lowers it.

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
    int x = threadIdx.x, width = blockDim.x, y = threadIdx.y, height = blockDim.y;
    int i = y * width + x;
    int now = sand[i] < 4 ? sand[i] : sand[i] - 4;
    if (x > 0 && sand[i - 1] >= 4) now++;
    if (x < width - 1 && sand[i + 1] >= 4) now++;
    if (y > 0 && sand[i - width] >= 4) now++;
    if (y < height - 1 && sand[i + width] >= 4) now++;
    __syncthreads();
    sand[i] = now;
    if (now >= 4) *unstable = 1;
    if (i == 0) *waves += 1;              // how long it has lasted
}
"""
drop_grain, topple_all = agt.Kernel(PILE, "drop"), agt.Kernel(PILE, "topple")

# %% id=table
WIDTH, HEIGHT = 31, 21
flat = np.full((HEIGHT, WIDTH), 3, np.int32)  # three grains everywhere
sand = agt.zeros(flat.shape, np.int32).sync_on(stream)
where, unstable, waves, down = (
    agt.zeros(1, np.int32).sync_on(stream) for _ in range(4)
)


def put(numbers, array):
    """Copy numbers to an array on the device."""
    numbers = agt.pin(np.array(numbers, np.int32))
    agt.memcpy(array.borrow(), numbers).sync_on(stream)


def lay(pile=flat, cell=(HEIGHT // 2, WIDTH // 2)):
    """Put a pile on the table, and say where the next grain falls."""
    put(pile, sand)
    put([cell[0] * WIDTH + cell[1]], where)


def drop():
    given = [array.borrow() for array in (sand, where, unstable, waves)]
    return drop_grain(*given, grid=1, block=1)


def topple():
    given = [array.borrow() for array in (sand, unstable, waves)]
    return topple_all(*given, grid=1, block=(WIDTH, HEIGHT))


def wave():
    """Lower the flag, let all unstable cells topple, and yield the flag."""
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    return lower.and_then(lambda _: topple()).map(lambda given: given[1])


def ask_after_each():
    """Python lets a grain fall, and then asks after each wave."""
    drop().sync_on(stream)
    done, moved = 0, [1]
    while moved[0]:
        moved = wave().to_host().sync_on(stream)
        done += 1
    return done

# %% [markdown] id=sand-question
# Our table has 31 by 21 cells. Each holds three grains, so a single one more is too much for any of them, and our grain falls in the middle.

# %% id=11b-sand guess
# How many waves does it start?

# %% id=11b-sand reveal
count, asking = recorded(ask_after_each, before=lay)
left = agt.d2h(sand.borrow()).sync_on(stream)


def draw_left():
    draw_piles(
        "Threes, but for lines of ones: from each corner one runs inwards at 45 degrees, and they meet in a "
        "line along the middle, with a 2 in its centre and a 0 at either end.",
        (f"after {count} waves", left),
    )


reveal("11b-sand", count, draw_left)

# %% id=11b-sand told truth=26
# Sand doesn't slide diagonally, so a corner is 15 + 10 steps away from the middle, and with the middle's own wave that makes 26. It doesn't end at the nearer edges, and it doesn't go on behind the corners, because each cell topples once for each ring from the edge to its own: a corner once, in the last wave, and the middle 11 times, in every second one of the first 21.

# %% id=sand-check tags=asserts
grain_more = flat.copy()
grain_more[HEIGHT // 2, WIDTH // 2] += 1
right, due, often = toppled(grain_more)
assert (left == right).all()
assert count == due == 26
assert (often[0, 0], often[HEIGHT // 2, WIDTH // 2]) == (1, 11)

# %% [markdown] id=asking-text
# Here are the first waves of that avalanche, with Python in charge:

# %% id=asking-picture
ready = [span.end for span in asking if span.kind == "wait"]
asked_us = asking.metrics().makespan
wave_us = ready[3] - ready[2]  # the first wait is for the grain
agt.compare_timelines(
    [asking.between(min(span.start for span in asking), ready[3])],
    ["Python asks after each wave: the grain, and three waves"],
    lanes=("host", "streams"),
    highlight=[[span for span in asking if ready[2] < span.start < ready[3]]],
    lesson=f"The third wave stands out. It takes {wave_us:.0f} µs: the host lowers the "
    "flag, launches the wave, copies the flag back and waits.",
)

# %% [markdown] id=exercise-ask-less
# ### Exercise: ask less often
#
# If you can't change the kernels, change the questions. Nobody forces you to ask after *every* wave.
#
# `round_op()` gives an operation that runs one round, such as our `wave()`, and yields the flag, an array on the device. Run `every` rounds for each look, all on `stream`. Return how many rounds were run.

# %% id=11b-ask-less starter
def settle(round_op, every, stream):
    rounds = 0
    while True:
        moved = round_op().to_host().sync_on(stream)  # asks after every round
        rounds += 1
        if not moved[0]:
            return rounds

# %% id=11b-ask-less solution
# - moved = round_op().to_host().sync_on(stream)  # asks after every round
# - rounds += 1
# + for _ in range(every - 1):
# +     round_op().async_on(stream)
# + moved = round_op().to_host().sync_on(stream)
# + rounds += every

# %% id=11b-ask-less hints
# A round whose flag nobody reads does not need to be waited for. Which of the four ways to run an operation returns at once?
#
# `round_op().async_on(stream)` enqueues a round. Do that `every - 1` times, and then one round as it stands in the starter.
#
# A `for _ in range(every - 1)` loop in front of the line with `sync_on`, and `rounds += every` behind it.

# %% id=11b-ask-less explanation
# The stream keeps the rounds in order, so Python may run ahead of them. It costs up to `every - 1` rounds too many, and what it gains comes next.

# %% id=11b-ask-less-check
check("11b-ask-less", settle)

# %% [markdown] id=fewer-text
# Now Python asks after every fourth wave only. That's seven looks, after 28 waves.

# %% id=fewer-before
my_settle = solved("11b-ask-less", settle)  # yours, if it was accepted


def ask_after_four():
    drop().sync_on(stream)
    return my_settle(wave, 4, stream)


print(f"Asking after each wave: {asked_us:,.0f} µs")

# %% id=11b-fewer guess within=0.12
# How many microseconds does it take with a look after every fourth wave?

# %% id=11b-fewer reveal
done, fewer = recorded(ask_after_four, before=lay)
lines = agt.compare_timelines(
    [asking, fewer],
    ["A look after each wave", "A look after every fourth"],
    lanes=("host", "streams"),
)
fewer_us = fewer.metrics().makespan
reveal("11b-fewer", round(fewer_us), lines, done=done, spared=count - done // 4)

# %% id=11b-fewer lesson
# A look less is a copy and a wait less. The calls that describe a wave and launch it stay.

# %% id=11b-fewer told truth=919
# {spared} looks are gone, and two waves are new. Python still describes and launches each wave, and that's most of a conversation. Where a launch is cheap, asking less gains more: from C++ on an H100, one takes 3.5 µs in a row of launches, and 9 with a wait behind it. And there's a flaw. The avalanche is over after 26 waves, and `waves` has counted {done}.

# %% id=fewer-check tags=asserts
assert done == 28
assert (agt.d2h(sand.borrow()).sync_on(stream) == right).all()
assert agt.d2h(waves.borrow()).sync_on(stream)[0] == 28
if device.simulated:
    assert asked_us / 2 < fewer_us < asked_us

# %% [markdown] id=graph-text
# ## A graph that goes round
#
# So who asks after each wave, and isn't Python? A [graph](09_cuda_graphs.ipynb) can have a **`while` node**, and then the host makes one call. Before each *turn*, a small kernel, which `agt` adds, reads a number in memory, and the loop ends if it's 0. The kernels stay as they are, and their flag decides:
#
# ```python
# # flag: one int32 on the device; turn: an operation
# loop = agt.CudaGraph.while_loop(flag, turn)
# # start: an operation that runs once, before the loop
# agt.zip(start, loop).graph_on(stream)
# ```
#
# A graph keeps the order of a `zip`, so `zip` says when the flag goes down: before the kernel that may raise it. And behind each kernel, all of its blocks are done, however many there are. It's a barrier for which nobody needs a place.

# %% [markdown] id=exercise-while
# ### Exercise: until the sand lies still
#
# Write `avalanche`. It returns a CUDA graph on `stream`, and in each launch of this graph one grain falls, and waves follow as long as there's a cell that has to topple. An avalanche of twelve waves gets twelve, and a grain that just lies there gets none: `waves` counts them, so one too many is a wrong measurement.
#
# `drop()` and `topple()` give you operations, and `unstable` is the flag, an array of one `int32` on the device that's 0 at the start. The version below makes ten waves for each grain and hopes for the best.

# %% id=11b-while starter
def avalanche(drop, topple, unstable, stream):
    """A graph in which a grain falls, and then the pile goes through ten waves."""
    return agt.zip(drop(), *[topple() for _ in range(10)]).graph_on(stream)

# %% id=11b-while solution
def avalanche(drop, topple, unstable, stream):
    """A graph in which a grain falls, and then the pile topples until it lies still."""
    down = agt.zeros(1, np.int32).sync_on(stream)
    wave = agt.zip(agt.memcpy(unstable.borrow(), down.borrow()), topple())
    waves = agt.CudaGraph.while_loop(unstable.borrow(), wave)
    return agt.zip(drop(), waves).graph_on(stream)

# %% id=11b-while hints
# The graph has something that happens once, a loop, and a flag that goes down in each turn. What happens once is `drop()`, and it says by itself whether there's anything to do.
#
# A turn is two operations in an `agt.zip`: the flag goes down, and then comes a wave. The other way round, you'd wipe out what the wave has just said. To lower the flag, copy a 0 over it with `agt.memcpy`, from an array that you make before the graph, because a graph's turn can't allocate one.
#
# The loop is `agt.CudaGraph.while_loop(unstable.borrow(), turn)`, and the graph is `agt.zip(drop(), loop).graph_on(stream)`.

# %% id=11b-while explanation
# A flag needs somebody who lowers it, and the moment matters: here it's once in each turn, before the wave can raise it. The loop ends with the flag down, so the graph is ready for the next grain. (With four waves in each turn it would count some that never happened, unless you put a `cond` between two of them.)

# %% id=11b-while-check
check("11b-while", avalanche)

# %% id=run-graph
avalanche_graph = solved("11b-while", avalanche)(drop, topple, unstable, stream)


def by_graph():
    avalanche_graph.launch().sync_on(stream)


_, turning = recorded(by_graph, before=lay)
graph_us, begun = turning.metrics().makespan, [q.start for q in turning.find("while")]
print(f"Python asks: {asked_us:,.0f} µs. A graph, with all turns: {graph_us:.0f} µs")
picture = turning
if device.simulated:
    turns = [(begun[k - 1], begun[k], f"turn {k}") for k in range(1, 5)]
    picture = turning.with_lane("turns", turns).between(0, begun[4])
agt.compare_timelines(
    [picture],
    ["A graph decides: the grain, and the first turns"],
    lanes=("host", "streams"),
    lesson="In each turn: a question (here 'while'), a copy that lowers the flag, and "
    "a wave. The first question takes longer, because it also starts the loop.",
)

# %% [markdown] id=turns-text
# If you only want the pile, and not the number of its waves, a few waves too many do no harm. Then put *four* waves into each turn, with the flag lowered just before the last.

# %% id=11b-turns guess within=0.12
# How many microseconds does the graph take with four waves in each turn?

# %% id=11b-turns reveal
def four_a_turn():
    lower = agt.memcpy(unstable.borrow(), down.borrow())
    turn = agt.zip(topple(), topple(), topple(), lower, topple())
    loop = agt.CudaGraph.while_loop(unstable.borrow(), turn)
    return agt.zip(drop(), loop).graph_on(stream)


four = four_a_turn()
_, by_four = recorded(lambda: four.launch().sync_on(stream), before=lay)


def part_by_part():
    if device.simulated:
        for name, what in (("while", "a question"), ("d2d", "a copy"), ("topple", "a wave")):
            span, counts = turning.find(name)[-1], [len(t.find(name)) for t in (turning, by_four)]
            print(f"{what}: {span.duration:.1f} µs, {counts[0]} and {counts[1]}")
    print(f"one wave a turn: {graph_us:.0f} µs, four: {by_four.metrics().makespan:.0f} µs")


reveal("11b-turns", round(by_four.metrics().makespan), part_by_part)

# %% id=11b-turns told truth=104
# A question costs more than a wave, so it pays to ask less. Of 27 questions, the last of which ended the loop, 8 are left, and of 26 copies 7. But there are 28 waves instead of 26. On an H100, a graph with Newton's rounds took 98 to 106 µs from Python, and with four of them in each turn 67 to 72.

# %% id=turns-check tags=asserts
assert (agt.d2h(sand.borrow()).sync_on(stream) == right).all()
if device.simulated:
    assert (len(turning.find("while")), len(turning.find("topple"))) == (27, 26)
    assert (len(by_four.find("while")), len(by_four.find("topple"))) == (8, 28)
    assert by_four.metrics().makespan < graph_us < asked_us / 3

# %% [markdown] id=grains-text
# So far we've staged the avalanches. Now forty grains fall at random, one after the other, on what the first one has left:

# %% id=grains
def fall(cell):
    """Let a grain fall, and return how many waves it starts."""
    put([cell], where)
    by_graph()
    return int(agt.d2h(waves.borrow()).sync_on(stream)[0])


lay()
by_graph()
with agt.record() as falling:
    cells = np.random.default_rng(0).integers(WIDTH * HEIGHT, size=40)
    lasted = [fall(cell) for cell in cells]
figure, axes = plt.subplots(figsize=(8, 2.6))
axes.bar(range(1, 41), lasted, color=YELLOW, edgecolor="0.3")
axes.set(xlabel="grain", ylabel="waves")
still = f"{lasted.count(0)} grains just lie there"
axes.set_title(f"{still}, one starts {max(lasted)} waves")
told = f"Bars, in no order; how many waves each grain starts: {str(lasted)[1:-1]}."
shown(figure, told)
print(f"{sum(lasted)} waves in {falling.metrics().makespan / 1000:.0f} ms", end="; ")
print(f"at {wave_us:.0f} µs each, asked: {sum(lasted) * wave_us / 1000:.0f} ms")

# %% [markdown] id=grains-read
# Small ones, large ones, and no way to tell beforehand. Yet each grain was one launch, between a copy that says where it falls and one that fetches the number of its waves.

# %% [markdown] id=queue-text
# ## A kernel that stays
#
# Here's another conversation that you can end: *here is a job. Here is the next one.* There are 64 small jobs of very different lengths, and a launch for each costs 64 launches.
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
# A job is a sum of `length` terms, and all threads of a block, 64 or 32, work on it. The version below gives every block a fixed share, job 0 to block 0, job 1 to block 1, and so on. That's fine until one block gets all the long jobs. Have the blocks take their jobs from `next` instead.

# %% id=11b-queue starter
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

# %% id=11b-queue solution
# - for (unsigned int job = blockIdx.x; job < jobs; job += gridDim.x) {
# - float sum = work(lengths[job]);
# - if (threadIdx.x == 0) results[job] = sum;
# + __shared__ unsigned int job;
# + while (true) {
# +     if (threadIdx.x == 0) job = atomicAdd(next, 1);
# +     __syncthreads();
# +     unsigned int mine = job;
# +     if (mine >= jobs) return;
# +     float sum = work(lengths[mine]);
# +     if (threadIdx.x == 0) results[mine] = sum;

# %% id=11b-queue hints
# One thread asks the counter, and the others have to learn the answer. How do the threads of a block pass a number around? By a `__shared__` variable.
#
# Thread 0 writes `job = atomicAdd(next, 1)`, then comes `__syncthreads()`, and then everybody reads `job`. Whoever reads a number that is not below `jobs` goes home, and as all read the same one, all go home together.
#
# Thread 0 must not fetch the next job before the others have read this one. Here the barriers in `work` see to it. As soon as the work itself has none, you need the `__syncthreads()` at the end of the loop, so leave it there.

# %% id=11b-queue explanation
# A short job costs its block little, and the block comes back sooner for the next. Nobody planned that. The queue balances the load by itself.

# %% id=11b-queue-check
check("11b-queue", QUEUE)

# %% id=shares
lengths = np.random.default_rng(2).integers(10, 3000, 64).astype(np.uint32)
draw_shares(lengths)  # if a term took the same time everywhere

# %% [markdown] id=shares-read
# With a queue, no block ends later than another by more than one job. So if you know how long the jobs are, put the longest first: then the last ones are short.

# %% id=job-code
WORK = QUEUE.partition("extern")[0]  # the function `work`, as it stands above
JOBS = WORK + r"""
extern "C" __global__ void one_job(
    unsigned int job, const unsigned int* lengths, float* results)
{
    float sum = work(lengths[job]);
    if (threadIdx.x == 0) results[job] = sum;
}

extern "C" __global__ void block_each(const unsigned int* lengths, float* results)
{
    float sum = work(lengths[blockIdx.x]);
    if (threadIdx.x == 0) results[blockIdx.x] = sum;
}
"""
one_job, block_each = agt.Kernel(JOBS, "one_job"), agt.Kernel(JOBS, "block_each")
worker = agt.Kernel(solved("11b-queue", QUEUE))  # yours, if it was accepted
on_device = agt.h2d(agt.pin(lengths), "lengths").sync().share()


def a_launch_each():
    results = agt.zeros(64).sync_on(stream)
    for job in range(64):
        op = one_job(job, on_device, results.borrow(), grid=1, block=64)
        op.async_on(stream)
    return agt.d2h(results).sync_on(stream)


def persistent(blocks):
    op = agt.zip(agt.zeros(1, np.uint32), agt.zeros(64)).and_then(
        lambda given: worker(64, on_device, *given, grid=blocks, block=64)
    )
    return op.last().to_host().sync_on(stream)

# %% [markdown] id=queue-question
# First let's send a **single** block of 64 threads, on a GPU that has room for thousands. It does all jobs, one after the other. The 64 launches go to one stream, so they run one after the other as well.

# %% id=queue-one
each, launched = recorded(a_launch_each)
alone, by_one = recorded(persistent, 1)
for name, trace in (("64 launches", launched), ("one block", by_one)):
    print(f"{name}: {trace.metrics().makespan:.0f} µs")

# %% [markdown] id=queue-more
# The launches lose by far, because the host takes longer to describe a small job than a block to do it. Now sixteen blocks share the queue.

# %% id=11b-queue-share guess within=0.2
# How many times as fast as the one block are the sixteen, from the host's first call to its last?

# %% id=11b-queue-share reveal
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
reveal("11b-queue-share", round(gained, 1), picture, **facts)

# %% id=11b-queue-share lesson
# Sixteen blocks are through before the host is at its third launch.

# %% id=11b-queue-share told truth=3.1
# The kernel is {times:.0f} times as fast, {sixteen:.0f} µs instead of {one:.0f}. (Not 16: simulated blocks go in step, so each round of sixteen jobs lasts as long as its longest.) But the host still makes its calls, copies and waits, about {calls:.0f} µs in both runs, and more blocks don't help with that.

# %% [markdown] id=blocks-text
# But why a queue of our own? *One* launch of 64 blocks, a block for each job, says it all at once. The GPU has a queue for blocks, and hands out the next one as soon as a place is free.

# %% id=blocks-run
def a_block_each():
    results = agt.zeros(64).sync_on(stream)
    op = block_each(on_device, results.borrow(), grid=64, block=64)
    return op.last().to_host().sync_on(stream)


in_blocks, by_blocks = recorded(a_block_each)
blocks_us = by_blocks.find("block_each")[0].duration
stay_us = by_sixteen.find("queue")[0].duration
print(f"kernel: 64 blocks {blocks_us:.1f} µs, sixteen that stay {stay_us:.1f} µs")

# %% id=queue-check tags=asserts
sums = np.array([(1 / np.arange(1, n + 1) ** 2).sum() for n in lengths])
for results in (each, alone, shared, in_blocks):
    assert np.allclose(results, sums, rtol=1e-5)
if device.simulated:
    assert launched.metrics().makespan > 3 * by_sixteen.metrics().makespan
    assert blocks_us < stay_us
h200_launched, h200_stayed = map(agt.Trace.load_recording, ("11b_queue_by_launches", "11b_queue"))
assert (len(h200_launched.find("one_job")), len(h200_stayed.find("queue"))) == (64, 1)
assert [round(t.metrics().makespan) for t in (h200_launched, h200_stayed)] == [2214, 96]

# %% [markdown] id=blocks-read
# So if you know all jobs at the start, launch a block for each, and let the GPU do the queueing. From C++, on an H200, 64 jobs of up to 999 terms took 302 to 319 µs with a launch each, 126 in a graph of these launches, 22 with 64 blocks that stay, and 21 with one launch of 64 blocks. (Our own jobs, from Python: 2,214 µs with a launch each, and 96 with sixteen blocks that stay.) With 1,024 jobs, the blocks that stay took 38 to 40 µs, and the one launch still 21. A queue of your own pays when jobs come later, when one job makes others, or when a block keeps something from one job to the next.

# %% [markdown] id=last-text
# ## Who comes last?
#
# One decision is left. Each block has done its job, and now somebody has to add up the results. At a barrier everybody would wait for that, and nobody has to. Let it be the block that comes **last**, whichever it is. The other blocks are done by then, because all they had to do was write down a number and count themselves.

# %% [markdown] id=exercise-last
# ### Exercise: who is last?
#
# Complete `last`. All threads of each block call it when they've written their results. It returns true to all threads of the block that comes last. These may then read what *any* thread of any block wrote before its call. It returns false to everybody else, and waits for no other block.
#
# `arrived[0]` is 0 at first, and the last block sets it back to 0, for the next launch. The version below takes the block with the largest number for the last one.

# %% id=11b-last starter
LAST = r"""
__device__ bool last(unsigned int* arrived)
{
    return blockIdx.x == gridDim.x - 1;
}
"""

# %% id=11b-last solution
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

# %% id=11b-last hints
# The frame is that of `meet`: thread 0 counts for its block, between two `__syncthreads()` and between two fences. What's missing is the loop, since nobody waits.
#
# `atomicAdd` returns the number that was there *before*. Only one block gets `gridDim.x - 1`. (If you count first and look afterwards, two blocks may both see the full number.)
#
# Thread 0 knows, and the others have to learn it: put the answer into a `__shared__ bool`, and return it behind the second `__syncthreads()`. If it's true, thread 0 also sets the counter back, by `atomicExch(arrived, 0)`.

# %% id=11b-last explanation
# Each block's count is a release, and that of the last block is an acquire as well. So the last one has seen all the others count, and sees what they wrote. CUDA's sample threadFenceReduction adds up an array nearly in this way. It leaves out the second fence. Our GPUs got the sum right all the same, but CUDA doesn't promise it.

# %% id=11b-last-check
check("11b-last", LAST)

# %% [markdown] id=total-text
# And now a whole program in one launch: a block for each job, far more blocks than have a place, and the last of them adds up what all have found.

# %% id=total
total = agt.Kernel(
    WORK
    + solved("11b-last", LAST)
    + r"""
extern "C" __global__ void total(
    const unsigned int* lengths, unsigned int* arrived, float* results, float* sum)
{
    float mine = work(lengths[blockIdx.x]);
    if (threadIdx.x == 0) results[blockIdx.x] = mine;
    if (!last(arrived)) return;
    float part = 0.0f;
    for (unsigned int i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        part += results[i];
    }
    atomicAdd(sum, part);
}
"""
)
MANY = 5000
many = np.random.default_rng(3).integers(1, 100, MANY).astype(np.uint32)
op = agt.zip(
    agt.h2d(agt.pin(many)), agt.zeros(1, np.uint32), agt.zeros(MANY), agt.zeros(1)
).and_then(lambda given: total(*given, grid=MANY, block=64))
(grand_total,) = op.last().to_host().sync_on(stream)
print(f"{MANY:,} blocks, and an H200 has places for {132 * 32:,} of them.")
print(f"The last one says: {grand_total:,.1f}")

# %% id=total-check tags=asserts
by_length = np.array([(1 / np.arange(1, n + 1) ** 2).sum() for n in range(1, 100)])
assert np.isclose(grand_total, by_length[many - 1].sum(), rtol=1e-4)

# %% [markdown] id=answer
# ## So, what can it decide?
#
# | the question | answered by | needs | doesn't need |
# |---|---|---|---|
# | is it over? | a graph's `while` node, which reads a flag | kernels that raise one | changes to the kernels, or places for all blocks |
# | what's next? | the block that's free, which takes a number from a counter | blocks that stay | to know the jobs' lengths |
# | who does the rest? | the block that counts last | a release and an acquire in each count | a place for all, or anybody who waits |
# | is it over, *within* a kernel? | all blocks, at the barrier of [page 11](11_the_gpu_decides.ipynb) | a place for each | |

# %% [markdown] id=key-points
# ## Key points
#
# - If you can't change the kernels, ask less often, or let a graph ask. Its `while` node reads a flag before each turn.
# - Somebody has to lower the flag, and the moment matters: before the kernel that may raise it.
# - A kernel that stays takes jobs from a counter. If you know all jobs at the start, launch a block for each: the GPU has a queue of its own.
# - Often nobody has to wait: the block that comes last does the rest.
# - None of these needs a place for all blocks at once. A barrier does.
#
# **Next:** in [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) a kernel waits for several things at once.

# %% id=score
score("11b")

# %% id=progress
progress("11b")
