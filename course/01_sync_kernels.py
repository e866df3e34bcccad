"""Source of notebooks/01_sync_kernels.ipynb: edit here, then `make notebooks-build`."""

# %% [markdown] id=title
# # Kernels, one at a time
#
# A GPU takes one function of yours and runs it a thousand times at once. Every one of these thousand gets the same code and the same arguments.
#
# **So how does each of them know what to do? And what does Python do all that time?**
#
# After this page you can write kernels for vectors and matrices that stay within their arrays, read the message when one does not, and see in a
# timeline how long Python waits.
#
# | | |
# |---|---|
# | Time | 65 minutes, with a good place for a break in the middle |
# | You need | [00_start_here](00_start_here.ipynb), and NumPy. You need no C: what there is of it fits into three lines below |

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

# %% [markdown] id=first-picture
# ## Twelve threads
#
# Here is a kernel, and below it are the twelve threads that ran it. Don't read the code yet. Look at the picture, and step through it if it has buttons: each small square
# is a thread or an element of an array.

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

agt.show_threads(who, 12, np.zeros(12, np.uint32), grid=3, block=4)

# %% [markdown] id=who
# Twelve **threads**, twelve elements, one arrow each. The threads stand in groups of four. Such a group is called a **block**, and all blocks together
# are the **grid**.
#
# All threads run the same lines. So the first thing each of them does is to ask who it is. CUDA C has three names for that:
#
# | name | means |
# |---|---|
# | `threadIdx.x` | my number within my block, from 0 |
# | `blockIdx.x` | the number of my block, from 0 |
# | `blockDim.x` | how many threads a block has |
#
# This kernel has each thread write down its answer, a hundred times its block plus its place in the block. What did they write?

# %% id=who-run
out = agt.zeros(12, np.uint32).partition(4)  # 12 elements, in blocks of 4 threads
numbers = who(12, out).output().to_host().sync()
print(numbers)

# %% id=who-check tags=asserts
assert list(numbers) == [0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203]

# %% [markdown] id=who-read
# Block 0 has threads 0 to 3, and so do blocks 1 and 2. The first line of the kernel turns these into numbers in the *whole grid*, from 0 to 11. Nearly
# every kernel begins with that line. It is the answer to our first question: **same code, same arguments, another `i`.**
#
# (`extern "C" __global__` says that this function is a kernel. `sync()` runs an operation and waits for it.)

# %% [markdown] id=c-in-three-lines
# ## C in three lines
#
# - Each variable has a type: `float` is NumPy's `float32`, `unsigned int` is `uint32`. Each statement ends with `;`.
# - An array arrives as a *pointer*: `const float* x` to read from, `float* y` to write to. `x[i]` works as in NumPy. But a pointer does not know how long its
#   array is, so the length is an argument of its own.
# - `if (i < n) { ... }` and `for (unsigned int j = 0; j < n; j++) { ... }` are Python's `if i < n:` and `for j in range(n):`. `and` is `&&`, and a
#   comment begins with `//`.

# %% [markdown] id=predict-threads-text
# ## A thousand elements
#
# Twelve is a multiple of four. Most lengths are not a multiple of anything useful. Say an array has 1000 elements and a block has 256 threads.

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
threads_started.reveal(
    str(grid[0] * block[0]), f"{grid[0]} blocks of {block[0]} threads were launched."
)

# %% [markdown] id=blocks-are-equal
# All blocks of a launch have the same size. So the last 24 threads have no element, and the line `if (i < n)` sends them home. It is called the **bounds check**.

# %% id=blocks-are-equal-check tags=asserts
assert grid[0] * block[0] - 1000 == 24
assert (numbers[999], len(numbers)) == (3 * 100 + 231, 1000)

# %% [markdown] id=exercise-grid
# ### Exercise: how many blocks?
#
# How many blocks do `n` elements need, with `threads` threads in a block? Enough for all, and not one more. The answer is an `int`.


# %% id=01-grid starter
def blocks_needed(n, threads): ...  # your code


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
# One way to round up is to add `threads - 1` before the division: that carries over to one more block unless `n` is a multiple already.
# `.partition(threads)` computes the same.

# %% id=01-grid-check
check("01-grid", blocks_needed)

