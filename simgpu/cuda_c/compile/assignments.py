"""Expressions that change something: `=`, `+=` and its like, `++` and `--`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import braces, form, operators, places, rooms, summing
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import constant, convert, nodes, typed_value
from simgpu.cuda_c.compile.storage import (
    in_lane_order,
    read_memory,
    use_storage,
    writable,
    writer,
)
from simgpu.cuda_c.compile.typed import Evaluate, Expr, MemoryPlace, RegisterPlace
from simgpu.cuda_c.lockstep import Mask, Team
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.syntax import ast

_SUMMED = (types.FLOAT, types.DOUBLE, types.INT, types.UINT, types.LLONG, types.ULLONG)


def assign(c: Context, node: ast.AssignExpr, used: bool) -> Expr:
    """Compile `=`, or an operator with `=`."""
    if isinstance(node.target, ast.Conditional):  # (test ? a : b) = value
        yes, no = (replace(node, target=side) for side in _sides(c, node.target))
        return c.expression(replace(node.target, yes=yes, no=no))
    target = changed_place(c, node.target)
    ctype = target.type
    own = _own_operator(c, node, target)
    if own is not None:
        return own
    writable(c, target, node.at)
    if isinstance(ctype, types.Struct) and (
        still := next((f for f in ctype.fields if f.const), None)
    ):
        c.fail(
            node.at, f"a '{ctype.name}' cannot be assigned to: its member '{still.name}' is const"
        )
    if node.op:
        ahead: Evaluate | None = None
        total: form.Total | None = None
        if isinstance(node.value, ast.Braces) and node.value.type is None:
            by = braces.listed_values(c, node.value, ctype)
        else:
            before, first = c.numbers.slots, len(c.steps)
            by = c.expression(node.value)
            if _writes(c.steps[first:], before):
                ahead = _ahead(c, by)
            total = _total(c, target, node.op, by)
            if total is not None and by.constant is None:
                factors = by.product and (summing.row(by.product[0]), summing.row(by.product[1]))
                by = replace(by, run=summing.row(by.run), product=factors)
        out = _update(c, target, node, by)
        out.run, out.total = in_lane_order(ahead, out.run), total
        return out
    new = braces.converted(c, node.value, ctype, node.at)
    write = writer(c, target, node.at, new)
    done = c.note(form.Result(nodes([target, new])))
    return typed_value(c, ctype, write, node.at, [target, new], node=done, origin=new.origin)


def changed_place(c: Context, node: ast.Expression) -> Expr:
    """A place that something changes; of `a = b`, `a += b` or `++a` it is `a`, behind that."""
    change = "target" if isinstance(node, ast.AssignExpr) else "operand"
    if not isinstance(node, ast.AssignExpr | ast.Increment) or getattr(node, "postfix", False):
        return places.place_of(c, node)
    asked, at = places.place_asked(c, getattr(node, change)), node.at
    if not isinstance(asked.type, types.Scalar | types.Pointer):  # it has operators of its own
        return places.place_of(c, node)
    target = changed_place(c, getattr(node, change))
    if target.place is None:
        return c.expression(node)
    name = f"*changed {c.new_slot()}"
    alias, fix = rooms.bind_reference(c, name, target, target.type, False, at)
    c.scope.names[name], again = alias, ast.DeclRefExpr(at=at, name=name)
    done = c.expression(replace(node, **{change: again}))
    place = places.place_of(c, again).place
    if isinstance(place, RegisterPlace):
        run = in_lane_order(fix, done.run)
        return replace(done, run=run, place=replace(place, before=run), total=None)
    assert isinstance(place, MemoryPlace)
    place.pointer = in_lane_order(fix, done.run, place.pointer)
    return read_memory(c, place, target.type, at)


def _sides(c: Context, node: ast.Conditional) -> list[ast.Expression]:
    """The two places of which one is changed: they have one type, or it would be a value."""
    if places.place_asked(c, node.yes).type != places.place_asked(c, node.no).type:
        c.fail(node.at, "this cannot be assigned to: it is a value, not a variable")
    return [node.yes, node.no]


def _writes(steps: Sequence[form.Instruction], before: int) -> bool:
    """Tell whether steps write to memory, or to a variable that was there `before`, by its slot."""
    return any(
        isinstance(step, form.Store | form.Exchange)
        or (isinstance(step, form.RegisterWrite) and step.variable.slot < before)
        for step in form.instructions_below(steps)
    )


def _total(c: Context, target: Expr, op: str, by: Expr) -> form.Total | None:
    """`target op= by` as a sum in a register, if it is one."""
    place, kind = target.place, target.type
    if not isinstance(place, RegisterPlace) or place.count is not None or place.before:
        return None
    fuses = c.file.contract and isinstance(kind, types.Scalar) and kind.is_float
    factors = by.product if fuses else None
    same = kind == by.type and kind in _SUMMED and op in "+-"
    plain = same and (factors is None or kind is types.FLOAT)
    return form.Total(place.variable, by.node, op == "-", plain, by.run, factors)


def _ahead(c: Context, by: Expr) -> Evaluate:
    """Compute a value and keep it in a slot, because `x += f()` may change `x` in `f`."""
    slot, compute = c.new_slot(), by.run

    def evaluate(t: Team, m: Mask) -> None:
        t.slots[slot] = compute(t, m)

    by.run, by.product = lambda t, m: t.slots[slot], None
    return evaluate


def _own_operator(c: Context, node: ast.AssignExpr, target: Expr) -> Expr | None:
    """`a += b` or `a = b`, if the file says itself what it means for this struct."""
    bare = isinstance(node.value, ast.Braces) and node.value.type is None
    if not isinstance(target.type, types.Struct | types.Enumeration) or bare:
        return None
    known = c.class_of(target.type)
    name = f"operator{node.op}="
    if name not in c.file.functions and (known is None or name not in known.methods):
        return None
    found = c.rules.overloaded(c, name, [target, c.expression(node.value)], node.at)
    return None if found is None else use_storage(c, found)


def increment(c: Context, node: ast.Increment, used: bool) -> Expr:
    """Compile `++` or `--`."""
    if isinstance(node.operand, ast.Conditional):
        yes, no = (replace(node, operand=side) for side in _sides(c, node.operand))
        return c.expression(replace(node.operand, yes=yes, no=no))
    target = changed_place(c, node.operand)
    if isinstance(target.type, types.Struct | types.Enumeration):
        dummy = [constant(types.INT, 0, node.at)] if node.postfix else []
        found = c.rules.overloaded(c, f"operator{node.op * 2}", [target, *dummy], node.at)
        if found is not None:
            return use_storage(c, found)
    writable(c, target, node.at)
    kind = target.type
    if isinstance(kind, types.Struct | types.Enumeration) or kind is types.BOOL:
        c.fail(node.at, f"'{node.op}{node.op}' cannot take a '{types.spelled(kind)}'")
    whole = isinstance(kind, types.Pointer) or (isinstance(kind, types.Scalar) and kind.is_integer)
    of = types.INT if whole else types.HALF if kind is types.HALF else types.FLOAT
    return _update(c, target, node, constant(of, 1, node.at), node.postfix and used)


def _update(
    c: Context, target: Expr, node: ast.AssignExpr | ast.Increment, by: Expr,
    old_wanted: bool = False,
) -> Expr:  # fmt: skip
    """Read a place, compute from it, write it back; the address is computed once."""
    ctype, place, slot, at = target.type, target.place, c.new_slot(), node.at
    read = use_storage(c, target).run
    if ctype is types.HALF:  # the only operator with = that cuda_fp16.h has takes halves
        by = convert(c, by, types.HALF, at)
    before = c.note(form.Old((target.node,)))
    old = Expr(ctype, lambda t, m: t.slots[slot], at, before, origin=target.origin)
    result = convert(c, operators.operate(c, node.op, old, by, at), ctype, at)
    if isinstance(place, MemoryPlace):
        room, pointer = c.new_slot(), place.accessed
        address: Evaluate = lambda t, m: t.slots[room]
        fixed = replace(place, pointer=address, checked=None)
        write = writer(c, replace(target, place=fixed), at, result)
        site = c.new_site(at, volatile=place.volatile, packed=place.packed)

        def fetch(t: Team, m: Mask) -> Any:
            ptr = t.slots[room] = pointer(t, m)
            return access.load_lanes(t, m, ptr, ctype, site)

        read = fetch
    else:
        assert isinstance(place, RegisterPlace)
        write = writer(c, replace(target, place=replace(place, before=None)), at, result)

    def evaluate(t: Team, m: Mask) -> Any:
        before = t.slots[slot] = read(t, m)
        after = write(t, m)
        return before if old_wanted else after

    parts = [target, result, by] if isinstance(node, ast.AssignExpr) else [target, result]
    done = c.note(form.Result(nodes(parts)))
    return typed_value(c, ctype, evaluate, at, parts, node=done, origin=target.origin)
