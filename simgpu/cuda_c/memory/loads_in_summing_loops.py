"""Loads in several turns of a loop at once, which `compile/summing` explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep.masks import Mask, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.pointers import Ptr, Region, row_of
from simgpu.cuda_c.types import Scalar


class Together:
    """Lanes in several turns of a loop, as a mask of the race detector."""

    def __init__(self, mask: Mask, turns: int) -> None:
        self.index = np.tile(mask.index, turns)
        self.n = len(self.index)

    def take(self, value: Any) -> Any:
        """A value of each lane, in each turn; a uniform value stays as it is."""
        return value[self.index] if varies(value) else value


def one_by_one(
    region: Region, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int
) -> Any:
    """A load in several turns of a loop, turn by turn; the rows of all."""
    turns, team.turns = team.turns, 0
    try:
        places = [replace(ptr, offset=row_of(ptr.offset, k)) for k in range(turns)]
        rows = [team.array(region.load(team, mask, p, scalar, site, wide)) for p in places]
    finally:
        team.turns = turns
    return np.stack(rows)
