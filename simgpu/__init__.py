"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times.

A name is imported from its module when it is first used (PEP 562), so that whoever needs the tree of errors
and no device loads no interpreter of CUDA C.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simgpu.arrays import Array as Array
    from simgpu.arrays import RawKernel as RawKernel
    from simgpu.arrays import asarray as asarray
    from simgpu.arrays import asnumpy as asnumpy
    from simgpu.arrays import device_in_use as device_in_use
    from simgpu.arrays import use_device as use_device
    from simgpu.collectives import Collective as Collective
    from simgpu.collectives import Communicator as Communicator
    from simgpu.common import Caller as Caller
    from simgpu.common import PreparedCall as PreparedCall
    from simgpu.common import Recorder as Recorder
    from simgpu.device import Device as Device
    from simgpu.gpus import SPECS as SPECS
    from simgpu.graph import Graph as Graph
    from simgpu.graph import Replay as Replay
    from simgpu.judging.kernel_spec import KernelSpec as KernelSpec
    from simgpu.judging.kernel_spec import Output as Output
    from simgpu.launches import Launched as Launched
    from simgpu.launches import LoadedKernel as LoadedKernel
    from simgpu.links import Wiring as Wiring
    from simgpu.machine import Machine as Machine
    from simgpu.memory import Memory as Memory
    from simgpu.spec import DeviceSpec as DeviceSpec
    from simgpu.stream import Event as Event
    from simgpu.stream import Stream as Stream

__version__ = "0.1.0"  # also of asyncgpu_tutor: they are released together

_HOMES = {
    name: module
    for module, names in {
        "arrays": "Array RawKernel asarray asnumpy device_in_use use_device",
        "collectives": "Collective Communicator",
        "common": "Caller PreparedCall Recorder",
        "device": "Device",
        "gpus": "SPECS",
        "graph": "Graph Replay",
        "judging.kernel_spec": "KernelSpec Output",
        "launches": "Launched LoadedKernel",
        "links": "Wiring",
        "machine": "Machine",
        "memory": "Memory",
        "spec": "DeviceSpec",
        "stream": "Event Stream",
    }.items()
    for name in names.split()
}
# To pyright the imports above say it.
__all__ = [*_HOMES]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; from then on it is an ordinary attribute."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
