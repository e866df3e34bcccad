"""A timeline as boxes, lines and words, in pixels: what `svg` writes down."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from asyncgpu_tutor.traces.pictures.layout import Arrow, Bar
from asyncgpu_tutor.traces.pictures.panel import Panel, legend_items, tips
from asyncgpu_tutor.traces.pictures.style import KIND_LOOKS
from asyncgpu_tutor.traces.spans.span import SpanKind, grouped

_UNIT = 26  # the height of a lane
_ABOVE, _AXIS, _ROW = 48, 40, 20  # title and facts; ticks and the axis' name; a row of the legend
_RIGHT = 14
_LEAST = 80  # of the time axis
_NAME = 11.0  # the largest font of a name in a bar
_PAD = 2.0  # beside it; its estimated width is rather too wide
_DOT = "  \u00b7  "
_TITLE = 17.0  # its font has 14, and is bold
_MOST_TIPS = 600  # bars that a still says more of when one points at them
# How the lines of a legend look.
LINES = {"room": "agt-room", "hole": "agt-room", "event": "agt-arrow"}
_LOWEST = 1.2  # pixels, of a bar that is hardly busy
_BORDERED = 6.0  # pixels: a bar that stands out by its border is as wide as this
_HEAD = 5.0  # half the width of an arrow's head


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, like the bars of a `kind` or as its `css` says: ``"agt-patch"`` is paper under a name."""

    css: str
    x: float
    y: float
    wide: float
    tall: float
    kind: SpanKind | None = None
    tip: str | None = None  # None where it is no bar of the timeline


@dataclass(frozen=True, slots=True)
class SceneLine:
    """A line through points; a closed one is filled."""

    css: str
    points: Sequence[tuple[float, float]]
    closed: bool = False


@dataclass(frozen=True, slots=True)
class SceneText:
    """A line of text, in its class's size unless it says another, and in the ink of a `kind`."""

    css: str
    x: float
    y: float
    text: str
    size: float | None = None
    kind: SpanKind | None = None


SceneShape = Box | SceneLine | SceneText


@dataclass(frozen=True)
class Scene:
    """All of a picture but its paper, from back to front."""

    shapes: list[SceneShape]
    width: float
    height: float


def scene(panels: Sequence[Panel], *, width: int) -> Scene:
    """Panels below each other, `width` pixels wide if the time axis has room in that."""
    left = left_of(panels)
    inner = max(width - left - _RIGHT, _LEAST)
    width = left + inner + _RIGHT
    shapes: list[SceneShape] = []
    y = float(_ABOVE)
    for panel in panels:
        shapes += _Drawing(panel, inner, left, y).shapes()
        y += panel.height * _UNIT + _AXIS + _ABOVE
    legend, bottom = _legend(panels, left, y - _ABOVE, width)
    return Scene(shapes + legend, width, bottom + 8)


def left_of(panels: Sequence[Panel]) -> int:
    """Room that the labels of the lanes need."""
    bands = (band for panel in panels for band in panel.layout.bands)
    wide = [text_width(band.label, 12) for band in bands]
    wide += [text_width(name, 12) for panel in panels for name, _ in panel.layout.headers]
    return round(max(wide, default=20)) + 16


def labels(panel: Panel) -> Iterator[tuple[str, float, float, str]]:
    """The names beside the lanes: their style, where they begin or end, and the text."""
    for band in panel.layout.bands:
        yield "agt-lane", -8, (band.y + band.height / 2) * _UNIT + 4, band.label
    for name, y in panel.layout.headers:
        yield "agt-lane agt-device", -8, y * _UNIT + 4, name


