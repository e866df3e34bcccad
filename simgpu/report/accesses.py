"""Every access that the threads of one launch make, in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.common import LaunchDim
from simgpu.cuda_c import GlobalMemory, InterpreterLimits, Program, compile_source
from simgpu.cuda_c.cost.path import TRIP
from simgpu.cuda_c.lockstep.team import place_in
from simgpu.cuda_c.memory.pointers import Together
from simgpu.errors import FaultSite, KernelFault

Variables = Mapping[str, GlobalMemory]  # of a kernel's file, by name
NO_VARIABLES: Variables = {}


@dataclass(frozen=True)
class AccessSite:
    """One load or store of the source, by all threads that make it together."""

    line: int  # of the kernel's source, from 1
    array: str  # what is read or written
    write: bool
    # Their numbers in the grid: the block's number times the threads of a block, plus the thread's own.
    threads: NDArray[np.int64]
    elements: NDArray[np.int64]  # for each of them, the element that it touches
    size: int  # bytes, from there on
    # Until then, for each of them: the clocks that its warp was busy for, and how often that warp has waited
    # for memory, as a tally counts both. And how often blocks have met, with phases of barriers.
    clocks: NDArray[np.int64]
    trips: NDArray[np.float64]
    met: int
    atomic: bool = False
    volatile: bool = False
    apart: bool = False  # by a copy that goes on by itself


@dataclass
class Watched:
    """One launch, watched."""

    kernel: str
    source: str
    grid: LaunchDim  # (x, y, z)
    block: LaunchDim
    # The shape of each array; shared memory is one row.
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    # Bytes of an element of each array.
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    # The first of them, in order.
    steps: list[AccessSite] = field(default_factory=list[AccessSite])
    most: int = 80
    left_out: int = 0  # how many more there were
    own_bytes: int = 0  # of memory that each thread has for itself, for arrays
    # What ended it, if that was a fault of the kernel, and where that was.
    fault: Exception | None = None
    site: FaultSite | None = None

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2] * self.block_threads

    def name(self, thread: int) -> str:
        """A thread as CUDA names it."""
        block, own = divmod(thread, self.block_threads)
        return f"block {place_in(self.grid, block)}, thread {place_in(self.block, own)}"

    @property
    def culprits(self) -> list[int]:
        """The threads that are to blame: the one that failed, and whom it raced with."""
        site = self.site
        if site is None or site.thread is None or site.block is None:
            return []
        places = (site.block, self.grid), (site.thread, self.block)
        block, own = (at[0] + size[0] * (at[1] + size[1] * at[2]) for at, size in places)
        first = block * self.block_threads + own
        found = [first]
        for step in reversed(self.steps):
            if step.array == site.array:
                others = step.threads[(step.elements == site.index) & (step.threads != first)]
                if len(others):
                    found.append(int(others[0]))
                    break
        return found

    def run(
        self, args: Sequence[Any], shared_mem: int = 0, variables: Variables = NO_VARIABLES
    ) -> None:
        """Run the launch on these arguments, and note what its threads do."""
        program = program_with(self.source, variables)
        self.own_bytes = program.kernel(self.kernel).code.local_bytes
        limits = InterpreterLimits(watcher=self._note)
        launch = self.kernel, self.grid, self.block, args
        try:
            program.begin(*launch, dynamic_shared=shared_mem, limits=limits).finish()
        except KernelFault as fault:
            self.fault, self.site = fault, fault.site

    def _note(self, team: Any, mask: Any, ptr: Any, size: int, site: Any) -> None:
        if not hasattr(ptr.region, "shared"):  # memory that each thread has for itself
            return
        if len(self.steps) >= self.most:
            self.left_out += 1
            return
        layout = team.layout
        own = layout.numbers[layout.block[mask.index]] * self.block_threads
        unit = self.sizes.setdefault(ptr.name, size)
        self.shapes.setdefault(ptr.name, (ptr.region.nbytes // unit,))
        # In bulk, a lane has many elements.
        at = ptr.address() if isinstance(mask, Together) else mask.take(ptr.address())
        touched = np.broadcast_to(np.asarray(at) // unit, (mask.n,))
        threads = np.asarray(own + layout.linear[mask.index], np.int64)
        clocks, warp = team.meter.clocks(), layout.warp[mask.index]
        trips = (team.meter.progress() - clocks) / TRIP
        what = site.at.line, ptr.name, site.write, threads, np.array(touched, np.int64), size
        when = clocks[warp], trips[warp], team.meter.barriers
        kinds = site.scope > 0, site.volatile, site.apart
        self.steps.append(AccessSite(*what, *when, *kinds))


def program_with(source: str, variables: Variables, *, contract: bool = False) -> Program:
    """A program whose `__constant__` and `__device__` variables hold what these do."""
    program = compile_source(source, contract=contract)
    for name, memory in variables.items():
        program.variables[name].take(memory, memory.nbytes)
    return program


def memory_of(array: NDArray[Any], name: str) -> GlobalMemory:
    """A copy of an array, as an argument of `Watched.run`."""
    memory = GlobalMemory(array.nbytes, name)
    memory.data[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    memory.mark_written()
    return memory
