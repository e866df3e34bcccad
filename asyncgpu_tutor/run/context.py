"""What an operation sees while it is submitted: its stream, and the verbs that enqueue work there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, as_shape
from asyncgpu_tutor.arrays.host import HostArray
from asyncgpu_tutor.devices.protocol import (
    Argument,
    Call,
    Device,
    Dim3,
    Enqueuer,
    Function,
    Memory,
    Replay,
    Stream,
)
from asyncgpu_tutor.errors import (
    ArrayDTypeError,
    ArrayShapeError,
    BorrowedSpawnError,
    OutOfMemoryError,
    UsageError,
)
from asyncgpu_tutor.run.current import (
    adopt_stream,
    current_device,
    current_policy,
    policy_for,
)
from asyncgpu_tutor.run.pageable import warn_pageable

if TYPE_CHECKING:
    from asyncgpu_tutor.run.submission import Submission
    from asyncgpu_tutor.scheduling import SchedulingPolicy

__all__ = ["ExecutionContext", "check_out"]


class ExecutionContext:
    """Given to the functions of `with_context` and `and_then_with_context`.

    Its methods enqueue on its stream, return at once, and keep what they touch alive until the
    operation has completed.

    Attributes
    ----------
    stream, device : Stream, Device
        Where the operation runs.
    submission : Submission
        The run that this belongs to.
    """

    __slots__ = ("_policy", "_user", "_work", "device", "keep_alive", "stream", "submission")

    def __init__(
        self, stream: Stream, policy: SchedulingPolicy | None, submission: Submission[Any]
    ) -> None:
        self.stream = stream
        self._user: Stream | None = stream  # of the arrays that are touched here
        self._policy = policy
        self.submission = submission
        self.device: Device = stream.device
        self._work: Enqueuer = self.device  # who takes what is enqueued here
        self.keep_alive = submission.keep.append

    @property
    def policy(self) -> SchedulingPolicy:
        """Who is asked for more streams, by `overlap`."""
        if self._policy is None:  # it runs on a given stream, so nobody has asked a policy yet
            here = self.device is current_device()
            self._policy = current_policy() if here else policy_for(self.device)
        return self._policy

    def on(self, stream: Stream) -> ExecutionContext:
        """The same submission, on another stream."""
        return ExecutionContext(stream, self._policy, self.submission)

    def fork(self) -> ExecutionContext:
        """The same submission, on the stream that the policy chooses next."""
        return self.on(adopt_stream(self.policy.next_stream(), self.device))

    def keep(self, *things: object) -> None:
        """Keep these alive until the operation has completed."""
        self.submission.keep.extend(things)

    def on_failed_capture(self, undo: Callable[[], None]) -> None:
        """Call `undo` if this is a capture that fails: then nothing has run, and operations are as before."""

    # ------------------------------------------------------------------ memory
    def empty(
        self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32, name: str = "array"
    ) -> DeviceArray:
        """A new array; nothing is written to it."""
        kind = np.dtype(dtype)
        if type(shape) is not tuple:  # the operations have looked at theirs already
            shape = as_shape(shape)
        nbytes = math.prod(shape) * kind.itemsize
        try:
            memory = self._work.malloc(nbytes, name, self.stream)
        except OutOfMemoryError:
            self.submission.reclaim()
            memory = self._work.malloc(nbytes, name, self.stream)
        array = DeviceArray(memory, shape, kind, self.device, name)
        self._touch(array)
        return array

    def memset(self, array: DeviceArray, value: int = 0) -> None:
        """Set every byte of `array` to `value`, from -128 to 255; -1 is 255."""
        memory = self._touch(array)
        if not isinstance(value, int | np.integer) or not -128 <= value <= 255:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                f"a memset writes one byte again and again, so its value is an integer from -128 to 255, and "
                f"not {value!r}: agt.full fills an array with any number"
            )
        self._work.memset_async(memory, int(value) & 0xFF, array.nbytes, self.stream)

    def copy_from_host(self, array: DeviceArray, host: npt.NDArray[Any]) -> None:
        """Enqueue a copy to the device. `host` must not change until the operation has completed.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            If the two do not have the same shape and dtype.
        """
        memory = self._touch(array)
        if not isinstance(host, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise ArrayDTypeError(
                f"array {array.name!r} is copied from a NumPy array, and got {type(host).__name__}: "
                "np.asarray makes one"
            )
        _same(array, host.shape, host.dtype, "the host array")
        source = self._contiguous(host)
        self.keep(source)
        if not self.submission.blocking and not self._work.is_pinned(source):
            warn_pageable(array.name, source.nbytes)
        self._work.copy_from_host_async(memory, source, self.stream)

    def copy_to_host(self, array: DeviceArray, out: npt.NDArray[Any] | None = None) -> HostArray:
        """Enqueue a copy to a host array, which can be read once the operation is done.

        Parameters
        ----------
        out : numpy.ndarray, optional
            Where to; by default a new array in pinned memory. To pageable memory the copy blocks the host.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            If the two do not have the same shape and dtype.
        UsageError
            If `out` is not C-contiguous, or cannot be written to.
        """
        memory = self._touch(array)
        if out is None:
            host = self._work.pinned(array.shape, array.dtype)
        else:
            check_out(array, out)
            host = out
            if not self.submission.blocking and not self._work.is_pinned(host):
                warn_pageable(array.name, host.nbytes)
        self.keep(host)
        self._work.copy_to_host_async(host, memory, self.stream)
        return HostArray(host, self.submission.completed, self.submission.describe)

    def copy(self, target: DeviceArray, source: DeviceArray) -> None:
        """Enqueue a copy within the device."""
        for array in (target, source):
            if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
                raise UsageError(
                    "context.copy copies from one device array to another, and got "
                    f"{type(array).__name__}: copy_from_host and copy_to_host are for host arrays"
                )
        to, origin = self._touch(target), self._touch(source)
        _same(target, source.shape, source.dtype, f"array {source.name!r}")
        self._work.copy_from_device_async(to, origin, target.nbytes, self.stream)

    # ------------------------------------------------------------------ kernels
    def launch(
        self,
        function: Function,
        grid: Dim3,
        block: Dim3,
        args: Sequence[DeviceArray | np.generic],
        shared_mem: int = 0,
    ) -> None:
        """Enqueue one launch of a compiled kernel."""
        passed: list[Argument] = [
            self._touch(arg) if isinstance(arg, DeviceArray) else arg for arg in args
        ]
        self.submission.kernels.append(function.name)
        self._work.launch(function, grid, block, passed, shared_mem, self.stream)

    def replay(self, replay: Replay, calls: Sequence[Call], streams: Sequence[Stream]) -> None:
        """Enqueue what was made ready before, on these streams."""
        replay.enqueue(streams)

    def _contiguous(self, host: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The host array as it can be copied."""
        return np.ascontiguousarray(host)

    def _touch(self, array: DeviceArray) -> Memory:
        """Check that the array can be used here, and keep it alive."""
        if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise UsageError(
                f"this verb of a context takes a device array first, and got {type(array).__name__}: "
                "make one with context.empty(shape, dtype); a host array comes second, and "
                "unpartition() makes an array of a Partition"
            )
        memory = array.use_on(self._user, self.device)
        if array.mode == "borrowed" and self.submission.spawned and not array.lent:
            raise BorrowedSpawnError(borrowed_message(array.name))
        self.keep_alive(array)
        return memory


