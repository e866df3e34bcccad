"""Calls of the file's own functions, which are expanded in place.

A device function is compiled anew at each call, as if written there. That is what nvcc does with small
functions; it makes references and templates simple, and it is why recursion is refused.
"""

from copy import deepcopy
from dataclasses import replace

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import braces, builtins, control, cuts, rooms, storage, type_names, typed
from simgpu.cuda_c.compile.context import Context, Frame, ends
from simgpu.cuda_c.compile.conversions import convert, decay, nodes, typed_value
from simgpu.cuda_c.compile.form import Declare, Expansion, Followed
from simgpu.cuda_c.compile.overloads import Functions, Invocation, resolve_overload
from simgpu.cuda_c.compile.places import as_base, check_access, hidden_object, place_of
from simgpu.cuda_c.compile.statements import ADDRESS, sequence
from simgpu.cuda_c.compile.typed import Class, Evaluate, Expr, Scope
from simgpu.cuda_c.compile.variables import Origin, Variable
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.syntax.names import assigned_names

_MOST_POINTS = 20_000  # pieces of code in a kernel once its functions are expanded


def call_expression(c: Context, node: ast.CallExpr, used: bool = True) -> Expr:
    """A call whose result is not read yet: it may be a reference."""
    if node.owner is not None:
        return _call_of_type(c, node, node.owner)
    if node.object is not None:
        return call_method(c, node, place_of(c, node.object))
    found = c.scope.find(node.name)
    if isinstance(found, Variable | typed.Alias | typed.Shorthand | typed.Number):
        callee = place_of(c, ast.DeclRefExpr(at=node.at, name=node.name))
        if isinstance(callee.type, types.Struct | types.FunctionPointer):
            return call_method(c, replace(node, name="operator()"), callee)
        if node.name in c.file.functions and not node.namespace:
            text = f"'{node.name}' is a variable here, which hides the function of that name"
            c.fail(node.at, text)
    builtin = builtins.find_builtin(node.name, c.file.text.headers)
    own = c.scope.find(typed.INSIDE)
    owner = own.having(node.name) if isinstance(own, Class) else None
    if owner is not None:
        return _call_in(c, node, owner, hidden_object(c, typed.THIS, node.at))
    if node.name in c.file.functions:
        functions = _seen(c, node)
        arguments = _arguments(c, node, functions, c.file.scope)
        if node.away and not any(isinstance(_whole(a.type), types.Struct) for a in arguments):
            c.fail(node.at, f"'{node.name}' is not declared: write {node.away}::{node.name}")
        # The file may have more forms of a function that is built in, as of make_float4.
        call = Invocation(node, arguments)
        if builtin is None or _fits_as_it_is(c, call, functions):
            return _call_with(c, call, functions)
    elif found is not None:
        c.fail(node.at, f"'{node.name}' is not a function")
    if builtin is None:
        builtins.refuse_unknown(c, node)
    mark = len(c.steps)
    return cuts.cut_meeting(c, mark, builtin(c, node, used))


def _whole(ctype: types.CType) -> types.CType:
    """What a pointer or an array is one of: arguments bring the functions of their namespaces with them."""
    while isinstance(ctype, types.Pointer | types.ArrayType):
        ctype = ctype.target if isinstance(ctype, types.Pointer) else ctype.element
    return ctype


def _fits_as_it_is(c: Context, call: Invocation, functions: Functions) -> bool:
    """Tell whether one of the file's functions takes these, no half as a struct, no pointer as another."""
    found = resolve_overload(c, call, functions)
    with c.seen_from(found[1] if found else c.scope):
        kinds = [type_names.param_type(c, p) for p in found[0].params] if found else []
    for kind, argument in zip(kinds, call.arguments, strict=False):
        mine, wrong = decay(argument).type, isinstance(kind, types.Struct)
        if isinstance(kind, types.Pointer) and isinstance(mine, types.Pointer):
            wrong = types.unqualified(kind) != types.unqualified(mine)
        if wrong and (mine is types.HALF or not isinstance(kind, types.Struct)):
            return False
    return found is not None


