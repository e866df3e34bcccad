"""Source of notebooks/01_sync_kernels.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Kernels, one at a time
#
# **After this page you can**
#
# - say how many blocks and threads a launch has, and which element each thread works on;
# - write kernels in CUDA C, for vectors and for matrices, that stay within the bounds of their arrays;
# - read the message when one does not;
# - see in a timeline how long Python waits for the device, and start to do something about it.
#
# | | |
# |---|---|
# | Time | 50 minutes |
# | You need | [00_start_here](00_start_here.ipynb), and NumPy. No C: what you need of it fits in three lines, and is below |
# | Device | the first cell of code says which one is in use |

# %% id=setup
import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_tutor.exercises import (
    Prediction,
    check,
    hint,
    progress,
    score,
    solution,
    solved,
)

device = agt.use("auto")
device

# %% [markdown] id=c-in-three-lines
# ## C in three lines
#
# - Each variable has a type: `float` is NumPy's `float32`, `unsigned int` is `uint32`. Each statement ends with `;`.
# - An array comes in as a *pointer*: `const float* x` to read from, `float* y` to write to. `x[i]` is what you think. But a
#   pointer does not know how long its array is, so the length comes as an argument of its own.
# - `if (i < n) { ... }` and `for (unsigned int j = 0; j < n; j++) { ... }` are Python's `if i < n:` and
#   `for j in range(n):`. Python's `and` is `&&`, and a comment begins with `//`.

# %% [markdown] id=who
# ## Who am I?
#
# A kernel is run by many **threads** at once. All run the same lines, so the first thing that a thread does is to ask for its
# number. Threads come in **blocks** of equal size, and all blocks together are the **grid**. CUDA C has three names for this:
#
# | name | means |
# |---|---|
# | `threadIdx.x` | my number within my block, from 0 |
# | `blockIdx.x` | the number of my block, from 0 |
# | `blockDim.x` | how many threads a block has |
#
# The kernel below has each thread write down who it is: a hundred times its block, plus its number in there.

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

out = agt.zeros(12, np.uint32).partition(4)  # 12 elements, in blocks of 4 threads
numbers = who(12, out).output().to_host().sync()
print(numbers)
assert list(numbers) == [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]

# %% [markdown] id=who-read
# Three blocks of four threads: block 0 has the threads 0 to 3, and so do block 1 and block 2. The line with `blockIdx.x * blockDim.x +
# threadIdx.x` gives each thread a number in the *whole grid*, here 12 numbers from 0 on. Nearly every kernel begins with it.
#
# (`extern "C" __global__` says that this function is a kernel. `sync` runs an operation and waits for it; for most of this
# page we need nothing else.)

# %% [markdown] id=predict-threads-text
# ## How many blocks?
#
# 12 is a multiple of 4. Most lengths are not a multiple of anything useful. Say a vector has 1000 elements, and a block has 256
# threads.

# %% id=predict-threads
threads_started = Prediction(
    "1000 elements, blocks of 256 threads. How many threads does the device start?",
    **{
        "1000": "one for each element",
        "1024": "four blocks, and each is full",
        "768": "three blocks, as 1000 // 256 is 3",
    },
)
threads_started

# %% id=predict-threads-commit
threads_started.commit(...)

# %% id=reveal-threads
with agt.record() as trace:
    numbers = who(1000, agt.zeros(1000, np.uint32).partition(256)).output().to_host().sync()

(launch,) = trace.find("who")
grid, block = launch.detail["grid"], launch.detail["block"]
print("grid", grid, "block", block)
threads_started.reveal(str(grid[0] * block[0]), f"{grid[0]} blocks of {block[0]} threads were launched.")

# %% [markdown] id=blocks-are-equal
# All blocks of a launch have the same size. So 1000 elements need four blocks, and the last 24 threads have nothing to do. The
# line `if (i < n)` sends them home. It is called the **bounds check**, and in a moment you see what happens without it.

# %% id=blocks-are-equal-check
assert grid[0] * block[0] - 1000 == 24
assert (numbers[999], len(numbers)) == (3 * 100 + 231, 1000)

# %% [markdown] id=exercise-grid
# ### Exercise: how many blocks?
#
# Write the number of blocks for `n` elements and blocks of `threads` threads: enough for all, and not one more. It is an
# `int`. Change the cell, run it, and run the check below it.

# %% id=01-grid starter
def blocks_needed(n, threads):
    ...  # your code


# %% id=01-grid solution
def blocks_needed(n, threads):
    return (n + threads - 1) // threads

# %% id=01-grid hints
# How many blocks for 256 elements and 128 threads? For 257? For 255?
#
# `n // threads` counts the *full* blocks. What is left over needs one more, if anything is left over.
#
# Round up instead of down: add `threads - 1` before you divide.

# %% id=01-grid explanation
# Adding `threads - 1` before the division rounds up: it carries over to one more block unless `n` is a multiple already.
# `.partition(threads)` computes the same.

# %% id=01-grid-check
check("01-grid", blocks_needed)

# %% [markdown] id=how-exercises-work
# As before: `hint("01-grid")` in a cell of your own helps a little, `solution("01-grid")` after an attempt helps a lot, and no exercise needs
# the one before.

# %% [markdown] id=relu-text
# ## Your first kernel
#
# **ReLU**, the *rectified linear unit*, is the plainest function in neural networks: negative numbers become zero, others stay. In
# NumPy:

# %% id=relu-numpy
x = np.array([-2.0, -0.5, 0.0, 1.5, 3.0], np.float32)
np.maximum(x, 0)

# %% [markdown] id=exercise-relu
# ### Exercise: ReLU
#
# Fill in the body. `condition ? a : b` is Python's `a if condition else b`, and a `float` constant is written `0.0f`.
#
# The check launches your kernel for several lengths and block sizes, also with one array as input *and* output, and holds every
# element against NumPy's. It always uses a simulated device, also on a machine with a GPU: there a mistake costs you a message, and nothing else.

# %% id=01-relu starter
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    // your code
}
""")

