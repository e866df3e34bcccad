"""Source of notebooks/08b_detective.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Be the detective: convict, repair, look again
#
# In chapter 08 you learned to read a report, and then left a program alone with a good conscience. Not this one. It's a server: eight requests are waiting, 2 MB each. `read_into(buffer)` writes one into an array of yours, as `socket.recv_into` does. It goes to the GPU, `model` works on it in a single block, and its scores come back. It takes 4731 µs on the simulated device. **Who keeps it so long?**
#
# By the end of this page you'll have met the usual suspects, written a detective that tells them apart, and made this server six times as fast, one repair at a time. You'll also have met a repair that made things worse.
#
# | | |
# |---|---|
# | Time | an hour. The encores, for another day, take half an hour |
# | You need | [08_profiling](08_profiling.ipynb), and for the server policies ([05](05_scheduling.ipynb)) and pinned memory ([02b](02b_copies_and_chunks.ipynb)). No GPU: the reports come with the course |

# %% id=setup
import asyncio
import warnings
from dataclasses import replace

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)
from asyncgpu_course.exhibits import report, rounds

device = agt.use("auto")
device

# %% id=slow-server
def settle():
    """Let things settle."""
    agt.synchronize()


async def slow_server(requests, model):
    policy = agt.StreamPoolRoundRobin(4)
    tasks = []
    for read_into in requests:
        x = np.empty((64, 8192), np.float32)
        read_into(x)
        work = agt.h2d(x, "request").and_then(model).to_host()
        tasks.append(agt.spawn(work, policy))
        await asyncio.sleep(0)  # gives the task a turn, so that it begins
        settle()
    return [await task for task in tasks]

# %% id=requests tags=helpers
ROWS, COLUMNS = 64, 8192
weights = agt.h2d(agt.pin(np.ones(COLUMNS, np.float32)), "weights").share().sync()


def request(i):
    return lambda buffer: np.copyto(buffer, np.float32(i + 1))


def score_of(x):
    def product(y):
        return agt.matvec_naive(ROWS, COLUMNS, x, weights, y.partition(ROWS)).output()

    return agt.zeros(ROWS, name="scores").and_then(product)


requests = [request(i) for i in range(8)]


async def picture_of(serve):
    """Serve twice, since the first time is special, and return what it gave, and its trace."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", agt.errors.PageableCopyWarning)  # a finding says it as well
        await serve(requests, score_of)
        with agt.record() as served:
            given = await serve(requests, score_of)
    return given, served

# %% id=slow-picture
answers, slow = await picture_of(slow_server)
print(f"It takes {slow.metrics().makespan:,.0f} µs.")
slow.plot(
    title="The slow server",
    lanes=("host", "streams"),
    lesson="A staircase: one request after the other, with pauses between them. "
    "Four streams take turns. (Copies back are too short to see.)",
)

# %% [markdown] id=first-screen-end
# Four streams, eight requests, and never two at a time. Before you touch it, learn to tell who does such a thing.

# %% [markdown] id=suspects
# ## The line-up
#
# Some faces are so common that it's worth knowing them. A *run* is from the GPU's first work to its last, as in chapter 08:
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
# Ask from top to bottom, and the first one that fits is it. The order matters, because whoever waits or copies ordinary memory leaves the GPU without work, too, and would look `host-bound`. Exhibit A in chapter 08 was a `hidden synchronisation`, and its plate was `host-bound`.
#
# Here are four more exhibits: reports of small programs from an H200, each with a note from its author. (`launch` and `enqueue` are calls by the host.) A face can lie, and so can an author. (E waits in the encores, and C and F aren't on this page.)

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


def took_each(found):
    return [max(s.end for s in work) - min(s.start for s in work) for work in found]


def convicted(trace):
    named = [found.name for found in agt.diagnose(trace) if not found.limit]
    return (named or ["innocent"])[0]


def show(letter, note, lesson):
    print(f"Its author says: {note}")
    lanes = "host", "streams"
    return report(letter).from_first().plot(title=f"Exhibit {letter}", lanes=lanes, lesson=lesson)

