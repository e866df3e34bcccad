"""Operations and combinators."""

from asyncgpu_tutor.ops.graphs import CudaGraph, GraphScope
from asyncgpu_tutor.ops.group import overlap
from asyncgpu_tutor.ops.group import zip_ops as zip
from asyncgpu_tutor.ops.leaves import Download, value, with_context
from asyncgpu_tutor.ops.once import SharedOp
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.ops.replayed import Prepared
from asyncgpu_tutor.ops.spawning import spawn
from asyncgpu_tutor.ops.standing import Standing

__all__ = [
    "CudaGraph",
    "DeviceOp",
    "Download",
    "GraphScope",
    "Prepared",
    "SharedOp",
    "Standing",
    "overlap",
    "spawn",
    "value",
    "with_context",
    "zip",
]
