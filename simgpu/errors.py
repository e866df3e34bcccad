"""The errors of a simulated GPU, as a tree.

Catch the broadest one that you can handle. Each message says what was wrong, what was given, and what
to do about it.
"""

import copy
from dataclasses import dataclass


class SimGpuError(Exception):
    """Base of everything that this package raises on purpose."""


class UsageError(SimGpuError):
    """The call is wrong. Nothing was enqueued."""


class ArrayDTypeError(UsageError, TypeError):
    """An element type, or a type of argument, that the operation does not take."""


class LaunchConfigError(UsageError, ValueError):
    """A grid, block or partition that no launch can have."""


class DeviceMismatchError(UsageError, ValueError):
    """Memory, an array, a stream or a policy that belongs to another device."""


class KernelCompileError(SimGpuError):
    """The source of a kernel is not accepted.

    Attributes
    ----------
    line, column : int or None
        Where, counted from 1, in the source as it was given.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class UnsupportedFeatureError(KernelCompileError):
    """CUDA C that a GPU takes and this one refuses, rather than run it wrongly."""


class DeviceError(SimGpuError, RuntimeError):
    """The device failed while it worked."""


class OutOfMemoryError(DeviceError):
    """An allocation did not fit."""


class CollectiveError(DeviceError):
    """Ranks of a group called different things, or one of them did not come."""


class UpstreamError(DeviceError):
    """This work did not run, because some that it waits for had failed."""


class StreamRaceError(DeviceError):
    """Two pieces of work touch one array, at least one writes, and nothing orders them."""


class HostBufferError(DeviceError):
    """A host array was changed or read while a copy or a kernel may have been using it."""


class ReferenceMismatchError(DeviceError):
    """A kernel does not do what its reference in NumPy does."""


@dataclass(frozen=True)
class FaultSite:
    """The place in a launch where something went wrong. Each field is None where it is not known."""

    kernel: str | None = None  # its name
    line: int | None = None  # of the source, from 1
    # `blockIdx` and `threadIdx` of the first offending thread, (x, y, z).
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    array: str | None = None  # name of the parameter or variable that was touched
    index: int | None = None  # the element asked for
    bound: int | None = None  # how many elements there are


class KernelFault(DeviceError):
    """A kernel did what no kernel may do.

    Attributes
    ----------
    site : FaultSite
        Where it happened.
    """

    def __init__(self, message: str, site: FaultSite | None = None) -> None:
        super().__init__(message)
        self.site = site or FaultSite()


class OutOfBoundsError(KernelFault):
    """An access outside an array."""


class MisalignedError(KernelFault):
    """An access at an address that is not a multiple of its size."""


class ReadOnlyError(KernelFault):
    """A write to constant memory."""


class UninitialisedReadError(KernelFault):
    """A read of memory that nothing has written."""


class RaceError(KernelFault):
    """Two threads touch one element without an order between them, and at least one writes."""


class BarrierError(KernelFault):
    """A barrier that not every thread of the block reaches."""


class WarpError(KernelFault):
    """A warp-level function asked a lane that does not execute it."""


class DivisionByZeroError(KernelFault):
    """An integer division by zero, which a GPU answers with an arbitrary value."""


class DeviceAssertError(KernelFault):
    """An `assert()` in a kernel failed."""


class DeadlockError(KernelFault):
    """Threads of a kernel wait for each other, or for blocks that have no place on the device."""


class RunawayKernelError(KernelFault):
    """A kernel did not end within its step budget."""


def given_up(cause: BaseException) -> DeviceError:
    """The error of work whose simulation ended with an exception and not with a result."""
    failure = DeviceError(f"the simulation was interrupted by {cause!r}")
    # A copy, because the cause itself goes on up, and collects the frames of all that it passes, with arrays.
    failure.__cause__ = copy.copy(cause).with_traceback(None)  # some packages have it copied
    for note in getattr(cause, "__notes__", ()):
        failure.add_note(note)
    return failure
