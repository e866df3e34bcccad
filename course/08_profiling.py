"""Source of notebooks/08_profiling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Profiling: find out why it is slow
#
# A colleague sends you a program. It gives the right answer, it runs on an NVIDIA H200, and it's slow. **Which line do you change first?**
#
# By the end of the first sitting you'll know, and also whether to change anything at all. On the way you'll read reports by NVIDIA's profiler, Nsight Systems. In the second sitting you write a detective, and make a slow server quick.
#
# | | |
# |---|---|
# | Time | an hour, and 50 minutes for the second sitting, on another day. The encores can wait |
# | You need | [05_scheduling](05_scheduling.ipynb) and [06_await](06_await.ipynb). No GPU: the reports come with the course |

# %% id=setup
import asyncio
import warnings
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution, solved
from asyncgpu_course.exhibits import EXHIBITS, report, rounds
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
# (The file is `notebooks/nsight/heat.py`.) Most people would begin with `new`, since that's where the arithmetic is. Would you? This bet stays open until the end:

# %% id=08-line guess
# Which of these lines do you change first?
#
# - `assign`: `u[1:-1, 1:-1] = new`, the assignment
# - `change`: `change = ...`, which asks whether anything still moves
# - `new`: `new = ...`, the arithmetic

# %% [markdown] id=share-text
# Now take a step from the middle of the run. It asks the GPU for ten pieces of work, one after the other, and the plate has 256 x 256 points.

# %% id=08-share guess
# For how much of that time is the GPU busy?
#
# - `hundredth`: about a hundredth
# - `tenth`: about a tenth
# - `quarter`: about a quarter
# - `half`: about half
# - `most`: most of it

# %% id=08-share reveal
annotated = agt.Trace.from_nsys(agt.Trace.recorded_file("heat_annotated.sqlite"))
begins = [span.start for span in annotated.find("step") if span.kind == "range"]
one_step = annotated.between(begins[30], begins[31]).from_first()
calls = [span for span in one_step if span.kind == "call"]
(step_,), (new_,), (change_,) = (one_step.find(name) for name in ("step", "stencil", "is it still?"))


def draw_step():
    colours = ["tab:orange"] * 4 + ["tab:green"] * 5 + ["tab:blue"]
    _, axes = plt.subplots(figsize=(9, 2.8))
    for y, spans in zip((1, 0), (calls, one_step.device_spans)):
        axes.broken_barh([(s.start, s.duration) for s in spans], (y - 0.25, 0.5), facecolors=colours)
    words = "add", "add", "add", "divide", "sub", "abs", "max", "", "copy", "copy"
    for span, word in zip(one_step.device_spans, words):
        axes.text(span.start + (4 if word == "max" else 1), -0.32, word, ha="center", va="top")
    of_lines = (new_.start, new_.end), (change_.start, change_.end), (change_.end, step_.end)
    for (a, b), word, colour in zip(of_lines, ("new", "change", "assign"), (*colours[::4][:2], "tab:blue")):
        axes.hlines(1.5, a + 0.5, b - 0.5, color=colour, linewidth=3)
        axes.text((a + b) / 2, 1.58, word, ha="center", va="bottom", color=colour)
    axes.set(yticks=[1, 0], yticklabels=["host's calls", "GPU"], ylim=(-0.75, 2), xlabel="µs")
    axes.set_title("The plate on an H200: step 30 of sixty. Colours: the line that asks for it")
    axes.spines[["top", "right"]].set_visible(False)
    plt.show()
    print(f"{len(calls)} calls, and {len(one_step.device_spans)} pieces of work for the GPU")


m = one_step.metrics()
part = m.device_active / m.makespan
sizes = {"most": 0.7, "half": 0.35, "quarter": 0.17, "tenth": 0.03, "hundredth": 0}
truth = next(name for name, least in sizes.items() if part > least)
reveal("08-share", truth, draw_step, busy=m.device_active, whole=m.makespan)

# %% id=08-share told truth=tenth
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
# Everybody enjoys 2 and 4. This page is about 3 and 5.

# %% id=share-check tags=asserts
assert 0.08 < part < 0.1
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
# The plate can wait until you can read a report. Here are some **exhibits**: reports of small programs, each with a note from its author, and most with one thing wrong. This is A:
#
# *"Four chunks, four streams. Each chunk is copied to the GPU, worked on and copied back. Why do they take turns?"*

# %% id=exhibit-a
a = report("A")
a.plot(
    title="Exhibit A",
    lanes=("host", "streams"),
    lesson="A staircase. A range such as chunk 0 holds a chunk's three calls. After it comes a wait.",
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
    """How long the host was in calls, waited, and did neither, from its first call on."""
    spans = [span for span in trace if span.kind in ("call", "wait")]
    calls, waits = (sum(s.duration for s in spans if s.kind == kind) for kind in ("call", "wait"))
    return calls, waits, max(s.end for s in spans) - spans[0].start - calls - waits


m = a.metrics()
print(f"1. busy for {m.device_active:.0f} of {m.device_makespan:.0f} µs, from its first work to its last")
for cause, us in agt.analyse(a).idle_by_cause.items():
    if us:
        print(f"2. {cause}: {us:.0f} µs")
print(f"3. two streams at work at once: {m.overlap:.0f} µs")
awaited = [span for span in m.critical_spans if span.on_device]  # the chain of question 4
print(f"4. the end waits for {len(awaited)} of its {len(a.device_spans)} pieces of work, one after the other")
called, waited, neither = of_host(a)
print(f"5. the host: {called:.0f} µs in calls, {waited:.0f} waiting, and {neither:.0f} in neither")

# %% [markdown] id=five-answers
# The GPU stands still for a quarter of the time, mostly because the host is late, and the end waits for every single piece of work. In one sentence: **the GPU waits for the host, because the host waits for the GPU.** (The 857 µs from the GPU's first work to its last are what we call *the run*. The picture begins earlier.)

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


step, stencil, still = (durations(annotated, x) for x in ("step", "stencil", "is it still?"))
for name, us in (("stencil", stencil), ("is it still?", still)):
    print(f"{name:12} {sum(us):9,.0f} µs in all. The first five times:", *[f"{x:,.0f}" for x in us[:5]])

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
# `names` lists the names of some ranges. In a run of a million steps, which of them would cost most? Return its name. Each would come as often as it does in `trace`, some in every step and some in every twentieth. But its odd times are accidents that won't come again (the first may be one, or a later one, or several), so reckon with a typical time. (A range is a span whose `kind` is `"range"`.)

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
# ### A share of what?
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
print(f"\n1. busy for {m.device_active / 1000:.1f} of {m.device_makespan / 1000:.1f} ms")
called, waited, neither = (us / 1000 for us in of_host(swarm))
print(f"5. the host: {called:.1f} ms in calls, {waited:.2f} waiting, and {neither:.1f} in neither")

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
# `cupy_add` runs for {add:.1f} of {whole:.1f} ms, and the end never waits for it: the chain that it waits for has {links:,} links, and {work} of them are work of the GPU.
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

# %% [markdown] id=suspects
# ## The line-up
#
# Some faces are so common that it's worth knowing them. Leave the last column until you have numbers:
#
# | suspect | how to recognise it | what convicts it |
# |---|---|---|
# | `hidden synchronisation` | the host waits, and only then asks for more work | waits with calls after them have much of the run |
# | `pageable copy` | the host's calls for a copy last about as long as the copy itself | calls that copy *to* the GPU have much of the run |
# | `host-bound` | small pieces of work, far apart | the GPU stands still for more than half of the run |
# | `one big kernel` | one long kernel | it has at least half of the GPU's busy time, and a block for each of an H200's 132 multiprocessors |
# | `too few streams` | kernels right behind each other on a stream, while the GPU has room | even the longest kernel has fewer than 132 blocks, there are more kernels than streams, and the GPU hardly ever stands still |
# | `innocent` | it may look like any | none of these |
#
# Ask from top to bottom, and the first one that fits is it. The order matters, because whoever waits or copies ordinary memory leaves the GPU without work, too, and would look `host-bound`.
#
# You've met A. Here are four more. Guess at first sight, then look at the numbers, and guess again in the same cell if they change your mind. (`launch` and `enqueue` are calls by the host.) A name may come twice, or never. And careful: a face can lie, and so can an author.

# %% id=show tags=helpers
FACES = {
    "hidden synchronisation": "a host that waits and then asks for more",
    "pageable copy": "calls as long as their copies",
    "host-bound": "a host that's too slow to ask",
    "one big kernel": "a kernel with work for every multiprocessor",
    "too few streams": "work that queues, and room beside it",
    "innocent": "nothing of the kind",
}

def numbers(letter):
    trace = report(letter)
    m = trace.metrics()
    idle = m.device_idle / m.device_makespan
    print(f"The run takes {m.device_makespan:.0f} µs, and the GPU stands still for {idle:.0%} of it.")
    for work in dict.fromkeys(span.name for span in trace if span.kind != "range"):
        spans = trace.find(work)
        times = sorted(span.duration for span in spans)
        grid = spans[0].detail.get("grid")
        blocks = f"   blocks: {np.prod(grid)}" if grid else ""
        print(f"{len(spans):2} x {work:22} {times[0]:7.1f} to {times[-1]:7.1f} µs{blocks}")


def convicted(letter):
    named = [found.name for found in agt.diagnose(report(letter)) if not found.limit]
    return (named or ["innocent"])[0]


def show(letter, note, lesson):
    print(f"Its author says: {note}")
    lanes = "host", "streams"
    return report(letter).from_first().plot(title=f"Exhibit {letter}", lanes=lanes, lesson=lesson)


# %% id=exhibit-b
show("B", "The GPU is busy from start to end. I need a larger one, don't I?",
     "Six kernels of the same name on two streams.")

# %% id=08-suspect-b guess
# Which suspect is at work in exhibit B? (Type a name from the table.)

# %% id=numbers-b
numbers("B")

# %% id=08-suspect-b reveal
reveal("08-suspect-b", convicted("B"))

# %% id=08-suspect-b told truth="too few streams"
# The GPU never stands still, but each kernel has one block, so it uses one multiprocessor of 132.

# %% id=exhibit-d
show("D", "Four streams, four tasks, and they still take turns. The same as A, isn't it?",
     "A staircase again.")

# %% id=08-suspect-d guess
# Which suspect is at work in exhibit D? (Type a name from the table.)

# %% id=numbers-d
numbers("D")

# %% id=08-suspect-d reveal
reveal("08-suspect-d", convicted("D"))

# %% id=08-suspect-d told truth="pageable copy"
# A staircase like A's, but nobody waits: the host stays *inside* its calls, while the driver copies ordinary memory to where the GPU can read it. Taking out waits wouldn't help.

# %% id=exhibit-g
show("G", "All is on one stream, so each piece waits for the one before it. How many streams does it need?",
     "Four pieces of work on one stream.")

# %% id=08-suspect-g guess
# Which suspect is at work in exhibit G? (Type a name from the table.)

# %% id=numbers-g
numbers("G")

# %% id=08-suspect-g reveal
reveal("08-suspect-g", convicted("G"))

# %% id=08-suspect-g told truth="one big kernel"
# The GPU is busy here, too, but with a kernel of 1296 blocks, so each multiprocessor has some.

# %% id=exhibit-h
show("H", "A staircase, as in A, although I took the waits out. Which one did I forget?",
     "Four chunks on four streams.")

# %% id=08-suspect-h guess
# Which suspect is at work in exhibit H? (Type a name from the table.)

# %% id=numbers-h
numbers("H")

# %% id=08-suspect-h reveal
reveal("08-suspect-h", convicted("H"))

# %% id=08-suspect-h told truth="innocent"
# It's a staircase, because the host asks for one chunk after the other, so the end waits for the host. But by our table it's innocent: until the end nobody waits, calls are short, and the GPU is busy for nine tenths of the time.

# %% id=suspects-check tags=asserts
for letter in "ABDGH":
    found = [found.name for found in agt.diagnose(report(letter)) if not found.limit]
    assert [*found, "innocent"][0] == solved("08-suspects")(report(letter))
h = report("H")
last_call = max(span.start for span in h if span.kind == "call")
assert all(span.start > last_call for span in h if span.kind == "wait")
assert 0.09 < h.metrics().device_idle / h.metrics().device_makespan < 0.1
assert [s.start for s in h.device_spans] == [s.start for s in rounds("A", repaired=True)[2]]
copies_in = sorted((s for s in h.device_spans if s.kind == "h2d"), key=lambda s: s.start)
assert all(copies_in[i].end < copies_in[i + 1].start for i in range(3))
assert len(copies_in) == 4
late_calls = [s.duration for s in h if s.name == "enqueue h2d"]
assert max(late_calls) < 0.5 * min(s.duration for s in h.device_spans if s.kind == "h2d")
for letter, blocks in (("B", 1), ("G", 1296)):
    kernels = [span for span in report(letter).device_spans if span.kind == "kernel"]
    assert {np.prod(span.detail["grid"]) for span in kernels} == {blocks}
    assert sum(s.duration for s in kernels) > 0.5 * report(letter).metrics().device_makespan
assert not [span for span in report("D") if span.kind == "wait"]
assert {span.stream for span in report("G").device_spans} == {1}

# %% [markdown] id=worth
# ## Was it worth it?
#
# Step 5: profile again. H was A's repaired twin, which asks for all four chunks and only then waits. Each report has four rounds. You saw A's last and the twin's third:

# %% id=worth-rounds
def took_each(found):
    return [max(s.end for s in work) - min(s.start for s in work) for work in found]


first, then = (took_each(rounds("A", repaired=fixed)) for fixed in (False, True))
for words, times in (("exhibit A", first), ("repaired", then)):
    print(f"{words:10}", *[f"{us:6.0f} µs" for us in times])
print(f"\nlast against last {first[-1] / then[-1]:.1f},", end=" ")
print(f"mean of the last three {np.mean(first[1:]) / np.mean(then[1:]):.1f},", end=" ")
print(f"quickest {min(first) / min(then):.1f} times as fast")

# %% [markdown] id=worth-rounds-read
# Slower, a little faster, or much faster: take your pick. The first round is a warm-up, so the mean leaves it out. Whatever disturbs a round makes it longer, so the **quickest** tells you what the code *can* do, and the **mean** what you pay, disturbances included. But four rounds are few: leave one out, and 1.6 may become 1.3. Record more before you tell anybody.
#
# And G? Its repaired twin cuts the kernel into four parts, each on a stream of its own with its own copies, so that copies can run beside kernels.

# %% id=parts-third tags=helpers
def third(name):
    """The third round of a report of G, which is the quickest in both of them."""
    whole = agt.Trace.from_nsys(agt.Trace.recorded_file(f"{name}.sqlite"))
    found = whole.between(whole.find("part 0")[2].start, whole.find("exhibit G")[0].start)
    left_out = [span for span in found if span.kind == "wait" or span.name.endswith(" in flight")]
    return replace(found, spans=[span for span in found if span not in left_out])


one_part, four_parts = third("exhibit_G"), third("exhibit_G_repaired")

# %% id=08-parts guess
# From its first work to its last, G's quickest round took 179 µs. How many in four parts?
#
# - `third`: about 60
# - `less`: about 120
# - `same`: about 180
# - `more`: about 280

# %% id=08-parts reveal
picture = agt.compare_timelines(
    [one_part, four_parts],
    ["Exhibit G: one kernel", "Exhibit G, repaired: four parts"],
    lanes=("host", "streams"),
    together=True,
)
before, after = (min(took_each(rounds("G", repaired=fixed))) for fixed in (False, True))
quarters = four_parts.find("sgemm_naive")
apart = (quarters[-1].start - quarters[0].start) / 3
blocks, fit = np.prod(quarters[0].detail["grid"]), report("G").about["threads_at_once"] // 256
facts = {"us": after, "part": quarters[0].duration, "apart": apart, "blocks": blocks, "fit": fit}
truth = "third" if after < 80 else "less" if after < 150 else "same" if after < 220 else "more"
reveal("08-parts", truth, picture, **facts)

# %% id=08-parts lesson
# The quickest rounds. Time 0 is the GPU's first work. The four parts of the kernel are short, and far apart: the host is late for each of them. (Its wait at the end is left out.)

# %% id=08-parts told truth=more
# It took {us:.0f}. The repair made it *slower*, and the report says why. A part takes {part:.0f} µs, more than a quarter of the whole kernel's 105. (It has {blocks} blocks of 256 threads, and the GPU has room for {fit:,} at once, which may be why.) That would do no harm if parts ran side by side, but the host asks for one only every {apart:.0f} µs. It has a profiler watching, which costs most where there are most calls. Until somebody has timed both without it, G should stay. A suspect's name tells you what limits a program, and a limit needn't be a fault.

# %% id=worth-check tags=asserts
assert 0.75 < first[-1] / then[-1] < 0.85
assert 1.15 < np.mean(first[1:]) / np.mean(then[1:]) < 1.25
assert round(before) == 179
assert 1.5 < after / before < 1.65
assert round(apart) == 67
assert abs(before - took_each([one_part.device_spans])[0]) < 0.01
assert abs(after - took_each([four_parts.device_spans])[0]) < 0.01
assert all(34 < span.duration < 36 for span in quarters)
assert {np.prod(span.detail["grid"]) for span in quarters} == {324}
assert 0.3 < blocks / fit < 0.34
assert {np.prod(span.detail["block"]) for span in quarters} == {256}
assert 104 < one_part.find("sgemm_naive")[0].duration < 106
assert 1.55 < min(first) / min(then) < 1.65
assert 1.3 < min(first) / sorted(then)[1] < 1.35

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
    return sum(span.duration for span in spans if steps[20] <= span.start < steps[40]) / 20


look = spent(annotated, "is it still?")
print(f"a step takes {pace(annotated):.0f} µs, and `is it still?` has {look:.0f} of them")

# %% id=08-why guess
# `is it still?` is the line with `change`. Where does the host spend most of its time there?
#
# - `wait`: waiting for the GPU
# - `calls`: in its five calls into CUDA
# - `between`: between the calls, in Python and CuPy

# %% id=08-why reveal
a_look = one_step.between(change_.start, change_.end).from_first()
(waiting,) = [span for span in a_look if span.kind == "wait"]
called = [(s.start, s.duration) for s in a_look if s.kind == "call"]
working = [(s.start, s.duration) for s in a_look.device_spans]


def draw_look():
    _, axes = plt.subplots(figsize=(9, 2.4))
    axes.broken_barh([(0, change_.duration)], (0.75, 0.5), facecolors="white", edgecolors="gray", hatch="///")
    axes.broken_barh(called, (0.75, 0.5), facecolors="tab:green")
    axes.broken_barh([(waiting.start, waiting.duration)], (0.75, 0.5), facecolors="tab:red")
    axes.broken_barh(working, (-0.25, 0.5), facecolors="tab:green")
    labels = [(38, "Python and CuPy", "gray"), (57, "call", "tab:green")]
    labels += [(waiting.start + 1, "wait", "tab:red")]
    for x, word, colour in labels:
        axes.text(x, 1.3, word, ha="center", va="bottom", color=colour)
    axes.set(yticks=[1, 0], yticklabels=["host", "GPU"], ylim=(-0.5, 1.8), xlabel="µs")
    axes.set_title("One look: `is it still?` in step 30")
    axes.spines[["top", "right"]].set_visible(False)
    plt.show()
    print(f"{len(called)} calls, one wait, and what is hatched, between them")


looks = [span for span in annotated.find("is it still?") if span.kind == "range"][20:40]
inside = [annotated.between(span.start, span.end).metrics().host for span in looks]
calls, waits = (np.mean([host[kind] for host in inside]) for kind in ("call", "wait"))
between = look - calls - waits
parts = {"wait": waits, "calls": calls, "between": between}
reveal("08-why", max(parts, key=parts.get), draw_look, **parts)

# %% id=08-why told truth=between
# It's {wait:.0f} µs waiting, {calls:.0f} in calls, and {between:.0f} between the calls. The GPU is done almost as soon as it's asked, so there's nothing to wait for. What costs is asking. (By the line-up, the plate is `host-bound`.)

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
print(f"a step took {pace(annotated):.0f} µs, and with both changes it takes {pace(fused):.0f}")

# %% id=08-whole guess within=0.1
# So a recorded step is about six times as fast. The program has sixty. From its first call into CUDA to its end, how many times as fast is the whole program?

# %% id=08-whole reveal
def from_first_call(trace):
    return max(s.end for s in trace) - min(s.start for s in trace if s.kind == "call")


old, new = from_first_call(annotated), from_first_call(fused)
alloc = next(span for span in annotated if span.kind == "call")
facts = {"old": old / 1000, "new": new / 1000, "alloc": alloc.duration / 1000, "first": step[0] / 1000}
reveal("08-whole", round(old / new, 2), **facts)

# %% id=08-whole told truth=1.07
# {old:.0f} ms became {new:.0f}. Of the old ones, the first call has {alloc:.0f}, and the first step {first:.0f}. Such things happen once, in either program, and the other 59 steps take a hundredth of a second.

# %% [markdown] id=whole-why
# ### Is it a gain?
#
# It's 7 percent, isn't it? Here are all four reports, from their first calls on. 

# %% id=whole-runs
plates = ("heat", "heat_annotated", "heat_looks_less", "heat_repaired")
reports = [agt.Trace.from_nsys(agt.Trace.recorded_file(f"{name}.sqlite")) for name in plates]
runs = [from_first_call(trace) for trace in reports]
for name, us in zip(plates, runs):
    print(f"{name:16} {us / 1000:6,.0f} ms")

# %% [markdown] id=whole-read
# The first two run the same code, names apart, and one took 3.6 times as long. So 7 percent between two single runs is nothing. What did the repair gain, then? *That depends on what you run.* With sixty steps you can't tell. A million would take three minutes at the old pace, and half a minute at most at the new one.
#
# So who won the first bet? Here's where a step's time goes, with none of the changes, one and both:

# %% id=plate-split
less = reports[2]
programs = {"as it was": annotated, "fewer looks": less, "fewer looks, one kernel": fused}
split = {}
for what, trace in programs.items():
    stepping, seeing = spent(trace, "stencil"), spent(trace, "is it still?")
    split[what] = stepping, seeing, pace(trace) - stepping - seeing

# %% id=08-line reveal
def draw_split():
    _, axes = plt.subplots(figsize=(9, 2.4))
    for y, row in zip((2, 1, 0), split.values()):
        left = 0
        for us, colour in zip(row, ("tab:orange", "tab:green", "tab:blue")):
            axes.barh(y, us, 0.6, left, color=colour)
            axes.text(left + us / 2, y, f"{us:.0f}", ha="center", va="center", color="white")
            left += us
    labels = (37, "stencil (new)", "tab:orange"), (119, "is it still? (change)", "tab:green")
    for x, word, colour in (*labels, (178, "the rest", "tab:blue")):
        axes.text(x, 2.38, word, ha="center", va="bottom", color=colour)
    axes.set(yticks=[2, 1, 0], yticklabels=list(split), ylim=(-0.5, 2.8), xlabel="µs of a recorded step")
    axes.spines[["top", "right"]].set_visible(False)
    plt.show()
    print("µs of a recorded step     stencil   is it still?   the rest")
    for what, row in split.items():
        print("{:25} {:7.0f} {:14.0f} {:10.0f}".format(what, *row))


kernel, look, rest = split["as it was"]
reveal("08-line", "change", draw_split, new=kernel, change=look, rest=rest)

# %% id=08-line told truth=change
# Of a step as it was, `new` has {new:.0f} µs, `change` {change:.0f}, `assign` less than {rest:.0f}. On time, `new` and `change` are a tie, so if you said `new`, you weren't wrong either. No repair gains just its own bar. One look of twenty stays (a slow one, of 300 µs), and the swap takes the assignment away as well. So the price decides. Fewer looks take a minute to write, and nineteen steps too many at most. So tell your colleague to begin with `change`. (Don't subtract rows. They're different runs: `stencil`, the same code in the first two, took half as long again in the second.)
#
# If you said `change` because `float` waits, you had the right line and the wrong reason. It waits for 2 of its 90 µs, or for 12 if the copy's whole call is a wait. The rest is calls, and the Python around them. And `new` isn't long because of its arithmetic: in the first picture, its four kernels take 6 µs.
#
# Without a profiler, measured once on an H100, a step took 200 µs as it was, 105 with fewer looks, 112 with one kernel, and 15 with both. These are medians of five runs, which differ by more than those 7 µs (see `benchmarks/README.md`). But if the program only ever runs sixty steps, have a coffee instead.

# %% id=plate-check tags=asserts
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
assert spent(fused, "stencil") < 14
first_look, *other_looks = [s.duration for s in fused.find("is it still?") if s.kind == "range"]
assert first_look > 400 * max(other_looks)
assert alloc.name == "malloc"
assert 1.065 < old / new < 1.075
assert 10_500 < sum(step[1:]) < 11_500
assert 0.45 < np.median(still) / np.median(step) < 0.5
assert [round(us / 1000) for us in runs] == [1104, 305, 1429, 285]
assert 3.55 < runs[0] / runs[1] < 3.65
assert 180 < pace(annotated) < 200  # a million of them: three minutes
assert 30 < pace(fused) < 36
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
# - A suspect has a face, and a face can lie. What convicts it is its share of the run.
# - A finding is a reason to look. Only more profiles, over several runs, tell you whether the repair pays.
#
# Here ends the first sitting. Of the encores, do *Thirty thousand bars* first: the swarm gets slower and slower, and you find out why.
#
# **Next:** [09_cuda_graphs.ipynb](09_cuda_graphs.ipynb), for programs whose host is busy with calls and can't make fewer.

# %% id=score
score("08")

# %% id=progress
progress("08")

# %% [markdown] id=second-sitting
# ## Second sitting: a detective and a server
#
# This one takes 50 minutes, and uses what the page has defined above. The server also needs policies ([05](05_scheduling.ipynb)) and pinned memory ([02b](02b_copies_and_chunks.ipynb)). First you write a rule that does what you did by eye. Then you need it.

# %% [markdown] id=exercise-suspects
# ### Exercise: write the detective
#
# Return the name of the suspect, by the last column of the line-up's table. The starter knows one. Your rule is tried on A, B, D, G and H, and then on almost twenty rounds that you've never seen: other recordings, slower machines, larger grids, names that say nothing. So count, and take shares of the run. What is "much" is up to you.
#
# Calls that copy to the GPU are called `"enqueue h2d"`, and a kernel has a `stream`. (`agt.diagnose` does this for a living. Leave it out.)

# %% id=08-suspects starter
def accuse(trace):
    m = trace.metrics()
    run = m.device_makespan
    calls = [span for span in trace if span.kind == "call"]
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    longest = max(kernels, key=lambda span: span.duration)
    blocks = np.prod(longest.detail["grid"])
    if m.device_idle > run / 2:
        return "host-bound"
    return "innocent"

# %% id=08-suspects solution
def accuse(trace):
    m = trace.metrics()
    run = m.device_makespan
    calls = [span for span in trace if span.kind == "call"]
    kernels = [span for span in trace.device_spans if span.kind == "kernel"]
    longest = max(kernels, key=lambda span: span.duration)
    blocks = np.prod(longest.detail["grid"])
    last = max(span.start for span in calls)
    waits = [span.duration for span in trace if span.kind == "wait" and span.start < last]
    copying = [span.duration for span in calls if span.name == "enqueue h2d"]
    if sum(waits) > run / 5:
        return "hidden synchronisation"
    if sum(copying) > run / 3:
        return "pageable copy"
    if m.device_idle > run / 2:
        return "host-bound"
    if blocks < 132:
        queued = len(kernels) > len({span.stream for span in kernels})
        return "too few streams" if queued and m.device_idle < run / 5 else "innocent"
    return "one big kernel" if longest.duration > m.device_active / 2 else "innocent"

# %% id=08-suspects hints
# Go through the table from top to bottom, with an `if` for each suspect. Begin with the two that explain why a GPU stands still, so that `host-bound` only gets what they leave.
#
# A wait counts if the host makes a call after it: `span.start < last`, where `last` is the start of the last call. Divide the sum of those waits by `run`. It's a third in A, and next to nothing in a program that waits only at its end.
#
# Of the longest kernel you need its blocks, and its part of `m.device_active`. And compare `len(kernels)` with the number of streams that they're on, `len({span.stream for span in kernels})`.

# %% id=08-suspects explanation
# A rule that only counts waits convicts the plate, where they cost 1 percent. One that only compares calls with copies convicts whoever makes small copies. Shares of the run tell them apart, and stay the same when a machine is five times as fast.

# %% id=08-suspects-check
check("08-suspects", accuse)

# %% [markdown] id=challenge
# ### Challenge: a slow server
#
# Eight requests are waiting, 2 MB each. `read_into(buffer)` writes one into an array of yours, as `socket.recv_into` does. It goes to the GPU, `model` works on it in a single block, and its scores come back.
#
# On the simulated device, where the check tries it, this takes 4731 µs: get below 800. Below it is your workbench, which runs `serve` and draws it. Look, and before you change `serve`, commit two things there: who costs most now, and how many µs are left with *that one* repaired. It tells you who it is, and after the repair how good your forecast was.
#
# And doubt the clock: it doesn't count Python's own work, such as reading a request or copying an array.

# %% id=08-challenge starter
def settle():
    """Let things settle."""
    agt.synchronize()


async def serve(requests, model):
    policy = agt.StreamPoolRoundRobin(4)
    tasks = []
    for read_into in requests:
        x = np.empty((64, 8192), np.float32)
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(model).to_host(), policy))
        await asyncio.sleep(0)  # gives the task a turn, so that it begins
        settle()
    return [await task for task in tasks]

# %% id=08-challenge solution
async def serve(requests, model):
    policy = agt.StreamPoolRoundRobin(len(requests))
    tasks = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        tasks.append(agt.spawn(agt.h2d(x, "request").and_then(model).to_host(), policy))
        await asyncio.sleep(0)
    return [await task for task in tasks]

# %% id=08-challenge hints
# Begin with the host's lane in the workbench. Dotted bars are waits: does the host ask for a request only when the one before is done? Who makes it wait? And what would the picture be like without the waits: how long are the host's calls?
#
# Without the waits, compare the host's calls for copies with the copies themselves, as in exhibit D. The GPU can read an array by itself only if the memory is of the right kind. What does `np.empty` make? Chapter 02b has the other kind, and `read_into` writes into whatever you give it.
#
# Now count the streams, and look for kernels that queue although each has one block, as in exhibit B. `policy` has four streams. How many requests are there?
#
# No `settle()`, requests that are read into `agt.pinned((64, 8192))`, and `policy = agt.StreamPoolRoundRobin(len(requests))`.

# %% id=08-challenge explanation
# Four profiles: 4731 µs, 2628 without the waits, 832 with requests that are read into pinned memory, and 722 with a stream for each. Without `sleep(0)` it's even 697, but then the first copy waits until all eight requests are read. This clock doesn't count that, and a real one would. It doesn't count `agt.pin(x)` either, the very copy that the driver made before, or the time that it takes to make pinned memory. So a server makes its buffers once, when it starts, and reads requests into them in turn.

# %% id=08-challenge-check
check("08-challenge", serve)

# %% [markdown] id=rehearse-text
# Your workbench, on your device:

# %% id=workbench tags=helpers
ROWS, COLUMNS = 64, 8192
weights = agt.h2d(agt.pin(np.ones(COLUMNS, np.float32)), "weights").share().sync()
answers, forecasts = [], []


def request(i):
    return lambda buffer: np.copyto(buffer, np.float32(i + 1))


def score_of(x):
    def product(y):
        return agt.matvec_naive(ROWS, COLUMNS, x, weights, y.partition(ROWS)).output()

    return agt.zeros(ROWS, name="scores").and_then(product)


requests = [request(i) for i in range(8)]


async def workbench(serve, suspect, forecast):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)  # a finding says it as well
        await serve(requests, score_of)  # the first time is special
        with agt.record() as served:
            answers[:] = await serve(requests, score_of)
    took = served.metrics().makespan
    changed = bool(forecasts) and abs(took - forecasts[-1][0]) > 1
    print(f"It takes {took:,.0f} µs.", f"You had forecast {forecasts[-1][1]:,}." if changed else "")
    if suspect is ... or forecast is ...:
        print("Look at the picture, and commit a suspect and a forecast. Then this says who costs most.")
    else:
        forecasts.append((took, forecast))
        found = [found for found in agt.diagnose(served) if not found.limit]
        name = found[0].name if found else "innocent"
        print(f"You suspect: {suspect}. It is: {name}, {FACES[name]}.")
    return served.plot(
        title="Your server",
        lanes=("host", "streams"),
        lesson="What does the host do while the GPU has nothing to do? And when both are busy, who "
        "could go side by side? (Copies back are too short to see.)",
    )

# %% id=rehearse
suspect = ...  # who costs most, as it is? A name from the table, in quotes
forecast = ...  # and with that repaired, how many µs will it take?
await workbench(serve, suspect, forecast)

# %% id=rehearse-check tags=asserts
assert all(np.all(scores == COLUMNS * (i + 1)) for i, scores in enumerate(answers))
if device.simulated:
    with agt.record() as best:
        await solved("08-challenge")(requests, score_of)
    assert round(best.metrics().makespan) == 722
    assert 45 < best.metrics().host["call"] / 8 < 46

# %% [markdown] id=encores
# ## Encores
#
# These are in any order. They use what the page has defined above, and this:

# %% id=typical tags=helpers
def typical(letter):
    """Print how long a repaired program's copies and kernels take, and how often its host asks."""
    trace = report(letter, repaired=True)
    for kind in ("h2d", "kernel", "d2h"):
        us = np.median([span.duration for span in trace.device_spans if span.kind == kind])
        print(f"{kind} {us:.0f} µs", end=", ")
    asked = [span.start for span in trace if span.kind == "call" and span.name == "enqueue h2d"]
    print(f"and the host asks for a chunk every {np.median(np.diff(asked)):.0f} µs")

