"""Source of notebooks/11_the_gpu_decides.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # The GPU decides
#
# Many programs go round and round until nothing changes any more, and after each round Python asks the GPU: *are we there yet?* **What does it cost to ask? And what if nobody had to?**
#
# After this page you can move a loop, and the decision that ends it, from Python into a kernel, let a block or the whole grid agree that it is over, write a barrier for the grid, feed a kernel that stays from a queue of jobs, and name the cases in which none of this pays.
#
# | | |
# |---|---|
# | Time | 80 minutes |
# | You need | [04_combinators](04_combinators.ipynb) and, from [07_async_mlp](07_async_mlp.ipynb), what a barrier is. You do not need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## Are we there yet?
#
# Here is an old way to take a square root. Guess $x$, replace it with the mean of $x$ and $a / x$, and repeat until $x$ stops moving. Isaac Newton would have done it by hand. We do it for a thousand numbers at once, with a thread for each.
#
# How many rounds does that take? It depends on the numbers, so after each round *somebody* has to look whether anything still moves. The natural place for a decision is Python:

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


def python_decides(numbers):
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


def gpu_decides(numbers):
    """One launch, which ends when everybody is there."""
    x = agt.ones(numbers.size).sync_on(stream)
    newton(numbers.size, numbers, x.borrow().partition(256)).sync_on(stream)
    return x


# %% id=first-picture
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


a, numbers = some_numbers(1024)
(x, rounds), asking = recorded(python_decides, numbers)
y, deciding = recorded(gpu_decides, numbers)

roots = agt.d2h(x).sync(), agt.d2h(y).sync()
agt.compare_timelines(
    [asking, deciding],
    [f"Python decides: {rounds} rounds", "The GPU decides: one launch"],
    lanes=("host", "streams"),
    lesson="Above, short kernels with long gaps: after each round a flag travels to the host, and a launch "
    "travels back. Below, one kernel.",
)

# %% id=first-picture-check tags=asserts
assert np.allclose(roots[0], np.sqrt(a), rtol=1e-6)
assert np.allclose(roots[1], np.sqrt(a), rtol=1e-6)
assert len(asking.find("newton_step")) == rounds > 5
assert len(deciding.find("newton")) == 1
if device.simulated:
    assert asking.metrics().makespan > 2 * deciding.metrics().makespan

# %% [markdown] id=first-read
# (In both, the first kernel only fills `x` with ones.) In the upper stream, the kernels are slivers. Nearly all of the time goes into the conversation: *is it over? No. Is it over? No.* Each question is a copy to the host, a wait, and another launch that Python has to describe. Below, nobody asks, because the loop is where the numbers are.
#
# That's the idea of this page: **put the decision where the data is**. Let's see how far it carries us, and where it stops.

# %% [markdown] id=promises
# ## What CUDA promises
#
# One line of `newton_step` deserves a second look. Hundreds of threads may write `*moved = 1` at the same time. All of them write the same 1 and nobody reads it before the launch is over, so every GPU that we know gets it right. By the letter of CUDA's memory model it's a race all the same. From now on threads will leave *messages* for each other, and there luck isn't enough. This is what you can rely on:
#
# | | it promises | it does not promise |
# |---|---|---|
# | an **atomic**, such as `atomicAdd` | to read, change and write in one step that no other atomic of this GPU can split. You get what was there before | any order of what you do before it and after it; anything to the host, or to an ordinary access of the same word |
# | a **fence**, `__threadfence()` | order, if the flag is written and read by atomics or as `volatile`: write, fence, flag. Whoever sees the flag, and then has a fence as well, sees what you wrote, and what you had seen | that anybody waits. And each fence has a reach: this one is for the GPU, `__threadfence_block()` for your block only |
# | `volatile` | that each access in your text is made, and not answered from a register | any order between two words; an `x += 1` in one step |
# | a **barrier**, `__syncthreads()` | to wait, and order, for one block: all of its threads that have not ended come, and then see what any of them wrote | anything to another block |
# | a **cooperative launch** | that all of its blocks have a place at the same time | anything for an ordinary launch |
#
# Everything else may be reordered, by the compiler and by the hardware. It rarely is, so a program without a fence passes most tests: on an H200, two blocks without any saw the flag before the data in 1 of 2,097,152 runs. The simulated device reports two blocks that nothing orders, and in [chapter 12](12_async_inside_a_kernel.ipynb) you can make its memory hostile. (Newer code says `cuda::atomic_ref` with `memory_order_release` and `memory_order_acquire`, which is a flag and its fence in one.)
#
# Back to Newton. The same two programs were recorded on an H200:

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
    lesson="The same shape, slower talk: above, after each round; below, one kernel and one wait.",
)

# %% id=first-h200-check tags=asserts
h200_asking, h200_deciding = map(agt.Trace.load_recording, ("11_newton_by_host", "11_newton"))
assert len(h200_asking.find("newton_step")) == rounds
assert len(h200_deciding.find("newton")) == 1
assert h200_asking.metrics().makespan > 2 * h200_deciding.metrics().makespan

# %% [markdown] id=larger
# ## More numbers
#
# The lower picture is several times shorter. Now take 65,536 numbers instead of 1,024.

# %% id=predict-larger
larger = Prediction(
    "With 64 times as many numbers, by what factor is the single launch quicker?",
    more="by a much larger factor: every round costs more now",
    same="by about the same factor, give or take a half",
    less="hardly at all: the GPU has real work to do now",
)
larger

# %% id=commit-larger
larger.commit(...)


# %% id=run-larger
def makespan(run, *args):
    _, trace = recorded(run, *args)
    return trace.metrics().makespan


ratios = {}
for n in (1024, 8192, 65_536):
    _, many = some_numbers(n)
    asked, decided = makespan(python_decides, many), makespan(gpu_decides, many)
    ratios[n] = asked / decided
    print(f"{n:6,} numbers: Python {asked:.0f} µs, the GPU {decided:.0f} µs: {ratios[n]:.1f} times as quick")

# %% id=reveal-larger
change = ratios[65_536] / ratios[1024]
larger.reveal(
    "same" if 2 / 3 < change < 3 / 2 else "more" if change > 1 else "less",
    "The GPU has room for all these threads at the same time, so a round takes hardly longer. The "
    "conversation is what you pay for, and it is the same for any number.",
)

# %% [markdown] id=ask-less-text
# ## Ask less often
#
# First a modest change that you can make in Python. Nobody forces you to ask after *every* round. Enqueue four rounds, and look at the flag of the fourth. You may run a few rounds too many, and a root that has settled doesn't mind.

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
# Let's put it to the test. Looking after every round, Newton takes 9 rounds and 9 conversations. With a look every four rounds it takes 12 rounds, and only 3 conversations.

# %% id=predict-ask-less
fewer = Prediction(
    "How long does it take with a look every four rounds?",
    third="about a third of the time: there are a third of the conversations",
    same="about the same time",
    longer="half as long again, or more: there are more rounds",
)
fewer

# %% id=commit-ask-less
fewer.commit(...)


# %% id=ask-less-run
def asking_every(every):
    x = agt.ones(1024).sync_on(stream)

    def round_op():
        return agt.zeros(1, np.int32).and_then(
            lambda moved: newton_step(1024, numbers, x.borrow().partition(256), moved)
        ).last()

    return settle(round_op, every, stream)


took = {every: (asking_every(every), makespan(asking_every, every)) for every in (1, 4)}
for every, (done, us) in took.items():
    print(f"a look every {every}: {done} rounds, {us:.0f} µs")
print(f"the GPU decides: {makespan(gpu_decides, numbers):.0f} µs")

# %% id=reveal-ask-less
answer = "Your `settle` still asks after every round. Solve the exercise above, and come back to this."
if took[4][0] == 12:
    ratio = took[4][1] / took[1][1]
    answer = fewer.reveal(
        "third" if ratio < 0.6 else "same" if ratio < 1.4 else "longer",
        "The wait was only a part of the conversation. Each round still has to be described and launched, "
        "and that is work for Python, too.",
    )
answer

# %% [markdown] id=ask-less-read
# So asking less is no great help here. It helps where rounds are long, or prepared ahead as in [chapter 9](09_cuda_graphs.ipynb). What we really want to be rid of is the launches.

# %% [markdown] id=early-text
# ## Who finds it first?
#
# Newton's threads have nothing to say to each other. Here's a search instead. A million tickets have numbers, each scrambled by a function that nobody can see through, and we want the *first* ticket whose scrambled number begins with 14 zero bits. (People who mine coins do little else.)
#
# The launch has 4,096 threads. Thread 7 takes the tickets 7, 4,103, 8,199 and so on. All of them share one number, `best`, the smallest winning ticket so far, and a thread whose next ticket is larger goes home.

# %% id=early-kernel
search = agt.Kernel(r"""
__device__ unsigned int scrambled(unsigned int x)
{
    x += 0x9e3779b9u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}

