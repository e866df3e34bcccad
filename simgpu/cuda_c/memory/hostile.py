"""Memory as hostile as CUDA allows: others see what a thread wrote as late as the memory model lets them.

The race detector judges programs by rules. A learner who is told that a fence is missing may well ask to
see it go wrong, and in an interpreter that stores to memory at once, it never does. This memory makes it go
wrong.

To hold stores back in buffers, as hardware does, would tie us to one kind of hardware. Instead a store is
in memory at once, and leaves the value that was there before in a short history of its word. A load may get
any of these, unless its thread's *view* has put it behind: the view says which write of each word a thread
must at least have seen. A fence puts the view into what the thread writes next, by an atomic or a volatile
store; whoever looks at that, and fences, takes it over. So a missing fence gives a wrong value, in a
schedule that its seed gives again. (PTX ISA, "Memory Consistency Model": release and acquire patterns,
release sequences, Fence-SC order, coherence.)

The order of fences that nobody has heard of is chance: it is taken to tell of atomics and volatile stores
alone, which may need it. Loads are not made ahead of time, so load buffering, which PTX allows, is never
seen. All of this goes thread by thread, in Python. So it is for small launches, a thread gets only so many
old values in a row, and after some millions of steps memory gets kind, or a loop that waits for a flag
would not end.
"""

import random
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Int64s
from simgpu.cuda_c.lockstep.team import LaunchState
from simgpu.cuda_c.memory.global_region import GlobalRegion
from simgpu.cuda_c.memory.pointers import MaskedAccess, one_by_one
from simgpu.cuda_c.memory.races import Changes
from simgpu.cuda_c.memory.regions import UNSIGNED, ByteRegion
from simgpu.cuda_c.memory.shared_region import SharedRegion

MOST_HOSTILE_THREADS = 4096  # threads of a launch,
MOST_BLOCKS = 32  # and its blocks, which are interpreted one by one
_DEPTH = 8  # writes of a word that are remembered
_LOOKS = 3  # old values that a thread gets from one word before a new one
_PATIENCE = 3_000_000  # accesses, and entries of views, after which memory gets kind

View: TypeAlias = dict[int, int]  # word: the time of the write that has been seen
Views: TypeAlias = dict[int, View]
# Who has released what: for threads of the own block, and for all.
Heads: TypeAlias = dict[int, tuple[View, View]]
_NOTHING: tuple[View, ...] = {}, {}


@dataclass(slots=True)
class _Write:
    """A write to a word. `scope` is 0 for a plain one, 1 for the block, 2 for the device."""

    time: int
    value: int
    thread: int
    scope: int
    heads: Heads


@dataclass(slots=True)
class _HostileThread:
    """The knowledge of a thread: its view, what it has found and not fenced, and what it released last."""

    view: View = field(default_factory=View)
    lent: bool = False  # whether somebody else holds the view, so that it must not be changed
    # Found: any fence takes the first over, and only one of the device the second. Then the same with what
    # siblings had found before a barrier, for fences that are seq_cst: others need a look of their own.
    found: tuple[Views, ...] = field(default_factory=lambda: ({}, {}, {}, {}))
    # By its last fence, and by that of the device.
    released: tuple[View, ...] = _NOTHING
    ordered: tuple[View, ...] = _NOTHING  # and by those that are seq_cst, its siblings' included


def _strong(scope: int, number: int, write: _Write) -> bool:
    """Tell whether an access of a thread and a write are morally strong."""
    # The host, before the launch, is -1. The upper bits of a thread's number are its block's: see `races`.
    near = write.thread < 0 or write.thread >> 10 == number >> 10
    return min(scope, write.scope) > (0 if near else 1)