# %% [markdown] id=large
# ### Thirty thousand bars
#
# `swarm.py` once more, with its 100,000 particles, for 160 steps. Its author says: *"It starts out fine, and then it gets slower and slower. But none of my arrays grows!"*

# %% id=large-look
print(f"{len(swarm):,} spans")
replace(swarm, spans=[span for span in swarm if not span.name.startswith("cub::")]).plot(
    title="swarm.py on an H100",
    lanes=("host", "streams"),
    lesson="The host's rows, from the top: steps, their parts, and calls. Thin bars are gathered, and drawn "
    "as high as they are busy, 4 percent on the GPU. There is a hole of 138 ms in the middle. And the steps, "
    "from left to right: are they equally wide?",
)

# %% [markdown] id=large-number
# Nobody reads the bars one by one, so let's draw one number of each step: how long it takes.

# %% id=large-curve
wide = durations(swarm, "step")
plt.figure(figsize=(8, 2))
plt.plot(range(1, 161), np.array(wide) / 1000)
plt.ylim(0, 4.5)
plt.annotate(f"step 100: {wide[99] / 1000:.0f} ms", (102, 4.1))
plt.title("How long each step takes")
plt.xlabel("step")
plt.ylabel("ms")
plt.show()
print("steps 2, 40, 80, 120 and 160, in ms:", *[f"{wide[i - 1] / 1000:.1f}" for i in (2, 40, 80, 120, 160)])

