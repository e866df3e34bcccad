"""The places of bars, labels and arrows. Times in us, heights in units of one lane."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from asyncgpu_tutor.traces.spans.lanes import Lane, LaneGroup, lanes, rows
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, SpanKind, grouped

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

_ROW = 0.62  # height of a row where a lane has several
_TALLEST = 5.0  # a lane's height at most; its rows get thinner then
_HEADER = 0.8  # the line that names a device
_BETWEEN = 0.25  # between two groups of lanes
_LEAD = 0.05  # of the device's work, before it
_SHORTEST = 1e-6  # us, of the axis: no clock tells less, and floats end
_MARGIN = 0.13  # above and below a bar, as a part of its row
_HEADS = 20.0  # pixels before a bar, for the heads of several arrows to it; half if there are two
_CROWDED = 3  # columns: thin bars that are less far apart are drawn as high as they are busy


@dataclass(frozen=True, slots=True)
class Bar:
    """A span on a lane. `y` counts downwards from the top."""

    span: Span
    lane: Lane
    y: float
    height: float
    # Of the spans that it stands for: several where each is too short to be seen. Its `span` then has the
    # first one's id, and the kind that most of their time is of.
    ids: tuple[int, ...]
    # What part of its time, or of its column's, is busy; 1 for a bar that is wide enough, or by itself.
    share: float = 1.0

    @property
    def number(self) -> int:
        """Number of spans it stands for."""
        return len(self.ids)

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.y + self.height

    @property
    def waiting(self) -> tuple[float, float] | None:
        """From when to when it waited for its first place, where that is known; not on an engine."""
        waited = self.lane.group == "streams" and self.span.waited_for_room
        return (self.span.start - waited, self.span.start) if waited else None

    @property
    def waits(self) -> Sequence[tuple[float, float]]:
        """When its kernel only waited; not on an engine."""
        return self.span.waits if self.lane.group == "streams" and self.number == 1 else ()

    @property
    def room(self) -> tuple[float, float]:
        """From when to when a name has room: the longest time for which its kernel works, or waits."""
        edges = [self.span.start, *(time for wait in self.waits for time in wait), self.span.end]
        return max(pairwise(edges), key=lambda pair: pair[1] - pair[0])

    @property
    def text(self) -> str:
        """The writing in it. An engine's bars say whose they are, unless no names stand above."""
        if self.number > 1:
            return f"{self.number:,} \u00d7"
        if self.lane.group == "engines" and self.span.stream is not None:
            if not self.lane.numbers:
                return str(self.span.detail.get("named", self.span.name))
            number = self.lane.numbers[self.span.device, self.span.stream]
            return "um" if number == UNIFIED_MEMORY else f"s{number}"
        return self.span.title


@dataclass(frozen=True)
class Band:
    """The background of a lane, and its label."""

    label: str
    y: float
    height: float
    shaded: bool


@dataclass(frozen=True)
class Arrow:
    """From the end of `before` to the start of `after`, which waits for its event."""

    before: Bar
    after: Bar
    # If several lead to one bar, its head is moved by so many pixels; it keeps to its lane if that is free.
    moved: float = 0.0
    free: bool = False

    @property
    def down(self) -> bool:
        """True if it leads downwards."""
        return self.before.y < self.after.y

    @property
    def points(self) -> list[tuple[float, float, float]]:
        """Corners of the line, each moved by some pixels; it mostly runs in the gap beside its last lane."""
        start = self.before.bottom if self.down else self.before.y
        end = self.after.y if self.down else self.after.bottom
        gap = self.after.height * _MARGIN / (1 - 2 * _MARGIN)
        turn = end - gap if self.down else end + gap
        left, right, moved = self.before.span.end, self.after.span.start, self.moved
        if self.free:
            start = turn = self.before.y + self.before.height / 2
        return [(left, start, 0.0), (left, turn, 0.0), (right, turn, moved), (right, end, moved)]


@dataclass
class TimelineLayout:
    """A timeline without its looks."""

    bars: list[Bar] = field(default_factory=list[Bar])
    bands: list[Band] = field(default_factory=list[Band])
    headers: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    separators: list[float] = field(default_factory=list[float])
    arrows: list[Arrow] = field(default_factory=list[Arrow])
    height: float = 0.0  # of everything, in units
    # `begin` and `end`: of the axis, in us.
    begin: float = 0.0
    end: float = 1.0
    late: float = 0.0  # us before the device works, if the axis begins there
    still: float = 0.0  # us before the first span, if the axis begins at 0 all the same


