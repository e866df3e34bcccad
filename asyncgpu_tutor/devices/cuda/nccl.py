"""Groups of GPUs, through NCCL as CuPy knows it.

A rank's part of a collective is a kernel that waits on its GPU for those of the others. While it waits, it
may hold up a host that allocates memory, so that the others never come, and both wait forever. NCCL
therefore wants the parts of all ranks of a process in one call. But our ranks are separate operations, each
submitted when it pleases.

So ranks of one process meet on the host first, each on a thread of its own: nothing of a collective is
enqueued before all of it can be, and a rank that does not come leaves no GPU waiting. Time limits on the
GPU would come too late, because a kernel that already waits can only be aborted, and its communicator with
it.

With one process for each GPU there is nobody to meet. A part that does not end in time is aborted, by which
its GPU goes on, and whoever waits for it gets an error.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cupy.cuda import runtime

from asyncgpu_tutor.devices.cuda.device import CupyDevice
from asyncgpu_tutor.devices.cuda.graph_nodes import collective_facts
from asyncgpu_tutor.devices.cuda.journal import call_together
from asyncgpu_tutor.devices.cuda.stream import CupyEvent, CupyStream
from asyncgpu_tutor.devices.event_loop import in_a_loop
from asyncgpu_tutor.devices.protocol import CollectiveCall, Device, DeviceMemory, submitting_nothing
from asyncgpu_tutor.errors import (
    CollectiveError,
    DeviceError,
    DeviceMismatchError,
    DeviceUnavailableError,
    UsageError,
)

MEETING_S = 5.0  # for how long a rank waits on the host for the others
_PATIENCE_S = 30.0  # for how long a GPU waits for those of other processes, whose hosts may be busy
_LOOK_S = 0.25

RankPart = tuple[CollectiveCall, Any]  # with a stream of ours


def load_nccl() -> Any:
    """CuPy's NCCL; `DeviceUnavailableError` says how to get the library."""
    from cupy.cuda import nccl

    if nccl.available:
        return nccl
    found = importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for library in Path(folder).glob("nccl/lib/libnccl.so*"):  # where pip puts it
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    try:
        return importlib.import_module("cupy_backends.cuda.libs.nccl")
    except ImportError as error:
        raise DeviceUnavailableError(
            f"a group of GPUs needs NCCL, and it cannot be loaded ({error}): pip install nvidia-nccl-cu12, "
            "or nvidia-nccl-cu13 for CUDA 13"
        ) from error


_communicators: weakref.WeakSet[NcclCommunicator] = weakref.WeakSet()  # all of this process