extern "C" __global__ void search(
    unsigned int tickets, unsigned int zeros, unsigned int* best, unsigned int* looked)
{
    unsigned int mine = 0, stride = gridDim.x * blockDim.x;
    for (unsigned int x = blockIdx.x * blockDim.x + threadIdx.x; x < tickets; x += stride) {
        if (x > atomicAdd(best, 0)) break;        // somebody has found an earlier one
        mine++;
        if (scrambled(x) >> (32 - zeros) == 0) {
            atomicMin(best, x);                   // the smaller of the two stays
            break;
        }
    }
    atomicAdd(looked, mine);
}
""")
TICKETS, ZEROS = 1 << 20, 14

# %% [markdown] id=early-atomic
# `atomicAdd(best, 0)` adds nothing. It's a way to *read*, at memory each time. An ordinary read may be answered by a register, or by the cache of the thread's own SM, which hasn't heard the news. (`volatile` would do as well.)
#
# One ticket in $2^{14} = 16{,}384$ wins, so there are about 64 winners among the million.

# %% id=predict-early
early = Prediction(
    "The first winner will turn out to be a ticket between 10,000 and 20,000. How many of the million "
    "tickets are looked at?",
    all="all of them: a launch cannot be stopped",
    few="fewer than 50,000",
    half="about half: those threads that have found nothing go on",
)
early

# %% id=commit-early
early.commit(...)


# %% id=run-early
def scramble(x):
    x = x + np.uint32(0x9E3779B9)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x ^ (x >> np.uint32(16))


winners = np.flatnonzero(
    scramble(np.arange(TICKETS, dtype=np.uint32)) >> np.uint32(32 - ZEROS) == 0
)
best, looked = search(
    TICKETS, ZEROS, agt.full(1, 2**32 - 1, np.uint32), agt.zeros(1, np.uint32), grid=16, block=256
).sync_on(stream)
best, looked = int(agt.d2h(best).sync()[0]), int(agt.d2h(looked).sync()[0])
print(f"{len(winners)} winners, the first is {winners[0]:,}")
print(f"the kernel found {best:,} and looked at {looked:,} tickets of {TICKETS:,}")

# %% id=early-check tags=asserts
assert best == winners[0]
assert looked < 200_000

# %% id=reveal-early
early.reveal(
    "few" if looked < 50_000 else "half" if looked < TICKETS * 0.9 else "all",
    "Nobody stops a launch from outside, but each thread can go home. When the last one has, it is over.",
)

# %% [markdown] id=maze-text
# ## A flood in a maze
#
# In the search, threads could stop one by one. Often they can't. Open a tap in the corner of a maze: in each round the water moves one step on, and the first round in which it moves nowhere is the last. No single thread can tell which round that is, because its own cell may stay dry for a long time and then get wet after all.


# %% id=maze
def maze(size, seed=0):
    """1 where one can walk, 0 where there is a wall."""
    rng = np.random.default_rng(seed)
    free = np.zeros((size, size), np.uint8)
    free[::2, ::2] = 1
    for y in range(0, size, 2):
        for x in range(0, size, 2):
            if y and (x == 0 or rng.random() < 0.5):
                free[y - 1, x] = 1
            elif x:
                free[y, x - 1] = 1
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


def dry(free):
    """What the kernels start from: one wet cell."""
    depth = np.full(free.size, -1, np.int32)
    depth[0] = 0
    return agt.pin(depth)


def draw_flood(free, depth):
    shown = np.ma.masked_less(depth.reshape(free.shape), 0)
    plt.figure(figsize=(4.2, 4.2))
    plt.imshow(shown, cmap=plt.get_cmap("viridis").with_extremes(bad="0.15"))
    plt.title(f"{depth.max()} steps to the last cell")
    plt.axis("off")
    print(
        f"A maze of {free.shape[0]} by {free.shape[1]} cells: the water needs {depth.max()} steps."
    )


small = maze(32)
small_open = agt.h2d(agt.pin(small.ravel()), "open").sync().share()
draw_flood(small, flood_in_numpy(small))

# %% [markdown] id=maze-python
# Here is the loop with Python in charge, a launch for each step of the water:

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


def flood_by_python(free, on_device):
    depth, level = agt.h2d(dry(free)).sync_on(stream), 0
    while True:
        after = agt.zeros(free.size, np.int32).sync_on(stream)
        step = agt.zeros(1, np.int32).and_then(
            lambda grew: flood_step(
                level, free.shape[1], on_device, depth.borrow(), after.borrow().partition(256), grew
            )
        )
        grew = step.last().to_host().sync_on(stream)
        depth, level = after, level + 1
        if not grew[0]:
            return agt.d2h(depth).sync_on(stream)


steps, by_python = recorded(flood_by_python, small, small_open)
print(f"{len(by_python.find('flood_step'))} launches, {by_python.metrics().makespan:.0f} µs")

# %% id=maze-python-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
assert len(by_python.find("flood_step")) == steps.max() + 1

# %% [markdown] id=vote-text
# The maze has $32 \times 32 = 1024$ cells, and a block may have 1,024 threads, so one block is enough. And the threads of a block can *vote*: `__syncthreads_or(p)` tells each of them whether `p` holds for any. It's a barrier as well, since nobody gets the answer before all have come.
#
# Because everybody gets the same answer, everybody leaves the loop in the same round. That matters. A thread that left by itself would no longer look after its cell, and the block would then meet at two different lines.

# %% [markdown] id=exercise-flood
# ### Exercise: let the block decide
#
# The kernel below takes one step and ends. Make it go on until a step reaches nothing. At the end, thread 0 writes how many steps were taken to `rounds[0]`, the last one included, which found nothing. (The bound in
# the loop is for safety: no maze takes longer.)
#
# Mind who reads what others write. All of a step's reads come before any of its writes.

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
    while (level < width * width) {
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        __syncthreads();
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
# `reached` is what one thread knows. `__syncthreads_or(reached)` is what the block knows.
#
# `if (!__syncthreads_or(reached)) break;`

# %% id=11-flood explanation
# The vote does two jobs. It decides, and it is the second barrier of the step: the next round must not read before this one's water is in place.

# %% id=11-flood-check
check("11-flood", FLOOD)

# %% id=flood-run
one_block = agt.Kernel(
    NEXT_TO
    + r"""
