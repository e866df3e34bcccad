"""`DeviceOp`: a lazy description of GPU work, and the ways to compose and to run it."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from types import CodeType, FrameType, FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor import errors
from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, borrowed_in
from asyncgpu_tutor.devices.event_loop import loop_ways
from asyncgpu_tutor.devices.protocol import Device, Stream
from asyncgpu_tutor.run.context import ExecutionContext, Run, borrowed_message
from asyncgpu_tutor.run.current import (
    SchedulingPolicy,
    adopt_stream,
    check_policy,
    current_device,
    current_policy,
)
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.run.submission import submit, wait
from asyncgpu_tutor.traces.spans.tag import Name

if TYPE_CHECKING:
    import asyncio

    from asyncgpu_tutor.devices.trio_run import Spawned
    from asyncgpu_tutor.ops.graphs import CudaGraph
    from asyncgpu_tutor.ops.prepared import Prepared
    from asyncgpu_tutor.ops.shared import SharedOp

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Makers(NamedTuple):
    """Makers of the operations that methods of `DeviceOp` return, from modules which import this one.

    `ops/__init__.py` hands them down, once: imports in the methods would be a circle, and slow.
    """

    shared: Callable[[DeviceOp[Any], FrameType], SharedOp[Any]]
    unzip: Callable[[DeviceOp[Any], int | None, FrameType], tuple[DeviceOp[Any], ...]]
    entry: Callable[[DeviceOp[Any], int, FrameType], DeviceOp[Any]]
    download: Callable[[DeviceArray], DeviceOp[npt.NDArray[Any]]]
    prepare: Callable[[DeviceOp[Any]], Prepared[Any]]
    graph_on: Callable[[DeviceOp[Any], object], CudaGraph[Any]]
    on: Callable[[DeviceOp[Any], str | Device, FrameType], DeviceOp[Any]]


class DeviceOp(Generic[T]):
    """A lazy description of GPU work with a result of type T.

    Building and combining operations enqueues nothing. Running one asks a policy for a stream, once, and
    enqueues all of its work there. An operation is a recipe: it can be run again, unless it has taken an
    owned array, which its first run uses up. One that nobody runs warns when it is collected.

    The result type is what the one who runs it receives. The functions of `and_then` and `map` run when
    the work is submitted, and get handles: device arrays that are not written yet, and `HostArray` in
    place of NumPy arrays.
    """

    __slots__ = ("__weakref__", "_at", "_label", "_used", "_where")

    _make: ClassVar[Makers]

    def _built(self, label: str, frame: FrameType) -> None:
        """Note its name, and the line of code that builds it, which the warning names.

        A constructor, which Python calls through C (up to 3.12), would take half as long again.
        """
        self._label = label
        # The line is worked out only when it warns (`warn_at`), because that walks the table of lines of the
        # whole function, and each batch builds some thirty operations. Nor is the frame itself kept, because
        # it would keep all of its variables alive.
        self._where = frame.f_code
        self._at = frame.f_lasti
        self._used = False

    def _origin(self) -> tuple[CodeType, int]:
        """The code that built it, and which of its instructions."""
        return self._where, self._at

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Plain pickle can't pack it, and would complain about a code object. Cloudpickle can.
        if sys._getframe(1).f_globals.get("__name__") == "multiprocessing.reduction":
            raise errors.CannotTravelError(
                f"operation {self.label!r} can't be handed to a pool of processes. Hand over a function of a "
                "module and its data, and have it build the operation there, by method 'spawn'; or use "
                "agt.cluster, which sends operations to workers"
            )
        return super().__reduce_ex__(protocol)

    # ------------------------------------------------------------------ for subclasses
    @abstractmethod
    def _enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work on the context's stream, and return handles to its results."""

    def _run(self, context: ExecutionContext) -> T:
        """Enqueue it where it is the whole run, and not a part of one."""
        return evaluate(self, context)

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        """The operations that this one is made of."""
        return ()

    def _borrowed(self) -> Iterator[str]:
        """Names of the borrowed arrays that this operation itself takes."""
        return iter(())

    def _arity(self) -> int | None:
        """Length of the tuple that it yields, where that is known."""
        return None

    def _yields(self) -> str:
        """Say in few words what it yields, if that is known before it runs."""
        return ""

    # ------------------------------------------------------------------ names
    @property
    def label(self) -> str:
        """Its name in messages, traces and NVTX ranges."""
        return self._label

    def named(self, label: str) -> DeviceOp[T]:
        """Give it a name for messages, traces and NVTX ranges; returns itself.

        In a timeline it stands on the bars of all that the operation is made of, before the kernel's own
        name. Where parts of it have names as well, each bar has the innermost; the whole operation's is in
        the hover. So in ``agt.zip(a.named("layer 1"), b).named("network")`` the bars of `a` are called
        "layer 1" and those of `b` "network". What a chain goes on with is no part of what was named before:
        name the chain, at its end.
        """
        self._label = Name(label)
        return self

    def __repr__(self) -> str:
        # Also what asyncio.create_task(op) quotes where it says that it expects a coroutine.
        yields = self._yields()
        told = f", {yields}" if yields else ""
        return f"<DeviceOp {self._label}{told}: op.sync(), await op or agt.spawn(op) runs it>"

    def __del__(self) -> None:
        try:
            if self._used:
                return
        except AttributeError:  # its constructor has raised something, so nothing was built
            return
        if not sys.is_finalizing():
            words = (
                f"operation {self._label!r} was built here and never run: an operation only describes work. "
                "Run it with op.sync(), await op or agt.spawn(op), or make it a part of one that runs."
            )
            warn_at(*self._origin(), words, errors.NeverRunWarning)

    if not TYPE_CHECKING:  # a checker says by itself that there is no such thing

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(f"<DeviceOp {self.label}> has no {name!r}: {_cure(name)}")

        def _no_data(self, *_, **__):
            raise errors.NotDataError(
                f"<DeviceOp {self._label}> has no entries and no value, because it describes work: "
                "op.sync() or await op runs it and gives the result, and op.map(function) says what to do "
                "with its handle. op.first() and op.last() are operations for one of several results, "
                "op.unzip(n) for all n."
            )

        def _no_order(self, *_):
            raise errors.NotDataError(
                f"<DeviceOp {self._label}> has no order, because it describes work: op.sync() or await op "
                "runs it. To sort pairs, give `sorted` a `key`."
            )

        __array_ufunc__ = None  # so that NumPy leaves its operators to these
        __array__ = __bool__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = _no_data
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = _no_data
        __rmatmul__ = __truediv__ = __rtruediv__ = __neg__ = _no_data
        __lt__ = __le__ = __gt__ = __ge__ = _no_order

    # ------------------------------------------------------------------ composition
    def and_then(self, function: Callable[[T], DeviceOp[U]]) -> DeviceOp[U]:
        """Run this, then the operation that `function` makes of its handles, on the same stream.

        `function` runs at submission. It must return a `DeviceOp`; wrap plain values in `value`.
        """
        return _bind(self, function)

    def and_then_with_context(
        self, function: Callable[[ExecutionContext, T], DeviceOp[U]]
    ) -> DeviceOp[U]:
        """As `and_then`; `function` also gets the `ExecutionContext`, first."""
        return _bind(self, function, with_context=True)

    def map(self, function: Callable[[T], U]) -> DeviceOp[U]:
        """Transform the result handle on the host; no GPU work. `function` runs at submission."""
        return _bind(self, function, maps=True)

    def shared(self) -> SharedOp[T]:
        """An operation that runs this one at most once, however often it is used itself.

        Owned arrays in the result become shared ones. A consumer on another stream waits for it there,
        by an event.
        """
        return self._make.shared(self, sys._getframe(1))

    # ------------------------------------------------------------------ tuples
    @overload
    def unzip(
        self: DeviceOp[tuple[A, B]], count: int | None = None
    ) -> tuple[DeviceOp[A], DeviceOp[B]]: ...
    @overload
    def unzip(
        self: DeviceOp[tuple[A, B, C]], count: int | None = None
    ) -> tuple[DeviceOp[A], DeviceOp[B], DeviceOp[C]]: ...
    @overload
    def unzip(
        self: DeviceOp[tuple[A, B, C, D]], count: int | None = None
    ) -> tuple[DeviceOp[A], DeviceOp[B], DeviceOp[C], DeviceOp[D]]: ...
    @overload
    def unzip(self, count: int | None = None) -> tuple[DeviceOp[Any], ...]: ...
    def unzip(self, count: int | None = None) -> tuple[DeviceOp[Any], ...]:
        """One operation for each entry of a tuple-valued one, which runs at most once.

        Parameters
        ----------
        count : int, optional
            Length of the tuple; needed where it cannot be known before the operation runs.

        Raises
        ------
        UsageError
            If the length is not known, or not `count`.
        """
        return self._make.unzip(self, count, sys._getframe(1))

    def first(self: DeviceOp[tuple[A, *tuple[Any, ...]]]) -> DeviceOp[A]:
        """The first entry of a tuple-valued operation, which runs at most once."""
        return self._make.entry(self, 0, sys._getframe(1))

    def last(self: DeviceOp[tuple[*tuple[Any, ...], A]]) -> DeviceOp[A]:
        """The last entry of a tuple-valued operation, which runs at most once."""
        return self._make.entry(self, -1, sys._getframe(1))

    # ------------------------------------------------------------------ arrays
    def partition(
        self: DeviceOp[DeviceArray], *block: int | tuple[int, ...]
    ) -> DeviceOp[Partition]:
        """The array, split into blocks; see `DeviceArray.partition`."""
        return self.map(lambda array: array.partition(*block))

    def unpartition(self: DeviceOp[Partition]) -> DeviceOp[DeviceArray]:
        """The array of a partition."""
        return self.map(lambda partition: partition.unpartition())

    def reshape(self: DeviceOp[DeviceArray], *shape: int) -> DeviceOp[DeviceArray]:
        """The array with another shape; see `DeviceArray.reshape`."""
        return self.map(lambda array: array.reshape(*shape))

    def share(self: DeviceOp[DeviceArray]) -> DeviceOp[DeviceArray]:
        """The array as a shared handle; see `DeviceArray.share`."""
        return self.map(lambda array: array.share())

    def to_host(self: DeviceOp[DeviceArray]) -> DeviceOp[npt.NDArray[Any]]:
        """The array, copied to the host: a NumPy array for the one who runs it."""
        return _bind(self, self._make.download)

    def to(self: DeviceOp[DeviceArray], device: str | Device) -> DeviceOp[DeviceArray]:
        """The array, copied to another device; see `DeviceArray.to`."""
        return self.and_then(lambda array: array.to(device))

    # ------------------------------------------------------------------ running
    def on(self, device: str | Device) -> DeviceOp[T]:
        """Run it on a stream of this device, which that device's policy chooses, wherever the rest runs.

        It begins after what precedes it, and what follows waits for it, by events between the devices; the
        host waits for nothing. So ``agt.overlap(a.on("cuda:0"), b.on("cuda:1"))`` keeps two GPUs busy.
        """
        return self._make.on(self, device, sys._getframe(1))

    def sync(self, policy: SchedulingPolicy | None = None) -> T:
        """Run on a stream of the policy, and block until it is done.

        Raises
        ------
        DeviceMismatchError
            If the policy belongs to a device that is not the current one.
        DeviceError
            If the device failed in it.
        NestedSyncError
            If called while an operation is being submitted.
        """
        __tracebackhide__ = True
        stream, policy = choose(policy)
        return wait(submit(self._run, stream, policy, self._label, "sync()", True))

    def sync_on(self, stream: object) -> T:
        """Run on this stream, and block until it is done. Also takes a `cupy.cuda.Stream`."""
        return wait(submit(self._run, adopt_stream(stream), None, self._label, "sync_on()", True))

    def async_on(self, stream: object) -> T:
        """Submit to this stream and return handles at once.

        The host does not wait. Work on other streams is not ordered with it; a `HostArray` in the
        result can be read after `stream.synchronize()`.
        """
        mine = adopt_stream(stream)
        return submit(self._run, mine, None, self._label, "async_on()", forsaken=True).release()

    def schedule(self, policy: SchedulingPolicy | None = None) -> DeviceFuture[T]:
        """Let the policy, or the current one, choose the stream now; run when the future is first awaited."""
        stream, policy = choose(policy)
        return DeviceFuture(self._run, stream, policy, self._label)

    def into_future(self) -> DeviceFuture[T]:
        """`schedule` with the current policy."""
        return self.schedule()

    # ------------------------------------------------------------------ again and again
    def prepare(self) -> Prepared[T]:
        """Take all decisions now, and run the result many times, for little more than the driver's calls.

        It is captured on the current device: functions run, arrays are allocated, and nothing is enqueued.
        Copies need pinned host arrays; those that it reads are its inputs.

        Raises
        ------
        CaptureError
            If it reads pageable host memory.
        """
        return self._make.prepare(self)

    def graph_on(self, stream: object) -> CudaGraph[T]:
        """Capture a CUDA graph of it; nothing is enqueued, on `stream` or elsewhere.

        Only kernels, copies and memsets can be captured, and arms of `overlap` become branches. What
        allocates memory has to run before, or to be prepared: ``op.prepare().launch().graph_on(stream)``.

        Parameters
        ----------
        stream : Stream or cupy.cuda.Stream
            Where updates of the graph run.

        Raises
        ------
        CaptureError
            If it allocates, or reads pageable host memory.
        """
        return self._make.graph_on(self, stream)

    def __await__(self) -> Generator[Any, None, T]:
        stream, policy = choose(None)
        return DeviceFuture(self._run, stream, policy, self._label).__await__()


