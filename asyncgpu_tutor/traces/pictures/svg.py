"""Timelines as SVG: the still picture, and the data that the live one is drawn from.

The still stands alone: it has its own style, no script, and needs no network. Colours that depend on the
page are CSS variables, so it is dark in a dark JupyterLab, and where the system prefers that. The live
picture (`asyncgpu_tutor.traces.live`) draws the same bars again when one zooms; `data` has them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any
from zlib import crc32

from asyncgpu_tutor.traces.pictures import scene as scenes
from asyncgpu_tutor.traces.pictures.panel import LOW, Panel, legend_items, tips
from asyncgpu_tutor.traces.pictures.style import INK, KIND_LOOKS, THEME, darker, lighter
from asyncgpu_tutor.traces.spans import SpanKind

_HATCHES: Mapping[str, str] = {
    "////": "M0 6 6 0M-1 1 1-1M5 7 7 5",
    "\\\\\\\\": "M0 0 6 6M-1 5 1 7M5-1 7 1",
    "xxxx": "M0 6 6 0M0 0 6 6",
    "....": "M2.4 3h1.2",
    "||": "M3 0v6",
    "----": "M0 3h6",
    "++++": "M3 0v6M0 3h6",
}
_Paints = dict[SpanKind, dict[str, str]]

# XML has no way to write some signs, such as a zero in the name of a kernel.
_NO_TEXT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw(panels: Sequence[Panel], words: str, *, width: int) -> str:
    """Panels as one SVG element, `width` pixels wide where there is room; `words` describe it."""
    paints, defs = _paints(panels)
    made = scenes.scene(panels, width=width)
    inner = "".join(_written(made.shapes, paints))
    return framed(inner, words, round(made.width), made.height, defs)


def framed(inner: str, words: str, width: int, height: float, defs: str = "") -> str:
    """A whole SVG element of some size in pixels, with its style, and paper behind it."""
    made = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="agt" role="img" aria-label="{escape(words)}" '
        f'viewBox="0 0 {width} {height:.0f}" width="{width}" style="max-width:100%;height:auto">'
        f"<style>{THEME}</style>{f'<defs>{defs}</defs>' if defs else ''}"
        f'<rect class="agt-paper" width="100%" height="100%"/>{inner}</svg>'
    )
    return _NO_TEXT.sub("\ufffd", made)


def told_below(picture: str, lesson: str, words: str) -> str:
    """A picture for a page: below it its lesson, if it has one, and its words, folded away."""
    said = f"<p><em>{escape(lesson)}</em></p>" if lesson else ""
    return f"{picture}{said}<details><summary>In words</summary>{escape(words)}</details>"


def _written(shapes: Sequence[scenes.SceneShape], paints: _Paints) -> Iterator[str]:
    """Bars that look alike share their attributes in a group; any other shape has its own."""
    for bars, run in groupby(
        shapes,
        lambda s: _style(s, paints) if isinstance(s, scenes.Box) and s.tip is not None else "",
    ):
        inner = "".join(_element(shape, "" if bars else _style(shape, paints)) for shape in run)
        yield f"<g {bars}>{inner}</g>" if bars else inner


def _style(shape: scenes.SceneShape, paints: _Paints) -> str:
    match shape:
        case scenes.Box(css="agt-patch", kind=kind):
            fill = paints[kind]["patch"] if kind else "var(--agt-paper)"
            return f'style="fill:{fill};pointer-events:none"'
        case scenes.Box(css=css, kind=kind) if kind:
            look = paints[kind]
            fill, line = (look["low"], "none") if "low" in css else (look["paint"], look["line"])
            return f'class="{css}" style="fill:{fill};stroke:{line}"'
        case scenes.SceneText(css=css, size=size, kind=kind) if size:
            ink = paints[kind]["ink"] if kind else "var(--agt-ink)"
            return f'class="{css}" style="fill:{ink};font-size:{size:.1f}px"'
        case _:
            return f'class="{shape.css}"'


def _element(shape: scenes.SceneShape, style: str) -> str:
    match shape:
        case scenes.SceneLine(points=points, closed=closed):
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + ("z" if closed else "")
            return f'<path {style} d="{path}"/>'
        case scenes.SceneText(x=x, y=y, text=text):
            return f'<text {style} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
        case _:
            box = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.wide:.1f}"'
            box = f'{style} {box} height="{shape.tall:.1f}"'.strip()
            tip = f"><title>{escape(shape.tip)}</title></rect>" if shape.tip else "/>"
            return f"<rect {box}{tip}"


def _paints(panels: Sequence[Panel]) -> tuple[_Paints, str]:
    """Paint of each kind, and the patterns, whose ids are this picture's own on a page with many."""
    named = [(p.title, p.layout.begin, p.layout.end, len(p.layout.bars)) for p in panels]
    return painted((bar.span.kind for panel in panels for bar in panel.layout.bars), repr(named))


