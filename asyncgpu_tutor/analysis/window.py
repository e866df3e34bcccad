"""A trace, arranged as the window of Nsight Systems arranges it: to learn where to look, without it.

Names of rows and their order are those of the profiler's documentation, "Timeline View" and "CUDA Trace"
(https://docs.nvidia.com/nsight-systems/UserGuide/index.html). It is a drawing, and no copy of its looks.
"""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from asyncgpu_tutor.timeline.style import INK, KIND_LOOKS, PAPER, QUIET, darker
from asyncgpu_tutor.trace import Span, Trace

__all__ = ["Row", "nsight_window", "window_rows"]

_ROW = 0.34  # inches
_MEMORY = ("h2d", "d2h", "d2d", "memset")


@dataclass(frozen=True)
class Row:
    """One row of the window.

    Attributes
    ----------
    label : str
    depth : int
        How far it is indented.
    spans : tuple of Span
        What is drawn in it; empty for a heading.
    number : int
        Its place in the order in which one reads, from 1; 0 for a heading.
    """

    label: str
    depth: int
    spans: tuple[Span, ...] = ()
    number: int = 0


def window_rows(trace: Trace) -> list[Row]:
    """The rows that the profiler would show, from top to bottom.

    The row of NVTX has the trace's ranges or, without any, one for each operation: from the first of its
    calls to the last, which is the range that this package marks.
    """
    return list(_numbered(_rows(trace)))


def nsight_window(trace: Trace, *, width: float = 10.0) -> Axes:
    """Draw a trace as the window of Nsight Systems arranges it; rows are numbered in reading order."""
    rows = window_rows(trace)
    _, ax = plt.subplots(figsize=(width, _ROW * (len(rows) + 2.5)), layout="constrained")
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
        f"{'    ' * row.depth}{row.label}{f'  ({row.number})' if row.number else ''}"
        for row in rows
    ]
    ax.set_yticks(range(len(rows)), texts, fontsize=9, ha="left")
    ax.tick_params(axis="y", length=0, pad=180)
    for tick, row in zip(ax.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("normal" if row.spans else "bold")
    ax.xaxis.tick_top()  # the window has its ruler there
    ax.tick_params(axis="x", labelsize=8, colors=QUIET)
    ax.set_title(f"µs, {trace.clock}", loc="right", fontsize=8, color=QUIET)
    for side in ("right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    return ax


def _rows(trace: Trace) -> Iterator[Row]:
    yield Row("Processes", 0)
    yield Row("python", 1)
    devices = sorted({span.device for span in trace.device_spans})
    for name in devices:
        own = [span for span in trace.device_spans if span.device == name]
        yield Row(f"CUDA HW ({name})", 2)
        for stream in sorted({s.stream for s in own if s.stream is not None}):
            mine = [span for span in own if span.stream == stream]
            yield Row(f"Stream {stream}" if stream else "Default stream", 3)
            yield Row("Kernels", 4, tuple(s for s in mine if s.kind not in _MEMORY))
            yield Row("Memory", 4, tuple(s for s in mine if s.kind in _MEMORY))
    yield Row("Threads", 1)
    yield Row("python", 2)
    for spans in _packed(_ranges(trace)):
        yield Row("NVTX", 3, tuple(spans))
    yield Row("CUDA API", 3, tuple(s for s in trace if s.kind in ("call", "wait")))


def _numbered(rows: Iterable[Row]) -> Iterator[Row]:
    """Without rows that have nothing in them. One reads the host first: it is what asks."""
    kept = [row for row in rows if row.spans or row.label not in {"Kernels", "Memory", "NVTX"}]
    labels = [row.label for row in kept]
    present = [label for label in ("NVTX", "CUDA API", "Kernels", "Memory") if label in labels]
    for row in kept:
        number = present.index(row.label) + 1 if row.label in present else 0
        yield Row(row.label, row.depth, row.spans, number)


def _packed(spans: Iterable[Span]) -> list[list[Span]]:
    """In as few rows as they need for none to cover another."""
    rows: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        free = next((row for row in rows if row[-1].end <= span.start), None)
        if free is None:
            rows.append([span])
        else:
            free.append(span)
    return rows


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
        yield Span(first.id, "range", first.label, first.start, last.end, first.device)


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
    if span.duration > 0.012 * length * len(span.name):  # about what its letters need
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