# %% [markdown] id=busy
# ## The one that was busy

# %% id=exhibit-b
note = "The GPU is busy from start to end. I need a larger one, don't I?"
show("B", note, "Six kernels of the same name on two streams.")

# %% id=numbers-b
numbers("B")

# %% [markdown] id=busy-two
# The GPU never stands still, so it's none of the first three. But each kernel has one block, which uses one multiprocessor of 132, and six kernels share two streams: `too few streams`. The repair is easy. Its twin has six streams, for the same six kernels, and an H200 could run over a hundred of these at once.

# %% id=08b-room guess within=0.1
# B's run takes 479 µs on two streams. How many µs on six?

# %% id=08b-room reveal
six = report("B", repaired=True)
picture = agt.compare_timelines(
    [report("B"), six], ["Two streams", "Six streams"], lanes=("host", "streams"), together=True
)
took = [trace.metrics().device_makespan for trace in (report("B"), six)]
asked = [span.start for span in six if span.kind == "call"]
late = asked[-1] - asked[0]
reveal("08b-room", round(took[1]), picture, two=took[0], six=took[1], late=late)

# %% id=08b-room lesson
# On six streams each kernel starts as soon as the host has asked for it. Up to four run at once.

# %% id=08b-room told truth=356
# {two:.0f} µs became {six:.0f}: a quarter less, with three times as many streams. Python asks for the sixth kernel {late:.0f} µs after the first, and on however many streams, it can't begin before that. Now the host is the limit.
#
# > **Misconception: the GPU is busy, so the program can't be made faster.**
# >
# > - *What you see:* a utilisation near 100 percent, here as in `nvidia-smi`.
# > - *Why:* "busy" means that *some* kernel is running. These have one block each, so each uses one SM, and an H200 has 132.
# > - *What helps:* look at the grid. If it has few blocks, run several kernels at once, or give each of them more to do.

# %% id=busy-check tags=asserts
begun = sorted(span.start for span in six.device_spans)
assert abs(took[0] - 479) < 1
assert 0.7 < took[1] / took[0] < 0.8
assert report("B").metrics().device_idle == 0
assert len(asked) == 6
assert {tuple(span.detail["grid"]) for span in six.device_spans} == {(1, 1, 1)}
assert six.metrics().max_concurrency == 4
assert round(late) == 223
assert abs(took[1] - (begun[-1] - begun[0]) - six.device_spans[-1].duration) < 0.001
assert all(138 < span.duration < 139 for span in six.device_spans)

# %% [markdown] id=pageable
# ## Another staircase

# %% id=exhibit-d
note = "Four streams, four tasks, and they still take turns. The same as A, isn't it?"
show("D", note, "A staircase again.")

# %% id=08b-suspect-d guess
# Which suspect is at work in exhibit D? (Type a name from the table. This time you only have its face.)

# %% id=08b-suspect-d reveal
numbers("D")
reveal("08b-suspect-d", convicted(report("D")))

# %% id=08b-suspect-d told truth="pageable copy"
# A staircase like A's, but nobody waits: the host stays *inside* its calls `enqueue h2d`, while the driver copies ordinary memory to where the GPU can read it. Taking out waits wouldn't help.

# %% [markdown] id=exercise-rate
# ### Exercise: the price of an ordinary array
#
# D copies ordinary NumPy arrays, and its repaired twin, `report("D", repaired=True)`, copies pinned ones. Return how many gigabytes (10⁹ bytes) a second go *to* the GPU, over all such copies of a trace together. Their `kind` is `"h2d"`, and `span.detail["bytes"]` is their size.

# %% id=08b-rate starter
def rate(trace): ...

# %% id=08b-rate solution
def rate(trace):
    copies = [span for span in trace.device_spans if span.kind == "h2d"]
    size = sum(span.detail["bytes"] for span in copies)
    return size / sum(span.duration for span in copies) / 1000

# %% id=08b-rate hints
# Divide all bytes by all the time.
#
# And the unit? One byte in a microsecond is a megabyte in a second.

