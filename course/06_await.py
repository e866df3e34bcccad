"""Source of notebooks/06_await.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # `await`: waiting without standing still
#
# A GPU program waits a lot. If it can't do anything else meanwhile, the server is silent, the window is frozen, and the stop button does nothing.
#
# **How can a program with one thread wait and still react?**
#
# After this page you'll know what the event loop does while a task waits, and who wakes the task. You'll be able to keep a program responsive, and to stop waiting.
#
# | | |
# |---|---|
# | Time | 70 minutes with the challenge, and 30 more for the encores |
# | You need | operations from [03](03_lazy_operations.ipynb), and streams from [02](02_streams_and_events.ipynb). You don't have to know `asyncio` |

# %% id=setup
import asyncio
from itertools import pairwise

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, solution

device = agt.use("auto")
device

# %% [markdown] id=batches
# ## Is anybody there?
#
# `batch(i)` copies four million numbers to the device and back, so that we have something to wait for. Batch 0 is all ones, batch 1 all twos, and so on.

# %% id=batches-code
N = 4_000_000
data = [agt.pin(np.full(N, i + 1, np.float32)) for i in range(4)]


def batch(i):
    return agt.h2d(data[i], "x").to_host().named(f"batch {i}")


def long_one():
    rounds = 4 if device.simulated else 20  # Python's own timers know milliseconds
    return agt.zip(*[batch(i % 4) for i in range(rounds)]).named("long one")


await long_one();  # warm-up: a GPU is slow the first time

# %% [markdown] id=heart-text
# Let a *heart* stand for everything that should go on in the meantime. It beats, and sleeps for 150 µs. Meanwhile, Python waits for `long_one`, first with `sync` and then with `await`. (`agt.sleep` goes by the device's clock, because real time means nothing to a simulated device.)

# %% id=pulse tags=helpers
PATIENCE = 1000 if device.simulated else 5000  # µs of silence


def pulse(trace):
    """The trace with a lane for the heart: what comes from each beat to the next."""
    beats = [span.start for span in trace.find("beat")]
    return trace.with_lane(
        "heart",
        [
            (a, b, "♥" if b - a < PATIENCE else f"♥ and then silence, for {b - a:.0f} µs")
            for a, b in pairwise(beats)
        ],
    )


def whose(chosen, own):
    """For titles: `solved` gives back your own answer if the check has accepted it."""
    return "your answer" if chosen is own else "the course's answer"


def beats_during(trace, spans):
    """How many beats begin between the first and the last of these spans?"""
    first, last = min(span.start for span in spans), max(span.end for span in spans)
    return sum(first < span.start < last for span in trace.find("beat"))


# %% id=heart
async def heart():
    while True:
        agt.work(10, "beat")
        await agt.sleep(150)


async def with_heart(run):
    with agt.record() as trace:
        beating = asyncio.create_task(heart())
        await agt.sleep(330)  # three beats, all is well
        await run()
        await agt.sleep(330)
        beating.cancel()
    return trace


async def blocking():
    long_one().sync()


async def awaiting():
    await long_one()


blocked, awaited = await with_heart(blocking), await with_heart(awaiting)
agt.compare_timelines(
    [pulse(blocked), pulse(awaited)],
    ["with sync", "with await"],
    lanes=("host", "streams"),
    lesson="Above, the heart stands still until the copies are over. "
    "Below, it beats the whole time.",
)

# %% [markdown] id=heart-read
# The device takes equally long. How can one thread wait and beat at the same time?


# %% id=check-heart tags=asserts
in_blocked, in_awaited = (beats_during(t, t.device_spans) for t in (blocked, awaited))
assert in_blocked == 0
assert in_awaited > 0
assert [s.name for s in blocked.device_spans] == [s.name for s in awaited.device_spans]
if device.simulated:
    assert in_awaited >= 8
    assert len(blocked.find("beat")) >= 4  # it lived before, and it lives after
    assert 0.9 < awaited.metrics().makespan / blocked.metrics().makespan < 1.1

# %% [markdown] id=loop
# ## Coroutines, tasks, and the loop
#
# When you call an `async def` function, you get a **coroutine**. That's code that hasn't begun to run, just as an operation is work that hasn't begun. A **task** is a coroutine on the list of things to run, and the **event loop** keeps that list. It runs the first task that's ready, until that task has to wait at an `await`. Then it takes the next one. It's like a meeting in which nobody is ever interrupted.
#
# The cell you run is a task, too. And `asyncio.gather` makes a task of each thing you give it, and waits for all of them.
#
# Here are two such functions. Each says three things, with an `await` after each. `asyncio.sleep(0)` waits until the others have had a turn. `nod()` just returns a number.


# %% id=chat
async def chat(name, log):
    for i in range(3):
        log.append(f"{name}{i}")
        await asyncio.sleep(0)


async def nod():
    return 1


async def polite(name, log):
    for i in range(3):
        log.append(f"{name}{i}")
        await nod()


log = []
coroutine = chat("a", log)
print(coroutine)
print("log:", log)
assert log == []  # calling it ran nothing
coroutine.close()  # nobody is going to run this one

# %% id=06-turns guess
# `await asyncio.gather(chat("a", log), polite("b", log), chat("c", log))`. What is in the log? Type all nine entries in their order: `a0`, ...

# %% id=06-turns reveal
logs = []
for _ in range(20):
    log = []
    await asyncio.gather(chat("a", log), polite("b", log), chat("c", log))
    logs.append(" ".join(log))

reveal("06-turns", logs[0], runs=len(logs), orders=len(set(logs)))

# %% id=06-turns told truth="a0 b0 b1 b2 c0 a1 c1 a2 c2"
# {runs} runs gave {orders} order. `chat` and `polite` look alike, but `polite` says all three things in one go, because `await` doesn't mean "now the others". It means "go on with this, and *if it has to wait*, let go". `asyncio.sleep(0)` has to wait for its turn. `nod()` has its result right away, so it never lets go.
#
# The good news is that nobody can interfere between two lines of yours that have no `await` between them, so you need no lock there. (Across an `await`, whatever you read may have changed.) The bad news you know from meetings: **a task that doesn't let go keeps everybody waiting.** `sync` doesn't let go, and that's why the heart stopped.

# %% id=turns-check tags=asserts
assert set(logs) == {"a0 b0 b1 b2 c0 a1 c1 a2 c2"}

# %% [markdown] id=exercise-largest
# ### Exercise: look inside, without blocking
#
# `op` yields an array of numbers on the host, and the coroutine `largest(op)` returns the largest of them. Rewrite it so that the event loop is free for others while it waits.


# %% id=06-largest starter
async def largest(op):
    return op.sync().max()


# %% id=06-largest solution
async def largest(op):
    return (await op).max()


# %% id=06-largest hints
# At the top of the page, the heart stopped in one way to wait for `long_one`, and went on in the other.
#
# `await op` doesn't give you a handle. It gives you a NumPy array, and you want *its* largest number.
#
# `return (await op).max()`, with the parentheses, because `await op.max()` would ask the operation.

# %% id=06-largest explanation
# After the `await` the numbers are there and you may look. While this function waited, the event loop was free for other tasks.

# %% id=06-largest-check
check("06-largest", largest)

# %% [markdown] id=watchdog
# ## Whom does it hurt?
#
# Let's pretend to be a server. Three guests come. Two have manners, and one is in a hurry. Each guest's copies have a stream of their own. (`long_one` copies four batches in a row, there and back.)


# %% id=guests
async def guest(i):
    await batch(i)
    agt.work(5, f"answer {i}")


async def hasty():
    long_one().sync()  # only this once


async def patient():
    await long_one()


async def serve(third):
    await asyncio.gather(guest(0), guest(1), third())


# %% id=outside tags=helpers
def struck(trace):
    """When the watchdog strikes; None if it never does."""
    beats = [span.start for span in trace.find("beat")]
    return next((a + PATIENCE for a, b in pairwise(beats) if b - a > PATIENCE), None)


def batch_is_back(trace, i):
    return max(span.end for span in trace.device_spans if span.label == f"batch {i}")


def from_outside(trace):
    """The trace up to the watchdog's strike, with a lane for each guest."""
    over, end = struck(trace), 1.7 * PATIENCE
    seen = pulse(trace.between(0, end if over is None else over))
    if over is not None:
        quiet = over - PATIENCE
        struck_lane = [
            (quiet, over, f"hears nothing for {PATIENCE} µs"),
            (over, end, "restarts it"),
        ]
        seen = seen.with_lane("watchdog", struck_lane)
    for i in (0, 1):
        begun = min(span.start for span in trace if span.label == f"batch {i}")
        back = batch_is_back(trace, i)
        told = [(begun, back, f"batch {i} is under way")]
        if over is None:
            (answer,) = trace.find(f"answer {i}")
            told += [(back, answer.end, ""), (answer.end, end, "has its answer")]
        else:
            told += [(back, over, "back"), (over, end, "all is lost")]
        seen = seen.with_lane(f"guest {i}", told)
    return seen


