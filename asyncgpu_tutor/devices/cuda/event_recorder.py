"""Times of device work from pairs of CUDA events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import cupy
from cupy.cuda import runtime

from asyncgpu_tutor.traces.spans import Draft, SpanLog

EVENTS = 256  # made ahead, because making one takes longer than recording it


class EventRecorder:
    """Collects pairs of events around each piece of work, and reads them when all is done.

    A pair also spans what the work had to wait for behind the first event: the host's call on an idle
    stream, a busy copy engine, or SMs that other kernels fill. So short work looks longer than it is. Events
    resolve about half a microsecond (CUDA Runtime API, cudaEventElapsedTime).
    """

    sees_nodes = False  # an event lies before or after a graph, not inside

    def __init__(self, log: SpanLog) -> None:
        self.log = log
        # Spans are only written down when the recording settles: what is recorded should be slowed down
        # as little as possible.
        self._pairs: list[tuple[Draft, Any, Any, float]] = []
        self._free: list[Any] = [cupy.cuda.Event() for _ in range(EVENTS)]
        self._base: Any = cupy.cuda.Event()
        runtime.deviceSynchronize()
        self._base.record(cupy.cuda.Stream.null)
        self._base.synchronize()
        # The event was passed shortly before the wait for it came back.
        self._origin = time.perf_counter() * 1e6
        log.about.update(
            source="CUDA events", alignment="when the wait for an event at the start came back"
        )

    def before(self, stream: Any) -> Any:
        """A timing event at the present end of a stream."""
        try:  # not "if self._free": another thread may take the last one in between
            event = self._free.pop()
        except IndexError:
            event = cupy.cuda.Event()
        event.record(stream)
        return event

    after = before

    def add(self, drafts: Sequence[Draft], before: Any, after: Any, called: float) -> None:
        """The work of the one draft lies between these events; the host's call began at `called`."""
        (draft,) = drafts
        if draft.kind == "graph":
            self.log.about["graphs"] = "each as one bar: CUDA events do not see inside"
        self._pairs.append((draft, before, after, called))

    def add_host(self, draft: Draft, start: float, end: float) -> None:
        """A span of the host, in us of its clock."""
        self.log.finish(draft, start, end)

    def settle(self) -> None:
        """Wait for the device and write down all spans."""
        runtime.deviceSynchronize()
        pairs, self._pairs = self._pairs, []
        for draft, before, after, called in pairs:
            end = self._us(after)
            self.log.finish(draft, min(max(self._us(before), called), end), end)
            self._free += (before, after)

    def close(self) -> None:
        """Nothing is left on."""

    def _us(self, event: Any) -> float:
        return self._origin + 1e3 * float(cupy.cuda.get_elapsed_time(self._base, event))
