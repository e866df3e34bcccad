"""A kernel that is compiled, and what a launch of it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simgpu.cuda_c.compile.kernels import Code
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost.charges import Costs
from simgpu.cuda_c.cost.counts import Counts
from simgpu.cuda_c.cost.tally import Tally
from simgpu.cuda_c.lockstep.team import Dim, Launch, Limits
from simgpu.cuda_c.memory.access import NULL
from simgpu.cuda_c.memory.addresses import Addresses
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.hostile import MOST, Hostile, LateGlobal
from simgpu.cuda_c.memory.messages import Messages
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.run import parameter_values
from simgpu.cuda_c.run.blocks import Blocks
from simgpu.cuda_c.text.source import Source
from simgpu.cuda_c.types import Pointer, Scalar, Struct, kinds, size_of
from simgpu.errors import LaunchConfigError, UsageError


@dataclass(frozen=True)
class LaunchResult:
    """The outcome of a launch, apart from what it wrote."""

    counts: Counts  # what it did
    printed: str  # what it printed, in the order of its threads


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts of a kernel that follow from its source."""

    waits: bool  # whether it has a loop that may wait for others
    signals: Sequence[bool]  # for each parameter, whether it may signal others by it
    adds: Sequence[str]  # and the atomic by which it only adds to it, or nothing (`added_to`)
    follows: (
        bool  # whether it uses addresses as numbers, so that it may reach more than its arguments
    )
    cooperative: (
        bool  # whether it has a barrier of the grid, so that all blocks need a place at once
    )
    registers: int  # of a thread
    shared_bytes: int  # of a block, static
    talks: bool  # whether its threads may tell each other something


@dataclass(eq=False)
class Execution:
    """A launch under way: it runs on until it has ended, or waits for somebody else to write to memory."""

    _launch: Launch
    _blocks: Blocks
    _tally: Tally
    _regions: Mapping[int, GlobalRegion]
    _facts: dict[str, int]
    _spent: float = 0.0  # seconds of interpreting

    @property
    def changes(self) -> int:
        """How often it has changed memory, if its threads may wait for others."""
        return self._launch.changes

    def go_on(self, *, last: bool = False) -> bool:
        """Run on, since others wrote to memory, or with `last` never will; tell whether it has ended."""
        self._launch.since = time.monotonic() - self._spent
        try:
            with np.errstate(all="ignore"):
                if last:
                    return self._blocks.hurry()
                self._launch.changes += 1
                return self._blocks.run()
        finally:
            self._spent = time.monotonic() - self._launch.since

    def finish(self) -> LaunchResult:
        """Run to the end, with nobody else there.

        Raises `KernelFault` if the kernel does what no kernel may do; what it wrote until then stays written.
        """
        ended = self.go_on()
        while not ended:
            ended = self.go_on(last=True)
        return self.result()

    def result(self) -> LaunchResult:
        """The outcome so far."""
        loaded = stored = 0
        for region in self._regions.values():
            region.memory.settle()
            loaded += region.needed(0)
            stored += region.needed(1)
        launch = self._launch
        printed = "".join(launch.printed)
        if launch.dropped_lines:
            printed += f"... and {launch.dropped_lines} more calls of printf\n"
        return LaunchResult(self._tally.counts(self._facts, (loaded, stored)), printed)


