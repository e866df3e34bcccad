"""Asynchronous copies: whose are under way to and from each word, and who knows that one has arrived.

A thread starts a copy and goes on. Until somebody has waited for it, its target holds neither what was there
nor what is coming, and its source must not change. A GPU lets a kernel get away with a forgotten wait most of
the time, because copies are fast. Here such a kernel has to fail every time, with its line.

So the bytes are copied at once, and each word of 4 bytes remembers a mark: whose copy it is, and in which
group. Groups of one owner arrive in order. That makes "is it under way?" one comparison of whole arrays: the
group is later than the last one for which its owner has waited. A wait raises a counter and touches no word.
An owner is a thread with the groups that it commits, or a barrier with its phases (`phases`).

To let the bytes arrive late instead would be the obvious way. But old bytes show a mistake only where they
differ from the new ones and somebody checks the result; they don't tell a line; and a queue of copies for
each of thousands of threads is slow.

That a copy has arrived isn't enough, one also has to know. It writes at some moment between its start and the
wait, so the race detector hears of it at both ends. The first write is its thread's, and finds who still
reads the buffer. The second one is its thread's, too, if that thread has waited for its own group: others
need a barrier behind that. If a barrier counts the copy, it's a write by nobody (`COUNTED_COPY`), and only
threads that waited for the phase have been told of it. What would break all this is a group number that goes
down, or an owner whose number is given to another one while there are marks of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, Mask, Team, by_lane, varies
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.errors import RaceError

if TYPE_CHECKING:
    from simgpu.cuda_c.memory.phases import PhasedBarrier
    from simgpu.cuda_c.memory.regions import ByteRegion

_BITS = 32  # of a mark that are the number of a group; those above are the owner's
_GROUP = (1 << _BITS) - 1
# A thread is three owners: of its copies, and of its bulk copies from shared memory, which have read what
# they copy first, and have written it later.
OWN, BULK_READ, BULK_WRITTEN = range(3)
_KEPT_GROUPS = 16  # of a warp, whose times are known: nobody has more under way


class CopyMarks:
    """The marks of one memory: the last copy to each word, and from it if the kernel may write there."""

    def __init__(self, region: ByteRegion) -> None:
        self.words = -(-region.data.size // 4)
        self.into = np.zeros(self.words, np.int64)
        self.out_of: Int64s | None = None
        self.parts = 0  # of a block's memory, those to which copies may be under way (`near`)


@dataclass
class OwnedCopy:
    """Who counts a copy, for each of its lanes, or for all of a team."""

    owners: Int64s
    groups: Int64s
    writers: Int64s  # the threads that are known to have written once it has arrived

    def of(self, rows: NDArray[Any]) -> OwnedCopy:
        """The part of it that some rows are."""
        return OwnedCopy(self.owners[rows], self.groups[rows], self.writers[rows])


@dataclass(eq=False)
class Flight:
    """One copy by several lanes, a row each."""

    access: MaskedAccess  # by which it started
    region: ByteRegion
    words: Int64s
    lanes: Int64s
    by: OwnedCopy
    parts: int
    reads: bool  # whether this is the reading half of a copy, of which only the source matters

    def of(self, rows: Bits) -> Flight:
        """The part of it that some rows are."""
        part = {"words": self.words[rows], "lanes": self.lanes[rows], "by": self.by.of(rows)}
        return replace(self, **part)


class Copies:
    """All asynchronous copies of one launch."""

    def __init__(self) -> None:
        # By owner: how many groups it has committed, and how many of them have arrived. Nobody is owner 0.
        self.committed, self.done = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.under_way: list[Flight] = []
        self.bound: OwnedCopy | None = None  # of the copy at hand; else it is its thread's own
        self.counted: dict[int, PhasedBarrier] = {}  # the barriers that are owners
        self._first: dict[Team, int] = {}
        # For each warp of a team: how far it was when it closed each of its last groups that has copies; and
        # whether the one at hand has.
        self._closed: dict[Team, tuple[NDArray[np.float64], Bits]] = {}
        self._fenced: dict[Team, Int64s] = {}
        # Owners that can be used again, by how many there are.
        self._free: dict[int, list[int]] = {}

    def owners(self, count: int) -> int:
        """Numbers for so many owners, the first of them."""
        free = self._free.get(count)
        if free:
            return free.pop()
        first = len(self.done)
        more = np.zeros(count, np.int64)
        self.committed = np.concatenate((self.committed, more))
        self.done = np.concatenate((self.done, more))
        return first

    def threads(self, team: Team) -> int:
        """The owner that the first lane of a team is; the others follow."""
        first = self._first.get(team)
        if first is None:
            first = self._first[team] = self.owners(3 * team.layout.lanes)
        return first

    def own(self, team: Team, kind: int) -> OwnedCopy:
        """The owners that the lanes of a team are, for copies of a kind that they start now."""
        mine = self._mine(team, team.layout.index, kind)
        return OwnedCopy(mine, self.committed[mine] + 1, team.thread_id)

    def _mine(self, team: Team, lanes: Int64s, kind: int) -> Int64s:
        return self.threads(team) + kind * team.layout.lanes + lanes

    def fenced(self, team: Team) -> Int64s:
        """When each lane last had a fence between what it writes and what copies read."""
        if team not in self._fenced:
            self._fenced[team] = np.full(team.layout.lanes, -1, np.int64)
        return self._fenced[team]

    # -- what a thread says

    def commit(self, team: Team, mask: Mask, kind: int = OWN) -> None:
        """These lanes close a group: all copies that they have started since the last one."""
        mine = self._mine(team, mask.index, kind)
        self.committed[mine] += 1
        if kind == OWN and team in self._closed:
            closed, filled = self._closed[team]
            here = np.flatnonzero(filled & mask.warps)
            place = here, _last(mask, self.committed[mine])[here]
            closed[place] = team.meter.progress()[here]
            filled[here] = False

    def wait_prior(self, team: Team, mask: Mask, left: Any, kind: int = OWN) -> None:
        """These lanes wait until at most so many of their last groups are under way."""
        mine = self._mine(team, mask.index, kind)
        arrived = np.maximum(self.done[mine], self.committed[mine] - mask.take(left))
        if (arrived > self.done[mine]).any():
            if kind == OWN and team in self._closed:  # what is left of their trips is paid for
                closed = self._closed[team][0]
                place = np.arange(team.layout.warps), _last(mask, arrived)
                team.meter.late(mask.warps, closed[place])
                closed[place] = np.where(mask.warps, -np.inf, closed[place])
            self.done[mine] = arrived
            self.land(team)

    def land(self, team: Team) -> None:
        """Tell the race detector of the copies that have arrived now."""
        team.clock += 1
        mine = [flight for flight in self.under_way if flight.access.team is team]
        rest = [flight for flight in self.under_way if flight.access.team is not team]
        touched: dict[int, ByteRegion] = {}
        for flight in mine:
            here = flight.by.groups <= self.done[flight.by.owners]
            if here.any():
                landed = flight if here.all() else flight.of(here)
                writers = np.repeat(landed.by.writers, landed.words.shape[1])
                land = flight.region.left if flight.reads else flight.region.landed
                land(team, landed.words.reshape(-1), writers, flight.parts)
                touched[id(flight.region)] = flight.region
            if not here.all():
                rest.append(flight.of(~here) if here.any() else flight)
        self.under_way = rest
        for region in touched.values():
            assert region.marks is not None
            region.marks.parts = 0
            for flight in rest:
                region.marks.parts |= flight.parts if flight.region is region else 0

    def end(self, team: Team) -> None:
        """The blocks of a team have ended, which they may not while copies of theirs are under way."""
        lanes = team.layout.lanes
        last = self._first.get(team, 0) + BULK_WRITTEN * lanes
        for flight in self.under_way:
            owner, access = int(flight.by.owners[0]), flight.access
            if access.team is team and not last <= owner < last + lanes:
                lane, word = int(flight.lanes[0]), int(flight.words[0, 0])
                text = _word_named(flight.region, access.name, word)
                why = self._why(team, lane, owner, int(flight.by.groups[0]))
                way = "from" if flight.reads else "to"
                what = (
                    f"ends while its asynchronous copy {way} {text} is under way, {why}. By then the memory "
                    "may be another block's"
                )
                team.fault(RaceError, access.site.at, lane, what)
        self.under_way = [one for one in self.under_way if one.access.team is not team]
        self._fenced.pop(team, None)
        self._closed.pop(team, None)
        first = self._first.pop(team, None)
        if first is not None:
            mine = slice(first, first + 3 * lanes)
            self.done[mine] = self.committed[mine] = self.committed[mine] + 1
            self._free.setdefault(3 * lanes, []).append(first)

    # -- what memory asks

    def start(self, region: ByteRegion, a: MaskedAccess, near: int, reads: bool) -> None:
        """Lanes start to copy to a place in a region; or if it `reads`, from one that others may write to.

        `near` are the parts of the memory in which others have to look out for it.
        """
        if not a.wide:  # another number of a copy that was marked with its first one
            return
        words = _words(a, a.wide)
        if not reads:
            self._refuse(region, a, words, "starts another asynchronous copy to", True)
        by = self._by(a)
        marks = region.marks = region.marks or CopyMarks(region)
        if reads and marks.out_of is None:
            marks.out_of = np.zeros(marks.words, np.int64)
        known = marks.out_of if reads and marks.out_of is not None else marks.into
        known[words] = (by.owners << _BITS | by.groups)[:, None]
        marks.parts |= near
        if region.shared or not reads:  # which its block may not leave before it was read
            self.under_way.append(Flight(a, region, words, a.mask.index, by, near, reads))

    def meet(self, region: ByteRegion, a: MaskedAccess, writes: bool) -> None:
        """Refuse an access to what a copy is writing to, or a write to what one is reading."""
        self._refuse(region, a, _words(a, a.size), "writes" if writes else "reads", writes)

    def _by(self, a: MaskedAccess) -> OwnedCopy:
        """Who counts the copy that is at hand."""
        lanes, layout = a.mask.index, a.team.layout
        if self.bound is not None:
            return self.bound.of(lanes)
        if a.team not in self._closed:
            closed = np.full((layout.warps, _KEPT_GROUPS), -np.inf)
            self._closed[a.team] = closed, np.zeros(layout.warps, np.bool_)
        self._closed[a.team][1][layout.warp[lanes]] = True
        return self.own(a.team, OWN).of(lanes)

    def _refuse(
        self, region: ByteRegion, a: MaskedAccess, words: Any, did: str, writes: bool
    ) -> None:
        marks = region.marks
        if marks is None:
            return
        known = (marks.into, "to"), (marks.out_of if writes else None, "from")
        for of, way in known:
            if of is None:
                continue
            found: Int64s = np.asarray(of.take(words), np.int64)
            bad = np.asarray((found & _GROUP) > self.done.take(found >> _BITS))
            if not bad.any():
                continue
            at = tuple(int(k) for k in np.unravel_index(int(bad.argmax()), bad.shape))
            lane, word = int(a.mask.index[at[-2]]), int(words[at])
            owner, group = int(found[at]) >> _BITS, int(found[at]) & _GROUP
            own, theirs = self._name(a.team, lane, owner)
            text, space = _word_named(region, a.name, word), "shared" if region.shared else "global"
            flights = [f for f in self.under_way if f.region is region and (f.words == word).any()]
            line = f" (line {flights[-1].access.site.at.line})" if flights and way == "to" else ""
            cure = "" if own else ", and a barrier of the block must follow its wait"
            if way == "to" and not self.counted.get(owner):
                cure += ", or, if it brings what is needed later, it needs another place"
            text = f"{did} {text} in {space} memory, {way} which {theirs} asynchronous copy{line}"
            what = f"{text} is under way, {self._why(a.team, lane, owner, group)}{cure}"
            more = {} if region.shared else {"index": word * 4 // region.cell}
            a.team.fault(RaceError, a.site.at, lane, what, array=a.name, **more)

    # -- the words of it

    def _name(self, team: Team, lane: int, owner: int) -> tuple[bool, str]:
        """Tell whether an owner is this thread, and whose copies its are."""
        other, lanes = owner - self.threads(team), team.layout.lanes
        if not 0 <= other < 3 * lanes:
            return True, "an"
        other %= lanes
        if other == lane:
            return True, "its own"
        return False, f"thread {team.launch.thread_name(int(team.layout.linear[other]))}'s"

    def _why(self, team: Team, lane: int, owner: int, group: int) -> str:
        """What is missing until a copy has arrived."""
        barrier = self.counted.get(owner)
        if barrier is not None:
            return f"and {barrier.lacks}: wait for that phase first"
        own, _ = self._name(team, lane, owner)
        who = "this thread" if own else "that thread"
        committed, done = int(self.committed[owner]), int(self.done[owner])
        commit, wait = "__pipeline_commit()", "__pipeline_wait_prior"
        kind = (owner - self.threads(team)) // team.layout.lanes
        if kind in (BULK_READ, BULK_WRITTEN):
            commit = "cp_async_bulk_commit_group()"
            wait = "cp_async_bulk_wait_group" + "_read" * (kind == BULK_READ)
        if group > committed:
            return f"and no {commit} has closed its group, so that no wait can be for it"
        if group == committed and not done:
            return f"and {who} has not waited for it: {wait}(0) does"
        behind = committed - group
        above = " (above the last commit it's one smaller)" if behind else ""
        has = "committed 1 group" if committed == 1 else f"committed {committed} groups"
        return (
            f"and {who} has not waited for it: it has {has} and waited for {done}, and this copy is in "
            f"number {group}: {wait}({behind}) waits for it here, a larger number does not{above}"
        )


def _last(mask: Mask, groups: Int64s) -> Int64s:
    """Where the time of the last of these groups of its lanes is kept, for each warp."""
    out = np.zeros(mask.layout.warps, np.int64)
    np.maximum.at(out, mask.layout.warp[mask.index], groups)
    return out % _KEPT_GROUPS


def copies_of(team: Team) -> Copies:
    """The copies of a team's launch."""
    launch = team.launch
    if launch.copies is None:
        launch.copies = Copies()
    return launch.copies


def _words(a: MaskedAccess, nbytes: int) -> Int64s:
    """The words of `nbytes` at each lane's element, a row each; in several turns of a loop, for each turn."""
    part = np.asarray(a.part, np.int64) if varies(a.part) else by_lane(a.part, a.mask.n)
    first = (part + a.shift) * a.size // 4
    return first[..., None] + np.arange(max(1, nbytes // 4))


def _word_named(region: ByteRegion, name: str, word: int) -> str:
    return region.element(name, word * 4, max(region.cell, 4))[0]
