"""Declarations: registers, references, arrays, shared memory."""

from dataclasses import replace

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import braces, constants, conversions, rooms, type_names
from simgpu.cuda_c.compile.assignments import changed_place
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.form import Declare, Evaluate
from simgpu.cuda_c.compile.places import by_address, place_of
from simgpu.cuda_c.compile.storage import in_lane_order, joined, leave_unset, put, spread
from simgpu.cuda_c.compile.typed import Binding, Class, Expr, Number, Shorthand, TypeBinding
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.memory.hostile import LateShared
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.memory.shared_region import SharedRegion
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position


def _enter(c: Context, name: str, binding: Binding, at: Position) -> None:
    if name in c.scope.names:
        c.fail(at, f"'{name}' has already been declared in this scope")
    c.scope.names[name] = binding
    c.steps.append(Declare(binding if isinstance(binding, Variable) else None))


def variables(c: Context, node: ast.Declaration) -> None:
    """Compile a declaration of variables or names of types."""
    if "typedef" in node.storage:
        for item in node.items:
            whole = type_names.array_type(c, type_names.resolve_type(c, item.type), item.dims)
            _enter(c, item.name, TypeBinding(whole), item.at)
        return
    deduced: list[types.CType] = []
    for item in node.items:
        type_names.alignment(c, item.type.layout, 1)
        with c.piece(item.at) as piece:
            piece.declares = True
            piece.call = item.init if isinstance(item.init, ast.CallExpr) else None
            piece.run = _declarator(c, item, node.storage)
        plain = not item.type.pointers and not item.type.reference
        if item.type.base == "auto" and plain and len(node.items) > 1:
            deduced.append(c.type_of(ast.DeclRefExpr(at=item.at, name=item.name)))
            if deduced[-1] != deduced[0]:
                both = f"'{types.spelled(deduced[0])}' and '{types.spelled(deduced[-1])}'"
                c.fail(item.at, f"'auto' is one type for all of a line, and here {both}: write two")


def struct(c: Context, node: ast.StructDef) -> None:
    """Compile the definition of a type."""
    if not node.name and node.enumerators is None:
        _unnamed(c, node)
        return
    if node.name in c.scope.names:
        c.fail(node.at, f"'{node.name}' has already been declared in this scope")
    type_names.declare_type(c, node)
    if node.variables is not None:
        variables(c, node.variables)


def _unnamed(c: Context, node: ast.StructDef) -> None:
    """A union without a name, whose members are known by theirs."""
    node = replace(node, name=f"union of line {node.at.line}, column {node.at.column}")
    type_names.declare_type(c, node)
    base, hidden = ast.TypeName(at=node.at, base=node.name), f"*{node.name}"
    item = ast.Declarator(at=node.at, name=hidden, type=base, dims=[])
    variables(c, ast.Declaration(at=node.at, storage=set(), items=[item]))
    union, whole = type_names.resolve_type(c, base), ast.DeclRefExpr(at=node.at, name=hidden)
    for name in union.members() if isinstance(union, types.Struct) else ():
        member = ast.Member(at=node.at, base=whole, name=name)
        _enter(c, name, Shorthand(member), node.at)


