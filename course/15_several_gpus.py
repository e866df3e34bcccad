"""Source of notebooks/15_several_gpus.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Several GPUs
#
# Your program keeps a GPU busy from morning to night, and now somebody offers you a second one. Twice the GPUs, half the time? By now you're suspicious.
#
# **What does a second GPU cost, and who pays for it?**
#
# After this page you can split work over several GPUs, tell when a copy costs more than it saves, write an all-reduce by hand, find out why GPUs wait for each other forever, and train a network on two of them.
#
# | | |
# |---|---|
# | Time | 60 minutes, and 15 more for the encores |
# | You need | [04_combinators](04_combinators.ipynb), [06_await](06_await.ipynb) and [07_async_mlp](07_async_mlp.ipynb), but no GPU. If you have two or more, the page uses up to four |

# %% id=setup
import asyncio
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import (
    check, guess, hint, progress, reveal, score, several, shown, solution, solved,
)

device = agt.use("auto")
gpus = several(4)  # or as many as there are
device = gpus[0]
gpus

# %% [markdown] id=half-text
# ## Half each
#
# Let's begin with the obvious plan. A batch of pictures goes through a layer of a network, so each GPU gets half of the pictures, and, since it has a memory of its own, a copy of the weights.
#
# Here's the layer, and one new word: **`op.on(gpu)`** is the same operation, but it runs on that GPU. If it's a part of a larger one, events keep the order between the GPUs, and Python doesn't wait.

# %% id=layer
def layer(x, w):
    """Multiply a batch on the host by weights on a GPU, and bring the result back."""
    (m, k), n = x.shape, w.shape[1]

    def product(arrays):
        x, out = arrays
        return agt.sgemm_naive(m, n, k, 1.0, x, w, 0.0, out.partition(16, 16)).output()

    return agt.zip(agt.h2d(x, "x"), agt.zeros((m, n))).and_then(product).to_host()


def copies(host, gpus):
    """Put a copy of this array on each GPU, shared: many operations may read it."""
    return [agt.h2d(agt.pin(host)).share().on(gpu).sync() for gpu in gpus]


def some(*shape):
    return agt.pin(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))

# %% [markdown] id=exercise-split
# ### Exercise: a share for each GPU
#
# `weights` is a list of copies, one for each GPU, and `w.device` is the GPU that a copy is on. `recipe(x, w)` makes an operation like `layer`. Return *one* operation in which each GPU works on its share of the rows, all of them at the same time. It yields their results in order. The rows needn't divide evenly, so one share may have a row more than another, and `batch` may be filled when `split` has long returned.

# %% id=15-split starter
def split(recipe, batch, weights):
    return agt.zip(recipe(batch, weights[0]))  # one GPU does it all

# %% id=15-split solution
def split(recipe, batch, weights):
    parts = np.array_split(batch, len(weights))
    return agt.overlap(*[recipe(x, w).on(w.device) for x, w in zip(parts, weights)])

# %% id=15-split hints
# `np.array_split(batch, n)` cuts the rows into `n` parts, even if they don't divide evenly.
#
# Make an operation for each part with its own copy of the weights, and send it to where that copy is: `.on(w.device)`.
#
# Which combinator runs its parts side by side? `agt.overlap(*[... for x, w in zip(parts, weights)])`

# %% id=15-split explanation
# `on` decides the place, and `overlap` the time. Each arm finds its own copy of the weights, so nothing travels from GPU to GPU.

# %% id=15-split-check
check("15-split", split)

# %% [markdown] id=small-text
# Now the digits of chapter 07, 256 pictures of 64 pixels. One GPU first:

# %% id=small-one
split = solved("15-split", split)


def timed(op_of):
    """Return the trace of an operation. A real GPU runs it before, as a warm-up."""
    for _ in range(0 if device.simulated else 3):
        op_of().sync()
    with agt.record() as trace:
        op_of().sync()
    return trace


digits = agt.data.load_digits()
pictures = agt.pin(digits.batches.reshape(256, 64))
pair = gpus[:2]
small = copies(digits.w0, pair)
one_small = timed(lambda: split(layer, pictures, small[:1]))
print(f"one GPU: {one_small.metrics().makespan:.0f} µs")

# %% id=15-half guess within=0.15
# How many µs do two take, half the pictures each?

# %% id=15-half reveal
two_small = timed(lambda: split(layer, pictures, small))
picture = agt.compare_timelines(
    [one_small, two_small], ["256 digits, one GPU", "256 digits, two GPUs"]
)
reveal("15-half", f"{two_small.metrics().makespan:.0f}", picture)

# %% id=15-half lesson
# With two GPUs the host makes twice as many calls, and the second GPU has to wait for its turn.

# %% id=15-half told truth=120
# It got *slower*. Look at the kernels: each takes as long with half the rows as with all of them! One GPU had room for all 64 blocks at once, so there was nothing to gain. And Python has twice as much to say, one thing after the other, so the second GPU stands idle until Python is done with the first. That's the *pace* of chapter 07, and now two GPUs have to share it.

# %% [markdown] id=small-read
# ### When a second one pays
#
# A second GPU pays only if its share keeps it busy for longer than Python needs to describe it. Like this one:

# %% id=large-two
batch, weights = some(2048, 1024), copies(some(1024, 1024), pair)
one_large = timed(lambda: split(layer, batch, weights[:1]))
two_large = timed(lambda: split(layer, batch, weights))
gain = one_large.metrics().makespan / two_large.metrics().makespan
print(f"{gain:.2f} times as fast")
agt.compare_timelines(
    [one_large, two_large],
    ["2048 rows, one GPU", "2048 rows, two GPUs"],
    lesson="Copies and product are long now. On two GPUs each is half as long, and "
    "both work at once.",
)

# %% [markdown] id=large-read
# That's more like it. And real GPUs? We ran the four batches of chapter 07 on two H100s with NVLink (in 2026, with CuPy 14.2). With matrices of 512 x 512, two GPUs took longer than one. With 1024 x 1024 they were 1.4 to 1.6 times as fast, and with 2048 x 2048 1.8 to 1.9 times.

# %% id=check-half tags=asserts
assert {span.device for span in two_large.find("sgemm_naive")} == {gpu.name for gpu in pair}
if device.simulated:
    assert two_small.metrics().makespan > one_small.metrics().makespan
    assert 1.5 < gain < 2
    starts = {gpu.name: two_small.of(gpu.name).device_spans[0].start for gpu in pair}
    calls = [span for span in two_small if span.kind == "call"]
    assert starts[pair[1].name] > calls[len(calls) // 2 - 1].start

# %% [markdown] id=road-text
# ## The road between them
#
# So far, nothing went from GPU to GPU. But suppose that all the data is on GPU 0, and GPU 1 has nothing to do. **`x.to(gpu)`** is an operation that copies an array to another GPU, and it's quick: over NVLink, which joins two H200s of a box, 256 MB took 680 µs. That's 395 GB/s, seven times as much as the bus to the host, and our simulated GPUs have it, too.
#
# Here's some light work: doubling 32 MB.

# %% id=road-one
ADD = r"""
extern "C" __global__ void add(unsigned int n, float times, const float* x, float* y)
{
    unsigned int first = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int all = gridDim.x * blockDim.x;
    for (unsigned int i = first; i < n; i += all) y[i] += times * x[i];
}
"""
add_kernel = agt.Kernel(ADD)


def add(x, y, times=1.0):
    """Add `times` x to y, in place, and yield y."""
    blocks = min(1056, -(-y.size // 256))  # eight on each of 132 multiprocessors
    return add_kernel(y.size, times, x, y, grid=blocks, block=256).last()


def double(x):
    return add(x, x)


other = gpus[1]
halves = [agt.ones(1 << 22).sync() for _ in range(2)]  # 16 MB each, on GPU 0
here = timed(lambda: agt.overlap(*[double(x.borrow()) for x in halves]))
print(f"GPU 0 alone: {here.metrics().makespan:.0f} µs")

# %% id=road-two
def there_and_back(x):
    return x.to(other).and_then(double).and_then(lambda y: y.to(gpus[0])).on(other)


# %% id=15-road guess within=0.2
# Now the second half is copied to GPU 1, doubled there and copied back, while GPU 0 doubles the first. How many µs does that take? (Python begins with GPU 0.)

# %% id=15-road reveal
helped = timed(lambda: agt.overlap(double(halves[0].borrow()), there_and_back(halves[1].borrow())))
picture = agt.compare_timelines([here, helped], ["GPU 0 alone", "GPU 1 helps"])
errand = helped.of(other.name).device_spans
errand_us = max(span.end for span in errand) - errand[0].start
facts = {"errand": errand_us, "python": helped.metrics().makespan - errand_us}
reveal("15-road", f"{helped.metrics().makespan:.0f}", picture, **facts)

# %% id=15-road lesson
# GPU 1's kernel is as short as those of GPU 0, but it stands between two long copies.

# %% id=15-road told truth=160
# Two copies and a little work in between take GPU 1 {errand:.0f} µs. The other {python:.0f} are Python's: it serves GPU 0 first, and waits at the end.
#
# With friends like that... The road is fast, but a GPU's own memory is much faster: a copy of 16 MB takes 46 µs in the picture, and the kernel that reads all of it and writes it again takes 8. A copy costs the same, whether you do one thing with the data afterwards or a thousand. So move it once, and let it stay.

# %% id=check-road tags=asserts
if device.simulated:
    copied = helped.find("peer copy")
    assert [round(span.duration) for span in copied] == [46, 46]
    assert [round(span.duration) for span in helped.find("add")] == [8, 8]
    assert [round(errand_us), round(helped.metrics().makespan - errand_us)] == [107, 53]
    assert sum(span.duration for span in copied) > 4 * max(span.duration for span in helped.find("add"))
    assert helped.metrics().makespan > 2.5 * here.metrics().makespan

# %% [markdown] id=ring-text
# ## All for one
#
# Sometimes GPUs *have* to talk. When two of them learn from different pictures, each finds corrections of its own, and both need the sum. Everybody contributes an array, and everybody gets the sum of all: that's an **all-reduce**.
#
# GPUs that do something together are a **group**, and the number of each is its **rank**. `group.on_each(recipe)` runs `recipe(rank)` on all of them at the same time. In a recipe, a rank can `send` an array to another one, which has to `recv` it. Let's have two GPUs swap their arrays (simulated ones, because this goes wrong):

# %% id=deadlock
partners = agt.group("sim:0", "sim:1")


def swap(rank):
    mine, room = agt.full(1000, float(rank)), agt.zeros(1000)
    sent = partners.send(mine, to=1 - rank)
    return sent.and_then(lambda _: partners.recv(room, source=1 - rank)).to_host()


with agt.using("sim:0"), agt.record() as stuck:
    try:
        await partners.on_each(swap)
    except agt.errors.CollectiveError as error:
        print(str(error).rpartition(" failed: ")[2])  # the end of it says who waits

stuck.plot(
    title="After you. No, after you!",
    lanes=("host", "streams"),
    lesson="Both GPUs are in a send that only waits (dotted), and nobody gets as far "
    "as the receive. The bars stop where the plug is pulled.",
)

# %% [markdown] id=deadlock-read
# Our simulated `send` ends when the other side receives. Both send first, so both wait forever. That's a **deadlock**. To a profiler it's work: two kernels that never end. With NVIDIA's NCCL, a `send` *may* block like this, and a small one may also slip through into a buffer. So a program may pass its tests, and hang with a larger array. (And NCCL doesn't say who waits for whom.)
#
# The way out is to talk and listen at the same time: **`group.exchange(x, to, into, source)`** sends `x` to one rank while it receives from another. With that, we can write an all-reduce by hand. The ranks sit in a **ring**. In each step, a rank passes what it last received to the right, and adds what comes from the left to its own sum:

# %% id=ring
ranks = agt.group(*gpus)
SIZE = 1 << 21  # 8 MB
shelf = [
    [agt.full(SIZE, rank + 1.0).on(gpu).sync() for _ in range(3)]
    for rank, gpu in enumerate(gpus)
]


def around(rank):
    total, out, into = (array.borrow() for array in shelf[rank])
    right, left = (rank + 1) % ranks.size, (rank - 1) % ranks.size
    steps = []
    for _ in range(ranks.size - 1):
        steps += [ranks.exchange(out, right, into, left), add(into, total)]
        out, into = into, out
    return agt.zip(*steps)


if not device.simulated:
    await ranks.on_each(around)
with agt.record() as by_hand:
    await ranks.on_each(around)
by_hand.plot(
    title="A ring by hand",
    lanes=("host", "streams"),
    lesson="Each GPU comes later than the one before, and waits for the others "
    "(dotted). Then they go in step. The slivers between the exchanges are the adds. "
    "An exchange of 8 MB takes about as long as the copy of 16 MB did: in the model, "
    "as with NCCL, it starts more slowly than a copy, and moves fewer bytes a second.",
)

# %% [markdown] id=ring-read
# Don't be fooled by the long bars. The GPU that comes first waits *inside* its exchange until its neighbours are there. Our simulated GPUs draw that dotted, but a profiler shows it as work.
#
# Our ring is right, but wasteful: with four GPUs, each sends its whole array three times. So cut the array into as many parts as there are ranks, and send only *one part* in each step:

# %% id=ring-drawing tags=helpers
def draw_ring(n=3):
    """Draw the parts of each rank, before the first step and after each of the others."""
    whose = [[{rank} for _ in range(n)] for rank in range(n)]
    figure, axes = plt.subplots(1, 2 * n - 1, figsize=(9.6, 2.4))
    for s, ax in enumerate(axes):
        came = [(rank - s) % n for rank in range(n)]  # the part that each rank has just received
        if s:
            sent = [whose[(rank - 1) % n][i] for rank, i in enumerate(came)]
            for row, i, part in zip(whose, came, sent):
                row[i] = row[i] | part
        ax.imshow([[len(part) for part in row] for row in whose], cmap="Blues", vmin=0, vmax=1.6 * n)
        for rank, row in enumerate(whose):
            for i, part in enumerate(row):
                summed = "all" if len(part) == n else "+".join(map(str, sorted(part)))
                ax.text(i - 0.08, rank, summed, ha="center", va="center", size=9)
        for rank, i in enumerate(came if s else ()):
            ax.add_patch(plt.Rectangle((i - 0.47, rank - 0.47), 0.94, 0.94, fill=False, lw=1.5))
            curve = "arc3,rad=0.3" if rank == 0 else "arc3"  # from the last rank back to the first
            style = {"arrowstyle": "-|>", "color": "tab:red", "lw": 1.5, "connectionstyle": curve}
            ax.annotate("", (i + 0.35, rank), (i + 0.35, (rank - 1) % n), arrowprops=style)
        ax.set_title(f"step {s}: {'add' if s < n else 'replace'}" if s else "at first", size=10)
        ax.set_xticks(range(n), [f"part {i}" for i in range(n)], size=7)
        ax.set_yticks(range(n), [f"rank {rank}" for rank in range(n)] if s == 0 else [""] * n, size=9)
    figure.tight_layout()
    shown(
        figure,
        "Five tables of three ranks and three parts. After step 2, rank 0 has the sum of part 1, rank 1 that "
        "of part 2, and rank 2 that of part 0. After step 4, all ranks have all sums.",
    )


draw_ring()

# %% [markdown] id=ring-picture
# The numbers say whose arrays a part adds up, and the arrows what has just moved. In step 1, rank 0 sends its part 0 to rank 1, rank 1 its part 1 to rank 2, and rank 2 its part 2 to rank 0. Each adds what comes to its own copy of that part, so rank 0 now has 0+2 in part 2. In step 2, each sends on the part that it has just added to. Now every rank has one complete sum, and in the last two steps these go around and replace what's there.
#
# So each of n ranks sends 2(n - 1) parts of 1/n of its array. That's less than twice the array.

# %% [markdown] id=exercise-ring
# ### Exercise: a better ring
#
# Write one rank's side, for any number of ranks. `parts` is this rank's array in `group.size` parts, `room` is a spare array for what comes in, and `add(x, y)` adds x to y. The version below stops when every rank has one complete sum. Return an operation after which it has all. Follow rank 0 through the picture first!

# %% id=15-ring starter
def ring(group, rank, parts, room, add):
    n = group.size
    right, left = (rank + 1) % n, (rank - 1) % n
    steps = []
    for s in range(n - 1):
        out, into = (rank - s) % n, (rank - s - 1) % n
        steps += [group.exchange(parts[out], right, room, left), add(room, parts[into])]
    return agt.zip(*steps)  # and then?

# %% id=15-ring solution
# - return agt.zip(*steps)  # and then?
# + for s in range(n - 1):
# +     out, into = (rank + 1 - s) % n, (rank - s) % n
# +     steps += [group.exchange(parts[out], right, parts[into], left)]
# + return agt.zip(*steps)

# %% id=15-ring hints
# It takes `n - 1` more steps. Nothing is added in them: what comes is complete, so it can go right into the part, without `room`.
#
# Begin with the part that this rank has completed, number `(rank + 1) % n`. After that, each step sends what has just come, so the number goes down by one.
#
# A second loop over `s`: send `parts[(rank + 1 - s) % n]`, and receive into `parts[(rank - s) % n]`.

# %% id=15-ring explanation
# In the course's answer, each rank sends only to its neighbour, and all of them do so at the same time. Its first loop alone is called a *reduce-scatter*, and the second an *all-gather*.

# %% id=15-ring-check
check("15-ring", ring)

# %% [markdown] id=library-text
# **`group.all_reduce`** does all of it. You may give it the arrays of all ranks in one call, and on real GPUs NCCL does the work:

# %% id=library-before
all_there = max(by_hand.of(gpu.name).find("exchange")[0].start for gpu in gpus)
hands = max(span.end for span in by_hand.device_spans) - all_there
adds = sum(span.duration for span in by_hand.of(gpus[0].name).find("add"))
print(f"Once all GPUs were there, our wasteful ring took {hands:.0f} µs,")
print(f"{adds:.0f} of them adding.")

# %% id=15-library guess within=0.08
# The library cuts the array into parts, and adds while it moves them. How many µs does it take?

# %% id=15-library reveal
totals = timed(lambda: ranks.all_reduce([arrays[0].borrow() for arrays in shelf]))
picture = agt.compare_timelines(
    [by_hand.from_first(), totals.from_first()],
    ["a ring by hand", "the library"],
    lanes=("host", "streams"),
)
took = min(span.duration for span in totals.find("all_reduce"))
calls = [sum(span.kind == "call" for span in trace) for trace in (by_hand, totals)]
facts = {"times": hands / took, "few": calls[1], "many": calls[0]}
reveal("15-library", f"{took:.0f}", picture, **facts)

# %% id=15-library lesson
# Above, three exchanges and three adds on each GPU. Below, one bar, whose solid part is less than half as long. And Python was done much sooner.

# %% id=15-library told truth=69
# That's {times:.1f} times as fast, and Python has {few} launches instead of {many}.

# %% id=check-ring tags=asserts
sends = stuck.find("send")
assert [span.device for span in sends] == ["sim:0", "sim:1"]
assert not stuck.find("recv")
if device.simulated:
    firsts = [by_hand.of(gpu.name).find("exchange")[0].start for gpu in gpus]
    assert firsts == sorted(firsts)
    assert len({span.end for span in totals.find("all_reduce")}) == 1
    assert hands > 2 * took
    assert calls == [24, 4]
    assert [span.waits for span in sends] == [[(span.start, span.end)] for span in sends]
    waited = [by_hand.of(gpu.name).find("exchange")[0].waits for gpu in gpus]
    assert [until for ((_, until),) in waited[:-1]] == [firsts[-1]] * 3
    assert waited[-1] == []

# %% [markdown] id=order-text
# ## Out of step
#
# One call with the arrays of all ranks can't go wrong. But mostly each rank has a program of its own. Here two GPUs reduce two arrays of the same size. GPU 0 begins with `a`, and GPU 1 with `b`.

# %% id=order-program
partners = agt.group("sim:0", "sim:1")


def two_sums(rank):
    a, b = agt.full(3, 1.0 + rank), agt.full(3, 10.0 + 10 * rank)
    if rank == 0:
        sum_a, sum_b = partners.all_reduce(a), partners.all_reduce(b)
        return agt.zip(sum_a, sum_b).first().to_host()
    sum_b, sum_a = partners.all_reduce(b), partners.all_reduce(a)
    return agt.zip(sum_b, sum_a).last().to_host()

# %% id=15-order-swapped guess
# `a` is 1 on GPU 0 and 2 on GPU 1, and `b` is 10 and 20. What do they get for the sum of `a`, GPU 0 and GPU 1? (Type two numbers, such as "3 3". If they wait for each other forever, type "hang", and if the mistake is found, "error".)

# %% id=15-order-swapped reveal
with agt.using("sim:0"):
    sums = await partners.on_each(two_sums)

reveal("15-order-swapped", f"{sums[0][0]:.0f} {sums[1][0]:.0f}")

# %% id=15-order-swapped told truth="21 12"
# That's 1 + 20 and 2 + 10: an `a` and a `b` each time. A rank's *first* all-reduce meets the other's first, whatever you call your arrays. If their sizes fit, you get a wrong number, and a network that learns badly and won't say why. If they don't, this package raises an error that names both lines, and bare NCCL hangs or gives you garbage.

# %% [markdown] id=order-read
# ### The rule
#
# **All ranks have to call the same collectives, of the same size, in the same order**. "Whatever is ready first" isn't an order.

# %% [markdown] id=exercise-order
# ### Exercise: one order for all
#
# Each rank has a dictionary, `ready`, with an array for each layer of a network, in the order in which they were ready. That order differs from rank to rank, and a rank may have nothing for a layer. `shapes` has the shapes of *all* layers and is the same everywhere. Return one operation that yields the sums of all layers, in the order of `shapes`. A rank that has nothing contributes zeros.

# %% id=15-order starter
def reduce_all(group, ready, shapes):
    return agt.zip(*[group.all_reduce(array) for array in ready.values()])

# %% id=15-order solution
def reduce_all(group, ready, shapes):
    arrays = [ready[k] if k in ready else agt.zeros(s) for k, s in shapes.items()]
    return agt.zip(*[group.all_reduce(array) for array in arrays])

# %% id=15-order hints
# What do all ranks agree on? Go through that, and not through `ready`.
#
# `group.all_reduce` takes an array, or an operation that makes one, such as `agt.zeros(shape)`. Make zeros only where you need them.

# %% id=15-order explanation
# `shapes` is the agenda, and every rank follows it, whether it has something to say or not. Frameworks do the same: they agree on an order when the model is made, and stick to it. (It's the order in which the calls *run* that counts, and not the one in which you write them down.)

# %% id=15-order-check
check("15-order", reduce_all)

# %% id=check-order tags=asserts
assert (sums[0][0], sums[1][0]) == (21, 12)
mixed = agt.group("sim:0", "sim:1")
with agt.using("sim:0"):
    try:
        await mixed.on_each(lambda rank: mixed.all_reduce(agt.ones(3 + rank)))
        refused = ""
    except agt.errors.CollectiveError as error:
        refused = str(error)
assert "all_reduce of 3" in refused
assert "all_reduce of 4" in refused

# %% [markdown] id=train-text
# ## Learning together
#
# Now we train a network of three layers, each a matrix of weights. (As in chapter 07, there's no ReLU between them, and we still aren't telling anybody.) In a step of training, each GPU goes
#
# 1. **forward**: it sends pictures of its own through the layers, and what comes out, minus what should, is the error;
# 2. **backward**: from the last layer to the first, it works out the layer's **gradient**, which says how to correct its weights, and passes the error on to the layer before;
# 3. through an **all-reduce**, so that both have the sum of their gradients;
# 4. and to the **update**. Both correct their weights alike, so the copies stay alike.
#
# Below, boxes are arrays, and the numbers say what runs when. (Folded away are the kernel for all products, and `network`, which makes the arrays.)

# %% id=network-drawing tags=helpers
def draw_network(n=3):
    """Draw the arrays of one GPU, and what makes one from another, in order."""
    figure, ax = plt.subplots(figsize=(9.6, 3.4))

    def array(x, y, name, color="white"):
        style = {"boxstyle": "round,pad=0.35", "fc": color, "ec": "0.3"}
        ax.text(x, y, name, ha="center", va="center", size=9, bbox=style)

    def arrow(start, end, label, color="0.3", up=0.17):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.5})
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + up
        ax.text(x, y, label, ha="center", va="center", size=9, color=color)

    for i in range(n):
        arrow((3 * i + 0.5, 2), (3 * i + 2.5, 2), f"{i + 1}. fw {i}")
        ax.text(3 * i + 1.5, 1.83, f"times w{i}", ha="center", va="center", size=8, color="0.4")
        step = n + 2 + 2 * (n - 1 - i)
        if i:
            arrow((3 * i + 2.6, 1), (3 * i + 0.4, 1), f"{step + 1}. back {i}")
        arrow((3 * i + 2.75, 0.86), (3 * i + 1.8, 0.17), "")
        ax.text(3 * i + 2.45, 0.42, f"{step}. grad {i}", size=9, color="0.3")
        array(3 * i + 1.5, 0, f"gradient {i}", "#fbe3b5")
        arrow((3 * i + 1.5, -0.15), (3 * i + 1.5, -0.72), "", "tab:red")
        array(3 * i, 2, "pictures" if i == 0 else f"through {i}")
        array(3 * i + 3, 1, f"error {i + 1}", "#dce9f5")
    array(3 * n, 2, "output")
    arrow((3 * n, 1.86), (3 * n, 1.15), "")
    ax.text(3 * n + 0.1, 1.5, f"{n + 1}. minus target,\n   in its own place", size=9, va="center")
    ax.hlines(-0.78, 0.7, 3 * n - 0.7, color="tab:red")
    words = "all-reduces with the other GPU, then updates"
    ax.text(1.5 * n, -1, words, ha="center", size=9, color="tab:red")
    ax.set(xlim=(-0.8, 3 * n + 1.9), ylim=(-1.15, 2.4))
    ax.axis("off")
    figure.tight_layout()
    shown(
        figure,
        "Forward goes along the top: 1. fw 0, 2. fw 1, 3. fw 2. At the end, 4. the target is taken off the "
        "output. The errors come back below: 5. grad 2, 6. back 2, 7. grad 1, 8. back 1, 9. grad 0. Each "
        "gradient goes down to the all-reduces with the other GPU, and behind them are the updates.",
    )


draw_network()

# %% id=product tags=helpers
product_kernel = agt.Kernel(
    r"""
