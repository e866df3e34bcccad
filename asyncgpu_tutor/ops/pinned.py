"""Pinned host memory, and arrays of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import Buffer, DeviceArray, as_shape
from asyncgpu_tutor.errors import DeviceMismatchError
from asyncgpu_tutor.run import current_device

__all__ = ["asarray", "is_foreign", "pin", "pinned"]


def pinned(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """A host array in page-locked memory, not initialised: copies from and to it are asynchronous."""
    return current_device().pinned(as_shape(shape), np.dtype(dtype))


def pin(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """A copy of a host array in page-locked memory."""
    source = np.asarray(array)
    target = pinned(source.shape, source.dtype)
    target[...] = source
    return target


def is_foreign(thing: object) -> bool:
    """Whether it is a device array of another library."""
    return not isinstance(thing, DeviceArray | np.ndarray | np.generic) and (
        hasattr(thing, "__cuda_array_interface__") or hasattr(thing, "__dlpack__")
    )


def asarray(foreign: object, name: str = "array") -> DeviceArray:
    """A `DeviceArray` on the memory of another library's array; no copy.

    Parameters
    ----------
    foreign : object
        With `__cuda_array_interface__` or `__dlpack__` (CuPy, PyTorch, Numba), C-contiguous. It is kept
        alive. Work that the other library has enqueued on streams of its own is not waited for.

    Raises
    ------
    DeviceMismatchError
        If its memory is not on the current device.
    """
    device = current_device()
    adopted = device.adopt_array(foreign) if is_foreign(foreign) else None
    if adopted is None:
        raise DeviceMismatchError(
            f"{type(foreign).__name__} is not an array on {device.name}: use agt.h2d(x) for an array on "
            "the host"
        )
    memory, shape, dtype = adopted
    return DeviceArray(Buffer(memory, device, name), shape, dtype)
