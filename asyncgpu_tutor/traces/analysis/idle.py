"""Why streams stood still, and the device with them. Times in us."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, get_args

from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import Interval, common, gaps, union, within
from asyncgpu_tutor.traces.spans.metrics import scope_of
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_OF, Engine
from asyncgpu_tutor.traces.trace import Trace

__all__ = [
    "CAUSES",
    "CAUSE_WORDS",
    "Cause",
    "Idle",
    "calls_of",
    "idle_of_device",
    "idle_of_streams",
]

Cause = Literal["dependency", "host late", "engine busy", "occupancy", "page", "start-up"]

CAUSES: tuple[Cause, ...] = get_args(Cause)

CAUSE_WORDS: Mapping[Cause, str] = {
    "dependency": "what it needs, on another stream, was not done",
    "host late": "the host had not asked for it",
    "engine busy": "another stream's copy held the copy engine",
    "occupancy": "other kernels filled the SMs",
    "page": "pages of unified memory move when they are touched, and nobody touched one",
    "start-up": "nothing was in its way: what it takes to start",
}

# A pause shorter than this, in us, is not put down to other kernels, because a launch takes as long without
# them: the H200 of this project's recordings starts work 2 to 6 us after the call.
_START = 10.0


@dataclass(frozen=True, slots=True)
class Idle:
    """A stretch of time in which a stream, or the device, did nothing, and why.

    Attributes
    ----------
    device : str
    stream : int
        The stream that was idle; for the device, the one that ended it.
    start, end : float
        In us.
    cause : Cause
        See `CAUSE_WORDS`.
    span : Span
        What ran next.
    blocker : Span or None
        What it had to wait for: the call, the span on another stream, or the copy. None for
        ``"start-up"``, and where several kernels filled the SMs.
    """

    device: str
    stream: int
    start: float
    end: float
    cause: Cause
    span: Span
    blocker: Span | None = None

    @property
    def duration(self) -> float:
        """In us."""
        return self.end - self.start


def calls_of(trace: Trace) -> dict[int, Span]:
    """For each device span, by id, the host's call that enqueued it."""
    calls = {span.id: span for span in trace if span.kind == "call"}
    return {
        span.id: calls[max(found)]
        for span in trace.device_spans
        if (found := [i for i in span.after if i in calls])
    }


def idle_of_streams(trace: Trace) -> list[Idle]:
    """The pauses of each stream before its spans, each split by cause, by start.

    Before the first span of a stream, the pause begins with the first work of the device. What follows the
    last one is not idle: there was nothing to do. Where the trace has windows, only what lies in one counts.
    A pause is split as follows, in this order:

    - until the last span on another stream that it had to wait for ended: ``"dependency"``;
    - from then until the host's call that asked for it returned: ``"host late"``;
    - from then on, as long as another stream's copy in its direction ran: ``"engine busy"``; for a kernel
      that is known to have waited for room, or paused for more than 10 us, as long as other kernels ran:
      ``"occupancy"``;
    - the rest: ``"start-up"``.

    Before pages of unified memory, all of it is ``"page"``: no call asks for them, and no stream holds them.
    """
    pauses = _Pauses(trace)
    before = stream_predecessors(pauses.device)
    found: list[Idle] = []
    for span in pauses.device:
        if span.stream is not None:
            past = before.get(span.id)
            since = pauses.begins[span.device] if past is None else past.end
            found += pauses.before(span, since)
    if trace.windows:
        scopes = {name: scope_of(line, trace.windows) for name, line in pauses.lines.items()}
        found = [
            replace(idle, start=start, end=end)
            for idle in found
            for start, end in within(scopes[idle.device], idle.start, idle.end)
        ]
    return sorted(found, key=lambda idle: (idle.start, idle.span.id))


