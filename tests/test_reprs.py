"""A cell whose last line is a name shows few words, and never Python's own dump."""

from collections.abc import Callable

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor.data.language import untrained_model
from asyncgpu_tutor.language import Conversations
from asyncgpu_tutor.language.slots import slots

MODEL = untrained_model(8, 2, 1, 16, 5)
pytestmark = pytest.mark.usefixtures("sim")
LONGEST = 240  # letters; a line of a page at 700 pixels has about 90


@pytest.fixture
def trace() -> agt.Trace:
    with agt.record() as trace:
        agt.overlap(*(agt.h2d(agt.pin(np.ones(4096, np.float32)), "x") for _ in range(3))).sync()
    return trace


def test_a_run_takes_a_line_or_two(trace: agt.Trace) -> None:
    for said in map(repr, (trace, trace.metrics(), agt.analyse(trace))):
        assert len(said) < LONGEST
        assert "Span(" not in said
        assert "µs" in said or "makespan" in said


def test_nothing_recorded_says_what_to_do() -> None:
    with agt.record() as inside:
        unfinished = (repr(inside), inside.table(), repr(agt.analyse(inside)))
    for said in (*unfinished, repr(inside), agt.analyse(inside)._repr_html_()):
        assert "agt.record()" in said
        assert "op.sync()" in said


def test_each_says_what_it_yields() -> None:
    relu = agt.relu(8, agt.ones(8).sync(), agt.zeros(8).sync(), grid=1, block=8)
    ops: list[tuple[agt.DeviceOp[object], str]] = [
        (agt.zeros((3, 4)), "zeros, (3, 4) float32"),
        (agt.h2d(np.zeros((2, 8)), "x"), "h2d, (2, 8) float64"),
        (agt.d2h(agt.zeros((5,)).sync()), "d2h, (5,) float32 on the host"),
        (agt.zip(agt.zeros(3), agt.ones(4)), "zip, of 2: zeros, ones"),
        (agt.zeros((3, 4)).shared(), "zeros, (3, 4) float32"),
        (agt.value(3), "value, int"),
        (relu.output(), "relu, (8,) float32"),
        (agt.zeros(3).and_then(agt.value), "zeros"),
    ]
    for op, told in ops:
        assert repr(op).startswith(f"<DeviceOp {told}")
        assert repr(op).endswith("op.sync(), await op or agt.spawn(op) runs it>")
        op.sync()


async def test_what_lives_somewhere_says_where(tell: Callable[[str], None]) -> None:
    gone, x = agt.ones(4, name="gone").sync(), agt.ones((2, 3), name="x").sync()
    shared = gone.share()
    host = agt.ones(2).to_host().async_on(agt.create_stream())
    tell(repr(host))
    with agt.microscope() as scope:
        agt.relu(8, agt.ones(8), agt.zeros(8).partition(8)).sync()
    warps = agt.show_warps(agt.relu, 8, np.ones(8, "f4"), np.zeros(8, "f4"), grid=1, block=8)
    async with agt.cluster("sim", gpus=1) as gpus, Conversations(MODEL, slots=2) as talks:
        there, made = await gpus[0].put(np.ones(3), "y"), await slots(MODEL, 2)
        assert (x.share_count, shared.share_count, there.nbytes) == (0, 1, 24)
        for thing in (
            gone,
            shared,
            x.partition(1, 3),
            host,
            scope,
            warps,
            gpus,
            gpus[0],
            there,
            there.op(),
        ):
            tell(repr(thing))
        tell(f"{talks} {made}")


def test_policies_say_what_they_are() -> None:
    class Mine(agt.SchedulingPolicy):
        def __init__(self) -> None:
            """A learner's own, which forgets the constructor of its parent."""

        def next_stream(self) -> agt.types.Stream:
            raise NotImplementedError

    pool, one = agt.StreamPoolRoundRobin(4), agt.SingleStream()
    assert repr(pool) == "<StreamPoolRoundRobin over 4 streams, no device yet>"
    assert repr(Mine()) == "<Mine, no device yet>"
    name = agt.current_device().name
    pool.bind(agt.current_device())
    assert repr(pool) == f"<StreamPoolRoundRobin over 4 streams, on {name}>"
    one.bind(agt.current_device())
    assert repr(one.next_stream()) in repr(one)


def test_tables_are_lines_that_a_notebook_does_not_wrap(trace: agt.Trace) -> None:
    for table in (trace.table(), agt.analyse(trace).table()):
        assert repr(table) == str(table)
        assert "\n" in repr(table)
        shown = table._repr_html_()
        assert "white-space:pre" in shown
        assert "overflow-x:auto" in shown


def test_what_is_shown_cannot_be_read_as_markup() -> None:
    span = agt.types.Span(0, "kernel", "<script>", 0, 5, "sim:0", 1)
    trace = agt.Trace([span], device="<b>")
    for one in (trace.table(), agt.compare_timelines([trace, trace]), agt.analyse(trace)):
        shown = one._repr_html_()
        assert "<script>" not in shown
        assert "<b>:" not in shown
