"""Code that the memories of a kernel share: addresses, bounds, and the check for what nobody wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Int64s, by_lane, varies
from simgpu.cuda_c.memory.holes import holed
from simgpu.cuda_c.memory.names import Named, report_bounds, report_misaligned
from simgpu.cuda_c.memory.pointers import MaskedAccess, Together, Words, one_by_one, row_of
from simgpu.cuda_c.memory.races import Changes, Shadow
from simgpu.cuda_c.types import Scalar
from simgpu.errors import RaceError, UninitialisedReadError

if TYPE_CHECKING:
    from simgpu.cuda_c.cost.tally import Tally
    from simgpu.cuda_c.lockstep.team import Team
    from simgpu.cuda_c.memory.copies import CopyMarks

UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
# A 1 in each byte of a number.
WRITTEN: dict[int, Any] = {size: make(int("01" * size, 16)) for size, make in UNSIGNED.items()}


def inside(part: NDArray[Any], limit: int) -> bool:
    """Tell in one pass, by reading negative indices as huge, whether all are in `range(limit)`."""
    if part.dtype.kind == "i":
        part = part.view(UNSIGNED[part.dtype.itemsize])
    return bool(part.max() < limit)


class ByteRegion(Named):
    """Bytes that are addressed element by element: the base of global and shared memory.

    A region says how to `place` an element of the block in the whole, where nothing has been written
    (`unwritten`), and what it remembers of reads and writes.
    """

    shared = False
    blocks = 1

    def __init__(self, nbytes: int, cell: int, data: NDArray[np.uint8], meter: Tally) -> None:
        self.nbytes, self.types = nbytes, {}
        self.meter = meter
        self.cell = cell
        self.data = data
        self._shadow: Shadow | None = None
        self.watched = True  # whether reads are remembered
        self.marks: CopyMarks | None = None  # of asynchronous copies (`copies`)
        # For each word of 8 bytes which barrier with phases it is (`phases`), and 0 if none.
        self.phased: Int64s | None = None
        self.views: dict[str, NDArray[Any]] = {}

    @property
    def unwritten(self) -> NDArray[np.uint8] | None:
        """One byte for each byte, 1 where something was written; None if it was everywhere."""
        raise NotImplementedError

    def count(self, a: MaskedAccess, part: Any) -> None:
        """Report an access to the meter, or that of one turn."""
        if a.shift and (not self.shared or a.shift * a.size % 128):  # else it is in the same banks
            part = part + a.shift
        if a.wide != a.scalar.size:
            part = part // (a.wide // a.size)
        tell = self.meter.shared_access if self.shared else self.meter.global_access
        tell(a.site, a.mask, part, a.wide)

    def place(self, a: MaskedAccess, write: bool) -> None:
        """Go from the elements of a block to those of the flat view, both behind `shift`."""
        raise NotImplementedError

    def note_read(self, a: MaskedAccess, within: Any) -> None:
        """Remember a read, for the race detector; `within` is its part in a block, before `place`."""
        if np.ndim(a.part) == 2:
            turns = len(a.part)
            part = np.broadcast_to(a.part, (turns, a.mask.n)).reshape(-1)
            a = replace(a, mask=Together(np.tile(a.mask.index, turns)), part=part)
        for cells in self._race_cells(a):
            self._watch().read(a, cells)

    def note_write(self, a: MaskedAccess, within: Any, changes: Changes, atomic: bool) -> None:
        """Remember a write, and hold it against what is remembered; `within` as of a read."""
        for cells in self._race_cells(a):
            self._watch().write(a, cells, changes, atomic)

    def mark(self, a: MaskedAccess) -> None:
        """Note that elements have been written."""
        marks = self.unwritten
        if marks is not None:
            marks.view(UNSIGNED[a.size])[a.shift :][a.part] = WRITTEN[a.size]

    def flat(self, scalar: Scalar) -> NDArray[Any]:
        """All of it as elements of a type."""
        view = self.views.get(scalar.name)
        if view is None:
            whole = self.data.size // scalar.size * scalar.size
            view = self.views[scalar.name] = self.data[:whole].view(scalar.dtype)
        return view

    def load(self, a: MaskedAccess) -> Any:
        if a.team.turns:
            return self._load_turns(a)
        self.locate(a)
        if a.wide:
            self.count(a, a.part)
        within = a.part
        self.place(a, False)
        if self.marks is not None or a.site.apart:
            self._meet_copies(a, within, False)
        lacking = self._lacking(a)
        if lacking is not None:
            self._require_written(a)
        if a.site.volatile and a.team.launch.watches:
            for cells in self._race_cells(a) if self._shadow is not None else ():
                self._watch().look(a, cells)
        if self.watched and not a.site.relaxed:
            a.team.clock += 1
            self.note_read(a, within)
        view = self.flat(a.scalar)[a.shift :]
        # All indices are known to be inside; to clip them is faster than to look again.
        value = a.mask.spread(view.take(a.part, mode="clip")) if varies(a.part) else view[a.part]
        if lacking is None:
            return value
        bits = np.zeros(a.mask.layout.lanes, np.bool_)
        bits[a.mask.index] = lacking
        element = self._described(a, int(np.argmax(lacking)))[0]
        what = f"a copy of {element}, which nothing has written{self.advice}"
        return holed(value, bits, what)

    def _load_turns(self, a: MaskedAccess) -> Any:
        """As `load`, in several turns of a loop: with a row of addresses for each, or the same in all."""
        team, mask, site, turns = a.team, a.mask, a.site, a.team.turns
        if not self._locate_turns(a):
            return one_by_one(self, a)
        within = a.part
        if a.wide:

            def access(turn: int) -> None:
                self.count(a, row_of(within, turn))

            team.meter.turns(site, mask, turns, a.wide, self.shared, access)
        self.place(a, False)
        if self.marks is not None:
            self._meet_copies(a, within, False)
        if self._lacking(a) is not None:
            return one_by_one(self, a)
        if self.watched and not site.relaxed:
            team.clock += 1
            self.note_read(a, within)
        value: Any = self.flat(a.scalar)[a.shift :][a.part]
        alike = np.ndim(value) == 0 or value.shape[-1] != mask.n or np.shape(value) == (turns, 1)
        if mask.full or alike:
            return value
        out = np.zeros((*value.shape[:-1], mask.layout.lanes), value.dtype)
        out[..., mask.index] = value
        return out

    def _locate_turns(self, a: MaskedAccess) -> bool:
        """Find the elements of several turns of a loop, if they can be had at once."""
        ptr, mask, size = a.ptr, a.mask, a.scalar.size
        shift, factor = ptr.base // size, ptr.stride // size
        part: Any = np.asarray(ptr.offset, np.int64) * factor
        if not mask.full and part.shape[-1:] == (mask.layout.lanes,):
            part = part[..., mask.index]
        limit = self.nbytes // size - shift
        even = not ptr.stride % size and not ptr.base % size and shift >= 0 and limit > 0
        if not even or not inside(part, limit):
            return False
        a.shift, a.part = shift, part if part.ndim else int(part)
        return True

    def store(self, a: MaskedAccess, value: Any) -> None:
        self.locate(a)
        if a.wide:
            self.count(a, a.part)
        within = a.part
        self.place(a, True)
        if self.marks is not None or a.site.apart:
            self._meet_copies(a, within, True)
        team, mask, part = a.team, a.mask, a.part
        view = self.flat(a.scalar)[a.shift :]
        value = mask.take(value)
        team.clock += 1

        def changes() -> Bits:
            return by_lane(differ(view[part], value), mask.n)

        self.note_write(a, within, changes, False)
        if team.launch.watches and np.count_nonzero(differ(view[part], value)):
            team.launch.changed(mask)
        if varies(part):
            view[part] = value
        else:
            view[part] = value[-1] if varies(value) else value
        if varies(value):
            lost = differ(view[part], value)
            if a.site.volatile and np.count_nonzero(lost):  # of other warps, either may come last
                lost = lost & (team.thread_id[mask.index] >> 5 == _last_writers(a) >> 5)
            if np.count_nonzero(lost):
                self._report_collision(a, lost)
        self.mark(a)

    def cells(self, a: MaskedAccess) -> Words:
        view, part = self.reached(a)
        # Whatever the pointer is called here, the memory is known by where it is.
        key = view.__array_interface__["data"][0]
        self.meter.atomic(a.site, a.mask, part, a.size, self.shared, key)
        return view, part

    def reached(self, a: MaskedAccess) -> Words:
        """As `cells`, without a price."""
        self.locate(a)
        within = a.part + a.shift
        self.place(a, True)
        if self.marks is not None:
            self._meet_copies(a, within, True)
        a.part, a.shift = a.index, 0
        self._require_written(a)
        a.team.clock += 1
        self.note_write(a, within, None, True)
        self.mark(a)
        return self.flat(a.scalar), a.part

    def _meet_copies(self, a: MaskedAccess, within: Any, writes: bool) -> None:
        """Hold an access against the asynchronous copies that are under way, of which it may be one."""
        copies, near = a.team.launch.copies, self.near(a, within)
        assert copies is not None
        if a.site.apart and writes:
            copies.start(self, a, near, reads=False)
            return
        if self.marks is not None and (
            self.marks.parts & near or (writes and self.marks.out_of is not None)
        ):
            copies.meet(self, a, writes)
        if a.site.apart and self.watched:
            copies.start(self, a, 0, reads=True)

    def near(self, a: MaskedAccess, within: Any) -> int:
        """The parts of the memory that an access may be in, as bits."""
        return -1

    def landed(self, team: Team, words: Any, writers: Any, near: int) -> None:
        """Asynchronous copies to words of 4 bytes have arrived, as if these threads wrote there now."""
        if team.launch.hostile is None:
            if self.cell > 4:
                self._refine(4)
            self._watch().arrive(*self._cells_of(words, writers), team.clock)

    def left(self, team: Team, words: Any, readers: Any, near: int) -> None:
        """Copies for these threads have read words of 4 bytes until now."""
        if team.launch.hostile is None and self.cell <= 4:
            self._watch().leave(*self._cells_of(words, readers), team.clock)

    def _cells_of(self, words: Any, threads: Any) -> tuple[Int64s, Int64s]:
        """The cells of words of 4 bytes, and for each the thread of its word."""
        ratio = 4 // self.cell
        cells = words[:, None] * ratio + np.arange(ratio)
        return cells.reshape(-1), np.repeat(threads, ratio)

    def read_stretch(self, a: MaskedAccess) -> NDArray[Any]:
        """The words of bulk copies, whose lanes read several each; they are located, and inside."""
        within = a.part
        self.place(a, False)
        self._meet_copies(a, within, False)
        self._require_written(a)
        a.team.clock += 1
        if self.watched:
            self.note_read(a, within)
        return self.flat(a.scalar)[a.part]

    def write_stretch(self, a: MaskedAccess, value: NDArray[Any]) -> None:
        """As `read_stretch`, for what is written."""
        within = a.part
        self.place(a, True)
        self._meet_copies(a, within, True)
        a.team.clock += 1
        self.note_write(a, within, None, False)
        self.flat(a.scalar)[a.part] = value
        self.mark(a)

    def last_writes(self, a: MaskedAccess) -> tuple[Int64s, Int64s] | None:
        """Who wrote last to each element of an access, which has its place, and when; None if nobody did."""
        return None if self._shadow is None else self._shadow.last_writes(self._race_cells(a)[0])

    def locate(self, a: MaskedAccess) -> None:
        """Find each lane's element; fault at the first one that is not there."""
        ptr, mask, size = a.ptr, a.mask, a.scalar.size
        offset = ptr.offset
        if not ptr.stride % size and not ptr.base % size:
            a.shift, factor = ptr.base // size, ptr.stride // size
            limit = self.nbytes // size - a.shift
            if varies(offset):
                part = offset if mask.full else offset.take(mask.index)
                a.part = part if factor == 1 else part.astype(np.int64) * factor
                if a.shift >= 0 and limit > 0 and inside(a.part, limit):
                    return
            elif 0 <= a.shift + offset * factor < limit + a.shift:
                a.shift, a.part = 0, a.shift + int(offset) * factor
                return
        where = mask.take(ptr.address())
        report_bounds(self, a)
        report_misaligned(a.team, mask, ptr, where, size, a.scalar.name, a.site)
        a.shift, a.part = 0, where // size if varies(where) else int(where // size)

    def _race_cells(self, a: MaskedAccess) -> list[Int64s]:
        """The cells that an access touches; one array for each cell of an element."""
        part, size = a.part, a.scalar.size
        if size < self.cell:
            self._refine(size)
        ratio = size // self.cell
        whole = part.astype(np.int64, copy=False) if varies(part) else np.full(a.mask.n, part)
        first = (whole + a.shift) * ratio if a.shift or ratio > 1 else whole
        return [first + k if k else first for k in range(ratio)]

    def _refine(self, size: int) -> None:
        """Watch for races in finer steps, as elements are smaller than the parameters' types promised."""
        # Earlier accesses are forgotten, so a race with one of them is missed. That happens at the first such
        # access only, and coarser cells would report races between neighbours in one cell.
        self.cell, self._shadow = size, None

    def _watch(self) -> Shadow:
        """The race detector's memory of this one."""
        if self._shadow is None:
            self._shadow = Shadow(self, self.data.size // self.cell)
        return self._shadow

    def element(self, name: str, byte: int, size: int) -> tuple[str, int, int]:
        """The name of the element of `size` bytes that a byte is in; its number in a block; of how many."""
        one = self.data.size // self.blocks  # block's part of the whole
        index = (byte % one if self.shared else byte) // size
        return self.spelled(name, index * size, size), index, self.nbytes // size

    def _lacking(self, a: MaskedAccess) -> Any:
        """Where in these elements nothing was written; None if that is nowhere."""
        written = self.unwritten
        if written is None:
            return None
        marks = written.view(UNSIGNED[a.size])[a.shift :]
        got = marks.take(a.part) if varies(a.part) else marks[a.part]
        lacking = got != WRITTEN[a.size]
        return lacking if np.count_nonzero(lacking) else None

    def _require_written(self, a: MaskedAccess) -> None:
        """Fault if an element was never written, unless the access only copies it, or stores over it."""
        lacking = None if a.copied else self._lacking(a)
        if lacking is not None:
            k = int(np.argmax(lacking))
            element, more = self._described(a, k)
            text = f"reads {element}, which nothing has written{self.advice}"
            a.team.fault(UninitialisedReadError, a.site.at, int(a.mask.index[k]), text, **more)

    def _report_collision(self, a: MaskedAccess, lost: Bits) -> None:
        """Raise, since several lanes of one instruction wrote different values to one element."""
        where = np.broadcast_to(np.asarray(a.part), (a.mask.n,))
        k = int(lost.argmax())
        winner = int(np.flatnonzero(where == where[k])[-1])
        lane, other = int(a.mask.index[k]), int(a.mask.index[winner])
        element, more = self._described(a, k)
        launch, layout = a.team.launch, a.team.layout
        who = f"thread {launch.thread_name(int(layout.linear[other]))}"
        if layout.block[lane] != layout.block[other]:
            who += f" of block {launch.block_name(int(layout.numbers[layout.block[other]]))}"
        text = (
            f"writes {element}, and so does {who} in the same instruction, with another value: which of "
            "them stays is left to chance"
        )
        a.team.fault(RaceError, a.site.at, lane, text, **more)

    advice = ""  # what a message about a read of what nothing has written adds

    def _described(self, a: MaskedAccess, k: int) -> tuple[str, dict[str, Any]]:
        """The element of a lane, which is the k-th: in words, and for a `FaultSite`."""
        text, index, bound = self.element(a.name, int(a.index[k]) * a.size, a.size)
        return text, {"array": a.name, "index": index, "bound": bound}


def _last_writers(a: MaskedAccess) -> Int64s:
    """For each lane, the thread whose value stays where it writes."""
    backwards = a.index[::-1]
    _, first, which = np.unique(backwards, return_index=True, return_inverse=True)
    return a.threads[::-1][first[which]][::-1]


def differ(a: Any, b: Any) -> Any:
    """Compare the bits of two values, since 0 is not -0, and mark where they differ; NaN are the same."""
    if a.dtype.kind != "f":
        return a != b
    raw = UNSIGNED[a.dtype.itemsize]
    unequal: Any = a.view(raw) != b.view(raw)
    if np.count_nonzero(unequal):
        unequal = unequal & ~(np.isnan(a) & np.isnan(b))
    return unequal
