"""Pieces of work for a simulated device, each ready to be enqueued: once, or again and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from simgpu.common import HostBytes, as_element_type
from simgpu.errors import DeviceError, DeviceMismatchError, UsageError
from simgpu.memory import Memory
from simgpu.order import BufferAccess, Clock, History, HostHistory, HostUse, Tells
from simgpu.queues import ResourceDemand
from simgpu.spec import DeviceSpec
from simgpu.times import copy_time

Copying = Literal["memset", "h2d", "d2h", "d2d"]
Deciding = Literal["while_loop", "cond", "switch"]


@dataclass(frozen=True, eq=False, slots=True)
class EnginePiece:
    """One piece of work, with all that it needs but a stream."""

    kind: Literal["kernel", "memset", "h2d", "d2h", "d2d", "peer"]
    name: str  # as in its span
    cost: float  # what the host pays for the call, in us
    # Takes effect when the work starts, and says how long it takes. What it finds out is written into the
    # dictionary, for the span.
    begin: Callable[[dict[str, object]], ResourceDemand]
    writes: Sequence[Memory]
    reads: Sequence[Memory] = ()
    # Of its span, from the start.
    detail: dict[str, object] = field(default_factory=dict[str, object])
    # Takes effect when the work is done: it writes to `fills`.
    at_end: Callable[[], None] | None = None
    fills: HostBytes | None = None  # bytes of host memory
    fresh: Sequence[Memory] = ()  # what counts as just allocated when this begins
    # Bytes of pinned host memory that it reads, and that must not change until it has.
    lent: HostBytes | None = None
    tells: Tells | None = None  # how a kernel may hear of others while it runs
    # Called in place of `begin` where that is skipped.
    lost: Callable[[DeviceError], None] | None = None
    # By what it adds to those of `writes` that it does nothing else with: see `CompiledKernel.uses`.
    adds: Sequence[str] = ()
    # Asked when it is done: what comes next on its stream, before all else, and whether it then comes again.
    decides: Callable[[], tuple[Sequence[EnginePiece], bool]] | None = None

    # Of a collective: the parts of other ranks and their streams, which fork from its own and join it again.
    others: Sequence[tuple[Any, EnginePiece]] = ()


# What is moved within the device needs next to no places where it is little, and yet queues for one behind
# kernels whose blocks do not all have one: in recordings of an H200 fills wait for as long as kernels do.
# Where it is much, memory is all that it waits for, so that two at a time get half of that each.
_FILL = 1e-3  # of the device's places


def _copying(
    spec: DeviceSpec,
    kind: Copying,
    cost: float,
    nbytes: int,
    memories: tuple[list[Memory], list[Memory]],
    effect: Callable[[], None] | None = None,
    **more: Any,
) -> EnginePiece:
    """A copy, or a fill, which writes and reads these memories, and has its effect when it begins."""

    def begin(_: dict[str, object]) -> ResourceDemand:
        if effect is not None:
            effect()
        us = copy_time(spec, kind, nbytes)
        if kind in ("h2d", "d2h"):
            return ResourceDemand(us)
        moving = 1 - spec.fill_us / us  # the part of its time in which memory is busy with it
        part = _FILL if moving < 0.5 else moving
        return ResourceDemand(us, places=part, demand=part)

    return EnginePiece(kind, kind, cost, begin, *memories, {"bytes": nbytes}, **more)


def memset(spec: DeviceSpec, memory: object, value: int, nbytes: int) -> EnginePiece:
    """Set the first `nbytes` bytes to the low byte of `value`, as cudaMemset does."""
    target = _with_room(memory, nbytes)
    if not isinstance(value, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"memory is set to a whole number, whose low byte counts, and not to {value!r}"
        )
    low = int(value) & 0xFF

    def fill() -> None:
        target.cells.data[:nbytes] = low
        _written(target, nbytes)

    return _copying(spec, "memset", spec.call_memset_us, nbytes, ([target], []), fill)


def upload_piece(
    spec: DeviceSpec, memory: object, host: HostBytes, pinned: bool, staging_us: float = 0.0
) -> EnginePiece:
    """Copy a C-contiguous host array to the start of `memory`.

    Pageable memory is read now: the host copies it into a staging buffer, for `staging_us`.
    """
    source = _bytes_of(host)
    target = _with_room(memory, source.nbytes)
    if not pinned:
        source = source.copy()

    def write() -> None:
        target.cells.data[: source.nbytes] = source
        _written(target, source.nbytes)

    cost, lent = spec.call_h2d_us + staging_us, source if pinned else None
    piece = _copying(spec, "h2d", cost, source.nbytes, ([target], []), write, lent=lent)
    if not pinned:
        piece.detail["pageable"] = True
    return piece


def download(spec: DeviceSpec, host: HostBytes, memory: object) -> EnginePiece:
    """Copy the start of `memory` to a C-contiguous host array."""
    target = _bytes_of(host)
    if not target.flags.writeable:
        raise UsageError(
            "a copy to the host needs an array that can be written, and this one is read-only"
        )
    source = _with_room(memory, target.nbytes)

    def write() -> None:
        target[:] = source.cells.data[: target.nbytes]

    cost, memories = spec.call_d2h_us, (list[Memory](), [source])
    return _copying(spec, "d2h", cost, target.nbytes, memories, at_end=write, fills=target)


def device_copy(spec: DeviceSpec, target: object, source: object, nbytes: int) -> EnginePiece:
    """Copy within the device."""
    to, origin = _with_room(target, nbytes), _with_room(source, nbytes)

    def copy() -> None:
        _written(to, nbytes)
        to.cells.take(origin.cells, nbytes)

    # The spec has no constant for this call: to the host it is taken to cost what an upload does.
    return _copying(spec, "d2d", spec.call_h2d_us, nbytes, ([to], [origin]), copy)


def peer_copy_piece(
    spec: DeviceSpec, work: ResourceDemand, target: object, source: object, **detail: int
) -> EnginePiece:
    """Copy to the memory of another device, over links that do this work; `detail` has the `bytes`."""
    to, origin = _with_room(target, detail["bytes"]), _with_room(source, detail["bytes"])

    def begin(_: dict[str, object]) -> ResourceDemand:
        _written(to, detail["bytes"])
        to.cells.take(origin.cells, detail["bytes"])
        return work

    # As for a copy within the device, the spec has no constant for this call.
    return EnginePiece("peer", "peer copy", spec.call_h2d_us, begin, [to], [origin], {**detail})


def decision(
    spec: DeviceSpec, what: Deciding, memory: object, bodies: Sequence[Sequence[EnginePiece]]
) -> EnginePiece:
    """Read the whole number at the start of `memory`, and go on with one of the bodies, or with none.

    The number of a `switch` counts them; the others take the first where it is not 0, and a `cond` the second
    where it is. A `while_loop` asks again after its body.
    """
    number = as_memory(memory)
    parts = [piece for body in bodies for piece in body]

    def begin(found: dict[str, object]) -> ResourceDemand:
        us = spec.graph_turn_us if found.get("turn") else spec.graph_decide_us
        return ResourceDemand(us, places=_FILL, demand=_FILL)

    def decide() -> tuple[Sequence[EnginePiece], bool]:
        said = int(number.cells.data[:4].view(np.int32)[0])
        place = said if what == "switch" else int(said == 0)
        chosen = bodies[place] if 0 <= place < len(bodies) else ()
        return chosen, what == "while_loop" and place == 0

    reads = {id(m): m for m in (number, *(m for piece in parts for m in piece.reads))}
    writes = {id(m): m for piece in parts for m in piece.writes}
    each = list(writes.values()), list(reads.values())
    cost = math.fsum(piece.cost for piece in parts)  # to write them down, as outside of a body
    return EnginePiece("kernel", what.replace("_loop", ""), cost, begin, *each, decides=decide)


def on_host(piece: EnginePiece) -> list[HostUse]:
    """The parts of the host's memory that a piece of work touches."""
    talks, out = piece.tells, list[HostUse]()
    for writes, memories in ((False, piece.reads), (True, piece.writes)):
        for memory in memories:
            if (cells := memory.cells).mapped:
                alone = talks is None or not (talks.waits or memory.place in talks.by)
                out.append((cells.data, cells.name, writes, alone))
    if piece.lent is not None:
        out.append((piece.lent, piece.writes[0].cells.name, False, True))
    if piece.fills is not None:
        out.append((piece.fills, piece.reads[0].cells.name, True, True))
    return out