extern "C" __global__ void one_block(int width, const unsigned char* open, int* depth)
{
    int i = threadIdx.x;
    for (int level = 0; level < width * width; level++) {
        bool reached = open[i] && depth[i] < 0 && next_to(level, width, depth);
        __syncthreads();
        if (reached) depth[i] = level + 1;
        if (!__syncthreads_or(reached)) break;
    }
}
"""
)


def flood_by_block(free, on_device):
    op = agt.h2d(dry(free)).and_then(
        lambda depth: one_block(free.shape[1], on_device, depth, grid=1, block=free.size)
    )
    return op.last().to_host().sync_on(stream)


steps, by_block = recorded(flood_by_block, small, small_open)
faster = by_python.metrics().makespan / by_block.metrics().makespan
print(f"the block takes {by_block.metrics().makespan:.0f} µs: {faster:.0f} times as quick")

# %% id=flood-run-check tags=asserts
assert (steps == flood_in_numpy(small).ravel()).all()
if device.simulated:
    assert faster > 5

# %% [markdown] id=grid-text
# ## A larger maze
#
# A maze of 64 by 64 has 4,096 cells and needs at least four blocks, and `__syncthreads()` ends at the edge of the block. Python could be the barrier, because on one stream a launch begins when the one before it is over. But that's the conversation we wanted to end.
#
# So let's build a meeting point for all blocks. It takes a counter in the device's memory. Whoever arrives adds one, and then looks at the counter until it has reached its goal:
#
# ```text
#   block 0   ── work ── add 1 ── look, look, look ──┬── go on
#   block 1   ── work ───────── add 1 ── look, look ─┤
#   block 2   ── work ──────────────────────── add 1 ┘   the counter is 3
# ```
#
# Four details decide whether it works:
#
# 1. One thread of each block counts. The others wait for it at `__syncthreads()`, **before** the counting, so that no block is counted that's still at work, and **after** it, so that nobody goes on before the meeting is over.
# 2. The others have to see what a block wrote. That takes a `__threadfence()` between the work and the counting, and another one between the looking and what comes next. One thread's fence is enough for its block, because the `__syncthreads()` has shown it the work of all.
# 3. The look must be a real one, at memory: `atomicAdd(arrived, 0)`, or a `volatile` read.
# 4. For the next meeting the counter just goes on: the goals of a grid of 4 blocks are 4, 8, 12.
#
# Waiting by looking is called *spinning*. If what you wait for never comes, you spin for ever, and a GPU has no Stop button: somebody has to kill the process. So our spins give up after ten million looks, by `__trap()`, which ends the kernel with an error (and, on a real GPU, all other work of the process there).

# %% [markdown] id=exercise-meet
# ### Exercise: a barrier for the grid
#
# Complete `meet`. It is a function for kernels, so it has no `__global__`. The check calls it from a kernel of its own.

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
# Every line guards against something else. Leave one out and a GPU may still get it right, run after run, which is the worst kind of wrong. The simulated device is not lucky. (The check also ran your text in memory that is as late as CUDA allows, and with a block that never comes.)

# %% id=11-meet-check
check("11-meet", MEET)

# %% [markdown] id=flood-grid-text
# With a barrier of the grid, the flood looks as it did in one block. `atomicExch` writes as an atomic, so many may do it at once. (The cells below use our own `meet`. And the simulated device makes meetings cheap: on an H200 we measured 1.5 µs for one of 132 blocks.)

# %% id=flood-grid
OUR_MEET = r"""
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
with agt.record() as by_grid:
    steps = flood_by_grid(large, large_open)
