"""Interrupts while a kernel is interpreted."""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from simgpu.errors import DeviceError


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C, and a notebook's Stop, end what runs inside at once.

    An event loop takes them as a wish to cancel a task, which it can do only when it gets a turn again; an
    interpreter of kernels gives it none for as long as a kernel takes. The kernel fails then, and who awaits
    it gets the error: an interrupt that went through the loop itself would stop all of its tasks.

    Raises `DeviceError` if there was an interrupt that the event loop would have taken.
    """
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN, signal.default_int_handler):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        failure = given_up(interrupt.with_traceback(None))
        raise failure from failure.__cause__
    finally:
        signal.signal(signal.SIGINT, before)


def given_up(cause: BaseException) -> DeviceError:
    """What work fails with where its simulation has ended in something else than a result."""
    failure = DeviceError(f"the simulation was interrupted by {cause!r}")
    # A copy, because the cause itself goes on up, and collects the frames of all that it passes, with arrays.
    failure.__cause__ = copy.copy(cause)
    for note in getattr(cause, "__notes__", ()):
        failure.add_note(note)
    return failure
