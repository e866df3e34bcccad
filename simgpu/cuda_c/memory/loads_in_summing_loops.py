"""Loads in several turns of a loop at once, which `compile/summing` explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simgpu.cuda_c.lockstep.masks import Mask, varies
from simgpu.cuda_c.memory.pointers import Access, Region, row_of


class Together:
    """Lanes in several turns of a loop, as a mask of the race detector."""

    def __init__(self, mask: Mask, turns: int) -> None:
        self.index = np.tile(mask.index, turns)
        self.n = len(self.index)

    def take(self, value: Any) -> Any:
        """A value of each lane, in each turn; a uniform value stays as it is."""
        return value[self.index] if varies(value) else value


def one_by_one(region: Region, a: Access) -> Any:
    """A load in several turns of a loop, turn by turn; the rows of all."""
    team, turns = a.team, a.team.turns
    team.turns = 0
    try:
        places = [replace(a.ptr, offset=row_of(a.ptr.offset, k)) for k in range(turns)]
        rows = [team.array(region.load(replace(a, ptr=place))) for place in places]
    finally:
        team.turns = turns
    return np.stack(rows)
