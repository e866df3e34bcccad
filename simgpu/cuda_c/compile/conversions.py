"""Making expressions, and turning them into values of another type."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.form import Constant, Convert, Followed, IRValue
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace
from simgpu.cuda_c.compile.variables import Origin
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.lockstep.values import converter, select_lanes
from simgpu.cuda_c.memory.access import NULL
from simgpu.cuda_c.text.source import Position
from simgpu.cuda_c.types import BOOL, ArrayType, CType, FunctionPointer, Pointer, Scalar, spelled

_NAN = np.uint32(0x7FFFFFFF).view(np.float32)  # PTX ISA 9.0, "Floating Point Instructions"


def nodes(parts: Iterable[Expr]) -> tuple[IRValue, ...]:
    """The nodes of these expressions in the form."""
    return tuple(part.node for part in parts)


def typed_value(
    c: Context, ctype: CType, run: Evaluate, at: Position, parts: Iterable[Expr] = (), *,
    node: IRValue | None = None, origin: Origin | None = None,
) -> Expr:  # fmt: skip
    """An expression made of others; `node` is its name in the form, if it is in there already."""
    parts = list(parts)
    if node is None:
        node = c.note(IRValue(nodes(parts)))
    rank = max((part.rank for part in parts), default=-1) + 1
    return Expr(ctype, run, at, node, origin=origin or Origin(), rank=rank)


def constant(ctype: Scalar, number: Any, at: Position) -> Expr:
    """A number that is known now."""
    known = np.asarray(number).astype(ctype.dtype)[()]
    return Expr(ctype, lambda t, m: known, at, Constant(value=known), constant=known)


def null(ctype: CType, at: Position) -> Expr:
    """The null pointer."""
    return Expr(ctype, lambda t, m: NULL, at, IRValue(), constant=np.int32(0))


def fold(expr: Expr, parts: Iterable[Expr]) -> Expr:
    """Compute now what depends on constants only."""
    if any(p.constant is None for p in parts) or not isinstance(expr.type, Scalar):
        return expr
    with np.errstate(all="ignore"):
        known: Any = expr.run(None, None)  # pyright: ignore[reportArgumentType] - constants look at neither
    return constant(expr.type, known, expr.at)


def computed(c: Context, ctype: CType, run: Evaluate) -> Evaluate:
    """What computes a float; a NaN becomes the one that a GPU has, because a CPU's has other bits."""
    if ctype is not types.FLOAT or not c.file.shows_bits:
        return run

    def settled(t: Team, m: Mask) -> Any:
        out = run(t, m)
        nan = np.isnan(out)
        return select_lanes(nan, _NAN, out) if np.count_nonzero(nan) else out

    return settled


def convert(c: Context, expr: Expr, target: CType, at: Position, explicit: bool = False) -> Expr:
    """Convert an expression as an assignment or a cast does it, or refuse what C++ cannot convert."""
    source = expr.type
    if source == target:
        return expr
    if isinstance(target, types.Void):
        return expr if not explicit else typed_value(c, types.VOID, expr.run, at, [expr])
    if isinstance(source, FunctionPointer) or isinstance(target, FunctionPointer):
        return _convert_function(c, expr, target, at)
    if isinstance(source, Scalar) and isinstance(target, Scalar):
        if not explicit and types.wants_cast(source, target):
            c.fail(
                at, f"{_unusable(source, target)}: say static_cast<{target.name}> if you mean it"
            )
        return _convert_scalar(c, expr, source, target, at)
    struct = c.class_of(source) is not None
    if isinstance(source, (Pointer, ArrayType)) or (isinstance(target, Pointer) and not struct):
        return _convert_pointer(c, expr, target, at, explicit)
    if c.derives(source, target):
        run, count = expr.run, len(types.leaves(target))
        first: Evaluate = lambda t, m: run(t, m)[:count]
        return typed_value(c, target, first, at, [expr], origin=expr.origin)
    if {spelled(source), spelled(target)} == {"dim3", "uint3"}:
        return typed_value(c, target, expr.run, at, [expr])
    if spelled(target) == "dim3" and isinstance(source, Scalar):
        width, one = convert(c, expr, types.UINT, at), np.uint32(1)
        return typed_value(c, target, lambda t, m: [width.run(t, m), one, one], at, [width])
    into, out_of = c.class_of(target), c.class_of(source)
    if into is not None and not explicit:
        made = [function for function in into.constructors if not function.explicit]
        into = replace(into, methods={**into.methods, into.name: made})
    if into is not None and into.constructors:
        return c.rules.construct(c, into, [expr], at, None)
    if out_of is not None:
        made = c.rules.become(c, expr, target, at, explicit)
        if made is not None:
            small = isinstance(target, Scalar) and BOOL.rank < target.rank < types.INT.rank
            if small and out_of.name == "__nv_bfloat16":
                # It is clamped, as a half is, which has all digits of it that an integer of 16 bits can show.
                made = convert(c, made, types.HALF, at)
            return convert(c, made, target, at)
    c.fail(at, f"no conversion from '{spelled(source)}' to '{spelled(target)}'")


