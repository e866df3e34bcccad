"""From what a caller passes to what a kernel takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.cuda_c import Parameter, Signature
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.kernels.source import KernelSource
from asyncgpu_tutor.ops import DeviceOp, asarray, is_foreign

__all__ = ["acceptors", "shape_checks"]

KNOWN = 1024  # how many scalars each parameter remembers

Acceptor = Callable[[Any], Any]
ShapeCheck = Callable[[Sequence[Any]], None]


def acceptors(signature: Signature) -> tuple[Acceptor, ...]:
    """For each parameter a function that checks an argument, as far as it is known before the launch.

    It returns the argument in the form in which it is passed on; nothing is moved yet. It raises
    `ArrayDTypeError` where the argument is not of the kind or type that the parameter takes, and
    `UsageError` where a shared array is given for writing.
    """
    return tuple(
        _array_acceptor(signature.name, p) if p.pointer else _scalar_acceptor(signature.name, p)
        for p in signature.parameters
    )


def _array_acceptor(kernel: str, parameter: Parameter) -> Acceptor:
    dtype, writes = parameter.dtype, not parameter.const

    def accept(given: Any) -> Any:
        if type(given) is Partition:
            array = given.array
        elif type(given) is DeviceArray:
            array = given
        elif isinstance(given, DeviceOp):
            return cast(Any, given)
        elif is_foreign(given):
            array = given = asarray(given, name=parameter.name)
        else:
            raise ArrayDTypeError(_not_an_array(kernel, parameter, given))
        array.check()
        if array.dtype != dtype and dtype is not None:
            raise ArrayDTypeError(
                f"{kernel}() takes {parameter.ctype}* ({dtype}) as {parameter.name!r}, and array "
                f"{array.name!r} has dtype {array.dtype}: convert the host array with "
                f"astype({str(dtype)!r}) before h2d"
            )
        if writes and array.mode == "shared":
            raise UsageError(
                f"{kernel}() may write to {parameter.name!r}, and array {array.name!r} is shared: "
                "shared arrays are for reading. Pass an array of your own, or declare the parameter "
                "const where the kernel only reads it."
            )
        return given

    return accept


def _not_an_array(kernel: str, parameter: Parameter, given: Any) -> str:
    wanted = f"{kernel}() takes a device array as {parameter.name!r}"
    if isinstance(given, np.ndarray):
        shape = np.shape(cast(Any, given))
        return f"{wanted}, and got a NumPy array of shape {shape}: copy it with agt.h2d(x) first"
    if isinstance(given, tuple):
        return (
            f"{wanted}, and got {len(cast(Any, given))} results at once: a launch gives back all its arrays. "
            "Pick one, as in launch.last(), and unpartition() it if it is partitioned"
        )
    return f"{wanted}, and got {given!r} ({type(given).__name__})"


def _scalar_acceptor(kernel: str, parameter: Parameter) -> Acceptor:
    wanted = f"{kernel}() takes a {parameter.ctype} as {parameter.name!r}"
    if parameter.dtype is None:

        def refuse(given: Any) -> Any:
            raise UsageError(f"{wanted}, which cannot be passed from the host")

        return refuse
    make = parameter.dtype.type
    if parameter.dtype.kind not in "iu":

        def accept_any(given: Any) -> Any:
            if isinstance(given, bool | int | float | np.generic):
                return make(cast(Any, given))
            return _other(wanted, given)

        return accept_any
    lowest, highest = int(np.iinfo(parameter.dtype).min), int(np.iinfo(parameter.dtype).max)

    known: dict[int, Any] = {}  # sizes come again and again

    def accept_whole(given: Any) -> Any:
        if type(given) is int and given in known:
            return known[given]
        if isinstance(given, float | np.floating):
            raise ArrayDTypeError(f"{wanted}, and got the float {given!r}: pass an int")
        if not isinstance(given, int | np.generic):
            return _other(wanted, given)
        whole = int(cast(Any, given))
        if not lowest <= whole <= highest:
            raise ArrayDTypeError(f"{wanted}, and {whole} is outside of {lowest} to {highest}")
        if len(known) < KNOWN:
            known[whole] = make(whole)
        return make(whole)

    return accept_whole


def _other(wanted: str, given: Any) -> Any:
    if isinstance(given, DeviceOp):
        return cast(Any, given)
    raise ArrayDTypeError(f"{wanted}, and got {type(given).__name__}")


def shape_checks(signature: Signature, facts: KernelSource) -> tuple[ShapeCheck, ...]:
    """For each array whose shape is known from scalars, a function that holds the two together.

    It gets all arguments, and raises `ArrayShapeError` with both shapes.
    """
    place = {parameter.name: index for index, parameter in enumerate(signature.parameters)}
    return tuple(
        _shape_check(signature.name, name, place[name], symbols, [place[s] for s in symbols])
        for name, symbols in facts.shapes.items()
    )


def _shape_check(
    kernel: str, name: str, index: int, symbols: tuple[str, ...], sizes: list[int]
) -> ShapeCheck:
    def check(args: Sequence[Any]) -> None:
        given = args[index]
        array = given.array if type(given) is Partition else given
        if array.shape == tuple([args[size] for size in sizes]):
            return
        shape = tuple(int(args[size]) for size in sizes)
        if len(shape) != 1 or array.size != shape[0]:
            said = ", ".join(f"{s}={n}" for s, n in dict(zip(symbols, shape, strict=True)).items())
            raise ArrayShapeError(
                f"{kernel}() was called with {said}, so {name!r} must have shape {shape}, and array "
                f"{array.name!r} has {array.shape}"
            )

    return check
