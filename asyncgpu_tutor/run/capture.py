"""Capturing an operation: its calls are written down instead of made.

CUDA can capture a stream by itself: between two calls, what is enqueued there is recorded and not run. We
don't use that to look at an operation, because the stream is then in a special state while somebody's
Python runs. A mistake in there spoils the capture and is reported at its end, by a code, and the simulated
device would need all of it again.

So a capture here is a context whose verbs write their calls down instead of making them. Its streams and
events exist in the capture only. A failure therefore leaves the device as it was, moved arrays are handed
back (`give_up`), each call is held against the rules where it is made, and the error has the caller's line.
The same list of calls then serves three readers: a prepared pipeline makes them one by one, a device makes
a graph of them, and another capture takes them in.

Each stream of a capture counts, for every other one, how many of its calls come before the next one here,
which is a vector clock. By it we see a branch that nobody waits for, and leave out waits that order nothing
new.

Only work that goes through the context can be written down. A library that asks for the stream's address
would run its work now, and not in a replay, so a capture's stream has none and says so.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from asyncgpu_tutor.arrays.handles import DeviceArray, this_thread
from asyncgpu_tutor.arrays.host import buffers
from asyncgpu_tutor.devices import protocol
from asyncgpu_tutor.errors import CaptureError
from asyncgpu_tutor.run.context import DECIDES_IN_A_GRAPH, ExecutionContext, Run
from asyncgpu_tutor.traces.spans.tag import CURRENT, Name, Tag, forbid_nested_wait

if TYPE_CHECKING:
    from asyncgpu_tutor.run.last_use import LastUse, UsedMemory

T = TypeVar("T")
_IN_A_BODY = ("launch", "memset_async", "copy_from_device_async", "decide")


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
        # For each stream of the capture, how many of its calls come before the next one here.
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

    def wait_event(self, event: protocol.Event) -> None:
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


def _written_down(verb: str) -> Callable[..., None]:
    """A verb of a device, as a capture has it."""

    def write_down(self: Capture, *args: Any) -> None:
        *rest, stream = args
        self.add(verb, tuple(rest), stream)

    return write_down


class Capture(Run):
    """Calls that are being written down; their context enqueues here.

    `allocates` says whether memory may be allocated, now and for as long as the calls can be made.
    """

    def __init__(self, label: str, stream: protocol.Stream, *, allocates: bool) -> None:
        super().__init__(label, stream, captures=True)
        self.device: protocol.Device = stream.device
        self.allocates = allocates
        self.calls: list[protocol.RecordedCall] = []
        self.events = itertools.count()
        self.awaited: list[protocol.Event] = []
        # What prepared memory its launches use, and where in this capture they used it last. The second is
        # forgotten when the capture is over.
        self.uses: dict[UsedMemory, LastUse | None] = {}
        self.owners: dict[DeviceArray, None] = {}  # of what it borrows: a set, in order
        self.closed = False
        self._untouched: list[protocol.DeviceMemory] = []  # what was allocated, and not used yet
        self._moved: list[DeviceArray] = []
        self.undo: list[Callable[[], None]] = []  # what is done if it fails
        # The numbers of the streams beside each that it has had: see `_side_by_side`.
        self.apart: list[tuple[int, ...]] = []
        self.streams: list[CaptureStream] = []
        self.root = self.branch()

    def describe(self) -> str:
        """For messages."""
        return f"operation {self.label!r}, which is captured and not run,"

    # ------------------------------------------------------------------ capturing
    def write_all(self, enqueue: Callable[[ExecutionContext], T]) -> T:
        """Write down what `enqueue` would have enqueued; what it returns."""
        with self.under_way():
            return self.write_down(enqueue)

    def write_down(self, enqueue: Callable[[ExecutionContext], T]) -> T:
        """A part of `write_all`, in a block that is `under_way`."""
        if self.closed:
            self._refuse("an operation")
        before, this_thread.moved = this_thread.moved, self._moved
        try:
            return enqueue(CaptureContext(self.root, self))
        finally:
            this_thread.moved = before

    @contextmanager
    def under_way(self) -> Generator[None]:
        """A block that may not wait, as in a submission."""
        forbid_nested_wait(f"capturing {self.label!r}")
        tag = Tag(self.op, f"capture of {self.label}", captures=True)
        token = CURRENT.set(tag)
        try:
            yield
        except BaseException:
            self.give_up()
            raise
        finally:
            tag.over = True
            CURRENT.reset(token)

    def give_up(self) -> None:
        """It has failed, so nothing will run: operations and handles are as before, and memory goes."""
        for array in self._moved:
            array._undo_take()
        for undo in reversed(self.undo):
            undo()
        self._end()
        self.keep.clear()
        self.operations.clear()
        self.calls.clear()

    def _end(self) -> None:
        self.closed = True
        self._moved.clear()
        self.undo.clear()
        # Streams and handles know this capture. Memory is too dear to wait for the garbage collector.
        self.streams.clear()
        self.arms = ()
        self.uses = dict.fromkeys(self.uses)
        vars(self).pop("root", None)

    def close(self, made: Callable[[protocol.DeviceReplay], T]) -> T:
        """Make the calls ready, and of them what is `made`; where that fails, it is as if nothing had been.

        Raises `CaptureError` if a stream was not joined: what follows would not wait for it.
        """
        try:
            self._check_joined()
            for event in self.awaited:
                event.synchronize()
            self.calls = _needed(self.calls)
            ready = made(self.device.prepare(self.calls))
        except BaseException:
            self.give_up()
            raise
        self._end()
        self.keep[:] = [buffers(thing) for thing in self.keep]
        return ready

    def _check_joined(self) -> None:
        for stream in self.streams[1:]:
            if self.root.seen[stream.number] < stream.seen[stream.number]:
                raise CaptureError(
                    f"in the capture of {self.label!r}, nothing waits for {stream!r}: record an event at "
                    "its end, and let the first stream wait for it, as agt.overlap does"
                )

    def branch(self) -> CaptureStream:
        """Another stream."""
        stream = CaptureStream(self, len(self.apart))
        self.apart.append(tuple(other.number for other in self.beside))
        self.streams.append(stream)
        return stream

    def add(
        self,
        verb: Any,
        args: tuple[Any, ...],
        stream: protocol.Stream,
        fresh: tuple[protocol.DeviceMemory, ...] = (),
        named: str = "",
    ) -> None:
        """Write down one call."""
        if self.closed:
            self._refuse(verb)
        mine = self.own(stream)
        if not mine.forked:
            raise CaptureError(
                f"in the capture of {self.label!r}, {mine!r} starts by itself: let it wait first for an "
                "event of the stream that it comes from, as agt.overlap does"
            )
        touched = args[3] if verb == "launch" else args
        first = [m for m in self._untouched if any(arg is m for arg in touched)]
        self._untouched = [m for m in self._untouched if not any(m is f for f in first)]
        if not named and isinstance(self.label, Name):
            named = self.label.part
        call = protocol.RecordedCall(verb, args, mine.number, (*fresh, *first), named)
        if call.is_work:
            mine.seen[mine.number] += 1
        self.calls.append(call)

    def own(self, stream: protocol.Stream) -> CaptureStream:
        """A stream, if it is one of this capture's."""
        if not isinstance(stream, CaptureStream) or stream.capture is not self:
            raise CaptureError(
                f"in the capture of {self.label!r}, work can only go to its own streams, and {stream!r} is "
                "not one of them: use agt.overlap to run things side by side"
            )
        return stream

    def _refuse(self, what: str) -> NoReturn:
        raise CaptureError(
            f"the capture of {self.label!r} is over, and {what} came after it: an operation that ran "
            "inside a capture has no result outside. Launch what was captured, and use its result."
        )

    def refuse_to_wait(self, what: str) -> NoReturn:
        """Nothing runs in a capture."""
        forbid_nested_wait(what)
        raise CaptureError(
            f"{what} on a stream of the capture of {self.label!r}: nothing runs in a capture, so there is "
            "nothing to wait for. Launch what was captured, and wait for that."
        )

    # ------------------------------------------------------------------ what a context calls
    def malloc(self, nbytes: int, name: str, stream: protocol.Stream) -> protocol.DeviceMemory:
        """Allocate, where that is allowed; the memory lives as long as the calls."""
        if not self.allocates:
            raise CaptureError(
                f"{name!r} allocates memory, and a graph of this course does not: allocate before the "
                "capture, and write into that, with agt.memcpy(target, source), agt.d2h(x, out=host), or a "
                "kernel with arrays of its own. Or make it once by op.prepare(), and capture its launch."
            )
        memory = self.device.malloc(nbytes, name, self.stream)
        self._untouched.append(memory)
        return memory

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> protocol.HostBuffer:
        """A new host array, where that is allowed."""
        if not self.allocates:
            raise CaptureError(
                f"a copy to the host into a new array of shape {shape} allocates memory, and a graph of "
                "this course does not: make host = agt.pinned(shape, dtype) before the capture, and use "
                "agt.d2h(x, out=host)"
            )
        return self.device.pinned(shape, dtype)

    def is_pinned(self, array: protocol.HostBuffer) -> bool:
        """True, or an error: the call is made later, and pageable memory is read at once."""
        if not self.device.is_pinned(array):
            raise CaptureError(
                f"the host array of shape {array.shape} is pageable, and a copy that is captured needs "
                "pinned memory: make it with agt.pinned(shape, dtype), or copy it once with agt.pin(array)"
            )
        return True

    memset_async = _written_down("memset_async")
    copy_from_host_async = _written_down("copy_from_host_async")
    copy_to_host_async = _written_down("copy_to_host_async")
    copy_from_device_async = _written_down("copy_from_device_async")
    launch = _written_down("launch")


