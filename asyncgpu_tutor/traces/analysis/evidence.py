"""Facts that several detectives ask of one trace, each worked out once."""

from __future__ import annotations

from functools import cached_property

from asyncgpu_tutor.traces.analysis.facts import Facts
from asyncgpu_tutor.traces.analysis.host_late import HostPart, host_late_parts
from asyncgpu_tutor.traces.analysis.idle import Idle, idle_of_device


class Evidence(Facts):
    """The facts of a trace, and why its device stood still."""

    @cached_property
    def idle(self) -> list[Idle]:
        """See `idle_of_device`."""
        return idle_of_device(self)

    @cached_property
    def host_late(self) -> dict[HostPart, float]:
        """See `host_late_parts`."""
        return host_late_parts(self.trace, self.idle)
