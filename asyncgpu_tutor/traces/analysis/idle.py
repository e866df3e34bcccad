"""Why streams stood still, and the device with them. Times in us."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import Literal, get_args

from asyncgpu_tutor.traces.analysis.facts import Facts
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import Interval, common, gaps, union, within
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_OF, Engine

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


def idle_of_streams(facts: Facts) -> list[Idle]:
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
    pauses = _Pauses(facts)
    begins = {name: line[0].start for name, line in facts.lines.items()}
    found: list[Idle] = []
    for span in facts.work:
        if span.stream is not None:
            past = facts.before.get(span.id)
            since = begins[span.device] if past is None else past.end
            if since < span.start:
                found += pauses.before(span, since)
    if facts.trace.windows:
        found = [
            replace(idle, start=start, end=end)
            for idle in found
            for start, end in within(facts.scopes[idle.device], idle.start, idle.end)
        ]
    found.sort(key=attrgetter("start"))  # they are by the id of what ended them
    return found


def idle_of_device(facts: Facts) -> list[Idle]:
    """The pauses in which no stream of a device worked, each split by the cause of what ended it.

    Between the first start and the last end on the device, or of each window. Of several devices, each has
    its own pauses. Together they take as long as the device was idle.
    """
    pauses = _Pauses(facts)
    found: list[Idle] = []
    for name, line in sorted(facts.lines.items()):
        for start, end in common(gaps(facts.busy[name]), facts.scopes[name]):
            first = line[bisect_left(line, end, key=attrgetter("start"))]
            found += pauses.before(first, start)
    return found


class _Pauses:
    """Splits the pause before a piece of work by cause."""

    def __init__(self, facts: Facts) -> None:
        self._by_id = {span.id: span for span in facts.work}
        self._calls = facts.calls
        self._engines = _Engines(facts.work)

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
        for span in sorted(device, key=attrgetter("start")):
            self._spans.setdefault((span.device, ENGINE_OF[span.kind]), []).append(span)
        self._starts = {key: [s.start for s in spans] for key, spans in self._spans.items()}
        # For each span the latest end up to it: `rivals` can then skip all spans that had ended.
        self._latest = {
            key: list(accumulate((s.end for s in spans), max)) for key, spans in self._spans.items()
        }

    def rivals(self, span: Span, since: float) -> list[Span]:
        """Spans that other streams had on the span's engine, at any time from `since` to its start."""
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
    if call is not None and now < (end := min(call.end, span.start)):
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
