"""Source of notebooks/19_many_people.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Many people talk to it
#
# You have a GPU, a language model, and a line of people at the door. Each wants a text, nobody knows how long it gets, and all of them want their first word *now*. **Who gets the next token?**
#
# After this page you can serve many people at once with one model, say what the length of their texts has to do with it, and keep the GPU busy while Python looks at the results. In the second sitting you make sure that everybody is told their own words.
#
# | | |
# |---|---|
# | Time | 55 minutes, and 65 for the second sitting, on another day. The encore takes 10 more |
# | You need | asynchronous generators from [06_await](06_await.ipynb), and [18_token_by_token](18_token_by_token.ipynb). The second sitting needs events ([02](02_streams_and_events.ipynb)), pinned memory ([02b](02b_copies_and_chunks.ipynb)) and graphs ([09](09_cuda_graphs.ipynb)), the encore [11b](11b_without_a_barrier.ipynb). You do not need a GPU |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import asyncio

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, shown, solution, solved,
)
from asyncgpu_course.serving import (
    DeviceStep, SeatRoom, Visitor, clock_room, draw_waits, first_layers, people,
    recorded, recorded_row, token_of, with_seats,
)
from asyncgpu_tutor.data import load_language_model
from asyncgpu_tutor.language import Conversations, slots

device = agt.use("auto")
device

# %% [markdown] id=model
# ## A room with seats
#
# Our model has read this course and talks like it. A **step** of it gives one token, a word or a part of one. It's a row of short kernels, most of which take about as long for eight people as for one: on an H200 a step takes 78 µs for one, 97 for eight and 135 for thirty-two. An empty seat adds hardly anything. (In chapter 18 it was 69 for one, but nobody new sat down there, and Python handed out no tokens.) So give it *seats*: everybody who sits in one gets a token in each step, and their texts don't mix.
#
# A text begins with its prompt, which is read a token a step. Here's a prompt of two tokens, and a text whose `last` place is 7:
#
# ```text
# place        0     1     2      3     ...   7
# token        The   GPU   work   work  ...   work
# said by step       1     2      3     ...   7
# ```
#
# That's 7 steps. Step 1 says ` GPU`, which is in the prompt and no news, so its token is nobody's. From step 2 on it's the answer.
#
# The room with the seats is a `SeatRoom`, and each of the people is a `Visitor`. A scheduler is a loop, and this is one turn of it:
#
# ```text
# visitor = room.next()                       whoever waited longest leaves the line
#    |                                        (None if nobody waits)
# room.seat(slot, visitor)                    and sits down in the next step
#    |
# tokens = room.whole_step()                  a step: a token for each seat
#    |
# visitor.hear(tokens[slot], room.now())      they're told theirs; true if it was the last
# ```
#
# There are `room.count` seats, and `room.open` is true while somebody waits or will come. The last token of a text is negative, `-1 - token`. A free seat repeats its last one, so don't ask it. `hear` keeps to itself what's of the prompt, and puts the rest into `visitor.text`.
#
# Here's a scheduler. It serves people in **batches**: as many as there are seats sit down together, and the next batch comes when the last of them has left.

# %% id=batches
def batches(room):
    sits = [None] * room.count  # who sits where
    while room.open or any(sits):
        empty = not any(sits)
        for slot in range(room.count):
            if empty and (visitor := room.next()):
                sits[slot] = visitor
                room.seat(slot, visitor)
        tokens = room.whole_step()
        for slot, visitor in enumerate(sits):
            if visitor and visitor.hear(tokens[slot], room.now()):
                sits[slot] = None

# %% id=run tags=helpers
ROOMS = {}


def pair_of_steps(count, kind=DeviceStep):
    """Two steps of as many seats: made once, since everybody leaves in the end."""
    if (count, kind) not in ROOMS:
        seats, stream = slots(model, count).sync(), agt.create_stream()
        ROOMS[count, kind] = [
            kind(seats, stream, seats.newcomers(), agt.pinned(count, np.int32)) for _ in range(2)
        ]
    return ROOMS[count, kind]


def run(serve, visitors, count, kind=DeviceStep):
    """Serve them, and return them with the room and a trace."""
    steps = pair_of_steps(count, kind)
    with agt.record() as trace:
        room = SeatRoom(steps, count, visitors)
        serve(room)
    agt.synchronize()
    return visitors, room, trace


def texts(visitors):
    return [model.decode(visitor.text) for visitor in visitors]


def copies(trace, kind):
    return [span for span in trace if span.kind == kind]


def middle(trace):
    """Four whole steps."""
    return trace.between(copies(trace, "h2d")[4].start, copies(trace, "d2h")[7].end)


def pace(trace):
    """How long it takes from one of them to the next, in us."""
    begun = [span.start for span in copies(trace, "h2d")]
    return (begun[8] - begun[4]) / 4

# %% [markdown] id=manager-text
# To keep this page quick on a laptop, I took out two of the model's three layers. It has become a manager:

# %% id=manager
model = first_layers(load_language_model(), 1)
manager = Visitor(number=0, prompt=model.encode("The GPU"), last=7)
run(batches, [manager], 1)  # a room with one seat
print("The GPU" + model.decode(manager.text))

# %% [markdown] id=twelve
# What it says doesn't matter for its speed, so we may as well have it work on a dozen people. They come in together, and their texts take 7 steps or 2. With a single seat, a "batch" is one person, so they're served one after another. (`run`, from the folded cell, returns the people, the room and a trace.)

# %% id=one
STEPS = [7, 2, 2, 2] * 3


def twelve():
    prompt = model.encode("The GPU")
    return [Visitor(number, prompt, last) for number, last in enumerate(STEPS)]


alone, alone_room, alone_trace = run(batches, twelve(), 1)
print(f"{alone_room.number} steps, {alone_trace.metrics().makespan / 1000:.2f} ms")

# %% id=19-batches guess
# Now there are four seats. How many steps do `batches` take for the same twelve? (Type a number. The list `STEPS` above has their order.)

# %% id=19-batches reveal
batched, batched_room, batched_trace = run(batches, twelve(), 4)
picture = with_seats(batched_trace, batched_room).plot(title="Batches of four", lanes=("streams",))
taken = sum(STEPS) / 4 / batched_room.number
reveal("19-batches", batched_room.number, picture, taken=taken)

# %% id=19-batches lesson
# A to D sit down together, and so do E to H and I to L. In each batch three people leave soon, and their seats stay empty.

# %% id=19-batches told truth=21
# Each batch takes as long as its longest text, seven steps. That's about half of before, although four people sit there: only {taken:.0%} of the seats are taken, and the rest of the room works for nobody.

# %% id=batches-check tags=asserts
h200_steps = [("one by one", 8), ("continuous", 8), ("continuous", 32)]
assert [int(recorded_row(n, way)["step_us"]) for way, n in h200_steps] == [78, 97, 135]
assert alone_room.number == sum(STEPS) == 39
assert batched_room.number == 21
assert texts(batched) == texts(alone)
assert round(np.mean([v.last - len(v.prompt) + 1 for v in people()])) == 55
ends = np.array([v.last for v in people()]).reshape(-1, 8)
assert (sum(ends.max(1) == 127), sum(ends.ravel() == 127)) == (22, 46)
assert token_of(people()[5], 40) == 5040
assert people()[5].last > 40 > len(people()[5].prompt)

# %% [markdown] id=exercise-refill
# ### Exercise: a seat that's never cold
#
# Who says that people have to begin together? Each seat has a place of its own in its own text. So let the next one sit down as soon as a seat is free, while the others go on talking. It's called **continuous batching**, and engines for large language models, such as vLLM, do it. Complete the loop.

# %% id=19-refill starter
def serve(room):
    sits = [None] * room.count  # who sits where
    while room.open or any(sits):
        for slot in range(room.count):
            ...  # does somebody sit down here?
        tokens = room.whole_step()
        for slot, visitor in enumerate(sits):
            if visitor and visitor.hear(tokens[slot], room.now()):
                sits[slot] = None

# %% id=19-refill solution
def serve(room):
    sits = [None] * room.count  # who sits where
    while room.open or any(sits):
        for slot in range(room.count):
            if sits[slot] is None and (visitor := room.next()):
                sits[slot] = visitor
                room.seat(slot, visitor)
        tokens = room.whole_step()
        for slot, visitor in enumerate(sits):
            if visitor and visitor.hear(tokens[slot], room.now()):
                sits[slot] = None

# %% id=19-refill hints
# In `batches`, `empty` asks about the whole room. What should be asked instead, and about what?
#
# Ask about one seat: `sits[slot] is None`. Mind the order: `room.next()` takes somebody out of the line, so call it only if there's a seat for them. The two lines below the question are those of `batches`.

# %% id=19-refill explanation
# Only one condition isn't as in `batches`. It's so short because the step does the hard part: each seat has a length of its own, and whoever sits down brings their prompt along. It's read while the others talk, a token in each step.

# %% id=19-refill-check
check("19-refill", serve)

# %% id=19-steps guess
# The same twelve, four seats, and nobody waits for a free one. How many steps now? (A pencil helps.)

# %% id=19-steps reveal
refilled, refilled_room, refilled_trace = run(solved("19-refill", serve), twelve(), 4)
picture = agt.compare_timelines(
    [with_seats(batched_trace, batched_room), with_seats(refilled_trace, refilled_room)],
    ["Batches", "Continuous"],
    lanes=("streams",),
)
reveal("19-steps", refilled_room.number, picture, least=-(-sum(STEPS) // 4))

# %% id=19-steps lesson
# Above, a seat stays empty until the slowest of its batch is through. Below, somebody else sits down right away.

# %% id=19-steps told truth=11
# There are 39 steps to take, and four seats, so it can't be fewer than {least}. What's left over is the end, when nobody waits any more. And every text is, letter by letter, what it was before: a seat's arithmetic doesn't know who sits beside it.

# %% id=refill-check tags=asserts
assert texts(refilled) == texts(alone)
assert refilled_room.number < batched_room.number

# %% [markdown] id=hundreds
# ## Two hundred people
#
# Twelve people prove nothing about a real evening, and computing every token for two hundred would take your laptop minutes. But a scheduler only needs to know when a step is over. So the steps of `clock_room` compute nothing, and take as long as the whole model's steps took on an H200. For tokens they hand out numbers that say whose they are: 5040 is visitor 5's, at place 40. Your scheduler can't tell the difference.
#
# The people are like those in our benchmark: prompts of 8 to 32 tokens, and answers whose lengths are *geometric*, 60 tokens on average. Most are short, and a few are very long. The model's texts end at 128 tokens, prompt included. So more than a fifth of our two hundred are cut there, and the mean is 55. Only tokens of answers are counted below, though each token of a prompt takes a step, too.

# %% id=clock
continuous = solved("19-refill", serve)  # yours, or the course's until it's accepted


def speed(serve, slots, **how):
    visitors = people(**how)
    room = clock_room(visitors, slots)
    serve(room)
    return 1e6 * sum(len(visitor.text) for visitor in visitors) / room.now()


WAYS = {"one by one": (batches, 1), "batches": (batches, 8)}
WAYS["continuous"] = continuous, 8
for way, (serve_so, count) in WAYS.items():
    measured = recorded_row(8, way)["tokens_a_second"]
    clock = speed(serve_so, count)
    print(f"{way:10}  {clock:7,.0f} tokens/s by the clock, {measured:7,} on an H200")
gain = speed(continuous, 8) / speed(batches, 8)
print(f"\ncontinuous is {gain:.2f} times as fast as batches")

# %% id=19-uniform guess within=0.1
# Let the lengths be *uniform* instead: 20 to 100 tokens, each as often as any other. That's 60 on average, too, and hardly any are cut. How many times as fast as batches is continuous now?

# %% id=19-uniform reveal
even = speed(continuous, 8, uniform=True) / speed(batches, 8, uniform=True)

def longest_to_mean(uniform):
    """The steps of the longest text of a batch, on average, as a multiple of the mean."""
    steps = np.array([r.last for r in people(uniform=uniform)]).reshape(-1, 8)
    return steps.max(1).mean() / steps.mean()


facts = {"geometric": longest_to_mean(False), "uniform": longest_to_mean(True)}
reveal("19-uniform", round(even, 2), lambda: print(f"{gain:.2f} before, {even:.2f} now"), **facts)

# %% id=19-uniform told truth=1.28
# A batch takes as long as its longest text. In the batches of our two hundred people, the longest takes {geometric:.1f} times as many steps as the mean of all, prompts included; with uniform lengths it's {uniform:.1f}. Continuous batching can't win more than this factor. (It wins less: a step with empty seats is a little quicker, and when the line is empty, its seats stay empty, too.) So it's the *spread* of the lengths that pays: in a batch everybody pays for the longest text, and with continuous batching only for their own. If all texts were equally long, there would be nothing to gain. And with texts that may be longer there's more: 22 of our 25 batches take 127 steps, which is where texts are cut. In another run on an H200, continuous batching gained 1.52 times with such texts, and 1.87 with room for answers of 200 tokens.

# %% [markdown] id=waits
# ### The first word
#
# Nobody stares at tokens per second. They stare at an empty box until the first word is there (*time to first token*, TTFT). Now people come in at random, at 60 % of what the room can take with no seat empty. (`visitor.at` is when they come, and `visitor.first` when they hear their first word.)

# %% id=waits-batches
def waits(serve, load):
    """How long people wait for their first token, in µs, on ten evenings."""
    evenings = [people(slots=8, load=load, seed=seed) for seed in range(10)]
    for visitors in evenings:
        serve(clock_room(visitors, 8))
    return [visitor.first - visitor.at for visitors in evenings for visitor in visitors]


slow = waits(batches, 0.6)
half, most = np.percentile(slow, (50, 95)) / 1000
print(f"batches: half of the people wait up to {half:.1f} ms, 95 % up to {most:.1f}")
eight = recorded_row(8, "continuous")["step_us"]
print(f"a step of eight seats: {eight:.0f} µs; prompts: 8 to 32 tokens")

# %% id=19-first guess within=0.25
# Do most people find a free seat now? With continuous batching, 95 % of them have their first token after how many ms?

# %% id=19-first reveal
quick = waits(continuous, 0.6)
names = {"batches": slow, "continuous": quick}
beside = {name: recorded_row(8, name, 0.6)["first_us"] for name in names}
late = np.percentile(quick, 95) / 1000
alt = "Two curves that rise to 100 %. Continuous is through before batches has begun to rise."
title = "How long until the first token?"
each = np.percentile(np.reshape(slow, (10, 200)), 95, axis=1) / 1000
facts = {"reading": 32 * eight / 1000, "times": most / late, "share": 0.6 * gain}
facts |= {"h200": beside["batches"][19] / beside["continuous"][19]}
facts |= {"least": each.min(), "longest": each.max()}
reveal("19-first", round(late, 2), lambda: draw_waits(title, names, beside, alt), **facts)

# %% id=19-first told truth=3.08
# Most people find a free seat, so what they wait for is mainly their own prompt, which is read a token a step: 32 tokens take {reading:.1f} ms. The same people are {share:.0%} of what batches can take, since many seats are empty there. So there's a line at the door, they wait for the longest text of one batch after another, and it takes {times:.0f} times as long until 95 % have their first token. On the H200, with three evenings of other people, it was {h200:.0f} times. So near its limit a line depends on who happens to come: of our ten evenings, the best had 95 % after {least:.0f} ms, and the worst after {longest:.0f}. (Engines read a prompt in a few large steps, the *prefill*, which would move the left curve further left.)

# %% [markdown] id=door
# ## At the door
#
# Real people do two more things. They come when the room is full, and they walk out in the middle of a sentence: they close the laptop, and nobody tells you.
#
# If you let everybody in, the line grows for as long as people come faster than they leave, and each of them waits longer than the one before. Saying "we're full" is kinder. It's called **back-pressure**.

# %% [markdown] id=exercise-door
# ### Exercise: at the door
#
# `ask` is an asynchronous generator: `async for token in ask(desk, visitor)` gets the tokens of one visitor. `desk.line` is a list of those who wait. A scheduler holds the same list, and takes whoever sits down out of it. `await visitor.next()` is the visitor's next token, or `None` after the last. (`room.next()` was the next visitor.) Complete it:
#
# - If `desk.line` already has `desk.most` visitors, raise `agt.errors.ServerBusyError`, and don't get in line.
# - However it ends, be it by the last token, by somebody who stops listening (`aclose`) or by a cancelled task, set `visitor.gone = True`. A scheduler looks at this (yours will, in the challenge), and gives the seat away.
# - Take whoever leaves while still in line out of it. Or else a line full of people who have left turns others away.

# %% id=19-door starter
async def ask(desk, visitor):
    desk.line.append(visitor)
    while (token := await visitor.next()) is not None:
        yield token

# %% id=19-door solution
async def ask(desk, visitor):
    if len(desk.line) >= desk.most:
        raise agt.errors.ServerBusyError("the line is full: come back later")
    desk.line.append(visitor)
    try:
        while (token := await visitor.next()) is not None:
            yield token
    finally:
        visitor.gone = True
        if visitor in desk.line:
            desk.line.remove(visitor)

# %% id=19-door hints
# Two lines before `append`, and three at the end that have to run in any case.
#
# When somebody stops listening, Python raises `GeneratorExit` at the `yield`; when a task is cancelled, `CancelledError` at the `await`. Which block runs however you leave it?
#
# Whoever has a seat isn't in line any more, and `desk.line.remove(visitor)` would raise a `ValueError`. So look first.

# %% id=19-door explanation
# Nobody has to remember to tidy up, with one exception: a `break` out of `async for` leaves the generator to Python, which closes it some time later. `async with contextlib.aclosing(ask(desk, visitor)) as tokens:` closes it at once. Chapter 6 had the rule: cancelling stops the waiting, and not the GPU. The step that's under way goes on and says a word to an empty seat. Hold that thought.

# %% id=19-door-check
check("19-door", ask)

# %% [markdown] id=ahead-text
# ## While Python looks
#
# Here's what your scheduler does on the device, with one addition: after each step, Python spends 20 µs with the tokens. It makes text of them and sends it to somebody's browser. (`DeviceStep` is a step on the device. The second sitting opens it up.)

# %% id=talkative
class TalkativeStep(DeviceStep):
    def wait(self):
        tokens = super().wait()
        agt.work(20, "to text")
        return tokens


asked, _, asked_trace = run(continuous, twelve(), 4, TalkativeStep)

# %% id=asked-picture
every_us = pace(asked_trace)  # from one step's first copy to that of the next
took_us = copies(asked_trace, "d2h")[4].end - copies(asked_trace, "h2d")[4].start
print(f"a step every {every_us:.0f} µs. On the GPU it takes {took_us:.0f}")
calm = middle(asked_trace)
calm.from_first().plot(
    title="Four steps",
    lanes=("host", "streams"),
    lesson="The host launches, waits, and makes text of the tokens. Meanwhile the "
    "GPU has nothing to do, because nobody has asked for the next step yet.",
)

# %% [markdown] id=ahead-idea
# That's an old acquaintance: the host looks, and the GPU waits. The cure is old, too. **Launch the next step first, and then look at what this one said.** We don't need to know its tokens for that, since they lie on the GPU, where the next step finds them.
#
# ```text
# launch step n + 1
# wait for step n
# turn the tokens of step n into text
# ```

# %% id=19-gain guess within=0.15
# Suppose that the next step is always launched before we look. How many times as many steps are done in the same time? (The line above the picture helps.)

# %% id=19-gain reveal
ahead_of = solved("19-ahead")
early, early_room, early_trace = run(ahead_of, twelve(), 4, TalkativeStep)
busy = middle(early_trace)
ahead_us = pace(early_trace)
gained = every_us / ahead_us
picture = agt.compare_timelines(
    [calm.from_first(), busy.from_first()],
    ["Looked at, then launched", "Launched, then looked at"],
    lanes=("host", "streams"),
)
rates = [recorded_row(8, way, python=20)["tokens_a_second"] for way in ("ahead", "continuous")]
facts = {"h200": rates[0] / rates[1], "steps": early_room.number, "before": refilled_room.number}
facts |= {"all": every_us / took_us, "rest": ahead_us - took_us}
facts["whole"] = asked_trace.metrics().makespan / early_trace.metrics().makespan
reveal("19-gain", round(gained, 2), picture, soon=rates[0], late=rates[1], **facts)

# %% id=19-gain lesson
# Above, each step begins after Python is done with the one before. Below, it's already in the queue. The gaps that are left lie before and after the copies, and none of them is Python's.

# %% id=19-gain told truth=1.65
# Python's 20 µs and the launch hide behind the step. A GPU without any gap would do {all:.1f} times as many, but from one step's last copy to the next one's first, {rest:.0f} µs are still lost. The twelve people don't gain quite as much: they're served {whole:.2f} times as fast, since it takes {steps} steps now and not {before}, as you'll see below. On an H200, with the whole model, 8 seats and the same 20 µs of Python, it's {soon:,} tokens a second instead of {late:,}: {h200:.2f} times as many.

# %% id=ahead-seats
with_seats(early_trace, early_room).plot(
    title="The same twelve, one step ahead",
    lanes=("streams",),
    lesson="Being ahead has a price. When you learn that a text is over, the next step "
    "is under way with an empty seat, so whoever is next sits down one step later. At "
    "the end, a step runs for nobody.",
)

# %% id=ahead-check tags=asserts
assert texts(asked) == texts(early) == texts(alone)
if device.simulated:
    assert busy.metrics().device_idle < calm.metrics().device_idle / 2
assert early_room.number == 14
assert max(last for _, _, _, last in early_room.sat) == 12  # of 0 to 13: the last is for nobody

# %% [markdown] id=answer
# ## So, who gets the next token?
#
# Everybody who has a seat, in every step. And whoever waits gets a seat as soon as one is free.
#
# ## Key points
#
# - A step for eight seats takes only a quarter longer than a step for one, so serve many people in each.
# - A fixed batch takes as long as its longest text. With continuous batching each text takes only its own steps, so the more the lengths differ, the more you gain.
# - People notice the time to the first token. Look at its distribution, and say at which load.
# - Say no at the door while the line is full, and notice who has left.
# - Launch the next step before you look at this one, and Python's time hides behind the GPU's.
#
# **Next:** the second sitting, because being ahead has its dangers. Or go on to [20_the_ladder](20_the_ladder.ipynb), which is about a single kernel.

# %% id=score
score("19")

# %% id=progress
progress("19")  # four of these are in the second sitting

# %% [markdown] id=step
# ## Second sitting: two steps under way
#
# *65 minutes. It uses what the page has defined above, so run that first.*
#
# Here's what a step looks like from inside. It's a graph, and everything that changes from step to step passes through pinned memory: `newcomers` go in, and the tokens come out. Each seat has a row in `newcomers`, for whoever sits down there; zeros mean nobody.

# %% id=step-code
class Step:
    def __init__(self, seats, stream, newcomers, tokens):
        self.seats, self.stream = seats, stream
        # Who sits down goes in. A row is 1 for "somebody", the prompt's length, the
        # last place, the seed, the heat (-1: as it is) and the prompt: 1 2 7 0 -1 ...
        self.newcomers = newcomers
        self.tokens = tokens  # what everybody is told: comes out
        copy = agt.d2h(seats.arrays["token"].borrow(), out=tokens)
        step = agt.zip(seats.admit(newcomers), seats.fused_step(), copy)
        self.graph = step.named("step").graph_on(stream).launch()

    def seat(self, slot, visitor):
        number = visitor.number  # also the seed of what's drawn
        entry = visitor.prompt, visitor.last, number
        self.seats.seat(self.newcomers, slot, *entry)

    def start(self):
        self.graph.async_on(self.stream)
        self.over = self.stream.record()  # an event

    def wait(self):
        self.over.synchronize()
        self.newcomers[:] = 0  # nobody new, until somebody sits down
        return self.tokens.tolist()

# %% [markdown] id=races-text
# Whoever is one step ahead has two steps under way. On the GPU one still comes after the other, since both are on one stream, so they may share the seats there. The host is the trouble: it writes and reads while they run. vLLM had both kinds of bugs: a buffer on the host [used again](https://github.com/vllm-project/vllm/pull/25279) before its copy was done, and a result [read](https://github.com/vllm-project/vllm/pull/36013) before it had arrived. Here's one of each. A GPU may hide them for weeks. The simulated device won't.

# %% [markdown] id=exercise-early
# ### Exercise: wait for the right one
#
# `talk` has two steps take turns, `rounds` times, and returns what each said, a list of lists. It's one step ahead, and reads too early. Repair it, and don't wait for more than you need: while you read one step's tokens, the next should be under way. (`step.over` is the event behind the step's latest launch, and `step.over.synchronize()` waits for it.)

# %% id=19-early starter
def talk(steps, rounds):
    said = []
    for number in range(rounds):
        steps[number % 2].start()
        if number > 0:
            before = steps[(number - 1) % 2]
            said.append(before.tokens.tolist())
    last = steps[(rounds - 1) % 2]
    said.append(last.tokens.tolist())
    return said

# %% id=19-early solution
#   before = steps[(number - 1) % 2]
# + before.over.synchronize()
#   last = steps[(rounds - 1) % 2]
# + last.over.synchronize()

# %% id=19-early hints
# Run the check and read what the device says. `tokens` is written by the copy at the end of a step.
#
# Wait for the event of the step whose tokens you read, `before.over`, and not for the one that you just launched.

# %% id=19-early explanation
# An event belongs to a moment on the stream, and you chose the right moment. `agt.synchronize()` would have been right and slow: it waits for the step that you launched ahead, too, and then you aren't ahead any more.

# %% id=19-early-check
check("19-early", talk)

# %% [markdown] id=exercise-pair
# ### Exercise: two steps under way
#
# `pair` makes the two steps for a room. It worked while each step was over before the next one began. Now two are under way. Once in a while somebody who sits down is never let in, or is told the next step's token. Repair it.

# %% id=19-pair starter
def pair(Step, seats, stream):
    newcomers = seats.newcomers()
    tokens = agt.pinned(seats.count, np.int32)
    return [Step(seats, stream, newcomers, tokens) for _ in range(2)]

# %% id=19-pair solution
def pair(Step, seats, stream):
    steps = []
    for _ in range(2):
        newcomers = seats.newcomers()
        tokens = agt.pinned(seats.count, np.int32)
        steps.append(Step(seats, stream, newcomers, tokens))
    return steps

# %% id=19-pair hints
# Which memory do both steps share? Which of it does the host write, and which does it read?
#
# `seats` and `stream` have to be the same: there's one model, and its steps must come one after the other. Newcomers and tokens are needed for each.

# %% id=19-pair explanation
# A launch doesn't take its arguments along. It says where they will be, and the copy reads them later. So whatever the host changes while a step is under way has to exist twice.

# %% id=19-pair-check
check("19-pair", pair)

# %% [markdown] id=owner
# ### It passed its tests
#
# Somebody wrote the scheduler that's one step ahead, and tested it well. Instead of `whole_step`, it launches a step by `room.start()`, which returns a number, and gets its tokens later, by `room.wait(number)`. A visitor's `heard` counts the calls of `hear`, those for the prompt included, and `gone` is true when they don't listen any more.

# %% id=hasty
def hasty(room):
    sits, under_way = [None] * room.count, []
    while room.open or any(sits):
        for slot in range(room.count):
            if sits[slot] is None or sits[slot].gone:
                sits[slot] = room.next()
                if sits[slot]:
                    room.seat(slot, sits[slot])
        under_way.append(room.start())
        if len(under_way) < 2:
            continue
        tokens = room.wait(under_way.pop(0))
        for slot, visitor in enumerate(sits):
            if visitor is None or (visitor.heard == 0 and tokens[slot] < 0):
                continue  # nobody, or the last word of somebody before them
            if visitor.hear(tokens[slot], room.now()):
                sits[slot] = None


careful, tested = people(), people()
continuous(clock_room(careful, 8))
hasty(clock_room(tested, 8))
print("the same 200 texts:", [r.text for r in tested] == [r.text for r in careful])

# %% [markdown] id=owner-question
# A single number of somebody else's would have shown. All two hundred are right. Then, one evening, somebody closes their laptop after two tokens.

# %% id=evening
WORDS = ["The GPU", " stream", " kernel", " event"]


def evening():
    each = [Visitor(i, model.encode(words)[-1:], 5) for i, words in enumerate(WORDS)]
    each[0].leaves = 2  # A is gone after two tokens
    return each

# %% id=19-evening guess
# `hasty` serves these four in two seats: A and B sit down, and C and D wait. Who is told a word that isn't their own?
#
# - `B`: B, who sits beside A, is told one of A's
# - `C`: C, who gets A's seat, is told one of A's
# - `D`: D, who gets B's seat, is told B's last one
# - `device`: nobody, because the device reports the misuse of memory before they're told

# %% id=19-evening reveal
try:
    visitors, evening_room, evening_trace = run(hasty, evening(), 2, Step)
    same = [Visitor(r.number, r.prompt, r.last) for r in visitors]
    reference = run(continuous, same, 2)[0]
    pairs = [(v, r.text[: len(v.text)]) for v, r in zip(visitors, reference)]
    found = "".join("ABCD"[v.number] for v, right in pairs if v.text != right)
except (agt.errors.HostBufferError, agt.errors.StreamRaceError):
    found = "device"
picture = with_seats(evening_trace, evening_room).plot(title="One evening", lanes=("streams",))


def both_texts():
    for right, visitor in zip(reference, visitors):
        was = f"told {model.decode(visitor.text)!r}"
        print(f"{'ABCD'[visitor.number]} alone {model.decode(right.text)!r}, {was}")


reveal("19-evening", found, picture, both_texts)

# %% id=19-evening lesson
# A heard two tokens, and A's bar has three steps: the third was under way when A left. C sits down in the same seat, in the step after that.

# %% id=19-evening told truth=C
# When A left, a step was under way in which A still had a seat, and its token went to whoever sits there *now*: C was told a word of A's. (`hasty` does think of a *last* word, like B's, and so D is safe.) The device has nothing to report, because every access to memory is in order. The mistake is in a Python list, about who is meant.

# %% id=evening-check tags=asserts
assert visitors[0].gone
assert not visitors[0].over
assert visitors[2].text != reference[2].text
assert visitors[1].text == reference[1].text

# %% [markdown] id=exercise-strangers
# ### Exercise: whose token is it?
#
# If no detector knows who is meant, you have to write down who sat where, step by step, and compare. `steps` has a list for each step, of pairs `(name, token)`: who sat there *when it was launched*, and the token of their answer that their seat said (no pair while it was still reading their prompt). (The last token of a text is a plain number here, too.) `told` is a dictionary, from each name to the list of tokens that they were told. It should be what their own seat said, in this order. If somebody left early, it's only the beginning, and that's fine. Return the names of all others, in the order of `told`.

# %% id=19-strangers starter
def strangers(steps, told):
    return []

# %% id=19-strangers solution
def strangers(steps, told):
    own = {name: [] for name in told}
    for step in steps:
        for name, token in step:
            own[name].append(token)
    return [name for name, text in told.items() if text != own[name][: len(text)]]

# %% id=19-strangers hints
# First collect the own text of each name, over all steps. Then compare.
#
# "The beginning" of a list is a slice: `own[name][: len(text)]`.

# %% id=19-strangers explanation
# This costs a list for each step, and it's the only witness. You can test a whole server in this way: with a fixed seed, each text should be the same as when its owner is alone in the room.

# %% id=19-strangers-check
check("19-strangers", strangers)

# %% id=strangers-run
strangers = solved("19-strangers", strangers)
told = {visitor.number: visitor.text for visitor in visitors}
print("told something strange:", ["ABCD"[i] for i in strangers(evening_room.log, told)])

# %% [markdown] id=exercise-ahead
# ### Challenge: one step ahead
#
# Now write it right. At most two steps may be under way. People leave (`visitor.gone`): give their seats away, and tell nobody else what their seat said. Whoever has heard their last token is `visitor.over`. And mind the step after the last: if B's text ends with step 5, you learn it when step 6 is under way, in which B still had a seat. What that seat says in step 6 is for nobody.
#
# The check lets two hundred people in, and a step takes 15 µs of the host, 60 of the GPU and 20 of Python. Your score is the µs until all are served. The starter takes 180,975 µs: **get below 120,000**. (Ours takes 115,835, and the GPU alone needs 111,292.)

# %% id=19-ahead starter
def ahead(room):
    sits = [None] * room.count
    while room.open or any(sits):
        for slot in range(room.count):
            if sits[slot] is None and (visitor := room.next()):
                sits[slot] = visitor
                room.seat(slot, visitor)
        tokens = room.wait(room.start())
        for slot, visitor in enumerate(sits):
            if visitor and visitor.hear(tokens[slot], room.now()):
                sits[slot] = None

# %% id=19-ahead solution
def ahead(room):
    sits, under_way = [None] * room.count, []
    while room.open or any(sits):
        for slot in range(room.count):
            if sits[slot] and sits[slot].gone:
                sits[slot] = None
            if sits[slot] is None and (visitor := room.next()):
                sits[slot] = visitor
                room.seat(slot, visitor)
        under_way.append((room.start(), sits.copy()))
        if len(under_way) < 2:
            continue
        step, sat = under_way.pop(0)
        tokens = room.wait(step)
        for slot, visitor in enumerate(sat):
            if visitor is None or visitor.over or visitor.gone:
                continue
            if visitor.hear(tokens[slot], room.now()):
                sits[slot] = None

# %% id=19-ahead hints
# Keep a list of what's under way. Launch, append, and only if there are two of them wait for the older one.
#
# What do you have to remember beside a step's number? Who sat where when it was launched: `sits.copy()`.
#
# Three kinds of people get no token: nobody, those who are `over` (their last step was launched before you knew), and those who are `gone`.

# %% id=19-ahead explanation
# That's the heart of a real engine, in twenty lines. The whole difference to `hasty` is in one word: `sat`, and not `sits`.

# %% id=19-ahead-check
check("19-ahead", ahead)

# %% [markdown] id=whole
# ### The evening, for real
#
# Your scheduler and your door, put together and made sturdy, are in the package as `Conversations`: one step ahead, with a line that can be full and seats that are given away. Three people talk to the whole model, all three layers, and it finds its old self again:

# %% id=whole-run
async def listen(engine, question, heard):
    async for token in engine.say(question, most=5, seed=3):
        heard.append(token)


QUESTIONS = ["A stream is", "The GPU", "A kernel"]
answers = [[] for _ in QUESTIONS]
async with Conversations(load_language_model(), slots=3) as engine:
    await asyncio.gather(*map(listen, [engine] * 3, QUESTIONS, answers))
for question, answer in zip(QUESTIONS, answers):
    print(question + engine.model.decode(answer), "...")

# %% [markdown] id=answer-second
# ### Key points of the second sitting
#
# - With two steps under way, whatever the host writes or reads has to exist twice, and each wait has to be for the right event.
# - A step's tokens belong to those who sat there when it was launched. No detector knows that. Compare texts.
#
# **At home:** `asyncgpu-tutor serve` is this page as a server, with a page to type into.

# %% id=score-second
score("19")

# %% [markdown] id=no-host
# ## Encore: nobody at the desk
#
# *For a day when you have many texts to write, and nobody who waits for them.*
#
# One thing is left to take out of the loop: the host. In [11b](11b_without_a_barrier.ipynb) blocks took jobs from a counter, and each came back for the next as soon as it was free. That's continuous batching without a scheduler. So give everybody a seat, and let the blocks go round: each takes a seat, says the whole text of whoever sits there, and takes the next one, all in one launch. Here are the first four of our twelve, and two blocks:

# %% id=no-host-run
crowd = slots(model, 4).sync()
book = crowd.newcomers()
for visitor in twelve()[:4]:
    crowd.seat(book, visitor.number, visitor.prompt, visitor.last, visitor.number)
crowd.admit(book).sync()
with agt.record() as by_itself:
    crowd.talk(blocks=2).sync()
spoken = agt.d2h(crowd.arrays["text"].borrow()).sync()
# Behind a prompt of two tokens, up to the last place.
same = [model.decode(spoken[i, 2 : last + 1]) for i, last in enumerate(STEPS[:4])]
print("the same texts, without a host:", same == texts(alone[:4]))

# %% id=blocks-picture tags=helpers
def draw_blocks(blocks):
    """Draw which block says which text, by steps, if each takes the next one when it's done; every fourth."""
    texts, free = [[] for _ in range(blocks)], [0] * blocks
    for prompt, answer in recorded()["lengths"]:  # of the people of one launch
        block = free.index(min(free))
        texts[block].append((free[block], min(prompt + answer - 1, 127)))
        free[block] += texts[block][-1][1]
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    looks = ("#f0c060", "its first text"), ("#4090d0", "its second"), ("#103050", "its third")
    chosen = sorted(range(blocks), key=free.__getitem__)[3::4]
    for lane, block in enumerate(chosen):
        for number, (begin, steps) in enumerate(texts[block]):
            color, name = looks[number % 3]
            axes.barh(lane, steps, 0.8, begin, color=color, label=name, edgecolor="white")
    axes.set(xlim=(0, max(free)), ylim=(-0.5, len(chosen) - 0.5), xlabel="steps", ylabel="blocks", yticks=[])
    bars, names = axes.get_legend_handles_labels()
    once = dict(zip(names, bars))
    in_order = [once[name] for _, name in looks if name in once]
    axes.legend(handles=in_order, frameon=False, loc="lower right")
    cut = sum(steps == 127 for said in texts for _, steps in said)
    told = f"A line is a block, and every fourth of the {blocks} is drawn; white is idle. "
    told += f"{cut} texts are cut at 128 tokens. They take 127 steps each, so many lines end there."
    shown(figure, f"{len(chosen)} blocks: some say a second or third text while others are idle.", told)
    print(f"By its steps, a block works for {sum(free) / blocks / max(free):.0%} of this launch, on average.")

