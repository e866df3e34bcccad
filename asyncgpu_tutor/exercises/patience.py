"""An end for answers that have none: the learner's loop is interrupted, and the check says so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from asyncgpu_tutor.exercises.exercise import Rejected

# Of work by this process, so that a busy machine refuses nobody. Right answers need 3 at most.
SECONDS = 6.0


class _TooLong(KeyboardInterrupt):
    """Raised in the learner's code. As an interrupt it ends whatever the device and asyncio do."""


@contextmanager
def not_for_ever() -> Generator[None]:
    """Reject an answer that is still at work in the block after `SECONDS`.

    A browser and Windows have no timer for it, and it goes off in the main thread only.
    """
    interrupted = list[bool]()

    def stop(*_: object) -> None:
        interrupted.append(True)
        raise _TooLong

    here = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if not here:
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except (_TooLong, Rejected):  # the second, where the device tells of the interrupt in its words
        if not interrupted:
            raise
        due = f"it was still at work after {SECONDS:.0f} s, and was interrupted: a loop has to end, and one "
        due += "that asks again and again has to give others a turn (`await`)"
        raise Rejected(due) from None
    finally:
        signal.signal(signal.SIGPROF, before)