# %% id=08b-rate explanation
# 7.6 GB/s in D, 47.8 in its twin. The GPU can't read ordinary memory by itself, since the operating system may move it. So the driver first copies the bytes into pinned memory of its own, and that extra copy is slow. The damage doesn't end there: the host stays inside the call, so it can't ask for anything else meanwhile.

# %% id=08b-rate-check
check("08b-rate", rate)

# %% id=08b-gained guess within=0.1
# So with pinned memory, the copies to the GPU are 6.3 times as fast. D's run took 3461 µs, for four chunks of 4 MiB on four streams. (A kernel takes 4 µs, and a copy back 77, in either program.) How many µs does its twin take?

# %% id=08b-gained reveal
picture = agt.compare_timelines(
    [report("D", repaired=True)],
    ["Exhibit D, repaired"],
    lanes=("host", "streams"),
    together=True,
)
both = (rounds("D", repaired=fixed) for fixed in (False, True))
slow_round, quick = (min(found, key=lambda x: took_each([x])) for found in both)
into = [sum(span.duration for span in work if span.kind == "h2d") for work in (slow_round, quick)]
(old,), (new,) = took_each([slow_round]), took_each([quick])
reveal("08b-gained", round(new), picture, less=old - new, copies=into[0] - into[1])

# %% id=08b-gained lesson
# Copies to the GPU take turns, the last three right behind each other. Those back run beside them.

# %% id=08b-gained told truth=461
# Of {less:,.0f} µs less, {copies:,.0f} are the copies to the GPU. With those 6.3 times as fast, the program got 7.5 times as fast. The rest comes from a host that is free to ask for the next chunk: the long pauses are gone, and copies in both directions run side by side. So the end waits for four copies in, then one kernel and one copy back.

# %% id=gained-check tags=asserts
assert 6.2 < into[0] / into[1] < 6.4
assert 7.45 < old / new < 7.55
assert round(old) == 3461
first_in, back = ([s for s in quick if s.kind == kind] for kind in ("h2d", "d2h"))
assert {s.detail["bytes"] for s in first_in} == {4 * 2**20}
assert abs(sum(s.duration for s in first_in) + back[-1].duration + 3 - new) < 35

# %% [markdown] id=repaired-a
# ## And another

# %% id=exhibit-h
note = "A staircase, as in A, although I took the waits out. Which one did I forget?"
show("H", note, "Four chunks on four streams.")

# %% id=08b-suspect-h guess
# Which suspect is at work in exhibit H? (Type a name from the table.)

# %% id=numbers-h
numbers("H")

# %% id=08b-suspect-h reveal
reveal("08b-suspect-h", convicted(report("H")))

# %% id=08b-suspect-h told truth="innocent"
# By our table it's innocent: until the end nobody waits, calls are short, and the GPU is busy for nine tenths of the time. It's a staircase all the same, because any host asks for one chunk after the other. That alone convicts nobody.

# %% [markdown] id=worth
# ### Was it worth it?
#
# H is A's repaired twin, which asks for all four chunks and only then waits. So what did the repair gain? Each report has four rounds. You saw A's last in chapter 08, and the twin's third here:

# %% id=worth-rounds
first, then = (took_each(rounds("A", repaired=fixed)) for fixed in (False, True))
for words, times in (("exhibit A", first), ("repaired", then)):
    print(f"{words:10}", *[f"{us:6.0f} µs" for us in times])
print(f"last against last {first[-1] / then[-1]:.1f},", end=" ")
print(f"mean of the last three {np.mean(first[1:]) / np.mean(then[1:]):.1f},", end=" ")
print(f"quickest {min(first) / min(then):.1f} times as fast")

# %% [markdown] id=worth-rounds-read
# Slower, a little faster, or much faster: take your pick. The first round is a warm-up, so the mean leaves it out. Whatever disturbs a round makes it longer, so the **quickest** tells you what the code *can* do, and the **mean** what you pay, disturbances included. But four rounds are few: leave one out, and 1.6 may become 1.3. Record more before you tell anybody.

# %% [markdown] id=big
# ## Cut it in four

# %% id=exhibit-g
note = "On one stream, each piece waits for the one before. How many do I need?"
show("G", note, "Four pieces of work on one stream.")

