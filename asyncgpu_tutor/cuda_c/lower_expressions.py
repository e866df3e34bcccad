"""Expressions to closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c import access
from asyncgpu_tutor.cuda_c.arrays import varies
from asyncgpu_tutor.cuda_c.ast import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Comma,
    Conditional,
    Expression,
    Increment,
    Index,
    Literal,
    Member,
    Name,
    SizeOf,
    Text,
    TypeName,
    Unary,
)
from asyncgpu_tutor.cuda_c.lower_base import INTEGER_DIVISION, SLOW_FLOAT
from asyncgpu_tutor.cuda_c.lower_places import LowerPlaces
from asyncgpu_tutor.cuda_c.masks import Mask, split
from asyncgpu_tutor.cuda_c.pointers import Ptr
from asyncgpu_tutor.cuda_c.source import Position
from asyncgpu_tutor.cuda_c.team import Team
from asyncgpu_tutor.cuda_c.typed import Evaluate, Expr, MemoryPlace, Origin
from asyncgpu_tutor.cuda_c.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONG,
    NULLPTR,
    ULONG,
    VECTORS,
    VOID,
    Array,
    CType,
    Pointer,
    Scalar,
    Struct,
    Void,
    common,
    leaves,
    promoted,
    size_of,
    spelled,
)
from asyncgpu_tutor.cuda_c.values import arithmetic, comparison, fused
from asyncgpu_tutor.errors import DivisionByZeroError

__all__ = ["LowerExpressions"]

_COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
_INTEGER_ONLY = {"%", "&", "|", "^", "<<", ">>"}


class LowerExpressions(LowerPlaces):
    """Compiles expressions; each gives an `Expr`."""

    def expression(self, node: Expression, used: bool = True) -> Expr:
        """Lower an expression whose value is wanted (or, with `used` False, only its effect)."""
        match node:
            case Literal():
                return self._literal(node)
            case Text():
                text = node.value
                return Expr(Pointer(CHAR, True), lambda t, m: text, node.at, text=text)
            case Name():
                return self.use(self.lower_name(node))
            case Member():
                return self.use(self.lower_member(node))
            case Index():
                return self.use(self.lower_index(node))
            case Unary():
                return self._unary(node)
            case Increment():
                return self._increment(node, used)
            case Binary():
                return self._binary(node)
            case Assign():
                return self._assign(node)
            case Conditional():
                return self._conditional(node)
            case Comma():
                return self._comma(node, used)
            case Call():
                return self.call(node, used)
            case Cast():
                return self._cast(node)
            case SizeOf():
                return self._sizeof(node)
            case Braces():
                return self._construct(node)
            case _:
                raise AssertionError(node)

    def call(self, node: Call, used: bool) -> Expr:
        raise NotImplementedError

    def vector_type(self, name: str) -> CType:
        return VECTORS[name]

    def _literal(self, node: Literal) -> Expr:
        if node.type is None:
            return Expr(NULLPTR, lambda t, m: access.NULL, node.at, np.int32(0), origin=Origin())
        return self.constant(node.type, node.value, node.at)

    def _sizeof(self, node: SizeOf) -> Expr:
        if isinstance(node.operand, TypeName):
            ctype = self.resolve(node.operand)
        else:
            # An unevaluated operand: its costs and effects do not count.
            scratch = self.new_segment(node.at.line)
            operand = node.operand
            ctype = self.within(scratch, lambda: self.place_of(operand)).type
            scratch.instructions = scratch.flops = scratch.rounds = 0
        return self.constant(ULONG, size_of(ctype), node.at)

    def _comma(self, node: Comma, used: bool) -> Expr:
        first = self.expression(node.first, used=False)
        second = self.expression(node.second, used)
        a, b = first.run, second.run

        def run(t: Team, m: Mask) -> Any:
            a(t, m)
            return b(t, m)

        return self.value(second.type, run, node.at, [first, second], origin=second.origin)

    # -- casts and construction

    def _cast(self, node: Cast) -> Expr:
        target = self.resolve(node.type)
        if node.type.reference:
            self.unsupported(node.at, "casts to references are not supported")
        operand = self.expression(node.operand)
        if isinstance(target, Struct) and not isinstance(operand.type, Struct):
            return self._construct(Braces(at=node.at, items=[node.operand], type=node.type))
        if node.style == "reinterpret_cast" and not isinstance(target, Pointer):
            self.unsupported(node.at, "reinterpret_cast is supported between pointers only")
        if node.style == "static_cast" and isinstance(target, Pointer):
            source = operand.type
            fits = isinstance(source, Pointer) and (
                isinstance(source.target, Void)
                or isinstance(target.target, Void)
                or source.target == target.target
            )
            if isinstance(source, Pointer) and not fits:
                self.fail(
                    node.at,
                    f"static_cast cannot turn '{spelled(source)}' into '{spelled(target)}': "
                    "use reinterpret_cast",
                )
        out = self.convert(operand, target, node.at, explicit=True)
        if out is operand:
            out = Expr(out.type, out.run, node.at, out.constant, None, out.origin, out.reads,
                       out.rounds)  # fmt: skip
        return out

    def _construct(self, node: Braces) -> Expr:
        if node.type is None:
            self.unsupported(node.at, "a list in braces is supported as an initialiser only")
        return self.braces_value(node, self.resolve(node.type))

    def braces_value(self, node: Braces, ctype: CType) -> Expr:
        """`{a, b}` as a value of a struct or number; what is left out is zero."""
        if isinstance(ctype, Scalar):
            if len(node.items) > 1:
                self.fail(node.at, f"too many values for one '{spelled(ctype)}'")
            if not node.items:
                return self.constant(ctype, 0, node.at)
            return self.convert(self.expression(node.items[0]), ctype, node.at)
        if not isinstance(ctype, Struct):
            self.fail(node.at, f"'{spelled(ctype)}' cannot be made from a list")
        parts = self.initialise(node, ctype)
        runs = [p.run for p in parts]
        return self.value(ctype, lambda t, m: [r(t, m) for r in runs], node.at, parts)

    def initialise(self, node: Expression, ctype: CType) -> list[Expr]:
        """One expression for each leaf of `ctype`, from a braced list; C's rules for nesting."""
        if isinstance(ctype, (Scalar, Pointer)):
            if isinstance(node, Braces):
                return [self.braces_value(node, ctype)]
            return [self.convert(self.expression(node), ctype, node.at)]
        if not isinstance(node, Braces):
            whole = self.expression(node)
            if whole.type != ctype:
                self.fail(
                    node.at, f"no conversion from '{spelled(whole.type)}' to '{spelled(ctype)}'"
                )
            return self._spread(whole, ctype)
        if node.type is not None and self.resolve(node.type) == ctype:
            node = Braces(at=node.at, items=node.items)
        items = list(node.items)
        out = self._fill(items, ctype, node.at)
        if items:
            self.fail(items[0].at, f"too many values for '{spelled(ctype)}'")
        return out

    def _fill(self, items: list[Expression], ctype: CType, at: Position) -> list[Expr]:
        parts: list[CType]
        if isinstance(ctype, Array):
            parts = [ctype.element] * ctype.length
        else:
            assert isinstance(ctype, Struct)
            parts = [f.type for f in ctype.fields]
        out: list[Expr] = []
        for k, part in enumerate(parts):
            if not items:
                rest = [leaf for p in parts[k:] for leaf, _ in leaves(p)]
                return out + [self._zero(leaf, at) for leaf in rest]
            if (
                isinstance(part, (Scalar, Pointer))
                or isinstance(items[0], Braces)
                or (isinstance(part, Struct) and self._is_struct_value(items[0], part))
            ):
                out += self.initialise(items.pop(0), part)
            else:
                out += self._fill(items, part, at)  # braces left out
        return out

    def _is_struct_value(self, node: Expression, ctype: Struct) -> bool:
        scratch = self.new_segment(node.at.line)
        found = self.within(scratch, lambda: self.expression(node)).type == ctype
        scratch.instructions = scratch.flops = scratch.rounds = 0
        return found

    def _zero(self, leaf: Scalar | Pointer, at: Position) -> Expr:
        if isinstance(leaf, Pointer):
            return Expr(leaf, lambda t, m: access.NULL, at, origin=Origin())
        return self.constant(leaf, 0, at)

    def _spread(self, whole: Expr, ctype: CType) -> list[Expr]:
        out: list[Expr] = []
        for k, (leaf, _) in enumerate(leaves(ctype)):
            run = whole.run
            pick: Evaluate = lambda t, m, k=k, run=run: run(t, m)[k]  # noqa: E731
            out.append(self.value(leaf, pick, whole.at, [whole]))
        return out

    # -- unary

    def _unary(self, node: Unary) -> Expr:
        if node.op == "*":
            return self.use(self.lower_dereference(node))
        if node.op == "&":
            return self.lower_address(node)
        operand = self.expression(node.operand)
        if node.op == "!":
            test = self.condition(operand)
            self.cost()
            out = self.value(BOOL, lambda t, m: np.logical_not(test(t, m)), node.at, [operand])
            return self.fold(out, [operand])
        if not isinstance(operand.type, Scalar):
            self.fail(
                node.at, f"operator '{node.op}' needs a number, not '{spelled(operand.type)}'"
            )
        kind = promoted(operand.type)
        if node.op == "~" and kind.is_float:
            self.fail(node.at, f"operator '~' needs an integer, not '{kind.name}'")
        run = self.convert(operand, kind, node.at).run
        if node.op == "+":
            return self.fold(self.value(kind, run, node.at, [operand]), [operand])
        self.cost(flops=0)
        ufunc: Any = np.negative if node.op == "-" else np.invert
        out = self.value(kind, lambda t, m: ufunc(run(t, m)), node.at, [operand])
        if operand.product is not None and kind.is_float and kind == operand.type:
            a, b = operand.product  # the sign goes into a factor, and the product stays one
            out.product = (lambda t, m: -a(t, m), b)
        return self.fold(out, [operand])

    # -- binary

    def _binary(self, node: Binary) -> Expr:
        if node.op in ("&&", "||"):
            return self._short_circuit(node)
        left = self.expression(node.left)
        right = self.expression(node.right)
        return self.operate(node.op, left, right, node.at)

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
        self.cost()
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
        self.cost()
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
            self.cost(SLOW_FLOAT if slow else 1, flops=1, special=int(slow))
        elif not (op == "+" and (_is_integer_product(x) or _is_integer_product(y))):
            self.cost()  # a product that is added costs nothing more: IMAD
        out = self.value(kind, lambda t, m: function(a(t, m), b(t, m)), at, parts)
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
                run: Evaluate = lambda t, m: fma(a(t, m), b(t, m), -c(t, m))  # noqa: E731
            else:
                run = lambda t, m: fma(a(t, m), b(t, m), c(t, m))  # noqa: E731
        elif y.product is not None:
            a, b = y.product
            c = x.run
            if op == "-":
                run = lambda t, m: fma(-a(t, m), b(t, m), c(t, m))  # noqa: E731
            else:
                run = lambda t, m: fma(a(t, m), b(t, m), c(t, m))  # noqa: E731
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
        self.cost(2 if power else INTEGER_DIVISION if constant is None else 4)
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

    def _short_circuit(self, node: Binary) -> Expr:
        left = self.expression(node.left)
        test = self.condition(left)
        self.cost()
        segment = self.new_segment(node.right.at.line)
        self.control.append(left.reads)
        right = self.within(segment, lambda: self.expression(node.right))
        rest = self.within(segment, lambda: self.condition(right))
        self.control.pop()
        wants = node.op == "&&"

        def run(t: Team, m: Mask) -> Any:
            value = test(t, m)
            go_on, stop = split(m, value if wants else np.logical_not(value))
            if go_on is None:
                return value
            t.tally.charge(segment, go_on)
            other = rest(t, go_on)
            if stop is None:
                return other
            return value & other if wants else value | other

        out = self.value(BOOL, run, node.at, [left, right])
        if left.constant is not None and right.constant is not None:
            both = (bool(left.constant), bool(right.constant))
            return self.constant(BOOL, all(both) if wants else any(both), node.at)
        return out

    def _conditional(self, node: Conditional) -> Expr:
        test = self.expression(node.test)
        condition = self.condition(test)
        self.cost()
        sides: list[Expr] = []
        segments = [self.new_segment(node.yes.at.line), self.new_segment(node.no.at.line)]
        self.control.append(test.reads)
        for segment, part in zip(segments, (node.yes, node.no), strict=True):
            lowered = self.within(segment, lambda part=part: self.decay(self.expression(part)))
            sides.append(lowered)
        ctype = self._common_type(sides[0], sides[1], node.at)
        for k, segment in enumerate(segments):
            sides[k] = self.within(segment, lambda k=k: self.convert(sides[k], ctype, node.at))
        self.control.pop()
        yes, no = sides[0].run, sides[1].run
        if test.constant is not None:
            chosen = sides[0] if test.constant else sides[1]
            if chosen.constant is not None:
                return Expr(ctype, chosen.run, node.at, constant=chosen.constant)

        def run(t: Team, m: Mask) -> Any:
            taken, others = split(m, condition(t, m))
            if taken is None or others is None:
                k = 0 if others is None else 1
                t.tally.charge(segments[k], m)
                return (yes if k == 0 else no)(t, m)
            t.tally.charge(segments[0], taken)
            t.tally.charge(segments[1], others)
            return access.merge(taken, yes(t, taken), no(t, others))

        origin = Origin()
        for side in sides:
            origin.unite(side.origin)
        return self.value(ctype, run, node.at, [test, *sides], origin=origin)

    def _common_type(self, a: Expr, b: Expr, at: Position) -> CType:
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
        self.cost()
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

    # -- assignments

    def _assign(self, node: Assign) -> Expr:
        target = self.place_of(node.target)
        ctype = target.type
        self.writable(target, node.at)
        if isinstance(node.value, Braces) and node.value.type is None:
            value = self.braces_value(node.value, ctype)
        else:
            value = self.expression(node.value)
        if node.op:
            return self._compound(node, target, value)
        value = self.convert(value, ctype, node.at)
        write = self.writer(target, node.at, value)
        new = value.run
        place = target.place
        if isinstance(place, MemoryPlace):
            pointer = place.pointer

            def run(t: Team, m: Mask) -> Any:
                result = new(t, m)  # the right side goes first, as C++17 has it
                write(t, m, result, pointer(t, m))
                return result
        else:

            def run(t: Team, m: Mask) -> Any:
                result = new(t, m)
                write(t, m, result, None)
                return result

        return self.value(ctype, run, node.at, [target, value], place=None, origin=value.origin)

    def _compound(self, node: Assign, target: Expr, value: Expr) -> Expr:
        return self.update(
            target, lambda old: self.operate(node.op, old, value, node.at), node.at, [value]
        )

    def update(
        self,
        target: Expr,
        combine: Callable[[Expr], Expr],
        at: Position,
        parts: list[Expr],
        old_wanted: bool = False,
    ) -> Expr:
        """Read a place, compute from it, write it back; the address is computed once."""
        ctype = target.type
        cell: list[Any] = [None]
        self.use(target)
        old = Expr(
            ctype, lambda t, m: cell[0], at, origin=target.origin, reads=target.reads,
            rounds=target.rounds,
        )  # fmt: skip
        result = self.convert(combine(old), ctype, at)
        write = self.writer(target, at, result)
        new = result.run
        place = target.place
        if isinstance(place, MemoryPlace):
            pointer = place.pointer
            site = self.new_site(at, volatile=place.volatile)

            def run(t: Team, m: Mask) -> Any:
                ptr = pointer(t, m)
                before = cell[0] = access.load(t, m, ptr, ctype, site)
                after = new(t, m)
                write(t, m, after, ptr)
                return before if old_wanted else after
        else:
            read = target.run

            def run(t: Team, m: Mask) -> Any:
                before = cell[0] = read(t, m)
                after = new(t, m)
                write(t, m, after, None)
                return before if old_wanted else after

        return self.value(ctype, run, at, [target, result, *parts], origin=target.origin)

    def _increment(self, node: Increment, used: bool) -> Expr:
        target = self.place_of(node.operand)
        self.writable(target, node.at)
        if isinstance(target.type, Struct) or target.type is BOOL:
            self.fail(node.at, f"'{node.op}{node.op}' cannot take a '{spelled(target.type)}'")
        one = self.constant(
            INT if isinstance(target.type, Pointer) or _integer(target.type) else FLOAT, 1, node.at
        )
        if target.type is HALF:
            one = self.constant(HALF, 1, node.at)
        return self.update(
            target,
            lambda old: self.operate(node.op, old, one, node.at),
            node.at,
            [],
            old_wanted=node.postfix and used,
        )


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
