"""A window in time: what lies in it, cut at its edges."""

from __future__ import annotations

import pytest
from hypothesis import given

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.trace import Trace

from .test_metrics import any_trace, ticks


@given(trace=any_trace(), edge=ticks)
def test_two_windows_beside_each_other_add_up_to_the_whole(trace: Trace, edge: float) -> None:
    begin, end = -1.0, max([edge, *(span.end for span in trace)]) + 1
    parts = [window.metrics() for window in (trace.between(begin, edge), trace.between(edge, end))]
    whole = trace.metrics()
    assert sum(m.device_active for m in parts) == whole.device_active
    assert sum(m.overlap for m in parts) == whole.overlap
    assert sum(m.serial for m in parts) == whole.serial


def test_spans_are_cut_and_what_lies_outside_is_forgotten() -> None:
    spans = [
        Span(0, "kernel", "before", 0, 2, "sim:0", 1),
        Span(1, "kernel", "into", 2, 6, "sim:0", 1, after=(0,)),
        Span(2, "kernel", "in", 6, 7, "sim:0", 1, after=(1,)),
        Span(3, "call", "a moment", 8, 8, "sim:0"),
        Span(4, "kernel", "after", 8, 9, "sim:0", 1),
    ]
    window = Trace(spans, "CUPTI", "a GPU").between(4, 8)
    assert [(s.name, s.start, s.end, s.after) for s in window] == [
        ("into", 4, 6, ()),
        ("in", 6, 7, (1,)),
    ]
    assert (window.clock, window.device) == ("CUPTI", "a GPU")
    assert [s.name for s in Trace(spans).between(8, 9)] == ["a moment", "after"]


@pytest.mark.parametrize("times", [(3, 3), (4, 3), (0, float("nan"))])
def test_a_window_that_is_none_is_refused(times: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="the earlier one first"):
        Trace().between(*times)
