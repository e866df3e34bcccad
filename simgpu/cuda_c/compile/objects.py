"""Objects: constructors, operators that the file itself defines, and lambdas.

A lambda is a struct that keeps what is captured, with one function. What it only refers to is found by its
name, in the scope in which the lambda stands, because functions are expanded where they are called.
"""

from collections.abc import Iterator
from dataclasses import replace

from simgpu.cuda_c.compile import braces, calls, conversions, places, rooms, storage
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.form import Declare
from simgpu.cuda_c.compile.overloads import Functions, Invocation, conversion, resolve_overload
from simgpu.cuda_c.compile.type_names import StructLayout, param_type
from simgpu.cuda_c.compile.typed import THIS, Alias, Class, Expr, Scope
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.lockstep.values import COMPARISONS
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import INT, ArrayType, CType, Enumeration, Scalar, Struct, spelled


def overloaded(c: Context, name: str, operands: list[Expr], at: Position) -> Expr | None:
    """Call an operator of the file's own, such as "operator+"; None if none takes these operands."""
    node = ast.CallExpr(at=at, name=name, arguments=[])
    known = c.class_of(operands[0].type)
    owner = None if known is None else known.having(name)
    if owner is not None:
        this = places.as_base(c, operands[0], owner.type)
        call = Invocation(node, operands[1:], owner, this)
        _refuse_ambiguous(c, call, owner.methods[name], operands[0])
        found = calls.call_best(c, call, owner.methods[name])
        if found is not None:
            return found
    functions = c.file.functions.get(name, [])
    if not any(isinstance(operand.type, Struct) for operand in operands):
        # The built-in operator is nearer than one that an enumeration would have to be converted for.
        kinds = [operand.type for operand in operands if isinstance(operand.type, Enumeration)]
        plain = [function for function in functions if function.template is None]
        with c.seen_from(c.file.scope):
            functions = [f for f in plain if any(param_type(c, p) in kinds for p in f.params)]
    if not functions:
        return None
    for k, operand in enumerate(operands):
        _refuse_ambiguous(c, Invocation(node, operands), functions, operand, 1 - k)
    return calls.call_best(c, Invocation(node, operands), functions)


def _refuse_ambiguous(
    c: Context, call: Invocation, functions: Functions, operand: Expr, other: int = 0
) -> None:
    """Refuse an operator that converts a number to a struct, where the struct becomes a number as well."""
    op, kinds = call.node.name.removeprefix("operator"), [a.type for a in call.arguments]
    changes = op == "[]" or (op.endswith("=") and op not in COMPARISONS)
    number = kinds[other] if 0 <= other < len(kinds) else None
    if changes or not isinstance(number, Scalar) or conversion(c, operand.type, None) is None:
        return
    best = resolve_overload(c, call, functions)
    if best is None:
        return
    with c.seen_from(best[1]):
        into = c.class_of(param_type(c, best[0].params[other]))
    if into is not None and not any(made.explicit for made in into.constructors):
        both = f"'{spelled(operand.type)}' and '{spelled(number)}'"
        c.fail(call.node.at, f"operator '{op}' between {both} is ambiguous: convert one of the two")


def become(
    c: Context, expr: Expr, target: CType | None, at: Position, explicit: bool
) -> Expr | None:
    """A struct as something else, by a function that it has for this."""
    name = conversion(c, expr.type, target, explicit)
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
    zeros = braces.zero_values(known.type, at) if known.zeroes(arguments) else []
    if in_memory:
        with c.recording(dropped=True):  # since a GPU does nothing of this
            begin = rooms.local_memory(c, variable, zeros, at)
    elif zeros:
        begin = storage.put(variable.slot, storage.joined(zeros))
    else:
        begin = storage.leave_unset(variable, rooms.zero_of(known.type))
    making = _made(c, known, arguments, at, storage.read_variable(c, variable, at)).run
    # A member that a constructor leaves out may still be copied, with whatever is in it.
    whole = storage.passed_on(storage.use_storage(c, storage.read_variable(c, variable, at)))
    run = storage.in_lane_order(begin, making, whole.run)
    return conversions.typed_value(c, known.type, run, at, [whole], origin=variable.origin)


