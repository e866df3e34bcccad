"""Operations and combinators."""

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.ops.array_operations import d2h, to
from asyncgpu_tutor.ops.graphs import graph_on
from asyncgpu_tutor.ops.group import On
from asyncgpu_tutor.ops.operation import DeviceOp, Makers
from asyncgpu_tutor.ops.prepared import Prepared
from asyncgpu_tutor.ops.shared import SharedOp, entry, unzip

DeviceOp._make = Makers(SharedOp, unzip, entry, d2h, Prepared, graph_on, On)
DeviceArray._mover = to
