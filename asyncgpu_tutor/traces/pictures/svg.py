"""Timelines as SVG: the still picture, and the data that the live one is drawn from.

The still stands alone: it has its own style, no script, and needs no network. Colours that depend on the
page are CSS variables, so it is dark in a dark JupyterLab, and where the system prefers that. The live
picture (`asyncgpu_tutor.traces.live`) draws the same bars again when one zooms; `data` has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any
from zlib import crc32

from asyncgpu_tutor.traces.pictures._fitting import bar_names, fitting, line_of_facts, text_width
from asyncgpu_tutor.traces.pictures.hover import tips
from asyncgpu_tutor.traces.pictures.layout import Arrow, Bar
from asyncgpu_tutor.traces.pictures.panel import Panel, legend_items
from asyncgpu_tutor.traces.pictures.style import (
    INK,
    KIND_LOOKS,
    THEME,
    darker,
    lighter,
)
from asyncgpu_tutor.traces.spans import SpanKind

# All sizes are in pixels.
UNIT = 26  # the height of a lane
_ABOVE, _AXIS, _ROW = 48, 40, 20  # title and facts; ticks and the axis' name; a row of the legend
_RIGHT = 14
_LEAST = 80  # of the time axis
_TITLE = 17.0  # its font has 14, and is bold
_MOST_TIPS = 600  # bars that a still says more of when one points at them

_HATCHES: Mapping[str, str] = {
    "////": "M0 6 6 0M-1 1 1-1M5 7 7 5",
    "\\\\\\\\": "M0 0 6 6M-1 5 1 7M5-1 7 1",
    "xxxx": "M0 6 6 0M0 0 6 6",
    "....": "M2.4 3h1.2",
    "||": "M3 0v6",
    "----": "M0 3h6",
}
# What has no colour of its own takes the page's: white bars glare in the dark.
_PAGE: Mapping[str, str] = {"call": "--agt-call", "wait": "--agt-paper", "work": "--agt-work"} | {
    "range": "--agt-paper"
}
# What XML has no way to write, such as a zero in the name of a kernel.
_NO_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD = 5.0  # half the width of an arrow's head


def draw(panels: Sequence[Panel], words: str, *, width: int) -> str:
    """Panels as one SVG element, `width` pixels wide where there is room; `words` describe it."""
    left = _left(panels)
    inner = max(width - left - _RIGHT, _LEAST)
    width = left + inner + _RIGHT
    paints = _Paints(panels)
    parts: list[str] = []
    y = float(_ABOVE)
    for panel in panels:
        parts.append(f'<g transform="translate({left} {y:.0f})">')
        parts += _panel(panel, inner, left, paints)
        parts.append("</g>")
        y += panel.height * UNIT + _AXIS + _ABOVE
    marks, bottom = _legend(panels, paints, left, y - _ABOVE, width)
    return framed("".join(parts + marks), words, width, bottom + 8, paints.defs)


def framed(inner: str, words: str, width: int, height: float, defs: str = "") -> str:
    """A whole SVG element of some size in pixels, with its style, and paper behind it."""
    made = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="agt" role="img" aria-label="{escape(words)}" '
        f'viewBox="0 0 {width} {height:.0f}" width="{width}" style="max-width:100%;height:auto">'
        f"<style>{THEME}</style>{f'<defs>{defs}</defs>' if defs else ''}"
        f'<rect class="agt-paper" width="100%" height="100%"/>{inner}</svg>'
    )
    return _NO_TEXT.sub("\ufffd", made)


def data(panels: Sequence[Panel], words: str) -> dict[str, Any]:
    """The same as `draw`, as JSON values that `live.js` draws, at whatever zoom."""
    paints = _Paints(panels)
    legend = [list(item) for item in _items(panels, paints)]  # it may add patterns
    return {
        "words": words,
        "style": THEME,
        "defs": paints.defs,
        "unit": UNIT,
        "left": _left(panels),
        "begin": panels[0].layout.begin,
        "end": panels[0].layout.end,
        "looks": paints.looks,
        "legend": legend,
        "panels": [_panel_data(panel, paints) for panel in panels],
    }


def _panel_data(panel: Panel, paints: _Paints) -> dict[str, Any]:
    layout = panel.layout
    told = tips(panel)
    name, _, factor = panel.axis
    return {
        "title": panel.title,
        "facts": panel.facts(),
        "said": panel.said,
        "height": panel.height,
        "axis": name,
        "factor": factor,
        "bands": [[b.label, b.y, b.height, b.shaded] for b in layout.bands],
        "headers": [list(h) for h in layout.headers],
        "separators": layout.separators,
        "bars": [
            [
                *(bar.span.id, bar.span.start, bar.span.end, bar.y, bar.height),
                *(paints.number(bar.span.kind), bar.text, _state(panel, bar), bar.lane.name),
            ]
            for bar in layout.bars
        ],
        "tips": [told(bar) for bar in layout.bars],
        "after": {bar.span.id: list(bar.span.after) for bar in layout.bars if bar.span.after},
        "rooms": [
            [*bar.waiting, bar.y + bar.height / 2] for bar in layout.bars if bar.waiting is not None
        ],
        "arrows": [arrow.points for arrow in panel.arrows],
    }


def _state(panel: Panel, bar: Bar) -> str:
    if panel.highlight is None:
        return ""
    return "faded" if panel.faded(bar) else "out"


def _left(panels: Sequence[Panel]) -> int:
    labels = [band.label for p in panels for band in p.layout.bands]
    labels += [name for p in panels for name, _ in p.layout.headers]
    return round(max((text_width(label, 12) for label in labels), default=20)) + 16


class _Paints:
    """How each look is painted. Patterns have ids, which are this picture's own on a page with many."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self._numbers: dict[SpanKind, int] = {}
        self.looks: list[dict[str, str]] = []
        self.defs = ""
        named = [(p.title, p.layout.begin, p.layout.end, len(p.layout.bars)) for p in panels]
        self._key = f"agt{crc32(repr(named).encode()):08x}"
        for panel in panels:
            for bar in panel.layout.bars:
                self.number(bar.span.kind)

    def number(self, kind: SpanKind) -> int:
        """Index in `looks` of the look of a kind; a new one is added."""
        if kind in self._numbers:
            return self._numbers[kind]
        look, page = KIND_LOOKS[kind], _PAGE.get(kind, "")
        fill = f"var({page})" if page else look.colour
        line = "var(--agt-quiet)" if page else darker(look.colour)
        made = {
            "paint": fill,
            "line": line,
            "ink": "var(--agt-ink)" if page else INK,
            "patch": ("var(--agt-paper)" if page else lighter(look.colour)) if look.hatch else "",
        }
        if look.hatch:
            name = f"{self._key}-{len(self.looks)}"
            width = 2 if look.hatch == "...." else 1
            self.defs += (
                f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
                f'<rect width="6" height="6" style="fill:{fill}"/>'
                f'<path d="{_HATCHES[look.hatch]}" style="stroke:{line};stroke-width:{width}"/></pattern>'
            )
            made["paint"] = f"url(#{name})"
        self._numbers[kind] = len(self.looks)
        self.looks.append(made)
        return len(self.looks) - 1


