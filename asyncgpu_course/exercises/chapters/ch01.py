"""Exercises of 01_sync_kernels: what each one checks."""

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import code_steps, results, schedule
from asyncgpu_course.checks.building import run_of
from asyncgpu_course.checks.operations import JOB, job, noise
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.results import UNWRITTEN, CheckedArray, as_kernel, equal, launched
from asyncgpu_course.checks.sandbox import Observed, call, observe
from asyncgpu_course.checks.trials import Check, cases, runs
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

SEEDS = (1, 2)


# ------------------------------------------------------------------ values
def _grid(mine: Any, model: Any, threads: int, n: int) -> None:
    """There are enough blocks, and none too many."""
    got, right = call(mine, n, threads), model(n, threads)
    results.a_number(got, "a number of blocks", whole=True)
    cause = f"that's only {count(got * threads, 'thread')} in {count(got, 'block')} for {count(n, 'element')}"
    must(got >= right, cause)
    cause = f"that's {count(got, 'block')}, and {got - right} of them would have nothing to do"
    must(got <= right, cause)


GRIDS = list(product((1, 32, 100, 128, 256, 1024), [*range(1, 600), 2**24 + 1, 0]))
_LENGTHS = [((256,), (128,)), ((1000,), (256,)), ((1025,), (1024,)), ((1,), (32,))]
SQUARES = [(16, 16), (4, 32)]
_SHAPES = [(16, 16), (20, 50), (50, 20), (1, 33), (33, 1), (3, 1030)]

# The arguments of a launch, without the output, and the right output.
_Given = tuple[list[Any], CheckedArray]
_Shape = tuple[int, ...]
MakeInputs = Callable[[int, _Shape], _Given]


def _launches(kernel: agt.Kernel, given: _Given, block: _Shape, full: float = UNWRITTEN) -> None:
    """A launch gives the right output. A rejection also says so where C and NumPy differ about a comma."""
    args, right = given
    try:
        equal(launched(kernel, args, right.shape, block, full), right)
    except Rejected as rejected:
        for name in code_steps.with_commas(kernel.source)[:1]:
            rejected.cause += (
                f". In C, `{name}[i, j]` isn't an element of a matrix: a comma drops what stands before it: "
                f"write `{name}[i * n + j]`"
            )
        raise


def of_kernels(
    name: str, make: MakeInputs, blocks: Sequence[_Shape] = (), small: _Shape = (8,), each: int = 1
) -> Check:
    """A check of a kernel with a thread for each element of its output, or for `each` of so many.

    It gets a matrix if there are `blocks` for that, and else a vector. A `small` block is for few elements.
    """
    rows = list(product(_SHAPES, blocks)) if blocks else _LENGTHS
    # A large output has more elements than 16 bits can count.
    few, large = ((6, 5), (300, 300)) if blocks else ((20,), (70_000,))

    def compare(mine: Any, _model: Any) -> None:
        kernel = as_kernel(mine, name)
        for seed, (shape, block) in product(SEEDS, rows):
            of = f"a matrix of shape {shape}" if blocks else f"n={shape[0]}"
            with case(f"{of} and blocks of {' by '.join(map(str, block))}"):
                _launches(kernel, make(seed, shape), block)
        args, right = make(3, few)
        results.one_writer(kernel, args, right.shape, small, each)
        with case("an output that is full of nan before the launch"):
            _launches(kernel, make(3, few), small, math.nan)
        with case(f"{math.prod(large):,} elements"):
            _launches(kernel, make(3, large), rows[0][1])

    return compare


def _noisy(given: Callable[[_Shape, CheckedArray, CheckedArray], _Given]) -> MakeInputs:
    """Make the arguments of noise: one array of the whole shape, and one as long as its rows."""
    return lambda seed, shape: given(shape, noise(seed, *shape), noise(seed + 100, shape[-1]))


