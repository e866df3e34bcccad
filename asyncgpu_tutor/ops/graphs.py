"""CUDA graphs: captured from an operation, or piece by piece in a scope; in them the device may decide."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray
from asyncgpu_tutor.devices.protocol import Graph, Stream, in_turn, once_lock
from asyncgpu_tutor.errors import ArrayDTypeError, CaptureError, UsageError
from asyncgpu_tutor.ops.array_operations import Take
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.ops.prepared import Replayed
from asyncgpu_tutor.run.capture import Capture
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.current import adopt_stream
from asyncgpu_tutor.run.last_use import come_after
from asyncgpu_tutor.traces.spans.tag import forbid_nested_wait

T = TypeVar("T")
U = TypeVar("U")


class CudaGraph(Replayed[T]):
    """Work that the driver knows as a whole, and starts with one call.

    Made by `DeviceOp.graph_on`, or piece by piece in a `CudaGraph.scope`. Addresses and arguments are those
    of the capture. To vary an input, copy new data into an array that the graph reads: with `update`, or
    from a pinned host array inside of the graph.

    `while_loop`, `cond` and `switch` make operations for it in which the device decides what runs.

    Attributes
    ----------
    label : str
        Name of what was captured.
    stream : Stream
        Where updates run. A launch goes where its operation runs.
    device : Device
        Where it runs.
    kernels : list of str
        Names of its kernels, in order.
    nodes : int
        Number of kernels, copies and memsets; 0 before the end of its scope.
    """

    def __init__(self, label: str, stream: Stream) -> None:
        self.stream = adopt_stream(stream)
        super().__init__(label, self.stream.device)
        self.nodes = 0
        self._graph: Graph | None = None
        self._capture: Capture | None = None  # keeps what the graph's addresses point at

    def __repr__(self) -> str:
        return f"<CudaGraph {self.label!r}, {self.nodes} nodes on {self.device.name}>"

    @staticmethod
    @contextmanager
    def scope(stream: object, label: str = "graph") -> Generator[GraphScope]:
        """Capture piece by piece: ``with CudaGraph.scope(stream) as scope: scope.record(op)``.

        After the block there is ``scope.graph``. In it nothing runs, and nothing can be waited for.

        Parameters
        ----------
        stream : Stream or cupy.cuda.Stream
            See `CudaGraph.stream`. The capture does not touch it.
        """
        capture = Capture(label, adopt_stream(stream), allocates=False)
        scope = GraphScope(capture)
        try:
            with capture.under_way():
                yield scope
        finally:
            capture.closed = True
        if scope._failure is not None:
            capture.give_up()
            raise CaptureError(
                f"the capture of {label!r} is incomplete: an operation could not be recorded, because "
                f"{scope._failure}"
            ) from scope._failure
        scope.graph._captured(capture, tuple(scope._results))

    def _captured(self, capture: Capture, handles: T) -> CudaGraph[T]:
        """Make it ready to be launched; returns itself."""
        self._graph = capture.close(lambda replay: replay.instantiate(self.label))
        self._fill(capture, handles)
        self._capture = capture
        self.nodes = sum(call.is_work for call in capture.calls)
        return self

    def update(self, op: DeviceOp[U]) -> U:
        """Run an operation between two launches, on the graph's stream, without waiting; its handles.

        Such as ``graph.update(agt.memcpy(x.borrow(), token))``: the next launch sees the new input, wherever
        it runs.
        """
        op = as_op(op)
        forbid_nested_wait("update()")
        with once_lock, in_turn:
            come_after(self.stream, self._used)
            handles = op.async_on(self.stream)
            # Ranks that meet on the host give both locks up meanwhile, and others may have launched it.
            come_after(self.stream, self._used)
        return handles

    def _run(self, context: ExecutionContext) -> None:
        if context._run.captures:
            raise CaptureError(
                f"{self.label!r} is a CUDA graph already, and cannot be captured into another: capture the "
                "operation that it was made of, or launch both, one after the other"
            )
        if self._graph is None:
            raise CaptureError(
                f"{self.label!r} is not captured yet: launch it after its scope has ended"
            )
        self._graph.launch(context.stream)

    # ------------------------------------------------------------------ the device decides
    @staticmethod
    def while_loop(go: DeviceArray, body: DeviceOp[Any]) -> DeviceOp[DeviceArray]:
        """Run `body` again and again on the device, while the first element of `go` is not 0; yields `go`.

        The host is not asked: it launches one CUDA graph, and a kernel of the body sets `go` to 0 when it is
        enough. Where `go` is 0 from the start the body does not run.

        Parameters
        ----------
        go : DeviceArray
            Of int32. The body needs it too, so pass ``go.borrow()`` to both.
        body : DeviceOp
            Kernels, memsets and copies within the device, one after the other; decisions, too.

        Raises
        ------
        ArrayDTypeError
            If `go` is no array of int32.
        CaptureError
            If it runs outside of a graph (see `DeviceOp.graph_on`), or the body has a copy to or from the
            host, an allocation, or an `overlap`.
        RunawayKernelError
            On the simulated device, if it has come round 10,000 times.

        Notes
        -----
        A conditional node of type ``while``: CUDA C++ Programming Guide, "Conditional Graph Nodes".
        """
        return _decision("while_loop", go, [body])

    @staticmethod
    def cond(
        which: DeviceArray, then: DeviceOp[Any], otherwise: DeviceOp[Any] | None = None
    ) -> DeviceOp[DeviceArray]:
        """Run `then` if the first element of `which` is not 0 there, else `otherwise`; yields `which`.

        Parameters and errors are as for `while_loop`. With `otherwise` a GPU needs CUDA 12.8 or newer.
        """
        bodies = (then,) if otherwise is None else (then, otherwise)
        return _decision("cond", which, bodies)

    @staticmethod
    def switch(number: DeviceArray, *cases: DeviceOp[Any]) -> DeviceOp[DeviceArray]:
        """Run the case that the first element of `number` counts to there, from 0; yields `number`.

        A number beyond the cases runs none. Parameters and errors are as for `while_loop`. A GPU needs CUDA
        12.8 or newer.
        """
        if not cases:
            raise UsageError("switch chooses among cases, and got none: give it operations")
        return _decision("switch", number, cases)


def _decision(what: str, number: DeviceArray, bodies: Sequence[DeviceOp[Any]]) -> Take:
    """Read a number on the device, and go on with what that says; yields the number's array."""
    if isinstance(number, DeviceArray) and (number.dtype != np.int32 or number.size < 1):  # pyright: ignore[reportUnnecessaryIsInstance] - Take says what else it may be
        raise ArrayDTypeError(
            f"{what} goes by the first element of an array of int32, and {number.name!r} has "
            f"{number.size} of {number.dtype}: make one with agt.zeros(1, np.int32)"
        )
    ops = tuple([as_op(body) for body in bodies])

    def act(context: ExecutionContext, arrays: tuple[DeviceArray, ...]) -> DeviceArray:
        context.decide(what, arrays[0], [partial(evaluate, body, context) for body in ops])
        return arrays[0]

    return Take(what, (number,), act, bodies=ops)


class GraphScope:
    """A capture under way; see `CudaGraph.scope`.

    Attributes
    ----------
    graph : CudaGraph
        To be launched after the scope. A launch yields a tuple of all that was recorded.
    """

    def __init__(self, capture: Capture) -> None:
        self.graph: CudaGraph[tuple[Any, ...]] = CudaGraph(capture.label, capture.stream)
        self._capture = capture
        self._results: list[Any] = []
        self._failure: BaseException | None = None

    def record(self, op: DeviceOp[U]) -> U:
        """Capture an operation; its handles, which hold nothing before a launch.

        Raises
        ------
        CaptureError
            If it does what a graph cannot hold, such as allocating; or after the scope.
        """
        try:
            handles = self._capture.write_down(partial(evaluate, as_op(op)))
        except BaseException as error:
            self._failure = error  # a part of it may have been written down
            raise
        self._results.append(handles)
        return handles


def graph_on(op: DeviceOp[T], stream: object) -> CudaGraph[T]:
    """See `DeviceOp.graph_on`."""
    mine = adopt_stream(stream)
    capture = Capture(op.label, mine, allocates=False)
    handles = capture.write_all(partial(evaluate, op))
    return CudaGraph[T](capture.label, mine)._captured(capture, handles)
