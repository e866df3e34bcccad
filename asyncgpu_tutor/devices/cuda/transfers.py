"""CUDA's functions for memsets and copies, with what each is called with before its ``cudaStream_t``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cupy.cuda import PinnedMemoryPointer, runtime

from asyncgpu_tutor.devices.protocol import HostBuffer

H2D, D2H, D2D = 1, 2, 3  # cudaMemcpyKind
Bound = tuple[Callable[..., object], tuple[Any, ...]]


def address(host: HostBuffer) -> int:
    """Of the first byte of a C-contiguous host array."""
    base: Any = host.base
    if type(base) is PinnedMemoryPointer:  # as `CupyDevice.pinned` makes them, whole
        start: int = base.ptr
        return start
    return int(host.__array_interface__["data"][0])  # `ctypes.data` takes thrice as long


def transfer(verb: str, args: Sequence[Any]) -> Bound:
    """CUDA's function for a method of `Device` that takes `args`, and what it takes before the stream."""
    if verb == "memset_async":
        memory, value, nbytes = args
        return runtime.memsetAsync, (memory.ptr, value, nbytes)
    if verb == "copy_from_host_async":
        memory, host = args
        return runtime.memcpyAsync, (memory.ptr, address(host), host.nbytes, H2D)
    if verb == "copy_to_host_async":
        host, memory = args
        return runtime.memcpyAsync, (address(host), memory.ptr, host.nbytes, D2H)
    target, source, nbytes = args
    if verb == "copy_from_device_async":
        return runtime.memcpyAsync, (target.ptr, source.ptr, nbytes, D2D)
    ends = target.ptr, target.device.ordinal, source.ptr, source.device.ordinal
    return runtime.memcpyPeerAsync, (*ends, nbytes)
