"""Statements, each as steps of the form."""

from __future__ import annotations

from collections.abc import Sequence

from simgpu.cuda_c.compile.braces import converted
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import condition, decay
from simgpu.cuda_c.compile.form import Branch, Followed, Leave, Selection, Step
from simgpu.cuda_c.compile.places import by_address, place_of
from simgpu.cuda_c.compile.storage import use
from simgpu.cuda_c.compile.type_names import integer_constant
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import VOID, CType, Pointer, Scalar, Void, spelled

ADDRESS = "address"  # what an expression says that stands for the place which it points to


def sequence(c: Context, statements: Sequence[ast.Statement]) -> None:
    """Statements one after the other."""
    for node in statements:
        c.statement(node)


def block_of(c: Context, *statements: ast.Statement) -> list[Step]:
    """Statements whose names end with them, as steps of their own."""
    with c.recording() as steps, c.scoped():
        sequence(c, statements)
    return steps


def block(c: Context, node: ast.Block) -> None:
    """Compile `{ ... }`."""
    with c.scoped():
        sequence(c, node.body)


def call_of(expression: ast.Expression | None) -> ast.Call | None:
    """The call that is all of a statement, but for an assignment of its value to a variable."""
    if isinstance(expression, ast.Assign) and not expression.op:
        expression = expression.value if isinstance(expression.target, ast.Name) else None
    return expression if isinstance(expression, ast.Call) else None


def effect(c: Context, node: ast.ExpressionStatement) -> None:
    """Compile an expression for its effect."""
    with c.piece(node.at) as piece:
        expr = c.expression(node.expression, used=False)
    piece.run, piece.call, piece.total = expr.run, call_of(node.expression), expr.total


# -- branches


def tested(c: Context, node: ast.Expression) -> tuple[Expr, Evaluate]:
    """A condition that a warp branches on."""
    expr = c.expression(node)
    c.work()
    return expr, condition(c, expr)


def branch(c: Context, node: ast.If) -> None:
    """Compile `if`."""
    with c.detached(node.at) as head:
        expr, head.run = tested(c, node.test)
    if node.constexpr:
        if expr.constant is None:
            c.fail(node.test.at, "the condition of 'if constexpr' must be a constant")
        head.run = None
        chosen = node.then if expr.constant else node.otherwise
        c.steps += [*head.ahead, head, *(block_of(c, chosen) if chosen else [])]
        return
    c.numbers.ranks.branch()
    then = block_of(c, node.then)
    otherwise = None if node.otherwise is None else block_of(c, node.otherwise)
    c.steps += [*head.ahead, Branch(head, expr.node, then, otherwise)]


def switch(c: Context, node: ast.Switch) -> None:
    """Compile `switch`."""
    with c.detached(node.at) as head:
        subject = c.expression(node.subject)
        values = _labels(c, node, subject)
        c.work(len(values))
    head.run = subject.run
    c.steps += head.ahead
    selection = Selection(head, subject.node, c.new_exit(), values, [])
    c.frame.breaks.append(selection.exit)
    with c.scoped():
        for case in node.cases:
            with c.recording() as steps:
                sequence(c, case.body)
            selection.cases.append(steps)
        c.steps.append(selection)
    c.frame.breaks.pop()


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


def jump(c: Context, node: ast.Jump) -> None:
    """Compile `break` or `continue`."""
    ways_out = c.frame.breaks if node.word == "break" else c.frame.continues
    c.steps.append(Leave(ways_out[-1]))


def leave(c: Context, node: ast.Return) -> None:
    """Compile `return`."""
    frame = c.frame
    if frame.kernel:
        if node.value is not None:
            c.fail(node.at, "a kernel returns nothing")
        c.steps.append(Leave(None))
        return
    if isinstance(frame.returns, Void) or (frame.returns is None and node.value is None):
        if node.value is not None:
            with c.piece(node.at) as piece:
                nothing = c.expression(node.value, used=False)
            piece.run = nothing.run
            piece.call = node.value if isinstance(node.value, ast.Call) else None
            if not isinstance(nothing.type, Void):
                c.fail(node.at, "this function returns void, it cannot return a value")
        c.steps.append(Leave(frame.exit))
        return
    if node.value is None:
        c.fail(node.at, f"this function must return a '{spelled(frame.returns or VOID)}'")
    with c.detached(node.at) as piece:
        if frame.returns is None:
            result = decay(c.expression(node.value))
            frame.returns = result.type
        elif frame.reference:
            result = _referred(c, node.value, frame.returns)
        else:
            result = converted(c, node.value, frame.returns, node.value.at)
    piece.run = result.run
    frame.returned.append(result)
    c.steps += [*piece.ahead, Leave(frame.exit, piece, frame.slot)]


def _referred(c: Context, node: ast.Expression, wanted: CType) -> Expr:
    """Compile the address that a reference returns; the value, if it refers to a variable in registers."""
    if isinstance(node, ast.Conditional):
        with c.recording():  # the steps are dropped, because this only asks where the sides are
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
