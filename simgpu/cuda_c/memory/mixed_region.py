"""Pointers that point into several memories, or into none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.loads_in_summing_loops import one_by_one
from simgpu.cuda_c.memory.pointers import Ptr, Region, Words
from simgpu.cuda_c.types import Scalar
from simgpu.errors import OutOfBoundsError


class MixedRegion:
    """The target of a pointer that does not point into the same array in every thread."""

    def __init__(self, choices: list[tuple[NDArray[np.bool_], Region | None, str]]) -> None:
        self.choices = choices

    def _parts(self, mask: Mask, ptr: Ptr) -> list[tuple[Mask, Ptr]]:
        out: list[tuple[Mask, Ptr]] = []
        for bits, region, name in self.choices:
            chosen = mask.bits & bits
            n = int(np.count_nonzero(chosen))
            if n:
                out.append((Mask(mask.layout, chosen, n), replace(ptr, region=region, name=name)))
        return out

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        if team.turns:
            return one_by_one(self, team, mask, ptr, scalar, site, wide)
        out = np.zeros(mask.layout.lanes, scalar.dtype)
        for part, own in self._parts(mask, ptr):
            region = region_of(team, part, own, site)
            value = team.array(region.load(team, part, own, scalar, site, wide))
            out[part.index] = value[part.index]
        return out

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        for part, own in self._parts(mask, ptr):
            region_of(team, part, own, site).store(team, part, own, scalar, value, site, wide)

    def cells(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site) -> Words:
        parts = self._parts(mask, ptr)
        if len(parts) > 1:
            text = (
                "uses an atomic through a pointer that points into different arrays in different "
                "threads, which the simulated device does not run: use an 'if'"
            )
            team.fault(OutOfBoundsError, site.at, int(mask.index[0]), text)
        part, own = parts[0]
        return region_of(team, part, own, site).cells(team, part, own, scalar, site)


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

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        self._fault(team, mask, ptr, site)

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        self._fault(team, mask, ptr, site)

    def cells(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site) -> Words:
        self._fault(team, mask, ptr, site)

    def _fault(self, team: Team, mask: Mask, ptr: Ptr, site: Site) -> NoReturn:
        lane = int(mask.index[0])
        address = int(np.broadcast_to(np.asarray(ptr.address()), (mask.layout.lanes,))[lane])
        text = (
            f"{'writes' if site.write else 'reads'} at the address {address:#x}, where nothing is that this "
            "launch knows of"
        )
        team.fault(OutOfBoundsError, site.at, lane, text)
