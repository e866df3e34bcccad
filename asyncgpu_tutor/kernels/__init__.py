"""Kernels as operations, and the course's own."""

from asyncgpu_tutor.kernels.kernel import Kernel as Kernel
from asyncgpu_tutor.kernels.kernel import KernelSource as KernelSource
from asyncgpu_tutor.kernels.ready_made import MATVEC_NAIVE as MATVEC_NAIVE
from asyncgpu_tutor.kernels.ready_made import RELU as RELU
from asyncgpu_tutor.kernels.ready_made import SGEMM_NAIVE as SGEMM_NAIVE

matvec_naive = Kernel(MATVEC_NAIVE)
relu = Kernel(RELU)
sgemm_naive = Kernel(SGEMM_NAIVE)
