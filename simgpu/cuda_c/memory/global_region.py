"""Global memory during one launch."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, Team, varies
from simgpu.cuda_c.lockstep.team import LaunchState
from simgpu.cuda_c.memory.allocation import GlobalMemory
from simgpu.cuda_c.memory.pointers import MaskedAccess, Ptr, Words
from simgpu.cuda_c.memory.regions import UNSIGNED, WRITTEN, ByteRegion
from simgpu.cuda_c.text.source import text_of
from simgpu.cuda_c.types import CHAR, ArrayType
from simgpu.errors import RaceError, ReadOnlyError


class GlobalRegion(ByteRegion):
    """One allocation, during one launch.

    `cell` is how many bytes the smallest element has that the kernel is expected to write. Reads of what is
    `watched` are remembered, since something in the kernel may write there.
    """

    def __init__(self, memory: GlobalMemory, launch: LaunchState, cell: int, watched: bool) -> None:
        super().__init__(memory.nbytes, cell, memory.data, launch.meter)
        self.memory = memory
        self.watched = watched
        self.advice = memory.advice
        self._touched: list[NDArray[np.uint8] | None] = [None, None]
        self._hull: list[tuple[int, int] | None] = [None, None]

    @property
    def unwritten(self) -> NDArray[np.uint8] | None:
        memory = self.memory
        return None if memory.fully_initialised else memory.shadow

    def store(self, a: MaskedAccess, value: Any) -> None:
        if self.memory.readonly:
            text = f"writes to '{a.name}', which may only be read"
            a.team.fault(ReadOnlyError, a.site.at, int(a.mask.index[0]), text, array=a.name)
        super().store(a, value)

    def cells(self, a: MaskedAccess) -> Words:
        out = super().cells(a)
        self.place(a, False)
        return out

    def mark(self, a: MaskedAccess) -> None:
        trail = self.memory.trail
        if trail is not None:
            trail.view(UNSIGNED[a.size])[a.shift :][a.part] = WRITTEN[a.size]
        super().mark(a)

    def place(self, a: MaskedAccess, write: bool) -> None:
        meter, shift, part, size = self.meter, a.shift, a.part, a.scalar.size
        if meter.exact_left > 0:
            meter.exact_left -= a.mask.n * (len(part) if np.ndim(part) == 2 else 1)
            touched = self._touched[write]
            if touched is None:
                room = -(-self.nbytes // 16) * 16
                touched = self._touched[write] = np.zeros(room, np.uint8)
            touched.view(UNSIGNED[size])[shift:][part] = WRITTEN[size]
            return
        hull = self._hull[write]
        if hull == (0, self.nbytes):
            return
        low, high = (int(part.min()), int(part.max())) if varies(part) else (part, part)
        low, high = (low + shift) * size, (high + shift + 1) * size
        self._hull[write] = (low, high) if hull is None else (min(low, hull[0]), max(high, hull[1]))

    def touched(self) -> Bits:
        """The bytes that were loaded or stored; all between the first and the last one if they are many."""
        out = np.zeros(self.nbytes, np.bool_)
        for touched, hull in zip(self._touched, self._hull, strict=True):
            out |= False if touched is None else touched[: self.nbytes] > 0
            out[slice(*hull) if hull else slice(0)] = True
        return out

    def needed(self) -> tuple[int, int]:
        """How many different bytes were loaded, and how many were stored."""
        out: list[int] = []
        for touched, hull in zip(self._touched, self._hull, strict=True):
            low, high = hull or (0, 0)
            out.append(high - low)
            if touched is not None:
                out[-1] += int(np.count_nonzero(touched[:low]) + np.count_nonzero(touched[high:]))
        return out[0], out[1]


class MappedRegion(GlobalRegion):
    """An allocation of the host's, in a launch that waits for it: what the host writes changes in a pause.

    All is volatile here, and no data race; but without a `__threadfence_system()` between them, two words may
    be seen in any order. A kernel writes a letter before its signal, a word that the host overwrites; and
    what the host writes with a flag, by which a loop waits, is read behind that.
    """

    def __init__(self, memory: GlobalMemory, launch: LaunchState, cell: int, watched: bool) -> None:
        super().__init__(memory, launch, cell, watched)
        self.held, self._word, words = self.data, cell, self.nbytes // cell + 1
        self._signal, self._at = np.zeros(words, np.bool_), np.empty(words, object)
        # The word to which the writer of a word had stored before, without a fence; and for each thread the
        # first word to which it has stored since the last fence of its block, and the last one of all.
        self._before, self.stored = np.full(words, -1, np.int64), dict[Team, Int64s]()
        # Of each word: which thread has stored there, and when; and in which of its turns the host has since.
        # For each thread, of which turn it knows by a flag, and has not fenced.
        self._by, self._when, self._told = (np.zeros(words, np.int64) for _ in range(3))
        self._flag, self._polled = np.zeros((2, words), np.bool_)
        self._turns, self.heard = 0, dict[Team, Int64s]()
        launch.talk.append(self)

    def place(self, a: MaskedAccess, write: bool) -> None:
        super().place(a, write)
        if write and a.team.launch.writes is not None:
            clocks = a.team.meter.clocks()[a.team.layout.warp[a.mask.index]]
            a.team.launch.writes(int(clocks.max()), a.site.volatile)

    def load(self, a: MaskedAccess) -> Any:
        value, team, mask, site = super().load(a), a.team, a.mask, a.site
        if not self._turns or team.turns:
            return value
        words = a.index * a.size // self._word
        known = self.heard.setdefault(team, np.zeros(team.layout.lanes, np.int64))
        told, heard = self._told[words], known[mask.index]
        self._flag[words] |= site.polls
        bad = (told > 0) & (told <= heard) & ~self._flag[words]
        if bad.any():
            word, lane = int(words[bad][0]), int(mask.index[bad][0])
            text = f"reads '{a.name}'[{word}], which the host wrote with a flag, and may get an old value: "
            text += "no `__threadfence_system()` between the last look at the flag and the answer"
            team.fault(RaceError, site.at, lane, text, array=a.name, index=word)
        if site.polls:
            known[mask.index] = np.maximum(told, heard)
        return value

    def store(self, a: MaskedAccess, value: Any) -> None:
        super().store(a, value)
        team, lanes, words = a.team, a.mask.index, a.index * a.size // self._word
        first, last = self.stored.setdefault(team, np.full((2, team.layout.lanes), -1))
        before, last[lanes] = first[lanes], words
        first[lanes] = np.where((before < 0) & ~self._signal[words], words, before)
        self._before[words], self._at[words] = np.where(before == words, -1, before), a.site.at
        self._by[words], self._when[words], self._told[words] = team.thread_id[lanes], team.clock, 0

    def fenced(self, team: Team, lanes: Bits, acquires: bool, releases: bool) -> None:
        """These lanes have executed a fence that the host can see."""
        if team in self.stored and releases:
            self.stored[team][0, lanes] = -1
        if team in self.heard and acquires:
            self.heard[team][lanes] = 0

    def answered(self) -> None:
        """The host has had its turn: see what it wrote, and what it read."""
        if not self.memory.looked and np.array_equal(self.data, self.held):
            self._turns += 1
            return
        words = np.unique(np.flatnonzero(self.data != self.held) // self._word)
        began, ended = np.full((2, len(self._at)), -1)  # the host's looks at each word
        for n, at in enumerate(self.memory.looked):
            if isinstance(at, slice):
                part = slice(at.start // self._word, -(-at.stop // self._word))
            else:
                part = at // self._word
            began[part], ended[part] = np.where(began[part] < 0, n, began[part]), n
        self.memory.looked.clear()
        read = np.flatnonzero(ended >= 0)
        self._signal[words], before = True, self._before[words]
        for team, (_, last) in self.stored.items():
            bad = (before >= 0) & ~self._signal[before] & np.isin(words, last)
            if bad.any():
                text = "without a __threadfence_system() between: it may see the signal first"
                text = f"and then [{words[bad][0]}], which the host took for a signal, {text}"
                self._mistaken(team, int(before[bad][0]), int(words[bad][0]), text)
            flags = words[(self._when[words] > 0) & (began[words] >= 0)][:64, None]
            behind = (self._by[flags] == self._by[read]) & (self._when[flags] < self._when[read])
            behind &= (began[flags] < ended[read]) & ~(self._signal[read] | self._polled[read])
            for flag, data in np.argwhere(behind):
                text = f"which the host took for a signal that [{read[data]}] is there, and only then that: "
                text += "the letter comes first, then __threadfence_system(), and then the signal"
                self._mistaken(team, int(flags[flag, 0]), int(read[data]), text)
        self._turns += 1
        self._when[words], self._told[words] = 0, self._turns
        self._polled[read] |= not len(words)

    def _mistaken(self, team: Team, first: int, then: int, text: str) -> NoReturn:
        text = f"writes '{self.memory.name}'[{first}] (line {self._at[first].line}) {text}"
        team.fault(RaceError, self._at[then], None, text)


def literal(team: Team, text: str) -> Ptr:
    """The characters of a string literal, in memory that no thread may write."""
    known = team.launch.literals.get(text)
    if known is None:
        content = np.frombuffer(text.encode("latin-1") + b"\0", np.uint8)
        name = f'"{text_of(text)}"'
        memory = GlobalMemory(len(content), name)
        memory.data[:] = content
        memory.mark_written()
        memory.readonly = True
        region = GlobalRegion(memory, team.launch, 1, False)
        region.types[name] = ArrayType(CHAR, len(content), True)
        known = team.launch.literals[text] = Ptr(region, 0, 1, 0, name)
    return known
