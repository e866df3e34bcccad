"""A stretch in which Python's garbage collector rests."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Make many small objects without looking for circles among them again and again.

    Spans have none, and a trace of 360,000 takes a third of the time to read and to analyse.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
