"""An analysis as a picture: the timeline, and below it what was computed from it."""

# The types of matplotlib leave **kwargs without one: each of its methods is "partially unknown".
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncgpu_tutor.traces.analysis.depth import Depth, OverlapMatrix
from asyncgpu_tutor.traces.analysis.idle import CAUSES, Cause
from asyncgpu_tutor.traces.pictures import plot
from asyncgpu_tutor.traces.pictures.draw import UNIT
from asyncgpu_tutor.traces.pictures.layout import arrange
from asyncgpu_tutor.traces.pictures.style import INK, OP_COLOURS, QUIET, UNOWNED, darker
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["draw"]

_LOWER = 1.9  # inches: the depth of the queue; the two pictures below it are a little taller
_COLOURS: Mapping[Cause, str] = dict(zip(CAUSES, (*OP_COLOURS[:5], UNOWNED), strict=True))
_HATCHES: Mapping[Cause, str] = dict(
    zip(CAUSES, ("////", "", "\\\\\\\\", "....", "xx", ""), strict=True)
)


def draw(
    trace: Trace,
    depth: Depth,
    idle: Mapping[str, Mapping[Cause, float]],
    overlap: OverlapMatrix,
    *,
    width: float,
) -> Figure:
    """Draw the parts of an `Analysis`; `idle` has the idle time of the device and of each stream."""
    lanes = max(arrange(trace, ("host", "streams")).height, 2.0) * UNIT + 0.9
    figure = plt.figure(figsize=(width, lanes + 2 * _LOWER + 2.0), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(lanes, _LOWER, _LOWER + 0.3))
    timeline = figure.add_subplot(grid[0, :])
    plot(
        trace,
        title="Timeline, its critical path in full colour",
        lanes=("host", "streams"),
        highlight="critical path" if trace.spans else None,
        legend=False,
    ).draw_on(timeline)
    _depth(figure.add_subplot(grid[1, :]), depth, timeline.get_xlim())
    _idle(figure.add_subplot(grid[2, 0]), idle)
    _matrix(figure.add_subplot(grid[2, 1]), overlap)
    return figure


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, loc="left", fontsize=11, color=INK)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=9, colors=QUIET)


def _depth(ax: Axes, depth: Depth, limits: tuple[float, float]) -> None:
    ax.step(depth.times, depth.depths, where="post", color=darker(OP_COLOURS[5], 0.7))
    ax.fill_between(depth.times, depth.depths, step="post", color=OP_COLOURS[5], alpha=0.3)
    ax.set_xlim(limits)
    ax.set_ylim(0, max(depth.max, 1) * 1.1)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    ax.set_xlabel("time in µs", fontsize=9, color=QUIET)
    _title(ax, "Queue depth: asked for and not done")


def _idle(ax: Axes, idle: Mapping[str, Mapping[Cause, float]]) -> None:
    rows = list(idle)
    left = [0.0] * len(rows)
    for cause in CAUSES:
        values = [part[cause] for part in idle.values()]
        if not any(values):
            continue
        ax.barh(
            rows,
            values,
            left=left,
            label=cause,
            color=_COLOURS[cause],
            edgecolor=darker(_COLOURS[cause]),
            hatch=_HATCHES[cause],
            linewidth=0.8,
        )
        left = [x + value for x, value in zip(left, values, strict=True)]
    ax.invert_yaxis()
    ax.set_xlabel("idle, µs", fontsize=9, color=QUIET)
    if any(left):
        ax.legend(
            fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=3
        )
    _title(ax, "Idle time by cause")


def _matrix(ax: Axes, matrix: OverlapMatrix) -> None:
    names = matrix.names
    _title(ax, "Together at work, µs (diagonal: at work)")
    if not names:
        ax.set_axis_off()
        return
    most = float(matrix.us.max()) or 1.0
    ax.imshow(matrix.us, cmap="Blues", vmin=0.0, vmax=1.6 * most, aspect="auto")
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    if len(names) <= 8:
        for i in range(len(names)):
            for j in range(len(names)):
                text = f"{matrix.us[i, j]:.0f}"
                ax.text(j, i, text, ha="center", va="center", fontsize=8, color=INK)