# %% id=06-answers guess within=0.1
# We run `serve(hasty)`, let nobody restart it, and count time in copies, from the start of the first one. Batch 0 is back on the host after 2. When does guest 0 get the answer?

# %% id=06-answers reveal
with_hasty = await with_heart(lambda: serve(hasty))
with_patient = await with_heart(lambda: serve(patient))
first_copy = with_hasty.device_spans[0]
(told,) = with_hasty.find("answer 0")
back, told_after = [
    (us - first_copy.start) / first_copy.duration
    for us in (batch_is_back(with_hasty, 0), told.start)
]
seen = [from_outside(trace) for trace in (with_hasty, with_patient)]
names = ["one guest uses sync", "all three use await"]
picture = agt.compare_timelines(seen, names, lanes=("host",))
reveal("06-answers", f"{told_after:.1f}", picture, us=told.start)

# %% id=06-answers lesson
# Above, both batches are back before the watchdog strikes, and nobody hands them out.

# %% id=06-answers told truth=10.3
# The hasty guest's eight copies begin after two. Handing out a result takes a turn, and until these copies are over, somebody else's `sync` has it.
#
# In the picture's µs, the answer comes at {us:.0f}. But the picture has something more, a **watchdog**: a second process that starts a server again when it hasn't heard the heart for a while. So there, the server doesn't live that long. Both results lay on the host, finished, while the watchdog counted. So two innocent guests lose everything. Then all three try again, with the same `sync`, and the server dies again. That's a **crash loop**, and it's how one careless line gets a whole team out of bed.

# %% id=answers-check tags=asserts
if device.simulated:
    strike = struck(with_hasty)
    assert max(batch_is_back(with_hasty, i) for i in (0, 1)) < strike < told.start
    assert (round(back), round(told_after)) == (2, 10)
    assert struck(with_patient) is None
    assert len([span for span in with_patient if span.name.startswith("answer")]) == 2

# %% [markdown] id=life
# ## The life of a future
#
# One run of an operation is called a **future**. `op.into_future()` makes one, on the next stream of the usual policy, and `op.schedule(policy)` on one that `policy` picks. So far it has a stream, and nothing more. The first `await` submits its work:
#
# ```text
#   idle ── first await ──> executing ── the device is done ──> complete
#                                    └── something went wrong ─> failed
# ```
#
# Let's play event loop, and do an `await` by hand. `await` calls `future.__await__()`, which gives it an iterator, and then it calls `next` on that. Each `next` is a **poll**: go on as far as you can. (Usually it's Python's loop that polls.)
#
# ```python
# future = long_one().into_future()
# steps = future.__await__()
# first = next(steps)
# ```

# %% id=06-poll guess
# The copies take some milliseconds. What is `first`? (We set `device.patience_us` to 0, which switches off a short cut for short work. More on that below.)
#
# - `results`: the results, once the copies are over
# - `none`: `None`, because there are no results yet
# - `itself`: `future` itself, which is executing now
# - `other`: another future, one that asyncio made

