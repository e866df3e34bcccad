"""From what a caller passes to what a kernel takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.array import DeviceArray, Partition
from asyncgpu_tutor.cuda_c import Parameter
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.memory import asarray, is_foreign
from asyncgpu_tutor.ops import DeviceOp

__all__ = ["accept", "check_shapes"]

Accepted = DeviceOp[Any] | DeviceArray | Partition | np.generic


def accept(kernel: str, parameter: Parameter, given: Any) -> Accepted:
    """Check one argument as far as it is known before the launch; nothing is moved yet.

    Raises
    ------
    ArrayDTypeError
        If it is not of the kind or type that the parameter takes.
    UsageError
        If a shared array is given for writing.
    """
    if isinstance(given, DeviceOp):
        return given  # pyright: ignore[reportUnknownVariableType]
    if not parameter.pointer:
        return _scalar(kernel, parameter, given)
    if is_foreign(given):
        given = asarray(given, name=parameter.name)
    if not isinstance(given, DeviceArray | Partition):
        raise ArrayDTypeError(_not_an_array(kernel, parameter, given))
    array = given.array if isinstance(given, Partition) else given
    array.check()
    if parameter.dtype is not None and array.dtype != parameter.dtype:
        raise ArrayDTypeError(
            f"{kernel}() takes {parameter.ctype}* ({parameter.dtype}) as {parameter.name!r}, and array "
            f"{array.name!r} has dtype {array.dtype}: convert the host array with "
            f"astype({str(parameter.dtype)!r}) before h2d"
        )
    if array.mode == "shared" and not parameter.const:
        raise UsageError(
            f"{kernel}() may write to {parameter.name!r}, and array {array.name!r} is shared: shared "
            "arrays are for reading. Pass an array of your own, or declare the parameter const where "
            "the kernel only reads it."
        )
    return given


def _not_an_array(kernel: str, parameter: Parameter, given: Any) -> str:
    wanted = f"{kernel}() takes a device array as {parameter.name!r}"
    if isinstance(given, np.ndarray):
        return f"{wanted}, and got a NumPy array of shape {np.shape(cast(Any, given))}: copy it with agt.h2d(x) first"
    return f"{wanted}, and got {given!r} ({type(given).__name__})"


def _scalar(kernel: str, parameter: Parameter, given: Any) -> np.generic:
    wanted = f"{kernel}() takes a {parameter.ctype} as {parameter.name!r}"
    if parameter.dtype is None:
        raise UsageError(f"{wanted}, which cannot be passed from the host")
    if not isinstance(given, bool | int | float | np.generic):
        raise ArrayDTypeError(f"{wanted}, and got {type(given).__name__}")
    kind = parameter.dtype
    if kind.kind in "iu":
        if isinstance(given, float | np.floating):
            raise ArrayDTypeError(f"{wanted}, and got the float {given!r}: pass an int")
        info = np.iinfo(kind)
        if not info.min <= int(given) <= info.max:
            raise ArrayDTypeError(f"{wanted}, and {given} is outside of {info.min} to {info.max}")
    return kind.type(given)


def check_shapes(
    kernel: str,
    shapes: Mapping[str, tuple[str, ...]],
    arrays: Mapping[str, DeviceArray],
    scalars: Mapping[str, Any],
) -> None:
    """Hold arrays against the sizes that were passed with them.

    Raises
    ------
    ArrayShapeError
        If one does not fit; the message has both.
    """
    for name, symbols in shapes.items():
        array = arrays[name]
        shape = tuple(int(scalars[symbol]) for symbol in symbols)
        fits = array.size == shape[0] if len(shape) == 1 else array.shape == shape
        if not fits:
            said = ", ".join(f"{s}={int(scalars[s])}" for s in dict.fromkeys(symbols))
            raise ArrayShapeError(
                f"{kernel}() was called with {said}, so {name!r} must have shape {shape}, and array "
                f"{array.name!r} has {array.shape}"
            )
