"""Kernels as operations, and the course's own CUDA C, one kernel a file."""

from asyncgpu_tutor.kernels.kernel import Kernel as Kernel
from asyncgpu_tutor.kernels.kernel import KernelSource as KernelSource
from asyncgpu_tutor.kernels.matvec_naive import MATVEC_NAIVE as MATVEC_NAIVE
from asyncgpu_tutor.kernels.relu import RELU as RELU
from asyncgpu_tutor.kernels.sgemm_naive import SGEMM_NAIVE as SGEMM_NAIVE

matvec_naive = Kernel(MATVEC_NAIVE)
relu = Kernel(RELU)
sgemm_naive = Kernel(SGEMM_NAIVE)
