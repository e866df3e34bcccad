"""Pointers, one for all threads or one each; accesses by them, and what every memory does for these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, Mask, Site, Team, by_lane, varies
from simgpu.cuda_c.memory.holes import merged_holes
from simgpu.cuda_c.types import Scalar
from simgpu.errors import OutOfBoundsError

# A flat view of a memory, and the index into it of each lane.
Words: TypeAlias = tuple[NDArray[Any], Int64s]


# What a pointer points into in some lanes: these, the memory if there is one, and what messages call it.
Pointed: TypeAlias = "tuple[Bits, Region | None, str]"


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
    def index(self) -> Int64s:
        """Each lane's element."""
        return by_lane(np.asarray(self.part, np.int64), self.mask.n) + self.shift

    @property
    def threads(self) -> Int64s:
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

    @property
    def mixed(self) -> bool:
        """Tell whether it points into different arrays in different threads."""
        return isinstance(self.region, MixedRegion)

    def choices(self, mask: Mask) -> Sequence[Pointed]:
        """What the lanes of a mask find behind it."""
        if isinstance(self.region, MixedRegion):
            return self.region.choices
        return [(mask.bits, self.region, self.name)]

    def address(self) -> Any:
        """Bytes from the start of the region: an int, or an array of int64."""
        if varies(self.offset):
            return _wide(self.offset) * self.stride + self.base
        return self.offset * self.stride + self.base

    def holed(self, missing: Bits, what: str) -> HoledPtr:
        """The same as a member that some lanes do not have."""
        return HoledPtr(self.region, self.offset, self.stride, self.base, self.name, missing, what)

    @property
    def plain(self) -> Ptr:
        """The same without its holes."""
        return Ptr(self.region, self.offset, self.stride, self.base, self.name)


@dataclass(frozen=True, slots=True)
class HoledPtr(Ptr):
    """A pointer that was copied with its struct, and of which lanes are `missing` (`holes`)."""

    missing: Bits
    what: str


def _wide(value: NDArray[Any]) -> Int64s:
    return value.astype(np.int64, copy=False)


# -- pointers into several memories, or into none


class MixedRegion:
    """The target of a pointer that does not point into the same array in every thread."""

    def __init__(self, choices: Sequence[Pointed]) -> None:
        self.choices = choices

    def _parts(self, a: MaskedAccess) -> Iterator[MaskedAccess]:
        for bits, region, name in self.choices:
            chosen = a.mask.bits & bits
            if n := int(np.count_nonzero(chosen)):
                ptr = replace(a.ptr, region=region, name=name)
                yield replace(a, mask=Mask(a.mask.layout, chosen, n), ptr=ptr)

    def load(self, a: MaskedAccess) -> Any:
        if a.team.turns:
            return one_by_one(self, a)
        out = np.zeros(a.mask.layout.lanes, a.scalar.dtype)
        for part in self._parts(a):
            value = a.team.array(region_of(a.team, part.mask, part.ptr, a.site).load(part))
            out = merged_holes(part.mask, value, out, np.where(part.mask.bits, value, out))
        return out

    def store(self, a: MaskedAccess, value: Any) -> None:
        for part in self._parts(a):
            region_of(a.team, part.mask, part.ptr, a.site).store(part, value)

    def cells(self, a: MaskedAccess) -> Words:
        part, *more = self._parts(a)
        if more:
            text = (
                "uses an atomic through a pointer that points into different arrays in different "
                "threads, which the simulated device does not run: use an 'if'"
            )
            a.team.fault(OutOfBoundsError, a.site.at, int(a.mask.index[0]), text)
        return region_of(a.team, part.mask, part.ptr, a.site).cells(part)


class ForeignRegion:
    """A local variable of another thread: one may know where it is, but not go there."""

    def __init__(self, owners: Int64s, whose: Team) -> None:
        self.owners, self.whose = owners, whose

    def load(self, a: MaskedAccess) -> Any:
        """Refuse it."""
        lane, launch = int(a.mask.index[0]), a.team.launch
        owner = int(self.whose.thread_id[self.owners[lane]])
        text = (
            f"{'writes' if a.site.write else 'reads'} '{a.name}', a local variable of thread "
            f"{launch.thread_name(owner & 1023)} of block {launch.block_name(owner >> 10)}, by its address: "
            "that means nothing to other threads. Put what they share into shared "
            "or global memory"
        )
        a.team.fault(OutOfBoundsError, a.site.at, lane, text, array=a.name)

    def store(self, a: MaskedAccess, value: Any) -> None:
        """Refuse it."""
        self.load(a)

    cells = load


def one_region(choices: Sequence[Pointed]) -> Region | None:
    """The memory that a pointer has which points into these."""
    return choices[0][1] if len(choices) == 1 else MixedRegion(choices)


def region_of(team: Team, mask: Mask, ptr: Ptr, site: Site) -> Region:
    """Return the memory that a pointer points into; `OutOfBoundsError` if it is null, or points nowhere."""
    if ptr.region is None:
        verb, lane = "writes" if site.write else "reads", int(mask.index[0])
        where = "through a null pointer"
        if not ptr.name:  # of a number
            address = int(team.array(ptr.address())[lane])
            where = f"at the address {address:#x}, which is in no memory that this launch knows of"
            where += ": was it freed?"
        team.fault(OutOfBoundsError, site.at, lane, f"{verb} {where}")
    return ptr.region


# -- loads in several turns of a loop at once, which `compile/summing` explains


def row_of(part: Any, turn: int) -> Any:
    """Return the part of a value for a turn: its row, one number for all lanes, or that of all turns."""
    if np.ndim(part) < 2:
        return part
    return part[turn] if part.shape[1] > 1 else int(part[turn, 0])


class Together:
    """Lanes that access several elements each, as in several turns of a loop: a mask of the race detector."""

    def __init__(self, lanes: Int64s) -> None:
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