def _convert_scalar(c: Context, expr: Expr, source: Scalar, target: Scalar, at: Position) -> Expr:
    number, wanted = types.number_type(source), types.number_type(target)
    change = converter(number, wanted)
    if change is None and (expr.constant is not None or number == wanted):
        return Expr(target, expr.run, at, expr.node, expr.constant, rank=expr.rank)
    free = change is None or BOOL in (number, wanted) or expr.constant is not None
    node = c.note(Convert((expr.node,), source=number, target=wanted, free=free))
    run = expr.run
    if change is None:
        return Expr(target, run, at, node, rank=expr.rank)
    changed = computed(c, target, lambda t, m: change(run(t, m)))
    return fold(typed_value(c, target, changed, at, [expr], node=node), [expr])


def _convert_function(c: Context, expr: Expr, target: CType, at: Position) -> Expr:
    """The address of a function as a truth, or the null pointer as such an address."""
    if target is BOOL and isinstance(expr.type, Scalar):
        return _convert_scalar(c, expr, expr.type, BOOL, at)
    if isinstance(target, FunctionPointer) and expr.constant is not None and expr.constant == 0:
        return constant(target, 0, at)
    source = spelled(expr.type)
    if isinstance(target, FunctionPointer):
        found = c.rules.address_as(c, expr.type, target, at)
        if found is not None:
            return found
        if isinstance(expr.type, FunctionPointer) and expr.type.overloaded:
            c.fail(at, f"no function '{source}' is a '{spelled(target)}'")
        if isinstance(expr.type, FunctionPointer):
            c.fail(at, f"the function is a '{source}', and should be a '{spelled(target)}'")
    c.fail(at, _unusable(expr.type, target))


def _unusable(source: CType, target: CType) -> str:
    return f"a value of type '{spelled(source)}' cannot be used as '{spelled(target)}'"


