"""Pointers that point into several memories, or into none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.pointers import Access, Ptr, Region, Words, one_by_one
from simgpu.errors import OutOfBoundsError


class MixedRegion:
    """The target of a pointer that does not point into the same array in every thread."""

    def __init__(self, choices: list[tuple[NDArray[np.bool_], Region | None, str]]) -> None:
        self.choices = choices

    def _parts(self, a: Access) -> list[Access]:
        out: list[Access] = []
        for bits, region, name in self.choices:
            chosen = a.mask.bits & bits
            n = int(np.count_nonzero(chosen))
            if n:
                ptr = replace(a.ptr, region=region, name=name)
                out.append(replace(a, mask=Mask(a.mask.layout, chosen, n), ptr=ptr))
        return out

    def load(self, a: Access) -> Any:
        if a.team.turns:
            return one_by_one(self, a)
        out = np.zeros(a.mask.layout.lanes, a.scalar.dtype)
        for part in self._parts(a):
            value = a.team.array(region_of(a.team, part.mask, part.ptr, a.site).load(part))
            out[part.mask.index] = value[part.mask.index]
        return out

    def store(self, a: Access, value: Any) -> None:
        for part in self._parts(a):
            region_of(a.team, part.mask, part.ptr, a.site).store(part, value)

    def cells(self, a: Access) -> Words:
        part, *more = self._parts(a)
        if more:
            text = (
                "uses an atomic through a pointer that points into different arrays in different "
                "threads, which the simulated device does not run: use an 'if'"
            )
            a.team.fault(OutOfBoundsError, a.site.at, int(a.mask.index[0]), text)
        return region_of(a.team, part.mask, part.ptr, a.site).cells(part)


def mixed(ptr: Ptr) -> bool:
    """Tell whether a pointer points into different arrays in different threads."""
    return isinstance(ptr.region, MixedRegion)


def region_of(team: Team, mask: Mask, ptr: Ptr, site: Site) -> Region:
    """Return the memory that a pointer points into; `OutOfBoundsError` for the null pointer."""
    if ptr.region is None:
        verb = "writes through" if site.write else "reads through"
        team.fault(OutOfBoundsError, site.at, int(mask.index[0]), f"{verb} a null pointer")
    return ptr.region


class Nowhere:
    """The target of a number that is no address of the launch; every access to it fails."""

    def load(self, a: Access) -> Any:
        self._fault(a)

    def store(self, a: Access, value: Any) -> None:
        self._fault(a)

    def cells(self, a: Access) -> Words:
        self._fault(a)

    def _fault(self, a: Access) -> NoReturn:
        lane = int(a.mask.index[0])
        address = int(a.team.array(a.ptr.address())[lane])
        verb = "writes" if a.site.write else "reads"
        text = (
            f"{verb} at the address {address:#x}, which is in no memory that this launch knows of"
        )
        a.team.fault(OutOfBoundsError, a.site.at, lane, text)
