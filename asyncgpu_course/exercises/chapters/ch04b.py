"""Exercises of 04b_sharing_and_owning: what each one checks."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import schedule
from asyncgpu_course.checks.building import run_of
from asyncgpu_course.checks.device import host_arrays, moved
from asyncgpu_course.checks.operations import cuda, operation
from asyncgpu_course.checks.rejection import about, case, compared, must
from asyncgpu_course.checks.results import each_equal, equal, listed
from asyncgpu_course.checks.sandbox import Observed, call, held, observe
from asyncgpu_course.checks.trials import cases
from asyncgpu_course.exercises.chapters import ch04
from asyncgpu_course.exercises.exercise import Exercise
from asyncgpu_course.internals import count

COOLED_US = 390.0


def _halves(mine: Any, model: Any, seed: int, n: int) -> None:
    """The source runs once, and each entry of the tuple goes its own way."""
    x, y, saxpy = ch04.random(seed, n), ch04.random(seed + 1, n), agt.Kernel(ch04.SAXPY)

    def way(a: float) -> Callable[[agt.DeviceOp[agt.DeviceArray]], agt.DeviceOp[Any]]:
        out, name = agt.zeros(n).partition(ch04.BLOCK), "fg"[a > 2]
        return lambda op: saxpy(n, a, operation(name, op), out).output().to_host()

    source = agt.zip(agt.h2d(x), agt.h2d(y)).map(tuple)
    cause = "`f` and `g` got the same array: the first one is for `f`, and the second for `g`"
    run_it = run_of("halves", mine, model, source, way(2.0), way(3.0))
    with about("went to an earlier run", cause), run_it() as run:
        schedule.launches(run.trace, "h2d", 2)
        results = ch04.tuple_of_results(run.result, 2, list)
        for got, right in zip(results, (2 * x, 3 * y), strict=True):
            equal(got, right)


def _orders(mine: Any, model: Any, seed: int, n: int) -> None:
    """Three of five operations can be spawned, `v` keeps its owner and numbers, and one copy is enough."""
    kernel = agt.Kernel(cuda("04_scale"))
    lists = [ch04.random(seed, n, n), *ch04.random(seed + 1, 2, n)]
    m, v, draft = lists

    def times(matrix: Any, vector: Any) -> agt.DeviceOp[Any]:
        room = agt.zeros(n).partition(ch04.BLOCK)
        return agt.matvec_naive(n, n, matrix, vector, room).output().to_host()

    def twice(array: Any) -> agt.DeviceOp[Any]:
        return kernel(n, 2.0, array.partition(ch04.BLOCK)).output().to_host()

    def arrays() -> list[Any]:
        return [agt.h2d(numbers).sync() for numbers in lists]

    expected, given = _carried_out(model(*arrays(), times, twice)), arrays()
    building = observe(mine, *given, times, twice)
    with compared(building.trace, expected.trace):
        schedule.lazy(building.trace)
    theirs = given[1]
    cause = f"`v` was moved {theirs.gone}, and its owner still needs it: lend it out instead"
    must(not theirs.moved, cause)
    ops = listed("orders", building.result, 5)
    cause = f"`orders` should return operations, and the first is a {type(ops[0]).__name__}: "
    must(all(isinstance(op, agt.DeviceOp) for op in ops), cause + "its caller runs them")
    with moved() as noted:
        noted.kept = theirs.memory
        run = _carried_out(ops)
    cause = "`v` was lent to an operation that writes, so its owner finds other numbers in it. It needs "
    with about("", cause + "a copy of its own"), case("`v`, looked at afterwards"):
        equal(agt.d2h(theirs.borrow()).sync(), v)
    cause = "a kernel changed `v`, and another one changed it back, but its owner may look at it in between: "
    must(all(left.tobytes() == v.tobytes() for left in noted.left), cause + "double a copy of it")
    cause = "copy only what somebody writes to while somebody else needs the old numbers, and on the device"
    with compared(run.trace, expected.trace):
        schedule.launches(run.trace, agt.matvec_naive.name, 3)
        for kind, enough in (("d2d", 1), ("d2h", 5)):
            copies = [span for span in run.trace.device_spans if span.kind == kind]
            found = f"`{kind}` ran {count(len(copies), 'time')}, and {enough} would do: "
            must(len(copies) <= enough, found + cause, *copies)
        schedule.allocations(run.trace, [v.nbytes] * 6, "make only what an order needs")
    each_equal(run.result, [m.sum(1), 2 * m.sum(1), m @ v, 2 * v, 2 * draft], "order")


def _carried_out(ops: Sequence[Any]) -> Observed:
    """All five have run: the first two and the last one as tasks, while their caller waits for the others."""

    async def customers() -> Any:
        tasks = [agt.spawn(ops[i].map(held)) for i in (0, 1, 4)]
        waited = [await op.map(held) for op in (ops[3], ops[2])]
        first, second, last = await asyncio.gather(*tasks)
        return [first, second, waited[1], waited[0], last]

    return observe(customers)


def _heated(x: Any, rounds: int) -> Any:
    for _ in range(rounds):
        padded = np.pad(x, 1, mode="edge")
        x = 0.5 * x + 0.25 * (padded[:-2] + padded[2:])
    return x


def check_cooled(mine: Any, model: Any) -> float:
    """The rod is as warm as it should be, after an odd or even number of steps, in two arrays and in time."""
    kernel, took = agt.Kernel(cuda("04b_step")), 0.0

    def step(src: Any, dst: Any) -> agt.DeviceOp[Any]:
        launch = kernel(x.size, src, dst.partition(ch04.BLOCK))
        return launch.map(lambda used: (used[0], used[1].unpartition()))

    for n, rounds in ((100_000, 20), (1000, 3)):
        x, words = ch04.random(n, n), f"{n} points and {rounds} steps"
        with case(words), run_of("cooled", mine, model, x, step, rounds)() as run:
            cause = "the rod is as after one step: each step read the same array again, so swap the pair"
            alike = getattr(run.result, "shape", None) == x.shape
            must(not (alike and np.allclose(run.result, _heated(x, 1), 1e-4, 1e-5)), cause)
            equal(run.result, _heated(x, rounds))
            schedule.launches(run.trace, "step", rounds)
            took = max(took, schedule.below(COOLED_US, run.trace))
            schedule.allocations(run.trace, [x.nbytes] * 2, "write where nobody reads any more")
    rods = [(x, 0), (ch04.random(1, x.size), 3), (ch04.random(2, x.size), 4)]
    with case("three rods at the same time, for 0, 3 and 4 steps"):
        handles = [call(call(mine, rod, step, n).async_on, agt.create_stream()) for rod, n in rods]
        call(agt.synchronize)
        each_equal(host_arrays(handles), [_heated(*rod) for rod in rods], "rod")
    return took


CHAPTER_04B = (
    Exercise("04b-unzip", "Take it apart", "halves", cases(_halves, [(1, 1000), (2, 300)], ch04.NUMBERS)),
    Exercise("04b-lend", "Give, share, lend or copy", "orders",
             cases(_orders, [(1, 64), (2, 50)], ch04.SQUARE)),
    Exercise("04b-challenge", "Challenge: two arrays are enough", "cooled", check_cooled),
)  # fmt: skip
