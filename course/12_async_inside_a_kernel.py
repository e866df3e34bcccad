"""Source of notebooks/12_async_inside_a_kernel.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Async inside a kernel
#
# In chapter 6 a single thread of Python waited for many things at once. It had an event loop, tasks and `await`. **What if you have none of these, because you are inside a kernel?** Then you build them, and find out what they are made of.
#
# After this page you can write a future for the GPU, turn a function with several waits into a state machine, as Rust's compiler does with `async fn`, send a letter from one block to another, write an executor in CUDA C, and build futures out of futures.
#
# | | |
# |---|---|
# | Time | 65 minutes, and 45 for the encores |
# | You need | [06_await](06_await.ipynb) and [11_the_gpu_decides](11_the_gpu_decides.ipynb). You don't need a GPU |

# %% id=setup
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## Three cups of tea
#
# A cup of tea is two waits: the water has to boil, and then the leaves have to steep. In Python you'd write
#
# ```python
# async def tea(boil, steep):
#     await boil
#     await steep
# ```
#
# and three cups with `asyncio.gather`. That's one thread of Python, and nobody stands beside a kettle.
#
# A thread on a GPU has to wait, too: for a message from another block, for data, for the host. But CUDA C has no `await`. Must the thread stand beside the kettle?
#
# Here are three cups and a single thread of a GPU. Time is counted in **ticks**, and a tick moves each cup that the thread looks at one step on. We'll take this cup apart below:

# %% id=tea-kernels
TEA = r"""
enum Poll { PENDING, READY };

struct Timer {                                // PENDING `left` times, and then READY
    int left;
    __device__ Poll poll()
    {
        if (left == 0) return READY;
        left--;
        return PENDING;
    }
};

struct Tea {                                  // two waits, one after the other
    Timer boil, steep;
    int step;
    __device__ Poll poll()
    {
        if (step == 0) {                      // the water boils
            if (boil.poll() == PENDING) return PENDING;
            step = 1;
        }
        if (step == 1) {                      // the leaves steep
            if (steep.poll() == PENDING) return PENDING;
            step = 2;
        }
        return READY;
    }
};
"""

# %% [markdown] id=tea-kitchen-text
# First, one cup after the other. The lowest lane is the thread itself, with a circle for each time it polls, and in it the number of the cup:

# %% id=tea-kitchen tags=helpers
from asyncgpu_course import LaneBar, draw_lanes, solved

# `block_on` and `run_all` come with the course. You'll write them yourself further down.
BREW = '#include "device_async.cuh"\n' + TEA[TEA.index("struct Tea") :] + r"""
struct Noted {                                // a cup that writes down what each poll of it found
    Tea tea;
    int* note;
    __device__ Poll poll()
    {
        Poll state = tea.poll();
        *note = state == READY ? 3 : tea.step + 1;
        note += 3;
        return state;
    }
};

extern "C" __global__ void one_by_one(const int* boil, const int* steep, int* log)
{
    for (int k = 0; k < 3; k++) {
        Noted cup = {{{boil[k]}, {steep[k]}, 0}, log + k};
        log += 3 * (block_on(cup) - 1);
    }
}

extern "C" __global__ void in_turns(const int* boil, const int* steep, int* log)
{
    Noted cups[3];
    for (int k = 0; k < 3; k++) cups[k] = {{{boil[k]}, {steep[k]}, 0}, log + k};
    run_all(cups, 3);
}
"""
one_by_one, in_turns = agt.Kernel(BREW, "one_by_one"), agt.Kernel(BREW, "in_turns")
BOIL, STEEP = np.array([2, 5, 3], np.int32), np.array([4, 2, 1], np.int32)
BLUE, BROWN = "#56b4e9", "#c99a2e"


def brew(kernel):
    """What each cup's poll found at each tick: 1, it boils; 2, it steeps; 3, it is ready."""
    log = kernel(agt.h2d(BOIL), agt.h2d(STEEP), agt.zeros((32, 3), np.int32), grid=1, block=1)
    log = log.last().to_host().sync_on(stream)
    return log[: log.any(axis=1).sum()].T


def ticks(log):
    return log.shape[1] - 1


def draw_cups(*logs, titles):
    size = 9.5, 2 * len(logs)
    figure, rows = plt.subplots(len(logs), 1, figsize=size, sharex=True, squeeze=False)
    told = []
    for axes, log, title in zip(rows[:, 0], logs, titles, strict=True):
        lanes, kinds = [], {1: (BLUE, "b"), 2: (BROWN, "s")}
        for cup, row in enumerate(log):
            bars = [LaneBar(at, at + 1, *kinds[found]) for at, found in enumerate(row) if found in kinds]
            lanes.append((f"cup {cup}", bars))
        draw_lanes(axes, [*lanes, ("thread", [])])
        for tick, column in enumerate(log.T):
            polled = np.flatnonzero(column)
            for place, cup in enumerate(polled):
                ink, paper = ("white", "black") if column[cup] == 3 else ("black", "white")
                circle = {"boxstyle": "circle,pad=0.1", "facecolor": paper, "edgecolor": "black"}
                at = tick + (place + 0.5) / len(polled)
                middle = {"ha": "center", "va": "center", "fontsize": 7}
                axes.text(at, 3, cup, color=ink, bbox=circle, **middle)
        axes.set(xlim=(-0.2, max(map(ticks, logs)) + 1))
        axes.set_title(f"{title}: {ticks(log)} ticks", loc="left")
        cups = [(np.flatnonzero(row == 1), np.flatnonzero(row == 2)) for row in log]
        spans = [f"cup {k} boils from {b[0]} to {b[-1] + 1} and steeps until {s[-1] + 1}"
                 for k, (b, s) in enumerate(cups)]  # fmt: skip
        most = np.count_nonzero(log, axis=0).max()
        looks = f"The thread polls up to {most} cups in a tick" if most > 2 else (
            "The thread polls one cup in each tick, again and again, and goes on to the next one "
            "in the tick in which that is ready")  # fmt: skip
        told.append(f"{title}: {ticks(log)} ticks. In ticks, {', '.join(spans)}. {looks}.")
    rows[-1, 0].set_xticks(range(0, 19, 2))
    rows[-1, 0].set_xlabel(
        "tick (b: the water boils, s: the leaves steep, black: that poll said READY)"
    )
    figure.tight_layout()
    shown(figure, "\n".join(told))


# %% id=tea-first
waited = brew(one_by_one)
draw_cups(waited, titles=["One cup after the other"])

# %% id=tea-check tags=asserts
assert ticks(waited) == (BOIL + STEEP).sum() == 17

# %% [markdown] id=turns-text
# In the other kernel, the same thread looks at each cup in turn, in every tick, and goes on to the next one if there is nothing to do. A cup that's ready isn't asked again. So all three are ready when the slowest one is, after 7 ticks instead of 17.

# %% id=12-turns guess
# How many times does the thread poll in these 7 ticks, all cups together? (Type a number.)

# %% id=12-turns reveal
turned = brew(in_turns)
titles = ["One cup after the other", "In turns"]
truth = np.count_nonzero(turned)
reveal("12-turns", int(truth), lambda: draw_cups(waited, turned, titles=titles))

# %% id=12-turns told truth=20
# It's not 3 in each of 7 ticks, which would be 21, because a cup drops out as soon as it's ready. And it's as many as before: a cup is polled once in each of its ticks, and once more to hear that it's ready. Taking turns saves no polls. It puts three of them into one tick.

