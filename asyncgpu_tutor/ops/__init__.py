"""Operations and combinators."""

from asyncgpu_tutor.ops.array_operations import (
    arange,
    d2h,
    dup,
    full,
    h2d,
    memcpy,
    ones,
    randn,
    zeros,
)
from asyncgpu_tutor.ops.graphs import CudaGraph, GraphScope, graph_on
from asyncgpu_tutor.ops.group import overlap
from asyncgpu_tutor.ops.group import zip_ops as zip
from asyncgpu_tutor.ops.leaves import value, with_context
from asyncgpu_tutor.ops.operation import DeviceOp, Makers
from asyncgpu_tutor.ops.pinned import asarray, is_foreign, mapped, pin, pinned
from asyncgpu_tutor.ops.prepared import Prepared, prepare
from asyncgpu_tutor.ops.shared import SharedOp, entry, unzip
from asyncgpu_tutor.ops.spawning import spawn

__all__ = [
    "CudaGraph",
    "DeviceOp",
    "GraphScope",
    "Prepared",
    "SharedOp",
    "arange",
    "asarray",
    "d2h",
    "dup",
    "full",
    "h2d",
    "is_foreign",
    "mapped",
    "memcpy",
    "ones",
    "overlap",
    "pin",
    "pinned",
    "randn",
    "spawn",
    "value",
    "with_context",
    "zeros",
    "zip",
]

DeviceOp._make = Makers(SharedOp, unzip, entry, d2h, prepare, graph_on)
