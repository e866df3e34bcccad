"""For answers that return an operation: building it runs nothing, and it is one."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import numpy as np

import asyncgpu_tutor as agt
from asyncgpu_course.checks import operations
from asyncgpu_course.checks.device import host_arrays, moved
from asyncgpu_course.checks.operations import AnyOp
from asyncgpu_course.checks.rejection import case, compared, must
from asyncgpu_course.checks.sandbox import Observed, call, held, observe
from asyncgpu_course.checks.schedule import each_once, lazy
from asyncgpu_course.internals import in_containers

LATE = "host arrays that are filled after your function has returned, and another of its operations run first"

_Answer = Callable[..., Any]


def built(name: str, answer: _Answer, expected: agt.Trace, *args: Any, cure: str = "") -> AnyOp:
    """The operation that an answer, called with `args`, describes without having run anything.

    A run of the solution's, `expected`, is drawn beside what was run too early. The `cure` ends what is said
    to an answer that returns something else.
    """
    operations.busy()
    building = observe(answer, *args)
    with compared(building.trace, expected):
        lazy(building.trace)
    return an_operation(name, building.result, cure)


def an_operation(name: str, op: object, cure: str = "") -> AnyOp:
    """What an answer of this name returned, which has to be an operation."""
    cause = f"`{name}` should return an operation, and returned {type(op).__name__}{cure}"
    must(isinstance(op, agt.DeviceOp), cause)
    return cast(AnyOp, op)


def run_now(op: AnyOp, *stream: agt.types.Stream) -> Observed:
    """Run an operation, on a stream if one is given; of arrays without a handle, it yields early copies."""
    results, how = list[Any](), op.map(held)
    run = observe(lambda: results.append(how.sync_on(*stream) if stream else how.sync()))
    run.result = results[0]
    return run


def run_of(
    name: str, mine: _Answer, model: _Answer, *args: Any, cure: str = "", late: bool = True
) -> Callable[..., AbstractContextManager[Observed]]:
    """A function that runs the operation that an answer describes, as often as it is called; see `built`.

    It takes names of pieces that should run once each, and gives a context with the run, whose results have
    to be from kernels. Whatever is rejected there gets the timelines of it and of the solution's. When all is
    asked once more, `late`, host arrays have other numbers while it is described, and another one runs first.
    """
    with moved() as given:  # some of which may be in operations
        expected = observe(model(*args).sync).trace
    theirs = host_arrays(args)
    late, right = bool(late and operations.asked_before and theirs), [x.copy() for x in theirs]
    for host in theirs if late else []:
        np.negative(host, out=host)
    op = built(name, mine, expected, *args, cure=cure)
    if late:
        for host, numbers in zip(theirs, right, strict=True):
            host[:] = numbers
        theirs += host_arrays(of_another(mine, args))

    @contextmanager
    def run_it(*once: str) -> Generator[Observed]:
        before = [host.copy() for host in theirs]
        with moved() as numbers, case(LATE * late):
            run = run_now(op)
        with compared(run.trace, expected), case(LATE * late):
            each_once(run.trace, *once)
            left_alone(theirs, before)
            yield run
            numbers.by_kernels(run.result, *args, *(part for up, part in given.copies if up))

    return run_it


def left_alone(now: Sequence[Any], before: Sequence[Any]) -> None:
    """Refuse to have the caller's arrays, or an earlier result, written to."""
    cause = "your operation has changed the numbers in an array of its caller's, or in an earlier result: "
    cause += "write to neither, and make a copy if you need one"
    must(all(map(np.allclose, now, before)), cause)


def of_another(answer: _Answer, args: tuple[Any, ...]) -> Any:
    """Run another operation of the answer, for other numbers, in arrays of the same shapes."""
    return call(call(answer, *in_containers(_other, args)).sync)


def _other(arg: Any) -> Any:
    if isinstance(arg, np.ndarray):
        return agt.pin(np.roll(cast(operations.LearnersArray, arg), 1))
    return arg + 1 if isinstance(arg, int | float) else arg
