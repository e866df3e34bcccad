"""Source of notebooks/08_profiling.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Profiling: find out why it is slow
#
# **After this page you can**
#
# - mark the parts of your program for a profiler, correctly across `await`;
# - take a profile in three ways, with or without a GPU, and say what each can and cannot see;
# - read a timeline from the top: is the device busy, if not why, and what is the end waiting for;
# - answer eight questions that people ask of a report, from the largest gap to what a repair has brought;
# - recognise seven common defects by what they look like, and repair them;
# - find your way in the window of NVIDIA's Nsight Systems.
#
# | | |
# |---|---|
# | Time | 115 minutes; the eight questions to a report are 40 of them |
# | You need | [05_scheduling](05_scheduling.ipynb) and [06_await](06_await.ipynb) |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor import ranges
from asyncgpu_tutor.commands.profile import RUNS, nsys, record_run
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution
from asyncgpu_tutor.exercises.exhibits import EXHIBITS, exhibit, limited
from asyncgpu_tutor.exercises.watched import RangeLog, watched
from asyncgpu_tutor.traces.pictures.nsight_window import nsight_window

device = agt.use("auto")
device

# %% [markdown] id=slow
# ## A program that is too slow
#
# Somebody wrote this program, and it is right. Four chunks of data go to the device, negative numbers become zero, and the
# chunks come back. After each chunk the host writes a line of a report. It is slower than it has to be. *Where would you begin?*

# %% id=slow-program
N = 1_500_000
data = [agt.pin(np.full(N, i + 1, np.float32)) for i in range(4)]


def chunk(i):
    def positive(array):
        blocks = array.partition(256)
        return agt.relu(N, blocks, blocks).output()

    return agt.h2d(data[i], "chunk").and_then(positive).to_host().named(f"chunk {i}")


def report(i):
    agt.work(30, f"report {i}")  # stands for some work of Python's


async def first_version():
    results = []
    for i in range(4):
        results.append(chunk(i).sync())
        report(i)
    return results


# %% [markdown] id=slow-guess
# Most people begin with the kernel. It is the part with the threads and the C in it, so surely it is the part that counts.

# %% id=predict-kernel
where = Prediction(
    "For how much of its time, from the first call to the end, is a kernel of this program at work?",
    most="more than half of it",
    some="less than half, but more than a tenth",
    little="less than a tenth of it",
)
where

# %% id=predict-kernel-commit
where.commit(...)

# %% [markdown] id=warm
# Then measure. A program has to be run once before it counts, for reasons that are one of the cases below. And on a real machine
# something else wants the processor now and then: of five runs there, the quickest is the one that was disturbed least.


# %% id=slow-measure
async def profiled(program):
    await program()  # not recorded: the first time is special
    traces = []
    for _ in range(1 if agt.current_device().simulated else 5):
        with agt.record() as trace:
            await program()
        traces.append(trace)
    return min(traces, key=lambda trace: trace.metrics().makespan)


before = await profiled(first_version)

# %% id=reveal-kernel
whole = before.metrics().makespan
kernels = sum(span.duration for span in before.device_spans if span.kind == "kernel")
share = kernels / whole
where.reveal(
    "most" if share > 0.5 else "some" if share > 0.1 else "little",
    f"Kernels run for {kernels:.0f} µs of {whole:.0f} µs. A kernel that takes no time at all would make the "
    f"program {share:.0%} shorter.",
)

# %% [markdown] id=loop
# That is why one measures first. A week of work on that kernel could win you no more than this. The way out is a loop with
# five steps:
#
# 1. **Annotate**: give names to the parts of your program.
# 2. **Profile**: record one run.
# 3. **Read**: say in a sentence what the end of the program is waiting for.
# 4. **Fix**: change that, and only that.
# 5. **Profile again**: has it gone? What is next? Is it enough?
#
# The third step is the hard one, and the one that people skip.

# %% [markdown] id=annotate
# ## Annotate
#
# A profiler sees kernels, copies and calls. It cannot know which request they were for. You have used one kind of name
# already: `named("chunk 0")` puts a label on everything that an operation enqueues. The other kind is a **range**: a stretch of the
# host's time with a name.
#
# Profilers of NVIDIA take such names through a small library called **NVTX**. The module `agt.ranges` speaks to it, in two ways:
#
# | | for code that | because |
# |---|---|---|
# | `with agt.ranges.span("report"):` | does *not* await | it is kept on a stack: last opened, first closed |
# | `with agt.ranges.across("request"):` | awaits | it has a number, and closes when its own block ends |
#
# Ranges are off unless somebody asks for them, with `ASYNCGPU_NVTX=1` or `agt.ranges.enable()`, so you can leave them in the program for good.
# And the operations of this course mark themselves: each run of an operation is a range with its name.
#
# If there is no profiler, who looks at ranges? Here `watched()` does: it is `record()`, and writes ranges down as well.


# %% id=annotate-run
async def request(i):
    with ranges.across("request"):
        result = await chunk(i)
        with ranges.span("report"):
            report(i)
        return result


async def two_requests(function):
    with watched(RangeLog()) as trace:
        await asyncio.gather(function(0), function(1))
    return trace


annotated = await two_requests(request)
annotated.plot(title="Two requests, with ranges", lanes=("host", "streams"))

# %% [markdown] id=annotate-read
# Ranges are drawn in white, on top of the host's lane. `request` is ours, and so is `report`. The others are marked by the course:
# `chunk 0` for as long as its calls are made, and `chunk 0 in flight` until its result is there. You see at once that both requests are under
# way at the same time.

# %% id=annotate-check
first, second = [span for span in annotated.find("request") if span.kind == "range"]
assert first.start <= second.start < first.end

# %% [markdown] id=misconception-ranges
# > **Misconception: a range shows what its block did.**
# >
# > - *What you see:* ranges of the wrong length around code that awaits, and conclusions that are wrong by as much.
# > - *Why:* the usual kind of range is kept on a stack, and there is one stack for a thread. While one task waits, another opens a
# >   range on top. Whoever is done first closes the one on top: not its own.
# > - *What helps:* `across`, a start/end range in NVTX's words. (`nvtx.annotate` and `torch.cuda.nvtx.range` are of the other kind.)
#
# Two tasks with `span` around an `await`. The first one has little to do, the second one a lot:


# %% id=misconception-ranges-run
async def task(name, us, kind):
    with kind(name):
        await agt.sleep(us)


async def lengths(kind):
    log = RangeLog()
    with watched(log):
        await asyncio.gather(task("short", 100, kind), task("long", 20_000, kind))
    return {one.name: one.end - one.start for one in log.closed}


for kind in (ranges.span, ranges.across):
    measured = await lengths(kind)
    print(kind.__name__, {name: f"{us:.0f} µs" for name, us in measured.items()})
    wrong = measured["short"] > measured["long"]
    assert wrong == (kind is ranges.span)

# %% [markdown] id=misconception-ranges-read
# With `span` the short task seems to be the longer one.

# %% [markdown] id=exercise-annotate
# ### Exercise: ranges around an `await`
#
# `handle` answers a request: it prepares the input, which does not await, and then processes it. Mark two ranges: `"prepare"` around the
# preparation and nothing else; `"request"` around all of it. The check handles several requests together, and lets one of
# them fail. (Name the *sort* of thing, without a number in it: NVTX keeps every name until the program ends.)


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
# Two ranges, one inside of the other. Which of the two has an `await` in it?
#
# `agt.ranges.span("prepare")` for the one without an `await`, `agt.ranges.across("request")` for the one with.
#
# `with agt.ranges.across("request"):` around both lines, and in it `with agt.ranges.span("prepare"):` around the first.

# %% id=08-annotate explanation
# `across` opens a range that goes by a number, so it does not matter who opens or closes others meanwhile. And `with` closes it, also
# when the request fails.

# %% id=08-annotate-check
check("08-annotate", handle)

# %% [markdown] id=profile
# ## Profile
#
# There are three ways to get a timeline, and all of them give the same kind of trace. So everything on this page works on each.
#
# | | how | times | needs |
# |---|---|---|---|
# | in the program | `with agt.record() as trace:` | modelled on the simulated device; on a GPU from CUPTI, NVIDIA's library for profilers, or else from CUDA events | nothing |
# | from outside | `nsys profile`, then `agt.Trace.from_nsys(file)` | measured by Nsight Systems | a GPU, and Nsight Systems |
# | somebody else's | `agt.Trace.load_recording(name)`, `agt.Trace.load(file)` | whatever they were | the file |
#
# Each says of itself where its times are from. The recordings that come with this course were made on an H200:

# %% id=profile-clock
print("clock:", before.clock)
print("about:", dict(before.about) or "nothing more to say")
assert (before.clock == "simulated") == device.simulated

recorded = agt.Trace.load_recording("02_streams_and_events")
print("clock:", recorded.clock)
print("about:", {key: recorded.about[key] for key in ("gpu", "driver", "date", "command")})
names = agt.Trace.recordings()
print(f"There are {len(names)} recordings, such as {names[0]} and {names[-1]}.")
assert recorded.clock == "CUPTI"

# %% [markdown] id=profile-compare
# One kind of trace also means that you can lay two of them side by side, wherever they are from: `agt.compare`. Here is a program of
# chapter 05, four kernels on four streams, as it runs here, and as it ran on the H200:

# %% id=profile-compare-run
here = await record_run(RUNS["05_scheduling"])
there = agt.Trace.load_recording("05_scheduling")
laid_out = agt.compare(here, there, titles=["here", "the H200"])
print(laid_out.table())
assert laid_out.same_work
assert laid_out.same_order
laid_out.plot()

# %% [markdown] id=profile-compare-read
# The same work in the same order. What differs is named below the table. (If "here" is the simulated device: its kernels take about as long as the
# real ones, and its host is one that makes its calls without a break. A real Python takes breaks in between.)

# %% id=profile-compare-check
if device.simulated:
    assert 0.8 < laid_out["kernel matvec_naive"].factor < 1.25

# %% [markdown] id=profile-nsys
# With Nsight Systems the program has to be a script, since the profiler starts it. This page has one beside it, with
# the same functions:
#
# ```text
# export ASYNCGPU_NVTX=1
# nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-event-trace=true -o report python 08_profiling.py
# nsys export --type=sqlite -o report.sqlite report.nsys-rep
# ```
#
# The first line asks for the ranges. The second one runs the program and writes `report.nsys-rep`, which the profiler's window opens. The two options with *none*
# leave out what the CPU did besides (samples of its code, and which thread it ran when), so that the file stays small.
# `--cuda-event-trace=true` says which stream waited for which. Two more are worth knowing: `--capture-range=cudaProfilerApi` records only
# between `cupyx.profiler.profile()`'s start and end, and `--cuda-graph-trace=node` looks inside of CUDA graphs. The third line makes a database of it, for `agt.Trace.from_nsys("report.sqlite")`. One command does it all, analysis included, for
# the MLP of the last page: `asyncgpu-tutor profile`. For a program of yours: `asyncgpu-tutor profile -- python my.py`. Is Nsight Systems on this machine?

# %% id=profile-nsys-here
try:
    print("here:", nsys.find())
except UsageError as error:
    print(error)

# %% [markdown] id=read
# ## Read
#
# Here is our slow program. Read it from the top, with five questions. Do not skip any.
#
# 1. **Is the device busy?** If it is, go to question 3.
# 2. **Why does it stand still?** The pause before each piece of work ends for some reason, and that reason is the cause.
# 3. **What is it busy with?** Copies, or kernels? And do they overlap?
# 4. **What is the end waiting for?** The critical path: the chain of work without which the program cannot end sooner.
# 5. **What is the host doing?** Making calls, waiting, or its own work?

# %% id=read-plot
before.plot(title="First version", lanes=("host", "streams"))

# %% id=predict-cause
cause = Prediction(
    "In this timeline the device has pauses. What ends most of that time?",
    dependency="work on another stream, which had to be done first",
    engine="a copy engine that was busy with somebody else's copy",
    host="the host, which asks for the next piece of work at last",
)
cause

# %% id=predict-cause-commit
cause.commit(...)

# %% [markdown] id=analyse
# `agt.analyse` goes through all pauses of the device, and puts each down to what ended it:
#
# | cause | the next piece of work had to wait because |
# |---|---|
# | `dependency` | what it needs, on another stream, was not done |
# | `host late` | the host had not asked for it |
# | `engine busy` | another stream's copy held the copy engine |
# | `occupancy` | other kernels filled the device |
# | `start-up` | nothing was in its way: it takes a moment to start |

# %% id=analyse-run
analysis = agt.analyse(before)
idle = analysis.idle_by_cause
for name, us in idle.items():
    print(f"{name:12} {us:7.1f} µs")

# %% id=reveal-cause
names = {"dependency": "dependency", "engine busy": "engine"}
worst = max(idle, key=idle.get)
m = before.metrics()
cause.reveal(
    names.get(worst, "host"),
    f"Of {m.device_idle:.0f} µs of pauses, {idle['host late']:.0f} µs are put down to a host that was late.",
)

# %% [markdown] id=analyse-read
# So the answers are: (1) not all of the time; (2) the host is late; (3) copies, one after the other, on four streams that take
# turns; (4) everything, since nothing overlaps anything; (5) it waits, then it reports, and only then it asks for more. In a
# sentence: **the device waits for the host, because the host waits for the device.**
#
# All of it is one call, as a picture or as a text. In the picture, look at the depth of the queue: how much work has been asked for and is not
# done. A queue that runs empty again and again belongs to a host that does not keep ahead.

# %% id=analyse-picture
analysis.plot()
print(analysis.table())

# %% id=analyse-check
assert m.overlap == 0
assert m.host["wait"] > 0
assert idle["host late"] > idle["dependency"] + idle["engine busy"] + idle["occupancy"]
assert analysis.depth.depths.count(0) >= 4
if device.simulated:
    assert worst == "host late"
    assert len([span for span in before if span.kind == "wait"]) == 4

# %% [markdown] id=fix
# ## Fix, and profile again
#
# One change: ask for everything first, and report on each chunk when it is there.


# %% id=fix-program
async def second_version():
    async def one(i):
        with ranges.across("request"):
            result = await chunk(i)
            with ranges.span("report"):
                report(i)
            return result

    return await asyncio.gather(*[one(i) for i in range(4)])


after = await profiled(second_version)
comparison = agt.compare(before, after, titles=["before", "after"])
print(comparison.table())
comparison.plot()

# %% id=fix-check
assert comparison.same_work
if device.simulated:  # a GPU's profile has whatever else the machine did
    assert after.metrics().makespan < before.metrics().makespan
assert after.metrics().overlap > 0
assert after.metrics().host["wait"] < before.metrics().host["wait"]
results = await second_version()
assert [result[0] for result in results] == [1, 2, 3, 4]

# %% [markdown] id=fix-read
# The same work, sooner: streams overlap now, and the host does not wait in a call any more. And what limits it *now*? There always is something, and it is
# something else than before. To find it, see who is busy most of the time.

# %% id=predict-next
limit = Prediction(
    "Who is closest to being busy all the time in the repaired program?",
    copies="a copy engine",
    kernels="the part that computes",
    host="the host",
)
limit

# %% id=predict-next-commit
limit.commit(...)

# %% id=reveal-next
m = after.metrics()
span_of = {"host": m.host["call"] + m.host["work"], "kernels": 0.0, "copies": 0.0}
for (_, engine), us in m.engine_busy.items():
    group = "kernels" if engine == "compute" else "copies"
    span_of[group] = max(span_of[group], us)
for group, us in span_of.items():
    print(f"{group:8} {us / m.makespan:4.0%} of the time")
limit.reveal(max(span_of, key=span_of.get), "The percentages above say so.")

# %% [markdown] id=enough
# When is it enough? When what is busy all the time is what *has* to be: the data have to go over the bus once, and no program can
# be shorter than that. Chapter 05 called it the least time that a program can take. Until then: next round. (If it is
# the host, with nothing but its calls: chapter 09 has a remedy.)

# %% [markdown] id=busy
# ## Busy is not the same as well used
#
# Question 1 has a trap. Here are six small products of a matrix and a vector on one stream, and the device hardly
# pauses:

# %% id=busy-run
ROWS, COLUMNS = 256, 2048
matrix = (await agt.h2d(agt.pin(np.ones((ROWS, COLUMNS), np.float32)), "matrix")).share()
vector = (await agt.h2d(agt.pin(np.ones(COLUMNS, np.float32)), "vector")).share()


def product(i):
    out = agt.zeros(ROWS, name=f"out {i}").partition(256)
    return agt.matvec_naive(ROWS, COLUMNS, matrix, vector, out).named(f"product {i}")


async def six_products():
    with agt.using(policy=policy):
        await asyncio.gather(*[product(i) for i in range(6)])


policy = agt.SingleStream()
in_line = await profiled(six_products)
m = in_line.metrics()
print(f"the device is busy for {m.device_active / m.device_makespan:.0%} of its time")
assert m.device_active / m.device_makespan > 0.8

# %% id=predict-busy
room = Prediction(
    "The same work on six streams. What happens to the time from the device's first work to its last?",
    same="nothing: the device was busy already",
    longer="it grows: six kernels get in each other's way",
    shorter="it shrinks to less than two thirds",
)
room

# %% id=predict-busy-commit
room.commit(...)

# %% id=busy-again
policy = agt.StreamPoolRoundRobin(6)
side_by_side = await profiled(six_products)
agt.compare_timelines([in_line, side_by_side], ["One stream", "Six streams"])

# %% id=reveal-busy
one, six = in_line.metrics().device_makespan, side_by_side.metrics().device_makespan
blocks = side_by_side.find("matvec_naive")[0].detail["grid"]
room.reveal(
    "shorter" if six < one / 1.5 else "longer" if six > one else "same",
    f"{one:.0f} µs became {six:.0f} µs. Each launch has a grid of {tuple(blocks)}: a single block.",
)

# %% [markdown] id=misconception-busy
# > **Misconception: the device is busy, so it cannot be made quicker.**
# >
# > - *What you see:* a utilisation near 100 percent, in a timeline as in `nvidia-smi`.
# > - *Why:* busy means that *some* kernel ran. A kernel of one block uses one of the many SMs of the device, and the others
# >   have nothing to do.
# > - *What helps:* look at the grid. Few blocks: run several at once, or give each more to do.

# %% id=misconception-busy-check
assert tuple(blocks) == (1, 1, 1)
assert side_by_side.metrics().max_concurrency >= 2
assert one / six > 1.5
if device.simulated:
    assert in_line.metrics().device_active / in_line.metrics().device_makespan > 0.9

# %% [markdown] id=nsight
# ## The window of Nsight Systems
#
# You may never need it: what is on this page is enough for the programs of this course. But sooner or later you get a
# `.nsys-rep` of a program that is not yours. Its window looks like much, and is what you know in another order.
#
# The course brings one: the MLP of the last page, run on an H200 under `nsys` 2025.3, so that you need this version or a later one to open it. We read its
# export, and draw it as the window arranges it. The drawing is ours, and numbers streams by first use; the window shows CUDA's own numbers, here 14 to 17
# (`span.detail["cuda_stream"]`). The names of rows and menus are those of version 2023.4 and of its User Guide, and later versions may differ a
# little. (If you have Nsight Systems, open the report itself beside it: *File > Open*.)

# %% id=nsight-picture
print("the report:", agt.Trace.recorded_file("07_async_mlp.nsys-rep").name)
export = agt.Trace.recorded_file("07_async_mlp.sqlite")
foreign = agt.Trace.from_nsys(export, within="07_async_mlp")
nsight_window(foreign)
print("Above: the GPU. All streams together, then each with a row for kernels and one for memory.")
print("Below: the thread, with our ranges (in several rows), and one row for the calls of CUDA.")

# %% id=nsight-check
assert foreign.clock == "Nsight Systems"
assert {"batch 0", "batch 0 in flight"} <= {span.name for span in foreign if span.kind == "range"}
assert len(foreign.device_spans) == 28
assert foreign.find("sgemm_naive")[0].label == "batch 0"

# %% [markdown] id=nsight-read
# Read it in the order of the numbers:
#
# - **(1) asyncgpu_tutor**, below the row of a thread: your ranges. A library gives its ranges a **domain**, and this is the name of ours; without one the row
#   is called *NVTX*. What `across` has opened is on a row *Start & End* of its own. Find the request that you care about, draw the mouse over that
#   stretch, and choose *Filter and Zoom in*, which hides all else, or *Zoom into Selection*. (We have done the same with
#   `within="07_async_mlp"`: the file has the whole program, its warm-up too.) *Undo Zoom* takes you back.
# - **(2) CUDA API**: the calls of this thread. Those with *Synchronize* in their names are our waits. Click on a launch, and its kernel is
#   highlighted above. Here that is in the kernel's `after`, which has the number of its call.
# - **(3) [All Streams]**, under *CUDA HW*: all that the device did. Look for gaps: there, nobody works. That is question 1.
# - **(4) Kernels** and **(5) Memory**, under a stream: its work, as on our lanes. The little triangle beside a row unfolds it. If a line says that streams are
#   *hidden*, the plus sign beside it shows more of them. A percentage before a name is its share of the time.
#
# A right click on a row offers *Show in Events View*: the table below the timeline then lists that row, with start and duration, as our
# `table()` does. The list above that table has more to show. The **Expert System View** is a detective like the one that you are about to meet, and the **Stats System
# View** has sums by kernel and by call. Without a window, they are `nsys analyze report.nsys-rep` and `nsys stats report.nsys-rep`. (The rule for gaps does not mind any
# that is shorter than half a second. It counts in whole milliseconds, so it cannot see the gaps of this report, of which the largest has a tenth of one: that is what
# `agt.analyse(trace).gaps` is for.) What all of
# them mean is in NVIDIA's
# [User Guide](https://docs.nvidia.com/nsight-systems/UserGuide/index.html) and its
# [guide to analysis](https://docs.nvidia.com/nsight-systems/AnalysisGuide/index.html).
#
# | you want to know | here | in Nsight Systems |
# |---|---|---|
# | whose work it is | label of a span | the range around its call, in the row of its domain |
# | whether the host waits | white, dotted spans on the host's lane | `cudaEventSynchronize` and the like in *CUDA API*. Rule `cuda_api_sync` |
# | whether a copy was pageable | `span.detail["pageable"]` | its name, such as *Memcpy HtoD (Pageable)*. Rule `cuda_memcpy_async` |
# | from when to when the device worked for a range | `analyse(trace).sums.ranges` | the range once more, below *CUDA HW*. Sum `nvtx_gpu_proj_sum` |
# | gaps of the device | `analyse(trace).idle_by_cause` | gaps in *[All Streams]*. Rules `gpu_gaps` and `gpu_time_util` |
# | what a stream waited for | an arrow, `span.after` | `cudaStreamWaitEvent` in *CUDA API* |
# | how long each sort of work takes | `agt.compare(a, b).table()` | sums `cuda_gpu_kern_sum`, `cuda_gpu_mem_time_sum` and `cuda_api_sum` |
#
# For a browser there is a third window: `trace.to_perfetto("trace.pftrace")` writes a file that [ui.perfetto.dev](https://ui.perfetto.dev) opens. The host is on top, and each stream has a line
# below it. Click on a piece of work, and an arrow shows the call that asked for it. The page reads the file in your browser; nothing is sent anywhere.

# %% [markdown] id=reports
# ## Eight questions to a report
#
# A report is only worth what you can get out of it. Here is the one of the MLP once more, and eight questions that people ask
# of reports every day. The first six want a function, since a function answers the next report as well. Each answer is
# checked against the files themselves.
#
# What you have is `trace.device_spans`, each with `start`, `end`, `name`, `kind`, `stream`, `label` and `detail`; and
# `agt.analyse(trace)`, with its `gaps`, its `sums` and `idle_by_cause`. If you have Nsight Systems, open the report beside this
# page and answer by eye first.

# %% id=reports-sums
print(agt.analyse(foreign).sums.table())

# %% [markdown] id=exercise-gap
# ### 1. The largest gap
#
# For how long did the device stand still, at worst? Return `(start, end)` of the longest time in which *no* stream worked, in
# µs; `(0.0, 0.0)` if somebody was always at work. Streams overlap, so the piece of work before a gap need not be the one that ended last.


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
# That time is the *largest* end so far: a short kernel may start late and end early, while a copy beside it goes on.
#
# `done = max(done, span.end)` after each span; a gap is there if the next one starts after `done`.

# %% id=08-gap explanation
# This is the row *[All Streams]* of the profiler's window. `agt.analyse(trace).gaps` has all of them, longest first.

# %% id=08-gap-check
check("08-gap", largest_gap)

# %% [markdown] id=exercise-kernel
# ### 2. A kernel's stream and duration
#
# The timelines of this course number streams by their first use. The profiler's window shows CUDA's own numbers, which here
# begin with 14. Return `(CUDA's number, duration in µs)` of the longest launch of the kernel called `name`. CUDA's number is in
# `span.detail["cuda_stream"]`.


# %% id=08-kernel starter
def longest(trace, name): ...


# %% id=08-kernel solution
def longest(trace, name):
    span = max(trace.find(name), key=lambda span: span.duration)
    return span.detail["cuda_stream"], span.duration

# %% id=08-kernel hints
# `trace.find(name)` has all launches of it.
#
# `max(..., key=lambda span: span.duration)` gives the span itself.
#
# Then `span.detail["cuda_stream"], span.duration`.

# %% id=08-kernel explanation
# Say "stream 14" to a colleague who has the report open, and "stream 1" to one who has the timeline of this page.

# %% id=08-kernel-check
check("08-kernel", longest)

# %% [markdown] id=exercise-sql
# ### 3. One SQL query
#
# An export is a database, and any tool that speaks SQL can ask it. Kernels are in the table `CUPTI_ACTIVITY_KIND_KERNEL`, with
# `start` and `end` in nanoseconds. Names are kept once, in the table `StringIds` with its columns `id` and `value`; a kernel has only
# the number of its name, in `shortName`. Write a query for the name of each kernel and the sum of its durations, in
# nanoseconds, with the largest sum first. (`trace.sql` asks a trace in the same way, without joins.)

# %% id=sql-look
foreign.sql("select kind, count(*), sum(duration) from spans where stream is not null group by kind")

# %% id=08-sql starter
query = ...

# %% id=08-sql solution
query = """
select value, sum(end - start) as total
from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName
group by value
order by total desc
"""

# %% id=08-sql hints
# `select ... from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on id = shortName` puts a name to each kernel.
#
# `group by value` makes one row of all launches of a name, and `sum(end - start)` is their time.
#
# `order by sum(end - start) desc` at the end.

# %% id=08-sql explanation
# That is `nsys stats --report cuda_gpu_kern_sum` in four lines. The User Guide describes all tables under "SQLite Schema Reference". A
# table is there only if there is something in it.

# %% id=08-sql-check
check("08-sql", query)

# %% [markdown] id=exercise-blame
# ### 4. Whose request ended it?
#
# A gap ends when some piece of work starts. Return the label of its request, and the main cause of the largest gap, as `(label,
# cause)`. `agt.analyse(trace).gaps` has the gaps, longest first, and `gap.main` is the longest part of one: it has a `cause` and the
# `span` that ended the pause.


# %% id=08-blame starter
def blame(trace): ...


# %% id=08-blame solution
def blame(trace):
    gap = agt.analyse(trace).gaps[0]
    return gap.main.span.label, gap.main.cause

# %% id=08-blame hints
# The first of the gaps is the longest.
#
# A gap has parts, because a pause may have several causes, one after the other.
#
# `gap = agt.analyse(trace).gaps[0]`, then `gap.main.span.label` and `gap.main.cause`.

# %% id=08-blame explanation
# Without ranges there would be no label, and the answer would be "some kernel". That is why one annotates first.

# %% id=08-blame-check
check("08-blame", blame)

# %% [markdown] id=exercise-rate
# ### 5. How fast is the bus?
#
# Return how many gigabytes (10⁹ bytes) a second went *to* the device, over all such copies together. `span.kind` is `"h2d"`, and
# `span.detail["bytes"]` is their size.


# %% id=08-rate starter
def rate(trace): ...


# %% id=08-rate solution
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    size = sum(span.detail["bytes"] for span in copies)
    return size / sum(span.duration for span in copies) / 1000

# %% id=08-rate hints
# All bytes, divided by all time: not the mean of the rates, in which a tiny copy counts as much as a large one.
#
# Bytes per µs are megabytes per second.
#
# So `size / time / 1000`.

# %% id=08-rate explanation
# Compare it with what the bus can do: about 55 GB/s from pinned memory on this H200, for copies of many megabytes. Small copies reach a
# part of that, and pageable ones less.

# %% id=08-rate-check
check("08-rate", rate)

# %% [markdown] id=exercise-projected
# ### 6. A range, projected on the device
#
# A range is a stretch of the *host's* time. What you want to know is often the other thing: from when to when did the device work for it?
# Profilers call that the range *projected on the GPU*. Return `(µs on the host, µs on the device)` for all ranges called `name`.
# `agt.analyse(trace).sums.ranges` has a row for each name.


# %% id=08-projected starter
def projected(trace, name): ...


# %% id=08-projected solution
def projected(trace, name):
    (row,) = [row for row in agt.analyse(trace).sums.ranges if row.name == name]
    return row.host, row.device

# %% id=08-projected hints
# Print a row: it has a `name`, a `count`, and times.
#
# `host` is how long the ranges were open, and `work` the sum of the work. Which is from the first start to the last end?
#
# `row.host, row.device`.

# %% id=08-projected explanation
# In the window, the same ranges are drawn again below the row *CUDA HW*; `nsys stats --report nvtx_gpu_proj_sum` sums them up. A range
# may be shorter on the host than on the device: a call asks, and goes on.

# %% id=08-projected-check
check("08-projected", projected)

# %% [markdown] id=exercise-limits
# ### 7. Three limits
#
# Not every slow program has a defect. Each of these three is limited by something else: by the bus (`"copies"`), by a `"host"` that cannot ask
# fast enough, or by launches that fill a small part of the device (`"blocks"`). Which is which? Answer with a dict: `{"P": "...", "Q": "...", "R": "..."}`.

# %% id=limits-look
for letter in "PQR":
    report_of = agt.analyse(limited(letter))
    m = report_of.metrics
    busy = {engine: us / m.device_makespan for (_, engine), us in m.engine_busy.items()}
    blocks = {int(np.prod(s.detail["grid"])) for s in limited(letter) if s.kind == "kernel"}
    print(letter, {name: f"{part:.0%}" for name, part in busy.items()}, f"blocks of a launch: {blocks}")

# %% id=08-limits starter
limits = ...

# %% id=08-limits solution
limits = {"P": "copies", "Q": "host", "R": "blocks"}

# %% id=08-limits hints
# Add up the percentages of a line. Which program hardly uses the device?
#
# Of the other two, what is at work all the time: copies, or kernels?
#
# Q is idle most of the time, so its limit is the host. P copies, and R has launches of one block.

# %% id=08-limits explanation
# `agt.diagnose` calls Q *host-bound* and R *low utilisation*, and says what helps. Of P it says nothing: the bus is as busy as it can be on one
# stream.

# %% id=08-limits-check
check("08-limits", limits)

# %% [markdown] id=exercise-gain
# ### 8. What did the repair bring?
#
# The last question of every profile. Return `(how many times as fast, µs of idle time saved)`: the whole time before over the whole time after, and how much
# less the device was idle. (Both numbers may disappoint: less than 1, or below 0.)


# %% id=08-gain starter
def gain(before, after): ...


# %% id=08-gain solution
def gain(before, after):
    old, new = before.metrics(), after.metrics()
    return old.makespan / new.makespan, old.device_idle - new.device_idle

# %% id=08-gain hints
# `trace.metrics()` has `makespan` and `device_idle`.
#
# Twice as fast means half the time: the old one is on top.
#
# `old.makespan / new.makespan, old.device_idle - new.device_idle`.

# %% id=08-gain explanation
# Say both, and say how you measured. For exhibit G the first number is below 1: in four parts it takes longer, since each launch costs the host more than
# the overlap wins.

# %% id=08-gain-check
check("08-gain", gain)

# %% [markdown] id=detective
# ## Seven suspects
#
# Some mistakes are so common that it pays to know their faces. Here they are, with how one knows them.
#
# | suspect | one knows it by |
# |---|---|
# | `null stream` | work in the lane of stream 0 |
# | `hidden synchronisation` | a wait on the host's lane, and calls for more work after it |
# | `pageable copy` | calls for a copy that last about as long as the copy itself |
# | `lazy module loading` | one call far longer than all others, when a kernel is first used |
# | `allocation in the loop` | a `malloc` in every round, each after the one before was done with |
# | `too few streams` | operations right behind each other on a stream, while the device has room |
# | `one big kernel` | one kernel has most of the device's time, with blocks enough to fill it |
#
# Each of the cases below has an **exhibit**, the trace of a program with just one of them. Below it is a small program with the same defect. Write
# the culprit's name in place of the dots, and repair the program. The check runs yours on a simulated device, and looks at *its* trace: the defect has to be gone,
# no other may have come in its place, the results have to be right, and nothing may be left to luck.
#
# The exhibits are recordings of an H200: real traces, with all that is untidy about them. With each picture comes a list of what happened in it: how often, and how long the
# shortest and the longest of them took. (`launch` and `enqueue` are calls of the host, and `relu` or `h2d` what the device made of them.)


# %% id=show
def show(letter):
    trace = exhibit(letter)
    for name in dict.fromkeys(span.name for span in trace):
        spans = trace.find(name)
        times = sorted(span.duration for span in spans)
        grid = spans[0].detail.get("grid", [])
        blocks = f"   blocks: {int(np.prod(grid))}" if grid else ""
        print(f"{len(spans):2} x {name:22} {times[0]:8.1f} to {times[-1]:8.1f} µs{blocks}")
    for name, us in agt.analyse(trace).idle_by_cause.items():
        if us:
            print(f"The device stood still, {name}: {us:.1f} µs")
    return trace.plot(title=f"Exhibit {letter}", lanes=("host", "streams"))


# %% [markdown] id=case-a-text
# ### Case A
#
# *"I start four tasks, and they are on four streams. Why do they take turns?"*

# %% id=case-a-exhibit
show("A")

# %% [markdown] id=exercise-case-a
# `program_a` gets operations, and returns their results in order.


# %% id=08-case-a starter
def settle():
    """Came with the code of another project. Nobody remembers what for."""
    agt.synchronize()


async def program_a(ops):
    tasks = []
    for op in ops:
        tasks.append(agt.spawn(op))
        await asyncio.sleep(0)
        settle()
    return [await task for task in tasks]


case_a = ..., program_a


# %% id=08-case-a solution
async def program_a(ops):
    tasks = []
    for op in ops:
        tasks.append(agt.spawn(op))
        await asyncio.sleep(0)
    return [await task for task in tasks]


case_a = "hidden synchronisation", program_a

# %% id=08-case-a hints
# Look at the host's lane. What does it do between two calls for a copy to the device?
#
# Which line of the program keeps the host waiting? It need not be one that says `await`.
#
# `settle()` calls `agt.synchronize()`. The culprit is `"hidden synchronisation"`; the program is right without that line. Awaiting the
# tasks at the end is wait enough.

# %% id=08-case-a explanation
# One line in a helper, and four streams take turns. Waits hide in logging, in assertions on results, in a `.item()` or a `print` of a
# device value, in an allocator that runs out. On the host's lane all of them look the same.

# %% id=08-case-a-check
check("08-case-a", case_a)

# %% [markdown] id=case-a-again
# *Profile again*, the fifth step, is for you to take, too: here is your `program_a`, as it is now, with the four chunks from above
# and on your device.


# %% id=case-a-again-run
async def with_chunks():
    return await program_a([chunk(i) for i in range(4)])


again = await profiled(with_chunks)
print("findings:", [finding.name for finding in agt.diagnose(again)] or "none")
again.plot(title="Your program_a", lanes=("host", "streams"))

# %% [markdown] id=case-b-text
# ### Case B
#
# *"The device is busy from start to end. I need a larger one, do I not?"*

# %% id=case-b-exhibit
show("B")

# %% [markdown] id=exercise-case-b
# `program_b` gets operations as well, six or more. Each has a kernel of one block.


# %% id=08-case-b starter
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(2)):
        return await asyncio.gather(*ops)


case_b = ..., program_b


# %% id=08-case-b solution
async def program_b(ops):
    with agt.using(policy=agt.StreamPoolRoundRobin(len(ops))):
        return await asyncio.gather(*ops)


case_b = "too few streams", program_b

# %% id=08-case-b hints
# How many streams are there, how many operations, and how much of the device does one need?
#
# Each kernel is one block. A device has room for many of these at once, but a stream runs one after the other.
#
# `"too few streams"`. `agt.StreamPoolRoundRobin(len(ops))` gives each operation a stream of its own.

# %% id=08-case-b explanation
# An operation that stands behind another on its stream waits for it, whether it needs it or not. Streams cost little, so have as many as
# there is room for. (In CUDA there is one more limit below: streams share hardware queues, whose number `CUDA_DEVICE_MAX_CONNECTIONS`
# sets.)

# %% id=08-case-b-check
check("08-case-b", case_b)

# %% [markdown] id=case-c-text
# ### Case C
#
# *"Half of it comes from a library. It is said to be asynchronous."*

# %% id=case-c-exhibit
show("C")

# %% [markdown] id=exercise-case-c
# Operations again, and their results in order.


# %% id=08-case-c starter
async def program_c(ops):
    default = agt.current_device().default_stream
    early = [op.async_on(default) for op in ops[:2]]
    late = await asyncio.gather(*ops[2:])
    agt.synchronize()
    return [result.numpy() for result in early] + late


case_c = ..., program_c


# %% id=08-case-c solution
async def program_c(ops):
    return await asyncio.gather(*ops)


case_c = "null stream", program_c

# %% id=08-case-c hints
# Read the numbers of the lanes.
#
# Where did stream 0 come from? No policy deals it out.
#
# `"null stream"`: `default_stream` is number 0. Leave the choice to the policy, for all of them: `await asyncio.gather(*ops)`.

# %% id=08-case-c explanation
# Here it cost some overlap, as two operations shared a stream. In a program whose other streams are blocking ones (CUDA's default, and
# CuPy's) it would have cost all of it. Whatever names no stream goes there, so look for it in libraries, too.

# %% id=08-case-c-check
check("08-case-c", case_c)

# %% [markdown] id=case-d-text
# ### Case D
#
# *"Four streams, four tasks, no wait anywhere. And hardly any two of them overlap."*

# %% id=case-d-exhibit
show("D")

# %% [markdown] id=exercise-case-d
# `make(x)` makes an operation that copies a NumPy array to the device, works on it, and copies it back. `arrays` come from a file.


# %% id=08-case-d starter
async def program_d(make, arrays):
    return await asyncio.gather(*[make(x) for x in arrays])


case_d = ..., program_d


# %% id=08-case-d solution
async def program_d(make, arrays):
    return await asyncio.gather(*[make(agt.pin(x)) for x in arrays])


case_d = "pageable copy", program_d

# %% id=08-case-d hints
# Compare the calls that enqueue a copy with those that launch something. How long are they?
#
# In which kind of memory is what `np.full` or `np.load` gives you?
#
# `"pageable copy"`: `make(agt.pin(x))` in place of `make(x)`. Each needs a pinned array of its own, as all are in flight together.

# %% id=08-case-d explanation
# The copy from pageable memory was staged by the host, so the host was inside of the call all the while. In a program that runs for long,
# pin a few buffers once and fill them in turn: pinning itself takes time.

# %% id=08-case-d-check
check("08-case-d", case_d)

# %% [markdown] id=case-e-text
# ### Case E
#
# *"Our benchmark says some milliseconds a round. In production it is a hundred times less. Which of the two is wrong?"*

# %% id=case-e-exhibit
show("E")

# %% [markdown] id=exercise-case-e
# `make()` makes the operation of one round. The benchmark returns the trace of `rounds` rounds, as they are when the program has been running for a while.


# %% id=08-case-e starter
async def program_e(make, rounds):
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    return trace


case_e = ..., program_e


# %% id=08-case-e solution
async def program_e(make, rounds):
    await make()
    with agt.record() as trace:
        for _ in range(rounds):
            await make()
    return trace


case_e = "lazy module loading", program_e

# %% id=08-case-e hints
# Most of the time is one call. What is special about it?
#
# Would a second recording look the same? The trace should show the usual round, not the first.
#
# `"lazy module loading"`: run `await make()` once before the recording begins, to its end, and all rounds inside of it as before.

# %% id=08-case-e explanation
# What happens once must not be counted to what happens a thousand times. Loading is one such thing; memory pools that grow, clocks that
# rise and caches that fill are others. (And if the first request matters to you, warm up before you open the doors.)

# %% id=08-case-e-check
check("08-case-e", case_e)

# %% [markdown] id=case-f-text
# ### Case F
#
# *"Each round needs the result of the one before, so nothing can overlap. What else can I do for the time between two rounds?"*

# %% id=case-f-exhibit
show("F")

# %% [markdown] id=exercise-case-f
# `x` goes to the device, `compute` makes an operation that works on it in place and gives the array back, the result comes back to the host, and `step` makes
# the next `x` of it. One call in each round need not be there. (`agt.memcpy(target, source)` may be of use, which you have not met yet: it copies *into* an array that is
# there already, and yields both.)


# %% id=08-case-f starter
async def program_f(x, compute, step, rounds):
    for _ in range(rounds):
        y = await agt.h2d(x, "state").and_then(compute).to_host()
        x = step(y)
    return x


case_f = ..., program_f


# %% id=08-case-f solution
async def program_f(x, compute, step, rounds):
    room = await agt.zeros(x.shape, name="state")
    for _ in range(rounds):
        y = await agt.memcpy(room.borrow(), x).first().and_then(compute).to_host()
        x = step(y)
    return x


case_f = "allocation in the loop", program_f

# %% id=08-case-f hints
# Which calls come back in every round, although nothing in the round is new?
#
# `agt.memcpy(target, x)` copies into an array that is there already. Lend it: `room.borrow()`.
#
# `"allocation in the loop"`: `room = await agt.zeros(x.shape, name="state")` before the loop, and `agt.memcpy(room.borrow(), x).first()`
# in place of `agt.h2d(x, "state")`.

# %% id=08-case-f explanation
# The arrays of this course come from a pool in the order of the stream, so each of these calls is short. A plain `cudaMalloc` is not, and
# `cudaFree` may wait for the whole device. What is the same in every round belongs in front of the loop.

# %% id=08-case-f-check
check("08-case-f", case_f)

# %% [markdown] id=case-g-text
# ### Case G
#
# *"More streams, more tasks, pinned memory: I have tried it all. It stays as it is."*

# %% id=case-g-exhibit
show("G")

# %% [markdown] id=exercise-case-g
# `job(part)` makes an operation that copies an array of numbers to the device, works on each number for a while, and copies them back. It takes an array of any
# length, and the numbers do not need each other. What can you do about the copies at least?


# %% id=08-case-g starter
async def program_g(job, x):
    return await job(x)


case_g = ..., program_g


# %% id=08-case-g solution
async def program_g(job, x):
    parts = np.array_split(x, 4)
    return np.concatenate(await asyncio.gather(*[job(part) for part in parts]))


case_g = "one big kernel", program_g

# %% id=08-case-g hints
# For most of the time one thing happens. What else could happen meanwhile, and why does it not?
#
# The copy back waits for the kernel, the kernel for the copy to the device: they are one operation. With the numbers in parts, there
# would be several.
#
# `"one big kernel"`: `parts = np.array_split(x, 4)`, `asyncio.gather` of `job(part)` for each, and `np.concatenate` of what comes back.

# %% id=08-case-g explanation
# The kernel takes as long as before, all parts together. But while one part is computed, the next one is copied to the device and the
# last one back. More than a few parts bring nothing more, and cost a launch each. What is left is the kernel itself: a case for the
# microscope.

# %% id=08-case-g-check
check("08-case-g", case_g)

# %% [markdown] id=diagnose
# ## The detective
#
# You have done by eye what a program can do as well. `agt.diagnose` takes a trace and goes through the list of suspects. For each one
# that it finds evidence of there is a **finding**: what was seen, what it costs, what to do. Here it is with the seven exhibits, and with their repaired twins:

# %% id=diagnose-run
times = {}
print("exhibit                    with the defect    repaired")
for letter, name in EXHIBITS.items():
    guilty, twin = exhibit(letter), exhibit(letter, repaired=True)
    (finding,) = [found for found in agt.diagnose(guilty) if not found.limit]
    assert all(found.limit for found in agt.diagnose(twin))
    assert finding.name == name.removeprefix("08_").replace("_", " ")
    times[letter] = guilty.metrics().makespan, twin.metrics().makespan
    print(f"{letter}  {finding.name:22} {times[letter][0]:9.0f} µs   {times[letter][1]:9.0f} µs")

assert times["E"][0] > 100 * times["E"][1]
assert times["G"][0] < times["G"][1]

# %% [markdown] id=diagnose-read
# One finding each, and none for the twins. But compare the times. Exhibit E became more than 100 times as short, others changed hardly at all, and G got *longer*: its
# kernel was too short to be worth four launches from Python, so that the host is the limit now. (In your case G it is longer, and it pays.) **A finding is a reason to look, and not a
# reason to change.** Whether a repair pays, the next profile says.
#
# The detective has a second weakness: he finds what he knows.


# %% id=blind-spot
async def one_by_one():
    return [await chunk(i) for i in range(4)]


unnoticed = await profiled(one_by_one)
findings = [finding.name for finding in agt.diagnose(unnoticed) if not finding.limit]
print("findings:", findings or "none")
print(f"overlap: {unnoticed.metrics().overlap:.0f} µs")
for name, us in agt.analyse(unnoticed).idle_by_cause.items():
    print(f"  the device stood still, {name}: {us:.1f} µs")
assert unnoticed.metrics().overlap == 0
assert set(findings) <= {"lazy module loading"}  # a real host may stumble over a launch
if device.simulated:
    assert not findings

# %% [markdown] id=blind-spot-read
# Four tasks' worth of work, one `await` after the other: nothing overlaps, and nothing is found. There is no wait on the host's lane, as an `await` does not
# block anybody, and each kernel and each copy is as it should be. The five questions find it in a minute. (Which of them does?) So use the detective first, since he is quick, and then read all the same.

# %% id=blind-spot-picture
assert agt.analyse(unnoticed).idle_by_cause["host late"] > 0
unnoticed.plot(title="Nothing found, and nothing overlaps", lanes=("host", "streams"))

# %% [markdown] id=blind-spot-answer
# The second and the third: the device stands still until the host asks for the next chunk, and no copy overlaps another. The remedy is the one from above, `asyncio.gather`.

# %% [markdown] id=where-next
# ## Your own programs
#
# - Put `named` on operations and ranges on requests from the first day. You will be glad of them.
# - Keep a trace of a good run: `trace.save("good.json")`. When the program has become slow, `agt.compare(agt.Trace.load("good.json"), trace)` says what is
#   different.
# - When a kernel *is* what the end is waiting for, this page has done its part. What is going on inside of it is asked with
#   `agt.microscope`, or with Nsight Compute on a GPU.

# %% [markdown] id=key-points
# ## Key points
#
# - Annotate, profile, read, fix *one* thing, profile again. What you would have fixed without a profile is seldom what counts.
# - A range around an `await` has to be of the kind that needs no stack: `across`.
# - Five questions: is the device busy, why not, with what, what does the end wait for, what does the host do.
# - Busy is not well used: look at the grid.
# - The seven suspects are quickly told from their traces. A finding is a reason to look; what it costs, a second profile says.
# - Warm up before you measure.
#
# What others call these things is in the [glossary](../docs/glossary.md), and more of what people believe in the
# [misconceptions](../docs/misconceptions.md). More on the three clocks, on what recording costs, and on the commands is in
# [profiling](../docs/profiling.md).
#
# **Next:** [09_cuda_graphs.ipynb](09_cuda_graphs.ipynb), for the case that question 5 has the answer: a host that is busy making calls.

# %% id=score
score(where, cause, limit, room)

# %% id=progress
progress("08")
