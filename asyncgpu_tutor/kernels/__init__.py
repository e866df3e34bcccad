"""Kernels as operations, and the course's own CUDA C, one kernel a file."""

from asyncgpu_tutor.kernels.kernel import Kernel, KernelSource
from asyncgpu_tutor.kernels.matvec_naive import MATVEC_NAIVE
from asyncgpu_tutor.kernels.relu import RELU
from asyncgpu_tutor.kernels.sgemm_naive import SGEMM_NAIVE

matvec_naive = Kernel(MATVEC_NAIVE)
relu = Kernel(RELU)
sgemm_naive = Kernel(SGEMM_NAIVE)

__all__ = [
    "MATVEC_NAIVE",
    "RELU",
    "SGEMM_NAIVE",
    "Kernel",
    "KernelSource",
    "matvec_naive",
    "relu",
    "sgemm_naive",
]
