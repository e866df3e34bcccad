"""Literals, casts, unary and binary operators, and expressions that part the warps."""

from typing import Any

import numpy as np

from simgpu.cuda_c import types
from simgpu.cuda_c.compile import braces, conversions, form, places
from simgpu.cuda_c.compile.context import Context
from simgpu.cuda_c.compile.conversions import typed_value
from simgpu.cuda_c.compile.cuts import branched, done_before, kept
from simgpu.cuda_c.compile.operators import binary_operation, common_type, operate, refuse_scoped
from simgpu.cuda_c.compile.storage import in_lane_order, use_storage
from simgpu.cuda_c.compile.type_names import names_in, resolve_type
from simgpu.cuda_c.compile.typed import THIS, Evaluate, Expr, Number
from simgpu.cuda_c.compile.variables import Origin
from simgpu.cuda_c.lockstep import Mask, Team, split
from simgpu.cuda_c.memory import access
from simgpu.cuda_c.memory.global_region import literal
from simgpu.cuda_c.syntax import ast


def number_literal(c: Context, node: ast.Literal, used: bool) -> Expr:
    """Compile a number, a character, a truth or nullptr."""
    if node.type is not None:
        return conversions.constant(node.type, node.value, node.at)
    out = conversions.null(types.NULLPTR, node.at)
    out.node = form.Constant(value=out.constant)
    return out


def string(c: Context, node: ast.Text, used: bool) -> Expr:
    """Compile a string literal."""
    text, ctype = node.value, types.Pointer(types.CHAR, True)
    run: Evaluate = lambda t, m: literal(t, text)
    return Expr(ctype, run, node.at, form.IRValue(), origin=Origin(), text=text)


def sizeof_expression(c: Context, node: ast.SizeOf, used: bool) -> Expr:
    """Compile `sizeof` or `alignof`."""
    if isinstance(node.operand, ast.Text):
        return conversions.constant(types.ULONG, len(node.operand.characters()), node.at)
    if isinstance(node.operand, ast.TypeName):
        ctype = resolve_type(c, node.operand)
    else:
        ctype = places.place_asked(c, node.operand).type
    number = types.align_of(ctype) if node.align else types.size_of(ctype)
    return conversions.constant(types.ULONG, number, node.at)


def comma(c: Context, node: ast.Comma, used: bool) -> Expr:
    """Compile `first, second`."""
    first, mark = c.expression(node.first, used=False), len(c.ahead)
    second = c.expression(node.second, used)
    if len(c.ahead) > mark:
        done_before(c, first.run, first, mark)
        return second
    run = in_lane_order(first.run, second.run)
    return typed_value(c, second.type, run, node.at, [first, second], origin=second.origin)


def cast(c: Context, node: ast.Cast, used: bool) -> Expr:
    """Compile a cast, however it is written."""
    target = resolve_type(c, node.type)
    if node.type.reference:
        c.unsupported(node.at, "casts to references are not supported")
    operand = c.expression(node.operand)
    if isinstance(target, types.Struct) and not isinstance(operand.type, types.Struct):
        items = ast.Braces(at=node.at, items=[node.operand], type=node.type)
        return braces.listed_values(c, items, target)
    source = operand.type
    static = node.style == "static_cast"
    if static and isinstance(target, types.Pointer) and isinstance(source, types.Pointer):
        void = isinstance(source.target, types.Void) or isinstance(target.target, types.Void)
        if not void and not conversions.related(c, source.target, target.target):
            both = f"'{types.spelled(source)}' into '{types.spelled(target)}'"
            c.fail(node.at, f"static_cast cannot turn {both}: use reinterpret_cast")
    out = conversions.convert(c, operand, target, node.at, explicit=True)
    return conversions.recast(c, out, node.at) if out is operand else out


def unary(c: Context, node: ast.Unary, used: bool) -> Expr:
    """Compile a prefix operator."""
    if node.op == "*":
        return use_storage(c, places.place_of(c, node))
    if node.op == "&":
        return places.address_of(c, node)
    operand = c.expression(node.operand)
    if isinstance(operand.type, types.Struct | types.Enumeration):
        found = c.rules.overloaded(c, f"operator{node.op}", [operand], node.at)
        if found is not None:
            return use_storage(c, found)
        refuse_scoped(c, node.op, operand.type, node.at)
        if node.op != "!":
            operand = conversions.itself(c, operand, node.at)
    if node.op == "!":
        test = conversions.condition(c, operand)
        denied: Evaluate = lambda t, m: np.logical_not(test(t, m))
        out = binary_operation(c, "!", types.BOOL, types.BOOL, denied, node.at, [operand])
        return conversions.fold(out, [operand])
    if not isinstance(operand.type, types.Scalar):
        c.fail(node.at, f"operator '{node.op}' needs a number, not '{types.spelled(operand.type)}'")
    kind = types.promoted(operand.type)
    if node.op == "~" and kind.is_float:
        c.fail(node.at, f"operator '~' needs an integer, not '{kind.name}'")
    run = conversions.convert(c, operand, kind, node.at).run
    if node.op == "+":
        return conversions.fold(typed_value(c, kind, run, node.at, [operand]), [operand])
    ufunc: Any = np.negative if node.op == "-" else np.invert
    op = "negate" if node.op == "-" else "~"
    out = binary_operation(c, op, kind, kind, lambda t, m: ufunc(run(t, m)), node.at, [operand])
    if operand.product is not None and kind.is_float and kind == operand.type:
        a, b = operand.product  # the sign goes into a factor, and the product stays one
        out.product = (lambda t, m: -a(t, m), b)
    return conversions.fold(out, [operand])


