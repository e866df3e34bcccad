"""A trace, arranged as the window of Nsight Systems arranges it: to learn where to look, without it.

Names of rows and their order are those of the pictures in its User Guide, version 2023.4, sections "NVTX
Trace", "CUDA Trace" and "GPU Metrics" (https://docs.nvidia.com/nsight-systems/UserGuide/index.html). It is a
drawing, and no copy of its looks.
"""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from asyncgpu_tutor.traces.nvtx import DOMAIN
from asyncgpu_tutor.traces.pictures.style import INK, KIND_LOOKS, PAPER, QUIET, darker
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.lanes import packed
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS
from asyncgpu_tutor.traces.trace import Trace

_ROW = 0.34  # inches
_MEMORY = ("h2d", "d2h", "d2d", "memset")
_START_END = "Start & End"


@dataclass(frozen=True)
class Row:
    """One row of the window."""

    label: str  # empty for a row that continues the one above it, as spans in one would overlap
    depth: int  # how far it is indented
    spans: tuple[Span, ...] = ()  # what is drawn in it; empty for a heading
    # What sort of row it is: ``"ranges"``, ``"calls"``, ``"all"``, ``"kernels"``, ``"memory"``; or empty
    # for a heading.
    part: str = ""

    @property
    def number(self) -> int:
        """Its place in the order in which one reads, from 1; 0 for a heading. The host is first: it asks."""
        return _READ.index(self.part) + 1 if self.part else 0


_READ = ("ranges", "calls", "all", "kernels", "memory")


def window_rows(trace: Trace) -> list[Row]:
    """The rows that the profiler would show, from top to bottom; none without anything in it.

    Ranges have a row for each of their domains, and one below it for those that were started and ended, and
    are on no stack. Without any, there is a range for each operation, from the first of its calls to the
    last, which is the one that this package marks.
    """
    return [row for row in _rows(trace) if row.spans or not row.part]


def nsight_window(trace: Trace, *, title: str = "") -> Axes:
    """Draw a trace as the window of Nsight Systems arranges it; rows are numbered in reading order."""
    rows = window_rows(trace)
    _, ax = plt.subplots(figsize=(10, _ROW * (len(rows) + 2.5)), layout="constrained")
    begin = min((span.start for span in trace), default=0.0)
    end = max((span.end for span in trace), default=1.0)
    for y, row in enumerate(rows):
        if y % 2:
            ax.axhspan(y - 0.5, y + 0.5, color=PAPER, zorder=0, linewidth=0)
        for span in row.spans:
            _bar(ax, y, span, end - begin)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    margin = 0.01 * (end - begin)
    ax.set_xlim(begin - margin, end + margin)
    texts = [
        f"{'    ' * row.depth}{row.label}{f'  ({row.number})' if row.label and row.part else ''}"
        for row in rows
    ]
    ax.set_yticks(range(len(rows)), texts, fontsize=9, ha="left")
    ax.tick_params(axis="y", length=0, pad=180)
    for tick, row in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("normal" if row.part else "bold")
    ax.xaxis.tick_top()  # the window has its ruler above the rows
    ax.tick_params(axis="x", labelsize=8, colors=QUIET)
    ax.set_title(title, loc="left", fontsize=10, fontweight="bold")
    ax.set_title(f"µs, {trace.clock}", loc="right", fontsize=8, color=QUIET)
    for side in ("right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    shown = {span.kind for row in rows for span in row.spans}
    patches = [
        Patch(
            facecolor=KIND_LOOKS[kind].colour,
            edgecolor=darker(KIND_LOOKS[kind].colour),
            hatch=KIND_LOOKS[kind].hatch or None,
            label=words,
        )
        for kind, words in KIND_WORDS.items()
        if kind in shown
    ]
    ax.legend(
        handles=patches, loc="upper left", bbox_to_anchor=(0, 0), ncols=6, fontsize=8, frameon=False
    )
    return ax


def _rows(trace: Trace) -> Iterator[Row]:
    yield Row("Processes (1)", 0)
    yield Row("python", 1)
    for name in sorted({span.device for span in trace.device_spans}):
        own = [span for span in trace.device_spans if span.device == name]
        yield Row(f"CUDA HW ({name})", 2)
        yield from _stacked("[All Streams]", 3, own, "all")
        for stream in sorted({s.stream for s in own if s.stream is not None}):
            mine = [span for span in own if span.stream == stream]
            # The window has CUDA's own numbers; ours count streams by their first use.
            number = mine[0].detail.get("cuda_stream", stream)
            yield Row(f"Stream {number}" if stream else "Default stream", 3)
            yield Row("Graphs", 4, tuple(s for s in mine if s.kind == "graph"), "kernels")
            yield Row("Kernels", 4, tuple(s for s in mine if s.kind == "kernel"), "kernels")
            yield Row("Memory", 4, tuple(s for s in mine if s.kind in _MEMORY), "memory")
    yield Row("Threads (1)", 1)
    yield Row("python", 2)
    ranges = list(_ranges(trace))
    for domain in dict.fromkeys(_domain(span) for span in ranges):
        mine = [span for span in ranges if _domain(span) == domain]
        by_number = [span for span in mine if span.detail.get("nested") is False]
        nested = [span for span in mine if span.detail.get("nested") is not False]
        yield from _stacked(domain, 3, nested, "ranges")
        yield from _stacked(_START_END, 4, by_number, "ranges")
    yield Row("CUDA API", 3, tuple(s for s in trace if s.kind in ("call", "wait")), "calls")


def _domain(span: Span) -> str:
    return str(span.detail.get("domain") or "NVTX")


def _stacked(label: str, depth: int, spans: Iterable[Span], part: str) -> Iterator[Row]:
    """In as few rows as they need for none to cover another."""
    ordered = sorted(spans, key=lambda s: (s.start, -s.end))
    rows: dict[int, list[Span]] = {}
    for span, row in zip(ordered, packed(ordered), strict=True):
        rows.setdefault(row, []).append(span)
    for number, found in sorted(rows.items()):
        yield Row("" if number else label, depth, tuple(found), part)


def _ranges(trace: Trace) -> Iterator[Span]:
    marked = [span for span in trace if span.kind == "range"]
    if marked:
        yield from marked
        return
    calls: dict[int, list[Span]] = {}
    for span in trace:
        if span.kind == "call" and span.op is not None:
            calls.setdefault(span.op, []).append(span)
    for spans in calls.values():
        first, last = spans[0], max(spans, key=lambda span: span.end)
        detail = {"domain": DOMAIN, "nested": True}
        yield Span(
            first.id, "range", first.label, first.start, last.end, first.device, detail=detail
        )


def _bar(ax: Axes, y: int, span: Span, length: float) -> None:
    look = KIND_LOOKS[span.kind]
    ax.broken_barh(
        [(span.start, span.duration)],
        (y - 0.36, 0.72),
        facecolor=look.colour,
        edgecolor=darker(look.colour),
        hatch=look.hatch or None,
        linewidth=0.8,
        zorder=3,
    )
    # About the width of its letters at this size.
    if span.duration > 0.0072 * length * len(span.name):
        ax.text(
            span.start + span.duration / 2,
            y,
            span.name,
            ha="center",
            va="center",
            fontsize=7,
            color=INK,
            zorder=4,
            bbox={"facecolor": look.colour, "edgecolor": "none", "pad": 0.6},
        )
