"""Who used some memory last, where one thing runs again and again, or several that share it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from asyncgpu_tutor.device import Stream
from asyncgpu_tutor.runtime.capture_stream import CaptureStream

__all__ = ["LastUse", "follow", "in_turn"]

# Held from the moment in which a run is put behind those before it until it is enqueued itself. One for all:
# a run may be behind several others, and locks of their own would have to be taken in one order.
in_turn = threading.RLock()


class LastUse:
    """Where some memory was used last.

    Attributes
    ----------
    stream : Stream or None
        On which stream.
    captured_on : weakref.ref of CaptureStream, or None
        The same in a capture, which may be over.
    """

    __slots__ = ("captured_on", "stream")

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.captured_on: weakref.ref[CaptureStream] | None = None


def follow(stream: Stream, uses: Sequence[LastUse]) -> None:
    """What is enqueued on `stream` from now on comes after these uses, and is the last of each.

    A capture remembers them: whoever launches what was captured uses the same memory.
    """
    before: dict[Stream, None] = {}
    for use in uses:
        if use.stream is not None:
            before[use.stream] = None
        if isinstance(stream, CaptureStream):
            captured = None if use.captured_on is None else use.captured_on()
            if captured is not None and captured.shares_capture_with(stream):
                before[captured] = None
            use.captured_on = weakref.ref(stream)
            stream.capture.uses[use] = None
    before.pop(stream, None)
    for last in before:
        stream.wait_event(last.record())
    if not isinstance(stream, CaptureStream):
        for use in uses:
            use.stream = stream
