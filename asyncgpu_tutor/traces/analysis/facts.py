"""Facts that every part of an analysis asks of one trace, worked out once: it may have 400,000 spans."""

from __future__ import annotations

import math
from functools import cached_property
from operator import attrgetter
from typing import cast

from asyncgpu_tutor.traces.spans import Metrics, Span
from asyncgpu_tutor.traces.spans.intervals import Interval, union
from asyncgpu_tutor.traces.spans.metrics import scope_of
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.trace import Trace

# Of an H200: 132 SMs with 2048 threads each (CUDA C++ Programming Guide, "Technical specifications per
# compute capability"). Taken where a trace does not say how many threads its device runs at once.
_THREADS = 132 * 2048

# What is in the names of their kernels.
_LIBRARIES = {"at::": "PyTorch", "cupy_": "CuPy"}


def thread_of(span: Span) -> int | None:
    """Number of the thread that a call, a wait or a range is of; None where nobody knows."""
    given = span.detail.get("thread")
    return given if isinstance(given, int) else None


class Facts:
    """A finished recording of one device, and what is read out of it again and again."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def work(self) -> list[Span]:
        """All device spans, by id."""
        return self.trace.device_spans

    @cached_property
    def device(self) -> list[Span]:
        """The device spans that were asked for here, without those of others that ran meanwhile."""
        return [span for span in self.work if not span.detail.get("other")]

    @cached_property
    def line(self) -> list[Span]:
        """All device spans, by start."""
        return sorted(self.work, key=attrgetter("start", "id"))

    @cached_property
    def busy(self) -> list[Interval]:
        """When the device worked."""
        return union([(s.start, s.end) for s in self.work])

    @cached_property
    def scope(self) -> list[Interval]:
        """See `scope_of`."""
        return scope_of(self.busy, self.trace.windows)

    @cached_property
    def calls(self) -> dict[int, Span]:
        """For each device span, by id, the host's call that enqueued it."""
        calls = {span.id: span for span in self.trace if span.kind == "call"}
        return {
            span.id: calls[max(found)]
            for span in self.work
            if (found := [i for i in span.after if i in calls])
        }

    @cached_property
    def before(self) -> dict[int, Span]:
        """See `stream_predecessors`; of all device spans."""
        return stream_predecessors(self.work)

    @cached_property
    def fills(self) -> dict[int, float]:
        """For each kernel, by id, which part of the device it fills; see `fill_of`."""
        kernels = (span for span in self.device if span.kind == "kernel")
        return {span.id: fill_of(span, self.trace) for span in kernels}

    @cached_property
    def language(self) -> str:
        """The words that advice to this program has to be in; ``"ours"`` for one of this package."""
        if not self.trace.about.get("foreign"):
            return "ours"
        names = (f"{s.name} {s.detail.get('full_name', '')}" for s in self.work)
        told = next((kind for n in names for word, kind in _LIBRARIES.items() if word in n), "CUDA")
        return "PyTorch" if self.trace.clock == "PyTorch profiler" else told

    @cached_property
    def metrics(self) -> Metrics:
        """See `measure`."""
        return self.trace.metrics()


def fill_of(span: Span, trace: Trace) -> float:
    """The part of the device that a kernel fills, at most 1: as a simulator says, or by its threads."""
    fills = span.detail.get("fills")
    if isinstance(fills, int | float):
        return min(float(fills), 1.0)
    sizes = [span.detail.get(key) for key in ("grid", "block")]
    parts = [
        part
        for size in sizes
        if isinstance(size, list | tuple)
        for part in cast(list[object], size)
    ]
    threads = math.prod(part for part in parts if isinstance(part, int)) if parts else 0
    slots = trace.about.get("threads_at_once")
    return min(threads / (slots if isinstance(slots, int) and slots > 0 else _THREADS), 1.0)
