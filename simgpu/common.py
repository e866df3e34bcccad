"""The types that the parts of the device share, and what it asks of the program that calls it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from simgpu.errors import ArrayDTypeError, UsageError

HostBytes = npt.NDArray[Any]
BytePlaces = slice | npt.NDArray[np.int64]  # bytes of an array, by their numbers
LaunchDim = tuple[int, int, int]
Kind = Literal["kernel", "memset", "h2d", "d2h", "d2d", "peer", "call", "wait", "work"]


def _reading(name: str) -> Any:
    """A method of NumPy's arrays that reads all of them."""

    def read_all(self: Pinned, *args: Any, **more: Any) -> Any:
        return getattr(self.plain(), name)(*args, **more)

    return read_all


# Functions of NumPy that ask for no element.
_FORMS = {
    np.shape, np.ndim, np.size, np.empty_like, np.zeros_like, np.ones_like, np.full_like,
    np.may_share_memory, np.shares_memory, np.result_type, np.can_cast, np.common_type,
    np.iscomplexobj, np.isrealobj,
}  # fmt: skip


def _pinned_in(given: Iterable[Any]) -> Iterator[Pinned]:
    for one in given:
        if isinstance(one, Pinned):
            yield one
        elif isinstance(one, list | tuple):
            yield from _pinned_in(cast("list[Any]", one))


class Pinned(np.ndarray[Any, Any]):
    """A NumPy array, or a view of one, that calls `look` before it is read.

    NumPy lets us see its functions, arithmetic, indices, and the methods below. Whatever goes by the address
    of the bytes (``np.asarray(x)``, a memoryview, another library) is not seen.
    """

    look: Any

    def __array_finalize__(self, obj: object) -> None:
        self.look = getattr(obj, "look", None)

    def plain(self) -> Any:
        """The same bytes as a plain array, about to be read."""
        found = self.view(np.ndarray)
        if self.look is not None:
            self.look(found)
        return found

    def __array_ufunc__(
        self, ufunc: Any, method: str, *args: Any, out: Any = (), **more: Any
    ) -> Any:
        if out:
            more["out"] = tuple(x.view(np.ndarray) if isinstance(x, Pinned) else x for x in out)
        more |= {key: x.plain() for key, x in more.items() if isinstance(x, Pinned)}  # `where`
        read = [x.plain() if isinstance(x, Pinned) else x for x in args]
        got = getattr(ufunc, method)(*read, **more)
        return out[0] if len(out) == 1 else got  # so that += leaves it what it is

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        got: Any = super().__array_function__(func, types, args, kwargs)
        if func not in _FORMS and got is not NotImplemented:
            made = cast("list[Any]", got if isinstance(got, list | tuple) else [got])
            views: list[HostBytes] = [one for one in made if isinstance(one, np.ndarray)]
            # What returns nothing writes to its first argument, as np.copyto does.
            for array in _pinned_in([*args[got is None :], *kwargs.values()]):
                if not any(np.may_share_memory(array, view) for view in views):
                    array.plain()
        return cast(Any, got)

    def __getitem__(self, index: Any) -> Any:
        found: Any = super().__getitem__(index)
        if self.look is not None and np.isscalar(found):
            one = cast(Any, index if isinstance(index, tuple) else (index,))
            self.look(self.view(np.ndarray)[(*one, ...)])
        elif self.look is not None and not np.may_share_memory(found, self):  # a copy of some
            chosen = np.zeros(self.shape, np.bool_)
            chosen[index] = True
            self.look(self.view(np.ndarray), chosen)
        return found

    __repr__, __str__, __reduce_ex__ = map(_reading, ("__repr__", "__str__", "__reduce_ex__"))
    __copy__, __deepcopy__, copy = map(_reading, ("__copy__", "__deepcopy__", "copy"))
    __float__, __int__, __bool__ = map(_reading, ("__float__", "__int__", "__bool__"))
    tolist, tobytes, tofile, item = map(_reading, ("tolist", "tobytes", "tofile", "item"))
    astype, argmax, argmin, dot = map(_reading, ("astype", "argmax", "argmin", "dot"))
    flatten, take, repeat, nonzero = map(_reading, ("flatten", "take", "repeat", "nonzero"))
    sort, argsort, searchsorted = map(_reading, ("sort", "argsort", "searchsorted"))


def as_element_type(given: npt.DTypeLike, what: str) -> np.dtype[Any]:
    """The type of an array's elements; `what` it is, for the error."""
    try:
        dtype = np.dtype(given)
    except (TypeError, ValueError) as error:
        raise ArrayDTypeError(f"{what} of {given!r} is not possible: {error}") from None
    if dtype.hasobject:
        raise ArrayDTypeError(f"{what} of {dtype} holds Python's objects, which no GPU has")
    return dtype


def as_lengths(shape: Any, what: str) -> tuple[int, ...]:
    """The lengths of an array, given as one or several whole numbers; `what` it is, for the error."""
    given: Any = cast(Any, shape) if isinstance(shape, Iterable) else (shape,)
    try:
        lengths = tuple(map(index, given))
    except TypeError:
        lengths = (-1,)
    if min(lengths, default=0) < 0:
        raise UsageError(
            f"{what} of {shape!r} is not possible: a length is a whole number, none below 0"
        )
    return lengths


class Caller:
    """The program that makes the calls, as far as a device has to know it.

    A program may make its calls in groups, each with a number and a name. An error skips the rest of its own
    group; outside of groups, it skips what its stream holds. A program that has groups inherits from this.
    """

    def group(self) -> tuple[int | None, str]:
        """Number and name of the group that the calls of this moment belong to; None where there is none."""
        return None, ""

    def race_advice(self, alike: bool) -> str:
        """What to do about two pieces of work that race; `alike` if they belong to one group."""
        return (
            "Put both into one chain, let one wait for the other's event (stream.wait_event()), or wait on "
            "the host in between."
        )

    def before_wait(self, what: str) -> None:
        """Raise an error of the program's own if the host, about to wait in `what`, must not wait now."""


class Recorder(Protocol):
    """Writes down what the device does: spans, with times in us, and the spans that each had to follow."""

    def draft(
        self,
        kind: Kind,
        name: str,
        stream: int | None,
        *,
        op: int | None = None,
        label: str = "",
        call: int | None = None,
        waits_for: tuple[int, ...] = (),
        after: tuple[int, ...] = (),
        detail: Mapping[str, object] | None = None,
    ) -> Any:
        """Note that a span will come, behind all that was noted on `stream`, or behind `after`.

        What this returns is given to `finish`.
        """
        ...

    def finish(self, draft: Any, start: float, end: float, **detail: object) -> Any:
        """The times are known: write the span down. What this returns has the span's number as `id`."""
        ...

    def heads(self, stream: int) -> tuple[int, ...]:
        """The spans that the next one on `stream` has to follow."""
        ...

    def wait(self, stream: int, heads: tuple[int, ...]) -> None:
        """The next span on `stream` also follows `heads`, which an event carried over."""
        ...


class PreparedCall(Protocol):
    """A call that is prepared: the name of a method of `Device` or `Stream`, and what it takes.

    `args` are without the stream, which is a number, as events are: what `record` and `wait_event` have in
    common. `fresh` is what was allocated for these calls.
    """

    @property
    def verb(self) -> str: ...  # noqa: D102 - the class says it
    @property
    def args(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def stream(self) -> int: ...  # noqa: D102
    @property
    def fresh(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def named(self) -> str: ...  # noqa: D102