@dataclass
class CompiledKernel:
    """A kernel that is ready to be launched: what it computes, and what that costs."""

    name: str
    source: Source  # for messages
    code: Code
    costs: Costs
    globals: list[Variable]  # the file's `__constant__` and `__device__` variables

    def check_room(self, blocks: int, fit: int | None) -> None:
        """Refuse more blocks than fit on the device at once, if all of them meet at a barrier of the grid."""
        if self.code.cooperative and fit is not None and blocks > fit:
            raise LaunchConfigError(
                f"kernel '{self.name}' has a barrier of the grid, so all its blocks must fit on the device "
                f"at once: {blocks} were asked for, {fit} fit"
            )

    def begin(
        self,
        variables: Mapping[str, GlobalMemory],
        grid: Dim,
        block: Dim,
        args: Sequence[parameter_values.Argument],
        dynamic_shared: int,
        limits: Limits,
        sample: Sequence[int] | None,
        find: Callable[[int], GlobalMemory | None] | None,
    ) -> Execution:
        """Begin a launch, as `Program.begin`; `variables` is the memory of `globals`, by name."""
        parameter_values.check_shape(self.name, grid, block)
        blocks = grid[0] * grid[1] * grid[2]
        self.check_room(blocks, limits.resident_blocks)
        tally = Tally(self.costs, self.code.sites)
        regions: dict[int, GlobalRegion] = {}

        def other(number: int) -> tuple[GlobalRegion, GlobalMemory] | None:
            memory = None if find is None else find(number)
            if memory is None:
                return None
            make = GlobalRegion if launch.hostile is None else LateGlobal
            region = regions[id(memory)] = make(memory, launch, 4, True)
            return region, memory

        addresses = Addresses(other)
        launch = Launch(
            self.name, self.source, grid, block, limits, tally, dynamic_shared, addresses
        )
        launch.fence_time = np.zeros(blocks, np.int64)
        launch.atomic_time = np.zeros(blocks, np.int64)
        launch.messages = Messages(blocks)
        launch.watches = self.code.watches
        if limits.hostile is not None and blocks * launch.threads <= MOST:
            launch.hostile = Hostile(limits.hostile)
        values = self._bind(variables, args, launch, addresses, regions)
        wanted = np.arange(blocks) if sample is None else np.asarray(sample, np.int64)
        facts = {
            "threads": len(wanted) * launch.threads,
            "warps": len(wanted) * -(-launch.threads // 32),
            "blocks": len(wanted),
            "shared_bytes": self.code.shared_bytes + dynamic_shared,
            "registers": self.costs.registers,
        }
        if launch.hostile is not None and blocks <= (limits.resident_blocks or blocks):
            launch.hostile.random.shuffle(wanted)
        blocks_of = Blocks(launch, self.code, tally, values, wanted)
        return Execution(launch, blocks_of, tally, regions, facts)

    def _bind(
        self,
        variables: Mapping[str, GlobalMemory],
        args: Sequence[parameter_values.Argument],
        launch: Launch,
        addresses: Addresses,
        regions: dict[int, GlobalRegion],
    ) -> dict[int, Any]:
        if len(args) != len(self.code.parameters):
            raise UsageError(
                f"kernel '{self.name}' takes {len(self.code.parameters)} arguments, {len(args)} given"
            )
        pointers: list[tuple[Variable, GlobalMemory]] = []
        values: dict[int, Any] = {}
        for variable, given in zip(self.code.parameters, args, strict=True):
            if isinstance(variable.type, Pointer) and given is None:
                values[variable.slot] = NULL
            elif isinstance(variable.type, Struct):
                values[variable.slot] = parameter_values.record_for(
                    self.name, variable, given, addresses
                )
            elif isinstance(variable.type, Pointer):
                pointers.append((variable, parameter_values.memory_for(self.name, variable, given)))
            else:
                values[variable.slot] = parameter_values.number_for(self.name, variable, given)
        pointers += [(v, variables[v.name]) for v in self.globals]
        # Parameters that point into one memory share its region, so that it sees all their accesses.
        cells: dict[int, int] = {}
        watched: set[int] = set()
        for variable, memory in pointers:
            parts = kinds(parameter_values.pointee(variable))
            sizes = [kind.size for kind in parts if isinstance(kind, Scalar)]
            cells[id(memory)] = min([cells.get(id(memory), 8), *sizes])
            if (
                variable.origin.has("written") or self.code.follows
            ):  # what is followed may lead here
                watched.add(id(memory))
        for variable, memory in pointers:
            key = id(memory)
            if key not in regions:
                make = GlobalRegion if launch.hostile is None else LateGlobal
                regions[key] = make(memory, launch, cells[key], key in watched)
            regions[key].declare(variable.name, variable.type)
            addresses.place(regions[key], variable.name, memory)
            step = size_of(parameter_values.pointee(variable))
            values[variable.slot] = Ptr(regions[key], 0, step, 0, variable.name)
        return values
