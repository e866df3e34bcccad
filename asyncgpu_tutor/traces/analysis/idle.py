"""Why streams stood still, the device with them, and what the host did meanwhile. Times in us."""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import Literal, cast, get_args

from asyncgpu_tutor.traces.analysis.finding import KNOWN_FINDINGS, Finding, advice
from asyncgpu_tutor.traces.spans.intervals import (
    Interval,
    common_time,
    gaps,
    length,
    minus,
    union,
    within,
)
from asyncgpu_tutor.traces.spans.metrics import scope_of
from asyncgpu_tutor.traces.spans.relations import stream_predecessors
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY, Span, grouped
from asyncgpu_tutor.traces.spans.vocabulary import ENGINE_OF
from asyncgpu_tutor.traces.trace import Trace

Cause = Literal[
    "dependency", "host late", "engine busy", "occupancy", "page", "start-up", "unknown"
]

CAUSE_WORDS: Mapping[Cause, str] = {
    "dependency": "what it needs, on another stream, was not done",
    "host late": "the host had not asked for it",
    "engine busy": "another stream's copy held the copy engine",
    "occupancy": "other kernels filled the SMs",
    "page": "pages of unified memory move when they are touched, and nobody touched one",
    "start-up": "nothing was in its way: what it takes to start",
    "unknown": "nothing that was recorded says what it waited for",
}

# What the host did when it was late.
HostPart = Literal["CUDA call", "waiting", "own code"]
HOST_PARTS: tuple[HostPart, ...] = get_args(HostPart)

# A pause shorter than this, in us, is not put down to other kernels, because a launch takes as long without
# them: the H200 of this project's recordings starts work 2 to 6 us after the call.
_START = 10.0
# What takes longer, in us, waits for something that is not in the file, such as another process's collective.
# Nothing measured stands behind the 200: it is chosen far above the 2 to 6 us of a start.
_STARTED = 200.0

# Threads of a multiprocessor, and of an H200's 132 (CUDA C++ Programming Guide, "Technical specifications per
# compute capability"): so many of a device's places are of one block or more.
_BLOCKS = 2048
_H200 = 132 * _BLOCKS

# What is in the names of their kernels.
_LIBRARIES = {"at::": "PyTorch", "cupy_": "CuPy"}


def thread_of(span: Span) -> int | None:
    """Number of the thread that a call, a wait or a range is of; None where nobody knows."""
    given = span.detail.get("thread")
    return given if isinstance(given, int) else None


@dataclass(frozen=True, slots=True)
class Pause:
    """A stretch of time in which a stream, or the device, did nothing. Times in us."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        """In us."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Idle(Pause):
    """A pause, and why there was one."""

    cause: Cause  # see `CAUSE_WORDS`
    span: Span  # what ran next, on the stream that was idle
    # What it had to wait for: the call, the span on another stream, or the copy. None for ``"start-up"``, and
    # where several kernels filled the SMs.
    blocker: Span | None = None


@dataclass(frozen=True, slots=True)
class Gap(Pause):
    """A pause of the whole device, with the parts that it has by cause."""

    parts: tuple[Idle, ...]

    @property
    def main(self) -> Idle:
        """The longest part: its cause, and what ended the pause."""
        return max(self.parts, key=lambda part: part.duration)


