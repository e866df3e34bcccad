"""The operations that make, fill and copy arrays."""

import math
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from numbers import Number
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import (
    DeviceArray,
    as_array,
    as_dtype,
    as_shape,
    borrowed_in,
    handle,
)
from asyncgpu_tutor.devices.protocol import Device, DeviceMemory
from asyncgpu_tutor.ops.leaves import Download
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.run.context import ExecutionContext, check_out, check_same, check_written
from asyncgpu_tutor.run.current import resolve

_Shape = int | tuple[int, ...]
_BLOCK = 256
# One integer type for each width: a fill copies bits, so it works for every dtype of that width.
BITS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
COUNTING = {
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}


@cache  # one text for each type: devices look compiled kernels up by it
def fill_source(name: str, ctype: str = "float") -> str:
    """CUDA C that fills an array, from a file beside this one.

    Every kernel takes the number of elements first and the array last; T is the type of an element.
    """
    text = Path(__file__).with_name(f"{name}.cu").read_text("utf-8")
    return f"#define T {ctype}\n{text}"


@lru_cache(1024, typed=True)  # the same come again and again
def _plan(
    label: str, dtype: npt.DTypeLike, *shape: int
) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Of a new array: shape, element type, and size in bytes."""
    sizes = as_shape(shape)
    kind = element(label, dtype)
    return sizes, kind, math.prod(sizes) * kind.itemsize


class Make(DeviceOp[DeviceArray]):
    """Allocates an array and enqueues what fills it."""

    __slots__ = ("_dtype", "_fill", "_name", "_nbytes", "_shape", "_what")

    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _nbytes: int
    _name: str
    # Enqueues what writes to the new memory, and what it takes for that. One class for all of them: Python is
    # quick where it meets the same class again.
    _fill: Callable[[ExecutionContext, DeviceMemory, int, Any], None]
    _what: Any

    def _yields(self) -> str:
        return f"{self._shape} {self._dtype}"

    def _enqueue(self, context: ExecutionContext) -> DeviceArray:
        nbytes = self._nbytes
        try:
            memory = context._allocate(nbytes, self._name)
        except errors.CaptureError as error:
            raise errors.CaptureError(f"{self._label}(): {error}") from None
        if nbytes:
            self._fill(context, memory, nbytes, self._what)
        return handle(memory, self._shape, self._dtype)


class Filling(NamedTuple):
    """A kernel that fills an array."""

    source: str
    name: str  # of the kernel
    scalars: tuple[Any, ...]  # what it takes between the number of elements and the array
    itemsize: int
    each: int = 1  # how many elements a thread writes


def _by_kernel(
    context: ExecutionContext, memory: DeviceMemory, nbytes: int, filling: Filling
) -> None:
    source, name, scalars, itemsize, each = filling
    function = context.device.get_function(source, name)
    size = nbytes // itemsize
    grid = (-(-size // (_BLOCK * each)), 1, 1)
    context.launch(function, grid, (_BLOCK, 1, 1), (np.uint64(size), *scalars, memory))


def _make(
    fill: Callable[[ExecutionContext, DeviceMemory, int, Any], None],
    what: Any,
    label: str,
    shape: _Shape,
    dtype: npt.DTypeLike,
    name: str | None,
    frame: FrameType,
) -> Make:
    op = Make()
    op._fill, op._what = fill, what
    sizes = shape if type(shape) is tuple else as_shape(shape)
    kind: Any = dtype
    try:
        op._shape, op._dtype, op._nbytes = _plan(label, kind, *sizes)
    except TypeError:  # it cannot be looked up, or is no such thing at all
        op._shape, op._dtype, op._nbytes = _plan.__wrapped__(label, dtype, *sizes)
    op._name = name or label
    op._label = label
    op._where, op._at = frame.f_code, frame.f_lasti
    op._used = False
    return op


class Take(DeviceOp[Any]):
    """Takes arrays, enqueues something, and yields what `act` returns: a tuple of so many, or one array."""

    __slots__ = ("_act", "_arrays", "_bodies", "_count")

    def __init__(
        self,
        label: str,
        arrays: tuple[Any, ...],
        act: Callable[[ExecutionContext, tuple[DeviceArray, ...]], Any],
        count: int | None = None,
        bodies: tuple[DeviceOp[Any], ...] = (),  # what else `act` may run
    ) -> None:
        for array in arrays:
            if not isinstance(array, DeviceArray):
                raise errors.ArrayDTypeError(
                    f"{label} takes device arrays, and got {type(array).__name__}"
                )
            array._check()  # all of them before the first is taken: a wrong call moves nothing
        where = f"into {label}()"
        try:
            self._arrays = tuple([array._take(where) for array in arrays])
        except errors.UseAfterMoveError:  # one array twice: a wrong call moves nothing
            for array in arrays:
                if array.gone == where:
                    array._undo_take()
            raise
        self._act, self._count, self._bodies = act, count, bodies
        self._built(label, sys._getframe(2))

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return self._bodies

    def _arity(self) -> int | None:
        return self._count

    def _borrowed(self) -> Iterator[str]:
        return borrowed_in(self._arrays)

    def _enqueue(self, context: ExecutionContext) -> Any:
        where = f"into an earlier run of {self._label}()"
        if len(self._arrays) > 1:  # all are good, or none is taken
            for array in self._arrays:
                array._check()
        arrays = tuple(array._take(where) for array in self._arrays)
        try:
            return self._act(context, arrays)
        except Exception as error:
            for array in self._arrays:  # it was refused, so they are good for another run
                array._undo_take()
            if isinstance(error, errors.CaptureError):
                raise errors.CaptureError(f"{self._label}(): {error}") from None
            raise


def h2d(host: npt.ArrayLike, name: str | None = None) -> DeviceOp[DeviceArray]:
    """Copy a host array to a new device array.

    The host array is read when the copy runs, so it must not change before the operation has completed.
    Only from pinned memory (`pinned`, `pin`) is the copy asynchronous; a `PageableCopyWarning` names
    the array where it is not and somebody counts on it.

    Parameters
    ----------
    host : array_like
        Any shape; bool, integer or float.
    name : str, optional
        For messages and traces.
    """
    array = as_array(host, "h2d")
    return _make(
        ExecutionContext._upload, array, "h2d", array.shape, array.dtype, name, sys._getframe(1)
    )


def d2h(array: DeviceArray, out: npt.NDArray[Any] | None = None) -> DeviceOp[npt.NDArray[Any]]:
    """Copy a device array to the host; takes the array.

    Whoever runs it gets a NumPy array in pinned memory. Pass ``x.borrow()`` or ``x.share()`` to keep x.

    Parameters
    ----------
    out : numpy.ndarray, optional
        Where to, of the array's shape and dtype; `pinned` makes one. Without it each run gets a new array.
    """
    if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        got = f"{type(array).__name__}. "
        if isinstance(array, tuple):
            got += "A launch yields all its arrays: take the one that it writes, as with launch.output(). "
        got += "Call unpartition() on a Partition."
        if isinstance(array, DeviceOp):
            got = "an operation: use op.to_host()"
        raise errors.ArrayDTypeError(f"d2h copies a DeviceArray to the host, and got {got}")
    if out is not None:
        check_out(array, out)  # a wrong call moves nothing
    array._spend("into d2h()")
    op = Download()
    op._built("d2h", sys._getframe(1))
    op._array = array
    op._share = array._share
    op._ran = False
    op._out = out
    return op


def zeros(
    shape: _Shape, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array of zeros, by a memset."""
    return _make(ExecutionContext._clear, 0, "zeros", shape, dtype, name, sys._getframe(1))


