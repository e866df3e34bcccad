"""Statements to closures that take the lanes that come in and return those that go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asyncgpu_tutor.cuda_c.compile.lower_declarations import LowerDeclarations, nothing
from asyncgpu_tutor.cuda_c.compile.typed import (
    Execute,
    Expr,
    Scope,
    TypeBinding,
    Variable,
)
from asyncgpu_tutor.cuda_c.lockstep.masks import Mask, join, split
from asyncgpu_tutor.cuda_c.lockstep.team import Team
from asyncgpu_tutor.cuda_c.memory import access
from asyncgpu_tutor.cuda_c.syntax.ast import (
    Block,
    Braces,
    Declaration,
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
from asyncgpu_tutor.cuda_c.types import (
    VOID,
    CType,
    Scalar,
    Void,
    spelled,
)

__all__ = ["LowerStatements"]


class LowerStatements(LowerDeclarations):
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
                return self.declaration(node)
            case ExpressionStatement():
                return self._expression_statement(node)
            case If():
                return self._if(node)
            case For():
                return self.loop(node)
            case Switch():
                return self._switch(node)
            case Jump():
                return self._jump(node)
            case Return():
                return self._return(node)
            case StructDef():
                self.enter(node.name, TypeBinding(self.define_struct(node)), node.at)
                return nothing
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
        body = [b for b in body if b is not nothing]
        if not body:
            return nothing
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

    # -- control

    def _if(self, node: If) -> Execute:
        lowered, segment = self.charged(node.at, lambda: self.test(node.test))
        test, reads, known = lowered
        if node.constexpr:
            if known is None:
                self.fail(node.test.at, "the condition of 'if constexpr' must be a constant")
            chosen = node.then if known else node.otherwise
            return self.block(Block(at=node.at, body=[chosen])) if chosen else nothing
        segment.branch = True
        self.ranks.branch()
        self.control.append(reads)
        at_hand = set(self.at_hand)
        then = self.block(Block(at=node.then.at, body=[node.then]))
        otherwise = None
        if node.otherwise is not None:
            self.at_hand = set(at_hand)
            otherwise = self.block(Block(at=node.otherwise.at, body=[node.otherwise]))
        self.at_hand = set()
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

    def test(self, node: Expression) -> tuple[Any, frozenset[Variable], bool | None]:
        expr = self.expression(node)
        self.cost()
        known = None if expr.constant is None else bool(expr.constant)
        return self.condition(expr), expr.reads, known

    def loop(self, node: For) -> Execute:
        raise NotImplementedError

    def _switch(self, node: Switch) -> Execute:
        lowered, segment = self.charged(node.at, lambda: self._subject(node))
        subject, values, reads = lowered
        segment.branch = True
        leave = self.new_exit()
        self.break_exits.append(leave)
        self.control.append(reads)
        self.scope = Scope(self.scope)
        bodies: list[Execute] = []
        for case in node.cases:
            self.at_hand = set()
            bodies.append(self.sequence(case.body))
        self.at_hand = set()
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


def _leave_kernel(t: Team, m: Mask) -> Mask | None:
    t.exited = join(t.exited, m)
    return None


def _leaving(target: int) -> Execute:
    def run(t: Team, m: Mask) -> Mask | None:
        t.left[target] = join(t.left[target], m)
        return None

    return run
