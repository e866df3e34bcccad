"""Pipelines that are built once and run again and again: what they share, and the prepared ones.

Building an operation takes Python longer than a GPU needs for small kernels, and a loop that runs the same
pipeline a thousand times would pay for it each time. So a pipeline can be captured once (`run.capture`):
its functions run, its arrays are allocated, its arguments are packed. A run is then a list of calls into
the driver, or the launch of one graph.

Why isn't the result an operation that simply runs faster? Because addresses are packed into the calls, so
all runs share one set of arrays. They must follow each other, on whatever streams they are
(`run.last_use`), and what they yield is lent: the next run writes over it. So it's a thing of its own, and
`launch` makes an operation of one run. That operation is enqueued like any other, and is
recorded, awaited and kept alive by the same code.

What Python decided during the capture stays decided. New inputs are written into arrays that the calls
read, between two runs. A borrowed array has an owner outside, which may give it away, so each run asks
whether it still is there.
"""

import sys
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import Lent, in_containers
from asyncgpu_tutor.devices.protocol import Device, DeviceMemory, DeviceReplay, in_turn
from asyncgpu_tutor.ops.operation import DeviceOp, evaluate
from asyncgpu_tutor.run.capture import Capture, CaptureContext
from asyncgpu_tutor.run.context import ExecutionContext, Run
from asyncgpu_tutor.run.current import current_device
from asyncgpu_tutor.run.last_use import UsedMemory, come_after

T = TypeVar("T")


class Replayed(ABC, Generic[T]):
    """The common part of prepared pipelines and graphs: memory of their own, and runs one by one."""

    def __init__(self, label: str, device: Device) -> None:
        self.label = label
        self.device = device
        self.kernels: list[str] = []
        self._names: tuple[str, ...] = ()  # of its kernels, each once
        self._lent: Lent  # what each run yields, once it is captured
        self._output: list[Any] | None = None  # those for take_output
        self._memories: dict[DeviceMemory, None] = {}  # of the device arrays among them
        self._latest: Run | None = None  # the last one, if it was nothing else
        # Its own memory, and that of whatever else is launched in it.
        self._used: tuple[UsedMemory, ...] = (UsedMemory(),)
        self._owners: tuple[DeviceArray, ...] = ()  # of what it borrows

    if not TYPE_CHECKING:  # a checker says by itself that it is no operation

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(DeviceOp, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(
                f"{self!r} has no {name!r}, because it is not an operation: launch() makes one, so write "
                f".launch().{name}(...)"
            )

        def __await__(self) -> NoReturn:
            raise errors.NotAnOperationError(
                f"{self!r} cannot be awaited, because it is not an operation: launch() makes one, so "
                "await that"
            )

    def launch(self) -> DeviceOp[T]:
        """An operation that runs it once more.

        It yields what the captured operation yields. Arrays are lent, on the device and on the host: the next
        run writes to them again. Runs follow each other, on whatever streams they are, and so do those of
        what this launch is captured in. Of two threads each has to finish before the other launches it, if it
        goes on with those arrays.

        Raises
        ------
        UseAfterMoveError
            When it runs, if an array that was borrowed for the capture has been given away since.
        """
        launch: _PreparedLaunch[T] = _PreparedLaunch()
        launch._built(self.label, sys._getframe(1))
        launch._what = self
        return launch

    def take_output(self) -> T:
        """The captured operation's result as handles, for good; once.

        Device arrays hold what the last run has written. What is on the host is delivered by `launch`.

        Raises
        ------
        CaptureError
            If it was taken before.
        """
        if self._output is None:
            raise errors.CaptureError(
                f"{self.label!r} is not captured yet: take its output after its scope has ended"
            )
        if not self._output:
            raise errors.CaptureError(
                f"the output of {self.label!r} was taken already, and there is only one: keep it, or use "
                "what launch() yields"
            )
        return cast(T, self._output.pop())

    def _enqueue(self, context: ExecutionContext, alone: bool = False) -> Lent:
        """Enqueue one run: what the operation of `launch` does, as a part of another one or `alone`."""
        if context.device is not self.device:
            raise errors.DeviceMismatchError(
                f"{self.label!r} was captured for {self.device.name}, and is launched on "
                f"{context.device.name}: capture it once for each device"
            )
        for owner in self._owners:
            if owner._gone is not None:
                raise errors.UseAfterMoveError(
                    f"{self.label!r} was captured with array {owner.name!r} borrowed, whose owner was moved "
                    f"{owner.gone} since: keep the owner for as long as it is launched, or capture it again"
                )
        run, stream = context._run, context.stream
        run.keep.append(self)
        with in_turn:
            come_after(stream, self._used, run)
            self._run(context)
            latest, self._latest = self._latest, run if alone else None
        if isinstance(run, Capture):
            run.owners.update(dict.fromkeys(self._owners))
            run.kernels += self.kernels
            return self._lent
        run.kernels += self._names
        if alone and latest is not None and latest.stream is stream:
            latest.give_way()
            # Other libraries ask an array for its stream. If the run before this one was the same, and on the
            # same stream, nobody has used the arrays elsewhere, and they needn't be told again.
            if latest.op == run.op - 1:
                return self._lent
        for memory in self._memories:
            memory.stream = stream
        return self._lent

    def _fill(self, capture: Capture, handles: T) -> None:
        """It has been captured, and yields these."""
        self.kernels = capture.kernels
        self._names = tuple(dict.fromkeys(capture.kernels))
        self._used += tuple(capture.uses)
        self._owners = tuple([owner for owner in capture.owners if not owner.moved])
        self._output = [handles]
        self._lent = Lent(in_containers(self._lend, handles))

    def _lend(self, handle: Any) -> Any:
        if isinstance(handle, Partition):
            return handle._of(self._lend(handle.array))
        if not isinstance(handle, DeviceArray):
            return handle
        lent = handle._lend()
        self._memories[lent._memory] = None
        return lent

    @abstractmethod
    def _run(self, context: ExecutionContext) -> None:
        """Make the captured calls, as a part of an operation."""


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

    def __init__(self, op: DeviceOp[T]) -> None:
        capture = Capture(op.label, current_device().default_stream, allocates=True)
        handles = capture.write_all(partial(evaluate, op))
        super().__init__(capture.label, capture.device)
        self._capture = capture  # keeps what its calls point at
        self._replay: DeviceReplay = capture.close(lambda replay: replay)
        self._fill(capture, handles)

    def __repr__(self) -> str:
        return f"<Prepared {self.label!r}, {len(self._capture.calls)} calls on {self.device.name}>"

    def _run(self, context: ExecutionContext) -> None:
        run, streams, outer = context._run, [context.stream], context._run.beside
        # An arm gets a stream that no arm beside it has, as when it was captured.
        for numbers in self._capture.apart[1:]:
            run.beside = outer | {streams[number] for number in numbers}
            streams.append(context.fork().stream)
        run.beside = outer
        run.arms += (*streams[1:],)
        if isinstance(context, CaptureContext):
            context.take_in(self._capture.calls, streams)
        else:
            self._replay.enqueue(streams)


class _PreparedLaunch(DeviceOp[T]):
    __slots__ = ("_what",)

    _what: Replayed[T]

    def _run(self, context: ExecutionContext) -> Any:
        self._used = True
        return self._what._enqueue(context, alone=True)

    def _enqueue(self, context: ExecutionContext) -> T:
        return self._what._enqueue(context).handles_of(context._run)