class NcclCommunicator:
    """Ranks of one process, or one rank of several processes."""

    def __init__(self, nccl: Any, ranks: dict[int, Any], size: int) -> None:
        self._nccl, self._size = nccl, size
        self._ranks = ranks  # NCCL's communicators of this process
        self._broken = self._aborted = ""
        self._changed = threading.Condition()
        _communicators.add(self)
        self._joined: Counter[tuple[int, tuple[int, int] | None]] = Counter()
        self._meetings: dict[tuple[tuple[int, int] | None, int], _NcclMeeting] = {}
        self._watched: list[tuple[CupyEvent, CollectiveCall, float]] = []
        self._watcher: threading.Thread | None = None
        self._urgent: dict[int, CupyStream] = {}  # by rank
        self._sides: dict[int, tuple[CupyStream, CupyEvent]] = {}

    @property
    def broken(self) -> str:
        return self._broken or self._aborted

    def enqueue(self, parts: Sequence[RankPart], ranks: int) -> None:
        """Enqueue the parts of these ranks; where others of this process are missing, when they are there."""
        if self._broken:
            raise CollectiveError(self._broken)
        if len(parts) == ranks:
            self._call(parts)
        elif len(self._ranks) == 1:
            self._call(parts)
            self._watch(*parts[0])
        else:
            with submitting_nothing():
                self._meet(parts[0], ranks)

    def fail(self, message: str) -> None:
        with self._changed:
            self._broken = self._broken or message
            self._changed.notify_all()

    def check(self) -> None:
        """Raise what a GPU gave up waiting for."""
        if self._aborted:
            raise CollectiveError(self._aborted)

    # ------------------------------------------------------------------ ranks of one process
    def _meet(self, part: RankPart, ranks: int) -> None:
        call = part[0]
        with self._changed:
            key = call.ends, self._joined[call.rank, call.ends]
            self._joined[call.rank, call.ends] += 1
            meeting = self._meetings.setdefault(key, _NcclMeeting())
            meeting.parts.append(part)
            if len(meeting.parts) == ranks:
                del self._meetings[key]
                self._call(meeting.parts)
                meeting.over = True
                self._changed.notify_all()
                return
            if in_a_loop():
                self._broken = f"rank {call.rank} could not wait for others in {call}"
                raise UsageError(
                    f"{call}: on GPUs the ranks of one process meet on the host, and this thread runs an "
                    "event loop that would stand still. Let agt.cluster('cuda') run the ranks' operations, "
                    "or give one call the arrays of all ranks, as in group.all_reduce([x, y])"
                )
            self._changed.wait_for(lambda: meeting.over or self._broken, MEETING_S)
            if not meeting.over and not self._broken:
                there = ", ".join(f"rank {c.rank} with {c}" for c, _ in meeting.parts)
                busy = "".join(
                    f"; {stream.device.name} waits in {c}"
                    + " of another group" * (other is not self)
                    for other in _communicators
                    for m in other._meetings.values()
                    for c, stream in m.parts
                    if m is not meeting
                )
                self._broken = (
                    f"{there} waited {MEETING_S:.0f} s for {ranks - len(meeting.parts)} more{busy}"
                )
                self._changed.notify_all()
            if not meeting.over:
                raise CollectiveError(self._broken)

    # ------------------------------------------------------------------ NCCL
    def _call(self, parts: Sequence[RankPart]) -> None:
        recorded = [(stream, call) for call, stream in parts if stream.device.journal is not None]
        if recorded:
            size = self._size
            spans = [(s, call.what, collective_facts(call, size)) for s, call in recorded]
            call_together(spans, lambda: self._group(parts))
        else:
            self._group(parts)

    def _group(self, parts: Sequence[RankPart]) -> None:
        lanes = [self._lane(call.rank, stream) for call, stream in parts]
        try:
            self._issue([(call, lane.ptr) for (call, _), lane in zip(parts, lanes, strict=True)])
        finally:
            for (_, stream), lane in zip(parts, lanes, strict=True):
                _follow(stream, lane)

    def _lane(self, rank: int, stream: CupyStream) -> CupyStream:
        """An urgent stream that goes on from here."""
        # Elsewhere a part has no place while blocks of a product wait for theirs, and the other GPU's part
        # stands on its multiprocessors until then.
        if stream.urgent:
            return stream
        if rank not in self._urgent:
            self._urgent[rank] = stream.device.create_stream(urgent=True)
        _follow(self._urgent[rank], stream)
        return self._urgent[rank]

    def together(self, parts: Sequence[CollectiveCall], stream: int) -> None:
        """All parts in one call, for a replay: the first on the stream with this address, others beside it.

        Where that stream is captured, the work of all GPUs gets into one graph.
        """
        first, *others = [self._side(part) for part in parts]
        runtime.eventRecord(first[1].ptr, stream)
        for side, _ in others:
            runtime.streamWaitEvent(side.ptr, first[1].ptr)
        self._issue([(parts[0], stream), *zip(parts[1:], [s.ptr for s, _ in others], strict=True)])
        for side, event in others:
            runtime.eventRecord(event.ptr, side.ptr)
            runtime.streamWaitEvent(stream, event.ptr)

    def _side(self, part: CollectiveCall) -> tuple[CupyStream, CupyEvent]:
        """A stream and an event for what `together` does with a rank."""
        if part.rank not in self._sides:
            memory: Any = part.source or part.target
            with memory.device.active():
                side = memory.device.create_stream(urgent=True)
                self._sides[part.rank] = side, CupyEvent(side)
        return self._sides[part.rank]

    def _issue(self, parts: Sequence[tuple[CollectiveCall, int]]) -> None:
        """Make one call of NCCL's, with the parts of ranks and the addresses of their streams."""
        nccl = self._nccl
        try:
            nccl.groupStart()
            for part, stream in parts:
                self._one(part, stream)
            nccl.groupEnd()
        except nccl.NcclError as error:
            raise DeviceError(f"NCCL refuses {parts[0][0]}: {error}") from error

    def _one(self, call: CollectiveCall, where: int) -> None:
        communicator, nccl = self._ranks[call.rank], self._nccl
        kind = getattr(nccl, f"NCCL_{_name(call.dtype)}")
        how = getattr(nccl, f"NCCL_{call.reduce.upper()}")
        give, take = _address(call.source), _address(call.target)
        count = call.count
        if call.what == "all_reduce":
            communicator.allReduce(give, take, count, kind, how, where)
        elif call.what == "all_gather":
            communicator.allGather(give, take, count, kind, where)
        elif call.what == "reduce_scatter":
            communicator.reduceScatter(give, take, count // self._size, kind, how, where)
        elif call.what == "broadcast":
            communicator.broadcast(give, take, count, kind, call.root, where)
        else:
            if call.to is not None:
                communicator.send(give, count, kind, call.to, where)
            if call.origin is not None:
                communicator.recv(take, count, kind, call.origin, where)

    # ------------------------------------------------------------------ one rank of several processes
    def _watch(self, call: CollectiveCall, stream: Any) -> None:
        with self._changed:
            self._watched.append((stream.record(), call, time.monotonic() + _PATIENCE_S))
            if self._watcher is None:
                self._watcher = threading.Thread(
                    target=self._look, name="asyncgpu nccl", daemon=True
                )
                self._watcher.start()
            self._changed.notify_all()

    def _look(self) -> None:
        while not self._broken:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._watched))
                event, call, until = self._watched[0]
            if event.done:
                self._watched.pop(0)
            elif time.monotonic() > until:
                self._aborted = (
                    f"rank {call.rank} waited {_PATIENCE_S:.0f} s in {call} for ranks of other processes: "
                    "they called something else, or nothing"
                )
                self.fail(self._aborted)
                self._ranks[call.rank].abort()  # whatever waits on the GPU ends
            else:
                time.sleep(_LOOK_S)