# %% [markdown] id=puzzles
# ## Eight small kernels
#
# Now you. These puzzles take about two minutes each, and their first line is nearly always there. The check runs your kernel on arrays of several lengths and compares
# every element with NumPy's. It always uses a simulated device, so a mistake costs you a message and nothing else.
#
# ### Puzzle 1: copy
#
# In NumPy: `y[:] = x`.

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
my_copy = agt.Kernel(r"""
extern "C" __global__ void my_copy(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[i];
    }
}
""")

# %% id=01-copy hints
# Your thread has a number `i`. Take element `i` of `x`, and put it into element `i` of `y`.
#
# Assignment is `=`, as in Python, and the line ends with `;`.
#
# `y[i] = x[i];`

# %% id=01-copy explanation
# No loop, and yet a thousand elements are copied: a thousand threads ran this one line.

# %% id=01-copy-check
check("01-copy", my_copy)

# %% [markdown] id=puzzle-add
# ### Puzzle 2: add
#
# In NumPy: `z = x + y`.

# %% id=01-add starter
my_add = agt.Kernel(r"""
extern "C" __global__ void my_add(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        // your line
    }
}
""")

# %% id=01-add solution
my_add = agt.Kernel(r"""
extern "C" __global__ void my_add(unsigned int n, const float* x, const float* y, float* z)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        z[i] = x[i] + y[i];
    }
}
""")

# %% id=01-add hints
# Two arrays come in, one goes out, and all three have the same length.
#
# `z[i] = x[i] + y[i];`

# %% id=01-add explanation
# Each thread reads two numbers and writes one. Nobody needs anybody else, so all of them may run at once.

# %% id=01-add-check
check("01-add", my_add)

# %% [markdown] id=puzzle-scale
# ### Puzzle 3: scale and shift
#
# In NumPy: `y = a * x + b`, for two numbers `a` and `b`. This time the bounds check is yours, too.

# %% id=01-scale starter
my_scale = agt.Kernel(r"""
extern "C" __global__ void my_scale(unsigned int n, float a, float b, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines, and do not forget the bounds check
}
""")

# %% id=01-scale solution
my_scale = agt.Kernel(r"""
extern "C" __global__ void my_scale(unsigned int n, float a, float b, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = a * x[i] + b;
    }
}
""")

# %% id=01-scale hints
# `a` and `b` are plain numbers and not arrays: every thread gets the same two.
#
# First `if (i < n) {`, then one line, then `}`.
#
# `if (i < n) { y[i] = a * x[i] + b; }`

# %% id=01-scale explanation
# Numbers are handed to every thread as they are. Only arrays are pointers.

# %% id=01-scale-check
check("01-scale", my_scale)

# %% [markdown] id=exercise-relu
# ### Puzzle 4: ReLU
#
# In NumPy: `y = np.maximum(x, 0)`. Negative numbers become zero, others stay. Neural networks are full of this function, and it is called **ReLU**, *rectified linear unit*.
#
# `condition ? a : b` is Python's `a if condition else b`, and a `float` constant is written `0.0f`. Now the first line is yours as well. (The check also uses one array as
# input *and* output, so read your element before you write it.)

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
# ## The last block
#
# What if somebody forgets the `if`? Here is such a kernel. With 1000 elements and four blocks of 256 threads, some threads of block 3 have nothing to work on, and now
# nobody tells them.
#
# (This cell uses the simulated device even if you have a GPU. On a GPU, a mistake like this can end all GPU work of your Python process.)

# %% id=predict-bounds
falls = Prediction(
    "Which thread of block 3 is the first that reaches beyond the end of the arrays?",
    **{
        "24": "thread 24, as there are 24 too many",
        "231": "thread 231",
        "232": "thread 232",
        "256": "thread 256, the last of the block",
    },
)
falls

# %% id=predict-bounds-commit
falls.commit(...)

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
    run_careless(1000)
except agt.errors.OutOfBoundsError as error:
    print(error)
    site = error.site

# %% id=reveal-bounds
falls.reveal(
    str(site.thread[0]),
    "The message names it: 3 · 256 + 232 is 1000, and the last element has the number 999.",
)

# %% [markdown] id=bounds-read
# Read such a message from left to right: which kernel, which thread of which block, which array, which element, and how many there are. Here is the same accident, small enough to look at:
# ten elements, three blocks of four.

