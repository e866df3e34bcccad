"""The simulated device: right values, modelled times, every hazard an error.

Whether a copy may start, and what each of two kernels gets of the GPU, is decided in `engine`; how long a
kernel takes, in `model`; and which streams race, in `stream_races`.
"""

from simgpu.device import SimDevice
from simgpu.gpus import SPECS, derived, find_spec, save_spec
from simgpu.launches import Launched
from simgpu.machine import Machine
from simgpu.spec import DeviceSpec
from simgpu.times import (
    blocks_by_registers,
    resident_blocks,
)

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
