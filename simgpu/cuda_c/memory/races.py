"""The race detector: it remembers which thread touched what, and when.

Two threads that touch the same element, of which one writes, do so in either order on a GPU, unless a
barrier of their block or warp came between. The kernel is wrong even if it happens to print the right
numbers, and our threads run in one fixed order, so they always happen to. So we don't look at values. For
each element we keep who wrote it last and when, and who has read it since.

Time is the number of the memory access (`Team.clock`). A thread's last barrier is a time too, so "ordered"
is one comparison of whole arrays: the other access is older than the last barrier that both were at. A
table that each barrier clears would be the obvious way, and would cost a pass over all memory at each
barrier. Here a barrier clears nothing.

A full vector clock for each thread would know more, but a launch has thousands of threads, and each access
would compare as many numbers. Knowledge that goes another way than by barriers, by fences and flags, is
rare. It is kept apart (`messages`), and asked for only where the comparison has found a suspect. For an
element that several threads have read we keep only one of them, and how far apart they were (`_ONE` to
`_MANY`), because a later write only has to know whether a barrier parts it from all of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.cuda_c.memory.race_reports import NARROW, report_race

if TYPE_CHECKING:
    from simgpu.cuda_c.memory.regions import ByteRegion

Cells = Int64s
ThreadNumbers = Int64s
Changes: TypeAlias = Callable[[], Bits] | None
# A thread's number is its block's times 1024, plus its own: `>> 10` is its block, and `>> 5` its warp.
_NOBODY = -1
# This minus a reader stands for one before the last write, who concerns only those who don't know of that.
_BEHIND = -2
_ATOMIC, _VOLATILE = 2, 3  # of the device; it reaches as far
_ONE, _WARP, _BLOCK, _MANY = 1, 2, 3, 4  # how many have read an element in this interval


class Readers:
    """The last reads of each cell of a region, of one kind: plain or volatile."""

    def __init__(self, cells: int) -> None:
        self.who = np.full(cells, _NOBODY, np.int64)
        self.time = np.zeros(cells, np.int64)
        self.kinds = np.zeros(cells, np.uint8)  # at most `_ONE`: of nobody, or of one

    def note(self, a: MaskedAccess, cells: Cells) -> None:
        """Remember a read."""
        me, before = a.threads, self.who.take(cells)
        new, kinds = (before == me) | (before < 0), None
        if np.count_nonzero(~new) or np.count_nonzero(self.kinds.take(cells) > _ONE):
            kinds = self._merged(a, cells, me, before)
        self.who[cells] = me
        self.time[cells] = a.team.clock
        other = self.who.take(cells)
        clash = other != me  # several lanes on one cell, of which the last one is kept
        clashes = np.count_nonzero(clash)
        if kinds is None:
            if not clashes:
                return
            kinds = np.full(len(cells), _ONE, np.uint8)
        if clashes:
            kinds = np.maximum(kinds, np.where(clash, _relation(me, other), _ONE))
        # The marks go in this order, because of several lanes on one cell the gravest mark must stay.
        for kind in (_ONE, _WARP, _BLOCK, _MANY):
            chosen = kinds == kind
            if np.count_nonzero(chosen):
                self.kinds[cells[chosen]] = kind

    def _merged(
        self, a: MaskedAccess, cells: Cells, me: ThreadNumbers, before: ThreadNumbers
    ) -> NDArray[np.uint8]:
        kinds, when = self.kinds.take(cells), self.time.take(cells)
        # A barrier of all who read orders their reads before everything that this thread does from now on,
        # so its mark may replace theirs.
        settled = (kinds != _MANY) & (before >> 10 == me >> 10) & (when <= a.after_block_barrier)
        settled |= (kinds <= _WARP) & (before >> 5 == me >> 5) & (when <= a.after_warp_barrier)
        alone = ~settled & (kinds <= _ONE) & (before != me) & (before >= 0)
        settled |= _handed_over(a, alone, before, when)
        fresh = (before < 0) | settled
        same = (before == me) & (kinds <= _ONE)
        grown = np.maximum(kinds, _relation(me, before))
        return np.where(fresh | same, np.uint8(_ONE), grown).astype(np.uint8)


class Shadow:
    """The last write and the last reads of each cell of a region."""

    def __init__(self, memory: ByteRegion, cells: int) -> None:
        # Weakly, because the memory has this: see `Team.end`.
        self.memory: ByteRegion = weakref.proxy(memory)
        self.cells = cells
        self._writer: Int64s | None = None
        self._readers: list[Readers | None] = [None, None]  # plain and volatile

    def read(self, a: MaskedAccess, cells: Cells) -> None:
        """Check a read of these cells against the last writes, and remember it."""
        if self._writer is not None:
            writer = self._writer.take(cells)
            if np.count_nonzero((writer != a.threads) & (writer >= 0)):
                self._check_writer(a, cells, False, False, None)
        if a.site.volatile and a.site.polls:
            return  # the next look would meet whatever this one has missed
        readers = self._readers[a.site.volatile]
        if readers is None:
            readers = self._readers[a.site.volatile] = Readers(self.cells)
        readers.note(a, cells)

    def look(self, a: MaskedAccess, cells: Cells) -> None:
        """Check a volatile read of what the writer of a flag, once polled, wrote before: it takes fences."""
        if self._writer is None:
            return
        me, lanes, heard = a.threads, a.mask.index, a.team.heard
        writer, when = self._writer.take(cells), self._write_time.take(cells)
        other = (writer >= 0) & (writer != me)
        if heard is None:
            heard = a.team.heard = np.full((2, a.team.layout.lanes), _NOBODY)
        if a.site.polls:
            heard[:, lanes[other]] = writer[other], when[other]
            return
        bad = other & (writer == heard[0, lanes]) & (when < heard[1, lanes])
        bad &= ~_ordered(a, me, writer, when) & ~_handed_over(a, bad, writer, when)
        if bad.any():
            report_race(self.memory, a, bad, cells, writer, when, False, "writes")

    def write(self, a: MaskedAccess, cells: Cells, changes: Changes, atomic: bool) -> None:
        """Check a write to these cells against earlier accesses, and remember it.

        `changes` tells which lanes write something new, since two threads may write the same value; without
        it all do. Atomics and volatile accesses do not race with each other.
        """
        me = a.threads
        writer, same = self._writers().take(cells), None
        assert self._writer is not None
        if np.count_nonzero((writer != me) & (writer >= 0)):
            same = self._check_writer(a, cells, True, atomic, changes)
        plain = not atomic and not a.site.volatile
        for readers in self._readers:
            if readers is not None:
                reader = readers.who.take(cells)
                if same is not None:
                    reader = np.where(same, np.maximum(reader, _BEHIND - reader), reader)
                others = (reader != me) | (readers.kinds.take(cells) > _ONE)
                if np.count_nonzero(others & (reader >= 0)):
                    self._check_readers(a, cells, reader, atomic, readers)
                # Who comes after this write comes after those reads, because the write was held against them.
                # Where threads wait for each other by flags (`watches`), they are put behind it, because only
                # one reader is remembered, and who was told of the write by a message and not of that reader
                # would be held against it. Where order is by barriers, its time tells. Only a plain write
                # does this, because two atomics or volatile accesses are let off without any order.
                if a.team.launch.watches and plain:
                    readers.who[cells] = np.minimum(reader, _BEHIND - reader)
        self._writer[cells] = me
        if atomic and a.site.scope == 1:
            last = self._writer.take(cells)
            apart = last >> 10 != me >> 10
            if apart.any():
                report_race(self.memory, a, apart, cells, last, last, True, "updates atomically")
        self._write_time[cells] = a.team.clock
        self._strong[cells] = (a.site.scope or _ATOMIC) if atomic else _VOLATILE * a.site.volatile

    def arrive(self, cells: Cells, writers: ThreadNumbers, time: int) -> None:
        """Remember a write by a copy whose start was checked, and whose cells nobody may have used since."""
        self._writers()[cells] = writers
        self._write_time[cells] = time
        self._strong[cells] = 0

    def last_writes(self, cells: Cells) -> tuple[ThreadNumbers, Int64s] | None:
        """Who wrote last to each cell, below 0 if nobody did, and when."""
        if self._writer is None:
            return None
        return self._writer.take(cells), self._write_time.take(cells)

    def leave(self, cells: Cells, readers: ThreadNumbers, time: int) -> None:
        """Remember that copies for these threads have read cells until now."""
        if self._readers[0] is None:
            self._readers[0] = Readers(self.cells)
        known = self._readers[0]
        known.who[cells], known.time[cells] = readers, time

    def _writers(self) -> ThreadNumbers:
        """The last writer of each cell."""
        if self._writer is None:
            self._writer = np.full(self.cells, _NOBODY, np.int64)
            self._write_time = np.zeros(self.cells, np.int64)
            # By 0 a plain one, an atomic for the block (1) or the device, or a volatile one.
            self._strong = np.zeros(self.cells, np.uint8)
        return self._writer

    # -- the checks; they are slow, and run only where two threads met

    def _check_writer(
        self, a: MaskedAccess, cells: Cells, writes: bool, atomic: bool, changes: Changes
    ) -> Bits | None:
        """Report a race with the last write; tell who was let off because the value was there already."""
        assert self._writer is not None
        me, other = a.threads, self._writer.take(cells)
        when, how = self._write_time.take(cells), self._strong.take(cells)
        strong = (how > 0) & ((me >> 10 == other >> 10) | ((how > 1) & (a.site.scope != 1)))
        bad = (other >= 0) & (other != me) & ~_ordered(a, me, other, when)
        same = None
        if atomic:
            bad &= ~strong
        elif a.site.volatile:
            # Lanes of a warp aren't in step: one that takes what another has just written has to wait for it.
            step = (how == _VOLATILE) & (me >> 5 == other >> 5) & (not writes and not a.site.polls)
            if a.team.heard is not None:  # by polling
                who, then = a.team.heard[:, a.mask.index]
                step &= (who != other) | (then < when)
            bad &= ~strong | step
        elif writes and changes is not None and bad.any():
            same = bad & ~(changes() | strong)
            bad &= ~same
            same &= ~_handed_over(a, same, other, when)
        if bad.any():
            bad &= ~_handed_over(a, bad, other, when)
        if bad.any():
            k = int(bad.argmax())
            did = "updates atomically" if strong[k] else NARROW if how[k] == 1 else "writes"
            did = "writes as volatile" if how[k] == _VOLATILE else did
            report_race(self.memory, a, bad, cells, other, when, writes, did, atomic=atomic)
        return same

    def _check_readers(
        self, a: MaskedAccess, cells: Cells, other: ThreadNumbers, atomic: bool, readers: Readers
    ) -> None:
        me, volatile = a.threads, readers is self._readers[True]
        when, kinds = readers.time.take(cells), readers.kinds.take(cells)
        alone = (other == me) & (kinds <= _ONE)
        ordered = _ordered(a, me, other, when)
        # The one that is known may be a sibling of this thread, and the one that races of another block.
        across = (kinds == _MANY) & (other >> 10 == me >> 10) & (ordered | (other == me))
        # Reads by several threads are ordered only by a barrier of all of them: of the block, if it
        # holds them, and by none if other blocks read too.
        ordered &= (kinds != _MANY) & ((kinds != _BLOCK) | (when <= a.after_block_barrier))
        bad = (other >= 0) & ~alone & ~ordered
        if volatile and (atomic or a.site.volatile):
            near = (other >> 10 == me >> 10) & (kinds != _MANY)
            step = near & (other >> 5 == me >> 5) & (kinds <= _WARP)
            bad &= step & (not atomic) if a.site.scope != 1 else ~near
        if bad.any():
            bad &= ~_handed_over(a, bad, other, when)
        if bad.any() and a.team.launch.watches and not self.memory.shared:
            # Several blocks have read it. This thread has been told of one since, and the check trusts the
            # kernel that it has heard of all of them.
            bad &= ~_handed_over(a, bad & (kinds == _MANY), None, when)
        if bad.any():
            by_warp = bool((kinds[bad] <= _WARP).all())
            did = "reads as volatile" if volatile else "reads"
            other, far = np.where(across, me, other), bool(across[bad.argmax()])
            report_race(self.memory, a, bad, cells, other, when, True, did, by_warp, atomic, far)


def _handed_over(a: MaskedAccess, asked: Bits, other: Any, when: Any) -> Bits:
    """Tell for those lanes that are asked whether they know of what another thread (None: any) did.

    See `messages`. The check trusts the kernel to use what it has found.
    """
    out = np.zeros(len(asked), np.bool_)
    at = np.flatnonzero(asked) if a.team.lanes is not None else out.nonzero()[0]
    if len(at):
        theirs = None if other is None else other[at]
        out[at] = a.team.launch.messages.told(a.team, a.mask.index[at], theirs, when[at])
    return out


def _ordered(a: MaskedAccess, me: Any, other: Any, when: Any) -> Bits:
    """Tell for each lane whether a barrier orders it behind what another thread did at a time."""
    by_block = (me >> 10 == other >> 10) & (when <= a.after_block_barrier)
    same_warp = me >> 5 == other >> 5
    if a.team.met is not None:
        by_block |= same_warp & (when <= a.team.met[0][a.mask.index, other & 31])
    return by_block | (same_warp & (when <= a.after_warp_barrier))


def _relation(me: Int64s, other: Int64s) -> NDArray[np.uint8]:
    kinds = np.full(len(me), _MANY, np.uint8)
    kinds[me >> 10 == other >> 10] = _BLOCK
    kinds[me >> 5 == other >> 5] = _WARP
    kinds[me == other] = _ONE
    return kinds
