"""Source of notebooks/04b_sharing_and_owning.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Sharing and owning
#
# Two colleagues need the same printout. One of them has to walk to the printer, and if it's the one who is going to lunch first, the other has a long wait. And when both have read it, somebody should throw it away, but not while the other is still reading.
#
# On a GPU the printout is an array. **If two want the same one, who fetches it? And whose is it afterwards?**
#
# After this page you can say which of two readers runs what they share, take a tuple apart without running its source twice, and choose whether to give an array away, to share it, or to lend it.
#
# | | |
# |---|---|
# | Time | 40 minutes |
# | You need | [04_combinators](04_combinators.ipynb) |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import Prediction, check, hint, progress, score, solution

device = agt.use("auto")
device

# %% [markdown] id=two-readers
# ## Two readers
#
# On the last page, `shared()` let two arms use the result of one operation. The operation ran once, and the other arm waited for it. But which arm runs it, and does that matter?
#
# Here are two readers of a small table. Arm A first computes a large product, and only then takes the table. Arm B copies the table back right away.

# %% id=first-code
def product(matrix, number):
    """The matrix times a vector that is full of `number`."""
    vector, out = agt.full(N, number), agt.zeros(N).partition(128)
    return agt.matvec_naive(N, N, matrix, vector, out).output()


def watch(make):
    """Run the operation twice, because on a real GPU the first time is slow, and record the second."""
    make().sync()
    op = make()
    with agt.record() as trace:
        op.sync()
    return trace


N = 2048
matrix_there = agt.h2d(agt.pin(np.eye(N, dtype=np.float32))).sync().share()  # see below
numbers = agt.pin(np.arange(1000, dtype=np.float32))


def two_readers(swapped=False):
    table = agt.h2d(numbers).shared()
    a = product(matrix_there, 2.0).and_then(lambda _: table)
    b = table.to_host()
    return agt.overlap(b, a) if swapped else agt.overlap(a, b)

# %% id=predict-first
first = Prediction(
    "Three pieces of work: `p`, the large product of arm A; `t`, the copy of the table to the device; "
    "`b`, the copy back in arm B. In which order do they *end*? Type the three letters."
)
first

# %% id=predict-first-commit
first.commit(...)

# %% id=first-run
a_first, b_first = watch(two_readers), watch(lambda: two_readers(swapped=True))
letter = {"matvec_naive": "p", "h2d": "t", "d2h": "b"}
ends = sorted((span for span in a_first.device_spans if span.name in letter), key=lambda span: span.end)
first.reveal(" ".join(letter[span.name] for span in ends), "Look at the upper picture.")

# %% id=first-picture
for name, trace in [("overlap(a, b)", a_first), ("overlap(b, a)", b_first)]:
    (back,) = trace.find("d2h")
    whole, b_done = trace.metrics().makespan, back.end - trace.spans[0].start
    print(f"{name}: B is done after {b_done:.0f} µs, and everything after {whole:.0f} µs")

agt.compare_timelines(
    [a_first, b_first],
    ["overlap(a, b)", "overlap(b, a)"],
    lanes=("host", "streams"),
    lesson="Above, the table is copied only after the product, so B waits. Below, B comes first.",
)

# %% [markdown] id=first-read
# Python submits arm A first. When it gets to the table, nobody has run that yet, so A runs it, on A's own stream and therefore *behind the product*. Then comes B, finds that somebody is already on the way to the printer, and waits for A's event. So B is late for no good reason. **The reader that is submitted first runs the shared source.** If B is in a hurry, put B first, as in the lower picture. That has its price, because now A is submitted after B, and everything together takes a little longer.

# %% id=first-check tags=asserts
assert a_first.runs_before("matvec_naive", "h2d")
assert a_first.runs_before("h2d", "d2h")
assert b_first.runs_before("h2d", "d2h")
assert not b_first.runs_before("matvec_naive", "h2d")
if device.simulated:
    assert b_first.find("d2h")[0].end < b_first.find("matvec_naive")[0].end

# %% [markdown] id=unzip
# ## Taking a tuple apart
#
# Many operations yield a tuple, and often you want its entries to go different ways. `first()` and `last()` pick one entry. But each pick has a source of its own, so two picks are two runs. `unzip` is `shared` for tuples: it makes one operation for each entry, and they all share one run of the source. Here we use it on `agt.dup`, which yields an array and a copy of it:

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
# So much for operations. An array is a different matter, because it has memory on the device. That memory has to stay until the last kernel that uses it is done, and after that it should be given back. Here `scaled` gets an array of ones, and works on it in place:

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

# %% id=predict-owned
owner = Prediction(
    "`mine` was full of ones, and `doubled` is what `scaled` yields for it. Now we say "
    "`op = agt.d2h(mine)`, and then `op.sync()`. What comes out?",
    ones="ones, because `doubled` is a new array",
    twos="twos, because both are names of the same array",
    built="an error, in the line that builds `op`",
    ran="an error, in the line that runs it",
)
owner

# %% id=predict-owned-commit
owner.commit(...)

# %% id=owned-run
found = "built"
try:
    op = agt.d2h(mine)
    found = "ran"
    found = {1: "ones", 2: "twos"}[round(float(op.sync()[0]))]
except agt.errors.UseAfterMoveError as error:
    print(error)

# %% id=reveal-owned
owner.reveal(found, "You gave `mine` away to `scaled`, and got `doubled` back.")

# %% [markdown] id=ownership-table
# The rule is this: **an array has one owner, and when you pass it to an operation, you give it away.** In return you own whatever the operation yields. It's the baton again, which is in one hand at a time. The error says where the array went: into `partition()`, which `scaled` calls. And because ownership is checked while you *build*, the error comes from the very line that uses the array once too often, before anything has run.
#
# If you need an array again, there are two other ways to pass it:
#
# | | you write | the operation gets | and you? |
# |---|---|---|---|
# | **owned** | `x` | the array | it's gone, but the result hands it back |
# | **shared** | `x = x.share()`, once, and then `x` | a handle to it, *for reading* | you have a handle, too, and the array lives until the last one is gone |
# | **borrowed** | `x.borrow()` | the right to use it | you keep it, but you can't give it away in the meantime |
#
# None of the three copies anything. Two names are easy to mix up: `op.shared()` makes an *operation* run only once, and `x.share()` lets many read one *array*.
#
# A borrower may write, and what it writes to is *your* array. If you lend an array of ones to `scaled`, you'll find twos in it, like a book that comes back with remarks in the margin:

# %% id=lent-run
mine = agt.ones(4).sync()
scaled(mine.borrow(), 2).sync()
agt.d2h(mine.borrow()).sync()

# %% [markdown] id=lent-read
# A loan doesn't put anything in order, because it records no event. If two arms of an `overlap` borrow the same array and one of them writes to it, that's a race, and the simulated device refuses it.
#
# Nobody may write to a shared array at all, since that would surprise its other readers:

# %% id=shared-write
weights = agt.ones(4).sync().share()
try:
    scaled(weights, 2)
except agt.UsageError as error:
    print(error)
else:
    raise AssertionError("writing to a shared array should have been refused")

# %% [markdown] id=handles-text
# A shared array counts its handles, in `x.share_count`. Here's a matrix with one handle, ours, and three operations that read it. You can run them again, as you can with most operations.

# %% id=handles-code
matrix_of_ones = agt.ones((4, 4)).sync().share()


def row_sums(matrix):
    return agt.matvec_naive(4, 4, matrix, agt.ones(4), agt.zeros(4).partition(32)).output().to_host()


readers = [row_sums(matrix_of_ones) for _ in range(3)]

# %% id=predict-handles
handles = Prediction(
    "`results = [op.sync() for op in readers]`. How many handles does `matrix_of_ones` have afterwards?"
)
handles

# %% id=predict-handles-commit
handles.commit(...)

# %% id=handles-run
built = matrix_of_ones.share_count
results = [op.sync() for op in readers]
ran = matrix_of_ones.share_count
readers.clear()
handles.reveal(
    ran,
    f"After building: {built}. After running: {ran}. With an empty list: {matrix_of_ones.share_count}.",
)

# %% [markdown] id=handles-read
# Each operation keeps its handle before it runs and afterwards, and lets go only when the operation itself goes away. So if you keep a list of old operations, you keep their arrays in memory as well. With an *owned* array it's different, because it goes into one run. An operation that was given one can't run again, and says so.

# %% id=loan-check tags=asserts
with agt.using("sim"):
    lender = agt.ones(4).sync()
    try:
        agt.overlap(scaled(lender.borrow(), 2), agt.d2h(lender.borrow())).sync()
    except agt.errors.StreamRaceError:
        pass
    else:
        raise AssertionError("one of two borrowers wrote: this should have been refused")

# %% id=handles-check tags=asserts
assert (built, ran, matrix_of_ones.share_count) == (4, 4, 1)

# %% [markdown] id=ownership-when
# So which of the three should you use? Use *owned* arrays along a chain, where each stage hands on to the next. Use *shared* ones for data that many read and nobody changes, such as weights. And *lend* an array out when you'll need it yourself afterwards. A loan has one catch: it mustn't outlive its owner. That's why a borrowed array can't go to `agt.spawn`, whose task may still be running when your function has long returned.

# %% [markdown] id=exercise-lend
# ### Exercise: lend it
#
# `matrix` is an array on the device (`n` x `n`), and `xs` is a list of host vectors. Write `apply_all(matrix, xs)`: one operation that yields a tuple with the product of the matrix and each vector, on the host. The caller goes on using `matrix` afterwards and still owns it.

# %% id=04b-lend starter
def apply_all(matrix, xs):
    n = xs[0].size
    products = [agt.matvec_naive(n, n, matrix, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs]
    return agt.zip(*[launch.output().to_host() for launch in products])

# %% id=04b-lend solution
def apply_all(matrix, xs):
    n = xs[0].size
    products = [
        agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return agt.zip(*[launch.output().to_host() for launch in products])

# %% id=04b-lend hints
# If you pass `matrix` as it is, the first launch gets it, and nothing is left for the second.
#
# `share()` would do for the launches, but it takes the array away from its owner.
#
# Pass `matrix.borrow()` to each launch, and `agt.zip` the operations.

# %% id=04b-lend explanation
# The caller is still the owner, and nothing was copied.

# %% id=04b-lend-check
check("04b-lend", apply_all)

# %% [markdown] id=exercise-workers
# ### Exercise: for those who stay longer
#
# Here are the same products again, but now each of them is a job for somebody else. Write `jobs(matrix, xs)`: a *list* of operations, one for each vector. The caller will `spawn` them all, and by then your function has returned and its names are gone. You may give the matrix away, and nobody writes to it.

# %% id=04b-workers starter
def jobs(matrix, xs):
    n = xs[0].size
    products = [
        agt.matvec_naive(n, n, matrix.borrow(), agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return [launch.output().to_host() for launch in products]

# %% id=04b-workers solution
def jobs(matrix, xs):
    n = xs[0].size
    weights = matrix.share()
    products = [
        agt.matvec_naive(n, n, weights, agt.h2d(x), agt.zeros(n).partition(32)) for x in xs
    ]
    return [launch.output().to_host() for launch in products]

# %% id=04b-workers hints
# A loan mustn't outlive its owner, and a task may outlive you. Which of the three ways suits an array that has many readers and no single owner?
#
# `weights = matrix.share()` makes a handle that many operations may hold at the same time.
#
# Share the matrix once, before the list, and pass `weights` to each launch.

# %% id=04b-workers explanation
# Each operation has a handle of its own to the one array. The array goes away when the last of them is done, whichever that is.

# %% id=04b-workers-check
check("04b-workers", jobs)


# %% [markdown] id=answer
# ## The printout once more
#
# So who walks to the printer? Whoever is submitted first, and if that's somebody with a long errand on the way, everybody else waits. And who throws the printout away? Nobody has to remember it. If one owner has it, it goes when the owner is done with it. If many share it, it goes with the last handle. And if you lent it out, it's still yours, and so is the cleaning up.
#
# One question is left, and it's about using the same two sheets of paper again and again.

# %% [markdown] id=challenge
# ## Challenge: two arrays are enough
#
# A rod is hot in some places and cold in others. In each step, every point moves towards the mean of its two neighbours. `step(src, dst)` is an operation that reads the old temperatures from `src`, writes the new ones to `dst`, and yields both arrays, in this order.
#
# Write `cooled(x, step, rounds)`: one operation that uploads the host array `x`, does `rounds` steps, and yields the temperatures at the end, on the host. As it stands, each step makes a new array for its result, and twenty steps take 481 µs. Get below 390.
#
# Here's a step to try it with.

# %% id=challenge-inputs
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


def step(src, dst):
    launch = heat(rod.size, src, dst.partition(256))
    return launch.map(lambda used: (used[0], used[1].unpartition()))


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

# %% [markdown] id=key-points
# ## Key points
#
# - If several readers share an operation, the one that is submitted first runs it, on its own stream and behind its own work. The others wait for an event.
# - `unzip()` takes a tuple apart and still runs its source once. `first()` and `last()` each run it again.
# - When you pass an array to an operation, you give it away, and the result hands it back. That's how the course knows when memory can be freed.
# - Share an array that many read and nobody writes. Lend an array out if you need it yourself afterwards, but remember that a loan puts nothing in order and mustn't outlive its owner.
#
# If a word is new, look in the [glossary](../docs/glossary.md). If something seems wrong, the [misconceptions](../docs/misconceptions.md) page probably has it.
#
# **Next:** [05_scheduling.ipynb](05_scheduling.ipynb). On the last page, `overlap` got its streams from somewhere. Who hands them out, and does it choose well?

# %% id=score
score(first, handles)

# %% id=progress
progress("04b")