def _declarator(c: Context, item: ast.Declarator, storage: set[str]) -> Evaluate | None:
    """Enter a name, and return what gives the variable its first value, if it has one."""
    if item.type.base == "auto":
        return _auto(c, item)
    ctype = type_names.resolve_type(c, item.type)
    const, volatile = item.type.itself("const"), item.type.itself("volatile")
    const |= "constexpr" in storage  # of a pointer, that is the pointer itself
    if isinstance(ctype, types.Void):
        c.fail(item.at, f"'{item.name}' cannot be void")
    if isinstance(ctype, types.Struct) and not ctype.size:
        c.fail(item.at, f"'{types.spelled(ctype)}' is declared, and not defined in this file")
    if "__shared__" in storage:
        return shared_variable(c, item, ctype, storage, volatile)
    if "__constant__" in storage or "__device__" in storage:
        c.fail(item.at, "__constant__ and __device__ variables belong outside functions")
    if "constexpr" in storage:
        constants.refuse_running(c, item)
    if item.type.reference:
        return _reference(c, item, ctype, const)
    if "static" in storage and not const:
        c.unsupported(item.at, "static variables in functions are not supported")
    if item.dims or isinstance(ctype, types.ArrayType):  # under a name of its own
        if item.init is None and c.constructs(ctype):
            item = replace(item, init=ast.Braces(at=item.at, items=[]))
        whole = braces.declared_type(c, item, ctype, const)
        return _in_memory(c, item, whole, const, volatile)
    known = c.class_of(ctype)
    direct = item.init is None or isinstance(item.init, ast.Braces)
    if known is not None and known.constructs and direct and known.takes_over(item.init):
        return _object(c, item, known, const)
    parts = ast.parts_of(item.init) if not const else ()
    if any(isinstance(part, ast.DeclRefExpr) and part.name == item.name for part in parts):
        return _own_value(c, item, storage)
    if c.lives_in_memory(ctype) or item.name in c.frame.addressed:
        return _in_memory(c, item, ctype, const, volatile)
    if item.init is not None:
        new = braces.converted(c, item.init, ctype, item.init.at)
        if storage & {"constexpr", "static"}:
            new = constants.evaluated(c, new, item.init)
        if "static" in storage and new.constant is None and isinstance(ctype, types.Scalar):
            c.fail(item.init.at, f"the static '{item.name}' needs a value that is known now")
        return _bind(c, item, ctype, new, const)
    if const and not (isinstance(ctype, types.Struct) and not ctype.fields):
        c.fail(item.at, f"'{item.name}' is const and needs a value")
    return _unset(c, item, ctype)


def _own_value(c: Context, item: ast.Declarator, storage: set[str]) -> Evaluate:
    """A variable that its own value mentions: it is known from the `=` on, and has no value yet."""
    assert item.init is not None
    begin = _declarator(c, replace(item, init=None), storage)
    assert begin is not None
    name = ast.DeclRefExpr(at=item.at, name=item.name)
    giving = ast.AssignExpr(at=item.at, op="", target=name, value=item.init)
    return in_lane_order(begin, c.expression(giving, used=False).run)


def _object(c: Context, item: ast.Declarator, known: Class, const: bool) -> Evaluate:
    """A struct that is made in its place, by its constructor."""
    ctype, items = known.type, item.init.items if isinstance(item.init, ast.Braces) else []
    arguments = [place_of(c, one) for one in items]
    given: Expr | None = None
    if item.init is not None and known.zeroes(items):  # `S s;` is not
        parts = braces.zero_values(ctype, item.at)
        given = conversions.typed_value(c, ctype, joined(parts), item.at, parts)
    if c.lives_in_memory(ctype) or item.name in c.frame.addressed:
        item = item if given is not None else replace(item, init=None)
        begin = _in_memory(c, item, ctype, False, given=given)
    elif given is not None:
        begin = _bind(c, item, ctype, given, False)
    else:
        begin = _unset(c, item, ctype)
    place = place_of(c, ast.DeclRefExpr(at=item.at, name=item.name))
    making = c.rules.construct(c, known, arguments, item.at, place).run
    variable = c.scope.names[item.name]
    assert isinstance(variable, Variable)
    variable.const = const
    return in_lane_order(begin, making)


def _auto(c: Context, item: ast.Declarator) -> Evaluate | None:
    if isinstance(item.init, ast.Braces) and item.init.type is None and len(item.init.items) == 1:
        item = replace(item, init=item.init.items[0])
    if item.init is None or (isinstance(item.init, ast.Braces) and item.init.type is None):
        c.fail(item.at, f"'auto {item.name}' needs a value to take its type from")
    if item.type.reference:
        target = changed_place(c, item.init)
        return _reference(c, item, target.type, item.type.const, target)
    new = conversions.decay(c.expression(item.init))
    if isinstance(new.type, types.FunctionPointer) and new.type.overloaded:
        c.fail(item.init.at, f"'{new.type.overloaded}' is several functions: say the type of one")
    if item.type.pointers and not isinstance(new.type, types.Pointer):
        c.fail(item.at, f"'auto* {item.name}' needs a pointer, not a '{types.spelled(new.type)}'")
    if isinstance(new.type, types.Void):
        c.fail(item.at, f"'{item.name}' cannot be void")
    const, ctype = item.type.itself("const"), new.type
    if item.type.pointers and isinstance(ctype, types.Pointer):
        said = item.type.const, item.type.volatile
        ctype = replace(ctype, const=ctype.const or said[0], volatile=ctype.volatile or said[1])
        new = conversions.convert(c, new, ctype, item.at)
    if item.name in c.frame.addressed or c.lives_in_memory(ctype):
        return _in_memory(c, item, ctype, const, given=new)
    return _bind(c, item, ctype, new, const)


