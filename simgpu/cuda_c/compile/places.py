"""Names, members, indices, addresses: what has a place, and where it is."""

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import builtins, function_addresses, storage, type_names, typed
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import convert, decay, itself, typed_value
from simgpu.cuda_c.compile.form import Coordinate, Element, Followed, IRValue, Part
from simgpu.cuda_c.compile.variables import Variable
from simgpu.cuda_c.lockstep import Mask, Team, varies
from simgpu.cuda_c.memory.names import report_row
from simgpu.cuda_c.memory.pointers import Ptr
from simgpu.cuda_c.memory.regions import inside
from simgpu.cuda_c.syntax import ast
from simgpu.cuda_c.text.source import Position

_BUILTIN_VARIABLES: dict[str, Callable[[Team], list[Any]]] = {
    "threadIdx": attrgetter("thread_index"), "blockIdx": attrgetter("block_index"),
    "blockDim": attrgetter("block_dim"), "gridDim": attrgetter("grid_dim"),
}  # fmt: skip


def place_of(c: Context, node: ast.Expression) -> typed.Expr:
    """An expression whose value is not wanted yet, only where it is: nothing is loaded."""
    if isinstance(node, ast.DeclRefExpr):
        return _name(c, node)
    if isinstance(node, ast.Member):
        return _member(c, node)
    if isinstance(node, ast.Index):
        return _index(c, node)
    if isinstance(node, ast.Unary) and node.op == "*":
        return _dereference(c, node)
    if isinstance(node, ast.CallExpr):
        return c.rules.call(c, node)
    if isinstance(node, ast.Conditional):
        return _either(c, node)
    found = _downcast(c, node)
    return c.expression(node) if found is None else found


def place_asked(c: Context, node: ast.Expression) -> typed.Expr:
    """As `place_of`, where only the type or the kind of place is asked for, so that nothing is computed."""
    with c.recording(dropped=True):
        return place_of(c, node)


def _either(c: Context, node: ast.Conditional) -> typed.Expr:
    """`test ? a : b`, by which one of the two may be changed."""
    yes, no = (place_asked(c, side) for side in (node.yes, node.no))
    same = yes.type == no.type and isinstance(yes.type, types.Struct | types.Scalar)
    memory = isinstance(yes.place, typed.MemoryPlace) and isinstance(no.place, typed.MemoryPlace)
    if same and memory and isinstance(yes.type, types.Struct):
        return place_of(c, by_address(node))
    out = c.expression(node)
    out.lost = same and yes.place is not None and no.place is not None
    return out


def by_address(node: ast.Conditional) -> ast.Unary:
    """`test ? a : b` as `*(test ? &a : &b)`."""
    yes, no = (ast.Unary(at=side.at, op="&", operand=side) for side in (node.yes, node.no))
    return ast.Unary(at=node.at, op="*", operand=replace(node, yes=yes, no=no))


def content(c: Context, node: ast.Expression, used: bool) -> typed.Expr:
    """Compile the value of what has a place."""
    return storage.use_storage(c, place_of(c, node))


def _name(c: Context, node: ast.DeclRefExpr) -> typed.Expr:
    found = c.scope.find(node.name)
    if node.away and found and found is c.scope.outermost().names.get(node.name):
        c.fail(node.at, f"'{node.name}' is not declared: write {node.away}::{node.name}")
    if isinstance(found, Variable):
        return storage.read_variable(c, found, node.at)
    if isinstance(found, typed.Number):
        return found.at(node.at)
    if isinstance(found, typed.Alias):
        known, place = found.expr, found.expr.place
        return known if place is None else storage.read_place(c, place, known.type, node.at)
    if isinstance(found, typed.Shorthand):
        return place_of(c, found.node)
    if node.name == "this" and c.scope.find(typed.THIS) is not None:
        this = ast.DeclRefExpr(at=node.at, name=typed.THIS)
        return address_of(c, ast.Unary(at=node.at, op="&", operand=this))
    if isinstance(found, typed.Refused):
        raise found.error
    if found is not None:
        c.fail(node.at, f"'{node.name}' is a type: a value is expected here")
    if node.name == "warpSize":
        # It is no constant here, because it is no constant expression in C++ either.
        coordinate = c.note(Coordinate(name="warpSize"))
        return typed.Expr(types.INT, lambda t, m: np.int32(32), node.at, coordinate)
    if node.name in _BUILTIN_VARIABLES:
        three = _BUILTIN_VARIABLES[node.name]
        ctype = types.VECTORS["dim3" if node.name.endswith("Dim") else "uint3"]
        return typed_value(c, ctype, lambda t, m: list(three(t)), node.at)
    if node.name in c.file.functions:
        return function_addresses.function_address(c, node)
    if builtins.find_builtin(node.name, c.file.text.headers) is not None:
        instead = f"take [](float a) {{ return {node.name}(a); }}"
        c.unsupported(node.at, f"the address of '{node.name}', which is built in: {instead}")
    _unknown(c, node)


