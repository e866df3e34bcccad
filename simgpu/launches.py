"""Pieces of work for a simulated device, each ready to be enqueued: once, or again and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal

import numpy as np

from simgpu import cuda_c
from simgpu.adversary import Adversary
from simgpu.common import Dim3, HostBuffer
from simgpu.cuda_c import GlobalMemory, LaunchResult
from simgpu.errors import DeviceMismatchError, UsageError
from simgpu.interrupts import interruptible
from simgpu.launch_cache import Remembered
from simgpu.memory import Memory
from simgpu.order import Tells
from simgpu.paused_kernels import Waiting
from simgpu.queues import Work
from simgpu.sampled_reference import StandIn
from simgpu.spec import DeviceSpec
from simgpu.times import KernelTime, copy_time, kernel_time, resident_blocks

Copying = Literal["memset", "h2d", "d2h", "d2d"]


@dataclass(frozen=True)
class Launched:
    """One launch, as it was executed."""

    kernel: str  # its name
    source: str  # in CUDA C
    grid: Dim3  # (x, y, z)
    block: Dim3
    counts: cuda_c.Counts  # what it did
    time: KernelTime  # what the model makes of that
    # Whether only a sample of its blocks was interpreted; see `sampled_reference`.
    extrapolated: bool = False


Observer = Callable[[Launched], None]


@dataclass(frozen=True, eq=False)
class Function:
    """A kernel that the interpreter has accepted."""

    program: cuda_c.Program
    signature: cuda_c.Signature
    source: str
    stand_in: StandIn | None = None
    remembered: Remembered | None = None
    contract: bool = False

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self.signature.name

    @cached_property
    def traits(self) -> cuda_c.Traits:
        """Facts of the kernel that each launch asks of the compiler."""
        return self.program.traits(self.name)

    @property
    def identity(self) -> Hashable:
        """The facts that another kernel has to share with this one to compute the same in the same way."""
        stand_in = self.stand_in
        reference = None if stand_in is None else (stand_in.reference, stand_in.above)
        return self.source, self.signature.name, self.contract, reference


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """One piece of work, with all that it needs but a stream."""

    kind: Literal["kernel", "memset", "h2d", "d2h", "d2d"]
    name: str  # as in its span
    cost: float  # what the host pays for the call, in us
    # Takes effect when the work starts, and says how long it takes. What it finds out is written into the
    # dictionary, for the span.
    begin: Callable[[dict[str, object]], Work]
    writes: Sequence[Memory]
    reads: Sequence[Memory] = ()
    detail: dict[str, object] = field(
        default_factory=dict[str, object]
    )  # of its span, from the start
    # Takes effect when the work is done: it writes to `fills`.
    at_end: Callable[[], None] | None = None
    fills: HostBuffer | None = None  # bytes of host memory
    fresh: Sequence[Memory] = ()  # what counts as just allocated when this begins
    # Bytes of pinned host memory that it reads, and that must not change until it has.
    lent: HostBuffer | None = None
    tells: Tells | None = None  # how a kernel may hear of others while it runs
    # By what it adds to those of `writes` that it does nothing else with: see `Traits.adds`.
    adds: Sequence[str] = ()


# What is moved within the device needs next to no places where it is little, and yet queues for one behind
# kernels whose blocks do not all have one: in recordings of an H200 fills wait for as long as kernels do.
# Where it is much, memory is all that it waits for, so that two at a time get half of that each.
_FILL = 1e-3  # of the device's places


def _copying(
    spec: DeviceSpec, kind: Copying, nbytes: int, effect: Callable[[], None] | None
) -> Callable[[dict[str, object]], Work]:
    def begin(_: dict[str, object]) -> Work:
        if effect is not None:
            effect()
        us = copy_time(spec, kind, nbytes)
        if kind in ("h2d", "d2h"):
            return Work(us)
        moving = 1 - spec.fill_us / us  # the part of its time in which memory is busy with it
        part = _FILL if moving < 0.5 else moving
        return Work(us, places=part, demand=part)

    return begin


def memset(spec: DeviceSpec, memory: object, value: int, nbytes: int) -> Piece:
    """Set the first `nbytes` bytes to `value`."""
    target = as_memory(memory)

    def fill() -> None:
        target.cells.data[:nbytes] = value
        _written(target, nbytes)

    begin = _copying(spec, "memset", nbytes, fill)
    return Piece("memset", "memset", spec.call_memset_us, begin, [target], detail={"bytes": nbytes})


def upload(
    spec: DeviceSpec, memory: object, host: HostBuffer, pinned: bool, staging_us: float = 0.0
) -> Piece:
    """Copy a C-contiguous host array to the start of `memory`.

    Pageable memory is read now: the host copies it into a staging buffer, for `staging_us`.
    """
    target = as_memory(memory)
    source = host.reshape(-1).view(np.uint8)
    if not pinned:
        source = source.copy()

    def write() -> None:
        target.cells.data[: source.nbytes] = source
        _written(target, source.nbytes)

    detail: dict[str, object] = {"bytes": source.nbytes}
    if not pinned:
        detail["pageable"] = True
    cost, begin = spec.call_h2d_us + staging_us, _copying(spec, "h2d", source.nbytes, write)
    lent = source if pinned else None
    return Piece("h2d", "h2d", cost, begin, [target], detail=detail, lent=lent)


def download(spec: DeviceSpec, host: HostBuffer, memory: object) -> Piece:
    """Copy the start of `memory` to a C-contiguous host array."""
    source = as_memory(memory)
    target = host.reshape(-1).view(np.uint8)

    def write() -> None:
        target[:] = source.cells.data[: target.nbytes]

    begin, cost = _copying(spec, "d2h", target.nbytes, None), spec.call_d2h_us
    detail: dict[str, object] = {"bytes": target.nbytes}
    return Piece("d2h", "d2h", cost, begin, [], [source], detail, at_end=write, fills=target)


def device_copy(spec: DeviceSpec, target: object, source: object, nbytes: int) -> Piece:
    """Copy within the device."""
    to, origin = as_memory(target), as_memory(source)

    def copy() -> None:
        _written(to, nbytes)
        to.cells.take(origin.cells, nbytes)

    begin = _copying(spec, "d2d", nbytes, copy)
    # The spec has no constant for this call: to the host it is taken to cost what an upload does.
    return Piece("d2d", "d2d", spec.call_h2d_us, begin, [to], [origin], {"bytes": nbytes})


@dataclass(eq=False, slots=True)
class KernelLaunch:
    """One launch of a kernel; `observers` are told of it when it has been executed.

    `find` says what memory is at an address: a kernel may follow others than those of its arguments.
    """

    spec: DeviceSpec
    function: Function
    grid: Dim3
    block: Dim3
    shared_mem: int
    observers: Sequence[Observer]
    find: Callable[[int], GlobalMemory | None]
    adversary: Adversary | None = None
    values: list[GlobalMemory | np.generic | None] = field(init=False)  # of its parameters

    def piece(self, args: Sequence[object]) -> Piece:
        """The launch with these arguments."""
        spec, function, traits = self.spec, self.function, self.function.traits
        parameters = function.signature.parameters
        if len(args) != len(parameters):
            raise UsageError(function.signature.miscounted(args))
        self.values = []
        written: list[Memory] = []
        told: list[Memory] = []
        # The atomics by which it adds to what it writes; "" is none.
        ways: dict[Memory, set[str]] = {}
        for arg, parameter, by, adds in zip(
            args, parameters, traits.signals, traits.adds, strict=True
        ):
            if not isinstance(arg, Memory):
                self.values.append(_scalar(arg, parameter))
                continue
            self.values.append(arg.cells)
            ways.setdefault(arg, set()).add(adds)
            if not parameter.const:
                written.append(arg)
            if by:
                told.append(arg)
        if traits.cooperative:  # refused by the call, as by CUDA's, and not by the run
            function.program.check_room(function.name, math.prod(self.grid), self._room())
        read = [memory for memory in ways if memory not in written]
        detail: dict[str, object] = {"grid": list(self.grid), "block": list(self.block)}
        tells = Tells(traits.waits, frozenset(map(_place, told)))
        adding = ["".join(ways[memory]) if len(ways[memory]) == 1 else "" for memory in written]
        made = ("kernel", function.name, spec.call_launch_us, self._begin, written, read, detail)
        return Piece(*made, tells=tells, adds=adding)

    def _room(self) -> int:
        """Blocks that the device holds at once."""
        traits, shape = self.function.traits, (self.spec, math.prod(self.block))
        shared = traits.shared_bytes + self.shared_mem
        return self.spec.sms * resident_blocks(*shape, shared, traits.registers)

    @property
    def _hostile(self) -> bool:
        """Tell whether memory is hostile to its threads."""
        return self.adversary is not None and self.function.traits.talks

    def _started(self) -> cuda_c.Execution:
        given = (self.function.name, self.grid, self.block, self.values)
        hostile = self.adversary.memory() if self.adversary is not None and self._hostile else None
        limits = cuda_c.Limits(resident_blocks=self._room(), hostile=hostile)
        return self.function.program.begin(
            *given, dynamic_shared=self.shared_mem, limits=limits, find=self.find
        )

    @interruptible()
    def _execute(self) -> tuple[LaunchResult, str | None]:
        stand_in = None if self._hostile else self.function.stand_in
        # What follows addresses may depend on more than its arguments.
        if stand_in is not None and not self.function.traits.follows:
            done = stand_in.launch(self.grid, self.block, self.values, self.shared_mem)
            if done is not None:
                return done
        return self._started().finish(), None

    def _begin(self, found: dict[str, object]) -> Work:
        function, values = self.function, self.values
        if function.traits.waits:
            # What it does depends on what others do meanwhile, so it is neither sampled nor kept.
            mapped = [v for v in values if isinstance(v, GlobalMemory) and v.mapped]
            times = partial(kernel_time, self.spec, threads=math.prod(self.block))
            finish = partial(self._finish, found)
            return Waiting(self._started(), mapped, times, finish).go_on(last=False)
        if function.remembered is None or function.traits.follows or self._hostile:
            return self._finish(found, *self._execute())
        kind = (function.identity, self.grid, self.block, self.shared_mem)
        blocks, variables = math.prod(self.grid), function.program.variables.values()
        done = function.remembered.run(kind, blocks, values, variables, self._execute)
        return self._finish(found, *done)

    def _finish(
        self, found: dict[str, object], result: LaunchResult, computed: str | None = None
    ) -> Work:
        if computed is not None:
            found["computed"] = computed
        counts = result.counts
        # Static shared memory limits occupancy as dynamic does; the counts have both.
        time = kernel_time(self.spec, counts, math.prod(self.block), counts.shared_bytes)
        found.update(bound=time.bound, fills=round(time.demand, 6))
        shape = (self.function.name, self.function.source, self.grid, self.block)
        for observe in self.observers:
            observe(Launched(*shape, counts, time, extrapolated=computed is not None))
        if result.printed:
            print(result.printed, end="")  # noqa: T201 - what the kernel printed
        return time.work


def as_memory(memory: object) -> Memory:
    """`memory`, if it is a simulated device's."""
    if not isinstance(memory, Memory):
        raise DeviceMismatchError(f"{memory!r} is not memory of a simulated device")
    return memory


def _place(memory: Memory) -> int:
    """An address that no other memory ever has. For mapped memory it is the one on the host."""
    cells = memory.cells
    return cells.data.__array_interface__["data"][0] if cells.mapped else memory.ptr


def _scalar(arg: object, parameter: cuda_c.Parameter) -> np.generic | None:
    if arg is None and parameter.pointer:
        return None
    if isinstance(arg, np.void):
        return arg
    if not isinstance(arg, bool | int | float | np.generic) or parameter.dtype is None:
        wanted = f"no number for {parameter.name!r}"
        raise UsageError(f"{arg!r} is not memory of this device, and {wanted}")
    number: np.generic = parameter.dtype.type(arg)
    return number


def _written(memory: Memory, nbytes: int) -> None:
    memory.cells.mark_written(0, nbytes)
    if nbytes == memory.nbytes:
        memory.spoiled = None
