"""Notes about each load and store, and how many of its accesses are sampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Layout

ALWAYS = 16  # executions of one access that are all sampled ...
EVERY = 13  # ... and behind them one in so many; a prime, so as not to beat with powers of two


class SiteTally:
    """The counts of one load or store."""

    __slots__ = (
        "batch",
        "executions",
        "followed",
        "followed_warps",
        "fresh",
        "fresh_sectors",
        "global_lane_bytes",
        "global_requests",
        "lines",
        "sampled",
        "sectors",
        "seen",
        "shared_conflicts",
        "shared_requests",
        "shared_sampled",
    )

    def __init__(self) -> None:
        self.executions = 0
        self.fresh = 0
        self.fresh_sectors = 0
        self.followed = 0
        self.followed_warps = 0
        self.batch: Layout | None = None
        self.seen: NDArray[np.int64] = np.zeros(0, np.int64)
        self.global_requests = 0
        self.global_lane_bytes = 0
        self.sampled = 0
        self.sectors = 0
        self.lines = 0
        self.shared_requests = 0
        self.shared_sampled = 0
        self.shared_conflicts = 0

    def due(self) -> bool:
        self.executions += 1
        return self.executions <= ALWAYS or self.executions % EVERY == 0

    @property
    def all_sectors(self) -> int:
        return round(self.global_requests * self.sectors / self.sampled) if self.sampled else 0

    def fresh_rounds(self, overlap: int) -> float:
        """Executions, over all warps, with new sectors; those of `overlap` turns go together."""
        if not self.followed:
            return 0.0
        return self.global_requests * min(1 / overlap, self.fresh / self.followed)

    @property
    def all_fresh_sectors(self) -> int:
        if not self.followed_warps:
            return 0
        return round(self.global_requests * self.fresh_sectors / self.followed_warps)

    @property
    def all_lines(self) -> int:
        return round(self.global_requests * self.lines / self.sampled) if self.sampled else 0

    @property
    def all_conflicts(self) -> int:
        if not self.shared_sampled:
            return 0
        return round(self.shared_requests * self.shared_conflicts / self.shared_sampled)


class Had:
    """Sectors that the first block of a batch has had by one pointer."""

    def __init__(self) -> None:
        self.batch: Layout | None = None
        self.sectors: NDArray[np.int64] = np.zeros(0, np.int64)