# %% id=numbers-g
numbers("G")

# %% [markdown] id=big-read
# A busy GPU again, but this kernel has 1296 blocks, so each multiprocessor has some: `one big kernel`. While it runs, no copy has anything to do. So G's repaired twin cuts the kernel into four parts, each on a stream of its own with its own copies, and then copies can run beside kernels. Each report has four rounds, and the picture above has G's last, of 190 µs. Its quickest took 179.

# %% id=parts-third tags=helpers
def third(name):
    """The third round of a report of G, which is the quickest in both of them."""
    whole = agt.Trace.from_nsys(agt.Trace.recorded_file(f"{name}.sqlite"))
    found = whole.between(whole.find("part 0")[2].start, whole.find("exhibit G")[0].start)
    left_out = [span for span in found if span.kind == "wait" or span.name.endswith(" in flight")]
    return replace(found, spans=[span for span in found if span not in left_out])


one_part, four_parts = third("exhibit_G"), third("exhibit_G_repaired")

# %% id=08b-parts guess within=0.2
# How many µs does the twin's quickest round take, in four parts?

# %% id=08b-parts reveal
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
reveal("08b-parts", round(after), picture, **facts)

# %% id=08b-parts lesson
# The quickest rounds. Time 0 is the GPU's first work. The four parts of the kernel are short, and far apart: the host is late for each of them. (Its wait at the end is left out.)

# %% id=08b-parts told truth=283
# It took {us:.0f}. The repair made it *slower*, and the report says why. A part takes {part:.0f} µs, more than a quarter of the whole kernel's 105. (It has {blocks} blocks of 256 threads, and the GPU has room for {fit:,} at once, which may be why.) That would do no harm if parts ran side by side, but the host asks for one only every {apart:.0f} µs. It has a profiler watching, which costs most where there are most calls. Until somebody has timed both without it, G should stay. A suspect's name tells you what limits a program, and a limit needn't be a fault.

# %% id=worth-check tags=asserts
assert 0.75 < first[-1] / then[-1] < 0.85
assert 1.15 < np.mean(first[1:]) / np.mean(then[1:]) < 1.25
assert round(before) == 179
assert round(report("G").metrics().device_makespan) == 190
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

# %% id=suspects-check tags=asserts
for letter in "ABDGH":
    found = [found.name for found in agt.diagnose(report(letter)) if not found.limit]
    assert [*found, "innocent"][0] == solved("08b-suspects")(report(letter))
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

# %% [markdown] id=exercise-suspects
# ## Exercise: write the detective
#
# You've done it by eye, so now let a rule do it. Return the name of the suspect, by the last column of the line-up's table. The starter knows one. Your rule is tried on A, B, D, G and H, and then on almost twenty rounds that you've never seen: other recordings, slower machines, larger grids, names that say nothing. So count, and take shares of the run. What is "much" is up to you.
#
# Calls that copy to the GPU are called `"enqueue h2d"`, and a kernel has a `stream`. (`agt.diagnose` does this for a living. Leave it out.)

# %% id=08b-suspects starter
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

# %% id=08b-suspects solution
#   blocks = np.prod(longest.detail["grid"])
# + last = max(span.start for span in calls)
# + waits = [s.duration for s in trace if s.kind == "wait" and s.start < last]
# + copying = [span.duration for span in calls if span.name == "enqueue h2d"]
# + if sum(waits) > run / 5:
# +     return "hidden synchronisation"
# + if sum(copying) > run / 3:
# +     return "pageable copy"
# - return "innocent"
# + if blocks < 132:
# +     queued = len(kernels) > len({span.stream for span in kernels})
# +     return "too few streams" if queued and m.device_idle < run / 5 else "innocent"
# + return "one big kernel" if longest.duration > m.device_active / 2 else "innocent"

