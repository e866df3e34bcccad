"""What is asked for often, by bisection, is what a walk through all intervals finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.traces.spans.intervals import common, union, within

TIMES = st.integers(0, 40).map(float)


@given(st.lists(st.tuples(TIMES, TIMES)), TIMES, TIMES)
def test_a_stretch_is_what_both_have(
    intervals: list[tuple[float, float]], start: float, end: float
) -> None:
    disjoint = union(intervals)

    assert within(disjoint, start, end) == common(disjoint, union([(start, end)]))
