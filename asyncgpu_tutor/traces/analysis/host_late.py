"""What the host did while the device waited for it. Times in us."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

from asyncgpu_tutor.traces.analysis.idle import Idle
from asyncgpu_tutor.traces.spans import Span
from asyncgpu_tutor.traces.spans.intervals import Interval, common, length, union, within
from asyncgpu_tutor.traces.trace import Trace

HostPart = Literal["CUDA call", "waiting", "Python"]

HOST_PARTS: tuple[HostPart, ...] = get_args(HostPart)


def host_late_parts(trace: Trace, idle: Iterable[Idle]) -> dict[HostPart, float]:
    """The pauses with the cause ``"host late"``, by what the thread was doing that ended each, in us.

    ``"waiting"``: it was blocked until the device was done. ``"CUDA call"``: it was inside of a call, which
    may be the very call that was late. ``"Python"``: neither, so it ran the program's own code, or slept.
    They add up to the time that the host was late.
    """
    lines = _Threads(trace)
    parts: dict[HostPart, list[float]] = {part: [] for part in HOST_PARTS}
    for pause in idle:
        if pause.cause != "host late":
            continue
        waits, calls = lines.of(pause.blocker)
        waiting = within(waits, pause.start, pause.end)
        calling = within(calls, pause.start, pause.end)
        both = length(common(waiting, calling))
        parts["waiting"].append(length(waiting))
        parts["CUDA call"].append(length(calling) - both)
        parts["Python"].append(pause.duration - length(waiting) - length(calling) + both)
    return {part: math.fsum(values) for part, values in parts.items()}


class _Threads:
    """When each thread waited, and when it was inside of a call."""

    def __init__(self, trace: Trace) -> None:
        self._spans: dict[object, tuple[list[Interval], list[Interval]]] = {}
        for span in trace:
            if span.kind in {"wait", "call"}:
                pair = self._spans.setdefault(span.detail.get("thread"), ([], []))
                pair[span.kind == "call"].append((span.start, span.end))
        self._spans = {
            thread: (union(waits), union(calls)) for thread, (waits, calls) in self._spans.items()
        }

    def of(self, call: Span | None) -> tuple[list[Interval], list[Interval]]:
        """Waits and calls of the thread that made a call."""
        return self._spans.get(None if call is None else call.detail.get("thread"), ([], []))