# %% id=08b-suspects hints
# Go through the table from top to bottom, with an `if` for each suspect. Begin with the two that explain why a GPU stands still, so that `host-bound` only gets what they leave.
#
# A wait counts if the host makes a call after it: `span.start < last`, where `last` is the start of the last call. Divide the sum of those waits by `run`. It's a third in A, and next to nothing in a program that waits only at its end.
#
# Of the longest kernel you need its blocks, and its part of `m.device_active`. And compare `len(kernels)` with the number of streams that they're on, `len({span.stream for span in kernels})`.

# %% id=08b-suspects explanation
# A rule that only counts waits convicts the plate, where they cost 1 percent. One that only compares calls with copies convicts whoever makes small copies. Shares of the run tell them apart, and stay the same when a machine is five times as fast.

# %% id=08b-suspects-check
check("08b-suspects", accuse)

# %% [markdown] id=challenge
# ## Challenge: the slow server
#
# Now you have everything. Here's the server once more, and on the simulated device, where the check tries it, it takes 4731 µs: **get below 800.** Your workbench below runs `serve` and draws it. Before you change `serve`, commit two things there: who costs most now, and how many µs are left with *that one* repaired. The workbench tells you who it is, and after the repair how good your forecast was.
#
# And doubt the clock: it doesn't count Python's own work, such as reading a request or copying an array.

# %% id=08b-challenge starter
def settle():
    """Let things settle."""
    agt.synchronize()


async def serve(requests, model):
    policy = agt.StreamPoolRoundRobin(4)
    tasks = []
    for read_into in requests:
        x = np.empty((64, 8192), np.float32)
        read_into(x)
        work = agt.h2d(x, "request").and_then(model).to_host()
        tasks.append(agt.spawn(work, policy))
        await asyncio.sleep(0)  # gives the task a turn, so that it begins
        settle()
    return [await task for task in tasks]

# %% id=08b-challenge solution
async def serve(requests, model):
    policy = agt.StreamPoolRoundRobin(len(requests))
    tasks = []
    for read_into in requests:
        x = agt.pinned((64, 8192))
        read_into(x)
        work = agt.h2d(x, "request").and_then(model).to_host()
        tasks.append(agt.spawn(work, policy))
        await asyncio.sleep(0)
    return [await task for task in tasks]

# %% id=08b-challenge hints
# Begin with the host's lane in the workbench. Dotted bars are waits: does the host ask for a request only when the one before is done? Who makes it wait? And what would the picture be like without the waits: how long are the host's calls?
#
# Without the waits, compare the host's calls for copies with the copies themselves, as in exhibit D. The GPU can read an array by itself only if the memory is of the right kind. What does `np.empty` make? Chapter 02b has the other kind, and `read_into` writes into whatever you give it.
#
# Now count the streams, and look for kernels that queue although each has one block, as in exhibit B. `policy` has four streams. How many requests are there?
#
# No `settle()`, requests that are read into `agt.pinned((64, 8192))`, and `policy = agt.StreamPoolRoundRobin(len(requests))`.

# %% id=08b-challenge explanation
# Four profiles: 4731 µs, 2628 without the waits, 832 with requests that are read into pinned memory, and 722 with a stream for each. Without `sleep(0)` it's even 697, but then the first copy waits until all eight requests are read. This clock doesn't count that, and a real one would. It doesn't count `agt.pin(x)` either, the very copy that the driver made before, or the time that it takes to make pinned memory. So a server makes its buffers once, when it starts, and reads requests into them in turn.

# %% id=08b-challenge-check
check("08b-challenge", serve)

# %% [markdown] id=rehearse-text
# Your workbench:

# %% id=workbench tags=helpers
forecasts = []


async def workbench(serve, suspect, forecast):
    answers[:], served = await picture_of(serve)
    took = served.metrics().makespan
    changed = bool(forecasts) and abs(took - forecasts[-1][0]) > 1
    print(f"It takes {took:,.0f} µs.", f"You had forecast {forecasts[-1][1]:,}." if changed else "")
    if suspect is ... or forecast is ...:
        print("Look at the picture, and commit a suspect and a forecast. Then this says who costs most.")
    else:
        forecasts.append((took, forecast))
        name = convicted(served)
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
    assert round(slow.metrics().makespan) == 4731
    assert convicted(slow) == "hidden synchronisation"
    with agt.record() as best:
        await solved("08b-challenge")(requests, score_of)
    assert round(best.metrics().makespan) == 722
    assert 45 < best.metrics().host["call"] / 8 < 46