# %% id=turns-check tags=asserts
assert ticks(turned) == 7
assert np.count_nonzero(waited) == np.count_nonzero(turned) == 20

# %% [markdown] id=poll-text
# ## A function that never waits
#
# How? Look at `Tea` once more. Its function `poll` never waits. It goes on as far as it can, and then **returns** one of two answers:
#
# | | |
# |---|---|
# | `PENDING` | not yet; ask me again |
# | `READY` | done. Do not ask me again |
#
# A struct with such a function is called a **future**. A `Timer` is the simplest one. `Tea` consists of two timers and a number, `step`: since `poll` returns in the middle of things, it has to remember where it was. A function that's cut into pieces at its waits, with a number for the next piece, is a **state machine**. Here it is, with cup 0's seven polls:

# %% id=machine-drawn tags=helpers
def draw_machine(found):
    """Draw the steps of a cup, and which of its polls went on from one to the next or ended there."""
    figure, axes = plt.subplots(figsize=(8, 2))
    axes.set(xlim=(0, 10), ylim=(-1.2, 1.2))
    axes.axis("off")
    middle = {"ha": "center", "va": "center"}
    names, told = ("step 0\nthe water boils", "step 1\nthe leaves steep", "READY"), []
    steps = zip(names, (BLUE, BROWN, "black"), strict=True)
    for place, (name, colour) in enumerate(steps):
        x, look = (1.1, 5.1, 8.9)[place], {"boxstyle": "round,pad=0.6", "facecolor": colour}
        axes.text(x, 0.5, name, color="white" if place == 2 else "black", bbox=look, **middle)
        polls = ", ".join(str(poll) for poll in np.flatnonzero(found == place + 1) + 1)
        if place == 2:
            break
        turn = {"arrowstyle": "->", "lw": 1.5}
        around = {**turn, "connectionstyle": "arc3,rad=-1"}
        axes.annotate("", (x - 0.45, -0.05), (x + 0.45, -0.05), arrowprops=around)
        axes.text(x, -0.95, f"polls {polls}:\nPENDING, return", fontsize=9, **middle)
        begin, end = ((2.35, 3.85), (6.35, 8.2))[place]
        axes.annotate("", (end, 0.5), (begin, 0.5), arrowprops=turn)
        last, what = np.flatnonzero(found > place + 1)[0] + 1, ("boil", "steep")[place]
        words = f"poll {last}:\n{what} is READY"
        told.append(f"Polls {polls} stay at {name}, find PENDING, and return. In poll {last} {what} is "
                    f"READY, and an arrow leads on to {names[place + 1]}.")  # fmt: skip
        axes.text((begin + end) / 2, 0.9, words, fontsize=9, **middle)
    figure.tight_layout()
    shown(figure, " ".join(told).replace("\n", ", "))


draw_machine(turned[0])

# %% [markdown] id=machine-read
# Poll 3 goes on from step 0 to step 1 in a single call, and only returns when it has to wait for the leaves.
#
# Rust's compiler makes nearly this of an `async fn`. (Its `poll` also gets a *waker*, and we'll miss that soon.) Python keeps the frame of a paused function instead. A kernel can't put a frame aside, so each `await` becomes a poll, an `if` and a number. A local variable that lives across an `await` becomes a member of the struct.

# %% [markdown] id=exercise-pot
# ### Exercise: a pot for many
#
# Now a future with a loop in it. A pot is boiled once, and then poured `cups` times:
#
# ```python
# async def pot(boil, cups, pour):
#     await boil
#     for _ in range(cups):
#         await sleep(pour)
# ```
#
# The struct below pours a single cup. `pouring.left = pour` sets the timer for another one. When a cup is full, `poll` goes on to the next one in the *same* call, since it only returns when it has to wait or is done. A pot for no cups is done when it has boiled. Leave the members as they are: the check makes pots as `{{boil}, cups, pour, 0, {0}}`.

# %% id=12-pot starter
POT = r"""
struct Pot {
    Timer boil;
    int cups, pour, step;
    Timer pouring;
    __device__ Poll poll()
    {
        if (step == 0) {
            if (boil.poll() == PENDING) return PENDING;
            pouring.left = pour;
            step = 1;
        }
        if (pouring.poll() == PENDING) return PENDING;
        return READY;                          // one cup is not many
    }
};
"""

# %% id=12-pot solution
# - if (pouring.poll() == PENDING) return PENDING;
# - return READY;                          // one cup is not many
# + while (cups > 0) {
# +     if (pouring.poll() == PENDING) return PENDING;
# +     cups--;
# +     pouring.left = pour;
# + }
# + return READY;

# %% id=12-pot hints
# The loop of the Python version can be a loop here as well. What has to be remembered when `poll` returns in the middle of it? How many cups are left. There is a member for that.
#
# `while (cups > 0)`: poll the timer, and return if it's `PENDING`. Otherwise this cup is poured: one less, and the timer is set anew.
#
# The three lines in the loop: `if (pouring.poll() == PENDING) return PENDING;`, `cups--;`, `pouring.left = pour;`.

# %% id=12-pot explanation
# The `for` counted in a local variable; a state machine counts in a member. Everything that is needed after a wait has to live in the struct, because the thread's own variables are gone when `poll` returns.

# %% id=12-pot-check
check("12-pot", POT)

# %% [markdown] id=oneshot-text
# ## A letter
#
# A timer that counts polls is a toy. Here's something real to wait for: another block. The smallest way to send is a **oneshot**: one value, once. It takes two words of memory, a flag and a box, and it's the message of [chapter 11](11_the_gpu_decides.ipynb):
#
# ```text
#   sender      writes the box     fence     raises the flag        release
#   receiver    sees the flag      fence     reads the box          acquire
# ```
#
# Whoever sees the flag must be sure to see the value, so the order is the whole point. And as in chapter 11, both sides have to touch the flag by an atomic (or as `volatile`, which works on GPUs without a promise).

# %% [markdown] id=exercise-oneshot
# ### Exercise: oneshot
#
# Complete both sides. `cell[0]` is the flag, 0 at first, and `cell[1]` is the box. `poll` only looks. It never waits.

# %% id=12-oneshot starter
ONESHOT = r"""
__device__ void send(unsigned int* cell, unsigned int x)
{
    cell[0] = 1;
    cell[1] = x;
}

__device__ Poll poll(unsigned int* cell, unsigned int& x)
{
    if (cell[0] == 0) return PENDING;
    x = cell[1];
    return READY;
}
"""

# %% id=12-oneshot solution
# - cell[0] = 1;
#   cell[1] = x;
# + __threadfence();
# + atomicExch(&cell[0], 1u);
# - if (cell[0] == 0) return PENDING;
# + if (atomicAdd(&cell[0], 0u) == 0) return PENDING;
# + __threadfence();

# %% id=12-oneshot hints
# First the value, then the flag. And something between the two.
#
# The flag is read while somebody else may be writing it, so both go by an atomic: `atomicExch(&cell[0], 1u)` raises it, and `atomicAdd(&cell[0], 0u)` looks.
#
# `send`: box, `__threadfence()`, flag. `poll`: look, and if it is raised, `__threadfence()`, box.

# %% id=12-oneshot explanation
# That is a release in `send` and an acquire in `poll`. A flag that is `volatile` on both sides would do as well. The check also ran your text in a memory whose writes come late, and an encore shows what that does. You will find this pair below nearly everything that is lock-free.

