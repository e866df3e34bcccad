"""The simulated device: values from the interpreter, times from the model, order from the engine."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

from numpy.typing import DTypeLike

from simgpu import pieces
from simgpu.adversary import Adversary
from simgpu.common import (
    Caller,
    HostBytes,
    Kind,
    LaunchDim,
    PreparedCall,
    Recorder,
    as_lengths,
)
from simgpu.cuda_c import GlobalMemory, InterpreterLimits, Program, compile_source
from simgpu.errors import (
    DeviceError,
    DeviceMismatchError,
    RunawayKernelError,
    UpstreamError,
    UsageError,
)
from simgpu.gpus import find_spec
from simgpu.graph import Replay
from simgpu.launches import KernelLaunch, Launched, LoadedKernel
from simgpu.links import peer_copy
from simgpu.machine import Machine, Wake, exclusive
from simgpu.memory import Heap, Memory
from simgpu.order import BufferAccess, Clock, HostUse
from simgpu.pieces import EnginePiece
from simgpu.queues import Command, EngineEvent, ResourceDemand
from simgpu.remembered import LAUNCHES
from simgpu.sampled_reference import LARGE, Reference, StandIn
from simgpu.spec import H200, DeviceSpec
from simgpu.stream import Event, Stream
from simgpu.times import staging_time, unstaging_time


@dataclass(slots=True)
class _Cause:
    """One call's work on a stream: one piece, or a decision and all that follows from it."""

    stream: Stream
    access: BufferAccess
    op: int | None
    label: str
    call: int | None  # its span
    in_graph: bool
    ready: float  # when the host had enqueued it, or it was decided, in us
    behind: tuple[int, ...] = ()  # once it was decided: the span that the next one follows
    inside: dict[str, object] = field(default_factory=dict[str, object])  # for their spans

    def draft(self, log: Recorder, piece: EnginePiece) -> Any:
        """The span of a piece of it."""
        told = {**self.inside, **piece.detail}
        if piece.decides is not None:
            self.inside = {key: told[key] for key in ("graph", "node") if key in told}
        return log.draft(
            piece.kind,
            piece.name,
            self.stream.number,
            op=self.op,
            label=self.label,
            call=self.call,
            after=self.behind,
            detail=told,
        )


