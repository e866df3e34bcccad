"""One run of one operation: the current device and policy, submissions, captures, futures, recordings."""

from asyncgpu_tutor.run.capture import Capture
from asyncgpu_tutor.run.capture_stream import CaptureStream
from asyncgpu_tutor.run.context import ExecutionContext, Run, borrowed_message, check_out
from asyncgpu_tutor.run.current import (
    adopt_stream,
    create_stream,
    current_device,
    current_policy,
    resolve,
    sleep,
    use,
    using,
    work,
)
from asyncgpu_tutor.run.last_use import LastUse, UsedMemory, come_after, in_turn
from asyncgpu_tutor.run.recording import record
from asyncgpu_tutor.run.submission import forsake, in_flight, submit, synchronize, wait

__all__ = [
    "Capture",
    "CaptureStream",
    "ExecutionContext",
    "LastUse",
    "Run",
    "UsedMemory",
    "adopt_stream",
    "borrowed_message",
    "check_out",
    "come_after",
    "create_stream",
    "current_device",
    "current_policy",
    "forsake",
    "in_flight",
    "in_turn",
    "record",
    "resolve",
    "sleep",
    "submit",
    "synchronize",
    "use",
    "using",
    "wait",
    "work",
]
