"""Source of notebooks/18_token_by_token.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Token by token
#
# Somewhere in this package sleeps a language model that has read nothing but this course. You're about to wake it, slowly at first. **How fast can a machine say one word after the other, if it needs each word to find the next?**
#
# After this page you can drive a small language model in eight ways, say where the microseconds of a token go, choose the quickest way for one person and for a hundred, and know what a model's memory saves and costs.
#
# | | |
# |---|---|
# | Time | 70 minutes, and 20 more for the encores |
# | You need | [07_async_mlp](07_async_mlp.ipynb), [09_cuda_graphs](09_cuda_graphs.ipynb) and, for `while`, [11b_without_a_barrier](11b_without_a_barrier.ipynb). The encores need kernels ([01](01_sync_kernels.ipynb)) and events ([02](02_streams_and_events.ipynb)) |

# %% id=setup
import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown
from asyncgpu_course import solution, solved
from asyncgpu_tutor.language import slots

device = agt.use("auto")
stream = agt.create_stream()
model = agt.data.load_language_model()
device

# %% [markdown] id=wake
# ## It talks
#
# A language model does one thing. It gets a text and gives, for every token that it knows, the chance that it comes next. You draw one, put it behind the text, and ask again.
#
# Ours knows 512 **tokens**, from single letters to short words. Each conversation needs a seat on the device, a **slot**, with all that's known of it: its text, how far it is, and the next token.

# %% id=seat tags=helpers
def sit(made, prompt, last, seed=1, heat=0.7):
    """Somebody takes the seat and begins a text, which ends at place `last` at most."""
    newcomers = made.newcomers()
    begin = [0, *model.encode(prompt)]  # 0 ends a text, and begins one
    made.seat(newcomers, 0, begin, last, seed, heat)
    made.admit(newcomers).sync()


def seated(prompt, last, **how):
    """The model, on the device, with a single seat that's taken."""
    made = slots(model, 1).sync()
    sit(made, prompt, last, **how)
    return made

# %% [markdown] id=loop-text
# In the folded cell, `seated` puts the model on the device and lets somebody begin a text. Below, `made` is such a model, and `made.step()` describes one step, a token for each slot. `with_word` adds a copy, and its `out=` says where the token goes: to `word`, pinned memory for one number. A text is over when the model draws token 0, or at place `last`. Its last token comes as `-1 - token`, so one number tells both the word and whether it was the last.

# %% id=loop
word = agt.pinned(1, np.int32)  # the host's copy of a token


def with_word(made, step):
    """A step, and the copy that tells the host what it said."""
    return agt.zip(step, agt.d2h(made.arrays["token"].borrow(), out=word))


def until_over(one_token):
    """Yield each token as soon as it's there."""
    while True:
        one_token()
        token = int(word[0])
        yield token if token >= 0 else -1 - token
        if token < 0:
            return


def by_python(made):
    """Describe and run each step anew, and ask after each."""
    return until_over(lambda: with_word(made, made.step()).sync_on(stream))


for token in by_python(seated("A GPU", last=14)):
    print(model.vocabulary[token], end="|", flush=True)

# %% [markdown] id=fairy-text
# It talks like the course, because it was trained until it knew large parts by heart. (It begins with your prompt, which it reads token by token; large models read it at once.) Now ask it for a fairy tale, and change the prompt. The `seed` decides what is drawn. Near a `heat` of 0 (others call it *temperature*) that's mostly the likeliest token, and above 1 it gets wild.

# %% id=fairy
for token in by_python(seated("Once upon a time", last=13, seed=1, heat=0.7)):
    print(model.vocabulary[token], end="", flush=True)

# %% [markdown] id=where
# ## Where does the time go?
#
# How many launches is one token? There's one that looks up what's known of the token and of its place. Each of the three layers takes seven: two that normalise, four products of a matrix and a vector, and the attention. One more normalises, one makes a number for each token that might come, and one draws.
#
# We'll measure several ways to say the same eight tokens. `rung(name, build)` in the folded cell seats somebody, has the text said, and leaves the µs a token in `us[name]`, those of the capture in `once[name]`, and the timeline in `traces[name]`.

# %% id=rung tags=helpers
STEPS, PROMPT = 8, "A stream is"
us, once, traces = {}, {}, {}


