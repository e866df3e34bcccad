"""Shared memory of a batch of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.races import Access, Changes
from simgpu.cuda_c.memory.regions import ByteRegion

_READ_LOG = 64


class SharedRegion(ByteRegion):
    """One `__shared__` variable, in all blocks of a batch.

    It has `nbytes` bytes in one block, and `cell` of them are its smallest element.

    Most reads cannot race, because most intervals between two barriers only read. So reads are merely
    logged, and the race detector is told of them once something is written in their interval.
    """

    shared = True

    def __init__(self, nbytes: int, team: Team, cell: int) -> None:
        self.room = max(16, -(-nbytes // 16) * 16)
        self.blocks = team.layout.blocks
        super().__init__(nbytes, cell, np.zeros(self.room * self.blocks, np.uint8))
        self.written: NDArray[np.uint8] | None = np.zeros_like(self.data)
        self.dirty = False  # whether something has been written in this interval
        # Reads that the race detector does not know of yet.
        self.log: list[tuple[int, Access]] = []  # each with its time

    @property
    def unwritten(self) -> NDArray[np.uint8] | None:
        return self.written

    def place(
        self, team: Team, mask: Mask, shift: int, part: Any, size: int, write: bool
    ) -> tuple[int, Any]:
        if self.blocks == 1:
            return shift, part
        return shift, mask.take(team.block_base(self.room // size)) + part

    def synchronised(self) -> None:
        """Every thread of every block has passed a barrier: nothing of before can race."""
        self.dirty = False
        self.log.clear()
        if self.written is not None:
            marks = self.written.reshape(self.blocks, self.room)[:, : self.nbytes]
            if marks.all():
                self.written = None

    def count(
        self, team: Team, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int
    ) -> None:
        if (shift * size) % 128:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        team.meter.shared_access(site, mask, part, wide)

    def note_read(self, access: Access) -> None:
        if self.dirty:
            super().note_read(access)
        else:
            self.log.append((access.team.clock, access))
            if len(self.log) > _READ_LOG:
                self._replay(access.team)

    def note_write(self, access: Access, changes: Changes, atomic: bool = False) -> None:
        self.dirty = True
        self._replay(access.team)
        super().note_write(access, changes, atomic)

    def _replay(self, team: Team) -> None:
        """Tell the race detector of the logged reads, now that they matter."""
        now = team.clock
        log, self.log = self.log, []
        for team.clock, access in log:
            super().note_read(access)
        team.clock = now
