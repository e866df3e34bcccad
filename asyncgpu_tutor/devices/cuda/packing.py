"""Arguments of a kernel, laid out as the driver wants them: once for each combination of types.

CuPy looks at the type of each argument at each launch, which takes longer than the driver's own call.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import Any

from cupy.cuda import driver

__all__ = ["Packer"]

# NumPy's letters for its types are the struct module's. cuLaunchKernel takes each argument at its natural
# alignment, which is what "@" means there.
POINTER = "Q"


class Packer:
    """The arguments of one kernel, for one combination of their types.

    Parameters
    ----------
    args : sequence
        Numbers of NumPy's types, or anything with `ptr`, an address on the device.
    """

    def __init__(self, args: Sequence[Any]) -> None:
        letters = [_letter(arg) for arg in args]
        self._layout = struct.Struct("@" + "".join(letters))
        self._buffer = ctypes.create_string_buffer(max(self._layout.size, 1))
        base = ctypes.addressof(self._buffer)
        offsets = [
            struct.calcsize("@" + "".join(letters[: i + 1])) - struct.calcsize(letter)
            for i, letter in enumerate(letters)
        ]
        self._table = (ctypes.c_void_p * max(len(args), 1))(*(base + o for o in offsets))
        # Of an array of pointers to the arguments: what cuLaunchKernel calls kernelParams.
        self.address = ctypes.addressof(self._table)
        self.lock = threading.Lock()

    def pack(self, values: Sequence[Any]) -> None:
        """Write the arguments: numbers, and addresses."""
        self._layout.pack_into(self._buffer, 0, *values)

    def launch(
        self, pointer: int, shape: tuple[int, ...], values: Sequence[Any], shared: int, stream: int
    ) -> None:
        """Pack and launch; the driver copies the arguments before it returns.

        Parameters
        ----------
        pointer : int
            The function, a ``CUfunction``.
        shape : tuple of int
            Grid, then block, (x, y, z) each.
        shared : int
            Dynamic shared memory of a block, in bytes.
        stream : int
            A ``cudaStream_t``.
        """
        with self.lock:  # the driver's call lets other threads run
            self._layout.pack_into(self._buffer, 0, *values)
            driver.launchKernel(pointer, *shape, shared, stream, self.address, 0)


def _letter(arg: Any) -> str:
    dtype = getattr(arg, "dtype", None)  # memory has none
    return POINTER if dtype is None else str(dtype.char)