COPY = _noisy(lambda shape, x, _: ([*shape, x**15 * (abs(x) > 0.5)], x**15 * (abs(x) > 0.5)))
ADD = _noisy(lambda shape, x, y: ([*shape, x, y], x + y))
_RELU = _noisy(lambda shape, x, _: ([*shape, 50 * x**3], np.maximum(50 * x**3, 0)))
REVERSE = _noisy(lambda shape, x, _: ([*shape, x], x[::-1]))
TRANSPOSE = _noisy(lambda shape, a, _: ([*shape, a], a.T))
MATVEC = _noisy(lambda shape, a, x: ([*shape, a, x], a @ x))


def _scale(seed: int, shape: _Shape) -> _Given:
    n = shape[0]
    x = np.trunc(9 * noise(seed, n)) / 9
    a, b = np.float32(1.5 * ((n + seed) % 3 - 1)), np.float32(30 * seed - 45.25)
    return [n, a, b, x], a * x + b


def _stride(seed: int, shape: _Shape) -> _Given:
    n, stride = shape[0], 64 * seed - 63
    x = noise(seed, (n - 1) * stride + 1)
    return [n, stride, x], x[::stride]


def _broadcast(seed: int, shape: _Shape) -> _Given:
    tall, wide = noise(seed, shape[0]), noise(seed + 100, shape[1])
    return [*shape, tall, wide], tall[:, None] + wide[None, :]


def check_relu(mine: Any, model: Any) -> None:
    """Output is right where blocks are full and where they are not, apart from the input and in its place."""
    of_kernels("my_relu", _RELU)(mine, model)
    kernel = as_kernel(mine, "my_relu")
    n, threads, x = 1000, 256, noise(1, 1000)

    def in_place() -> Any:
        blocks = agt.h2d(x).sync().partition(threads)
        return kernel(n, blocks, blocks).last().unpartition().to_host().sync()

    edges = np.array([-np.inf, 0, np.inf], np.float32)
    with case("an input of -inf, 0 and inf"):
        _launches(kernel, ([3, edges], np.maximum(edges, 0)), (32,))
    with case(f"n={n}, blocks of {threads}, and one array as input and output"):
        equal(call(in_place), np.maximum(x, 0))


# ------------------------------------------------------------------ schedule
_CURE = ": describe all the steps, with `to_host()` at the end, and don't run any of them"


def _one_wait(mine: Any, model: Any, seed: int, m: int, n: int) -> None:
    """Building runs nothing, so running is the one wait; the device computes, and the result is right."""
    a, x = agt.pin(noise(seed, m, n)), agt.pin(noise(seed + 100, n))
    right = np.maximum(a @ x, 0)  # before the answer gets hold of `a` and `x`
    with run_of("forward", mine, model, a, x, cure=_CURE)() as run:
        equal(run.result, right)
        ran = [s.name for s in run.trace.device_spans if s.kind in ("h2d", "d2h", "kernel")]
        cause = f"this ran on the device: {', '.join(ran)}. "
        must(len(ran) <= 5, cause + "Two copies there, two kernels and one copy back are enough")


def _meanwhile(answer: Callable[..., Any], seed: int, n: int, us: float) -> Observed:
    """Observe an answer, which has to use streams of the check's own device."""
    x, out = agt.pin(noise(seed, n)), agt.zeros(n).partition(256)
    positive = agt.relu(n, agt.h2d(x), out).output().to_host()
    # A recording has the work of all simulated devices. This one's clock has passed the ends of its own.
    device = agt.current_device()
    begun = device.now()
    # On another device this one's pinned arrays are ordinary memory.
    with warnings.catch_warnings(action="ignore", category=agt.errors.PageableCopyWarning):
        run = observe(lambda: np.asarray(call(answer, positive, job(us))))
    cause = "you used a stream from an earlier cell, which belongs to the notebook's device: "
    cause += "this check has a device of its own, so make your streams inside the function, "
    end = max((span.end for span in run.trace.device_spans), default=0.0)
    must(device.now() - begun >= end, cause + "with `agt.create_stream()`")
    return run


