"""Lanes of a server."""

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition
from asyncgpu_tutor.arrays.host import buffers, in_containers, own_copy
from asyncgpu_tutor.errors import ArrayDTypeError, ArrayShapeError, UsageError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op
from asyncgpu_tutor.ops.pinned import pinned
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.current import create_stream
from asyncgpu_tutor.run.future import DeviceFuture, FutureState
from asyncgpu_tutor.run.submission import Submission, enqueue

T = TypeVar("T")
Host = npt.NDArray[Any]

# A request: an array, or a function that writes one to the array that it is given.
Request = Host | Callable[[Host], object]

# A task that sleeps may wake this much too late: up to a millisecond because asyncio's loop counts whole
# ones, and up to another until a virtual machine has woken its processor (see `CupyDevice.patience_us`). What
# is left is less than a lane looks for before a thread is to watch it.
_EARLY_US = 2500.0


class PipelineSlot(Generic[T]):
    """A stream, an input in pinned memory, and the pipeline that reads it; see `Server`."""

    def __init__(
        self, pipeline: Callable[[Host], DeviceOp[T]], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._slot = slot = pinned(shape, dtype)
        slot[...] = np.zeros((), dtype)
        self._stream = stream = create_stream()
        prepared = as_op(pipeline(slot), pipeline).prepare()
        # One for all runs, of which the latest may be one that was cancelled.
        self._run: Submission[Any] = Submission(prepared.label, stream)
        self._context = ExecutionContext(stream, None, self._run)
        self._waited_for: DeviceFuture[Any] | None = None  # the latest, once somebody had to wait
        self._body: Callable[..., Any] = prepared.launch().graph_on(stream)._enqueue
        self._output: Any = buffers(prepared.take_output())  # the same arrays in each run
        in_containers(_refuse_device_arrays, self._output)
        self._began_us, self._took_us = 0.0, (0.0, 0.0)  # the latest two that were waited for
        self.busy = False  # the device may be at work on its memory, as far as anybody has seen

    def done(self) -> bool:
        """Look once; true if the latest run is over."""
        if self.busy:
            event = self._run.event
            if self._waited_for is None and (event is None or event.succeeded):
                self._run.settle()
                self.busy = False
            # A run that is over and has not succeeded has failed, and the future says how.
            elif self._waited_for is not None or (event is not None and event.done):
                self._waited_for = self._waited_for or DeviceFuture.of(self._run)
                self.busy = not self._waited_for.poll()
        return not self.busy

    async def quiet(self) -> None:
        """Wait until the device neither reads nor writes its memory.

        All runs of a server take about the same time. So a lane sleeps through most of that and looks for the
        rest, because a thread that waits for the GPU is some tenths of a millisecond late. The lane believes
        in a long time when it has seen two, since the end of one may have been seen late. And no sleep is
        longer than the run has taken already, so that a short one among long ones is seen soon.
        """
        device = self._stream.device
        took_us = min(self._took_us)
        while self.busy and (left_us := self._began_us + took_us - device.now()) > _EARLY_US:
            await device.sleep(min(left_us - _EARLY_US, max(took_us - left_us, _EARLY_US / 2)))
            if self.done():  # nobody knows for how long: they have become shorter
                self._took_us = (0.0, 0.0)
        if self.busy:
            future = self._waited_for = self._waited_for or DeviceFuture.of(self._run, patience=2.0)
            try:
                await future
            except Exception:
                if future.state is FutureState.EXECUTING:  # it cannot be waited for, and goes on
                    raise
            # Whoever asks for the result gets the error.
            self.busy = False
            self._took_us = (self._took_us[1], device.now() - self._began_us)

    def _write(self, request: Request) -> None:
        """Write a request to the input; `UsageError` if it is a function that does not."""
        slot = self._slot
        if not callable(request):
            self.check_request(request)
            slot[...] = request
            return
        written: Any = request(slot)
        # `readinto` and its kind return how many bytes they have written.
        if written is None or type(written) is bool:
            return
        if isinstance(written, int):
            if written != slot.nbytes:
                raise UsageError(
                    f"the function of a request returned {written}, and its array has {slot.nbytes} bytes: "
                    "if it wrote fewer, the rest of an earlier request is behind them. Fill all of it"
                )
            return
        if not issubclass(type(written), np.ndarray) or not np.may_share_memory(written, slot):
            if inspect.iscoroutine(written):
                written.close()
            raise UsageError(
                f"the function of a request returned {type(written).__name__}, and should have written to "
                "the array that it got, as in slot[...] = data"
            )

    def launch_request(self, request: Request) -> None:
        """Launch the pipeline for a request."""
        self._write(request)
        self._waited_for = None
        self._run.renew()
        try:
            enqueue(self._run, self._body, self._context)
        finally:
            # Where it is refused, too, until what was enqueued before has passed.
            self.busy = self._run.event is not None
        self._began_us = self._stream.device.now()

    def taken(self) -> T:
        """The result, as the caller's own: the next run writes to the lane's arrays again."""
        if self._waited_for is not None:
            self._waited_for.result()  # raises what went wrong
        output: Any = self._output
        taken: Any = (
            output.copy() if type(output) is np.ndarray else in_containers(own_copy, output)
        )
        return taken

    def check_request(self, request: Request) -> None:
        """Refuse what does not fit into an input; a function will write what does."""
        slot = self._slot
        if callable(request) or (
            type(request) is np.ndarray  # nearly every request, so this is looked at first
            and request.shape == slot.shape
            and request.dtype is slot.dtype
        ):
            return
        if not hasattr(request, "dtype"):
            raise ArrayDTypeError(
                f"a request to this server is a NumPy array, or a function that writes one, and got "
                f"{type(request).__name__}: use np.asarray(request, {str(slot.dtype)!r})"
            )
        if getattr(request, "shape", None) != slot.shape:
            raise ArrayShapeError(
                f"a request to this server has shape {slot.shape}, and this one has {np.shape(request)}"
            )
        if request.dtype != slot.dtype:
            raise ArrayDTypeError(
                f"a request to this server has dtype {slot.dtype}, and this one has {request.dtype}: convert "
                f"it with astype({str(slot.dtype)!r})"
            )


def _refuse_device_arrays(handle: Any) -> None:
    if isinstance(handle, DeviceArray | Partition):
        raise UsageError(
            f"the pipeline of a server yields {handle!r}, which the next request overwrites: end it "
            "in a copy to the host, .to_host() or agt.d2h(...)"
        )
