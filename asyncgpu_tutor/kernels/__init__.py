"""The kernels of the course: source, facts and a NumPy reference, one family a file."""

from asyncgpu_tutor.kernels.fill import arange_source, fill_source
from asyncgpu_tutor.kernels.matvec_naive import MATVEC_NAIVE
from asyncgpu_tutor.kernels.randn import RANDN
from asyncgpu_tutor.kernels.relu import RELU
from asyncgpu_tutor.kernels.sgemm_naive import SGEMM_NAIVE
from asyncgpu_tutor.kernels.source import KernelSource

__all__ = [
    "MATVEC_NAIVE",
    "RANDN",
    "RELU",
    "SGEMM_NAIVE",
    "KernelSource",
    "arange_source",
    "fill_source",
]
