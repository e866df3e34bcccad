"""How a kind of span, or an operation, looks: also to the colour-blind, and on a grey printer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asyncgpu_tutor.traces.spans import SpanKind

__all__ = [
    "INK",
    "KIND_LOOKS",
    "OP_COLOURS",
    "PAPER",
    "QUIET",
    "RULE",
    "UNOWNED",
    "Look",
    "darker",
    "lighter",
]

INK = "#222222"  # lines, and text that counts
QUIET = "#666666"  # text that need not be seen first
RULE = "#AAAAAA"  # what separates, and names that are faded
PAPER = "#F4F4F4"  # behind every other lane

# Okabe and Ito's palette (Color Universal Design, 2008): eight colours that people with any of the
# common forms of colour-blindness can tell apart.
# Green, vermilion and blue are lightened a little, because names are written on them in black.
_ORANGE, _SKY, _GREEN, _YELLOW = "#E69F00", "#56B4E9", "#0BA47A", "#F0E442"
_BLUE, _VERMILION, _PURPLE = "#4599CA", "#E08640", "#CC79A7"
# The copy in has a lighter blue than the palette's, which is as light as the orange: so copy in, kernel and
# copy back differ on a grey printer too.
_LIGHT_SKY = "#9AD5F7"


@dataclass(frozen=True)
class Look:
    """Fill and pattern of a bar; the pattern is matplotlib's ``hatch``."""

    colour: str
    hatch: str = ""


# The hatching rises for a copy to the device and falls for one that comes back, so that they differ in grey.
KIND_LOOKS: Mapping[SpanKind, Look] = {
    "h2d": Look(_LIGHT_SKY, "////"),
    "kernel": Look(_ORANGE),
    "d2h": Look(_GREEN, "\\\\\\\\"),
    "d2d": Look(_PURPLE, "xxxx"),
    "memset": Look(_YELLOW, "...."),
    "graph": Look(_VERMILION, "||"),
    "call": Look("#D4D4D4"),
    "wait": Look("#FFFFFF", "...."),
    "work": Look("#9A9A9A", "----"),
    "range": Look("#FFFFFF"),
}

# The order makes neighbours differ most, because operations that follow each other get colours in turn.
OP_COLOURS = (_ORANGE, _SKY, _GREEN, _YELLOW, _PURPLE, _BLUE, _VERMILION)

UNOWNED = "#D4D4D4"  # a span that belongs to no operation


def darker(colour: str, part: float = 0.55) -> str:
    """The colour, as #RRGGBB, with each channel multiplied by `part`: for outlines and patterns."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel * part):02X}" for channel in channels)


def lighter(colour: str, part: float = 0.65) -> str:
    """The colour, as #RRGGBB, with `part` of the way gone to white: for what names stand on in a pattern."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + part * (255 - channel)):02X}" for channel in channels)
