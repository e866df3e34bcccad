"""Which threads execute: the heart of running all of them at once.

A kernel runs once for a whole batch of blocks. Each value is an array with one element a thread, and where
threads part, at an `if` or at the end of a loop, the two sides run one after the other, each for a mask of
the threads that take it. A statement takes the mask of those that come in and returns the mask of those that
go on behind it; those that left by `break` or `return` are kept aside (`Team.left`), and join the others
where their ways meet again.
"""

from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

WARP = 32
Bits: TypeAlias = NDArray[np.bool_]
Int64s: TypeAlias = NDArray[np.int64]


def varies(value: Any) -> TypeGuard[NDArray[Any]]:
    """Tell whether a value has one element for each thread, rather than one for all."""
    return isinstance(value, np.ndarray)


def by_lane(value: Any, lanes: int) -> NDArray[Any]:
    """A value as one element for each of so many lanes; not to be written to."""
    given = np.asarray(value)
    if given.size == lanes:  # asked first, because NumPy takes several microseconds to broadcast
        return given.reshape(lanes)
    return np.broadcast_to(given, (lanes,))


class ThreadLayout:
    """How the threads of a batch of blocks lie side by side.

    Lane `i` of the batch is thread `i % threads` of block `numbers[i // threads]` of the grid. A warp is
    32 threads of one block that follow each other; the last of a block may be shorter.
    """

    def __init__(self, threads: int, numbers: Int64s) -> None:
        self.threads = threads  # of one block
        self.numbers = numbers
        self.blocks = blocks = len(numbers)
        self.lanes = threads * blocks
        self.warps_per_block = -(-threads // WARP)
        self.warps = self.warps_per_block * blocks
        self.index: Int64s = np.arange(self.lanes)
        self.block: Int64s = self.index // threads
        self.linear: Int64s = self.index - self.block * threads
        self.warp: Int64s = self.block * self.warps_per_block + self.linear // WARP
        self.lane: Int64s = self.linear % WARP
        self.warp_start: Int64s = np.flatnonzero(self.lane == 0)
        self.even = threads % WARP == 0
        self.full = Mask(self, np.ones(self.lanes, np.bool_), self.lanes)

    def words(self, bits: Bits) -> NDArray[np.uint32]:
        """For each warp, its lanes that are set, as a number."""
        powers = np.where(bits, np.uint32(1) << self.lane.astype(np.uint32), np.uint32(0))
        return np.bitwise_or.reduceat(powers, self.warp_start)

    def any_by_warp(self, bits: Bits) -> Bits:
        """For each warp, whether one of its lanes is set."""
        if self.even:
            # The 32 truths of a warp are four words of 8 bytes, so NumPy has an eighth to look at.
            return np.asarray(bits.view(np.uint64).reshape(-1, 4).any(axis=1))
        return np.asarray(np.logical_or.reduceat(bits, self.warp_start))


class Mask:
    """A set of lanes, never empty; "no lanes" is None.

    `pending` is how often its warps have passed each point since they were last credited (`cost.tally`).
    """

    __slots__ = (
        "_index", "_warps", "bits", "charged", "full", "layout", "n", "n_warps", "pending", "sample",
    )  # fmt: skip

    def __init__(self, layout: ThreadLayout, bits: Bits, n: int) -> None:
        self.layout = layout
        self.bits = bits
        self.n = n
        self.full = n == layout.lanes
        self._index: Int64s | None = None
        self._warps: Bits | None = None
        self.n_warps = layout.warps if self.full else int(np.count_nonzero(self.warps))
        self.charged = False
        self.pending: dict[int, int] = {}
        self.sample: Any = None  # which of its warps are looked at (`cost.tally`)

    @property
    def index(self) -> Int64s:
        """The lanes of the set, ascending."""
        if self._index is None:
            self._index = self.layout.index if self.full else np.flatnonzero(self.bits)
        return self._index

    @property
    def warps(self) -> Bits:
        """For each warp, whether a lane of it is in the set."""
        if self._warps is None:
            self._warps = self.layout.any_by_warp(self.bits)
        return self._warps

    def take(self, value: Any) -> Any:
        """The elements of a value that belong to the set, of each row; a uniform value stays as it is."""
        if self.full or not varies(value):
            return value
        if value.ndim > 1:
            return value[:, self.index] if value.shape[1] > 1 else value
        return value.take(self.index)

    def spread(self, part: NDArray[Any]) -> NDArray[Any]:
        """Undo `take`: an array over all lanes, zero outside the set."""
        if self.full:
            return part
        out = np.zeros(self.layout.lanes, part.dtype)
        out[self.index] = part
        return out


def split(mask: Mask, condition: Any) -> tuple[Mask | None, Mask | None]:
    """The lanes of `mask` for which a condition holds, and the others."""
    if not varies(condition):
        return (mask, None) if condition else (None, mask)
    chosen = condition if mask.full else mask.bits & condition
    n = int(np.count_nonzero(chosen))
    if n == 0:
        return None, mask
    if n == mask.n:
        return mask, None
    others = mask.bits ^ chosen
    return Mask(mask.layout, chosen, n), Mask(mask.layout, others, mask.n - n)


def join(a: Mask | None, b: Mask | None, whole: Mask | None = None) -> Mask | None:
    """Union of two disjoint sets; `whole`, if it is that union, is returned as the same object.

    To keep one object for one set matters: variables remember the set they were born in.
    """
    if a is None or b is None:
        return b if a is None else a
    n = a.n + b.n
    if whole is not None and n == whole.n:
        return whole
    if n == a.layout.lanes:
        return a.layout.full
    return Mask(a.layout, a.bits | b.bits, n)