def _convert_pointer(c: Context, expr: Expr, target: CType, at: Position, explicit: bool) -> Expr:
    expr = decay(expr)
    source = expr.type
    if target is BOOL and isinstance(source, Pointer):
        run = expr.run

        def is_set(t: Team, m: Mask) -> Any:
            ptr = run(t, m)
            if ptr.mixed:
                return t.launch.addresses.number(ptr) != 0
            return np.bool_(True) if ptr.region is not None else np.not_equal(ptr.address(), 0)

        return typed_value(c, BOOL, is_set, at, [expr])
    zero = expr.constant is not None and expr.constant == 0
    if zero and not explicit and not isinstance(source, Pointer):
        return null(target, at)
    if not isinstance(source, Pointer) or not isinstance(target, Pointer):
        if explicit and isinstance(target, Scalar) and isinstance(source, Pointer):
            if target.is_integer and target.size == 8:
                return _to_number(c, expr, target, at)
            c.fail(at, f"an address has 8 bytes, '{target.name}' {target.size}: take uintptr_t")
        if explicit and isinstance(target, Pointer) and isinstance(source, Scalar):
            return _from_number(c, expr, target, at)
        hint = "" if explicit else ": a pointer and a number are different things"
        c.fail(at, _unusable(source, target) + hint)
    if not explicit:
        void = isinstance(target.target, types.Void)
        is_null = isinstance(source.target, types.Void) and expr.constant is not None
        alike = types.unqualified(source) == types.unqualified(target)
        base = c.derives(source.target, target.target)
        if not alike and not void and not is_null and not base:
            c.fail(at, f"{_unusable(source, target)}: say reinterpret_cast if you mean it")
        both = spelled(source), spelled(target)
        if source.const and not target.const:
            c.fail(at, "'{}' points to constants, '{}' would let them be changed".format(*both))
        if source.volatile and not target.volatile:
            text = "'{}' points to what others may change, '{}' would forget that: say volatile"
            c.fail(at, text.format(*both))
        if alike and not types.qualifies(source, target):
            c.fail(at, f"{_unusable(source, target)}: what is const or volatile in it differs")
    elif source.const and not target.const:
        c.aims.recast.append((expr.origin, at))
    return Expr(target, expr.run, at, expr.node, constant=expr.constant, origin=expr.origin)


def _to_number(c: Context, expr: Expr, target: Scalar, at: Position) -> Expr:
    run, dtype = expr.run, target.dtype
    c.aims.follows = True
    c.aims.cast.unite(expr.origin)
    number: Evaluate = lambda t, m: t.launch.addresses.number(run(t, m)).view(dtype)
    return typed_value(c, target, number, at, [expr])


def _from_number(c: Context, expr: Expr, target: Pointer, at: Position) -> Expr:
    """An integer as an address: of whatever has been cast to an integer."""
    if not isinstance(expr.type, Scalar) or not expr.type.is_integer:
        c.fail(at, f"a '{spelled(expr.type)}' cannot be used as an address")
    c.aims.follows = True
    step = types.size_of(target.target)
    run = convert(c, expr, types.ULLONG, at).run
    follow: Evaluate = lambda t, m: t.launch.addresses.pointer(t, m, run(t, m), step, at)
    return typed_value(c, target, follow, at, [expr], origin=c.aims.cast)


def related(c: Context, a: CType, b: CType) -> bool:
    """Tell whether pointers to these may be compared, and cast into each other."""
    return types.unqualified(a) == types.unqualified(b) or c.derives(a, b) or c.derives(b, a)


def itself(c: Context, expr: Expr, at: Position) -> Expr:
    """An operand; a struct that converts itself to one number or pointer is that."""
    return (
        expr if c.class_of(expr.type) is None else c.rules.become(c, expr, None, at, False) or expr
    )


def recast(c: Context, expr: Expr, at: Position) -> Expr:
    """An expression that a cast leaves as it is; it is no longer a place, nor a factor."""
    node = expr.node if expr.constant is not None else c.note(Followed((expr.node,)))
    return replace(expr, at=at, node=node, place=None, site=None, text=None, product=None, rank=0)


def decay(expr: Expr) -> Expr:
    """An array as a pointer to its first element."""
    if not isinstance(expr.type, ArrayType):
        return expr
    place = expr.place
    const = expr.type.const or (place is not None and place.const)
    volatile = expr.type.volatile or (isinstance(place, MemoryPlace) and place.volatile)
    ctype = Pointer(expr.type.element, const, volatile)
    return Expr(ctype, expr.run, expr.at, expr.node, origin=expr.origin)


def condition(c: Context, expr: Expr) -> Evaluate:
    """An expression as a test."""
    plain = isinstance(expr.type, types.Struct) and c.class_of(expr.type) is None
    if plain or isinstance(expr.type, types.Void):
        c.fail(expr.at, f"'{spelled(expr.type)}' is neither true nor false")
    return truth(c, expr).run


def truth(c: Context, expr: Expr) -> Expr:
    """An expression as true or false, where a struct may be converted by an explicit function, too."""
    return convert(c, expr, BOOL, expr.at, explicit=isinstance(expr.type, types.Struct))
