"""Where operations run: devices, policies, submissions, recordings."""

from asyncgpu_tutor.run.capture import Capture
from asyncgpu_tutor.run.capture_stream import CaptureStream
from asyncgpu_tutor.run.context import ExecutionContext, borrowed_message, check_out
from asyncgpu_tutor.run.current import (
    adopt_stream,
    create_stream,
    current_device,
    current_policy,
    known_devices,
    policy_for,
    resolve,
    sleep,
    use,
    using,
    work,
)
from asyncgpu_tutor.run.last_use import LastUse, follow, in_turn
from asyncgpu_tutor.run.recording import record
from asyncgpu_tutor.run.submission import (
    Rerun,
    Run,
    Submission,
    adopt,
    in_flight,
    submit,
    synchronize,
    wait,
)

__all__ = [
    "Capture",
    "CaptureStream",
    "ExecutionContext",
    "LastUse",
    "Rerun",
    "Run",
    "Submission",
    "adopt",
    "adopt_stream",
    "borrowed_message",
    "check_out",
    "create_stream",
    "current_device",
    "current_policy",
    "follow",
    "in_flight",
    "in_turn",
    "known_devices",
    "policy_for",
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
