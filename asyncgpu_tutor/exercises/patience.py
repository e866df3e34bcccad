"""An end for answers that have none: the learner's loop is interrupted, and the check says so."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from asyncgpu_tutor.exercises.exercise import Rejected

# Of work by this process, of which right answers need 3 at most; it may take three times as long, since other
# processes work, too, and answers may sleep.
SECONDS = 6.0
TICK = 0.25  # seconds from look to look


class _TooLong(KeyboardInterrupt):
    """Raised in the learner's code. As an interrupt it ends whatever the device and asyncio do."""


@contextmanager
def not_for_ever() -> Generator[None]:
    """Reject an answer that is still at work in the block after `SECONDS`, or asleep after three times that.

    A browser and Windows have no timer for it, and it goes off in the main thread only.
    """
    begun, start, interrupted = time.process_time(), time.monotonic(), False

    def look(*_: object) -> None:
        nonlocal interrupted
        worked, passed = time.process_time() - begun, time.monotonic() - start
        if max(worked, passed / 3) > SECONDS and not interrupted:
            interrupted = True
            raise _TooLong

    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (_TooLong, Rejected):  # the second, where the device tells of the interrupt in its words
        if not interrupted:
            raise
        took = time.monotonic() - start
        due = f"it had not ended after {took:.0f} s, and was interrupted: a wait needs something that "
        due += "comes, a loop an end, and one that asks again and again has to give others a turn (`await`)"
        raise Rejected(due) from None
    finally:
        signal.signal(signal.SIGALRM, before)
