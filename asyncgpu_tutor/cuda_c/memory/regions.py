"""What the memories of a kernel have in common: addresses, bounds, what nobody wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.meter import Site
from asyncgpu_tutor.cuda_c.lockstep.team import Launch, Team
from asyncgpu_tutor.cuda_c.lockstep.values import varies
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.memory.races import Element, Shadow
from asyncgpu_tutor.cuda_c.types import Scalar
from asyncgpu_tutor.errors import (
    MisalignedError,
    OutOfBoundsError,
    RaceError,
    UninitialisedReadError,
)

__all__ = [
    "UNSIGNED",
    "WRITTEN",
    "ByteRegion",
    "differ",
    "inside",
    "report_bounds",
    "report_collision",
]

WRITTEN: dict[int, Any] = {
    1: np.uint8(0x01),
    2: np.uint16(0x0101),
    4: np.uint32(0x01010101),
    8: np.uint64(0x0101010101010101),
}
UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def inside(part: NDArray[Any], limit: int) -> bool:
    """Whether all indices are in `range(limit)`; one pass, by reading negative ones as huge."""
    if part.dtype.kind == "i":
        part = part.view(UNSIGNED[part.dtype.itemsize])
    return bool(part.max() < limit)


def report_bounds(
    team: Team,
    mask: Mask,
    ptr: Ptr,
    address: Any,
    size: int,
    nbytes: int,
    site: Site,
) -> None:
    """Raise for the first lane whose address is not within `nbytes`."""
    where = np.broadcast_to(np.asarray(mask.take(address)), (mask.n,))
    bad = np.flatnonzero((where < 0) | (where + size > nbytes))
    if not len(bad):
        return
    lane = int(mask.index[bad[0]])
    index = int(where[bad[0]]) // size
    bound = nbytes // size
    more = f" (and so do {len(bad) - 1} more threads)" if len(bad) > 1 else ""
    verb = "writes" if site.write else "reads"
    valid = f"valid are 0 to {bound - 1}" if bound > 0 else "it is empty"
    team.fault(
        OutOfBoundsError,
        site.at,
        lane,
        f"{verb} '{ptr.name}'[{index}], which is out of bounds: it has {bound} elements, "
        f"{valid}{more}",
        array=ptr.name,
        index=index,
        bound=bound,
    )


class ByteRegion:
    """What global and shared memory have in common: bytes, addressed element by element."""

    shared = False

    def __init__(self, nbytes: int, launch: Launch, cell: int) -> None:
        self.nbytes = nbytes  # that a pointer may reach; of one block, if shared
        self.cell = cell
        self.shadow: Shadow | None = None
        self.check_written = launch.limits.check_uninitialised
        self.views: dict[str, NDArray[Any]] = {}

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
            f"{verb} a {scalar.name} at byte {byte} of '{ptr.name}': its address must be a "
            f"multiple of {scalar.size}",
            array=ptr.name,
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
        return Element(
            ptr.name,
            max(1, size // self.cell),
            self.nbytes // size,
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
        ones = WRITTEN[scalar.size]
        marks = shadow.view(UNSIGNED[scalar.size])[shift:]
        got = marks.take(part) if varies(part) else marks[part]
        if np.all(got == ones):
            return
        k = int(np.flatnonzero(np.broadcast_to(np.asarray(got != ones), (mask.n,)))[0])
        at = int(part[k]) if varies(part) else int(part)
        index = self.own_index(at + shift, scalar.size)
        bound = self.nbytes // scalar.size
        team.fault(
            UninitialisedReadError,
            site.at,
            int(mask.index[k]),
            f"reads '{ptr.name}'[{index}], which nothing has written{self.advice}",
            array=ptr.name,
            index=index,
            bound=bound,
        )

    advice = ""  # what a message about a read of what nothing has written adds

    def own_index(self, element: int, size: int) -> int:
        """Index that a source would use for an element of the flat view."""
        return element


def differ(a: Any, b: Any) -> Any:
    """Where two values are not the same."""
    unequal: Any = a != b
    if np.any(unequal) and np.asarray(a).dtype.kind == "f":
        unequal = unequal & ~(np.isnan(a) & np.isnan(b))  # because NaN != NaN is true
    return unequal


def report_collision(
    team: Team,
    mask: Mask,
    lost: NDArray[np.bool_],
    part: Any,
    shift: int,
    ptr: Ptr,
    scalar: Scalar,
    site: Site,
    region: ByteRegion,
) -> None:
    """Several lanes of one instruction wrote different values to one element."""
    where = np.broadcast_to(np.asarray(part), (mask.n,))
    k = int(lost.argmax())
    winner = int(np.flatnonzero(where == where[k])[-1])
    lane, other = int(mask.index[k]), int(mask.index[winner])
    index = region.own_index(int(where[k]) + shift, scalar.size)
    layout = team.layout
    who = f"thread {team.launch.thread_name(int(layout.linear[other]))}"
    if layout.block[lane] != layout.block[other]:
        block = int(layout.numbers[layout.block[other]])
        who += f" of block {team.launch.block_name(block)}"
    team.fault(
        RaceError,
        site.at,
        lane,
        f"writes '{ptr.name}'[{index}], and so does {who} in the same instruction, with "
        "another value: which of them stays is left to chance",
        array=ptr.name,
        index=index,
        bound=region.nbytes // scalar.size,
    )