class Noted:
    """The bytes that some pieces of work touch: all are noted, or none if one of the pieces is refused."""

    def __init__(self, host: HostHistory) -> None:
        self._host, self._before = host, host.uses
        self._histories = dict[Memory, History]()

    def __enter__(self) -> Noted:
        return self

    def __exit__(self, refused: object, *_: object) -> None:
        if refused:
            self._host.uses = self._before
            return
        for memory, history in self._histories.items():
            memory.history = history

    def touch(
        self, piece: EnginePiece, shared: list[HostUse], access: BufferAccess, now: Clock
    ) -> None:
        """Add a piece: `StreamRaceError` if nothing orders it and an earlier one."""
        if piece.tells is not None:
            for memory in (*piece.reads, *piece.writes):
                for writer in self._of(memory).writers.values():
                    if not writer.reach.begun:
                        access.reach.behind.append(writer)
        for use in shared:
            self._host.touch(use, access, now)
        for memory in piece.reads:
            self._of(memory).read(memory.cells, access, now)
        for number, memory in enumerate(piece.writes):
            by = piece.adds[number] if piece.adds else ""
            self._of(memory).write(memory.cells, access, now, by)

    def _of(self, memory: Memory) -> History:
        if memory not in self._histories:
            self._histories[memory] = memory.history.copy()
        return self._histories[memory]


def as_memory(memory: object) -> Memory:
    """`memory`, if it is a simulated device's."""
    if not isinstance(memory, Memory):
        raise DeviceMismatchError(f"{memory!r} is not memory of a simulated device")
    return memory


def _with_room(memory: object, nbytes: int) -> Memory:
    """As `as_memory`, of which so many bytes are copied or set."""
    found = as_memory(memory)
    whole = isinstance(nbytes, int | np.integer)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or not 0 <= nbytes <= found.nbytes:
        text = f"{nbytes:,} bytes cannot be copied or set in {found.name!r}, which has {found.nbytes:,}"
        raise UsageError(text)
    return found


def _bytes_of(host: HostBytes) -> HostBytes:
    """The bytes of a host array, as they lie in its memory."""
    array = np.asarray(host)
    as_element_type(array.dtype, "an array")
    if not array.flags.c_contiguous:
        text = "a copy takes a host array that is C-contiguous, and this one is not"
        raise UsageError(f"{text}: np.ascontiguousarray(x) copies it into one")
    return array.reshape(-1).view(np.uint8)


def _written(memory: Memory, nbytes: int) -> None:
    memory.cells.mark_written(0, nbytes)
    if nbytes == memory.nbytes:
        memory.spoiled = None