def _seen(c: Context, node: ast.CallExpr) -> list[ast.FunctionDecl]:
    """The functions that a name means here: those of the innermost namespace that has it."""
    functions = c.file.functions[node.name]
    if node.namespace:
        return [f for f in functions if node.namespace in f.namespace[-1:]] or functions
    around = c.frame.function.namespace if c.frame.function is not None else ()
    spaces = (around[:depth] for depth in range(len(around), -1, -1))
    found = ([f for f in functions if f.namespace == space] for space in spaces)
    return next(filter(None, found), functions)


def called_function(c: Context, node: ast.CallExpr, used: bool) -> Expr:
    """Compile the value of a call."""
    return storage.use_storage(c, call_expression(c, node, used))


def call_method(c: Context, node: ast.CallExpr, this: Expr) -> Expr:
    """`this.name(...)`; of the address of a function, a call of it."""
    if isinstance(this.type, types.FunctionPointer) and node.name == "operator()":
        return c.rules.by_address(c, node, this)
    known = c.class_of(this.type)
    owner = None if known is None else known.having(node.name)
    if owner is not None:
        check_access(c, known, node.name, node.at)
        return _call_in(c, node, owner, this)
    if known is not None and known.type.member(node.name) is not None and node.object is not None:
        member = ast.Member(at=node.at, base=node.object, name=node.name)
        return call_method(c, replace(node, name="operator()"), place_of(c, member))
    if node.name == "operator()":
        c.fail(node.at, f"a value of type '{types.spelled(this.type)}' cannot be called")
    c.fail(node.at, f"'{types.spelled(this.type)}' has no member function '{node.name}'")


def _call_of_type(c: Context, node: ast.CallExpr, owner: ast.TypeName) -> Expr:
    ctype = type_names.resolve_type(c, owner)
    known = c.class_of(ctype)
    having = None if known is None else known.having(node.name)
    if having is None:
        c.fail(node.at, f"'{types.spelled(ctype)}' has no member function '{node.name}'")
    this = place_of(c, node.object) if node.object else hidden_object(c, typed.THIS, node.at)
    if this is not None and this.type != having.type and not c.derives(this.type, having.type):
        this = None
    return _call_in(c, node, having, this)


def _call_in(c: Context, node: ast.CallExpr, known: Class, this: Expr | None) -> Expr:
    whole, mine = this, c.scope.find(typed.THIS)
    if this is not None and isinstance(mine, typed.Alias) and mine.expr.place is this.place:
        whole = hidden_object(c, typed.WHOLE, this.at) or this
    this = None if this is None else as_base(c, this, known.type)
    check_access(c, known, node.name, node.at)
    functions = known.methods[node.name]
    arguments = _arguments(c, node, functions, known.scope)
    return _call_with(c, Invocation(node, arguments, known, this, whole), functions)


def _call_with(c: Context, call: Invocation, functions: Functions) -> Expr:
    """As `call_best`, and refuse a call that none of the functions fits."""
    out, node = call_best(c, call, functions), call.node
    if out is None:
        wanted, given = len(functions[0].params), [types.spelled(a.type) for a in call.arguments]
        if len(functions) == 1 and len(given) != wanted:
            c.fail(node.at, f"'{node.name}' takes {wanted} arguments, {len(given)} given")
        c.fail(node.at, f"no '{node.name}' takes ({', '.join(given)})")
    return out


def call_best(c: Context, call: Invocation, functions: Functions) -> Expr | None:
    """Call the function that fits the arguments best; None if none does."""
    best = resolve_overload(c, call, functions)
    if best is None:
        return None
    (function, names), node, known = best, call.node, call.known
    if function.kernel:
        c.unsupported(node.at, "a kernel cannot be called from device code")
    if function.static:
        call = replace(call, this=None)
    elif known is not None and call.this is None:
        text = f"'{node.name}' is called without an object of '{types.spelled(known.type)}'"
        c.fail(node.at, text)
    return expand(c, call, function, names)


def argument(c: Context, node: ast.Expression) -> Expr:
    """An argument; a place stays one, since the parameter may be a reference."""
    if isinstance(node, ast.Braces) and node.type is None:
        c.unsupported(node.at, "lists in braces as arguments are not supported: write the type")
    return place_of(c, node)


