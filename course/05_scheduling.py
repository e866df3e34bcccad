"""Source of notebooks/05_scheduling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Scheduling: who goes where
#
# Twelve jobs wait for the device, and somebody has to say which queue each of them joins. **How well can that be done, and how would you know?**
#
# After this page you can write a policy, work out how many streams a program can use, see in a timeline what waits for what for no reason, score a schedule against the best there could be, and say
# *before* you try whether more streams will pay.
#
# | | |
# |---|---|
# | Time | 70 minutes |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb) and [04_combinators](04_combinators.ipynb) |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Four checkouts
#
# Twelve jobs are waiting for the device, like customers in a supermarket. Most have a bottle of milk. Every fourth has a full trolley. With *one* checkout open, that is with one stream, it takes as long as you would
# fear. Now we open four. **How much sooner are they all done, and who decides which queue each of them joins?**
#
# First we need jobs of any length we like, and narrow ones, so that many have room on the device. Ours are treasure hunts: at each place lies a slip of paper with the number of the
# *next* place. Nobody can hurry that, as each step needs the one before it. A block of 32 threads follows 32 trails.
# The slips send you all over the place, so each step takes about as long as any other.

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

slips = np.random.default_rng(0).permutation(1 << 15).astype(np.uint32)
slips_there = agt.h2d(slips, "next").sync().share()
places = [agt.arange(32, np.uint32, name=f"place {i}").sync() for i in range(16)]


def hunting(i, steps):
    return hunt(int(steps), slips_there, places[i].borrow(), grid=1, block=32).named(f"job {i}")


# %% [markdown] id=run-all
# This is how a list of jobs is run: ask somebody for a stream, put the job there, go on to the next. `sync`, `await` and `spawn` do just that.

# %% id=run-all-code
def run_all(ops, policy, lengths=()):
    """The trace of these operations, each on the stream that the policy chooses."""

    def program():
        for i, op in enumerate(ops):
            if hasattr(policy, "expect"):  # some of our policies want to know the length
                policy.expect(lengths[i])
            op.async_on(policy.next_stream())
        agt.synchronize()

    policy.bind(device)  # its streams will be on this device
    if not device.simulated:
        program()  # the first time is slow on a real GPU
    with agt.record() as trace:
        program()
    return trace


# %% [markdown] id=pace-text
# Two measurements, and we can make jobs to order. How long is a step? And what is the **pace** of the host: how long does Python need from one job to the next? (Each program has a pace of its own.)

# %% id=pace-run
one_job = run_all([hunting(0, 2000)], agt.SingleStream())
step_us = one_job.device_spans[0].duration / 2000


def hunts(lengths):
    """Jobs of these lengths, in µs."""
    return [hunting(i, us / step_us) for i, us in enumerate(lengths)]


starts = [span.start for span in run_all(hunts([1] * 12), agt.SingleStream()).device_spans]
pace = (max(starts) - min(starts)) / 11
LONG, SHORT = 8 * pace, 0.5 * pace
mixed = [LONG if i % 4 == 0 else SHORT for i in range(12)]  # every fourth is long

alone = run_all(hunts(mixed), agt.SingleStream()).metrics().makespan
print(f"a step takes {1000 * step_us:.0f} ns, and the pace is {pace:.0f} µs")
print(f"all twelve on one stream: {alone:.0f} µs")

# %% id=predict-mixed
opening = Prediction(
    f"On one stream the twelve take {alone:.0f} µs. And on four streams, each job on the next one in turn?",
    quarter=f"about {alone / 4:.0f} µs",
    third=f"about {alone / 3:.0f} µs",
    half=f"about {alone / 2:.0f} µs",
    hardly=f"more than {0.75 * alone:.0f} µs",
)
opening

# %% id=predict-mixed-commit
opening.commit(...)

# %% id=mixed-run
in_turn = run_all(hunts(mixed), agt.StreamPoolRoundRobin(4))
in_turn.plot(
    title="Every fourth job is long; four streams, in turn",
    lanes=("host", "streams"),
    lesson="All three long jobs are on one stream, one after the other. The others are nearly idle.",
)

# %% id=reveal-mixed
ratio = in_turn.metrics().makespan / alone
opening.reveal(
    "quarter" if ratio < 0.29 else "third" if ratio < 0.41 else "half" if ratio < 0.75 else "hardly",
    f"It takes {in_turn.metrics().makespan:.0f} µs: jobs 0, 4 and 8 are the long ones.",
)

# %% [markdown] id=misconception-round-robin
# > **Misconception: to take turns is to share out the work.**
# >
# > - *What you see:* one stream with nearly all of the work, and the others idle.
# > - *Why:* taking turns shares out *jobs*. It knows nothing of their lengths. And programs like to repeat themselves: here the program counts to four, and so does the pool.
# > - *What helps:* that is what the rest of this page is about. The same jobs, on the same device, can be done in about half of that time.

# %% id=mixed-check tags=asserts
assert len({span.stream for span in in_turn.device_spans[::4]}) == 1
busy = sorted(in_turn.metrics().stream_busy.values())
if device.simulated:
    assert busy[-1] > 5 * busy[-2]
    assert 0.75 < ratio < 0.95

# %% [markdown] id=policy
# ## Who decides
#
# Whoever names no stream leaves the choice to a **policy**. It has one method, `next_stream()`, and each call answers one question: *which stream is next?* Whoever runs an operation begins with that question, before it looks inside. The usual policy is
# `StreamPoolRoundRobin(4)`: four streams, in turn.
#
# To write your own, subclass `agt.SchedulingPolicy` and write that one method. This one has a single stream, and counts how often it is asked.

# %% id=counting
class Counting(agt.SchedulingPolicy):
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
    **{
        "1": "it is one operation",
        "3": "for each arm",
        "4": "for the operation, and for each arm",
        "6": "for each piece of work",
    },
)
decisions

# %% id=predict-decisions-commit
decisions.commit(...)

# %% id=decisions-run
counting = Counting()
with agt.using(policy=counting):
    agt.overlap(arm(0), arm(1), arm(2)).sync()

decisions.reveal(str(counting.asked), "The operation asks, and each of its arms.")

# %% [markdown] id=policy-knows
# A chain stays on the stream that it was given, however long it is; so does a `zip`. Only `overlap` asks for more. Its arms fork from the operation's own stream and join there again. That stream is empty here. In a chain it would carry what comes before and after the `overlap`.
#
# And look at what `next_stream` is *not* told: which operation it is, or how long it will take. A policy can remember what it did and look at its streams, and that is all.

# %% id=decisions-check tags=asserts
assert counting.asked == 4
counting.asked = 0
with agt.using(policy=counting):
    agt.zip(arm(0), arm(1), arm(2)).sync()
assert counting.asked == 1

# %% [markdown] id=exercise-round-robin
# ### Exercise: round robin
#
# Write `StreamPoolRoundRobin` yourself: `size` streams, each in its turn. A policy often exists before its device is
# known. So do not make streams in `__init__`. Make each when its turn first comes: in `next_stream` there is `self.device`.

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
# In `__init__` there may be no device yet. In `next_stream` there is: `self.device.create_stream()`. Make a stream when its turn first
# comes.
#
# `turn = self.turn % self.size`; if `turn == len(self.streams)`, append a new stream; add 1 to `self.turn`; return `self.streams[turn]`.

# %% id=05-round-robin explanation
# That is all that `agt.StreamPoolRoundRobin` does, apart from a lock, since several threads may ask it. You have just seen its weakness: it knows nothing about the
# jobs.

# %% id=05-round-robin-check
check("05-round-robin", RoundRobin)

# %% [markdown] id=five
# ## One more checkout
#
# Counting to four was the trouble, so let us count to five.

# %% id=five-run
of_five = run_all(hunts(mixed), agt.StreamPoolRoundRobin(5))
of_five.plot(
    title="The same jobs, five streams in turn",
    lanes=("host", "streams"),
    lesson="The long jobs are on three streams. Two short jobs stand behind long ones.",
)

# %% [markdown] id=five-read
# Much better. But look at the streams with a long job: a short one stands *behind* it. Its own work takes half a pace, and it waits for several, while other streams have nothing to do. It is called **head-of-line blocking**.
#
# How long do the short jobs wait? A span knows what it had to come after (`span.after`), and its own call is part of that.

# %% id=waited
def waits_of_short_jobs(trace):
    """For each short job, for how long it lay in its queue, in µs."""
    handed_over = {span.id: span.end for span in trace if span.kind == "call"}
    waits = []
    for span in trace.device_spans:
        (call,) = [i for i in span.after if i in handed_over]  # the call that launched it
        waits.append(max(0.0, span.start - handed_over[call]))
    return [wait for wait, us in zip(waits, mixed) if us == SHORT]


def report(name, trace):
    longest = max(waits_of_short_jobs(trace))
    print(f"{name:12} {trace.metrics().makespan:4.0f} µs; a short job waits {longest:3.0f} µs at most")


report("pool of four", in_turn)
report("pool of five", of_five)

# %% id=five-check tags=asserts
jobs = of_five.device_spans
for first, behind in [(0, 5), (4, 9)]:  # a long job, and a short one behind it
    assert jobs[first].stream == jobs[behind].stream
    assert jobs[behind].start >= jobs[first].end
if device.simulated:
    assert of_five.metrics().makespan < 0.75 * in_turn.metrics().makespan
    assert max(waits_of_short_jobs(of_five)) > 2 * pace
    assert of_five.metrics().max_concurrency < 5  # there was always an idle stream

# %% [markdown] id=looking
# ### A policy that looks
#
# A policy can look: `stream.done` says whether a stream has nothing left to do.

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
        return self.streams[self.turn % self.size]  # all are busy: take turns


# %% id=predict-looking
sooner = Prediction(
    f"The pool of five, in turn, took {of_five.metrics().makespan:.0f} µs. "
    "What will four streams take, if the policy looks for an idle one?",
    less="less: nobody stands behind a long job any more",
    same="the same",
    more="more",
)
sooner

# %% id=predict-looking-commit
sooner.commit(...)

# %% id=looking-run
looking = run_all(hunts(mixed), IdleFirst(4))
report("pool of four", in_turn)
report("pool of five", of_five)
report("idle first", looking)
looking.plot(
    title="An idle stream first",
    lanes=("host", "streams"),
    lesson="No job stands behind a long one, but the host needs longer from job to job.",
)

# %% id=reveal-looking
change = looking.metrics().makespan - of_five.metrics().makespan
sooner.reveal(
    "same" if abs(change) < 2 else "more" if change > 0 else "less",
    f"The difference is {abs(change):.0f} µs.",
)

# %% [markdown] id=idle-first-read
# No short job waits any more, and with only four streams. But all in all it takes a little *longer* than the pool of five did. Why? Look at the host. `stream.done` is a question to the device, and a question takes time:
# this policy asks up to four of them before each job. So each job comes a little later. When was job 8, the last long one, handed over?

# %% id=job-8
def handed_over(trace, number):
    call = [span for span in trace if span.kind == "call" and "launch" in span.name][number]
    return call.end - trace.spans[0].start


for name, trace in [("pool of five", of_five), ("idle first", looking)]:
    print(f"{name:12} job 8 comes at {handed_over(trace, 8):.0f} µs, and takes {LONG:.0f} µs")

# %% [markdown] id=job-8-read
# The program cannot end before that job has come and gone. So the pool of five is already as quick as this program can be, in this order; round robin on five happened to avoid the long job, and the other one avoids it always, but pays for asking. In another order both could be quicker.

# %% id=idle-first-check tags=asserts
if device.simulated:
    assert len({span.stream for span in looking.device_spans[::4]}) > 1
    assert max(waits_of_short_jobs(looking)) < max(waits_of_short_jobs(of_five))
    assert handed_over(looking, 8) > handed_over(of_five, 8)
    assert of_five.metrics().makespan < looking.metrics().makespan < 0.8 * in_turn.metrics().makespan
    assert abs(handed_over(of_five, 8) + LONG - of_five.metrics().makespan) < 0.5 * pace

# %% [markdown] id=how-many
# ## How many streams?
#
# Now eight jobs that are all alike. Each lasts for three and a half paces: while it runs, Python hands out three and a half more.

# %% id=predict-pool
pool = Prediction(
    "Eight jobs of 3.5 paces each, taking turns on 1, 2, 3, 4, ... streams. "
    "How many streams are enough? Type a number."
)
pool

# %% id=predict-pool-commit
pool.commit(...)

# %% id=pool-run
by_size = {}
for size in (1, 2, 3, 4, 5, 8):
    by_size[size] = run_all(hunts([3.5 * pace] * 8), agt.StreamPoolRoundRobin(size))
    print(f"pool of {size}: {by_size[size].metrics().makespan:4.0f} µs")

# %% id=reveal-pool
least = min(trace.metrics().makespan for trace in by_size.values())
enough = min(n for n, trace in by_size.items() if trace.metrics().makespan < 1.05 * least)
pool.reveal(enough, f"Within 5 percent of the best with {enough} streams.")

# %% id=pool-picture
agt.compare_timelines(
    [by_size[2], by_size[4], by_size[8]],
    ["2 streams", "4 streams", "8 streams"],
    lesson="On two streams, jobs wait for each other. On four they form a staircase, on eight the same one.",
)

# %% [markdown] id=pool-read
# On two streams, a job comes and finds both busy. On four, one has just become free whenever a job comes. On eight the picture is the same staircase, drawn on more lanes: **Python cannot fill more streams than length
# divided by pace.**

# %% id=pool-check tags=asserts
for size, trace in by_size.items():
    assert trace.metrics().max_concurrency <= size
if device.simulated:
    assert enough == 4
    assert by_size[4].metrics().max_concurrency == by_size[8].metrics().max_concurrency == 4
    assert abs(by_size[8].metrics().makespan - by_size[4].metrics().makespan) < 0.02 * least

# %% [markdown] id=explore-text
# Is that a law? `agt.explore` runs a program for each value of its parameters, on a simulated device. Below are eight jobs again. Each of these needs an array of its own, so the pace of this program is about 40 µs. Move the sliders. For each length, how many streams are enough?

# %% id=explore-run
STEP = 0.162  # µs, on the simulated H200


def eight_jobs(streams, length):
    pool = [agt.create_stream() for _ in range(streams)]
    table = agt.h2d(agt.pin(slips)).sync_on(pool[0]).share()
    for i in range(8):
        job = hunt(int(length / STEP), table, agt.arange(32, np.uint32), grid=1, block=32)
        job.async_on(pool[i % streams])
    agt.synchronize()


explored = agt.explore(eight_jobs, streams=(1, 2, 3, 4, 6, 8), length=(30, 70, 130, 270))
explored

# %% [markdown] id=explore-read
# Each curve falls until it is flat. For jobs of 30 µs it is flat from the start, for 70 from 2 streams on, for 130 from 4, and for 270 somewhere after 6: always `length / pace`, rounded up. From there on the device has streams to spare, and Python cannot fill them.
#
# There is a second limit: *room*. What computes on a GPU are its **SMs**, *streaming multiprocessors*, and each has places for a certain number of blocks. Our hunts have a single block each, so there is room for all of them. A job that fills a third of
# the device leaves room for two more like it, and no more: a fourth stream would have nowhere to put its job.

# %% id=explore-check tags=asserts
for length, enough_here in {30: 1, 70: 2, 130: 4, 270: 8}.items():
    took = {streams: explored.makespans[streams, length] for streams in (1, 2, 3, 4, 6, 8)}
    assert min(n for n in took if took[n] < 1.02 * min(took.values())) == enough_here
    begun = [span.start for span in explored[8, length].find("hunt")]
    assert 38 < (begun[-1] - begun[0]) / 7 < 42

# %% [markdown] id=exercise-pool
# ### Exercise: how many streams?
#
# Write it as a formula. Jobs last `length` µs, Python submits one every `pace` µs, and the device has room for `room` of them at a time. How many streams are enough, so that no job waits for a stream while the device has
# room? As few as possible, an integer, and at least one.

# %% id=05-pool-size starter
def streams_needed(length, pace, room):
    return 4  # your code


# %% id=05-pool-size solution
def streams_needed(length, pace, room):
    at_work = int(np.ceil(length / pace))
    return max(1, min(at_work, room))

# %% id=05-pool-size hints
# Job `i` starts at `i * pace` and ends at `i * pace + length`. Which later job may have its stream?
#
# So `length / pace` jobs are at work at a time, rounded up, if there is room for so many.
#
# The smaller of `ceil(length / pace)` and `room`. (`math.ceil(x)` is `-int(-x // 1)`, or `int(np.ceil(x))`.)

# %% id=05-pool-size explanation
# As many streams as there can be jobs at work. Python limits that by its pace, and the device by its room. More streams do no harm, and no good.

# %% id=05-pool-size-check
check("05-pool-size", streams_needed)

# %% [markdown] id=bound
# ## How good is good?
#
# "Quicker than before" is no measure. What would the best possible schedule take? We can at least say what *no* schedule beats:
#
# - **the longest chain**: what must be done one after the other takes its time on any number of streams. Our jobs do not need each other, so here it is the longest job;
# - **the work, shared out**: `size` streams cannot do more than `size` µs of work in a µs.
#
# The larger of the two is a **lower bound**. A schedule's **score** is the bound divided by what it took. 1 cannot be beaten, and 0.5 means: twice as long as it might have. (What it took is the `device_makespan`: from the first
# start on the device to the last end there.)

# %% id=score-function
def scored(trace, lengths, size):
    bound = max(*lengths, sum(lengths) / size)
    return bound / trace.metrics().device_makespan


# %% [markdown] id=busy-text
# Three streams, and enough work for all three: every third job has ten paces, the others have two.

# %% id=busy-run
heavy = [10 * pace if i % 3 == 0 else 2 * pace for i in range(9)]
worst = run_all(hunts(heavy), agt.StreamPoolRoundRobin(3))
better = run_all(hunts(heavy), IdleFirst(3))
print(f"round robin  {scored(worst, heavy, 3):.2f}")
print(f"idle first   {scored(better, heavy, 3):.2f}")
worst.plot(
    title="Round robin: what the end had to wait for",
    lanes=("host", "streams"),
    highlight="critical path",
    lesson="The path to the end goes through three long jobs in a row on one stream.",
)

# %% [markdown] id=busy-read
# What stands out is the chain that the end of *this run* had to wait for, its **critical path**: three long jobs in a row. In the last chapters such chains were made of pieces that need each other. These do not. It was the policy that made a chain of them. **If what is on the path is there only because of a queue, another schedule
# can do better.** If each piece needs the one before it, none can.
#
# `IdleFirst` does better, and is not good: when all streams are busy, it takes turns again. To choose well among busy queues you need to know how *full* the trolleys are.

# %% id=busy-check tags=asserts
assert len({span.stream for span in worst.device_spans[::3]}) == 1
if device.simulated:
    path = [step.span.label for step in worst.metrics().critical_path if step.span.on_device]
    assert path == ["job 0", "job 3", "job 6"]
    assert scored(worst, heavy, 3) < 0.5 < scored(better, heavy, 3) < 0.65

# %% [markdown] id=exercise-least
# ### Exercise: least loaded
#
# Now write a policy that is told. Before each job somebody calls `policy.expect(us)`: the next one will take
# about so long. Send each job to the stream that has been given the least work so far. The check uses several mixes of
# jobs, and asks for at least nine tenths of the score that is possible with this idea.

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
# One way: no job goes behind more work than it must. It is known that this greedy rule takes less than twice the best time, whatever the jobs
# (Graham, 1966). But somebody has to tell it how long they take.

# %% id=05-least-loaded-check
check("05-least-loaded", LeastLoaded)

# %% [markdown] id=board-text
# How does yours do on the jobs above? It is on the board. (Until you write it, that is the starter.)

# %% id=board
yours = run_all(hunts(heavy), LeastLoaded(3), heavy)
for name, trace in [("round robin", worst), ("idle first", better), ("yours", yours)]:
    points = scored(trace, heavy, 3)
    print(f"{name:12} {points:5.2f} {'#' * round(40 * points)}")

# %% [markdown] id=order-text
# ## A decision that no policy makes
#
# In which *order* do the jobs come? That is up to your program. Here are the same nine jobs, on the same three streams, with the plain round robin that scored worst. Only now the three long ones come first.

# %% id=predict-order
order = Prediction(
    f"Round robin scored {scored(worst, heavy, 3):.2f} here. And if the long ones come first?",
    **{
        "0.4": "about 0.4: the short ones have to wait now",
        "0.5": "about 0.5: it is the same work, and the same policy",
        "0.6": "about 0.6: a little better",
        "0.8": "more than 0.7: that changes everything",
    },
)
order

# %% id=predict-order-commit
order.commit(...)

# %% id=order-run
longest_first = run_all(hunts(sorted(heavy, reverse=True)), agt.StreamPoolRoundRobin(3))
longest_first.plot(
    title="The same jobs, the longest first",
    lanes=("host", "streams"),
    lesson="Each stream has one long job, and the short ones fill up what is left behind them.",
)

# %% id=reveal-order
after = scored(longest_first, heavy, 3)
order.reveal(
    "0.4" if after < 0.44 else "0.5" if after < 0.55 else "0.6" if after < 0.7 else "0.8",
    f"It scores {after:.2f}.",
)

# %% [markdown] id=order-read
# Each stream gets one long job, and the short ones fill up the ends. If you know all jobs beforehand, sort them. With the longest first,
# even the greedy rule of the last exercise never takes more than a third longer than the best schedule there is (Graham, 1969).
#
# It has a price: the short ones come last. If each of them is a user who waits, you want something else.

# %% id=order-check tags=asserts
assert len({span.stream for span in longest_first.device_spans[:3]}) == 3
if device.simulated:
    assert 0.7 < after < 0.95

# %% [markdown] id=exercise-express
# ### Exercise: express lanes
#
# Supermarkets have a checkout for people with few things. Write a policy like that: jobs that are expected to take *more than*
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
# The long jobs stand one behind the other now, and the last of them ends later. But short jobs never notice. What is best for all together is not best for everybody.

# %% id=05-express-check
check("05-express", Express)

# %% [markdown] id=cannot
# ## Four programs
#
# Policies can only use what is idle. Here are four programs of eight jobs each.
#
# | program | its jobs |
# |---|---|
# | hunts | our narrow jobs, three paces each |
# | full | `relu` on 80,000 numbers, in blocks of a single thread: silly, but it needs every place on the device |
# | uploads | 4 MB each, from pinned memory; the device has one copy engine for each direction |
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
    "Each program on one stream, and on four. Which are at least one and a half times faster on four?",
    all="all four",
    three="all but `full`",
    two="`hunts` and `uploads`, which have long jobs",
    hunts="only `hunts`",
)
who_gains

# %% id=predict-cannot-commit
who_gains.commit(...)

# %% id=cannot-run
runs = {}
for name, ops in programs.items():
    runs[name] = [run_all(ops, policy) for policy in (agt.SingleStream(), agt.StreamPoolRoundRobin(4))]
    one, four = (trace.metrics().makespan for trace in runs[name])
    print(f"{name:8} one stream {one:4.0f} µs, four {four:4.0f} µs: {one / four:.1f} times faster")

# %% id=reveal-cannot
def gain(name):
    one, four = runs[name]
    return one.metrics().makespan / four.metrics().makespan


best = max(runs, key=gain)
winners = [name for name in runs if gain(name) > 1.5 or name == best]
who_gains.reveal(
    {1: "hunts", 2: "two", 3: "three", 4: "all"}[len(winners)], f"Clearly faster: {', '.join(winners)}."
)

# %% [markdown] id=misconception-size
# > **Misconception: on several streams, kernels run at the same time.**
# >
# > - *What you see:* bars on four lanes, and still one after the other; only their ends overlap.
# > - *Why:* a device that is full has no place for a block of another kernel. That kernel waits for room (the thin hatched part), and begins when the last blocks of the one before are under way.
# > - *What helps:* nothing, and nothing is wrong. The device is busy: that is what you paid for.

# %% id=full-picture
agt.compare_timelines(
    [*runs["full"], runs["uploads"][1]],
    ["full: one stream", "full: four streams", "uploads: four streams"],
    lesson="On four streams full kernels still run one after the other, and so do copies in one direction.",
)

# %% [markdown] id=tiny-text
# The uploads have four streams, and one engine for all of them. And the tiny ones? Look at the host:

# %% id=tiny-picture
agt.compare_timelines(
    runs["tiny"],
    ["tiny: one stream", "tiny: four streams"],
    lesson="The host is always busy, and the device is idle most of the time, on one stream as on four.",
)

# %% id=cannot-check tags=asserts
if device.simulated:
    for trace in runs["tiny"]:
        assert trace.metrics().device_active < 0.5 * trace.metrics().makespan
    assert winners == ["hunts"]
    assert max(gain("full"), gain("uploads"), gain("tiny")) < 1.1
    one, four = runs["full"]
    assert all(span.detail["fills"] == 1 for span in one.find("relu"))
    assert 0 < four.metrics().overlap_fraction < 0.15
    assert all(span.waited_for_room > 0 for span in four.find("relu")[1:])
    uploads = runs["uploads"][1].metrics()
    assert uploads.engine_busy[device.name, "h2d"] > 0.85 * uploads.makespan

# %% [markdown] id=walls
# ### Walls
#
# So there are five walls that no number of streams gets through. You can measure all of them in a trace on *one* stream, before you make any effort:
#
# | wall | in the trace |
# |---|---|
# | the host | `m.host["call"]`: it has to make all its calls |
# | each copy engine: two | `m.engine_busy`: a dict with a time for each engine, such as `("sim:0", "h2d")` |
# | the SMs | for each kernel, its duration times the part of the device that it fills, `span.detail["fills"]`; all added up |
# | the longest job | for each operation (`span.op` is its number), all its work added up; the largest of these sums |
#
# (`m` is `trace.metrics()`. It has a third engine, `"compute"`, which is busy as soon as one small kernel runs. That is no wall. Only the simulated device notes what a kernel fills.)
#
# Against each wall there is something that helps, and it is never a policy. Against the **host**: fewer and larger operations, or a graph ([chapter 09](09_cuda_graphs.ipynb)). Against an **engine**: copy less, or in both directions at once. Against the
# **SMs**: a better kernel. Against the **longest job**: cut it. And where no wall is near, there are streams.

# %% [markdown] id=exercise-pays
# ### Exercise: how far down can it go?
#
# Given the trace of a program on one stream, return the least time, in µs, that any number of streams could bring it
# to: the highest of the walls. Take them one by one; the starter has the first. (The check uses a simulated device, also if yours is a GPU. So take the names of the
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
# Five numbers, each a time that more streams cannot shorten. The largest of them wins.
#
# `m = trace.metrics()` has `m.host['call']` and `m.engine_busy`. Kernels side by side share the SMs: each needs `span.duration *
# span.detail['fills']` of them.
#
# For the longest job, add up the durations of the device spans of each `span.op`. Then `max(host, up, down, kernels, longest)`.

# %% id=05-when-it-pays explanation
# Compare this bound with what one stream takes. If they are close, do not bother with streams.

# %% id=05-when-it-pays-check
check("05-when-it-pays", best_possible)

# %% [markdown] id=challenge
# ## Challenge: close the shop early
#
# Twelve jobs once more, and every fourth is long. On four streams in turn, this takes 803 µs: get below 430.
#
# `jobs` is a list of pairs: an operation, and how many µs it will take. Write `run_jobs(jobs)`, which runs each of them once. What you ask, how many streams you open, and in which order you go: all is up to you.


# %% id=05-challenge starter
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(4)]
    for i, (op, _) in enumerate(jobs):
        op.async_on(streams[i % 4])


# %% id=05-challenge solution
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(4)]
    longest_first = sorted(jobs, key=lambda job: -job[1])
    for i, (op, _) in enumerate(longest_first):
        op.async_on(streams[i % 4])

# %% id=05-challenge hints
# Which wall is the highest? Three long jobs on three streams would be over after 258 µs, and Python needs 21 µs for each of the twelve.
#
# No policy can help as long as the last long job comes ninth. You are the one who decides on the order.
#
# `sorted(jobs, key=lambda job: -job[1])` puts the longest first. Then take turns.

# %% id=05-challenge explanation
# In the course's answer the longest jobs are the wall: the third of them starts when Python has made three calls, and is over 258 µs later. To get much lower you would have to cut it.

# %% id=05-challenge-check
check("05-challenge", run_jobs)

# %% [markdown] id=key-points
# ## Key points
#
# - A **policy** decides one thing, the stream of the next operation, with `next_stream()`. It is asked once for each
#   operation, and once for each arm of an `overlap`. It is told nothing.
# - **Enough streams**: length divided by pace, or as many jobs as the device has room for, whichever is less.
# - Taking turns shares out jobs, not work. Unequal jobs make **head-of-line blocking**: look at the streams, or tell the policy what to expect. Looking has a price.
# - Score a schedule against a **lower bound**. If a critical path is made of queues, there is something to gain.
# - The order is yours. The longest first is good for all together, and an express lane is good for those in a hurry.
# - Overlap fills what is idle. If the **host**, an **engine** or the **SMs** are busy all the time, there is nothing
#   to fill, and a trace on one stream tells you so.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so
# in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [06_await.ipynb](06_await.ipynb). So far Python called `agt.synchronize()` and stood still. There it gets
# something better to do.

# %% id=score
score(opening, decisions, sooner, pool, order, who_gains)

# %% id=progress
progress("05")
