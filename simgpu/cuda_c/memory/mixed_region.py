"""Pointers that point into several memories, or into none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr, Region, Words, one_by_one
from simgpu.errors import OutOfBoundsError


class MixedRegion:
    """The target of a pointer that does not point into the same array in every thread."""

    def __init__(self, choices: list[tuple[NDArray[np.bool_], Region | None, str]]) -> None:
        self.choices = choices

    def _parts(self, a: MaskedAccess) -> list[MaskedAccess]:
        out: list[MaskedAccess] = []
        for bits, region, name in self.choices:
            chosen = a.mask.bits & bits
            n = int(np.count_nonzero(chosen))
            if n:
                ptr = replace(a.ptr, region=region, name=name)
                out.append(replace(a, mask=Mask(a.mask.layout, chosen, n), ptr=ptr))
        return out

    def load(self, a: MaskedAccess) -> Any:
        if a.team.turns:
            return one_by_one(self, a)
        out = np.zeros(a.mask.layout.lanes, a.scalar.dtype)
        for part in self._parts(a):
            value = a.team.array(region_of(a.team, part.mask, part.ptr, a.site).load(part))
            out[part.mask.index] = value[part.mask.index]
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

    def __init__(self, owners: NDArray[np.int64], whose: Team) -> None:
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


def mixed(ptr: Ptr) -> bool:
    """Tell whether a pointer points into different arrays in different threads."""
    return isinstance(ptr.region, MixedRegion)


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