# %% [markdown] id=large-read
# The author is right. Now we search.
#
# **What is odd?** There's a hole in the middle. Ask what ended it:

# %% id=large-gap
gap = agt.analyse(swarm).gaps[0]
print(f"{gap.duration / 1000:.0f} ms, {gap.main.cause}: then came {gap.main.span.name}")
around = [s for s in swarm if s.kind == "range" and s.start <= gap.start and gap.end <= s.end]
print("ranges around it:", *[s.name for s in around])

# %% [markdown] id=large-stats
# Step 100 centres the particles for the first time, and CuPy compiles a kernel for that. (Our program says so, not the report.) It's 29 percent of this run, but it happens once, so leave it.
#
# **What costs most?** No kernel, as you know from the first sitting. What does `agt.diagnose` say?

# %% id=large-diagnose
found = agt.diagnose(swarm)[0]
print(found.name, "-", found.sentence)

# %% [markdown] id=large-verdict
# `host-bound` is right. But why does the run get *slower*? A finding sums up a run, and the author asked how it changes, which only you can look for.

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
    grown = {n: np.median(us[-10:]) / np.median(us[:10]) for n, us in times.items() if len(us) >= 20}
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

# %% id=large-launches
steps = [span for span in swarm.find("step") if span.kind == "range"]
asked = [span.start for span in swarm if span.kind == "call" and span.name.startswith("launch")]
for number in (1, 2, 80, 160):
    one = steps[number - 1]
    print(f"step {number:3}: {sum(one.start <= us < one.end for us in asked):4} launches")