class _Drawing:
    """One panel, whose time axis begins `left` pixels from the left, `top` from the top."""

    def __init__(self, panel: Panel, inner: float, left: int, top: float) -> None:
        self.panel, self.inner, self.left, self.top = panel, inner, left, top
        layout = panel.layout
        margin = 0.01 * (layout.end - layout.begin)
        self.begin, self.end = layout.begin - margin, layout.end + margin

    def x(self, time: float) -> float:
        time = min(max(time, self.begin), self.end)
        return self.left + (time - self.begin) / (self.end - self.begin) * self.inner

    def y(self, lanes: float) -> float:
        return self.top + lanes * _UNIT

    def shapes(self) -> Iterator[SceneShape]:
        yield from self._frame()
        for bar in self.panel.layout.bars:
            if bar.waiting is not None:
                since, until = bar.waiting
                middle = self.y(bar.y + bar.height / 2)
                yield SceneLine("agt-room", ((self.x(since), middle), (self.x(until), middle)))
        yield from self._bars()
        yield from self._waits()
        yield from self._arrows(self.panel.arrows)
        yield from self._names()

    def _frame(self) -> Iterator[SceneShape]:
        panel, layout, left, inner = self.panel, self.panel.layout, self.left, self.inner
        title = fitting(panel.title, inner + left, _TITLE)
        yield SceneText("agt-title", 8, self.top - 28, title)
        facts = panel.facts()
        lines = (_DOT.join(facts[:number]) for number in range(len(facts), 0, -1))
        fits = (line for line in lines if text_width(line, 11.5) <= inner + left)
        yield SceneText("agt-facts", 8, self.top - 11, next(fits, facts[0]))
        for band in layout.bands:
            if band.shaded:
                yield Box("agt-band", left, self.y(band.y), inner, band.height * _UNIT)
        for css, x, y, text in labels(panel):
            yield SceneText(css, left + x, self.top + y, text)
        for y in layout.separators:
            yield self._across("agt-rule", self.y(y))
        bottom = self.y(panel.height)
        name, factor = panel.axis
        if layout.bars:
            for tick in ticks(layout.begin / factor, layout.end / factor, inner / 70):
                at, words = self.x(tick * factor), f"{tick:.12g}"
                yield SceneLine("agt-grid", ((at, self.top), (at, bottom)))
                # The last one has to be whole.
                at = min(at, left + inner + _RIGHT - text_width(words, 11) / 2)
                yield SceneText("agt-tick", at, bottom + 14, words)
        else:
            for number, line in enumerate(wrap(panel.said, 80)):
                yield SceneText("agt-facts", left + 4, self.top + 18 + 15 * number, line)
        yield self._across("agt-rule", bottom)
        yield SceneText("agt-axis", left + inner / 2, bottom + 31, name)

    def _across(self, css: str, y: float) -> SceneLine:
        return SceneLine(css, ((self.left, y), (self.left + self.inner, y)))

    def _bars(self) -> Iterator[Box]:
        """Bars that look alike come one after the other, so that they are drawn at once."""
        bars = self.panel.layout.bars
        told: Callable[[Bar], str] = tips(self.panel) if len(bars) <= _MOST_TIPS else lambda _: ""
        for (kind, css), alike in grouped(
            bars, lambda bar: (bar.span.kind, self._css(bar))
        ).items():
            for bar in alike:
                start, end = self.x(bar.span.start), self.x(bar.span.end)
                wide, tall = max(end - start, 0.5), max(bar.share * bar.height * _UNIT, _LOWEST)
                yield Box(css, start, self.y(bar.bottom) - tall, wide, tall, kind, told(bar))

    def _css(self, bar: Bar) -> str:
        state, low = self.panel.state(bar), "low" if bar.share < 1 else ""
        # The borders of many thin bars side by side would hide them.
        thin = state == "out" and self.x(bar.span.end) - self.x(bar.span.start) < _BORDERED
        return " ".join(filter(None, ("agt-bar", "" if thin else state, low)))

    def _waits(self) -> Iterator[SceneShape]:
        """Dotted holes in bars of kernels that only waited then."""
        for bar in self.panel.layout.bars:
            top, tall = self.y(bar.y) + 1, bar.height * _UNIT - 2
            for since, until in bar.waits:
                start, end = self.x(since), self.x(until)
                yield Box("agt-paper", start, top, end - start, tall)
                yield SceneLine("agt-room", ((start, top + tall / 2), (end, top + tall / 2)))

    def _arrows(self, arrows: Sequence[Arrow]) -> Iterator[SceneLine]:
        # All halos are drawn before all lines, because the halo of one arrow would cut the line of another.
        paths = [
            [
                (max(self.x(time) + px, self.x(arrow.before.span.end)), self.y(y))
                for time, y, px in arrow.points
            ]
            for arrow in arrows
        ]
        yield from (SceneLine("agt-halo", path) for path in paths)
        for arrow, path in zip(arrows, paths, strict=True):
            x, y = path[-1]
            back = y + (-1.6 if arrow.down else 1.6) * _HEAD
            pale = " pale" if self.panel.fades(arrow) else ""
            yield SceneLine(f"agt-arrow{pale}", path)
            yield SceneLine(
                f"agt-tip{pale}", ((x, y), (x - _HEAD, back), (x + _HEAD, back)), closed=True
            )

    def _names(self) -> Iterator[SceneShape]:
        """Names that fit into their bars."""
        layout, us = self.panel.layout, self.inner / (self.end - self.begin)
        for bar in layout.bars:
            since, until = bar.room
            start, end = max(since, layout.begin), min(until, layout.end)
            size, room = min(_NAME, 0.78 * bar.height * _UNIT), (end - start) * us
            if room < 2.5 * size or size < 0.54 * _NAME:
                continue
            text, fits = bar.text, room - _PAD
            if text_width(text, size) > fits:  # what it is says more than the operation's name
                text = fitting(text.rpartition(": ")[2], fits, size)
            if not text:
                continue
            kind = None if bar.waits or self.panel.state(bar) == "faded" else bar.span.kind
            x, y = self.x((start + end) / 2), self.y(bar.y + bar.height / 2)
            wide = min(text_width(text, size) + 4, room - 2)
            if kind is None or KIND_LOOKS[kind].hatch:
                yield Box("agt-patch", x - wide / 2, y - 0.6 * size, wide, 1.2 * size, kind)
            yield SceneText("agt-name", x, y + 0.35 * size, text, size, kind)


