"""A trace in numbers. All times in us."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest

from asyncgpu_tutor.traces.spans.intervals import (
    Interval,
    common_time,
    gaps,
    histogram,
    length,
    union,
)
from asyncgpu_tutor.traces.spans.lanes import StreamKey
from asyncgpu_tutor.traces.spans.relations import CriticalPathStep, critical_path
from asyncgpu_tutor.traces.spans.span import DEVICE_KINDS, Span, SpanKind, by_number, grouped
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_WORDS, EngineName, engine_of

# Ranges are left out, because calls, waits and work happen within them and would count twice.
_HOST_KINDS: tuple[SpanKind, ...] = ("call", "wait", "work")


@dataclass(frozen=True, repr=False)
class Metrics:
    """The numbers of one trace; see `measure`.

    "Busy" is the length of a union of half-open intervals: time in which two spans of one lane run at once
    counts once, and spans that only touch do not overlap. Of several devices each is measured by itself, and
    a number is the sum over them, but for `makespan`: two GPUs at work at once overlap no streams.

    Attributes
    ----------
    makespan : float
        Last end minus first start over all spans but lanes of your own, in us. 0 for an empty trace.
    device_makespan : float
        The same over device spans only.
    stream_busy : mapping of (device, stream) to float
        Busy time of each stream, in us.
    engine_busy : mapping of (device, engine) to float
        Busy time of each engine that was used, in us: ``"h2d"`` and ``"d2h"`` (the copy directions),
        ``"compute"`` (kernels; also fills and copies within the device) and ``"link"`` (to other GPUs).
    host : mapping of kind to float
        Time the host spent in ``"call"``, ``"wait"`` and ``"work"`` spans, in us.
    gaps : mapping of (device, stream) to tuple of (start, end)
        The idle intervals of each stream between its own first start and last end.
    concurrency : tuple of float
        Entry k is the time, in us, in which exactly k streams of a device had work, over its makespan.
    """

    makespan: float
    device_makespan: float
    stream_busy: Mapping[StreamKey, float]
    engine_busy: Mapping[tuple[str, EngineName], float]
    host: Mapping[SpanKind, float]
    gaps: Mapping[StreamKey, tuple[Interval, ...]]
    concurrency: tuple[float, ...]
    _spans: list[Span] = field(repr=False, compare=False)

    @cached_property
    def critical_path(self) -> tuple[CriticalPathStep, ...]:
        """The chain that the last end had to wait for, worked out when it is asked for: that takes long."""
        return critical_path(self._spans)

    @property
    def device_active(self) -> float:
        """Time in which at least one stream had device work, in us."""
        return math.fsum(self.concurrency[1:])

    @property
    def device_idle(self) -> float:
        """Time within the device makespan in which no stream had device work, in us."""
        return self.concurrency[0]

    @property
    def overlap(self) -> float:
        """Time in which at least two streams had device work, in us."""
        return math.fsum(self.concurrency[2:])

    @property
    def overlap_fraction(self) -> float:
        """`overlap` as a part of `device_active`, 0 to 1. 0 where the device did nothing."""
        return self.overlap / self.device_active if self.device_active else 0.0

    @property
    def max_concurrency(self) -> int:
        """The largest number of streams that had device work at one time."""
        return len(self.concurrency) - 1

    @property
    def hidden(self) -> float:
        """The part of the talk between devices that other kernels of a device ran beside, 0 to 1.

        Talk is copies to a peer and collectives, with the time in which ranks wait for each other there.
        """
        spoken = beside = 0.0
        for own in grouped(self._spans, lambda span: span.device).values():
            talk = union((s.start, s.end) for s in own if s.talks)
            work = union((s.start, s.end) for s in own if s.kind == "kernel" and not s.talks)
            spoken, beside = spoken + length(talk), beside + length(common_time(talk, work))
        return beside / spoken if spoken else 0.0

    def __repr__(self) -> str:
        return (
            f"<Metrics: makespan {self.makespan:.1f}, device busy {self.device_active:.1f}, idle "
            f"{self.device_idle:.1f}, overlap {self.overlap:.1f} ({self.overlap_fraction:.0%} of busy), "
            f"at most {self.max_concurrency} streams at once, in us>"
        )

    @property
    def critical_spans(self) -> tuple[Span, ...]:
        """The spans of the critical path, in order of time."""
        return tuple(step.span for step in self.critical_path)


def measure(trace: Iterable[Span], windows: Sequence[Interval] = ()) -> Metrics:
    """The metrics of a finished recording; an empty one has zeros everywhere.

    Of a range that repeats, the `windows` count, in order. What the device did between them is in no number,
    and the makespans are sums.
    """
    spans = list(trace)
    streams: dict[StreamKey, list[Interval]] = {}
    engines: dict[tuple[str, EngineName], list[Interval]] = {}
    host: dict[SpanKind, list[Interval]] = {kind: [] for kind in _HOST_KINDS}
    work: dict[str, list[Interval]] = {}
    for span in spans:
        interval, kind = (span.start, span.end), span.kind
        if kind in DEVICE_KINDS:
            if span.stream is not None:
                streams.setdefault((span.device, span.stream), []).append(interval)
            engines.setdefault((span.device, engine_of(span)), []).append(interval)
            work.setdefault(span.device, []).append(interval)
        elif kind in host:
            host[kind].append(interval)
    scopes = {name: scope_of(work[name], windows) for name in sorted(work, key=by_number)}
    lanes = {key: common_time(union(streams[key]), scopes[key[0]]) for key in sorted(streams)}
    by_device = grouped(lanes, lambda key: key[0])
    parts = [
        histogram([lanes[key] for key in by_device.get(name, ())], scope)
        for name, scope in scopes.items()
        if scope
    ]
    makespan = length(union(i for scope in scopes.values() for i in scope))
    if not windows and (found := [s for s in spans if "lane" not in s.detail]):
        makespan = max(s.end for s in found) - min(s.start for s in found)
    return Metrics(
        makespan=makespan,
        device_makespan=math.fsum(map(length, scopes.values())),
        stream_busy={key: length(lane) for key, lane in lanes.items()},
        engine_busy={
            key: length(common_time(union(engines[key]), scopes[key[0]]))
            for key in sorted(engines, key=lambda k: (k[0], [*ENGINE_WORDS].index(k[1])))
        },
        host={kind: length(union(intervals)) for kind, intervals in host.items()},
        gaps={key: tuple(common_time(gaps(lane), scopes[key[0]])) for key, lane in lanes.items()},
        concurrency=tuple(map(math.fsum, zip_longest(*parts, fillvalue=0.0))) or (0.0,),
        _spans=spans,
    )


def scope_of(work: Iterable[Interval], windows: Sequence[Interval] = ()) -> list[Interval]:
    """The stretches that count, each from the first device span in it to the last; `work` has their times."""
    lasting = [interval for interval in work if interval[0] < interval[1]]
    if not lasting:
        return []
    if not windows:
        return [(min(lasting)[0], max(end for _, end in lasting))]
    busy = union(lasting)
    inside = [common_time(busy, [window]) for window in windows]
    return union((found[0][0], found[-1][1]) for found in inside if found)
