"""The tree of errors.

::

    AsyncGpuError
     ├─ UsageError                  the call is wrong; nothing reached a device
     │   ├─ ArrayShapeError         (also a ValueError)
     │   ├─ ArrayDTypeError         (also a TypeError)
     │   ├─ LaunchConfigError       (also a ValueError)
     │   ├─ NotAnOperationError     (also a TypeError)
     │   ├─ NotDataError            (also a TypeError)
     │   ├─ DeviceMismatchError     an array, stream or policy of another device
     │   ├─ UseAfterMoveError       the array was given away
     │   ├─ BorrowedSpawnError      a borrowed input would outlive its owner
     │   ├─ NestedSyncError         a blocking wait where work is being submitted
     │   ├─ CaptureError            what a CUDA graph or a prepared pipeline cannot hold
     │   ├─ CannotTravelError       what a recipe cannot take along to another worker
     │   └─ NotReadyError           a host result touched before its copy is done
     ├─ DeviceUnavailableError      the device asked for is not on this machine
     ├─ ServerBusyError             too many requests wait already
     ├─ ClusterError                a cluster cannot be reached or used
     │   └─ WorkerLostError         a worker is gone, and with it what was on its GPU
     ├─ KernelCompileError          the source is not CUDA C; has line and column
     │   └─ UnsupportedFeatureError CUDA C that the simulated device does not run
     ├─ CallRefusedError            a handler tells a kernel a number instead of an answer
     └─ DeviceError                 a device failed while it worked
         ├─ OutOfMemoryError
         ├─ HostcallError           a kernel gave up waiting for the host
         ├─ CollectiveError         ranks of a group disagree, or one of them did not come
         ├─ UpstreamError           an operation that this one waited for had failed
         ├─ StreamRaceError         two operations touch one array, and nothing orders them
         ├─ HostBufferError         a host array was changed or read while a copy was at it
         ├─ ReferenceMismatchError  a kernel does not do what its reference in NumPy does
         └─ KernelFault             names kernel, line, block and thread where known
             ├─ OutOfBoundsError
             ├─ MisalignedError
             ├─ ReadOnlyError
             ├─ UninitialisedReadError
             ├─ RaceError
             ├─ BarrierError
             ├─ WarpError           a lane that is not there was asked for its value
             ├─ DivisionByZeroError
             ├─ DeviceAssertError   the kernel's own assert()
             ├─ DeadlockError       threads wait for what nobody will do
             └─ RunawayKernelError  the step budget is used up, or a loop can be seen not to end

    UserWarning
     ├─ PageableCopyWarning         an asynchronous copy that will not be asynchronous
     └─ ByValueWarning              a recipe for another worker takes an array along
    RuntimeWarning
     └─ NeverRunWarning             an operation that nobody ran

Catch the broadest one that you can handle. Each message says what was wrong, what was given, and what
to do about it.
"""

import sys
from collections.abc import Callable, Iterable
from math import inf
from operator import index
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, cast

# One tree: what a simulated GPU finds is an error of simgpu, and an error of a GPU is one of the same class.
from simgpu.errors import *  # noqa: F403
from simgpu.errors import DeviceError, UsageError
from simgpu.errors import SimGpuError as AsyncGpuError

_MOST_MEMBERS = 3  # of a group, in a notebook
# Such as ("Cell", "In[3]"), by the name of its code.
_Cell = Callable[[str], tuple[str, str] | None]


def _made(kind: type[AsyncGpuError], *args: Any, **kwargs: Any) -> AsyncGpuError:
    """Make an error, and have IPython show groups that may hold it: they are of Python's own class."""
    if "IPython" in sys.modules:
        _show_groups()
    return Exception.__new__(kind, *args, **kwargs)


def _shown(error: AsyncGpuError) -> list[str]:
    """The lines that IPython shows in place of a traceback; nothing else calls this.

    IPython shows an error while it handles it. ``%tb`` comes later, when nothing is being handled.
    """
    from IPython import get_ipython  # pyright: ignore[reportPrivateImportUsage] - only IPython comes here

    shell: Any = get_ipython()  # pyright: ignore[reportUnknownVariableType, reportNoOverloadImplementation] - IPython has no types
    if sys.exc_info()[1] is None:
        return shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
    lines = _told(error, shell.compile.format_code_name)
    return [*lines, "(%tb in a cell shows the whole traceback.)"]


# In a notebook each is a few lines: the message, which has the kernel's line where there is one, and the
# reader's own. simgpu knows nothing of notebooks, so the base of all errors gets both methods from here.
AsyncGpuError.__new__ = _made  # pyright: ignore[reportAttributeAccessIssue]
AsyncGpuError._render_traceback_ = _shown  # pyright: ignore[reportAttributeAccessIssue]


def _told(error: BaseException, cell: _Cell) -> list[str]:
    """The message of an error, and the lines of the reader's own that led to it: the first and the last."""
    lines = [f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])]
    cause = error.__cause__
    if cause is not None and not isinstance(cause, AsyncGpuError):
        lines.append(f"because of {type(cause).__name__}: {cause}")
    own: list[str] = []
    for frame in extract_tb(error.__traceback__):
        name = cell(frame.filename)
        if name is not None:
            own.append(f"{' '.join(name)}, line {frame.lineno}: {frame.line}")
    return lines + list(dict.fromkeys([*own[:1], *own[-1:]]))


