"""Allocations of a simulated device, how much of it they fill, and at exit those that nobody let go of.

An array lives as long as something holds a handle to it. A list that collects results, a global, a future
that nobody awaits: each keeps device memory, and a GPU has little of it. With ``ASYNCGPU_LEAKS=1`` in the
environment, the end of the process names what was still alive on its simulated devices, and where it came
from.
"""

import atexit
import inspect
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

from simgpu.cuda_c import GlobalMemory
from simgpu.errors import DeviceError, OutOfMemoryError
from simgpu.order import History

ALIGNMENT = 256  # cudaMalloc: CUDA C++ Programming Guide, "Device Memory Accesses"
LEAKS = "ASYNCGPU_LEAKS"
MOST_NAMED = 20  # arrays that are named one by one
# Folders, with the separator, whose code allocates on behalf of whoever called it.
_PASSED_OVER = [f"{Path(__file__).resolve().parent}{os.sep}"]


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

    @property
    def place(self) -> int:
        """An address that no other memory has. For mapped memory it is the one on the host."""
        cells = self.cells
        host = cells.mapped or not self.ptr  # a variable of a file has no other
        return cells.data.__array_interface__["data"][0] if host else self.ptr


class Heap:
    """Gives out memory and counts it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.live = 0
        # Addresses only go up, so a pointer into freed memory never leads into somebody else's.
        self._next = 0x7F00_0000_0000
        self._alive: weakref.WeakSet[Memory] = weakref.WeakSet()
        self._report_leaks = os.environ.get(LEAKS, "") not in ("", "0")
        if self._report_leaks:
            atexit.register(_tell, weakref.ref(self))

    def alive(self) -> list[Memory]:
        """All memory that was allocated and not given back, in the order of allocation."""
        return sorted(self._alive, key=lambda memory: memory.ptr)

    def take(self, nbytes: int, name: str, make: Callable[[GlobalMemory, int], Memory]) -> Memory:
        """Allocate bytes, for which `make` makes what stands; `OutOfMemoryError` if they do not fit."""
        size = max(-(-nbytes // ALIGNMENT), 1) * ALIGNMENT
        if self.used + size > self.capacity:
            largest = max(self.alive(), key=lambda memory: memory.nbytes, default=None)
            which = (
                f" (the largest is {largest.name!r}, {largest.nbytes:,} bytes)" if largest else ""
            )
            raise OutOfMemoryError(
                f"out of memory on the simulated device: {nbytes:,} bytes for {name!r} do not fit, "
                f"{self.capacity - self.used:,} of {self.capacity:,} are free. "
                f"Drop arrays that are no longer needed{which}, or work in smaller batches."
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
            memory.origin = _origin()
        return memory

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


def pass_over(folder: Path) -> None:
    """Say of no array that it comes from code in this folder, but from what called that."""
    _PASSED_OVER.append(f"{folder}{os.sep}")


def _origin() -> str:
    """File and line of the innermost caller outside of this package."""
    frame = inspect.currentframe()
    passed = tuple(_PASSED_OVER)
    while frame is not None and frame.f_code.co_filename.startswith(passed):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


def _tell(reference: weakref.ref[Heap]) -> None:
    heap = reference()
    text = leak_report(heap.alive()) if heap is not None else ""
    if text:
        print(text, file=sys.stderr)  # noqa: T201 - this is what was asked for


def leak_report(alive: Iterable[Memory]) -> str:
    """The arrays of a `Heap` that are alive, largest first; empty if there are none."""
    found = sorted(alive, key=lambda a: -a.nbytes)  # stable: equals in the order of allocation
    if not found:
        return ""
    arrays = "1 array was" if len(found) == 1 else f"{len(found):,} arrays were"
    total = sum(allocation.nbytes for allocation in found)
    lines = [f"{arrays} still alive on a simulated device at exit, {total:,} bytes:"]
    for allocation in found[:MOST_NAMED]:
        where = f", allocated at {allocation.origin}" if allocation.origin else ""
        lines.append(f"  {allocation.name!r}, {allocation.nbytes:,} bytes{where}")
    if len(found) > MOST_NAMED:
        lines.append(f"  ... and {len(found) - MOST_NAMED:,} more")
    lines.append(
        "Drop handles that are no longer needed (del, or the end of a function), and wait for every "
        "operation that was started."
    )
    return "\n".join(lines)