(flooded,) = by_grid.find("many_blocks")
print(f"16 blocks met {2 * (steps.max() + 1)} times; the kernel took {flooded.duration:.0f} µs")
draw_flood(large, steps)

# %% id=flood-grid-check tags=asserts
assert (steps == flood_in_numpy(large).ravel()).all()

# %% [markdown] id=places
# ## How many can meet?
#
# A meeting of 16 blocks went well. An H200 has 132 processors (SMs), each of which holds up to 2,048 threads at once, in up to 32 blocks. We send blocks of 1,024 threads to a meeting, and nothing else is going on.

# %% id=predict-places
places = Prediction(
    "What is the largest number of such blocks that can all meet?",
    sms="132, one for each SM",
    threads="264, as many as have room at the same time",
    blocks="4,224, which is 132 times 32",
    any="any number: those that find no room come in later",
)
places

# %% id=commit-places
places.commit(...)

# %% [markdown] id=places-sim
# A wrong guess would spin on a real GPU. The simulated one notices when nobody is left who could change anything, so this cell always runs there:

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
        agt.Kernel(everybody)(agt.zeros(1, np.uint32), grid=blocks, block=1024).sync()
        return True
    except agt.errors.DeadlockError as error:
        print(f"{blocks}:", str(error).partition(". Launch")[0])
        return False