def empty(
    shape: _Shape, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array to which nothing is written, for work that writes all of it before it reads any.

    The simulated device refuses to read what nothing has written. A GPU reads what the memory held before.
    """
    return _make(_left_unwritten, None, "empty", shape, dtype, name, sys._getframe(1))


def _left_unwritten(context: ExecutionContext, memory: DeviceMemory, nbytes: int, _: None) -> None:
    """Enqueue nothing."""


def full(
    shape: _Shape, fill_value: float, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array with every element set to `fill_value`, by a kernel."""
    return _full("full", shape, fill_value, dtype, name, sys._getframe(1))


def ones(
    shape: _Shape, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array of ones, by a kernel."""
    return _full("ones", shape, 1, dtype, name, sys._getframe(1))


def _full(
    label: str,
    shape: _Shape,
    fill_value: float,
    dtype: npt.DTypeLike,
    name: str | None,
    frame: FrameType,
) -> DeviceOp[DeviceArray]:
    kind = element(label, dtype)
    bits: Any = _number(label, fill_value, kind).view(f"u{kind.itemsize}")[()]
    filling = Filling(fill_source("fill", BITS[kind.itemsize]), "fill", (bits,), kind.itemsize)
    return _make(_by_kernel, filling, label, shape, kind, name, frame)


def arange(
    stop: int,
    dtype: npt.DTypeLike = np.float32,
    *,
    start: float = 0,
    step: float = 1,
    name: str | None = None,
) -> DeviceOp[DeviceArray]:
    """A new array of `stop` elements: `start`, `start + step`, and so on, by a kernel.

    Parameters
    ----------
    stop : int
        Number of elements.
    dtype : dtype
        32- or 64-bit integer or float.
    """
    kind = as_dtype(dtype)
    if kind.name not in COUNTING or not kind.isnative:
        raise errors.ArrayDTypeError(f"arange makes {', '.join(COUNTING)}, and got {kind}")

    scalars = (_number("arange", start, kind)[()], _number("arange", step, kind)[()])
    filling = Filling(fill_source("arange", COUNTING[kind.name]), "arange", scalars, kind.itemsize)
    return _make(_by_kernel, filling, "arange", stop, kind, name, sys._getframe(1))


def randn(
    shape: _Shape, *, mean: float = 0.0, std: float = 1.0, seed: int = 0, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new float32 array of normally distributed numbers, by a kernel (Philox and Box-Muller).

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers, up to the rounding of the device's log, sin and cos.
    """
    seed = errors.whole("the seed of randn", seed, 0, 2**64 - 1)
    single = np.dtype(np.float32)
    around, spread = _number("randn", mean, single)[()], _number("randn", std, single)[()]
    scalars = (np.uint64(seed), around, spread)
    filling = Filling(fill_source("randn"), "randn", scalars, single.itemsize, each=4)
    return _make(_by_kernel, filling, "randn", shape, single, name, sys._getframe(1))


def memcpy(
    target: DeviceArray, source: DeviceArray | npt.NDArray[Any]
) -> DeviceOp[tuple[DeviceArray, Any]]:
    """Copy `source`, on the device or on the host, into `target`, on the device; yields both.

    Parameters
    ----------
    target : DeviceArray
        Of the source's shape and dtype.
    source : DeviceArray or numpy.ndarray
        On the host it is read when the copy runs, so it must not change before the operation has completed;
        only from pinned memory is the copy asynchronous. The other way round is ``d2h(x, out=host)``.

    Raises
    ------
    ArrayShapeError, ArrayDTypeError
        If they do not have the same shape and dtype.
    UsageError
        If the target is shared: shared arrays are for reading.
    """
    if isinstance(target, np.ndarray):
        raise errors.ArrayDTypeError(
            "memcpy copies into an array on the device, and the target is a NumPy array: use "
            "agt.d2h(x, out=host)"
        )

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> tuple[Any, ...]:
        if isinstance(source, np.ndarray):
            context.copy_from_host(arrays[0], source)
            return (arrays[0], source)
        context.copy(arrays[0], arrays[1])
        return arrays

    on_host = isinstance(source, np.ndarray)
    arrays = (target,) if on_host else (target, source)
    if all(isinstance(array, DeviceArray) for array in arrays):  # pyright: ignore[reportUnnecessaryIsInstance] - if not, `Take` says so
        given = "the host array" if on_host else f"array {source.name!r}"
        check_same(target, source.shape, source.dtype, given)
        check_written(target, "memcpy")
    return Take("memcpy", arrays, act, count=2)


def dup(array: DeviceArray) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
    """Copy an array to a new one, on the device; yields the array and its copy."""

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> tuple[DeviceArray, ...]:
        (source,) = arrays
        target = context.empty(source.shape, source.dtype, f"{source.name} copy")
        if source.size:
            context.copy(target, source)
        return source, target

    return Take("dup", (array,), act, count=2)


def to(array: DeviceArray, device: str | Device) -> DeviceOp[DeviceArray]:
    """Copy an array to another device; see `DeviceArray.to`."""
    resolve(device)  # one that is not there is told of here, not where it runs

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> DeviceArray:
        (source,), target = arrays, resolve(device)
        return source if source.device is target else context.copy_to(source, target)

    return Take("to", (array,), act)


def _number(label: str, given: Any, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """A number as an array of one element, without a dimension: a scalar would lose the byte order."""
    try:
        # A number of NumPy's would wrap around in silence, where one of Python's is refused.
        number: Any = (
            cast(Any, given).item() if isinstance(given, np.generic | np.ndarray) else given
        )
        if not isinstance(number, Number):
            raise TypeError("that is no number")
        made = np.array(number, kind).reshape(())
        if kind.kind in "iu" and made != number:
            raise ValueError(f"that would become {made}, so round it, or use a dtype of floats")
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.ArrayDTypeError(
            f"{label} fills an array of {kind} with one number, and got {given!r}: {error}"
        ) from None
    return made


def element(label: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    """An element type that devices have; `ArrayDTypeError` if it is none, where `label` makes the array."""
    kind = as_dtype(dtype)
    if kind.kind not in "biuf" or kind.itemsize not in BITS:
        raise errors.ArrayDTypeError(
            f"{label} makes arrays of bool, integers or floats of up to 64 bits, and got {kind}"
        )
    return kind