class _NcclMeeting:
    """One collective that some ranks of this process have come to."""

    def __init__(self) -> None:
        self.parts: list[RankPart] = []
        self.over = False


def _follow(stream: CupyStream, other: CupyStream) -> None:
    """Put what comes on a stream behind all that is on another one by now."""
    if stream is not other:
        stream.wait_event(other.record())


@cache  # NumPy works out a name anew each time
def _name(dtype: Any) -> str:
    return str(dtype.name).upper().replace("BOOL", "UINT8")


def _address(memory: DeviceMemory | None) -> int:
    return 0 if memory is None else memory.ptr


def _own(devices: Sequence[Device]) -> list[CupyDevice]:
    found = [device for device in devices if isinstance(device, CupyDevice)]
    if len(found) < len(devices):
        raise DeviceMismatchError(
            f"NCCL connects GPUs, and got {', '.join(d.name for d in devices)}"
        )
    return found


def open_nccl_group(devices: Sequence[Device]) -> NcclCommunicator:
    """A communicator of GPUs of this process."""
    nccl, own = load_nccl(), _own(devices)
    with own[0].active():
        made: list[Any] = _attempt(
            nccl, lambda: nccl.NcclCommunicator.initAll([device.ordinal for device in own])
        )
    return NcclCommunicator(nccl, dict(enumerate(made)), len(own))


def new_id() -> Any:
    """Name by which ranks of several processes find each other; one of them makes it."""
    return load_nccl().get_unique_id()


def open_nccl_rank(device: Device, rank: int, size: int, name: Any) -> NcclCommunicator:
    """One rank of a communicator of several processes; returns when all are there."""
    nccl, (own,) = load_nccl(), _own([device])
    with own.active():
        made = _attempt(nccl, lambda: nccl.NcclCommunicator(size, name, rank))
    return NcclCommunicator(nccl, {rank: made}, size)


def _attempt(nccl: Any, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except nccl.NcclError as error:
        raise DeviceError(
            f"NCCL cannot connect these GPUs: {error}. NCCL_DEBUG=WARN in the environment says why"
        ) from error