// c = a @ b, where a is m x k and b is k x n; a_row is the step from row to row
extern "C" __global__ void product(unsigned int m, unsigned int n, unsigned int k,
                                   const float* a, unsigned int a_row, unsigned int a_col,
                                   const float* b, unsigned int b_row, unsigned int b_col, float* c)
{
    __shared__ float tile_a[8][9], tile_b[8][9];
    unsigned int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 8, left = blockIdx.x * 8;
    unsigned int ax = a_col == 1 ? x : y, ay = a_col == 1 ? y : x;  // neighbours read neighbours
    unsigned int bx = b_col == 1 ? x : y, by = b_col == 1 ? y : x;
    float sum = 0.0f;
    for (unsigned int t = 0; t < k; t += 8) {
        tile_a[ay][ax] = top + ay < m && t + ax < k ? a[(top + ay) * a_row + (t + ax) * a_col] : 0.0f;
        tile_b[by][bx] = t + by < k && left + bx < n ? b[(t + by) * b_row + (left + bx) * b_col] : 0.0f;
        __syncthreads();
        for (unsigned int i = 0; i < 8; i++) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (top + y < m && left + x < n) c[(top + y) * n + left + x] = sum;
}
""",
    reference=lambda m, n, k, a, _, a_col, b, __, b_col, c: (
        (a.reshape(m, k) if a_col == 1 else a.reshape(k, m).T)
        @ (b.reshape(k, n) if b_col == 1 else b.reshape(n, k).T)
    ),
)


def product(a, b, out, turn_a=False, turn_b=False):
    """Compute out = a @ b, with `a` or `b` transposed if you say so."""
    (m, n), k = out.shape, a.shape[0] if turn_a else a.shape[1]
    a_steps, b_steps = (1, m) if turn_a else (k, 1), (1, k) if turn_b else (n, 1)
    blocks = out.borrow().partition(8, 8)
    return product_kernel(m, n, k, a.borrow(), *a_steps, b.borrow(), *b_steps, blocks).map(lambda _: None)

# %% id=network tags=helpers
LAYERS = 3


def network(gpu, x, target, weights):
    """One GPU's copy: what goes through the layers, the errors that come back, weights and gradients."""

    def there(array):
        return agt.h2d(array).on(gpu).sync()

    through = [there(x), *[there(np.zeros_like(x)) for _ in weights]]
    # the last error is the output minus the target, in the output's own array
    errors = [*[there(np.zeros_like(x)) for _ in weights], through[-1]]
    w, gradients = [there(w) for w in weights], [there(np.zeros_like(w)) for w in weights]
    return SimpleNamespace(
        gpu=gpu, target=there(target), through=through, errors=errors, w=w, gradients=gradients
    )

# %% [markdown] id=network-text
# A layer's gradient is the product of what went in, transposed, and the error that came back:

# %% id=passes
def forward(net):
    layers = [
        product(net.through[i], net.w[i], net.through[i + 1]).named(f"fw {i}")
        for i in range(LAYERS)
    ]
    # errors[-1] is the output's array: the target is taken off, and the error stays
    return agt.zip(*layers, add(net.target.borrow(), net.errors[-1].borrow(), -1.0))


def backward(net, i):
    error = net.errors[i + 1]
    gradient = product(net.through[i], error, net.gradients[i], turn_a=True)
    if i == 0:
        return gradient.named("grad 0")
    back = product(error, net.w[i], net.errors[i], turn_b=True)
    return agt.zip(gradient.named(f"grad {i}"), back.named(f"back {i}"))


def update(net, rate):
    pairs = zip(net.gradients, net.w)
    return agt.zip(*[add(g.borrow(), w.borrow(), -rate) for g, w in pairs])

# %% [markdown] id=step-text
# `each` runs the same thing on every GPU. `combine` gets two lists of operations, from the last layer to the first: the gradients and their all-reduces. The plain way is one after the other:

# %% id=step
def each(nets, act):
    return agt.overlap(*[act(net).on(net.gpu) for net in nets]).map(lambda _: None)


def step(nets, combine, group=None, rate=0.0):
    layers = range(LAYERS - 1, -1, -1)
    gradients = [each(nets, lambda net, i=i: backward(net, i)) for i in layers]
    reduces = []
    if group:
        shares = [[net.gradients[i].borrow() for net in nets] for i in layers]
        reduces = [group.all_reduce(share) for share in shares]
    updates = each(nets, lambda net: update(net, rate))
    return agt.zip(each(nets, forward), combine(gradients, reduces), updates)


def afterwards(gradients, reduces):
    return agt.zip(*gradients, *reduces)


def halves_of(*arrays):
    return zip(pair, *[np.split(array, 2) for array in arrays])


DIM, PICTURES = 2048, 320
noise = np.random.default_rng(1).random((2, PICTURES, DIM), dtype=np.float32)
same = [np.eye(DIM, dtype=np.float32)] * LAYERS
duo = agt.group(*pair)
nets = [network(gpu, x, target, same) for gpu, x, target in halves_of(*noise)]
whole = [network(pair[0], *noise, same)]

alone = timed(lambda: step(whole, afterwards))
after = timed(lambda: step(nets, afterwards, duo))
agt.compare_timelines(
    [alone, after],
    ["a step on one GPU", "on two, reduced afterwards"],
    lanes=("host", "engines"),
    highlight=[None, "all_reduce"],
    lesson="On two GPUs all products are half as long. Behind them come three "
    "all-reduces, and then the slivers of the update.",
)

# %% [markdown] id=step-read
# See the three all-reduces near the end? While they talk, nobody works. And yet the last layer's gradient was ready long before. (The gap in GPU 0's lane is another wait: it was launched first, and an `overlap` ends with its last arm, so `each` waits for both.)

# %% [markdown] id=exercise-overlapped
# ### Exercise: talk while you work
#
# Write another `combine`. The `gradients` have to run in the given order, and `reduces[i]` needs `gradients[i]` to be over. But that's all: no gradient should have to wait for an all-reduce, and no all-reduce for a later gradient. (Mind the order of the arms.)

# %% id=15-overlapped starter
def overlapped(gradients, reduces):
    return agt.zip(*gradients, *reduces)

# %% id=15-overlapped solution
def overlapped(gradients, reduces):
    op = agt.value(None)
    for gradient, reduce in zip(reversed(gradients), reversed(reduces)):
        op = gradient.and_then(lambda _, reduce=reduce, rest=op: agt.overlap(reduce, rest))
    return op

# %% id=15-overlapped hints
# Think of the first gradient, and of the rest. After the first gradient, two things may go side by side: its all-reduce, and the whole rest.
#
# The rest has the same form. So build it from its end, or write a function that calls itself.
#
# Begin with `op = agt.value(None)`. For each pair, from the last to the first: `op = gradient.and_then(lambda _, reduce=reduce, rest=op: agt.overlap(reduce, rest))`

# %% id=15-overlapped explanation
# Each gradient waits only for the one before it. And the all-reduces can't overtake each other, because a group keeps the calls of each rank in order.

# %% id=15-overlapped-check
check("15-overlapped", overlapped)

# %% id=hidden-before
overlapped = solved("15-overlapped", overlapped)
talk = sum(span.duration for span in after.find("all_reduce")) / 2
step_us = after.metrics().makespan
print(f"A step takes {step_us:.0f} µs, {talk:.0f} of them for three all-reduces.")

# %% id=15-hidden guess within=0.02
# How many µs does it take if they run beside the backward pass? (We're strict here, because the first answer that comes to mind isn't far off.)

# %% id=15-hidden reveal
during = timed(lambda: step(nets, overlapped, duo))
picture = agt.compare_timelines(
    [after, during],
    ["reduced afterwards", "reduced while the next gradient is computed"],
    lanes=("host", "engines"),
    highlight=["all_reduce", "all_reduce"],
)
gained = after.metrics().makespan - during.metrics().makespan
reveal("15-hidden", f"{during.metrics().makespan:.0f}", picture, gained=gained)

# %% id=15-hidden lesson
# The first two all-reduces lie below products now. The last one stands alone, as it must.

# %% id=15-hidden told truth=1979
# That saves {gained:.0f} µs. Two of the three have found something to hide behind. But the products beside them are slower.
#
# The third can't hide, because by then there's nothing left to compute. And hiding isn't free: an all-reduce is a kernel, which takes multiprocessors from the product beside it.

# %% [markdown] id=hidden-read
# ### On real ones
#
# Two H100s took 3.5 ms for this step with the talk afterwards, and 3.4 with it hidden. One alone took 5.5.
#
# Two H200s, four layers of 4096 x 4096, and CuPy's products (November 2026):
#
# | | batch of 4096 | batch of 1024 |
# |---|---|---|
# | one GPU | 32.6 ms | 8.50 ms |
# | two, reduced afterwards | 17.8 ms | 5.89 ms |
# | two, reduced while computing | 17.8 ms | 5.41 ms |
# | two that don't talk at all | 16.7 ms | 4.84 ms |
#
# The smaller the batch, the more of the step is talk: gradients are as large as the weights, however few the pictures. On the left, hiding gained nothing! NCCL took 24 multiprocessors. With 16 (`NCCL_MAX_CTAS=16`) it's 17.3 ms. And with none? `x.to(gpu)` needs no multiprocessor, because a GPU has engines for copies. Two H100s took 18.1 ms with NCCL, and 17.3 when each sent its gradients to the other and both added.

# %% id=check-train tags=asserts
reduced = [during.of(gpu.name).find("all_reduce") for gpu in pair]
assert [len(spans) for spans in reduced] == [LAYERS, LAYERS]
if device.simulated:
    hid = [during.overlap_between([span], "product") / span.duration for span in reduced[0]]
    assert min(hid[:2]) > 0.9
    assert hid[2] < 0.1
    assert after.overlap_between("all_reduce", "product") == after.metrics().hidden == 0
    assert 0.6 < during.metrics().hidden < 0.7
    assert during.metrics().makespan < 0.95 * after.metrics().makespan
    assert after.metrics().makespan - during.metrics().makespan < 2 * reduced[0][2].duration  # not free
    gains = [alone.metrics().makespan / trace.metrics().makespan for trace in (after, during)]
    assert 1.5 < gains[0] < gains[1] < 2

# %% [markdown] id=payoff-text
# ## Two readers, one mind
#
# That network learned nothing, because its rate was 0 and its pictures were noise. Here's the same code with digits: 64 x 64 weights, and 32 pictures for each GPU in each step. It learns *which* digit it sees from digits that some people wrote, and then reads 256 by others.

# %% id=payoff
pixels, labels = agt.data.training_digits()
answers = np.eye(64, dtype=np.float32)[labels]  # a 1 in the place of the digit
blank = np.zeros((32, 64), np.float32)
plain = [np.eye(64, dtype=np.float32)] * LAYERS
readers = [network(gpu, blank, blank, plain) for gpu in pair]


def study(i):
    """Put the next 32 pictures on each GPU, and make a step with them."""
    at = np.arange(64 * i, 64 * (i + 1)) % len(labels)
    arms = []
    halves = halves_of(agt.pin(pixels[at]), agt.pin(answers[at]))
    for net, (gpu, x, t) in zip(readers, halves):
        new = agt.memcpy(net.through[0].borrow(), x), agt.memcpy(net.target.borrow(), t)
        arms.append(agt.zip(*new).on(gpu))
    return agt.zip(agt.overlap(*arms), step(readers, overlapped, duo, rate=0.14 / 64))


def read(net):
    """Return the digits that this GPU's copy sees in the 256 pictures."""
    first, second, third = (agt.d2h(w.borrow()).on(net.gpu).sync() for w in net.w)
    return (pictures @ first @ second @ third)[:, :10].argmax(1)


truth, marks = digits.labels.ravel(), []
for i in range(26):
    if i:
        study(i - 1).sync()
    marks.append([(read(net) == truth).mean() for net in readers])

# %% id=payoff-picture tags=helpers
figure, axes = plt.subplot_mosaic(
    [["marks", *"abcdef"], ["marks", *"ghijkl"]], figsize=(9.6, 2.6), width_ratios=[4, *[1] * 6]
)
mark_axes = axes.pop("marks")
for gpu, style, mark in zip(pair, ("o-", "x"), np.transpose(marks)):
    mark_axes.plot(100 * mark, style, label=gpu.name)
mark_axes.set(title="% of 256 pictures read right", xlabel="steps", ylim=(0, 100))
mark_axes.legend()
twelve = zip(axes.values(), pictures[3::21], read(readers[1])[3::21], truth[3::21], strict=False)
for ax, picture, number, right in twelve:
    ax.imshow(picture.reshape(8, 8), cmap="gray_r")
    words, color = (f"{number}", "black") if number == right else (f"not {number}: {right}", "tab:red")
    ax.set_title(words, size=10, color=color)
    ax.axis("off")
shown(
    figure,
    f"The marks climb from {marks[0][0]:.0%} to {marks[25][0]:.0%}, and those of both GPUs are the same.",
    "On the right are twelve of the pictures, and above each what GPU 1 reads, misses in red.",
)

# %% id=payoff-costs
drawers = [[agt.d2h(w.borrow()).on(net.gpu).sync() for w in net.w] for net in readers]
print("All weights are the same on both, to the last bit:", np.array_equal(*drawers))
single = [network(pair[0], np.vstack([blank] * 2), np.vstack([blank] * 2), plain)]
costs = [
    timed(lambda: step(single, afterwards)).metrics().makespan,
    timed(lambda: step(readers, overlapped, duo)).metrics().makespan,
]
print("A step takes {:.0f} µs on one GPU, and {:.0f} on two.".format(*costs))

# %% [markdown] id=payoff-read
# Each GPU has seen only half of the pictures, and both have learned from all of them. They agree in every bit, because both make the same correction with the same sum.
#
# Faster than one GPU? Not at 64 x 64! But you know the prices now: describing work costs the host's time, moving data costs time, and talk costs whatever you can't hide.

# %% id=check-payoff tags=asserts
assert marks[0][0] < 0.2
assert marks[25][0] > 0.75
assert all(a == b for a, b in marks)
assert np.array_equal(*drawers)
if device.simulated:
    assert costs[0] < costs[1]

# %% [markdown] id=key-points
# ## Key points
#
# - `op.on(gpu)` chooses the place, and `overlap` lets several places work at the same time.
# - A second GPU pays only if each part keeps its GPU busy for longer than Python needs to describe it.
# - The road between GPUs is slower than a GPU's own memory. Move data once, and let it stay.
# - In a good ring, each rank sends less than twice its array.
# - All ranks call the same collectives in the same order. Otherwise you may get wrong numbers and no error, or, on bare NCCL, wait forever.
# - Start an all-reduce as soon as its numbers are there, and work beside it. Only the last one can't be hidden.
#
# The [glossary](../docs/glossary.md) has the words. **Next:** in [16_several_machines](16_several_machines.ipynb) the other GPU is in another box, and the road gets narrow.

# %% id=score
score("15")

# %% id=progress
progress("15")

# %% [markdown] id=exercise-place
# ## Encore: move it once
#
# *For a day with data that's in the wrong place.*
#
# ### Exercise: move it once
#
# `parts[i]` is to go through `steps` rounds of `work`, one or more, on `gpus[i]`, all parts at the same time. They start on GPU 0 and have to end there. `work(x)` changes an array in place and yields it. The version below is right, and spends its life on the road.

# %% id=15-place starter
def both(parts, gpus, work, steps):
    def rounds(part, gpu):
        op = agt.value(part)
        for _ in range(steps):
            op = op.and_then(lambda x: x.to(gpu)).and_then(work)
            op = op.and_then(lambda x: x.to(gpus[0]))
        return op.on(gpu)

    return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])

