"""Everything about one trace, as text and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from asyncgpu_tutor.traces.analysis.defects import diagnose
from asyncgpu_tutor.traces.analysis.depth import Depth, OverlapMatrix, overlap_matrix, queue_depth
from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import (
    CAUSE_WORDS,
    CAUSES,
    Cause,
    Idle,
    idle_of_device,
    idle_of_streams,
)
from asyncgpu_tutor.traces.spans import Metrics
from asyncgpu_tutor.traces.spans.lanes import stream_numbers
from asyncgpu_tutor.traces.spans.shown import NOTHING, Lines, html_table
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count
from asyncgpu_tutor.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Analysis", "analyse", "by_cause"]


def by_cause(idle: Iterable[Idle]) -> dict[Cause, float]:
    """Idle time, in us, summed by cause; every cause has an entry."""
    parts: dict[Cause, list[float]] = {cause: [] for cause in CAUSES}
    for stretch in idle:
        parts[stretch.cause].append(stretch.duration)
    return {cause: math.fsum(values) for cause, values in parts.items()}


@dataclass(frozen=True, repr=False)
class Analysis:
    """What a trace tells about its program; see `analyse`.

    Attributes
    ----------
    trace : Trace
    metrics : Metrics
        The usual numbers.
    streams : tuple of Idle
        The pauses of each stream, by cause.
    idle : tuple of Idle
        The pauses of the device: no stream worked.
    depth : Depth
        How much was queued, over time.
    overlap : OverlapMatrix
        Which streams worked together.
    findings : tuple of Finding
        What is wrong, worst first.
    """

    trace: Trace
    metrics: Metrics
    streams: tuple[Idle, ...]
    idle: tuple[Idle, ...]
    depth: Depth
    overlap: OverlapMatrix
    findings: tuple[Finding, ...]

    @property
    def idle_by_cause(self) -> dict[Cause, float]:
        """How long the device stood still for which cause, in us."""
        return by_cause(self.idle)

    def stream_idle_by_cause(self, stream: int) -> dict[Cause, float]:
        """How long a stream stood still for which cause, in us, up to its last work."""
        return by_cause(idle for idle in self.streams if idle.stream == stream)

    def __repr__(self) -> str:
        if not self.trace.device_spans:
            return f"<Analysis: no device work. {NOTHING}>"
        m = self.metrics
        found = ", ".join(finding.name for finding in self.findings) or "none"
        return (
            f"<Analysis of {count(len(self.trace), 'span')}: device busy {m.device_active:.1f} us, idle "
            f"{m.device_idle:.1f} us, overlap {m.overlap_fraction:.0%}; findings: {found}>"
        )

    def _repr_html_(self) -> str:
        if not self.trace.device_spans:
            return f"<p>{escape(NOTHING)}</p>"
        found = "".join(
            f"<li><b>{escape(f.title)}</b>: {escape(f.sentence)} <i>{escape(f.advice)}</i></li>"
            for f in self.findings
        )
        told = f"<ol>{found}</ol>" if found else "<p>The detective found nothing.</p>"
        causes = [
            (f"{c}: {CAUSE_WORDS[c]}", f"{us:.1f}") for c, us in self.idle_by_cause.items() if us
        ]
        idle = html_table(causes, head=("Why the device stood still", "us"))
        path = self.trace.plot(
            title="Timeline, and its critical path",
            lanes=("host", "streams"),
            highlight="critical path",
        )
        return told + self.metrics._repr_html_() + (idle if causes else "") + path._repr_html_()

    def table(self) -> Lines:
        """All of it as text. Times are in us."""
        return Lines("\n".join(self._lines()))

    def plot(self, *, width: float = 10.0) -> Figure:
        """Draw the timeline with its critical path, the queue depth, idle time by cause, and the overlaps."""
        # Only now, because matplotlib is slow to import.
        from asyncgpu_tutor.traces.analysis._overview_picture import draw

        idle = {"device": self.idle_by_cause}
        idle |= {name: self.stream_idle_by_cause(n) for n, name in self._names().items()}
        return draw(self.trace, self.depth, idle, self.overlap, width=width)

    def _names(self) -> dict[int, str]:
        """What the lane of each stream is called."""
        return {n: f"stream {number}" for (_, n), number in stream_numbers(self.trace).items()}

    def _lines(self) -> Iterator[str]:
        m = self.metrics
        title = self.trace.device or "trace"
        yield f"Analysis of {title} ({clock_words(self.trace.clock)}), us"
        if not self.trace.device_spans:
            yield "No device work was recorded."
            return
        yield ""
        yield f"device    busy {m.device_active:.1f}, idle {m.device_idle:.1f} of {m.device_makespan:.1f}"
        yield f"overlap   {m.overlap:.1f}: {m.overlap_fraction:.0%} of the busy time"
        yield f"queue     {self.depth.mean:.1f} on average, {self.depth.max} at most"
        yield ""
        yield "Why the device stood still:"
        yield from _causes(self.idle_by_cause)
        for number, name in self._names().items():
            parts = self.stream_idle_by_cause(number)
            told = ", ".join(f"{cause} {us:.1f}" for cause, us in parts.items() if us)
            yield f"  {name}: {told or 'never'}"
        if len(self.overlap.streams) > 1:
            yield ""
            yield "Together at work (the diagonal: at work at all):"
            yield from self.overlap.lines()
        yield ""
        yield f"Critical path: {count(len(m.critical_path), 'step')}, {m.critical_idle:.1f} of it idle"
        yield ""
        if not self.findings:
            yield "The detective found nothing."
        for number, finding in enumerate(self.findings, 1):
            yield f"{number}. {finding.title}: {finding.sentence}"
            yield f"   What to do: {finding.advice}"


def _causes(parts: dict[Cause, float]) -> Iterator[str]:
    total = math.fsum(parts.values())
    if not total:
        yield "  it did not"
    for cause, us in sorted(parts.items(), key=lambda part: -part[1]):
        if us:
            yield f"  {cause:<12} {us:>10.1f}  {us / total:>4.0%}  {CAUSE_WORDS[cause]}"


def analyse(trace: Trace) -> Analysis:
    """Ask a trace everything: idle time by cause, queue depth, overlaps, critical path, defects.

    Parameters
    ----------
    trace : Trace
        Simulated, measured, recorded or read from a profiler's export.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync()
    >>> agt.analyse(trace).depth.max
    1
    """
    return Analysis(
        trace,
        trace.metrics(),
        tuple(idle_of_streams(trace)),
        tuple(idle_of_device(trace)),
        queue_depth(trace),
        overlap_matrix(trace),
        tuple(diagnose(trace)),
    )
