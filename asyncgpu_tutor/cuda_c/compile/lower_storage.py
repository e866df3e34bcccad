"""Registers and memory: reading and writing what has a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_base import LowerBase
from asyncgpu_tutor.cuda_c.compile.typed import (
    CHANGING,
    Evaluate,
    Expr,
    MemoryPlace,
    Origin,
    Place,
    RegisterPlace,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import Array, CType, Pointer, Scalar, Struct, Void, leaves
from asyncgpu_tutor.errors import UninitialisedReadError

__all__ = ["LowerStorage", "pick_leaves"]


class LowerStorage(LowerBase):
    """Compiles loads, stores and assignments."""

    # -- reading

    def read_variable(self, variable: Variable, at: Position) -> Expr:
        """A variable as an expression with a place."""
        reads = frozenset({variable})
        slot = variable.slot
        if variable.memory:
            place = MemoryPlace(
                lambda t, m: t.slots[slot],
                variable.origin,
                variable.const,
                variable.volatile,
                register=variable.thread,
            )
            key = None if variable.volatile else ("memory", id(variable))
            return self.read_memory(place, variable.type, at, reads, 0, depth=-1, key=key)
        place = RegisterPlace(variable, const=variable.const)
        run = self._register_reader(variable, at)
        return Expr(
            variable.type, run, at, place=place, reads=reads, origin=variable.origin,
            rank=variable.rank, depth=variable.depth, key=("variable", id(variable)),
        )  # fmt: skip

    def _register_reader(self, variable: Variable, at: Position) -> Evaluate:
        slot = variable.slot
        if not variable.unset:
            return lambda t, m: t.slots[slot]
        name = variable.name

        def checked(t: Team, m: Mask) -> Any:
            defined = t.defined[slot]
            if defined is not True:
                _require_defined(t, m, defined, name, at)
            return t.slots[slot]

        return checked

    def reread(self, expr: Expr, at: Position) -> Expr:
        """The same place, read at another point of the source."""
        place = expr.place
        if isinstance(place, RegisterPlace):
            return self.read_register_place(place, expr.type, at)
        if isinstance(place, MemoryPlace):
            return self.read_memory(place, expr.type, at, expr.reads, 0)
        return expr

    def read_register_place(self, place: RegisterPlace, ctype: CType, at: Position) -> Expr:
        variable = place.variable
        whole = self._register_reader(variable, at)
        first, count = place.first, place.count
        run = pick_leaves(whole, ctype, first, count) if count else whole
        return Expr(
            ctype,
            run,
            at,
            place=place,
            reads=frozenset({variable}),
            origin=variable.origin,
            rank=variable.rank + first / 64,
            depth=variable.depth,
        )

    def read_memory(
        self,
        place: MemoryPlace,
        ctype: CType,
        at: Position,
        reads: frozenset[Variable],
        rounds: int,
        depth: int = CHANGING,
        key: Any = None,
    ) -> Expr:
        """A place in memory as an expression. An array is not read: its value is its address.

        `depth` is that of the address.
        """
        pointer = place.pointer
        if isinstance(ctype, Array):
            return Expr(
                ctype, pointer, at, place=place, origin=place.origin, reads=reads, rounds=rounds,
                depth=depth, key=key,
            )  # fmt: skip
        if isinstance(ctype, Void):
            self.fail(at, "a void pointer must be cast before it is followed")
        site = self.new_site(at, volatile=place.volatile)
        self.watched_sites.append((site, place.origin))

        def run(t: Team, m: Mask) -> Any:
            return access.load(t, m, pointer(t, m), ctype, site)

        return Expr(
            ctype,
            run,
            at,
            place=place,
            origin=Origin(),
            reads=reads,
            rounds=rounds,
            key=key,
            site=site,
        )

    def use(self, expr: Expr) -> Expr:
        """Charge for reading an expression's value, if it is in memory."""
        if isinstance(expr.place, MemoryPlace) and not isinstance(expr.type, Array):
            expr.rounds = self.note_load(expr)
        return expr

    # -- writing

    def writable(self, expr: Expr, at: Position) -> Place:
        """The place of an expression that is about to be assigned to.

        Raises
        ------
        KernelCompileError
            If it has none, or is const.
        """
        place = expr.place
        if place is None:
            self.fail(at, "this cannot be assigned to: it is a value, not a variable")
        if isinstance(expr.type, Array):
            self.fail(at, "an array cannot be assigned to as a whole")
        if place.const:
            self.fail(at, "this cannot be assigned to: it is const")
        return place

    def writer(self, expr: Expr, at: Position, value: Expr | None) -> Any:
        """A function `(team, mask, value, pointer)` that assigns; the pointer only for memory."""
        place = self.writable(expr, at)
        ctype = expr.type
        if isinstance(place, RegisterPlace):
            self.at_hand.clear()
            self.note_assignment(place.variable, value)
            return self._register_writer(place, ctype)
        place.origin.write()
        if isinstance(ctype, Pointer) or (isinstance(ctype, Struct) and _has_pointer(ctype)):
            self.unsupported(at, "pointers in memory are not supported: keep them in variables")
        self.at_hand.clear()
        if not place.register:
            self.cost()
        site = self.new_site(at, write=True, volatile=place.volatile)

        def store(t: Team, m: Mask, new: Any, ptr: Ptr) -> None:
            access.store(t, m, ptr, ctype, new, site)

        return store

    def note_assignment(self, variable: Variable, value: Expr | None) -> None:
        """Remember what a variable depends on."""
        if value is None or value.rounds > 0:
            variable.loaded_depth = max(variable.loaded_depth, self.nesting)
        if value is None:
            variable.loaded = True
            return
        variable.rank = value.rank
        variable.sources |= value.reads
        variable.loaded = variable.loaded or value.rounds > 0
        if value.origin is not None:
            variable.origin.unite(value.origin)

    def _register_writer(self, place: RegisterPlace, ctype: CType) -> Any:
        slot, first, count = place.variable.slot, place.first, place.count
        unset = place.variable.unset
        single = isinstance(ctype, (Scalar, Pointer))

        def write(t: Team, m: Mask, new: Any, ptr: Any = None) -> None:
            if unset:
                _define(t, m, slot)
            old = t.slots[slot]
            if count:
                whole = list(old)
                if single:
                    whole[first] = access.merge(m, new, whole[first])
                else:
                    whole[first : first + count] = access.merge(
                        m, new, whole[first : first + count]
                    )
                t.slots[slot] = whole
            elif m.full or t.born[slot] is m:
                t.slots[slot] = new
            else:
                t.slots[slot] = access.merge(m, new, old)

        return write


