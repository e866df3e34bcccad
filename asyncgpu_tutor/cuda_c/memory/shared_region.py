"""Shared memory of a batch of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.meter import Site
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.lockstep.values import varies
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.memory.races import Element, Shadow
from asyncgpu_tutor.cuda_c.memory.regions import (
    UNSIGNED,
    WRITTEN,
    ByteRegion,
    differ,
    report_collision,
)
from asyncgpu_tutor.cuda_c.types import Scalar

__all__ = ["SharedRegion"]

_READ_LOG = 64


class SharedRegion(ByteRegion):
    """One `__shared__` variable, in all blocks of a batch.

    Parameters
    ----------
    nbytes : int
        Bytes in one block.
    team : Team
        The batch.
    cell : int
        Bytes of its smallest element.
    """

    shared = True

    def __init__(self, nbytes: int, team: Team, cell: int) -> None:
        super().__init__(nbytes, team.launch, cell)
        self.room = max(16, -(-nbytes // 16) * 16)
        self.blocks = team.layout.blocks
        self.data = np.zeros(self.room * self.blocks, np.uint8)
        self.written: NDArray[np.uint8] | None = np.zeros(self.room * self.blocks, np.uint8)
        self.races = team.launch.limits.check_races
        # Most intervals between two barriers only read, or only write. So reads are merely logged until
        # something is written in their interval; then they are replayed to the race detector.
        self.dirty = False
        self.log: list[tuple[int, Mask, int, Any, int, Ptr, Site]] = []

    def flat(self, scalar: Scalar) -> NDArray[Any]:
        view = self.views.get(scalar.name)
        if view is None:
            view = self.views[scalar.name] = self.data.view(scalar.dtype)
        return view

    def own_index(self, element: int, size: int) -> int:
        return element % (self.room // size)

    def element(self, ptr: Ptr, size: int) -> Element:
        return Element(
            ptr.name,
            max(1, size // self.cell),
            self.nbytes // size,
            True,
            self.room // self.cell,
        )

    def _place(
        self, team: Team, mask: Mask, shift: int, part: Any, size: int
    ) -> tuple[int, NDArray[np.int64] | int]:
        """Element of the flat view: that of the block, plus where the block begins."""
        if self.blocks == 1:
            return shift, part
        base = mask.take(team.block_base(self.room // size))
        return shift, base + part

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        size = scalar.size
        shift, part = self.locate(team, mask, ptr, scalar, site)
        if wide:
            self._count(team, site, mask, shift, part, size, wide)
        shift, part = self._place(team, mask, shift, part, size)
        view = self.flat(scalar)
        if shift:
            view = view[shift:]
        if self.check_written and self.written is not None:
            self.require_written(team, mask, ptr, scalar, site, self.written, shift, part)
        if self.races and not site.relaxed:
            team.clock += 1
            if self.dirty:
                self._note_read(team, mask, shift, part, size, ptr, site)
            else:
                self.log.append((team.clock, mask, shift, part, size, ptr, site))
                if len(self.log) > _READ_LOG:
                    self._replay(team)
        if not varies(part):
            return view[part]
        return mask.spread(view.take(part))

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        size = scalar.size
        shift, part = self.locate(team, mask, ptr, scalar, site)
        if wide:
            self._count(team, site, mask, shift, part, size, wide)
        shift, part = self._place(team, mask, shift, part, size)
        view = self.flat(scalar)
        if shift:
            view = view[shift:]
        value = mask.take(value)
        team.clock += 1
        if self.races:
            changes = np.broadcast_to(np.asarray(differ(view[part], value)), (mask.n,))
            self._note_write(team, mask, shift, part, size, ptr, site, changes, False)
        if varies(part):
            view[part] = value
        else:
            view[part] = value[-1] if varies(value) else value
        if self.races and varies(value):
            lost = differ(view[part], value)
            if lost.any():
                report_collision(team, mask, lost, part, shift, ptr, scalar, site, self)
        self.mark(shift, part, size)

    def cells(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        size = scalar.size
        shift, part = self.locate(team, mask, ptr, scalar, site)
        shift, part = self._place(team, mask, shift, part, size)
        index = np.broadcast_to(np.asarray(part, np.int64), (mask.n,)) + shift
        if self.check_written and self.written is not None:
            self.require_written(team, mask, ptr, scalar, site, self.written, 0, index)
        team.clock += 1
        if self.races:
            self._note_write(team, mask, 0, index, size, ptr, site, None, True)
        return self.flat(scalar), index

    def mark(self, shift: int, part: Any, size: int) -> None:
        """Note that elements have been written."""
        if self.written is not None:
            self.written.view(UNSIGNED[size])[shift:][part] = WRITTEN[size]

    def synchronised(self) -> None:
        """Every thread of every block has passed a barrier: nothing of before can race."""
        self.dirty = False
        self.log.clear()
        if self.written is not None:
            marks = self.written.reshape(self.blocks, self.room)[:, : self.nbytes]
            if marks.all():
                self.written = None

    # -- bookkeeping

    def _count(
        self, team: Team, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int
    ) -> None:
        if (shift * size) % 128:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        team.meter.shared_access(site, mask, part, wide)

    def _watch(self) -> Shadow:
        if self.shadow is None:
            self.shadow = Shadow(self.room * self.blocks // self.cell)
        return self.shadow

    def _note_read(
        self, team: Team, mask: Mask, shift: int, part: Any, size: int, ptr: Ptr, site: Site
    ) -> None:
        for cells in self.race_cells(mask, shift, part, size):
            self._watch().read(team, mask, cells, site, self.element(ptr, size))

    def _note_write(
        self,
        team: Team,
        mask: Mask,
        shift: int,
        part: Any,
        size: int,
        ptr: Ptr,
        site: Site,
        changes: NDArray[np.bool_] | None,
        atomic: bool,
    ) -> None:
        self._replay(team)
        self.dirty = True
        for cells in self.race_cells(mask, shift, part, size):
            element = self.element(ptr, size)
            self._watch().write(team, mask, cells, site, element, changes, atomic)

    def _replay(self, team: Team) -> None:
        """Remember the reads of this interval, now that it matters."""
        now = team.clock
        for when, mask, shift, part, size, ptr, site in self.log:
            team.clock = when
            self._note_read(team, mask, shift, part, size, ptr, site)
        team.clock = now
        self.log.clear()
