"""Source of notebooks/10_build_it_yourself.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Build it yourself
#
# For nine chapters you've written things like `agt.h2d(x).and_then(...)`, and streams filled up as if by themselves. **How does that work, and could you have written it?**
#
# You're about to. On top of three operations and a few helpers, you write `and_then`, `zip`, a scheduling policy and the future you `await`. Then your machine runs the library's program, and you try to tell the two pictures apart. Afterwards you can say in one sentence what a lazy operation *is*.
#
# | | |
# |---|---|
# | Time | an hour, and 25 minutes more for the encores |
# | You need | [04_combinators](04_combinators.ipynb), [05_scheduling](05_scheduling.ipynb) and [06_await](06_await.ipynb), but no GPU |

# %% id=setup
import ast
import asyncio
import inspect
import linecache
import random
import warnings
from pathlib import Path

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, solution, solved,
)

device = agt.use("auto")
stream = agt.create_stream()
device

# %% [markdown] id=question
# ## How does it do that?
#
# Here's the program that we'll rebuild. It's four treasure hunts. Each one sends 256 explorers to the device, has each of them follow a trail of paper slips ("go to place 1207", "go to place 33", ...), and brings them back.

# %% id=kernel
SOURCE = r"""
extern "C" __global__
void hunt(unsigned int steps, const unsigned int* next, unsigned int* place) {
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
        agt.h2d(start, "places")
        .and_then(
            lambda places: their_hunt(steps, trails, places.partition(64)).output()
        )
        .to_host()
        .named("job")
    )


async def four_of_theirs(steps):
    return await asyncio.gather(*[their_job(steps).schedule() for _ in range(4)])


await four_of_theirs(STEPS)  # warm-up
with agt.record() as theirs:
    found = await four_of_theirs(STEPS)

theirs.plot(
    title="Four jobs, four streams, one event loop",
    lanes=("streams",),
    lesson="Four jobs on four streams, and nothing in the program says which stream.",
)

# %% id=goal-check tags=asserts
assert len(theirs.find("hunt")) == 4
assert all((places == in_numpy(STEPS)).all() for places in found)
if device.simulated:
    assert len(theirs.streams) == 4
    assert theirs.metrics().overlap > 0

# %% [markdown] id=goal-read
# A hunt takes long because each step waits for memory, and it leaves room for the others because it has only four blocks.
#
# How many lines of Python will your own machine for this picture have, counting those that we give you? Write your guess down somewhere, preferably in ink. We'll count at the end.

# %% [markdown] id=idea
# ## A job that waits for its stream
#
# Start with the most ordinary code there is, which does the work right now:
#
# ```python
# array = copy_to_the_device(host, stream)
# ```
#
# Now suppose that you don't want to choose the stream yet. You know everything else, and the stream is the only blank. Python has a word for code with a blank in it: a **function**.
#
# ```python
# def operation(stream):
#     return copy_to_the_device(host, stream)
# ```
#
# That's the whole idea of this page, so it gets a box:
#
# > **An operation is a function that nobody has called yet. Its argument is the place where it will run.**
#
# When you call it, it enqueues the work. Until then it's only a description that you can pass around for free. That's all there is to *laziness*.
#
# The place is a **context**: a stream, with verbs that put work on it. In [chapter 3](03_lazy_operations.ipynb), `agt.with_context` handed you one. Here are three operations:


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
# You call the outer function to say *what* to do. It returns the inner one, uncalled, whose argument will say *where*. So `h2d(start)` is an operation.
#
# Who calls it, and with which context? `agt.with_context(f)` calls `f` with a context when you submit it, and `async_on` submits it to a stream and returns at once.


# %% id=submit
def submit(op, stream):
    """Enqueue the work of `op` on this stream, without waiting; returns its result."""

    def enqueue(context):
        result = op(context)
        return agt.value(result)  # an operation, as the library wants, with its result

    return agt.with_context(enqueue).named("job").async_on(stream)


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

# %% id=submit-check tags=asserts
assert [span.name for span in trace.device_spans] == ["h2d"]

# %% [markdown] id=submit-read
# Look at the last line: your operation is a plain Python function, and nothing else.

# %% [markdown] id=value
# ## The smallest one, and the most important one
#
# The smallest operation does nothing on the device. It takes the context, ignores it, and has its answer ready:


# %% id=value-code
def value(x):
    return lambda context: x


assert run(value(42), stream) == 42

# %% [markdown] id=and-then-text
# It looks about as useful as the number 0, but before long a spy will travel on it.
#
# Now the important one. You have `h2d(start)`, which will give an array, and you have `hunt(steps, array)`, which *wants* an array. How do you join them when there is no array yet? Let's write down what each part takes, and what it returns:
#
# ```text
#   op                    context  →  array
#   f                     array    →  another operation
#   and_then(op, f)       context  →  what that other operation returns
# ```
#
# The last row says that `and_then` has to return something that takes a context. And as soon as that something has a context, it can run `op` with it. Then there *is* an array.