# ------------------------------------------------------------------ room, by an estimate: fonts differ
_WIDTHS = dict.fromkeys("iljtfr.,:;'|!() ", 0.36) | dict.fromkeys("mwMW@%\u2026", 0.92)


def text_width(text: str, size: float) -> float:
    """About how wide a line is, rather too wide than too narrow, in the unit of the font's size."""
    return size * sum(_WIDTHS.get(c) or (0.68 if c.isupper() else 0.6) for c in text)


def fitting(text: str, room: float, size: float) -> str:
    """The text, cut off where most of it fits, or nothing."""
    if text_width(text, size) <= room:
        return text
    for length in range(len(text) - 1, 3, -1):
        short = text[:length].rstrip("_ ") + "\u2026"
        if text_width(short, size) <= room:
            return short
    return ""


def ticks(begin: float, end: float, most: float) -> list[float]:
    """Round numbers from `begin` to `end`, about `most` of them."""
    least = (end - begin) / max(most, 2)
    power = 10 ** math.floor(math.log10(least))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= least * 0.999)
    first, last = math.ceil(begin / step - 1e-9), math.floor(end / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _legend(
    panels: Sequence[Panel], left: int, y: float, width: int
) -> tuple[list[SceneShape], float]:
    """The legend below what ends at `y`, and where it ends itself."""
    x, y = float(left), y + 6
    shapes: list[SceneShape] = []
    for mark, words in legend_items(panels):
        wide = 40 + text_width(words, 11)
        if x > left and x + wide > width:
            x, y = float(left), y + _ROW
        match mark:
            case "room" | "hole" | "event":
                shapes.append(SceneLine(LINES[mark], ((x, y + 6), (x + 24, y + 6))))
            case _:
                shapes.append(Box("agt-bar", x, y, 24, 12, mark))
        shapes.append(SceneText("agt-words", x + 29, y + 10, words))
        x += wide
    return shapes, y + _ROW if shapes else y - 6
