"""What CUDA's functions are called with: a kernel's arguments, laid out as the driver wants them; and copies.

A launch hands the driver a list of addresses, one for each argument, so each number and pointer has to lie
somewhere in memory with the right size and alignment. CuPy finds out the type of each argument at each
launch, which takes longer than the driver's own call. A kernel's signature never changes, so here the
layout is made once, as one `struct` format, and a launch writes all arguments by one call.

The driver copies the arguments before it returns, so that room can be used again at once. But its call lets
other threads run, and two of them may launch one kernel. So each launch takes a room from a list and puts
it back, because a lock took longer. A prepared call keeps its room for good. Arguments of the wrong kind
would be written as they are, hence `kernels.launching` checks them first.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from cupy.cuda import PinnedMemoryPointer, driver, runtime

from asyncgpu_tutor.devices.cuda_source import Parameter, Signature, is_sized
from asyncgpu_tutor.devices.protocol import Dim3, HostBuffer
from asyncgpu_tutor.errors import UsageError

# NumPy's letters for its types are the struct module's. cuLaunchKernel takes each argument at its natural
# alignment, which is what "@" means there.
POINTER = "Q"

H2D, D2H, D2D = 1, 2, 3  # cudaMemcpyKind
# A function of CUDA's, and what it is called with.
Bound = tuple[Callable[..., object], tuple[Any, ...]]

# Room for arguments, the address of an array of pointers to them ("kernelParams"), and that array.
Room = tuple[Any, int, Any]


class Packer:
    """Room for the arguments of one kernel, and what launches it with them.

    Pointers take memory, anything with `ptr`, an address on the device; the rest takes numbers. `pointer` is
    the function, a ``CUfunction``. Where it is `cooperative`, its blocks meet at a barrier of the grid, and
    the driver launches only what has room at once.
    """

    def __init__(self, signature: Signature, cooperative: bool, pointer: int) -> None:
        # The driver's function that launches it, with the address of the arguments and 0 at the end.
        self.call = _launch_cooperative if cooperative else driver.launchKernel
        self.pointer = pointer
        self.signature = signature
        self._letters = [_letter(parameter) for parameter in signature.parameters]
        layout = struct.Struct("@" + "".join(self._letters))
        self._size, self._write, self._count = layout.size, layout.pack_into, len(self._letters)
        parameters = list(enumerate(signature.parameters))
        self._pointers = [place for place, one in parameters if one.pointer and not is_sized(one)]
        # Structs, and parameters of which only the size is known, go by their bytes.
        self._bytes = [
            place for place, one in parameters if one.record is not None or is_sized(one)
        ]
        # The driver's call lets other threads run, so each takes a room of its own. A lock would take longer.
        self._rooms: list[Room] = []

    def pack(self, args: Sequence[Any]) -> Room:
        """Write arguments, memory and numbers, one for each parameter, to a room that nobody else has."""
        values = [*args]
        if len(values) != self._count:
            raise UsageError(self.signature.miscounted(args))
        for place in self._pointers:
            memory = values[place]
            values[place] = 0 if memory is None else memory.ptr
        for place in self._bytes:
            values[place] = _bytes_of(values[place])
        try:
            room = self._rooms.pop()
        except IndexError:
            room = self._another()
        self._write(room[0], 0, *values)
        return room

    def launch(
        self, grid: Dim3, block: Dim3, args: Sequence[Any], shared_mem: int, stream: int
    ) -> None:
        """Launch it; the driver copies the arguments before it returns.

        `shared_mem` is the dynamic shared memory of a block, in bytes; `stream` a ``cudaStream_t``.
        """
        room = self.pack(args)
        (gx, gy, gz), (bx, by, bz) = grid, block
        self.call(self.pointer, gx, gy, gz, bx, by, bz, shared_mem, stream, room[1], 0)
        # If the call raised, the room is not put back, and the next launch makes another.
        self._rooms.append(room)

    def _another(self) -> Room:
        letters = self._letters
        room = ctypes.create_string_buffer(max(self._size, 1))
        base = ctypes.addressof(room)
        offsets = [
            struct.calcsize("@" + "".join(letters[: i + 1])) - struct.calcsize(letter)
            for i, letter in enumerate(letters)
        ]
        table = (ctypes.c_void_p * max(len(letters), 1))(*(base + o for o in offsets))
        return room, ctypes.addressof(table), table


def _launch_cooperative(*given: int) -> None:
    driver.launchCooperativeKernel(*given[:-1])  # it takes no "extra"


def _letter(parameter: Parameter) -> str:
    if parameter.record is not None:  # the driver copies its bytes, wherever they lie
        return f"{parameter.record.itemsize}s"
    if is_sized(parameter) and parameter.dtype is not None:
        return f"{parameter.dtype.itemsize}s"
    return POINTER if parameter.pointer or parameter.dtype is None else parameter.dtype.char


def _bytes_of(arg: Any) -> bytes:
    """Return the bytes of a NumPy number or record, or those of an address."""
    if arg is None:
        return bytes(8)
    return arg.ptr.to_bytes(8, "little") if hasattr(arg, "ptr") else arg.tobytes()


# ------------------------------------------------------------------ memsets and copies
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