def _define(t: Team, m: Mask, slot: int) -> None:
    defined = t.defined[slot]
    if defined is True:
        return
    if m.full or t.born[slot] is m:
        t.defined[slot] = True
        return
    born = t.born[slot]
    union = m.bits if defined is None else defined | m.bits
    complete = born is not None and int(np.count_nonzero(union & born.bits)) == born.n
    t.defined[slot] = True if complete else union


def _require_defined(t: Team, m: Mask, defined: Any, name: str, at: Position) -> None:
    missing = m.bits if defined is None else m.bits & ~defined
    if missing.any() and t.launch.limits.check_uninitialised:
        t.fault(
            UninitialisedReadError,
            at,
            int(missing.argmax()),
            f"reads '{name}', a local variable that nothing has been assigned to",
            array=name,
        )


def pick_leaves(whole: Evaluate, ctype: CType, first: int, count: int) -> Evaluate:
    """Of a struct's value, which is a list of its leaves, the part that is a member of type `ctype`."""
    if isinstance(ctype, (Scalar, Pointer)):
        return lambda t, m: whole(t, m)[first]
    return lambda t, m: whole(t, m)[first : first + count]


def _has_pointer(ctype: CType) -> bool:
    return any(isinstance(leaf, Pointer) for leaf, _ in leaves(ctype))
