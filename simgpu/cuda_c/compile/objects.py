"""Objects: constructors, and operators that the file itself defines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simgpu.cuda_c.compile import braces, calls, conversions, places, rooms
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.form import Declare
from simgpu.cuda_c.compile.overloads import Invocation, conversion, resolve_overload
from simgpu.cuda_c.compile.storage import in_lane_order, put, read_variable, use_storage, writer
from simgpu.cuda_c.compile.typed import THIS, Alias, Class, Expr, Scope
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import INT, ArrayType, CType, spelled


def overloaded(c: Context, name: str, operands: list[Expr], at: Position) -> Expr | None:
    """Call an operator of the file's own, such as "operator+"; None if none takes these operands."""
    node = ast.CallExpr(at=at, name=name, arguments=[])
    known = c.class_of(operands[0].type)
    owner = None if known is None else known.having(name)
    if owner is not None:
        this = places.as_base(c, operands[0], owner.type)
        call = Invocation(node, operands[1:], owner, this)
        found = calls.call_best(c, call, owner.methods[name])
        if found is not None:
            return found
    functions = c.file.functions.get(name, [])
    return calls.call_best(c, Invocation(node, operands), functions) if functions else None


def become(c: Context, expr: Expr, target: CType | None, at: Position) -> Expr | None:
    """A struct as something else, by a function that it has for this."""
    name = conversion(c, expr.type, target)
    return None if name is None else overloaded(c, name, [expr], at)


def construct(
    c: Context, known: Class, arguments: list[Expr], at: Position, target: Expr | None = None
) -> Expr:
    """Make a struct by its constructor or from its members, in `target` or in a place of its own."""
    places.check_access(c, known, known.name, at)
    if target is not None:
        return _made(c, known, arguments, at, target)
    in_memory = c.lives_in_memory(known.type)
    variable = rooms.own_variable(c, known.type.name, known.type, in_memory, at)
    c.steps.append(Declare(variable))
    if in_memory:
        # A member that a constructor leaves out may still be copied, with whatever is in it.
        with c.recording(dropped=True):  # since a GPU does nothing of this
            begin = rooms.local_memory(c, variable, braces.zero_values(known.type, at), at)
    else:
        zero = rooms.zero_of(known.type)
        begin = put(variable.slot, lambda t, m: zero)
    making = _made(c, known, arguments, at, read_variable(c, variable, at)).run
    whole = use_storage(c, read_variable(c, variable, at))
    run = in_lane_order(begin, making, whole.run)
    return conversions.typed_value(c, known.type, run, at, [whole], origin=variable.origin)


def _made(c: Context, known: Class, arguments: list[Expr], at: Position, target: Expr) -> Expr:
    node = ast.CallExpr(at=at, name=known.name, arguments=[])
    if len(arguments) == 1 and arguments[0].type == known.type:
        write = writer(c, target, at, use_storage(c, arguments[0]))
        return conversions.typed_value(c, known.type, write, at, [target, *arguments])
    names = Scope(known.scope)
    if known.constructors:
        best = resolve_overload(c, Invocation(node, arguments, known), known.constructors)
        if best is None:
            listed = ", ".join(spelled(a.type) for a in arguments)
            c.fail(at, f"'{known.type.name}' has no constructor that takes ({listed})")
        chosen, names = best
    else:
        if len(arguments) > len(known.type.fields):
            c.fail(arguments[-1].at, f"too many values for '{known.type.name}'")
        chosen = _of_values(known, arguments, names, at)
        arguments = []
    assert chosen.body is not None
    given: dict[str, ast.Expression] = dict(chosen.initial)
    preset = dict(known.initial)
    first: list[ast.Statement] = []
    if known.base is not None:
        given = {"" if name == known.base.name else name: init for name, init in given.items()}
    # In the order of the members, as in C++, wherever their values are written.
    own = [field.name for field in known.type.fields]
    for name in dict.fromkeys([known.name, *own, *known.type.members()]):
        usual = preset.pop(name, None)
        field = known.type.member(name)
        if usual is None and field is not None and c.constructs(field.type):
            usual = ast.Braces(at=at, items=[])
        init = given.pop(name, usual)
        if init is not None:
            first += _assignments(known, name, init)
    if given:
        c.fail(chosen.at, f"'{known.type.name}' has no member '{next(iter(given))}'")
    body = ast.Block(at=chosen.body.at, body=[*first, *chosen.body.body])
    call = Invocation(node, arguments, known, target)
    return calls.expand(c, call, replace(chosen, body=body), names)


def _of_values(known: Class, arguments: list[Expr], names: Scope, at: Position) -> ast.FunctionDecl:
    """Make the constructor that an aggregate does without: a value for each member, in order."""
    initial: list[tuple[str, ast.Braces]] = []
    for k, field in enumerate(known.type.fields):
        if k < len(arguments):
            names.names[f"value {k}"] = Alias(arguments[k])
            item = ast.DeclRefExpr(at=at, name=f"value {k}")
            initial.append((field.name, ast.Braces(at=at, items=[item])))
        elif field.name not in known.initial:
            initial.append((field.name, ast.Braces(at=at, items=[])))
    return ast.FunctionDecl(
        at=at, name=known.name, returns=ast.TypeName(at=at, base="void"), params=[],
        body=ast.Block(at=at, body=[]), initial=initial,
    )  # fmt: skip


def _assignments(known: Class, name: str, init: ast.Expression) -> Iterator[ast.Statement]:
    """`this->name = init`, element by element for an array."""
    at = init.at
    this = ast.DeclRefExpr(at=at, name=THIS)
    if name == known.name:  # one constructor that calls another
        value: ast.Expression = init
        if isinstance(init, ast.Braces):
            value = ast.Braces(at=at, items=init.items, type=ast.TypeName(at=at, base=name))
        yield ast.assigning(this, value, at)
        return
    field = known.type.member(name)
    member = ast.Member(at=at, base=this, name=name)
    if field is not None and isinstance(field.type, ArrayType) and isinstance(init, ast.Braces):
        for k in range(field.type.length):
            item = init.items[k] if k < len(init.items) else ast.Braces(at=at, items=[])
            index = ast.Index(at=at, base=member, index=ast.Literal(at=at, value=k, type=INT))
            yield ast.assigning(index, item, at)
        return
    yield ast.assigning(member, init, at)
