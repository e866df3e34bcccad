"""The operations that make, fill and copy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, as_shape, borrowed_in
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, CaptureError, UsageError
from asyncgpu_tutor.ops.fill import FillKernel, arange_source, fill_source
from asyncgpu_tutor.ops.leaves import Download
from asyncgpu_tutor.ops.operation import DeviceOp
from asyncgpu_tutor.ops.randn import RANDN
from asyncgpu_tutor.run import ExecutionContext

__all__ = ["arange", "d2h", "dup", "full", "h2d", "memcpy", "ones", "randn", "zeros"]

Shape = int | tuple[int, ...]
BLOCK = 256
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


class Make(DeviceOp[DeviceArray]):
    """Allocates an array and enqueues what fills it."""

    def __init__(
        self,
        label: str,
        shape: Shape,
        dtype: npt.DTypeLike,
        name: str | None,
        fill: Callable[[ExecutionContext, DeviceArray], None],
    ) -> None:
        self.given_label = label
        self.shape = as_shape(shape)
        self.dtype = _element(label, dtype)
        self.name = name or label
        self.fill = fill

    def enqueue(self, context: ExecutionContext) -> DeviceArray:
        """Enqueue the work; see `DeviceOp`."""
        try:
            array = context.empty(self.shape, self.dtype, self.name)
        except CaptureError as error:
            raise CaptureError(f"{self.given_label}(): {error}") from None
        if array.size:
            self.fill(context, array)
        return array


class Take(DeviceOp[tuple[Any, ...]]):
    """Takes arrays, enqueues something, and gives back arrays."""

    def __init__(
        self,
        label: str,
        arrays: tuple[Any, ...],
        act: Callable[[ExecutionContext, tuple[DeviceArray, ...]], tuple[Any, ...]],
    ) -> None:
        for array in arrays:
            if not isinstance(array, DeviceArray):
                raise ArrayDTypeError(
                    f"{label} takes device arrays, and got {type(array).__name__}"
                )
            array.check()  # all of them before the first is taken: a wrong call moves nothing
        self.given_label = label
        self.arrays = tuple(array.take(f"into {label}()") for array in arrays)
        self.act = act

    def arity(self) -> int:
        """See `DeviceOp`."""
        return 2

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        return borrowed_in(self.arrays)

    def enqueue(self, context: ExecutionContext) -> tuple[Any, ...]:
        """Enqueue the work; see `DeviceOp`."""
        where = f"into an earlier run of {self.given_label}()"
        arrays = tuple(array.take(where) for array in self.arrays)
        try:
            return self.act(context, arrays)
        except CaptureError as error:
            raise CaptureError(f"{self.given_label}(): {error}") from None


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
    array = np.asarray(host)

    def upload(context: ExecutionContext, target: DeviceArray) -> None:
        context.copy_from_host(target, array)

    return Make("h2d", array.shape, array.dtype, name, upload)


def d2h(array: DeviceArray, out: npt.NDArray[Any] | None = None) -> DeviceOp[npt.NDArray[Any]]:
    """Copy a device array to the host; takes the array.

    Whoever runs it gets a NumPy array in pinned memory. Pass ``x.borrow()`` or ``x.share()`` to keep x.

    Parameters
    ----------
    out : numpy.ndarray, optional
        Where to, of the array's shape and dtype; `pinned` makes one. Without it each run gets a new array.
    """
    return Download(array, out)


def zeros(
    shape: Shape, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array of zeros, by a memset."""
    return Make("zeros", shape, dtype, name, lambda context, array: context.memset(array))


