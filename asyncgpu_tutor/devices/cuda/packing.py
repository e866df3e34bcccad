"""Arguments of a kernel, laid out as the driver wants them.

CuPy looks at the type of each argument at each launch, which takes longer than the driver's own call. Here
the layout follows from the kernel's signature, once.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

from cupy.cuda import driver

from asyncgpu_tutor.cuda_c import Parameter, Signature
from asyncgpu_tutor.errors import UsageError

__all__ = ["Packer"]

# NumPy's letters for its types are the struct module's. cuLaunchKernel takes each argument at its natural
# alignment, which is what "@" means there.
POINTER = "Q"


def _letter(parameter: Parameter) -> str:
    if parameter.record is not None:  # the driver copies its bytes, wherever they lie
        return f"{parameter.record.itemsize}s"
    return POINTER if parameter.pointer or parameter.dtype is None else parameter.dtype.char


class Packer:
    """Room for the arguments of one kernel.

    Parameters
    ----------
    signature : Signature
        Its pointers take memory, anything with `ptr`, an address on the device; the rest takes numbers.
    cooperative : bool
        Whether its blocks meet at a barrier of the grid: the driver then launches only what has room at once.

    Attributes
    ----------
    call : callable
        The driver's function that launches it.
    """

    def __init__(self, signature: Signature, cooperative: bool = False) -> None:
        self._signature = signature
        self.cooperative = cooperative
        self.call = driver.launchCooperativeKernel if cooperative else driver.launchKernel
        letters = [_letter(p) for p in signature.parameters]
        places = [f"p{index}" for index in range(len(letters))]
        passed = [
            f"{place}.ptr"
            if parameter.pointer
            else f"{place}.tobytes()"
            if parameter.record
            else place
            for place, parameter in zip(places, signature.parameters, strict=True)
        ]
        # With addresses in place of memory; written out, as a loop takes longer than the driver's call.
        self._values: Callable[..., tuple[Any, ...]] = eval(
            f"lambda {', '.join(places)}: ({''.join(f'{value}, ' for value in passed)})"
        )
        layout = struct.Struct("@" + "".join(letters))
        self._buffer = ctypes.create_string_buffer(max(layout.size, 1))
        self._pack_into = layout.pack_into
        base = ctypes.addressof(self._buffer)
        offsets = [
            struct.calcsize("@" + "".join(letters[: i + 1])) - struct.calcsize(letter)
            for i, letter in enumerate(letters)
        ]
        self._table = (ctypes.c_void_p * max(len(letters), 1))(*(base + o for o in offsets))
        # Of an array of pointers to the arguments: what cuLaunchKernel calls kernelParams.
        self.address = ctypes.addressof(self._table)
        # cuLaunchKernel takes one argument more, which we do not use.
        self.last = (self.address,) if cooperative else (self.address, 0)
        self._lock = threading.Lock()

    def pack(self, args: Sequence[Any]) -> None:
        """Write the arguments: memory and numbers, one for each parameter."""
        self._pack_into(self._buffer, 0, *self._listed(args))

    def _listed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        try:
            return self._values(*args)
        except TypeError:
            names = ", ".join(p.name for p in self._signature.parameters)
            raise UsageError(
                f"{self._signature.name}() takes {len(self._signature.parameters)} arguments ({names}), and "
                f"got {len(args)}"
            ) from None

    def launch(
        self, pointer: int, grid: Any, block: Any, args: Sequence[Any], shared: int, stream: int
    ) -> None:
        """Pack and launch; the driver copies the arguments before it returns.

        Parameters
        ----------
        pointer : int
            The function, a ``CUfunction``.
        grid, block : tuple of int
            (x, y, z).
        shared : int
            Dynamic shared memory of a block, in bytes.
        stream : int
            A ``cudaStream_t``.
        """
        values = self._listed(args)
        with self._lock:  # the driver's call lets other threads run
            self._pack_into(self._buffer, 0, *values)
            self.call(pointer, *grid, *block, shared, stream, *self.last)
