"""Operators on values: arithmetic, comparisons, pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_base import INTEGER_DIVISION, SLOW_FLOAT
from asyncgpu_tutor.cuda_c.compile.lower_places import LowerPlaces
from asyncgpu_tutor.cuda_c.compile.typed import Evaluate, Expr
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.lockstep.values import arithmetic, comparison, fused, varies
from asyncgpu_tutor.cuda_c.memory.pointers import Ptr
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    BOOL,
    DOUBLE,
    HALF,
    LONG,
    VOID,
    CType,
    Pointer,
    Scalar,
    Struct,
    Void,
    common,
    promoted,
    size_of,
    spelled,
)
from asyncgpu_tutor.errors import DivisionByZeroError

__all__ = ["LowerOperators"]

_COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
_INTEGER_ONLY = {"%", "&", "|", "^", "<<", ">>"}


class LowerOperators(LowerPlaces):
    """Compiles operators whose operands are lowered already."""

    def operate(self, op: str, left: Expr, right: Expr, at: Position) -> Expr:
        """`left op right` for everything that evaluates both sides."""
        left, right = self.decay(left), self.decay(right)
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            return self._pointer_operation(op, left, right, at)
        for side in (left, right):
            if not isinstance(side.type, Scalar):
                hint = ""
                if isinstance(side.type, Struct) and side.type.vector:
                    hint = ": CUDA C has no operators for vector types, work on .x, .y and so on"
                self.fail(at, f"operator '{op}' cannot take a '{spelled(side.type)}'{hint}")
        a, b = left.type, right.type
        assert isinstance(a, Scalar)
        assert isinstance(b, Scalar)
        kind = promoted(a) if op in ("<<", ">>") else common(a, b)
        if op in _INTEGER_ONLY:
            for side in (a, b):
                if side.is_float:
                    self.fail(at, f"operator '{op}' needs integers, not '{side.name}'")
        if HALF in (a, b) and a != b:
            other = b if a is HALF else a
            self.fail(
                at,
                f"operator '{op}' between half and {other.name} is ambiguous: convert one side, "
                "for instance by __half2float()",
            )
        if op in ("<<", ">>"):
            return self._shift(op, left, right, kind, at)
        x = self.convert(left, kind, at)
        y = self.convert(right, kind, at)
        if op in _COMPARISONS:
            return self._compare(op, x, y, at)
        return self._arithmetic(op, x, y, kind, at)

    def _compare(self, op: str, x: Expr, y: Expr, at: Position) -> Expr:
        function = comparison(op)
        a, b = x.run, y.run
        self.cost(of=[x, y], doubles=x.type is DOUBLE)
        out = self.value(BOOL, lambda t, m: function(a(t, m), b(t, m)), at, [x, y])
        return self.fold(out, [x, y])

    def _shift(self, op: str, left: Expr, right: Expr, kind: Scalar, at: Position) -> Expr:
        # PTX: counts of the width or more give 0, or the sign; a negative count is a large one.
        # NumPy does the same once both sides are of one type.
        x = self.convert(left, kind, at)
        assert isinstance(right.type, Scalar)
        y = self.convert(right, promoted(right.type), at)
        count_type = y.type
        assert isinstance(count_type, Scalar)
        function = arithmetic(op, kind)
        a, b = x.run, y.run
        self.cost(of=[x, y])
        make, width = kind.dtype, kind.size * 8

        def run(t: Team, m: Mask) -> Any:
            count = b(t, m)
            if count.dtype != make:
                count = np.asarray(np.where((count < 0) | (count >= width), width, count))
                count = count.astype(make)
                count = count if count.ndim else count[()]
            return function(a(t, m), count)

        return self.fold(self.value(kind, run, at, [x, y]), [x, y])

    def _arithmetic(self, op: str, x: Expr, y: Expr, kind: Scalar, at: Position) -> Expr:
        if self.fmad and kind.is_float and kind is not HALF and op in "+-":
            contracted = self._contract(op, x, y, kind, at)
            if contracted is not None:
                return contracted
        function = arithmetic(op, kind)
        a, b = x.run, y.run
        parts = [x, y]
        if op in "/%" and kind.is_integer:
            out = self._divide(function, x, y, kind, at)
            return self.fold(out, parts) if y.constant is not None and y.constant != 0 else out
        if kind.is_float:
            slow = op == "/"
            cost = SLOW_FLOAT if slow else 1
            self.cost(cost, flops=1, special=int(slow), of=parts, doubles=kind is DOUBLE)
        elif not (op == "+" and any(_is_integer_product(p) and self.repeated([p]) for p in parts)):
            self.cost(of=parts)  # a product that is added costs nothing more: IMAD
        known = kind.is_integer and x.same is not None and y.same is not None
        key = (op, x.same, y.same) if known else None
        out = self.value(kind, lambda t, m: function(a(t, m), b(t, m)), at, parts, key=key)
        if op == "*":
            out.product = (a, b)
        return self.fold(out, parts)

    def _contract(self, op: str, x: Expr, y: Expr, kind: Scalar, at: Position) -> Expr | None:
        """`a * b + c` as one operation rounded once, as NVRTC does unless told `-fmad=false`.

        Of two products it fuses the left one, once the operands of a sum are in the order of their
        `rank` (tried with NVRTC 12.9 and 13.0, and on an H200). Only products that stand in the sum
        itself are fused here; NVVM also fuses those that a variable carries from one statement to
        the next.
        """
        if x.constant is not None and y.constant is not None:
            return None
        if op == "+" and y.rank < x.rank:
            x, y = y, x
        fma = fused(kind)
        if x.product is not None:
            a, b = x.product
            c = y.run
            if op == "-":
                run: Evaluate = lambda t, m: fma(a(t, m), b(t, m), -c(t, m))
            else:
                run = lambda t, m: fma(a(t, m), b(t, m), c(t, m))
        elif y.product is not None:
            a, b = y.product
            c = x.run
            if op == "-":
                run = lambda t, m: fma(-a(t, m), b(t, m), c(t, m))
            else:
                run = lambda t, m: fma(a(t, m), b(t, m), c(t, m))
        else:
            return None
        self.cost(0, flops=1)
        return self.value(kind, run, at, [x, y])

    def _divide(
        self, function: Callable[[Any, Any], Any], x: Expr, y: Expr, kind: Scalar, at: Position
    ) -> Expr:
        a, b = x.run, y.run
        constant = y.constant
        power = constant is not None and constant > 0 and int(constant) & int(constant) - 1 == 0
        self.cost(2 if power else INTEGER_DIVISION if constant is None else 4, of=[x, y])
        if constant is not None and constant != 0:
            return self.value(kind, lambda t, m: function(a(t, m), b(t, m)), at, [x, y])

        def run(t: Team, m: Mask) -> Any:
            divisor = b(t, m)
            zero = np.equal(m.take(divisor), 0)
            if np.any(zero):
                lane = int(m.index[int(np.argmax(np.broadcast_to(zero, (m.n,))))])
                t.fault(
                    DivisionByZeroError,
                    at,
                    lane,
                    "divides an integer by zero, which a GPU answers with an arbitrary value",
                )
            return function(a(t, m), divisor)

        return self.value(kind, run, at, [x, y])

    def common_type(self, a: Expr, b: Expr, at: Position) -> CType:
        if a.type == b.type:
            return a.type
        if isinstance(a.type, Scalar) and isinstance(b.type, Scalar):
            return common(a.type, b.type)
        if isinstance(a.type, Pointer) and isinstance(b.type, Pointer):
            if a.type.target == b.type.target:
                const = a.type.const or b.type.const
                return Pointer(a.type.target, const, a.type.volatile or b.type.volatile)
            if isinstance(b.type.target, Void):
                return a.type
            if isinstance(a.type.target, Void):
                return b.type
        if isinstance(a.type, Pointer) and b.constant is not None and b.constant == 0:
            return a.type
        if isinstance(a.type, Void) or isinstance(b.type, Void):
            return VOID
        self.fail(at, f"the sides of ':' do not fit: '{spelled(a.type)}' and '{spelled(b.type)}'")

    # -- pointers

    def _pointer_operation(self, op: str, left: Expr, right: Expr, at: Position) -> Expr:
        if op in _COMPARISONS:
            return self._compare_pointers(op, left, right, at)
        if op == "-" and isinstance(right.type, Pointer):
            return self._distance(left, right, at)
        if op not in "+-" or (op == "-" and not isinstance(left.type, Pointer)):
            self.fail(at, f"operator '{op}' cannot take a pointer")
        pointer, number = (left, right) if isinstance(left.type, Pointer) else (right, left)
        if not isinstance(number.type, Scalar) or not number.type.is_integer:
            self.fail(
                at, f"only an integer can be added to a pointer, not a '{spelled(number.type)}'"
            )
        assert isinstance(pointer.type, Pointer)
        number = self.index_value(number, at)
        step = size_of(pointer.type.target)
        start, offset = pointer.run, number.run
        if number.changes >= 0:
            self.cost(of=[pointer, number])
        if op == "-":
            offset = _negated(offset)

        def run(t: Team, m: Mask) -> Ptr:
            return start(t, m).plus(offset(t, m), step)

        return self.value(pointer.type, run, at, [pointer, number], origin=pointer.origin)

    def _distance(self, left: Expr, right: Expr, at: Position) -> Expr:
        if not isinstance(left.type, Pointer) or not isinstance(right.type, Pointer):
            self.fail(at, "a pointer cannot be subtracted from a number")
        if left.type.target != right.type.target:
            self.fail(
                at,
                f"'{spelled(left.type)}' and '{spelled(right.type)}' point to different things",
            )
        step = size_of(left.type.target)
        a, b = left.run, right.run
        self.cost()

        def run(t: Team, m: Mask) -> Any:
            apart: Any = a(t, m).address() - b(t, m).address()
            return apart // step if varies(apart) else np.int64(apart // step)

        return self.value(LONG, run, at, [left, right])

    def _compare_pointers(self, op: str, left: Expr, right: Expr, at: Position) -> Expr:
        if isinstance(left.type, Scalar):
            left, right = right, left
        if isinstance(right.type, Scalar):
            right = self.convert(right, left.type, at)
        assert isinstance(left.type, Pointer)
        assert isinstance(right.type, Pointer)
        void = isinstance(left.type.target, Void) or isinstance(right.type.target, Void)
        if left.type.target != right.type.target and not void:
            self.fail(at, f"'{spelled(left.type)}' and '{spelled(right.type)}' cannot be compared")
        function = comparison(op)
        a, b = left.run, right.run
        self.cost()

        def run(t: Team, m: Mask) -> Any:
            p, q = a(t, m), b(t, m)
            if p.region is not q.region:
                return np.bool_(op == "!=")
            out = function(p.address(), q.address())
            return out if varies(out) else np.bool_(out)

        return self.value(BOOL, run, at, [left, right])


def _integer(ctype: CType) -> bool:
    return isinstance(ctype, Scalar) and ctype.is_integer


def _is_integer_product(expr: Expr) -> bool:
    return expr.product is not None and _integer(expr.type)


def _negated(run: Evaluate) -> Evaluate:
    def negative(t: Team, m: Mask) -> Any:
        value = run(t, m)
        if varies(value):
            return -value.astype(np.int64)
        return -int(value)

    return negative
