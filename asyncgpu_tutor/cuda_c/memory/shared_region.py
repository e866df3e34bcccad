"""Shared memory of a batch of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.meter import Site
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.memory.regions import (
    ByteRegion,
    Changes,
)

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
        super().__init__(nbytes, team.launch, cell, np.zeros(self.room * self.blocks, np.uint8))
        self.written: NDArray[np.uint8] | None = np.zeros_like(self.data)
        self.dirty = False  # whether something has been written in this interval
        # Reads of it that the race detector has not been told of.
        self.log: list[tuple[int, Mask, int, Any, int, Ptr, Site]] = []

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

    # -- bookkeeping

    def count(
        self, team: Team, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int
    ) -> None:
        if (shift * size) % 128:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        team.meter.shared_access(site, mask, part, wide)

    def note_read(
        self, team: Team, mask: Mask, shift: int, part: Any, size: int, ptr: Ptr, site: Site
    ) -> None:
        if self.dirty:
            super().note_read(team, mask, shift, part, size, ptr, site)
        else:
            self.log.append((team.clock, mask, shift, part, size, ptr, site))
            if len(self.log) > _READ_LOG:
                self._replay(team)

    def note_write(
        self,
        team: Team,
        mask: Mask,
        shift: int,
        part: Any,
        size: int,
        ptr: Ptr,
        site: Site,
        changes: Changes | None,
        atomic: bool = False,
    ) -> None:
        self.dirty = True
        self._replay(team)
        super().note_write(team, mask, shift, part, size, ptr, site, changes, atomic)

    def _replay(self, team: Team) -> None:
        """Tell the race detector of what is logged, now that it matters."""
        now = team.clock
        log, self.log = self.log, []
        for when, mask, shift, part, size, ptr, site in log:
            team.clock = when
            super().note_read(team, mask, shift, part, size, ptr, site)
        team.clock = now