# %% id=06-poll reveal
device.patience_us = 0
future = long_one().into_future()
steps = future.__await__()
states = [future.state.value]
first = next(steps)
states.append(future.state.value)
woken = asyncio.Event()  # we poll by hand, so no loop will resume us; this event does
first.add_done_callback(lambda token: woken.set())
await woken.wait()  # anybody else could run now
states.append(future.state.value)
truth = "none" if first is None else "other"
reveal("06-poll", truth, kind=type(first).__name__, states=", then ".join(states))

# %% id=06-poll told truth=other
# It's an `asyncio.{kind}`. The first poll submitted the work, and came back without a result. What it returned isn't our future but a token, which says: don't poll me again until I'm done. By now it's done: `future` was {states}.

# %% [markdown] id=poll-last-text
# A later poll finds the results, and with that the iterator ends:

# %% id=poll-last
try:
    next(steps)
except StopIteration as end:
    results = end.value

print([float(result[0]) for result in results[:4]])
assert [result[0] for result in results[:4]] == [1, 2, 3, 4]
assert await future is await future  # as often as you like: the work was done once

# %% [markdown] id=life-read
# So `await op` is short for `await op.into_future()`, and that's a loop of polls. If the work failed, the last poll raises the error, so you get it at your `await`.

# %% [markdown] id=who-wakes
# ### Who wakes the task?
#
# On a real GPU, for the first 2 ms nobody does: the task looks for itself, once in each round of the loop, because most work is over by then. For longer work there's a second thread, the helper, which looks now and then, and tells the loop when the device is done. The simulated device needs neither, because it can move its clock forward. (There are [details](#watching-a-gpu) among the encores.)

# %% id=poll-check tags=asserts
import threading

helpers = [one for one in threading.enumerate() if one.name.startswith(f"asyncgpu {device.name}")]
assert bool(helpers) != device.simulated
device.patience_us = 0 if device.simulated else 2000  # as it was

# %% [markdown] id=start
# ## Who starts what, and when?
#
# `agt.spawn(op)` makes a future and a task that awaits it, and returns the task right away. Three things are going to begin here: the copies of batch 0, the job, and the copies of batch 1.
#
# ```python
# task = agt.spawn(batch(0))
# agt.work(150, "job")          # a job of 150 µs
# one = await batch(1)
# zero = await task
# ```

# %% id=06-start guess
# In which order do the three begin? Type them, such as `1 0 job`.

# %% id=06-start reveal
async def two_batches(turn):
    with agt.record() as trace:
        task = agt.spawn(batch(0))
        if turn:
            await asyncio.sleep(0)
        agt.work(150, "job")
        one = await batch(1)
        zero = await task
    return trace, zero, one


no_turn, *_ = await two_batches(turn=False)
one_turn, zero, one = await two_batches(turn=True)
begun = {"job": no_turn.find("job")[0].start}
for i in ("0", "1"):
    begun[i] = min(span.start for span in no_turn.device_spans if span.label == f"batch {i}")
titles = ["spawn, job", "spawn, one turn, job"]
picture = agt.compare_timelines([no_turn, one_turn], titles, lanes=("host", "streams"))
reveal("06-start", " ".join(sorted(begun, key=begun.get)), picture, zero=begun["0"])

# %% id=06-start lesson
# Above, the copies begin after the job. Below, batch 0 begins before it and goes on during it.

# %% id=06-start told truth="job 1 0"
# Batch 0 was spawned in the first line, but its first copy begins after {zero:.0f} µs.
#
# > **Misconception: the task that was spawned first begins first.**
# >
# > - *What you see:* the device does nothing during the job, and then begins with what you asked for last.
# > - *Why:* a task needs a turn to start anything, and as long as it's *your* turn it gets none. Yours ends in the third line, which submits batch 1 and only then lets go.
# > - *What helps:* let go once, with `await asyncio.sleep(0)`.

# %% id=misconception-spawn-check tags=asserts
(job,) = no_turn.find("job")
assert job.start < begun["1"] < begun["0"]
(job,) = one_turn.find("job")
assert min(s.start for s in one_turn if s.label == "batch 0") < job.start
assert (zero[0], one[0]) == (1, 2)
if device.simulated:  # how far a GPU gets meanwhile depends on who else is using it
    assert no_turn.overlap_between("job", no_turn.device_spans) == 0
    assert one_turn.overlap_between("job", one_turn.device_spans) > 20
    assert one_turn.metrics().makespan < no_turn.metrics().makespan - 100

# %% [markdown] id=difference
# ## What does it buy us?
#
# Here are four programs that all process the same four batches:


# %% id=three-programs
def each_with_sync():
    return [batch(i).sync() for i in range(4)]


async def each_with_await():
    return [await batch(i) for i in range(4)]


async def futures_first():
    futures = [batch(i).into_future() for i in range(4)]  # on four streams
    return [await future for future in futures]


async def all_together():
    return await asyncio.gather(*[batch(i) for i in range(4)])


# %% id=06-together guess within=0.1
# A batch is a copy there and a copy back, which take the same time. If `each_with_sync` takes 100 units of time, how many do `each_with_await`, `futures_first` and `all_together` take? Type three numbers.

# %% id=06-together reveal
def pause(trace):
    """How long does the device pause from one batch to the next, on average?"""
    pairs = pairwise(trace.device_spans)
    return sum(two.start - one.end for one, two in pairs if one.label != two.label) / 3


await all_together()  # warm-up: allocates room for four results
with agt.record() as with_sync:
    each_with_sync()
with agt.record() as with_await:
    await each_with_await()
with agt.record() as with_futures:
    await futures_first()
with agt.record() as together:
    results = await all_together()

four = [with_sync, with_await, with_futures, together]
titles = ["each with sync", "each with await", "futures first", "all together"]
picture = agt.compare_timelines(four, titles, lanes=("host", "streams"))
a, b, c, d = (trace.metrics().makespan for trace in four)
longer = pause(with_await) - pause(with_sync)
units = [round(100 * us / a) for us in (b, c, d)]
reveal("06-together", " ".join(map(str, units)), picture, a=a, b=b, c=c, d=d, longer=longer)

# %% id=06-together lesson
# The first three pause after each batch. Only in the last do copies overlap, in pairs.

