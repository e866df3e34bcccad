"""Handles to textures."""

from __future__ import annotations

from asyncgpu_tutor.devices.protocol import Device, Memory
from simgpu.cuda_c import TextureForm


class Texture:
    """A copy of an array that kernels read by coordinates; made by `agt.texture`.

    Nothing writes to it, so it can be passed on any number of times, and no handle to it is ever moved.

    Attributes
    ----------
    name : str
        Of the array that it is a copy of, for messages and traces.
    shape : tuple of int
        Texels along each axis; x is the last one.
    dtype : numpy.dtype
        Of the elements as they are stored.
    device : Device
    """

    __slots__ = ("_form", "_memory", "device", "dtype", "name", "shape")

    def __init__(self, memory: Memory, form: TextureForm, device: Device, name: str) -> None:
        self._memory = memory
        self._form = form
        self.name = name
        self.shape = form.shape
        self.dtype = form.dtype
        self.device = device

    def __repr__(self) -> str:
        form = self._form
        return (
            f"<Texture {self.name!r} {form.shape} {form.dtype} on {self.device.name}, "
            f"filter={form.filter!r}, address={form.address!r}>"
        )
