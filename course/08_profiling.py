"""Source of notebooks/08_profiling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Profiling: find out why it is slow
#
# A colleague sends you a program. It is right, it runs on an NVIDIA H200, and it is slow. **Which line do you change first?**
#
# At the end of this page you will know, and also whether it is worth it. You will be able to read a report of NVIDIA's profiler, Nsight Systems, with five questions, ask it anything with a line of SQL, put names on your work, recognise six
# common defects by what they look like, and say how much a fix gained without fooling yourself.
#
# | | |
# |---|---|
# | Time | 80 minutes, without the appendix |
# | You need | [05_scheduling](05_scheduling.ipynb) and [06_await](06_await.ipynb). No GPU and no profiler: the reports were recorded on an H200, and come with the course |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import ranges
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution, solved
from asyncgpu_tutor.exercises.exhibits import EXHIBITS, report, rounds
from asyncgpu_tutor.exercises.recorded_ranges import watched
from asyncgpu_tutor.traces.pictures.nsight_window import nsight_window

device = agt.use("auto")
device

# %% [markdown] id=plate
# ## Sixty steps
#
# A metal plate is cold, and one edge of it is hot. In each step, every point becomes the mean of its four neighbours, and so the heat spreads. Here is the program. It is plain CuPy, which is NumPy on a GPU: no streams, no `await`, nothing of
# this course.
#
# ```python
# def main() -> None:
#     """Step until nothing moves."""
#     u = plate()
#     for _ in range(MOST_STEPS):
#         new = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
#         change = float(cp.abs(new - u[1:-1, 1:-1]).max())
#         u[1:-1, 1:-1] = new
#         if change < STILL:
#             break
#     print(f"last change {change:.4f}, mean {float(u.mean()):.4f}")
# ```
#
# (The file is `notebooks/nsight/heat.py`.) Most people look at the line with `new`. That is where the arithmetic is.

# %% id=predict-share
share = Prediction(
    "The plate has 256 x 256 points. A step asks for ten pieces of work, and for so few points the GPU needs "
    "one or two microseconds for each. Take two steps from the middle of the run. "
    "For how much of that time is the GPU busy?",
    most="most of it",
    half="about half",
    quarter="about a quarter",
    tenth="about a tenth",
)
share

# %% id=predict-share-commit
share.commit(...)

# %% id=share-picture
heat = agt.Trace.from_nsys(agt.Trace.recorded_file("heat.sqlite"))
steps = [span.start for span in heat.find("cupy_add__float32_float32_float32")][::3]  # three in a step
two_steps = heat.between(steps[30] - 10, steps[32] - 10)
two_steps.plot(
    title="heat.py on an H200: two steps of sixty",
    lanes=("host", "streams"),
    lesson="The GPU's lane is nearly empty: twenty thin bars, with a pause before each of them.",
)

# %% id=share-reveal
m = two_steps.metrics()
part = m.device_active / m.makespan
share.reveal(
    "most" if part > 0.7 else "half" if part > 0.35 else "quarter" if part > 0.17 else "tenth",
    f"It works for {m.device_active:.0f} of {m.makespan:.0f} µs.")

# %% [markdown] id=share-read
# The lower lane is the GPU. It gets its ten pieces of work in a step (`max` takes two, and `float` is a copy), and waits before each. A GPU twice as fast would make these steps five percent shorter. Even infinitely fast kernels would save a tenth.
#
# So look first. The work goes round a loop of five steps, and people like to skip the third:
#
# 1. **Annotate**: put names on the parts of the program.
# 2. **Profile**: record a run.
# 3. **Read**: say in one sentence what the end of the program is waiting for.
# 4. **Fix** that, and only that.
# 5. **Profile again**. Is it gone? What comes next? Is it enough?

# %% id=share-check tags=asserts
assert 0.04 < part < 0.2
assert len(two_steps.device_spans) == 20
assert sorted(span.duration for span in two_steps.device_spans)[10] < 1.7

# %% [markdown] id=reports
# ## What is in a report
#
# The picture comes from a **report**. Nsight Systems (`nsys`) notes each call into CUDA and each piece of the GPU's work, with its start and its end. (The appendix has the commands.) Looking has a price, which the host pays: [so much](../docs/profiling.md#what-it-costs).
#
# Once read, a report is a trace like any other, and you can ask it questions, in SQL if you like:

# %% id=sql-look
heat.sql("select kind, count(*), sum(duration) from spans where stream is not null group by kind")

# %% [markdown] id=exercise-sql
# ### Exercise: one query
#
# Which kernel takes the most time? Write a query that gives, for each name of a *kernel*, the name, how often it was launched, and the sum of its durations, with the largest sum first. There is one table, `spans`, with the columns `kind`, `name`,
# `start`, `end`, `duration` and some more. Times are in µs.

# %% id=08-sql starter
query = ...

# %% id=08-sql solution
query = """
select name, count(*), sum(duration)
from spans
where kind = 'kernel'
group by name
order by sum(duration) desc
"""

# %% id=08-sql hints
# `where kind = 'kernel'` leaves out copies, fills and the host.
#
# `group by name` makes one row of all launches with a name; `count(*)` and `sum(duration)` are about that group.
#
# `order by sum(duration) desc` at the end.

# %% id=08-sql explanation
# You will find the same numbers in `heat.stats.txt`, under `cuda_gpu_kern_sum`, in ns. `cupy_add` takes the most, 0.28 ms: there are three in a step. All kernels together took 0.97 ms over all sixty steps.

# %% id=08-sql-check
check("08-sql", query)

# %% id=sql-check tags=asserts
kernels = sum(span.duration for span in heat.device_spans if span.kind == "kernel")
assert 965 < kernels < 975
stats = agt.Trace.recorded_file("heat.stats.txt").read_text()
assert "277,248        180" in stats
assert abs(sum(s.duration for s in heat.find("cupy_add__float32_float32_float32")) - 277.248) < 0.01

# %% [markdown] id=read
# ## Five questions
#
# Let us leave the plate, and read something with streams in it. You get **exhibits**: reports of small programs, each with one thing wrong, and a note from its author. This is A:
#
# *"Four chunks, four streams. Each chunk is copied to the GPU, worked on and copied back. Why do they take turns?"*

# %% id=exhibit-a
a = report("A")
a.plot(
    title="Exhibit A",
    lanes=("host", "streams"),
    lesson="A staircase. The host waits for each chunk, and asks for the next one when it is done.",
)

# %% [markdown] id=five
# Ask a timeline five questions, in this order:
#
# 1. **Is the GPU busy?** If it is, go to question 3.
# 2. **Why does it stand still?** Some piece of work ends each pause. What had that piece been waiting for?
# 3. **What is it busy with?** Copies, or kernels? Do they overlap?
# 4. **What is the end waiting for?** Which chain of work has to be shorter, so that the program can end sooner?
# 5. **What does the host do?** Making calls, waiting, or work of its own?
#
# For the second, `agt.analyse` puts each pause of the GPU down to one of these:
#
# | cause | the next piece of work could not start because |
# |---|---|
# | `host late` | the host had not asked for it yet |
# | `dependency` | what it needs, on another stream, was not done |
# | `engine busy` | another stream's copy held the copy engine |
# | `occupancy` | other kernels filled the GPU |
# | `start-up` | nothing was in its way. It takes a moment to start |

# %% id=analyse-a
m = a.metrics()
print(f"1. busy for {m.device_active:.0f} µs of {m.makespan:.0f}")
for cause, us in agt.analyse(a).idle_by_cause.items():
    if us:
        print(f"2. {cause}: {us:.0f} µs")
print(f"3. two streams at work at once: {m.overlap:.0f} µs")
awaited = [span for span in m.critical_spans if span.on_device]
print(f"4. the end waits for {len(awaited)} of its {len(a.device_spans)} pieces of work, one after the other")
print(f"5. the host: {m.host['call']:.0f} µs in calls, {m.host['wait']:.0f} µs waiting")

# %% [markdown] id=five-answers
# The GPU stands still for a quarter of the time, mostly because the host is late. Otherwise it copies or computes, one thing at a time. The end waits for every piece of work: shorten any, and it comes sooner. And the host waits for each chunk before it asks for the next. In one sentence: **the GPU waits for the
# host, because the host waits for the GPU.**

# %% id=five-check tags=asserts
idle = agt.analyse(a).idle_by_cause
assert idle["host late"] > 2 * (m.device_idle - idle["host late"])
assert 0.2 < m.device_idle / m.makespan < 0.3
assert m.overlap == 0
assert len(awaited) == len(a.device_spans) == 12
assert m.host["wait"] > 3 * m.host["call"]

# %% [markdown] id=exercise-gap
# ### Exercise: the largest gap
#
# Return `(start, end)`, in µs, of the longest time in which *no* stream was at work. The work is in `trace.device_spans`, each with a `start` and an `end`. (If some stream is always at work, return `(0.0, 0.0)`.)


# %% id=08-gap starter
def largest_gap(trace): ...


# %% id=08-gap solution
def largest_gap(trace):
    work = sorted(trace.device_spans, key=lambda span: span.start)
    done, gap = work[0].end, (0.0, 0.0)
    for span in work:
        if span.start - done > gap[1] - gap[0]:
            gap = done, span.start
        done = max(done, span.end)
    return gap

# %% id=08-gap hints
# Go through the work in the order of its starts, and keep in mind until when somebody was at work.
#
# That time is the *largest* end so far. A short kernel may start late and end early, while a copy beside it goes on.
#
# After each span `done = max(done, span.end)`. There is a gap if the next one starts after `done`.

# %% id=08-gap explanation
# In the profiler's window, this is a hole in the row *[All Streams]*.

# %% id=08-gap-check
check("08-gap", largest_gap)

# %% [markdown] id=exercise-blame
# ### Exercise: whose request was it?
#
# A gap ends when some piece of work starts at last. Its `label` says which request it belonged to. Return `(label, cause)` for the *largest* gap. `agt.analyse(trace).gaps` has the gaps, and `gap.main` is the longest part of one, with its `cause` and the `span` that ended it.


# %% id=08-blame starter
def blame(trace): ...


# %% id=08-blame solution
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.label, gap.main.cause

# %% id=08-blame hints
# The first of the gaps is the longest, and `gap.main` is the part of it that counts most.
#
# `gap = agt.analyse(trace).gaps[0]`, then `gap.main.span.label, gap.main.cause`.

# %% id=08-blame explanation
# The labels come from the program: its operations have names, and so the report knows that a copy was for `chunk 1`. Our plate has no such names, and there the answer would be "some kernel, for somebody".

# %% id=08-blame-check
check("08-blame", blame)

# %% [markdown] id=annotate
# ## Names
#
# A profiler sees kernels, copies and calls. Only you know what they are *for*. So tell it: a **range** is a stretch of the host's time with a name, and NVIDIA's profilers take names through a small library, NVTX. Here is the plate with names, and no other change:
#
# ```python
#         with nvtx.annotate("step"):
#             with nvtx.annotate("stencil"):
#                 new = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
#             with nvtx.annotate("is it still?"):
#                 change = float(cp.abs(new - u[1:-1, 1:-1]).max())
#             u[1:-1, 1:-1] = new
# ```
#
# And here is what the new report says of these ranges:

# %% id=ranges-sums
annotated = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_annotated.sqlite"))
for row in agt.analyse(annotated).sums.ranges:
    if row.name in ("step", "stencil", "is it still?"):
        print(f"{row.name:12} {row.count} times, {row.host:9,.0f} µs in all")

# %% id=predict-part
portion = Prediction(
    "Take step 30. What percentage of it is `stencil`?", within=0.15
)
portion

# %% id=predict-part-commit
portion.commit(...)

# %% id=part-reveal
def durations(trace, name):
    return [span.duration for span in trace.find(name) if span.kind == "range"]


step, stencil, still = (durations(annotated, x) for x in ("step", "stencil", "is it still?"))
print("stencil, the first five times:     ", *[f"{us:,.0f}" for us in stencil[:5]], "µs")
print("is it still?, the first five times:", *[f"{us:,.0f}" for us in still[:5]], "µs")
portion.reveal(
    round(100 * stencil[30] / step[30]),
    f"Step 30 has {stencil[30]:.0f} µs of `stencil`, and {still[30]:.0f} µs of `is it still?`.",
)

# %% [markdown] id=part-read
# The sums were true, and they misled. (Four of the ten pieces of work belong to `stencil`.) In the first step CuPy fetches its kernels and CUDA loads them, which happens once. A sum hides it, and so does a mean. When something is done many times, look at the *list*, and then take
# the **median**, which says what is usual: half of the times are shorter, half are longer, and one odd value does no harm.

# %% id=part-check tags=asserts
assert 0.35 < stencil[30] / step[30] < 0.45
assert sum(stencil) > 0.7 * sum(step)
assert stencil[30] < still[30]
assert np.median(stencil) < np.median(still)
assert sum(stencil) > 2 * sum(still)
assert stencil[0] + still[0] > 500 * np.median(step)

# %% [markdown] id=exercise-typical
# ### Exercise: a typical step
#
# How long does it usually take? Return the median duration, in µs, of the ranges called `name`. A range is a span whose `kind` is `"range"`.


# %% id=08-typical starter
def typical(trace, name): ...


# %% id=08-typical solution
def typical(trace, name):
    spans = [span for span in trace.find(name) if span.kind == "range"]
    return np.median([span.duration for span in spans])

# %% id=08-typical hints
# `trace.find(name)` may also have other spans of that name: `stencil` is a range here, and a kernel in another report.
#
# `np.median` of the durations.

# %% id=08-typical explanation
# A step takes 177 µs: 71 for the new plate, 84 to ask whether it is still, and the rest to put it in its place. To ask takes longer than to compute. Remember this when we come back to the plate.

# %% id=08-typical-check
check("08-typical", typical)

# %% [markdown] id=across
# ### Names and `await`
#
# Here are two tasks, one short and one long, each in a range of its own. (`watched()` is `agt.record()` with ranges.) They run twice, with two kinds of range:


# %% id=across-run
async def task(name, us, kind):
    with kind(name):
        await agt.sleep(us)


async def both(kind):
    with watched() as trace:
        await asyncio.gather(task("short", 5_000, kind), task("long", 20_000, kind))
    return trace


crossed = [await both(ranges.span), await both(ranges.across)]
agt.compare_timelines(
    crossed,
    ["with span", "with across"],
    lanes=("host",),
    lesson="Above, the range called short lasts for 20 ms, and long for 5. Below, it is the other way round.",
)

# %% [markdown] id=misconception-ranges
# > **Misconception: a range shows what its block did.**
# >
# > - *What you see:* with `span`, the short task seems to be the long one.
# > - *Why:* this kind is kept on a stack, one per thread, and to close a range means to close the one on top. While one task awaits, another puts its own there. `nvtx.annotate` and `torch.cuda.nvtx.range` are of this kind.
# >
# >   ```text
# >                    short opens    long opens     short is done       long is done
# >   the stack        short          short, long    short               (empty)
# >   what is closed                                 the top: long!      the top: short!
# >   ```
# > - *What helps:* `agt.ranges.across` wherever there is an `await` in the block: it remembers which range it opened, and closes that one. `agt.ranges.span` where there is none.

# %% id=across-check tags=asserts
for trace, swapped in zip(crossed, (True, False), strict=True):
    measured = {span.name: span.duration for span in trace if span.kind == "range"}
    assert (measured["short"] > measured["long"]) == swapped

# %% [markdown] id=exercise-annotate
# ### Exercise: ranges around an `await`
#
# `handle` answers a request. Mark two ranges: `"prepare"` around the preparation and nothing else, and `"request"` around all of it. The check handles several requests together, and one of them fails. (Do not put the number into the name: the profiler keeps every
# name, and a server has millions of requests.)


# %% id=08-annotate starter
async def handle(i, prepare, process):
    x = prepare(i)
    return await process(x)


# %% id=08-annotate solution
async def handle(i, prepare, process):
    with agt.ranges.across("request"):
        with agt.ranges.span("prepare"):
            x = prepare(i)
        return await process(x)

# %% id=08-annotate hints
# Two ranges, one inside the other. Which of the two has an `await` in it?
#
# `agt.ranges.span("prepare")` for the one without an `await`, `agt.ranges.across("request")` for the one with.
#
# `with agt.ranges.across("request"):` around both lines, and in it `with agt.ranges.span("prepare"):` around the first.

# %% id=08-annotate explanation
# `across` remembers which range it opened, so it does not matter who opens or closes others meanwhile. And `with` closes it, also when the request fails. The operations of this course
# mark themselves in the same way, under the names that you give them with `named`.

# %% id=08-annotate-check
check("08-annotate", handle)

# %% [markdown] id=suspects
# ## Six suspects
#
# Some mistakes are common, and it pays to know their faces:
#
# | suspect | you know it by |
# |---|---|
# | `null stream` | work on stream 0 |
# | `hidden synchronisation` | a wait on the host's lane, and calls for more work after it |
# | `pageable copy` | calls for a copy that last about as long as the copy itself |
# | `lazy module loading` | a first kernel that comes late: its code has to be compiled and loaded |
# | `too few streams` | operations right behind each other on a stream, while the GPU has room |
# | `one big kernel` | one kernel has most of the GPU's time, with blocks enough to fill it |
#
# You have seen A. Here are five more. Make your bet on each before you scroll on. Each has a list: how often something happened, and how long the shortest and the longest of it took. (`launch` and `enqueue` are calls of the host.)


# %% id=show
def show(letter, lesson):
    trace = report(letter)
    for name in dict.fromkeys(span.name for span in trace if span.kind != "range"):
        spans = trace.find(name)
        times = sorted(span.duration for span in spans)
        grid = spans[0].detail.get("grid")
        blocks = f"   blocks: {np.prod(grid)}" if grid else ""
        print(f"{len(spans):2} x {name:22} {times[0]:7.1f} to {times[-1]:7.1f} µs{blocks}")
    return trace.plot(title=f"Exhibit {letter}", lanes=("host", "streams"), lesson=lesson)


# %% [markdown] id=exhibit-b-text
# *"The GPU is busy from start to end. I need a larger one, don't I?"*

# %% id=exhibit-b
show("B", "Two streams without a gap: three long kernels of one block on each, one behind the other.")

# %% [markdown] id=exhibit-c-text
# *"Half of it comes from a library. They say that it is asynchronous."*

# %% id=exhibit-c
show("C", "Stream 0 works through two chunks in a row, and streams 1 and 2 one each, which overlap.")

# %% [markdown] id=exhibit-d-text
# *"Four streams, four tasks, no wait anywhere. And no two of them overlap."*

# %% id=exhibit-d
show("D", "The host's calls for copies are as long as the copies themselves, and follow one another.")

# %% [markdown] id=exhibit-e-text
# *"Our benchmark says 39 milliseconds a round. In production it is less than a hundredth of that. Which of the two is wrong?"*

# %% id=exhibit-e
show("E", "The first call comes after 37 ms. Four tiny kernels follow at the far end.")

# %% [markdown] id=exhibit-g-text
# *"More streams, more tasks, pinned memory: I have tried it all. It stays as it is."*

# %% id=exhibit-g
show("G", "One kernel takes more than half of the time. Nothing runs beside it.")

# %% [markdown] id=exercise-suspects
# ### Exercise: name them
#
# Write a dict with a name from the table for each letter: `{"A": "...", "B": "...", "C": "...", "D": "...", "E": "...", "G": "..."}`.

# %% id=08-suspects starter
suspects = ...

# %% id=08-suspects solution
suspects = {
    "A": "hidden synchronisation",
    "B": "too few streams",
    "C": "null stream",
    "D": "pageable copy",
    "E": "lazy module loading",
    "G": "one big kernel",
}

# %% id=08-suspects hints
# Two of them give themselves away by a number: of a lane, and of blocks.
#
# In A and in D the host holds everybody up. In A it waits; in D it is inside a call for a copy.
#
# B has six kernels of one block each on two streams. In E, look at what comes before the first kernel.

# %% id=08-suspects explanation
# The check asked `agt.diagnose`, which goes through the same table. In E the 37 ms before the first call were spent on compiling the source, and the loading came on top. Both happen once. So neither number is wrong: the benchmark timed the first round, and production runs the others. Run a program before you time it.

# %% id=08-suspects-check
check("08-suspects", suspects)

# %% [markdown] id=unseen
# And F? *"Each round makes a new array. What does that cost?"* Here is its report, and all that `agt.diagnose` finds in it:

# %% id=unseen-run
for found in agt.diagnose(report("F")):
    print(found.name, "-", found.sentence)
show("F", "Eight rounds, each with a copy, a kernel and a copy back. No call of the host allocates anything.")

# %% [markdown] id=unseen-read
# Not a word about arrays, and no allocation in the list. Their memory comes from a *pool*, which hands out again what was used before, and makes no call into CUDA. **A profiler sees calls and work, and nothing else.** (`agt.record()` asks the pool, too: the recording `08_allocation_in_the_loop` names the culprit.) So a list without a
# suspect means that none was found, and no more. (A program is **host-bound** if the host sets its pace. That is a limit, not a defect.)

# %% id=unseen-check tags=asserts
assert [found.name for found in agt.diagnose(report("F"))] == ["host-bound"]
assert len(report("F").find("relu")) == 8
assert not [span for span in report("F") if "alloc" in span.name]
inside = agt.Trace.load_recording("08_allocation_in_the_loop")
assert "allocation in the loop" in [found.name for found in agt.diagnose(inside)]
for letter in "ABCDEG":
    (found,) = [found for found in agt.diagnose(report(letter)) if not found.limit]
    assert found.name == EXHIBITS[letter].removeprefix("08_").replace("_", " ")
assert report("E").metrics().host["call"] > 0
assert min(span.start for span in report("E") if span.kind == "call") > 36_000

# %% [markdown] id=exercise-rate
# ### Exercise: the price of an ordinary array
#
# D copies ordinary NumPy arrays, its repaired twin copies pinned ones. Return how many gigabytes (10⁹ bytes) a second go *to* the GPU, over all such copies of a trace together. Their `kind` is `"h2d"`, and `span.detail["bytes"]` is their size.


# %% id=08-rate starter
def rate(trace): ...


# %% id=08-rate solution
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    size = sum(span.detail["bytes"] for span in copies)
    return size / sum(span.duration for span in copies) / 1000

# %% id=08-rate hints
# All bytes, divided by all time. (In a mean of the rates, a tiny copy would count as much as a large one.)
#
# Bytes per µs are megabytes per second.
#
# So `size / time / 1000`.

# %% id=08-rate explanation
# 7.6 GB/s in D, 47.8 in its twin. And that is only half of the damage: a copy of ordinary memory also keeps the host inside the call, so that nothing else is asked for meanwhile.

# %% id=08-rate-check
check("08-rate", rate)

# %% [markdown] id=busy
# ### The one that was busy
#
# Back to B, whose GPU never paused. The repaired program has six streams in place of two, for its six kernels.

# %% id=busy-look
asked = [span.start for span in report("B") if span.kind == "call"]
begun = sorted(span.start for span in report("B").device_spans)
print("a kernel begins at         ", *[f"{us - asked[0]:4.0f}" for us in begun], "µs")
print("Python asks for a kernel at", *[f"{us - asked[0]:4.0f}" for us in asked], "µs,", end=" ")
print(f"every {(asked[-1] - asked[0]) / 5:.0f} µs on average.", end=" ")
print(f"A kernel takes {report('B').device_spans[0].duration:.0f} µs.")

# %% id=predict-busy
room = Prediction(
    "From the first kernel to the last, B took 479 µs on two streams. How many µs on six?",
    within=0.1,
)
room

# %% id=predict-busy-commit
room.commit(...)

# %% id=busy-picture
six = report("B", repaired=True)
agt.compare_timelines(
    [report("B"), six],
    ["Two streams", "Six streams"],
    lanes=("host", "streams"),
    lesson="On six streams each kernel starts as soon as the host has asked for it. Up to four run at once.",
)

# %% id=busy-reveal
took = [trace.metrics().device_makespan for trace in (report("B"), six)]
room.reveal(round(took[1]), "A quarter less. Not the same, and not a third of it.")

# %% [markdown] id=busy-read
# > **Misconception: the GPU is busy, so the program cannot be made faster.**
# >
# > - *What you see:* a utilisation near 100 percent, here as in `nvidia-smi`.
# > - *Why:* "busy" means that *some* kernel is running. These have one block each, so each uses one SM, and an H200 has 132.
# > - *What helps:* look at the grid. Few blocks: run several kernels at once, or give each more to do.
#
# And why not a third of the time, with three times as many streams? The sixth kernel starts five paces after the first, which is 217 µs, and runs for 138. Now the host is the limit. (And B's 479? Its second stream began 58 µs after the first, and has three kernels, 3 µs apart: 58 + 3 x 138 + 2 x 3.)

# %% id=busy-check tags=asserts
assert abs(took[0] - 479) < 1
assert 0.7 < took[1] / took[0] < 0.8
assert report("B").metrics().device_idle == 0
assert len(asked) == 6
assert 58 < begun[1] - begun[0] < 59
assert abs(begun[1] - begun[0] + 3 * 138.4 + 2 * 2.6 - took[0]) < 1
assert 42 < (asked[-1] - asked[0]) / 5 < 44
assert {tuple(span.detail["grid"]) for span in six.device_spans} == {(1, 1, 1)}
assert six.metrics().max_concurrency == 4
starts = sorted(span.start for span in six.device_spans)
assert 216 < starts[-1] - starts[0] < 218
assert all(138 < span.duration < 139 for span in six.device_spans)

# %% [markdown] id=worth
# ## Was it worth it?
#
# The fifth step: profile again. Exhibit A waited for each chunk, and the repaired program asks for all four at once. Each report holds four rounds. Here is the last of each:

# %% id=worth-picture
again = report("A", repaired=True)
agt.compare_timelines(
    [a, again],
    ["Exhibit A", "Exhibit A, repaired"],
    lanes=("host", "streams"),
    lesson="The repaired run overlaps a little, and ends later: the host takes breaks between its calls.",
)

# %% [markdown] id=worth-read
# It has become slower. Was the repair a mistake? You compared *one* round with *one* round, and a machine now and then has something else to do. Here are all four:


# %% id=worth-rounds
def took_each(found):
    return [max(s.end for s in work) - min(s.start for s in work) for work in found]


first, then = (took_each(rounds("A", repaired=fixed)) for fixed in (False, True))
for words, times in (("exhibit A", first), ("repaired", then)):
    print(f"{words:10}", *[f"{us:6.0f} µs" for us in times])

# %% id=predict-worth
repaired = Prediction(
    "Which of these numbers says best what the repair has gained?",
    last="0.8 times as fast: the last round against the last",
    mean="1.2 times: the mean against the mean, or the median against the median",
    best="1.6 times: the quickest round against the quickest",
)
repaired

# %% id=predict-worth-commit
repaired.commit(...)

# %% id=worth-reveal
repaired.reveal("best", f"The quickest took {min(first):.0f} µs, and then {min(then):.0f} µs.")

# %% [markdown] id=worth-rounds-read
# What disturbs a run makes it longer. So the **quickest** round was disturbed least: compare the quickest with the quickest. The median says what is usual, the quickest what the code can do. (For a server, compare the slowest in a hundred, and record thousands.)

# %% id=worth-check tags=asserts
assert 0.75 < first[-1] / then[-1] < 0.85
assert 1.15 < np.mean(first) / np.mean(then) < 1.25
assert 1.15 < np.median(first) / np.median(then) < 1.25
assert 1.55 < min(first) / min(then) < 1.65
assert a.metrics().device_makespan < again.metrics().device_makespan
assert again.metrics().overlap > 0

# %% [markdown] id=exercise-gain
# ### Exercise: how many times as fast?
#
# `before` and `after` are lists of rounds, and a round is a list of spans. Return how many times as fast the program has become: its quickest round before over its quickest after. A round lasts from its first start to its last end, and the span that starts last need not end last.


# %% id=08-gain starter
def gain(before, after): ...


# %% id=08-gain solution
def gain(before, after):
    def quickest(rounds):
        return min(max(s.end for s in work) - min(s.start for s in work) for work in rounds)

    return quickest(before) / quickest(after)

# %% id=08-gain hints
# First the length of one round: `max(span.end for span in work) - min(span.start for span in work)`.
#
# Then the `min` over the rounds, for each of the two.
#
# Twice as fast means half the time, so the old one is on top.

# %% id=08-gain explanation
# Say such a number together with how you measured it.

# %% id=08-gain-check
check("08-gain", gain)

# %% [markdown] id=all-repairs
# Here are all six, with what `agt.diagnose` calls them, and how much their repairs gained:

# %% id=all-repairs-run
times = {}
print("exhibit                      quickest round    repaired")
for letter in "ABCDEG":
    (found,) = [found for found in agt.diagnose(report(letter)) if not found.limit]
    times[letter] = [min(took_each(rounds(letter, repaired=fixed))) for fixed in (False, True)]
    old, new = times[letter]
    print(f"{letter}  {found.name:24} {old:10.0f} µs  {new:8.0f} µs   {old / new:4.1f} times as fast")

# %% [markdown] id=all-repairs-text
# E gained the most, and its row does not show it: the row begins at E's first kernel, and the 39 ms before that are what was repaired, once for each start of the program. Of the others D gained the most. And G has become *slower*:

# %% id=all-repairs-picture
agt.compare_timelines(
    [report("G"), report("G", repaired=True)],
    ["Exhibit G: one kernel", "Exhibit G, repaired: four parts"],
    lanes=("host", "streams"),
    lesson="The four parts of the kernel are short, and far apart: the host is late for each of them.",
)

# %% [markdown] id=all-repairs-read
# Its kernel was cut into four, so that copies could run beside it. But a part's kernel takes 35 µs, and the host 70 to ask for it. At this size, leave G as it is. **A finding says what there is. Only a
# second profile says whether to change it.**

# %% id=all-repairs-check tags=asserts
assert max(times, key=lambda letter: times[letter][0] / times[letter][1]) == "D"
assert [letter for letter, (old, new) in times.items() if new > old] == ["G"]
assert 38_500 < min(span.start for span in report("E").device_spans) < 39_500
parts = sorted(span.start for span in report("G", repaired=True).find("sgemm_naive"))
assert 65 < (parts[-1] - parts[0]) / 3 < 75
parts = [span.duration for span in report("G", repaired=True).find("sgemm_naive")]
assert all(34 < us < 36 for us in parts)

# %% [markdown] id=plate-again
# ## Back to the plate
#
# Now you can answer the question from the top. `agt.diagnose` says of those two steps:

# %% id=plate-diagnose
for found in agt.diagnose(two_steps):
    print(found.name, "-", found.sentence)

typical = solved("08-typical", typical)
looks = [span for span in annotated.find("is it still?") if span.kind == "range"]
inside = [annotated.between(look.start, look.end).metrics().host for look in looks]
calls, waits = (np.median([host[kind] for host in inside]) for kind in ("call", "wait"))
print()
print(f"a step takes {typical(annotated, 'step'):.0f} µs,", end=" ")
print(f"`is it still?` {typical(annotated, 'is it still?'):.0f} of them:", end=" ")
print(f"{calls:.0f} in its five calls, {waits:.0f} waiting, and the rest in Python, between the calls")

# %% [markdown] id=plate-repair
# The GPU works for a tenth of the time. The rest is the host: it makes ten calls in a step, five of them for the number in `float(...)`, and what takes long is to get from one call to the next. (The pageable copy holds it up for 10 µs a step. The null stream costs nothing where there is no other.) So ask for less, and look less often:
#
# ```python
#         with nvtx.annotate("step"):
#             with nvtx.annotate("stencil"):
#                 stencil((blocks, blocks), (16, 16), (SIZE, u, v))
#             u, v = v, u
#         if step % LOOK_EVERY == 0:
#             with nvtx.annotate("is it still?"):
#                 change = float(cp.abs(u - v).max())
# ```
#
# `stencil` is a kernel of a few lines, in `heat_repaired.py`: one launch a step. And the host asks only every twenty steps whether the plate is still. These are two changes, and step 4 says *one*: so `heat_looks_less.py` has the first of them alone, how often it looks. How long is a step now?

# %% id=plate-step
fused = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_repaired.sqlite"))
print(f"the range `step`: {typical(annotated, 'step'):.0f} µs, and now {typical(fused, 'step'):.0f} µs")

# %% [markdown] id=plate-fair
# Fourteen times as fast? Look again at the two programs. `is it still?` was *inside* that range, and now it is outside: the two numbers don't measure the same thing.
#
# So compare like with like: from the start of step 20 to that of step 40, with one look in the new programs. And go one change at a time:


# %% id=plate-pace
def pace(trace):
    starts = [span.start for span in trace.find("step") if span.kind == "range"]
    return (starts[40] - starts[20]) / 20


less = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_looks_less.sqlite"))
for what, trace in {
    "as it was": annotated,
    "a look every 20 steps": less,
    "and one kernel a step": fused,
}.items():
    print(f"{what:21} {pace(trace):4.0f} µs a step, `stencil` {typical(trace, 'stencil'):3.0f} µs")

# %% [markdown] id=plate-control
# Six times as fast. And is the look worth no more than the 28 µs between the first two lines? Compare their `stencil`: it is the same line of code, and yet it takes two thirds longer in the second report. So the host was slower while that one was made, and 28 µs is too little. **Before you compare two reports, compare something in them that did not change.**

# %% id=predict-whole
whole = Prediction(
    "And the whole program, from its first call to its last? How many times as fast has it become?",
    within=0.15,
)
whole

# %% id=predict-whole-commit
whole.commit(...)

# %% id=whole-reveal
old, new = annotated.metrics().makespan, fused.metrics().makespan
factor = old / new
whole.reveal(
    round(factor, 2),
    f"{old / 1000:.0f} ms became {new / 1000:.0f} ms.",
)

# %% id=whole-picture
agt.compare_timelines(
    [annotated, fused],
    ["as it was", "and one kernel a step"],
    lanes=("host", "streams"),
    lesson="Setting up, the first step and the first look fill both runs. All other steps are a sliver.",
)

# %% [markdown] id=whole-read
# Sixty steps of 190 µs (a mean, with each delay; 177 was the median) are a hundredth of a second. The rest of the half second is the start: CUDA wakes up, memory is made ready, kernels are loaded, and in the new program the first look takes as long as hundreds of others. How much did the repair gain, then? *That depends on what you run.* With sixty steps, nothing: 4 percent between two single runs may be chance. With a million, three minutes become
# half a minute (under the profiler), and a factor of six is not luck.
#
# So this is your answer to the colleague. I would begin with the line with `float`: it costs 84 of 177 µs, and nobody needs its number in each step. Then make one kernel of the step. And if sixty steps are all you ever need, change nothing.

# %% id=plate-check tags=asserts
assert 13 < typical(annotated, "step") / typical(fused, "step") < 15
assert 5.5 < pace(annotated) / pace(fused) < 6.5
assert pace(annotated) > pace(less) > pace(fused)
assert 26 < pace(annotated) - pace(less) < 30
assert 1.5 < typical(less, "stencil") / typical(annotated, "stencil") < 1.7
assert abs(typical(annotated, "is it still?") - 84) < 1
assert abs(typical(annotated, "step") - 177) < 1
assert abs(calls - 30) < 1
assert waits < 2.5
first_look, *other_looks = [s.duration for s in fused.find("is it still?") if s.kind == "range"]
assert first_look > 400 * max(other_looks)
assert [s.start for s in annotated.find("step") if s.kind == "range"][1] > 0.95 * old
assert len([s for s in less.find("is it still?") if s.kind == "range"]) == 3
assert 1.03 < factor < 1.05
assert 60 * pace(annotated) < 0.025 * old
assert 180 < pace(annotated) < 200  # a million of them: three minutes
assert 30 < pace(fused) < 36
found = {finding.name for finding in agt.diagnose(two_steps)}
assert {"hidden synchronisation", "host-bound"} <= found
waited = [s.duration for s in two_steps if s.kind == "wait" or s.name == "enqueue d2h"]
assert sum(waited) / 2 < 15

# %% [markdown] id=challenge
# ## Challenge: a slow server
#
# Eight requests wait. Each is a matrix, an ordinary NumPy array of 2 MB. It goes to the GPU, `score` works on it with a kernel of a single block, and the scores come back.
#
# It takes 4731 µs: get below 800. (That is on the simulated device, where the check tries it.) More than one thing is wrong, and one of them cannot be seen before the others are gone. So go round the loop.


# %% id=08-challenge starter
def settle():
    """Came with the code of another project. Nobody remembers what for."""
    agt.synchronize()


async def serve(requests, score):
    tasks = []
    for x in requests:
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(score).to_host()))
        await asyncio.sleep(0)
        settle()
    return [await task for task in tasks]


# %% id=08-challenge solution
async def serve(requests, score):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(requests))):
        ops = [agt.h2d(agt.pin(x), "request").and_then(score).to_host() for x in requests]
        return await asyncio.gather(*ops)

# %% id=08-challenge hints
# Run the cell below the check. It records your `serve`, draws it, and says what `agt.diagnose` finds.
#
# First the host waits where it need not. Then its calls for copies are as long as the copies: where does `np.full` or `np.load` put an array? And then count the streams.
#
# No `settle()`, `agt.pin(x)` for each request, and a policy with a stream for each: `agt.StreamPoolRoundRobin(len(requests))`.

# %% id=08-challenge explanation
# Four profiles: 4731 µs, 2483 without the waits, 832 with pinned memory, 697 with a stream for each request. Nobody could have seen in the first one that there were too few streams; and the allocations that its diagnosis names were only there because each request waited for the one before. (In a server that runs for long, pin a few buffers once and fill them
# in turn, since pinning takes time.)

# %% id=08-challenge-check
check("08-challenge", serve)

# %% [markdown] id=rehearse-text
# Your workbench: this profiles `serve` as it is now, on your device.

# %% id=rehearse
ROWS, COLUMNS = 64, 8192
weights = agt.h2d(agt.pin(np.ones(COLUMNS, np.float32)), "weights").share().sync()
requests = [np.full((ROWS, COLUMNS), i + 1, np.float32) for i in range(8)]


def score_of(x):
    def product(y):
        return agt.matvec_naive(ROWS, COLUMNS, x, weights, y.partition(ROWS)).output()

    return agt.zeros(ROWS, name="scores").and_then(product)


await serve(requests, score_of)  # the first time is special
with agt.record() as served:
    answers = await serve(requests, score_of)
for found in agt.diagnose(served):
    print(found.name, "-", found.sentence)
served.plot(title="Your server", lanes=("host", "streams"))

# %% id=rehearse-check tags=asserts
assert all(np.all(scores == COLUMNS * (i + 1)) for i, scores in enumerate(answers))

# %% [markdown] id=key-points
# ## Key points
#
# - Annotate, profile, read, fix *one* thing, profile again. What you would have fixed without a profile is often not what counts.
# - Five questions: is the GPU busy, why not, with what, what does the end wait for, what does the host do?
# - A sum hides what happens once. Look at the list, and take the median; to compare, take the quickest of several runs.
# - Around an `await`, a range has to be of the kind that knows what it opened: `across`.
# - A busy GPU is not always a well-used one: look at the grid.
# - A finding is a reason to look. Whether its repair pays, only a second profile says.
#
# What others call these things is in the [glossary](../docs/glossary.md), and the [misconceptions](../docs/misconceptions.md) page has more of these.
#
# **Next:** [09_cuda_graphs.ipynb](09_cuda_graphs.ipynb), for the case that the host is busy with calls and cannot make fewer.

# %% [markdown] id=nsight
# ## Appendix: NVIDIA's window
#
# You open a `.nsys-rep` in Nsight Systems (*File > Open*). It looks like a lot, but it is what you know, in another order. Here is A as the window arranges it, with CUDA's own numbers of streams. (The drawing is ours. The names of rows come from an older User Guide, 2023.4, and may differ in yours.)

# %% id=nsight-picture
print("Above: the GPU. All streams together, then each with a row for kernels and one for memory.")
print("Below: the thread, with our ranges, and one row for the calls of CUDA.")
nsight_window(a, title="Exhibit A, in the order of the profiler's window")

# %% [markdown] id=nsight-read
# Read it in the order of its numbers (not those of the five questions): **(1)** your ranges; **(2)** the calls, of which those with *Synchronize* in their names are waits; **(3)** all that the GPU did: a hole in that row is a gap; **(4)** and **(5)** each stream by itself.
#
# | you want to know | here | in Nsight Systems |
# |---|---|---|
# | whose work it is | label of a span | click on the work: its call is highlighted, and lies below a range |
# | from when to when the GPU worked for a range | `analyse(trace).sums.ranges` | the range once more, below *CUDA HW*: it is **projected** there. Sum `nvtx_gpu_proj_sum` |
# | whether the host waits | dotted spans on the host's lane | *Synchronize* in *CUDA API*. Rule `cuda_api_sync` |
# | whether a copy was pageable | `span.detail["pageable"]` | its name, *Memcpy HtoD (Pageable)*. Rule `cuda_memcpy_async` |
# | where the gaps are | `analyse(trace).gaps` | holes in *[All Streams]*. Rule `gpu_gaps`, for those of half a second and more |
# | what takes how long | `analyse(trace).sums` | sums `cuda_gpu_kern_sum`, `cuda_gpu_mem_time_sum`, `cuda_api_sum` |
#
# Rules and sums are below the timeline, and on the command line: `nsys analyze` and `nsys stats`. One command does all this for a program of your own: `asyncgpu-tutor profile -- python my.py`. [Profiling](../docs/profiling.md) has the rest.
#
# ### How our reports were made
#
# ```text
# nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-event-trace=true -o heat python heat.py
# nsys export --type=sqlite -o heat.sqlite heat.nsys-rep
# nsys stats heat.sqlite > heat.stats.txt
# ```
#
# | file | what it is for |
# |---|---|
# | `heat.nsys-rep` | the report, for the profiler's own window. We don't ship ours, because a report also holds much of the machine that recorded it; `notebooks/nsight/record.sh` records one on yours. Ours were made by version 2025.3.2 |
# | `heat.sqlite` | the same as a database. `agt.Trace.from_nsys` reads it |
# | `heat.stats.txt` | sums, as text |
#
# `agt.Trace.recorded_file("heat.sqlite")` and the same with `heat.stats.txt` say where the last two are.
#
# These options of `nsys profile` matter:
#
# | option | what it does |
# |---|---|
# | `--sample=none --cpuctxsw=none` | leaves out what else the CPU did. Without it, a small report of ours grew to half a gigabyte |
# | `--cuda-event-trace=true` | notes which stream waited for which. Without it, there are no arrows between streams |
# | `--capture-range=cudaProfilerApi` | records only what runs in `with cupyx.profiler.profile():`, and so no warm-up |
# | `--cuda-graph-trace=node` | shows each kernel in a CUDA graph ([chapter 09](09_cuda_graphs.ipynb)). Without it, a graph is one bar |

# %% [markdown] id=exercise-kernel
# ### Exercise: which stream?
#
# "Stream 4", you say to somebody who has the window open, and there is none: our timelines number streams by first use. Return `(CUDA's number, duration in µs)` of the *longest* launch of the kernel called `name`. CUDA's number is in
# `span.detail["cuda_stream"]`.


# %% id=08-kernel starter
def longest(trace, name): ...


# %% id=08-kernel solution
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.duration

# %% id=08-kernel hints
# `trace.find(name)` is a list of spans, and `max(..., key=lambda span: span.duration)` gives the longest of them.
#
# Then return `span.detail["cuda_stream"], span.duration`.

# %% id=08-kernel explanation
# In exhibit A, our streams 1 to 4 are CUDA's 13 to 16. The null stream, our 0, is their 7.

# %% id=08-kernel-check
check("08-kernel", longest)

# %% id=score
score(share, portion, room, repaired, whole)

# %% id=progress
progress("08")
