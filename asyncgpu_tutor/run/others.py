"""Awaiting work that other libraries enqueued.

An operation knows its event. A model of PyTorch's has none that we know of, but it has a stream, and CUDA
lets anybody record an event on any stream. So we record one where `reached` is called, and from there on it
is waited for like an operation: by looks at first, then by a thread. CUDA's own way to be told, a host
function on the stream, would cost less, but after a fault it never comes.
"""

from asyncgpu_tutor.devices.protocol import Event
from asyncgpu_tutor.errors import DeviceError, DeviceMismatchError
from asyncgpu_tutor.run.current import current_device, known_devices, of_this_process
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.run.submission import Submission


class OthersWork(Submission[None]):
    """A wait for what others enqueued. There is nothing to keep alive, and no result."""

    point: Event

    def deliver(self) -> None:
        """Nothing, or the error of work before it that nobody was told of."""
        if not self.point.succeeded:
            self.point.synchronize()

    def blame(self, error: BaseException) -> BaseException:
        """The error, which may be of any work before this point."""
        error.add_note(
            f"found by waiting for {self.label}: CUDA doesn't tell which work it was. With the variable "
            "CUDA_LAUNCH_BLOCKING=1 in the environment, the call that enqueues it raises it"
        )
        return error


def reached(point: object) -> DeviceFuture[None]:
    """Await what other libraries enqueued: ``await agt.reached(torch.cuda.current_stream())``.

    The event loop isn't blocked, and a fault in that work is raised at the await.

    Parameters
    ----------
    point : stream or event
        PyTorch's, CuPy's, cuda.core's or ours; or a stream's handle, an int. What it holds *now* is waited
        for, whenever that is awaited, how often, and by how many tasks.

    Raises
    ------
    DeviceMismatchError
        If it is neither, or not on a device that is in use.
    UsageError
        If the event was never recorded; `CaptureError`, if the stream is capturing.
    """
    label = f"the stream {point:#x}" if type(point) is int else repr(point)
    waits = OthersWork(label, current_device().default_stream)
    future = DeviceFuture.of(waits)
    try:
        for device in known_devices():
            found = of_this_process(device).mark(point)
            if found is not None:
                waits.event = waits.point = found
                future.stream = device.default_stream
                return future
    except DeviceError as error:  # of work before it: after a fault nothing can be recorded
        future._fail(waits.blame(error))
        return future
    raise DeviceMismatchError(
        f"agt.reached can't wait for {point!r}: give it a stream or an event of a device in use. On a GPU "
        "it may be one of PyTorch, CuPy or cuda.core; a simulated device knows only its own, from "
        "agt.create_stream() and stream.record()"
    )