def hidden_object(c: Context, name: str, at: Position) -> typed.Expr | None:
    """The object whose function is being compiled (`THIS`), or the one that it is the base of (`WHOLE`)."""
    found = c.scope.find(name)
    return None if found is None else _name(c, ast.DeclRefExpr(at=at, name=name))


def _downcast(c: Context, node: ast.Expression) -> typed.Expr | None:
    """`*static_cast<T*>(this)` and `static_cast<T&>(*this)`, where the object is known to be a T."""
    cast = node.operand if isinstance(node, ast.Unary) and node.op == "*" else node
    if not isinstance(cast, ast.Cast) or cast.type.reference != (cast is node):
        return None
    this = cast.operand
    if cast.type.reference and isinstance(this, ast.Unary) and this.op == "*":
        this = this.operand
    whole = hidden_object(c, typed.WHOLE, node.at)
    if whole is None or not isinstance(this, ast.DeclRefExpr) or this.name != "this":
        return None
    target = type_names.resolve_type(c, cast.type)
    target = target.target if isinstance(target, types.Pointer) else target
    known = whole.type == target or c.derives(whole.type, target)
    return as_base(c, whole, target) if known else None


def _unknown(c: Context, node: ast.DeclRefExpr) -> NoReturn:
    name = node.name
    names = c.scope.visible() | set(_BUILTIN_VARIABLES)
    close = [n for n in names if n.lower() == name.lower()]
    close = close or get_close_matches(name, sorted(names), 1, 0.75)
    hint = f" (did you mean '{close[0]}'?)" if close else c.elsewhere(name)
    if name in c.file.text.aside:
        hint = f"{c.elsewhere(name)}: write __device__, __constant__ or const there, or pass it to the kernel"
    c.fail(node.at, f"'{name}' is not declared{hint}")


def _member(c: Context, node: ast.Member) -> typed.Expr:
    name = node.base.name if isinstance(node.base, ast.DeclRefExpr) else ""
    if name not in _BUILTIN_VARIABLES or c.scope.find(name) is not None:
        base = place_of(c, node.base)
        if node.owner is not None:
            owner = type_names.resolve_type(c, node.owner)
            if base.type != owner and not c.derives(base.type, owner):
                given = types.spelled(base.type)
                c.fail(node.at, f"'{given}' is not derived from '{types.spelled(owner)}'")
            base = as_base(c, base, owner)
        return member_of(c, base, node)
    axis, three = {"x": 0, "y": 1, "z": 2}.get(node.name), _BUILTIN_VARIABLES[name]
    if axis is None:
        c.fail(node.at, f"'{name}' has no member '{node.name}'; it has x, y, z")
    coordinate = c.note(Coordinate(name=name, axis=axis))
    return typed.Expr(types.UINT, lambda t, m: three(t)[axis], node.at, coordinate)


def member_of(c: Context, base: typed.Expr, node: ast.Member | ast.Qualified) -> typed.Expr:
    """`base.name`."""
    if not isinstance(base.type, types.Struct):
        hint = ""
        if isinstance(base.type, types.Pointer) and isinstance(base.type.target, types.Struct):
            hint = ": use '->'"
        c.fail(node.at, f"'{types.spelled(base.type)}' has no members{hint}")
    field = base.type.member(node.name)
    known = c.class_of(base.type)
    of_type = None if known is None else known.scope.names.get(node.name)
    if field is None and isinstance(of_type, typed.Number):
        return of_type.expr
    if field is None:
        have = ", ".join(base.type.members())
        c.fail(node.at, f"'{base.type.name}' has no member '{node.name}'; it has {have}")
    check_access(c, known, node.name, node.at)
    out = _part(c, base, field, node.at)
    const = False if isinstance(node, ast.Member) and node.first else field.const
    if out.place is not None and const is not None:
        out.place = replace(out.place, const=const)
    return out