# %% id=12-oneshot-check
check("12-oneshot", ONESHOT)

# %% [markdown] id=executor-text
# ## Who polls?
#
# Somebody has to call `poll` until it says `READY`, and that is the **executor**. Python's event loop sleeps until the system tells it that something is ready, and Rust's until the waker rings. On a GPU nobody rings when a word of global memory changes, so the executor is a loop that keeps asking.
#
# The nearest thing to a waker is an `mbarrier` in shared memory. From Hopper on, a thread that waits at one may be suspended for a while, until other threads or a copy have arrived there. That serves a block, or the blocks of a cluster, and no further.

# %% [markdown] id=exercise-executor
# ### Exercise: an executor
#
# `run_all` polls `n` futures (30 at most) until all of them are `READY`, and returns the number of *rounds*, in each of which every open future is polled once. The version below stands beside each kettle. (`template` makes it a function for futures of any type.)

# %% id=12-executor starter
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    int rounds = 0;
    for (int k = 0; k < n; k++) {
        Poll state = PENDING;
        while (state == PENDING) {
            state = futures[k].poll();
            rounds++;
        }
    }
    return rounds;
}
"""

# %% id=12-executor solution
RUN_ALL = r"""
template <typename Future>
__device__ int run_all(Future* futures, int n)
{
    unsigned int open = (1u << n) - 1;
    int rounds = 0;
    while (open != 0) {
        for (int k = 0; k < n; k++) {
            if (open >> k & 1) {
                Poll state = futures[k].poll();
                if (state == READY) open &= ~(1u << k);
            }
        }
        rounds++;
    }
    return rounds;
}
"""

# %% id=12-executor hints
# Turn the two loops inside out. The outer one is for rounds, and goes on as long as any future is open. The inner one goes through the futures.
#
# You need to know which are still open: `bool done[32]`, or a bit for each in an `unsigned int`.
#
# In the inner loop: if `k` is open, poll it; if it says `READY`, it is no longer open. After the inner loop, `rounds++`.

# %% id=12-executor explanation
# Ten lines, and they are an event loop. It polls everybody in each round, which is called *busy polling*. (Between two rounds a thread can doze for a set time, by `__nanosleep`, up to about a millisecond.)

# %% id=12-executor-check
check("12-executor", RUN_ALL)

# %% [markdown] id=letters-text
# Now your executor and your oneshot work together. (Until the checks have taken them, ours do.) Blocks 1 to 3 work for 9, 3 and 6 ticks of 4,000 clocks (they watch the clock), and then each writes a letter. In block 0 a single thread waits for all three:

# %% id=letters
mine = TEA + solved("12-oneshot", ONESHOT) + solved("12-executor", RUN_ALL)
letters = agt.Kernel(mine + r"""
#include <cooperative_groups.h>

__device__ Poll look(unsigned int* cell, unsigned int& x) { return poll(cell, x); }

struct Letter {                               // a oneshot as a future
    unsigned int *cell, x;
    long long* came;
    __device__ Poll poll()
    {
        Poll state = look(cell, x);           // in here, `poll` is the struct's own
        if (state == READY) *came = clock64();
        return state;
    }
};

__global__ void letters(const int* work, unsigned int* cells, long long* clocks)
{
    cooperative_groups::this_grid();          // `agt` makes this launch cooperative
    long long begun = clock64();
    int k = blockIdx.x - 1;
    if (k >= 0) {
        while (clock64() - begun < 4000 * work[k]) __nanosleep(100);
        send(cells + 2 * k, 100 + k);
        return;
    }
    Letter inbox[3];
    for (k = 0; k < 3; k++) inbox[k] = {cells + 2 * k, 0, clocks + k};
    clocks[3] = run_all(inbox, 3);
    for (k = 0; k < 3; k++) clocks[k] -= begun;
}
""")
work = np.array([9, 3, 6], np.int32)
cells, clocks = agt.zeros(6, np.uint32), agt.zeros(4, np.int64)
op = letters(agt.h2d(work), cells, clocks, grid=4, block=1)
*came, rounds = op.last().to_host().sync_on(stream)

# %% id=letters-drawn tags=helpers
figure, axes = plt.subplots(figsize=(8, 2))
lanes, polls = [], [LaneBar(0, max(came), BLUE)]
for place, k in enumerate(sorted(range(3), key=lambda k: -work[k])):  # so that no arrow crosses a bar
    lanes.append((f"letter {k}", [LaneBar(0, 4000 * work[k], BROWN, f"block {k + 1} works")]))
    polls.append(LaneBar(came[k] - 300, came[k] + 300, "black"))
    arrow = {"arrowstyle": "->", "lw": 1.5}
    axes.annotate("", (came[k], 2.65), (4000 * work[k], place + 0.35), arrowprops=arrow)
draw_lanes(axes, [*lanes, ("block 0 polls", polls)])
axes.set(xlim=(0, 1.05 * max(came)), xlabel="clocks")
axes.set_title(f"One thread waits for three letters, in {rounds} rounds", loc="left")
figure.tight_layout()
each = [f"block {k + 1} works for {4000 * work[k]:,} clocks, and its letter is read after {when:,}"
        for k, when in enumerate(came)]  # fmt: skip
shown(figure, f"Block 0 polls without a break, for {rounds} rounds. Meanwhile {'; '.join(each)}. In "
      "between, a letter is sent, and waits for its turn in a round. So the "
      "letters come in another order than that in which the thread looks for them.")  # fmt: skip

# %% id=letters-check tags=asserts
assert came[1] < came[2] < came[0]
assert not device.simulated or max(came) < 42_000

# %% [markdown] id=combine-text
# ## Futures made of futures
#
# `Tea` combines two futures: first one, then the other. Two more combinations are needed everywhere. A **join** is `READY` when both are, as with `gather`. A **select** is `READY` as soon as one is. Both are futures themselves, so they can be parts of others. With them, all the words of [chapter 6](06_await.ipynb) have a twin:
#
# | in Python | in a kernel |
# |---|---|
# | a coroutine | a struct with a `step` |
# | `await thing` | `if (thing.poll() == PENDING) return PENDING;` |
# | the event loop | an executor: a loop that polls |
# | `gather`, and waiting for the first | join, select |
# | a `Future` whose result somebody sets | a oneshot |

# %% [markdown] id=exercise-join
# ### Exercise: join
#
# The version below looks right, and its result is. But it is `Tea` once more: `b` doesn't even begin before `a` is done. Poll both each time. And neither may be polled again after its `READY`.

# %% id=12-join starter
JOIN = r"""
template <typename A, typename B>
struct Join {
    A a;
    B b;
    bool a_done, b_done;                       // both false at first
    __device__ Poll poll()
    {
        if (!a_done && a.poll() == PENDING) return PENDING;
        a_done = true;
        return b.poll();
    }
};
"""

# %% id=12-join solution
# - if (!a_done && a.poll() == PENDING) return PENDING;
# - a_done = true;
# - return b.poll();
# + if (!a_done) a_done = a.poll() == READY;
# + if (!b_done) b_done = b.poll() == READY;
# + return a_done && b_done ? READY : PENDING;

# %% id=12-join hints
# Do not return after `a`, whatever it says. Poll both first, and decide after that.
#
# `if (!a_done) a_done = a.poll() == READY;` polls `a` unless it is done, and remembers.
#
# The same for `b`; then `return a_done && b_done ? READY : PENDING;`

# %% id=12-join explanation
# `a.poll() == READY && b.poll() == READY` would be shorter, and wrong twice: `&&` does not even look at `b` while `a` is pending, and it polls `a` again when it is done.

# %% id=12-join-check
check("12-join", JOIN)

# %% [markdown] id=select-text
# You get the select for free. `winner` says which one it was:

# %% id=select
SELECT = r"""
template <typename A, typename B>
struct Select {
    A a;
    B b;
    int winner;                                // -1 at first
    __device__ Poll poll()
    {
        if (a.poll() == READY) { winner = 0; return READY; }
        if (b.poll() == READY) { winner = 1; return READY; }
        return PENDING;
    }
};
"""

# %% [markdown] id=loser-text
# Two cups race: cup 0 needs 2 + 4 ticks, and cup 1 needs 5 + 4. A select of the two is polled until it is `READY`. Then the kernel does something else for a while: 100 ticks, more than enough for any tea. And then it goes back to cup 1, and polls that until it's `READY`, too.

# %% id=race-of-cups
race = agt.Kernel(TEA + SELECT + r"""
extern "C" __global__ void race(int* more)
{
    Select<Tea, Tea> both = {{{2}, {4}, 0}, {{5}, {4}, 0}, -1};
    while (both.poll() == PENDING) { }
    Timer meanwhile = {100};
    while (meanwhile.poll() == PENDING) { }
    Poll state = PENDING;
    while (state == PENDING) {
        state = both.b.poll();
        more[0]++;
    }
}
""")

# %% id=12-loser guess
# How many more polls does cup 1, which lost, need until it says `READY`? (Type a number.)

# %% id=12-loser reveal
(more,) = race(agt.zeros(1, np.int32), grid=1, block=1).last().to_host().sync_on(stream)
reveal("12-loser", int(more))

# %% id=12-loser told truth=4
# A future that nobody polls stands still, so the 100 ticks did nothing for it. Cup 0 was `READY` at its seventh poll, and then the select returned before it came to cup 1. So that one had six of its ten polls: five boiled, one steeped. Now come three more for the leaves, and one to hear that it's ready.
#
# > **Misconception: a future goes on by itself.**
# >
# > - *What you see:* the loser of a select is never ready; a message that has arrived is never read.
# > - *Why:* `poll` is the only place where its code runs.
# > - *What helps:* put a loser that you still need into the next join or select. If you drop it instead, you've cancelled it.

# %% [markdown] id=exercise-timeout
# ### Exercise: guests with a limit
#
# Now nest the pieces. A guest waits for a `Tea`, but only for so many polls: a select of the tea and a `Timer`. Two guests share a table, and leave when each has had tea or given up: a join of two selects.
#
# `serve` lets the guests of `n` tables (8 at most) wait *all at the same time*. It puts into `*teas` how many got their tea, and returns the rounds of `run_all`. Guests `2 * k` and `2 * k + 1` sit at table `k`. Below, each comes when the one before has left.

# %% id=12-timeout starter
SERVE = r"""
using Guest = Select<Tea, Timer>;
using Table = Join<Guest, Guest>;