# %% [markdown] id=large-cause
# One launch more in each step! Here's `watch`:
#
# ```python
#             with nvtx.annotate("watch"):
#                 energies.append((v * v).sum())
#                 mean = sum(energies) / len(energies)
# ```
#
# The energies are on the GPU, so Python's `sum` launches a kernel for each number in the list.
#
# Against small kernels, the course has a cure: a graph ([chapter 09](09_cuda_graphs.ipynb)). But it would speed up work that nobody needs, because a running total takes one addition a step. **A tool finds where the time goes. Whether the work has to be done at all, you have to ask yourself.**

# %% id=large-check tags=asserts
assert len(swarm) == 31_400
assert [found.name for found in agt.diagnose(swarm)[:2]] == ["host-bound", "small kernels"]
assert len([span for span in swarm.device_spans if span.kind == "kernel"]) == 14_967
assert 0.285 < gap.duration / swarm.metrics().makespan < 0.295
assert 137_900 < gap.duration < 138_100
assert gap.main.cause == "host late"
counts = [sum(one.start <= us < one.end for us in asked) for one in steps]
assert counts[0] == 14
assert counts[79] == 93
assert counts[159] == 173
watches = [span.duration for span in swarm.find("watch")]
assert 11 < np.median(watches[-10:]) / np.median(watches[:10]) < 12.5
centred = [steps.index(s) for s in steps if s.start <= gap.start and gap.end <= s.end]
assert centred == [99]