# %% [markdown] id=exercise-and-then
# ### Exercise: and_then
#
# The version below gives the right numbers, but it cheats: it runs `op` straight away, on a stream that nobody chose, and waits for it. Make it lazy. Nothing may happen before the context comes, and then everything happens in that one context.


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
# Use the shape of `h2d` above: define an inner function `enqueue(context)`, and `return enqueue`.
#
# There are three calls in `enqueue`: one of `op`, one of `f`, and one of what `f` returns. Two of them take the context.
#
# `result = op(context)`, then `follow = f(result)`, then `return follow(context)`.

# %% id=10-and-then explanation
# It's three calls: `f(op(context))(context)`. The context goes in twice, and it's the same one both times. That's why a chain stays on one stream: it has never heard of another.

# %% id=10-and-then-check
check("10-and-then", and_then)

# %% [markdown] id=chain-text
# Now a whole job is one expression. `chain` only saves us some brackets. From here on, `solved` takes your answer if the check has accepted it, and otherwise the course's.


# %% id=chain
and_then = solved("10-and-then", and_then)


def chain(op, *functions):
    """op, and then the first function, and then the second, ..."""
    for f in functions:
        op = and_then(op, f)
    return op


def job(steps):
    return chain(h2d(start), lambda places: hunt(steps, places), d2h)


answer = run(job(STEPS), stream)
print("found:", answer.numpy()[:5], " NumPy:", in_numpy(STEPS)[:5])
assert (answer.numpy() == in_numpy(STEPS)).all()


# %% [markdown] id=when-text
# ### A question of timing
#
# Let's describe three walks. In each, the explorers hunt for `n` steps, and then for another `n`:


# %% id=walks
def leg(steps):
    """For a chain: a function that gets the explorers' array and makes a hunt of it."""
    return lambda places: hunt(steps, places)


walks = []
for n in (1, 2, 3):
    walks.append(chain(h2d(start), leg(n), lambda places: hunt(n, places), d2h))

# %% id=10-walked guess
# How many steps do the explorers of the first, the second and the third walk take in all? (Type three numbers, such as `7 8 9`.)

# %% id=10-walked reveal
reached = [run(walk, stream).numpy() for walk in walks]
steps = [next(n for n in range(20) if (places == in_numpy(n)).all()) for places in reached]
reveal("10-walked", steps)

# %% id=10-walked told truth="4 5 6"
# You called `leg(n)` in the loop. The last function is called when its walk runs, and by then `n` is 3.

# %% [markdown] id=spy-text
# ### A spy
#
# Python calls a chain's functions when you run it. But where is the device by then? Let's smuggle in a spy, who gets the explorers' array, looks around, and hands the array on with `value`.


# %% id=spy
def spy(places):
    print("the spy is here, and the stream is", "done" if stream.done else "still busy")
    return value(places)


answer = run(chain(h2d(start), lambda places: hunt(STEPS, places), spy, d2h), stream)

# %% [markdown] id=when-read
# Python has enqueued everything long before the device has done it. So `spy` gets a handle. It can decide what comes next by the array's *size*, but not by its *numbers*, which don't exist yet. `agt` has the same rule and calls it "handles, not data". You didn't have to enforce it: `op(context)` returns as soon as its work is enqueued, so a handle is all that your `and_then` has for `f`. Here are its calls, in their order:

# %% id=nested tags=helpers
from IPython.display import HTML

HTML("""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 236" width="720" role="img" fill="none"
stroke-width="1.6" style="max-width:100%;font:13px sans-serif" aria-label="A job as nested functions. The
outer
and_then holds the inner one and d2h, and the inner one holds h2d and hunt. The context comes in at the top
and
goes down to all three, from left to right. In the inner one, the first call is op(context), which returns an
array, the second is f(array), which makes the hunt, and the third hands the context to the hunt. In the
outer
one, the first call is all of the inner one. It returns the array, the second makes d2h of it, and the third
returns
an array on the host.">
<defs><marker id="down" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">
<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>
<g stroke="currentColor"><rect x="10" y="42" width="664" height="186" rx="8"/>
<rect x="26" y="78" width="410" height="134" rx="8"/></g>
<path fill="#9AD5F7" d="M46 138h100v38h-100z"/><path fill="#E69F00" d="M316 138h100v38h-100z"/>
<path fill="#0BA47A" d="M558 138h100v38h-100z"/>
<g stroke="currentColor"><g stroke-dasharray="5 3"><path d="M300 4v58M231 62h377M231 62v36M96 98h270"/>
<g marker-end="url(#down)"><path d="M96 98v38"/><path d="M366 98v38"/><path d="M608 62v74"/></g></g>
<g marker-end="url(#down)"><path d="M148 157h165"/><path d="M418 157h137"/><path d="M660 157h52"/></g></g>
<g text-anchor="middle"><g fill="#222"><text x="96" y="162">h2d(start)</text>
<text x="366" y="162">hunt(…)</text>
<text x="608" y="162">d2h(array)</text></g><g fill="currentColor"><text x="230" y="150">array</text>
<text x="486" y="150">array</text><text x="698" y="134">host</text><text x="698" y="148">array</text>
<g font-size="12"><text x="230" y="174">② f makes the hunt</text>
<text x="496" y="174">② f makes d2h</text></g></g></g>
<g fill="currentColor"><text x="308" y="20">the context, and with it the stream</text>
<text x="22" y="60">and_then</text><text x="38" y="204">and_then</text><g font-size="12">
<text x="104" y="122">① op(context)</text><text x="256" y="122">③ with the context</text>
<text x="239" y="76">①</text><text x="492" y="122">③ with the context</text></g></g></svg>""")

