"""The simulated device, a thin adapter to `simgpu`: right values, modelled times, every hazard an error.

Besides `cuda_source` this is the only door to `simgpu`. `SimDevice` is its device as `protocol` wants one,
with submissions, asyncio and this package's errors.
"""

from asyncgpu_tutor.devices.simulated import packets as packets  # so that kernels find them
from asyncgpu_tutor.devices.simulated.sim_device import SimCommunicator as SimCommunicator
from asyncgpu_tutor.devices.simulated.sim_device import SimDevice as SimDevice
from asyncgpu_tutor.devices.simulated.sim_device import SimEvent as SimEvent
from asyncgpu_tutor.devices.simulated.sim_device import SimMachine as SimMachine
from asyncgpu_tutor.devices.simulated.sim_device import SimStream as SimStream
from simgpu.gpus import SPECS as SPECS
from simgpu.gpus import derived as derived
from simgpu.gpus import find_spec as find_spec
from simgpu.gpus import save_spec as save_spec
from simgpu.launches import Launched as Launched
from simgpu.links import Wiring as Wiring
from simgpu.spec import DeviceSpec as DeviceSpec