class Device:
    """A GPU that exists in the imagination, down to the microsecond.

    Parameters
    ----------
    ordinal : int
        Number of the device on its machine.
    spec : DeviceSpec or str
        Which GPU it imitates; also by name, such as ``"t4"``, or from a file of `save_spec`.
    machine : Machine
        The host that it is plugged into; devices of one machine share its clock.
    adversary : int, optional
        A seed. The device then works in a hostile order, as far as streams and events allow, and its
        times mean nothing. Results of a correct program stay what they are.
    stand_in_above : float
        Launches of kernels that have a reference in NumPy are computed by it, once the interpreter has
        checked it on some of the blocks, if they are more work than this: instructions of single threads,
        and 300 more for each thread. The usual 2**32 is about two seconds of interpreting; ``math.inf``
        turns it off.
    load_us : float
        What it costs the host to compile and load a kernel that is new to the device, in us. 0 is a
        program that was warmed up.
    """

    stream_type: ClassVar[type[Stream]] = Stream
    machine_type: ClassVar[type[Machine]] = Machine
    # The program that makes the calls: another one, if it makes them in groups, or must not wait at times.
    caller: ClassVar[Caller] = Caller()
    step_budget: ClassVar[int] = InterpreterLimits.step_budget  # a loop with more turns never ends
    leap: int | None = None  # see `InterpreterLimits`
    most_turns: ClassVar[int] = 10_000  # the same, of a loop in a graph

    def __init__(
        self,
        ordinal: int = 0,
        spec: DeviceSpec | str = H200,
        machine: Machine | None = None,
        *,
        adversary: int | None = None,
        stand_in_above: float = LARGE,
        load_us: float = 0.0,
    ) -> None:
        for what, given, kind, told in (
            ("ordinal", ordinal, Integral, "an integer"),
            ("machine", machine, Machine | None, "a Machine"),
            ("adversary", adversary, Integral | None, "an integer"),
        ):
            if not isinstance(given, kind):
                raise UsageError(f"the {what} of a device is {told}, and got {given!r:.99}")
        self.ordinal = ordinal
        self.spec = spec = find_spec(spec)
        self.machine = machine or self.machine_type()  # the host that it is plugged into
        self.lock = self.machine.lock
        self.adversary = None if adversary is None else Adversary(adversary)
        self.stand_in_above = stand_in_above
        self.load_us = load_us
        self.heap = Heap(spec.memory_bytes)
        self.recorder: Recorder | None = None  # where spans are written while somebody records
        self.observers: list[Callable[[Launched], None]] = []  # of every kernel that is executed
        self._functions: dict[tuple[object, ...], LoadedKernel] = {}
        self._modules: dict[tuple[object, ...], Program] = {}
        self._variables: dict[GlobalMemory, Memory] = {}  # of the files of kernels
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        # The work of streams that are no more, by whether these were ordered with the null stream.
        self.gone = {True: Clock(), False: Clock()}
        self._next_stream = 0
        self._submission: int | None = None
        self.default_stream = self.create_stream(non_blocking=True)  # which legacy CUDA calls null

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    @property
    def name(self) -> str:
        """Such as ``"sim:0"``."""
        return f"sim:{self.ordinal}"

    @property
    def description(self) -> str:
        """A name of the device for people."""
        if self.adversary is not None:
            seed = self.adversary.seed
            return f"simulated {self.spec.name}, times mean nothing (adversary {seed})"
        return f"simulated {self.spec.name}, times are modelled"

    def now(self) -> float:
        """The host's clock, in us."""
        return self.machine.host

    def spend(self, us: float) -> tuple[float, float]:
        """The host is busy for `us` microseconds; start and end."""
        return self.machine.spend(us)

    def pay(self, op: int | None, us: float) -> tuple[float, float]:
        """The host makes a call of a group, and with its first one pays for the group; start and end."""
        if op is None or op == self._submission:
            return self.spend(us)
        self._submission, group_us = op, self.spec.submit_us
        start, end = self.spend(group_us + us)
        return start + group_us, end

    def call(self, name: str, us: float, rest: float = 0.0, /, **detail: object) -> int | None:
        """The host makes a call; id of its span, if there is a recording.

        Of its `us`, the `rest` is still to be spent: the device may begin before the call returns.
        """
        start, end = self.pay(self.caller.group()[0], us - rest)
        if self.recorder is None:
            return None
        return self._host_span("call", name, start, end + rest, detail=detail)

    def work(self, us: float, name: str) -> None:
        """Keep the host busy for `us` microseconds."""
        self._host_span("work", name, *self.spend(us))

    @exclusive
    def block(self, event: EngineEvent, before: Clock, name: str, heads: tuple[int, ...]) -> None:
        """The host waits for `event`, and then knows that the work `before` it is complete.

        `heads` are the spans in front of it.
        """
        span = self.machine.block_on(event, self.spec.sync_us)
        self._host_span("wait", f"synchronize {name}", *span, heads)
        self.machine.observe(before)

    def watch(self, event: object, wake: Wake) -> None:
        """Call `wake` once, after `event`, with the error of the work before it or None.

        That is when somebody calls the machine's `advance`, or its `wake` for what has passed by then.
        """
        if not isinstance(event, Event):
            raise DeviceMismatchError(f"{event!r} is not an event of a simulated device")
        self.machine.watch(event.state, event.before, wake, self.spec.wake_us)

    @exclusive
    def synchronize(self) -> None:
        """Block the host until the device has nothing left to do, and raise what went wrong in it."""
        self.caller.before_wait("device.synchronize()")
        for stream in self._by_number():
            if not stream.queue.idle:
                stream.drain()
            self.machine.observe(stream.clock)
        self._observe_gone()
        self.machine.engine.raise_failures(lambda queue: queue.device == self.ordinal)

    @property
    def blocking_streams(self) -> list[Stream]:
        """Those that are ordered with the null stream."""
        return [stream for stream in self._by_number() if stream.blocking]

    def _by_number(self) -> list[Stream]:
        return sorted(self._streams, key=lambda s: s.number)

    @exclusive
    def create_stream(self, *, non_blocking: bool = False) -> Stream:
        """A new stream; as in CUDA it is ordered with the null stream, unless it is `non_blocking`."""
        stream = self.stream_type(self, self._next_stream, not non_blocking)
        self._next_stream += 1
        self._streams.add(stream)
        return stream

    @exclusive
    def malloc(self, nbytes: int, name: str, stream: object) -> Memory:
        """Allocate."""
        (nbytes,) = as_lengths(nbytes, "memory")
        self.call(f"malloc {name}", self.spec.call_malloc_us)
        return self.heap.take(nbytes, name, self.memory_of)

    def memory_of(self, cells: GlobalMemory, ptr: int) -> Memory:
        """Bytes of the interpreter, as this device gives them out."""
        return Memory(cells, ptr)

    def pinned(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> HostBytes:
        """A host array that counts as page-locked."""
        return self.machine.pinned(shape, dtype)

    def map_host(self, host: HostBytes, name: str) -> Memory:
        """The memory of a whole pinned array, as a kernel sees it."""
        room = self.machine.room_of(host)
        cells = GlobalMemory(host.nbytes, name, room)
        cells.looked = self.machine.looks.setdefault(id(room), cells.looked)
        return self.memory_of(cells, self.heap.address(host.nbytes))

    def is_pinned(self, array: HostBytes) -> bool:
        """True if `pinned` made this array or the one that it is a view of, or if it has no bytes."""
        return self.machine.is_pinned(array)

    def memset_async(self, memory: object, value: int, nbytes: int, stream: object) -> None:
        """Set the first `nbytes` bytes to `value`."""
        self.enqueue(pieces.memset(self.spec, memory, value, nbytes), stream)

    def copy_from_host_async(self, memory: object, host: HostBytes, stream: object) -> None:
        """Copy a C-contiguous host array to the start of `memory`.

        From pageable memory the host first copies into a staging buffer, and is busy with that.
        """
        pinned = self.is_pinned(host)
        staging = 0.0 if pinned else staging_time(self.spec, host.nbytes)
        self.enqueue(pieces.upload_piece(self.spec, memory, host, pinned, staging), stream)

    def copy_to_host_async(self, host: HostBytes, memory: object, stream: object) -> None:
        """Copy the start of `memory` to a C-contiguous host array.

        To pageable memory the call returns when the copy is done.
        """
        piece = pieces.download(self.spec, host, memory)
        pinned = self.is_pinned(host)
        if not pinned:
            piece.detail["pageable"] = True
        self.enqueue(piece, stream)
        if not pinned:
            done = self.own(stream).record()
            self.block(done.state, done.before, "pageable copy", done.heads)
            self.spend(unstaging_time(self.spec, host.nbytes))

    def copy_from_device_async(
        self, target: object, source: object, nbytes: int, stream: object
    ) -> None:
        """Copy within the device."""
        self.enqueue(pieces.device_copy(self.spec, target, source, nbytes), stream)

    def enqueue_peer_copy(
        self,
        target: object,
        source: object,
        nbytes: int,
        ends: tuple[Device, Device],
        stream: object,
    ) -> None:
        """Copy from a device of this machine to another, of which one is this."""
        origin, to = ends
        if origin.machine is not to.machine:
            text = "are not in one simulated machine, so nothing links them"
            raise DeviceMismatchError(f"{origin.name} and {to.name} {text}")
        work = peer_copy(self.machine.wiring, origin.ordinal, to.ordinal, nbytes)
        detail = {"bytes": nbytes, "from": origin.ordinal, "to": to.ordinal}
        self.enqueue(pieces.peer_copy_piece(self.spec, work, target, source, **detail), stream)

    def get_function(
        self,
        source: str,
        name: str,
        reference: Reference | None = None,
        contract: bool = False,
        module: object = None,
    ) -> LoadedKernel:
        """Compile for the interpreter, once for each source.

        Kernels of one source share its `__device__` variables if they have the same `module`; one that has
        none has variables of its own.

        Products and sums are rounded one by one unless they are to `contract`, as on the CUDA device. Of a
        launch with a `reference` and more work than `stand_in_above`, only a sample of the blocks is
        interpreted.
        """
        key = source, name, reference, contract, module
        function = self._functions.get(key)
        if function is None:
            if self.load_us:
                self.call(f"load {name}", self.load_us)
            program = compile_source(source, contract=contract)
            if module is not None:
                program = self._modules.setdefault((source, contract, module), program)
            kernel, stand_in = program.kernel(name), None
            if reference is not None:
                stand_in = StandIn(program, kernel.signature, reference, self.stand_in_above)
            function = LoadedKernel(program, kernel, source, stand_in, LAUNCHES, contract)
            # Another thread may have been first, and there is one set of its `__device__` variables.
            function = self._functions.setdefault(key, function)
        return function

    def variable(self, function: object, name: str, nbytes: int) -> Memory:
        """The memory of a `__constant__` or `__device__` variable of a kernel's file."""
        variables = self.own_function(function).program.variables
        if name not in variables:
            there = ", ".join(variables) or "none"
            raise UsageError(f"no variable of the kernel's file is called {name!r}: it has {there}")
        return self.placed(variables[name])

    def placed(self, cells: GlobalMemory) -> Memory:
        """The memory of a variable, whose accesses are all noted in one place."""
        return self._variables.setdefault(cells, self.memory_of(cells, 0))

    def launch(
        self,
        function: object,
        grid: LaunchDim,
        block: LaunchDim,
        args: Sequence[object],
        shared_mem: int,
        stream: object,
    ) -> None:
        """Enqueue one launch."""
        known = self.own_function(function)
        self.enqueue(KernelLaunch.piece(self, known, grid, block, args, shared_mem), stream)

    def own_function(self, function: object) -> LoadedKernel:
        """A kernel, if it was compiled for a simulated device."""
        if not isinstance(function, LoadedKernel):
            raise DeviceMismatchError(f"{function!r} was not compiled for {self.name}")
        return function

    def prepare(self, calls: Sequence[PreparedCall]) -> Replay:
        """Make these calls ready."""
        return Replay(self, calls)

    @exclusive
    def settle(self) -> None:
        """Simulate the rest of what is enqueued; the host comes back when it is done."""
        self.machine.settle()
        for stream in self._by_number():
            self.machine.observe(stream.clock)
        self._observe_gone()

    def _observe_gone(self) -> None:
        for clock in self.gone.values():
            self.machine.observe(clock.copy())  # as another stream may go meanwhile

    def _host_span(
        self,
        kind: Kind,
        name: str,
        start: float,
        end: float,
        waits_for: tuple[int, ...] = (),
        detail: Mapping[str, object] | None = None,
    ) -> int | None:
        if self.recorder is None:
            return None
        op, label = self.caller.group()
        draft = self.recorder.draft(
            kind, name, None, op=op, label=label, waits_for=waits_for, detail=detail
        )
        return self.recorder.finish(draft, start, end).id

    @exclusive
    def enqueue(
        self,
        piece: EnginePiece,
        stream: object,
        in_graph: tuple[int | None, BufferAccess] | None = None,
    ) -> None:
        """The host makes the call for a piece of work, and the stream has one more.

        In a graph the call has been made and its access noted: `in_graph` has the call's span, if there is a
        recording, and that access.
        """
        target = self.own(stream)
        group = self.caller.group()
        now, shared = target.ordered(), pieces.on_host(piece)
        if in_graph is not None:
            call, access = in_graph
            now.tick(access.key)
        else:
            self.machine.make_room()
            access = target.access(piece.name, group, piece.tells, now)
            with pieces.Noted(self.machine.host_history) as noted:
                noted.touch(piece, shared, access, now)
            does = "launch" if piece.kind == "kernel" else "enqueue"
            call = self.call(f"{does} {piece.name}", piece.cost)
        ready = self.machine.host + self.spec.start_us
        cause = _Cause(target, access, *group, call, in_graph is not None, ready)
        target.submit(self._command(piece, shared, cause))
        by = "kernel" if piece.kind == "kernel" else "copy"
        for array, name, _, alone in shared:
            if alone:
                what = f"{name!r} was changed while its {by}"
                self.machine.lend(access, target.clock.copy(), array, what)

    def _command(
        self, piece: EnginePiece, uses: list[HostUse], cause: _Cause, turn: int = 0
    ) -> Command:
        """The entry of a queue for a piece of work; `turn` counts how often it has come round."""
        kind, name, target, access = piece.kind, piece.name, cause.stream, cause.access
        log = self.recorder
        draft: Any = None if log is None or cause.behind else cause.draft(log, piece)
        delay, stretch = (0.0, 1.0) if self.adversary is None else self.adversary.whim()
        found: dict[str, object] = {"turn": turn} if turn else {}
        fills = [array for array, _, writes, _ in uses if writes] if uses else []
        before = target.clock.copy() if fills else target.clock

        def start() -> ResourceDemand:
            nonlocal draft
            if log is not None and draft is None:
                draft = cause.draft(log, piece)
            if turn > self.most_turns:
                raise RunawayKernelError(
                    f"{name} has come round {turn} times, and {piece.reads[0].cells.name!r} still says: once "
                    "more. Something in its body has to set that to 0."
                )
            for memory in piece.fresh:
                memory.spoiled = None
            for memory in (*piece.reads, *(piece.writes if kind == "kernel" else ())):
                if memory.spoiled is not None:
                    raise UpstreamError(
                        f"{name!r} did not run, because the operation that should have written "
                        f"{memory.cells.name!r} had failed: {memory.spoiled}"
                    ) from memory.spoiled
            if fills and piece.at_end is None:
                work = self.machine.fill(access, before, fills, partial(piece.begin, found))
            else:
                work = piece.begin(found)
            access.begins()
            if work.paused is not None:
                return work
            return replace(work, us=work.us * stretch, drain=work.drain * stretch)

        def end(started: float, ended: float, waited: float) -> None:
            self.machine.over(access)
            if piece.at_end is not None:
                self.machine.fill(access, before, fills, piece.at_end)
            if log is not None and draft is not None:
                if waited:
                    found["waited_for_room"] = waited
                span = log.finish(draft, started, ended, **found)
                if cause.behind or piece.decides:
                    cause.behind = (span.id,)
            if piece.decides is not None:
                cause.ready = ended
                chosen, again = piece.decides()
                coming = [self._command(p, pieces.on_host(p), cause) for p in chosen]
                if again:
                    coming.append(self._command(piece, uses, cause, turn + 1))
                target.queue.waiting.extendleft(reversed(coming))

        def in_vain(started: float, ended: float) -> None:
            if log is not None and draft is not None:
                log.finish(draft, started, ended, failed=True, **found)

        def skipped(error: DeviceError) -> None:
            self.machine.over(access)
            for memory in piece.writes:
                if memory.ptr:  # no variable of a file, which nobody could make anew
                    memory.spoiled = error
            if piece.lost is not None:
                piece.lost(error)

        resource = kind if kind in ("h2d", "d2h", "peer") else "compute"
        gap = self.spec.graph_node_us if cause.in_graph else None
        show = partial(self.machine.fill, access, before, fills) if fills else None
        calls = start, end, skipped, in_vain, show
        return Command(resource, cause.ready + delay, cause.op, *calls, gap=gap)

    def own(self, stream: object) -> Stream:
        """A stream, if it is one of this device's."""
        if not isinstance(stream, Stream) or stream.device is not self:
            raise DeviceMismatchError(f"{stream!r} is not a stream of {self.name}")
        return stream
