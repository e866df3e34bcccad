"""Streams and events of a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.guard import guarded
from asyncgpu_tutor.devices.cuda.watcher import Watcher
from asyncgpu_tutor.devices.protocol import Event
from asyncgpu_tutor.errors import DeviceMismatchError
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

if TYPE_CHECKING:
    from asyncgpu_tutor.devices.cuda.device import CupyDevice

__all__ = ["CupyEvent", "CupyStream"]

NOT_READY = 600  # cudaErrorNotReady


class CupyEvent:
    """A point in the work of a CUDA stream."""

    def __init__(self, stream: CupyStream, heads: tuple[int, ...]) -> None:
        self.stream = stream
        self.heads = heads
        # A new one each time. To take it back in `__del__` would save a microsecond, and is wrong:
        # where the garbage collector finds both, CuPy's own `__del__` has destroyed it by then.
        self.event: Any = cupy.cuda.Event(disable_timing=True)
        self.ptr: int = self.event.ptr

    @property
    def done(self) -> bool:
        """Whether the device has passed it, or has failed."""
        # CuPy's own `done` stays False for ever after a fault; the status itself tells the two apart.
        return bool(runtime.eventQuery(self.ptr) != NOT_READY)

    @property
    def succeeded(self) -> bool:
        """Whether the device has passed it, and has not failed."""
        return bool(runtime.eventQuery(self.ptr) == 0)

    @property
    def retired(self) -> bool:
        """As `done`."""
        return self.done

    def synchronize(self) -> None:
        """Block the host until the device has passed it."""
        forbid_nested_wait("event.synchronize()")
        device = self.stream.device
        if device.log is None:
            device.call("waiting for an event", self.event.synchronize, ())
            return
        with guarded("waiting for an event"), device.waiting("synchronize event", self.heads):
            self.event.synchronize()


class CupyStream:
    """A CUDA stream.

    Attributes
    ----------
    cupy : cupy.cuda.Stream
        CuPy's.
    ptr : int
        The CUDA handle.
    """

    def __init__(self, device: CupyDevice, stream: Any, number: int) -> None:
        self.device = device
        self.cupy = stream
        self.number = number
        self.ptr = int(stream.ptr)
        self.watcher = Watcher(device.ordinal, f"asyncgpu {device.name} stream {number}")

    def __repr__(self) -> str:
        return f"<stream {self.number} of {self.device.name}>"

    @property
    def done(self) -> bool:
        """Whether it holds no unfinished work."""
        # As for an event: CuPy's own `done` stays False for ever after a fault.
        return int(runtime.streamQuery(self.ptr)) != NOT_READY

    def record(self) -> CupyEvent:
        """An event behind all work enqueued so far."""
        log = self.device.log
        event: CupyEvent = self.device.call(
            "recording an event", self._record, (log.heads(self.number) if log else (),)
        )
        return event

    def _record(self, heads: tuple[int, ...]) -> CupyEvent:
        event = CupyEvent(self, heads)
        runtime.eventRecord(event.ptr, self.ptr)
        return event

    def wait_event(self, event: Event) -> None:
        """Hold back work enqueued from now on until `event`."""
        if not isinstance(event, CupyEvent):
            raise DeviceMismatchError(
                f"{self!r} cannot wait for {event!r}: it is not a CUDA event. stream.record() makes one"
            )
        if self.device.log is not None and event.stream.device is self.device:
            self.device.log.wait(self.number, event.heads)
        self.device.call(
            "waiting for an event on a stream", runtime.streamWaitEvent, (self.ptr, event.ptr)
        )

    def synchronize(self) -> None:
        """Block the host until all its work is done."""
        forbid_nested_wait("stream.synchronize()")
        log = self.device.log
        if log is None:
            self.device.call("waiting for a stream", self.cupy.synchronize, ())
            return
        heads = log.heads(self.number)
        with (
            guarded("waiting for a stream"),
            self.device.waiting(f"synchronize stream {self.number}", heads),
        ):
            self.cupy.synchronize()
