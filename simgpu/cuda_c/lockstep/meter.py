"""The interface by which a running kernel reports what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask, ThreadLayout
from simgpu.cuda_c.text.source import Position

ByTurn: TypeAlias = Callable[[int], None]  # given the number of a turn of a loop


@dataclass
class Site:
    """One load or store in the source: where messages point, and under what number it is counted.

    Two `volatile` accesses do not race, since threads signal each other by them; and `relaxed` reads are not
    checked, because they are in a compare-and-swap loop. A read `polls` if it is in a loop that waits by
    it. What is `packed` is moved byte by byte. The `scope` of an atomic is 1 for its block alone, or 2 for
    the device.
    """

    index: int
    at: Position
    write: bool = False
    volatile: bool = False
    packed: bool = False
    relaxed: bool = False
    polls: bool = False
    scope: int = 0


class Meter(Protocol):
    """Told of everything that may cost time. A `point` is the number of a straight piece of code."""

    barriers: int  # block barriers passed
    exact_left: int  # lane accesses whose addresses are still to be noted one by one

    def charge(self, point: int, mask: Mask, times: int = 1) -> None:
        """The lanes of `mask` pass a point so many times."""
        ...

    def changed(self, mask: Mask) -> None:
        """The lanes of `mask` have changed memory, for which others may wait."""
        ...

    def meet(self, layout: ThreadLayout, lanes: NDArray[np.int64]) -> None:
        """These lanes meet those of their blocks."""
        ...

    def woken(self, mask: Mask) -> None:
        """The lanes of `mask` look at memory again, since others have changed it."""
        ...

    def asleep(self, mask: Mask, bits: NDArray[np.bool_]) -> None:
        """Lanes of `mask` have looked in vain once more, and have done nothing else since they were woken."""
        ...

    def branch(self, point: int, yes: Mask | None, no: Mask | None) -> None:
        """A condition at a point has parted these lanes."""
        ...

    def clocks(self) -> NDArray[np.int64]:
        """Return the clock of each warp, which goes on with the instructions that the warp has issued."""
        ...

    def progress(self) -> NDArray[np.float64]:
        """Return about how long each warp has been at work, in clocks, with the waits for its data."""
        ...

    def global_access(self, site: Site, mask: Mask, element: Any, size: int) -> None:
        """A load or store of global memory: element number `element`, of `size` bytes, of each lane."""
        ...

    def shared_access(self, site: Site, mask: Mask, element: Any, size: int) -> None:
        """The same of shared memory, where elements are numbered within a block."""
        ...

    def turns(
        self, site: Site, mask: Mask, count: int, size: int, shared: bool, access: ByTurn
    ) -> None:
        """A load by the lanes of `mask` in several turns of a loop; `access(k)` reports that of turn `k`."""
        ...

    def atomic(
        self, mask: Mask, index: NDArray[np.int64], size: int, shared: bool, key: int, waits: bool
    ) -> None:
        """An atomic on elements `index` of `size` bytes of the memory `key`; `waits`: for the results."""
        ...