class Evidence:
    """A recording of one device, and what is read out of it again and again: it may have 400,000 spans.

    Each stretch of the device's idle time may be claimed by one suspect.
    """

    def __init__(self, trace: Trace, waited: Iterable[tuple[Span, Span]] = ()) -> None:
        self.trace = trace
        self.metrics = trace.metrics()
        self.waited = list(waited)  # collectives, each with the one that came last; see `ranks`
        self.after_waits: list[Interval] = []  # pauses that a wait of the host began, whole
        # All device spans, by id; those that were asked for here, and not just ran meanwhile; all by start.
        self.work = trace.device_spans
        self.device = [span for span in self.work if not span.detail.get("other")]
        self.line = sorted(self.work, key=attrgetter("start", "id"))
        # Stretches in which the device worked, and those that count.
        self.busy = union((s.start, s.end) for s in self.work)
        self.scope = scope_of(self.busy, trace.windows)
        # Two maps by a device span's id: the host's call behind it, and the work before it on its stream.
        calls = {span.id: span for span in trace if span.kind == "call"}
        self.calls = {
            span.id: calls[max(found)]
            for span in self.work
            if (found := [i for i in span.after if i in calls])
        }
        self.before = stream_predecessors(self.work)
        self._by_id = {span.id: span for span in self.work}
        # Stretches in which the device did nothing, from the first call on; between windows nobody asks.
        asked = [(s.start, s.end) for s in calls.values()]
        counted = self.scope or union(asked)
        if asked and counted:
            counted = union([*counted, (min(asked)[0], counted[0][0])])
        self.unclaimed = minus(counted, self.busy)
        # Each engine has the times it worked, its spans by start, and for each the last to end so far.
        self._engines = {
            engine: (union((s.start, s.end) for s in spans), spans, list(accumulate(spans, _later)))
            for engine, spans in grouped(self.line, lambda span: ENGINE_OF[span.kind]).items()
        }

    @cached_property
    def fills(self) -> dict[int, tuple[float, float]]:
        """By id of a kernel, the parts of the device's threads and of its multiprocessors that it fills."""
        told = self.trace.about.get("threads_at_once")
        places = told if isinstance(told, int) and told > 0 else _H200
        found: dict[int, tuple[float, float]] = {}
        known: dict[str, tuple[float, float]] = {}  # a large trace has few sorts of launches
        for span in (span for span in self.device if span.kind == "kernel"):
            sort = repr([span.detail.get(key) for key in ("fills", "grid", "block")])
            if sort not in known:
                known[sort] = _filled(span.detail, places)
            found[span.id] = known[sort]
        return found

    @cached_property
    def language(self) -> str:
        """The words that advice to this program has to be in; ``"ours"`` for one of this package."""
        if not self.trace.about.get("foreign"):
            return "ours"
        names = (f"{s.name} {s.detail.get('full_name', '')}" for s in self.work)
        told = next((kind for n in names for word, kind in _LIBRARIES.items() if word in n), "CUDA")
        return "PyTorch" if self.trace.clock == "PyTorch profiler" else told

    def finding(self, name: str, sentence: str, spans: Iterable[Span], cost: float) -> Finding:
        """A finding of that name, with its title and the advice that fits this program."""
        ids = tuple(sorted({span.id for span in spans}))
        told = advice(name, self.language)
        return Finding(name, KNOWN_FINDINGS[name]["title"], sentence, told, ids, cost)

    def claim(self, stretches: Iterable[Interval]) -> float:
        """Time in us that the device stood still in these stretches, as far as nobody has claimed it."""
        asked = union(stretches)
        found, self.unclaimed = common_time(self.unclaimed, asked), minus(self.unclaimed, asked)
        return length(found)

    @cached_property
    def gaps(self) -> list[Gap]:
        """The pauses in which no stream worked, longest first, split by the cause of what ended them."""
        found: list[Gap] = []
        for start, end in common_time(gaps(self.busy), self.scope):
            first = bisect_left(self.line, end, key=attrgetter("start"))
            found.append(Gap(start, end, tuple(self.pause(self.line[first], start))))
        return sorted(found, key=lambda gap: -gap.duration)

    @property
    def idle(self) -> list[Idle]:
        """All parts of the device's pauses, by start."""
        return sorted((part for gap in self.gaps for part in gap.parts), key=attrgetter("start"))

    @cached_property
    def host_late(self) -> dict[HostPart, float]:
        """The time for which the host was late, in us, by what the thread did that ended each pause."""
        host = (span for span in self.trace if span.kind in {"wait", "call"})
        lines = {
            key: union((s.start, s.end) for s in spans)
            for key, spans in grouped(host, lambda s: (thread_of(s), s.kind)).items()
        }
        parts: dict[HostPart, list[float]] = {part: [] for part in HOST_PARTS}
        for pause in self.idle:
            if pause.cause != "host late" or pause.blocker is None:
                continue
            thread, stretch = thread_of(pause.blocker), [(pause.start, pause.end)]
            waiting = common_time(lines.get((thread, "wait"), ()), stretch)
            calling = minus(common_time(lines[thread, "call"], stretch), waiting)
            parts["waiting"].append(length(waiting))
            parts["CUDA call"].append(length(calling))
            parts["own code"].append(pause.duration - length(waiting) - length(calling))
        return {part: math.fsum(values) for part, values in parts.items()}

    def pause(self, span: Span, since: float) -> Iterator[Idle]:
        """The pause from `since` to the start of `span`, by cause; see `idle_of_streams`."""
        now = since

        def until(end: float, cause: Cause, blocker: Span | None = None) -> Iterator[Idle]:
            nonlocal now
            if now < (end := min(end, span.start)):
                yield Idle(now, end, cause, span, blocker)
                now = end

        if span.stream == UNIFIED_MEMORY:
            yield from until(span.start, "page")
            return
        needed = (self._by_id[i] for i in span.after if i in self._by_id)
        others = [s for s in needed if s.stream != span.stream]
        if others:
            last = max(others, key=attrgetter("end"))
            yield from until(last.end, "dependency", last)
        if (call := self.calls.get(span.id)) is None:
            yield from until(span.start, "unknown")
            return
        yield from until(call.end, "host late", call)
        copies = ENGINE_OF[span.kind] != "compute"
        contended = copies or span.waited_for_room or span.start - now > _START
        # Its own stream has no work in a pause, so whatever an engine does then is of another.
        busy, spans, last = self._engines[ENGINE_OF[span.kind]]
        for begin, end in within(busy, now, span.start) if contended else ():
            yield from until(begin, "start-up")
            began = bisect_left(spans, end, key=attrgetter("start")) if copies else 0
            blocker = last[began - 1] if began else None
            yield from until(end, "engine busy" if copies else "occupancy", blocker)
        yield from until(span.start if span.start - now < _STARTED else now + _START, "start-up")
        yield from until(span.start, "unknown")


