"""Merging spans that are too short to be seen, so that a picture has no more parts than it can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from asyncgpu_tutor.traces.spans.span import Span, SpanKind


@dataclass(slots=True)
class Stretch:
    """A span, or several short ones behind each other, which are drawn as one bar."""

    first: Span  # the first of them; the only one, if `count` is 1
    end: float  # of the last of them to end, in us
    ids: list[int]  # of all of them
    # How long those of each kind take, in us.
    busy: dict[SpanKind, float] = field(default_factory=dict[SpanKind, float])

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def start(self) -> float:
        """In us."""
        return self.first.start

    @property
    def kind(self) -> SpanKind:
        """The kind that takes most of the time; of equals, the one that came first."""
        return max(self.busy, key=lambda kind: self.busy[kind])

    def add(self, span: Span) -> None:
        """One more, behind the others."""
        self.end = max(self.end, span.end)
        self.ids.append(span.id)
        self.busy[span.kind] = self.busy.get(span.kind, 0.0) + span.end - span.start


def merged(spans: Iterable[Span], pixel: float) -> Iterator[Stretch]:
    """The spans of one row, with neighbours put together of which nobody could see the ends.

    What is shorter than a `pixel`, in us, and less apart, is put together, until the whole is that long. So
    in a picture of n pixels there are at most 2 n + 1 bars in a row whose spans do not overlap. Spans come
    by start; they may be a million, and one stretch at a time is kept.
    """
    stretch: Stretch | None = None
    for span in spans:
        if (
            stretch is not None
            and span.end - span.start < pixel
            and stretch.end - stretch.first.start < pixel
            and span.start - stretch.end < pixel
        ):
            stretch.add(span)
            continue
        if stretch is not None:
            yield stretch
        stretch = Stretch(span, span.end, [span.id], {span.kind: span.duration})
    if stretch is not None:
        yield stretch
