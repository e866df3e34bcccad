"""Asynchronous GPU programming in Python, taught.

::

    import asyncgpu_tutor as agt

    x = agt.pin(numpy_array)
    op = agt.h2d(x).and_then(lambda a: ...)     # describes work, enqueues nothing
    result = op.sync()                          # or: await op

ARCHITECTURE.md in the repository draws the rooms and their floors.

A public name is imported from its room when it is first used (PEP 562), so that `import asyncgpu_tutor`
takes less than `import numpy`, and a program that reads traces never loads an interpreter of CUDA C.
"""

import sys
from importlib import import_module

if sys.version_info < (3, 11):  # noqa: UP036 - in a clone no pip has looked
    said = "asyncgpu_tutor needs Python 3.11 or newer, and this is {}.{}"
    said = said.format(*sys.version_info)
    raise SystemExit(said) if sys.argv[:1] == ["-m"] else ImportError(said)

__version__ = "0.1.0"

# The public modules, and in which module each other public name is defined. A test compares __init__.pyi,
# which tells type checkers the same.
_MODULES = {
    "data": "asyncgpu_tutor.data",
    "errors": "asyncgpu_tutor.errors",
    "ranges": "asyncgpu_tutor.traces.nvtx",
    "types": "asyncgpu_tutor.types",
}
_HOMES = {
    name: room
    for room, names in {
        "arrays.handles": "DeviceArray",
        "clusters": "cluster",
        "devices.simulated": "SimDevice",
        "errors": "DeviceError UsageError",
        "inspection": "litmus microscope show_threads show_warps",
        "kernels": "Kernel matvec_naive relu sgemm_naive",
        "ops.array_operations": "arange d2h dup empty full h2d memcpy ones randn zeros",
        "ops.collectives": "group",
        "ops.graphs": "CudaGraph",
        "ops.group": "overlap zip",
        "ops.leaves": "value with_context",
        "ops.operation": "DeviceOp spawn",
        "ops.pinned": "asarray mapped pin pinned",
        "run.current": "SchedulingPolicy SingleStream StreamPoolRoundRobin create_stream current_device "
        "sleep use using work",
        "run.device_clock": "DeviceClock",
        "run.future": "DeviceFuture FutureState",
        "run.others": "reached",
        "run.recording": "record",
        "run.submission": "in_flight synchronize",
        "serving": "Server hostcalls",
        "traces.analysis": "analyse diagnose",
        "traces.pictures": "compare_timelines",
        "traces.trace": "Trace",
    }.items()
    for name in names.split()
}
__all__ = list(_MODULES | _HOMES)  # pyright: ignore[reportUnsupportedDunderAll] - the stub lists them


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for; from then on it is an ordinary attribute."""
    if name in _MODULES:
        found: object = import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names for completion, without the rooms that happen to be imported."""
    return sorted(__all__)
