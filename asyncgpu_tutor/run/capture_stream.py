"""Streams and events of a capture: they know what comes after what, and nothing runs on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from asyncgpu_tutor.devices.protocol import Event
from asyncgpu_tutor.errors import CaptureError

if TYPE_CHECKING:
    from asyncgpu_tutor.run.capture import Capture


@dataclass(eq=False)
class CaptureEvent:
    """A point in the work of a stream of a capture."""

    capture: Capture
    number: int
    before: Counter[int]

    done = succeeded = retired = seen = False  # nothing has run yet

    def synchronize(self) -> None:
        """Nothing runs in a capture, so nothing can be waited for."""
        self.capture.refuse_to_wait("event.synchronize()")


class CaptureStream:
    """A stream of a capture; which one it is, shows when the calls are made."""

    done = False  # nothing has run yet

    def __init__(self, capture: Capture, number: int) -> None:
        self.capture = capture
        self.number = number  # in the capture
        self.device = capture.device
        self.forked = number == 0  # whether what is captured here comes after what was there before
        # By stream, how many of its calls come before the next one here.
        self.seen: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<stream {self.number} of the capture of {self.capture.label!r}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # asked by Python, maybe before there is anything to tell
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no {name!r}: in a capture there is no stream of CUDA's, to be handed to another "
            "library. What the methods of the context enqueue can be captured."
        )

    def record(self) -> CaptureEvent:
        """An event behind all that was captured here so far."""
        event = CaptureEvent(self.capture, next(self.capture.events), self.seen.copy())
        self.capture.add("record", (event.number,), self)
        return event

    def reuse(self, event: Event) -> None:
        """An event of a capture is a number, and costs nothing."""

    def wait_event(self, event: Event) -> None:
        """Put everything that is captured here from now on after `event`."""
        if not isinstance(event, CaptureEvent):
            self.capture.awaited.append(event)  # of work outside: done before anything is replayed
            return
        if event.capture is not self.capture:
            raise CaptureError(
                f"the capture of {self.capture.label!r} cannot wait for an event of the capture of "
                f"{event.capture.label!r}: capture both together, or launch one after the other"
            )
        seen = self.seen | event.before  # of each stream the later call
        if self.forked and seen == self.seen:
            return  # it comes after that already
        self.seen = seen
        self.forked = True
        self.capture.add("wait_event", (event.number,), self)

    def synchronize(self) -> None:
        """Nothing runs in a capture, so nothing can be waited for."""
        self.capture.refuse_to_wait("stream.synchronize()")
