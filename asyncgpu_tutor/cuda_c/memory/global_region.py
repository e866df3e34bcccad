"""Global memory during one launch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.meter import Site
from asyncgpu_tutor.cuda_c.lockstep.team import Launch, Team
from asyncgpu_tutor.cuda_c.lockstep.values import varies
from asyncgpu_tutor.cuda_c.memory.allocation import GlobalMemory
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.memory.races import Shadow
from asyncgpu_tutor.cuda_c.memory.regions import (
    UNSIGNED,
    WRITTEN,
    ByteRegion,
    differ,
    report_collision,
)
from asyncgpu_tutor.cuda_c.types import Scalar
from asyncgpu_tutor.errors import ReadOnlyError

__all__ = ["GlobalRegion"]


class GlobalRegion(ByteRegion):
    """One allocation, during one launch.

    Parameters
    ----------
    memory : GlobalMemory
        The allocation.
    launch : Launch
        The launch.
    cell : int
        Bytes of the smallest element that the kernel is expected to write.
    watched : bool
        Whether reads must be remembered, since something in the kernel may write here.
    """

    def __init__(self, memory: GlobalMemory, launch: Launch, cell: int, watched: bool) -> None:
        super().__init__(memory.nbytes, launch, cell)
        self.memory = memory
        self.advice = memory.advice
        self.watched = watched and launch.limits.check_races
        self.races = launch.limits.check_races
        self.meter = launch.meter
        self._touched: list[NDArray[np.uint8] | None] = [None, None]
        self._hull: list[tuple[int, int] | None] = [None, None]

    def flat(self, scalar: Scalar) -> NDArray[Any]:
        view = self.views.get(scalar.name)
        if view is None:
            view = self.views[scalar.name] = self.memory.view(scalar.dtype)
        return view

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        shift, part = self.locate(team, mask, ptr, scalar, site)
        view = self.flat(scalar)
        if shift:
            view = view[shift:]
        if wide:
            self._count(site, mask, shift, part, scalar.size, wide)
        self._touch(0, mask, shift, part, scalar.size)
        memory = self.memory
        if self.check_written and not memory.fully_initialised:
            self.require_written(team, mask, ptr, scalar, site, memory.shadow, shift, part)
        if self.watched and not site.relaxed:
            team.clock += 1
            self._note_read(team, mask, ptr, scalar, site, shift, part)
        if not varies(part):
            return view[part]
        return mask.spread(view.take(part))

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        if self.memory.readonly:
            team.fault(
                ReadOnlyError,
                site.at,
                int(mask.index[0]),
                f"writes to '{ptr.name}', which may only be read",
                array=ptr.name,
            )
        shift, part = self.locate(team, mask, ptr, scalar, site)
        view = self.flat(scalar)
        if shift:
            view = view[shift:]
        if wide:
            self._count(site, mask, shift, part, scalar.size, wide)
        self._touch(1, mask, shift, part, scalar.size)
        value = mask.take(value)
        team.clock += 1
        if self.races:
            changes = np.broadcast_to(np.asarray(differ(view[part], value)), (mask.n,))
            self._note_write(team, mask, ptr, scalar, site, shift, part, changes)
        if varies(part):
            view[part] = value
        else:
            view[part] = value[-1] if varies(value) else value
        if self.races and varies(value):
            lost = differ(view[part], value)
            if lost.any():
                report_collision(team, mask, lost, part, shift, ptr, scalar, site, self)
        self.mark(shift, part, scalar.size)

    def cells(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        shift, part = self.locate(team, mask, ptr, scalar, site)
        index = np.broadcast_to(np.asarray(part, np.int64), (mask.n,)) + shift
        if self.check_written and not self.memory.fully_initialised:
            self.require_written(team, mask, ptr, scalar, site, self.memory.shadow, 0, index)
        self._touch(0, mask, 0, index, scalar.size)
        self._touch(1, mask, 0, index, scalar.size)
        team.clock += 1
        if self.races:
            self._note_write(team, mask, ptr, scalar, site, 0, index, None, atomic=True)
            blocks = team.layout.numbers[np.unique(team.layout.block[mask.index])]
            team.launch.atomic_time[blocks] = team.clock
        return self.flat(scalar), index

    def mark(self, shift: int, part: Any, size: int) -> None:
        """Note that elements have been written."""
        memory = self.memory
        if memory.trail is not None:
            memory.trail.view(UNSIGNED[size])[shift:][part] = WRITTEN[size]
        if not memory.fully_initialised:
            memory.shadow.view(UNSIGNED[size])[shift:][part] = WRITTEN[size]

    def needed(self, way: int) -> int:
        """Different bytes that were loaded (0) or stored (1)."""
        touched, hull = self._touched[way], self._hull[way]
        if hull is not None:
            low, high = hull
            if touched is None:
                return high - low
            outside = int(touched[:low].sum()) + int(touched[high:].sum())
            return high - low + outside
        return 0 if touched is None else int(touched.sum())

    # -- bookkeeping

    def _count(self, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int) -> None:
        # An allocation begins on a sector, so a shift by whole sectors does not change their number.
        if (shift * size) % 32:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        self.meter.global_access(site, mask, part, wide)

    def _touch(self, way: int, mask: Mask, shift: int, part: Any, size: int) -> None:
        meter = self.meter
        if meter.exact_left > 0:
            meter.exact_left -= mask.n
            touched = self._touched[way]
            if touched is None:
                room = -(-self.nbytes // 16) * 16
                touched = self._touched[way] = np.zeros(room, np.uint8)
            touched.view(UNSIGNED[size])[shift:][part] = WRITTEN[size]
            return
        if varies(part):
            low, high = int(part.min()), int(part.max())
        else:
            low = high = part
        low, high = (low + shift) * size, (high + shift + 1) * size
        hull = self._hull[way]
        self._hull[way] = (low, high) if hull is None else (min(low, hull[0]), max(high, hull[1]))

    def _note_read(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, shift: int, part: Any
    ) -> None:
        for cells in self.race_cells(mask, shift, part, scalar.size):
            if self.shadow is None:
                self.shadow = Shadow(self.nbytes // self.cell)
            self.shadow.read(team, mask, cells, site, self.element(ptr, scalar.size))

    def _note_write(
        self,
        team: Team,
        mask: Mask,
        ptr: Ptr,
        scalar: Scalar,
        site: Site,
        shift: int,
        part: Any,
        changes: NDArray[np.bool_] | None,
        atomic: bool = False,
    ) -> None:
        for cells in self.race_cells(mask, shift, part, scalar.size):
            if self.shadow is None:
                self.shadow = Shadow(self.nbytes // self.cell)
            element = self.element(ptr, scalar.size)
            self.shadow.write(team, mask, cells, site, element, changes, atomic)