def _arguments(c: Context, node: ast.CallExpr, functions: Functions, names: Scope) -> list[Expr]:
    """The arguments of a call; a list in braces makes what the only function that it can mean takes."""
    count = len(node.arguments)
    fitting = [f for f in functions if f.body is not None and count <= len(f.params)]
    out: list[Expr] = []
    for k, given in enumerate(node.arguments):
        known = len(fitting) == 1 and fitting[0].template is None
        if known and isinstance(given, ast.Braces) and given.type is None:
            with c.seen_from(names):
                ctype = type_names.param_type(c, fitting[0].params[k])
            out.append(braces.listed_values(c, given, ctype))
        else:
            out.append(argument(c, given))
    return out


def expand(c: Context, call: Invocation, function: ast.FunctionDecl, names: Scope) -> Expr:
    """The body of a function, compiled as if it stood where it is called."""
    if function.refusal is not None:
        raise function.refusal
    node, arguments = call.node, call.arguments
    bound = [b for b in names.names.values() if isinstance(b, typed.Given)]
    bound = [b for b in bound if not isinstance(b, typed.Number) or b.expr.constant is not None]
    passed = [a for a in arguments if isinstance(a.type, types.FunctionPointer) and a.constant]
    # Name and types go with the place, since all functions that a macro defines have that of its call.
    told = [*map(type_names.identity, bound), *[int(a.constant) for a in passed]]
    takes = tuple(param.type.base for param in function.params)
    key = (function.name, takes, function.at, id(call.known), *told)
    if key in c.calls:
        c.unsupported(node.at, f"'{function.name}' calls itself: recursion is not supported")
    if c.numbers.points > _MOST_POINTS:
        c.unsupported(node.at, "this kernel is too large once its functions are expanded")
    assert function.body is not None
    addressed = c.file.addressed(function.body)
    caller, mark = c.frame, len(c.steps)
    c.calls.append(key)
    entry: list[Evaluate | None] = []
    names.outer = _inside(c, call, function, entry) or names.outer
    body = Expansion(name=function.name, call=node, slot=c.new_slot(), exit=c.new_exit())
    with c.seen_from(names), c.scoped(body):
        entry += _bind_parameters(c, call, function, names, addressed)
        auto = function.returns.base == "auto"
        returns = None if auto else type_names.resolve_type(c, function.returns)
        c.frame = frame = Frame(function, body, returns, addressed)
        frame.entered = caller.entered or node.at
        text = function.body
        # An error in a function of a header is reported where the function is called.
        if function.at.line < 0:
            text = deepcopy(text)
            for part in ast.parts_of(text):
                part.at = node.at
        sequence(c, text.body)
        c.frame = caller
    body.ends += ends(names)
    c.calls.pop()
    return _result(c, call, frame, entry, mark)


def _result(
    c: Context, call: Invocation, frame: Frame, entry: list[Evaluate | None], mark: int
) -> Expr:
    """The value of a call, whose steps begin at `mark`, or the place that it refers to."""
    function, body, returned = frame.function, frame.body, frame.returned
    assert function is not None
    assert body is not None
    refers, at = function.returns.reference, call.node.at
    parts = [*returned, *[a for a in call.arguments if not isinstance(a.type, types.ArrayType)]]
    origin = Origin(*[result.origin for result in returned])
    returns = types.VOID if frame.returns is None else frame.returns
    placed = [result.text == ADDRESS for result in returned]
    address = refers and bool(placed) and all(placed)
    if refers and not address and any(placed):
        c.unsupported(function.at, "a reference to different kinds of variables is not supported")
    yields = types.Pointer(returns) if address else returns
    void = isinstance(yields, types.Void)
    unset = None if void else rooms.zero_of(yields)
    run = control.expanded(body, [give for give in entry if give is not None], unset, at)
    run = cuts.cut_calls(c, mark, body, run, void)
    if address:
        where = c.note(Followed(nodes(parts)))
        place = typed.MemoryPlace(run, where, origin, function.returns.const)
        return storage.read_memory(c, place, returns, at)
    out = typed_value(c, returns, run, at, parts, origin=origin)
    if refers:  # to the one variable in registers that all it returns are, or it is a copy
        first = returned[0].place if returned else None
        if isinstance(first, typed.RegisterPlace) and all(r.place == first for r in returned):
            out.place = replace(first, before=run)
        else:
            out.lost = True
    return out


