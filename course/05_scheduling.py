"""Source of notebooks/05_scheduling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Scheduling: who goes where
#
# Twelve jobs are waiting for the device, and somebody has to decide which queue each one joins. Decide badly, and you get the supermarket on a Saturday: four checkouts open, and you in the wrong line.
#
# **How well can it be done, and how would you know?**
#
# After this page you can write a policy, score a schedule against the best there could be, and say *before* you try whether more streams will pay.
#
# | | |
# |---|---|
# | Time | an hour with the challenge, and 10 minutes more for the encores |
# | You need | [02_streams_and_events](02_streams_and_events.ipynb) and [04_combinators](04_combinators.ipynb) |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution

device = agt.use("auto")
device

# %% [markdown] id=question
# ## Four checkouts
#
# Jobs that are all alike are easy. On an H200, four such kernels take 571 µs on one stream, and 230 if four streams take turns:

# %% id=pool-on-a-gpu
recordings = "05_scheduling_single", "05_scheduling"
h200 = [agt.Trace.load_recording(name).from_first() for name in recordings]
agt.compare_timelines(
    h200,
    ["One stream, H200", "Four streams, H200"],
    lanes=("host", "streams"),
    lesson="Four alike, in a row and side by side. "
    "A staircase, because Python starts one after the other.",
)

# %% [markdown] id=checkouts
# But most of our twelve jobs are customers with a bottle of milk, and every fourth has a full trolley. A checkout is a stream, and we open four. **How much sooner is everybody done?**
#
# We need jobs of any length, and narrow ones, so that the device has room for many at once. Ours are treasure hunts. At each place lies a slip of paper with the number of the *next* place, so nobody can take a step before finishing the one before. A job is one block of 32 threads on 32 trails.

# %% id=hunt-kernel
HUNT = r"""
extern "C" __global__ void hunt(
    unsigned int steps, const unsigned int* next, unsigned int* place)
{
    unsigned int here = threadIdx.x;
    for (unsigned int s = 0; s < steps; s++) {
        here = next[here];
    }
    place[threadIdx.x] = here;
}
"""

# %% [markdown] id=run-all
# Two tools are folded away. `hunts(lengths)` makes a job for each length in µs. `run_all(ops, policy)` asks somebody for a stream, puts the job there, goes on to the next, and returns the trace.
#
# There we also measure the **pace** of the host: the time that Python needs from one job to the next.

# %% id=run-all-code tags=helpers
slips = np.random.default_rng(0).permutation(1 << 15).astype(np.uint32)
slips_there = agt.h2d(slips, "next").sync().share()
places = [agt.empty(32, np.uint32, name=f"place {i}").sync() for i in range(16)]
kernels = [agt.Kernel(HUNT.replace("hunt", f"job{i}")) for i in range(16)]  # so each bar has its name


def hunting(i, steps):
    return kernels[i](int(steps), slips_there, places[i].borrow(), grid=1, block=32)


def hunts(lengths):
    """Jobs of these lengths, in µs."""
    return [hunting(i, us / step_us) for i, us in enumerate(lengths)]


def run_all(ops, policy, lengths=()):
    """Run each operation on the stream that the policy chooses, and return the trace."""

    def program():
        for i, op in enumerate(ops):
            if hasattr(policy, "expect"):  # some policies want to know the length
                policy.expect(lengths[i])
            op.async_on(policy.next_stream())
        agt.synchronize()

    policy.bind(device)  # its streams will be on this device
    if not device.simulated:
        program()  # the first time is slow on a real GPU
    with agt.record() as trace:
        program()
    return trace


one_job = run_all([hunting(0, 2000)], agt.SingleStream())
step_us = one_job.device_spans[0].duration / 2000

starts = [span.start for span in run_all(hunts([1] * 12), agt.SingleStream()).device_spans]
pace = (max(starts) - min(starts)) / 11

# %% id=pace-run
LONG, SHORT = 8 * pace, 0.5 * pace
mixed = [LONG if i % 4 == 0 else SHORT for i in range(12)]  # every fourth is long
alone = run_all(hunts(mixed), agt.SingleStream()).metrics().makespan

print(f"the pace is {pace:.0f} µs")
print(f"a long job takes {LONG:.0f} µs, and a short one {SHORT:.0f}")
print(f"on one stream, the twelve take {alone:.0f} µs")

# %% id=05-opening guess within=0.1
# How many µs do the twelve take on four streams that take turns?

# %% id=05-opening reveal
in_turn = run_all(hunts(mixed), agt.StreamPoolRoundRobin(4))
title = "Every fourth job is long; four streams, in turn"
picture = in_turn.plot(title=title, lanes=("host", "streams"))
reveal("05-opening", f"{in_turn.metrics().makespan:.0f}", picture)

# %% id=05-opening lesson
# All three long jobs are in one queue, one after the other. The other streams are nearly idle.

# %% id=05-opening told truth=525
# > **Misconception: if the streams take turns, they share the work evenly.**
# >
# > - *What you see:* one stream with nearly all of the work, while the others are idle.
# > - *Why:* taking turns shares out *jobs*, and doesn't care how long they are. Here the program counts to four, and so does the pool, so every full trolley ends up in the same queue.
# > - *What helps:* the rest of this page.

# %% id=mixed-check tags=asserts
assert [round(trace.metrics().makespan) for trace in h200] == [571, 230]
assert [round(span.duration) for trace in h200 for span in trace.device_spans] == [139, 138, 138, 138] * 2
assert len({span.stream for span in in_turn.device_spans[::4]}) == 1
busy = sorted(in_turn.metrics().stream_busy.values())
if device.simulated:
    best = run_all(hunts(sorted(mixed, reverse=True)), agt.StreamPoolRoundRobin(4))
    assert 0.4 < best.metrics().makespan / in_turn.metrics().makespan < 0.55  # about half the time
    assert busy[-1] > 5 * busy[-2]
    assert 0.75 < in_turn.metrics().makespan / alone < 0.95

# %% [markdown] id=policy
# ## Who decides
#
# If you don't name a stream, a **policy** chooses one for you. It has a single method, `next_stream()`. The usual policy is `StreamPoolRoundRobin(4)`: four streams that take turns.
#
# To write your own, subclass `agt.SchedulingPolicy` and write that one method. This policy has a single stream, which it makes when it's first asked, because there may be no device before that. And it counts how often somebody asks.

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


# %% id=05-decisions guess
# An operation asks the policy when it's run, and so does each arm of an `overlap`. We run `agt.overlap(agt.zip(arm(0), arm(1)), agt.overlap(arm(2), arm(3)))`. How often is the policy asked? Type a number.

# %% id=05-decisions reveal
counting = Counting()
with agt.using(policy=counting):
    agt.overlap(agt.zip(arm(0), arm(1)), agt.overlap(arm(2), arm(3))).sync()

reveal("05-decisions", counting.asked)

# %% id=05-decisions told truth=5
# The whole asks once, its two arms ask, and so do the two arms of the inner `overlap`. An operation asks before anybody looks inside it, so a chain stays on the stream it was given, and so does a `zip`. Only `overlap` asks for more: its arms fork from the operation's own stream and join there again.

# %% id=decisions-check tags=asserts
assert counting.asked == 5
counting.asked = 0
with agt.using(policy=counting):
    agt.zip(arm(0), arm(1), arm(2)).sync()
assert counting.asked == 1

# %% [markdown] id=five
# ## One more checkout, or one fewer
#
# Nobody tells `next_stream` which operation it's for, or how long that will take. A policy can remember what it did and look at its streams, and that's all. So let's count to another number than four.

# %% [markdown] id=exercise-round-robin
# ### Exercise: round robin
#
# Write the pool yourself: `size` streams that take turns. As in `Counting`, make them in `next_stream`.

# %% id=05-round-robin starter
class RoundRobin(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []

    def next_stream(self):
        return self.device.default_stream  # your code


# %% id=05-round-robin solution
#   self.streams = []
# + self.turn = -1
# - return self.device.default_stream  # your code
# + if len(self.streams) < self.size:
# +     self.streams.append(self.device.create_stream())
# + self.turn += 1
# + return self.streams[self.turn % self.size]

# %% id=05-round-robin hints
# A policy has to remember two things: its streams, and whose turn it is.
#
# In `__init__` there may be no device yet. In `next_stream` there is one, so call `self.device.create_stream()` there.
#
# Let `self.turn` begin at -1. In `next_stream`, append a new stream if there are fewer than `self.size`, add 1 to `self.turn`, and return `self.streams[self.turn % self.size]`.

# %% id=05-round-robin explanation
# `agt.StreamPoolRoundRobin` does just that, plus a lock, because several threads may ask it at once. And you've already seen its weakness: it knows nothing about the jobs.

# %% id=05-round-robin-check
check("05-round-robin", RoundRobin)

# %% [markdown] id=five-opens
# Try it on the twelve jobs. (Until yours is accepted, you see ours.)

# %% id=five-pool
from asyncgpu_course import solved

Pool = solved("05-round-robin", RoundRobin)
print(f"on four streams that take turns: {in_turn.metrics().makespan:.0f} µs")

# %% id=05-counted guess within=0.1
# And how many µs do the same twelve take on three?

# %% id=05-counted reveal
of_three, of_five = (run_all(hunts(mixed), Pool(size)) for size in (3, 5))
names = ["Three streams in turn", "Five streams in turn"]
picture = agt.compare_timelines([of_three, of_five], names, lanes=("host", "streams"))
three, five = (trace.metrics().makespan for trace in (of_three, of_five))
reveal("05-counted", f"{three:.0f}", picture, five=five)

# %% id=05-counted lesson
# On three streams and on five, no two long jobs share a stream. Short ones wait behind them.

# %% id=05-counted told truth=371
# **Three checkouts beat four.** Five need {five:.0f} µs. The long jobs come four apart, and pools of three and five don't keep step with that, so no long job waits for another. But the last of them is the ninth job, and the eight calls before it take Python as long as a long job takes: look when `job8` begins.

# %% [markdown] id=milk
# ### A bottle of milk
#
# When is everybody done? That's one way to look at a pool. How long do the short jobs wait? That's another.

# %% id=waited tags=helpers
def waits_of_short_jobs(trace):
    """Return for how long each short job lay in its queue, in µs."""
    handed_over = {span.id: span.end for span in trace if span.kind == "call"}
    waits = []
    for span in trace.device_spans:  # span.after: what came before, such as the call for it
        (call,) = [i for i in span.after if i in handed_over]
        waits.append(max(0.0, span.start - handed_over[call]))
    return [wait for wait, us in zip(waits, mixed) if us == SHORT]


# %% id=waited-run
for size, trace in ((3, of_three), (4, in_turn), (5, of_five)):
    longest = max(waits_of_short_jobs(trace))
    print(f"pool of {size}: a short job waits {longest:.0f} µs at most")

# %% [markdown] id=waited-read
# A short job's own work takes half a pace. But if it stands right *behind* a long one, it waits for several, although other streams have nothing to do. This is called **head-of-line blocking**. You know it as *but I only have a bottle of milk*.

# %% id=five-check tags=asserts
jobs = of_five.device_spans
for first, behind in [(0, 5), (4, 9)]:  # a long job, and a short one behind it
    assert jobs[first].stream == jobs[behind].stream
    assert jobs[behind].start >= jobs[first].end
for trace in (of_three, of_five):
    assert len({span.stream for span in trace.device_spans[::4]}) == 3  # no two long jobs share one
if device.simulated:
    assert of_five.metrics().makespan < 0.75 * in_turn.metrics().makespan
    assert of_five.metrics().makespan < of_three.metrics().makespan < 390
    assert max(waits_of_short_jobs(of_five)) > 2 * pace
    assert of_five.metrics().max_concurrency < 5  # there was always an idle stream

# %% [markdown] id=bound
# ## How good is good?
#
# "Quicker than before" tells you little. How quick could the best schedule be? Two things *no* schedule can beat:
#
# - **The longest chain.** Steps that have to happen one after the other take their time on any number of streams. Our jobs don't need each other, so here that's the longest job.
# - **The work, shared out.** In one microsecond, `size` streams can do at most `size` microseconds of work.
#
# The larger of the two is a **lower bound**. A schedule's **score** is that bound divided by the time that the device took, from the first start to the last end. A score of 1 can't be beaten, and 0.5 means that it took twice as long as it might have.

# %% id=score-function
def lower_bound(lengths, size):
    return max(*lengths, sum(lengths) / size)


def scored(trace, lengths, size):
    took = trace.metrics().device_makespan  # from the first start to the last end
    return lower_bound(lengths, size) / took


# %% id=with-bound tags=helpers
def with_bound(trace, lengths, size):
    """The trace, with the bound on a lane of its own."""
    us, first = lower_bound(lengths, size), trace.device_spans[0].start
    return trace.with_lane("bound", [(first, first + us, f"lower bound: {us:.0f} µs")])


# %% [markdown] id=busy-text
# Let's take three streams. Every third job takes ten paces, the others two.

# %% id=busy-run
heavy = [10 * pace if i % 3 == 0 else 2 * pace for i in range(9)]
worst = run_all(hunts(heavy), agt.StreamPoolRoundRobin(3))
print(f"round robin scores {scored(worst, heavy, 3):.2f}")
with_bound(worst, heavy, 3).plot(
    title="Round robin: what the end had to wait for",
    lanes=("host", "streams"),
    highlight="critical path",
    lesson="The path to the end goes through three long jobs on one stream, "
    "far beyond the lower bound.",
)

# %% [markdown] id=busy-read
# The picture highlights the **critical path**, the chain of things that the end of *this run* had to wait for. It's three long jobs in a row. They don't need each other, so it was the policy that made a chain of them. **If two jobs are on the critical path only because they share a queue, another schedule may do better.**
#
# To choose among busy queues, a policy would have to know how *full* the trolleys are.

# %% id=busy-check tags=asserts
assert len({span.stream for span in worst.device_spans[::3]}) == 1
if device.simulated:
    path = [step.span.name for step in worst.metrics().critical_path if step.span.on_device]
    assert path == ["job0", "job3", "job6"]
    assert scored(worst, heavy, 3) < 0.5

# %% [markdown] id=exercise-least
# ### Exercise: least loaded
#
# So let's tell it. If a policy has a method `expect`, `run_all` calls `policy.expect(us)` before each job, with its length. Send each job to the stream that has been given the least work so far. The check wants at least nine tenths of the score that this idea can reach.

# %% id=05-least-loaded starter
class LeastLoaded(agt.SchedulingPolicy):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.streams = []
        self.us = 0.0

    def expect(self, us):
        self.us = us

    def next_stream(self):
        if not self.streams:
            self.streams = [self.device.create_stream() for _ in range(self.size)]
        return self.streams[0]  # your code


# %% id=05-least-loaded solution
#   self.streams = []
# + self.load = [0.0] * size
# - return self.streams[0]  # your code
# + i = self.load.index(min(self.load))
# + self.load[i] += self.us
# + return self.streams[i]

# %% id=05-least-loaded hints
# Keep a sum for each stream: how much work it has been given so far, in µs.
#
# The next job goes to the stream with the smallest sum, and adds its own length to it.
#
# `i = self.load.index(min(self.load))`, `self.load[i] += self.us`, and return stream `i`.

# %% id=05-least-loaded explanation
# This rule looks at what each stream was *given*, which isn't what it has *left*: if jobs arrive slowly, one may queue although another stream is idle. If it took no time to hand jobs over, you'd never need more than twice the best possible time, whatever the jobs are, as Ronald Graham proved in 1966. But somebody has to tell it how long they take.

# %% id=05-least-loaded-check
check("05-least-loaded", LeastLoaded)

# %% [markdown] id=board-text
# How does yours do on the jobs above?

# %% id=board
def race(runs):
    for name, trace in runs.items():
        points = scored(trace, heavy, 3)
        print(f"{name:13} {'#' * round(40 * points):40}| {points:.2f}")


Mine = solved("05-least-loaded", LeastLoaded)
yours = run_all(hunts(heavy), Mine(3), heavy)
race({"round robin": worst, "yours": yours})

# %% [markdown] id=order-text
# ## A decision that no policy makes
#
# Your program decides in which *order* the jobs arrive. Here are the same nine, with round robin again, but the long ones come first.

# %% id=order-code
by_length = sorted(range(9), key=lambda i: -heavy[i])  # 0, 3 and 6, and then the others
ops = hunts(heavy)
sorted_ops = [ops[i] for i in by_length]

# %% id=05-order guess within=0.05
# What does round robin score with `sorted_ops`?

# %% id=05-order reveal
longest_first = run_all(sorted_ops, agt.StreamPoolRoundRobin(3))
bounded = with_bound(longest_first, heavy, 3)
picture = bounded.plot(title="The same jobs, the longest first", lanes=("host", "streams"))
after = scored(longest_first, heavy, 3)
took, us = longest_first.metrics().device_makespan, longest_first.metrics().makespan
reveal("05-order", f"{after:.2f}", picture, bound=lower_bound(heavy, 3), took=took, us=us)

# %% id=05-order lesson
# Each stream has one long job, and the short ones come behind. The end is near the bound.

# %% id=05-order told truth=0.86
# The bound is {bound:.0f} µs, and the device took {took:.0f}. (The axis goes on to {us:.0f}, because it begins with Python's first call.) Python is to blame for what's above the bound: the third stream gets its first job two paces late.

# %% [markdown] id=both-text
# ### Both at once
#
# Now your policy gets the jobs in this order. Does it do any better?

# %% id=race
both = run_all(sorted_ops, Mine(3), [heavy[i] for i in by_length])
race({"round robin": worst, "yours": yours})
race({"longest first": longest_first, "both": both})

# %% [markdown] id=race-read
# It can't beat round robin here. With either policy, each stream gets one long job and two short ones. So if you know your jobs in advance, sort them.
#
# But now everybody with a bottle of milk comes last.

# %% id=order-check tags=asserts
assert len({span.stream for span in longest_first.device_spans[:3]}) == 3
if device.simulated:
    assert 0.7 < after < 0.95
    greedy = run_all(sorted_ops, solved("05-least-loaded")(3), [heavy[i] for i in by_length])
    assert abs(scored(greedy, heavy, 3) - after) < 0.02

# %% [markdown] id=cannot
# ## Four programs
#
# Here are four programs, each with eight jobs. The parts of a GPU that compute are its **SMs**, or *streaming multiprocessors*, and each has room for only so many blocks at once. A hunt is a single block, so there's room for all of ours.
#
# | program | its jobs |
# |---|---|
# | hunts | our narrow jobs, three paces each |
# | full | `relu` on 80,000 numbers, in blocks of a single thread. One fills the whole device, for 47 µs |
# | half | the same on 2,000 numbers, which fills half of the device |
# | uploads | 4 MB each, from pinned memory |

# %% id=cannot-programs tags=helpers
source = agt.pin(np.ones(1_000_000, np.float32))
larges = [agt.zeros(80_000, name=f"large {i}").sync() for i in range(8)]
smalls = [agt.zeros(2_000, name=f"small {i}").sync() for i in range(8)]


def relu_on(array, threads):
    blocks = array.borrow().partition(threads)
    return agt.relu(array.size, blocks, blocks)


programs = {
    "hunts": hunts([3 * pace] * 8),
    "full": [relu_on(array, 1) for array in larges],
    "half": [relu_on(array, 1) for array in smalls],
    "uploads": [agt.h2d(source, "x") for _ in range(8)],
}

# %% id=05-gains guess
# Each program on one stream, and on four. Which are at least one and a half times faster on four? Type their names, in the order of the table.

# %% id=05-gains reveal
runs, gains, lines = {}, {}, []
for name, ops in programs.items():
    runs[name] = [run_all(ops, policy) for policy in (agt.SingleStream(), agt.StreamPoolRoundRobin(4))]
    one, four = (trace.metrics().makespan for trace in runs[name])
    gains[name] = one / four
    lines.append(f"{name:8} one stream {one:4.0f} µs, four {four:4.0f}: {one / four:.1f} times faster")

best = max(gains, key=gains.get)
winners = [name for name in runs if gains[name] > 1.5 or name == best]
names = [f"{name}: four streams" for name in runs]
picture = agt.compare_timelines([four for _, four in runs.values()], names)
reveal("05-gains", " ".join(winners), picture, lambda: print(*lines, sep="\n"))

# %% id=05-gains lesson
# Narrow kernels run side by side. Full ones run in a row, and so do copies in one direction. In half, the host makes one call after another, and the device is mostly idle.

# %% id=05-gains told truth=hunts
# The uploads have four streams, but only one engine. `half` leaves room, but a fortieth of the numbers takes far less than a pace, so each kernel is over before the next is submitted. And `full`?
#
# > **Misconception: on several streams, kernels run at the same time.**
# >
# > - *What you see:* bars on four lanes that still come one after the other, with only their ends overlapping.
# > - *Why:* a full device has no room for another kernel's blocks, so that kernel waits until the last blocks of the one before are running.
# > - *What helps:* no policy, but a kernel that needs less of the device, as below.

# %% [markdown] id=full-text
# ### Blocks of one thread
#
# The program `full` keeps the whole device busy. But each of its blocks has a single thread. Now the same `relu` on the same 80,000 numbers, in blocks of 256 threads.

# %% id=05-twist guess
# How long does it take?
#
# - `same`: as long as before, because the device was full already
# - `few`: a half or a third of the time
# - `thirty`: about a thirtieth
# - `all`: 1/256 of the time

# %% id=05-twist reveal
took, lines = {}, []
for threads in (1, 256):
    (span,) = run_all([relu_on(larges[0], threads)], agt.SingleStream()).device_spans
    took[threads] = span.duration
    fills = f", and fills {span.detail['fills']:.0%} of the device" if device.simulated else ""
    lines.append(f"blocks of {threads:3}: {span.duration:5.1f} µs{fills}")

times = took[1] / took[256]
truth = "same" if times < 1.5 else "few" if times < 8 else "thirty" if times < 100 else "all"
reveal("05-twist", truth, lambda: print(*lines, sep="\n"), times=times)

# %% id=05-twist told truth=thirty
# That's {times:.0f} times faster. An SM has room for 32 blocks at most, however small they are. And it works in groups of 32 threads, called **warps**, so a block of one thread leaves 31 places of its warp empty. The blocks of 256 fill less than a third of the device, and are done far sooner. **A full device isn't a well-used one.**

# %% id=cannot-check tags=asserts
if device.simulated:
    assert {round(span.detail["fills"], 2) for span in runs["half"][0].find("relu")} == {0.5}
    for trace in runs["half"]:
        assert trace.metrics().device_active < 0.5 * trace.metrics().makespan
    assert winners == ["hunts"]
    assert [round(trace.metrics().makespan) for trace in runs["half"]] == [172, 172]
    assert round(took[1]) == 47
    assert max(gains["full"], gains["half"], gains["uploads"]) < 1.1
    one, four = runs["full"]
    assert all(span.detail["fills"] == 1 for span in one.find("relu"))
    assert 0 < four.metrics().overlap_fraction < 0.15
    assert all(span.waited_for_room > 0 for span in four.find("relu")[1:])
    uploads = runs["uploads"][1].metrics()
    assert uploads.engine_busy[device.name, "h2d"] > 0.85 * uploads.makespan

# %% [markdown] id=walls
# ### Walls
#
# More streams won't get a program through any of four walls, of which you've just seen three. Measure them in a trace of *one* stream, with `m = trace.metrics()`:
#
# | wall | in the trace |
# |---|---|
# | the host | from the start of Python's first call to the end of its last |
# | each of the two copy engines | `m.engine_busy`, a dict with a time for each engine, such as `("sim:0", "h2d")` |
# | the SMs | for each kernel, its duration times the part of the device that it fills (`span.detail["fills"]`, simulated only), all added up |
# | the longest job | each bar in `device_spans` has its job's number, `span.op`. Add up the durations of each job's bars, and take the largest sum |
#
# Take `full`: its eight kernels take 47 µs each and fill the whole device, so the SMs need 8 × 47 × 100% = 376 µs of the 404 on one stream.

# %% [markdown] id=walls-read
# The engine `"compute"` isn't a wall, because it counts as busy as soon as one small kernel runs.
#
# If the **host** is the wall, use fewer and larger operations, or a graph ([chapter 09](09_cuda_graphs.ipynb)). If it's an **engine**, copy less, or in both directions at once. If it's the **SMs**, you need a better kernel, and if it's the **longest job**, cut it into pieces. Only if none of them is near can more streams help.

# %% [markdown] id=exercise-pays
# ### Exercise: how far down can it go?
#
# You're given the trace of a program on one stream that has no `overlap` and waits only at its end. Return the time, in µs, below which no number of streams could bring it: the highest wall. The host and the engines are there.

# %% id=05-when-it-pays starter
def best_possible(trace):
    m = trace.metrics()
    calls = [span for span in trace if span.kind == "call"]
    walls = [calls[-1].end - calls[0].start]
    copies = [us for (_, engine), us in m.engine_busy.items() if engine != "compute"]
    walls += copies
    return max(walls)  # your code


# %% id=05-when-it-pays solution
# - return max(walls)  # your code
# + walls.append(sum(span.duration * span.detail.get("fills", 0.0) for span in trace.device_spans))
# + jobs = {}
# + for span in trace.device_spans:
# +     jobs[span.op] = jobs.get(span.op, 0.0) + span.duration
# + return max(walls + list(jobs.values()))

# %% id=05-when-it-pays hints
# Two walls are missing, the SMs and the longest job. Each is a time that more streams can't shorten, and the highest of all wins.
#
# Kernels that run side by side share the SMs, and each needs `span.duration * span.detail['fills']` of them. (A copy has no `"fills"`.)
#
# For the longest job, add up the durations of the device spans of each `span.op`. A dict with a sum for each number will do.

# %% id=05-when-it-pays explanation
# If this bound is close to the time on one stream, don't bother with more streams. It's only a bound: it doesn't say that you can get there.

# %% id=05-when-it-pays-check
check("05-when-it-pays", best_possible)

# %% [markdown] id=walls-four
# Which of the four programs is far above its wall?

# %% id=walls-run
bound = solved("05-when-it-pays", best_possible)
if device.simulated:  # no GPU notes what a kernel fills
    for name, traces in runs.items():
        wall = bound(traces[0])
        one, four = (trace.metrics().makespan for trace in traces)
        print(f"{name:8} wall {wall:4.0f} µs, one stream {one:4.0f}, four {four:4.0f}")

# %% [markdown] id=walls-four-read
# Only `hunts`, which gains.

# %% id=walls-check tags=asserts
if device.simulated:
    over = {name: one.metrics().makespan / bound(one) for name, (one, _) in runs.items()}
    assert over["hunts"] > 3
    assert max(us for name, us in over.items() if name != "hunts") < 1.1
    assert [round(us) for us in (bound(runs["full"][0]), runs["full"][0].metrics().makespan)] == [376, 404]

# %% [markdown] id=challenge
# ## Challenge: close the shop early
#
# Twelve jobs again. Every fourth takes 264 µs, and the others 16. With four streams that take turns, it takes 812 µs. Get below 340.
#
# `jobs` is a list of pairs: an operation, and how many µs it will take. Write `run_jobs(jobs)`, which runs each of them once, whatever their lengths. How many streams, and in which order, is up to you.

# %% id=05-challenge starter
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(4)]
    for i, (op, _) in enumerate(jobs):
        op.async_on(streams[i % 4])


# %% id=05-challenge solution
def run_jobs(jobs):
    streams = [agt.create_stream() for _ in range(4)]
    load = [0.0] * 4
    longest_first = sorted(jobs, key=lambda job: -job[1])
    for op, us in longest_first:
        i = load.index(min(load))
        load[i] += us
        op.async_on(streams[i])

# %% id=05-challenge hints
# As long as the last long job comes ninth, no policy can help. But you decide on the order.
#
# `sorted(jobs, key=lambda job: -job[1])` puts the longest first. If the streams then take turns, you're at 360 µs, and in the picture short jobs stand behind long ones, while another stream is idle.
#
# So sort, and then send each job to the stream that has been given the least work so far, as in `LeastLoaded`.

# %% id=05-challenge explanation
# In the course's answer, the longest jobs are the wall. Python has made three calls before the third of them starts, after 61 µs, and it takes 264. That makes 325. Meanwhile all the short ones find their place on the fourth stream. To get lower, you'd have to cut a long job into pieces, or hand over all three at once.

# %% id=05-challenge-check
check("05-challenge", run_jobs)

# %% [markdown] id=key-points
# ## Key points
#
# - A **policy** answers one question: which stream is next? It's asked once for each operation, and once more for each arm of an `overlap`.
# - Streams that take turns share out jobs, not work. If jobs differ in length, short ones get stuck behind long ones (**head-of-line blocking**).
# - Score a schedule against a **lower bound**, and you know what there is to gain.
# - The order of the jobs is yours. The longest first is good for the whole, and bad for the small ones that wait.
# - Streams fill idle time. If the **host**, an **engine** or the **SMs** are busy all the time, or one job takes nearly all of it, there's nothing to fill.
#
# The [glossary](../docs/glossary.md) has the words, and [misconceptions](../docs/misconceptions.md) the mistakes.
#
# **Next:** [06_await.ipynb](06_await.ipynb). So far Python has called `agt.synchronize()` and stood still. There it gets something better to do.

# %% id=score
score("05")

# %% id=progress
progress("05")
# %% [markdown] id=how-many
# ## Encore: how many streams?
#
# Eight jobs that are alike, of 3.5 paces each. We run them on one stream, on two that take turns, and so on up to eight.

# %% id=how-many-run
def on_streams(jobs):
    """The traces of these jobs on one stream, on two, and so on."""
    return {size: run_all(jobs, agt.StreamPoolRoundRobin(size)) for size in range(1, 9)}


def makespans(by_size):
    return {size: trace.metrics().makespan for size, trace in by_size.items()}


by_size = on_streams(hunts([3.5 * pace] * 8))
few = 2, 3, 4, 8
agt.compare_timelines(
    [by_size[size] for size in few],
    [f"{size} streams: {makespans(by_size)[size]:.0f} µs" for size in few],
    lesson="On two or three streams, jobs wait for each other. "
    "Four form a staircase, and eight the same one.",
)

# %% [markdown] id=how-many-read
# Two streams aren't twice as fast as one, because the second starts a pace late, and nothing halves Python's first call. On three, two of them have three jobs each. With four, a stream has always just become free when Python comes with the next job. More than four change nothing.
#
# Now each job is a `zip` of two hunts, half as long each. So its kernels take 3.5 paces in all, as before.

# %% id=05-pool guess
# How many streams are enough now, so that more than these save less than 5 %? Type a number.

# %% id=05-pool reveal
half = hunts([1.75 * pace] * 8)
other_half = hunts([1.75 * pace] * 8)
of_two = on_streams([agt.zip(*pair) for pair in zip(half, other_half)])
times = makespans(of_two)
enough = min(size for size, us in times.items() if us < 1.05 * min(times.values()))
picture = agt.compare_timelines([of_two[1], of_two[2], of_two[4]], ["one", "two", "four"])
reveal("05-pool", enough, picture, two=times[2], eight=times[8])

# %% id=05-pool lesson
# With two kernels to a job, Python brings a job every two paces, and two streams take turns.

# %% id=05-pool told truth=2
# Python makes two calls for each job, so it needs two paces. While one job runs, it brings 1.75 more. On two streams that's {two:.0f} µs, and {eight:.0f} on eight. **Python can't keep more streams busy than a job's length divided by the time from one job to the next**, rounded up.

# %% id=pool-check tags=asserts
for size, trace in by_size.items():
    assert trace.metrics().max_concurrency <= size
if device.simulated:
    assert by_size[4].metrics().max_concurrency == by_size[8].metrics().max_concurrency == 4
    us = makespans(by_size)
    assert us[2] > 0.5 * us[1]
    assert us[3] > 1.05 * us[4]
    assert abs(us[8] - us[4]) < 0.02 * us[8]
    assert enough == 2

# %% [markdown] id=exercise-pool
# ### Exercise: how many streams?
#
# A hunt is a single block, so there's room for all of ours. But a job that fills a third of the device leaves room for only two more like it.
#
# A job takes `length` µs, Python submits one every `pace` µs, and the device has room for `room` of them at once. Return the smallest number of streams with which no job waits for a stream while the device has room: an integer, and at least one.

# %% id=05-pool-size starter
def streams_needed(length, pace, room):
    return 4  # your code


# %% id=05-pool-size solution
def streams_needed(length, pace, room):
    return max(1, min(int(np.ceil(length / pace)), room))

# %% id=05-pool-size hints
# Job `i` starts at `i * pace` and ends at `i * pace + length`. Which later job is the first that may have its stream?
#
# So `length / pace` jobs are running at any time, rounded up, if there's room for that many.
#
# Take the smaller of `ceil(length / pace)` and `room`. (`math.ceil(x)` is `-int(-x // 1)`, or `int(np.ceil(x))`.)

# %% id=05-pool-size explanation
# You need as many streams as there can be jobs at work. Python limits that by its pace, and the device by its room. More streams do no harm, but they don't help either.

# %% id=05-pool-size-check
check("05-pool-size", streams_needed)

# %% [markdown] id=looking
# ## Encore: a policy that looks
#
# `stream.done` says whether a stream has nothing left to do, and to ask that takes Python about 2 µs. So here's a policy that sends each job to an idle stream, if there is one:

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


# %% id=looking-numbers
def report(name, trace):
    us, longest = trace.metrics().makespan, max(waits_of_short_jobs(trace))
    print(f"{name:12} {us:4.0f} µs; a short job waits {longest:3.0f} µs at most")


report("pool of four", in_turn)
report("pool of five", of_five)

# %% id=05-sooner guess within=0.08
# How many µs will four streams take, if the policy looks for an idle one?

# %% id=05-sooner reveal
def handed_over(trace, number):
    call = [span for span in trace if span.kind == "call" and "launch" in span.name][number]
    return call.end - trace.spans[0].start


def with_hand_over(trace):
    trace, us = trace.from_first(), handed_over(trace, 8)
    return trace.with_lane("job 8", [(0, us, f"handed over after {us:.0f} µs")])


looking = run_all(hunts(mixed), IdleFirst(4))
took = looking.metrics().makespan
names = ["Five streams in turn", "Four streams, an idle one first"]
picture = agt.compare_timelines([with_hand_over(of_five), with_hand_over(looking)], names)
waits, by = max(waits_of_short_jobs(looking)), took - of_five.metrics().makespan
reveal("05-sooner", f"{took:.0f}", picture, waits=waits, by=by)

# %% id=05-sooner lesson
# If the policy looks, no short job waits, but each call comes later, and so does job 8. (Its questions have no bars: they are what makes the gaps between the calls wider.)

# %% id=05-sooner told truth=394
# A short job waits {waits:.0f} µs at most. But the whole takes {by:.0f} µs more than with the pool of five, because this policy asks its questions before each job, so the calls stand further apart. The lanes show when job 8 was handed over.
#
# In this order, the pool of five is already as quick as can be: by luck, job 8 found its stream idle. The policy that looks needs no luck, but it pays for looking.

# %% id=idle-first-check tags=asserts
if device.simulated:
    assert len({span.stream for span in looking.device_spans[::4]}) > 1
    assert max(waits_of_short_jobs(looking)) < max(waits_of_short_jobs(of_five))
    assert handed_over(looking, 8) > handed_over(of_five, 8)
    assert of_five.metrics().makespan < looking.metrics().makespan < 0.8 * in_turn.metrics().makespan
    assert abs(handed_over(of_five, 8) + LONG - of_five.metrics().makespan) < 0.5 * pace