class BindOp(DeviceOp[U]):
    """The operation that `and_then`, `and_then_with_context` and `map` make."""

    __slots__ = ("_function", "_maps", "_source", "_with_context")

    _source: DeviceOp[Any]
    _function: Callable[..., Any]
    _maps: bool
    _with_context: bool

    def _origin(self) -> tuple[CodeType, int]:
        # A chain was built where it begins.
        source: DeviceOp[Any] = self._source
        while type(source) is BindOp:
            source = source._source
        return source._origin()

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return (self._source,)

    def _borrowed(self) -> Iterator[str]:
        # What a function has captured is only looked at one level deep; the rest is caught when it
        # reaches the stream.
        captured: list[Any] = list(getattr(self._function, "__defaults__", None) or ())
        for cell in getattr(self._function, "__closure__", None) or ():
            with suppress(ValueError):  # not assigned yet
                captured.append(cell.cell_contents)
        return borrowed_in(captured)

    def _enqueue(self, context: ExecutionContext) -> U:
        return evaluate(self, context)


def _bind(
    source: DeviceOp[Any],
    function: Callable[..., Any],
    maps: bool = False,
    with_context: bool = False,
) -> BindOp[Any]:
    if type(function) is not FunctionType and not callable(function):
        raise errors.NotAnOperationError(
            f"and_then and map take a function, and got {_brief(function)}: write "
            ".and_then(lambda result: ...), or agt.zip(a, b) for two operations in order"
        )
    bind: BindOp[Any] = BindOp()
    bind._label = source._label
    bind._used = False
    bind._source = source
    bind._function = function
    bind._maps = maps
    bind._with_context = with_context
    source._used = True
    return bind


