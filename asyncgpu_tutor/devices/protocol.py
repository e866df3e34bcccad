"""The protocol of a device, in CuPy's own verbs. `simulated.SimDevice` and `cuda.CupyDevice` keep it.

Nothing here knows operations, policies or futures. Calls named ``*_async`` return at once and take effect
in the order of their stream; errors of the work itself surface where something waits for it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.devices.cuda_source import Signature
from asyncgpu_tutor.traces.spans import SpanLog

HostBuffer = npt.NDArray[Any]
Look = Callable[[], object]
T = TypeVar("T")
Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a launch; the largest block and grid are (x, y, z).

    The defaults hold for compute capability 7.5 to 12.0: CUDA C++ Programming Guide, table "Technical
    specifications per compute capability". Shared memory is that of 9.0 and 10.0: others say what they have.
    """

    threads_per_block: int = 1024
    block: Dim3 = (1024, 1024, 64)
    grid: Dim3 = (2**31 - 1, 65535, 65535)
    shared_bytes: int = 227 * 1024  # of a block, with what has to be asked for


USUAL_LIMITS = Limits()  # what a launch may ask for on every device that is likely to be met


class Share:
    """Every shared handle to an array refers to one of these, and so does each operation that has taken one.

    So Python counts them already. A count of our own would have to be told of each handle that goes.
    """

    __slots__ = ()


class DeviceMemory:
    """One allocation on a device, and what all handles to it have in common.

    It is freed when the last reference to it goes.
    """

    __slots__ = ("device", "name", "nbytes", "ptr", "share", "stream")

    def __init__(self, device: Device, name: str, nbytes: int, ptr: int) -> None:
        self.device = device
        self.name = name  # for messages and traces
        self.nbytes = nbytes
        self.ptr = ptr  # its address on the device
        self.stream: Stream | None = None  # where it was used last, for other libraries
        self.share: Share | None = None  # once there are shared handles

    def lend(self, stream: int | None) -> None:
        """Another library gets it, and may use it on this stream, if told, after letting go of it."""


class KernelFunction(Protocol):
    """A compiled kernel."""

    @property
    def name(self) -> str:
        """Its name in the source."""
        ...


Argument = DeviceMemory | np.generic | bool | int | float | None  # None is the null pointer


class Event(Protocol):
    """A point in the work of a stream."""

    @property
    def done(self) -> bool:
        """True once the device passed it, or failed. Never blocks."""
        ...

    @property
    def succeeded(self) -> bool:
        """True if the device passed it and did not fail. Never blocks; for polling."""
        ...

    @property
    def retired(self) -> bool:
        """As `done`, asked on this package's own behalf: costs a simulated host nothing, tells it nothing."""
        ...

    @property
    def seen(self) -> bool:
        """As `done`; a simulated device says what the host knew before it asks here."""
        ...

    def synchronize(self) -> None:
        """Block the host until the device has passed it; `DeviceError` if work before it failed."""


class Stream(Protocol):
    """A queue of work that is done in order.

    Attributes
    ----------
    number : int
        Unique on its device; 0 is the default stream.
    """

    number: int

    @property
    def device(self) -> Device:
        """The device that it is on."""
        ...

    @property
    def done(self) -> bool:
        """True if it holds no unfinished work."""
        ...

    def record(self) -> Event:
        """An event behind all work enqueued so far."""
        ...

    def wait_event(self, event: Event) -> None:
        """Hold back work enqueued from now on until `event`; the host does not wait."""

    def synchronize(self) -> None:
        """Block the host until all its work is done; `DeviceError` if some of it failed."""


@dataclass(frozen=True, eq=False, slots=True)
class RecordedCall:
    """A call that enqueues, written down so that it can be made again and again."""

    # A method of `Device`, or of `Stream` the last two. "decide" is none: it takes how, the memory of a whole
    # number, and the calls of each body, on its own stream. "collective" takes a communicator and all parts.
    verb: Literal[
        "memset_async",
        "copy_from_host_async",
        "copy_to_host_async",
        "copy_from_device_async",
        "launch",
        "decide",
        "collective",
        "record",
        "wait_event",
    ]
    # What it takes besides the stream. Events are numbers: what `record` and `wait_event` have in common.
    args: tuple[Any, ...]
    stream: int  # which of the streams; on number 0 the calls begin and end
    # What was allocated for these calls, and is touched here first: what it held before is of no account.
    fresh: tuple[DeviceMemory, ...] = ()
    # The part that it was captured in, if that has a name.
    named: str = field(default="", compare=False)

    @property
    def is_work(self) -> bool:
        """True if the device does something; False if it is only told of an order."""
        return self.verb not in ("record", "wait_event")


class Graph(Protocol):
    """Calls that the driver makes all at once."""

    def launch(self, stream: Stream) -> None:
        """Enqueue all of them, behind what `stream` holds."""