# %% id=bounds-picture
ten = np.ones(10, np.float32)
agt.show_threads(agt.Kernel(CARELESS), 10, ten, np.zeros_like(ten), grid=3, block=4)

# %% id=bounds-message-check tags=asserts
assert (site.block[0], site.thread[0]) == (3, 232)
assert (site.index, site.bound) == (1000, 1000)

# %% [markdown] id=misconception-bounds
# > **Misconception: the numbers were right, so the kernel is right.**
# >
# > - *What you see:* a kernel without a bounds check, and right results, for months.
# > - *Why:* the length was always a multiple of the block size. And when it is not, a real GPU may say nothing at all, and write over whatever lies behind the array.
# > - *What helps:* the bounds check, always; and tests with lengths that are *not* multiples of anything.

# %% id=misconception-bounds-run
print("1024 elements:", run_careless(1024)[:4], "... all right")

for n in (1023, 1025):
    try:
        run_careless(n)
    except agt.errors.OutOfBoundsError as error:
        print(f"{n} elements: element {error.site.index} of {error.site.bound} was asked for")

# %% id=misconception-bounds-check tags=asserts
assert (run_careless(1024) == 2).all()  # a multiple of 256
for n in (1023, 1025):
    try:
        run_careless(n)
    except agt.errors.OutOfBoundsError:
        pass
    else:
        raise AssertionError("this should have been stopped")

# %% [markdown] id=puzzle-reverse
# ## Reading elsewhere
#
# So far thread `i` read element `i`. Nothing forces it to.
#
# ### Puzzle 5: reverse
#
# In NumPy: `y = x[::-1]`.