# %% id=19-alone guess within=0.3
# On an H200, the whole model said 9,356 tokens a second one by one, in steps of 78 µs. A block has one multiprocessor to itself and takes 104 µs a step, as measured with 128 of them in chapter 18. The benchmark has three launches of two hundred people, who need 71 steps each on average, and nobody more than 127. How many times as many tokens a second do 132 blocks say for them, one on each multiprocessor, in one launch? (Mind how the launch ends.)

# %% id=19-alone reveal
lone = recorded_row(8, "one by one")["tokens_a_second"]
all_blocks = {n: recorded_row(n, "no host")["tokens_a_second"] for n in (8, 32, 132)}
facts = {f"with_{n}": rate for n, rate in all_blocks.items()}
facts |= {f"ahead_{n}": recorded_row(n, "ahead")["tokens_a_second"] for n in (8, 32)}
facts |= {"most": 132 * 78 / 104, "step": recorded_row(8, "ahead")["step_us"]}
reveal("19-alone", round(all_blocks[132] / lone, 1), lambda: draw_blocks(132), **facts)

# %% id=19-alone told truth=56.8
# If all 132 blocks worked until the end, it would be {most:.0f} times as many. But two hundred people are one and a half for each, and blocks that find nobody left stand idle, in the benchmark's other two launches even more than above.
#
# | tokens a second on an H200 | 8 | 32 | 132 |
# |---|---|---|---|
# | seats, one step ahead | {ahead_8:,} | {ahead_32:,} | |
# | blocks, without a host | {with_8:,} | {with_32:,} | {with_132:,} |
#
# Eight blocks lose to eight seats, since each has a single multiprocessor for its 104 µs a step. Eight seats share all of them, and a step takes {step:.0f} µs (one step ahead; it's 97 if the host looks first). What you give up without a host is the conversation: nobody hears a word before the launch is over, nobody can come in, and nobody can leave. (Chapter 13 has the way out, a mailbox.)

# %% id=no-host-check tags=asserts
assert same == texts(alone[:4])
assert len(by_itself.find("talk")) == 1
assert lone == 9356
assert round(facts["step"]) == 72
