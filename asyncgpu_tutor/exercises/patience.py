"""An end for answers that have none: the learner's loop is interrupted, and the check says so."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from asyncgpu_tutor.exercises.exercise import Rejected

# Of work by this process, so that a busy machine refuses nobody, or of sleep. Right answers need 3 at most.
SECONDS = 6.0
TICK = 0.25  # seconds from look to look
ASLEEP = 0.02  # the part of a tick below which a process sleeps; a busy machine leaves it more


class _TooLong(KeyboardInterrupt):
    """Raised in the learner's code. As an interrupt it ends whatever the device and asyncio do."""


@contextmanager
def not_for_ever() -> Generator[None]:
    """Reject an answer that is still at work, or asleep, in the block after `SECONDS`.

    A browser and Windows have no timer for it, and it goes off in the main thread only.
    """
    spent, worked, interrupted = 0.0, time.process_time(), False

    def look(*_: object) -> None:
        nonlocal spent, worked, interrupted
        now = time.process_time()
        did, worked = now - worked, now
        spent += did if did > ASLEEP * TICK else TICK
        if spent > SECONDS and not interrupted:
            interrupted = True
            raise _TooLong

    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
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
        due = f"it had not ended after {SECONDS:.0f} s, and was interrupted: a wait needs something that "
        due += "comes, a loop an end, and one that asks again and again has to give others a turn (`await`)"
        raise Rejected(due) from None
    finally:
        signal.signal(signal.SIGALRM, before)
