"""The simulated device as `protocol` wants one, and how an event loop of asyncio moves its host's clock.

A simulated GPU has a clock of its own, which no wall clock moves. While Python runs, it stands still. So
somebody has to decide when a task that awaits a kernel has waited long enough, and the answer must be the
same in every run, on fast machines and slow ones.

The idea is that time passes when the host has nothing else to do. As long as something is awaited, a
callback comes once in each turn of the event loop (`SimMachine._turn`). If no other task is ready and nobody
has called a device since the last turn, it moves the clock to the next completion and wakes the task that
waits for it. Real timers would make the trace depend on the machine, and a thread that moves the clock
would race with the program; a browser has no threads anyway.

Some loops don't tell what is ready, and some tasks do nothing but yield. There, many turns without a call
count as idle. Only a kernel that waits for the host is given some real time, because what the host does for
it may need a file or a socket.

What devices do is done by `simgpu`; this module only adapts it.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

import simgpu
import simgpu.machine
from asyncgpu_tutor.devices import protocol
from asyncgpu_tutor.devices.cuda_source import read_signature
from asyncgpu_tutor.devices.event_loop import AnyLoop, ready_in, running_loop
from asyncgpu_tutor.devices.fresh_errors import fresh, freshly, raising_freshly
from asyncgpu_tutor.errors import DeviceMismatchError
from asyncgpu_tutor.traces.spans import SpanLog
from asyncgpu_tutor.traces.spans.tag import CURRENT, forbid_nested_wait
from simgpu.cuda_c import GlobalMemory
from simgpu.machine import Wake, exclusive
from simgpu.memory import pass_over
from simgpu.order import Clock
from simgpu.pieces import EnginePiece
from simgpu.queues import EngineEvent

T = TypeVar("T")

# A round trip over mapped memory: 7.4 us for one block, 26 us for 132 that Python answers all at once with
# NumPy, measured on an H200 with CuPy 14.2 (2026-11-21).
ROUND_US, ANSWER_US = 7.25, 0.145
NOTED_US = 2.0  # of a round: how long the picture has Python at work

pass_over(Path(__file__).resolve().parents[2])  # an array comes from the reader's line


class SimMachine(simgpu.machine.Machine):
    """A host and the engine behind it, whose time goes on when an event loop has nothing else to do."""

    pinned_by = "agt.pinned"

    # Turns of the event loop without a call to any device after which the host counts as idle although
    # something is still ready to run: a task that does nothing but yield, say. A result travels through a few
    # callbacks (future, task, group, parent) before somebody acts on it, so it takes more than one.
    QUIET_TURNS = 64
    LOOK_AGAIN_S = 0.001  # how often the loop is asked while a kernel waits for the host

    def __init__(self) -> None:
        super().__init__()
        self._turning: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    look = freshly(simgpu.machine.Machine.look)

    def who_waits(self) -> AnyLoop:
        """The event loop that runs, which from now on lets time pass while it has nothing else to do."""
        loop = running_loop()
        if not isinstance(loop, asyncio.AbstractEventLoop):
            loop.let_time_pass(self)
        elif loop not in self._turning:
            self._turning.add(loop)
            loop.call_soon(self._turn, loop, ready_in(loop), self.calls, 0)
        return loop

    def gone(self, owner: Any) -> bool:
        """True if the event loop that a wait belongs to is closed."""
        return owner.is_closed()

    async def until(self, event: EngineEvent) -> None:
        """Let other tasks run until an event has passed."""
        loop = running_loop()
        woken = loop.create_future()

        def release() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake(_: BaseException | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(release)

        self.watch(event, Clock(), wake, 0.0)
        try:
            await woken
        except BaseException:
            self.unwatch(wake)
            raise

    def advance_at_most(self, us: float) -> None:
        """Move to the next event that somebody waits for, but no further than so many microseconds."""
        event, queue = self.timer(us)

        def passed(_: BaseException | None) -> None:
            """Nothing is to be woken: the clock is what was asked for."""

        self.watch(event, Clock(), passed, 0.0)
        try:
            self.advance()
        finally:
            self.unwatch(passed)
            queue.waiting.clear()

    @exclusive
    def _turn(self, loop: asyncio.AbstractEventLoop, ready: Sized, calls: int, quiet: int) -> None:
        """Once a turn of the loop: let time pass when nobody has used the device for a while."""
        quiet = quiet + 1 if calls == self.calls else 0
        try:
            if quiet >= self.QUIET_TURNS or (quiet and not ready):
                quiet = 0
                self.advance()
            else:  # a task that keeps the host busy does not keep others from what is done by now
                self.wake()
        finally:  # an interrupt must not stop time for good
            if not self.waits(loop):
                self._turning.discard(loop)
            elif self.patient:
                # At once again would keep a core busy while the host waits for a file, say.
                loop.call_later(self.LOOK_AGAIN_S, self._turn, loop, ready, self.calls, quiet)
            else:
                loop.call_soon(self._turn, loop, ready, self.calls, quiet)


class _Submissions(simgpu.Caller):
    """This package, whose groups of calls are submissions of operations."""

    def group(self) -> tuple[int | None, str]:
        # `current_operation`, and the simulated host asks it at each of its calls.
        tag = CURRENT.get()
        return (None, "") if tag is None or tag.over else (tag.op, tag.label)

    def race_advice(self, alike: bool) -> str:
        if alike:
            return "Arms of an overlap don't wait for each other: use one arm."
        return super().race_advice(alike).replace("(", "(shared(), overlap(), ", 1)

    def before_wait(self, what: str) -> None:
        if CURRENT.get() is not None:
            forbid_nested_wait(what)


class SimMemory(protocol.DeviceMemory, simgpu.Memory):
    """One allocation."""

    def __init__(self, device: SimDevice, cells: GlobalMemory, ptr: int) -> None:
        protocol.DeviceMemory.__init__(self, device, cells.name, cells.nbytes, ptr)
        simgpu.Memory.__init__(self, cells, ptr)

    @property
    def initialised(self) -> bool:
        """Whether all of it holds something."""
        return self.cells.fully_initialised


@raising_freshly("synchronize", "done")
class SimEvent(simgpu.Event):
    """A point in the work of a simulated stream."""


@raising_freshly("record", "wait_event", "synchronize", "done")
class SimStream(simgpu.Stream):
    """A queue of simulated work."""

    device: SimDevice  # pyright: ignore[reportIncompatibleVariableOverride] - who makes it is one
    event_type = SimEvent


@raising_freshly("launch")
class SimGraph(simgpu.Graph):
    """Calls that cost the host one."""


@raising_freshly("enqueue", "instantiate")
class SimReplay(simgpu.Replay):
    """Calls with all that they need but their streams."""

    def instantiate(self, name: str) -> SimGraph:
        return SimGraph(self, name)


@raising_freshly(
    "__init__", "malloc", "pinned", "map_host", "memset_async", "copy_from_host_async", "copy_to_host_async",
    "copy_from_device_async", "copy_to_peer_async", "get_function", "variable", "launch",
    "prepare", "synchronize", "work", "settle_log", "watch", "mark",
)  # fmt: skip
class SimDevice(simgpu.Device):
    """A GPU that exists in the imagination, down to the microsecond.

    Parameters
    ----------
    ordinal : int
        Number of the device on its machine.
    spec : DeviceSpec or str
        Which GPU it imitates; also by name, such as ``"t4"``, or from a file of ``tools/calibrate.py``.
    machine : SimMachine
        The host that it is plugged into; devices of one machine share its clock.
    adversary, stand_in_above, load_us
        See `simgpu.Device`.
    """

    machine: SimMachine  # pyright: ignore[reportIncompatibleVariableOverride] - as it is given one
    default_stream: SimStream  # pyright: ignore[reportIncompatibleVariableOverride] - it makes no others
    stream_type = SimStream
    machine_type = SimMachine
    caller = _Submissions()
    log: SpanLog | None = None
    simulated = True
    clock = "simulated"
    patience_us = 0.0  # to wait moves the clock to the end at once; to look would take time
    limits = protocol.USUAL_LIMITS
    process: int

    settle_log = simgpu.Device.settle
    signature = staticmethod(read_signature)  # from a kernel's head alone

    # ------------------------------------------------------------------ streams
    def create_stream(self, urgent: bool = False, *, non_blocking: bool = True) -> SimStream:
        """A new stream, not ordered with any other. All are alike here: whatever is ready has its share."""
        self.__dict__.setdefault("process", os.getpid())  # a device makes its first stream at once
        if self.spec.shared_bytes_per_block != self.limits.shared_bytes:
            self.limits = replace(self.limits, shared_bytes=self.spec.shared_bytes_per_block)
        return cast(SimStream, super().create_stream(non_blocking=non_blocking))

    def adopt_stream(self, foreign: object) -> protocol.Stream | None:
        """Only this device's own streams are known to it."""
        return foreign if isinstance(foreign, SimStream) and foreign.device is self else None

    def mark(self, foreign: object) -> protocol.Event | None:
        """Its own streams and events are all that it knows."""
        if isinstance(foreign, SimEvent) and foreign.device is self:
            return foreign
        stream = self.adopt_stream(foreign)
        return None if stream is None else stream.record()

    # ------------------------------------------------------------------ memory
    def memory_of(self, cells: GlobalMemory, ptr: int) -> SimMemory:
        """Bytes of the interpreter, as this device gives them out."""
        return SimMemory(self, cells, ptr)

    def malloc(self, nbytes: int, name: str, stream: object) -> SimMemory:
        return cast(SimMemory, super().malloc(nbytes, name, stream))

    def map_host(self, host: protocol.HostBuffer, name: str) -> SimMemory:
        return cast(SimMemory, super().map_host(host, name))

    def variable(self, function: object, name: str, nbytes: int) -> SimMemory:
        return cast(SimMemory, super().variable(function, name, nbytes))

    def adopt_array(
        self, foreign: object
    ) -> tuple[protocol.DeviceMemory, tuple[int, ...], np.dtype[Any]] | None:
        """No other library has memory on a simulated device."""
        return None

    def export(self, array: Any) -> AbstractContextManager[Any]:
        """There is no CuPy array behind a simulated one."""
        raise DeviceMismatchError(
            f"{array!r} is on a simulated device: other CUDA libraries cannot see it. Use "
            "op.to_host() to get a NumPy array."
        )

    def copy_to_peer_async(
        self,
        target: protocol.DeviceMemory,
        source: protocol.DeviceMemory,
        nbytes: int,
        stream: object,
    ) -> None:
        for memory in (source, target):
            if not isinstance(memory.device, SimDevice):
                raise DeviceMismatchError(
                    f"array {memory.name!r} is on {memory.device.name}, and {self.name} is simulated: copy "
                    "it through the host (d2h, then h2d)"
                )
        ends = cast(SimDevice, source.device), cast(SimDevice, target.device)
        super().enqueue_peer_copy(target, source, nbytes, ends, stream)

    # ------------------------------------------------------------------ kernels
    def activate(self) -> int | None:
        """A simulated host needs no current device."""
        return None

    def restore(self, before: int) -> None:
        """See `activate`."""

    def prepare(self, calls: Sequence[simgpu.PreparedCall]) -> SimReplay:
        return SimReplay(self, calls)

    # ------------------------------------------------------------------ awaiting
    def watch(self, event: object, wake: Wake) -> None:
        super().watch(event, lambda error: wake(error and fresh(error)))

    async def apart(self, act: Callable[[], T]) -> T:
        """Call it: simulated ranks wait on the device, as others do."""
        return act()

    async def sleep(self, us: float) -> None:
        event, queue = self.machine.timer(us)
        try:
            await self.machine.until(event)
        finally:
            queue.waiting.clear()  # where the task was cancelled, time need not go there

    async def until_waited_for(self, answered: int, look: object, asked: protocol.Look) -> None:
        """Wait until a kernel asks, and as long as a round takes; see `Device.until_waited_for`."""
        while not asked():
            await self.machine.until(self.machine.engine.when_shown())
        self.spend(ROUND_US + answered * ANSWER_US)

    def note_answers(self, name: str, start: float) -> None:
        """At least the last part of a round was the host's; see `Device.note_answers`."""
        end = self.now()
        self._host_span("work", name, max(min(start, end - NOTED_US), 0.0), end)

    def answering(self, more: int) -> None:
        """The host is at work on so many more answers: see `Machine.answering` of simgpu."""
        self.machine.answering += more

    def may_be_asked(self, asked: object, opened: bool) -> None:
        """Loading a kernel waits for no other one here; see `Device.may_be_asked`."""

    # ------------------------------------------------------------------ recording
    def start_log(self, numbers: Iterator[int], source: str = "auto") -> None:
        """Begin to write spans into `log`. There is one source of times: the model."""
        self.log = self.recorder = SpanLog(self.name, numbers, clock=self.clock)

    def stop_log(self) -> None:
        self.log = self.recorder = None