def check_access(c: Context, known: typed.Class | None, name: str, at: Position) -> None:
    """Refuse a private member to kernels, and to functions that are of no class."""
    function = c.frame.function
    if known is None or name not in known.private or function is None:
        return
    if any(function is outside for outside in c.file.functions.get(function.name, ())):
        c.fail(at, f"'{name}' is private or protected in '{known.name}'")


def as_base(c: Context, expr: typed.Expr, owner: types.CType) -> typed.Expr:
    """The part of an object that it has from a struct which its own is derived from, or the object itself."""
    while expr.type != owner:
        known = c.class_of(expr.type)
        assert isinstance(expr.type, types.Struct)
        assert known is not None
        assert known.base is not None
        field = expr.type.member("")
        if field is None:  # of a struct without data
            place = expr.place
            place = replace(place, count=0) if isinstance(place, typed.RegisterPlace) else place
            expr = typed.Expr(known.base.type, lambda t, m: [], expr.at, IRValue(), place=place)
        else:
            expr = _part(c, expr, field, expr.at)
    return expr


def _part(c: Context, base: typed.Expr, field: types.Field, at: Position) -> typed.Expr:
    """A member of a struct, as a place if the struct has one."""
    place, offset = base.place, field.offset
    if isinstance(place, typed.MemoryPlace):
        pointer, checked = place.pointer, place.checked
        address, volatile = c.note(Part((base.node,))), place.volatile or field.volatile
        moved: typed.Evaluate = lambda t, m: pointer(t, m).moved(offset)
        align = types.align_of(field.type)
        packed = place.packed or offset % align > 0 or types.align_of(base.type) < align
        inner = typed.MemoryPlace(moved, address, place.origin, place.const, volatile, packed)
        if checked is not None:
            inner.checked = lambda t, m: checked(t, m).moved(offset)
        return storage.read_memory(c, inner, field.type, at)
    first = sum(1 for _, o in types.leaves(base.type) if o < offset)
    count = len(types.leaves(field.type))
    if isinstance(place, typed.RegisterPlace):
        part = replace(place, first=place.first + first, count=count)
        return storage.read_place(c, part, field.type, at)
    if isinstance(field.type, types.ArrayType):
        c.unsupported(at, "an array in a struct that has no name: give it one first")
    pick = storage.pick_leaves(base.run, field.type, first, count, at)
    out = typed_value(c, field.type, pick, at, [base], origin=base.origin)
    out.lost = base.lost
    return out


def _index(c: Context, node: ast.Index) -> typed.Expr:
    base = place_of(c, node.base)
    if isinstance(base.type, types.Struct):
        found = c.rules.overloaded(c, "operator[]", [base, place_of(c, node.index)], node.at)
        if found is not None:
            return found
        base = itself(c, base, node.at)
    if isinstance(base.type, types.Scalar):
        flipped = place_asked(c, node.index).type
        if isinstance(flipped, (types.Pointer, types.ArrayType)):
            return _index(c, ast.Index(at=node.at, base=node.index, index=node.base))
    if not isinstance(base.type, (types.Pointer, types.ArrayType)):
        text = f"a value of type '{types.spelled(base.type)}' cannot be indexed: it is no array"
        c.fail(node.at, text)
    if isinstance(base.type, types.Pointer):
        storage.use_storage(c, base)
    index = index_value(c, c.expression(node.index), node.index.at)
    return _element(c, base, index, node)


def index_value(c: Context, index: typed.Expr, at: Position) -> typed.Expr:
    """An index as a signed integer of 64 bits, or one of 32."""
    index = itself(c, index, at)
    scoped = isinstance(index.type, types.Enumeration) and index.type.scoped
    if not isinstance(index.type, types.Scalar) or not index.type.is_integer or scoped:
        c.fail(at, f"an index must be an integer, not '{types.spelled(index.type)}'")
    if index.type.size == 8 and index.type.kind == "uint":
        # Addresses wrap around, so that the highest size_t is the element before; and NumPy makes a float of
        # an unsigned and a signed integer.
        run, known = index.run, index.constant
        known = known if known is None else np.uint64(known).view(np.int64)
        wrapped: typed.Evaluate = lambda t, m: run(t, m).view(np.int64)
        return replace(index, type=types.LLONG, run=wrapped, constant=known)
    return convert(c, index, types.INT, at) if index.type.size < 4 else index


