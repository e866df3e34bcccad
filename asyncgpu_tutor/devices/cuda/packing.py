"""Arguments of a kernel, laid out as the driver wants them.

CuPy looks at the type of each argument at each launch, which takes longer than the driver's own call. Here
the layout follows from the kernel's signature, once.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from cupy.cuda import driver

from asyncgpu_tutor.devices.cuda_source import Parameter, Signature
from asyncgpu_tutor.errors import UsageError

# NumPy's letters for its types are the struct module's. cuLaunchKernel takes each argument at its natural
# alignment, which is what "@" means there.
POINTER = "Q"

# Room for arguments, the address of an array of pointers to them ("kernelParams"), and that array.
Room = tuple[Any, int, Any]


def _letter(parameter: Parameter) -> str:
    if parameter.record is not None:  # the driver copies its bytes, wherever they lie
        return f"{parameter.record.itemsize}s"
    return POINTER if parameter.pointer or parameter.dtype is None else parameter.dtype.char


def _passed(index: int, parameter: Parameter) -> str:
    """The argument as it is written: an address in place of memory."""
    if parameter.pointer:
        return f"p{index}.ptr"
    return f"p{index}.tobytes()" if parameter.record is not None else f"p{index}"


class Packer:
    """Room for the arguments of one kernel, and what launches it with them.

    Pointers take memory, anything with `ptr`, an address on the device; the rest takes numbers. `pointer` is
    the function, a ``CUfunction``. Where it is `cooperative`, its blocks meet at a barrier of the grid, and
    the driver launches only what has room at once.
    """

    def __init__(self, signature: Signature, pointer: int, cooperative: bool = False) -> None:
        # The driver's function that launches it, and what that takes behind the address of the arguments:
        # cuLaunchKernel has one argument more, which we do not use.
        self.call = driver.launchCooperativeKernel if cooperative else driver.launchKernel
        self.rest: tuple[int, ...] = () if cooperative else (0,)
        parameters = signature.parameters
        letters = [_letter(p) for p in parameters]
        layout = struct.Struct("@" + "".join(letters))
        space: dict[str, Any] = {
            "write": layout.pack_into,
            "rooms": [],
            "another": partial(_room, layout.size, letters),
            "call": self.call,
            "UsageError": UsageError,
            "miscounted": signature.miscounted,
        }
        # Written out, as a loop over the arguments takes longer than the driver's call.
        given = "".join(f"p{index}, " for index in range(len(parameters)))
        passed = "".join(_passed(i, p) + ", " for i, p in enumerate(parameters))
        exec(
            f"""
def pack(args):
    try: [{given}] = args
    except ValueError: raise UsageError(miscounted(args)) from None
    room = another()
    write(room[0], 0, {passed})
    return room

def launch(grid, block, args, shared, stream):
    try: [{given}] = args
    except ValueError: raise UsageError(miscounted(args)) from None
    gx, gy, gz = grid
    bx, by, bz = block
    # The driver's call lets other threads run, so each takes a room of its own. A lock would take longer.
    try: room = rooms.pop()
    except IndexError: room = another()
    write(room[0], 0, {passed})
    call({pointer}, gx, gy, gz, bx, by, bz, shared, stream, room[1]{"".join(f", {n}" for n in self.rest)})
    rooms.append(room)
""",
            space,
        )
        # Writes arguments, memory and numbers, one for each parameter, to a room of their own.
        self.pack: Callable[[Sequence[Any]], Room] = space["pack"]
        # Launches it; the driver copies the arguments before it returns. Takes grid and block, (x, y, z); the
        # arguments; the dynamic shared memory of a block, in bytes; a ``cudaStream_t``.
        self.launch: Callable[..., None] = space["launch"]


def _room(size: int, letters: Sequence[str]) -> Room:
    """Room for arguments."""
    room = ctypes.create_string_buffer(max(size, 1))
    base = ctypes.addressof(room)
    offsets = [
        struct.calcsize("@" + "".join(letters[: i + 1])) - struct.calcsize(letter)
        for i, letter in enumerate(letters)
    ]
    table = (ctypes.c_void_p * max(len(letters), 1))(*(base + o for o in offsets))
    return room, ctypes.addressof(table), table
