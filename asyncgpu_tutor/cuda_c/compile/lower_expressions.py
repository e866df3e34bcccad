"""Expressions to closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_braces import LowerBraces
from asyncgpu_tutor.cuda_c.compile.typed import Expr, MemoryPlace, Origin
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask, split
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.syntax.ast import (
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
from asyncgpu_tutor.cuda_c.text.source import Position
from asyncgpu_tutor.cuda_c.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    NULLPTR,
    ULONG,
    VECTORS,
    CType,
    Pointer,
    Scalar,
    Struct,
    Void,
    promoted,
    size_of,
    spelled,
)

__all__ = ["LowerExpressions"]


class LowerExpressions(LowerBraces):
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
            operand = node.operand
            ctype = self.unevaluated(node.at, lambda: self.place_of(operand))
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

    # -- unary

    def _unary(self, node: Unary) -> Expr:
        if node.op == "*":
            return self.use(self.lower_dereference(node))
        if node.op == "&":
            return self.lower_address(node)
        operand = self.expression(node.operand)
        if node.op == "!":
            test = self.condition(operand)
            self.cost(of=[operand])
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
        self.cost(of=[operand])
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

    def _short_circuit(self, node: Binary) -> Expr:
        left = self.expression(node.left)
        test = self.condition(left)
        self.cost()
        segment = self.new_segment(node.right.at.line)
        self.control.append(left.reads)
        at_hand = set(self.at_hand)
        right = self.within(segment, lambda: self.expression(node.right))
        rest = self.within(segment, lambda: self.condition(right))
        self.at_hand &= at_hand
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
        at_hand = set(self.at_hand)
        for segment, part in zip(segments, (node.yes, node.no), strict=True):
            self.at_hand = set(at_hand)
            lowered = self.within(segment, lambda part=part: self.decay(self.expression(part)))
            sides.append(lowered)
        ctype = self.common_type(sides[0], sides[1], node.at)
        for k, segment in enumerate(segments):
            sides[k] = self.within(segment, lambda k=k: self.convert(sides[k], ctype, node.at))
        self.at_hand = set()
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
            rounds=target.rounds, depth=target.depth,
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