with agt.using("sim"):
    met = [blocks for blocks in (132, 264, 265, 4224) if can_meet(blocks)]
print("these met:", met)

# %% id=reveal-places
places.reveal(
    {132: "sms", 264: "threads", 4224: "blocks"}[max(met)],
    "A block keeps its place until it ends. The 265th gets a place when one of the others ends, and all of "
    "them wait for the 265th.",
)

# %% [markdown] id=places-read
# So here's the rule: **blocks that wait for each other must all have a place at the same time.** How many have one depends on the GPU, on the kernel's registers and shared memory, and on who else is there. And for an ordinary launch, CUDA doesn't even promise it on an empty GPU.
#
# It does promise it for a **cooperative launch**. That counts the places before anything starts, refuses a grid that's too large, and brings a barrier of its own, from *cooperative groups*. In C++ one calls `cudaLaunchCooperativeKernel`; `agt` does so when it finds `this_grid` in the source:

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
    return agt.Kernel(together)(present, sum, grid=blocks, block=1024).last().to_host().sync()[0]


print("met:", all_together(16))
with agt.using("sim"):
    print("met:", all_together(264))
    try:
        all_together(265)
    except agt.errors.LaunchConfigError as error:
        print(error)
    else:
        raise AssertionError("the launch was not refused")

# %% id=cooperative-check tags=asserts
assert all_together(16) == 16

# %% [markdown] id=misconception-block
# > **Misconception: `__syncthreads()` waits for everybody.**
# >
# > - *What you see:* right numbers as long as there is one block, and now and then with more.
# > - *Why:* it is a barrier of the block. The others may not even have begun.
# > - *What helps:* a barrier of the grid, or two launches.
#
# Here each block writes a number, and then reads what its neighbour has just "finished". Go to the second step. Red: two blocks touch one place, and nothing says which of them comes first.

# %% id=misconception-block-code
neighbours = r"""
extern "C" __global__ void neighbours(int* x, int* y)
{
    if (threadIdx.x == 0) x[blockIdx.x] = blockIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
}
"""
agt.show_threads(
    agt.Kernel(neighbours), np.zeros(4, np.int32), np.zeros(4, np.int32), grid=4, block=4
)

# %% id=misconception-block-check tags=asserts
with agt.using("sim"):
    try:
        agt.Kernel(neighbours)(
            agt.zeros(4, np.int32), agt.zeros(4, np.int32), grid=4, block=32
        ).sync()
    except agt.errors.RaceError as error:
        print(error)
    else:
        raise AssertionError("the race was not seen")

