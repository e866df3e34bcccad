"""Kernels for checks that look at when things run, and not at what they compute."""

from __future__ import annotations

from typing import Any

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.kernels import Kernel
from asyncgpu_tutor.ops import DeviceOp

__all__ = ["BLOCK", "step", "step_kernel"]

BLOCK = 128

SOURCE = r"""
extern "C" __global__ void NAME(unsigned int n, float a, float b, const float* x, float* y)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + b;
}
"""


def step_kernel(name: str) -> Kernel:
    """A kernel that computes y = a * x + b, under a name of its own, so that it can be found in a trace."""
    return Kernel(SOURCE.replace("NAME", name))


def step(name: str, a: float, b: float, x: DeviceArray, y: DeviceArray) -> DeviceOp[Any]:
    """Its launch on borrowed arrays, in blocks of `BLOCK` threads."""
    kernel = step_kernel(name)
    return kernel(x.size, a, b, x.borrow(), y.borrow().partition(BLOCK)).named(name)