def arrange(
    trace: Trace, groups: Collection[LaneGroup], *, columns: int = 1000, whole: bool = True
) -> TimelineLayout:
    """Lay a trace out. Neighbours shorter than one of so many `columns` become one bar; with 0, none.

    Where the host needs most of the time before the device works at all, the axis begins with the device's
    work, unless the `whole` is wanted.
    """
    layout = TimelineLayout()
    begin = min((s.start for s in trace), default=0.0)
    end = max((s.end for s in trace), default=0.0)
    works = min((s.start for s in trace.device_spans), default=begin)
    late = not whole and works - begin > (end - begin) / 2
    if late:
        layout.late, begin = works - begin, works - _LEAD * (end - works)
    finest = (end - begin) / columns if columns else 0.0
    several = len({span.device for span in trace.device_spans}) > 1
    before: Lane | None = None
    for number, lane in enumerate(lanes(trace, groups)):
        if before is not None and (lane.group, lane.device) != (before.group, before.device):
            layout.height += _BETWEEN
            layout.separators.append(layout.height - _BETWEEN / 2)
        if several and lane.device and (before is None or lane.device != before.device):
            layout.headers.append((lane.device, layout.height + _HEADER / 2))
            layout.height += _HEADER
        in_row: dict[int, list[Span]] = {}
        for span, index in zip(lane.spans, rows(lane), strict=True):
            in_row.setdefault(index, []).append(span)
        total = 1.0 if len(in_row) == 1 else min(len(in_row) * _ROW, _TALLEST)
        size = total / len(in_row)
        for index, spans in in_row.items():
            layout.bars += bars(spans, lane, layout.height + index * size, size, finest)
        layout.bands.append(Band(lane.name, layout.height, total, number % 2 == 0))
        layout.height += total
        before = lane
    layout.bars = [bar for bar in layout.bars if bar.span.end >= begin]
    if layout.bars:
        layout.begin = min(bar.span.start for bar in layout.bars)
        layout.end = max(bar.span.end for bar in layout.bars)
        # The axis begins at 0, where the recording began, unless that would be a fifth of the picture.
        if 0 < layout.begin < (layout.end - layout.begin) / 4:
            layout.begin = 0.0
        layout.begin = begin if late else layout.begin
        if layout.end - layout.begin < _SHORTEST:
            layout.end = layout.begin + 1.0
    layout.arrows = _arrows(layout.bars)
    return layout


def bars(spans: Iterable[Span], lane: Lane, y: float, tall: float, finest: float) -> Iterator[Bar]:
    """The bars of one row; those shorter than the `finest` time, in us, are put together, and get a share."""
    y, height = y + _MARGIN * tall, tall * (1 - 2 * _MARGIN)
    found: list[Bar] = []
    for stretch in merged(spans, finest):
        span, busy = stretch[0], dict[SpanKind, float]()
        for one in stretch:
            busy[one.kind] = busy.get(one.kind, 0.0) + one.end - one.start
        if len(stretch) > 1:
            kind, end = max(busy, key=lambda kind: busy[kind]), max(one.end for one in stretch)
            span = replace(span, kind=kind, end=end, after=())
        share = min(1.0, sum(busy.values()) / max(span.duration, finest, _SHORTEST))
        thin = len(stretch) > 1 or span.duration < finest
        ids = tuple(one.id for one in stretch)
        found.append(Bar(span, lane, y, height, ids, share if thin else 1.0))
    for i, bar in enumerate(found):
        apart = (b.span.start - a.span.end for a, b in pairwise(found[max(i - 1, 0) : i + 2]))
        crowded = min(apart, default=inf) < _CROWDED * finest
        yield bar if crowded or bar.share == 1 else replace(bar, share=1.0)


def merged(spans: Iterable[Span], pixel: float) -> Iterator[list[Span]]:
    """The spans of a row, by start, in stretches of neighbours shorter than a `pixel`, and less apart."""
    stretch: list[Span] = []
    first = last = 0.0
    for span in spans:  # of a million, so each step counts
        start, end = span.start, span.end
        if stretch and (end - start >= pixel or last - first >= pixel or start - last >= pixel):
            yield stretch
            stretch = []
        if not stretch:
            first = last = start
        last = max(last, end)
        stretch.append(span)
    if stretch:
        yield stretch


def _arrows(bars: list[Bar]) -> list[Arrow]:
    """From stream to stream, without events that add nothing to what a stream has waited for already."""
    drawn = {bar.span.id: bar for bar in bars if bar.lane.group == "streams" and bar.number == 1}
    found: list[Arrow] = []
    waited: dict[tuple[str, str, str, str], int] = {}
    for _, bar in sorted(drawn.items()):
        for number in sorted(drawn.keys() & set(bar.span.after), reverse=True):
            one, other = drawn[number].lane, bar.lane
            lanes_of = one.device, one.name, other.device, other.name
            if one is not other and number > waited.get(lanes_of, -1):
                waited[lanes_of] = number
                found.append(Arrow(drawn[number], bar))
    return found


def apart(arrows: Sequence[Arrow], bars: Sequence[Bar]) -> list[Arrow]:
    """The same arrows; those that lead to one bar from one side get heads of their own, the nearest first."""
    nearest_first = sorted(arrows, key=lambda arrow: abs(arrow.after.y - arrow.before.y))
    into = grouped(nearest_first, lambda arrow: (arrow.after.span.id, arrow.down))
    found: list[Arrow] = []
    for several in into.values():
        last = len(several) - 1
        for i, arrow in enumerate(several):
            moved = (i - last) * _HEADS / max(2, last)
            free = last > 0 and _is_free(arrow, bars)
            found.append(replace(arrow, moved=moved, free=free))
    return found


def _is_free(arrow: Arrow, bars: Sequence[Bar]) -> bool:
    """Nothing is in the way along the lane that it leaves, nor across those between."""
    one, left, right = arrow.before, arrow.before.span.end, arrow.after.span.start
    top, bottom = sorted((one.y, arrow.after.y))
    return not any(
        (bar.y == one.y and bar.span.start < right and bar.span.end > left)
        or (top < bar.y < bottom and bar.span.start < right < bar.span.end)
        for bar in bars
    )