# %% [markdown] id=key-points
# ## Key points
#
# - A suspect has a face, and a face can lie. What convicts it is its share of the run.
# - A busy GPU need not be a full one: look at the grid, and at how many kernels run at once.
# - Forecast each repair before you make it. If the forecast is far off, something else limits the program, and you've just learned what to look for.
# - Suspects hide each other. Repair the worst one, profile again, and only then look for the next.
# - A finding is a reason to look. Only more profiles, over several runs, tell you whether the repair pays.
#
# And the server? It had three suspects in it, and you'd never have seen the third in the first picture.
#
# **Next:** [09_cuda_graphs.ipynb](09_cuda_graphs.ipynb), for programs whose host is busy with calls and can't make fewer.

# %% id=score
score("08b")

# %% id=progress
progress("08b")

# %% [markdown] id=encores
# ## Encores
#
# Three more cases, for another day, in any order.

# %% [markdown] id=gpus
# ### Two GPUs
#
# This program trains a network on two H100s. Each GPU learns from its own part of the data. Then NCCL, NVIDIA's library for this, adds up what both have learnt, in an **all-reduce**:

# %% id=gpus-sums
two = agt.Trace.from_nsys(agt.Trace.recorded_file("two_gpus.sqlite"))
for name in two.devices:
    one = two.of(name)
    nccl = [span for span in one.device_spans if span.name.startswith("nccl")]
    busy = one.metrics().device_active / 1000
    talk = sum(span.duration for span in nccl) / 1000
    print(f"GPU {name[-1]} is busy for {busy:.1f} ms, {talk:.1f} of them in NCCL")

# %% id=08b-culprit guess within=0.2
# So GPU 1 spends two thirds of its time talking to GPU 0, and its owner wants a faster connection. Say that it's infinitely fast. How many ms would that save at most?

# %% id=08b-culprit reveal
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
adding = sum(min(a.duration, b.duration) for a, b in zip(*talks)) / 1000
reveal("08b-culprit", round(adding, 1), picture, shortest=shortest, late=max(behind))

# %% id=08b-culprit lesson
# The all-reduces stand out. GPU 0 multiplies matrices (mul) for longer than GPU 1, where a product's bar is too short for its name. GPU 1 is done early, and then has a long all-reduce, which ends when GPU 0's does.

# %% id=08b-culprit told truth=4.5
# Only what GPU 0 spends in NCCL. If both GPUs start an all-reduce together, it takes {shortest:.0f} µs, but GPU 0 starts up to {late:,.0f} µs late.
#
# You can't add two numbers before both are there. So the GPU that comes first waits for the other, and it waits *inside the kernel*, which the profiler draws as work. Of the three all-reduces of a step, the first is long on GPU 1: six milliseconds of waiting and a quarter of a millisecond of adding. And GPU 0 comes late because it has more to compute: of four files of data, it got three.

# %% [markdown] id=exercise-waited
# ### Exercise: who waits for whom?
#
# Return two sums in µs: how long GPU 0 waited for GPU 1 in all-reduces, and how long GPU 1 waited for GPU 0. `trace.devices` has their names, and a GPU's all-reduces are the spans of `trace.of(name).device_spans` whose names begin with `nccl`, in order.

# %% id=08b-waited starter
def waited(trace): ...

# %% id=08b-waited solution
def waited(trace):
    zero, one = (
        [s.start for s in trace.of(name).device_spans if s.name.startswith("nccl")]
        for name in trace.devices
    )
    later = [b - a for a, b in zip(zero, one)]
    return sum(max(us, 0) for us in later), sum(max(-us, 0) for us in later)

# %% id=08b-waited hints
# They can only add up together, so the first one there waits until the other starts. Make two lists of starts, one for each name in `trace.devices`, and go through them with `zip`.
#
# If GPU 1 starts later than GPU 0, then GPU 0 waited for the difference. And if it starts earlier?
#
# `max(us, 0)` keeps a difference if it is positive, and `max(-us, 0)` if it is negative.

