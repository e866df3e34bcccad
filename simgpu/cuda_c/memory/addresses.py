"""Addresses as numbers: what a pointer is where it lies in memory, or is cast to an integer.

Memory of the device has the address that its device gave it. Everything else of a launch, and what is outside
of its memory, has a part of the address space to itself: so a pointer that leaves its memory and goes through
another one is still known to be of it, and is checked as any other. Null is 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep import Bits, Int64s, Mask, Team, varies
from simgpu.cuda_c.lockstep.values import select_lanes
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.local_region import LocalRegion
from simgpu.cuda_c.memory.pointers import (
    ForeignRegion,
    MixedRegion,
    Pointed,
    Ptr,
    Region,
    one_region,
)
from simgpu.cuda_c.text.source import Position
from simgpu.errors import KernelFault

_BITS = 40
_ROOM = 1 << _BITS  # bytes
_MIDDLE = _ROOM >> 1  # where a memory begins in its part
_OWN = 1 << 20  # the first part; devices give addresses far below
_FRAME = 22  # bits of an address within a thread's local memory; the bits above are the thread's


class Addresses:
    """The address space of one launch, in which the regions of its arguments are placed first.

    `others` finds the memory that has an address which is of none of the launch's own, as a region, or
    None.
    """

    def __init__(self, others: Callable[[int], tuple[Region, GlobalMemory] | None]) -> None:
        self._others = others
        self._known: list[tuple[Region, str]] = []  # by part
        self._parts: dict[int, int] = {}  # by identity of the region
        self._placed: list[tuple[int, int, int]] = []  # address, bytes and part

    def place(self, region: Region, name: str, memory: GlobalMemory | None = None) -> int:
        """The part that a region has; `memory` says where it is on the device, if it is there."""
        found = self._parts.get(id(region))
        if found is None:
            found = self._parts[id(region)] = len(self._known)
            self._known.append((region, name))
            if memory is not None and memory.address:
                self._placed.append((memory.address, memory.nbytes, found))
        return found

    def number(self, ptr: Ptr) -> Any:
        """A pointer as a number: one for all threads, or one for each."""
        offset = np.asarray(ptr.address(), np.int64)
        if isinstance(ptr.region, MixedRegion):
            out = np.zeros(np.broadcast(offset, ptr.region.choices[0][0]).shape, np.int64)
            for bits, region, name in ptr.region.choices:
                out = select_lanes(bits, self._number(region, name, offset), out)
        else:
            out = self._number(ptr.region, ptr.name, offset)
        return out.view(np.uint64)[()]

    def _number(self, region: Region | None, name: str, offset: Any) -> Any:
        if region is None:
            return offset
        part = self.place(region, name)
        if isinstance(region, LocalRegion):
            offset = offset + (np.arange(region.lanes) << _FRAME)
        out = offset + (((part + _OWN) << _BITS) + _MIDDLE)
        for start, nbytes, placed in self._placed:
            if placed == part:
                out = select_lanes((offset >= 0) & (offset <= nbytes), offset + start, out)
        return out

    def known(self, number: int, step: int) -> Ptr:
        """A number that is the same for all threads as a pointer to elements of `step` bytes."""
        region, name, start = self._found(number)
        return Ptr(region, 0, step, number - start, name)

    def pointer(self, team: Team, mask: Mask, number: Any, step: int, at: Position) -> Ptr:
        """A number as a pointer to elements of `step` bytes."""
        if not varies(number):
            known = self.known(int(number), step)
            if not isinstance(known.region, LocalRegion):
                return known
            number = team.array(number)
        if team.turns:  # which have to be taken one by one
            team.fault(KernelFault, at, None, "follows pointers that differ from turn to turn")
        whole: Int64s = number.view(np.int64)
        offset = whole.copy()
        todo = mask.bits.copy()
        choices: dict[int, Pointed] = {}
        while todo.any():
            first = int(whole[todo.argmax()])
            region, name, start = self._found(first)
            bits = todo & (self._same(whole, first))
            offset[bits] = whole[bits] - start
            if isinstance(region, LocalRegion):
                owners = offset + (1 << _FRAME - 1) >> _FRAME
                offset[bits] -= (owners << _FRAME)[bits]
                foreign = bits & ((owners != team.layout.index) | (region.team is not team))
                if foreign.any():
                    stranger = ForeignRegion(owners, region.team)
                    choices[id(stranger)] = foreign, stranger, name
                    todo, bits = todo & ~foreign, bits & ~foreign
                if not bits.any():
                    continue
            known = choices.get(id(region))
            choices[id(region)] = (bits if known is None else bits | known[0], region, name)
            todo &= ~bits
        at_all = mask.take(offset)
        if (at_all == at_all[0]).all():
            offset = np.int64(at_all[0])  # as those of a local variable mostly are
        unit = 1 if (at_all % step).any() else step
        found = [*choices.values()]
        return Ptr(one_region(found), offset // unit, unit, 0, found[0][2])

    def _same(self, numbers: Int64s, first: int) -> Bits:
        """The lanes whose numbers are of the same memory as `first`, in the same way."""
        for start, nbytes, _ in self._placed:
            if start <= first <= start + nbytes:
                return (numbers >= start) & (numbers <= start + nbytes)
        if first >> _BITS >= _OWN:
            return numbers >> _BITS == first >> _BITS
        return numbers == first

    def _found(self, number: int) -> tuple[Region | None, str, int]:
        """The memory that a number points into, what it is called, and the number of its first byte."""
        part = (number >> _BITS) - _OWN
        if 0 <= part < len(self._known):
            return *self._known[part], ((part + _OWN) << _BITS) + _MIDDLE
        for start, nbytes, placed in self._placed:
            if start <= number <= start + nbytes:
                return *self._known[placed], start
        if not number:
            return None, "nullptr", 0
        other = self._others(number)
        if other is None:
            return None, "", 0
        region, memory = other
        name = memory.name or "memory"
        return region, self._known[self.place(region, name, memory)][1], memory.address
