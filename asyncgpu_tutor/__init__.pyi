"""The tables of __init__.py, for type checkers: tools/stub.py makes it."""

from asyncgpu_tutor import data, errors, types
from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.clusters import cluster
from asyncgpu_tutor.devices.simulated import SimDevice
from asyncgpu_tutor.errors import DeviceError, UsageError
from asyncgpu_tutor.inspection import litmus, microscope, show_threads, show_warps
from asyncgpu_tutor.kernels import Kernel, matvec_naive, relu, sgemm_naive
from asyncgpu_tutor.ops.array_operations import (
    arange,
    d2h,
    dup,
    empty,
    full,
    h2d,
    memcpy,
    ones,
    randn,
    zeros,
)
from asyncgpu_tutor.ops.collectives import group
from asyncgpu_tutor.ops.graphs import CudaGraph
from asyncgpu_tutor.ops.group import overlap, zip
from asyncgpu_tutor.ops.leaves import value, with_context
from asyncgpu_tutor.ops.operation import DeviceOp, spawn
from asyncgpu_tutor.ops.pinned import asarray, mapped, pin, pinned
from asyncgpu_tutor.run.current import (
    SchedulingPolicy,
    SingleStream,
    StreamPoolRoundRobin,
    create_stream,
    current_device,
    sleep,
    use,
    using,
    work,
)
from asyncgpu_tutor.run.device_clock import DeviceClock
from asyncgpu_tutor.run.future import DeviceFuture, FutureState
from asyncgpu_tutor.run.others import reached
from asyncgpu_tutor.run.recording import record
from asyncgpu_tutor.run.submission import in_flight, synchronize
from asyncgpu_tutor.serving import Server, hostcalls
from asyncgpu_tutor.traces import nvtx as ranges
from asyncgpu_tutor.traces.analysis import analyse, diagnose
from asyncgpu_tutor.traces.pictures import compare_timelines
from asyncgpu_tutor.traces.trace import Trace

__version__: str

__all__ = [
    "CudaGraph",
    "DeviceArray",
    "DeviceClock",
    "DeviceError",
    "DeviceFuture",
    "DeviceOp",
    "FutureState",
    "Kernel",
    "SchedulingPolicy",
    "Server",
    "SimDevice",
    "SingleStream",
    "StreamPoolRoundRobin",
    "Trace",
    "UsageError",
    "analyse",
    "arange",
    "asarray",
    "cluster",
    "compare_timelines",
    "create_stream",
    "current_device",
    "d2h",
    "data",
    "diagnose",
    "dup",
    "empty",
    "errors",
    "full",
    "group",
    "h2d",
    "hostcalls",
    "in_flight",
    "litmus",
    "mapped",
    "matvec_naive",
    "memcpy",
    "microscope",
    "ones",
    "overlap",
    "pin",
    "pinned",
    "randn",
    "ranges",
    "reached",
    "record",
    "relu",
    "sgemm_naive",
    "show_threads",
    "show_warps",
    "sleep",
    "spawn",
    "synchronize",
    "types",
    "use",
    "using",
    "value",
    "with_context",
    "work",
    "zeros",
    "zip",
]