def said(made):
    """What was said."""
    arrays = [agt.d2h(made.arrays[name].borrow()) for name in ("text", "said")]
    text, last = agt.zip(*arrays).sync()
    return model.decode(text[0, : last[0] + 1].tolist())


def rung(name, build):
    """µs a token of one way to say the same eight tokens, and its trace.

    `build` gets a model with somebody seated, and returns a function that says it all.
    """
    made, clock = seated(PROMPT, STEPS), []
    start = device.now()
    run = build(made)
    once[name] = device.now() - start
    for _ in range(0 if device.simulated else 21):
        start = device.now()
        run()
        clock.append(device.now() - start)
        sit(made, PROMPT, STEPS)
    with agt.record() as trace:
        start = device.now()
        run()
        clock.append(device.now() - start)
    assert said(made) == "\nA stream is a queue for"  # whoever says it
    us[name] = float(np.median(clock[1:] or clock)) / STEPS
    traces[name] = trace.from_first()
    return us[name]


def tokens_of(name, count=1):
    """The part of a trace that is its fourth token, or that and some more."""
    trace = traces[name]
    begins = [span.start for span in trace.find("embed")]
    if len(begins) < STEPS:  # a GPU may show a graph as one bar
        return trace
    before = [s.end for s in trace if s.end <= begins[3] and s.kind != "call"]
    return trace.between(max(before), max(before) + begins[3 + count] - begins[3]).from_first()

# %% id=python-rung
def described_anew(made):
    return lambda: list(by_python(made))


rung("Python", described_anew)
launches = [span for span in traces["Python"].device_spans if span.kind == "kernel"]
print(f"{len(launches) // STEPS} launches and {us['Python']:.0f} µs a token")

# %% id=18-share guess within=0.25
# During how many of these µs is the GPU at work on the token?

# %% id=18-share reveal
busy = traces["Python"].metrics().device_active / STEPS
picture = tokens_of("Python").plot(title="One token, driven by Python", lanes=("host", "streams"))
reveal("18-share", f"{busy:.0f}", picture, part=busy / us["Python"])

# %% id=18-share lesson
# A call for each of 25 kernels, and each is over long before the next one arrives.

# %% id=18-share told truth=50
# That's {part:.0%} of the time. This is how a language model runs if nobody has thought about it: many layers make many kernels, and one token is little work for each.

# %% id=share-check tags=asserts
assert len(launches) == 25 * STEPS
if device.simulated:
    assert busy < us["Python"] / 5

# %% [markdown] id=exercise-say
# ### Exercise: words as they come
#
# The cure is from chapter 9: `op.graph_on(stream).launch()` captures an operation, and what it returns can be run again and again. `step()` describes a step, and `token` is a device array of one `int32`: the token that was said, the last one again as `-1 - token`. Write `say`: it calls `tell` with each token, the last one included, as soon as it's there and before the next step is launched. (`tell` wants the token itself, and no `-1 - token`.) `agt.zip(a, b)` makes one operation of two, and runs them in order on one stream. So one capture should do, and one launch and one wait for each token.

# %% id=18-say starter
def say(step, token, stream, tell):
    while True:
        step().sync_on(stream)
        now = int(agt.d2h(token.borrow()).sync_on(stream)[0])
        tell(now)
        if now < 0:
            return

# %% id=18-say solution
def say(step, token, stream, tell):
    out = agt.pinned(1, np.int32)
    whole = agt.zip(step(), agt.d2h(token.borrow(), out=out))
    launch = whole.graph_on(stream).launch()
    while True:
        launch.sync_on(stream)
        now = int(out[0])
        tell(now if now >= 0 else -1 - now)
        if now < 0:
            return

# %% id=18-say hints
# Two things happen for each token: the step, and the copy that brings the token to the host. Both can be on the list that you capture.
#
# A copy in a graph needs a place to go to: `out = agt.pinned(1, np.int32)`, and `agt.d2h(token.borrow(), out=out)`.
#
# `agt.zip(step(), copy).graph_on(stream).launch()` before the loop; in it, `launch.sync_on(stream)`, and then `int(out[0])` is the token.

