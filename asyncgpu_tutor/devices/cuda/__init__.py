"""The CUDA device. Importing this package does not import CuPy; opening a device does."""

from asyncgpu_tutor.devices.cuda.opening import new_group_id, open_device, open_group, open_rank

__all__ = ["new_group_id", "open_device", "open_group", "open_rank"]