def _done_meanwhile(run: Observed, seed: int, n: int, us: float) -> None:
    """The job is done once, while the device works, and the result is complete after one wait."""
    schedule.each_once(run.trace, "relu", JOB)
    why = "start the operation, do the job, and only then wait for the result"
    schedule.overlapping(run.trace, JOB, why)
    schedule.waits(run.trace, 1, "at the end, behind the job")
    _positive_came(run, seed, n, us)


def _positive_came(run: Observed, seed: int, n: int, _us: float) -> None:
    equal(run.result, np.maximum(noise(seed, n), 0))


GOAL, SMALL = 80.0, (64, 64)


def _layer(mine: Any, model: Any, seed: int, m: int, n: int) -> float | None:
    """Building runs nothing, the device computes, and the result is right; of a small matrix, it is quick."""
    shapes = enumerate([(m, n), (n,), (m,)])
    a, x, b = (agt.pin(noise(seed + 100 * i, *shape)) for i, shape in shapes)
    right = np.maximum(a @ x + b, 0)
    # Not `late`: whoever packs all three into one copy does so here, where nobody knows `with_context` yet.
    with run_of("layer", mine, model, a, x, b, cure=_CURE, late=False)() as run:
        equal(run.result, right)
        return schedule.below(GOAL, run.trace) if (m, n) == SMALL else None


# Large enough for the device to be at work for longer than the host needs to submit.
_BUSY = [(1, 1_000_000, 60.0), (2, 100_000, 60.0), (3, 300_000, 500.0)]
PRODUCTS = [(s, m, n) for s, (m, n) in product(SEEDS, [(64, 64), (200, 30), (30, 200)])]
_LAYERS = [(1, 200, 30), (2, 30, 200), (3, *SMALL)]

CHAPTER_01 = (
    Exercise("01-grid", "How many blocks?", "blocks_needed", cases(_grid, GRIDS, "n={1} and threads={0}")),
    Exercise("01-copy", "Puzzle 1: copy", "my_copy", of_kernels("my_copy", COPY)),
    Exercise("01-relu", "Puzzle 2: ReLU", "my_relu", check_relu),
    Exercise("01-add", "Puzzle 3: add", "my_add", of_kernels("my_add", ADD)),
    Exercise("01-scale", "Puzzle 4: scale and shift", "my_scale", of_kernels("my_scale", _scale)),
    Exercise("01-reverse", "Puzzle 5: reverse", "my_reverse",
             of_kernels("my_reverse", REVERSE, each=2)),  # who swaps writes a pair
    Exercise("01-stride", "Puzzle 6: every so often", "my_stride", of_kernels("my_stride", _stride)),
    Exercise("01-broadcast", "Puzzle 7: broadcast", "my_broadcast",
             of_kernels("my_broadcast", _broadcast, SQUARES, (4, 2))),
    Exercise("01-transpose", "Puzzle 8: transpose", "my_transpose",
             of_kernels("my_transpose", TRANSPOSE, SQUARES, (4, 2))),
    Exercise("01-matvec", "Matrix times vector", "my_matvec",
             of_kernels("my_matvec", MATVEC, [(32,), (48,)], (4,))),
    Exercise("01-one-wait", "Wait once", "forward",
             cases(_one_wait, PRODUCTS, "a matrix of shape ({1}, {2})")),
    Exercise("01-meanwhile", "A job for the host meanwhile", "with_a_job",
             runs(_meanwhile, _done_meanwhile, _BUSY, "{1} elements"),
             runs(_meanwhile, _positive_came, [(4, 1000, 10.0)], "")),
    Exercise("01-challenge", "Challenge: nowhere to hide", "layer",
             cases(_layer, _LAYERS, "a matrix of shape ({1}, {2})")),
)  # fmt: skip
