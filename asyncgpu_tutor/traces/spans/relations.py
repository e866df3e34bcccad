"""How spans of one trace lie to each other: the questions that a check of a schedule asks.

A `Trace` has them as methods. They need no more of it than its spans.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.traces.spans.intervals import common, length, union
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.spans.span import Span

Spans = Span | str | Iterable[Span]


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
    """See `Trace.overlap_between`. Symmetric; of a span with itself it is the span's duration."""
    one, other = (union((s.start, s.end) for s in select(trace, which)) for which in (a, b))
    return length(common(one, other))


def runs_before(trace: Iterable[Span], a: Spans, b: Spans) -> bool:
    """See `Trace.runs_before`."""
    one, other = select(trace, a), select(trace, b)
    if not one or not other:
        raise UsageError("runs_before needs at least one span on each side, and one side is empty")
    return max(span.end for span in one) <= min(span.start for span in other)


def happens_before(trace: Iterable[Span], a: Span, b: Span, *, host: bool = False) -> bool:
    """See `Trace.happens_before`: whether a chain of predecessors leads from `b` back to `a`.

    Each is in the `after` of the next, or before it on its stream, or on the host's own line.
    """
    by_id = {span.id: span for span in trace}
    if b.id not in by_id:
        raise UsageError(f"happens_before: the span {b.name!r} ({b.id}) is not of this trace")
    before = stream_predecessors(trace)
    if host:
        line = [s for s in trace if not s.on_device and s.kind != "range"]
        line.sort(key=lambda s: s.id)
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