# %% id=01-reverse starter
my_reverse = agt.Kernel(r"""
extern "C" __global__ void my_reverse(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-reverse solution
my_reverse = agt.Kernel(r"""
extern "C" __global__ void my_reverse(unsigned int n, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[n - 1 - i];
    }
}
""")

# %% id=01-reverse hints
# Which element of `x` belongs at the front of `y`? It is the last one, and its number is not `n`.
#
# Thread 0 reads element `n - 1`, thread 1 reads `n - 2`, and so on.
#
# `if (i < n) { y[i] = x[n - 1 - i]; }`

# %% id=01-reverse explanation
# The element that a thread *reads* need not be the one that it *writes*. A thread's number is only its starting point.

# %% id=01-reverse-check
check("01-reverse", my_reverse)

# %% [markdown] id=reverse-picture-text
# What did your threads touch? This cell shows *your* kernel, so it is worth another look after each change.

# %% id=reverse-picture
x = np.arange(10, dtype=np.float32)
agt.show_threads(my_reverse, 10, x, np.zeros_like(x), grid=3, block=4)

# %% [markdown] id=puzzle-stride
# ### Puzzle 6: every so often
#
# In NumPy: `y = x[::stride]`. `n` is the length of `y`.

# %% id=01-stride starter
my_stride = agt.Kernel(r"""
extern "C" __global__ void my_stride(unsigned int n, unsigned int stride, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your lines
}
""")

# %% id=01-stride solution
my_stride = agt.Kernel(r"""
extern "C" __global__ void my_stride(unsigned int n, unsigned int stride, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = x[i * stride];
    }
}
""")

# %% id=01-stride hints
# `n` is the length of `y`. Thread 0 reads `x[0]`, thread 1 reads `x[stride]`. And thread 2?
#
# `if (i < n) { y[i] = x[i * stride]; }`

# %% id=01-stride explanation
# The bounds check is about the array that the threads are counted by, and here that is `y`. `x` is long enough by design.

# %% id=01-stride-check
check("01-stride", my_stride)

# %% [markdown] id=matrices
# ## Rows and columns
#
# A kernel has no `a[i, j]`. In memory the rows of a matrix lie one behind the other:

# %% id=row-major
a = np.arange(12, dtype=np.float32).reshape(3, 4)  # 3 rows, 4 columns
flat = a.ravel()
print(a)
print(flat)
print("a[2, 1] is", a[2, 1], "and flat[2 * 4 + 1] is", flat[2 * 4 + 1])

# %% id=row-major-check tags=asserts
assert all(a[i, j] == flat[i * 4 + j] for i in range(3) for j in range(4))

# %% [markdown] id=row-major-read
# So `a[row, col]` becomes `a[row * n + col]`, where `n` is the length of a *row*, that is, the number of columns. (Careful: C takes `a[row, col]` without a word of complaint, and reads
# `a[col]`.)
#
# For a matrix it is handy if threads have a row and a column as well. So grids and blocks may have two dimensions: `.partition(16, 16)` cuts an array into squares of 16 rows
# and 16 columns, and a thread finds its place with `threadIdx.y` and `threadIdx.x`. `x` counts columns, and `y` counts rows.

# %% id=predict-plane
plane = Prediction(
    "A matrix of 40 rows and 50 columns, in blocks of 16 by 16. How many threads does the device start?",
    **{
        "2000": "one for each element",
        "2048": "8 blocks of 256: the next multiple",
        "3072": "12 blocks of 256",
        "4096": "16 blocks of 256",
    },
)
plane

# %% id=predict-plane-commit
plane.commit(...)

# %% id=reveal-plane
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

with agt.record() as trace:
    filled = plane_kernel(40, 50, agt.zeros((40, 50)).partition(16, 16)).output().to_host().sync()

(launch,) = trace.find("fill_plane")
wide, tall, _ = launch.detail["grid"]
plane.reveal(
    str(wide * tall * 256),
    f"{wide} blocks side by side for 50 columns, {tall} rows of blocks for 40 rows.",
)

# %% id=plane-check tags=asserts
assert (wide, tall) == (4, 3)
assert filled[39, 49] == 3949

# %% [markdown] id=puzzle-broadcast
# A block sticks out on the right *and* at the bottom. So a kernel in two dimensions checks both numbers.
#
# ### Puzzle 7: broadcast
#
# In NumPy: `out = tall[:, None] + wide[None, :]`. `tall` has `m` elements, `wide` has `n`, and `out` has `m` rows and `n` columns.

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
my_broadcast = agt.Kernel(r"""
extern "C" __global__ void my_broadcast(unsigned int m, unsigned int n,
                                        const float* tall, const float* wide, float* out)
{
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && col < n) {
        out[row * n + col] = tall[row] + wide[col];
    }
}
""")

# %% id=01-broadcast hints
# A thread has a `row` and a `col`. Which element of `tall` does it need, and which of `wide`?
#
# Both numbers need a bounds check of their own: `if (row < m && col < n)`.
#
# `out[row * n + col] = tall[row] + wide[col];`

# %% id=01-broadcast explanation
# NumPy calls this broadcasting and has rules for it. Here you say which element you want, and that is all.

# %% id=01-broadcast-check
check("01-broadcast", my_broadcast)

# %% [markdown] id=exercise-transpose
# ### Puzzle 8: transpose
#
# In NumPy: `out = a.T`. `a` has `m` rows and `n` columns, so `out` has `n` rows and `m` columns. A thread for each element *of `out`*.

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

# %% [markdown] id=exercise-matvec
# ## A loop after all
#
# ### Exercise: matrix times vector
#
# In NumPy: `y = a @ x`, for a matrix `a` of `m` rows and `n` columns. A thread for each element of `y`: it walks along its row of `a`, multiplies with `x` element by
# element, and adds up.

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

# %% [markdown] id=time
# ## And what does Python do?
#
# (This is the good place for a break. You can write kernels now.)
#
# So far we asked *what* is computed. Now: *when?* Five steps, and a `sync` after each: copy a matrix to the device, copy a vector, multiply, apply ReLU, fetch the
# result. Most people write it like this at first.
#
# (`agt.matvec_naive` and `agt.relu` are the course's own versions of what you have just written.)

# %% id=steps
rng = np.random.default_rng(0)
m = n = 512
a, x = agt.pin(rng.standard_normal((m, n), dtype=np.float32)), agt.pin(np.ones(n, np.float32))


def step_by_step(a, x):
    a_there = agt.h2d(a, "a").sync()
    x_there = agt.h2d(x, "x").sync()
    product = agt.matvec_naive(m, n, a_there, x_there, agt.zeros(m).partition(128))
    y = product.output().sync()
    positive = agt.relu(m, y, agt.zeros(m).partition(128)).output().sync()
    return agt.d2h(positive).sync()


result = step_by_step(a, x)

# %% id=predict-waiting
waiting = Prediction(
    "From start to end of these five steps, how much of the time does Python just wait?",
    little="less than 20 %: most of it goes into the calls",
    less="20 to 50 %",
    more="50 to 80 %",
    most="more than 80 %",
)
waiting

# %% id=predict-waiting-commit
waiting.commit(...)

# %% id=steps-warm tags=asserts
assert np.allclose(result, np.maximum(a @ x, 0), atol=1e-3)
for _ in range(4):
    step_by_step(a, x)  # a real GPU is slow the first time

# %% id=steps-picture
with agt.record() as stepwise:
    step_by_step(a, x)

stepwise.plot(
    title="A sync after each step",
    lanes=("host", "streams"),
    lesson="Host and device take turns: while one works, the other is idle.",
)

# %% id=reveal-waiting
m_stepwise = stepwise.metrics()
share = m_stepwise.host["wait"] / m_stepwise.makespan
truth = "little" if share < 0.2 else "less" if share < 0.5 else "more" if share < 0.8 else "most"
waiting.reveal(truth, f"Python waited for {share:.0%} of the time, in five waits.")

# %% [markdown] id=steps-read
# Each step tells the same story: a call or two, and then a stretch of waiting while the device works. After each step it is the other way round: the device has
# nothing to do until Python has come back and made the next call. **They take turns. When one works, the other is idle.** (The work goes down a
# staircase because each `sync` takes the next of four streams. Never mind for now; [chapter 05](05_scheduling.ipynb) says who chooses them.)

# %% id=steps-check tags=asserts
waits = [span for span in stepwise if span.kind == "wait"]
assert len(waits) == 5
assert m_stepwise.overlap < 1
assert m_stepwise.device_idle > 0
if device.simulated:
    calls = [s for s in stepwise if s.kind == "call"]
    assert stepwise.overlap_between(calls, stepwise.device_spans) < 0.1 * m_stepwise.makespan

# %% [markdown] id=launch-returns
# ## The length of a call
#
# Is it the launch that keeps Python waiting? Let us look at one launch alone. `op.async_on(stream)` puts an operation into the queue of a stream of yours, *without*
# the wait. `stream.synchronize()` is the wait.
#
# The two matrices below have 512 and 2048 rows and columns. Each row has a thread of its own, and the threads run side by side. So only the length of a row counts.

# %% id=predict-call
length = Prediction(
    "The larger kernel takes about four times as long as the smaller one. And the *call* that launches it?",
    four="about four times as long, too",
    longer="somewhat longer",
    same="as long as the other",
)
length

# %% id=predict-call-commit
length.commit(...)

# %% id=launch-returns-run
calls, kernels = {}, {}
for size in (512, 2048):
    matrix, vector = agt.ones((size, size)).sync(), agt.ones(size).sync()
    op = agt.matvec_naive(size, size, matrix, vector, agt.zeros(size).partition(128))
    queue = agt.create_stream()
    with agt.record() as trace:
        op.async_on(queue)
        queue.synchronize()
    (call,), (kernel,) = trace.find("launch matvec_naive"), trace.find("matvec_naive")
    calls[size], kernels[size] = call.duration, kernel.duration
    print(
        f"{size} x {size}: the call takes {call.duration:.0f} µs, the kernel {kernel.duration:.0f} µs"
    )

trace.plot(
    title="One launch, and the wait for it",
    lanes=("host", "streams"),
    lesson="The call is over before the kernel has got going. It is the wait that takes the time.",
)

# %% id=reveal-call
ratio = calls[2048] / calls[512]
length.reveal(
    "four" if ratio > 3 else "longer" if ratio > 1.5 else "same",
    f"The kernel takes {kernels[2048] / kernels[512]:.1f} times as long, the call {ratio:.1f} times.",
)

# %% [markdown] id=misconception-launch
# To **launch** means: to put work into a queue. The call comes back as soon as that is done, and the kernel may not even have begun.
#
# > **Misconception: to know how long a kernel takes, time the line that launches it.**
# >
# > - *What you see:* a kernel that takes the same time whatever its size.
# > - *Why:* that is the time to put it into the queue. The kernel is still to come.
# > - *What helps:* look at the kernel's own bar in a timeline.

# %% id=launch-check tags=asserts
if device.simulated:  # on a GPU, host and device have clocks of their own, a few µs apart
    assert call.end < kernel.end
    assert abs(calls[512] - calls[2048]) < 0.01
    assert 2.5 < kernels[2048] / kernels[512] < 6

# %% [markdown] id=exercise-one-wait
# ### Exercise: wait once
#
# Here are the five steps once more, as a function. Rewrite it so that it does not wait at all, and *returns an operation* that yields the result. Whoever runs that waits once.
#
# Two things help: **a kernel takes operations in place of arrays**, and what an operation yields is copied to the host by `op.to_host()`.


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
# What does it buy us? Here are the five steps from above and the one operation, on the same scale. (`solved` fetches the course's own answer without showing it, so
# yours need not be ready.)

# %% id=one-wait-compare
in_one = solved("01-one-wait")
in_one(a, x).sync()

with agt.record() as together:
    in_one(a, x).sync()

agt.compare_timelines(
    [stepwise, together],
    ["A sync after each step", "One sync"],
    lesson="With one wait at the end the device has its next piece of work in the queue before it needs it.",
)

# %% id=one-wait-claims tags=asserts
assert len([span for span in together if span.kind == "wait"]) == 1
assert len(together.streams) == 1
if device.simulated:
    assert together.metrics().makespan < stepwise.metrics().makespan
    assert together.metrics().device_idle < stepwise.metrics().device_idle

# %% [markdown] id=exercise-meanwhile
# ### Exercise: a job for the host meanwhile
#
# One wait is still a wait. Python could do something of its own in that time. `op` is an operation, and `job()` keeps the host busy. Have the job done *while* the device
# works, and return the result of `op`, complete.
#
# You have seen all pieces: `agt.create_stream()`, `async_on`, `synchronize`. What `async_on` returns is a placeholder for the result. You get it at once, and read it after the wait.


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
# One way is `async_on`: it returns as soon as the work is in the queue, so the job and the device share the time. The wait has to be there,
# too: before it, the result may not be read.

# %% id=01-meanwhile-check
check("01-meanwhile", with_a_job)

# %% [markdown] id=meanwhile-read
# That is the idea of the whole course in five lines: *start, do something else, wait as late as you can*.

# %% [markdown] id=challenge
# ## Challenge: three rounds
#
# `ops` are three operations, each with a copy there, a kernel and a copy back. `jobs` are three jobs for Python, of 60 µs each. Do all six, in any order you like, and return the
# three results. As it stands, this takes 672 µs: get below 420.


# %% id=01-challenge starter
def three_rounds(ops, jobs):
    results = []
    for op, job in zip(ops, jobs):
        results.append(op.sync())
        job()
    return results


# %% id=01-challenge solution
def three_rounds(ops, jobs):
    streams = [agt.create_stream() for _ in ops]
    results = [op.async_on(stream) for op, stream in zip(ops, streams)]
    for job in jobs:
        job()
    for stream in streams:
        stream.synchronize()
    return results


# %% id=01-challenge hints
# Start everything before you wait for anything. Where do the jobs go?
#
# All of it on one stream is better, and not good enough. A stream is a queue: what stands in it waits for what is in front.
#
# Nobody said that you may have only one stream.

# %% id=01-challenge explanation
# One way: a queue for each operation. Then copies in both directions run at the same time. The next page says what can go wrong with that, and the one after it why it works.

# %% id=01-challenge-check
check("01-challenge", three_rounds)

# %% id=score
score(threads_started, falls, plane, waiting, length)

# %% id=progress
progress("01")

# %% [markdown] id=key-points
# ## Key points
#
# - All threads run the same code with the same arguments. `blockIdx.x * blockDim.x + threadIdx.x` is what tells them apart.
# - Blocks are equal, so there are often more threads than elements. The **bounds check** sends the rest home. Without it a kernel may seem right, and not be.
# - A matrix is stored row by row: `a[row, col]` is `a[row * n + col]`, with `n` columns.
# - A launch puts work into a queue and returns. It is `sync` that waits.
# - With a wait after each step, host and device take turns. The stream keeps the order without it.
#
# What others call these things is in the [glossary](../docs/glossary.md), and common mistakes are in the [misconceptions](../docs/misconceptions.md).
#
# **Next:** [02_streams_and_events.ipynb](02_streams_and_events.ipynb), where one queue becomes two. [07_async_mlp.ipynb](07_async_mlp.ipynb), the project, will put these kernels to work:
# a small neural network, four batches at a time.
