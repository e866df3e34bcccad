"""Textures on a CUDA device, by CuPy's classes for them."""

from __future__ import annotations

from typing import Any

import cupy
from cupy.cuda import runtime
from cupy.cuda import texture as made

from asyncgpu_tutor.devices.protocol import Device, Memory
from simgpu.cuda_c import TextureForm

# Their numbers in CUDA: cudaChannelFormatKind, cudaTextureAddressMode.
_KINDS = {"i": 0, "u": 1, "f": 2}
_ADDRESSES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}


class CupyTexture(Memory):
    """A texture object and what it reads: linear memory, if it is given some, or a new CUDA array."""

    __slots__ = ("_array", "_form", "_linear", "_object")

    def __init__(self, device: Device, name: str, form: TextureForm, linear: Any = None) -> None:
        super().__init__(device, name, form.nbytes, 0)
        self._form = form
        self._linear = linear  # its block is used again when it goes
        bits = [8 * form.dtype.itemsize] * form.channels + [0] * (4 - form.channels)
        channel = made.ChannelFormatDescriptor(*bits, _KINDS[form.dtype.kind])
        if linear is None:
            self._array: Any = made.CUDAarray(channel, *reversed(form.shape))
            place = made.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=self._array)
        else:
            self._array = self._elements(linear)
            place = made.ResourceDescriptor(
                runtime.cudaResourceTypeLinear,
                arr=self._array,
                chDesc=channel,
                sizeInBytes=form.nbytes,
            )
        # cudaTextureFilterMode, cudaTextureReadMode: the second of two in either.
        modes = int(form.filter == "linear"), int(form.read == "normalized_float")
        # Axes that it does not have are filtered as well: a border there takes away half of all values.
        have = len(form.shape)
        addresses = (_ADDRESSES[form.address],) * have + (_ADDRESSES["clamp"],) * (3 - have)
        how = made.TextureDescriptor(
            addresses, *modes, normalizedCoords=int(form.normalized_coords)
        )
        self._object: Any = made.TextureObject(place, how)
        self.ptr = int(self._object.ptr)  # what a kernel is given

    def __del__(self) -> None:
        device: Any = self.device
        with device.active():  # the driver looks for both on the device that is current
            self._object = self._array = None

    def _elements(self, memory: Any) -> Any:
        """Memory as an array in which CuPy counts elements, not texels."""
        *others, width = self._form.shape
        shape = (*others, width * self._form.channels)
        return cupy.ndarray(shape, self._form.dtype, memptr=memory.pointer)

    def fill(self, source: Any, stream: Any) -> None:
        """Copy memory to the CUDA array, on a stream of CuPy's."""
        self._array.copy_from(self._elements(source), stream)