# %% id=08b-waited explanation
# GPU 0 never waited, and GPU 1 waited for 37.8 of its 65 ms. Of its 41.9 ms in NCCL, it spent only about four adding, and the waiting costs nine times as much. `agt.diagnose` calls it `waiting for a GPU`.

# %% id=08b-waited-check
check("08b-waited", waited)

# %% [markdown] id=exercise-gain
# ### Exercise: what would it gain?
#
# What if each GPU gets two of the four files? Before you build a repair, say what it will gain. Take the report of the two GPUs, and predict how many times as fast an even share makes it:
#
# - *As it is*, a run takes as long as the busier GPU works: add up the durations of its work.
# - *Repaired*, both GPUs compute equally long, half of their total each. And neither waits, so each all-reduce takes as long as the shorter of its two kernels.
#
# `trace` is the *old* report. The check holds your forecast against the repair as it was recorded: a tenth more or less will do.

# %% id=08b-gain starter
def gain(trace): ...

# %% id=08b-gain solution
def gain(trace):
    busy, talks = [], []
    for name in trace.devices:
        work = trace.of(name).device_spans
        busy.append(sum(span.duration for span in work))
        talks.append([span.duration for span in work if span.name.startswith("nccl")])
    computing = sum(busy) - sum(sum(talk) for talk in talks)
    adding = sum(min(pair) for pair in zip(*talks))
    return max(busy) / (computing / 2 + adding)

# %% id=08b-gain hints
# Three times for each GPU: all of its work, its all-reduces, and what is left, which is computing.
#
# Now it takes as long as the busier GPU works. Repaired, it takes half of all computing, and the adding.
#
# Adding takes `sum(min(pair) for pair in zip(*talks))`, where `talks` has a list of durations for each GPU.

# %% id=08b-gain explanation
# You predicted 1.42, and it turned out to be 1.48: in the second run the GPUs also computed a little faster, for 79 ms in all instead of 83. You knew what to expect before anybody moved a file, and with 1.1 you'd have known that something else was wrong. A forecast is also how you choose: the connection could have gained no more than 1.07.

# %% id=08b-gain-check
check("08b-gain", gain)

# %% [markdown] id=gpus-even
# Here each GPU got two files:

# %% id=gpus-again
even = agt.Trace.from_nsys(agt.Trace.recorded_file("two_gpus_even.sqlite"))


def step_ms(trace):
    updates = trace.of("cuda:0").find("cupy_subtract__float32_float32_float32")
    return np.median(np.diff([span.end for span in updates[2::3]])) / 1000


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

# %% [markdown] id=theirs
# ### A model of PyTorch's
#
# This service is none of ours. It's PyTorch's, on an H200, recorded with `agt.record("all")`, so PyTorch's kernels and calls are in one trace with what we did, which is a *heart* that beats every millisecond. *"Four requests come at once, and each handler returns `model(x).sum().item()`. Meanwhile the health check fails. Why? The GPU is hardly idle."*

# %% id=theirs-suspects
def recorded_torch(name):
    return agt.Trace.load(agt.Trace.recorded_file(f"torch_{name}.json"))


def ms(trace, kind):
    return sum(span.duration for span in trace if span.kind == kind) / 1000


def stands_still(trace):
    """For how many ms the heart doesn't beat, at most."""
    beats = [span.start for span in trace.find("beat")]
    return max(np.diff(beats)) / 1000


blocking = recorded_torch("blocking")
print([finding.name for finding in agt.diagnose(blocking)])
waits, calls = ms(blocking, "wait"), ms(blocking, "call")
print(f"the host waited for {waits:.1f} ms, and called for {calls:.1f}")
print(f"the heart stood still for {stands_still(blocking):.1f} ms")

# %% [markdown] id=theirs-repaired
# The kernels are the limit, and that's as it should be. But `hidden synchronisation` is in there, too: `.item()` looks like reading a number, and waits for the GPU in the one thread that there is. So the handlers now copy the sum to the host without blocking, and say `await agt.reached(torch.cuda.current_stream())`.

