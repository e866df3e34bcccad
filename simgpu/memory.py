"""Allocations of a simulated device, and how much of it they fill."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from simgpu import leaks
from simgpu.cuda_c import GlobalMemory
from simgpu.errors import DeviceError, OutOfMemoryError
from simgpu.order import History

ALIGNMENT = 256  # cudaMalloc: CUDA C++ Programming Guide, "Device Memory Accesses"


class Memory:
    """One allocation. It is freed when the last reference to it goes."""

    def __init__(self, cells: GlobalMemory, ptr: int) -> None:
        self.name = cells.name  # for messages and traces
        self.nbytes = cells.nbytes
        self.ptr = ptr  # its address on the device
        self.cells = cells  # the bytes, as the interpreter sees them
        # Set while its contents are not what was asked for, because the operation that should have written
        # them had failed.
        self.spoiled: DeviceError | None = None
        self.history = History()  # who touched it last
        self.origin = ""  # where it was allocated, if leaks are to be reported


class Heap:
    """Gives out memory and counts it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.live = 0
        self._next = 0x7F00_0000_0000
        self._alive: weakref.WeakSet[Memory] = weakref.WeakSet()
        self._report_leaks = leaks.wanted()
        if self._report_leaks:
            leaks.watch(self)

    def alive(self) -> list[Memory]:
        """All memory that was allocated and not given back, in the order of allocation."""
        return sorted(self._alive, key=lambda memory: memory.ptr)

    def take(
        self, nbytes: int, name: str, make: Callable[[GlobalMemory, int], Memory] = Memory
    ) -> Memory:
        """Allocate `nbytes` bytes; `make` says what stands for them.

        Raises `OutOfMemoryError` if they do not fit beside what is allocated already.
        """
        size = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
        if self.used + size > self.capacity:
            raise OutOfMemoryError(
                f"out of memory on the simulated device: {nbytes:,} bytes for {name!r} do not fit, "
                f"{self.capacity - self.used:,} of {self.capacity:,} are free. "
                f"Drop arrays that are no longer needed{self._largest()}, or work in smaller batches."
            )
        try:
            memory = make(GlobalMemory(nbytes, name), self._next)
            memory.cells.address = self._next
        except MemoryError:
            raise OutOfMemoryError(
                f"out of memory on this machine: the simulated device keeps its arrays in host memory, "
                f"and {nbytes:,} bytes for {name!r} do not fit. Drop arrays that are no longer needed, of "
                "NumPy as well (`del x`), or restart Python."
            ) from None
        self._next += size + ALIGNMENT
        self.used += size
        self.live += 1
        weakref.finalize(memory, self._give_back, size)
        self._alive.add(memory)
        if self._report_leaks:
            memory.origin = leaks.origin()
        return memory

    def _largest(self) -> str:
        largest = max(self._alive, key=lambda memory: memory.nbytes, default=None)
        if largest is None:
            return ""
        return f" (the largest is {largest.name!r}, {largest.nbytes:,} bytes)"

    def find(self, address: int) -> GlobalMemory | None:
        """The memory at an address, if some is still there."""
        for memory in self._alive:
            if memory.ptr <= address <= memory.ptr + memory.nbytes:
                return memory.cells
        return None

    def address(self, nbytes: int) -> int:
        """A made-up address for memory that is not from here."""
        start, self._next = self._next, self._next + (-(-nbytes // ALIGNMENT) + 1) * ALIGNMENT
        return start

    def _give_back(self, size: int) -> None:
        self.used -= size
        self.live -= 1
