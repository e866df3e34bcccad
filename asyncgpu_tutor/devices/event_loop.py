"""What is asked of asyncio's event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Coroutine, Sized
from typing import Any, TypeVar

from asyncgpu_tutor.errors import UsageError

__all__ = ["completed", "nothing_ready", "running_loop", "turn_given", "turn_is_due"]

T = TypeVar("T")

# How long code that could go on without a turn of the loop may do so: timers and sockets wait meanwhile.
TURN_EVERY_US = 500.0


class _Turns(threading.local):
    due = 0.0  # when this thread's loop is to have its next turn


_turns = _Turns()


def running_loop() -> asyncio.AbstractEventLoop:
    """The loop that this runs in; `UsageError` where there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "awaiting an operation needs a running event loop: await it in an async function "
            "(asyncio.run(main()) in a script, top-level await in a notebook), or call op.sync()"
        ) from None


def nothing_ready(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether every other task of the loop waits for something; False where the loop does not tell."""
    # No public way to ask, and loops that are not asyncio's own lack it.
    ready: Sized | None = getattr(loop, "_ready", None)
    return ready is not None and len(ready) == 0


def turn_is_due() -> bool:
    """Whether the loop of this thread has waited long enough for a turn."""
    return time.perf_counter() > _turns.due


def turn_given(next_us: float = TURN_EVERY_US) -> None:
    """The loop of this thread has just had a turn; the next one is due after so many microseconds."""
    _turns.due = time.perf_counter() + next_us * 1e-6


def completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, in a loop of its own: a notebook's thread has one that is running already.

    That loop runs in another thread, with a copy of the context.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 - handed over to the thread that waits
            failure.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
