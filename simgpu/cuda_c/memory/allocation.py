"""Memory that outlives a launch: what the host allocates and a kernel's pointers point into."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from simgpu.common import BytePlaces


@dataclass(frozen=True, eq=False)
class MemoryState:
    """A copy of what some memory held at one time."""

    data: NDArray[np.uint64]  # its contents, padded
    # Tells byte by byte where it was written; None if everywhere.
    shadow: NDArray[np.uint64] | None

    @cached_property
    def nbytes(self) -> int:
        """Size of the copy in bytes."""
        return self.data.nbytes + (0 if self.shadow is None else self.shadow.nbytes)


class GlobalMemory:
    """One allocation; `name` is what to call it where no parameter's name is at hand.

    `room` has bytes of somebody else, in place of new ones: a multiple of 16, and at least `nbytes`. They
    count as written.
    """

    def __init__(self, nbytes: int, name: str = "", room: NDArray[np.uint8] | None = None) -> None:
        if nbytes < 0:
            raise ValueError(f"an allocation of {nbytes} bytes is not possible")
        self.nbytes = nbytes
        self.name = name
        self.address = 0  # where it is on its device; 0 if it is on none
        self.readonly = False  # whether a kernel that writes to it fails
        self.mapped = room is not None  # whether it is the host's, who may write to it at any time
        # Of mapped memory: the bytes that the host has read since a kernel last asked, in order.
        self.looked = deque[BytePlaces](maxlen=1024)
        self.advice = ""  # what a message about a read of what nothing has written adds
        # If set, kernels note here which bytes they store to: 1 for each.
        self.trail: NDArray[np.uint8] | None = None
        # The room is a multiple of 16 bytes, so that every element type has a view of all of it.
        new = np.zeros(-(-nbytes // 16) * 16, np.uint8) if room is None else room
        self._room: NDArray[np.uint8] = new
        # Its contents. Whoever writes here says so by `mark_written`.
        self.data = self._room[:nbytes]
        self._written: NDArray[np.uint8] | None = None
        self.fully_initialised = nbytes == 0 or room is not None
        self._views: dict[Any, NDArray[Any]] = {}

    def view(self, dtype: DTypeLike) -> NDArray[Any]:
        """Its contents as elements of `dtype`; a remainder of bytes at the end is left out."""
        view = self._views.get(dtype)
        if view is None:
            wanted = np.dtype(dtype)
            count = self.nbytes // wanted.itemsize
            view = self.data[: count * wanted.itemsize].view(wanted)
            self._views[dtype] = view
        return view

    @property
    def shadow(self) -> NDArray[np.uint8]:
        """One byte for each byte of the memory and its padding: 1 where written."""
        if self._written is None:
            self._written = np.full(self._room.size, int(self.fully_initialised), np.uint8)
        return self._written

    def mark_written(self, start: int = 0, stop: int | None = None) -> None:
        """Say that bytes `start` to `stop` now hold something; without arguments, all of them."""
        stop = self.nbytes if stop is None else stop
        if start <= 0 and stop >= self.nbytes:
            self.fully_initialised = True
            self._written = None
        elif not self.fully_initialised:
            self.shadow[start:stop] = 1

    def take(self, source: GlobalMemory, nbytes: int) -> None:
        """Hold the first bytes of another; what nothing has written there is unwritten here, too."""
        self.data[:nbytes] = source.data[:nbytes]
        if source is self:
            return
        self.mark_written(0, nbytes)
        if not source.fully_initialised and not self.mapped:  # the host may write there at any time
            self.shadow[:nbytes] = source.shadow[:nbytes]
            self.fully_initialised = False

    def copy(self) -> GlobalMemory:
        """Another allocation with the same contents, of which kernels leave a trail."""
        other = GlobalMemory(self.nbytes, self.name)
        other._room[:] = self._room
        other.readonly = self.readonly
        other.advice = self.advice
        other.fully_initialised = self.fully_initialised
        other._written = None if self._written is None else self._written.copy()
        other.trail = np.zeros_like(other._room)
        return other

    def state(self) -> MemoryState:
        """A copy of what it holds."""
        shadow = None if self.fully_initialised else self.shadow.view(np.uint64).copy()
        return MemoryState(self._room.view(np.uint64).copy(), shadow)

    def checksum(self) -> tuple[object, ...]:
        """What two that hold the same have in common, and other two hardly ever."""
        shadow = None if self.fully_initialised else crc32(self.shadow.data)
        return self.nbytes, self.readonly, crc32(self._room.data), shadow

    def holds(self, state: MemoryState) -> bool:
        """Tell whether it holds the same bytes, and is written in the same places."""
        if self.fully_initialised is not (state.shadow is None):
            return False
        shadow = state.shadow
        if shadow is not None and not np.array_equal(self.shadow.view(np.uint64), shadow):
            return False
        return np.array_equal(self._room.view(np.uint64), state.data)

    def become(self, state: MemoryState) -> None:
        """Hold what it held then, or what another of the same size did."""
        self._room.view(np.uint64)[:] = state.data
        self.fully_initialised = state.shadow is None
        self._written = None if state.shadow is None else state.shadow.copy().view(np.uint8)

    def settle(self) -> None:
        """Drop the bookkeeping once every byte has been written."""
        written = self._written
        if written is not None and written[: self.nbytes].all():
            self.mark_written()
