"""The types of what a program gets and never makes by name: for annotations and `isinstance`.

The classes that a program does make (`Kernel`, `Trace`, `CudaGraph`, policies) are in the package itself.
"""

from asyncgpu_tutor.arrays.handles import Partition
from asyncgpu_tutor.arrays.host import HostArray
from asyncgpu_tutor.clusters import Cluster, Gpu, RemoteArray
from asyncgpu_tutor.devices.protocol import Device, Event, Stream
from asyncgpu_tutor.inspection import KernelReport, Litmus, MicroscopeReport, Threads, Warps
from asyncgpu_tutor.ops.collectives import Group
from asyncgpu_tutor.ops.graphs import GraphScope
from asyncgpu_tutor.ops.prepared import Prepared
from asyncgpu_tutor.ops.shared import SharedOp
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.traces.analysis import Analysis, Finding
from asyncgpu_tutor.traces.pictures import Timeline
from asyncgpu_tutor.traces.spans import Metrics, Span

__all__ = [
    "Analysis",
    "Cluster",
    "Device",
    "Event",
    "ExecutionContext",
    "Finding",
    "Gpu",
    "GraphScope",
    "Group",
    "HostArray",
    "KernelReport",
    "Litmus",
    "Metrics",
    "MicroscopeReport",
    "Partition",
    "Prepared",
    "RemoteArray",
    "SharedOp",
    "Span",
    "Stream",
    "Threads",
    "Timeline",
    "Warps",
]
