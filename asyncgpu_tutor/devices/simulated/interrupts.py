"""Interrupts while a kernel is interpreted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Generator[None]:
    """Let Ctrl-C, and a notebook's Stop, end what runs inside at once.

    An event loop takes them as a wish to cancel a task, which it can do only when it gets a turn again; an
    interpreter of kernels gives it none for as long as a kernel takes.
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
    finally:
        signal.signal(signal.SIGINT, before)
