"""Questions to asyncio's event loop; the tutor knows its private names only here."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sized

# How long code that could go on without a turn of the loop may do so: timers and sockets wait meanwhile.
TURN_EVERY_US = 500.0

_turns = threading.local()  # `due`: when this thread's loop is to have its next turn


def ready_in(loop: asyncio.AbstractEventLoop) -> Sized:
    """Return what is ready to run in a loop, and empty while every other task there waits for something.

    Where the loop does not say, it is never empty.
    """
    # No public way to ask, and loops that are not asyncio's own lack it.
    return getattr(loop, "_ready", (None,))


def turn_is_due() -> bool:
    """Tell whether the loop of this thread has waited long enough for a turn."""
    return time.perf_counter() > getattr(_turns, "due", 0.0)


def turn_given(next_us: float = TURN_EVERY_US) -> None:
    """The loop of this thread has just had a turn; the next one is due after so many microseconds."""
    _turns.due = time.perf_counter() + next_us * 1e-6
