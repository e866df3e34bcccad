"""A timeline that is ready to be drawn, and what is said on it. It knows nothing of how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from asyncgpu_tutor.traces.pictures.alternative_text import duration
from asyncgpu_tutor.traces.pictures.layout import Arrow, Bar, Layout, arrange
from asyncgpu_tutor.traces.spans import Metrics, SpanKind
from asyncgpu_tutor.traces.spans.lanes import Group
from asyncgpu_tutor.traces.spans.notebook_output import NOTHING
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, clock_words, device_words

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

MOST_ARROWS = 400


@dataclass(frozen=True)
class Panel:
    """One timeline, ready to be drawn."""

    trace: Trace
    layout: Layout
    title: str
    # Ids of the spans that stand out; None if all are equal.
    highlight: frozenset[int] | None
    metrics: Metrics
    lanes: tuple[Group, ...]  # none where `layout` does not come from `arrange`

    def whole(self) -> Panel:
        """The same, with nothing merged; see `arrange`."""
        if not self.lanes:
            return self
        layout = arrange(self.trace, self.lanes, columns=0)
        layout.begin, layout.end = self.layout.begin, self.layout.end
        return replace(self, layout=layout)

    @property
    def height(self) -> float:
        """Of its lanes, in units of one."""
        return max(self.layout.height, 2.0)

    @cached_property
    def arrows(self) -> list[Arrow]:
        """Arrows from a stream to one that waits for it; if something stands out, those that join it."""
        found = self.layout.arrows
        if self.highlight is not None:
            out = self.highlight
            found = [a for a in found if {a.before.span.id, a.after.span.id} <= out]
        return found[:MOST_ARROWS]

    @property
    def said(self) -> str:
        """The words shown if there are no bars; else empty."""
        if self.layout.bars:
            return ""
        return "Nothing on these lanes." if self.trace.spans else NOTHING

    def state(self, bar: Bar) -> str:
        """Say in a word of CSS how a bar looks among the others; empty where all are equal."""
        if self.highlight is None:
            return ""
        return "faded" if self.highlight.isdisjoint(bar.ids) else "out"

    def facts(self) -> list[str]:
        """The line below the title, in parts: the first is the clock, and the last may go."""
        parts = [clock_words(self.trace.clock)]
        if self.trace.device:
            parts.append(device_words(self.trace.device))
        if self.trace.spans:
            parts.append(duration(self.metrics.makespan))
            if len(self.metrics.stream_busy) > 1:
                part = f"{self.metrics.overlap_fraction:.0%} of the busy time"
                parts.append(f"streams overlap {part}" if self.metrics.overlap else "no overlap")
        return parts

    @property
    def axis(self) -> tuple[str, str, float]:
        """Name of the axis, its unit, and how many us are one of it."""
        unit, factor = ("ms", 1000.0) if self.layout.end >= 10_000 else ("\u00b5s", 1.0)
        clock = self.trace.clock
        name = "simulated time" if clock == "simulated" else f"time by {clock}"
        return f"{name} ({unit})", unit, factor


Mark = SpanKind | Literal["room", "event"]


def legend_items(panels: Sequence[Panel]) -> Iterator[tuple[Mark, str]]:
    """Items of the legend of some panels, in words: no more than is in the picture."""
    kinds = {bar.span.kind for panel in panels for bar in panel.layout.bars}
    for kind, words in KIND_WORDS.items():
        if kind in kinds:
            yield kind, words
    if any(bar.waiting for panel in panels for bar in panel.layout.bars):
        yield "room", "waits for room"
    if any(panel.arrows for panel in panels):
        yield "event", "waits for an event"
