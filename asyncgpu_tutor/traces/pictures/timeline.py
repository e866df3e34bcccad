"""A timeline as an object: a notebook shows it, and `save` writes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncgpu_tutor.errors import UsageError, demand, entries_of
from asyncgpu_tutor.traces.live import show
from asyncgpu_tutor.traces.pictures import svg
from asyncgpu_tutor.traces.pictures.alternative_text import alt_text
from asyncgpu_tutor.traces.pictures.layout import arrange
from asyncgpu_tutor.traces.pictures.panel import Panel
from asyncgpu_tutor.traces.spans import measure
from asyncgpu_tutor.traces.spans.lanes import GROUPS, LaneGroup
from asyncgpu_tutor.traces.spans.notebook_output import printable
from asyncgpu_tutor.traces.spans.relations import Spans, select
from asyncgpu_tutor.traces.spans.whole_file import write_whole

if TYPE_CHECKING:
    from asyncgpu_tutor.traces.trace import Trace

_XML = '<?xml version="1.0" encoding="utf-8"?>\n'
_WIDTH = 760  # pixels
_MOST_LIVE = 8000  # spans that a browser redraws while one drags


@dataclass(frozen=True)
class Timeline:
    """Timelines on one scale; made by `plot` and `compare_timelines`.

    As the last line of a cell it is live where the package ``anywidget`` is installed, and otherwise a still
    picture; both follow the colours of the page.
    """

    panels: tuple[Panel, ...]
    lesson: str = ""

    def __post_init__(self) -> None:
        demand(self.lesson, str, "the lesson of a picture is a text")

    def __repr__(self) -> str:
        return f"<{self.words}>"

    @property
    def words(self) -> str:
        """A description for those who cannot see it: its lesson first, if it was given one."""
        told = [(p.title, alt_text(p.trace, p.metrics)) for p in self.panels]
        counts = [words if len(told) == 1 else f"{title}: {words}" for title, words in told]
        return printable(" ".join([self.lesson, *counts] if self.lesson else counts))

    def svg(self) -> str:
        """The still picture: it stands alone, and is light or dark as the page is."""
        return svg.draw(self.panels, self.words, width=_WIDTH)

    def save(self, path: str | Path) -> None:
        """Write it to a file, as SVG: browsers, slides and text processors show that in any size."""
        path = Path(path)
        if path.suffix != ".svg":
            raise UsageError(f"{path}: a picture's name has to end in .svg")
        write_whole(path, f"{_XML}{self.svg()}\n")

    def _repr_html_(self) -> str:
        return svg.told_below(self.svg(), self.lesson, self.words)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return show(self.view, html=self._repr_html_(), text=repr(self))

    def view(self) -> dict[str, Any]:
        """The data of the live picture. Nothing is merged, as zooming in shows all, unless it is too much."""
        few = sum(len(panel.trace) for panel in self.panels) <= _MOST_LIVE
        panels = [panel.whole() for panel in self.panels] if few else self.panels
        late = few and panels[0].layout.late
        first = min(s.start for s in panels[0].trace) if late else panels[0].layout.begin
        made = svg.data(panels, self.words)
        return {"view": "timeline", "first": first, "lesson": self.lesson, **made}


def plot(
    trace: Trace,
    *,
    title: str | None = None,
    lanes: Collection[LaneGroup] = GROUPS,
    highlight: Spans | None = None,
    lesson: str = "",
    whole: bool = False,
) -> Timeline:
    """The timeline of a trace, to be looked at.

    From top to bottom: the host, the streams, and the engines (each copy direction, and compute), whose bars
    are those of the streams once more. With several devices, each has its own. An arrow leads to where a
    stream waits for an event of another. Neighbours that are too short to be seen are one bar, with their
    number, as high as they are busy; in a trace of more than 8000 spans, `Trace.between` shows them.

    Parameters
    ----------
    trace : Trace
        A finished recording.
    title : str, optional
        By default "Timeline".
    lanes : collection of {"host", "streams", "engines"}
        Which lanes to draw.
    highlight : Span, str or iterable of Span, optional
        Let these stand out: spans, all spans of a name, or those on the ``"critical path"``.
    lesson : str
        What is to be seen, in a sentence or two: it stands below, and the alternative text begins with it.
    whole : bool
        Draw all of it from 0, though something begins late; so does *All* of a live one.

    Raises
    ------
    UsageError
        If one of `lanes` or a name in `highlight` is not known.
    """
    made = _panel(trace, "Timeline" if title is None else title, lanes, highlight, whole)
    if whole and made.layout.begin > 0:
        made.layout.begin, made.layout.still = 0.0, made.layout.begin
    return Timeline((made,), lesson)


def compare_timelines(
    traces: Sequence[Trace],
    titles: Sequence[str] | None = None,
    *,
    lanes: Collection[LaneGroup] = ("host", "streams"),
    highlight: Sequence[Spans | None] | None = None,
    lesson: str = "",
    together: bool = False,
) -> Timeline:
    """Several traces on one scale: the same length is the same time in all of them.

    Parameters
    ----------
    traces : sequence of Trace
        At least one.
    titles : sequence of str, optional
        One for each trace. By default their devices.
    highlight : sequence, optional
        What stands out in each trace, as for `plot`; None where nothing does.
    lanes, lesson
        As for `plot`.
    together : bool
        Let the device's first work be at 0 in each of them; what the host did before is at negative times.

    Raises
    ------
    UsageError
        If there is no trace, or not one title or highlight for each.
    """
    traces = [*traces] if isinstance(traces, Iterable) else [traces]  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
    if not traces or not all(hasattr(trace, "device_spans") for trace in traces):
        raise UsageError("compare_timelines takes a list of at least one trace, as in [one, two]")
    lanes = entries_of("lanes", lanes, str)  # each trace has all of them
    if together:
        traces = [trace.from_first(trace.device_spans) for trace in traces]
    names = [trace.device or "Timeline" for trace in traces]
    names = names if titles is None else entries_of("titles", titles, str)
    out = [None] * len(traces) if highlight is None else entries_of("highlights", highlight, object)
    for what, given in (("title", names), ("highlight", out)):
        if len(given) != len(traces):
            told = f"{len(traces)} traces, {len(given)} {what}s"
            raise UsageError(f"compare_timelines needs one {what} for each trace: {told}")
    panels = [
        _panel(trace, name, lanes, spans)
        for trace, name, spans in zip(traces, names, out, strict=True)
    ]
    drawn = [panel.layout for panel in panels if panel.layout.bars] or [panels[0].layout]
    begin, end = min(layout.begin for layout in drawn), max(layout.end for layout in drawn)
    for panel in panels:
        panel.layout.begin, panel.layout.end = begin, end
    return Timeline(tuple(panels), lesson)


def _panel(
    trace: Trace,
    title: str,
    lanes: Collection[LaneGroup],
    highlight: Spans | None,
    whole: bool = True,
) -> Panel:
    demand(title, str, "the title of a picture is a text")
    for group in (lanes := entries_of("lanes", lanes, str)):
        if group not in GROUPS:
            choices = ", ".join(repr(choice) for choice in GROUPS)
            raise UsageError(f"lanes has {group!r}, and each must be one of {choices}")
    metrics, out = measure(trace), None
    if highlight is not None:
        path = highlight == "critical path"
        chosen = metrics.critical_spans if path else select(trace, highlight)
        out = frozenset(span.id for span in chosen) or None
    return Panel(trace, arrange(trace, lanes, whole=whole), title, out, metrics, tuple(lanes))
