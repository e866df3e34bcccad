"""Streams and events of a simulated device."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, ClassVar

from simgpu.errors import DeviceError, DeviceMismatchError
from simgpu.machine import exclusive
from simgpu.order import BufferAccess, Clock, Tells
from simgpu.queues import Command, EngineEvent, Queue

if TYPE_CHECKING:
    from simgpu.device import Device


class Event:
    """A point in the work of a simulated stream."""

    def __init__(
        self, device: Device, state: EngineEvent, before: Clock, heads: tuple[int, ...], stream: int
    ) -> None:
        self.device = device
        self.machine, self.lock = device.machine, device.lock
        self.state = state
        self.before = before
        self.heads = heads
        self.stream = stream  # that it was recorded on

    @property
    @exclusive
    def done(self) -> bool:
        """True once the device has passed it. The query costs host time, so polling ends."""
        self.device.spend(self.device.spec.call_query_us)
        if self.state.passed:
            self.machine.observe(self.before)
        return self.state.passed

    @property
    def succeeded(self) -> bool:
        """As `done`, unless work before it failed."""
        return self.done and self._failure is None

    @property
    def retired(self) -> bool:
        """As `done`, but the query costs nothing, and the host learns nothing from it."""
        return self.state.passed

    @property
    def seen(self) -> bool:
        """As `done`, of what the host knew before it asks here."""
        known = self.state.passed and self.machine.seen.follows(self.before)
        return self.done and known

    @exclusive
    def synchronize(self) -> None:
        """Block the host until the device has passed it."""
        self.device.caller.before_wait("event.synchronize()")
        self.device.block(self.state, self.before, "event", self.heads)
        failure = self._failure
        if failure is not None:
            self.machine.engine.told(failure)
            raise failure

    @property
    def _failure(self) -> DeviceError | None:
        """The error of the work before it, as a CUDA event's status has it."""
        return self.state.error or self.state.untold


class Stream:
    """A queue of simulated work."""

    event_type: ClassVar[type[Event]] = Event

    def __init__(self, device: Device, number: int, blocking: bool = False) -> None:
        self.device = device  # the GPU that does its work
        self.blocking = blocking  # whether it is ordered with the null stream, in both directions
        self.machine, self.lock = device.machine, device.lock
        self.number = number
        self.clock = Clock()
        pauses = device.spec.pause_us, device.spec.switch_us
        self.queue = self.machine.engine.queue(device.ordinal, *pauses)
        key = (device.ordinal, number)
        weakref.finalize(self, _leave, self.queue, self.clock, key, device.gone[blocking])

    def __repr__(self) -> str:
        return f"<stream {self.number} of {self.device.name}>"

    @property
    @exclusive
    def done(self) -> bool:
        """True if it holds no unfinished work."""
        self.device.spend(self.device.spec.call_query_us)
        if self.queue.idle:
            self.machine.observe(self.clock)
        return self.queue.idle

    @exclusive
    def record(self) -> Event:
        """An event behind all work enqueued so far."""
        self._event_call("record", stream=self.number)
        return self.mark()

    def _event_call(self, name: str, **detail: object) -> None:
        """The host pays for an event. Those of a submission are no calls that the program has made."""
        device = self.device
        op, _ = device.caller.group()
        if op is None:
            device.call(name, device.spec.call_event_us, **detail)
        else:
            device.pay(op, device.spec.call_event_us)

    def mark(self) -> Event:
        """As `record`, where it costs the host nothing: in a graph."""
        if self.blocking or self is self.device.default_stream:
            self._join()
        return self._marked()

    def _marked(self) -> Event:
        before, heads, (op, _) = self.clock.copy(), self._heads(), self.device.caller.group()
        event = self.event_type(self.device, EngineEvent(), before, heads, self.number)
        self.submit(Command("none", self.machine.host, op, records=event.state))
        return event

    def _join(self) -> None:
        """As a blocking stream, come behind the null stream; as that one, behind all blocking streams.

        (CUDA Runtime API, "Stream synchronization behavior", legacy default stream.)
        """
        null = self.device.default_stream
        for other in self.device.blocking_streams if self is null else [null]:
            if not self.clock.follows(other.clock):
                self.follow(other._marked())
        if self is null:
            self.clock.merge(self.device.gone[True].copy())

    def _heads(self) -> tuple[int, ...]:
        log = self.device.recorder
        return log.heads(self.number) if log else ()

    @exclusive
    def wait_event(self, event: object) -> None:
        """Hold back work enqueued from now on until `event`."""
        if not isinstance(event, Event) or event.machine is not self.machine:
            raise DeviceMismatchError(
                f"{self!r} cannot wait for {event!r}: it is not an event of a simulated device of the same "
                "machine. stream.record() makes one"
            )
        self._event_call("wait_event", stream=self.number, event_of=event.stream)
        self.follow(event)

    def follow(self, event: Event) -> None:
        """As `wait_event`, where it costs the host nothing: in a graph."""
        # All devices of a recording share their spans' numbers.
        if self.device.recorder is not None:
            self.device.recorder.wait(self.number, event.heads)
        self.clock.merge(event.before)
        op, _ = self.device.caller.group()
        self.submit(Command("none", self.machine.host, op, awaits=event.state))

    @exclusive
    def synchronize(self) -> None:
        """Block the host until all its work is done, and raise what went wrong in it."""
        self.device.caller.before_wait("stream.synchronize()")
        self.drain()
        self.machine.engine.raise_failures(lambda queue: queue is self.queue)

    def drain(self) -> None:
        """Block the host until all its work is done or has failed."""
        state = EngineEvent()
        self.submit(Command("none", self.machine.host, records=state))
        self.device.block(state, self.clock, f"stream {self.number}", self._heads())

    def ordered(self) -> Clock:
        """Its clock, once its next piece of work comes after all that the host has seen complete."""
        self.clock.merge(self.machine.seen)
        if self.blocking or self is self.device.default_stream:
            self._join()
        return self.clock

    def access(
        self, what: str, group: tuple[int | None, str], tells: Tells | None, now: Clock
    ) -> BufferAccess:
        """A new piece of work on this stream, whose clock is `now` or a copy of it."""
        key = (self.device.ordinal, self.number)
        op, label = group
        whose = "" if op is None else f" of operation {label!r} (#{op})"
        which = f" of {self.device.name}" if self.device.ordinal else ""
        where = f"{what!r}{whose} on stream {self.number}{which}"
        return BufferAccess(key, now.tick(key), where, tells, op, self.device.caller)

    def submit(self, command: Command) -> None:
        """Append to the queue."""
        self.machine.engine.submit(self.queue, command)


def _leave(queue: Queue, clock: Clock, key: tuple[int, int], gone: Clock) -> None:
    """A stream is no more. Its own work is complete, as it would hold it; what it waits for may not be."""
    queue.orphaned = True
    gone.keep(key, clock)
