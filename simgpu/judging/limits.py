"""Limits of time and memory for what strangers wrote: clear errors, and no machine that stands still.

The system can refuse memory, but what handles an error needs some, too. Without any, CPython 3.11 tries for
ever to note where a `with` or an `except` is to go on (`exception_unwind` in Python/ceval.c). So an alarm
looks at the memory some times a second and raises the error while some is left, and the system refuses what
goes far beyond. An array too large for that is refused at once, which leaves memory enough.
"""

import re
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from simgpu.errors import UsageError

_LOOKS = 0.05  # s from one to the next
_RESERVE = 64 << 20  # bytes to handle an error with


class OverLimitError(UsageError):
    """A file takes more time or memory than it may."""


class _OutOfTime(BaseException):
    """Nobody else may catch it."""


@contextmanager
def within_limits(file: Path, seconds: float, megabytes: int) -> Generator[None]:
    """Raise `OverLimitError` if work on a file takes longer, or on Linux more memory (Windows: neither)."""
    if not (0 < seconds < 1e6 and 0 < megabytes < 1e9):
        raise UsageError(f"{seconds} s and {megabytes} MB are no limits")
    start, (look, lift) = time.monotonic(), limit_this_process(megabytes)

    def look_at_both() -> None:
        if time.monotonic() - start >= seconds:
            raise _OutOfTime
        look()

    try:
        with now_and_then(look_at_both):
            yield
    except _OutOfTime:
        text = f"{file.name}: not finished within {seconds:g} s (--seconds gives it more)"
        raise OverLimitError(text) from None
    except MemoryError:
        text = f"{file.name}: not finished with {megabytes:,} MB (--megabytes gives it more)"
        raise OverLimitError(text) from None
    finally:
        lift()


@contextmanager
def now_and_then(look: Callable[[], None]) -> Generator[None]:
    """Call `look` some times a second and at the end; it may raise an error. (On Windows: never.)"""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        try:
            look()
        except BaseException:
            # Again, since what is raised in a __del__ or in a callback of the garbage collector is lost. But
            # whoever handles the error has time to do so.
            signal.setitimer(signal.ITIMER_REAL, 0.5, _LOOKS)
            raise

    start, before = time.monotonic(), signal.signal(signal.SIGALRM, ring)
    left, again = signal.setitimer(signal.ITIMER_REAL, _LOOKS, _LOOKS)
    try:
        yield
        look()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)  # None: it was none of Python's
        if left:  # somebody's timer was on: it goes on, or off now if it's due
            left -= time.monotonic() - start
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), again)


def limit_this_process(
    megabytes: int, seconds: int | None = None
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Take no more memory than this from now on, and no more seconds of CPU.

    Returns what is to be called now and then and raises `MemoryError`, and what lifts the limits again.
    """
    try:
        import resource
    except ImportError:  # on Windows
        return lambda: None, lambda: None
    most = {} if seconds is None else {resource.RLIMIT_CPU: seconds}
    full = _taken("VmSize") + (megabytes << 20)
    peak = max(full, _taken("VmPeak"))
    if _taken("VmSize"):
        most[resource.RLIMIT_AS] = full + _RESERVE
    before = {what: resource.getrlimit(what) for what in most}
    for what, (soft, hard) in before.items():  # either may be lower already
        resource.setrlimit(what, (min({most[what], soft, hard} - {resource.RLIM_INFINITY}), hard))

    def look() -> None:
        if _taken("VmSize") > full or _taken("VmPeak") > peak:
            raise MemoryError

    def lift() -> None:
        for what, old in before.items():
            resource.setrlimit(what, old)

    return look, lift


def _taken(which: str) -> int:
    """Bytes of this process's address space, now or at most; 0 where the system doesn't say."""
    told = Path("/proc/self/status")
    found = re.search(rf"{which}:\s+(\d+) kB", told.read_text()) if told.exists() else None
    return 0 if found is None else int(found[1]) << 10
