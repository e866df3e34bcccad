"""Barriers with phases (`mbarrier`, `cuda::barrier`), which count arrivals and bytes.

`__syncthreads()` is one statement to which all threads come. Here a thread arrives, does other work and waits
later; a thread that waits need not arrive, and copies are counted, too. So a barrier is an object in shared
memory. Its word says little, because a message has to name whose phase it is and what is missing. What
we know of it is here, and an array beside the memory says which barrier a word is.

A phase is a message (`messages`): whoever arrives publishes all that it knows and has done, and whoever waits
learns what was published. We could take a phase for a barrier of the block instead. But then a consumer that
releases a buffer too early, or a count that leaves threads out, would order accesses that nothing orders on a
GPU. A phase that a thread waits for by its parity is the last one or this one, as the hardware has one bit of
it. It'd break if a phase completed before the copies that it counts were known to have arrived (`Copies`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, Mask, Team, by_lane
from simgpu.cuda_c.memory.copies import OwnedCopy, copies_of
from simgpu.cuda_c.memory.messages import COUNTED_COPY, Known
from simgpu.cuda_c.memory.pointers import MaskedAccess
from simgpu.errors import BarrierError, RaceError

if TYPE_CHECKING:
    from simgpu.cuda_c.memory.hostile import View
    from simgpu.cuda_c.memory.regions import ByteRegion

MOST_ARRIVALS = (1 << 20) - 1  # PTX ISA, "mbarrier.init"
_BITS = 32  # of a token that are the number of a phase; those above are the barrier's
_PHASE = (1 << _BITS) - 1


class BarrierWords(NamedTuple):
    """The words of 8 bytes that are barriers for the lanes of an access."""

    region: ByteRegion
    access: MaskedAccess
    words: Int64s  # by their number in the region


@dataclass(eq=False)
class PhasedBarrier:
    """One barrier of one block."""

    name: str
    owner: int  # of the copies that it counts
    base: int  # groups that this owner had before
    maker: int  # the thread that called init(), and when
    made: int
    reached: Bits  # the threads of the block that are known to have come after that
    expected: int  # arrivals of a phase
    pending: int  # those that are missing
    # For each thread: how many phases were over when it last asked once, and the answer was no.
    early: Int64s
    phase: int = 0  # the one at hand
    missing: int = 0  # bytes that are expected and have not come
    # How far the warp was that started the last copy of a phase: the one at hand, and the one before.
    started: float = -np.inf
    landed: float = -np.inf
    news: Known | None = None  # what those have published who have arrived
    told: Known | None = None  # what the phase before told those who waited for it
    # The same two, in hostile memory.
    heard: View = field(default_factory=dict[int, int])
    shown: View = field(default_factory=dict[int, int])

    @property
    def lacks(self) -> str:
        """What its phase waits for, in words."""
        lacking = [f"{self.pending} of its {self.expected} arrivals"] * (self.pending > 0)
        lacking += [f"{self.missing} bytes that are expected"] * (self.missing > 0)
        found = [f"lacks {' and '.join(lacking)}"] * bool(lacking)
        found += [f"has got {-self.missing} bytes more than were expected"] * (self.missing < 0)
        return f"phase {self.phase} of {self.name} {', and '.join(found) or 'lacks nothing'}"


class Phases:
    """The barriers of a team."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.all: list[PhasedBarrier] = []
        # For each lane, the barrier at which it last looked in vain.
        self.awaited: NDArray[np.object_] = np.full(team.layout.lanes, None, object)

    def lacking(self, lane: int) -> str | None:
        """What the phases lack that this lane and others wait for in vain, in words; None if it does not."""
        mine = self.awaited[lane]
        every = dict.fromkeys([mine, *[one for one in self.awaited.tolist() if one is not None]])
        # In many blocks they lack the same.
        lacks = [*dict.fromkeys(one.lacks for one in every if one is not None)][:4]
        found = f"{'; '.join(lacks)}. Nobody is left who could change that"
        return None if mine is None else found

    def make(self, of: BarrierWords, count: NDArray[Any]) -> None:
        """Make barriers at these words, for so many arrivals."""
        team, copies, (region, a, words) = self.team, copies_of(self.team), of
        if region.phased is None:
            region.phased = np.zeros(region.data.size // 8, np.int64)
        for k, (word, expected) in enumerate(zip(words.tolist(), count.tolist(), strict=True)):
            if not 0 < expected <= MOST_ARRIVALS:
                text = (
                    f"makes a barrier for {expected} arrivals: 1 to {MOST_ARRIVALS:,} are possible"
                )
                team.fault(BarrierError, a.site.at, int(a.mask.index[k]), text)
            owner, maker = copies.owners(1), int(team.thread_id[a.mask.index[k]])
            name = region.element(a.name, word * 8, 8)[0].removesuffix("._word")
            threads, base, now = team.layout.threads, int(copies.done[owner]), team.clock
            reached, early = np.zeros(threads, np.bool_), np.full(threads, -1, np.int64)
            new = PhasedBarrier(name, owner, base, maker, now, reached, expected, expected, early)
            self.all.append(new)
            copies.counted[owner] = new
            region.phased[word] = len(self.all)

    def at(self, of: BarrierWords) -> Iterator[tuple[PhasedBarrier, Int64s]]:
        """The barriers at these words, each with those of the lanes that name it, as numbers of rows."""
        region, a, words = of
        known = np.zeros(len(words), np.int64) if region.phased is None else region.phased[words]
        if not known.all():
            text = f"uses '{a.name}' as a barrier, and nobody has called init() for it"
            self.team.fault(BarrierError, a.site.at, int(a.mask.index[int(known.argmin())]), text)
        order = np.argsort(known, kind="stable")
        ends = np.flatnonzero(np.diff(known[order])) + 1
        for rows in np.split(order, ends):
            one = self.all[int(known[rows[0]]) - 1]
            self._require_made(a, one, a.mask.index[rows])
            yield one, rows

    def _require_made(self, a: MaskedAccess, one: PhasedBarrier, lanes: Int64s) -> None:
        """Refuse to use a barrier that another thread makes, and nothing says that it has."""
        team, threads = self.team, self.team.layout.linear[lanes]
        lanes, threads = lanes[~one.reached[threads]], threads[~one.reached[threads]]
        if not len(lanes):
            return
        me = team.thread_id[lanes]
        met, with_warp = team.met_at(lanes)
        if team.met is not None:
            with_warp = np.maximum(with_warp, team.met[0][lanes, one.maker & 31])
        bad = (me != one.maker) & (met < one.made)
        bad &= (me >> 5 != one.maker >> 5) | (with_warp < one.made)
        if bad.any() and team.lanes is not None:
            theirs, when = np.full(len(lanes), one.maker), np.full(len(lanes), one.made)
            bad &= ~team.launch.messages.told(team, lanes, theirs, when)
        if bad.any():
            who = team.launch.thread_name(one.maker & 1023)
            text = f"uses {one.name}, of which thread {who} calls init(), without a __syncthreads() between"
            team.fault(RaceError, a.site.at, int(lanes[int(bad.argmax())]), text)
        one.reached[threads] = True

    def arrive(
        self, of: BarrierWords, times: Any = 1, to_come: Any = 0, *, drop: bool = False
    ) -> NDArray[np.uint64]:
        """Lanes arrive so many times, and say how many bytes are to come; the tokens of their phases."""
        a, out = of.access, np.zeros(len(of.words), np.uint64)
        lanes, n = a.mask.index, len(out)
        count, nbytes = (by_lane(np.asarray(x, np.int64), n) for x in (times, to_come))
        completed, hostile = False, self.team.launch.hostile
        for one, all_rows in self.at(of):
            rows = all_rows
            while len(rows):
                arrived = np.cumsum(count[rows])
                if arrived[0] > one.pending:
                    text = (
                        f"arrives {int(count[rows[0]])} times at {one.name}, of whose phase {one.phase} only "
                        f"{one.pending} of {one.expected} arrivals are left"
                    )
                    self.team.fault(BarrierError, a.site.at, int(lanes[rows[0]]), text)
                fit = int(np.searchsorted(arrived, one.pending, "right"))
                now, rows = rows[:fit], rows[fit:]
                out[now] = one.owner << _BITS | one.phase
                one.missing += int(nbytes[now].sum())
                one.pending -= int(arrived[fit - 1])
                one.expected -= int(count[now].sum()) if drop else 0
                one.news = self.team.launch.messages.offer(self.team, lanes[now]).join(one.news)
                if hostile is not None:
                    one.heard = hostile.arrive(self.team.thread_id[lanes[now]], one.heard)
                completed |= self._complete(one)
        self._land(completed, of.access.mask)
        return out

    def expect(self, of: BarrierWords, nbytes: Any) -> None:
        """So many bytes more are to come (or, below 0, have come) in the phase at hand."""
        completed = False
        for one, rows in self.at(of):
            one.missing += int(nbytes[rows].sum())
            completed |= self._complete(one)
        self._land(completed, of.access.mask)

    def _complete(self, one: PhasedBarrier) -> bool:
        if one.pending or one.missing:
            return False
        team, copies = self.team, copies_of(self.team)
        one.phase, one.pending = one.phase + 1, one.expected
        copies.done[one.owner] = one.base + one.phase
        told = one.news or Known(np.zeros(1, np.int64), {})
        # The copies that it has counted arrive with it, at the next time (`_land`).
        one.told = Known(told.row, {**told.later, COUNTED_COPY + one.owner: team.clock + 1})
        one.news, one.shown, one.heard = None, one.heard, {}
        one.landed, one.started = one.started, -np.inf
        team.meter.barriers += 1
        return True

    def _land(self, completed: bool, mask: Mask) -> None:
        if completed:
            copies_of(self.team).land(self.team)
            self.team.launch.changed(mask)

    def passed(
        self, of: BarrierWords, asked: Any, *, by_parity: bool = False, once: bool = False
    ) -> Bits:
        """For each lane, whether the phase of its token (or of its parity) is over; if so, it learns.

        On a GPU others take a while, and whoever asks `once` may be told that it isn't over yet. So everyone
        is told so first, that a kernel which drops the answer fails each time.
        """
        a, out, team = of.access, np.zeros(len(of.words), np.bool_), self.team
        lanes = a.mask.index
        since = np.full(team.layout.warps, -np.inf)
        for one, rows in self.at(of):
            if by_parity:
                over = (one.phase & 1) != (asked[rows] & np.uint64(1))
            else:
                self._require_token(a, one, rows, asked)
                over = (asked[rows] & np.uint64(_PHASE)) != one.phase
            if once and one.phase:
                threads = team.layout.linear[lanes[rows]]
                first = over & (one.early[threads] != one.phase)
                one.early[threads] = one.phase + ~over
                over &= ~first
                if first.any():
                    team.launch.changes += 1  # so that the next look is worth it
            out[rows] = over
            self.awaited[lanes[rows]] = one
            self.awaited[lanes[rows[over]]] = None
            if over.any() and one.told is not None:
                team.launch.messages.learn(team, lanes[rows[over]], one.told)
                if team.launch.hostile is not None:
                    team.launch.hostile.learn(team.thread_id[lanes[rows[over]]], one.shown)
                if one.landed > 0:
                    since[team.layout.warp[lanes[rows[over]]]] = one.landed
        if (since > 0).any():
            team.meter.late(since > 0, since)
        return out

    def _require_token(
        self, a: MaskedAccess, one: PhasedBarrier, rows: Int64s, tokens: Any
    ) -> None:
        whose, phase = tokens[rows] >> np.uint64(_BITS), tokens[rows] & np.uint64(_PHASE)
        wrong = (whose != one.owner) | (phase > one.phase) | (phase + np.uint64(1) < one.phase)
        if wrong.any():
            k = int(wrong.argmax())
            why = "which another barrier gave"
            if whose[k] == one.owner:
                why = (
                    f"of phase {int(phase[k])}, and the barrier is in phase {one.phase} already: only the "
                    "phase at hand and the one before can be waited for, so on a GPU this hangs or goes on "
                    "too early"
                )
            text = (
                f"waits at {one.name} with a token {why}. Wait with the token of the last arrive(), and have "
                f"init() for {one.expected} arrivals count all of a phase"
            )
            self.team.fault(BarrierError, a.site.at, int(a.mask.index[rows[k]]), text)

    def counting(self, of: BarrierWords) -> OwnedCopy:
        """Who counts a copy that each lane starts now: the phase at hand of its barrier."""
        owners, groups, writers = np.zeros((3, self.team.layout.lanes), np.int64)
        progress = self.team.meter.progress()
        for one, rows in self.at(of):
            lanes = of.access.mask.index[rows]
            one.started = max(one.started, float(progress[self.team.layout.warp[lanes]].max()))
            owners[lanes], groups[lanes] = one.owner, one.base + one.phase + 1
            writers[lanes] = COUNTED_COPY + one.owner
        return OwnedCopy(owners, groups, writers)


def phases_of(team: Team) -> Phases:
    """The barriers of a team."""
    if team.phases is None:
        team.phases = Phases(team)
    return team.phases