def evaluate(op: DeviceOp[T], context: ExecutionContext) -> T:
    """Enqueue an operation. Chains of any length need no more stack than short ones.

    Whatever is enqueued takes its name from the label of the run, which says here what part of it that is.
    """
    run = context._run
    pending: list[BindOp[Any]] = []
    # What has a name of its own: it ends when as few steps are pending as at its begin, and then the label is
    # again what it was.
    named: list[tuple[int, str]] = []
    current: Any = op
    if type(run.label) is Name and current._label is run.label and _only_begins_named(current):
        run.label = str(run.label)
    while True:
        current._used = True
        kind = type(current)  # pyright: ignore[reportUnknownVariableType] - whatever it yields
        while kind is BindOp:
            if type(current._label) is Name and not _only_begins_named(current):
                _enter(current, run, named, len(pending))
            pending.append(current)
            current = current._source
            kind = type(current)  # pyright: ignore[reportUnknownVariableType] - the same
        if type(current._label) is Name:
            _enter(current, run, named, len(pending))
        handles: Any = current._enqueue(context)
        while True:
            while named and named[-1][0] >= len(pending):
                run.label = named.pop()[1]
            if not pending:
                return handles
            bind = pending.pop()
            if not bind._maps:
                break
            handles = bind._function(handles)
        follow = bind._function
        next_op: Any = follow(context, handles) if bind._with_context else follow(handles)
        current = next_op if isinstance(next_op, DeviceOp) else as_op(next_op, follow)  # pyright: ignore[reportUnknownVariableType] - whatever it yields