# %% id=06-together told truth="103 103 61"
# `each_with_sync` takes {a:.0f} µs, `each_with_await` {b:.0f}, `futures_first` {c:.0f}, and `all_together` {d:.0f}. The second program blocks nobody, but there *is* nobody else, only one task, which waits four times in a row. And waking a task takes time, so each of the three pauses is {longer:.0f} µs longer than with `sync`.
#
# > **Misconception: `into_future` and `schedule` start the work.**
# >
# > - *What you see:* four futures on four streams, and one copy at a time.
# > - *Why:* a future begins when it's first awaited, like a coroutine. In `futures_first`, nobody awaits the second before the first is done.
# > - *What helps:* `gather` or `spawn`, which make a task of each.
#
# In the last one, all four tasks submit their work before the first batch is done. While one batch is on its way back, the next is on its way there. Why isn't it four times as fast? The device has one copy engine for each direction, so two copies at a time is the most you can get. And the first upload and the last download have nothing to overlap with. So eight copies take the time of five.

# %% id=check-difference tags=asserts
def submitted_before_done(trace):
    """For batches 1, 2, and 3: did the host begin with it before the device was done with batch 0?"""
    begins, ends = {}, {}
    for span in trace:
        if span.kind == "call":
            begins.setdefault(span.label, span.start)
        elif span.on_device:
            ends[span.label] = span.end
    return [begins[f"batch {i}"] < ends["batch 0"] for i in (1, 2, 3)]


m = together.metrics()
assert [r[0] for r in results] == [1, 2, 3, 4]
assert not any(submitted_before_done(with_sync) + submitted_before_done(with_await))
assert with_sync.metrics().overlap < 5
assert with_await.metrics().overlap < 5
assert with_futures.metrics().overlap < 5
assert len(with_futures.streams) == 4
if device.simulated:
    assert all(submitted_before_done(together))
    assert m.max_concurrency == 2
    assert 1.5 < a / d < 2
    assert (round(pause(with_sync), 1), round(pause(with_await), 1)) == (14.6, 36.0)

# %% [markdown] id=meanwhile
# ## Work for the host meanwhile
#
# Somebody has to read and decode those batches, and it's usually Python. It can do that while the device works on the batch before.

# %% [markdown] id=exercise-prepare
# ### Exercise: one batch ahead
#
# `prepare(i)` is an ordinary function that keeps the host busy for a while and returns batch i. `process(x)` makes an operation out of a batch. Process `n` batches (one or more) and return their results in a list. Prepare every batch except the first *while the device works on the one before*. 


# %% id=06-prepare starter
async def pipeline(n, prepare, process):
    results = []
    for i in range(n):
        x = prepare(i)
        results.append(await process(x))
    return results


# %% id=06-prepare solution
async def pipeline(n, prepare, process):
    results = []
    x = prepare(0)
    for i in range(n):
        task = agt.spawn(process(x))
        await asyncio.sleep(0)  # its turn: the batch is submitted
        if i + 1 < n:
            x = prepare(i + 1)
        results.append(await task)
    return results


# %% id=06-prepare hints
# Prepare batch 0 before the loop. In the loop, start batch i, prepare batch i + 1, and wait for batch i.
#
# `agt.spawn` makes a task, but the task gets its first turn only when you let go: `await asyncio.sleep(0)`.
#
# In the loop, write `task = agt.spawn(process(x))`, `await asyncio.sleep(0)`, `x = prepare(i + 1)` unless this was the last one, and `results.append(await task)`.

# %% id=06-prepare explanation
# One way is the *double buffering* of every data loader, in which the host is one batch ahead of the device. However you do it, the batch before has to be *submitted*, and not only spawned, when the next preparation begins.

# %% id=06-prepare-check
check("06-prepare", pipeline)

# %% [markdown] id=prepare-text
# Here's your `pipeline` at work, or ours until yours is accepted:


# %% id=prepare-picture
def prepare(i):
    agt.work(300, f"prepare {i}")
    return data[i]


def process(x):
    return agt.h2d(x).to_host()


from asyncgpu_course import solved

one_ahead = solved("06-prepare", pipeline)
with agt.record() as ahead:
    prepared = await one_ahead(4, prepare, process)

ahead.plot(
    title=f"One batch ahead, {whose(one_ahead, pipeline)}",
    lanes=("host", "streams"),
    lesson="The host prepares the next batch while the device copies the one before.",
)

# %% id=prepare-claims tags=asserts
while_busy = ahead.overlap_between([s for s in ahead if s.kind == "work"], ahead.device_spans)
assert [r[0] for r in prepared] == [1, 2, 3, 4]
if device.simulated:
    assert while_busy > 0

# %% [markdown] id=responsive
# ## Who stops the heart?
#
# A `sync` does, but it isn't the only way. This program has no `sync`, it just computes for 2 ms:


# %% id=one-piece
async def in_one_piece():
    agt.work(2000, "sums")


one_piece = await with_heart(in_one_piece)
print("beats during the sums:", beats_during(one_piece, one_piece.find("sums")))

# %% [markdown] id=misconception-async
# > **Misconception: a function with `async def` runs in the background.**
# >
# > - *What you see:* a program that doesn't react to anything, although it's `async` through and through.
# > - *Why:* between two `await`s that really wait, a task has the thread to itself, whether it computes or waits for the device with `sync`.
# > - *What helps:* use `await` instead of `sync`. Cut long host work into short pieces, with `await asyncio.sleep(0)` between them. (With a second thread, as from `asyncio.to_thread`, you'd need locks again, and pure Python would still take turns.)

# %% id=misconception-async-check tags=asserts
assert beats_during(one_piece, one_piece.find("sums")) == 0

# %% [markdown] id=exercise-responsive
# ### Exercise: keep the heart beating
#
# Run `op` without blocking. Call `beat()` right at the start, and then every 50 µs for as long as `op` is under way. Return the result of `op`. If `op` fails, let its error out, but stop the heart in any case. (Use `agt.sleep`.)