# %% [markdown] id=zip-text
# ## Several results
#
# A chain passes one result along. Sometimes you want two, or ten. `zip` makes one operation out of several, and yields a tuple of their results.

# %% [markdown] id=exercise-zip
# ### Exercise: zip
#
# This version also gives the right answer too early. Make it lazy. It should work for any number of operations, even for none. (We call it `zip_ops`, because Python's own `zip` may still come in handy.)


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
# Give every operation the *same* context, and collect what they return.
#
# In `enqueue(context)`: `return tuple(op(context) for op in ops)`.

# %% id=10-zip explanation
# One context means one stream, so the operations stand in one queue, in the order in which you gave them. If you've ever wondered why `agt.zip` overlaps nothing, you've just written the line that explains it.

# %% id=10-zip-check
check("10-zip", zip_ops)

# %% [markdown] id=zipped-text
# Now two jobs are one operation, and a chain can go on with both results:

# %% id=zipped
zip_ops = solved("10-zip", zip_ops)
two = zip_ops(chain(h2d(start), leg(STEPS)), chain(h2d(start), leg(STEPS)))
with agt.record() as trace:
    found = run(chain(two, lambda both: zip_ops(*map(d2h, both))), stream)
print([span.name for span in trace.device_spans])

# %% id=zipped-check tags=asserts
assert all((places.numpy() == in_numpy(STEPS)).all() for places in found)

# %% [markdown] id=policy-text
# ## Whose turn is it?
#
# So far we've named the stream each time. A **policy** does it for us: whenever you ask, it names the next one. Here that's a function, of course:
#
# ```python
# next_stream = round_robin(4)
# next_stream()     # the first of four streams
# next_stream()     # the second
# ```

# %% [markdown] id=exercise-round-robin
# ### Exercise: round robin
#
# Write `round_robin(size)`. It makes `size` streams with `agt.create_stream()` and returns a function. Each call of *that* function names the next stream, and after the last stream it starts again with the first. Two policies never share a stream.


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
# Make a list of `size` streams first, in `round_robin` itself. The function you return makes none.
#
# That function has to remember whose turn it is. The order of the list can do that for you: a stream that has had its turn goes to the back of the queue.
#
# In the inner function: `streams.append(streams.pop(0))`, then `return streams[-1]`.

# %% id=10-round-robin explanation
# The function gets no argument, so it can't know what it's placing. `agt.StreamPoolRoundRobin` doesn't know either.

# %% id=10-round-robin-check
check("10-round-robin", round_robin)

# %% [markdown] id=future-text
# ## Waiting without standing in the way
#
# `run` waits with `stream.synchronize()`, and while it waits, Python can do nothing else. We want `await`.
#
# What does `await thing` do? It calls `thing.__await__()`, which is a generator, a function with `yield` in it. Every bare `yield` tells the event loop "not yet, let the others have a turn and come back to me". Whatever the generator returns in the end is the answer. Here's one at work:


# %% id=await-demo
class Patience:
    def __await__(self):
        for i in range(3):
            print("not yet", i)
            yield
        return "now"


async def wait():
    return await Patience()


async def neighbour():
    for i in range(3):
        print("   the neighbour's turn", i)
        await asyncio.sleep(0)


answer, _ = await asyncio.gather(wait(), neighbour())
print(answer)
assert answer == "now"

# %% [markdown] id=await-read
# The two take turns, and neither knows about the other. For a GPU, all we have to do is swap the counter for an **event**, the mark in a stream's queue that you know from [chapter 2](02_streams_and_events.ipynb). `event.done` says whether the device has passed it, and it never waits.

# %% [markdown] id=exercise-future
# ### Exercise: future
#
# Complete the class. `await Future(result, event)` returns `result` as soon as `event` is done, and gives the event loop a turn whenever it isn't. The version below blocks, so the neighbours get no turn. (Python never reaches its `yield`. It's there because only a function with a `yield` is a generator.)


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
# - self.event.synchronize()  # blocks everybody
# - if False:
# + while not self.event.done:


# %% id=10-future hints
# Compare it with `Patience` above. What would you put instead of `for i in range(3)`?
#
# As long as the event isn't done, `yield`. Then return the result.
#
# `while not self.event.done:`, and in it `yield`; after the loop `return self.result`.

