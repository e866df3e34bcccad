"""A CUDA device, through CuPy. This package is the only one that imports it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import cupy
import cupyx
import numpy as np
from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.compile import compile_function
from asyncgpu_tutor.devices.cuda.guard import CUDA_ERRORS, guarded, translated
from asyncgpu_tutor.devices.cuda.nodes import Outline
from asyncgpu_tutor.devices.cuda.packing import Packer
from asyncgpu_tutor.devices.cuda.recording import AnyRecorder, open_recorder
from asyncgpu_tutor.devices.cuda.replay import CupyReplay
from asyncgpu_tutor.devices.cuda.stream import CupyEvent, CupyStream
from asyncgpu_tutor.devices.protocol import (
    USUAL_LIMITS,
    Argument,
    Call,
    Dim3,
    Event,
    HostBuffer,
    Limits,
    Memory,
    Stream,
)
from asyncgpu_tutor.errors import DeviceError, DeviceMismatchError
from asyncgpu_tutor.traces.spans import SpanKind, SpanLog, call_name
from asyncgpu_tutor.traces.spans.tag import current_operation, forbid_nested_wait

__all__ = ["CupyDevice", "CupyFunction", "CupyMemory"]

H2D, D2H, D2D = 1, 2, 3  # cudaMemcpyKind
_thread = threading.local()  # `bound`: whether this thread has a device that was set
HOST_MEMORY = 1  # cudaMemoryTypeHost: registered with the driver, that is, pinned


@dataclass(frozen=True, eq=False, slots=True)
class CupyMemory:
    """One allocation.

    Attributes
    ----------
    pointer : cupy.cuda.MemoryPointer
        CuPy's; it frees the memory when it goes.
    ptr : int
        Its address on the device.
    """

    pointer: Any
    nbytes: int
    ptr: int


@dataclass(frozen=True, eq=False, slots=True)
class CupyFunction:
    """A kernel that NVRTC has accepted."""

    name: str
    kernel: Any
    pointer: int
    packers: dict[tuple[type, ...], Packer] = field(default_factory=dict[tuple[type, ...], Packer])


class CupyDevice:
    """One NVIDIA GPU.

    Parameters
    ----------
    ordinal : int
        Number of the device, as CUDA counts.
    """

    simulated = False
    clock = "CUDA events"
    # Waking a thread takes 0.2 to 0.9 ms (measured: H200, driver 580.159, Linux guest, 2026-11-21).
    patience_us = 500.0

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.name = f"cuda:{ordinal}"
        self._alone = int(runtime.getDeviceCount()) == 1  # then it is always the current one
        facts = runtime.getDeviceProperties(ordinal)
        self.description = f"{facts['name'].decode()}, times are measured with CUDA events"
        limits = Limits(
            threads_per_block=int(facts["maxThreadsPerBlock"]),
            block=_dim3(facts["maxThreadsDim"]),
            grid=_dim3(facts["maxGridSize"]),
            shared_bytes=int(facts["sharedMemPerBlock"]),
        )
        self.limits = USUAL_LIMITS if limits == USUAL_LIMITS else limits
        self._recorder: AnyRecorder | None = None
        self.log: SpanLog | None = None  # where the recorder writes; every run asks
        self._pool: Any = cupy.cuda.MemoryPool()
        self._functions: dict[tuple[str, str], CupyFunction] = {}
        self._lock = threading.Lock()
        self._numbers = 0
        self._adopted: dict[int, CupyStream] = {}  # kept, so that a stream keeps its number
        self.default_stream = self._stream(cupy.cuda.Stream.null)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"

    @contextmanager
    def active(self) -> Generator[None]:
        """Make it CUDA's current device."""
        before = runtime.getDevice()
        if before == self.ordinal:
            yield
            return
        runtime.setDevice(self.ordinal)
        try:
            yield
        finally:
            runtime.setDevice(before)

    # ------------------------------------------------------------------ host time
    def now(self) -> float:
        """The host's clock, in us."""
        return time.perf_counter() * 1e6

    def work(self, us: float, name: str) -> None:
        """Keep the host busy for `us` microseconds."""
        start = self.now()
        while self.now() - start < us:
            pass
        self._host_span("work", name, start)

    async def sleep(self, us: float) -> None:
        """Let other tasks run for `us` microseconds."""
        await asyncio.sleep(us * 1e-6)

    @contextmanager
    def waiting(self, name: str, heads: tuple[int, ...] = ()) -> Generator[None]:
        """A stretch of time in which the host is blocked, by the spans `heads`."""
        start = self.now()
        try:
            with self.active():
                yield
        finally:
            self._host_span("wait", name, start, heads)

    def watch(self, event: Event, wake: Callable[[BaseException | None], None]) -> None:
        """Call `wake` after `event`; see `Device.watch`."""
        if not isinstance(event, CupyEvent):
            raise DeviceMismatchError(f"{event!r} is not a CUDA event")
        # Another event at the same place, one whose waiter sleeps instead of spinning.
        try:
            with guarded("recording an event"), self.active():
                sleeper = cupy.cuda.Event(block=True, disable_timing=True)
                sleeper.record(event.stream.cupy)
        except DeviceError as error:
            wake(error)
            return
        event.stream.watcher.watch(sleeper, wake)

    def synchronize(self) -> None:
        """Block the host until the device has nothing left to do."""
        forbid_nested_wait("device.synchronize()")
        with guarded("waiting for the device"), self.waiting("synchronize device"):
            runtime.deviceSynchronize()

    # ------------------------------------------------------------------ streams
    def create_stream(self) -> CupyStream:
        """A new stream, not ordered with any other, the null stream included."""
        with guarded("creating a stream"), self.active():
            return self._stream(cupy.cuda.Stream(non_blocking=True))

    def adopt_stream(self, foreign: object) -> Stream | None:
        """A `cupy.cuda.Stream`, or anything with `__cuda_stream__`, such as cuda.core's."""
        if isinstance(foreign, CupyStream):
            return foreign if foreign.device is self else None
        stream: Any = foreign
        if not hasattr(stream, "ptr") and hasattr(stream, "__cuda_stream__"):
            stream = cupy.cuda.ExternalStream(stream.__cuda_stream__()[1], self.ordinal)
        if not isinstance(stream, cupy.cuda.Stream | cupy.cuda.ExternalStream):
            return None
        if getattr(stream, "device_id", self.ordinal) not in (self.ordinal, -1):
            return None
        known = self._adopted.get(int(stream.ptr))
        if known is None:
            known = self._adopted[int(stream.ptr)] = self._stream(stream)
        return known

    def _stream(self, stream: Any) -> CupyStream:
        with self._lock:
            number, self._numbers = self._numbers, self._numbers + 1
        return CupyStream(self, stream, number)

    # ------------------------------------------------------------------ memory
    def malloc(self, nbytes: int, name: str, stream: Stream) -> CupyMemory:
        """Allocate from a pool of this device's own.

        What comes back to it is idle (see `Submission.keep`), so any stream may have it next, and the
        pool need not know which stream asks.
        """
        start = self.now()
        what = f"allocating {nbytes:,} bytes for {name!r}"
        pointer: Any = self.call(what, self._pool.malloc, (nbytes,))
        if self._recorder is not None:
            self._host_span("call", f"malloc {name}", start)
        return CupyMemory(pointer, nbytes, pointer.ptr)

    def adopt_array(self, foreign: object) -> tuple[Memory, tuple[int, ...], np.dtype[Any]] | None:
        """Memory, shape and dtype of another library's array."""
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
        return CupyMemory(array.data, array.nbytes, array.data.ptr), array.shape, array.dtype

    def export(self, array: Any) -> Any:
        """The array as CuPy's, without a copy."""
        memory: Any = array.memory
        return cupy.ndarray(array.shape, array.dtype, memptr=memory.pointer)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostBuffer:
        """A host array in page-locked memory."""
        with guarded("allocating pinned host memory"), self.active():
            return cupyx.empty_pinned(shape, dtype)

    def is_pinned(self, array: HostBuffer) -> bool:
        """Whether the driver knows its memory."""
        if array.nbytes == 0:
            return True
        with guarded("asking about host memory"):
            return runtime.pointerGetAttributes(_address(array)).type == HOST_MEMORY

    def memset_async(self, memory: Memory, value: int, nbytes: int, stream: Stream) -> None:
        """Set the first `nbytes` bytes to `value`."""
        self._transfer("memset", nbytes, "memset_async", (memory, value, nbytes), stream)

    def copy_from_host_async(self, memory: Memory, host: HostBuffer, stream: Stream) -> None:
        """Copy a C-contiguous host array to the start of `memory`."""
        detail = self._copied(host)
        self._transfer("h2d", detail, "copy_from_host_async", (memory, host), stream)

    def copy_to_host_async(self, host: HostBuffer, memory: Memory, stream: Stream) -> None:
        """Copy the start of `memory` to a C-contiguous host array."""
        detail = self._copied(host)
        self._transfer("d2h", detail, "copy_to_host_async", (host, memory), stream)

    def copy_from_device_async(
        self, target: Memory, source: Memory, nbytes: int, stream: Stream
    ) -> None:
        """Copy within the device."""
        self._transfer("d2d", nbytes, "copy_from_device_async", (target, source, nbytes), stream)

    def _copied(self, host: HostBuffer) -> dict[str, object] | int:
        """What a span says of a copy; only a recording is worth asking the driver about the memory."""
        if self._recorder is None or self.is_pinned(host):
            return host.nbytes
        return {"bytes": host.nbytes, "pageable": True}

    def _transfer(
        self,
        kind: SpanKind,
        detail: dict[str, object] | int,
        verb: str,
        args: tuple[Any, ...],
        stream: Stream,
    ) -> None:
        queue = self.own(stream)
        call, packed = self.transfer(verb, args, queue.ptr)
        self.enqueue(kind, kind, queue, detail, call, packed)

    @staticmethod
    def transfer(
        verb: str, args: tuple[Any, ...], stream: int
    ) -> tuple[Callable[..., object], tuple[object, ...]]:
        """CUDA's function for a memset or copy of `Device`, and what it is called with."""
        if verb == "memset_async":
            memory, value, nbytes = args
            return runtime.memsetAsync, (memory.ptr, value, nbytes, stream)
        if verb == "copy_from_host_async":
            memory, host = args
            told = (memory.ptr, _address(host), host.nbytes, H2D, stream)
        elif verb == "copy_to_host_async":
            host, memory = args
            told = (_address(host), memory.ptr, host.nbytes, D2H, stream)
        else:
            target, source, nbytes = args
            told = (target.ptr, source.ptr, nbytes, D2D, stream)
        return runtime.memcpyAsync, told

    # ------------------------------------------------------------------ kernels
    def get_function(self, source: str, name: str, reference: object = None) -> CupyFunction:
        """Compile with NVRTC, once for each source."""
        function = self._functions.get((source, name))
        if function is None:
            start = self.now()
            with guarded(f"loading {name}"), self.active():
                kernel = compile_function(source, name)
            self._host_span("call", f"load {name}", start)
            function = self._functions[source, name] = CupyFunction(name, kernel, int(kernel.ptr))
        return function

    def launch(
        self,
        function: object,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Argument],
        shared_mem: int,
        stream: Stream,
    ) -> None:
        """Enqueue one launch."""
        if not isinstance(function, CupyFunction):
            raise DeviceMismatchError(f"{function!r} was not compiled for {self.name}")
        queue = self.own(stream)
        types = tuple([type(arg) for arg in args])
        packer = function.packers.get(types)
        if packer is None:
            packer = function.packers[types] = Packer(args)
        values = [arg.ptr if type(arg) is CupyMemory else arg for arg in args]
        launch = (function.pointer, (*grid, *block), values, shared_mem, queue.ptr)
        detail = None if self._recorder is None else {"grid": list(grid), "block": list(block)}
        self.enqueue("kernel", function.name, queue, detail, packer.launch, launch)

    def prepare(self, calls: Sequence[Call]) -> CupyReplay:
        """Make these calls ready."""
        return CupyReplay(self, calls)

    # ------------------------------------------------------------------ recording
    def start_log(self, numbers: Iterator[int], source: str = "auto") -> None:
        """Begin to write spans into `log`."""
        with guarded("starting a recording"), self.active():
            log = SpanLog(self.name, numbers, clock=self.clock)
            self._recorder = open_recorder(log, self.ordinal, source)
            self.log = log

    def settle_log(self) -> None:
        """Wait for the device, then turn pairs of events into spans."""
        if self._recorder is not None:
            with guarded("ending a recording"), self.active():
                self._recorder.settle()

    def stop_log(self) -> None:
        """Write no more spans."""
        recorder, self._recorder, self.log = self._recorder, None, None
        if recorder is not None:
            recorder.close()

    def _host_span(
        self, kind: SpanKind, name: str, start: float, waits_for: tuple[int, ...] = ()
    ) -> int | None:
        if self._recorder is None:
            return None
        op, label = current_operation()
        draft = self._recorder.log.draft(kind, name, None, op=op, label=label, waits_for=waits_for)
        self._recorder.add_host(draft, start, self.now())
        return draft.id

    def enqueue(
        self,
        kind: SpanKind,
        name: str,
        queue: CupyStream,
        detail: Mapping[str, object] | int | None,
        call: Callable[..., object],
        args: tuple[object, ...],
        outline: Outline | None = None,
    ) -> None:
        """Make a call that enqueues, and write it down when recorded.

        `detail` may be just a number of bytes. `outline` says what is in a graph.
        """
        if self._recorder is None:
            self.call(name, call, args)
        else:
            told = {"bytes": detail} if isinstance(detail, int) else detail or {}
            recorded = (self._recorder, kind, name, queue, told, call, args, outline)
            self.call(name, self._record, recorded)

    def call(self, what: str, call: Callable[..., object], args: tuple[Any, ...]) -> Any:
        """Call CUDA with this device current and its errors translated.

        The same as `guarded` and `active`, without context managers: every launch comes this way.
        """
        before = self.ordinal
        try:
            if not (self._alone and getattr(_thread, "bound", False)):
                before = self._bind()
            return call(*args)
        except CUDA_ERRORS as error:
            raise translated(error, what) from error
        finally:
            if before != self.ordinal:
                runtime.setDevice(before)

    def _bind(self) -> int:
        """Make it this thread's device; which one was. The driver's own calls need a thread that is bound."""
        before = int(runtime.getDevice())
        if before != self.ordinal or not getattr(_thread, "bound", False):
            runtime.setDevice(self.ordinal)
            _thread.bound = True
        return before

    def _record(
        self,
        recorder: AnyRecorder,
        kind: SpanKind,
        name: str,
        queue: CupyStream,
        detail: Mapping[str, object],
        call: Callable[..., object],
        args: tuple[object, ...],
        outline: Outline | None,
    ) -> None:
        """`call`, with what the recorder does before and after it."""
        before = recorder.before(queue.cupy)
        start = self.now()
        call(*args)
        host = self._host_span("call", call_name(kind, name), start)
        op, label = current_operation()
        log, number = recorder.log, queue.number
        if outline is not None and recorder.sees_nodes:
            drafts = outline.draft(log, number, op, label, host)
        else:
            told = detail if outline is None else {"nodes": outline.nodes}
            drafts = [log.draft(kind, name, number, op=op, label=label, call=host, detail=told)]
        recorder.add(drafts, before, recorder.after(queue.cupy), start)

    def own(self, stream: Stream) -> CupyStream:
        """A stream, if it is one of this device's."""
        if not isinstance(stream, CupyStream) or stream.device is not self:
            raise DeviceMismatchError(f"{stream!r} is not a stream of {self.name}")
        return stream


def _address(host: HostBuffer) -> int:
    return int(host.__array_interface__["data"][0])  # `ctypes.data` takes thrice as long


def _dim3(values: Sequence[int]) -> Dim3:
    x, y, z = values
    return (int(x), int(y), int(z))
