"""Who used some memory last, where one thing runs again and again, or several that share it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from asyncgpu_tutor.devices.protocol import Stream
from asyncgpu_tutor.run.capture_stream import CaptureStream
from asyncgpu_tutor.run.submission import Submission

__all__ = ["LastUse", "follow", "in_turn"]

# Held from the moment in which a run is put behind those before it until it is enqueued itself. One for all:
# a run may be behind several others, and locks of their own would have to be taken in one order.
in_turn = threading.RLock()


class LastUse:
    """Where some memory was used last.

    Attributes
    ----------
    stream : Stream or None
        On which stream. What happens in a capture is the capture's to know.
    run : Submission or None
        In what, where that is known: nothing has to wait for what somebody has seen end.
    """

    __slots__ = ("run", "stream")

    changes = 0  # of all of them: while it stays as it is, who found an order finds it again

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.run: Submission[Any] | None = None


def follow(stream: Stream, uses: Sequence[LastUse]) -> None:
    """What is enqueued on `stream` from now on comes after these uses, and is the last of each.

    A capture remembers them: whoever launches what was captured uses the same memory.
    """
    known = stream.capture.uses if isinstance(stream, CaptureStream) else None
    before: dict[Stream, None] = {}
    for use in uses:
        if use.stream is not None and not (use.run is not None and use.run.settled):
            before[use.stream] = None
        if known is not None and (inside := known.get(use)) is not None:
            before[inside] = None
    before.pop(stream, None)
    for last in before:
        stream.wait_event(last.record())
    LastUse.changes += 1
    for use in uses:
        if isinstance(stream, CaptureStream):
            stream.capture.uses[use] = stream
        else:
            use.stream, use.run = stream, None
