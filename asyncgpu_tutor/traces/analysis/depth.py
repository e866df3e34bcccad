"""How much work is queued, and which streams work together. Times in us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from asyncgpu_tutor.traces.analysis.facts import Facts
from asyncgpu_tutor.traces.spans.intervals import Interval, common, length, union
from asyncgpu_tutor.traces.spans.lanes import StreamKey, short_name, stream_numbers


@dataclass(frozen=True)
class Depth:
    """How many pieces of work were enqueued and not done, from the first to the last."""

    max: int
    mean: float


def queue_depth(facts: Facts) -> Depth:
    """How many pieces of work were in the queues: asked for, and not done yet.

    A queue that runs empty is a host that does not keep up. Work counts from when the host's call that
    asked for it returned (from its own start, where that came first, or where no call is known).
    """
    calls, work = facts.calls, facts.work
    asked = [min(calls[s.id].end, s.start) if s.id in calls else s.start for s in work]
    changes = np.array([*asked, *(span.end for span in work)])
    times, which = np.unique(changes, return_inverse=True)
    more, less = (np.bincount(w, minlength=len(times)) for w in np.split(which, 2))
    depths, steps = np.cumsum(more - less), np.diff(times)
    mean = float(np.dot(steps, depths[:-1]) / steps.sum()) if steps.sum() else 0.0
    return Depth(int(depths.max(initial=0)), mean)


def overlaps(facts: Facts) -> dict[tuple[StreamKey, StreamKey], float]:
    """For how long each two streams were at work together, in us; one with itself: at work at all."""
    lines: dict[StreamKey, list[Interval]] = {key: [] for key in stream_numbers(facts.work)}
    for span in facts.work:
        if span.stream is not None:
            lines[span.device, span.stream].append((span.start, span.end))
    busy = {key: common(union(line), facts.scopes[key[0]]) for key, line in lines.items()}
    found: dict[tuple[StreamKey, StreamKey], float] = {}
    for a, b in combinations_with_replacement(busy, 2):
        found[a, b] = found[b, a] = length(common(busy[a], busy[b]))
    return found


def overlap_lines(facts: Facts) -> Iterator[str]:
    """The same as a table of text: ``s1`` is stream 1, with the device where there are several."""
    numbers, us = stream_numbers(facts.work), overlaps(facts)
    several = len({device for device, _ in numbers}) > 1
    names = {
        key: f"{key[0]} {short_name(n)}" if several else short_name(n) for key, n in numbers.items()
    }
    wide = max(8, *(len(f"{time:.1f}") for time in us.values()), *map(len, names.values()))
    yield " " * wide + "".join(f"{name:>{wide + 1}}" for name in names.values())
    for a, name in names.items():
        yield f"{name:>{wide}}" + "".join(f"{us[a, b]:>{wide + 1}.1f}" for b in names)
