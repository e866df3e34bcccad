"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times."""

from simgpu.arrays import Array, RawKernel, asarray, asnumpy, current_device, empty, use, zeros
from simgpu.collectives import Collective, Communicator
from simgpu.common import Call, Caller, Recorder
from simgpu.device import Device
from simgpu.gpus import SPECS
from simgpu.graph import Graph, Replay
from simgpu.launches import Function, Launched
from simgpu.links import Wiring
from simgpu.machine import Machine
from simgpu.memory import Memory
from simgpu.spec import DeviceSpec
from simgpu.stream import Event, Stream

__all__ = [
    "SPECS",
    "Array",
    "Call",
    "Caller",
    "Collective",
    "Communicator",
    "Device",
    "DeviceSpec",
    "Event",
    "Function",
    "Graph",
    "Launched",
    "Machine",
    "Memory",
    "RawKernel",
    "Recorder",
    "Replay",
    "Stream",
    "Wiring",
    "asarray",
    "asnumpy",
    "current_device",
    "empty",
    "use",
    "zeros",
]
