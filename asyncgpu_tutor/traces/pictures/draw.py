"""Put a layout on matplotlib Axes."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Literal

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from asyncgpu_tutor.traces.pictures._fitting import BarName, Subtitle, text_width
from asyncgpu_tutor.traces.pictures.layout import ArrowKind, Bar
from asyncgpu_tutor.traces.pictures.panel import Panel, legend_items
from asyncgpu_tutor.traces.pictures.style import (
    EVENT,
    INK,
    KIND_LOOKS,
    PAPER,
    QUIET,
    RULE,
    Look,
    darker,
    lighter,
)

# The sizes of a figure are in inches.
UNIT = 0.31  # the height of a lane
_ABOVE = 0.58  # title and subtitle
_AXIS = 0.52  # tick labels and the axis' name
_TICKS = 0.3  # tick labels alone
_LEGEND_ROW = 0.22
_LEGEND_COLUMN = 1.3
_RIGHT = 0.15

_FADED = 0.25
_MOST_NAMES = 2000  # with more bars, only those get a name where it may fit

_DOTTED = (0, (0.4, 0.6))  # the line of what waits for room
_ARROW_STYLES: dict[ArrowKind, Literal["-", ":", "--"]] = {
    "event": "-",
    "launch": ":",
    "sync": "--",
}


# ------------------------------------------------------------------ figures
def draw_figure(
    panels: Sequence[Panel], *, width: float, legend: bool, side_by_side: bool = False
) -> list[Axes]:
    """Draw panels in a new figure that is as high as they need."""
    handles = _handles(panels) if legend else []
    label = max((text_width(band.label, 9) for p in panels for band in p.layout.bands), default=20)
    left = label / 72 + 0.25
    columns = len(panels) if side_by_side else 1
    inner = (width - columns * (left + _RIGHT)) / columns
    below = _AXIS + _LEGEND_ROW * _legend_rows(len(handles), width) + 0.05
    tall = [panel.height * UNIT for panel in panels]
    # Panels one above the other whose clock is the same need only the name of the last axis.
    named = side_by_side or len({panel.trace.clock for panel in panels}) > 1
    between = (_AXIS if named else _TICKS) + _ABOVE
    lanes = max(tall) if side_by_side else sum(tall) + (len(panels) - 1) * between
    height = _ABOVE + lanes + below
    figure = plt.figure(figsize=(width, height))
    found: list[Axes] = []
    top = height - _ABOVE
    for number, panel in enumerate(panels):
        x = left + (number * (inner + left + _RIGHT) if side_by_side else 0)
        box = (x / width, (top - tall[number]) / height, inner / width, tall[number] / height)
        ax = figure.add_axes(box)
        draw_panel(ax, panel, legend=False)
        if not named and number + 1 < len(panels):
            ax.set_xlabel("")
        found.append(ax)
        if not side_by_side:
            top -= tall[number] + between
    if handles:
        _figure_legend(figure, handles, left, below)
    return found


def draw_panel(ax: Axes, panel: Panel, *, legend: bool) -> None:
    """Draw one timeline on given Axes, as large as they are."""
    layout = panel.layout
    _frame(ax, panel)
    if not layout.bars:
        ax.set_xticks([])
        said = fill(panel.said, 70)
        ax.text(0.5, 0.5, said, transform=ax.transAxes, ha="center", va="center", color=QUIET)
        return
    _rooms(ax, panel)
    _bars(ax, panel)
    _arrows(ax, panel)
    _names(ax, panel)
    if legend:
        _axes_legend(ax, _handles([panel]))


# ------------------------------------------------------------------ the frame
def _frame(ax: Axes, panel: Panel) -> None:
    layout = panel.layout
    margin = 0.01 * (layout.end - layout.begin)
    ax.set_xlim(layout.begin - margin, layout.end + margin)
    ax.set_ylim(max(layout.height, 2.0), 0)
    for band in layout.bands:
        if band.shaded:
            ax.axhspan(band.y, band.y + band.height, color=PAPER, zorder=0, linewidth=0)
    for y in layout.separators:
        ax.axhline(y, color=RULE, linewidth=0.8, zorder=1)
    ticks = [(band.y + band.height / 2, band.label) for band in layout.bands]
    ticks += [(y, name) for name, y in layout.headers]
    ax.set_yticks([y for y, _ in ticks], [label for _, label in ticks], fontsize=9)
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
        return f"{time / factor:g}"

    ax.xaxis.set_major_formatter(FuncFormatter(label_of))
    ax.set_xlabel(name, fontsize=9)
    ax.set_title(panel.title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    ax.add_artist(Subtitle(ax, panel.facts(), fontsize=8.5, color=QUIET, gid="subtitle"))


# ------------------------------------------------------------------ bars and names
def _bars(ax: Axes, panel: Panel) -> None:
    """One collection for all bars that look alike: thousands of spans draw in a moment."""
    alike: dict[tuple[str, Look, bool], list[Bar]] = {}
    for bar in panel.layout.bars:
        out = panel.highlight is not None and bar.span.id in panel.highlight
        alike.setdefault((bar.span.kind, panel.look(bar), out), []).append(bar)
    line = 0.8 if len(panel.layout.bars) <= 400 else 0.3
    for (kind, look, out), bars in alike.items():
        corners = [
            [
                (b.span.start, b.y),
                (b.span.end, b.y),
                (b.span.end, b.bottom),
                (b.span.start, b.bottom),
            ]
            for b in bars
        ]
        boxes = PolyCollection(
            corners,
            facecolor=look.colour,
            edgecolor=INK if out else darker(look.colour),
            hatch=look.hatch or None,
            linewidth=1.6 if out else line,
            alpha=_FADED if panel.highlight is not None and not out else None,
            zorder=3,
            gid=f"span:{kind}",
        )
        ax.add_collection(boxes, autolim=False)


def _rooms(ax: Axes, panel: Panel) -> None:
    """Where a kernel waited for its first place: hatched and thin, since it is no work."""
    for bar in panel.layout.bars:
        if bar.waiting is not None:
            ax.hlines(
                bar.y + bar.height / 2,
                *bar.waiting,
                colors=QUIET,
                linewidth=4,
                linestyles=_DOTTED,
                zorder=2,
                gid="room",
            )


def _names(ax: Axes, panel: Panel) -> None:
    bars = panel.layout.bars
    if len(bars) > _MOST_NAMES:
        least = (panel.layout.end - panel.layout.begin) / 100
        bars = [bar for bar in bars if bar.span.duration > least]
    for bar in bars:
        look = panel.look(bar)
        faded = panel.faded(bar)
        patch = {"facecolor": lighter(look.colour), "edgecolor": "none", "pad": 1.2}
        name = BarName(
            bar,
            panel.text(bar),
            color=INK,
            bbox=patch if look.hatch and not faded else None,
            clip_on=True,
            zorder=5,
            gid="name",
        )
        ax.add_artist(name)


# ------------------------------------------------------------------ arrows
def _arrows(ax: Axes, panel: Panel) -> None:
    for kind, style in _ARROW_STYLES.items():
        arrows = [arrow for arrow in panel.arrows if arrow.kind == kind]
        if not arrows:
            continue
        paths = [arrow.points for arrow in arrows]
        strong = kind == "event"
        # All halos are drawn before all lines, because the halo of one arrow would cut the line of another.
        if strong:
            halo = LineCollection(paths, colors="white", linewidths=4, zorder=4)
            ax.add_collection(halo, autolim=False)
        lines = LineCollection(
            paths,
            colors=EVENT if strong else QUIET,
            linewidths=2 if strong else 0.7,
            linestyles=style,
            zorder=4,
            gid=f"dependency:{kind}",
        )
        ax.add_collection(lines, autolim=False)
        for marker, down in (("v", True), ("^", False)):
            tips = [a.points[-1] for a in arrows if (a.before.y < a.after.y) == down]
            ax.plot(
                [x for x, _ in tips],
                [y for _, y in tips],
                marker=marker,
                linestyle="none",
                color=EVENT if strong else QUIET,
                markersize=7 if strong else 3,
                markeredgewidth=0,
                zorder=4,
            )


# ------------------------------------------------------------------ legends
def _handles(panels: Sequence[Panel]) -> list[Artist]:
    handles: list[Artist] = []
    for item in legend_items(panels):
        look = item.look
        if look is not None:
            own = item.kind is not None and look == KIND_LOOKS[item.kind]
            edge = darker(look.colour) if own else QUIET
            hatch = look.hatch or None
            handles.append(
                Patch(facecolor=look.colour, edgecolor=edge, hatch=hatch, label=item.words)
            )
            continue
        style, wide = (_ARROW_STYLES[item.arrow], 1.1) if item.arrow else (_DOTTED, 4)
        ink = EVENT if item.arrow == "event" else QUIET
        handles.append(Line2D([], [], color=ink, linestyle=style, linewidth=wide, label=item.words))
    return handles


def _legend_columns(width: float) -> int:
    return max(1, int(width / _LEGEND_COLUMN))


def _legend_rows(number: int, width: float) -> int:
    return -(-number // _legend_columns(width))


def _figure_legend(figure: Figure, handles: list[Artist], left: float, below: float) -> None:
    width, height = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(left / width, (below - _AXIS) / height),
        ncols=min(_legend_columns(width), len(handles)),
        **_LEGEND_LOOKS,
    )


def _axes_legend(ax: Axes, handles: list[Artist]) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = ax.get_window_extent().width / figure.dpi
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=ax.transAxes + ScaledTranslation(0, -_AXIS, figure.dpi_scale_trans),
        ncols=min(_legend_columns(width), len(handles)),
        **_LEGEND_LOOKS,
    )


_LEGEND_LOOKS = {
    "fontsize": 8,
    "frameon": False,
    "borderaxespad": 0,
    "borderpad": 0,
    "columnspacing": 1.4,
    "handlelength": 2.2,
    "handleheight": 1.1,
}
