"""The context of a submission: the stream of an operation, and the verbs that enqueue work there."""

from __future__ import annotations

import inspect
import itertools
import math
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import DeviceArray, as_dtype, as_shape, handle
from asyncgpu_tutor.arrays.host import HostArray, written_by
from asyncgpu_tutor.devices import protocol
from asyncgpu_tutor.run import current
from asyncgpu_tutor.run.current import SchedulingPolicy
from asyncgpu_tutor.traces.spans.tag import Tag

# A warning names the line of a program that led to it, so frames of code in these folders are skipped.
_SKIPPED = [f"{Path(__file__).resolve().parents[1]}{os.sep}"]
numbers = itertools.count(1)  # of runs
DECIDES_IN_A_GRAPH = (
    "the device decides here, which it can do only in a CUDA graph: capture the operation, as in "
    "graph = op.graph_on(agt.create_stream()), and run graph.launch()"
)


class Run(Tag):
    """The run that a context enqueues for: a submission, or a capture."""

    # Streams of the arms of its overlaps, in order; and of those beside what is being enqueued.
    arms: tuple[protocol.Stream, ...] = ()
    beside: frozenset[protocol.Stream] = frozenset()
    # Asked when it is over: they raise what no event tells.
    checks: tuple[Callable[[], None], ...] = ()
    # A capture has here the bodies of decisions that it is writing down, the innermost last.
    bodies: tuple[object, ...] = ()

    def __init__(
        self,
        label: str,
        stream: protocol.Stream,
        blocking: bool = False,
        spawned: bool = False,
        captures: bool = False,
    ) -> None:
        # The fields of Tag are set here, without a call of its constructor: every run makes one of these.
        self.op = next(numbers)  # its number, unique in the process
        self.label = label  # name of the operation
        self.over = self.known = False  # enqueued; and waited for by the host
        self.captures = captures
        self.stream = stream  # where it runs
        # Whether the host waits for it anyway, and nothing could run beside what is being enqueued.
        self.blocking = blocking
        self.spawned = spawned  # whether it may outlive the code that started it
        # Whether it may outlive the owners of what it borrows: it was spawned, or is captured.
        self.outlives = spawned or captures
        self.keep: list[object] = []  # what must live until it has completed
        # Those that took arrays: they count shared ones until it has completed, or somebody waits for that.
        self.operations: list[object] = []
        self.kernels: list[str] = []  # names of the kernels that it launched, in order

    def describe(self) -> str:
        """For messages."""
        where = f"stream {self.stream.number} of {self.stream.device.name}"
        return f"operation {self.label!r} (#{self.op}, {where})"

    def completed(self) -> bool:
        """Tell whether the device is done with it. Never blocks."""
        return False

    def give_way(self) -> None:
        """A later run on its stream keeps alive all that it keeps."""

    def reclaim(self) -> None:
        """Memory is short: let go of what nobody needs any more."""


class TookArrays(Protocol):
    """An operation that took its arrays when it was built, and keeps them alive."""

    _arrays: Sequence[DeviceArray]


