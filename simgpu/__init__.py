"""A GPU in NumPy: CUDA C, streams, events, graphs, hazards and modelled times.

A name is imported from its module when it is first used (PEP 562), so that whoever needs the tree of errors
and no device loads no interpreter of CUDA C.
"""

from importlib import import_module

__version__ = "0.1.0"  # also of asyncgpu_tutor: they are released together

# In which module each public name is defined. A test compares __init__.pyi, which says so to type checkers.
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
__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] - the stub lists them


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; from then on it is an ordinary attribute."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