def _bind(
    c: Context, item: ast.Declarator, ctype: types.CType, new: Expr, const: bool
) -> Evaluate | None:
    if const and new.constant is not None and isinstance(ctype, types.Scalar):
        _enter(c, item.name, Number(new), item.at)
        return None
    variable = Variable(item.name, ctype, c.new_slot(), const=const)
    rooms.first_value(c, variable, new)
    _enter(c, item.name, variable, item.at)
    return put(variable.slot, new.run)


def _unset(c: Context, item: ast.Declarator, ctype: types.CType) -> Evaluate:
    variable = Variable(item.name, ctype, c.new_slot())
    _enter(c, item.name, variable, item.at)
    return leave_unset(variable, rooms.zero_of(ctype))


def _reference(
    c: Context, item: ast.Declarator, ctype: types.CType, const: bool, target: Expr | None = None
) -> Evaluate | None:
    if item.init is None:
        c.fail(item.at, f"the reference '{item.name}' must be bound to something")
    if isinstance(item.init, ast.Conditional) and not const:
        target = place_of(c, by_address(item.init))
    target = target or changed_place(c, item.init)
    volatile = item.type.itself("volatile")
    binding, fix = rooms.bind_reference(c, item.name, target, ctype, const, item.at, volatile)
    _enter(c, item.name, binding, item.at)
    return fix


def _in_memory(
    c: Context, item: ast.Declarator, ctype: types.CType, const: bool, volatile: bool = False,
    given: Expr | None = None,
) -> Evaluate:  # fmt: skip
    """A variable in memory; `given` is its value, where that has been compiled."""
    variable = rooms.own_variable(c, item.name, ctype, True, item.at, const)
    variable.volatile = volatile
    values: list[Expr] = []
    if given is None and isinstance(item.init, ast.Braces):
        values = braces.initialise(c, item.init, ctype)
    elif item.init is not None and not isinstance(ctype, types.ArrayType):
        value = given or conversions.convert(c, c.expression(item.init), ctype, item.init.at)
        values = spread(c, value, ctype)
    elif item.init is not None:
        c.fail(item.init.at, f"the array '{item.name}' needs values in braces")
    for value in values:
        rooms.first_value(c, variable, value)
    variable.numbers = constants.known_elements(variable, values)
    _enter(c, item.name, variable, item.at)
    return rooms.local_memory(c, variable, values, item.at)


def shared_variable(
    c: Context, item: ast.Declarator, element: types.CType, storage: set[str], volatile: bool
) -> Evaluate:
    """A `__shared__` variable: one for each block, however often its function is expanded."""
    if item.init is not None:
        c.fail(item.at, "a __shared__ variable cannot have an initial value")
    ctype = type_names.array_type(c, element, item.dims)
    dynamic = bool(item.dims) and item.dims[0] is None
    if dynamic and "extern" not in storage:
        hint = "for memory that the launch sizes write extern __shared__"
        c.fail(item.at, f"the size of '{item.name}' is missing; {hint}")
    variable = Variable(item.name, ctype, c.new_slot(), memory=True, volatile=volatile)
    variable.origin.note("near")
    _enter(c, item.name, variable, item.at)
    slot, name = variable.slot, item.name
    nbytes = types.size_of(ctype)
    cell = min(map(types.size_of, types.kinds(ctype)), default=4)
    key = (0, None) if dynamic else (id(item), ctype)
    if not dynamic and key not in c.shared:
        align = type_names.alignment(c, item.type.layout, types.align_of(ctype))
        end = max(c.shared.values(), default=0)
        c.shared[key] = -(-end // align) * align + nbytes

    def evaluate(t: Team, m: Mask) -> None:
        region = t.shared.get(key)
        if region is None:
            room = t.launch.dynamic_shared if dynamic else nbytes
            make = SharedRegion if t.launch.hostile is None else LateShared
            region = t.shared[key] = make(room, t, cell)
        known = t.slots[slot]
        if known is None or known.region is not region:  # else it is declared again, in a loop
            region.types[name] = ctype
            t.slots[slot] = Ptr(region, 0, cell, 0, name)

    return evaluate
