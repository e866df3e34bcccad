"""The last use of each piece of memory, so that the next one comes after it: happens-before, for runs.

A prepared pipeline uses the same memory in every run, because addresses are packed into its arguments. Two
runs on two streams would then overwrite each other's numbers. So each such memory remembers the stream that
used it last, and whoever uses it next on another stream waits for an event there first.

The obvious way records an event after each use. But most pipelines are launched again and again on one
stream, which keeps its own order, and every one of those events would be paid for and never waited for. So
the event is recorded late, when somebody on another stream comes. The price is that it lies behind
everything that was put on the first stream since, so that a run may wait for a little more than it has to.
A shared operation, which others may wait for at once, has it recorded early (`mark`).

Late events cost most in a run with several arms, which may have put one of them on that stream by now, so
that the next arm would wait for it. Hence such a run asks for no event if the host has seen the earlier run
complete. In a capture there is nothing to wait for yet. It notes the memory, and whoever launches what was
captured comes after its last use.

Memory that is used again without `come_after` is not protected by anything here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from asyncgpu_tutor.devices.protocol import Event, Stream
from asyncgpu_tutor.run.capture import CaptureStream
from asyncgpu_tutor.run.context import Run


@dataclass(eq=False, slots=True)
class LastUse:
    """The last use of some memory."""

    stream: Stream  # on which stream
    run: Run | None = None
    _event: Event | None = None

    def mark(self) -> Event:
        """Whoever comes next waits for what is enqueued by now, and for nothing that follows."""
        event = self._event = self.stream.record()
        return event

    def hold_back(self, stream: Stream) -> None:
        """Order all later work of `stream` after this use."""
        if stream is not self.stream:
            stream.wait_event(self._event or self.mark())


@dataclass(eq=False, slots=True)
class UsedMemory:
    """Memory that is used in one run after the other: that of a prepared pipeline, say."""

    # Outside of captures. What happens in a capture is the capture's to know.
    last: LastUse | None = None


def come_after(stream: Stream, used: Sequence[UsedMemory], run: Run | None = None) -> None:
    """Order all later work of `stream` after the last use of these, and make it their last use.

    A capture remembers them: whoever launches what was captured uses the same memory.
    """
    for memory in used:
        last = memory.last
        if last is not None:
            if last.stream is stream and last._event is None:
                last.run = run
                continue  # what comes on this stream comes after it, and is its last use in its place
            # An event that is recorded now may lie behind another arm of this run, if it has arms.
            if not (run and run.arms and last.run and last.run.known):
                last.hold_back(stream)
        if isinstance(stream, CaptureStream):
            inside = stream.capture.uses.get(memory)
            if inside is not None:
                inside.hold_back(stream)
            stream.capture.uses[memory] = LastUse(stream)
        else:
            memory.last = LastUse(stream, run)