# %% id=15-place solution
def both(parts, gpus, work, steps):
    def rounds(part, gpu):
        op = part.to(gpu)
        for _ in range(steps):
            op = op.and_then(work)
        return op.and_then(lambda x: x.to(gpus[0])).on(gpu)

    return agt.overlap(*[rounds(part, gpu) for part, gpu in zip(parts, gpus)])

# %% id=15-place hints
# Which of the three things in the loop has to be done again in each round?
#
# Begin with `op = part.to(gpu)`. In the loop there's only `.and_then(work)`.

# %% id=15-place explanation
# Two copies for each part, however many rounds there are. For the part that's at home already, `to` copies nothing.

# %% id=15-place-check
check("15-place", both)

# %% [markdown] id=encore
# ## Encore: neighbours
#
# *For a day with a problem that's too large for one GPU.*
#
# Heat spreads over a sheet of metal: in each step, a point becomes the mean of itself and the points above and below it. Each GPU has a band of the sheet. Inside of it that's easy, but at its edges it needs a row that its neighbour has. Such borrowed rows are called a **halo**.
#
# So a band comes in three parts: its `top` row and its `bottom` row, which the neighbours need, and the `middle`, which nobody else wants. `spread(before, here, after, out)` makes a step with one part, given what lies above and below it.

