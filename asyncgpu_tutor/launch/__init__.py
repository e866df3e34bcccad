"""Kernels as operations."""

from asyncgpu_tutor.launch.course import matvec_naive, relu, sgemm_naive
from asyncgpu_tutor.launch.kernel import Kernel

__all__ = ["Kernel", "matvec_naive", "relu", "sgemm_naive"]
