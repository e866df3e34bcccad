"""Texts that fit into the room that there is, by an estimate: the reader's font is not known."""

from __future__ import annotations


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
