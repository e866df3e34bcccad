"""Source of notebooks/04b_sharing_and_owning.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Sharing and owning
#
# A rod is hot in some places and cold in others, and we let it cool down. In each step, every point moves towards the mean of its neighbours. A kernel reads the old temperatures from one array and writes the new ones to another, and the next step reads those.
#
# So a step needs two arrays. With 100,000 points, that's 0.8 MB. A GPU with four megabytes should do for twenty steps, and for a thousand. But look below: the program dies. **Who's holding all that memory?**
#
# After this page you can say which of two readers runs what they share, take a tuple apart without running its source twice, give an array away, share it or lend it, and say when its memory is given back.
#
# | | |
# |---|---|
# | Time | 45 to 60 minutes |
# | You need | [04_combinators](04_combinators.ipynb) |

# %% id=setup
import weakref
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
device

# %% id=heat
heat = agt.Kernel(r"""
extern "C" __global__ void heat(unsigned int n, const float* src, float* dst)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float left = i > 0 ? src[i - 1] : src[i];
        float right = i < n - 1 ? src[i + 1] : src[i];
        dst[i] = 0.5f * src[i] + 0.25f * (left + right);
    }
}
""")
rod = agt.pin(np.repeat([0, 80, 20, 50], 25_000).astype(np.float32))


def stepper(n):
    def step(src, dst):
        """Read `src`, write `dst`, and yield both."""
        launch = heat(n, src, dst.partition(256))
        return launch.map(lambda used: (used[0], used[1].unpartition()))

    return step


def first_try(x, step, rounds):
    op = agt.h2d(x)
    for _ in range(rounds):
        op = op.and_then(
            lambda old: step(old, agt.zeros(x.size)).last()
        )  # keep only the new one
    return op.to_host()

# %% id=full
def refused(error, run):
    """Run something that should fail with this error, and print what it says."""
    try:
        run()
    except error as caught:
        print(caught)
    else:
        raise AssertionError("this should have been refused")


with agt.using("sim") as sim:
    small = agt.SimDevice(spec=replace(sim.spec, memory_bytes=4_000_000))

with agt.using(small):
    refused(
        agt.errors.OutOfMemoryError,
        lambda: first_try(rod, stepper(rod.size), 20).sync(),
    )

# %% [markdown] id=full-read
# In each step we keep the new array and drop the old one, and still the memory fills up. A real GPU has more memory, so there it only takes longer.
#
# There are three suspects: our own names, the operations that we build, and whatever runs them. To find the culprit, we need to know who has an array, from when, and until when. Let's begin with two who want the same one.

# %% [markdown] id=two-readers
# ## Two readers
#
# In chapter 04, `shared()` let two arms use the result of one operation. The operation ran once, and the other arm waited for it. But which arm runs it? Here are two readers of a small table. Arm A first computes a large product, and only then takes the table. Arm B copies the table back right away. And here are three programs with the two.

# %% id=first-code
N = 2048
numbers = agt.pin(np.arange(1000, dtype=np.float32))


def product(matrix, number):
    """The matrix times a vector that is full of `number`."""
    vector, out = agt.full(N, number), agt.zeros(N).partition(128)
    return agt.matvec_naive(N, N, matrix, vector, out).output()


def watch(make):
    """Run the operation twice, as the first time may be slow, and record the second."""
    make().sync()
    op = make()
    with agt.record() as trace:
        op.sync()
    return trace.from_first()


def table_and_arms():
    table = agt.h2d(numbers).named("t").shared()
    large = product(agt.ones((N, N)), 2.0).named("p")
    a = large.and_then(lambda _: table)
    b = table.to_host().named("b")
    return table, a, b


def ab():
    _, a, b = table_and_arms()
    return agt.overlap(a, b)


def ba():
    _, a, b = table_and_arms()
    return agt.overlap(b, a)


def tab():
    table, a, b = table_and_arms()
    return table.and_then(lambda _: agt.overlap(a, b))

# %% [markdown] id=first-facts
# Running the product takes 140 µs. The table travels in 2 µs, either way, but Python needs about 10 to submit such a copy.

# %% id=04b-first guess
# Put `ab`, `ba` and `tab` in order by when arm B has its copy, the earliest first. Type three words.

# %% id=04b-first reveal
orders = {"ab": watch(ab), "ba": watch(ba), "tab": watch(tab)}
a_first, b_first, t_first = orders.values()
by_b = {name: trace.find("d2h")[0].end for name, trace in orders.items()}
by_all = {name: trace.metrics().makespan for name, trace in orders.items()}
programs = ["ab: overlap(a, b)", "ba: overlap(b, a)", "tab: the table, then overlap(a, b)"]
picture = agt.compare_timelines([*orders.values()], programs, lanes=("host", "streams"))
truth = " ".join(sorted(by_b, key=by_b.get))
facts = {f"all_{name}": us for name, us in by_all.items()}
reveal("04b-first", truth, picture, **by_b, **facts)

# %% id=04b-first lesson
# The table (blue) is copied behind the product, or before it. B's copy (green) follows.

# %% id=04b-first told truth="ba tab ab"
# B has its copy after {ba:.0f} µs in `ba`, {tab:.0f} in `tab`, and {ab:.0f} in `ab`, where it doesn't compute anything and waits for almost the whole program. Two colleagues need the same printout. One of them says she'll fetch it, but she goes to lunch first, and the other one waits. In `ab`, Python submits arm A first. When it gets to the table, nobody has run that yet, so A runs it, on A's own stream and therefore *behind the product*. Then comes B, finds that A is already fetching the table, and waits for A's event. **The reader that is submitted first runs the shared source.**
#
# If B is in a hurry, put B first. Or copy the table in front of both, as in the third picture: then B only waits until Python has submitted A. It isn't quite free, because the product begins later, and latest in `ba`, after all of B's calls. All is done after {all_ab:.0f} µs in `ab`, {all_tab:.0f} in `tab` and {all_ba:.0f} in `ba`.

# %% id=first-check tags=asserts
assert a_first.runs_before("matvec_naive", "h2d")
assert a_first.runs_before("h2d", "d2h")
assert b_first.runs_before("h2d", "d2h")
assert not b_first.runs_before("matvec_naive", "h2d")
assert t_first.runs_before("h2d", "matvec_naive")
if device.simulated:
    assert [*sorted(by_b, key=by_b.get)] == ["ba", "tab", "ab"]
    assert [*sorted(by_all, key=by_all.get)] == ["ab", "tab", "ba"]

# %% [markdown] id=unzip
# ## Taking a tuple apart
#
# Many operations yield a tuple, and often you want its entries to go different ways. `first()` and `last()` pick one entry. But each pick runs the source once *for itself*, so two picks are two runs. `unzip` is `shared` for tuples: it makes one operation for each entry, and they all share one run of the source. Here we use it on `agt.dup`, which yields an array and a copy of it:

# %% id=unzip-run
original, copied = agt.arange(4).and_then(agt.dup).unzip(2)
agt.zip(original.to_host(), copied.to_host()).sync()

# %% [markdown] id=exercise-unzip
# ### Exercise: take it apart
#
# `pair` is an operation that yields two arrays. `f` and `g` are functions that take an operation and return an operation. Write `halves(pair, f, g)`: one operation that yields the result of `f` for the first array and of `g` for the second. `pair` should run once.

# %% id=04b-unzip starter
def halves(pair, f, g):
    return agt.zip(f(pair.first()), g(pair.last()))  # runs pair twice

# %% id=04b-unzip solution
def halves(pair, f, g):
    a, b = pair.unzip(2)
    return agt.zip(f(a), g(b))

# %% id=04b-unzip hints
# `first()` and `last()` each make an operation of their own out of `pair`, so `pair` would run twice.
#
# `unzip` makes one operation for each entry, and they all share one run of `pair`.
#
# `a, b = pair.unzip(2)`, then `return agt.zip(f(a), g(b))`.

# %% id=04b-unzip explanation
# Both halves share the same source. It runs when the first of them needs it, and never again.

# %% id=04b-unzip-check
check("04b-unzip", halves)

# %% [markdown] id=ownership
# ## Whose array is it?
#
# So much for operations. An array is a different matter, because it has memory on the device. Here `scaled` gets an array of ones, and works on it in place:

# %% id=owned-make
scale = agt.Kernel(r"""
extern "C" __global__ void scale(unsigned int n, float factor, float* x)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = factor * x[i];
    }
}
""")


def scaled(array, factor):
    return scale(array.size, factor, array.partition(256)).output()


mine = agt.ones(4).sync()
doubled = scaled(mine, 2).sync()

# %% [markdown] id=owned-text
# What does `mine` hold now?

# %% id=owned-run
refused(agt.errors.UseAfterMoveError, lambda: agt.d2h(mine))  # nothing is run here

# %% [markdown] id=ownership-table
# The rule is this: **an array has one owner, and when you pass it to an operation, you give it away.** You gave `mine` to `scaled`. In return you own whatever the operation yields, here `doubled`. The error says where the array went: into `partition()`, which `scaled` calls. And because ownership is checked while you *build*, the error comes from the very line that uses the array once too often, before anything has run. And an operation that owns an array can run only once. After that, it has used up its right to the array.
#
# (That's one suspect less for our riddle: `first_try` gives each old array to `step` and takes only the new one back, so it's not our names.)

# %% id=once-check tags=asserts
op = agt.d2h(doubled)
op.sync()
refused(agt.errors.UseAfterMoveError, op.sync)

# %% [markdown] id=three-ways
# If you need an array again, there are two other ways to pass it:
#
# | | you write | the operation gets | and you? |
# |---|---|---|---|
# | **owned** | `x` | the array | it's gone, unless the result hands it back |
# | **shared** | `x = x.share()`, once, and then `x` | a handle to it, *for reading* | you have a handle, too |
# | **borrowed** | `x.borrow()` | the right to use it | you keep it |
#
# None of the three copies anything. Two names are easy to mix up: `op.shared()` makes an *operation* run only once, and `x.share()` lets many read one *array*.
#
# %% id=ways-drawn tags=helpers
def draw_ways():
    """Who has the array, for each of the three ways to pass it."""
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
    ways = (
        ("owned: x", "was yours", "has it now", (":", "0.6"), ("-", "k")),
        ("shared: x.share()", "reads", "reads", ("-", "k"), ("-", "k")),
        ("borrowed: x.borrow()", "own it", "may use it", ("-", "k"), ("--", "k")),
    )
    box = {"boxstyle": "round", "fc": "0.95", "ec": "0.3"}
    for axes, (title, you, op, mine, its) in zip(panels, ways, strict=True):
        for x, name, word, (style, colour) in ((0, "you", you, mine), (2, "operation", op, its)):
            axes.plot([x, 1], [1, 0], style, color=colour, lw=2, zorder=0)
            axes.text(x, 1, name, ha="center", va="center", bbox=box)
            axes.text(x + (0.3 if x == 0 else -0.3), 0.5, word, ha="right" if x == 0 else "left")
        axes.text(1, 0, "the array", ha="center", va="center", bbox={**box, "fc": "#f0b840"})
        axes.set(title=title, xlim=(-0.9, 2.9), ylim=(-0.3, 1.35))
        axes.axis("off")
    shown(
        figure,
        "Three pictures of you, an operation and an array. Owned: a dotted line to you, who had it, and a "
        "solid one to the operation, which has it now. Shared: two solid lines, both read. Borrowed: a "
        "solid line to you, who own it, and a dashed one to the operation, which may use it.",
        "There's one array in each picture, and it stays where it is.",
    )


draw_ways()

# %% [markdown] id=lent-text
# Let's lend an array of ones to two operations.

# %% id=lent-code
def on_loan():
    mine = agt.ones(4).sync()
    look = agt.d2h(mine.borrow())
    triple = scaled(mine.borrow(), 3)
    triple.sync()
    triple.sync()
    return look.sync()

# %% id=04b-lent guess
# What is the first number that `on_loan()` returns? Or type `error`, if you expect one.

# %% id=04b-lent reveal
try:
    found = round(float(on_loan()[0]))
except agt.errors.AsyncGpuError:
    found = "error"
reveal("04b-lent", found)

# %% id=04b-lent told truth=9
# It was one array from first to last. A borrower may write, and what it writes to is *your* array, like a book that comes back with remarks in the margin. `triple` has only borrowed the array, so it has nothing to give on, and can run as often as you like. And `look` was built first, but it reads when it *runs*.

# %% [markdown] id=lent-over-text
# ### The end of a loan
#
# A loan ends when you give the array away. If an operation still holds the loan, it can't run any more. (`del mine` isn't giving away: you lose the name, but the operation keeps the array alive, and can run.)

# %% id=lent-over
mine = agt.ones(4).sync()
reader = agt.d2h(mine.borrow())
mine = scaled(mine, 2).sync()  # given away, and got back
refused(agt.errors.UseAfterMoveError, reader.sync)

# %% id=lent-over-check tags=asserts
owner = agt.ones(4).sync()
still_runs = agt.d2h(owner.borrow())
del owner
assert still_runs.sync().all()

# %% [markdown] id=lent-order
# And nothing orders two operations that hold loans, unless they're in one chain, or you wait for one before you start the other. A shared operation records an event, for others to wait for, but a loan doesn't. If one arm of an `overlap` writes to the array and another one reads it, that's a race:

# %% id=lent-race
with agt.using("sim"):
    lender = agt.ones(4).sync()
    reads_and_writes = agt.overlap(scaled(lender.borrow(), 2), agt.d2h(lender.borrow()))
    refused(agt.errors.StreamRaceError, reads_and_writes.sync)

# %% [markdown] id=shared-text
# A loan may write, but nobody may write to a shared array. That would surprise everybody who reads it, so it's refused.

# %% id=shared-check tags=asserts
weights = agt.ones(4).sync().share()
refused(agt.UsageError, lambda: scaled(weights, 2))

# %% [markdown] id=ownership-when
# So which of the three should you use? Use *owned* arrays along a chain, where each stage hands on to the next. Use *shared* ones for data that many read and nobody changes, such as weights. And *lend* an array out when you'll need it yourself afterwards. A borrowed array can't go to `agt.spawn`, because its task may still be running when you give the array away:

# %% id=lent-spawn
lent = agt.d2h(mine.borrow())
refused(agt.errors.BorrowedSpawnError, lambda: agt.spawn(lent))
lent.sync()  # this is fine, because we wait for it

# %% [markdown] id=who-takes-what
# Here's who takes what:
#
# | you pass it to | owned | shared | borrowed |
# |---|---|---|---|
# | a reader: an input of a kernel, the source of `memcpy`, `dup` | comes back in the result | so does the handle | so does the loan |
# | `d2h`, which yields numbers only | gone | your handle stays | stays yours |
# | a writer: an output of a kernel, the target of `memcpy` | comes back, changed | refused | yours is changed |
# | `spawn`, in an operation | fine | fine | refused |

# %% id=who-takes-what-check tags=asserts
copy_kernel = agt.Kernel(r"""
extern "C" __global__ void copied(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
""")
passed = {"owned": lambda x: x, "shared": lambda x: x.share(), "borrowed": lambda x: x.borrow()}
readers = {
    "a kernel": lambda x: copy_kernel(4, x, agt.zeros(4).partition(4)).first(),
    "memcpy": lambda x: agt.memcpy(agt.zeros(4).sync(), x).last(),
    "dup": lambda x: agt.dup(x).first(),
}
writers = {
    "a kernel": lambda x: copy_kernel(4, agt.zeros(4), x.partition(4)).output(),
    "memcpy": lambda x: agt.memcpy(x, agt.zeros(4).sync()).first(),
}
for mode, give in passed.items():
    assert all(reads(give(agt.ones(4).sync())).sync().mode == mode for reads in readers.values())
    for writes in writers.values():
        owner = agt.ones(4).sync()
        written = give(owner)
        try:
            back = writes(written).sync()
        except agt.UsageError:
            assert mode == "shared"
        else:
            assert back.mode == mode != "shared"
            assert not agt.d2h(owner if mode == "borrowed" else back).sync().any()
    x = agt.ones(4).sync()
    held = give(x)
    agt.d2h(held).sync()
    assert (mode == "owned") == held.moved
    if mode != "borrowed":
        assert (await agt.spawn(agt.d2h(give(agt.ones(4).sync())))).all()

# %% [markdown] id=exercise-lend
# ### Exercise: give, share, lend or copy?
#
# `matrix` (`n` x `n`) and `draft` are yours now. The vector `v` is only there for you to use: its owner goes on working with it, and needs its numbers as they are. All three are on the device. `times(matrix, vector)` is an operation that yields their product, and `twice(array)` one that doubles an array in place. Both yield their numbers on the host. Write `orders(matrix, v, draft, times, twice)`, which returns five operations:
#
# | | yields | and the caller |
# |---|---|---|
# | 0, 1 | the matrix times ones, and times twos | spawns them |
# | 2 | the matrix times `v` | waits for it |
# | 3 | `v` doubled | waits for it |
# | 4 | `draft` doubled | spawns it |
#
# Memory is dear, so make no array that an order doesn't need, copy only what you must, and that on the device. How you copy is up to you.

# %% id=04b-lend starter
def orders(matrix, v, draft, times, twice):
    n = v.size
    return [
        times(matrix, agt.ones(n)),
        times(matrix, agt.full(n, 2)),
        times(matrix, v),
        twice(v),
        twice(draft),
    ]

# %% id=04b-lend solution
def orders(matrix, v, draft, times, twice):
    n = v.size
    matrix = matrix.share()
    return [
        times(matrix, agt.ones(n)),
        times(matrix, agt.full(n, 2)),
        times(matrix, v.borrow()),
        twice(agt.dup(v.borrow()).last()),
        twice(draft),
    ]

# %% id=04b-lend hints
# Ask three things about each array. Who needs it afterwards? Does anybody write to it? May its reader outlive its owner?
#
# The matrix has three readers, and two of them are spawned, so a loan won't do. `v` still has an owner, so all that you can do is borrow it. And whoever writes to a loan writes to the owner's numbers.
#
# Share `matrix` once. Pass `v.borrow()` to the reader, and let `twice` write to a copy, `agt.dup(v.borrow()).last()`. Nobody else needs `draft`, so give it away.

# %% id=04b-lend explanation
# All four ways, and each for its reason: the matrix has many readers and no single owner, `v` has an owner who waits for you, one order writes to what he needs, and nobody will miss the draft.

# %% id=04b-lend-check
check("04b-lend", orders)


# %% [markdown] id=memory
# ## When does the memory go back?
#
# Nobody calls `free` on this page. So when is an array's memory given back? Here are three large matrices, each passed in another way. We run the operations, then delete our names for the matrices, and then the list of operations. (You needn't read the folded cell, which draws this.)

# %% id=lives-code tags=helpers
def lives(program):
    """Record a program, with lanes that show from when to when arrays have memory.

    `see(array, lane, text)` begins a stretch, which ends when the memory is given back; `say(lane, text)`
    ends it, and begins another one.
    """
    lanes, known = {}, weakref.WeakSet()

    def now():
        return sim.now() - begun

    def see(array, lane="memory", text=""):
        if array.memory not in known:
            known.add(array.memory)
            stretches = [[now(), None, text]]
            lanes.setdefault(lane, []).append(stretches)
            weakref.finalize(array.memory, lambda: stretches[-1].__setitem__(1, now()))
        return array

    def say(lane, text):
        (stretches,) = lanes[lane]
        stretches[-1][1] = now()
        stretches.append([now(), None, text])

    with agt.using("sim", policy=agt.SingleStream()), agt.record() as trace:
        begun = sim.now()
        program(see, say)
    made = [span.end for span in trace if span.name.startswith("malloc")]
    for lane, arrays in lanes.items():
        for first, *_ in arrays:
            first[0] = max(us for us in made if us <= first[0])  # seen a little later
        trace = trace.with_lane(lane, [stretch for stretches in arrays for stretch in stretches])
    return trace.from_first()


def nobodys(say):
    """Say whose arrays these are to which you have no name."""
    for lane, text in zip(("given away", "shared", "lent"), ("the operation's",) * 2 + ("still lent",)):
        say(lane, text)


def with_memory(cooled):
    """A recording of twenty steps, with a lane for the memory of the rod's arrays."""

    def program(see, say):
        def step(src, dst):
            pair = [x.map(see) if isinstance(x, agt.DeviceOp) else see(x) for x in (src, dst)]
            return stepper(rod.size)(*pair)

        cooled(rod, step, 20).sync()

    return lives(program)


def arrays(trace):
    """At most how many arrays have memory at the same time."""
    known = [span for span in trace if span.kind == "range"]
    return max(sum(other.start <= span.start < other.end for other in known) for span in known)


# %% id=lives-run
def three_ways(see, say):
    given, shared, lent = [
        see(agt.ones((N, N)).sync(), name, "yours")
        for name in ("given away", "shared", "lent")
    ]
    agt.work(70, "made")
    shared = shared.share()
    ops = [product(given, 1), product(shared, 2), product(lent.borrow(), 3)]
    say("given away", "the operation's")
    say("shared", "yours and the operation's")
    say("lent", "yours, and lent to the operation")
    for op in ops:
        op.sync()
    agt.work(100, "have run")
    del given, shared, lent, op
    nobodys(say)
    agt.work(180, "names deleted")
    ops.clear()
    agt.work(140, "ops deleted")


# %% id=04b-lives guess
# At the line `"names deleted"`, all three have run and none of the three has a name any more. How many of the matrices still have their memory?

# %% id=04b-lives reveal
ways = lives(three_ways)
(names_deleted,) = ways.find("names deleted")
alive = sum(s.start < names_deleted.end - 1 < s.end for s in ways if s.kind == "range")
picture = ways.plot(title="Three matrices and their memory", lanes=("host", "streams"))
reveal("04b-lives", alive, picture)

# %% id=04b-lives lesson
# The lower lanes say who has each matrix, from when its memory is there until it's given back.

# %% id=04b-lives told truth=3
# Even the one that was given away! Deleting the names freed nothing. The three ways say who may *use* an array. How long its memory stays is another question, with one answer for all three: **at least until the last name and the last operation that refer to it are gone.** An operation that has run can't use its array any more, and still refers to it. So 50 MB were kept by a forgotten list of operations, all of which had run. In a notebook that happens easily, because its names live until you delete them.

# %% [markdown] id=lives-read
# ### Back to the rod
#
# In `first_try`, no name and no list holds an old array. Here's another program, which waits after each step:

# %% id=peak-code
def step_by_step(x, step, rounds):
    now = agt.h2d(x).sync()
    for _ in range(rounds):
        now = step(now, agt.zeros(x.size)).last().sync()
    return agt.d2h(now)

# %% id=04b-peak guess
# `first_try` and `step_by_step` each do twenty steps, on a GPU with plenty of memory. At most how many arrays of the rod are there at the same time, in the one and in the other? Type two numbers.

# %% id=04b-peak reveal
stairs, single = with_memory(first_try), with_memory(step_by_step)
titles = [
    f"{name}: at most {arrays(trace)} arrays, {arrays(trace) * rod.nbytes / 1e6:.1f} MB"
    for name, trace in [("first_try", stairs), ("step_by_step", single)]
]
picture = agt.compare_timelines([stairs, single], titles, lanes=("streams",))
reveal("04b-peak", f"{arrays(stairs)} {arrays(single)}", picture)

# %% id=04b-peak lesson
# Above, each step adds an array, and all go back together. Below, each goes back after its last step.

# %% id=04b-peak told truth="21 2"
# That's one for the upload and one for each step. There's the culprit: **the run itself**. In `step_by_step` a run is over after each step, and takes nothing with it, so two arrays are enough, but Python waits twenty times. `first_try` submits all twenty steps as one run, and never asks how far the device has got. So it can't know which kernels are done, and in this course a run keeps every array that it touches until all of its work is done. CuPy and PyTorch free sooner: the next array on the *same stream* may get the memory at once, because whatever writes to it queues behind the kernel that still reads the old array. The catch is an array that a *second* stream uses, too. PyTorch has to be told of that, by `record_stream`, and with CuPy you keep the array until that stream is done.
#
# With a hundred million points, `first_try` fills the 141 GB of the simulated H200 in step 352. The cure needs no clever pool: use the same two arrays again and again.

# %% id=memory-check tags=asserts
(deleted,) = ways.find("ops deleted")
for lane in ("given away", "shared", "lent"):
    end = max(span.end for span in ways if span.detail.get("lane") == lane)
    assert abs(end - deleted.start) < 1
stretches = [span for span in stairs if span.kind == "range"]
assert (len(stretches), arrays(stairs), arrays(single)) == (21, 21, 2)
assert single.metrics().makespan > stairs.metrics().makespan
assert max(span.start for span in stretches) < min(span.end for span in stretches)
assert 352 * 4e8 <= sim.spec.memory_bytes < 353 * 4e8

# %% [markdown] id=challenge
# ## Challenge: a rod that fits
#
# `step(src, dst)` is an operation that reads the old temperatures from `src`, writes the new ones to `dst`, and yields both arrays, in this order. Write `cooled(x, step, rounds)`: one operation that uploads the host array `x`, does `rounds` steps with as few arrays as possible, and yields the temperatures at the end, on the host. As it stands, it's our first try, and twenty steps take 481 µs. Get below 390. To see yours, draw `watch(lambda: cooled(rod, stepper(rod.size), 20)).plot()`.

# %% id=04b-challenge starter
def cooled(x, step, rounds):
    op = agt.h2d(x)
    for _ in range(rounds):
        op = op.and_then(lambda old: step(old, agt.zeros(x.size)).last())
    return op.to_host()


# %% id=04b-challenge solution
def cooled(x, step, rounds):
    pair = agt.zip(agt.h2d(x), agt.zeros(x.size))
    for _ in range(rounds):
        pair = pair.and_then(lambda both: step(*both)).map(lambda both: (both[1], both[0]))
    return pair.first().to_host()

# %% id=04b-challenge hints
# Draw a timeline of the starter. For each step, Python makes three calls. Which of them could you do without?
#
# `step` gives both of its arrays back. The old temperatures aren't needed any more, so the next step can write its result there.
#
# Let the baton be a pair of arrays, the one to read and the one to write: it begins with `agt.zip(agt.h2d(x), agt.zeros(x.size))`. After each step, a `map` swaps them, `lambda both: (both[1], both[0])`, so the newest temperatures come first.

# %% id=04b-challenge explanation
# One way is to pass a pair as the baton and swap it after each step. You give both arrays away and get both back, so two of them are enough for any number of steps. This is called ping-pong, or double buffering once more.

# %% id=04b-challenge-check
check("04b-challenge", cooled)

# %% [markdown] id=rod-text
# Does it fit into the small GPU now?

# %% id=rod-memory
with agt.using(small):
    try:
        cooled(rod, stepper(rod.size), 20).sync()
        print("It fits.")
    except agt.errors.OutOfMemoryError:
        print("Not yet: the memory of the small GPU is full.")

stairs, yours = with_memory(first_try), with_memory(cooled)
flat = arrays(yours) < arrays(stairs)
both = {"first try": stairs, "yours": yours} if flat else {"yours": yours}
agt.compare_timelines(
    [*both.values()],
    [f"{name}: {arrays(trace)} arrays" for name, trace in both.items()],
    lanes=("host",),
    lesson="Two arrays take turns, so the memory stays flat, however many steps."
    if flat
    else "Yours still adds an array a step. If two take turns, the memory stays flat.",
)

# %% [markdown] id=rod-reward
# And here's the reward, a short rod that's cooled by your function, a thousand steps from top to bottom.

# %% id=rod-picture
row = np.repeat([0, 80, 20, 50], 25).astype(np.float32)
rows = [row]
for _ in range(40):
    row = cooled(agt.pin(row), stepper(100), 25).sync()
    rows.append(row)

figure, axes = plt.subplots(figsize=(7, 3))
heights = (0, 100, 1012.5, -12.5)
colours = axes.imshow(rows, aspect="auto", cmap="inferno", extent=heights)
axes.set(xlabel="point of the rod", ylabel="steps")
figure.colorbar(colours, label="degrees")
told = f"At first 0 to 80 degrees, and at last {row.min():.0f} to {row.max():.0f}."
shown(figure, "Four stretches with sharp edges, which blur downwards.", told)

# %% [markdown] id=key-points
# ## Key points
#
# - If several readers share an operation, the one that is submitted first runs it, on its own stream and behind its own work. The others wait for an event.
# - `unzip()` takes a tuple apart and still runs its source once. With `first()` and `last()`, each pick is a run of its own.
# - When you pass an array to an operation, you give it away, and the result may hand it back. Share an array that many read and nobody writes. Lend one out if you need it yourself afterwards, but a loan puts nothing in order, and ends when you give the array away.
# - Here, memory goes back when no name, no operation and no run refers to the array. A run keeps what it touches until all of it is done, so let long chains use their arrays again.
#
# If a word is new, look in the [glossary](../docs/glossary.md). If something seems wrong, the [misconceptions](../docs/misconceptions.md) page probably has it.
#
# **Next:** [05_scheduling.ipynb](05_scheduling.ipynb). In chapter 04, `overlap` got its streams from somewhere. Who hands them out, and does it choose well?

# %% id=score
score("04b")

# %% id=progress
progress("04b")
