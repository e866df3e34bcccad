"""Traces side by side: what is the same is matched, and what is not has a name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

import asyncgpu_tutor as agt
from asyncgpu_tutor import Trace
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import measure

from .programs import recorded

RECORDING = "07_async_mlp"


def test_a_trace_is_like_itself() -> None:
    trace = recorded("02_streams_and_events")
    comparison = agt.compare(trace, trace, trace)
    assert comparison.same_work
    assert comparison.same_order
    assert comparison.titles == ("simulated (1)", "simulated (2)", "simulated (3)")
    assert [len(match) for match in comparison.matches] == [3] * len(trace.device_spans)
    assert all(d.factor == 1.0 and not d.sentence for d in comparison.differences)


def test_each_quantity_is_that_of_the_metrics() -> None:
    traces = [recorded("02_one_stream"), recorded("02_streams_and_events")]
    comparison = agt.compare(*traces)
    metrics = [measure(trace) for trace in traces]
    overlaps = tuple(100 * m.overlap_fraction for m in metrics)
    assert comparison["makespan"].values == tuple(m.makespan for m in metrics)
    assert comparison["overlap of streams"].values == overlaps
    assert comparison["streams at once"].values == tuple(m.max_concurrency for m in metrics)
    assert comparison["makespan"].factor == metrics[1].makespan / metrics[0].makespan
    durations = [[s.duration for s in t.find("relu")] for t in traces]
    assert comparison["kernel relu"].values == tuple(sum(d) / len(d) for d in durations)


def test_differences_are_told_in_words_and_small_ones_are_not() -> None:
    trace = recorded("01_sync_kernels")
    twice = Trace([replace(s, start=2 * s.start, end=2 * s.end) for s in trace], "CUPTI", "GPU")
    comparison = agt.compare(trace, twice, titles=["a", "b"])
    words = comparison["makespan"].sentence
    m = measure(trace).makespan
    assert words == f"makespan: {2 * m:.1f} µs in b, against {m:.1f} µs in a, 2.00 times."
    assert words in comparison.table()
    nearly = Trace([replace(s, end=s.end + 0.01) for s in trace], "CUPTI", "GPU")
    assert agt.compare(trace, nearly)["makespan"].sentence == ""


def test_what_one_of_them_lacks_is_listed() -> None:
    trace = recorded("01_sync_kernels")
    less = Trace([s for s in trace if s.name != "relu"], trace.clock, trace.device)
    comparison = agt.compare(trace, less, titles=["whole", "less"])
    assert not comparison.same_work
    assert [s.name for s in comparison.missing[0]] == ["relu"]
    assert comparison.missing[1] == ()
    assert "whole has 1 more (kernel relu)" in comparison.table()


def test_another_order_is_told() -> None:
    trace = recorded("01_sync_kernels")
    ids = [s.id for s in trace]
    mirrored = Trace(sorted((replace(s, id=ids[-1] - s.id) for s in trace), key=lambda s: s.id))
    comparison = agt.compare(trace, mirrored)
    assert comparison.same_work
    assert not comparison.same_order
    assert "not in the same order" in comparison.table()


def test_without_labels_in_one_of_them_kinds_and_names_are_matched_on_one_axis() -> None:
    trace = recorded(RECORDING)
    bare = Trace([replace(s, label="", op=None) for s in trace], "Nsight Systems", "GPU")
    assert agt.compare(trace, bare).same_work
    comparison = agt.compare(trace, Trace.load_recording(RECORDING))
    one, other = (panel.layout for panel in comparison.plot().panels)
    assert (one.begin, one.end) == (other.begin, other.end)
    assert one.end >= max(comparison["makespan"].values)


def test_wrong_calls_are_refused() -> None:
    trace = recorded("01_sync_kernels")
    with pytest.raises(UsageError, match="two traces or more, and was given 1"):
        agt.compare(trace)
    with pytest.raises(UsageError, match="one title for each trace: 2 traces, 1 titles"):
        agt.compare(trace, trace, titles=["a"])
    with pytest.raises(UsageError, match="one argument each, and got list"):
        agt.compare(cast(Any, [trace, trace]))
    with pytest.raises(UsageError, match="there is no difference 'speed'; there are: 'makespan'"):
        agt.compare(trace, trace)["speed"]
