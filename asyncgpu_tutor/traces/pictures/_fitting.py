"""Text that knows how much room it has when it is drawn, also after a zoom or a new layout."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import TextToPath
from matplotlib.transforms import ScaledTranslation

from asyncgpu_tutor.traces.pictures.layout import Bar
from asyncgpu_tutor.traces.pictures.svg import fitting

_LARGEST, _SMALLEST = 8.0, 4.5  # points


@lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """Width of a line, in points; `size` is the font's, also in points."""
    font = FontProperties(size=size)
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0]


class BarName(Text):
    """The name of a bar: whole where it fits, cut off where most of it fits, or else not there.

    After drawing, `get_text` is what was drawn.
    """

    def __init__(self, bar: Bar, name: str, **looks: Any) -> None:
        span = bar.span
        super().__init__(
            (span.start + span.end) / 2,
            bar.y + bar.height / 2,
            name,
            horizontalalignment="center",
            verticalalignment="center_baseline",
            **looks,
        )
        self._bar, self._name = bar, name
        self.set_in_layout(False)  # a name is cut to its bar, so no layout has to make room for it

    def draw(self, renderer: RendererBase) -> None:
        """Choose text and size for the room that there is now, then draw."""
        bar, data = self._bar, self.axes.transData if self.axes else None
        if data is None:
            return
        left, bottom = data.transform((bar.span.start, bar.bottom))
        right, top = data.transform((bar.span.end, bar.y))
        points = _points(renderer)
        size = min(_LARGEST, 0.78 * float(top - bottom) * points)
        room = float(right - left) * points - 3
        # The size is rounded to tenths of a point, so that `text_width` finds most widths in its cache.
        self.set_fontsize(round(size, 1))
        cut = fitting(self._name, room, round(size, 1), text_width)
        self.set_text(cut if size >= _SMALLEST else "")
        super().draw(renderer)


class Subtitle(Text):
    """A line above Axes made of parts. Where it is too long, the last parts go; the first stays."""

    def __init__(self, ax: Axes, parts: list[str], **looks: Any) -> None:
        figure = ax.get_figure(root=True)
        assert figure is not None
        above = ax.transAxes + ScaledTranslation(0, 5 / 72, figure.dpi_scale_trans)
        super().__init__(0, 1, "", transform=above, clip_on=False, **looks)
        self._parts = parts
        self.set_text(next(self._candidates()))
        # A layout need not make room: the line is cut to the width, and the title's pad has its height.
        self.set_in_layout(False)

    def _candidates(self) -> Iterator[str]:
        for number in range(len(self._parts), 0, -1):
            yield "  \u00b7  ".join(self._parts[:number])

    def draw(self, renderer: RendererBase) -> None:
        """Choose as many parts as there is room for now, then draw."""
        if self.axes is None:
            return
        room = self.axes.get_window_extent(renderer).width * _points(renderer)
        for text in self._candidates():
            self.set_text(text)
            if text_width(text, self.get_fontsize()) <= room:
                break
        super().draw(renderer)


def _points(renderer: RendererBase) -> float:
    """The size of a pixel, in points."""
    return 1 / cast(float, renderer.points_to_pixels(1.0))
