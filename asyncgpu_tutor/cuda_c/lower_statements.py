"""Statements to closures that take the lanes that come in and return those that go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c import access
from asyncgpu_tutor.cuda_c.ast import (
    Block,
    Braces,
    Declaration,
    Declarator,
    Expression,
    ExpressionStatement,
    For,
    If,
    Jump,
    Return,
    Statement,
    StructDef,
    Switch,
)
from asyncgpu_tutor.cuda_c.counts import Segment
from asyncgpu_tutor.cuda_c.local_memory import LocalRegion
from asyncgpu_tutor.cuda_c.lower_expressions import LowerExpressions
from asyncgpu_tutor.cuda_c.masks import Mask, join, split
from asyncgpu_tutor.cuda_c.pointers import Label, Ptr
from asyncgpu_tutor.cuda_c.regions import SharedRegion
from asyncgpu_tutor.cuda_c.source import Position
from asyncgpu_tutor.cuda_c.team import Team
from asyncgpu_tutor.cuda_c.typed import (
    Alias,
    Constant,
    Execute,
    Expr,
    MemoryPlace,
    Scope,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.types import (
    VOID,
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

__all__ = ["LowerStatements"]


class LowerStatements(LowerExpressions):
    """Compiles statements."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.break_exits: list[int] = []
        self.continue_exits: list[int] = []
        self.in_kernel = True
        self.returns: CType = VOID
        self.return_slot = -1
        self.return_exit = -1
        self.returned: list[Expr] = []

    def statement(self, node: Statement) -> Execute:
        match node:
            case Block():
                return self.block(node)
            case Declaration():
                return self._declaration(node)
            case ExpressionStatement():
                return self._expression_statement(node)
            case If():
                return self._if(node)
            case For():
                return self._loop(node)
            case Switch():
                return self._switch(node)
            case Jump():
                return self._jump(node)
            case Return():
                return self._return(node)
            case StructDef():
                self._declare(node.name, TypeBinding(self.define_struct(node)), node.at)
                return _nothing
            case _:
                raise AssertionError(node)

    def block(self, node: Block) -> Execute:
        self.scope = Scope(self.scope)
        body = self.sequence(node.body)
        assert self.scope.outer is not None
        self.scope = self.scope.outer
        return body

    def sequence(self, nodes: Sequence[Statement]) -> Execute:
        body = [self.statement(n) for n in nodes]
        body = [b for b in body if b is not _nothing]
        if not body:
            return _nothing
        if len(body) == 1:
            return body[0]

        def run(t: Team, m: Mask) -> Mask | None:
            current: Mask | None = m
            for part in body:
                current = part(t, current)
                if current is None:
                    return None
            return current

        return run

    def charged(self, at: Position, lower: Callable[[], Any]) -> tuple[Any, Segment]:
        segment = self.new_segment(at.line)
        return self.within(segment, lower), segment

    def _expression_statement(self, node: ExpressionStatement) -> Execute:
        lowered, segment = self.charged(
            node.at, lambda: self.expression(node.expression, used=False)
        )
        evaluate = lowered.run

        def run(t: Team, m: Mask) -> Mask | None:
            t.tally.charge(segment, m)
            evaluate(t, m)
            return m

        return run

    # -- declarations

    def _declare(self, name: str, binding: Any, at: Position) -> None:
        try:
            self.declare(name, binding)
        except KeyError:
            self.fail(at, f"'{name}' has already been declared in this scope")

    def _declaration(self, node: Declaration) -> Execute:
        if "typedef" in node.storage:
            for item in node.items:
                self._declare(item.name, TypeBinding(self.resolve(item.type)), item.at)
            return _nothing
        parts: list[Execute] = []
        for item in node.items:
            part, segment = self.charged(
                item.at, lambda item=item: self._declarator(item, node.storage)
            )
            if part is _nothing:
                continue
            parts.append(_charging(segment, part) if segment.instructions else part)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return _nothing

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
            self._declare(item.name, Constant(value), item.at)
            return _nothing
        variable = Variable(item.name, ctype, self.new_slot(), const=const)
        self.note_assignment(variable, value)
        self._declare(item.name, variable, item.at)
        slot, evaluate = variable.slot, value.run
        self.cost(0)

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = evaluate(t, m)
            t.born[slot] = m
            return m

        return run

    def _unset(self, item: Declarator, ctype: CType) -> Execute:
        variable = Variable(item.name, ctype, self.new_slot(), unset=True)
        self._declare(item.name, variable, item.at)
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
        self._declare(item.name, alias, item.at)
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
            return Alias(expr), _nothing
        slot, pointer = self.new_slot(), place.pointer
        fixed = MemoryPlace(
            lambda t, m: t.slots[slot], place.origin, place.const or const, place.volatile
        )
        expr = Expr(ctype, target.run, at, place=fixed, reads=target.reads, origin=target.origin)

        def run(t: Team, m: Mask) -> Mask | None:
            t.slots[slot] = pointer(t, m)
            return m

        return Alias(expr), run

    def _temporary(self, name: str, ctype: CType, value: Expr) -> tuple[Variable, Execute]:
        variable = Variable(name, ctype, self.new_slot(), const=True)
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
            ctype = self.array_type(element, dims, item.at, const)
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
            values = [value] if isinstance(ctype, Scalar) else self._spread(value, ctype)
        elif item.init is not None:
            self.fail(item.init.at, f"the array '{item.name}' needs values in braces")
        variable = Variable(
            item.name, ctype, self.new_slot(), memory=True, const=const, volatile=volatile
        )
        for value in values:
            self.note_assignment(variable, value)
        self._declare(item.name, variable, item.at)
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
        ctype = self.array_type(element, item.dims, item.at)
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
        self._declare(item.name, variable, item.at)
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

    # -- control

    def _if(self, node: If) -> Execute:
        lowered, segment = self.charged(node.at, lambda: self._test(node.test))
        test, reads, known = lowered
        if node.constexpr:
            if known is None:
                self.fail(node.test.at, "the condition of 'if constexpr' must be a constant")
            chosen = node.then if known else node.otherwise
            return self.block(Block(at=node.at, body=[chosen])) if chosen else _nothing
        segment.branch = True
        self.ranks.branch()
        self.control.append(reads)
        then = self.block(Block(at=node.then.at, body=[node.then]))
        otherwise = None
        if node.otherwise is not None:
            otherwise = self.block(Block(at=node.otherwise.at, body=[node.otherwise]))
        self.control.pop()

        def run(t: Team, m: Mask) -> Mask | None:
            tally = t.tally
            tally.charge(segment, m)
            yes, no = split(m, test(t, m))
            if yes is None:
                return m if otherwise is None else otherwise(t, m)
            if no is None:
                return then(t, m)
            tally.branch(segment, yes, no)
            yes = then(t, yes)
            if otherwise is not None:
                no = otherwise(t, no)
            return join(yes, no, m)

        return run

    def _test(self, node: Expression) -> tuple[Any, frozenset[Variable], bool | None]:
        expr = self.expression(node)
        self.cost()
        known = None if expr.constant is None else bool(expr.constant)
        return self.condition(expr), expr.reads, known

    def _loop(self, node: For) -> Execute:
        self.scope = Scope(self.scope)
        init = self.statement(node.init) if node.init is not None else None
        test_node, step_node = node.test, node.step
        test_at = test_node.at if test_node is not None else node.at
        reads: frozenset[Variable] = frozenset()
        test: Any = None
        test_segment = self.new_segment(test_at.line)
        if test_node is not None:
            test, reads, known = self.within(test_segment, lambda: self._test(test_node))
            if known:
                test = None  # for ever, as far as the condition is concerned
        test_segment.branch = test is not None
        self.ranks.branch()
        leave, again = self.new_exit(), self.new_exit()
        self.break_exits.append(leave)
        self.continue_exits.append(again)
        self.control.append(reads)
        body = self.block(Block(at=node.body.at, body=[node.body]))
        step: Any = None
        step_segment = self.new_segment(node.at.line)
        step_segment.loop = True
        if step_node is not None:
            step = self.within(step_segment, lambda: self.expression(step_node, used=False)).run
        self.control.pop()
        self.break_exits.pop()
        self.continue_exits.pop()
        assert self.scope.outer is not None
        self.scope = self.scope.outer
        at, after = node.at, node.after

        def run(t: Team, entered: Mask) -> Mask | None:
            tally = t.tally
            if init is not None:
                init(t, entered)
            t.left[leave] = None
            finished: Mask | None = None
            first = after
            m: Mask | None = entered
            while True:
                if test is not None and not first:
                    tally.charge(test_segment, m)
                    stay, stop = split(m, test(t, m))
                    if stop is not None:
                        tally.branch(test_segment, stay, stop)
                        finished = join(finished, stop, entered)
                        if stay is None:
                            break
                    m = stay
                first = False
                assert m is not None
                inside = m
                t.step(at, inside)
                t.left[again] = None
                m = join(body(t, inside), t.left[again], inside)
                # Charged for what was entered: a warp that breaks has begun the iteration too.
                tally.charge(step_segment, inside)
                if m is None:
                    break
                if step is not None:
                    step(t, m)
            return join(finished, t.left[leave], entered)

        return run

    def _switch(self, node: Switch) -> Execute:
        lowered, segment = self.charged(node.at, lambda: self._subject(node))
        subject, values, reads = lowered
        segment.branch = True
        leave = self.new_exit()
        self.break_exits.append(leave)
        self.control.append(reads)
        self.scope = Scope(self.scope)
        bodies = [self.sequence(case.body) for case in node.cases]
        assert self.scope.outer is not None
        self.scope = self.scope.outer
        self.control.pop()
        self.break_exits.pop()
        has_default = any(v is None for v in values)

        def run(t: Team, m: Mask) -> Mask | None:
            t.tally.charge(segment, m)
            value = subject(t, m)
            t.left[leave] = None
            rest: Mask | None = m
            chosen: list[Mask | None] = []
            for wanted in values:
                taken = None
                if rest is not None and wanted is not None:
                    taken, rest = split(rest, np.equal(value, wanted))
                    t.tally.branch(segment, taken, rest)
                chosen.append(taken)
            current: Mask | None = None
            for wanted, taken, body in zip(values, chosen, bodies, strict=True):
                current = join(current, rest if wanted is None else taken, m)
                if current is not None:
                    current = body(t, current)
            out = join(current, t.left[leave], m)
            return out if has_default else join(out, rest, m)

        return run

    def _subject(self, node: Switch) -> tuple[Any, list[Any], frozenset[Variable]]:
        subject = self.expression(node.subject)
        if not isinstance(subject.type, Scalar) or not subject.type.is_integer:
            self.fail(node.subject.at, f"switch needs an integer, not '{spelled(subject.type)}'")
        values: list[Any] = []
        for case in node.cases:
            number = None
            if case.value is not None:
                number = self.integer_constant(case.value, "a case label")
            if number in values:
                what = "default" if number is None else f"case {number}"
                self.fail(case.at, f"'{what}' has already appeared in this switch")
            values.append(number)
        self.cost(len(values))
        return subject.run, values, subject.reads

    def _jump(self, node: Jump) -> Execute:
        exits = self.break_exits if node.word == "break" else self.continue_exits
        target = exits[-1]

        def run(t: Team, m: Mask) -> Mask | None:
            t.left[target] = join(t.left[target], m)
            return None

        return run

    def _return(self, node: Return) -> Execute:
        if self.in_kernel:
            if node.value is not None:
                self.fail(node.at, "a kernel returns nothing")
            return _leave_kernel
        target, slot = self.return_exit, self.return_slot
        if isinstance(self.returns, Void):
            if node.value is not None:
                self.fail(node.at, "this function returns void, it cannot return a value")
            return _leaving(target)
        if node.value is None:
            self.fail(node.at, f"this function must return a '{spelled(self.returns)}'")
        lowered, segment = self.charged(node.at, lambda: self._returned(node))
        evaluate = lowered.run

        def run(t: Team, m: Mask) -> Mask | None:
            t.tally.charge(segment, m)
            value = evaluate(t, m)
            before = t.left[target]
            t.slots[slot] = value if before is None else access.merge(m, value, t.slots[slot])
            t.left[target] = join(before, m)
            return None

        return run

    def _returned(self, node: Return) -> Expr:
        assert node.value is not None
        if isinstance(node.value, Braces) and node.value.type is None:
            value = self.braces_value(node.value, self.returns)
        else:
            value = self.convert(self.expression(node.value), self.returns, node.value.at)
        self.returned.append(value)
        return value


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


def _nothing(t: Team, m: Mask) -> Mask | None:
    return m


def _charging(segment: Segment, part: Execute) -> Execute:
    def run(t: Team, m: Mask) -> Mask | None:
        t.tally.charge(segment, m)
        return part(t, m)

    return run


def _leave_kernel(t: Team, m: Mask) -> Mask | None:
    t.exited = join(t.exited, m)
    return None


def _leaving(target: int) -> Execute:
    def run(t: Team, m: Mask) -> Mask | None:
        t.left[target] = join(t.left[target], m)
        return None

    return run
