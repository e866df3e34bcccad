"""How a kind of span, or an operation, looks: also to the colour-blind, and on a grey printer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asyncgpu_tutor.traces.spans import SpanKind

INK = "#222222"  # lines, and text that counts
QUIET = "#666666"  # text that need not be seen first

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

# What has no colour of its own takes the page's: white bars glare in the dark.
PAGE: Mapping[SpanKind, str] = {
    "call": "var(--agt-call)", "wait": "var(--agt-paper)", "work": "var(--agt-work)",
    "range": "var(--agt-paper)",
}  # fmt: skip

# Of lines and marks, in turn: the order makes neighbours differ most.
COLOURS = (_ORANGE, _SKY, _GREEN, _YELLOW, _PURPLE, _BLUE, _VERMILION)


def darker(colour: str) -> str:
    """A colour, as #RRGGBB, for the outlines and patterns of bars of this one."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel * 0.55):02X}" for channel in channels)


def lighter(colour: str) -> str:
    """A colour, as #RRGGBB, that names stand on in a pattern of this one: two thirds of the way to white."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + 0.65 * (255 - channel)):02X}" for channel in channels)


# The colours of a page by name, on light paper and on dark.
LIGHT: Mapping[str, str] = {
    "ink": INK, "quiet": QUIET, "rule": "#AAAAAA", "band": "#F4F4F4", "paper": "#FFFFFF",
    "grid": "#DDDDDD", "call": "#D4D4D4", "work": "#A6A6A6", "event": "#B00040", "bad": "#B3001B",
}  # fmt: skip
_DARK: Mapping[str, str] = {
    "ink": "#EEEEEE", "quiet": "#B4B4B4", "rule": "#777777", "band": "#1F2329", "paper": "#14171B",
    "grid": "#33383F", "call": "#4A4F57", "work": "#5C626B", "event": "#FF8FAE", "bad": "#FF6B7D",
}  # fmt: skip

# How the parts of a timeline look, by the names that `scene` gives them. A page reads this as CSS, and
# `bitmap` reads it here, so both show the same.
STYLES: Mapping[str, Mapping[str, str]] = {
    "agt-paper": {"fill": "var(--agt-paper)"},
    "agt-band": {"fill": "var(--agt-band)"},
    "agt-title": {"font-size": "14px", "font-weight": "600"},
    "agt-facts": {"font-size": "11.5px", "fill": "var(--agt-quiet)"},
    "agt-lane": {"font-size": "12px", "text-anchor": "end"},
    "agt-step": {"font-size": "12px"},
    "agt-device": {"font-weight": "600"},
    "agt-tick": {"text-anchor": "middle", "fill": "var(--agt-quiet)"},
    "agt-axis": {"text-anchor": "middle", "fill": "var(--agt-quiet)"},
    "agt-end": {"text-anchor": "end"},
    "agt-name": {"text-anchor": "middle", "pointer-events": "none"},
    "agt-rule": {"stroke": "var(--agt-rule)", "fill": "none"},
    "agt-grid": {"stroke": "var(--agt-grid)", "fill": "none"},
    "agt-bar": {"stroke-width": ".8"},
    "agt-bar.faded": {"fill-opacity": ".28", "stroke-opacity": ".4"},
    "agt-bar.out": {"stroke-width": "2", "stroke": "var(--agt-ink)!important"},
    "agt-arrow": {"fill": "none", "stroke": "var(--agt-event)", "stroke-width": "2.2"},
    "agt-halo": {"fill": "none", "stroke": "var(--agt-paper)", "stroke-width": "5"},
    "agt-room": {
        "fill": "none", "stroke": "var(--agt-quiet)", "stroke-width": "5", "stroke-dasharray": "1.5 2.5"
    },
    "agt-tip": {"fill": "var(--agt-event)"},
}  # fmt: skip


def _css(rules: Mapping[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in rules.items())


def _rule(name: str) -> str:
    text = "font-size" in STYLES[name] or "text-anchor" in STYLES[name] or name == "agt-device"
    return f"{'.agt ' if text else ''}.{name}{{{_css(STYLES[name])}}}"


_ON_LIGHT, _ON_DARK = (
    _css({f"--agt-{name}": colour for name, colour in page.items()}) for page in (LIGHT, _DARK)
)

# The page decides: the system's preference, unless JupyterLab, VS Code or a site says something else.
THEME = (
    f".agt{{{_ON_LIGHT}}}@media(prefers-color-scheme:dark){{.agt{{{_ON_DARK}}}}}"
    f"[data-jp-theme-light=true] .agt,.vscode-light .agt,[data-theme=light] .agt{{{_ON_LIGHT}}}"
    f"[data-jp-theme-light=false] .agt,.vscode-dark .agt,[data-theme=dark] .agt{{{_ON_DARK}}}"
    ".agt{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    ".agt text{fill:var(--agt-ink);font-size:11px}"
    + "".join(map(_rule, STYLES))
    + ".agt-point.now{stroke:var(--agt-ink)!important;stroke-width:4}"
    ".agt-cell{fill:var(--agt-paper);stroke:var(--agt-rule);stroke-width:.6}"
    ".agt-reads{fill:#56B4E9;stroke:none}.agt-writes{fill:#E69F00;stroke:none}"
    ".agt-link{fill:none;stroke:var(--agt-quiet);stroke-width:1;stroke-opacity:.75}"
    ".agt-picked{fill:none;stroke:var(--agt-ink);stroke-width:2.5}"
    ".agt-wrong{fill:var(--agt-bad);stroke:var(--agt-bad)}"
    ".agt-wrong-link{fill:none;stroke:var(--agt-bad);stroke-width:2.4}"
    ".agt .agt-bad{fill:var(--agt-bad);font-weight:600}.agt-code{font-family:monospace}"
)
