"""Source of notebooks/01_sync_kernels.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Kernels, one at a time
#
# When NumPy multiplies an array, a loop somewhere walks over the elements, one after the other. A GPU doesn't walk. It starts a thousand threads at once, one for each element, and every one of them runs the same function with the same arguments.
#
# **So why don't they all end up at the same element? And what is Python doing in the meantime?**
#
# After this page you can write kernels that stay inside their arrays, read the error message when one doesn't, and see in a timeline how long Python waits for the device.
#
# | | |
# |---|---|
# | Time | 55 minutes, with a good place for a break; and 40 more for the encores |
# | You need | [00_start_here](00_start_here.ipynb), and NumPy. No C: three lines below are enough to begin with |

# %% id=setup
import matplotlib.pyplot as plt
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course import check, guess, hint, progress, reveal, score, shown, solution

device = agt.use("auto")
device

# %% [markdown] id=first-picture
# ## Twelve threads
#
# Here's a kernel, and below it the twelve threads that ran it. Skip the code for now and look at the picture. On top are the threads, and below them the elements of `out`. All are counted from 0.

# %% id=who-kernel
who = agt.Kernel(r"""
extern "C" __global__ void who(unsigned int n, unsigned int* out)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = 100 * blockIdx.x + threadIdx.x;
    }
}
""")

agt.show_threads(
    who,
    12,
    np.zeros(12, np.uint32),
    grid=3,
    block=4,
    lesson="Each thread writes one element, and no two write the same one.",
)

# %% [markdown] id=who
# There are twelve **threads** and twelve elements, with one arrow for each. The threads come in groups of four. Such a group is called a **block**, and all the blocks together are the **grid**.
#
# Every thread runs the same lines, so the first thing it has to find out is who it is:
#
# | name | meaning |
# |---|---|
# | `threadIdx.x` | my number within my block |
# | `blockIdx.x` | the number of my block |
# | `blockDim.x` | the number of threads in a block |
#
# The numbers 0 to 3 occur in every block, so `threadIdx.x` alone won't do. The first line of the kernel counts the threads *in front of me*: for thread 1 of block 2, two whole blocks of four, and one in its own block, so its `i` is 2 · 4 + 1 = 9. As every thread has a different number of threads in front of it, no two get the same `i`. Nearly every kernel begins with that line, and it's the answer to our first question: **the code and the arguments are the same for all threads, but `i` isn't.**
#
# In this kernel each thread signs its element with a hundred times its block plus its number within the block, so element 9 holds 201. Now imagine that somebody mixes up two of the names. Twelve threads run this again, in three blocks of four:

# %% id=who-run
usual = "blockIdx.x * blockDim.x + threadIdx.x"
odd = "threadIdx.x * blockDim.x + blockIdx.x"
mixed_up = agt.Kernel(who.source.replace(usual, odd))
op = mixed_up(12, agt.zeros(12, np.uint32).partition(4)).output().to_host()
print(mixed_up.source)

# %% id=01-who guess
# How many of the twelve elements get a signature now? Type the number. (Thread 0 of block 0 signs with a 0, and that counts.)

# %% id=01-who reveal
numbers = op.sync()
signed = np.count_nonzero(numbers) + 1  # thread 0 of block 0 signs with 0
picture = agt.show_threads(mixed_up, 12, np.zeros(12, np.uint32), grid=3, block=4)
reveal("01-who", int(signed), picture)

# %% id=01-who lesson
# Three elements get no arrow, and three threads have none.

# %% id=01-who told truth=9
# Within a block, each thread goes four elements further than the one before, but only three blocks start side by side. So nobody's `i` is 3, 7 or 11. And the last thread of each block wants element 12, 13 or 14. There's no such element, and the `if` sends it home. Nobody complains, and the three elements keep whatever was in them.
#
# The hardware hands out `threadIdx` and `blockIdx`. What a kernel makes of them is its own choice, and the usual line is only the usual choice.

# %% id=who-check tags=asserts
steps = [100 * block + thread for thread in range(3) for block in range(3)]
assert list(numbers) == [*steps[:3], 0, *steps[3:6], 0, *steps[6:], 0]

# %% [markdown] id=c-in-three-lines
# ## C in three lines
#
# - Each variable has a type: `float` is NumPy's `float32`, and `unsigned int` is `uint32`. Each statement ends with `;`, and a comment begins with `//`.
# - An array arrives as a *pointer*: `const float* x` to read from, `float* y` to write to. You write `x[i]` as in NumPy, but there are no slices. And a pointer doesn't know how long its array is, so the length comes as an argument of its own.
# - `if (i < n) { ... }` and `for (unsigned int j = 0; j < n; j++) { ... }` are Python's `if i < n:` and `for j in range(n):`. Python's `and` is `&&`.
#
# (`extern "C" __global__` tells the compiler that this function is a kernel. `output()` is the array it has written, `to_host()` copies that to the host, and `sync()` runs all this and waits for the result.)

# %% [markdown] id=threads
# ## A thousand elements
#
# Our twelve elements happened to fill three blocks of four. Real arrays are rarely that polite. Here are 1000 elements, and blocks of 256 threads:

# %% id=threads-run
with agt.record() as trace:
    op = who(1000, agt.zeros(1000, np.uint32).partition(256)).output().to_host()
    numbers = op.sync()

(launch,) = trace.find("who")
grid, block = launch.detail["grid"][0], launch.detail["block"][0]
print(f"{grid} blocks of {block} threads, which makes {grid * block} threads")

# %% [markdown] id=blocks-are-equal
# The device can't start half a block, so the fourth block has all of its 256 threads, and some find no element to work on. (So much for the thousand threads that we began with.) The line `if (i < n)` keeps them out of trouble. It's called the **bounds check**.

# %% id=blocks-are-equal-check tags=asserts
assert grid * block - 1000 == 24
assert (numbers[999], len(numbers)) == (3 * 100 + 231, 1000)

# %% [markdown] id=puzzles
# ## Two small kernels
#
# Now it's your turn. The check runs your kernel on arrays of several lengths and compares every element with NumPy's. It always uses a simulated device, so the worst that can happen to you is a message.
#
# ### Puzzle 1: copy
#
# In NumPy, this is `y[:] = x`. Here each thread copies one element.

# %% id=01-copy starter
my_copy = agt.Kernel(r"""
extern "C" __global__ void my_copy(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        // your line
    }
}
""")

# %% id=01-copy solution
# - // your line
# + y[i] = x[i];

# %% id=01-copy hints
# Your thread has a number `i`. Take element `i` of `x` and put it into element `i` of `y`.
#
# You assign with `=`, as in Python, and the line ends with `;`.
#
# `y[i] = x[i];`

# %% id=01-copy explanation
# There's no loop, and yet a thousand elements were copied, because a thousand threads each ran this one line.

# %% id=01-copy-check
check("01-copy", my_copy)

# %% [markdown] id=exercise-relu
# ### Puzzle 2: ReLU
#
# In NumPy, this is `y = np.maximum(x, 0)`: negative numbers become zero, and the others stay. Neural networks are full of this function. It's called **ReLU**, for *rectified linear unit*. And now the first line and the bounds check are yours as well.
#
# In C, Python's `a if condition else b` is `condition ? a : b`, and a `float` constant looks like `0.0f`. One warning: the check also passes the same array as input *and* output, so read your element before you write it.

# %% id=01-relu starter
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    // your code
}
""")