# %% id=18-say explanation
# One call instead of 27, and the word is there when it returns. It has to be an `int` of your own: the next launch writes into `out` again.

# %% id=18-say-check
check("18-say", say)

# %% [markdown] id=ladder
# ## Rung by rung
#
# First you prepare the step, as in chapter 7: all calls are worked out once, and then made one by one. Then comes the graph.

# %% id=prepared-rung
def asked(launch):
    def one_token():
        launch.sync_on(stream)

    return lambda: list(until_over(one_token))


def prepared(made):
    return asked(with_word(made, made.step()).prepare().launch())


rung("prepared", prepared)
print(f"By Python {us['Python']:.0f} µs a token, prepared {us['prepared']:.0f}.")

# %% id=18-graph guess within=0.2
# How many µs does a token take by a graph, if the host still asks after each?

# %% id=18-graph reveal
rung("graph", lambda made: asked(with_word(made, made.step()).graph_on(stream).launch()))
two = [tokens_of(name) for name in ("prepared", "graph")]
picture = agt.compare_timelines(two, ["prepared", "a graph"], lanes=("host", "streams"))
reveal("18-graph", f"{us['graph']:.0f}", picture, rest=us["graph"] - busy)

# %% id=18-graph lesson
# Above, the calls are short, but still slower than the kernels: there's a gap before each. Below there's one call.

# %% id=18-graph told truth=67
# The kernels and the copy need what they need. Of the other {rest:.0f} µs, some are gaps between them. The rest is the conversation with the host: the wait, Python, and the launch. To get rid of that, you'd have to stop asking.

# %% [markdown] id=stop-asking
# ### Stop asking
#
# If you know how many tokens there will be, put them all into the queue, with a copy of the text behind them, and wait once. If you don't, let the device decide, with a `while` node.

# %% id=not-asked
def queued(made, launch):
    text = made.arrays["text"]
    home = agt.d2h(text.borrow(), out=agt.pinned(text.shape, np.int32))

    def run():
        for _ in range(STEPS):
            launch.async_on(stream)
        home.sync_on(stream)

    return run

# %% [markdown] id=exercise-while
# ### Exercise: in one launch
#
# Write `whole`: it returns a graph on `stream`, and each launch of it says what's left of the text and brings it to the host. `step()` describes a step, and `going` is an array of one `int32` on the device: how many slots still talk. The last step sets it to 0. `text` lies on the device, too, and the pinned array `out` has its shape. (You met `while_loop` in 11b.)

# %% id=18-while starter
def whole(step, going, text, out, stream):
    steps = [step() for _ in range(10)]
    return agt.zip(*steps, agt.d2h(text.borrow(), out=out)).graph_on(stream)

# %% id=18-while solution
def whole(step, going, text, out, stream):
    loop = agt.CudaGraph.while_loop(going.borrow(), step())
    return agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)

# %% id=18-while hints
# The graph has a loop, and something that happens once, behind it.
#
# `agt.CudaGraph.while_loop(going.borrow(), step())` is the loop. A body may hold no copy to the host, so the copy of the text comes behind it.
#
# `agt.zip(loop, agt.d2h(text.borrow(), out=out)).graph_on(stream)`

# %% id=18-while explanation
# The price is that the host hears nothing until the end. A program that shows words as they come either asks, or lets the graph run a few steps at a time.

# %% id=18-while-check
check("18-while", whole)

# %% [markdown] id=while-rung
# `by_device` runs your graph, once it's accepted.

# %% id=by-device
def by_device(made, step):
    """All steps in one launch; the device decides when it's enough."""
    going, text = (made.arrays[name] for name in ("going", "text"))
    out = agt.pinned(text.shape, np.int32)
    launch = solved("18-while", whole)(step, going, text, out, stream).launch()
    return lambda: launch.sync_on(stream)

# %% id=18-order guess
# A graph that's asked after each token, graphs that are queued, and a `while` node: which is the quickest, and which the slowest? Type `asked queued while` in your order, the quickest first.

# %% id=18-order reveal
rung("queued", lambda made: queued(made, made.step().graph_on(stream).launch()))
rung("while", lambda made: by_device(made, made.step))
ways = {"asked": us["graph"], "queued": us["queued"], "while": us["while"]}


