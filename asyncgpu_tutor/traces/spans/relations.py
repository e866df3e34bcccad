"""What came before what in one trace: questions of a check of a schedule, and which spans the end waited for.

The questions are methods of `Trace`.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import attrgetter

from asyncgpu_tutor.errors import UsageError, demand, entries_of
from asyncgpu_tutor.traces.spans.intervals import common_time, length, union
from asyncgpu_tutor.traces.spans.span import Span, grouped

_NEAR = 1000  # spans that are looked at; nearly always the first one is it

Spans = Span | str | Iterable[Span]


def causal(spans: list[Span]) -> list[Span]:
    """The spans, without causes that began after their effect: a file is damaged, or its clocks disagree."""
    starts = {span.id: span.start for span in spans}
    found: list[Span] = []
    for span in spans:
        latest = span.end if span.kind == "wait" else span.start
        after = tuple([i for i in span.after if starts.get(i, latest) <= latest])
        found.append(span if len(after) == len(span.after) else replace(span, after=after))
    return found


def select(trace: Iterable[Span], which: Spans) -> list[Span]:
    """The spans that are meant: one span, all spans of a name, or the spans themselves."""
    if isinstance(which, Span):
        return [which]
    if not isinstance(which, str):
        return entries_of("spans", which, Span)
    found = [span for span in trace if span.name == which]
    if not found:
        names = ", ".join(repr(name) for name in sorted({span.name for span in trace})) or "none"
        raise UsageError(f"no span of this trace is called {which!r}; the names in it are: {names}")
    return found


def overlap_between(trace: Iterable[Span], a: Spans, b: Spans) -> float:
    """For how long `a` and `b` were both running, in us; each is a span, spans, or the name of some."""
    one, other = (union((s.start, s.end) for s in select(trace, which)) for which in (a, b))
    return length(common_time(one, other))


def runs_before(trace: Iterable[Span], a: Spans, b: Spans) -> bool:
    """Tell whether all of `a` ended before `b` started. It may have been luck: see `happens_before`."""
    one, other = select(trace, a), select(trace, b)
    if not one or not other:
        raise UsageError("runs_before needs at least one span on each side, and one side is empty")
    return max(span.end for span in one) <= min(span.start for span in other)


def stream_predecessors(spans: Iterable[Span]) -> dict[int, Span]:
    """For each span on a stream, by id, the one before it there: work is in the order in which it started."""
    last: dict[tuple[str, int], Span] = {}
    before: dict[int, Span] = {}
    for span in sorted(spans, key=attrgetter("start", "id")):
        if span.stream is not None:
            if past := last.get((span.device, span.stream)):
                before[span.id] = past
            last[span.device, span.stream] = span
    return before


def happens_before(trace: Iterable[Span], a: Span, b: Span, *, host: bool = False) -> bool:
    """Tell whether `a` was bound to end before `b` started, on any run of the program.

    Events, the order on a stream, and the calls of the host bind; with `host`, also the order in which
    the host did things, which is right for a program without concurrent tasks. Where `b` is a wait, `a`
    is bound to end before the wait *ends*. A span does not happen before itself.
    """
    by_id = {span.id: span for span in trace}
    for span in (a, b):
        demand(span, Span, "happens_before takes two spans")
        if span.id not in by_id:
            raise UsageError(f"happens_before: {span.name!r} ({span.id}) is not of this trace")
    before = stream_predecessors(trace)
    if host:
        line = [s for _, s in sorted(by_id.items()) if not s.on_device and s.kind != "range"]
        before |= {late.id: early for early, late in pairwise(line)}
    seen: set[int] = set()
    todo = [b.id]
    while todo:
        span = by_id[todo.pop()]
        found = set(span.after) & by_id.keys()
        if span.id in before:
            found.add(before[span.id].id)
        if a.id in found:
            return True
        todo.extend(found - seen)
        seen |= found
    return False


# ------------------------------------------------------------------ the critical path
@dataclass(frozen=True, slots=True)
class CriticalPathStep:
    """One span of a critical path, and the part of it that lies on the path. Times in us."""

    span: Span
    # It is the whole span but for two cases: a wait counts only from when what it waited for had ended, and a
    # call only until the work that it enqueued had begun.
    start: float
    end: float
    idle: float  # between the end of the step before and `start`: nothing on the path ran


def critical_path(spans: list[Span]) -> tuple[CriticalPathStep, ...]:
    """The chain of spans that the last end had to wait for, in order of time.

    It is found backwards, from the span that ends last; ranges do not count. Before each span comes the
    latest-ending of its predecessors: the spans of its `after`, the one before it on its stream, for one of
    the host the host span that ended last before it started, and for a wait that names no device span each
    one that ended during it.

    Only spans with a smaller id can be predecessors, and none that starts later than the span itself (that
    ends later than it, for a wait), so the steps never overlap. Waiting for an engine that is busy with
    another stream is no edge here: it shows as idle time.
    """
    ordered = sorted((s for s in spans if s.kind != "range"), key=attrgetter("id"))
    before_of = _predecessors(ordered)
    steps: list[CriticalPathStep] = []
    span = max(ordered, key=attrgetter("end", "id"), default=None)
    end = span.end if span else 0.0
    while span is not None:
        before = max(before_of(span), key=attrgetter("end", "id"), default=None)
        start = span.start
        if before is None:
            steps.append(CriticalPathStep(span, start, end, 0.0))
        else:
            if span.kind == "wait":
                start = max(start, before.end)
            handover = min(before.end, start)
            steps.append(CriticalPathStep(span, start, end, start - handover))
            end = handover
        span = before
    return tuple(reversed(steps))


def _predecessors(ordered: list[Span]) -> Callable[[Span], Iterable[Span]]:
    """A function from a span to those of `ordered`, by id, that may have come before it."""
    by_id = {span.id: span for span in ordered}
    same_stream = stream_predecessors(ordered)
    # Sorting keeps the order of ids among those that end together.
    by_end = sorted(ordered, key=attrgetter("end"))
    device = [s for s in by_end if s.on_device]
    hosts = grouped((s for s in by_end if not s.on_device), lambda span: span.host)

    def ended(line: list[Span], span: Span, since: float, until: float) -> Iterable[Span]:
        """The last of a line that ended in (since, until] and may precede the span, if a near one may."""
        first, last = (bisect_right(line, time, key=attrgetter("end")) for time in (since, until))
        near = (line[i] for i in range(last - 1, max(first, last - _NEAR) - 1, -1))
        return islice((other for other in near if other.id < span.id), 1)

    def predecessors(span: Span) -> Iterable[Span]:
        named = [by_id[i] for i in span.after if i in by_id]
        if span.id in same_stream:
            named.append(same_stream[span.id])
        if not span.on_device:
            named += ended(hosts[span.host], span, -math.inf, span.start)
        if span.kind == "wait" and not any(s.on_device for s in named):
            named += ended(device, span, span.start, span.end)
        return (other for other in named if _may_precede(other, span))

    return predecessors


def _may_precede(other: Span, span: Span) -> bool:
    if other.id >= span.id:
        return False
    if span.kind == "wait":
        return other.end <= span.end
    # A call counts from its start, because it may still run when what it enqueued begins; a wait counts from
    # its end, because the host does nothing until then.
    return other.end <= span.start if other.kind == "wait" else other.start <= span.start
