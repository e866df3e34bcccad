"""Host arrays that a copy is still writing."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.errors import NotReadyError

_CONTAINERS = (tuple, list, dict)
_Maker = Callable[[Any], Any]
_KNOWN = ("shape", "dtype", "nbytes", "ndim", "size")  # of a host array, whatever is in it


class Writer(Protocol):
    """An operation under way."""

    def completed(self) -> bool:
        """True once the host knows that the device is done with it."""
        ...

    def describe(self) -> str:
        """Its name, for messages."""
        ...


class HostArray(np.lib.mixins.NDArrayOperatorsMixin):
    """A handle to a host array that a device writes.

    Functions of `and_then` and `map` run when work is submitted, long before it is done, and get this in
    place of the array. Whoever awaits or syncs the operation gets the NumPy array itself.
    """

    __slots__ = ("__weakref__", "_array", "_writer")

    # These are known from the start: see `__getattr__`.
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    nbytes: int
    ndim: int
    size: int

    def __init__(self, array: npt.NDArray[Any], writer: Writer) -> None:
        self._array = array  # what is written
        self._writer = writer  # what writes it, and knows whether it has

    def __repr__(self) -> str:
        state = "ready" if self._writer.completed() else "not written yet"
        return f"<HostArray {self.shape} {self.dtype}, {state}>"

    @property
    def buffer(self) -> npt.NDArray[Any]:
        """The array, whatever it holds by now."""
        return self._array

    def numpy(self) -> npt.NDArray[Any]:
        """The array; `NotReadyError` before its operation has completed."""
        if not self._writer.completed():
            raise NotReadyError(
                f"the result of {self._writer.describe()} may not be on the host yet, and you have a handle "
                "to it: wait for its stream (`stream.synchronize()`), or sync or await the operation, and "
                "read then.\nFunctions given to and_then, map and with_context get handles, too, never data."
            )
        return self._array

    def reshape(self, *shape: Any) -> Any:
        """The array with another shape; before its operation has completed, a handle to it."""
        array = self._array.reshape(*shape)
        return array if self._writer.completed() else HostArray(array, self._writer)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A copy of it, such as a pickled one, is the array.
        return self.numpy().__reduce_ex__(protocol)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.numpy(), dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if out:
            kwargs["out"] = tuple([_plain(x) for x in out])
        named = {key: _plain(x) for key, x in kwargs.items()}  # `where` is an array, too
        result = getattr(ufunc, method)(*[_plain(x) for x in inputs], **named)
        return out[0] if len(out) == 1 else result  # so that += leaves the handle what it is

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __setitem__(self, index: Any, item: Any) -> None:
        self.numpy()[index] = item

    def __iter__(self) -> Iterator[Any]:
        return iter(self.numpy())

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __getattr__(self, name: str) -> Any:
        # Methods such as sum or tolist read the data.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._array if name in _KNOWN else self.numpy(), name)


def _plain(thing: Any) -> Any:
    return thing.numpy() if isinstance(thing, HostArray) else thing


def _buffer(thing: Any) -> Any:
    return thing.buffer if isinstance(thing, HostArray) else thing


class Lent:
    """Results of a prepared pipeline: each run yields the same handles, to arrays that it wrote again.

    A launch should cost the same, whether its result is one array or a hundred. So what differs from run to
    run is found once, at the capture: handles to host arrays, each of which asks its own run whether it is
    over, and lists and dicts, which belong to their receiver. All runs share the rest. Looking at each entry
    in each run took 0.58 us an entry (H200, 2026-11-28), and the driver's launch of a graph takes 1.5.
    """

    __slots__ = ("_anew", "_data", "_data_anew", "_handles", "early")

    def __init__(self, handles: Any) -> None:
        self._handles = handles
        self._anew = _maker(handles)
        self._data = buffers(handles)
        self._data_anew = _maker(self._data)
        # Whether it can be delivered before the run is over: receivers get no container of their own.
        self.early = self._data_anew is None

    def handles_of(self, writer: Writer) -> Any:
        """The result with handles of `writer`'s own to what it holds on the host."""
        return self._handles if self._anew is None else self._anew(writer)

    def data(self) -> Any:
        """The result with NumPy arrays in place of their handles, whatever they hold by now."""
        return self._data if self._data_anew is None else self._data_anew(None)


def _maker(part: Any) -> _Maker | None:
    """How a part of a result is made for another run, of its writer; None if all runs get the same object."""
    if type(part) is HostArray:
        return partial(HostArray, part.buffer)
    kind: Any = part.__class__
    if not issubclass(kind, _CONTAINERS):
        return None
    places: Any = list(part) if issubclass(kind, dict) else range(len(part))
    makers = [(place, maker) for place in places if (maker := _maker(part[place])) is not None]
    if not issubclass(kind, tuple):
        return partial(_filled, copy.copy, part, makers, None)
    closed: Any = getattr(part, "_make", part.__class__)  # of a named tuple, or any other
    return partial(_filled, list, part, makers, closed) if makers else None


def _filled(
    opened: Callable[[Any], Any],
    part: Any,
    makers: list[tuple[Any, _Maker]],
    closed: Callable[[Any], Any] | None,
    writer: Any,
) -> Any:
    """A container as `part` is, with the parts that these make for another run."""
    filled = opened(part)
    for place, make in makers:
        filled[place] = make(writer)
    return filled if closed is None else closed(filled)


def in_containers(function: Callable[[Any], Any], result: Any) -> Any:
    """`function` of a result, or of each entry of it, in containers of the same kind.

    Looks into tuples (named ones too), lists and dicts, and into what is derived from those two.
    """
    kind: Any = result.__class__  # not type(result), which would narrow what a checker knows
    if isinstance(result, tuple):
        entries: list[Any] = [
            in_containers(function, part) if isinstance(part, _CONTAINERS) else function(part)
            for part in cast(tuple[Any, ...], result)
        ]
        # A plain tuple is not asked for what it lacks: that takes longer than all of its entries.
        make: Any = tuple if kind is tuple else getattr(kind, "_make", tuple)
        return make(entries)
    if issubclass(kind, (list, dict)):
        filled: Any = copy.copy(result)
        for place in list(filled) if issubclass(kind, dict) else range(len(filled)):
            filled[place] = in_containers(function, filled[place])
        return filled
    return function(result)


def written_by(writer: Writer, result: Any) -> Any:
    """A result with handles of `writer`'s own to what it holds on the host."""
    return in_containers(
        lambda thing: HostArray(thing.buffer, writer) if type(thing) is HostArray else thing, result
    )


def buffers(result: Any) -> Any:
    """NumPy arrays in place of their handles, whatever they hold; see `HostArray.buffer`."""
    return in_containers(_buffer, result)


def deliver(result: Any) -> Any:
    """The result of a run that is over, as its receiver gets it: NumPy arrays in place of their handles."""
    if type(result) is HostArray:  # most often
        return result.numpy()
    if type(result) is Lent:
        return result.data()
    return in_containers(_plain, result)


def own_copy(thing: Any) -> Any:
    """A copy of a host array, for somebody to own; everything else as it is."""
    return thing.copy() if isinstance(thing, np.ndarray) else thing  # pyright: ignore[reportUnknownVariableType] - whatever is in it
