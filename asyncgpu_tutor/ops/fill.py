"""Constant and counting fills, one thread for each element."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

__all__ = ["FillKernel", "arange_source", "fill_source"]


class FillKernel(NamedTuple):
    """CUDA C and the name of its kernel; every one takes the number of elements first and the array last."""

    name: str
    source: str


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
def fill_source(ctype: str) -> FillKernel:
    """`out[:] = value` for elements of the C type `ctype`."""
    return FillKernel("fill", f"#define T {ctype}\n{FILL}")


@cache
def arange_source(ctype: str) -> FillKernel:
    """`out[i] = start + i * step` for elements of the C type `ctype`."""
    return FillKernel("arange", f"#define T {ctype}\n{ARANGE}")
