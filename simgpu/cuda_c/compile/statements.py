"""Statements, each as steps of the form."""

from collections.abc import Sequence
from dataclasses import replace

from simgpu.cuda_c.compile import braces, form, type_names, waiting
from simgpu.cuda_c.compile.constants import evaluated
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import condition, decay, itself, truth
from simgpu.cuda_c.compile.cuts import test_inside, try_out
from simgpu.cuda_c.compile.places import by_address, place_asked, place_of
from simgpu.cuda_c.compile.storage import use_storage
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.types import (
    INT,
    VOID,
    ArrayType,
    CType,
    Enumeration,
    Pointer,
    Scalar,
    Void,
    spelled,
)

ADDRESS = "address"  # what an expression says that stands for the place which it points to


def sequence(c: Context, statements: Sequence[ast.Statement]) -> None:
    """Statements one after the other."""
    for node in statements:
        c.statement(node)


def block_of(c: Context, *statements: ast.Statement) -> list[form.Instruction]:
    """Statements whose names end with them, as steps of their own."""
    with c.recording() as steps, c.scoped():
        sequence(c, statements)
    return steps


def block(c: Context, node: ast.Block) -> None:
    """Compile `{ ... }`."""
    with c.scoped():
        sequence(c, node.body)


def call_of(expression: ast.Expression | None) -> ast.CallExpr | None:
    """The call that is all of a statement, but for an assignment of its value to a variable."""
    if isinstance(expression, ast.AssignExpr) and not expression.op:
        expression = expression.value if isinstance(expression.target, ast.DeclRefExpr) else None
    return expression if isinstance(expression, ast.CallExpr) else None


def effect(c: Context, node: ast.ExpressionStatement) -> None:
    """Compile an expression for its effect."""
    with c.piece(node.at) as piece:
        expr = c.expression(node.expression, used=False)
    piece.run, piece.call, piece.total = expr.run, call_of(node.expression), expr.total
    try_out(c, piece)


def tested(c: Context, node: ast.Expression) -> tuple[Expr, Evaluate]:
    """A condition that a warp branches on."""
    expr = c.expression(node)
    c.work()
    return expr, condition(c, expr)


def branch(c: Context, node: ast.If) -> None:
    """Compile `if`."""
    with c.detached(node.at) as head:
        expr, head.run = tested(c, node.test)
    try_out(c, head)
    if node.constexpr:
        if expr.constant is None:
            expr, head.steps = evaluated(c, truth(c, expr), node.test), []
        if expr.constant is None:
            c.fail(node.test.at, "the condition of 'if constexpr' must be a constant")
        head.run = None
        chosen = node.then if expr.constant else node.otherwise
        c.steps += [*head.ahead, head, *(block_of(c, chosen) if chosen else [])]
        return
    c.numbers.ranks.branch()
    then = block_of(c, node.then)
    otherwise = None if node.otherwise is None else block_of(c, node.otherwise)
    c.steps += [*head.ahead, form.Branch(head, expr.node, then, otherwise)]


def switch(c: Context, node: ast.Switch) -> None:
    """Compile `switch`."""
    with c.detached(node.at) as head:
        subject = itself(c, c.expression(node.subject), node.subject.at)
        values = _labels(c, node, subject)
        c.work(len(values))
    head.run = subject.run
    c.steps += head.ahead
    selection = form.Selection(head, subject.node, c.new_exit(), values, [])
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
            scoped = isinstance(subject.type, Enumeration) and subject.type.scoped
            wanted = subject.type if scoped else INT
            number = type_names.integer_constant(c, case.value, "a case label", wanted)
        if number in values:
            what = "default" if number is None else f"case {number}"
            c.fail(case.at, f"'{what}' has already appeared in this switch")
        values.append(number)
    return values


def loop(c: Context, node: ast.For) -> None:
    """Compile any loop: every kind of them is a `For` by now."""
    with c.scoped():
        if node.init is not None:
            c.statement(node.init)
        _turns(c, node)


def range_for(c: Context, node: ast.RangeFor) -> None:
    """`for (item : array)`, as a loop over the indices."""
    array = place_asked(c, node.array).type
    if not isinstance(array, ArrayType):
        c.unsupported(node.array.at, f"a range-for over a '{spelled(array)}': it works on arrays")
    at = node.at
    counter = ast.DeclRefExpr(at=at, name=f"index of {node.item.name}")
    element = ast.Index(at=at, base=node.array, index=counter)
    zero, last = (ast.Literal(at=at, value=n, type=INT) for n in (0, array.length))
    kind = ast.TypeName(at=at, base="int")
    start = ast.Declarator(at=at, name=counter.name, type=kind, init=zero)
    item = ast.Declaration(at=at, storage=set(), items=[replace(node.item, init=element)])
    init = ast.Declaration(at=at, storage=set(), items=[start])
    test = ast.Binary(at=at, op="<", left=counter, right=last)
    step = ast.Increment(at=at, op="+", operand=counter, postfix=False)
    body = ast.Block(at=node.body.at, body=[item, node.body])
    loop(c, ast.For(at=at, init=init, test=test, step=step, body=body))