# %% id=01-relu solution
# - // your code
# + unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# + if (i < n) {
# +     output[i] = input[i] > 0.0f ? input[i] : 0.0f;
# + }

# %% id=01-relu hints
# Two things are missing: which element is mine, and what do I do with it?
#
# A thread's number in the whole grid is `blockIdx.x * blockDim.x + threadIdx.x`. In the last block, some threads get a number that isn't below `n`.
#
# Inside `if (i < n)`, one line is enough: `output[i] = input[i] > 0.0f ? input[i] : 0.0f;`

# %% id=01-relu explanation
# Each thread works out its `i`, steps aside if there's no such element, and otherwise writes *something*, whatever the sign. That matters, because an element that no thread writes keeps its old value.

# %% id=01-relu-check
check("01-relu", my_relu)

# %% [markdown] id=paint-text
# ### A picture of your own
#
# Something to look at: 256 rows of 256 pixels, with a thread for each. C drops the remainder when it divides whole numbers, so `i / 256` is a pixel's row, and `i % 256` is its column. As in Python, `^` keeps the bits in which two numbers differ.

# %% id=paint
paint = agt.Kernel(r"""
extern "C" __global__ void paint(unsigned int n, unsigned int* out)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned int row = i / 256, col = i % 256;
        out[i] = row ^ col;
    }
}
""")

n = 256 * 256
pixels = paint(n, agt.zeros(n, np.uint32).partition(256)).output().to_host().sync()

figure, axes = plt.subplots(figsize=(4, 4))
axes.imshow(pixels.reshape(256, 256), cmap="magma")
axes.axis("off")
shades = len(np.unique(pixels))
told = f"{n:,} pixels, each by a thread of its own, in {shades} shades."
shown(figure, "What your kernel painted.", told)

# %% [markdown] id=paint-read
# One line did that! Change `^` to `&`, then to `|`, and then write a line of your own, such as `(row * col) % 256`. (Chapter 14 paints the Mandelbrot set.)

# %% id=paint-check tags=asserts
if paint.source.count("row ^ col"):
    assert pixels[256 * 3 + 5] == 3 ^ 5

# %% [markdown] id=bounds-text
# ## The last block
#
# What happens if you forget the `if`? The author of this kernel did:

# %% id=careless
CARELESS = r"""
extern "C" __global__ void careless(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i];
}
"""


def run_careless(n, threads=256):
    with agt.using("sim"):
        careless = agt.Kernel(CARELESS)
        y = careless(n, agt.ones(n), agt.zeros(n).partition(threads))
        return y.output().to_host().sync()


# %% [markdown] id=careless-text
# It always runs on the simulated device, because on a GPU such a mistake can end all GPU work in your Python process. There are 1000 elements again, but this time in blocks of 300 threads. The simulator stops at the first thread that goes astray, and its message names that thread, and the array in which it got lost.

# %% id=01-falls guess
# Which array, and which thread? Type the array, the number of the block, and the number within the block, such as `"x 2 17"`.

# %% id=01-falls reveal
try:
    run_careless(1000, threads=300)
except agt.errors.OutOfBoundsError as error:
    message, site = str(error), error.site
