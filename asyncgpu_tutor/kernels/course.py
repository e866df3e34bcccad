"""The kernels of the course, ready to be called."""

from __future__ import annotations

from asyncgpu_tutor.kernels.kernel import Kernel
from asyncgpu_tutor.kernels.matvec_naive import MATVEC_NAIVE
from asyncgpu_tutor.kernels.relu import RELU
from asyncgpu_tutor.kernels.sgemm_naive import SGEMM_NAIVE

sgemm_naive = Kernel(SGEMM_NAIVE)
matvec_naive = Kernel(MATVEC_NAIVE)
relu = Kernel(RELU)
