"""How much work is queued, and which streams work together. Times in us."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True, eq=False)
class OverlapMatrix:
    """For how long each two streams were at work at the same time."""

    streams: tuple[StreamKey, ...]  # what rows and columns are
    # In us, symmetric. The diagonal is how long each stream was at work.
    us: npt.NDArray[np.float64]
    # Of rows and columns: ``"s1"`` for the lane of stream 1, with the device where there are several.
    names: list[str]

    def lines(self) -> Iterable[str]:
        """As a table of text."""
        most = f"{self.us.max(initial=0):.1f}"
        wide = max(8, *map(len, (most, *self.names)))
        yield " " * wide + "".join(f"{name:>{wide + 1}}" for name in self.names)
        for name, row in zip(self.names, self.us, strict=True):
            yield f"{name:>{wide}}" + "".join(f"{value:>{wide + 1}.1f}" for value in row)


def overlap_matrix(facts: Facts) -> OverlapMatrix:
    """Which streams were at work together, and for how long."""
    numbers = stream_numbers(facts.work)
    keys = list(numbers)
    several = len({device for device, _ in keys}) > 1
    lines: dict[StreamKey, list[Interval]] = {key: [] for key in keys}
    for span in facts.work:
        if span.stream is not None:
            lines[span.device, span.stream].append((span.start, span.end))
    busy = [common(union(lines[key]), facts.scopes[key[0]]) for key in keys]
    us = np.zeros((len(keys), len(keys)))
    for i, j in combinations_with_replacement(range(len(keys)), 2):
        us[i, j] = us[j, i] = length(common(busy[i], busy[j]))
    names = [f"{d} {short_name(n)}" if several else short_name(n) for (d, _), n in numbers.items()]
    return OverlapMatrix(tuple(keys), us, names)