def _only_begins_named(op: Any) -> bool:
    """Tell whether its name is that of its first part: a chain is called so until it gets a name itself."""
    return type(op) is BindOp and op._label is op._source._label


def _enter(op: DeviceOp[Any], run: Run, named: list[tuple[int, str]], depth: int) -> None:
    """Count what is enqueued from here on as work of `op`, which has a name."""
    if op._label is not run.label:
        named.append((depth, run.label))
        run.label = Name(run.label, op._label)


def as_op(thing: Any, function: Callable[..., object] | None = None) -> DeviceOp[Any]:
    """`thing`, if it is an operation; else `NotAnOperationError`, which names the `function` it came from."""
    if isinstance(thing, DeviceOp):
        return thing  # pyright: ignore[reportUnknownVariableType] - whatever it yields
    name = getattr(function, "__qualname__", repr(function))
    origin = f"function {name!r} returned" if function is not None else "got"
    cure = "wrap a plain value in agt.value(...), or use map for a function that does no GPU work"
    if isinstance(thing, list | tuple) and any(isinstance(t, DeviceOp) for t in cast(Any, thing)):
        cure = "agt.zip(*these) makes one of them, in order on one stream; agt.overlap(*these) side by side"
    elif _has_launch(cast(Any, thing)):
        cure = "its launch() makes one"
    elif isinstance(thing, MethodType) and thing.__name__ == "launch":
        cure = "call it, as in launch()"
    raise errors.NotAnOperationError(
        f"{origin} {_brief(thing)}, where a DeviceOp is needed: {cure}"
    )


