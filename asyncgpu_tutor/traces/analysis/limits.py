"""The second half of the detective's list: what limits a program, be it without a fault. Times in us."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from asyncgpu_tutor.traces.analysis.finding import Finding
from asyncgpu_tutor.traces.analysis.idle import Evidence, Idle
from asyncgpu_tutor.traces.spans.intervals import common, length, minus, union
from asyncgpu_tutor.traces.spans.notebook_output import NAME, cut
from asyncgpu_tutor.traces.spans.span import UNIFIED_MEMORY
from asyncgpu_tutor.traces.spans.vocabulary import count, some

_IDLE = 0.5  # of the device's time: less than that is idle for other reasons than a host that cannot keep up
_LATE = 0.6  # of that idle time; the rest is mostly what a launch takes to start
_MANY = 3  # pauses: one or two long ones are gaps, and the host is not the limit elsewhere
_LONG = 0.1  # of the device's time: a pause as long as this is a gap of its own
_SUM = 0.25  # of the device's time: less than that in long pauses is not worth a finding
_LISTED = 12  # kernels that leave it empty
_FEW = 0.25  # of the device's threads: fewer leave most of it empty
_EXPOSED = 0.25  # of the device's time: copies or communication with no computing beside them


@dataclass(frozen=True)
class Gap:
    """A stretch in which the device did nothing, with the parts that it has by cause. Times in us."""

    start: float
    end: float
    parts: tuple[Idle, ...]

    @property
    def duration(self) -> float:
        """In us."""
        return self.end - self.start

    @property
    def main(self) -> Idle:
        """The longest part: its cause, and what ended the pause."""
        return max(self.parts, key=lambda part: part.duration)


def gaps_of(idle: Iterable[Idle]) -> list[Gap]:
    """The pauses of a device with their parts put together, longest first."""
    found: list[list[Idle]] = []
    for part in idle:
        if found and found[-1][-1].span.id == part.span.id and found[-1][-1].end == part.start:
            found[-1].append(part)
        else:
            found.append([part])
    pauses = [Gap(parts[0].start, parts[-1].end, tuple(parts)) for parts in found]
    return sorted(pauses, key=lambda gap: -gap.duration)


def limits(seen: Evidence) -> Iterable[Finding]:
    """Name the limits of the program that no defect explains."""
    if not seen.device:
        return
    gaps = gaps_of(seen.idle)
    pauses = union((g.start, g.end) for g in gaps)
    explained = length(pauses) - length(common(pauses, seen.unclaimed))
    yield from list(_host_bound(seen, gaps, explained)) or _gaps(seen, gaps, explained)
    yield from _low_utilisation(seen)
    yield from _exposed(seen)


def _host_bound(seen: Evidence, gaps: list[Gap], explained: float) -> Iterable[Finding]:
    """The host cannot ask for work as fast as the device does it."""
    m, parts = seen.metrics, seen.host_late
    late = parts["CUDA call"] + parts["own code"]
    of_host = [g for g in gaps if g.main.cause == "host late"]
    waits = [g for g in of_host if g.duration < _LONG * m.device_makespan]
    if (
        m.device_idle < _IDLE * m.device_makespan
        or late < _LATE * m.device_idle
        or len(of_host) < _MANY
        or math.fsum(g.duration for g in waits) < _SUM * m.device_makespan
        or explained > 0.5 * m.device_idle
    ):
        return
    told = ", ".join(f"{us:.1f} us {_DOING[part]}" for part, us in parts.items() if us)
    yield seen.finding(
        "host-bound",
        f"The device worked for {m.device_active / m.device_makespan:.0%} of its time. For "
        f"{math.fsum(parts.values()):.1f} of {m.device_idle:.1f} us of pauses the host had not asked for "
        f"more: {told}.",
        [g.main.span for g in waits],
        late,
        limit=True,
    )


_DOING = {"CUDA call": "inside of CUDA calls", "waiting": "waiting", "own code": "in its own code"}


def _gaps(seen: Evidence, gaps: list[Gap], explained: float) -> Iterable[Finding]:
    """A few long pauses are most of the time in which nothing happened."""
    m = seen.metrics
    usual = median([g.duration for g in gaps] or [0.0])
    long = [g for g in gaps if g.duration >= _LONG * m.device_makespan and g.duration > 5 * usual]
    total = math.fsum(g.duration for g in long)
    if total < _SUM * m.device_makespan or len(gaps) < _MANY or explained > 0.5 * total:
        return
    worst = long[0]
    yield seen.finding(
        "gaps",
        f"{count(len(long), 'pause')} of {total:.1f} us in all, of {m.device_makespan:.1f}. The longest, "
        f"{worst.duration:.1f} us, ended at {worst.end:.1f} us with "
        f"{cut(worst.main.span.name, NAME)}; its main cause: {worst.main.cause}.",
        [g.main.span for g in long],
        total,
        limit=True,
    )


def _low_utilisation(seen: Evidence) -> Iterable[Finding]:
    """Kernels are at work for most of the time, and most of the device has nothing to do."""
    kernels = [s for s in seen.device if s.kind == "kernel" and s.detail.get("grid")]
    m = seen.metrics
    busy = math.fsum(s.duration for s in kernels)
    if not busy or busy < 0.5 * m.device_active or m.device_active < _IDLE * m.device_makespan:
        return
    # Kernels that run together fill the device together.
    filled = math.fsum(seen.fills[s.id] * s.duration for s in kernels) / m.device_active
    if filled >= _FEW:
        return
    small = sorted(kernels, key=lambda s: -s.duration)[:_LISTED]
    grids = {s.name: f"{cut(s.name, NAME)} has a grid of {s.detail['grid']}" for s in small[::-1]}
    told = some(list(grids.values())[::-1], 2)
    yield seen.finding(
        "low utilisation",
        f"While it works, the device has threads in {filled:.1%} of its places on average: {told}.",
        small,
        0.0,
        limit=True,
    )


def _exposed(seen: Evidence) -> Iterable[Finding]:
    """Copies, or the collectives of NCCL, run for long while nothing computes."""
    talk = [
        s
        for s in seen.device
        if s.kind == "kernel" and (s.name[:4] == "nccl" or "ranks" in s.detail)
    ]
    known = {s.id for s in talk}
    others = union(
        (s.start, s.end) for s in seen.device if s.kind in {"kernel", "graph"} and s.id not in known
    )
    copies = [
        s for s in seen.device if s.kind in {"h2d", "d2h", "peer"} and s.stream != UNIFIED_MEMORY
    ]
    for name, spans, what in (
        ("exposed copies", copies, "copied between host and device"),
        ("exposed communication", talk, "exchanged data with other devices"),
    ):
        alone = minus(union((s.start, s.end) for s in spans), others)
        if (cost := length(alone)) >= _EXPOSED * seen.metrics.device_makespan > 0.0:
            guilty = [s for s in spans if common(alone, [(s.start, s.end)])]
            yield seen.finding(
                name,
                f"For {cost:.1f} of {seen.metrics.device_makespan:.1f} us the device {what} "
                f"({count(len(guilty), 'piece')} of work), and no other kernel ran.",
                guilty,
                cost,
                limit=True,
            )