def _element(c: Context, base: typed.Expr, index: typed.Expr, node: ast.Index) -> typed.Expr:
    """`base[index]` as a place; of an array that is part of another, the index has to stay within."""
    ctype, at = base.type, node.at
    assert isinstance(ctype, types.Pointer | types.ArrayType)
    target = ctype.element if isinstance(ctype, types.ArrayType) else ctype.target
    if isinstance(target, types.Void):
        c.fail(at, "a void pointer must be cast before it is indexed")
    step = types.size_of(target)
    start, offset = base.run, index.run
    pointer: typed.Evaluate = lambda t, m: start(t, m).plus(offset(t, m), step)
    if index.constant is not None:
        count = int(index.constant)
        pointer = lambda t, m: start(t, m).plus(count, step)
    length = ctype.length if isinstance(ctype, types.ArrayType) else None
    array = base.place if isinstance(base.place, typed.MemoryPlace) and length is not None else None
    const = ctype.const or (array is not None and array.const)
    volatile = ctype.volatile or (array is not None and array.volatile)
    parts = (base.node, index.node)
    address = c.note(Element(parts, array=length is not None, volatile=volatile))
    packed = array is not None and array.packed
    place = typed.MemoryPlace(pointer, address, base.origin, const, volatile, packed)
    if array is not None and length:
        outer = array.checked
        known = index.constant is not None and 0 <= int(index.constant) < length
        if outer is not None or not (known or isinstance(node.base, ast.DeclRefExpr)):
            place.checked = _row(outer or start, offset, length, step, at)
    return storage.read_memory(c, place, target, at)


def _row(
    start: Callable[[Team, Mask], Ptr], offset: typed.Evaluate, length: int, step: int, at: Position
) -> Callable[[Team, Mask], Ptr]:
    """The address of an element of an array within a declared array or struct."""

    def checked(t: Team, m: Mask) -> Ptr:
        index, row = offset(t, m), start(t, m)
        if varies(index):
            if not inside(index, length) and not inside(m.take(index), length):
                report_row(t, m, row, index, length, step, at)
        elif not 0 <= index < length:
            report_row(t, m, row, index, length, step, at)
        return row.plus(index, step)

    return checked


def _dereference(c: Context, node: ast.Unary) -> typed.Expr:
    if isinstance(node.operand, ast.DeclRefExpr) and node.operand.name == "this":
        this = hidden_object(c, typed.THIS, node.at)
        if this is not None:
            return this
    whole = _downcast(c, node)
    if whole is not None:
        return whole
    base = decay(c.expression(node.operand))
    if isinstance(base.type, types.FunctionPointer):
        return base  # what it leads to is a function, whose value is its address again
    if isinstance(base.type, types.Struct):
        found = c.rules.overloaded(c, "operator*", [base], node.at)
        if found is not None:
            return found
        base = itself(c, base, node.at)
    if not isinstance(base.type, types.Pointer):
        power = "; C has no power operator `**`, so multiply, or call powf()"
        cause = f"a value of type '{types.spelled(base.type)}' cannot be dereferenced"
        c.fail(node.at, cause + power * isinstance(base.type, types.Scalar))
    address = c.note(Followed((base.node,)))
    place = typed.MemoryPlace(base.run, address, base.origin, base.type.const, base.type.volatile)
    return storage.read_memory(c, place, base.type.target, node.at)


def address_of(c: Context, node: ast.Unary) -> typed.Expr:
    """`&place`."""
    if isinstance(node.operand, ast.Conditional):
        return c.expression(by_address(node.operand).operand)
    base = place_of(c, node.operand)
    place = base.place
    if place is None and isinstance(base.type, types.FunctionPointer):
        return base
    if place is None:
        c.fail(node.at, "only something that has a place has an address")
    if isinstance(place, typed.RegisterPlace):
        c.unsupported(node.at, f"the address of '{place.variable.name}' is not supported here")
    ctype = types.Pointer(base.type, place.const, place.volatile)
    address = c.note(Followed((base.node,)))
    return typed.Expr(ctype, place.pointer, node.at, address, origin=place.origin)
