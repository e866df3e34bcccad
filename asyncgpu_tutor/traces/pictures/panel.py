"""A timeline that is ready to be drawn, and what is said on it. It knows nothing of how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from asyncgpu_tutor.traces.pictures.alternative_text import duration
from asyncgpu_tutor.traces.pictures.layout import Arrow, Bar, TimelineLayout, apart, arrange
from asyncgpu_tutor.traces.spans import Metrics, Span, SpanKind, vocabulary
from asyncgpu_tutor.traces.spans.lanes import LaneGroup, lane_name, stream_name, stream_numbers
from asyncgpu_tutor.traces.spans.notebook_output import NOTHING, damage_of

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

MOST_ARROWS = 400
_MOST_NAMES = 4  # of what a span waited for
LOW = "thin bars: groups, as high as they are busy"


@dataclass(frozen=True)
class Panel:
    """One timeline, ready to be drawn."""

    trace: Trace
    layout: TimelineLayout
    title: str
    # Ids of the spans that stand out; None if all are equal.
    highlight: frozenset[int] | None
    metrics: Metrics
    lanes: tuple[LaneGroup, ...]

    def whole(self) -> Panel:
        """The same, with nothing merged; see `arrange`."""
        all_of_it = arrange(self.trace, self.lanes, columns=0)
        layout = replace(self.layout, bars=all_of_it.bars, arrows=all_of_it.arrows)
        return replace(self, layout=layout)

    @property
    def height(self) -> float:
        """Of its lanes, in units of one."""
        return self.layout.height if self.layout.bars else 2.8  # room for what is said instead

    @cached_property
    def arrows(self) -> list[Arrow]:
        """Arrows from a stream to one that waits for it, first of all those that join what stands out."""
        return apart(sorted(self.layout.arrows, key=self.fades)[:MOST_ARROWS], self.layout.bars)

    def fades(self, arrow: Arrow) -> bool:
        """Tell whether others stand out, and not what this one joins."""
        ends = {arrow.before.span.id, arrow.after.span.id}
        return self.highlight is not None and not ends <= self.highlight

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
        parts = [vocabulary.clock_words(self.trace.clock)]
        if self.trace.device:
            parts.append(vocabulary.device_words(self.trace.device))
        parts += damage_of(self.trace.about)[:1]
        if self.trace.spans:
            late, still = self.layout.late, self.layout.still
            begins = f", the device begins after {duration(late)}" if late else ""
            begins += f", begins after {duration(still)}" if still else ""
            parts.append(duration(self.metrics.makespan) + begins)
            if len(self.metrics.stream_busy) > len(self.trace.devices):
                part = f"overlap {self.metrics.overlap_fraction:.0%} of the busy time"
                parts.append("streams " + (part if self.metrics.overlap else "don't overlap"))
            if any(bar.share < 1 for bar in self.layout.bars):
                parts.append(LOW)
        return parts

    @property
    def axis(self) -> tuple[str, float]:
        """Name of the axis, and how many us are one of its unit."""
        unit, factor = ("ms", 1000.0) if self.layout.end >= 10_000 else ("\u00b5s", 1.0)
        clock = self.trace.clock
        name = "simulated time" if clock == "simulated" else f"time by {clock}"
        return f"{name} ({unit})", factor


Mark = SpanKind | Literal["room", "hole", "event"]


def legend_items(panels: Sequence[Panel]) -> Iterator[tuple[Mark, str]]:
    """Items of the legend of some panels, in words: no more than is in the picture."""
    bars = [bar for panel in panels for bar in panel.layout.bars]
    spans = [bar.span for bar in bars if "lane" not in bar.span.detail]
    calls = all("sent" in span.detail for span in spans if span.kind == "range")
    for kind, words in vocabulary.KIND_WORDS.items():
        if any(span.kind == kind for span in spans):
            yield kind, "call of a worker" if kind == "range" and calls else words
    if any(bar.waiting for bar in bars):
        yield "room", "waits for room"
    if any(bar.waits for bar in bars):
        yield "hole", "kernel waits"
    if any(panel.arrows for panel in panels):
        yield "event", "waits for an event"


# ------------------------------------------------------------------ what appears when one points at a span
def tips(panel: Panel) -> Callable[[Bar], str]:
    """A function from a bar to lines: its name, when, how much, and what it waited for."""
    by_id = {span.id: span for span in panel.trace}
    numbers = stream_numbers(panel.trace)

    def tip(bar: Bar) -> str:
        span, stream = bar.span, ""
        if span.stream is not None:
            lane = lane_name(numbers[span.device, span.stream])
            stream = f", {lane} (number {span.stream} of {span.device})"
        when = f"{span.start:.1f} to {span.end:.1f} \u00b5s: {duration(span.duration)}"
        if bar.number > 1:
            many = f"{vocabulary.count(bar.number, 'span')}, most of it {vocabulary.KIND_WORDS[span.kind]}"
            return f"{many}\n{when}, busy for {bar.share:.0%} of that\nZoom in to see them."
        lines = [f"{span.name}: {vocabulary.KIND_WORDS[span.kind]}{stream}", when, *_more(span)]
        if span.waited_for_room:
            lines.append(f"waited {duration(span.waited_for_room)} for room on the device")
        if span.waits:
            lines.append(f"only waits for {duration(sum(b - a for a, b in span.waits))} of that")
        if span.op is not None:
            part = span.detail.get("named")
            inside = f", in it {part}" if part and part != span.label else ""
            lines.append(f"operation #{span.op} {span.label}".rstrip() + inside)
        elif span.label:
            lines.append(f"in the range {span.label}")
        before = [by_id[i] for i in span.after if i in by_id]
        if waited := [f"{one.name} ({stream_name(one, numbers)})" for one in before]:
            lines.append(f"after {vocabulary.some(waited, _MOST_NAMES)}")
        return "\n".join(lines)

    return tip


def _more(span: Span) -> list[str]:
    """The full name, bytes with the rate, grid and block."""
    detail = span.detail
    lines = [str(detail["full_name"])] if "full_name" in detail else []
    size = detail.get("bytes")
    if isinstance(size, int | float):
        rate = f", {size / span.duration / 1000:.1f} GB/s" if span.duration else ""
        lines.append(f"{size:,.0f} bytes{rate}")
    if "grid" in detail and "block" in detail:
        lines.append(f"grid {_dim(detail['grid'])}, block {_dim(detail['block'])}")
    return lines


def _dim(given: object) -> str:
    if not isinstance(given, list | tuple):
        return str(given)
    sizes = [str(size) for size in cast("list[object]", given)]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    return " x ".join(sizes)