# %% id=06-responsive starter
async def with_heartbeat(op, beat):
    beat()
    return op.sync()


# %% id=06-responsive solution
async def with_heartbeat(op, beat):
    task = agt.spawn(op)
    while not task.done():
        beat()
        await agt.sleep(50)
    return await task


# %% id=06-responsive hints
# You can't use `sync`, and a plain `await op` leaves you no place to beat from.
#
# Make a task out of the operation. `task.done()` tells you whether it has ended, without waiting. `await agt.sleep(50)` lets others run for 50 µs.
#
# `task = agt.spawn(op)`, then `while not task.done():` with `beat()` and `await agt.sleep(50)` in it, then `return await task`.

# %% id=06-responsive explanation
# At each `await` in the loop, others get a turn: the operation's task, which notices that its result is there, and whatever else your program has to do. You could also let a second task beat forever, and cancel it in a `finally`.

# %% id=06-responsive-check
check("06-responsive", with_heartbeat)

# %% [markdown] id=cancel
# ## How to stop waiting
#
# Somebody presses the stop button. Your program isn't frozen, so it notices, and calls `task.cancel()`. If the task is waiting at an `await`, it gets an `asyncio.CancelledError` there at its next turn. But what does the device do with work that's **in flight**, that is, submitted and not done yet? `unwanted()` has three pieces of work: a copy within the device, and then a batch there and back.
#
# ```python
# task = agt.spawn(unwanted())        # A
# task.cancel()
#
# task = agt.spawn(unwanted())        # B
# await ready                         # a future that is complete
# task.cancel()
#
# task = agt.spawn(unwanted())        # C
# await asyncio.sleep(0)
# task.cancel()
# ```

# %% id=06-stopped guess
# How many of the three pieces does the device do, in A, in B and in C? Type three numbers.

# %% id=06-stopped reveal
shared = await agt.h2d(data[0], "shared").share()


def unwanted():
    there = agt.dup(shared).and_then(lambda _: agt.h2d(data[1]))
    return there.to_host().named("unwanted")


ready = batch(0).into_future()
await ready
before = agt.in_flight()


async def cancelled_after(wait=None):
    with agt.record() as trace:
        task = agt.spawn(unwanted())
        if wait is not None:
            await wait
        task.cancel()
        await asyncio.wait([task])  # until the cancellation is through
        agt.work(3, "the wait is over")
        in_use = agt.in_flight() - before, shared.share_count
    return trace, task.cancelled(), in_use


at_once, ended_a, _ = await cancelled_after()
no_wait, ended_b, _ = await cancelled_after(ready)
cancelled, ended_c, in_use = await cancelled_after(asyncio.sleep(0))
done = [len(trace.device_spans) for trace in (at_once, no_wait, cancelled)]
(over,) = cancelled.find("the wait is over")
last = max(span.end for span in cancelled.device_spans)
gone = over.start, max(last, over.end), "is cancelled and gone"
with_task = cancelled.with_lane("the task", [(0, over.start, "waits"), gone])
picture = with_task.plot(title="Program C", lanes=("streams",))
reveal("06-stopped", " ".join(map(str, done)), picture, handles=in_use[1])

# %% id=06-stopped lesson
# The task is gone almost at once. On the stream its work goes on to the end.

# %% id=06-stopped told truth="0 0 3"
# In A, you cancelled the task before it had a turn, so nothing was ever submitted. In B as well, because `await ready` has its result right away, like `nod()`, and doesn't let go. In C the task had its turn, and the cancellation ended the wait, but not the work. Once something is in a stream's queue, nobody can take it out again.
#
# So the operation keeps everything it uses alive until all its work is done: when the wait was over, it still held one of the {handles} handles of `shared`.

# %% id=check-cancel tags=asserts
while agt.in_flight() > before:
    await agt.sleep(100)
assert ended_a
assert ended_b
assert ended_c
assert done == [0, 0, 3]
assert shared.share_count == 1
if device.simulated:
    assert in_use == (1, 2)
    assert over.end < last

# %% [markdown] id=exercise-cancel
# ### Exercise: wait, but not forever
#
# Return the result of `op` as soon as it's there, or `None` as soon as `us` microseconds are over. Then cancel whatever is still waiting, or it will wait forever, and do the same if somebody cancels *you*. (With `return_when=asyncio.FIRST_COMPLETED`, `asyncio.wait` returns when the first of the tasks is done.)


# %% id=06-cancel starter
async def at_most(op, us):
    task = agt.spawn(op)
    clock = asyncio.create_task(agt.sleep(us))
    await asyncio.wait([task, clock])
    return task.result()


# %% id=06-cancel solution
async def at_most(op, us):
    task = agt.spawn(op)
    clock = asyncio.create_task(agt.sleep(us))
    try:
        await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        clock.cancel()


# %% id=06-cancel hints
# You're waiting for two things, the operation and the time. Whichever comes first decides.
#
# Let `asyncio.wait` return when the first of the two tasks is done. Then ask `task.done()`. What runs whatever happens, even a cancellation, is a `finally`.
#
# In a `try`, `await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)`, and return `task.result()` if `task.done()`. In its `finally`, cancel both. A task that's done doesn't mind.

# %% id=06-cancel explanation
# Cancelling ends the wait and nothing else. The device finishes what's in its queue, and the arrays live until then. If your program never uses the simulated device, `asyncio.timeout` does this for you, in real time.

# %% id=06-cancel-check
check("06-cancel", at_most)

# %% [markdown] id=challenge
# ## The challenge
#
# `prepare(i)` (100 µs) and `process(x)` are as in *one batch ahead*, and `use(result)` keeps the host busy for 60 µs. There are `n` batches, one or more, and you may use their results in any order, each once. A batch in flight takes up memory on the device, and there's room for *two*. What counts is the time for `n` = 6 on the simulated device of the check, where a copy takes 75 µs. (Which time can nobody get below?) The plain loop below takes 2099 µs there. **Get below 1500.** The course's own answer takes 1362, and it isn't the best: 1300 can be beaten, too. `progress()` keeps your best time.


# %% id=06-feed starter
async def feed(n, prepare, process, use):
    for i in range(n):
        use(await process(prepare(i)))


