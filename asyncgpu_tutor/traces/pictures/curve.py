"""A curve as SVG: one number against a parameter, a line for each setting of the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from asyncgpu_tutor.traces.pictures.scene import fitting, text_width, ticks
from asyncgpu_tutor.traces.pictures.style import COLOURS, darker
from asyncgpu_tutor.traces.pictures.svg import framed

_WIDTH, _LOWEST = 760, 142  # pixels: of all, and how tall the curves are at least
_NAME = 14  # pixels from one line's name to the next
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 34, 44  # pixels around the curves
_RADIUS = 4  # pixels, of a point


@dataclass(frozen=True)
class Curve:
    """The curve to be drawn."""

    # `title`, `across` and `up`: above it, and along its axes.
    title: str
    across: str
    up: str
    values: Sequence[str]  # along the axis, at equal distances: they need not be numbers
    # Each line by its name: for each value a key, which a live view marks, and the number.
    lines: Mapping[str, Sequence[tuple[str, float]]]

    def svg(self, words: str) -> str:
        """One SVG element; `words` describe it."""
        inner, tall = _WIDTH - _LEFT - _RIGHT, max(_LOWEST, _NAME * len(self.lines))
        most = max((y for line in self.lines.values() for _, y in line), default=0.0) * 1.08 or 1.0
        step = inner / max(len(self.values) - 1, 1)
        parts: list[str] = []
        for y in ticks(0.0, most, tall / 30):
            at = tall - y / most * tall
            parts.append(f'<path class="agt-grid" d="M0 {at:.1f}h{inner}"/>')
            parts.append(f'<text class="agt-tick agt-end" x="-6" y="{at + 4:.1f}">{y:.12g}</text>')
        # No two of them may touch.
        every = math.ceil((max(text_width(value, 11) for value in self.values) + 4) / step)
        for i, value in list(enumerate(self.values))[::every]:
            at = f'x="{i * step:.1f}" y="{tall + 15}"'
            parts.append(f'<text class="agt-tick" {at}>{escape(value)}</text>')
        parts += self._lines(step, tall, most)
        parts.append(f'<path class="agt-rule" d="M0 {tall}h{inner}"/>')
        at = f'x="{inner / 2:.0f}" y="{tall + 34}"'
        parts.append(f'<text class="agt-axis" {at}>{escape(self.across)}</text>')
        inside = (
            f'<text class="agt-title" x="8" y="18">{escape(self.title)}</text>'
            f'<text class="agt-facts" x="8" y="{_TOP - 3}">{escape(self.up)}</text>'
            f'<g transform="translate({_LEFT} {_TOP + 6})">{"".join(parts)}</g>'
        )
        return framed(inside, words, _WIDTH, _TOP + tall + _BOTTOM)

    def _lines(self, step: float, tall: float, most: float) -> Iterator[str]:
        names: list[tuple[float, str, str]] = []
        told = self._tips(tall, most)
        for number, (name, line) in enumerate(self.lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            points = [(i * step, tall - y / most * tall, key) for i, (key, y) in enumerate(line)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
            yield f'<polyline points="{path}" style="fill:none;stroke:{colour};stroke-width:2"/>'
            for x, y, key in points:
                yield (
                    f'<circle class="agt-point" data-key="{escape(key)}" cx="{x:.1f}" cy="{y:.1f}" '
                    f'r="{_RADIUS}" style="fill:{colour};stroke:{darker(colour)}">'
                    f"<title>{escape(told[key])}</title></circle>"
                )
            names.append((points[-1][1], name, colour))
        # Names that would lie on each other go below each other, so each has its line's colour; and there has
        # to be room for those that follow.
        last, x = -20.0, (len(self.values) - 1) * step
        for number, (y, name, colour) in enumerate(sorted(names), 1):
            last = max(min(y, tall - _NAME * (len(names) - number)), last + _NAME)
            if name:
                box = f'<rect x="{x + 10:.1f}" y="{last - 4:.1f}" width="9" height="9" fill="{colour}"/>'
                told = escape(fitting(name, _RIGHT - 32, 11))
                yield f'{box}<text x="{x + 24:.1f}" y="{last + 4:.1f}">{told}</text>'

    def _tips(self, tall: float, most: float) -> dict[str, str]:
        """By key, what a point says under the mouse: its line and number, and those of points it covers."""
        told: dict[str, str] = {}
        for i in range(len(self.values)):
            here = [(name, *line[i]) for name, line in self.lines.items() if i < len(line)]
            for _, key, y in here:
                near = [p for p in here if abs(p[2] - y) / most * tall < 2 * _RADIUS]
                lines = (f"{name}: {us:.1f}".removeprefix(": ") for name, _, us in near)
                told[key] = "\n".join(lines)
        return told