class Hostile:
    """The memory of one launch."""

    def __init__(self, launch: LaunchState, seed: int) -> None:
        self._launch: LaunchState = weakref.proxy(launch)  # which has this
        self.random = random.Random(seed)
        self.left = _PATIENCE
        self.forget()

    def forget(self) -> None:
        """All threads have seen everything."""
        self._now = 0
        self._words: dict[int, list[_Write]] = {}
        self._threads: defaultdict[int, _HostileThread] = defaultdict(_HostileThread)
        self._signals: set[int] = set()  # words that were written by atomics or volatile stores
        # These, as far as fences have told of them: of each block, and of the device (-1).
        self._fenced: defaultdict[int, View] = defaultdict(View)
        self._old: dict[tuple[int, int], int] = {}  # old values in a row, by thread and word
        self._held: dict[int, NDArray[Any]] = {}  # so that no other memory gets the same address
        # Words of each block's shared memory, written since all of it met; those of a block that meets now.
        self.near: defaultdict[int, set[int]] = defaultdict(set)
        self._settled: set[int] = set()

    # -- what threads do

    def fence(self, numbers: Int64s, scope: int, acquires: bool, releases: bool) -> None:
        """Threads fence, for their block (1) or the device (2). Those that do both have an order."""
        for number in numbers.tolist() if self.left >= 0 else ():
            me, wide, both = self._threads[number], scope > 1, acquires and releases
            for k in range((1 + wide) * acquires):
                own, heard = me.found[k], me.found[k + 2]
                for key, view in list((heard if both else own).items()):
                    self._see(me, view)
                    del heard[key]
                own.clear()
            orders = [self._fenced[k] for k in (number >> 10, -1)[: (1 + wide) * both]]
            for order in orders:
                self._see(me, order)
            for order in orders:
                signals = {word: me.view[word] for word in self._signals & me.view.keys()}
                order.update(self._newer(signals, order))
            if releases:
                me.lent, me.released = True, (me.view, me.view if wide else me.released[1])
            if both:
                me.ordered = (me.view, me.view if wide else me.ordered[1])

    def meet(self, numbers: Int64s, whole: bool = False) -> None:
        """Threads pass a barrier together: each knows, and has released in order, what any of them had.

        If they are a `whole` block, no old value is left of its shared memory, nor anything to know of it.
        """
        threads = [self._threads[number] for number in numbers.tolist()]
        self._settled = self.near.pop(int(numbers[0]) >> 10, set()) if whole else set()
        for word in self._settled:
            self._words.pop(word, None)
        views = zip(*[(me.view, *me.ordered) for me in threads], strict=True)
        view, near, far = map(self._united, views)
        found = [{k: v for me in threads for k, v in me.found[way].items()} for way in (2, 3)]
        for me in threads:
            parts = zip(me.released, me.ordered, (near, far), strict=True)
            me.released = tuple(b if own is a else self._united((own, b)) for own, a, b in parts)
            me.view, me.lent, me.ordered = view, True, (near, far)
            me.found = (*me.found[:2], *map(dict, found))
        self._settled = set()

    def arrive(self, numbers: Int64s, heard: View) -> View:
        """Threads arrive at a barrier with phases: what it has heard, with all that they have seen."""
        return self._united([heard, *(self._threads[number].view for number in numbers.tolist())])

    def learn(self, numbers: Int64s, view: View) -> None:
        """Threads have waited for a phase at which this was heard."""
        for number in numbers.tolist() if self.left >= 0 else ():
            self._see(self._threads[number], view)

    def _united(self, views: Iterable[View]) -> View:
        out: View = {}
        for view in {id(view): view for view in views}.values() if self.left >= 0 else ():
            out.update(self._newer(view, out))
        for word in self._settled & out.keys():
            del out[word]
        return out

    def read(
        self, numbers: Int64s, cells: NDArray[Any], index: Int64s, scope: int
    ) -> NDArray[Any] | None:
        """Return the values that threads get from cells, or None if they are what is there."""
        out, first = None, _address(cells)
        lanes = zip(numbers.tolist(), index.tolist(), strict=True) if self.left >= 0 else ()
        for k, (number, i) in enumerate(lanes):
            word = first + i * cells.itemsize
            log = self._log(word, int(cells[i]))
            if log is None:
                continue
            chosen = self._pick(number, word, log)
            if chosen is not log[-1]:
                out = cells[index] if out is None else out
                out[k] = chosen.value
            self._take(number, word, chosen, scope)
        return out

    def wrote(
        self, numbers: Int64s, cells: NDArray[Any], index: Int64s, before: Any, scope: int
    ) -> None:
        """Threads have stored to cells."""
        first = self._hold(cells)
        stored = zip(numbers.tolist(), index.tolist(), before.tolist(), strict=True)
        for number, i, old in stored if self.left >= 0 else ():
            self._write(number, first + i * cells.itemsize, old, int(cells[i]), scope)

    def exchanging(
        self, threads: Int64s, scope: int, used: bool, change: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Make an atomic operation on all lanes one that goes lane by lane."""

        def one_by_one(view: NDArray[Any], index: Int64s, *parts: Any) -> NDArray[Any]:
            cells, out = view.view(UNSIGNED[view.itemsize]), np.empty(len(index), view.dtype)
            first = self._hold(cells)
            for k, (number, i) in enumerate(zip(threads.tolist(), index.tolist(), strict=True)):
                word, given = first + i * cells.itemsize, [part[k : k + 1] for part in parts]
                last = int(cells[i])
                log = self._log(word, last) or [_Write(0, last, -1, 2, {})]
                seen = self._pick(number, word, log)
                cells[i] = seen.value
                got = change(view, index[k : k + 1], *given)
                if int(cells[i]) == seen.value:  # as if it had come so much earlier
                    cells[i] = last
                elif seen is not log[-1] and _strong(scope, number, log[-1]):
                    seen, cells[i] = log[-1], last  # a change follows the last one
                    got = change(view, index[k : k + 1], *given)
                if used:
                    self._take(number, word, seen, scope)
                if got is not None:
                    out[k] = got[0]
                if int(cells[i]) != last:
                    heads = seen.heads if _strong(scope, number, seen) else {}
                    self._write(number, word, last, int(cells[i]), scope, heads)
            return out

        return one_by_one

    # -- the model

    def _see(self, me: _HostileThread, view: View) -> None:
        """A thread knows of what a view does."""
        news = self._newer(view, me.view)
        if news and me.lent:
            self.left -= len(me.view)
            me.view, me.lent = dict(me.view), False
        me.view.update(news)

    def _newer(self, view: View, known: View) -> View:
        """The part of a view that is not known."""
        self.left -= len(view)
        return {word: time for word, time in view.items() if time > known.get(word, 0)}

    def _log(self, word: int, value: int) -> list[_Write] | None:
        """The writes of a word that ends with this value; none if somebody else has written to it."""
        self.left -= 1
        log = self._words.get(word)
        if log is not None and (log[-1].value != value or self.left < 0):
            del self._words[word]
            return None
        return log

    def _pick(self, number: int, word: int, log: list[_Write]) -> _Write:
        """A write that a thread may read."""
        seen = self._threads[number].view.get(word, 0)
        old = [write for write in log[:-1] if write.time >= seen]
        looks = self._old.pop((number, word), 0)
        if not old or looks == _LOOKS or self.random.random() < 0.5:
            return log[-1]
        self._old[number, word] = looks + 1
        self._launch.changes += 1  # so that whoever waits looks once more
        return self.random.choice(old)

    def _take(self, number: int, word: int, write: _Write, scope: int) -> None:
        if not _strong(scope, number, write):
            return  # a plain load promises nothing of the next one either
        me = self._threads[number]
        self._see(me, {word: write.time})
        for other, (near, far) in write.heads.items():
            same = other >> 10 == number >> 10
            if view := near if same else far:
                me.found[1 - same][id(view)] = me.found[3 - same][id(view)] = view

    def _write(
        self, number: int, word: int, old: int, new: int, scope: int, heads: Heads | None = None
    ) -> None:
        me = self._threads[number]
        log = self._words.setdefault(word, [_Write(0, old, -1, 2, {})])
        self._now += 1
        heads = dict(heads or ())
        self.left -= 1 + len(heads)
        if scope:
            self._signals.add(word)
        if scope and any(me.released):
            near, far = me.released
            heads[number] = near, far if scope > 1 else {}
        log.append(_Write(self._now, new, number, scope, heads))
        del log[:-_DEPTH]
        self._see(me, {word: self._now})

    def _hold(self, cells: NDArray[Any]) -> int:
        """The address of a memory that is kept from now on."""
        first = _address(cells)
        self._held.setdefault(first, cells)
        return first


def _address(cells: NDArray[Any]) -> int:
    first: int = cells.__array_interface__["data"][0]
    return first


class _Late(ByteRegion):
    """Memory whose loads and stores go by `LaunchState.hostile`, and in which no race is looked for."""

    def note_read(self, a: MaskedAccess, within: Any) -> None:
        pass

    def note_write(self, a: MaskedAccess, within: Any, changes: Changes, atomic: bool) -> None:
        pass

    def load(self, a: MaskedAccess) -> Any:
        if a.team.turns:
            return one_by_one(self, a)
        value, numbers = super().load(a), a.team.thread_id[a.mask.index]
        got = a.team.launch.hostile.read(numbers, self._raw(a), a.index, 2 * a.site.volatile)
        return value if got is None else a.mask.spread(got.view(a.scalar.dtype))

    def store(self, a: MaskedAccess, value: Any) -> None:
        self.locate(a)
        cells, index = self._raw(a), a.index
        before, numbers = cells[index], a.team.thread_id[a.mask.index]
        super().store(a, value)
        a.team.launch.hostile.wrote(numbers, cells, index, before, 2 * a.site.volatile)

    def _raw(self, a: MaskedAccess) -> NDArray[Any]:
        """All of it as whole numbers of the size of an element."""
        return self.flat(a.scalar).view(UNSIGNED[a.size])


class LateGlobal(_Late, GlobalRegion):
    """An allocation of hostile global memory."""


class LateShared(_Late, SharedRegion):
    """A variable in hostile shared memory, of one block."""

    def mark(self, a: MaskedAccess) -> None:
        super().mark(a)
        cells, block = self._raw(a), int(a.team.thread_id[a.mask.index[0]]) >> 10
        words = _address(cells) + a.index * cells.itemsize
        a.team.launch.hostile.near[block].update(words.tolist())
