"""The host's doings while the device waited for it. Times in us."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

from asyncgpu_tutor.traces.analysis.facts import thread_of
from asyncgpu_tutor.traces.analysis.idle import Idle
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
    spans: dict[int | None, tuple[list[Interval], list[Interval]]] = {}
    for span in trace:
        if span.kind in {"wait", "call"}:
            pair = spans.setdefault(thread_of(span), ([], []))
            pair[span.kind == "call"].append((span.start, span.end))
    lines = {thread: (union(waits), union(calls)) for thread, (waits, calls) in spans.items()}
    parts: dict[HostPart, list[float]] = {part: [] for part in HOST_PARTS}
    for pause in idle:
        if pause.cause != "host late" or pause.blocker is None:
            continue
        waits, calls = lines[thread_of(pause.blocker)]
        waiting = within(waits, pause.start, pause.end)
        calling = within(calls, pause.start, pause.end)
        both = length(common(waiting, calling))
        parts["waiting"].append(length(waiting))
        parts["CUDA call"].append(length(calling) - both)
        parts["Python"].append(pause.duration - length(waiting) - length(calling) + both)
    return {part: math.fsum(values) for part, values in parts.items()}