# %% id=01-relu solution
my_relu = agt.Kernel(r"""
extern "C" __global__ void my_relu(unsigned int n, const float* input, float* output)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        output[i] = input[i] > 0.0f ? input[i] : 0.0f;
    }
}
""")

# %% id=01-relu hints
# Two things are missing: which element is mine, and what to do with it.
#
# The number of a thread in the whole grid is `blockIdx.x * blockDim.x + threadIdx.x`, and some threads of the last block have a number
# that is not below `n`.
#
# Inside of `if (i < n)`, one line: `output[i] = input[i] > 0.0f ? input[i] : 0.0f;`

# %% id=01-relu explanation
# Every thread finds its own `i`, steps aside if there is no such element, and writes *something* in either case: what no thread writes
# keeps what was there before.

# %% id=01-relu-check
check("01-relu", my_relu)

# %% [markdown] id=bounds-text
# ## Without the bounds check
#
# Here is `twice`, the kernel of the last page, without its `if`. A vector of 1000 elements, four blocks of 256 threads: what do the last
# 24 threads do? These cells use the simulated device even if you have a GPU. On a GPU, an error like this one can end
# all GPU work of the Python process.

# %% id=predict-bounds
no_check = Prediction(
    "24 threads read and write beyond the end of their arrays. What happens on the simulated device?",
    nothing="nothing: there is no element for them, so they do nothing",
    error="the kernel is stopped with an error",
    wrong="the first 24 elements are written twice: indices wrap around",
)
no_check

# %% id=predict-bounds-commit
no_check.commit(...)

# %% id=bounds-run
CARELESS = r"""
extern "C" __global__ void careless(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = 2.0f * x[i];
}
"""


def run_careless(n):
    with agt.using("sim"):
        careless = agt.Kernel(CARELESS)
        y = careless(n, agt.ones(n), agt.zeros(n).partition(256))
        return y.output().to_host().sync()


try:
    result = run_careless(1000)
    happened = "nothing" if (result == 2).all() else "wrong"
