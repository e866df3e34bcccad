"""The words that appear when somebody points at a span."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from asyncgpu_tutor.traces.pictures.alternative_text import duration
from asyncgpu_tutor.traces.pictures.layout import Bar
from asyncgpu_tutor.traces.pictures.panel import Panel
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.lanes import lane_name, stream_numbers
from asyncgpu_tutor.traces.spans.vocabulary import KIND_WORDS, count, some

_MOST_NAMES = 4


def tips(panel: Panel) -> Callable[[Bar], str]:
    """A function from a bar to lines: its name, when, how much, and what it waited for."""
    by_id = {span.id: span for span in panel.trace}
    numbers = stream_numbers(panel.trace)
    lane_of = {b.span.id: b.lane.name for b in panel.layout.bars if b.lane.group != "engines"}

    def name(number: int) -> str:
        lane = lane_of.get(number)
        return f"{by_id[number].name} ({lane})" if lane else by_id[number].name

    def tip(bar: Bar) -> str:
        span = bar.span
        stream = ""
        if span.stream is not None:
            own = f" (number {span.stream} of {span.device})"
            stream = f", {lane_name(numbers[span.device, span.stream])}{own}"
        when = f"{span.start:.1f} to {span.end:.1f} \u00b5s: {duration(span.duration)}"
        if bar.number > 1:
            many = f"{count(bar.number, 'span')}, most of it {KIND_WORDS[span.kind]}"
            return f"{many}\n{when}\nZoom in to see them."
        lines = [f"{span.name}: {KIND_WORDS[span.kind]}{stream}", when, *_more(span)]
        if span.waited_for_room:
            lines.append(f"waited {duration(span.waited_for_room)} for room on the device")
        if span.op is not None:
            part = span.detail.get("named")
            inside = f", in it {part}" if part and part != span.label else ""
            lines.append(f"operation #{span.op} {span.label}".rstrip() + inside)
        waited = [name(i) for i in span.after if i in by_id]
        if waited:
            lines.append(f"after {some(waited, _MOST_NAMES)}")
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
