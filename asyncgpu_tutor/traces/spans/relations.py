"""Relations between spans of one trace: what a check of a schedule asks; methods of `Trace`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans.intervals import common, length, union
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.spans.span import Span

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
        return list(which)
    found = [span for span in trace if span.name == which]
    if not found:
        names = ", ".join(repr(name) for name in sorted({span.name for span in trace})) or "none"
        raise UsageError(f"no span of this trace is called {which!r}; the names in it are: {names}")
    return found


def overlap_between(trace: Iterable[Span], a: Spans, b: Spans) -> float:
    """For how long `a` and `b` were both running, in us; each is a span, spans, or the name of some."""
    one, other = (union((s.start, s.end) for s in select(trace, which)) for which in (a, b))
    return length(common(one, other))


def runs_before(trace: Iterable[Span], a: Spans, b: Spans) -> bool:
    """Tell whether all of `a` ended before `b` started. It may have been luck: see `happens_before`."""
    one, other = select(trace, a), select(trace, b)
    if not one or not other:
        raise UsageError("runs_before needs at least one span on each side, and one side is empty")
    return max(span.end for span in one) <= min(span.start for span in other)


def happens_before(trace: Iterable[Span], a: Span, b: Span, *, host: bool = False) -> bool:
    """Tell whether `a` was bound to end before `b` started, on any run of the program.

    Events, the order on a stream, and the calls of the host bind; with `host`, also the order in which
    the host did things, which is right for a program without concurrent tasks. Where `b` is a wait, `a`
    is bound to end before the wait *ends*. A span does not happen before itself.
    """
    by_id = {span.id: span for span in trace}
    if b.id not in by_id:
        raise UsageError(f"happens_before: the span {b.name!r} ({b.id}) is not of this trace")
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
