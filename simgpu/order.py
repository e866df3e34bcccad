"""The order between pieces of work: vector clocks over streams, and the races that they reveal.

A program that forgets an event usually works: its kernels happen to run in the right order, until a faster
GPU or a larger input turns them round. So we don't ask when two pieces of work ran. We ask whether anything
in the program forces their order, and call it a race if nothing does, even in a run whose numbers are
right.

Order comes from a stream, from an event that carries it to another stream, and from the host, when it has
seen one piece complete before it enqueues the next. These chain: if B waits for A and C waits for B, C
comes after A. That's why a note of each array's last stream isn't enough. Each stream has a vector clock
instead, which says how many pieces of every other stream come before its next one. An event is a copy of a
clock, and waiting for it is a merge. (Vector clocks: Fidge, 1988; Mattern, 1989. Their use for data races:
Flanagan and Freund, "FastTrack", PLDI 2009.)

Clocks know nothing of kernels that talk while both run. If one of two kernels has a loop that waits, and
both access some array by atomics or as volatile, we trust that they agree between themselves, because
refusing would forbid every such program. Two more pairs are let through: both only add whole numbers to an
array by one kind of atomic, or they touch different bytes. A run on copies tells which bytes those are. Where
data decides that, and is yet to come, we let a launch through, and compare what it touched when it has run.
Any new way to order work has to tick or merge a clock, or sound programs will be refused.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simgpu.common import Caller, HostBytes
from simgpu.cuda_c import GlobalMemory
from simgpu.errors import HostBufferError, StreamRaceError

_Key = tuple[int, int]  # device, stream
# Bytes of the host that a piece of work touches: the name of the memory, whether they are written, and
# whether the host leaves them alone meanwhile, and does not talk to a kernel by them.
HostUse = tuple[HostBytes, str, bool, bool]
Bytes = Mapping[int, NDArray[np.uint8]]  # of memories, by their `id`: a bit for each
# Accesses of a memory that are remembered one by one, behind the latest ones.
_MOST_EARLIER = 16


class Clock:
    """A point in time, as the amount of each stream's work that is known to come before it."""

    __slots__ = ("_seen",)

    def __init__(self, seen: dict[_Key, int] | None = None) -> None:
        self._seen = dict(seen or {})

    def copy(self) -> Clock:
        """A snapshot."""
        return Clock(self._seen)

    def merge(self, other: Clock) -> None:
        """All that comes before `other` comes before this point too."""
        for key, count in other._seen.items():
            if count > self._seen.get(key, 0):
                self._seen[key] = count

    def add(self, access: BufferAccess) -> None:
        """An access comes before this point, and all that its stream did before it."""
        self._seen[access.key] = max(access.count, self._seen.get(access.key, 0))

    def keep(self, key: _Key, other: Clock) -> None:
        """All of one stream's work that comes before `other` comes before this point too."""
        if key in other._seen:
            self._seen[key] = other._seen[key]

    def tick(self, key: _Key) -> int:
        """One more piece of work on a stream; its number."""
        count = self._seen[key] = self._seen.get(key, 0) + 1
        return count

    def follows(self, other: Clock) -> bool:
        """True if all that comes before `other` comes before this point too."""
        return all(self._seen.get(key, 0) >= count for key, count in other._seen.items())

    def covers(self, access: BufferAccess) -> bool:
        """True if an access comes before this point."""
        return self._seen.get(access.key, 0) >= access.count


@dataclass(frozen=True, slots=True)
class Tells:
    """The ways in which a kernel may hear of others while it runs, or tell them."""

    waits: bool  # whether it has a loop that may wait
    by: frozenset[int]  # the memories (by address) that it accesses by atomics or as volatile
    # The bytes that it would touch now, and those that it touched when it ran last; if data decides which.
    would: Callable[[], Bytes] = dict
    did: Callable[[], Bytes] = dict
    chosen: Callable[[], bool] = bool