def painted(kinds: Iterable[SpanKind], picture: str) -> tuple[_Paints, str]:
    """Paint of each of these kinds, and the patterns of a picture, which is known by these words."""
    key = f"agt{crc32(picture.encode(errors='replace')):08x}"
    paints: _Paints = {}
    defs = ""
    for kind in dict.fromkeys(kinds):
        look = KIND_LOOKS[kind]
        paint = fill = look.page or look.colour
        line = "var(--agt-quiet)" if look.page else darker(look.colour)
        if look.hatch:
            name = f"{key}-{kind}"  # two pictures may be known by the same words
            width = 2 if look.hatch == "...." else 1
            defs += (
                f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
                f'<rect width="6" height="6" style="fill:{fill}"/>'
                f'<path d="{_HATCHES[look.hatch]}" style="stroke:{line};stroke-width:{width}"/></pattern>'
            )
            paint = f"url(#{name})"
        # A low bar has no border, so a white one would not be seen.
        low, ink, patch = look.colour, INK, lighter(look.colour)
        if look.page:
            low, ink, patch = line, "var(--agt-ink)", "var(--agt-paper)"
        patch = patch if look.hatch else ""
        paints[kind] = {"paint": paint, "line": line, "low": low, "ink": ink, "patch": patch}
    return paints, defs


# ------------------------------------------------------------------ the live view
def data(panels: Sequence[Panel], words: str) -> dict[str, Any]:
    """The same as `draw`, as JSON values that `live.js` draws, at whatever zoom."""
    paints, defs = _paints(panels)
    left = scenes.left_of(panels)
    return {
        "words": words,
        "low": LOW,
        "style": THEME,
        "defs": defs,
        "unit": scenes._UNIT,
        "left": left,
        "begin": panels[0].layout.begin,
        "end": panels[0].layout.end,
        "looks": list(paints.values()),
        # The class of a line, or else paint and outline of a box; and words.
        "legend": [
            [scenes.LINES[mark], "", "", said]
            if mark in ("room", "hole", "event")
            else ["", paints[mark]["paint"], paints[mark]["line"], said]
            for mark, said in legend_items(panels)
        ],
        "panels": [_panel_data(panel, paints) for panel in panels],
    }


def _panel_data(panel: Panel, paints: _Paints) -> dict[str, Any]:
    layout = panel.layout
    told = tips(panel)
    name, factor = panel.axis
    numbers = {kind: number for number, kind in enumerate(paints)}
    return {
        "title": panel.title,
        "facts": panel.facts(),
        "said": panel.said,
        "height": panel.height,
        "axis": name,
        "factor": factor,
        "bands": [[b.y, b.height] for b in layout.bands if b.shaded],
        "labels": [list(label) for label in scenes.labels(panel)],
        "separators": layout.separators,
        "bars": [
            [
                *(bar.span.id, bar.span.start, bar.span.end, bar.y, bar.height),
                *(numbers[bar.span.kind], bar.text, panel.state(bar), bar.lane.name, bar.share),
            ]
            for bar in layout.bars
        ],
        "tips": [told(bar) for bar in layout.bars],
        "after": {bar.span.id: list(bar.span.after) for bar in layout.bars if bar.span.after},
        "rooms": [
            [*bar.waiting, bar.y + bar.height / 2] for bar in layout.bars if bar.waiting is not None
        ],
        "waits": [
            [i, since, until] for i, bar in enumerate(layout.bars) for since, until in bar.waits
        ],
        "arrows": [[arrow.points, panel.fades(arrow)] for arrow in panel.arrows],
    }
