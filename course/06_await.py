"""Source of notebooks/06_await.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # `await`: waiting without standing still
#
# **After this page you can**
#
# - say what the event loop does while a task waits, and which states a future goes through;
# - choose between `sync`, `await` and `spawn`, and predict from the code what will overlap;
# - measure, from traces, what it brings to wait less;
# - keep a program responsive while the device works;
# - hand arrays to tasks safely, tell three kinds of failure apart, and stop waiting without a mess.
#
# | | |
# |---|---|
# | Time | 85 minutes |
# | You need | [00_start_here](00_start_here.ipynb) and [01_sync_kernels](01_sync_kernels.ipynb); streams, and operations as recipes, from the pages between. You need not know `asyncio` |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=waiter
# ## One waiter, many tables
#
# A bad waiter takes an order to the kitchen, and then stands at the hatch until the dish is ready. A good one takes the order
# to the kitchen, and serves other tables meanwhile. Both are one person with two hands. The difference is
# what they do *while they wait*.
#
# `sync` is the bad waiter. `await` is the good one, and the tables are **tasks**. The list of who wants something next is the
# **event loop**: it gives a task a turn, and when the task has to wait for something, it gives the next one a turn.
#
# A task runs a function that is written `async def`. Here is one that does hardly anything, but says so. `await asyncio.sleep(0)`
# means: *let others have a turn, then go on with me.*


# %% id=chat
async def chat(name, log):
    for i in range(3):
        log.append(f"{name}{i}")
        await asyncio.sleep(0)


log = []
coroutine = chat("a", log)
print(coroutine)
print("log:", log)
assert log == []
coroutine.close()  # nobody is going to run this one

# %% [markdown] id=chat-read
# Calling it ran nothing. It made a **coroutine**: a recipe for Python, as a `DeviceOp` is a recipe for the device.
#
# `asyncio.gather` makes a task of each coroutine that it is given, and waits for all of them. In which order do two of these speak?

# %% id=predict-turns
turns = Prediction(
    "`await asyncio.gather(chat('a', log), chat('b', log))`. What is in the log?",
    after="a0 a1 a2 b0 b1 b2: the first one to its end, then the second",
    inturn="a0 b0 a1 b1 a2 b2: they take turns",
    mixed="a different order each time, as with threads",
)
turns

# %% id=commit-turns
turns.commit(...)

# %% id=run-turns
logs = []
for _ in range(20):
    log = []
    await asyncio.gather(chat("a", log), chat("b", log))
    logs.append(" ".join(log))

print(logs[0])

# %% id=reveal-turns
orders = {"a0 a1 a2 b0 b1 b2": "after", "a0 b0 a1 b1 a2 b2": "inturn"}
truth = orders[logs[0]] if len(set(logs)) == 1 else "mixed"
turns.reveal(truth, f"All {len(logs)} runs gave one order.")

# %% [markdown] id=turns-read
# There are no threads here. One task runs at a time, and it runs until it says `await` and has to wait. Nobody interrupts it
# before. This is good news, as you need no locks. And it is bad news: **a task that does not let go keeps everybody waiting.**
# Keep both halves in mind, they are most of this page.

# %% id=turns-check
assert set(logs) == {"a0 b0 a1 b1 a2 b2"}

# %% [markdown] id=batches
# ## Something to wait for
#
# We need operations that keep the device busy for a while. These copy four million numbers to the device and back again. Batch 0
# is all ones, batch 1 all twos, and so on, so that we see at once whose result we hold.

# %% id=batches-code
N = 4_000_000
data = [agt.pin(np.full(N, i + 1, np.float32)) for i in range(4)]


def batch(i):
    return agt.h2d(data[i], "x").to_host().named(f"batch {i}")


for i in range(4):
    result = await batch(i)  # a real GPU is slow the first time, so nothing is recorded yet
    assert (result == i + 1).all()

with agt.record() as alone:
    await batch(0)

alone.plot(title="One batch", lanes=("host", "streams"))

# %% [markdown] id=states
# ## The life of a future
#
# An operation is a recipe, and may be cooked many times. One cooking of it is a **future**, a `DeviceFuture`: the stream is
# chosen, and there will be one result. `op.into_future()` makes one. It is in one of four states, and moves only
# forward:
#
# ```text
#   idle ── first await ──> executing ── the device is done ──> complete
#                                    └── something went wrong ─> failed
# ```
#
# Let us follow one. `asyncio.ensure_future` makes a task of anything that can be awaited, so that *the task* awaits it, and we
# can go on and look.

# %% id=states-run
with agt.record() as trace:
    future = batch(0).into_future()
    states = [future.state.value]

    task = asyncio.ensure_future(future)
    await asyncio.sleep(0)  # one turn: the task begins, and awaits
    states.append(future.state.value)

    result = await task
    states.append(future.state.value)
    again = await future  # a second time

print(" -> ".join(states))
print("awaited again:", again[:3], "- the very same array:", again is result)
assert states == ["idle", "executing", "complete"]
assert again is result
assert len(trace.find("h2d")) == 1

# %% [markdown] id=states-read
# You may await a future as often as you like, from as many tasks as you like. The device does the work once; who comes late gets what is
# there. (`failed` has to wait for the section on errors.)
#
# You have met `await op` all along. It is short for `await op.into_future()`.

# %% [markdown] id=start
# ## Who starts what, and when?
#
# `agt.spawn(op)` makes a future *and* a task that awaits it. It returns at once, and you hold the task. So this should be the
# way to have the device at work while Python does a job of its own:
#
# ```python
# task = agt.spawn(batch(0))
# agt.work(150, "job")        # a job of 150 µs
# result = await task
# ```

# %% id=predict-start
begins = Prediction(
    "Is the device at work during the job?",
    yes="`spawn` starts the operation, so it is under way during the job",
    no="the device begins after the job",
)
begins

# %% id=commit-start
begins.commit(...)

# %% id=run-start
with agt.record() as no_turn:
    task = agt.spawn(batch(0))
    agt.work(150, "job")
    result = await task

during = no_turn.overlap_between("job", no_turn.device_spans)

# %% id=reveal-start
begins.reveal(
    "yes" if during > 5 else "no", f"Job and device were both at work for {during:.0f} µs."
)

# %% [markdown] id=misconception-spawn
# > **Misconception: `spawn` starts the work at once.**
# >
# > - *What you see:* the job first, then the device, although `spawn` is the first line.
# > - *Why:* `spawn` makes a task. A task does nothing before it has a turn, and it gets none while *you* have yours.
# > - *What helps:* let go once: `await asyncio.sleep(0)`. Any other `await` that has to wait does as well.

# %% id=misconception-spawn-run
with agt.record() as one_turn:
    task = agt.spawn(batch(0))
    await asyncio.sleep(0)
    agt.work(150, "job")
    result = await task

agt.compare_timelines([no_turn, one_turn], ["spawn, job, await", "spawn, one turn, job, await"])

# %% id=misconception-spawn-check
assert no_turn.overlap_between("job", no_turn.device_spans) < 5
(job,) = one_turn.find("job")
assert one_turn.device_spans[0].start < job.end  # and how far the device gets meanwhile, depends on it
if device.simulated:
    assert one_turn.overlap_between("job", one_turn.device_spans) > 20
    assert one_turn.metrics().makespan < no_turn.metrics().makespan - 100

# %% [markdown] id=ways
# So here are the ways to run an operation, side by side:
#
# | | work is submitted | until the result is there |
# |---|---|---|
# | `op.sync()` | at once | the whole program stands still |
# | `await op` | at once | this task waits, others have turns |
# | `op.into_future()` | when it is first awaited | nobody waits |
# | `agt.spawn(op)` | at the next turn of the event loop | nobody waits, until somebody awaits the task |
#
# The cell below makes sure. `agt.in_flight()` tells how many submissions there are that nobody has seen complete.


# %% id=ways-check
def submitted(before):
    return agt.in_flight() - before


before = agt.in_flight()
future = batch(0).into_future()
after_future = submitted(before)
task = agt.spawn(batch(1))
after_spawn = submitted(before)
await asyncio.sleep(0)
after_turn = submitted(before)
await asyncio.gather(future, task)

print("after into_future:", after_future)
print("after spawn:", after_spawn, "  one turn later:", after_turn)
print("after both are awaited:", submitted(before))
assert (after_future, after_spawn, submitted(before)) == (0, 0, 0)
if device.simulated:  # a GPU may be done with it by the time we look
    assert after_turn == 1

# %% [markdown] id=difference
# ## What does it bring?
#
# Four batches, three programs. All do the same work.


# %% id=three-programs
def each_with_sync():
    return [batch(i).sync() for i in range(4)]


async def each_with_await():
    return [await batch(i) for i in range(4)]


async def all_together():
    return await asyncio.gather(*[batch(i) for i in range(4)])


# %% id=predict-difference
quicker = Prediction(
    "Which is done clearly sooner than `each_with_sync`?",
    both="both others: `await` does not block",
    together="only `all_together`",
    neither="neither: the copies take as long as they take",
)
quicker

# %% id=commit-difference
quicker.commit(...)

# %% id=run-difference
await all_together()  # a first time, not recorded: room for four results at once has to be found
with agt.record() as with_sync:
    each_with_sync()
with agt.record() as with_await:
    await each_with_await()
with agt.record() as together:
    results = await all_together()

assert [r[0] for r in results] == [1, 2, 3, 4]

# %% id=reveal-difference
a, b, c = (trace.metrics().makespan for trace in (with_sync, with_await, together))
truth = "both" if b < 0.85 * a and c < 0.85 * a else "together" if c < 0.85 * a else "neither"
quicker.reveal(
    truth, f"sync: {a:.0f} µs, one await after the other: {b:.0f} µs, together: {c:.0f} µs."
)

# %% id=plot-difference
titles = ["each with sync", "each with await", "all together"]
agt.compare_timelines([with_sync, with_await, together], titles, lanes=("host", "streams"))

# %% [markdown] id=read-difference
# The second program does not block anybody. But there *is* nobody else: one task, and it says four times "I do not go on
# without this result". A good waiter with one table is no quicker than a bad one. (Perhaps even a little slower: it takes some time
# until a task that waits is told.)
#
# In the third, nobody waits before all four tasks have submitted their work. Look at the streams: while one batch is on its way
# back, the next is on its way there. Why not four times as soon? The device has one **engine** for copies in each direction. So
# two copies at a time is the most that this work allows.

# %% id=check-difference
def submitted_before_done(trace):
    """For batches 1, 2, and 3: did the host begin with it before the device was done with the one before?"""
    begins, ends = {}, {}
    for span in trace:
        if span.kind == "call":
            begins.setdefault(span.label, span.start)
        elif span.on_device:
            ends[span.label] = span.end
    return [begins[f"batch {i}"] < ends[f"batch {i - 1}"] for i in (1, 2, 3)]


for title, trace in zip(titles, (with_sync, with_await, together)):
    print(f"{title}: the next one submitted before this one is done?", submitted_before_done(trace))

m = together.metrics()
assert not any(submitted_before_done(with_sync) + submitted_before_done(with_await))
assert any(submitted_before_done(together))
assert with_sync.metrics().overlap < 5
assert with_await.metrics().overlap < 5
assert m.overlap > 0
if device.simulated:
    assert m.max_concurrency == 2
    assert 1.5 < a / c < 2
    assert b > a
print(f"sync took {a / c:.2f} times as long as all together")

# %% [markdown] id=gather-twice
# A trap: here every batch is an operation of its own. Give `gather` *one and the same* operation twice, and it does not see two. It awaits each different
# thing once, and gives you that result in both places. An operation is a recipe, so perhaps you wanted two meals. Then spawn each.

# %% id=gather-twice-run
op = batch(0)
with agt.record() as same:
    await asyncio.gather(op, op)
with agt.record() as spawned:
    await asyncio.gather(agt.spawn(op), agt.spawn(op))
print("gather(op, op):    ", len(same.find("h2d")), "copy to the device")
print("with spawn, twice: ", len(spawned.find("h2d")), "copies")
assert len(same.find("h2d")) == 1
assert len(spawned.find("h2d")) == 2

# %% [markdown] id=exercise-difference
# ### Exercise: measure the difference
#
# Make a measuring tool of it. `make(i)` makes operation i. Run all `n` of them one after the other with `sync`, and record it. Make
# them anew, and run them all together, without blocking; record this, too. Return how many times as long the first took, a number. Take
# the times from the traces (`trace.metrics().makespan`), not from a clock on the wall: a wall clock measures your computer as well.


# %% id=06-difference starter
async def difference(make, n):
    ...  # your code


# %% id=06-difference solution
async def difference(make, n):
    with agt.record() as first:
        for i in range(n):
            make(i).sync()
    with agt.record() as second:
        await asyncio.gather(*[make(i) for i in range(n)])
    return first.metrics().makespan / second.metrics().makespan

# %% id=06-difference hints
# Two recordings: `with agt.record() as first:` and `with agt.record() as second:`.
#
# In the first block a loop with `make(i).sync()`. In the second one `await asyncio.gather(...)` of all of them.
#
# `await asyncio.gather(*[make(i) for i in range(n)])`, and in the end `return first.metrics().makespan / second.metrics().makespan`.

# %% id=06-difference explanation
# Both makespans come from traces, so the quotient is the same each time on the simulated device, however busy your computer is. A
# stopwatch would have measured Python, too.

# %% id=06-difference-check
check("06-difference", difference)

# %% [markdown] id=meanwhile
# ## Work for the host meanwhile
#
# There is a second way to use the wait. Batches do not fall from the sky: somebody has to read, decode and arrange them, and this
# somebody is the host. While the device works on one batch, the host can prepare the next one.

# %% [markdown] id=exercise-prepare
# ### Exercise: one batch ahead
#
# `prepare(i)` is an ordinary function that keeps the host busy for a while and returns batch i. `process(x)` makes an operation of a batch. Process
# `n` batches and return their results in a list. From batch 1 on, each is to be prepared *while the device works on the one before*.


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
# Prepare batch 0 before the loop. In the loop: start batch i, prepare batch i + 1, wait for batch i.
#
# `agt.spawn` makes a task, but the task gets its first turn only when you let go of the event loop: `await asyncio.sleep(0)`.
#
# In the loop: `task = agt.spawn(process(x))`, `await asyncio.sleep(0)`, `x = prepare(i + 1)` unless this was the last one,
# `results.append(await task)`.

# %% id=06-prepare explanation
# It is the *double buffering* of every data loader: the host is one batch ahead of the device. The `sleep(0)` is what makes it so.
# Without it the task would have been submitted after the preparation, not before.

# %% id=06-prepare-check
check("06-prepare", pipeline)

# %% [markdown] id=prepare-text
# And this is your `pipeline` at work, on the device of this notebook:

# %% id=prepare-picture
def prepare(i):
    agt.work(300, f"prepare {i}")
    return data[i]


def process(x):
    return agt.h2d(x).to_host()


with agt.record() as yours:
    prepared = await pipeline(4, prepare, process)

yours.plot(title="Your pipeline", lanes=("host", "streams"))

# %% id=prepare-claims
while_busy = yours.overlap_between([s for s in yours if s.kind == "work"], yours.device_spans)
print(f"The host prepares while the device is at work for {while_busy:.0f} µs.")
assert [r[0] for r in prepared] == [1, 2, 3, 4]

# %% [markdown] id=prepare-read
# As long as host and device take turns, this is 0. Once they work at the same time, the preparation of three batches of the four costs
# nothing, as long as it takes the host no longer than the copies take the device.

# %% [markdown] id=responsive
# ## Is anybody there?
#
# A server has to answer, a window has to react, and a notebook has to notice its stop button. Let a *heart* stand for all that: a
# task that beats every 100 µs, and shows in the trace when it does. (`agt.sleep` counts microseconds on the clock of the device in use, which on the simulated
# device is virtual. `asyncio.sleep` counts on the clock on the wall, which has no meaning there. On a GPU, expect about a beat a
# millisecond: Python's timers are no finer.)


# %% id=heart
async def heart():
    while True:
        agt.work(3, "beat")
        await agt.sleep(100)


def long_one():  # copies there and back, one after the other; many more where they are real
    rounds = 2 if device.simulated else 20
    return agt.zip(*[batch(i % 4) for i in range(rounds)]).named("long one")


await long_one();  # not recorded

# %% id=predict-heart
beats = Prediction(
    "The heart beats in a task of its own. How often does it beat during `long_one().sync()`?",
    same="as often as during `await long_one()`: it is another task",
    fewer="about half as often: the two take turns",
    never="not at all",
)
beats

# %% id=commit-heart
beats.commit(...)


# %% id=run-heart
async def with_heart(run):
    with agt.record() as trace:
        task = asyncio.create_task(heart())
        await asyncio.sleep(0)  # the first beat
        await run()
        task.cancel()
    return trace


async def blocking():
    long_one().sync()


async def awaiting():
    await long_one()


blocked, awaited = await with_heart(blocking), await with_heart(awaiting)

# %% id=reveal-heart
in_blocked = len(blocked.find("beat")) - 1
in_awaited = len(awaited.find("beat")) - 1
truth = "never" if in_blocked == 0 else "same" if in_blocked > 0.8 * in_awaited else "fewer"
beats.reveal(truth, f"{in_blocked} beats during `sync`, and {in_awaited} during `await`.")

# %% id=plot-heart
agt.compare_timelines(
    [blocked, awaited], ["sync: no heartbeat", "await: the heart beats"], lanes=("host", "streams")
)

# %% [markdown] id=read-heart
# `blocking` is an `async def`, and it runs in the event loop like the rest. It does not help. It never says `await`, so it never
# lets go. The device has the same to do either way, and takes as long; what differs is what everybody else can do.

# %% id=check-heart
assert in_blocked == 0
assert in_awaited > 2
assert [s.name for s in blocked.device_spans] == [s.name for s in awaited.device_spans]
if device.simulated:
    assert in_awaited >= 8
    ratio = awaited.metrics().makespan / blocked.metrics().makespan
    print(f"await, with all the beats, takes {ratio:.2f} times as long as sync")
    assert 0.9 < ratio < 1.1

# %% [markdown] id=misconception-async
# > **Misconception: a function with `async def` runs in the background.**
# >
# > - *What you see:* a program that reacts to nothing, although all of it is `async`.
# > - *Why:* between two `await`s that really wait, a task has the thread to itself. It makes no difference whether
# >   it waits for the device there, or computes.
# > - *What helps:* `await` in place of `sync`; long work of the host in pieces, with `await asyncio.sleep(0)` between
# >   them, or in a thread of its own (`asyncio.to_thread`).


# %% id=misconception-async-run
async def in_one_piece():
    agt.work(2000, "sums")


async def in_pieces():
    for _ in range(20):
        agt.work(100, "sums")
        await asyncio.sleep(0)


async def beats_between(run):
    trace = await with_heart(run)
    last = max(span.end for span in trace.find("sums"))
    return len([span for span in trace.find("beat") if span.start < last]) - 1


one_piece, pieces = await beats_between(in_one_piece), await beats_between(in_pieces)
print(f"beats before the sums were done: {one_piece} in one piece, {pieces} in twenty")
assert one_piece == 0
assert pieces > 0
if device.simulated:
    assert pieces > 4

# %% [markdown] id=exercise-responsive
# ### Exercise: keep the heart beating
#
# Write it yourself: run `op` without blocking, and while it is under way call `beat()` every 50 µs, the first time right at the start. Return the result of `op`. When
# `op` is done, the heart has to stop. (`beat` is an ordinary function. Use `agt.sleep`.)


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
# `sync` is out of the question, and a plain `await op` leaves you no place to beat from.
#
# Make a task of the operation. `task.done()` says whether it has ended, without waiting. `await agt.sleep(50)` lets others run for 50 µs.
#
# `task = agt.spawn(op)`, then `while not task.done():` with `beat()` and `await agt.sleep(50)` in it, then `return await task`.

# %% id=06-responsive explanation
# Each `await` in the loop is a place where others get a turn: the operation's task to notice that its result is there, and whatever else
# your program has to do. A second task that beats for ever, and is cancelled in the end, does as well.

# %% id=06-responsive-check
check("06-responsive", with_heartbeat)

# %% [markdown] id=ownership
# ## Who keeps the array alive?
#
# With `sync` the caller stands there until all is done, and so do the caller's arrays. A task may go on long after the function that
# spawned it has returned. So whoever spawns has to say who owns what the task uses. You know the three kinds of handle from chapter 04. New is
# the last column:
#
# | handle | you write | afterwards you have | may be spawned |
# |---|---|---|---|
# | owned | `w` | nothing: it went into the operation, and comes out with its result | yes |
# | shared | `w = w.share()`, once, and then `w` | `w`, a shared handle now, as everybody else has | yes |
# | borrowed | `w.borrow()` | `w`, as before | **no** |
#
# Borrowing is a promise: *I keep `w` until you are done.* Nobody can hold the promise for a task that runs when they are gone. So it
# is refused, at the line that spawns:

# %% id=ownership-refused
n = 256
w = await agt.ones((n, n), name="w")


def product(weights):
    out = agt.zeros(n).partition(64)
    return agt.matvec_naive(n, n, weights, agt.ones(n), out).output().to_host()


lent = product(w.borrow())
try:
    agt.spawn(lent)
except agt.errors.BorrowedSpawnError as error:
    print(error)
else:
    raise AssertionError("a borrowed array in a spawned operation should be refused")

# %% [markdown] id=ownership-await
# Nothing reached the device. To *await* it is fine, since then you are there until it is done. (In a coroutine too, and if that becomes a
# task by `asyncio.create_task`, Python tells nobody whether you wait for it: there, keeping the promise is up to you.) And with a shared handle,
# so is `spawn`:

# %% id=ownership-shared
y = await lent
assert (y == n).all()

w = w.share()
tasks = [agt.spawn(product(w)) for _ in range(3)]
print("handles, before the tasks run:", w.share_count)
products = await asyncio.gather(*tasks)
del tasks
print("handles, when they are done:", w.share_count)
assert all((y == n).all() for y in products)
assert w.share_count == 1

# %% [markdown] id=ownership-moved
# And owned? An owned array can go to *one* task. The second one comes too late, and is told where the array went:

# %% id=ownership-moved-run
v = await agt.ones((n, n), name="v")
first = agt.spawn(product(v))
try:
    agt.d2h(v)
except agt.errors.UseAfterMoveError as error:
    print(error)
else:
    raise AssertionError("an array that was given away should be refused")
assert ((await first) == n).all()

# %% [markdown] id=exercise-spawn-safe
# ### Exercise: weights that outlive their function
#
# `start` gets batches and a matrix `w`, which it may keep. It starts a task for each batch, which computes `w @ x`, and
# **returns the tasks at once**, in a list. The caller may then do with its own handle of `w` whatever it likes. There is one copy of `w` on the device, and
# that has to do for all. The starter is refused; mend it. (`start` is no `async def`, but it is called from one.)


# %% id=06-spawn-safe starter
def start(batches, w):
    n = w.shape[0]

    def score(x):
        out = agt.zeros(n).partition(64)
        y = agt.matvec_naive(n, n, w.borrow(), agt.h2d(x), out).output()
        return y.to_host()

    return [agt.spawn(score(x)) for x in batches]


# %% id=06-spawn-safe solution
def start(batches, w):
    n = w.shape[0]
    w = w.share()

    def score(x):
        out = agt.zeros(n).partition(64)
        y = agt.matvec_naive(n, n, w, agt.h2d(x), out).output()
        return y.to_host()

    return [agt.spawn(score(x)) for x in batches]

# %% id=06-spawn-safe hints
# Read what the error says: it names what to pass in place of the borrowed array.
#
# Each task needs a handle of its own that keeps the array alive: a shared one.
#
# One line is enough: `w = w.share()` at the top, and `w` in place of `w.borrow()`.

# %% id=06-spawn-safe explanation
# `start` returns long before the tasks are done. A shared handle in each of them keeps the weights where they are, whoever else lets go,
# and the memory is free when the last of them is done.

# %% id=06-spawn-safe-check
check("06-spawn-safe", start)

# %% [markdown] id=errors
# ## When something goes wrong
#
# There are two places where an operation can fail. Its *description* can be wrong: a bug in one of your functions, which shows
# when the work is submitted. Or the *device* fails while it works: a kernel that goes beyond its array, say. The first is an ordinary Python exception. The second is
# an `agt.DeviceError`. Both come to whoever awaits that operation, and to nobody else.
#
# This section uses the simulated device, also if you have a GPU: there a faulty kernel would be the end of all GPU work of this process.

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
# Three operations run together: a good one, a faulty one, and another good one. `gather` is told to hand over exceptions like results
# (`return_exceptions=True`).

# %% id=predict-errors
survivors = Prediction(
    "How many of the two good ones give their result?",
    none="none: an error ends everything that is under way",
    first="one, as it was started before the faulty one",
    both="both: they are on streams of their own",
)
survivors

# %% id=commit-errors
survivors.commit(...)

# %% id=run-errors
with agt.using("sim"), agt.record() as with_fault:
    outcomes = await asyncio.gather(good(), faulty(), good(), return_exceptions=True)

for outcome in outcomes:
    print(type(outcome).__name__, "-", str(outcome).splitlines()[0])
fine = [isinstance(outcome, np.ndarray) for outcome in outcomes]
assert isinstance(outcomes[1], agt.DeviceError)

# %% id=reveal-errors
truth = {0: "none", 1: "first", 2: "both"}[sum(fine)]
copies = len(with_fault.find("d2h"))
survivors.reveal(
    truth, f"The trace has {copies} copies back to the host; the faulty one's is not among them."
)

# %% id=plot-errors
with_fault.plot(title="One of three fails", lanes=("host", "streams"))

# %% [markdown] id=read-errors
# The faulty one's stream has a fill and nothing after it. A kernel that fails has no bar, since it never came to an end; its launch is there, in
# the host's lane. And the copy back, which would have come next, is skipped, like the rest of *its* operation. The other streams
# did not notice. (This is the simulated device. A real GPU is less kind: after an illegal access the CUDA context of the process
# is gone, and everything in it fails. What fails for other reasons, such as a wrong shape or too little memory, ends alone there as well.)

# %% id=check-errors
assert fine == [True, False, True]
assert copies == 2
assert with_fault.find("launch beyond")
assert not with_fault.find("beyond")
assert (outcomes[0] == 1).all()
assert (outcomes[2] == 1).all()

# %% [markdown] id=failed-state
# And the fourth state of a future? Here it is. A future that failed stays failed: whoever awaits it later gets the same error.

# %% id=failed-state-run
with agt.using("sim"):
    future = faulty().into_future()
    for _ in range(2):
        try:
            await future
        except agt.DeviceError as error:
            print(future.state.value, "-", error.site.kernel, "wrote to element", error.site.index)
            print("   ", error.__notes__[0])
        else:
            raise AssertionError("this should have failed")
assert future.state is agt.FutureState.FAILED

# %% [markdown] id=buggy-text
# That was the device. Now the description: `buggy` has a function in it that goes wrong as soon as it is called, which is when the
# work is submitted. The error is Python's own, with a note that says in which operation it happened. (On every device, so this needs no
# simulated one.)

# %% id=buggy-run
try:
    await buggy()
except KeyError as error:
    print("KeyError:", error, "-", error.__notes__[0])
    told_apart = not isinstance(error, agt.DeviceError)
else:
    raise AssertionError("this should have failed")
assert told_apart

# %% [markdown] id=task-group
# ### All or nothing: `TaskGroup`
#
# `gather` with `return_exceptions` suits operations that do not need each other. If one result is useless without the others, take a
# `TaskGroup`: when one task fails, the others are cancelled, and the errors come out of the block in a group. `except*` takes from the
# group what it can handle.


# %% id=task-group-run
async def run(op):
    return await op


ended = []
with agt.using("sim"):
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(op)) for op in (good(), faulty(), good())]
    except* agt.DeviceError as errors:
        ended.extend(type(error).__name__ for error in errors.exceptions)

print("errors in the group:", ended)
print("cancelled:", [task.cancelled() for task in tasks])
assert ended == ["OutOfBoundsError"]
assert any(task.cancelled() for task in tasks)

# %% [markdown] id=group-or-gather
# | you want | take |
# |---|---|
# | all results, or none | `asyncio.TaskGroup` |
# | all results in order; the first error comes to you, the others go on | `asyncio.gather` |
# | an outcome for each, come what may | `asyncio.gather(..., return_exceptions=True)` |
# | each as soon as it is there | `asyncio.as_completed` |

# %% [markdown] id=exercise-three-arms
# ### Exercise: three endings
#
# Run a list of operations, all in flight together. Return a list with a report on each, in order, which is a pair:
#
# - `("done", result)`;
# - `("device", error)`, if the device failed, so that one may try again elsewhere;
# - `("program", error)`, for any other exception, which somebody has to mend.
#
# Should somebody cancel *you* while you wait, let that through: it is nobody's error.


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
# Write a coroutine for *one* operation, with a `try` in it that has three endings, and `gather` as many of these as there are operations.
#
# Python takes the first `except` that fits. `agt.DeviceError` is an `Exception`, too, so it has to come first.
#
# `try: return "done", await op`, then `except agt.DeviceError as error: return "device", error`, then `except Exception as error: return
# "program", error`.

# %% id=06-three-arms explanation
# The `try` is within the task, so an error ends this one operation and no other. And `except Exception` is as wide as it should get: a
# cancellation is a `BaseException`, so that it can pass.

# %% id=06-three-arms-check
check("06-three-arms", reports)

# %% [markdown] id=cancel
# ## To stop waiting
#
# A task can be cancelled: `task.cancel()`. At its next turn an `asyncio.CancelledError` is raised in it, at the `await` at which it waits. What does
# this do to the work that is already in the queue of a stream?

# %% id=predict-cancel
stopped = Prediction(
    "A batch is spawned, and cancelled as soon as it is submitted. What does the device do?",
    nothing="nothing: it was cancelled before it got far",
    there="it finishes the copy that is under way, and skips the one back",
    all="all of it, as if nothing had happened",
)
stopped

# %% id=commit-cancel
stopped.commit(...)

# %% id=run-cancel
shared = await agt.h2d(data[0], "shared").share()


def unwanted():  # a copy of `shared` within the device, then a batch there and back
    there = agt.dup(shared).and_then(lambda _: agt.h2d(data[1]))
    return there.to_host().named("unwanted")


before = agt.in_flight()

with agt.record() as cancelled:
    task = agt.spawn(unwanted())
    await asyncio.sleep(0)  # it is submitted
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)  # the cancellation is through
    agt.work(3, "the wait is over")
    in_use = agt.in_flight() - before, shared.share_count

# %% id=reveal-cancel
done = {span.name for span in cancelled.device_spans}
truth = "all" if {"h2d", "d2h"} <= done else "there" if "h2d" in done else "nothing"
stopped.reveal(
    truth, f"On the device there were: {', '.join(s.name for s in cancelled.device_spans)}."
)

# %% id=plot-cancel
cancelled.plot(title="Cancelled, and finished all the same", lanes=("host", "streams"))

# %% [markdown] id=read-cancel
# Cancelling took the waiter away from the hatch. The kitchen has not noticed, and the dish gets cooked. What is in the queue of a stream
# cannot be taken out again.
#
# So what the work uses has to stay alive until it is done, although nobody waits for it. It does: while it was under way, the
# cancelled operation held its own handle to the array `shared`. When the device is done, it lets go.

# %% id=check-cancel
while agt.in_flight() > before:
    await agt.sleep(100)

print(f"just after the cancellation: {in_use[0]} in flight, {in_use[1]} handles to `shared`")
print(f"later: {agt.in_flight() - before} in flight, {shared.share_count} handle")
assert task.cancelled()
assert shared.share_count == 1
(over,) = cancelled.find("the wait is over")
last = max(span.end for span in cancelled.device_spans)
if device.simulated:
    assert in_use == (1, 2)
    assert over.end < last

# %% [markdown] id=exercise-cancel
# ### Exercise: wait, but not for ever
#
# Users do not wait for long. Return the result of `op` if it is there within `us` microseconds, as soon as it is there. Otherwise give up when the time is over: return `None`, and leave
# nobody behind who still waits. Use `agt.sleep` as the clock. (`asyncio.wait([...], return_when=asyncio.FIRST_COMPLETED)` waits until the first of
# several tasks is done.)


# %% id=06-cancel starter
async def at_most(op, us):
    return await op


# %% id=06-cancel solution
async def at_most(op, us):
    task = agt.spawn(op)
    clock = asyncio.create_task(agt.sleep(us))
    await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)
    clock.cancel()
    if task.done():
        return task.result()
    task.cancel()
    return None

# %% id=06-cancel hints
# You wait for two things here, the operation and the time. Whichever is first decides.
#
# Two tasks: `agt.spawn(op)` and `asyncio.create_task(agt.sleep(us))`. `asyncio.wait` can return when the first of them is done: see
# `help(asyncio.wait)`.
#
# `await asyncio.wait([task, clock], return_when=asyncio.FIRST_COMPLETED)`, then `clock.cancel()`. If `task.done()`, return
# `task.result()`; if not, `task.cancel()`.

# %% id=06-cancel explanation
# Cancelling ends the wait, and nothing else: the device finishes what is in its queue, and the arrays live until then. In a program on a
# GPU alone `asyncio.timeout` does this for you, with the clock on the wall.

# %% id=06-cancel-check
check("06-cancel", at_most)

# %% [markdown] id=exercise-as-completed
# ## Whoever is done first
#
# `gather` gives you nothing before everything is there. Often you could go on with the first result while the device is at work on the
# others. In which order they come is not for you to decide.
#
# ### Exercise: first come, first served
#
# Some operations take long and some do not, and you cannot know which. Have all in flight together, and call `use(result)` for each *as soon
# as its result is there*, so that the host works on what is done while the device works on the rest. The check also tries it on a device that
# does things in an order that nobody hopes for.


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
# In the starter, where is the host while the device works on the last operation?
#
# `asyncio.as_completed(tasks)` gives what to await next, in the order in which it is done.
#
# `tasks = [agt.spawn(op) for op in ops]`, then `for next_one in asyncio.as_completed(tasks): use(await next_one)`.

# %% id=06-as-completed explanation
# All are in flight from the start. What is done first is used first, while the device works on the rest: the host's part overlaps the
# device's.

# %% id=06-as-completed-check
check("06-as-completed", as_they_come)

# %% [markdown] id=exercise-limited
# ### Exercise: no more than so many
#
# Run a list of operations with at most `limit` of them in flight at any time. As soon as one is done, the next one starts.
# Return the results in the order of the list. (`help(asyncio.Semaphore)`)

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
# Let each operation have a coroutine of its own, and think of a door that lets so many in at a time.
#
# `asyncio.Semaphore(limit)` is that door: `async with gate:` waits in front of it while `limit` others are inside.
#
# `async def run(op):` with `async with gate:` and `return await op` in it, and then `return await asyncio.gather(*[run(op) for op in
# ops])`.

# %% id=06-limited explanation
# An operation that nobody has awaited costs nothing. So a thousand of them may stand in front of the door, and memory is needed for those
# inside only.

# %% id=06-limited-check
check("06-limited", run_limited)

# %% [markdown] id=script
# ## In a script
#
# A notebook has an event loop running, which is why cells may say `await`. A program has none until it starts one: `asyncio.run(main())`, once, at
# the edge, and everything asynchronous inside of `main`. (In a notebook `asyncio.run` is refused: there *is* a loop.)
#
# Beside this notebook lies [06_await.py](../notebooks/06_await.py), the programs of this page as a script. It is also what you would
# give to a profiler. On a GPU: `nsys profile -t cuda,nvtx python 06_await.py`.

# %% id=script-run
import subprocess
import sys
from pathlib import Path

twin = Path("../notebooks/06_await.py")
print(twin.read_text(encoding="utf-8"))
ran = subprocess.run(
    [sys.executable, str(twin), "--device", device.name],
    capture_output=True,
    text=True,
    check=False,
)
print(ran.stdout, ran.stderr)
assert ran.returncode == 0

# %% [markdown] id=key-points
# ## Key points
#
# - One task runs at a time, until an `await` at which it has to wait. Who does not let go keeps everybody waiting.
# - A future is idle, executing, then complete or failed. It is awaited as often as you like, and does its work once.
# - `sync` stops the program, `await` stops one task, `spawn` stops nobody. A spawned task starts at the next turn, not at once.
# - To gain time, start everything first and wait later. One `await` after the other gains nothing.
# - What a spawned operation uses has to be owned or shared. Borrowed is refused.
# - An error comes to whoever awaits *that* operation. Cancelling stops the waiting, and not the GPU.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so in
# the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [07_async_mlp.ipynb](07_async_mlp.ipynb), all of it together: a small neural network, four batches at a time.

# %% id=score
score(turns, begins, quicker, beats, survivors, stopped)

# %% id=progress
progress("06")
