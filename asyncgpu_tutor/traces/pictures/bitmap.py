"""Paint a scene with matplotlib, as a figure to be saved or to be drawn on."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from asyncgpu_tutor.traces.pictures import style
from asyncgpu_tutor.traces.pictures.scene import Box, Scene, SceneLine, SceneShape, SceneText

PIXELS = 76  # to an inch
_POINT = 72 / PIXELS  # a pixel in points, in which matplotlib counts fonts and lines
_ANCHORS = {"middle": "center", "end": "right"}


def figure(scene: Scene) -> Figure:
    """The scene on one Axes without a frame, whose units are the scene's pixels."""
    made = Figure(figsize=(scene.width / PIXELS, scene.height / PIXELS))
    ax = made.add_axes((0, 0, 1, 1), xlim=(0, scene.width), ylim=(scene.height, 0))
    ax.set_axis_off()
    for order, (look, run) in enumerate(groupby(scene.shapes, _look)):
        shapes = list(run)
        if look:
            boxes = [shape for shape in shapes if not isinstance(shape, SceneText)]
            corners = [_corners(shape) for shape in boxes]
            ax.add_collection(PolyCollection(corners, zorder=order, **look), autolim=False)
        for shape in shapes:
            if isinstance(shape, SceneText):
                _write(ax, shape, order)
            elif isinstance(shape, SceneLine) and not shape.closed:
                _line(ax, shape, order)
    return made


def _style(css: str) -> dict[str, str]:
    first, *others = css.split()
    rules = {**style.STYLES.get(first, {})}
    for name in others:
        rules |= style.STYLES.get(name) or style.STYLES.get(f"{first}.{name}", {})
    return rules


def _colour(value: str) -> str:
    """A colour that matplotlib knows: names stand for those of light paper."""
    name = value.removesuffix("!important").removeprefix("var(--agt-").removesuffix(")")
    return style.LIGHT.get(name, name)


def _look(shape: SceneShape) -> Mapping[str, Any]:
    """Paint of a filled shape; nothing for the others."""
    match shape:
        case Box(css="agt-patch", kind=kind):
            colour = style.lighter(style.KIND_LOOKS[kind].colour) if kind else style.LIGHT["paper"]
            return {"facecolor": colour, "linewidth": 0}
        case Box(css=css, kind=kind) if kind is not None:
            rules, look = _style(css), style.KIND_LOOKS[kind]
            return {
                "facecolor": style.LIGHT["quiet"] if "low" in css and look.page else look.colour,
                "edgecolor": _colour(rules.get("stroke") or style.darker(look.colour)),
                "hatch": look.hatch or None,
                "linewidth": float(rules["stroke-width"]) * _POINT,
                "alpha": float(rules["fill-opacity"]) if "fill-opacity" in rules else None,
            }
        case Box(css=css) | SceneLine(css=css, closed=True):
            return {"facecolor": _colour(_style(css)["fill"]), "linewidth": 0}
        case _:
            return {}


def _corners(shape: Box | SceneLine) -> list[tuple[float, float]]:
    if isinstance(shape, SceneLine):
        return list(shape.points)
    x, y, right, bottom = shape.x, shape.y, shape.x + shape.wide, shape.y + shape.tall
    return [(x, y), (right, y), (right, bottom), (x, bottom)]


def _line(ax: Axes, line: SceneLine, order: int) -> None:
    rules = _style(line.css)
    width = float(rules.get("stroke-width", 1))
    dashes = [float(length) / width for length in rules.get("stroke-dasharray", "").split()]
    x, y = zip(*line.points, strict=True)
    ax.plot(
        x, y, color=_colour(rules["stroke"]), linewidth=width * _POINT, zorder=order,
        linestyle=(0, dashes) if dashes else "-", dash_capstyle="butt", solid_capstyle="butt",
    )  # fmt: skip


def _write(ax: Axes, words: SceneText, order: int) -> None:
    rules = _style(words.css)
    ax.text(
        words.x, words.y, words.text, zorder=order, parse_math=False,
        ha=_ANCHORS.get(rules.get("text-anchor", ""), "left"), va="baseline",
        color=_colour(rules.get("fill", "ink")),
        fontsize=(words.size or float(rules.get("font-size", "11px")[:-2])) * _POINT,
        fontweight="bold" if "font-weight" in rules else "normal",
    )  # fmt: skip
