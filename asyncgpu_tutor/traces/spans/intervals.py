"""Arithmetic with half-open intervals [start, end) of time. Empty ones vanish."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same points as disjoint intervals in order; those that touch become one."""
    merged: list[Interval] = []
    begin = until = -math.inf
    for start, end in sorted(intervals):
        if start >= end:
            continue
        if start > until:
            if begin < until:
                merged.append((begin, until))
            begin, until = start, end
        elif end > until:
            until = end
    if begin < until:
        merged.append((begin, until))
    return merged


def length(disjoint: Iterable[Interval]) -> float:
    """Total length of disjoint intervals."""
    return math.fsum(end - start for start, end in disjoint)


def gaps(disjoint: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return the gaps between intervals that `union` returned."""
    return tuple((a[1], b[0]) for a, b in pairwise(disjoint))


def common_time(a: Sequence[Interval], b: Sequence[Interval]) -> list[Interval]:
    """The points that are in both of two results of `union`."""
    if len(b) == 1:
        return within(a, *b[0])
    shared: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            shared.append((start, end))
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return shared


def minus(a: Sequence[Interval], b: Sequence[Interval]) -> list[Interval]:
    """The points that are in the first of two results of `union`, and not in the second."""
    edges = [-math.inf, *(edge for interval in b for edge in interval), math.inf]
    return common_time(a, list(zip(edges[::2], edges[1::2], strict=True)))


def within(disjoint: Sequence[Interval], start: float, end: float) -> list[Interval]:
    """The points of a result of `union` in [start, end). It looks at no others, so it may be asked often."""
    if start >= end:
        return []
    first = bisect_right(disjoint, start, key=lambda i: i[1])
    last = bisect_left(disjoint, end, key=lambda i: i[0])
    inside = list(disjoint[first:last])
    if inside:  # only its ends can lie beyond
        inside[0] = max(inside[0][0], start), inside[0][1]
        inside[-1] = inside[-1][0], min(inside[-1][1], end)
    return inside


def histogram(lanes: Iterable[Sequence[Interval]], scope: Sequence[Interval]) -> tuple[float, ...]:
    """For how long exactly k of the lanes are busy within `scope`; all are results of `union`, within it."""
    import numpy as np  # whoever only has a trace's type needs no arrays

    found = np.array([edge for lane in lanes for edge in lane], np.float64).reshape(-1, 2)
    inside = np.array(scope, np.float64).reshape(-1, 2)
    # Outside of the scope the count is -1. Of edges at one time, those come first at which something ends.
    edges = np.concatenate((found[:, 1], inside[:, 1], inside[:, 0], found[:, 0]))
    steps = np.repeat((-1, -1, 1, 1), (len(found), len(inside), len(inside), len(found)))
    order = np.argsort(edges, kind="stable")
    busy, parts = np.cumsum(steps[order])[:-1] - 1, np.diff(edges[order])
    by_count = np.argsort(busy, kind="stable")
    bounds = np.searchsorted(busy[by_count], range(int(busy.max(initial=-1)) + 2)).tolist()
    return tuple(math.fsum(parts[by_count[a:b]]) for a, b in pairwise(bounds))