ten = np.ones(10, np.float32)
small = agt.Kernel(CARELESS), 10, ten, np.zeros_like(ten)
picture = agt.show_threads(*small, grid=3, block=4)
truth = f"{site.array} {site.block[0]} {site.thread[0]}"
reveal("01-falls", truth, picture, message=message)

# %% id=01-falls lesson
# The same accident with ten elements. Two threads read past the end of x, and y stays as it was. (Arrows point the way a number travels.)

# %% id=01-falls told truth="x 3 100"
# ```text
# {message}
# ```
#
# C works out the right-hand side first, just like Python. So the thread reads `x` before it can do any damage to `y`. And 3 · 300 + 100 is 1000, while the last element is number 999.

# %% [markdown] id=bounds-read
# Read such a message from left to right: which kernel, which thread of which block, which array, which element, and how many elements there really are.

# %% id=bounds-message-check tags=asserts
assert (site.block[0], site.thread[0]) == (3, 100)
assert (site.index, site.bound) == (1000, 1000)

# %% [markdown] id=misconception-bounds
# > **Misconception: the numbers were right, so the kernel is right.**
# >
# > - *What you see:* a kernel without a bounds check has given right results for months.
# > - *Why:* the length always happened to be a multiple of the block size. The first time it isn't, a real GPU may not complain at all, and just overwrite whatever lies behind the array.
# > - *What helps:* always write the check, and test with lengths that are *not* multiples of anything.

# %% id=misconception-bounds-run
print("1024 elements, in blocks of 256:", run_careless(1024)[:4], "... all right")

# %% id=misconception-bounds-check tags=asserts
assert (run_careless(1024) == 2).all()  # a multiple of 256
for n in (1023, 1025):
    try:
        run_careless(n)
    except agt.errors.OutOfBoundsError:
        pass
    else:
        raise AssertionError("this should have been stopped")

# %% [markdown] id=matrices
# ## A loop after all
#
# Not every loop disappears. The next kernel keeps one, and it needs a matrix. But a kernel has no `a[i, j]`: a matrix lies in memory row after row, in one long line.

# %% id=row-major
a = np.arange(12, dtype=np.float32).reshape(3, 4)  # 3 rows, 4 columns
flat = a.ravel()
print(a, flat, sep="\n")
print("a[2, 1] is", a[2, 1], "and flat[2 * 4 + 1] is", flat[2 * 4 + 1])

# %% id=row-major-check tags=asserts
assert all(a[i, j] == flat[i * 4 + j] for i in range(3) for j in range(4))

# %% [markdown] id=row-major-read
# So `a[row, col]` becomes `a[row * n + col]`, where `n` is the length of a *row*, which is the number of columns. And what if you forget?

# %% id=comma-kernel
forgetful = agt.Kernel(r"""
extern "C" __global__ void forgetful(const float* a, float* out)
{
    out[0] = a[2, 1];
}
""")

# %% id=01-comma guess
# `a[2, 1]` is 9 in NumPy. What does this kernel get?
#
# - `nine`: 9: C knows what you mean
# - `refused`: nothing: the kernel doesn't compile
# - `two`: 2
# - `one`: 1

# %% id=01-comma reveal
with agt.using("sim"):
    there = agt.h2d(agt.pin(a))
    (got,) = forgetful(there, agt.zeros(1).partition(1)).output().to_host().sync()
reveal("01-comma", {9: "nine", 2: "two", 1: "one"}[int(got)])

# %% id=01-comma told truth=one
# A comma in C drops what stands before it, so `a[2, 1]` is `a[1]`. At best, a compiler warns you.

# %% [markdown] id=exercise-matvec
# ### Exercise: matrix times vector
#
# In NumPy, this is `y = a @ x`, for a matrix `a` of `m` rows and `n` columns. Use one thread for each element of `y`. It walks along its row of `a`, multiplies each element by the matching one of `x`, and adds up the products.