__device__ Guest guest(int boil, int steep, int limit)
{
    return {{{boil}, {steep}, 0}, {limit}, -1};
}

__device__ int serve(int n, const int* boil, const int* steep, const int* limit,
                     int* teas)
{
    int rounds = 0;
    *teas = 0;
    for (int k = 0; k < 2 * n; k++) {
        Guest alone = guest(boil[k], steep[k], limit[k]);
        rounds += run_all(&alone, 1);
        *teas += alone.winner == 0;
    }
    return rounds;
}
"""

# %% id=12-timeout solution
# - int rounds = 0;
# + Table tables[8];
# + for (int k = 0; k < n; k++) {
# +     Guest left = guest(boil[2 * k], steep[2 * k], limit[2 * k]);
# +     Guest right = guest(boil[2 * k + 1], steep[2 * k + 1], limit[2 * k + 1]);
# +     tables[k] = {left, right, false, false};
# + }
# + int rounds = run_all(tables, n);
# - for (int k = 0; k < 2 * n; k++) {
# - Guest alone = guest(boil[k], steep[k], limit[k]);
# - rounds += run_all(&alone, 1);
# - *teas += alone.winner == 0;
# + for (int k = 0; k < n; k++) {
# +     *teas += (tables[k].a.winner == 0) + (tables[k].b.winner == 0);

# %% id=12-timeout hints
# First lay all tables, then run them, then count. That makes two loops with one call of `run_all` between them.
#
# `Table tables[8];` and in the first loop `tables[k] = {one guest, another guest, false, false};`, as a join has two flags that are false at first.
#
# `int rounds = run_all(tables, n);`. Behind it, a guest of table `k` had tea if `tables[k].a.winner == 0`, and the other one if `tables[k].b.winner == 0`.

# %% id=12-timeout explanation
# A table is a join of selects of teas, each of which is two timers, and `run_all` knows nothing of that. It calls `poll`, and every layer passes the call on. The compiler usually makes one flat function of it all, so nesting costs next to nothing when it runs.

# %% id=12-timeout-check
check("12-timeout", SERVE)

# %% [markdown] id=clock-text
# ## Tea by the clock
#
# A letter is on its way while nobody looks, and so a real kettle boils. Here are the three cups once more, with waits that end by the GPU's own clock. (`block_on` and `run_all` are in a small header that comes with the course.)

# %% id=clock-kernels
WAIT = r"""
#include "device_async.cuh"

struct Wait {                                // READY so many ticks after its first poll
    int ticks;
    long long until;
    __device__ Poll poll()
    {
        if (until == 0) until = clock64() + TICK * ticks;
        return clock64() < until ? PENDING : READY;
    }
};
"""

# %% id=clock-draw tags=helpers
CLOCKED = WAIT + r"""
struct Tea {
    Wait boil, steep;
    int step;
    long long* when;                          // it writes down when it began, went on, and was ready
    __device__ Poll poll()
    {
        if (when[0] == 0) when[0] = clock64();
        if (step == 0) {
            if (boil.poll() == PENDING) return PENDING;
            step = 1;
            when[1] = clock64();
        }
        if (steep.poll() == PENDING) return PENDING;
        when[2] = clock64();
        return READY;
    }
};

extern "C" __global__ void one_by_one(int n, const int* boil, const int* steep, long long* when)
{
    for (int k = 0; k < n; k++) {
        Tea tea = {{boil[k], 0}, {steep[k], 0}, 0, when + 3 * k};
        when[3 * n] += block_on(tea);         // so many polls
    }
}

