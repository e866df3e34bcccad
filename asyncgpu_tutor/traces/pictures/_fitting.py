"""Texts that fit into the room that there is, by an estimate: the reader's font is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from asyncgpu_tutor.traces.pictures.layout import Bar
from asyncgpu_tutor.traces.pictures.panel import Panel

_DOT = "  \u00b7  "


def text_width(text: str, size: float) -> float:
    """About how wide a line is, rather too wide than too narrow, in the unit of the font's size."""
    return size * sum(
        0.36
        if c in "iljtfr.,:;'|!() "
        else 0.92
        if c in "mwMW@%\u2026"
        else 0.68
        if c.isupper()
        else 0.6
        for c in text
    )


def fitting(text: str, room: float, size: float) -> str:
    """The text, cut off where most of it fits, or nothing."""
    if text_width(text, size) <= room:
        return text
    for length in range(len(text) - 1, 3, -1):
        short = text[:length].rstrip("_ ") + "\u2026"
        if text_width(short, size) <= room:
            return short
    return ""


def line_of_facts(facts: Sequence[str], room: float, size: float) -> str:
    """As many facts as fit into one line; the first stays."""
    lines = (_DOT.join(facts[:number]) for number in range(len(facts), 0, -1))
    return next((line for line in lines if text_width(line, size) <= room), facts[0])


@dataclass(frozen=True, slots=True)
class BarName:
    """The writing in a bar."""

    bar: Bar
    text: str
    size: float  # of the font
    middle: float  # of the part of the bar that is drawn, in us
    room: float  # how wide that part is


def bar_names(panel: Panel, us: float, lane: float, largest: float) -> Iterator[BarName]:
    """Names that fit into their bars.

    A `us` is so wide, a `lane` so high, and a font so large at most, all in one unit.
    """
    layout = panel.layout
    for bar in layout.bars:
        start, end = max(bar.span.start, layout.begin), min(bar.span.end, layout.end)
        size, room = min(largest, 0.78 * bar.height * lane), (end - start) * us
        if room >= 3 * size and size >= 0.54 * largest:
            text = fitting(bar.text, room - 0.54 * largest, size)
            if text:
                yield BarName(bar, text, size, (start + end) / 2, room)