def _members(error: BaseException) -> list[BaseException]:
    """The errors in a group, and in the groups in it."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [member for inner in group.exceptions for member in _members(inner)]


def _show_groups() -> None:
    """Have IPython show groups with an error of ours in a few lines, unless it has another handler."""
    from IPython import get_ipython  # pyright: ignore[reportPrivateImportUsage] - it has been imported before

    shell: Any = get_ipython()  # pyright: ignore[reportUnknownVariableType, reportNoOverloadImplementation] - IPython has no types
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((BaseExceptionGroup,), _show_group)


def _show_group(
    shell: Any, kind: type[BaseException], group: BaseException, tb: Any, tb_offset: Any = None
) -> None:
    members = _members(group)
    if not any(isinstance(member, AsyncGpuError) for member in members):
        shell.showtraceback((kind, group, tb), tb_offset=tb_offset)
        return
    cell = shell.compile.format_code_name
    lines = _told(group, cell)
    for member in members[:_MOST_MEMBERS]:
        lines += _told(member, cell)
    if len(members) > _MOST_MEMBERS:
        lines.append(f"... and {len(members) - _MOST_MEMBERS} more.")
    # %tb has nothing to say of a group.
    sys.last_type, sys.last_value, sys.last_traceback = kind, group, tb
    whole = "import sys, traceback; traceback.print_exception(sys.last_value)"
    shell._showtraceback(kind, group, [*lines, f"({whole} in a cell shows the whole traceback.)"])


class ArrayShapeError(UsageError, ValueError):
    """Shapes that do not fit each other or the operation."""


class NotAnOperationError(UsageError, TypeError):
    """Something that is not a `DeviceOp` where one is needed."""


class NotDataError(UsageError, TypeError):
    """An operation was used as if it were the data that it describes."""


class UseAfterMoveError(UsageError):
    """An array handle was used after its array had been moved elsewhere."""


class BorrowedSpawnError(UsageError):
    """An operation with a borrowed input was spawned, so it could outlive the owner."""


class NestedSyncError(UsageError):
    """A blocking wait inside an `and_then` function or a capture."""


class CaptureError(UsageError):
    """An operation that cannot be captured, or that was, and is used as if it had not been."""


class CannotTravelError(UsageError, TypeError):
    """A recipe for another worker holds what cannot leave this process."""


class NotReadyError(UsageError):
    """A host result was touched before the operation that writes it had completed."""


class DeviceUnavailableError(AsyncGpuError):
    """The device that was asked for is not on this machine."""


class ServerBusyError(AsyncGpuError):
    """A server has as many requests waiting as it was told to hold."""


class ClusterError(AsyncGpuError):
    """A cluster cannot be reached, or not be used as it is."""


class WorkerLostError(ClusterError):
    """A worker is gone, and what was on its GPU with it."""


class HostcallError(DeviceError):
    """A kernel called the host, and gave up waiting for an answer."""


class CallRefusedError(AsyncGpuError):
    """Raise it in a handler of `hostcalls`, and the kernel gets this number as its error, and goes on.

    Numbers of the built-in services are C's, such as 2 for a file that is not there and 13 for one that is
    not allowed (`errno`).
    """

    def __init__(self, number: int) -> None:
        self.number = whole("the number of a refusal", number, 1, 2**31 - 1)
        super().__init__(f"the call of a kernel was refused, with number {number}")


class NeverRunWarning(RuntimeWarning):
    """An operation was built and never run; Python has the same for coroutines."""


class ByValueWarning(UserWarning):
    """A recipe that goes to another worker takes a host array along, each time that it goes."""


class PageableCopyWarning(UserWarning):
    """A copy from pageable host memory blocks the host, whatever it is called."""


def whole(what: str, given: object, least: float = -inf, most: float = inf) -> int:
    """An integer as Python's own, from `least` to `most`; `UsageError` if it is none: `what` says of what."""
    try:
        number = None if isinstance(given, bool) else index(cast(int, given))
    except TypeError:
        number = None
    bits = 0 if number is None else number.bit_length()
    told = f"one of {bits} bits" if bits > 128 else f"{given!r:.99}"
    if number is None or not least <= number <= most:
        within = f" from {least} to {most}" if most < inf else f", {least} or more" * (least > -inf)
        raise UsageError(f"{what} is an integer{within}, and got {told}")
    return number


def demand(given: object, kinds: type | tuple[type, ...], takes: str) -> None:
    """`UsageError` unless it is of one of these classes, where `takes` says who takes what."""
    if not isinstance(given, kinds):
        raise UsageError(f"{takes}, and got {given!r:.99}")


def entries_of(what: str, given: Any, kinds: type | tuple[type, ...]) -> list[Any]:
    """The entries of a list; one text is none, though it has letters for entries."""
    demand(given, () if isinstance(given, str | bytes) else Iterable, f"{what} are in a list")
    for entry in (entries := [*given]):
        demand(entry, kinds, f"{what} are in a list")
    return entries


if not TYPE_CHECKING:  # a checker knows by itself which names are defined here
    __all__ = [
        name
        for name, kind in vars().items()
        if isinstance(kind, type) and (issubclass(kind, Exception) or kind is FaultSite)  # noqa: F405
        if name != "SimGpuError"
    ]
