"""The memories that a kernel's pointers point into: global, shared, local.

A region answers four questions for the lanes of a mask: load, store, where are the elements that an
atomic works on, and what goes wrong at a bad address.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.arrays import varies
from asyncgpu_tutor.cuda_c.counts import Site
from asyncgpu_tutor.cuda_c.masks import Mask
from asyncgpu_tutor.cuda_c.memory import GlobalMemory
from asyncgpu_tutor.cuda_c.pointers import Ptr
from asyncgpu_tutor.cuda_c.races import Element, Shadow
from asyncgpu_tutor.cuda_c.team import Launch, Team
from asyncgpu_tutor.cuda_c.types import Scalar
from asyncgpu_tutor.errors import (
    KernelFault,
    MisalignedError,
    OutOfBoundsError,
    RaceError,
    ReadOnlyError,
    UninitialisedReadError,
)

__all__ = ["GlobalRegion", "Region", "SharedRegion", "inside", "report_bounds"]

_ONES: dict[int, Any] = {
    1: np.uint8(0x01),
    2: np.uint16(0x0101),
    4: np.uint32(0x01010101),
    8: np.uint64(0x0101010101010101),
}
_UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_READ_LOG = 64


class Region:
    """Base of the three memories."""

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        """The values at an address; elsewhere than in `mask` they mean nothing.

        `wide` is the number of bytes that one request of this access moves; 0 if it was counted
        already, as part of a vector.
        """
        raise NotImplementedError

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        """Write the values of the lanes in `mask`; the highest lane wins where several meet."""
        raise NotImplementedError

    def cells(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """A flat view, and the index into it of each lane of `mask`, for an atomic to work on."""
        raise NotImplementedError


def inside(part: NDArray[Any], limit: int) -> bool:
    """Whether all indices are in `range(limit)`; one pass, by reading negative ones as huge."""
    if part.dtype.kind == "i":
        part = part.view(_UNSIGNED[part.dtype.itemsize])
    return bool(part.max() < limit)


def report_bounds(
    team: Team,
    mask: Mask,
    ptr: Ptr,
    address: Any,
    size: int,
    nbytes: int,
    site: Site,
    kind: type[KernelFault] = OutOfBoundsError,
) -> None:
    """Raise for the first lane whose address is not within `nbytes`."""
    where = np.broadcast_to(np.asarray(mask.take(address)), (mask.n,))
    bad = np.flatnonzero((where < 0) | (where + size > nbytes))
    if not len(bad):
        return
    lane = int(mask.index[bad[0]])
    unit = size
    index = (int(where[bad[0]]) - ptr.label.start) // unit
    bound = (nbytes - ptr.label.start) // unit
    more = f" (and so do {len(bad) - 1} more threads)" if len(bad) > 1 else ""
    verb = "writes" if site.write else "reads"
    valid = f"valid are 0 to {bound - 1}" if bound > 0 else "it is empty"
    team.fault(
        kind,
        site.at,
        lane,
        f"{verb} '{ptr.label.name}'[{index}], which is out of bounds: it has {bound} elements, "
        f"{valid}{more}",
        array=ptr.label.name,
        index=index,
        bound=bound,
    )


class _Bytes(Region):
    """What global and shared memory have in common: bytes, addressed element by element."""

    shared = False

    def __init__(self, nbytes: int, launch: Launch, cell: int) -> None:
        self.nbytes = nbytes  # that a pointer may reach; of one block, if shared
        self.cell = cell
        self.shadow: Shadow | None = None
        self.check_written = launch.limits.check_uninitialised
        self.views: dict[str, NDArray[Any]] = {}

    def flat(self, scalar: Scalar) -> NDArray[Any]:
        raise NotImplementedError

    def locate(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> tuple[int, Any]:
        """Element index as `shift + part`; part is an int, or an array over the lanes of `mask`.

        Raises
        ------
        OutOfBoundsError, MisalignedError
            For the first lane that has such an address.
        """
        size = scalar.size
        offset = ptr.offset
        if not ptr.stride % size and not ptr.base % size:
            shift, factor = ptr.base // size, ptr.stride // size
            limit = self.nbytes // size - shift
            if varies(offset):
                part = offset if mask.full else offset.take(mask.index)
                if factor != 1:
                    part = part.astype(np.int64) * factor
                if shift >= 0 and limit > 0 and inside(part, limit):
                    return shift, part
            elif 0 <= shift + offset * factor < limit + shift:
                return 0, shift + int(offset) * factor
        address = ptr.address()
        where = mask.take(address)
        report_bounds(team, mask, ptr, address, size, self.nbytes, site)
        wrong = np.flatnonzero(np.broadcast_to(np.asarray(where % size), (mask.n,)))
        if len(wrong):
            self._misaligned(team, mask, ptr, int(wrong[0]), where, scalar, site)
        part = where // size
        return 0, part if varies(part) else int(part)

    def _misaligned(
        self, team: Team, mask: Mask, ptr: Ptr, k: int, where: Any, scalar: Scalar, site: Site
    ) -> None:
        byte = int(np.broadcast_to(np.asarray(where), (mask.n,))[k])
        verb = "writes" if site.write else "reads"
        team.fault(
            MisalignedError,
            site.at,
            int(mask.index[k]),
            f"{verb} a {scalar.name} at byte {byte} of '{ptr.label.name}': its address must be a "
            f"multiple of {scalar.size}",
            array=ptr.label.name,
            index=byte,
        )

    # -- bookkeeping

    def race_cells(self, mask: Mask, shift: int, part: Any, size: int) -> list[NDArray[np.int64]]:
        """The cells that an access touches; one array for each cell of an element."""
        if size < self.cell:
            self._refine(size)
        ratio = size // self.cell
        whole = np.broadcast_to(np.asarray(part, np.int64), (mask.n,))
        first = (whole + shift) * ratio if shift or ratio > 1 else whole
        return [first + k if k else first for k in range(ratio)]

    def _refine(self, size: int) -> None:
        """Smaller elements than were expected: start watching anew, in finer steps."""
        self.cell = size
        self.shadow = None

    def element(self, ptr: Ptr, size: int) -> Element:
        start = ptr.label.start
        return Element(
            ptr.label.name,
            start // self.cell,
            max(1, size // self.cell),
            (self.nbytes - start) // size,
            self.shared,
        )

    def require_written(
        self,
        team: Team,
        mask: Mask,
        ptr: Ptr,
        scalar: Scalar,
        site: Site,
        shadow: NDArray[np.uint8],
        shift: int,
        part: Any,
    ) -> None:
        """Fault if an element was never written."""
        ones = _ONES[scalar.size]
        marks = shadow.view(_UNSIGNED[scalar.size])[shift:]
        got = marks.take(part) if varies(part) else marks[part]
        if np.all(got == ones):
            return
        k = int(np.flatnonzero(np.broadcast_to(np.asarray(got != ones), (mask.n,)))[0])
        at = int(part[k]) if varies(part) else int(part)
        index = self.own_index(at + shift, scalar.size) - ptr.label.start // scalar.size
        bound = (self.nbytes - ptr.label.start) // scalar.size
        team.fault(
            UninitialisedReadError,
            site.at,
            int(mask.index[k]),
            f"reads '{ptr.label.name}'[{index}], which nothing has written",
            array=ptr.label.name,
            index=index,
            bound=bound,
        )

    def own_index(self, element: int, size: int) -> int:
        """Index that a source would use for an element of the flat view."""
        return element


class GlobalRegion(_Bytes):
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
        self.watched = watched and launch.limits.check_races
        self.races = launch.limits.check_races
        self.tally = launch.tally
        self._touched: list[NDArray[np.uint8] | None] = [None, None]
        self._hull: list[tuple[int, int] | None] = [None, None]

    def flat(self, scalar: Scalar) -> NDArray[Any]:
        view = self.views.get(scalar.name)
        if view is None:
            view = self.views[scalar.name] = self.memory.view(scalar.dtype)
        return view

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        self._usable(team, mask, ptr, site)
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
        self._usable(team, mask, ptr, site)
        if self.memory.readonly:
            team.fault(
                ReadOnlyError,
                site.at,
                int(mask.index[0]),
                f"writes to '{ptr.label.name}', which may only be read",
                array=ptr.label.name,
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
            changes = np.broadcast_to(np.asarray(_differ(view[part], value)), (mask.n,))
            self._note_write(team, mask, ptr, scalar, site, shift, part, changes)
        if varies(part):
            view[part] = value
        else:
            view[part] = value[-1] if varies(value) else value
        if self.races and varies(value):
            lost = _differ(view[part], value)
            if lost.any():
                _report_collision(team, mask, lost, part, shift, ptr, scalar, site, self)
        self.mark(shift, part, scalar.size)

    def cells(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        self._usable(team, mask, ptr, site)
        shift, part = self.locate(team, mask, ptr, scalar, site)
        index = np.broadcast_to(np.asarray(part, np.int64), (mask.n,)) + shift
        if self.check_written and not self.memory.fully_initialised:
            self.require_written(team, mask, ptr, scalar, site, self.memory.shadow, 0, index)
        self._touch(0, mask, 0, index, scalar.size)
        self._touch(1, mask, 0, index, scalar.size)
        team.clock += 1
        if self.races:
            self._note_write(team, mask, ptr, scalar, site, 0, index, None, atomic=True)
            blocks = np.unique(team.layout.block[mask.index]) + team.layout.first_block
            team.launch.atomic_time[blocks] = team.clock
        return self.flat(scalar), index

    def mark(self, shift: int, part: Any, size: int) -> None:
        """Note that elements have been written."""
        memory = self.memory
        if not memory.fully_initialised:
            memory.shadow.view(_UNSIGNED[size])[shift:][part] = _ONES[size]

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

    def _usable(self, team: Team, mask: Mask, ptr: Ptr, site: Site) -> None:
        if self.memory.freed:
            team.fault(
                OutOfBoundsError,
                site.at,
                int(mask.index[0]),
                f"uses '{ptr.label.name}', whose memory has been freed",
                array=ptr.label.name,
            )

    def _count(self, site: Site, mask: Mask, shift: int, part: Any, size: int, wide: int) -> None:
        # Allocations begin on a sector; a shift that keeps to sectors changes nothing.
        if (shift * size) % 32:
            part = part + shift
        if wide != size:
            part = part // (wide // size)
        self.tally.global_access(site, mask, part, wide)

    def _touch(self, way: int, mask: Mask, shift: int, part: Any, size: int) -> None:
        tally = self.tally
        if tally.exact_left > 0:
            tally.exact_left -= mask.n
            touched = self._touched[way]
            if touched is None:
                room = -(-self.nbytes // 16) * 16
                touched = self._touched[way] = np.zeros(room, np.uint8)
            touched.view(_UNSIGNED[size])[shift:][part] = _ONES[size]
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


def _differ(a: Any, b: Any) -> Any:
    unequal: Any = a != b
    if np.any(unequal) and np.asarray(a).dtype.kind == "f":
        unequal = unequal & ~(np.isnan(a) & np.isnan(b))  # a NaN is no different from a NaN
    return unequal


def _report_collision(
    team: Team,
    mask: Mask,
    lost: NDArray[np.bool_],
    part: Any,
    shift: int,
    ptr: Ptr,
    scalar: Scalar,
    site: Site,
    region: _Bytes,
) -> None:
    """Several lanes of one instruction wrote different values to one element."""
    where = np.broadcast_to(np.asarray(part), (mask.n,))
    k = int(lost.argmax())
    winner = int(np.flatnonzero(where == where[k])[-1])
    lane, other = int(mask.index[k]), int(mask.index[winner])
    index = region.own_index(int(where[k]) + shift, scalar.size) - ptr.label.start // scalar.size
    layout = team.layout
    who = f"thread {team.launch.thread_name(int(layout.linear[other]))}"
    if layout.block[lane] != layout.block[other]:
        block = int(layout.block[other]) + layout.first_block
        who += f" of block {team.launch.block_name(block)}"
    team.fault(
        RaceError,
        site.at,
        lane,
        f"writes '{ptr.label.name}'[{index}], and so does {who} in the same instruction, with "
        "another value: which of them stays is left to chance",
        array=ptr.label.name,
        index=index,
        bound=(region.nbytes - ptr.label.start) // scalar.size,
    )


class SharedRegion(_Bytes):
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
        # Since the last barrier of all blocks: was anything written, and what was read?
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
        start = ptr.label.start
        return Element(
            ptr.label.name,
            start // self.cell,
            max(1, size // self.cell),
            (self.nbytes - start) // size,
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
                # Nothing to clash with so far; a write in this interval will look at the log.
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
            changes = np.broadcast_to(np.asarray(_differ(view[part], value)), (mask.n,))
            self._note_write(team, mask, shift, part, size, ptr, site, changes, False)
        if varies(part):
            view[part] = value
        else:
            view[part] = value[-1] if varies(value) else value
        if self.races and varies(value):
            lost = _differ(view[part], value)
            if lost.any():
                _report_collision(team, mask, lost, part, shift, ptr, scalar, site, self)
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
            self.written.view(_UNSIGNED[size])[shift:][part] = _ONES[size]

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
        team.tally.shared_access(site, mask, part, wide)

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