extern "C" __global__ void in_turns(int n, const int* boil, const int* steep, long long* when)
{
    Tea teas[8];
    for (int k = 0; k < n; k++) teas[k] = {{boil[k], 0}, {steep[k], 0}, 0, when + 3 * k};
    when[3 * n] = run_all(teas, n);           // so many rounds
}
"""


def brew_by_clock(kernel, tick):
    """The clocks at which each cup began to boil, to steep, and was ready; and the polls, or rounds."""
    brew = agt.Kernel(CLOCKED.replace("TICK", f"{tick}ll"), kernel)
    op = brew(3, agt.h2d(BOIL), agt.h2d(STEEP), agt.zeros(10, np.int64), grid=1, block=1)
    *when, looks = op.last().to_host().sync_on(stream)
    return np.reshape(when, (3, 3)) - min(when), looks


def race_by_clock(tick):
    """Both ways, and how many times as fast taking turns is."""
    runs = {"One by one": brew_by_clock("one_by_one", tick), "In turns": brew_by_clock("in_turns", tick)}
    one, turns = (int(when.max()) for when, _ in runs.values())
    return runs, one / turns


def draw_clocks(runs, tick):
    figure, rows = plt.subplots(2, 1, figsize=(8, 3.2), sharex=True)
    alt = []
    for axes, (title, (when, looks)) in zip(rows, runs.items(), strict=True):
        late, lanes = [0, 0, 0], []
        for cup, (boils, steeps, ready) in enumerate(when):
            boiled, steeped = min(tick * BOIL[cup], steeps - boils), min(tick * STEEP[cup], ready - steeps)
            both = LaneBar(boils, boils + boiled, BLUE, "b"), LaneBar(steeps, steeps + steeped, BROWN, "s")
            lanes.append((f"cup {cup}", [LaneBar(boils, ready, "#d0d0d0"), *both]))
            late[cup] = (ready - boils - boiled - steeped) / (ready - boils)
        draw_lanes(axes, lanes)
        what = "polls" if title == "One by one" else "rounds"
        told = f"{title}: {when.max():,} clocks, which is {looks} {what} of {when.max() / looks:,.0f}"
        axes.set_title(told, loc="left")
        below = "the bars of the cups follow each other" if what == "polls" else "all three begin together"
        alt.append(f"{told}; {below}, and {min(late):.0%} to {max(late):.0%} of a bar is grey.")
    told = "b: boils, s: steeps, grey: that wait is over, and nobody has looked yet"
    rows[-1].set_xlabel(f"clocks; a tick is {tick:,} ({told})")
    figure.tight_layout()
    shown(figure, "\n".join([*alt, f"In the bars, {told}."]))


recorded = [agt.Trace.load_recording(name) for name in ("12_tea_one_by_one", "12_tea")]
alone, together = (trace.device_spans[0].duration for trace in recorded)

# %% id=run-clock
runs, gain = race_by_clock(tick=4_000)
draw_clocks(runs, tick=4_000)
print(f"In turns: {gain:.1f} times as fast. H200: {alone / together:.1f} times")

# %% id=clock-check tags=asserts
assert alone > 2 * together
assert not device.simulated or gain > 2

# %% [markdown] id=clock-read
# Now a single cup, with water for 5 ticks and leaves for 2. The thread polls it once, to put the water on. Then it has something else to do for 100 ticks, and when it comes back, it stands beside the cup until that's ready.

# %% id=run-alone
left_alone = agt.Kernel(CLOCKED.replace("TICK", "4000ll") + r"""
extern "C" __global__ void left_alone(long long* when)
{
    Tea tea = {{5, 0}, {2, 0}, 0, when};
    tea.poll();
    Wait something_else = {100, 0};
    block_on(something_else);
    when[3] = clock64();
    block_on(tea);
}
""", "left_alone")

# %% id=12-clock guess within=0.15
# How many ticks does it stand there? (The lines that matter are those of `Wait` and `Tea`.)

# %% id=12-clock reveal
op = left_alone(agt.zeros(4, np.int64), grid=1, block=1)
began, steeps, ready, back = op.last().to_host().sync_on(stream)
reveal("12-clock", f"{(ready - back) / 4_000:.2f}", late=(steeps - began) / 4_000)

# %% id=12-clock told truth=2.05
# The water boiled while nobody looked. But the leaves went in after {late:.0f} ticks: `steep` begins at its first poll, and who should have polled it? A wait goes on by itself, and the code behind it doesn't.

# %% [markdown] id=short-text
# ### Short waits
#
# A tick of 4,000 clocks is long beside a poll. Now let it be 100, with the three cups again.

# %% id=12-short guess within=0.15
# How many times as fast is it now to take turns? (A number, such as 3.1.)

# %% id=12-short reveal
runs, short_gain = race_by_clock(tick=100)
reveal("12-short", f"{short_gain:.2f}", lambda: draw_clocks(runs, tick=100))

# %% id=12-short told truth=0.83
# It's slower! Waits overlap, and polls don't. The water of cup 1 boils for 500 clocks, but in turns its poll comes only once in a round, and a round takes longer than that. So each wait is rounded up to whole rounds, which is the grey part. One by one, it's rounded up to polls. (In turns a poll is dearer, too: a thread keeps a single cup in registers, and an array of cups in memory.) Taking turns pays if a wait is long beside a round.

# %% id=short-check tags=asserts
assert not device.simulated or short_gain < 1

# %% [markdown] id=honest
# ## What it costs
#
# An executor that has nothing to do goes on looking, and keeps its place on the GPU all the while. A look for a message has to go past the nearest cache, too, as far as L2. Polling pays where a thread would otherwise stand and wait although it has more to do: in pipelines between blocks, and in talks with the host while the kernel runs.

# %% [markdown] id=challenge
# ## Challenge: one kettle
#
# Twelve cups, and only **one kettle**, with water for one cup at a time. Steeping needs no kettle, so cups can steep side by side. Whenever the kettle is free, the executor calls `pick` to learn whose water comes next.
#
# That's a scheduling policy, as in [chapter 5](05_scheduling.ipynb). The version below takes the cups as they come, and the last one is ready after 117 ticks (the score shows them as µs). Get below 80. `pick` returns a cup `k` for which `begun[k]` is false. Everything else is up to you.

# %% id=12-challenge starter
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    for (int k = 0; k < n; k++) {
        if (!begun[k]) return k;               // first come, first served
    }
    return -1;
}
"""

# %% id=12-challenge solution
PICK = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    int best = -1;
    for (int k = 0; k < n; k++) {
        if (!begun[k] && (best < 0 || steep[k] > steep[best])) best = k;
    }
    return best;
}
"""

# %% id=12-challenge hints
# The kettle is busy without a break in any case: the waters take as long as they take. What differs is how long the last ones still have to steep after that.
#
# Which cup would you not want to begin last?
#
# Whoever steeps longest goes first: of those that have not begun, the one with the largest `steep`.

# %% id=12-challenge explanation
# The kettle is the bottleneck, and nothing is gained there. All that you can choose is what is left to do when it goes off, so the long waits start first. 79 ticks are the least there is here. Longest boil and steep *together* takes 82, because by the time a cup begins to steep, its boiling is over. The same holds for copies and kernels on streams, as long as the kernels run side by side.

# %% id=12-challenge-check
check("12-challenge", PICK)

# %% [markdown] id=kettle-text
# Your schedule (or, until you have one, the cups as they come) in a smaller kitchen of six cups. The green line is the earliest end that any order has.

# %% id=kettle-draw tags=helpers
KITCHEN = np.array([[3, 6, 2, 5, 4, 7], [4, 9, 3, 20, 12, 26]], np.int32)
AS_THEY_COME = r"""
__device__ int pick(int n, const int* boil, const int* steep, const bool* begun)
{
    for (int k = 0; k < n; k++) if (!begun[k]) return k;
    return -1;
}
"""


def picked(text):
    """The cups in the order in which they get the kettle."""
    kernel = agt.Kernel(text + r"""
