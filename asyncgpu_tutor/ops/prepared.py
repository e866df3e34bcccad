"""Pipelines that are built once and run again and again: what they share, and the prepared ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import buffers, in_containers
from asyncgpu_tutor.devices.event_loop import running_loop
from asyncgpu_tutor.devices.protocol import Device, Repeat, Replay, Stream
from asyncgpu_tutor.errors import (
    AsyncGpuError,
    CaptureError,
    DeviceError,
    DeviceMismatchError,
    NotAnOperationError,
    UseAfterMoveError,
)
from asyncgpu_tutor.ops.operation import DeviceOp, choose, evaluate
from asyncgpu_tutor.ops.shared import seen_by
from asyncgpu_tutor.run import (
    Capture,
    CaptureStream,
    ExecutionContext,
    LastUse,
    Rerun,
    Submission,
    adopt,
    adopt_stream,
    current_device,
    follow,
    in_turn,
    submit,
)
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.scheduling import SchedulingPolicy
from asyncgpu_tutor.traces import nvtx as ranges
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

__all__ = ["Prepared", "Replayed", "prepare"]

MOST_BOUND = 64

T = TypeVar("T")
U = TypeVar("U")


class Replayed(ABC, Generic[T]):
    """What prepared pipelines and graphs have in common: memory of their own, and runs one by one."""

    def __init__(self, label: str, device: Device) -> None:
        self.label = label
        self.device = device
        self.kernels: list[str] = []
        self._lent: Any = None  # the handles that each run yields
        self._output: list[Any] | None = None  # those for take_output
        self._result: Any = None  # what each run delivers
        self._arrays: list[DeviceArray] = []  # those in it
        self._short = not device.simulated  # a simulated host pays for a submission
        # Of its memory; and, where others are captured in it, of theirs.
        self._uses: tuple[LastUse, ...] = (LastUse(),)
        # Where it ran last, and when that was, as counters tell.
        self._last: tuple[Stream, int, int] | None = None
        self._repeats: dict[Stream, Repeat] = {}  # its calls, by the stream that they are made on
        self._owners: tuple[DeviceArray, ...] = ()  # of what it borrows
        self._moves = -1  # how many moves there had been when they were looked at

    if not TYPE_CHECKING:  # a checker says by itself that it is no operation

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(DeviceOp, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(
                f"{self!r} has no {name!r}, as it is no operation: launch() makes one of each run, so write "
                f".launch().{name}(...)"
            )

        def __await__(self) -> NoReturn:
            raise NotAnOperationError(
                f"{self!r} cannot be awaited, as it is no operation: launch() makes one of each run, so "
                "await that"
            )

    def launch(self) -> DeviceOp[T]:
        """An operation that runs it once more.

        It yields what the captured operation yields. Arrays are lent, on the device and on the host: the
        next run writes to them again. Runs follow each other, on whatever streams they are, and so do
        those of what this launch is captured in.

        Raises
        ------
        UseAfterMoveError
            When it runs, if an array that was borrowed for the capture has been given away since.
        """
        return _Launch(self)

    def take_output(self) -> T:
        """The captured operation's result as handles, for good; once.

        Device arrays hold what the last run has written. What is on the host is delivered by `launch`.

        Raises
        ------
        CaptureError
            If it was taken before.
        """
        if self._output is None:
            raise CaptureError(
                f"{self.label!r} is not captured yet: take its output after its scope has ended"
            )
        if not self._output:
            raise CaptureError(
                f"the output of {self.label!r} was taken already, and there is only one: keep it, or use "
                "what launch() yields"
            )
        return cast(T, self._output.pop())

    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue one run: what the operation of `launch` does."""
        if context.device is not self.device:
            raise DeviceMismatchError(
                f"{self.label!r} was captured for {self.device.name}, and is launched on "
                f"{context.device.name}: capture it once for each device"
            )
        context.keep_alive(self)
        self._check_owners()
        with in_turn:
            self._follow(context.stream)
            self._run(context)
        context.submission.kernels.extend(self.kernels)
        return cast(T, in_containers(partial(_lent, context.submission), self._lent))

    # ------------------------------------------------------------------ the short way
    def unseen(self, stream: Stream) -> bool:
        """Whether a run on this stream can go straight to the driver: nobody records, no profiler looks."""
        device = stream.device
        return self._short and device is self.device and device.log is None and not ranges.enabled()

    def run_through(self, stream: Stream, launch: DeviceOp[T]) -> T:
        """Run under the name of `launch`, and block until it is done."""
        try:
            with in_turn:
                repeat = self.come_in_turn(stream)
                repeat.enqueue()
            repeat.wait()
        except DeviceError as error:
            # Nothing is recorded: after a fault that fails too, and would hide this one.
            submission = Submission[T](launch.label, stream, blocking=True, spawned=False)
            submission.kernels = self.kernels
            blamed = submission.blame(error)
            raise blamed from blamed.__cause__
        except BaseException as error:
            self.left_by(error, stream, launch.label)
            raise
        return self._result

    def start_on(self, stream: object) -> DeviceFuture[T]:
        """Run it once more, now, on this stream; what is returned can be awaited, or left alone.

        For loops that start many runs before they await the first: an operation starts when it is awaited.
        """
        forbid_nested_wait("start_on()")
        mine = adopt_stream(stream, self.device)
        if self.unseen(mine):
            return self.started_on(mine, self.label)
        run = partial(evaluate, self.launch())
        return DeviceFuture.of(submit(run, mine, None, label=self.label))

    def started_on(self, stream: Stream, label: str) -> DeviceFuture[T]:
        """A run under this name, where nobody looks; see `unseen`."""
        return DeviceFuture.of(self._started(stream, label))

    def handles_on(self, stream: Stream, label: str) -> T:
        """A run under this name, where nobody looks: what it yields, at once."""
        run = self._started(stream, label)
        return cast(T, in_containers(partial(_lent, run), self._lent))

    def _started(self, stream: Stream, label: str) -> Rerun[T]:
        self._check_owners()
        with in_turn:
            self._follow(stream)
            try:
                self._bound_to(stream).enqueue()
            except BaseException as error:
                self.left_by(error, stream, label)
                raise
            run = self._adopted_run(stream, label)
            for use in self._uses:
                use.run = run
        return run

    def left_by(self, error: BaseException, stream: Stream, label: str) -> Rerun[T] | None:
        """The run that an error among its calls has left to the device, if there is one.

        What is refused, or fails, has not begun. Ctrl-C, say, comes at any time, and the device goes on.
        """
        return None if isinstance(error, AsyncGpuError) else self._adopted_run(stream, label)

    def _adopted_run(self, stream: Stream, label: str) -> Rerun[T]:
        run: Rerun[T] = adopt(label, stream, self.kernels, self)
        run.handles = self._result
        return run

    @property
    def delivered(self) -> T:
        """What each run delivers: lent, so the next run writes to it again."""
        return cast(T, self._result)

    def adopted(self, stream: object) -> Stream:
        """Our view of a stream; that of the run before needs no looking up."""
        last = self._last
        return last[0] if last is not None and last[0] is stream else adopt_stream(stream)

    def come_in_turn(self, stream: Stream) -> Repeat:
        """Its calls on this stream: made before `in_turn` is let go, they come after what they have to."""
        # All checks take half as long as a launch. Often the run before was here, and nothing has changed.
        if self._last != (stream, LastUse.changes, DeviceArray.captured_moves):
            self._check_owners()
            self._come_after(stream)
            # A move since the owners were looked at is seen by the next run.
            self._last = (stream, LastUse.changes, self._moves)
        return self._bound_to(stream)

    @abstractmethod
    def repeat_on(self, stream: Stream) -> Repeat:
        """Runs on this stream that need no submission each, where it is `unseen`."""

    # ------------------------------------------------------------------ inside
    def _bound_to(self, stream: Stream) -> Repeat:
        repeat = self._repeats.get(stream)
        if repeat is None:
            if len(self._repeats) >= MOST_BOUND:  # a program that makes a stream for each run
                self._repeats.clear()
            repeat = self._repeats[stream] = self.repeat_on(stream)
        return repeat

    def _come_after(self, stream: Stream) -> None:
        """`_follow`, unless this stream was the last anyway."""
        for use in self._uses:
            if use.stream is not stream or use.run is not None:
                self._follow(stream)
                return

    def _keep(self, capture: Capture, handles: T) -> None:
        """The result of what was captured."""
        self._uses += tuple(capture.uses)
        self._owners = tuple([owner for owner in capture.owners if not owner.moved])
        for owner in self._owners:
            owner.note_captured()
        self._output = [handles]
        self._lent = in_containers(_to_lend, handles)
        self._result = buffers(self._lent)
        in_containers(self._note, self._lent)

    def _note(self, handle: Any) -> None:
        if isinstance(handle, DeviceArray | Partition):
            self._arrays.append(handle.array if isinstance(handle, Partition) else handle)

    def _check_owners(self) -> None:
        """As a run of the operation itself would: what is borrowed is its owner's."""
        moves = DeviceArray.captured_moves  # a dozen owners, at each launch of a graph
        if moves == self._moves:
            return
        owner = next((owner for owner in self._owners if owner.moved), None)
        if owner is not None:
            raise UseAfterMoveError(
                f"{self.label!r} was captured with array {owner.name!r} borrowed, whose owner was moved "
                f"{owner.gone} since: keep the owner for as long as it is launched, or capture it again"
            )
        self._moves = moves

    def _follow(self, stream: Stream) -> None:
        """Come after the last use, wherever that was."""
        follow(stream, self._uses)
        if isinstance(stream, CaptureStream):
            stream.capture.owners.update(dict.fromkeys(self._owners))
        else:
            for array in self._arrays:  # other libraries ask an array for its stream
                array.use_on(stream, self.device)

    @abstractmethod
    def _run(self, context: ExecutionContext) -> None:
        """Enqueue the captured work, as a part of an operation."""