# %% id=10-future explanation
# Two lines, and a GPU takes part in an event loop. Looking again and again is called *polling*. It reacts quickly, and it keeps one processor core busy. `agt` polls for a moment, and then a helper looks now and then, and wakes the task: `device.watch(event, wake)`.

# %% id=10-future-check
check("10-future", Future)

# %% [markdown] id=begin-text
# Now put the policy, the submission and the future together. (As before, the course's answers stand in for yours where an exercise is still open.)


# %% id=begin
round_robin = solved("10-round-robin", round_robin)
Future = solved("10-future", Future)


def begin(op, next_stream):
    """Submit to the next stream; what comes back can be awaited."""
    stream = next_stream()
    return Future(submit(op, stream), stream.record())


# %% [markdown] id=summit
# ## Your machine
#
# It's time. Here are the four jobs from the top of the page, with hunts half as long: once with the library, and once on the machine that you've written. (Yours submits with the library's `async_on`, which marks the end of each job with an event. Then your `begin` marks it once more.) A coin decides which is A.


# %% id=summit-run
async def four_of_mine(next_stream, steps):
    futures = [begin(job(steps), next_stream) for _ in range(4)]
    return [(await future).numpy() for future in futures]


mine_next = round_robin(4)
await four_of_mine(mine_next, STEPS // 2)  # warm-up
with agt.record() as mine:
    found = await four_of_mine(mine_next, STEPS // 2)
with agt.record() as theirs:
    await four_of_theirs(STEPS // 2)

assert all((places == in_numpy(STEPS // 2)).all() for places in found)
pair = random.sample([mine, theirs], 2)
agt.compare_timelines(
    pair,
    ["A", "B"],
    lanes=("streams",),
    lesson="The same four jobs, two machines. Look closely: who is who?",
)

# %% id=which-seam tags=helpers
def seam(trace):
    """From the end of the first job to the second one's copy, with a lane of the events between."""
    last, following = [span for span in trace if span.kind == "call"][3:5]
    record = trace.find("record")[:1]
    free = (record or [following])[0].start  # until then, the library is busy with its own event
    events = [(last.end, free, "library"), *((span.start, span.end, "yours") for span in record)]
    return trace.with_lane("event", events).between(last.start, trace.find("h2d")[1].end)

# %% id=10-which guess
# Which one is yours? Both pictures have one scale, so compare how far apart the jobs begin.
#
# - `A`: the upper one
# - `B`: the lower one

# %% id=10-which reveal
us = [trace.metrics().makespan for trace in (mine, theirs)]
picture = agt.compare_timelines(
    [seam(mine), seam(theirs)], ["yours: some µs between two jobs", "the library's"]
)
reveal("10-which", "AB"[pair.index(mine)], picture, yours=us[0], theirs=us[1])

# %% id=10-which lesson
# The library records an event of its own, which looks like a gap. Then you record one more.

# %% id=10-which told truth=*
# Yours takes {yours:.0f} µs, and the library's {theirs:.0f}. Yours records one more event for each job, three times on the way to the last copy.

# %% id=which-check tags=asserts
if device.simulated:
    records = mine.find("record")
    assert (len(records), len(theirs.find("record"))) == (4, 0)
    calls = [span for span in theirs if span.kind == "call"]
    assert calls[4].start - calls[3].end > records[0].duration  # an event of the library's
    late = [trace.find("h2d")[-1].start for trace in (mine, theirs)]
    assert abs(late[0] - late[1] - 3 * records[0].duration) < 0.2
    assert abs(us[0] - us[1] - 3 * records[0].duration) < 0.2
    assert 4 < records[0].duration < 4.5
    assert round(us[0] - us[1]) in (12, 13)

# %% [markdown] id=which-read
# A small machine isn't a quick one. After each job, `begin` records an event for your `Future`. But the library's `async_on`, which you submit with, has just recorded one of its own. So you pay twice: on the simulated H200 that's 4 µs more a job, and three jobs come before your last.

# %% [markdown] id=count-text
# Now for the guess you wrote down. Here's your machine, from `h2d` to `Future`, and beside it what the library has for operations and their runs. Each line is a stroke:


# %% id=code-map tags=helpers
from IPython.display import HTML


def lines(text):
    return [line for line in text.splitlines() if line.strip()]


def kinds(text):
    """The kind of each line: "words" of a docstring or comment, a "raise", or other "code"."""
    found = ["words" if line.lstrip().startswith("#") else "code" for line in text.splitlines()]
    for node in ast.walk(ast.parse(text)):
        string = isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", 0), str)
        if string or isinstance(node, ast.Raise):
            for number in range(node.lineno - 1, node.end_lineno):
                found[number] = "words" if string else "raise"
    return [kind for kind, line in zip(found, text.splitlines(), strict=True) if line.strip()]


LOOKS = {
    "you": ("#E69F00", "you wrote"),
    "given": ("#56B4E9", "you were given"),
    "raise": ("#D0103A", "raises an error"),
    "words": ("#80808066", "explains"),
    "code": ("#808080", "other code"),
}


def code_map(own, library):
    """Draw each line, given as its kind and its text, as a stroke in columns of 160."""
    svg = '<text y="16">yours</text><text x="56" y="16">the library</text>'
    for i, (kind, (colour, words)) in enumerate(LOOKS.items()):
        strokes = [
            f"M{left + n // 160 * 26 + 0.2 * (len(line) - len(line.lstrip())):.1f} "
            f"{30 + n % 160 * 1.5}h{0.2 * len(line.strip()):.1f}"
            for left, found in ((0, own), (56, library))
            for n, (its, line) in enumerate(found)
            if its == kind
        ]
        svg += f'<path stroke="{colour}" d="' + "".join(strokes) + '"/>'
        svg += f'<path stroke="{colour}" stroke-width="5" d="M{144 * i} 284h16"/>'
        svg += f'<text x="{144 * i + 22}" y="288">{words}: {len(strokes):,}</text>'
    told = f"{len(own)} lines, a short column, beside {len(library):,}, in many long ones"
    return HTML(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 296" width="720" role="img" '
        f'fill="currentColor" style="max-width:100%;font:12px sans-serif" aria-label="{told}">'
        f"{svg}</svg>"
    )


# %% id=count
def source_of(function):
    try:
        return inspect.getsource(function)
    except OSError:  # an answer of the course, and not yours
        return ""


written = [and_then, zip_ops, round_robin, Future.__await__]
given = [h2d, hunt, d2h, value, submit, run, chain, begin, Future.__init__]
parts = written + given
missing = ", ".join(part.__qualname__ for part in written if not source_of(part))
wrote = lines("".join(map(source_of, written)))
handed = ["class Future:", *lines("".join(map(source_of, given)))]
own = [*(("you", line) for line in wrote), *(("given", line) for line in handed)]

folder = Path(agt.__file__).parent
files = [*folder.glob("ops/*.py"), *folder.glob("run/*.py")]
texts = [file.read_text(encoding="utf-8") for file in files]
library = [pair for text in texts for pair in zip(kinds(text), lines(text))]

print(f"your machine: {len(own)} lines" + f", {len(wrote)} of them yours" * bool(wrote))
if missing:
    print(f"              (still open, and not counted: {missing})")
print(f"the library:  {len(library):,} lines")
code_map(own, library)

# %% id=count-check tags=asserts
counts = {kind: sum(k == kind for k, _ in library) for kind in LOOKS}
assert 0.21 < counts["words"] / len(library) < 0.25
assert counts["raise"] > 250

# %% [markdown] id=adds
# ## What we left out
#
# Why so many more? Almost a quarter is explanation, drawn faintly. Some of the rest does what your machine can't, such as graphs or several GPUs. But the first thing you'd miss are the red lines, which catch mistakes. Say you describe a job and forget to run it. Or you use an array twice: here two hunts get the same explorers, and each expects them at the start.

# %% id=moved
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    job(STEPS)  # forgotten
    print("yours: ", heard or "not a word")
    their_job(STEPS)  # forgotten, too
line = linecache.getline(heard[0].filename, heard[0].lineno).strip()
print("theirs:", str(heard[0].message).partition(":")[0], "->", line)

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

# %% id=moved-check tags=asserts
assert (answer.numpy() != in_numpy(STEPS)).any()

# %% [markdown] id=adds-table
# Your machine was content and wrong. The library had *moved* the explorers into the first hunt, so it could refuse the second.
#
# Your future is simpler, too. It spins: it keeps a processor core busy, where the library looks for 2 ms and then lets a helper look. And it never asks whether the device failed, so `await` may hand you a wrong result instead of an error.
#
# One thing you did get: the context keeps alive whatever its verbs touch until the work is over. Otherwise an array could be freed while a kernel still writes to it, and you'd find out on a Friday evening.

# %% [markdown] id=challenge
# ## The last challenge
#
# `zip_ops` gave every operation the same context, and so the same stream. What if each operation got a context of its *own*?
#
# `context.fork()` returns a context like this one, on another stream. But these streams know nothing about each other. So the arms have to wait for the work *before* the overlap, and the work *after* it for all the arms. That's a fork and a join, and two verbs of a stream are enough for both: `event = stream.record()` puts a mark behind everything enqueued there so far, and `other.wait_event(event)` makes what's enqueued on the other stream from now on wait for that mark, while Python goes on:
#
# ```text
#   context    ──── before ──┬───────────────────────────┬── after ────
#   arm 0                    └── wait ── op 0 ── record ─┤
#   arm 1                    └── wait ── op 1 ── record ─┘
# ```

# %% [markdown] id=exercise-overlap
# ### Exercise: overlap
#
# Write `overlap(*ops)`, and don't let Python wait. The check also times four short jobs, and `progress()` keeps your best. The course's own answer takes 241 µs on its simulated H200. With fewer calls, 229 is possible.


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
# Start with the fork. Record one event on `context.stream` before the loop. In the loop, `arm = context.fork()`, and the arm's stream waits for that event.
#
# Then run `op(arm)`, and record an event on the arm's stream. Keep the result in one list and the event in another.
#
# The join comes *after* the loop: `for end in ends: context.stream.wait_event(end)`. Then return the results as a tuple. (And for 229 µs, one of the arms may stay at home, on `context` itself.)

# %% id=10-overlap explanation
# Streams wait for each event, and Python never does. But every event is a call, and so is every wait for one. Python pays for each of them. One arm may stay at home, and then nobody has to tell it when to begin.

# %% id=10-overlap-check
check("10-overlap", overlap)

# %% id=challenge-score
overlap = solved("10-overlap", overlap)
traces = []
for together in (zip_ops, overlap):
    before, *arms, after = [run(h2d(start), stream) for _ in range(6)]
    last = hunt(STEPS // 2, after)
    hunts = [hunt(n * STEPS // 2, places) for n, places in enumerate(arms, 1)]
    middle = together(*hunts)
    with agt.record() as trace:
        run(chain(hunt(STEPS // 2, before), lambda _: middle, lambda _: last), stream)
    traces.append(trace)

agt.compare_timelines(
    traces,
    ["zip_ops", "overlap"],
    lanes=("streams",),
    lesson="Below, four fork when the first is over, and the last waits for them all.",
)

# %% id=challenge-score-check tags=asserts
first, *middle, last = sorted(traces[1].find("hunt"), key=lambda span: span.start)
if device.simulated:
    assert first.end <= min(span.start for span in middle)
    assert last.start >= max(span.end for span in middle)
    assert max(span.start for span in middle) - first.end < 10
    assert sorted(round(s.duration / first.duration) for s in middle) == [1, 2, 3, 4]
    assert traces[1].metrics().makespan < 0.6 * traces[0].metrics().makespan

# %% [markdown] id=key-points
# ## Key points
#
# - An operation is a function that nobody has called yet. Its argument is the place where it will run.
# - `and_then` makes three calls, and `zip` makes a tuple. Both pass on one context, so a chain stays on one stream.
# - A function in a chain runs while the work is being enqueued. So it gets handles instead of numbers.
# - To fork, each arm waits for one event. To join, whatever comes after waits for one event of each arm.
# - A policy is a function that names a stream, and a future is a loop with a `yield` in it.
# - What you'd miss first in a small library is somebody who notices your mistakes.
#
# You could have built this. In fact, you just did. The [glossary](../docs/glossary.md) tells you what others call these things.
#
# **Next:** in [11_the_gpu_decides](11_the_gpu_decides.ipynb) the GPU stops asking Python what to do. Or stay for the encores, in which two jobs share a result and your machine moves house.

# %% id=score
score("10")

# %% id=progress
progress("10")
# %% [markdown] id=shared-text
# ## Encore: one source, two readers
#
# *For the day when a result is too expensive to compute twice.*
#
# Sometimes two jobs need the same result. Here `source` has the explorers hunt, and two readers copy the result back. We zip the readers, and then *that* with itself:

# %% id=run-twice
with agt.record() as trace:
    source = chain(h2d(start), lambda places: hunt(STEPS, places))
    both = zip_ops(chain(source, d2h), chain(source, d2h))
    run(zip_ops(both, both), stream)
print([span.name for span in trace.device_spans])

# %% id=run-twice-check tags=asserts
assert len(trace.find("hunt")) == 4

# %% [markdown] id=shared-read
# That's four hunts: `both` is in there twice, and `source` is twice in `both`. Naming a thing once doesn't make it happen once: an operation is a function, and whoever uses it calls it.
#
# You know the cure from ordinary Python: remember the result. (`functools.cache(op)` won't do, because each run brings its own context.) But what you remember is only a handle. The second reader may be on *another* stream, when the work behind that handle is still under way on the first. So remember two things, the result and an event that marks how far the first stream has to get. The verbs are those of the last challenge, `record` and `wait_event`.

# %% [markdown] id=exercise-shared
# ### Exercise: shared
#
# Write `shared(op)`. It returns an operation that runs `op` the first time it's called, and never again. Later callers get the same result, whichever stream they use, and that stream waits until that result is really there.


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
# Make an empty list inside `shared` but outside `enqueue`. If it's still empty when `enqueue` is called, run `op`.
#
# Put a pair into the list: the result, and an event that you record right after `op(context)`.
#
# `if not known: known.append((op(context), context.stream.record()))`. Then `result, event = known[0]`, `context.stream.wait_event(event)`, `return result`.

# %% id=10-shared explanation
# In the course's answer, the first caller waits for its own event as well. That costs the device no time, because by the time it gets there, it has passed the mark. It costs Python one call, and saves an `if`.

# %% id=10-shared-check
check("10-shared", shared)

# %% id=run-shared
shared = solved("10-shared", shared)
source = shared(chain(h2d(start), lambda places: hunt(STEPS // 4, places)))
one, other = agt.create_stream(), agt.create_stream()
with agt.record() as trace:
    submit(source, one)
    submit(chain(source, d2h), other)
    agt.synchronize()

(copy,) = trace.find("d2h")
asked = max(span.end for span in trace if span.kind == "call")
trace.with_lane(
    "the event", [(min(asked, copy.start), copy.start, "holds stream 2 back")]
).plot(
    title="One source, two callers",
    lanes=("streams",),
    lesson="One hunt for both. Stream 2 is asked for its copy during the hunt, and the "
    "event holds it back.",
)

# %% id=run-shared-check tags=asserts
(h,) = trace.find("hunt")
assert h.stream != copy.stream
if device.simulated:
    assert h.id in copy.after
    assert h.start < asked < h.end - 50

# %% [markdown] id=misconception-memory
# > **Misconception: to share a result, it's enough to remember it.**
# >
# > - *What you see:* the right numbers, today, on this machine.
# > - *Why it's wrong:* the handle is there at once, but the data isn't. A reader on another stream may be quicker than the writer.
# > - *What helps:* the event. The simulated device doesn't do luck: take `wait_event` out of your `shared`, run the check again, and it names the race.

# %% [markdown] id=again-text
# Now a walk whose explorers are shared. We run it twice, on one stream:
#
# ```python
# source = shared(h2d(start))
# walk = chain(source, leg(1_000), d2h)
# first, second = run(walk, stream), run(walk, stream)
# ```

# %% id=10-again guess
# How many steps have the explorers in `second` taken? (Type a number.)

# %% id=10-again reveal
source = shared(h2d(start))
walk = chain(source, leg(1_000), d2h)
first, second = run(walk, stream).numpy(), run(walk, stream).numpy()
steps = [
    next(n for n in range(0, 5000, 1000) if (places == in_numpy(n)).all())
    for places in (first, second)
]
reveal("10-again", steps[1], first=steps[0])

# %% id=10-again told truth=2000
# In `first` they've taken {first}. There's only one array, and each hunt goes on from where it finds them. (On two streams they'd race, and the event of `shared` wouldn't help: it makes readers wait for the writer.)

# %% [markdown] id=order-text
# ## Encore: two jobs, two awaits
#
# *For the day when somebody asks when the work begins.*
#
# Let's run two jobs by your `begin`, and two of the library's.

# %% id=order-programs
p = round_robin(2)


async def two_of_mine():
    first = begin(job(STEPS), p)
    second = begin(job(STEPS), p)
    return [await first, await second]


async def two_of_theirs():
    first = their_job(STEPS).schedule()
    second = their_job(STEPS).schedule()
    return [await first, await second]


# %% id=order-helpers tags=helpers
def with_awaits(trace, since):
    """Add a bar for each `await`, up to the end of its job."""
    first, second = [span.end for span in trace.find("d2h")]
    return trace.with_lane(
        "await", [(since, first, f"1st, to {first:.0f} µs"), (first, second, "2nd")]
    )


def overlapping(trace):
    a, b = trace.find("hunt")
    return min(a.end, b.end) > max(a.start, b.start)

# %% id=10-order guess
# In which of the two programs do the two hunts overlap?
#
# - `both`: in both, because there are two jobs on two streams
# - `neither`: in neither, because without `gather` the second job starts when the first `await` is over
# - `mine`: only in `two_of_mine`
# - `theirs`: only in `two_of_theirs`

# %% id=10-order reveal
await two_of_mine()  # warm-up
with agt.record() as eagerly:
    await two_of_mine()
with agt.record() as lazily:
    await two_of_theirs()

both_begun = max(span.end for span in eagerly if span.kind == "call")
picture = agt.compare_timelines(
    [with_awaits(eagerly, both_begun), with_awaits(lazily, 0)], ["two of mine", "two of theirs"]
)
names = {(0, 0): "neither", (0, 1): "theirs", (1, 0): "mine", (1, 1): "both"}
reveal("10-order", names[overlapping(eagerly), overlapping(lazily)], picture)

# %% id=10-order lesson
# Two programs on one scale. The last lane has the two awaits: what does each wait for?

# %% id=10-order told truth=mine
# Your `begin` is *eager*: it submits the work when you call it, and `await` only waits. The library is lazy to the end. Nothing is submitted until somebody awaits it, and by the time you await the second job, the first is already back. `agt.spawn` is for people who want to start early.
#
# Both designs are sound, and each has a trap. With yours, work can start that nobody ever waits for. With theirs, work that you believe to be under way may not have begun.

# %% id=order-check tags=asserts
assert not overlapping(lazily)
if device.simulated:
    assert overlapping(eagerly)

# %% [markdown] id=who-knows-text
# ## Encore: other places to run
#
# *For the day when somebody says that your machine only works because the library helps.*
#
# Which of your functions know that they run on this library? Let Python look for the word `agt` in them:

# %% id=who-knows
print([part.__name__ for part in [*parts, shared] if "agt" in source_of(part)])

# %% [markdown] id=capture-text
# `submit` names it, because it gets hold of a context. So does `round_robin`, which makes streams, but it's listed only once you've written it. The three operations use what the context offers, `begin`, `run` and `shared` need a few verbs of its stream, and the rest only hands it on.
#
# ### A context that only takes notes
#
# So let's be devious, and give them a context that enqueues nothing. It only writes down what it's asked for. In [chapter 9](09_cuda_graphs.ipynb) the result was called a graph:

# %% id=capture
explorers = run(h2d(start), stream)
twice_around = zip_ops(hunt(STEPS, explorers), hunt(STEPS, explorers))
graph = agt.with_context(lambda context: agt.value(twice_around(context))).graph_on(
    stream
)
print(graph)

# %% [markdown] id=capture-read
# That's two nodes, for two hunts. You haven't written a line for CUDA graphs, and yet a graph can capture these operations. You left the place blank, so whoever fills it in decides what "run" means. Your `h2d` can't be captured, though, because it allocates its array, and our graphs allocate nothing.

# %% [markdown] id=toy-how
# ### A device in a list
#
# Now take the library away altogether. What does your machine need of a stream? That it takes work, and has `record` and `wait_event`. And of an event? That it has `done`. So here's a device whose streams are lists of functions. It has no clock. Time passes only while somebody looks at an event: then each stream does the piece of work at its front. If that piece is a wait for an event that hasn't come, the stream does nothing and tries again at the next look.


# %% id=toy
streams = []


class ListStream:
    def __init__(self):
        self.todo = []
        streams.append(self)

    def record(self):
        event = ListEvent()
        self.todo.append(event.reach)
        return event

    def wait_event(self, event):
        self.todo.append(lambda: event.reached)

    def step(self):
        # False: an event that hasn't come
        if self.todo and self.todo[0]() is not False:
            self.todo.pop(0)


class ListEvent:
    reached = False

    def reach(self):
        self.reached = True

    @property
    def done(self):
        for one in streams:
            one.step()
        return self.reached


class ListContext:
    def __init__(self, stream):
        self.stream = stream


def slow(line, work):
    """An operation: print a line and do the work, later."""

    def enqueue(context):
        array = np.zeros(3)

        def later():
            print(line)
            work(array)

        context.stream.todo.append(later)
        return array

    return enqueue


# %% [markdown] id=toy-read
# There's no GPU in it, no thread, and no `agt`. Two readers share a source, each on a stream of its own, and two of your futures are awaited at once:


# %% id=toy-run
def fill(array):
    array[:] = 42


def reader(name):
    return chain(
        source, lambda array: chain(slow(name, lambda _: None), lambda _: value(array))
    )


source = shared(slow("the source", fill))
futures = []
for name in ("   a reader", "   another reader"):
    context = ListContext(ListStream())
    result = reader(name)(context)
    futures.append(Future(result, context.stream.record()))

print("enqueued, and still", futures[0].result)


async def result_of(future):
    return await future


found = await asyncio.gather(*map(result_of, futures))
print(*found)
assert all((result == 42).all() for result in found)

# %% [markdown] id=toy-end
# The source ran once, both readers came after it, in an order that nobody promised, and nobody blocked. Your machine has moved house, and it hasn't even noticed.

# %% [markdown] id=cupy-how
# ### Somebody else's streams
#
# [CuPy](https://cupy.dev) is NumPy for NVIDIA GPUs, with streams, events and raw kernels. Its streams have `record()` and `wait_event(event)` and its events have `done`, just like ours. So all we need is a context with one of its streams in it, and the three operations in CuPy's words. They're in the folded cell below, and you can read them even if you have no GPU.

# %% id=cupy-leaves tags=helpers
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
# `cupy_begin` does for CuPy what `submit` and `begin` do for us: it calls the operation with a context, and records an event behind it. The rest is your own `chain`, your own `and_then` and your own `Future`, unchanged:


# %% id=cupy-run
async def four_of_cupy():
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    cupy_job = chain(cupy_h2d(start), lambda places: cupy_hunt(STEPS, places), cupy_d2h)
    futures = [cupy_begin(cupy_job, stream) for stream in streams]
    return [await future for future in futures]


if device.simulated:
    print("There's no NVIDIA GPU here. On one, your four jobs run on CuPy's streams.")
else:
    found = await four_of_cupy()
    assert all((places == in_numpy(STEPS)).all() for places in found)
    print("Four jobs on CuPy's streams, all right:", found[0][:5])

# %% [markdown] id=cupy-alive
# You're also your own librarian now. CuPy's pool looks after the device's arrays, because it gives freed memory only to later work of the same stream. But nobody looks after the pinned array in `cupy_d2h`. If you drop the future that holds it too early, the copy writes to memory that belongs to somebody else by then.
#
# You don't have to choose between the two libraries, either: [From CuPy](../docs/from_cupy.md) shows how arrays change hands without a copy.