def in_numbers():
    for name, each in ways.items():
        print(f"{name:>8}: {each:5.1f} µs a token")


picture = agt.compare_timelines(
    [tokens_of(name, 2) for name in ("graph", "queued", "while")],
    ["asked after each token", "queued", "a while node"],
    lanes=("host", "streams"),
)
last = [span for span in tokens_of("graph").device_spans if span.kind in ("kernel", "d2h")]
carried = last[-1].end - last[-2].end if len(last) > 1 else 0.0
reveal("18-order", " ".join(sorted(ways, key=ways.get)), picture, in_numbers, us=carried)

# %% id=18-order lesson
# Two tokens from the middle: the launches of the lower two came earlier. Asked, there's a copy and a gap behind each. Queued, there's none. With a while node, there's a wide bar behind each: the node, which looks whether to go on.

# %% id=18-order told truth="queued while asked"
# A full queue is the quickest, since nobody asks anything. (Of what asking costs, {us:.0f} µs are the copy of each word and the gap before it. The rest is the host.) But a queue runs all steps that you've put there, wanted or not. A `while` node asks, too. It asks somebody who sits next door.

# %% id=order-check tags=asserts
if device.simulated:
    assert us["Python"] > 4 * us["prepared"] > 5 * us["graph"]
    assert 5 < us["graph"] - us["while"] < 9
    assert 4 < us["while"] - us["queued"] < 7

# %% [markdown] id=fuse
# ### Fewer kernels
#
# Each kernel takes some 2 µs, however little it does. So it helps to have fewer of them: `made.fused_step()` says the same in 18 instead of 25. Each warp that multiplies finds the mean and the variance itself, so the seven kernels that only normalise go. It computes more, and is over sooner.

# %% id=fused-rung
rung("fused", lambda made: by_device(made, made.fused_step))
for name in ("while", "fused"):
    print(f"{name}: {us[name]:.1f} µs a token; its capture took {once[name]:.0f} µs")

# %% [markdown] id=one-kernel
# ## One kernel
#
# Let's take that to its end. `made.talk()` is a single launch for the whole text. One block runs through all layers with barriers in between, draws a token, and begins again, until the text is over. Between two tokens there's no launch, no gap, and no host.

# %% id=18-talk guess
# How long does a token take in one kernel, compared with the fused steps above?
#
# - `half`: less than half as long
# - `less`: somewhat less
# - `more`: up to half as long again
# - `much`: longer than that

# %% id=18-talk reveal
def alone(made):
    launch = made.talk().prepare().launch()
    return lambda: launch.sync_on(stream)


rung("one kernel", alone)
times = us["one kernel"] / us["fused"]
bounds = {"half": 0.5, "less": 1, "more": 1.5}
verdict = next((name for name, most in bounds.items() if times < most), "much")
picture = agt.compare_timelines(
    [traces["fused"], traces["one kernel"]],
    ["fused, a while node", "one kernel"],
    lanes=("host", "streams"),
)
saved = us["one kernel"] - us["fused"]
facts = {"saved": saved, "captured": once["fused"], "pays": np.ceil(once["fused"] / saved)}
reveal("18-talk", verdict, picture, each=us["one kernel"], **facts)

# %% id=18-talk lesson
# One bar without a gap, and longer than all of the others with theirs.

# %% id=18-talk told truth=much
# It takes {each:.0f} µs a token. A block lives on one SM, and this one has 16 warps. So each warp sums as many as 32 rows, one after the other, where in a step it has a single one. More than half of the time goes by in these sums, in which each addition waits for the one before, and nearly all of the rest in waiting for weights. Gaps are what you see in a timeline, and the 131 idle SMs are what you don't.
#
# But one kernel needs no capture. That of the fused steps took {captured:.0f} µs, and they save {saved:.0f} µs a token, so the capture pays from {pays:.0f} tokens on.

# %% id=talk-check tags=asserts
if device.simulated:
    assert 12 < us["while"] - us["fused"] < 18
    assert us["one kernel"] > 2 * us["fused"]
    assert traces["one kernel"].find("talk")[0].detail["bound"] == "latency"
    assert 4 * model.size == len(model.vocabulary) == 16 * 32  # rows, by 16 warps