# %% id=06-feed solution
async def feed(n, prepare, process, use):
    before = None
    for i in range(n):
        task = agt.spawn(process(prepare(i)))
        await asyncio.sleep(0)  # its turn: the batch is submitted
        if before is not None:
            use(await before)
        before = task
    use(await before)


# %% id=06-feed hints
# Whenever the host prepares or uses a batch, the device should have another one to work on.
#
# Start batch i, and only then use the result of batch i - 1. Remember what a spawned task needs before it starts.
#
# Keep the task of the previous round in a variable: `use(await before)`, then `before = task`. Use the last one after the loop.

# %% id=06-feed explanation
# At most two batches are in flight, one on the device and one on its way, and the host goes on with whatever is done. Every data loader and every server does this, in one form or another.

# %% id=06-feed-check
check("06-feed", feed)


# %% id=feed-picture
def use(result):
    agt.work(180, "use")  # like `prepare`, three times as long as in the check


fed_by = solved("06-feed", feed)
with agt.record() as fed:
    await fed_by(4, prepare, process, use)

fed.plot(
    title=f"The challenge with larger batches, {whose(fed_by, feed)}",
    lanes=("host", "streams"),
    lesson="While the device copies, the host prepares the next batch or uses one. "
    "Some pauses are left.",
)

# %% id=feed-claims tags=asserts
if device.simulated:
    assert fed.overlap_between([s for s in fed if s.kind == "work"], fed.device_spans) > 0

from asyncgpu_course.exercises.chapters.ch06 import FED, QUICK

with agt.using("sim"), agt.record() as checked:
    await agt.h2d(agt.pin(np.ones(QUICK, np.float32)))
assert (FED, round(checked.device_spans[0].duration)) == (6, 75)

# %% [markdown] id=key-points
# ## Key points
#
# - One task runs at a time, until it gets to an `await` at which it has to wait. If a task doesn't let go, everybody waits.
# - On a GPU, an `await` looks again and again for 2 ms, because most work is over by then. After that, a helper thread looks now and then, and wakes the task. Either way, others have their turns.
# - A spawned task starts at its first turn, and not right away. A future starts when it's first awaited.
# - To gain time, start everything first and wait later. If each begins when the one before is done, you gain nothing.
# - If an operation fails, whoever awaits it gets the error. If you cancel a task, the waiting stops, but the GPU doesn't.
#
# There's a [glossary](../docs/glossary.md) for new words, and a page of [misconceptions](../docs/misconceptions.md).
#
# **Next:** [07_async_mlp.ipynb](07_async_mlp.ipynb), where all of this comes together.

# %% id=score
score("06")

# %% id=progress
progress("06")
# %% [markdown] id=encores
# ## Encores
#
# *For the day when your program meets the world: long sums, work that fails, results that come in any order, and more work than fits into memory.*

# %% [markdown] id=rounds
# ### How short is short?
#
# Here are the sums of 2 ms again, cut into ten pieces. You'll need to know how the loop makes its **rounds**. It begins each round by looking whose sleep is over, and puts an alarm for each of these at the *end* of its list. Then everything on the list has one turn. An alarm uses its turn to put its task at the end of the *next* round's list. `sleep(0)` puts its task there, too.


# %% id=in-pieces
async def in_pieces():
    for _ in range(10):
        agt.work(200, "sums")
        await asyncio.sleep(0)


# %% id=asleep tags=helpers
def asleep(trace):
    """The trace with a lane for the heart's sleep, and for how long it waits after that."""
    lane = []
    for one, other in pairwise(trace.find("beat")):
        due = min(one.end + 150, other.start)
        late = other.start - due
        lane += [
            (one.end, due, "zzz"),
            (due, other.start, f"{late:.0f} µs late" if late > 50 else ""),
        ]
    return trace.with_lane("heart", [stretch for stretch in lane if stretch[2]])

# %% id=06-beats guess
# The heart has just beaten when the first piece begins, and sleeps for 150 µs. A piece takes 200. In `in_pieces`, right behind which of the first nine pieces does the heart beat? Type their numbers.

# %% id=06-beats reveal
pieces = await with_heart(in_pieces)
beats = pieces.find("beat")
behind = [
    number
    for number, (one, other) in enumerate(pairwise(pieces.find("sums")), 1)
    if any(one.start < beat.start < other.start for beat in beats)
]
both = [asleep(one_piece), asleep(pieces)]
titles = ["sums in one piece", "sums in pieces"]
picture = agt.compare_timelines(both, titles, lanes=("host",))
marks = {"beat": "♥", "sums": "-"}
line = "".join(marks[span.name] for span in sorted(pieces, key=lambda span: span.start))
reveal("06-beats", " ".join(map(str, behind)), picture, line=line)

# %% id=06-beats lesson
# Above, the heart waits for the whole piece. Below, it beats after every third, and still late.

# %% id=06-beats told truth="3 6 9"
# `{line}`: a sleep of 150 µs takes 600. Three rounds go by from beat to beat:
#
# | round | whose sleep is over? | turns |
# |---|---|---|
# | 1 | nobody's | a piece, during which the heart's sleep ends |
# | 2 | the heart's | a piece, then the heart's alarm |
# | 3 | nobody's | a piece, then the heart |
#
# So pieces should be short beside the sleeps.

# %% id=rounds-check tags=asserts
assert behind
if device.simulated:
    assert behind == [3, 6, 9]
    early, late = pieces.find("beat")[3:5]
    assert round(late.start - early.end) == 600

# %% [markdown] id=errors
# ### When something goes wrong
#
# There are two ways to fail. A bug in one of your functions shows when the work is submitted, as an ordinary Python exception. Or the *device* fails while it works, for example because a kernel writes beyond its array. That's an `agt.DeviceError`. Either way, whoever awaits the operation gets the error.
#
# This section runs on the simulated device, even if you have a GPU.

# %% id=errors-three
BEYOND = r"""
extern "C" __global__ void beyond(float* y) { y[2 * blockDim.x] = 1.0f; }
"""