# %% id=spread
spread_kernel = agt.Kernel(r"""
extern "C" __global__ void spread(
    int columns, int n_before, int n,
    const float* before, const float* here, const float* after, float* out)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;  // a thread walks down its column
    if (col >= columns) return;
    const float* last = before + (n_before - 1) * columns;
    for (int row = 0; row < n; row++) {
        int i = row * columns + col;
        float above = row > 0 ? here[i - columns] : last[col];
        float below = row < n - 1 ? here[i + columns] : after[col];
        out[i] = (above + here[i] + below) / 3.0f;
    }
}
""")


def spread(before, here, after, out):
    (n, columns), above = here.shape, before.shape[0]
    parts = [array.borrow() for array in (before, here, after, out)]
    shape = {"grid": -(-columns // 128), "block": 128}
    return spread_kernel(columns, above, n, *parts, **shape).last()

# %% [markdown] id=exercise-halo
# ### Exercise: talk to the neighbours
#
# Make one step with one rank's band. `old` and `new` are its three parts before and after. `halo` is a pair of rows, for what comes from above (rank - 1) and from below (rank + 1). They're full of zeros, which is right where there's no neighbour: `exchange` takes None for nobody. The version below talks first and works afterwards. Let both go on at the same time. Python launches one arm of an `overlap` after the other, so begin with the one that takes longest.

# %% id=15-halo starter
def advance(group, rank, old, halo, new, spread):
    top, middle, bottom = old
    above, below = halo
    up = rank - 1 if rank > 0 else None
    down = rank + 1 if rank < group.size - 1 else None
    return agt.zip(
        group.exchange(bottom, down, above, up),
        group.exchange(top, up, below, down),
        spread(above, top, middle, new[0]),
        spread(top, middle, bottom, new[1]),
        spread(middle, bottom, below, new[2]),
    )

# %% id=15-halo solution
def advance(group, rank, old, halo, new, spread):
    top, middle, bottom = old
    above, below = halo
    up = rank - 1 if rank > 0 else None
    down = rank + 1 if rank < group.size - 1 else None
    edges = agt.zip(
        group.exchange(bottom, down, above, up),
        group.exchange(top, up, below, down),
        spread(above, top, middle, new[0]),
        spread(middle, bottom, below, new[2]),
    )
    return agt.overlap(spread(top, middle, bottom, new[1]), edges)

# %% id=15-halo hints
# Which of the three parts needs nothing from a neighbour?
#
# Two arms: the middle, and everything else in order.
#
# `agt.overlap(middle, agt.zip(both exchanges, top, bottom))`, with the middle in front.

# %% id=15-halo explanation
# The middle is nearly everything, and it needs no neighbour. While it's computed, there's plenty of time to talk.

# %% id=15-halo-check
check("15-halo", advance)

# %% [markdown] id=halo-text
# A step on two GPUs, with 1000 rows each:

# %% id=halo-run
advance = solved("15-halo", advance)


def talk_first(group, rank, old, halo, new, spread):
    (top, middle, bottom), (above, below) = old, halo
    up = rank - 1 if rank > 0 else None
    down = rank + 1 if rank < group.size - 1 else None
    talk = group.exchange(bottom, down, above, up), group.exchange(top, up, below, down)
    edges = spread(above, top, middle, new[0]), spread(middle, bottom, below, new[2])
    return agt.zip(*talk, spread(top, middle, bottom, new[1]), *edges)


def sheets(gpu, *rows):
    return [agt.ones((n, 1024)).on(gpu).sync() for n in rows]


bands = [
    (sheets(gpu, 1, 998, 1), sheets(gpu, 1, 1), sheets(gpu, 1, 998, 1)) for gpu in pair
]


async def heated(how):
    def recipe(rank):
        parts = [[array.borrow() for array in arrays] for arrays in bands[rank]]
        return how(duo, rank, *parts, spread).map(lambda _: None)

    if not device.simulated:
        await duo.on_each(recipe)
    with agt.record() as trace:
        await duo.on_each(recipe)
    return trace.from_first()


first, meanwhile = await heated(talk_first), await heated(advance)
agt.compare_timelines(
    [first, meanwhile],
    ["talk first", "talk while you work on the middle"],
    lesson="Above, both GPUs talk before they work on the middle. Below, beside it.",
)

# %% [markdown] id=halo-read
# The talk is hidden completely. Above, it held up GPU 1 for 33 µs: two exchanges of 7, and Python, which launches one thing after the other. But Python has one more `overlap` to describe for each GPU, so GPU 1 begins 21 µs later, and of 344 µs only 16 are gained. That's the price of the first section. With wider rows there's more talk to hide, and no more of Python.

# %% id=check-halo tags=asserts
if device.simulated:
    assert first.overlap_between("exchange", "spread") == 0
    assert meanwhile.of(pair[0].name).overlap_between("exchange", "spread") > 10
    took = [max(s.end for s in trace.device_spans) - trace.spans[0].start for trace in (first, meanwhile)]
    assert [round(us) for us in took] == [344, 328]
    exchanges, spreads = (first.of(pair[1].name).find(name) for name in ("exchange", "spread"))
    assert [round(spreads[0].start - exchanges[0].start), round(exchanges[0].duration)] == [33, 7]
    begun = [trace.of(pair[1].name).device_spans[0].start for trace in (first, meanwhile)]
    assert round(begun[1] - begun[0]) == 21
