"""Small kernels for the tests."""

import functools

import asyncgpu_tutor as agt
from asyncgpu_tutor.kernels import KernelSource

SCALE = KernelSource(
    "scale",
    r"""
extern "C" __global__ void scale(unsigned int n, float by, const float* x, float* y) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = by * x[i];
}
""",
    shapes={"x": ("n",), "y": ("n",)},
)
ADD = KernelSource(
    "add",
    r"""
extern "C" __global__ void add(unsigned int n, const float* x, const float* y, float* z) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}
""",
    shapes={"x": ("n",), "y": ("n",), "z": ("n",)},
)
# No bounds check, so a grid that is too large writes far outside.
STRAY = KernelSource(
    "stray",
    r"""
extern "C" __global__ void stray(unsigned long long far, float* x) {
    x[far + blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}
""",
)


@functools.cache
def kernel(source: KernelSource) -> agt.Kernel:
    return agt.Kernel(source)


def scale(array: agt.DeviceArray, by: float) -> agt.DeviceOp[agt.DeviceArray]:
    """In place: one partition is both read and written."""
    part = array.partition(32)
    return kernel(SCALE)(array.size, by, part, part).last().unpartition()


def add(
    x: agt.DeviceArray | agt.DeviceOp[agt.DeviceArray],
    y: agt.DeviceArray | agt.DeviceOp[agt.DeviceArray],
    n: int,
) -> agt.DeviceOp[agt.DeviceArray]:
    """Into a new array."""
    return kernel(ADD)(n, x, y, agt.zeros((n,)).partition(32)).output()
