"""Names, members, indices, addresses: what has a place, and where it is."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_storage import LowerStorage, pick_leaves
from asyncgpu_tutor.cuda_c.compile.typed import (
    Alias,
    Constant,
    Expr,
    MemoryPlace,
    Origin,
    RegisterPlace,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.syntax.ast import Expression, Index, Member, Name, Unary
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    INT,
    UINT,
    Array,
    CType,
    Pointer,
    Scalar,
    Struct,
    Void,
    leaves,
    size_of,
    spelled,
)

__all__ = ["LowerPlaces"]

_BUILTIN_VARIABLES = {
    "threadIdx": "thread_index",
    "blockIdx": "block_index",
    "blockDim": "block_dim",
    "gridDim": "grid_dim",
}


class LowerPlaces(LowerStorage):
    """Compiles what names storage."""

    # -- names

    def lower_name(self, node: Name) -> Expr:
        found = self.scope.find(node.name)
        if isinstance(found, Variable):
            return self.read_variable(found, node.at)
        if isinstance(found, Constant):
            expr = found.expr
            return Expr(expr.type, expr.run, node.at, constant=expr.constant)
        if isinstance(found, Alias):
            return self.reread(found.expr, node.at)
        if isinstance(found, TypeBinding):
            self.fail(node.at, f"'{node.name}' is a type: a value is expected here")
        if node.name == "warpSize":
            # Not a constant expression in C++ either.
            return Expr(INT, lambda t, m: np.int32(32), node.at, depth=-1)
        if node.name in _BUILTIN_VARIABLES:
            attribute = _BUILTIN_VARIABLES[node.name]
            ctype = self.vector_type("dim3" if attribute.endswith("dim") else "uint3")
            return Expr(ctype, lambda t, m: list(getattr(t, attribute)), node.at)
        if node.name in self.functions:
            self.unsupported(
                node.at, f"'{node.name}' is a function: pointers to functions are not supported"
            )
        self._unknown(node)

    def _unknown(self, node: Name) -> NoReturn:
        name = node.name
        if name in ("INFINITY", "NAN", "FLT_MAX", "FLT_MIN", "INT_MAX", "INT_MIN", "UINT_MAX",
                    "FLT_EPSILON", "DBL_MAX", "M_PI", "HUGE_VALF"):  # fmt: skip
            advice = (
                "write the number, or #include <math_constants.h> for CUDART_INF_F and its like"
            )
            self.fail(node.at, f"'{name}' is not declared: NVRTC has no C headers; {advice}")
        names = self.scope.visible() | set(_BUILTIN_VARIABLES)
        close = _closest(name, names)
        hint = f" (did you mean '{close}'?)" if close else ""
        self.fail(node.at, f"'{name}' is not declared{hint}")

    def vector_type(self, name: str) -> CType:
        raise NotImplementedError

    # -- members

    def lower_member(self, node: Member) -> Expr:
        name = node.base.name if isinstance(node.base, Name) else ""
        if name in _BUILTIN_VARIABLES and self.scope.find(name) is None:
            return self._builtin_member(node, name)
        base = self.place_of(node.base)
        if not isinstance(base.type, Struct):
            hint = ""
            if isinstance(base.type, Pointer) and isinstance(base.type.target, Struct):
                hint = ": use '->'"
            self.fail(node.at, f"'{spelled(base.type)}' has no members{hint}")
        field = base.type.member(node.name)
        if field is None:
            have = ", ".join(f.name for f in base.type.fields)
            self.fail(node.at, f"'{base.type.name}' has no member '{node.name}'; it has {have}")
        place = base.place
        offset = field.offset
        if isinstance(place, MemoryPlace):
            pointer = place.pointer
            inner = MemoryPlace(
                lambda t, m: pointer(t, m).moved(offset),
                place.origin,
                place.const,
                place.volatile,
                place.register,
            )
            return self.read_memory(inner, field.type, node.at, base.reads, base.rounds, base.depth)
        first = sum(1 for _, o in leaves(base.type) if o < offset)
        count = len(leaves(field.type))
        if isinstance(place, RegisterPlace):
            inner_place = RegisterPlace(place.variable, place.first + first, count, place.const)
            return self.read_register_place(inner_place, field.type, node.at)
        if isinstance(field.type, Array):
            self.unsupported(node.at, "an array in a struct that has no name: give it one first")
        pick = pick_leaves(base.run, field.type, first, count)
        return self.value(field.type, pick, node.at, [base], origin=base.origin)

    def _builtin_member(self, node: Member, name: str) -> Expr:
        axis = {"x": 0, "y": 1, "z": 2}.get(node.name)
        if axis is None:
            self.fail(node.at, f"'{name}' has no member '{node.name}'; it has x, y, z")
        attribute = _BUILTIN_VARIABLES[name]
        key = (attribute, axis)
        if attribute == "thread_index":
            return Expr(UINT, lambda t, m: t.thread_index[axis], node.at, depth=0, key=key)
        if attribute == "block_index":
            return Expr(UINT, lambda t, m: t.block_index[axis], node.at, depth=0, key=key)
        if attribute == "block_dim":
            return Expr(UINT, lambda t, m: t.block_dim[axis], node.at, depth=0, key=key)
        return Expr(UINT, lambda t, m: t.grid_dim[axis], node.at, depth=0, key=key)

    # -- indices, dereferences, addresses

    def place_of(self, node: Expression) -> Expr:
        """An expression whose value is not wanted yet, only where it is: no load is charged."""
        if isinstance(node, Name):
            return self.lower_name(node)
        if isinstance(node, Member):
            return self.lower_member(node)
        if isinstance(node, Index):
            return self.lower_index(node)
        if isinstance(node, Unary) and node.op == "*":
            return self.lower_dereference(node)
        return self.expression(node)

    def lower_index(self, node: Index) -> Expr:
        base = self.place_of(node.base)
        if isinstance(base.type, Scalar) and not isinstance(node.index, Name):
            flipped = self.place_of(node.index)
            if isinstance(flipped.type, (Pointer, Array)):
                self.unsupported(node.at, "'index[array]' is not supported: write 'array[index]'")
        if not isinstance(base.type, (Pointer, Array)):
            self.fail(
                node.at, f"a value of type '{spelled(base.type)}' cannot be indexed: it is no array"
            )
        if isinstance(base.type, Pointer):
            self.use(base)
        index = self.index_value(self.expression(node.index), node.index.at)
        return self.element(base, index, node.at)

    def index_value(self, index: Expr, at: Position) -> Expr:
        """An index as a 32- or 64-bit integer."""
        if not isinstance(index.type, Scalar) or not index.type.is_integer:
            self.fail(at, f"an index must be an integer, not '{spelled(index.type)}'")
        return self.convert(index, INT, at) if index.type.size < 4 else index

    def element(self, base: Expr, index: Expr, at: Position) -> Expr:
        """`base[index]` as a place."""
        ctype = base.type
        assert isinstance(ctype, (Pointer, Array))
        target = ctype.element if isinstance(ctype, Array) else ctype.target
        if isinstance(target, Void):
            self.fail(at, "a void pointer must be cast before it is indexed")
        step = size_of(target)
        start, offset = base.run, index.run
        # Added to a known distance, an address needs no instruction: loads and stores take an offset.
        if index.changes >= 0:
            self.cost(of=[base, index])
        if index.constant is not None:
            count = int(index.constant)

            def pointer(t: Team, m: Mask) -> Ptr:
                return start(t, m).plus(count, step)
        else:

            def pointer(t: Team, m: Mask) -> Ptr:
                return start(t, m).plus(offset(t, m), step)

        origin = base.origin or Origin()
        place = MemoryPlace(pointer, origin, ctype.const, ctype.volatile)
        if isinstance(base.place, MemoryPlace) and isinstance(ctype, Array):
            place.const = place.const or base.place.const
            place.volatile = place.volatile or base.place.volatile
            place.register = base.place.register and index.changes < 0
        reads, rounds = Expr.joined([base, index])
        depth = max(base.changes, index.changes)
        known = not place.volatile and base.same is not None and index.same is not None
        key = ("element", base.same, index.same) if known else None
        return self.read_memory(place, target, at, reads, rounds, depth, key)

    def lower_dereference(self, node: Unary) -> Expr:
        base = self.decay(self.expression(node.operand))
        if not isinstance(base.type, Pointer):
            self.fail(node.at, f"a value of type '{spelled(base.type)}' cannot be dereferenced")
        place = MemoryPlace(base.run, base.origin or Origin(), base.type.const, base.type.volatile)
        return self.read_memory(place, base.type.target, node.at, base.reads, base.rounds)

    def lower_address(self, node: Unary) -> Expr:
        base = self.place_of(node.operand)
        place = base.place
        if place is None:
            self.fail(node.at, "only something that has a place has an address")
        if isinstance(place, RegisterPlace):
            self.unsupported(
                node.at, f"the address of '{place.variable.name}' is not supported here"
            )
        ctype = Pointer(base.type, place.const, place.volatile)
        return Expr(
            ctype, place.pointer, node.at, origin=place.origin, reads=base.reads, rounds=base.rounds
        )


def _closest(name: str, names: set[str]) -> str | None:
    from difflib import get_close_matches

    same = [n for n in names if n.lower() == name.lower()]
    found = same or get_close_matches(name, sorted(names), 1, 0.75)
    return found[0] if found else None
