"""What is below a pixel is put together, and nothing is lost by it; and stretches of intervals."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import common, union, within
from asyncgpu_tutor.traces.spans.merging import merged

PIECE = st.tuples(
    st.floats(0.0, 3.0), st.floats(0.0, 3.0), st.sampled_from(["kernel", "h2d", "d2h"])
)


def row(pieces: list[tuple[float, float, str]]) -> list[Span]:
    """Spans behind each other: the gap before each, its length, its kind."""
    spans: list[Span] = []
    now = 0.0
    for number, (gap, length, kind) in enumerate(pieces):
        spans.append(Span(number, kind, kind, now + gap, now + gap + length, "sim:0", 1))  # type: ignore[arg-type]
        now += gap + length
    return spans


@given(pieces=st.lists(PIECE, max_size=60), pixel=st.floats(0.01, 2.0))
def test_nothing_is_lost_and_no_picture_has_more_parts_than_it_can_show(
    pieces: list[tuple[float, float, str]], pixel: float
) -> None:
    spans = row(pieces)
    found = list(merged(spans, pixel))
    assert sum(stretch.count for stretch in found) == len(spans)
    busy: Counter[str] = Counter()
    for stretch in found:
        busy.update(stretch.busy)
    for kind in busy:
        told = math.fsum(s.duration for s in spans if s.kind == kind)
        assert busy[kind] == pytest.approx(told)
    for span in spans:
        assert any(s.start <= span.start and span.end <= s.end for s in found)
        if span.duration >= pixel:  # it is seen as itself
            (own,) = [s for s in found if s.first is span]
            assert own.count == 1
    whole = spans[-1].end - spans[0].start if spans else 0.0
    assert len(found) <= 2 * whole / pixel + 2


@given(pieces=st.lists(PIECE, max_size=20))
def test_at_no_size_of_a_pixel_all_stays_as_it_is(pieces: list[tuple[float, float, str]]) -> None:
    spans = row(pieces)
    assert [stretch.first for stretch in merged(spans, 0.0)] == spans


def test_the_kind_is_that_of_most_of_the_time() -> None:
    spans = row([(0, 0.1, "h2d"), (0, 0.3, "kernel"), (0, 0.1, "h2d")])
    (stretch,) = merged(spans, 1.0)
    assert (stretch.kind, stretch.count, stretch.start) == ("kernel", 3, 0.0)


TIMES = st.integers(0, 40).map(float)


@given(st.lists(st.tuples(TIMES, TIMES)), TIMES, TIMES)
def test_a_stretch_is_what_both_have(
    intervals: list[tuple[float, float]], start: float, end: float
) -> None:
    disjoint = union(intervals)

    assert within(disjoint, start, end) == common(disjoint, union([(start, end)]))