except agt.errors.OutOfBoundsError as error:
    happened = "error"
    message, site = error, error.site

# %% id=reveal-bounds
no_check.reveal(happened, "The next cell shows the message.")

# %% id=bounds-message
print(message)
assert (site.block[0], site.thread[0]) == (3, 232)
assert (site.index, site.bound) == (1000, 1000)
assert 3 * 256 + 232 == 1000

# %% [markdown] id=bounds-read
# Read it from left to right: which kernel, which thread of which block, which array, which element, and how many there are. Thread
# 232 of block 3 has the number 3 · 256 + 232 = 1000: the first one beyond the end.

# %% [markdown] id=misconception-bounds
# > **Misconception: the numbers were right, so the kernel is right.**
# >
# > - *What you see:* a kernel without a bounds check, and right results, for months.
# > - *Why:* the length was always a multiple of the block size. And when it is not, a real GPU may well say nothing, and write over
# >   whatever comes behind the array.
# > - *What helps:* the bounds check, always; and tests with lengths that are *not* multiples of anything.

# %% id=misconception-bounds-run
fine = run_careless(1024)  # a multiple of 256
print("1024 elements:", fine[:4], "... all right")
assert (fine == 2).all()

for n in (1023, 1025):
    try:
        run_careless(n)
    except agt.errors.OutOfBoundsError as error:
        print(f"{n} elements: element {error.site.index} of {error.site.bound} was asked for")
    else:
        raise AssertionError("this should have been stopped")

# %% [markdown] id=matrices
# ## Matrices are long vectors
#
# A kernel has no `a[i, j]`. In memory the rows of a matrix lie one behind the other, as in NumPy:

# %% id=row-major
a = np.arange(12, dtype=np.float32).reshape(3, 4)  # 3 rows, 4 columns
print(a)
flat = a.ravel()
row, col = 2, 1
print("a[2, 1] is", a[row, col], "and so is flat[2 * 4 + 1]:", flat[row * 4 + col])
assert all(a[i, j] == flat[i * 4 + j] for i in range(3) for j in range(4))

# %% [markdown] id=row-major-read
# So `a[row, col]` is `a[row * n + col]`, where `n` is the length of a *row*: the number of columns. This way of storing a matrix is called
# **row-major**. (Mind: C takes `a[row, col]` without a word, and reads `a[col]`. A comma is an operator there.)

# %% [markdown] id=exercise-matvec
# ### Exercise: matrix times vector
#
# Compute `y = a @ x`, for a matrix `a` of `m` rows and `n` columns: a thread for each element of `y`. So thread `row` goes along
# row `row` of `a`, multiplies it with `x` element by element, and adds up.

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
my_matvec = agt.Kernel(r"""
extern "C" __global__ void my_matvec(unsigned int m, unsigned int n,
                                     const float* a, const float* x, float* y)
{
    unsigned int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m) {
        float sum = 0.0f;
        for (unsigned int j = 0; j < n; j++) {
            sum += a[row * n + j] * x[j];
        }
        y[row] = sum;
    }
}
""")

# %% id=01-matvec hints
# One thread computes one element of `y`: it needs one row of `a`, and all of `x`.
#
# Row `row` begins at `a[row * n]`, as every row has `n` elements. There are `m` rows, so `m` is what a thread compares its `row` with.
#
# Start with `float sum = 0.0f;`, add `a[row * n + j] * x[j]` for each `j` below `n`, and write `y[row] = sum;` after the loop.

# %% id=01-matvec explanation
# A loop is left in it, over `j`: it runs inside of *one* thread. The loop over the rows is what became threads. This is
# `agt.matvec_naive`, in your own words.

# %% id=01-matvec-check
check("01-matvec", my_matvec)

# %% [markdown] id=two-dimensions
# ## Blocks with two dimensions
#
# For the product of two *matrices* we want a thread for each element of the result, and an element has a row and a column. So grids and blocks may have two
# dimensions (or three): `threadIdx.y` beside `threadIdx.x`, and so on. The course brings this kernel:

# %% id=gemm
print(agt.sgemm_naive.source)

