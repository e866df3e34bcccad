"""The tables of __init__.py, for type checkers: tools/stub.py makes it."""

from simgpu.arrays import Array, RawKernel, asarray, asnumpy, device_in_use, use_device
from simgpu.collectives import Collective, Communicator
from simgpu.common import Caller, PreparedCall, Recorder
from simgpu.device import Device
from simgpu.gpus import SPECS
from simgpu.graph import Graph, Replay
from simgpu.judging.kernel_spec import KernelSpec, Output
from simgpu.launches import Launched, LoadedKernel
from simgpu.links import Wiring
from simgpu.machine import Machine
from simgpu.memory import Memory
from simgpu.spec import DeviceSpec
from simgpu.stream import Event, Stream

__version__: str

__all__ = [
    "SPECS",
    "Array",
    "Caller",
    "Collective",
    "Communicator",
    "Device",
    "DeviceSpec",
    "Event",
    "Graph",
    "KernelSpec",
    "Launched",
    "LoadedKernel",
    "Machine",
    "Memory",
    "Output",
    "PreparedCall",
    "RawKernel",
    "Recorder",
    "Replay",
    "Stream",
    "Wiring",
    "asarray",
    "asnumpy",
    "device_in_use",
    "use_device",
]
