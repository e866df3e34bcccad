"""Why streams stood still, and the device with them. Times in us."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, get_args

from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import Interval, common, gaps, union
from asyncgpu_tutor.traces.spans.path import stream_predecessors
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

Cause = Literal["dependency", "host late", "engine busy", "occupancy", "start-up"]

CAUSES: tuple[Cause, ...] = get_args(Cause)

CAUSE_WORDS: Mapping[Cause, str] = {
    "dependency": "what it needs, on another stream, was not done",
    "host late": "the host had not asked for it",
    "engine busy": "another stream's copy held the copy engine",
    "occupancy": "other kernels filled the SMs",
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

    Before the first span of a stream, the pause begins with the trace. What follows the last one is not
    idle: there was nothing to do. A pause is split as follows, in this order:

    - until the last span on another stream that it had to wait for ended: ``"dependency"``;
    - from then until the host's call that asked for it returned: ``"host late"``;
    - from then on, as long as another stream's copy in its direction ran: ``"engine busy"``; for a kernel
      that is known to have waited for room, or paused for more than 10 us, as long as other kernels ran:
      ``"occupancy"``;
    - the rest: ``"start-up"``.
    """
    if not trace.spans:
        return []
    begin = min(span.start for span in trace)
    device = trace.device_spans
    by_id = {span.id: span for span in device}
    before = stream_predecessors(device)
    calls = calls_of(trace)
    engines = _Engines(device)
    found: list[Idle] = []
    for span in device:
        if span.stream is None:
            continue
        past = before.get(span.id)
        start = begin if past is None else past.end
        if start >= span.start:
            continue
        others = [
            by_id[i]
            for i in span.after
            if i in by_id and (by_id[i].stream, by_id[i].device) != (span.stream, span.device)
        ]
        found += _split(span, start, others, calls.get(span.id), engines)
    return sorted(found, key=lambda idle: (idle.start, idle.span.id))


def idle_of_device(trace: Trace) -> list[Idle]:
    """The pauses in which no stream of a device worked, each split by the cause of what ended it.

    Between the first start and the last end on the device.
    """
    found: list[Idle] = []
    pauses: dict[int, list[Idle]] = {}  # by the span that ended them
    for idle in idle_of_streams(trace):
        pauses.setdefault(idle.span.id, []).append(idle)
    for name in sorted({span.device for span in trace.device_spans}):
        own = [span for span in trace.device_spans if span.device == name]
        own.sort(key=lambda s: (s.start, s.id))
        for start, end in gaps(union((s.start, s.end) for s in own)):
            first = own[bisect_left(own, end, key=lambda s: s.start)]
            found += [
                replace(idle, start=max(idle.start, start), end=min(idle.end, end))
                for idle in pauses.get(first.id, ())
                if idle.start < end and idle.end > start
            ]
    return found


class _Engines:
    """The device spans of each engine, by start, to be asked for those of a short time."""

    def __init__(self, device: list[Span]) -> None:
        self._spans: dict[tuple[str, Engine], list[Span]] = {}
        for span in sorted(device, key=lambda s: s.start):
            self._spans.setdefault((span.device, ENGINE_OF[span.kind]), []).append(span)
        # For each span the latest end up to it: `rivals` can then skip all spans that had ended.
        self._latest = {
            key: list(accumulate((s.end for s in spans), max)) for key, spans in self._spans.items()
        }

    def rivals(self, span: Span, since: float) -> list[Span]:
        """What other streams had on the span's engine, at any time from `since` to its start."""
        key = span.device, ENGINE_OF[span.kind]
        spans = self._spans[key]
        first = bisect_right(self._latest[key], since)
        last = bisect_left(spans, span.start, key=lambda s: s.start)
        return [s for s in spans[first:last] if s.stream != span.stream and s.end > since]


def _split(
    span: Span, start: float, others: list[Span], call: Span | None, engines: _Engines
) -> Iterable[Idle]:
    assert span.stream is not None

    def part(begin: float, end: float, cause: Cause, blocker: Span | None = None) -> Idle:
        assert span.stream is not None
        return Idle(span.device, span.stream, begin, end, cause, span, blocker)

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
    rivals = engines.rivals(span, now)
    copies = ENGINE_OF[span.kind] != "compute"
    if not rivals or not (copies or span.waited_for_room or span.start - now > _START):
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
