"""`DeviceOp`: a lazy description of GPU work, and the ways to compose and to run it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from asyncgpu_tutor.arrays.handles import DeviceArray, Partition, borrowed_in
from asyncgpu_tutor.devices.protocol import Stream
from asyncgpu_tutor.errors import NotAnOperationError
from asyncgpu_tutor.run import (
    ExecutionContext,
    adopt_stream,
    current_device,
    current_policy,
    submit,
    wait,
)
from asyncgpu_tutor.run.future import DeviceFuture
from asyncgpu_tutor.scheduling import SchedulingPolicy
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

if TYPE_CHECKING:
    from asyncgpu_tutor.ops.graphs import CudaGraph
    from asyncgpu_tutor.ops.prepared import Prepared
    from asyncgpu_tutor.ops.shared import SharedOp

__all__ = ["Bind", "DeviceOp", "as_op", "evaluate"]

T = TypeVar("T")
U = TypeVar("U")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class DeviceOp(Generic[T]):
    """A lazy description of GPU work with a result of type T.

    Building and combining operations enqueues nothing. Running one asks a policy for a stream, once, and
    enqueues all of its work there. An operation is a recipe: it can be run again, unless it has taken an
    owned array, which its first run uses up.

    The result type is what the one who runs it receives. The functions of `and_then` and `map` run when
    the work is submitted, and get handles: device arrays that are not written yet, and `HostArray` in
    place of NumPy arrays.
    """

    # Not an ABC: a launch asks isinstance for each of its arguments, and an ABC answers slowly.

    given_label = ""

    # ------------------------------------------------------------------ for subclasses
    @abstractmethod
    def enqueue(self, context: ExecutionContext) -> T:
        """Enqueue the work on the context's stream, and return handles to its results."""

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """The operations that this one is made of."""
        return ()

    def borrowed(self) -> Iterator[str]:
        """Names of the borrowed arrays that this operation itself takes."""
        return iter(())

    def arity(self) -> int | None:
        """Length of the tuple that it yields, where that is known."""
        return None

    # ------------------------------------------------------------------ names
    @property
    def label(self) -> str:
        """Its name in messages, traces and NVTX ranges."""
        return self.given_label or type(self).__name__

    def named(self, label: str) -> DeviceOp[T]:
        """Give it a name for messages, traces and NVTX ranges; returns itself."""
        self.given_label = label
        return self

    def __repr__(self) -> str:
        return f"<DeviceOp {self.label}>"

    if not TYPE_CHECKING:  # a checker says by itself that there is no such thing

        def __iter__(self):
            raise TypeError(
                f"{self!r} has no entries, as it is a description: unzip(n) makes an operation of each of "
                "the n that it will yield, first() and last() of one"
            )

        def __getitem__(self, index):
            self.__iter__()

    # ------------------------------------------------------------------ composition
    def and_then(self, function: Callable[[T], DeviceOp[U]]) -> DeviceOp[U]:
        """Run this, then the operation that `function` makes of its handles, on the same stream.

        `function` runs at submission. It must return a `DeviceOp`; wrap plain values in `value`.
        """
        return Bind(self, function)

    def and_then_with_context(
        self, function: Callable[[ExecutionContext, T], DeviceOp[U]]
    ) -> DeviceOp[U]:
        """As `and_then`; `function` also gets the `ExecutionContext`, first."""
        return Bind(self, function, with_context=True)

    def map(self, function: Callable[[T], U]) -> DeviceOp[U]:
        """Transform the result handle on the host; no GPU work. `function` runs at submission."""
        return Bind(self, function, maps=True)

    def shared(self) -> SharedOp[T]:
        """An operation that runs this one at most once, however often it is used itself.

        Owned arrays in the result become shared ones. A consumer on another stream waits for it there,
        by an event.
        """
        from asyncgpu_tutor.ops.shared import SharedOp

        return SharedOp(self)

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
        from asyncgpu_tutor.ops.shared import unzip

        return unzip(self, count)

    def first(self: DeviceOp[tuple[A, *tuple[Any, ...]]]) -> DeviceOp[A]:
        """The first entry of a tuple-valued operation, which runs at most once."""
        from asyncgpu_tutor.ops.shared import entry

        return entry(self, 0)

    def last(self: DeviceOp[tuple[*tuple[Any, ...], A]]) -> DeviceOp[A]:
        """The last entry of a tuple-valued operation, which runs at most once."""
        from asyncgpu_tutor.ops.shared import entry

        return entry(self, -1)

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
        from asyncgpu_tutor.ops.leaves import Download

        return self.and_then(Download)

    # ------------------------------------------------------------------ running
    def sync(self, policy: SchedulingPolicy | None = None) -> T:
        """Run on a stream of the policy, and block until it is done.

        Raises
        ------
        DeviceError
            If the device failed in it.
        NestedSyncError
            If called while an operation is being submitted.
        """
        forbid_nested_wait("sync()")
        return self._run_blocking(*choose(policy))

    def sync_on(self, stream: object) -> T:
        """Run on this stream, and block until it is done. Also takes a `cupy.cuda.Stream`."""
        forbid_nested_wait("sync_on()")
        return self._run_blocking(adopt_stream(stream), None)

    def _run_blocking(self, stream: Stream, policy: SchedulingPolicy | None) -> T:
        return wait(
            submit(partial(evaluate, self), stream, policy, label=self.label, blocking=True)
        )

    def async_on(self, stream: object) -> T:
        """Submit to this stream and return handles at once.

        The host does not wait. Work on other streams is not ordered with it; a `HostArray` in the
        result can be read after `stream.synchronize()`.
        """
        mine = adopt_stream(stream)
        return submit(partial(evaluate, self), mine, None, label=self.label).release()

    def schedule(self, policy: SchedulingPolicy) -> DeviceFuture[T]:
        """Let the policy choose the stream now; run when the future is first awaited."""
        stream, policy = choose(policy)
        return DeviceFuture(partial(evaluate, self), stream, policy, self.label)

    def into_future(self) -> DeviceFuture[T]:
        """`schedule` with the current policy."""
        stream, policy = choose(None)
        return DeviceFuture(partial(evaluate, self), stream, policy, self.label)

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
        from asyncgpu_tutor.ops.prepared import prepare

        return prepare(self)

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
        from asyncgpu_tutor.ops.graphs import graph_on

        return graph_on(self, stream)

    def __await__(self) -> Generator[Any, None, T]:
        return self.into_future().__await__()