def choose(policy: SchedulingPolicy | None) -> tuple[Stream, SchedulingPolicy]:
    """One decision of the policy: the stream, adopted; and the policy itself."""
    if policy is None:
        policy = current_policy()
    elif check_policy(policy)._device is not (device := current_device()):
        policy.bind(device)
    return adopt_stream(policy.next_stream(), policy.home), policy


class Nursery(Protocol):
    """As trio has it, and anyio's task groups in a run of trio."""

    def start_soon(self, *args: Any, **options: Any) -> object:
        """Start a task."""


@overload
def spawn(
    op: DeviceOp[T],
    policy: SchedulingPolicy | None = None,
    *,
    nursery: asyncio.TaskGroup | None = None,
) -> asyncio.Task[T]: ...
@overload
def spawn(
    op: DeviceOp[T], policy: SchedulingPolicy | None = None, *, nursery: Nursery
) -> Spawned[T]: ...
def spawn(
    op: DeviceOp[T], policy: SchedulingPolicy | None = None, *, nursery: Any = None
) -> asyncio.Task[T] | Spawned[T]:
    """Start an operation as an `asyncio.Task`, or as a task of a trio nursery.

    The policy chooses the stream now; the work is submitted at the next turn of the event loop.

    Only here a borrowed array can be refused. An operation that a coroutine awaits cannot know whether
    somebody waits for the coroutine, as in a `TaskGroup`, or whether `asyncio.create_task` has sent it off
    alone. There it is up to you that the owner stays; one that was moved before the task ran is found.

    Parameters
    ----------
    nursery : asyncio.TaskGroup or trio.Nursery, optional
        What the task belongs to, and hears of its failure, as does whoever awaits it. A run of trio needs
        one; what comes back can be awaited there, too, by any number of tasks, and has a `cancel`.

    Raises
    ------
    BorrowedSpawnError
        If it takes a borrowed array.
    UsageError
        If no event loop is running; in a run of trio, if no nursery is given.
    """
    if isinstance(op, DeviceFuture):
        raise errors.NotAnOperationError(
            "spawn() takes an operation, and got a future: pass the operation, as in agt.spawn(op), or "
            "start the future with asyncio.ensure_future(future)"
        )
    as_op(op)
    names = borrowed_arrays(op)
    if names:
        raise errors.BorrowedSpawnError(borrowed_message(names[0]))
    try:
        ways = loop_ways()
    except RuntimeError:
        raise errors.UsageError(
            "spawn() needs a running event loop: call it in an async function, or use op.sync()"
        ) from None
    op._used = True  # also where the task is cancelled before its first step: then that was wanted
    stream, chosen = choose(policy)
    future = DeviceFuture(op._run, stream, chosen, op.label, spawned=True)
    return ways.spawn(future, op.label, nursery)


