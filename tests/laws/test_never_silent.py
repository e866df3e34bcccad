"""Law 15: never silent. What nobody ran warns, and what is used as if it were data says how to run it."""

import asyncio
import gc
import operator as op
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import NeverRunWarning, NotAnOperationError, NotDataError, UsageError
from tests.tools import python

from .kernels import ADD, SCALE, kernel

N = 8


@contextmanager
def heard(action: Any = "always") -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings about operations that nobody ran: all of them, or one for each line."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        gc.collect()  # what earlier tests have left
        warnings.simplefilter(action, NeverRunWarning)
        found: list[warnings.WarningMessage] = []
        yield found
        gc.collect()
        found += [one for one in said if issubclass(one.category, NeverRunWarning)]


# ---------------------------------------------------------------------- it warns
# Programs of which one operation was never run, and the line where that was built.
LEFT = [
    ("agt.zeros((N,)).named('left behind')", 1),
    ("first = agt.zeros((N,))\nfirst.and_then(agt.d2h).map(lambda x: x)", 1),  # where it begins
    ("x, y = agt.ones((N,)).sync(), agt.zeros((N,)).sync().partition(8)\nscale(N, 2.0, x, y)", 2),
    ("y = agt.zeros((N,)).partition(8)\nscale(N, 3.0, agt.ones((N,)), y)", 2),
    ("first = agt.zeros((N,))\nfirst.shared()", 2),
    ("one, other = agt.zeros((N,)), agt.ones((N,))\nagt.zip(one, other)", 2),
    ("one, other = agt.zeros((N,)), agt.ones((N,))\nagt.overlap(one, other)", 2),
    ("both = agt.dup(agt.zeros((N,)).sync())\nboth.unzip(2)", 2),
    ("both = agt.dup(agt.zeros((N,)).sync())\nboth.first()", 2),
    ("agt.with_context(lambda context: agt.value(None))", 1),
    ("agt.h2d(np.ones(N, np.float32), name='up')", 1),
]


@pytest.mark.parametrize(("program", "line"), LEFT)
def test_what_nobody_ran_says_where_it_was_built(device: Device, program: str, line: int) -> None:
    names = {"agt": agt, "np": np, "N": N, "scale": kernel(SCALE)}
    with heard() as said:
        exec(compile(program, "program.py", "exec"), names)
        names.clear()
    (one,) = said  # its parts say nothing besides
    assert "never run" in str(one.message)
    if "left behind" in program:
        assert "operation 'left behind' was built here" in str(one.message)
    assert "op.sync(), await op or agt.spawn(op)" in str(one.message)
    assert (one.filename, one.lineno) == ("program.py", line)


def test_a_loop_warns_once_a_line(device: Device) -> None:
    with heard("default") as said:
        for _ in range(5):
            agt.zeros((N,)).map(print)
        for _ in range(5):
            agt.zeros((N,))
    lines = [one.lineno for one in said]
    assert len(lines) == len(set(lines)) == 2


def test_as_an_error_it_breaks_nothing(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    gc.collect()  # what earlier tests have left
    monkeypatch.setattr(sys, "unraisablehook", lambda told_of: told.append(told_of.exc_type))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NeverRunWarning)
        agt.zeros((N,))
        gc.collect()
    assert told == [NeverRunWarning]
    assert agt.value(2).sync() == 2


# ---------------------------------------------------------------------- it does not
def run_it_on_a_stream() -> None:
    stream = agt.create_stream()
    agt.zeros((N,)).sync_on(stream)
    agt.zeros((N,)).async_on(stream)
    agt.synchronize()


async def await_it() -> None:
    await agt.zeros((N,))
    await agt.zeros((N,)).schedule()
    await agt.zeros((N,)).into_future()
    await agt.spawn(agt.zeros((N,)))
    await asyncio.gather(agt.zeros((N,)), agt.value(1))


async def spawn_it_and_change_ones_mind() -> None:
    task = agt.spawn(agt.zeros((N,)))
    task.cancel()
    await asyncio.wait({task})


def use_it_in_another() -> None:
    x = agt.ones((N,)).shared()
    part = agt.zeros((N,)).partition(8)
    agt.zip(x, agt.overlap(x, kernel(ADD)(N, x, x, part).output())).sync()


def use_one_entry() -> None:
    left, _ = agt.zip(agt.value(1), agt.value(2)).unzip()
    assert left.sync() == 1
    assert agt.zip(agt.value(1), agt.value(2)).last().sync() == 2


def build_it_in_a_function() -> None:
    agt.value(1).and_then(agt.value).sync()
    agt.value(1).and_then_with_context(lambda _, one: agt.value(one)).sync()
    agt.with_context(lambda _: agt.value(1)).sync()


def capture_it() -> None:
    x, y = agt.ones((N,)).sync(), agt.zeros((N,)).sync()
    stream = agt.create_stream()
    agt.memcpy(y.borrow(), x.borrow()).prepare()
    graph = agt.memcpy(y.borrow(), x.borrow()).graph_on(stream)
    graph.update(agt.memcpy(x.borrow(), y.borrow()))
    graph.launch().sync()
    with agt.CudaGraph.scope(stream) as scope:
        scope.record(agt.memcpy(y.borrow(), x.borrow()))