# %% [markdown] id=gemm-read
# It computes `c = alpha * a @ b + beta * c`, which is traditionally called **GEMM**, *general matrix multiply* (the `s` is for *single
# precision*, `float`). `x` counts columns and `y` counts rows, as in pictures. Each of the two has its own bounds check.
#
# An array with two dimensions is partitioned into blocks with two dimensions:

# %% id=gemm-run
rng = np.random.default_rng(0)
m, k, n = 40, 30, 50
a = rng.standard_normal((m, k), dtype=np.float32)
b = rng.standard_normal((k, n), dtype=np.float32)

with agt.record() as trace:
    out = agt.zeros((m, n)).partition(16, 16)
    product = agt.sgemm_naive(m, n, k, 1.0, agt.h2d(a), agt.h2d(b), 0.0, out)
    c = product.output().to_host().sync()

(launch,) = trace.find("sgemm_naive")
print("grid", launch.detail["grid"], "block", launch.detail["block"])
assert list(launch.detail["grid"]) == [4, 3, 1]  # 4 blocks for 50 columns, 3 for 40 rows
assert np.allclose(c, a @ b, atol=1e-4)

# %% [markdown] id=exercise-transpose
# ### Exercise: transpose
#
# `a` has `m` rows and `n` columns. Write its transpose into `out`, which has `n` rows and `m` columns: a thread for each element *of
# `out`*. The check uses wide matrices, tall ones, and some that do not fit their blocks.