with agt.using("sim"):
    ones = agt.pin(np.ones(N, np.float32))


def good():
    return agt.h2d(ones).to_host().named("good")


def faulty():
    beyond = agt.Kernel(BEYOND)
    return beyond(agt.zeros(32).partition(32)).output().to_host().named("faulty")


def buggy():
    settings = {}
    return agt.ones(32).map(lambda array: settings["scale"]).named("buggy")


# %% [markdown] id=predict-errors-text
# We run three operations together: good, faulty, good. `gather` raises the error as soon as it arrives.

# %% id=06-arriving guess
# Each good one copies its result to the host. How many of these copies will the simulated device make: 0, 1 or 2?

# %% id=06-arriving reveal
with agt.using("sim"), agt.record() as with_fault:
    try:
        await asyncio.gather(good(), faulty(), good())
    except agt.DeviceError as error:
        agt.work(5, "the error is here")
        said = f"{type(error).__name__}: {str(error).splitlines()[0]}"

with agt.using("sim"):
    outcomes = await asyncio.gather(good(), faulty(), good(), return_exceptions=True)

(told,) = with_fault.find("the error is here")
copies = with_fault.find("d2h")
end = copies[-1].end
gone = told.start, end, "has raised the error and is gone"
lanes = with_fault.with_lane("gather", [(0, told.start, "waits for three"), gone])
picture = lanes.plot(title="One of three fails", lanes=("streams",))
kinds = ", ".join(type(outcome).__name__ for outcome in outcomes)
reveal("06-arriving", len(copies), picture, said=said, us=told.start, end=end, kinds=kinds)

# %% id=06-arriving lesson
# Both copies back come long after the error. The faulty stream has a thin fill, and no kernel.

# %% id=06-arriving told truth=2
# The error came after {us:.0f} µs, and the last copy back ended after {end:.0f}.
#
# ```text
# {said}
# ```
#
# A kernel that fails never reaches its end, so it gets no bar, and the rest of *its* operation is skipped. On the simulated device the other streams don't notice. Both good results arrived, but `gather` was gone, so nobody took them. With `return_exceptions=True`, it hands over errors just like results, and nothing is lost. Then we got: {kinds}.
#
# On a GPU none would arrive, because an illegal access ends all GPU work in the process, and you have to start that again. But there, too, a bug, a failed allocation or a refused launch stays with its operation.

# %% id=check-errors tags=asserts
assert [isinstance(outcome, np.ndarray) for outcome in outcomes] == [True, False, True]
assert isinstance(outcomes[1], agt.DeviceError)
assert len(copies) == 2
assert told.start < copies[0].end
assert with_fault.find("launch beyond")
assert not with_fault.find("beyond")
assert (outcomes[0] == 1).all()
assert (outcomes[2] == 1).all()

# %% [markdown] id=failed-state
# A future that failed stays failed, so whoever awaits it later gets the same error. And a bug arrives as Python's own exception, with a note that names the operation:

# %% id=failed-state-run
with agt.using("sim"):
    future = faulty().into_future()
    for _ in range(2):
        try:
            await future
        except agt.DeviceError as error:
            site = error.site
            print(future.state.value, "-", site.kernel, "wrote to element", site.index)
    try:
        await buggy()
    except KeyError as error:
        print("KeyError:", error, "-", error.__notes__[0])
assert future.state is agt.FutureState.FAILED

# %% [markdown] id=exercise-three-arms
# ### Exercise: three endings
#
# Run a list of operations of any length, all in flight together. Return a list with a report on each, in order. A report is a pair:
#
# - `("done", result)`;
# - `("device", error)` if the device failed, so that somebody may try again elsewhere;
# - `("program", error)` for any other exception, which somebody has to fix.
#
# If somebody cancels *you* while you wait, let that through, because it's nobody's error.


# %% id=06-three-arms starter
async def reports(ops):
    return [("done", await op) for op in ops]


# %% id=06-three-arms solution
async def reports(ops):
    async def report(op):
        try:
            return "done", await op
        except agt.DeviceError as error:
            return "device", error
        except Exception as error:
            return "program", error

    return await asyncio.gather(*[report(op) for op in ops])


# %% id=06-three-arms hints
# Write a coroutine for *one* operation, with a `try` in it that has three endings. Then `gather` one of these for each operation.
#
# Python takes the first `except` that fits. `agt.DeviceError` is an `Exception`, too, so it has to come first.
#
# `try: return "done", await op`, then `except agt.DeviceError as error: return "device", error`, then `except Exception as error: return "program", error`.

# %% id=06-three-arms explanation
# One way is a `try` within each task, and `return_exceptions=True` is another. Either way an error ends only its own operation. A cancellation is a `BaseException`, so `except Exception` doesn't catch it.

# %% id=06-three-arms-check
check("06-three-arms", reports)

# %% [markdown] id=exercise-as-completed
# ### In which order, and how many?
#
# `gather` gives you nothing until everything is there. Often you could go on with the first result while the device still works on the others.
#
# ### Exercise: first come, first served
#
# Put all operations in flight together, and call `use(result)` for each *as soon as its result is there*. The check also tries your code on a device that finishes the work in the most awkward order that the streams allow.


# %% id=06-as-completed starter
async def as_they_come(ops, use):
    for result in await asyncio.gather(*ops):
        use(result)


# %% id=06-as-completed solution
async def as_they_come(ops, use):
    tasks = [agt.spawn(op) for op in ops]
    for next_one in asyncio.as_completed(tasks):
        use(await next_one)


# %% id=06-as-completed hints
# In the starter, what does the host do while the device works on the last operation?
#
# `asyncio.as_completed(tasks)` gives you what to await next, in the order in which things get done.
#
# `tasks = [agt.spawn(op) for op in ops]`, then `for next_one in asyncio.as_completed(tasks): use(await next_one)`.

# %% id=06-as-completed explanation
# Everything is in flight from the start, and you use each result as it arrives, while the device works on the rest. So the host's part overlaps the device's.

# %% id=06-as-completed-check
check("06-as-completed", as_they_come)

# %% id=as-completed-picture
used = []


