"""Kernels that wait for the host, or for another kernel, while they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

from simgpu.cuda_c import Counts, Execution, GlobalMemory, LaunchResult
from simgpu.interrupts import interruptible
from simgpu.queues import Work
from simgpu.times import KernelTime

# What a kernel that spins takes from others besides its places: next to nothing, as one that sleeps does.
_IDLE = 1e-9


@dataclass(eq=False)
class Waiting:
    """A launch whose threads may wait, as the engine sees it: see `queues.Paused`.

    Nothing runs beside Python. The launch is interpreted as far as it comes, and what Python does until the
    engine asks again is what the host does meanwhile. `_mapped` is the host memory that it can see; `_time`
    says what counts mean, and `_finish`, called when it has ended, how long it takes.
    """

    _execution: Execution
    _mapped: Sequence[GlobalMemory]
    _time: Callable[..., KernelTime]
    _finish: Callable[[LaunchResult], Work]
    _seen: int = 0
    _places: float | None = None

    @property
    def changes(self) -> int:
        """The number of times that it has changed memory."""
        return self._execution.changes

    def stirred(self) -> bool:
        """True if the host has written to memory since it last looked."""
        return self._seen != self._sum()

    def _sum(self) -> int:
        total = 0
        for memory in self._mapped:
            total = crc32(memory.data.data, total)
        return total

    def go_on(self, *, last: bool) -> Work:
        """Run on."""
        with interruptible():
            ended = self._execution.go_on(last=last)
        if ended:
            return self._finish(self._execution.result())
        self._seen = self._sum()
        if self._places is None:
            counts: Counts = self._execution.result().counts
            self._places = self._time(counts=counts, shared_bytes=counts.shared_bytes).places
        return Work(math.inf, self._places, _IDLE, paused=self)