class Bind(DeviceOp[U]):
    """What `and_then`, `and_then_with_context` and `map` make."""

    def __init__(
        self,
        source: DeviceOp[Any],
        function: Callable[..., Any],
        *,
        maps: bool = False,
        with_context: bool = False,
    ) -> None:
        if not callable(function):
            raise NotAnOperationError(
                f"and_then and map take a function, and got {_brief(function)}: write "
                ".and_then(lambda result: ...), or agt.zip(a, b) for two operations in order"
            )
        self.source = source
        self.function = function
        self.maps = maps
        self.with_context = with_context

    @property
    def label(self) -> str:
        """Its own name, or that of what it starts with."""
        op: DeviceOp[Any] = self
        while isinstance(op, Bind) and not op.given_label:
            op = op.source
        return op.given_label or op.label

    def parts(self) -> tuple[DeviceOp[Any], ...]:
        """See `DeviceOp`."""
        return (self.source,)

    def borrowed(self) -> Iterator[str]:
        """See `DeviceOp`."""
        # What a function has captured is only looked at one level deep; the rest is caught when it
        # reaches the stream.
        captured: list[Any] = list(getattr(self.function, "__defaults__", None) or ())
        for cell in getattr(self.function, "__closure__", None) or ():
            with suppress(ValueError):  # not assigned yet
                captured.append(cell.cell_contents)
        return borrowed_in(captured)

    def enqueue(self, context: ExecutionContext) -> U:
        """Enqueue the work; see `DeviceOp`."""
        return evaluate(self, context)


def evaluate(op: DeviceOp[T], context: ExecutionContext) -> T:
    """Enqueue an operation. Chains of any length need no more stack than short ones."""
    pending: list[Bind[Any]] = []
    current: DeviceOp[Any] = op
    while True:
        while isinstance(current, Bind):
            pending.append(current)
            current = current.source
        handles: Any = current.enqueue(context)
        while True:
            if not pending:
                return handles
            bind = pending.pop()
            if not bind.maps:
                break
            handles = bind.function(handles)
        follow = bind.function
        next_op = follow(context, handles) if bind.with_context else follow(handles)
        current = as_op(next_op, follow)


def as_op(thing: Any, function: Callable[..., object] | None = None) -> DeviceOp[Any]:
    """`thing`, if it is an operation.

    Raises
    ------
    NotAnOperationError
        If it is not; the message names `function` where it came from one.
    """
    if isinstance(thing, DeviceOp):
        return thing  # pyright: ignore[reportUnknownVariableType] - whatever it yields
    name = getattr(function, "__qualname__", repr(function))
    origin = f"function {name!r} returned" if function is not None else "got"
    cure = "wrap a plain value in agt.value(...), or use map for a function that does no GPU work"
    if isinstance(thing, list | tuple) and any(isinstance(t, DeviceOp) for t in cast(Any, thing)):
        cure = "agt.zip(*these) is one operation, which yields the results of all"
    elif _has_launch(cast(Any, thing)):
        cure = "its launch() makes one"
    elif isinstance(thing, MethodType) and thing.__name__ == "launch":
        cure = "call it, as in launch()"
    raise NotAnOperationError(f"{origin} {_brief(thing)}, where a DeviceOp is needed: {cure}")


def choose(policy: SchedulingPolicy | None) -> tuple[Stream, SchedulingPolicy]:
    """One decision of the policy: the stream, adopted; and the policy itself."""
    if policy is None:
        policy = current_policy()
    elif not isinstance(policy, SchedulingPolicy):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are not all type-checked
        raise NotAnOperationError(
            f"{policy!r} is not a scheduling policy: use agt.StreamPoolRoundRobin(4), "
            "agt.SingleStream(), or a subclass of agt.SchedulingPolicy"
        )
    elif not policy.bound:
        policy.bind(current_device())
    return adopt_stream(policy.next_stream(), policy.device), policy


def _has_launch(thing: object) -> bool:
    # Of its type: a handle, when asked itself, would look into its data.
    return hasattr(type(thing), "launch")


def _brief(thing: Any) -> str:
    if isinstance(thing, np.ndarray):
        return f"a NumPy array of shape {np.shape(cast(Any, thing))}"
    text = repr(thing)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(thing).__name__})"