def use(result):
    agt.work(100, f"use {result[0] - 1:.0f}")
    used.append(result[0])


first_come = solved("06-as-completed", as_they_come)
with agt.record() as as_it_comes:
    await first_come([batch(i) for i in range(4)], use)

as_it_comes.plot(
    title=f"First come, first served, {whose(first_come, as_they_come)}",
    lanes=("host", "streams"),
    lesson="The host uses each batch as it comes back, while the device copies more.",
)

# %% id=as-completed-claims tags=asserts
assert sorted(used) == [1, 2, 3, 4]
if device.simulated:
    uses = [span for span in as_it_comes if span.kind == "work"]
    assert as_it_comes.overlap_between(uses, as_it_comes.device_spans) > 200

# %% [markdown] id=limited-text
# Each operation in flight holds its input, its output and everything in between. If you start a thousand, the device runs out of memory. So you let in only so many at a time, which is called **back-pressure**.

# %% [markdown] id=exercise-limited
# ### Exercise: at most `limit` at a time
#
# Run a list of operations with at most `limit` of them in flight at any time. As soon as one is done, start the next. Return the results in the order of the list. (`help(asyncio.Semaphore)`)


# %% id=06-limited starter
async def run_limited(ops, limit):
    return await asyncio.gather(*ops)


# %% id=06-limited solution
async def run_limited(ops, limit):
    gate = asyncio.Semaphore(limit)

    async def run(op):
        async with gate:
            return await op

    return await asyncio.gather(*[run(op) for op in ops])


# %% id=06-limited hints
# Give each operation a coroutine of its own, and think of a door that lets in only so many at a time.
#
# `asyncio.Semaphore(limit)` is that door. `async with gate:` waits in front of it as long as `limit` others are inside.
#
# `async def run(op):` with `async with gate:` and `return await op` in it, and then `return await asyncio.gather(*[run(op) for op in ops])`.

# %% id=06-limited explanation
# An operation that nobody has awaited yet costs next to nothing. So a thousand of them can wait at the door, and only those inside need memory.

# %% id=06-limited-check
check("06-limited", run_limited)

# %% id=limited-picture
two_only = solved("06-limited", run_limited)
with agt.record() as two_at_a_time:
    limited = await two_only([batch(i) for i in range(4)], 2)

agt.compare_timelines(
    [together, two_at_a_time],
    ["four in flight", f"two in flight, {whose(two_only, run_limited)}"],
    lanes=("host", "streams"),
    lesson="With two in flight the host waits before it asks for more. "
    "The run is hardly longer.",
)

# %% id=limited-claims tags=asserts
assert [r[0] for r in limited] == [1, 2, 3, 4]
if device.simulated:
    assert two_at_a_time.metrics().makespan < 1.2 * together.metrics().makespan

# %% [markdown] id=who-looks
# ### Watching a GPU
#
# On a GPU, this is who looks whether the work is done:
#
# ```text
#   the task               the event loop            the helper           the device
#   ────────               ──────────────            ──────────           ──────────
#   await op    ────────────────────── the work ───────────────────────>  begins
#   looks       <─ turns ─> runs other tasks                                ·
#      ·                    (for 2 ms at most)                              ·
#   waits       ─ token ─>  puts it aside            looks, sleeps          ·
#      ·                    runs other tasks         looks, sleeps          ·
#      ·                          ·                  looks       <─────── is done
#      ·                    puts it on its list <────── says so
#   goes on     <─ turn ──        ·
# ```
#
# At first the task asks in each round of the loop whether the work is done, and where no other task wants a turn, it asks without a break. Such a poll gives `None`, which tells the loop to come again in the next round. It keeps a processor core busy, but it reacts at once. `device.patience_us` says for how long: 2 ms, unless you change it, as the cell with the first poll did. (A folded one set it back.)
#
# The helper belongs to the package and runs none of your code. It sleeps between its looks, for 0.2 ms at first and longer in long waits. Meanwhile the task is put aside, with a token, and the loop attaches a **callback** to that, which will put the task back on the list. No core is busy, but waking a thread took 0.2 to 0.9 ms on the H200 where we measured it.
#
# CUDA has a way without a helper. `cuLaunchHostFunc` puts a **host callback** into a stream: a function of yours, which the driver calls when the stream gets there. Rust's cuda-async wakes its tasks this way. We don't, because if the device fails, that call never comes, and the task would wait forever.

# %% [markdown] id=in-trio
# ### The same in another loop
#
# The loop needn't be asyncio's. [trio](https://trio.readthedocs.io) has one of its own, and a stricter rule: a task always belongs to a **nursery**, and the nursery's block doesn't end before all of its tasks have. So you can't forget a task, and if one fails, the others are cancelled. `asyncio.TaskGroup` learned that from trio. Here are the four batches again. (Asyncio's loop runs in this thread already, so trio gets another.)

# %% id=in-trio-code
try:
    import trio
except ImportError:
    trio = None


async def in_trio():
    async with trio.open_nursery() as nursery:
        tasks = [agt.spawn(batch(i), nursery=nursery) for i in range(4)]
    return [float((await task)[0]) for task in tasks]


if trio:
    firsts = await asyncio.to_thread(trio.run, in_trio)
    print(firsts)
else:
    print("trio isn't here: pip install trio, and run this cell again")

# %% [markdown] id=in-trio-read
# `await` is the same word, and the GPU does the same work. Only `spawn` needs to know whose task it starts. In return, it hands you what trio's own `start_soon` doesn't: something to await for the result. A cancelled scope stops the waiting and not the GPU, as a cancelled task does. [Any event loop](../docs/any_loop.md) says what works where, and how trio's deadlines become the device's.

# %% id=in-trio-check tags=asserts
assert not trio or firsts == [1, 2, 3, 4]

# %% [markdown] id=script
# ### In a script
#
# A notebook has an event loop running already, which is why cells may say `await`. A program has to start one, with `asyncio.run(main())`. Beside this notebook you'll find [06_await.py](../notebooks/06_await.py), which does that. You can profile it, too: `nsys profile -t cuda,nvtx python 06_await.py`.
