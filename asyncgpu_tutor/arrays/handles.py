"""Arrays on a device and their three kinds of handle: owned, shared, borrowed.

An owned handle is the only one to its array. Passing it on moves the array: the handle is dead from then
on, and says where the array went. A shared handle can be passed on any number of times. A borrowed one
is good for as long as its owner has not given the array away.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor import errors
from asyncgpu_tutor.devices.protocol import Device, DeviceMemory, Dim3, Share, Stream

if TYPE_CHECKING:
    from asyncgpu_tutor.ops.operation import DeviceOp

Mode = Literal["owned", "shared", "borrowed"]
_BY_SHARE = "by share()"  # where an owned array went that has become a shared one


class _MovesHere(threading.local):
    """One thread. In a capture, which may fail, the handles that it takes are noted in `moved`."""

    moved: list[DeviceArray] | None = None


this_thread = _MovesHere()


def as_shape(shape: int | tuple[int, ...] | list[int]) -> tuple[int, ...]:
    """A shape as a tuple of non-negative ints; `ArrayShapeError` if it is none."""
    if type(shape) is int and shape >= 0:
        return (shape,)
    entries: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, int | np.integer) or entry < 0:
            raise errors.ArrayShapeError(f"a shape is made of non-negative integers, not {shape!r}")
    return tuple(int(entry) for entry in entries)


def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """An element type; `ArrayDTypeError` if it is none, or one of Python's objects."""
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise errors.ArrayDTypeError(f"{dtype!r:.99} is no element type: {error}") from None
    if kind.hasobject or not kind.itemsize:
        are = "Python objects, and a device has none" if kind.hasobject else "of no bytes"
        raise errors.ArrayDTypeError(f"elements of dtype {kind} are {are}: say a type of numbers")
    return kind


