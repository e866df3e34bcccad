"""Pointers, one for all threads or one each; accesses by them, and what every memory does for these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import by_lane, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.types import Scalar

# A flat view of a memory, and the index into it of each lane.
Words: TypeAlias = tuple[NDArray[Any], NDArray[np.int64]]


class Region(Protocol):
    """Memory that a pointer points into: global, shared, or of each thread."""

    def load(self, a: MaskedAccess) -> Any:
        """The values at an address; elsewhere than in the mask they mean nothing."""
        ...

    def store(self, a: MaskedAccess, value: Any) -> None:
        """Write the values of the lanes in the mask; the highest lane wins where several meet."""
        ...

    def cells(self, a: MaskedAccess) -> Words:
        """A flat view, and the index into it of each lane of the mask, for an atomic to work on."""
        ...


@dataclass(slots=True)
class MaskedAccess:
    """A load, a store or an atomic by the lanes of a mask."""

    team: Team
    mask: Any  # a `Mask`, or lanes in several turns of a loop at once
    ptr: Ptr
    scalar: Scalar  # the type of the values
    site: Site
    # Bytes that one request of it moves; 0 if it was counted already, as part of a vector.
    wide: int
    copied: bool = False  # as a part of a whole: what nobody wrote is no error then, and is `Holed`
    # Once it is located: each lane's element is `shift + part` of the memory.
    shift: int = 0
    part: Any = 0

    @property
    def name(self) -> str:
        """By which the source calls the memory."""
        return self.ptr.name

    @property
    def size(self) -> int:
        """Of an element, in bytes."""
        return self.scalar.size

    def with_part(self, part: Any) -> MaskedAccess:
        """The same access of other elements; by hand, as `replace` takes as long as a whole load."""
        given = self.team, self.mask, self.ptr, self.scalar, self.site, self.wide, self.copied
        return MaskedAccess(*given, self.shift, part)

    @property
    def index(self) -> NDArray[np.int64]:
        """Each lane's element."""
        return by_lane(np.asarray(self.part, np.int64), self.mask.n) + self.shift

    @property
    def threads(self) -> NDArray[np.int64]:
        """Numbers of the threads."""
        return self.mask.take(self.team.thread_id)

    @property
    def after_block_barrier(self) -> Any:
        """The time of each thread's last barrier of its block."""
        return self.mask.take(self.team.block_time)

    @property
    def after_warp_barrier(self) -> Any:
        """The time of each thread's last barrier of its warp."""
        return self.mask.take(self.team.warp_time)


@dataclass(frozen=True, slots=True)
class Ptr:
    """An address: byte `offset * stride + base` of a region.

    Kept in this form, rather than as a number of bytes, so that `x[i]` needs no arithmetic: `i`
    itself is the offset, and the element size the stride.
    """

    region: Region | None  # None is the null pointer, or a number that is no address
    offset: Any  # the same for all threads, or one for each
    # `stride` and `base`: bytes.
    stride: int
    base: int
    name: str  # what messages call the array

    def plus(self, count: Any, step: int) -> Ptr:
        """Address of element `count` of those that begin here, `step` bytes each."""
        uniform = not varies(count)
        if uniform:
            count = int(count)
        if not varies(self.offset):
            base = self.base + self.offset * self.stride
            if uniform:
                return Ptr(self.region, 0, step, base + count * step, self.name)
            return Ptr(self.region, count, step, base, self.name)
        if uniform:
            return self.moved(int(count) * step)
        if self.stride == step:
            return replace(self, offset=_wide(self.offset) + _wide(count))
        unit = gcd(self.stride, step)
        offset = _wide(self.offset) * (self.stride // unit) + _wide(count) * (step // unit)
        return Ptr(self.region, offset, unit, self.base, self.name)

    def moved(self, distance: int) -> Ptr:
        """The address so many bytes further."""
        if not distance:
            return self
        return Ptr(self.region, self.offset, self.stride, self.base + distance, self.name)

    def address(self) -> Any:
        """Bytes from the start of the region: an int, or an array of int64."""
        if varies(self.offset):
            return _wide(self.offset) * self.stride + self.base
        return self.offset * self.stride + self.base


def _wide(value: NDArray[Any]) -> NDArray[np.int64]:
    return value.astype(np.int64, copy=False)


# -- loads in several turns of a loop at once, which `compile/summing` explains


def row_of(part: Any, turn: int) -> Any:
    """Return the part of a value for a turn: its row, one number for all lanes, or that of all turns."""
    if np.ndim(part) < 2:
        return part
    return part[turn] if part.shape[1] > 1 else int(part[turn, 0])


class Together:
    """Lanes that access several elements each, as in several turns of a loop: a mask of the race detector."""

    def __init__(self, lanes: NDArray[np.int64]) -> None:
        self.index = lanes
        self.n = len(self.index)

    def take(self, value: Any) -> Any:
        """A value of each lane, in each turn; a uniform value stays as it is."""
        return value[self.index] if varies(value) else value


def one_by_one(region: Region, a: MaskedAccess) -> Any:
    """A load in several turns of a loop, turn by turn; the rows of all."""
    team, turns = a.team, a.team.turns
    team.turns = 0
    try:
        places = [replace(a.ptr, offset=row_of(a.ptr.offset, k)) for k in range(turns)]
        rows = [team.array(region.load(replace(a, ptr=place))) for place in places]
    finally:
        team.turns = turns
    return np.stack(rows)
