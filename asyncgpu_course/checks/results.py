"""Checks of what an answer computes."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import asyncgpu_tutor as agt
from asyncgpu_course.checks.device import STALE
from asyncgpu_course.checks.rejection import Rejected, case, must
from asyncgpu_course.checks.sandbox import brief, call, one_line
from asyncgpu_course.internals import Dim3, Watched, memory_of, read_signature

CheckedArray = npt.NDArray[Any]
ResultShape = tuple[int, ...]
Places = Sequence[int]  # of arrays among a kernel's arguments

# Outputs are full of this number before the launch, because no kernel computes it. It is small enough
# for `y[i] += ...` to change it, so that adding to it can be told from not writing.
UNWRITTEN = float(np.float32(-8765.4321))
ROUNDING = 0.1  # bounds the error of sums that begin at `UNWRITTEN`


def as_kernel(answer: object, name: str) -> agt.Kernel:
    """The learner's kernel, which may be given as its source."""
    if isinstance(answer, str):
        return call(agt.Kernel, answer)
    if not isinstance(answer, agt.Kernel):
        raise Rejected(f"`{name}` should be an `agt.Kernel`, and is {brief(answer)}")
    return answer


def _up(arg: Any) -> Any:
    """An array as an operation that copies it to the device; numbers as they are."""
    return agt.h2d(cast(CheckedArray, arg)) if isinstance(arg, np.ndarray) else arg


def launched(
    kernel: agt.Kernel,
    args: Sequence[Any],
    shape: ResultShape,
    block: ResultShape,
    full: float = UNWRITTEN,
) -> CheckedArray:
    """Run a kernel, and return its last argument, an array that starts `full` of a number.

    The other arguments are numbers and NumPy arrays, which are copied to the device. The output has this
    `shape`, and is partitioned into blocks.
    """

    def compute() -> CheckedArray:
        out = agt.full(shape, full).partition(*block)
        return kernel(*map(_up, args), out).last().unpartition().to_host().sync()

    return call(compute)


