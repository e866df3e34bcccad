"""What several detectives ask of one trace, each worked out once."""

from __future__ import annotations

from functools import cached_property

from asyncgpu_tutor.traces.analysis.host_late import HostPart, host_late_parts
from asyncgpu_tutor.traces.analysis.idle import Idle, calls_of, idle_of_device
from asyncgpu_tutor.traces.spans import Metrics, Span
from asyncgpu_tutor.traces.spans.path import stream_predecessors
from asyncgpu_tutor.traces.trace import Trace

__all__ = ["Evidence"]


class Evidence:
    """A trace, and what is read out of it again and again.

    Parameters
    ----------
    trace : Trace
        Of one device.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def device(self) -> list[Span]:
        """The device spans that were asked for here, without those of others that ran meanwhile."""
        return [span for span in self.trace.device_spans if not span.detail.get("other")]

    @cached_property
    def calls(self) -> dict[int, Span]:
        """See `calls_of`."""
        return calls_of(self.trace)

    @cached_property
    def before(self) -> dict[int, Span]:
        """See `stream_predecessors`; of all device spans."""
        return stream_predecessors(self.trace.device_spans)

    @cached_property
    def metrics(self) -> Metrics:
        """See `measure`."""
        return self.trace.metrics()

    @cached_property
    def idle(self) -> list[Idle]:
        """See `idle_of_device`."""
        return idle_of_device(self.trace)

    @cached_property
    def host_late(self) -> dict[HostPart, float]:
        """See `host_late_parts`."""
        return host_late_parts(self.trace, self.idle)
