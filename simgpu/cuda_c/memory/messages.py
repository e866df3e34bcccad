"""The knowledge that threads have of each other: up to when each has been told of what another did.

Threads can also order their accesses without a barrier: one writes data, executes a fence and sets a flag;
the other sees the flag, executes a fence and reads. The race detector must accept this, and must refuse it
with one fence missing. So what counts isn't that the flag was seen, but what was told by it.

A thread publishes by a fence, and then a write that others can look at: an atomic, or a volatile store.
Such a word carries a message, namely what its writer knew. A thread that looks at the word, and then
executes a fence, knows it, too. So do its siblings behind the next barrier. Atomics on one word pass on
what they found there, or a counter that many increment would forget all but the last of them. A fence of
block scope tells, and learns from, threads of the block only.

We follow the memory model and not the order in which our threads ran, because that order is ours, and a GPU
has others. (PTX ISA, "Memory Consistency Model": release and acquire patterns, observation order, morally
strong. A barrier may come between look and fence, or fence and write: in two threads, only Fence-SC order
then leaves no other way.) Knowledge is kept by block, with exceptions for single threads, because one
number for each pair of threads would be millions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, by_lane

if TYPE_CHECKING:
    from simgpu.cuda_c.lockstep.team import Team

T = TypeVar("T")
_MOST = 4096  # columns of a row; of more blocks, some share one
_ALL = -1
_MANY = 64  # that publish in one instruction
# Of so many exceptions in a message, those of a block become one time of that block.
_SETTLED = 2048
# This and what is above are no threads, but copies that a barrier with phases counts.
COUNTED_COPY = 1 << 60


class Known:
    """A time for each block, and later ones for threads and, by -1 minus their number, warps."""

    __slots__ = ("later", "row")

    def __init__(self, row: Int64s, later: dict[int, int]) -> None:
        self.row, self.later = row, later

    def join(self, other: Known | None) -> Known:
        """All that either of the two knows."""
        if other is None or other is self:
            return self
        if not self.later and not other.later:
            if not np.count_nonzero(self.row < other.row):
                return self
            row = np.maximum(self.row, other.row)
            return Known(row, {}) if np.count_nonzero(row != other.row) else other
        row, later = np.maximum(self.row, other.row), self.later | other.later
        for key in self.later.keys() & other.later.keys():
            later[key] = max(self.later[key], other.later[key])
        columns = len(row)
        copies = {key: t for key, t in later.items() if key >= COUNTED_COPY}
        kept = {k: t for k, t in later.items() if k < COUNTED_COPY and t > row[_block(k) % columns]}
        if len(kept) > _SETTLED:
            for key, time in kept.items():
                row[_block(key) % columns] = max(row[_block(key) % columns], time)
            kept = {}
        return Known(row, kept | copies)

    def tells(self, threads: Int64s | None, when: Int64s) -> Bits:
        """Tell whether it knows of what these threads did at these times, or anybody did."""
        if threads is None:
            return max(int(self.row.max()), *self.later.values(), 0) >= when
        out = (self.row[(threads >> 10) % len(self.row)] >= when) & (threads < COUNTED_COPY)
        for k in np.flatnonzero(~out).tolist() if self.later else ():
            who = int(threads[k])
            out[k] = max(self.later.get(who, 0), self.later.get(-1 - (who >> 5), 0)) >= when[k]
        return out


class Lanes:
    """The knowledge of each thread of a batch, what it has seen since its last fence, and when that was.

    The latter two for fences of a block (0) and of the device (1); and (2, 3) for those that are seq_cst:
    only they go with what siblings see, and release for siblings, across a barrier.
    """

    def __init__(self, lanes: int) -> None:
        self.known = np.full(lanes, None, object)
        self.ready = np.full((2, lanes), None, object)  # when it last released (1: seq_cst)
        self.seen = np.full((4, lanes), None, object)
        self.fenced = np.zeros((4, lanes), np.int64)
        self.behind = np.zeros((4, 2, lanes), np.int64)  # when block and warp had met before it
        self.learnt: set[int] = set()  # blocks of the batch of which not all threads know the same

    @staticmethod
    def add(to: NDArray[Any], lanes: Int64s, news: Any) -> None:
        """Join something to what is there, for some lanes: one thing for all, or one for each."""
        known: list[Known | None] = to[lanes].tolist()
        if isinstance(news, Known):
            of = {old: news if old is None else old.join(news) for old in _different(known)}
            to[lanes] = of[known[0]] if len(of) == 1 else [of[old] for old in known]
            return
        pairs = [*zip(known, news[lanes].tolist(), strict=True)]
        made = {(old, new): new if old is None else old.join(new) for old, new in _different(pairs)}
        to[lanes] = [made[pair] for pair in pairs]


class Messages:
    """The words that carry knowledge from one thread of a launch to others."""

    def __init__(self, blocks: int) -> None:
        self.active = False  # whether anybody has published yet
        self._columns = min(blocks, _MOST)
        # For each word, by the block that may learn it by a fence of the block, or `_ALL`.
        self._words: dict[int, dict[int, Known]] = {}
        # When each block last fenced for the device, and wrote to a word at which others may look.
        self.fences: dict[int, int] = {}
        self.signals: dict[int, int] = {}

    def fence(self, t: Team, lanes: Any, scope: int, acquires: bool, releases: bool) -> None:
        """These lanes execute a fence: of a block (1), or of the device (2)."""
        self.active = True
        mine, ordered = _of(t), acquires and releases
        for way in (ways := (*range(scope), *range(2, 2 + scope * ordered))):
            news = lanes[mine.seen[way, lanes].astype(bool)]
            if acquires and len(news):
                Lanes.add(mine.known, news, mine.seen[way])
                mine.seen[way, news] = None
                mine.learnt.update(t.layout.block[news].tolist())
        if releases:
            mine.fenced[np.ix_(ways, lanes)] = t.clock
            mine.ready[: 1 + ordered, lanes] = mine.known[lanes]
            for k, met in enumerate((t.block_time, t.warp_time)):
                mine.behind[np.ix_(ways, [k], lanes)] = by_lane(met, t.layout.lanes)[lanes]
        for block in np.unique(t.layout.block[lanes]).tolist() if releases else ():
            mine.learnt.add(block)
            if scope > 1:
                self.fences[int(t.layout.numbers[block])] = t.clock

    def barrier(self, t: Team, lanes: Int64s, warps: bool = False) -> None:
        """These lanes meet, by blocks or by warps: each now knows, and has seen, what one of them had."""
        mine, joined = _of(t), dict[tuple[Known | None, ...], Known | None]()
        for block in sorted(mine.learnt):
            threads = t.layout.threads
            begin, end = np.searchsorted(lanes, (block * threads, (block + 1) * threads))
            here = lanes[begin:end]
            groups = [here]
            if warps:
                of = t.layout.warp[here]
                groups = [here[of == warp] for warp in np.unique(of)]
            for group in groups if len(here) else ():
                first, last = int(group[0]), int(group[-1]) + 1
                # A slice of all of a block costs a tenth of an index of each.
                same: Any = slice(first, last) if last - first == len(group) else group
                behind = mine.behind[2:, : 1 + warps, same]
                behind[:] = behind.max(2, keepdims=True)
                mine.behind[2:, : 1 + warps, same] = behind
                seen, shared = mine.seen[:2], (mine.known, mine.ready[1], *mine.seen[2:])
                for kept, own in zip(shared, (*shared[:2], *seen), strict=True):
                    # Mostly they know the same: to look it up costs less than to join it with itself.
                    before = _different(kept[same].tolist())
                    heard = () if own is kept else _different(own[same].tolist())
                    all_of_them = (*dict.fromkeys((*before, *heard)),)
                    if len(all_of_them) > 1:
                        if all_of_them not in joined:
                            joined[all_of_them] = _join(all_of_them)
                        kept[same] = joined[all_of_them]
            if len(here) and not warps:
                mine.learnt.discard(block)

    def meet(self, teams: Iterable[Team], clock: int) -> None:
        """All blocks pass a barrier of the grid."""
        for team in teams:
            mine = _of(team)
            mine.known[:] = mine.ready[:] = Known(np.full(self._columns, clock), {})

    def exchange(
        self, t: Team, lanes: Any, words: Any, scope: int, changed: Any, looks: bool, over: bool
    ) -> None:
        """Lanes work on words by atomics of a scope, in this order, and some have changed them.

        With `over` what the words carried is gone, and each has what the last lane tells.
        """
        mine, changed = _of(t), by_lane(changed, len(lanes))
        release = self._releases(t, lanes[changed])
        for word, block, those in _by_word(t, lanes, words):
            message, ways = self._words.get(word, {}), [*enumerate((block, _ALL)[:scope])]
            new = lanes[those[changed[those]]].tolist()
            if new:
                self.signals[block] = t.clock
                message = {} if over else dict(message)
                for way, key in ways:
                    told = [release(lane, way) for lane in (new[-1:] if over else new)]
                    known = _join(dict.fromkeys([message.get(key), *told]))
                    if known is not None:
                        message[key] = known
                self._words[word] = message
            for way, key in ways if looks else ():
                if key in message:
                    Lanes.add(mine.seen[way], lanes[those], message[key])
                    mine.learnt.add(int(t.layout.block[lanes[those[0]]]))

    def look(self, t: Team, lanes: Any, words: Any) -> None:
        """Lanes read words that others may be writing to."""
        if self._words:
            self.exchange(t, lanes, words, 2, False, looks=True, over=False)

    def write(self, t: Team, lanes: Any, words: Any) -> None:
        """Lanes write to words at which others may look: what these carried is gone."""
        self.exchange(t, lanes, words, 2, True, looks=False, over=True)

    def _releases(self, t: Team, lanes: Any) -> Callable[[int, int], Known | None]:
        """The news that each thread published by a fence: its own, its siblings', and what it had heard.

        Where many publish at once, what a thread did since the barrier is taken to be known of its block.
        """
        mine, threads, many = _of(t), t.layout.threads, len(lanes) > _MANY
        met, with_warp = (by_lane(x, t.layout.lanes) for x in (t.block_time, t.warp_time))
        # Siblings have fenced for themselves, or one of them for all, between two barriers.
        fenced = mine.fenced[2:]
        made: dict[tuple[int, ...], Known] = {}

        def release(lane: int, way: int) -> Known | None:
            fence, known, block = int(mine.fenced[way, lane]), mine.ready[:, lane], lane // threads
            time, own = fence, slice(block * threads, block * threads + threads)
            if not fence and not fenced[way, own].any():
                return None
            of_block, of_warp = mine.behind[way::2, :, lane].max(0).tolist()
            near = False
            if not (many and fence):
                time = max(of_block, min(fenced[way, own].min().item(), met[lane].item()))
                near = bool(with_warp[lane] > met[lane])
            alone = fence > time
            key = (way, block, fence, *map(id, known), time, lane if alone or near else -1)
            if key not in made:
                thread = int(t.thread_id[lane])
                row = np.zeros(self._columns, np.int64)
                row[(thread >> 10) % self._columns] = time
                later = {} if many and fence else _later(t, own, fenced[way], met[lane], time)
                later |= {thread: fence} if alone else {}
                if near:
                    own = slice(first := lane - int(t.layout.lane[lane]), min(first + 32, own.stop))
                    published = max(of_warp, fenced[way, own].min().item())
                    published = min(published, int(with_warp[lane]))
                    later[-1 - (thread >> 5)] = published
                    later = _later(t, own, fenced[way], with_warp[lane], published) | later
                made[key] = Known(row, later).join(known[0]).join(known[1])
            return made[key]

        return release

    def offer(self, t: Team, lanes: Int64s) -> Known:
        """Put together all that lanes of one block know and did until now: an arrival tells it."""
        mine, layout, row = _of(t), t.layout, np.zeros(self._columns, np.int64)
        block, later = int(t.thread_id[lanes[0]]) >> 10, dict[int, int]()
        met, with_warp = t.met_at(lanes)
        row[block % self._columns] = t.clock if len(lanes) == layout.threads else met.max()
        if len(lanes) < layout.threads:
            for warp in np.unique(layout.warp[lanes]).tolist():
                here = lanes[layout.warp[lanes] == warp]
                whole = len(here) == np.count_nonzero(layout.warp == warp)
                until = t.clock if whole else int(with_warp.max())
                later[-1 - (int(t.thread_id[here[0]]) >> 5)] = until
                if not whole:
                    later |= dict.fromkeys(t.thread_id[here].tolist(), t.clock)
        if t.met is not None:
            times = t.met[0]
            for row_of, k in np.argwhere(times[lanes] > 0).tolist():
                lane = int(lanes[row_of])
                other = int(t.thread_id[lane - layout.lane[lane] + k])
                later[other] = max(later.get(other, 0), int(times[lane, k]))
        out = Known(row, later)
        for one in {id(one): one for one in mine.known[lanes].tolist() if one is not None}.values():
            out = out.join(one)
        return out

    def learn(self, t: Team, lanes: Int64s, news: Known) -> None:
        """Lanes of one block know what was told at a barrier with phases."""
        mine = _of(t)
        Lanes.add(mine.known, lanes, news)
        mine.learnt.add(int(t.layout.block[lanes[0]]))

    def told(self, t: Team, lanes: Any, theirs: Any, when: Any, seen: bool = False) -> Bits:
        """Tell whether these lanes know of what others (None: anybody) did at a time; or would by a fence."""
        out, when = np.zeros(len(lanes), np.bool_), by_lane(when, len(lanes))
        for known in _of(t).seen if seen else (_of(t).known,):
            of = cast("list[Known | None]", known[lanes].tolist())
            ids = np.fromiter(map(id, of), np.int64, len(of))
            for first in np.unique(ids, return_index=True)[1].tolist():
                one: Known | None = of[int(first)]
                if one is not None:
                    at = np.flatnonzero(ids == ids[first])
                    out[at] |= one.tells(None if theirs is None else theirs[at], when[at])
        return out


def _later(t: Team, own: slice, fenced: Any, met: Any, time: int) -> dict[int, int]:
    """Of siblings that have met, those that had fenced for themselves, later than a time."""
    until = np.minimum(fenced[own], met)
    those = until > time
    return dict(zip(t.thread_id[own][those].tolist(), until[those].tolist(), strict=True))


def _of(t: Team) -> Lanes:
    if t.lanes is None:
        t.lanes = Lanes(t.layout.lanes)
    return t.lanes


def _by_word(t: Team, lanes: Any, words: Any) -> Iterator[tuple[int, int, Int64s]]:
    """Each word, block, and the places of its lanes in what was given, in its order."""
    words, blocks = by_lane(words, len(lanes)), t.layout.block[lanes]
    # Lanes ascend, and so do their blocks: those of one word are in order, and each block's in a row.
    order = np.argsort(words, kind="stable")
    ordered, beside = words[order], blocks[order]
    new = (ordered[1:] != ordered[:-1]) | (beside[1:] != beside[:-1])
    ends = [0, *(np.flatnonzero(new) + 1).tolist(), len(order)]
    groups = sorted((order[a:b] for a, b in pairwise(ends)), key=lambda those: those[0])
    for those in groups:
        first = those[0]
        yield int(words[first]), int(t.layout.numbers[blocks[first]]), those


def _join(several: Iterable[Known | None]) -> Known | None:
    out: Known | None = None
    for one in several:
        out = out if one is None else one.join(out)
    return out


def _different(things: Sequence[T]) -> Collection[T]:
    """Each thing once, in order; mostly they are all one."""
    first = things[0]
    return (first,) if things.count(first) == len(things) else dict.fromkeys(things)


def _block(key: int) -> int:
    """The block of a thread, or of a warp by -1 minus its number."""
    return key >> 10 if key >= 0 else (-1 - key) >> 5
