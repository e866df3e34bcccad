"""Source of notebooks/08_profiling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Profiling: find out why it is slow
#
# A colleague sends you a program. It gives the right answer, it runs on an NVIDIA H200, and it's slow. **Which line do you change first?**
#
# By the end of this page you can answer that from a report by NVIDIA's profiler, Nsight Systems, and you can say what the change will gain, or whether to change anything at all.
#
# | | |
# |---|---|
# | Time | an hour. The encores, for another day, take half an hour |
# | You need | [05_scheduling](05_scheduling.ipynb) and [06_await](06_await.ipynb). No GPU: the reports come with the course |

# %% id=setup
import asyncio
from dataclasses import replace
from itertools import accumulate

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution
from asyncgpu_course.exhibits import report
from asyncgpu_course.recorded_ranges import watched
from asyncgpu_tutor import ranges

device = agt.use("auto")
device

# %% [markdown] id=plate
# ## Sixty steps
#
# A metal plate is cold, with one hot edge. In each step every point becomes the mean of its four neighbours, so the heat spreads. Here's the program in CuPy, which is NumPy on a GPU:
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
# (The file is `notebooks/nsight/heat.py`.) Most people would begin with `new`, since that's where the arithmetic is. Would you? This bet stays open until the end of the page:

# %% id=08-line guess
# Which of these lines do you change first, if a change should gain much and cost you little?
#
# - `assign`: `u[1:-1, 1:-1] = new`, the assignment
# - `change`: `change = ...`, which asks whether anything still moves
# - `new`: `new = ...`, the arithmetic

# %% [markdown] id=share-text
# Now take a step from the middle of the run. The plate has 256 x 256 points, and the step asks the GPU for ten pieces of work, one after the other. It takes 193 µs in all. To add two such plates, the GPU needs less than 2 µs.

# %% id=08-share guess within=0.4
# For how many of these 193 µs is the GPU at work?

# %% id=08-share reveal
from asyncgpu_course import LaneBar, draw_lanes, solved

annotated = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_annotated.sqlite"))
begins = [span.start for span in annotated.find("step") if span.kind == "range"]
one_step = annotated.between(begins[30], begins[31]).from_first()
calls = [span for span in one_step if span.kind == "call"]
(step_,), (new_,), (change_,) = (one_step.find(name) for name in ("step", "stencil", "is it still?"))


ORANGE, GREEN, BLUE = "#f0b840", "#6fd3b0", "#9ad5f7"


def draw_step():
    lines = ("new", new_.start, new_.end), ("change", change_.start, change_.end)
    lines = [*zip((*lines, ("assign", change_.end, step_.end)), (ORANGE, GREEN, BLUE))]
    colours = [ORANGE] * 4 + [GREEN] * 5 + [BLUE]
    works = one_step.device_spans
    figure, axes = plt.subplots(figsize=(9, 2.4))
    lanes = [("lines", [LaneBar(start, end, colour, line) for (line, start, end), colour in lines])]
    for lane, spans in ("host's calls", calls), ("GPU", works):
        lanes.append((lane, [LaneBar(s.start, s.end, colour) for s, colour in zip(spans, colours)]))
    draw_lanes(axes, lanes)
    words = "add", "add", "add", "divide", "sub", "abs", "max", "", "copy", "copy"
    for span, word in zip(works, words):
        axes.text(span.start + (4 if word == "max" else 1), 2.42, word, ha="center", va="top")
    axes.set(xlim=(0, None), ylim=(2.9, -0.5), xlabel="µs")
    axes.set_title("The plate on an H200: step 30 of sixty. Colours: the line that asks for it")
    told = f"{len(calls)} calls, and {len(works)} pieces of work for the GPU"
    each = "; ".join(f"{line} from {start:.0f} to {end:.0f} µs" for (line, start, end), _ in lines)
    alt = f"Three lines of the program, one after the other: {each}. Below them, {told}. Each is short, and "
    spoken = ", ".join(word or "max again" for word in words)
    shown(figure, f"{alt}comes right after its call: {spoken}.", f"{told}.")


m = one_step.metrics()
part = m.device_active / m.makespan
reveal("08-share", round(m.device_active), draw_step, busy=m.device_active, whole=m.makespan)

# %% id=08-share told truth=17
# It works for {busy:.0f} of {whole:.0f} µs. The lower row is the GPU. It gets ten pieces of work: four for `new`, five for `change` (a subtraction, an `abs`, two for `max`, and a copy for `float`), and one for the assignment. Most take a microsecond or two, and then the GPU has nothing to do until the next one arrives. So infinitely fast kernels would make this step a tenth shorter at most.

# %% [markdown] id=share-read
# ### A loop
#
# Look before you touch anything, in a loop:
#
# 1. **Annotate**: name the parts of the program.
# 2. **Profile**: record a run.
# 3. **Read**: say in one sentence what the end of the program is waiting for.
# 4. **Fix** that, and only that.
# 5. **Profile again**: was it a fix?
#
# Everybody enjoys 2 and 4. This page and the next are about 3 and 5.

# %% id=share-check tags=asserts
assert 0.08 < part < 0.1
assert round(m.makespan) == 193
assert len(calls) == len(one_step.device_spans) == 10
assert sorted(span.duration for span in one_step.device_spans)[-2] < 1.7
assert [new_.start <= s.start < new_.end for s in calls] == [True] * 4 + [False] * 6
assert [change_.start <= s.start < change_.end for s in calls] == [False] * 4 + [True] * 5 + [False]
assert all(a.start < b.start for a, b in zip(calls, one_step.device_spans))

# %% [markdown] id=reports
# ## Two commands
#
# The picture comes from a **report**, which two commands make:
#
# ```text
# nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none -o heat python heat.py
# nsys export --type=sqlite -o heat.sqlite heat.nsys-rep
# ```
#
# The first writes down each call into CUDA and each piece of the GPU's work. The second makes a database of that, which `agt.Trace.from_nsys` reads. (For a program of your own, `asyncgpu-tutor profile -- python my.py` runs both.) Recording costs CPU time, so compare a report only with another report.

# %% id=reports-check tags=asserts
heat = agt.Trace.from_nsys(agt.Trace.recorded_file("heat.sqlite"))
stats = agt.Trace.recorded_file("heat.stats.txt").read_text()
assert "277,248        180" in stats
assert abs(sum(s.duration for s in heat.find("cupy_add__float32_float32_float32")) - 277.248) < 0.01

# %% [markdown] id=read
# ## Five questions
#
# The plate can wait until you can read a report. Here's **exhibit A**, a report of a small program with one thing wrong, and its author's note:
#
# *"Four chunks, four streams. Each chunk is copied to the GPU, worked on and copied back. Why do they take turns?"*

# %% id=exhibit-a
a = report("A")
a.plot(
    title="Exhibit A",
    lanes=("host", "streams"),
    lesson="A staircase. A range such as chunk 0 holds a chunk's three calls. "
    "After it comes a wait.",
)

# %% [markdown] id=five
# Don't stare at it. Ask five questions:
#
# 1. **Is the GPU busy?** If it is, go on with question 3.
# 2. **Why does it stand still?** Some work ends each pause. What had it been waiting for?
# 3. **What is it busy with?** Copies, or kernels? Do they overlap?
# 4. **What is the end waiting for?** What did the last piece of work have to wait for, and what did *that* wait for, and so on? This chain has to get shorter.
# 5. **What does the host do?** Does it make calls, or wait? If neither, it has work of its own, mostly Python.
#
# For the second, `agt.analyse` names a cause for each pause. Here there are two: `host late`, because the host hadn't asked for the next piece of work yet, and `start-up`, the moment that any work takes to start.

# %% id=analyse-a
def of_host(trace):
    """How long the host was in calls, waited, and did neither, from its first call."""
    spans = [span for span in trace if span.kind in ("call", "wait")]
    calls = sum(span.duration for span in spans if span.kind == "call")
    waits = sum(span.duration for span in spans if span.kind == "wait")
    return calls, waits, max(s.end for s in spans) - spans[0].start - calls - waits


m = a.metrics()
print(f"1. the GPU is busy for {m.device_active:.0f} of {m.device_makespan:.0f} µs")
for cause, us in agt.analyse(a).idle_by_cause.items():
    if us:
        print(f"2. {cause}: {us:.0f} µs")
print(f"3. two streams at work at once: {m.overlap:.0f} µs")
awaited = [span for span in m.critical_spans if span.on_device]
print(f"4. the end waits for {len(awaited)} of {len(a.device_spans)} pieces of work")
called, waited, own = of_host(a)
print(f"5. the host: {called:.0f} µs in calls, {waited:.0f} waiting, {own:.0f} neither")

# %% [markdown] id=five-answers
# The GPU stands still for a quarter of the time, mostly because the host is late, and the end waits for every single piece of work. In one sentence: **the GPU waits for the host, because the host waits for the GPU.**
#
# That was a lot of numbers, so here's a card to keep beside you. `m` is `trace.metrics()`:
#
# | number | of what |
# |---|---|
# | `m.device_makespan` | *the run*, from the GPU's first work to its last, here 857 µs |
# | `m.device_active`, `m.device_idle` | how long the GPU is busy in it, and stands still |
# | `m.overlap` | how long two streams or more are at work at once |
# | `m.makespan` | everything in the trace. The host's first calls come before the run |
# | `m.critical_spans` | the chain that the end waits for |
# | `agt.analyse(trace).idle_by_cause` | why the GPU stands still |

# %% id=five-check tags=asserts
idle = agt.analyse(a).idle_by_cause
assert idle["host late"] > 2 * (m.device_idle - idle["host late"])
assert 0.2 < m.device_idle / m.makespan < 0.3
assert m.overlap == 0
assert round(m.device_makespan) == 857
assert len(awaited) == len(a.device_spans) == 12
assert m.host["wait"] > 3 * m.host["call"]
assert of_host(a)[:2] == (m.host["call"], m.host["wait"])

# %% [markdown] id=annotate
# ## Names
#
# A profiler sees kernels, copies and calls, but only you know what they're *for*. A **range** is a stretch of the host's time with a name, and NVIDIA's profilers take names through a small library, NVTX. Here's the plate with names:
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
# (The first picture is a step of this program.) How long did the ranges take?

# %% id=ranges-sums
def durations(trace, name):
    return [span.duration for span in trace.find(name) if span.kind == "range"]


names = "step", "stencil", "is it still?"
step, stencil, still = (durations(annotated, name) for name in names)
for name, us in (("stencil", stencil), ("is it still?", still)):
    print(f"{name:12} {sum(us):9,.0f} µs in all.", end=" ")
    print("The first five times:", *[f"{x:,.0f}" for x in us[:5]])

# %% [markdown] id=part-read
# The sums are true, and they mislead. In the first step CuPy fetches its kernels and CUDA loads them. That happens once, takes as long as 800 other steps, and drowns them. So when something happens many times, look at the *list*. Its **median** tells you what's usual, since a few odd values do it no harm.

# %% id=part-check tags=asserts
assert sum(stencil) > 0.7 * sum(step)
assert np.median(stencil) < np.median(still)
assert sum(stencil) > 2 * sum(still)
assert 770 < (stencil[0] + still[0]) / ((begins[40] - begins[20]) / 20) < 830

# %% [markdown] id=exercise-costliest
# ### Exercise: what costs most?
#
# `names` lists the names of some ranges. In a run of a million steps, which of them would cost most in all? Return its name. Some ranges come in every step and some in every twentieth, and in the long run they go on as they do in `trace`. But a few of a range's times may be accidents that won't come again, early or late. So reckon with a typical time. A range is a span whose `kind` is `"range"`.

# %% id=08-costliest starter
def costliest(trace, names): ...

# %% id=08-costliest solution
def costliest(trace, names):
    def cost(name):
        us = [span.duration for span in trace.find(name) if span.kind == "range"]
        return len(us) * np.median(us)

    return max(names, key=cost)

# %% id=08-costliest hints
# Give each name a number, and return the name with the largest: `max(names, key=...)`. What number says what a range costs in the long run?
#
# The median is one typical time. But in one of the reports `is it still?` takes longer than `stencil` and happens in every twentieth step only.
#
# `len(us) * np.median(us)`, where `us` has the durations of the ranges of that name. Leave out other spans of the name: look at `kind`.

# %% id=08-costliest explanation
# It's the typical time, times how often it happens. By the sums, `stencil` costs three times as much as `is it still?`. In a typical step it takes 71 µs, and `is it still?` takes 84. The mean of all, the first among them, would have told you that a step has 2,704 µs, which isn't the length of *any* step.

# %% id=08-costliest-check
check("08-costliest", costliest)

# %% [markdown] id=share-of-what
# ## A share of what?
#
# Nsight Systems has sums of its own. Another program, `swarm.py`, moves 100,000 particles on an H100. It's slow, so its author asks which kernel costs most:
#
# ```text
# nsys stats --report=cuda_gpu_kern_sum swarm.sqlite
# ```

# %% id=large-stats-print
told = agt.Trace.recorded_file("swarm.stats.txt").read_text()
for line in told.splitlines()[4:9]:
    print(line[:150].rstrip())

swarm = agt.Trace.from_nsys(agt.Trace.recorded_file("swarm.sqlite"))
m = swarm.metrics()
busy, run = m.device_active / 1000, m.device_makespan / 1000
print(f"\nThe GPU is busy for {busy:.1f} of the run's {run:.1f} ms.")

# %% id=08-spared guess
# `cupy_add` has 85.5 percent, so somebody starts to write a faster one. If it took no time at all, by how many percent would the run get shorter? (To the nearest whole percent.)

# %% id=08-spared reveal
add = swarm.find("cupy_add__float32_float32_float32")
awaited = [span for span in m.critical_spans if span.on_device]
facts = {"add": sum(s.duration for s in add) / 1000, "whole": m.makespan / 1000}
facts |= {"links": len(m.critical_spans), "work": len(awaited)}
saved = round(100 * sum(span.duration for span in awaited) / m.makespan)
reveal("08-spared", saved, **facts)

# %% id=08-spared told truth=0
# The whole trace, with the host's first calls, has {whole:.1f} ms. `cupy_add` runs for {add:.1f} of them, and the end never waits for it: the chain that it waits for has {links:,} links, and {work} of them are work of the GPU.
#
# The table didn't lie, but we forgot to ask: percent of *what*? Of the time in which kernels run. Of the whole run, `cupy_add` has 3.2 percent, and you don't even get those. The chain has only the host in it: a fifth of the time in calls, and the rest in Python. So faster kernels would make the pauses between them longer, and nothing else. **A share is not a saving.**

# %% id=spared-check tags=asserts
assert len(m.critical_spans) == 15_300
assert {span.kind for span in m.critical_spans} == {"call", "wait"}
assert awaited == []
assert 0.2 < of_host(swarm)[0] / m.makespan < 0.21
assert of_host(swarm)[1] < 0.001 * m.makespan
assert m.device_active < 0.04 * m.device_makespan
assert 3.1 < 100 * sum(span.duration for span in add) / m.makespan < 3.25
assert "85.5       15,136,904     13,200" in told
assert len(add) == 13_200
assert abs(sum(span.duration for span in add) - 15_136.904) < 0.01

# %% [markdown] id=exercise-stats
# ### Exercise: what would it save?
#
# So build the number that the table lacks. `name` is the name of a kernel. Return two percentages:
#
# - the kernel's share of the time of *all kernels*, which is what `nsys stats` tells
# - how much of `trace.metrics().makespan` you'd save at most if it took no time. Only launches that the end waits for count here: `trace.metrics().critical_spans` has the chain.

# %% id=08-stats starter
def saving(trace, name): ...

# %% id=08-stats solution
def saving(trace, name):
    def spent(spans):
        return sum(span.duration for span in spans if span.name == name)

    m = trace.metrics()
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    awaited = [span for span in m.critical_spans if span.kind == "kernel"]
    share = spent(kernels) / sum(span.duration for span in kernels)
    return 100 * share, 100 * spent(awaited) / m.makespan

# %% id=08-stats hints
# A copy is work, too, but it isn't a kernel, and a range may have a kernel's name: look at `span.kind`.
#
# The first: the durations of the kernels called `name`, summed, by those of all kernels.
#
# For the second, sum the kernels of that name among `trace.metrics().critical_spans`, and divide by `trace.metrics().makespan`.

# %% id=08-stats explanation
# In the swarm it's 85.5 percent and nothing, in exhibit G 100 percent and 55. The first number has the same kernel in both programs, and knows nothing of who waits for it. "At most", because with one link of the chain gone, another chain may be as long.

# %% id=08-stats-check
check("08-stats", saving)

# %% id=stats-check tags=asserts
assert [round(us) for us in solved("08-stats")(report("G"), "sgemm_naive")] == [100, 55]

# %% [markdown] id=large
# ## Slower and slower
#
# Back to the swarm, which takes 160 steps. Its author has noticed something: *"It starts out fine, and then it gets slower and slower. But none of my arrays grows!"* Here's all of it:

# %% id=large-look
print(f"{len(swarm):,} spans")
without = [span for span in swarm if not span.name.startswith("cub::")]
replace(swarm, spans=without).plot(
    title="swarm.py on an H100",
    lanes=("host", "streams"),
    lesson="The host's rows, from the top: steps, their parts, and calls. Thin bars "
    "are gathered, and drawn as high as they are busy, 4 percent on the GPU. There is "
    "a hole of 138 ms in the middle. And are the steps, left to right, equally wide?",
)

# %% [markdown] id=large-number
# Thirty thousand bars, and nobody reads them one by one. So let's draw one number of each step, how long it takes:

# %% id=large-curve
wide = np.array(durations(swarm, "step")) / 1000
figure, axes = plt.subplots(figsize=(8, 2))
axes.plot(range(1, 161), wide)
axes.annotate(f"step 100: {wide[99]:.0f} ms", (102, 4.1))
axes.set(title="How long each step takes", xlabel="step", ylabel="ms", ylim=(0, 4.5))
some = [f"step {i}: {wide[i - 1]:.1f} ms" for i in (2, 40, 80, 120, 160)]
shown(figure, "A curve with one spike, at step 100.", ", ".join(some))

# %% [markdown] id=large-read
# The author is right. So what about the hole? Ask what ended it:

# %% id=large-gap
gap = agt.analyse(swarm).gaps[0]
print(f"{gap.duration / 1000:.0f} ms, {gap.main.cause}: then came {gap.main.span.name}")
all_ranges = [span for span in swarm if span.kind == "range"]
around = [s.name for s in all_ranges if s.start <= gap.start and gap.end <= s.end]
print("ranges around it:", *around)

# %% [markdown] id=large-stats
# Step 100 centres the particles for the first time, and CuPy compiles a kernel for that. (Our program says so, not the report.) It's 29 percent of this run, but it happens once, so leave it. And what does `agt.diagnose` say, the course's own detective?

# %% id=large-diagnose
found = agt.diagnose(swarm)[0]
print(found.name, "-", found.sentence)

# %% [markdown] id=large-verdict
# `host-bound` is right, and no answer. A finding sums up a run, and the author asked how the run *changes*, which only you can look for.

# %% [markdown] id=exercise-creeping
# ### Exercise: what grows?
#
# Return the name of the range that grows most: divide the median duration of its last ten by the median of its first ten. Leave out names with fewer than twenty ranges, where a single odd value decides.

# %% id=08-creeping starter
def creeping(trace): ...

# %% id=08-creeping solution
def creeping(trace):
    times = {}
    for span in trace:
        if span.kind == "range":
            times.setdefault(span.name, []).append(span.duration)
    many = {name: us for name, us in times.items() if len(us) >= 20}
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in many.items()}
    return max(grown, key=grown.get)

# %% id=08-creeping hints
# First collect the durations by name, in a dict of lists. A trace has its spans in the order of time.
#
# `np.median(us[-10:]) / np.median(us[:10])` says how many times as long a range has become.
#
# `max(grown, key=grown.get)` is the key with the largest value.

# %% id=08-creeping explanation
# `watch` takes twelve times as long at the end as at the beginning. `step` takes five times as long, but only because it has `watch` inside: a range is charged for everything in it, so look for the *innermost* one that grows. A sum finds what is expensive, and only a comparison over time finds what is *becoming* expensive.

# %% id=08-creeping-check
check("08-creeping", creeping)

# %% [markdown] id=watch
# Here's `watch`, which keeps an eye on the mean energy:
#
# ```python
#             with nvtx.annotate("watch"):
#                 energies.append((v * v).sum())
#                 mean = sum(energies) / len(energies)
# ```
#
# No array grows. But something does, and it costs launches of kernels. In its first step, the program makes 14.

# %% id=08-launches guess within=0.1
# How many launches does step 160 make?

# %% id=08-launches reveal
steps = [span for span in swarm.find("step") if span.kind == "range"]
asked = [span.start for span in swarm if span.kind == "call" and span.name.startswith("launch")]
counts = [sum(one.start <= us < one.end for us in asked) for one in steps]
reveal("08-launches", counts[159], second=counts[1], middle=counts[79], last=counts[159])

# %% id=08-launches told truth=173
# It's {last:.0f}. Step 2 makes {second:.0f}, and step 80 {middle:.0f}: one more in each step. The list `energies` grows, its numbers are on the GPU, and Python's `sum` launches a kernel for each of them.

# %% [markdown] id=large-cause
# Against small kernels, the course has a cure: a graph ([chapter 09](09_cuda_graphs.ipynb)). But it would speed up work that nobody needs, because a running total takes one addition a step. **A tool finds where the time goes. Whether the work has to be done at all, you have to ask yourself.**

# %% id=large-check tags=asserts
assert len(swarm) == 31_400
assert [found.name for found in agt.diagnose(swarm)[:2]] == ["host-bound", "small kernels"]
assert len([span for span in swarm.device_spans if span.kind == "kernel"]) == 14_967
assert 0.285 < gap.duration / swarm.metrics().makespan < 0.295
assert 137_900 < gap.duration < 138_100
assert gap.main.cause == "host late"
assert [counts[i] for i in (0, 1, 79, 159)] == [14, 15, 93, 173]
watches = [span.duration for span in swarm.find("watch")]
assert 11 < np.median(watches[-10:]) / np.median(watches[:10]) < 12.5
centred = [steps.index(s) for s in steps if s.start <= gap.start and gap.end <= s.end]
assert centred == [99]

# %% [markdown] id=plate-again
# ## Back to the plate
#
# Your first bet is open. Maybe you pointed at `change`, since `float` makes the host wait for the GPU in every step. How bad is that? (From now on, a step is the mean of twenty, from step 20 on. A median wouldn't see what happens in one of twenty.)

# %% id=plate-diagnose
def pace(trace):
    starts = [span.start for span in trace.find("step") if span.kind == "range"]
    return (starts[40] - starts[20]) / 20


def spent(trace, name):
    steps = [span.start for span in trace.find("step") if span.kind == "range"]
    spans = [span for span in trace.find(name) if span.kind == "range"]
    return sum(s.duration for s in spans if steps[20] <= s.start < steps[40]) / 20


look = spent(annotated, "is it still?")
print(f"of {pace(annotated):.0f} µs for a step, 'is it still?' has {look:.0f}")

# %% id=08-wait guess
# `is it still?` is the line with `change`, and takes 90 µs. It asks the GPU for a number, and the GPU has to work it out. If the host never had to wait there, how much of the 90 µs would be left?
#
# - `little`: 20 or less
# - `half`: about half
# - `most`: more than 80

# %% id=08-wait reveal
a_look = one_step.between(change_.start, change_.end).from_first()
(waiting,) = [span for span in a_look if span.kind == "wait"]
called = [span for span in a_look if span.kind == "call"]


def draw_look():
    host = [LaneBar(0, change_.duration, "white", meaning="Python and CuPy", hatch="///")]
    host += [LaneBar(s.start, s.end, GREEN, meaning="a call") for s in called]
    host += [LaneBar(waiting.start, waiting.end, "#d55e00", meaning="the wait")]
    figure, axes = plt.subplots(figsize=(8, 1.8))
    gpu = [LaneBar(s.start, s.end, GREEN) for s in a_look.device_spans]
    draw_lanes(axes, [("host", host), ("GPU", gpu)])
    axes.set(xlabel="µs", title='One "is it still?", in step 30')
    told = f"{len(called)} calls, one wait, and Python and CuPy between them"
    shown(figure, f"The host, from left to right: {told}, which take the most. The GPU has five short bars.")


looks = [span for span in annotated.find("is it still?") if span.kind == "range"][20:40]
inside = [annotated.between(span.start, span.end).metrics().host for span in looks]
calls, waits = (np.mean([host[kind] for host in inside]) for kind in ("call", "wait"))
between = look - calls - waits
facts = {"wait": waits, "calls": calls, "between": between}
left = (look - waits) / look
truth = "most" if left > 0.88 else "half" if left > 0.25 else "little"
reveal("08-wait", truth, draw_look, **facts)

# %% id=08-wait told truth=most
# It waits for {wait:.0f} µs, is in calls for {calls:.0f}, and between the calls for {between:.0f}. (Or it waits for 12, if the copy's whole call is a wait.) The GPU is done almost as soon as it's asked, so there's hardly anything to wait for. What costs is the asking: the calls, and the Python around them.

# %% [markdown] id=plate-repair
# ### Ask for less
#
# The host makes ten calls a step, five of them in this line. So let's ask for less, with one kernel and a swap, and look in every twentieth step only. (That's two things at once, against our own rule.)
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

# %% id=plate-pace
fused = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_repaired.sqlite"))
print(f"a step took {pace(annotated):.0f} µs, and now takes {pace(fused):.0f}")


def from_first_call(trace):
    return max(s.end for s in trace) - min(s.start for s in trace if s.kind == "call")

# %% id=08-whole guess within=0.1
# So a recorded step is about six times as fast. The program has sixty. From its first call into CUDA to its end, how many times as fast is the whole program?

# %% id=08-whole reveal
old, new = from_first_call(annotated), from_first_call(fused)
alloc = next(span for span in annotated if span.kind == "call")
facts = {"old": old / 1000, "new": new / 1000, "alloc": alloc.duration / 1000, "first": step[0] / 1000}
facts["plate"] = (begins[0] - alloc.end) / 1000
reveal("08-whole", round(old / new, 2), **facts)

# %% id=08-whole told truth=1.07
# {old:.0f} ms became {new:.0f}. Of the old ones, the first call into CUDA has {alloc:.0f}, the rest of making the plate {plate:.0f}, and the first step {first:.0f}. Such things happen once, in either program, and the other 59 steps take a hundredth of a second.

# %% [markdown] id=whole-why
# ### Is it a gain?
#
# It's 7 percent, isn't it? Here are all four reports of the plate, from their first calls on:

# %% id=whole-runs
plates = ("heat", "heat_annotated", "heat_looks_less", "heat_repaired")
files = [agt.Trace.recorded_file(f"{name}.sqlite") for name in plates]
reports = [agt.Trace.from_nsys(file) for file in files]
runs = [from_first_call(trace) for trace in reports]
for name, us in zip(plates, runs):
    print(f"{name:16} {us / 1000:6,.0f} ms")

# %% [markdown] id=whole-read
# The first two run the same code, names apart, and one took 3.6 times as long, because of what happens once. In the third, the first `stencil` has 644 ms and the first look 286, against 115 and 35 in the second. So 7 percent between two single runs is nothing. What did the repair gain, then? **That depends on how many steps you run**, and you can say it without another recording.
#
# ### Exercise: how many steps are enough?
#
# A run of `n` steps takes `once + n * pace`. What happens `once` stays, whatever you do to the loop, so say that it's the same for both programs. A step takes `old` µs in one and `new` µs in the other. Return from how many steps on the second program is `times` as fast as the first (a fraction of a step is fine), or `np.inf` if it never is.

# %% id=08-enough starter
def enough(once, old, new, times): ...

# %% id=08-enough solution
def enough(once, old, new, times):
    gained = old - times * new
    return (times - 1) * once / gained if gained > 0 else np.inf

# %% id=08-enough hints
# Write down both runs. The second is `times` as fast if `once + n * old` is `times * (once + n * new)`.
#
# Solve that for `n`: bring everything with `n` to the left, and everything with `once` to the right.
#
# `n * (old - times * new) = (times - 1) * once`. And if the bracket isn't positive, no `n` will do.

# %% id=08-enough explanation
# What happens once holds every program back: the shorter the run, the less a quicker step can gain. And the longest run gains no more than `old / new`, so with `times` beyond that, the bracket is negative. (People who make programs parallel know this as Amdahl's law.)

# %% id=08-enough-check
check("08-enough", enough)

# %% [markdown] id=enough-text
# Now hand it the plate's numbers:

# %% id=draw-enough tags=helpers
def draw_enough(once, old, new):
    n = np.logspace(1, 7, 200)
    gains = [(k, (once + k * old) / (once + k * new)) for k in (60, 1e3, 1e4, 1e5, 1e6)]
    figure, axes = plt.subplots(figsize=(9, 2.6))
    axes.semilogx(n, (once + n * old) / (once + n * new))
    for (steps, gain), text in zip((gains[0], gains[-1]), ("your colleague's 60", "a million")):
        axes.plot(steps, gain, "o", color="tab:red")
        axes.annotate(f"{text}: {gain:.2f}", (steps, gain), (steps, gain + 0.4), ha="center")
    title = "How many times as fast is the repaired plate?"
    axes.set(ylim=(0.5, 7), title=title, xlabel="steps of a run")
    axes.spines[["top", "right"]].set_visible(False)
    told = "; ".join(f"{steps:,.0f} steps: {gain:.2f} times as fast" for steps, gain in gains)
    shown(figure, f"A curve that is flat at first, rises, and is flat again. {told}.")

# %% id=enough-run
once = from_first_call(annotated) - 60 * pace(annotated)
for times in (1.1, 2, 5, 6):
    n = solved("08-enough", enough)(once, pace(annotated), pace(fused), times)
    print(f"{times:3} times as fast: from {n:6,.0f} steps on")
draw_enough(once, pace(annotated), pace(fused))

# %% [markdown] id=enough-read
# So sixty steps gain 3 percent, which nobody will ever notice. Two and a half thousand are done in half the time. A million would take more than three minutes, and now 33 seconds. No run gets quite as much as a step does.
#
# Who won the first bet? Here's where a step's time goes, with none of the changes, one and both:

# %% id=plate-split
less = reports[2]
programs = {"as it was": annotated, "fewer looks": less}
programs["fewer looks, one kernel"] = fused
split = {}
for what, trace in programs.items():
    stepping, seeing = spent(trace, "stencil"), spent(trace, "is it still?")
    split[what] = stepping, seeing, pace(trace) - stepping - seeing

# %% id=08-line reveal
def draw_split():
    figure, axes = plt.subplots(figsize=(7.5, 2.2))
    parts = ("stencil (new)", ORANGE), ("is it still? (change)", GREEN), ("the rest", BLUE)
    lanes, told = [], []
    for what, row in split.items():
        ends = [0, *accumulate(row)]
        bars = zip(ends, ends[1:], row, parts)
        lanes.append((what, [LaneBar(a, b, hue, f"{us:.0f}", part) for a, b, us, (part, hue) in bars]))
        numbers = ", ".join(f"{part} {us:.0f}" for us, (part, _) in zip(row, parts))
        told.append(f"{what}: {numbers}")
    draw_lanes(axes, lanes)
    axes.set_xlabel("µs of a recorded step")
    shown(figure, f"µs of a recorded step. {'; '.join(told)}.")


kernel, look, rest = split["as it was"]
reveal("08-line", "change", draw_split, new=kernel, change=look, rest=rest)

# %% id=08-line told truth=change
# Of a step as it was, `new` has {new:.0f} µs, `change` {change:.0f}, `assign` less than {rest:.0f}. On time, `new` and `change` are a tie. A repair doesn't just remove its own bar. With fewer looks, one of twenty stays, and takes 300 µs instead of 90. Some 200 of them are Python and CuPy between the calls. Why they're slower if they come so seldom, the report can't say. And with one kernel, there's a swap, which replaces the assignment as well. So the price that the question named decides. Fewer looks take a minute to write, and nineteen steps too many at most. (Don't subtract rows. They're different runs: `stencil`, the same code in the first two, took half as long again in the second.)
#
# If you said `change` because `float` waits, you had the right line and the wrong reason. And `new` isn't long because of its arithmetic: in the first picture, its four kernels take 6 µs.
#
# Without a profiler, measured once on an H100, a step took 200 µs as it was, 105 with fewer looks, 112 with one kernel, and 15 with both. These are medians of five runs, which differ by more than those 7 µs (see `benchmarks/README.md`).
#
# So this is your answer: *"Look less often, and then fuse the arithmetic. But if you only ever run sixty steps, leave it as it is, and have a coffee."*

# %% id=plate-check tags=asserts
firsts = [t.find(n)[0].duration / 1000 for t in reports[2:0:-1] for n in ("stencil", "is it still?")]
assert [round(ms) for ms in firsts] == [644, 286, 115, 35]
late = [s for s in less.find("is it still?") if s.kind == "range"][-1]
late_calls = [s for s in less.between(late.start, late.end) if s.kind in ("call", "wait")]
assert 180 < late.duration - sum(s.duration for s in late_calls) < 250
assert 5.5 < pace(annotated) / pace(fused) < 6.5
assert [[round(us) for us in row] for row in split.values()] == [[75, 90, 26], [114, 16, 32], [13, 14, 5]]
assert 6 < sum(s.duration for s in one_step.device_spans[:4]) < 6.2
assert 58 < between < 59
assert 1.5 < split["fewer looks"][0] / kernel < 1.55
assert abs(np.median(still) - 84) < 1
assert abs(np.median(stencil) - 71) < 1
assert abs(np.median(step) - 177) < 1
assert round(pace(annotated)) == 190
assert np.mean(step[20:40]) > pace(annotated) - 4
assert 2_700 < np.mean(durations(annotated, "step")) < 2_710
assert 0.3 < calls / spent(annotated, "is it still?") < 0.4
assert waits < 2.5
assert [round(us / 1000) for us in (alloc.duration, step[0], old, new)] == [114, 151, 305, 285]
assert round((begins[0] - alloc.end) / 1000) == 28
assert spent(fused, "stencil") < 14
first_look, *other_looks = [s.duration for s in fused.find("is it still?") if s.kind == "range"]
assert first_look > 400 * max(other_looks)
assert alloc.name == "malloc"
assert 1.065 < old / new < 1.075
assert 10_500 < sum(step[1:]) < 11_500
assert 0.45 < np.median(still) / np.median(step) < 0.5
assert [round(us / 1000) for us in runs] == [1104, 305, 1429, 285]
assert 3.55 < runs[0] / runs[1] < 3.65
assert 180 < pace(annotated) < 200  # a million of them: more than three minutes
assert round(pace(fused)) == 33
assert round((once + 60 * pace(annotated)) / (once + 60 * pace(fused)), 2) == 1.03
assert agt.diagnose(one_step)[0].name == "host-bound"
copy_calls = [s.duration for s in one_step if s.name == "enqueue d2h"]
assert sum(copy_calls) + waiting.duration < 13  # a part of this call may be a wait, too
assert min(waits, calls) > 0
assert between > look / 2

# %% [markdown] id=key-points
# ## Key points
#
# - Profile before you fix anything, because your first guess is often wrong, or right for the wrong reason.
# - A sum hides what happened once, so look at the list. Its median tells you what's usual.
# - A share of the time isn't a saving: ask what it's a share of, and what the end is waiting for.
# - If a program gets slower and slower, compare its last steps with its first ones, and then ask whether the growing work has to be done at all.
# - What a repair gains depends on the run. No change to a loop takes away what happens once, so ask how many steps before you say how many times as fast.
#
# **Next:** in [08b_detective](08b_detective.ipynb) you write a detective, repair what it finds, and make a slow server six times as fast. If you'd rather have your host make fewer calls at once, go straight to [09_cuda_graphs](09_cuda_graphs.ipynb), which doesn't need 08b.

# %% id=score
score("08")

# %% id=progress
progress("08")

# %% [markdown] id=encores
# ## Encores
#
# These are in any order, for another day. They use what the page has defined above.

# %% [markdown] id=across
# ### Names and `await`
#
# Here are three tasks, each in a range of its own. (`watched()` is `agt.record()` with ranges.) They run twice, with two kinds of range. The first is `ranges.span`, which works like `nvtx.annotate`: a thread keeps its open ranges on a stack, and at the end of a `with` block it closes the one on top. The second is `ranges.across`.

# %% id=across-run
async def task(name, us, kind):
    with kind(name):
        await agt.sleep(us)


async def three(kind):
    times = {"short": 5_000, "long": 20_000, "middle": 10_000}
    with watched() as trace:
        await asyncio.gather(*[task(name, us, kind) for name, us in times.items()])
    return trace

# %% id=08-stacked guess within=0.1
# The tasks open their ranges in this order: `short` (5 ms), `long` (20) and `middle` (10). With `span`, how many ms long is the range called `long`?

# %% id=08-stacked reveal
crossed = [await three(ranges.span), await three(ranges.across)]
picture = agt.compare_timelines(crossed, ["with span", "with across"], lanes=("host",))
(long,) = crossed[0].find("long")
reveal("08-stacked", round(long.duration / 1000, 1), picture)

# %% id=08-stacked lesson
# Above, the range called short lasts for 20 ms, long for 10, and middle for 5. Below, each lasts as long as its task.

# %% id=08-stacked told truth=10
# Whoever is done closes the range on top, and that's never its own here:
#
# > **Misconception: a range shows what its block did.**
# >
# > - *What you see:* with `span`, the short task seems to be the long one.
# > - *Why:* closing a range closes the one on top of the thread's stack. While one task awaits, others put their own ranges there. `nvtx.annotate` and `torch.cuda.nvtx.range` work like this.
# >
# >   ```text
# >                    all are open           short is done    middle is done   long is done
# >   the stack        short, long, middle    short, long      short            (empty)
# >   what is closed                          middle, at 5     long, at 10      short, at 20
# >   ```
# > - *What helps:* use `agt.ranges.across` wherever there's an `await` in the block, because it remembers which range it opened. Use `agt.ranges.span` where there is none.

# %% id=across-check tags=asserts
if device.simulated:  # on a busy machine a real sleep takes longer than it was asked to
    for trace, right in zip(crossed, ((20, 10, 5), (5, 20, 10)), strict=True):
        measured = {span.name: span.duration for span in trace if span.kind == "range"}
        assert [round(measured[x] / 1000) for x in ("short", "long", "middle")] == [*right]

# %% [markdown] id=exercise-annotate
# ### Exercise: ranges around an `await`
#
# `handle` answers a request. Mark two ranges: `"prepare"` around the preparation and nothing else, and `"request"` around all of it. The check handles several requests together, and one of them fails. (Don't put the number into the name. The profiler keeps every name, and a server has millions of requests.)

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
# The outer range goes around both lines, with the `return`. The inner one goes around the first line only.

# %% id=08-annotate explanation
# `across` remembers which range it opened, so it does not matter who opens or closes others meanwhile. And `with` closes it, also when the request fails. The operations of this course
# mark themselves in the same way, under the names that you give them with `named`.

# %% id=08-annotate-check
check("08-annotate", handle)

# %% [markdown] id=exercise-gap
# ### Exercise: the idle multiprocessors
#
# A GPU that copies counts as busy, but copies have engines of their own, and the multiprocessors may have nothing to do all the while. Return `(start, end)`, in µs, of the longest time between two *kernels* in which no stream ran a kernel. `trace.device_spans` has all work, and each piece has a `kind`, a `start` and an `end`. (If there's always a kernel at work, return `(0.0, 0.0)`.)

# %% id=08-gap starter
def largest_gap(trace): ...

# %% id=08-gap solution
def largest_gap(trace):
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    kernels.sort(key=lambda span: span.start)
    done, gap = kernels[0].end, (0.0, 0.0)
    for span in kernels:
        if span.start - done > gap[1] - gap[0]:
            gap = done, span.start
        done = max(done, span.end)
    return gap

# %% id=08-gap hints
# Go through the kernels in the order of their starts, and keep in mind until when one of them was at work.
#
# That time is the *largest* end so far. A short kernel may start late and end early, while a long one beside it goes on.
#
# Keep it in a variable `done`, and update it after each kernel. There's a gap if the next kernel starts after `done`.

# %% id=08-gap explanation
# In exhibit A the whole GPU never pauses for longer than 55 µs, but its multiprocessors once have nothing to do for 229. In D it's a millisecond at a time. And comparing each kernel with the one before would find gaps that aren't there: a long kernel on another stream may still be running behind both. That's why you keep the *largest* end.

# %% id=08-gap-check
check("08-gap", largest_gap)

# %% [markdown] id=exercise-blame
# ### Exercise: whose request was it?
#
# A gap ends when some piece of work starts at last. The work's `name` says what it was, such as `h2d`, and its `label` which request it belonged to. Whose work was the host late for, and for how long in all? Return `(label, µs)` for the label with the most.
#
# `agt.analyse(trace).gaps` has the gaps, and `gap.parts` is what each consists of: a part has a `duration`, a `cause`, and the `span` that started at last. For example, a gap of 30 µs may have a part of 20 µs with the cause `"host late"` and one of 10 with `"start-up"`, both with a copy for `chunk 1` as their `span`. Then `chunk 1` gets 20 µs, since only `"host late"` counts here: the host hadn't asked for the work yet.

# %% id=08-blame starter
def blame(trace): ...

# %% id=08-blame solution
def blame(trace):
    late = {}
    for gap in agt.analyse(trace).gaps:
        for part in gap.parts:
            if part.cause == "host late":
                late[part.span.label] = late.get(part.span.label, 0) + part.duration
    return max(late.items(), key=lambda item: item[1])

# %% id=08-blame hints
# Two loops, one in the other: over the gaps, and over the `parts` of each. Which of the parts count?
#
# Add up the durations by label, in a dict: `late[label] = late.get(label, 0) + part.duration`.
#
# `max(late.items(), key=...)` is the label with its sum.

# %% id=08-blame explanation
# A single long gap isn't always the one to blame: three short ones for one request may add up to more. The labels come from the program. Its operations have names, and so the report knows that a copy was for `chunk 1`. Our plate has no such names, and there the answer would be "some kernel, for somebody".

# %% id=08-blame-check
check("08-blame", blame)

# %% id=score-encores
score("08")

# %% [markdown] id=nsight
# ### NVIDIA's window
#
# Open a `.nsys-rep` in Nsight Systems with *File > Open*. It looks like a lot, but it's what you know, in another order. From top to bottom it has the GPU (all streams together, then each by itself), and below that each thread of the program, with your ranges above its calls into CUDA. A hole in the row *[All Streams]* is a gap, and calls with *Synchronize* in their names are waits. (The names of rows come from an older User Guide, 2023.4, and may differ in yours.)

# %% [markdown] id=nsight-read
# | you want to know | here | in Nsight Systems |
# |---|---|---|
# | whose work it is | label of a span | click on the work: its call is highlighted, and lies below a range |
# | when the GPU worked on what a range asked for | `analyse(trace).sums.ranges` | the range once more, below *CUDA HW*: it is **projected** there. Sum `nvtx_gpu_proj_sum` |
# | whether the host waits | dotted spans on the host's lane | *Synchronize* in *CUDA API*. Rule `cuda_api_sync` |
# | whether a copy was pageable | `span.detail["pageable"]` | its name, *Memcpy HtoD (Pageable)*. Rule `cuda_memcpy_async` |
# | where the gaps are | `analyse(trace).gaps` | holes in *[All Streams]*. Rule `gpu_gaps`, by default only those of half a second or more |
# | what takes how long | `analyse(trace).sums` | sums `cuda_gpu_kern_sum`, `cuda_gpu_mem_time_sum`, `cuda_api_sum` |
#
# Rules and sums are below the timeline, and on the command line: `nsys analyze` and `nsys stats`. [Profiling](../docs/profiling.md#nsight-systems-by-hand) has the rest, and the options of `nsys profile` that are worth knowing.
#
# Our exports are of an H200 and version 2025.3.2; those of `swarm.py`, and of the two GPUs in 08b, are of H100s and version 2025.3.1.