extern "C" __global__ void kitchen(int n, const int* cups, int* order)
{
    bool begun[8] = {};
    for (int turn = 0; turn < n; turn++) {
        order[turn] = pick(n, cups, cups + n, begun);
        if (order[turn] >= 0 && order[turn] < n) begun[order[turn]] = true;
    }
}
""")
    order = kernel(6, agt.h2d(KITCHEN), agt.zeros(6, np.int32), grid=1, block=1).last().to_host()
    return [int(cup) for cup in order.sync_on(stream) if 0 <= cup < 6]


def kettle(order):
    """When each of these cups begins to steep, and is ready."""
    boil, steep = KITCHEN[:, np.array(order, int)]
    return np.cumsum(boil), np.cumsum(boil) + steep


def draw_kettle(**policies):
    """Draw the schedule of each policy; one that is like an earlier one isn't drawn again."""
    best = min(kettle(order)[1].max() for order in permutations(range(6)))
    orders = {}
    for name, text in policies.items():
        orders.setdefault(tuple(picked(text)), name.replace("_", " "))
    told, size = [], (8, 0.4 + 2.4 * len(orders))
    figure, rows = plt.subplots(len(orders), 1, figsize=size, sharex=True, squeeze=False)
    for axes, (order, name) in zip(rows[:, 0], orders.items(), strict=True):
        steeps, ready = kettle(order)
        end = ready.max(initial=0)
        water, lanes = [], []
        for cup, since, until in zip(order, steeps, ready, strict=True):
            water.append(LaneBar(since - KITCHEN[0, cup], since, BLUE, str(cup)))
            lanes.append((f"cup {cup}", [LaneBar(since, until, BROWN, str(cup))]))
        draw_lanes(axes, [("kettle", water), *lanes])
        axes.axvline(best, color="#009e73", lw=2)
        axes.axvline(end, color="black", ls=":")
        axes.set_xlim(-1, 58)
        title = f"{name}: the last cup is ready after {end} ticks, and {best} are possible"
        axes.set_title(title, loc="left")
        last = order[int(ready.argmax())] if order else "none"
        told.append(f"{title}. The kettle boils water for cups {', '.join(map(str, order))}, without a "
                    f"break until tick {steeps.max(initial=0)}. Cup {last} ends last.")  # fmt: skip
    rows[-1, 0].set_xlabel("tick (blue: the kettle boils that cup's water, brown: the leaves steep)")
    figure.tight_layout()
    shown(figure, "\n".join(told))


# %% id=kettle
draw_kettle(As_they_come=AS_THEY_COME, Yours=PICK)

# %% [markdown] id=key-points
# ## Key points
#
# - A future is a struct whose `poll` goes on as far as it can and then returns. It never waits.
# - In a kernel, `await` is a poll, an `if` and a number. Whatever you need after a wait has to live in the struct.
# - A message is a value, a fence and a flag, and on the other side the flag, a fence and the value.
# - An executor is a loop that polls. A future that nobody polls stands still.
# - A join is ready when both of its futures are, and a select when one is. Both are futures themselves, so you can nest them.
# - Waits overlap and polls don't, so taking turns pays if a wait is long beside a round of polls.
#
# The words are in the [glossary](../docs/glossary.md). **Next:** in [13_hostcalls](13_hostcalls.ipynb) you write to somebody outside the GPU: Python.

# %% id=score
score("12")

# %% id=progress
progress("12")

# %% [markdown] id=encores
# ## Encores
#
# *For another day: a warp that waits, why a letter needs two fences, channels for many letters, and a door that lets one thread in.*
#
# ### Thirty-two at once
#
# So far a single thread did everything. But threads come in warps of 32, and each is a **lane** of its warp. Lanes usually go in step, but since Volta (2017) no GPU promises it. Only a function with `_sync` in its name brings them together, for that one line. Its first argument, the **mask**, has a bit for each lane that has to come. A **shuffle** is such a function: every lane gets a value from another. Here each lane leaves the loop when its own timer is ready:

# %% id=diverge
apart = TEA + r"""
extern "C" __global__ void apart(int* out)
{
    int lane = threadIdx.x, first = -1;
    Timer mine = {lane};
    Poll state = PENDING;
    while (state == PENDING) {
        state = mine.poll();
        first = __shfl_sync(0xffffffff, lane, 0);    // what lane 0 has; all 32 expected
    }
    out[lane] = first;
}
"""
with agt.using("sim"):
    try:
        agt.Kernel(apart)(agt.zeros(32, np.int32), grid=1, block=32).sync()
    except agt.errors.WarpError as error:
        print(error)
    else:
        raise AssertionError("the missing lane was not seen")

# %% [markdown] id=agree-text
# Lane 0 has gone, and lane 1 expects it in the shuffle. So where a loop has anything that the warp does together, **a warp waits together**: all lanes leave the loop in the same round. There are two ways to get there:
#
# - **Vote.** `__all_sync(mask, state == READY)` is true when it's true for all lanes. That's a join of 32 futures. (A lane that is done goes on voting, and no longer polls.)
# - **Ask one.** Lane 0 polls, and `__shfl_sync(mask, state, 0)` tells the other 31 what it has seen.
#
# Is one as good as the other? Here is a mailbox from which a message is *taken*. There's one in it, a 42, and all 32 lanes call `take` at the same time:

# %% id=take
TAKE = TEA + r"""
// mail[0]: 1 if mail[1] has a message, 2 while somebody takes it, 0 if there is none.
__device__ Poll take(unsigned int* mail, unsigned int& message)
{
    if (atomicCAS(&mail[0], 1u, 2u) != 1) return PENDING;
    __threadfence();
    message = mail[1];
    __threadfence();                           // read first, and only then ...
    atomicExch(&mail[0], 0u);                  // ... let others fill the box again
    return READY;
}
"""
everybody_takes = agt.Kernel(TAKE + r"""
extern "C" __global__ void everybody_takes(unsigned int* mail, int* got)
{
    unsigned int message = 0;
    Poll state = take(mail, message);
    got[threadIdx.x] = state == READY ? message : 0;
}
""")
mail, got = agt.h2d(np.array([1, 42], np.uint32)), agt.zeros(32, np.int32)
print(everybody_takes(mail, got, grid=1, block=32).last().to_host().sync_on(stream))

# %% [markdown] id=take-threads-text
# A compare-and-swap can't be split, even where lanes go in step. So it lets one lane through, and nobody promises which. The other 31 would wait for a message that never comes. So let one lane look, and tell the others.

# %% [markdown] id=exercise-warp
# ### Exercise: the warp learns
#
# Write `warp_take`. All lanes of a warp call it, and all get the same answer: if there was a message, each lane returns `READY` and has it in `message`. Otherwise, each returns `PENDING`. (`take` is there already. Blocks may have more than one warp.)

# %% id=12-warp starter
WARP_TAKE = r"""
__device__ Poll warp_take(unsigned int* mail, unsigned int& message)
{
    return take(mail, message);                // every lane for itself
}
"""

# %% id=12-warp solution
# - return take(mail, message);                // every lane for itself
# + unsigned int found = 0;
# + int state = PENDING;
# + if (threadIdx.x % 32 == 0) state = take(mail, found);
# + state = __shfl_sync(0xffffffff, state, 0);
# + message = __shfl_sync(0xffffffff, found, 0);
# + return (Poll)state;

# %% id=12-warp hints
# Only lane 0 of each warp may call `take`. Which lane a thread is: `threadIdx.x % 32`.
#
# There are two things to hand out, the state and the message. So there are two shuffles, and all lanes have to take part in both: they stand *behind* the `if`.
#
# `int state = PENDING; if (threadIdx.x % 32 == 0) state = take(mail, found);`, then `state = __shfl_sync(0xffffffff, state, 0);`, and the same for `found`.