# Simgpu's call of a rank has the same words for the same things.
_FIELDS = [field.name for field in fields(simgpu.Collective)]


def _call(part: protocol.CollectiveCall) -> simgpu.Collective:
    return simgpu.Collective(**{name: getattr(part, name) for name in _FIELDS})


class SimCommunicator:
    """Ranks that are simulated devices of one machine."""

    @freshly
    def __init__(self, devices: Sequence[SimDevice]) -> None:
        self._inner = simgpu.Communicator(devices)

    @property
    def broken(self) -> str:
        return self._inner.broken

    @freshly
    def enqueue(
        self, parts: Sequence[tuple[protocol.CollectiveCall, protocol.Stream]], ranks: int
    ) -> None:
        """Enqueue each part; a rank that comes first holds its SMs until the others are there."""
        for part, stream in parts:
            self._inner.enqueue(part.rank, _call(part), cast(SimStream, stream))

    def together(self, parts: Sequence[protocol.CollectiveCall], home: SimDevice) -> EnginePiece:
        """All parts as one piece of work, for a replay."""
        return self._inner.together({part.rank: _call(part) for part in parts}, home)

    @freshly
    def fail(self, message: str) -> None:
        self._inner.fail(message)

    def check(self) -> None:
        """An error of the work surfaces where the work is waited for."""
