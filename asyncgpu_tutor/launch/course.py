"""The kernels of the course, ready to be called."""

from __future__ import annotations

from asyncgpu_tutor.kernels import MATVEC_NAIVE, RELU, SGEMM_NAIVE
from asyncgpu_tutor.launch.kernel import Kernel

__all__ = ["matvec_naive", "relu", "sgemm_naive"]

sgemm_naive = Kernel(SGEMM_NAIVE)
matvec_naive = Kernel(MATVEC_NAIVE)
relu = Kernel(RELU)
