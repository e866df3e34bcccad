"""Launches of kernels on a simulated device: what they compute, how long that takes, and who waits.

What was computed before is looked up (`remembered`), and of a large launch a part is interpreted
(`sampled_reference`).

A kernel that waits for the host is harder, because nothing runs beside Python (`Waiting`). It is
interpreted as far as it comes. What it computed until then counts as time, and it looks at memory again no
sooner than it could have done that work. Its writes to memory of the host were made at once, while the
interpreter ran ahead of the clock, so they are taken back and made again when the clock gets there.
Otherwise the host would see answers before they were asked for.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from simgpu import cuda_c
from simgpu.common import HostBytes, LaunchDim
from simgpu.cuda_c import GlobalMemory, LaunchResult
from simgpu.errors import DeviceError, LaunchConfigError, UsageError
from simgpu.interrupts import interruptible
from simgpu.memory import Memory
from simgpu.order import Bytes, Tells
from simgpu.pieces import EnginePiece
from simgpu.queues import ResourceDemand, Shows
from simgpu.remembered import LARGEST, Done, Remembered
from simgpu.sampled_reference import SMALLEST, StandIn, Values
from simgpu.times import KernelTime, kernel_time, resident_blocks

if TYPE_CHECKING:
    from simgpu.device import Device

# What a kernel that spins takes from others besides its places: next to nothing, as one that sleeps does.
_IDLE = 1e-9
_TRIP = 1.0  # us over the bus: between two looks of a kernel that naps, or two writes that do not come as one


@dataclass(frozen=True)
class Launched:
    """One launch, as it was executed."""

    kernel: str  # its name
    source: str  # in CUDA C
    grid: LaunchDim  # (x, y, z)
    block: LaunchDim
    counts: cuda_c.Counts  # what it did
    time: KernelTime  # what the model makes of that
    # Whether only a sample of its blocks was interpreted; see `sampled_reference`.
    extrapolated: bool = False


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """A kernel that the interpreter has accepted."""

    program: cuda_c.Program
    kernel: cuda_c.CompiledKernel
    source: str
    stand_in: StandIn | None = None
    remembered: Remembered | None = None
    contract: bool = False

    @property
    def name(self) -> str:
        """Its name in the source."""
        return self.kernel.signature.name

    @property
    def named(self) -> list[GlobalMemory]:
        """The memory of the file's variables that it names."""
        return [self.program.variables[variable.name] for variable in self.kernel.named]

    @cached_property
    def identity(self) -> Hashable:
        """The facts that another kernel has to share with this one to compute the same in the same way."""
        stand_in = self.stand_in
        reference = None if stand_in is None else (stand_in.reference, stand_in.above)
        return self.source, self.kernel.signature.name, self.contract, reference