def _made(c: Context, known: Class, arguments: list[Expr], at: Position, target: Expr) -> Expr:
    node = ast.CallExpr(at=at, name=known.name, arguments=[])
    if len(arguments) == 1 and arguments[0].type == known.type:
        write = storage.writer(c, target, at, storage.use_storage(c, arguments[0]))
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
        elif field.name not in known.initial and arguments:
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
    member = ast.Member(at=at, base=this, name=name, first=True)
    if field is not None and isinstance(field.type, ArrayType) and isinstance(init, ast.Braces):
        for k in range(field.type.length):
            item = init.items[k] if k < len(init.items) else ast.Braces(at=at, items=[])
            index = ast.Index(at=at, base=member, index=ast.Literal(at=at, value=k, type=INT))
            yield ast.assigning(index, item, at)
        return
    yield ast.assigning(member, init, at)


def closure(c: Context, node: ast.Lambda, used: bool) -> Expr:
    """Compile a lambda."""
    if c.scope.find(THIS) is not None:
        where = "lambdas in member functions and in lambdas"
        c.unsupported(node.at, f"{where} are not supported: write a struct with an operator()")
    parts: list[Expr] = []
    origin, layout = Origin(), StructLayout(c)
    for name, given in _kept(c, node):
        kept = storage.use_storage(c, places.place_of(c, given))
        if isinstance(kept.type, ArrayType):
            text = f"'{name}' is an array, which a lambda does not copy: write [&{name}]"
            c.unsupported(given.at, text)
        layout.place(name, kept.type, given.at)
        parts += storage.spread(c, kept, kept.type)
        origin.unite(kept.origin)
    name = f"lambda of line {node.at.line}"
    # Each time that it is compiled it is a type of its own: what it refers to may be another variable.
    key = -1 - c.new_slot()
    ctype = Struct(name, tuple(layout.fields), layout.size, layout.align, key=key)
    methods = {"operator()": [node.function]}
    around = Scope(c.scope.outer)
    around.names |= c.scope.names  # but not what is declared below it
    c.file.classes[ctype] = Class(ctype, name, around, methods, {}, None, ctype.size, False)
    return conversions.typed_value(c, ctype, storage.joined(parts), node.at, parts, origin=origin)


def _kept(c: Context, node: ast.Lambda) -> list[tuple[str, ast.Expression]]:
    """The variables of which a lambda keeps the value, and what that is."""
    out = {name: given for name, given in node.captures if given is not None}
    if node.default == "&":
        return list(out.items())
    named = {name for name, _ in node.captures}
    body = list(ast.parts_of(node.function.body))
    own = {param.name for param in node.function.params}
    own |= {part.name for part in body if isinstance(part, ast.Declarator)}
    own |= {p.name for part in body if isinstance(part, ast.Lambda) for p in part.function.params}
    sized = [part.operand for part in body if isinstance(part, ast.SizeOf)]
    typed = [part.of for part in body if isinstance(part, ast.TypeName)]
    measured = {id(part) for part in ast.parts_of([sized, typed])}  # and not evaluated
    for part in body:
        if not isinstance(part, ast.DeclRefExpr | ast.CallExpr) or id(part) in measured:
            continue
        if part.name not in named | own | out.keys():
            found = c.scope.find(part.name)
            # Variables of the block and of the file are shared by all who know their names.
            local = isinstance(found, Variable) and (found.thread or not found.memory)
            if not local and not isinstance(found, Alias):
                continue
            if not node.default:
                c.fail(part.at, f"this lambda does not capture '{part.name}': write [{part.name}]")
            out[part.name] = ast.DeclRefExpr(at=part.at, name=part.name)
    return list(out.items())
