"""Operations as asyncio tasks."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from asyncgpu_tutor.errors import BorrowedSpawnError, NotAnOperationError, UsageError
from asyncgpu_tutor.ops.operation import DeviceOp, as_op, choose
from asyncgpu_tutor.run.context import borrowed_message
from asyncgpu_tutor.run.current import SchedulingPolicy
from asyncgpu_tutor.run.future import DeviceFuture

T = TypeVar("T")


def spawn(op: DeviceOp[T], policy: SchedulingPolicy | None = None) -> asyncio.Task[T]:
    """Start an operation as an `asyncio.Task`.

    The policy chooses the stream now; the work is submitted at the next turn of the event loop.

    Only here a borrowed array can be refused. An operation that a coroutine awaits cannot know whether
    somebody waits for the coroutine, as in a `TaskGroup`, or whether `asyncio.create_task` has sent it off
    alone. There it is up to you that the owner stays; one that was moved before the task ran is found.

    Raises
    ------
    BorrowedSpawnError
        If it takes a borrowed array.
    UsageError
        If no event loop is running.
    """
    if isinstance(op, DeviceFuture):
        raise NotAnOperationError(
            "spawn() takes an operation, and got a future: pass the operation, as in agt.spawn(op), or "
            "start the future with asyncio.ensure_future(future)"
        )
    as_op(op)
    names = borrowed_arrays(op)
    if names:
        raise BorrowedSpawnError(borrowed_message(names[0]))
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "spawn() needs a running event loop: call it in an async function, or use op.sync()"
        ) from None
    op._used = True  # also where the task is cancelled before its first step: then that was wanted
    stream, chosen = choose(policy)
    future = DeviceFuture(op._run, stream, chosen, op.label, spawned=True)
    return loop.create_task(_drive(future), name=op.label)


async def _drive(future: DeviceFuture[T]) -> T:
    return await future


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