# %% [markdown] id=exercise-stats
# ### Exercise: what would it save?
#
# `name` is the name of a kernel. Return two percentages:
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
    return 100 * spent(kernels) / sum(s.duration for s in kernels), 100 * spent(awaited) / m.makespan

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

# %% [markdown] id=two-more
# ### Two more suspects
#
# C and E have names that the line-up's table lacks. C first:

# %% id=exhibit-c
show("C", "Half of it comes from a library. They say that it is asynchronous.",
     "Four chunks, of which two are on stream 0.")

# %% [markdown] id=two-more-c
# Six of C's twelve pieces of work are on stream 0, the **null stream**, which is where CuPy and many libraries put their work unless they're told another. So two of its four chunks take turns. (An ordinary stream would even have waited for it. These are *non-blocking* ones, and you can see a copy of stream 1 beside one of stream 0.)
#
# C's repaired twin gives each chunk a stream of its own. What does that gain?

# %% id=two-more-facts
typical("C")

# %% id=08-null guess within=0.1
# From its first work to its last, C's quickest round took 544 µs. How many µs with four streams?

# %% id=08-null reveal
picture = agt.compare_timelines(
    [report("C", repaired=True)],
    ["Exhibit C, repaired"],
    lanes=("host", "streams"),
    together=True,
)
quick = min(rounds("C", repaired=True), key=lambda work: took_each([work]))
into = [span.start for span in quick if span.kind == "h2d"]
(us,) = took_each([quick])
late = into[-1] - into[0]
reveal("08-null", round(us), picture, late=late, takes=us - late)

