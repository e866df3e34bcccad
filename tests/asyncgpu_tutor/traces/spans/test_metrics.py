"""The numbers of a trace: definitions by example, identities by property."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncgpu_tutor as agt
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import Span, SpanKind, SpanLog, measure
from asyncgpu_tutor.traces.spans.lanes import lanes
from asyncgpu_tutor.traces.trace import Trace

DEVICE: tuple[SpanKind, ...] = ("kernel", "h2d", "d2h", "d2d", "memset")
HOST: tuple[SpanKind, ...] = ("call", "wait", "work", "range")

# Multiples of 1/8 us, so that sums are exact and identities need no tolerance.
ticks = st.integers(0, 400).map(lambda n: n / 8)

# Kind, name, start, duration, device, stream, after.
FACTS = st.tuples(
    st.sampled_from(DEVICE + HOST), st.sampled_from("abc"), ticks, ticks,
    st.sampled_from(("sim:0", "sim:1")), st.integers(0, 2), st.lists(st.integers(0, 15), max_size=3),
)  # fmt: skip


@st.composite
def any_trace(draw: st.DrawFn) -> Trace:
    """Spans at any time, after anything: nothing about them fits together."""
    rows = enumerate(draw(st.lists(FACTS, max_size=12)))
    return Trace([
        Span(i, kind, name, start, start + took, device, stream if kind in DEVICE else None,
             after=tuple(after))
        for i, (kind, name, start, took, device, stream, after) in rows
    ])  # fmt: skip


@st.composite
def queued_trace(draw: st.DrawFn, slack: bool = True) -> Trace:
    """What a device may record: calls in turn, streams as queues, events between them."""
    log, now = SpanLog("sim:0"), draw(ticks)
    ends: dict[int, float] = {}
    for _ in range(draw(st.integers(1, 8))):
        call, stream = log.draft("call", "launch", None), draw(st.integers(0, 2))
        begin, now = now, now + draw(ticks) / 8
        ends[call.id] = log.finish(call, begin, now).end
        for other in range(3):
            if draw(st.booleans()):
                log.wait(stream, log.heads(other))
        work = log.draft(draw(st.sampled_from(DEVICE)), "work", stream, call=call.id)
        start = max(ends[i] for i in work.after) + (draw(st.sampled_from((0, 2.5))) if slack else 0)
        ends[work.id] = log.finish(work, start, start + draw(ticks)).end
    return Trace(log.spans)


def kernel(number: int, stream: int, start: float, end: float, after: tuple[int, ...] = ()) -> Span:
    return Span(number, "kernel", f"k{number}", start, end, "sim:0", stream, after=after)


def call(number: int, start: float, end: float) -> Span:
    return Span(number, "call", f"c{number}", start, end, "sim:0")


# ------------------------------------------------------------------ by example
EXAMPLES: list[tuple[list[Span], dict[str, object]]] = [
    ([], dict.fromkeys(("makespan", "device_makespan", "overlap", "device_active"), 0)),
    ([], {"overlap_fraction": 0, "max_concurrency": 0, "critical_path": ()}),
    (
        [call(0, 0, 5), kernel(1, 1, 5, 15), kernel(2, 2, 10, 20)],
        {
            "makespan": 20, "device_makespan": 15,
            "concurrency": (0, 10, 5), "overlap": 5, "overlap_fraction": 5 / 15,
            "max_concurrency": 2, "stream_busy": {("sim:0", 1): 10, ("sim:0", 2): 10},
            "engine_busy": {("sim:0", "compute"): 15}, "host": {"call": 5, "wait": 0, "work": 0}},
    ),
    # Spans that touch neither overlap nor leave a gap.
    ([kernel(0, 1, 0, 10), kernel(1, 2, 10, 20)], {"max_concurrency": 1}),
    ([kernel(0, 1, 0, 5), kernel(1, 1, 5, 8)], {"gaps": {("sim:0", 1): ()}}),
    # Measured times may jitter so that two spans of one queue seem to overlap; it is still one stream.
    (
        [kernel(0, 1, 0, 10), kernel(1, 1, 9, 20)],
        {"overlap": 0, "stream_busy": {("sim:0", 1): 20}}),
    # Two devices at work at once overlap no streams, and each idles for itself.
    (
        [kernel(0, 1, 0, 10), *(replace(kernel(i, 1, 4 * i, 4 * i + 3), device="sim:1") for i in (1, 2))],
        {"overlap": 0, "device_idle": 1, "stream_busy": {("sim:0", 1): 10, ("sim:1", 1): 6}}),
    # Gaps lie within a stream, and idle time within the device.
    (
        [kernel(0, 1, 0, 5), kernel(1, 1, 8, 10), kernel(2, 2, 9, 12), kernel(3, 2, 20, 21)],
        {"gaps": {("sim:0", 1): ((5, 8),), ("sim:0", 2): ((12, 20),)}, "device_idle": 3 + 8}),
    # Each copy direction is an engine, and fills are compute.
    (
        [Span(i, kind, kind, i, i + 1, "sim:0", 1) for i, kind in enumerate(DEVICE)],
        {"engine_busy": {("sim:0", "h2d"): 1, ("sim:0", "d2h"): 1, ("sim:0", "compute"): 3}}),
    # A range counts for the makespan and for nothing else.
    (
        [Span(0, "range", "all", 0, 100, "sim:0"), kernel(1, 1, 10, 20)],
        {"makespan": 100, "host": {"call": 0, "wait": 0, "work": 0}, "device_active": 10}),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "expected"), EXAMPLES)
def test_each_number_is_as_it_is_defined(spans: list[Span], expected: dict[str, object]) -> None:
    metrics = measure(Trace(spans))
    assert {name: getattr(metrics, name) for name in expected} == expected


# ------------------------------------------------------------------ the critical path
# Spans, and the steps of their critical path: span, start, end, and idle time before it.
PATHS: list[tuple[list[Span], list[tuple[int, float, float, float]]]] = [
    # It follows the later of two predecessors.
    ([call(0, 0, 2), kernel(1, 1, 2, 10, (0,)), call(2, 2, 4), kernel(3, 2, 4, 30, (2,)),
         call(4, 4, 6), kernel(5, 1, 31, 40, (1, 3, 4))],
        [(0, 0, 2, 0), (2, 2, 4, 0), (3, 4, 30, 0), (5, 31, 40, 1)]),
    # Where the host is the bottleneck it is its calls.
    (
        [call(0, 0, 10), kernel(1, 0, 10, 11, (0,)), call(2, 10, 20), kernel(3, 2, 20, 21, (2,))],
        [(0, 0, 10, 0), (2, 10, 20, 0), (3, 20, 21, 0)]),
    # A wait counts from the end of what it waited for.
    ([call(0, 0, 5), kernel(1, 1, 5, 50, (0,)), Span(2, "wait", "sync", 5, 53, "sim:0", after=(1,)),
         call(3, 53, 58), kernel(4, 1, 58, 60, (3,))],
        [(0, 0, 5, 0), (1, 5, 50, 0), (2, 50, 53, 0), (3, 53, 58, 0), (4, 58, 60, 0)]),
    # A wait that does not say for what waited for what ended in it.
    (
        [call(0, 0, 5), kernel(1, 1, 5, 50, (0,)), Span(2, "wait", "sync", 5, 53, "sim:0")],
        [(0, 0, 5, 0), (1, 5, 50, 0), (2, 50, 53, 0)]),
    # A call counts until what it enqueued begins: a real GPU may start a kernel before its call returned.
    ([call(0, 0, 5), kernel(1, 1, 3, 10, (0,))], [(0, 0, 3, 0), (1, 3, 10, 0)]),
    ([Span(0, "range", "all", 0, 100, "sim:0"), kernel(1, 1, 10, 20)], [(1, 10, 20, 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "steps"), PATHS)
def test_the_critical_path(spans: list[Span], steps: list[tuple[int, float, float, float]]) -> None:
    path = measure(Trace(spans)).critical_path
    assert [(step.span.id, step.start, step.end, step.idle) for step in path] == steps


@given(st.one_of(any_trace(), queued_trace()))
def test_the_path_is_a_chain_no_longer_than_the_makespan(trace: Trace) -> None:
    metrics = measure(trace)
    path = metrics.critical_path
    for one, other in pairwise(path):
        assert one.span.id < other.span.id
        assert other.start - one.end == other.idle >= 0
    for step in path:
        assert step.span.start <= step.start <= step.end <= step.span.end
    if path:
        length = sum(step.end - step.start for step in path) + sum(step.idle for step in path)
        assert length == path[-1].end - path[0].start <= metrics.makespan
        assert path[-1].end == max(s.end for s in trace if s.kind != "range")


@given(queued_trace(slack=False))
def test_where_each_span_starts_as_soon_as_it_can_the_path_is_never_idle(trace: Trace) -> None:
    metrics = measure(trace)
    assert not any(step.idle for step in metrics.critical_path)
    first = metrics.critical_path[0].span
    assert first.start == min(span.start for span in trace)


def test_talk_is_in_the_lane_of_the_link_and_hidden_where_that_gpu_computes() -> None:
    trace = Trace([
        Span(0, "kernel", "product", 0, 20, "cuda:0", 1),
        Span(1, "kernel", "all_reduce", 10, 30, "cuda:0", 2, detail={"ranks": 2}),
        Span(2, "kernel", "ncclDevKernel_AllReduce", 10, 30, "cuda:1", 2),  # as a profiler calls it
        Span(3, "peer", "peer copy", 40, 50, "cuda:1", 1),
    ])  # fmt: skip
    assert list(trace.metrics().engine_busy.values()) == [20, 20, 30]
    assert trace.metrics().hidden == 10 / 50
    assert [len(lane.spans) for lane in lanes(trace) if lane.name == "link"] == [1, 2]


# ------------------------------------------------------------------ identities
@given(st.one_of(any_trace(), queued_trace()))
def test_times_add_up(trace: Trace) -> None:
    metrics = measure(trace)
    assert sum(metrics.concurrency) == metrics.device_makespan
    assert metrics.device_makespan <= metrics.makespan * max(1, len(trace.devices))
    assert metrics.device_active + metrics.device_idle == metrics.device_makespan
    busy = sum(metrics.stream_busy.values())
    assert sum(k * time for k, time in enumerate(metrics.concurrency)) == busy
    assert 0 <= metrics.overlap <= metrics.device_active
    assert metrics.max_concurrency <= len(metrics.stream_busy)
    for lane, time in metrics.stream_busy.items():
        assert time <= metrics.device_makespan
        spans = [s for s in trace.device_spans if (s.device, s.stream) == lane and s.duration]
        extent = max(s.end for s in spans) - min(s.start for s in spans) if spans else 0
        assert time + sum(end - start for start, end in metrics.gaps[lane]) == extent
    assert all(time <= metrics.device_makespan for time in metrics.engine_busy.values())
    assert all(time <= metrics.makespan for time in metrics.host.values())


@given(any_trace(), st.randoms())
def test_the_order_of_the_list_does_not_matter(trace: Trace, random: Random) -> None:
    mixed = list(trace.spans)
    random.shuffle(mixed)
    assert measure(Trace(mixed)) == measure(trace)


# ------------------------------------------------------------------ windows in time
@given(trace=any_trace(), edge=ticks)
def test_two_windows_beside_each_other_add_up_to_the_whole(trace: Trace, edge: float) -> None:
    begin, end = -1.0, max([edge, *(span.end for span in trace)]) + 1
    parts = [window.metrics() for window in (trace.between(begin, edge), trace.between(edge, end))]
    whole = trace.metrics()
    assert sum(m.device_active for m in parts) == whole.device_active
    assert sum(m.overlap for m in parts) == whole.overlap


@given(any_trace(), st.lists(st.tuples(ticks, ticks).map(sorted), max_size=2), st.randoms())
def test_where_time_begins_changes_no_measure(
    trace: Trace, windows: list[list[float]], random: Random
) -> None:
    trace.about["windows"] = sorted(windows)
    moved = trace.from_first(random.sample(trace.spans, len(trace.spans) > 0))
    now, then = moved.metrics(), trace.metrics()
    assert (now.makespan, now.device_active, now.overlap) == (
        then.makespan,
        then.device_active,
        then.overlap,
    )


def test_spans_are_cut_and_what_lies_outside_is_forgotten() -> None:
    spans = [
        Span(0, "kernel", "before", 0, 2, "sim:0", 1),
        Span(1, "h2d", "into", 2, 6, "sim:0", 1, after=(0,), detail={"bytes": 4000}),
        Span(2, "d2h", "in", 6, 7, "sim:0", 1, after=(1,), detail={"bytes": 500}),
        Span(3, "call", "a moment", 8, 8, "sim:0"),
        Span(4, "kernel", "after", 8, 9, "sim:0", 1),
    ]
    window = Trace(spans, "CUPTI", "a GPU").between(np.int64(4), np.float32(8))
    (into, inside) = ((s.name, s.start, s.end, s.after) for s in window)
    assert (into, inside) == (("into", 4, 6, ()), ("in", 6, 7, (1,)))
    assert (window.clock, window.device) == ("CUPTI", "a GPU")
    assert [s.detail["bytes"] for s in window] == [2000, 500]  # at the rate of the whole copy
    assert '"start": 4.0' in window.to_json()
    assert [s.name for s in Trace(spans).between(8, 9)] == ["a moment", "after"]


@pytest.mark.parametrize("times", [(3, 3), (4, 3), (0, float("nan"))])
def test_a_window_that_is_none_is_refused(times: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="the earlier one first"):
        Trace().between(*times)


def test_a_lane_of_your_own_is_in_no_number() -> None:
    trace = Trace([Span(0, "kernel", "k", 0, 9, "sim:0", 1)])
    drawn = trace.with_lane("mine", [(300, -50, "before and after")])
    assert drawn.metrics() == trace.metrics()
    assert agt.analyse(drawn).sums.ranges == ()
    assert "-50.00    350.00  mine      range   before and after" in drawn.table()


def test_devices_go_by_their_numbers() -> None:
    names = [f"sim:{n}" for n in range(12)]
    spans = [Span(i, "kernel", "k", 11 - i, 12, name, 1) for i, name in enumerate(names)]
    trace = Trace(spans[::-1])
    assert trace.devices == names == [lane.device for lane in lanes(trace, ["streams"])]
    told = [line.split()[0] for line in trace.table().splitlines() if "device busy" in line]
    assert told == names
