"""A trace, arranged as the window of Nsight Systems arranges it: to learn where to look, without it.

Names of rows and their order are those of the pictures in its User Guide, version 2023.4, sections "NVTX
Trace", "CUDA Trace" and "GPU Metrics" (https://docs.nvidia.com/nsight-systems/UserGuide/index.html). It is a
drawing, and no copy of its looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncgpu_tutor.traces.pictures import layout
from asyncgpu_tutor.traces.pictures.panel import Panel
from asyncgpu_tutor.traces.pictures.timeline import Timeline
from asyncgpu_tutor.traces.spans import Span, measure
from asyncgpu_tutor.traces.spans.lanes import Lane, packed

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

_COLUMNS = 1000  # that a reader can tell apart
_MEMORY = ("h2d", "d2h", "d2d", "peer", "memset")
_START_END = "Start & End"


@dataclass(frozen=True)
class Row:
    """One row of the window."""

    label: str  # empty for a row that continues the one above it, as spans in one would overlap
    depth: int  # how far it is indented
    spans: tuple[Span, ...] = ()  # what is drawn in it; empty for a heading
    # ``"ranges"``, ``"calls"``, ``"all"``, ``"kernels"``, ``"memory"``; or empty for a heading.
    part: str = ""

    @property
    def number(self) -> int:
        """Its place in the order in which one reads, from 1; 0 for a heading. The host is first: it asks."""
        return _READ.index(self.part) + 1 if self.part else 0


_READ = ("ranges", "calls", "all", "kernels", "memory")


def window_rows(trace: Trace) -> list[Row]:
    """The rows that the profiler would show, from top to bottom; none without anything in it."""
    return [row for row in _rows(trace) if row.spans or not row.part]


def nsight_window(trace: Trace, *, title: str = "") -> Timeline:
    """Draw a trace as the window of Nsight Systems arranges it; rows are numbered in reading order."""
    begin = min((span.start for span in trace), default=0.0)
    end = max((span.end for span in trace), default=1.0)
    rows = window_rows(trace)
    made = layout.Layout(height=len(rows), begin=begin, end=end)
    for y, row in enumerate(rows):
        lane = Lane("host", "", row.label, row.spans)
        made.bars += layout.bars(row.spans, lane, y, 1.0, (end - begin) / _COLUMNS)
        name = f"{row.label}  ({row.number})" if row.label and row.part else row.label
        made.bands.append(layout.Band(name, y, 1.0, y % 2 == 1, row.depth, not row.part))
    return Timeline((Panel(trace, made, title, None, measure(trace), ()),))


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
    ranges = [span for span in trace if span.kind == "range"]
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
    """Spans in as few rows as they need for none to cover another."""
    ordered = sorted(spans, key=lambda s: (s.start, -s.end))
    rows: dict[int, list[Span]] = {}
    for span, row in zip(ordered, packed(ordered), strict=True):
        rows.setdefault(row, []).append(span)
    for number, found in sorted(rows.items()):
        yield Row("" if number else label, depth, tuple(found), part)
