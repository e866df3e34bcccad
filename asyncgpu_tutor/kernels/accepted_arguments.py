"""From what a caller passes to what a kernel takes."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.devices.cuda_source import Parameter
from asyncgpu_tutor.errors import ArrayDTypeError, UsageError, UseAfterMoveError
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.ops.pinned import asarray, is_foreign

Acceptor = Callable[[Any], Any]


class HasOperationError(Exception):
    """An argument is an operation, so the launch is checked when that has a result; never seen outside."""


class HasNullError(HasOperationError):
    """This argument is the null pointer, so the launch has an array less; never seen outside."""


def array_acceptor(kernel: str, parameter: Parameter) -> Acceptor:
    """A function that gives an argument the form in which it is passed on, or says what is wrong with it."""
    dtype, writes = parameter.dtype, not parameter.const

    def accept(given: Any) -> Any:
        if type(given) is Partition:
            array = given.array
        elif type(given) is DeviceArray:
            array = given
        elif given is None:
            raise HasNullError(repr(parameter.name))
        elif isinstance(given, DeviceOp):
            raise HasOperationError
        elif is_foreign(given):
            array = given = asarray(given, name=parameter.name)
        else:
            raise ArrayDTypeError(_not_an_array(kernel, parameter, given))
        array._check()
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
            f"{wanted}, and got {len(cast(Any, given))} results at once: a launch gives back all its arrays, "
            "and memcpy both. Take one, as in launch.output() or op.first()"
        )
    return f"{wanted}, and got {given!r} ({type(given).__name__})"


def scalar_acceptor(kernel: str, parameter: Parameter) -> Acceptor:
    """As `array_acceptor`, for a number."""
    article = "an" if parameter.ctype.startswith(("int", "unsigned")) else "a"
    wanted = f"{kernel}() takes {article} {parameter.ctype} as {parameter.name!r}"
    dtype = parameter.record or parameter.dtype
    if dtype is None:

        def refuse(given: Any) -> Any:
            raise UsageError(f"{wanted}, which cannot be passed from the host")

        return refuse
    if parameter.record is not None:
        convert = partial(_record, wanted, dtype)
    elif dtype.kind in "iu":
        convert = partial(_whole, wanted, np.iinfo(dtype))
    else:
        convert = partial(_sized if dtype.kind == "V" else _real, wanted, dtype)

    def accept(given: Any) -> Any:
        if isinstance(given, DeviceOp):
            raise HasOperationError
        return convert(given)

    return accept


def _record(wanted: str, record: np.dtype[Any], given: Any) -> Any:
    """A struct or a vector. NumPy would cut floats, and take text, sets and another's names by position."""
    names = getattr(getattr(given, "dtype", None), "names", None)
    try:
        foreign = names not in (None, record.names)
        if foreign or isinstance(given, str | bytes | set | frozenset | dict):
            raise TypeError
        values = tuple(given if names is None else given[()])
        for name, value in zip(record.names or (), values, strict=True):
            told = f"{wanted}, with {record[name]} as {name!r}"
            if record[name].kind in "iu":
                _whole(told, np.iinfo(record[name]), value)
            elif record[name].kind == "f":
                _real(told, record[name], value)
        made = np.array(values, record)
    except ArrayDTypeError:
        raise
    except (TypeError, ValueError, OverflowError):
        made = np.empty(0, record)
    if made.shape:
        fields = ", ".join(record.names or ())
        raise ArrayDTypeError(f"{wanted}, and got {given!r}: pass a tuple of ({fields})")
    return made[()]


def _whole(wanted: str, limits: np.iinfo[Any], given: Any) -> int:
    if isinstance(given, float | np.floating):
        raise ArrayDTypeError(f"{wanted}, and got the float {given!r}: pass an int")
    duration = isinstance(given, np.timedelta64)  # which to NumPy is a whole number
    if duration or not isinstance(given, int | np.bool_ | np.integer):
        raise _other(wanted, given)
    whole = int(cast(Any, given))
    if not limits.min <= whole <= limits.max:
        told = f"{_spelled(whole)} is outside of {limits.min} to {limits.max}"
        raise ArrayDTypeError(f"{wanted}, and {told}")
    return whole


def _real(wanted: str, dtype: np.dtype[Any], given: Any) -> Any:
    duration = isinstance(given, np.timedelta64)
    if duration or not isinstance(given, bool | int | float | np.bool_ | np.integer | np.floating):
        raise _other(wanted, given)
    try:
        return dtype.type(cast(Any, given))
    except OverflowError:  # of an int, since a float becomes infinite
        most, got = np.finfo(dtype).max, _spelled(int(cast(Any, given)))
        raise ArrayDTypeError(
            f"{wanted}, and got {got}, which is beyond all of them: the largest is {most}. For infinity, "
            "pass float('inf')"
        ) from None


def _sized(wanted: str, dtype: np.dtype[Any], given: Any) -> Any:
    """Where only the size of the number is known: a NumPy number has to have it."""
    size, kind = dtype.itemsize, cast("type[Any]", type(given))
    if issubclass(kind, np.generic) and given.nbytes == size:
        return given
    if kind is bool and size == 1:
        return np.bool_(given)
    if kind is int and size in {1, 2, 4, 8}:
        for whole in (np.dtype(f"i{size}"), np.dtype(f"u{size}")):
            if np.iinfo(whole).min <= given <= np.iinfo(whole).max:
                return whole.type(given)
    if kind is float and size in {2, 4, 8}:
        return np.dtype(f"f{size}").type(given)
    raise _other(wanted, given)


def _spelled(whole: int) -> str:
    """An integer for a message; one that would fill lines, by its size."""
    return str(whole) if abs(whole) < 10**40 else f"an integer of {whole.bit_length()} bits"


def _other(wanted: str, given: Any) -> ArrayDTypeError:
    return ArrayDTypeError(f"{wanted}, and got {type(given).__name__}")


def settle(args: Iterable[Any]) -> None:
    """Operations among the arguments have met their fate: a call that is refused says enough about them."""
    for arg in args:
        if isinstance(arg, DeviceOp):
            arg._used = True


def take_argument(args: list[Any], where: str) -> list[Any]:
    """The arguments, with all arrays taken; one handle that is given twice is taken once."""
    taken: dict[int, Any] = {}
    for arg in args:
        if type(arg) is DeviceArray:
            taken.setdefault(id(arg), arg if arg.moved else arg._take(where))
        elif type(arg) is Partition:
            taken.setdefault(id(arg), arg if arg.array.moved else arg._of(arg.array._take(where)))
    return [taken.get(id(arg), arg) for arg in args]


def forbid_rerun(arrays: Iterable[Any], kernel: str) -> None:
    """Raise `UseAfterMoveError` if an earlier run has given an array away."""
    for array in arrays:
        if array.mode == "owned":
            raise UseAfterMoveError(
                f"array {array.name!r} was moved into an earlier run of {kernel}(). Build the operation "
                "again, with what that run returned."
            )
