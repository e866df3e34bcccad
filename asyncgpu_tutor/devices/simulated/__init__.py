"""The simulated device: right values, modelled times, every hazard an error.

Whether a copy may start, and what each of two kernels gets of the GPU, is decided in `engine`; how long a
kernel takes, in `model`; and which streams race, in `stream_races`.
"""

from asyncgpu_tutor.devices.simulated.device import SimDevice
from asyncgpu_tutor.devices.simulated.gpus import SPECS, derived, find_spec, save_spec
from asyncgpu_tutor.devices.simulated.launches_and_copies import Launched
from asyncgpu_tutor.devices.simulated.machine import Machine
from asyncgpu_tutor.devices.simulated.modelled_times import (
    blocks_by_registers,
    resident_blocks,
)
from asyncgpu_tutor.devices.simulated.spec import DeviceSpec

__all__ = [
    "SPECS",
    "DeviceSpec",
    "Launched",
    "Machine",
    "SimDevice",
    "blocks_by_registers",
    "derived",
    "find_spec",
    "resident_blocks",
    "save_spec",
]