# %% id=08-null lesson
# A stream for each chunk. A copy to the GPU begins when the host has asked for it, or when the one before it has made room, as on stream 4.

# %% id=08-null told truth=478
# The last chunk begins {late:.0f} µs after the first, and takes {takes:.0f}. One copy engine could bring all four chunks to the GPU in 330 µs, and then all would be over after 410. But the host asks for a chunk only every 94 µs, and so the last one begins after three times that. With the null stream out of the way, the host is the limit. (And is that a gain? *All repairs* has its doubts.)

# %% [markdown] id=two-more-read
# ### The other
#
# E's name is `lazy module loading`. *"Our benchmark makes four calls in 39 ms, and production in less than 0.4. Which is wrong?"* Its program launches a kernel that hasn't been compiled yet. So CuPy has a compiler turn the source into code, CUDA loads the code, and then the kernel runs four times, for a microsecond each. The first time begins 38.6 ms after the start.

# %% id=08-loading guess
# For how many of these 38.6 ms was the host inside calls to CUDA, the loading among them?
#
# - `most`: more than 30
# - `half`: about 20
# - `few`: about 5
# - `none`: less than 1

# %% id=08-loading reveal
picture = agt.compare_timelines(
    [report("E").between(37_200, 39_300)], ["The far end of exhibit E"], together=True
)
begun = min(span.start for span in report("E").device_spans)
in_calls = sum(s.duration for s in report("E") if s.kind == "call" and s.start < begun) / 1000
truth = "most" if in_calls > 30 else "half" if in_calls > 10 else "few" if in_calls > 1 else "none"
reveal("08-loading", truth, picture, ms=in_calls)

# %% id=08-loading lesson
# The first kernel begins at 0. More than a millisecond before it is the host's first call, which loads the code. Left of that, the report has nothing.

# %% id=08-loading told truth=none
# It's {ms:.2f} ms, in the calls `load` and `launch`. CUDA only loads what the compiler made, and that took 0.1 ms. The host's first call comes after 37.3. The compiler must have run before it, but the report can't say so: it only shows that nobody called CUDA. That's why the detective says `lazy module loading`, which is what it can see. All of it happens once. So neither number need be wrong: the benchmark timed the first calls, and production makes the others.

# %% id=two-more-check tags=asserts
for letter, name in (("C", "null stream"), ("E", "lazy module loading")):
    assert next(found.name for found in agt.diagnose(report(letter)) if not found.limit) == name
assert 80 < np.median([s.duration for s in quick if s.kind == "h2d"]) < 84
assert round(us) == 478
assert [s.stream for s in report("C").device_spans].count(0) == 6
assert len(report("C").device_spans) == 12
assert 37_200 < min(span.start for span in report("E") if span.kind == "call") < 37_300
assert 38_550 < begun < 38_650
(load,) = report("E").find("load module")
assert 96 < load.duration < 97
assert 1_150 < report("E").find("launch doubled")[0].start - load.end < 1_180
assert 0.1 < in_calls < 0.2

# %% [markdown] id=changes
# ### One change at a time
#
# A look takes 90 of the 190 µs of the plate's step. `heat_looks_less.py` looks in every twentieth step only, and changes nothing else. So, without nineteen of twenty looks, a step should lose 85 µs. Here's what both spend on a step:

# %% id=changes-run
for what, trace in list(programs.items())[:2]:
    print(f"{what:23} {pace(trace):5.1f} µs a step,", end=" ")
    print(*[f"{spent(trace, name):5.1f} in `{name}`" for name in ("stencil", "is it still?")], sep=", ")

# %% [markdown] id=changes-read
# As recorded, it lost 28. But look at `stencil`. It's the same code in both programs, and in the second it takes one and a half times as long, so the host was slower in that run. **Before you compare two reports, compare something in them that didn't change.** Can we divide by that factor, part by part?

# %% id=changes-divided
slower = spent(less, "stencil") / spent(annotated, "stencil")
for what, trace, factor in (("as it was", annotated, 1), ("looks less, divided", less, slower)):
    stepping, seeing = (spent(trace, name) / factor for name in ("stencil", "is it still?"))
    left = pace(trace) / factor - stepping - seeing
    parts = f"{stepping:.1f} stencil + {seeing:4.1f} looking + {left:.1f} rest"
    print(f"{what:23} {pace(trace) / factor:5.1f} µs = {parts}")
for what, trace in programs.items():
    found = [span.duration for span in trace.find("is it still?") if span.kind == "range"]
    print(f"{what:23} looks: {found[0]:7,.0f}", *[f"{us:4.0f}" for us in found[1:4]], "µs")

# %% [markdown] id=changes-sum
# About 106 µs, and that's 85 less than 190. A triumph for the forecast? Look at its parts. We had predicted 4.5 µs a step for looking, a twentieth of 90, and it takes 10: in every report the second look is slower than the third, and a program that looks only three times never gets to the fast ones. (So a million steps would take less than our half minute.) The rest lost 5 µs, which nobody predicted. So either two errors cancelled each other, or the rest wasn't slowed down as much as the stencil, and then our division is wrong. **When a sum comes out right, check its parts.**
#
# So these reports can't say which of the two changes gains more. For that, run all programs in turn, several times, without a profiler, as we did once on an H100.

# %% id=changes-check tags=asserts
factor = spent(less, "stencil") / spent(annotated, "stencil")
assert 1.5 < factor < 1.56
assert 105 < pace(less) / factor < 106
assert 84 < pace(annotated) - pace(less) / factor < 85.5
assert 84.5 < 19 / 20 * spent(annotated, "is it still?") < 86
assert abs(spent(annotated, "is it still?") / 20 - 4.5) < 0.01
assert 10 < spent(less, "is it still?") / slower < 10.6
rest = [pace(t) - spent(t, "stencil") - spent(t, "is it still?") for t in (annotated, less)]
assert 5 < rest[0] - rest[1] / slower < 5.5
for trace in programs.values():
    found = [span.duration for span in trace.find("is it still?") if span.kind == "range"]
    assert found[1] > 1.2 * found[2]
assert round(spent(annotated, "is it still?")) == 90
assert round(pace(annotated) - pace(less)) == 28
assert round(np.median(step)) == 177
assert [round(20 * spent(trace, "is it still?")) for trace in (less, fused)] == [320, 288]
assert 0.09 < spent(less, "is it still?") / pace(less) < 0.11

# %% [markdown] id=across
# ### Names and `await`
#
# Here are two tasks, one short and one long, each in a range of its own. (`watched()` is `agt.record()` with ranges.) They run twice, with two kinds of range. The first is `ranges.span`, which works like `nvtx.annotate`: a thread keeps its open ranges on a stack, and at the end of a `with` block it closes the one on top. The second is `ranges.across`.

# %% id=across-run
async def task(name, us, kind):
    with kind(name):
        await agt.sleep(us)


async def both(kind):
    with watched() as trace:
        await asyncio.gather(task("short", 5_000, kind), task("long", 20_000, kind))
    return trace

# %% id=08-stacked guess within=0.1
# `short` opens its range and sleeps for 5 ms. Then `long` opens its own and sleeps for 20. With `span`, how many ms long is the range called `short`?

# %% id=08-stacked reveal
crossed = [await both(ranges.span), await both(ranges.across)]
picture = agt.compare_timelines(crossed, ["with span", "with across"], lanes=("host",))
(short,) = crossed[0].find("short")
reveal("08-stacked", round(short.duration / 1000, 1), picture)

# %% id=08-stacked lesson
# Above, the range called short lasts for 20 ms, and long for 5. Below, it is the other way round.

