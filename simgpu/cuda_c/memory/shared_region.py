"""Shared memory of a batch of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.races import Access, Changes
from simgpu.cuda_c.memory.regions import ByteRegion

_READ_LOG = 1 << 20  # numbers
_PART = 256


@dataclass(slots=True)
class _Read:
    """A read that the race detector does not know of yet, as it is within a block."""

    time: int
    team: Team
    mask: Mask
    name: str
    shift: int
    part: Any
    size: int
    site: Site
    parts: int = 0  # those of the memory that it may be in, once somebody has asked


def _parts(read: _Read | Access, within: Any) -> int:
    """The parts of a block's memory that an access may be in: a bit for each `_PART` bytes."""
    low, high = (within.min(), within.max()) if varies(within) else (within, within)
    first, last = ((int(end) + read.shift) * read.size // _PART for end in (low, high))
    return ((1 << last - first + 1) - 1) << first


class SharedRegion(ByteRegion):
    """One `__shared__` variable, in all blocks of a batch.

    It has `nbytes` bytes in one block, and `cell` of them are its smallest element.

    Most reads cannot race, because nothing is written there between two barriers. So reads are merely logged,
    and the race detector is told of them once something is written near them in their interval.
    """

    shared = True

    def __init__(self, nbytes: int, team: Team, cell: int) -> None:
        self.room = max(16, -(-nbytes // 16) * 16)
        self.blocks = team.layout.blocks
        data = np.zeros(self.room * self.blocks, np.uint8)
        super().__init__(nbytes, cell, data, team.meter)
        self.written: NDArray[np.uint8] | None = np.zeros_like(self.data)
        self.dirty = 0  # the parts that have been written in this interval (`_parts`)
        self.log: list[_Read] = []
        self.logged = 0  # numbers that this takes

    @property
    def unwritten(self) -> NDArray[np.uint8] | None:
        return self.written

    def place(self, team: Team, mask: Mask, shift: int, part: Any, size: int, write: bool) -> Any:
        return part if self.blocks == 1 else mask.take(team.block_base(self.room // size)) + part

    def synchronised(self) -> None:
        """Every thread of every block has passed a barrier: nothing of before can race."""
        self.dirty = 0
        self.log, self.logged = [], 0
        if self.written is not None:
            marks = self.written.reshape(self.blocks, self.room)[:, : self.nbytes]
            if marks.all():
                self.written = None

    def count(self, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int) -> None:
        if (shift * size) % 128:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        self.meter.shared_access(site, mask, part, wide)

    def note_read(self, access: Access, within: Any) -> None:
        a = access
        if self.dirty and self.dirty & _parts(a, within):
            super().note_read(a, within)
            return
        read = _Read(a.team.clock, a.team, a.mask, a.name, a.shift, within, a.size, a.site)
        self.log.append(read)
        self.logged += within.size if varies(within) else 1
        if self.logged > _READ_LOG:
            self._replay(a.team, -1)

    def note_write(
        self, access: Access, within: Any, changes: Changes, atomic: bool = False
    ) -> None:
        parts = _parts(access, within)
        self.dirty |= parts
        self._replay(access.team, parts)
        super().note_write(access, within, changes, atomic)

    def _replay(self, team: Team, parts: int) -> None:
        """Tell the race detector of the logged reads in some parts, now that they matter."""
        now = team.clock
        log, self.log = self.log, []
        for a in log:
            a.parts = a.parts or _parts(a, a.part)
            if not a.parts & parts:
                self.log.append(a)
                continue
            part = self.place(team, a.mask, a.shift, a.part, a.size, False)
            team.clock = a.time
            read = Access(self, a.name, team, a.mask, a.shift, part, a.size, a.site)
            super().note_read(read, a.part)
        self.logged = 0 if parts < 0 else self.logged
        team.clock = now
