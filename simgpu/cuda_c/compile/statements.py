"""Statements, each as a closure that takes the lanes that come in and returns those that go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from simgpu.cuda_c.compile.braces import converted
from simgpu.cuda_c.compile.context import CompileStatement, Context
from simgpu.cuda_c.compile.conversions import condition, decay
from simgpu.cuda_c.compile.hoisting import hoisted
from simgpu.cuda_c.compile.places import by_address, place_of
from simgpu.cuda_c.compile.record import Branch, Followed, Selection
from simgpu.cuda_c.compile.rooms import nothing
from simgpu.cuda_c.compile.storage import use
from simgpu.cuda_c.compile.type_names import integer_constant
from simgpu.cuda_c.compile.typed import Evaluate, Execute, Expr, MemoryPlace, Scope
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.compile.waiting_kernels import resumable_branch, resumable_sequence
from simgpu.cuda_c.lockstep.masks import Mask, join, split
from simgpu.cuda_c.lockstep.team import Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import VOID, CType, Pointer, Scalar, Void, spelled

ADDRESS = "address"  # what an expression says that stands for the place which it points to


def sequence(c: Context, statements: Sequence[ast.Statement]) -> Execute:
    """Statements one after the other."""
    body: list[Execute] = []
    marks = [c.places]
    nodes: Iterable[ast.Statement] = statements
    if c.waits:
        nodes = (part for node in statements for part in hoisted(c, node))
    for node in nodes:
        part = c.statement(node)
        if part is not nothing:
            body.append(part)
            marks.append(c.places)
    if not body:
        return nothing
    if len(body) == 1:
        return body[0]
    if marks[-1] != marks[0]:
        return resumable_sequence(body, marks)

    def run(t: Team, m: Mask) -> Mask | None:
        current: Mask | None = m
        for part in body:
            current = part(t, current)
            if current is None:
                return None
        return current

    return run


def block_of(c: Context, *statements: ast.Statement) -> Execute:
    """Statements whose names end with them."""
    with c.scoped():
        body = sequence(c, statements)
        return closing(c.scope, body)


def closing(scope: Scope, body: Execute) -> Execute:
    """A body, behind which the variables of its scope are no more, even if a pointer is kept."""
    slots = [v.slot for v in scope.names.values() if isinstance(v, Variable) and v.thread]
    if not slots:
        return body

    def run(t: Team, m: Mask) -> Mask | None:
        out = body(t, m)
        for slot in slots:
            place = t.slots[slot]
            if place is not None:
                over = t.waiters.without(m) if t.apart else m
                if over is not None:
                    place.region.end(over)
        return out

    return run


def _block(c: Context, node: ast.Block) -> Execute:
    return block_of(c, *node.body)


def _expression_statement(c: Context, node: ast.ExpressionStatement) -> Execute:
    with c.piece(node.at.line) as piece:
        evaluate = c.expression(node.expression, used=False).run
    point = piece.point

    def run(t: Team, m: Mask) -> Mask | None:
        t.meter.charge(point, m)
        evaluate(t, m)
        return m

    return run


# -- branches


def tested(c: Context, node: ast.Expression) -> tuple[Expr, Evaluate]:
    """A condition that a warp branches on."""
    expr = c.expression(node)
    c.work()
    return expr, condition(c, expr)


def _if(c: Context, node: ast.If) -> Execute:
    with c.piece(node.at.line) as piece:
        expr, test = tested(c, node.test)
    if node.constexpr:
        if expr.constant is None:
            c.fail(node.test.at, "the condition of 'if constexpr' must be a constant")
        chosen = node.then if expr.constant else node.otherwise
        return block_of(c, chosen) if chosen else nothing
    c.ranks.branch()
    first = c.places
    with c.recording() as then_steps:
        then = block_of(c, node.then)
    middle = c.places
    otherwise = otherwise_steps = None
    if node.otherwise is not None:
        with c.recording() as otherwise_steps:
            otherwise = block_of(c, node.otherwise)
    c.steps.append(Branch(piece.point, expr.node, then_steps, otherwise_steps))
    point = piece.point

    def run(t: Team, m: Mask) -> Mask | None:
        meter = t.meter
        meter.charge(point, m)
        yes, no = split(m, test(t, m))
        if yes is None:
            return m if otherwise is None else otherwise(t, m)
        if no is None:
            return then(t, m)
        meter.branch(point, yes, no)
        yes = then(t, yes)
        if otherwise is not None:
            no = otherwise(t, no)
        return join(yes, no, m)

    return resumable_branch(run, then, otherwise, (first, middle, c.places))


def _switch(c: Context, node: ast.Switch) -> Execute:
    with c.piece(node.at.line) as piece:
        subject = c.expression(node.subject)
        values = _labels(c, node, subject)
        c.work(len(values))
    leave, first = c.new_exit(), c.places
    c.frame.breaks.append(leave)
    bodies: list[Execute] = []
    marks: list[int] = []
    selection = Selection(piece.point, subject.node, [])
    with c.scoped():
        for case in node.cases:
            marks.append(c.places)
            with c.recording() as steps:
                bodies.append(sequence(c, case.body))
            selection.cases.append(steps)
        c.steps.append(selection)
    c.frame.breaks.pop()
    has_default = any(v is None for v in values)
    evaluate, point = subject.run, piece.point

    def run(t: Team, m: Mask) -> Mask | None:
        t.meter.charge(point, m)
        value = evaluate(t, m)
        t.left[leave] = None
        rest: Mask | None = m
        chosen: list[Mask | None] = []
        for wanted in values:
            taken = None
            if rest is not None and wanted is not None:
                taken, rest = split(rest, np.equal(value, wanted))
                t.meter.branch(point, taken, rest)
            chosen.append(taken)
        return through(t, m, rest, chosen)

    def through(t: Team, m: Mask, rest: Mask | None, chosen: list[Mask | None]) -> Mask | None:
        current: Mask | None = None
        for wanted, taken, body in zip(values, chosen, bodies, strict=True):
            current = join(current, rest if wanted is None else taken, m)
            if current is not None:
                current = body(t, current)
        out = join(current, t.left[leave], m)
        return out if has_default else join(out, rest, m)

    def resumed(t: Team, m: Mask) -> Mask | None:
        if t.resume < first:
            return run(t, m)
        t.left[leave] = None
        here = max(k for k, mark in enumerate(marks) if mark <= t.resume)
        return through(t, m, None, [m if k == here else None for k in range(len(bodies))])

    return run if c.places == first else resumed


def _labels(c: Context, node: ast.Switch, subject: Expr) -> list[int | None]:
    if not isinstance(subject.type, Scalar) or not subject.type.is_integer:
        c.fail(node.subject.at, f"switch needs an integer, not '{spelled(subject.type)}'")
    values: list[int | None] = []
    for case in node.cases:
        number = None
        if case.value is not None:
            number = integer_constant(c, case.value, "a case label")
        if number in values:
            what = "default" if number is None else f"case {number}"
            c.fail(case.at, f"'{what}' has already appeared in this switch")
        values.append(number)
    return values


# -- leaving


def _jump(c: Context, node: ast.Jump) -> Execute:
    return _leaving((c.frame.breaks if node.word == "break" else c.frame.continues)[-1])


def _return(c: Context, node: ast.Return) -> Execute:
    frame = c.frame
    if frame.kernel:
        if node.value is not None:
            c.fail(node.at, "a kernel returns nothing")
        return _leave_kernel
    target, slot = frame.exit, frame.slot
    if isinstance(frame.returns, Void) or (frame.returns is None and node.value is None):
        if node.value is not None:
            c.fail(node.at, "this function returns void, it cannot return a value")
        return _leaving(target)
    if node.value is None:
        c.fail(node.at, f"this function must return a '{spelled(frame.returns or VOID)}'")
    with c.piece(node.at.line) as piece:
        if frame.returns is None:
            result = decay(c.expression(node.value))
            frame.returns = result.type
        elif frame.reference:
            result = _referred(c, node.value, frame.returns)
        else:
            result = converted(c, node.value, frame.returns, node.value.at)
    frame.returned.append(result)
    evaluate, point = result.run, piece.point

    def run(t: Team, m: Mask) -> Mask | None:
        t.meter.charge(point, m)
        value: Any = evaluate(t, m)
        before = t.left[target]
        t.slots[slot] = (
            value if before is None and not t.apart else access.merge(m, value, t.slots[slot])
        )
        t.left[target] = join(before, m)
        return None

    return run


def _referred(c: Context, node: ast.Expression, wanted: CType) -> Expr:
    """Compile the address that a reference returns; the value, if it refers to a variable in registers."""
    if isinstance(node, ast.Conditional):
        with c.recording():  # the record is dropped, because this only asks where the sides are
            sides = [place_of(c, side).place for side in (node.yes, node.no)]
        if all(isinstance(side, MemoryPlace) for side in sides):
            node = by_address(node)
    target = place_of(c, node)
    if target.type != wanted:
        c.fail(node.at, f"a '{spelled(wanted)}&' cannot refer to a '{spelled(target.type)}'")
    place = target.place
    if not isinstance(place, MemoryPlace):
        return use(c, target)
    address = c.note(Followed((target.node,)))
    return Expr(Pointer(wanted), place.pointer, node.at, address, origin=place.origin, text=ADDRESS)


def _leave_kernel(t: Team, m: Mask) -> Mask | None:
    t.exited = join(t.exited, m)
    return None


def _leaving(target: int) -> Execute:
    def run(t: Team, m: Mask) -> Mask | None:
        t.left[target] = join(t.left[target], m)
        return None

    return run


STATEMENTS: Mapping[type[ast.Statement], CompileStatement] = {
    ast.Block: _block,
    ast.ExpressionStatement: _expression_statement,
    ast.If: _if,
    ast.Switch: _switch,
    ast.Jump: _jump,
    ast.Return: _return,
}
