"""What is below a pixel is put together, and nothing is lost by it."""

from hypothesis import given
from hypothesis import strategies as st

from asyncgpu_tutor.traces.pictures.layout import bars, merged
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.lanes import Lane

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
    assert [span for stretch in found for span in stretch] == spans
    assert all([span] in found for span in spans if span.duration >= pixel)  # it is seen as itself
    whole = spans[-1].end - spans[0].start if spans else 0.0
    assert len(found) <= 2 * whole / pixel + 2


def shares(us: float, every: float, number: int = 200) -> set[float]:
    """Of bars that stand for spans of so many us, in columns of 1 us."""
    spans = row([(every - us, us, "kernel")] * number)
    found = bars(spans, Lane("streams", "sim:0", "stream 1", tuple(spans)), 0.0, 1.0, 1.0)
    return {round(bar.share, 2) for bar in found}


def test_a_row_of_short_spans_looks_as_busy_as_it_is() -> None:
    assert max(shares(0.004, 0.1)) <= 0.05
    assert max(shares(0.09, 0.1)) > 0.9
    assert shares(0.01, 1.5) == {0.01}  # apart by more than a column, and still a crowd
    assert shares(2.0, 2.5) == shares(0.01, 10.0) == {1.0}  # to be seen by themselves


def test_the_kind_is_that_of_most_of_the_time() -> None:
    spans = row([(0, 0.1, "h2d"), (0, 0.3, "kernel"), (0, 0.1, "h2d")])
    (bar,) = bars(spans, Lane("streams", "sim:0", "stream 1", tuple(spans)), 0.0, 1.0, 1.0)
    assert (bar.span.kind, bar.number, bar.span.start, bar.span.end) == ("kernel", 3, 0.0, 0.5)