def idle_of_device(trace: Trace) -> list[Idle]:
    """The pauses in which no stream of a device worked, each split by the cause of what ended it.

    Between the first start and the last end on the device, or of each window. Of several devices, each has
    its own pauses. Together they take as long as the device was idle.
    """
    pauses = _Pauses(trace)
    found: list[Idle] = []
    for _, line in sorted(pauses.lines.items()):
        busy = union((s.start, s.end) for s in line)
        for start, end in common(gaps(busy), scope_of(line, trace.windows)):
            first = line[bisect_left(line, end, key=lambda s: s.start)]
            found += pauses.before(first, start)
    return found


class _Pauses:
    """Splits the pause before a piece of work by cause."""

    def __init__(self, trace: Trace) -> None:
        self.device = trace.device_spans
        self.lines: dict[str, list[Span]] = {}
        for span in self.device:
            self.lines.setdefault(span.device, []).append(span)
        for line in self.lines.values():
            line.sort(key=lambda s: (s.start, s.id))
        self.begins = {name: line[0].start for name, line in self.lines.items()}
        self._by_id = {span.id: span for span in self.device}
        self._calls = calls_of(trace)
        self._engines = _Engines(self.device)

    def before(self, span: Span, since: float) -> Iterable[Idle]:
        """The parts of the pause from `since` to the start of `span`."""
        if since >= span.start:
            return ()
        if span.stream == UNIFIED_MEMORY:
            return (Idle(span.device, span.stream, since, span.start, "page", span),)
        others = [
            other
            for i in span.after
            if (other := self._by_id.get(i)) is not None
            and (other.stream, other.device) != (span.stream, span.device)
        ]
        return _split(span, since, others, self._calls.get(span.id), self._engines)


class _Engines:
    """The device spans of each engine, by start, to be asked for those of a short time."""

    def __init__(self, device: list[Span]) -> None:
        self._spans: dict[tuple[str, Engine], list[Span]] = {}
        for span in sorted(device, key=lambda s: s.start):
            self._spans.setdefault((span.device, ENGINE_OF[span.kind]), []).append(span)
        self._starts = {key: [s.start for s in spans] for key, spans in self._spans.items()}
        # For each span the latest end up to it: `rivals` can then skip all spans that had ended.
        self._latest = {
            key: list(accumulate((s.end for s in spans), max)) for key, spans in self._spans.items()
        }

    def rivals(self, span: Span, since: float) -> list[Span]:
        """What other streams had on the span's engine, at any time from `since` to its start."""
        key = span.device, ENGINE_OF[span.kind]
        spans = self._spans[key]
        first = bisect_right(self._latest[key], since)
        last = bisect_left(self._starts[key], span.start)
        return [s for s in spans[first:last] if s.stream != span.stream and s.end > since]


def _split(
    span: Span, start: float, others: list[Span], call: Span | None, engines: _Engines
) -> Iterable[Idle]:
    stream = UNIFIED_MEMORY if span.stream is None else span.stream

    def part(begin: float, end: float, cause: Cause, blocker: Span | None = None) -> Idle:
        return Idle(span.device, stream, begin, end, cause, span, blocker)

    now = start
    last = max(others, key=lambda s: s.end, default=None)
    if last is not None and last.end > now:
        end = min(last.end, span.start)
        yield part(now, end, "dependency", last)
        now = end
    if call is not None and call.end > now:
        end = min(call.end, span.start)
        yield part(now, end, "host late", call)
        now = end
    if now >= span.start:
        return
    copies = ENGINE_OF[span.kind] != "compute"
    contended = copies or span.waited_for_room or span.start - now > _START
    rivals = engines.rivals(span, now) if contended else []
    if not rivals:
        yield part(now, span.start, "start-up")
        return
    window: list[Interval] = [(now, span.start)]
    held = common(union((s.start, s.end) for s in rivals), window)
    blocker = max(rivals, key=lambda s: s.end) if copies else None
    cause: Cause = "engine busy" if copies else "occupancy"
    for begin, end in held:
        if begin > now:
            yield part(now, begin, "start-up")
        yield part(begin, end, cause, blocker)
        now = end
    if now < span.start:
        yield part(now, span.start, "start-up")
