"""Notes about each load and store, and how many of its accesses are sampled."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Layout

ALWAYS = 16  # executions of one access that are all sampled ...
EVERY = 13  # ... and behind them one in so many; a prime, so as not to beat with powers of two


def weight(execution: int) -> int:
    """How many executions this one stands for, of those that are followed to see what is new; else 0.

    So many in a row as `ALWAYS`, at the begin and from each power of 4 on, since a loop comes back later.
    """
    power = 1 << (execution.bit_length() - 1 & ~1) if execution >= 4 * ALWAYS else 0
    if execution - power >= ALWAYS:
        return 0
    return 3 * power // ALWAYS or 4


class Had:
    """Sectors that the first block of a batch has had, by one load or by one pointer."""

    def __init__(self) -> None:
        self._batch: Layout | None = None
        self._sectors: NDArray[np.int64] = np.zeros(0, np.int64)

    def add(self, batch: Layout, sectors: NDArray[np.int64]) -> NDArray[np.int64]:
        """Note more sectors; return those that are new."""
        if self._batch is not batch:
            self._batch, self._sectors = batch, np.zeros(0, np.int64)
        new = np.setdiff1d(sectors, self._sectors)
        self._sectors = np.union1d(self._sectors, new)
        return new


@dataclass(slots=True)
class SiteTally:
    """The counts of one load or store."""

    executions: int = 0
    fresh: int = 0
    fresh_sectors: int = 0
    followed: int = 0
    followed_warps: int = 0
    had: Had = field(default_factory=Had)
    global_requests: int = 0
    global_lane_bytes: int = 0
    sampled: int = 0
    sectors: int = 0
    lines: int = 0
    shared_requests: int = 0
    shared_sampled: int = 0
    shared_conflicts: int = 0

    def due(self) -> bool:
        self.executions += 1
        return bool(weight(self.executions - 1)) or self.executions % EVERY == 0

    def fresh_rounds(self, overlap: int) -> float:
        """Executions, over all warps, with new sectors; those of `overlap` turns go together."""
        if not self.followed:
            return 0.0
        return self.global_requests * min(1 / overlap, self.fresh / self.followed)


def scaled(requests: int, found: int, sampled: int) -> int:
    """Scale what was found in a sample to all requests."""
    return round(requests * found / sampled) if sampled else 0