# %% id=08-stacked told truth=20
# The task of `short` was done first, and closed the range on top.
#
# > **Misconception: a range shows what its block did.**
# >
# > - *What you see:* with `span`, the short task seems to be the long one.
# > - *Why:* closing a range closes the one on top of the thread's stack. While one task awaits, the other puts its own range there. `nvtx.annotate` and `torch.cuda.nvtx.range` work like this.
# >
# >   ```text
# >                    short opens    long opens     short is done       long is done
# >   the stack        short          short, long    short               (empty)
# >   what is closed                                 the top: long!      the top: short!
# >   ```
# > - *What helps:* use `agt.ranges.across` wherever there's an `await` in the block, because it remembers which range it opened. Use `agt.ranges.span` where there is none.
# %% id=across-check tags=asserts
for trace, swapped in zip(crossed, (True, False), strict=True):
    measured = {span.name: span.duration for span in trace if span.kind == "range"}
    assert (measured["short"] > measured["long"]) == swapped

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

# %% [markdown] id=busy
# ### The one that was busy
#
# Exhibit B's GPU never paused. Its repaired program has six streams instead of two, for the same six kernels, and an H200 could run over a hundred of these at once.

# %% id=08-room guess within=0.1
# From the first kernel to the last, B took 479 µs on two streams. How many µs on six?

# %% id=08-room reveal
six = report("B", repaired=True)
picture = agt.compare_timelines(
    [report("B"), six], ["Two streams", "Six streams"], lanes=("host", "streams"), together=True
)
took = [trace.metrics().device_makespan for trace in (report("B"), six)]
reveal("08-room", round(took[1]), picture, two=took[0], six=took[1])

# %% id=08-room lesson
# On six streams each kernel starts as soon as the host has asked for it. Up to four run at once.

# %% id=08-room told truth=356
# {two:.0f} µs became {six:.0f}: a quarter less, with three times as many streams.
#
# > **Misconception: the GPU is busy, so the program can't be made faster.**
# >
# > - *What you see:* a utilisation near 100 percent, here as in `nvidia-smi`.
# > - *Why:* "busy" means that *some* kernel is running. These have one block each, so each uses one SM, and an H200 has 132.
# > - *What helps:* look at the grid. If it has few blocks, run several kernels at once, or give each of them more to do.

# %% [markdown] id=busy-read
# ### Why only a quarter?
#
# Look at when the host asks:

# %% id=busy-look
asked = [span.start for span in six if span.kind == "call"]
begun = sorted(span.start for span in six.device_spans)
late_by, lasts = begun[-1] - begun[0], six.device_spans[-1].duration
print("Python asks for a kernel at", *[f"{us - asked[0]:4.0f}" for us in asked], "µs")
print("a kernel begins at         ", *[f"{us - asked[0]:4.0f}" for us in begun], "µs")
print(f"the last one, after the first: {late_by:.2f} + {lasts:.2f} µs at work = {late_by + lasts:.2f} µs")

# %% [markdown] id=busy-why
# Python asks for the sixth kernel 223 µs after the first, and on however many streams, it can't begin before that. Now the host is the limit.

# %% id=busy-check tags=asserts
assert abs(took[0] - 479) < 1
assert 0.7 < took[1] / took[0] < 0.8
assert report("B").metrics().device_idle == 0
assert len(asked) == 6
assert {tuple(span.detail["grid"]) for span in six.device_spans} == {(1, 1, 1)}
assert six.metrics().max_concurrency == 4
assert round(asked[-1] - asked[0]) == 223
assert f"{late_by:.2f} {lasts:.2f} {late_by + lasts:.2f}" == "217.34 138.24 355.58"
assert abs(took[1] - late_by - lasts) < 0.001
assert all(138 < span.duration < 139 for span in six.device_spans)

# %% [markdown] id=exercise-rate
# ### Exercise: the price of an ordinary array
#
# D copies ordinary NumPy arrays, and its repaired twin, `report("D", repaired=True)`, copies pinned ones. Return how many gigabytes (10⁹ bytes) a second go *to* the GPU, over all such copies of a trace together. Their `kind` is `"h2d"`, and `span.detail["bytes"]` is their size.

# %% id=08-rate starter
def rate(trace): ...

# %% id=08-rate solution
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    size = sum(span.detail["bytes"] for span in copies)
    return size / sum(span.duration for span in copies) / 1000

# %% id=08-rate hints
# Divide all bytes by all the time.
#
# And the unit? One byte in a microsecond is a megabyte in a second.

# %% id=08-rate explanation
# 7.6 GB/s in D, 47.8 in its twin. The GPU can't read ordinary memory by itself, since the operating system may move it. So the driver first copies the bytes into pinned memory of its own, and that extra copy is slow. The damage doesn't end there: the host stays inside the call, so it can't ask for anything else meanwhile.

# %% id=08-rate-check
check("08-rate", rate)

# %% [markdown] id=all-repairs
# ### All repairs
#
# What does pinned memory gain for D? With ordinary memory, its copies to the GPU took 548 µs each. Here's its twin:

# %% id=gained-facts
typical("D")

# %% id=08-gained guess within=0.1
# From its first work to its last, D's quickest round took 3461 µs, for four chunks on four streams. How many µs does its twin take?

# %% id=08-gained reveal
picture = agt.compare_timelines(
    [report("D", repaired=True)],
    ["Exhibit D, repaired"],
    lanes=("host", "streams"),
    together=True,
)
slow, quick = (min(rounds("D", repaired=fixed), key=lambda x: took_each([x])) for fixed in (False, True))
into = [sum(span.duration for span in work if span.kind == "h2d") for work in (slow, quick)]
(old,), (new,) = took_each([slow]), took_each([quick])
reveal("08-gained", round(new), picture, less=old - new, copies=into[0] - into[1])

# %% id=08-gained lesson
# Copies to the GPU take turns, the last three right behind each other. Those back run beside them.

# %% id=08-gained told truth=461
# Of {less:,.0f} µs less, {copies:,.0f} are the copies to the GPU. With those 6.3 times as fast, the program got 7.5 times as fast. About 60 percent of what it gained are the copies themselves. The rest comes from a host that is free to ask for the next chunk: the long pauses are gone, and copies in both directions run side by side. So the end waits for four copies in, then one kernel and one copy back. And this time the host keeps up: it asks for a chunk every 78 µs, and a copy takes 88.

# %% [markdown] id=gained-read
# ### The others
#
# Four rounds are few, so in the last column we leave out the quickest round of one program or the other:

# %% id=all-repairs-run
times = {}
print("exhibit                  quickest  repaired                   one left out")
for letter in "ABCDG":
    (found,) = [found for found in agt.diagnose(report(letter)) if not found.limit]
    old, new = (sorted(took_each(rounds(letter, repaired=fixed))) for fixed in (False, True))
    least, most = old[0] / new[1], old[1] / new[0]
    times[letter] = old[0] / new[0], least, most
    print(f"{letter}  {found.name:22} {old[0]:5.0f} µs  {new[0]:5.0f} µs", end="   ")
    print(f"{old[0] / new[0]:.1f} times as fast   {least:.1f} or {most:.1f}")

# %% [markdown] id=all-repairs-read
# G lost, as you know. The twins of A, C and D do the same work in the same way, four pinned chunks on four streams, and their quickest rounds took 545, 478 and 461 µs. Their hosts made the difference, so between two recordings 18 percent may mean nothing, even from quickest to quickest. By that, C gained nothing that we can be sure of. E isn't in the table, because its repair is to the time before the first round: the program runs once before it is recorded, and its first kernel begins after 44 µs.

# %% id=all-repairs-check tags=asserts
early = min(span.start for span in report("E", repaired=True).device_spans)
assert round(early) == 44
assert [f"{x:.1f}" for x in times["D"]] == ["7.5", "7.2", "7.7"]
assert [f"{x:.1f}" for x in times["A"]] == ["1.6", "1.3", "1.6"]
assert [letter for letter, factors in times.items() if max(factors) < 1] == ["G"]
assert 0.61 < (into[0] - into[1]) / (sum(took_each([slow])) - sum(took_each([quick]))) < 0.63
assert 6.2 < into[0] / into[1] < 6.4
first_in, back = ([s for s in quick if s.kind == kind] for kind in ("h2d", "d2h"))
assert abs(sum(s.duration for s in first_in) + back[-1].duration + 3 - sum(took_each([quick]))) < 35

