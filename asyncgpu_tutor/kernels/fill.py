"""Constant and counting fills, one thread for each element."""

from __future__ import annotations

from functools import cache

from asyncgpu_tutor.kernels.source import KernelSource

__all__ = ["arange_source", "fill_source"]

FILL = r"""
extern "C" __global__
void fill(unsigned long long n, T value, T* out)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
"""

ARANGE = r"""
extern "C" __global__
void arange(unsigned long long n, T start, T step, T* out)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = start + (T)i * step;
}
"""


@cache  # one source for each type: devices look compiled kernels up by it
def fill_source(ctype: str) -> KernelSource:
    """`out[:] = value` for elements of the C type `ctype`."""
    return KernelSource("fill", f"#define T {ctype}\n{FILL}", shapes={"out": ("n",)})


@cache
def arange_source(ctype: str) -> KernelSource:
    """`out[i] = start + i * step` for elements of the C type `ctype`."""
    return KernelSource("arange", f"#define T {ctype}\n{ARANGE}", shapes={"out": ("n",)})