# %% [markdown] id=queue-text
# ## A kernel that stays
#
# Here's another conversation that you can end: "Here is a job. Here is the next one." There are 64 small jobs of very different lengths. A launch for each works, and costs 64 launches.
#
# Or launch *once*, with a few blocks that stay. Whenever a block has nothing to do, it takes the next job by itself. All it needs is a counter:
#
# ```text
#   job = atomicAdd(next, 1)      nobody else gets this number
# ```
#
# Such a kernel is called *persistent*, and the counter is the whole queue. In this one a job is a sum of `length` terms, and all threads of a block work on it:

# %% id=job-code
JOB = r"""
// The sum of 1/k^2 for k up to length. All threads of the block take part, and thread 0 gets it.
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
"""
one_job = agt.Kernel(
    JOB
    + r"""
extern "C" __global__ void one_job(unsigned int job, const unsigned int* lengths, float* results)
{
    float sum = work(lengths[job]);
    if (threadIdx.x == 0) results[job] = sum;
}
"""
)
worker = agt.Kernel(
    JOB
    + r"""
extern "C" __global__ void worker(
    unsigned int jobs, const unsigned int* lengths, unsigned int* next, float* results, int* who)
{
    __shared__ unsigned int job;
    while (true) {
        if (threadIdx.x == 0) job = atomicAdd(next, 1);
        __syncthreads();
        unsigned int mine = job;
        if (mine >= jobs) return;
        float sum = work(lengths[mine]);
        if (threadIdx.x == 0) {
            results[mine] = sum;
            who[mine] = blockIdx.x;
        }
        __syncthreads();
    }
}
"""
)
JOBS = 64
lengths = np.random.default_rng(2).integers(10, 3000, JOBS).astype(np.uint32)
jobs_on_device = agt.h2d(agt.pin(lengths), "lengths").sync().share()


def a_launch_each():
    results = agt.zeros(JOBS).sync_on(stream)
    for job in range(JOBS):
        one_job(job, jobs_on_device, results.borrow(), grid=1, block=64).async_on(stream)
    return agt.d2h(results).sync_on(stream)


def persistent(blocks):
    op = agt.zip(agt.zeros(1, np.uint32), agt.zeros(JOBS), agt.zeros(JOBS, np.int32)).and_then(
        lambda given: worker(JOBS, jobs_on_device, *given, grid=blocks, block=64)
    )
    return op.and_then(lambda given: agt.zip(agt.d2h(given[2]), agt.d2h(given[3]))).sync_on(stream)


# %% [markdown] id=queue-question
# Sixteen blocks will do the 64 jobs in no time. But what if we send a **single** block of 64 threads, on a GPU that has room for thousands? It does all jobs, one after the other. The 64 launches go to one stream, so they run one after the other as well.

# %% id=predict-queue
queue = Prediction(
    "One block against 64 launches: who is quicker, and by how much?",
    launches="the launches: each job gets a fresh block, and they can be prepared ahead",
    even="about even: the same jobs in the same order",
    block="the block, at least twice as quick",
)
queue

# %% id=commit-queue
queue.commit(...)

# %% id=run-queue
each, launched = recorded(a_launch_each)
(alone, _), by_one = recorded(persistent, 1)
(shared, who), by_sixteen = recorded(persistent, 16)

agt.compare_timelines(
    [launched, by_one, by_sixteen],
    ["64 launches", "One block that stays", "Sixteen blocks that stay"],
    lanes=("host", "streams"),
    lesson="64 launches fill the host's lane from end to end. One launch whose blocks fetch their jobs "
    "themselves is over long before that, even with a single block.",
)

# %% id=reveal-queue
gain = launched.metrics().makespan / by_one.metrics().makespan
for name, trace in (("64 launches", launched), ("one block", by_one), ("sixteen blocks", by_sixteen)):
    print(f"{name}: {trace.metrics().makespan:.0f} µs")
queue.reveal(
    "block" if gain > 2 else "even" if gain > 2 / 3 else "launches",
    "The launches are limited by the host: describing a small job takes longer than doing it.",
)

# %% id=queue-check tags=asserts
right = np.array([(1 / np.arange(1, n + 1) ** 2).sum() for n in lengths])
for results in (each, alone, shared):
    assert np.allclose(results, right, rtol=1e-5)
if device.simulated:
    assert launched.metrics().makespan > 3 * by_sixteen.metrics().makespan
    assert len(set(who.tolist())) > 1

