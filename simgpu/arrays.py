"""Arrays and kernels in CuPy's verbs, for programs that want a GPU and no ceremony."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from simgpu.common import LaunchDim, as_element_type, as_lengths
from simgpu.cuda_c import check_byte_order
from simgpu.device import Device
from simgpu.errors import DeviceMismatchError, UsageError
from simgpu.launches import LoadedKernel
from simgpu.memory import Memory
from simgpu.stream import Stream

Lengths = int | tuple[int, ...]
_current: list[Device] = []


def device_in_use() -> Device:
    """The GPU that arrays are made on where none is named: that of `use_device`, or an H200."""
    if not _current:
        _current.append(Device())
    return _current[0]


def use_device(device: Device) -> Device:
    """Arrays are made on this device from now on, if none is named; it is given back."""
    _current[:] = [device]
    return device


@dataclass(eq=False, repr=False)
class Array:
    """An array on a device, in the order of C. `asarray`, `Array.zeros` and `Array.empty` make one."""

    device: Device
    memory: Memory
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        return f"<array of {self.shape} {self.dtype} on {self.device.name}>"

    @classmethod
    def empty(
        cls, shape: Lengths, dtype: DTypeLike = np.float64, device: Device | None = None
    ) -> Array:
        """A new array. To read what nobody has written is an error."""
        device, what = device or device_in_use(), "an array"
        lengths, kind = as_lengths(shape, what), as_element_type(dtype, what)
        nbytes = math.prod(lengths) * kind.itemsize
        memory = device.malloc(nbytes, f"array of {lengths}", device.default_stream)
        return cls(device, memory, lengths, kind)

    @classmethod
    def zeros(
        cls, shape: Lengths, dtype: DTypeLike = np.float64, device: Device | None = None
    ) -> Array:
        """A new array of zeros."""
        array = cls.empty(shape, dtype, device)
        array.device.memset_async(array.memory, 0, array.nbytes, array.device.default_stream)
        return array

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def get(self, stream: Stream | None = None) -> NDArray[Any]:
        """Copy it to the host, when all that `stream` holds is done; raises what went wrong in that."""
        host = np.empty(self.shape, self.dtype)
        stream = stream or self.device.default_stream
        self.device.copy_to_host_async(host, self.memory, stream)
        stream.synchronize()
        return host

    def set(self, values: ArrayLike, stream: Stream | None = None) -> None:
        """Copy values of the host into it, as one of NumPy's arrays takes them."""
        try:
            host = np.ascontiguousarray(np.broadcast_to(np.asarray(values, self.dtype), self.shape))
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{self!r} cannot take these values: {error}") from None
        stream = stream or self.device.default_stream
        self.device.copy_from_host_async(self.memory, host, stream)


def asarray(values: ArrayLike, device: Device | None = None) -> Array:
    """A copy of an array of the host."""
    try:
        host = np.asarray(values)
    except ValueError as error:  # rows of several lengths
        raise UsageError(f"these values are no array: {error}") from None
    array = Array.empty(host.shape, host.dtype, device)
    array.set(host)
    return array


def asnumpy(array: Array) -> NDArray[Any]:
    """A copy on the host."""
    return array.get()


class RawKernel:
    """A kernel in CUDA C.

    As in CuPy, those of one source that are alike in `enable_cooperative_groups` are in one module on a
    device, and share its `__device__` variables.

    Parameters
    ----------
    code : str
        The source.
    name : str
        The kernel in it; an instance of a template as ``"axpy<float>"``.
    enable_cooperative_groups : bool
        Whether its launches are cooperative ones, which a barrier of the grid needs.
    """

    def __init__(self, code: str, name: str, *, enable_cooperative_groups: bool = False) -> None:
        for given in cast("list[object]", [code, name]):
            if not isinstance(given, str):
                what = f"CUDA C and a kernel's name, as strings, and got {type(given).__name__}"
                raise UsageError(f"a RawKernel is made of {what}")
        self.code = code
        self.name = name
        self.enable_cooperative_groups = enable_cooperative_groups

    def __call__(
        self,
        grid: Lengths,
        block: Lengths,
        args: Sequence[object],
        *,
        shared_mem: int = 0,
        stream: Stream | None = None,
    ) -> None:
        """Enqueue a launch; its errors are raised by whatever waits for it, such as `Array.get`.

        `args` are arrays, numbers, which become what the parameters are, and None for null pointers.
        """
        if not isinstance(args, tuple | list):
            got = type(args).__name__
            raise UsageError(f"a kernel's arguments are a tuple, as (x,) for one, and got {got}")
        if stream is not None and not isinstance(stream, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DeviceMismatchError(f"{stream!r} is not a stream of a simulated device")
        owner = stream or next((arg for arg in args if isinstance(arg, Array)), None)
        device = owner.device if owner is not None else device_in_use()
        for arg in args:
            if isinstance(arg, Array) and arg.device is not device:
                raise DeviceMismatchError(f"{arg!r} cannot be passed to a kernel on {device.name}")
            if isinstance(arg, Array):
                check_byte_order(arg.dtype, repr(arg))
        values = [arg.memory if isinstance(arg, Array) else arg for arg in args]
        queue = stream or device.default_stream
        shape = _dim3(grid), _dim3(block)
        device.launch(self.function(device), *shape, values, shared_mem, queue)

    def function(self, device: Device) -> LoadedKernel:
        """The kernel, compiled for a device, once."""
        module = bool(self.enable_cooperative_groups)
        loaded = device.get_function(self.code, self.name, module=module)
        if not self.enable_cooperative_groups:
            loaded.kernel.check_cooperative("make it with enable_cooperative_groups=True")
        return loaded


def _dim3(size: Lengths) -> LaunchDim:
    given = tuple(size) if isinstance(size, tuple | list) else (size,)
    return cast(LaunchDim, (*given, 1, 1, 1)[: max(3, len(given))])  # a launch refuses more