# %% id=12-warp explanation
# The shuffle is a meeting as well: nobody gets the answer before lane 0 has it. But it brings lanes together, and CUDA promises nothing about memory there. If the message only says that something *else* may be read now, put a `__syncwarp()` between the shuffle and the reading. Otherwise 31 lanes read it without any fence, and our simulated device calls that a race.

# %% id=12-warp-check
check("12-warp", WARP_TAKE)

# %% [markdown] id=exercise-together
# ### Exercise: a warp waits together
#
# That was *ask one*. Now *vote*: each lane brings a future of its own. `together` polls until the futures of all 32 lanes are ready, and returns the number of rounds, which is the same for all lanes. A lane whose future is ready doesn't poll it any more, and no warp may have to wait for another warp of its block.

# %% id=12-together starter
TOGETHER = r"""
template <typename Future>
__device__ int together(Future& mine)
{
    int rounds = 0;
    Poll state = PENDING;
    while (state == PENDING) {
        state = mine.poll();
        rounds++;
    }
    return rounds;
}
"""

# %% id=12-together solution
# - while (state == PENDING) {
# - state = mine.poll();
# + bool all = false;
# + while (!all) {
# +     if (state == PENDING) state = mine.poll();
# +     all = __all_sync(0xffffffff, state == READY);

# %% id=12-together hints
# What a lane knows about itself and what the warp knows about all are two variables. The loop ends by the second one.
#
# `__all_sync(0xffffffff, state == READY)` has the same value in all lanes. All of them have to get there in each round, so it can't stand inside of an `if`.
#
# `while (!all)`: poll if `state` is still `PENDING`; then `all = __all_sync(...)`; then `rounds++`.

# %% id=12-together explanation
# It's `run_all` for 32 futures, with a lane for each instead of a loop. In the course's header it's called `warp_block_on`. All lanes take as long as the slowest, so it pays when their waits are about equally long.

# %% id=12-together-check
check("12-together", TOGETHER)

# %% [markdown] id=litmus-text
# ### Memory on a bad day
#
# Are the two fences of the letter superstition? Without them, an H200 got it wrong once in a million runs. So we asked the simulated device for a bad day, on which writes are often seen as late as the rules allow.
#
# Tiny programs that show what memory can do are called **litmus tests**. One thread writes `x`, the letter, and then `y`, the flag. Another reads `y`, and then `x`. `1 0` is the bad outcome: the flag is up, and the letter isn't there.

# %% id=litmus-draw tags=helpers
OUTCOMES = {(0, 0): ("#d0d0d0", "none yet"), (0, 1): (BLUE, "came while we looked"),
            (1, 1): ("#009e73", "a letter"), (1, 0): ("#d62728", "a flag, no letter")}  # fmt: skip


def draw_litmus(runs):
    """Each outcome's part of the runs, with a bar for each choice of fences."""
    figure, axes = plt.subplots(figsize=(8, 1 + 0.5 * len(runs)))
    alt, lanes = [], []
    for name, seen in runs.items():
        begin, total, bars = 0, sum(seen.values()), []
        for (y, x), (colour, _) in OUTCOMES.items():
            part = 100 * seen.get((y, x), 0) / total
            bars.append(LaneBar(begin, begin + part, colour, f"{y} {x}" if part > 4 else ""))
            begin += part
        lanes.append((name, bars))
        parts = [f"{seen.get((y, x), 0):,} are {y} {x}" for y, x in OUTCOMES]
        alt.append(f"With {name}, of {total:,} runs {', '.join(parts)}.")
    draw_lanes(axes, lanes)
    axes.set_xlim(0, 100)
    told = ",  ".join(f"{y} {x} {words}" for (y, x), (_, words) in OUTCOMES.items())
    axes.set_xlabel(f"% of {total:,} runs. The flag, then the letter:\n{told}", fontsize=9)
    figure.tight_layout()
    shown(figure, "\n".join([*alt, f"The flag, then the letter: {told}."]))


def draw_bad_run():
    """Draw a run that ends with `1 0`: when memory has which value, and which of them the reader sees."""
    figure, axes = plt.subplots(figsize=(8, 2.7))
    memory = [(f"{name} in memory", [LaneBar(0, since, "#d0d0d0", "0"), LaneBar(since, 8, "#66c2a5", "1")])
              for name, since in (("y", 3.4), ("x", 1))]  # fmt: skip
    draw_lanes(axes, [("sender", []), *memory, ("reader", [])])
    axes.set(xlim=(0, 8), ylim=(4, -0.5), xticks=[])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for lane in (0, 3):
        axes.hlines(lane, 0, 8, color="#d0d0d0", lw=2, zorder=0)
    did = [(0.5, 0, "x = 1"), (1.65, 0, "fence"), (2.8, 0, "y = 1")]
    did += [(4.4, 3, "y is 1"), (6.7, 3, "x is 0")]
    for at, lane, words in did:
        look = {"facecolor": "#f0e442" if words == "fence" else "white"}
        axes.text(at, lane, words, ha="center", va="center", bbox=look)
    for begin, end, colour in (((4.4, 1.36), (4.4, 2.7), "black"), ((0.6, 2.36), (6.3, 2.75), "#d62728")):
        axes.annotate("", end, begin, arrowprops={"arrowstyle": "->", "color": colour, "lw": 2})
    why = "an x from before: read early, or an old copy"
    axes.text(8, 3.7, why, ha="right", color="#d62728", fontsize=9)
    shown(figure, "A run that ends with 1 0. The sender writes x = 1, has its fence, and writes y = 1. In "
          "memory, x is 1 before y is. The reader looks at y when it's 1. Then it gets 0 for x, by a red "
          f"arrow that begins far to the left, where x was still 0: {why}.")  # fmt: skip


# %% id=run-litmus-none
none = agt.litmus("message passing", fence="none")
draw_litmus({"no fence": none.seen})

# %% [markdown] id=litmus-alone-text
# Now the sender gets its fence, between `x` and `y`. Only the reader still has none, between `y` and `x`. The device rolls the same dice again.

# %% id=12-fence guess within=0.1
# How many of the 200 runs end with `1 0` now? (Type a number.)

# %% id=12-fence reveal
one = agt.litmus("message passing", fence="device, first thread only")


def draw_one():
    draw_litmus({"no fence": none.seen, "one fence": one.seen})
    draw_bad_run()


reveal("12-fence", one.seen[1, 0], draw_one)

# %% id=12-fence told truth=24
# Not one is mended. The sender's fence puts the two writes in order, but a reader without a fence hasn't asked for any order. It may look at `x` early, or at an old copy, as in the sketch. (That's all that CUDA says. *How often* it happens is up to the device: an H100 with that fence never did it in a million runs, which is luck and not a promise.)

# %% id=litmus-check tags=asserts
assert none.seen[1, 0] == one.seen[1, 0] == 24
assert none.recorded[1, 0] == 1
assert set(one.seen) <= set(one.allowed)

# %% [markdown] id=litmus-both-text
# So both get their fences, and then `1 0` is gone for good, on an H200 as well:

# %% id=run-both
both = agt.litmus("message passing", fence="device")
# The simulated reader's fence also delays its look at x: some 0 0 become 0 1, too.
draw_litmus({"no fence": none.seen, "one fence": one.seen, "both fences": both.seen})

