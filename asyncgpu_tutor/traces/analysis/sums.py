"""Sums by kernel, copy, call and range: what one asks of a profile first. Times in us."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from asyncgpu_tutor.traces.analysis.idle import Evidence, thread_of
from asyncgpu_tutor.traces.spans.notebook_output import PAGE, Lines, cut_output
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, grouped

_LISTED = 12  # rows of each table in a text


@dataclass(frozen=True)
class Sum:
    """All spans of one name. Times in us."""

    name: str
    count: int
    # Of their durations.
    total: float
    mean: float
    least: float
    most: float
    share: float  # part of the time of all rows of the same table, 0 to 1
    bytes: int = 0  # what they copied or filled

    @property
    def rate(self) -> float:
        """GB/s (10^9 bytes): `bytes` over `total`. 0 where nothing was copied, or it took no time."""
        return self.bytes / self.total / 1e3 if self.total else 0.0


@dataclass(frozen=True)
class RangeSum:
    """All ranges of one name, on the host and projected on the device. Times in us."""

    name: str
    count: int  # how often it was open
    host: float  # for how long in all
    # From the first start to the last end of the work that was asked for in it, summed over its windows.
    device: float
    work: float  # durations of that work, summed
    pieces: int  # how much work that is


@dataclass(frozen=True)
class Sums:
    """Sums by kernel, copy, call and range: each table with its largest row first."""

    kernels: tuple[Sum, ...]
    copies: tuple[Sum, ...]  # and fills
    calls: tuple[Sum, ...]  # and the host's waits
    ranges: tuple[RangeSum, ...]

    def table(self) -> Lines:
        """All of it as text."""
        return Lines("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        for title, rows in (("Kernels", self.kernels), ("Copies and fills", self.copies),
                            ("Calls and waits of the host", self.calls)):  # fmt: skip
            if rows:
                yield from _listed(title, rows)
        if self.ranges:
            yield f"{'Ranges':<40} {'count':>7} {'host':>12} {'on device':>12} {'work':>12} {'pieces':>7}"
            for r in self.ranges[:_LISTED]:
                yield (
                    f"  {cut_output(r.name, 38):<38} {r.count:>7,} {r.host:>12,.1f} {r.device:>12,.1f} "
                    f"{r.work:>12,.1f} {r.pieces:>7,}"
                )
            yield from _left_out(self.ranges)


def sums(seen: Evidence) -> Sums:
    """See `Analysis.sums`. Work of others, which only ran meanwhile, is left out."""
    device, calls = seen.device, seen.calls
    ranges = (s for s in seen.trace if s.kind == "range" and "lane" not in s.detail)
    return Sums(
        _by_name(s for s in device if s.kind in {"kernel", "graph"}),
        _by_name(s for s in device if s.kind not in {"kernel", "graph"}),
        _by_name(s for s in seen.trace if s.kind in {"call", "wait"}),
        _ranges(ranges, device, calls),
    )


def _by_name(spans: Iterable[Span]) -> tuple[Sum, ...]:
    found = grouped(spans, _name)
    everything = math.fsum(s.duration for group in found.values() for s in group) or 1.0
    rows: list[Sum] = []
    for name, group in found.items():
        times, many = [s.duration for s in group], len(group)
        total = math.fsum(times)
        sizes = sum(size for s in group if isinstance(size := s.detail.get("bytes"), int))
        facts = total / many, min(times), max(times), total / everything, sizes
        rows.append(Sum(name, many, total, *facts))
    return tuple(sorted(rows, key=lambda row: -row.total))


def _name(span: Span) -> str:
    """Copies by their direction: what they copy has as many names as there are arrays."""
    if span.kind in {"kernel", "graph", "call", "wait"}:
        return str(span.detail.get("api", span.name)) if span.kind == "call" else span.name
    pageable = " (pageable)" if span.detail.get("pageable") else ""
    return ("pages " if span.stream == UNIFIED_MEMORY else "") + span.kind + pageable


def _ranges(
    ranges: Iterable[Span], device: Sequence[Span], calls: dict[int, Span]
) -> tuple[RangeSum, ...]:
    """Ranges with the work that was asked for while they were open, by their thread where that is known."""

    def asked_at(pair: tuple[Span, Span]) -> float:
        return pair[0].start

    pairs = sorted(((calls[s.id], s) for s in device if s.id in calls), key=asked_at)
    asked = {**grouped(pairs, lambda pair: thread_of(pair[0])), None: pairs}
    rows: list[RangeSum] = []
    for name, spans in grouped(ranges, lambda span: span.name).items():
        windows: list[list[Span]] = []
        for span in spans:
            line = asked.get(thread_of(span), [])
            first = bisect_left(line, span.start, key=asked_at)
            last = bisect_right(line, span.end, key=asked_at)
            windows.append([work for _, work in line[first:last]])
        host = math.fsum(span.duration for span in spans)
        projected = math.fsum(
            max(s.end for s in work) - min(s.start for s in work) for work in windows if work
        )
        times = [s.duration for work in windows for s in work]
        rows.append(RangeSum(name, len(spans), host, projected, math.fsum(times), len(times)))
    return tuple(sorted(rows, key=lambda row: -row.host))


def _listed(title: str, rows: Sequence[Sum]) -> Iterator[str]:
    rates = any(row.bytes for row in rows)
    head = f" {'share':>6} {'count':>7} {'total':>12} {'mean':>10} {'min':>10} {'max':>10}"
    head += f" {'GB/s':>8}" if rates else ""
    wide = PAGE - len(head)
    yield f"{title:<{wide}}" + head
    for row in rows[:_LISTED]:
        yield (
            f"  {cut_output(row.name, wide - 2):<{wide - 2}} {row.share:>6.1%} {row.count:>7,} "
            f"{row.total:>12,.1f} {row.mean:>10,.1f} {row.least:>10,.1f} {row.most:>10,.1f}"
            + (f" {row.rate:>8.2f}" if rates else "")
        )
    yield from _left_out(rows)


def _left_out(rows: Sequence[object]) -> Iterator[str]:
    if len(rows) > _LISTED:
        yield f"  and {len(rows) - _LISTED} more"
    yield ""
