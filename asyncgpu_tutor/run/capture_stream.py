"""Streams and events of a capture: they know what comes after what, and nothing runs on them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NoReturn

from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.errors import CaptureError

if TYPE_CHECKING:
    from asyncgpu_tutor.run.capture import Capture


class CaptureEvent:
    """A point in the work of a stream of a capture."""

    def __init__(self, capture: Capture, number: int, before: list[int]) -> None:
        self.capture = capture
        self.number = number
        self.before = before

    @property
    def done(self) -> bool:
        """Nothing has run yet."""
        return False

    @property
    def succeeded(self) -> bool:
        """Nothing has run yet."""
        return False

    @property
    def retired(self) -> bool:
        """Nothing has run yet."""
        return False

    def synchronize(self) -> None:
        """Nothing runs in a capture, so nothing can be waited for."""
        self.capture.refuse_to_wait("event.synchronize()")


class CaptureStream:
    """A stream of a capture; which one it is, shows when the calls are made."""

    def __init__(self, capture: Capture, index: int) -> None:
        self.capture = capture
        self.index = index
        self.device = capture.device
        self.forked = index == 0  # whether what is captured here comes after what was there before
        self.seen: list[int] = []  # by stream, how many of its calls come before the next one here

    def __repr__(self) -> str:
        return f"<stream {self.index} of the capture of {self.capture.label!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked by Python, maybe before there is anything to tell
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no {name!r}: in a capture there is no stream of CUDA's, to be handed to another "
            "library. What the methods of the context enqueue can be captured."
        )

    def shares_capture_with(self, stream: Stream) -> bool:
        """Whether both belong to one capture."""
        return isinstance(stream, CaptureStream) and stream.capture is self.capture

    @property
    def number(self) -> int:
        """Its number in the capture."""
        return self.index

    @property
    def done(self) -> bool:
        """Nothing has run yet."""
        return False

    def record(self) -> CaptureEvent:
        """An event behind all that was captured here so far."""
        event = CaptureEvent(self.capture, next(self.capture.events), self.seen.copy())
        self.capture.add("record", (event.number,), self)
        return event

    def reuse(self, event: Event) -> None:
        """An event of a capture is a number, and costs nothing."""

    def wait_event(self, event: Event) -> None:
        """What is captured here from now on comes after `event`."""
        if not isinstance(event, CaptureEvent):
            self.capture.awaited.append(event)  # of work outside: done before anything is replayed
            return
        if event.capture is not self.capture:
            raise CaptureError(
                f"the capture of {self.capture.label!r} cannot wait for an event of the capture of "
                f"{event.capture.label!r}: capture both together, or launch one after the other"
            )
        seen = later(self.seen, event.before)
        if self.forked and seen == self.seen:
            return  # it comes after that already
        self.seen = seen
        self.forked = True
        self.capture.add("wait_event", (event.number,), self)

    def synchronize(self) -> None:
        """Nothing runs in a capture, so nothing can be waited for."""
        self.capture.refuse_to_wait("stream.synchronize()")


def later(mine: list[int], theirs: list[int]) -> list[int]:
    """By stream, what comes before both."""
    return [max(pair) for pair in itertools.zip_longest(mine, theirs, fillvalue=0)]