def as_array(host: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    """A host array; `ArrayDTypeError` if it is none, where `what` copies it."""
    try:
        return np.asarray(host)
    except ValueError as error:  # such as rows of several lengths
        raise errors.ArrayDTypeError(
            f"{what} copies an array of numbers, and got {host!r:.99}: {error}"
        ) from None


class DeviceArray:
    """A handle to a C-contiguous array in device memory.

    Made by `h2d`, `zeros` and the other leaf operations, not by hand.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    mode : {"owned", "shared", "borrowed"}
    """

    __slots__ = ("__weakref__", "_gone", "_memory", "_owner", "_share", "dtype", "mode", "shape")

    _mover: ClassVar[Callable[[DeviceArray, str | Device], Any]]  # ops/__init__.py hands it down
    _memory: DeviceMemory
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    mode: Mode
    _gone: str | None  # where the array went, once it was given away
    _owner: DeviceArray | None  # whom it is borrowed from, if it can end: see `_lend`
    _share: Share | None  # by which a shared handle is counted

    def __repr__(self) -> str:
        if self._gone is not None:
            return f"<DeviceArray {self.name!r}, moved {self._gone}>"
        count = f" x{self.share_count}" if self.mode == "shared" else ""
        return (
            f"<DeviceArray {self.name!r} {self.shape} {self.dtype} on {self.device.name}, "
            f"{self.mode}{count}>"
        )

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        # A copy would be a second owner of the same memory.
        raise errors.UsageError(
            f"array {self.name!r} cannot be copied or pickled by Python: use agt.dup(x) for a copy on the "
            "device, x.share() or x.borrow() for another handle, agt.d2h(x) for data to save"
        )

    # ------------------------------------------------------------------ facts
    @property
    def name(self) -> str:
        """For messages and traces."""
        return self._memory.name

    @property
    def device(self) -> Device:
        """The device that it is on."""
        return self._memory.device

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the data in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def memory(self) -> DeviceMemory:
        """The allocation; `UseAfterMoveError` if the array was given away."""
        if self._gone is not None or self._owner is not None:
            self._check()
        return self._memory

    @property
    def share_count(self) -> int:
        """Number of shared handles to this array, those of pending operations included.

        A launch also keeps the handle that it was given: that one counts until the launch is gone, too.
        """
        if self._memory.share is None:
            return 0
        return sys.getrefcount(self._memory.share) - 2  # the memory's own, and the argument

    @property
    def moved(self) -> bool:
        """True if the array was given away."""
        return self._gone is not None

    @property
    def gone(self) -> str:
        """The place to which the array went, for messages; empty while the handle is good."""
        return self._gone or ""

    def _check(self) -> None:
        """Raise `UseAfterMoveError` unless this handle is still good."""
        if self._gone is None:
            owner = self._owner
            if owner is not None and owner._gone is not None:
                raise errors.UseAfterMoveError(
                    f"array {self.name!r} is borrowed, and its owner was moved {owner.gone}. "
                    "Borrow it again from the new owner, or pass x.share() instead."
                )
            return
        if self._gone == _BY_SHARE:
            raise errors.UseAfterMoveError(
                f"array {self.name!r} was moved by share(), which makes a shared handle of it. Keep "
                "that one, as in x = x.share(), and pass it on as often as you like."
            )
        raise errors.UseAfterMoveError(
            f"array {self.name!r} was moved {self._gone}. Use what that operation returns, or "
            "pass x.share() or x.borrow() instead of x where x is needed again."
        )

    # ------------------------------------------------------------------ handles
    def _take(self, where: str) -> DeviceArray:
        """The handle that an operation keeps; a later use of this one is told `where` it went."""
        self._spend(where)
        mode = self.mode
        return self if mode == "borrowed" else handle(self._memory, self.shape, self.dtype, mode)

    def _again(self) -> DeviceArray:
        """A good handle, of what has taken this one. A borrowed one is good as it is."""
        if self.mode == "borrowed":
            return self
        return handle(self._memory, self.shape, self.dtype, self.mode)

    def _spend(self, where: str) -> None:
        """This handle has had its use: it has to be good, and an owned one takes its array with it."""
        if self._gone is not None or self._owner is not None:
            self._check()
        if self.mode == "owned":
            self._move(where)

    def _move(self, where: str) -> None:
        self._gone = where
        if this_thread.moved is not None:
            this_thread.moved.append(self)

    def _undo_take(self) -> None:
        """Nothing became of what took it: the handle is good again."""
        self._gone = None

    def share(self) -> DeviceArray:
        """Give up ownership for a shared handle, which can be passed on many times.

        On a shared handle it is another one (`Arc::clone` in Rust). The array lives until the last of
        them is gone. Shared arrays are for reading: nothing orders two operations that write to one.
        """
        if self.mode == "borrowed":
            raise errors.UsageError(
                f"array {self.name!r} is only borrowed here, so it cannot be shared: share the owner"
            )
        self._spend(_BY_SHARE)
        return handle(self._memory, self.shape, self.dtype, "shared")

    def borrow(self) -> DeviceArray:
        """A handle that can be passed on while this one stays good. It cannot be spawned."""
        if self._gone is not None or self._owner is not None:
            self._check()
        # A loan that is lent on ends with its owner too.
        owner = self._owner if self.mode == "borrowed" else self
        return handle(self._memory, self.shape, self.dtype, "borrowed", owner)

    def _lend(self) -> DeviceArray:
        """A borrowed handle that no move can end, because whoever lends it keeps the memory alive."""
        return handle(self._memory, self.shape, self.dtype, "borrowed")

    def reshape(self, *shape: int) -> DeviceArray:
        """The same array with another shape of the same size; an owned handle is moved.

        One length may be -1, as in NumPy: it follows from the others.
        """
        given: Any = shape[0] if len(shape) == 1 else shape
        lengths: list[Any] = [*given] if isinstance(given, tuple | list) else [given]
        open_ = [k for k, n in enumerate(lengths) if isinstance(n, int | np.integer) and n == -1]
        if len(open_) == 1:
            lengths[open_[0]] = 1
            lengths[open_[0]] = self.size // max(math.prod(as_shape(tuple(lengths))), 1)
        wanted = as_shape(tuple(lengths))
        if math.prod(wanted) != self.size:
            raise errors.ArrayShapeError(
                f"array {self.name!r} of shape {self.shape} has {self.size} elements, and shape "
                f"{wanted} needs {math.prod(wanted)}"
            )
        self._spend("by reshape()")
        return handle(self._memory, wanted, self.dtype, self.mode, self._owner)

    def to(self, device: str | Device) -> DeviceOp[DeviceArray]:
        """An operation that copies it to another device of this process; takes the array.

        It runs on a stream of either device. Between GPUs that reach each other it is one copy, and on the
        device where the array is already, none. Pass ``x.borrow()`` or ``x.share()`` to keep x.

        Parameters
        ----------
        device : str or Device
            Such as ``"cuda:1"`` or ``"sim:1"``.
        """
        return type(self)._mover(self, device)

    def partition(self, *block: int | tuple[int, ...]) -> Partition:
        """Split into blocks, one for each thread block of a launch; an owned handle is moved.

        Parameters
        ----------
        block : int or tuple of int
            Shape of a block, one entry for each dimension of the array.

        Raises
        ------
        LaunchConfigError
            If it does not fit the array.
        """
        sizes: Any = block
        if len(block) == 1 and type(block[0]) is not int:
            sizes = block[0] if type(block[0]) is tuple else as_shape(block[0])
        try:
            blocks = _plan(self.shape, *sizes)
        except TypeError:  # what cannot be looked up is no size, and this says so
            blocks = _plan(self.shape, *as_shape(sizes))
        except errors.LaunchConfigError as error:
            raise errors.LaunchConfigError(f"array {self.name!r} {error}") from None
        part = Partition()
        part.array = self._take("by partition()")
        part.block_shape, part._how = blocks
        return part

    # ------------------------------------------------------------------ other libraries
    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Version 3, for CuPy, PyTorch and Numba; no copy. Absent on a simulated device."""
        if self.device.simulated:
            raise AttributeError(
                f"array {self.name!r} is on {self.device.name}, which is simulated: there is no CUDA "
                "memory behind it. Use op.to_host() to get a NumPy array."
            )
        stream = getattr(self._memory.stream, "ptr", None)
        if stream == 0:  # the interface reserves it, and calls the legacy default stream 1
            stream = 1
        self._memory.lend(None)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.memory.ptr, False),
            "version": 3,
            "strides": None,
            "stream": stream,
        }

    def __dlpack__(self, **options: Any) -> Any:
        """DLPack, through CuPy; no copy. What its receiver enqueues comes after what used it last.

        The memory isn't given out again before the receiver's stream is done with it.
        """
        with self.device.export(self) as theirs:
            self._memory.lend(options.get("stream"))
            return theirs.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's kind and number of the device."""
        with self.device.export(self) as theirs:
            return theirs.__dlpack_device__()

    def __array__(self, *_: object, **__: object) -> npt.NDArray[Any]:
        raise errors.UsageError(
            f"array {self.name!r} is in the memory of {self.device.name}, where the host cannot read "
            "it: run agt.d2h(x), or op.to_host()"
        )

    def _use(self, stream: Stream | None, device: Device, taken: bool = False) -> DeviceMemory:
        """The allocation, for work on `device`; who has `taken` the array may use it by this dead handle."""
        if self._owner is not None or (self._gone is not None and not taken):
            self._check()
        memory = self._memory
        if memory.device is not device:
            where, here = memory.device.name, device.name
            what = f"array {self.name!r} is on {where}, and the operation runs on "
            raise errors.DeviceMismatchError(
                f"{what}another device of that name: arrays, streams and policies belong to the device that "
                "was current when they were made, so make all of them on the same one"
                if where == here
                else f"{what}{here}: copy it there, as in x.to({here!r}), or run the operation where it "
                f"is, as in op.on({where!r})"
            )
        if stream is not None:
            memory.stream = stream
        return memory


class Partition:
    """An output array, split into blocks. The number of blocks is the launch grid.

    Attributes
    ----------
    array : DeviceArray
        The handle inside.
    block_shape : tuple of int
        Shape of a block, in the order of the array's dimensions.
    grid, block : tuple of int
        Number of blocks, and shape of a block, (x, y, z): x is the last dimension of the array.
    """

    __slots__ = ("_how", "array", "block_shape")

    array: DeviceArray
    block_shape: tuple[int, ...]
    _how: tuple[Dim3, Dim3]  # grid and block, as a launch takes them

    def __repr__(self) -> str:
        return f"<Partition of {self.array!r} into blocks of {self.block_shape}>"

    @property
    def grid(self) -> Dim3:
        """Number of blocks."""
        return self._how[0]

    @property
    def block(self) -> Dim3:
        """Shape of a block, as threads."""
        return self._how[1]

    def _of(self, array: DeviceArray) -> Partition:
        """Another handle to the same array, in the same blocks."""
        part = Partition()
        part.array = array
        part.block_shape, part._how = self.block_shape, self._how
        return part

    def _again(self) -> Partition:
        array = self.array._again()
        return self if array is self.array else self._of(array)

    def unpartition(self) -> DeviceArray:
        """The array again."""
        return self.array._take("by unpartition()")


def handle(
    memory: DeviceMemory,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    mode: Mode = "owned",
    owner: DeviceArray | None = None,
) -> DeviceArray:
    """A new handle."""
    array = DeviceArray()
    array._memory = memory
    array.shape = shape
    array.dtype = dtype
    array.mode = mode
    array._gone = None
    array._owner = owner
    array._share = None
    if mode == "shared":
        array._share = memory.share = memory.share or Share()
    return array


def borrowed_in(things: Iterable[Any]) -> Iterator[str]:
    """Names of the borrowed arrays among these; looks into partitions and tuples."""
    for thing in things:
        if isinstance(thing, tuple):
            yield from borrowed_in(cast(tuple[Any, ...], thing))
            continue
        array: Any = thing.array if isinstance(thing, Partition) else thing
        if isinstance(array, DeviceArray) and array._owner is not None:
            yield array.name


@lru_cache(1024, typed=True)  # the same come again and again
def _plan(shape: tuple[int, ...], *sizes: int) -> tuple[tuple[int, ...], tuple[Dim3, Dim3]]:
    """Of an array of this shape in blocks of these sizes: shape of a block; grid and block of a launch."""
    block = as_shape(sizes)
    if len(block) != len(shape) or not 1 <= len(block) <= 3 or 0 in block:
        raise errors.LaunchConfigError(
            f"of shape {shape} cannot be split into blocks of shape {block}: give 1 to 3 positive sizes, one "
            "for each dimension of the array"
        )
    grid = _dim3([-(-n // b) for n, b in zip(shape, block, strict=True)])
    return block, (grid, _dim3(block))


def _dim3(row_major: Sequence[int]) -> Dim3:
    x, y, z = (*reversed(row_major), 1, 1)[:3]
    return (x, y, z)
