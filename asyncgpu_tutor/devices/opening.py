"""Opening devices by kind and number: the one place that knows both classes of them."""

import os
from collections.abc import Sequence
from typing import Any

from asyncgpu_tutor.devices.protocol import Device, DeviceCommunicator
from asyncgpu_tutor.devices.simulated import (
    SimCommunicator,
    SimDevice,
    SimMachine,
    SimStream,
    Wiring,
)
from asyncgpu_tutor.errors import DeviceMismatchError, DeviceUnavailableError

_ONE_PROCESS = (
    "simulated GPUs of several processes have no common clock, so they cannot form a group: use "
    "agt.cluster('sim', gpus=4), in one process, or workers with GPUs"
)
SPEC_VARIABLE = "ASYNCGPU_SPEC"
# Classes of the streams that are ours: such a stream is taken as it is, and any other is asked about.
own_streams: set[type] = {SimStream}
_machine = SimMachine()  # the host that all simulated devices of this process are plugged into


def open_device(kind: str, ordinal: int) -> Device:
    """Open a device, ``"sim"`` or ``"cuda"``; `DeviceUnavailableError` if it is not on this machine."""
    if kind == "sim":
        return SimDevice(ordinal, os.environ.get(SPEC_VARIABLE) or "h200", _machine)
    from asyncgpu_tutor.devices import cuda  # CuPy is slow to import

    device = cuda.open_cupy_device(ordinal)
    own_streams.add(type(device.default_stream))
    return device


def open_group(devices: Sequence[Device]) -> DeviceCommunicator:
    """A communicator of devices of this process; `DeviceMismatchError` if they are of two kinds."""
    simulated = [device for device in devices if isinstance(device, SimDevice)]
    if len(simulated) == len(devices):
        return SimCommunicator(simulated)
    if simulated:
        names = ", ".join(device.name for device in devices)
        raise DeviceMismatchError(f"the ranks of a group must be devices of one kind, not {names}")
    from asyncgpu_tutor.devices.cuda import nccl

    return nccl.open_nccl_group(devices)


def new_group_id(device: Device) -> Any:
    """Name by which the ranks of a group of several processes find each other; one of them makes it."""
    if device.simulated:
        raise DeviceUnavailableError(_ONE_PROCESS)
    from asyncgpu_tutor.devices.cuda import nccl

    return nccl.new_id()


def open_rank(device: Device, rank: int, size: int, found_by: Any) -> DeviceCommunicator:
    """A communicator of several processes, of which this one has one rank; returns when all are there."""
    from asyncgpu_tutor.devices.cuda import nccl

    return nccl.open_nccl_rank(device, rank, size, found_by)


def wire(wiring: Wiring) -> Wiring:
    """Say how simulated devices are connected from now on; returns how they were before."""
    before, _machine.wiring = _machine.wiring, wiring
    return before
