"""A CUDA graph in a trace: its nodes on a simulated device and with CUPTI, one bar with events."""

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import DeviceOp, Trace
from asyncgpu_tutor.devices.cuda.graph_nodes import Outline
from asyncgpu_tutor.devices.protocol import Device, RecordedCall
from asyncgpu_tutor.traces.spans import SpanLog
from asyncgpu_tutor.traces.spans.relations import happens_before
from asyncgpu_tutor.types import Span
from tests.conftest import open_or_skip

from .host_cupy import gpus

N = 64


@pytest.fixture(params=["sim", pytest.param("cuda", marks=pytest.mark.gpu)])
def seeing(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device whose recordings see the nodes of a graph, as the current one."""
    if request.param == "cuda":
        pytest.importorskip("cupti")
    with agt.using(open_or_skip(str(request.param))) as device:
        yield device


def arm(number: int) -> DeviceOp[Any]:
    """In, twice a kernel, within the device, and out."""
    x, y, z = (agt.zeros(N).sync() for _ in range(3))
    there, back = agt.pin(np.full(N, number, np.float32)), agt.pinned(N)
    part = y.borrow().partition(32)
    return agt.zip(
        agt.memcpy(x.borrow(), there),
        agt.relu(N, x.borrow(), part),
        agt.relu(N, x.borrow(), part),
        agt.memcpy(z.borrow(), y.borrow()),
        agt.d2h(z.borrow(), out=back),
    ).named(f"arm {number}")


WORK = ["h2d", "relu", "relu", "d2d", "d2h"]


def launched(times: int = 1) -> Trace:
    graph = agt.overlap(arm(1), arm(2)).named("arms").graph_on(agt.create_stream())
    stream = agt.create_stream()
    graph.launch().sync_on(stream)
    with agt.record() as trace:
        for _ in range(times):
            graph.launch().async_on(stream)
        stream.synchronize()
    return trace


def by_arm(spans: list[Span]) -> list[list[Span]]:
    return [spans[: len(WORK)], spans[len(WORK) :]]


# Of two kernels that follow each other on a branch CUPTI has told that the second began up to 1.0 us before
# the first had ended (H200, driver 580.159.04, in three runs of four).
OVERLAP_US = 2.0


def test_each_node_is_a_span_of_its_own(seeing: Device) -> None:
    trace = launched()
    spans = trace.device_spans
    assert [span.name for span in spans] == WORK * 2
    assert [span.detail["node"] for span in spans] == list(range(2 * len(WORK)))
    assert {span.detail["graph"] for span in spans} == {"arms"}
    assert {(span.op, span.label) for span in spans} == {(spans[0].op, "arms")}
    assert [span.detail["grid"] for span in spans if span.kind == "kernel"] == [[2, 1, 1]] * 4
    assert [span.detail["bytes"] for span in spans if span.kind != "kernel"] == [4 * N] * 6
    assert all(span.duration > 0 for span in spans)
    assert "without_record" not in trace.about


def test_the_host_makes_one_call_and_one_wait_around_all_nodes(seeing: Device) -> None:
    trace = launched()
    (call,) = (span for span in trace if span.kind == "call")
    assert call.name == "launch graph arms"
    for span in trace.device_spans:
        assert call.id in span.after
        assert call.start <= span.start
    (wait,) = (span for span in trace if span.kind == "wait")
    assert {nodes[-1].id for nodes in by_arm(trace.device_spans)} <= set(wait.after)


def test_branches_have_lanes_of_their_own_and_each_lane_is_in_order(seeing: Device) -> None:
    trace = launched(times=2)
    spans = trace.device_spans
    first, second = spans[: 2 * len(WORK)], spans[2 * len(WORK) :]
    (one, other), (one_again, other_again) = by_arm(first), by_arm(second)
    for nodes in (one, other, one_again, other_again):
        assert len({span.stream for span in nodes}) == 1
        for early, late in pairwise(nodes):
            assert early.start < late.start
            assert early.end <= late.start + (0.0 if seeing.simulated else OVERLAP_US)
            assert happens_before(trace, early, late)
    assert one[0].stream != other[0].stream
    assert (one_again[0].stream, other_again[0].stream) == (one[0].stream, other[0].stream)
    assert not happens_before(trace, one[0], other[-1])
    assert not happens_before(trace, other[0], one[-1])
    for early in first:
        assert all(happens_before(trace, early, late) for late in second)


TOLD = {"bytes", "grid", "block", "named", "rank", "ranks", "from", "to"}
FACTS = [
    ("h2d", "h2d", {"bytes": 256}),
    ("kernel", "relu", {"grid": [2, 1, 1], "block": [32, 1, 1], "named": "mine"}),
    ("memset", "memset", {"bytes": 1024}), ("d2d", "d2d", {"bytes": 256}), ("d2h", "d2h", {"bytes": 256}),
    ("kernel", "all_reduce", {"bytes": 256, "rank": 0, "ranks": 2}),
    ("peer", "peer copy", {"bytes": 256, "from": 0, "to": 1}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["sim", "on the host"])
def test_each_kind_of_work_says_the_same_on_both_devices(kind: str) -> None:
    with gpus(kind, 2) as pair:
        x, y, *ends = [agt.zeros(N).on(pair[i]).sync().borrow() for i in (0, 0, 0, 1)]
        steps = agt.zip(
            agt.memcpy(x, agt.pin(np.ones(N, np.float32))),
            agt.relu(N, x, y.partition(32)).named("mine"),
            agt.zeros((N, 4)),
            agt.memcpy(x, y),
            agt.d2h(x, out=agt.pinned(N)),
            agt.group(*pair).all_reduce(ends),
        )
        prepared = steps.prepare()
        for op, facts in (agt.zip(steps, x.to(pair[1])), FACTS), (prepared.launch(), FACTS[:-1]):
            with agt.record() as trace:
                op.sync()
            spans = sorted(trace.device_spans, key=lambda span: (span.device, span.id))
            known = [(s.kind, s.name, {k: s.detail[k] for k in TOLD & {*s.detail}}) for s in spans]
            assert known[: len(facts)] == facts
        one, *others = pair[0].create_stream(), pair[0].create_stream(), pair[1].create_stream()
        with agt.record() as trace:
            agt.work(1.0, "mine")
            for stream in others:
                stream.wait_event(one.record())
    work, *events = trace
    assert (work.kind, work.name) == ("work", "mine")
    for record, wait, stream in zip(*[iter(events)] * 2, others, strict=True):
        assert (record.kind, record.name, record.detail) == (
            "call",
            "record",
            {"stream": one.number},
        )
        told = {"stream": stream.number, "event_of": one.number}
        assert (wait.kind, wait.name, wait.detail) == ("call", "wait_event", told)
        assert wait.device == stream.device.name


@pytest.mark.gpu
def test_events_see_one_bar_and_say_so(cuda: Device) -> None:
    graph = arm(1).graph_on(agt.create_stream())
    with agt.record("events") as trace:
        graph.launch().sync()
    (bar,) = trace.device_spans
    assert (bar.kind, bar.name) == ("graph", "arm 1")
    assert bar.detail["nodes"] == len(WORK)
    assert "one bar" in str(trace.about["graphs"])


def test_an_outline_drafts_the_order_that_was_captured() -> None:
    """A fork, two arms, a join; the root is drawn on the stream of the launch."""
    function = SimpleNamespace(name="layer")
    host = np.zeros(4, np.float32)

    def kernel(stream: int) -> RecordedCall:
        args = (function, (2, 1, 1), (64, 1, 1), (), 0)
        return RecordedCall("launch", args, stream, named="right" if stream else "")

    calls = [
        RecordedCall("copy_from_host_async", ("memory", host), 0),
        RecordedCall("record", (0,), 0), RecordedCall("wait_event", (0,), 1), kernel(0), kernel(1),
        RecordedCall("record", (1,), 1), RecordedCall("wait_event", (1,), 0),
        RecordedCall("copy_to_host_async", (host, "memory"), 0),
    ]  # fmt: skip
    log = SpanLog("cuda:0")
    outline = Outline("net", calls, branches=[8])
    copy, left, right, back = outline.draft(log, 3, op=5, label="net", call=99)
    assert outline.nodes == 4
    assert [draft.stream for draft in (copy, left, right, back)] == [3, 3, 8, 3]
    assert [draft.kind for draft in (copy, left, right, back)] == ["h2d", "kernel", "kernel", "d2h"]
    assert (copy.after, left.after) == ((99,), (copy.id, 99))
    assert right.after == (copy.id, 99)
    assert back.after == (left.id, right.id, 99)
    shape = {"grid": [2, 1, 1], "block": [64, 1, 1], "graph": "net"}
    assert left.detail == {**shape, "node": 1}
    assert right.detail == {**shape, "named": "right", "node": 2}
    again = outline.draft(log, 4, op=6, label="net", call=100)
    assert again[2].after == (right.id, again[0].id, 100)
