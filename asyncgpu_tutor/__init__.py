"""Asynchronous GPU programming in Python, taught.

::

    import asyncgpu_tutor as agt

    x = agt.pin(numpy_array)
    op = agt.h2d(x).and_then(lambda a: ...)     # describes work, enqueues nothing
    result = op.sync()                          # or: await op

General layout, lower floors first; nothing imports upwards (see ARCHITECTURE.md):

    trace, errors               spans, and what can go wrong
    kernels, data               CUDA C and facts, one kernel a file; the inputs of the MLP
    host, tag                   host arrays in flight; which operation a call belongs to
    device                      what a device must do
    array, scheduling, cuda_c   handles to a device's arrays; policies; the interpreter of CUDA C
    sim, cupy_device, timeline, ranges
    runtime                     which device, which policy, one run of one operation
    future                      waiting without blocking
    ops                         DeviceOp and the combinators
    memory, launch              the leaf operations; kernels as operations
    inspection, analysis        what the kernels of a run did; what a trace tells
    serving                     a server loop
"""

from asyncgpu_tutor import data, errors
from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import HostArray
from asyncgpu_tutor.devices.protocol import Device, Event, Stream
from asyncgpu_tutor.errors import (
    AsyncGpuError,
    DeviceError,
    KernelCompileError,
    KernelFault,
    PageableCopyWarning,
    UsageError,
)
from asyncgpu_tutor.kernels import Kernel, KernelSource, matvec_naive, relu, sgemm_naive
from asyncgpu_tutor.microscope import inspect, microscope
from asyncgpu_tutor.ops import (
    CudaGraph,
    DeviceOp,
    GraphScope,
    Prepared,
    SharedOp,
    arange,
    asarray,
    d2h,
    dup,
    full,
    h2d,
    memcpy,
    ones,
    overlap,
    pin,
    pinned,
    randn,
    spawn,
    value,
    with_context,
    zeros,
    zip,
)
from asyncgpu_tutor.run import (
    ExecutionContext,
    create_stream,
    current_device,
    current_policy,
    in_flight,
    known_devices,
    policy_for,
    record,
    resolve,
    sleep,
    synchronize,
    use,
    using,
    work,
)
from asyncgpu_tutor.run.future import DeviceFuture, FutureState
from asyncgpu_tutor.scheduling import SchedulingPolicy, SingleStream, StreamPoolRoundRobin
from asyncgpu_tutor.serving import Server
from asyncgpu_tutor.traces import nvtx as ranges
from asyncgpu_tutor.traces.analysis import Analysis, Comparison, Finding, analyse, compare, diagnose
from asyncgpu_tutor.traces.spans import Span, Trace

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "AsyncGpuError",
    "Comparison",
    "CudaGraph",
    "Device",
    "DeviceArray",
    "DeviceError",
    "DeviceFuture",
    "DeviceOp",
    "Event",
    "ExecutionContext",
    "Finding",
    "FutureState",
    "GraphScope",
    "HostArray",
    "Kernel",
    "KernelCompileError",
    "KernelFault",
    "KernelSource",
    "PageableCopyWarning",
    "Partition",
    "Prepared",
    "SchedulingPolicy",
    "Server",
    "SharedOp",
    "SingleStream",
    "Span",
    "Stream",
    "StreamPoolRoundRobin",
    "Trace",
    "UsageError",
    "analyse",
    "arange",
    "asarray",
    "compare",
    "create_stream",
    "current_device",
    "current_policy",
    "d2h",
    "data",
    "diagnose",
    "dup",
    "errors",
    "full",
    "h2d",
    "in_flight",
    "inspect",
    "known_devices",
    "matvec_naive",
    "memcpy",
    "microscope",
    "ones",
    "overlap",
    "pin",
    "pinned",
    "policy_for",
    "randn",
    "ranges",
    "record",
    "relu",
    "resolve",
    "sgemm_naive",
    "sleep",
    "spawn",
    "synchronize",
    "use",
    "using",
    "value",
    "with_context",
    "work",
    "zeros",
    "zip",
]