class CaptureContext(ExecutionContext):
    """Writes down instead of enqueueing."""

    __slots__ = ("_capture",)

    def __init__(self, stream: CaptureStream, capture: Capture) -> None:
        super().__init__(stream, None, capture)
        self._work = capture
        self._user = None  # nothing uses an array yet, so its last stream stays what it was
        self._capture = capture

    def on(self, stream: protocol.Stream) -> ExecutionContext:
        """The same capture, on another of its streams."""
        return CaptureContext(self._capture.own(stream), self._capture)

    def at(self, device: protocol.Device) -> CaptureContext:
        """The same stream, for an array of another device that a collective works on from here."""
        context = CaptureContext(cast(CaptureStream, self.stream), self._capture)
        context.device = device
        return context

    def collective(self, communicator: protocol.DeviceCommunicator, parts: Sequence[Any]) -> None:
        """Write down a call with the parts of all ranks, of which the first is this device's."""
        self._capture.add("collective", (communicator, parts), self.stream)

    def on_failed_capture(self, undo: Callable[[], None]) -> None:
        """Keep it for a capture that fails."""
        self._capture.undo.append(undo)

    def _touch(self, array: DeviceArray, taken: bool = False) -> protocol.DeviceMemory:
        """As outside; and whoever it is borrowed from has to keep it from now on."""
        memory = super()._touch(array, taken)
        if array._owner is not None:
            self._capture.owners[array._owner] = None
        return memory

    def _contiguous(self, host: protocol.HostBuffer) -> protocol.HostBuffer:
        """It is copied from where it is: what is written there later has to arrive."""
        if not host.flags.c_contiguous:
            raise CaptureError(
                f"the host array of shape {host.shape} is not C-contiguous, so it would be copied to one "
                "that is, and later changes to it would not arrive: use a whole array of "
                "agt.pinned(shape, dtype)"
            )
        return host

    def take_in(
        self, calls: Sequence[protocol.RecordedCall], streams: Sequence[protocol.Stream]
    ) -> None:
        """Write the calls of something prepared down here too, on these streams."""
        events: dict[int, CaptureEvent] = {}
        for call in calls:
            stream = streams[call.stream]
            assert isinstance(stream, CaptureStream)
            if call.verb == "record":
                events[call.args[0]] = stream.record()
            elif call.verb == "wait_event":
                stream.wait_event(events[call.args[0]])
            else:
                self._capture.add(call.verb, call.args, stream, call.fresh, call.named)

    def decide(
        self, what: str, number: DeviceArray, bodies: Sequence[Callable[[], object]]
    ) -> None:
        """Write it down, and what each body enqueues."""
        capture, memory = self._capture, self._touch(number)
        if capture.allocates:
            raise CaptureError(DECIDES_IN_A_GRAPH)
        outside, parts = capture.calls, list[tuple[protocol.RecordedCall, ...]]()
        around = capture.bodies
        try:
            for body in bodies:
                capture.calls, capture.bodies = [], (*around, object())
                body()
                parts.append(tuple(capture.calls))
        finally:
            capture.calls, capture.bodies = outside, around
        for call in itertools.chain(*parts):
            if call.stream != self.stream.number or call.verb not in _IN_A_BODY:
                raise CaptureError(
                    "a body holds kernels, memsets and copies within the device, one after the other, and "
                    f"this one has a {call.verb!r} on stream {call.stream}: leave copies to and from the "
                    "host, and agt.overlap, outside of it"
                )
        capture.add("decide", (what, memory, tuple(parts)), self.stream)

    def fork(self) -> ExecutionContext:
        """The same capture, on a new stream: arms of an `overlap` become branches."""
        return CaptureContext(self._capture.branch(), self._capture)


def _needed(calls: Sequence[protocol.RecordedCall]) -> list[protocol.RecordedCall]:
    """Leave out events that nobody waits for and waits that nothing follows: they would cost each run."""
    needed: list[protocol.RecordedCall] = []
    awaited: set[object] = set()
    busy = {0}  # streams that something is still to come on; the first goes on outside
    for call in reversed(calls):
        if call.verb == "record":
            if call.args[0] not in awaited:
                continue
        elif call.verb == "wait_event":
            if call.stream not in busy:
                continue
            awaited.add(call.args[0])
        busy.add(call.stream)
        needed.append(call)
    return needed[::-1]
