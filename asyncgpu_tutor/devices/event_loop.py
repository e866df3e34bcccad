"""Questions to asyncio's event loop; the tutor knows its private names only here.

A task that awaits short work does best to look at its event at once, because short work is often over
before the loop has gone round. It may do so only while no other task is ready, and asyncio has no public
way to ask. So we look at the loop's private queue. A loop that has none, such as one that isn't asyncio's
own, counts as always busy, because then tasks get more turns than they need, and never fewer. For the
simulated device the same question decides whether time may go on.

These are names that asyncio may change in any version, which is why no other module of the tutor knows them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Sized
from contextlib import AbstractContextManager, nullcontext
from typing import Any

# How long code that could go on without a turn of the loop may do so: timers and sockets wait meanwhile.
TURN_EVERY_US = 500.0

_turns = threading.local()  # `due`: when this thread's loop is to have its next turn


def ready_in(loop: asyncio.AbstractEventLoop) -> Sized:
    """Return what is ready to run in a loop, and empty while every other task there waits for something.

    Where the loop does not say, it is never empty.
    """
    # No public way to ask, and loops that are not asyncio's own lack it.
    return getattr(loop, "_ready", (None,))


def shielded() -> AbstractContextManager[Any]:
    """Let a block finish its waits in a task that is cancelled; for `__aexit__`, mostly.

    Asyncio cancels one wait of a task, so whatever is awaited after that is waited for. A scope of anyio
    cancels each wait in it, until the task has left the scope.
    """
    if "anyio" not in sys.modules:
        return nullcontext()
    from anyio import CancelScope

    return CancelScope(shield=True)


def turn_is_due() -> bool:
    """Tell whether the loop of this thread has waited long enough for a turn."""
    return time.perf_counter() > getattr(_turns, "due", 0.0)


def turn_given(next_us: float = TURN_EVERY_US) -> None:
    """The loop of this thread has just had a turn; the next one is due after so many microseconds."""
    _turns.due = time.perf_counter() + next_us * 1e-6