# ------------------------------------------------------------------ a panel
def _panel(panel: Panel, inner: float, left: int, paints: _Paints) -> Iterator[str]:
    layout = panel.layout
    height = panel.height * UNIT
    margin = 0.01 * (layout.end - layout.begin)
    begin, end = layout.begin - margin, layout.end + margin

    def x(time: float) -> float:
        return (min(max(time, begin), end) - begin) / (end - begin) * inner

    title = fitting(panel.title, inner + left, _TITLE)
    yield f'<text class="agt-title" x="{8 - left}" y="-28">{escape(title)}</text>'
    facts = line_of_facts(panel.facts(), inner + left, 11.5)
    yield f'<text class="agt-facts" x="{8 - left}" y="-11">{escape(facts)}</text>'
    for band in layout.bands:
        shade = "agt-band" if band.shaded else "agt-none"
        y, tall = band.y * UNIT, band.height * UNIT
        yield f'<rect class="{shade}" y="{y:.1f}" width="{inner:.0f}" height="{tall:.1f}"/>'
        yield f'<text class="agt-lane" x="-8" y="{y + tall / 2 + 4:.1f}">{escape(band.label)}</text>'
    for name, y in layout.headers:
        yield f'<text class="agt-lane agt-device" x="-8" y="{y * UNIT + 4:.1f}">{escape(name)}</text>'
    for y in layout.separators:
        yield f'<path class="agt-rule" d="M0 {y * UNIT:.1f}h{inner:.0f}"/>'
    name, _, factor = panel.axis
    if layout.bars:
        for tick in ticks(layout.begin / factor, layout.end / factor, inner / 70):
            at = x(tick * factor)
            yield f'<path class="agt-grid" d="M{at:.1f} 0V{height:.0f}"/>'
            words = f"{tick:.12g}"
            at = min(at, inner + _RIGHT - text_width(words, 11) / 2)  # the last one has to be whole
            yield f'<text class="agt-tick" x="{at:.1f}" y="{height + 14:.0f}">{words}</text>'
    else:
        for number, line in enumerate(wrap(panel.said, 80)):
            yield f'<text class="agt-facts" x="4" y="{18 + 15 * number}">{escape(line)}</text>'
    yield f'<path class="agt-rule" d="M0 {height:.0f}h{inner:.0f}"/>'
    yield f'<text class="agt-axis" x="{inner / 2:.0f}" y="{height + 31:.0f}">{escape(name)}</text>'
    for bar in layout.bars:
        if bar.waiting is not None:
            since, until = (x(time) for time in bar.waiting)
            middle = (bar.y + bar.height / 2) * UNIT
            yield f'<path class="agt-room" d="M{since:.1f} {middle:.1f}H{until:.1f}"/>'
    yield from _bars(panel, x, paints)
    yield from _arrows(panel.arrows, x)
    yield from _names(panel, x, inner / (end - begin), paints)


