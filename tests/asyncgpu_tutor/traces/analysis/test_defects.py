"""The detective finds each defect in a program that has it, and in its repaired twin not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.traces.spans.span import SpanKind
from asyncgpu_tutor.types import Finding, Span
from tests.tools import tool

from .programs import call, finding, recorded

RUNS = tool("course_programs").RUNS
SUSPECTS = [n for n in RUNS if n.startswith("08_") and not n.endswith("_repaired")]


@pytest.mark.parametrize("name", SUSPECTS)
def test_the_defect_is_found_and_nothing_else_and_its_repaired_twin_is_innocent(name: str) -> None:
    trace, twin = recorded(name), recorded(f"{name}_repaired")
    (finding,) = (f for f in agt.diagnose(trace) if not f.limit)
    assert finding.name == name[3:].replace("_", " ")
    assert finding.spans
    assert set(finding.spans) <= {span.id for span in trace}
    assert finding.sentence.endswith(".")
    assert finding.advice.endswith(".")
    assert [f for f in agt.diagnose(twin) if not f.limit] == []
    one, other = ({(s.kind, s.name) for s in t.device_spans} for t in (trace, twin))
    assert one == other


def spans(trace: Trace, found: Finding) -> list[Span]:
    return [span for span in trace if span.id in found.spans]


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("null stream", lambda found: {s.stream for s in found} == {0}),
        ("pageable copy", lambda found: [s.detail["pageable"] for s in found] == [True] * 4),
        ("lazy module loading", lambda found: [s.name for s in found] == ["load doubled"]),
        # The first of eight is needed.
        ("allocation in the loop", lambda found: [s.name for s in found] == ["malloc chunk"] * 7),
        ("too few streams", lambda found: len(found) == 4),
    ],
)
def test_the_evidence(name: str, evidence: Callable[[list[Span]], bool]) -> None:
    trace = recorded(f"08_{name.replace(' ', '_')}")
    assert evidence(spans(trace, finding(trace, name)))


def test_a_copy_to_pageable_memory_is_one_as_well(sim: Device) -> None:
    out = np.empty(1 << 18, np.float32)
    with agt.record() as trace:
        agt.d2h(agt.zeros(1 << 18).sync(), out=out).sync()
    found = spans(trace, finding(trace, "pageable copy"))
    assert {s.kind for s in found} == {"d2h", "wait"}


def test_evidence_of_hidden_synchronisation_are_the_waits_but_the_last() -> None:
    trace = recorded("08_hidden_synchronisation")
    found = finding(trace, "hidden synchronisation")
    assert spans(trace, found) == [s for s in trace if s.kind == "wait"][:3]
    assert 0 < found.cost <= trace.metrics().device_idle + 1e-6


def test_one_wait_at_the_end_and_arrays_in_use_at_once_are_no_defect(sim: Device) -> None:
    with agt.record() as trace:
        agt.zeros(8).sync()
    assert agt.diagnose(trace) == []
    with agt.record() as trace:
        agt.overlap(*(agt.zeros(1 << 22, name="x") for _ in range(8))).sync()
    assert "allocation in the loop" not in [f.name for f in agt.diagnose(trace)]


def asked_twice(start: float, end: float, *, pageable: bool = False) -> Trace:
    """A copy to the host, a wait from start to end, and a second copy that was asked for after it."""
    return Trace([
        Span(0, "call", "enqueue d2h", 0, 25 if pageable else 5, "cuda:0"),
        Span(1, "d2h", "y", 10, 20, "cuda:0", 1, after=(0,), detail={"pageable": pageable}),
        Span(2, "wait", "synchronize event", start, end, "cuda:0"),
        Span(3, "call", "enqueue d2h", 50, 55, "cuda:0"),
        Span(4, "d2h", "y", 60, 70, "cuda:0", 1, after=(3,)),
    ])  # fmt: skip


def test_a_wait_for_a_device_that_is_done_holds_nobody_up() -> None:
    """It returns at once: as after `await`, which asks for the error of what is already over."""
    assert finding(asked_twice(15, 22), "hidden synchronisation").cost == 7
    assert [f for f in agt.diagnose(asked_twice(30, 32)) if not f.limit] == []
    # `float(array)` in CuPy: the driver waits in the call, and the wait after it returns at once.
    found = finding(asked_twice(26, 28, pageable=True), "hidden synchronisation")
    assert found.spans == (0,)


MOVING = [("h2d", "x", "copies"), ("kernel", "ncclDevKernel_AllReduce", "communication")]


@pytest.mark.parametrize(("kind", "name", "found"), MOVING)
def test_what_moves_data_costs_the_time_in_which_nothing_computes(
    kind: SpanKind, name: str, found: str
) -> None:
    def moved(computing: float) -> list[Finding]:
        gemm = Span(1, "kernel", "gemm", 60 - computing, 100, "cuda:0", 2)
        trace = Trace([Span(0, kind, name, 0, 60, "cuda:0", 1), gemm])
        return [f for f in agt.diagnose(trace) if f.name == f"exposed {found}"]

    assert moved(computing=60) == []
    (exposed,) = moved(computing=20)
    assert (exposed.cost, exposed.spans, exposed.limit) == (40.0, (0,), True)


def row(gap: float, length: float = 2.0, pieces: int = 20, waits: bool = False) -> Trace:
    """Kernels one after the other, each asked for when the one before has been done for a while."""
    spans: list[Span] = []
    for i in range(pieces):
        at, number = i * (gap + length), 3 * i
        start, end = at + gap, at + gap + length
        work = Span(number + 1, "kernel", "k", start, end, "cuda:0", 1, after=(number,))
        spans += [call(number, at, start), work]
        if waits:
            spans.append(Span(number + 2, "wait", "synchronize device", end - 1, end, "cuda:0"))
    return Trace(spans)


def names(trace: Trace) -> list[str]:
    return [found.name for found in agt.diagnose(trace)]


def test_small_kernels_in_a_row_are_worth_a_graph_and_cost_the_pauses_between_them() -> None:
    found = finding(row(gap=6), "small kernels")
    # A graph has pauses, too.
    assert (found.cost, len(found.spans), found.limit) == (19 * 5, 19, True)
    for innocent in ({"length": 200}, {"pieces": 8}, {"waits": True}, {"gap": 500}):
        assert "small kernels" not in names(row(**{"gap": 6, **innocent}))


def two_gpus(*collectives: tuple[float, float, float]) -> Trace:
    """All-reduces, each with its start on either GPU and its common end."""
    spans = [
        Span(2 * i + gpu, "kernel", "ncclDevKernel_AllReduce", starts[gpu], end, f"cuda:{gpu}", 1)
        for i, (*starts, end) in enumerate(collectives)
        for gpu in (0, 1)
    ]
    return Trace(spans)


def test_who_waits_in_a_collective_for_another_gpu_is_told_for_whom_and_how_long() -> None:
    trace = two_gpus((0, 60, 70), (100, 100, 110))
    waiting, talking = agt.diagnose(trace)[:2]
    assert (waiting.name, waiting.cost, waiting.spans) == ("waiting for a GPU", 60, (0,))
    assert "cuda:0" in waiting.title
    assert "cuda:1" in waiting.sentence
    assert talking.cost <= 20  # what was waited for is in no other finding
    assert agt.analyse(trace).findings[0] == waiting
    # Where they did not run together, or one has more, nobody knows which belong to each other.
    apart = two_gpus((0, 60, 70))
    early = [replace(s, end=50) if s.id == 0 else s for s in apart]
    more = [*apart, replace(apart.spans[0], id=9, start=80, end=90)]
    assert not any("waiting" in name for spans in (early, more) for name in names(Trace(spans)))


def test_the_start_of_cuda_is_told_where_it_takes_longer_than_all_work() -> None:
    def program(work: float) -> Trace:
        first = Span(0, "call", "malloc", 0, 300_000, "cuda:0")
        return Trace([first, Span(1, "kernel", "k", 300_010, 300_010 + work, "cuda:0", 1)])

    assert finding(program(100), "start of CUDA").cost == 300_000
    assert "start of CUDA" not in names(program(400_000))


@pytest.mark.parametrize(
    ("blocks", "threads", "empty"), [(1, 1, True), (132, 256, False), (8, 1024, True)]
)
def test_a_block_on_each_multiprocessor_leaves_nothing_empty(
    blocks: int, threads: int, empty: bool
) -> None:
    """A large matrix product has few threads, and needs all that a multiprocessor has."""
    detail = {"grid": [blocks, 1, 1], "block": [threads, 1, 1]}
    trace = Trace([Span(0, "kernel", "gemm", 0, 100, "cuda:0", 1, detail=detail)])
    (found,) = agt.diagnose(trace)
    assert found.name == ("low utilisation" if empty else "kernel-bound")
    assert 90 < found.cost <= 100


def test_what_costs_most_comes_first_and_what_costs_nothing_last() -> None:
    kernels = [replace(s, stream=0) if s.on_device else s for s in row(gap=6)]
    costs = [found.cost for found in agt.diagnose(Trace(kernels))]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0


@pytest.mark.parametrize(("fills", "foreign"), [(0.1, False), (1.0, False), (0.1, True)])
def test_streams_are_advised_where_the_device_has_room_and_orders_are_known(
    fills: float, foreign: bool
) -> None:
    """Three products of three operations on one stream, asked for at once."""
    more = {"detail": {"fills": fills}}
    spans = [
        Span(i + 3, "kernel", "p", 9 * i, 9 * i + 9, "cuda:0", 1, i, after=(i,), **more)
        for i in range(3)
    ]
    calls = [replace(call(i, 0, i), op=i) for i in range(3)]
    trace = Trace([*calls, *spans], about={"foreign": foreign})
    found = "too few streams" in [f.name for f in agt.diagnose(trace)]
    assert found == (fills < 1 and not foreign)
