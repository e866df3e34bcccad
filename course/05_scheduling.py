"""Source of notebooks/05_scheduling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Scheduling: who goes where
#
# **After this page you can**
#
# - write a policy, which decides the stream of each operation, and say what it can and cannot know;
# - work out how many streams a program can use, from three numbers;
# - recognise head-of-line blocking in a timeline, and write policies against it;
# - compute the least time that a program can take, and score a schedule against it;
# - say *before* you try whether more streams will pay, and if not, what is in the way.
#
# | | |
# |---|---|
# | Time | 70 minutes |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb) and [04_combinators](04_combinators.ipynb) |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=policy
# ## One decision
#
# When you run an operation and name no stream, somebody has to choose one. That is the **policy**, and choosing is all
# it does: it has a method `next_stream()`, and each call answers *which stream is next?* If you say nothing else, it is
# `StreamPoolRoundRobin(4)`: four streams, each in its turn, like cards that are dealt out.

# %% id=policy-deals
policy = agt.StreamPoolRoundRobin(4)
policy.bind(device)  # a policy belongs to one device
numbers = [policy.next_stream().number for _ in range(10)]
print(numbers)
assert numbers[:4] == numbers[4:8]
assert len(set(numbers)) == 4

# %% [markdown] id=policy-use
# There are two ways to use one: for a single operation, `op.sync(policy)` or `op.schedule(policy)`; for a block of
# code, `with agt.using(policy=policy):`.
#
# How often is it asked? Let us count. A policy of your own is a subclass with one method:

# %% id=counting
class Counting(agt.SchedulingPolicy):
    """Has one stream for everybody, and counts."""

    def __init__(self):
        super().__init__()
        self.stream = None
        self.asked = 0

    def next_stream(self):
        self.asked += 1
        if self.stream is None:
            self.stream = self.device.create_stream()
        return self.stream


def arm(i):
    return agt.full(100, i).to_host()  # a kernel and a copy

# %% id=predict-decisions
decisions = Prediction(
    "`agt.overlap(arm(0), arm(1), arm(2))`: three kernels, three copies. How often is the policy asked?",
    one="once: it is one operation",
    four="four times: for the operation, and for each of its arms",
    six="six times: for each piece of work",
)
decisions

# %% id=predict-decisions-commit
decisions.commit(...)

# %% id=decisions-run
counting = Counting()
with agt.using(policy=counting), agt.record() as trace:
    agt.overlap(arm(0), arm(1), arm(2)).sync()
overlapped = counting.asked

counting.asked = 0
with agt.using(policy=counting):
    agt.zip(arm(0), arm(1), arm(2)).sync()
zipped = counting.asked
print(f"zip: asked {zipped} time")
assert zipped == 1
assert len(trace.device_spans) == 6

# %% id=reveal-decisions
decisions.reveal({1: "one", 4: "four", 6: "six"}[overlapped], "`zip`, with its one stream, asks once.")

# %% [markdown] id=policy-knows
# **A policy is asked once for each operation, and once more for each arm of an `overlap`.** A chain stays on the stream
# that it was given, however long it is.
#
# Mind what `next_stream` does *not* get: no arguments. It is not told which operation it is, how long it takes, or what
# it needs. A policy can remember what it did, and it can look at its streams. That is all it has to go by, unless
# somebody tells it more.

# %% [markdown] id=exercise-round-robin
# ### Exercise: round robin
#
# Write `StreamPoolRoundRobin` yourself: `size` streams, each in its turn. A policy often exists before its device is
# known. So create streams when their turn first comes: in `next_stream` there is `self.device`.

# %% id=05-round-robin starter
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def next_stream(self):
        return self.device.default_stream  # your code


# %% id=05-round-robin solution
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0

    def next_stream(self):
        turn = self.turn % self.size
        if turn == len(self.streams):
            self.streams.append(self.device.create_stream())
        self.turn += 1
        return self.streams[turn]

# %% id=05-round-robin hints
# A policy has to remember two things: its streams, and whose turn it is.
#
# In `__init__` there may be no device yet. In `next_stream` there is: `self.device.create_stream()`. Create a stream when its turn first
# comes.
#
# `turn = self.turn % self.size`; if `turn == len(self.streams)`, append a new stream; add 1 to `self.turn`; return `self.streams[turn]`.

# %% id=05-round-robin explanation
# That is all of `agt.StreamPoolRoundRobin`, but for a lock: it may be asked from several threads. The policy knows nothing about the
# operations, and that will be its weakness.

# %% id=05-round-robin-check
check("05-round-robin", RoundRobin)

# %% [markdown] id=hunt
# ## Jobs to be placed
#
# For the rest of this page we need jobs of any length, and narrow ones, so that many have room side by side. Here is a
# treasure hunt: at each place lies a slip of paper with the number of the *next* place. Nobody can speed that up, as
# each step needs the one before it. A block of 32 threads follows 32 trails.

# %% id=hunt-kernel
hunt = agt.Kernel(r"""
extern "C" __global__ void hunt(unsigned int steps, const unsigned int* next, unsigned int* place)
{
    unsigned int here = place[threadIdx.x];
    for (unsigned int s = 0; s < steps; s++) {
        here = next[here];
    }
    place[threadIdx.x] = here;
}
""")

slips = np.random.default_rng(0).permutation(4096).astype(np.uint32)
slips_there = agt.h2d(slips, "next").sync().share()
places = [agt.arange(32, np.uint32, name=f"place {i}").sync() for i in range(16)]


def hunting(i, steps):
    return hunt(int(steps), slips_there, places[i].borrow(), grid=1, block=32).named(f"job {i}")


hunting(15, 100).sync()
here = np.arange(32)
for _ in range(100):
    here = slips[here]
assert (agt.d2h(places[15].borrow()).sync() == here).all()

# %% [markdown] id=run-all
# And this is how we run a list of jobs: ask the policy for a stream, put the job there, go on to the next. It is what
# `spawn` and `await` do for you, without the event loop.

# %% id=run-all-code
def run_all(ops, policy):
    """The trace of these operations, each on the stream that the policy chooses."""

    def program():
        for op in ops:
            op.async_on(policy.next_stream())
        agt.synchronize()

    policy.bind(device)
    if not device.simulated:
        program()  # a real GPU is slow the first time
    with agt.record() as trace:
        program()
    return trace


# %% [markdown] id=lengths-text
# How long is a step? One job tells, and from then on we can order jobs by their length in microseconds.

# %% id=lengths
probe = run_all([hunting(0, 2000)], agt.SingleStream())
step_us = probe.device_spans[0].duration / 2000
print(f"a step takes {1000 * step_us:.0f} ns")


def hunts(lengths):
    """Jobs of these lengths, in µs."""
    return [hunting(i, us / step_us) for i, us in enumerate(lengths)]


# %% [markdown] id=pace
# ## How many streams?
#
# Two numbers decide, and soon a third. The **pace** is how long the host takes from one job to the next. The
# **length** is how long the device takes for one. Let us measure the pace, with jobs that are as good as nothing, and
# then make jobs that are three and a half times as long.

# %% id=pace-run
def pace_of(trace):
    starts = sorted(span.start for span in trace.device_spans)
    return (starts[-1] - starts[0]) / (len(starts) - 1)


pace = pace_of(run_all(hunts([1] * 12), agt.StreamPoolRoundRobin(4)))
length = 3.5 * pace
print(f"pace {pace:.0f} µs, length {length:.0f} µs")

# %% id=predict-pool
pool = Prediction(
    "Jobs that last 3.5 paces. From which number of streams on do more of them bring nothing?",
    two="2: one to work, one to be filled",
    four="4: then a stream is always free when a job comes",
    eight="8: one for each job",
)
pool

# %% id=predict-pool-commit
pool.commit(...)

# %% id=pool-run
by_size = {}
for size in (1, 2, 3, 4, 8):
    by_size[size] = run_all(hunts([length] * 8), agt.StreamPoolRoundRobin(size))
    print(f"pool of {size}: {by_size[size].metrics().makespan:6.0f} µs")

# %% id=reveal-pool
least = min(trace.metrics().makespan for trace in by_size.values())
enough = min(n for n, trace in by_size.items() if trace.metrics().makespan < 1.05 * least)
pool.reveal(
    "two" if enough <= 2 else "four" if enough <= 4 else "eight",
    f"With {enough} streams it takes as little as with any number, to within 5 percent.",
)

# %% id=pool-picture
agt.compare_timelines([by_size[2], by_size[4], by_size[8]], ["2 streams", "4 streams", "8 streams"])

# %% [markdown] id=pool-read
# With two streams, a job comes and both are busy: it waits behind another. With four, whenever a job comes, one stream
# has just become free. With eight the picture is the same staircase, only drawn on more lanes: **the host cannot fill
# more streams than length divided by pace.** (Each policy makes streams of its own. The device numbers all that it ever made; a picture
# numbers its lanes in the order of their first use. On a real GPU the steps of the staircase are
# less even, as Python is not always equally quick: there a job may find its stream busy now and then.)
#
# There is a second limit. A job needs room on the device. What computes there are its **SMs**, *streaming multiprocessors*; a GPU
# has many, and each has room for some blocks, no matter of which kernels. Our jobs fill next to nothing of all that. One that fills a third of it
# leaves room for two more; a fourth stream would have nothing to give. If what is left is too small for a whole job,
# some blocks of one can start there: jobs that fill two fifths of the device keep three streams busy, not two.

# %% id=pool-check
for size, trace in by_size.items():
    assert trace.metrics().max_concurrency <= size
assert by_size[2].metrics().overlap > 0
if device.simulated:
    assert enough == 4
    assert by_size[4].metrics().max_concurrency == by_size[8].metrics().max_concurrency == 4
    assert abs(by_size[8].metrics().makespan - by_size[4].metrics().makespan) < 0.02 * least
    assert by_size[1].metrics().makespan > by_size[2].metrics().makespan > least

# %% [markdown] id=exercise-pool
# ### Exercise: how many streams?
#
# Write it as a formula. Jobs last `length` µs, the host submits one every `pace` µs, and each fills the part `fills` of
# the device (0.25 is a quarter of it, and 1 is all of it). How many streams are enough for nobody to wait for a stream
# while there is room? As few as possible, an integer, and at least one.

# %% id=05-pool-size starter
def streams_needed(length, pace, fills):
    return 4  # your code


# %% id=05-pool-size solution
def streams_needed(length, pace, fills):
    at_work = min(length / pace, 1 / fills)
    return max(1, int(np.ceil(at_work)))

# %% id=05-pool-size hints
# Job `i` starts at `i * pace` and ends at `i * pace + length`. Which later job may have its stream?
#
# So `length / pace` jobs are at work at a time, if there is room. And there is room for `1 / fills` of them; a part of a job counts, as
# some of its blocks can start.
#
# The smaller of the two, rounded up: `math.ceil` is `-int(-x // 1)`, or `int(np.ceil(x))`.

# %% id=05-pool-size explanation
# As many streams as there are jobs at work at the same time. The host limits that, by its pace, and the device, by its room. More streams
# do no harm to these jobs, and no good.

# %% id=05-pool-size-check
check("05-pool-size", streams_needed)

# %% [markdown] id=unequal
# ## Unequal jobs
#
# So far all jobs were equal, and for equal jobs nothing beats taking turns. Now every fourth job is long: eight paces.
# The others are short, half a pace. Twelve jobs, four streams, round robin.

# %% id=predict-unequal
spread = Prediction(
    "Jobs 0, 4 and 8 are long. There are four streams, in turn. Where do the long ones go?",
    apart="to three different streams: that is what taking turns is for",
    same="all to the same stream",
    idle="to whichever stream is idle when they come",
)
spread

# %% id=predict-unequal-commit
spread.commit(...)

# %% id=unequal-run
LONG, SHORT = 8 * pace, 0.5 * pace
mixed = [LONG if i % 4 == 0 else SHORT for i in range(12)]
in_turn = run_all(hunts(mixed), agt.StreamPoolRoundRobin(4))
in_turn.plot(title="Every fourth job is long, round robin", lanes=("host", "streams"))

# %% id=reveal-unequal
homes = {span.stream for span in in_turn.device_spans[::4]}
assert len(homes) == 1
spread.reveal(
    "same" if len(homes) == 1 else "apart" if len(homes) == 3 else "idle",
    "The policy counts to four, and so does the program.",
)

# %% [markdown] id=misconception-round-robin
# > **Misconception: round robin shares out the work evenly.**
# >
# > - *What you see:* one stream with nearly all of the work, and the others idle.
# > - *Why:* it shares out *operations*. How long each takes, it does not know. And programs like to repeat themselves: a pattern whose
# >   period fits the size of the pool puts all long ones in one place.
# > - *What helps:* a policy that looks, or is told. Often a pool of another size is enough: four and five meet only in every
# >   twentieth job.

# %% id=misconception-round-robin-run
busy = sorted(in_turn.metrics().stream_busy.values())
print("busy time of each stream:", [f"{us:.0f} µs" for us in busy])
assert busy[-1] > 5 * busy[-2]

of_five = run_all(hunts(mixed), agt.StreamPoolRoundRobin(5))
print(f"pool of 4: {in_turn.metrics().makespan:.0f} µs, of 5: {of_five.metrics().makespan:.0f} µs")
if device.simulated:
    assert of_five.metrics().makespan < 0.8 * in_turn.metrics().makespan

# %% [markdown] id=head-of-line
# ## Head-of-line blocking
#
# A pool of five has another trouble, and it is not in the makespan, the time from start to end. Look for a short job that stands behind a long one.
# Its own work takes half a pace, and it waits for many times that, while other streams are idle. A queue is only as
# quick as what is at its head: this is called **head-of-line blocking**, and everybody who has queued in a supermarket
# knows it.
#
# In the trace it is the time from the end of the call, when the job was handed over, to its start. Which call was it?
# A span notes in `span.after` what it had to come after, by their `id`s, and its own call is one of them.

# %% id=head-of-line-run
def waited(trace):
    """For each job, how long it lay in its queue, in µs."""
    handed_over = {span.id: span.end for span in trace if span.kind == "call"}
    waits = []
    for span in trace.device_spans:
        (call,) = [i for i in span.after if i in handed_over]
        waits.append(max(0.0, span.start - handed_over[call]))
    return waits


for name, trace in [("pool of 4", in_turn), ("pool of 5", of_five)]:
    short = [wait for wait, us in zip(waited(trace), mixed) if us == SHORT]
    print(f"{name}: the short jobs waited for {max(short):.0f} µs at most")

longest_wait = max(short)
jobs = of_five.device_spans
for first, behind in [(0, 5), (4, 9)]:  # a long job, and a short one behind it
    assert jobs[first].stream == jobs[behind].stream
    assert jobs[behind].start >= jobs[first].end
if device.simulated:
    assert longest_wait > 5 * SHORT
    assert of_five.metrics().max_concurrency < 5  # there was always an idle stream

of_five.plot(title="Round robin over five", lanes=("host", "streams"))

# %% [markdown] id=looking
# ## A policy that looks
#
# A policy may look at its streams: `stream.done` says whether a stream has nothing left to do. (It is a question to the
# device, and not for nothing.) So: take an idle stream, if there is one; else take turns.

# %% id=idle-first
class IdleFirst(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        for stream in self.streams:
            if stream.done:
                return stream
        self.turn += 1
        return self.streams[self.turn % self.size]


looking = run_all(hunts(mixed), IdleFirst(4))
looking.plot(title="An idle stream first", lanes=("host", "streams"))

# %% id=idle-first-check
short = [wait for wait, us in zip(waited(looking), mixed) if us == SHORT]
long = [wait for wait, us in zip(waited(looking), mixed) if us == LONG]
print(f"the short jobs waited for {max(short):.0f} µs at most")
print(f"makespan {looking.metrics().makespan:.0f} µs, before {in_turn.metrics().makespan:.0f} µs")
if device.simulated:
    assert max(long) < pace
    assert looking.metrics().makespan < 0.8 * in_turn.metrics().makespan
    assert max(short) < longest_wait

# %% [markdown] id=idle-first-read
# That helps both: no long job queues behind another, and no short one has to stand behind them. But what if all streams
# are busy? Then this policy is round robin again. To choose well among busy streams one has to know *how* busy they are.

# %% [markdown] id=bound
# ## How good is good?
#
# "Quicker than before" is no measure. Can we say what the best possible schedule would take? At least we can say what
# *no* schedule can beat:
#
# - **The longest chain.** Work of which each piece needs the one before it takes its time, on any number of streams.
#   It is called the **critical path**. Our jobs do not need each other, so here it is simply the longest
#   job.
# - **The work, shared out.** `size` streams cannot do more than `size` µs of work in a µs.
#
# The larger of the two is a **lower bound**. A schedule's **score** is the bound divided by what it took: 1 cannot be
# beaten, and 0.5 means that it took twice as long as it might have. (What it took is the `device_makespan`: from the first start on
# the device to the last end there, without the calls before and the wait behind.)

# %% id=score-function
def lower_bound(lengths, size):
    return max(*lengths, sum(lengths) / size)


def scored(trace, lengths, size):
    return lower_bound(lengths, size) / trace.metrics().device_makespan


# %% [markdown] id=busy-text
# Three streams, and jobs long enough for all three to be busy all the time: every third one takes eight paces, the
# others one and a half.

# %% id=busy-run
heavy = [8 * pace if i % 3 == 0 else 1.5 * pace for i in range(9)]
worst = run_all(hunts(heavy), agt.StreamPoolRoundRobin(3))
better = run_all(hunts(heavy), IdleFirst(3))
for name, trace in [("round robin", worst), ("idle first", better)]:
    print(f"{name:12} score {scored(trace, heavy, 3):.2f}")
if device.simulated:
    assert scored(worst, heavy, 3) < 0.5

# %% id=busy-picture
path = [step.span.label for step in worst.metrics().critical_path if step.span.on_device]
print("on the path to the end, on the device:", ", ".join(path))
worst.plot(
    title="Round robin: what the end had to wait for",
    lanes=("host", "streams"),
    highlight="critical path",
)

# %% [markdown] id=busy-read
# What stands out is the chain that *this run's* end had to wait for: three long jobs, one behind the other. (A bar bears
# the name of its kernel. Jobs 0, 3 and 6 are the three in the upper stream.) They do not
# need each other. It was the policy that made a chain of them. **If what is on the path is there only because of a
# queue, another schedule can do better.** If each piece needs the one before it, none can.

# %% id=busy-check
assert len({span.stream for span in worst.device_spans[::3]}) == 1
if device.simulated:
    assert path == ["job 0", "job 3", "job 6"]

# %% [markdown] id=exercise-least
# ### Exercise: least loaded
#
# Now write a policy that is told. Before each operation somebody calls `policy.expect(us)`: the next one will take
# about so long. Send each job to the stream that has been given the least work so far. The check uses several mixes of
# jobs, and asks for at least nine tenths of the score that is possible with this idea. (It runs on a simulated device
# with very slow memory, so that long jobs are quickly simulated.)

# %% id=05-least-loaded starter
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        self.turn += 1
        return self.streams[self.turn % self.size]  # your code


# %% id=05-least-loaded solution
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.load = [0.0] * size
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        i = self.load.index(min(self.load))
        self.load[i] += self.us
        return self.streams[i]

# %% id=05-least-loaded hints
# Keep a sum for each stream: how much it was given so far, in µs.
#
# The next job goes to the stream with the smallest sum, and adds its own length to it.
#
# `i = self.load.index(min(self.load))`, `self.load[i] += self.us`, and return the stream `i`.

# %% id=05-least-loaded explanation
# A job never goes behind more work than it must. It is known that this greedy rule takes less than twice the best time, whatever the jobs
# (Graham, 1966). It has to be told how long they take, though.

# %% id=05-least-loaded-check
check("05-least-loaded", LeastLoaded)

# %% [markdown] id=board-text
# How does yours do on the jobs above? It is on the board:

# %% id=board
def told(ops, lengths, policy):
    """As `run_all`, and the policy is told each length beforehand."""
    policy.bind(device)
    with agt.record() as trace:
        for op, us in zip(ops, lengths):
            policy.expect(us)
            op.async_on(policy.next_stream())
        agt.synchronize()
    return trace


yours = told(hunts(heavy), heavy, LeastLoaded(3))
for name, trace in [("round robin", worst), ("idle first", better), ("yours", yours)]:
    points = scored(trace, heavy, 3)
    print(f"{name:12} {points:5.2f} {'#' * round(40 * points)}")
yours.plot(title="Yours", lanes=("streams",))

# %% [markdown] id=order-text
# ## The order in which you ask
#
# There is a decision that no policy makes: in which *order* operations are submitted. That is up to your program, and a
# stream never changes it: what is put in first comes out first. Here are the same nine jobs once more, on the same
# three streams, with the same round robin. Only now the three long ones are submitted first.

# %% id=predict-order
order = Prediction(
    f"Round robin scored {scored(worst, heavy, 3):.2f} on these jobs. And with the long ones first?",
    same="about the same: it is the same work, and the same policy",
    better="clearly better",
    worse="clearly worse: the short ones have to wait for all the long ones",
)
order

# %% id=predict-order-commit
order.commit(...)

# %% id=order-run
longest_first = run_all(hunts(sorted(heavy, reverse=True)), agt.StreamPoolRoundRobin(3))
longest_first.plot(title="The same jobs, the longest first", lanes=("streams",))

# %% id=reveal-order
before, after = scored(worst, heavy, 3), scored(longest_first, heavy, 3)
order.reveal(
    "better" if after > 1.15 * before else "worse" if after < 0.85 * before else "same",
    f"The score is {after:.2f}.",
)

# %% [markdown] id=order-read
# Three long jobs, three streams: each gets one, and the short ones fill up what is left at the ends. It is how one
# packs a car: the suitcases first, then the shoes. If you know all jobs beforehand, sort them. With the longest first,
# the greedy rule of the last exercise never takes more than a third longer than the best schedule there is (Graham,
# 1969).
#
# It has a price, and you have just seen it: the short jobs come last. If each of them is a user who waits, you want
# something else.

# %% id=order-check
assert len({span.stream for span in longest_first.device_spans[:3]}) == 3
if device.simulated:
    assert after > 1.3 * before

# %% [markdown] id=exercise-express
# ### Exercise: express lanes
#
# The makespan is not everything. A short request that has to wait for a long one is a user who waits. In a supermarket
# there is a counter for those with few things. Write a policy like that: jobs that are expected to take more than
# `limit` µs all go to one stream; the others take turns on the remaining `size - 1`. Then no short job ever stands
# behind a long one.

# %% id=05-express starter
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        self.turn += 1
        return self.streams[self.turn % self.size]  # your code


# %% id=05-express solution
class Express(agt.SchedulingPolicy):
    def __init__(self, size, limit):
        super().__init__()
        self.size = size
        self.limit = limit
        self.streams = []
        self.turn = 0
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        if self.us > self.limit:
            return self.streams[-1]
        self.turn += 1
        return self.streams[self.turn % (self.size - 1)]

# %% id=05-express hints
# Two cases: is `self.us` larger than `self.limit`?
#
# One stream, say the last, is for the long ones. The short ones take turns on the others.
#
# For a long one: `self.streams[-1]`. For a short one: `self.streams[self.turn % (self.size - 1)]`, and `self.turn += 1`.

# %% id=05-express explanation
# The long jobs now take longer, one behind the other, and nobody behind a short one has to care. It is the rule of the supermarket: what
# is best for the whole is not best for the one with a bottle of milk.

# %% id=05-express-check
check("05-express", Express)

# %% [markdown] id=dependent
# ## Jobs that need each other
#
# So far each job stood alone, and the longest one was the critical path. Usually jobs need each other. Say: prepare
# (four paces), then three branches (one, two, and six paces), then combine (two paces). Whatever you do, *prepare, the
# longest branch, combine* come one after the other: twelve paces. That is the critical path of this program, before it has
# run even once.

# %% id=dependent-run
def project():
    def branches(_):
        return agt.overlap(hunting(1, steps(1)), hunting(2, steps(2)), hunting(3, steps(6)))

    return hunting(0, steps(4)).and_then(branches).and_then(lambda _: hunting(4, steps(2)))


def steps(paces):
    return paces * pace / step_us


finished = {}
for size in (1, 2, 4):
    with agt.using(policy=agt.StreamPoolRoundRobin(size)):
        if not device.simulated:
            project().sync()
        with agt.record() as finished[size]:
            project().sync()
    took = finished[size].metrics().device_makespan
    print(f"pool of {size}: {took / pace:4.1f} paces, score {12 * pace / took:.2f}")

# %% id=dependent-picture
path = [step.span for step in finished[4].metrics().critical_path if step.span.on_device]
print("on the path, in paces:", [f"{span.duration / pace:.1f}" for span in path])
finished[4].plot(
    title="Fork and join, four streams", lanes=("host", "streams"), highlight="critical path"
)

# %% [markdown] id=dependent-read
# On one stream all fifteen paces lie end to end. With more streams the branches lie side by side, and what is left is
# the path: prepare, the longest branch, combine. **When the path that the run took is the path that the program
# prescribes, you are done.** To get below it, you have to change the program: cut the longest branch.

# %% id=dependent-check
assert len(finished[1].streams) == 1
assert len({span.stream for span in finished[4].device_spans[1:4]}) == 3  # the branches
if device.simulated:
    assert finished[1].metrics().device_makespan > 14.5 * pace
    assert [round(span.duration / pace) for span in path] == [4, 6, 2]
    assert 12 * pace / finished[4].metrics().device_makespan > 0.8

# %% [markdown] id=cannot
# ## When overlap cannot pay
#
# All policies above have one thing in common: they can only use what is idle. Sometimes nothing is. Here are four
# programs of eight jobs each.
#
# | program | its jobs |
# |---|---|
# | hunts | our narrow jobs, three paces each |
# | full | `relu` in blocks of a single thread, 80,000 of them: silly, but no SM has room for more |
# | uploads | 4 MB each, from pinned memory |
# | tiny | `relu` on 64 numbers |

# %% id=cannot-programs
source = agt.pin(np.ones(1_000_000, np.float32))
larges = [agt.zeros(80_000, name=f"large {i}").sync() for i in range(8)]
smalls = [agt.zeros(64, name=f"small {i}").sync() for i in range(8)]


def relu_on(array, threads):
    blocks = array.borrow().partition(threads)
    return agt.relu(array.size, blocks, blocks)


programs = {
    "hunts": hunts([3 * pace] * 8),
    "full": [relu_on(array, 1) for array in larges],
    "uploads": [agt.h2d(source, "x") for _ in range(8)],
    "tiny": [relu_on(array, 64) for array in smalls],
}

# %% id=predict-cannot
who_gains = Prediction(
    "Each program on one stream, and on four. Which are done in less than two thirds of the time?",
    all="all four: four streams do more at a time than one",
    two="`hunts` and `uploads`: their jobs are long",
    hunts="only `hunts`",
)
who_gains

# %% id=predict-cannot-commit
who_gains.commit(...)

# %% id=cannot-run
runs = {}
for name, ops in programs.items():
    runs[name] = [run_all(ops, agt.SingleStream()), run_all(ops, agt.StreamPoolRoundRobin(4))]
    one, four = (trace.metrics().makespan for trace in runs[name])
    print(f"{name:8} one stream {one:6.0f} µs, four streams {four:6.0f} µs: {one / four:.2f} times as soon")

# %% id=reveal-cannot
def gain(name):
    one, four = runs[name]
    return one.metrics().makespan / four.metrics().makespan


winners = [name for name in runs if gain(name) > 1.5]
who_gains.reveal(
    "all" if len(winners) == 4 else "two" if "uploads" in winners else "hunts",
    f"Clearly sooner on four streams: {', '.join(winners)}.",
)

# %% [markdown] id=misconception-size
# > **Misconception: on several streams, kernels run at the same time.**
# >
# > - *What you see:* bars on four lanes, and still one after the other: only their ends overlap. Next to nothing is gained.
# > - *Why:* a kernel takes as many SMs as its blocks need. A device that is full has no place for a block of another one. That waits, and
# >   begins when the last blocks of the first are under way.
# > - *What helps:* nothing, and nothing is wrong. The device is busy: that is what you have paid for.

# %% id=full-picture
agt.compare_timelines(runs["full"], ["full: one stream", "full: four streams"], lanes=("streams", "engines"))

# %% id=full-check
one, four = runs["full"]
if device.simulated:
    assert gain("full") < 1.1
    assert all(span.detail["fills"] == 1 for span in one.find("relu"))
    assert 0 < four.metrics().overlap_fraction < 0.15
    assert four.metrics().max_concurrency == 2
    assert all(span.waited_for_room > 0 for span in four.find("relu")[1:])
print(f"the gain: {gain('full'):.2f}")

# %% [markdown] id=uploads-text
# The uploads: four streams, and one engine for all of them.

# %% id=uploads-picture
agt.compare_timelines(
    runs["uploads"], ["uploads: one stream", "uploads: four streams"], lanes=("streams", "engines")
)

# %% [markdown] id=tiny-text
# And the tiny ones: look at the host. It is busy all the time (in the gaps between its calls, with the Python around them);
# the device is idle most of the time, on one stream as on four.

# %% id=tiny-picture
agt.compare_timelines(runs["tiny"], ["tiny: one stream", "tiny: four streams"])

# %% id=cannot-check
for trace in runs["tiny"]:
    assert trace.metrics().device_active < 0.5 * trace.metrics().makespan
if device.simulated:
    assert winners == ["hunts"]
    assert gain("uploads") < 1.1
    assert gain("tiny") < 1.1
    four = runs["uploads"][1].metrics()
    assert four.engine_busy[device.name, "h2d"] > 0.85 * four.makespan

# %% [markdown] id=three-walls
# Three walls, then: **the SMs, an engine, the host**. And a fourth from above, the **longest chain**. Each can be read
# from a trace on *one* stream, before any effort is made:
#
# | wall | in the trace |
# |---|---|
# | the host | `m.host["call"]`: it has to make all its calls |
# | each copy engine | `m.engine_busy`: a dict with a time for each engine that was used, such as `("sim:0", "h2d")` |
# | the SMs | for each kernel its duration, times the part of the device that it fills, all added up |
# | the longest job | the work of each operation (`span.op` is its number), added up, and of those the largest |
#
# (`m` is `trace.metrics()`. The kernels count as an engine, too, `"compute"`. That is busy as soon as one small kernel
# runs, so it is no wall. The simulated device notes in `span.detail["fills"]` which part of the device a kernel
# fills. A GPU does not say, so there one looks at the grid: an H200 has room for 132 times 32 blocks and 132 times 2048
# threads, at most.)

# %% [markdown] id=exercise-pays
# ### Exercise: how far down can it go?
#
# Given the trace of a program on one stream, return the least time, in µs, that any number of streams could bring it
# to: the highest of the walls. (The check uses a simulated device, also if yours is a GPU. So take the names of the
# engines from the trace.)

# %% id=05-when-it-pays starter
def best_possible(trace):
    m = trace.metrics()
    return m.host["call"]  # your code


# %% id=05-when-it-pays solution
def best_possible(trace):
    m = trace.metrics()
    walls = [m.host["call"]]
    walls += [busy for (_, engine), busy in m.engine_busy.items() if engine != "compute"]
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    walls.append(sum(span.duration * span.detail["fills"] for span in kernels))
    jobs = {}
    for span in trace.device_spans:
        jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
    return max(walls + list(jobs.values()))

# %% id=05-when-it-pays hints
# Five numbers, each a time that cannot be cut by more streams. The largest of them wins.
#
# `m = trace.metrics()` has `m.host['call']` and `m.engine_busy`. Kernels side by side share the SMs: each needs `span.duration *
# span.detail['fills']` of them.
#
# For the longest job, add up the durations of the device spans of each `span.op`. Then `max(host, up, down, kernels, longest)`.

# %% id=05-when-it-pays explanation
# Whatever a policy does, the host makes its calls, each engine does its copies, the SMs have their work, and a job is a chain. Compare
# with what one stream takes: if the bound is close, do not bother with streams.

# %% id=05-when-it-pays-check
check("05-when-it-pays", best_possible)

# %% [markdown] id=verdict-text
# Here are the walls of the four programs, next to what four streams made of them. Where the bound is close to what
# *one* stream takes, there was nothing to gain from the start.

# %% id=verdict
ROOM_FOR_BLOCKS, ROOM_FOR_THREADS = 132 * 32, 132 * 2048  # of an H200
h200 = agt.SimDevice(spec="h200").spec
assert (h200.sms * h200.blocks_per_sm, h200.sms * h200.threads_per_sm) == (
    ROOM_FOR_BLOCKS,
    ROOM_FOR_THREADS,
)


def fills(span):
    blocks, threads = np.prod(span.detail["grid"]), np.prod(span.detail["block"])
    by_grid = max(blocks / ROOM_FOR_BLOCKS, blocks * threads / ROOM_FOR_THREADS)
    return span.detail.get("fills", min(1.0, by_grid))


def walls(trace):
    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    copies = {engine: busy for (_, engine), busy in m.engine_busy.items() if engine != "compute"}
    return {
        "host": m.host["call"],
        **copies,
        "SMs": sum(span.duration * fills(span) for span in kernels),
        "longest job": max(span.duration for span in trace.device_spans),  # one piece of work each
    }


print("program   one stream     bound  four streams   the highest wall")
highest = {}
for name, (one, four) in runs.items():
    heights = walls(one)
    highest[name] = max(heights, key=heights.get)
    bound = heights[highest[name]]
    took = [trace.metrics().makespan for trace in (one, four)]
    print(f"{name:8} {took[0]:9.0f} µs {bound:6.0f} µs {took[1]:9.0f} µs   {highest[name]}")
    if device.simulated:
        assert bound <= took[1] <= took[0] * 1.05

# %% id=verdict-check
if device.simulated:
    assert [highest[name] for name in ("full", "uploads", "tiny")] == ["SMs", "h2d", "host"]
    room = {name: one.metrics().makespan / max(walls(one).values()) for name, (one, _) in runs.items()}
    assert max(room, key=room.get) == "hunts"
    assert room["hunts"] > 2

# %% [markdown] id=verdict-read
# Only the hunts have much room between what one stream takes and the bound. (The tiny ones have less than it looks, on a real
# GPU most of all: between its calls the host is busy as well, with all that Python does around them.)
#
# What helps against each wall is no policy. Against the **host**: fewer and larger operations, or a recorded graph of
# them, which a later page is about. Against an **engine**: copy less, or in both directions at once. Against the
# **SMs**: a better kernel. Against the **longest job**: cut it. And where no wall is near, there are streams.

# %% [markdown] id=key-points
# ## Key points
#
# - A **policy** decides one thing, the stream of the next operation, with `next_stream()`. It is asked once for each
#   operation and each arm of an `overlap`, and told nothing.
# - **Enough streams**: length divided by pace, or as many as the device has room for, whichever is less.
# - Round robin shares out operations, not work. With unequal jobs there is **head-of-line blocking**; look at the
#   streams, or tell the policy what to expect.
# - Score a schedule against a **lower bound**: the longest chain, or the work shared out. A critical path that is
#   made of queues can be made shorter.
# - Overlap fills what is idle. If the **host**, an **engine** or the **SMs** are busy all the time, there is nothing
#   to fill, and a trace on one stream tells you so.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so
# in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [06_await.ipynb](06_await.ipynb): so far Python called `agt.synchronize()` and stood still. There it gets
# something better to do.

# %% id=score
score(decisions, pool, spread, order, who_gains)

# %% id=progress
progress("05")
