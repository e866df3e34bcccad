"""The CUDA device. Importing this package does not import CuPy; opening a device does."""

from asyncgpu_tutor.devices.cuda.opening import open_device

__all__ = ["open_device"]
