"""Arrays and addressed variables that each thread has of its own."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep import Bits, Mask, Team, by_lane, varies
from simgpu.cuda_c.memory.holes import holed
from simgpu.cuda_c.memory.names import Named, report_bounds
from simgpu.cuda_c.memory.pointers import MaskedAccess, Words, one_by_one
from simgpu.cuda_c.memory.regions import UNSIGNED, inside
from simgpu.cuda_c.types import CType, leaves, size_of
from simgpu.errors import KernelFault, OutOfBoundsError, UninitialisedReadError


class LocalRegion(Named):
    """One local variable of every thread.

    Its words lie in rows, one row for each word and in it one column for each lane. As long as
    every index is the same in all threads, which is what unrolled register arrays do, a row is
    handed out and replaced as a whole, and nothing is copied. The first index that differs between
    threads turns the rows into one matrix.

    `unit` is how many bytes its smallest element has.
    """

    def __init__(self, name: str, ctype: CType, unit: int, team: Team) -> None:
        self.nbytes, self.types = size_of(ctype), {name: ctype}
        self.ended: Bits | None = None
        self.unit = unit
        self.team, self.lanes = team, team.layout.lanes
        count = self.nbytes // unit
        self.rows: list[Any] | None = [None] * count
        self.defined: list[Any] = [None] * count  # None, True, or a mask's bits
        for word in _between_members(ctype, unit):  # which a copy of bytes may read
            self.rows[word], self.defined[word] = UNSIGNED[unit](0), True
        self.matrix: NDArray[Any] = np.zeros((0, 0))
        self.written: Bits | None = None

    def _word(self, a: MaskedAccess) -> Any:
        """Row of an address, as an int or an array over the lanes of the mask, within bounds."""
        ptr, size = a.ptr, a.size
        if ptr.stride == size and not ptr.base % size:
            shift = ptr.base // size
            # Wide, because an index may be an `unsigned`, which would wrap.
            wide = shift and varies(ptr.offset)
            word = ptr.offset.astype(np.int64, copy=False) + shift if wide else ptr.offset + shift
        else:
            word = ptr.address() // size
        word, count = a.mask.take(word), self.nbytes // size
        if not (inside(word, count) if varies(word) else 0 <= word < count):
            report_bounds(self, a)
        if varies(word):
            self._to_matrix()
        return word

    def load(self, a: MaskedAccess) -> Any:
        if a.team.turns:
            return one_by_one(self, a)
        if self.ended is not None:
            self._require_alive(a)
        mask, dtype = a.mask, a.scalar.dtype
        if a.size != self.unit:
            words, lanes = self._words(a)
            value = mask.spread(self.matrix[words, lanes].reshape(-1).view(dtype))
            if self.written is None:
                return value
            known = self.written[words, lanes]
            first = words[np.arange(mask.n), known.argmin(axis=1)]
            return self._known(a, value, np.asarray(known.all(axis=1)), first)
        word = self._word(a)
        if self.rows is not None:
            row, known = self.rows[word], self.defined[word]
            value = a.scalar.make(0) if row is None else _seen(row, dtype)
            known = np.zeros(mask.n, np.bool_) if known is None else mask.take(known)
            return value if known is True else self._known(a, value, known, word)
        if varies(word):
            flat = word.astype(np.int64) * self.lanes + mask.index
            value = mask.spread(self.matrix.reshape(-1).take(flat).view(dtype))
        else:
            value = self.matrix[word].view(dtype).copy()
        if self.written is None:
            return value
        return self._known(a, value, self.written[word, mask.index], word)

    def _known(self, a: MaskedAccess, value: Any, known: Bits, words: Any) -> Any:
        """What lanes loaded from these words, of which nothing may have been written to some."""
        if known.all():
            return value
        k = int(known.argmin())
        word = int(by_lane(words, len(known))[k])
        element = self.spelled(a.name, word * self.unit, self.unit)
        what = f"{element}, a local variable that nothing has written"
        if a.copied:
            missing = np.zeros(self.lanes, np.bool_)
            missing[a.mask.index] = ~known
            return holed(value, missing, what)
        more = {"array": a.name, "index": word, "bound": self.nbytes // self.unit}
        lane = int(a.mask.index[k])
        a.team.fault(UninitialisedReadError, a.site.at, lane, f"reads {what}", **more)

    def store(self, a: MaskedAccess, value: Any) -> None:
        mask = a.mask
        a.team.launch.changes += 1
        if self.ended is not None:
            self._require_alive(a)
        if a.size != self.unit:
            at = self._words(a)
            whole = np.ascontiguousarray(mask.take(a.team.array(value)))
            self.matrix[at] = whole.view(self.matrix.dtype).reshape(mask.n, -1)
            if self.written is not None:
                self.written[at] = True
            return
        word, raw = self._word(a), _seen(value)
        if self.rows is None:
            self.matrix[word, mask.index] = mask.take(raw)
            if self.written is not None:
                self.written[word, mask.index] = True
            return
        old, defined = self.rows[word], self.defined[word]
        if mask.full or old is None:
            self.rows[word], self.defined[word] = raw, True if mask.full else mask.bits
            return
        self.rows[word] = np.where(mask.bits, raw, old)
        if defined is not True:
            union = defined | mask.bits
            self.defined[word] = True if union.all() else union

    def cells(self, a: MaskedAccess) -> Words:
        text = f"uses an atomic on the local variable '{a.name}': atomics work on global and shared memory"
        a.team.fault(KernelFault, a.site.at, int(a.mask.index[0]), text, array=a.name)

    def _to_matrix(self) -> None:
        if self.rows is None:
            return
        raw = UNSIGNED[self.unit]
        self.matrix = np.zeros((len(self.rows), self.lanes), raw)
        written = np.zeros((len(self.rows), self.lanes), np.bool_)
        for k, (row, defined) in enumerate(zip(self.rows, self.defined, strict=True)):
            if row is not None:
                self.matrix[k] = row
                written[k] = defined
        self.written = None if written.all() else written
        self.rows = None

    def _words(self, a: MaskedAccess) -> tuple[NDArray[Any], NDArray[Any]]:
        """For each lane of an access the words that it is about, which are no larger than it from now on."""
        address = a.mask.take(a.ptr.address())
        if np.min(address) < 0 or np.max(address) + a.size > self.nbytes:
            report_bounds(self, a)
        self._to_matrix()
        if a.size < self.unit:
            fine = np.ascontiguousarray(self.matrix.T).view(UNSIGNED[a.size])
            self.matrix = np.ascontiguousarray(fine.T)
            if self.written is not None:
                self.written = np.repeat(self.written, self.unit // a.size, axis=0)
            self.unit = a.size
        first = np.broadcast_to(address, a.mask.n)[:, None] // self.unit
        return first + np.arange(a.size // self.unit), a.mask.index[:, None]

    def end(self, mask: Mask) -> None:
        """The block that declares it is over for these lanes."""
        self.ended = mask.bits if self.ended is None else self.ended | mask.bits

    def begin(self, mask: Mask) -> None:
        """These lanes declare it anew."""
        if self.ended is not None:
            self.ended = self.ended & ~mask.bits

    def _require_alive(self, a: MaskedAccess) -> None:
        assert self.ended is not None
        gone = a.mask.bits & self.ended
        if gone.any():
            text = (
                f"{'writes' if a.site.write else 'reads'} '{a.name}' through a pointer, after the block that "
                "declares it has ended: declare it where the pointer is declared"
            )
            a.team.fault(OutOfBoundsError, a.site.at, int(gone.argmax()), text, array=a.name)


@lru_cache(maxsize=256)
def _between_members(ctype: CType, unit: int) -> tuple[int, ...]:
    """The words in which no member of a struct lies."""
    words = set(range(size_of(ctype) // unit if size_of(ctype) <= 4096 else 0))
    for leaf, offset in leaves(ctype) if words else ():
        words.difference_update(range(offset // unit, -(-(offset + size_of(leaf)) // unit)))
    return tuple(words)


def _seen(value: Any, dtype: Any = None) -> Any:
    """The bits of a value as numbers of a type; without one, as whole numbers of its size."""
    wanted = UNSIGNED[value.dtype.itemsize] if dtype is None else dtype
    if varies(value):
        return np.ascontiguousarray(value).view(wanted)
    return np.asarray(value).view(wanted)[()]
