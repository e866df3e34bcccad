"""A timeline that is ready to be drawn, and what is said on it. It knows nothing of how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from asyncgpu_tutor.traces.pictures.alternative_text import duration
from asyncgpu_tutor.traces.pictures.layout import Arrow, ArrowKind, Bar, Layout, arrange
from asyncgpu_tutor.traces.pictures.style import KIND_LOOKS, OP_COLOURS, UNOWNED, Look
from asyncgpu_tutor.traces.spans import DEVICE_KINDS, Metrics, SpanKind
from asyncgpu_tutor.traces.spans.lanes import Group
from asyncgpu_tutor.traces.spans.notebook_output import NOTHING
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, clock_words, device_words
from asyncgpu_tutor.traces.trace import Trace

MOST_ARROWS = 400

ARROW_WORDS: Mapping[ArrowKind, str] = {
    "event": "waits for an event",
    "launch": "call enqueues",
    "sync": "ends a wait",
}


@dataclass(frozen=True)
class Panel:
    """One timeline, ready to be drawn."""

    trace: Trace
    layout: Layout
    title: str
    dependencies: bool | Literal["all"]
    color_by: Literal["kind", "op"]
    # Ids of the spans that stand out; None if all are equal.
    highlight: frozenset[int] | None
    metrics: Metrics
    lanes: tuple[Group, ...]
    window: tuple[float, float] | None

    def whole(self) -> Panel:
        """The same, with nothing merged; see `arrange`."""
        layout = arrange(self.trace, self.lanes, window=self.window, columns=0)
        layout.begin, layout.end = self.layout.begin, self.layout.end
        return replace(self, layout=layout)

    @property
    def height(self) -> float:
        """Of its lanes, in units of one."""
        return max(self.layout.height, 2.0)

    @cached_property
    def arrows(self) -> list[Arrow]:
        """Those that were asked for, and of these the ones that join what stands out."""
        if not self.dependencies:
            return []
        wanted = get_args(ArrowKind) if self.dependencies == "all" else ("event",)
        found = [arrow for arrow in self.layout.arrows if arrow.kind in wanted]
        if self.highlight is not None:
            out = self.highlight
            found = [a for a in found if {a.before.span.id, a.after.span.id} <= out]
        return found[:MOST_ARROWS]

    @property
    def said(self) -> str:
        """What is in the place of bars where there are none; else empty."""
        if self.layout.bars:
            return ""
        return "Nothing on these lanes." if self.trace.spans else NOTHING

    def faded(self, bar: Bar) -> bool:
        """Whether others stand out, and this one does not."""
        return self.highlight is not None and bar.span.id not in self.highlight

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

    def look(self, bar: Bar) -> Look:
        """Colour and pattern of a bar."""
        kind = KIND_LOOKS[bar.span.kind]
        if self.color_by == "kind" or not bar.span.on_device:
            return kind
        return Look(self.op_colour(bar.span.op), kind.hatch)

    def text(self, bar: Bar) -> str:
        """What is written in a bar: with the submission's number where the colour stands for it."""
        op = bar.span.op
        numbered = self.color_by == "op" and bar.span.on_device and op is not None
        return f"#{op} {bar.text}" if numbered else bar.text

    def op_colour(self, op: int | None) -> str:
        """Colour of a submission: in the order of their numbers, from the start after the last."""
        return UNOWNED if op is None else OP_COLOURS[self.ops.index(op) % len(OP_COLOURS)]

    @cached_property
    def ops(self) -> list[int]:
        """Numbers of the submissions that did device work."""
        return sorted({s.op for s in self.trace.device_spans if s.op is not None})


class LegendItem(NamedTuple):
    """A line of a legend: a box, an arrow, or else the mark of what waits for room."""

    words: str
    look: Look | None = None  # of a box
    kind: SpanKind | None = None  # whose look that is; None for a submission's
    arrow: ArrowKind | None = None


def legend_items(panels: Sequence[Panel]) -> Iterator[LegendItem]:
    """What is in the legend of some panels: no more than is in the picture."""
    kinds = {bar.span.kind for panel in panels for bar in panel.layout.bars}
    by_op = [panel for panel in panels if panel.color_by == "op"]
    for kind, words in KIND_WORDS.items():
        if kind in kinds:
            own = KIND_LOOKS[kind]
            plain = by_op and kind in DEVICE_KINDS  # its pattern alone tells it
            yield LegendItem(words, Look("#FFFFFF", own.hatch) if plain else own, kind)
    for panel in by_op[:1]:
        labels = {s.op: s.label for s in panel.trace.device_spans if s.label}
        for op in panel.ops[: len(OP_COLOURS)]:
            words = f"#{op} {labels.get(op, '')}".strip()
            yield LegendItem(words, Look(panel.op_colour(op)))
    if any(bar.waiting for panel in panels for bar in panel.layout.bars):
        yield LegendItem("waits for room")
    drawn = {arrow.kind for panel in panels for arrow in panel.arrows}
    for kind, words in ARROW_WORDS.items():
        if kind in drawn:
            yield LegendItem(words, arrow=kind)
