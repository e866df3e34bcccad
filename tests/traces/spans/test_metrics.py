"""The numbers of a trace: definitions by example, identities by property."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.traces.spans import Span, SpanKind, SpanLog, measure
from asyncgpu_tutor.traces.trace import Trace

DEVICE: tuple[SpanKind, ...] = ("kernel", "h2d", "d2h", "d2d", "memset")
HOST: tuple[SpanKind, ...] = ("call", "wait", "work", "range")

# Multiples of 1/8 us, so that sums are exact and identities need no tolerance.
ticks = st.integers(0, 400).map(lambda n: n / 8)


@st.composite
def any_trace(draw: st.DrawFn) -> Trace:
    """Spans at any time, after anything: nothing about them fits together."""
    spans: list[Span] = []
    for number in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(DEVICE + HOST))
        start = draw(ticks)
        spans.append(
            Span(
                id=number,
                kind=kind,
                name=draw(st.sampled_from("abc")),
                start=start,
                end=start + draw(ticks),
                device=draw(st.sampled_from(("sim:0", "sim:1"))),
                stream=draw(st.integers(0, 2)) if kind in DEVICE else None,
                after=tuple(draw(st.lists(st.integers(0, 15), max_size=3))),
            )
        )
    return Trace(spans)


@st.composite
def queued_trace(draw: st.DrawFn, slack: bool = True) -> Trace:
    """What a device may record: calls in turn, streams as queues, events between them."""
    log = SpanLog("sim:0")
    ends: dict[int, float] = {}
    now = draw(ticks)
    for _ in range(draw(st.integers(1, 8))):
        call = log.draft("call", "launch", None)
        begin, now = now, now + draw(ticks) / 8
        ends[call.id] = log.finish(call, begin, now).end
        stream = draw(st.integers(0, 2))
        for other in range(3):
            if draw(st.booleans()):
                log.wait(stream, log.heads(other))
        kind = draw(st.sampled_from(DEVICE))
        work = log.draft(kind, kind, stream, call=call.id)
        start = max(ends[i] for i in work.after) + (draw(st.sampled_from((0, 2.5))) if slack else 0)
        ends[work.id] = log.finish(work, start, start + draw(ticks)).end
    return Trace(log.spans)


def kernel(number: int, stream: int, start: float, end: float, after: tuple[int, ...] = ()) -> Span:
    return Span(number, "kernel", f"k{number}", start, end, "sim:0", stream, after=after)


def call(number: int, start: float, end: float) -> Span:
    return Span(number, "call", f"c{number}", start, end, "sim:0")


# ------------------------------------------------------------------ by example
def test_an_empty_trace_has_zeros() -> None:
    metrics = measure(Trace())
    assert metrics.makespan == metrics.device_makespan == metrics.serial == metrics.overlap == 0
    assert metrics.device_active == metrics.device_idle == metrics.overlap_fraction == 0
    assert metrics.max_concurrency == 0
    assert metrics.speedup == 1
    assert metrics.critical_path == ()


def test_two_streams_that_overlap_by_half() -> None:
    metrics = measure(Trace([call(0, 0, 5), kernel(1, 1, 5, 15), kernel(2, 2, 10, 20)]))
    assert metrics.makespan == 20
    assert metrics.device_makespan == 15
    assert metrics.serial == 20
    assert metrics.speedup == pytest.approx(20 / 15)
    assert metrics.concurrency == (0, 10, 5)
    assert metrics.overlap == 5
    assert metrics.overlap_fraction == pytest.approx(1 / 3)
    assert metrics.max_concurrency == 2
    assert metrics.stream_busy == {("sim:0", 1): 10, ("sim:0", 2): 10}
    assert metrics.engine_busy == {("sim:0", "compute"): 15}
    assert metrics.host == {"call": 5, "wait": 0, "work": 0}


def test_spans_that_touch_neither_overlap_nor_leave_a_gap() -> None:
    assert measure(Trace([kernel(0, 1, 0, 10), kernel(1, 2, 10, 20)])).max_concurrency == 1
    assert measure(Trace([kernel(0, 1, 0, 5), kernel(1, 1, 5, 8)])).gaps == {("sim:0", 1): ()}
    # Measured times may jitter so that two spans of one queue seem to overlap; it is still one stream.
    metrics = measure(Trace([kernel(0, 1, 0, 10), kernel(1, 1, 9, 20)]))
    assert (metrics.overlap, metrics.stream_busy["sim:0", 1]) == (0, 20)


def test_streams_of_two_devices_are_two_streams() -> None:
    a, b = kernel(0, 1, 0, 10), replace(kernel(1, 1, 0, 10), device="sim:1")
    metrics = measure(Trace([a, b]))
    assert metrics.overlap == 10
    assert set(metrics.stream_busy) == {("sim:0", 1), ("sim:1", 1)}


def test_gaps_lie_within_the_stream_and_idle_within_the_device() -> None:
    spans = [kernel(0, 1, 0, 5), kernel(1, 1, 8, 10), kernel(2, 2, 9, 12), kernel(3, 2, 20, 21)]
    metrics = measure(Trace(spans))
    assert metrics.gaps == {("sim:0", 1): ((5, 8),), ("sim:0", 2): ((12, 20),)}
    assert metrics.device_idle == 3 + 8


def test_each_copy_direction_is_an_engine_and_fills_are_compute() -> None:
    kinds: tuple[SpanKind, ...] = ("h2d", "d2h", "d2d", "memset", "kernel")
    spans = [Span(i, kind, kind, i, i + 1, "sim:0", 1) for i, kind in enumerate(kinds)]
    busy = measure(Trace(spans)).engine_busy
    assert list(busy.items()) == [
        (("sim:0", "h2d"), 1),
        (("sim:0", "d2h"), 1),
        (("sim:0", "compute"), 3),
    ]


def test_a_range_counts_for_the_makespan_and_for_nothing_else() -> None:
    trace = Trace([Span(0, "range", "all", 0, 100, "sim:0"), kernel(1, 1, 10, 20)])
    metrics = measure(trace)
    assert metrics.makespan == 100
    assert sum(metrics.host.values()) == 0
    assert [span.id for span in metrics.critical_spans] == [1]


# ------------------------------------------------------------------ the critical path
def test_the_path_follows_the_later_of_two_predecessors() -> None:
    spans = [
        call(0, 0, 2),
        kernel(1, 1, 2, 10, (0,)),
        call(2, 2, 4),
        kernel(3, 2, 4, 30, (2,)),
        call(4, 4, 6),
        kernel(5, 1, 31, 40, (1, 3, 4)),
    ]
    path = measure(Trace(spans)).critical_path
    assert [step.span.id for step in path] == [0, 2, 3, 5]
    assert [step.idle for step in path] == [0, 0, 0, 1]


def test_where_the_host_is_the_bottleneck_the_path_is_its_calls() -> None:
    spans: list[Span] = []
    for i in range(0, 8, 2):
        spans += [
            call(i, 5.0 * i, 5.0 * i + 10),
            kernel(i + 1, i, 5.0 * i + 10, 5.0 * i + 11, (i,)),
        ]
    path = measure(Trace(spans)).critical_path
    assert [step.span.kind for step in path] == ["call"] * 4 + ["kernel"]


def test_a_wait_counts_from_the_end_of_what_it_waited_for() -> None:
    spans = [
        call(0, 0, 5),
        kernel(1, 1, 5, 50, (0,)),
        Span(2, "wait", "sync", 5, 53, "sim:0", after=(1,)),
        call(3, 53, 58),
        kernel(4, 1, 58, 60, (3,)),
    ]
    path = measure(Trace(spans)).critical_path
    assert [(s.span.id, s.start, s.end) for s in path] == [
        (0, 0, 5),
        (1, 5, 50),
        (2, 50, 53),
        (3, 53, 58),
        (4, 58, 60),
    ]


def test_a_wait_that_does_not_say_for_what_waited_for_what_ended_in_it() -> None:
    spans = [call(0, 0, 5), kernel(1, 1, 5, 50, (0,)), Span(2, "wait", "sync", 5, 53, "sim:0")]
    assert [span.id for span in measure(Trace(spans)).critical_spans] == [0, 1, 2]


def test_a_call_counts_until_what_it_enqueued_begins() -> None:
    # A real GPU may start a kernel before the call that launched it has returned.
    path = measure(Trace([call(0, 0, 5), kernel(1, 1, 3, 10, (0,))])).critical_path
    assert [(s.span.id, s.start, s.end, s.idle) for s in path] == [(0, 0, 3, 0), (1, 3, 10, 0)]


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
        length = sum(step.end - step.start for step in path) + metrics.critical_idle
        assert length == path[-1].end - path[0].start <= metrics.makespan
        assert path[-1].end == max(s.end for s in trace if s.kind != "range")


@given(queued_trace(slack=False))
def test_a_program_whose_every_span_starts_as_soon_as_it_can_has_no_idle_time_on_its_path(
    trace: Trace,
) -> None:
    metrics = measure(trace)
    assert metrics.critical_idle == 0
    first = metrics.critical_path[0].span
    assert first.start == min(span.start for span in trace)


# ------------------------------------------------------------------ identities
@given(st.one_of(any_trace(), queued_trace()))
def test_times_add_up(trace: Trace) -> None:
    metrics = measure(trace)
    assert sum(metrics.concurrency) == metrics.device_makespan <= metrics.makespan
    assert metrics.device_active + metrics.device_idle == metrics.device_makespan
    busy = sum(metrics.stream_busy.values())
    assert sum(k * time for k, time in enumerate(metrics.concurrency)) == busy <= metrics.serial
    assert 0 <= metrics.overlap <= metrics.device_active
    assert metrics.max_concurrency <= len(metrics.stream_busy)
    for lane, time in metrics.stream_busy.items():
        assert time <= metrics.device_makespan
        spans = [s for s in trace.device_spans if (s.device, s.stream) == lane and s.duration]
        extent = max(s.end for s in spans) - min(s.start for s in spans) if spans else 0
        assert time + sum(end - start for start, end in metrics.gaps[lane]) == extent
    assert all(time <= metrics.device_makespan for time in metrics.engine_busy.values())
    assert all(time <= metrics.makespan for time in metrics.host.values())


@given(queued_trace())
def test_the_speedup_lies_between_one_without_idle_time_and_the_number_of_streams(
    trace: Trace,
) -> None:
    metrics = measure(trace)
    assert metrics.speedup <= max(1, len(metrics.stream_busy))
    assert metrics.serial >= metrics.device_active


@given(st.one_of(any_trace(), queued_trace()), st.integers(-1000, 1000))
def test_shifting_time_changes_no_duration(trace: Trace, shift: int) -> None:
    moved = Trace([replace(s, start=s.start + shift, end=s.end + shift) for s in trace])
    before, after = measure(trace), measure(moved)
    for name in ("makespan", "device_makespan", "serial", "stream_busy", "engine_busy", "host"):
        assert getattr(before, name) == getattr(after, name)
    assert before.concurrency == after.concurrency
    assert [s.span.id for s in before.critical_path] == [s.span.id for s in after.critical_path]
    assert {
        lane: [(start + shift, end + shift) for start, end in found]
        for lane, found in before.gaps.items()
    } == {lane: list(found) for lane, found in after.gaps.items()}


@given(any_trace(), st.randoms())
def test_the_order_of_the_list_does_not_matter(trace: Trace, random: Random) -> None:
    mixed = list(trace.spans)
    random.shuffle(mixed)
    assert measure(Trace(mixed)) == measure(trace)
