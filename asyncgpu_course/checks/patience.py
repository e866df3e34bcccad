"""An end for answers that have none: the learner's loop is interrupted, and the check says so."""

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from asyncgpu_course.checks.rejection import Rejected

# At work in the main thread, of which right answers need 5, and three times that on a slow, busy machine. Not
# in the whole process: NumPy takes all cores for a product, and sixteen are through with these in a second.
SECONDS = 30.0
# Asleep, a quarter longer, since a container may hold work back and nobody counts that; where nobody counts
# how long work waits for a core either, more than twice as long.
ASLEEP, UNCOUNTED = 1.25, 2.25
TICK = 0.25  # seconds from look to look


class _TooLong(KeyboardInterrupt):
    """Raised in the learner's code. As an interrupt it ends whatever the device and asyncio do."""


def _queued() -> float:
    """The seconds for which threads of this process had work and no core. Only Linux counts them; else 0."""
    with suppress(OSError):  # of a thread that has just ended
        stats = Path("/proc/self/task").glob("*/schedstat")
        return sum(int(file.read_text().split()[1]) for file in stats) * 1e-9
    return 0.0


@contextmanager
def not_for_ever() -> Generator[None]:
    """Reject an answer that has been at work for `SECONDS`, or could have been for a quarter longer.

    A browser and Windows have no timer for it, and it goes off in the main thread only.
    """
    begun, start, interrupted = time.thread_time(), time.monotonic(), False
    queued, last = 0.0, _queued()

    def look(*_: object) -> None:
        nonlocal interrupted, queued, last
        now = _queued()
        queued, last = queued + max(now - last, 0.0), now
        worked, passed = time.thread_time() - begun, time.monotonic() - start
        own = (passed - queued) / ASLEEP if now else passed / UNCOUNTED
        if max(worked, own) > SECONDS and not interrupted:
            interrupted = True
            raise _TooLong

    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, look)
    left, again = signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (_TooLong, Rejected):  # the second, where the device tells of the interrupt in its words
        if not interrupted:
            raise
        cause = f"it had not ended after {time.monotonic() - start:.0f} s, and was interrupted: a wait needs "
        cause += "something that comes, a loop an end, and one that asks again and again has to "
        cause += "give others a turn (`await`). On a busy machine, check once more"
        raise Rejected(cause) from None
    finally:
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody's timer was on: it goes on, or off now if it's due
            left -= time.monotonic() - start
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), again)