def binary(c: Context, node: ast.Binary, used: bool) -> Expr:
    """Compile an operator with two sides."""
    if node.op in ("&&", "||"):
        return _short_circuit(c, node)
    left, mark = c.expression(node.left), len(c.ahead)
    right = c.expression(node.right)
    if len(c.ahead) > mark:
        left = kept(c, left, mark)
    if any(isinstance(side.type, types.Struct | types.Enumeration) for side in (left, right)):
        found = c.rules.overloaded(c, f"operator{node.op}", [left, right], node.at)
        if found is not None:
            return use_storage(c, found)
    return operate(c, node.op, left, right, node.at)


def _short_circuit(c: Context, node: ast.Binary) -> Expr:
    left = c.expression(node.left)
    test = conversions.condition(c, left)
    c.work(issued=0)  # comparisons take the outcome of another one along
    with c.detached(node.right.at) as piece:
        right = c.expression(node.right)
        rest = conversions.condition(c, right)
    if piece.ahead:
        truth, piece.run = conversions.truth(c, left), rest
        sides = (piece, None) if node.op == "&&" else (None, piece)
        return branched(c, truth, *sides, types.BOOL)
    c.steps.append(form.ShortCircuit(left.node, (piece,)))
    wants, point = node.op == "&&", piece.point

    def evaluate(t: Team, m: Mask) -> Any:
        value = test(t, m)
        go_on, stop = split(m, value if wants else np.logical_not(value))
        if go_on is None:
            return value
        t.meter.charge(point, go_on)
        other = rest(t, go_on)
        if stop is None:
            return other
        return value & other if wants else value | other

    if left.constant is not None and right.constant is not None:
        both = (bool(left.constant), bool(right.constant))
        return conversions.constant(types.BOOL, all(both) if wants else any(both), node.at)
    return typed_value(c, types.BOOL, evaluate, node.at, [left, right])


def conditional(c: Context, node: ast.Conditional, used: bool) -> Expr:
    """Compile `test ? yes : no`."""
    test = c.expression(node.test)
    decide = conversions.condition(c, test)
    c.work()
    with c.detached(node.yes.at) as yes_piece:
        yes = conversions.decay(c.expression(node.yes))
    with c.detached(node.no.at) as no_piece:
        no = conversions.decay(c.expression(node.no))
    ctype = common_type(c, yes, no, node.at)
    with c.recording(yes_piece.steps):
        yes = conversions.convert(c, yes, ctype, node.at)
    with c.recording(no_piece.steps):
        no = conversions.convert(c, no, ctype, node.at)
    if yes_piece.ahead or no_piece.ahead:
        yes_piece.run, no_piece.run = yes.run, no.run
        truth = conversions.truth(c, test)
        return branched(c, truth, yes_piece, no_piece, ctype)
    c.steps.append(form.Choice(test.node, (yes_piece, no_piece)))
    if test.constant is not None:
        chosen = yes if test.constant else no
        if chosen.constant is not None:
            return Expr(ctype, chosen.run, node.at, chosen.node, constant=chosen.constant)
    run_yes, run_no = yes.run, no.run
    point_yes, point_no = yes_piece.point, no_piece.point

    def evaluate(t: Team, m: Mask) -> Any:
        taken, others = split(m, decide(t, m))
        if others is None:
            t.meter.charge(point_yes, m)
            return run_yes(t, m)
        if taken is None:
            t.meter.charge(point_no, m)
            return run_no(t, m)
        t.meter.charge(point_yes, taken)
        t.meter.charge(point_no, others)
        return access.merge(taken, run_yes(t, taken), run_no(t, others))

    origin = Origin(yes.origin, no.origin)
    return typed_value(c, ctype, evaluate, node.at, [test, yes, no], origin=origin)


def qualified(c: Context, node: ast.Qualified, used: bool) -> Expr:
    """`Type::name`."""
    ctype = resolve_type(c, node.owner)
    found = names_in(c, ctype, node.owner).names.get(node.name)
    if isinstance(ctype, types.Struct) and ctype.member(node.name) is not None:
        this = places.hidden_object(c, THIS, node.at)
        if this is not None:
            return places.member_of(c, places.as_base(c, this, ctype), node)
    if not isinstance(found, Number):
        c.fail(node.at, f"'{types.spelled(ctype)}' has no constant '{node.name}'")
    return found.at(node.at)