def _turns(c: Context, node: ast.For) -> None:
    counter = None
    if isinstance(node.init, ast.Declaration) and len(node.init.items) == 1:
        binding = c.scope.find(node.init.items[0].name)
        counter = binding if isinstance(binding, Variable) else None
    condition: form.IRValue | None = None
    with c.detached(node.at if node.test is None else node.test.at) as test:
        if node.test is not None:
            expr, run = tested(c, node.test)
            condition = expr.node
            test.run = None if expr.constant else run  # a constant never ends the loop
    c.numbers.ranks.branch()
    leave, again = c.new_exit(), c.new_exit()
    c.frame.breaks.append(leave)
    c.frame.continues.append(again)
    body = block_of(c, node.body)
    with c.detached(node.at) as step:
        if node.step is not None:
            cuts, c.cuts = c.cuts, False  # because nobody can go on in the middle of it
            step.run = c.expression(node.step, used=False).run
            c.cuts = cuts
    c.frame.breaks.pop()
    c.frame.continues.pop()
    whole = form.Loop(
        at=c.placed(node.at), after=node.after, counter=counter, test=test, condition=condition,
        endless=test.run is None, body=body, step=step, leave=leave, again=again,
    )  # fmt: skip
    if test.ahead and condition is not None:
        test_inside(c, whole)
    c.waits = c.waits or (c.trial and waiting.may_wait_in(whole))
    c.note(whole)


def jump_statement(c: Context, node: ast.Jump) -> None:
    """Compile `break` or `continue`."""
    ways_out = c.frame.breaks if node.word == "break" else c.frame.continues
    c.steps.append(form.Leave(ways_out[-1]))


def leave(c: Context, node: ast.Return) -> None:
    """Compile `return`."""
    frame, body = c.frame, c.frame.body
    if frame.function is None or body is None:
        if node.value is not None:
            c.fail(node.at, "a kernel returns nothing")
        c.steps.append(form.Leave(None))
        return
    if isinstance(frame.returns, Void) or (frame.returns is None and node.value is None):
        if node.value is not None:
            with c.piece(node.at) as piece:
                nothing = c.expression(node.value, used=False)
            piece.run = nothing.run
            piece.call = node.value if isinstance(node.value, ast.CallExpr) else None
            if not isinstance(nothing.type, Void):
                c.fail(node.at, "this function returns void, it cannot return a value")
        c.steps.append(form.Leave(body.exit))
        return
    if node.value is None:
        c.fail(node.at, f"this function must return a '{spelled(frame.returns or VOID)}'")
    with c.detached(node.at) as piece:
        if frame.returns is None:
            result = decay(c.expression(node.value))
            frame.returns = result.type
        elif frame.function.returns.reference:
            result = _referred(c, node.value, frame.returns)
        elif frame.function.returns.base == "auto":
            result = decay(c.expression(node.value))
            if result.type != frame.returns:
                both = f"'{spelled(frame.returns)}' further up and '{spelled(result.type)}' here"
                c.fail(node.at, f"this function returns {both}: write its type instead of auto")
        else:
            result = braces.converted(c, node.value, frame.returns, node.value.at)
    piece.run = result.run
    frame.returned.append(result)
    c.steps += [*piece.ahead, form.Leave(body.exit, piece, body.slot)]


def _referred(c: Context, node: ast.Expression, wanted: CType) -> Expr:
    """Compile the address that a reference returns; the value, if it refers to a variable in registers."""
    if isinstance(node, ast.Conditional):
        sides = [place_asked(c, side).place for side in (node.yes, node.no)]
        if all(isinstance(side, MemoryPlace) for side in sides):
            node = by_address(node)
    target = place_of(c, node)
    if target.type != wanted:
        c.fail(node.at, f"a '{spelled(wanted)}&' cannot refer to a '{spelled(target.type)}'")
    place = target.place
    if not isinstance(place, MemoryPlace):
        return use_storage(c, target)
    address = c.note(form.Followed((target.node,)))
    return Expr(Pointer(wanted), place.pointer, node.at, address, origin=place.origin, text=ADDRESS)
