"""Arrays and addressed variables that each thread has of its own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simgpu.cuda_c.lockstep.masks import Mask, varies
from simgpu.cuda_c.lockstep.meter import Site
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory.loads_in_summing_loops import one_by_one
from simgpu.cuda_c.memory.names import Named, report_bounds
from simgpu.cuda_c.memory.pointers import Ptr, Words
from simgpu.cuda_c.memory.regions import UNSIGNED, inside
from simgpu.cuda_c.types import CType, Scalar, leaves, size_of
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
        self.ended: NDArray[np.bool_] | None = None
        self.unit = unit
        self.lanes = team.layout.lanes
        count = self.nbytes // unit
        self.rows: list[Any] | None = [None] * count
        self.defined: list[Any] = [None] * count  # None, True, or a mask's bits
        for word in _between_members(ctype, unit):  # which a copy of bytes may read
            self.rows[word], self.defined[word] = UNSIGNED[unit](0), True
        self.matrix: NDArray[Any] = np.zeros((0, 0))
        self.written: NDArray[np.bool_] | None = None

    def _word(self, team: Team, mask: Mask, ptr: Ptr, size: int, site: Site) -> Any:
        """Row of an address, as an int or an array over the lanes of `mask`, within bounds."""
        if ptr.stride == size and not ptr.base % size:
            shift = ptr.base // size
            word = ptr.offset + shift if shift else ptr.offset
        else:
            word = ptr.address() // size
        word, count = mask.take(word), self.nbytes // size
        if not (inside(word, count) if varies(word) else 0 <= word < count):
            report_bounds(self, team, mask, ptr, size, site)
        if varies(word):
            self._to_matrix()
        return word

    def load(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site, wide: int) -> Any:
        size = scalar.size
        if team.turns:
            return one_by_one(self, team, mask, ptr, scalar, site, wide)
        if self.ended is not None:
            self._require_alive(team, mask, ptr, site)
        if size != self.unit:
            return self._load_other(team, mask, ptr, scalar, site)
        word = self._word(team, mask, ptr, size, site)
        if not varies(word):
            if self.rows is not None:
                self._require(team, mask, self.defined[word], ptr, word, site)
                return _seen(self.rows[word], scalar.dtype)
            self._require_matrix(team, mask, np.full(mask.n, word), ptr, site)
            return self.matrix[word].view(scalar.dtype).copy()
        self._require_matrix(team, mask, word, ptr, site)
        flat = word.astype(np.int64) * self.lanes + mask.index
        return mask.spread(self.matrix.reshape(-1).take(flat).view(scalar.dtype))

    def store(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site, wide: int
    ) -> None:
        size = scalar.size
        team.launch.changes += 1
        if self.ended is not None:
            self._require_alive(team, mask, ptr, site)
        if size != self.unit:
            self._store_other(team, mask, ptr, scalar, value, site)
            return
        word, raw = self._word(team, mask, ptr, size, site), _seen(value)
        if self.rows is not None:
            self._replace_row(int(word), mask, raw)
            return
        self.matrix[word, mask.index] = mask.take(raw)
        if self.written is not None:
            self.written[word, mask.index] = True

    def cells(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site) -> Words:
        text = (
            f"uses an atomic on the local variable '{ptr.name}': atomics work on global and "
            "shared memory"
        )
        team.fault(KernelFault, site.at, int(mask.index[0]), text, array=ptr.name)

    def _replace_row(self, word: int, mask: Mask, raw: Any) -> None:
        assert self.rows is not None
        old = self.rows[word]
        if mask.full or old is None:
            self.rows[word] = raw
            self.defined[word] = True if mask.full else mask.bits
            return
        self.rows[word] = np.where(mask.bits, raw, old)
        if self.defined[word] is not True:
            union = self.defined[word] | mask.bits
            self.defined[word] = True if union.all() else union

    def _require(
        self, team: Team, mask: Mask, defined: Any, ptr: Ptr, word: int, site: Site
    ) -> None:
        if defined is True:
            return
        missing = mask.bits if defined is None else mask.bits & ~defined
        if missing.any():
            self._unwritten(team, int(missing.argmax()), word, ptr, site)

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

    def _require_matrix(
        self, team: Team, mask: Mask, part: NDArray[Any], ptr: Ptr, site: Site
    ) -> None:
        if self.written is None:
            return
        known = self.written[part, mask.index]
        if not known.all():
            k = int((~known).argmax())
            self._unwritten(team, int(mask.index[k]), int(part[k]), ptr, site)

    def _load_other(self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, site: Site) -> Any:
        raw, ratio = self._split(scalar.size)
        parts = [ptr.moved(k * self.unit) for k in range(ratio)]
        words = [team.array(self.load(team, mask, part, raw, site, 0)) for part in parts]
        return np.stack(words, axis=-1).reshape(-1).view(scalar.dtype)

    def _store_other(
        self, team: Team, mask: Mask, ptr: Ptr, scalar: Scalar, value: Any, site: Site
    ) -> None:
        raw, ratio = self._split(scalar.size)
        whole = np.ascontiguousarray(team.array(value))
        words = whole.view(raw.dtype).reshape(-1, ratio)
        for k in range(ratio):
            part = np.ascontiguousarray(words[:, k])
            self.store(team, mask, ptr.moved(k * self.unit), raw, part, site, 0)

    def _split(self, size: int) -> tuple[Scalar, int]:
        """Go over to words that are no larger than an element; their type, and how many it has."""
        if size < self.unit:
            self._to_matrix()
            fine = np.ascontiguousarray(self.matrix.T).view(UNSIGNED[size])
            self.matrix = np.ascontiguousarray(fine.T)
            if self.written is not None:
                self.written = np.repeat(self.written, self.unit // size, axis=0)
            self.unit = size
        return Scalar("word", np.dtype(UNSIGNED[self.unit]), "uint", 0), size // self.unit

    def end(self, mask: Mask) -> None:
        """The block that declares it is over for these lanes."""
        self.ended = mask.bits if self.ended is None else self.ended | mask.bits

    def begin(self, mask: Mask) -> None:
        """These lanes declare it anew."""
        if self.ended is not None:
            self.ended = self.ended & ~mask.bits

    def _require_alive(self, team: Team, mask: Mask, ptr: Ptr, site: Site) -> None:
        assert self.ended is not None
        gone = mask.bits & self.ended
        if gone.any():
            text = (
                f"{'writes' if site.write else 'reads'} '{ptr.name}' by a pointer, and '{ptr.name}' "
                "is no more: the block that declares it has ended. Declare it where the pointer is "
                "declared"
            )
            team.fault(OutOfBoundsError, site.at, int(gone.argmax()), text, array=ptr.name)

    def _unwritten(self, team: Team, lane: int, index: int, ptr: Ptr, site: Site) -> None:
        what = self.spelled(ptr.name, index * self.unit, self.unit)
        text = f"reads {what}, a local variable that nothing has written"
        more = {"array": ptr.name, "index": index, "bound": self.nbytes // self.unit}
        team.fault(UninitialisedReadError, site.at, lane, text, **more)


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