# %% id=08b-heart guess
# For how long does the heart stand still now, at most?
#
# - `none`: it goes on beating, every millisecond or two
# - `call`: about as long as one handler's calls
# - `calls`: about as long as all four handlers' calls
# - `kernels`: about as long as a request's kernels

# %% id=08b-heart reveal
awaiting = recorded_torch("awaiting")
picture = agt.compare_timelines(
    [blocking, awaiting], ["with .item()", "with await"], lanes=("host", "streams")
)
still = stands_still(awaiting)
asked = [span for span in awaiting if span.kind == "call"]
of_all = (asked[-1].end - asked[0].start) / 1000
truth = "calls" if still > 0.7 * of_all else "call" if still > 0.2 * of_all else "none"
reveal("08b-heart", truth, picture, still=still, each=len(asked) / 4)

# %% id=08b-heart lesson
# Above, the host waits four times, and no beat falls between. Below, all calls come first, close together. After that the heart beats while the kernels run.

# %% id=08b-heart told truth=calls
# {still:.1f} ms. Awaiting blocks nobody, but asking does: each handler makes {each:.0f} calls to CUDA before it comes to its `await`, and all four had their turn in one round of the loop. The GPU is done at about the same time as before. What's better is that the service *lives* meanwhile.
#
# To shorten the rest, ask less: a captured graph is one call. [From PyTorch](../docs/from_pytorch.md) builds that service.

# %% id=theirs-check tags=asserts
assert [finding.name for finding in agt.diagnose(blocking)][1] == "hidden synchronisation"
assert "hidden synchronisation" not in [finding.name for finding in agt.diagnose(awaiting)]
assert ms(awaiting, "wait") == 0 < ms(blocking, "wait")
assert stands_still(blocking) > 3 * still
assert all(span.label == "request" for span in awaiting.device_spans)

# %% [markdown] id=two-more-read
# ### Thirty-nine milliseconds, once
#
# Exhibit E has a suspect that the table lacks, `lazy module loading`. *"Our benchmark makes four calls in 39 ms, and production in less than 0.4. Which is wrong?"* Its program launches a kernel that hasn't been compiled yet. So CuPy has a compiler turn the source into code, CUDA loads the code, and then the kernel runs four times, for a microsecond each. The first time begins 38.6 ms after the start.

# %% id=08b-loading guess
# For how many of these 38.6 ms was the host inside calls to CUDA, the loading among them?
#
# - `most`: more than 30
# - `half`: about 20
# - `few`: about 5
# - `none`: less than 1

# %% id=08b-loading reveal
picture = agt.compare_timelines(
    [report("E").between(37_200, 39_300)], ["The far end of exhibit E"], together=True
)
begun = min(span.start for span in report("E").device_spans)
in_calls = sum(s.duration for s in report("E") if s.kind == "call" and s.start < begun) / 1000
truth = "most" if in_calls > 30 else "half" if in_calls > 10 else "few" if in_calls > 1 else "none"
reveal("08b-loading", truth, picture, ms=in_calls)

# %% id=08b-loading lesson
# The first kernel begins at 0. More than a millisecond before it is the host's first call, which loads the code. Left of that, the report has nothing.

# %% id=08b-loading told truth=none
# It's {ms:.2f} ms, in the calls `load` and `launch`. CUDA only loads what the compiler made, and that took 0.1 ms. The host's first call comes after 37.3. The compiler must have run before it, but the report can't say so: it only shows that nobody called CUDA. That's why `agt.diagnose` says `lazy module loading`, which is what it can see. All of it happens once. So neither number need be wrong: the benchmark timed the first calls, and production makes the others.

# %% id=two-more-check tags=asserts
assert convicted(report("E")) == "lazy module loading"
assert 37_200 < min(span.start for span in report("E") if span.kind == "call") < 37_300
assert 38_550 < begun < 38_650
(load,) = report("E").find("load module")
assert 96 < load.duration < 97
assert 1_150 < report("E").find("launch doubled")[0].start - load.end < 1_180
assert 0.1 < in_calls < 0.2
