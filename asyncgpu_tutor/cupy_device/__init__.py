"""The CUDA device. Importing this package does not import CuPy; opening a device does."""

from asyncgpu_tutor.cupy_device.opening import open_device

__all__ = ["open_device"]