# %% id=fenced-check tags=asserts
assert (1, 0) not in both.seen
assert (1, 0) not in both.recorded
assert sum(both.recorded.values()) == 1_048_576

# %% [markdown] id=channel-text
# ### Many letters
#
# If many senders have many things to say to one receiver, a flag isn't enough, because two may send at the same time. The trick is to *draw a number*, as in a bakery: whoever draws it owns the place of that number. The receiver goes through the places in order, and waits for each to be full. This is a **channel** for many producers and a single consumer, or MPSC.

# %% [markdown] id=exercise-channel
# ### Exercise: send to a channel
#
# Write `send`. `*tail` is the next number, 0 at first. There's a place for every message: `values[place]` for the letter, and `full[place]` for its flag. The version below works if one thread sends, and the receiver comes tomorrow.

# %% id=12-channel starter
SEND = r"""
__device__ void send(unsigned int* tail, unsigned int* full, unsigned int* values,
                     unsigned int x)
{
    values[*tail] = x;
    full[*tail] = 1;
    *tail = *tail + 1;
}
"""

# %% id=12-channel solution
# - values[*tail] = x;
# - full[*tail] = 1;
# - *tail = *tail + 1;
# + unsigned int place = atomicAdd(tail, 1u);
# + values[place] = x;
# + __threadfence();
# + atomicExch(&full[place], 1u);

# %% id=12-channel hints
# Two senders that read `*tail` at the same time get the same place. What reads and counts in one go?
#
# `atomicAdd(tail, 1u)` returns the number that was there before, and nobody else gets it. Keep it in a variable.
#
# Each place is a oneshot of its own: the value, then a fence, then `atomicExch(&full[place], 1u)`.

# %% id=12-channel explanation
# One atomic, and the senders never meet again: each writes to its own place, in its own time. A slow one holds up the receiver, but no other sender.

# %% id=12-channel-check
check("12-channel", SEND)

# %% [markdown] id=exercise-ring
# ### Exercise: a ring of two
#
# Your channel needs a place for every message. A *ring* reuses its places, so its sender may have to wait as well. With one sender and one receiver two counters will do, `tail` for what was sent and `head` for what was received, because only one side writes each. Message `k` lies in place `k % 2`.
#
# Complete the two polls. `poll_send` is `PENDING` while there's no room, and `poll` while there's nothing to read. Both counters begin with the same number, which may be any, and go on with 0 when they're full. The version below writes over messages that nobody has read. And where are the fences?

# %% id=12-ring starter
RING = r"""
struct Ring {
    unsigned int* head;                        // how many were received
    unsigned int* tail;                        // how many were sent
    unsigned int* values;                      // two places
    __device__ Poll poll_send(unsigned int x)
    {
        unsigned int sent = atomicAdd(tail, 0u);
        values[sent % 2] = x;
        atomicExch(tail, sent + 1);
        return READY;
    }
    __device__ Poll poll(unsigned int& x)
    {
        unsigned int received = atomicAdd(head, 0u);
        if (atomicAdd(tail, 0u) == received) return PENDING;
        x = values[received % 2];
        atomicExch(head, received + 1);
        return READY;
    }
};
"""

# %% id=12-ring solution
#   unsigned int sent = atomicAdd(tail, 0u);
# + if (sent - atomicAdd(head, 0u) == 2) return PENDING;
# + __threadfence();
#   values[sent % 2] = x;
# + __threadfence();
#   if (atomicAdd(tail, 0u) == received) return PENDING;
# + __threadfence();
#   x = values[received % 2];
# + __threadfence();

# %% id=12-ring hints
# How many messages lie in the ring? As many as were sent and not received: `sent - received`. That's right even when one of the counters has begun again at 0.
#
# There's no room when two lie there: `if (sent - atomicAdd(head, 0u) == 2) return PENDING;`
#
# A ring has two letters in it, and each needs a fence on either side. `tail` says "there's a message", so the value comes before it. `head` says "this place is free", so the receiver has to be done reading before it, and the sender looks before it writes. That makes four.

# %% id=12-ring explanation
# The way back is a message as well: "you may have this place again". It's easy to forget, because its fences protect a *read* from a write that comes too early, and most programs wait for values only. (The course's header has a ring for many senders, in `device_async.cuh`.)

# %% id=12-ring-check
check("12-ring", RING)

# %% [markdown] id=door-text
# ### A door
#
# `asyncio.Lock` has a twin, too, and it's a chance to write orders without fences. `#include <cuda/atomic>` brings `cuda::atomic_ref`, an atomic view of a word, whose every access says how much it orders:
#
# | | |
# |---|---|
# | `cuda::memory_order_relaxed` | nothing |
# | `cuda::memory_order_acquire` | what stands behind a read stays behind it |
# | `cuda::memory_order_release` | what stands before a write stays before it |
# | `cuda::memory_order_acq_rel` | both, for an access that reads *and* writes |
# | `cuda::memory_order_seq_cst` | the same, and one order of all such accesses; the default, and the slowest |
#
# The **scope** is a part of the type, and says for whom: `cuda::thread_scope_block`, `thread_scope_device` or `thread_scope_system`.

# %% [markdown] id=exercise-door
# ### Exercise: a door with an order
#
# The word `door[0]` is 0 while the door is open and 1 while somebody is in. `enter` shuts an open door and says `READY`, or else it's `PENDING` and changes nothing. `leave` opens the door. Whoever is in is alone there, and finds everything as the last visitor left it. Visitors come from all blocks.
#
# Below, the order is the weakest and the scope that of a block. Choose better ones, and no more than you need: the check counts the fences that your orders stand for. And between a look and a write, somebody else may get in.

# %% id=12-door starter
DOOR = r"""
#include <cuda/atomic>
using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_block>;

__device__ Poll enter(unsigned int* door)
{
    if (Word(*door).load(cuda::memory_order_relaxed) == 1) return PENDING;
    Word(*door).store(1u, cuda::memory_order_relaxed);
    return READY;
}

__device__ void leave(unsigned int* door)
{
    Word(*door).store(0u, cuda::memory_order_relaxed);
}
"""

# %% id=12-door solution
# - using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_block>;
# + using Word = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
# - if (Word(*door).load(cuda::memory_order_relaxed) == 1) return PENDING;
# - Word(*door).store(1u, cuda::memory_order_relaxed);
# - return READY;
# + unsigned int before = Word(*door).exchange(1u, cuda::memory_order_acquire);
# + return before == 0 ? READY : PENDING;
# - Word(*door).store(0u, cuda::memory_order_relaxed);
# + Word(*door).store(0u, cuda::memory_order_release);

# %% id=12-door hints
# Look and write have to be one step: `Word(*door).exchange(1u, ...)` writes a 1 and returns what was there. Whoever gets the 0 is in.
#
# What a visitor does must not slip out of the room, neither backwards past `enter` nor forwards past `leave`. `enter` reads a message from the last visitor, and `leave` writes one to the next.
#
# `enter` needs an acquire and `leave` a release. Visitors come from all blocks of one GPU, so the scope is `cuda::thread_scope_device`.

# %% id=12-door explanation
# The names come from here: you *acquire* a lock and *release* it. A fence orders everything around it. An order belongs to one access, so a reader sees at once what it's for. And as `enter` never waits, you can put it into a future and select between that and a timer: a lock with a timeout.

# %% id=12-door-check
check("12-door", DOOR)

# %% id=score-encores
score("12")
