"""Looking at a simulated device while something runs on it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from asyncgpu_tutor.devices.simulated import Launched, SimDevice
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.inspection.report import Report
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait


@contextmanager
def microscope() -> Generator[Report]:
    """Count what the kernels do that run on the current device while a block is executed.

    Leaving the block waits for the device. What it ran before the block is not in the report, except
    for work that was still in flight; what other tasks run on the device meanwhile is. Looking changes
    neither results nor times.

    Yields
    ------
    Report
        It grows as kernels run.

    Raises
    ------
    UsageError
        If the current device is not simulated: a GPU does not say what its threads did.
    NestedSyncError
        If called while an operation is being submitted.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.using("sim"), agt.microscope() as scope:
    ...     _ = agt.relu(64, agt.ones(64), agt.zeros(64).partition(32)).sync()
    >>> scope["relu"].load_sectors_per_request
    4.0
    """
    forbid_nested_wait("the microscope")
    device = current_device()
    if not isinstance(device, SimDevice):
        raise UsageError(
            f"the microscope needs a simulated device, and the current one is {device.name}: what it shows "
            'is counted by the interpreter of CUDA C. Look with agt.using("sim"):, or profile the GPU '
            "itself with Nsight Compute."
        )
    seen: list[Launched] = []
    device.observers.append(seen.append)
    try:
        yield Report(device.spec, seen)
    finally:
        device.settle_log()
        device.observers.remove(seen.append)
