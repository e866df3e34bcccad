"""CUDA's functions for memsets and copies, with what each is called with before its ``cudaStream_t``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cupy.cuda import PinnedMemoryPointer, runtime

from asyncgpu_tutor.devices.protocol import HostBuffer, Memory

H2D, D2H, D2D = 1, 2, 3  # cudaMemcpyKind
Bound = tuple[Callable[..., object], tuple[Any, ...]]


def address(host: HostBuffer) -> int:
    """Of the first byte of a C-contiguous host array."""
    base: Any = host.base
    if type(base) is PinnedMemoryPointer:  # as `CupyDevice.pinned` makes them, whole
        start: int = base.ptr
        return start
    return int(host.__array_interface__["data"][0])  # `ctypes.data` takes thrice as long


def _memset(memory: Memory, value: int, nbytes: int) -> Bound:
    """Set bytes."""
    return runtime.memsetAsync, (memory.ptr, value, nbytes)


def _upload(memory: Memory, host: HostBuffer) -> Bound:
    """From the host."""
    return runtime.memcpyAsync, (memory.ptr, address(host), host.nbytes, H2D)


def _download(host: HostBuffer, memory: Memory) -> Bound:
    """To the host."""
    return runtime.memcpyAsync, (address(host), memory.ptr, host.nbytes, D2H)


def _device_copy(target: Memory, source: Memory, nbytes: int) -> Bound:
    """Within the device."""
    return runtime.memcpyAsync, (target.ptr, source.ptr, nbytes, D2D)


def _peer_copy(target: Memory, source: Memory, nbytes: int) -> Bound:
    """To another device, or from there."""
    to: Any = target.device
    origin: Any = source.device
    ends = (target.ptr, to.ordinal, source.ptr, origin.ordinal, nbytes)
    return runtime.memcpyPeerAsync, ends


# By the names of the methods of `Device`. Each takes what the method takes but the stream.
TRANSFERS: dict[str, Callable[..., Bound]] = {
    "memset_async": _memset,
    "copy_from_host_async": _upload,
    "copy_to_host_async": _download,
    "copy_from_device_async": _device_copy,
    "copy_to_peer_async": _peer_copy,
}