@dataclass(eq=False, slots=True)
class _Reach:
    """The bytes that one launch touches, as far as that is known before it begins."""

    bytes: Bytes | None = None
    begun: bool = False
    # Others that should touch other bytes: of which memory, what they do with it, and what it does.
    beside: list[tuple[BufferAccess, GlobalMemory, str, str]] = field(
        default_factory=list["tuple[BufferAccess, GlobalMemory, str, str]"]
    )
    behind: list[BufferAccess] = field(default_factory=list["BufferAccess"])  # what wrote its data


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """One piece of work that touches an array."""

    # `key` and `count`: its stream, and its number there.
    key: _Key
    count: int
    what: str  # for messages
    tells: Tells | None = None  # how it may hear of others while it runs, if it is a kernel
    group: int | None = None  # of its calls
    caller: Caller = Caller()  # noqa: RUF009 - it has no state
    reach: _Reach = field(default_factory=_Reach, compare=False)

    def agrees(self, other: BufferAccess) -> bool:
        """True if two kernels that run side by side may order what they do themselves."""
        a, b = self.tells, other.tells
        return a is not None and b is not None and (a.waits or b.waits) and bool(a.by & b.by)

    def touched(self, memory: GlobalMemory) -> NDArray[np.uint8] | None:
        """The bytes of a memory that it touches, as bits, as far as that is known; None if it isn't."""
        reach = self.reach
        if reach.bytes is None:
            reach.bytes = {} if self.tells is None else self.tells.would()
        return reach.bytes.get(id(memory))

    @property
    def open(self) -> bool:
        """True if data that is yet to come decides which bytes it touches."""
        reach, tells = self.reach, self.tells
        waits = tells is not None and not all(other.reach.begun for other in reach.behind)
        return waits and tells is not None and tells.chosen()

    def apart(self, other: BufferAccess, memory: GlobalMemory) -> bool:
        """True if two kernels touch no byte of a memory in common, as far as that is known."""
        known = [one.touched(memory) for one in (self, other) if not one.open]
        both = [bits for bits in known if bits is not None]
        return len(both) == len(known) and (len(both) < 2 or not (both[0] & both[1]).any())

    def begins(self) -> None:
        """It has what it reads: `StreamRaceError` if it touches the bytes of another that runs beside it."""
        reach = self.reach
        reach.begun, beside, reach.beside, reach.behind = True, reach.beside, [], []
        if self.tells is None:
            return
        reach.bytes = self.tells.did()
        for other, memory, did, does in beside:
            if other.reach.begun and not self.apart(other, memory):
                raise _race(f"array {memory.name!r}", other, did, self, does)


# An access, what it did, and the atomic by which it added, if that was all.
_Earlier = tuple[BufferAccess, str, str]


@dataclass(slots=True)
class History:
    """The accesses that wrote an array last or add to it, those that have read it since, and earlier ones."""

    # By the atomic by which they add, if that is all, and their stream.
    writers: dict[tuple[str, _Key], BufferAccess] = field(
        default_factory=dict[tuple[str, _Key], BufferAccess]
    )
    readers: dict[_Key, BufferAccess] = field(default_factory=dict[_Key, BufferAccess])
    # Those whose place others have taken, and may have touched other bytes. The last of still earlier ones.
    earlier: list[_Earlier] = field(default_factory=list[_Earlier])
    lost: dict[_Key, int] = field(default_factory=dict[_Key, int])

    def copy(self) -> History:
        """Another one, to note in it what may yet be refused."""
        return History({**self.writers}, {**self.readers}, [*self.earlier], {**self.lost})

    def read(self, memory: GlobalMemory, access: BufferAccess, now: Clock) -> None:
        """Note a read; `StreamRaceError` if it may overtake the last write."""
        if self.writers:
            writers = [(writer, "writes", by) for (by, _), writer in self.writers.items()]
            self._unordered(memory, writers, access, now, "reads")
        if (key := access.key) in self.readers:
            self._replaced((self.readers[key], "reads", ""))
        self.readers[key] = access

    def write(self, memory: GlobalMemory, access: BufferAccess, now: Clock, by: str = "") -> None:
        """Note a write; `StreamRaceError` if it may overtake an earlier read or write.

        `by` is the atomic by which it adds to the array, if that is all that it does with it: those who add
        by the same one may overtake each other.
        """
        found = [(writer, "writes", how) for (how, _), writer in self.writers.items()]
        found += [(reader, "reads", "") for reader in self.readers.values()]
        left = self._unordered(memory, found, access, now, "writes", by) if found else []
        if not by:
            for one in found:
                if one not in left:
                    self._replaced(one)
            self.writers = {(how, one.key): one for one, did, how in left if did == "writes"}
            self.readers = {one.key: one for one, did, _ in left if did == "reads"}
        if (place := (by, access.key)) in self.writers:
            self._replaced((self.writers[place], "writes", by))
        self.writers[place] = access

    def _replaced(self, one: _Earlier) -> None:
        self.earlier.append(one)
        if len(self.earlier) > _MOST_EARLIER:
            access = self.earlier.pop(0)[0]
            self.lost[access.key] = max(access.count, self.lost.get(access.key, 0))

    def _unordered(
        self,
        of: GlobalMemory,
        those: list[_Earlier],
        access: BufferAccess,
        now: Clock,
        does: str,
        by: str = "",
    ) -> list[_Earlier]:
        """Those that are not ordered before this: a race unless they, and earlier ones, touch other bytes."""

        def free(one: BufferAccess, did: str, how: str) -> bool:
            added = by and how == by
            return added or did == does == "reads" or now.covers(one) or one.agrees(access)

        left = [one for one in those if not now.covers(one[0]) and not free(*one)]
        if left and not now.follows(Clock(self.lost)):
            raise _race(f"array {of.name!r}", left[0][0], left[0][1], access, does)
        for one, did, how in [*left, *self.earlier] if left else ():
            if not free(one, did, how):
                if not one.apart(access, of):
                    raise _race(f"array {of.name!r}", one, did, access, does)
                access.reach.beside.append((one, of, did, does))
                if not one.reach.begun:
                    one.reach.beside.append((access, of, does, did))
        return left


