"""Loads in several turns of a loop at once, which `compile/summing` explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.pointers import Ptr, Region, row_of
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import Scalar
from simgpu.errors import KernelFault


class Together:
    """Lanes in several turns of a loop, as a team and a mask of the race detector."""

    def __init__(self, team: Team, mask: Mask, turns: int) -> None:
        self._team = team
        self._lanes = np.tile(mask.index, turns)
        self.n = len(self._lanes)
        self.index: NDArray[np.int64] = np.arange(self.n)
        self.launch = team.launch
        self.clock = team.clock
        self.thread_id = team.thread_id[self._lanes]
        self.block_time, self.warp_time = (
            time[self._lanes] if varies(time) else time
            for time in (team.block_time, team.warp_time)
        )
        self.fenced, self.fetched = (
            None if time is None else time[self._lanes] for time in (team.fenced, team.fetched)
        )

    def take(self, value: Any) -> Any:
        """All of a value."""
        return value

    def fault(
        self, kind: type[KernelFault], at: Position, lane: int, what: str, **more: Any
    ) -> NoReturn:
        """Raise for the lane that it is in the team."""
        self._team.fault(kind, at, int(self._lanes[lane]), what, **more)


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
