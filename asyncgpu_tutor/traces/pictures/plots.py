"""The two functions that people call."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.pictures.layout import Layout, arrange
from asyncgpu_tutor.traces.spans import measure
from asyncgpu_tutor.traces.spans.lanes import GROUPS, Group
from asyncgpu_tutor.traces.spans.relations import Spans, select
from asyncgpu_tutor.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ColourBy", "Dependencies", "compare_timelines", "plot"]

ColourBy = Literal["kind", "op"]
Dependencies = bool | Literal["all"]


def plot(
    trace: Trace,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    lanes: Collection[Group] = GROUPS,
    show_dependencies: Dependencies = True,
    color_by: ColourBy = "kind",
    highlight: Spans | None = None,
    legend: bool = True,
    width: float = 10.0,
) -> Axes:
    """Draw the timeline of a trace.

    From top to bottom: the host, the streams, and the engines (each copy direction, and compute),
    whose bars are those of the streams once more, under the stream's number. With several devices,
    each has its own streams and engines. The clock is named under the title and along the axis.

    Parameters
    ----------
    trace : Trace
        A finished recording.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default in a new figure of a fitting height.
    title : str, optional
        By default "Timeline".
    lanes : collection of {"host", "streams", "engines"}
        Which lanes to draw.
    show_dependencies : bool or "all"
        Draw an arrow where a stream waits for an event of another. With ``"all"``, also from each
        host call to what it enqueued, and from what the host waited for to the end of that wait.
    color_by : {"kind", "op"}
        What the colours mean; ``"op"`` gives each submission its own. Patterns always mean kinds.
    highlight : Span, str or iterable of Span, optional
        Let these stand out: spans, all spans of a name, or those on the ``"critical path"``.
    legend : bool
        Put a legend below the axis.
    width : float
        Of the new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
        Its x data are us, also where the labels along the axis are ms.

    Raises
    ------
    UsageError
        If `lanes`, `color_by`, `show_dependencies` or a name in `highlight` is not known.
    """
    _check("color_by", color_by, get_args(ColourBy))
    _check("show_dependencies", show_dependencies, (True, False, "all"))
    # Only now, because matplotlib is slow to import.
    from asyncgpu_tutor.traces.pictures.draw import Panel, draw_figure, draw_panel

    panel = Panel(
        trace=trace,
        layout=_layout(trace, lanes),
        title="Timeline" if title is None else title,
        dependencies=show_dependencies,
        color_by=color_by,
        highlight=_highlighted(trace, highlight),
    )
    if ax is None:
        return draw_figure([panel], width=width, legend=legend)[0]
    draw_panel(ax, panel, legend=legend)
    return ax


def compare_timelines(
    traces: Sequence[Trace],
    titles: Sequence[str] | None = None,
    *,
    lanes: Collection[Group] = ("host", "streams"),
    show_dependencies: Dependencies = True,
    color_by: ColourBy = "kind",
    highlight: Sequence[Spans | None] | None = None,
    side_by_side: bool = False,
    width: float = 10.0,
) -> list[Axes]:
    """Draw several traces on one scale: the same length is the same time in all of them.

    Parameters
    ----------
    traces : sequence of Trace
        At least one.
    titles : sequence of str, optional
        One for each trace. By default their devices.
    side_by_side : bool
        Put them in one row; by default they are stacked, so that ends can be compared along a line.
    highlight : sequence, optional
        What stands out in each trace, as for `plot`; None where nothing does.
    lanes, show_dependencies, color_by, width
        As for `plot`.

    Returns
    -------
    list of matplotlib.axes.Axes
        One for each trace, of one figure.

    Raises
    ------
    UsageError
        If there is no trace, or not one title or highlight for each.
    """
    _check("color_by", color_by, get_args(ColourBy))
    _check("show_dependencies", show_dependencies, (True, False, "all"))
    if not traces:
        raise UsageError("compare_timelines needs at least one trace, and was given none")
    names = [trace.device or "Timeline" for trace in traces] if titles is None else list(titles)
    if len(names) != len(traces):
        raise UsageError(
            f"compare_timelines needs one title for each trace: {len(traces)} traces, {len(names)} titles"
        )
    marked = [None] * len(traces) if highlight is None else list(highlight)
    if len(marked) != len(traces):
        raise UsageError(
            f"compare_timelines needs one highlight for each trace: {len(traces)} traces, "
            f"{len(marked)} highlights"
        )
    # As in `plot`, only now.
    from asyncgpu_tutor.traces.pictures.draw import Panel, draw_figure

    panels = [
        Panel(
            trace,
            _layout(trace, lanes),
            name,
            show_dependencies,
            color_by,
            _highlighted(trace, spans),
        )
        for trace, name, spans in zip(traces, names, marked, strict=True)
    ]
    begin = min(panel.layout.begin for panel in panels)
    end = max(panel.layout.end for panel in panels)
    for panel in panels:
        panel.layout.begin, panel.layout.end = begin, end
    return draw_figure(panels, width=width, legend=True, side_by_side=side_by_side)


def _layout(trace: Trace, lanes: Collection[Group]) -> Layout:
    for group in lanes:
        _check("lanes", group, GROUPS)
    return arrange(trace, lanes)


def _highlighted(trace: Trace, highlight: Spans | None) -> frozenset[int] | None:
    if highlight is None:
        return None
    if highlight == "critical path":
        return frozenset(span.id for span in measure(trace).critical_spans)
    return frozenset(span.id for span in select(trace, highlight))


def _check(parameter: str, given: object, known: Collection[object]) -> None:
    if given not in known:
        choices = ", ".join(repr(choice) for choice in known)
        raise UsageError(f"{parameter} is {given!r}, and must be one of {choices}")