def _inside(
    c: Context, call: Invocation, function: ast.FunctionDecl, entry: list[Evaluate | None]
) -> Scope | None:
    """Make the scope of a member function: members of its object, then what belongs to the class."""
    this, known = call.this, call.known
    if known is None:
        return None
    scope = Scope(known.scope)
    scope.names[typed.INSIDE] = known
    if this is None:
        return scope
    if this.lost and not function.const:
        c.unsupported(this.at, storage.LOST)
    if this.place is None:  # a value that has no name yet
        variable = rooms.own_variable(c, "this", known.type, c.lives_in_memory(known.type), this.at)
        entry.append(_passed(c, scope, typed.THIS, variable, this))
    else:
        if this.place.const and not function.const:
            c.fail(this.at, f"'{function.name}' may change its object, and this one is const")
        const, name = function.const, typed.THIS
        scope.names[name], fix = rooms.bind_reference(c, name, this, known.type, const, this.at)
        entry.append(fix)
    whole = call.whole
    if whole is not None and whole.place is not None and whole.type != known.type:
        still, name = function.const or whole.place.const, typed.WHOLE
        scope.names[name], fix = rooms.bind_reference(c, name, whole, whole.type, still, this.at)
        entry.append(fix)
    base = ast.DeclRefExpr(at=this.at, name=typed.THIS)
    for name in known.type.members():
        scope.names[name] = typed.Shorthand(ast.Member(at=this.at, base=base, name=name))
    return scope


def _passed(c: Context, scope: Scope, name: str, variable: Variable, new: Expr) -> Evaluate:
    """Enter a parameter by its name, and make the statement that gives it its argument."""
    scope.names[name] = variable
    rooms.first_value(c, variable, new)
    c.steps.append(Declare(variable, parameter=True))
    return rooms.parameter_entry(c, variable, new)


def _handed_round(function: ast.FunctionDecl, name: str) -> bool:
    """Tell whether a function only offers a parameter to a shuffle."""
    assert function.body is not None
    parts = list(ast.parts_of(function.body))
    shuffles = [part for part in parts if isinstance(part, ast.CallExpr) and "shfl" in part.name]
    offered = [id(a) for call in shuffles for a in call.arguments]
    uses = [id(part) for part in parts if isinstance(part, ast.DeclRefExpr) and part.name == name]
    return bool(uses) and set(uses) <= set(offered)


def _bind_parameters(
    c: Context, call: Invocation, function: ast.FunctionDecl, names: Scope, addressed: set[str]
) -> list[Evaluate | None]:
    entry: list[Evaluate | None] = []
    for k, param in enumerate(function.params):
        name, const, volatile = param.name, *map(param.type.itself, ("const", "volatile"))
        with c.seen_from(names):
            ctype = type_names.param_type(c, param)
            if param.type.reference and param.dims:
                element = type_names.resolve_type(c, param.type)
                ctype = type_names.array_type(c, element, param.dims, const)
            if k < len(call.arguments):
                argument = call.arguments[k]
            else:
                assert param.default is not None
                argument = c.expression(param.default)
        if param.type.reference:
            at = call.node.at
            binding, fix = rooms.bind_reference(c, name, argument, ctype, const, at, volatile)
            names.names[name] = binding
            if isinstance(binding, Variable):
                c.steps.append(Declare(binding, parameter=True))
            entry.append(fix)
            continue
        given = isinstance(argument.place, typed.RegisterPlace | typed.MemoryPlace)
        if given and argument.type == ctype and _handed_round(function, param.name):
            # Only the lane that the others ask has to have a value, as where it is offered here.
            names.names[param.name] = typed.Alias(argument)
            continue
        new = convert(c, decay(storage.use_storage(c, argument)), ctype, argument.at)
        if not param.name:
            continue
        fixed = const = const and not param.dims
        if isinstance(ctype, types.FunctionPointer):
            fixed = const or param.name not in assigned_names(function.body)
        if new.constant is not None and param.name not in addressed and fixed:
            names.names[param.name] = typed.Number(new)
            continue
        in_memory = param.name in addressed or c.lives_in_memory(ctype)
        variable = rooms.own_variable(c, param.name, ctype, in_memory, argument.at, const)
        entry.append(_passed(c, names, param.name, variable, new))
    return entry
