"""A CUDA device, through CuPy. This package is the only one that imports it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import cupy
import numpy as np
from cupy.cuda import PinnedMemoryPointer, alloc_pinned_memory, driver, runtime

from asyncgpu_tutor.devices.cuda.compile import compile_function, sized_signature
from asyncgpu_tutor.devices.cuda.graph_nodes import span_facts
from asyncgpu_tutor.devices.cuda.guard import CUDA_ERRORS, from_cuda_error, guarded
from asyncgpu_tutor.devices.cuda.journal import Journal, open_recorder
from asyncgpu_tutor.devices.cuda.packing import Packer, address, transfer
from asyncgpu_tutor.devices.cuda.prepared_and_graphs import CupyReplay
from asyncgpu_tutor.devices.cuda.stream import (
    CupyEvent,
    CupyStream,
    Front,
    event_handle,
    ordinal_of,
    stream_handle,
)
from asyncgpu_tutor.devices.cuda_source import Signature, is_cooperative, read_signature
from asyncgpu_tutor.devices.event_loop import loop_ways, turn_given, turn_is_due
from asyncgpu_tutor.devices.protocol import (
    USUAL_LIMITS,
    Argument,
    DeviceMemory,
    Dim3,
    Event,
    HostBuffer,
    KernelFunction,
    Limits,
    Look,
    RecordedCall,
    Stream,
)
from asyncgpu_tutor.errors import CaptureError, DeviceMismatchError, KernelCompileError, UsageError
from asyncgpu_tutor.traces.spans import SpanKind, SpanLog
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

T = TypeVar("T")

# While kernels may call the host, the event loop has a turn so often: it costs each call some 0.5 us, and is
# how late others, such as who awaits the kernel, notice anything.
TURN_WHILE_ASKED_US = 200.0
HOST_MEMORY = 1  # cudaMemoryTypeHost: registered with the driver, that is, pinned
# CUfunction_attribute: SHARED_SIZE_BYTES, MAX_DYNAMIC_SHARED_SIZE_BYTES
_STATIC_SHARED, _MOST_SHARED = 1, 8
URGENT = -5  # a stream's priority; the driver takes the nearest that the GPU has


class CupyMemory(DeviceMemory):
    """One allocation.

    Its block goes back to a list of blocks of its size, its `home`, to be had again for little: CuPy's own
    pool takes four times as long for a block, with its locks and its search for one that fits. It is asked
    where the list is empty. Memory of others has no home.
    """

    __slots__ = ("home", "pointer", "readers")

    pointer: Any  # CuPy's; it frees the memory when it goes
    home: list[Any] | None
    readers: set[CupyStream] | None  # where other libraries use it: see `lend`
    device: CupyDevice  # pyright: ignore[reportIncompatibleVariableOverride] - as it's made by one

    def __del__(self) -> None:
        if self.readers and self.home is not None:
            self.device.lent.append((self.pointer, self.home, self.readers, []))
        elif self.home is not None:
            self.home.append(self.pointer)

    def lend(self, stream: int | None) -> None:
        """See `DeviceMemory.lend`.

        PyTorch's users call `record_stream` for this. DLPack tells us the stream, so we know what to wait for
        before the block is given out again.
        """
        adopt, current = self.device.adopt_stream, cupy.cuda.get_current_stream()
        reader = adopt(current if stream in (None, -1, current.ptr) else stream)
        readers = {reader or self.device.default_stream}
        if stream in (None, -1):  # untold
            readers.add(self.device.default_stream)
        self.readers = readers | (self.readers or set())


def _memory(
    device: CupyDevice, name: str, nbytes: int, pointer: Any, home: list[Any] | None = None
) -> CupyMemory:
    # A constructor would take longer: see `DeviceOp`.
    memory = CupyMemory.__new__(CupyMemory)
    memory.device = device
    memory.name = name
    memory.nbytes = nbytes
    memory.ptr = pointer.ptr
    memory.stream = memory.share = None
    memory.pointer = pointer
    memory.home = home
    memory.readers = None
    return memory


@dataclass(frozen=True, eq=False, slots=True)
class CupyFunction:
    """A kernel that NVRTC has accepted."""

    name: str
    kernel: Any
    pointer: int
    packer: Packer


class _BoundThread(threading.local):
    """One thread, and whether a device was set there."""

    bound = False


_thread = _BoundThread()
_BLOCK = 512  # bytes that CuPy's pool rounds up to; so blocks that differ by less are of one size


class CupyDevice:
    """One NVIDIA GPU, by the number that CUDA gives it. What its methods do is told in `protocol`."""

    simulated = False
    clock = "CUDA events"
    # Waking a thread takes 0.2 to 0.9 ms (measured: H200, driver 580.159, Linux guest, 2026-11-21), which is
    # mostly a tenth of a wait that is longer than this.
    patience_us = 2000.0

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.name = f"cuda:{ordinal}"
        self.process = os.getpid()
        self._alone = int(runtime.getDeviceCount()) == 1  # then it is always the current one
        facts = runtime.getDeviceProperties(ordinal)
        self.description = f"{facts['name'].decode()}, times are measured with CUDA events"
        limits = Limits(
            threads_per_block=int(facts["maxThreadsPerBlock"]),
            block=_dim3(facts["maxThreadsDim"]),
            grid=_dim3(facts["maxGridSize"]),
            shared_bytes=int(facts["sharedMemPerBlockOptin"]),
        )
        self.limits = USUAL_LIMITS if limits == USUAL_LIMITS else limits
        self.journal: Journal | None = None  # while it is recorded
        self.log: SpanLog | None = None  # where the recording goes; every run asks
        self._pool: Any = cupy.cuda.MemoryPool()
        self._blocks: defaultdict[int, list[Any]] = defaultdict(list)  # free ones, by size
        # Blocks that nobody holds any more, and that other libraries may still work on.
        self.lent: deque[tuple[Any, list[Any], Any, list[CupyEvent]]] = deque()
        self.free_events: list[int] = []  # handles, see `CupyEvent`
        self._reached: set[int] = set()  # devices that were asked for a direct way
        self._functions: dict[tuple[str, str, bool], CupyFunction] = {}
        self._asked: tuple[Look, ...] = ()  # by kernels: see `Device.may_be_asked`
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None  # see `apart`
        self._behind_events = set[CupyStream]()  # see `mark`
        self._numbers = 0
        self.default_stream = self._stream(cupy.cuda.Stream.null)
        # Kept, so that a stream keeps its number.
        self._adopted: dict[int, CupyStream] = {self.default_stream.ptr: self.default_stream}

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    # ------------------------------------------------------------------ host time
    def now(self) -> float:
        return time.perf_counter() * 1e6

    def work(self, us: float, name: str) -> None:
        start = time.perf_counter()
        while (time.perf_counter() - start) * 1e6 < us:
            pass
        self.note("work", name, start)

    async def apart(self, act: Callable[[], T]) -> T:
        """Call it on a thread of this device's own: ranks of one process meet on the host."""
        with self._lock:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, f"asyncgpu {self.name}")
        run = partial(copy_context().run, act)
        return await loop_ways().on_thread(self._thread, run)

    async def sleep(self, us: float) -> None:
        await loop_ways().sleep(us * 1e-6)

    @contextmanager
    def waiting(self, name: str, behind: Front | CupyStream | None = None) -> Generator[None]:
        """A stretch of time in which the host is blocked, by what lies before an event or on a stream."""
        start = time.perf_counter()
        try:
            with self.active():
                yield
        finally:
            self.note("wait", name, start, behind)

    def watch(self, event: Event, wake: Callable[[BaseException | None], None]) -> None:
        if not isinstance(event, CupyEvent):
            raise DeviceMismatchError(f"{event!r} is not a CUDA event")
        try:
            event.stream.watcher.watch(event, wake)
        except Exception as error:  # noqa: BLE001 - whoever waits has to hear of it, whatever it is
            wake(error)

    def synchronize(self) -> None:
        forbid_nested_wait("device.synchronize()")
        with guarded("waiting for the device"), self.waiting("synchronize device"):
            runtime.deviceSynchronize()

    # ------------------------------------------------------------------ streams
    def create_stream(self, urgent: bool = False) -> CupyStream:
        """A new stream, not ordered with any other, the null stream included."""
        start = time.perf_counter()
        with guarded("creating a stream"), self.active():
            made = cupy.cuda.Stream(non_blocking=True, priority=URGENT if urgent else 0)
        self.note("call", "create stream", start)
        stream = self._stream(made)
        stream.urgent = urgent
        return stream

    def adopt_stream(self, foreign: object) -> CupyStream | None:
        """CuPy's, PyTorch's, anything with `__cuda_stream__`, such as cuda.core's; or its handle."""
        stream: Any = foreign
        if isinstance(stream, CupyStream):
            return stream if stream.device is self else None
        handle = stream_handle(stream)
        if handle is None or ordinal_of(stream) not in (self.ordinal, -1):
            return None
        if handle not in self._adopted:
            if not isinstance(stream, cupy.cuda.Stream):
                with self.active():
                    stream = cupy.cuda.Stream.from_external(
                        SimpleNamespace(__cuda_stream__=lambda: (0, handle), owner=foreign)
                    )
            self._adopted[handle] = self._stream(stream, lasts=False)
        return self._adopted[handle]

    def mark(self, foreign: object) -> CupyEvent | None:
        """An event behind what a stream holds, or behind an event: PyTorch's, CuPy's or cuda.core's."""
        stream, handle = self.adopt_stream(foreign), event_handle(foreign)
        if stream is None and handle is None:
            return None
        with guarded("asking about work of others"):
            if stream is None:
                if not handle:
                    raise UsageError(f"{foreign!r} was never recorded, so it can't be waited for")
                # The event may be recorded again, or go. What a stream waits for stays what it is now.
                idle = (each for each in self._behind_events if each.done)
                stream = next(idle, None) or self.create_stream()
                self._behind_events.add(stream)
                runtime.streamWaitEvent(stream.ptr, handle)
            elif runtime.streamIsCapturing(stream.ptr):
                raise CaptureError(
                    f"{foreign!r} is capturing, and nothing runs in a capture: await the stream of a replay"
                )
        return stream.record()

    def _stream(self, stream: Any, lasts: bool = True) -> CupyStream:
        with self._lock:
            number, self._numbers = self._numbers, self._numbers + 1
        return CupyStream(self, stream, number, lasts)

    # ------------------------------------------------------------------ memory
    def malloc(self, nbytes: int, name: str, stream: Stream) -> CupyMemory:
        """Allocate from a pool of this device's own.

        What comes back to it is idle (see `Submission.keep`), so any stream may have it next, and the
        pool need not know which stream asks.
        """
        size = -(-nbytes // _BLOCK)
        journal, home = self.journal, self._blocks[size]
        start = 0.0 if journal is None else time.perf_counter()
        try:  # not "if home": another thread may take the last one in between
            block = home.pop()
        except IndexError:
            block = self._block(size, nbytes, name)
        memory = _memory(self, name, nbytes, block, home)
        if journal is not None:
            journal.host("call", f"malloc {name}", start)
        return memory

    def _block(self, size: int, nbytes: int, name: str) -> Any:
        """A block from CuPy's pool; where memory is short, other sizes give up theirs."""
        with guarded(f"allocating {nbytes:,} bytes for {name!r}"), self.active():
            self._take_back()
            with suppress(IndexError):
                return self._blocks[size].pop()
            try:
                return self._pool.malloc(size * _BLOCK)
            except cupy.cuda.memory.OutOfMemoryError:
                if self.lent:
                    runtime.deviceSynchronize()
                    self._take_back()
                # Other threads may ask for new sizes meanwhile.
                for blocks in list(self._blocks.values()):
                    blocks.clear()
                self._pool.free_all_blocks()
                return self._pool.malloc(size * _BLOCK)

    def _take_back(self) -> None:
        """Put blocks that were lent into their lists, once their readers' streams have come so far."""
        for _ in range(len(self.lent)):
            block, home, readers, events = self.lent.popleft()
            if not events and not any(runtime.streamIsCapturing(each.ptr) for each in readers):
                events = [each.record() for each in readers]
            if events and all(event.done for event in events):
                home.append(block)
            else:
                self.lent.append((block, home, readers, events))

    def adopt_array(
        self, foreign: object
    ) -> tuple[DeviceMemory, tuple[int, ...], np.dtype[Any]] | None:
        with self.active():
            try:
                if hasattr(foreign, "__cuda_array_interface__"):
                    array = cupy.asarray(foreign)
                else:
                    array = cupy.from_dlpack(foreign)
            except (TypeError, ValueError, BufferError, RuntimeError):
                return None
        if array.device.id != self.ordinal:
            return None
        if not array.flags.c_contiguous:
            raise DeviceMismatchError(
                f"this {type(foreign).__name__} of shape {array.shape} is not C-contiguous: make a "
                "contiguous copy first"
            )
        memory = _memory(self, "array", array.nbytes, array.data)
        return memory, array.shape, array.dtype

    @contextmanager
    def export(self, array: Any) -> Generator[Any]:
        memory: Any = array.memory
        # It keeps the memory itself: the block alone would be given out again as soon as the memory goes.
        place = cupy.cuda.UnownedMemory(memory.ptr, memory.nbytes, memory, self.ordinal)
        with self.active(), nullcontext() if memory.stream is None else memory.stream.cupy:
            yield cupy.ndarray(array.shape, array.dtype, memptr=cupy.cuda.MemoryPointer(place, 0))

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostBuffer:
        journal, nbytes = self.journal, max(math.prod(shape) * dtype.itemsize, 1)
        try:
            if journal is None:
                memory = alloc_pinned_memory(nbytes)
            else:
                with journal.own():
                    memory = alloc_pinned_memory(nbytes)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "allocating pinned host memory") from error
        return np.ndarray(shape, dtype, buffer=memory)

    def map_host(self, host: HostBuffer, name: str) -> CupyMemory:
        """The memory of a whole pinned array: it has one address for both sides ("Unified Addressing")."""
        base = host.base
        is_part = isinstance(base, np.ndarray) and base.nbytes != host.nbytes
        if not self.is_pinned(host) or not host.flags.c_contiguous or is_part:
            raise UsageError(
                "a kernel can use a whole pinned array in place, and this one, of shape "
                f"{host.shape}, is a part of another or not pinned: make one with agt.pinned(shape, dtype)"
            )
        place = cupy.cuda.UnownedMemory(address(host), max(host.nbytes, 1), host, self.ordinal)
        return _memory(self, name, host.nbytes, cupy.cuda.MemoryPointer(place, 0))

    async def until_waited_for(self, answered: int, look: Callable[[], object], asked: Any) -> None:
        """Give the event loop a turn when one is due; see `Device.until_waited_for`."""
        if turn_is_due():
            look()
            await loop_ways().sleep(0)
            turn_given(TURN_WHILE_ASKED_US)

    def note_answers(self, name: str, start: float) -> None:
        self.note("work", name, start * 1e-6)

    def answering(self, more: int) -> None:
        """A GPU has no say in how long its kernels wait."""

    def may_be_asked(self, asked: Look, opened: bool) -> None:
        with self._lock:
            others = tuple(each for each in self._asked if each != asked)
            self._asked = (*others, asked) if opened else others

    def is_pinned(self, array: HostBuffer) -> bool:
        """Tell whether the driver knows its memory."""
        if type(array.base) is PinnedMemoryPointer or array.nbytes == 0:  # our own, nearly always
            return True
        with guarded("asking about host memory"):
            return runtime.pointerGetAttributes(address(array)).type == HOST_MEMORY

    def memset_async(self, memory: DeviceMemory, value: int, nbytes: int, stream: Stream) -> None:
        self._transfer("memset_async", stream, memory, value, nbytes)

    def copy_from_host_async(self, memory: DeviceMemory, host: HostBuffer, stream: Stream) -> None:
        self._transfer("copy_from_host_async", stream, memory, host)

    def copy_to_host_async(self, host: HostBuffer, memory: DeviceMemory, stream: Stream) -> None:
        self._transfer("copy_to_host_async", stream, host, memory)

    def copy_from_device_async(
        self, target: DeviceMemory, source: DeviceMemory, nbytes: int, stream: Stream
    ) -> None:
        self._transfer("copy_from_device_async", stream, target, source, nbytes)

    def copy_to_peer_async(
        self, target: DeviceMemory, source: DeviceMemory, nbytes: int, stream: Stream
    ) -> None:
        for memory in (source, target):
            if memory.device is not self:
                self._reach(memory)
        self._transfer("copy_to_peer_async", stream, target, source, nbytes)

    def _reach(self, memory: DeviceMemory) -> None:
        """Have copies to and from a device take the direct way, where the hardware has one.

        Without it a copy of two H200 on NVLink ran at 38 GB/s, and with it at 393 (2026-11-23).
        """
        peer = memory.device
        if not isinstance(peer, CupyDevice):
            raise DeviceMismatchError(
                f"array {memory.name!r} is on {peer.name}, and {self.name} is a GPU: copy it through the "
                "host (d2h, then h2d)"
            )
        if peer.ordinal in self._reached:
            return
        self._reached.add(peer.ordinal)
        for one, other in ((self, peer), (peer, self)):
            if runtime.deviceCanAccessPeer(one.ordinal, other.ordinal):
                with one.active(), suppress(runtime.CUDARuntimeError):  # it was enabled by others
                    runtime.deviceEnablePeerAccess(other.ordinal)

    def _transfer(self, verb: str, stream: Stream, *args: Any) -> None:
        if self.journal is not None:
            return self._recorded(verb, stream, *args)
        own = self.own(stream)
        call, given = transfer(verb, args)
        try:
            call(*given, own.ptr)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, verb.removesuffix("_async")) from error

    # ------------------------------------------------------------------ kernels
    def signature(self, source: str, name: str) -> Signature:
        """Return a kernel's parameters, as our parser reads them, or else as the driver knows them."""
        try:
            return read_signature(source, name)
        except KernelCompileError as unread:
            try:
                return self.get_function(source, name).packer.signature
            except KernelCompileError as refused:
                raise unread from refused  # both refuse it, and our parser says why in more words

    def get_function(
        self, source: str, name: str, reference: object = None, contract: bool = False
    ) -> CupyFunction:
        """Compile with NVRTC, once for each source."""
        function = self._functions.get((source, name, contract))
        if function is None:
            # CUDA C++ Programming Guide, "Lazy Loading": it may wait for them.
            if any(asked() for asked in self._asked):
                raise UsageError(
                    f"kernel {name!r} is used for the first time while a kernel waits for the host, and CUDA "
                    "loads a kernel only when the others are over, so each would wait for the other: use it "
                    "once before that kernel is launched"
                )
            start = time.perf_counter()
            with guarded(f"loading {name}"), self.active():
                kernel = compile_function(source, name, contract)
                pointer = int(kernel.ptr)
                # It may be launched with more shared memory than it gets unasked.
                room = self.limits.shared_bytes - driver.funcGetAttribute(_STATIC_SHARED, pointer)
                driver.funcSetAttribute(pointer, _MOST_SHARED, room)
            self.note("call", f"load {name}", start)
            packer = Packer(*_facts(source, name, pointer), pointer)
            function = CupyFunction(name, kernel, pointer, packer)
            # Of two threads that compile it, both get the first one's: its constants are in its module.
            function = self._functions.setdefault((source, name, contract), function)
        return function

    def variable(self, function: KernelFunction, name: str, nbytes: int) -> CupyMemory:
        if type(function) is not CupyFunction:
            raise DeviceMismatchError(f"{function!r} was not compiled for {self.name}")
        with guarded(f"finding {name}"), self.active():
            module = function.kernel.module
            start = int(module.get_global_var(name))
            place = cupy.cuda.UnownedMemory(start, nbytes, module, self.ordinal)
            return _memory(self, name, nbytes, cupy.cuda.MemoryPointer(place, 0))

    def launch(
        self,
        function: object,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Argument],
        shared_mem: int,
        stream: Stream,
    ) -> None:
        if type(function) is not CupyFunction:
            raise DeviceMismatchError(f"{function!r} was not compiled for {self.name}")
        if self.journal is not None:
            return self._recorded("launch", stream, function, grid, block, args, shared_mem)
        if type(stream) is not CupyStream or stream.device is not self:
            raise self._not_mine(stream)
        try:
            function.packer.launch(grid, block, args, shared_mem, stream.ptr)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, function.name) from error

    def prepare(self, calls: Sequence[RecordedCall]) -> CupyReplay:
        return CupyReplay(self, calls)

    # ------------------------------------------------------------------ recording
    def start_log(self, numbers: Iterator[int], source: str = "auto") -> None:
        with guarded("starting a recording"), self.active():
            log = SpanLog(self.name, numbers, clock=self.clock)
            self.journal = Journal(open_recorder(log, self.ordinal, source))
            self.log = log

    def settle_log(self) -> None:
        if self.journal is not None:
            with guarded("ending a recording"), self.active():
                self.journal.read()

    def stop_log(self) -> None:
        journal, self.journal, self.log = self.journal, None, None
        if journal is not None:
            journal.recorder.close()

    def note(
        self, kind: SpanKind, name: str, start: float, behind: Front | CupyStream | None = None
    ) -> None:
        """Write down what the host has done since `start`, if it is recorded; see `Journal.host`."""
        journal = self.journal
        if journal is not None:
            journal.host(kind, name, start, behind)

    def _recorded(self, verb: str, stream: Stream, *args: Any) -> None:
        own = self.own(stream)
        kind, name, facts = span_facts(verb, args)
        host: Any = args[1] if kind == "h2d" else args[0] if kind == "d2h" else None
        if host is not None and not self.is_pinned(host):
            facts["pageable"] = True
        if verb == "launch":
            call, given = args[0].packer.launch, args[1:]
        else:
            call, given = transfer(verb, args)
        journal = self.journal
        try:
            if journal is None:  # another thread has just ended the recording
                call(*given, own.ptr)
            else:
                journal.call(kind, name, own, facts, call, (*given, own.ptr))
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, name) from error

    def activate(self) -> int | None:
        """Make it CUDA's current device in this thread; which one was that before, if it was another.

        The driver's own calls need a thread that is bound to a device.
        """
        if self._alone and _thread.bound:
            return None
        before = int(runtime.getDevice())
        if before == self.ordinal and _thread.bound:
            return None
        runtime.setDevice(self.ordinal)
        _thread.bound = True
        return None if before == self.ordinal else before

    def restore(self, before: int) -> None:
        runtime.setDevice(before)

    @contextmanager
    def active(self) -> Generator[None]:
        """A block in which it is CUDA's current device."""
        before = self.activate()
        try:
            yield
        finally:
            if before is not None:
                self.restore(before)

    def own(self, stream: Stream) -> CupyStream:
        """A stream, if it is one of this device's."""
        if type(stream) is not CupyStream or stream.device is not self:
            raise self._not_mine(stream)
        return stream

    def _not_mine(self, stream: Stream) -> DeviceMismatchError:
        return DeviceMismatchError(f"{stream!r} is not a stream of {self.name}")


def _dim3(values: Sequence[int]) -> Dim3:
    x, y, z = values
    return (int(x), int(y), int(z))


def _facts(source: str, name: str, pointer: int) -> tuple[Signature, bool]:
    """Return a kernel's signature, as far as it is known, and whether it has a barrier of the grid."""
    try:
        return read_signature(source, name), is_cooperative(source, name)
    except KernelCompileError:
        known = sized_signature(name, pointer)
        if known is None:
            raise
        return known, "this_grid" in source