# %% id=queue-h200
agt.compare_timelines(
    on_an_h200("11_queue_by_launches", "11_queue"),
    ["64 launches", "Sixteen blocks that stay"],
    lanes=("host", "streams"),
    lesson="The same shape: 64 calls from end to end; and one kernel, which is over long before that.",
)

# %% id=queue-h200-check tags=asserts
h200_launched, h200_stayed = map(agt.Trace.load_recording, ("11_queue_by_launches", "11_queue"))
assert (len(h200_launched.find("one_job")), len(h200_stayed.find("worker"))) == (JOBS, 1)
assert h200_launched.metrics().makespan > 3 * h200_stayed.metrics().makespan

# %% [markdown] id=exercise-queue
# ### Exercise: write the queue
#
# Jobs come by the counter, and each is done by a whole block. The version below gives every block a fixed share, job 0 to block 0, job 1 to block 1, and so on. That is fine until the long jobs all fall to one
# block. Have the blocks take their jobs from `next` instead. (Try it without scrolling up.)

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

# %% [markdown] id=pays-text
# ## When it does not pay
#
# If you've written CUDA in C++, you have been shaking your head for a while. *Of course* Python is slow. So here is what a decision costs with everything prepared and no Python in sight:
#
# | who decides | measured | µs a round |
# |---|---|---|
# | this page's Python, which describes each operation anew | H200 | some tens |
# | prepared launches and a wait, from Python | H200 | 14 |
# | C++: a launch, and a wait | H100 | 9 to 10 |
# | C++: Newton, 1,024 numbers, a flag read back after each of 9 rounds | H100 | 14 to 20 |
# | C++: launches in a row, and nobody asks | H100 | 3.5 |
# | a CUDA graph with a `while` node, whose kernel decides | H200, H100 | 4.0 to 4.6 a turn |
# | the same, with eight steps in each turn | H100 | 1.3 a step |
# | a meeting of 132 blocks in one persistent kernel | H200 | 1.5 |
#
# So the conversation isn't Python's fault alone: whoever asks the host after each round pays about ten microseconds, in any language. A `while` node is NVIDIA's own answer. It frees the host, which makes one call of 5 µs for any number of turns, but a turn takes as long as a launch. Asking less often pays there, too, as the line with eight steps shows.
#
# Whatever the conversation costs, it costs the same for any round. So let's make the rounds longer. Each now computes its $a$ anew, by a loop of `work` steps:

# %% id=pays-run
SLOW = r"""
__device__ float slowly(float a, unsigned int work)
{
    float sum = 0.0f;
    for (unsigned int k = 0; k < work; k++) sum = 0.5f * (sum + a);
    return a + 0.0f * sum;
}
extern "C" __global__ void step(unsigned int work, const float* a, float* x, int* moved)
{
    unsigned int i = threadIdx.x;
    float before = x[i];
    x[i] = 0.5f * (before + slowly(a[i], work) / before);
    if (fabsf(x[i] - before) > 1e-6f * x[i]) *moved = 1;
}
extern "C" __global__ void whole(unsigned int work, const float* a, float* x)
{
    unsigned int i = threadIdx.x;
    float now = x[i], before;
    do {
        before = now;
        now = 0.5f * (before + slowly(a[i], work) / before);
    } while (fabsf(now - before) > 1e-6f * now);
    x[i] = now;
}
"""
slow_step, slow_whole = agt.Kernel(SLOW, "step"), agt.Kernel(SLOW, "whole")
_, few = some_numbers(64)


def asked_slowly(work):
    x = agt.ones(64).sync_on(stream)
    while True:
        step = agt.zeros(1, np.int32).and_then(
            lambda moved: slow_step(work, few, x.borrow().partition(64), moved)
        )
        if not step.last().to_host().sync_on(stream)[0]:
            return


def decided_slowly(work):
    x = agt.ones(64).sync_on(stream)
    slow_whole(work, few, x.borrow().partition(64)).sync_on(stream)


gains = {}
longest = 3000 if device.simulated else 30_000  # Python takes longer to talk to a real GPU
for work in (0, 300, longest):
    asked, decided = makespan(asked_slowly, work), makespan(decided_slowly, work)
    gains[work] = asked / decided
    print(f"{work:5} steps a round: {asked:.0f} µs and {decided:.0f} µs: {gains[work]:.1f} times as quick")

# %% id=pays-check tags=asserts
if device.simulated:
    assert gains[0] > 1.5 * gains[longest]
    assert gains[longest] > 1