@dataclass(frozen=True, slots=True)
class _HostUse:
    access: BufferAccess
    writes: bool
    alone: bool  # whether the host has to leave them alone meanwhile
    # `start` and `stop`: addresses; and whose they are, which may go meanwhile.
    start: int
    stop: int
    owner: weakref.ref[HostBytes]

    def shares(self, array: HostBytes, chosen: NDArray[np.bool_] | None) -> bool:
        """True if an array, which may have strides, or its `chosen` elements have a byte of these."""
        owner = self.owner()
        if owner is None:
            return False
        if chosen is not None:
            begins = array.__array_interface__["data"][0]
            places = begins + np.argwhere(chosen) @ np.asarray(array.strides, np.int64)
            return bool(((places < self.stop) & (places + array.itemsize > self.start)).any())
        begins = owner.__array_interface__["data"][0]
        mine = np.ndarray(self.stop - self.start, np.uint8, owner, self.start - begins)
        return np.shares_memory(mine, array)


class HostHistory:
    """The accesses to bytes of the host that the host has not yet seen complete.

    Arrays of the host are cut into chunks at will, so that addresses tell them apart and not objects.
    """

    def __init__(self) -> None:
        self.uses: tuple[_HostUse, ...] = ()

    def touch(self, used: HostUse, access: BufferAccess, now: Clock) -> None:
        """Note that a device reads or writes a contiguous array; `StreamRaceError` as for a `History`."""
        array, name, writes, alone = used
        # A slice is gone after its statement, so we hold on to the array that owns the bytes.
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        start = array.__array_interface__["data"][0]
        use = _HostUse(access, writes, alone, start, start + array.nbytes, weakref.ref(owner))
        self.uses = tuple([other for other in self.uses if other.owner() is not None])
        for other in self.uses:
            apart = use.stop <= other.start or other.stop <= use.start
            ordered = now.covers(other.access) or other.access.agrees(access)
            if apart or not (writes or other.writes) or ordered:
                continue
            did, does = ("writes" if u.writes else "reads" for u in (other, use))
            raise _race(f"the host array of {name!r}", other.access, did, access, does)
        self.uses += (use,)

    def look(self, array: HostBytes, chosen: NDArray[np.bool_] | None) -> None:
        """The host reads an array, or elements of it: `HostBufferError` if a device may be writing there."""
        for use in self.uses:
            if use.writes and use.alone and use.shares(array, chosen):
                raise HostBufferError(
                    f"the host reads an array that {use.access.what} may still be writing: wait for that "
                    "first, by await, sync() or stream.synchronize(), and read then"
                )

    def forget(self, seen: Clock) -> None:
        """All this work is complete, and whatever comes from now on is behind it."""
        if self.uses:
            self.uses = tuple([use for use in self.uses if not seen.covers(use.access)])


def _race(
    what: str, first: BufferAccess, did: str, second: BufferAccess, does: str
) -> StreamRaceError:
    alike = first.group is not None and first.group == second.group
    return StreamRaceError(
        f"race on {what}: {first.what} {did} it, {second.what} {does} it, and nothing orders the "
        f"two, so on a GPU the result depends on luck. {second.caller.race_advice(alike)}"
    )
