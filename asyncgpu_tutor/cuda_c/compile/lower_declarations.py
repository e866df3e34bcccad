"""Declarations: registers, references, arrays, shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asyncgpu_tutor.cuda_c.compile.lower_expressions import LowerExpressions
from asyncgpu_tutor.cuda_c.compile.typed import (
    Alias,
    Constant,
    Execute,
    Expr,
    MemoryPlace,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.cost.tally import Segment
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.memory.local_region import LocalRegion
from asyncgpu_tutor.cuda_c.memory.pointers import Label, Ptr
from asyncgpu_tutor.cuda_c.memory.shared_region import SharedRegion
from asyncgpu_tutor.cuda_c.syntax.ast import (
    Braces,
    Declaration,
    Declarator,
)
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    Array,
    CType,
    Pointer,
    Scalar,
    Struct,
    Void,
    align_of,
    has_array,
    leaves,
    size_of,
    spelled,
)

__all__ = ["LowerDeclarations", "nothing", "zero_of"]


class LowerDeclarations(LowerExpressions):
    """Compiles declarations."""

    def charged(self, at: Position, lower: Callable[[], Any]) -> tuple[Any, Segment]:
        segment = self.new_segment(at.line)
        return self.within(segment, lower), segment

    def enter(self, name: str, binding: Any, at: Position) -> None:
        try:
            self.declare(name, binding)
        except KeyError:
            self.fail(at, f"'{name}' has already been declared in this scope")
        self.most_words = max(self.most_words, self.live_words())

    def declaration(self, node: Declaration) -> Execute:
        if "typedef" in node.storage:
            for item in node.items:
                self.enter(item.name, TypeBinding(self.resolve(item.type)), item.at)
            return nothing
        parts: list[Execute] = []
        for item in node.items:
            part, segment = self.charged(
                item.at, lambda item=item: self._declarator(item, node.storage)
            )
            if part is nothing:
                continue
            parts.append(_charging(segment, part) if segment.instructions else part)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return nothing

        def run(t: Team, m: Mask) -> Mask | None:
            for part in parts:
                part(t, m)
            return m

        return run

    def _declarator(self, item: Declarator, storage: set[str]) -> Execute:
        if item.type.base == "auto":
            return self._auto(item)
        ctype = self.resolve(item.type)
        const, volatile = self.top_const(item.type), self.top_volatile(item.type)
        if isinstance(ctype, Void):
            self.fail(item.at, f"'{item.name}' cannot be void")
        if "__shared__" in storage:
            return self.shared_variable(item, ctype, storage, volatile)
        if "__constant__" in storage or "__device__" in storage:
            self.fail(item.at, "__constant__ and __device__ variables belong outside functions")
        if item.type.reference:
            return self._reference(item, ctype, const)
        if "static" in storage and not const:
            self.unsupported(item.at, "static variables in functions are not supported")
        if item.dims:
            return self._array(item, ctype, const, volatile)
        if has_array(ctype):
            return self._in_memory(item, ctype, const, volatile)
        if item.name in self.addressed:
            return self._in_memory(item, ctype, const, volatile)
        return self._register(item, ctype, const)

    def _auto(self, item: Declarator) -> Execute:
        if item.init is None or isinstance(item.init, Braces):
            self.fail(item.at, f"'auto {item.name}' needs a value to take its type from")
        if item.type.pointers or item.type.reference:
            self.unsupported(item.at, "'auto*' and 'auto&' are not supported: write the type")
        value = self.decay(self.expression(item.init))
        if isinstance(value.type, Void):
            self.fail(item.at, f"'{item.name}' cannot be void")
        if item.name in self.addressed or has_array(value.type):
            return self._in_memory(item, value.type, item.type.const, False)
        return self._bind(item, value.type, value, item.type.const)

    def _register(self, item: Declarator, ctype: CType, const: bool) -> Execute:
        if item.init is None:
            if const:
                self.fail(item.at, f"'{item.name}' is const and needs a value")
            return self._unset(item, ctype)
        if isinstance(item.init, Braces):
            value = self.braces_value(item.init, ctype)
        else:
            value = self.convert(self.expression(item.init), ctype, item.init.at)
        return self._bind(item, ctype, value, const)

    def _bind(self, item: Declarator, ctype: CType, value: Expr, const: bool) -> Execute:
        if const and value.constant is not None and isinstance(ctype, Scalar):
            self.enter(item.name, Constant(value), item.at)
            return nothing
        variable = Variable(item.name, ctype, self.new_slot(), const=const, depth=self.depth)
        self.note_assignment(variable, value)
        self.enter(item.name, variable, item.at)
        slot, evaluate = variable.slot, value.run
        self.cost(0)

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = evaluate(t, m)
            t.born[slot] = m
            return m

        return run

    def _unset(self, item: Declarator, ctype: CType) -> Execute:
        variable = Variable(item.name, ctype, self.new_slot(), unset=True, depth=self.depth)
        self.enter(item.name, variable, item.at)
        slot = variable.slot
        zero = zero_of(ctype)

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = zero
            t.born[slot] = m
            t.defined[slot] = None
            return m

        return run

    def _reference(self, item: Declarator, ctype: CType, const: bool) -> Execute:
        if item.init is None:
            self.fail(item.at, f"the reference '{item.name}' must be bound to something")
        target = self.place_of(item.init)
        alias, bind = self.bind_reference(item.name, target, ctype, const, item.at)
        self.enter(item.name, alias, item.at)
        return bind

    def bind_reference(
        self, name: str, target: Expr, ctype: CType, const: bool, at: Position
    ) -> tuple[Alias | Variable, Execute]:
        """A name for a place: what it means, and what fixes the place's address once."""
        place = target.place
        if place is None or target.type != ctype:
            if const and isinstance(target.type, (Scalar, Struct)):
                value = self.convert(self.use(target), ctype, at)
                return self._temporary(name, ctype, value)
            if place is None:
                self.fail(at, f"the reference '{name}' needs a variable, not a value")
            self.fail(at, f"a '{spelled(ctype)}&' cannot refer to a '{spelled(target.type)}'")
        if place.const and not const:
            self.fail(at, f"the reference '{name}' would let a constant be changed")
        if not isinstance(place, MemoryPlace):
            expr = Expr(ctype, target.run, at, place=place, reads=target.reads)
            return Alias(expr), nothing
        slot, pointer = self.new_slot(), place.pointer
        fixed = MemoryPlace(
            lambda t, m: t.slots[slot],
            place.origin,
            place.const or const,
            place.volatile,
            place.register,
        )
        expr = Expr(ctype, target.run, at, place=fixed, reads=target.reads, origin=target.origin)

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = pointer(t, m)
            return m

        return Alias(expr), run

    def _temporary(self, name: str, ctype: CType, value: Expr) -> tuple[Variable, Execute]:
        variable = Variable(name, ctype, self.new_slot(), const=True, depth=self.depth)
        self.note_assignment(variable, value)
        slot, evaluate = variable.slot, value.run

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = evaluate(t, m)
            t.born[slot] = m
            return m

        return variable, run

    # -- arrays and other memory

    def _array(self, item: Declarator, element: CType, const: bool, volatile: bool) -> Execute:
        dims = list(item.dims)
        if dims[0] is None:
            if not isinstance(item.init, Braces) or len(dims) > 1:
                self.fail(item.at, f"the size of '{item.name}' is missing")
            ctype: CType = Array(element, len(item.init.items), const)
        else:
            ctype = self.array_type(element, dims, const)
        return self._in_memory(item, ctype, const, volatile)

    def _in_memory(self, item: Declarator, ctype: CType, const: bool, volatile: bool) -> Execute:
        if any(isinstance(leaf, Pointer) for leaf, _ in leaves(ctype)):
            self.unsupported(
                item.at, "arrays of pointers, and addresses of pointers, are not supported"
            )
        values: list[Expr] = []
        if isinstance(item.init, Braces):
            values = self.initialise(item.init, ctype)
        elif item.init is not None and not isinstance(ctype, Array):
            value = self.convert(self.expression(item.init), ctype, item.init.at)
            values = [value] if isinstance(ctype, Scalar) else self.spread(value, ctype)
        elif item.init is not None:
            self.fail(item.init.at, f"the array '{item.name}' needs values in braces")
        variable = Variable(
            item.name, ctype, self.new_slot(), memory=True, const=const, volatile=volatile,
            depth=self.depth, thread=True,
        )  # fmt: skip
        variable.origin.place(near=True)
        for value in values:
            self.note_assignment(variable, value)
        self.enter(item.name, variable, item.at)
        return self.local_memory(variable, ctype, values, item.at)

    def local_memory(
        self, variable: Variable, ctype: CType, values: list[Expr], at: Position
    ) -> Execute:
        """Make room for a variable of each thread, and fill it."""
        slot, name = variable.slot, variable.name
        nbytes = size_of(ctype)
        parts = leaves(ctype)
        unit = min(leaf.size if isinstance(leaf, Scalar) else 8 for leaf, _ in parts)
        site = self.new_site(at, write=True)
        label = Label(name)
        fill = [
            (leaf, offset, value.run)
            for (leaf, offset), value in zip(parts, values, strict=False)
            if isinstance(leaf, Scalar)
        ]
        self.cost(len(fill))

        def run(t: Team, m: Mask) -> Mask | None:
            region = t.locals.get(slot)
            old = t.slots[slot]
            if region is None or old is None or m.full or t.born[slot] is m:
                region = t.locals[slot] = LocalRegion(nbytes, unit, t)
                t.slots[slot] = Ptr(region, 0, unit, 0, label)
            t.born[slot] = m
            base = t.slots[slot]
            for leaf, offset, value in fill:
                region.store(t, m, base.moved(offset), leaf, value(t, m), site, 0)
            return m

        return run

    def shared_variable(
        self, item: Declarator, element: CType, storage: set[str], volatile: bool
    ) -> Execute:
        """A `__shared__` variable: one for each block, however often its function is expanded."""
        if item.init is not None:
            self.fail(item.at, "a __shared__ variable cannot have an initial value")
        ctype = self.array_type(element, item.dims)
        dynamic = bool(item.dims) and item.dims[0] is None
        if dynamic and "extern" not in storage:
            self.fail(
                item.at,
                f"the size of '{item.name}' is missing; for memory that the launch "
                "sizes write extern __shared__",
            )
        if any(isinstance(leaf, Pointer) for leaf, _ in leaves(ctype)):
            self.unsupported(item.at, "pointers in shared memory are not supported")
        variable = Variable(item.name, ctype, self.new_slot(), memory=True, volatile=volatile)
        variable.origin.place(near=True)
        self.enter(item.name, variable, item.at)
        slot, label = variable.slot, Label(item.name)
        nbytes = size_of(ctype)
        cell = min((leaf.size for leaf, _ in leaves(_core(ctype)) if isinstance(leaf, Scalar)),
                   default=4)  # fmt: skip
        key = (0, None) if dynamic else (id(item), ctype)
        if not dynamic and key not in self.shared_seen:
            self.shared_seen.add(key)
            align = align_of(ctype)
            self.shared_total = -(-self.shared_total // align) * align + nbytes

        def run(t: Team, m: Mask) -> Mask | None:
            region = t.shared.get(key)
            if region is None:
                room = t.launch.dynamic_shared if dynamic else nbytes
                region = t.shared[key] = SharedRegion(room, t, cell)
            t.slots[slot] = Ptr(region, 0, cell, 0, label)
            return m

        return run


def zero_of(ctype: CType) -> Any:
    """A value that stands for one that nobody may look at."""
    if isinstance(ctype, Scalar):
        return ctype.make(0)
    if isinstance(ctype, Pointer):
        return access.NULL
    return [zero_of(leaf) for leaf, _ in leaves(ctype)]


def _core(ctype: CType) -> CType:
    while isinstance(ctype, Array):
        ctype = ctype.element
    return ctype


def nothing(t: Team, m: Mask) -> Mask | None:
    """A statement that does nothing; known by its identity, so that it can be left out."""
    return m


def _charging(segment: Segment, part: Execute) -> Execute:
    def run(t: Team, m: Mask) -> Mask | None:
        t.tally.charge(segment, m)
        return part(t, m)

    return run
