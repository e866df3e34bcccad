"""Everything about one trace, as text and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape

from asyncgpu_tutor.errors import demand
from asyncgpu_tutor.traces.analysis import idle as pauses
from asyncgpu_tutor.traces.analysis.defects import findings, ranked
from asyncgpu_tutor.traces.analysis.finding import MOST_DEVICES, Finding
from asyncgpu_tutor.traces.analysis.limits import ranks
from asyncgpu_tutor.traces.analysis.sums import Sums, sums
from asyncgpu_tutor.traces.pictures import Timeline
from asyncgpu_tutor.traces.spans import Metrics
from asyncgpu_tutor.traces.spans import notebook_output as page
from asyncgpu_tutor.traces.spans.lanes import lane_name, stream_numbers
from asyncgpu_tutor.traces.spans.span import grouped
from asyncgpu_tutor.traces.spans.vocabulary import clock_words, count
from asyncgpu_tutor.traces.trace import Trace


def by_cause(idle: Iterable[pauses.Idle]) -> dict[pauses.Cause, float]:
    """Idle time, in us, summed by cause; every cause has an entry."""
    parts: dict[pauses.Cause, list[float]] = {cause: [] for cause in pauses.CAUSE_WORDS}
    for stretch in idle:
        parts[stretch.cause].append(stretch.duration)
    return {cause: math.fsum(values) for cause, values in parts.items()}


@dataclass(frozen=True, repr=False)
class Analysis:
    """Conclusions about a program from its trace; see `analyse`.

    Attributes
    ----------
    trace : Trace
    findings : tuple of Finding
        What is wrong, and what limits the program; what costs most comes first.
    devices : mapping of str to Analysis
        Where several devices worked, a report on each. Empty for one device.
    """

    trace: Trace
    findings: tuple[Finding, ...]
    devices: Mapping[str, Analysis]
    _seen: pauses.Evidence = field(compare=False)

    @property
    def _each(self) -> list[pauses.Evidence]:
        return [report._seen for report in self.devices.values()] or [self._seen]

    @property
    def metrics(self) -> Metrics:
        """The usual numbers."""
        return self._seen.metrics

    @cached_property
    def streams(self) -> tuple[pauses.Idle, ...]:
        """The pauses of each stream, by cause: of n streams up to n times as many as there is work."""
        return tuple(idle for seen in self._each for idle in pauses.idle_of_streams(seen))

    @cached_property
    def idle(self) -> tuple[pauses.Idle, ...]:
        """The pauses of the device: no stream worked."""
        return tuple(idle for seen in self._each for idle in seen.idle)

    @cached_property
    def host_late(self) -> Mapping[pauses.HostPart, float]:
        """The time that the host was late, in us, by what it did."""
        each = [seen.host_late for seen in self._each]
        return {part: math.fsum(late[part] for late in each) for part in pauses.HOST_PARTS}

    @cached_property
    def sums(self) -> Sums:
        """Sums by kernel, copy, call and range."""
        return sums(self._seen)

    @property
    def gaps(self) -> list[pauses.Gap]:
        """The pauses of the device, longest first."""
        found = (gap for seen in self._each for gap in seen.gaps)
        return sorted(found, key=lambda gap: -gap.duration)

    @property
    def idle_by_cause(self) -> dict[pauses.Cause, float]:
        """Time in us that the device stood still, by cause."""
        return by_cause(self.idle)

    def __repr__(self) -> str:
        if not self.trace.device_spans:
            return f"<Analysis: no device work{'' if self.trace.spans else f'. {page.NOTHING}'}>"
        m = self.metrics
        found = ", ".join(finding.name for finding in self.findings) or "none"
        damage = "".join(f"; {said}" for said in page.damage_of(self.trace.about))
        return page.printable(
            f"<Analysis of {count(len(self.trace), 'span')}: device busy {m.device_active:.1f} µs, idle "
            f"{m.device_idle:.1f} µs, overlap {m.overlap_fraction:.0%}; findings: {found}{damage}>"
        )

    def _repr_html_(self) -> str:
        nothing = f"<p>{escape(page.NOTHING)}</p>"
        told = self.table()._repr_html_() if self.trace.spans else nothing
        return told + self.plot()._repr_html_()

    def table(self) -> page.Lines:
        """All of it as text. Times are in us."""
        if self.devices:
            reports = (f"===== {name}\n{report.table()}" for name, report in self.devices.items())
            worked = len(self.trace.devices)
            told = f"{worked} devices worked, so there is a report on each."
            if worked > len(self.devices):
                told = f"{worked} devices worked; the first {len(self.devices)} have a report each."
            return page.Lines("\n\n".join((told, *reports)))
        title = f"Analysis of {self.trace.device or 'trace'} ({clock_words(self.trace.clock)}), µs"
        for said in page.damage_of(self.trace.about):
            title += "\n" + "\n".join(page.wrapped(said, 2))
        if not self.trace.device_spans:
            said = page.warnings_of(self.trace.about)
            return page.Lines(f"{title}\nNo device work was recorded.{said}")
        return page.Lines("\n\n".join((title, *("\n".join(part) for part in self._parts()))))

    def plot(self) -> Timeline:
        """The timeline, in which the critical path stands out; its words begin with what was found first."""
        return self.trace.plot(
            title="Timeline, and its critical path",
            lanes=("host", "streams"),
            highlight="critical path" if self.trace.spans else None,
            lesson=self.findings[0].sentence if self.findings else "",
        )

    def _parts(self) -> Iterator[Iterable[str]]:
        """Lines that belong together, from top to bottom."""
        yield self._whole()
        causes = list(_causes(self.idle_by_cause))
        if self.idle_by_cause["host late"]:
            told = ", ".join(f"{part} {us:.1f}" for part, us in self.host_late.items())
            causes.append(f"  of the time that the host was late: {told}")
        yield ("Why the device stood still:", *causes)
        if self.gaps:
            longest = (
                f"  {gap.duration:>12,.1f} µs, from {gap.start:,.1f} on, until "
                f"{page.cut_output(gap.main.span.title, page.NAME)} began; {gap.main.cause}"
                for gap in self.gaps[:_LISTED]
            )
            yield ("Longest pauses:", *longest)
        lines = ["Why each stream stood still:"]
        numbers = stream_numbers(self.trace)
        shown = list(numbers.items())[:_LANES]
        paused = grouped(
            pauses.idle_of_streams(self._seen, {stream for (_, stream), _ in shown}),
            lambda idle: idle.span.stream,
        )
        for (_, stream), number in shown:
            idle = by_cause(paused.get(stream, ()))
            told = ", ".join(f"{cause} {us:.1f}" for cause, us in idle.items() if us)
            lines += page.wrapped(f"  {lane_name(number)}: {told or 'never'}", 4)
        if len(numbers) > _LANES:
            lines.append(f"  and {len(numbers) - _LANES} more")
        yield lines
        yield (self.sums.table().rstrip("\n"),)
        if not self.findings:
            yield ("The detective found nothing.",)
        for number, finding in enumerate(self.findings, 1):
            yield page.wrapped(f"{number}. {finding.title}: {finding.sentence}", 3)
            yield page.wrapped(f"   What to do: {finding.advice}", 3)

    def _whole(self) -> Iterator[str]:
        m, windows = self.metrics, self.trace.windows
        if windows:
            yield (
                f"Only what was asked for within {count(len(windows), 'window')} of the range "
                f"{self.trace.about.get('within', '')!r}, and other work that ran meanwhile."
            )
        part = f", so {m.device_active / m.device_makespan:.0%} busy" if m.device_makespan else ""
        of = f"idle {m.device_idle:.1f} of {m.device_makespan:.1f}"
        yield f"device    busy {m.device_active:.1f}, {of}{part}"
        yield f"overlap   {m.overlap:.1f}: {m.overlap_fraction:.0%} of the busy time"


_LISTED = 5  # pauses
_LANES = 16  # streams


def _causes(parts: dict[pauses.Cause, float]) -> Iterator[str]:
    total = math.fsum(parts.values())
    if not total:
        yield "  it did not"
    for cause, us in sorted(parts.items(), key=lambda part: -part[1]):
        if us:
            yield f"  {cause:<12} {us:>10.1f}  {us / total:>4.0%}  {pauses.CAUSE_WORDS[cause]}"


def analyse(trace: Trace) -> Analysis:
    """Ask a trace everything: idle time by cause, sums, critical path, defects.

    Parameters
    ----------
    trace : Trace
        Simulated, measured, recorded or read from a profiler's export.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync()
    >>> agt.analyse(trace).findings
    ()
    """
    demand(trace, Trace, "analyse takes a trace, such as agt.record() makes")
    seen = pauses.Evidence(trace)
    if len(trace.devices) < 2:
        return _of_one(seen)
    waited = ranks(trace)
    devices = {
        name: _of_one(pauses.Evidence(part, waited.get(name, ())))
        for name, part in trace.each(trace.devices[:MOST_DEVICES])
    }
    named = (
        replace(finding, title=f"{name}: {finding.title}")
        for name, report in devices.items()
        for finding in report.findings
    )
    found = ranked(named, seen.metrics.device_makespan / len(devices))
    return Analysis(trace, found, devices, seen)


def _of_one(seen: pauses.Evidence) -> Analysis:
    found = ranked(findings(seen), seen.metrics.device_makespan)
    return Analysis(seen.trace, found, {}, seen)


def diagnose(trace: Trace) -> list[Finding]:
    """Go through the detective's list, and say what the trace gives evidence for.

    Parameters
    ----------
    trace : Trace
        Of a program that was warmed up, or the loading of its kernels is what will be found.

    Returns
    -------
    list of Finding
        What costs most comes first, be it a defect or a limit of the program (`Finding.limit`), and last what
        costs less than a hundredth of the time. Empty where nothing was found, which is no proof of
        innocence. Several devices are looked at one by one, and a finding's title says whose it is.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync_on(agt.current_device().default_stream)
    >>> [finding.name for finding in agt.diagnose(trace)]
    ['null stream']
    """
    return list(analyse(trace).findings)
