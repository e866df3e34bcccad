"""CUDA's functions for memsets and copies, with what each is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cupy.cuda import PinnedMemoryPointer, runtime

from asyncgpu_tutor.devices.protocol import HostBuffer, Memory

__all__ = ["TRANSFERS", "Bound", "address", "device_copy", "download", "memset", "upload"]

H2D, D2H, D2D = 1, 2, 3  # cudaMemcpyKind
Bound = tuple[Callable[..., object], tuple[Any, ...]]


def address(host: HostBuffer) -> int:
    """Of the first byte of a C-contiguous host array."""
    base: Any = host.base
    if type(base) is PinnedMemoryPointer:  # as `CupyDevice.pinned` makes them, whole
        return int(base.ptr)
    return int(host.__array_interface__["data"][0])  # `ctypes.data` takes thrice as long


def memset(memory: Memory, value: int, nbytes: int, stream: int) -> Bound:
    """Set bytes."""
    return runtime.memsetAsync, (memory.ptr, value, nbytes, stream)


def upload(memory: Memory, host: HostBuffer, stream: int) -> Bound:
    """From the host."""
    return runtime.memcpyAsync, (memory.ptr, address(host), host.nbytes, H2D, stream)


def download(host: HostBuffer, memory: Memory, stream: int) -> Bound:
    """To the host."""
    return runtime.memcpyAsync, (address(host), memory.ptr, host.nbytes, D2H, stream)


def device_copy(target: Memory, source: Memory, nbytes: int, stream: int) -> Bound:
    """Within the device."""
    return runtime.memcpyAsync, (target.ptr, source.ptr, nbytes, D2D, stream)


# By the names of the methods of `Device`. Each takes what the method takes, and a ``cudaStream_t``.
TRANSFERS: dict[str, Callable[..., Bound]] = {
    "memset_async": memset,
    "copy_from_host_async": upload,
    "copy_to_host_async": download,
    "copy_from_device_async": device_copy,
}
