"""Looking at a simulated device while something runs on it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

from asyncgpu_tutor.devices.simulated import Launched, SimDevice
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.inspection.report import Report
from asyncgpu_tutor.ops import DeviceOp
from asyncgpu_tutor.ops.operation import as_op
from asyncgpu_tutor.run import current_device
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

__all__ = ["inspect", "microscope"]

T = TypeVar("T")


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


def inspect(op: DeviceOp[T]) -> Report:
    """Run an operation on the current device, and count what its kernels do.

    It runs on the current device because its arrays live there; as with `sync`, owned ones are moved
    into it. Its result is dropped: who needs it uses `microscope`.

    Parameters
    ----------
    op : DeviceOp
        What to run, once.

    Returns
    -------
    Report

    Raises
    ------
    UsageError
        If the current device is not simulated. The operation is not run then.
    NotAnOperationError
        If `op` is none.
    DeviceError
        If the device failed in it.
    NestedSyncError
        If called while an operation is being submitted.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> with agt.using("sim"):
    ...     report = agt.inspect(agt.matvec_naive(
    ...         32, 32, agt.ones((32, 32)), agt.ones(32), agt.zeros(32).partition(32)))
    >>> report["matvec_naive"].flops
    2048
    """
    wanted = as_op(op)
    with microscope() as report:
        wanted.sync()
    return report
