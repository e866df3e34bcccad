"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times.

A name is imported from its module when it is first used (PEP 562), so that whoever needs the tree of errors
and no device loads no interpreter of CUDA C.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simgpu.arrays import (
        Array,
        RawKernel,
        asarray,
        asnumpy,
        current_device,
        empty,
        use,
        zeros,
    )
    from simgpu.collectives import Collective, Communicator
    from simgpu.common import Caller, PreparedCall, Recorder
    from simgpu.device import Device
    from simgpu.gpus import SPECS
    from simgpu.graph import Graph, Replay
    from simgpu.launches import Launched, LoadedKernel
    from simgpu.links import Wiring
    from simgpu.machine import Machine
    from simgpu.memory import Memory
    from simgpu.spec import DeviceSpec
    from simgpu.stream import Event, Stream

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
    "Launched",
    "LoadedKernel",
    "Machine",
    "Memory",
    "PreparedCall",
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

_HOMES = {
    name: module
    for module, names in {
        "arrays": "Array RawKernel asarray asnumpy current_device empty use zeros",
        "collectives": "Collective Communicator",
        "common": "Caller PreparedCall Recorder",
        "device": "Device",
        "gpus": "SPECS",
        "graph": "Graph Replay",
        "launches": "Launched LoadedKernel",
        "links": "Wiring",
        "machine": "Machine",
        "memory": "Memory",
        "spec": "DeviceSpec",
        "stream": "Event Stream",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; from then on it is an ordinary attribute."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