def _later(one: Span, other: Span) -> Span:
    return other if other.end > one.end else one


def _filled(detail: Mapping[str, object], places: int) -> tuple[float, float]:
    """What a kernel fills of a device with `places` for threads, by its sizes or a simulator; see `fills`."""
    given = (detail.get(key) for key in ("grid", "block"))
    lists = (cast(list[object], size) if isinstance(size, list | tuple) else () for size in given)
    grid, block = ([part for part in size if isinstance(part, int)] for size in lists)
    blocks, threads = (math.prod(sizes) if sizes else 0 for sizes in (grid, grid + block))
    fills = detail.get("fills")
    part = float(fills) if isinstance(fills, int | float) else threads / places
    return min(part, 1.0), min(max(part, blocks * _BLOCKS / places), 1.0)


def idle_of_streams(seen: Evidence, streams: Collection[int | None] | None = None) -> list[Idle]:
    """The pauses of each stream, or of some, each split by cause, by start, from the device's first work on.

    In this order: until the last span on another stream that it had to wait for ended, ``"dependency"``; from
    then until the host's call returned, ``"host late"``; as long as another stream's copy in its direction
    ran, ``"engine busy"``; for a kernel that waited for room, or paused for more than 10 us, as long as other
    kernels ran, ``"occupancy"``. Before and between these it is ``"start-up"``. So is what is left behind the
    last of them, if that is less than 200 us; of more, only the first 10 us are, and the rest is
    ``"unknown"``, because a mere start is not thought to take so long. Where no call is known, all but the
    dependency is ``"unknown"``; before pages of unified memory, all of it is ``"page"``.
    """
    found: list[Idle] = []
    free: dict[int | None, float] = {}  # since when each stream has nothing to do
    for span in seen.line:
        if not span.duration or (streams is not None and span.stream not in streams):
            continue  # a moment ends no pause
        since = free.get(span.stream, seen.busy[0][0])
        found += seen.pause(span, since)
        free[span.stream] = max(since, span.end)
    if seen.trace.windows:
        parts = ((i, *part) for i in found for part in common_time(seen.scope, [(i.start, i.end)]))
        found = [replace(idle, start=start, end=end) for idle, start, end in parts]
    return sorted(found, key=attrgetter("start"))