def borrowed_arrays(op: DeviceOp[Any]) -> list[str]:
    """Names of the borrowed arrays that an operation, or a part of it, is known to take."""
    found: list[str] = []
    stack = [op]
    seen: set[int] = set()
    while stack:
        part = stack.pop()
        if id(part) not in seen:
            seen.add(id(part))
            found.extend(part._borrowed())
            stack.extend(part._parts())
    return found


def line_of(code: CodeType, at: int) -> tuple[CodeType, int]:
    """The line at which an operation was built, by where the instruction is; and the code."""
    lines = [line for start, end, line in code.co_lines() if start <= at < end and line is not None]
    return code, lines[0] if lines else code.co_firstlineno


def warn_at(code: CodeType, at: int, words: str, kind: type[Warning]) -> None:
    """Warn of an operation at the line that built it: whoever runs it may be asyncio."""
    file, (_, line) = code.co_filename, line_of(code, at)
    warnings.warn_explicit(words, kind, file, line, registry=_warned.setdefault(file, {}))


# As `__warningregistry__` of a module: by it Python's filters know what they have shown. A loop warns once.
_warned: dict[str, dict[Any, Any]] = {}


def _cure(name: str) -> str:
    """Say what to write instead of `op.name`."""
    if name in ("then", "bind", "flat_map", "and_"):
        return (
            "op.and_then(f) goes on with the operation that f returns, and op.map(f) changes the result on "
            "the host"
        )
    return (
        "it only describes work. op.sync() runs it and blocks for the result, and await op does so without "
        "blocking; inside a chain, f in op.map(f) gets the handle of the result"
    )


def _has_launch(thing: object) -> bool:
    # Of its type: a handle, when asked itself, would look into its data.
    return hasattr(type(thing), "launch")


def _brief(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"a NumPy array of shape {np.shape(cast(Any, thing))}"
    text = repr(thing)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(thing).__name__})"