class Prepared(Replayed[T]):
    """A pipeline whose decisions have been taken: what is left is to make its calls, again and again.

    Its arrays were allocated when it was prepared, its arguments are packed. Made by `DeviceOp.prepare`.
    Where it reads pinned host arrays these are its inputs: write to them before a run, and not during one.

    Attributes
    ----------
    label : str
        Name of what was prepared.
    device : Device
        Where it runs.
    kernels : list of str
        Names of its kernels, in order.
    """

    def __init__(self, capture: Capture, handles: T) -> None:
        super().__init__(capture.label, capture.device)
        self.kernels = capture.kernels
        self._capture = capture
        self._replay: Replay = capture.close()
        self._keep(capture, handles)
        self._short = self._short and capture.width == 1

    def __repr__(self) -> str:
        return f"<Prepared {self.label!r}, {len(self._capture.calls)} calls on {self.device.name}>"

    def _run(self, context: ExecutionContext) -> None:
        branches = self._capture.width - 1
        streams = [context.stream, *(context.fork().stream for _ in range(branches))]
        context.replay(self._replay, self._capture.calls, streams)

    def repeat_on(self, stream: Stream) -> Repeat:
        """See `Replayed`."""
        return self._replay.repeat(stream)


class _Launch(DeviceOp[T]):
    """One run.

    Where nobody looks on, it goes straight to the driver: a graph takes the GPU less time than a
    submission takes Python.
    """

    def __init__(self, what: Replayed[T]) -> None:
        self.what = what

    @property
    def label(self) -> str:
        """Its own name, or that of what was captured."""
        return self.given_label or self.what.label

    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work; see `DeviceOp`."""
        return self.what.enqueue(context)

    def sync_on(self, stream: object) -> T:
        """See `DeviceOp`."""
        forbid_nested_wait("sync_on()")
        return self._run_blocking(self.what.adopted(stream), None)

    def async_on(self, stream: object) -> T:
        """See `DeviceOp`."""
        mine = self.what.adopted(stream)
        if self.what.unseen(mine):
            forbid_nested_wait(f"an operation ({self.label!r})")
            return self.what.handles_on(mine, self.label)
        return super().async_on(mine)

    def _run_blocking(self, stream: Stream, policy: SchedulingPolicy | None) -> T:
        if self.what.unseen(stream):
            return self.what.run_through(stream, self)
        return super()._run_blocking(stream, policy)

    def __await__(self) -> Generator[Any, None, T]:
        stream, policy = choose(None)
        if self.what.unseen(stream):
            forbid_nested_wait(f"awaiting {self.label!r}")
            running_loop()
            return self.what.started_on(stream, self.label).__await__()
        return DeviceFuture(partial(evaluate, self), stream, policy, self.label).__await__()


def prepare(op: DeviceOp[T]) -> Prepared[T]:
    """See `DeviceOp.prepare`."""
    capture = Capture(op.label, current_device().default_stream, allocates=True)
    return Prepared(capture, capture.run(partial(evaluate, op)))


def _to_lend(handle: Any) -> Any:
    return handle.lend() if isinstance(handle, DeviceArray | Partition) else handle


def _lent(run: Submission[Any], handle: Any) -> Any:
    """A result as one run yields it."""
    if isinstance(handle, DeviceArray | Partition):
        return handle.take("by nobody: it is lent")
    return seen_by(run, handle)