def borrowed_message(name: str) -> str:
    """Why a borrowed array cannot be spawned, and what to do."""
    return (
        f"array {name!r} is borrowed, and a spawned operation may outlive its owner: pass "
        f"{name}.share() (or {name} itself, if it is not needed here any more), or await the operation "
        "instead of spawning it"
    )


def check_out(array: DeviceArray, out: npt.NDArray[Any]) -> None:
    """Raise unless `array` can be copied to the host array `out`; see `copy_to_host`."""
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise ArrayDTypeError(
            f"array {array.name!r} is copied into a NumPy array, and out is {type(out).__name__}: use "
            "agt.pinned(shape, dtype)"
        )
    _same(array, out.shape, out.dtype, "the host array")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise UsageError(
            f"array {array.name!r} can be copied to a host array that is C-contiguous and writeable, and "
            "this one is not: use agt.pinned(shape, dtype)"
        )


def _same(array: DeviceArray, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    if shape != array.shape:
        raise ArrayShapeError(
            f"array {array.name!r} has shape {array.shape}, and {what} has {shape}"
        )
    if dtype != array.dtype:
        raise ArrayDTypeError(
            f"array {array.name!r} has dtype {array.dtype}, and {what} has {dtype}: convert it with "
            f"astype({str(array.dtype)!r})"
        )
