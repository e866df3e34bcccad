"""Shared memory of a batch of blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Team, varies
from simgpu.cuda_c.memory.messages import COUNTED_COPY
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.cuda_c.memory.races import Changes
from simgpu.cuda_c.memory.regions import ByteRegion

_READ_LOG = 1 << 20  # numbers
_PART = 256


@dataclass(slots=True)
class _Read:
    """A read that the race detector does not know of yet, as it is within a block."""

    time: int
    access: MaskedAccess
    parts: int = 0  # those of the memory that it may be in, once somebody has asked


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
        self.dirty = 0  # the parts that have been written in this interval (`near`)
        self.lasting = 0  # those that copies have written of which no barrier of a block tells
        self.log: list[_Read] = []
        self.logged = 0  # numbers that this takes

    @property
    def unwritten(self) -> NDArray[np.uint8] | None:
        return self.written

    def place(self, a: MaskedAccess, write: bool) -> None:
        if self.blocks > 1:
            a.part = a.mask.take(a.team.block_base(self.room // a.size)) + a.part

    def synchronised(self) -> None:
        """Every thread of every block has passed a barrier: nothing of before can race."""
        self.dirty = self.lasting
        self.log, self.logged = [], 0
        if self.written is not None:
            marks = self.written.reshape(self.blocks, self.room)[:, : self.nbytes]
            if marks.all():
                self.written = None

    def note_read(self, a: MaskedAccess, within: Any) -> None:
        if self.dirty and self.dirty & self.near(a, within):
            super().note_read(a, within)
            return
        self.log.append(_Read(a.team.clock, a.with_part(within)))
        self.logged += within.size if varies(within) else 1
        if self.logged > _READ_LOG:
            self._replay(a.team, -1)

    def note_write(self, a: MaskedAccess, within: Any, changes: Changes, atomic: bool) -> None:
        parts = self.near(a, within)
        self.dirty |= parts
        self._replay(a.team, parts)
        super().note_write(a, within, changes, atomic)

    def near(self, a: MaskedAccess, within: Any) -> int:
        """The parts of a block's memory that an access may be in: a bit for each `_PART` bytes."""
        low, high = (within.min(), within.max()) if varies(within) else (within, within)
        wide = max(a.wide, a.size) - a.size  # of a copy that is marked with its first number
        first, last = (int(low) + a.shift) * a.size, (int(high) + a.shift) * a.size + wide
        first, last = first // _PART, last // _PART
        return ((1 << last - first + 1) - 1) << first

    def landed(self, team: Team, words: Any, writers: Any, near: int) -> None:
        self.dirty |= near
        self.lasting |= near if int(writers[-1]) >= COUNTED_COPY else 0
        self._replay(team, near)
        super().landed(team, words, writers, near)

    def _replay(self, team: Team, parts: int) -> None:
        """Tell the race detector of the logged reads in some parts, now that they matter."""
        now = team.clock
        log, self.log = self.log, []
        for read in log:
            within = read.access.part
            read.parts = read.parts or self.near(read.access, within)
            if not read.parts & parts:
                self.log.append(read)
                continue
            self.place(read.access, False)
            team.clock = read.time
            super().note_read(read.access, within)
        self.logged = 0 if parts < 0 else self.logged
        team.clock = now