def one_writer(
    kernel: agt.Kernel, args: Sequence[Any], shape: ResultShape, block: ResultShape, most: int = 0
) -> None:
    """Each element of the output, the last argument, has one thread that writes it; none writes too many."""
    blocks = [-(-n // b) for n, b in zip(shape, block, strict=True)]
    x, y = (cast(Dim3, (*sizes[::-1], 1, 1)[:3]) for sizes in (block, blocks))
    with case(f"blocks of {' by '.join(map(str, block))}"):
        run, arrays = accesses_of(kernel, args, shape, x, y)
    pairs = set[tuple[int, int]]()
    for at in run.steps:
        if at.write and at.array == arrays[-1]:
            pairs.update(zip(at.threads.tolist(), at.elements.tolist(), strict=True))
    found, wrote = Counter(thread for thread, _ in sorted(pairs)).most_common(1)[0]
    cause = f"the numbers are right, but thread {found} of the grid writes {wrote} elements: let each thread "
    must(wrote <= (most or wrote), cause + "write only its own, so that all work at once")
    found, wrote = Counter(element for _, element in sorted(pairs)).most_common(1)[0]
    cause = f"the numbers are right, but {wrote} threads write element {found}, and one is enough: "
    must(wrote == 1, cause + "let a thread that has no element of its own write nothing")


def left_in(
    places: Places, kernel: agt.Kernel, args: Sequence[Any], *, grid: int, block: int
) -> tuple[CheckedArray, ...]:
    """Run a kernel, and return those of its arrays which have these places among its arguments.

    `args` are as for `launched`, the outputs with them.
    """

    def compute() -> tuple[CheckedArray, ...]:
        done = kernel(*map(_up, args), grid=grid, block=block)
        return done.and_then(lambda arrays: agt.zip(*[agt.d2h(arrays[i]) for i in places])).sync()

    return call(compute)


def looked_at(
    kernel: agt.Kernel, args: Sequence[Any], shape: ResultShape, **launch: Any
) -> tuple[CheckedArray, Any]:
    """What a kernel leaves in its last argument, which has this shape, and the microscope's report."""
    out = np.full(shape, UNWRITTEN, np.float32)
    arrays = sum(isinstance(arg, np.ndarray) for arg in args)
    with agt.microscope() as seen:
        (got,) = left_in([arrays], kernel, [*args, out], **launch)
    return got, seen[kernel.name]


def report_on(kernel: agt.Kernel, args: Sequence[Any], right: CheckedArray, **launch: Any) -> Any:
    """The microscope's report on a kernel, which leaves the right numbers in its last argument."""
    got, report = looked_at(kernel, args, right.shape, **launch)
    equal(got, right)
    return report


def plain_report_on(
    kernel: agt.Kernel, args: Sequence[Any], right: CheckedArray, **launch: Any
) -> Any:
    """The same on a kernel without atomics, which are in no count of loads, stores, sectors and passes."""
    report = report_on(kernel, args, right, **launch)
    cause = f"the threads do {report.counts.atomics} atomic operations, "
    must(not report.counts.atomics, cause + "and no two of them write to one place: load and store")
    return report


def accesses_of(
    kernel: agt.Kernel, args: Sequence[Any], shape: ResultShape, block: Dim3, grid: Dim3 = (1, 1, 1)
) -> tuple[Watched, list[str]]:
    """All accesses of a launch, in order; and the names of the arrays that the kernel is given.

    Its last argument is an output of this shape, as for `looked_at`.
    """
    names = [p.name for p in read_signature(kernel.source, kernel.name).parameters]
    given: list[Any] = [*args, np.zeros(shape, np.float32)]
    arrays = [n for n, x in zip(names, given, strict=True) if isinstance(x, np.ndarray)]
    memories = [memory_of(x, n) if n in arrays else x for n, x in zip(names, given, strict=True)]
    seen = Watched(kernel.name, kernel.source, grid, block, most=100_000)
    call(seen.run, memories)
    must(not seen.fault, one_line(seen.fault or Exception()))
    return seen, arrays


def evenly(run: Watched, most: int, cure: str) -> None:
    """No thread makes more than so many accesses to memory."""
    did = np.bincount(np.concatenate([at.threads for at in run.steps]))
    cause = f"thread {did.argmax()} of the grid makes {did.max()} of all {did.sum()} accesses to memory: "
    must(did.max() <= most, cause + cure)


def waits_of(
    kernel: agt.Kernel, args: Sequence[Any], shape: ResultShape, block: int
) -> tuple[Watched, float]:
    """All accesses of a launch of one block, and how often the warp waits for memory that does so most.

    Waits for volatile loads are in no such count, so inputs may not be read by any.
    """
    run, arrays = accesses_of(kernel, args, shape, (block, 1, 1))
    for at in run.steps:
        cause = f"`{at.array}` is read as `volatile` (line {at.line} of the kernel), so a compiler may not "
        cause += "move its loads: nobody writes there meanwhile, so read it without"
        must(at.write or not at.volatile or at.array not in arrays, cause)
    return run, max(float(at.trips.max()) for at in run.steps)


def equal(got: object, expected: CheckedArray) -> None:
    """The answer's numbers are the expected ones: to within rounding, and whole numbers to the last digit."""
    array = cast(CheckedArray, got)
    if not isinstance(got, np.ndarray) or array.dtype == object:
        what = got if not isinstance(got, np.ndarray) else array.tolist()
        raise Rejected(f"a NumPy array should come out, and not {brief(what)}")
    must(not np.ma.is_masked(array), "elements of the result are masked, and each should be there")
    fits = array.shape == expected.shape
    must(fits, f"the result has shape {array.shape}, and should have {expected.shape}")
    if "f" == array.dtype.kind == expected.dtype.kind and array.itemsize > expected.itemsize:
        of_dtype(array, expected.dtype)
    if np.array_equal(array, expected):  # much sooner known than whether all are close
        return
    whole = expected.dtype.kind in "iu"
    wrong = array != expected if whole else ~np.isclose(array, expected, rtol=1e-4, atol=1e-5)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = index[0] if len(index) == 1 else index
        must(array[index] != UNWRITTEN, f"no thread wrote element {place} of the output")
        cause = f"element {place} was added to whatever the output held before the launch, which need not "
        cause += "be zero: add up in a variable of your own, and write that"
        added = abs(array[index] - UNWRITTEN - expected[index]) < ROUNDING  # it may be nan
        must(not added, cause)
        cause = f"element {place} of the result was not there yet: wait for the device before you hand it "
        cause += "over or read it, since neither the `buffer` of a handle nor an `out` waits for "
        must(array[index].tobytes() != STALE * array.itemsize, cause + "anybody")
        shown = "" if whole else ".6g"
        held = expected.astype(np.float32) if array.dtype == np.float32 and not whole else expected
        mine, right = format(array[index], shown), format(held[index], shown)
        raise Rejected(f"element {place} is {mine}, and should be {right}")


def each_equal(results: Sequence[object], expected: Sequence[CheckedArray], words: str) -> None:
    """Each result is the right one; a rejection says which, after words such as ``"for token"``."""
    for i, (got, right) in enumerate(zip(results, expected, strict=True)):
        with case(f"{words} {i}"):
            equal(got, right)


def is_number(thing: object, *, whole: bool = False) -> bool:
    """True for a number of Python's or NumPy's; True, False, nan and what is beyond all floats are none."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    known = isinstance(thing, kinds) and not isinstance(thing, bool)
    with suppress(OverflowError):  # of an integer beyond all floats
        return known and isfinite(cast(float, thing))
    return False


def a_number(got: object, what: str, *, whole: bool = False) -> None:
    """A number came out; `what` says of what, such as ``"a number of streams"``."""
    cause = "should be an `int`" if whole else "should come out"
    must(is_number(got, whole=whole), f"{what} {cause}, and not {brief(got)}")


def a_graph(name: str, graph: object, stream: agt.types.Stream) -> None:
    """The answer of this name returned a graph that was captured on this stream."""
    cause = f"`{name}` should return a graph, and returned {brief(graph)}: "
    must(isinstance(graph, agt.CudaGraph), cause + "`graph_on(stream)` makes one")
    cause = "the graph was captured on another stream than the given one, "
    on_it = cast(agt.CudaGraph[Any], graph).stream == stream
    must(on_it, cause + "where its updates would run, too: `graph_on(stream)`")


def of_dtype(array: Any, dtype: object) -> None:
    """The array has this dtype, which `equal` does not look at."""
    must(array.dtype == dtype, f"the array has dtype {array.dtype}, and should have {dtype}")


def tuple_of(found: object, number: int, should: str, *more: type[Sequence[Any]]) -> Sequence[Any]:
    """The answer's tuple, or one of `more` kinds, of this length; `should` begins the cause."""
    kinds = (tuple, *more)
    parts = cast(Sequence[Any], found if isinstance(found, kinds) else ())
    came = f"one of {len(parts)}" if isinstance(found, kinds) else brief(found)
    must(isinstance(found, kinds) and len(parts) == number, should + came)
    return parts


def listed(answer: str, results: object, number: int) -> Sequence[Any]:
    """The list or tuple that the answer of this name returned, with one thing for each operation."""
    cause = f"`{answer}` should return a list of {number}, one for each in order, and returned "
    return tuple_of(results, number, cause, list)


def in_order(
    answer: str, results: object, expected: Sequence[CheckedArray], words: str = "result"
) -> None:
    """The answer of this name returned a list of the right results; see `each_equal` for `words`."""
    found = listed(answer, results, len(expected))
    ways = (found, expected), (expected, found)
    known = all(any(np.array_equal(x, y) for y in there) for here, there in ways for x in here)
    turned = known and not all(map(np.array_equal, found, expected))
    words = f"results in the wrong order, it seems: {words}" if turned else words
    each_equal(found, expected, words)
