"""Loads in several turns of a loop at once, which `compile/summing_loops` explains."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.lockstep.values import varies
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
        rows = [
            team.array(
                region.load(
                    team, mask, replace(ptr, offset=row_of(ptr.offset, k)), scalar, site, wide
                )
            )
            for k in range(turns)
        ]
    finally:
        team.turns = turns
    return np.stack(rows)


def grid_of(view: NDArray[Any], part: Any) -> NDArray[Any] | None:
    """The elements `part` of a memory, a row for each turn, as a view with three axes, if there is one.

    In a tile an index goes up by the same from turn to turn, from row to row of threads, and from thread to
    thread, or not at all. So a view by strides shows what would take an array of addresses to gather.
    """
    if np.ndim(part) != 2 or part.shape[1] < 2 or len(part) < 2:
        return None
    turns, lanes = part.shape
    first = part[0]
    across = int(first[1] - first[0])
    uneven = np.flatnonzero(np.diff(first) != across)
    columns = int(uneven[0]) + 1 if len(uneven) else lanes
    if lanes % columns:
        return None
    down = int(first[columns] - first[0]) if columns < lanes else 0
    shape = turns, lanes // columns, columns
    steps = int(part[1, 0] - first[0]), down, across
    index = first[0] + sum(
        np.arange(n).reshape((n, *(1,) * (2 - axis))) * step
        for axis, (n, step) in enumerate(zip(shape, steps, strict=True))
    )
    if not np.array_equal(index.reshape(turns, lanes), part):
        return None
    size = view.itemsize
    strides = tuple(step * size for step in steps)
    return np.ndarray(shape, view.dtype, view, int(first[0]) * size, strides)


def alike(a: Any, b: Any) -> tuple[Any, Any]:
    """What two loads give in several turns, of which at least one is a view with three axes, as factors."""
    shape = np.shape(a) if np.ndim(a) == 3 else np.shape(b)
    return _as_grid(a, shape), _as_grid(b, shape)


def _as_grid(value: Any, shape: tuple[int, ...]) -> Any:
    if np.ndim(value) == 0 or np.shape(value) == shape:
        return value
    turns = value.shape[0] if value.ndim > 1 else 1
    if value.shape == (turns, 1):
        return value[:, :, None]
    return value.reshape(turns, *shape[1:])
