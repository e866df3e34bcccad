"""Recording: what the devices did while a block of code ran."""

import itertools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

from asyncgpu_tutor.devices.protocol import Device
from asyncgpu_tutor.errors import DeviceError, UsageError
from asyncgpu_tutor.run.current import current_device, known_devices, on_open
from asyncgpu_tutor.traces import nvtx as ranges
from asyncgpu_tutor.traces.spans import Span, SpanLog
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait
from asyncgpu_tutor.traces.trace import Trace

TimeSource = Literal["auto", "cupti", "all", "events"]


@dataclass
class _Recording:
    """The recording under way, which nested blocks share."""

    numbers: Iterator[int] = field(default_factory=itertools.count)
    logs: dict[Device, SpanLog] = field(default_factory=dict[Device, SpanLog])
    depth: int = 0


_recording = _Recording()


@contextmanager
def record(source: TimeSource = "auto") -> Generator[Trace]:
    """Record what the devices do while a block runs.

    Leaving the block waits for the devices; only then is the trace filled. Time zero is when the block
    was entered. On a simulated device the times are modelled. On a GPU they come from CUPTI, which knows
    when each piece of work started and ended, or from CUDA events around it, which also span what it waits
    for there, and see a CUDA graph as a whole. Each kernel's first launch includes the loading of its module:
    run the program once before.

    Recipes that run in other processes are in the trace if they are over when the block ends: see
    `asyncgpu_tutor.cluster`.

    For a profiler the block is an NVTX range called "record", if `ranges` are enabled: see
    `Trace.from_nsys`.

    Parameters
    ----------
    source : {"auto", "cupti", "all", "events"}
        Where the times of a GPU come from. ``"auto"`` is CUPTI where the package ``cupti-python`` is
        installed (``pip install 'asyncgpu_tutor[trace]'``) and no profiler is attached, else events; the
        trace's `clock` says which, and its `about` why, and how the clocks of device and host were aligned.
        ``"all"`` is CUPTI, and has what other libraries enqueue in the trace, too: kernels, copies and fills
        of CuPy, PyTorch or cuBLAS, and their calls that enqueue, wait, allocate or load. Streams that are
        theirs alone are numbered from 1000 on.

    Yields
    ------
    Trace
        Empty inside the block.

    Raises
    ------
    UsageError
        If `source` is not one of these; if it is named for a simulated device; if CUPTI was named and cannot
        be used; if the recording around this one has another source.
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
    forbid_nested_wait("record()")
    first = current_device()
    _check(source, first)
    devices: list[Device] = []
    trace = Trace(clock=first.clock, device=first.description)

    def attach(device: Device) -> None:
        if device.clock != first.clock:
            return
        if device not in _recording.logs:
            device.start_log(_recording.numbers, source)
            assert device.log is not None
            _recording.logs[device] = device.log
        devices.append(device)

    try:
        for device in known_devices():
            attach(device)
    except BaseException:
        _stop()
        raise
    _recording.depth += 1
    mark = ranges.start("record")
    begin = next(_recording.numbers)
    origin = first.now()
    try:
        with on_open(attach):
            try:
                yield trace
            finally:
                ranges.end(mark)
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
        # It alone knows the clock, since CUPTI may not have been there.
        log = _recording.logs[first]
        trace.device = first.description.replace(first.clock, log.clock)
        trace.clock, trace.about = log.clock, dict(log.about)
        _stop()


def _stop() -> None:
    """Stop the logs, unless a recording around this one needs them."""
    global _recording  # noqa: PLW0603 - the process has one recording
    if _recording.depth == 0:
        for device in _recording.logs:
            device.stop_log()
        _recording = _Recording()


def under_way() -> tuple[Device, SpanLog] | None:
    """The device whose clock a recording goes by, and its log; None while nothing is recorded."""
    return next(iter(_recording.logs.items()), None)


def _check(source: TimeSource, first: Device) -> None:
    if source not in get_args(TimeSource):
        raise UsageError(
            f"source is {source!r}, and must be one of 'auto', 'cupti', 'all', 'events'"
        )
    if source == "auto":
        return
    if first.simulated:
        raise UsageError(
            f"record(source={source!r}) is for a GPU: the times of {first.name} are modelled. Leave "
            "source out, or, if there should be a GPU, call agt.use('cuda') to see why it is not found."
        )
    log = _recording.logs.get(first)
    if log is not None and (
        (log.clock == "CUPTI") != (source != "events")
        or (source == "all" and "everything" not in log.about)
    ):
        raise UsageError(
            f"a recording with times from {log.clock} is under way: record(source={source!r}) cannot begin "
            "inside it"
        )


def _settle(devices: list[Device]) -> None:
    for device in devices:
        device.settle_log()
