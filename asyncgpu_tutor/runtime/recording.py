"""Recording: what the devices did while a block of code ran."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from asyncgpu_tutor.device import Device, forbid_nested_wait
from asyncgpu_tutor.errors import DeviceError
from asyncgpu_tutor.runtime.devices import current_device, known_devices, on_open
from asyncgpu_tutor.trace import Span, SpanLog, Trace

__all__ = ["record"]


@dataclass
class _Recording:
    """The recording under way, which nested blocks share."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    logs: dict[Device, SpanLog] = field(default_factory=dict[Device, SpanLog])
    depth: int = 0

    def attach(self, device: Device) -> None:
        if device not in self.logs:
            device.start_log(self.numbers)
            assert device.log is not None
            self.logs[device] = device.log


_recording = _Recording()


@contextmanager
def record() -> Generator[Trace]:
    """Record what the devices do while a block runs.

    Leaving the block waits for the devices; only then is the trace filled. Time zero is when the block
    was entered. On a simulated device the times are modelled; on a GPU they come from CUDA events,
    and each operation's first launch includes the loading of its module: run it once before.

    Yields
    ------
    Trace
        Empty inside the block.

    Raises
    ------
    DeviceError
        On leaving, if a device cannot be waited for, or a host array was changed under a copy. Where
        the block itself has raised something, a note there says so instead.
    NestedSyncError
        If called while an operation is being submitted.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.record() as trace:
    ...     _ = agt.zeros((4,)).sync()
    >>> [span.name for span in trace.device_spans]
    ['memset']
    """
    global _recording  # noqa: PLW0603 - the process has one recording
    forbid_nested_wait("record()")
    first = current_device()
    devices: list[Device] = []
    trace = Trace(clock=first.clock, device=first.description)

    def attach(device: Device) -> None:
        if device.clock == first.clock:
            _recording.attach(device)
            devices.append(device)

    for device in known_devices():
        attach(device)
    _recording.depth += 1
    begin = next(_recording.numbers)
    origin = first.now()
    try:
        with on_open(attach):
            yield trace
    except BaseException as error:
        try:
            _settle(devices)
        except DeviceError as also:
            error.add_note(f"leaving record(): {also}")
        raise
    else:
        _settle(devices)
    finally:
        end = next(_recording.numbers)
        _recording.depth -= 1
        logs = [_recording.logs[device] for device in devices]
        spans: list[Span] = [s for log in logs for s in log.spans if begin < s.id < end]
        trace.fill(spans, origin)
        if _recording.depth == 0:
            for device in _recording.logs:
                device.stop_log()
            _recording = _Recording()


def _settle(devices: list[Device]) -> None:
    for device in devices:
        device.settle_log()