class ExecutionContext:
    """Given to the functions of `with_context` and `and_then_with_context`.

    Its methods enqueue on its stream, return at once, and keep what they touch alive until the
    operation has completed.

    Attributes
    ----------
    stream, device : Stream, Device
        Where the operation runs.
    """

    __slots__ = ("_keep", "_policy", "_run", "_user", "_work", "device", "stream")

    def __init__(self, stream: protocol.Stream, policy: SchedulingPolicy | None, run: Run) -> None:
        self.stream = stream
        self.device: protocol.Device = stream.device
        self._policy = policy
        self._run = run
        self._keep = run.keep
        # What is remembered as the last stream of an array.
        self._user: protocol.Stream | None = stream
        self._work: protocol.Enqueuer = self.device  # what takes the work that is enqueued here

    def on(self, stream: protocol.Stream) -> ExecutionContext:
        """The same run, on another stream."""
        return ExecutionContext(stream, self._policy, self._run)

    def fork(self) -> ExecutionContext:
        """The same run, on the stream that the policy chooses next."""
        if self._policy is None:  # it runs on a given stream, so nobody has asked a policy yet
            here = self.device is current.current_device()
            self._policy = current.current_policy() if here else current.policy_for(self.device)
        home = self.device if self._policy.home else None
        return self._arm(self._policy, home)

    def _arm(self, policy: SchedulingPolicy, home: protocol.Device | None) -> ExecutionContext:
        stream, beside = current.adopt_stream(policy.next_stream(), home), self._run.beside
        if stream in beside:
            stream = policy.instead(stream, beside)
        return ExecutionContext(stream, policy, self._run)

    def elsewhere(self, device: protocol.Device) -> ExecutionContext:
        """The same run, on a stream of another device, which that device's policy chooses."""
        if self._run.captures:
            raise errors.CaptureError(
                f"{self._run.label!r} goes to {device.name} here, and a capture stays on one device: "
                f"capture a part for each, in a block of agt.using({device.name!r})"
            )
        return self._arm(current.policy_for(device).at(device), device)

    def keep(self, *things: object) -> None:
        """Keep these alive until the operation has completed."""
        self._keep.extend(things)

    def seen(self, handles: Any) -> Any:
        """Handles that another run made, as this one yields them: readable when this one is done."""
        return written_by(self._run, handles)

    def on_failed_capture(self, undo: Callable[[], None]) -> None:
        """Call `undo` if this is a capture that fails: then nothing has run, and operations are as before."""

    # ------------------------------------------------------------------ memory
    def empty(
        self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32, name: str = "array"
    ) -> DeviceArray:
        """A new array; nothing is written to it.

        Raises
        ------
        ArrayShapeError, ArrayDTypeError
            If a length is no integer or below 0, or if the elements would be Python objects.
        """
        kind, shape = as_dtype(dtype), as_shape(shape)
        memory = self._allocate(math.prod(shape) * kind.itemsize, name)
        return handle(memory, shape, kind)

    def _allocate(
        self, nbytes: int, name: str, elsewhere: protocol.Device | None = None
    ) -> protocol.DeviceMemory:
        """Allocate, here or on another device, and once more after a reclaim if memory is short."""
        work = self._work if elsewhere is None else elsewhere
        try:
            memory = work.malloc(nbytes, name, self.stream)
        except errors.OutOfMemoryError:
            self._run.reclaim()
            memory = work.malloc(nbytes, name, self.stream)
        memory.stream = self._user if elsewhere is None else None
        self._keep.append(memory)
        return memory

    def memset(self, array: DeviceArray, value: int = 0) -> None:
        """Set every byte of `array`, which isn't shared, to `value`, from -128 to 255; -1 is 255."""
        memory = self._touch(array)
        check_written(array, "memset")
        if not isinstance(value, int | np.integer) or not -128 <= value <= 255:  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise errors.UsageError(
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
        UsageError
            If `array` is shared: shared arrays are for reading.
        """
        self._touch(array)
        check_written(array, "copy_from_host")
        if not isinstance(host, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise errors.ArrayDTypeError(
                f"array {array.name!r} is copied from a NumPy array, and got {type(host).__name__}: "
                "np.asarray makes one"
            )
        check_same(array, host.shape, host.dtype, "the host array")
        self._upload(array._memory, array.nbytes, host)

    def _clear(self, memory: protocol.DeviceMemory, nbytes: int, value: int) -> None:
        """As `memset`, of new memory."""
        self._work.memset_async(memory, value, nbytes, self.stream)

    def _upload(self, memory: protocol.DeviceMemory, nbytes: int, host: npt.NDArray[Any]) -> None:
        """As `copy_from_host`, where they are known to fit."""
        source = self._contiguous(host)
        self._keep.append(source)
        if not self._run.blocking and not self._work.is_pinned(source):
            warn_pageable(memory.name, nbytes)
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
        self._touch(array)
        return self._download(array, out)

    def _download(self, array: DeviceArray, out: npt.NDArray[Any] | None) -> Any:
        """As `copy_to_host`, by what has taken the array and is kept alive itself; yields a `HostArray`."""
        memory = array._memory
        if memory.device is not self.device or array._owner is not None:
            self._touch(array, taken=True)
        elif self._user is not None:
            memory.stream = self._user
        if out is None:
            host = np.asarray(self._work.pinned(array.shape, array.dtype))
        else:
            check_out(array, out)
            host = out
            if not self._run.blocking and not self._work.is_pinned(host):
                warn_pageable(array.name, host.nbytes)
        self._keep.append(host)
        self._work.copy_to_host_async(host, memory, self.stream)
        return HostArray(host, self._run)

    def copy(self, target: DeviceArray, source: DeviceArray) -> None:
        """Enqueue a copy within the device, to a target that isn't shared."""
        to, origin = self._touch(target), self._touch(source)
        check_written(target, "copy")
        check_same(target, source.shape, source.dtype, f"array {source.name!r}")
        self._work.copy_from_device_async(to, origin, target.nbytes, self.stream)

    def copy_to(self, array: DeviceArray, device: protocol.Device) -> DeviceArray:
        """Enqueue a copy to a new array on another device, of this context's stream or to it.

        One of both devices is this context's. Where it is the target, the copy comes after all that was
        enqueued by now on the stream that used the array last.
        """
        if self._run.captures:
            raise errors.CaptureError(
                f"array {array.name!r} goes to {device.name} here, and a capture stays on one device: "
                "copy it before, and capture what follows"
            )
        origin = array.device
        if self.device is device:
            source, before = array._use(None, origin, taken=True), array._memory.stream
            if array._owner is not None and self._run.spawned:
                raise errors.BorrowedSpawnError(borrowed_message(array.name))
            if before is not None:
                self.stream.wait_event(before.record())
        elif self.device is origin:
            source = self._touch(array)
        else:
            raise errors.DeviceMismatchError(
                f"array {array.name!r} goes from {origin.name} to {device.name}, and the operation runs on "
                f"{self.device.name}: run it on one of the two, as in op.on({origin.name!r})"
            )
        away = None if self.device is device else device
        target = self._allocate(source.nbytes, array.name, away)
        self._keep += (array, source)
        if array.nbytes:
            self.device.copy_to_peer_async(target, source, array.nbytes, self.stream)
        return handle(target, array.shape, array.dtype)

    # ------------------------------------------------------------------ kernels
    def launch(
        self,
        function: protocol.KernelFunction,
        grid: protocol.Dim3,
        block: protocol.Dim3,
        args: Sequence[DeviceArray | protocol.DeviceMemory | np.generic],
        shared_mem: int = 0,
        by: TookArrays | None = None,
    ) -> None:
        """Enqueue one launch of a compiled kernel.

        Arrays among the arguments are kept alive. An operation that took its arrays passes itself as `by`,
        and their memory as arguments.
        """
        run = self._run
        if by is None:
            args = [self._touch(arg) if isinstance(arg, DeviceArray) else arg for arg in args]
        else:
            device, user = self.device, self._user
            for array in by._arrays:
                memory, owner = array._memory, array._owner
                if memory.device is not device or (
                    owner is not None and (run.outlives or owner._gone is not None)
                ):
                    self._touch(array, taken=True)
                elif user is not None:  # a later run on another stream waits for this one
                    memory.stream = user
            run.operations.append(by)
            run.keep.append(args)
        run.kernels.append(function.name)
        self._work.launch(function, grid, block, args, shared_mem, self.stream)  # pyright: ignore[reportArgumentType] - no array is left

    def decide(
        self, what: str, number: DeviceArray, bodies: Sequence[Callable[[], object]]
    ) -> None:
        """Go on with one of the bodies, as a number on the device says when it comes to that."""
        raise errors.CaptureError(DECIDES_IN_A_GRAPH)

    def _contiguous(self, host: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The host array as it can be copied."""
        return np.ascontiguousarray(host)

    def _touch(self, array: DeviceArray, taken: bool = False) -> protocol.DeviceMemory:
        """Check that the array can be used here, and keep it alive; by what has `taken` it, maybe."""
        if not isinstance(array, DeviceArray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
            raise errors.UsageError(
                f"this verb of a context takes a device array, and got {type(array).__name__}: make one with "
                "context.empty(shape, dtype). A host array comes second in copy_from_host(array, host), and "
                "copy_to_host(array) makes one itself; unpartition() makes an array of a Partition"
            )
        memory = array._use(self._user, self.device, taken)
        if array._owner is not None and self._run.spawned:
            raise errors.BorrowedSpawnError(borrowed_message(array.name))
        self._keep.append(array)
        return memory


def borrowed_message(name: str) -> str:
    """Why a borrowed array cannot be spawned, and what to do."""
    return (
        f"array {name!r} is borrowed, and a spawned operation may outlive its owner: pass "
        f"{name}.share() (or {name} itself, if it is not needed here any more), or await the operation "
        "instead of spawning it"
    )


def skip_frames_of(folder: Path) -> None:
    """Have warnings name the line that called into this folder, and none in it."""
    _SKIPPED.append(f"{folder}{os.sep}")


def warn_pageable(name: str, nbytes: int) -> None:
    """Warn that the host array behind `name` is pageable, at the caller's line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(tuple(_SKIPPED)):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"host array {name!r} ({nbytes:,} bytes) is pageable: the host is held up while its copy is "
        "staged. Make it with agt.pinned(shape, dtype), or copy it once with agt.pin(array).",
        errors.PageableCopyWarning,
        stacklevel=level,
    )


def check_out(array: DeviceArray, out: npt.NDArray[Any]) -> None:
    """Raise unless `array` can be copied to the host array `out`; see `copy_to_host`."""
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise errors.ArrayDTypeError(
            f"array {array.name!r} is copied into a NumPy array, and out is {type(out).__name__}: use "
            "agt.pinned(shape, dtype)"
        )
    check_same(array, out.shape, out.dtype, "the host array")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise errors.UsageError(
            f"array {array.name!r} can be copied to a host array that is C-contiguous and writeable, and "
            "this one is not: use agt.pinned(shape, dtype)"
        )


def check_written(array: DeviceArray, what: str) -> None:
    """Raise where `what` writes to a shared array."""
    if array.mode == "shared":
        raise errors.UsageError(
            f"{what} writes to array {array.name!r}, which is shared: shared arrays are for reading. Lend "
            "it, as in x.borrow(), or use agt.dup(x) for a copy"
        )


def check_same(array: DeviceArray, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    """Raise unless the array has this shape and dtype, which are those of `what`."""
    if shape != array.shape:
        raise errors.ArrayShapeError(
            f"array {array.name!r} has shape {array.shape}, and {what} has {shape}"
        )
    if dtype != array.dtype:
        raise errors.ArrayDTypeError(
            f"array {array.name!r} has dtype {array.dtype}, and {what} has {dtype}: give both the same, here "
            f"empty(shape, {str(dtype)!r}), or astype({str(array.dtype)!r})"
        )