# %% id=01-transpose starter
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}
""")

# %% id=01-transpose solution
my_transpose = agt.Kernel(r"""
extern "C" __global__ void my_transpose(unsigned int m, unsigned int n, const float* a, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;  // of out
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < m) {
        out[row * m + col] = a[col * n + row];
    }
}
""")

# %% id=01-transpose hints
# `out` has `n` rows of `m` elements. Its element (row, col) is element (col, row) of `a`.
#
# Rows of `out` are `m` long, rows of `a` are `n` long: the two indices use different factors.
#
# `if (row < n && col < m) out[row * m + col] = a[col * n + row];`

# %% id=01-transpose explanation
# Both indices have a bound of their own, and each array its own length of a row. With square matrices many a mistake would have passed:
# that is why the check uses wide and tall ones.

# %% id=01-transpose-check
check("01-transpose", my_transpose)

# %% [markdown] id=time
# ## And what does Python do?
#
# So far we asked *what* is computed. Now: *when?* Let us copy a matrix and a vector to the device, multiply them, apply ReLU, and
# fetch the result: five steps, with a `sync` after each. It is how one writes it first. (`agt.matvec_naive` and `agt.relu` are the kernels that you
# have written above, or skipped; the course brings its own. `agt.pin` puts a copy of an array where the device can fetch it by
# itself, and the second argument of `h2d` is a name for the array.)

# %% id=steps
m = n = 512
a, x = agt.pin(rng.standard_normal((m, n), dtype=np.float32)), agt.pin(np.ones(n, np.float32))


def step_by_step(a, x):
    a_there = agt.h2d(a, "a").sync()
    x_there = agt.h2d(x, "x").sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output().sync()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output().sync()
    return agt.d2h(positive).sync()


for _ in range(4):
    step_by_step(a, x)  # a real GPU is slow the first time, so this is not recorded

# %% id=predict-waiting
waiting = Prediction(
    "From start to end of these steps, how much of the time does Python just wait?",
    little="less than a quarter: most of it goes into the calls",
    half="something between a quarter and three quarters",
    most="more than three quarters",
)
waiting

# %% id=predict-waiting-commit
waiting.commit(...)

# %% id=steps-run
with agt.record() as stepwise:
    result = step_by_step(a, x)

assert np.allclose(result, np.maximum(a @ x, 0), atol=1e-3)

# %% id=reveal-waiting
m_stepwise = stepwise.metrics()
share = m_stepwise.host["wait"] / m_stepwise.makespan
truth = "little" if share < 0.25 else "most" if share > 0.75 else "half"
waiting.reveal(truth, f"Python waited for {share:.0%} of the time, in several waits.")

# %% id=steps-picture
stepwise.plot(title="A sync after each step", lanes=("host", "streams"))

# %% [markdown] id=steps-read
# The upper lane is the host. Each step is the same story: a call or two, then a stretch of waiting while the device works. And
# look at the streams: after each step the device has nothing to do, until Python has come back from its wait and made the next
# call. **They take turns. When one works, the other is idle.** (Each `sync` takes the next of four streams, so each
# step is on another lane. Lanes are numbered in the order of their first use.)

# %% id=steps-check
waits = [span for span in stepwise if span.kind == "wait"]
assert len(waits) == 5
assert m_stepwise.overlap < 1
assert m_stepwise.device_idle > 0
if device.simulated:
    calls = [s for s in stepwise if s.kind == "call"]
    work = stepwise.device_spans
    both = stepwise.overlap_between(calls, work)
    print(f"host in a call and device at work: {both:.0f} µs of {m_stepwise.makespan:.0f}")
    assert both < 0.1 * m_stepwise.makespan
print(f"the host waits for {m_stepwise.host['wait']:.0f} µs")
print(f"the device has nothing to do for {m_stepwise.device_idle:.0f} µs")

# %% [markdown] id=launch-returns
# ## A launch does not wait
#
# It is not the launch that keeps Python waiting. It is the `sync` behind it. To launch means: to put work into the queue of a stream. The call comes back
# as soon as that is done, and the kernel may not even have begun.
#
# `async_on` runs an operation on a stream of yours, *without* the wait. What it returns is the result as it will be: you may
# hold it at once, and look into it after the wait. `stream.synchronize()` is the wait. The matrix is a larger one now, so that the kernel
# takes a good while.

# %% id=launch-returns-run
stream = agt.create_stream()
size = 2048
matrix, vector = agt.ones((size, size)).sync(), agt.ones(size).sync()

with agt.record() as launched:
    product = agt.matvec_naive(size, size, matrix, vector, agt.zeros(size).partition(128))
    product.async_on(stream)
    stream.synchronize()

(call,) = launched.find("launch matvec_naive")
(kernel,) = launched.find("matvec_naive")
(wait,) = [span for span in launched if span.kind == "wait"]
print(f"the call takes {call.duration:.0f} µs, the kernel {kernel.duration:.0f} µs")
assert call.end < kernel.end
if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
    assert wait.end >= kernel.end

# %% [markdown] id=misconception-launch
# > **Misconception: to know how long a kernel takes, time the line that launches it.**
# >
# > - *What you see:* a kernel that takes the same time whatever its size.
# > - *Why:* that is the time to put it into the queue. The kernel is still to come.
# > - *What helps:* look at the kernel's own span in a trace. (Or wait before you stop the clock; then you measure
# >   the wait as well.)

# %% id=misconception-launch-run
calls, kernels = {}, {}
for size in (128, 512):
    matrix, vector = agt.ones((size, size)), agt.ones(size)
    op = agt.matvec_naive(size, size, matrix, vector, agt.zeros(size).partition(128))
    with agt.record() as trace:
        op.sync()
    (call,) = trace.find("launch matvec_naive")
    (kernel,) = trace.find("matvec_naive")
    calls[size], kernels[size] = call.duration, kernel.duration
    print(f"{size} x {size}: call {call.duration:.0f} µs, kernel {kernel.duration:.0f} µs")

if device.simulated:
    assert abs(calls[128] - calls[512]) < 0.01
    assert kernels[512] > 2 * kernels[128]

# %% [markdown] id=exercise-one-wait
# ### Exercise: wait once
#
# Here are the steps once more, as a function of `a` and `x`. Rewrite it so that it does not wait at all, and *returns an operation* that yields the result.
# Whoever runs that waits once. You need two things for it: **a kernel takes operations in place of
# arrays**, and the copy to the host of what an operation yields is `op.to_host()`; `agt.d2h` wants an array that is there already.
#
# The check looks at the numbers and at the trace: nothing may happen while the operation is built, and one wait has to do.

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
    product = agt.matvec_naive(m, n, agt.h2d(a), agt.h2d(x), agt.zeros(m).partition(128))
    y = product.output()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output()
    return positive.to_host()

# %% id=01-one-wait hints
# Each `.sync()` is a wait. Which of the four does Python need, to go on?
#
# A kernel takes operations in place of arrays: `agt.matvec_naive(m, n, agt.h2d(a), ...)`.
#
# Delete every `.sync()`, and end with `.to_host()` on the operation that yields the array.

# %% id=01-one-wait explanation
# The steps depend on each other, but it is the *stream* that keeps their order. The host describes all of them, hands them over, and
# waits once, for the copy at the end.

# %% id=01-one-wait-check
check("01-one-wait", forward)

# %% [markdown] id=one-wait-read
# Without the waits in between, is the whole quicker? Here are the steps from above and the one operation, on the same scale.
# (`solved` brings the course's own answer to an exercise without showing it, so yours need not be ready.)

# %% id=one-wait-compare
in_one = solved("01-one-wait")

for _ in range(4):
    in_one(a, x).sync()  # not recorded

with agt.record() as together:
    in_one(a, x).sync()

agt.compare_timelines([stepwise, together], ["A sync after each step", "One sync"])

# %% id=one-wait-claims
assert len([span for span in together if span.kind == "wait"]) == 1
assert len(together.streams) == 1
if device.simulated:
    assert together.metrics().makespan < stepwise.metrics().makespan
    assert together.metrics().device_idle < stepwise.metrics().device_idle
print(
    f"five waits: {stepwise.metrics().makespan:.0f} µs, "
    f"one wait: {together.metrics().makespan:.0f} µs"
)

# %% [markdown] id=exercise-meanwhile
# ### Exercise: a job for the host meanwhile
#
# One wait is still a wait. Python could do something of its own in that time. `op` is an operation, `job` a function of yours
# that keeps the host busy. Have the job done *while* the device works, and return the result of `op`, complete.
#
# You have seen both pieces: `async_on` and `synchronize`. (On the first page it was `spawn` and `await`. They would do as well,
# in an `async def`; this one is a plain function.)

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
# Three steps: start the operation, do the job, wait. `sync` is the first and the last in one, so it is in the way.
#
# `op.async_on(stream)` starts an operation and returns at once. `stream.synchronize()` waits until the stream has done everything.
#
# `stream = agt.create_stream()`, `result = op.async_on(stream)`, `job()`, `stream.synchronize()`, `return result`.

# %% id=01-meanwhile explanation
# `async_on` returns as soon as the work is in the queue, so the job and the device share the time. The wait has to be there, too: before
# it, the result may not be read.

# %% id=01-meanwhile-check
check("01-meanwhile", with_a_job)

# %% [markdown] id=meanwhile-read
# This is the idea of the whole course in five lines: *start, do something else, wait as late as you can*. Written like this
# it does not go far, since someone has to find the right moment for each wait by hand. The pages that follow have better
# tools for it.

# %% [markdown] id=key-points
# ## Key points
#
# - A launch has a **grid** of equal **blocks** of **threads**; `blockIdx.x * blockDim.x + threadIdx.x` is a thread's number.
# - There are often more threads than elements. The **bounds check** sends the rest home. Without it a kernel may seem right, and not be.
# - A matrix is stored row by row: `a[row, col]` is `a[row * n + col]`, with `n` columns.
# - A launch puts work into a queue and returns. `sync` is what waits, and while the host waits it does nothing else.
# - Waiting after each step has host and device take turns. The stream keeps the order without it.
#
# What others call these things is in the [glossary](../docs/glossary.md), and what people often believe that is not so in
# the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [02_streams_and_events.ipynb](02_streams_and_events.ipynb), where one stream becomes two. In a hurry?
# [07_async_mlp.ipynb](07_async_mlp.ipynb) puts these three kernels to work: a small neural network, four batches at a time.

# %% id=score
score(threads_started, no_check, waiting)

# %% id=progress
progress("01")
