"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times."""

from simgpu.common import Call, Caller, Recorder
from simgpu.device import Device
from simgpu.graph import Graph, Replay
from simgpu.launches import Function, Launched
from simgpu.machine import Machine
from simgpu.memory import Memory
from simgpu.spec import DeviceSpec
from simgpu.stream import Event, Stream

__all__ = [
    "Call",
    "Caller",
    "Device",
    "DeviceSpec",
    "Event",
    "Function",
    "Graph",
    "Launched",
    "Machine",
    "Memory",
    "Recorder",
    "Replay",
    "Stream",
]
