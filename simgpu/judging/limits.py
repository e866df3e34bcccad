"""Limits of time and memory for what strangers wrote: clear errors, and no machine that stands still."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from simgpu.errors import UsageError


class OverLimitError(UsageError):
    """A file takes more time or memory than it may."""


class _OutOfTime(BaseException):
    """Nobody else may catch it."""


@contextmanager
def within_limits(file: Path, seconds: float, megabytes: int) -> Generator[None]:
    """Raise `OverLimitError` if work on a file takes longer, or on Linux more memory (Windows: neither)."""
    if not (0 < seconds < 1e6 and 0 < megabytes < 1e9):
        raise UsageError(f"{seconds} s and {megabytes} MB are no limits")

    def ring(number: int, frame: object) -> None:
        raise _OutOfTime

    rings = hasattr(signal, "setitimer")
    before = signal.signal(signal.SIGALRM, ring) if rings else None
    reserve, undo = bytearray(1 << 20), limit_this_process(megabytes)
    start, left, again = time.monotonic(), 0.0, 0.0
    try:
        if rings:
            # And again, since what is raised in a __del__ or in a callback of the garbage collector is lost.
            left, again = signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
        yield
    except _OutOfTime:
        text = f"{file.name}: not finished within {seconds:g} s (--seconds gives it more)"
        raise OverLimitError(text) from None
    except MemoryError:
        reserve.clear()  # so that there is memory for what follows
        text = f"{file.name}: not finished with {megabytes:,} MB (--megabytes gives it more)"
        raise OverLimitError(text) from None
    finally:
        if rings:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)  # None: it was none of Python's
            if left:  # somebody's timer was on: it goes on, or off now if it's due
                left -= time.monotonic() - start
                signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), again)
        undo()


def limit_this_process(megabytes: int, seconds: int | None = None) -> Callable[[], None]:
    """Take no more memory than this from now on, and no more seconds of CPU; return what lifts it again."""
    try:
        import resource
    except ImportError:  # on Windows
        return lambda: None
    taken = Path("/proc/self/statm")
    most = {} if seconds is None else {resource.RLIMIT_CPU: seconds}
    if taken.exists():
        pages = int(taken.read_text().split()[0])
        most[resource.RLIMIT_AS] = pages * resource.getpagesize() + (megabytes << 20)
    before = {what: resource.getrlimit(what) for what in most}
    for what, (soft, hard) in before.items():  # either may be lower already
        resource.setrlimit(what, (min({most[what], soft, hard} - {resource.RLIM_INFINITY}), hard))

    def lift() -> None:
        for what, old in before.items():
            resource.setrlimit(what, old)

    return lift