# %% id=01-matvec starter
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""")

# %% id=01-matvec solution
# - // your code
# + if (row < m) {
# +     float sum = 0.0f;
# +     for (unsigned int j = 0; j < n; j++) {
# +         sum += a[row * n + j] * x[j];
# +     }
# +     y[row] = sum;
# + }

# %% id=01-matvec hints
# One thread computes one element of `y`, so it needs one row of `a` and all of `x`.
#
# Row `row` begins at `a[row * n]`, because each row has `n` elements. There are `m` rows, so the bounds check compares `row` with `m`.
#
# Start with `float sum = 0.0f;`, add `a[row * n + j] * x[j]` for each `j` below `n`, and write `y[row] = sum;` after the loop.

# %% id=01-matvec explanation
# The loop over `j` is still there, and it runs inside *one* thread. The loop over the rows is gone, because each row has a thread of its own. You've just written `agt.matvec_naive` in your own words.

# %% id=01-matvec-check
check("01-matvec", my_matvec)

# %% [markdown] id=time
# ## And what does Python do?
#
# You can write kernels now, so this is a good place for a break.
#
# So far we've asked *what* the device computes. Now we ask *when*, in five steps: copy a matrix to the device, copy a vector, multiply the two, apply ReLU, and fetch the result. A first version often looks like this, with a `sync` after each step: Python asks the device for something, and waits until it's done. (`agt.matvec_naive` and `agt.relu` are the course's versions of your kernels, and `agt.pin` puts an array where the device can fetch it without Python's help.)

# %% id=steps
rng = np.random.default_rng(0)
m = n = 512
a = agt.pin(rng.standard_normal((m, n), dtype=np.float32))
x = agt.pin(np.ones(n, np.float32))


def step_by_step(a, x):
    a_there = agt.h2d(a, "a").sync()
    x_there = agt.h2d(x, "x").sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output().sync()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output().sync()
    return agt.d2h(positive).sync()


result = step_by_step(a, x)

# %% id=steps-warm tags=asserts
assert np.allclose(result, np.maximum(a @ x, 0), atol=1e-3)
for _ in range(4):
    step_by_step(a, x)  # a real GPU is slow the first time

# %% id=steps-picture
# All of it on one stream:
with agt.using(policy=agt.SingleStream()), agt.record() as stepwise:
    step_by_step(a, x)

stepwise.plot(
    title="A sync after each step",
    lanes=("host", "streams"),
    lesson="Five times Python waits for the device, and then the device for Python.",
)

# %% [markdown] id=steps-read
# Each array needs memory, which costs one of the small calls, and `agt.zeros` has the device fill it (yellow). So five steps are seven pieces of work. Python makes one to three calls and then waits for the device. As soon as the device is done, it's the device that waits, until Python comes back with the next call. (Where both lanes are empty, Python has come back from one call and is still on its way to the next.) **They take turns.** It's like moving a piano with somebody who only pushes while you rest.

# %% id=steps-check tags=asserts
waits = [span for span in stepwise if span.kind == "wait"]
m_stepwise = stepwise.metrics()
assert len(waits) == 5
assert len(stepwise.device_spans) == 7
assert m_stepwise.overlap < 1
assert m_stepwise.device_idle > 0
if device.simulated:
    assert [round(m_stepwise.makespan)] + [round(m_stepwise.host[k]) for k in ("wait", "call")] == [
        169,
        69,
        76,
    ]
    calls = [s for s in stepwise if s.kind == "call"]
    assert stepwise.overlap_between(calls, stepwise.device_spans) < 0.1 * m_stepwise.makespan

# %% [markdown] id=launch-returns
# ## The length of a call
#
# Who pays for a long kernel? Let's look at a launch, the call that asks the device to run a kernel. `op.async_on(stream)` puts an operation into a stream's queue, and `stream.synchronize()` waits until the queue is empty.
#
# We multiply a matrix by a vector, once with 512 rows and columns, and once with 2048, which makes sixteen times as many numbers. Each row has a thread of its own, in blocks of 128, and an H200 has room for 270,336 threads at once.

# %% id=launch-returns-run
def launched(size):
    matrix, vector = agt.ones((size, size)).sync(), agt.ones(size).sync()
    op = agt.matvec_naive(size, size, matrix, vector, agt.zeros(size).partition(128))
    queue = agt.create_stream()
    with agt.record() as trace:
        op.async_on(queue)
        queue.synchronize()
    return trace


# %% id=01-length guess within=0.25
# How many times as long does the larger kernel take? Type a number.

# %% id=01-length reveal
runs = [launched(size) for size in (512, 2048)]
small_call, call = (trace.find("launch matvec_naive")[0] for trace in runs)
small_kernel, kernel = (trace.find("matvec_naive")[0] for trace in runs)
picture = agt.compare_timelines(runs, ["512 rows", "2048 rows"], lanes=("host", "streams"))
times, calls = kernel.duration / small_kernel.duration, call.duration / small_call.duration
took = {"small": small_kernel.duration, "large": kernel.duration, "calls": calls}
reveal("01-length", f"{times:.1f}", picture, **took)

# %% id=01-length lesson
# The launch is as long in both. The kernel isn't, and neither is the wait.

# %% id=01-length told truth=3.9
# The kernels take {small:.0f} and {large:.0f} µs. The device has room for all rows at once, so it doesn't matter that there are four times as many. What matters is that each is four times as long.
#
# And the *call*? It takes {calls:.1f} times as long for the larger kernel, because **launching** a kernel only means putting it into a queue. The call returns as soon as that's done, and by then the kernel may not even have begun. So it's the wait that pays for a long kernel, and not the call. A real H200 makes shorter calls than our simulated one, but the same holds there: a product of two matrices took 15.5 µs, one of a matrix and a vector 35.3, and a tiny `relu` 0.8, and their calls 8.9, 9.8 and 8.6.
#
# > **Misconception: to find out how long a kernel takes, time the line that launches it.**
# >
# > - *What you see:* the kernel takes the same time for any size.
# > - *Why:* you've measured how long it takes to put the kernel into the queue. The kernel itself runs later.
# > - *What helps:* look at the kernel's own bar in a timeline.

# %% id=launch-check tags=asserts
with agt.using("sim") as h200:
    assert h200.spec.sms * h200.spec.threads_per_sm == 270_336
there = agt.Trace.load_recording("01_sync_kernels")  # from the H200
queued = [span for span in there if span.kind == "call"]
assert [round(span.duration, 1) for span in queued] == [8.9, 9.8, 8.6]
assert [(span.name, round(span.duration, 1)) for span in there.device_spans] == [
    ("sgemm_naive", 15.5),
    ("matvec_naive", 35.3),
    ("relu", 0.8),
]
if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
    assert call.end < kernel.end
    assert call.duration > 1.5 * max(span.duration for span in queued)
    assert abs(call.duration - small_call.duration) < 0.01

# %% [markdown] id=exercise-one-wait
# ### Exercise: wait once
#
# Here are the steps again. Rewrite the function so that it doesn't wait at all and *returns an operation* that yields the result. Whoever runs it then waits only once.
#
# You need two things for this: **a kernel takes operations instead of arrays**, and `op.to_host()` copies the result of an operation to the host.


# %% id=01-one-wait starter
def forward(a, x):
    m, n = a.shape
    a_there = agt.h2d(a).sync()
    x_there = agt.h2d(x).sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output().sync()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output().sync()
    return agt.d2h(positive)


# %% id=01-one-wait solution
def forward(a, x):
    m, n = a.shape
    out = agt.zeros(m).partition(128)
    y = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), out).output()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output()
    return positive.to_host()


# %% id=01-one-wait hints
# Each `.sync()` is a wait. Which of the four does Python really need before it can go on?
#
# A kernel takes operations instead of arrays: `agt.matvec_naive(m, n, agt.h2d(a), ...)`.
#
# Delete every `.sync()`, and end with `.to_host()` on the operation that yields the array.

# %% id=01-one-wait explanation
# The steps do need each other, but Python doesn't have to stand guard, because a *stream* runs its work in order. So the host describes all five steps, hands them over, and waits once, for the copy at the end.

# %% id=01-one-wait-check
check("01-one-wait", forward)

# %% [markdown] id=one-wait-read
# ### What it buys
#
# Python's calls stay as they are, and so does the device's work. But now Python makes the calls in one go, and waits once. (`solved` fetches your `forward` if it was accepted, and the course's otherwise.)

# %% id=one-wait-numbers
from asyncgpu_course import solved

in_one = solved("01-one-wait", forward)
in_one(a, x).sync()  # a warm-up
m_stepwise = stepwise.metrics()
print(f"With five waits it took {m_stepwise.makespan:.0f} µs.")
print(f"The calls take {m_stepwise.host['call']:.0f} µs in all,", end=" ")
print(f"and the device works for {m_stepwise.device_active:.0f} µs in all.")

# %% id=01-buys guess within=0.1
# How many µs does it take with one wait?

# %% id=01-buys reveal
with agt.record() as together:
    in_one(a, x).sync()
m_together = together.metrics()
whose = f"One sync, {'your' if in_one is forward else 'our'} answer"
picture = agt.compare_timelines([stepwise, together], ["A sync after each step", whose])
waited = m_stepwise.host["wait"], m_together.host["wait"]
reveal("01-buys", f"{m_together.makespan:.0f}", picture, five=waited[0], one=waited[1])

# %% id=01-buys lesson
# Below, Python makes most of its calls while the device works, and waits once.

# %% id=01-buys told truth=91
# At the end Python waits for {one:.0f} µs, instead of {five:.0f} in five pieces. No kernel got faster, and no call either. What's gone is the stopping and starting: Python makes most of its calls *while the device is busy* with the work before. (The holes that are left are the device's own: between a copy and other work it needs 4 µs.) And `relu` needn't ask whether the product is ready: all of one run goes to one stream, which finishes one thing before the next.
#
# That answers our second question: in the meantime, Python can make the next call, or do a job of its own. **A call delays the result only when the device has nothing else to do.**

# %% id=one-wait-claims tags=asserts
assert len([span for span in together if span.kind == "wait"]) == 1
if device.simulated:
    ours = in_one is not forward  # your own has times of its own
    if ours:
        assert len(together.streams) == 1
        assert [round(m_together.host["call"], 1), round(m_stepwise.host["call"], 1)] == [76.4, 76.4]
        assert [round(m.makespan, 1) for m in (m_stepwise, m_together)] == [169.0, 90.7]
        assert m_together.device_idle < m_stepwise.device_idle
        saved = m_stepwise.host["wait"] - m_together.host["wait"]  # what's left is stopping and starting
        rest = m_stepwise.makespan - m_together.makespan - saved
        assert [round(saved), round(rest)] == [59, 20]
        late_calls = [span for span in together if span.kind == "call"]
        beside = together.overlap_between(late_calls, together.device_spans)
        assert beside > 0.5 * m_together.host["call"]
        fill = next(s for s in together.device_spans if s.kind == "memset")
        copies = [s.end for s in together.device_spans if s.kind == "h2d"]
        assert round(fill.start - max(copies)) == 4

# %% [markdown] id=challenge
# ## Challenge: nowhere to hide
#
# `layer` computes a layer of a neural network, `np.maximum(a @ x + b, 0)`, with three kernels. This time the matrix has only 64 rows and columns. The device is done with that before the next call comes, so nearly all of the time goes into calls, and each counts. Return an operation, as in `forward`. As it stands, it takes 114 µs: get below 80. The course's own answer takes 70 µs. (`add(n, x, y, z)` adds `x` and `y`, of `n` numbers each. There's a second rung at 55: let NumPy pack the three arrays into one, pin it, and copy it once.)

# %% id=01-challenge-kernels tags=helpers
add = agt.Kernel(r"""
extern "C" __global__ void add(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = x[i] + y[i];
    }
}
""")


# %% id=01-challenge starter
def layer(a, x, b):
    m, n = a.shape
    out = agt.zeros(m).partition(128)
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), out)
    total = add(m, product.output(), agt.h2d(b), agt.zeros(m).partition(128))
    return agt.relu(m, total.output(), agt.zeros(m).partition(128)).output().to_host()


# %% id=01-challenge solution
whole_layer = agt.Kernel(r"""
extern "C" __global__ void whole_layer(unsigned int m, unsigned int n, const float* a,
                                       const float* x, const float* b, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = b[row];
        for (unsigned int j = 0; j < n; j++) sum += a[row * n + j] * x[j];
        y[row] = sum > 0.0f ? sum : 0.0f;
    }
}
""")


def layer(a, x, b):
    m, n = a.shape
    y = agt.zeros(m).partition(128)
    return whole_layer(m, n, agt.h2d(a), agt.h2d(x), agt.h2d(b), y).output().to_host()


# %% id=01-challenge hints
# What do the three kernels do for *one* element of the result? Could one thread do all of it?
#
# Begin with your matvec. It has its sum in a variable of its own. Where could `b[row]` come in, and where the ReLU?
#
# Start with `float sum = b[row];`, and end with `y[row] = sum > 0.0f ? sum : 0.0f;`. One launch then takes `agt.h2d(a)`, `agt.h2d(x)`, `agt.h2d(b)` and one `agt.zeros(m).partition(128)`.

# %% id=01-challenge explanation
# One way is to begin the sum with `b[row]` and to clip it at the end. Two launches and two fills are gone, and a number doesn't leave its thread between the steps any more. This is called **fusing** kernels. (And all three arrays fit into one that's pinned, with `np.concatenate`. Then one copy is enough, and that gets below 55 µs.)

# %% id=01-challenge-check
check("01-challenge", layer)

# %% id=score
score("01")

# %% id=progress
progress("01")

# %% [markdown] id=key-points
# ## Key points
#
# - All threads run the same code with the same arguments. They tell themselves apart by `blockIdx.x * blockDim.x + threadIdx.x`.
# - All blocks have the same size, so there are often more threads than elements. Without its **bounds check**, a kernel can give right results for months and still be wrong.
# - A matrix is stored row after row, so with `n` columns `a[row, col]` is `a[row * n + col]`.
# - A launch only puts work into a queue and returns. Python waits when you ask it to, with `sync` or `synchronize`.
# - If you wait after each step, host and device take turns being idle. No need: a stream keeps its work in order anyway.
# - Where kernels are short, the calls are what takes the time, so it pays to make fewer of them.
#
# **Next:** in [02_streams_and_events](02_streams_and_events.ipynb), one queue becomes two, and for the first time two kernels can get into each other's way.

# %% [markdown] id=exercise-grid
# ## Encore: more puzzles
#
# *For the day when you'd like more practice: one sum for Python, and six more kernels.*
#
# ### Exercise: how many blocks?
#
# Return the number of blocks that `n` elements need when a block has `threads` threads: enough for all of them, and not one more.


# %% id=01-grid starter
def blocks_needed(n, threads): ...  # your code


# %% id=01-grid solution
def blocks_needed(n, threads):
    return (n + threads - 1) // threads


# %% id=01-grid hints
# How many blocks do you need for 256 elements and 128 threads? For 257? For 255?
#
# `n // threads` counts the *full* blocks. If some elements are left over, you need one more block for them.
#
# Round up instead of down: add `threads - 1` before you divide.

# %% id=01-grid explanation
# One way to round up is to add `threads - 1` before you divide. Unless `n` is a multiple already, that pushes the result up to the next block. `.partition(threads)` does the same for you.

# %% id=01-grid-check
check("01-grid", blocks_needed)

# %% [markdown] id=puzzle-add
# ### Puzzle 3: add
#
# In NumPy, this is `z = x + y`.

# %% id=01-add starter
my_add = agt.Kernel(r"""
extern "C" __global__ void my_add(unsigned int n,
                                  const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-add solution
# - // your lines
# + if (i < n) {
# +     z[i] = x[i] + y[i];
# + }

# %% id=01-add hints
# Two arrays come in, one goes out, and all three have the same length.
#
# You need `if (i < n) {`, then your line, then `}`.
#
# `if (i < n) { z[i] = x[i] + y[i]; }`

# %% id=01-add explanation
# Each thread reads two numbers and writes one. No thread needs another's result, so they can all run at once.

# %% id=01-add-check
check("01-add", my_add)

# %% [markdown] id=puzzle-scale
# ### Puzzle 4: scale and shift
#
# In NumPy, this is `y = a * x + b`, where `a` and `b` are numbers.

# %% id=01-scale starter
my_scale = agt.Kernel(r"""
extern "C" __global__ void my_scale(unsigned int n, float a, float b,
                                    const float* x, float* y)
{
    // your code
}
""")

# %% id=01-scale solution
# - // your code
# + unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
# + if (i < n) {
# +     y[i] = a * x[i] + b;
# + }

# %% id=01-scale hints
# `a` and `b` are numbers, not arrays, and every thread gets the same two.
#
# Two things are missing: which element is mine, and is there such an element?
#
# `unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;` and `if (i < n) { y[i] = a * x[i] + b; }`

# %% id=01-scale explanation
# A number is passed by value, so each thread has its own copy. Only arrays arrive as pointers.

# %% id=01-scale-check
check("01-scale", my_scale)

# %% [markdown] id=puzzle-reverse
# So far thread `i` has read element `i`, but nothing forces it to.
#
# ### Puzzle 5: reverse
#
# In NumPy, this is `y = x[::-1]`.

# %% id=01-reverse starter
my_reverse = agt.Kernel(r"""
extern "C" __global__ void my_reverse(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-reverse solution
# - // your lines
# + if (i < n) {
# +     y[i] = x[n - 1 - i];
# + }

# %% id=01-reverse hints
# Which element of `x` belongs at the front of `y`? It's the last one, and the index of the last one isn't `n`.
#
# Thread 0 reads element `n - 1`, thread 1 reads `n - 2`, and so on.
#
# `if (i < n) { y[i] = x[n - 1 - i]; }`

# %% id=01-reverse explanation
# A thread may *read* one element and *write* another. Its number `i` is only a starting point.

# %% id=01-reverse-check
check("01-reverse", my_reverse)

# %% [markdown] id=reverse-picture-text
# Which elements did your threads touch? This cell draws *your* kernel, so run it again whenever you've changed something. If it has buttons, step through it.

# %% id=reverse-picture
few = np.arange(10, dtype=np.float32)
agt.show_threads(
    my_reverse,
    10,
    few,
    np.zeros_like(few),
    grid=3,
    block=4,
    lesson="Arrows cross where a thread turns the order round. "
    "(No arrows? Your kernel touches nothing.)",
)

# %% [markdown] id=puzzle-stride
# ### Puzzle 6: every so often
#
# In NumPy, this is `y = x[::stride]`, and `n` is the length of `y`.

# %% id=01-stride starter
my_stride = agt.Kernel(r"""
extern "C" __global__ void my_stride(unsigned int n, unsigned int stride,
                                     const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-stride solution
# - // your lines
# + if (i < n) {
# +     y[i] = x[i * stride];
# + }

# %% id=01-stride hints
# `n` is the length of `y`. Thread 0 reads `x[0]`, and thread 1 reads `x[stride]`. What about thread 2?
#
# `if (i < n) { y[i] = x[i * stride]; }`

# %% id=01-stride explanation
# There's one thread for each element of `y`, so that's the array the bounds check is about. The caller made `x` long enough.

# %% id=01-stride-check
check("01-stride", my_stride)

# %% [markdown] id=plane-text
# ### Rows and columns
#
# With a matrix it's handy if each thread has a row and a column, too, so grids and blocks may have two dimensions. `.partition(16, 16)` cuts an array into squares of 16 rows and 16 columns. Then `x` counts to the right and `y` counts down: a thread finds its column with `blockIdx.x` and `threadIdx.x`, and its row with `blockIdx.y` and `threadIdx.y`.

# %% id=plane-kernel
plane_kernel = agt.Kernel(r"""
extern "C" __global__ void fill_plane(unsigned int m, unsigned int n, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        out[row * n + col] = 100.0f * row + col;
    }
}
""")
op = plane_kernel(40, 50, agt.zeros((40, 50)).partition(16, 16)).output().to_host()

# %% id=draw-plane tags=helpers
def draw_plane(filled, wide, tall):
    """The blocks, laid over the matrix."""
    has_element = np.zeros((tall * 16, wide * 16))
    has_element[: filled.shape[0], : filled.shape[1]] = 1
    figure, axes = plt.subplots(figsize=(6.4, 4.8))
    axes.imshow(has_element, cmap="Oranges", vmin=0, vmax=2.2)
    axes.vlines([15.5, 31.5, 47.5], -0.5, 47.5, color="0.4", linewidth=1)
    axes.hlines([15.5, 31.5], -0.5, 63.5, color="0.4", linewidth=1)
    right, bottom = [-0.5, 49.5, 49.5, -0.5, -0.5], [-0.5, -0.5, 39.5, 39.5, -0.5]
    axes.plot(right, bottom, color="black", linewidth=2.5)
    for x, y in np.ndindex(wide, tall):
        name = f"blockIdx.x = {x}\nblockIdx.y = {y}"
        axes.text(16 * x + 7.5, 16 * y + 3.5, name, ha="center", va="center", fontsize=8)
    axes.set(xticks=[0, 15, 31, 49, 63], yticks=[0, 15, 31, 39, 47], xlabel="col", ylabel="row")
    inside, outside = has_element.sum(), (has_element == 0).sum()
    shown(
        figure,
        f"A matrix of 40 rows and 50 columns below {wide} x {tall} blocks of 16 x 16 threads, which "
        "stick out on the right and at the bottom.",
        f"Orange: {inside:,.0f} threads with an element, inside the matrix (the thick line). "
        f"Pale: {outside:,} threads that the bounds check sends home.",
    )

# %% id=01-plane guess
# How many threads does the device start for this matrix of 40 rows and 50 columns? Type a number.

# %% id=01-plane reveal
with agt.record() as trace:
    filled = op.sync()

(launch,) = trace.find("fill_plane")
wide, tall, _ = launch.detail["grid"]
truth = wide * tall * 256
reveal("01-plane", truth, lambda: draw_plane(filled, wide, tall), wide=wide, tall=tall)

# %% id=01-plane told truth=3072
# {wide} blocks side by side cover 50 columns, and {tall} rows of blocks cover 40 rows. Some stick out on the right, some at the bottom, and the one in the corner does both. So the kernel has to check both numbers.

# %% id=plane-check tags=asserts
assert (wide, tall) == (4, 3)
assert filled[39, 49] == 3949

# %% [markdown] id=puzzle-broadcast-text
# ### Puzzle 7: broadcast
#
# A kernel in two dimensions has two bounds to check. In NumPy, this is `out = tall[:, None] + wide[None, :]`. `tall` has `m` elements, `wide` has `n`, and `out` has `m` rows and `n` columns.

# %% id=01-broadcast starter
my_broadcast = agt.Kernel(r"""
extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
        const float* tall, const float* wide, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-broadcast solution
# - // your lines
# + if (row < m && col < n) {
# +     out[row * n + col] = tall[row] + wide[col];
# + }

# %% id=01-broadcast hints
# Each thread has a `row` and a `col`. Which element of `tall` does it need, and which of `wide`?
#
# Each of the two numbers needs its own bound: `if (row < m && col < n)`.
#
# `out[row * n + col] = tall[row] + wide[col];`

# %% id=01-broadcast explanation
# NumPy calls this broadcasting and has rules for it. In a kernel you need no rules, because you say yourself which element you want.

# %% id=01-broadcast-check
check("01-broadcast", my_broadcast)

# %% [markdown] id=exercise-transpose
# ### Puzzle 8: transpose
#
# In NumPy, this is `out = a.T`. `a` has `m` rows and `n` columns, so `out` has `n` rows and `m` columns. Use one thread for each element *of `out`*.

# %% id=01-transpose starter
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n,
                                        const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""")

# %% id=01-transpose solution
# - // your code
# + if (row < n && col < m) {
# +     out[row * m + col] = a[col * n + row];
# + }

# %% id=01-transpose hints
# `out` has `n` rows of `m` elements. Its element (row, col) is element (col, row) of `a`.
#
# Rows of `out` have `m` elements and rows of `a` have `n`, so the two indices use different factors.
#
# `if (row < n && col < m) out[row * m + col] = a[col * n + row];`

# %% id=01-transpose explanation
# Both indices have their own bound, and both arrays their own row length. With a square matrix you could have mixed them up and never noticed, so the check has others, too.

# %% id=01-transpose-check
check("01-transpose", my_transpose)

# %% [markdown] id=exercise-meanwhile
# ## Encore: a job meanwhile
#
# One wait is still a wait, and Python could use the time for something of its own. `op` is an operation, and `job()` keeps the host busy. Get the job done *while* the device works, and return the result of `op`. On the first page you did this with `spawn`, but here's a plain `def`, which can't `await`.
#
# You've seen the pieces: `agt.create_stream()`, `async_on` and `synchronize`. `async_on` returns a placeholder for the result. You get it immediately, but you may read it only after the wait.


# %% id=01-meanwhile starter
def with_a_job(op, job):
    result = op.sync()
    job()
    return result


# %% id=01-meanwhile solution
def with_a_job(op, job):
    stream = agt.create_stream()
    result = op.async_on(stream)
    job()
    stream.synchronize()
    return result


# %% id=01-meanwhile hints
# There are three steps: start the operation, do the job, wait. `sync` does the first and the last in one go, so there's no room for the job in between.
#
# `op.async_on(stream)` starts an operation and returns immediately. `stream.synchronize()` waits until the stream has finished everything.
#
# `stream = agt.create_stream()`, `result = op.async_on(stream)`, `job()`, `stream.synchronize()`, `return result`.

# %% id=01-meanwhile explanation
# One way is `async_on`. It returns as soon as the work is in the queue, so the job runs while the device works. You still need the wait, because you mustn't read the result before it.

# %% id=01-meanwhile-check
check("01-meanwhile", with_a_job)
# %% [markdown] id=on-an-h200
# ## Encore: three kernels on an H200
#
# *For the day when you don't believe a simulator.*
#
# On an H200, we ran three kernels, each with `sync`: `sgemm_naive`, which multiplies two matrices, `matvec_naive`, and `relu` on 256 numbers. (Each kernel has its own stream, which changes nothing here.)

# %% id=waiting-picture
h200 = agt.Trace.load_recording("01_sync_kernels").from_first()
h200.plot(
    title="Three kernels on an H200, with a sync after each",
    lanes=("host", "streams"),
    lesson="The device works for 52 µs, and in between it's idle for 86.",
)

# %% [markdown] id=waiting-read
# Look at the last wait. When it begins, that hairline of a `relu` has been over for 7 µs, almost ten times as long as it took. And Python still waits for 5 µs, because the question itself takes time, even if the answer is yes. Meanwhile, the device has nothing to do.

# %% id=steps-on-a-gpu-check tags=asserts
on_gpu = h200.metrics()
*_, last_wait = [span for span in h200 if span.kind == "wait"]
(relu_there,) = h200.find("relu")
ago = last_wait.start - relu_there.end
assert (round(on_gpu.device_active), round(on_gpu.device_idle, 1)) == (52, 85.5)
assert len([span for span in h200 if span.kind == "wait"]) == 3
assert (round(ago), round(last_wait.duration)) == (7, 5)
assert 9.5 < ago / relu_there.duration < 10
assert round(relu_there.duration, 1) == 0.8
