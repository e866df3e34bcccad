"""Pinned host memory, and arrays of other libraries."""

from typing import Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, as_array, as_dtype, as_shape, handle
from asyncgpu_tutor.errors import DeviceMismatchError, UsageError, demand
from asyncgpu_tutor.run.current import current_device, of_this_process


def pinned(shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """A host array in page-locked memory, not initialised: copies from and to it are asynchronous."""
    return of_this_process(current_device()).pinned(as_shape(shape), as_dtype(dtype))


def pin(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """A copy of a host array in page-locked memory."""
    source = as_array(array, "pin")
    target = pinned(source.shape, source.dtype)
    target[...] = source
    return target


def mapped(host: npt.NDArray[Any], name: str = "mapped") -> DeviceArray:
    """A `DeviceArray` on the memory of a pinned host array; no copy (CUDA: mapped memory, zero-copy).

    Kernels read and write the host's own bytes, while they run: so a kernel and the host can talk. Each
    access crosses the bus. Nothing orders the two sides but what they agree on: a kernel publishes with
    `__threadfence_system()` and then a flag, and looks at a flag through a pointer to volatile, or by an
    atomic.

    Parameters
    ----------
    host : numpy.ndarray
        A whole array of `pinned` or `pin`. It is kept alive.

    Raises
    ------
    UsageError
        If it is not pinned, or only a part of an array that is; if it is not C-contiguous, or read-only.

    Notes
    -----
    On the simulated device a kernel that waits for the host is paused, and goes on when the program next
    calls the device or awaits. A loop of Python that looks for an answer has to do so: with
    ``await agt.sleep(1)``, say. If the host does nothing but wait for that kernel, it is a `DeadlockError`.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> host = agt.pin([1.0, 2.0])
    >>> agt.mapped(host).shape
    (2,)
    """
    demand(host, np.ndarray, "agt.mapped takes a pinned NumPy array, as agt.pin makes one")
    if not host.flags.c_contiguous or not host.flags.writeable:
        raise UsageError(
            "a kernel reads and writes a mapped array in C order, and this one, of shape "
            f"{host.shape}, is {'read-only' if host.flags.c_contiguous else 'not C-contiguous'}: map an "
            "array as agt.pin(x) makes it"
        )
    device = current_device()
    memory = device.map_host(host, name)
    return handle(memory, host.shape, host.dtype)


def is_foreign(thing: object) -> bool:
    """Tell whether it is a device array of another library."""
    return not isinstance(thing, DeviceArray | np.ndarray | np.generic) and (
        hasattr(thing, "__cuda_array_interface__") or hasattr(thing, "__dlpack__")
    )


def asarray(foreign: object, name: str = "array") -> DeviceArray:
    """A `DeviceArray` on the memory of another library's array, without a copy; one of ours is handed back.

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
    if isinstance(foreign, DeviceArray):
        foreign._use(None, device)  # it is not elsewhere
        return foreign
    adopted = device.adopt_array(foreign) if is_foreign(foreign) else None
    if adopted is None:
        raise DeviceMismatchError(
            f"{type(foreign).__name__} is not an array on {device.name}: use agt.h2d(x) for an array on "
            "the host"
        )
    memory, shape, dtype = adopted
    memory.name = name
    return handle(memory, shape, dtype)