# %% [markdown] id=gpus
# ### Two GPUs
#
# This program trains a network on two H100s. Each GPU learns from its own part of the data. Then NCCL, NVIDIA's library for this, adds up what both have learnt, in an **all-reduce**:

# %% id=gpus-sums
two = agt.Trace.from_nsys(agt.Trace.recorded_file("two_gpus.sqlite"))
for name in two.devices:
    one = two.of(name)
    talk = sum(span.duration for span in one.device_spans if span.name.startswith("nccl"))
    busy = one.metrics().device_active
    print(f"GPU {name[-1]} is busy for {busy / 1000:.1f} ms, {talk / 1000:.1f} of them in NCCL")

# %% id=08-culprit guess
# So GPU 1 spends two thirds of its time talking to GPU 0. What would you change first?
#
# - `one`: GPU 1, because its all-reduces are slow
# - `zero`: GPU 0, because it computes too long
# - `wire`: the connection between them, because it is slow

# %% id=08-culprit reveal
begin, end = (span.start for span in two.of("cuda:0").find("ncclDevKernel_AllReduce_Sum_f32_RING_LL")[2:6:3])
a_step = two.between(begin, end + 1_000)
brief = {"nccl": "all-reduce", "gemm": "mul"}  # their own names are long
named = [
    replace(span, name=next((new for old, new in brief.items() if old in span.name), span.name))
    for span in a_step
    if span.kind == "kernel"
]
shown = replace(a_step, spans=named)
picture = shown.plot(title="A step on two GPUs", lanes=("streams",), highlight="all-reduce")
talks = [[s for s in two.of(gpu).device_spans if s.name.startswith("nccl")] for gpu in two.devices]
shortest = min(max(a.duration, b.duration) for a, b in zip(*talks))
behind = [a.start - b.start for a, b in zip(*talks)]
truth = "zero" if max(behind) > 10 * shortest else "wire"
reveal("08-culprit", truth, picture, shortest=shortest, late=max(behind))

# %% id=08-culprit lesson
# The all-reduces stand out. GPU 0 multiplies matrices (mul) for longer than GPU 1, where a product's bar is too short for its name. GPU 1 is done early, and then has a long all-reduce, which ends when GPU 0's does.

# %% id=08-culprit told truth=zero
# If both GPUs start an all-reduce together, it takes {shortest:.0f} µs. GPU 0 starts up to {late:,.0f} µs late.
#
# You can't add two numbers before both are there. So the GPU that comes first waits for the other, and it waits *inside the kernel*, which the profiler draws as work. Of the three all-reduces of a step, the first is long on GPU 1: six milliseconds of waiting and a quarter of a millisecond of adding. And GPU 0 comes late because it has more to compute: of four files of data, it got three.

# %% [markdown] id=exercise-waited
# ### Exercise: who waits for whom?
#
# Return two sums in µs: how long GPU 0 waited for GPU 1 in all-reduces, and how long GPU 1 waited for GPU 0. `trace.devices` has their names, and a GPU's all-reduces are the spans of `trace.of(name).device_spans` whose names begin with `nccl`, in order.

# %% id=08-waited starter
def waited(trace): ...

# %% id=08-waited solution
def waited(trace):
    zero, one = (
        [span.start for span in trace.of(name).device_spans if span.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)

# %% id=08-waited hints
# They can only add up together, so the first one there waits until the other starts. Make two lists of starts, one for each name in `trace.devices`, and go through them with `zip`.
#
# If GPU 1 starts later than GPU 0, then GPU 0 waited for the difference. And if it starts earlier?
#
# `max(us, 0)` keeps a difference if it is positive, and `max(-us, 0)` if it is negative.

# %% id=08-waited explanation
# GPU 0 never waited, and GPU 1 waited for 37.8 of its 65 ms. Of its 41.9 ms in NCCL, it spent only about four adding. Even an infinitely fast connection could save no more than those four, while the waiting costs nine times as much and no connection can help it. `agt.diagnose` calls it `waiting for a GPU`.

# %% id=08-waited-check
check("08-waited", waited)

# %% [markdown] id=exercise-gain
# ### Exercise: what would it gain?
#
# What if each GPU gets two of the four files? Before you build a repair, say what it will gain. Take the report of the two GPUs, and predict how many times as fast an even share makes it:
#
# - *As it is*, a run takes as long as the busier GPU works: add up the durations of its work.
# - *Repaired*, both GPUs compute equally long, half of their total each. And neither waits, so each all-reduce takes as long as the shorter of its two kernels.
#
# `trace` is the *old* report. The check holds your forecast against the repair as it was recorded: a tenth more or less will do.

# %% id=08-gain starter
def gain(trace): ...

# %% id=08-gain solution
def gain(trace):
    busy, talks = [], []
    for name in trace.devices:
        work = trace.of(name).device_spans
        busy.append(sum(span.duration for span in work))
        talks.append([span.duration for span in work if span.name.startswith("nccl")])
    computing = sum(busy) - sum(sum(talk) for talk in talks)
    adding = sum(min(pair) for pair in zip(*talks))
    return max(busy) / (computing / 2 + adding)

# %% id=08-gain hints
# Three times for each GPU: all of its work, its all-reduces, and what is left, which is computing.
#
# Now it takes as long as the busier GPU works. Repaired, it takes half of all computing, and the adding.
#
# Adding takes `sum(min(pair) for pair in zip(*talks))`, where `talks` has a list of durations for each GPU.

# %% id=08-gain explanation
# You predicted 1.42, and it turned out to be 1.48: in the second run the GPUs also computed a little faster, for 79 ms in all instead of 83. You knew what to expect before anybody moved a file, and with 1.1 you'd have known that something else was wrong. A forecast is also how you choose: the connection could have gained no more than 1.07.

# %% id=08-gain-check
check("08-gain", gain)

# %% [markdown] id=gpus-even
# Here each GPU got two files:

# %% id=gpus-again
even = agt.Trace.from_nsys(agt.Trace.recorded_file("two_gpus_even.sqlite"))


def step_ms(trace):
    ends = [span.end for span in trace.of("cuda:0").find("cupy_subtract__float32_float32_float32")][2::3]
    return np.median(np.diff(ends)) / 1000


print(f"a step took {step_ms(two):.1f} ms, and now takes {step_ms(even):.1f}")

# %% [markdown] id=gpus-end
# The connection is the same, and together they do as much arithmetic as before. They share it evenly, so neither has to wait.

# %% id=gpus-check tags=asserts
assert 10.9 < step_ms(two) < 11
assert 7.3 < step_ms(even) < 7.5
assert 240 < shortest < 260
assert 6_300 < max(behind) < 6_500
first, second = (sum(span.duration for span in each) for each in talks)
assert 4_400 < first < 4_500
assert 41_900 < second < 42_000
assert agt.diagnose(two)[0].name == "waiting for a GPU"
assert abs(agt.diagnose(two)[0].cost - 37_757) < 1
computing = [[s.duration for s in t.device_spans if not s.name.startswith("nccl")] for t in (two, even)]
assert [round(sum(us) / 1000) for us in computing] == [83, 79]

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
# | where the gaps are | `analyse(trace).gaps` | holes in *[All Streams]*. Rule `gpu_gaps`, only those of half a second or more |
# | what takes how long | `analyse(trace).sums` | sums `cuda_gpu_kern_sum`, `cuda_gpu_mem_time_sum`, `cuda_api_sum` |
#
# Rules and sums are below the timeline, and on the command line: `nsys analyze` and `nsys stats`. [Profiling](../docs/profiling.md#nsight-systems-by-hand) has the rest, and the options of `nsys profile` that are worth knowing.
#
# Our exports are of an H200 and version 2025.3.2; those of `swarm.py` and `two_gpus.py` are of H100s and version 2025.3.1.
