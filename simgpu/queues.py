"""Queues, which the engine works on, their entries, and the work that these ask for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from simgpu.errors import DeviceError

if TYPE_CHECKING:
    from simgpu.launches import HostWrite

Resource = Literal["compute", "h2d", "d2h", "peer", "none"]
# One direction of a link between GPUs, from the side of one of them: "out" or "in", and its number.
Port = tuple[str, int]
# Writes to memory that the host sees: when, in order, and what makes each.
Shows = deque[tuple[float, "HostWrite"]]


class Paused(Protocol):
    """Work that has its places and waits for somebody: a kernel for memory, a collective for its ranks."""

    @property
    def changes(self) -> int:
        """How often it has changed memory, or what others wait for, itself."""
        return 0

    def stirred(self) -> bool:
        """True if the host has done something since its last look that it may have waited for."""
        ...

    def go_on(self, *, last: bool) -> ResourceDemand:
        """Look, and go on. With `last`, nobody will do anything any more: `DeviceError` if it cannot end."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """The demand of a command on the device once it starts."""

    us: float  # how long it takes when it gets all that it demands
    # Which part of the device's places for blocks it fills, 0 to 1. Only kernels and fills have one.
    places: float = 0.0
    # Which part of the device's throughput it uses meanwhile, 0 to 1, and above 0 for what has places.
    demand: float = 0.0
    # How long before its end, in us, its last block gets a place. From then on its blocks end one by one,
    # and it holds half of its places on average. 0 where all blocks start at once.
    drain: float = 0.0
    # How long one instruction keeps an SM busy, in units of issuing one. Warps take turns by instruction,
    # so that one whose loads touch many lines gets more of an SM than its neighbours.
    turn: float = 1.0
    # It is not known yet how long it takes: it holds its places, and waits for others.
    paused: Paused | None = None
    # The directions of links that it sends over, and which part of their rate it needs, 0 to 1.
    ports: tuple[Port, ...] = ()
    load: float = 0.0
    # Work of several devices that goes as fast as the slowest of it has the same object here.
    together: object | None = None
    urgent: bool = False  # gets a place as soon as a block of another kernel ends: a collective
    # Of a kernel that is paused: when, in us, it has done all that it could and may look again; it naps if it
    # does so by itself.
    ready: float = 0.0
    naps: bool = False
    shows: Shows | None = None  # what it writes to memory of the host


@dataclass(eq=False, slots=True)
class EngineEvent:
    """A point in a queue: passed or not, when, and whether work before it had failed, and whose.

    `untold` is for events that belong to no submission: the first failure in front of it that nobody had been
    told of when it passed.
    """

    passed: bool = False
    at: float = 0.0
    error: DeviceError | None = None
    error_op: int | None = None
    untold: DeviceError | None = None
    # What the queue did last, and until when: who awaits the event starts no sooner than that queue could.
    last: Resource = "none"
    ended: float = 0.0
    device: int | None = None  # where it was recorded: others hear of it later


@dataclass(eq=False, slots=True)
class Command:
    """One entry of a queue."""

    resource: Resource  # what it occupies while it runs
    ready: float  # when the host had enqueued it, in us
    # The submission that it belongs to. An error skips the rest of its own submission only.
    op: int | None = None
    # Takes effect when the command starts; says how long it takes.
    begin: Callable[[], ResourceDemand] | None = None
    # Called with start, end, and for how long it had to wait for a place before the start, in us.
    end: Callable[[float, float, float], None] | None = None
    # Called with the error in place of `begin` where an earlier command had failed, or after `begin` has
    # raised one.
    skipped: Callable[[DeviceError], None] | None = None
    # Called with start and end where it waited for something, in vain.
    in_vain: Callable[[float, float], None] | None = None
    # Called with what is to write to the host's memory, and calls that.
    fills: Callable[[Callable[[], None]], None] | None = None
    records: EngineEvent | None = None
    awaits: EngineEvent | None = None
    serial: int = 0
    # In a graph: the us from the end of the kernel before it on its stream to its start. Elsewhere that is
    # the stream's own `pause`.
    gap: float | None = None


@dataclass(eq=False, slots=True)
class Queue:
    """A stream as the engine sees it."""

    device: int
    # How many us pass from the end of a kernel to the start of the next one, where that is already there.
    pause: float = 0.0
    # The same from a copy to a kernel, from a kernel to a copy, and from one direction to the other.
    switch: float = 0.0
    waiting: deque[Command] = field(default_factory=deque[Command])
    running: bool = False
    error: DeviceError | None = None
    error_op: int | None = None
    orphaned: bool = False  # nobody can reach it any more: it is forgotten once it is empty
    last: Resource = "none"
    ended: float = 0.0

    @property
    def idle(self) -> bool:
        """True if nothing is queued or running."""
        return not self.waiting and not self.running