def full(
    shape: Shape, fill_value: float, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array with every element set to `fill_value`, by a kernel."""
    return _full("full", shape, fill_value, dtype, name)


def ones(
    shape: Shape, dtype: npt.DTypeLike = np.float32, name: str | None = None
) -> DeviceOp[DeviceArray]:
    """A new array of ones, by a kernel."""
    return _full("ones", shape, 1, dtype, name)


def _full(
    label: str, shape: Shape, fill_value: float, dtype: npt.DTypeLike, name: str | None
) -> DeviceOp[DeviceArray]:
    kind = _element(label, dtype)
    try:
        filler: Any = np.full((), fill_value, kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArrayDTypeError(
            f"{label} fills an array of {kind} with one number, and got {fill_value!r}: {error}"
        ) from None
    bits: Any = filler.view(f"u{kind.itemsize}")[()]

    def fill(context: ExecutionContext, array: DeviceArray) -> None:
        _launch(context, fill_source(BITS[kind.itemsize]), array, array.size, (bits,))

    return Make(label, shape, kind, name, fill)


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
    kind: np.dtype[Any] = np.dtype(dtype)
    if kind.name not in COUNTING or not kind.isnative:
        raise ArrayDTypeError(f"arange makes {', '.join(COUNTING)}, and got {kind}")

    def fill(context: ExecutionContext, array: DeviceArray) -> None:
        scalars: Any = (kind.type(start), kind.type(step))
        _launch(context, arange_source(COUNTING[kind.name]), array, array.size, scalars)

    return Make("arange", as_shape(stop), kind, name, fill)


def randn(
    shape: Shape,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> DeviceOp[DeviceArray]:
    """A new float32 array of normally distributed numbers, by a kernel (Philox and Box-Muller).

    Parameters
    ----------
    seed : int
        The same seed gives the same numbers, up to the rounding of the device's log, sin and cos.
    """
    if not 0 <= seed < 2**64:
        raise UsageError(f"the seed of randn is an integer from 0 to 2**64 - 1, and got {seed!r}")
    scalars = (np.uint64(seed), np.float32(mean), np.float32(std))

    def fill(context: ExecutionContext, array: DeviceArray) -> None:
        _launch(context, RANDN, array, -(-array.size // 4), scalars)

    return Make("randn", shape, np.float32, name, fill)


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
        raise ArrayDTypeError(
            "memcpy copies into an array on the device, and the target is a NumPy array: use "
            "agt.d2h(x, out=host)"
        )

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> tuple[Any, ...]:
        if len(arrays) == 1:
            context.copy_from_host(arrays[0], cast(Any, source))
            return (arrays[0], source)
        context.copy(arrays[0], arrays[1])
        return arrays

    if (
        isinstance(target, DeviceArray)  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        and isinstance(source, DeviceArray | np.ndarray)  # pyright: ignore[reportUnnecessaryIsInstance] - the same
        and (target.shape, target.dtype) != (source.shape, source.dtype)
    ):
        wrong = ArrayDTypeError if target.shape == source.shape else ArrayShapeError
        raise wrong(
            f"memcpy needs two arrays of one shape and dtype: {target.name!r} is {target.shape} "
            f"{target.dtype}, {getattr(source, 'name', 'the host array')!r} is {source.shape} {source.dtype}"
        )
    if isinstance(target, DeviceArray) and target.mode == "shared":  # pyright: ignore[reportUnnecessaryIsInstance] - the same
        raise UsageError(
            f"memcpy writes to its target, and array {target.name!r} is shared: shared arrays are for "
            "reading. Copy into an array of your own."
        )
    arrays = (target,) if isinstance(source, np.ndarray) else (target, source)
    return cast(DeviceOp[tuple[DeviceArray, Any]], Take("memcpy", arrays, act))


def dup(array: DeviceArray) -> DeviceOp[tuple[DeviceArray, DeviceArray]]:
    """Copy an array to a new one, on the device; yields the array and its copy."""

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> tuple[DeviceArray, ...]:
        (source,) = arrays
        target = context.empty(source.shape, source.dtype, f"{source.name} copy")
        if source.size:
            context.copy(target, source)
        return source, target

    return cast(DeviceOp[tuple[DeviceArray, DeviceArray]], Take("dup", (array,), act))


def _launch(
    context: ExecutionContext,
    kernel: FillKernel,
    array: DeviceArray,
    threads: int,
    scalars: tuple[np.generic, ...],
) -> None:
    function = context.device.get_function(kernel.source, kernel.name)
    blocks = -(-threads // BLOCK)
    args = (np.uint64(array.size), *scalars, array)
    context.launch(function, (blocks, 1, 1), (BLOCK, 1, 1), args)


def _element(label: str, dtype: npt.DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind.kind not in "biuf" or kind.itemsize not in BITS:
        raise ArrayDTypeError(
            f"{label} makes arrays of bool, integers or floats of up to 64 bits, and got {kind}"
        )
    return kind
