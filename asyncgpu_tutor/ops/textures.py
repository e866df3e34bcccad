"""Making textures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import FrameType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, borrowed_in
from asyncgpu_tutor.arrays.textures import Texture
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, CaptureError
from asyncgpu_tutor.ops.array_operations import upload
from asyncgpu_tutor.ops.operation import DeviceOp, evaluate
from asyncgpu_tutor.ops.pinned import asarray, is_foreign
from asyncgpu_tutor.run import ExecutionContext
from simgpu.cuda_c import TextureForm


class _MakeTexture(DeviceOp[Texture]):
    """Copies an array to where the hardware reads textures from, and says how it is read."""

    __slots__ = ("_options", "_source")

    def __init__(
        self, source: DeviceOp[Any] | DeviceArray, options: dict[str, Any], frame: FrameType
    ) -> None:
        self._options = options
        if isinstance(source, DeviceArray):
            _form(source.shape, source.dtype, options)  # a wrong call moves nothing
            self._source: DeviceOp[Any] | DeviceArray = source._take("into texture()")
        else:
            self._source = source
            source._used = True
        self._built("texture", frame)

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return (self._source,) if isinstance(self._source, DeviceOp) else ()

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in((self._source,))

    def _enqueue(self, context: ExecutionContext) -> Texture:
        if context._run.captures:
            raise CaptureError(
                "texture() copies to memory of its own, which no graph and no prepared pipeline can hold: "
                "make the texture before, and pass it to the kernels"
            )
        source = self._source
        if isinstance(source, DeviceOp):
            return self._copy(context, evaluate(source, context))
        array = source._take("into an earlier run of texture()")
        try:
            return self._copy(context, array)
        except Exception:
            source._undo_take()  # a run that was refused has given nothing away
            raise

    def _copy(self, context: ExecutionContext, array: Any) -> Texture:
        if not isinstance(array, DeviceArray):
            raise _no_array(array)
        form = _form(array.shape, array.dtype, self._options)
        memory = context._touch(array)
        made = context._allocate(context.device.texture, memory, form, array.name)
        return Texture(made, form, context.device, array.name)


def _no_array(given: object) -> ArrayDTypeError:
    advice = ": call its unpartition()" if isinstance(given, Partition) else ""
    return ArrayDTypeError(f"texture() takes an array, and got {type(given).__name__}{advice}")


def _form(shape: tuple[int, ...], dtype: np.dtype[Any], options: dict[str, Any]) -> TextureForm:
    """How a copy of an array is read."""
    channels = options["channels"]
    if channels in (2, 4) and shape[-1:] != (channels,):
        raise ArrayShapeError(
            f"with channels={channels} the last axis of the array holds the channels, and the array has "
            f"shape {shape}"
        )
    return TextureForm(shape[:-1] if channels in (2, 4) else shape, dtype, **options)


def texture(
    array: DeviceArray | DeviceOp[DeviceArray] | npt.ArrayLike,
    *,
    filter: Literal["point", "linear"] = "point",
    address: Literal["clamp", "border", "wrap", "mirror"] = "clamp",
    normalized_coords: bool = False,
    read: Literal["element", "normalized_float"] = "element",
    channels: Literal[1, 2, 4] = 1,
    memory: Literal["array", "linear"] = "array",
) -> DeviceOp[Texture]:
    """Copy an array to a texture, which kernels take as a `cudaTextureObject_t`.

    It is a copy, made when the operation runs: what is written to the array later does not change it, so no
    kernel can write to what another one reads as a texture. In CUDA's words it is cudaMallocArray,
    cudaMemcpyToArrayAsync and cudaCreateTextureObject. It is freed with the last handle to it, and not
    before the launches that were given it are done.

    Parameters
    ----------
    array : DeviceArray, DeviceOp or array_like
        Of 1 to 3 dimensions: x is the last one. Elements of 8, 16 or 32 bits, float16 and float32. A device
        array is taken: pass ``x.borrow()`` or ``x.share()`` to keep x. A host array is uploaded.
    filter : {"point", "linear"}
        Whether a read takes one texel, or weighs the nearest two along each axis. The centre of texel i is at
        i + 0.5. Weights have 8 bits after the point.
    address : {"clamp", "border", "wrap", "mirror"}
        What is outside: the nearest texel, 0, the array again, or its mirror image. The last two need
        `normalized_coords`.
    normalized_coords : bool
        Whether coordinates go from 0 to 1, rather than to the number of texels.
    read : {"element", "normalized_float"}
        Whether integers of 8 and 16 bits are read as they are, or as floats from 0 to 1 (from -1 if signed).
    channels : {1, 2, 4}
        With 2 and 4 the last axis of the array holds the parts of a vector, such as a `uchar4`. There are no
        textures of 3: give an RGB image a fourth.
    memory : {"array", "linear"}
        A CUDA array for `tex1D`, `tex2D` and `tex3D`; linear memory for `tex1Dfetch`, which reads 1-D data by
        the number of the texel, and 0 outside.

    Raises
    ------
    UsageError
        If CUDA has no such texture; `ArrayShapeError` or `ArrayDTypeError` where that is due to the array.
        Of an operation the array is known when that runs, so it is raised then.

    Notes
    -----
    Values on the simulated device follow the CUDA C++ Programming Guide, appendix "Texture Fetching". Times
    are those of loads from global memory.

    Examples
    --------
    >>> import asyncgpu_tutor as agt
    >>> import numpy as np
    >>> between = agt.Kernel('''
    ... __global__ void between(cudaTextureObject_t table, float* y) {
    ...     y[threadIdx.x] = tex1D<float>(table, threadIdx.x + 1.0f);
    ... }''')
    >>> table = agt.texture(np.float32([0, 10, 30]), filter="linear")
    >>> between(table, agt.zeros(2), grid=1, block=2).output().to_host().sync()
    array([ 5., 20.], dtype=float32)
    """
    frame = sys._getframe(1)
    options: dict[str, Any] = {
        "filter": filter,
        "address": address,
        "normalized_coords": normalized_coords,
        "read": read,
        "channels": channels,
        "memory": memory,
    }
    make = partial(_MakeTexture, options=options, frame=frame)
    if isinstance(array, DeviceArray | DeviceOp):
        return make(array)
    if is_foreign(array):
        return make(asarray(array))
    host = np.asarray(array)
    if host.dtype.hasobject:
        raise _no_array(array)
    _form(host.shape, host.dtype, options)
    return make(upload(host, "texture", frame))
