"""The looks of a kind of span, or of an operation: also to the colour-blind, and on a grey printer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncgpu_tutor.traces.spans import SpanKind

INK = "#222222"  # lines, and text that counts

# Okabe and Ito's palette (Color Universal Design, 2008): eight colours that people with any of the
# common forms of colour-blindness can tell apart.
# Green, vermilion and blue are lightened a little, because names are written on them in black.
_ORANGE, _SKY, _GREEN, _YELLOW = "#E69F00", "#56B4E9", "#0BA47A", "#F0E442"
_BLUE, _VERMILION, _PURPLE = "#4599CA", "#E08640", "#CC79A7"
# The copy in has a lighter blue than the palette's, which is as light as the orange: so copy in, kernel and
# copy back differ on a grey printer too.
_LIGHT_SKY = "#9AD5F7"


@dataclass(frozen=True)
class BarStyle:
    """Fill and pattern of a bar; the pattern is one of `svg`'s hatchings."""

    colour: str
    hatch: str = ""
    page: str = ""  # whose colour it takes where there is a page: white bars glare in the dark


# The hatching rises for a copy to the device and falls for one that comes back, so that they differ in grey.
KIND_LOOKS: Mapping[SpanKind, BarStyle] = {
    "h2d": BarStyle(_LIGHT_SKY, "////"),
    "kernel": BarStyle(_ORANGE),
    "d2h": BarStyle(_GREEN, "\\\\\\\\"),
    "d2d": BarStyle(_PURPLE, "xxxx"),
    "peer": BarStyle(_BLUE, "++++"),
    "memset": BarStyle(_YELLOW, "...."),
    "graph": BarStyle(_VERMILION, "||"),
    "call": BarStyle("#D4D4D4", page="var(--agt-call)"),
    "wait": BarStyle("#FFFFFF", "....", page="var(--agt-paper)"),
    "work": BarStyle("#9A9A9A", "----", page="var(--agt-work)"),
    "range": BarStyle("#FFFFFF", page="var(--agt-paper)"),
}


def darker(colour: str) -> str:
    """A colour, as #RRGGBB, for the outlines and patterns of bars of this one."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel * 0.55):02X}" for channel in channels)


def lighter(colour: str) -> str:
    """A colour, as #RRGGBB, that names stand on in a pattern of this one: two thirds of the way to white."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + 0.65 * (255 - channel)):02X}" for channel in channels)


_, _ON_LIGHT, _ON_DARK, *_RULES = (
    Path(__file__).with_name("style.css").read_text(encoding="utf-8").splitlines()
)

# The colours of a page on light paper, by name.
LIGHT: Mapping[str, str] = dict(re.findall(r"--agt-(\w+):([^;}]+)", _ON_LIGHT))

# The page decides: the system's preference, unless JupyterLab, VS Code or a site says something else.
THEME = (
    f"{_ON_LIGHT}@media(prefers-color-scheme:dark){{{_ON_DARK}}}"
    f"[data-jp-theme-light=true] .agt,.vscode-light .agt,[data-theme=light] {_ON_LIGHT}"
    f"[data-jp-theme-light=false] .agt,.vscode-dark .agt,[data-theme=dark] {_ON_DARK}"
    + "".join(_RULES)
)
