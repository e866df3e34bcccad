"""Merging spans that are too short to be seen, so that a picture has no more parts than it can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from asyncgpu_tutor.traces.spans.span import Span


def merged(spans: Iterable[Span], pixel: float) -> Iterator[list[Span]]:
    """The spans of one row, with neighbours put together of which nobody could see the ends.

    What is shorter than a `pixel`, in us, and less apart, is put together, until the whole is that long. So
    in a picture of n pixels there are at most 2 n + 1 bars in a row whose spans do not overlap. Spans come
    by start; they may be a million, and one stretch at a time is kept.
    """
    stretch: list[Span] = []
    end = 0.0
    for span in spans:
        if stretch and (
            span.duration >= pixel or end - stretch[0].start >= pixel or span.start - end >= pixel
        ):
            yield stretch
            stretch = []
        end = max(end, span.end) if stretch else span.end
        stretch.append(span)
    if stretch:
        yield stretch
