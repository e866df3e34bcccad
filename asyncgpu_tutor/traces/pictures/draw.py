"""Put layouts on matplotlib Axes, whose x data are us."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from asyncgpu_tutor.traces.pictures._fitting import bar_names, fitting, line_of_facts, text_width
from asyncgpu_tutor.traces.pictures.layout import Bar
from asyncgpu_tutor.traces.pictures.panel import Panel, legend_items
from asyncgpu_tutor.traces.pictures.style import (
    EVENT,
    INK,
    KIND_LOOKS,
    PAPER,
    QUIET,
    RULE,
    darker,
    lighter,
)
from asyncgpu_tutor.traces.spans import SpanKind

# The sizes of a figure are in inches, those of texts in points.
UNIT = 0.31  # the height of a lane
_ABOVE = 0.58  # title and subtitle
_AXIS = 0.52  # tick labels and the axis' name
_TICKS = 0.3  # tick labels alone
_LEGEND_ROW = 0.22
_LEGEND_COLUMN = 1.3
_RIGHT = 0.15
_LEAST = 1.0  # of the time axis
_POINTS = 72  # to an inch

_LABEL, _SUBTITLE, _NAME = 9.0, 8.5, 8.0
_TITLE = 14.0  # its font has 11, and is bold
_FADED = 0.25

_DOTTED = (0, (0.4, 0.6))  # the line of what waits for room


def draw_figure(panels: Sequence[Panel], *, width: float) -> list[Axes]:
    """Draw panels in a new figure that is as high as they need."""
    handles = _handles(panels)
    label = max(
        (text_width(band.label, _LABEL) for p in panels for band in p.layout.bands), default=20
    )
    left = label / _POINTS + 0.25
    inner = max(width - left - _RIGHT, _LEAST)
    width = left + inner + _RIGHT
    in_a_row = max(1, int(width / _LEGEND_COLUMN))
    below = _AXIS + _LEGEND_ROW * -(-len(handles) // in_a_row) + 0.05
    tall = [panel.height * UNIT for panel in panels]
    # Panels whose clock is the same need only the name of the last axis.
    named = len({panel.trace.clock for panel in panels}) > 1
    between = (_AXIS if named else _TICKS) + _ABOVE
    height = _ABOVE + sum(tall) + (len(panels) - 1) * between + below
    figure = plt.figure(figsize=(width, height))
    found: list[Axes] = []
    top = height - _ABOVE
    for number, panel in enumerate(panels):
        box = (left / width, (top - tall[number]) / height, inner / width, tall[number] / height)
        ax = figure.add_axes(box)
        _draw_panel(ax, panel, inner * _POINTS)
        if not named and number + 1 < len(panels):
            ax.set_xlabel("")
        found.append(ax)
        top -= tall[number] + between
    if handles:
        figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(left / width, (below - _AXIS) / height),
            ncols=min(in_a_row, len(handles)),
            fontsize=8,
            frameon=False,
            borderaxespad=0,
            borderpad=0,
            columnspacing=1.4,
            handlelength=2.2,
            handleheight=1.1,
        )
    return found


def _draw_panel(ax: Axes, panel: Panel, room: float) -> None:
    """Draw one timeline on Axes that are `room` points wide."""
    _frame(ax, panel, room)
    if not panel.layout.bars:
        ax.set_xticks([])
        said = fill(panel.said, 70)
        ax.text(0.5, 0.5, said, transform=ax.transAxes, ha="center", va="center", color=QUIET)
        return
    _bars(ax, panel)
    _arrows(ax, panel)
    _names(ax, panel, room)


def _frame(ax: Axes, panel: Panel, room: float) -> None:
    layout = panel.layout
    margin = 0.01 * (layout.end - layout.begin)
    ax.set_xlim(layout.begin - margin, layout.end + margin)
    ax.set_ylim(panel.height, 0)
    for band in layout.bands:
        if band.shaded:
            ax.axhspan(band.y, band.y + band.height, color=PAPER, zorder=0, linewidth=0)
    for y in layout.separators:
        ax.axhline(y, color=RULE, linewidth=0.8, zorder=1)
    ticks = [(band.y + band.height / 2, band.label) for band in layout.bands]
    ticks += [(y, name) for name, y in layout.headers]
    ax.set_yticks([y for y, _ in ticks], [label for _, label in ticks], fontsize=_LABEL)
    for label in ax.get_yticklabels()[len(layout.bands) :]:
        label.set_fontweight("bold")
    ax.tick_params(axis="y", length=0)
    ax.tick_params(axis="x", labelsize=8, colors=QUIET)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 2.5, 5, 10]))
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    name, _, factor = panel.axis

    def label_of(time: float, _position: int) -> str:
        return f"{time / factor:.12g}"

    ax.xaxis.set_major_formatter(FuncFormatter(label_of))
    ax.set_xlabel(name, fontsize=_LABEL)
    title = fitting(panel.title, room, _TITLE)
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    ax.annotate(
        line_of_facts(panel.facts(), room, _SUBTITLE),
        (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points",
        fontsize=_SUBTITLE, color=QUIET, clip_on=False, gid="subtitle",
    )  # fmt: skip


# ------------------------------------------------------------------ bars and names
def _bars(ax: Axes, panel: Panel) -> None:
    """One collection for all bars that look alike: thousands of spans draw in a moment."""
    alike: dict[tuple[SpanKind, bool], list[Bar]] = {}
    for bar in panel.layout.bars:
        alike.setdefault((bar.span.kind, panel.out(bar)), []).append(bar)
        if bar.waiting is not None:
            y = bar.y + bar.height / 2
            ax.hlines(y, *bar.waiting, QUIET, _DOTTED, linewidth=4, zorder=2, gid="room")
    line = 0.8 if len(panel.layout.bars) <= 400 else 0.3
    for (kind, out), bars in alike.items():
        look = KIND_LOOKS[kind]
        boxes = PolyCollection(
            [_corners(bar) for bar in bars],
            facecolor=look.colour,
            edgecolor=INK if out else darker(look.colour),
            hatch=look.hatch or None,
            linewidth=1.6 if out else line,
            alpha=_FADED if panel.highlight is not None and not out else None,
            zorder=3,
            gid=f"span:{kind}",
        )
        ax.add_collection(boxes, autolim=False)


def _corners(bar: Bar) -> list[tuple[float, float]]:
    start, end, top, bottom = bar.span.start, bar.span.end, bar.y, bar.bottom
    return [(start, top), (end, top), (end, bottom), (start, bottom)]


def _names(ax: Axes, panel: Panel, room: float) -> None:
    left, right = ax.get_xlim()
    for name in bar_names(panel, room / (right - left), UNIT * _POINTS, _NAME):
        bar, look = name.bar, KIND_LOOKS[name.bar.span.kind]
        patch = {"facecolor": lighter(look.colour), "edgecolor": "none", "pad": 1.2}
        ax.text(
            name.middle,
            bar.y + bar.height / 2,
            name.text,
            ha="center",
            va="center_baseline",
            fontsize=name.size,
            color=INK,
            bbox=patch if look.hatch and not panel.faded(bar) else None,
            clip_on=True,
            zorder=5,
            gid="name",
        )


# ------------------------------------------------------------------ arrows and the legend
def _arrows(ax: Axes, panel: Panel) -> None:
    paths = [arrow.points for arrow in panel.arrows]
    if not paths:
        return
    # All halos are drawn before all lines, because the halo of one arrow would cut the line of another.
    ax.add_collection(LineCollection(paths, colors="white", linewidths=4, zorder=4), autolim=False)
    lines = LineCollection(paths, colors=EVENT, linewidths=2, zorder=4, gid="dependency")
    ax.add_collection(lines, autolim=False)
    for marker, down in (("v", True), ("^", False)):
        tips = [a.points[-1] for a in panel.arrows if (a.before.y < a.after.y) == down]
        x, y = zip(*tips, strict=True) if tips else ((), ())
        ax.plot(x, y, marker, color=EVENT, markersize=7, markeredgewidth=0, zorder=4)


def _handles(panels: Sequence[Panel]) -> list[Artist]:
    handles: list[Artist] = []
    for mark, words in legend_items(panels):
        if mark == "room":
            handles.append(Line2D([], [], color=QUIET, linestyle=_DOTTED, linewidth=4, label=words))
        elif mark == "event":
            handles.append(Line2D([], [], color=EVENT, linewidth=1.1, label=words))
        else:
            look = KIND_LOOKS[mark]
            edge, hatch = darker(look.colour), look.hatch or None
            handles.append(Patch(facecolor=look.colour, edgecolor=edge, hatch=hatch, label=words))
    return handles