def raise_in_its_constructor() -> None:
    with pytest.raises(UsageError):
        agt.zip()
    with pytest.raises(NotAnOperationError):
        agt.overlap(agt.value(1).named("used"), 3).sync()  # pyright: ignore
    with pytest.raises(UsageError):
        agt.zeros((-1,))
    with pytest.raises(UsageError):
        kernel(SCALE)(N, 2.0, agt.zeros((N,)).sync(), agt.zeros((3,)).sync().partition(8))
    with pytest.raises(UsageError):
        agt.h2d("no array")  # pyright: ignore
    moved = agt.zeros((N,)).sync()
    moved.share()
    with pytest.raises(agt.errors.UseAfterMoveError):
        agt.d2h(moved)
    one = agt.value(1)
    with pytest.raises(NotAnOperationError):
        one.map(3)  # pyright: ignore
    one.sync()


def fail_when_it_runs() -> None:
    with pytest.raises(ZeroDivisionError):
        agt.value(1).map(lambda one: one / 0).sync()


SILENT: list[Callable[[], object]] = [
    lambda: agt.zeros((N,)).and_then(agt.d2h).sync(),
    lambda: agt.value([1]),  # there is no work in it that anybody could miss
    lambda: asyncio.run(await_it()), lambda: asyncio.run(spawn_it_and_change_ones_mind()),
    run_it_on_a_stream, use_it_in_another, use_one_entry, build_it_in_a_function, capture_it,
    raise_in_its_constructor, fail_when_it_runs,
]  # fmt: skip


@pytest.mark.parametrize("does", SILENT)
def test_what_was_run_says_nothing(device: Device, does: Callable[[], object]) -> None:
    with heard() as said:
        does()
    assert [str(one.message) for one in said] == []


def test_a_group_that_was_not_run_speaks_for_its_arms(device: Device) -> None:
    one = agt.zeros((N,))
    with heard() as said:
        agt.zip(one, agt.zeros((N,)))
    assert len(said) == 1
    with heard() as said:
        del one
    assert said == []


def test_nothing_is_said_when_python_ends() -> None:
    program = (
        "import asyncgpu_tutor as agt\n"
        "agt.use('sim')\n"
        "kept = agt.zeros((3,)).map(lambda x: x)\n"
        "class Holder: pass\n"
        "holder = Holder(); holder.me = holder; holder.op = agt.ones((3,))\n"
    )
    assert python("-W", "always", "-c", program).stderr == ""


# ---------------------------------------------------------------------- an operation is no data
MISUSES: list[Callable[[Any], object]] = [
    np.array, np.asarray, len, list, float, int, op.neg, op.not_, lambda one: op.matmul(one, one),
    *(partial(f, np.ones(3)) for f in (op.add, op.matmul)),
    *(lambda one, f=f: f(one, np.ones(3)) for f in (op.add, op.matmul)),
    *(lambda one, f=f: f(one, 1) for f in (op.add, op.sub, op.mul, op.truediv, op.getitem)),
    *(lambda one, f=f: f(one, 1) for f in (op.lt, op.le, op.gt, op.ge)),
    *(partial(f, number) for f in (op.add, op.sub, op.mul, op.truediv) for number in (1, np.float32(1))),
    lambda one: 1 if one else 2,
    lambda one: [x for x in one],  # noqa: C416 - what a learner writes
]  # fmt: skip

KINDS: dict[str, Callable[[Any], Any]] = {
    "leaf": lambda one: one,
    "chain": lambda one: one.map(lambda x: x),
    "launch": lambda one: kernel(SCALE)(N, 2.0, agt.ones((N,)), one.partition(8)),
    "shared": lambda one: one.shared(),
    "zip": lambda one: agt.zip(one, one),
}


@pytest.mark.parametrize("kind", KINDS)
def test_used_as_data_it_says_what_to_write(device: Device, kind: str) -> None:
    one = KINDS[kind](agt.zeros((N,)).named("mine")).named("mine")
    for misuse in MISUSES:
        with pytest.raises(NotDataError, match=r"mine.*op\.sync\(\) or await op runs it"):
            misuse(one)
    one.sync()  # the misuse has not harmed it


def test_it_is_found_by_itself_and_by_no_other(device: Device) -> None:
    one, other = agt.value(1), agt.value(1)
    assert one != other
    assert len({one, other, one}) == 2
    assert one in [other, one]


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("then", r"op\.and_then\(f\) goes on .*op\.map\(f\)"),
        ("flat_map", r"op\.and_then\(f\)"),
        ("result", r"op\.sync\(\) runs it and blocks"),
        ("get", r"await op does so without blocking"),
        ("mean", r"op\.map\(f\) gets the handle"),
    ],
)
def test_a_name_that_it_has_not_says_which_is_meant(device: Device, name: str, cure: str) -> None:
    with pytest.raises(AttributeError, match=f"<DeviceOp a word> has no '{name}': .*{cure}"):
        getattr(agt.value(1).named("a word"), name)
    assert not hasattr(agt.value(1), "_nothing")


async def test_a_task_of_an_operation_says_how_to_make_one(device: Device) -> None:
    one: Any = agt.value(1)
    with pytest.raises(TypeError, match=r"coroutine.*await op or agt\.spawn\(op\) runs it"):
        asyncio.create_task(one)  # noqa: RUF006 - it makes none
    future: Any = agt.value(1).into_future()
    with pytest.raises(NotAnOperationError, match=r"as in agt\.spawn\(op\)"):
        agt.spawn(future)
    assert await asyncio.ensure_future(future) == 1  # the message offers this, too
