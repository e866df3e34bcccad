"""Source of notebooks/10_build_it_yourself.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Build it yourself
#
# **After this page you can**
#
# - say in one sentence what a lazy operation *is*, and write one without any library;
# - write `and_then`, `zip`, `shared`, `overlap`, a scheduling policy and a future of your own;
# - run them on this course's device, and on CuPy's streams and raw kernels, without changing a line of them;
# - hand an array to CuPy and take one back, without a copy;
# - name three things that a real library adds to yours, and show what goes wrong without one of them.
#
# | | |
# |---|---|
# | Time | 70 minutes |
# | You need | [04_combinators](04_combinators.ipynb), [05_scheduling](05_scheduling.ipynb), [06_await](06_await.ipynb), and [09_cuda_graphs](09_cuda_graphs.ipynb) for one section. You do not need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio
import inspect
import warnings

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## How does it do that?
#
# For nine chapters you have written things like `agt.h2d(x).and_then(...)`, and streams filled up as if by themselves. How does that work? Could *you* have written it?
#
# Here it is once more, so that we know what we are after: four jobs, and each is a treasure hunt. Send 256 explorers to the device. Let each of them follow a trail of slips
# of paper ("go to place 1207", "go to place 33", ...). Bring them back. You met the kernel in [chapter 5](05_scheduling.ipynb).

# %% id=kernel
SOURCE = r"""
extern "C" __global__ void hunt(unsigned int steps, const unsigned int* next, unsigned int* place)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int here = place[i];
    for (unsigned int s = 0; s < steps; s++) {
        here = next[here];
    }
    place[i] = here;
}
"""

slips = np.random.default_rng(0).permutation(4096).astype(np.uint32)
trails = agt.h2d(agt.pin(slips), "trails").sync().share()
start = agt.pin(np.arange(256, dtype=np.uint32))
STEPS = 12_000


def in_numpy(steps, here=start):
    for _ in range(steps):
        here = slips[here]
    return here


# %% id=goal
their_hunt = agt.Kernel(SOURCE)


def their_job(steps):
    return (
        agt.h2d(start)
        .and_then(lambda places: their_hunt(steps, trails, places.partition(64)).output())
        .to_host()
        .named("their job")
    )


async def four_of_theirs():
    return await asyncio.gather(*[their_job(STEPS).schedule() for _ in range(4)])


await four_of_theirs()  # warm-up
with agt.record() as theirs:
    found = await four_of_theirs()

theirs.plot(
    title="Four jobs, four streams, one event loop",
    lanes=("host", "streams"),
    lesson="The host is done early. Four streams work side by side: copy, long hunt, copy back.",
)

# %% id=goal-check tags=asserts
assert len(theirs.find("hunt")) == 4
assert all((places == in_numpy(STEPS)).all() for places in found)
if device.simulated:
    assert len(theirs.streams) == 4
    last_call = max(span.end for span in theirs if span.kind == "call")
    assert last_call < 0.6 * theirs.metrics().makespan
    assert theirs.metrics().overlap > 0

# %% [markdown] id=goal-read
# Four streams, and on each of them a copy, a hunt and a copy back. The hunts overlap, and Python is done handing out work long before the device is done with it.
#
# Today you build the machine behind this picture. It describes work, chains it, shares it, chooses streams and awaits results. Near the end of the page you draw
# the picture again with *your* machine, and we put the two one above the other.
#
# How much work is that? Take a guess.

# %% id=predict-lines
size = Prediction(
    "How many lines of Python will your machine have, if it can do all of that?",
    small="fewer than 30",
    page="30 to 120: it fits on a page or two",
    module="120 to 500",
    library="more than 500",
)
size

# %% id=commit-lines
size.commit(...)

# %% [markdown] id=idea
# ## A job that waits for its stream
#
# Start with the most ordinary code there is: do the work now.
#
# ```python
# array = copy_to_the_device(host, stream)
# ```
#
# Now suppose we do not want to choose the stream yet. Everything else is known; the stream is the only blank. Python has a word for code with a blank
# in it: a **function**.
#
# ```python
# def operation(stream):
#     return copy_to_the_device(host, stream)
# ```
#
# That is the whole idea of this page. Everything else follows from it:
#
# > **An operation is a function that has not been called yet. Its argument is the place where it will run.**
#
# Calling it enqueues the work. Until then it is only a description: you can pass it around, and it costs nothing. *That* is laziness.
#
# The place is a **context**: a stream, with verbs that enqueue work on it. You met it in [chapter 3](03_lazy_operations.ipynb), where `agt.with_context`
# gave you one. These verbs are nearly all that we borrow from the library today. Here are three operations:


# %% id=leaves
def h2d(host):
    """Copy a host array to a new array on the device."""

    def enqueue(context):
        array = context.empty(host.shape, host.dtype, "places")
        context.copy_from_host(array, host)
        return array

    return enqueue


def hunt(steps, places):
    """Have every explorer follow the trail, in blocks of 64 threads."""

    def enqueue(context):
        function = context.device.get_function(SOURCE, "hunt")
        arguments = (np.uint32(steps), trails, places)
        context.launch(function, (places.size // 64, 1, 1), (64, 1, 1), arguments)
        return places

    return enqueue


def d2h(array):
    """Copy an array to the host."""

    def enqueue(context):
        return context.copy_to_host(array)

    return enqueue


# %% [markdown] id=leaves-read
# All three have the same shape. The outer function takes *what* the work is about, and the inner one takes *where* it runs. The outer one returns the inner one,
# uncalled.
#
# So `h2d(start)` is an operation. Who calls it, and with which context? Here we ask the library for help. `agt.with_context(f)`
# calls `f` with a context when it is submitted, and `async_on` submits it to a stream and returns at once. (`agt.with_context` wants an operation of its own kind back, so we wrap
# the result in `agt.value`.)


# %% id=submit
def submit(op, stream):
    """Enqueue the work of `op` on this stream, without waiting. Returns what the op returns."""
    return agt.with_context(lambda context: agt.value(op(context))).named("mine").async_on(stream)


def run(op, stream):
    """The same, and wait."""
    result = submit(op, stream)
    stream.synchronize()
    return result


with agt.record() as trace:
    op = h2d(start)
    print("described:", len(trace.device_spans), "pieces of work")
    array = run(op, stream)

print("run:      ", [span.name for span in trace.device_spans])
print(op)
assert [span.name for span in trace.device_spans] == ["h2d"]

# %% [markdown] id=submit-read
# Look at the last line of the output. Your operation is not an instance of anything. It is a plain Python function.

# %% [markdown] id=value
# ## The smallest one, and the most important one
#
# The smallest operation does nothing on the device. It takes the context, ignores it, and has its answer ready:


# %% id=value-code
def value(x):
    return lambda context: x


assert run(value(42), stream) == 42

# %% [markdown] id=and-then-text
# It looks useless, as the number 0 does. You will need it before this section is over.
#
# Now the important one. We have `h2d(start)`, which will give an array. And we have `hunt(steps, array)`, which *wants* an array. How do we
# join them, when there is no array yet?
#
# ```text
#   op                    context  →  array
#   f                     array    →  another operation
#   and_then(op, f)       context  →  what that other operation returns
# ```
#
# Read the last row: `and_then` has to return something that takes a context. As soon as it has one, it can run `op` with it. Then there *is* an array.

# %% [markdown] id=exercise-and-then
# ### Exercise: and_then
#
# The version below gives the right numbers, but it cheats: it runs `op` straight away, on a stream that nobody chose, and waits for it. Make it lazy. Nothing may happen before
# the context comes, and then everything happens in that one context.


# %% id=10-and-then starter
def and_then(op, f):
    result = run(op, stream)  # cheating: runs now, and waits
    return f(result)


# %% id=10-and-then solution
def and_then(op, f):
    def enqueue(context):
        result = op(context)
        follow = f(result)
        return follow(context)

    return enqueue

# %% id=10-and-then hints
# Use the shape of `h2d` above: an inner function `enqueue(context)`, and `return enqueue`.
#
# In `enqueue` there are three calls: of `op`, of `f`, and of what `f` returns. Two of them take the context.
#
# `result = op(context)`, then `follow = f(result)`, then `return follow(context)`.

# %% id=10-and-then explanation
# Three calls. The context goes in twice, and it is the same one. That is why a chain stays on one stream: there is no other stream in sight.

# %% id=10-and-then-check
check("10-and-then", and_then)

# %% [markdown] id=chain-text
# With this, a whole job is one expression. `chain` only saves us some brackets:


# %% id=chain
def chain(op, *functions):
    """op, and then the first function, and then the second, ..."""
    for f in functions:
        op = and_then(op, f)
    return op


def job(steps):
    return chain(h2d(start), lambda places: hunt(steps, places), d2h)


with agt.record() as trace:
    answer = run(job(STEPS), stream)

print("found:", answer.numpy()[:5], " NumPy:", in_numpy(STEPS)[:5])
assert (answer.numpy() == in_numpy(STEPS)).all()
trace.plot(
    title="One job of your own",
    lanes=("host", "streams"),
    lesson="On one stream a copy, a hunt and a copy back follow each other.",
)

# %% [markdown] id=when-text
# ### A question of timing
#
# The next job has one more step, a function called `spy`, between the hunt and the copy back. It gets the explorers' array, looks whether the stream still has work to do, and
# hands the array on (with `value`: there it is).

# %% id=predict-when
when = Prediction(
    "When is `spy` called?",
    described="when the chain is described, before anything is submitted",
    under_way="while the device still has the hunt ahead of it or is in the middle of it",
    after="when the hunt is over, so that `spy` could read the explorers' places",
)
when

# %% id=commit-when
when.commit(...)

# %% id=run-when
seen = []


def spy(places):
    seen.append("idle" if stream.done else "busy")
    return value(places)


spied = chain(h2d(start), lambda places: hunt(STEPS, places), spy, d2h)
run(spied, stream)
print("the spy saw a stream that was", seen[-1])

# %% id=reveal-when
answer = "Your `and_then` still waits for each link. Solve the exercise above, and come back to this."
if seen[-1] == "busy":
    answer = when.reveal(
        "under_way",
        "The array that `spy` gets is a handle: it has an address and a size. Its numbers come later.",
    )
answer

# %% [markdown] id=when-read
# `f` runs while Python is *enqueuing*, and enqueuing is over long before the work is. So a function in a chain can decide what comes next by the *size* of an array,
# and not by the *numbers* in it. `agt` has the same rule, and calls it "handles, not data". You did not have to enforce it. It follows from three calls.

# %% [markdown] id=zip-text
# ## Several results
#
# A chain passes one result along. Sometimes you want two results, or ten. `zip` makes one operation of several, and it yields a tuple of their results, in order.

# %% [markdown] id=exercise-zip
# ### Exercise: zip
#
# Again, the version below gives the right answer too early. Make it lazy. It should work for any number of operations, even for none. (We call it
# `zip_ops`, as Python's own `zip` may still come in handy.)


# %% id=10-zip starter
def zip_ops(*ops):
    results = tuple(run(op, stream) for op in ops)  # cheating again
    return value(results)


# %% id=10-zip solution
def zip_ops(*ops):
    def enqueue(context):
        return tuple(op(context) for op in ops)

    return enqueue

# %% id=10-zip hints
# What does `zip_ops` have to return? The same kind of thing as `and_then`.
#
# Every operation gets the *same* context. Collect what they return.
#
# In `enqueue(context)`: `return tuple(op(context) for op in ops)`.

# %% id=10-zip explanation
# One context means one stream. So the operations stand in one queue, in the order in which you gave them. If you ever wondered why `agt.zip` overlaps nothing:
# there it is, in one line.

# %% id=10-zip-check
check("10-zip", zip_ops)

# %% id=zip-plot
with agt.record() as zipped:
    first, second = run(zip_ops(job(STEPS), job(STEPS)), stream)

zipped.plot(
    title="zip of two jobs",
    lanes=("host", "streams"),
    lesson="Both jobs are on one stream, one behind the other.",
)

# %% id=zip-plot-check tags=asserts
assert len(zipped.streams) == 1
assert len(zipped.find("hunt")) == 2
assert (first.numpy() == second.numpy()).all()

# %% [markdown] id=shared-text
# ## One source, two readers
#
# Sometimes two jobs need the same result. Here `source` is the explorers after their hunt, and two readers copy them back.

# %% id=predict-twice
twice = Prediction(
    "`zip_ops(chain(source, d2h), chain(source, d2h))`: how often does the device run the hunt?",
    once="once: there is only one `source`",
    two="twice",
    never="not at all, until somebody reads the numbers",
)
twice

# %% id=commit-twice
twice.commit(...)

# %% id=run-twice
with agt.record() as trace:
    source = chain(h2d(start), lambda places: hunt(STEPS, places))
    run(zip_ops(chain(source, d2h), chain(source, d2h)), stream)
hunts = len(trace.find("hunt"))
print([span.name for span in trace.device_spans])

# %% id=reveal-twice
twice.reveal(
    {0: "never", 1: "once", 2: "two"}[hunts],
    "An operation is a function, and it was called twice.",
)

# %% [markdown] id=shared-read
# You know the cure from ordinary Python: remember the result, as `functools.cache` does.
#
# But there is a catch. The first reader may be on one stream, and the second on *another*. What you remember is a handle, and the work behind it
# may still be under way on the first stream. So remember two things: the result, and an **event**, a mark that says how far the first stream has to get. From [chapter 2](02_streams_and_events.ipynb):
#
# | | |
# |---|---|
# | `event = context.stream.record()` | a mark behind everything enqueued on this stream so far |
# | `context.stream.wait_event(event)` | work enqueued here from now on waits for that mark. Python does not wait |

# %% [markdown] id=exercise-shared
# ### Exercise: shared
#
# Write `shared(op)`: an operation that runs `op` the first time it is called, and never again. Whoever calls it later gets the same result, on
# whatever stream, and their stream waits until that result is really there.


# %% id=10-shared starter
def shared(op):
    return op  # runs it again each time


# %% id=10-shared solution
def shared(op):
    known = []

    def enqueue(context):
        if not known:
            known.append((op(context), context.stream.record()))
        result, event = known[0]
        context.stream.wait_event(event)
        return result

    return enqueue

# %% id=10-shared hints
# Keep a list, empty at first, outside of `enqueue` and inside of `shared`. If it is still empty when `enqueue` is called, run `op`.
#
# Put a pair into it: the result, and an event that you record right after `op(context)`.
#
# `if not known: known.append((op(context), context.stream.record()))`. Then `result, event = known[0]`, `context.stream.wait_event(event)`, `return result`.

# %% id=10-shared explanation
# The first caller waits for its own event as well. That costs the device no time: when it gets there, it has passed the mark. It costs Python one call, and saves you an `if` to get
# right.

# %% id=10-shared-check
check("10-shared", shared)

# %% [markdown] id=misconception-memory
# > **Misconception: to share a result it is enough to remember it.**
# >
# > - *What you see:* right numbers, today, on this machine.
# > - *Why:* the handle is there at once, and the data is not. A reader on another stream may be quicker than the writer.
# > - *What helps:* remember the event as well. The simulated device refuses to be lucky:

# %% id=misconception-memory-code
def only_remembered(op):
    known = []

    def enqueue(context):
        if not known:
            known.append(op(context))
        return known[0]

    return enqueue


with agt.using("sim"):
    on_sim = agt.h2d(agt.pin(np.zeros(256, np.uint32)), "places").sync()

    def fill(context):
        context.memset(on_sim, 1)
        return on_sim

    remembered = only_remembered(fill)
    one, two = agt.create_stream(), agt.create_stream()
    try:
        submit(remembered, one)
        submit(lambda context: d2h(remembered(context))(context), two)
        agt.synchronize()
    except agt.errors.StreamRaceError as race:
        print(str(race).partition("\n")[0])
    else:
        raise AssertionError("the race was not seen")

# %% [markdown] id=policy-text
# ## Whose turn is it?
#
# So far we have named the stream each time. A **policy** does it for us: ask it, and it names the next stream. In keeping with this page, it is a function:
#
# ```python
# next_stream = round_robin(4)
# next_stream()     # the first of four streams
# next_stream()     # the second
# ```

# %% [markdown] id=exercise-round-robin
# ### Exercise: round robin
#
# Write `round_robin(size)`. It makes `size` streams with `agt.create_stream()` and returns a function. Each call of *that* names the next stream, and after the last
# the first one comes again. Two policies never share a stream.


# %% id=10-round-robin starter
def round_robin(size):
    only = agt.create_stream()
    return lambda: only  # the same one each time


# %% id=10-round-robin solution
def round_robin(size):
    streams = [agt.create_stream() for _ in range(size)]

    def next_stream():
        streams.append(streams.pop(0))
        return streams[-1]

    return next_stream

# %% id=10-round-robin hints
# Make a list of `size` streams first, in `round_robin` itself. Make none in the function that you return.
#
# The function has to remember whose turn it is. The order of the list can do that: whoever has had a turn goes to the back of the queue.
#
# In the inner function: `streams.append(streams.pop(0))`, then `return streams[-1]`.

# %% id=10-round-robin explanation
# Take from the front, put to the back. It gets no argument, so it cannot know what it is placing. That is just as true of `agt.StreamPoolRoundRobin`.

# %% id=10-round-robin-check
check("10-round-robin", round_robin)

# %% [markdown] id=future-text
# ## Waiting without standing in the way
#
# `run` waits by `stream.synchronize()`, and while it waits Python can do nothing else. We want `await`.
#
# What does `await thing` do? It calls `thing.__await__()`, which is a generator: a function with `yield` in it. Every bare `yield` says to the event loop "not
# yet; let the others have a turn, and come back to me". Its `return` is the answer. Here it is at work, with no GPU in sight:


# %% id=await-demo
class Patience:
    def __init__(self, turns):
        self.turns = turns

    def __await__(self):
        for i in range(self.turns):
            print("not yet", i)
            yield
        return "now"


async def neighbour():
    for i in range(3):
        print("   the neighbour's turn", i)
        await asyncio.sleep(0)


async def demo():
    return await Patience(3)


answer, _ = await asyncio.gather(demo(), neighbour())
print(answer)
assert answer == "now"

# %% [markdown] id=await-read
# The two take turns, and neither knows of the other. For a GPU we need an event in place of the counter. `event.done` says whether the
# device has passed it, and it never waits.

# %% [markdown] id=exercise-future
# ### Exercise: future
#
# Complete the class. `await Future(result, event)` returns `result` as soon as `event` is done, and gives the event loop a turn whenever it is not. The version below blocks, and the
# neighbours get no turn. (Its `yield` is never reached. It is only there because a function without one is no generator.)


# %% id=10-future starter
class Future:
    def __init__(self, result, event):
        self.result = result
        self.event = event

    def __await__(self):
        self.event.synchronize()  # blocks everybody
        if False:
            yield
        return self.result


# %% id=10-future solution
class Future:
    def __init__(self, result, event):
        self.result = result
        self.event = event

    def __await__(self):
        while not self.event.done:
            yield
        return self.result

# %% id=10-future hints
# Compare with `Patience` above. What takes the place of `for i in range(self.turns)`?
#
# As long as the event is not done, `yield`. Then return the result.
#
# `while not self.event.done:`, and in it `yield`; after the loop `return self.result`.

# %% id=10-future explanation
# Two lines, and a GPU takes part in an event loop. Looking again and again is called *polling*. It is quick to react, and it keeps one processor core busy. `agt`
# looks like this for a moment, and then asks the driver to wake it: `device.watch(event, wake)`.

# %% id=10-future-check
check("10-future", Future)

# %% [markdown] id=begin-text
# Now put policy, submission and future together. This is your `spawn`, and it is even more eager than ours: it hands the work over right away, where `agt.spawn` waits for its turn on the event loop.


# %% id=begin
def begin(op, next_stream):
    """Submit to the next stream; what comes back can be awaited."""
    stream = next_stream()
    return Future(submit(op, stream), stream.record())


# %% id=order-predict
order = Prediction(
    "`p = round_robin(2)`, `first = begin(job(STEPS), p)`, `second = begin(job(STEPS), p)`, then "
    "`await first`, and then `await second`. There is no `gather`. Do the two hunts overlap?",
    yes="yes: both are under way before the first `await`",
    no="no: without `gather`, the second job starts when the first `await` is over",
)
order

# %% id=order-commit
order.commit(...)

# %% id=order-run
p = round_robin(2)


async def two_in_a_row():
    first = begin(job(STEPS), p)
    second = begin(job(STEPS), p)
    return [await first, await second]


await two_in_a_row()  # warm-up
with agt.record() as in_a_row:
    await two_in_a_row()
in_a_row.plot(title="await first, then await second", lanes=("host", "streams"))

# %% id=order-reveal
a, b = in_a_row.find("hunt")
shared_us = min(a.end, b.end) - max(a.start, b.start)
answer = "They do not, so far. Solve the exercises above, all of them, and come back to this."
if shared_us > 0:
    answer = order.reveal("yes", f"For {shared_us:.0f} µs both hunts are under way.")
answer

# %% [markdown] id=order-read
# Your `begin` is *eager*: it submits when you call it, and `await` only waits. An operation of `agt` is lazy to the end: its first `await` submits it. Here is the same program, written with theirs:


# %% id=order-theirs
async def two_of_theirs():
    first = their_job(STEPS).schedule()
    second = their_job(STEPS).schedule()
    return [await first, await second]


with agt.record() as lazily:
    await two_of_theirs()
agt.compare_timelines(
    [in_a_row, lazily],
    ["yours: eager", "theirs: lazy"],
    lanes=("host", "streams"),
    lesson="Below, the second job starts when the first one is over.",
)

# %% id=order-theirs-check tags=asserts
a, b = lazily.find("hunt")
assert min(a.end, b.end) <= max(a.start, b.start)

# %% [markdown] id=order-both
# Theirs run one after the other, and that is why there is `agt.spawn`, for those who want to start early. Both designs are sound, and each has a trap. With yours, work can start that
# nobody ever waits for. With theirs, somebody can wait for work that nobody has started.

# %% [markdown] id=summit
# ## Your machine
#
# Here is the picture from the top of the page again, and below it, the same four jobs on what you have written.


# %% id=summit-run
async def four_of_mine(next_stream):
    futures = [begin(job(STEPS), next_stream) for _ in range(4)]
    return [(await future).numpy() for future in futures]


mine_next = round_robin(4)
await four_of_mine(mine_next)  # warm-up
with agt.record() as mine:
    found = await four_of_mine(mine_next)

assert all((places == in_numpy(STEPS)).all() for places in found)
print(f"theirs {theirs.metrics().makespan:.0f} µs, yours {mine.metrics().makespan:.0f} µs")
agt.compare_timelines([theirs, mine], ["asyncgpu_tutor", "yours"], lanes=("host", "streams"))

# %% [markdown] id=count-text
# Can you tell the two apart? (If nothing overlaps in yours, an exercise above is still open.) And how much code is it? We count everything, down to `value`:


# %% id=count
def lines(*functions):
    sources = [inspect.getsource(function) for function in functions]
    return sum(1 for text in sources for line in text.splitlines() if line.strip())


machine = [value, and_then, chain, zip_ops, shared, round_robin, submit, run, begin]
total = lines(*machine, Future.__init__, Future.__await__, h2d, hunt, d2h) + 1  # class Future:
print(total, "lines")

# %% id=reveal-lines
size.reveal(
    "small" if total < 30 else "page" if total <= 120 else "module" if total <= 500 else "library",
    f"{total} lines, with the three operations and their docstrings.",
)

# %% [markdown] id=cupy-text
# ## Under another engine: CuPy
#
# Which of your functions know that they run on this library? Let Python look for the word `agt` in them:

# %% id=who-knows
parts = [*machine, Future.__await__, h2d, hunt, d2h]
print([part.__name__ for part in parts if "agt" in inspect.getsource(part)])

# %% [markdown] id=cupy-how
# Only the two at the edge: `submit`, which gets hold of a context, and `round_robin`, which makes streams. All others know that there *is* a context, and not which.
#
# So let us give them another one. [CuPy](https://cupy.dev) is NumPy for NVIDIA GPUs, and it has streams, events and raw kernels. Its
# streams have `record()` and `wait_event(event)` and its events have `done`, just like the ones here. We need a context
# with a stream in it, and the three operations in CuPy's words. Read it, even if you have no GPU:

# %% id=cupy-leaves
if not device.simulated:
    import cupy
    import cupyx

    cupy_kernel = cupy.RawKernel(SOURCE, "hunt")
    cupy_trails = cupy.asarray(slips)
    cupy.cuda.Device().synchronize()


class CupyContext:
    def __init__(self, stream):
        self.stream = stream


def cupy_h2d(host):
    def enqueue(context):
        with context.stream:
            array = cupy.empty(host.shape, host.dtype)
            array.set(host, stream=context.stream)
        return array

    return enqueue


def cupy_hunt(steps, places):
    def enqueue(context):
        with context.stream:
            cupy_kernel((places.size // 64,), (64,), (np.uint32(steps), cupy_trails, places))
        return places

    return enqueue


def cupy_d2h(array):
    def enqueue(context):
        host = cupyx.empty_pinned(array.shape, array.dtype)
        array.get(stream=context.stream, out=host, blocking=False)
        return host  # somebody has to hold it until the copy is over: here the future does

    return enqueue


def cupy_begin(op, stream):
    return Future(op(CupyContext(stream)), stream.record())


# %% [markdown] id=cupy-run-text
# `cupy_begin` is what `submit` and `begin` are for ours: call the operation with a context, and record an event behind it. Now the same `chain`, the same `and_then`,
# the same `Future`:


# %% id=cupy-run
async def four_of_cupy():
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    cupy_job = chain(cupy_h2d(start), lambda places: cupy_hunt(STEPS, places), cupy_d2h)
    futures = [cupy_begin(cupy_job, stream) for stream in streams]
    return [await future for future in futures]


if device.simulated:
    print("There is no NVIDIA GPU here, so this cell only says what it would do: the four jobs, on CuPy.")
elif seen[-1] != "busy":
    print("Your `and_then` still waits for each link. Solve its exercise, and come back to this.")
else:
    found = await four_of_cupy()
    assert all((places == in_numpy(STEPS)).all() for places in found)
    print("Four jobs on CuPy's streams, all right:", found[0][:5])

# %% [markdown] id=no-copy-text
# ### Arrays that change hands
#
# Do you have to choose between CuPy and `agt`? No. An array on a GPU is an address, a shape and a dtype. Two libraries that agree on how to write
# these down can use the same memory. NumPy has done so for years, so you can watch it on any machine. `Parcel` has no numbers in it, only a note that says where they are:


# %% id=parcel
numbers = np.arange(5)


class Parcel:
    __array_interface__ = numbers.__array_interface__


same = np.asarray(Parcel())
also = np.from_dlpack(numbers)
same[0] = 99
print(numbers, also)
assert numbers[0] == also[0] == 99

# %% [markdown] id=parcel-read
# We wrote to `same`, and `numbers` changed, and so did `also`: three names, one memory. On GPUs the note is called `__cuda_array_interface__`, and `from_dlpack` is
# called the same. `agt` knows both, in both directions:
#
# | | |
# |---|---|
# | `agt.asarray(theirs)` | an array of CuPy, PyTorch or Numba comes **in** |
# | `cupy.asarray(ours)`, `cupy.from_dlpack(ours)` | a `DeviceArray` goes **out** |
#
# Not a byte is copied. But *order* does not always come along. The interface wants whoever takes an array to wait for its writer. `agt.asarray` does not, on purpose: nobody has chosen the stream yet that would have to wait. So let CuPy finish
# before you hand an array over (`synchronize()`), or run both on one stream: `op.sync_on(cupy_stream)` takes CuPy's own.

# %% id=no-copy-run
if device.simulated:
    print("There is no NVIDIA GPU here, and so no memory that CuPy could look into.")
else:
    theirs_in = cupy.arange(256, dtype=cupy.uint32)
    cupy.cuda.get_current_stream().synchronize()
    ours = agt.asarray(theirs_in)
    op = their_hunt(STEPS, trails, ours.borrow().partition(64))
    op.sync_on(cupy.cuda.Stream(non_blocking=True))
    out, by_dlpack = cupy.asarray(ours), cupy.from_dlpack(ours)
    for array in (theirs_in, out, by_dlpack):
        print(hex(array.data.ptr), array[:5])
        assert array.data.ptr == theirs_in.data.ptr
        assert (array.get() == in_numpy(STEPS)).all()

# %% [markdown] id=adds
# ## What we left out
#
# If it fits on a page, why is the library so much larger? Because it has to catch people's mistakes. Let us make two of them, first to your machine, then to theirs.
#
# **Forget to run a job.**

# %% id=forgotten
with agt.record() as trace:
    job(STEPS)
print(f"yours:  {len(trace.device_spans)} pieces of work, and no word about it")

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    their_job(STEPS)
print("theirs:", str(caught[-1].message).partition(":")[0])
assert issubclass(caught[-1].category, agt.errors.NeverRunWarning)

# %% [markdown] id=moved-text
# **Use an array twice.** `hunt` writes to the array that it is given. Here two hunts get the same explorers, and each assumes that they stand at the start.

# %% id=moved
explorers = run(h2d(start), stream)
run(hunt(STEPS, explorers), stream)
answer = run(chain(hunt(STEPS, explorers), d2h), stream)
print("yours:  the right places?", bool((answer.numpy() == in_numpy(STEPS)).all()))

explorers = agt.h2d(start, "explorers").sync()
their_hunt(STEPS, trails, explorers.partition(64)).sync()
try:
    their_hunt(STEPS, trails, explorers.partition(64))
except agt.errors.UseAfterMoveError as error:
    print("theirs:", str(error).partition(".")[0])
else:
    raise AssertionError("the second use was not refused")
assert (answer.numpy() != in_numpy(STEPS)).any()

# %% [markdown] id=adds-table
# Twice yours was content, and wrong. This is what most of a library is made of:
#
# | what it adds | what it saves you from |
# |---|---|
# | **never silent**: an operation that nobody runs warns, and names its line | the job that you forgot |
# | **ownership**: an array is moved, shared or borrowed | two writers, each sure to be alone |
# | **alive until done**: whatever is touched is kept until the work is over | memory that is given away while a copy still writes to it |
#
# The last one you have had all along: the context keeps what its verbs touch. CuPy's pool takes care of the device's arrays: memory that you let go is given to later work of the same stream. The pinned array of `cupy_d2h` is your own affair: drop the future
# that holds it too early, and the copy writes to memory that is somebody else's by then.

# %% [markdown] id=capture-text
# ### And one thing that you have already
#
# What about the graphs of [chapter 9](09_cuda_graphs.ipynb)? Your functions know that there is a context, and not which. So what if it is one that enqueues nothing,
# and writes down what it is asked for?

# %% id=capture
explorers = run(h2d(start), stream)
twice_around = zip_ops(hunt(STEPS, explorers), hunt(STEPS, explorers))
graph = agt.with_context(lambda context: agt.value(twice_around(context))).graph_on(stream)
print(graph)

# %% [markdown] id=capture-read
# Two nodes, for two hunts. (None? Then your `zip_ops` still cheats.) You have not written a line for CUDA graphs, and yet these operations can be captured in one. (Your `h2d` cannot, because it allocates its array, and a graph allocates nothing.) You left the
# blank open, so whoever fills it in decides what "run" means.

# %% [markdown] id=challenge
# ## The last challenge
#
# `zip_ops` gave every operation the same context. What if each got one of its *own*?
#
# `context.fork()` is a context like this one, on another stream. But then the streams know nothing of each other. The arms must not start before what came *before*
# the overlap, and what comes *after* must not start before all arms are done. This is called a fork and a join, and two verbs that you know are enough for both: `record` and `wait_event`.
#
# ```text
#   context    ──── before ──┬───────────────────────────┬── after ────
#   arm 0                    └── wait ── op 0 ── record ─┤
#   arm 1                    └── wait ── op 1 ── record ─┘
# ```


# %% [markdown] id=exercise-overlap
# ### Exercise: overlap
#
# Write `overlap(*ops)`, and mind that Python never waits. The check also takes the time of four short jobs, and `progress()` keeps your best. The course's own answer takes 241 µs on its simulated H200. Can you do with
# fewer calls? Below the check, four hunts show how close you come to `agt.overlap`.


# %% id=10-overlap starter
def overlap(*ops):
    return zip_ops(*ops)  # one after the other


# %% id=10-overlap solution
def overlap(*ops):
    def enqueue(context):
        begun = context.stream.record()
        results, ends = [], []
        for op in ops:
            arm = context.fork()
            arm.stream.wait_event(begun)
            results.append(op(arm))
            ends.append(arm.stream.record())
        for end in ends:
            context.stream.wait_event(end)
        return tuple(results)

    return enqueue

# %% id=10-overlap hints
# Start with the fork. One event, recorded on `context.stream` before the loop; in the loop, `arm = context.fork()`, and the arm's stream waits for that event.
#
# Then run `op(arm)`, and record an event on the arm's stream. Keep both the result and the event in lists.
#
# The join comes *after* the loop: `for end in ends: context.stream.wait_event(end)`. Then return the results as a tuple.

# %% id=10-overlap explanation
# Each event is waited for by a stream, never by Python. Every event is a call, and a call costs Python some time: does every arm need a stream of its own, or could one of them stay at home?

# %% id=10-overlap-check
check("10-overlap", overlap)

# %% id=challenge-score
def makespan(run_it):
    run_it()  # warm-up
    with agt.record() as trace:
        run_it()
    return trace.metrics().makespan, trace


one_by_one, _ = makespan(lambda: run(zip_ops(*[job(STEPS) for _ in range(4)]), stream))
best, best_trace = makespan(lambda: agt.overlap(*[their_job(STEPS) for _ in range(4)]).sync_on(stream))
yours, your_trace = makespan(lambda: run(overlap(*[job(STEPS) for _ in range(4)]), stream))
points = 100 * (one_by_one - yours) / (one_by_one - best)

print(f"one by one {one_by_one:4.0f} µs")
print(f"agt        {best:4.0f} µs")
print(f"yours      {yours:4.0f} µs: {max(0, points):.0f} points of 100")
agt.compare_timelines([best_trace, your_trace], ["agt.overlap", "yours"], lanes=("host", "streams"))

# %% [markdown] id=key-points
# ## Key points
#
# - An operation is a function that has not been called yet. Its argument is the place where it will run.
# - `and_then` is three calls, `zip` a tuple. Both pass one context on, so a chain stays on one stream.
# - Functions in a chain run while the work is enqueued. They get handles, and not numbers.
# - To share is to remember a result *and an event*.
# - A policy is a function that names a stream. A future is a loop with a `yield` in it.
# - Combinators do not know which engine is below. That is why they can move to CuPy unchanged.
# - Arrays change hands without a copy, by `__cuda_array_interface__` and DLPack. See to the order yourself.
# - What makes a library large is not what it does. It is what it refuses to let you do by mistake.
#
# You could have built this. In fact, you just did. The words that others use for these things are in the [glossary](../docs/glossary.md).
#
# **Next:** in [11_the_gpu_decides](11_the_gpu_decides.ipynb) Python is not asked at all.

# %% id=score
score(size, when, twice, order)

# %% id=progress
progress()
