"""Shared memory of a batch of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import varies
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.memory.regions import (
    ByteRegion,
    Changes,
)

_READ_LOG = 64
_COURSES = 128  # accesses


class Course:
    """What has been accessed since a barrier, in order: one beginning that many intervals may have.

    `parts` keeps the arrays alive whose ids are in the keys, so that these stay theirs.
    """

    __slots__ = ("further", "parts")

    def __init__(self, *parts: object) -> None:
        self.parts = parts
        self.further: dict[tuple[object, ...], Course] = {}


class SharedRegion(ByteRegion):
    """One `__shared__` variable, in all blocks of a batch.

    It has `nbytes` bytes in one block, and `cell` of them are its smallest element.

    Most of what the race detector is told changes nothing. So accesses are merely logged while they cannot
    race, and are replayed to it when it matters. Most intervals between two barriers only read, or only
    write: reads are logged until something is written in their interval. And in a loop over tiles all
    intervals go the same way: few threads do not have checked again what has been checked in an interval
    that went the same way from the barrier on (`Course`).
    """

    shared = True

    def __init__(self, nbytes: int, team: Team, cell: int) -> None:
        self.room = max(16, -(-nbytes // 16) * 16)
        self.blocks = team.layout.blocks
        super().__init__(nbytes, team.launch, cell, np.zeros(self.room * self.blocks, np.uint8))
        self.written: NDArray[np.uint8] | None = np.zeros_like(self.data)
        self.dirty = False  # whether something has been written in this interval
        # Accesses of it that the race detector has not been told of, the last field whether they write.
        self.log: list[tuple[int, Mask, int, Any, int, Ptr, Site, bool]] = []
        # Several blocks have other arrays of addresses each time; where threads wait for each other, what
        # is a race depends on more than the accesses.
        self.few = team.few and self.blocks == 1 and not team.launch.watches
        self.start = Course()
        self.known = 0  # accesses that follow the start
        # How this interval went so far; None once it went as none before that could be kept.
        self.course: Course | None = self.start if self.few else None

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
        if self.few:
            if self.known >= _COURSES:
                self.start, self.known = Course(), 0
            self.course = self.start
        if self.written is not None:
            marks = self.written.reshape(self.blocks, self.room)[:, : self.nbytes]
            if marks.all():
                self.written = None

    def divided(self, team: Team) -> None:
        """Some threads are about to pass a barrier, perhaps of their warp, that a course knows nothing of."""
        if self.dirty:
            self._replay(team)
        self.course = None

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
        known = self._goes_on(mask, shift, part, size, site)
        if self.dirty and not known:
            self._replay(team)
            super().note_read(team, mask, shift, part, size, ptr, site)
        else:
            self.log.append((team.clock, mask, shift, part, size, ptr, site, False))
            if not known and len(self.log) > _READ_LOG:
                self._replay(team)
        if not known:
            self._learn(mask, shift, part, size, site)

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
        if atomic:
            self.course = None
        elif self._goes_on(mask, shift, part, size, site):
            self.log.append((team.clock, mask, shift, part, size, ptr, site, True))
            return
        self._replay(team)
        asked = False

        def by_value() -> NDArray[np.bool_]:
            nonlocal asked
            asked = True
            assert changes is not None
            return changes()

        given = None if changes is None else by_value
        super().note_write(team, mask, shift, part, size, ptr, site, given, atomic)
        if asked:  # With other values it may be a race.
            self.course = None
        self._learn(mask, shift, part, size, site)

    def _refine(self, size: int) -> None:
        super()._refine(size)
        self.start, self.known, self.course = Course(), 0, None

    def _goes_on(self, mask: Mask, shift: int, part: Any, size: int, site: Site) -> bool:
        """Whether an interval that went like this one so far went on with this access."""
        if self.course is None:
            return False
        further = self.course.further.get(_key(mask, shift, part, size, site))
        if further is not None:
            self.course = further
        return further is not None

    def _learn(self, mask: Mask, shift: int, part: Any, size: int, site: Site) -> None:
        """Remember that this interval went on with this access, and that nothing was wrong."""
        if self.course is None:
            return
        if self.known >= _COURSES:
            self.course = None
            return
        further = self.course.further[_key(mask, shift, part, size, site)] = Course(mask, part)
        self.course = further
        self.known += 1

    def _replay(self, team: Team) -> None:
        """Tell the race detector of what is logged, now that it matters."""
        now = team.clock
        log, self.log = self.log, []
        for when, mask, shift, part, size, ptr, site, write in log:
            team.clock = when
            if write:
                super().note_write(team, mask, shift, part, size, ptr, site, None)
            else:
                super().note_read(team, mask, shift, part, size, ptr, site)
        team.clock = now


def _key(mask: Mask, shift: int, part: Any, size: int, site: Site) -> tuple[object, ...]:
    return site.index, id(mask), shift, id(part) if varies(part) else part, size