def _bars(panel: Panel, x: Any, paints: _Paints) -> Iterator[str]:
    alike: dict[tuple[int, str], list[Bar]] = {}
    for bar in panel.layout.bars:
        alike.setdefault((paints.number(bar.span.kind), _state(panel, bar)), []).append(bar)
    told = tips(panel) if len(panel.layout.bars) <= _MOST_TIPS else None
    for (number, state), bars in alike.items():
        look = paints.looks[number]
        yield f'<g class="agt-bar {state}" style="fill:{look["paint"]};stroke:{look["line"]}">'
        for bar in bars:
            start, end = x(bar.span.start), x(bar.span.end)
            box = (
                f'x="{start:.1f}" y="{bar.y * UNIT:.1f}" width="{max(end - start, 0.5):.1f}" '
                f'height="{bar.height * UNIT:.1f}"'
            )
            if told is None:
                yield f"<rect {box}/>"
            else:
                yield f"<rect {box}><title>{escape(told(bar))}</title></rect>"
        yield "</g>"


def _names(panel: Panel, x: Any, us: float, paints: _Paints) -> Iterator[str]:
    for name in bar_names(panel, us, UNIT, 11.0):
        bar, size = name.bar, name.size
        look = paints.looks[paints.number(bar.span.kind)]
        middle, y = x(name.middle), (bar.y + bar.height / 2) * UNIT
        ink, patch = look["ink"], look["patch"]
        if panel.faded(bar):
            ink, patch = "var(--agt-ink)", "var(--agt-paper)"
        if patch:
            wide = min(text_width(name.text, size) + 4, name.room - 2)
            yield (
                f'<rect x="{middle - wide / 2:.1f}" y="{y - 0.6 * size:.1f}" width="{wide:.1f}" '
                f'height="{1.2 * size:.1f}" style="fill:{patch};pointer-events:none"/>'
            )
        yield (
            f'<text class="agt-name" x="{middle:.1f}" y="{y + 0.35 * size:.1f}" '
            f'style="fill:{ink};font-size:{size:.1f}px">{escape(name.text)}</text>'
        )


def _arrows(arrows: Sequence[Arrow], x: Any) -> Iterator[str]:
    # All halos are drawn before all lines, because the halo of one arrow would cut the line of another.
    paths = [
        (a, "M" + "L".join(f"{x(time):.1f} {y * UNIT:.1f}" for time, y in a.points)) for a in arrows
    ]
    yield from (f'<path class="agt-halo" d="{d}"/>' for _, d in paths)
    for arrow, path in paths:
        time, y = arrow.points[-1]
        back = -1.6 * _HEAD if arrow.before.y < arrow.after.y else 1.6 * _HEAD
        tip = f"M{x(time):.1f} {y * UNIT:.1f}l{-_HEAD:.1f} {back:.1f}h{2 * _HEAD:.1f}z"
        yield f'<path class="agt-arrow" d="{path}"/>'
        yield f'<path class="agt-tip" d="{tip}"/>'


def ticks(begin: float, end: float, most: float) -> list[float]:
    """Round numbers from `begin` to `end`, about `most` of them."""
    least = (end - begin) / max(most, 2)
    power = 10 ** math.floor(math.log10(least))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= least * 0.999)
    first, last = math.ceil(begin / step - 1e-9), math.floor(end / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


# ------------------------------------------------------------------ the legend
def _items(panels: Sequence[Panel], paints: _Paints) -> Iterator[tuple[str, str, str, str]]:
    """Items of the legend: the class of a line, or else paint and outline of a box; and words."""
    for mark, words in legend_items(panels):
        match mark:
            case "room":
                yield "agt-room", "", "", words
            case "event":
                yield "agt-arrow", "", "", words
            case _:
                look = paints.looks[paints.number(mark)]
                yield "", look["paint"], look["line"], words


def _legend(
    panels: Sequence[Panel], paints: _Paints, left: int, above: float, width: int
) -> tuple[list[str], float]:
    """Its elements, below what is `above`, and where they end."""
    x, y = float(left), above + 6
    marks: list[str] = []
    for css, paint, line, words in _items(panels, paints):
        wide = 40 + text_width(words, 11)
        if x > left and x + wide > width:
            x, y = float(left), y + _ROW
        if not css:
            mark = (
                f'<rect class="agt-bar" x="{x:.0f}" y="{y:.0f}" width="24" height="12" '
                f'style="fill:{paint};stroke:{line}"/>'
            )
        else:
            mark = f'<path class="{css}" d="M{x:.0f} {y + 6:.0f}h24"/>'
        text = f'<text class="agt-words" x="{x + 29:.0f}" y="{y + 10:.0f}">{escape(words)}</text>'
        marks.append(mark + text)
        x += wide
    return marks, y + _ROW if marks else above