@dataclass(eq=False, slots=True)
class KernelLaunch:
    """One launch of a kernel; the device's observers are told of it when it has been executed."""

    device: Device
    function: LoadedKernel
    grid: LaunchDim
    block: LaunchDim
    shared_mem: int
    values: Values  # of its parameters
    tells: bool  # the host, as it goes
    # By the `id` of a memory, the bytes that it touched there when it ran last, as bits.
    touched: dict[int, NDArray[np.uint8]] = field(default_factory=dict[int, NDArray[np.uint8]])

    @classmethod
    def piece(
        cls,
        device: Device,
        function: LoadedKernel,
        grid: LaunchDim,
        block: LaunchDim,
        args: Sequence[object],
        shared_mem: int,
    ) -> EnginePiece:
        """A launch with these arguments, to be enqueued."""
        kernel, parameters = function.kernel, function.kernel.signature.parameters
        if len(args) != len(parameters):
            raise UsageError(kernel.signature.miscounted(args))
        name = kernel.signature.name
        grid, block, shared_mem = cuda_c.check_shape(name, grid, block, shared_mem)
        values: list[GlobalMemory | np.generic | None] = []
        # The memories, whether it may write there, whether it signals by them, and the atomic by which it
        # adds to them if that is all; "" is none.
        used: list[tuple[Memory, bool, bool, str]] = []
        uses = kernel.uses
        for arg, parameter, (_, by, adds) in zip(args, parameters, uses, strict=False):
            if not isinstance(arg, Memory) or not parameter.pointer:
                given = arg.cells if isinstance(arg, Memory) else arg
                values.append(cuda_c.passed(parameter, given))
                continue
            values.append(arg.cells)
            used.append((arg, not parameter.const, by, adds))
        if kernel.named:
            for cells, use in zip(function.named, uses[len(args) :], strict=True):
                used.append((device.placed(cells), *use))
        written, told, tells = list[Memory](), set[int](), False
        ways: dict[Memory, set[str]] = {}
        for memory, writes, by, adds in used:
            ways.setdefault(memory, set()).add(adds)
            if writes:
                written.append(memory)
            if by:
                told.add(memory.place)
                tells |= memory.cells.mapped
        own = kernel.code.shared_bytes
        if own or shared_mem:
            room = device.spec.shared_bytes_per_block
            if own + shared_mem > room:
                raise LaunchConfigError(
                    f"kernel '{name}': a block takes {own + shared_mem:,} bytes of shared "
                    f"memory ({own:,} static, {shared_mem:,} dynamic): {device.spec.name} has {room:,}"
                )
        launch = cls(device, function, grid, block, shared_mem, values, tells)
        # Refused by the call, as by CUDA's, and not by the run.
        kernel.check_fit(grid, block, launch._room() if kernel.code.cooperative else None)
        read = [memory for memory in ways if memory not in written]
        cost = device.spec.call_launch_us
        detail: dict[str, object] = {"grid": list(grid), "block": list(block)}
        traceable, did = launch._traceable, launch.touched.copy
        ways_of_bytes = launch._reach(traceable), did, kernel.chosen if traceable else bool
        heard = Tells(kernel.code.watches, frozenset(told), *ways_of_bytes)
        adding = ["".join(ways[memory]) if len(ways[memory]) == 1 else "" for memory in written]
        made = ("kernel", name, cost, launch._begin, written, read, detail)
        return EnginePiece(*made, tells=heard, adds=adding)

    def _reach(self, traceable: bool) -> Callable[[], Bytes]:
        """Tells which bytes it would touch: by a run on copies, once for what is there."""
        function, shape, shared = self.function, (self.grid, self.block), self.shared_mem
        given = [weakref.ref(v) if isinstance(v, GlobalMemory) else v for v in self.values]
        known = dict[Hashable, Bytes]()

        def reached() -> Bytes:
            kernel, variables = function.kernel, function.program.variables
            values = [v() if isinstance(v, weakref.ref) else v for v in given]
            if not traceable:
                return {}
            places = (*values, *function.named)
            sums = tuple(v.checksum() for v in places if isinstance(v, GlobalMemory))
            if sums in known:
                return known[sums]
            known.clear()
            copies = {id(v): v.copy() for v in places if isinstance(v, GlobalMemory)}
            for memory in copies.values():
                # Whether somebody wrote it is checked in the launch itself, and would end this one early.
                memory.mark_written()
            others = {name: copies.get(id(v), v) for name, v in variables.items()}
            args = [copies.get(id(v), v) for v in values]
            try:
                run = kernel.begin(others, *shape, args, dynamic_shared=shared)
                run.finish()
            except DeviceError:
                return {}
            known[sums] = {key: run.touched(copy) for key, copy in copies.items()}
            return known[sums]

        return reached

    @property
    def _memories(self) -> list[GlobalMemory]:
        """All that it may touch, unless it follows addresses."""
        named = self.function.named if self.function.kernel.named else ()
        return [v for v in (*self.values, *named) if isinstance(v, GlobalMemory)]

    @property
    def _traceable(self) -> bool:
        """Whether it is noted which bytes it touches: not where that is much, or depends on others."""
        code = self.function.kernel.code
        threads = math.prod(self.grid) * math.prod(self.block)
        much = threads > cuda_c.InterpreterLimits.batch_lanes
        much |= sum(v.nbytes for v in self._memories) > LARGEST
        return not (much or code.watches or code.follows)

    def _room(self) -> int:
        """Blocks that the device holds at once."""
        kernel, shape = self.function.kernel, (self.device.spec, math.prod(self.block))
        shared = kernel.code.shared_bytes + self.shared_mem
        return self.device.spec.sms * resident_blocks(*shape, shared, kernel.registers)

    @property
    def _hostile(self) -> bool:
        return self.device.adversary is not None and self.function.kernel.code.talks

    def _started(self) -> cuda_c.Execution:
        shared, adversary = self.shared_mem, self.device.adversary
        hostile = adversary.memory() if adversary is not None and self._hostile else None
        most, leap = self.device.step_budget, self.device.leap
        limits = cuda_c.InterpreterLimits(most, leap, resident_blocks=self._room(), hostile=hostile)
        given = (self.function.program.variables, self.grid, self.block, self.values)
        find = self.device.heap.find  # it may follow other addresses than those of its arguments
        return self.function.kernel.begin(*given, dynamic_shared=shared, limits=limits, find=find)

    def _execute(self) -> Done:
        stand_in = self.function.stand_in
        large = math.prod(self.grid) >= SMALLEST
        # What follows addresses may depend on more than its arguments.
        follows = self.function.kernel.code.follows
        if stand_in is not None and large and not follows and not self._hostile:
            done = stand_in.launch_sampled(self.grid, self.block, self.values, self.shared_mem)
            if done is not None:
                return done
        run = self._started()
        done = run.finish()
        if self._traceable:
            done = replace(done, touched=[*map(run.touched, self._memories)])
        return done, None

    def _begin(self, found: dict[str, object]) -> ResourceDemand:
        function, code = self.function, self.function.kernel.code
        if code.watches or self.tells:
            # What it does depends on what others do meanwhile, or tells them: it is neither sampled nor kept.
            began = self.device.machine.engine.now
            return Waiting(self, self._started(), found, began).go_on(last=False)
        late = self.device.adversary is not None and code.talks
        execute = partial(interruptible, self._execute)
        if function.remembered is None or code.follows or late:
            return self.finish(found, *execute())
        # What may take so many steps may be too much for a smaller budget.
        most = self.device.step_budget
        kind = (function.identity, self.grid, self.block, self.shared_mem, most)
        variables = function.program.variables.values()
        done = function.remembered.run(kind, self.values, variables, execute)
        return self.finish(found, *done)

    def finish(
        self, found: dict[str, object], result: LaunchResult, computed: str | None = None
    ) -> ResourceDemand:
        """The launch has been executed: how long that takes."""
        self.touched.clear()
        self.touched.update(zip(map(id, self._memories), result.touched, strict=False))
        if computed is not None:
            found["computed"] = computed
        counts = result.counts
        time = self.time(counts)
        found.update(bound=time.bound, fills=round(time.work.demand, 6))
        function = self.function
        shape = (function.kernel.signature.name, function.source, self.grid, self.block)
        for observe in self.device.observers:
            observe(Launched(*shape, counts, time, extrapolated=computed is not None))
        if result.printed:
            print(result.printed, end="")  # noqa: T201 - what the kernel printed
        return time.work

    def time(self, counts: cuda_c.Counts) -> KernelTime:
        """The modelled time of a launch with these counts."""
        # Static shared memory limits occupancy as dynamic does; the counts have both.
        return kernel_time(self.device.spec, counts, math.prod(self.block), counts.shared_bytes)