# %% [markdown] id=crowd
# ## On an H200, and in company
#
# This is what it looks like on an NVIDIA H200, a token by Python and four by a graph that's asked after each. A profiler watched, and hosts differ, so look at the shape.

# %% id=h200-token-run
python, graph = (
    agt.Trace.load_recording(name).from_first()
    for name in ("18_token_by_python", "18_token_by_token")
)
done = [span.end for span in python.device_spans if span.kind == "d2h"]
begun = graph.find("launch graph token")[0].start  # behind the seating
graph = graph.between(begun, max(span.end for span in graph))
agt.compare_timelines(
    [python.between(done[0], done[1]).from_first(), graph.from_first()],
    ["By Python: one token", "By a graph: four tokens"],
    lanes=("host", "streams"),
    lesson="Above, Python first describes a step, which leaves no bar, and then makes "
    "26 calls. (The simulator spreads the describing over them.) Below, it's a call "
    "and a wait for each token.",
)

# %% [markdown] id=h200-token
# And these are the times without a profiler: medians of 15 runs of 64 tokens by `benchmarks/tokens.py`, on 29 November 2026. Eight of them are our ways, and PyTorch says the same texts with the same weights. **Bold** rows depend on the host more than on the GPU. (Why `reduce-overhead`, which captures graphs itself, is slower than a graph captured by hand, we don't know.)
#
# | | µs |
# |---|---|
# | **PyTorch, eager** | 1,784 |
# | **our steps, described anew by Python** | 1,042 (another host: 418) |
# | **PyTorch, `torch.compile` with `reduce-overhead`** | 298 |
# | PyTorch, as a CUDA graph, asked | 174 |
# | **prepared** (`prepare`) | 141 |
# | a graph, and the host asks after each token (`graph_on`, `sync_on`) | 69 |
# | a graph with a `while` node (`while_loop`) | 54 |
# | a graph, queued (`async_on`) | 51 |
# | a `while` node, fused (`fused_step`) | 47 |
# | a graph, queued, fused | 43 |
# | one kernel (`talk`) | 99 |

# %% [markdown] id=more-people
# Now let more people talk. A step says a token for *each* slot, and one kernel has a block for each. (Here each slot multiplies all weights with its own vector. Engines for many people multiply all vectors at once.)

# %% id=crowd-numbers tags=helpers
# What was measured, and a drawing of it.
SLOTS = 1, 8, 32, 128
H200 = {  # us for a token of all slots
    "a graph, asked": (69.3, 71.7, 89.5, 146.0),
    "a while node": (54.4, 58.8, 72.1, 126.7),
    "fused, a while node": (46.9, 50.4, 71.9, 161.5),
    "one kernel": (98.9, 101.2, 103.6, 104.1),
}


