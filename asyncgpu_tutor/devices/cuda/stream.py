"""Streams and events of a CUDA device."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.guard import CUDA_ERRORS, from_cuda_error
from asyncgpu_tutor.devices.cuda.watcher import Watcher
from asyncgpu_tutor.devices.protocol import Event
from asyncgpu_tutor.errors import DeviceMismatchError
from asyncgpu_tutor.traces.spans import SpanLog
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

NOT_READY = 600  # cudaErrorNotReady
WITHOUT_TIMES = 2  # cudaEventDisableTiming
LEGACY = 1  # cudaStreamLegacy, which is the stream 0
LEAST_ADDRESS = 4096  # no handle of a stream lies below it but those of the default streams


class Front:
    """The spans in front of an event, once a recording is read. The recording keeps it, and not the event."""

    heads: tuple[int, ...] = ()

    def heads_in(self, log: SpanLog) -> tuple[int, ...]:
        """The spans in front of it."""
        return self.heads


class CupyEvent:
    """A point in the work of a CUDA stream.

    To make an event takes the driver longer than to record it. So with the last who had one its handle goes
    back to the device, and is recorded again for another. CuPy's events don't fit: they destroy theirs.
    """

    ptr = 0

    def __init__(self, stream: CupyStream) -> None:
        self.stream = stream
        self.front = Front()
        self.ticket = sys.maxsize  # see `CupyStream.passed`
        self._home = stream.device.free_events
        try:  # not "if self._home": another thread may take the last one in between
            self.ptr = self._home.pop()
        except IndexError:
            with stream.device.active():
                self.ptr = int(runtime.eventCreateWithFlags(WITHOUT_TIMES))

    def __del__(self) -> None:
        if self.ptr:
            self._home.append(self.ptr)

    @property
    def done(self) -> bool:
        if self.ticket < self.stream.passed:
            return True
        # CuPy's own `done` stays False forever after a fault; the status itself tells the two apart.
        status: int = runtime.eventQuery(self.ptr)
        return status != NOT_READY

    @property
    def succeeded(self) -> bool:
        return self.ticket < self.stream.passed or bool(runtime.eventQuery(self.ptr) == 0)

    retired = seen = done

    def synchronize(self) -> None:
        forbid_nested_wait("event.synchronize()")
        device = self.stream.device
        try:
            if device.journal is None:
                runtime.eventSynchronize(self.ptr)
                return
            with device.waiting("synchronize event", self.front):
                runtime.eventSynchronize(self.ptr)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "waiting for an event") from error


def stream_handle(stream: Any) -> int | None:
    """CUDA's handle of anybody's stream, or the handle itself; None if it is neither."""
    handle: Any = stream
    if hasattr(stream, "__cuda_stream__"):
        handle = int(stream.__cuda_stream__()[1])
    elif type(stream) is not int or 2 < stream <= LEAST_ADDRESS or stream < 0:
        return None
    return 0 if handle == LEGACY else handle


def event_handle(event: Any) -> int | None:
    """The same of an event. Events have no protocol, so the name of their type tells."""
    if type(event).__name__ in ("Event", "CupyEvent"):
        for name in ("cuda_event", "ptr", "handle"):  # PyTorch, CuPy and we, cuda.core
            if hasattr(event, name):
                return int(getattr(event, name))
    return None


def ordinal_of(stream: Any) -> int:
    """The number of a stream's device, as CuPy or PyTorch tell it; -1 if nobody does."""
    told = getattr(stream, "device_id", getattr(getattr(stream, "device", None), "index", -1))
    return told if type(told) is int else -1


class CupyStream:
    """A CUDA stream."""

    def __init__(self, device: CupyDevice, stream: Any, number: int, lasts: bool = True) -> None:
        self.device, self.urgent = device, False
        self.cupy = stream  # CuPy's
        self.number = number
        self.ptr = int(stream.ptr)  # the CUDA handle
        # Whoever has waited for all of a stream knows of its earlier events, and the driver takes 1.5 us to
        # say so of each (H200, 2026-11-22). An event has a ticket from after it was recorded, who waits one
        # from before: an event with an earlier one than the last wait that ended well has passed. A stream of
        # others may have gone, and its handle be another one's by now.
        self._lasts = lasts
        self.passed = -1
        self._tickets = count()
        self.watcher = Watcher(device.ordinal, f"asyncgpu {device.name} stream {number}")

    def __repr__(self) -> str:
        return f"<stream {self.number} of {self.device.name}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    @property
    def done(self) -> bool:
        # CuPy's own `done` stays False forever after a fault, as an event's does.
        return int(runtime.streamQuery(self.ptr)) != NOT_READY

    def heads_in(self, log: SpanLog) -> tuple[int, ...]:
        """The spans at its end."""
        return log.heads(self.number)

    def record(self) -> CupyEvent:
        journal = self.device.journal
        try:
            event = CupyEvent(self)
            if journal is None:
                runtime.eventRecord(event.ptr, self.ptr)
            else:
                journal.record(event, self)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "recording an event") from error
        event.ticket = next(self._tickets)
        return event

    def wait_event(self, event: Event) -> None:
        if not isinstance(event, CupyEvent):
            raise DeviceMismatchError(
                f"{self!r} cannot wait for {event!r}: it is not a CUDA event. stream.record() makes one"
            )
        journal = self.device.journal
        try:
            if journal is None:
                runtime.streamWaitEvent(self.ptr, event.ptr)
            else:
                journal.wait(self, event)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "waiting for an event on a stream") from error

    def synchronize(self) -> None:
        forbid_nested_wait("stream.synchronize()")
        ticket = next(self._tickets)
        try:
            if self.device.journal is None:
                runtime.streamSynchronize(self.ptr)
            else:
                with self.device.waiting(f"synchronize stream {self.number}", self):
                    runtime.streamSynchronize(self.ptr)
        except CUDA_ERRORS as error:
            raise from_cuda_error(error, "waiting for a stream") from error
        if self._lasts:
            self.passed = ticket