class DeviceReplay(Protocol):
    """Calls that are ready to be made again."""

    def enqueue(self, streams: Sequence[Stream]) -> None:
        """Make all calls, on these streams."""

    def instantiate(self, name: str) -> Graph:
        """A CUDA graph of them. Its host arrays, arrays and functions have to outlive it."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class CollectiveCall:
    """The part of one rank in something that a group of ranks does together."""

    what: str  # the name of the operation
    rank: int
    count: int  # elements that the rank gives, or that it gets where it gives none
    dtype: np.dtype[Any]
    source: DeviceMemory | None = None  # what it gives
    target: DeviceMemory | None = None  # where to what it gets
    reduce: str = "sum"
    root: int = 0  # of a broadcast
    to: int | None = None  # the rank that it sends to
    origin: int | None = None  # the rank that it gets from
    where: str = ""  # the program's line
    serial: int = field(default_factory=itertools.count().__next__, compare=False)

    def __str__(self) -> str:
        more = {
            "all_reduce": f" ({self.reduce})",
            "reduce_scatter": f" ({self.reduce})",
            "broadcast": f" from rank {self.root}",
        }.get(self.what, "")
        if not more:
            ends = (("to", self.to), ("from", self.origin))
            more = ",".join(f" {way} rank {rank}" for way, rank in ends if rank is not None)
        return f"{self.what} of {self.count:,} {self.dtype}{more} at {self.where}"

    @property
    def ends(self) -> tuple[int, int] | None:
        """Of a send or a recv, the sender's rank and the receiver's; None where all ranks take part."""
        if self.what == "send" and self.to is not None:
            return self.rank, self.to
        if self.what == "recv" and self.origin is not None:
            return self.origin, self.rank
        return None


# Locks of whoever submits, taken in this order, since what is shared may launch something. The first is held
# while the source of a shared operation is submitted, the second from the moment in which a run is put behind
# those before it until it is enqueued itself. There is one of each for all: a run may be behind several
# others, and locks of their own would have to be taken in one order.
once_lock, in_turn = threading.RLock(), threading.RLock()


@contextmanager
def submitting_nothing() -> Generator[None]:
    """A block in which this thread holds neither lock: those that it waits for may need them to come."""
    held: list[Any] = []
    for lock in (in_turn, once_lock):
        with suppress(RuntimeError):  # it has given it up as often as it had taken it
            while True:
                lock.release()
                held.append(lock)
    try:
        yield
    finally:
        for lock in reversed(held):
            lock.acquire()


class DeviceCommunicator(Protocol):
    """Enqueues what ranks do together. Calls of one rank come in one order, and ranks agree on it."""

    @property
    def broken(self) -> str:
        """What went wrong; then whoever waits fails, and so does every later call."""
        ...

    def enqueue(self, parts: Sequence[tuple[CollectiveCall, Stream]], ranks: int) -> None:
        """Enqueue the parts of these ranks, of `ranks` that take part in all, each on its own stream."""

    def fail(self, message: str) -> None:
        """The ranks disagree: whoever waits for others gets a `CollectiveError`, and so do later calls."""

    def check(self) -> None:
        """Raise `CollectiveError` if parts that were enqueued have been aborted since."""


class Enqueuer(Protocol):
    """A taker of memory and work: a device at once, a capture for later."""

    def malloc(self, nbytes: int, name: str, stream: Stream) -> DeviceMemory:
        """Allocate; `OutOfMemoryError` if there is not enough."""
        ...

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> HostBuffer:
        """A host array in page-locked memory."""
        ...

    def is_pinned(self, array: HostBuffer) -> bool:
        """Tell whether a copy of this array can be asynchronous."""
        ...

    def memset_async(self, memory: DeviceMemory, value: int, nbytes: int, stream: Stream) -> None:
        """Set the first `nbytes` bytes to `value`."""

    def copy_from_host_async(self, memory: DeviceMemory, host: HostBuffer, stream: Stream) -> None:
        """Copy a C-contiguous host array to the start of `memory`."""

    def copy_to_host_async(self, host: HostBuffer, memory: DeviceMemory, stream: Stream) -> None:
        """Copy the start of `memory` to a C-contiguous host array."""

    def copy_from_device_async(
        self, target: DeviceMemory, source: DeviceMemory, nbytes: int, stream: Stream
    ) -> None:
        """Copy within the device."""

    def launch(
        self,
        function: KernelFunction,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Argument],
        shared_mem: int,
        stream: Stream,
    ) -> None:
        """Enqueue one launch; `shared_mem` is the dynamic shared memory in bytes."""


class Device(Enqueuer, Protocol):
    """A machine that runs kernels: simulated or real.

    Attributes
    ----------
    simulated : bool
        True if its times are modelled and not measured.
    clock : str
        The source of the times in its traces.
    limits : Limits
        Limits of a launch.
    patience_us : float
        For how long whoever awaits work looks at its event before the device is to `watch` it.
    log : SpanLog or None
        The log to which spans are written while the device is recorded.
    """

    simulated: bool
    process: int  # that opened it: no other one can use it
    clock: str
    limits: Limits
    patience_us: float
    log: SpanLog | None

    @property
    def name(self) -> str:
        """Such as ``"sim:0"`` or ``"cuda:0"``."""
        ...

    @property
    def description(self) -> str:
        """A description for people."""
        ...

    @property
    def default_stream(self) -> Stream:
        """The stream that legacy CUDA calls null."""
        ...

    def activate(self) -> int | None:
        """Make it this thread's device for the calls of a submission; what `restore` takes, if anything."""
        ...

    def restore(self, before: int) -> None:
        """Make the device this thread's that was it before."""

    def create_stream(self, urgent: bool = False) -> Stream:
        """A new stream, not ordered with any other; blocks of urgent work have a place before others do."""
        ...

    def adopt_stream(self, foreign: object) -> Stream | None:
        """Our view of another library's stream; None if it is not one that this device knows."""
        ...

    def mark(self, foreign: object) -> Event | None:
        """An event behind what a stream holds, or behind an event, whoever made it; None if it is neither."""
        ...

    def adopt_array(
        self, foreign: object
    ) -> tuple[DeviceMemory, tuple[int, ...], np.dtype[Any]] | None:
        """Memory, shape and dtype of another library's array, kept alive; None if it is not this device's."""
        ...

    def map_host(self, host: HostBuffer, name: str) -> DeviceMemory:
        """The memory of a whole pinned array as kernels see it; the array is kept alive.

        `UsageError` if it is not one.
        """
        ...

    async def until_waited_for(self, answered: int, look: Look, asked: Look) -> None:
        """Return when it is worth to look for calls of kernels again; so many were `answered` the last time.

        A simulated device lets its clock move until `asked` says that there is one. A GPU tells nobody: there
        it is a turn of the event loop, when one is due, behind a `look` at whether kernels have ended.
        """

    def note_answers(self, name: str, start: float) -> None:
        """The host has worked on calls of kernels since `start`, in us on its clock: a span of its lane."""
        ...

    def answering(self, more: int) -> None:
        """The host is at work on so many more answers: a simulated device is patient then."""

    def may_be_asked(self, asked: Look, opened: bool) -> None:
        """Begin, or stop, to refuse new kernels while `asked` says that one waits for this thread.

        A GPU loads a kernel only when others are over, so the thread would wait for them.
        """

    def signature(self, source: str, name: str) -> Signature:
        """Return a kernel's parameters; `KernelCompileError` says where the compiler can't read it."""
        ...

    def get_function(
        self,
        source: str,
        name: str,
        reference: Callable[..., Any] | None = None,
        contract: bool = False,
    ) -> KernelFunction:
        """Compile, once for each source; `KernelCompileError` says where it fails.

        With a `reference` a simulated device need not interpret large launches whole; with `contract`
        products and sums become fused multiply-adds: see `Kernel`.
        """
        ...

    def variable(self, function: KernelFunction, name: str, nbytes: int) -> DeviceMemory:
        """The memory of a `__constant__` or `__device__` variable of a kernel's file."""
        ...

    def prepare(self, calls: Sequence[RecordedCall]) -> DeviceReplay:
        """Make these calls ready; nothing is enqueued. Each stream but the first is forked and joined."""
        ...

    def copy_to_peer_async(
        self, target: DeviceMemory, source: DeviceMemory, nbytes: int, stream: Stream
    ) -> None:
        """Copy to another device's memory, or from there, on a stream of this one."""

    def synchronize(self) -> None:
        """Block the host until the device has nothing left to do; `DeviceError` if some of it failed.

        A simulated device raises each failure once: not if a wait for its own operation has done so.
        """

    def watch(self, event: Event, wake: Callable[[BaseException | None], None]) -> None:
        """Call `wake` once, after `event`, with the error of the work before it or None.

        The host thread is not blocked, and `wake` may come from any thread. Needs a running event loop.
        """

    def now(self) -> float:
        """The host's clock, in us: virtual on a simulated device."""
        ...

    def work(self, us: float, name: str) -> None:
        """Keep the host busy for `us` microseconds of its clock."""

    async def apart(self, act: Callable[[], T]) -> T:
        """Call `act`, which may have to wait for ranks on other devices; on a thread where it has to."""
        ...

    async def sleep(self, us: float) -> None:
        """Let other tasks run for `us` microseconds of the host's clock."""

    def export(self, array: Any) -> AbstractContextManager[Any]:
        """The array as CuPy's, without a copy; `DeviceMismatchError` where there is no CuPy.

        In the block the stream that used it last is CuPy's current one, which whoever gets it waits for.
        """
        ...

    def start_log(self, numbers: Iterator[int], source: str = "auto") -> None:
        """Begin to write spans into `log`, with ids from `numbers`; times from `source`, see `record`."""

    def settle_log(self) -> None:
        """Wait for the device, then write down what is missing."""

    def stop_log(self) -> None:
        """Write no more spans. What `log` was before stays with whoever holds it."""