def draw_crowd():
    """What a token of all slots takes, by the number of slots."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    looks = ("o-0.5", "s-#cc79a7", "D-#882255", "^-#e69f00")  # one kernel: as in the timelines
    for (name, times), look in zip(H200.items(), looks):
        axes.plot(SLOTS, times, look[:2], color=look[2:], label=name)
    axes.set(xscale="log", xlabel="conversations (logarithmic)", ylabel="µs a step", ylim=(0, 170))
    axes.set_xticks(SLOTS, SLOTS)
    axes.minorticks_off()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    told = [f"{name}: {', '.join(f'{t:.0f}' for t in times)}" for name, times in H200.items()]
    shown(figure, f"µs of an H200 for a token of 1, 8, 32 and 128 conversations. {'; '.join(told)}.")
    print("\n".join(told))

# %% id=18-cross guess
# We measured 1, 8, 32 and 128 conversations. For one, the fused steps took 47 µs and one kernel 99; for eight, 50 and 101. At which of the four numbers is one kernel first quicker than all three other ways: a graph that's asked, a `while` node, and a `while` node with fused steps? Type it, or 0 for never.

# %% id=18-cross reveal
quickest = [min(H200, key=lambda name: H200[name][i]) for i in range(len(SLOTS))]
first = next((n for n, name in zip(SLOTS, quickest) if name == "one kernel"), 0)
reveal("18-cross", first, draw_crowd)

# %% id=18-cross told truth=128
# A lone block takes as long as 128 of them, each on an SM of its own, so its line is flat. A step spreads each slot over many SMs, so 128 slots have to share them, and it takes longer.
#
# And something turns around: fused steps are ahead for one conversation, and behind for 128. In them, each warp works the mean out anew, which takes time once every SM is busy. **Computing more to launch less pays only while the machine is idle.**

# %% id=crowd-check tags=asserts
assert quickest == ["fused, a while node"] * 2 + ["fused, a while node", "one kernel"]
assert H200["fused, a while node"][3] > H200["a while node"][3]

# %% [markdown] id=memory
# ## A memory that grows
#
# To find token 65, the attention of each layer compares token 64 with all that are there, itself included. For this it needs two vectors of each of them, the **key** and the **value**. They depend on nothing that comes later, so they can be kept: that's the **KV cache**. Without one, all tokens would go through the layers again for every new one.

# %% id=kept-drawing tags=helpers
def draw_kept(tokens=16):
    """What goes through the layers for each token, without a cache and with one."""
    figure, row = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    looks = {}
    for axes, kept in zip(row, (False, True)):
        for now in range(tokens):
            for place in range(now + 1):
                new = place == now or not kept
                look = {"fc": "#0072b2"} if new else {"fc": "#d6eaf8", "hatch": "//"}
                name = "goes through all layers" if new else "only its key and value are read"
                one = plt.Rectangle((place - 0.45, now - 0.45), 0.9, 0.9, ec="0.4", lw=0.5, **look)
                looks[name] = axes.add_patch(one)
        axes.set(xlim=(-0.7, tokens - 0.3), ylim=(tokens - 0.3, -0.7), xlabel="place in the text")
        axes.set_title("with a cache" if kept else "without")
    row[0].set_ylabel("step")
    figure.legend(handles=looks.values(), labels=looks, loc="outside lower center", ncols=2)
    shown(
        figure,
        "Two triangles of squares, a row for each step and a square for each token so far. Without "
        "a cache all squares are blue: they go through the layers. With a cache only the last "
        "square of each row is; the others are hatched: their keys and values are read.",
    )


draw_kept()

# %% [markdown] id=memory-cost
# For 64 tokens, the triangle has 2,080 squares, and only the 64 at its edge are worked out. (That saves work more than time: an idle GPU takes hardly longer for a few more tokens.)
#
# What does it cost? With us, a key and a value of 128 floats each in three layers are 3 KB a token. That's nothing.

# %% id=18-kept guess within=0.5
# Take a large model, of 70 layers and vectors of 8,192 floats, on GPUs with 141 GB each. Suppose that one of these GPUs held nothing but keys and values. For how many tokens is there room, of all conversations together?

# %% id=18-kept reveal
ours, large = (layers * 2 * size * 4 for layers, size in ((model.layers, model.size), (70, 8192)))
weights = sum(w.nbytes for w in model.weights.values())
room = 141e9 / large
reveal("18-kept", f"{room:.0f}", mb=large / 1e6, people=room // 1000)

# %% id=18-kept told truth=30736
# A single token takes {mb:.1f} MB, more than all the weights of our model. So the GPU is full with {people:.0f} people and a thousand tokens each. That's why engines keep keys and values in fewer bits, and share them where two texts begin alike. And it's why large models have several heads share one key and value (*grouped-query attention*: in Llama 2 70B, which has 80 layers, eight heads do, so there's room for eight times as many people).

# %% id=memory-check tags=asserts
assert (model.size, model.layers, ours) == (128, 3, 3072)
assert round((weights - model.weights["places"].nbytes) / 1e6, 1) == 2.6
assert large > weights
assert sum(now + 1 for now in range(64)) == 2080

# %% [markdown] id=challenge
# ## Challenge: six models, six texts
#
# Six people come, each with a model of their own, so no step can serve two. `rooms` has the models, with one seat each, and `lasts` says at which place each text ends at the latest: 6, 12, 6, 24, 6 and 12. Return a list of the texts, each with its tokens. (In `told`, `said` has the place of the last one.) Step by step, this takes 20083 µs: get below 1450. Then go on: the course's own answer takes 1006 µs. **Everything counts**, your captures too.
#
# These models have two layers, so a step is 18 launches, or 13 fused. A capture takes some 18 µs for each launch in it. Which of the eight ways in the table of the H200 is best for 6 tokens, and which for 24? (The check tries other lengths, too.)

# %% id=18-challenge starter
def told(made, stream):
    """The tokens of a text, once everything on the stream is done."""
    both = [agt.d2h(made.arrays[name].borrow()) for name in ("text", "said")]
    text, said = agt.zip(*both).sync_on(stream)
    return text[0, : said[0] + 1].tolist()


def say_all(rooms, lasts):
    stream = agt.create_stream()
    texts = []
    for made, last in zip(rooms, lasts):
        for _ in range(last):
            made.step().sync_on(stream)
        texts.append(told(made, stream))
    return texts

# %% id=18-challenge solution
# - stream = agt.create_stream()
# - texts = []
# - for made, last in zip(rooms, lasts):
# -     for _ in range(last):
# -         made.step().sync_on(stream)
# -     texts.append(told(made, stream))
# - return texts
# + streams = [agt.create_stream() for _ in rooms]
# + *others, longest = sorted(range(len(rooms)), key=lambda i: lasts[i])
# + for i in reversed(others):
# +     rooms[i].talk().async_on(streams[i])
# + launch = rooms[longest].fused_step().graph_on(streams[longest]).launch()
# + for _ in range(lasts[longest]):
# +     launch.async_on(streams[longest])
# + texts = {i: told(rooms[i], streams[i]) for i in [*others, longest]}
# + return [texts[i] for i in range(len(rooms))]

# %% id=18-challenge hints
# A capture costs about as much as describing and launching the step once, also of what's in a `while` node. How many tokens does it take until that has paid? And of the ways that capture nothing, which one doesn't ask the host after each token?
#
# Give each room a stream of its own, start all six with `async_on`, and ask `told` only then. `made.talk().async_on(stream)` is a single launch, and for 6 tokens it's the best. For 24, capture `fused_step()`.
#
# That's some 1,300 µs if you take the rooms in their order. While Python captures, nothing else is launched. So which rooms should have their launch before? And is it worth a second capture to have 12 tokens sooner?
#
# The longest text decides. How many tokens it may have is known, so its steps can be queued, without a `while` node.

# %% id=18-challenge explanation
# A text in one kernel costs the host a single call, so five of them are under way before the only capture begins, and it's hidden behind them. By itself, a text of 12 is sooner over with a graph. But each capture takes some 220 µs of Python's time, and here Python is what everybody waits for. (You can still be a little quicker than ours: not all five have to come before the capture.)

# %% id=18-challenge-check
check("18-challenge", say_all)

# %% [markdown] id=poem-text
# And now your program recites three lines of verse, made of nothing but this course.

# %% id=poem
begin = [("Love is", 13, 0.7), ("You", 18, 0.7), ("Life", 15, 1.3)]
if solved("18-challenge", say_all) is say_all:
    rooms = [seated(prompt, 14, seed=seed, heat=heat) for prompt, seed, heat in begin]
    print(*[model.decode(text).strip() for text in say_all(rooms, [14] * 3)], sep="\n")
else:
    print("No verse yet: it comes when the check above has accepted your program.")

# %% [markdown] id=key-points
# ## Key points
#
# - A language model says one token after the other, and each one is many short kernels. Driven by Python, the GPU waits most of the time.
# - A graph makes one call of them. If nobody asks after each token, the rest of the waiting goes as well: queue the steps, or let a `while` node decide.
# - When the calls are gone, the number of kernels counts. So fuse them, but pay with extra arithmetic only while SMs are idle.
# - One kernel for a conversation has no gaps and no capture, but only one SM. It's worth it for a short text, or when there are enough conversations for all SMs.
# - With a KV cache, each token goes through the layers once. All keys and values so far are still read at each step, and they fill the memory.
#
# **Next:** one conversation leaves most of an H200 idle. In [19_many_people](19_many_people.ipynb), many people talk to it at once.

# %% id=score
score("18")

# %% id=progress
progress("18")

# %% [markdown] id=encores
# ## Encores
#
# *For another day: where a key goes, and what happens if two graphs of one model meet.*

# %% [markdown] id=exercise-keep
# ### Exercise: keep it
#
# Write the part of `attention` that keeps. There's a block for each slot and a thread for each of `size` numbers. `qkv` has `3 * size` numbers for each slot: the query, then the key, then the value. In `keys` and `values`, each slot has `context` places of `size` numbers. Slot `s` reads its token at place `length[s]`, and that's where its key and value go. A free seat has length -1, and keeps nothing.

# %% id=18-keep starter
keep = r"""
extern "C" __global__ void keep(
    int size, int context, const int* length, const float* qkv,
    float* keys, float* values)
{
    int slot = blockIdx.x, i = threadIdx.x;
    keys[slot * size + i] = qkv[slot * 3 * size + size + i];
}
"""

# %% id=18-keep solution
# - int slot = blockIdx.x, i = threadIdx.x;
# - keys[slot * size + i] = qkv[slot * 3 * size + size + i];
# + int slot = blockIdx.x, i = threadIdx.x, place = length[slot];
# + if (place < 0) return;
# + int to = (slot * context + place) * size + i;
# + keys[to] = qkv[slot * 3 * size + size + i];
# + values[to] = qkv[slot * 3 * size + 2 * size + i];

# %% id=18-keep hints
# Where does place `p` of slot `s` begin? In front of it are `s` whole slots, and `p` places of its own.
#
# Number `i` of that place is at `(s * context + p) * size + i`. Look at `length[s]` before you use it.
#
# `int place = length[slot]; if (place < 0) return;` and then two assignments, from `size + i` and `2 * size + i` of the slot's part of `qkv`.

# %% id=18-keep explanation
# Every slot is at a place of its own, and one launch does for all of them. That's why people with texts of different lengths can share a step, and why a free seat costs next to nothing.

# %% id=18-keep-check
check("18-keep", keep)

# %% [markdown] id=two
# ### Two at a time
#
# Two threads of a server drive the same model. Each has a stream, and a graph of the step that it captured itself, and launches it when somebody waits for a token. What could go wrong?

# %% id=two-race
with agt.using("sim"):
    one, other = agt.create_stream(), agt.create_stream()
    made = slots(model, 2).sync()
    first, second = (made.step().graph_on(s).launch() for s in (one, other))
    try:
        first.async_on(one)
        second.async_on(other)
        agt.synchronize()
    except agt.errors.StreamRaceError as error:
        print(error)

# %% [markdown] id=two-read
# Two graphs, and one `length`. A model isn't only its weights, which everybody may read at once. It's also the arrays that a step writes on its way, and its slots. And each graph steps *all* slots, so on a GPU everybody's tokens would be skipped, doubled or mixed up, now and then, and only under load. (In SGLang, two streams of one engine [raced for arrays](https://github.com/sgl-project/sglang/pull/26380) that both used, and a test of its answers failed now and then.)
#
# There are three ways out: a single thread that launches a single graph for all slots, arrays of their own for each thread, or turns.

# %% [markdown] id=exercise-two
# ### Exercise: two graphs of one model
#
# `first` and `second` are launches of two graphs that write to the same arrays. Run `first` on the stream `one` and `second` on `other`, by turns, `times` each, beginning with `first`. The streams wait for each other, and you wait only at the end.

# %% id=18-two starter
def take_turns(first, second, one, other, times):
    for _ in range(times):
        first.async_on(one)
        second.async_on(other)
    one.synchronize()
    other.synchronize()

# %% id=18-two solution
#   first.async_on(one)
# + other.wait_event(one.record())
#   second.async_on(other)
# + one.wait_event(other.record())

# %% id=18-two hints
# Each launch has to wait for the one before it, which is on the other stream.
#
# `mark = one.record()` marks the end of what's on `one` by now, and `other.wait_event(mark)` holds `other` back until then.
#
# After `first` on `one`: `other.wait_event(one.record())`. After `second` on `other`: `one.wait_event(other.record())`, which is for the next round.

# %% id=18-two explanation
# It's right, and two streams now do what one could. If the two don't need each other's arrays, give each its own; if they do the same work, let one graph step all slots. Chapter 19 does.

# %% id=18-two-check
check("18-two", take_turns)

# %% id=score-encores
score("18")
