"""Several operations as one: in order on one stream, or side by side on several, of one device or more."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeVar, overload

from asyncgpu_tutor.devices.protocol import Device, Event
from asyncgpu_tutor.errors import UsageError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, evaluate
from asyncgpu_tutor.run.context import ExecutionContext
from asyncgpu_tutor.run.current import resolve
from asyncgpu_tutor.traces.spans.tag import Name

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")


class _Group(DeviceOp[tuple[Any, ...]]):
    __slots__ = ("_arms", "_how")

    def __init__(self, label: str, arms: tuple[Any, ...], how: Callable[..., Any]) -> None:
        if not arms:
            raise UsageError(f"{label} needs at least one operation, and got none")
        for arm in arms:
            if not isinstance(arm, DeviceOp):
                as_op(arm)
            arm._used = True
        self._arms, self._how = arms, how
        self._built(label, sys._getframe(2))

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return self._arms

    def _arity(self) -> int:
        return len(self._arms)

    def _yields(self) -> str:
        return f"of {len(self._arms)}: {', '.join(arm._label for arm in self._arms[:4])}" + (
            ", ..." if len(self._arms) > 4 else ""
        )

    def _enqueue(self, context: ExecutionContext) -> tuple[Any, ...]:
        return self._how(context, self._arms)


class On(DeviceOp[A]):
    """On a stream of another device: fork and join by events, too."""

    __slots__ = ("_name", "_op")

    def __init__(self, op: DeviceOp[A], device: str | Device, frame: FrameType) -> None:
        resolve(device)  # one that is not there is told of here, not where it runs
        self._name = device
        self._op = op
        op._used = True
        self._built(op._label, frame)

    @property
    def _device(self) -> Device:
        return resolve(self._name)

    def _parts(self) -> tuple[DeviceOp[Any], ...]:
        return (self._op,)

    def _arity(self) -> int | None:
        return self._op._arity()

    def _yields(self) -> str:
        return self._op._yields()

    def _enqueue(self, context: ExecutionContext) -> A:
        if context.device is self._device:
            return evaluate(self._op, context)
        return _side_by_side(context, (self,))[0]


def _in_order(context: ExecutionContext, arms: tuple[DeviceOp[Any], ...]) -> tuple[Any, ...]:
    """All on one stream."""
    results: list[Any] = []
    for arm in arms:
        named = type(arm._label) is Name
        results.append(evaluate(arm, context) if named else arm._enqueue(context))
    return tuple(results)


def _side_by_side(context: ExecutionContext, arms: tuple[DeviceOp[Any], ...]) -> tuple[Any, ...]:
    """Each on a stream of its own: fork and join by events."""
    fork = context.stream.record()
    joins: list[Event] = []
    results: list[Any] = []
    # An arm has a stream on which no arm beside it runs, nor any arm inside of those, if the policy has one.
    # A stream that it branched off from will do: what is there is over, or waits for the arms.
    run = context._run
    outer = run.beside, run.blocking
    run.blocking &= len(arms) < 2
    try:
        for arm in arms:
            begun = len(run.arms)
            branch = _branch(context, arm)
            stream, device = branch.stream, branch.device
            run.arms += (stream,)
            there = device is not context.device
            before = device.activate() if there else None
            try:
                if stream is not context.stream:
                    stream.wait_event(fork)
                results.append(evaluate(arm, branch))
            finally:
                if stream is not context.stream:
                    joins.append(stream.record())
                if before is not None:
                    device.restore(before)
            run.beside |= {*run.arms[begun:]}
    finally:
        run.beside, run.blocking = outer
        # Also where an arm could not be submitted: what the others do has to end before the
        # operation counts as complete.
        for join in joins:
            context.stream.wait_event(join)
    return tuple(results)


def _branch(context: ExecutionContext, arm: DeviceOp[Any]) -> ExecutionContext:
    if type(arm) is On and arm._device is not context.device:
        return context.elsewhere(arm._device)
    return context.fork()


class Combinator(Protocol):
    """The type of `zip` and `overlap`: operations in, one operation with the tuple of their results out."""

    @overload
    def __call__(self, a: DeviceOp[A], /) -> DeviceOp[tuple[A]]: ...
    @overload
    def __call__(self, a: DeviceOp[A], b: DeviceOp[B], /) -> DeviceOp[tuple[A, B]]: ...
    @overload
    def __call__(
        self, a: DeviceOp[A], b: DeviceOp[B], c: DeviceOp[C], /
    ) -> DeviceOp[tuple[A, B, C]]: ...
    @overload
    def __call__(
        self, a: DeviceOp[A], b: DeviceOp[B], c: DeviceOp[C], d: DeviceOp[D], /
    ) -> DeviceOp[tuple[A, B, C, D]]: ...
    @overload
    def __call__(
        self, a: DeviceOp[A], b: DeviceOp[B], c: DeviceOp[C], d: DeviceOp[D], e: DeviceOp[E], /
    ) -> DeviceOp[tuple[A, B, C, D, E]]: ...
    @overload
    def __call__(
        self,
        a: DeviceOp[A],
        b: DeviceOp[B],
        c: DeviceOp[C],
        d: DeviceOp[D],
        e: DeviceOp[E],
        f: DeviceOp[F],
        /,
    ) -> DeviceOp[tuple[A, B, C, D, E, F]]: ...
    @overload
    def __call__(self, *ops: DeviceOp[A]) -> DeviceOp[tuple[A, ...]]: ...
    def __call__(self, *ops: DeviceOp[Any]) -> DeviceOp[Any]:
        """Combine them."""
        ...


def _zip(*ops: DeviceOp[Any]) -> DeviceOp[Any]:
    """One operation with a tuple of results, in order, on ONE stream. It does not overlap anything.

    Raises
    ------
    UsageError
        If there is no operation.
    NotAnOperationError
        If one of them is none.
    """
    return _Group("zip", ops, _in_order)


def _overlap(*ops: DeviceOp[Any]) -> DeviceOp[Any]:
    """One operation with a tuple of results, each arm on a stream of its own.

    The policy is asked for one stream for each arm; an arm that is ``.on(device)`` asks that device's. The
    arms start after what precedes them, and what follows waits for all of them, by events; the host waits for
    nothing. Errors are as for `zip`.
    """
    return _Group("overlap", ops, _side_by_side)


zip: Combinator = _zip
overlap: Combinator = _overlap
