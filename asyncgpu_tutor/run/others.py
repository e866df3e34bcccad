"""Awaiting work that other libraries enqueued.

An operation knows its event. A model of PyTorch's has none that we know of, but it has a stream, and CUDA
lets anybody record an event on any stream. So we record one where `reached` is called, and from there on it
is waited for like an operation: by looks at first, then by a thread. CUDA's own way to be told, a host
function on the stream, would cost less, but after a fault it never comes.
"""

from __future__ import annotations

from asyncgpu_tutor.devices.protocol import Device, Event
from asyncgpu_tutor.errors import DeviceError, DeviceMismatchError
from asyncgpu_tutor.run.current import current_device, known_devices, of_this_process
from asyncgpu_tutor.run.future import DeviceFuture, FutureState
from asyncgpu_tutor.run.submission import Submission


class OthersWork(Submission[None]):
    """A wait for what others enqueued. There is nothing to keep alive, and no result."""

    point: Event | None = None

    def deliver(self) -> None:
        """Nothing, or the error of work before it that nobody was told of."""
        if self.point is not None and not self.point.succeeded:
            self.point.synchronize()

    def blame(self, error: BaseException) -> BaseException:
        """The error, which may be of any work before this point."""
        if isinstance(error, DeviceError):
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
        A stream of PyTorch's, CuPy's, cuda.core's or ours, or its handle as an int; or an event of theirs.
        What it holds *now* is waited for, and not what comes between this call and the await.

    Returns
    -------
    DeviceFuture
        May be awaited later, more than once, and by several tasks.

    Raises
    ------
    DeviceMismatchError
        If it is neither, or not on a device that is in use.
    UsageError
        If the event was never recorded.
    CaptureError
        If the stream is capturing.

    Examples
    --------
    >>> import asyncio, asyncgpu_tutor as agt
    >>> async def main():
    ...     stream = agt.create_stream()
    ...     ones = agt.ones(4).async_on(stream)
    ...     await agt.reached(stream)
    >>> asyncio.run(main())
    """
    label = f"the stream {point:#x}" if type(point) is int else repr(point)
    device = current_device()
    try:
        device, event = _mark(point)
    except DeviceError as error:  # of work before it: after a fault nothing can be recorded
        event, failure = None, error
    else:
        failure = None
    waits = OthersWork(label, device.default_stream)
    waits.event = waits.point = event
    future = DeviceFuture.of(waits)
    if failure is not None:
        future._error, future._state = waits.blame(failure), FutureState.FAILED
    return future


def _mark(point: object) -> tuple[Device, Event]:
    devices = known_devices()
    for device in devices:
        found = of_this_process(device).mark(point)
        if found is not None:
            return device, found
    here = devices[0]
    cure = (
        f"{here.name} is simulated, and knows only streams and events of its own: agt.create_stream(), "
        "stream.record()"
        if here.simulated
        else "give it a stream or an event of PyTorch, CuPy or cuda.core on this device, or a stream's handle"
    )
    raise DeviceMismatchError(f"agt.reached can't wait for {point!r}: {cure}")
