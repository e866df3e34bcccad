"""Memory that the host shares with a kernel that waits for it, and the fences that such a talk needs.

All accesses may be volatile, so that none is a data race, and still come in the wrong order. Two words tell.
A thread stores to one and then to the other, without a `__threadfence_system()` between, and the host writes
over the second: so it took that for a signal, and may have seen it before the first. Or a thread looks at one
until the host has written there, and then, without that fence, at the other, which the host wrote before.
What the host reads, nobody sees. What it wrote is what changes while the kernel is paused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Launch, Team
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.types import Scalar
from simgpu.errors import RaceError

_UNIT = 4  # bytes that are kept account of together; a longer word counts by its first ones
# What is known of a thread: the words that it looked at last; of which turn of the host it has heard there,
# and up to which it has fenced since; and the first word to which it has stored since its last fence.
_LOOKED, _HEARD, _KNOWS, _FIRST = slice(0, 2), 2, 3, 4


class MappedRegion(GlobalRegion):
    """An allocation of the host's."""

    def __init__(self, memory: GlobalMemory, launch: Launch, cell: int, watched: bool) -> None:
        super().__init__(memory, launch, cell, watched)
        launch.talk.append(self)
        self._held, self._turn, units = self.data, 0, self.nbytes // _UNIT + 1
        # The host's last turn in which it wrote to a unit, and whether it ever did; where the writer of a
        # unit had stored before that, without a fence; and from which place in the source it came.
        self._by_host, self._signal = np.zeros(units, np.int64), np.zeros(units, np.bool_)
        self._before, self._site = np.full(units, -1, np.int64), np.zeros(units, np.int64)
        self._sites: dict[int, tuple[Team, Site, str, int]] = {}
        self._threads: dict[Team, NDArray[np.int64]] = {}

    def pause(self) -> None:
        """From now on it is the host that writes."""
        self._held = self.data.copy()

    def fence(self, team: Team, lanes: NDArray[np.int64]) -> None:
        """These lanes execute a fence that reaches the host; siblings may have met it at a barrier."""
        threads = self._of(team)
        threads[_KNOWS, lanes] = threads[_HEARD, lanes]
        threads[_LOOKED, lanes] = -1
        threads[_FIRST, np.isin(team.layout.block, team.layout.block[lanes])] = -1

    def _of(self, team: Team) -> NDArray[np.int64]:
        if team not in self._threads:
            self._threads[team] = np.full((5, team.layout.lanes), -1)
        return self._threads[team]

    def _units(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site
    ) -> NDArray[np.int64]:
        shift, part = self.locate(team, mask, ptr, scalar, site)
        index = np.asarray(part, np.int64) + shift
        return np.broadcast_to(index * scalar.size // _UNIT, (mask.n,))

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        super().store(team, mask, ptr, scalar, value, site, wide)
        units, first = self._units(team, mask, ptr, scalar, site), self._of(team)[_FIRST]
        before = first[mask.index]
        self._before[units] = np.where(before == units, -1, before)
        first[mask.index] = np.where((before < 0) & ~self._signal[units], units, before)
        self._by_host[units], self._site[units] = 0, site.index
        self._sites[site.index] = team, site, ptr.name, scalar.size

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        value = super().load(team, mask, ptr, scalar, site, wide)
        if team.turns:
            return value
        threads, lanes = self._of(team), mask.index
        units = self._units(team, mask, ptr, scalar, site)
        wrote, known = self._by_host[units], (threads[_LOOKED, lanes] == units).any(axis=0)
        news = (wrote > 0) & (wrote > threads[_KNOWS, lanes])
        late = news & ~known & (wrote <= threads[_HEARD, lanes])
        if late.any():
            name = self.spelled(ptr.name, int(units[late][0]) * _UNIT, scalar.size)
            text = (
                f"reads {name}, which the host wrote before the flag at which this thread waited, without a "
                "__threadfence_system() behind its look at the flag: it may be read before the flag"
            )
            team.fault(RaceError, site.at, int(lanes[late][0]), text, array=ptr.name)
        threads[_HEARD, lanes[news & known]] = wrote[news & known]
        threads[1, lanes[~known]], threads[0, lanes[~known]] = (
            threads[0, lanes[~known]],
            units[~known],
        )
        return value

    def answered(self) -> None:
        """The host has had its turn: see what it wrote."""
        self._turn += 1
        units = np.unique(np.flatnonzero(self.data != self._held) // _UNIT)
        self._by_host[units], self._signal[units] = self._turn, True
        before = self._before[units]
        bad = (before >= 0) & ~self._signal[before]
        if bad.any():
            (_, one, data), (team, two, flag) = map(self._store, (before[bad][0], units[bad][0]))
            text = (
                f"writes {data} (line {one.at.line}) and then {flag}, which the host took for a signal, "
                "without a __threadfence_system() between: the host may see the signal first"
            )
            team.fault(RaceError, two.at, None, text)

    def _store(self, unit: np.int64) -> tuple[Team, Site, str]:
        team, site, name, size = self._sites[int(self._site[unit])]
        return team, site, self.spelled(name, int(unit) * _UNIT, size)