@dataclass(frozen=True, eq=False, slots=True)
class HostWrite:
    """Bytes that a kernel has written to memory of the host, which is yet to see them."""

    by: Waiting
    # The memory, what the host knows of it, where, and what.
    news: list[tuple[HostBytes, HostBytes, NDArray[np.int64], HostBytes]]

    def __call__(self) -> None:
        """Write again, since the host has come to that; it is not the host's own write."""
        self.by.steps += 1
        for data, known, where, values in self.news:
            data[where] = known[where] = values


@dataclass(eq=False)
class Waiting:
    """A launch whose threads wait for the host, or for another kernel, until these write to memory.

    What Python does until the engine asks again is what the host does meanwhile. The launch looks at memory
    no sooner than `ready`. Its writes to memory of the host are made at the times in `shows`, but none before
    one that was interpreted earlier, be it another kernel's, which may be its cause.
    """

    _launch: KernelLaunch
    _execution: cuda_c.Execution
    _found: dict[str, object]
    _began: float  # when, in us
    _known: list[HostBytes] = field(default_factory=list[HostBytes])  # what the host saw last
    _left: list[HostBytes] = field(default_factory=list[HostBytes])  # after its own writes so far
    _shows: Shows = field(default_factory=Shows)
    _first: float = 0.0  # when, in us, the first write was made that is in none of these
    _last: float = 0.0  # and the last one
    _volatile: bool = False  # whether that was by a pointer to volatile, as of a flag
    _zero: float = 0.0  # when its clock was at 0, without what it waited
    steps: int = 0  # of the engine until now
    _worked: float = 0.0  # us until now, and
    _clock: float = 0.0  # by the clock of its furthest warp alone
    _counted: cuda_c.Counts | None = None  # what it had done by then
    _started: float = 0.0  # us that one takes which does nothing
    _napped: float = 0.0  # us since others have last written to memory
    _idle: float | None = None  # us after its start, since when none has found what it waits for

    @property
    def changes(self) -> int:
        """The number of times that it has changed memory itself."""
        return self._execution.launch.changes

    def stirred(self) -> bool:
        """True if the host has written to memory that it can see since it last looked."""
        return not all(map(np.array_equal, self._mapped, self._known))

    @cached_property
    def _mapped(self) -> list[HostBytes]:
        values = self._launch.values
        return [v.data for v in values if isinstance(v, GlobalMemory) and v.mapped]

    def _writes(self, clock: int, volatile: bool) -> None:
        """It is about to write to memory of the host, where all that it wrote before is there.

        A flag doesn't wait for the results that are stored behind it.
        """
        at = self._zero + clock / self._launch.device.spec.clock_mhz
        if at > self._first + _TRIP or volatile < self._volatile:
            self._note()
            self._first = at
        self._volatile = volatile
        self._last = max(self._last, at)

    def _note(self) -> None:
        """Note what it has written since the last time."""
        write = HostWrite(self, [])
        for data, known, left in zip(self._mapped, self._known, self._left, strict=True):
            where = np.flatnonzero(data != left)
            left[where] = data[where]
            write.news.append((data, known, where, left[where]))
        if any(len(where) for _, _, where, _ in write.news):
            self._shows.append((self._last, write))

    def _reckon(self, counts: cuda_c.Counts, now: float) -> float:
        """Say how long it was at work, in us: by its clock, and longer by as much as what it did since.

        What it did before tells nothing of that: a block that computes takes longer than one that looks.
        """
        launch, tally = self._launch, self._execution.tally
        spec, clock, worked = launch.device.spec, self._clock, self._worked
        self._clock = tally.latest() / spec.clock_mhz
        if self._counted is None:
            us = launch.time(counts).us - spec.launch_us
            self._started = launch.time(cuda_c.counted_since(counts, counts)).us
        else:
            us = launch.time(cuda_c.counted_since(self._counted, counts)).us - self._started
        self._counted = counts
        slower = max(us / max(self._clock - clock, 1e-3), 1.0)
        self._worked = max(worked, spec.launch_us) + (self._clock - clock) * slower
        self._shows = Shows((now + (at - now) * slower, show) for at, show in self._shows)
        return self._worked - worked

    def _look(self, unseen: Shows, now: float) -> None:
        """Let it see memory as it is, and what other kernels have written, which the host is yet to see."""
        self._known = [data.copy() for data in self._mapped]
        self._shows, self._first, self._last, self._zero = Shows(), now, now, now - self._clock
        for at, write in unseen:
            self._last = max(self._last, math.nextafter(at, math.inf))
            for data, _, where, values in write.news:
                if any(np.may_share_memory(data, mine) for mine in self._mapped):
                    data[where] = values
        self._left = [data.copy() for data in self._mapped]

    def go_on(self, *, last: bool) -> ResourceDemand:
        """Run on. With `last`, nobody else can write to memory any more: `DeviceError` if it cannot end."""
        engine, execution = self._launch.device.machine.engine, self._execution
        state, mhz = execution.launch, self._launch.device.spec.clock_mhz
        now, host = engine.now, engine.begun + engine.looks == self.steps + 1  # this look alone
        state.waited = max(state.waited, int((now - self._began - self._worked) * mhz))
        changes = state.changes
        state.leapt *= not self.stirred()
        state.writes = self._writes if self._mapped else None
        self._look(engine.unseen if self._mapped else Shows(), now)
        ended = interruptible(partial(execution.go_on, last=last, host=host))
        self._note()
        for data, known in zip(self._mapped, self._known, strict=True):
            data[:] = known
        self.steps = engine.begun + engine.looks
        result = execution.result(by_line=ended)
        time = self._launch.time(result.counts)
        took = self._reckon(result.counts, now)
        shown = self._shows[-1][0] if self._shows else now
        quiet = not ended and state.naps and state.changes == changes + 1  # to look counts as one
        if not quiet:
            at = now - self._began
            if self._idle is not None and at > self._idle:
                waits = self._found.setdefault("waits", list[tuple[float, float]]())
                cast("list[tuple[float, float]]", waits).append((self._idle, at))
            self._idle = at + took
        if ended:
            done = self._launch.finish(self._found, result)
            return replace(done, us=max(took, shown - now), shows=self._shows)
        naps, ready = state.naps, max(now + took, shown)
        if naps:  # the longer it has waited, the longer it sleeps: looks are dear to simulate
            self._napped = self._napped if quiet else 0.0
            nap = max(_TRIP, self._napped / 20)
            self._napped += nap
            ready += nap
        until = ResourceDemand(math.inf, time.work.places, _IDLE, paused=self, shows=self._shows)
        return replace(until, ready=ready, naps=naps)