# %% [markdown] id=pays-read
# The gain shrinks as the rounds grow. (With 30,000 steps a round, 1.2 times is left.) Before you move a loop into a kernel, compare the time of one round with that of one conversation. And there are costs that no table of times shows:
#
# | it does not pay | because |
# |---|---|
# | when a round takes much longer than a launch and a copy | there is little left to save |
# | when you know the number of rounds | enqueue them all and ask nothing, or make them a [graph](09_cuda_graphs.ipynb) |
# | when the work needs more blocks than have a place at once | they cannot meet, so each block has to do several pieces in turn, and that code is harder |
# | when others want the GPU, too | a kernel that stays keeps its places. Nobody else can end it without ending the process, and it says nothing until it ends, unless it talks to the host ([chapter 13](13_hostcalls.ipynb)) |
# | when you still look for the bug | a loop in Python can be stopped, printed and stepped through |

# %% [markdown] id=challenge
# ## Challenge: who is important?
#
# `sources[i]` names eight pages that link to page `i`, and `weight[j]` is one over the number of links on page `j`. A page is as important as the pages that link to it:
#
# $$\text{rank}_i = \frac{0.15}{n} + 0.85 \sum_{j \to i} \text{weight}_j \cdot \text{rank}_j$$
#
# Start with $1/n$ for all, and repeat until no rank changes by more than $10^{-3}/n$. (This is PageRank. It made a company.)
#
# The version below gets it right, with Python in charge, and takes about 1,000 µs for 2,048 pages. Get below 200. You may change everything but the name, the arguments and the result.

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

extern "C" __global__ void ranks(
    unsigned int n, const unsigned int* sources, const float* weight,
    float* rank, float* after, unsigned int* room)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned int round = 1; round <= 100; round++) {
        bool moved = false;
        if (i < n) {
            float sum = 0.0f;
            for (int k = 0; k < 8; k++) {
                unsigned int j = sources[8 * i + k];
                sum += weight[j] * rank[j];
            }
            after[i] = 0.15f / n + 0.85f * sum;
            moved = fabsf(after[i] - rank[i]) > 1e-3f / n;
        }
        if (__syncthreads_or(moved) && threadIdx.x == 0) atomicExch(&room[round], 1);
        meet(&room[0], round * gridDim.x);
        float* other = rank; rank = after; after = other;
        if (atomicAdd(&room[round], 0) == 0) break;
    }
    // Both arrays agree to within the tolerance; the caller reads the first.
}
"""


def pagerank(sources, weight):
    """Ranks of n pages, from arrays on the device: n x 8 sources and n weights."""
    n, whole = weight.size, agt.Kernel(WHOLE)
    room = agt.zeros(101, np.uint32)
    op = agt.zip(agt.full(n, 1 / n), agt.full(n, 1 / n), room).and_then(
        lambda given: whole(n, sources, weight, *given, grid=-(-n // 256), block=256)
    )
    return op.and_then(lambda given: agt.d2h(given[2])).sync()


# %% id=11-challenge hints
# Asking less often is the quickest change. It will not get you all the way.
#
# One launch, eight blocks, a `meet` after each round. Each round reads `rank` and writes `after`; then the two change places, so one meeting a round is enough.
#
# For the decision, a flag for each round: whoever still moves sets the flag of this round, then all meet, then all read it. With a single flag, somebody would have to set it back to zero, and just when would that be safe?

# %% id=11-challenge explanation
# One barrier a round, thanks to two arrays that change places, and a flag for each round, so that nobody has to tidy up while others still read.

# %% id=11-challenge-check
check("11-challenge", pagerank)

# %% [markdown] id=key-points
# ## Key points
#
# - If the host decides about data on the GPU, each decision costs a launch, a copy and a wait, about ten microseconds even in C++. Let a kernel decide.
# - An atomic is one step, and orders nothing else. A fence orders, as far as it reaches, for those who have seen the flag behind it. A barrier waits and orders, for its block.
# - A thread can go home by itself. A block agrees by a vote, `__syncthreads_or`, because all of it gets the same answer.
# - A grid agrees at a barrier: fence, count, look, fence. All blocks have to come, so all of them need a place at the same time. A cooperative launch promises it.
# - A persistent kernel takes its jobs from a counter. One atomic is a whole queue.
# - You save the conversation and nothing else, so long rounds have little to gain.
#
# **Next:** in [12_async_inside_a_kernel](12_async_inside_a_kernel.ipynb) a kernel waits for several things at once, as your event loop did in chapter 6.

# %% id=score
score(larger, fewer, early, places, queue)

# %% id=progress
progress("11")
