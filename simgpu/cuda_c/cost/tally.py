"""Counting what a launch does, while it does it.

What a kernel costs depends on how often each piece of its code runs, and on which addresses it touches. To
count each instruction while it is interpreted would take longer than interpreting it. So what a straight
piece of code costs is added up once, when the kernel is compiled (`walk`), and a launch only notes how many
warps and lanes passed each piece. What depends on addresses, such as sectors and bank conflicts, is
measured on a sample (see `Counts`): the first executions of an access are all looked at, later ones seldom,
and at a distance that is prime, so that it doesn't fall in step with the loops.

A kernel takes as long as its slowest warp, so that one needs its costs apart, and a sum for each warp at
each piece would again be too dear. A mask is one object for as long as the same lanes execute. So charges
gather on the mask first (`Mask.pending`), and its warps are credited with the sum now and then. A mask that
is changed in place would give its charges to the wrong warps.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.cost.charges import ADDED, OF_LANES, OF_WARPS, WIDE, Charge, Costs
from simgpu.cuda_c.cost.counts import Counts, LineCounts
from simgpu.cuda_c.cost.path import TRIP
from simgpu.cuda_c.lockstep import WARP, Mask, Site, varies
from simgpu.cuda_c.lockstep.masks import Bits, Int64s, ThreadLayout

_SECTOR = 32  # bytes; the unit in which L2 and DRAM move data (CUDA C++ Best Practices Guide)
ROWS = len(ADDED)
_ByTurn = Callable[[int], None]  # given the number of a turn of a loop
_Counting = Callable[["_Sample", Int64s, int], Sequence[int]]  # of lanes, elements and their size
LATENCY, ROUNDS = map(list(ADDED).index, ("chain_latency", "chain_load_rounds"))
_NOTHING: NDArray[np.float64] = np.zeros((ROWS, 1))
WORD_TURN = 1.455  # clocks from an atomic on a word to the next (`DeviceSpec.atomic_queue_clocks` of an H200)
HALF_TRIP = 225  # clocks from an atomic or a store to where others see it, about (`path.ATOMIC`)
# What L1 holds at most, of what a block has loaded (`DeviceSpec.shared_bytes_per_sm` of an H200).
L1_SECTORS = (228 << 10) // _SECTOR
LINE = 128  # bytes; the unit in which L1 is looked up, four sectors
BANKS = 32  # of shared memory, each 4 bytes wide
_OF_LAUNCH = (
    "atomics", "atomic_requests", "global_atomics", "async_requests", "atomic_passes",
    "shared_atomic_passes", "barriers",
)  # fmt: skip
_BY_LINE = "warp_instructions", "flops", "divergent_branches"
_OF_SITES = "global_requests", "global_sectors", "shared_requests", "bank_conflicts"  # by line, too
_SAMPLED_WARPS = 8  # of an access, evenly spread
_LATE = 1e15  # clocks, later than any
_FEW_LANES = 1024
_PATTERNS = 512
_EXACT_LANES = 1 << 23  # lane accesses of a launch whose addresses are noted one by one
ALWAYS = 16  # executions of one access that are all sampled ...
EVERY = 13  # ... and behind them one in so many; a prime, so as not to beat with powers of two


def weight(execution: int) -> int:
    """How many executions this one stands for, of those that are followed to see what is new; else 0.

    So many in a row as `ALWAYS`, at the begin and from each power of 4 on, since a loop comes back later.
    The first 16 stand for 64, hence 4 each. From a power to the next one (4 times as far) are 3 * power
    executions, and 16 of these are followed.
    """
    power = 1 << (execution.bit_length() - 1 & ~1) if execution >= 4 * ALWAYS else 0
    return (3 * power // ALWAYS or 4) if execution - power < ALWAYS else 0


@dataclass(slots=True)
class SiteTally:
    """The counts of one load or store."""

    executions: int = 0
    block: int = 0  # that is followed, of each batch
    fresh: Counter[int] = field(default_factory=Counter[int])  # by warp of that block
    fresh_sectors: int = 0
    followed: int = 0
    followed_warps: int = 0
    global_requests: int = 0
    global_lane_bytes: int = 0
    sampled: int = 0
    sectors: float = 0.0
    lines: float = 0.0
    shared_requests: int = 0
    shared_sampled: int = 0
    shared_conflicts: float = 0.0
    shared_passes: float = 0.0
    shared_wavefronts: float = 0.0

    def due(self) -> bool:
        self.executions += 1
        return bool(weight(self.executions - 1)) or self.executions % EVERY == 0

    def fresh_rounds(self, charge: Charge | None) -> float:
        """Executions, over all warps, with new sectors; those of turns that overlap go together."""
        overlap = 1 if charge is None or charge.carried else charge.overlap
        new = max(self.fresh.values(), default=0) / max(self.followed, 1)
        return self.global_requests * min(1 / overlap, new)


class Tally:
    """The running totals of one launch: its kernel reports to it what may cost time."""

    def __init__(self, costs: Costs, sites: list[Site]) -> None:
        self._columns, self._fields = costs.columns, costs.fields
        self.sites, self.site_costs = sites, costs.sites
        self.by_site = [SiteTally() for _ in sites]
        # For each piece of code: by how many warps and lanes it was passed, and where it parted warps.
        none = [0] * len(costs.charges)
        self.warps, self.lanes, self.divergent = none[:], none[:], none[:]
        self.exact_left = _EXACT_LANES  # lane accesses that are still to be noted one by one
        self._news = 0.0  # when memory has last changed, for whoever waits for that
        self._entered = _NOTHING[0]  # clocks when the batch at hand was entered
        # As in `Counts`:
        self.atomics = self.atomic_requests = self.global_atomics = self.async_requests = 0
        self.atomic_passes = self.shared_atomic_passes = self.barriers = 0
        self.longest = (0,) * ROWS
        # Of the sectors that a block has had by a pointer, how many it had loaded by then; and by now. Both
        # count executions that are looked at. Of every 13th, a sector comes back 13 times as late as it does,
        # behind as many as come between.
        self._had: dict[tuple[Variable | None, int], tuple[ThreadLayout, dict[int, int]]] = {}
        self._loaded = Counter[int]()
        self._patterns: dict[tuple[object, ...], Any] = {}
        # By memory, for each word: the atomics on it; those whose results were needed; how long before _LATE
        # the first of these came, and when the last; and whether the launch's first warp waited for one.
        self._words: dict[int, NDArray[np.float64]] = {}
        self._charged: list[Mask] = []
        self._batches: dict[ThreadLayout, NDArray[np.float64]] = {}
        self._chains: NDArray[np.float64] = np.zeros((ROWS, 0), np.float64)

    # -- pieces of code

    def begin_batch(self, layout: ThreadLayout) -> None:
        """Start with another batch of blocks."""
        self._batches[layout] = np.zeros((ROWS, layout.warps), np.float64)

    def enter(self, layout: ThreadLayout, woken: Mask | None = None) -> None:
        """Go on with a batch; `woken` are lanes that have waited for memory to change."""
        self.settle()
        self._chains = self._batches[layout]
        if woken is not None:
            self.woken(woken)
        self._entered = self._chains[LATENCY].copy()

    def end_batch(self, layout: ThreadLayout) -> None:
        """Find the longest warp of a batch."""
        del self._batches[layout]
        self.longest = self._furthest(self._chains)

    def charge(self, point: int, mask: Mask, times: int = 1) -> None:
        """Note that the warps of `mask` pass a straight piece of code, whose number is `point`."""
        pending = mask.pending
        pending[point] = pending.get(point, 0) + times
        if not mask.charged:
            mask.charged = True
            self._charged.append(mask)
            if len(self._charged) > 64:
                self.settle()

    def settle(self) -> None:
        """Credit the warps with what their masks were charged."""
        columns, chains = self._columns, self._chains
        for mask in self._charged:
            amounts = _NOTHING
            for point, times in mask.pending.items():
                amounts = amounts + columns[point] * times
                self.warps[point] += mask.n_warps * times
                self.lanes[point] += mask.n * times
            if mask.full:
                chains += amounts
            else:
                np.add(chains, amounts, out=chains, where=mask.warps)
            mask.pending = {}
            mask.charged = False
        self._charged.clear()

    def latest(self) -> int:
        """Return the clock of the warp that has come furthest."""
        self.settle()
        clocks = [int(chains[LATENCY].max()) for chains in self._batches.values()]
        return max(clocks, default=self.longest[LATENCY])

    def _furthest(self, *batches: NDArray[np.float64]) -> tuple[int, ...]:
        """Return the chains of the longest warp of batches and of all that have ended."""
        self.settle()
        # That is the one that issues most, but where some wait for others, the one that ends last.
        row, furthest = LATENCY if self._news else 0, self.longest
        for each in batches:
            chain = tuple(np.rint(each[:, int(each[row].argmax())]).astype(np.int64).tolist())
            if (chain[row], chain) > (furthest[row], furthest):
                furthest = chain
        return furthest

    def clocks(self) -> Int64s:
        """Return the clock of each warp: the time of a warp that is alone and has its data at hand."""
        self.settle()
        return self._chains[LATENCY].astype(np.int64)

    def progress(self) -> NDArray[np.float64]:
        """Return about how long each warp has been at work, in clocks, with the waits for its data."""
        return self.clocks() + TRIP * self._chains[ROUNDS]

    def late(self, warps: Any, since: Any) -> None:
        """Warps wait for copies that were started when they had come so far: for the rest of a trip."""
        left = np.clip(1 - (self.progress() - since) / TRIP, 0, 1)
        self._chains[ROUNDS] += np.where(warps, left, 0)

    def changed(self, mask: Mask) -> None:
        """Note when warps have changed memory, for those who wait for that."""
        self._news = max(self._news, float(self.clocks()[mask.warps].max()) + HALF_TRIP)

    def meet(self, layout: ThreadLayout, lanes: Int64s) -> None:
        """All warps of a block go on when the last of them has come."""
        if self._news:  # elsewhere no warp waits for anything but its own work
            self.settle()
            clocks = self._chains[LATENCY].reshape(layout.blocks, -1)
            here = np.unique(layout.block[lanes])
            clocks[here] = clocks[here].max(axis=1, keepdims=True)

    def woken(self, mask: Mask) -> None:
        """Warps that have looked in vain see the latest change of memory, so they come no sooner."""
        late = self._news - self.clocks()
        self._chains[LATENCY] += np.where(mask.warps, late.clip(0), 0)

    def asleep(self, mask: Mask, bits: Bits) -> None:
        """Forget a look that was in vain once more, because batches decide how many there are."""
        self.settle()
        warps = mask.layout.any_by_warp(bits)
        self._chains[LATENCY][warps] = self._entered[warps]

    def branch(self, point: int, yes: Mask | None, no: Mask | None) -> None:
        """Note on how many warps a condition was not unanimous."""
        if yes is not None and no is not None:
            self.divergent[point] += int(np.count_nonzero(yes.warps & no.warps))

    # -- accesses

    def global_access(self, site: Site, mask: Mask, element: Any, size: int) -> None:
        """Note a load or store of `size` bytes a lane; `element` for active lanes only.

        An element of 16 bytes at 5 begins at byte 80 of its allocation.
        """
        if self.site_costs[site.index].free:
            return
        tally = self.by_site[site.index]
        tally.global_requests += mask.n_warps
        tally.global_lane_bytes += mask.n * size
        if site.apart and size < 4 * WIDE and not site.write:
            self.async_requests += mask.n_warps
        if tally.due():
            sectors, lines = self._sectors(mask, element, size)
            if not site.write:
                self._follow(tally, self.site_costs[site.index].base, mask, element, size)
            tally.sampled += mask.n_warps
            tally.sectors += sectors
            tally.lines += lines

    def _follow(
        self, tally: SiteTally, base: Variable | None, mask: Mask, element: Any, size: int
    ) -> None:
        """Note whether a block asks for a sector that it has not had.

        It is the first block, or where that has not come here at the first time, the first one that has.
        """
        layout, counted = mask.layout, weight(tally.executions - 1)
        if not tally.followed and not mask.full:
            tally.block = int(mask.index[0]) // layout.threads
        ends = np.array((tally.block, tally.block + 1)) * layout.threads
        start, end = ends.clip(0, mask.n) if mask.full else np.searchsorted(mask.index, ends)
        if start == end:
            return
        part = element[start:end] if varies(element) else np.full(end - start, element)
        sector = part.astype(np.int64) * size // _SECTOR
        of, had = self._had.get((base, tally.block), (layout, dict[int, int]()))
        if of is not layout:
            had = dict[int, int]()
        # Neighbours mostly share a sector.
        touched = {int(sector[0]), *sector[1:][sector[1:] != sector[:-1]].tolist()}
        new, now = touched.difference(had), self._loaded[tally.block]  # `- had.keys()` walks all
        old = touched - new if now > L1_SECTORS else ()  # most blocks load less
        gone = old and {one for one in old if now - had[one] > L1_SECTORS}
        self._loaded[tally.block] = now = now + len(new) + len(gone)
        for one in touched:
            had[one] = now
        self._had[base, tally.block] = layout, had
        if not counted or (tally.executions > 1 and not weight(tally.executions - 2)):
            return  # and so where what was loaded right before was not followed
        tally.followed += counted
        lanes = slice(start, end) if mask.full else mask.index[start:end]
        warps = layout.linear[lanes] // WARP
        tally.followed_warps += len(np.unique(warps)) * counted
        for warp in {*warps[np.isin(sector, [*new, *gone])].tolist()} if new or gone else ():
            tally.fresh[warp] += counted  # it waits
        tally.fresh_sectors += counted * len(new)

    def bulk(self, site: Site, nbytes: int, shared: bool) -> None:
        """Note a bulk copy of so many bytes: requests of 16 bytes a lane, but none of shared memory."""
        if shared:
            return
        tally, requests = self.by_site[site.index], -(-nbytes // (16 * WARP))
        tally.executions += 1
        tally.global_requests += requests
        tally.global_lane_bytes += nbytes
        tally.sampled += requests
        tally.sectors += nbytes // _SECTOR
        tally.lines += -(-nbytes // LINE)

    def shared_access(self, site: Site, mask: Mask, element: Any, size: int) -> None:
        """Note an access to shared memory; `element` counts units of `size` bytes in the block."""
        if self.site_costs[site.index].free:
            return
        tally = self.by_site[site.index]
        tally.shared_requests += mask.n_warps
        if not tally.due():
            return
        tally.shared_sampled += mask.n_warps
        if not varies(element):  # a broadcast, since the whole warp asks for one word
            tally.shared_passes += max(1, size // 4) * mask.n_warps
            tally.shared_wavefronts += max(1, size // 8) * mask.n_warps
            return
        conflicts, passes, wavefronts = self._remembered(_conflicts, mask, element, size)
        tally.shared_wavefronts += wavefronts
        tally.shared_conflicts += conflicts
        if self.site_costs[site.index].wide:
            if size == 4:
                passes, _ = self._remembered(_passes, mask, element // WIDE, 4 * WIDE)
                passes /= WIDE
            elif size == 2:  # `ldmatrix` takes 128 bytes of a fragment in a pass
                passes /= 2
        tally.shared_passes += passes

    def turns(
        self, site: Site, mask: Mask, count: int, size: int, shared: bool, access: _ByTurn
    ) -> None:
        """Note `count` accesses by the same lanes; those that are sampled are told one by one."""
        if self.site_costs[site.index].free:
            return
        tally = self.by_site[site.index]
        first = tally.executions
        due = [k for k in range(count) if weight(first + k) or (first + k + 1) % EVERY == 0]
        for k in due:
            tally.executions = first + k
            access(k)
        tally.executions = first + count
        rest = count - len(due)
        if shared:
            tally.shared_requests += rest * mask.n_warps
        else:
            tally.global_requests += rest * mask.n_warps
            tally.global_lane_bytes += rest * mask.n * size

    def atomic(
        self, site: Site, mask: Mask, index: Int64s, size: int, shared: bool, key: int
    ) -> None:
        """Note an atomic on elements `index`, of `size` bytes each, of the memory called `key`."""
        self.atomics += mask.n
        self.atomic_requests += mask.n_warps
        layout, warp = mask.layout, mask.layout.warp[mask.index]
        if shared:
            words, times = np.unique(warp << 40 | index, return_counts=True)
            most = np.zeros(layout.warps, np.int64)
            np.maximum.at(most, words >> 40, times)
            self.shared_atomic_passes += int(most.sum())
            return
        self.global_atomics += mask.n
        if mask.n > mask.n_warps:
            words, times = np.unique(warp << 40 | index, return_counts=True)
            starts = np.flatnonzero(np.diff(words * size // _SECTOR, prepend=-1))
            self.atomic_passes += int(np.maximum.reduceat(times, starts).sum())
        else:
            self.atomic_passes += mask.n
        word = index * size // 4
        times = np.bincount(word)
        words = self._words.get(key, np.zeros((5, 0)))
        if words.shape[1] < len(times):
            words = np.pad(words, ((0, 0), (0, len(times) - words.shape[1])))
            self._words[key] = words
        words[: 1 + site.waits, : len(times)] += times
        if site.waits:
            came = self.clocks()[warp]
            np.maximum.at(words[2], word, _LATE - came)
            np.maximum.at(words[3], word, came)
            words[4, word[(mask.index < WARP) & (layout.numbers[0] == 0)]] = 1

    def _sectors(self, mask: Mask, element: Any, size: int) -> Sequence[float]:
        """The sectors and lines that an access touches."""
        if not varies(element):
            return mask.n_warps, mask.n_warps
        # Sectors and lines are the same wherever a pattern lies, as long as it begins as far behind a line.
        line = max(1, LINE // size)
        return self._remembered(_sectors, mask, element, size, element[0] // line * line)

    def _remembered(
        self, count: _Counting, mask: Mask, element: NDArray[Any], size: int, start: Any = 0
    ) -> Sequence[float]:
        """Estimate a count of an access, or recall that of the same pattern of addresses from `start`.

        Loops of small launches ask for the same pattern again and again, and counting it anew takes longer
        than the rest of the access.
        """
        key: tuple[object, ...] | None = None
        if mask.full and len(element) <= _FEW_LANES:
            pattern = element - start if start else element
            key = (count, size, pattern.dtype, pattern.tobytes(), mask.layout.threads)
            if key in self._patterns:
                return self._patterns[key]
        if mask.sample is None:
            mask.sample = _samples(mask)
        element = element.astype(np.int64)
        each = [[n * s.each for n in count(s, element[s.at], size)] for s in mask.sample]
        found = [sum(numbers) for numbers in zip(*each, strict=True)]
        if key is not None:
            if len(self._patterns) >= _PATTERNS:
                self._patterns.clear()
            self._patterns[key] = found
        return found

    # -- the result

    def _of_words(self) -> dict[str, int]:
        """Return the counts of atomics on words of global memory."""
        words, lines, hot, free = self._words.values(), 0, 0.0, 0.0
        for times, asked, first, last, mine in words:
            lines += len(np.unique(np.flatnonzero(times) // (LINE // 4)))
            free = max(free, float(times[asked == 0].max(initial=0)) * WORD_TURN)  # nobody waits
            # A word is hot while more come than it can serve: the last of them waits for what is left.
            hot += float((asked * WORD_TURN - (last + first - _LATE)).clip(0)[mine > 0].sum())
        most = int(max([times.max(initial=0) for times, *_ in words], default=0))
        return {"atomic_queue": most, "chain_hot": round(hot + free), "atomic_lines": lines}

    def counts(self, facts: dict[str, int], needed: tuple[int, int], by_line: bool) -> Counts:
        """All of it, added up; with `by_line`, also for each line of the source."""
        of, warps, lanes = self._fields, np.array(self.warps), np.array(self.lanes)
        each = {"divergent_branches": np.array(self.divergent)}
        each |= {name: np.rint(warps * of[part]) for name, part in OF_WARPS.items()}
        each |= {name: lanes * of[part] for name, part in OF_LANES.items()}
        total = Counter({name: int(column.sum()) for name, column in each.items()})
        at, lines = of["line"].astype(np.int64), defaultdict[int, Counter[str]](Counter)
        for name in _BY_LINE if by_line else ():
            sums = np.bincount(at, each[name])
            for line in np.flatnonzero(sums).tolist():
                lines[line][name] = int(sums[line])
        fresh = 0.0
        for site, cost, tally in zip(self.sites, self.site_costs, self.by_site, strict=True):
            if not tally.executions:
                continue
            fresh += tally.fresh_rounds(cost.charge)
            way = "store" if site.write else "load"
            requests, sampled = tally.global_requests, tally.sampled
            sectors = scaled(requests, tally.sectors, sampled)
            shared, looked_at = tally.shared_requests, tally.shared_sampled
            conflicts = scaled(shared, tally.shared_conflicts, looked_at)
            total[f"global_{way}_requests"] += requests
            total[f"{way}_sectors"] += sectors
            total["once_stored"] += sectors * (site.write and not cost.rolled)
            total[f"{way}_lines"] += scaled(requests, tally.lines, sampled)
            total["fresh_sectors"] += scaled(requests, tally.fresh_sectors, tally.followed_warps)
            total[f"{way}_bytes"] += tally.global_lane_bytes
            total["shared_requests"] += shared
            total["bank_conflicts"] += conflicts
            total["shared_passes"] += scaled(shared, tally.shared_passes, looked_at)
            total["shared_wavefronts"] += scaled(shared, tally.shared_wavefronts, looked_at)
            found = requests, sectors, shared, conflicts
            for name, count in zip(_OF_SITES, found, strict=True) if by_line else ():
                lines[site.at.line][name] += count
        warps = max(1, facts["warps"])
        return Counts(
            **total,
            **facts,
            **dict(zip(ADDED, self._furthest(*self._batches.values()), strict=True)),
            chain_fresh_loads=round(fresh / warps),
            **self._of_words(),
            **{name: getattr(self, name) for name in _OF_LAUNCH},
            load_bytes_needed=needed[0],
            store_bytes_needed=needed[1],
            lines={n: LineCounts(**row) for n, row in sorted(lines.items()) if any(row.values())},
        )


class _Sample(NamedTuple):
    """Some warps of a mask that stand for others: those with all lanes, or those without."""

    at: Int64s  # of each lane, its place among those of the mask
    row: Int64s  # the number of its warp in the sample
    lane: Int64s  # and its own in that
    rows: int  # warps that are sampled
    each: float  # warps that one stands for


def _samples(mask: Mask) -> list[_Sample]:
    """Choose warps of a mask, evenly spread, from those whose lanes are all there, and from the others.

    The last warp is always chosen, and often has few lanes, where most are whole. As one of eight it would
    count for more than it is, and a launch would seem to move less than it needs.
    """
    layout, warp = mask.layout, mask.layout.warp[mask.index]
    lanes, out = np.bincount(warp, minlength=layout.warps), list[_Sample]()
    kinds = lanes == WARP, (lanes > 0) & (lanes < WARP)
    for every in filter(len, map(np.flatnonzero, kinds)):
        some = every[np.unique(np.linspace(0, len(every) - 1, _SAMPLED_WARPS).astype(np.int64))]
        row = np.full(layout.warps, -1)
        row[some] = np.arange(len(some))
        at = np.flatnonzero(row[warp] >= 0)
        lane = layout.lane[mask.index[at]]
        out.append(_Sample(at, row[warp[at]], lane, len(some), len(every) / len(some)))
    return out


def _sectors(s: _Sample, element: Int64s, size: int) -> tuple[int, int]:
    # An element of up to 32 bytes is in one sector, since sizes are powers of two.
    wide = max(1, size // _SECTOR)
    sectors = np.unique((s.row << 40 | element) // max(1, _SECTOR // size))
    return len(sectors) * wide, len(np.unique(sectors * wide // (LINE // _SECTOR)))


def _conflicts(s: _Sample, element: Int64s, size: int) -> tuple[int, int, int]:
    """The extra passes of requests to shared memory, all their passes, and those of an H200."""
    # Elements wider than 4 bytes go by half or quarter warps, since each of these covers all banks.
    width = max(1, size // 4)
    words = _by_bank(s.row << 40 | element // max(1, 4 // size), s.rows, width)
    deepest = words.max(axis=1)
    if width == 1:
        passes = int(deepest.sum())
        return passes - s.rows, passes, passes
    least = -(-words.sum(axis=1) // (BANKS // width))
    return int((deepest - least).clip(0).sum()), *_passes(s, element, size)


def _passes(s: _Sample, element: Int64s, size: int) -> tuple[int, int]:
    """The passes of requests for several words a lane, a half or a quarter of a warp at a time.

    However few words they are, shared memory returns one of each lane in a clock. (An engineer of NVIDIA:
    https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228) But on an H200 two
    such parts go together if each lane asks for the same as its neighbour, or as the next but one (by
    `tools/fidelity/shared_loads.py`). That makes the second number, which the model of time leaves out.
    """
    width, lanes = size // 4, np.arange(WARP)
    rows = np.full((s.rows, WARP), -1)
    rows[s.row, s.lane] = element
    alike = [(rows == rows[:, lanes ^ far]).all(axis=1) for far in (1, 2)]

    def deepest(together: NDArray[Any]) -> int:
        part = lanes * width // WARP // together + np.arange(s.rows)[:, None] * width
        words = _by_bank((part << 40 | rows)[rows >= 0], s.rows * width, width)
        return int(words.max(axis=1).sum())

    pairs = 1 + np.logical_or(*alike)[:, None]
    passes = deepest(np.ones_like(pairs))
    return passes, deepest(pairs) if pairs.max() > 1 else passes


def _by_bank(rows: Int64s, parts: int, width: int) -> Int64s:
    """How many different elements each part has in each group of banks; `rows` has `part << 40 | element`."""
    words, groups = np.unique(rows), BANKS // width
    at = (words >> 40) * groups + words % groups
    return np.bincount(at, minlength=parts * groups).reshape(parts, groups)


def scaled(requests: int, found: float, sampled: int) -> int:
    """Scale what was found in a sample to all requests."""
    return round(requests * found / sampled) if sampled else 0
