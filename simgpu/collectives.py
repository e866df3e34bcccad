"""Collectives: work that several devices do together, each on a stream of its own.

A collective of a rank begins when its stream comes to it. From then on it holds a few SMs and waits for the
others, as NCCL's kernels do; when the last one is there, all go on together and end together. Ranks that call
different things, or never come, get an error that names the calls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from simgpu.device import Device
from simgpu.errors import CollectiveError, DeviceError, UpstreamError, UsageError
from simgpu.links import collective_works
from simgpu.memory import Memory
from simgpu.pieces import EnginePiece, as_memory
from simgpu.queues import Paused, ResourceDemand
from simgpu.stream import Stream

_PAIRS = ("send", "recv")
_ALL = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "exchange", *_PAIRS)
_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_IDLE = 1e-9  # of a device's throughput, for a rank that waits


@dataclass(frozen=True, eq=False, slots=True)
class Collective:
    """The call of one rank."""

    what: str
    count: int  # elements that the rank gives; those that it gets for "recv"
    dtype: np.dtype[Any]
    source: Memory | None = None  # what it gives
    target: Memory | None = None  # where to what it gets
    reduce: str = "sum"
    root: int = 0  # of a broadcast
    to: int | None = None  # whom it sends to
    origin: int | None = None  # whom it gets from
    where: str = ""  # the program's line, for messages

    def __str__(self) -> str:
        more = {
            "all_reduce": f" ({self.reduce})",
            "reduce_scatter": f" ({self.reduce})",
            "broadcast": f" from rank {self.root}",
        }.get(self.what, "")
        if not more:
            ends = (("to", self.to), ("from", self.origin))
            more = ",".join(f" {way} rank {rank}" for way, rank in ends if rank is not None)
        line = f" at {self.where}" if self.where else ""
        return f"{self.what} of {self.count:,} {self.dtype}{more}{line}"

    def agrees(self, other: Collective) -> bool:
        """True if the two can be calls of one collective."""
        same = self.what == other.what or {self.what, other.what} == set(_PAIRS)
        mine, theirs = ((c.count, c.dtype, c.reduce, c.root) for c in (self, other))
        return same and mine == theirs


@dataclass(eq=False, slots=True)
class _RankMeeting:
    """One collective, of all the ranks that take part."""

    ranks: tuple[int, ...]
    calls: dict[int, Collective] = field(default_factory=dict[int, Collective])
    works: dict[int, ResourceDemand] | None = None  # once all are there
    error: str = ""
    cause: DeviceError | None = None


class Communicator:
    """A group of ranks, each of them a device of one machine.

    Calls of one rank have to be in one order: on one stream, or on several by events.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)
        hosts = {getattr(device, "machine", None) for device in devices}
        if len(hosts) != 1 or None in hosts or len(set(devices)) < len(devices):
            raise UsageError("a group takes different devices of the same simulated machine")
        self.machine, self.lock = devices[0].machine, devices[0].lock
        self.broken = ""  # what went wrong; from then on every call fails
        self._joined: Counter[tuple[object, ...]] = Counter()
        self._meetings: dict[tuple[object, ...], _RankMeeting] = {}
        self.waiting: dict[int, Collective] = {}  # what each rank waits in, for messages
        self._sides: dict[Device, Stream] = {}  # where `together` has the other ranks' parts

    def fail(self, message: str) -> None:
        """Every rank that waits, and every later call, gets a `CollectiveError`."""
        with self.lock:
            self.broken = self.broken or message
            self.machine.engine.stir()

    def enqueue(self, rank: int, call: Collective, stream: object) -> None:
        """Append the call of one rank to a stream of its device."""
        piece = self._piece(rank, call)
        self.devices[rank].enqueue(piece, stream)

    def together(self, parts: Mapping[int, Collective], home: Device) -> EnginePiece:
        """All ranks' calls as a piece of work for the device of one of them, to be done again and again."""
        made = {self.devices[rank]: self._piece(rank, call) for rank, call in parts.items()}
        mine = made.pop(home)
        for device in made:
            self._sides.setdefault(device, device.create_stream(non_blocking=True))
        return replace(mine, others=[(self._sides[device], made[device]) for device in made])

    def _piece(self, rank: int, call: Collective) -> EnginePiece:
        if wrong := self._wrong(rank, call):
            raise UsageError(wrong)
        device = self.devices[rank]

        def begin(found: dict[str, object]) -> ResourceDemand:
            meeting = self._join(rank, call)
            if not meeting.error and len(meeting.calls) == len(meeting.ranks):
                self._together(meeting)
            return _Waiting(self, meeting, rank, found, self.machine.engine.now).go_on(last=False)

        def lost(error: DeviceError) -> None:
            meeting = self._join(rank, call)
            meeting.cause = error
            meeting.error = f"rank {rank} does not come to its {call}, since it failed: {error}"

        nbytes = call.count * call.dtype.itemsize
        detail: dict[str, object] = {"bytes": nbytes, "rank": rank, "ranks": len(self.devices)}
        reads, writes = ([] if a is None else [as_memory(a)] for a in (call.source, call.target))
        cost = device.spec.call_launch_us
        return EnginePiece("kernel", call.what, cost, begin, writes, reads, detail, lost=lost)

    def _wrong(self, rank: int, call: Collective) -> str:
        """Say what is wrong with a call by itself, if anything is."""
        size, count, what, dtype = len(self.devices), call.count, call.what, call.dtype
        if what not in _ALL:
            return f"a collective is one of {', '.join(_ALL)}, and not {what!r}"
        if not isinstance(dtype, np.dtype) or dtype.kind not in "biufcV":  # pyright: ignore[reportUnnecessaryIsInstance]
            return (
                f"{what} takes a type of NumPy's numbers, such as np.dtype('f4'), and got {dtype!r}"
            )
        width = dtype.itemsize
        if call.reduce not in _REDUCTIONS:
            return f"reduce is one of {', '.join(_REDUCTIONS)}, and not {call.reduce!r}"
        parts = size if what == "reduce_scatter" else 1
        if not isinstance(count, int | np.integer) or count < 0 or count % parts:  # pyright: ignore[reportUnnecessaryIsInstance]
            of = f", a multiple of the {size} ranks" if parts > 1 else ""
            return f"{what} takes a whole number of elements, not below 0{of}, and got {count!r}"
        ends = call.to if what == "send" else 0, call.origin if what == "recv" else 0
        for end in (rank, call.root, *ends, call.to or 0, call.origin or 0):
            if not isinstance(end, int | np.integer) or not 0 <= end < size:
                return f"{call}: there is no rank {end}, they are 0 to {size - 1}"
        if what in _PAIRS and rank in (call.to, call.origin):
            return f"{call}: that is rank {rank} itself"
        gives = {"recv": False, "broadcast": rank == call.root, "exchange": call.to is not None}
        gets = {"all_gather": count * size, "reduce_scatter": count // size}.get(what, count)
        if gives.get(what, True) and (call.source is None or call.source.nbytes < count * width):
            has = (
                "no source" if call.source is None else f"a source of {call.source.nbytes:,} bytes"
            )
            return f"{call}: rank {rank} gives {count * width:,} bytes, and has {has}"
        if call.target is not None and call.target.nbytes < gets * width:
            has = f"a target of {call.target.nbytes:,}"
            return f"{call}: rank {rank} gets {gets * width:,} bytes, and has {has}"
        return ""

    def _join(self, rank: int, call: Collective) -> _RankMeeting:
        ends: tuple[int | None, ...] = ()
        if call.what in _PAIRS:
            ends = (rank, call.to) if call.what == "send" else (call.origin, rank)
        number = self._joined[rank, *ends]
        self._joined[rank, *ends] += 1
        ranks = tuple(end for end in ends if end is not None) or tuple(range(len(self.devices)))
        meeting = self._meetings.setdefault((ends, number), _RankMeeting(ranks))
        for other, earlier in meeting.calls.items():
            if not meeting.error and not earlier.agrees(call):
                both = f"rank {other} calls {earlier}, and rank {rank} calls {call}"
                meeting.error = f"ranks disagree: {both}"
        meeting.calls[rank] = call
        if len(meeting.calls) == len(meeting.ranks):
            del self._meetings[ends, number]
            if call.what == "exchange" and not meeting.error:
                meeting.error = _one_sided(meeting.calls)
        return meeting

    def _together(self, meeting: _RankMeeting) -> None:
        """All are there: compute, and say how long it takes."""
        calls = [meeting.calls[rank] for rank in meeting.ranks]
        first = calls[0]
        for target, values in [(c.target, _result(calls, n)) for n, c in enumerate(calls)]:
            if target is not None and values is not None:
                target.cells.data[: values.nbytes] = values.view(np.uint8)
                target.cells.mark_written(0, values.nbytes)
                target.spoiled = None
        numbers = [self.devices[rank].ordinal for rank in meeting.ranks]
        size = len(self.devices) if first.what == "all_gather" else 1
        exchanges, ring = first.what == "exchange", [*range(1, len(calls)), 0]
        targets = [n if c.to is None else c.to for n, c in enumerate(calls)] if exchanges else ring
        pairs = [(number, numbers[to]) for number, to in zip(numbers, targets, strict=True)]
        if first.what in _PAIRS:
            sender = 0 if first.what == "send" else 1
            pairs = [(numbers[sender], numbers[1 - sender])] * 2
        nbytes = first.count * first.dtype.itemsize * size
        spec = self.devices[0].spec
        works = collective_works(self.machine.wiring, spec, first.what, pairs, nbytes)
        meeting.works = dict(zip(meeting.ranks, works, strict=True))

    def missing(self, meeting: _RankMeeting, rank: int) -> str:
        """Say who does not come, and where those are."""
        busy = {other: f"it waits in {call}" for other, call in self.waiting.items()}
        absent = [other for other in meeting.ranks if other not in meeting.calls]
        free = "it has called nothing that fits"
        words = [f"rank {other} does not come: {busy.get(other, free)}" for other in absent]
        return f"rank {rank} waits in {meeting.calls[rank]}, and {'; '.join(words)}"


@dataclass(frozen=True, eq=False, slots=True)
class _Waiting(Paused):
    """A rank that has its SMs, and waits for the others."""

    communicator: Communicator
    meeting: _RankMeeting
    rank: int
    found: dict[str, object]
    began: float

    def stirred(self) -> bool:
        """The host can do nothing for it but enqueue, unless it has called `fail`."""
        return bool(self.communicator.broken)

    def go_on(self, *, last: bool) -> ResourceDemand:
        communicator, meeting = self.communicator, self.meeting
        if (waited := communicator.machine.engine.now - self.began) > 0:
            self.found["waits"] = [(0.0, waited)]
        communicator.waiting.pop(self.rank, None)
        if meeting.cause is not None:
            raise UpstreamError(meeting.error) from meeting.cause
        if meeting.error or communicator.broken:
            raise CollectiveError(meeting.error or communicator.broken)
        if meeting.works is not None:
            return meeting.works[self.rank]
        if last:
            communicator.broken = communicator.missing(meeting, self.rank)
            raise CollectiveError(communicator.broken)
        communicator.waiting[self.rank] = meeting.calls[self.rank]
        sms = communicator.machine.wiring.inside.sms / communicator.devices[self.rank].spec.sms
        return ResourceDemand(math.inf, min(1.0, sms), _IDLE, urgent=True, paused=self)


def _one_sided(calls: Mapping[int, Collective]) -> str:
    """Say which rank of an exchange gives to one that takes from another, or takes from one; or nothing."""
    for rank, call in calls.items():
        pairs = [(end, calls[end].origin) for end in (call.to,) if end is not None]
        pairs += [(end, calls[end].to) for end in (call.origin,) if end is not None]
        for other, back in pairs:
            if back != rank:
                both = f"rank {rank} calls {call}, and rank {other} calls {calls[other]}"
                return f"ranks disagree: {both}"
    return ""


def _given(call: Collective) -> np.ndarray[Any, Any]:
    assert call.source is not None
    nbytes = call.count * call.dtype.itemsize
    return call.source.cells.data[:nbytes].view(call.dtype).copy()


def _result(calls: Sequence[Collective], place: int) -> np.ndarray[Any, Any] | None:
    """The values that the rank at this place gets."""
    call = calls[place]
    if call.what == "send" or call.target is None:
        return None
    if call.what == "recv":
        return _given(calls[1 - place])
    if call.what == "exchange":
        return None if call.origin is None else _given(calls[call.origin])
    if call.what == "broadcast":
        return _given(calls[call.root])
    if call.what == "all_gather":
        return np.concatenate([_given(other) for other in calls])
    total = reduce(_REDUCTIONS[call.reduce], [_given(other) for other in calls])
    return total if call.what == "all_reduce" else np.split(total, len(calls))[place]
